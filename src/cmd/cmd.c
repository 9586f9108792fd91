/* What the commands share: reading options, opening the model, how a failure is told. */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

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
