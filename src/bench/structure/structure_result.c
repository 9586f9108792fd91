/*
 * Result lines of `kvist-bench structure`, and their sums. Questions of one sample share its text, so
 * intervals of differences draw samples, not questions: a bootstrap over them (10,000 draws, percentiles),
 * the same draws for every pair of conditions.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/common/result_file.h"
#include "bench/common/statistics.h"
#include "bench/structure/sample.h"

const char *const structure_tasks[N_STRUCTURE_TASKS] = {"score", "bug", "complete", "select"};
static const char *const asked_words[STRUCTURE_ASKED] = {"function", "mistake", "line"};

/* --- lines ---------------------------------------------------------------------------------------------- */

void structure_result_write(const structure_result *o, int64_t seed, FILE *out)
{
    static const char *const extents[] = {"extents", "cores"};
    base_buf line = {0};
    base_buf_printf(&line, "{\"task\":\"%s\",\"model\":", o->task);
    base_json_put_str(&line, o->model, strlen(o->model));
    base_buf_puts(&line, ",\"id\":");
    base_json_put_str(&line, o->id, strlen(o->id));
    base_buf_printf(&line, ",\"seed\":%lld,\"cap\":%g,\"condition\":", (long long)seed, o->cap);
    base_json_put_str(&line, o->condition, strlen(o->condition));
    base_buf_printf(&line, ",\"tokens\":%u,\"chunks\":%u,\"questions\":%u,\"active\":%.0f", o->n_tokens,
        o->n_chunks, o->n_questions, o->active);
    for (int core = 0; core < 2; core++)
        base_buf_printf(&line, ",\"%s\":[%.4f,%.4f,%.4f]", extents[core], o->share[core], o->chance[core],
            o->ceiling[core]);
    base_buf_puts(&line, ",\"kinds\":[");
    for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++)
        base_buf_printf(&line, o->of[k] == o->of[k] ? "%s%.4f" : "%snull", k ? "," : "", o->of[k]);
    base_buf_puts(&line, "]");
    for (int i = 0; i < STRUCTURE_ASKED; i++)
        if (o->right[i] >= 0) base_buf_printf(&line, ",\"%s\":%d", asked_words[i], o->right[i]);
    if (o->rank) base_buf_printf(&line, ",\"rank\":%u", o->rank);
    if (o->n_line) base_buf_printf(&line, ",\"line_tokens\":[%u,%u]", o->right_line, o->n_line);
    base_buf_printf(&line,
        ",\"spans_ms\":%.2f,\"prefill_s\":%.3f,\"question_s\":%.3f,\"condition_s\":%.3f}\n", o->spans_ms,
        o->prefill_s, o->question_s, o->condition_s);
    fputs(line.data, out);
    fflush(out);
    base_buf_free(&line);
}

static double number_at(const base_json *a, size_t i)
{
    const base_json *x = a ? base_json_at(a, i) : NULL;
    return x && x->type == BASE_JSON_NUMBER ? x->number : NAN;
}

static void read_line(void *user, const base_json *o)
{
    structure_results *r = user;
    const base_json *extents = base_json_get(o, "extents"), *cores = base_json_get(o, "cores"),
                    *kinds = base_json_get(o, "kinds"), *tokens = base_json_get(o, "line_tokens");
    structure_result one = {.cap = base_json_num(o, "cap", 0),
        .share = {number_at(extents, 0), number_at(cores, 0)},
        .chance = {number_at(extents, 1), number_at(cores, 1)},
        .ceiling = {number_at(extents, 2), number_at(cores, 2)},
        .prefill_s = base_json_num(o, "prefill_s", NAN),
        .question_s = base_json_num(o, "question_s", NAN),
        .condition_s = base_json_num(o, "condition_s", NAN)};
    for (size_t k = 0; k < KV_STRUCTURE_KINDS; k++) one.of[k] = number_at(kinds, k);
    const int64_t rank = base_json_int(o, "rank", 0);
    one.rank = rank > 0 && rank <= BENCH_CHUNKS ? (uint32_t)rank : 0;
    for (size_t k = 0; k < STRUCTURE_ASKED; k++) one.right[k] = (int)base_json_int(o, asked_words[k], -1);
    if (number_at(tokens, 1) > 0 && number_at(tokens, 1) < 1e6 && number_at(tokens, 0) >= 0) {
        one.right_line = (uint32_t)number_at(tokens, 0);
        one.n_line = (uint32_t)number_at(tokens, 1);
    }
    snprintf(one.task, sizeof one.task, "%s", base_json_str(o, "task", ""));
    snprintf(one.model, sizeof one.model, "%s", base_json_str(o, "model", ""));
    snprintf(one.id, sizeof one.id, "%s", base_json_str(o, "id", ""));
    snprintf(one.condition, sizeof one.condition, "%s", base_json_str(o, "condition", ""));
    if (!*one.task || !*one.condition) return;
    base_grow(&r->items, &r->cap, r->n + 1, sizeof *r->items);
    r->items[r->n++] = one;
}

