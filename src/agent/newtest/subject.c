/*
 * What a new test is of: what the turn has changed; a definition that the request names with its type, by itself or by its
 * words; a function that it says as a verb or by the error that it gives; the best that retrieval finds.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/newtest/newtest.h"
#include "agent/retrieve/retrieve.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

/* The mention with the member behind two colons, as the index writes it: "Pattern::escape" is "Pattern.escape". */
static char *copy_member(const char *request, agent_word w)
{
    agent_word member;
    base_buf out = {0};
    const bool is_one = !strncmp(request + w.to, "::", 2) && agent__is_in_word(request, w.to + 2) &&
                        agent__next_word(request, w.to, &member);
    base_buf_add(&out, request + w.from, w.to - w.from);
    if (is_one) base_buf_printf(&out, ".%.*s", (int)(member.to - member.from), request + member.from);
    return out.data ? base_buf_take(&out) : base_xstrdup("");
}

/* "Signer.validate": a member that the request names with its type. The caller frees; NULL: none. */
static char *find_member(const agent *a, const char *request, char **ret_path)
{
    char *member = NULL;
    agent_word w;
    for (size_t at = 0; !member && agent__next_mention(request, at, &w); at = w.to > at ? w.to : at + 1) {
        char *name = copy_member(request, w);
        code_place *places = NULL;
        const char *last = code_last_name(name);
        const uint32_t n =
            last > name ? code_index_define(tool_workspace_index(a->workspace), name, &places) : 0;
        for (uint32_t i = 0; i < n && !member; i++) {
            if (!agent__is_code_place(&places[i]) || !*places[i].parent) continue;
            member = base_xstrdup(name);
            *ret_path = base_xstrdup(places[i].path);
        }
        code_places_free(places, n);
        free(name);
    }
    return member;
}

/* What a build made of sources that stand elsewhere: no tests are written for it. */
static bool is_built(const char *path)
{
    static const char *const folders[] = {"dist/", "build/", "out/"};
    bool is = base_ends_with(path, ".d.ts") || strstr(path, ".min.");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        for (const char *at = path; (at = strstr(at, folders[i])); at++) is |= at == path || at[-1] == '/';
    return is;
}

/* The first definition outside of tests that a name has: its file (heap); NULL: none. */
static char *code_path_of(const agent *a, const char *name, bool is_called)
{
    code_place *places = NULL;
    char *path = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    for (uint32_t i = 0; i < n && (!path || is_built(path)); i++) {
        if (!agent__is_code_place(&places[i]) || (path && is_built(places[i].path)) ||
            (is_called && strcmp(places[i].what, "function") != 0 && strcmp(places[i].what, "method") != 0))
            continue;
        free(path);
        path = base_xstrdup(places[i].path);
    }
    code_places_free(places, n);
    return path;
}

/* The definition that a name with a type has, outside of tests. */
static bool is_member(const agent *a, const char *type, const char *member)
{
    code_place *places = NULL;
    bool is_so = false;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), member, &places);
    for (uint32_t i = 0; i < n; i++)
        is_so |= agent__is_code_place(&places[i]) && !strcmp(places[i].parent, type);
    code_places_free(places, n);
    return is_so;
}

/* "Cache.pop" of "pop of an empty Cache": a type soon behind byte `at` has that member. The caller frees; NULL: none has. */
static char *member_behind(const agent *a, const char *request, size_t at, const char *name)
{
    enum { NEAR = 4 };
    agent_word w = {at, at};
    base_buf member = {0};
    for (int i = 0; i < NEAR && !member.len && agent__next_word(request, w.to, &w); i++) {
        char *type = agent__copy_word(request, w);
        base_buf_printf(&member, "%s.%s", type, name);
        if (!is_member(a, type, member.data)) base_buf_clear(&member);
        free(type);
    }
    if (member.len) return base_buf_take(&member);
    base_buf_free(&member);
    return NULL;
}

/*
 * "... that first raises StopIteration", "that pop of Cache gives the default": what is said of a function begins with its name, be
 * that a plain word, and what follows says so. With its type where the request names one that has it. NULL: it begins otherwise.
 */
