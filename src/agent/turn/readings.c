/* What a request may mean: the operations that its names allow (contract: readings.h). */
#include "agent/turn/readings_parts.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

enum { MAX_PARAMETERS = 8, MOST_WITH_PARAMETERS = 6 };

/* How each is called in the examples, and said where the program takes it; NULL: the request stands as it is. */
static const struct form {
    const char *call, *sentence;
} forms[AGENT_N_READINGS] = {
    [AGENT_READ_RENAME] = {"rename(%s, %s)", "Rename %s to %s."},
    [AGENT_READ_RENAME_BOTH] = {"rename(%s, %s); rename(%s, %s)", "Rename %s to %s and %s to %s."},
    [AGENT_READ_RENAME_PARAMETER] = {"rename_parameter(%s, %s, %s)", "Rename %s.%s to %s."},
    [AGENT_READ_RENAME_PARAMETERS] = {"rename_parameter(%s, %s, %s); rename_parameter(%s, %s, %s)",
        "Rename %s.%s to %s and %s.%s to %s."},
    [AGENT_READ_MOVE] = {"move(%s, %s)", "Move %s to %s."},
    [AGENT_READ_MOVE_BOTH] = {"move(%s, %s); move(%s, %s)", "Move %s to %s and %s to %s."},
    [AGENT_READ_DELETE] = {"delete(%s)", "Delete %s."},
    [AGENT_READ_DELETE_BOTH] = {"delete(%s); delete(%s)", "Delete %s and %s."},
    [AGENT_READ_DROP] = {"drop_parameter(%s, %s)", "From %s, remove the parameter `%s`."},
    [AGENT_READ_INSERT] = {"add_parameter(%s, %s)", "Give %s a parameter `%s`. "},
    [AGENT_READ_REORDER] = {"reorder_parameters(%s, %s, %s)", "Let %s take %s before %s."},
    [AGENT_READ_ADD] = {"add(%s)", NULL},
    [AGENT_READ_CHANGE] = {"change(%s)", NULL},
    [AGENT_READ_TEST] = {"test(%s)", NULL},
    [AGENT_READ_ANSWER] = {"answer()", NULL},
};

const char *agent__reading_word(agent_reading_kind kind)
{
    return forms[kind].call;
}

void agent__readings_free(agent_readings *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        free(r->all[i].call);
        free(r->all[i].meaning);
    }
    r->n = 0;
}

/* --- what may be meant ------------------------------------------------------------------------------------ */

/* One request on its way to its readings. */
typedef struct finding {
    const agent *a;
    const char *request;
    read_names n;
    read_words w;
    agent_readings *r;
} finding;

/* The names are those of the form's call, in order. */
static agent_reading *may_mean(finding *f, agent_reading_kind kind, ...)
{
    const char *const texts[] = {forms[kind].call, forms[kind].sentence};
    char *made[2] = {NULL, NULL};
    agent_readings *r = f->r;
    if (r->n == AGENT_MAX_READINGS) return NULL;
    for (int i = 0; i < 2; i++) {
        if (!texts[i]) continue;
        base_buf text = {0};
        va_list args;
        va_start(args, kind);
        for (const char *p = texts[i]; *p; p++)
            if (!strncmp(p, "%s", 2)) {
                base_buf_puts(&text, va_arg(args, const char *));
                p++;
            } else {
                base_buf_putc(&text, *p);
            }
        va_end(args);
        if (i && kind == AGENT_READ_INSERT)
            base_buf_puts(&text, f->request); /* its default, what callers pass */
        made[i] = base_buf_take(&text);
    }
    r->has_operation |= made[1] != NULL;
    r->all[r->n] = (agent_reading){.kind = kind, .call = made[0], .meaning = made[1]};
    return &r->all[r->n++];
}

static void sign(const finding *f, agent_reading *one, read_slots slots)
{
    if (one) agent__sign_reading(f->a, &f->n, &f->w, &slots, one);
}

