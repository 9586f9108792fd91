/*
 * What judges a change waits until all that was asked for is in the tree. Where some of it never came, what did come is judged at the
 * turn's end all the same: a tree that does not compile is not left without a word.
 */
#include <stdlib.h>

#include "agent/judge/judge.h"
#include "agent/session/tell.h"
#include "tools/run/scratch.h"

enum { TEST_MS = 60000, TEST_BYTES = 2400 };

/* In a copy of the tree, so that nothing of what runs changes it behind the last answer. */
static int run_in_copy(agent *a, tool_status *ret, base_err *err)
{
    tool_scratch *copy = NULL;
    tool_result result = {.exit_code = -1};
    tool_limits limits = {.result_bytes = TEST_BYTES, .shell_ms = TEST_MS, .cancel = a->cancel};
    int rc = tool_scratch_make(a->workspace, a->test.in_copy, &copy, a->cancel, err);
    if (!rc) rc = tool_scratch_run(copy, a->test.command, &limits, &result, err);
    *ret = result.status;
    tool_result_free(&result);
    tool_scratch_free(copy);
    return rc;
}

/* Nobody is asked about commands, and what judges was found and has not run. */
static bool is_due(const agent *a)
{
    return a->asked.change && a->asked.n_changed && a->settings.mode == AGENT_MODE_ALL && a->test.command &&
           a->test.is_found && !a->test.has_values && !a->fix.no_test && !a->fix.passed && !a->fix.failing;
}

void agent__judge_late(agent *a)
{
    enum { MOST = 4 };
    for (int i = 0; i < MOST && is_due(a); i++) {
        tool_status status = TOOL_OK;
        base_err err = {0};
        if (run_in_copy(a, &status, &err)) {
            agent__notice(a, "what is there of the change could not be judged: %s", err.msg);
            return;
        }
        a->fix.passed = status == TOOL_OK;
        if (a->fix.passed || (status != TOOL_FAILED && status != TOOL_TIMEOUT)) return;
        a->fix.failing = a->fix.was_whole = !agent__fails_without(a, a->test.command, NULL);
        if (!a->fix.failing && !agent__find_next_judge(a, a->fix.path ? a->fix.path : a->asked.changed[0]))
            a->fix.no_test = true;
    }
}
