/*
 * Stop strings: an answer ends where one of them begins, wherever the borders of its tokens lie. Bytes, no
 * allocation; the lists end with NULL, a NULL list and empty strings stop nothing. Any thread.
 */
#ifndef KVIST_MODEL_STOP_H
#define KVIST_MODEL_STOP_H

#include <stddef.h>

/*
 * First byte of the earliest stop string in text that does not end before byte `from` (what was looked at);
 * SIZE_MAX: none.
 */
size_t model_stop_find(const char *const *stops, const char *text, size_t n, size_t from);

/* How many bytes may be shown: behind them a stop string may have begun. n when none can have. */
size_t model_stop_safe(const char *const *stops, const char *text, size_t n);

#endif
