/* Blocks of rows and the table that a sequence finds them by; see store.h. */
#include "kv/rows/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "kv/rows/bits.h"
#include "model/ops/sketch.h"

enum { SHELF_BYTES = 8 << 20 }; /* at least one sketch, however large */

kv_block *kv_block_new(const model_rows_shape *shape, const kv_device *device)
{
    kv_block *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->refs = 1;
    b->stamp = model_rows_new_stamp();
    b->n_bytes = model_rows_block_bytes(shape);
    b->rows = base_huge_alloc(b->n_bytes);
    if (!b->rows) {
        free(b);
        return NULL;
    }
    if (device) b->device = *device;
    if (b->device.pin) b->device.pin(b->device.user, b->rows, b->n_bytes);
    return b;
}

kv_block *kv_block_ref(kv_block *b)
{
    b->refs++;
    return b;
}

static void unref_shelf(kv_shelf *f)
{
    if (!f || --f->refs) return;
    base_huge_free(f->data, f->n_bytes);
    free(f);
}

static void free_sketch(kv_block *b)
{
    unref_shelf(b->shelf);
    b->shelf = NULL;
    b->sketch = NULL;
}

static void free_rows(kv_block *b)
{
    kv_filed_close(b->filed);
    b->filed = NULL;
    if (b->on_disk && b->rows) munmap(b->rows, b->n_bytes);
    if (!b->on_disk && b->rows && b->device.unpin) b->device.unpin(b->device.user, b->rows);
    if (!b->on_disk) base_huge_free(b->rows, b->n_bytes); /* whatever is mapped there */
    b->rows = NULL;
    b->mapped = 0;
    free(b->packed);
    b->packed = NULL;
}

void kv_block_unref(kv_block *b)
{
    if (!b || --b->refs) return;
    free_rows(b);
    free_sketch(b);
    free(b);
}

void kv_block_set_map(kv_block *b, void *map)
{
    free_rows(b);
    b->rows = map;
    b->on_disk = true;
}

void kv_table_init(kv_table *t, const model_rows_shape *shape)
{
    *t = (kv_table){.shape = *shape};
}

void kv_table_fini(kv_table *t)
{
    for (uint32_t b = 0; b < t->n; b++) kv_block_unref(t->blocks[b]);
    free(t->blocks);
    free(t->rows);
    free(t->packed);
    free(t->filed);
    free(t->stamps);
    unref_shelf(t->shelf);
    kv_filed_files_close(t->files);
    *t = (kv_table){.shape = t->shape, .device = t->device};
}

static int no_memory(const kv_table *t, base_err *err)
{
    return base_fail(err, BASE_E_NOMEM,
        "no memory for %u more rows of the cache (%zu MiB); end other programs, or choose a smaller --ctx",
        (unsigned)MODEL_ROWS_BLOCK, model_rows_block_bytes(&t->shape) >> 20);
}

static int reserve(kv_table *t, uint32_t n_blocks, base_err *err)
{
    if (n_blocks <= t->cap) return 0;
    const uint32_t cap = n_blocks + n_blocks / 2 + 8;
    kv_block **blocks = realloc(t->blocks, cap * sizeof *blocks);
    if (!blocks) return no_memory(t, err);
    t->blocks = blocks;
    uint16_t **rows = realloc(t->rows, ((size_t)cap + 1) * sizeof *rows);
    if (!rows) return no_memory(t, err);
    t->rows = rows;
    uint8_t **packed = realloc(t->packed, ((size_t)cap + 1) * sizeof *packed);
    if (!packed) return no_memory(t, err);
    t->packed = packed;
    uint16_t **filed = realloc(t->filed, ((size_t)cap + 1) * sizeof *filed);
    if (!filed) return no_memory(t, err);
    t->filed = filed;
    uint64_t *stamps = realloc(t->stamps, ((size_t)cap + 1) * sizeof *stamps);
    if (!stamps) return no_memory(t, err);
    t->stamps = stamps;
    t->cap = cap;
    return 0;
}

