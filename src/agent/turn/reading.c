/*
 * What a request asks for, where no wording that the program knows says it: "X and Y become U and V", "nobody would miss X". The
 * operations that its names allow are few. Each is written as a call behind a list of examples, and the one that the model finds
 * likeliest there, in plain words ("Rename X to Y."), is what the turn works with. What that is worth: docs/results.md, "Does it do
 * everyday work?".
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

enum { MAX_NAMES = 5, MAX_FRESH = 3, MAX_FILES = 2, MAX_READINGS = 64, MOST_REQUEST = 400 };

/* No sentence of them stands in a set that anything is measured with. */
static const char examples[] =
    "What a developer asks for, as calls.\n\n"
    "Request: Rename parse_args to read_args.\nCalls: rename(parse_args, read_args)\n\n"
    "Request: Nobody calls free_row any more.\nCalls: delete(free_row)\n\n"
    "Request: TmpBuf is a poor name. It is a ring, so make it RingBuffer, in the docs too.\n"
    "Calls: rename(TmpBuf, RingBuffer)\n\n"
    "Request: Write a function area(w, h) in shapes.c which returns the product.\nCalls: add(area)\n\n"
    "Request: load_all and load_one don't fit, read_all and read_one would.\n"
    "Calls: rename(load_all, read_all); rename(load_one, read_one)\n\n"
    "Request: the index i of skip_line -> start please\nCalls: rename_parameter(skip_line, i, start)\n\n"
    "Request: merge_keys has no business in main.py, util.py is where it should live.\n"
    "Calls: move(merge_keys, util.py)\n\n"
    "Request: open_file never gets flags, it could do without.\nCalls: drop_parameter(open_file, flags)\n\n"
    "Request: Remove the check for an empty list from sum_all.\nCalls: change(sum_all)\n\n"
    "Request: send wants a timeout behind the address, 30 unless somebody says otherwise.\n"
    "Calls: add_parameter(send, timeout)\n\n"
    "Request: We have to count words somewhere, with something like countWords.\nCalls: add(countWords)\n\n"
    "Request: Why not startWalk instead of beginWalk?\nCalls: rename(beginWalk, startWalk)\n\n"
    "Request: For compare the right side should come first, in all its calls as well.\n"
    "Calls: reorder_parameters(compare)\n\n"
    "Request: trim should raise a ValueError when the text is empty.\nCalls: change(trim)\n\n"
    "Request: old_hash and old_salt are left from version 1. Away with them.\n"
    "Calls: delete(old_hash); delete(old_salt)\n\n"
    "Request: In Log.write, put the flush below the lock.\nCalls: change(Log.write)\n\n"
    "Request: Where does cache_get read from disk?\nCalls: answer()\n\n"
    "Request: Nothing tests that split keeps empty fields.\nCalls: test(split)\n\n"
    "Request: ";

typedef enum reading_kind {
    RENAME,
    RENAME_BOTH,
    RENAME_PARAMETER,
    MOVE,
    DELETE,
    DELETE_BOTH,
    DROP,
    INSERT,
    REORDER,
    ADD,
    CHANGE,
    TEST,
    ANSWER
} reading_kind;

/*
 * How each is called in the examples, and said where the program takes it; NULL: the request stands as it is. bias: nats that the
 * model finds it likelier than it is, on the half `a` of tests/requests/wordings.jsonl.
 */
static const struct form {
    const char *call, *sentence;
    double bias;
} forms[] = {
    [RENAME] = {"rename(%s, %s)", "Rename %s to %s.", 0},
    [RENAME_BOTH] = {"rename(%s, %s); rename(%s, %s)", "Rename %s to %s and %s to %s.", -6},
    [RENAME_PARAMETER] = {"rename_parameter(%s, %s, %s)", "In %s, rename the parameter %s to %s.", -5},
    [MOVE] = {"move(%s, %s)", "Move %s to %s.", 0},
    [DELETE] = {"delete(%s)", "Delete %s.", -1},
    [DELETE_BOTH] = {"delete(%s); delete(%s)", "Delete %s and %s.", -5},
    [DROP] = {"drop_parameter(%s, %s)", "From %s, remove the parameter %s.", -5},
    [INSERT] = {"add_parameter(%s, %s)", "Give %s a parameter %s: ", -5},
    [REORDER] = {"reorder_parameters(%s)", NULL, 0},
    [ADD] = {"add(%s)", NULL, 0},
    [CHANGE] = {"change(%s)", NULL, 0},
    [TEST] = {"test(%s)", NULL, 0},
    [ANSWER] = {"answer()", NULL, 1},
};

