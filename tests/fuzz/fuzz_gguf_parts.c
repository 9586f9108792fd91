/* Several GGUF files one behind another, each from its magic on: parse each, join them, read all that they then have. */
#include <stdlib.h>
#include <string.h>

#include "model/file/gguf.h"
#include "model/file/gguf_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { MOST = 8 };

/* Where the next file begins behind `at`, or n. */
static size_t next_file(const uint8_t *bytes, size_t n, size_t at)
{
    const uint8_t *found = at + 4 < n ? memmem(bytes + at + 4, n - at - 4, "GGUF", 4) : NULL;
    return found ? (size_t)(found - bytes) : n;
}

/* Parses the files of the bytes; how many, or 0 when one of them is none. */
static uint64_t parse_all(const uint8_t *bytes, size_t n, gguf_file *files[MOST])
{
    uint64_t n_files = 0;
    for (size_t at = 0, end; at < n && n_files < MOST; at = end) {
        end = n_files + 1 < MOST ? next_file(bytes, n, at) : n;
        if (gguf_parse(&files[n_files], bytes + at, end - at, NULL) != 0) {
            for (uint64_t i = 0; i < n_files; i++) gguf_close(files[i]);
            return 0;
        }
        n_files++;
    }
    return n_files;
}

static uint64_t read_tensors(const gguf_file *f)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < gguf_n_tensors(f); i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        char name[64] = "";
        memcpy(name, t->name.ptr, t->name.len);
        if (strlen(name) == t->name.len && gguf_find_tensor(f, name) != t) abort();
        for (uint64_t k = 0; k < t->n_bytes; k++) sum += t->data[k];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    gguf_file *files[MOST];
    base_err err = {0};
    static volatile uint64_t sink; /* so that no read is left out */
    const uint64_t n_files = parse_all(bytes, n, files);
    if (n_files == 0) return 0;
    gguf_file **others = calloc(MOST, sizeof *others);
    for (uint64_t i = 1; i < n_files; i++) others[i - 1] = files[i];
    if (gguf_parts_join(files[0], others, n_files - 1, &err) == 0) {
        if (gguf_n_parts(files[0]) != n_files) abort();
        sink = read_tensors(files[0]);
        (void)sink;
    } else {
        if (!err.msg[0]) abort(); /* a refusal says why */
        for (uint64_t i = 1; i < n_files; i++) gguf_close(files[i]);
        free(others);
    }
    gguf_close(files[0]);
    return 0;
}
