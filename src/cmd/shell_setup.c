/* A table of options, two files, and what they say together (contract: shell_setup.h). */
#include "cmd/shell_setup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "base/fs.h"
#include "base/mem.h"
#include "cmd/allow_read.h"
#include "cmd/cmd.h"
#include "cmd/config_text.h"
#include "model/text/answer.h"

static const int64_t TRIES_NOT_GIVEN = INT64_MIN;
enum {
    NOTIFY_AFTER = 10, /* seconds */
    MOST = 1 << 24,    /* tokens, calls, turns */
    MOST_CONTEXT = 100000,
};

/*
 * "--resume" alone means the latest session: it becomes "--resume=" so that every option with a value has
 * one. It stands alone where the next word is another option or a folder: an ID has no "/" and is not ".".
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

static int check_folder(const char *dir, base_err *err)
{
    struct stat st;
    if (!stat(dir, &st) && S_ISDIR(st.st_mode)) return BASE_OK;
    return base_fail(err, BASE_E_USAGE, "%s is no folder", dir);
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

/* It loosens nothing: it counts only once the person approved exactly this command (agent/approve/configured.c). */
static bool is_asked_first(const void *value, const char *wanted)
{
    return true;
}

static int check_context(const char *value, base_err *err)
{
    char *end;
    const long tokens = strtol(value, &end, 10);
    if (!strcmp(value, "off") || (!*end && tokens >= 1 && tokens <= MOST_CONTEXT)) return BASE_OK;
    return base_fail(err, BASE_E_USAGE, "--context takes a number of tokens (to %d) or off, not \"%.40s\"",
        MOST_CONTEXT, value);
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

/* The shell's own options, with where the value of each goes; the caller frees. */
static option_row *list_options(shell_options *o)
{
    const option_row rows[] = {
        {"-p", OPTION_TEXT, &o->prompt, "TEXT", "one request without a screen; - reads it from stdin"},
        {"--input", OPTION_WORD, &o->input, "jsonl",
            "with -p -: several requests on stdin, an object a line, "
            "{\"text\":\"...\",\"id\":\"...\"}; each is answered before the next "
            "is read; with --json its answer stands between its input and input_end"},
        {"--schema", OPTION_TEXT, &o->schema, "FILE",
            "with -p: the answer is JSON of this JSON Schema, "
            "checked, alone on stdout and on one line (docs/schema.md)"},
        {"--max-turns", OPTION_INTEGER, &o->max_turns, "N",
            "with --input: stop behind N requests, with exit status 4", "all",
            .bounds = {1, MOST, "left out, all are answered"}},
        {"--dir", OPTION_TEXT, &o->dir, "DIR", "the git tree to work on, as the word DIR"},
        {"--mode", OPTION_WORD, &o->mode, "plan|ask|edits|all",
            "plan: only reads; ask: asks before it writes or runs; edits: before it runs; all: never asks",
            "ask", .is_setting = true, .is_tighter = is_stricter_mode},
        {"--resume", OPTION_TEXT, &o->resume, "[ID]",
            "go on with a session: the beginning of its id, or nothing for the latest of this tree"},
        {"--fork", OPTION_TEXT, &o->fork, "ID",
            "a copy of that session, with nothing computed again; the session itself stays as it is"},
        {"--notify", OPTION_WORD, &o->notify, "off|bell|osc777",
            "when a long turn ends or waits for your yes: the terminal's bell, or a desktop notification "
            "(OSC 777: foot, Ghostty, rxvt, WezTerm)",
            "off", .is_setting = true},
        {"--notify-after", OPTION_INTEGER, &o->notify_after, "SECONDS",
            "how long a turn has to take for --notify", "10", .is_setting = true, .bounds = {0, 86400, NULL}},
        {"--context", OPTION_TEXT, &o->context, "TOKENS|off",
            "how many tokens of the tree's code go in front of a request", "1500", .is_setting = true,
            .bounds = {.check = check_context}},
        {"--max-tokens", OPTION_INTEGER, &o->max_tokens, "N", "longest answer, in tokens", "1024",
            .is_setting = true, .bounds = {0, MOST, "0 is the default"}},
        {"--max-thought", OPTION_INTEGER, &o->max_thought, "N", "longest thought in an answer, in tokens",
            "half of --max-tokens", .is_setting = true, .bounds = {0, MOST, "0 is half of --max-tokens"}},
        {"--max-steps", OPTION_INTEGER, &o->max_steps, "N", "most tool calls in a turn", "24",
            .is_setting = true, .bounds = {0, MOST, "0 is the default"}},
        {"--agent", OPTION_WORD, &o->agent, "auto|small|strong",
            "how it is asked to change code; small: whole definitions; strong: edits by line, several calls; "
            "auto goes by its size and by the form of calls that it was taught",
            "auto", .is_setting = true},
        {"--tries", OPTION_INTEGER, &o->tries, "N",
            "where a test fails: try up to N rewrites, offer the first that passes; 0 is off",
            "6 in the modes edits and all, else 0", .is_setting = true,
            .bounds = {0, AGENT_MOST_TRIES, "0 is off"}},
        {"--test", OPTION_TEXT, &o->test, "COMMAND",
            "runs this tree's tests, for /test and to judge changes; "
            "one that a file names counts once you approved it",
            .is_setting = true, .is_tighter = is_asked_first},
        {"--lint", OPTION_TEXT, &o->lint, "COMMAND",
            "checks this tree's style and types, for /lint; approved as --test is", .is_setting = true,
            .is_tighter = is_asked_first},
        {"--allow-read", OPTION_LIST, &o->allow_read, "PATH",
            "a path outside of the tree that commands may read too; asked once for each tree (repeatable)",
            .is_setting = true},
        {"--ignore", OPTION_LIST, &o->ignore, "PATTERN",
            "files of the tree that are not listed, indexed and "
            "retrieved, as `git ls-files` takes it (repeatable)",
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
    return memcpy(base_xmalloc(sizeof rows), rows, sizeof rows);
}

/* False: it is over, with *ret_status. */
static bool parse(int argc, char **argv, shell_options *o, const char *usage, int *ret_status)
{
    option_row *own = list_options(o);
    const char **rest = base_xcalloc((size_t)argc + 1, sizeof *rest);
    uint32_t n_rest = 0;
    base_err why = {0}, *err = &why;
    int code = 0;
    const cmd_words words = {.usage = usage, .rest = rest, .n_rest = &n_rest};
    const bool goes_on = cmd_begin(argc, argv, &o->common, own, &words, ret_status) && !o->version;
    if (goes_on && n_rest > 1)
        code = base_fail(err, BASE_E_USAGE, "one folder at most; \"%s\" is a second one", rest[1]);
    if (!code && n_rest && o->dir)
        code = base_fail(err, BASE_E_USAGE, "the folder is given twice: %s and --dir %s", rest[0], o->dir);
    if (!code && n_rest) o->dir = rest[0];
    if (!o->dir) o->dir = ".";
    if (goes_on && !code) code = check_folder(o->dir, err);
    if (goes_on && !code) code = configure(argc, argv, o, own, err);
    free(rest);
    free(own);
    if (code) *ret_status = cmd_complain(err);
    return goes_on && !code;
}

static agent_configured_command configured(
    const shell_options *o, int argc, char **argv, const char *option, const char *command)
{
    const bool is_typed = options_are_given(argc, argv, option);
    if (!command || !*command) return (agent_configured_command){0}; /* "" takes a former one away */
    return (agent_configured_command){
        command, is_typed ? "the command line" : config_source(&o->config, option + 2), is_typed};
}

static int to_session_options(const shell_options *o, agent_session_options *ret, base_err *err)
{
    *ret = (agent_session_options){.dir = o->dir,
        .resume = o->resume,
        .fork = o->fork,
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
        .max_thought = (uint32_t)o->max_thought,
        .max_steps = (uint32_t)o->max_steps,
        .ability = o->agent,
        .tries = o->tries == TRIES_NOT_GIVEN ? AGENT_TRIES_BY_MODE : (uint32_t)o->tries};
    if (o->mode) agent_mode_parse(o->mode, &ret->mode);
    if (o->json && !o->prompt)
        return base_fail(err, BASE_E_USAGE, "--json goes with -p TEXT: the shell has a screen");
    if (o->input && (!o->prompt || strcmp(o->prompt, "-") != 0))
        return base_fail(
            err, BASE_E_USAGE, "--input jsonl goes with -p -: requests come from the standard input");
    if (o->max_turns && !o->input)
        return base_fail(err, BASE_E_USAGE, "--max-turns goes with --input jsonl: else there is one request");
    if (o->context)
        ret->context_tokens =
            !strcmp(o->context, "off") ? UINT32_MAX : (uint32_t)strtol(o->context, NULL, 10);
    ret->lookup = options_lookup(&o->common);
    ret->kv.repair = options_repair(&o->common);
    return BASE_OK;
}

/* A schema that cannot be held is told before anything runs. */
static int read_schema(shell_options *o, agent_session_options *to, base_err *err)
{
    if (!o->schema) return BASE_OK;
    if (!o->prompt)
        return base_fail(err, BASE_E_USAGE, "--schema goes with -p: a session on the screen has words");
    if (o->common.thinking)
        return base_fail(
            err, BASE_E_USAGE, "--schema and --thinking exclude each other: the answer is the JSON alone");
    if (o->common.n_stop)
        return base_fail(
            err, BASE_E_USAGE, "--schema and --stop exclude each other: JSON ends where it is whole");
    int rc = base_fs_read_given(o->schema, 4 * BASE_SCHEMA_MOST_BYTES, &o->schema_text, err);
    bool is_read = !rc; /* what cannot be read is told with its name */
    if (!rc)
        rc = base_schema_parse(
            o->schema_text.data ? o->schema_text.data : "", o->schema_text.len, &o->parsed_schema, err);
    if (!rc) rc = model_answer_can(o->parsed_schema, err);
    if (rc) {
        base_err_prefix(err, "--schema%s%.100s", is_read ? " " : "", is_read ? o->schema : "");
        if (err) err->code = BASE_E_USAGE;
        return BASE_E_USAGE;
    }
    to->schema = o->parsed_schema;
    to->schema_text = o->schema_text.data;
    return BASE_OK;
}

static int budget_of(
    const void *user, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured, kv_limit *ret, base_err *err)
{
    return options_budget(user, n_ctx, row_bytes, measured, ret, err);
}

/* "--mode is ..., not ...": where a file says it, its place stands in front. */
static void name_place(const config *c, base_err *err)
{
    char name[32];
    const size_t n = strspn(err->msg, "-abcdefghijklmnopqrstuvwxyz");
    if (strncmp(err->msg, "--", 2) || n >= sizeof name) return;
    memcpy(name, err->msg + 2, n - 2);
    name[n - 2] = 0;
    const char *source = config_source(c, name);
    if (source) base_err_prefix(err, "%s", source);
}

bool shell_setup_make(shell_setup *s, int argc, char **argv, const char *usage, int *ret_status)
{
    shell_options *o = &s->options;
    base_err err = {0};
    *s = (shell_setup){.options = {.common = COMMON_OPTIONS_DEFAULTS,
                           .endpoint = ENDPOINT_WORDS_DEFAULTS,
                           .tries = TRIES_NOT_GIVEN,
                           .notify_after = NOTIFY_AFTER}};
    s->words = with_resume_value(argc, argv);
    if (!parse(argc, s->words, o, usage, ret_status)) return false;
    int code = to_session_options(o, &s->session, &err);
    if (!code) code = read_schema(o, &s->session, &err);
    o->endpoint.is_typed = options_are_given(argc, argv, "--endpoint");
    if (!code && !o->fake_script) {
        /* A model that is configured is a local one, unless the endpoint is configured too. */
        const bool is_served = !o->endpoint.is_typed || options_are_given(argc, argv, "--model");
        code = endpoint_resolve(&o->endpoint, is_served ? o->common.model : NULL, &s->endpoint, &err);
    }
    if (!code) code = endpoint_ask(&s->endpoint, &o->endpoint, o->dir, &err);
    if (!code && !o->fake_script && !s->endpoint.is_chosen)
        code = options_model_path(&o->common, &s->model_path, &err);
    if (!code) code = allow_read_resolve(o->dir, o->allow_read.all, o->allow_read.n, &s->allowed, &err);
    s->session.allow_read = (const char *const *)s->allowed;
    s->session.ignore = o->ignore.all;
    s->session.configured[AGENT_CONFIGURED_TEST] = configured(o, argc, argv, "--test", o->test);
    s->session.configured[AGENT_CONFIGURED_LINT] = configured(o, argc, argv, "--lint", o->lint);
    s->session.settings = o->settings.data;
    s->session.notes = o->config.notes.data;
    s->session.model_path = s->model_path;
    s->session.endpoint = s->endpoint.is_chosen ? &s->endpoint.options : NULL;
    s->session.budget = budget_of;
    s->session.budget_user = &o->common;
    s->session.keep_budget =
        !options_are_given(argc, argv, "--kv-budget"); /* a file says what new sessions have */
    if (code) {
        name_place(&o->config, &err);
        *ret_status = cmd_complain(&err);
    }
    return !code;
}

void shell_setup_free(shell_setup *s)
{
    for (char **path = s->allowed; path && *path; path++) free(*path);
    free(s->allowed);
    free(s->model_path);
    endpoint_choice_free(&s->endpoint);
    free(s->words);
    base_buf_free(&s->options.settings);
    base_buf_free(&s->options.schema_text);
    base_schema_free(s->options.parsed_schema);
    config_free(&s->options.config);
    *s = (shell_setup){0};
}
