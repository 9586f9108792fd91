/*
 * Where rows lie when memory is short. Over the limit in memory (`host`), blocks without an active
 * row go to a file that has no name, the oldest first, and are read through a map from then on: scoring and
 * promotion see no difference but the time. Blocks of folded tokens go there with their active rows, of which tokens
 * read copies (read/gather.h). With tier=8bit they stay in memory as 8 bits (model/ops/rows8.h)
 * as long as that suffices: the one case in which a row that comes back is not the row that was evicted. What
 * rounding changed is kv_stats.key_error and value_error. Over the limit on disk (`disk`, that file, the
 * row file and its digests together) the oldest of them are given up for ever: their rows are lost, a plan with cause
 * `pressure` says which, and nothing brings them back.
 *
 * A lane of a layer with a window has all of its rows active; those behind every window count as if they were not
 * (is_cold). They may be read again after a rewind, so they are not rounded, and where they are given up they leave
 * those lists.
 *
 * A session that is folded goes on for ever, so where the person has set no limit it has one of its own (folded_most), on
 * disk alone: nothing is rounded or given up for it, and where the disk is full rows stay in memory.
 *
 * Rows behind a window are in no list's reach but a rewind's, and of most models with windows they are most of the
 * cache. So those of full blocks go to that file as well, limit or not, and are mapped where they lay: the same pages,
 * which memory need not keep (leave_windows). A device that reads blocks where they lie (pinned memory) keeps them.
 *
 * A session that keeps its rows in memory only has no folder for such a file: its limit in memory gives rows
 * up at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/evict/evict.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/read/reading.h"
#include "kv/read/visit.h"

enum {
    LEAST_MAPPED = 1 << 20, /* bytes of a block: smaller ones are not worth a map */
    FOLDED_MIB = 1024,      /* a folded session's rows in memory, */
    FOLDED_SHARE = 4,       /* and at most that part of the machine's memory */
};

static uint64_t limit_of(double mib)
{
    return (uint64_t)(mib * 1048576);
}

/* Does no lane that reads everything have an active row in the block, no window reach it, and nobody else have it? */
static bool is_cold(const kv_session *s, uint32_t b)
{
    const uint32_t from = b * MODEL_ROWS_BLOCK, to = from + MODEL_ROWS_BLOCK;
    if (to + s->window > s->n || !kv_block_has_rows(s->table.blocks[b]) || s->table.blocks[b]->refs != 1)
        return false;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (!kv__window(s, lane) && kv_bits_next(s->lists.lane[lane]->bits, from, to, true) < to)
            return false;
    return true;
}

/*
 * May the block's rows lie on disk? Active ones only where tokens do not read them there: what is written reads them by
 * sections, which are brought (read/bring.c; a prompt reads them through the map), or all tokens read copies.
 */
static bool may_leave(const kv_session *s, uint32_t b)
{
    const kv_block *block = s->table.blocks[b];
    if (!kv_block_has_rows(block) || block->refs != 1) return false;
    return ((kv__reading_covers(s, b) || kv__visit_copies(s, b)) && kv__block_is_computed(s, b)) ||
           is_cold(s, b);
}

static size_t bytes_of(const kv_session *s, const kv_block *b)
{
    return b->packed ? model_rows8_bytes(&s->table.shape) : b->rows ? b->n_bytes : 0;
}

static size_t bytes_in_memory(const kv_session *s, const kv_block *b)
{
    return b->on_disk ? 0 : bytes_of(s, b) - b->mapped;
}

static uint64_t count_bytes(const kv_session *s, bool on_disk)
{
    uint64_t n = 0;
    for (uint32_t b = 0; b < s->table.n; b++) {
        const kv_block *block = s->table.blocks[b];
        const size_t in_memory = bytes_in_memory(s, block);
        n += on_disk ? bytes_of(s, block) - in_memory : in_memory;
    }
    return n;
}

/* A file beside the row file without a name: its room is free again however the session ends. */
static int open_tier(kv_session *s, base_err *err)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s.tier", s->row_path);
    s->tier = open(path.data, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = s->tier < 0 ? base_fail_sys(err, "cannot make room for rows on disk at %s", path.data) : 0;
    if (rc)
        s->tier = 0;
    else
        unlink(path.data);
    base_buf_free(&path);
    return rc;
}

static int write_at(kv_session *s, const void *bytes, size_t n_bytes, off_t at, base_err *err)
{
    for (size_t done = 0; done < n_bytes;) {
        const ssize_t n = pwrite(s->tier, (const uint8_t *)bytes + done, n_bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return base_fail_sys(err, "cannot write evicted rows to disk");
        done += (size_t)n;
    }
    return 0;
}

/* Where the file has room for a block; of the place only what is written takes any. */
static off_t next_place(const kv_session *s, const kv_block *block)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), place = (block->n_bytes + page - 1) / page * page;
    return (off_t)((uint64_t)s->tier_blocks * place);
}

