/*
 * kvist-bench offload: a step of decoding where rows do not fit the memory given for them. The oldest rows beyond it
 * lie in a file of which nothing is in memory when a step begins; with the full cache every step reads all of it
 * (announced to the system beforehand, in the order of the layers, so that reading and computing overlap), by
 * sentences what it chose and does not have from steps before (SentKVCompress). Beside them the same with all rows in
 * memory. Rows are drawn, or computed from a text; every arm is given the same tokens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "bench/bench.h"
#include "bench/common/corpus.h"
#include "bench/common/statistics.h"
#include "kv/calibrate/drawn_rows.h"
#include "kv/lab/lab.h"
#include "model/text/tokenizer.h"

static const char usage[] =
    "usage: kvist-bench offload --model M [--corpus FOLDER] "
    "[--rows N] [--host MIB] [--steps N] [--rounds N]\n"
    "                           [--work FOLDER]\n"
    "\n"
    "  --corpus FOLDER  rows are computed from this text; without, they are drawn\n"
    "  --rows N         tokens in front of what is written (16384, at most the context)\n"
    "  --host MIB       memory for rows (half of what they take)\n"
    "  --steps N        tokens written, behind two that are not counted (16)\n"
    "  --rounds N       each arm so often, by turns (1)\n"
    "  --work FOLDER    where the rows' files lie (/var/tmp)\n"
    "\n";

typedef enum where { IN_MEMORY, BEYOND } where;

static const struct arm {
    const char *name, *policy;
    where where;
    const char *set[5];
} arms[] = {
    {"full", "full", IN_MEMORY, {NULL}},
    {"full, beyond memory", "full", BEYOND, {NULL}},
    {"sentences", "sentkv", IN_MEMORY, {NULL}},
    {"sentences, beyond memory, the last step's kept", "sentkv", BEYOND, {"kept=1", "ahead=0"}},
    {"sentences, beyond memory, the last step's kept, ahead", "sentkv", BEYOND, {"kept=1", "ahead=.25"}},
    {"sentences, beyond memory, twice as many kept", "sentkv", BEYOND, {"kept=2", "ahead=0"}},
    {"sentences, beyond memory, twice as many kept, ahead", "sentkv", BEYOND, {"kept=2", "ahead=.25"}},
};
enum { N_ARMS = sizeof arms / sizeof *arms, WARM = 2, MOST_STEPS = 512 };

typedef struct bench {
    common_options common;
    const char *corpus_folder, *work;
    int64_t rows, host, steps, rounds;
    model *model;
    const model_info *info;
    base_buf file;
    model_ids ids; /* [rows + WARM + steps] */
    float *logits;
    uint64_t hash[2]; /* of an arm's logits: full, by sentences */
} bench;

static int make_ids(bench *b, base_err *err)
{
    const size_t wanted = (size_t)(b->rows + WARM + b->steps);
    base_buf text = {0};
    int r = b->corpus_folder ? bench_corpus_load(b->corpus_folder, &text, err) : 0;
    if (!r && text.len)
        model_tokenizer_encode(model_get_tokenizer(b->model), text.data, text.len, false, &b->ids);
    base_buf_free(&text);
    if (!r && b->corpus_folder && b->ids.n < wanted)
        return base_fail(
            err, BASE_E_USAGE, "%s has %zu tokens; %zu are wanted", b->corpus_folder, b->ids.n, wanted);
    for (uint64_t i = 0; !r && b->ids.n < wanted; i++)
        model_ids_add(&b->ids, (int32_t)(base_hash64(&i, sizeof i, 3) % b->info->n_vocab));
    return r;
}

/* The rows, saved once. */
static int make_rows(bench *b, base_err *err)
{
    kv_drawn_rows drawn;
    kv_session *s = NULL;
    const kv_compute compute =
        b->corpus_folder ? kv_compute_model(b->model) : kv_drawn_compute(&drawn, b->model);
    const kv_segment text = {.origin = KV_ORIGIN_CONTEXT, .turn = 1};
    const kv_options o = {.policy = "full", .row_file = b->file.data};
    int r = kv_session_new_over(&s, &compute, &o, NULL, err);
    if (!r) r = kv_session_append(s, &text, b->ids.ids, (uint32_t)b->rows, NULL, NULL, err);
    if (!r) r = kv_session_save(s, err);
    kv_session_free(s);
    return r;
}

static int open_arm(bench *b, const struct arm *a, kv_session **ret, base_err *err)
{
    char host[32];
    const char *set[8] = {NULL};
    size_t n = 0;
    for (; a->set[n]; n++) set[n] = a->set[n];
    snprintf(host, sizeof host, "host=%lld", (long long)b->host);
    if (a->where == BEYOND) set[n] = host;
    const kv_options o = {.policy = a->policy, .row_file = b->file.data, .set = set};
    int r = kv_session_resume(ret, b->model, &o, NULL, err);
    if (!r && a->where == BEYOND && !strcmp(a->policy, "full"))
        r = kv_session_offload(*ret, (uint64_t)b->host << 20, err);
    return r;
}

static int write_step(bench *b, kv_session *s, const struct arm *a, int64_t i, double *ret_ms, base_err *err)
{
    const kv_segment answer = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    if (a->where == BEYOND) kv_session_forget_pages(s);
    const uint64_t start = base_clock_ns();
    if (a->where == BEYOND && !strcmp(a->policy, "full")) kv_session_announce(s);
    const int r = kv_session_append(s, &answer, b->ids.ids + b->rows + i, 1, b->logits, NULL, err);
    *ret_ms = (double)(base_clock_ns() - start) / 1e6;
    return r;
}

