/*
 * Candidates. Where a test can judge and has failed, several rewrites are sampled as branches of the session
 * at the same point: they share every row of what was read and cost their own tokens only. Each is tried in a
 * copy of the tree, its test running while the next one is sampled; the first that passes becomes the answer
 * and goes the way of any other call (diff, approval, test in the real tree). The others stay in the log.
 * Why: sampling again and judging fixes more than arguing with a failed attempt (docs/results.md).
 *
 * The first candidate is what the model would have answered anyway; for the others the harness begins the
 * call, so that none is lost to talk: up to what the model doubts in the old text (doubt.c), or, where it has
 * no doubt left, warmer. Engine thread, but for the test's run.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/act/act.h"
#include "agent/act/guard.h"
#include "agent/operation/operation.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tools/edit/change.h"
#include "tools/run/scratch.h"

enum {
    TEST_MS = 60000,
    TEST_BYTES = 2400,
    FOUND_S = 45,    /* for candidates where the request names no failing test */
    FOUND_LEAST = 4, /* of them, on a machine on which that is too short */
    FOUND_MOST_S = 180
};
static const float warm = 0.8f; /* as docs/results.md, "Does it repair programs?", was measured */

typedef struct candidate {
    uint32_t number;
    model_ids ids; /* its answer */
    agent_reader read;
    bool is_cut;          /* it is not whole: it reached its limit of tokens */
    char *headline;       /* of the change, NULL: it is none */
    base_buf text;        /* of the changed file, where the change is a new test */
    uint64_t change;      /* hash of path and new text: two candidates may say the same */
    const char *word;     /* why it was not tried; NULL: it was */
    uint32_t shared, own; /* rows: of the session, and computed for it */
    uint64_t started_ns;
    /* Its trial. */
    tool_scratch *scratch;
    tool_limits limits;
    tool_result result;
    base_err err;
    int rc;
    const char *command;
    pthread_t thread;
    bool running;
    atomic_bool is_done; /* its test has ended */
} candidate;

static void candidate_free(candidate *c)
{
    tool_scratch_free(c->scratch);
    tool_result_free(&c->result);
    model_ids_free(&c->ids);
    agent__reader_free(&c->read);
    free(c->headline);
    base_buf_free(&c->text);
    *c = (candidate){0};
}

/* --- sampling ------------------------------------------------------------------------------------------- */

static int append_text(agent *a, candidate *c, const base_buf *text, base_err *err)
{
    model_ids ids = {0};
    const bool has_marks = model_tools_are_marked(a->info.tools);
    const uint32_t from = agent__n_tokens(a);
    int rc = has_marks ? agent__encode_marked(a, text->data, text->len, &ids, NULL, err)
                       : a->engine->ops->encode(a->engine, text->data, text->len, &ids, err);
    if (!has_marks) base_buf_add(&c->read.text, text->data, text->len);
    for (size_t i = 0; has_marks && i < ids.n; i++)
        agent__reader_take(a, &c->read, ids.ids[i], from + (uint32_t)i);
    kv_segment segment = {.origin = KV_ORIGIN_CALL, .turn = a->turn};
    if (!rc && ids.n) rc = a->engine->ops->append(a->engine, &segment, ids.ids, (uint32_t)ids.n, err);
    model_ids_free(&ids);
    return rc;
}

static int append_call(agent *a, candidate *c, const base_buf *call, base_err *err)
{
    base_buf text = {0};
    agent__put_call_behind(a, &c->read, false, call, &text);
    const uint32_t from = agent__n_tokens(a);
    int rc = append_text(a, c, &text, err);
    if (!rc && model_tools_are_marked(a->info.tools)) agent__tell_grammar(a, from);
    base_buf_free(&text);
    return rc;
}

/* One token; *end: the answer is over. An end in the thought is taken back: the call is still to come. */
static int sample_token(agent *a, candidate *c, bool in_thought, bool *end, base_err *err)
{
    int32_t id;
    uint32_t at = agent__n_tokens(a);
    int rc = a->engine->ops->next(a->engine, KV_ORIGIN_CALL, a->turn, &id, end, NULL, err);
    if (rc) return rc;
    if (*end && in_thought) return a->engine->ops->truncate(a->engine, at, err);
    agent__reader_take(a, &c->read, id, at);
    return 0;
}

