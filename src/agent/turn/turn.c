/*
 * A turn: the request with what the program found for it, then answers and calls in turn until an answer
 * without a call. The template's tail (the end of a message and the opening of the answer) is appended after
 * the repair, so that the first token of every answer is computed over what the newest message asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/act/act.h"
#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/judge/judge.h"
#include "agent/lifetime/lifetime.h"
#include "agent/newtest/newtest.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "agent/words/name_question.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/numbers.h"

enum { LEAST_ROOM = 192 };

static void turn_begins(agent *a, const char *request)
{
    a->turn++;
    a->denied = a->at_limit = false;
    a->read_as = AGENT_READ_AS_SAID;
    agent__asked_free(a);
    agent__fix_free(a);
    char *copy = base_xstrdup(request);
    free(a->request);
    a->request = copy;
    a->ledger.sums = (agent_sums){.n_before = agent__n_tokens(a)};
    base_grow(&a->transcript.turn_starts, &a->transcript.cap_turn_starts, a->turn + 1,
        sizeof *a->transcript.turn_starts);
    a->transcript.turn_starts[a->turn] = a->ledger.sums.n_before;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_user,
                       .user = {.turn = a->turn, .text = request, .time_ms = base_clock_wall_ms()}});
    agent__commit(a);
    agent__set_turn(a, a->turn);
    tool_workspace_turn(a->workspace, a->turn);
    agent__find_test(a, request);
}

/* What the request asks for, before anything is changed (asked/): what is to be different when the turn ends. */
static void find_wishes(agent *a, const char *request)
{
    agent__ask(a, request);
    agent__wish_each(a, request);
    agent__wish_users(a, request);
    a->asked.is_operation = agent__is_operation_alone(a, request);
    if (agent__can_begin_calls(a)) agent__find_acting(a, request);
    if (agent__can_begin_calls(a) && !a->asked.n_meant) agent__find_meant(a, request);
    if (agent__can_begin_calls(a)) agent__find_mended_test(a, request);
    agent__wish_files(a, request);
}

/*
 * Opens the request's message and appends what stands in front of it: tools that are new to the model, what was put
 * aside and comes back, excerpts of the tree (or its changes, where the request asks about them), the test beside a
 * new one, a test's failure. answer: what the program says to it by itself; mostly nothing.
 */
static int append_front(agent *a, const char *request, base_buf *answer, base_err *err)
{
    const bool asks = agent__asks_about_changes(a, request);
    bool has_changes = false;
    int rc = agent__open_message(a, MODEL_ROLE_USER, err);
    if (!rc) rc = agent__append_outside(a, err);
    if (!rc) rc = agent__append_aside(a, request, err);
    if (!rc && asks) rc = agent__append_changes(a, request, &has_changes, answer, err);
    find_wishes(a, request);
    if (!rc && !has_changes && !answer->len) rc = agent__append_context(a, request, err);
    if (!rc && agent__can_begin_calls(a)) rc = agent__append_members(a, request, err);
    if (!rc) rc = agent__append_new_test(a, request, err);
    if (!rc && a->fix.wanted) rc = agent__run_test_first(a, err);
    return rc;
}

/*
 * The request's message, the repair that it asks for, and the opening of the answer. meaning: of its words; mostly those. answer:
 * what the program says to it by itself.
 */
static int append_request(agent *a, const char *request, const char *meaning, base_buf *answer, base_err *err)
{
    base_buf text = {0};
    agent__notice_changes(a, &text);
    int rc = append_front(a, meaning, answer, err);
    agent__tell_operation(a, meaning, &text);
    base_buf_puts(&text, agent_prompt_request);
    base_buf_puts(&text, request);
    if (meaning != request) base_buf_printf(&text, "\n%s", meaning);
    if (a->has_excerpts && !a->asked.change && !a->info.strong && agent_asks_for_one_name(request))
        base_buf_puts(&text, agent_prompt_one);
    agent__put_schema(a, &text);
    size_t index = SIZE_MAX;
    agent_text t = {.origin = KV_ORIGIN_USER, .text = text.data, .n = text.len, .label = "request"};
    if (!rc) rc = agent__append(a, &t, &index, err);
    if (!rc && index != SIZE_MAX)
        rc = agent__repair(a, a->transcript.segments[index].from, a->transcript.segments[index].to, err);
    agent__expect(a, 0);
    if (!rc) rc = agent__open_message(a, MODEL_ROLE_ASSISTANT, err);
    base_buf_free(&text);
    return rc;
}

