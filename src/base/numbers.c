#include "base/numbers.h"

#include <stdio.h>

const char *base_thousands(int64_t n, char buf[32])
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
