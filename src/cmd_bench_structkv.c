/*
 * kvist bench structkv: what a pruned prefill saves and what it loses. Each item is a document with facts in it, a question, and a later
 * question about other facts (bench_ruler.h); each condition computes it anew, so that the time to the first token of the answer
 * is measured beside that of the full prefill. Before the later question a repair may bring back what was left below the cut.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench_haystack.h"
#include "bench_result.h"
#include "bench_ruler.h"
#include "cmd.h"
#include "kv/heads.h"
#include "kv/pivot.h"
#include "kv/session.h"
#include "options.h"

static const char usage[] =
    "usage: kvist bench structkv --model M --corpus FOLDER [--tokens N] [--items N] [--tasks WORD,...]\n"
    "                            [--conditions \"WORD;...\"] [--turns 1|2] [--restore K] [--out FILE "
    "[--resume]]\n"
    "       kvist bench structkv --summary FILE\n"
    "\n"
    "  --corpus FOLDER     code and prose that facts hide in\n"
    "  --tokens N          length of each document (2048)\n"
    "  --items N           how many of each task (5)\n"
    "  --first N           the first item's number (0)\n"
    "  --tasks W,...       mk2, mk3 (one key among many), vt (variables), mq (four keys in text) (all)\n"
    "  --conditions W;...  those whose name begins with a word of these, or, behind a \"=\", is it (all)\n"
    "  --turns N           2: a later question about other facts follows (1)\n"
    "  --restore K         rows per lane that a repair may bring back before it; 0: none (96)\n"
    "  --out FILE          results as JSON lines; --resume: what is in it already is not run again\n"
    "  --summary FILE      no model: the tables of such a file\n"
    "  --pivot             find the model's pivot anew, and keep it for its sessions\n"
    "\n";

static const struct condition {
    const char *name, *policy;
    const char *set[6];
} conditions[] = {
    {.name = "full", .policy = "full"},
    {.name = "structkv", .policy = "structkv"},
    {.name = "structkv, 60%", .policy = "structkv", .set = {"keep=.6"}},
    {.name = "structkv, all stored", .policy = "structkv", .set = {"stored=1"}},
    {.name = "structkv, no floor", .policy = "structkv", .set = {"floor=0"}},
    {.name = "structkv, w = 32", .policy = "structkv", .set = {"asked=32"}},
    {.name = "structkv, blocks", .policy = "structkv", .set = {"block=16"}},
    {.name = "half depth", .policy = "structkv-half"},
    {.name = "fastkv", .policy = "fastkv"},
    {.name = "gemfilter-like", .policy = "gemfilter-like"},
    {.name = "snapkv", .policy = "structkv", .set = {"keep=1", "pivot=.5"}},
    {.name = "heads, .25, 5%", .policy = "kvist", .set = {"prune=heads", "pivot=.25", "keep=.05"}},
    {.name = "heads, .25, 10%", .policy = "kvist", .set = {"prune=heads", "pivot=.25", "keep=.1"}},
    {.name = "heads, .25, 20%", .policy = "kvist", .set = {"prune=heads", "pivot=.25", "keep=.2"}},
    {.name = "heads, .46, 20%", .policy = "kvist", .set = {"prune=heads", "pivot=.46", "keep=.2"}},
    {.name = "heads, .46, 30%", .policy = "kvist", .set = {"prune=heads", "pivot=.46", "keep=.3"}},
};
enum { N_CONDITIONS = sizeof conditions / sizeof *conditions };

/* One answered question. */
typedef struct result {
    char model[16], task[8], condition[48];
    uint32_t tokens, item, turn, n_targets, cut, deferred, repaired;
    bool found[RULER_WANTED];
    char answer[400];
    double
        recovered; /* share of the full session's attention above the cut that falls on active rows; NAN: no full one */
    double asked_up; /* share of the asked facts' rows that are active in the last layer */
    double work;     /* layers computed of all layers of the document's tokens */
    double cpu_s;    /* the wait in processor time of all threads: what a busy machine does not change */
    double
        prefill_s; /* document, question and tail, to the first token's logits; in turn 2 question, repair, tail */
    double score_ms, plan_ms, repair_ms;
} result;

