/*
 * Policies: a row of a table and, where it needs one, a function that scores the live rows. What they share (protection,
 * budgets, top-k, plans) is select.c's, so a policy is never more than a scoring rule and its numbers.
 */
#ifndef KVIST_KV_POLICY_H
#define KVIST_KV_POLICY_H

#include "kv/compute.h"
#include "kv/list.h"
#include "kv/prune.h"
#include "kv/rank.h"
#include "kv/reading.h"
#include "kv/signal.h"
#include "kv/structure.h"

/*
 * --kv-set NAME=VALUE. X(field, "name", least, most, words, about): words is NULL for a number, else the names of the values 0, 1, ...
 */
/* clang-format off */
#define KV_PARAMETERS(X) \
    X(low, "low", .1, 1, NULL, "an eviction pass goes down to this share of the budget") \
    X(sinks, "sinks", 0, 256, NULL, "first rows of the sequence, hard") \
    X(window, "window", 1, 4096, NULL, "newest rows, hard") \
    X(hard, "hard", 0, 2, NULL, "fixed prompt, instructions and current request are hard too; 2: a newest result too") \
    X(soft, "soft", 0, 1, NULL, "share of a segment's rows that structure chooses") \
    X(w, "w", 1, 64, NULL, "query vectors of the request") \
    X(kernel, "kernel", 1, 63, NULL, "rows of the max pooling, odd") \
    X(memory, "memory", 0, 1, NULL, "weight of the session memory's rank beside the request's") \
    X(seed, "seed", 0, 4294967295., NULL, "random") \
    X(queries, "queries", 1, 64, NULL, "query vectors of a repair") \
    X(hysteresis, "hysteresis", 0, 1, NULL, "repair: a row must cross the cut by this share of the budget") \
    X(recent, "recent", 0, 1, NULL, "share of what an eviction leaves that is for the newest rows") \
    X(mode, "mode", 0, 1, "query memory", "intentkv: the newest message asks, or the session's memory") \
    X(host, "host", 0, 1048576, NULL, "MiB of rows kept in memory, evicted rows beyond it on disk only; 0: no limit") \
    X(disk, "disk", 0, 1048576, NULL, "MiB of rows on disk, the oldest evicted ones beyond it given up; 0: no limit") \
    X(tier, "tier", 0, 1, "exact 8bit", "evicted rows beyond `host` MiB: on disk, or in 8 bits while that suffices") \
    X(order, "order", 0, 4, "mass keys fused random oldest", "repair: who asks first (repair.h)") \
    X(grow, "grow", 0, 2, "line burst none", "repair: what comes with an anchor") \
    X(pick, "pick", 0, 2, "rank coverage refresh", "repair: how anchors are taken") \
    X(lanes, "lanes", 0, 1, "one each", "repair: one set for all lanes, or a set for each") \
    X(heads, "heads", 0, 1, "all calibrated", "repair: whose mass counts, where heads are calibrated") \
    X(signal, "signal", 0, 1, "reuse replay", "repair: the signal's own rows stay, or are computed again") \
    X(again, "again", 0, 1048576, NULL, "repair: a longer message is not computed again; 0: no limit") \
    X(visit, "visit", 0, .5, NULL, "share of the budget kept for evicted rows that a token chooses for itself and nobody brings back; 0: none") \
    X(visited, "visited", 0, 2, "calls again all", "visit: tokens of messages, results and calls; or answers too, once they are there and something follows; or all") \
    X(rest, "rest", 0, 1, "none mean", "visit: rows that are weighed and not read: left out, or the means of their values stand in for them") \
    KV_READING_PARAMETERS(X) \
    KV_STRUCTURE_PARAMETERS(X) \
    KV_PRUNE_PARAMETERS(X)
/* clang-format on */
#define KV_PARAMETER_FIELD(field, name, least, most, words, about) double field;
typedef struct kv_parameters {
    KV_PARAMETERS(KV_PARAMETER_FIELD)
} kv_parameters;

