/*
 * A request that names a failing test ("test_gcd.py fails; fix it"). What was measured on small models: one
 * repairs best when it sees the program, the test and its output at once; a failed attempt left in view is
 * repeated; a second try needs the old text and a warmer sampler. So the harness runs the test first, bars a
 * failed attempt's rows (act.c), puts the file back, brings the old text's rows back at no cost, and asks
 * again; the last attempt stays in the tree for the person to judge or /undo.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/repair/attempt.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/words/block.h"
#include "base/hash.h"
#include "base/mem.h"
#include "code/code.h"
#include "tools/edit/comments.h"

enum { MAX_ATTEMPTS = 3, MAX_ASKING = 4, MAX_CHANGES = 2 };

void agent__fix_free(agent *a)
{
    agent__doubts_free(a);
    free(a->fix.path);
    free(a->fix.name);
    free(a->fix.field);
    for (uint32_t i = 0; i < a->fix.n_kept; i++) free(a->fix.kept[i]);
    a->fix = (agent_fix){0};
}

/* --- after a failed attempt ----------------------------------------------------------------------------- */

/* Rows that show exactly this text of the file are true again: they come back as they were computed. */
static void restore_rows(agent *a, const char *path)
{
    base_buf text = {0};
    char version[65];
    if (tool_workspace_read(a->workspace, path, 4 << 20, &text, NULL)) return;
    base_sha256_hex(text.data ? text.data : "", text.len, version);
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        agent_segment *p = &a->transcript.segments[i];
        if (!p->stale || !p->path || strcmp(p->path, path) || strcmp(p->version, version)) continue;
        base_err err = {0};
        if (agent__bring_back(a, p->from, p->to, &err))
            agent__notice(a, "the text of %s could not be brought back: %s", path, err.msg);
        p->stale = false;
    }
    tool_workspace_mark_shown(a->workspace, path, version);
    base_buf_free(&text);
}

static bool undo_attempt(agent *a, const char *path)
{
    char *summary = NULL;
    base_err err = {0};
    const char *who = tool_undo_obeyed_by(a->workspace);
    if (who) {
        agent__notice(
            a, "the failed attempt stays in the tree: %s obeys a file of it unasked (/undo asks)", who);
        return false;
    }
    if (tool_undo_apply(a->workspace, &summary, &err)) {
        agent__notice(a, "the failed attempt stays in the tree: %s", err.msg);
        return false;
    }
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_undo, .undo = {.turn = a->turn, .summary = summary}});
    tool_workspace_turn(a->workspace, a->turn); /* the next attempt is an undo of its own */
    a->fix.writes = 0;
    a->made.world++;
    free(summary);
    char *full = code_index_path(tool_workspace_index(a->workspace), path);
    restore_rows(a, full ? full : path);
    agent__taken_back(a, full ? full : path);
    free(full);
    return true;
}

/* The definition as it is now, for a model that can see neither its barred attempt nor the stale text. */
static void put_present_text(agent *a, const char *path, const char *name, base_buf *out)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    bool done = false;
    for (uint32_t i = 0; i < n && !done; i++) {
        base_buf text = {0};
        if (base_ends_with(places[i].path, path) &&
            !tool_workspace_read(a->workspace, places[i].path, 4 << 20, &text, NULL) &&
            places[i].to <= text.len && places[i].from < places[i].to) {
            base_buf_printf(out, "%s in %s is now:\n", name, places[i].path);
            base_buf_add(out, text.data + places[i].from, places[i].to - places[i].from);
            base_buf_putc(out, '\n');
            done = true;
        }
        base_buf_free(&text);
    }
    code_places_free(places, n);
}

