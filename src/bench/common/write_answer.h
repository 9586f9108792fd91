/*
 * The most probable answer behind a session, for experiments that compare answers. Most conditions write what
 * the full cache wrote: a guess is read along in one pass, and only what differs from it is written token by
 * token. The bits, and so the answer, are the same either way.
 */
#ifndef KVIST_BENCH_ANSWER_H
#define KVIST_BENCH_ANSWER_H

#include <stdbool.h>

#include "base/buf.h"
#include "kv/session.h"
#include "model/text/tokenizer.h"

typedef struct bench_asking {
    model *model;
    uint32_t turn, n_new;   /* n_new: tokens at most */
    const model_ids *guess; /* NULL or none: every token by itself, as it is where time is measured */
    /*
     * Called when token 5, 13, 21, ... is the session's last one. NULL: nobody looks at the session, which
     * then need not hold an answer that is the guess.
     */
    int (*look)(void *user, kv_session *s, base_err *err);
    void *user;
} bench_asking;

/*
 * Ids of the answer without its end go to ret, which is empty. logits: behind the session's last token;
 * written over.
 */
int bench_answer(kv_session *s, const bench_asking *a, float *logits, model_ids *ret, base_err *err);
/*
 * ids as if they had been written behind the session, whose last token has these logits: their mean log p, and is each,
 * given the ones before it, the most probable one? The last of them is not read. Of a, model and turn are looked at.
 */
int bench_weigh(kv_session *s, const bench_asking *a, const float *logits, const model_ids *ids, double *ret,
    bool *ret_foremost, base_err *err);
/* Their text is added to out. */
void bench_answer_text(const model *m, const model_ids *ids, base_buf *out);
int32_t bench_best(const float *logits, uint32_t n); /* the first of the largest; at least one */

#endif
