/*
 * hash64: fast, for tables and identities inside one machine (FNV-1a over 8 byte steps with a final mix; not
 * secret-safe). sha256 (FIPS 180-4): for downloads, file versions and cache identities that must not collide.
 */
#ifndef KVIST_BASE_HASH_H
#define KVIST_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t base_hash64(const void *bytes, size_t n, uint64_t seed);
/*
 * base_hash64 of each of `count` pieces of n bytes: several chains side by side, since one alone waits for its
 * multiplications. seeds: NULL: 0. _each: pieces that lie one behind the other, seeds 0.
 */
void base_hash64_some(
    const void *const *pieces, const uint64_t *seeds, size_t n, size_t count, uint64_t *ret);
void base_hash64_each(const void *bytes, size_t n, size_t count, uint64_t *ret);

/*
 * For tables whose keys are somebody else's (names of a tree, pieces of a vocabulary): SipHash-1-3 (Aumasson and
 * Bernstein 2012) with a key drawn once a process. Texts that share a slot are easily found for base_hash64, and a table
 * of them is a list. Never in a file and never for an order, since it differs from run to run.
 */
uint64_t base_hash_keyed(const void *bytes, size_t n);
uint64_t base_siphash(const void *bytes, size_t n, const uint64_t key[2]);

typedef struct base_sha256 {
    uint32_t h[8];
    uint64_t n_bytes;
    uint8_t block[64];
} base_sha256;

void base_sha256_init(base_sha256 *s);
void base_sha256_add(base_sha256 *s, const void *bytes, size_t n);
void base_sha256_end(base_sha256 *s, uint8_t digest[32]);
void base_sha256_hex(const void *bytes, size_t n, char hex[65]); /* all at once */
void base_hex(const uint8_t *bytes, size_t n, char *out);        /* 2n characters and NUL */

#endif
