/*
 * Documents for `kvist-bench niah`: real code and prose with needles in it, after the protocol of RepairKV,
 * section 4 (one sentence a needle, a key and a five-digit value, fixed depths, the last one near the end),
 * and questions for some of them. Same corpus and seed, same document, for every tokenizer.
 */
#ifndef KVIST_BENCH_HAYSTACK_H
#define KVIST_BENCH_HAYSTACK_H

#include "base/buf.h"
#include "bench/recall/protocol.h"

enum { BENCH_NEEDLES = 8 };

typedef struct bench_needle {
    uint32_t from, to; /* its line's tokens in `ids` */
    char key[24], value[8];
} bench_needle;

typedef struct bench_haystack {
    model_ids ids; /* the beginning of a user message and the document, without a question */
    uint32_t *lines, n_lines;
    bench_needle needles[BENCH_NEEDLES];
    uint32_t n_needles;
} bench_haystack;

void bench_haystack_make(bench_haystack *ret, const model_tokenizer *t, const model_template *template,
    const base_buf *corpus, uint64_t seed, uint32_t n_tokens, uint32_t n_needles);
void bench_haystack_free(bench_haystack *h);

/*
 * asked: digits '1'.. of the needles; any other letter asks for none of them but what the files are about.
 * later: a further turn's message, so it begins with its scaffold.
 */
void bench_question_make(recall_turn *ret, const model_tokenizer *t, const model_template *template,
    const bench_haystack *h, const char *asked, bool later);

#endif
