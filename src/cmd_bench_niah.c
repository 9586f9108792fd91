/*
 * kvist bench niah: does a repair bring back what the next question asks for? The two-turn protocol of RepairKV (seed 002,
 * section 3.2): needles in a long document, turn 1 asks for some and is answered from the full cache, then document rows are
 * evicted, turn 2 asks for others. A document is computed once; each split forks it, each store (an eviction rule and its
 * budget) forks the split, each condition forks the store with its question: all share every row.
 *
 * Document rows only are evicted; what every condition holds in the end is B + K document rows a lane, forced ones included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "bench_haystack.h"
#include "bench_result.h"
#include "cmd.h"
#include "kv/heads.h"
#include "kv/session.h"
#include "options.h"

static const char usage[] =
    "usage: kvist bench niah --model M --corpus FOLDER [--tokens N] [--texts N] [--needles 2|4|6|8] "
    "[--restore K,...]\n"
    "                        [--conditions \"WORD;...\"] [--out FILE] [--calibrate]\n"
    "       kvist bench niah --summary FILE\n"
    "\n"
    "  --corpus FOLDER     code and prose that the needles hide in\n"
    "  --tokens N          length of each document (4096)\n"
    "  --texts N           how many documents (3); each has three to five splits\n"
    "  --first N           the first document's number (0)\n"
    "  --needles N         2, 4, 6 or 8 (4)\n"
    "  --base PERCENT      of the document's rows that stay after turn 1 (the paper's: 25, 50, 56, 56)\n"
    "  --restore K,...     rows per lane that a repair may bring back (48,96); \"need\": 1.05 times the rows "
    "asked for\n"
    "  --conditions W;...  those whose name begins with a word of these, or, behind a \"=\", is it (all)\n"
    "  --out FILE          results as JSON lines; what is in it already is not run again\n"
    "  --summary FILE      no model: the table of such a file\n"
    "  --calibrate         find the model's retrieval heads first, and keep them for its sessions\n"
    "\n";

typedef enum asker { ASKS_ITSELF, ASKS_STALE, ASKS_WRONG } asker;

/* What lies below a condition: who evicted, and down to how many document rows. */
typedef enum store { STORE_FULL, STORE_B, STORE_BK } store;

/* One row a condition. K rows come back where `repair`; a swap does so within the budget it finds. */
static const struct condition {
    const char *name, *policy;
    store store;
    bool repair, swap;
    asker asker;
    const char *set[6];
} conditions[] = {
#define PAPER "heads=all", "queries=64", "grow=burst"
#define OURS  "heads=calibrated", "queries=8", "grow=line"
    {.name = "full", .policy = "full"},
    {.name = "base", .policy = "snapkv-seed", .store = STORE_B},
    {.name = "matched", .policy = "snapkv-seed", .store = STORE_BK},
    {.name = "random-K",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {"order=random", "grow=none"}},
    {.name = "random-K bursts",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {"order=random", "grow=burst"}},
    {.name = "oldest-K",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {"order=oldest", "grow=none"}},
    {.name = "stale-query",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .asker = ASKS_STALE,
        .set = {PAPER}},
    {.name = "wrong-query",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .asker = ASKS_WRONG,
        .set = {PAPER}},
    {.name = "refresh",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {PAPER, "pick=refresh"}},
    {.name = "anchors only",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {"heads=all", "queries=64", "grow=none"}},
    {.name = "paper", .policy = "snapkv-seed", .store = STORE_B, .repair = true, .set = {PAPER}},
    {.name = "paper, replay",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {PAPER, "signal=replay"}},
    {.name = "paper, each lane",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {PAPER, "lanes=each"}},
    {.name = "paper, K.K",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {PAPER, "order=keys"}},
    {.name = "paper, fused",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {PAPER, "order=fused"}},
    {.name = "paper, coverage",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {PAPER, "pick=coverage"}},
    {.name = "heads, bursts",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {"heads=calibrated", "queries=8", "grow=burst"}},
    {.name = "all heads, lines",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {"heads=all", "queries=8", "grow=line"}},
    {.name = "ours", .policy = "snapkv-seed", .store = STORE_B, .repair = true, .set = {OURS}},
    {.name = "ours, swap",
        .policy = "snapkv-seed",
        .store = STORE_BK,
        .repair = true,
        .swap = true,
        .set = {OURS}},
    {.name = "ours, coverage",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {OURS, "pick=coverage"}},
    {.name = "ours, fused",
        .policy = "snapkv-seed",
        .store = STORE_B,
        .repair = true,
        .set = {OURS, "order=fused"}},
    {.name = "snapkv matched", .policy = "snapkv", .store = STORE_BK},
    {.name = "snapkv, paper", .policy = "snapkv", .store = STORE_B, .repair = true, .set = {PAPER}},
    {.name = "snapkv, ours", .policy = "snapkv", .store = STORE_B, .repair = true, .set = {OURS}},
    {.name = "snapkv, ours, swap",
        .policy = "snapkv",
        .store = STORE_BK,
        .repair = true,
        .swap = true,
        .set = {OURS}},
    {.name = "streaming-llm", .policy = "streaming-llm", .store = STORE_BK},
};
enum { N_CONDITIONS = sizeof conditions / sizeof *conditions, MOST_K = 8, NEED = -1 };