/* The words of `visited`. */
enum { KV_VISITED_CALLS, KV_VISITED_AGAIN, KV_VISITED_ALL };

/* What a scoring function sees and fills. Arrays over rows are per lane, by ordinal of its live list. */
typedef struct kv_pass {
    const kv_compute *compute;
    const kv_lists *lists;
    const model_rows_view *rows;
    const kv_parameters *parameters;
    const kv_signal *request;        /* the current request's queries, else the newest tokens'; n may be 0 */
    const float *memory;             /* [n_layer][n_head][head_dim]; NULL before the first request */
    const float *message;            /* the same of the newest message or result alone */
    const float *previous;           /* [n_tokens] scores of the last pass */
    uint32_t answer_from, answer_to; /* the last answer's tokens; equal: there is none */
    const atomic_bool *cancel;
    kv_ranker *ranker;
    const struct kv_part *parts; /* the sequence's segments, for a policy that chooses by structure */
    size_t n_parts;
    const uint8_t *hard;  /* [n_tokens] kv_hard */
    uint32_t budget;      /* of this pass */
    uint32_t *kept;       /* out, [n_tokens]: in how many lanes a rule of the policy chose the row */
    uint8_t *kept_reason; /* out, [n_tokens]: kv_reason of it */
    const float
        *heavy; /* [n_lanes][heavy_stride] by token: mass given so far; NULL: the policy adds none up */
    size_t heavy_stride;
    float **score; /* out: higher stays longer */
    float *attention,
        *recall; /* out, [n_tokens]: sums over lanes of the masses under request and memory, or untouched NAN */
} kv_pass;

/* What a policy wants added up of every token's own attention: nothing, mass, how often it was above average, the last one's. */
typedef enum kv_heavy { KV_HEAVY_NONE, KV_HEAVY_SUM, KV_HEAVY_COUNT, KV_HEAVY_LAST } kv_heavy;

typedef struct kv_policy {
    kv_policy_info info;
    int (*score)(kv_pass *pass, base_err *err); /* NULL: never evicts */
    kv_parameters defaults;
    kv_heavy heavy;
    bool
        whole; /* evicts once a message or result is complete, never inside one or while an answer is written */
    int repair; /* rows a repair may bring back, when nobody says: 0 none, -1 a quarter of the budget */
} kv_policy;

const kv_policy *kv_policy_find(const char *name, base_err *err); /* NULL name: the default */
/* Applies "NAME=VALUE" pairs (NULL-terminated, may be NULL) over the policy's defaults. */
int kv_parameters_parse(const kv_policy *policy, const char *const *set, kv_parameters *ret, base_err *err);

/* Rows of a lane after a pass: the policy's share of the budget, more when hard rows are many. n_hard: of the lane's rows. */
uint32_t kv_pass_target(const kv_parameters *p, uint32_t budget, uint32_t n_hard);
/* Mass of a signal on every live row into mass[lane][ordinal], for policies. */
int kv_pass_mass(kv_pass *pass, const float *queries, uint32_t n_queries, float *const *mass, base_err *err);

int kv_policy_streaming_score(kv_pass *pass, base_err *err);
int kv_policy_random_score(kv_pass *pass, base_err *err);
int kv_policy_snapkv_score(kv_pass *pass, base_err *err);
int kv_policy_seed_score(kv_pass *pass, base_err *err);
int kv_policy_kvist_score(kv_pass *pass, base_err *err);
int kv_policy_heavy_score(kv_pass *pass, base_err *err);
int kv_policy_last_score(kv_pass *pass, base_err *err);
int kv_policy_knorm_score(kv_pass *pass, base_err *err);
int kv_policy_intentkv_score(kv_pass *pass, base_err *err);
int kv_policy_codecomp_score(kv_pass *pass, base_err *err);

#endif
