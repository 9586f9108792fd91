/* What every command shares: how a failure is told. */
#include "cmd.h"

#include <stdio.h>

int cmd_complain(const base_err *err)
{
    fprintf(stderr, "kvist: %s\n", err->msg);
    return err->code == BASE_E_USAGE ? CMD_USAGE : CMD_FAILED;
}