/* The balanced partitions of seed 002, appendix B, first turn - second turn; B in percent of the document. */
static const struct task {
    uint32_t needles, percent, n_new;
    const char *splits[6];
} tasks[] = {
    {2, 25, 16, {"2-1"}},
    {4, 50, 24, {"14-23", "24-13", "34-12"}},
    {6, 56, 48, {"156-234", "256-134", "356-124", "456-123"}},
    {8, 56, 64, {"5678-1234", "1678-2345", "2678-1345", "3678-1245", "4678-1235"}},
};

typedef struct bench {
    common_options common;
    int64_t tokens, texts, first, needles, base;
    const char *corpus_folder, *restore, *words, *out, *summary;
    bool calibrate, help;
    model *model;
    const model_info *info;
    char *heads;
    base_buf corpus;
    const struct task *task;
    int32_t k[MOST_K];
    uint32_t n_k;
    bench_results results;
    /* Of the split at hand. */
    bench_haystack text;
    bench_question question;
    uint32_t doc_end, rest; /* rest: tokens behind the document before the second question */
    kv_signal stale, wrong;
    bench_result key;
} bench;

static int append(kv_session *s, kv_origin origin, uint32_t turn, const model_ids *ids,
    const bench_question *q, const bench_haystack *text, float *logits, base_err *err)
{
    const kv_segment g = {
        .origin = origin,
        .turn = turn,
        .queries = q ? q->queries : NULL,
        .n_queries = q ? q->n_queries : 0,
        .lines = text ? text->lines : NULL,
        .n_lines = text ? text->n_lines : 0,
    };
    return kv_session_append(s, &g, ids->ids, (uint32_t)ids->n, logits, NULL, NULL, err);
}

/* Greedy, until the answer ends or n_new tokens are there; its text goes to `answer` (may be NULL). */
static int generate(
    const bench *b, kv_session *s, uint32_t turn, float *logits, base_buf *answer, base_err *err)
{
    const model_tokenizer *t = model_get_tokenizer(b->model);
    for (uint32_t i = 0; i < b->task->n_new; i++) {
        int32_t id = 0;
        for (uint32_t v = 1; v < b->info->n_vocab; v++)
            if (logits[v] > logits[id]) id = (int32_t)v;
        if (model_tokenizer_is_end(t, id)) break;
        size_t n = 0;
        const char *piece = model_tokenizer_piece(t, id, &n);
        if (answer && piece) base_buf_add(answer, piece, n);
        const model_ids one = {.ids = &id, .n = 1};
        int r = append(s, KV_ORIGIN_ANSWER, turn, &one, NULL, NULL, logits, err);
        if (r) return r;
    }
    return 0;
}

