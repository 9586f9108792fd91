/* bench_count; see bench/bench.h. */
#include <stdio.h>

#include "bench/bench.h"

int bench_count(int argc, char **argv, const char *usage, const char *number, int64_t value, int64_t most,
    int (*measure)(uint32_t n, bool json, base_err *err))
{
    bool json = false, help = false;
    const option_row own[] = {{number, OPTION_INTEGER, &value}, {"--json", OPTION_FLAG, &json},
        {"--help", OPTION_FLAG, &help}, {0}};
    base_err err = {0};
    int rc = options_parse(argc, argv, NULL, own, NULL, NULL, &err);
    if (!rc && help) {
        fputs(usage, stdout);
        return CMD_OK;
    }
    if (!rc && (value < 1 || value > most))
        rc = base_fail(&err, BASE_E_USAGE, "%s is 1 to %lld", number, (long long)most);
    if (!rc) rc = measure((uint32_t)value, json, &err);
    return rc ? cmd_complain(&err) : CMD_OK;
}
