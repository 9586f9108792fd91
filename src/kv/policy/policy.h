/*
 * Policies. A policy is a file of this folder that ends in its row, `const kv_policy kv_policy_NAME`, and a
 * name in src/kv/meson.build: a rule that scores the live rows, where it needs one, and the parameters that
 * it begins with. What policies share (protection, budgets, taking the best, plans) is evict/select.c's.
 */
#ifndef KVIST_KV_POLICY_H
#define KVIST_KV_POLICY_H

#include "kv/core/compute.h"
#include "kv/core/parameters.h"
#include "kv/core/rank.h"
#include "kv/core/signal.h"
#include "kv/policy/structure.h"
#include "kv/rows/list.h"

/* What a scoring function sees and fills. Arrays over rows are per lane, by ordinal of its live list. */
typedef struct kv_pass {
    const kv_compute *compute;
    const kv_lists *lists;
    const model_rows_view *rows;
    const kv_parameters *parameters;
    const kv_signal *request; /* the current request's queries, else the newest tokens'; n may be 0 */
    /*
     * [n_layer][n_head][head_dim], at the newest phase where rows are folded; NULL before the first request
     */
    const float *memory;
    const float *message;               /* the same of the newest message or result alone */
    const float *previous;              /* [n_tokens] scores of the last pass */
    const struct kv_residual *residual; /* corrects the rule of requests (residual.h); NULL: it is off */
    uint32_t answer_from, answer_to;    /* the last answer's tokens; equal: there is none */
    const atomic_bool *cancel;
    kv_ranker *ranker;
    /* the sequence's segments, for a policy that chooses by structure */
    const struct kv_stored_segment *segments;
    size_t n_segments;
    const uint8_t *hard;  /* [n_tokens] kv_hard */
    uint32_t budget;      /* of this pass */
    uint32_t *kept;       /* out, [n_tokens]: in how many lanes a rule of the policy chose the row */
    uint8_t *kept_reason; /* out, [n_tokens]: kv_reason of it */
    /* [n_lanes][heavy_stride] by token: mass given so far; NULL: the policy adds none up */
    const float *heavy;
    size_t heavy_stride;
    float **score; /* out: higher stays longer */
    /* out, [n_tokens]: sums over lanes of the masses under request and memory, or untouched NAN */
    float *attention, *recall;
} kv_pass;

/* What of every token's attention a policy wants added up; COUNT: how often above average. */
typedef enum kv_heavy { KV_HEAVY_NONE, KV_HEAVY_SUM, KV_HEAVY_COUNT, KV_HEAVY_LAST } kv_heavy;

typedef struct kv_policy {
    kv_policy_info info;
    int (*score)(kv_pass *pass, base_err *err); /* NULL: never evicts */
    kv_parameters defaults;
    kv_heavy heavy;
    /* evicts once a message or result is complete, never inside one or while an answer is written */
    bool whole;
    int repair; /* rows a repair may bring back, when nobody says: 0 none, -1 a quarter of the budget */
} kv_policy;

const kv_policy *kv_policy_find(const char *name, base_err *err); /* NULL name: the default */
/* Rows of a lane after a pass: the policy's share of the budget, more when many (n_hard) are hard. */
uint32_t kv_pass_target(const kv_parameters *p, uint32_t budget, uint32_t n_hard);
/* Mass of a signal on every live row into mass[lane][ordinal], for policies; tokens as model_score's. */
int kv_pass_mass(kv_pass *pass, const float *queries, const uint32_t *tokens, uint32_t n_queries,
    float *const *mass, base_err *err);

/*
 * Scoring rules that more than one policy uses: the newest rows stay; the mean mass of the request's last w
 * queries over a lane's rows, mean over its query heads, max-pooled over `kernel` neighbours (SnapKV; the
 * newest rows while nobody asked anything); the mass given so far, with a share for the newest rows (H2O).
 */
int kv_pass_newest(kv_pass *pass, base_err *err);
int kv_pass_asked(kv_pass *pass, base_err *err);
int kv_pass_heaviest(kv_pass *pass, base_err *err);

/* What a row's defaults begin with. USUAL: most policies'; SKIP: those that prune a prefill. */
/* clang-format off */
#define KV_COMMON_DEFAULTS .w = 32, .queries = 8, .heads = 1, .states = 1024, .states_disk = 1024
#define KV_USUAL_DEFAULTS KV_COMMON_DEFAULTS, KV_READING_DEFAULTS, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS, .low = .875, .window = 32, .kernel = 7
#define KV_SKIP_DEFAULTS KV_COMMON_DEFAULTS, KV_READING_DEFAULTS, KV_STRUCTURE_DEFAULTS, .low = .875, .window = 8, .kernel = 7, .sinks = 4, .hard = 1, \
    .frame = 1, .bulk = 512, .computed = 128
/* clang-format on */

#endif
