/*
 * pytest cuts what it compares to some thirty letters ("assert (('Alice', 'B...a0>) == ('Alice', 'Bob')"), and then nobody can read
 * what the code gave. Asked once more, verbosely and for the new test alone, it prints all of it (contract: newtest.h).
 */
#include <string.h>

#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "base/mem.h"

bool agent__is_output_cut(const char *output)
{
    for (const char *line = output; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t n = strcspn(line, "\n");
        if (n > 2 && line[0] == 'E' && line[1] == ' ' && memmem(line, n, "assert ", 7) &&
            memmem(line, n, "...", 3))
            return true;
    }
    return false;
}

void agent__put_verbose(const char *command, const char *name, base_buf *out)
{
    static const char brief[] = "pytest -q ";
    const char *at = strstr(command, brief);
    if (!at) return;
    base_buf verbose = {0};
    base_buf_printf(&verbose, "%.*spytest -vv %s", (int)(at - command), command, at + sizeof brief - 1);
    agent__put_test_alone(verbose.data, name, out);
    base_buf_free(&verbose);
}

char *agent__read_in_full(agent *a, tool_scratch *s, const char *output)
{
    enum { TEST_MS = 60000, TEST_BYTES = 16384 };
    const agent_new_test *t = &a->asked.new_test;
    const tool_limits limits = {.result_bytes = TEST_BYTES, .shell_ms = TEST_MS, .cancel = a->cancel};
    tool_result result = {.exit_code = -1};
    tool_scratch *own = NULL;
    base_buf command = {0};
    char *full = NULL;
    if (t->path && t->name && !t->rows && a->test.command && agent__is_output_cut(output))
        agent__put_verbose(a->test.command, t->name, &command);
    const bool can =
        command.len && (s || !tool_scratch_make(a->workspace, a->test.in_copy, &own, a->cancel, NULL));
    if (can && !tool_scratch_run(s ? s : own, command.data, &limits, &result, NULL) &&
        result.status == TOOL_FAILED && result.text.data)
        full = base_xstrdup(result.text.data);
    tool_result_free(&result);
    tool_scratch_free(own);
    base_buf_free(&command);
    return full;
}
