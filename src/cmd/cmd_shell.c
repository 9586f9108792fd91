/*
 * The shell, and one request without a screen (-p): options -> log, session, engine, workspace, agent.
 * Opening runs on the engine thread in the shell (the prompt accepts typing while the model loads) and on the
 * main thread for -p.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/headless.h"
#include "agent/log.h"
#include "agent/start.h"
#include "agent/worker.h"
#include "base/fs.h"
#include "base/mem.h"
#include "cmd/allow_read.h"
#include "cmd/cmd.h"
#include "cmd/config.h"
#include "cmd/config_text.h"
#include "cmd/endpoint.h"
#include "cmd/options.h"
#include "tui/tui.h"

static const char usage[] =
    "usage: kvist [DIR] [--resume [ID]] [options]         the shell on the git tree DIR (default: here)\n"
    "       kvist -p TEXT [--dir DIR] [--json] [options]   one request without a screen\n";

typedef struct shell_options {
    common_options common;
    const char *prompt, *dir, *mode, *resume, *context, *fake_script;
    bool json, version, ephemeral, linear;
    int64_t max_tokens, max_steps, tries;
    option_list allow_read, ignore;
    config config;     /* what files said; keeps the values */
    base_buf settings; /* what /settings shows */
    endpoint_words endpoint;
} shell_options;

/*
 * "--resume" alone means the latest session: it becomes "--resume=" so that every option with a value has
 * one.
 */
static char **with_resume_value(int argc, char **argv)
{
    char **out = base_xcalloc((size_t)argc + 1, sizeof *out);
    for (int i = 0; i < argc; i++) {
        bool alone =
            !strcmp(argv[i], "--resume") &&
            (i + 1 == argc || argv[i + 1][0] == '-' || strchr(argv[i + 1], '/') || !strcmp(argv[i + 1], "."));
        static char empty[] = "--resume=";
        out[i] = alone ? empty : argv[i];
    }
    return out;
}

/* A word that is no option is a folder; a mistyped command's name is one too. */
static int check_folder(const char *dir, bool is_word, base_err *err)
{
    struct stat st;
    if (!stat(dir, &st) && S_ISDIR(st.st_mode)) return BASE_OK;
    return base_fail(err, BASE_E_USAGE, "%s is no folder%s", dir,
        is_word && !strchr(dir, '/') ? ", and no command (kvist help lists them)" : "");
}

static bool is_stricter_mode(const void *value, const char *wanted)
{
    const char *word = *(const char *const *)value;
    agent_mode now = AGENT_MODE_ASK, after;
    return (!word || agent_mode_parse(word, &now)) && agent_mode_parse(wanted, &after) && after <= now;
}

static bool is_always_tighter(const void *value, const char *wanted)
{
    return true;
}

/* The tree's own file, opened as nothing outside of the tree can be. */
static int configure(int argc, char **argv, shell_options *o, const option_row *own, base_err *err)
{
    static const char project[] = ".kvist/config";
    tool_workspace *w = NULL;
    base_buf text = {0};
    base_err why = {0};
    int code = config_read_user(&o->config, argc, argv, &o->common, own, true, err);
    if (code || tool_workspace_open(&w, &(tool_workspace_options){.dir = o->dir}, NULL)) return code;
    const int failed = tool_workspace_read(w, project, CONFIG_MOST_BYTES, &text, &why);
    if (!failed)
        config_read_project(
            &o->config, argc, argv, &o->common, own, project, text.data ? text.data : "", text.len);
    else if (failed != BASE_E_NOT_FOUND)
        base_buf_printf(&o->config.notes, "%s is not read: %s\n", project, why.msg);
    base_buf_free(&text);
    tool_workspace_close(w);
    config_list(&o->config, argc, argv, own, &o->settings);
    return BASE_OK;
}

