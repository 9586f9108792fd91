/*
 * Which definitions the operations of a request are about, and what becomes of them: "rename a to b and c to d" is two
 * renamings, and a small model that is asked for them does the first.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "base/mem.h"
#include "code/code.h"

void agent__put_member(base_buf *json, const char *name, const char *value)
{
    base_buf_printf(json, ", \"%s\": ", name);
    base_json_put_str(json, value, strlen(value));
}

void agent__begin_refactor(base_buf *json, const char *operation, const char *name)
{
    base_buf_printf(json, "{\"name\": \"refactor\", \"arguments\": {\"operation\": \"%s\"", operation);
    agent__put_member(json, "name", name);
}

/* Do the words speak of comments, strings or documents? */
static bool speaks_of_text(const char *request)
{
    static const char *const texts[] = {"doc", "docs", "documentation", "readme", "comment", "comments",
        "docstring", "docstrings", "strings", "docblock", "javadoc", NULL};
    return agent__has_any_word(request, texts);
}

static bool leaves_text(const char *request)
{
    static const char *const leaving[] = {"not", "don't", "except", "without", "leave", "keep", NULL};
    return agent__has_any_word(request, leaving);
}

bool agent__asks_for_text(const char *request)
{
    return speaks_of_text(request) && !leaves_text(request);
}

void agent__put_text_words(const char *request, base_buf *json)
{
    if (speaks_of_text(request))
        base_buf_printf(json, ", \"text\": %s", leaves_text(request) ? "false" : "true");
}

/* "Importing it from a.py has to go on working", "keep a re-export", "a.py should still export it" */
static bool keeps_old_place(const char *request)
{
    static const char *const wholly[] = {
        "reexport", "re-export", "re-exports", "re-exported", "reexports", "re-exporting", NULL};
    static const char *const bringing[] = {"import", "imports", "importing", "imported", "importable",
        "export", "exports", "exported", "accessible", "available", "reachable", "compatible",
        "compatibility", NULL};
    static const char *const lasting[] = {"on", "keep", "keeps", "still", "continue", "continues", "remain",
        "remains", "stay", "stays", "break", "backward", "backwards", "old", "compatible", "compatibility",
        NULL};
    return agent__has_any_word(request, wholly) ||
           (agent__has_any_word(request, bringing) && agent__has_any_word(request, lasting));
}

void agent__put_keep_words(const char *request, base_buf *json)
{
    if (keeps_old_place(request)) base_buf_puts(json, ", \"keep\": true");
}

char *agent__say_besides(const char *request, const char *meaning)
{
    base_buf out = {0};
    base_buf_puts(&out, meaning);
    if (agent__has_word(meaning, "move") && keeps_old_place(request))
        base_buf_puts(&out, ". Importing it from there has to go on working.");
    if (agent__has_word(meaning, "rename") && speaks_of_text(request))
        base_buf_puts(&out, leaves_text(request) ? ". Leave the comments." : ". Also in comments and docs.");
    if (agent__has_word(meaning, "rename") && agent__asks_for_everywhere(request))
        base_buf_puts(&out, " And that everywhere.");
    return base_buf_take(&out);
}

bool agent__asks_for_everywhere(const char *request)
{
    static const char *const words[] = {"everywhere", "throughout", NULL};
    return agent__has_any_word(request, words);
}

bool agent__is_defined_word(const agent *a, const char *text, agent_word w)
{
    char *name = agent__copy_word(text, w);
    const bool is = w.to - w.from >= 3 && !agent__is_module_word(text, w) &&
                    code_index_is_defined(tool_workspace_index(a->workspace), name);
    free(name);
    return is;
}

/* "f.x", where x is a parameter or a local of the function f, and "f.c" is no file. */
static bool is_inside(const agent *a, const char *text, agent_word member)
{
    char *whole = agent__copy_word(text, member), *dot = strrchr(whole, '.');
    bool is_so = dot && !code_language(whole, "", 0);
    if (is_so) {
        *dot = '\0';
        is_so = agent__stands_inside(a, whole, dot + 1);
    }
    free(whole);
    return is_so;
}

