/*
 * shell {command, seconds?}: one command in the tree's folder, confined (sandbox.c), run by shell.c. The
 * result begins with how it ended and keeps more of the output's tail than of its head: that is where a
 * failing test says why.
 */
#include "tools/guard/git_check.h"
#include "tools/guard/git_guard.h"
#include "tools/run/box.h"
#include "tools/run/scratch.h"
#include "tools/run/served.h"
#include "tools/confine/shell.h"
#include "tools/confine/supervise.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tools/tree/workspace.h"
#include "tools/result/result.h"

#define DEFAULT_SECONDS 120

static int prepare(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
    tool_result *result, base_err *err)
{
    const char *command = tool__string(call, "command");
    result->exit_code = -1;
    if (!command || strspn(command, " \t\n") == strlen(command)) {
        tool__say(result, TOOL_FAILED, "shell needs a command. Next: shell {\"command\": \"...\"}\n");
    } else if (strlen(command) > 100000) {
        tool__say(result, TOOL_REFUSED,
            "This command is longer than 100,000 bytes. Write it to a file and run that.\n");
    } else if (w->root.is_bare) {
        tool__say(result, TOOL_REFUSED, "A bare repository has no files to run commands on.\n");
    } else {
        base_buf head = {0};
        base_buf_puts(&head, "$ ");
        base_buf_puts(&head, command);
        if (!w->sandbox.is_confining) base_buf_puts(&head, "   (NOT confined on this machine)");
        const char *copy = call->in_copy ? tool__scratch_kept_path(w, err) : NULL;
        if (call->in_copy && !copy) {
            base_buf_free(&head);
            return err ? err->code : BASE_E_IO;
        }
        if (copy) base_buf_printf(&head, "   (in a copy of this tree: %s)", copy);
        if (!w->sandbox.has_mounts && !copy)
            base_buf_puts(&head,
                "   (no mount namespace here: what it plants for git is found when it has ended; "
                "run no git in this tree meanwhile)");
        *ret = (tool_preview){.headline = base_buf_take(&head),
            .detail = base_xstrdup(command),
            .asks_once = !w->sandbox.has_mounts && !copy};
    }
    return BASE_OK;
}

/*
 * The model is not told how long it took: the same command's result shall read the same. The person is, in
 * the summary.
 */
static void describe_end(const tool_child *c, uint64_t ms, tool_result *ret)
{
    static const tool_status status_of[] = {TOOL_OK, TOOL_FAILED, TOOL_TIMEOUT, TOOL_CANCELLED, TOOL_FAILED};
    ret->status = status_of[c->end];
    if (c->end == TOOL_CHILD_EXITED) {
        if (c->code) ret->status = TOOL_FAILED;
        ret->exit_code = c->code;
        base_buf_printf(&ret->text, "exit code %d", c->code);
    } else if (c->end == TOOL_CHILD_SIGNALLED) {
        base_buf_printf(&ret->text, "ended by signal %d (%s)", c->code, strsignal(c->code));
    } else if (c->end == TOOL_CHILD_TIMEOUT) {
        base_buf_printf(
            &ret->text, "ended after the time limit of %.1f s; give \"seconds\" for more", (double)ms / 1000);
    } else if (c->end == TOOL_CHILD_LIMITED) {
        base_buf_puts(&ret->text, c->limit);
    } else {
        base_buf_puts(&ret->text, "cancelled by the person");
    }
    if (c->left_others) base_buf_puts(&ret->text, "; processes left in the background were ended");
    base_buf_puts(&ret->text, c->output.len ? "\n" : ", no output\n");
}

/* What git says where its files are read-only or mounts of their own: the model learns whom to ask instead of trying again. */
static void explain_refusal(const tool_child *c, base_buf *out)
{
    static const char *const words[] = {"Read-only file system", "Device or resource busy"};
    const base_buf *text = &c->output;
    bool is_refused = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is_refused |= text->len && memmem(text->data, text->len, words[i], strlen(words[i]));
    if (is_refused && memmem(text->data, text->len, ".git", 4))
        base_buf_puts(out,
            "git's configuration, hooks and worktrees are read-only for commands. If this needs "
            "them changed, ask the person to run it.\n");
}

