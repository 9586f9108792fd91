/* Experiments after RepairKV's protocol; see bench/recall/protocol.h. */
#include "bench/recall/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "bench/common/result_file.h"
#include "code/code.h"
#include "bench/common/document.h"
#include "cmd/cmd.h"
#include "kv/calibrate/calibrate.h"
#include "kv/repair/heads.h"

typedef enum asker { ASKS_ITSELF, ASKS_STALE, ASKS_WRONG } asker;

/*
 * What lies below a condition: who evicted, and down to how many document rows. NONE: sinks and the newest
 * only.
 */
typedef enum store { STORE_FULL, STORE_B, STORE_BK, STORE_NONE } store;

/*
 * Which evicted rows a repair may look at: all; those of the file that a label names; as many as can be
 * scored in time.
 */
typedef enum among { AMONG_ALL, AMONG_FILE, AMONG_FIRST, AMONG_PAGES } among;

/*
 * One row a condition. K rows come back where `repair`; a swap does so within the budget it finds, a quarter
 * of it if so said. What ships does all of it by its own defaults, within the same rows.
 */
static const struct condition {
    const char *name, *policy;
    store store;
    bool repair, swap, quarter, ships;
    asker asker;
    among among;
    const char *set[6];
} conditions[] = {
#define PAPER  "heads=all", "queries=64", "grow=burst"
#define OURS   "heads=calibrated", "queries=8", "grow=line"
#define SEED   .policy = "snapkv-seed", .store = STORE_B, .repair = true
#define SNAPKV .policy = "snapkv", .store = STORE_B, .repair = true
#define SHIPS  .policy = "kvist", .store = STORE_BK, .repair = true, .ships = true
/* Another first stage, alone and below a repair. */
#define FIRST(p)                                                                                             \
    {.name = p, .policy = p, .store = STORE_BK},                                                             \
        {.name = p ", paper, replay",                                                                        \
            .policy = p,                                                                                     \
            .store = STORE_B,                                                                                \
            .repair = true,                                                                                  \
            .set = {PAPER, "signal=replay"}},                                                                \
    {                                                                                                        \
        .name = p ", ours, replay", .policy = p, .store = STORE_B, .repair = true, .set = {                  \
            OURS,                                                                                            \
            "signal=replay"                                                                                  \
        }                                                                                                    \
    }
    {.name = "full", .policy = "full"},
    {.name = "no document", .policy = "oldest", .store = STORE_NONE},
    {.name = "base", .policy = "snapkv-seed", .store = STORE_B},
    {.name = "matched", .policy = "snapkv-seed", .store = STORE_BK},
    {.name = "random-K", SEED, .set = {"order=random", "grow=none"}},
    {.name = "random-K bursts", SEED, .set = {"order=random", "grow=burst"}},
    {.name = "oldest-K", SEED, .set = {"order=oldest", "grow=none"}},
    {.name = "stale-query", SEED, .asker = ASKS_STALE, .set = {PAPER}},
    {.name = "wrong-query", SEED, .asker = ASKS_WRONG, .set = {PAPER}},
    {.name = "refresh", SEED, .set = {PAPER, "pick=refresh"}},
    {.name = "refresh in 150 ms", SEED, .among = AMONG_FIRST, .set = {PAPER, "pick=refresh"}},
    {.name = "page summary, 150 ms", SEED, .among = AMONG_PAGES, .set = {PAPER}},
    {.name = "paper, file-gated", SEED, .among = AMONG_FILE, .set = {PAPER}},
    {.name = "anchors only", SEED, .set = {"heads=all", "queries=64", "grow=none"}},
    {.name = "paper", SEED, .set = {PAPER}},
    {.name = "paper, replay", SEED, .set = {PAPER, "signal=replay"}},
    {.name = "paper, each lane", SEED, .set = {PAPER, "lanes=each"}},
    {.name = "paper, K.K", SEED, .set = {PAPER, "order=keys"}},
    {.name = "paper, fused", SEED, .set = {PAPER, "order=fused"}},
    {.name = "paper, coverage", SEED, .set = {PAPER, "pick=coverage"}},
    {.name = "heads, bursts", SEED, .set = {"heads=calibrated", "queries=8", "grow=burst"}},
    {.name = "all heads, lines", SEED, .set = {"heads=all", "queries=8", "grow=line"}},
    {.name = "ours", SEED, .set = {OURS}},
    {.name = "ours, swap",
        .policy = "snapkv-seed",
        .store = STORE_BK,
        .repair = true,
        .swap = true,
        .set = {OURS}},
    {.name = "ours, replay", SEED, .set = {OURS, "signal=replay"}},
    {.name = "ours, refresh", SEED, .set = {OURS, "signal=replay", "pick=refresh"}},
    {.name = "ours, exchange",
        .policy = "snapkv-seed",
        .store = STORE_BK,
        .repair = true,
        .swap = true,
        .quarter = true,
        .set = {OURS, "signal=replay"}},
    {.name = "ours, stale-query", SEED, .asker = ASKS_STALE, .set = {OURS}},
    {.name = "ours, wrong-query", SEED, .asker = ASKS_WRONG, .set = {OURS}},
    {.name = "ours, coverage", SEED, .set = {OURS, "pick=coverage"}},
    {.name = "ours, fused", SEED, .set = {OURS, "order=fused"}},
    {.name = "snapkv matched", .policy = "snapkv", .store = STORE_BK},
    {.name = "snapkv, paper", SNAPKV, .set = {PAPER}},
    {.name = "snapkv, ours", SNAPKV, .set = {OURS}},
    {.name = "snapkv, ours, swap",
        .policy = "snapkv",
        .store = STORE_BK,
        .repair = true,
        .swap = true,
        .set = {OURS}},
    {.name = "snapkv, exchange",
        .policy = "snapkv",
        .store = STORE_BK,
        .repair = true,
        .swap = true,
        .quarter = true,
        .set = {OURS, "signal=replay"}},
    {.name = "kvist", SHIPS},
    {.name = "kvist less protection", SHIPS, .set = {"hard=0"}},
    {.name = "kvist less memory", SHIPS, .set = {"memory=0"}},
    {.name = "kvist less repair", .policy = "kvist", .store = STORE_BK, .ships = true},
    {.name = "kvist less heads", SHIPS, .set = {"heads=all"}},
    {.name = "kvist less lines", SHIPS, .set = {"grow=none"}},
    {.name = "kvist less replay", SHIPS, .set = {"signal=unvisited"}},
    {.name = "kvist less visits", SHIPS, .set = {"visit=0"}},
    {.name = "kvist less means", SHIPS, .set = {"rest=none"}},
    {.name = "kvist and sentences", SHIPS, .set = {"decode=sentence"}},
    FIRST("streaming-llm"),
    FIRST("h2o"),
    FIRST("scissorhands"),
};
enum {
    N_CONDITIONS = sizeof conditions / sizeof *conditions,
    NEED = -1,
    SINKS = 4,
    NEWEST = 128,
    LIMIT_MS = 150,        /* RepairKV, appendix C */
    PAGE = 16,             /* Quest's page; the seed does not say */
    RECALL_MOST_ASKING = 8 /* words of a message that the agent asks by */
};