void structure_results_read(structure_results *r, const base_buf *lines)
{
    *r = (structure_results){.n = 0};
    bench_each_result(lines, read_line, r);
}

void structure_results_free(structure_results *r)
{
    free(r->items);
    *r = (structure_results){.n = 0};
}

static bool is_same_table(const structure_result *a, const structure_result *b)
{
    return !strcmp(a->task, b->task) && !strcmp(a->model, b->model);
}

static bool is_same_cell(const structure_result *a, const structure_result *b)
{
    return fabs(a->cap - b->cap) < 1e-6 && !strcmp(a->condition, b->condition) && is_same_table(a, b);
}

bool structure_results_have(const structure_results *r, const structure_result *key)
{
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->items[i].id, key->id) && is_same_cell(&r->items[i], key)) return true;
    return false;
}

/* --- what was kept -------------------------------------------------------------------------------------- */

typedef struct mean {
    double sum;
    uint32_t n;
} mean;

static void add(mean *m, double x)
{
    if (x != x) return;
    m->sum += x;
    m->n++;
}

static double get(const mean *m)
{
    return m->n ? m->sum / m->n : NAN;
}

static void print_kept(const structure_results *r, const structure_result *first, FILE *out)
{
    mean share[2] = {{0}}, chance = {0}, ceiling[2] = {{0}}, of[KV_STRUCTURE_KINDS] = {{0}}, seconds = {0};
    uint32_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const structure_result *one = &r->items[i];
        if (!is_same_cell(one, first)) continue;
        n++;
        add(&chance, one->chance[0]);
        add(&seconds, one->condition_s);
        for (int core = 0; core < 2; core++) {
            add(&share[core], one->share[core]);
            add(&ceiling[core], one->ceiling[core]);
        }
        for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) add(&of[k], one->of[k]);
    }
    fprintf(out, "| %.1f | %s | %u | %.3f | %.3f | %.3f | %.3f | %.3f |", first->cap, first->condition, n,
        get(&share[0]), get(&chance), get(&ceiling[0]), get(&share[1]), get(&ceiling[1]));
    for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) fprintf(out, " %.2f |", get(&of[k]));
    fprintf(out, " %.2f |\n", get(&seconds));
}

/* --- what was answered, and differences ----------------------------------------------------------------- */

typedef enum measure {
    EXTENTS,
    CORES,
    TOKENS,
    FUNCTION,
    MISTAKE,
    LINE,
    FIRST,
    AMONG_2,
    AMONG_4,
    N_MEASURES
} measure;
static const char *const measures[N_MEASURES] = {"extents kept", "cores kept", "line's tokens", "function",
    "mistake", "line", "first", "among the first 2", "among the first 4"};
/* What the others are compared with; columns of the table. */
static const char *const against[] = {
    "full", "codecomp full", "snapkv", "streaming-llm", "chunk-local attention", "BM25"};
enum { N_AGAINST = sizeof against / sizeof *against, N_DRAWS = 10000, LEAST_CLUSTERS = 5 };

static double value_of(const structure_result *o, measure m)
{
    switch (m) {
    case EXTENTS: return o->share[0];
    case CORES: return o->share[1];
    case TOKENS: return o->n_line ? (double)o->right_line / o->n_line : NAN;
    case FIRST: return o->rank ? o->rank == 1 : NAN;
    case AMONG_2: return o->rank ? o->rank <= 2 : NAN;
    case AMONG_4: return o->rank ? o->rank <= 4 : NAN;
    default: return o->right[m - FUNCTION] < 0 ? NAN : o->right[m - FUNCTION];
    }
}

