/*
 * "Add f to a.js, and declare it in a.d.ts too": a small model changes the first file and says that it is done. So a file of
 * which the request says "too", or that has an order of its own ("describe it in README.md", "use it in lib.c"), has to
 * change as well.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

/* Does [from, to) of the request say one of the phrases? */
static bool says(const char *request, size_t from, size_t to, const char *const *phrases)
{
    char *part = base_xstrndup(request + from, to - from);
    const bool is_so = agent__has_any_word(part, phrases);
    free(part);
    return is_so;
}

/* Where the part of a sentence that holds `at` begins, and where its sentence ends; points in names end none. */
static void find_part(const char *request, size_t at, size_t *ret_from, size_t *ret_to)
{
    size_t from = at, to = at;
    while (from > 0 && !(strchr(".,;!?\n", request[from - 1]) && strchr(" \n", request[from]))) from--;
    while (request[to] &&
           !(strchr(".;!?\n", request[to]) && (!request[to + 1] || strchr(" \n", request[to + 1]))))
        to++;
    *ret_from = from;
    *ret_to = to;
}

/*
 * "... and describe it in README.md", "say so at the top of the ChangeLog", "add an entry to CHANGES", "update the README": an order
 * of its own stands in front of the file at byte `at`.
 */
static bool is_ordered(const char *request, size_t at)
{
    static const char *const part[] = {
        "the", "our", "of", "top", "bottom", "beginning", "start", "end", "file", NULL};
    static const char *const into[] = {"in", "into", "to", "at", NULL};
    static const char *const it[] = {"it", "them", "this", "that", "so", NULL};
    static const char *const orders[] = {"declare", "describe", "document", "mention", "list", "note",
        "export", "say", "explain", "use", "call", "apply", "register", "test", NULL};
    static const char *const notes[] = {
        "entry", "note", "line", "item", "sentence", "declaration", "paragraph", "section", "row", NULL};
    static const char *const changing[] = {"update", "extend", "adapt", NULL};
    agent_word w;
    do
        if (!agent__word_before(request, at, &w)) return false;
    while (agent__is_any_word(request, w, part) && (at = w.from));
    if (agent__is_any_word(request, w, changing)) return true;
    if (!agent__is_any_word(request, w, into)) return false;
    if (!agent__word_before(request, w.from, &w)) return false;
    if (agent__is_any_word(request, w, it) && !agent__word_before(request, w.from, &w)) return false;
    return agent__is_any_word(request, w, orders) || agent__is_any_word(request, w, notes);
}

/* "... and use it in F": the name that is added, which the file F has to say. NULL: the order in front of byte `at` is another one. */
static const char *find_used(const agent *a, const char *request, size_t at)
{
    static const char *const into[] = {"in", "into", "from", "at", NULL};
    static const char *const it[] = {"it", "this", "that", NULL};
    static const char *const orders[] = {"use", "call", "apply", "register", NULL};
    const agent_asked *x = &a->asked;
    const agent_wish *added = NULL;
    uint32_t n_added = 0;
    agent_word w;
    for (uint32_t i = 0; i < x->n_wishes; i++)
        if (x->wishes[i].kind == AGENT_WISH_STANDS && ++n_added) added = &x->wishes[i];
    const bool is_so = n_added == 1 && agent__word_before(request, at, &w) &&
                       agent__is_any_word(request, w, into) && agent__word_before(request, w.from, &w) &&
                       agent__is_any_word(request, w, it) && agent__word_before(request, w.from, &w) &&
                       agent__is_any_word(request, w, orders);
    return is_so ? code_last_name(added->name) : NULL;
}

char *agent__find_meant_file(const agent *a, const char *said)
{
    static const char *const documents[] = {
        "README", "CHANGELOG", "ChangeLog", "CHANGES", "NEWS", "HISTORY", NULL};
    static const char *const endings[] = {"", ".md", ".rst", ".txt"};
    code_index *index = tool_workspace_index(a->workspace);
    char *path = NULL;
    if (strchr(said, '.')) return code_index_path(index, said);
    if (islower((unsigned char)*said) && strcmp(said, "readme") != 0 && strcmp(said, "changelog") != 0)
        return NULL; /* "the changes", "its history" */
    for (const char *const *d = documents; *d; d++)
        for (size_t i = 0; i < sizeof endings / sizeof *endings && !path && !strcasecmp(*d, said); i++) {
            base_buf name = {0};
            base_buf_printf(&name, "%s%s", *d, endings[i]);
            path = code_index_path(index, name.data);
            base_buf_free(&name);
        }
    return path;
}

void agent__wish_files(agent *a, const char *request)
{
    static const char *const before[] = {"also", NULL};
    static const char *const behind[] = {"too", "as well", "also", NULL};
    agent_asked *x = &a->asked;
    agent_word m;
    if (!x->change || x->is_operation || x->test_alone || a->fix.wanted) return;
    for (size_t at = 0; agent__next_mention(request, at, &m); at = m.to > at ? m.to : at + 1) {
        char *said = agent__copy_word(request, m);
        char *path = agent__find_meant_file(a, said);
        size_t from, to;
        find_part(request, m.from, &from, &to);
        if (path && x->n_wishes < AGENT_MAX_WISHES &&
            (says(request, from, m.from, before) || says(request, m.to, to, behind) ||
                is_ordered(request, m.from))) {
            const char *used = find_used(a, request, m.from);
            x->wishes[x->n_wishes++] =
                (agent_wish){.name = path, .kind = AGENT_WISH_FILE, .says = used ? base_xstrdup(used) : NULL};
            path = NULL;
        }
        free(path);
        free(said);
    }
}

char *agent__why_not_used(const agent *a, const base_json *arguments, base_str text)
{
    code_index *index = tool_workspace_index(a->workspace);
    const char *name = base_json_str(arguments, "name", NULL), *path = base_json_str(arguments, "path", NULL);
    code_place *places = NULL;
    const uint32_t n = name && !path ? code_index_define(index, name, &places) : 0;
    base_buf why = {0};
    if (n == 1) path = places[0].path;
    for (uint32_t i = 0; i < a->asked.n_wishes && path && text.ptr && !why.len; i++) {
        const agent_wish *w = &a->asked.wishes[i];
        if (!w->says || strcmp(w->name, path) != 0 || agent__is_changed(a, path) ||
            code_has_identifier(text.ptr, text.len, w->says))
            continue;
        base_buf_printf(&why, "%s is to use %s, and this text does not", path, w->says);
    }
    code_places_free(places, n);
    return why.len ? base_buf_take(&why) : NULL;
}
