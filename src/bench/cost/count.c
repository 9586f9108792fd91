/* bench_count; see bench/bench.h. */
#include <stdio.h>

#include "bench/bench.h"

int bench_count(int argc, char **argv, const char *usage, const char *number, int64_t value, int64_t most,
    int (*measure)(uint32_t n, bool json, base_err *err))
{
    bool json = false;
    const option_row own[] = {
        {number, OPTION_INTEGER, &value, .bounds = {1, (double)most}}, {"--json", OPTION_FLAG, &json}, {0}};
    base_err err = {0};
    int rc;
    if (!cmd_begin(argc, argv, NULL, own, &(cmd_words){.usage = usage}, &rc)) return rc;
    rc = measure((uint32_t)value, json, &err);
    return rc ? cmd_complain(&err) : CMD_OK;
}
