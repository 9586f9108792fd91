#include "model/text/schema_numbers.h"

enum { MOST_DIGITS = 16 };

static int64_t power(uint32_t n)
{
    int64_t p = 1;
    while (n--) p *= 10;
    return p;
}

/* The magnitudes of one sign; -0 is not written. */
static void bounds(const number_range *r, bool is_negative, int64_t *low, int64_t *high)
{
    *low = is_negative ? (r->high < 0 ? -r->high : 1) : (r->low > 0 ? r->low : 0);
    *high = is_negative ? -r->low : r->high;
}

/* Is a multiple of `step` in both [low, high] and [from, to]? */
static bool has_multiple(int64_t low, int64_t high, int64_t from, int64_t to, int64_t step)
{
    if (from < low) from = low;
    if (to > high) to = high;
    return from <= to && (from + step - 1) / step * step <= to;
}

/* Behind a point: more decimals. */
static uint32_t missing_decimals(const number_range *r, const number_state *s, int64_t low, int64_t high)
{
    const uint32_t here = s->n_decimals - 1;
    const int64_t unit = power(r->n_decimals - here), from = s->value * unit;
    for (uint32_t more = here ? 0 : 1; here + more <= r->n_decimals; more++)
        if (has_multiple(low, high, from, from + unit - 1, power(r->n_decimals - here - more))) return more;
    return NUMBER_NEVER;
}

/* In the whole part: more digits of it, then a point and decimals where they are needed. */
static uint32_t missing_digits(const number_range *r, const number_state *s, int64_t low, int64_t high)
{
    uint32_t best = NUMBER_NEVER;
    const int64_t unit = power(r->n_decimals);
    const uint32_t most = s->n_digits && !s->value ? s->n_digits : MOST_DIGITS - r->n_decimals;
    int64_t scale = 1;
    for (uint32_t digits = s->n_digits; digits <= most; digits++, scale *= 10) {
        if (!digits) continue;
        int64_t from = s->value * scale, to = (s->value + 1) * scale - 1;
        if (!s->n_digits) { /* nothing yet: any number of so many digits */
            from = digits == 1 ? 0 : power(digits - 1);
            to = power(digits) - 1;
        }
        for (uint32_t decimals = 0; decimals <= r->n_decimals; decimals++) {
            const uint32_t n = digits - s->n_digits + (decimals ? 1 + decimals : 0);
            const int64_t last = decimals ? (to + 1) * unit - 1 : to * unit;
            if (n < best && has_multiple(low, high, from * unit, last, power(r->n_decimals - decimals)))
                best = n;
        }
        if (best <= digits - s->n_digits) break;
    }
    return best;
}

uint32_t number_missing(const number_range *r, const number_state *s)
{
    int64_t low, high;
    uint32_t best = NUMBER_NEVER;
    if (r->low > r->high) return best;
    bounds(r, s->is_negative, &low, &high);
    if (low <= high)
        best = s->n_decimals ? missing_decimals(r, s, low, high) : missing_digits(r, s, low, high);
    if (!s->is_negative && !s->n_digits) {
        const number_state minus = {.is_negative = true};
        const uint32_t n = number_missing(r, &minus);
        if (n < NUMBER_NEVER && n + 1 < best) best = n + 1;
    }
    return best;
}

bool number_take(const number_range *r, number_state *s, uint8_t byte)
{
    if (byte == '-') {
        if (s->is_negative || s->n_digits) return false;
        s->is_negative = true;
    } else if (byte == '.') {
        if (!s->n_digits || s->n_decimals || !r->n_decimals) return false;
        s->n_decimals = 1;
    } else if (byte >= '0' && byte <= '9') {
        if (s->n_decimals > r->n_decimals) return false;
        if (!s->n_decimals && ((s->n_digits && !s->value) || s->n_digits >= MOST_DIGITS - r->n_decimals))
            return false;
        s->value = s->value * 10 + (byte - '0');
        if (s->n_decimals)
            s->n_decimals++;
        else
            s->n_digits++;
    } else {
        return false;
    }
    if (s->is_negative && !s->n_digits) {
        int64_t low, high;
        bounds(r, true, &low, &high);
        if (low > high) return false;
    }
    return number_missing(r, s) < NUMBER_NEVER;
}
