/* The tables of a file of `kvist-bench sessions`; see bench/sessions/sessions_result.h. */
#include "bench/sessions/sessions_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/common/result_file.h"
#include "bench/common/statistics.h"

enum { LINES_MOST = 256 << 20, EACH_MOST = 64, N_LEADS = 3 };

/*
 * By how little the full cache's best token led where it led least, in nats: below this, so little noise
 * makes another call.
 */
static const double leads_below[N_LEADS] = {.1, .3, INFINITY};

/* A line of --out. */
typedef struct outcome {
    char policy[128], each[EACH_MOST + 1]; /* each: '1' for every call that is equal, '0' for the others */
    uint32_t percent, calls, equal, named, quoting;
    int64_t session;
    base_json_doc *line;    /* all of it */
    uint32_t values, alike; /* of the full cache's calls; those that stand here at the same place */
    struct {
        uint32_t calls, equal;
    } leads[N_LEADS], whole;   /* by the full cache's least lead; those that it finished */
    uint32_t recorded, judged; /* calls that are the recorded ones, of those that were compared with them */
    double recall, seconds, peak, live, live_compact, computed[2], raw[2], effective[2];
} outcome;

static uint32_t read_outcomes(const base_buf *file, outcome **ret)
{
    size_t n = 0, cap = 0;
    *ret = NULL;
    for (size_t at = 0; at < file->len;) {
        const char *line = file->data + at, *end = memchr(line, '\n', file->len - at);
        const size_t len = end ? (size_t)(end - line) : file->len - at;
        base_json_doc *doc = NULL;
        at += len + 1;
        if (base_json_parse(line, len, &doc, NULL)) continue;
        const base_json *o = base_json_root(doc);
        base_grow(ret, &cap, n + 1, sizeof **ret);
        outcome *to = &(*ret)[n++];
        *to = (outcome){.percent = (uint32_t)base_json_int(o, "percent", 0),
            .session = base_json_int(o, "session", 0),
            .calls = (uint32_t)base_json_int(o, "calls", 0),
            .equal = (uint32_t)base_json_int(o, "equal", 0),
            .named = (uint32_t)base_json_int(o, "named", 0),
            .quoting = (uint32_t)base_json_int(o, "quoting", 0),
            .recall = base_json_num(o, "recall", 0),
            .seconds = base_json_num(o, "seconds", 0),
            .peak = base_json_num(o, "peak", 0),
            .live = base_json_num(o, "live", 0),
            .live_compact = base_json_num(o, "live_compact", 0),
            .computed = {base_json_num(o, "computed", 0), base_json_num(o, "computed_compact", 0)},
            .raw = {base_json_num(o, "raw_reads", 0), base_json_num(o, "raw_reads_compact", 0)},
            .effective = {
                base_json_num(o, "effective_reads", 0), base_json_num(o, "effective_reads_compact", 0)}};
        snprintf(to->policy, sizeof to->policy, "%s", base_json_str(o, "policy", ""));
        snprintf(to->each, sizeof to->each, "%s", base_json_str(o, "each", ""));
        to->judged = base_json_get(o, "recorded") ? to->calls : 0;
        to->recorded = (uint32_t)base_json_int(o, "recorded", 0);
        to->line = doc;
    }
    return (uint32_t)n;
}

static bool is_same_value(const base_json *a, const base_json *b)
{
    base_buf x = {0}, y = {0};
    base_json_put(&x, a);
    base_json_put(&y, b);
    const bool same = x.len == y.len && !memcmp(x.data, y.data, x.len);
    base_buf_free(&x);
    base_buf_free(&y);
    return same;
}

/*
 * Strings and numbers of a call, the function's name among them, and how many another call has at the same
 * place.
 */
static void count_values(const base_json *want, const base_json *got, outcome *to)
{
    const bool object = want->type == BASE_JSON_OBJECT, array = want->type == BASE_JSON_ARRAY;
    size_t i = 0;
    for (const base_json *child = want->first; child && (object || array); child = child->next, i++)
        count_values(child, object ? base_json_get(got, child->key) : base_json_at(got, i), to);
    if (object || array) return;
    to->values++;
    to->alike += got && is_same_value(want, got);
}

/* A call that was cut is closed where it ends. */
static base_json_doc *parse_call(const base_json *text)
{
    base_buf strict = {0};
    base_json_doc *doc = NULL;
    bool complete = false;
    if (text && text->type == BASE_JSON_STRING &&
        base_json_repair(text->string, text->string_len, &strict, &complete))
        base_json_parse(strict.data, strict.len, &doc, NULL);
    base_buf_free(&strict);
    return doc;
}

