/* What a request says of the order of parameters (contract: operation_words.h). */
#include "agent/words/operation_words.h"

#include <string.h>
#include <strings.h>

#include "agent/words/request_words.h"
#include "base/mem.h"

/* Where a parameter shall stand: a word, and the place (-1: the last; 0: in front of, 1: behind the parameter that follows). */
static const struct place {
    const char *words;
    enum { TO_PLACE, IN_FRONT_OF, BEHIND } kind;
    int at;
} places[] = {
    {"first", TO_PLACE, 1},
    {"second", TO_PLACE, 2},
    {"third", TO_PLACE, 3},
    {"fourth", TO_PLACE, 4},
    {"fifth", TO_PLACE, 5},
    {"last", TO_PLACE, -1},
    {"to the end", TO_PLACE, -1},
    {"at the end", TO_PLACE, -1},
    {"to the back", TO_PLACE, -1},
    {"to the front", TO_PLACE, 1},
    {"to the beginning", TO_PLACE, 1},
    {"to the start", TO_PLACE, 1},
    {"in front of", IN_FRONT_OF, 0},
    {"ahead of", IN_FRONT_OF, 0},
    {"before", IN_FRONT_OF, 0},
    {"after", BEHIND, 0},
    {"behind", BEHIND, 0},
};

static size_t find_parameter(const char *s, agent_word w, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == w.to - w.from && !memcmp(names[i], s + w.from, w.to - w.from)) return i;
    return n;
}

/* Does something go to another place, and nothing else come of it: no parameter that is added, taken away or called otherwise? */
static bool asks_for_place(const char *request)
{
    static const char *const moving[] = {"make", "move", "put", "come", "comes", "go", "goes", "be", "should",
        "take", "takes", "swap", "flip", "exchange", "reorder", "order", "accept", "pass", "want", "shift",
        NULL};
    static const char *const others[] = {"add", "rename", "remove", "drop", "delete", "rid", "new", "call",
        "called", "return", "returns", "return", "test", "if", "when", "unless", "check", "print", "raise",
        "throw", NULL};
    return agent__has_any_word(request, moving) && !agent__has_any_word(request, others);
}

/* "swap a and b", "swap the arguments a and b" */
static bool read_swap(const char *request, const char *const *names, size_t n, size_t *a, size_t *b)
{
    static const char *const verbs[] = {"swap", "exchange", "flip", NULL};
    agent_word w = {0};
    *a = *b = n;
    while (agent__next_word(request, w.to, &w) && !agent__is_any_word(request, w, verbs)) {
    }
    while (*b == n && agent__next_word(request, w.to, &w)) {
        const size_t k = find_parameter(request, w, names, n);
        if (k < n && *a == n)
            *a = k;
        else if (k < n && k != *a)
            *b = k;
    }
    return *b < n;
}

/* The parameter in front of bytes [at, end) that stands there last, else the first behind them; empty: none but `other`. */
static agent_word parameter_near(
    const char *request, size_t at, size_t end, size_t other, const char *const *names, size_t n)
{
    agent_word w = {0}, before = {0}, after = {0};
    while (agent__next_word(request, w.to, &w)) {
        const size_t k = find_parameter(request, w, names, n);
        if (k == n || k == other) continue;
        if (w.from < at) before = w;
        if (w.from >= end && !after.to) after = w;
    }
    return before.to ? before : after;
}

/* The word beside one of a list, "a, b and c": false: none of the list stands there. */
static bool next_of_list(const char *request, bool is_before, agent_word *w)
{
    static const char *const and[] = {"and", NULL};
    bool is_parted = false;
    for (bool is_word = false; !is_word;) {
        const agent_word last = *w;
        if (!(is_before ? agent__word_before(request, w->from, w) : agent__next_word(request, w->to, w)))
            return false;
        const size_t gap = is_before ? w->to : last.to, end = is_before ? last.from : w->from;
        if (strspn(request + gap, " ,`'\"*&") < end - gap) return false; /* "f(a, b), b" */
        is_word = !agent__is_any_word(request, *w, and);
        is_parted |= !is_word || memchr(request + gap, ',', end - gap);
    }
    return is_parted;
}