/* False: it is over, with *ret_status. */
static bool parse(int argc, char **argv, shell_options *o, int *ret_status)
{
    const option_row own[] = {
        {"-p", OPTION_TEXT, &o->prompt, "TEXT", "one request without a screen; - reads it from stdin"},
        {"--dir", OPTION_TEXT, &o->dir, "DIR", "the tree, like the word DIR"},
        {"--mode", OPTION_TEXT, &o->mode, "plan|ask|edits|all",
            "what needs asking: everything but reading is off | writes and commands | commands | nothing",
            "ask", .is_setting = true, .is_tighter = is_stricter_mode},
        {"--resume", OPTION_TEXT, &o->resume, "[ID]",
            "go on with a session (a prefix of its id; alone: the latest of this tree)"},
        {"--context", OPTION_TEXT, &o->context, "TOKENS|off",
            "how much retrieved code goes in front of a request", "1500", .is_setting = true},
        {"--max-tokens", OPTION_INTEGER, &o->max_tokens, "N", "longest answer", "1024", .is_setting = true},
        {"--max-steps", OPTION_INTEGER, &o->max_steps, "N", "tool calls a turn", "24", .is_setting = true},
        {"--tries", OPTION_INTEGER, &o->tries, "N",
            "where a test fails: sample up to N rewrites, offer the first that passes; 0 is off", "0",
            .is_setting = true},
        {"--allow-read", OPTION_LIST, &o->allow_read, "PATH",
            "commands may read it too, outside of the tree; asked once for each tree (repeatable)",
            .is_setting = true},
        {"--ignore", OPTION_LIST, &o->ignore, "PATTERN",
            "files of the tree that are not listed, indexed and retrieved, as `git ls-files` takes it "
            "(repeatable)",
            .is_setting = true, .is_tighter = is_always_tighter},
        ENDPOINT_OPTION_ROWS(&o->endpoint),
        {"--ephemeral", OPTION_FLAG, &o->ephemeral, NULL, "write no log", "off", .is_setting = true},
        {"--linear", OPTION_FLAG, &o->linear, NULL, "append-only screen, for screen readers and pipes", "off",
            .is_setting = true},
        {"--json", OPTION_FLAG, &o->json, NULL, "every event as a line (with -p)"},
        {"--version", OPTION_FLAG, &o->version, NULL, "the version, and what it was built with"},
        {"--fake-script", OPTION_TEXT, &o->fake_script}, /* a scripted engine, for tests */
        {0},
    };
    const char **rest = base_xcalloc((size_t)argc + 1, sizeof *rest);
    uint32_t n_rest = 0;
    base_buf policies = {0};
    base_err why = {0}, *err = &why;
    int code = 0;
    kv_policy_describe(&policies);
    const cmd_words words = {.usage = usage, .more = policies.data, .rest = rest, .n_rest = &n_rest};
    const bool goes_on = cmd_begin(argc, argv, &o->common, own, &words, ret_status) && !o->version;
    base_buf_free(&policies);
    if (goes_on && n_rest > 1)
        code = base_fail(err, BASE_E_USAGE, "one folder at most; \"%s\" is a second one", rest[1]);
    if (!code && n_rest && o->dir)
        code = base_fail(err, BASE_E_USAGE, "the folder is given twice: %s and --dir %s", rest[0], o->dir);
    bool is_word = !code && n_rest;
    if (is_word) o->dir = rest[0];
    if (!o->dir) o->dir = ".";
    if (goes_on && !code) code = check_folder(o->dir, is_word, err);
    if (goes_on && !code) code = configure(argc, argv, o, own, err);
    free(rest);
    if (code) *ret_status = cmd_complain(err);
    return goes_on && !code;
}

static int to_session_options(const shell_options *o, agent_session_options *ret, base_err *err)
{
    *ret = (agent_session_options){.dir = o->dir,
        .resume = o->resume,
        .ephemeral = o->ephemeral,
        .fake_script = o->fake_script,
        .mode = AGENT_MODE_ASK,
        .model = options_to_model(&o->common),
        .sampling = o->common.sampling,
        .stop = o->common.stop,
        .kv = {.policy = o->common.policy,
            .set = o->common.n_set ? o->common.set : NULL,
            .n_ctx = (uint32_t)o->common.ctx},
        .max_tokens = (uint32_t)o->max_tokens,
        .max_steps = (uint32_t)o->max_steps,
        .tries = (uint32_t)o->tries};
    if (o->mode && !agent_mode_parse(o->mode, &ret->mode))
        return base_fail(err, BASE_E_USAGE, "--mode is plan, ask, edits or all, not \"%s\"", o->mode);
    if (o->max_tokens < 0 || o->max_tokens > 1 << 24 || o->max_steps < 0 || o->max_steps > 1 << 24)
        return base_fail(
            err, BASE_E_USAGE, "--max-tokens and --max-steps take 1 to %d; 0 is the default", 1 << 24);
    if (o->json && !o->prompt)
        return base_fail(err, BASE_E_USAGE, "--json goes with -p TEXT: the shell has a screen");
    if (o->tries < 0 || o->tries > AGENT_MOST_TRIES)
        return base_fail(err, BASE_E_USAGE, "--tries takes 0 to %d", AGENT_MOST_TRIES);
    if (o->context && !strcmp(o->context, "off")) {
        ret->context_tokens = UINT32_MAX;
    } else if (o->context) {
        char *end;
        long tokens = strtol(o->context, &end, 10);
        if (*end || tokens < 1 || tokens > 100000)
            return base_fail(
                err, BASE_E_USAGE, "--context takes a number of tokens or off, not \"%s\"", o->context);
        ret->context_tokens = (uint32_t)tokens;
    }
    int code = options_lookup(&o->common, &ret->lookup, err);
    return code ? code : options_repair(&o->common, &ret->kv.repair, err);
}

static int budget_of(const void *user, uint32_t n_ctx, uint32_t row_bytes, uint32_t *ret, base_err *err)
{
    return options_budget(user, n_ctx, row_bytes, ret, err);
}

typedef struct opening {
    agent_session_options session;
    agent_session *opened;
} opening;

