/* Results after RepairKV's protocol; see bench/recall/recall_result.h. */
#include "bench/recall/recall_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/common/result_file.h"
#include "bench/common/statistics.h"

static void push(bench_results *r, const bench_result *one)
{
    base_grow(&r->items, &r->cap, r->n + 1, sizeof *r->items);
    r->items[r->n++] = *one;
}

static void read_line(void *user, const base_json *o)
{
    bench_results *r = user;
    const base_json *found = base_json_get(o, "found");
    bench_result one = {
        .tokens = (uint32_t)base_json_int(o, "tokens", 0),
        .needles = (uint32_t)base_json_int(o, "needles", 0),
        .base = (uint32_t)base_json_int(o, "base", 0),
        .text = (uint32_t)base_json_int(o, "text", 0),
        .k = (uint32_t)base_json_int(o, "k", 0),
        .before = base_json_num(o, "asked_before", NAN),
        .after = base_json_num(o, "asked_after", NAN),
        .active = base_json_num(o, "active", NAN),
        .host = base_json_num(o, "host", NAN),
        .score_ms = base_json_num(o, "score_ms", NAN),
        .plan_ms = base_json_num(o, "plan_ms", NAN),
    };
    snprintf(one.model, sizeof one.model, "%s", base_json_str(o, "model", ""));
    snprintf(one.split, sizeof one.split, "%s", base_json_str(o, "split", ""));
    snprintf(one.condition, sizeof one.condition, "%s", base_json_str(o, "condition", ""));
    for (size_t i = 0; found && i < found->n && i < BENCH_TARGETS; i++, one.n_targets++)
        one.found[i] = base_json_at(found, i)->integer != 0;
    const base_json *ranks = base_json_get(o, "ranks");
    for (size_t i = 0; ranks && i < ranks->n && i < BENCH_TARGETS; i++, one.n_ranks++)
        one.ranks[i] = (uint32_t)base_json_at(ranks, i)->integer;
    if (*one.condition && one.n_targets) push(r, &one);
}

int bench_results_read(bench_results *r, const char *path, base_err *err)
{
    *r = (bench_results){.n = 0};
    return bench_read_results(path, read_line, r, err);
}

int bench_results_open(bench_results *r, const char *name, const char *path, bool resume, base_err *err)
{
    *r = (bench_results){.name = name};
    base_buf old = {0};
    int e = bench_open_out(&r->out, path, resume, &old, err);
    if (!e) bench_each_result(&old, read_line, r);
    base_buf_free(&old);
    return e;
}

void bench_results_close(bench_results *r)
{
    if (r->out && r->out != stdout) fclose(r->out);
    free(r->items);
}

const bench_result *bench_results_find(const bench_results *r, const bench_result *key, bool any_k)
{
    for (size_t i = 0; i < r->n; i++) {
        const bench_result *one = &r->items[i];
        if (one->tokens == key->tokens && one->needles == key->needles && one->base == key->base &&
            one->text == key->text && (any_k || one->k == key->k) && !strcmp(one->split, key->split) &&
            !strcmp(one->condition, key->condition) && !strcmp(one->model, key->model))
            return one;
    }
    return NULL;
}

void bench_results_add(bench_results *r, const bench_result *one, const char *answer)
{
    push(r, one);
    if (!r->out) return;
    base_buf out = {0};
    base_buf_printf(&out,
        "{\"bench\":\"%s\",\"model\":\"%s\",\"tokens\":%u,\"needles\":%u,\"base\":%u,\"text\":%u,\"split\":"
        "\"%s\","
        "\"k\":%u,",
        r->name ? r->name : "", one->model, one->tokens, one->needles, one->base, one->text, one->split,
        one->k);
    base_buf_puts(&out, "\"condition\":");
    base_json_put_str(&out, one->condition, strlen(one->condition));
    base_buf_puts(&out, ",\"found\":[");
    for (uint32_t i = 0; i < one->n_targets; i++) base_buf_printf(&out, "%s%d", i ? "," : "", one->found[i]);
    base_buf_printf(&out,
        "],\"asked_before\":%.3f,\"asked_after\":%.3f,\"active\":%.1f,\"host\":%.1f,\"score_ms\":%.2f,\"plan_"
        "ms\":%.2f",
        one->before, one->after, one->active, one->host, one->score_ms, one->plan_ms);
    for (uint32_t i = 0; i < one->n_ranks; i++)
        base_buf_printf(
            &out, "%s%u%s", i ? "," : ",\"ranks\":[", one->ranks[i], i + 1 < one->n_ranks ? "" : "]");
    if (answer) {
        base_buf_puts(&out, ",\"answer\":");
        base_json_put_str(&out, answer, strlen(answer));
    }
    base_buf_puts(&out, "}\n");
    fputs(out.data, r->out);
    fflush(r->out);
    base_buf_free(&out);
}

