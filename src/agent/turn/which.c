/*
 * "What writes the graph should be called writeGraph": a rename, clearly, and two functions fit. To go on to something else
 * there would write a second writeGraph beside the one that is meant. So the program asks which one it is, and the next message's
 * name, or "the first", is enough (contract: readings.h).
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/turn/readings.h"
#include "agent/words/operation_words.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

/* Nats: what is asked about weighs that much at least, unless a word orders a rename; and how far the next ones may lie behind. */
static const double LEAST = -5, SPAN = 2.5;

/* What is asked of a kind, in front of the names; %1 and %2 are the call's second and third argument. NULL: nothing. */
static const char *const questions[AGENT_N_READINGS] = {
    [AGENT_READ_RENAME] = "is to be renamed to %1",
    [AGENT_READ_MOVE] = "is to be moved to %1",
    [AGENT_READ_MOVE_BOTH] = "are to be moved to %1",
    [AGENT_READ_DELETE] = "is to be deleted",
    [AGENT_READ_DELETE_BOTH] = "are to be deleted",
    [AGENT_READ_DROP] = "is to lose its parameter %1",
    [AGENT_READ_INSERT] = "is to get the parameter %1",
    [AGENT_READ_REORDER] = "is to take %1 before %2",
    [AGENT_READ_RENAME_PARAMETER] = "is to have its parameter %1 renamed to %2",
};

/* --- is it to be asked? ----------------------------------------------------------------------------------- */

/* What stands behind the definition in a call: ", g)" of "rename(f, g)". */
static const char *rest_of(const agent_reading *r)
{
    return r->call + strcspn(r->call, ",)");
}

static bool is_described(const agent_reading *r)
{
    return r->meaning && questions[r->kind] && r->signs[AGENT_SIGN_DESCRIBED];
}

/* Of two definitions at once: they are asked about as they are. */
static const char *second_of(const agent_reading *r)
{
    const char *at = strstr(r->call, "; ");
    return at ? strchr(at, '(') + 1 : NULL;
}

bool agent__are_twins(const agent_reading *x, const agent_reading *y)
{
    return is_described(x) && is_described(y) && !second_of(x) && x->kind == y->kind &&
           !strcmp(rest_of(x), rest_of(y));
}

/* A word orders it, and nothing says that it may be something else. */
static bool is_ordered(const agent_readings *all, const agent_reading *r)
{
    static const agent_reading_sign against[] = {AGENT_SIGN_MAKING, AGENT_SIGN_DOCUMENT, AGENT_SIGN_PART,
        AGENT_SIGN_CONDITION, AGENT_SIGN_ACTS, AGENT_SIGN_OTHER_OBJECT, AGENT_SIGN_FILE_LEFT,
        AGENT_SIGN_NEW_CALLED};
    static const agent_reading_sign unsaid[] = {AGENT_SIGN_NO_GOING, AGENT_SIGN_NO_NAMING,
        AGENT_SIGN_NO_CARRYING, AGENT_SIGN_NO_TAKING, AGENT_SIGN_NO_ORDER};
    const bool is_of_parameter = r->kind == AGENT_READ_DROP || r->kind == AGENT_READ_INSERT ||
                                 r->kind == AGENT_READ_REORDER || r->kind == AGENT_READ_RENAME_PARAMETER;
    const bool renames = r->kind == AGENT_READ_RENAME;
    for (size_t i = 0; i < sizeof against / sizeof *against; i++)
        if (r->signs[against[i]]) return false;
    for (size_t i = 0; i < sizeof unsaid / sizeof *unsaid; i++)
        if (r->signs[unsaid[i]]) return false;
    if (is_of_parameter) return !r->signs[AGENT_SIGN_UNSAID] && !r->signs[AGENT_SIGN_OTHER_VERB];
    const bool moves = r->kind == AGENT_READ_MOVE || r->kind == AGENT_READ_MOVE_BOTH;
    return r->signs[AGENT_SIGN_VERB] || (renames && all->is_to_be) ||
           (moves && (r->signs[AGENT_SIGN_TO_FILE] || r->signs[AGENT_SIGN_NEW_FILE]));
}

/* Is it clear enough by its weight, and would be without the same of others? */
static bool is_clear_but_for_twins(const agent_readings *all, const agent_reading *r)
{
    bool leads = r->weight >= agent__least_weight();
    for (uint32_t i = 0; i < all->n && leads; i++) {
        const agent_reading *one = &all->all[i];
        leads = one == r || agent__are_twins(r, one) || r->weight - one->weight >= agent__least_lead();
    }
    return leads;
}

/* "What skips blanks at the end should be called g": "end" is a word there, though the function has a parameter of that name. */
static bool is_by_chance(const char *request, const agent_reading *r)
{
    static const char *const words[] = {
        "parameter", "parameters", "argument", "arguments", "param", "params", "arg", "args", NULL};
    return r->kind == AGENT_READ_RENAME_PARAMETER && is_described(r) && !agent__has_any_word(request, words);
}

/* The likeliest operation on what is described, where that it is one is clear and what of is not; NULL. */
static const agent_reading *find_asked(const char *request, const agent_readings *r)
{
    const agent_reading *best = NULL, *first = NULL, *ordered = NULL;
    for (uint32_t i = 0; i < r->n; i++) {
        const agent_reading *one = &r->all[i];
        if (is_by_chance(request, one)) continue;
        if (!best || one->weight > best->weight) best = one;
        if (!is_described(one)) continue;
        if (!first || one->weight > first->weight) first = one;
        if (is_ordered(r, one) && (!ordered || one->weight > ordered->weight)) ordered = one;
    }
    if (first && first == best && is_clear_but_for_twins(r, first)) return first;
    if (!ordered) return NULL;
    const bool renames = ordered->kind == AGENT_READ_RENAME;
    /* another new name may be what is to be added, or one that the description speaks of: "makes a StringIO" */
    const bool is_beside_new =
        renames && best->kind == AGENT_READ_ADD && !ordered->signs[AGENT_SIGN_FRESH_LEFT];
    const bool is_first = ordered == best || is_beside_new;
    return is_first && (renames || ordered->weight >= LEAST) ? ordered : NULL;
}

