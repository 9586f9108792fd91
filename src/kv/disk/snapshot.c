/*
 * Save and resume. The manifest (manifest.c) replaces its predecessor by rename, after the rows that it
 * names are on disk: whenever the process dies, either the old pair or the new pair is whole. The manifest
 * holds every row's hash too, so a damaged row is found and not computed with.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/pool.h"
#include "kv/core/state.h"
#include "kv/disk/disk.h"
#include "kv/session.h"

enum {
    MANIFEST_MOST = 1 << 30,
    ROWS_A_READ = 32,
    MANY_ROWS = 2048,
};
static kv_rows_identity identity_of(const kv_session *s)
{
    kv_rows_identity identity = {.kernel_version = s->compute.kernel_version, .shape = s->compute.shape};
    memcpy(identity.hash, s->compute.hash, sizeof identity.hash);
    return identity;
}

static char *manifest_path(const kv_session *s)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s.manifest", s->row_path);
    return base_buf_take(&path);
}

static int open_fresh(kv_session *s, base_err *err)
{
    char *path = manifest_path(s);
    const kv_rows_identity identity = identity_of(s);
    int rc = kv_rowfile_open(&s->file, s->row_path, &identity, true, err);
    /*
     * A manifest of the rows that were here names another id, so it is harmless; it is only no longer of use.
     */
    if (!rc) unlink(path);
    free(path);
    return rc;
}

static int write_rows(kv_session *s, base_err *err)
{
    const uint64_t before = kv_rowfile_rows(s->file);
    uint16_t *row = malloc(kv_row_bytes(&s->compute.shape));
    int rc = row ? 0 : base_fail(err, BASE_E_NOMEM, "no memory to write the session's rows");
    uint64_t next = before;
    for (uint32_t i = 0; i < s->n && !rc; i++) {
        if (s->file_row[i] != KV_NO_ROW || kv_bits_get(s->lost, i)) continue;
        if (next >= KV_NO_ROW) {
            rc = base_fail(err, BASE_E_LIMIT, "the row file is full");
            break;
        }
        for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++)
            rc = kv_table_check(&s->table, lane, i, i + 1, err);
        if (rc) break;
        kv_table_get_row(&s->table, i, row);
        s->row_hash[i] = base_hash64(row, kv_row_bytes(&s->compute.shape), 0);
        rc = kv_rowfile_append(s->file, row, err);
        s->file_row[i] = (uint32_t)next++;
    }
    if (!rc) rc = kv_rowfile_sync(s->file, err);
    if (rc) {
        kv_rowfile_set_rows(s->file, before);
        for (uint32_t i = 0; i < s->n; i++)
            if (s->file_row[i] != KV_NO_ROW && s->file_row[i] >= before) s->file_row[i] = KV_NO_ROW;
    }
    free(row);
    return rc;
}

static int write_manifest(kv_session *s, uint64_t n_rows, base_err *err)
{
    const kv_manifest_file file = {.id = kv_rowfile_id(s->file), .n_rows = n_rows};
    base_buf bytes = {0};
    kv__manifest_write(s, &file, &bytes);
    char *path = manifest_path(s);
    int rc = base_fs_write(path, bytes.data, bytes.len, 0600, err);
    if (!rc) kv__states_saved(s);
    free(path);
    base_buf_free(&bytes);
    return rc;
}

int kv_session_save(kv_session *s, base_err *err)
{
    if (!s->row_path) return base_fail(err, BASE_E_STATE, "this session keeps its rows in memory only");
    int rc = s->file ? 0 : open_fresh(s, err);
    if (!rc) rc = write_rows(s, err);
    if (!rc) rc = kv__states_save(s, err);
    if (!rc) rc = write_manifest(s, kv_rowfile_rows(s->file), err);
    if (!rc) kv__digest_save(s);
    return rc;
}

/* Rows at and behind n go to the places before it that no token has. Their old places stay as they are. */
static int fill_holes(kv_session *s, uint32_t n, base_err *err)
{
    uint64_t *used = calloc(kv_bits_words(n) + 1, sizeof *used);
    uint16_t *row = malloc(kv_row_bytes(&s->compute.shape));
    int rc = used && row ? 0 : base_fail(err, BASE_E_NOMEM, "no memory to compact the session's rows");
    for (uint32_t i = 0; i < s->n && !rc; i++)
        if (s->file_row[i] < n) kv_bits_set(used, s->file_row[i]);
    size_t hole = 0;
    for (uint32_t i = 0; i < s->n && !rc; i++) {
        if (s->file_row[i] < n || s->file_row[i] == KV_NO_ROW) continue;
        rc = kv_table_load(&s->table, i / MODEL_ROWS_BLOCK, err); /* its place will not be there any more */
        if (rc) break;
        hole = kv_bits_next(used, hole, n, false);
        kv_table_get_row(&s->table, i, row);
        rc = kv_rowfile_put(s->file, hole, row, err);
        s->file_row[i] = (uint32_t)hole++;
    }
    free(used);
    free(row);
    return rc ? rc : kv_rowfile_sync(s->file, err);
}

/* Does a fork read rows of ours where they lie in the file? */
static bool is_read_elsewhere(const kv_session *s)
{
    for (uint32_t b = 0; b < s->table.n; b++)
        if (s->table.blocks[b]->filed && s->table.blocks[b]->refs != 1) return true;
    return false;
}

