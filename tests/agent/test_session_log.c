/*
 * What is left of a session when it ends, is killed or forked: its log, its rows, its folder; and how it goes on.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/session/ledger.h"
#include "agent/session/segments.h"
#include "agent/session/tell.h"
#include "stage.h"

static void test_session_log__the_log_holds_what_json_printed(void **state)
{
    put_program();
    put_notes();
    host h = new_host();
    agent_session *s =
        open_session(&h, "budget 2200\n" NOTES("1") NOTES("2") READ REWRITE(FIXED) "answer Fixed `add`.\n",
            AGENT_MODE_ALL, NULL, true);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    submit(s, &h, "test_add.sh fails; fix it");
    agent_session_close(s);
    char *stored = logged(id);
    assert_string_equal(stored, h.json.data);
    free(stored);
    free(id);
    free_host(&h);
}

/* Live sets rebuilt from the log alone: appended counts and plan blobs. */
typedef struct folded {
    uint64_t bits[4][64];
    uint32_t n;
} folded;

static void set_length(folded *f, uint32_t n)
{
    assert_true(n <= 64 * 64);
    for (uint32_t i = f->n; i < n; i++)
        for (int lane = 0; lane < 4; lane++) f->bits[lane][i / 64] |= UINT64_C(1) << (i % 64);
    f->n = n;
}

static bool fold(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    folded *f = user;
    agent_event e;
    agent_event_doc *doc = NULL;
    kv_plan *p = NULL;
    assert_int_equal(agent_event_read(json, n, &e, &doc, NULL), 0);
    if (e.type == AGENT_EVENT_append) set_length(f, (uint32_t)(e.append.from + e.append.n));
    if (e.type == AGENT_EVENT_token) set_length(f, (uint32_t)e.token.index + 1);
    if (e.type == AGENT_EVENT_plan) {
        assert_int_equal(kv_plan_unpack(blob, blob_n, &p, NULL), 0);
        for (uint32_t lane = 0; lane < 4; lane++)
            for (uint32_t w = 0; w < kv_plan_words(p); w++)
                f->bits[lane][w] ^= p->flips[lane * kv_plan_words(p) + w];
        kv_plan_free(p);
    }
    agent_event_doc_free(doc);
    return true;
}