static char *said_subject(const agent *a, const char *request, char **ret_path)
{
    static const char *const links[] = {"of", "with", "on", "for", "when", "in", NULL};
    static const char *const plurals[] = {
        "tests", "cases", "errors", "values", "names", "is", "was", "this", NULL};
    agent_word claim, w, next;
    *ret_path = NULL;
    if (!agent__find_test_claim(request, &claim) || !agent__next_word(request, claim.from, &w) ||
        !agent__next_word(request, w.to, &next) || request[w.to] != ' ' || next.to > claim.to)
        return NULL;
    const bool is_verb = request[next.to - 1] == 's' && !agent__is_any_word(request, next, plurals);
    if (!is_verb && !agent__is_any_word(request, next, links)) return NULL;
    char *name = agent__copy_word(request, w),
         *member = is_verb ? NULL : member_behind(a, request, next.to, name);
    *ret_path = code_path_of(a, member ? member : name, true);
    if (*ret_path && member) {
        free(name);
        return member;
    }
    free(member);
    if (*ret_path) return name;
    free(name);
    return NULL;
}

/* "Distance has tests, add one for Match": the function behind the last such "one for". NULL: none. */
static char *ordered_subject(const agent *a, const char *request, char **ret_path)
{
    static const char *const one[] = {"one", "some", "another", NULL}, *const links[] = {"for", "of", NULL};
    char *subject = NULL;
    agent_word w, link, name;
    for (size_t at = 0; agent__next_word(request, at, &w); at = w.to) {
        if (!agent__is_any_word(request, w, one) || !agent__next_word(request, w.to, &link) ||
            !agent__is_any_word(request, link, links) || !agent__next_mention(request, link.to, &name))
            continue;
        char *said = agent__copy_word(request, name), *path = code_path_of(a, said, true);
        if (path) {
            free(subject);
            free(*ret_path);
            subject = said;
            *ret_path = path;
            continue;
        }
        free(said);
    }
    return subject;
}

/* The definition that the request names or describes, as surely as `least` says; NULL: none. */
static char *named_subject(const agent *a, const char *request, uint32_t least, char **ret_path)
{
    char *subject = NULL;
    agent_named named;
    agent__find_named(a, request, &named);
    for (uint32_t k = 0; k < named.n && named.items[k].score >= least && !subject; k++) {
        *ret_path = code_path_of(a, named.items[k].name, false);
        if (*ret_path) subject = base_xstrdup(named.items[k].name);
    }
    agent_named_free(&named);
    return subject;
}

/* --- a function that is said as a verb ------------------------------------------------------------------ */

/* "decoded" and "decoding" say decode, "formatted" format, "applies" apply: one of these, each with an ending of its own. */
static bool put_verb(const char *word, size_t n, size_t way, base_buf *out)
{
    static const struct {
        const char *ending, *instead;
        bool is_doubled; /* the letter in front of it is there twice */
    } ways[] = {{"ed", "e", false}, {"ed", "", false}, {"ed", "", true}, {"ing", "e", false},
        {"ing", "", false}, {"ing", "", true}, {"ies", "y", false}, {"ied", "y", false}, {"es", "", false},
        {"s", "", false}};
    enum { LEAST = 3 };
    if (way >= sizeof ways / sizeof *ways) return false;
    const size_t m = strlen(ways[way].ending);
    base_buf_clear(out);
    if (n < m + LEAST || strncasecmp(word + n - m, ways[way].ending, m) != 0) return true;
    size_t stem = n - m;
    if (ways[way].is_doubled && word[stem - 1] != word[stem - 2]) return true;
    stem -= ways[way].is_doubled;
    base_buf_add(out, word, stem);
    base_buf_puts(out, ways[way].instead);
    return true;
}

/* "... when it is decoded": the one function of the tree that a verb of the request names. NULL: none, or several are. */
static char *verb_subject(const agent *a, const char *request, char **ret_path)
{
    char *subject = NULL;
    base_buf verb = {0};
    agent_word w = {0};
    bool is_sole = true;
    while (agent__next_word(request, w.to, &w)) {
        if (!agent__is_content_word(request + w.from, w.to - w.from)) continue;
        for (size_t way = 0; put_verb(request + w.from, w.to - w.from, way, &verb); way++) {
            char *path = verb.len ? code_path_of(a, verb.data, true) : NULL;
            if (path && !subject) {
                subject = base_xstrdup(verb.data);
                *ret_path = path;
                path = NULL;
            }
            is_sole = is_sole && !(path && strcmp(subject, verb.data) != 0);
            free(path);
        }
    }
    base_buf_free(&verb);
    if (subject && !is_sole) {
        free(subject);
        free(*ret_path);
        subject = *ret_path = NULL;
    }
    return subject;
}

/* --- a function by the error that it gives --------------------------------------------------------------- */