/* All that it does is to call another function: what the request wants of it, that one has to do. */
static bool aim_at_delegate(agent *a)
{
    enum { MOST = 4 }; /* wrappers of wrappers */
    code_index *index = tool_workspace_index(a->workspace);
    char *name = a->fix.name && !a->asked.n_changed && !a->fix.wanted && agent__asks_for_behaviour(a)
                     ? base_xstrdup(a->fix.name)
                     : NULL;
    bool is_found = false;
    for (int i = 0; name && i < MOST; i++) {
        code_place *places = NULL;
        const uint32_t n = code_index_define(index, name, &places);
        const code_place *only = n == 1 && !places[0].is_declaration ? &places[0] : NULL;
        char *called = only ? agent__find_delegate(a, only, code_last_name(name)) : NULL;
        if (only && is_found) agent__aim_at(a, only->path, name);
        is_found |= called != NULL;
        code_places_free(places, n);
        free(name);
        name = called;
    }
    free(name);
    if (is_found) a->fix.copied = true; /* it would be */
    return is_found;
}

void agent__came_to_nothing(agent *a, uint32_t from, uint32_t to, base_buf *out)
{
    base_err err = {0};
    /* The first copy of what the request seems to mean: what it doubts there comes before another definition. */
    const bool is_doubted = a->asked.n_meant && (a->engine->can & ENGINE_DOUBTS) && !a->fix.doubts;
    if ((!is_doubted && agent__aim_at_next_meant(a)) || aim_at_delegate(a)) {
        base_buf_puts(out, "It stays as it is: something else has to change. ");
        put_present_text(a, a->fix.path, a->fix.name, out);
        if (agent__put_failed(a, from, to, &err))
            agent__notice(a, "the attempt could not be put aside: %s", err.msg);
        return;
    }
    a->fix.copied = true;
    const bool may_ask = a->fix.wanted ? a->fix.asked_again < MAX_ASKING
                                       : a->asked.change && a->fix.path && a->fix.asked_again < MAX_CHANGES;
    if (!may_ask || a->fix.passed || a->fix.attempts >= MAX_ATTEMPTS || a->info.strong) return;
    a->fix.asked_again++;
    a->fix.open_call = true;
    if (agent__put_failed(a, from, to, &err))
        agent__notice(a, "the attempt could not be put aside: %s", err.msg);
}

/* What was written uses a field that the request asks for and its type has not: it stays, and the type is next. */
static bool ask_for_field(agent *a, const char *output, base_buf *out)
{
    agent_lacking l;
    const bool is_lacking =
        a->fix.attempts < MAX_ATTEMPTS && !a->info.strong && agent__find_lacking(a, output, &l);
    if (!is_lacking) return false;
    base_buf_printf(out, "What was written stays. `%s` has no `%s` yet. ", l.type, l.field);
    put_present_text(a, l.path, l.type, out);
    base_buf_printf(out, "Rewrite `%s` with `%s` in it, and nothing else changed.\n", l.type, l.field);
    agent__aim_at(a, l.path, l.type);
    a->fix.field = base_xstrdup(l.field);
    agent__lacking_free(&l);
    return true;
}

/* A change that was no repair: what failed is to be put right, and what stands there is seen. */
static void ask_for_correction(agent *a, const char *path, const char *name, base_buf *out)
{
    const bool is_new_test = a->asked.new_test.path != NULL;
    a->fix.open_call = a->fix.attempts < MAX_ATTEMPTS && !a->info.strong;
    base_buf_puts(out, is_new_test ? "The new test fails: what it expects is not what the code gives, or it "
                                     "calls it wrongly. The code stays as it is. "
                       : a->test.has_values ? "The request says what it should give. "
                                            : "It passes without this change. ");
    if (!is_new_test) put_present_text(a, path, name, out); /* what is seen is written again */
    if (a->fix.attempts < MAX_ATTEMPTS) base_buf_puts(out, "Find what is wrong and rewrite it.\n");
}