static void test_session_log__the_logged_plans_rebuild_each_lane(void **state)
{
    NEEDS("lanes");
    put_program();
    put_notes();
    host h = new_host();
    agent_session *s = open_session(&h,
        "budget 2200\nrepair 16\n" NOTES("1")
            NOTES("2") "answer It subtracts. \nanswer more words about add\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "what does add do?");
    submit(s, &h, "and the test of add?");
    submit(s, &h, "/drop last");
    agent *a = agent_session_agent(s);
    folded f = {0};
    assert_non_null(strstr(h.outline.data, "plan:evict"));
    agent__commit(a);
    assert_int_equal(agent_log_events(a->log, a->telling.id, fold, &f, NULL), 0);
    assert_int_equal(f.n, agent__n_tokens(a));
    for (uint32_t lane = 0; lane < 4; lane++) {
        uint64_t bits[64] = {0};
        kv_session_lane_bits(a->engine->session, lane, bits);
        assert_memory_equal(bits, f.bits[lane], sizeof bits);
    }
    agent_session_close(s);
    free_host(&h);
}

static long long resumed_reused(const host *h)
{
    const char *notice = strstr(h->json.data, "resumed session");
    if (!notice) return -1;
    long long n = 0;
    for (const char *s = strchr(notice, ':') + 2; *s == ',' || (*s >= '0' && *s <= '9'); s++) /* 2,345 */
        if (*s != ',') n = n * 10 + *s - '0';
    return n;
}

#define LONG_SCRIPT                                                                                          \
    "budget 2200\nrepair 16\n" NOTES("1") NOTES("2") READ "answer The function add is wrong: it "            \
                                                          "subtracts.\n"

static void test_session_log__resume_computes_nothing_with_a_snapshot_and_the_same_without(void **state)
{
    NEEDS("a snapshot");
    put_program();
    put_notes();
    host h = new_host(), again = new_host(), third = new_host();
    agent_session *s = open_session(&h, LONG_SCRIPT, AGENT_MODE_ASK, NULL, true);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    submit(s, &h, "what does add do?");
    agent_session_close(s);

    s = open_session(&again, "budget 2200\nanswer more\n", AGENT_MODE_ASK, "", true);
    assert_true(told(&again, "none computed again"));
    assert_int_equal(submit(s, &again, "go on with add"), 0);
    agent_session_close(s);

    /* Without the snapshot the logged schedule is executed again and gives the same rows. */
    base_buf rows = {0};
    base_buf_printf(&rows, "%s/data/sessions/%s/rows", base_folder, id);
    assert_int_equal(base_fs_remove(rows.data, NULL), 0);
    s = open_session(&third, "budget 2200\nanswer third\n", AGENT_MODE_ASK, id, true);
    assert_true(told(&third, "tokens computed again from the log"));
    assert_int_equal(resumed_reused(&third) > resumed_reused(&again), 1);
    assert_int_equal(submit(s, &third, "and now?"), 0);
    agent_session_close(s);
    char *stored = logged(id);
    base_buf all = {0};
    base_buf_add(&all, h.json.data, h.json.len);
    base_buf_add(&all, again.json.data, again.json.len);
    base_buf_add(&all, third.json.data, third.json.len);
    assert_string_equal(stored, all.data);
    free(stored);
    free(id);
    base_buf_free(&all);
    base_buf_free(&rows);
    free_host(&h);
    free_host(&again);
    free_host(&third);
}

static void test_session_log__a_fork_computes_nothing_and_leaves_its_parent(void **state)
{
    put_program();
    host h = new_host(), second = new_host(), third = new_host();
    agent_session *s =
        open_session(&h, READ "answer one\nanswer two\nanswer three\n", AGENT_MODE_ASK, NULL, true);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    submit(s, &h, "/fork");
    assert_true(told(&h, "nothing to fork"));
    submit(s, &h, "what does add do?");
    assert_int_equal(submit(s, &h, "/title the walrus   session"), 0);
    assert_int_equal(submit(s, &h, "/fork"), 0);
    char kept[40] = "";
    assert_int_equal(sscanf(strstr(h.json.data, "\"text\":\"session ") + 8, "session %39[^ ]", kept), 1);
    submit(s, &h, "goes on");
    agent_session_close(s);
    char *parent = logged(id);

    s = open_session(&second, "answer elsewhere\n", AGENT_MODE_ASK, kept, true); /* what /fork kept */
    if (!stage_chat) assert_true(told(&second, "none computed again"));
    submit(s, &second, "and here?");
    submit(s, &second, "/sessions");
    assert_true(told(&second, "the walrus   session"));
    agent_session_close(s);

    s = fork_session(&third, "answer third\n", id); /* and --fork of the parent, two turns by now */
    if (!stage_chat) assert_true(told(&third, "none computed again"));
    assert_string_not_equal(agent_session_id(agent_session_agent(s)), id);
    submit(s, &third, "a third way");
    assert_true(told(&third, "\"event\":\"user\",\"turn\":3"));
    agent_session_close(s);

    char *after = logged(id), *copy = logged(kept);
    assert_string_equal(after, parent);
    assert_non_null(strstr(copy, "what does add do?"));
    assert_non_null(strstr(copy, "\"event\":\"fork\""));
    assert_non_null(strstr(copy, "and here?"));
    assert_null(strstr(copy, "goes on"));
    free(after);
    free(copy);
    free(parent);
    free(id);
    free_host(&h);
    free_host(&second);
    free_host(&third);
}

static void test_session_log__a_fork_that_cannot_be_says_why_and_leaves_nothing(void **state)
{
    host h = new_host(), other = new_host();
    agent_session *s = open_session(&h, "answer one\n", AGENT_MODE_ASK, NULL, true), *none = NULL;
    submit(s, &h, "one");
    const char *id = agent_session_id(agent_session_agent(s));
    agent_session_options options = {.dir = tree, .fake_script = script_path, .fork = id};
    agent_host sink = {.user = &other, .event = host_event};
    base_err err = {0};
    const struct {
        const char *fork, *resume, *said;
        bool ephemeral;
    } wrong[] = {{id, NULL, "has session", false}, {"nothing", NULL, "nothing", false},
        {id, "", "one of them", false}, {id, NULL, "--ephemeral", true}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.fork = wrong[i].fork;
        options.resume = wrong[i].resume;
        options.ephemeral = wrong[i].ephemeral;
        assert_int_not_equal(agent_session_open(&none, &options, &sink, &other.cancel, &err), 0);
        assert_non_null(strstr(err.msg, wrong[i].said));
    }
    base_buf title = {0};
    base_buf_puts(&title, "/title ");
    assert_int_not_equal(submit(s, &h, title.data), 0);
    for (int i = 0; i < 201; i++) base_buf_putc(&title, 'x');
    assert_int_not_equal(submit(s, &h, title.data), 0);
    assert_true(told(&h, "up to 200 bytes"));
    base_buf_free(&title);
    agent_session_close(s);
    free_host(&h);
    free_host(&other);
}

/* Killed at any of these, the session reopens, what was committed is there, and the next turn works. */
/* The screen shows the mode that the log tells last, and that has to be the one in force. */
static void test_session_log__a_resume_in_another_mode_tells_it(void **state)
{
    put_program();
    host h = new_host();
    const agent_mode modes[] = {AGENT_MODE_ALL, AGENT_MODE_PLAN, AGENT_MODE_PLAN, AGENT_MODE_ASK};
    const char *const says[] = {NULL, "\"mode plan\"", NULL, "\"mode ask\""};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        base_buf_clear(&h.json);
        agent_session *s = open_session(&h, "answer more\n", modes[i], i ? "" : NULL, true);
        if (i) assert_true(told(&h, "resumed session"));
        if (says[i])
            assert_true(told(&h, says[i]));
        else
            assert_false(told(&h, "\"mode "));
        assert_int_equal(submit(s, &h, "go on"), 0);
        agent_session_close(s);
    }
    free_host(&h);
}