static void set_block(kv_table *t, uint32_t b, kv_block *block)
{
    t->blocks[b] = block;
    kv_table_show(t, b);
}

void kv_table_show(kv_table *t, uint32_t b)
{
    t->rows[b] = t->blocks[b]->rows;
    t->packed[b] = t->blocks[b]->packed;
    t->filed[b] = t->blocks[b]->filed ? t->blocks[b]->filed->rows : NULL;
    t->stamps[b] = t->blocks[b]->stamp;
}

/* We wrote rows into a block of ours. */
static void set_changed(kv_table *t, uint32_t b)
{
    free_sketch(t->blocks[b]);
    t->stamps[b] = t->blocks[b]->stamp = model_rows_new_stamp();
}

bool kv_table_pack(kv_table *t, uint32_t b)
{
    kv_block *block = t->blocks[b];
    uint8_t *packed = block->refs == 1 && block->rows ? malloc(model_rows8_bytes(&t->shape)) : NULL;
    if (!packed || !model_rows8_pack(&t->shape, block->rows, packed, &t->rounding)) {
        free(packed);
        return false;
    }
    free_rows(block);
    free_sketch(block);
    block->on_disk = false;
    block->packed = packed;
    block->stamp = model_rows_new_stamp();
    kv_table_show(t, b);
    return true;
}

size_t kv_row_bytes(const model_rows_shape *shape)
{
    return (size_t)model_rows_lanes(shape) * shape->head_dim * 2u * sizeof(uint16_t);
}

/* Key and value of one lane and slot lie this many elements into a block. */
static size_t key_at(const model_rows_shape *shape, uint32_t lane, uint32_t slot)
{
    return ((size_t)lane * 2u * MODEL_ROWS_BLOCK + slot % MODEL_ROWS_BLOCK) * shape->head_dim;
}

/* n rows, one behind the other as in a row file, into the slots from `slot` on. */
static void spread_rows(
    const model_rows_shape *shape, uint16_t *block, uint32_t slot, uint32_t n, const uint16_t *rows)
{
    const size_t d = shape->head_dim, row = kv_row_bytes(shape) / sizeof *rows;
    /* Lane by lane: what is written lies together, what is read is in the cache. */
    for (uint32_t lane = 0; lane < model_rows_lanes(shape); lane++, rows += 2 * d) {
        uint16_t *keys = block + key_at(shape, lane, slot), *values = keys + (size_t)MODEL_ROWS_BLOCK * d;
        for (uint32_t i = 0; i < n; i++) memcpy(keys + i * d, rows + i * row, d * sizeof *keys);
        for (uint32_t i = 0; i < n; i++) memcpy(values + i * d, rows + i * row + d, d * sizeof *values);
    }
}

/* A block of our own with the rows of block b. */
static int copy_block(const kv_table *t, uint32_t b, kv_block **ret, base_err *err)
{
    enum { TOGETHER = 32 };
    const kv_block *from = t->blocks[b];
    const size_t row = kv_row_bytes(&t->shape) / sizeof(uint16_t);
    int rc = 0;
    for (uint32_t lane = 0; from->filed && lane < model_rows_lanes(&t->shape) && !rc; lane++)
        rc = kv_table_check(t, lane, b * MODEL_ROWS_BLOCK, (b + 1) * MODEL_ROWS_BLOCK, err);
    kv_block *block = rc ? NULL : kv_block_new(&t->shape, &t->device);
    if (!block) return rc ? rc : no_memory(t, err);
    if (from->packed) model_rows8_unpack(&t->shape, from->packed, block->rows);
    for (uint32_t i = 0; from->filed && i < MODEL_ROWS_BLOCK; i += TOGETHER)
        spread_rows(&t->shape, block->rows, i, TOGETHER, from->filed->rows + i * row);
    if (from->rows) memcpy(block->rows, from->rows, block->n_bytes);
    *ret = block;
    return 0;
}