/* "Give f and g the pre_ prefix": both get names that begin so. */
static void add_prefix_readings(finding *f)
{
    static const char *const cues[] = {"prefix", "prefixed", "prefixes", "begin", "start", NULL};
    const read_names *n = &f->n;
    const char *prefix = NULL;
    if (!agent__has_any_word(f->request, cues)) return;
    for (size_t k = 0; k < n->n_fresh && !prefix; k++)
        if (base_ends_with(n->fresh[k].text, "_")) prefix = n->fresh[k].text;
    base_buf made[READ_MOST_NAMES] = {0};
    for (size_t i = 0; i < n->n_known && i < READ_MOST_NAMES && prefix; i++) {
        if (n->known[i].rank >= 0) continue;
        base_buf_printf(&made[i], "%s%s", prefix, code_last_name(n->known[i].text));
        sign(f, may_mean(f, AGENT_READ_RENAME, n->known[i].text, made[i].data),
            (read_slots){.about = &n->known[i]});
        for (size_t k = 0; k < i; k++)
            if (made[k].len)
                sign(f,
                    may_mean(f, AGENT_READ_RENAME_BOTH, n->known[k].text, made[k].data, n->known[i].text,
                        made[i].data),
                    (read_slots){.about = &n->known[i]});
    }
    for (size_t i = 0; i < READ_MOST_NAMES; i++) base_buf_free(&made[i]);
}

static bool is_parameter(const agent_function *g, const char *word)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->parameters[i], word)) return true;
    return false;
}

/* "Output.data", "Output's data": a member of what is named in front of it. */
static bool is_qualified(const char *s, agent_word w, const char *by)
{
    const char *const only[] = {code_last_name(by), NULL};
    agent_word before;
    size_t at = w.from;
    if (at && s[at - 1] == '.') at--;
    return agent__word_before(s, at, &before) && agent__is_any_word(s, before, only) &&
           (before.to + 1 == w.from && s[before.to] == '.');
}

/* "The local x in f": a variable of the function's. */
static void add_local_readings(finding *f, const read_name *of, const agent_function *g)
{
    static const char *const cues[] = {"local", "locals", "variable", "variables", "var", "counter", "field",
        "member", "attribute", "property", "param", "parameter", "argument", NULL};
    const char *s = f->request;
    agent_word w = {0};
    char *first = NULL;
    const bool is_cued = agent__has_any_word(s, cues);
    while (agent__next_word(s, w.to, &w)) {
        char *word = agent__copy_word(s, w);
        const bool is_sure = is_qualified(s, w, of->text);
        const bool is_free = !code_index_is_defined(tool_workspace_index(f->a->workspace), word);
        const bool may = (is_sure || is_free) && (is_sure || is_cued || agent__looks_like_name(s, w)) &&
                         agent__is_content_word(word, strlen(word)) && !is_parameter(g, word) &&
                         !agent__is_any_word(s, w, cues) && strcmp(word, of->text) != 0 &&
                         (!first || strcmp(word, first) != 0) && agent__stands_inside(f->a, of->text, word);
        for (size_t k = 0; k < f->n.n_fresh && may; k++)
            if (strcmp(word, f->n.fresh[k].text) != 0)
                sign(f, may_mean(f, AGENT_READ_RENAME_PARAMETER, of->text, word, f->n.fresh[k].text),
                    (read_slots){.about = of, .parameter = word, .fresh = &f->n.fresh[k]});
        if (may && first && f->n.n_fresh == 2)
            sign(f,
                may_mean(f, AGENT_READ_RENAME_PARAMETERS, of->text, first, f->n.fresh[0].text, of->text, word,
                    f->n.fresh[1].text),
                (read_slots){.about = of, .parameter = word, .fresh = &f->n.fresh[1]});
        if (may && !first)
            first = word;
        else
            free(word);
    }
    free(first);
}

/* "All that f does is str(line)": line is what another function than f is given there. */
static bool is_given_to_other(const char *s, size_t at, const char *of)
{
    size_t to = at ? at - 1 : 0, from = to;
    if (!to || s[to] != '(') return false;
    while (from && agent__is_in_word(s, from - 1)) from--;
    char *called = base_xstrndup(s + from, to - from);
    const bool is_own = code_has_identifier(of, strlen(of), called); /* or its type: "Reader(path)" */
    free(called);
    return from < to && !is_own;
}

