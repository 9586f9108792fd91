/*
 * kvist-bench repair: what a repair costs over many rows, beside the memory's bandwidth. The store is
 * synthetic (rows and queries are drawn, nothing is computed), the scoring, planning and applying are the
 * program's own, so 32K rows cost no prefill.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/common/statistics.h"
#include "kv/calibrate/drawn_rows.h"
#include "kv/core/compute.h"
#include "kv/repair/heads.h"

static const char usage[] = "usage: kvist-bench repair --model M [--rows N] [--restore K] [--repeat N]\n"
                            "\n"
                            "  --rows N      rows per lane in all (32768, at most the context)\n"
                            "  --restore K   rows per lane that come back (96)\n"
                            "  --repeat N    repairs of each form; the median counts (7)\n"
                            "\n";

static const struct form {
    const char *name, *set[5];
} forms[] = {
    {"ours: calibrated heads, 8 queries, lines", {"heads=calibrated", "queries=8", "grow=line"}},
    {"all heads, 8 queries, lines", {"heads=all", "queries=8", "grow=line"}},
    {"paper: all heads, 64 queries, bursts", {"heads=all", "queries=64", "grow=burst"}},
};
enum { MOST_REPEAT = 101, QUESTION = 64 };

typedef struct bench {
    common_options common;
    int64_t rows, restore, repeat;
    model *model;
    const model_info *info;
} bench;

/* What scoring reads at least: the keys of every row in the lanes whose heads count, once. */
static double bytes_read(const bench *b, const uint8_t *heads, uint32_t n_rows)
{
    const model_rows_shape shape = model_get_rows_shape(b->model);
    const uint32_t group = b->info->n_head / shape.n_head_kv;
    double bytes = 0;
    for (uint32_t lane = 0; lane < model_rows_lanes(&shape); lane++) {
        bool counts = !heads;
        for (uint32_t g = 0; heads && g < group; g++) counts = counts || heads[lane * group + g];
        if (counts) bytes += 2.0 * shape.head_dim * n_rows;
    }
    return bytes;
}

static uint8_t *read_heads(const bench *b, const char *path)
{
    uint8_t *heads = calloc((size_t)b->info->n_layer * b->info->n_head, 1);
    FILE *f = heads ? fopen(path, "re") : NULL;
    unsigned layer = 0, head = 0;
    char line[160];
    if (f && fgets(line, sizeof line, f))
        while (fgets(line, sizeof line, f))
            if (sscanf(line, "%u %u", &layer, &head) == 2 && layer < b->info->n_layer &&
                head < b->info->n_head)
                heads[(size_t)layer * b->info->n_head + head] = 1;
    if (f) fclose(f);
    if (!f) {
        free(heads);
        heads = NULL;
    }
    return heads;
}

