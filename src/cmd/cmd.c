/* What the commands share: reading options, opening the model, how a failure is told. */
#include "cmd/cmd.h"

#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "cmd/config.h"

/* Whoever asks what there is gets an answer, whatever is wrong with their folders. */
static bool asks_for_help(int argc, char **argv)
{
    static const char *const words[] = {"--help", "-h", "--version"};
    for (size_t i = 0; argc > 1 && i < sizeof words / sizeof *words; i++)
        if (!strcmp(argv[argc - 1], words[i])) return true;
    return argc > 1 && !strcmp(argv[1], "help");
}

int cmd_start(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* JSON has a point, whatever the country */
    signal(SIGPIPE, SIG_IGN);   /* a closed pipe is an error of write, not our end */
    base_err err = {0};
    return asks_for_help(argc, argv) || !base_fs_check_homes(&err) ? CMD_OK : cmd_complain(&err);
}

/* Options point into it for as long as the command runs; cmd_end lets it go. */
static config configured;

int cmd_end(int status)
{
    config_free(&configured);
    bool failed = fflush(stdout) || ferror(stdout);
    struct pollfd reader = {.fd = STDOUT_FILENO};
    bool is_gone = failed && poll(&reader, 1, 0) == 1 && reader.revents & POLLERR;
    if (failed && !is_gone && status == CMD_OK) {
        fputs("kvist: the output could not be written whole\n", stderr);
        return CMD_FAILED;
    }
    return status;
}

bool cmd_begin(int argc, char **argv, common_options *common, const option_row *own, const cmd_words *words,
    int *ret_status)
{
    base_err err = {0};
    const char *asked;
    *ret_status = CMD_OK;
    if (options_parse(argc, argv, common, own, words->rest, words->n_rest, &asked, &err)) {
        *ret_status = cmd_complain(&err);
        return false;
    }
    if (!asked && words->is_configured &&
        config_read_user(&configured, argc, argv, common, own, false, &err)) {
        *ret_status = cmd_complain(&err);
        return false;
    }
    if (!asked) return true;
    base_buf out = {0};
    if (!strcmp(asked, "--describe")) {
        base_buf_puts(&out, "{\"usage\":");
        base_json_put_str(&out, words->usage, strlen(words->usage));
        base_buf_putc(&out, ',');
        options_put_json(&out, own, common != NULL);
        base_buf_puts(&out, "}\n");
    } else {
        base_buf_puts(&out, words->usage);
        options_put_help(&out, own, common != NULL);
        if (words->more) base_buf_printf(&out, "\n%s", words->more);
    }
    fwrite(out.data, 1, out.len, stdout);
    base_buf_free(&out);
    return false;
}

int cmd_open_model(const common_options *o, model **ret, base_err *err)
{
    char *path = NULL;
    model_options options = options_to_model(o);
    options.notice = cmd_notice;
    int r = options_model_path(o, &path, err);
    if (!r) r = cmd_open_model_file(path, &options, ret, err);
    free(path);
    return r;
}

int cmd_open_model_file(const char *path, const model_options *options, model **ret, base_err *err)
{
    const int r = model_open(ret, path, options, err);
    return r && r != BASE_E_USAGE && r != BASE_E_CANCELLED ? err->code = BASE_E_ENGINE : r;
}

void cmd_notice(void *user, const char *sentence)
{
    fprintf(stderr, "kvist: %s\n", sentence);
}

/* As options_check_word reads them: "list|show". */
static void put_names(const cmd_verb *verbs, base_buf *out)
{
    for (const cmd_verb *v = verbs; v->name; v++) base_buf_printf(out, "%s%s", v > verbs ? "|" : "", v->name);
}

static const cmd_verb *verb_of(const char *command, const cmd_verb *verbs, const char *word, base_err *err)
{
    for (const cmd_verb *v = verbs; v->name; v++)
        if (word ? !strcmp(v->name, word) : v->is_default) return v;
    base_buf names = {0}, begin = {0};
    put_names(verbs, &names);
    base_buf_printf(&begin, word ? "%s knows" : "%s needs one of the words ", command);
    if (word) {
        options_check_word(begin.data, names.data, word, err);
    } else {
        options_put_words(&begin, names.data);
        base_fail(err, BASE_E_USAGE, "%s (see %s --help)", begin.data, command);
    }
    base_buf_free(&names);
    base_buf_free(&begin);
    return NULL;
}

const cmd_verb *cmd_find_verb(
    const char *command, const cmd_verb *verbs, const char *const *words, uint32_t n_words, base_err *err)
{
    const cmd_verb *v = verb_of(command, verbs, n_words ? words[0] : NULL, err);
    if (!v || n_words == (v->takes ? 2 : 1) || (!n_words && !v->takes)) return v;
    base_fail(err, BASE_E_USAGE, "%s %s takes %s", command, v->name, v->takes ? v->takes : "no word");
    return NULL;
}

int cmd_run_verb(const char *command, const cmd_verb *verbs, const char *const *words, uint32_t n_words,
    void *user, base_err *err)
{
    const cmd_verb *v = cmd_find_verb(command, verbs, words, n_words, err);
    return v ? v->run(user, v->takes ? words[1] : NULL, err) : BASE_E_USAGE;
}

int cmd_complain(const base_err *err)
{
    static const struct {
        base_code code;
        int status;
    } statuses[] = {{BASE_E_USAGE, CMD_USAGE}, {BASE_E_DENIED, CMD_DENIED}, {BASE_E_LIMIT, CMD_LIMIT},
        {BASE_E_ENGINE, CMD_NO_ENGINE}, {BASE_E_CANCELLED, CMD_INTERRUPTED}};
    fprintf(stderr, "kvist: %s\n", err->msg);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].code == err->code) return statuses[i].status;
    return CMD_FAILED;
}
