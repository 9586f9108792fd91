/*
 * The seam under a session: who computes. One row is the real model (kv_compute_model); tests fill one whose
 * rows and masses are functions of the ids, so that lists, plans, policies and manifests are tested without
 * weights.
 */
#ifndef KVIST_KV_COMPUTE_H
#define KVIST_KV_COMPUTE_H

#include "kv/rows/device.h"
#include "kv/types.h"
#include "model/forward/model.h"

typedef struct kv_compute {
    void *user;
    int (*forward)(void *user, const model_batch *batch, base_err *err); /* as model_forward */
    int (*score)(void *user, const model_score *score, base_err *err);   /* as model_score_rows */
    model_rows_shape shape;
    uint32_t n_head, n_embd, n_vocab,
        n_ctx;               /* n_embd: floats of a hidden state; 0: no part of the layers can be computed */
    char hash[65];           /* whose rows these are */
    uint32_t kernel_version; /* and computed how */
    int (*bound)(
        void *user, const model_bound *bound, base_err *err); /* as model_bound_sections; NULL: none */
    uint8_t (*ending)(
        void *user, int32_t id); /* kv_ending of a token (split.h); NULL: nothing ends a sentence */
    /* as model_turn_queries; NULL: rows cannot be read folded, so a session ends with the model's context */
    void (*turn)(void *user, float *queries, uint32_t n, const int64_t *by);
    int (*turn_rows)(void *user, const model_rows_view *rows, uint32_t lane, uint32_t index, uint32_t step,
        uint32_t n, uint16_t *keys, base_err *err); /* as model_turn_rows; there where turn is */
    /* as model_window; NULL: every layer reads everything */
    uint32_t (*window)(void *user, uint32_t layer);
    uint64_t state_bytes; /* of a state beside the rows (core/states.h); 0: the model keeps none */
    /* reads rows where they lie, so that those lying together are read faster (read/gather.h) */
    bool gathers;
    kv_device device;
} kv_compute;

/* Borrows the model, which must outlive it. */
kv_compute kv_compute_model(model *m);
/*
 * Rows of single lanes that real models have read or weighed since the process began, for benches: by every
 * token that was computed (also again, or ahead), by every query of a pass or repair.
 */
uint64_t kv_rows_read(void);

/* kv_session_new and kv_session_resume over any compute, which is copied. */
int kv_session_new_over(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err);
int kv_session_resume_over(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err);

#endif
