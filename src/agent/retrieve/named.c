/*
 * Which definitions of the tree a request in plain words is about: those it writes as names, and those it
 * describes with the very words that a name is made of ("clearing the screen" for clear_screen, "the edit distance"
 * for editDistance).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/retrieve/retrieve.h"
#include "base/mem.h"

enum { MAX_WORDS = 96, MAX_NAMES = 60000, LEAST_WORD = 3, MAX_PLAIN_PLACES = 3 };

/* Words that requests are made of: alone they name nothing. */
static const char *const common[] = {"add", "all", "allow", "and", "any", "are", "argument", "call", "called",
    "change", "check", "class", "code", "create", "default", "delete", "does", "each", "empty", "end",
    "error", "export", "field", "file", "find", "first", "fix", "for", "from", "function", "get", "give",
    "has", "have", "help", "into", "is", "its", "last", "let", "library", "line", "list", "make", "method",
    "move", "name", "new", "none", "not", "number", "object", "one", "open", "option", "parameter", "pass",
    "print", "put", "read", "reader", "remove", "rename", "replace", "reset", "return", "run", "set",
    "should", "size", "start", "stop", "string", "test", "tests", "text", "that", "the", "type", "update",
    "use", "used", "user", "value", "values", "when", "with", "word", "write"};

static bool is_common(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strlen(common[i]) == n && !strncasecmp(common[i], word, n)) return true;
    return false;
}

/* Without the ending that a sentence gives it: "clearing", "computes". */
static size_t stem(const char *word, size_t n)
{
    static const char *const endings[] = {"ments", "ment", "ings", "ing", "ers", "ed", "es", "s", "e"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t m = strlen(endings[i]);
        if (n >= m + LEAST_WORD && !strncasecmp(word + n - m, endings[i], m)) return n - m;
    }
    return n;
}

static bool is_same_word(const char *a, size_t n, const char *b, size_t m)
{
    n = stem(a, n);
    m = stem(b, m);
    return n == m && !strncasecmp(a, b, n);
}

/* How many words the name is made of when the request has them all; 0: it lacks one, or they say too little. */
static uint32_t described_by(const char *name, const base_str *words, uint32_t n_words)
{
    base_buf parts = {0};
    uint32_t n = 0, n_telling = 0;
    bool has_all = true;
    code_split_identifier(name, strlen(name), &parts);
    for (const char *p = parts.data; p && *p && has_all;) {
        size_t len = strcspn(p, " ");
        has_all = false;
        for (uint32_t i = 0; i < n_words && !has_all; i++)
            has_all = is_same_word(p, len, words[i].ptr, words[i].len);
        n++;
        n_telling += len >= LEAST_WORD && !is_common(p, len);
        p += len + strspn(p + len, " ");
    }
    base_buf_free(&parts);
    return has_all && n >= 2 && n_telling ? n + n_telling : 0;
}

static bool is_code_like(const char *request, size_t from, size_t to)
{
    bool marked = request[to] == '(' || (from && request[from - 1] == '`');
    for (size_t i = from; i < to; i++) {
        marked |= request[i] == '_' || (isdigit((unsigned char)request[i]) && i > from);
        marked |= i > from && isupper((unsigned char)request[i]) && islower((unsigned char)request[i - 1]);
    }
    return marked;
}

/* A name in the middle of a sentence begins with a capital; its first word does anyway. */
static bool is_capital(const char *request, size_t from)
{
    if (!isupper((unsigned char)request[from])) return false;
    while (from && request[from - 1] == ' ') from--;
    return from && !strchr(".!?:\n", request[from - 1]);
}

/* "for connect", "remove oom": a word in whose place a name is expected. */
static bool is_object(const char *request, size_t from)
{
    static const char *const before[] = {"for", "of", "in", "to", "function", "method", "helper", "rename",
        "remove", "delete", "drop", "move", "change", "that", "let", "make"};
    while (from && request[from - 1] == ' ') from--;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t n = strlen(before[i]);
        if (from >= n && !strncasecmp(request + from - n, before[i], n) &&
            (from == n || !isalnum((unsigned char)request[from - n - 1])))
            return true;
    }
    return !from;
}

/* Places outside of tests that define it; 0: none, or nothing that could be meant. */
static uint32_t count_places(const agent *a, const char *name)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places), kept = 0;
    for (uint32_t i = 0; i < n; i++)
        kept += !places[i].is_declaration && !code_path_is_test(places[i].path) &&
                strcmp(places[i].what, "field") != 0 && strcmp(places[i].what, "variable") != 0;
    code_places_free(places, n);
    return kept;
}

static void add(agent_named *ret, const char *name, size_t n, uint32_t score)
{
    for (uint32_t i = 0; i < ret->n; i++)
        if (strlen(ret->items[i].name) == n && !memcmp(ret->items[i].name, name, n)) return;
    uint32_t at = ret->n;
    while (at && ret->items[at - 1].score < score) at--;
    if (at >= AGENT_MAX_NAMED) return;
    if (ret->n == AGENT_MAX_NAMED) free(ret->items[--ret->n].name);
    memmove(ret->items + at + 1, ret->items + at, (ret->n - at) * sizeof *ret->items);
    ret->items[at].name = base_xstrndup(name, n);
    ret->items[at].score = score;
    ret->n++;
}

void agent__find_named(const agent *a, const char *request, agent_named *ret)
{
    enum { WRITTEN = 100, CAPITAL = 80, DESCRIBED = 10, PLAIN_OBJECT = AGENT_NAMED_SURE, PLAIN = 1 };
    code_index *x = tool_workspace_index(a->workspace);
    size_t pos = 0, from, to, n = strlen(request);
    base_str words[MAX_WORDS];
    uint32_t n_words = 0;
    *ret = (agent_named){0};
    while (code_next_identifier(request, n, &pos, &from, &to)) {
        const bool is_path = (from && strchr("/.", request[from - 1])) ||
                             (request[to] == '.' && isalpha((unsigned char)request[to + 1])) ||
                             request[to] == '/';
        if (is_path && request[to] != '(') continue;
        if (n_words < MAX_WORDS) words[n_words++] = (base_str){request + from, to - from};
        if (to - from < LEAST_WORD) continue;
        char *word = base_xstrndup(request + from, to - from);
        const uint32_t n_places = code_index_is_defined(x, word) ? count_places(a, word) : 0;
        if (n_places && is_code_like(request, from, to))
            add(ret, word, to - from, WRITTEN);
        else if (n_places && is_capital(request, from))
            add(ret, word, to - from, CAPITAL);
        else if (n_places && n_places <= MAX_PLAIN_PLACES && !is_common(word, to - from))
            add(ret, word, to - from, is_object(request, from) ? PLAIN_OBJECT : PLAIN);
        free(word);
    }
    char **names = code_index_names(x, MAX_NAMES);
    for (size_t i = 0; names && names[i]; i++) {
        const uint32_t score = strchr(names[i], '.') ? 0 : described_by(names[i], words, n_words);
        if (score && count_places(a, names[i])) add(ret, names[i], strlen(names[i]), DESCRIBED + score);
    }
    code_index_paths_free(names);
}

void agent_named_free(agent_named *n)
{
    for (uint32_t i = 0; i < n->n; i++) free(n->items[i].name);
    *n = (agent_named){0};
}
