/*
 * kvist bench decode: what choosing the rows of each step costs and keeps. Each item is a document with facts in it and a question
 * (bench_ruler.h); document and question are computed once, in full, and each condition answers in a fork of that session. Beside the
 * answer stand three numbers that need no right answer: how much of the full attention's mass fell on what was read, and, over a passage
 * of the document that is written once more, token by token as it stands there, how far the distributions are from the full cache's.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench_haystack.h"
#include "bench_result.h"
#include "bench_ruler.h"
#include "cmd.h"
#include "kv/heads.h"
#include "kv/session.h"
#include "options.h"

static const char usage[] =
    "usage: kvist bench decode --model M --corpus FOLDER [--tokens N] [--items N] [--tasks WORD,...]\n"
    "                          [--conditions \"WORD;...\"] [--copy N] [--out FILE [--resume]]\n"
    "       kvist bench decode --summary FILE\n"
    "\n"
    "  --corpus FOLDER     code and prose that facts hide in\n"
    "  --tokens N          length of each document (4096)\n"
    "  --items N           how many of each task (5)\n"
    "  --first N           the first item's number (0)\n"
    "  --tasks W,...       mk2, mk3 (one key among many), vt (variables), mq (four keys in text) (all)\n"
    "  --conditions W;...  those whose name begins with a word of these, or, behind a \"=\", is it (all)\n"
    "  --copy N            tokens of the passage that is written once more; 0: none (32)\n"
    "  --out FILE          results as JSON lines; --resume goes on in one that has some\n"
    "  --summary FILE      no model: the tables of such a file\n"
    "\n";

/* Shares are of all active rows, so budgets are the same for every policy; in full layers quest reads more, and that is counted. */
#define ALONE "least_read=0"
static const struct condition {
    const char *name, *policy;
    const char *set[6];
    double first; /* no answer: how well a repair's first pass at this share finds what an exact one would */
} conditions[] = {
    {.name = "full", .policy = "full"},
    {.name = "sentkv 5%", .policy = "sentkv", .set = {ALONE, "usage=.05"}},
    {.name = "sentkv 10%", .policy = "sentkv", .set = {ALONE, "usage=.1"}},
    {.name = "sentkv 20%", .policy = "sentkv", .set = {ALONE, "usage=.2"}},
    {.name = "sentkv 10%, dense 2", .policy = "sentkv", .set = {ALONE, "usage=.1", "dense=2"}},
    {.name = "sentkv 10%, no ends", .policy = "sentkv", .set = {ALONE, "usage=.1", "reach=0"}},
    {.name = "ours 5%", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.05"}},
    {.name = "ours 10%", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.1"}},
    {.name = "ours 20%", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.2"}},
    {.name = "ours 10%, dense 2", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.1", "dense=2"}},
    {.name = "ours 10%, length 8",
        .policy = "sentkv",
        .set = {ALONE, "slack=.25", "usage=.1", "length=8", "reach=5"}},
    {.name = "ours 10%, even", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.1", "even=1"}},
    {.name = "ours 10%, no ends", .policy = "sentkv", .set = {ALONE, "slack=.25", "usage=.1", "reach=0"}},
    {.name = "ours 10%, slack 0", .policy = "sentkv", .set = {ALONE, "slack=0", "usage=.1"}},
    {.name = "ours 10%, slack .5", .policy = "sentkv", .set = {ALONE, "slack=.5", "usage=.1"}},
    {.name = "quest 5%", .policy = "quest", .set = {ALONE, "usage=.05"}},
    {.name = "quest 10%", .policy = "quest", .set = {ALONE, "usage=.1"}},
    {.name = "quest 20%", .policy = "quest", .set = {ALONE, "usage=.2"}},
    {.name = "quest 10%, dense 0", .policy = "quest", .set = {ALONE, "usage=.1", "dense=0"}},
    {.name = "first pass 2%", .policy = "full", .first = .02},
    {.name = "first pass 5%", .policy = "full", .first = .05},
    {.name = "first pass 10%", .policy = "full", .first = .1},
    {.name = "first pass 25%", .policy = "full", .first = .25},
};
enum {
    FIRST_ROWS = 96,
    N_CONDITIONS = sizeof conditions / sizeof *conditions,
    COPY_LEAD = 16,
    COPY_MOST = 512
};

/* One condition's answer to one item. NAN: not measured. */
typedef struct result {
    char model[16], task[8], condition[48];
    uint32_t tokens, item, n_targets;
    bool found[RULER_WANTED];
    double read, reused; /* of active rows; of chosen ones, those that the step before read too */
    double mass;         /* of the full attention's, mean over the answer's tokens and the lanes that chose */
    double kl, agree,
        loss; /* of the passage: mean KL to the full cache, share of equal best ids, mean -log p */
    double choose_ms, step_ms; /* a token */
    double recall, exact_ms,
        first_ms; /* first pass: of the FIRST_ROWS rows that exact scores want most; times of both */
} result;

typedef struct bench {
    common_options common;
    int64_t tokens, items, first, copy;
    const char *corpus_folder, *tasks, *words, *out, *summary;
    bool resume, help;
    model *model;
    const model_info *info;
    base_buf corpus;
    result *results;
    size_t n_results, cap_results;
    FILE *file;
    float *logits, *full; /* [n_vocab]; [copy][n_vocab] log p of the full cache along the passage */
} bench;

/* --- results ---------------------------------------------------------------------------------------------------------------- */

static bool same_cell(const result *a, const result *b)
{
    return a->tokens == b->tokens && !strcmp(a->model, b->model) && !strcmp(a->task, b->task);
}

static bool same_row(const result *a, const result *b)
{
    return same_cell(a, b) && !strcmp(a->condition, b->condition);
}

static const result *find(const bench *b, const result *key, const char *condition)
{
    for (size_t i = 0; i < b->n_results; i++)
        if (same_cell(&b->results[i], key) && b->results[i].item == key->item &&
            !strcmp(b->results[i].condition, condition))
            return &b->results[i];
    return NULL;
}

static void push(bench *b, const result *one)
{
    base_grow(&b->results, &b->cap_results, b->n_results + 1, sizeof *b->results);
    b->results[b->n_results++] = *one;
}

static const struct {
    const char *name;
    size_t offset;
} numbers[] = {{"read", offsetof(result, read)}, {"reused", offsetof(result, reused)},
    {"mass", offsetof(result, mass)}, {"kl", offsetof(result, kl)}, {"agree", offsetof(result, agree)},
    {"loss", offsetof(result, loss)}, {"choose_ms", offsetof(result, choose_ms)},
    {"step_ms", offsetof(result, step_ms)}, {"recall", offsetof(result, recall)},
    {"exact_ms", offsetof(result, exact_ms)}, {"first_ms", offsetof(result, first_ms)}};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static double number_of(const result *r, size_t i)
{
    double x;
    memcpy(&x, (const char *)r + numbers[i].offset, sizeof x);
    return x;
}

static void write_result(bench *b, const result *one, const char *answer)
{
    base_buf out = {0};
    push(b, one);
    base_buf_printf(&out,
        "{\"bench\":\"decode\",\"model\":\"%s\",\"tokens\":%u,\"task\":\"%s\",\"item\":%u,\"condition\":",
        one->model, one->tokens, one->task, one->item);
    base_json_put_str(&out, one->condition, strlen(one->condition));
    base_buf_puts(&out, ",\"found\":[");
    for (uint32_t i = 0; i < one->n_targets; i++) base_buf_printf(&out, "%s%d", i ? "," : "", one->found[i]);
    base_buf_puts(&out, "]");
    for (size_t i = 0; i < N_NUMBERS; i++)
        if (!isnan(number_of(one, i)))
            base_buf_printf(&out, ",\"%s\":%.5g", numbers[i].name, number_of(one, i));
    base_buf_puts(&out, ",\"answer\":");
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
        .tokens = (uint32_t)base_json_int(o, "tokens", 0), .item = (uint32_t)base_json_int(o, "item", 0)};
    snprintf(one.model, sizeof one.model, "%s", base_json_str(o, "model", ""));
    snprintf(one.task, sizeof one.task, "%s", base_json_str(o, "task", ""));
    snprintf(one.condition, sizeof one.condition, "%s", base_json_str(o, "condition", ""));
    for (size_t i = 0; i < N_NUMBERS; i++) {
        const double x = base_json_num(o, numbers[i].name, NAN);
        memcpy((char *)&one + numbers[i].offset, &x, sizeof x);
    }
    for (size_t i = 0; found && i < found->n && i < RULER_WANTED; i++, one.n_targets++)
        one.found[i] = base_json_at(found, i)->integer != 0;
    if (*one.condition) push(b, &one);
    base_json_free(doc);
}

static void print_row(const bench *b, const result *first)
{
    uint32_t n = 0, right = 0, items = 0, lost = 0, won = 0, counts[N_NUMBERS] = {0};
    double sums[N_NUMBERS] = {0}, low, high;
    for (size_t i = 0; i < b->n_results; i++) {
        const result *one = &b->results[i], *full = find(b, one, "full");
        if (!same_row(one, first)) continue;
        items++;
        for (uint32_t t = 0; t < one->n_targets; t++) {
            n++;
            right += one->found[t];
            lost += full && full->found[t] && !one->found[t];
            won += full && !full->found[t] && one->found[t];
        }
        for (size_t k = 0; k < N_NUMBERS; k++)
            if (!isnan(number_of(one, k))) {
                sums[k] += number_of(one, k);
                counts[k]++;
            }
    }
    bench_wilson(right, n, &low, &high);
    printf("| %s | %u | %u/%u | %.3f [%.3f, %.3f] | %u, %u, p %.2g |", first->condition, items, right, n,
        n ? (double)right / n : NAN, low, high, lost, won, bench_mcnemar(lost, won));
    for (size_t k = 0; k < N_NUMBERS; k++)
        if (counts[k])
            printf(" %.3f |", sums[k] / counts[k]);
        else
            printf(" - |");
    putchar('\n');
}

static void print_summary(const bench *b)
{
    for (size_t i = 0; i < b->n_results; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i && is_new; j++) is_new = !same_cell(&b->results[j], &b->results[i]);
        if (!is_new) continue;
        printf("\n%s, %s, %u tokens\n\n| condition | items | found | share [95%%] | lost, won against full | "
               "read | "
               "reused | mass | KL of the passage | same best | loss | choosing, ms | step, ms | recall | "
               "exact, ms | first pass, ms |\n"
               "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
            b->results[i].model, b->results[i].task, b->results[i].tokens);
        for (size_t c = 0; c < N_CONDITIONS; c++)
            for (size_t j = i; j < b->n_results; j++)
                if (same_cell(&b->results[j], &b->results[i]) &&
                    !strcmp(b->results[j].condition, conditions[c].name)) {
                    print_row(b, &b->results[j]);
                    break;
                }
    }
}

/* --- one item under one condition ------------------------------------------------------------------------------------------- */

static int append(kv_session *s, kv_origin origin, const int32_t *ids, size_t n, const ruler_item *item,
    float *logits, base_err *err)
{
    const bool is_question = origin == KV_ORIGIN_USER;
    const kv_segment g = {.origin = origin,
        .turn = 1,
        .queries = item && is_question ? item->first.queries : NULL,
        .n_queries = item && is_question ? item->first.n_queries : 0,
        .lines = item && !is_question ? item->lines : NULL,
        .n_lines = item && !is_question ? item->n_lines : 0};
    return kv_session_append(s, &g, ids, (uint32_t)n, logits, NULL, NULL, err);
}

static int32_t best_of(const float *logits, uint32_t n)
{
    int32_t id = 0;
    for (uint32_t v = 1; v < n; v++)
        if (logits[v] > logits[id]) id = (int32_t)v;
    return id;
}

/* A fork under the condition. */
static int open_fork(const kv_session *whole, const struct condition *c, kv_session **ret, base_err *err)
{
    const kv_options o = {.policy = c->policy, .set = c->set};
    int r = kv_session_fork(whole, ret, NULL, err);
    if (!r) r = kv_session_set_policy(*ret, &o, err);
    return r;
}

/* Greedy, until the answer ends. logits: behind the question's tail. */
static int answer_item(bench *b, const kv_session *asked, const float *logits, const ruler_item *item,
    const struct condition *c, result *one, base_buf *answer, base_err *err)
{
    const model_tokenizer *t = model_get_tokenizer(b->model);
    kv_session *s = NULL;
    double mass = 0;
    uint32_t n_mass = 0, n = 0;
    int r = open_fork(asked, c, &s, err);
    memcpy(b->logits, logits, b->info->n_vocab * sizeof *b->logits);
    uint64_t ns = 0;
    while (n < item->first.n_new && !r) {
        const int32_t id = best_of(b->logits, b->info->n_vocab);
        size_t n_piece = 0;
        if (model_tokenizer_is_end(t, id)) break;
        const char *piece = model_tokenizer_piece(t, id, &n_piece);
        if (piece) base_buf_add(answer, piece, n_piece);
        const uint64_t start = base_clock_ns();
        r = append(s, KV_ORIGIN_ANSWER, &id, 1, NULL, b->logits, err);
        ns += base_clock_ns() - start;
        if (!r && n % 8 == 4 && strcmp(c->policy, "full")) {
            double share = 0;
            r = kv_session_recovered(s, &share, NULL, err);
            mass += share;
            n_mass++;
        }
        n++;
    }
    kv_stats stats;
    if (!r) {
        kv_session_get_stats(s, &stats);
        const kv_reads *reads = &stats.reads;
        one->n_targets = item->first.n_wanted;
        ruler_found(&item->first, answer->data ? answer->data : "", one->found);
        one->read = reads->live ? (double)reads->read / (double)reads->live : 1;
        one->reused = reads->chosen ? (double)reads->kept / (double)reads->chosen : NAN;
        one->mass = n_mass ? mass / n_mass : NAN;
        one->choose_ms = reads->steps ? (double)reads->ns / 1e6 / (double)reads->steps : NAN;
        one->step_ms = n ? ((double)ns - (double)reads->profile_ns) / 1e6 / n : NAN;
    }
    kv_session_free(s);
    return r;
}

/* logits -> log p */
static void normalise(float *x, uint32_t n)
{
    double most = -INFINITY, sum = 0;
    for (uint32_t v = 0; v < n; v++) most = x[v] > most ? x[v] : most;
    for (uint32_t v = 0; v < n; v++) sum += exp(x[v] - most);
    for (uint32_t v = 0; v < n; v++) x[v] = (float)(x[v] - most - log(sum));
}

/* The document's passage that begins a third into it, written behind the document as an answer. */
static int copy_passage(bench *b, const kv_session *document, const ruler_item *item,
    const struct condition *c, result *one, base_err *err)
{
    const uint32_t n_vocab = b->info->n_vocab, n = (uint32_t)b->copy, from = (uint32_t)(item->ids.n / 3);
    const int32_t *ids = item->ids.ids + from;
    const bool is_full = !strcmp(c->name, "full");
    kv_session *s = NULL;
    double kl = 0, loss = 0;
    uint32_t agree = 0;
    int r = open_fork(document, c, &s, err);
    for (uint32_t i = 0; i < COPY_LEAD + n - 1 && !r; i++) {
        float *logits = i + 1 < COPY_LEAD ? NULL
                        : is_full         ? b->full + (size_t)(i + 1 - COPY_LEAD) * n_vocab
                                          : b->logits;
        r = append(s, KV_ORIGIN_ANSWER, &ids[i], 1, NULL, logits, err);
        if (r || !logits) continue;
        const float *full = b->full + (size_t)(i + 1 - COPY_LEAD) * n_vocab;
        normalise(logits, n_vocab);
        for (uint32_t v = 0; v < n_vocab; v++) kl += exp(full[v]) * (full[v] - logits[v]);
        agree += best_of(full, n_vocab) == best_of(logits, n_vocab);
        loss -= logits[ids[i + 1]];
    }
    kv_session_free(s);
    one->kl = kl / n;
    one->agree = (double)agree / n;
    one->loss = loss / n;
    return r;
}

/* What a repair by the question would bring back, with a first pass and without. */
static int try_first(bench *b, const kv_session *asked, const ruler_item *item, const struct condition *c,
    result *one, base_err *err)
{
    kv_session *s = NULL;
    kv_stats stats;
    double ms[2] = {NAN, NAN};
    uint32_t queries[RULER_QUERIES];
    int r = kv_session_fork(asked, &s, NULL, err);
    if (r) return r;
    char *heads = kv_heads_path(b->info->hash);
    r = kv_session_set_policy(s, &(kv_options){.policy = "full", .heads_file = heads}, err);
    kv_session_get_stats(s, &stats);
    const uint32_t to = stats.n_tokens - (uint32_t)item->first.tail.n,
                   from = to - (uint32_t)item->first.ids.n;
    for (uint32_t i = 0; i < item->first.n_queries; i++) queries[i] = from + item->first.queries[i];
    if (!r)
        r = kv_session_first_recall(
            s, from, to, queries, item->first.n_queries, c->first, FIRST_ROWS, &one->recall, ms, NULL, err);
    one->exact_ms = ms[0];
    one->first_ms = ms[1];
    kv_session_free(s);
    free(heads);
    return r;
}

/* --- items ------------------------------------------------------------------------------------------------------------------ */

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

static bool is_task(const char *list, const char *task)
{
    const size_t n = strlen(task);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !strncmp(at, task, n)) return true;
    return !list;
}

/* full goes first, whoever asks for it: the others are compared with it. */
static int run_conditions(bench *b, const kv_session *document, const kv_session *asked, const float *logits,
    const ruler_item *item, result *key, base_err *err)
{
    int r = 0;
    for (size_t c = 0; c < N_CONDITIONS && !r; c++) {
        base_buf answer = {0};
        const bool is_left = is_wanted(b, conditions[c].name) && !find(b, key, conditions[c].name);
        result one = *key;
        if (c && !is_left) continue;
        snprintf(one.condition, sizeof one.condition, "%s", conditions[c].name);
        const double none = NAN;
        for (size_t i = 0; i < N_NUMBERS; i++) memcpy((char *)&one + numbers[i].offset, &none, sizeof none);
        if (conditions[c].first > 0) {
            r = try_first(b, asked, item, &conditions[c], &one, err);
            if (!r) write_result(b, &one, "");
            continue;
        }
        if (b->copy) r = copy_passage(b, document, item, &conditions[c], &one, err);
        if (!r && is_left) r = answer_item(b, asked, logits, item, &conditions[c], &one, &answer, err);
        if (!r && is_left) write_result(b, &one, answer.data ? answer.data : "");
        base_buf_free(&answer);
    }
    return r;
}

static int run_item(bench *b, const char *task, int64_t number, base_err *err)
{
    const model_template *template = model_get_template(b->model);
    ruler_item item;
    model_ids before = {0};
    kv_session *document = NULL, *asked = NULL;
    result key = {.tokens = (uint32_t)b->tokens, .item = (uint32_t)number};
    snprintf(key.model, sizeof key.model, "%.12s", b->info->hash);
    snprintf(key.task, sizeof key.task, "%s", task);
    bool left = false;
    for (size_t c = 0; c < N_CONDITIONS; c++)
        left = left || (is_wanted(b, conditions[c].name) && !find(b, &key, conditions[c].name));
    if (!left) return 0;
    ruler_item_make(&item, model_get_tokenizer(b->model), template, &b->corpus, task, (uint64_t)number + 1,
        (uint32_t)b->tokens);
    model_template_start(template, &before);
    model_template_begin(template, MODEL_ROLE_USER, &before);
    float *logits = base_xcalloc(b->info->n_vocab, sizeof *logits);
    const uint64_t start = base_clock_ns();
    int r = kv_session_new(&document, b->model, &(kv_options){.policy = "full"}, NULL, err);
    if (!r) r = append(document, KV_ORIGIN_SCAFFOLD, before.ids, before.n, NULL, NULL, err);
    if (!r) r = append(document, KV_ORIGIN_CONTEXT, item.ids.ids, item.ids.n, &item, NULL, err);
    if (!r) r = kv_session_fork(document, &asked, NULL, err);
    if (!r) r = append(asked, KV_ORIGIN_USER, item.first.ids.ids, item.first.ids.n, &item, NULL, err);
    if (!r) r = append(asked, KV_ORIGIN_SCAFFOLD, item.first.tail.ids, item.first.tail.n, NULL, logits, err);
    fprintf(stderr, "%s %lld: %zu tokens computed in %.1f s\n", task, (long long)number, item.ids.n,
        (double)(base_clock_ns() - start) / 1e9);
    if (!r) r = run_conditions(b, document, asked, logits, &item, &key, err);
    kv_session_free(asked);
    kv_session_free(document);
    free(logits);
    model_ids_free(&before);
    ruler_item_free(&item);
    return r;
}

static int run(bench *b, base_err *err)
{
    base_buf old = {0};
    if (!b->corpus_folder) return base_fail(err, BASE_E_USAGE, "--corpus names a folder of code and prose");
    if (b->tokens < 512 || b->tokens > 100000 || b->items < 1 || b->items > 100000 || b->first < 0 ||
        b->first > 1000000 || b->copy < 0 || b->copy > COPY_MOST)
        return base_fail(
            err, BASE_E_USAGE, "--tokens is 512 to 100000, --items 1 to 100000, --copy 0 to %d", COPY_MOST);
    int r = bench_corpus_load(b->corpus_folder, &b->corpus, err);
    if (!r) r = bench_open_out(&b->file, b->out, b->resume, &old, err);
    if (!r) bench_each_line(&old, read_line, b);
    if (!r) r = cmd_open_model(&b->common, &b->model, err);
    base_buf_free(&old);
    if (r) return r;
    b->info = model_get_info(b->model);
    b->logits = base_xcalloc(b->info->n_vocab, sizeof *b->logits);
    b->full = base_xcalloc((size_t)b->copy * b->info->n_vocab + 1, sizeof *b->full);
    for (int64_t i = 0; i < b->items && !r; i++)
        for (size_t t = 0; ruler_tasks[t] && !r; t++)
            if (is_task(b->tasks, ruler_tasks[t])) r = run_item(b, ruler_tasks[t], b->first + i, err);
    return r;
}

int cmd_bench_decode(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .tokens = 4096, .items = 5, .copy = 32};
    const option_row own[] = {
        {"--corpus", OPTION_TEXT, &b.corpus_folder},
        {"--tokens", OPTION_INTEGER, &b.tokens},
        {"--items", OPTION_INTEGER, &b.items},
        {"--first", OPTION_INTEGER, &b.first},
        {"--tasks", OPTION_TEXT, &b.tasks},
        {"--conditions", OPTION_TEXT, &b.words},
        {"--copy", OPTION_INTEGER, &b.copy},
        {"--out", OPTION_TEXT, &b.out},
        {"--resume", OPTION_FLAG, &b.resume},
        {"--summary", OPTION_TEXT, &b.summary},
        {"--help", OPTION_FLAG, &b.help},
        {.name = NULL},
    };
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &b.help, usage, NULL, &r)) return r;
    r = b.summary ? bench_read_lines(b.summary, read_line, &b, &err) : run(&b, &err);
    if (!r && (b.summary || b.out)) print_summary(&b);
    if (b.file && b.file != stdout) fclose(b.file);
    base_buf_free(&b.corpus);
    free(b.results);
    free(b.logits);
    free(b.full);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
