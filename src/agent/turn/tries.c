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

#include "agent/call/prompt.h"
#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "agent/operation/operation.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/candidate.h"
#include "base/clock.h"
#include "base/mem.h"
#include "code/code.h"
#include "tools/run/scratch.h"

enum {
    TEST_MS = 60000,
    TEST_BYTES = 2400,
    FOUND_S = 45,    /* for candidates where the request names no failing test */
    FOUND_LEAST = 4, /* of them, on a machine on which that is too short */
    NEW_LEAST = 4,   /* of a new test, of which nothing is written meanwhile */
    FOUND_MOST_S = 180
};
static const float warm = 0.8f; /* as docs/results.md, "Does it repair programs?", was measured */

typedef struct candidate {
    agent_candidate made;
    const char *word; /* why it was not tried; NULL: it was */
    bool passed;
    bool is_near;          /* a new test that fails for nothing but a value that it expects */
    bool is_recorded;      /* a new test that expects what the code was seen to give */
    agent_noticed noticed; /* a new test that passed: of its subject's faults */
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
    agent__candidate_free(&c->made);
    free(c->noticed.told);
    *c = (candidate){0};
}

/* The test is tried before anything of it stands in the tree. */
static bool begins_with_test(const agent *a)
{
    const char *path = a->asked.new_test.path;
    return path && (!a->fix.path || strcmp(a->fix.path, path) != 0);
}

/* --- sampling ------------------------------------------------------------------------------------------- */

/* Its test has ended, and nothing failed: no other candidate is needed. */
static bool has_passed(const void *user)
{
    const candidate *c = user;
    return c->running && atomic_load(&c->is_done) && !c->rc && c->result.status == TOOL_OK;
}

/* A new test that has this many calls of its subject has enough of them for one that is written from what they give. */
typedef struct calls {
    const candidate *of;
    const char *subject;
} calls;
static bool has_enough_calls(const void *user)
{
    enum { ENOUGH = 7 }; /* the model's last one may be half */
    const calls *x = user;
    const char *text = x->of->made.read.text.data;
    const size_t n = strlen(x->subject);
    uint32_t n_calls = 0;
    for (const char *at = text; at && (at = strstr(at, x->subject)); at += n)
        n_calls += at[n] == '(' && !code_is_name_byte(at[-1]);
    return n_calls >= ENOUGH;
}

/* One that was written before anything was tried, as the answer that it would have been. */
static bool take_kept(agent *a, candidate *c, base_err *err, int *ret_rc)
{
    agent_fix *f = &a->fix;
    if (f->next_kept == f->n_kept) return false;
    const char *text = f->kept[f->next_kept++];
    agent__reader_begin(a, &c->made.read);
    base_buf_puts(&c->made.read.text, text);
    *ret_rc = a->engine->ops->encode(a->engine, text, strlen(text), &c->made.ids, err);
    return true;
}

/*
 * What was wrong with the new test before this one stands in front of its call, and the model says what follows from that: without
 * it a small model writes the same again.
 */
static void put_failed(const agent *a, const candidate *before, base_buf *out)
{
    const agent_new_test *t = &a->asked.new_test;
    base_buf why = {0};
    if (before->made.why)
        base_buf_puts(&why, before->made.why);
    else if (!before->word && !before->passed)
        agent__put_failure(before->result.text.data, &why);
    else if (before->noticed.told)
        base_buf_printf(&why, "it passes also with %s in %s", before->noticed.told, t->subject);
    while (why.len && strchr(" .\n", why.data[why.len - 1])) why.len--;
    if (why.len && !memchr(why.data, AGENT_PROMPT_MARK, why.len)) {
        agent_prompt_open_thought(a->info.tools, out);
        base_buf_printf(out, "The last test is wrong: %.*s. So the new one", (int)why.len, why.data);
    }
    base_buf_free(&why);
}

