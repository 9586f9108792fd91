/* The pivot's arithmetic and file: "kvist pivot 1 HASH LAYERS ROWS QUERIES", three numbers a layer. */
#include "kv/prune/pivot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "kv/core/model_file.h"

enum { FILE_MOST = 1 << 20 };

/* weight * (x_l - x_(l-1), min-max over layers) is added; a curve that never changes adds nothing. */
static void add_deltas(const double *x, double sign, double weight, uint32_t n, double *t)
{
    double least = INFINITY, most = -INFINITY;
    for (uint32_t l = 1; l < n; l++) {
        const double delta = sign * (x[l] - x[l - 1]);
        if (delta < least) least = delta;
        if (delta > most) most = delta;
    }
    for (uint32_t l = 1; l < n && most > least; l++)
        t[l] += weight * (sign * (x[l] - x[l - 1]) - least) / (most - least);
}

void kv_pivot_curve(const kv_pivot *p, double *ret)
{
    memset(ret, 0, p->n_layer * sizeof *ret);
    add_deltas(p->entropy, -1, .2, p->n_layer, ret);
    add_deltas(p->sparsity, 1, .3, p->n_layer, ret);
    add_deltas(p->variance, 1, .5, p->n_layer, ret);
}

uint32_t kv_pivot_cut(const kv_pivot *p, double floor_share, uint32_t *ret_free)
{
    double t[KV_PIVOT_LAYERS];
    uint32_t best = 1;
    if (ret_free) *ret_free = 0;
    if (p->n_layer < 2) return 0;
    kv_pivot_curve(p, t);
    for (uint32_t l = 2; l < p->n_layer; l++)
        if (t[l] > t[best]) best = l;
    uint32_t cut = best + 1, least = (uint32_t)ceil(floor_share * p->n_layer),
             most = (uint32_t)(KV_PIVOT_CEILING * p->n_layer);
    if (ret_free) *ret_free = cut;
    if (cut > most) cut = most;
    if (cut < least) cut = least;
    if (cut >= p->n_layer) cut = p->n_layer - 1; /* of few layers a share may be all */
    return cut < 1 ? 1 : cut;
}

char *kv_pivot_path(const char *model_hash)
{
    return kv_model_file(model_hash, "pivot");
}

/* An entropy in nats, a share, a variance of shares: none is far from zero. Not NaN. */
static bool is_measured(double x)
{
    return x > -1 && x < 64;
}

kv_pivot *kv_pivot_parse(const char *text, size_t n)
{
    kv_pivot *p = base_xcalloc(1, sizeof *p);
    char *copy = base_xstrndup(text, n);
    int used = 0;
    bool fine = sscanf(copy, "kvist pivot 1 %64s %u %u %u%n", p->hash, &p->n_layer, &p->n_rows, &p->n_queries,
                    &used) == 4 &&
                p->n_layer >= 1 && p->n_layer <= KV_PIVOT_LAYERS;
    const char *at = copy + used;
    for (uint32_t l = 0; fine && l < p->n_layer; l++, at += used) {
        used = 0;
        fine = sscanf(at, "%lf %lf %lf%n", &p->entropy[l], &p->sparsity[l], &p->variance[l], &used) == 3 &&
               is_measured(p->entropy[l]) && is_measured(p->sparsity[l]) && is_measured(p->variance[l]);
    }
    free(copy);
    if (fine) return p;
    free(p);
    return NULL;
}

kv_pivot *kv_pivot_load(const char *path, const char *model_hash, uint32_t n_layer)
{
    base_buf file = {0};
    kv_pivot *p = NULL;
    if (!base_fs_read(path, FILE_MOST, &file, NULL) && file.len) p = kv_pivot_parse(file.data, file.len);
    base_buf_free(&file);
    if (p && !strcmp(p->hash, model_hash) && p->n_layer == n_layer) return p;
    free(p);
    return NULL;
}

int kv_pivot_save(const kv_pivot *p, const char *path, base_err *err)
{
    base_buf out = {0};
    base_buf_printf(&out, "kvist pivot 1 %s %u %u %u\n", p->hash, p->n_layer, p->n_rows, p->n_queries);
    for (uint32_t l = 0; l < p->n_layer; l++)
        base_buf_printf(&out, "%.9g %.9g %.9g\n", p->entropy[l], p->sparsity[l], p->variance[l]);
    int rc = base_fs_mkdirs_above(path, err);
    if (!rc) rc = base_fs_write(path, out.data, out.len, 0600, err);
    base_buf_free(&out);
    return rc;
}
