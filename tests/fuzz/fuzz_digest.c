/*
 * Digests of a session's blocks and the rows beside them, whatever somebody did to the two files: what is taken for what was
 * written is that, byte for byte.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kv/rows/filed.h"
#include "model/ops/sketch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { LAYERS = 1, HEADS = 2, LANES = LAYERS * HEADS, DIM = 32, IDENTITY = 7 };
static const kv_digest_shape shape = {{.n_layer = LAYERS, .n_head_kv = HEADS, .head_dim = DIM}, LANES};
enum { ROW_BYTES = LANES * 2 * DIM * 2, ROWS_BYTES = MODEL_ROWS_BLOCK * ROW_BYTES };

/* A file of these bytes, of which the input changes some: four bytes a change, where (of 64 Ki) and what; 0xff ends it early. */
static int make_file(const uint8_t *good, size_t n_good, const uint8_t **bytes, size_t *n)
{
    uint8_t *text = malloc(n_good);
    size_t length = n_good;
    memcpy(text, good, n_good);
    for (int i = 0; i < 8 && *n >= 4; i++, *bytes += 4, *n -= 4) {
        const size_t at = ((*bytes)[0] | (size_t)(*bytes)[1] << 8 | (size_t)((*bytes)[2] & 3) << 16) % n_good;
        if ((*bytes)[2] == 0xff) length = at;
        text[at] ^= (*bytes)[3];
    }
    const int fd = memfd_create("kvist-fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text, length) != (ssize_t)length) abort();
    free(text);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static uint16_t rows[ROWS_BYTES / 2];
    const size_t n_sketch = model_sketch_bytes(LANES, DIM), n_record = kv_digest_bytes(&shape);
    uint8_t *sketch = malloc(n_sketch), *record = aligned_alloc(4096, n_record);
    for (size_t i = 0; i < ROWS_BYTES / 2; i++) rows[i] = (uint16_t)(i * 2654435761u >> 7);
    for (size_t i = 0; i < n_sketch; i++) sketch[i] = (uint8_t)(i * 31);
    const uint64_t of_mean = 0x5555;
    kv_digest_write(&shape, IDENTITY, rows, sketch, record);
    for (uint32_t page = 0; page < KV_DIGEST_PAGES; page++)
        for (uint32_t lane = 0; lane < LANES; lane++)
            kv_digest_put_mean(&shape, IDENTITY, of_mean, rows + lane, rows + page,
                record + kv_digest_means_at(&shape) + kv_digest_mean_at(&shape, page, lane));
    const int digest = make_file(record, n_record, &bytes, &n),
              file = make_file((const uint8_t *)rows, ROWS_BYTES, &bytes, &n);
    kv_filed_files *files = kv_filed_files_open(&shape, file, digest);
    kv_filed *f = files ? kv_filed_open(&shape, files, 0, 0, IDENTITY) : NULL;
    kv_filed_files_close(files);
    for (uint32_t lane = 0; f && lane < LANES; lane++)
        for (uint32_t row = 0; row < MODEL_ROWS_BLOCK; row++) {
            const size_t at = ((size_t)row * LANES + lane) * 2 * DIM;
            if (kv_filed_check(&f, &row, 1, lane) && memcmp(f->rows + at, rows + at, 4 * DIM) != 0) abort();
        }
    const size_t n_lane = model_sketch_lane_bytes(DIM);
    for (uint32_t part = 0; f && part < LANES; part++) {
        kv_filed_check_sketches(&f, 1, part);
        if (kv_filed_is_sketch_sure(f, part) &&
            memcmp(f->sketch + part * n_lane, sketch + part * n_lane, n_lane) != 0)
            abort();
    }
    for (uint32_t lane = 0; f && lane < LANES; lane++) {
        const uint64_t of_means[KV_DIGEST_PAGES] = {of_mean, of_mean, of_mean, of_mean};
        const uint16_t *means[KV_DIGEST_PAGES];
        kv_filed_means(f, lane, of_means, means);
        for (uint32_t page = 0; page < KV_DIGEST_PAGES; page++)
            if (means[page] && (memcmp(means[page], rows + lane, 2 * DIM) != 0 ||
                                   memcmp(means[page] + DIM, rows + page, 2 * DIM) != 0))
                abort();
    }
    kv_filed_close(f);
    close(digest);
    close(file);
    free(sketch);
    free(record);
    return 0;
}