/* ---- text ---------------------------------------------------------------------------------------------- */

void recall_add_text(const recall *r, const char *text, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(r->model), text, strlen(text), false, out);
}

void recall_turn_free(recall_turn *t)
{
    model_ids_free(&t->ids);
    model_ids_free(&t->tail);
}

int recall_document(
    recall *r, kv_session **ret, const model_ids *ids, const uint32_t *lines, uint32_t n_lines, base_err *err)
{
    const bench_piece piece = {
        {.origin = KV_ORIGIN_CONTEXT, .turn = 1, .lines = lines, .n_lines = n_lines}, ids};
    const char *policy = "full";
    int e = 0;
    for (size_t i = 0; i < N_CONDITIONS && !e; i++)
        if (bench_is_wanted(r->words, ';', conditions[i].name))
            e = bench_whole_policy(&policy, conditions[i].policy, err);
    /* What is kept of a document on disk has no sums of attention. */
    if (!e)
        e = bench_document_open(
            ret, r->model, &piece, 1, policy, strcmp(policy, "full") ? NULL : r->documents, err);
    return e;
}

static int append(kv_session *s, kv_origin origin, uint32_t turn, const model_ids *ids, const recall_turn *t,
    float *logits, base_err *err)
{
    const kv_segment g = {
        .origin = origin,
        .turn = turn,
        .queries = t && t->n_queries ? t->queries : NULL,
        .n_queries = t ? t->n_queries : 0,
    };
    return kv_session_append(s, &g, ids->ids, (uint32_t)ids->n, logits, NULL, err);
}