typedef struct reading {
    reading_kind kind;
    char *call, *meaning; /* meaning NULL: nothing that the program does */
    double weight;
} reading;

/* What the request names: definitions of the tree, names that it does not write, files of code. */
typedef struct names {
    char *known[MAX_NAMES], *fresh[MAX_FRESH], *files[MAX_FILES];
    size_t n_known, n_fresh, n_files;
} names;

static void names_free(names *n)
{
    for (size_t i = 0; i < n->n_known; i++) free(n->known[i]);
    for (size_t i = 0; i < n->n_fresh; i++) free(n->fresh[i]);
    for (size_t i = 0; i < n->n_files; i++) free(n->files[i]);
}

/* Takes the name, once. */
static void keep(char **all, size_t *n, size_t most, char *name)
{
    bool is_there = *n == most;
    for (size_t i = 0; i < *n && !is_there; i++) is_there = !strcmp(all[i], name);
    if (is_there)
        free(name);
    else
        all[(*n)++] = name;
}

/* --- what is named ---------------------------------------------------------------------------------------- */

/* Written as nobody writes a word of a sentence. */
static bool is_coded(const char *s, agent_word w)
{
    size_t n_capitals = 0, n_digits = 0;
    for (size_t i = w.from; i < w.to; i++) {
        n_capitals += isupper((unsigned char)s[i]) != 0;
        n_digits += isdigit((unsigned char)s[i]) != 0;
    }
    const bool is_marked = w.from && agent__is_mark(s[w.from - 1]) && s[w.from - 1] == s[w.to];
    return agent__looks_like_name(s, w) || is_marked || s[w.from] == '_' || s[w.to] == '(' ||
           n_capitals > 1 || (n_digits && n_digits < w.to - w.from && isalpha((unsigned char)s[w.from]));
}

/* A plain word that stands where a new name does: "call it total", "... -> total". */
static bool is_given(const char *s, agent_word w)
{
    static const char *const givers[] = {"to", "into", "called", "named", "it", "them", "as", "say", "become",
        "becomes", "name", "than", NULL};
    agent_word before;
    if (w.from > 2 && !strncmp(s + w.from - 3, "-> ", 3)) return true;
    return agent__word_before(s, w.from, &before) && agent__is_any_word(s, before, givers) &&
           (!s[w.to] || strchr(".,;:!?\n", s[w.to]) || !strncasecmp(s + w.to, " please", 7));
}

static void find_names(const agent *a, const char *s, names *ret)
{
    code_index *index = tool_workspace_index(a->workspace);
    agent_word m, w;
    for (size_t at = 0; agent__next_mention(s, at, &m); at = m.to > at ? m.to : at + 1) {
        if (m.from == m.to) continue;
        char *mention = agent__copy_word(s, m);
        const char *language = strchr(mention, '.') ? code_language(mention, "", 0) : NULL;
        if (language && !code_language_is_document(language)) {
            keep(ret->files, &ret->n_files, MAX_FILES, mention);
            continue;
        }
        free(mention);
        for (size_t k = m.from; k < m.to && agent__next_word(s, k, &w) && w.from < m.to; k = w.to) {
            agent_word whole = w;
            while (strchr(".#:", s[whole.to]) && s[whole.to] &&
                   agent__is_in_word(s, whole.to + strspn(s + whole.to, ".#:"))) {
                whole.to += strspn(s + whole.to, ".#:");
                while (agent__is_in_word(s, whole.to)) whole.to++;
            }
            char *name = agent__copy_word(s, whole);
            if (!code_index_is_defined(index, name) && whole.to != w.to) { /* "tree.c:walk" */
                free(name);
                whole = w;
                name = agent__copy_word(s, whole);
            }
            const bool is_content = agent__is_content_word(name, strlen(name)) && whole.to - whole.from > 1;
            w = whole;
            if (code_index_is_defined(index, name) && (is_coded(s, whole) || is_content))
                keep(ret->known, &ret->n_known, MAX_NAMES, name);
            else if (!code_index_mentions(index, name) && !isdigit((unsigned char)*name) &&
                     (is_coded(s, whole) || (is_content && is_given(s, whole))))
                keep(ret->fresh, &ret->n_fresh, MAX_FRESH, name);
            else
                free(name);
        }
    }
}

