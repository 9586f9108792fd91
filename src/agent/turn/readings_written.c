/* Lists of parameters as a request writes them: "abAppend(ab, len, s)", "wday, name, s" (contract: readings_parts.h). */
#include <string.h>

#include "agent/turn/readings_parts.h"
#include "agent/words/request_words.h"
#include "code/code.h"

enum { MOST_PARTS = 16, NOWHERE = -1 };

/* What stands between the commas of a list, as bytes of the request. */
typedef struct written {
    agent_word parts[MOST_PARTS];
    int n;
} written;

static void end_part(written *l, size_t from, size_t to)
{
    if (to > from && l->n < MOST_PARTS) l->parts[l->n++] = (agent_word){from, to};
}

/* Behind a bracket that stands at byte `at`. false: no other one closes it. */
static bool read_brackets(const char *s, size_t at, written *ret)
{
    size_t from = at + 1, depth = 0;
    *ret = (written){.n = 0};
    for (size_t i = from; s[i]; i++) {
        if (!depth && s[i] == ')') {
            end_part(ret, from, i);
            return true;
        }
        if (!depth && s[i] == ',') {
            end_part(ret, from, i);
            from = i + 1;
        }
        if (strchr("([{", s[i])) depth++;
        if (depth && strchr(")]}", s[i])) depth--;
    }
    return false;
}

/* Words with nothing but a comma, or "and", between them, from this one on. */
static void read_run(const char *s, agent_word first, written *ret)
{
    static const char *const and[] = {"and", "then", NULL};
    agent_word next;
    *ret = (written){.parts = {first}, .n = 1};
    while (ret->n < MOST_PARTS && agent__next_word(s, ret->parts[ret->n - 1].to, &next)) {
        const size_t to = ret->parts[ret->n - 1].to;
        const bool is_comma = s[to] == ',' && next.from == to + 2;
        if (!is_comma && next.from != to + 1) return;
        if (agent__is_any_word(s, next, and) && !agent__next_word(s, next.to, &next)) return;
        if (!is_comma && next.from == to + 1) return;
        ret->parts[ret->n++] = next;
    }
}

static int place_of(const char *s, const written *l, const char *name)
{
    const char *const only[] = {name, NULL};
    for (int i = 0; i < l->n; i++)
        for (agent_word w = {0, l->parts[i].from}; agent__next_word(s, w.to, &w) && w.from < l->parts[i].to;)
            if (agent__is_any_word(s, w, only)) return i;
    return NOWHERE;
}

/* How many of the function's parameters, but this one, does the list have? */
static size_t count_others(const char *s, const written *l, const agent_function *g, const char *but)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += (!but || strcmp(g->parameters[i], but) != 0) && place_of(s, l, g->parameters[i]) != NOWHERE;
    return n;
}

static bool is_order(const char *s, const written *l, const read_slots *x)
{
    const int first = place_of(s, l, x->parameter), second = place_of(s, l, x->other);
    return first != NOWHERE && second != NOWHERE && first < second;
}

/* What a reading of that kind makes of a function's parameters. */
static const struct effect {
    bool is_any, adds, loses;
} effects[AGENT_N_READINGS] = {
    [AGENT_READ_REORDER] = {true, false, false},
    [AGENT_READ_INSERT] = {true, true, false},
    [AGENT_READ_DROP] = {true, false, true},
    [AGENT_READ_RENAME_PARAMETER] = {true, true, true},
};

/* Is the list what the function has then? */
static bool is_so(const char *s, const written *l, agent_reading_kind kind, const read_slots *x)
{
    const struct effect e = effects[kind];
    const char *lost = e.loses ? x->parameter : NULL;
    const size_t n_stay = x->function->n - e.loses;
    return (size_t)l->n == n_stay + e.adds && count_others(s, l, x->function, lost) == n_stay &&
           (!lost || place_of(s, l, lost) == NOWHERE) &&
           (!e.adds || place_of(s, l, x->fresh->text) != NOWHERE) &&
           (kind != AGENT_READ_REORDER || is_order(s, l, x));
}

bool agent__is_written_whole(const char *request, agent_reading_kind kind, const read_slots *x)
{
    const char *name = code_last_name(x->about->text);
    written l;
    if (!effects[kind].is_any) return false;
    for (size_t at = 0; (at = agent__find_phrase(request, at, name));)
        if (request[at] == '(' && read_brackets(request, at, &l) && is_so(request, &l, kind, x)) return true;
    return false;
}

bool agent__is_written(const char *request, agent_reading_kind kind, const read_slots *x)
{
    written l;
    if (agent__is_written_whole(request, kind, x)) return true;
    for (agent_word w = {0}; kind == AGENT_READ_REORDER && agent__next_word(request, w.to, &w);) {
        read_run(request, w, &l);
        if (l.n > 1 && is_order(request, &l, x)) return true;
    }
    return false;
}