typedef struct bench {
    common_options common;
    int64_t tokens, items, first, turns, restore;
    const char *corpus_folder, *tasks, *words, *out, *summary;
    bool resume, pivot, help;
    model *model;
    kv_session *full; /* the item at hand under `full`, before its first answer */
    const model_info *info;
    char *heads, *pivot_file;
    base_buf corpus;
    result *results;
    size_t n_results, cap_results;
    FILE *file;
} bench;

/* --- results ---------------------------------------------------------------------------------------------------------------- */

static bool same_key(const result *a, const result *b)
{
    return a->tokens == b->tokens && a->item == b->item && a->turn == b->turn &&
           !strcmp(a->model, b->model) && !strcmp(a->task, b->task) && !strcmp(a->condition, b->condition);
}

static void push(bench *b, const result *one)
{
    base_grow(&b->results, &b->cap_results, b->n_results + 1, sizeof *b->results);
    b->results[b->n_results++] = *one;
}

static void write_result(bench *b, result *one, const char *answer)
{
    base_buf out = {0};
    snprintf(one->answer, sizeof one->answer, "%s", answer);
    push(b, one);
    base_buf_printf(&out,
        "{\"bench\":\"structkv\",\"model\":\"%s\",\"tokens\":%u,\"task\":\"%s\",\"item\":%u,\"turn\":%u,"
        "\"condition\":",
        one->model, one->tokens, one->task, one->item, one->turn);
    base_json_put_str(&out, one->condition, strlen(one->condition));
    base_buf_puts(&out, ",\"found\":[");
    for (uint32_t i = 0; i < one->n_targets; i++) base_buf_printf(&out, "%s%d", i ? "," : "", one->found[i]);
    base_buf_printf(&out,
        "],\"cut\":%u,\"deferred\":%u,\"repaired\":%u,\"asked_up\":%.3f,\"recovered\":%.3f,\"work\":%.3f,"
        "\"prefill_s\":%.3f,"
        "\"cpu_s\":%.3f,"
        "\"score_ms\":%.2f,\"plan_ms\":%.2f,\"repair_ms\":%.2f,\"answer\":",
        one->cut, one->deferred, one->repaired, one->asked_up, isnan(one->recovered) ? -1 : one->recovered,
        one->work, one->prefill_s, one->cpu_s, one->score_ms, one->plan_ms, one->repair_ms);
    base_json_put_str(&out, answer, strlen(answer));
    base_buf_puts(&out, "}\n");
    fputs(out.data, b->file);
    fflush(b->file);
    base_buf_free(&out);
}

static void read_line(void *user, const char *line, size_t n)
{
    bench *b = user;
    base_json_doc *doc = NULL;
    if (base_json_parse(line, n, &doc, NULL)) return;
    const base_json *o = base_json_root(doc), *found = base_json_get(o, "found");
    result one = {
        .tokens = (uint32_t)base_json_int(o, "tokens", 0),
        .item = (uint32_t)base_json_int(o, "item", 0),
        .turn = (uint32_t)base_json_int(o, "turn", 0),
        .cut = (uint32_t)base_json_int(o, "cut", 0),
        .deferred = (uint32_t)base_json_int(o, "deferred", 0),
        .repaired = (uint32_t)base_json_int(o, "repaired", 0),
        .asked_up = base_json_num(o, "asked_up", NAN),
        .recovered = base_json_num(o, "recovered", -1),
        .work = base_json_num(o, "work", NAN),
        .prefill_s = base_json_num(o, "prefill_s", NAN),
        .cpu_s = base_json_num(o, "cpu_s", NAN),
        .score_ms = base_json_num(o, "score_ms", NAN),
        .plan_ms = base_json_num(o, "plan_ms", NAN),
        .repair_ms = base_json_num(o, "repair_ms", NAN),
    };
    snprintf(one.model, sizeof one.model, "%s", base_json_str(o, "model", ""));
    snprintf(one.task, sizeof one.task, "%s", base_json_str(o, "task", ""));
    snprintf(one.answer, sizeof one.answer, "%s", base_json_str(o, "answer", ""));
    snprintf(one.condition, sizeof one.condition, "%s", base_json_str(o, "condition", ""));
    for (size_t i = 0; found && i < found->n && i < RULER_WANTED; i++, one.n_targets++)
        one.found[i] = base_json_at(found, i)->integer != 0;
    if (*one.condition && one.n_targets) push(b, &one);
    base_json_free(doc);
}

