/* A command behind each wall that uses too much memory, starts too many processes or prints too much is ended, and it is said why. */
#include "sandbox_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tools/confine/meter.h"

/* The command with a number in the place of each "$stay". */
static char *with_stay(const char *command, const char *seconds)
{
    static const char word[] = "$stay";
    base_buf out = {0};
    for (const char *at; (at = strstr(command, word)); command = at + sizeof word - 1)
        base_buf_printf(&out, "%.*s%s", (int)(at - command), command, seconds);
    base_buf_puts(&out, command);
    return base_buf_take(&out);
}

/*
 * Without kvist it runs through; behind every wall it is ended and the result says why. What is to be ended stays for $stay seconds, so
 * that a busy machine finds the time to look.
 */
static void check_limit(const char *command, const tool_meter_limits *limits, const char *sentence)
{
    tree t;
    const char *names[3];
    tool_sandbox walls[3];
    tree_make(&t, true);
    sandbox_put_attack(&t);
    tree_open(&t);
    const tool_sandbox real = t.w->sandbox;
    char *bare = with_stay(command, "1"), *confined = with_stay(command, sentence ? "100" : "1");
    char *said = sandbox_run_bare(&t, bare);
    bool works = strstr(said, "\nreached\n") != NULL;
    if (!works) print_message("skipped: %s fails without kvist: %.300s\n", command, said);
    free(said);
    t.limits.shell_limits = limits;
    for (int i = 0, n = works ? sandbox_walls(&real, walls, names) : 0; i < n; i++) {
        t.w->sandbox = walls[i];
        said = sandbox_run_confined(&t, confined);
        if (sentence && !strstr(said, sentence)) fail_msg("%s behind %s: %.500s", command, names[i], said);
        if (!sentence && !strstr(said, "\nreached\n"))
            fail_msg("%s behind %s: %.500s", command, names[i], said);
        free(said);
    }
    free(bare);
    free(confined);
    tree_remove(&t);
    if (!works) skip();
}

static const tool_meter_limits small = {.memory = 64 << 20, .processes = 40, .output = 8 << 20};

static void test_limit__memory(void **state)
{
    check_limit("./attack memory 100 0 $stay", &small, "ended: it used more than 0.1 GiB of memory");
}

static void test_limit__memory_that_processes_share_counts_once(void **state)
{
    check_limit("./attack memory 40 1 $stay", &small, NULL);
}

static void test_limit__memory_of_many_processes_is_added_up(void **state)
{
    check_limit("sh -c './attack memory 30 0 $0 & ./attack memory 30 0 $0 & ./attack memory 30 0 $0' $stay",
        &small, "ended: it used more than 0.1 GiB of memory");
}

static void test_limit__processes(void **state)
{
    check_limit("./attack processes 60 $stay", &small, "ended: it had more than 40 processes");
}

/* The kernel lists a process's children a page at a time: about 700 in one. */
static void test_limit__processes_beyond_a_page_of_them(void **state)
{
    check_limit("./attack processes 1200 $stay",
        &(tool_meter_limits){.memory = (uint64_t)4 << 30, .processes = 1000, .output = 8 << 20},
        "ended: it had more than 1000 processes");
}

static void test_limit__output(void **state)
{
    check_limit("./attack flood 40", &small, "ended: it printed more than 8 MiB");
}

static void test_limit__address_space_is_no_memory(void **state)
{
    check_limit("node -e 'console.log(`\\nreached`)'",
        &(tool_meter_limits){.memory = 400 << 20, .processes = 100, .output = 8 << 20}, NULL);
}

static int run(const char *who)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit__memory),
        cmocka_unit_test(test_limit__memory_that_processes_share_counts_once),
        cmocka_unit_test(test_limit__memory_of_many_processes_is_added_up),
        cmocka_unit_test(test_limit__processes),
        cmocka_unit_test(test_limit__processes_beyond_a_page_of_them),
        cmocka_unit_test(test_limit__output),
        cmocka_unit_test(test_limit__address_space_is_no_memory),
    };
    return cmocka_run_group_tests_name(who, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return sandbox_main(argc, argv, run);
}