bool agent__next_listed(const agent *a, const char *text, agent_word *w)
{
    static const char *const fillers[] = {"the", "both", "function", "functions", "method", "methods",
        "class", "classes", "helper", "helpers", "macro", "macros", "type", "types", "struct", "structs",
        "trait", "traits", "alias", "aliases", "constant", "constants", "variable", "variables", "enum",
        "enums", "interface", "interfaces", "wrapper", "wrappers", "unused", "old", "deprecated", "obsolete",
        "static", "private", "public", "definition", "definitions", "of", "and", NULL};
    do
        if (!agent__next_word(text, w->to, w)) return false;
    while (agent__is_any_word(text, *w, fillers));
    agent_word member = *w; /* Range.contains, Range::contains */
    for (size_t dots; (dots = strspn(text + member.to, ".:")) && agent__is_in_word(text, member.to + dots);)
        for (member.to += dots; agent__is_in_word(text, member.to); member.to++)
            ;
    const bool is_in_function = member.to > w->to && is_inside(a, text, member);
    if (is_in_function || agent__is_defined_word(a, text, member)) *w = member;
    const char *after = text + w->to;
    return is_in_function ||
           (!(*after == '.' && isalnum((unsigned char)after[1])) && agent__is_defined_word(a, text, *w));
}

char *agent__read_destination(const char *behind, size_t at, bool is_file)
{
    static const char *const goes_on[] = {
        "in", "everywhere", "across", "and", "throughout", "please", "also", "as", "since", "because", NULL};
    agent_word w, next;
    static const char *const kinds[] = {"a", "the", "new", "file", "module", "its", "own", NULL};
    at += strspn(behind + at, " `\"'");
    while (is_file && agent__next_word(behind, at, &w) && w.from == at &&
           agent__is_any_word(behind, w, kinds) && behind[w.to] == ' ') /* "to a new file paths.py" */
        at = w.to + strspn(behind + w.to, " `\"'");
    if (is_file) {
        const bool is_one = agent__next_mention(behind, at, &w) && w.from == at && w.to > w.from &&
                            memchr(behind + w.from, '.', w.to - w.from);
        return is_one ? agent__copy_word(behind, w) : NULL;
    }
    if (!agent__next_word(behind, at, &w) || w.from != at || isdigit((unsigned char)behind[at])) return NULL;
    size_t end = w.to + strspn(behind + w.to, "`\"'()");
    const bool is_path = strchr("./:-", behind[end]) && behind[end] && agent__is_in_word(behind, end + 1);
    const bool is_marked = w.from > 0 && agent__is_mark(behind[w.from - 1]);
    const bool ends = !behind[end] || strchr(".,;:!?\n", behind[end]) ||
                      (agent__next_word(behind, end, &next) && agent__is_any_word(behind, next, goes_on));
    return !is_path && (is_marked || ends || agent__looks_like_name(behind, w)) ? agent__copy_word(behind, w)
                                                                                : NULL;
}

/* The operation that the word orders; NULL: none. */
static const char *ordered(const char *request, agent_word w)
{
    static const char *const renaming[] = {"rename", NULL};
    static const char *const moving[] = {"move", NULL};
    static const char *const deleting[] = {"delete", "remove", "drop", NULL};
    const bool is_name =
        request[w.to] == '(' ||
        (w.from > 0 && (strchr(".:#", request[w.from - 1]) || agent__is_mark(request[w.from - 1])));
    return is_name                                    ? NULL
           : agent__is_any_word(request, w, renaming) ? "rename"
           : agent__is_any_word(request, w, deleting) ? "delete"
           : agent__is_any_word(request, w, moving)   ? "move"
                                                      : NULL;
}

/* Behind "in api.py", "of Cart": where the definition in front stands. *ret_is_file: it is a file. */
static size_t behind_place(const char *request, size_t at, bool *ret_is_file)
{
    static const char *const in[] = {"in", "of", "from", NULL};
    agent_word w, place;
    *ret_is_file = false;
    if (!agent__next_word(request, at, &w) || !agent__is_any_word(request, w, in) ||
        strspn(request + at, " `\"'()") != w.from - at || !agent__next_mention(request, w.to, &place) ||
        place.to == place.from)
        return at;
    *ret_is_file = memchr(request + place.from, '.', place.to - place.from) != NULL;
    return place.to;
}

