/*
 * kvist bench speed: prefill and decode on this machine. Measured are, in this order: loading, --repeat times
 * prefill of --prompt tokens behind --depth rows, what the memory gives (the wall: every decoded token reads
 * all weights and rows once), --repeat times decode of --gen tokens there. The depth is computed once for
 * real and truncated to between repeats. With cache options rows live in a session and its budget holds
 * (--drawn then fills the depth with random rows in seconds). --profile ends it with a further run of each, in which
 * every operation is timed: where the time goes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/pool.h"
#include "kv/calibrate/drawn_rows.h"
#include "cmd/cmd.h"
#include "kv/session.h"
#include "model/forward/dense.h"
#include "model/forward/model.h"
#include "model/forward/profile.h"
#include "model/text/sampler.h"
#include "cmd/options.h"

enum { MAX_REPEAT = 1000, RESULT = 512, WALL_BYTES = 256 << 20, WALL_PASSES = 8, WALL_AHEAD = 1024 };

static const char usage[] =
    "usage: kvist bench speed --model M [--prompt N] [--gen N] [--depth N] [--repeat N]\n"
    "                                 [--json | --profile]\n"
    "\n"
    "Tokens a second of prefill and decode, beside the memory bandwidth read in the same run.\n";

typedef struct bench {
    common_options common;
    int64_t prompt, gen, depth, repeat;
    bool json, drawn, profile;

    model *model;
    const model_info *info;
    model_dense *rows;   /* without cache options */
    kv_session *session; /* with them */
    kv_drawn_rows drawer;
    int32_t *ids; /* any text will do: speed does not depend on it */
    float *logits;
    model_sampler *sampler; /* greedy */
    uint64_t began_ns;
    double first_ms;        /* from the start to the logits behind the first prefill */
    double load_s, wall[2]; /* bytes a second: one thread, all threads */
    double peak[2];         /* multiplications a second, by ops_peak */
} bench;

typedef struct spread {
    double min, median, max;
} spread;

/* The wall */

typedef struct wall {
    const uint64_t *words;
    size_t n_words;
    size_t ahead; /* words in front of its loads that a pass asks memory for; 0: none */
    uint64_t sums[64];
} wall;

static void read_words(void *arg, int thread, int n_threads)
{
    wall *w = arg;
    size_t share = w->n_words / (size_t)n_threads / 8 * 8;
    const uint64_t *p = w->words + share * (size_t)thread;
    uint64_t s[8] = {0};
    for (size_t i = 0; i < share; i += 8) {
        if (w->ahead) __builtin_prefetch(p + i + w->ahead);
        for (size_t k = 0; k < 8; k++) s[k] += p[i + k];
    }
    for (size_t k = 0; k < 8; k++) w->sums[thread] += s[k];
}

/*
 * The best of a few passes over memory that no cache holds, every other one with prefetches: some cores read
 * half as much again with them, others read less.
 */
static double measure_wall(const uint64_t *words, int n_threads)
{
    base_pool *pool;
    double best = 0;
    wall w = {.words = words, .n_words = WALL_BYTES / sizeof *words};
    if (base_pool_new(&pool, n_threads, NULL)) return 0;
    for (int pass = 0; pass < WALL_PASSES; pass++) {
        w.ahead = pass % 2 ? WALL_AHEAD : 0;
        uint64_t from = base_clock_ns();
        base_pool_run(pool, read_words, &w);
        double speed = WALL_BYTES / ((double)(base_clock_ns() - from) / 1e9);
        if (speed > best) best = speed;
    }
    base_pool_free(pool);
    return w.sums[0] ? best : 0;
}

/* In a child, so that the buffer does not count as our memory. Zeros when that does not work. */
static void measure_walls(bench *b)
{
    int ends[2];
    pid_t child;
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    child = fork();
    if (child == 0) {
        uint64_t *words = base_huge_alloc(WALL_BYTES);
        double walls[2] = {0};
        if (words) {
            memset(words, 1, WALL_BYTES);
            walls[0] = measure_wall(words, 1);
            walls[1] = measure_wall(words, (int)b->info->n_threads);
        }
        _exit(write(ends[1], walls, sizeof walls) == sizeof walls ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], b->wall, sizeof b->wall) != sizeof b->wall) b->wall[0] = b->wall[1] = 0;
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
}

