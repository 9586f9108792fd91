#include "base/hash.h"

#include <string.h>
#include <sys/random.h>

enum { TOGETHER = 8, HALF = 4 }; /* chains side by side */

static uint64_t begin(size_t n, uint64_t seed)
{
    return 0xcbf29ce484222325u ^ seed ^ (n * 0x9e3779b97f4a7c15u);
}

static uint64_t step(uint64_t h, const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    h = (h ^ word) * 0x100000001b3u;
    return h ^ h >> 32; /* the multiply alone never moves high bits down */
}

/* The last n bytes, fewer than 8, and the final mix. */
static uint64_t end(uint64_t h, const uint8_t *p, size_t n)
{
    for (; n; n--, p++) h = (h ^ *p) * 0x100000001b3u;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

uint64_t base_hash64(const void *bytes, size_t n, uint64_t seed)
{
    const uint8_t *p = bytes;
    uint64_t h = begin(n, seed);
    for (; n >= 8; n -= 8, p += 8) h = step(h, p);
    return end(h, p, n);
}

/* `together` pieces, a number that a compiler knows; seeds NULL: 0. */
static inline __attribute__((always_inline)) void hash_together(
    int together, const void *const *pieces, const uint64_t *seeds, size_t n, uint64_t *ret)
{
    const uint8_t *p[TOGETHER];
    uint64_t h[TOGETHER];
    size_t at = 0;
    for (int i = 0; i < together; i++) p[i] = pieces[i];
    for (int i = 0; i < together; i++) h[i] = begin(n, seeds ? seeds[i] : 0);
    for (; n - at >= 8; at += 8) {
#pragma GCC unroll 8 /* so that they stay in registers */
        for (int i = 0; i < together; i++) h[i] = step(h[i], p[i] + at);
    }
    for (int i = 0; i < together; i++) ret[i] = end(h[i], p[i] + at, n - at);
}

void base_hash64_some(const void *const *pieces, const uint64_t *seeds, size_t n, size_t count, uint64_t *ret)
{
    size_t i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER)
        hash_together(TOGETHER, pieces + i, seeds ? seeds + i : NULL, n, ret + i);
    for (; i + HALF <= count; i += HALF)
        hash_together(HALF, pieces + i, seeds ? seeds + i : NULL, n, ret + i);
    for (; i < count; i++) ret[i] = base_hash64(pieces[i], n, seeds ? seeds[i] : 0);
}

void base_hash64_each(const void *bytes, size_t n, size_t count, uint64_t *ret)
{
    const uint8_t *p = bytes;
    for (size_t i = 0, k; i < count; i += k) {
        const void *pieces[TOGETHER];
        for (k = 0; k < TOGETHER && i + k < count; k++, p += n) pieces[k] = p;
        base_hash64_some(pieces, NULL, n, k, ret + i);
    }
}

/* --- SipHash -------------------------------------------------------------------------------------------- */

static uint64_t turn(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void sip_rounds(uint64_t v[4], int n)
{
    while (n--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = turn(v[1], 13) ^ v[0];
        v[3] = turn(v[3], 16) ^ v[2];
        v[0] = turn(v[0], 32) + v[3];
        v[2] += v[1];
        v[1] = turn(v[1], 17) ^ v[2];
        v[3] = turn(v[3], 21) ^ v[0];
        v[2] = turn(v[2], 32);
    }
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_rounds(v, 1);
    v[0] ^= word;
}

uint64_t base_siphash(const void *bytes, size_t n, const uint64_t key[2])
{
    const uint8_t *p = bytes;
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
        key[1] ^ 0x7465646279746573};
    uint64_t word, last = (uint64_t)n << 56;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&word, p, 8);
        sip_word(v, word);
    }
    for (size_t i = 0; i < n; i++) last |= (uint64_t)p[i] << (8 * i);
    sip_word(v, last);
    v[2] ^= 0xff;
    sip_rounds(v, 3);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t process_key[2];

/* Before main, and so before any thread. Early in a machine's start there may be no randomness: an address is some. */
__attribute__((constructor)) static void draw_key(void)
{
    if (getrandom(process_key, sizeof process_key, GRND_NONBLOCK) != (ssize_t)sizeof process_key)
        process_key[0] ^= (uint64_t)(uintptr_t)&process_key ^ (uint64_t)(uintptr_t)__builtin_frame_address(0);
}

uint64_t base_hash_keyed(const void *bytes, size_t n)
{
    return base_siphash(bytes, n, process_key);
}

/* --- SHA-256 -------------------------------------------------------------------------------------------- */