static const char *const end_notices[] = {
    [AGENT_REPLY_REPEATS] = "the answer went round in circles and was stopped",
    [AGENT_REPLY_CANCELLED] = "interrupted; what was answered so far is kept",
};

/*
 * The first attempt as the person set it; a further one warmer, or a deterministic model would say the same
 * again.
 */
static void set_sampling(agent *a, bool further)
{
    model_sampling s = a->info.sampling;
    if (further && s.temperature < 0.7f) {
        s.temperature = 0.7f;
        s.top_p = 0.95f;
        s.seed += a->fix.attempts + a->fix.asked_again;
        if (a->fix.repeated) { /* that was not warm enough */
            s.temperature = 1.0f;
            s.seed += a->fix.repeated;
        }
    }
    a->engine->ops->set_sampling(a->engine, &s);
}

/* The candidate whose test passed, or whose change fits best, becomes the answer; *taken false: there is none. */
static int take_candidate(agent *a, const agent_opening *opening, agent_reply *r, bool *taken, base_err *err)
{
    model_ids ids = {0};
    int rc = opening->call.len ? 0 : agent__try(a, &ids, err);
    if (!rc && !ids.n && agent__choosing_is_due(a)) rc = agent__choose(a, opening, &ids, err);
    if (!rc && ids.n) {
        rc = agent__reply_take(a, r, &ids, err);
        *taken = !rc;
    }
    model_ids_free(&ids);
    return rc;
}

/*
 * The answer as JSON of the schema. What is not is asked for once more (*again), without calls; then the turn has
 * failed.
 */
static int take_json(agent *a, const agent_reply *r, const engine_hold *hold, bool *asked, bool *again,
    base_buf *ret, base_err *err)
{
    base_err why = {0};
    if (!agent__take_json(a, r->read.text.data ? r->read.text.data : "", r->read.text.len, ret, &why)) {
        if (hold->was_cut && !a->at_limit) {
            agent__notice(a,
                "the answer was closed at its limit of %u tokens: the "
                "JSON is whole, what it says may not be (--max-tokens)",
                hold->n_tokens);
            a->at_limit = true;
        }
        return BASE_OK;
    }
    if (*asked) {
        agent__reply_tell(a, r, NULL);
        return base_fail(
            err, BASE_E_FORMAT, "the answer is not JSON of the schema, asked twice: %.300s", why.msg);
    }
    base_buf asking = {0};
    *asked = *again = true;
    agent__notice(a, "the answer is not JSON of the schema (%.200s): it is asked once more", why.msg);
    agent__put_schema_again(a, &why, &asking);
    const int rc = agent__append_asking(a, &asking, err);
    base_buf_free(&asking);
    return rc;
}

/* What the program says in place of the model. */
static int answer_by_program(agent *a, const base_buf *said, base_err *err)
{
    agent_reply r = {.from = agent__n_tokens(a), .origin = KV_ORIGIN_ANSWER, .end = AGENT_REPLY_DONE};
    size_t told = 0;
    agent__reader_begin(a, &r.read);
    const int rc = agent__reply_write(a, &r, said, &told, err);
    r.to = agent__n_tokens(a);
    if (!rc) agent__reply_tell(a, &r, NULL);
    agent__reply_free(&r);
    return rc;
}

/*
 * An operation was all that the request asks for: what the tool said of it, done or refused, is the answer. The model would say
 * it once more, and not always right. *is_answered false: there is more to do.
 */