/* The same item under `full`; NULL: it was not run. */
static const result *full_of(const bench *b, const result *one)
{
    result key = *one;
    snprintf(key.condition, sizeof key.condition, "full");
    for (size_t i = 0; i < b->n_results; i++)
        if (same_key(&b->results[i], &key)) return &b->results[i];
    return NULL;
}

static bool same_row(const result *a, const result *b)
{
    return a->tokens == b->tokens && a->turn == b->turn && !strcmp(a->model, b->model) &&
           !strcmp(a->task, b->task) && !strcmp(a->condition, b->condition);
}

static void print_row(const bench *b, const result *first)
{
    uint32_t n = 0, right = 0, items = 0, lost = 0, won = 0, repaired = 0;
    double up = 0, recovered = 0, work = 0, seconds = 0, cpu = 0, full_cpu = 0, score = 0, repair = 0, low,
           high;
    for (size_t i = 0; i < b->n_results; i++) {
        const result *one = &b->results[i], *full = full_of(b, one);
        if (!same_row(one, first)) continue;
        items++;
        for (uint32_t t = 0; t < one->n_targets; t++) {
            n++;
            right += one->found[t];
            lost += full && full->found[t] && !one->found[t];
            won += full && !full->found[t] && one->found[t];
        }
        up += one->asked_up;
        recovered += one->recovered >= 0 ? one->recovered : NAN;
        work += one->work;
        seconds += one->prefill_s;
        cpu += one->cpu_s;
        full_cpu += full ? full->cpu_s : NAN;
        score += one->score_ms + one->plan_ms;
        repaired += one->repaired;
        repair += one->repair_ms;
    }
    bench_wilson(right, n, &low, &high);
    printf("| %s | %u | %u/%u | %.3f [%.3f, %.3f] | %u, %u | %.2f | %.3f | %u | %.2f | %.2f | %.2f | %.2f | "
           "%.1f | "
           "%.0f | "
           "%.2f |\n",
        first->condition, items, right, n, (double)right / n, low, high, lost, won, up / items,
        recovered / items, first->cut, work / items, seconds / items, cpu / items, full_cpu / cpu,
        score / items, (double)repaired / items, repaired ? repair / repaired : 0);
}

static void print_summary(const bench *b)
{
    for (size_t i = 0; i < b->n_results; i++) {
        bool is_new = true;
        const result *first = &b->results[i];
        for (size_t j = 0; j < i && is_new; j++)
            is_new =
                !(b->results[j].tokens == first->tokens && b->results[j].turn == first->turn &&
                    !strcmp(b->results[j].task, first->task) && !strcmp(b->results[j].model, first->model));
        if (!is_new) continue;
        printf(
            "\n%s, %s, %u tokens, turn %u\n\n| condition | items | found | share [95%%] | lost, won against "
            "full | asked rows above | attention recovered | cut | work | prefill, s | processor s | full / "
            "it | score + plan, ms "
            "| repaired "
            "rows | ms a repaired row |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
            first->model, first->task, first->tokens, first->turn);
        for (size_t c = 0; c < N_CONDITIONS; c++) {
            result key = *first;
            snprintf(key.condition, sizeof key.condition, "%s", conditions[c].name);
            for (size_t j = 0; j < b->n_results; j++)
                if (same_row(&b->results[j], &key)) {
                    print_row(b, &b->results[j]);
                    break;
                }
        }
    }
}

/* --- one item under one condition ------------------------------------------------------------------------------------------- */

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
    return kv_session_append(s, &g, ids->ids, (uint32_t)ids->n, logits, NULL, NULL, err);
}