static int run_form(
    bench *b, kv_session *base, const struct form *form, const char *heads_path, base_err *err)
{
    double score_ms[MOST_REPEAT], plan_ms[MOST_REPEAT], all_ms[MOST_REPEAT];
    kv_stats before, after;
    int r = 0;
    for (int64_t i = 0; i < b->repeat && !r; i++) {
        kv_session *s = NULL;
        r = kv_session_fork(base, &s, NULL, err);
        if (r) return r;
        const kv_options o = {
            .policy = "kvist", .repair = (int)b->restore, .set = form->set, .heads_file = heads_path};
        r = kv_session_set_policy(s, &o, err);
        kv_session_get_stats(s, &before);
        const uint64_t start = base_clock_ns();
        if (!r) r = kv_session_repair(s, &(kv_ask){before.n_tokens - QUESTION, before.n_tokens}, NULL, err);
        all_ms[i] = (double)(base_clock_ns() - start) / 1e6;
        kv_session_get_stats(s, &after);
        score_ms[i] = after.score_ms - before.score_ms;
        plan_ms[i] = after.plan_ms - before.plan_ms;
        kv_session_free(s);
    }
    if (r) return r;
    qsort(score_ms, (size_t)b->repeat, sizeof *score_ms, bench_compare_doubles);
    qsort(plan_ms, (size_t)b->repeat, sizeof *plan_ms, bench_compare_doubles);
    qsort(all_ms, (size_t)b->repeat, sizeof *all_ms, bench_compare_doubles);
    uint8_t *heads = strncmp(form->set[0], "heads=all", 9) ? read_heads(b, heads_path) : NULL;
    const int64_t middle = b->repeat / 2;
    const double bytes = bytes_read(b, heads, before.n_tokens - QUESTION);
    free(heads);
    printf(
        "{\"form\":\"%s\",\"rows\":%u,\"came_back\":%u,\"score_ms\":%.2f,\"plan_ms\":%.2f,\"apply_ms\":%.2f,"
        "\"all_ms\":%.2f,\"max_ms\":%.2f,\"key_bytes\":%.0f,\"key_bytes_per_s\":%.3g}\n",
        form->name, before.n_tokens, after.active - before.active, score_ms[middle], plan_ms[middle],
        fmax(all_ms[middle] - score_ms[middle] - plan_ms[middle], 0), all_ms[middle], all_ms[b->repeat - 1],
        bytes, bytes / score_ms[middle] * 1e3);
    fflush(stdout);
    return 0;
}

static int run(bench *b, base_err *err)
{
    kv_session *s = NULL;
    int r = cmd_open_model(&b->common, &b->model, err);
    if (r) return r;
    b->info = model_get_info(b->model);
    if (b->rows > b->info->n_ctx) b->rows = b->info->n_ctx;
    kv_drawn_rows drawn;
    const kv_compute compute = kv_drawn_compute(&drawn, b->model);
    char *heads = kv_heads_path(b->info->hash);
    int32_t *ids = calloc((size_t)b->rows + 1, sizeof *ids);
    uint32_t *lines = calloc((size_t)b->rows + 1, sizeof *lines), n_lines = 0;
    const uint32_t n = (uint32_t)b->rows - QUESTION;
    for (uint32_t i = 0; lines && i < n; i += 12) lines[n_lines++] = i;
    const kv_segment text = {.origin = KV_ORIGIN_CONTEXT, .turn = 1, .lines = lines, .n_lines = n_lines};
    const kv_segment question = {.origin = KV_ORIGIN_TOOL, .turn = 2};
    static const char *const set[] = {"hard=0", NULL};
    r = ids && lines ? kv_session_new_over(&s, &compute, &(kv_options){.policy = "full"}, NULL, err)
                     : base_fail(err, BASE_E_NOMEM, "no memory for %lld rows", (long long)b->rows);
    if (!r) r = kv_session_append(s, &text, ids, n, NULL, NULL, err);
    if (!r)
        r = kv_session_set_policy(
            s, &(kv_options){.budget = n / 8 + 600, .policy = "random", .set = set}, err);
    if (!r) r = kv_session_evict(s, err);
    kv_session_set_automatic(s, false);
    if (!r) r = kv_session_append(s, &question, ids, QUESTION, NULL, NULL, err);
    for (size_t i = 0; i < sizeof forms / sizeof *forms && !r; i++) r = run_form(b, s, &forms[i], heads, err);
    kv_session_free(s);
    free(ids);
    free(lines);
    free(heads);
    return r;
}

int bench_repair(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .rows = 32768, .restore = 96, .repeat = 7};
    const option_row own[] = {
        {"--rows", OPTION_INTEGER, &b.rows, .bounds = {2000, BENCH_ROWS}},
        {"--restore", OPTION_INTEGER, &b.restore, .bounds = {1, 100000}},
        {"--repeat", OPTION_INTEGER, &b.repeat, .bounds = {1, MOST_REPEAT}},
        {.name = NULL},
    };
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!r) r = run(&b, &err);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