static const uint32_t round_constants[64] = {
    0x428a2f98,
    0x71374491,
    0xb5c0fbcf,
    0xe9b5dba5,
    0x3956c25b,
    0x59f111f1,
    0x923f82a4,
    0xab1c5ed5,
    0xd807aa98,
    0x12835b01,
    0x243185be,
    0x550c7dc3,
    0x72be5d74,
    0x80deb1fe,
    0x9bdc06a7,
    0xc19bf174,
    0xe49b69c1,
    0xefbe4786,
    0x0fc19dc6,
    0x240ca1cc,
    0x2de92c6f,
    0x4a7484aa,
    0x5cb0a9dc,
    0x76f988da,
    0x983e5152,
    0xa831c66d,
    0xb00327c8,
    0xbf597fc7,
    0xc6e00bf3,
    0xd5a79147,
    0x06ca6351,
    0x14292967,
    0x27b70a85,
    0x2e1b2138,
    0x4d2c6dfc,
    0x53380d13,
    0x650a7354,
    0x766a0abb,
    0x81c2c92e,
    0x92722c85,
    0xa2bfe8a1,
    0xa81a664b,
    0xc24b8b70,
    0xc76c51a3,
    0xd192e819,
    0xd6990624,
    0xf40e3585,
    0x106aa070,
    0x19a4c116,
    0x1e376c08,
    0x2748774c,
    0x34b0bcb5,
    0x391c0cb3,
    0x4ed8aa4a,
    0x5b9cca4f,
    0x682e6ff3,
    0x748f82ee,
    0x78a5636f,
    0x84c87814,
    0x8cc70208,
    0x90befffa,
    0xa4506ceb,
    0xbef9a3f7,
    0xc67178f2,
};

/* Every index and width is the code's own: a sanitizer's check of each, more than half of the time, finds nothing. */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))

UNCHECKED static uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void sha256_read(uint32_t w[16], const uint8_t *p)
{
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

UNCHECKED static void sha256_mix(uint32_t h[8], uint32_t w[64])
{
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], k = h[7];
    /* Eight rounds a turn: the names rotate, not the values. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                                     \
    do {                                                                                                     \
        const uint32_t t = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +       \
                           round_constants[i] + w[i];                                                        \
        d += t;                                                                                              \
        h = t + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));              \
    } while (0)
    for (int i = 0; i < 64; i += 8) {
        ROUND(a, b, c, d, e, f, g, k, i);
        ROUND(k, a, b, c, d, e, f, g, i + 1);
        ROUND(g, k, a, b, c, d, e, f, i + 2);
        ROUND(f, g, k, a, b, c, d, e, i + 3);
        ROUND(e, f, g, k, a, b, c, d, i + 4);
        ROUND(d, e, f, g, k, a, b, c, i + 5);
        ROUND(c, d, e, f, g, k, a, b, i + 6);
        ROUND(b, c, d, e, f, g, k, a, i + 7);
    }
#undef ROUND
    const uint32_t v[8] = {a, b, c, d, e, f, g, k};
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

static void sha256_block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64];
    sha256_read(w, p);
    sha256_mix(h, w);
}

void base_sha256_init(base_sha256 *s)
{
    *s = (base_sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                           0x1f83d9ab, 0x5be0cd19}};
}

void base_sha256_add(base_sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = s->n_bytes % 64;
    s->n_bytes += n;
    while (n) {
        if (!held && n >= 64) {
            sha256_block(s->h, p);
            p += 64;
            n -= 64;
            continue;
        }
        size_t take = n < 64 - held ? n : 64 - held;
        memcpy(s->block + held, p, take);
        held += take;
        p += take;
        n -= take;
        if (held == 64) {
            sha256_block(s->h, s->block);
            held = 0;
        }
    }
}

void base_sha256_end(base_sha256 *s, uint8_t digest[32])
{
    uint64_t n_bits = s->n_bytes * 8;
    uint8_t end[72] = {0x80};
    size_t n_pad = 1 + (119 - s->n_bytes % 64) % 64;
    for (int i = 0; i < 8; i++) end[n_pad + (size_t)i] = (uint8_t)(n_bits >> (56 - 8 * i));
    base_sha256_add(s, end, n_pad + 8);
    for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void base_sha256_hex(const void *bytes, size_t n, char hex[65])
{
    base_sha256 s;
    uint8_t digest[32];
    base_sha256_init(&s);
    base_sha256_add(&s, bytes, n);
    base_sha256_end(&s, digest);
    base_hex(digest, 32, hex);
}

void base_hex(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}
