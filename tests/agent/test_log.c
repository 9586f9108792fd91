/*
 * The session log: what goes in comes out byte for byte, a killed turn is interrupted, and damage gives a
 * sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/log/log.h"
#include "base/fs.h"

static char folder[64];
static char path[96];

static int make_folder(void **state)
{
    strcpy(folder, "/tmp/kvist-log-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/log.db", folder);
    return 0;
}

static int drop_folder(void **state)
{
    return base_fs_remove(folder, NULL);
}

static agent_log *open_log(void)
{
    agent_log *l = NULL;
    base_err err = {0};
    assert_int_equal(agent_log_open(&l, path, false, &err), 0);
    return l;
}

static void add(agent_log *l, const char *id, agent_event e)
{
    static uint64_t seq;
    e.seq = ++seq;
    assert_int_equal(agent_log_add(l, id, &e, NULL), 0);
}

static void add_user(agent_log *l, const char *id, int turn, const char *text)
{
    add(l, id, (agent_event){.type = AGENT_EVENT_user, .user = {.turn = turn, .text = text}});
}

static bool collect(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    base_buf *out = user;
    base_buf_printf(out, "%u ", turn);
    base_buf_add(out, json, n);
    if (blob_n) base_buf_printf(out, " +%zu", blob_n);
    base_buf_putc(out, '\n');
    return true;
}

static void on_row(void *user, const agent_log_row *r)
{
    base_buf_printf(user, "%s %s %u %s;", r->id, r->status, r->turns, r->title);
}

static void on_match(void *user, const agent_log_match *m)
{
    base_buf_printf(user, "%s %s %u;", m->session, m->kind, m->turn);
}

static void test_log__gives_back_the_bytes(void **state)
{
    agent_log *l = open_log();
    assert_int_equal(agent_log_create(l, "s1", NULL, "/tree", "m", NULL), 0);
    char *big = malloc(20001);
    for (int i = 0; i < 20000; i++) big[i] = (char)('a' + i % 7);
    big[20000] = 0;
    base_buf expected = {0}, got = {0};
    agent_event events[] = {
        {.type = AGENT_EVENT_user, .user = {.turn = 1, .text = "hi\n\xc3\xa9"}},
        {.type = AGENT_EVENT_token, .token = {.id = 4, .index = 2, .text = "x"}},
        {.type = AGENT_EVENT_plan,
            .blob = "abc",
            .blob_n = 3,
            .plan = {.turn = 1, .cause = "evict", .runs = {&(agent_run_row){0}, 0}}},
        {.type = AGENT_EVENT_tool_result, .tool_result = {.turn = 1, .name = "read", .text = big}},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        add(l, "s1", events[i]);
        base_buf_puts(&expected, "1 ");
        agent_event_write(&events[i], &expected);
        base_buf_puts(&expected, i == 2 ? " +3\n" : "\n");
    }
    assert_int_equal(agent_log_events(l, "s1", collect, &got, NULL), 0);
    assert_int_equal(got.len, 0); /* nothing before the commit */
    assert_int_equal(agent_log_commit(l, NULL), 0);
    agent_log_close(l);

    assert_int_equal(agent_log_open(&l, path, true, NULL), 0);
    assert_int_equal(agent_log_events(l, "s1", collect, &got, NULL), 0);
    assert_string_equal(got.data, expected.data);
    agent_log_close(l);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    base_buf_free(&expected);
    base_buf_free(&got);
    free(big);
}

static void test_log__lists_finds_and_searches(void **state)
{
    agent_log *l = open_log();
    base_buf out = {0};
    agent_log_create(l, "20260101-aaa", NULL, "/one", "m", NULL);
    agent_log_create(l, "20260102-bbb", "20260101-aaa", "/two", "m", NULL);
    add_user(l, "20260101-aaa", 1, "why does log_commit fail?");
    add(l, "20260101-aaa",
        (agent_event){.type = AGENT_EVENT_turn_end, .turn_end = {.turn = 1, .status = "closed"}});
    add_user(l, "20260102-bbb", 1, "something \"else\" entirely");
    agent_log_commit(l, NULL);
    assert_int_equal(agent_log_list(l, "/one", on_row, &out, NULL), 0);
    assert_string_equal(out.data, "20260101-aaa closed 1 why does log_commit fail?;");
    base_buf_clear(&out);
    assert_int_equal(agent_log_search(l, NULL, "log_commit", 0, on_match, &out, NULL), 0);
    assert_string_equal(out.data, "20260101-aaa user 1;");
    base_buf_clear(&out);
    assert_int_equal(agent_log_search(l, NULL, "entirely \"else\" -", 0, on_match, &out, NULL), 0);
    assert_int_equal(agent_log_search(l, NULL, "  ", 0, on_match, &out, NULL), BASE_E_USAGE);

    char *id = NULL;
    assert_int_equal(agent_log_find(l, "20260102", NULL, &id, NULL), 0);
    assert_string_equal(id, "20260102-bbb");
    free(id);
    assert_int_equal(agent_log_find(l, "", "/one", &id, NULL), 0);
    assert_string_equal(id, "20260101-aaa");
    free(id);
    assert_int_equal(agent_log_find(l, "2026", NULL, &id, NULL), BASE_E_USAGE);
    assert_int_equal(agent_log_find(l, "x", NULL, &id, NULL), BASE_E_NOT_FOUND);
    assert_int_equal(agent_log_find(l, "", "/three", &id, NULL), BASE_E_NOT_FOUND);
    base_buf_free(&out);
    agent_log_close(l);
}

