/*
 * Numbers as a person reads them.
 */
#include "tui/terminal/numbers.h"

#include <stdio.h>

const char *tui_thousands(int64_t n, char buf[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)(n < 0 ? -n : n)), at = 0;
    if (n < 0) buf[at++] = '-';
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = 0;
    return buf;
}

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