/* Share of the asked facts' rows that are active, mean over lanes; how many tokens they are. */
static double asked_active(const bench *b, const kv_session *s, uint32_t *ret_n)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    uint32_t *lanes = calloc(stats.n_tokens + 1, sizeof *lanes), n = 0;
    double active = 0;
    if (!lanes) return 0;
    kv_session_active_lanes(s, lanes);
    for (uint32_t k = 0; k < b->question.n_asked; k++) {
        const bench_needle *needle = &b->text.needles[b->question.asked[k]];
        for (uint32_t t = needle->from; t < needle->to; t++, n++) active += (double)lanes[t] / stats.n_lanes;
    }
    free(lanes);
    if (ret_n) *ret_n = n;
    return n ? active / n : 0;
}

static uint32_t rows_of(const bench *b, const struct condition *c, uint32_t k)
{
    const uint32_t base = b->doc_end * b->key.base / 100;
    return c->store == STORE_FULL ? 0 : base + (c->store == STORE_BK ? k : 0);
}

/* The split's session under the condition's eviction, with the second question behind it. */
static int open_store(const bench *b, const kv_session *split, const struct condition *c, uint32_t rows,
    kv_session **ret, base_err *err)
{
    static const char *const set[] = {"low=1", "soft=0", "hard=0", NULL};
    kv_session *s = NULL;
    int r = kv_session_fork(split, &s, NULL, err);
    if (r) return r;
    const kv_options o = {.budget = rows ? rows + b->rest : 0, .policy = c->policy, .set = set};
    r = kv_session_set_policy(s, &o, err);
    kv_session_set_automatic(s, false);
    if (!r) r = kv_session_evict(s, NULL, err);
    kv_session_set_turn(s, 2);
    if (!r) r = append(s, KV_ORIGIN_USER, 2, &b->question.ids, &b->question, NULL, NULL, err);
    if (r)
        kv_session_free(s);
    else
        *ret = s;
    return r;
}

static int repair(const bench *b, kv_session *s, const struct condition *c, uint32_t k, base_err *err)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    const char *set[10] = {"low=1", "hard=0", "soft=0"};
    for (size_t i = 0; i < sizeof c->set / sizeof *c->set && c->set[i]; i++) set[3 + i] = c->set[i];
    const kv_options o = {.budget = c->swap ? stats.active_max : 0,
        .policy = c->policy,
        .repair = (int)k,
        .set = set,
        .heads_file = b->heads};
    int r = kv_session_set_policy(s, &o, err);
    const uint32_t to = stats.n_tokens, from = to - (uint32_t)b->question.ids.n;
    uint32_t queries[BENCH_QUERIES];
    for (uint32_t i = 0; i < b->question.n_queries; i++) queries[i] = from + b->question.queries[i];
    if (r) return r;
    if (c->asker == ASKS_ITSELF)
        return kv_session_repair(s, from, to, queries, b->question.n_queries, NULL, err);
    return kv_session_repair_by(s, from, to, c->asker == ASKS_STALE ? &b->stale : &b->wrong, NULL, err);
}

static int run_condition(bench *b, const kv_session *with_question, const struct condition *c, uint32_t k,
    float *logits, base_err *err)
{
    kv_session *s = NULL;
    base_buf answer = {0};
    bench_result one = b->key;
    kv_stats before, stats = {0};
    int r = kv_session_fork(with_question, &s, NULL, err);
    if (r) return r;
    one.before = asked_active(b, s, NULL);
    kv_session_get_stats(s, &before);
    if (c->repair) r = repair(b, s, c, k, err);
    if (!r) {
        one.after = asked_active(b, s, NULL);
        kv_session_get_stats(s, &stats);
        one.active = stats.active;
        one.host = stats.host;
        one.score_ms = stats.score_ms - before.score_ms;
        one.plan_ms = stats.plan_ms - before.plan_ms;
        r = append(s, KV_ORIGIN_SCAFFOLD, 2, &b->question.tail, NULL, NULL, logits, err);
    }
    if (!r) r = generate(b, s, 2, logits, &answer, err);
    if (!r) {
        one.n_targets = b->question.n_asked;
        bench_question_found(&b->question, &b->text, answer.data ? answer.data : "", one.found);
        bench_results_add(&b->results, &one, answer.data);
    }
    base_buf_free(&answer);
    kv_session_free(s);
    return r;
}

