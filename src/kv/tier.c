/*
 * Where evicted rows lie when memory is short. Over the limit in memory (`host`), blocks without an active row go to a file that
 * has no name, the oldest first, and are read through a map from then on: scoring and promotion see no difference but the time.
 * Over the limit on disk (`disk`, that file and the row file together) the oldest of them are given up for ever: their rows are
 * dead, a plan with cause `pressure` says which, and nothing brings them back.
 *
 * A session that keeps its rows in memory only has no folder for such a file: its limit in memory gives rows up at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/state.h"

static uint64_t limit_of(double mib)
{
    return (uint64_t)(mib * 1048576);
}

/* Has no lane an active row in the block, and nobody else the block? */
static bool is_cold(const kv_session *s, uint32_t b)
{
    const uint32_t from = b * MODEL_ROWS_BLOCK, to = from + MODEL_ROWS_BLOCK;
    if (to > s->n || !s->table.blocks[b]->rows || s->table.blocks[b]->refs != 1) return false;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (kv_bits_next(s->lists.lane[lane]->bits, from, to, true) < to) return false;
    return true;
}

static uint64_t count_bytes(const kv_session *s, bool on_disk)
{
    uint64_t n = 0;
    for (uint32_t b = 0; b < s->table.n; b++)
        if (s->table.blocks[b]->rows && s->table.blocks[b]->on_disk == on_disk)
            n += s->table.blocks[b]->n_bytes;
    return n;
}

/* A file beside the row file that nobody can open; its room is free again when the session ends, however it ends. */
static int open_tier(kv_session *s, base_err *err)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s.tier", s->row_path);
    s->tier = open(path.data, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = s->tier < 0 ? base_fail_sys(err, "cannot make room for rows on disk at %s", path.data) : 0;
    if (r)
        s->tier = 0;
    else
        unlink(path.data);
    base_buf_free(&path);
    return r;
}

static int to_disk(kv_session *s, uint32_t b, base_err *err)
{
    kv_block *block = s->table.blocks[b];
    const long page = sysconf(_SC_PAGESIZE);
    const size_t place = (block->n_bytes + (size_t)page - 1) / (size_t)page * (size_t)page;
    const off_t at = (off_t)((uint64_t)s->tier_blocks * place);
    int r = s->tier ? 0 : open_tier(s, err);
    if (r) return r;
    for (size_t done = 0; done < block->n_bytes;) {
        const ssize_t n =
            pwrite(s->tier, (const uint8_t *)block->rows + done, block->n_bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return base_fail_sys(err, "cannot write evicted rows to disk");
        done += (size_t)n;
    }
    void *map = mmap(NULL, block->n_bytes, PROT_READ, MAP_SHARED, s->tier, at);
    if (map == MAP_FAILED) return base_fail_sys(err, "cannot read evicted rows from disk");
    kv_block_set_map(block, map);
    s->table.rows[b] = block->rows;
    s->tier_blocks++;
    return 0;
}

void kv__bury(kv_session *s, const uint64_t *dead)
{
    for (uint32_t w = 0; w < kv_bits_words(s->n); w++) s->dead[w] |= dead[w];
    for (uint32_t t = 0; t < s->n; t++)
        if (kv_bits_get(dead, t)) s->file_row[t] = KV_NO_ROW;
    for (uint32_t b = 0; b < s->table.n; b++) {
        const size_t from = (size_t)b * MODEL_ROWS_BLOCK, to = from + MODEL_ROWS_BLOCK;
        kv_block *block = s->table.blocks[b];
        if (to > s->n || block->refs != 1 || !block->rows || kv_bits_next(s->dead, from, to, false) < to)
            continue;
        kv_block_set_map(block, NULL);
        s->table.rows[b] = NULL;
    }
}

/* The oldest cold blocks, n of them or fewer, are given up: a plan. */
static int give_up(kv_session *s, uint32_t n, base_err *err)
{
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_PRESSURE, s->n, s->n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    p->dead = base_xcalloc(kv_plan_words(p) + 1, sizeof *p->dead);
    for (uint32_t b = 0; b < s->table.n && n; b++) {
        const uint32_t from = b * MODEL_ROWS_BLOCK;
        if (!is_cold(s, b)) continue;
        kv_bits_set_range(p->dead, from, from + MODEL_ROWS_BLOCK);
        kv_plan_add_run(p, from, from + MODEL_ROWS_BLOCK, KV_BAR, KV_REASON_PRESSURE, s->n_lanes);
        n--;
    }
    const int r = kv__apply(s, p, false, NULL, err);
    kv_plan_free(p);
    return r;
}

int kv__tier(kv_session *s, base_err *err)
{
    const uint64_t host = limit_of(s->parameters.host), disk = limit_of(s->parameters.disk);
    const size_t block_bytes = model_rows_block_bytes(&s->compute.shape);
    uint64_t have = host ? count_bytes(s, false) : 0;
    int r = 0;
    for (uint32_t b = 0; b < s->table.n && have > host && s->row_path && !r; b++) {
        if (s->table.blocks[b]->on_disk || !is_cold(s, b)) continue;
        r = to_disk(s, b, err);
        have -= block_bytes;
    }
    if (r) return r;
    uint64_t excess = 0;
    if (host && !s->row_path && have > host) excess = have - host;
    if (disk && s->row_path) {
        const uint64_t n_file = s->n - kv_bits_count(s->dead, kv_bits_words(s->n));
        const uint64_t used = count_bytes(s, true) + n_file * kv_row_bytes(&s->compute.shape);
        if (used > disk) excess = (used - disk) / 2; /* a block given up is gone from both files */
    }
    return excess ? give_up(s, (uint32_t)((excess + block_bytes - 1) / block_bytes), err) : 0;
}