static int open_on_thread(void *user, const agent_host *host, atomic_bool *cancel,
    void (*progress)(void *host_user, double share, const char *what), agent **ret, base_err *err)
{
    opening *o = user;
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

static int run_screen(const shell_options *o, opening *opening_, base_err *err)
{
    if (!o->linear && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        return base_fail(err, BASE_E_USAGE,
            "the shell needs a terminal; for one request without a screen use kvist -p \"...\"");
    char *in_use = o->linear ? NULL : agent_session_in_use(&opening_->session);
    if (in_use) {
        int code = show_only(in_use, err);
        free(in_use);
        return code;
    }
    agent_worker *worker;
    char *history = base_fs_home(BASE_HOME_STATE, "history");
    opening_->session.show_log = true; /* a resumed session opens on the screen it was left with */
    int code = agent_worker_start(&worker, open_on_thread, opening_, err);
    if (!code) {
        const char *slash = opening_->session.model_path ? strrchr(opening_->session.model_path, '/') : NULL;
        code = tui_run(worker,
            &(tui_options){.linear = o->linear,
                .no_color = getenv("NO_COLOR") && *getenv("NO_COLOR"),
                .root = o->dir,
                .history = o->ephemeral ? NULL : history,
                .first_line = slash                        ? slash + 1
                              : opening_->session.endpoint ? opening_->session.endpoint->http.url
                                                           : "scripted engine"},
            err);
        agent_worker_stop(worker);
    }
    agent_session_close(opening_->opened);
    free(history);
    return code;
}

static int read_prompt(const char *given, base_buf *ret, base_err *err)
{
    bool is_stdin = !strcmp(given, "-");
    int code = is_stdin ? base_fs_read("/dev/stdin", 1 << 20, ret, err) : 0;
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
    [AGENT_OUTCOME_LIMIT] = CMD_LIMIT,
    [AGENT_OUTCOME_DENIED] = CMD_DENIED,
    [AGENT_OUTCOME_INTERRUPTED] = CMD_INTERRUPTED,
};

/* On the command line, and not in a file. */
static bool is_typed(int argc, char **argv, const char *option)
{
    const size_t n = strlen(option);
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], option, n) && (!argv[i][n] || argv[i][n] == '=')) return true;
    return false;
}

int cmd_shell(int argc, char **argv)
{
    shell_options o = {.common = COMMON_OPTIONS_DEFAULTS};
    opening opening_ = {0};
    base_err err = {0};
    base_buf prompt = {0};
    char *model_path = NULL, **allowed = NULL;
    char **words = with_resume_value(argc, argv);
    endpoint_choice endpoint = {.is_chosen = false};
    int status, code = 0;
    if (!parse(argc, words, &o, &status)) goto out;
    code = to_session_options(&o, &opening_.session, &err);
    o.endpoint.is_typed = is_typed(argc, argv, "--endpoint");
    if (!code && !o.fake_script) {
        /* A model that is configured is a local one, unless the endpoint is configured too. */
        const bool is_served = !o.endpoint.is_typed || is_typed(argc, argv, "--model");
        code = endpoint_resolve(&o.endpoint, is_served ? o.common.model : NULL, &endpoint, &err);
    }
    if (!code) code = endpoint_ask(&endpoint, &o.endpoint, o.dir, &err);
    if (!code && !o.fake_script && !endpoint.is_chosen)
        code = options_model_path(&o.common, &model_path, &err);
    if (!code && o.common.budget) {
        uint32_t rows; /* a typo is told before a model loads */
        code = options_budget(&o.common, 32768, 1 << 15, &rows, &err);
    }
    if (!code) code = allow_read_resolve(o.dir, o.allow_read.all, o.allow_read.n, &allowed, &err);
    opening_.session.allow_read = (const char *const *)allowed;
    opening_.session.ignore = o.ignore.all;
    opening_.session.settings = o.settings.data;
    opening_.session.notes = o.config.notes.data;
    opening_.session.model_path = model_path;
    opening_.session.endpoint = endpoint.is_chosen ? &endpoint.options : NULL;
    opening_.session.budget = budget_of;
    opening_.session.budget_user = &o.common;
    opening_.session.keep_budget = !o.common.budget;
    if (!code && o.prompt) {
        code = read_prompt(o.prompt, &prompt, &err);
        agent_outcome outcome;
        if (!code)
            code =
                agent_headless_run(&opening_.session, prompt.data ? prompt.data : "", o.json, &outcome, &err);
        if (!code) status = outcome_statuses[outcome];
    } else if (!code) {
        code = run_screen(&o, &opening_, &err);
    }
    if (code) status = cmd_complain(&err);
out:
    base_buf_free(&prompt);
    for (char **path = allowed; path && *path; path++) free(*path);
    free(allowed);
    free(model_path);
    endpoint_choice_free(&endpoint);
    free(words);
    base_buf_free(&o.settings);
    config_free(&o.config);
    return status;
}