int kv__to_disk(kv_session *s, uint32_t b, base_err *err)
{
    kv_block *block = s->table.blocks[b];
    const off_t at = next_place(s, block);
    int rc = s->tier ? 0 : open_tier(s, err);
    if (!rc) rc = write_at(s, block->rows, block->n_bytes, at, err);
    if (rc) return rc;
    void *map = mmap(NULL, block->n_bytes, PROT_READ, MAP_SHARED, s->tier, at);
    if (map == MAP_FAILED) return base_fail_sys(err, "cannot read evicted rows from disk");
    kv_block_set_map(block, map);
    kv_table_show(&s->table, b);
    s->tier_blocks++;
    return 0;
}

/* What is not computed has no row to round: a pruned token's slots hold its hidden states (deferred.c). */
bool kv__block_is_computed(const kv_session *s, uint32_t b)
{
    for (uint32_t t = b * MODEL_ROWS_BLOCK; t < (b + 1) * MODEL_ROWS_BLOCK; t++)
        if (s->cut[t]) return false;
    return true;
}

/* Is the block full and our own, all in memory as it was computed, and behind every window that reads it by tiles? */
static bool is_behind(const kv_session *s, uint32_t b)
{
    const kv_block *block = s->table.blocks[b];
    return (b + 1) * MODEL_ROWS_BLOCK + s->window + MODEL_ROWS_TILE <= s->n && block->refs == 1 &&
           block->rows && !block->on_disk && !block->mapped && block->n_bytes >= LEAST_MAPPED &&
           kv__block_is_computed(s, b);
}

/* The rows of lanes [from, to) of a block, which lie together: into the file, and its pages in their place. */
static int map_lanes(kv_session *s, kv_block *block, uint32_t from, uint32_t to, off_t place, base_err *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), lane = block->n_bytes / s->n_lanes, at = from * lane,
                 n_bytes = (to - from) * lane;
    uint8_t *rows = (uint8_t *)block->rows + at;
    if ((uintptr_t)rows % page || n_bytes % page) return 0;
    const int rc = write_at(s, rows, n_bytes, place + (off_t)at, err);
    if (rc) return rc;
    const int how = MAP_PRIVATE | MAP_FIXED;
    if (mmap(rows, n_bytes, PROT_READ | PROT_WRITE, how, s->tier, place + (off_t)at) == MAP_FAILED)
        return base_fail_sys(err, "cannot map rows behind a window");
    block->mapped += n_bytes;
    return 0;
}

/* Gives the memory of rows behind windows back. What a disk has no room for stays where it is, and is not tried again. */
static void leave_windows(kv_session *s)
{
    if (!s->window || !s->row_path || !s->compute.gathers || s->keeps_windows) return;
    for (uint32_t b = 0; b < s->table.n && !s->keeps_windows; b++) {
        if (!is_behind(s, b)) continue;
        kv_block *block = s->table.blocks[b];
        const off_t place = next_place(s, block);
        int rc = s->tier ? 0 : open_tier(s, NULL);
        for (uint32_t lane = 0, to; lane < s->n_lanes && !rc; lane = to) {
            for (to = lane; to < s->n_lanes && kv__window(s, to);) to++;
            if (to > lane) rc = map_lanes(s, block, lane, to, place, NULL);
            if (to == lane) to++;
        }
        s->tier_blocks += block->mapped > 0;
        s->keeps_windows = rc || !block->mapped;
    }
}

/*
 * The oldest cold blocks go into 8 bits until memory suffices. The row file's rows of theirs are no longer
 * what the session reads: they are written anew.
 */
static uint64_t pack_cold(kv_session *s, uint64_t have, uint64_t host)
{
    for (uint32_t b = 0; b < s->table.n && have > host; b++) {
        const kv_block *block = s->table.blocks[b];
        if (block->on_disk || block->packed || !is_cold(s, b) || !kv__block_is_computed(s, b)) continue;
        const size_t before = bytes_of(s, block);
        if (!kv_table_pack(&s->table, b)) continue;
        kv__visit_truncate(s, b * MODEL_ROWS_BLOCK); /* what is unpacked is not what was packed */
        have -= before - bytes_of(s, s->table.blocks[b]);
        for (uint32_t t = b * MODEL_ROWS_BLOCK; t < (b + 1) * MODEL_ROWS_BLOCK; t++)
            s->file_row[t] = KV_NO_ROW;
    }
    return have;
}