/* Rows, with or without a session */

/*
 * Drawn rows stand for a session's results of some hundred tokens, and what is computed behind them for one more; else
 * it is one excerpt.
 */
static kv_origin origin_of(const bench *b)
{
    return b->drawn ? KV_ORIGIN_TOOL : KV_ORIGIN_CONTEXT;
}

static int append(bench *b, kv_origin origin, uint32_t n, float *last_logits, base_err *err)
{
    const kv_segment segment = {.origin = origin, .turn = 1};
    if (b->session) return kv_session_append(b->session, &segment, b->ids, n, last_logits, NULL, err);
    return model_dense_compute(b->rows, b->model, b->ids, n, last_logits ? 1 : 0, last_logits, NULL, err);
}

static int truncate_to(bench *b, uint32_t n, base_err *err)
{
    if (b->session) return kv_session_truncate(b->session, n, err);
    model_dense_truncate(b->rows, n);
    return 0;
}

static int open_rows(bench *b, base_err *err)
{
    uint32_t n_max = (uint32_t)(b->depth + (b->prompt > b->gen ? b->prompt : b->gen));
    model_rows_shape shape = model_get_rows_shape(b->model);
    kv_options options = {.policy = b->common.policy, .set = b->common.set};
    int rc;

    if (b->drawn && !b->common.budget && !b->common.policy && !b->common.n_set)
        return base_fail(
            err, BASE_E_USAGE, "--drawn needs a session: give --kv-budget, or --kv-policy full for all rows");
    if (!b->common.budget && !b->common.policy && !b->common.repair && !b->common.n_set)
        return model_dense_new(&b->rows, &shape, n_max, err);
    kv_limit limit = {0};
    rc = options_budget(&b->common, b->info->n_ctx, b->info->row_bytes, (kv_limit){0}, &limit, err);
    options.budget = limit.rows;
    options.until = limit.until;
    options.repair = options_repair(&b->common);
    const kv_compute compute = kv_drawn_compute(&b->drawer, b->model);
    return rc ? rc : kv_session_new_over(&b->session, &compute, &options, NULL, err);
}

/* Measuring */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static spread spread_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_numbers);
    double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    return (spread){values[0], median, values[n - 1]};
}

static int prefill_once(bench *b, double *ret_tps, base_err *err)
{
    uint64_t from = base_clock_ns();
    int rc = append(b, origin_of(b), (uint32_t)b->prompt, b->logits, err);
    uint64_t to = base_clock_ns();
    *ret_tps = (double)b->prompt / ((double)(to - from) / 1e9);
    if (b->first_ms == 0) b->first_ms = (double)(to - b->began_ns) / 1e6;
    return rc;
}

static int decode_once(bench *b, double *ret_tps, base_err *err)
{
    uint64_t from = base_clock_ns();
    int rc = 0;
    for (int64_t i = 0; i < b->gen && !rc; i++) {
        rc = append(b, KV_ORIGIN_ANSWER, 1, b->logits, err);
        if (!rc) b->ids[0] = model_sampler_pick(b->sampler, b->logits, NULL, NULL, 0, NULL);
    }
    *ret_tps = (double)b->gen / ((double)(base_clock_ns() - from) / 1e9);
    return rc;
}

static int repeat(bench *b, int (*once)(bench *b, double *ret_tps, base_err *err), spread *ret, base_err *err)
{
    double values[MAX_REPEAT];
    int rc = 0;
    for (int64_t i = 0; i < b->repeat && !rc; i++) {
        rc = once(b, &values[i], err);
        if (!rc) rc = truncate_to(b, (uint32_t)b->depth, err);
    }
    if (!rc) *ret = spread_of(values, (size_t)b->repeat);
    return rc;
}

/* What decoded tokens read where they choose (--kv-set decode); live 0: everything. */
static kv_reads reads_of(const bench *b)
{
    kv_stats stats = {.n_tokens = 0};
    if (b->session) kv_session_get_stats(b->session, &stats);
    return stats.reads;
}