static bool is_wanted(const bench *b, const char *name)
{
    if (!b->words) return true;
    for (const char *word = b->words; *word;) {
        const size_t n = strcspn(word, ";");
        if (n && *word == '=' && !strncmp(word + 1, name, n - 1) && !name[n - 1]) return true;
        if (n && *word != '=' && !strncmp(word, name, n)) return true;
        word += n + (word[n] == ';');
    }
    return false;
}

/* Does this condition of the split at hand still have to be run? Sets the key. */
static bool is_left(bench *b, const struct condition *c, uint32_t k)
{
    snprintf(b->key.condition, sizeof b->key.condition, "%s", c->name);
    b->key.k = k;
    return is_wanted(b, c->name) && !bench_results_have(&b->results, &b->key);
}

/* All conditions of one K; those over one store run together, so its eviction and its question are computed once. */
static int run_k(bench *b, const kv_session *split, uint32_t k, float *logits, base_err *err)
{
    bool done[N_CONDITIONS] = {false};
    int r = 0;
    for (size_t i = 0; i < N_CONDITIONS && !r; i++) {
        if (done[i]) continue;
        kv_session *s = NULL;
        const uint32_t rows = rows_of(b, &conditions[i], k);
        for (size_t j = i; j < N_CONDITIONS && !r; j++) {
            const struct condition *c = &conditions[j];
            if (done[j] || strcmp(c->policy, conditions[i].policy) || rows_of(b, c, k) != rows) continue;
            done[j] = true;
            if (!is_left(b, c, k)) continue;
            if (!s) r = open_store(b, split, c, rows, &s, err);
            if (!r) r = run_condition(b, s, c, k, logits, err);
        }
        kv_session_free(s);
    }
    return r;
}

/* The queries of a question put to this session, at most 64; the session is as it was. */
static int ask(const kv_session *s, const bench_question *q, uint32_t turn, kv_signal *ret, base_err *err)
{
    kv_session *f = NULL;
    int r = kv_session_fork(s, &f, NULL, err);
    if (r) return r;
    uint32_t from = 0;
    kv_session_ids(f, &from);
    r = append(f, KV_ORIGIN_USER, turn, &q->ids, q, NULL, NULL, err);
    if (!r) r = kv_session_signal(f, from, from + (uint32_t)q->ids.n, NULL, 0, 64, ret, err);
    kv_session_free(f);
    return r;
}

static bool anything_left(bench *b)
{
    for (uint32_t i = 0; i < b->n_k; i++)
        for (size_t c = 0; c < N_CONDITIONS; c++)
            if (b->k[i] == NEED || is_left(b, &conditions[c], (uint32_t)b->k[i])) return true;
    return false;
}

