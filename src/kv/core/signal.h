/*
 * A signal: query vectors that are kept to ask later which rows matter. They are copied from the forward
 * pass that computed them, after their rotary position (RoPE) was applied.
 *
 * Layout as model_capture and model_score want it: [n_layer][n_head][n][head_dim], F32, the n tokens
 * ascending.
 */
#ifndef KVIST_KV_SIGNAL_H
#define KVIST_KV_SIGNAL_H

#include <stdint.h>

#include "base/err.h"

typedef struct kv_signal {
    uint32_t n_layer, n_head, head_dim;
    uint32_t n;
    uint32_t *tokens; /* [n] places in the sequence */
    float *queries;   /* [n_layer][n_head][n][head_dim]; owned */
} kv_signal;

/* Empty; kv_signal_fini. Every error here is BASE_E_NOMEM. */
void kv_signal_init(kv_signal *s, uint32_t n_layer, uint32_t n_head, uint32_t head_dim);
void kv_signal_fini(kv_signal *s);                                      /* empty, and usable again */
int kv_signal_copy(kv_signal *s, const kv_signal *from, base_err *err); /* replaces s */
/* Adds n captured tokens behind those that are there, then forgets the oldest above max. */
int kv_signal_add(
    kv_signal *s, const uint32_t *tokens, const float *queries, uint32_t n, uint32_t max, base_err *err);
/* Keeps only tokens in [from, to). */
void kv_signal_crop(kv_signal *s, uint32_t from, uint32_t to);
/* ret becomes the entries at these places (ascending) of s. */
int kv_signal_pick(const kv_signal *s, const uint32_t *places, uint32_t n, kv_signal *ret, base_err *err);

#endif