/* Greedy, until the answer ends or n_new tokens are there; its text goes to `answer` (may be NULL). */
static int generate(recall *r, kv_session *s, uint32_t turn, uint32_t n_new, base_buf *answer, base_err *err)
{
    const model_tokenizer *t = model_get_tokenizer(r->model);
    for (uint32_t i = 0; i < n_new; i++) {
        int32_t id = 0;
        for (uint32_t v = 1; v < r->info->n_vocab; v++)
            if (r->logits[v] > r->logits[id]) id = (int32_t)v;
        if (model_tokenizer_is_end(t, id)) break;
        size_t n = 0;
        const char *piece = model_tokenizer_piece(t, id, &n);
        if (answer && piece) base_buf_add(answer, piece, n);
        const model_ids one = {.ids = &id, .n = 1};
        int e = append(s, KV_ORIGIN_ANSWER, turn, &one, NULL, r->logits, err);
        if (e) return e;
    }
    return 0;
}

/* Is the target a whole name of the answer, or (first) its first one? */
static bool has_name(const char *answer, const char *target, bool first)
{
    size_t pos = 0, from = 0, to = 0;
    const size_t n = strlen(answer), len = strlen(target);
    while (code_next_identifier(answer, n, &pos, &from, &to)) {
        if (to - from == len && !memcmp(answer + from, target, len)) return true;
        if (first) return false;
    }
    return false;
}

static void judge(const recall_turn *t, const char *answer, bool *found)
{
    for (uint32_t i = 0; i < t->n_targets; i++)
        found[i] = t->match == RECALL_IN_TEXT
                       ? strstr(answer, t->targets[i]) != NULL
                       : has_name(answer, t->targets[i], t->match == RECALL_FIRST_NAME);
}

/* ---- sessions under a condition ------------------------------------------------------------------------ */

static uint32_t length(const kv_session *s)
{
    uint32_t n = 0;
    kv_session_ids(s, &n);
    return n;
}

/* Share of the asked rows that are active, mean over lanes; how many tokens they are. */
static double asked_active(const kv_session *s, const recall_turn *t, uint32_t *ret_n)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    uint32_t *lanes = calloc(stats.n_tokens + 1, sizeof *lanes), n = 0;
    double active = 0;
    if (!lanes) return 0;
    kv_session_active_lanes(s, lanes);
    for (uint32_t k = 0; k < t->n_rows; k++)
        for (uint32_t i = t->rows[k].from; i < t->rows[k].to; i++, n++)
            active += (double)lanes[i] / stats.n_lanes;
    free(lanes);
    if (ret_n) *ret_n = n;
    return n ? active / n : 0;
}

static uint32_t rows_of(const recall *r, const struct condition *c, uint32_t k)
{
    const uint32_t base = (uint32_t)((uint64_t)r->doc_end * r->key.base / 100);
    return c->store == STORE_FULL   ? 0
           : c->store == STORE_NONE ? SINKS + NEWEST
                                    : base + (c->store == STORE_BK ? k : 0);
}

/*
 * Everything behind the document is kept; of the document what the condition says. Then message `turn` (from
 * 1).
 */
