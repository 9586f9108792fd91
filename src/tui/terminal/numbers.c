/*
 * Numbers as a person reads them.
 */
#include "tui/terminal/numbers.h"

#include <stdio.h>

const char *tui_size(int64_t bytes, char buf[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)bytes;
    size_t unit = 0;
    while (x >= 1024 && unit < 4) {
        x /= 1024;
        unit++;
    }
    snprintf(buf, 32, unit && x < 100 ? "%.1f %s" : "%.0f %s", x, units[unit]);
    return buf;
}
