/*
 * Commands that change the tree: operations on definitions as calls of the refactor tool, undo, commit.
 */
#include "agent/command/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/act/act.h"
#include "agent/approve/approve.h"
#include "agent/command/command.h"
#include "agent/retrieve/retrieve.h"
#include "agent/session/tell.h"
#include "base/mem.h"

/* Nobody can be asked: undoing writes files, so the mode decides. */
static int permit_undo(agent *a, base_err *err)
{
    const char *who = tool_undo_obeyed_by(a->workspace);
    if (!who && (a->settings.mode == AGENT_MODE_EDITS || a->settings.mode == AGENT_MODE_ALL)) return 0;
    base_buf why = {0};
    base_buf_puts(&why, "undoing needs an approval");
    if (who) base_buf_printf(&why, " in every mode, since %s would obey a file of it unasked,", who);
    base_buf_puts(&why, " and nobody can be asked in this run");
    const int rc = agent__deny_unasked(a, why.data, err);
    base_buf_free(&why);
    return rc;
}

int agent__run_commit(agent *a, const char *arguments, base_err *err)
{
    if (*arguments) return base_fail(err, BASE_E_USAGE, "/commit takes no words: it commits what is staged");
    return agent__git_commit(a, err);
}

int agent__run_undo(agent *a, const char *arguments, base_err *err)
{
    base_buf diff = {0};
    int rc = tool_undo_preview(a->workspace, &diff, err);
    agent_event request = {.type = AGENT_EVENT_approval_request,
        .approval_request = {.turn = a->turn,
            .name = "undo",
            .headline = "undo the last changes of files",
            .detail = diff.data,
            .power = "writes"}};
    if (!rc && !a->host.approve) rc = permit_undo(a, err);
    if (!rc && a->host.approve) {
        agent__emit(a, &request);
        agent_decision d = a->host.approve(a->host.user, &request);
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_approval,
                           .approval = {.turn = a->turn, .decision = d.answer == AGENT_NO ? "no" : "yes"}});
        free(d.text);
        if (d.answer == AGENT_NO) {
            base_buf_free(&diff);
            return 0;
        }
    }
    char *summary = NULL;
    if (!rc) rc = tool_undo_apply(a->workspace, &summary, err);
    if (!rc) {
        a->made.world++;
        agent__emit(
            a, &(agent_event){.type = AGENT_EVENT_undo, .undo = {.turn = a->turn, .summary = summary}});
        base_buf told = {0};
        agent__notice_changes(a, &told);
        base_buf_free(&told);
    }
    free(summary);
    base_buf_free(&diff);
    return rc;
}

/* The words of a command's arguments as members of a call of the refactor tool. */
static int operate(agent *a, const char *operation, const char *arguments, const char *const *names,
    const char *usage, base_err *err)
{
    base_buf json = {0};
    size_t n = 0;
    base_buf_printf(&json, "{\"operation\":\"%s\"", operation);
    const char *at = arguments;
    for (; names[n] && *at; n++) {
        const size_t len = names[n + 1] ? strcspn(at, " \t") : strlen(at); /* the last takes the rest */
        base_buf_printf(&json, ",\"%s\":", names[n]);
        const bool is_quoted = len >= 2 && *at == '"' && at[len - 1] == '"';
        base_json_put_str(&json, at + is_quoted, len - 2 * (size_t)is_quoted);
        at += len + strspn(at + len, " \t");
    }
    base_buf_putc(&json, '}');
    const int rc = names[n] ? base_fail(err, BASE_E_USAGE, "%s", usage) : agent__operate(a, json.data, err);
    base_buf_free(&json);
    return rc;
}

int agent__run_rename(agent *a, const char *arguments, base_err *err)
{
    static const char *const names[] = {"name", "to", NULL};
    return operate(a, "rename", arguments, names,
        "/rename takes a definition and its new name: /rename add_up total, /rename Cart.total sum", err);
}

int agent__run_move(agent *a, const char *arguments, base_err *err)
{
    static const char *const names[] = {"name", "to", NULL}, *const several[] = {"name", "with", "to", NULL};
    char *copy = base_xstrdup(arguments), *comma = strchr(copy, ',');
    const bool has_more = comma && comma < copy + strcspn(copy, " \t");
    if (has_more) *comma = ' ';
    const int rc = operate(a, "move", copy, has_more ? several : names,
        "/move takes a definition, or several with commas between, and a file: /move add_up shop/sums.py",
        err);
    free(copy);
    return rc;
}

int agent__run_delete(agent *a, const char *arguments, base_err *err)
{
    static const char *const with[] = {"name", "to", NULL};
    static const char *const alone[] = {"name", NULL};
    const bool is_alone = !strpbrk(arguments, " \t");
    return operate(a, "delete", arguments, is_alone ? alone : with,
        "/delete takes a definition, and what stands in place "
        "of its calls (\"nothing\" removes them): /delete add_up",
        err);
}

int agent__run_private(agent *a, const char *arguments, base_err *err)
{
    static const char *const names[] = {"name", NULL};
    return operate(a, "private", arguments, names, "/private takes a definition: /private add_up", err);
}

int agent__run_inline(agent *a, const char *arguments, base_err *err)
{
    static const char *const names[] = {"name", NULL};
    return operate(a, "inline", arguments, names, "/inline takes a function: /inline add_up", err);
}

/* /signature NAME PLACE VALUE PARAMETER adds, /signature NAME PARAMETER removes or orders. */
int agent__run_signature(agent *a, const char *arguments, base_err *err)
{
    static const char *const adds[] = {"name", "at", "value", "parameter", NULL};
    static const char *const other[] = {"name", "parameter", NULL};
    const char *second = arguments + strcspn(arguments, " \t");
    second += strspn(second, " \t");
    const char *third = second + strcspn(second, " \t");
    const bool is_added = *third && strspn(second, "0123456789") == (size_t)(third - second);
    return operate(a, "signature", arguments, is_added ? adds : other,
        "/signature add_up 2 0 \"int flags\" adds a second parameter for which callers give 0; /signature "
        "add_up flags removes it; /signature add_up 2,1 orders them",
        err);
}
