/*
 * A number between two bounds, written digit by digit. Counted in units: 1 for whole numbers, a millionth where six
 * decimals may be written. Within +-2^53 units, so that who reads it as a double reads exactly this number.
 */
#ifndef KVIST_MODEL_SCHEMA_NUMBERS_H
#define KVIST_MODEL_SCHEMA_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct number_range {
    int64_t low, high;   /* units; low > high: there is none */
    uint32_t n_decimals; /* 0 or 6 */
} number_range;

typedef struct number_state {
    bool is_negative;
    uint32_t n_digits;   /* of the whole part */
    uint32_t n_decimals; /* 1 + those that came; 0: no point yet */
    int64_t value;       /* all digits so far, as one number */
} number_state;

enum { NUMBER_NEVER = 1 << 20 };

/* Characters that are missing to a number in the range, at least; NUMBER_NEVER: none can come of it. */
uint32_t number_missing(const number_range *r, const number_state *s);
/* One character more; false: no number of the range goes on like that. */
bool number_take(const number_range *r, number_state *s, uint8_t byte);

#endif
