/* The table of gaps; see fold.h. */
#include "kv/core/fold.h"

#include <stdlib.h>
#include <string.h>

#include "model/ops/rows.h"

void kv_fold_free(kv_fold *f)
{
    free(f->gaps);
    *f = (kv_fold){.n = 0};
}

static bool reserve(kv_fold *f, uint32_t n)
{
    if (n <= f->cap) return true;
    const uint32_t cap = n + n / 2 + 16;
    uint32_t *gaps = realloc(f->gaps, cap * sizeof *gaps);
    if (!gaps) return false;
    f->gaps = gaps;
    f->cap = cap;
    return true;
}

int kv_fold_copy(kv_fold *f, const kv_fold *from, base_err *err)
{
    if (!reserve(f, from->n)) return base_fail(err, BASE_E_NOMEM, "no memory for a fold of %u gaps", from->n);
    if (from->n) memcpy(f->gaps, from->gaps, from->n * sizeof *f->gaps);
    f->n = from->n;
    return 0;
}

static void trim(kv_fold *f)
{
    while (f->n && !f->gaps[f->n - 1]) f->n--;
}

bool kv_fold_change(kv_fold *f, const int32_t *changes, uint32_t n)
{
    const uint32_t n_all = n > f->n ? n : f->n;
    int64_t behind = 0;
    for (uint32_t g = n_all; g-- > 0;) {
        const int64_t gap = (g < f->n ? (int64_t)f->gaps[g] : 0) + (g < n ? changes[g] : 0);
        if (gap < behind || gap > UINT32_MAX) return false;
        behind = gap;
    }
    if (!reserve(f, n_all)) return false;
    for (uint32_t g = f->n; g < n_all; g++) f->gaps[g] = 0;
    for (uint32_t g = 0; g < n; g++) f->gaps[g] = (uint32_t)((int64_t)f->gaps[g] + changes[g]);
    f->n = n_all;
    trim(f);
    return true;
}

bool kv_fold_is_valid(const kv_fold *f, uint32_t n_tokens)
{
    if (f->n > n_tokens / MODEL_ROWS_GROUP) return false;
    for (uint32_t g = 0; g < f->n; g++)
        if (!f->gaps[g] || f->gaps[g] > n_tokens || (g && f->gaps[g] > f->gaps[g - 1])) return false;
    return true;
}

void kv_fold_truncate(kv_fold *f, uint32_t n_tokens)
{
    const uint32_t open = n_tokens / MODEL_ROWS_GROUP;
    if (!open || open > f->n) {
        if (!open) f->n = 0;
        return;
    }
    const uint32_t base = f->gaps[open - 1];
    f->n = open;
    for (uint32_t g = 0; g < open; g++) f->gaps[g] -= base;
    trim(f);
}
