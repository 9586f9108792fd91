/*
 * "Renamed it in a.py and docs/index.rst, f uses g now, and I added a test. The tests pass.": a small model says so whatever was
 * done, and the person reads it above the program's last line. What of it the tree and the runs do not bear out is said there.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/asked/turn_files.h"
#include "agent/words/claim_words.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

enum { MOST_FILES = 4, MOST_PLACES = 8 };

/* What an answer says and the tree does not have, a list each. */
typedef struct unfounded {
    const agent *a;
    agent_turn_files files;
    base_buf same, lacking, left, unused; /* "a, b" */
    uint32_t n_same;
    bool claims_test, claims_new_test;
} unfounded;

static void put_name(base_buf *list, const char *name)
{
    if (!list->data || !code_has_identifier(list->data, list->len, code_last_name(name)))
        base_buf_printf(list, "%s%s", list->len ? ", " : "", name);
}

/* How often the name stands in all that the turn has changed, as it is or was. */
static uint32_t count(const unfounded *u, const char *name, bool is_before)
{
    uint32_t n = 0;
    for (size_t i = 0; i < u->files.n; i++) {
        const agent_turn_file *f = &u->files.files[i];
        n += is_before ? agent__count_name(f->before, f->n_before, name)
                       : agent__count_name(f->now, f->n_now, name);
    }
    return n;
}

/* Does some file have less of it than before? */
static bool is_fewer(const unfounded *u, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < u->files.n; i++) {
        const agent_turn_file *f = &u->files.files[i];
        is |= agent__count_name(f->now, f->n_now, name) < agent__count_name(f->before, f->n_before, name);
    }
    return is;
}

/* The turn's last line says already that it is missing, or as it was. */
static bool is_wished(const agent *a, const char *name)
{
    bool is = false;
    for (uint32_t i = 0; i < a->asked.n_wishes; i++)
        is |= !strcmp(code_last_name(a->asked.wishes[i].name), code_last_name(name));
    return is;
}

/* --- a definition, before and now -------------------------------------------------------------------------- */

/* The texts of all definitions of that name in a text, one behind the other; false: it has none. */
static bool texts_of(
    const unfounded *u, const agent_turn_file *f, bool is_before, const char *name, base_buf *out)
{
    const char *text = is_before ? f->before : f->now;
    code_file *parsed = code_parse(
        tool_workspace_grammars(u->a->workspace), f->path, text, is_before ? f->n_before : f->n_now);
    uint32_t at[MOST_PLACES];
    uint32_t n = code_find_definition(parsed, name, at, MOST_PLACES);
    if (n > MOST_PLACES) n = MOST_PLACES;
    for (uint32_t i = 0; i < n; i++) {
        const code_definition *d = &parsed->definitions[at[i]];
        base_buf_add(out, text + d->from, d->to - d->from);
    }
    code_file_free(parsed);
    return n > 0;
}

typedef enum state { IS_CHANGED, IS_SAME, IS_NOT_THERE } state;

/* Of the definitions of that name in the files that were changed. */
static state state_of(const unfounded *u, const char *name)
{
    state ret = IS_NOT_THERE;
    for (size_t i = 0; i < u->files.n && ret != IS_CHANGED; i++) {
        const agent_turn_file *f = &u->files.files[i];
        base_buf before = {0}, now = {0};
        const bool was = texts_of(u, f, true, name, &before), is = texts_of(u, f, false, name, &now);
        if (was || is)
            ret = was && is && before.len == now.len && !memcmp(before.data, now.data, now.len) ? IS_SAME
                                                                                                : IS_CHANGED;
        base_buf_free(&before);
        base_buf_free(&now);
    }
    return ret;
}

/* A function, method or type of the tree, outside of its tests. */
static bool is_definition(const agent *a, const char *name)
{
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    bool is = false;
    for (uint32_t i = 0; i < n; i++)
        is |= !places[i].is_declaration && !code_path_is_test(places[i].path) &&
              strcmp(places[i].what, "section") != 0 && strcmp(places[i].what, "field") != 0 &&
              strcmp(places[i].what, "variable") != 0;
    code_places_free(places, n);
    return is;
}

/* --- a kind of claim each ---------------------------------------------------------------------------------- */

static void check_changed(unfounded *u, const agent_claim *c, const char *name)
{
    (void)c;
    if (!is_definition(u->a, name) || state_of(u, name) == IS_CHANGED) return;
    put_name(&u->same, name);
    u->n_same++;
}

static void check_added(unfounded *u, const agent_claim *c, const char *name)
{
    (void)c;
    if (!count(u, code_last_name(name), false)) put_name(&u->lacking, name);
}

static void check_removed(unfounded *u, const agent_claim *c, const char *name)
{
    (void)c;
    const char *last = code_last_name(name);
    if (!is_fewer(u, last) && (count(u, last, false) || is_definition(u->a, name))) put_name(&u->left, name);
}

static void check_renamed(unfounded *u, const agent_claim *c, const char *name)
{
    check_removed(u, c, name);
    if (c->of) check_added(u, c, c->of);
}

