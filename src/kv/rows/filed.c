/* Blocks that lie in the row file; see filed.h. */
#include "kv/rows/filed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/map.h"
#include "kv/rows/bits.h"
#include "model/ops/sketch.h"

enum {
    VERSION = 1,
    ALIGN = 64,  /* of a record's parts */
    PAGE = 4096, /* of a record */
    HASHED = 64, /* lanes of a sketch whose hashes are hashed together */
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static uint32_t n_lanes(const kv_digest_shape *s)
{
    return model_rows_lanes(&s->rows);
}

static size_t lane_row_bytes(const kv_digest_shape *s)
{
    return s->rows.head_dim * 2u * sizeof(uint16_t);
}

/* --- the record ----------------------------------------------------------------------------------------- */

static size_t sums_at(void)
{
    return round_up(sizeof(kv_digest_head), ALIGN);
}

static size_t sums_bytes(const kv_digest_shape *s)
{
    return (size_t)MODEL_ROWS_BLOCK * n_lanes(s) * sizeof(uint32_t);
}

static size_t sketch_at(const kv_digest_shape *s)
{
    return sums_at() + round_up(sums_bytes(s), ALIGN);
}

size_t kv_digest_means_at(const kv_digest_shape *s)
{
    return sketch_at(s) + round_up(model_sketch_bytes(s->n_sketched, s->rows.head_dim), ALIGN);
}

static size_t mean_bytes(const kv_digest_shape *s)
{
    return sizeof(kv_digest_mean) + lane_row_bytes(s);
}

size_t kv_digest_mean_at(const kv_digest_shape *s, uint32_t page, uint32_t lane)
{
    return ((size_t)lane * KV_DIGEST_PAGES + page) * mean_bytes(s);
}

size_t kv_digest_hashes_at(const kv_digest_shape *s)
{
    return kv_digest_means_at(s) + kv_digest_mean_at(s, 0, n_lanes(s));
}

size_t kv_digest_bytes(const kv_digest_shape *s)
{
    return round_up(kv_digest_hashes_at(s) + s->n_sketched * sizeof(uint64_t), PAGE);
}

uint64_t kv_digest_identity(const kv_digest_shape *s, uint32_t kernel_version, const uint64_t *row_hashes)
{
    const uint32_t of[] = {
        VERSION, kernel_version, s->rows.n_layer, s->rows.n_head_kv, s->rows.head_dim, s->n_sketched};
    return base_hash64(row_hashes, MODEL_ROWS_BLOCK * sizeof *row_hashes, base_hash64(of, sizeof of, 0));
}

/* --- hashes --------------------------------------------------------------------------------------------- */

static uint32_t fold_hash(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

/* Of a sketch, out of its lanes' hashes. */
static uint64_t hash_hashes(const kv_digest_shape *s, const uint64_t *hashes)
{
    uint64_t hash = 0;
    for (uint32_t lane = 0, n; lane < s->n_sketched; lane += n) {
        n = s->n_sketched - lane < HASHED ? s->n_sketched - lane : HASHED;
        hash = base_hash64(hashes + lane, n * sizeof *hashes, hash);
    }
    return hash;
}

/* By lanes, which are as many chains side by side. */
static uint64_t hash_sketch(const kv_digest_shape *s, const uint8_t *sketch)
{
    uint64_t hash = 0, some[HASHED];
    const size_t size = model_sketch_lane_bytes(s->rows.head_dim);
    for (uint32_t lane = 0, n; lane < s->n_sketched; lane += n) {
        n = s->n_sketched - lane < HASHED ? s->n_sketched - lane : HASHED;
        base_hash64_each(sketch + lane * size, size, n, some);
        hash = base_hash64(some, n * sizeof *some, hash);
    }
    return hash;
}

static uint64_t hash_mean(const kv_digest_shape *s, uint64_t identity, uint64_t rows, const uint16_t *both)
{
    return base_hash64(both, lane_row_bytes(s), base_hash64(&rows, sizeof rows, identity));
}

/* --- writing -------------------------------------------------------------------------------------------- */

void kv_digest_write(
    const kv_digest_shape *s, uint64_t identity, const uint16_t *rows, const uint8_t *sketch, uint8_t *to)
{
    kv_digest_head head = {.identity = identity};
    uint32_t *sums = (uint32_t *)(void *)(to + sums_at());
    uint64_t some[64];
    const size_t n = (size_t)MODEL_ROWS_BLOCK * n_lanes(s), size = lane_row_bytes(s);
    memset(to, 0, kv_digest_bytes(s));
    for (size_t i = 0, k; i < n; i += k) {
        k = n - i < 64 ? n - i : 64;
        base_hash64_each((const uint8_t *)rows + i * size, size, k, some);
        for (size_t j = 0; j < k; j++) sums[i + j] = fold_hash(some[j]);
    }
    head.sums_hash = base_hash64(sums, sums_bytes(s), identity);
    memcpy(to + sketch_at(s), sketch, model_sketch_bytes(s->n_sketched, s->rows.head_dim));
    uint64_t *hashes = (uint64_t *)(void *)(to + kv_digest_hashes_at(s));
    base_hash64_each(sketch, model_sketch_lane_bytes(s->rows.head_dim), s->n_sketched, hashes);
    head.sketch_hash = hash_hashes(s, hashes);
    memcpy(to, &head, sizeof head);
}

void kv_digest_put_mean(const kv_digest_shape *s, uint64_t identity, uint64_t rows, const uint16_t *key,
    const uint16_t *value, uint8_t *to)
{
    kv_digest_mean *mean = (kv_digest_mean *)(void *)to;
    uint16_t *both = (uint16_t *)(void *)(mean + 1);
    memcpy(both, key, s->rows.head_dim * sizeof *key);
    memcpy(both + s->rows.head_dim, value, s->rows.head_dim * sizeof *value);
    *mean = (kv_digest_mean){.rows = rows, .hash = hash_mean(s, identity, rows, both)};
}

/* --- reading -------------------------------------------------------------------------------------------- */

enum { ROWS, DIGEST, N_FILES };

struct kv_filed_files {
    base_map *maps[N_FILES];
    uint64_t sizes[N_FILES];
    uint32_t n_users; /* blocks, tables, and who opened them */
    uint32_t n_blocks;
    /* What was looked at, bits: [lane][token] of rows, [lane of a sketch][block]. Here and not in blocks, where looking costs misses. */
    uint64_t *checked, *sure;
};

static size_t checked_words(const kv_filed_files *f)
{
    return kv_bits_words((size_t)f->n_blocks * MODEL_ROWS_BLOCK);
}

static size_t sure_words(const kv_filed_files *f)
{
    return kv_bits_words(f->n_blocks);
}

kv_filed_files *kv_filed_files_ref(kv_filed_files *f)
{
    f->n_users++;
    return f;
}

kv_filed_files *kv_filed_files_open(const kv_digest_shape *shape, int rows, int digest)
{
    const int fds[N_FILES] = {[ROWS] = rows, [DIGEST] = digest};
    kv_filed_files *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->n_users = 1;
    for (int i = 0; i < N_FILES; i++) {
        struct stat st;
        if (fstat(fds[i], &st) || st.st_size <= 0 ||
            base_map_new(&f->maps[i], fds[i], (size_t)st.st_size, NULL)) {
            kv_filed_files_close(f);
            return NULL;
        }
        f->sizes[i] = (uint64_t)st.st_size;
    }
    f->n_blocks = (uint32_t)(f->sizes[DIGEST] / kv_digest_bytes(shape));
    f->checked = calloc(n_lanes(shape) * checked_words(f) + 1, sizeof *f->checked);
    f->sure = calloc(shape->n_sketched * sure_words(f) + 1, sizeof *f->sure);
    if (f->checked && f->sure) return f;
    kv_filed_files_close(f);
    return NULL;
}

void kv_filed_files_close(kv_filed_files *f)
{
    if (!f || --f->n_users) return;
    for (int i = 0; i < N_FILES; i++) base_map_free(f->maps[i]);
    free(f->checked);
    free(f->sure);
    free(f);
}

bool kv_filed_files_is_checked(const kv_filed_files *f, uint32_t lane, uint32_t token)
{
    return token / MODEL_ROWS_BLOCK < f->n_blocks && kv_bits_get(f->checked + lane * checked_words(f), token);
}

void kv_filed_files_read_apart(kv_filed_files *f, uint64_t room)
{
    if (f->sizes[ROWS] > room) base_map_read_apart(f->maps[ROWS]);
}

bool kv_filed_files_are_cut(const kv_filed_files *f)
{
    return base_map_is_cut(f->maps[ROWS]) || base_map_is_cut(f->maps[DIGEST]);
}

/* n bytes of one of the files from `at` on; NULL: they were not there when it was mapped. */
static const uint8_t *part_of(const kv_filed_files *f, int file, uint64_t at, size_t n)
{
    return at > f->sizes[file] || n > f->sizes[file] - at ? NULL : base_map_bytes(f->maps[file]) + at;
}

kv_filed *kv_filed_open(
    const kv_digest_shape *shape, kv_filed_files *files, uint64_t at, uint32_t b, uint64_t identity)
{
    const size_t n_bytes = kv_digest_bytes(shape);
    const uint8_t *record = part_of(files, DIGEST, b * (uint64_t)n_bytes, n_bytes),
                  *rows = part_of(files, ROWS, at, MODEL_ROWS_BLOCK * n_lanes(shape) * lane_row_bytes(shape));
    kv_digest_head head = {0};
    if (record) memcpy(&head, record, sizeof head);
    if (!record || !rows || head.identity != identity ||
        base_hash64(record + sums_at(), sums_bytes(shape), identity) != head.sums_hash)
        return NULL;
    kv_filed *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    *f = (kv_filed){.files = kv_filed_files_ref(files),
        .b = b,
        .rows = (uint16_t *)(uintptr_t)rows,
        .sums = (const uint32_t *)(const void *)(record + sums_at()),
        .sketch = record + sketch_at(shape),
        .means = record + kv_digest_means_at(shape),
        .identity = identity,
        .sketch_hash = head.sketch_hash,
        .shape = *shape};
    return f;
}

void kv_filed_close(kv_filed *f)
{
    if (!f) return;
    kv_filed_files_close(f->files);
    free(f);
}

/* Nothing of it is believed any more, whoever reads it next. */
static void set_damaged(kv_filed *f)
{
    f->is_damaged = true;
    for (uint32_t lane = 0; lane < n_lanes(&f->shape); lane++)
        kv_bits_clear_range(f->files->checked + lane * checked_words(f->files), f->b * MODEL_ROWS_BLOCK,
            (f->b + 1) * MODEL_ROWS_BLOCK);
}

uint32_t kv_filed_check(kv_filed *const *blocks, const uint32_t *rows, uint32_t n, uint32_t lane)
{
    const void *pieces[KV_FILED_SOME];
    uint64_t hashes[KV_FILED_SOME];
    if (!n) return 0;
    const uint32_t lanes = n_lanes(&blocks[0]->shape);
    const size_t size = lane_row_bytes(&blocks[0]->shape);
    for (uint32_t i = 0; i < n; i++)
        pieces[i] = (const uint8_t *)blocks[i]->rows + ((size_t)rows[i] * lanes + lane) * size;
    base_hash64_some(pieces, NULL, size, n, hashes);
    for (uint32_t i = 0; i < n; i++) {
        kv_filed *f = blocks[i];
        if (fold_hash(hashes[i]) != f->sums[(size_t)rows[i] * lanes + lane] ||
            kv_filed_files_are_cut(f->files))
            set_damaged(f);
        if (f->is_damaged) return i;
        kv_bits_set(f->files->checked + lane * checked_words(f->files), f->b * MODEL_ROWS_BLOCK + rows[i]);
    }
    return n;
}

const uint8_t *kv_filed_sketch(kv_filed *f)
{
    if (f->sketch && !f->is_sketch_sure && !f->lane_hashes) {
        const uint64_t *hashes = (const uint64_t *)(const void *)(f->means + kv_digest_hashes_at(&f->shape) -
                                                                  kv_digest_means_at(&f->shape));
        if (hash_hashes(&f->shape, hashes) == f->sketch_hash) f->lane_hashes = hashes;
    }
    if (f->sketch && !f->is_sketch_sure && !f->lane_hashes) {
        base_map_read_all(f->sketch, model_sketch_bytes(f->shape.n_sketched, f->shape.rows.head_dim));
        f->is_sketch_sure = hash_sketch(&f->shape, f->sketch) == f->sketch_hash;
        if (!f->is_sketch_sure) f->sketch = NULL;
    }
    return kv_filed_files_are_cut(f->files) ? NULL : f->sketch;
}

bool kv_filed_is_sketch_sure(const kv_filed *f, uint32_t part)
{
    return f->sketch &&
           (f->is_sketch_sure || kv_bits_get(f->files->sure + part * sure_words(f->files), f->b));
}

void kv_filed_check_sketches(kv_filed *const *blocks, uint32_t n, uint32_t part)
{
    kv_filed *asked[KV_FILED_SOME];
    const void *pieces[KV_FILED_SOME];
    uint64_t hashes[KV_FILED_SOME];
    uint32_t k = 0;
    size_t size = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!kv_filed_sketch(blocks[i]) || kv_filed_is_sketch_sure(blocks[i], part)) continue;
        size = model_sketch_lane_bytes(blocks[i]->shape.rows.head_dim);
        pieces[k] = blocks[i]->sketch + part * size;
        asked[k++] = blocks[i];
    }
    if (!k) return;
    base_hash64_some(pieces, NULL, size, k, hashes);
    for (uint32_t i = 0; i < k; i++) {
        kv_filed_files *files = asked[i]->files;
        if (hashes[i] == asked[i]->lane_hashes[part] && !kv_filed_files_are_cut(files))
            kv_bits_set(files->sure + part * sure_words(files), asked[i]->b);
        else
            asked[i]->sketch = NULL;
    }
}