static bool same_cell(const bench_result *a, const bench_result *b)
{
    return a->tokens == b->tokens && a->needles == b->needles && a->base == b->base && a->k == b->k &&
           !strcmp(a->model, b->model);
}

static const bench_result *pair_of(const bench_results *r, const bench_result *one, const char *condition)
{
    for (size_t i = 0; i < r->n; i++)
        if (same_cell(&r->items[i], one) && r->items[i].text == one->text &&
            !strcmp(r->items[i].split, one->split) && !strcmp(r->items[i].condition, condition))
            return &r->items[i];
    return NULL;
}

/* "3 (17)": the middle and the worst of the best ranks of the facts that a condition was asked for. */
static void print_ranks(const bench_results *r, const bench_result *first, char *ret, size_t size)
{
    double *ranks = base_xcalloc(r->n * BENCH_TARGETS + 1, sizeof *ranks);
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const bench_result *one = &r->items[i];
        if (!same_cell(one, first) || strcmp(one->condition, first->condition)) continue;
        for (uint32_t k = 0; k < one->n_ranks; k++) ranks[n++] = one->ranks[k];
    }
    qsort(ranks, n, sizeof *ranks, bench_compare_doubles);
    if (n)
        snprintf(ret, size, "%.0f (%.0f)", ranks[n / 2], ranks[n - 1]);
    else
        snprintf(ret, size, "-");
    free(ranks);
}

/* One row of the table: everything of first's cell and condition, paired with `matched` on the same store. */
static void print_row(const bench_results *r, const bench_result *first, FILE *out)
{
    const char *matched = strncmp(first->condition, "snapkv", 6) ? "matched" : "snapkv matched";
    uint32_t n = 0, right = 0, better = 0, worse = 0, examples = 0;
    double before = 0, after = 0, active = 0, score = 0, plan = 0, low, high;
    for (size_t i = 0; i < r->n; i++) {
        const bench_result *one = &r->items[i];
        if (!same_cell(one, first) || strcmp(one->condition, first->condition)) continue;
        const bench_result *pair = pair_of(r, one, matched);
        examples++;
        for (uint32_t t = 0; t < one->n_targets; t++) {
            n++;
            right += one->found[t];
            better += pair && one->found[t] && !pair->found[t];
            worse += pair && !one->found[t] && pair->found[t];
        }
        before += one->before;
        after += one->after;
        active += one->active;
        score += one->score_ms;
        plan += one->plan_ms;
    }
    char ranks[32];
    bench_wilson(right, n, &low, &high);
    print_ranks(r, first, ranks, sizeof ranks);
    fprintf(out,
        "| %s | %u | %u/%u | %.3f [%.3f, %.3f] | %.2f -> %.2f | %s | %.0f | %.1f + %.1f | %+d %.2g |\n",
        first->condition, examples, right, n, (double)right / n, low, high, before / examples,
        after / examples, ranks, active / examples, score / examples, plan / examples,
        (int)better - (int)worse, bench_mcnemar(better, worse));
}

void bench_results_print(const bench_results *r, FILE *out)
{
    for (size_t i = 0; i < r->n; i++) {
        bool new_cell = true, new_row = true;
        for (size_t j = 0; j < i; j++) {
            new_cell = new_cell && !same_cell(&r->items[j], &r->items[i]);
        }
        if (!new_cell) continue;
        fprintf(out,
            "\n%s, %u tokens, %u needles, B = %u%%, K = %u\n\n"
            "| condition | examples | found | share [95%%] | asked rows active | best "
            "rank: middle (worst) | active rows | score + plan, ms | over matched, p |\n"
            "|---|---|---|---|---|---|---|---|---|\n",
            r->items[i].model, r->items[i].tokens, r->items[i].needles, r->items[i].base, r->items[i].k);
        for (size_t k = i; k < r->n; k++) {
            if (!same_cell(&r->items[k], &r->items[i])) continue;
            new_row = true;
            for (size_t j = i; j < k && new_row; j++)
                new_row = !(same_cell(&r->items[j], &r->items[k]) &&
                            !strcmp(r->items[j].condition, r->items[k].condition));
            if (new_row) print_row(r, &r->items[k], out);
        }
    }
}