static bool is_yes_or_no(measure m)
{
    return m >= FUNCTION;
}

/* A sample's part of a difference: the sum over its questions, and how many. */
typedef struct cluster {
    const char *id;
    size_t n_id;
    double sum;
    uint32_t n;
} cluster;

typedef struct difference {
    double mean, low, high;    /* low, high: NAN of too few samples */
    uint32_t n, better, worse; /* questions; of measures that are right or wrong */
} difference;

static size_t sample_bytes(const char *id)
{
    const char *slash = strrchr(id, '/');
    return slash ? (size_t)(slash - id) : strlen(id);
}

static const structure_result *find_other(
    const structure_results *r, const structure_result *one, const char *condition)
{
    const bool is_whole = strstr(condition, "full") != NULL;
    for (size_t i = 0; i < r->n; i++) {
        const structure_result *other = &r->items[i];
        if (!strcmp(other->id, one->id) && !strcmp(other->condition, condition) &&
            is_same_table(other, one) && (is_whole || fabs(other->cap - one->cap) < 1e-6))
            return other;
    }
    return NULL;
}

static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = *state;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void bootstrap(const cluster *c, size_t n, difference *d)
{
    d->low = d->high = NAN;
    if (n < LEAST_CLUSTERS) return;
    double *draws = base_xmalloc(N_DRAWS * sizeof *draws);
    uint64_t state = 1;
    for (int k = 0; k < N_DRAWS; k++) {
        double sum = 0;
        uint32_t questions = 0;
        for (size_t i = 0; i < n; i++) {
            const cluster *one = &c[next_random(&state) % n];
            sum += one->sum;
            questions += one->n;
        }
        draws[k] = sum / questions;
    }
    qsort(draws, N_DRAWS, sizeof *draws, bench_compare_doubles);
    d->low = draws[N_DRAWS / 40];
    d->high = draws[N_DRAWS - 1 - N_DRAWS / 40];
    free(draws);
}

/* Of first's cell over `condition` on the same questions; n == 0: there is none to compare with. */
static difference compare(
    const structure_results *r, const structure_result *first, const char *condition, measure m)
{
    difference d = {.mean = 0};
    cluster *clusters = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < r->n && strcmp(first->condition, condition); i++) {
        const structure_result *one = &r->items[i];
        const structure_result *other = is_same_cell(one, first) ? find_other(r, one, condition) : NULL;
        const double x = other ? value_of(one, m) - value_of(other, m) : NAN;
        if (x != x) continue;
        const size_t n_id = sample_bytes(one->id);
        size_t k = 0;
        while (k < n && (clusters[k].n_id != n_id || memcmp(clusters[k].id, one->id, n_id))) k++;
        if (k == n) {
            base_grow(&clusters, &cap, n + 1, sizeof *clusters);
            clusters[n++] = (cluster){.id = one->id, .n_id = n_id};
        }
        clusters[k].sum += x;
        clusters[k].n++;
        d.mean += x;
        d.n++;
        d.better += x > 0;
        d.worse += x < 0;
    }
    if (d.n) {
        d.mean /= d.n;
        bootstrap(clusters, n, &d);
    }
    free(clusters);
    return d;
}

/* Is there such a condition in the table, to compare with? */
static bool is_there(const structure_results *r, const structure_result *of, const char *condition)
{
    for (size_t i = 0; i < r->n; i++)
        if (is_same_table(&r->items[i], of) && !strcmp(r->items[i].condition, condition)) return true;
    return false;
}

static void print_answers(const structure_results *r, const structure_result *first, measure m, FILE *out)
{
    mean all = {0};
    for (size_t i = 0; i < r->n; i++)
        if (is_same_cell(&r->items[i], first)) add(&all, value_of(&r->items[i], m));
    if (!all.n) return;
    fprintf(out, "| %.1f | %s | %u | %.3f", first->cap, first->condition, all.n, get(&all));
    if (is_yes_or_no(m)) {
        double low, high;
        bench_wilson((uint32_t)(all.sum + .5), all.n, &low, &high);
        fprintf(out, " [%.2f, %.2f]", low, high);
    }
    fprintf(out, " |");
    for (int a = 0; a < N_AGAINST; a++) {
        if (!is_there(r, first, against[a])) continue;
        const difference d = compare(r, first, against[a], m);
        if (!d.n) {
            fprintf(out, " - |");
            continue;
        }
        fprintf(out, " %+.3f", d.mean);
        if (d.low == d.low) fprintf(out, " [%+.3f, %+.3f]", d.low, d.high);
        if (is_yes_or_no(m))
            fprintf(out, ", +%u -%u p %.2g", d.better, d.worse, bench_mcnemar(d.better, d.worse));
        fprintf(out, " |");
    }
    fputc('\n', out);
}

