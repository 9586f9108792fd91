/*
 * The engine thread: lines queue, approvals wait for the other thread, an interrupt ends a waiting approval,
 * stop never hangs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "agent/start.h"
#include "agent/worker.h"
#include "base/fs.h"

static char folder[64], tree[96], script[96];

static int make_folders(void **state)
{
    strcpy(folder, "/tmp/kvist-worker-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(tree, sizeof tree, "%s/tree", folder);
    snprintf(script, sizeof script, "%s/script", folder);
    setenv("KVIST_HOME", folder, 1);
    return mkdir(tree, 0700);
}

static int drop_folders(void **state)
{
    return base_fs_remove(folder, NULL);
}

typedef struct opening {
    agent_session_options options;
    agent_session *session;
} opening;

static int open_it(void *user, const agent_host *host, atomic_bool *cancel,
    void (*progress)(void *host_user, double share, const char *what), agent **ret, base_err *err)
{
    opening *o = user;
    progress(host->user, 0.5, "loading");
    int rc = agent_session_open(&o->session, &o->options, host, cancel, err);
    if (!rc) *ret = agent_session_agent(o->session);
    return rc;
}

static agent_worker *start(opening *o, const char *text)
{
    assert_int_equal(base_fs_write(script, text, strlen(text), 0600, NULL), 0);
    *o = (opening){
        .options = {
            .dir = tree, .fake_script = script, .mode = AGENT_MODE_ASK, .context_tokens = UINT32_MAX}};
    agent_worker *w = NULL;
    assert_int_equal(agent_worker_start(&w, open_it, o, NULL), 0);
    return w;
}

/*
 * Takes messages until one of `type` (and, for events, of `event`) came. A thread that hangs is ended by the
 * test's time limit.
 */
static void wait_for(agent_worker *w, agent_worker_message_type type, int event, base_buf *outline)
{
    for (;;) {
        struct pollfd p = {.fd = agent_worker_fd(w), .events = POLLIN};
        if (poll(&p, 1, -1) != 1) fail_msg("the engine thread's messages cannot be waited for");
        agent_worker_message *m;
        while ((m = agent_worker_take(w))) {
            bool found = m->type == type && (type != AGENT_WORKER_EVENT || (int)m->event->type == event);
            if (m->type == AGENT_WORKER_EVENT && m->event->type == AGENT_EVENT_answer)
                base_buf_printf(outline, "%s;", m->event->answer.text);
            if (m->type == AGENT_WORKER_EVENT && m->event->type == AGENT_EVENT_approval)
                base_buf_printf(outline, "approval:%s;", m->event->approval.decision);
            if (m->type == AGENT_WORKER_FAILED) base_buf_printf(outline, "failed:%s;", m->text);
            agent_worker_message_free(m);
            if (found) return;
        }
    }
}

static void test_worker__lines_queue_and_run_in_order(void **state)
{
    opening o;
    base_buf outline = {0};
    agent_worker *w = start(&o, "answer one\nanswer two\n");
    agent_worker_submit(w, "first"); /* before it is ready */
    agent_worker_submit(w, "second");
    wait_for(w, AGENT_WORKER_LOADING, 0, &outline);
    wait_for(w, AGENT_WORKER_READY, 0, &outline);
    wait_for(w, AGENT_WORKER_IDLE, 0, &outline);
    wait_for(w, AGENT_WORKER_IDLE, 0, &outline);
    assert_string_equal(outline.data, "one;two;");
    agent_worker_stop(w);
    agent_session_close(o.session);
    base_buf_free(&outline);
}

#define ASKS "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"true\"}}</tools>\n"

static void test_worker__approvals_are_answered_from_the_other_thread(void **state)
{
    opening o;
    base_buf outline = {0};
    agent_worker *w = start(&o, ASKS "answer denied\n" ASKS "answer interrupted\n");
    agent_worker_decide(w, AGENT_YES, NULL); /* nothing waits: ignored */
    agent_worker_submit(w, "run it");
    wait_for(w, AGENT_WORKER_EVENT, AGENT_EVENT_approval_request, &outline);
    agent_worker_decide(w, AGENT_NO, "later");
    wait_for(w, AGENT_WORKER_IDLE, 0, &outline);
    agent_worker_submit(w, "run it again");
    wait_for(w, AGENT_WORKER_EVENT, AGENT_EVENT_approval_request, &outline);
    agent_worker_interrupt(w);
    wait_for(w, AGENT_WORKER_IDLE, 0, &outline);
    assert_string_equal(outline.data, "approval:no;denied;approval:no;");
    agent_worker_stop(w);
    agent_session_close(o.session);
    base_buf_free(&outline);
}

static void test_worker__stop_ends_a_waiting_approval(void **state)
{
    opening o;
    base_buf outline = {0};
    agent_worker *w = start(&o, ASKS "answer x\n");
    agent_worker_submit(w, "run it");
    wait_for(w, AGENT_WORKER_EVENT, AGENT_EVENT_approval_request, &outline);
    agent_worker_stop(w);
    agent_session_close(o.session);
    base_buf_free(&outline);
}

static void test_worker__a_session_that_does_not_open_says_why(void **state)
{
    opening o;
    base_buf outline = {0};
    agent_worker *w = start(&o, "nonsense here\n");
    wait_for(w, AGENT_WORKER_FAILED, 0, &outline);
    assert_non_null(strstr(outline.data, "is no directive"));
    agent_worker_stop(w);
    agent_session_close(o.session);
    base_buf_free(&outline);
}

static void test_worker__the_mode_changes_between_lines(void **state)
{
    opening o;
    base_buf outline = {0};
    agent_worker *w = start(&o, ASKS "answer refused\n");
    wait_for(w, AGENT_WORKER_READY, 0, &outline);
    agent_worker_set_mode(w, AGENT_MODE_PLAN);
    wait_for(w, AGENT_WORKER_EVENT, AGENT_EVENT_notice, &outline);
    agent_worker_submit(w, "run it");
    wait_for(w, AGENT_WORKER_IDLE, 0, &outline);
    assert_string_equal(outline.data, "refused;");
    agent_worker_stop(w);
    agent_session_close(o.session);
    base_buf_free(&outline);
}

static void test_worker__what_is_learned_in_idle_time_waits_for_the_person(void **state)
{
    opening o;
    base_buf outline = {0};
    agent_worker *w = start(&o, "learns 1\nanswer one\nanswer two\n");
    agent_worker_submit(w, "first");
    wait_for(w, AGENT_WORKER_IDLE, 0, &outline);
    agent_worker_submit(w, "second"); /* ends the learning, and is not cancelled itself */
    wait_for(w, AGENT_WORKER_IDLE, 0, &outline);
    agent_worker_set_mode(w, AGENT_MODE_PLAN);
    wait_for(w, AGENT_WORKER_EVENT, AGENT_EVENT_notice, &outline); /* so does a change of mode */
    assert_string_equal(outline.data, "one;two;");
    agent_worker_stop(w); /* and the end */
    agent_session_close(o.session);
    base_buf_free(&outline);
}

#define TEST_CASE(f) cmocka_unit_test_setup_teardown(f, make_folders, drop_folders)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_worker__lines_queue_and_run_in_order),
        TEST_CASE(test_worker__approvals_are_answered_from_the_other_thread),
        TEST_CASE(test_worker__stop_ends_a_waiting_approval),
        TEST_CASE(test_worker__a_session_that_does_not_open_says_why),
        TEST_CASE(test_worker__the_mode_changes_between_lines),
        TEST_CASE(test_worker__what_is_learned_in_idle_time_waits_for_the_person),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