/* What the request says of a place: "the first", "behind text". */
typedef struct said {
    const struct place *place; /* NULL: nothing */
    size_t from, to;           /* its words */
    size_t other;              /* the parameter that it is in front of or behind */
} said;

/* "f takes a, b. B first": a list of another sentence is not what moves. */
static bool is_one_sentence(const char *request, size_t from, size_t to)
{
    for (; from < to; from++)
        if (strchr(".;!?\n", request[from]) && request[from + 1] == ' ') return false;
    return true;
}

/* That word's parameter, with the others of a list that it ends (in front of the place) or begins, as the request orders them; how many. */
static size_t read_list(const char *request, agent_word w, const said *where, size_t other,
    const char *const *names, size_t n, size_t *ret)
{
    const bool is_before = w.from < where->from;
    const bool is_list =
        is_before ? is_one_sentence(request, w.to, where->from) : is_one_sentence(request, where->to, w.from);
    size_t n_list = 0;
    do {
        const size_t k = find_parameter(request, w, names, n);
        bool is_twice = k == other;
        for (size_t i = 0; i < n_list; i++) is_twice |= ret[i] == k;
        if (k == n || is_twice) break;
        if (is_before) memmove(ret + 1, ret, n_list * sizeof *ret);
        ret[is_before ? 0 : n_list] = k;
        n_list++;
    } while (is_list && next_of_list(request, is_before, &w));
    return n_list;
}

static said read_place(const char *request, bool is_relative, const char *const *names, size_t n)
{
    enum { NEAR = 3 }; /* "after the text" */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const size_t end = agent__find_phrase(request, 0, places[i].words);
        if (!end || (places[i].kind != TO_PLACE) != is_relative) continue;
        said s = {&places[i], end - strlen(places[i].words), end, n};
        agent_word w = {0};
        for (size_t at = end, k = 0;
             is_relative && k < NEAR && s.other == n && agent__next_word(request, at, &w); at = w.to, k++)
            s.other = find_parameter(request, w, names, n);
        if (!is_relative || s.other < n) return s;
    }
    return (said){.other = n};
}

bool agent_read_order_words(const char *request, const char *const *names, size_t n, agent_order_words *ret)
{
    size_t a, b;
    *ret = (agent_order_words){.n = n, .moved = n};
    if (n < 2 || n > AGENT_MAX_PARAMETERS || !asks_for_place(request)) return false;
    for (size_t i = 0; i < n; i++) ret->order[i] = i;
    if (read_swap(request, names, n, &a, &b)) {
        ret->order[a] = b;
        ret->order[b] = a;
        return true;
    }
    const said relative = read_place(request, true, names, n),
               absolute = read_place(request, false, names, n);
    const said *where = relative.place ? &relative : &absolute;
    if (!where->place) return false;
    const agent_word w = parameter_near(request, where->from, where->to, relative.other, names, n);
    size_t moved[AGENT_MAX_PARAMETERS];
    const size_t n_moved = w.to ? read_list(request, w, where, relative.other, names, n, moved) : 0;
    if (!n_moved) return false;
    /* Counted without those that move. "The first argument after text" is the first of those behind it. */
    size_t to = relative.place ? relative.other : 0, n_to = 0;
    for (size_t i = 0; i < n_moved && relative.place; i++) to -= moved[i] < relative.other;
    if (relative.place && relative.place->kind == BEHIND) to++;
    if (absolute.place && absolute.place->at < 0)
        to = n - n_moved;
    else if (absolute.place && (!relative.place || relative.place->kind == BEHIND))
        to += (size_t)absolute.place->at - 1;
    if (to > n - n_moved) return false;
    for (size_t old = 0; old <= n; old++) {
        bool is_moved = false;
        for (size_t i = 0; i < n_moved; i++) is_moved |= moved[i] == old;
        if (n_to == to)
            for (size_t i = 0; i < n_moved; i++) ret->order[n_to++] = moved[i];
        if (old < n && !is_moved) ret->order[n_to++] = old;
    }
    ret->moved = n_moved == 1 ? *moved : n;
    ret->to = to;
    return true;
}