/* `testing` (may be NULL): the candidate before it, whose test runs meanwhile. */
static int sample(agent *a, candidate *c, const candidate *testing, base_err *err)
{
    agent_opening opening = {0};
    model_sampling s = a->info.sampling;
    const uint32_t number = c->made.number;
    const calls made = {c, a->asked.new_test.subject ? code_last_name(a->asked.new_test.subject) : ""};
    const bool counts_calls = !testing && begins_with_test(a) && agent__may_record(a);
    const agent_enough enough = {
        counts_calls ? has_enough_calls : has_passed, counts_calls ? (const void *)&made : testing};
    int rc = 0;
    /* A failing test that a request names is explained first; what fails behind a change was just written. */
    const bool is_first_test = number == 1 && begins_with_test(a);
    /* The first text of a new test is what the model would have written anyway: it is begun at once. */
    c->made.begins_with_call = is_first_test;
    if (number > 1 || a->asked.new_test.path || (a->fix.path && !a->fix.wanted))
        rc = agent__open_further(a, number > 1, &opening, err);
    if (!rc && number > 1 && a->asked.new_test.path && opening.call.len && !opening.thought.len)
        put_failed(a, c - 1, &opening.thought);
    const bool is_same_again = number == 1 && (!a->asked.new_test.path || is_first_test);
    if (!is_same_again && !opening.is_doubt) {
        s.temperature = warm;
        s.top_p = 0.95f;
        s.seed += 1000 * a->turn + number;
    }
    if (!rc)
        rc =
            agent__candidate_sample(a, &c->made, &opening, &s, testing || counts_calls ? &enough : NULL, err);
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

static int start_test(agent *a, candidate *c, base_err *err)
{
    const base_buf *text = &c->made.text;
    int rc = tool_scratch_make(a->workspace, a->test.in_copy, &c->scratch, a->cancel, err);
    if (!rc) rc = tool_scratch_put(c->scratch, c->made.path, text->data, text->len, err);
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
        if (other->made.headline && other->made.change == c->made.change) return true;
    return false;
}

static bool is_new_test(const agent *a, const char *path)
{
    return path && a->asked.new_test.path && !strcmp(a->asked.new_test.path, path);
}

/* A new test that fails for nothing but a value which the code gives otherwise: taken, it is put right (expect.c). */
static bool expects_another_value(agent *a, const candidate *c)
{
    agent_expectation e = {0};
    const bool has_failed =
        !c->word && !c->rc && c->result.status == TOOL_FAILED && is_new_test(a, c->made.path);
    char *full = has_failed ? agent__read_in_full(a, c->scratch, c->result.text.data) : NULL;
    const bool is_so =
        has_failed && agent__find_expectation_in(a, &c->made.text, full ? full : c->result.text.data, &e);
    free(full);
    agent_expectation_free(&e);
    return is_so;
}

/* A program of tests that ended with 0 and printed that the new one failed: that is a failure. */
static void read_printed(const agent *a, candidate *c)
{
    const bool has_ended = !c->word && !c->rc && c->result.status == TOOL_OK && is_new_test(a, c->made.path);
    char *printed = has_ended ? agent__find_printed_failure(a, &c->made.text, c->result.text.data) : NULL;
    if (printed) c->result.status = TOOL_FAILED;
    free(printed);
}

/* What the candidate's call would write, and its test's start; one that is not tried says why in c->word. */
static int try_change(agent *a, const candidate *all, candidate *c, base_err *err)
{
    agent_candidate *m = &c->made;
    const int rc = agent__candidate_preview(a, m, err);
    c->word = m->word;
    if (rc || m->word) return rc;
    /* Tests that want the old behaviour pass with the old text: that is no answer to a request. */
    const bool goes_back =
        a->fix.writes && tool_undo_is_before(a->workspace, m->path, m->text.data, m->text.len);
    c->word = is_known_change(all, c) ? "the same as an earlier one"
              : goes_back             ? "the text before the change"
                                      : NULL;
    return c->word ? 0 : start_test(a, c, err);
}

/* A new test that passes and notices no fault of its subject, or none that was spoken of, is taken where no other one does. */
static bool is_blind(agent *a, candidate *c)
{
    base_err why = {0};
    if (!is_new_test(a, c->made.path) || a->test.words || !a->asked.new_test.subject) return false;
    if (agent__notice_faults(a, c->scratch, &c->made.text, &c->noticed, &why)) return false;
    return c->noticed.of && (!c->noticed.n || c->noticed.misses_aim);
}

/* Waits for its test and tells how it went; true: it is taken, whatever others may do. */
static bool judge(agent *a, candidate *c, uint32_t of)
{
    if (c->running) pthread_join(c->thread, NULL);
    c->running = false;
    read_printed(a, c);
    c->passed = !c->word && !c->rc && c->result.status == TOOL_OK;
    const bool passed = c->passed, blind = passed && is_blind(a, c),
               is_near = !passed && expects_another_value(a, c);
    c->is_near = is_near;
    const char *status = c->word   ? c->word
                         : c->rc   ? c->err.msg
                         : blind   ? (c->noticed.n ? "passed, and does not notice what it is asked for"
                                                   : "passed, and notices no fault")
                         : passed  ? "passed"
                         : is_near ? "failed for a value that it expects"
                                   : tool_status_word(c->result.status);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_candidate,
                       .candidate = {.turn = a->turn,
                           .number = c->made.number,
                           .of = of,
                           .status = status,
                           .headline = c->made.headline,
                           .text = c->made.read.text.data ? c->made.read.text.data : "",
                           .output = c->result.text.data,
                           .tokens = c->made.own,
                           .shared = c->made.shared,
                           .ms = (int64_t)((base_clock_ns() - c->made.started_ns) / 1000000)}});
    agent__notice(a, "candidate %u of %u: %s%s%s (%u tokens of its own, %u rows shared)", c->made.number, of,
        c->made.headline ? c->made.headline : "", c->made.headline ? ": " : "", status, c->made.own,
        c->made.shared);
    agent__commit(a);
    tool_scratch_free(c->scratch);
    c->scratch = NULL;
    if (!passed && !c->word && is_new_test(a, c->made.path)) agent__sharpen_new_test(a, c->result.text.data);
    return passed && !blind;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

