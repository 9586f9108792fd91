/*
 * kvist-bench structkv: what a pruned prefill saves and what it loses. Each item is a document with facts in
 * it, a question, and a later question about other facts (bench/facts/ruler.h). What all conditions compute
 * alike, the document below their cuts, is computed once an item (bench/common/share.h); with --timed each
 * computes it anew, so that the time to the first token of the answer is measured beside that of the full
 * prefill. Before the later question a repair may bring back what was left below the cut.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "bench/common/write_answer.h"
#include "bench/common/document.h"
#include "bench/common/result_file.h"
#include "bench/facts/facts.h"
#include "bench/facts/ruler.h"
#include "bench/common/share.h"
#include "kv/repair/heads.h"
#include "kv/lab/lab.h"
#include "kv/prune/pivot.h"
#include "kv/session.h"

static const char usage[] =
    "usage: kvist-bench structkv --model M --corpus FOLDER [--tokens N] [--items N] [--tasks WORD,...]\n"
    "                            [--conditions \"WORD;...\"] [--turns 1|2] [--restore K] [--timed] "
    "[--ruler] [--documents FOLDER]\n"
    "                            [--out FILE [--resume]]\n"
    "       kvist-bench structkv --summary FILE [--against CONDITION]\n"
    "\n"
    "  --corpus FOLDER     code and prose that facts hide in\n"
    "  --tokens N          length of each document (2048)\n"
    "  --items N           how many of each task (5)\n"
    "  --first N           the first item's number (0)\n"
    "  --tasks W,...       mk2, mk3 (one key among many), vt (variables), mq (four keys in text) (all)\n"
    "  --conditions W;...  those whose name begins with a word of these, or, behind a \"=\", is it (all)\n"
    "  --turns N           2: a later question about other facts follows (1)\n"
    "  --restore K         rows per lane that a repair may bring back before it; 0: none (96)\n"
    "  --timed             each condition computes the document anew: the first turn's times are its own\n"
    "  --documents FOLDER  keeps full's documents there for "
    "kvist-bench decode (28 KB a token of the default model)\n"
    "  --out FILE          results as JSON lines; --resume: what is in it already is not run again\n"
    "  --summary FILE      no model: the tables of such a file\n"
    "  --against CONDITION pairs with this one too, beside full\n"
    "  --ruler             RULER's own prompts: the answer's "
    "first words, which repeat the key, ask too (tasks ...-r)\n"
    "  --pivot             find the model's pivot anew, and keep it for its sessions\n"
    "\n";

static const struct condition {
    const char *name, *policy;
    const char *set[6];
    /* cut where this item's attention says (full comes first), not where the model's file does */
    bool own_pivot;
} conditions[] = {
    {.name = "full", .policy = "full", .set = {"asked=8"}},
    {.name = "structkv", .policy = "structkv"},
    {.name = "structkv, its own pivot", .policy = "structkv", .own_pivot = true},
    {.name = "structkv, 60%", .policy = "structkv", .set = {"keep=.6"}},
    {.name = "structkv, all stored", .policy = "structkv", .set = {"stored=1"}},
    {.name = "structkv, replay", .policy = "structkv", .set = {"signal=replay"}}, /* as kvist asks again */
    {.name = "structkv, w = 32", .policy = "structkv", .set = {"asked=32"}},
    {.name = "structkv, w = 32, all stored", .policy = "structkv", .set = {"asked=32", "stored=1"}},
    {.name = "half depth", .policy = "structkv-half"},
    {.name = "fastkv", .policy = "fastkv"},
    {.name = "gemfilter-like", .policy = "gemfilter-like"},
    {.name = "snapkv", .policy = "structkv", .set = {"keep=1", "pivot=.5"}},
    {.name = "snapkv, w = 32", .policy = "structkv", .set = {"keep=1", "pivot=.5", "asked=32"}},
    {.name = "heads, .25, 5%", .policy = "kvist", .set = {"prune=heads", "pivot=.25", "keep=.05"}},
    {.name = "heads, .25, 10%", .policy = "kvist", .set = {"prune=heads", "pivot=.25", "keep=.1"}},
    {.name = "heads, .25, 20%", .policy = "kvist", .set = {"prune=heads", "pivot=.25", "keep=.2"}},
    {.name = "heads, .46, 20%", .policy = "kvist", .set = {"prune=heads", "pivot=.46", "keep=.2"}},
    {.name = "heads, .46, 30%", .policy = "kvist", .set = {"prune=heads", "pivot=.46", "keep=.3"}},
};
enum { N_CONDITIONS = sizeof conditions / sizeof *conditions };