/* Exactly so, and one letter not as "a" and the end of "it's" are written. */
static bool names_parameter(const char *s, const char *name, const char *of)
{
    const size_t n = strlen(name);
    for (const char *p = s; n && (p = strstr(p, name)); p++) {
        const size_t at = (size_t)(p - s);
        const char before = at ? s[at - 1] : ' ', behind = s[at + n];
        if ((at && agent__is_in_word(s, at - 1)) || agent__is_in_word(s, at + n)) continue;
        if (is_given_to_other(s, at, of)) continue;
        const bool is_end = before == '\'' && at > 1 && agent__is_in_word(s, at - 2);
        const bool is_code = strchr("(`\"'*,", before) || (behind && strchr(")`\"',=:", behind));
        if (!is_end && (n > 1 || is_code || !strchr("aAI", *name))) return true;
    }
    return false;
}

/* How it is named: itself, 0; all words of its name, 1, as "the name of the program" speaks of program_name; some, 2; not, 3. */
static unsigned how_named(const char *s, const char *parameter, const char *of)
{
    base_buf parts = {0};
    size_t n = 0, n_said = 0;
    if (names_parameter(s, parameter, of)) return 0;
    if (strlen(parameter) < 2) return 3;
    code_split_identifier(parameter, strlen(parameter), &parts);
    for (const char *p = parts.data; p && *p; n++) {
        const size_t len = strcspn(p, " ");
        char *part = base_xstrndup(p, len);
        n_said += len > 1 && agent__has_word(s, part);
        free(part);
        p += len + strspn(p + len, " ");
    }
    base_buf_free(&parts);
    return n_said && n_said == n ? 1 : n_said ? 2 : 3;
}

/* What is said of one function's parameters. */
typedef struct parameters {
    const read_name *of;
    agent_function g;
    unsigned named[MAX_PARAMETERS]; /* how_named */
    size_t n, n_named;
} parameters;

/* Of one or two parameters "its argument" names one nearly. */
static unsigned most_unnamed(const agent_function *g)
{
    return g->n == 1 ? 1 : g->n == 2 ? 2 : 3;
}

static void read_parameters(const finding *f, const read_name *of, parameters *p)
{
    p->of = of;
    p->n = p->g.n < MAX_PARAMETERS ? p->g.n : MAX_PARAMETERS;
    for (size_t i = 0; i < p->n; i++) {
        const char *name = p->g.parameters[i];
        p->named[i] = *name && strcmp(name, of->text) != 0 ? how_named(f->request, name, of->text) : 3;
        p->n_named += !p->named[i];
        if (p->named[i] > most_unnamed(&p->g)) p->named[i] = most_unnamed(&p->g);
    }
}

static read_slots slots_of(const parameters *p, size_t i, const read_name *fresh)
{
    return (read_slots){.about = p->of,
        .fresh = fresh,
        .function = &p->g,
        .parameter = p->g.parameters[i],
        .unnamed = p->named[i],
        .left = (unsigned)(p->n_named - !p->named[i])};
}

/* "All it does is str(line)": line is spoken of, and never as what f takes. */
static bool is_only_given(const char *s, const char *name, const char *of)
{
    const size_t n = strlen(name);
    bool is_given = false;
    for (const char *p = s; n && (p = strstr(p, name)) && !is_given; p++)
        is_given = !agent__is_in_word(s, (size_t)(p - s) + n) && is_given_to_other(s, (size_t)(p - s), of);
    return is_given && !names_parameter(s, name, of);
}

static void add_drops(finding *f, const parameters *p)
{
    const bool is_spoken_of = f->w.has[READ_GOING] || f->w.has[READ_PARAMETER];
    for (size_t i = 0; i < p->n; i++) {
        const bool is_named = p->named[i] < 2;
        const bool may_drop = is_named || (is_spoken_of && p->of->rank < 0);
        if (is_only_given(f->request, p->g.parameters[i], p->of->text)) continue;
        if (*p->g.parameters[i] && may_drop && (is_named || !f->n.n_fresh || f->w.has[READ_PARAMETER]))
            sign(f, may_mean(f, AGENT_READ_DROP, p->of->text, p->g.parameters[i]), slots_of(p, i, NULL));
    }
}