/* The first new test that is run fails, and its file does without it, too: what runs it is missing, say. Then none is judged. */
static bool cannot_be_judged(agent *a, const candidate *c, bool *was_run)
{
    const bool is_first = !*was_run && begins_with_test(a) && !c->word;
    *was_run |= !c->word;
    return is_first && !c->passed && agent__fails_without(a, a->test.command, NULL);
}

uint32_t agent__tries(const agent *a)
{
    const bool is_free = a->settings.mode == AGENT_MODE_EDITS || a->settings.mode == AGENT_MODE_ALL;
    if (a->settings.tries == AGENT_TRIES_BY_MODE) return is_free ? AGENT_USUAL_TRIES : 0;
    return a->settings.tries < AGENT_MOST_TRIES ? a->settings.tries : AGENT_MOST_TRIES;
}

/* A new test is tried in copies before it is written: where nobody is asked about commands. */
static bool begins_with_copies(const agent *a)
{
    const agent_new_test *t = &a->asked.new_test;
    return t->path && !t->begun && !a->fix.attempts && a->settings.mode == AGENT_MODE_ALL && !a->info.strong;
}

bool agent__tries_are_due(const agent *a)
{
    return agent__tries(a) > 1 && a->test.command && !a->fix.no_test &&
           ((a->fix.failing && !a->fix.passed) || begins_with_copies(a)) && agent__can_begin_calls(a) &&
           !a->fix.tried && !a->denied && a->settings.mode != AGENT_MODE_PLAN &&
           (a->engine->can & ENGINE_BRANCH);
}

/* Requests that name no test and give no values have a time for candidates: true where it is spent. */
static bool is_time_up(agent *a, uint32_t i, uint64_t began)
{
    const uint64_t spent_s = (base_clock_ns() - began) / 1000000000;
    const bool has_kept = a->fix.next_kept < a->fix.n_kept;
    if (!i || has_kept || a->fix.wanted || a->test.has_values ||
        spent_s < (i < (begins_with_test(a) ? NEW_LEAST : FOUND_LEAST) ? FOUND_MOST_S : FOUND_S))
        return false;
    agent__notice(a,
        "no further candidates: %llu s are spent (a request that "
        "names its test, or gives values, gets all of them)",
        (unsigned long long)spent_s);
    return true;
}