/* Greedy, until the answer ends. */
static int generate(const bench *b, kv_session *s, uint32_t turn, uint32_t n_new, float *logits,
    base_buf *answer, base_err *err)
{
    const model_tokenizer *t = model_get_tokenizer(b->model);
    for (uint32_t i = 0; i < n_new; i++) {
        int32_t id = 0;
        for (uint32_t v = 1; v < b->info->n_vocab; v++)
            if (logits[v] > logits[id]) id = (int32_t)v;
        if (model_tokenizer_is_end(t, id)) break;
        size_t n = 0;
        const char *piece = model_tokenizer_piece(t, id, &n);
        if (piece) base_buf_add(answer, piece, n);
        const model_ids one = {.ids = &id, .n = 1};
        int r = append(s, KV_ORIGIN_ANSWER, turn, &one, NULL, NULL, logits, err);
        if (r) return r;
    }
    return 0;
}

/* Share of the asked facts' rows that are active in the last layer, mean over its lanes. */
static double asked_up(const bench *b, const kv_session *s, const ruler_question *q, uint32_t doc)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    uint64_t *bits = base_xcalloc(stats.n_tokens / 64 + 1, sizeof *bits);
    double up = 0;
    uint32_t n = 0;
    for (uint32_t lane = stats.n_lanes - b->info->n_head_kv; lane < stats.n_lanes; lane++) {
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

/* Question, repair (turn 2), tail, answer; `start` and one->cpu_s are when the wait for this answer began. */
static int ask(bench *b, kv_session *s, const ruler_question *q, uint32_t turn, uint32_t doc, uint32_t n_doc,
    uint64_t start, result *one, float *logits, base_err *err)
{
    kv_stats before, stats;
    base_buf answer = {0};
    uint32_t from = 0, queries[RULER_QUERIES];
    kv_session_get_stats(s, &before);
    from = before.n_tokens;
    for (uint32_t i = 0; i < q->n_queries; i++) queries[i] = from + q->queries[i];
    int r = append(s, KV_ORIGIN_USER, turn, &q->ids, q, NULL, NULL, err);
    const uint64_t repair_start = base_clock_ns();
    if (!r && turn == 2 && b->restore)
        r = kv_session_repair(s, from, from + (uint32_t)q->ids.n, queries, q->n_queries, NULL, err);
    one->repair_ms = (double)(base_clock_ns() - repair_start) / 1e6;
    if (!r) r = append(s, KV_ORIGIN_SCAFFOLD, turn, &q->tail, NULL, NULL, logits, err);
    one->prefill_s = (double)(base_clock_ns() - start) / 1e9;
    one->cpu_s = cpu_seconds() - one->cpu_s;
    one->turn = turn;
    one->asked_up = asked_up(b, s, q, doc);
    one->n_targets = q->n_wanted;
    if (!r) {
        kv_session_get_stats(s, &stats);
        uint64_t layers = 0;
        one->cut = 0;
        for (uint32_t t = doc; t < doc + n_doc; t++) {
            const uint32_t cut = kv_session_cut(s, t);
            layers += cut ? cut : b->info->n_layer;
            if (cut) one->cut = cut;
        }
        one->work = (double)layers / ((double)n_doc * b->info->n_layer);
        one->deferred = stats.deferred_tokens;
        one->repaired = turn == 2 ? stats.computed_above - before.computed_above : 0;
        one->recovered = NAN;
        if (turn == 1 && b->full && one->cut)
            r = kv_session_attention_kept(b->full, s, one->cut, &one->recovered, NULL, err);
        if (!r && turn == 1 && !b->full && !strcmp(one->condition, "full"))
            r = kv_session_fork(s, &b->full, NULL, err);
        one->score_ms = stats.score_ms - before.score_ms;
        one->plan_ms = stats.plan_ms - before.plan_ms;
        /* The answer is written on a copy: the sequence goes on with the full session's (append_first_answer). */
        kv_session *copy = NULL;
        if (!r) r = kv_session_fork(s, &copy, NULL, err);
        if (!r) r = generate(b, copy, turn, q->n_new, logits, &answer, err);
        kv_session_free(copy);
    }
    if (!r) {
        ruler_found(q, answer.data ? answer.data : "", one->found);
        write_result(b, one, answer.data ? answer.data : "");
    }
    base_buf_free(&answer);
    return r;
}

/* What the full session answered stands in every condition's sequence, so that the later question differs in the cache alone. */
static int append_first_answer(bench *b, kv_session *s, const result *one, base_err *err)
{
    const result *full = full_of(b, one);
    const char *answer = full ? full->answer : one->answer;
    model_ids ids = {0};
    model_tokenizer_encode(model_get_tokenizer(b->model), answer, strlen(answer), false, &ids);
    int r = append(s, KV_ORIGIN_ANSWER, 1, &ids, NULL, NULL, NULL, err);
    model_ids_free(&ids);
    return r;
}

static int run_condition(
    bench *b, const struct condition *c, const ruler_item *item, result *key, float *logits, base_err *err)
{
    const model_template *template = model_get_template(b->model);
    kv_session *s = NULL;
    model_ids scaffold = {0};
    const kv_options o = {.policy = c->policy,
        .set = c->set,
        .repair = (int)b->restore,
        .heads_file = b->heads,
        .pivot_file = b->pivot_file};
    int r = kv_session_new(&s, b->model, &o, NULL, err);
    model_template_start(template, &scaffold);
    model_template_begin(template, MODEL_ROLE_USER, &scaffold);
    if (!r) r = append(s, KV_ORIGIN_SCAFFOLD, 1, &scaffold, NULL, NULL, NULL, err);
    const uint32_t doc = (uint32_t)scaffold.n;
    const uint64_t start = base_clock_ns();
    key->cpu_s = cpu_seconds();
    if (!r) r = append(s, KV_ORIGIN_CONTEXT, 1, &item->ids, NULL, item, NULL, err);
    if (!r) r = ask(b, s, &item->first, 1, doc, (uint32_t)item->ids.n, start, key, logits, err);
    if (!r && b->turns > 1) r = append_first_answer(b, s, key, err);
    if (!r && b->turns > 1) {
        kv_session_set_turn(s, 2);
        key->cpu_s = cpu_seconds();
        r = ask(b, s, &item->later, 2, doc, (uint32_t)item->ids.n, base_clock_ns(), key, logits, err);
    }
    kv_session_free(s);
    model_ids_free(&scaffold);
    return r;
}

static bool is_wanted(const char *words, char separator, const char *name)
{
    if (!words) return true;
    const char stop[] = {separator, 0};
    for (const char *word = words; *word;) {
        const size_t n = strcspn(word, stop);
        if (n && *word == '=' && !strncmp(word + 1, name, n - 1) && !name[n - 1]) return true;
        if (n && *word != '=' && !strncmp(word, name, n)) return true;
        word += n + (word[n] == separator);
    }
    return false;
}

static bool is_done(const bench *b, const result *key)
{
    for (size_t i = 0; i < b->n_results; i++)
        if (same_key(&b->results[i], key)) return true;
    return false;
}

/* All conditions of one item. */
static int run_item(bench *b, const char *task, uint32_t number, float *logits, base_err *err)
{
    ruler_item item;
    int r = 0;
    ruler_item_make(&item, model_get_tokenizer(b->model), model_get_template(b->model), &b->corpus, task,
        number + 1, (uint32_t)b->tokens);
    for (size_t i = 0; i < N_CONDITIONS && !r; i++) {
        result key = {.tokens = (uint32_t)b->tokens, .item = number, .turn = (uint32_t)b->turns};
        snprintf(key.model, sizeof key.model, "%.12s", b->info->hash);
        snprintf(key.task, sizeof key.task, "%s", task);
        snprintf(key.condition, sizeof key.condition, "%s", conditions[i].name);
        if (is_wanted(b->words, ';', conditions[i].name) && !is_done(b, &key))
            r = run_condition(b, &conditions[i], &item, &key, logits, err);
    }
    kv_session_free(b->full);
    b->full = NULL;
    ruler_item_free(&item);
    return r;
}

/* The pivot from a full prefill of one item, before anything is compared. */
static int find_pivot(bench *b, base_err *err)
{
    kv_session *s = NULL;
    ruler_item item;
    ruler_item_make(&item, model_get_tokenizer(b->model), model_get_template(b->model), &b->corpus, "mq", 100,
        (uint32_t)b->tokens);
    const char *const set[] = {"asked=8", NULL};
    const kv_options o = {.policy = "full", .set = set, .pivot_file = b->pivot_file};
    int r = kv_session_new(&s, b->model, &o, NULL, err);
    if (!r) r = append(s, KV_ORIGIN_CONTEXT, 1, &item.ids, NULL, &item, NULL, err);
    if (!r) r = append(s, KV_ORIGIN_USER, 1, &item.first.ids, &item.first, NULL, NULL, err);
    const uint64_t start = base_clock_ns();
    if (!r) r = kv_session_detect_pivot(s, NULL, err);
    if (!r) {
        uint32_t free_cut;
        const uint32_t cut = kv_pivot_cut(kv_session_pivot(s), .25, &free_cut);
        fprintf(stderr, "pivot: cut before layer %u of %u (T alone: %u), %.0f ms over %u rows\n", cut,
            b->info->n_layer, free_cut, (double)(base_clock_ns() - start) / 1e6, kv_session_pivot(s)->n_rows);
    }
    kv_session_free(s);
    ruler_item_free(&item);
    return r;
}

static int check_options(const bench *b, base_err *err)
{
    if (b->tokens < 600 || b->tokens > 100000 || b->items < 1 || b->items > 10000 || b->first < 0 ||
        b->first > 1000000 || b->turns < 1 || b->turns > 2 || b->restore < 0 || b->restore > 100000)
        return base_fail(err, BASE_E_USAGE, "--tokens is 600 to 100000, --items 1 to 10000, --turns 1 or 2");
    if (!b->corpus_folder)
        return base_fail(err, BASE_E_USAGE, "--corpus names a folder of code that the facts hide in");
    return 0;
}

static int run(bench *b, base_err *err)
{
    base_buf old = {0};
    int r = check_options(b, err);
    if (!r) r = bench_corpus_load(b->corpus_folder, &b->corpus, err);
    if (!r) r = bench_open_out(&b->file, b->out, b->resume, &old, err);
    if (!r) bench_each_line(&old, read_line, b);
    base_buf_free(&old);
    if (!r) r = cmd_open_model(&b->common, &b->model, err);
    if (r) return r;
    b->info = model_get_info(b->model);
    b->heads = kv_heads_path(b->info->hash);
    b->pivot_file = kv_pivot_path(b->info->hash);
    if (!base_fs_exists(b->heads))
        fputs(
            "kvist: this model's retrieval heads are not calibrated (kvist kv calibrate); all heads count\n",
            stderr);
    if (b->pivot || !base_fs_exists(b->pivot_file)) r = find_pivot(b, err);
    float *logits = base_xmalloc(b->info->n_vocab * sizeof *logits);
    for (int64_t i = 0; i < b->items && !r; i++)
        for (size_t t = 0; ruler_tasks[t] && !r; t++)
            if (is_wanted(b->tasks, ',', ruler_tasks[t]))
                r = run_item(b, ruler_tasks[t], (uint32_t)(b->first + i), logits, err);
    free(logits);
    return r;
}

int cmd_bench_structkv(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .tokens = 2048, .items = 5, .turns = 1, .restore = 96};
    const option_row own[] = {
        {"--corpus", OPTION_TEXT, &b.corpus_folder},
        {"--tokens", OPTION_INTEGER, &b.tokens},
        {"--items", OPTION_INTEGER, &b.items},
        {"--first", OPTION_INTEGER, &b.first},
        {"--turns", OPTION_INTEGER, &b.turns},
        {"--restore", OPTION_INTEGER, &b.restore},
        {"--tasks", OPTION_TEXT, &b.tasks},
        {"--conditions", OPTION_TEXT, &b.words},
        {"--out", OPTION_TEXT, &b.out},
        {"--resume", OPTION_FLAG, &b.resume},
        {"--summary", OPTION_TEXT, &b.summary},
        {"--pivot", OPTION_FLAG, &b.pivot},
        {"--help", OPTION_FLAG, &b.help},
        {.name = NULL},
    };
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &b.help, usage, NULL, &r)) return r;
    r = b.summary ? bench_read_lines(b.summary, read_line, &b, &err) : run(&b, &err);
    if (!r && (b.summary || b.out)) print_summary(&b);
    if (b.file && b.file != stdout) fclose(b.file);
    free(b.results);
    base_buf_free(&b.corpus);
    free(b.heads);
    free(b.pivot_file);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
