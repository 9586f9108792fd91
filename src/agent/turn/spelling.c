/*
 * Names that a request misspells: "delete pars_args" where the tree has parse_args. Without it such a name is a new one, and what
 * was to go is added. Corrected where one definition is nearest and nothing says that the name is to come.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "agent/words/operation_words.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

enum { LEAST_LETTERS = 5, LETTERS_FOR_TWO = 10, MOST_LETTERS = 63, MOST_NAMES = 50000, NOT_NEAR = 3 };

/* --- how near --------------------------------------------------------------------------------------------- */

/* In small letters and without _: as it sounds. 0: too long. */
static size_t spell(const char *name, char out[MOST_LETTERS + 1])
{
    size_t n = 0;
    for (; *name; name++) {
        if (*name == '_') continue;
        if (n == MOST_LETTERS) return 0;
        out[n++] = (char)tolower((unsigned char)*name);
    }
    return n;
}

static unsigned least(unsigned x, unsigned y)
{
    return x < y ? x : y;
}

/* Letters that are missing, too many, others, or exchanged with their neighbour (optimal string alignment). */
static unsigned distance(const char *x, size_t n, const char *y, size_t m)
{
    unsigned rows[3][MOST_LETTERS + 2];
    unsigned *before = rows[0], *last = rows[1], *now = rows[2];
    if (n > m + NOT_NEAR || m > n + NOT_NEAR) return NOT_NEAR;
    for (size_t k = 0; k <= m; k++) last[k] = (unsigned)k;
    for (size_t i = 1; i <= n; i++) {
        now[0] = (unsigned)i;
        for (size_t k = 1; k <= m; k++) {
            now[k] = least(least(last[k], now[k - 1]) + 1, last[k - 1] + (x[i - 1] != y[k - 1]));
            if (i > 1 && k > 1 && x[i - 1] == y[k - 2] && x[i - 2] == y[k - 1])
                now[k] = least(now[k], before[k - 2] + 1);
        }
        unsigned *const free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return least(last[m], NOT_NEAR);
}

/* "KeyRefs": more than one of KeyRef. */
static bool is_plural(const char *word, const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(word, name, n) && !strcmp(word + n, "s");
}

static bool has_same_digits(const char *x, const char *y)
{
    for (;; x++, y++) {
        while (*x && !isdigit((unsigned char)*x)) x++;
        while (*y && !isdigit((unsigned char)*y)) y++;
        if (*x != *y) return false;
        if (!*x) return true;
    }
}

/* The one name of the tree's definitions that is nearest; the caller frees; NULL: none is near, or several are. */
static char *find_nearest(char *const *names, const char *word)
{
    char said[MOST_LETTERS + 1], other[MOST_LETTERS + 1];
    const size_t n = spell(word, said);
    unsigned best = n < LETTERS_FOR_TWO ? 2 : NOT_NEAR; /* anything nearer than that */
    const char *nearest = NULL;
    if (n < LEAST_LETTERS) return NULL;
    for (; *names; names++) {
        const size_t m = strchr(*names, '.') ? 0 : spell(*names, other);
        const unsigned d = m ? distance(said, n, other, m) : NOT_NEAR;
        if (d > best || (d == best && !nearest) || !has_same_digits(word, *names) || is_plural(word, *names))
            continue;
        if (d < best || !strcmp(nearest ? nearest : "", *names))
            nearest = *names;
        else
            nearest = ""; /* two are as near */
        best = d;
    }
    return nearest && *nearest ? base_xstrdup(nearest) : NULL;
}

/* --- what is to come -------------------------------------------------------------------------------------- */

/* "To X", "call it X", "add a helper X", "X instead of": a name that the request gives. */
static bool is_given(const char *s, agent_word w)
{
    enum { NEAR = 5 };
    static const char *const giving[] = {"to", "into", "as", "called", "named", "call", "it", "them", "be",
        "become", "becomes", "name", "than", "prefer", "accept", "accepts", "take", "takes", "get", "gets",
        NULL};
    static const char *const making[] = {"add", "write", "create", "implement", "introduce", "define", "new",
        "a", "an", "another", "need", "lack", "lacks", "provide", NULL};
    agent_word before;
    const size_t behind = w.to + strspn(s + w.to, "`()\"'");
    const char next = s[behind + strspn(s + behind, " ")];
    if (next == '=' || s[behind] == ':') return true; /* "accept sort_keys=False" */
    if (agent__find_phrase(s, behind, "instead of") == behind + strlen(" instead of")) return true;
    if (w.from > 2 && strchr("-=", s[w.from - 3]) && s[w.from - 2] == '>') return true;
    for (size_t i = 0, at = w.from; i < NEAR && agent__word_before(s, at, &before); i++, at = before.from)
        if (agent__is_any_word(s, before, making) || (!i && agent__is_any_word(s, before, giving)))
            return true;
    return false;
}

static bool speaks_of_names(const char *s)
{
    static const char *const naming[] = {"rename", "renamed", "name", "names", "named", "naming", "call",
        "called", "typo", "misspelled", "misspelt", "spelling", "instead", "better", "rather", "prefer",
        "should", NULL};
    return agent__has_any_word(s, naming) || strstr(s, "->") || strstr(s, "=>");
}

/* Written as a name of code is, and nowhere in the tree. */
static bool is_unknown(const code_index *index, const char *s, agent_word w)
{
    const bool is_marked = w.from && s[w.from - 1] == '`' && s[w.to] == '`';
    if (!agent__looks_like_name(s, w) && !is_marked && s[w.to] != '(') return false;
    char *word = agent__copy_word(s, w);
    const bool is_so = !isdigit((unsigned char)*word) && !code_index_mentions(index, word);
    free(word);
    return is_so;
}

static bool is_path(const char *s, agent_word m)
{
    return memchr(s + m.from, '/', m.to - m.from) || memchr(s + m.from, '-', m.to - m.from) ||
           (m.from && strchr("-/.", s[m.from - 1]));
}

/* --- the request ------------------------------------------------------------------------------------------ */

enum { MOST_UNKNOWN = 8 };

static size_t find_unknown(const code_index *index, const char *s, agent_word ret[MOST_UNKNOWN])
{
    agent_word m, w;
    size_t n = 0;
    for (size_t at = 0; agent__next_mention(s, at, &m); at = m.to > at ? m.to : at + 1) {
        if (m.from == m.to || is_path(s, m)) continue;
        for (size_t k = m.from; k < m.to && n < MOST_UNKNOWN && agent__next_word(s, k, &w) && w.from < m.to;
             k = w.to)
            if (is_unknown(index, s, w)) ret[n++] = w;
    }
    return n;
}

char *agent__mend_spelling(agent *a, const char *request)
{
    const code_index *index = tool_workspace_index(a->workspace);
    agent_word unknown[MOST_UNKNOWN];
    agent_addition_words addition;
    const size_t n = *request == '/' ? 0 : find_unknown(index, request, unknown);
    const bool is_addition = agent_read_addition_words(request, &addition);
    agent_addition_words_free(&addition);
    if (!n || is_addition || (n < 2 && speaks_of_names(request))) return NULL;
    char **names = code_index_names(index, MOST_NAMES);
    base_buf mended = {0};
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        char *word = agent__copy_word(request, unknown[i]);
        char *name = is_given(request, unknown[i]) ? NULL : find_nearest(names, word);
        if (name && !agent__has_word(request, name)) {
            agent__notice(a, "the tree has no %s: read as %s, the nearest name that it has", word, name);
            base_buf_add(&mended, request + done, unknown[i].from - done);
            base_buf_puts(&mended, name);
            done = unknown[i].to;
        }
        free(name);
        free(word);
    }
    if (done) base_buf_puts(&mended, request + done);
    code_index_paths_free(names);
    return done ? base_buf_take(&mended) : NULL;
}
