/*
 * A trained residual as a file: magic, version, sizes, the model's hash, the numbers as F32, and a SHA-256 of all of
 * it. Little-endian, as the manifest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "kv/core/model_file.h"
#include "kv/policy/residual.h"

typedef struct head {
    char magic[8];
    uint32_t version, dim;
    uint64_t n, seed;
    uint32_t n_sessions, n_places;
    char hash[64];
} head;
_Static_assert(sizeof(head) == 104, "a head has no holes");

static const char magic[8] = {'K', 'V', 'R', 'E', 'S', 'I', 'D', '\n'};
enum { VERSION = 1, SUM = 32, FILE_MOST = 8 << 20 };

char *kv_residual_path(const char *model_hash)
{
    return kv_model_file(model_hash, "residual");
}

static void sum_of(const void *bytes, size_t n, uint8_t ret[SUM])
{
    base_sha256 s;
    base_sha256_init(&s);
    base_sha256_add(&s, bytes, n);
    base_sha256_end(&s, ret);
}

void kv_residual_put(const kv_residual *r, base_buf *out)
{
    head h = {.version = VERSION,
        .dim = r->dim,
        .n = r->n,
        .seed = r->seed,
        .n_sessions = r->n_sessions,
        .n_places = r->n_places};
    uint8_t sum[SUM];
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.hash, r->hash, sizeof h.hash);
    base_buf_add(out, &h, sizeof h);
    base_buf_add(out, r->values, r->n * sizeof *r->values);
    sum_of(out->data, out->len, sum);
    base_buf_add(out, sum, sizeof sum);
}

/* Characters that stand for themselves, then zeros. */
static bool is_hash(const char hash[64])
{
    size_t n = 0;
    while (n < 64 && hash[n] > ' ' && hash[n] < 127) n++;
    for (size_t i = n; i < 64; i++)
        if (hash[i]) return false;
    return n > 0;
}

int kv_residual_parse(const void *bytes, size_t n, kv_residual **ret, base_err *err)
{
    const uint8_t *at = bytes;
    head h;
    uint8_t sum[SUM];
    *ret = NULL;
    if (n < sizeof h + SUM || memcmp(at, magic, sizeof magic))
        return base_fail(err, BASE_E_FORMAT, "the trained residual's file is not one");
    memcpy(&h, at, sizeof h);
    if (h.version != VERSION)
        return base_fail(err, BASE_E_FORMAT, "the trained residual's file is of another version of kvist");
    sum_of(at, n - SUM, sum);
    if (memcmp(sum, at + n - SUM, SUM))
        return base_fail(err, BASE_E_FORMAT, "the trained residual's file is damaged");
    if (!h.dim || h.dim > KV_RESIDUAL_DIM_MOST || h.n != kv_residual_layout_of(h.dim).n ||
        n != sizeof h + h.n * sizeof(float) + SUM || !is_hash(h.hash))
        return base_fail(
            err, BASE_E_FORMAT, "the trained residual's file has sizes that do not fit each other");
    char hash[65] = {0};
    memcpy(hash, h.hash, sizeof h.hash);
    kv_residual *r = kv_residual_new(h.dim, hash);
    if (!r) return base_fail(err, BASE_E_NOMEM, "no memory for the trained residual");
    r->seed = h.seed;
    r->n_sessions = h.n_sessions;
    r->n_places = h.n_places;
    memcpy(r->values, at + sizeof h, r->n * sizeof *r->values);
    for (size_t i = 0; i < r->n; i++)
        if (!(fabsf(r->values[i]) < 1e6f)) {
            kv_residual_unref(r);
            return base_fail(
                err, BASE_E_FORMAT, "the trained residual's file holds numbers that no training gives");
        }
    *ret = r;
    return 0;
}

int kv_residual_save(const kv_residual *r, const char *path, base_err *err)
{
    base_buf out = {0};
    kv_residual_put(r, &out);
    int rc = base_fs_mkdirs_above(path, err);
    if (!rc) rc = base_fs_write(path, out.data, out.len, 0600, err);
    base_buf_free(&out);
    return rc;
}

int kv_residual_load(const char *path, const char *model_hash, uint32_t dim, kv_residual **ret, base_err *err)
{
    base_buf file = {0};
    *ret = NULL;
    int rc = base_fs_read(path, FILE_MOST, &file, err);
    if (!rc) rc = kv_residual_parse(file.data ? file.data : "", file.len, ret, err);
    base_buf_free(&file);
    if (!rc && (strcmp((*ret)->hash, model_hash) || (*ret)->dim != dim)) {
        kv_residual_unref(*ret);
        *ret = NULL;
        rc = base_fail(err, BASE_E_FORMAT, "the trained residual's file is of another model");
    }
    return rc;
}
