/* Blocks that lie in the row file; see filed.h. */
#include "kv/rows/filed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/map.h"
#include "model/ops/sketch.h"

enum {
    VERSION = 1,
    ALIGN = 64,  /* of a record's parts */
    PAGE = 4096, /* of a record */
    WORDS = MODEL_ROWS_BLOCK / 64,
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

size_t kv_digest_mean_bytes(const kv_digest_shape *s)
{
    return sizeof(kv_digest_mean) + lane_row_bytes(s);
}

size_t kv_digest_mean_at(const kv_digest_shape *s, uint32_t page, uint32_t lane)
{
    return ((size_t)lane * KV_DIGEST_PAGES + page) * kv_digest_mean_bytes(s);
}

size_t kv_digest_bytes(const kv_digest_shape *s)
{
    return round_up(kv_digest_means_at(s) + kv_digest_mean_at(s, 0, n_lanes(s)), PAGE);
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

/* By lanes, which are as many chains side by side. */
static uint64_t hash_sketch(const kv_digest_shape *s, const uint8_t *sketch)
{
    uint64_t hash = 0, some[64];
    const size_t size = model_sketch_lane_bytes(s->rows.head_dim);
    for (uint32_t lane = 0, n; lane < s->n_sketched; lane += n) {
        n = s->n_sketched - lane < 64 ? s->n_sketched - lane : 64;
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
    head.sketch_hash = hash_sketch(s, sketch);
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
    uint32_t n_users; /* blocks, and who opened them */
};

kv_filed_files *kv_filed_files_open(int rows, int digest)
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
    return f;
}

void kv_filed_files_close(kv_filed_files *f)
{
    if (!f || --f->n_users) return;
    for (int i = 0; i < N_FILES; i++) base_map_free(f->maps[i]);
    free(f);
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
    uint64_t *checked = calloc((size_t)n_lanes(shape) * WORDS, sizeof *checked);
    if (!f || !checked) {
        free(f);
        free(checked);
        return NULL;
    }
    files->n_users++;
    *f = (kv_filed){.files = files,
        .rows = (uint16_t *)(uintptr_t)rows,
        .sums = (const uint32_t *)(const void *)(record + sums_at()),
        .sketch = record + sketch_at(shape),
        .means = record + kv_digest_means_at(shape),
        .identity = identity,
        .sketch_hash = head.sketch_hash,
        .checked = checked,
        .shape = *shape};
    return f;
}

void kv_filed_close(kv_filed *f)
{
    if (!f) return;
    kv_filed_files_close(f->files);
    free(f->checked);
    free(f);
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
        f->is_damaged |= fold_hash(hashes[i]) != f->sums[(size_t)rows[i] * lanes + lane] ||
                         kv_filed_files_are_cut(f->files);
        if (f->is_damaged) return i;
        f->checked[(size_t)lane * WORDS + rows[i] / 64] |= UINT64_C(1) << rows[i] % 64;
    }
    return n;
}

bool kv_filed_is_checked(const kv_filed *f, uint32_t lane, uint32_t row)
{
    return !f->is_damaged && f->checked[(size_t)lane * WORDS + row / 64] >> row % 64 & 1;
}

const uint8_t *kv_filed_sketch(kv_filed *f)
{
    if (f->sketch && !f->is_sketch_sure) {
        base_map_read_all(f->sketch, model_sketch_bytes(f->shape.n_sketched, f->shape.rows.head_dim));
        f->is_sketch_sure = hash_sketch(&f->shape, f->sketch) == f->sketch_hash;
        if (!f->is_sketch_sure) f->sketch = NULL;
    }
    return kv_filed_files_are_cut(f->files) ? NULL : f->sketch;
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
