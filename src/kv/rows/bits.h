/* Sets of tokens: bit i of word i / 64. Bits at and beyond the sequence's end are always 0. */
#ifndef KVIST_KV_BITS_H
#define KVIST_KV_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t kv_bits_words(size_t n)
{
    return (n + 63) / 64;
}

static inline bool kv_bits_get(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static inline void kv_bits_set(uint64_t *bits, size_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline void kv_bits_clear(uint64_t *bits, size_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* The bits of word w that lie in [from, to). */
static inline uint64_t kv_bits_mask(size_t w, size_t from, size_t to)
{
    const size_t first = w * 64, last = first + 64;
    if (to <= first || from >= last) return 0;
    uint64_t mask = ~UINT64_C(0);
    if (from > first) mask &= ~UINT64_C(0) << (from - first);
    if (to < last) mask &= ~(~UINT64_C(0) << (to - first));
    return mask;
}

static inline void kv_bits_set_range(uint64_t *bits, size_t from, size_t to)
{
    for (size_t w = from / 64; w * 64 < to; w++) bits[w] |= kv_bits_mask(w, from, to);
}

static inline void kv_bits_clear_range(uint64_t *bits, size_t from, size_t to)
{
    for (size_t w = from / 64; w * 64 < to; w++) bits[w] &= ~kv_bits_mask(w, from, to);
}

/* How many bits of a word are set: sums of neighbouring 1, 2 and 4 bits, then all bytes added into the highest (Warren, Hacker's Delight,
 * section 5-1). Not the compiler's builtin: where the instruction may be lacking, as on x86-64 of 2003, that is a call. */
static inline uint32_t kv_bits_count_word(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

static inline uint32_t kv_bits_count(const uint64_t *bits, size_t n_words)
{
    uint32_t n = 0;
    for (size_t w = 0; w < n_words; w++) n += kv_bits_count_word(bits[w]);
    return n;
}

static inline uint32_t kv_bits_count_range(const uint64_t *bits, size_t from, size_t to)
{
    uint32_t n = 0;
    for (size_t w = from / 64; w * 64 < to; w++) n += kv_bits_count_word(bits[w] & kv_bits_mask(w, from, to));
    return n;
}

/* The first set (or, with `set` false, clear) bit at or behind i; n when there is none before n. */
static inline size_t kv_bits_next(const uint64_t *bits, size_t i, size_t n, bool set)
{
    while (i < n) {
        const uint64_t word = (set ? bits[i / 64] : ~bits[i / 64]) & ~UINT64_C(0) << (i % 64);
        if (word) {
            i = i / 64 * 64 + (size_t)__builtin_ctzll(word);
            return i < n ? i : n;
        }
        i = (i / 64 + 1) * 64;
    }
    return n;
}

#endif