static void test_session_log__killed_anywhere_it_resumes(void **state)
{
    static const agent_event_type deaths[] = {AGENT_EVENT_user, AGENT_EVENT_context, AGENT_EVENT_token,
        AGENT_EVENT_tool_call, AGENT_EVENT_tool_result, AGENT_EVENT_answer, AGENT_EVENT_ledger,
        AGENT_EVENT_snapshot, AGENT_EVENT_turn_end};
    put_program();
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        if (stage_chat && deaths[i] == AGENT_EVENT_snapshot) continue; /* it keeps none */
        pid_t child = fork();
        if (!child) {
            host h = new_host();
            agent_session *s =
                open_session(&h, "answer first\n" READ "answer second\n", AGENT_MODE_ASK, NULL, true);
            submit(s, &h, "one");
            h.exit_at = (int)deaths[i];
            submit(s, &h, "what does add do?");
            agent_settle(agent_session_agent(s));
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        host h = new_host();
        agent_session *s = open_session(&h, "answer back again\n", AGENT_MODE_ASK, "", true);
        assert_true(told(&h, "resumed session"));
        /*
         * The request is committed behind its event: killed in that event, there was no turn 2. The rows are
         * saved last.
         */
        assert_int_equal(told(&h, "turn 2 was interrupted; what was committed of it is kept"),
            deaths[i] != AGENT_EVENT_user && deaths[i] != AGENT_EVENT_snapshot);
        assert_int_equal(submit(s, &h, "still there?"), 0);
        assert_non_null(strstr(h.outline.data, "turn_end:closed"));
        char *stored = logged(agent_session_id(agent_session_agent(s)));
        assert_non_null(strstr(stored, "\"event\":\"answer\",\"turn\":1,\"text\":\"first\""));
        assert_non_null(strstr(stored, "\"event\":\"user\",\"turn\":2") ? stored : NULL);
        free(stored);
        agent_session_close(s);
        free_host(&h);
    }
}

/*
 * It is said once, also when nothing was asked in between; and of a session that closed cleanly it is not
 * said.
 */
static void test_session_log__an_interruption_is_told_once(void **state)
{
    pid_t child = fork();
    if (!child) {
        host h = new_host();
        agent_session *s = open_session(&h, "answer first\n", AGENT_MODE_ASK, NULL, true);
        h.exit_at = AGENT_EVENT_token;
        submit(s, &h, "one");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    for (int i = 0; i < 3; i++) {
        host h = new_host();
        agent_session *s = open_session(&h, "answer more\n", AGENT_MODE_ASK, "", true);
        assert_int_equal(told(&h, "was interrupted"), i == 0);
        if (i == 1) assert_int_equal(submit(s, &h, "go on"), 0);
        agent_session_close(s);
        free_host(&h);
    }
}

static void test_session_log__a_second_process_cannot_resume_a_running_session(void **state)
{
    host h = new_host(), other = new_host();
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true), *second = NULL;
    submit(s, &h, "one");
    agent_session_options options = {.dir = tree, .fake_script = script_path, .resume = ""};
    base_err err = {0};
    assert_int_equal(agent_session_open(&second, &options, &(agent_host){.user = &other, .event = host_event},
                         &other.cancel, &err),
        BASE_E_STATE);
    assert_non_null(strstr(err.msg, "another kvist has session"));
    agent_session_close(s);
    free_host(&h);
    free_host(&other);
}

