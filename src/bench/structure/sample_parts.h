/* Between conditions.c, sample_context.c, sample_question.c and sample.c; nobody else includes this. */
#ifndef KVIST_BENCH_SAMPLE_PARTS_H
#define KVIST_BENCH_SAMPLE_PARTS_H

#include "bench/common/share.h"
#include "bench/structure/sample.h"
#include "code/graph.h"

enum { MOST_WANT = 128, MOST_QUERIES = 8, SAMPLE_SET = 8, SAMPLE_WORDS = 128 };

/* Every row stays active. */
bool structure_is_full(const structure_condition *c);
/* Its rows are computed chunk by chunk. */
bool structure_is_local(const structure_condition *c);
bool structure_is_wanted(const structure_run *b, const structure_condition *c);

/* A chunk in tokens, and what its text says. */
typedef struct sample_excerpt {
    const bench_function *f;
    model_ids ids;
    uint32_t *ends;           /* [ids.n] bytes behind each token */
    uint32_t *lines, n_lines; /* tokens that begin a line */
    uint32_t text_from;       /* where f->text begins in what was encoded */
    code_file *file;
    code_graph *graph;
} sample_excerpt;

/* What all questions of a sample share. */
typedef struct sample_context {
    const structure_run *b;
    model_ids head;
    sample_excerpt chunks[BENCH_CHUNKS];
    uint32_t n_chunks, n_tokens; /* tokens: of the chunks */
    kv_session *sessions[2];     /* ordinary text; chunk by chunk. NULL: not computed */
    bench_share *share;          /* of the first, with those that prune; NULL: none does */
    kv_compute compute;
    uint32_t at[BENCH_CHUNKS]; /* token where a chunk begins */
    double seconds;
} sample_context;

/* A question, and the answer that is read along. */
typedef struct sample_question {
    model_ids ids, all; /* ids: what is asked; all: and the answer behind it */
    uint32_t want[MOST_WANT],
        n_want; /* tokens of `all` whose logits are read: before the choice, before each of the line's */
    uint32_t n_choices, right, choices[BENCH_CHUNKS];
    uint32_t n_line;
    uint32_t queries[MOST_QUERIES], n_queries; /* tokens of `ids` that name what is asked for */
    kv_span *spans[BENCH_CHUNKS];
    uint32_t n_spans[BENCH_CHUNKS];
    double spans_ms;
    kv_session *sessions[2]; /* the context and, behind it, the question as the signal */
    double seconds;
} sample_question;

void sample_encode(const structure_run *b, const char *text, size_t n, model_ids *out);
void sample_puts(const structure_run *b, model_ids *out, const char *text);
uint32_t sample_n_bytes(const structure_run *b, int32_t id);
int sample_append(kv_session *s, kv_origin origin, const model_ids *ids, base_err *err);
/* A condition's words as parameters behind those that `set` has; `words` holds them. */
void sample_split_set(
    const structure_condition *c, char words[SAMPLE_WORDS], const char *set[SAMPLE_SET + 1]);

void sample_context_make(sample_context *c, const structure_run *b, const bench_sample *s);
void sample_context_free(sample_context *c);
/* What the conditions that prune compute alike, they compute once. */
int sample_context_share(sample_context *c, base_err *err);
/* c->sessions[local]: the context under ordinary attention, or (local) each chunk by itself. */
int sample_context_compute(sample_context *c, bool local, base_err *err);
/* Appends head and chunks; shared: what is computed for one session is there for the next. */
int sample_context_append(const sample_context *c, kv_session *s, bool shared, base_err *err);
int sample_open_pruned(
    const sample_context *c, const structure_condition *condition, kv_session **ret, base_err *err);

void sample_question_make(
    sample_question *q, const sample_context *c, const bench_sample *s, const bench_question *about);
void sample_question_free(sample_question *q);
/* q->sessions[local]: a fork of the context with the question behind it as the signal. */
int sample_question_compute(sample_question *q, sample_context *c, bool local, base_err *err);

#endif
