/*
 * How many rows a lane may keep active, as a person says it: "4096", "25%", "200M", "full" or "auto", and
 * "8192/4096": up to 8,192 rows nothing leaves, then 4,096 stay. Words become a wish once; the wish becomes
 * numbers of rows when the model is known, because shares and bytes depend on it.
 */
#ifndef KVIST_KV_BUDGET_H
#define KVIST_KV_BUDGET_H

#include <stdint.h>

#include "base/err.h"
#include "kv/types.h"

typedef enum kv_budget_kind {
    KV_BUDGET_AUTO,
    KV_BUDGET_FULL,
    KV_BUDGET_ROWS,
    KV_BUDGET_SHARE,
    KV_BUDGET_BYTES
} kv_budget_kind;

typedef struct kv_budget {
    kv_budget_kind kind;
    double amount; /* rows, a share of the context from 0 to 1, or bytes */
    double until;  /* of rows: kv_limit.until; 0: none */
} kv_budget;

enum {
    KV_BUDGET_AUTO_LEAST = 4096,
    KV_BUDGET_AUTO_MOST = 16384,
};

/* BASE_E_USAGE: the text is none of these; the sentence says what they are. */
int kv_budget_parse(const char *text, kv_budget *ret, base_err *err);

/*
 * Rows per lane. n_ctx: tokens of the model's context. row_bytes: what one token's rows take in all lanes.
 * free_bytes: memory that this process may still take.
 *
 * "auto" by rule is a quarter of that memory, never below KV_BUDGET_AUTO_LEAST nor above KV_BUDGET_AUTO_MOST
 * rows. And no more than half of the context, where that is at least KV_BUDGET_AUTO_LEAST rows: beyond that a
 * session could not go on behind it. A smaller context ends its session, as a budget of few rows would have no
 * room for the fixed prompt. measured ({0}: nothing, calibrate/pace.h) is from when on few rows are faster on
 * this machine: then that is when the first ones leave, at the rule's number of rows at the latest.
 */
kv_limit kv_budget_rows(
    const kv_budget *b, uint32_t n_ctx, uint32_t row_bytes, uint64_t free_bytes, kv_limit measured);

/*
 * For an engine elsewhere, whose rows nobody here sees: tokens of a request from which on a part of the conversation is
 * put aside; 0: none ever is. "auto" is three quarters of the context, so that a message and its answer have room.
 * BASE_E_USAGE: bytes, and rows behind more of them, mean nothing there.
 */
int kv_budget_tokens(const kv_budget *b, uint32_t n_ctx, uint32_t *ret, base_err *err);

#endif