void agent__take_back(agent *a, const char *path, const char *name, const char *output, base_buf *out)
{
    if (!a->fix.wanted && ask_for_field(a, output, out)) return;
    if (!a->fix.wanted && (a->test.is_found || a->asked.new_test.path)) {
        ask_for_correction(a, path, name, out);
        return;
    }
    base_buf_puts(out, "The test still fails. ");
    a->fix.open_call = a->fix.wanted && a->fix.attempts < MAX_ATTEMPTS;
    if (a->fix.wanted && a->fix.attempts < MAX_ATTEMPTS && a->fix.writes == 1 && undo_attempt(a, path)) {
        base_buf_printf(out,
            "This change was taken back: %s is as it was before. The fault is somewhere else in it: find it "
            "and rewrite %s differently.\n",
            path, *name ? name : "it");
        return;
    }
    put_present_text(a, path, name, out);
    if (a->fix.attempts < MAX_ATTEMPTS) base_buf_puts(out, "Find what is still wrong and rewrite it.\n");
}

/* --- asking again --------------------------------------------------------------------------------------- */

void agent_definition_free(agent_definition *t)
{
    free(t->path);
    free(t->name);
    free(t->language);
    base_buf_free(&t->text);
    *t = (agent_definition){0};
}

/* Is it the type that the name writes in front of its last part, if it writes one? */
static bool is_of_type(const char *parent, const char *name)
{
    size_t n = (size_t)(code_last_name(name) - name);
    while (n && strchr(".:", name[n - 1])) n--;
    char *written = base_xstrndup(name, n);
    const bool is_so = !n || !strcmp(code_last_name(parent), code_last_name(written));
    free(written);
    return is_so;
}

/* The definition of that name, of its type where there is one, else the file's first one that has a body. */
static const code_definition *definition_of(const code_file *f, const char *name)
{
    const code_definition *found = NULL;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (d->body_to <= d->body_from || (name && strcmp(d->name, code_last_name(name)) != 0)) continue;
        if (!name || is_of_type(d->parent, name)) return d;
        if (!found) found = d;
    }
    return found;
}

static void take_definition(
    const code_definition *d, const char *path, const char *name, const base_buf *text, agent_definition *ret)
{
    ret->path = base_xstrdup(path);
    ret->name = base_xstrdup(name);
    const char *language = code_language(path, text->data, text->len);
    ret->language = base_xstrdup(language ? language : "");
    if (!d || d->to > text->len) return;
    size_t from = d->from;
    while (from && (text->data[from - 1] == ' ' || text->data[from - 1] == '\t')) from--;
    if (from && text->data[from - 1] != '\n') from = d->from;
    base_buf_add(&ret->text, text->data + from, d->to - from);
    ret->body = d->body_from - from;
    ret->line = !strcmp(d->what, "function") || !strcmp(d->what, "method") ? d->line : 0;
}

bool agent__narrow(const agent *a, agent_definition *t)
{
    agent_block b;
    size_t from = 0, to;
    if (!t->line || !t->text.len || !agent__is_long(t->text.data, t->text.len) || a->fix.wanted ||
        a->fix.field || a->asked.test || model_tools_are_marked(a->info.tools) ||
        model_tools_are_xml(a->info.tools) || tool__asks_for_comments_alone(a->request) ||
        !agent__find_blocks(t->text.data, t->text.len, t->body, a->request, &b, 1))
        return false;
    for (uint32_t line = 1; line < b.from; line++)
        from = (size_t)(strchr(t->text.data + from, '\n') + 1 - t->text.data);
    to = from;
    for (uint32_t line = b.from; line <= b.to; line++) {
        const char *end = strchr(t->text.data + to, '\n');
        to = end ? (size_t)(end + 1 - t->text.data) : t->text.len;
    }
    base_buf lines = {0};
    base_buf_add(&lines, t->text.data + from, to - from);
    base_buf_free(&t->text);
    t->text = lines;
    t->body = 0;
    t->from = t->line + b.from - 1;
    t->to = t->line + b.to - 1;
    return true;
}

bool agent__read_definition(const agent *a, const char *path, const char *name, agent_definition *ret)
{
    base_buf text = {0};
    if (!path || !name) return false;
    if (tool_workspace_read(a->workspace, path, 1 << 20, &text, NULL) || !text.len) return false;
    code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len);
    const code_definition *d = definition_of(f, name);
    const bool is_new = !d && !code_index_is_defined(tool_workspace_index(a->workspace), name);
    if (d || is_new) take_definition(d, path, name, &text, ret);
    code_file_free(f);
    base_buf_free(&text);
    return d || is_new;
}