/* Turn 1 from the full cache, then every K. */
static int run_split(
    bench *b, const kv_session *document, uint64_t seed, const char *split, float *logits, base_err *err)
{
    const model_tokenizer *t = model_get_tokenizer(b->model);
    const model_template *template = model_get_template(b->model);
    char asked[16] = "";
    bench_haystack other;
    bench_question first, foreign;
    const char *dash = strchr(split, '-');
    snprintf(b->key.split, sizeof b->key.split, "%s", split);
    if (!anything_left(b)) return 0;
    snprintf(asked, sizeof asked, "%.*s", (int)(dash - split), split);
    bench_question_make(&first, t, template, &b->text, asked, false);
    bench_question_make(&b->question, t, template, &b->text, dash + 1, true);
    /* Another example's question: the keys of the next document. */
    bench_haystack_make(&other, t, template, &b->corpus, seed + 1000, 64, b->task->needles);
    bench_question_make(&foreign, t, template, &other, dash + 1, true);
    kv_session *s = NULL;
    uint32_t n = 0;
    int r = kv_session_fork(document, &s, NULL, err);
    if (!r) r = ask(s, &first, 1, &b->stale, err);
    if (!r) r = append(s, KV_ORIGIN_USER, 1, &first.ids, &first, NULL, NULL, err);
    if (!r) r = append(s, KV_ORIGIN_SCAFFOLD, 1, &first.tail, NULL, NULL, logits, err);
    if (!r) r = generate(b, s, 1, logits, NULL, err);
    if (!r) r = ask(s, &foreign, 2, &b->wrong, err);
    if (!r) {
        kv_session_ids(s, &n);
        b->rest = n - b->doc_end;
        r = kv_session_manual(s, KV_MANUAL_PIN, b->doc_end, n, err);
    }
    if (!r) r = kv_session_manual(s, KV_MANUAL_PIN, 0, 4, err);
    if (!r) r = kv_session_manual(s, KV_MANUAL_PIN, b->doc_end - 128, b->doc_end, err);
    for (uint32_t i = 0; i < b->n_k && !r; i++) {
        uint32_t rows = 0;
        asked_active(b, s, &rows);
        r = run_k(b, s, b->k[i] == NEED ? (rows * 105 + 99) / 100 : (uint32_t)b->k[i], logits, err);
    }
    kv_session_free(s);
    kv_signal_fini(&b->stale);
    kv_signal_fini(&b->wrong);
    bench_question_free(&first);
    bench_question_free(&b->question);
    bench_question_free(&foreign);
    bench_haystack_free(&other);
    return r;
}

static int run_text(bench *b, int64_t text, base_err *err)
{
    const uint64_t seed = (uint64_t)text + 1, start = base_clock_ns();
    float *logits = malloc(b->info->n_vocab * sizeof *logits);
    kv_session *s = NULL;
    b->key.text = (uint32_t)text;
    bool left = false;
    for (size_t i = 0; i < 6 && b->task->splits[i]; i++) {
        snprintf(b->key.split, sizeof b->key.split, "%s", b->task->splits[i]);
        left = left || anything_left(b);
    }
    if (!left) {
        free(logits);
        return 0;
    }
    bench_haystack_make(&b->text, model_get_tokenizer(b->model), model_get_template(b->model), &b->corpus,
        seed, (uint32_t)b->tokens, b->task->needles);
    b->doc_end = (uint32_t)b->text.ids.n;
    int r = logits ? kv_session_new(&s, b->model, &(kv_options){.policy = "full"}, NULL, err)
                   : base_fail(err, BASE_E_NOMEM, "no memory for logits");
    if (!r) r = append(s, KV_ORIGIN_CONTEXT, 1, &b->text.ids, NULL, &b->text, NULL, err);
    fprintf(stderr, "document %lld: %u tokens computed in %.1f s\n", (long long)text, b->doc_end,
        (double)(base_clock_ns() - start) / 1e9);
    for (size_t i = 0; i < 6 && b->task->splits[i] && !r; i++)
        r = run_split(b, s, seed, b->task->splits[i], logits, err);
    kv_session_free(s);
    free(logits);
    bench_haystack_free(&b->text);
    return r;
}

static int parse_restore(bench *b, base_err *err)
{
    for (const char *at = b->restore; *at && b->n_k < MOST_K;) {
        char *end = NULL;
        const long k = strncmp(at, "need", 4) ? strtol(at, &end, 10) : NEED;
        if (k == NEED) end = (char *)(uintptr_t)at + 4;
        if (end == at || (k != NEED && (k < 1 || k > 100000)) || (*end && *end != ','))
            return base_fail(err, BASE_E_USAGE,
                "--restore is numbers of rows or \"need\", with commas, not '%s'", b->restore);
        b->k[b->n_k++] = (int32_t)k;
        at = end + (*end == ',');
    }
    return 0;
}