static void add_parameter_names(finding *f, const parameters *p)
{
    const read_names *n = &f->n;
    const char *of = p->of->text;
    for (size_t i = 0; i < p->n; i++) {
        const char *old = p->g.parameters[i];
        const bool may_be =
            !p->named[i] || (p->g.n <= 2 && f->w.has[READ_PARAMETER] && f->w.has[READ_NAMING]);
        for (size_t k = 0; k < n->n_fresh && *old && may_be; k++)
            if (!is_parameter(&p->g, n->fresh[k].text))
                sign(f, may_mean(f, AGENT_READ_RENAME_PARAMETER, of, old, n->fresh[k].text),
                    slots_of(p, i, &n->fresh[k]));
        for (size_t k = 0; k < p->n && !p->named[i] && n->n_fresh == 2; k++) {
            const char *second = p->g.parameters[k];
            if (i == k || p->named[k] ||
                agent__find_phrase(f->request, 0, old) >= agent__find_phrase(f->request, 0, second))
                continue;
            read_slots slots = slots_of(p, i, &n->fresh[0]);
            slots.left -= slots.left > 0;
            sign(f,
                may_mean(
                    f, AGENT_READ_RENAME_PARAMETERS, of, old, n->fresh[0].text, of, second, n->fresh[1].text),
                slots);
        }
    }
}

/* Nobody asks for another order without a word for it, unless the list stands there: "f(b, a) and not f(a, b)". */
static void add_order(finding *f, const parameters *p, size_t first, size_t second)
{
    read_slots slots = slots_of(p, first, NULL);
    slots.other = p->g.parameters[second];
    if (!f->w.has[READ_ORDER] && !agent__is_written_whole(f->request, AGENT_READ_REORDER, &slots)) return;
    slots.left -= slots.left && !p->named[second];
    if (p->named[second] > slots.unnamed) slots.unnamed = p->named[second];
    sign(f, may_mean(f, AGENT_READ_REORDER, p->of->text, slots.parameter, slots.other), slots);
}

/* In front of another one: what stands there already is no order. */
static void add_orders(finding *f, const parameters *p)
{
    static const char *const front[] = {"first", "front", "leading", "begin", "beginning", "start", NULL};
    static const char *const back[] = {"last", "end", "trailing", "behind", NULL};
    const bool is_front = agent__has_any_word(f->request, front),
               is_back = agent__has_any_word(f->request, back);
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < i; k++) {
            const bool goes_first = !p->named[i] && !k && is_front && p->n_named == 1;
            const bool goes_last = !p->named[k] && i + 1 == p->g.n && is_back && p->n_named == 1;
            const bool is_pair = p->g.n == 2 && !p->n_named && f->w.has[READ_PARAMETER];
            if (*p->g.parameters[i] && *p->g.parameters[k] &&
                ((!p->named[i] && !p->named[k]) || goes_first || goes_last || is_pair))
                add_order(f, p, i, k);
        }
}

/* Of the parameters of a function that the request names or describes. */
static void add_parameter_readings(finding *f, const read_name *of)
{
    parameters p = {.of = of};
    const bool is_function = agent__look_up_function(f->a, of->text, &p.g);
    if (of->rank < 0) add_local_readings(f, of, &p.g);
    if (!is_function) return;
    read_parameters(f, of, &p);
    add_drops(f, &p);
    add_parameter_names(f, &p);
    add_orders(f, &p);
    for (size_t k = 0; k < f->n.n_fresh && !f->w.names_it; k++)
        if (!is_parameter(&p.g, f->n.fresh[k].text))
            sign(f, may_mean(f, AGENT_READ_INSERT, of->text, f->n.fresh[k].text),
                (read_slots){.about = of, .function = &p.g, .fresh = &f->n.fresh[k]});
    agent__function_free(&p.g);
}