static int answer_for_operation(agent *a, bool *is_answered, base_err *err)
{
    base_buf said = {0};
    *is_answered = !model_tools_are_marked(a->info.tools) && agent__put_operation_answer(a, &said);
    if (!*is_answered) return BASE_OK;
    a->asked.is_told = true;
    const int rc = answer_by_program(a, &said, err);
    base_buf_free(&said);
    return rc;
}

/* What the next answer is begun with: a further attempt, or the call that the request asks for. */
static int open_answer(agent *a, const char *request, uint32_t steps, agent_opening *opening, base_err *err)
{
    const bool can_begin = agent__can_begin_calls(a), is_further = a->fix.copied || a->fix.attempts;
    /* Candidates come first, and the first of them is not begun for the model. */
    const bool opens = a->fix.open_call && can_begin && !agent__tries_are_due(a);
    int rc = opens ? agent__open_further(a, is_further, opening, err) : 0;
    a->fix.open_call = false;
    if (!can_begin) return rc;
    /* The first one, and those of a list behind it ("move a and b to c"). */
    if (!rc && (steps == a->asked.n_operations || agent__has_operation_left(a)) && !opening->call.len)
        agent__open_operation(a, request, opening);
    if (!rc && !opening->call.len) agent__open_instead(a, opening);
    if (!rc && !opening->call.len) agent__open_spelling(a, request, opening);
    if (!rc && !opening->call.len) agent__open_version(a, request, opening);
    if (!rc && !opening->call.len) agent__open_document(a, opening);
    if (!rc && !opening->call.len && a->asked.new_test.path && agent__tries_are_due(a)) return rc;
    if (!rc && !opening->call.len) agent__open_new_test(a, opening);
    if (!rc && !opening->call.len) agent__open_addition(a, request, opening);
    if (!rc && !opening->call.len) agent__open_export(a, request, opening);
    if (!rc && !opening->call.len) rc = agent__open_behaviour(a, opening, err);
    return rc;
}

static int check_room(agent *a, base_err *err)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    if (s.n_ctx - s.n_tokens >= LEAST_ROOM) return BASE_OK;
    a->at_limit = true;
    return base_fail(err, BASE_E_LIMIT,
        "the context of %u tokens is full: /compact goes on in a smaller session with what is still "
        "active; a session with --kv-budget auto and without --ctx has no end",
        s.n_ctx);
}

/* What stopped an answer in its middle. */
static void tell_end(agent *a, const agent_reply *r)
{
    const engine_ops *o = a->engine->ops;
    const bool is_cut = r->end == AGENT_REPLY_TOO_LONG, is_theirs = o->answer_cut && o->answer_cut(a->engine);
    base_buf why = {0};
    if (is_theirs)
        base_buf_printf(&why,
            "the server ended it: at a limit of its own, at the end of its context or at the %u tokens that "
            "were asked for (--max-tokens)",
            a->settings.max_tokens);
    else
        base_buf_printf(
            &why, "an answer has %u tokens; --max-tokens N gives it more", a->settings.max_tokens);
    if (is_cut && agent__reply_begins_call(r))
        agent__notice(a,
            "the answer was cut inside of a call, which is not whole: nothing of it was done (%s)", why.data);
    else if (is_cut)
        agent__notice(a, "the answer %s (%s)",
            is_theirs ? "was cut" : "reached its limit of tokens and was cut", why.data);
    else if (end_notices[r->end])
        agent__notice(a, "%s", end_notices[r->end]);
    base_buf_free(&why);
}

/*
 * One answer, begun as the turn wants it: a candidate whose test passed, or what the model writes. hold: of the schema.
 */