static int end_long_thought(agent *a, candidate *c, base_err *err)
{
    model_ids ids = {0};
    const uint32_t from = agent__n_tokens(a);
    const kv_segment segment = {.origin = KV_ORIGIN_CALL, .turn = a->turn};
    int rc = 0;
    if (agent__ends_thought(a, &c->read, &ids)) {
        rc = a->engine->ops->append(a->engine, &segment, ids.ids, (uint32_t)ids.n, err);
        for (size_t i = 0; !rc && i < ids.n; i++)
            agent__reader_take(a, &c->read, ids.ids[i], from + (uint32_t)i);
        if (!rc) agent__tell_grammar(a, from);
    }
    model_ids_free(&ids);
    return rc;
}

static bool is_over(agent *a, const candidate *c, agent_call *call)
{
    const char *text = c->read.text.data ? c->read.text.data : "";
    return agent_call_parse(text, c->read.text.len, false, agent__known, a, call) == AGENT_CALL_FOUND ||
           agent__repeats(text, c->read.text.len);
}

/* Its test has ended, and nothing failed: no other candidate is needed. */
static bool has_passed(const candidate *c)
{
    return c && c->running && atomic_load(&c->is_done) && !c->rc && c->result.status == TOOL_OK;
}

/* What the opening has for behind the line that the model has just ended. */
static int append_behind(
    agent *a, candidate *c, const agent_opening *opening, size_t from, bool *is_led, base_err *err)
{
    base_buf more = {0};
    const base_buf *text = &c->read.text;
    const bool has_more = text->len > from &&
                          agent__put_behind_line(opening, text->data + from, text->len - from, is_led, &more);
    const int rc = has_more ? append_text(a, c, &more, err) : 0;
    base_buf_free(&more);
    return rc;
}

/* `testing` (may be NULL): the candidate before it, whose test runs meanwhile. */
static int sample_text(
    agent *a, candidate *c, const candidate *testing, const agent_opening *opening, base_err *err)
{
    bool in_thought = opening->call.len > 0, end = false, is_led = !opening->behind.len;
    size_t call_to = 0;
    int rc = opening->thought.len ? append_text(a, c, &opening->thought, err) : 0;
    agent__reader_line_begins(&c->read);
    a->engine->ops->answer_begins(a->engine);
    for (uint32_t n = 0; !rc && !end && !has_passed(testing) && n < a->settings.max_tokens; n++) {
        rc = sample_token(a, c, in_thought, &end, err);
        in_thought = in_thought && !c->read.channels.n_calls; /* it calls by itself */
        if (!rc && in_thought && (end || n >= AGENT_OPENING_TOKENS || agent__reader_has_line(&c->read))) {
            rc = append_call(a, c, &opening->call, err);
            in_thought = end = false;
            call_to = c->read.text.len;
        }
        if (!rc && !end && !in_thought && !is_led) rc = append_behind(a, c, opening, call_to, &is_led, err);
        if (!rc && !end && !in_thought) rc = end_long_thought(a, c, err);
        agent_call call = {0};
        if (!rc && !end && !in_thought) end = is_over(a, c, &call);
        agent_call_free(&call);
    }
    c->is_cut = !end;
    return rc;
}

/* In a branch of its own, which is dropped: only the ids stay. */
static int sample(agent *a, candidate *c, const candidate *testing, base_err *err)
{
    const engine_ops *o = a->engine->ops;
    agent_opening opening = {0};
    model_sampling s = a->info.sampling;
    kv_stats before, after;
    uint32_t n;
    int rc = 0;
    /* A failing test that a request names is explained first; what fails behind a change was just written. */
    if (c->number > 1 || (a->fix.path && !a->fix.wanted))
        rc = agent__open_further(a, c->number > 1, &opening, err);
    const bool is_same_again = c->number == 1 && !(a->asked.new_test.path && a->fix.path);
    if (!is_same_again && !opening.is_doubt) {
        s.temperature = warm;
        s.top_p = 0.95f;
        s.seed += 1000 * a->turn + c->number;
    }
    if (!rc) rc = o->fork(a->engine, err);
    if (!rc) {
        o->set_sampling(a->engine, &s);
        o->stats(a->engine, &before);
        agent__reader_begin(a, &c->read);
        rc = sample_text(a, c, testing, &opening, err);
        const int32_t *ids = o->ids(a->engine, &n);
        o->stats(a->engine, &after);
        c->shared = before.n_tokens;
        c->own = after.computed - before.computed;
        for (uint32_t i = before.n_tokens; i < n; i++) model_ids_add(&c->ids, ids[i]);
        o->unfork(a->engine);
        o->set_sampling(a->engine, &a->info.sampling);
    }
    agent_opening_free(&opening);
    return rc;
}