static void test_log__a_second_process_is_refused_and_a_killed_turn_is_interrupted(void **state)
{
    int ready[2], go[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    pid_t child = fork();
    if (!child) {
        agent_log *mine = NULL;
        agent_event user = {.type = AGENT_EVENT_user, .seq = 1, .user = {.turn = 1, .text = "first"}};
        agent_event lost = {
            .type = AGENT_EVENT_answer, .seq = 2, .answer = {.turn = 1, .text = "never written"}};
        if (agent_log_open(&mine, path, false, NULL) || agent_log_create(mine, "s1", NULL, "/t", "m", NULL))
            _exit(1);
        agent_log_add(mine, "s1", &user, NULL);
        if (agent_log_commit(mine, NULL)) _exit(1);
        agent_log_add(mine, "s1", &lost, NULL);
        char c = 'r';
        if (write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 1) _exit(1);
        _exit(0); /* without closing anything: as if killed */
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    agent_log *l = open_log();
    base_buf out = {0};
    base_err err = {0};
    assert_int_equal(agent_log_list(l, NULL, on_row, &out, NULL), 0);
    assert_string_equal(out.data, "s1 open 1 first;");
    assert_int_equal(agent_log_lock(l, "s1", &err), BASE_E_STATE);
    assert_non_null(strstr(err.msg, "another kvist"));
    assert_int_equal(agent_log_delete(l, "s1", NULL), BASE_E_STATE);
    assert_int_equal(write(go[1], &c, 1), 1);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);

    base_buf_clear(&out);
    assert_int_equal(agent_log_list(l, NULL, on_row, &out, NULL), 0);
    assert_string_equal(out.data, "s1 interrupted 1 first;");
    assert_int_equal(agent_log_lock(l, "s1", NULL), 0);
    agent_log_tail tail;
    assert_int_equal(agent_log_get_tail(l, "s1", &tail, NULL), 0);
    assert_int_equal(tail.seq, 1);
    assert_int_equal(tail.turn, 1);
    assert_false(tail.turn_open);
    base_buf_free(&out);
    agent_log_close(l);
}

static void test_log__delete_leaves_no_word_behind(void **state)
{
    agent_log *l = open_log();
    agent_log_create(l, "s1", NULL, "/t", "m", NULL);
    add_user(l, "s1", 1, "xylophonesecret in the text");
    agent_log_commit(l, NULL);
    char *dir = agent_log_session_dir(l, "s1");
    base_buf file = {0};
    base_buf_printf(&file, "%s/rows", dir);
    assert_int_equal(base_fs_write(file.data, "x", 1, 0600, NULL), 0);
    assert_int_equal(agent_log_delete(l, "s1", NULL), 0);
    assert_false(base_fs_exists(dir));
    assert_int_equal(agent_log_delete(l, "s1", NULL), BASE_E_NOT_FOUND);
    agent_log_close(l);
    base_buf_clear(&file);
    assert_int_equal(base_fs_read(path, 1 << 24, &file, NULL), 0);
    assert_null(memmem(file.data, file.len, "xylophonesecret", 15));
    base_buf_free(&file);
    free(dir);
}

static void test_log__damage_gives_a_sentence(void **state)
{
    agent_log *l = open_log();
    agent_log_close(l);
    /* A newer one. */
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    base_err err = {0};
    assert_int_equal(agent_log_open(&l, path, false, &err), BASE_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "newer kvist"));
    /* No database at all. */
    char noise[4096];
    memset(noise, 'n', sizeof noise);
    assert_int_equal(base_fs_write(path, noise, sizeof noise, 0600, NULL), 0);
    assert_int_equal(agent_log_open(&l, path, false, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "damaged"));
    assert_int_equal(agent_log_open(&l, "/nonexistent/x/log.db", true, &err), BASE_E_NOT_FOUND);
}

static void test_log__locked_database_keeps_the_events_for_the_next_try(void **state)
{
    agent_log *l = open_log();
    agent_log_create(l, "s1", NULL, "/t", "m", NULL);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    add_user(l, "s1", 1, "text");
    base_err err = {0};
    assert_int_equal(agent_log_commit(l, &err), BASE_E_STATE);
    assert_non_null(strstr(err.msg, "locked by another process"));
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(agent_log_commit(l, &err), 0);
    base_buf out = {0};
    assert_int_equal(agent_log_events(l, "s1", collect, &out, NULL), 0);
    assert_non_null(strstr(out.data, "\"text\":\"text\""));
    base_buf_free(&out);
    agent_log_close(l);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_log__gives_back_the_bytes),
        TEST(test_log__lists_finds_and_searches),
        TEST(test_log__a_second_process_is_refused_and_a_killed_turn_is_interrupted),
        TEST(test_log__delete_leaves_no_word_behind),
        TEST(test_log__damage_gives_a_sentence),
        TEST(test_log__locked_database_keeps_the_events_for_the_next_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