/* Block b is one of our own, in memory as it was computed, from here on. */
static int own_block(kv_table *t, uint32_t b, base_err *err)
{
    kv_block *block = NULL;
    const int rc = copy_block(t, b, &block, err);
    if (rc) return rc;
    kv_block_unref(t->blocks[b]);
    set_block(t, b, block);
    return 0;
}

int kv_table_add_filed(kv_table *t, kv_filed *f, base_err *err)
{
    kv_block *block = calloc(1, sizeof *block);
    if (!t->files) t->files = kv_filed_files_ref(f->files);
    const int rc = block ? reserve(t, t->n + 1, err) : no_memory(t, err);
    if (rc) {
        free(block);
        kv_filed_close(f);
        return rc;
    }
    *block = (kv_block){.refs = 1,
        .n_bytes = model_rows_block_bytes(&t->shape),
        .filed = f,
        .on_disk = true,
        .stamp = model_rows_new_stamp(),
        .device = t->device};
    set_block(t, t->n++, block);
    return 0;
}

int kv_table_load(kv_table *t, uint32_t b, base_err *err)
{
    return t->blocks[b]->filed ? own_block(t, b, err) : 0;
}

static int is_damaged(uint32_t token, base_err *err)
{
    return base_fail(err, BASE_E_FORMAT,
        "the row of token %u is damaged in the session's row file: open the session again, and its text is computed anew",
        token);
}

/* Somebody cut the file off: what was looked at before is there no more. */
static int check_uncut(const kv_table *t, const uint32_t *tokens, uint32_t n, base_err *err)
{
    if (!t->files || !kv_filed_files_are_cut(t->files)) return 0;
    for (uint32_t i = 0; i < n; i++) {
        kv_filed *f = t->blocks[tokens[i] / MODEL_ROWS_BLOCK]->filed;
        if (!f) continue;
        f->is_damaged = true;
        return is_damaged(tokens[i], err);
    }
    return 0;
}

int kv_table_check_some(const kv_table *t, uint32_t lane, const uint32_t *tokens, uint32_t n, base_err *err)
{
    for (uint32_t i = 0; i < n && t->files;) {
        kv_filed *blocks[KV_FILED_SOME];
        uint32_t rows[KV_FILED_SOME], of[KV_FILED_SOME], k = 0;
        for (; i < n && k < KV_FILED_SOME; i++) {
            if (kv_filed_files_is_checked(t->files, lane, tokens[i])) continue; /* nearly all */
            kv_filed *f = t->blocks[tokens[i] / MODEL_ROWS_BLOCK]->filed;
            if (!f) continue;
            blocks[k] = f;
            rows[k] = tokens[i] % MODEL_ROWS_BLOCK;
            of[k++] = tokens[i];
        }
        const uint32_t right = kv_filed_check(blocks, rows, k, lane);
        if (right < k) return is_damaged(of[right], err);
    }
    return check_uncut(t, tokens, n, err);
}

int kv_table_check(const kv_table *t, uint32_t lane, uint32_t from, uint32_t to, base_err *err)
{
    uint32_t tokens[KV_FILED_SOME];
    int rc = 0;
    for (uint32_t n; from < to && !rc; from += n) {
        for (n = 0; n < KV_FILED_SOME && from + n < to; n++) tokens[n] = from + n;
        rc = kv_table_check_some(t, lane, tokens, n, err);
    }
    return rc;
}

