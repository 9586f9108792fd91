/*
 * `kvist replay ID`: a session's screens from the log. No model is loaded; the same reducer and views as
 * live.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/log/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/cmd_what_if.h"
#include "cmd/options.h"
#include "tui/tui.h"

static const char usage[] =
    "usage: kvist replay [ID] [--turn N] [--text WxH]\n"
    "       kvist replay [ID] --what-if --kv-budget ROWS ...\n\n"
    "Shows a session's screens from the log, without a model. ID may be a prefix; without "
    "one: the latest session. Of a what-if (kvist what-if): both sides, one above the other.\n"
    "Keys: h and l a turn, 0 and $ the first and the last, space plays, Tab the "
    "cache inspector, ? all keys, q quits; of a what-if d the next turn that differs.\n";

enum { MAX_SIZE = 1000, TURN_LAST = INT_MIN };

static int parse_size(const char *text, uint32_t *width, uint32_t *height, base_err *err)
{
    char *end;
    long w = strtol(text, &end, 10), h = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
    if (*end || w < 1 || h < 1 || w > MAX_SIZE || h > MAX_SIZE)
        return base_fail(err, BASE_E_USAGE, "--text takes a size like 120x40, at most %dx%d, not \"%s\"",
            MAX_SIZE, MAX_SIZE, text);
    *width = (uint32_t)w;
    *height = (uint32_t)h;
    return 0;
}

static int show(const char *prefix, int64_t turn, const char *size, base_err *err)
{
    agent_log *log = NULL;
    char *id = NULL;
    base_buf text = {0};
    uint32_t width = 0, height = 0;
    int rc = turn != TURN_LAST && (turn < 1 || turn > UINT32_MAX)
                 ? base_fail(err, BASE_E_USAGE, "--turn counts from 1")
                 : 0;
    if (!rc && !size && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        rc = base_fail(err, BASE_E_USAGE, "replay needs a terminal; --text 120x40 prints a screen as text");
    if (turn == TURN_LAST) turn = 0;
    if (!rc && size) rc = parse_size(size, &width, &height, err);
    if (!rc) rc = agent_log_open(&log, NULL, true, err);
    if (!rc) rc = agent_log_find(log, prefix, NULL, &id, err);
    if (!rc && size) {
        rc = tui_replay_text(log, id, (uint32_t)turn, width, height, &text, err);
        if (!rc) fwrite(text.data, 1, text.len, stdout);
    } else if (!rc) {
        const char *no_color = getenv("NO_COLOR");
        tui_options options = {.no_color = no_color && *no_color, .turn = (uint32_t)turn};
        rc = tui_replay(log, id, &options, err);
    }
    base_buf_free(&text);
    free(id);
    agent_log_close(log);
    return rc;
}

/* kvist replay ID --what-if OPTIONS: computed as kvist what-if does, then shown. */
static int replay_what_if(int argc, char **argv)
{
    base_err err = {0};
    char *id;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return cmd_complain(&(base_err){BASE_E_USAGE, 0,
            "--what-if needs a terminal; kvist what-if prints, and replay --text shows what it kept"});
    const int status = cmd_what_if_silent(argc, argv, &id);
    const int rc = id ? show(id, TURN_LAST, NULL, &err) : 0;
    free(id);
    return rc ? cmd_complain(&err) : status;
}

int cmd_replay(int argc, char **argv)
{
    bool what_if = false;
    if (options_are_given(argc, argv, "--what-if") && strcmp(argv[argc - 1], "--help") != 0)
        return replay_what_if(argc, argv);
    base_err err = {0};
    int64_t turn = TURN_LAST;
    const char *size = NULL;
    const option_row own[] = {
        {"--turn", OPTION_INTEGER, &turn, "N", "starts at the end of turn N"},
        {"--what-if", OPTION_FLAG, &what_if, NULL,
            "computes the session again with the settings given "
            "behind it (kvist what-if --help), then shows both"},
        {"--text", OPTION_TEXT, &size, "WxH", "prints that screen as plain text (120x40) and ends"},
        {0},
    };
    const char **rest = base_xcalloc((size_t)argc + 1, sizeof *rest);
    uint32_t n_rest = 0;
    int status, rc = 0;
    const cmd_words words = {.usage = usage, .rest = rest, .n_rest = &n_rest};
    if (cmd_begin(argc, argv, NULL, own, &words, &status))
        rc = n_rest > 1
                 ? base_fail(&err, BASE_E_USAGE, "one session at most; \"%s\" is a second one", rest[1])
                 : show(n_rest ? rest[0] : "", turn, size, &err);
    free(rest);
    return rc ? cmd_complain(&err) : status;
}
