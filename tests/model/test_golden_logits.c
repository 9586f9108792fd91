/*
 * The engine's truth: log-probabilities that an independent program computed in F32
 * (shared/data/golden/logits-*.json.gz; its README says what they are). For every text KL(truth || ours),
 * over the 32 ids that are listed and one bucket for the rest, must be no larger than llama.cpp's own
 * distance, and below 0.05 at position 0, where activations are enormous.
 *
 * The small model and, where it was fetched, Gemma (one text is longer than its window) are part of the
 * suite. `test_golden_logits default` does the same for the 1.5B model, `test_golden_logits first` for the
 * first text of each alone; it prints a line a text.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/forward/dense.h"
#include "model/forward/model.h"

enum { WANTED_AT_ONCE = 64 };

typedef struct golden_case {
    const char *model, *logits;
} golden_case;

static const golden_case small = {
    "models/SmolLM2-135M-Instruct.Q4_1.gguf", "logits-smollm2-135m-q4_1.json.gz"};
static const golden_case large = {
    "models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "logits-qwen2.5-coder-1.5b-q4_k_m.json.gz"};
static const golden_case gemma = {"models/gemma-3-270m-q4_k_m.gguf", "logits-gemma3-270m-q4_k_m.json.gz"};
static const golden_case *first_case = &small;
static bool first_text_alone;

/* What one text gave. */
typedef struct distance {
    double first, mean, max, top1;
} distance;

static char *shared_path(const char *name)
{
    const char *shared = getenv("KVIST_SHARED");
    base_buf path = {0};
    base_buf_printf(&path, "%s/data/golden/%s", shared && *shared ? shared : KVIST_SHARED_DEFAULT, name);
    return base_buf_take(&path);
}

static base_json_doc *read_gzip_json(const char *path)
{
    base_buf command = {0}, text = {0};
    base_json_doc *doc = NULL;
    char piece[65536];
    size_t n;

    base_buf_printf(&command, "gzip -dc '%s'", path);
    FILE *pipe = popen(command.data, "r");
    assert_non_null(pipe);
    while ((n = fread(piece, 1, sizeof piece, pipe)) > 0) base_buf_add(&text, piece, n);
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(base_json_parse(text.data, text.len, &doc, NULL), 0);
    base_buf_free(&command);
    base_buf_free(&text);
    return doc;
}

/* log(sum(exp(logits))) in double, around the maximum. */
static double log_sum(const float *logits, uint32_t n)
{
    double max = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (logits[i] > max) max = logits[i];
    for (uint32_t i = 0; i < n; i++) sum += exp(logits[i] - max);
    return max + log(sum);
}

/* KL(truth || ours) over the listed ids and the rest; *ret_top1: the truth's best is our best. */
static double position_kl(const base_json *top, const float *logits, uint32_t n_vocab, bool *ret_top1)
{
    double all = log_sum(logits, n_vocab), kl = 0, p_listed = 0, q_listed = 0;
    const base_json *best = base_json_at(base_json_at(top, 0), 0);

    for (const base_json *pair = top->first; pair; pair = pair->next) {
        int64_t id = base_json_at(pair, 0)->integer;
        double log_p = base_json_at(pair, 1)->number, log_q;
        assert_in_range(id, 0, n_vocab - 1);
        log_q = logits[id] - all;
        kl += exp(log_p) * (log_p - log_q);
        p_listed += exp(log_p);
        q_listed += exp(log_q);
    }
    if (p_listed < 1 && q_listed < 1) kl += (1 - p_listed) * log((1 - p_listed) / (1 - q_listed));
    *ret_top1 = true;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (logits[i] > logits[best->integer]) *ret_top1 = false;
    return kl;
}

