/*
 * The tree without this turn's changes: a command that fails there as well says nothing of them.
 */
#include "agent/judge/judge.h"
#include "agent/session/tell.h"
#include "tools/run/scratch.h"

enum { TEST_MS = 60000, TEST_BYTES = 2400 };

bool agent__fails_without(agent *a, const char *command, base_buf *output)
{
    tool_scratch *copy = NULL;
    tool_result result = {.exit_code = -1};
    tool_limits limits = {.result_bytes = TEST_BYTES, .shell_ms = TEST_MS, .cancel = a->cancel};
    base_err err = {0};
    int rc = tool_scratch_make(a->workspace, a->test.in_copy, &copy, a->cancel, &err);
    /* A turn that has written nothing yet has the tree as it was. */
    if (!rc && a->asked.n_changed) rc = tool_scratch_put_before(copy, a->workspace, &err);
    if (!rc) rc = tool_scratch_run(copy, command, &limits, &result, &err);
    const bool fails = !rc && (result.status == TOOL_FAILED || result.status == TOOL_TIMEOUT);
    if (rc) agent__notice(a, "whether it fails without the change could not be tried: %s", err.msg);
    if (output && result.text.len) base_buf_add(output, result.text.data, result.text.len);
    tool_result_free(&result);
    tool_scratch_free(copy);
    return fails;
}
