/*
 * The session's memory of what was asked (IntentKV, section 3.2, "QueryMemory"). It is a list with one state
 * for each message, newest first. States never change and forks share them, so a rewind takes back what the
 * truncated messages had asked.
 */
#ifndef KVIST_KV_MEMORY_H
#define KVIST_KV_MEMORY_H

#include <stddef.h>

#include "kv/core/signal.h"

/* Newest messages that a manifest keeps: what is older counts e^-4 or less in any sum. */
enum { KV_MEMORY_KEPT = 8 };

typedef struct kv_memory {
    uint32_t refs, at;      /* at: the sequence's length when the message was complete */
    struct kv_memory *past; /* NULL: the first, or older than what a manifest keeps */
    float *sum;             /* M: [n_layer][n_head][head_dim], unit norm along head_dim */
    float *message;         /* Enc of the message alone, the same shape and norm; part of sum's allocation */
} kv_memory;

/* A message behind past, which keeps its reference: M <- unit(exp(-.5) M + Enc). NULL: no memory. */
kv_memory *kv_memory_add(kv_memory *past, const kv_signal *s, uint32_t at);
/* A link with given values (a manifest's), uninitialised: fill sum and message, [n_floats] each. */
kv_memory *kv_memory_new(kv_memory *past, size_t n_floats, uint32_t at);
kv_memory *kv_memory_ref(kv_memory *m); /* NULL is fine */
void kv_memory_unref(kv_memory *m);     /* NULL is fine */
/* sum <- unit(exp(-.5) sum + message), n_vectors of d numbers. */
void kv_memory_mix(float *sum, const float *message, size_t n_vectors, size_t d);
/* The newest link of a sequence truncated to n tokens: gives up m's reference and returns one. */
kv_memory *kv_memory_rewind(kv_memory *m, uint32_t n);

#endif