/* Of the string at text[from, to) the content words, and how many of them the request says. */
static void count_words(
    const char *text, size_t from, size_t to, const char *request, uint32_t *n, uint32_t *n_said)
{
    char *message = base_xstrndup(text + from, to - from);
    agent_word w = {0};
    *n = *n_said = 0;
    while (agent__next_word(message, w.to, &w)) {
        if (!agent__is_content_word(message + w.from, w.to - w.from)) continue;
        char *word = agent__copy_word(message, w);
        ++*n;
        *n_said += agent__has_word(request, word);
        free(word);
    }
    free(message);
}

/* How many words the request shares with the message of an error that is given in this text, when it says most of them. */
static uint32_t message_score(const char *text, size_t n, const char *request)
{
    static const char *const giving[] = {
        "raise", "throw", "panic", "Err", "Errorf", "New", "error", "fail", NULL};
    uint32_t best = 0;
    for (size_t at = 0; at < n;) {
        const char *newline = memchr(text + at, '\n', n - at);
        const size_t end = newline ? (size_t)(newline - text) : n;
        char *line = base_xstrndup(text + at, end - at);
        const char *from = agent__has_any_word(line, giving) ? strpbrk(line, "\"'`") : NULL;
        const char *to = from ? strrchr(from + 1, *from) : NULL;
        uint32_t n_words = 0, n_said = 0;
        if (to) count_words(line, (size_t)(from + 1 - line), (size_t)(to - line), request, &n_words, &n_said);
        if (n_said >= 2 && 3 * n_said >= 2 * n_words && n_said > best) best = n_said;
        free(line);
        at = end + 1;
    }
    return best;
}

/* "An unknown format string raises a ValueError": the one function whose message says that. NULL: none, or several do. */
static char *error_subject(const agent *a, const char *request, char **ret_path)
{
    enum { MOST = 48 };
    static const char *const errors[] = {"raise", "raises", "ValueError", "TypeError", "panics", NULL};
    code_hits hits = {0};
    const code_hit *best = NULL;
    uint32_t most = 0;
    bool is_sole = false;
    if (!agent__asks_for_error(request) && !agent__has_any_word(request, errors)) return NULL;
    code_index_search(tool_workspace_index(a->workspace), request, MOST, &hits);
    for (uint32_t i = 0; i < hits.n; i++) {
        const code_hit *h = &hits.hits[i];
        const uint32_t score =
            *h->name && agent__is_source(h->path) ? message_score(h->text, h->n, request) : 0;
        if (!score || score < most) continue;
        is_sole = score > most;
        most = score;
        best = h;
    }
    char *subject = best && is_sole ? base_xstrdup(code_last_name(best->name)) : NULL;
    if (subject) *ret_path = base_xstrdup(best->path);
    code_hits_free(&hits);
    return subject;
}

/* --- what the request does not say ----------------------------------------------------------------------- */

/* What the turn has rewritten, where the request does not name what it changes. */
static char *changed_subject(const agent *a, char **ret_path)
{
    const agent_fix *f = &a->fix;
    if (a->asked.test_of || !f->path || !f->name || !agent__is_changed(a, f->path)) return NULL;
    *ret_path = base_xstrdup(f->path);
    return base_xstrdup(f->name);
}

/* The best that retrieval finds. */
static char *likest_subject(const agent *a, const char *request, char **ret_path)
{
    char *subject = NULL;
    code_hits hits = {0};
    code_index_search(tool_workspace_index(a->workspace), request, 8, &hits);
    for (uint32_t i = 0; i < hits.n && !subject; i++) {
        const code_hit *h = &hits.hits[i];
        if (!*h->name || !agent__is_source(h->path)) continue;
        subject = base_xstrdup(code_last_name(h->name));
        *ret_path = base_xstrdup(h->path);
    }
    code_hits_free(&hits);
    return subject;
}

char *agent__find_subject(const agent *a, const char *request, char **ret_path)
{
    enum { WRITTEN = 80 /* by its very name */ };
    *ret_path = NULL;
    char *subject = changed_subject(a, ret_path);
    if (!subject) subject = ordered_subject(a, request, ret_path);
    if (!subject) subject = find_member(a, request, ret_path);
    if (!subject) subject = said_subject(a, request, ret_path);
    if (!subject) subject = named_subject(a, request, WRITTEN, ret_path);
    if (!subject) subject = error_subject(a, request, ret_path);
    if (!subject) subject = verb_subject(a, request, ret_path);
    if (!subject) subject = named_subject(a, request, AGENT_NAMED_SURE, ret_path);
    return subject ? subject : likest_subject(a, request, ret_path);
}
