/* What a repair found clearly, said again behind the question, as src/agent/sequence/repair.c does it. */
#ifndef KVIST_BENCH_ENDLESS_QUOTE_H
#define KVIST_BENCH_ENDLESS_QUOTE_H

#include "kv/session.h"

/* What of a question's answer was said again. */
typedef struct endless_said {
    uint32_t n_tokens, n_lines;
    uint32_t from[KV_MOST_QUOTES]; /* [n_lines] where each stood */
} endless_said;

/* Asks for evicted rows with a question that ends the session; what it asks for clearly is said again, in this turn. */
int endless_repair(
    const model *m, kv_session *s, uint32_t turn, kv_ask ask, endless_said *ret, base_err *err);

#endif