/* What a token at this depth reads: all weights, and the rows there are (mean over the run). */
static double bytes_per_token(const bench *b)
{
    double rows = (double)b->depth + (double)b->gen / 2;
    if (b->session) {
        kv_stats stats;
        kv_session_get_stats(b->session, &stats);
        rows = stats.active;
        const kv_reads *r = &stats.reads;
        if (r->live)
            rows = rows * (double)r->read / (double)r->live +
                   rows * (double)r->profile_bytes / ((double)stats.n_tokens * b->info->row_bytes);
    }
    return (double)b->info->weight_bytes_per_token + rows * b->info->row_bytes;
}

static void put_spread(base_buf *out, const char *name, const spread *s)
{
    base_buf_printf(
        out, "\"%s\":{\"min\":%.2f,\"median\":%.2f,\"max\":%.2f},", name, s->min, s->median, s->max);
}

/* Memory of profiles beside that of the rows. */
static double profile_share(const bench *b, const kv_reads *r)
{
    return b->depth ? (double)r->profile_bytes / ((double)b->depth * b->info->row_bytes) : 0;
}

static void print_json(
    const bench *b, const spread *prefill, const spread *decode, double share, uint64_t rss)
{
    base_buf out = {0};
    base_buf_puts(&out, "{\"model\":");
    base_json_put_str(&out, b->info->name, strlen(b->info->name));
    base_buf_printf(&out, ",\"isa\":\"%s\",\"threads\":%d,\"prompt\":%d,\"gen\":%d,\"depth\":%d,",
        b->info->isa, (int)b->info->n_threads, (int)b->prompt, (int)b->gen, (int)b->depth);
    if (b->prompt) put_spread(&out, "prefill_tps", prefill);
    if (b->prompt && !b->depth) base_buf_printf(&out, "\"first_token_ms\":%.1f,", b->first_ms);
    if (b->gen) put_spread(&out, "decode_tps", decode);
    const kv_reads r = reads_of(b);
    if (r.live)
        base_buf_printf(&out,
            "\"read\":%.4f,\"reused\":%.4f,\"choose_ms\":%.3f,\"profile_ms\":%.1f,\"profile_share\":%.4f,",
            (double)r.read / (double)r.live, r.chosen ? (double)r.kept / (double)r.chosen : 0,
            (double)r.ns / 1e6 / (double)r.steps, (double)r.profile_ns / 1e6, profile_share(b, &r));
    base_buf_printf(&out,
        "\"load_s\":%.3f,\"peak_rss\":%llu,\"weights_bytes_per_token\":%llu,\"row_bytes\":%u,"
        "\"wall_bytes_per_s\":%.0f,\"wall_share\":%.3f}",
        b->load_s, (unsigned long long)rss, (unsigned long long)b->info->weight_bytes_per_token,
        b->info->row_bytes, b->wall[1], share);
    puts(out.data);
    base_buf_free(&out);
}

static void print_text(
    const bench *b, const spread *prefill, const spread *decode, double share, uint64_t rss)
{
    printf("%s, %s, %d threads, depth %d\n", b->info->name, b->info->isa, (int)b->info->n_threads,
        (int)b->depth);
    if (b->prompt)
        printf("prefill of %-5d %8.1f tokens/s  (%.1f to %.1f)\n", (int)b->prompt, prefill->median,
            prefill->min, prefill->max);
    if (b->gen)
        printf("decode of %-5d  %8.2f tokens/s  (%.2f to %.2f), %.0f%% of what memory gives\n", (int)b->gen,
            decode->median, decode->min, decode->max, share * 100);
    const kv_reads r = reads_of(b);
    if (r.live)
        printf("a step reads %.1f%% of the rows, %.0f%% of what it chose as the step before; choosing takes "
               "%.2f ms; profiles are %.1f%% of the rows' memory\n",
            100 * (double)r.read / (double)r.live, r.chosen ? 100 * (double)r.kept / (double)r.chosen : 0,
            (double)r.ns / 1e6 / (double)r.steps, 100 * profile_share(b, &r));
    printf("memory reads %.1f GB/s (one thread %.1f); a token reads %.0f MB of weights; a row is %u bytes\n",
        b->wall[1] / 1e9, b->wall[0] / 1e9, (double)b->info->weight_bytes_per_token / 1e6,
        b->info->row_bytes);
    printf("loading took %.2f s; peak memory %.0f MB\n", b->load_s, (double)rss / 1e6);
    if (b->prompt && !b->depth)
        printf("first token %.0f ms after the start, behind a prompt of %d\n", b->first_ms, (int)b->prompt);
}

