/* What every command shares: how a failure is told. */
#include "cmd.h"

#include <stdio.h>

void cmd_notice(void *user, const char *sentence)
{
    fprintf(stderr, "kvist: %s\n", sentence);
}

int cmd_complain(const base_err *err)
{
    fprintf(stderr, "kvist: %s\n", err->msg);
    return err->code == BASE_E_USAGE ? CMD_USAGE : CMD_FAILED;
}
