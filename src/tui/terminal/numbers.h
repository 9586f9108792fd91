/*
 * Numbers as a person reads them. Each writes into a buffer of the caller's and returns it.
 */
#ifndef KVIST_TUI_NUMBERS_H
#define KVIST_TUI_NUMBERS_H

#include <stdint.h>

/* "1,234,567" */
const char *tui_thousands(int64_t n, char buf[32]);
/* "97.4 MiB" */
const char *tui_size(int64_t bytes, char buf[32]);

#endif