/* Makes candidates one after another; the first that does, NULL: none did so far. */
static candidate *make_candidates(agent *a, candidate *all, uint32_t n, int *rc, base_err *err)
{
    candidate *testing = NULL, *best = NULL;
    bool recorded = false, was_run = false;
    const uint64_t began = base_clock_ns();
    for (uint32_t i = 0; !*rc && !best && i < n && !is_time_up(a, i, began); i++) {
        candidate *c = &all[i];
        c->made.number = i + 1;
        c->made.started_ns = base_clock_ns();
        c->is_recorded = recorded;
        recorded = false;
        if (!take_kept(a, c, err, rc)) *rc = sample(a, c, testing, err);
        if (testing && judge(a, testing, n)) best = testing; /* it was tested while this one was sampled */
        testing = NULL;
        if (*rc || best) break;
        *rc = try_change(a, all, c, err);
        if (!*rc && !c->word && !a->asked.new_test.path)
            testing = c;
        else if (!*rc && judge(a, c, n)) /* whether a new test notices faults is known behind its run */
            best = c;
        else if (!*rc && cannot_be_judged(a, c, &was_run))
            break;
        if (!*rc && !best && !testing && !c->is_recorded && a->asked.new_test.path)
            *rc = agent__record_test(a, c->made.read.text.data, c->made.read.text.len, &recorded, err);
        if (!best && c->is_near && !recorded) best = c;
    }
    if (testing && judge(a, testing, n) && !*rc) best = testing;
    return best;
}

/* Where none did: the one that is nearest to it; NULL: none is of use. */
static candidate *find_nearest(const agent *a, candidate *all, uint32_t n)
{
    const bool is_test = a->asked.new_test.path != NULL;
    for (uint32_t i = 0; i < 2 * n && is_test; i++) /* one that notices something first */
        if (all[i % n].passed && (i >= n || all[i].noticed.n)) return &all[i % n];
    for (uint32_t i = 0; i < n; i++)
        if (all[i].is_near) return &all[i];
    /* The first that is a test says in the tree why not, and nothing is written a second time. */
    for (uint32_t i = 0; i < n && is_test; i++)
        if (all[i].made.headline && is_new_test(a, all[i].made.path)) return &all[i];
    return NULL;
}

/* What the last line says of the new test. */
static void note_test(agent *a, candidate *best)
{
    agent_new_test *t = &a->asked.new_test;
    if (!best) t->begun = false;
    if (best && best->noticed.told) {
        free(t->fault);
        t->fault = best->noticed.told;
        t->notices = best->noticed.n > 0 && !best->noticed.misses_aim;
        t->misses_aim = best->noticed.n > 0 && best->noticed.misses_aim;
        best->noticed.told = NULL;
    }
    if (best && best->is_recorded) {
        agent__notice(a, "the new test expects what the code gives now: see whether that is right");
        t->is_recorded = true;
    }
}

int agent__try(agent *a, model_ids *ret_ids, base_err *err)
{
    if (!agent__tries_are_due(a)) return 0;
    const uint32_t n = agent__tries(a);
    candidate *all = base_xcalloc(n, sizeof *all);
    int rc = 0;
    a->fix.tried = true;
    agent__keep_parts(a);
    candidate *best = make_candidates(a, all, n, &rc, err);
    if (rc && rc != BASE_E_CANCELLED &&
        rc != BASE_E_NOMEM) { /* e.g. a tree too large to copy: go on without */
        agent__notice(a, "no candidates: %s", err ? err->msg : "");
        if (err) *err = (base_err){0};
        rc = 0;
    }
    if (!best) best = find_nearest(a, all, n);
    note_test(a, best);
    for (size_t i = 0; !rc && best && i < best->made.ids.n; i++)
        model_ids_add(ret_ids, best->made.ids.ids[i]);
    for (uint32_t i = 0; i < n; i++) candidate_free(&all[i]);
    free(all);
    return rc;
}