/* What is measured beside the facts found. */
enum {
    CUT,
    ONLINE_CUT, /* of full: before which layer this very prompt's attention would cut */
    DEFERRED,
    REPAIRED,
    ASKED_UP,  /* share of the asked facts' rows that are active in the last layer */
    RECOVERED, /* share of the full session's attention above the cut that falls on active rows */
    WORK,      /* layers computed of all layers of the document's tokens */
    /* document, question and tail, to the first token's logits; in turn 2 question, repair, tail */
    PREFILL_S,
    CPU_S, /* the same wait in processor time of all threads: what a busy machine does not change */
    FULL_CPU,
    SCORE_MS,
    PLAN_MS,
    REPAIR_MS,
    ROW_MS,
    N_NUMBERS
};
static const bench_number numbers[N_NUMBERS] = {
    [CUT] = {"cut", "cut", 0},
    [ONLINE_CUT] = {"online_cut", "the prompt's own cut", 1},
    [DEFERRED] = {"deferred", NULL},
    [REPAIRED] = {"repaired", "repaired rows", 1},
    [ASKED_UP] = {"asked_up", "asked rows above", 2},
    [RECOVERED] = {"recovered", "attention recovered", 3},
    [WORK] = {"work", "work", 2},
    [PREFILL_S] = {"prefill_s", "prefill, s", 2},
    [CPU_S] = {"cpu_s", "processor s", 2},
    [FULL_CPU] = {"", "full / it", 2, .of_full = "cpu_s"},
    [SCORE_MS] = {"score_ms", "scores, ms", 1},
    [PLAN_MS] = {"plan_ms", "plan, ms", 1},
    [REPAIR_MS] = {"repair_ms", NULL},
    [ROW_MS] = {"row_ms", "ms a repaired row", 2},
};

typedef struct bench {
    facts f;
    int64_t turns, restore;
    bool pivot, as_ruler;
    bench_share *share; /* NULL: timed */
    kv_compute compute;
    kv_session *full; /* the item at hand under `full`, before its first answer */
    char *heads, *pivot_file;
    float *logits; /* [n_vocab] */
} bench;

/* --- one item under one condition ----------------------------------------------------------------------- */

static int append(kv_session *s, kv_origin origin, uint32_t turn, const model_ids *ids,
    const ruler_question *q, const ruler_item *item, float *logits, base_err *err)
{
    const kv_segment g = {
        .origin = origin,
        .turn = turn,
        .queries = q ? q->queries : NULL,
        .n_queries = q ? q->n_queries : 0,
        .lines = item ? item->lines : NULL,
        .n_lines = item ? item->n_lines : 0,
    };
    return kv_session_append(s, &g, ids->ids, (uint32_t)ids->n, logits, NULL, err);
}

/*
 * Greedy, on a copy: the sequence goes on with the full session's answer (append_first_answer), which is what
 * most would say.
 */
static int answer(const bench *b, const kv_session *s, const ruler_question *q, float *logits,
    bench_score *one, base_err *err)
{
    const bench_score *full = bench_scores_find(&b->f.results, one, "full");
    kv_session *copy = NULL;
    model_ids ids = {0}, guess = {0};
    base_buf text = {0};
    if (full)
        model_tokenizer_encode(
            model_get_tokenizer(b->f.model), full->answer, strlen(full->answer), false, &guess);
    const bench_asking a = {.model = b->f.model, .turn = one->turn, .n_new = q->n_new, .guess = &guess};
    int r = kv_session_fork(s, &copy, NULL, err);
    if (!r) r = bench_answer(copy, &a, logits, &ids, err);
    bench_answer_text(b->f.model, &ids, &text);
    snprintf(one->answer, sizeof one->answer, "%s", text.data ? text.data : "");
    one->n_targets = q->n_wanted;
    ruler_found(q, text.data ? text.data : "", one->found);
    kv_session_free(copy);
    model_ids_free(&ids);
    model_ids_free(&guess);
    base_buf_free(&text);
    return r;
}