bool kv_table_check_sketches(const kv_table *t, uint32_t part, const uint64_t *blocks)
{
    bool all = true;
    for (size_t b = kv_bits_next(blocks, 0, t->n, true); b < t->n;) {
        kv_filed *some[KV_FILED_SOME];
        uint32_t n = 0;
        for (; b < t->n && n < KV_FILED_SOME; b = kv_bits_next(blocks, b + 1, t->n, true)) {
            const kv_block *block = t->blocks[b];
            if (block->filed && !block->sketch && !kv_filed_is_sketch_sure(block->filed, part))
                some[n++] = block->filed;
        }
        kv_filed_check_sketches(some, n, part);
        for (uint32_t i = 0; i < n; i++) all &= kv_filed_is_sketch_sure(some[i], part);
    }
    return all;
}

void kv_table_read_apart(const kv_table *t, uint64_t room)
{
    if (t->files) kv_filed_files_read_apart(t->files, room);
}

int kv_table_unpack(kv_table *t, uint32_t from, uint32_t to, base_err *err)
{
    for (uint32_t b = from / MODEL_ROWS_BLOCK; b < t->n && b * MODEL_ROWS_BLOCK < to; b++) {
        const int rc = t->blocks[b]->packed ? own_block(t, b, err) : 0;
        if (rc) return rc;
    }
    return 0;
}

int kv_table_make_writable(kv_table *t, uint32_t from, uint32_t to, base_err *err)
{
    if (from >= to) return 0;
    const uint32_t first = from / MODEL_ROWS_BLOCK, last = (to - 1) / MODEL_ROWS_BLOCK;
    int rc = reserve(t, last + 1, err);
    if (rc) return rc;
    for (uint32_t b = first; b <= last; b++) {
        kv_block *old = b < t->n ? t->blocks[b] : NULL;
        if (old && old->refs == 1 && !old->on_disk && !old->packed) {
            free_sketch(old); /* of rows that will be others */
            old->mapped = 0;  /* what is written is memory of its own again */
            continue;
        }
        if (old) {
            rc = own_block(t, b, err);
            if (rc) return rc;
            continue;
        }
        kv_block *block = kv_block_new(&t->shape, &t->device);
        if (!block) return no_memory(t, err);
        set_block(t, b, block);
        t->n = b + 1;
    }
    return 0;
}

void kv_table_truncate(kv_table *t, uint32_t n)
{
    const uint32_t keep = (n + MODEL_ROWS_BLOCK - 1) / MODEL_ROWS_BLOCK;
    while (t->n > keep) kv_block_unref(t->blocks[--t->n]);
}

int kv_table_share(kv_table *t, const kv_table *other, base_err *err)
{
    int rc = reserve(t, other->n, err);
    if (rc) return rc;
    kv_table_truncate(t, 0);
    for (uint32_t b = 0; b < other->n; b++) set_block(t, b, kv_block_ref(other->blocks[b]));
    t->n = other->n;
    if (!t->files && other->files) t->files = kv_filed_files_ref(other->files);
    return 0;
}

int kv_table_adopt(kv_table *t, const kv_table *other, uint32_t from, uint32_t to, base_err *err)
{
    const size_t d = t->shape.head_dim, value = (size_t)MODEL_ROWS_BLOCK * d;
    if (!t->files && other->files) t->files = kv_filed_files_ref(other->files);
    int rc = reserve(t, (to + MODEL_ROWS_BLOCK - 1) / MODEL_ROWS_BLOCK, err);
    if (rc) return rc;
    while (from < to) {
        const uint32_t b = from / MODEL_ROWS_BLOCK, first = b * MODEL_ROWS_BLOCK;
        const uint32_t end = to < first + MODEL_ROWS_BLOCK ? to : first + MODEL_ROWS_BLOCK;
        if (b < t->n && t->blocks[b] == other->blocks[b]) {
            from = end;
            continue;
        }
        if (from == first) {
            if (b < t->n) kv_block_unref(t->blocks[b]);
            set_block(t, b, kv_block_ref(other->blocks[b]));
            if (b >= t->n) t->n = b + 1;
            from = end;
            continue;
        }
        rc = kv_table_make_writable(t, from, end, err);
        if (rc) return rc;
        for (uint32_t lane = 0; lane < model_rows_lanes(&t->shape); lane++) {
            const size_t at = key_at(&t->shape, lane, from), n_bytes = (end - from) * d * sizeof(uint16_t);
            memcpy(t->rows[b] + at, other->rows[b] + at, n_bytes);
            memcpy(t->rows[b] + at + value, other->rows[b] + at + value, n_bytes);
        }
        set_changed(t, b);
        from = end;
    }
    return 0;
}