/*
 * What the command sees and may do: in the tree, or in the copy, which is brought up to date first. A copy that cannot be
 * made is said in the result: nothing runs then.
 */
static int prepare_plan(tool_workspace *w, const tool_call *call, const tool_limits *limits,
    tool_sandbox_plan *plan, tool_result *ret, base_err *err)
{
    tool_scratch *copy = NULL;
    base_err why = {0};
    const tool_box_wishes wishes = {.writes = true, .shows_home = call->is_persons};
    if (!call->in_copy) return tool__box_prepare(w, &wishes, plan, err);
    const int rc = tool_scratch_make(w, true, &copy, limits ? limits->cancel : NULL, &why);
    if (!rc) return tool__scratch_prepare(copy, plan, err);
    if (rc == BASE_E_CANCELLED || rc == BASE_E_NOMEM) {
        if (err) *err = why;
        return rc;
    }
    tool__say(ret, TOOL_REFUSED, "The copy of the tree for it could not be made: %s.\n", why.msg);
    return 0;
}

static int run(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
    tool_result *ret, base_err *err)
{
    const char *command = tool__string(call, "command");
    uint64_t most = limits && limits->shell_ms ? limits->shell_ms : DEFAULT_SECONDS * 1000;
    uint64_t ms = (uint64_t)tool__integer(call, "seconds", (int64_t)(most / 1000), 1, 86400) * 1000;
    if (ms > most || !base_json_get(call->arguments, "seconds")) ms = most;
    tool_sandbox_plan plan = {.ruleset = -1};
    tool_child c = {0};
    base_buf told = {0};
    ret->exit_code = -1;
    if (!command) return prepare(w, call, limits, &(tool_preview){0}, ret, err);
    tool__git_guard_take(w);
    int code = prepare_plan(w, call, limits, &plan, ret, err);
    const bool may_run = !code && ret->status == TOOL_OK;
    if (may_run) {
        code = tool__child_run(&plan, command, limits, ms, &c, err);
        tool__git_guard_check(w, &told);
        tool__served_move(w);
        if (!code && c.is_stuck)
            base_buf_printf(&told,
                "A process of the command was killed and has not ended within %d "
                "s: the kernel keeps it, as a disk or a network folder that does "
                "not answer does. It may still write to the tree; `ps` shows it.\n",
                TOOL_END_PATIENCE_MS / 1000);
    }
    if (told.len) ret->notice = base_xstrdup(told.data);
    if (!code && may_run) {
        describe_end(&c, ms, ret);
        if (told.len) base_buf_add(&ret->text, told.data, told.len);
        explain_refusal(&c, &ret->text);
        base_buf_add(&ret->text, c.output.data, c.output.len);
        if (ret->text.data[ret->text.len - 1] != '\n') base_buf_putc(&ret->text, '\n');
        ret->total_bytes = c.total_bytes;
        ret->ms = c.ms;
        tool__cap(w, ret, limits, 2);
        tool__trace_output(w, ret, command, 0);
        base_buf summary = {0};
        base_buf_add(&summary, ret->text.data, strcspn(ret->text.data, "\n"));
        base_buf_printf(&summary, ", %.1f s", (double)c.ms / 1000);
        ret->summary = base_buf_take(&summary);
    }
    tool__child_free(&c);
    tool_sandbox_plan_free(&plan);
    base_buf_free(&told);
    return code;
}

static const tool_argument arguments[] = {
    {"command", TOOL_ARGUMENT_STRING, true, "one shell command", NULL, TOOL_FOR_ALL},
    {"seconds", TOOL_ARGUMENT_INTEGER, false, "time limit", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__shell = {
    .name = "shell",
    .power = TOOL_RUNS,
    .about = "Run a command in the tree's folder, without network. Use it for tests.",
    .arguments = arguments,
    .prepare = prepare,
    .run = run,
};