/* --- trying --------------------------------------------------------------------------------------------- */

static void *run_test(void *user)
{
    candidate *c = user;
    c->rc = tool_scratch_run(c->scratch, c->command, &c->limits, &c->result, &c->err);
    atomic_store(&c->is_done, true);
    return NULL;
}

static int start_test(agent *a, candidate *c, const char *path, base_str text, base_err *err)
{
    int rc = tool_scratch_make(a->workspace, a->test.in_copy, &c->scratch, a->cancel, err);
    if (!rc) rc = tool_scratch_put(c->scratch, path, text.ptr, text.len, err);
    if (rc) return rc;
    c->command = a->test.command;
    c->limits = (tool_limits){.result_bytes = TEST_BYTES, .shell_ms = TEST_MS, .cancel = a->cancel};
    c->running = true;
    if (pthread_create(&c->thread, NULL, run_test, c)) { /* no thread: then one after the other */
        c->running = false;
        run_test(c);
    }
    return 0;
}

static bool is_known_change(const candidate *all, const candidate *c)
{
    for (const candidate *other = all; other < c; other++)
        if (other->headline && other->change == c->change) return true;
    return false;
}

static bool is_new_test(const agent *a, const char *path)
{
    return a->asked.new_test.path && !strcmp(a->asked.new_test.path, path);
}

/* A new test that fails for nothing but a value which the code gives otherwise: taken, it is put right (expect.c). */
static bool expects_another_value(const agent *a, const candidate *c)
{
    agent_expectation e = {0};
    const bool has_failed = !c->word && !c->rc && c->result.status == TOOL_FAILED;
    const bool is_so = has_failed && agent__find_expectation_in(a, &c->text, c->result.text.data, &e);
    agent_expectation_free(&e);
    return is_so;
}

/*
 * What the candidate's call would write, and its test's start; a candidate without a change says why in
 * c->word.
 */
static int try_change(agent *a, const candidate *all, candidate *c, base_err *err)
{
    agent_call call = {0};
    tool_preview preview = {0};
    tool_result result = {.exit_code = -1};
    const char *path;
    base_str text;
    int rc = 0;
    c->word = "no call";
    bool found = agent_call_parse(c->read.text.data ? c->read.text.data : "", c->read.text.len, !c->is_cut,
                     agent__known, a, &call) == AGENT_CALL_FOUND ||
                 (!c->is_cut && agent__offer_rewrite(a, &c->read.text, &call));
    const tool_entry *tool = found ? tool_find(call.name) : NULL;
    if (tool && tool->power == TOOL_WRITES && tool->prepare) {
        tool_call request = {.name = call.name,
            .arguments = base_json_root(call.arguments),
            .payload = {call.payload, call.payload_n},
            .request = a->request};
        tool_limits limits = {.result_bytes = TEST_BYTES, .cancel = a->cancel};
        char *no_test = agent__why_no_test(a, request.arguments, request.payload);
        c->word = no_test ? "no test of it" : "no change";
        if (!no_test) rc = tool->prepare(a->workspace, &request, &limits, &preview, &result, err);
        free(no_test);
        if (!rc && tool_preview_text(&preview, &path, &text)) {
            c->headline = base_xstrdup(preview.headline);
            c->change = base_hash64(text.ptr, text.len, base_hash64(path, strlen(path), 3));
            /* Tests that want the old behaviour pass with the old text: that is no answer to a request. */
            if (is_new_test(a, path)) base_buf_add(&c->text, text.ptr, text.len);
            const bool goes_back =
                a->fix.writes && tool_undo_is_before(a->workspace, path, text.ptr, text.len);
            c->word = is_known_change(all, c) ? "the same as an earlier one"
                      : goes_back             ? "the text before the change"
                                              : NULL;
            if (!c->word) rc = start_test(a, c, path, text, err);
        }
    }
    agent_call_free(&call);
    tool_preview_free(&preview);
    tool_result_free(&result);
    return rc;
}