/* --- what may be meant ------------------------------------------------------------------------------------ */

typedef struct readings {
    reading all[MAX_READINGS];
    uint32_t n;
    bool has_operation; /* one at least that the program would do */
} readings;

static void readings_free(readings *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        free(r->all[i].call);
        free(r->all[i].meaning);
    }
}

/* The names are those of the form's call, in order. */
static void may_mean(readings *r, reading_kind kind, ...)
{
    const struct form *form = &forms[kind];
    const char *const texts[] = {form->call, form->sentence};
    char *made[2] = {NULL, NULL};
    if (r->n == MAX_READINGS) return;
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
        made[i] = base_buf_take(&text);
    }
    r->all[r->n++] = (reading){.kind = kind, .call = made[0], .meaning = made[1]};
    r->has_operation |= made[1] != NULL;
}

/* A word that may say that something is to go, and no question: "can I delete it?" */
static bool says_going(const char *request)
{
    static const char *const cues[] = {"delete", "deleted", "deleting", "remove", "removed", "removing",
        "removal", "drop", "dropped", "gone", "go", "goes", "rid", "need", "needs", "needed", "require",
        "required", "superfluous", "obsolete", "miss", "misses", "unused", "uses", "used", "dead", "exist",
        "disappear", "lose", "away", "out", "useless", "without", "left", "kill", "purge", "redundant",
        "deprecated", "calls", NULL};
    size_t n = strlen(request);
    while (n && isspace((unsigned char)request[n - 1])) n--;
    return agent__has_any_word(request, cues) && !(n && request[n - 1] == '?');
}

/* ... and that it may be a definition, at any time. */
static bool may_delete(const char *request)
{
    static const char *const others[] = {"when", "whenever", "if", "unless", "once", "parameter",
        "parameters", "argument", "arguments", "param", "arg", NULL};
    return says_going(request) && !agent__has_any_word(request, others);
}

/* Of a parameter that the request names with its function. */
static void add_parameter_readings(
    const agent *a, const char *request, const names *n, const char *name, readings *r)
{
    agent_function f = {0};
    if (!agent__look_up_function(a, name, &f)) return;
    for (size_t i = 0; i < f.n; i++) {
        if (!agent__has_word(request, f.parameters[i]) || !strcmp(f.parameters[i], name)) continue;
        if (says_going(request)) may_mean(r, DROP, name, f.parameters[i]);
        for (size_t k = 0; k < n->n_fresh; k++)
            may_mean(r, RENAME_PARAMETER, name, f.parameters[i], n->fresh[k]);
    }
    if (f.n > 1) may_mean(r, REORDER, name);
    for (size_t k = 0; k < n->n_fresh; k++) may_mean(r, INSERT, name, n->fresh[k]);
    agent__function_free(&f);
}

static void find_readings(const agent *a, const char *request, const names *n, readings *r)
{
    const bool deletes = may_delete(request);
    may_mean(r, ANSWER);
    for (size_t i = 0; i < n->n_known; i++)
        for (size_t k = i + 1; k < n->n_known; k++) {
            if (n->n_fresh == 2) may_mean(r, RENAME_BOTH, n->known[i], n->fresh[0], n->known[k], n->fresh[1]);
            if (deletes) may_mean(r, DELETE_BOTH, n->known[i], n->known[k]);
        }
    for (size_t i = 0; i < n->n_fresh; i++) may_mean(r, ADD, n->fresh[i]);
    for (size_t i = 0; i < n->n_known; i++) {
        may_mean(r, CHANGE, n->known[i]);
        may_mean(r, TEST, n->known[i]);
        for (size_t k = 0; k < n->n_fresh; k++) may_mean(r, RENAME, n->known[i], n->fresh[k]);
        for (size_t k = 0; k < n->n_files; k++)
            if (!agent__stands_in(a, n->known[i], n->files[k])) may_mean(r, MOVE, n->known[i], n->files[k]);
        if (deletes) may_mean(r, DELETE, n->known[i]);
        add_parameter_readings(a, request, n, n->known[i], r);
    }
}