static int evict_and_ask(
    const recall *r, kv_session *s, const struct condition *c, uint32_t rows, uint32_t turn, base_err *err)
{
    static const char *const set[] = {"low=1", "soft=0", "hard=0", NULL};
    const recall_turn *t = &r->item->turns[turn];
    const uint32_t n = length(s);
    kv_options o = {
        .budget = rows ? rows + n - r->doc_end : 0, .policy = c->policy, .set = set, .bare = true};
    if (c->ships) { /* it counts the message and the answer too */
        o.set = c->set;
        o.budget += (uint32_t)(t->ids.n + t->tail.n) + t->n_new;
        o.repair = c->repair ? -1 : 0;
        o.heads_file = r->heads;
    }
    /* Pins are counted against a budget, so it comes behind them. */
    int e = kv_session_set_policy(s, &(kv_options){.policy = "full"}, err);
    kv_session_set_automatic(s, c->ships);
    kv_session_set_turn(s, turn + 1);
    if (!e && !c->ships) e = kv_session_manual(s, KV_MANUAL_PIN, r->doc_end, n, err);
    if (!e) e = kv_session_set_policy(s, &o, err);
    if (!e) e = kv_session_evict(s, err);
    return e ? e : append(s, KV_ORIGIN_USER, turn + 1, &t->ids, t, NULL, err);
}

/*
 * How many evicted rows the paper's score looks at within its limit: by the time that all rows take, of the
 * processor, since a clock on the wall counts what else runs. The rows that are active are not counted, as in
 * the paper.
 */
static int rows_in_time(
    recall *r, const kv_session *s, uint32_t from, const kv_signal *signal, uint32_t *ret, base_err *err)
{
    kv_session *f = NULL;
    int e = r->row_ms > 0 ? 0 : kv_session_fork(s, &f, NULL, err);
    if (f) {
        const clock_t start = clock();
        e = kv_session_repair(f, &(kv_ask){.from = from, .to = length(f), .signal = signal}, NULL, err);
        r->row_ms = (double)(clock() - start) * 1000 / CLOCKS_PER_SEC / r->info->n_threads / from;
        kv_session_free(f);
    }
    *ret = e || r->row_ms * from < LIMIT_MS ? from : (uint32_t)(LIMIT_MS / r->row_ms);
    return e;
}

/* The evicted rows that a condition may look at, [bits of the sequence]. */
static int choose_among(recall *r, kv_session *s, const struct condition *c, const recall_turn *t,
    uint32_t from, const kv_signal *signal, uint64_t *ret, base_err *err)
{
    uint32_t n = 0;
    if (c->among == AMONG_FILE) {
        for (uint32_t i = t->file.from; i < t->file.to; i++) ret[i / 64] |= UINT64_C(1) << i % 64;
        return 0;
    }
    int e = rows_in_time(r, s, from, signal, &n, err);
    if (!e && c->among == AMONG_PAGES) return kv_session_pages(s, r->doc_end, signal, PAGE, n, ret, err);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    uint32_t *lanes = calloc(stats.n_tokens + 1, sizeof *lanes);
    if (!lanes) return base_fail(err, BASE_E_NOMEM, "no memory for %u rows", stats.n_tokens);
    kv_session_active_lanes(s, lanes);
    for (uint32_t i = 0; i < r->doc_end && n && !e; i++) {
        if (lanes[i] == stats.n_lanes) continue;
        ret[i / 64] |= UINT64_C(1) << i % 64;
        n--;
    }
    free(lanes);
    return e;
}

/* Of each fact that the message asks for the rank of its best row. */
static void note_ranks(const recall_turn *t, const uint32_t *rank, bench_result *one)
{
    for (uint32_t k = 0; k < t->n_rows && one->n_ranks < BENCH_TARGETS; k++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = t->rows[k].from; i < t->rows[k].to; i++)
            if (rank[i] < best) best = rank[i];
        if (best < UINT32_MAX) one->ranks[one->n_ranks++] = best;
    }
}

/* As the agent asks for it. */
static int repair_as_shipped(kv_session *s, const recall_turn *t, base_err *err)
{
    const uint32_t to = length(s), from = to - (uint32_t)t->ids.n;
    uint32_t queries[RECALL_MOST_ASKING], n = t->n_queries;
    if (n > RECALL_MOST_ASKING) n = RECALL_MOST_ASKING;
    for (uint32_t i = 0; i < n; i++) queries[i] = from + t->queries[(size_t)i * t->n_queries / n];
    return kv_session_repair(s, &(kv_ask){from, to, queries, n}, NULL, err);
}