/* "get rid of f, g does the same": g is the reason, and stays. */
static bool is_reason(const char *request, const char *name)
{
    static const char *const verbs[] = {" does ", " already ", " covers ", " replaces ", " suffices",
        " handles ", " is enough", " is the same", " is better", " has the same", " will do"};
    bool is = false;
    for (size_t at = agent__find_phrase(request, 0, name); at && !is;
         at = agent__find_phrase(request, at, name))
        for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
            is |= !strncasecmp(request + at + strspn(request + at, "`'\"()"), verbs[i], strlen(verbs[i]));
    return is;
}

/* "f has no tests, could you add them to test_a.py?": code moves to no file of tests, but for what stands among tests already. */
static bool may_move_to(const finding *f, const char *name, const char *file)
{
    code_place *places = NULL;
    const uint32_t n =
        code_index_define(tool_workspace_index(f->a->workspace), code_last_name(name), &places);
    bool is_code = false;
    for (uint32_t i = 0; i < n; i++) is_code |= !code_path_is_test(places[i].path);
    code_places_free(places, n);
    return !(is_code && code_path_is_test(file)) && !agent__stands_in(f->a, name, file);
}

/* "The two functions that ...", "both helpers which ...": two are described. */
static bool describes_two(const char *s)
{
    static const char *const both[] = {"two", "both", "pair", NULL};
    static const char *const kinds[] = {"functions", "methods", "helpers", "classes", "structs", "types",
        "constants", "macros", "tests", "ones", "parsers", "converters", "checkers", "routines", "fields",
        "variables", "subclasses", "exceptions", "interfaces", NULL};
    enum { NEAR = 3 };
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);) {
        agent_word next = w;
        if (!agent__is_any_word(s, w, both)) continue;
        for (int i = 0; i < NEAR && agent__next_word(s, next.to, &next); i++)
            if (agent__is_any_word(s, next, kinds)) return true;
    }
    return false;
}

/* Two definitions at once. */
static void add_pairs(finding *f)
{
    static const char *const both[] = {"two", "both", "pair", NULL};
    const read_names *n = &f->n;
    const bool has_pair = agent__has_any_word(f->request, both);
    for (size_t i = 0; i < n->n_known; i++)
        for (size_t k = i + 1; k < n->n_known; k++) {
            const read_name *x = &n->known[i], *y = &n->known[k];
            const bool is_described = x->rank >= 0 && y->rank >= 0 && x->rank + y->rank < 5 && has_pair;
            if ((x->rank >= 0 || y->rank >= 0) && !is_described) continue;
            if (n->n_fresh == 2 && strcmp(x->text, n->fresh[0].text) != 0 &&
                strcmp(y->text, n->fresh[1].text) != 0)
                sign(f,
                    may_mean(f, AGENT_READ_RENAME_BOTH, x->text, n->fresh[0].text, y->text, n->fresh[1].text),
                    (read_slots){.about = x, .also = y, .fresh = &n->fresh[0]});
            if (f->w.has[READ_GOING] && !f->w.condition && !is_reason(f->request, x->text) &&
                !is_reason(f->request, y->text))
                sign(f, may_mean(f, AGENT_READ_DELETE_BOTH, x->text, y->text),
                    (read_slots){.about = y->is_place ? y : x, .also = y->is_place ? x : y});
            for (size_t j = 0; j < n->n_files && !f->w.adds; j++)
                if (may_move_to(f, x->text, n->files[j].text) && may_move_to(f, y->text, n->files[j].text))
                    sign(f,
                        may_mean(
                            f, AGENT_READ_MOVE_BOTH, x->text, n->files[j].text, y->text, n->files[j].text),
                        (read_slots){.about = x, .also = y, .file = &n->files[j]});
        }
}

/* "The little helper that ...": is a function spoken of, before any other kind? */
static bool speaks_of_function(const char *request)
{
    static const char *const functions[] = {"function", "method", "helper", "routine", NULL};
    static const char *const kinds[] = {"function", "method", "helper", "routine", "class", "struct", "type",
        "field", "variable", "constant", "member", "attribute", "property", "macro", "enum", "interface",
        "trait", "alias", "exception", "error", "parameter", "argument", NULL};
    agent_word w = {0}, next;
    while (agent__next_word(request, w.to, &w))
        if (agent__is_any_word(request, w, kinds))
            return agent__is_any_word(request, w, functions) &&
                   !(agent__next_word(request, w.to, &next) && agent__is_any_word(request, next, kinds));
    return false;
}