bool agent__are_narrowed(const agent *a, const base_json *arguments)
{
    agent_definition t = {0};
    const bool are = agent__read_definition(a, base_json_str(arguments, "path", NULL),
                         base_json_str(arguments, "name", NULL), &t) &&
                     agent__narrow(a, &t) && base_json_int(arguments, "from", 0) == t.from &&
                     base_json_int(arguments, "to", 0) == t.to;
    agent_definition_free(&t);
    return are;
}

/* What was written, else the definition that this turn's excerpts show of a file that is no test, as it is now. */
static bool find_target(const agent *a, agent_definition *ret)
{
    if (!a->fix.wanted && agent__read_definition(a, a->fix.path, a->fix.name, ret)) return true;
    for (size_t i = 0; i < a->transcript.n_segments && !ret->path; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->turn != a->turn || !p->path || p->stale || code_path_is_test(p->path)) continue;
        base_buf text = {0};
        if (tool_workspace_read(a->workspace, p->path, 1 << 20, &text, NULL)) continue;
        if (!text.data) base_buf_puts(&text, "");
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), p->path, text.data, text.len);
        const char *label = p->label && *p->label ? p->label : NULL;
        const code_definition *d = definition_of(f, label);
        if (d || label) take_definition(d, p->path, label ? label : d->name, &text, ret);
        code_file_free(f);
        base_buf_free(&text);
    }
    return ret->path != NULL;
}

void agent_opening_free(agent_opening *o)
{
    base_buf_free(&o->thought);
    base_buf_free(&o->call);
    base_buf_free(&o->behind);
    base_buf_free(&o->old);
    o->is_doubt = o->is_line = false;
}

void agent__put_call(const agent *a, const agent_definition *t, base_buf *out)
{
    base_buf json = {0};
    base_buf_puts(&json, "{\"name\": \"rewrite\", \"arguments\": {\"path\": ");
    base_json_put_str(&json, t->path, strlen(t->path));
    base_buf_puts(&json, ", \"name\": ");
    base_json_put_str(&json, t->name, strlen(t->name));
    if (t->from) base_buf_printf(&json, ", \"from\": %u, \"to\": %u", t->from, t->to);
    base_buf_puts(&json, "}}");
    agent_prompt_open_payload(a->info.tools, json.data, t->language, out);
    base_buf_free(&json);
}

/* Nothing is thought of a definition that is not there yet, or that was not written in vain. */
static void put_thought(const agent *a, const agent_definition *t, base_buf *out)
{
    const bool is_wrong = a->fix.wanted || a->fix.failing;
    const bool has_thought = a->fix.field || is_wrong || (a->fix.copied && t->text.len);
    if (!has_thought || strchr(t->name, AGENT_PROMPT_MARK)) return;
    agent_prompt_open_thought(a->info.tools, out);
    if (a->fix.field)
        base_buf_printf(out, "The field `%s` that `%s` lacks is declared as `", a->fix.field, t->name);
    else
        base_buf_printf(out,
            is_wrong ? "The wrong line in the definition of `%s` is `"
                     : "The line of `%s` that has to change is `",
            t->name);
}

/*
 * Asked for comments alone: the call goes on into one, where that stands in its language, or a small model copies the code. false:
 * it is asked for more, or a docstring is there.
 */