/* Share of the asked facts' rows that are active in the last layer, mean over its lanes. */
static double asked_up(const bench *b, const kv_session *s, const ruler_question *q, uint32_t doc)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    uint64_t *bits = base_xcalloc(stats.n_tokens / 64 + 1, sizeof *bits);
    double up = 0;
    uint32_t n = 0;
    for (uint32_t lane = stats.n_lanes - b->f.info->n_head_kv; lane < stats.n_lanes; lane++) {
        kv_session_lane_bits(s, lane, bits);
        for (uint32_t k = 0; k < q->n_wanted; k++)
            for (uint32_t t = doc + q->line[k].from; t < doc + q->line[k].to; t++, n++)
                up += bits[t / 64] >> (t & 63) & 1;
    }
    free(bits);
    return n ? up / n : NAN;
}

static double cpu_seconds(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Where the prefill was cut and what that left, of the document's tokens. */
static void look(const bench *b, const kv_session *s, const ruler_question *q, uint32_t doc, uint32_t n_doc,
    bench_score *one)
{
    uint64_t layers = 0;
    one->numbers[CUT] = 0;
    for (uint32_t t = doc; t < doc + n_doc; t++) {
        const uint32_t cut = kv_session_cut(s, t);
        layers += cut ? cut : b->f.info->n_layer;
        if (cut) one->numbers[CUT] = cut;
    }
    one->numbers[WORK] = (double)layers / ((double)n_doc * b->f.info->n_layer);
    one->numbers[ASKED_UP] = asked_up(b, s, q, doc);
}

/* Question, repair (turn 2), tail, answer; `start` and `cpu` are when the wait for this answer began. */
static int ask(bench *b, kv_session *s, const ruler_question *q, const ruler_item *item, uint32_t doc,
    uint64_t start, double cpu, bench_score *one, float *logits, base_err *err)
{
    kv_stats before, stats;
    uint32_t queries[RULER_QUERIES];
    double *x = one->numbers;
    kv_session_get_stats(s, &before);
    bench_score_clear(&b->f.results, one);
    const uint32_t from = before.n_tokens;
    for (uint32_t i = 0; i < q->n_queries; i++) queries[i] = from + q->queries[i];
    int r = append(s, KV_ORIGIN_USER, one->turn, &q->ids, q, NULL, NULL, err);
    const uint64_t repair_start = base_clock_ns();
    if (!r && one->turn == 2 && b->restore) {
        const kv_ask asks = {from, from + (uint32_t)q->ids.n, queries, q->n_queries};
        r = kv_session_repair(s, &asks, NULL, err);
        x[REPAIR_MS] = (double)(base_clock_ns() - repair_start) / 1e6;
    }
    if (!r) r = append(s, KV_ORIGIN_SCAFFOLD, one->turn, &q->tail, NULL, NULL, logits, err);
    if (one->turn == 2 || b->f.timed) {
        x[PREFILL_S] = (double)(base_clock_ns() - start) / 1e9;
        x[CPU_S] = cpu_seconds() - cpu;
    }
    if (r) return r;
    look(b, s, q, doc, (uint32_t)item->ids.n, one);
    kv_session_get_stats(s, &stats);
    x[DEFERRED] = stats.deferred_tokens;
    x[REPAIRED] = stats.computed_above - before.computed_above;
    if (x[REPAIRED] > 0) x[ROW_MS] = x[REPAIR_MS] / x[REPAIRED];
    x[SCORE_MS] = stats.score_ms - before.score_ms;
    x[PLAN_MS] = stats.plan_ms - before.plan_ms;
    if (one->turn == 1 && b->full && x[CUT] > 0)
        r = kv_session_attention_kept(b->full, s, (uint32_t)x[CUT], &x[RECOVERED], NULL, err);
    if (!r && one->turn == 1 && !b->full && !strcmp(one->condition, "full")) {
        r = kv_session_fork(s, &b->full, NULL, err);
        if (!r) r = kv_session_detect_pivot(s, NULL, err);
        if (!r) x[ONLINE_CUT] = kv_pivot_cut(kv_session_pivot(s), KV_PIVOT_FLOOR, NULL);
    }
    if (!r) r = answer(b, s, q, logits, one, err);
    if (!r) bench_scores_add(&b->f.results, one);
    return r;
}

/*
 * What the full session answered stands in every condition's sequence, so that the later question differs in
 * the cache alone.
 */
static int append_first_answer(bench *b, kv_session *s, const bench_score *one, base_err *err)
{
    const bench_score *full = bench_scores_find(&b->f.results, one, "full");
    const char *text = full ? full->answer : one->answer;
    model_ids ids = {0};
    model_tokenizer_encode(model_get_tokenizer(b->f.model), text, strlen(text), false, &ids);
    int r = append(s, KV_ORIGIN_ANSWER, 1, &ids, NULL, NULL, NULL, err);
    model_ids_free(&ids);
    return r;
}

static bool is_full(const struct condition *c)
{
    return !strcmp(c->policy, "full");
}

/* own_cut: where a condition with a pivot of its own cuts; 0: where the model's file says. */
static int open_session(bench *b, const struct condition *c, uint32_t own_cut, const char *row_file,
    kv_session **ret, base_err *err)
{
    const char *set[9] = {NULL};
    char computed[32], pivot[32];
    size_t n = 0;
    while (c->set[n]) {
        set[n] = c->set[n];
        n++;
    }
    snprintf(computed, sizeof computed, "computed=%lld", (long long)b->restore);
    set[n++] = computed;
    snprintf(pivot, sizeof pivot, "pivot=%u", own_cut);
    if (own_cut) set[n] = pivot;
    const kv_options o = {.policy = c->policy,
        .set = set,
        .repair = (int)b->restore,
        .heads_file = b->heads,
        .pivot_file = is_full(c) ? NULL : b->pivot_file, /* what it finds is of one prompt */
        .row_file = row_file};
    return kv_session_new_over(ret, &b->compute, &o, NULL, err);
}

/* Where the document of full is to be kept; NULL: nowhere, or it is there. */
static char *name_document(const bench *b, const ruler_item *item, const model_ids *scaffold)
{
    const bench_piece pieces[] = {{{.origin = KV_ORIGIN_SCAFFOLD, .turn = 1}, scaffold},
        {{.origin = KV_ORIGIN_CONTEXT, .turn = 1, .lines = item->lines, .n_lines = item->n_lines},
            &item->ids}};
    char *path = b->f.documents ? bench_document_path(b->f.documents, b->f.model, pieces, 2) : NULL;
    if (path && base_fs_exists(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

/* 0: the condition does not ask for one. */
static int find_own_cut(
    const bench *b, const struct condition *c, const bench_score *key, uint32_t *ret, base_err *err)
{
    *ret = 0;
    if (!c->own_pivot) return 0;
    bench_score first = *key;
    first.turn = 1;
    const bench_score *full = bench_scores_find(&b->f.results, &first, "full");
    if (!full || !(full->numbers[ONLINE_CUT] >= 1))
        return base_fail(
            err, BASE_E_USAGE, "\"%s\" cuts where full's attention says: name full too", c->name);
    *ret = (uint32_t)full->numbers[ONLINE_CUT];
    return 0;
}

static int run_condition(bench *b, const struct condition *c, const ruler_item *item, bench_score *key,
    float *logits, base_err *err)
{
    const model_template *template = model_get_template(b->f.model);
    kv_session *s = NULL;
    model_ids scaffold = {0};
    model_template_start(template, &scaffold);
    model_template_begin(template, MODEL_ROLE_USER, &scaffold);
    char *file = !is_full(c) ? NULL : name_document(b, item, &scaffold);
    uint32_t own_cut;
    int r = find_own_cut(b, c, key, &own_cut, err);
    if (!r) r = open_session(b, c, own_cut, file, &s, err);
    if (!r) r = append(s, KV_ORIGIN_SCAFFOLD, 1, &scaffold, NULL, NULL, NULL, err);
    const uint32_t doc = (uint32_t)scaffold.n;
    const uint64_t start = base_clock_ns();
    const double cpu = cpu_seconds();
    if (b->share) bench_share_keep(b->share, true);
    if (!r) r = append(s, KV_ORIGIN_CONTEXT, 1, &item->ids, NULL, item, NULL, err);
    if (b->share) bench_share_keep(b->share, false);
    if (!r && file) r = kv_session_save(s, err);
    free(file);
    key->turn = 1;
    if (!r) r = ask(b, s, &item->first, item, doc, start, cpu, key, logits, err);
    if (!r && b->turns > 1) r = append_first_answer(b, s, key, err);
    if (!r && b->turns > 1) {
        key->turn = 2;
        kv_session_set_turn(s, 2);
        r = ask(b, s, &item->later, item, doc, base_clock_ns(), cpu_seconds(), key, logits, err);
    }
    kv_session_free(s);
    model_ids_free(&scaffold);
    return r;
}

static bool is_left(const bench *b, const bench_score *key, const char *condition)
{
    bench_score last = *key;
    last.turn = (uint32_t)b->turns;
    return bench_is_wanted(b->f.words, ';', condition) && !bench_scores_find(&b->f.results, &last, condition);
}

static void make_item(const bench *b, const char *task, uint64_t seed, ruler_item *ret)
{
    ruler_item_make(ret, model_get_tokenizer(b->f.model), model_get_template(b->f.model), &b->f.corpus, task,
        b->as_ruler ? RULER_PROMPT_RULER : RULER_PROMPT_OURS, seed, (uint32_t)b->f.tokens);
}

/* All conditions of one item. */
static int run_item(void *user, const char *task, uint32_t number, base_err *err)
{
    bench *b = user;
    ruler_item item;
    bench_score key = {.tokens = (uint32_t)b->f.tokens, .item = number};
    bool any = false;
    int r = 0;
    snprintf(key.model, sizeof key.model, "%.12s", b->f.info->hash);
    snprintf(key.task, sizeof key.task, "%s%s", task, b->as_ruler ? "-r" : "");
    for (size_t i = 0; i < N_CONDITIONS; i++) any = any || is_left(b, &key, conditions[i].name);
    if (!any) return 0;
    make_item(b, task, number + 1, &item);
    for (size_t i = 0; i < N_CONDITIONS && !r; i++) {
        if (!is_left(b, &key, conditions[i].name)) continue;
        const uint64_t start = base_clock_ns();
        snprintf(key.condition, sizeof key.condition, "%s", conditions[i].name);
        r = run_condition(b, &conditions[i], &item, &key, b->logits, err);
        fprintf(stderr, "%s %u, %s: %.1f s\n", task, number, conditions[i].name,
            (double)(base_clock_ns() - start) / 1e9);
    }
    kv_session_free(b->full);
    b->full = NULL;
    if (b->share) bench_share_forget(b->share);
    ruler_item_free(&item);
    return r;
}

/* The pivot from a full prefill of one item, before anything is compared. */
static int find_pivot(bench *b, base_err *err)
{
    kv_session *s = NULL;
    ruler_item item;
    make_item(b, "mq", 100, &item);
    const char *const set[] = {"asked=8", NULL};
    const kv_options o = {.policy = "full", .set = set, .pivot_file = b->pivot_file};
    int r = kv_session_new(&s, b->f.model, &o, NULL, err);
    if (!r) r = append(s, KV_ORIGIN_CONTEXT, 1, &item.ids, NULL, &item, NULL, err);
    if (!r) r = append(s, KV_ORIGIN_USER, 1, &item.first.ids, &item.first, NULL, NULL, err);
    const uint64_t start = base_clock_ns();
    if (!r) r = kv_session_detect_pivot(s, NULL, err);
    if (!r) {
        uint32_t free_cut;
        const uint32_t cut = kv_pivot_cut(kv_session_pivot(s), .25, &free_cut);
        fprintf(stderr, "pivot: cut before layer %u of %u (T alone: %u), %.0f ms over %u rows\n", cut,
            b->f.info->n_layer, free_cut, (double)(base_clock_ns() - start) / 1e6,
            kv_session_pivot(s)->n_rows);
    }
    kv_session_free(s);
    ruler_item_free(&item);
    return r;
}

/* Sessions share what lies below the layers before which the wanted conditions cut. */
static int open_compute(bench *b, base_err *err)
{
    uint32_t cuts[N_CONDITIONS + BENCH_SHARE_CUTS] = {0}, n = 0;
    const double n_layer = b->f.info->n_layer;
    int r = 0;
    b->compute = kv_compute_model(b->f.model);
    for (size_t i = 0; i < N_CONDITIONS && !b->f.timed && !r; i++) {
        kv_session *s = NULL;
        if (!bench_is_wanted(b->f.words, ';', conditions[i].name)) continue;
        for (double cut = ceil(KV_PIVOT_FLOOR * n_layer);
             conditions[i].own_pivot && cut <= KV_PIVOT_CEILING * n_layer && n < BENCH_SHARE_CUTS; cut++)
            cuts[n++] = (uint32_t)cut;
        if (conditions[i].own_pivot) continue;
        r = open_session(b, &conditions[i], 0, NULL, &s, err);
        if (!r) cuts[n++] = kv_session_next_cut(s);
        kv_session_free(s);
    }
    if (r || b->f.timed) return r;
    b->share = bench_share_new(b->f.model, cuts, n);
    b->compute = bench_share_compute(b->share);
    return 0;
}

static int check(const void *user, base_err *err)
{
    const bench *b = user;
    if (b->f.timed && b->f.documents)
        return base_fail(err, BASE_E_USAGE, "--documents: writing them would be measured by --timed");
    return 0;
}

static int begin(void *user, base_err *err)
{
    bench *b = user;
    int r = b->f.documents ? base_fs_mkdirs(b->f.documents, err) : 0;
    b->heads = kv_heads_path(b->f.info->hash);
    b->pivot_file = kv_pivot_path(b->f.info->hash);
    if (!base_fs_exists(b->heads))
        fputs(
            "kvist: this model's retrieval heads are not calibrated (kvist kv calibrate); all heads count\n",
            stderr);
    if (!r && (b->pivot || !base_fs_exists(b->pivot_file))) r = find_pivot(b, err);
    if (!r) r = open_compute(b, err);
    b->logits = base_xmalloc(b->f.info->n_vocab * sizeof *b->logits);
    return r;
}

int bench_structkv(int argc, char **argv)
{
    static const facts_bench structkv = {check, begin, run_item};
    bench b = {.f = {.common = COMMON_OPTIONS_DEFAULTS,
                   .tokens = 2048,
                   .items = 5,
                   .results = {.name = "structkv", .numbers = numbers, .n_numbers = N_NUMBERS}},
        .turns = 1,
        .restore = 96};
    const option_row own[] = {{"--turns", OPTION_INTEGER, &b.turns, .bounds = {1, 2}},
        {"--restore", OPTION_INTEGER, &b.restore, .bounds = {0, 100000}}, {"--pivot", OPTION_FLAG, &b.pivot},
        {"--ruler", OPTION_FLAG, &b.as_ruler}, FACTS_OPTIONS(b.f)};
    const int status = facts_run(&b.f, argc, argv, own, usage, &structkv, &b);
    bench_share_free(b.share);
    facts_close(&b.f);
    free(b.heads);
    free(b.pivot_file);
    free(b.logits);
    return status;
}
