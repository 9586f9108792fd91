/*
 * Training of a residual on places of sessions (IntentKV, section 3.5 and appendix A): AdamW, two epochs, sessions in a
 * drawn order and each session's places in theirs. The same numbers for the same seed, whatever the number of threads.
 */
#ifndef KVIST_LEARN_TRAIN_H
#define KVIST_LEARN_TRAIN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/pool.h"
#include "learn/gradient.h"

/* Rows at a message or result, as kv_shown has them. */
typedef struct learn_example {
    uint32_t session; /* of learn_set.sessions */
    uint32_t n, n_asking;
    uint32_t *tokens; /* [n] candidates */
    float *rule;      /* [n] */
    uint8_t *quoted;  /* [n] by the next LEARN_AHEAD calls */
    uint8_t *next;    /* [n] by the next call alone */
    float *memory;    /* [dim] */
    float *asking;    /* [n_asking][dim] */
} learn_example;

typedef struct learn_session {
    uint32_t n, group; /* tokens; group: sessions of one are held out together */
    float *keys;       /* [n][dim] mean keys, of tokens that were ever shown */
} learn_session;

typedef struct learn_set {
    uint32_t dim;
    learn_session *sessions;
    size_t n_sessions, cap_sessions;
    learn_example *examples; /* by session, then as they came */
    size_t n_examples, cap_examples;
} learn_set;

void learn_set_free(learn_set *s);

typedef struct learn_options {
    uint64_t seed;
    uint32_t epochs, accumulate; /* 2 epochs, 8 places a step */
    uint32_t rows;               /* of a place that a step looks at: 1,024, quoted ones first */
    double rate, decay;          /* 1e-3, .01 */
    learn_loss loss;
    base_pool *pool;
    /* share done, and the mean loss of the last step; may be NULL */
    void (*progress)(void *user, double share, double loss);
    void *user;
    const atomic_bool *cancel;
} learn_options;

#define LEARN_DEFAULTS                                                                                       \
    {                                                                                                        \
        .seed = 42, .epochs = 2, .accumulate = 8, .rows = 1024, .rate = 1e-3, .decay = .01, .loss = {        \
            .05,                                                                                             \
            .01                                                                                              \
        }                                                                                                    \
    }

/*
 * Trains on the examples whose session `is_used` ([n_sessions]) names. *ret: kv_residual_unref. BASE_E_CANCELLED;
 * BASE_E_STATE where nothing quotes.
 */
int learn_train(const learn_set *set, const bool *is_used, const char *hash, const learn_options *o,
    kv_residual **ret, base_err *err);

/* Who chooses the rows that stay. */
typedef enum learn_chooser { LEARN_RULE, LEARN_CORRECTED, LEARN_NEWEST } learn_chooser;
/*
 * Of the rows that the next call quotes the share that stays when `share` of the candidates do: by the rule alone, as r
 * corrects it (LEARN_CORRECTED), or the newest. The mean over a session's places into recall[n_sessions]; NAN where no
 * place of it quotes.
 */
int learn_recall(const learn_set *set, learn_chooser who, const kv_residual *r, double share, double *recall,
    base_err *err);

#endif
