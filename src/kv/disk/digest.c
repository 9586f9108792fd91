/*
 * The digests of a session's blocks (rows/filed.h), in a file beside its row file: "ROW_FILE.digest". With them a folded
 * session is resumed without reading its rows: blocks that are folded through lie in the row file until somebody needs
 * them elsewhere. Nothing but time is lost with the file, so it is not made sure on disk and no error about it is one of
 * the session's; where a row turns out to be damaged the file goes, so that the next resume reads everything and says
 * what is to be computed anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "kv/disk/disk.h"
#include "kv/evict/evict.h"
#include "kv/read/rest.h"
#include "kv/read/visit.h"

static char *digest_path(const kv_session *s)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s.digest", s->row_path);
    return base_buf_take(&path);
}

/* -1: there is none. */
static int open_file(const kv_session *s, int flags)
{
    char *path = digest_path(s);
    const int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    free(path);
    return fd;
}

static kv_digest_shape shape_of(const kv_session *s)
{
    return (kv_digest_shape){s->compute.shape, s->n_whole};
}

/* Full, computed, not given up, and all of it in the row file, one row behind the other. */
static bool is_filed_whole(const kv_session *s, uint32_t b)
{
    const uint32_t from = b * MODEL_ROWS_BLOCK, to = from + MODEL_ROWS_BLOCK;
    if (to > s->n || !s->n_whole || !kv__visit_may_be_filed(s, b) || !kv__block_is_computed(s, b) ||
        kv_bits_next(s->lost, from, to, true) < to || s->file_row[from] > KV_NO_ROW - MODEL_ROWS_BLOCK)
        return false;
    for (uint32_t i = 1; i < MODEL_ROWS_BLOCK; i++)
        if (s->file_row[from + i] != s->file_row[from] + i) return false;
    return true;
}

static uint64_t identity_of(const kv_session *s, const kv_digest_shape *shape, uint32_t b)
{
    return kv_digest_identity(shape, s->compute.kernel_version, s->row_hash + b * MODEL_ROWS_BLOCK);
}

/* --- resuming ------------------------------------------------------------------------------------------- */

int kv__digest_find(kv_session *s, base_err *err)
{
    const kv_digest_shape shape = shape_of(s);
    const int fd = open_file(s, O_RDONLY);
    kv_filed_files *files = fd >= 0 ? kv_filed_files_open(&shape, kv_rowfile_descriptor(s->file), fd) : NULL;
    const uint32_t n_blocks = (s->n + MODEL_ROWS_BLOCK - 1) / MODEL_ROWS_BLOCK;
    int rc = 0;
    for (uint32_t b = 0; b < n_blocks && !rc; b++) {
        const uint32_t from = b * MODEL_ROWS_BLOCK, to = from + MODEL_ROWS_BLOCK;
        kv_filed *f = NULL;
        if (files && is_filed_whole(s, b))
            f = kv_filed_open(
                &shape, files, kv_rowfile_place(s->file, s->file_row[from]), b, identity_of(s, &shape, b));
        rc = f ? kv_table_add_filed(&s->table, f, err)
               : kv_table_make_writable(&s->table, from, to < s->n ? to : s->n, err);
    }
    kv_filed_files_close(files);
    if (fd >= 0) close(fd);
    return rc;
}

/* --- saving --------------------------------------------------------------------------------------------- */