/* Of a block's digest, which lies beside the row file once it is saved. */
static uint64_t digest_bytes(const kv_session *s, uint32_t b)
{
    const uint32_t from = b * MODEL_ROWS_BLOCK, to = from + MODEL_ROWS_BLOCK;
    const kv_digest_shape shape = {s->compute.shape, s->n_whole};
    if (!s->fold.n || !s->n_whole || to > s->n || s->table.blocks[b]->packed || kv_bits_get(s->lost, from) ||
        !kv__visit_may_be_filed(s, b))
        return 0;
    return kv_digest_bytes(&shape);
}

/* The row file, its digests, and the nameless file. */
static uint64_t bytes_on_disk(const kv_session *s)
{
    const uint64_t n_file = s->n - kv_bits_count(s->lost, kv_bits_words(s->n));
    uint64_t n = count_bytes(s, true) + n_file * kv_row_bytes(&s->compute.shape);
    for (uint32_t b = 0; b < s->table.n; b++) n += digest_bytes(s, b);
    return n;
}

/* What is free on disk once block b is given up: it is gone from all files, and from the row file alone where it lies there. */
static uint64_t bytes_given_up(const kv_session *s, uint32_t b)
{
    const kv_block *block = s->table.blocks[b];
    return (block->filed ? block->n_bytes : 2 * bytes_of(s, block)) + digest_bytes(s, b);
}

/* The oldest cold blocks are given up until `excess` bytes on disk, or in memory, are free: a plan. */
static int give_up(kv_session *s, uint64_t excess, bool on_disk, base_err *err)
{
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_PRESSURE, s->n, s->n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    p->lost = base_xcalloc(kv_plan_words(p) + 1, sizeof *p->lost);
    for (uint32_t b = 0; b < s->table.n && excess; b++) {
        const uint32_t from = b * MODEL_ROWS_BLOCK;
        const uint64_t n_bytes = on_disk ? bytes_given_up(s, b) : bytes_of(s, s->table.blocks[b]);
        if (!is_cold(s, b)) continue;
        kv_bits_set_range(p->lost, from, from + MODEL_ROWS_BLOCK);
        for (uint32_t lane = 0; lane < s->n_lanes; lane++)
            for (uint32_t w = from / 64; w < (from + MODEL_ROWS_BLOCK) / 64; w++)
                p->flips[(size_t)lane * kv_plan_words(p) + w] = s->lists.lane[lane]->bits[w];
        kv_plan_add_run(p, from, from + MODEL_ROWS_BLOCK, KV_BAR, KV_REASON_PRESSURE, s->n_whole);
        excess -= n_bytes < excess ? n_bytes : excess;
    }
    const int rc = kv__apply(s, p, false, NULL, err);
    kv_plan_free(p);
    return rc;
}

/* The oldest blocks that may leave go to the file until memory suffices. */
static int leave_memory(kv_session *s, uint64_t have, uint64_t host, base_err *err)
{
    int rc = 0;
    for (uint32_t b = 0; b < s->table.n && have > host && !rc; b++) {
        if (s->table.blocks[b]->on_disk || !may_leave(s, b)) continue;
        have -= bytes_in_memory(s, s->table.blocks[b]);
        rc = kv_table_unpack(&s->table, b * MODEL_ROWS_BLOCK, (b + 1) * MODEL_ROWS_BLOCK, err);
        if (!rc) rc = kv__to_disk(s, b, err);
    }
    return rc;
}

/* The limit that a folded session has of its own. */
static void leave_folded(kv_session *s)
{
    if (!s->fold.n || !s->row_path || s->keeps_folded || s->parameters.host > 0) return;
    const uint64_t have = count_bytes(s, false) + kv__visit_bytes(s);
    s->keeps_folded = have > s->folded_most && leave_memory(s, have, s->folded_most, NULL);
}

uint64_t kv__folded_most(void)
{
    const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
                   share = memory / FOLDED_SHARE;
    return share < limit_of(FOLDED_MIB) ? share : limit_of(FOLDED_MIB);
}

int kv__tier(kv_session *s, base_err *err)
{
    const uint64_t host = limit_of(s->parameters.host), disk = limit_of(s->parameters.disk);
    leave_windows(s);
    leave_folded(s);
    uint64_t have = host ? count_bytes(s, false) + kv__reading_bytes(s) + kv__visit_bytes(s) : 0;
    int rc = have > host && s->row_path ? kv__reading_catch_up(s, err) : 0;
    if (rc) return rc;
    if (have > host && s->parameters.tier > 0 && !s->window) have = pack_cold(s, have, host);
    if (s->row_path) rc = leave_memory(s, have, host, err);
    if (rc) return rc;
    uint64_t excess = 0;
    if (host && !s->row_path && have > host) excess = have - host;
    const uint64_t used = disk && s->row_path ? bytes_on_disk(s) : 0;
    if (used > disk) excess = used - disk;
    return excess ? give_up(s, excess, used > disk, err) : 0;
}
