/*
 * Numbers as a person reads them. Writes into a buffer of the caller's and returns it; counts: base/numbers.h.
 */
#ifndef KVIST_TUI_NUMBERS_H
#define KVIST_TUI_NUMBERS_H

#include <stdint.h>

/* "97.4 MiB" */
const char *tui_size(int64_t bytes, char buf[32]);

#endif
