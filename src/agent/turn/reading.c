/*
 * What a request asks for, where the program's own wordings do not say it for sure: "X and Y become U and V", "nobody would miss X".
 * The operations that its names allow are few (readings.c). Each is written as a call behind a list of examples; how likely the model
 * finds it there, and how well it fits the request's words (readings_weight.c), say which is taken, in plain words ("Rename X to Y."),
 * as what the turn works with. What that is worth: docs/results.md, "Does it do everyday work?".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/readings.h"
#include "agent/turn/turn.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

enum { MOST_REQUEST = 400 };

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
    "Calls: reorder_parameters(compare, right, left)\n\n"
    "Request: trim should raise a ValueError when the text is empty.\nCalls: change(trim)\n\n"
    "Request: old_hash and old_salt are left from version 1. Away with them.\n"
    "Calls: delete(old_hash); delete(old_salt)\n\n"
    "Request: In Log.write, put the flush below the lock.\nCalls: change(Log.write)\n\n"
    "Request: Where does cache_get read from disk?\nCalls: answer()\n\n"
    "Request: What reads a line from the socket could be called recvLine.\n"
    "Calls: rename(sock_get_line, recvLine)\n\n"
    "Request: a, b of blend say nothing, base and top do\n"
    "Calls: rename_parameter(blend, a, base); rename_parameter(blend, b, top)\n\n"
    "Request: Nothing tests that split keeps empty fields.\nCalls: test(split)\n\n"
    "Request:";

/* --- what the program's own words say ---------------------------------------------------------------------- */

/* How the call begins that the program's wordings read in the text; empty: none. */
static void open_by_words(agent *a, const char *text, base_buf *ret)
{
    agent_opening opening = {0};
    agent__ask(a, text);
    if (agent__open_operation(a, text, &opening)) base_buf_add(ret, opening.call.data, opening.call.len);
    agent_opening_free(&opening);
    agent__asked_free(a);
}

/* As far as both say. */
static bool say_the_same(const base_buf *x, const base_buf *y)
{
    const size_t n = x->len < y->len ? x->len : y->len;
    return n && !memcmp(x->data, y->data, n);
}

/* Marks the readings that the request's wording says too; false: it says another operation than any of them. */
static bool sign_words(agent *a, const base_buf *said, agent_readings *r)
{
    bool has_one = !said->len;
    for (uint32_t i = 0; i < r->n && said->len; i++) {
        base_buf call = {0};
        if (r->all[i].meaning) open_by_words(a, r->all[i].meaning, &call);
        r->all[i].signs[AGENT_SIGN_WORDS] = say_the_same(said, &call);
        has_one |= r->all[i].signs[AGENT_SIGN_WORDS];
        base_buf_free(&call);
    }
    return has_one;
}

/* --- which is likeliest ----------------------------------------------------------------------------------- */

/* The log-probability of its first token, which each reading that begins so is at most as likely as. */
static int weigh_first(agent *a, const model_ids *ids, agent_readings *r, base_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < r->n; i++) {
        uint32_t k = 0;
        if (r->all[i].is_weighed) continue;
        while (k < i && (r->all[k].is_weighed || ids[k].ids[0] != ids[i].ids[0])) k++;
        if (k < i)
            r->all[i].log_p = r->all[k].log_p;
        else
            rc = a->engine->ops->weigh(a->engine, ids[i].ids, 1, &r->all[i].log_p, err);
    }
    return rc;
}

static void add_signs(agent_reading *one)
{
    one->weight = agent__weight_of_model(one) * one->log_p + agent__weigh_signs(one);
}

/* The likeliest first, by their first tokens; what cannot come within the margin of the likeliest is not read any further. */
static int weigh_best(agent *a, const model_ids *ids, double margin, agent_readings *r, base_err *err)
{
    double best = -INFINITY;
    int rc = weigh_first(a, ids, r, err);
    for (uint32_t i = 0; i < r->n; i++) {
        add_signs(&r->all[i]);
        if (r->all[i].is_weighed && r->all[i].weight > best) best = r->all[i].weight;
    }
    while (!rc) {
        uint32_t next = r->n;
        for (uint32_t i = 0; i < r->n; i++)
            if (!r->all[i].is_weighed && (next == r->n || r->all[i].weight > r->all[next].weight)) next = i;
        if (next == r->n || r->all[next].weight <= best - margin) break;
        agent_reading *one = &r->all[next];
        rc = a->engine->ops->weigh(a->engine, ids[next].ids, (uint32_t)ids[next].n, &one->log_p, err);
        add_signs(one);
        one->is_weighed = true;
        if (one->weight > best) best = one->weight;
    }
    return rc;
}

static int encode_calls(agent *a, const agent_readings *r, model_ids *ids, base_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < r->n; i++) {
        base_buf call = {0};
        base_buf_printf(&call, " %s\n", r->all[i].call);
        rc = a->engine->ops->encode(a->engine, call.data, call.len, &ids[i], err);
        base_buf_free(&call);
    }
    return rc;
}

