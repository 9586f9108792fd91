/* What a request may mean: the operations that its names allow (contract: readings.h). */
#include "agent/turn/readings_parts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

enum { MAX_PARAMETERS = 8, MOST_WITH_PARAMETERS = 4 };

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
    [AGENT_READ_DROP] = {"drop_parameter(%s, %s)", "From %s, remove the parameter %s."},
    [AGENT_READ_INSERT] = {"add_parameter(%s, %s)", "Give %s a parameter %s. "},
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

bool agent__is_operation_reading(agent_reading_kind kind)
{
    return forms[kind].sentence != NULL;
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

static void sign(const finding *f, agent_reading *one, const read_name *about, unsigned unnamed)
{
    if (one) agent__sign_reading(f->a, &f->n, &f->w, about, unnamed, one);
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
        sign(f, may_mean(f, AGENT_READ_RENAME, n->known[i].text, made[i].data), &n->known[i], 0);
        for (size_t k = 0; k < i; k++)
            if (made[k].len)
                sign(f,
                    may_mean(f, AGENT_READ_RENAME_BOTH, n->known[k].text, made[k].data, n->known[i].text,
                        made[i].data),
                    &n->known[i], 0);
    }
    for (size_t i = 0; i < READ_MOST_NAMES; i++) base_buf_free(&made[i]);
}

static bool is_parameter(const agent_function *g, const char *word)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->parameters[i], word)) return true;
    return false;
}

/* "The local x in f": a variable of the function's. */
static void add_local_readings(finding *f, const read_name *of, const agent_function *g)
{
    static const char *const cues[] = {"local", "locals", "variable", "variables", "var", "counter", "field",
        "member", "attribute", "property", "param", "parameter", "argument", NULL};
    const char *s = f->request;
    agent_word w = {0};
    const bool is_cued = agent__has_any_word(s, cues);
    while (agent__next_word(s, w.to, &w)) {
        char *word = agent__copy_word(s, w);
        const bool may = (is_cued || agent__looks_like_name(s, w)) &&
                         agent__is_content_word(word, strlen(word)) && !is_parameter(g, word) &&
                         !agent__is_any_word(s, w, cues) && strcmp(word, of->text) != 0 &&
                         !code_index_is_defined(tool_workspace_index(f->a->workspace), word) &&
                         agent__stands_inside(f->a, of->text, word);
        for (size_t k = 0; k < f->n.n_fresh && may; k++)
            sign(f, may_mean(f, AGENT_READ_RENAME_PARAMETER, of->text, word, f->n.fresh[k].text), of, 0);
        free(word);
    }
}

/* "The name of the program" speaks of program_name. */
static bool is_partly_named(const char *s, const char *parameter)
{
    base_buf parts = {0};
    bool has_all = true;
    size_t n = 0;
    code_split_identifier(parameter, strlen(parameter), &parts);
    for (const char *p = parts.data; p && *p && has_all; n++) {
        const size_t len = strcspn(p, " ");
        char *part = base_xstrndup(p, len);
        has_all = agent__has_word(s, part);
        free(part);
        p += len + strspn(p + len, " ");
    }
    base_buf_free(&parts);
    return n && has_all;
}