/* A sparse file that says it holds rows, last used a day ago for each `age`. */
static char *put_row_file(const char *id, long long n_bytes, int age)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s/data/sessions/%s", base_folder, id);
    assert_int_equal(base_fs_mkdirs(path.data, NULL), 0);
    base_buf_puts(&path, "/rows");
    assert_int_equal(base_fs_write(path.data, "KVROWS\n", 8, 0600, NULL), 0);
    assert_int_equal(truncate(path.data, n_bytes), 0);
    struct timespec times[2] = {{.tv_sec = time(NULL) - 86400L * age}, {.tv_sec = time(NULL) - 86400L * age}};
    assert_int_equal(utimensat(AT_FDCWD, path.data, times, 0), 0);
    return base_buf_take(&path);
}

static void test_session_log__rows_of_the_sessions_unused_longest_go(void **state)
{
    host h = new_host(), again = new_host();
    const long long gib = 1LL << 30;
    char *older = put_row_file("20200101-0000-aaaaaa", 5 * gib, 9),
         *newer = put_row_file("20200102-0000-bbbbbb", 5 * gib, 2);
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    assert_false(base_fs_exists(older));
    assert_true(base_fs_exists(newer));
    assert_true(told(&h, "removed 5120 MiB of saved rows of the sessions unused longest (8 GiB are kept)"));
    agent_session_close(s);
    s = open_session(&again, "answer a\n", AGENT_MODE_ASK, NULL, true);
    assert_false(told(&again, "saved rows")); /* within the bound nothing is removed and nothing told */
    assert_true(base_fs_exists(newer));
    agent_session_close(s);
    free(older);
    free(newer);
    free_host(&h);
    free_host(&again);
}

/* While a model loads a process may be killed: then no folder stays that the log knows nothing of. */
static int no_folder_yet(
    const void *user, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured, kv_limit *ret, base_err *err)
{
    char path[200];
    snprintf(path, sizeof path, "%s/data/sessions", base_folder);
    *(bool *)(uintptr_t)user = base_fs_exists(path);
    return base_fail(err, BASE_E_USAGE, "a budget that is refused");
}

static void test_session_log__a_folder_comes_with_the_logs_row(void **state)
{
    host h = new_host();
    bool has_folder = true;
    agent_session *s = NULL;
    assert_int_equal(base_fs_write(script_path, "answer a\n", 9, 0600, NULL), 0);
    agent_session_options options = {
        .dir = tree, .fake_script = script_path, .budget = no_folder_yet, .budget_user = &has_folder};
    assert_int_equal(
        agent_session_open(&s, &options, &(agent_host){.user = &h, .event = host_event}, &h.cancel, NULL),
        BASE_E_USAGE);
    assert_false(has_folder);
    free_host(&h);
}

static void test_session_log__a_binary_file_is_named_and_left_out(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    char path[200];
    snprintf(path, sizeof path, "%s/image.bin", tree);
    assert_int_equal(base_fs_write(path, "GIF\0secret", 10, 0600, NULL), 0);
    put_file("empty.txt", "");
    submit(s, &h, "what is in @image.bin and @empty.txt?");
    assert_true(told(&h, "@image.bin is binary"));
    assert_true(told(&h, "@empty.txt is empty"));
    assert_false(told(&h, "image.bin:1")); /* no excerpt of its first bytes */
    agent_session_close(s);
    free_host(&h);
}

static void test_session_log__a_session_without_a_turn_leaves_nothing(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    assert_int_equal(submit(s, &h, "/compact"), BASE_E_USAGE);
    assert_int_equal(submit(s, &h, "/rewind"), BASE_E_USAGE);
    assert_true(told(&h, "there is no turn yet"));
    assert_false(told(&h, "FOREIGN"));
    agent_session_close(s);
    char *stored = logged(id);
    assert_string_equal(stored, "");
    free(stored);
    free(id);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_session_log__the_log_holds_what_json_printed),
        TEST_CASE(test_session_log__the_logged_plans_rebuild_each_lane),
        TEST_CASE(test_session_log__resume_computes_nothing_with_a_snapshot_and_the_same_without),
        TEST_CASE(test_session_log__a_fork_computes_nothing_and_leaves_its_parent),
        TEST_CASE(test_session_log__a_fork_that_cannot_be_says_why_and_leaves_nothing),
        TEST_CASE(test_session_log__a_resume_in_another_mode_tells_it),
        TEST_CASE(test_session_log__killed_anywhere_it_resumes),
        TEST_CASE(test_session_log__an_interruption_is_told_once),
        TEST_CASE(test_session_log__a_second_process_cannot_resume_a_running_session),
        TEST_CASE(test_session_log__rows_of_the_sessions_unused_longest_go),
        TEST_CASE(test_session_log__a_folder_comes_with_the_logs_row),
        TEST_CASE(test_session_log__a_binary_file_is_named_and_left_out),
        TEST_CASE(test_session_log__a_session_without_a_turn_leaves_nothing),
    };
    return RUN_ON_BOTH(tests);
}