static bool open_comment(const agent *a, const agent_definition *t, agent_opening *opening)
{
    static const struct {
        const char *language, *begins;
    } marks[] = {{"c", "/* "}, {"cpp", "/* "}, {"java", "/**\n * "}, {"javascript", "/**\n * "},
        {"typescript", "/**\n * "}, {"go", "// "}, {"rust", "/// "}};
    base_buf body = {0};
    const char *language = t->language ? t->language : "";
    if (a->fix.wanted || !tool__asks_for_comments_alone(a->request)) return false;
    const char *first = t->text.data && t->body < t->text.len ? t->text.data + t->body : "";
    const bool has_docstring = *first && (strchr("\"'", *first) || strchr("\"'", first[1])); /* r"..." too */
    if (!strcmp(language, "python") && t->body && *first && !has_docstring) {
        base_buf_add(&body, t->text.data, t->body);
        base_buf_puts(&body, "\"\"\"");
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!strcmp(language, marks[i].language)) base_buf_puts(&body, marks[i].begins);
    const bool is_open = body.len > 0;
    if (is_open && !strcmp(language, "go")) base_buf_printf(&body, "%s ", code_last_name(t->name));
    if (is_open) agent_prompt_put_payload(a->info.tools, body.data, body.len, &opening->call);
    base_buf_free(&body);
    return is_open;
}

int agent__open_call(agent *a, bool further, agent_opening *opening, base_err *err)
{
    agent_definition t = {0};
    int rc = 0;
    agent_opening_free(opening);
    if (find_target(a, &t)) {
        base_buf text = {0};
        const bool is_part = agent__narrow(a, &t);
        if (is_part) /* which lines the numbers are no model of this size can say */
            base_buf_printf(&opening->call, "These lines of `%s` have to change:\n```%s\n%s```\n", t.name,
                t.language, t.text.data);
        agent__put_call(a, &t, &opening->call);
        const bool is_comment = open_comment(a, &t, opening);
        /* Between marks the text is quoted: what is doubted in it is not the tokens that would be written. */
        if (further && !is_comment && !a->fix.field && !model_tools_are_marked(a->info.tools))
            rc = agent__doubt_next(a, opening->call.data, &t, &text, err);
        const bool is_early =
            further && !is_part && !is_comment && !text.len && agent__open_early_return(a, &t, opening);
        opening->is_doubt = is_comment || is_early || text.len > 0;
        /* Without a thought of its own a small model copies the old text. */
        if (!opening->is_doubt && !is_part) put_thought(a, &t, &opening->thought);
        base_buf_puts(&opening->call, text.data ? text.data : "");
        base_buf_free(&text);
    }
    agent_definition_free(&t);
    return rc;
}

const char *agent__forbids_change(const agent *a, const char *path)
{
    if (a->info.strong || !path) return NULL;
    if (a->asked.test_alone) {
        char *code = code_index_path(tool_workspace_index(a->workspace), path);
        const char *language = code ? code_language(code, "", 0) : NULL, *place = a->asked.new_test.path;
        const bool is_code = language && !code_language_is_document(language) && !code_path_is_test(code) &&
                             strcmp(language, "rust") != 0 && (!place || strcmp(place, code) != 0);
        free(code);
        return is_code ? "the request asks for a test, and this is code. Nothing "
                         "was changed. Next: write the test, in a file of tests"
                       : NULL;
    }
    if (!a->fix.wanted || !a->test.command) return NULL;
    char *full = code_index_path(tool_workspace_index(a->workspace), path);
    bool judges = full && code_path_is_test(full) && strstr(a->test.command, full);
    free(full);
    return judges ? "the test judges and stays as it is. Change the code that it tests" : NULL;
}

bool agent__ask_again(agent *a, uint32_t from, uint32_t to, bool is_useless, base_buf *out)
{
    const agent_fix *x = &a->fix;
    if (!x->wanted || x->passed || x->no_test || a->denied || a->info.strong || x->attempts >= MAX_ATTEMPTS ||
        x->asked_again >= MAX_ASKING)
        return false;
    a->fix.asked_again++;
    a->fix.open_call = true;
    agent__notice(a, x->attempts ? "the test still fails: asking for another attempt"
                                 : "nothing was changed: asking for the change");
    base_err err = {0};
    if ((x->attempts || is_useless) && from < to && agent__put_failed(a, from, to, &err))
        agent__notice(a, "the answer could not be put aside: %s", err.msg);
    base_buf_puts(out, x->attempts ? "The test still fails. Rewrite the definition again, differently"
                                   : "No file was changed yet. Make the change now");
    base_buf_puts(out, ": the call on one line, then the whole corrected definition in a fenced block.");
    return true;
}
