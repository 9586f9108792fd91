/*
 * What masks of a schema cost on a real vocabulary: bench_answer MODEL.gguf SCHEMA < ANSWER
 * Takes the answer (JSON as kvist writes it) token by token and asks for the mask at each; prints the processor's time
 * for a mask: all of them, and the 10 dearest in a hundred.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/fs.h"
#include "model/file/gguf.h"
#include "model/text/answer.h"
#include "model/text/ids.h"

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void give_up(const char *why)
{
    fprintf(stderr, "bench_answer: %s\n", why);
    exit(1);
}

int main(int argc, char **argv)
{
    base_err err = {0};
    gguf_file *file;
    model_tokenizer *t;
    base_schema *schema;
    model_answer *a;
    base_buf text = {0};
    char answer[1 << 16];
    model_ids ids = {0};
    if (argc < 3) give_up("usage: bench_answer MODEL.gguf SCHEMA < ANSWER");
    size_t n = fread(answer, 1, sizeof answer, stdin);
    while (n && answer[n - 1] == '\n') n--;
    if (gguf_open(&file, argv[1], &err) || model_tokenizer_load(&t, file, &err) ||
        base_fs_read(argv[2], 1 << 20, &text, &err) ||
        base_schema_parse(text.data, text.len, &schema, &err) || model_answer_new(&a, t, schema, &err) ||
        model_answer_begin(a, NULL, 100000, &err))
        give_up(err.msg);
    model_tokenizer_encode(t, answer, n, false, &ids);
    model_answer_mask(a); /* what is made once */
    if (model_answer_begin(a, NULL, 100000, &err)) give_up(err.msg);
    double *us = calloc(ids.n + 1, sizeof *us), sum = 0, steps = 0;
    for (size_t i = 0; i < ids.n; i++) {
        const double from = cpu_us();
        const uint64_t *mask = model_answer_mask(a);
        const double to = cpu_us();
        if (!mask || !model_answer_accepts(a, ids.ids[i]) ||
            !(mask[ids.ids[i] / 64] >> (ids.ids[i] % 64) & 1))
            give_up("the answer does not fit the schema");
        model_answer_advance(a, ids.ids[i]);
        steps += cpu_us() - to;
        us[i] = to - from;
        sum += us[i];
    }
    qsort(us, ids.n, sizeof *us, by_size);
    printf("%zu tokens: a mask %.1f us on average, %.1f at half, %.1f "
           "at nine of ten, %.1f at most; taking a token %.1f us\n",
        ids.n, sum / (double)ids.n, us[ids.n / 2], us[ids.n * 9 / 10], us[ids.n - 1], steps / (double)ids.n);
    return 0;
}
