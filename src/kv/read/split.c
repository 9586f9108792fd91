/* See split.h. */
#include "kv/read/split.h"

#include <string.h>

/* Ten times S. */
static const uint32_t worth[KV_N_ENDINGS] = {0, 4, 7, 8, 10};

static int ends_with(const char *text, size_t n, const char *what)
{
    const size_t len = strlen(what);
    return n >= len && !memcmp(text + n - len, what, len);
}

kv_ending kv_ending_of_text(const char *text, size_t n)
{
    const int has_newline = n && memchr(text, '\n', n) != NULL;
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t' || text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    const char last = n ? text[n - 1] : 0;
    if (last && strchr(".?!", last)) return KV_ENDING_SENTENCE;
    /* The ideographic full stop and the full-width forms of ! and ?. */
    if (ends_with(text, n, "\xe3\x80\x82") || ends_with(text, n, "\xef\xbc\x81") ||
        ends_with(text, n, "\xef\xbc\x9f"))
        return KV_ENDING_SENTENCE;
    if (has_newline) return KV_ENDING_LINE;
    if (last && strchr(";}", last)) return KV_ENDING_BLOCK;
    return last && strchr(",:)]", last) ? KV_ENDING_OTHER : KV_ENDING_NONE;
}

uint32_t kv_sentence_end(const uint8_t *endings, uint32_t n, uint32_t from, uint32_t length, uint32_t reach)
{
    const uint32_t ideal = from + length, first = ideal - from > reach + 1 ? ideal - reach : from + 1;
    uint32_t best = ideal;
    uint64_t most = 0;
    if (n < ideal + reach) return 0;
    for (uint32_t end = first; end <= ideal + reach; end++) {
        if (endings[end - 1] == KV_ENDING_NONE) continue;
        /* In whole numbers: 800 reach times the formula. */
        const uint32_t distance = end < ideal ? ideal - end : end - ideal;
        const uint64_t score =
            (uint64_t)reach * (56 * worth[endings[end - 1]] + 240) - (uint64_t)distance * 240;
        if (score > most || (!reach && end == ideal)) {
            most = score;
            best = end;
        }
    }
    return best;
}