static int repair(recall *r, kv_session *s, const struct condition *c, uint32_t k, uint32_t turn,
    const kv_signal *stale, bench_result *one, base_err *err)
{
    const recall_turn *t = &r->item->turns[turn];
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    const char *set[10] = {"low=1", "hard=0", "soft=0"};
    for (size_t i = 0; i < sizeof c->set / sizeof *c->set && c->set[i]; i++) set[3 + i] = c->set[i];
    const kv_options o = {.budget = c->swap ? stats.active_max : 0,
        .policy = c->policy,
        .repair = (int)(c->quarter ? stats.active_max / 4 : k),
        .set = set,
        .heads_file = r->heads,
        .bare = true};
    int e = kv_session_set_policy(s, &o, err);
    const uint32_t to = stats.n_tokens, from = to - (uint32_t)t->ids.n;
    uint32_t queries[RECALL_QUERIES];
    for (uint32_t i = 0; i < t->n_queries; i++) queries[i] = from + t->queries[i];
    kv_signal mine = {0};
    kv_ask ask = {.from = from,
        .to = to,
        .queries = queries,
        .n_queries = t->n_queries,
        .signal = c->asker == ASKS_ITSELF  ? NULL
                  : c->asker == ASKS_STALE ? stale
                                           : &r->wrong};
    uint32_t *rank = malloc(((size_t)to + 1) * sizeof *rank);
    uint64_t *among_bits = calloc(to / 64 + 1, sizeof *among_bits);
    if (!e && (!rank || !among_bits)) e = base_fail(err, BASE_E_NOMEM, "no memory for %u rows", to);
    if (!e && c->among) {
        e = kv_session_signal(s, &ask, 64, &mine, err);
        if (!e) e = choose_among(r, s, c, t, from, &mine, among_bits, err);
        ask.among = among_bits;
    }
    ask.rank = rank;
    if (!e) e = kv_session_repair(s, &ask, NULL, err);
    if (!e) note_ranks(t, rank, one);
    kv_signal_fini(&mine);
    free(rank);
    free(among_bits);
    return e;
}

/* One turn, its message being there: repair, answer, judgement. Adds to `one`. */
static int answer_turn(recall *r, kv_session *s, const struct condition *c, uint32_t k, uint32_t turn,
    const kv_signal *stale, bench_result *one, base_buf *answers, base_err *err)
{
    const recall_turn *t = &r->item->turns[turn];
    const double turns = r->item->n_turns - 1;
    base_buf answer = {0};
    kv_stats before, stats;
    kv_session_get_stats(s, &before);
    one->before += asked_active(s, t, NULL) / turns;
    int e = !c->repair ? 0
            : c->ships ? repair_as_shipped(s, t, err)
                       : repair(r, s, c, k, turn, stale, one, err);
    if (!e) {
        one->after += asked_active(s, t, NULL) / turns;
        kv_session_get_stats(s, &stats);
        one->active = stats.active;
        one->host = stats.host;
        one->score_ms += (stats.score_ms - before.score_ms) / turns;
        one->plan_ms += (stats.plan_ms - before.plan_ms) / turns;
        e = append(s, KV_ORIGIN_SCAFFOLD, turn + 1, &t->tail, NULL, r->logits, err);
    }
    if (!e) e = generate(r, s, turn + 1, t->n_new, &answer, err);
    if (!e) {
        judge(t, answer.data ? answer.data : "", one->found + one->n_targets);
        one->n_targets += t->n_targets;
        base_buf_printf(answers, "%s%s", answers->len ? " | " : "", answer.data ? answer.data : "");
    }
    base_buf_free(&answer);
    return e;
}

