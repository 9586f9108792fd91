/*
 * A model without weights for tests of the cache: deterministic, and honest about what it read.
 *
 * A row's key is a code of its id's class (id % FAKE_CLASSES), so a query of a class asks for the keys of its
 * class; a row's value and the logits are a hash of everything that the token could read, so a row computed
 * over a hole differs. A part of the layers hands the same hash on in its hidden state. With KVIST_FAKE_STATES
 * set it keeps a state beside its rows: a hash of all its tokens and of what they read, which every later
 * token reads too; whose state is not the one in front of a batch ends the program.
 */
#ifndef KVIST_TESTS_FAKE_COMPUTE_H
#define KVIST_TESTS_FAKE_COMPUTE_H

#include "kv/core/compute.h"

enum {
    FAKE_LAYERS = 2,
    FAKE_HEADS_KV = 2,
    FAKE_HEADS = 4,
    FAKE_DIM = 16,
    FAKE_EMBD = 12, /* floats of a hidden state */
    FAKE_VOCAB = 1024,
    FAKE_CLASSES = 61,
    FAKE_PINS = 256,
    FAKE_STATE = 64, /* bytes */
    FAKE_LANES = FAKE_LAYERS * FAKE_HEADS_KV
};

typedef struct fake_model {
    uint64_t n_forward; /* tokens computed */
    uint64_t n_layers;  /* and in how many layers, all tokens together */
    uint64_t n_scored;  /* row-lanes scored */
    uint64_t n_turned;  /* queries turned to another phase */
    int fail_after;     /* this many forward calls succeed, the next is cancelled; -1: never */
    bool lanes_differ;  /* each lane has its own code: per-lane policies choose differently */
    uint32_t window;    /* tokens that layer 0 reads; 0: all (KVIST_FAKE_WINDOW, where that is set) */
    /*
     * Its device: memory that is pinned now, and how often rows were brought. Pinning twice, or unpinning
     * another's, is the end.
     */
    const void *pinned[FAKE_PINS];
    size_t n_pinned, n_brought;
} fake_model;

kv_compute fake_compute(fake_model *m, uint32_t n_ctx);

/* xorshift for tests; the seed is printed by test_seed, and KVIST_SEED repeats it. */
uint64_t test_seed(const char *what, uint64_t otherwise);

/* How long a generated sequence is: `full` where KVIST_TEST_LONG is set (scripts/test long), else `usual`; half of that where
 * KVIST_FAKE_STATES is, since a step costs three times as much there. */
uint32_t test_length(uint32_t usual, uint32_t full);
uint64_t test_random(uint64_t *state);
uint32_t test_below(uint64_t *state, uint32_t n); /* 0..n-1 */

#endif