static void print_arm(bench *b, const struct arm *a, int64_t round, double *ms, const kv_reads *before,
    const kv_stats *stats, uint64_t on_disk, uint64_t hash)
{
    const size_t n = (size_t)b->steps;
    const kv_reads *now = &stats->reads;
    const bool is_full = !strcmp(a->policy, "full");
    uint64_t *first = &b->hash[!is_full];
    if (!*first) *first = hash;
    const double found = (double)(now->found - before->found),
                 fetched = (double)(now->fetched - before->fetched),
                 chosen = (double)(now->chosen - before->chosen);
    qsort(ms, n, sizeof *ms, bench_compare_doubles);
    printf("{\"bench\":\"offload\",\"model\":\"%.12s\",\"rows\":%lld,\"drawn\":%s,\"rows_mib\":%.0f,\"host_"
           "mib\":%lld,"
           "\"arm\":\"%s\",\"round\":%lld,\"steps\":%zu,\"step_ms\":%.1f,\"least_ms\":%.1f,\"most_ms\":%.1f,"
           "\"on_disk_mib\":%.0f,\"same_bits\":%s",
        b->info->hash, (long long)b->rows, b->corpus_folder ? "false" : "true",
        (double)b->rows * b->info->row_bytes / 1048576, (long long)(a->where == BEYOND ? b->host : 0),
        a->name, (long long)round, n, ms[n / 2], ms[0], ms[n - 1], (double)on_disk / 1048576,
        hash == *first ? "true" : "false");
    if (chosen > 0)
        printf(",\"read\":%.3f,\"as_before\":%.3f",
            (double)(now->read - before->read) / (double)(now->live - before->live),
            (double)(now->kept - before->kept) / chosen);
    if (found + fetched > 0)
        printf(",\"reused\":%.3f,\"ahead\":%.0f,\"ahead_used\":%.0f,\"mib_a_step\":%.2f,\"wait_ms\":%.1f,"
               "\"copies_mib\":%.0f",
            found / (found + fetched), (double)(now->ahead - before->ahead) / (double)n,
            (double)(now->ahead_used - before->ahead_used) / (double)n,
            (double)(now->fetched_bytes - before->fetched_bytes) / 1048576 / (double)n,
            (double)(now->wait_ns - before->wait_ns) / 1e6 / (double)n, (double)now->copies_bytes / 1048576);
    puts("}");
    fflush(stdout);
}

static int run_arm(bench *b, const struct arm *a, int64_t round, base_err *err)
{
    double ms[MOST_STEPS], warm;
    kv_session *s = NULL;
    kv_stats before, after;
    uint64_t hash = 1;
    int r = open_arm(b, a, &s, err);
    for (int64_t i = 0; i < WARM && !r; i++) r = write_step(b, s, a, i, &warm, err);
    if (!r) kv_session_get_stats(s, &before);
    for (int64_t i = 0; i < b->steps && !r; i++) {
        r = write_step(b, s, a, WARM + i, &ms[i], err);
        hash = base_hash64(b->logits, b->info->n_vocab * sizeof *b->logits, hash);
    }
    if (!r) {
        kv_session_get_stats(s, &after);
        print_arm(b, a, round, ms, &before.reads, &after, kv_session_forget_pages(s), hash);
    }
    kv_session_free(s);
    return r;
}

static int run(bench *b, base_err *err)
{
    base_buf folder = {0};
    int r = cmd_open_model(&b->common, &b->model, err);
    if (r) return r;
    b->info = model_get_info(b->model);
    const int64_t room = (int64_t)b->info->n_ctx - WARM - b->steps;
    if (b->rows > room) b->rows = room;
    if (!b->host) b->host = (int64_t)((double)b->rows * b->info->row_bytes / 2 / 1048576);
    b->logits = malloc(b->info->n_vocab * sizeof *b->logits);
    if (!b->logits) return base_fail(err, BASE_E_NOMEM, "no memory for logits");
    base_buf_printf(&folder, "%s/kvist-offload-XXXXXX", b->work);
    if (!mkdtemp(folder.data)) {
        base_buf_free(&folder);
        return base_fail_sys(err, "cannot make a folder for the session's rows in %s", b->work);
    }
    base_buf_printf(&b->file, "%s/rows", folder.data);
    r = make_ids(b, err);
    if (!r) r = make_rows(b, err);
    for (int64_t round = 1; round <= b->rounds; round++)
        for (size_t i = 0; i < N_ARMS && !r; i++) r = run_arm(b, &arms[i], round, err);
    base_fs_remove(folder.data, NULL);
    base_buf_free(&folder);
    return r;
}

int bench_offload(int argc, char **argv)
{
    bench b = {
        .common = COMMON_OPTIONS_DEFAULTS, .rows = 16384, .steps = 16, .rounds = 1, .work = "/var/tmp"};
    const option_row own[] = {
        {"--corpus", OPTION_TEXT, &b.corpus_folder},
        {"--rows", OPTION_INTEGER, &b.rows, .bounds = {2000, BENCH_ROWS}},
        {"--host", OPTION_INTEGER, &b.host, .bounds = {0, BENCH_MIB}},
        {"--steps", OPTION_INTEGER, &b.steps, .bounds = {1, MOST_STEPS}},
        {"--rounds", OPTION_INTEGER, &b.rounds, .bounds = {1, BENCH_ROUNDS}},
        {"--work", OPTION_TEXT, &b.work},
        {.name = NULL},
    };
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!r) r = run(&b, &err);
    free(b.logits);
    model_ids_free(&b.ids);
    base_buf_free(&b.file);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