static distance measure(model *m, const base_json *text)
{
    const base_json *ids_json = base_json_get(text, "ids"), *top = base_json_get(text, "top")->first;
    uint32_t n = (uint32_t)ids_json->n, n_vocab = model_get_info(m)->n_vocab, done = 0;
    model_rows_shape shape = model_get_rows_shape(m);
    distance d = {.max = -INFINITY};
    float *logits = base_xcalloc((size_t)WANTED_AT_ONCE * n_vocab, sizeof *logits);
    int32_t *ids = base_xcalloc(n, sizeof *ids);
    model_dense *rows;
    base_err err = {0};

    for (const base_json *id = ids_json->first; id; id = id->next) ids[done++] = (int32_t)id->integer;
    assert_int_equal(model_dense_new(&rows, &shape, n, &err), 0);
    for (uint32_t at = 0; at < n; at += WANTED_AT_ONCE) {
        uint32_t now = n - at < WANTED_AT_ONCE ? n - at : WANTED_AT_ONCE;
        if (model_dense_compute(rows, m, ids + at, now, now, logits, NULL, &err)) fail_msg("%s", err.msg);
        for (uint32_t i = 0; i < now; i++, top = top->next) {
            bool top1;
            double kl = position_kl(top, logits + (size_t)i * n_vocab, n_vocab, &top1);
            d.top1 += top1;
            if (at + i == 0) {
                d.first = kl;
                continue;
            }
            d.mean += kl;
            if (!(kl <= d.max)) d.max = kl;
        }
    }
    d.mean /= n - 1;
    d.top1 /= n;
    model_dense_free(rows);
    free(logits);
    free(ids);
    return d;
}

static void check(const golden_case *which)
{
    char *model_path = base_fs_home(BASE_HOME_DATA, which->model), *golden_path = shared_path(which->logits);
    unsigned mask =
        getenv("KVIST_TEST_CPU_MASK") ? (unsigned)strtoul(getenv("KVIST_TEST_CPU_MASK"), NULL, 0) : 0;
    model_options options = {.n_threads = 2, .cpu_mask = mask, .backend = "cpu"};
    model *m;
    base_err err = {0};
    int n_far = 0;

    if (!base_fs_exists(model_path) || !base_fs_exists(golden_path)) {
        fprintf(stderr, "needs %s and %s\n", model_path, golden_path);
        free(model_path);
        free(golden_path);
        skip();
    }
    if (model_open(&m, model_path, &options, &err)) fail_msg("%s", err.msg);
    base_json_doc *doc = read_gzip_json(golden_path);
    printf("%s, %s\n", which->model, model_get_info(m)->isa);
    for (const base_json *text = base_json_root(doc)->first; text;
         text = first_text_alone ? NULL : text->next) {
        distance d = measure(m, text);
        const base_json *peer = base_json_get(text, "peer");
        double bound = base_json_num(peer, "kl_mean", 0);
        bool fine = d.mean <= bound && d.first < 0.05;
        printf("%-14s KL %.5f (llama.cpp %.5f)  largest %.4f  at 0 %.5f (%.4f)  best agrees %.4f (%.4f)%s\n",
            base_json_str(text, "name", "?"), d.mean, bound, d.max, d.first,
            base_json_num(peer, "kl_first_token", 0), d.top1, base_json_num(peer, "top1", 0),
            fine ? "" : "  TOO FAR");
        n_far += !fine;
    }
    base_json_free(doc);
    model_close(m);
    free(model_path);
    free(golden_path);
    assert_int_equal(n_far, 0);
}

static void test_golden_logits__no_farther_than_llama_cpp(void **state)
{
    check(first_case);
}

static void test_golden_logits__gemma_is_no_farther_than_llama_cpp(void **state)
{
    check(&gemma);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden_logits__no_farther_than_llama_cpp),
        cmocka_unit_test(test_golden_logits__gemma_is_no_farther_than_llama_cpp)};
    if (argc > 1 && strcmp(argv[1], "default") == 0) first_case = &large;
    first_text_alone = argc > 1 && strcmp(argv[1], "first") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