static int read_answer(
    agent *a, const char *request, uint32_t steps, engine_hold *hold, agent_reply *r, base_err *err)
{
    agent_opening opening = {0};
    bool taken = false;
    int rc = open_answer(a, request, steps, &opening, err);
    if (a->fix.attempts || a->fix.asked_again) set_sampling(a, !a->fix.passed && !opening.is_doubt);
    if (!rc) rc = take_candidate(a, &opening, r, &taken, err);
    if (!rc && !taken) rc = agent__reply_decode(a, r, &opening, a->settings.schema ? hold : NULL, err);
    agent_opening_free(&opening);
    if (rc) return rc;
    tell_end(a, r);
    if (r->end == AGENT_REPLY_DONE && agent__offer_rewrite(a, &r->read.text, &r->calls[0])) {
        r->n_calls = 1;
        r->end = AGENT_REPLY_CALL;
    }
    if (r->end == AGENT_REPLY_CALL && steps >= a->settings.max_steps) {
        agent__notice(a, "stopped after %u tool calls in one turn; say \"go on\" to let it work further",
            a->settings.max_steps);
        r->end = AGENT_REPLY_TOO_LONG;
        a->at_limit = true;
    }
    return BASE_OK;
}

/* What a turn of several answers keeps between them. */
typedef struct conversation {
    const char *request;
    agent_askings left;  /* what the model may still be asked for */
    bool asked_for_json; /* once more, since it was none */
    bool interrupted;
} conversation;

/* One answer and what follows from it: its calls, or asking for what it lacks. *ret_goes_on: another answer is due. */
static int answer_once(agent *a, conversation *c, uint32_t steps, bool *ret_goes_on, base_err *err)
{
    agent_reply r = {0};
    base_buf json = {0};
    const bool may_call = steps < a->settings.max_steps;
    engine_hold hold = agent__hold(a, may_call && !c->asked_for_json);
    int rc = read_answer(a, c->request, steps, &hold, &r, err);
    const bool is_call = r.end == AGENT_REPLY_CALL;
    bool asked = false, stop = !is_call, is_answered = false;
    if (!rc) rc = agent__ask_more(a, &r, may_call, &c->left, &asked, err);
    if (!rc && !asked && a->settings.schema && !is_call && r.end != AGENT_REPLY_CANCELLED)
        rc = take_json(a, &r, &hold, &c->asked_for_json, &asked, &json, err);
    if (!rc && !asked && !is_call) agent__reply_tell(a, &r, json.data);
    if (!rc && is_call) rc = agent__act(a, r.calls, r.n_calls, r.from, r.to, &stop, err);
    c->interrupted = r.end == AGENT_REPLY_CANCELLED;
    base_buf_free(&json);
    agent__reply_free(&r);
    *ret_goes_on = !rc && (asked || !stop);
    if (*ret_goes_on && !asked) rc = answer_for_operation(a, &is_answered, err);
    if (rc || is_answered) *ret_goes_on = false;
    return rc;
}

/* Answers and calls until an answer without a call. */
static int converse(agent *a, const char *request, bool *interrupted, base_err *err)
{
    conversation c = {.request = request, .left = agent__askings(a, request)};
    bool goes_on = true;
    int rc = 0;
    for (uint32_t steps = 0; !rc && goes_on; steps++) {
        rc = check_room(a, err);
        if (!rc) rc = answer_once(a, &c, steps, &goes_on, err);
    }
    *interrupted = c.interrupted;
    return rc;
}

/*
 * A turn that came to its end finishes its message. After an interruption, a failure or in a full context it
 * stays open and the next message's scaffold ends it: nobody waits for a forward pass to see that Esc was
 * heard.
 */
static void close_message(agent *a)
{
    base_err err = {0};
    if (a->transcript.open_role >= 0 && agent__open_message(a, -1, &err) && err.code != BASE_E_LIMIT &&
        err.code != BASE_E_CANCELLED)
        agent__error(a, &err);
}

static void turn_ends(agent *a, const char *status)
{
    agent__ledger(a);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_turn_end,
                       .turn_end = {.turn = a->turn, .status = status, .time_ms = base_clock_wall_ms()}});
    agent__commit(a);
    a->unsaved = true;
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    if (!s.endless && s.n_tokens > s.n_ctx / 10 * 9)
        agent__notice(a, "%s of %s tokens of the context are used: /compact goes on in a smaller session",
            BASE_THOUSANDS(s.n_tokens), BASE_THOUSANDS(s.n_ctx));
}