/* log p(call | examples, request), in nats, and its signs; nothing of the session is in view. */
int agent__weigh_readings(agent *a, const char *request, double margin, agent_readings *r, base_err *err)
{
    const engine_ops *o = a->engine->ops;
    const kv_segment segment = {.origin = KV_ORIGIN_USER, .turn = a->turn};
    model_ids fixed = {0}, asked = {0}, ids[AGENT_MAX_READINGS] = {0};
    base_buf text = {0};
    base_buf_putc(&text, ' ');
    for (const char *p = request; *p; p++) base_buf_putc(&text, *p == '\n' ? ' ' : *p);
    base_buf_puts(&text, "\nCalls:");
    int rc = o->scaffold(a->engine, ENGINE_START, MODEL_ROLE_USER, &fixed, err);
    if (!rc) rc = o->encode(a->engine, examples, sizeof examples - 1, &fixed, err);
    if (!rc) rc = o->encode(a->engine, text.data, text.len, &asked, err);
    if (!rc) rc = encode_calls(a, r, ids, err);
    if (!rc) rc = o->fork_fixed(a->engine, "examples", fixed.ids, (uint32_t)fixed.n, err);
    const bool is_fork = !rc;
    if (!rc) rc = o->append(a->engine, &segment, asked.ids, (uint32_t)asked.n, err);
    if (!rc) rc = weigh_best(a, ids, margin, r, err);
    if (is_fork) o->unfork(a->engine);
    base_buf_free(&text);
    model_ids_free(&fixed);
    model_ids_free(&asked);
    for (uint32_t i = 0; i < r->n; i++) model_ids_free(&ids[i]);
    return rc;
}

static const agent_reading *find_best(const agent_readings *r, const agent_reading *but)
{
    const agent_reading *best = NULL;
    for (uint32_t i = 0; i < r->n; i++)
        if (&r->all[i] != but && (!best || r->all[i].weight > best->weight)) best = &r->all[i];
    return best;
}

/*
 * An operation only where it fits the request, and clearly better than anything else (where what has the new name is there: than another
 * operation): a wrong one does harm in many places, and where it was meant after all the model still has the request. NULL: none is clear.
 */
static const agent_reading *choose(const agent_readings *r)
{
    const agent_reading *best = find_best(r, NULL);
    bool leads = true;
    for (uint32_t i = 0; i < r->n && leads; i++) {
        const agent_reading *one = &r->all[i];
        if (one == best || (!one->meaning && r->names_it)) continue;
        const double least = agent__are_twins(best, one) ? agent__least_lead_of_twins() : agent__least_lead();
        leads = best->weight - one->weight >= least;
    }
    const bool fits = r->names_it || best->weight >= agent__least_weight();
    return !best->meaning || (fits && leads) ? best : NULL;
}

/* best NULL: nothing that is clear. */
static void tell(agent *a, const agent_readings *r, const agent_reading *best)
{
    const agent_reading *first = best ? best : find_best(r, NULL), *other = find_best(r, first);
    agent__notice(a, "%s: %s (%.2f; %s %.2f)", best ? "read as" : "not clear enough to be read as",
        first->call, first->weight, other ? other->call : "", other ? other->weight : 0);
}

static bool may_read(const agent *a, const char *request)
{
    const unsigned needed = ENGINE_BRANCH | ENGINE_WEIGHS;
    return a->settings.mode != AGENT_MODE_PLAN && !a->fix.wanted && !a->info.strong && *request != '/' &&
           (a->engine->can & needed) == needed && agent__can_begin_calls(a) &&
           !model_tools_are_marked(a->info.tools) && strlen(request) <= MOST_REQUEST;
}

/* Does the call that is begun say of what? */
static bool names_one(const base_buf *call)
{
    static const char open[] = "\"name\": \"";
    const size_t n = sizeof open - 1;
    return call->len && !(call->len >= n && !memcmp(call->data + call->len - n, open, n));
}

/* What words say of it. Is that so clear that nothing is weighed? */
static bool read_words(agent *a, const char *request, bool is_doubtful, base_buf *ret_said)
{
    agent_addition_words addition;
    open_by_words(a, request, ret_said);
    agent__ask(a, request);
    const bool is_addition = agent_read_addition_words(request, &addition);
    const bool is_sure = is_addition || a->asked.test_alone ||
                         (names_one(ret_said) && !is_doubtful && agent__is_sure_operation(a, request));
    agent_addition_words_free(&addition);
    agent__asked_free(a);
    return is_sure;
}

bool agent__read_signs(agent *a, const char *request, agent_readings *ret, base_buf *ret_said)
{
    *ret = (agent_readings){.n = 0};
    if (!may_read(a, request) || agent__asks_question(request)) return false;
    if (agent__orders_behaviour(request) || agent__complains(request)) return true;
    const bool is_doubtful = agent__is_doubtful_wording(a, request);
    const bool is_sure = read_words(a, request, is_doubtful, ret_said);
    if (!is_sure) agent__find_readings(a, request, ret);
    const bool is_said = sign_words(a, ret_said, ret), has_operation = ret->has_operation;
    if ((!is_said && !is_doubtful) || !has_operation)
        agent__readings_free(ret); /* what they say is nothing that is weighed here */
    return is_doubtful && !is_sure && ret_said->len && !has_operation;
}

int agent__read_meaning(agent *a, const char *request, char **ret, base_buf *ret_asks, base_err *err)
{
    agent_readings r;
    base_buf said = {0};
    *ret = agent__read_which(a, request);
    if (*ret) return BASE_OK;
    if (agent__read_signs(a, request, &r, &said)) a->read_as = AGENT_READ_AS_CHANGE;
    const int rc = r.n ? agent__weigh_readings(a, request, agent__least_lead_of_twins(), &r, err) : 0;
    const agent_reading *best = !rc && r.n ? choose(&r) : NULL;
    if (!rc && r.n) tell(a, &r, best);
    if (best && best->meaning)
        *ret = agent__say_besides(request, best->meaning);
    else if (!rc && r.n && (!best || best->kind == AGENT_READ_ADD) &&
             agent__ask_which(a, request, &r, ret_asks))
        a->read_as = AGENT_READ_AS_CHANGE;
    else if (!rc && r.n)
        a->read_as = best && best->kind == AGENT_READ_ANSWER ? AGENT_READ_AS_ANSWER : AGENT_READ_AS_CHANGE;
    agent__readings_free(&r);
    base_buf_free(&said);
    return rc;
}
