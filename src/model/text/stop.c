/* Looking for the end of an answer in its bytes (contract: stop.h). */
#include "model/text/stop.h"

#include <stdint.h>
#include <string.h>

size_t model_stop_find(const char *const *stops, const char *text, size_t n, size_t from)
{
    size_t first = SIZE_MAX;
    for (; stops && *stops; stops++) {
        size_t len = strlen(*stops), at = from >= len ? from - len + 1 : 0;
        if (!len || n < len) continue;
        for (; at <= n - len && at < first; at++) {
            if (text[at] != **stops || memcmp(text + at, *stops, len) != 0) continue;
            first = at;
            break;
        }
    }
    return first;
}

size_t model_stop_safe(const char *const *stops, const char *text, size_t n)
{
    size_t safe = n;
    for (; stops && *stops; stops++) {
        size_t len = strlen(*stops);
        for (size_t tail = len < n ? len : n; tail > 0; tail--) {
            if (memcmp(text + (n - tail), *stops, tail) != 0) continue;
            if (n - tail < safe) safe = n - tail;
            break; /* the longest beginning lies first */
        }
    }
    return safe;
}