/* Of the parameters of a function that the request names or describes. */
static void add_parameter_readings(finding *f, const read_name *of)
{
    agent_function g = {0};
    const char *s = f->request;
    const char *named[MAX_PARAMETERS];
    size_t n_named = 0, at[MAX_PARAMETERS];
    const bool is_function = agent__look_up_function(f->a, of->text, &g);
    if (of->rank < 0) add_local_readings(f, of, &g);
    if (!is_function) return;
    for (size_t i = 0; i < g.n; i++) {
        const char *p = g.parameters[i];
        const bool is_named = agent__has_word(s, p) && strcmp(p, of->text) != 0;
        const bool is_spoken_of = is_named || is_partly_named(s, p);
        const bool may_drop = is_spoken_of || (f->w.has[READ_GOING] && g.n <= MAX_PARAMETERS && of->rank < 0);
        if (may_drop && (is_spoken_of || !f->n.n_fresh || f->w.has[READ_PARAMETER]))
            sign(f, may_mean(f, AGENT_READ_DROP, of->text, p), of, is_named ? 0 : is_spoken_of ? 1 : 2);
        const bool may_be_renamed =
            is_named || (g.n <= 2 && f->w.has[READ_PARAMETER] && f->w.has[READ_NAMING]);
        for (size_t k = 0; k < f->n.n_fresh && may_be_renamed; k++)
            if (!is_parameter(&g, f->n.fresh[k].text))
                sign(f, may_mean(f, AGENT_READ_RENAME_PARAMETER, of->text, p, f->n.fresh[k].text), of,
                    is_named ? 0 : 2);
        if (is_named && n_named < MAX_PARAMETERS) {
            at[n_named] = agent__find_phrase(s, 0, p);
            named[n_named++] = p;
        }
    }
    for (size_t i = 0; i < n_named; i++)
        for (size_t k = 0; k < n_named; k++) {
            if (i != k) sign(f, may_mean(f, AGENT_READ_REORDER, of->text, named[i], named[k]), of, 0);
            if (f->n.n_fresh == 2 && at[i] < at[k])
                sign(f,
                    may_mean(f, AGENT_READ_RENAME_PARAMETERS, of->text, named[i], f->n.fresh[0].text,
                        of->text, named[k], f->n.fresh[1].text),
                    of, 0);
        }
    if (g.n == 2 && !n_named && f->w.has[READ_PARAMETER])
        sign(f, may_mean(f, AGENT_READ_REORDER, of->text, g.parameters[1], g.parameters[0]), of, 2);
    for (size_t k = 0; k < f->n.n_fresh; k++)
        if (!is_parameter(&g, f->n.fresh[k].text))
            sign(f, may_mean(f, AGENT_READ_INSERT, of->text, f->n.fresh[k].text), of, 0);
    agent__function_free(&g);
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
            if (n->n_fresh == 2)
                sign(f,
                    may_mean(f, AGENT_READ_RENAME_BOTH, x->text, n->fresh[0].text, y->text, n->fresh[1].text),
                    x, 0);
            if (f->w.has[READ_GOING] && !f->w.condition)
                sign(f, may_mean(f, AGENT_READ_DELETE_BOTH, x->text, y->text), y->is_place ? y : x, 0);
            for (size_t j = 0; j < n->n_files; j++)
                if (!agent__stands_in(f->a, x->text, n->files[j].text) &&
                    !agent__stands_in(f->a, y->text, n->files[j].text))
                    sign(f,
                        may_mean(
                            f, AGENT_READ_MOVE_BOTH, x->text, n->files[j].text, y->text, n->files[j].text),
                        x, 0);
        }
}

void agent__find_readings(const agent *a, const char *request, agent_readings *ret)
{
    finding f = {.a = a, .request = request, .r = ret};
    code_index *index = tool_workspace_index(a->workspace);
    *ret = (agent_readings){.n = 0};
    agent__find_names(a, request, &f.n);
    agent__read_topics(request, &f.n, &f.w);
    const read_names *n = &f.n;
    const bool may_delete = !f.w.condition; /* "f can't be needed when g is": not always */
    sign(&f, may_mean(&f, AGENT_READ_ANSWER), NULL, 0);
    for (size_t i = 0; i < n->n_fresh; i++) sign(&f, may_mean(&f, AGENT_READ_ADD, n->fresh[i].text), NULL, 0);
    for (size_t i = 0; i < n->n_known; i++) {
        const read_name *x = &n->known[i];
        if (x->rank <= 0) sign(&f, may_mean(&f, AGENT_READ_CHANGE, x->text), x, 0);
        if (x->rank <= 0) sign(&f, may_mean(&f, AGENT_READ_TEST, x->text), x, 0);
        for (size_t k = 0; k < n->n_fresh; k++)
            if (!code_index_mentions(index, n->fresh[k].text))
                sign(&f, may_mean(&f, AGENT_READ_RENAME, x->text, n->fresh[k].text), x, 0);
        for (size_t k = 0; k < n->n_files; k++)
            if (!agent__stands_in(a, x->text, n->files[k].text))
                sign(&f, may_mean(&f, AGENT_READ_MOVE, x->text, n->files[k].text), x, 0);
        if (may_delete && (f.w.has[READ_GOING] || x->rank < 0))
            sign(&f, may_mean(&f, AGENT_READ_DELETE, x->text), x, 0);
        if (x->rank < MOST_WITH_PARAMETERS) add_parameter_readings(&f, x);
    }
    add_pairs(&f);
    add_prefix_readings(&f);
    agent__names_free(&f.n);
}