static void count_lead(const base_json *lead, const base_json *call, size_t i, outcome *to)
{
    base_json_doc *doc = NULL;
    if (!lead || lead->type != BASE_JSON_NUMBER || !call || call->type != BASE_JSON_STRING) return;
    int k = 0;
    while (lead->number >= leads_below[k]) k++;
    const uint32_t equal = to->each[i] == '1';
    to->leads[k].calls++;
    to->leads[k].equal += equal;
    if (base_json_parse(call->string, call->string_len, &doc, NULL)) return;
    to->whole.calls++;
    to->whole.equal += equal;
    base_json_free(doc);
}

/* The calls of a line against the full cache's in the same session. */
static void compare_calls(const outcome *all, uint32_t n, outcome *to)
{
    const outcome *full = NULL;
    for (uint32_t i = 0; i < n && !full; i++)
        if (all[i].session == to->session && !strcmp(all[i].policy, "full")) full = &all[i];
    const base_json *want = full ? base_json_get(base_json_root(full->line), "written") : NULL,
                    *got = base_json_get(base_json_root(to->line), "written"),
                    *leads = full ? base_json_get(base_json_root(full->line), "leads") : NULL;
    for (size_t i = 0; want && got && i < to->calls; i++) {
        base_json_doc *a = parse_call(base_json_at(want, i)), *b = parse_call(base_json_at(got, i));
        if (a) count_values(base_json_root(a), b ? base_json_root(b) : NULL, to);
        if (leads && i < strlen(to->each)) count_lead(base_json_at(leads, i), base_json_at(want, i), i, to);
        base_json_free(a);
        base_json_free(b);
    }
}

static bool same_row(const outcome *a, const outcome *b)
{
    return a->percent == b->percent && !strcmp(a->policy, b->policy);
}

static void print_row(const outcome *all, uint32_t n, const outcome *first)
{
    outcome sum = {0};
    double low, high, recall = 0;
    uint32_t n_sessions = 0;
    for (uint32_t i = 0; i < n; i++) {
        const outcome *o = &all[i];
        if (!same_row(o, first)) continue;
        n_sessions++;
        sum.calls += o->calls;
        sum.equal += o->equal;
        sum.named += o->named;
        sum.recorded += o->recorded;
        sum.judged += o->judged;
        sum.values += o->values;
        sum.alike += o->alike;
        sum.quoting += o->quoting;
        recall += o->recall * o->quoting;
        sum.seconds += o->seconds;
        sum.peak = o->peak > sum.peak ? o->peak : sum.peak;
        sum.live = o->live > sum.live ? o->live : sum.live;
        sum.live_compact = o->live_compact > sum.live_compact ? o->live_compact : sum.live_compact;
        for (int k = 0; k < 2; k++) {
            sum.computed[k] += o->computed[k];
            sum.raw[k] += o->raw[k];
            sum.effective[k] += o->effective[k];
        }
    }
    bench_wilson(sum.equal, sum.calls, &low, &high);
    printf("| %s | %u | %u/%u %.3f [%.3f, %.3f] | %u/%u | %.3f | %.3f | %.3f | %.0f | %.0f, %.0f | %.0f, "
           "%.0f | %.1f, %.1f | %.1f, %.1f | %.0f |\n",
        first->policy, n_sessions, sum.equal, sum.calls, sum.calls ? (double)sum.equal / sum.calls : 0, low,
        high, sum.recorded, sum.judged, sum.calls ? (double)sum.named / sum.calls : 0,
        sum.values ? (double)sum.alike / sum.values : 0, sum.quoting ? recall / sum.quoting : 0, sum.peak,
        sum.live, sum.live_compact, sum.computed[0], sum.computed[1], sum.raw[0] / 1e6, sum.raw[1] / 1e6,
        sum.effective[0] / 1e6, sum.effective[1] / 1e6, sum.seconds);
}

/*
 * What of a policy's calls is noise's: those that the full cache was sure of, beside those that it was not.
 */
static void print_leads(const outcome *all, uint32_t n, const outcome *first)
{
    outcome sum = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (!same_row(&all[i], first)) continue;
        sum.whole.calls += all[i].whole.calls;
        sum.whole.equal += all[i].whole.equal;
        for (int k = 0; k < N_LEADS; k++) {
            sum.leads[k].calls += all[i].leads[k].calls;
            sum.leads[k].equal += all[i].leads[k].equal;
        }
    }
    printf("| %s | %u/%u |", first->policy, sum.whole.equal, sum.whole.calls);
    for (int k = 0; k < N_LEADS; k++) printf(" %u/%u |", sum.leads[k].equal, sum.leads[k].calls);
    puts("");
}

static bool is_new_row(const outcome *all, uint32_t k, uint32_t percent)
{
    if (all[k].percent != percent) return false;
    for (uint32_t j = 0; j < k; j++)
        if (same_row(&all[j], &all[k])) return false;
    return true;
}