/* "from sort.rs": the file of the tree that behind_place passed; the caller frees; NULL: the tree has not just one. */
static char *read_path(const agent *a, const char *request, size_t at)
{
    agent_word w;
    char *said = agent__next_word(request, at, &w) ? agent__read_destination(request, w.to, true) : NULL;
    char *path = said ? code_index_path(tool_workspace_index(a->workspace), said) : NULL;
    free(said);
    return path;
}

/* Behind "to util.py", where the file is to which what ends at byte `at` goes; `at` itself: none is said there. */
static size_t read_new_file(const char *request, size_t at, char **ret)
{
    static const char *const to[] = {"to", "into", "in", NULL};
    agent_word w, file;
    if (!agent__next_word(request, at, &w) || strspn(request + at, " `\"'()") != w.from - at ||
        !agent__is_any_word(request, w, to))
        return at;
    *ret = agent__read_destination(request, w.to, true);
    return *ret && agent__next_mention(request, w.to, &file) ? file.to : at;
}

/* "Move f and g to a.py": what has no file of its own goes where the next one goes. */
static void share_files(agent_listed *all, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) {
        const agent_listed *next = i + 1 < n ? &all[i + 1] : NULL;
        if (strcmp(all[i].operation, "move") != 0 || !next || strcmp(next->operation, "move") != 0) continue;
        if (!all[i].to && next->to) all[i].to = base_xstrdup(next->to);
        if (!all[i].path && next->path) all[i].path = base_xstrdup(next->path);
    }
}

/* Behind "to total", where the new name of what ends at byte `at` is; 0: none is said there. */
static size_t read_new_name(const char *request, size_t at, char **ret)
{
    static const char *const to[] = {"to", "into", "as", NULL};
    agent_word w;
    if (!agent__next_word(request, at, &w) || !agent__is_any_word(request, w, to)) return 0;
    *ret = agent__read_destination(request, w.to, false);
    agent_word name;
    return *ret && agent__next_word(request, w.to, &name) ? name.to + strspn(request + name.to, "`\"'()") : 0;
}

/* Behind "call them" where it orders new names for several; 0: nothing does. *ret_from: where the phrase begins. */
static size_t behind_call_them(const char *request, size_t *ret_from)
{
    static const char *const phrases[] = {"call them", "name them", "rename them to", "should be called",
        "should be named", "should be renamed to", NULL};
    for (const char *const *phrase = phrases; *phrase; phrase++) {
        const size_t to = agent__find_phrase(request, 0, *phrase);
        *ret_from = to ? to - strlen(*phrase) : 0;
        if (to) return to;
    }
    return 0;
}

/* "a, b and c" from the word on: the next of them behind it; false: the list ends there. */
static bool next_in_row(const char *request, agent_word *w)
{
    size_t at = w->to + strspn(request + w->to, "`\"'()");
    const bool has_comma = request[at] == ',';
    at += has_comma;
    at += strspn(request + at, " ");
    if (!strncasecmp(request + at, "and ", 4))
        at += 4;
    else if (!has_comma)
        return false;
    return agent__next_word(request, at, w);
}

/* Of the rows of definitions in front of byte `end` the first one of n: into ret. A word like "read" may be one too. */
static bool read_row(const agent *a, const char *request, size_t end, uint32_t n, agent_listed *ret)
{
    agent_word first = {0};
    while (agent__next_word(request, first.to, &first) && first.to <= end) {
        agent_word w = first;
        uint32_t k = 0;
        do
            if (!agent__is_defined_word(a, request, w)) break;
        while (++k < n && next_in_row(request, &w) && w.to <= end);
        if (k < n) continue;
        w = first;
        for (k = 0; k < n; k++, next_in_row(request, &w))
            ret[k].name = agent__with_its_type(a, request, agent__copy_word(request, w));
        return true;
    }
    return false;
}