void kv_table_get_row(const kv_table *t, uint32_t slot, uint16_t *row)
{
    const size_t d = t->shape.head_dim;
    const uint8_t *packed = t->packed[slot / MODEL_ROWS_BLOCK];
    const uint16_t *filed = t->filed[slot / MODEL_ROWS_BLOCK];
    if (filed) {
        const size_t n_bytes = kv_row_bytes(&t->shape);
        memcpy(row, filed + slot % MODEL_ROWS_BLOCK * (n_bytes / sizeof *row), n_bytes);
        return;
    }
    for (uint32_t lane = 0; packed && lane < model_rows_lanes(&t->shape); lane++, row += 2 * d) {
        model_rows8_keys(&t->shape, packed, lane, slot % MODEL_ROWS_BLOCK, 1, NULL, row);
        model_rows8_values(&t->shape, packed, lane, slot % MODEL_ROWS_BLOCK, 1, NULL, row + d);
    }
    for (uint32_t lane = 0; !packed && lane < model_rows_lanes(&t->shape); lane++, row += 2 * d) {
        const uint16_t *key = t->rows[slot / MODEL_ROWS_BLOCK] + key_at(&t->shape, lane, slot);
        memcpy(row, key, d * sizeof *row);
        memcpy(row + d, key + (size_t)MODEL_ROWS_BLOCK * d, d * sizeof *row);
    }
}

void kv_table_put_row(kv_table *t, uint32_t slot, const uint16_t *row)
{
    kv_table_put_rows(t, slot, 1, row);
}

void kv_table_put_rows(kv_table *t, uint32_t slot, uint32_t n, const uint16_t *rows)
{
    set_changed(t, slot / MODEL_ROWS_BLOCK);
    spread_rows(&t->shape, t->rows[slot / MODEL_ROWS_BLOCK], slot, n, rows);
}

/* A shelf with room for one more sketch; NULL: no memory. */
static kv_shelf *find_shelf(kv_table *t, size_t n_bytes)
{
    if (t->shelf && t->shelf->used + n_bytes <= t->shelf->n_bytes) return t->shelf;
    kv_shelf *f = malloc(sizeof *f);
    if (!f) return NULL;
    *f = (kv_shelf){.refs = 1, .n_bytes = n_bytes > SHELF_BYTES ? n_bytes : SHELF_BYTES};
    f->data = base_huge_alloc(f->n_bytes);
    if (!f->data) {
        free(f);
        return NULL;
    }
    unref_shelf(t->shelf);
    return t->shelf = f;
}

const uint8_t *kv_table_sketch(kv_table *t, uint32_t b, const uint32_t *lanes, uint32_t n)
{
    kv_block *block = t->blocks[b];
    const size_t n_bytes = model_sketch_bytes(n, t->shape.head_dim);
    if (block->sketch) return block->sketch;
    if (block->filed && kv_filed_sketch(block->filed)) return block->filed->sketch;
    if (kv_table_load(t, b, NULL)) return NULL;
    block = t->blocks[b];
    kv_shelf *shelf = find_shelf(t, n_bytes);
    if (!shelf) return NULL;
    shelf->refs++;
    block->shelf = shelf;
    block->sketch = shelf->data + shelf->used;
    shelf->used += n_bytes;
    model_sketch_make(t->shape.head_dim, lanes, n, block->rows, block->sketch);
    return block->sketch;
}
