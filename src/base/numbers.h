/*
 * Numbers as a person reads them, of the program's sentences and of the screen.
 */
#ifndef KVIST_BASE_NUMBERS_H
#define KVIST_BASE_NUMBERS_H

#include <stdint.h>

/* "1,234,567", written into buf, which it returns. */
const char *base_thousands(int64_t n, char buf[32]);
/* The same in a buffer that lasts as long as the block it stands in, for an argument of printf. */
#define BASE_THOUSANDS(n) base_thousands((n), (char[32]){0})

#endif
