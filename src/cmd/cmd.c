/* What the commands share: reading options, opening the model, how a failure is told. */
#include "cmd/cmd.h"

#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

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

int cmd_end(int status)
{
    bool failed = fflush(stdout) || ferror(stdout);
    struct pollfd reader = {.fd = STDOUT_FILENO};
    bool is_gone = failed && poll(&reader, 1, 0) == 1 && reader.revents & POLLERR;
    if (failed && !is_gone && status == CMD_OK) {
        fputs("kvist: the output could not be written whole\n", stderr);
        return CMD_FAILED;
    }
    return status;
}

bool cmd_begin(int argc, char **argv, common_options *common, const option_row *own, const bool *help,
    const char *usage, const char *more, int *ret_status)
{
    base_err err = {0};
    if (options_parse(argc, argv, common, own, NULL, NULL, &err)) {
        *ret_status = cmd_complain(&err);
        return false;
    }
    if (*help) printf("%s%s%s", usage, more ? more : "", options_help);
    *ret_status = CMD_OK;
    return !*help;
}

int cmd_open_model(const common_options *o, model **ret, base_err *err)
{
    char *path = NULL;
    model_options options = options_to_model(o);
    options.notice = cmd_notice;
    int r = options_model_path(o, &path, err);
    if (!r) r = model_open(ret, path, &options, err);
    free(path);
    return r;
}

void cmd_notice(void *user, const char *sentence)
{
    fprintf(stderr, "kvist: %s\n", sentence);
}

int cmd_complain(const base_err *err)
{
    fprintf(stderr, "kvist: %s\n", err->msg);
    return err->code == BASE_E_USAGE ? CMD_USAGE : CMD_FAILED;
}