static int run_condition(
    recall *r, const kv_session *with_message, const struct condition *c, uint32_t k, base_err *err)
{
    kv_session *s = NULL;
    kv_signal last = {0};
    base_buf answers = {0};
    bench_result one = r->key;
    int e = kv_session_fork(with_message, &s, NULL, err);
    for (uint32_t turn = 1; turn < r->item->n_turns && !e; turn++) {
        if (turn > 1) e = evict_and_ask(r, s, c, rows_of(r, c, k), turn, err);
        const uint32_t to = e ? 0 : length(s);
        kv_signal mine = {0};
        if (!e && c->asker == ASKS_STALE)
            e = kv_session_signal(
                s, &(kv_ask){to - (uint32_t)r->item->turns[turn].ids.n, to}, 64, &mine, err);
        if (!e) e = answer_turn(r, s, c, k, turn, turn > 1 ? &last : &r->stale, &one, &answers, err);
        kv_signal_fini(&last);
        last = mine;
    }
    if (!e) bench_results_add(&r->results, &one, answers.data);
    kv_signal_fini(&last);
    base_buf_free(&answers);
    kv_session_free(s);
    return e;
}

/* ---- which are to be run ------------------------------------------------------------------------------- */

/* Does this condition of the item at hand still have to be run? Sets the key. */
static bool is_left(recall *r, const struct condition *c, uint32_t k)
{
    snprintf(r->key.condition, sizeof r->key.condition, "%s", c->name);
    r->key.k = k;
    return bench_is_wanted(r->words, ';', c->name) && (r->labels || c->among != AMONG_FILE) &&
           !bench_results_find(&r->results, &r->key, false);
}

bool recall_is_late(const recall *r)
{
    return r->seconds && (double)(base_clock_ns() - r->start) / 1e9 > (double)r->seconds;
}

bool recall_is_left(recall *r, const char *name, uint32_t number)
{
    snprintf(r->key.split, sizeof r->key.split, "%s", name);
    r->key.text = number;
    if (recall_is_late(r)) return false;
    for (uint32_t i = 0; i < r->n_k; i++)
        for (size_t c = 0; c < N_CONDITIONS; c++)
            if (r->k[i] == NEED || is_left(r, &conditions[c], (uint32_t)r->k[i])) return true;
    return false;
}

/*
 * A condition that knows no K has the same result for each: is it there for another? Then it counts for this
 * one too.
 */
static bool copy_result(recall *r, const struct condition *c)
{
    if (c->repair || c->store == STORE_BK) return false;
    const bench_result *other = bench_results_find(&r->results, &r->key, true);
    if (!other) return false;
    bench_result one = *other;
    one.k = r->key.k;
    bench_results_add(&r->results, &one, NULL);
    return true;
}

/*
 * All conditions of one K; those over one store run together, so its eviction and its message are computed
 * once.
 */
static int run_k(recall *r, const kv_session *first, uint32_t k, base_err *err)
{
    bool done[N_CONDITIONS] = {false};
    int e = 0;
    for (size_t i = 0; i < N_CONDITIONS && !e; i++) {
        if (done[i]) continue;
        kv_session *s = NULL;
        const uint32_t rows = rows_of(r, &conditions[i], k);
        for (size_t j = i; j < N_CONDITIONS && !e; j++) {
            const struct condition *c = &conditions[j];
            if (done[j] || strcmp(c->policy, conditions[i].policy) || rows_of(r, c, k) != rows) continue;
            if (c->ships && j != i) continue; /* it evicts by its own parameters */
            done[j] = true;
            if (!is_left(r, c, k) || copy_result(r, c)) continue;
            if (!s) e = kv_session_fork(first, &s, NULL, err);
            if (!e && length(s) == length(first)) e = evict_and_ask(r, s, c, rows, 1, err);
            if (!e) e = run_condition(r, s, c, k, err);
        }
        kv_session_free(s);
    }
    return e;
}

/* The queries of a message put to this session, at most 64; the session is as it was. */
static int ask(const kv_session *s, const recall_turn *t, kv_signal *ret, base_err *err)
{
    kv_session *f = NULL;
    int e = kv_session_fork(s, &f, NULL, err);
    if (e) return e;
    const uint32_t from = length(f);
    e = append(f, KV_ORIGIN_USER, 1, &t->ids, t, NULL, err);
    if (!e) e = kv_session_signal(f, &(kv_ask){from, from + (uint32_t)t->ids.n}, 64, ret, err);
    kv_session_free(f);
    return e;
}

