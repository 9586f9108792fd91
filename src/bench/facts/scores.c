/* Results of the benches over made-up documents; see bench/facts/scores.h. */
#include "bench/facts/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/common/result_file.h"
#include "bench/common/statistics.h"

/* --- lines ---------------------------------------------------------------------------------------------- */

void bench_score_clear(const bench_scores *s, bench_score *one)
{
    one->n_targets = 0;
    one->answer[0] = 0;
    for (size_t i = 0; i < s->n_numbers; i++) one->numbers[i] = NAN;
}

static void push(bench_scores *s, const bench_score *one)
{
    base_grow(&s->items, &s->cap, s->n + 1, sizeof *s->items);
    s->items[s->n++] = *one;
}

void bench_scores_add(bench_scores *s, const bench_score *one)
{
    base_buf out = {0};
    push(s, one);
    base_buf_printf(&out,
        "{\"bench\":\"%s\",\"model\":\"%s\",\"tokens\":%u,\"task\":\"%s\",\"item\":%u,\"turn\":%u,"
        "\"condition\":",
        s->name, one->model, one->tokens, one->task, one->item, one->turn);
    base_json_put_str(&out, one->condition, strlen(one->condition));
    base_buf_puts(&out, ",\"found\":[");
    for (uint32_t i = 0; i < one->n_targets; i++) base_buf_printf(&out, "%s%d", i ? "," : "", one->found[i]);
    base_buf_puts(&out, "]");
    for (size_t i = 0; i < s->n_numbers; i++)
        if (!s->numbers[i].of_full && !isnan(one->numbers[i]))
            base_buf_printf(&out, ",\"%s\":%.6g", s->numbers[i].name, one->numbers[i]);
    base_buf_puts(&out, ",\"answer\":");
    base_json_put_str(&out, one->answer, strlen(one->answer));
    base_buf_puts(&out, "}\n");
    fputs(out.data, s->out);
    fflush(s->out);
    base_buf_free(&out);
}

static void read_line(void *user, const base_json *o)
{
    bench_scores *s = user;
    const base_json *found = base_json_get(o, "found");
    bench_score one = {.tokens = (uint32_t)base_json_int(o, "tokens", 0),
        .item = (uint32_t)base_json_int(o, "item", 0),
        .turn = (uint32_t)base_json_int(o, "turn", 1)};
    bench_score_clear(s, &one);
    snprintf(one.model, sizeof one.model, "%s", base_json_str(o, "model", ""));
    snprintf(one.task, sizeof one.task, "%s", base_json_str(o, "task", ""));
    snprintf(one.condition, sizeof one.condition, "%s", base_json_str(o, "condition", ""));
    snprintf(one.answer, sizeof one.answer, "%s", base_json_str(o, "answer", ""));
    for (size_t i = 0; i < s->n_numbers; i++)
        if (!s->numbers[i].of_full) one.numbers[i] = base_json_num(o, s->numbers[i].name, NAN);
    for (size_t i = 0; found && i < found->n && i < BENCH_SCORE_TARGETS; i++, one.n_targets++)
        one.found[i] = base_json_at(found, i)->integer != 0;
    if (*one.condition) push(s, &one);
}

int bench_scores_open(bench_scores *s, const char *path, bool resume, base_err *err)
{
    base_buf old = {0};
    int r = bench_open_out(&s->out, path, resume, &old, err);
    if (!r) bench_each_result(&old, read_line, s);
    base_buf_free(&old);
    return r;
}

int bench_scores_read(bench_scores *s, const char *path, base_err *err)
{
    return bench_read_results(path, read_line, s, err);
}

void bench_scores_close(bench_scores *s)
{
    if (s->out && s->out != stdout) fclose(s->out);
    free(s->items);
}

/* --- tables --------------------------------------------------------------------------------------------- */

static bool same_item(const bench_score *a, const bench_score *b)
{
    return a->tokens == b->tokens && a->item == b->item && a->turn == b->turn &&
           !strcmp(a->model, b->model) && !strcmp(a->task, b->task);
}

const bench_score *bench_scores_find(const bench_scores *s, const bench_score *key, const char *condition)
{
    for (size_t i = 0; i < s->n; i++)
        if (same_item(&s->items[i], key) && !strcmp(s->items[i].condition, condition)) return &s->items[i];
    return NULL;
}

/* A table's items: those of one model, length and turn, and of one task or (task NULL) of all. */
typedef struct table {
    const bench_score *first;
    const char *task;
} table;

static bool is_in(const table *t, const bench_score *one)
{
    return one->tokens == t->first->tokens && one->turn == t->first->turn &&
           !strcmp(one->model, t->first->model) && (!t->task || !strcmp(one->task, t->task));
}

static bool is_in_row(const table *t, const bench_score *one, const char *condition)
{
    return is_in(t, one) && !strcmp(one->condition, condition);
}