/* Where the time goes */

/*
 * One line an operation, beside its own limit: reading weights and rows at the wall's speed, or multiplying
 * at the peak of the unit that multiplies, whichever takes longer. Operations that do neither are overhead
 * and have no limit.
 */
static void print_profile_row(const bench *b, const model_profile_row *r, double total_ns, int64_t n_tokens)
{
    double seconds = (double)r->ns / 1e9, limit = 0;
    char what[48];
    const char *of = "";
    if (r->n_out)
        snprintf(what, sizeof what, "%s %u -> %u", r->op, r->n_in, r->n_out);
    else
        snprintf(what, sizeof what, "%s", r->op);
    printf("  %-26s %9.1f %6.1f%%", what, (double)r->ns / 1e3 / (double)n_tokens,
        100 * (double)r->ns / total_ns);
    if (r->macs > 0 && b->wall[1] > 0) {
        double reading = r->bytes / b->wall[1];
        double multiplying = b->peak[r->kind] > 0 ? r->macs / b->peak[r->kind] : 0;
        limit = reading > multiplying ? reading : multiplying;
        of = reading > multiplying ? "reading" : "multiplying";
        printf(" %8.1f GB/s %8.1f GMAC/s %6.0f%% of %s", r->bytes / seconds / 1e9, r->macs / seconds / 1e9,
            100 * limit / seconds, of);
    }
    putchar('\n');
}

static int profile(bench *b, const char *what, int64_t n_tokens,
    int (*once)(bench *b, double *ret_tps, base_err *err), base_err *err)
{
    model_profile *p;
    uint32_t n_rows;
    double tps, inside = 0;
    int rc = model_profile_start(&p, b->model, err);
    if (rc) return rc;
    rc = once(b, &tps, err);
    if (!rc) rc = truncate_to(b, (uint32_t)b->depth, err);
    if (!rc) {
        const model_profile_row *rows = model_profile_rows(p, &n_rows);
        double total = (double)n_tokens / tps * 1e9;
        printf("%s, us a token:\n", what);
        for (uint32_t i = 0; i < n_rows; i++) {
            print_profile_row(b, &rows[i], total, n_tokens);
            inside += (double)rows[i].ns;
        }
        printf("  %-26s %9.1f %6.1f%%\n", "everything else", (total - inside) / 1e3 / (double)n_tokens,
            100 * (total - inside) / total);
    }
    model_profile_stop(p);
    return rc;
}

static int print_profiles(bench *b, base_err *err)
{
    int rc = 0;
    for (int kind = 0; kind < 2; kind++) b->peak[kind] = model_peak(b->model, (ops_peak)kind);
    printf("multiplications: %.0f GMAC/s of 8-bit integers, %.0f of F32\n", b->peak[OPS_PEAK_BYTES] / 1e9,
        b->peak[OPS_PEAK_FLOATS] / 1e9);
    if (b->prompt) rc = profile(b, "prefill", b->prompt, prefill_once, err);
    if (!rc && b->gen) rc = profile(b, "decode", b->gen, decode_once, err);
    return rc;
}

/* The rows of --depth. */
static int fill(bench *b, base_err *err)
{
    const uint32_t piece = b->drawn ? RESULT : (uint32_t)b->depth;
    int rc = 0;
    for (uint32_t left = (uint32_t)b->depth, n; left && !rc; left -= n) {
        n = left < piece ? left : piece;
        rc = append(b, origin_of(b), n, NULL, err);
    }
    return rc;
}