bool kv_filed_hash_lanes(const kv_filed *f, uint64_t *to)
{
    if (!f->is_sketch_sure || !f->sketch) return false;
    base_hash64_each(f->sketch, model_sketch_lane_bytes(f->shape.rows.head_dim), f->shape.n_sketched, to);
    return true;
}

void kv_filed_means(const kv_filed *f, uint32_t lane, const uint64_t *rows, const uint16_t **ret)
{
    const void *pieces[KV_DIGEST_PAGES];
    uint64_t seeds[KV_DIGEST_PAGES], hashes[KV_DIGEST_PAGES];
    for (uint32_t page = 0; page < KV_DIGEST_PAGES; page++) {
        pieces[page] = f->means + kv_digest_mean_at(&f->shape, page, lane) + sizeof(kv_digest_mean);
        seeds[page] = base_hash64(&rows[page], sizeof rows[page], f->identity);
    }
    base_hash64_some(pieces, seeds, lane_row_bytes(&f->shape), KV_DIGEST_PAGES, hashes);
    for (uint32_t page = 0; page < KV_DIGEST_PAGES; page++) {
        const kv_digest_mean *mean = (const kv_digest_mean *)pieces[page] - 1;
        const bool is_there = rows[page] && mean->rows == rows[page] && mean->hash == hashes[page];
        ret[page] = is_there ? pieces[page] : NULL;
    }
}