int recall_run(recall *r, const kv_session *document, const recall_item *item, base_err *err)
{
    const recall_turn *first = &item->turns[0];
    kv_session *s = NULL;
    r->item = item;
    r->doc_end = length(document);
    if (!recall_is_left(r, item->name, item->number)) return 0;
    int e = kv_session_fork(document, &s, NULL, err);
    if (!e) e = ask(s, first, &r->stale, err);
    if (!e) e = append(s, KV_ORIGIN_USER, 1, &first->ids, first, NULL, err);
    if (!e) e = append(s, KV_ORIGIN_SCAFFOLD, 1, &first->tail, NULL, r->logits, err);
    if (!e) e = generate(r, s, 1, first->n_new, NULL, err);
    if (!e) e = ask(s, &item->foreign, &r->wrong, err);
    if (!e) e = kv_session_manual(s, KV_MANUAL_PIN, 0, SINKS, err);
    if (!e) e = kv_session_manual(s, KV_MANUAL_PIN, r->doc_end - NEWEST, r->doc_end, err);
    for (uint32_t i = 0; i < r->n_k && !e; i++) {
        uint32_t rows = 0;
        asked_active(s, &item->turns[1], &rows);
        e = run_k(r, s, r->k[i] == NEED ? (rows * 105 + 99) / 100 : (uint32_t)r->k[i], err);
    }
    kv_session_free(s);
    kv_signal_fini(&r->stale);
    kv_signal_fini(&r->wrong);
    return e;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static int parse_restore(recall *r, base_err *err)
{
    for (const char *at = r->restore; *at && r->n_k < RECALL_MOST_K;) {
        char *end = NULL;
        const long k = strncmp(at, "need", 4) ? strtol(at, &end, 10) : NEED;
        if (k == NEED) end = (char *)(uintptr_t)at + 4;
        if (end == at || (k != NEED && (k < 1 || k > 100000)) || (*end && *end != ','))
            return base_fail(err, BASE_E_USAGE,
                "--restore is numbers of rows or \"need\", with commas, not '%s'", r->restore);
        r->k[r->n_k++] = (int32_t)k;
        at = end + (*end == ',');
    }
    return 0;
}

static void say_progress(void *user, double share)
{
    fprintf(stderr, "calibrating: %.0f%%\n", share * 100);
}

int recall_open(recall *r, const char *name, base_err *err)
{
    r->start = base_clock_ns();
    int e = parse_restore(r, err);
    if (!e) e = bench_results_open(&r->results, name, r->out, r->resume, err);
    if (!e) e = cmd_open_model(&r->common, &r->model, err);
    if (e) return e;
    r->info = model_get_info(r->model);
    r->heads = kv_heads_path(r->info->hash);
    snprintf(r->key.model, sizeof r->key.model, "%.12s", r->info->hash);
    r->logits = malloc(r->info->n_vocab * sizeof *r->logits);
    if (!r->logits) e = base_fail(err, BASE_E_NOMEM, "no memory for logits");
    if (!e && r->calibrate && !base_fs_exists(r->heads))
        e = kv_heads_calibrate(r->model, KV_HEADS_KEPT, r->heads, say_progress, NULL, NULL, err);
    if (!e && !base_fs_exists(r->heads))
        fputs("kvist: this model's retrieval heads are not calibrated (--calibrate); all heads count\n",
            stderr);
    return e;
}

static int print_summary(recall *r, base_err *err)
{
    int e = bench_results_read(&r->results, r->summary, err);
    if (!e) bench_results_print(&r->results, stdout);
    return e;
}

static void close_run(recall *r)
{
    bench_results_close(&r->results);
    free(r->heads);
    free(r->logits);
    model_close(r->model);
}

int recall_main(recall *r, int argc, char **argv, const option_row *own, const char *usage,
    int (*run)(void *user, base_err *err), void *user)
{
    base_err err = {0};
    int e;
    if (!cmd_begin(argc, argv, &r->common, own, &(cmd_words){.usage = usage}, &e)) return e;
    e = r->summary ? print_summary(r, &err) : run(user, &err);
    if (!e && !r->summary && r->out) bench_results_print(&r->results, stdout);
    close_run(r);
    return e ? cmd_complain(&err) : CMD_OK;
}
