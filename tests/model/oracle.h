/*
 * The forward pass written once more, as plainly as it can be said: dense attention in double with a mask, no
 * lists, no blocks, no tiles, no threads. Works on a tiny_gguf's F32 tensors; everything that model_forward
 * is compared with.
 */
#ifndef KVIST_TESTS_ORACLE_H
#define KVIST_TESTS_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/file/gguf.h"
#include "tiny_gguf.h"

/* May token t read row i in this lane? Only asked for i <= t. */
typedef bool oracle_mask(void *user, uint32_t lane, uint32_t t, uint32_t i);

typedef struct oracle {
    const tiny_gguf *spec;
    const gguf_file *file;
    uint32_t n;
    const int32_t *ids;
    const uint32_t *phases;
    oracle_mask *mask; /* NULL: everything before */
    void *user;
    /* Results, each may be NULL. */
    float *logits;  /* [n][TINY_GGUF_VOCAB] */
    float *queries; /* [n_layer][n_head][n][head_dim], post-RoPE */
    float *keys;    /* [n_layer][n_head_kv][n][head_dim], as stored (rounded to F16) */
    float *hidden;  /* [n_layer][n][n_embd], behind each layer */
    /*
     * [n]: how clear a token's choices of experts are: by how much the last one's score stands above the best
     * that was not chosen, at least, over the layers.
     */
    float *margins;
} oracle;

void oracle_run(const oracle *o);

/* An F32 to the nearest F16 and back (ties to even, subnormals kept). */
float oracle_round_half(float x);
float oracle_from_half(uint16_t bits);

#endif