/* Calls fn for the first line of each cell of the table that `of` is in, high caps first. */
static void each_cell(const structure_results *r, const structure_result *of, measure m, FILE *out,
    void (*fn)(const structure_results *r, const structure_result *first, measure m, FILE *out))
{
    for (double last = 2;;) {
        double cap = 0;
        for (size_t i = 0; i < r->n; i++)
            if (is_same_table(&r->items[i], of) && r->items[i].cap < last - 1e-6 && r->items[i].cap > cap)
                cap = r->items[i].cap;
        if (!(cap > 0)) return;
        for (size_t i = 0; i < r->n; i++) {
            bool is_first = is_same_table(&r->items[i], of) && fabs(r->items[i].cap - cap) < 1e-6;
            for (size_t k = 0; k < i && is_first; k++) is_first = !is_same_cell(&r->items[k], &r->items[i]);
            if (is_first) fn(r, &r->items[i], m, out);
        }
        last = cap;
    }
}

static void print_kept_of(const structure_results *r, const structure_result *first, measure m, FILE *out)
{
    (void)m;
    print_kept(r, first, out);
}

static void print_kept_table(const structure_results *r, const structure_result *of, FILE *out)
{
    fprintf(out, "| cap | condition | n | extents kept | chance | ceiling | cores kept | ceiling |");
    for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) fprintf(out, " %s |", kv_structure_word(k));
    fprintf(out, " s |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    each_cell(r, of, N_MEASURES, out, print_kept_of);
}

static void print_table(const structure_results *r, const structure_result *of, FILE *out)
{
    mean prefill = {0}, question = {0};
    bool has[N_MEASURES] = {false};
    for (size_t i = 0; i < r->n; i++) {
        const structure_result *one = &r->items[i];
        if (!is_same_table(one, of)) continue;
        for (int m = 0; m < N_MEASURES; m++) {
            const double x = value_of(one, (measure)m);
            has[m] |= x == x;
        }
        bool is_last = true; /* of its question: by then both sessions were computed */
        for (size_t k = i + 1; k < r->n && is_last; k++)
            is_last = strcmp(r->items[k].id, one->id) || !is_same_table(&r->items[k], one);
        if (!is_last) continue;
        add(&prefill, one->prefill_s);
        add(&question, one->question_s);
    }
    fprintf(out, "\n%s, %s: %.2f s a question for the rows of its text, %.2f s for the question itself\n\n",
        of->task, of->model, get(&prefill), get(&question));
    if (!has[FIRST]) print_kept_table(r, of, out);
    for (int m = 0; m < N_MEASURES; m++) {
        const bool is_kept = m == EXTENTS || m == CORES;
        if (!has[m] || is_kept != !strcmp(of->task, structure_tasks[STRUCTURE_SCORE])) continue;
        fprintf(out,
            "\n%s; differences on the same questions, 95%% of bootstraps over samples\n\n"
            "| cap | condition | n | %s |",
            measures[m], measures[m]);
        base_buf rule = {0};
        base_buf_puts(&rule, "|---|---|---|---|");
        for (int a = 0; a < N_AGAINST; a++) {
            if (!is_there(r, of, against[a])) continue;
            fprintf(out, " over %s |", against[a]);
            base_buf_puts(&rule, "---|");
        }
        fprintf(out, "\n%s\n", rule.data);
        base_buf_free(&rule);
        each_cell(r, of, (measure)m, out, print_answers);
    }
}

void structure_results_print(const structure_results *r, FILE *out)
{
    for (size_t i = 0; i < r->n; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i && is_new; k++) is_new = !is_same_table(&r->items[k], &r->items[i]);
        if (is_new) print_table(r, &r->items[i], out);
    }
}