static void print_number(FILE *out, double sum, uint32_t n, int digits)
{
    if (n)
        fprintf(out, " %.*f |", digits, sum / n);
    else
        fputs(" - |", out);
}

/* Facts that the one found and the other did not, over items that both have. */
static void print_pairs(
    const bench_scores *s, const table *t, const char *condition, const char *against, FILE *out)
{
    uint32_t lost = 0, won = 0, n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const bench_score *one = &s->items[i], *other = bench_scores_find(s, one, against);
        if (!is_in_row(t, one, condition) || !other) continue;
        for (uint32_t k = 0; k < one->n_targets && k < other->n_targets; k++, n++) {
            lost += other->found[k] && !one->found[k];
            won += one->found[k] && !other->found[k];
        }
    }
    if (n && strcmp(condition, against))
        fprintf(out, " -%u +%u of %u, p %.2g |", lost, won, n, bench_mcnemar(lost, won));
    else
        fputs(" - |", out);
}

static void print_row(
    const bench_scores *s, const table *t, const char *condition, const char *against, FILE *out)
{
    uint32_t n = 0, right = 0, items = 0, counts[BENCH_NUMBERS] = {0};
    double sums[BENCH_NUMBERS] = {0}, of_full[BENCH_NUMBERS] = {0}, low, high;
    for (size_t i = 0; i < s->n; i++) {
        const bench_score *one = &s->items[i];
        if (!is_in_row(t, one, condition)) continue;
        const bench_score *full = bench_scores_find(s, one, "full");
        items++;
        n += one->n_targets;
        for (uint32_t k = 0; k < one->n_targets; k++) right += one->found[k];
        for (size_t k = 0; k < s->n_numbers; k++) {
            size_t j = k; /* whose numbers the column is of */
            for (size_t l = 0; l < s->n_numbers && s->numbers[k].of_full; l++)
                if (!strcmp(s->numbers[l].name, s->numbers[k].of_full)) j = l;
            if (isnan(one->numbers[j]) || (j != k && (!full || isnan(full->numbers[j])))) continue;
            sums[k] += one->numbers[j];
            of_full[k] += j != k ? full->numbers[j] : 0;
            counts[k]++;
        }
    }
    bench_wilson(right, n, &low, &high);
    fprintf(out, "| %s | %u |", condition, items);
    if (n)
        fprintf(out, " %u/%u | %.3f [%.3f, %.3f] |", right, n, (double)right / n, low, high);
    else
        fputs(" - | - |", out);
    print_pairs(s, t, condition, "full", out);
    if (against) print_pairs(s, t, condition, against, out);
    for (size_t k = 0; k < s->n_numbers; k++)
        if (s->numbers[k].of_full)
            print_number(out, sums[k] > 0 ? of_full[k] / sums[k] : 0, sums[k] > 0, s->numbers[k].digits);
        else if (s->numbers[k].title)
            print_number(out, sums[k], counts[k], s->numbers[k].digits);
    fputc('\n', out);
}

static void print_table(const bench_scores *s, const table *t, const char *against, FILE *out)
{
    size_t n_columns = against ? 6 : 5;
    fprintf(out,
        "\n%s, %s, %u tokens, turn %u\n\n| condition | items | found | share [95%%] | against full |",
        t->first->model, t->task ? t->task : "all tasks", t->first->tokens, t->first->turn);
    if (against) fprintf(out, " against %s |", against);
    for (size_t k = 0; k < s->n_numbers; k++)
        if (s->numbers[k].title) {
            fprintf(out, " %s |", s->numbers[k].title);
            n_columns++;
        }
    fputs("\n|", out);
    for (size_t k = 0; k < n_columns; k++) fputs("---|", out);
    fputc('\n', out);
    for (size_t i = 0; i < s->n; i++) {
        bool is_new = is_in(t, &s->items[i]);
        for (size_t j = 0; j < i && is_new; j++) is_new = !is_in_row(t, &s->items[j], s->items[i].condition);
        if (is_new) print_row(s, t, s->items[i].condition, against, out);
    }
}

void bench_scores_print(const bench_scores *s, const char *against, FILE *out)
{
    for (int together = 0; together < 2; together++)
        for (size_t i = 0; i < s->n; i++) {
            const table t = {.first = &s->items[i], .task = together ? NULL : s->items[i].task};
            bool is_new = true, mixed = !together;
            for (size_t j = 0; j < i && is_new; j++) is_new = !is_in(&t, &s->items[j]);
            for (size_t j = i; j < s->n && !mixed; j++)
                mixed = is_in(&t, &s->items[j]) && strcmp(s->items[j].task, t.first->task) != 0;
            if (is_new && mixed) print_table(s, &t, against, out);
        }
}
