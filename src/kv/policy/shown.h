/*
 * What IntentKV's residual (residual.h) is shown at a pass: the rule's score of every candidate row and the means of
 * keys. Inference and training take it from here, so that a network sees in a session what it was trained on.
 */
#ifndef KVIST_KV_SHOWN_H
#define KVIST_KV_SHOWN_H

#include "kv/policy/policy.h"
#include "kv/policy/residual.h"

typedef struct kv_shown {
    uint32_t n, n_asking, dim;
    uint32_t *tokens; /* [n] candidates, ascending: rows of some lane that no rule forces */
    uint32_t asking_tokens[KV_RESIDUAL_ASKING];
    float *rule;   /* [n] */
    float *keys;   /* [n][dim] */
    float *memory; /* [dim] */
    float *asking; /* [n_asking][dim] */
} kv_shown;

/* query: [n_layer][n_head][head_dim], the session's memory or the newest message. kv_shown_free in any case. */
int kv_shown_make(const kv_pass *pass, const float *query, kv_shown *ret, base_err *err);
void kv_shown_free(kv_shown *s);
kv_residual_input kv_shown_input(const kv_shown *s);

/*
 * The rule (equation 3) by token into rule[n_tokens], others 0: the masses of every candidate over all lanes, each
 * the mean of its lane's query heads (the paper: their sum, group times as much). Forced rows are outside the softmax.
 */
int kv_pass_rule(const kv_pass *pass, const float *query, float *rule, base_err *err);

#endif