/* "a and b are hard to read. Call them c and d.": each gets the name at its place in the list behind. How many; 0: none. */
static uint32_t read_pairs(const agent *a, const char *request, agent_listed *ret, uint32_t most)
{
    static const char *const behind[] = {"respectively", "please", NULL};
    size_t from, at = behind_call_them(request, &from);
    agent_word w;
    uint32_t n = 0;
    bool is_good = at && agent__next_word(request, at, &w);
    do
        if (is_good && n < most)
            ret[n++] = (agent_listed){.operation = "rename", .to = agent__copy_word(request, w)};
    while (is_good && next_in_row(request, &w));
    while (is_good && agent__next_word(request, w.to, &w)) /* nothing else is asked for */
        is_good = agent__is_any_word(request, w, behind);
    if (is_good && n > 1 && read_row(a, request, from, n, ret)) return n;
    for (uint32_t i = 0; i < n; i++) agent__listed_free(&ret[i]);
    return 0;
}

/* What the verbs order, in order; *ret_n_known: of how many the request says to what. */
static uint32_t read_orders(
    const agent *a, const char *request, agent_listed *ret, uint32_t most, uint32_t *ret_n_known)
{
    const char *operation = NULL;
    agent_word w = {0};
    uint32_t n = 0;
    *ret_n_known = 0;
    while (n < most && agent__next_word(request, w.to, &w)) {
        const char *next = ordered(request, w);
        agent_word name = {w.from, w.from};
        if (next) operation = next;
        if (next || !operation) continue;
        const bool is_listed = agent__next_listed(a, request, &name);
        char *to = NULL, *path = NULL;
        bool is_file = false;
        const bool is_rename = !strcmp(operation, "rename"), is_move = !strcmp(operation, "move");
        const size_t placed = is_listed ? behind_place(request, name.to, &is_file) : 0;
        size_t end = is_listed && is_rename ? read_new_name(request, placed, &to) : placed;
        if (!is_rename && placed > name.to && !is_file) end = 0; /* "drop x of f": a parameter */
        if (is_move && is_file) path = read_path(a, request, name.to);
        if (is_move && end) end = read_new_file(request, placed, &to);
        if (!end) { /* the list ended */
            operation = NULL;
            continue;
        }
        char *said = agent__copy_word(request, name);
        ret[n++] = (agent_listed){operation, agent__with_its_type(a, request, said), to, path, false};
        *ret_n_known += is_rename || to;
        w.to = behind_place(request, end, &is_file);
    }
    share_files(ret, n);
    return n;
}

uint32_t agent__read_several(const agent *a, const char *request, agent_listed *ret, uint32_t most)
{
    uint32_t n = read_pairs(a, request, ret, most), n_known;
    if (n) return n;
    n = read_orders(a, request, ret, most, &n_known);
    for (; n && (n < 2 || !n_known); n--) agent__listed_free(&ret[n - 1]);
    return n;
}

/* --- two clauses ------------------------------------------------------------------------------------------ */

/* The operations of one clause, by its verbs or by its wording; 0: it has none, or does not say to what. */
static uint32_t read_clause(const agent *a, const char *clause, agent_listed *ret, uint32_t most)
{
    agent_operation_words words;
    uint32_t n_known, n = read_orders(a, clause, ret, most, &n_known), n_whole = 0;
    for (uint32_t i = 0; i < n; i++) n_whole += ret[i].to || !strcmp(ret[i].operation, "delete");
    if (n && n == n_whole) return n;
    for (uint32_t i = 0; i < n; i++) agent__listed_free(&ret[i]);
    if (!most || !agent__read_wording(a, clause, &words)) return 0;
    ret[0] = (agent_listed){.operation = words.operation, .name = words.name, .to = words.to};
    return 1;
}

uint32_t agent__read_clauses(const agent *a, const char *request, agent_listed *ret, uint32_t most)
{
    static const char *const joints[] = {", and ", "; ", ". ", " and ", ", then ", " then ", NULL};
    for (const char *const *joint = joints; *joint; joint++)
        for (const char *p = request; (p = strstr(p, *joint)); p++) {
            char *first = base_xstrndup(request, (size_t)(p - request));
            const uint32_t n = read_clause(a, first, ret, most);
            const uint32_t n_second = n ? read_clause(a, p + strlen(*joint), ret + n, most - n) : 0;
            free(first);
            if (n_second) return n + n_second;
            for (uint32_t i = 0; i < n; i++) agent__listed_free(&ret[i]);
        }
    return 0;
}