/*
 * Recall of one policy less that of another, by session, weighted by the calls that quote: the mean, and the
 * interval in which 95% of 10,000 draws of as many sessions lie.
 */
static void print_difference(
    const outcome *all, uint32_t n, uint32_t percent, const char *policy, const char *other)
{
    enum { DRAWS = 10000, MOST = 1024 };
    static double means[DRAWS];
    double difference[MOST], weight[MOST], sum = 0, total = 0;
    uint32_t m = 0, better = 0, worse = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n && m < MOST; k++) {
            if (all[i].percent != percent || all[k].percent != percent || all[i].session != all[k].session ||
                strcmp(all[i].policy, policy) || strcmp(all[k].policy, other) || !all[i].quoting)
                continue;
            difference[m] = all[i].recall - all[k].recall;
            weight[m] = all[i].quoting;
            sum += difference[m] * weight[m];
            total += weight[m];
            better += difference[m] > 0;
            worse += difference[m] < 0;
            m++;
        }
    if (m < 2) return;
    uint64_t state = 1;
    for (uint32_t d = 0; d < DRAWS; d++) {
        double drawn = 0, drawn_weight = 0;
        for (uint32_t i = 0; i < m; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const uint32_t at = (uint32_t)((state >> 33) % m);
            drawn += difference[at] * weight[at];
            drawn_weight += weight[at];
        }
        means[d] = drawn / drawn_weight;
    }
    qsort(means, DRAWS, sizeof *means, bench_compare_doubles);
    printf("%u%%: quoted rows under %s less under %s: %+.4f [%+.4f, %+.4f] over %u sessions (%u better, %u "
           "worse, sign test p %.2g)\n",
        percent, policy, other, sum / total, means[DRAWS * 25 / 1000], means[DRAWS * 975 / 1000], m, better,
        worse, bench_mcnemar(better, worse));
}

/* Calls that are equal under one policy and not under the other, paired, of sessions that both have. */
static void print_calls(
    const outcome *all, uint32_t n, uint32_t percent, const char *policy, const char *other)
{
    uint32_t calls = 0, better = 0, worse = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            if (all[i].percent != percent || all[k].percent != percent || all[i].session != all[k].session ||
                strcmp(all[i].policy, policy) || strcmp(all[k].policy, other))
                continue;
            for (const char *a = all[i].each, *b = all[k].each; *a && *b; a++, b++) {
                calls++;
                better += *a > *b;
                worse += *a < *b;
            }
        }
    if (calls)
        printf("%u%%: of %u calls %u are equal under %s alone, %u under %s alone, McNemar p %.2g\n", percent,
            calls, better, policy, worse, other, bench_mcnemar(better, worse));
}

int sessions_summarise(const char *path, base_err *err)
{
    static const char *const pairs[][2] = {{"intentkv", "intentkv:mode=query"}, {"kvist", "kvist:memory=0"},
        {"kvist", "snapkv"}, {"kvist", "snapkv:hard=1"}, {"kvist", "streaming-llm"}, {"kvist", "h2o"},
        {"late kvist", "late kvist:visit=0"}, {"late kvist", "late snapkv"}, {"late kvist", "late intentkv"},
        {"late kvist", "late streaming-llm"}, {"late kvist", "late h2o"}};
    base_buf file = {0};
    outcome *all = NULL;
    int r = base_fs_read(path, LINES_MOST, &file, err);
    const uint32_t n = r ? 0 : read_outcomes(&file, &all);
    for (uint32_t i = 0; i < n; i++) compare_calls(all, n, &all[i]);
    for (uint32_t i = 0; i < n; i++) {
        bool is_new = true;
        for (uint32_t k = 0; k < i && is_new; k++) is_new = all[k].percent != all[i].percent;
        if (!is_new) continue;
        printf("\nbudget %u%% of a session; in place, compact\n\n"
               "| policy | sessions | calls equal [95%%] | the recorded calls | "
               "functions equal | values equal | quoted rows active | peak | live rows | "
               "tokens computed | raw reads, millions | effective reads, millions | s |\n"
               "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
            all[i].percent);
        for (uint32_t k = i; k < n; k++)
            if (is_new_row(all, k, all[i].percent)) print_row(all, n, &all[k]);
        puts("\n| policy | calls equal that the full cache finished "
             "| its least lead < .1 nats | .1 to .3 | from .3 |\n"
             "|---|---|---|---|---|");
        for (uint32_t k = i; k < n; k++)
            if (is_new_row(all, k, all[i].percent)) print_leads(all, n, &all[k]);
        puts("");
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
            print_difference(all, n, all[i].percent, pairs[k][0], pairs[k][1]);
            print_calls(all, n, all[i].percent, pairs[k][0], pairs[k][1]);
        }
    }
    for (uint32_t i = 0; i < n; i++) base_json_free(all[i].line);
    free(all);
    base_buf_free(&file);
    return r;
}