/* What is only described is no class and no field, where a function is spoken of or is what the new name is one of. */
static bool is_of_other_kind(const finding *f, const read_name *x, const char *fresh)
{
    static const char *const types[] = {"class", "interface", "struct", "enum", "trait"};
    const char *old = code_last_name(x->text);
    const bool is_type_named =
        isupper((unsigned char)old[strspn(old, "_")]) && islower((unsigned char)fresh[strspn(fresh, "_")]);
    const bool wants_function = speaks_of_function(f->request);
    code_place *places = NULL;
    bool is_type = false, is_field = false;
    if (x->rank < 0 || !(is_type_named || wants_function)) return false;
    const uint32_t n = code_index_define(tool_workspace_index(f->a->workspace), x->text, &places);
    for (size_t i = 0; i < sizeof types / sizeof *types && n; i++)
        is_type |= !strcmp(places[0].what, types[i]);
    is_field = n && !strcmp(places[0].what, "field");
    code_places_free(places, n);
    return is_type || (wants_function && is_field);
}

static unsigned count_named_parameters(const finding *f, const read_name *of)
{
    parameters p = {.of = of};
    if (of->rank >= 0 || !agent__look_up_function(f->a, of->text, &p.g)) return 0;
    read_parameters(f, of, &p);
    agent__function_free(&p.g);
    return (unsigned)p.n_named;
}

void agent__find_readings(const agent *a, const char *request, agent_readings *ret)
{
    finding f = {.a = a, .request = request, .r = ret};
    code_index *index = tool_workspace_index(a->workspace);
    *ret = (agent_readings){.n = 0};
    agent__find_names(a, request, &f.n);
    agent__read_topics(request, &f.n, &f.w);
    ret->names_it = f.w.names_it;
    ret->is_to_be = f.w.is_to_be;
    const read_names *n = &f.n;
    const bool are_two = describes_two(request);
    const bool may_delete = !f.w.condition; /* "f can't be needed when g is": not always */
    sign(&f, may_mean(&f, AGENT_READ_ANSWER), (read_slots){0});
    for (size_t i = 0; i < n->n_fresh && !f.w.names_it; i++)
        sign(&f, may_mean(&f, AGENT_READ_ADD, n->fresh[i].text), (read_slots){0});
    for (size_t i = 0; i < n->n_known; i++) {
        const read_name *x = &n->known[i];
        const unsigned n_left = count_named_parameters(&f, x);
        const bool is_half = are_two && x->rank >= 0; /* of two that are described */
        if (x->rank <= 0) sign(&f, may_mean(&f, AGENT_READ_CHANGE, x->text), (read_slots){.about = x});
        if (x->rank <= 0) sign(&f, may_mean(&f, AGENT_READ_TEST, x->text), (read_slots){.about = x});
        for (size_t k = 0; k < n->n_fresh; k++)
            if (!code_index_is_defined(index, n->fresh[k].text) && !is_of_other_kind(&f, x, n->fresh[k].text))
                sign(&f, may_mean(&f, AGENT_READ_RENAME, x->text, n->fresh[k].text),
                    (read_slots){.about = x, .fresh = &n->fresh[k], .left = n_left});
        for (size_t k = 0; k < n->n_files && !f.w.adds; k++)
            if (!is_half && may_move_to(&f, x->text, n->files[k].text))
                sign(&f, may_mean(&f, AGENT_READ_MOVE, x->text, n->files[k].text),
                    (read_slots){.about = x, .file = &n->files[k], .left = n_left});
        const bool is_text = f.w.takes_text && x->rank >= 0;
        if (may_delete && !is_text && !is_half && (f.w.has[READ_GOING] || x->rank < 0))
            sign(&f, may_mean(&f, AGENT_READ_DELETE, x->text), (read_slots){.about = x, .left = n_left});
        if (x->rank < MOST_WITH_PARAMETERS) add_parameter_readings(&f, x);
    }
    add_pairs(&f);
    add_prefix_readings(&f);
    agent__names_free(&f.n);
}
