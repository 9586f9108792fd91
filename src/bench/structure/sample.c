/* One sample under all conditions; see bench/structure/sample.h. */
#include "bench/structure/sample_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "code/index.h"
#include "kv/lab/lab.h"

/* --- a condition ---------------------------------------------------------------------------------------- */

static uint32_t most_probable(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/*
 * Question and answer in one pass over what is left: each token of the answer is compared with what the model
 * would have written.
 */
static int answer(
    const structure_run *b, kv_session *s, const sample_question *q, structure_result *o, base_err *err)
{
    const uint32_t n_vocab = b->info->n_vocab;
    const kv_segment g = {.origin = KV_ORIGIN_USER, .turn = 1};
    float *logits = malloc((size_t)q->n_want * n_vocab * sizeof *logits);
    int r = logits ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for logits");
    if (!r) r = kv_session_peek(s, &g, q->all.ids, (uint32_t)q->all.n, q->want, q->n_want, logits, err);
    if (!r && q->n_choices) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < q->n_choices; i++)
            if (logits[q->choices[i]] > logits[q->choices[best]]) best = i;
        o->right[0] = best == q->right;
    }
    for (uint32_t i = q->n_want - q->n_line; i < q->n_want && !r; i++) {
        const bool is_right =
            most_probable(logits + (size_t)i * n_vocab, n_vocab) == (uint32_t)q->all.ids[q->want[i] + 1];
        if (!o->n_line++) o->right[1] = is_right;
        o->right_line += is_right;
    }
    if (!r && o->n_line) o->right[2] = o->right_line == o->n_line;
    free(logits);
    return r;
}

/* The context, and of it what the question leaves: a session that ends behind the context. */
static int compute_pruned(const sample_context *c, const sample_question *q,
    const structure_condition *condition, kv_session **ret, base_err *err)
{
    const kv_segment g = {
        .origin = KV_ORIGIN_USER, .turn = 1, .queries = q->queries, .n_queries = q->n_queries};
    int r = sample_open_pruned(c, condition, ret, err);
    if (!r) r = sample_context_append(c, *ret, true, err);
    for (uint32_t i = 0; i < c->n_chunks && !r; i++)
        r = kv_session_set_spans(*ret, c->at[i], q->spans[i], q->n_spans[i], err);
    if (!r) r = kv_session_append(*ret, &g, q->ids.ids, (uint32_t)q->ids.n, NULL, NULL, err);
    return r;
}

/* The context's rows as the condition leaves them: a session that ends behind the context. */
static int compress(const sample_context *x, const sample_question *q, const structure_condition *c,
    double cap, kv_session **ret, base_err *err)
{
    char words[SAMPLE_WORDS];
    const char *set[SAMPLE_SET + 1] = {"low=1", "hard=1"};
    const uint32_t hard = (uint32_t)(x->head.n + q->ids.n), kept = (uint32_t)lround(cap * x->n_tokens);
    if (c->prunes) return compute_pruned(x, q, c, ret, err);
    sample_split_set(c, words, set);
    int r = kv_session_fork(q->sessions[structure_is_local(c)], ret, NULL, err);
    if (!r)
        r = kv_session_set_policy(*ret,
            &(kv_options){.policy = c->policy,
                .set = set,
                .repair = c->repairs ? -1 : 0,
                .heads_file = x->b->heads,
                .budget = structure_is_full(c) ? 0 : hard + kept,
                .bare = true},
            err);
    if (!r) r = kv_session_evict(*ret, err);
    if (!r && c->repairs) {
        uint32_t n = 0;
        kv_session_ids(*ret, &n);
        r = kv_session_repair(*ret, &(kv_ask){(uint32_t)x->head.n + x->n_tokens, n}, NULL, err);
    }
    return r;
}

static int run_condition(const sample_context *x, const sample_question *q, const structure_condition *c,
    double cap, structure_result *o, base_err *err)
{
    const uint64_t start = base_clock_ns();
    kv_session *s = NULL;
    int r = compress(x, q, c, cap, &s, err);
    if (!r) {
        kv_stats stats;
        kv_session_set_automatic(s, false);
        r = kv_session_truncate(s, (uint32_t)x->head.n + x->n_tokens, err);
        kv_session_get_stats(s, &stats);
        o->active = stats.active;
        for (int core = 0; core < 2; core++) {
            kv_structure score;
            kv_session_structure(s, core, &score);
            o->share[core] = score.share;
            o->chance[core] = score.chance;
            o->ceiling[core] = score.ceiling;
            if (!core) memcpy(o->of, score.of, sizeof o->of);
        }
    }
    if (!r && q->n_want) r = answer(x->b, s, q, o, err);
    kv_session_free(s);
    o->condition_s = (double)(base_clock_ns() - start) / 1e9;
    return r;
}

/* --- a selection ---------------------------------------------------------------------------------------- */

/*
 * CodeComp's choice of chunks: the target's place when those come first that make the question most probable.
 */