/* --- which is likeliest ----------------------------------------------------------------------------------- */

/* log p(call | examples, request), in nats; nothing of the session is in view. */
static int weigh_all(agent *a, const char *request, readings *r, base_err *err)
{
    const engine_ops *o = a->engine->ops;
    const kv_segment segment = {.origin = KV_ORIGIN_USER, .turn = a->turn};
    model_ids front = {0};
    base_buf text = {0};
    base_buf_puts(&text, examples);
    for (const char *p = request; *p; p++) base_buf_putc(&text, *p == '\n' ? ' ' : *p);
    base_buf_puts(&text, "\nCalls:");
    int rc = o->scaffold(a->engine, ENGINE_START, MODEL_ROLE_USER, &front, err);
    if (!rc) rc = o->encode(a->engine, text.data, text.len, &front, err);
    if (!rc) rc = o->fork(a->engine, err);
    const bool is_fork = !rc;
    if (!rc) rc = o->truncate(a->engine, 0, err);
    if (!rc) rc = o->append(a->engine, &segment, front.ids, (uint32_t)front.n, err);
    for (uint32_t i = 0; !rc && i < r->n; i++) {
        model_ids ids = {0};
        base_buf call = {0};
        base_buf_printf(&call, " %s\n", r->all[i].call);
        rc = o->encode(a->engine, call.data, call.len, &ids, err);
        if (!rc) rc = o->weigh(a->engine, ids.ids, (uint32_t)ids.n, &r->all[i].weight, err);
        r->all[i].weight -= forms[r->all[i].kind].bias;
        base_buf_free(&call);
        model_ids_free(&ids);
    }
    if (is_fork) o->unfork(a->engine);
    base_buf_free(&text);
    model_ids_free(&front);
    return rc;
}

static void tell(agent *a, const readings *r, const reading *best)
{
    const reading *other = NULL;
    for (uint32_t i = 0; i < r->n; i++)
        if (&r->all[i] != best && (!other || r->all[i].weight > other->weight)) other = &r->all[i];
    agent__notice(a, "read as: %s (log p %.1f; %s %.1f)", best->call, best->weight, other ? other->call : "",
        other ? other->weight : 0);
}

/* Do words of the request say it already? */
static bool is_said_in_words(agent *a, const char *request)
{
    agent_opening opening = {0};
    agent_addition_words addition;
    agent__ask(a, request);
    bool is_said = agent__open_operation(a, request, &opening);
    is_said |= agent_read_addition_words(request, &addition);
    agent_addition_words_free(&addition);
    agent_opening_free(&opening);
    agent__asked_free(a);
    return is_said;
}

static bool may_read(const agent *a, const char *request)
{
    const unsigned needed = ENGINE_BRANCH | ENGINE_WEIGHS;
    return a->settings.mode != AGENT_MODE_PLAN && !a->fix.wanted && !a->info.strong && *request != '/' &&
           (a->engine->can & needed) == needed && agent__can_begin_calls(a) &&
           !model_tools_are_marked(a->info.tools) && strlen(request) <= MOST_REQUEST;
}

int agent__read_meaning(agent *a, const char *request, char **ret, base_err *err)
{
    readings r = {0};
    names n = {0};
    int rc = 0;
    *ret = NULL;
    if (!may_read(a, request) || is_said_in_words(a, request)) return 0;
    find_names(a, request, &n);
    find_readings(a, request, &n, &r);
    if (r.has_operation) rc = weigh_all(a, request, &r, err);
    reading *best = NULL;
    for (uint32_t i = 0; !rc && r.has_operation && i < r.n; i++)
        if (!best || r.all[i].weight > best->weight) best = &r.all[i];
    if (best) tell(a, &r, best);
    if (best && best->meaning) {
        base_buf meaning = {0};
        base_buf_puts(&meaning, best->meaning);
        if (best->kind == INSERT) base_buf_puts(&meaning, request); /* its default, what callers pass */
        *ret = base_buf_take(&meaning);
    }
    readings_free(&r);
    names_free(&n);
    return rc;
}