static bool move_bytes(int fd, bool writes, uint8_t *bytes, size_t n, uint64_t at)
{
    while (n) {
        const ssize_t done = writes ? pwrite(fd, bytes, n, (off_t)at) : pread(fd, bytes, n, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}

/* Means that were found since the record was written, into `means`, its part of them; is any other now? */
static bool put_means(
    const kv_session *s, const kv_digest_shape *shape, uint64_t identity, uint32_t b, uint8_t *means)
{
    bool any = false;
    for (uint32_t page = 0; page < KV_DIGEST_PAGES; page++)
        for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
            uint8_t *to = means + kv_digest_mean_at(shape, page, lane);
            const uint16_t *key, *value;
            const uint64_t rows = kv__visit_mean(s, lane, b * KV_DIGEST_PAGES + page, &key, &value);
            uint64_t there;
            memcpy(&there, to, sizeof there);
            if (!rows || there == rows) continue;
            kv_digest_put_mean(shape, identity, rows, key, value, to);
            any = true;
        }
    return any;
}

/* Of a record of an earlier version the hashes of its sketch's lanes, once all of them were looked at; were they put? */
static bool put_hashes(const kv_session *s, const kv_digest_shape *shape, uint32_t b, uint8_t *record)
{
    const kv_filed *f = s->table.blocks[b]->filed;
    return f && kv_filed_hash_lanes(f, (uint64_t *)(void *)(record + kv_digest_hashes_at(shape)));
}

/* Of block b the record, as far as it is not there yet. record: room for one. */
static bool save_block(kv_session *s, const kv_digest_shape *shape, int fd, uint32_t b, uint8_t *record)
{
    const size_t n_bytes = kv_digest_bytes(shape), means_at = kv_digest_means_at(shape);
    const uint64_t identity = identity_of(s, shape, b), at = b * (uint64_t)n_bytes;
    kv_digest_head head = {0};
    if (move_bytes(fd, false, (uint8_t *)&head, sizeof head, at) && head.identity == identity) {
        if (!move_bytes(fd, false, record + means_at, n_bytes - means_at, at + means_at)) return true;
        const bool others = put_means(s, shape, identity, b, record + means_at),
                   hashes = put_hashes(s, shape, b, record);
        return !(others || hashes) ||
               move_bytes(fd, true, record + means_at, n_bytes - means_at, at + means_at);
    }
    if (s->table.blocks[b]->filed) return true; /* the file was taken away: nothing is read for that */
    const size_t row = kv_row_bytes(&s->compute.shape);
    uint16_t *rows = malloc(row * MODEL_ROWS_BLOCK);
    const uint8_t *sketch = rows ? kv__visit_sketch(s, b) : NULL;
    for (uint32_t i = 0; i < MODEL_ROWS_BLOCK && sketch; i++)
        kv_table_get_row(&s->table, b * MODEL_ROWS_BLOCK + i, rows + i * (row / sizeof *rows));
    if (sketch) {
        kv_digest_write(shape, identity, rows, sketch, record);
        put_means(s, shape, identity, b, record + means_at);
    }
    free(rows);
    return !sketch || move_bytes(fd, true, record, n_bytes, at);
}

/* The room of the record of a block that was given up. */
static void give_back(const kv_session *s, const kv_digest_shape *shape, int fd, uint32_t b)
{
    const size_t n_bytes = kv_digest_bytes(shape);
    const off_t at = (off_t)(b * (uint64_t)n_bytes);
    kv_digest_head head = {0};
    if (!kv_bits_get(s->lost, b * MODEL_ROWS_BLOCK)) return;
    if (move_bytes(fd, false, (uint8_t *)&head, sizeof head, (uint64_t)at) && head.identity)
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, (off_t)n_bytes);
}

static bool is_damaged(const kv_session *s)
{
    for (uint32_t b = 0; b < s->table.n; b++)
        if (s->table.blocks[b]->filed && s->table.blocks[b]->filed->is_damaged) return true;
    return false;
}

void kv__digest_drop_damaged(const kv_session *s)
{
    if (!s->row_path || !is_damaged(s)) return;
    char *path = digest_path(s);
    unlink(path);
    free(path);
}

void kv__digest_save(kv_session *s)
{
    const kv_digest_shape shape = shape_of(s);
    kv__digest_drop_damaged(s);
    if (!s->fold.n || is_damaged(s)) return;
    kv__visit_find_means(s);
    uint8_t *record = NULL;
    int fd = open_file(s, O_RDWR);
    for (uint32_t b = 0; b < s->table.n; b++) {
        if (fd >= 0) give_back(s, &shape, fd, b);
        if (!is_filed_whole(s, b) || s->table.blocks[b]->packed) continue;
        if (!record) {
            record = malloc(kv_digest_bytes(&shape));
            if (fd < 0) fd = open_file(s, O_RDWR | O_CREAT);
        }
        if (!record || fd < 0 || !save_block(s, &shape, fd, b, record)) break;
    }
    free(record);
    if (fd >= 0) close(fd);
}