static int rank_by_perplexity(
    sample_context *x, const sample_question *q, uint32_t target, structure_result *o, base_err *err)
{
    double surprise[BENCH_CHUNKS];
    int r = x->sessions[1] ? 0 : sample_context_compute(x, true, err);
    const uint64_t start = base_clock_ns();
    for (uint32_t i = 0; i < x->n_chunks && !r; i++)
        r = kv_session_probe(x->sessions[1], x->at[i], q->ids.ids, (uint32_t)q->ids.n, &surprise[i], err);
    o->rank = 1;
    for (uint32_t i = 0; i < x->n_chunks && !r; i++) o->rank += surprise[i] < surprise[target];
    o->condition_s = (double)(base_clock_ns() - start) / 1e9;
    return r;
}

/*
 * What retrieval does without a model: its index over the chunks, each a file. A chunk without a hit comes
 * last.
 */
static void rank_by_words(const sample_context *x, const char *words, uint32_t target, structure_result *o)
{
    const uint64_t start = base_clock_ns();
    code_index *index = code_index_new(x->b->grammars);
    char path[BENCH_CHUNKS][32];
    code_hits hits;
    for (uint32_t i = 0; i < x->n_chunks; i++) {
        const bench_function *f = x->chunks[i].f;
        const char *dot = strrchr(f->path, '.');
        snprintf(path[i], sizeof path[i], "chunk%u%.16s", i, dot ? dot : "");
        code_index_update(index, path[i], f->text, strlen(f->text));
    }
    code_index_search(index, words, 4 * BENCH_CHUNKS, &hits);
    bool seen[BENCH_CHUNKS] = {false};
    o->rank = 0;
    for (uint32_t h = 0, place = 0; h < hits.n && !o->rank; h++)
        for (uint32_t i = 0; i < x->n_chunks; i++) {
            if (strcmp(hits.hits[h].path, path[i]) || seen[i]) continue;
            seen[i] = true;
            place++;
            if (i == target) o->rank = place;
        }
    if (!o->rank) o->rank = x->n_chunks;
    code_hits_free(&hits);
    code_index_free(index);
    o->condition_s = (double)(base_clock_ns() - start) / 1e9;
}

/* --- a sample ------------------------------------------------------------------------------------------- */

/* The key of a line; false: it is done. */
static bool is_due(const structure_run *b, const bench_sample *s, uint32_t number, const char *condition,
    double cap, structure_result *ret)
{
    *ret = (structure_result){.cap = cap, .right = {-1, -1, -1}};
    for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) ret->of[k] = NAN;
    snprintf(ret->task, sizeof ret->task, "%s", structure_tasks[b->task]);
    snprintf(ret->model, sizeof ret->model, "%s", b->info->name ? b->info->name : "");
    snprintf(ret->id, sizeof ret->id, "%.59s/%u", s->id, number);
    snprintf(ret->condition, sizeof ret->condition, "%s", condition);
    return !structure_results_have(b->done, ret);
}

static void put_result(
    const sample_context *x, const bench_sample *s, const sample_question *q, structure_result *o)
{
    o->n_tokens = x->n_tokens;
    o->n_chunks = x->n_chunks;
    o->n_questions = s->n_questions;
    o->prefill_s = x->seconds / s->n_questions;
    o->question_s = q->seconds;
    o->spans_ms = q->spans_ms;
    structure_result_write(o, x->b->seed, x->b->out);
}

static int run_selection(
    sample_context *x, const bench_sample *s, uint32_t number, const sample_question *q, base_err *err)
{
    const bench_question *about = &s->questions[number];
    structure_result o;
    int r = 0;
    if (is_due(x->b, s, number, "perplexity", 1, &o)) {
        r = rank_by_perplexity(x, q, about->target, &o, err);
        if (!r) put_result(x, s, q, &o);
    }
    if (!r && is_due(x->b, s, number, "BM25", 1, &o)) {
        rank_by_words(x, about->before, about->target, &o);
        put_result(x, s, q, &o);
    }
    return r;
}

static int run_conditions(
    sample_context *x, const bench_sample *s, uint32_t number, sample_question *q, base_err *err)
{
    const structure_run *b = x->b;
    int r = 0;
    for (const structure_condition *c = structure_conditions; c->name && !r; c++)
        for (uint32_t k = 0; structure_is_wanted(b, c) && k < (structure_has_caps(c) ? b->n_caps : 1) && !r;
             k++) {
            structure_result o;
            if (!is_due(b, s, number, c->name, structure_has_caps(c) ? b->caps[k] : 1, &o)) continue;
            if (!c->prunes && !q->sessions[structure_is_local(c)])
                r = sample_question_compute(q, x, structure_is_local(c), err);
            if (!r) r = run_condition(x, q, c, b->caps[k], &o, err);
            if (!r) put_result(x, s, q, &o);
        }
    return r;
}

static int run_question(sample_context *x, const bench_sample *s, uint32_t number, base_err *err)
{
    sample_question q;
    sample_question_make(&q, x, s, &s->questions[number]);
    const int r = x->b->task == STRUCTURE_SELECT ? run_selection(x, s, number, &q, err)
                                                 : run_conditions(x, s, number, &q, err);
    sample_question_free(&q);
    return r;
}

int structure_run_sample(const structure_run *b, const bench_sample *s, base_err *err)
{
    sample_context x;
    sample_context_make(&x, b, s);
    int r = sample_context_share(&x, err);
    for (uint32_t i = 0; i < s->n_questions && !r; i++) r = run_question(&x, s, i, err);
    sample_context_free(&x);
    return r;
}
