/*
 * Texts with known answers: C code in which eight constants are hidden and a question that asks for four of
 * them. What calibration (heads.h) and `kvist-bench niah` are made of. Same seed, same text, for every
 * tokenizer.
 */
#ifndef KVIST_KV_NEEDLE_H
#define KVIST_KV_NEEDLE_H

#include "model/text/template.h"
#include "model/text/tokenizer.h"

enum { KV_NEEDLES = 8, KV_NEEDLES_ASKED = 4 };

typedef struct kv_needle {
    uint32_t from, to; /* its line's tokens in `text` */
} kv_needle;

typedef struct kv_needle_text {
    model_ids text;           /* scaffold of a user message and the code, without the question */
    uint32_t *lines, n_lines; /* where lines start in it */
    kv_needle needles[KV_NEEDLES];
} kv_needle_text;

typedef struct kv_needle_question {
    model_ids ids;                   /* its text */
    uint32_t queries[16], n_queries; /* tokens of the names asked for */
    model_ids tail;                  /* the message's end and the answer's beginning */
    /* The answer: for each asked needle, words and then its digits. */
    model_ids answer;
    struct {
        uint32_t needle, from, to; /* the digits' tokens in `answer` */
    } asked[KV_NEEDLES_ASKED];
} kv_needle_question;

/* About n_tokens of log lines with KV_NEEDLES needles among them, the same for a seed; kv_needle_text_free. */
void kv_needle_text_make(kv_needle_text *ret, const model_tokenizer *t, const model_template *template,
    uint64_t seed, uint32_t n_tokens);
void kv_needle_text_free(kv_needle_text *n);
/* asked: numbers of needles. later: the message is a further turn's, so it begins with its scaffold. */
void kv_needle_question_make(kv_needle_question *ret, const model_tokenizer *t,
    const model_template *template, uint64_t seed, const uint32_t asked[KV_NEEDLES_ASKED], bool later);
void kv_needle_question_free(kv_needle_question *q);

#endif