static int measure(bench *b, base_err *err)
{
    spread prefill = {0}, decode = {0};
    struct rusage self;
    double share = 0;
    int64_t n_ids = b->depth + b->prompt + 1;
    int rc;

    b->logits = base_xcalloc(b->info->n_vocab, sizeof *b->logits);
    b->sampler = model_sampler_new(&MODEL_SAMPLING_DEFAULTS, b->info->n_vocab);
    b->ids = base_xcalloc((size_t)n_ids, sizeof *b->ids);
    for (int64_t i = 0; i < n_ids; i++)
        b->ids[i] = (int32_t)((uint64_t)(i + 1) * 2654435761u % (b->info->n_vocab * 3 / 4));
    if ((rc = open_rows(b, err))) return rc;
    b->drawer.computes = !b->drawn;
    if (b->depth && (rc = fill(b, err))) return rc;
    b->drawer.computes = true;
    if (b->prompt && (rc = repeat(b, prefill_once, &prefill, err))) return rc;
    measure_walls(b);
    if (b->gen && (rc = repeat(b, decode_once, &decode, err))) return rc;
    getrusage(RUSAGE_SELF, &self);
    if (b->gen && b->wall[1] > 0) share = decode.median * bytes_per_token(b) / b->wall[1];
    (b->json ? print_json : print_text)(b, &prefill, &decode, share, (uint64_t)self.ru_maxrss * 1024);
    return b->profile ? print_profiles(b, err) : 0;
}

static int bench_speed(bench *b, base_err *err)
{
    b->began_ns = base_clock_ns();
    int rc = cmd_open_model(&b->common, &b->model, err);
    b->load_s = (double)(base_clock_ns() - b->began_ns) / 1e9;
    if (!rc) {
        b->info = model_get_info(b->model);
        rc = measure(b, err);
    }
    kv_session_free(b->session);
    model_dense_free(b->rows);
    model_close(b->model);
    free(b->ids);
    free(b->logits);
    model_sampler_free(b->sampler);
    return rc;
}

static int check_range(const char *name, int64_t value, int64_t min, int64_t max, base_err *err)
{
    if (value >= min && value <= max) return 0;
    return base_fail(
        err, BASE_E_USAGE, "%s %lld: %lld to %lld", name, (long long)value, (long long)min, (long long)max);
}

static int run(bench *b, base_err *err)
{
    int rc;
    if (b->json && b->profile) return base_fail(err, BASE_E_USAGE, "--profile is text; leave out --json");
    if ((rc = check_range("--prompt", b->prompt, 0, 1 << 24, err))) return rc;
    if ((rc = check_range("--gen", b->gen, 0, 1 << 24, err))) return rc;
    if ((rc = check_range("--depth", b->depth, 0, 1 << 24, err))) return rc;
    if ((rc = check_range("--repeat", b->repeat, 1, MAX_REPEAT, err))) return rc;
    if ((rc = check_range("--threads", b->common.threads, 0, 64, err))) return rc;
    return bench_speed(b, err);
}

int cmd_bench_speed(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .prompt = 512, .gen = 64, .repeat = 3};
    const option_row own[] = {
        {"--prompt", OPTION_INTEGER, &b.prompt, "N", "tokens of a prefill (512; 0: none)"},
        {"--gen", OPTION_INTEGER, &b.gen, "N", "tokens that are decoded one by one (64; 0: none)"},
        {"--depth", OPTION_INTEGER, &b.depth, "N", "rows that are there before either (0)"},
        {"--repeat", OPTION_INTEGER, &b.repeat, "N", "how often (3)"},
        {"--drawn", OPTION_FLAG, &b.drawn, NULL,
            "the rows of --depth are drawn, not computed; with cache options"},
        {"--json", OPTION_FLAG, &b.json, NULL, "one object"},
        {"--profile", OPTION_FLAG, &b.profile, NULL, "a further run of each, timed: where its time goes"},
        {0},
    };
    base_err err = {0};
    int status;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage, .is_configured = true}, &status))
        return status;
    return run(&b, &err) ? cmd_complain(&err) : CMD_OK;
}