/* "f uses g": f's text says g; of nobody that uses it: something that was changed says it. */
static void check_used(unfounded *u, const agent_claim *c, const char *name)
{
    const char *last = code_last_name(name);
    bool is_there = false, has_user = false;
    for (size_t i = 0; i < u->files.n; i++) {
        const agent_turn_file *f = &u->files.files[i];
        base_buf text = {0};
        const bool is_user = c->of && texts_of(u, f, false, c->of, &text);
        char *code = code_blank_comments(f->language, text.data ? text.data : "", text.len);
        has_user |= is_user;
        is_there |= is_user ? code_has_identifier(code, text.len, last)
                            : code_has_identifier(f->code_now, f->n_now, last);
        free(code);
        base_buf_free(&text);
    }
    if (is_there || (c->of && !has_user)) return;
    base_buf said = {0};
    base_buf_printf(&said, "%s%s%s", has_user ? c->of : "", has_user ? " does not use " : "", name);
    if (has_user && !(u->unused.data && strstr(u->unused.data, said.data)))
        base_buf_printf(&u->unused, "%s%s", u->unused.len ? ", " : "", said.data);
    if (!has_user) put_name(&u->lacking, name);
    base_buf_free(&said);
}

static void check_claim(unfounded *u, const agent_claim *c)
{
    static void (*const checks[])(unfounded *, const agent_claim *, const char *) = {
        [AGENT_CLAIM_USED] = check_used,
        [AGENT_CLAIM_ADDED] = check_added,
        [AGENT_CLAIM_REMOVED] = check_removed,
        [AGENT_CLAIM_RENAMED] = check_renamed,
        [AGENT_CLAIM_CHANGED] = check_changed};
    for (uint32_t i = 0; i < c->n; i++)
        if (c->kind == AGENT_CLAIM_USED || !is_wished(u->a, c->names[i])) checks[c->kind](u, c, c->names[i]);
    u->claims_new_test |= c->kind == AGENT_CLAIM_ADDED && c->of_tests;
}

/* --- files and tests --------------------------------------------------------------------------------------- */

static bool is_claim(const char *sentence)
{
    static const char *const done[] = {"added", "renamed", "removed", "updated", "changed", "deleted",
        "moved", "fixed", "rewritten", "rewrote", "modified", "implemented", "replaced", "documented", NULL};
    return agent__has_any_word(sentence, done) && !agent__is_denied(sentence);
}

/* Files of the tree that a sentence says were changed, and that were not. */
static void check_files(unfounded *u, const char *sentence)
{
    const agent *a = u->a;
    agent_word m;
    for (size_t at = 0; agent__next_mention(sentence, at, &m); at = m.to > at ? m.to : at + 1) {
        char *said = agent__copy_word(sentence, m), *path = agent__find_meant_file(a, said);
        free(said);
        if (path && !agent__is_changed(a, path) && !(u->same.data && strstr(u->same.data, path)) &&
            u->n_same++ < MOST_FILES)
            base_buf_printf(&u->same, "%s%s", u->same.len ? ", " : "", path);
        free(path);
    }
}

static void check_sentences(unfounded *u, const char *s)
{
    static const char *const tests[] = {"test", "tests", NULL};
    static const char *const passing[] = {"pass", "passes", "passed", "passing", NULL};
    for (size_t at = 0; s[at];) {
        const size_t end = agent__sentence_end(s, at);
        char *sentence = base_xstrndup(s + at, end - at);
        if (is_claim(sentence)) check_files(u, sentence);
        u->claims_test |= agent__has_any_word(sentence, tests) && agent__has_any_word(sentence, passing);
        free(sentence);
        at = end + (s[end] != '\0');
    }
}

/* Is something that this turn wrote a test? Rust has them in the file of what they test. */
static bool has_new_test(const unfounded *u)
{
    bool is = false;
    for (size_t i = 0; i < u->files.n; i++) {
        const agent_turn_file *f = &u->files.files[i];
        is |= code_path_is_test(f->path) ||
              agent__count_name(f->now, f->n_now, "test") > agent__count_name(f->before, f->n_before, "test");
    }
    return is;
}

static void put_list(const base_buf *list, const char *says, bool goes_on, base_buf *out)
{
    if (list->len) base_buf_printf(out, " %s%s%s.", says, list->data, goes_on ? ", ..." : "");
}

void agent__put_unfounded(const agent *a, base_buf *out)
{
    const agent_asked *x = &a->asked;
    const char *s = x->said ? x->said : "";
    const bool has_run = a->test.command && !a->test.words && (a->fix.passed || a->fix.failing);
    unfounded u = {.a = a};
    agent_claim *claims = NULL;
    const uint32_t n = x->is_told ? 0 : agent_read_claims(s, &claims);
    if (n) agent__turn_files(a, &u.files);
    check_sentences(&u, s);
    for (uint32_t i = 0; i < n && u.files.n; i++) check_claim(&u, &claims[i]);
    put_list(&u.same, "Not changed, whatever the answer says: ", u.n_same > MOST_FILES, out);
    put_list(&u.lacking, "Not in what was changed, whatever the answer says: ", false, out);
    put_list(&u.left, "Still there, whatever the answer says: ", false, out);
    put_list(&u.unused, "Whatever the answer says: ", false, out);
    if (u.claims_new_test && !agent__lacks_test(a) && !has_new_test(&u))
        base_buf_puts(out, " No test was added, whatever the answer says.");
    if (u.claims_test && !has_run) base_buf_puts(out, " No test has run, whatever the answer says.");
    base_buf_free(&u.same);
    base_buf_free(&u.lacking);
    base_buf_free(&u.left);
    base_buf_free(&u.unused);
    agent__turn_files_free(&u.files);
    agent_claims_free(claims, n);
}
