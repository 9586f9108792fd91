/* Files that hold what was found out about a model once, the pivot, the retrieval heads, the pace and the trained residual: whatever the bytes, they are of use or none. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kv/calibrate/pace.h"
#include "kv/policy/residual.h"
#include "kv/prune/pivot.h"
#include "kv/repair/heads.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void try_pivot(const char *text, size_t n)
{
    kv_pivot *p = kv_pivot_parse(text, n);
    if (!p) return;
    double curve[KV_PIVOT_LAYERS];
    uint32_t alone = 0;
    kv_pivot_curve(p, curve);
    for (uint32_t l = 0; l < p->n_layer; l++)
        if (!isfinite(curve[l])) abort();
    const double floors[] = {0, .25, .75};
    for (size_t i = 0; i < 3; i++)
        if (p->n_layer > 1) {
            const uint32_t cut = kv_pivot_cut(p, floors[i], &alone);
            if (!cut || cut >= p->n_layer || !alone || alone > p->n_layer) abort();
        } else if (kv_pivot_cut(p, floors[i], NULL))
            abort();
    free(p);
}

static void try_pace(const char *text, size_t n)
{
    kv_pace p;
    if (!kv_pace_parse(text, n, &p)) return;
    const kv_limit limit = kv_pace_limit(&p);
    if (limit.rows && (limit.rows != p.rows || limit.until < 2 * limit.rows || limit.until % 1024)) abort();
}

static void try_heads(const char *text, size_t n)
{
    enum { LAYERS = 3, HEADS = 4 };
    uint8_t *flags = NULL, seen[LAYERS * HEADS] = {0};
    uint16_t *order = NULL;
    const bool fine = kv_heads_parse(text, n, "abc", LAYERS, HEADS, &flags, &order);
    if (fine != (flags != NULL) || (order && !fine)) abort();
    for (size_t i = 0; order && i < LAYERS * HEADS; i++)
        if (order[i] >= LAYERS * HEADS || seen[order[i]]++) abort();
    free(flags);
    free(order);
}

/* What is taken is put back as the same bytes. */
static void try_residual_file(const void *bytes, size_t n)
{
    kv_residual *r = NULL;
    base_buf out = {0};
    if (!kv_residual_parse(bytes, n, &r, NULL)) {
        kv_residual_put(r, &out);
        if (out.len != n || memcmp(out.data, bytes, n)) abort();
        base_buf_free(&out);
    } else if (r) {
        abort();
    }
    kv_residual_unref(r);
}

/* The bytes as they are; and over the beginning of a file that is one, with a sum that fits, so that what lies behind it is seen. */
static void try_residual(const uint8_t *bytes, size_t n)
{
    enum { SUM = 32 };
    kv_residual *r = kv_residual_new(1, "abc");
    base_buf file = {0};
    base_sha256 sum;
    try_residual_file(bytes, n);
    if (!r) abort();
    kv_residual_put(r, &file);
    memcpy(file.data, bytes, n < file.len ? n : file.len);
    base_sha256_init(&sum);
    base_sha256_add(&sum, file.data, file.len - SUM);
    base_sha256_end(&sum, (uint8_t *)file.data + file.len - SUM);
    try_residual_file(file.data, file.len);
    base_buf_free(&file);
    kv_residual_unref(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    /* A copy of just these bytes: what is read behind them is seen. */
    char *copy = malloc(n + 1);
    if (!copy) abort();
    memcpy(copy, bytes, n);
    char *exact = n ? malloc(n) : NULL;
    if (exact) memcpy(exact, bytes, n);
    try_pivot(copy, n);
    try_pace(copy, n);
    if (exact) try_heads(exact, n);
    try_residual(bytes, n);
    free(copy);
    free(exact);
    return 0;
}