static int check_options(bench *b, base_err *err)
{
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (tasks[i].needles == b->needles) b->task = &tasks[i];
    if (!b->task) return base_fail(err, BASE_E_USAGE, "--needles is 2, 4, 6 or 8");
    if (b->tokens < 2000 || b->tokens > 100000 || b->base < 0 || b->base > 100 || b->texts < 1 ||
        b->texts > 1000 || b->first < 0 || b->first > 1000000)
        return base_fail(err, BASE_E_USAGE, "--tokens is 2000 to 100000, --texts 1 to 1000");
    if (!b->corpus_folder)
        return base_fail(err, BASE_E_USAGE, "--corpus names a folder of code that the needles hide in");
    return parse_restore(b, err);
}

static void say_progress(void *user, double share)
{
    fprintf(stderr, "calibrating: %.0f%%\n", share * 100);
}

static int run(bench *b, base_err *err)
{
    char *path = NULL;
    int r = check_options(b, err);
    if (!r) r = bench_corpus_load(b->corpus_folder, &b->corpus, err);
    if (!r) r = bench_results_open(&b->results, b->out, err);
    if (!r) r = options_model_path(&b->common, &path, err);
    if (!r)
        r = model_open(&b->model, path,
            &(model_options){.n_threads = (int)b->common.threads, .backend = b->common.backend}, err);
    free(path);
    if (r) return r;
    b->info = model_get_info(b->model);
    b->heads = kv_heads_path(b->info->hash);
    b->key = (bench_result){.tokens = (uint32_t)b->tokens,
        .needles = b->task->needles,
        .base = b->base ? (uint32_t)b->base : b->task->percent};
    snprintf(b->key.model, sizeof b->key.model, "%.12s", b->info->hash);
    if (b->calibrate)
        r = kv_heads_calibrate(b->model, KV_HEADS_KEPT, b->heads, say_progress, NULL, NULL, err);
    if (!r && !base_fs_exists(b->heads))
        fputs("kvist: this model's retrieval heads are not calibrated (--calibrate); all heads count\n",
            stderr);
    for (int64_t text = 0; text < b->texts && !r; text++) r = run_text(b, b->first + text, err);
    return r;
}

int cmd_bench_niah(int argc, char **argv)
{
    bench b = {
        .common = COMMON_OPTIONS_DEFAULTS, .tokens = 4096, .texts = 3, .needles = 4, .restore = "48,96"};
    const option_row own[] = {
        {"--corpus", OPTION_TEXT, &b.corpus_folder},
        {"--tokens", OPTION_INTEGER, &b.tokens},
        {"--texts", OPTION_INTEGER, &b.texts},
        {"--first", OPTION_INTEGER, &b.first},
        {"--needles", OPTION_INTEGER, &b.needles},
        {"--base", OPTION_INTEGER, &b.base},
        {"--restore", OPTION_TEXT, &b.restore},
        {"--conditions", OPTION_TEXT, &b.words},
        {"--out", OPTION_TEXT, &b.out},
        {"--summary", OPTION_TEXT, &b.summary},
        {"--calibrate", OPTION_FLAG, &b.calibrate},
        {"--help", OPTION_FLAG, &b.help},
        {.name = NULL},
    };
    base_err err = {0};
    int r = options_parse(argc, argv, &b.common, own, NULL, NULL, &err);
    if (!r && b.help) {
        fputs(usage, stdout);
        fputs(options_help, stdout);
        return CMD_OK;
    }
    if (!r && b.summary) {
        r = bench_results_read(&b.results, b.summary, &err);
        if (!r) bench_results_print(&b.results, stdout);
    } else if (!r) {
        r = run(&b, &err);
        if (!r && b.out) bench_results_print(&b.results, stdout);
    }
    bench_results_close(&b.results);
    base_buf_free(&b.corpus);
    free(b.heads);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