/* The best of them, in order; returns how many. */
static uint32_t take_twins(const agent_readings *r, const agent_reading *first, const agent_reading **ret)
{
    uint32_t n = 0;
    for (const agent_reading *next = first; next && n < AGENT_MOST_WHICH;) {
        const agent_reading *last = next;
        ret[n++] = next;
        next = NULL;
        for (uint32_t i = 0; i < r->n; i++) {
            const agent_reading *one = &r->all[i];
            const bool is_behind = one->weight < last->weight || (one->weight == last->weight && one > last);
            if (one != last && is_behind && agent__are_twins(first, one) &&
                one->weight >= first->weight - SPAN && (!next || one->weight > next->weight))
                next = one;
        }
    }
    return n;
}

/* --- the question ----------------------------------------------------------------------------------------- */

static void put_argument(const char *call, int k, base_buf *out)
{
    const char *p = strchr(call, '(');
    for (p = p ? p + 1 : ""; k && *p; k--) p += strcspn(p, ",") + strspn(p + strcspn(p, ","), ", ");
    base_buf_printf(out, "`%.*s`", (int)strcspn(p, ",)"), p);
}

static void put_asked(const agent_reading *r, base_buf *out)
{
    for (const char *p = questions[r->kind]; *p; p++) {
        if (*p == '%' && (p[1] == '1' || p[1] == '2'))
            put_argument(r->call, *++p - '0', out);
        else
            base_buf_putc(out, *p);
    }
}

static void put_definition(const agent *a, const char *name, base_buf *out)
{
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    base_buf_printf(out, "`%s`", name);
    if (n) base_buf_printf(out, " (%s:%u)", places[0].path, places[0].line);
    code_places_free(places, n);
}

bool agent__ask_which(agent *a, const char *request, const agent_readings *r, base_buf *ret)
{
    const agent_reading *first = a->settings.schema ? NULL : find_asked(request, r), *asked[AGENT_MOST_WHICH];
    const uint32_t n = first ? take_twins(r, first, asked) : 0;
    if (!n) return false;
    const char *second = second_of(first);
    base_buf_puts(ret, n > 1 ? "Which one " : second ? "Is it these two, " : "Is it ");
    if (n > 1) put_asked(first, ret);
    if (n > 1) base_buf_puts(ret, ": ");
    for (uint32_t i = 0; i < n; i++) {
        const char *call = asked[i]->call, *from = strchr(call, '(') + 1;
        a->which.names[i] = base_xstrndup(from, strcspn(from, ",)"));
        a->which.meanings[i] = agent__say_besides(request, asked[i]->meaning);
        if (i) base_buf_puts(ret, i + 1 < n ? ", " : " or ");
        put_definition(a, a->which.names[i], ret);
    }
    if (second) {
        char *name = base_xstrndup(second, strcspn(second, ",)"));
        base_buf_puts(ret, " and ");
        put_definition(a, name, ret);
        free(name);
    }
    if (n == 1) base_buf_puts(ret, second ? ", that " : " that ");
    if (n == 1) put_asked(first, ret);
    base_buf_puts(ret, n > 1    ? "? Say its name, or \"the first\"."
                       : second ? "? Say yes, or ask again with their names."
                                : "? Say yes, or the name of another one.");
    a->which.n = n;
    a->which.turn = a->turn;
    return true;
}

/* --- the answer ------------------------------------------------------------------------------------------- */

static bool names_it(const char *request, const char *name)
{
    return agent__find_phrase(request, 0, name) > 0 ||
           agent__find_phrase(request, 0, code_last_name(name)) > 0;
}

/* Which of them the words name; of several none. n: none. */
static uint32_t find_said(const agent_which *w, const char *request)
{
    static const char *const ordinals[AGENT_MOST_WHICH][4] = {
        {"first", "1", "1st", NULL}, {"second", "2", "2nd", NULL}, {"third", "3", "3rd", NULL}};
    static const char *const yes[] = {"yes", "y", "yep", "ok", "right", "exactly", NULL};
    uint32_t said = w->n, n_said = 0, counted = w->n, n_counted = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (agent__find_phrase(request, 0, w->names[i])) return i;
        if (names_it(request, w->names[i])) said = i, n_said++;
        if (agent__has_any_word(request, ordinals[i])) counted = i, n_counted++;
    }
    if (n_said) return n_said == 1 ? said : w->n;
    if (n_counted) return n_counted == 1 ? counted : w->n;
    return w->n == 1 && agent__has_any_word(request, yes) ? 0 : w->n;
}

char *agent__read_which(agent *a, const char *request)
{
    enum { MOST_WORDS = 8 };
    agent_which *w = &a->which;
    uint32_t n_words = 0;
    for (agent_word word = {0}; agent__next_word(request, word.to, &word);) n_words++;
    const bool is_answer = w->n && a->turn == w->turn + 1 && n_words <= MOST_WORDS && !strchr(request, '?');
    const uint32_t said = is_answer ? find_said(w, request) : w->n;
    char *meaning = said < w->n ? base_xstrdup(w->meanings[said]) : NULL;
    agent__forget_which(a);
    return meaning;
}