int agent__turn(agent *a, const char *request, base_err *err)
{
    base_err mine = {0};
    bool interrupted = false;
    char *meaning = NULL;
    turn_begins(a, request);
    char *mended = agent__mend_spelling(a, request);
    if (mended) {
        request = mended;
        free(a->request);
        a->request = base_xstrdup(mended);
    }
    base_buf answer = {0};
    int rc = 0;
    if (a->offered != code_index_chunks(tool_workspace_index(a->workspace)))
        rc = agent__offer_tools(a, &mine);
    if (!rc) rc = agent__read_meaning(a, request, &meaning, &answer, &mine);
    if (meaning) { /* what is looked for in the tree at the end, too */
        free(a->request);
        a->request = meaning;
    }
    const bool asks = answer.len > 0;
    if (!rc) rc = append_request(a, request, meaning ? a->request : request, &answer, &mine);
    const bool is_said = answer.len && !model_tools_are_marked(a->info.tools) && !a->settings.schema;
    a->asked.is_open = asks;
    if (answer.len && !is_said) agent__notice(a, "%s", answer.data);
    if (!rc && is_said) rc = answer_by_program(a, &answer, &mine);
    if (!rc && !is_said) rc = converse(a, meaning ? a->request : request, &interrupted, &mine);
    if (rc == BASE_E_CANCELLED) {
        interrupted = true;
        agent__notice(a, "interrupted");
        rc = 0;
    }
    if (rc) agent__error(a, &mine);
    if (a->fix.attempts) set_sampling(a, false);
    if (!rc && !interrupted) agent__try_new_test(a);
    if (!rc && !interrupted) agent__judge_late(a);
    agent__tell_outcome(a);
    if (!rc && !interrupted) close_message(a);
    if (!rc && !interrupted) agent__drop_thoughts(a);
    turn_ends(a, interrupted ? "interrupted" : rc ? "failed" : "closed");
    base_buf_free(&answer);
    free(mended);
    if (rc && err) *err = mine;
    return rc;
}

/* What the model reads and is asked, up to the opening of its answer. */
static int append_material(agent *a, const agent_draft *d, base_err *err)
{
    agent_text material = {
        .origin = KV_ORIGIN_TOOL, .text = d->material, .n = strlen(d->material), .label = d->label};
    agent_text asking = {
        .origin = KV_ORIGIN_USER, .text = d->asking, .n = strlen(d->asking), .label = "request"};
    int rc = agent__open_message(a, MODEL_ROLE_USER, err);
    if (!rc) rc = agent__append(a, &material, NULL, err);
    if (!rc) rc = agent__append(a, &asking, NULL, err);
    return rc ? rc : agent__open_message(a, MODEL_ROLE_ASSISTANT, err);
}

int agent__draft(agent *a, const agent_draft *d, base_buf *ret, base_err *err)
{
    const agent_opening opening = {0};
    agent_reply r = {0};
    base_err mine = {0};
    turn_begins(a, d->request);
    int rc = append_material(a, d, &mine);
    if (!rc) rc = agent__reply_decode(a, &r, &opening, NULL, &mine);
    if (!rc && r.read.text.len)
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_answer,
                           .answer = {.turn = a->turn, .text = r.read.text.data}});
    if (!rc && r.end == AGENT_REPLY_CANCELLED) rc = base_fail(&mine, BASE_E_CANCELLED, "interrupted");
    const bool interrupted = rc == BASE_E_CANCELLED;
    if (!rc && r.end != AGENT_REPLY_DONE)
        rc = base_fail(&mine, BASE_E_STATE, "the model did not come to an end of it%s",
            r.end == AGENT_REPLY_CALL ? ": it called a tool instead" : "");
    if (rc != BASE_E_CANCELLED) close_message(a);
    if (!rc) agent__drop_thoughts(a);
    turn_ends(a, interrupted ? "interrupted" : rc ? "failed" : "closed");
    if (!rc) base_buf_add(ret, r.read.text.data ? r.read.text.data : "", r.read.text.len);
    agent__reply_free(&r);
    if (rc && err) *err = mine;
    return rc;
}
