/*
 * The shell, and one request without a screen (-p). Opening runs on the engine thread in the shell (the prompt
 * accepts typing while the model loads) and on the main thread for -p.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/headless.h"
#include "agent/log/log.h"
#include "agent/worker.h"
#include "base/fs.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/shell_setup.h"
#include "tui/tui.h"

static const char usage[] =
    "usage: kvist [DIR] [--resume [ID]] [options]          the shell on the git tree DIR (default: here)\n"
    "       kvist -p TEXT [--dir DIR] [--json] [options]   one request without a screen\n"
    "       kvist -p TEXT --schema FILE [options]          one whose answer is JSON of that schema\n"
    "       kvist -p - --input jsonl [--json] [options]    several, an object a line on the standard input\n";

/* What the engine thread opens, and what came of it. */
typedef struct session_opening {
    agent_session_options session;
    agent_session *opened;
} session_opening;

static int open_on_thread(void *user, const agent_host *host, atomic_bool *cancel,
    void (*progress)(void *host_user, double share, const char *what), agent **ret, base_err *err)
{
    session_opening *o = user;
    o->session.progress = progress;
    o->session.progress_user = host->user;
    int code = agent_session_open(&o->opened, &o->session, host, cancel, err);
    if (!code) *ret = agent_session_agent(o->opened);
    return code;
}

/* Another process is writing the session, so it is shown read only, as a replay is. */
static int show_only(const char *id, base_err *err)
{
    agent_log *log = NULL;
    int code = agent_log_open(&log, NULL, true, err);
    const tui_options options = {.no_color = getenv("NO_COLOR") && *getenv("NO_COLOR"),
        .note = "another kvist has this session open: here it is read only, as it stood just now"};
    if (!code) code = tui_replay(log, id, &options, err);
    agent_log_close(log);
    return code;
}

static int run_screen(const shell_options *o, session_opening *opening, base_err *err)
{
    if (!o->linear && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        return base_fail(err, BASE_E_USAGE,
            "the shell needs a terminal; for one request without a screen use kvist -p \"...\"");
    char *in_use = o->linear ? NULL : agent_session_in_use(&opening->session);
    if (in_use) {
        int code = show_only(in_use, err);
        free(in_use);
        return code;
    }
    agent_worker *worker;
    char *history = base_fs_home(BASE_HOME_STATE, "history");
    opening->session.show_log = true; /* a resumed session opens on the screen it was left with */
    int code = agent_worker_start(&worker, open_on_thread, opening, err);
    if (!code) {
        const char *slash = opening->session.model_path ? strrchr(opening->session.model_path, '/') : NULL;
        code = tui_run(worker,
            &(tui_options){.linear = o->linear,
                .no_color = getenv("NO_COLOR") && *getenv("NO_COLOR"),
                .notify = !o->notify                     ? TUI_NOTIFY_OFF
                          : !strcmp(o->notify, "bell")   ? TUI_NOTIFY_BELL
                          : !strcmp(o->notify, "osc777") ? TUI_NOTIFY_OSC777
                                                         : TUI_NOTIFY_OFF,
                .long_turn_ms = o->notify_after * 1000,
                .root = o->dir,
                .history = o->ephemeral ? NULL : history,
                .first_line = slash                       ? slash + 1
                              : opening->session.endpoint ? opening->session.endpoint->http.url
                                                          : "scripted engine"},
            err);
        agent_worker_stop(worker);
    }
    agent_session_close(opening->opened);
    free(history);
    return code;
}

static int read_prompt(const char *given, base_buf *ret, base_err *err)
{
    bool is_stdin = !strcmp(given, "-");
    int code = is_stdin ? base_fs_read_given("/dev/stdin", 1 << 20, ret, err) : 0;
    if (!is_stdin) base_buf_puts(ret, given);
    if (!code && ret->data && memchr(ret->data, 0, ret->len))
        code = base_fail(
            err, BASE_E_USAGE, "the request on the standard input holds a zero byte: it is not text");
    if (!code && (!ret->data || !ret->data[strspn(ret->data, " \t\r\n")]))
        code = base_fail(err, BASE_E_USAGE, "%s: say what should be done",
            is_stdin ? "the request on the standard input is empty" : "-p was given an empty request");
    return code;
}

static const int outcome_statuses[] = {
    [AGENT_OUTCOME_DONE] = CMD_OK,
    [AGENT_OUTCOME_FAILED] = CMD_FAILED,
    [AGENT_OUTCOME_WRONG] = CMD_USAGE,
    [AGENT_OUTCOME_LIMIT] = CMD_LIMIT,
    [AGENT_OUTCOME_DENIED] = CMD_DENIED,
    [AGENT_OUTCOME_INTERRUPTED] = CMD_INTERRUPTED,
};

int cmd_shell(int argc, char **argv)
{
    shell_setup s;
    base_err err = {0};
    base_buf prompt = {0};
    agent_outcome outcome;
    int status, code = 0;
    if (!shell_setup_make(&s, argc, argv, usage, &status)) goto out;
    session_opening opening = {.session = s.session};
    if (s.options.prompt) {
        if (!s.options.input) code = read_prompt(s.options.prompt, &prompt, &err);
        const agent_run run = {
            prompt.data, (uint32_t)s.options.max_turns, s.options.json}; /* no text: a line each */
        if (!code) code = agent_headless_run(&s.session, &run, &outcome, &err);
        if (!code) status = outcome_statuses[outcome];
    } else {
        code = run_screen(&s.options, &opening, &err);
    }
    if (code) status = cmd_complain(&err);
out:
    base_buf_free(&prompt);
    shell_setup_free(&s);
    return status;
}