int kv_session_compact(kv_session *s, base_err *err)
{
    int rc = kv_session_save(s, err); /* from here on the manifest names no row but these */
    const uint32_t n = s->n - kv_bits_count(s->lost, kv_bits_words(s->n)); /* rows that have a place */
    if (rc || kv_rowfile_rows(s->file) == n || is_read_elsewhere(s)) return rc;
    uint32_t *places = malloc(((size_t)s->n + 1) * sizeof *places);
    if (!places) return base_fail(err, BASE_E_NOMEM, "no memory to compact the session's rows");
    memcpy(places, s->file_row, s->n * sizeof *places);
    rc = fill_holes(s, n, err);
    if (!rc) rc = write_manifest(s, n, err);
    if (rc)
        memcpy(s->file_row, places, s->n * sizeof *places); /* the old manifest and its rows are untouched */
    else
        kv_rowfile_set_rows(s->file, n);
    free(places);
    return rc;
}

/* Rows are read block by block, by as many threads as there are CPUs when they are many. */
typedef struct row_reader {
    kv_session *s;
    _Atomic uint32_t next;
    pthread_mutex_t lock; /* of what follows */
    uint32_t failed;      /* the first block that could not be read; UINT32_MAX: none */
    base_err err;
} row_reader;

static int read_block(kv_session *s, uint32_t b, uint16_t *rows, base_err *err)
{
    const size_t row_bytes = kv_row_bytes(&s->compute.shape);
    if (s->table.filed[b]) return 0;
    const uint32_t end = (b + 1) * MODEL_ROWS_BLOCK < s->n ? (b + 1) * MODEL_ROWS_BLOCK : s->n;
    for (uint32_t i = b * MODEL_ROWS_BLOCK; i < end;) {
        uint32_t n = 1;
        if (s->file_row[i] == KV_NO_ROW) { /* lost */
            i++;
            continue;
        }
        while (n < ROWS_A_READ && i + n < end && s->file_row[i + n] != KV_NO_ROW &&
               s->file_row[i + n] == s->file_row[i] + n)
            n++;
        uint64_t hashes[ROWS_A_READ];
        int rc = kv_rowfile_read(s->file, s->file_row[i], n, rows, err);
        if (rc) return rc;
        base_hash64_each(rows, row_bytes, n, hashes);
        for (uint32_t k = 0; k < n; k++)
            if (hashes[k] != s->row_hash[i + k])
                return base_fail(
                    err, BASE_E_FORMAT, "the row of token %u is damaged in the session's row file", i + k);
        kv_table_put_rows(&s->table, i, n, rows);
        i += n;
    }
    return 0;
}

static void read_some(void *user, int thread, int n_threads)
{
    row_reader *w = user;
    base_err err = {0};
    uint16_t *rows = malloc(kv_row_bytes(&w->s->compute.shape) * ROWS_A_READ);
    for (uint32_t b; (b = atomic_fetch_add(&w->next, 1)) < w->s->table.n;) {
        const int rc = rows ? read_block(w->s, b, rows, &err)
                            : base_fail(&err, BASE_E_NOMEM, "no memory to read the session's rows");
        pthread_mutex_lock(&w->lock);
        if (rc && b < w->failed) {
            w->failed = b;
            w->err = err;
        }
        pthread_mutex_unlock(&w->lock);
        if (rc) break;
    }
    free(rows);
}

static int read_rows(kv_session *s, base_err *err)
{
    row_reader w = {.s = s, .failed = UINT32_MAX};
    base_pool *pool = NULL;
    const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int rc = kv__digest_find(s, err);
    if (rc) return rc;
    pthread_mutex_init(&w.lock, NULL);
    if (s->n < MANY_ROWS || n_cpus < 2 || base_pool_new(&pool, n_cpus < 8 ? (int)n_cpus : 8, NULL))
        read_some(&w, 0, 1);
    else
        base_pool_share(pool, read_some, &w);
    base_pool_free(pool);
    pthread_mutex_destroy(&w.lock);
    if (w.failed == UINT32_MAX) return 0;
    if (err) *err = w.err;
    return w.err.code;
}

int kv__snapshot_read(kv_session *s, base_err *err)
{
    char *path = manifest_path(s);
    base_buf bytes = {0};
    kv_manifest_file file = {0};
    const kv_rows_identity identity = identity_of(s);
    int rc = base_fs_check_owner(path, err);
    if (!rc) rc = base_fs_read(path, MANIFEST_MOST, &bytes, err);
    if (!rc) rc = kv_rowfile_open(&s->file, s->row_path, &identity, false, err);
    if (!rc) rc = kv__manifest_read(s, bytes.data, bytes.len, &file, err);
    if (!rc && file.id != kv_rowfile_id(s->file))
        rc = base_fail(err, BASE_E_FORMAT, "the session's manifest and its row file do not belong together");
    if (!rc && file.n_rows > kv_rowfile_rows(s->file))
        rc = base_fail(err, BASE_E_FORMAT, "the session's row file is cut off: %llu of %llu rows are there",
            (unsigned long long)kv_rowfile_rows(s->file), (unsigned long long)file.n_rows);
    if (!rc) rc = read_rows(s, err);
    if (!rc) rc = kv__states_load(s, err);
    if (!rc) kv_rowfile_set_rows(s->file, file.n_rows); /* rows behind were never committed */
    free(path);
    base_buf_free(&bytes);
    return rc;
}