/* Waits for its test and tells how it went; true: it is taken. */
static bool judge(agent *a, candidate *c, uint32_t of)
{
    if (c->running) pthread_join(c->thread, NULL);
    c->running = false;
    bool passed = !c->word && !c->rc && c->result.status == TOOL_OK;
    const bool is_near = !passed && expects_another_value(a, c);
    const char *status = c->word   ? c->word
                         : c->rc   ? c->err.msg
                         : passed  ? "passed"
                         : is_near ? "failed for a value that it expects"
                                   : tool_status_word(c->result.status);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_candidate,
                       .candidate = {.turn = a->turn,
                           .number = c->number,
                           .of = of,
                           .status = status,
                           .headline = c->headline,
                           .text = c->read.text.data ? c->read.text.data : "",
                           .output = c->result.text.data,
                           .tokens = c->own,
                           .shared = c->shared,
                           .ms = (int64_t)((base_clock_ns() - c->started_ns) / 1000000)}});
    agent__notice(a, "candidate %u of %u: %s%s%s (%u tokens of its own, %u rows shared)", c->number, of,
        c->headline ? c->headline : "", c->headline ? ": " : "", status, c->own, c->shared);
    agent__commit(a);
    tool_scratch_free(c->scratch);
    c->scratch = NULL;
    return passed || is_near;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

uint32_t agent__tries(const agent *a)
{
    const bool is_free = a->settings.mode == AGENT_MODE_EDITS || a->settings.mode == AGENT_MODE_ALL;
    if (a->settings.tries == AGENT_TRIES_BY_MODE) return is_free ? AGENT_USUAL_TRIES : 0;
    return a->settings.tries < AGENT_MOST_TRIES ? a->settings.tries : AGENT_MOST_TRIES;
}

bool agent__tries_are_due(const agent *a)
{
    return agent__tries(a) > 1 && a->test.command && a->fix.failing && !a->fix.passed && !a->fix.no_test &&
           agent__can_begin_calls(a) && !a->fix.tried && !a->denied && a->settings.mode != AGENT_MODE_PLAN &&
           (a->engine->can & ENGINE_BRANCH);
}

int agent__try(agent *a, model_ids *ret_ids, base_err *err)
{
    if (!agent__tries_are_due(a)) return 0;
    const uint32_t n = agent__tries(a);
    candidate *all = base_xcalloc(n, sizeof *all), *testing = NULL, *best = NULL;
    int rc = 0;
    a->fix.tried = true;
    const uint64_t began = base_clock_ns();
    for (uint32_t i = 0; !rc && !best && i < n; i++) {
        candidate *c = &all[i];
        const uint64_t spent_s = (base_clock_ns() - began) / 1000000000;
        if (i && !a->fix.wanted && !a->test.has_values &&
            spent_s >= (i < FOUND_LEAST ? FOUND_MOST_S : FOUND_S)) {
            agent__notice(a,
                "no further candidates: %llu s are spent (a request that "
                "names its test, or gives values, gets all of them)",
                (unsigned long long)spent_s);
            break;
        }
        c->number = i + 1;
        c->started_ns = base_clock_ns();
        rc = sample(a, c, testing, err);
        if (testing && judge(a, testing, n)) best = testing; /* it was tested while this one was sampled */
        testing = NULL;
        if (rc || best) break;
        rc = try_change(a, all, c, err);
        if (!rc && !c->word)
            testing = c;
        else if (!rc)
            judge(a, c, n);
    }
    if (testing && judge(a, testing, n) && !rc) best = testing;
    if (rc && rc != BASE_E_CANCELLED &&
        rc != BASE_E_NOMEM) { /* e.g. a tree too large to copy: go on without */
        agent__notice(a, "no candidates: %s", err ? err->msg : "");
        if (err) *err = (base_err){0};
        rc = 0;
    }
    for (size_t i = 0; !rc && best && i < best->ids.n; i++) model_ids_add(ret_ids, best->ids.ids[i]);
    for (uint32_t i = 0; i < n; i++) candidate_free(&all[i]);
    free(all);
    return rc;
}
