/*
 * GGUF files, versions 2 and 3 (layout: ggml-org/ggml, docs/gguf.md), safe against any bytes: every count is
 * bounded by the bytes left before anything is allocated, every product is checked, every tensor lies inside
 * the file.
 */
#ifndef KVIST_MODEL_GGUF_H
#define KVIST_MODEL_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct gguf_file gguf_file;

/* clang-format off */
typedef enum gguf_value_type {
    GGUF_U8 = 0,
    GGUF_I8 = 1,
    GGUF_U16 = 2,
    GGUF_I16 = 3,
    GGUF_U32 = 4,
    GGUF_I32 = 5,
    GGUF_F32 = 6,
    GGUF_BOOL = 7,
    GGUF_STRING = 8,
    GGUF_ARRAY = 9,
    GGUF_U64 = 10,
    GGUF_I64 = 11,
    GGUF_F64 = 12,
} gguf_value_type;

/* Tensor formats, with the file's numbers. */
typedef enum gguf_tensor_type {
    GGUF_TENSOR_F32 = 0,
    GGUF_TENSOR_F16 = 1,
    GGUF_TENSOR_Q4_0 = 2,
    GGUF_TENSOR_Q4_1 = 3,
    GGUF_TENSOR_Q5_0 = 6,
    GGUF_TENSOR_Q5_1 = 7,
    GGUF_TENSOR_Q8_0 = 8,
    GGUF_TENSOR_Q2_K = 10,
    GGUF_TENSOR_Q3_K = 11,
    GGUF_TENSOR_Q4_K = 12,
    GGUF_TENSOR_Q5_K = 13,
    GGUF_TENSOR_Q6_K = 14,
    GGUF_TENSOR_IQ2_XXS = 16,
    GGUF_TENSOR_IQ2_XS = 17,
    GGUF_TENSOR_IQ3_XXS = 18,
    GGUF_TENSOR_IQ1_S = 19,
    GGUF_TENSOR_IQ4_NL = 20,
    GGUF_TENSOR_IQ3_S = 21,
    GGUF_TENSOR_IQ2_S = 22,
    GGUF_TENSOR_IQ4_XS = 23,
    GGUF_TENSOR_IQ1_M = 29,
    GGUF_TENSOR_BF16 = 30,
    GGUF_TENSOR_MXFP4 = 39,
} gguf_tensor_type;
/* clang-format on */

typedef struct gguf_tensor {
    base_str name;
    gguf_tensor_type type;
    uint32_t n_dims;
    uint64_t ne[4]; /* ne[0] is the contiguous (input) dimension; unused ones are 1 */
    uint64_t n_bytes;
    const uint8_t *data; /* n_bytes, inside the mapping; aligned only as the file says */
} gguf_tensor;

/*
 * Maps the file read-only. Truncated, foreign or malformed files are BASE_E_FORMAT with the reason and the
 * place. Of a model in parts (NAME-00001-of-00003.gguf) any part may be named; all are opened, and a missing
 * one is BASE_E_NOT_FOUND.
 */
int gguf_open(gguf_file **ret, const char *path, base_err *err);
/* The same over bytes in memory (fuzzing, tests); the bytes must outlive the file. */
int gguf_parse(gguf_file **ret, const void *bytes, size_t n, base_err *err);
void gguf_close(gguf_file *f);
/*
 * Is the file still the one that was opened? The bytes of a file that was truncated meanwhile read as zeros,
 * so whoever computed with them asks before using the result. BASE_E_STATE names `path`.
 */
int gguf_check_unchanged(const gguf_file *f, const char *path, base_err *err);

uint64_t gguf_n_tensors(const gguf_file *f);
const gguf_tensor *gguf_tensor_at(const gguf_file *f, uint64_t i);
const gguf_tensor *gguf_find_tensor(const gguf_file *f, const char *name); /* NULL when absent */
const char *gguf_tensor_type_name(gguf_tensor_type type);
/* The formats that are read, by place; NULL behind the last. */
const char *gguf_tensor_type_at(size_t i);
bool gguf_tensor_block(
    gguf_tensor_type type, uint32_t *ret_elements, uint32_t *ret_bytes); /* false: not in our table */

/*
 * Metadata. Integer look-ups accept any integer type that fits; false when the key is absent or of another
 * kind.
 */
bool gguf_get_u64(const gguf_file *f, const char *key, uint64_t *ret);
bool gguf_get_i64(const gguf_file *f, const char *key, int64_t *ret);
bool gguf_get_f64(const gguf_file *f, const char *key, double *ret);
bool gguf_get_bool(const gguf_file *f, const char *key, bool *ret);
bool gguf_get_str(const gguf_file *f, const char *key, base_str *ret);
/* Arrays: element count and one element. */
bool gguf_get_array(const gguf_file *f, const char *key, gguf_value_type *ret_type, uint64_t *ret_n);
bool gguf_array_str(const gguf_file *f, const char *key, uint64_t i, base_str *ret); /* O(1) */
bool gguf_array_num(
    const gguf_file *f, const char *key, uint64_t i, double *ret); /* any number type; bool: 0, 1 */

uint64_t gguf_n_keys(const gguf_file *f);
base_str gguf_key_at(const gguf_file *f, uint64_t i, gguf_value_type *ret_type);
void gguf_print_value(const gguf_file *f, uint64_t i, base_buf *out); /* short form, for `kvist model info` */
uint64_t gguf_file_bytes(const gguf_file *f);                         /* of all parts */

/* The files that a model is made of; most are one. They live as long as the model. */
typedef struct gguf_part {
    const char *path; /* NULL: bytes in memory */
    const uint8_t *bytes;
    uint64_t n_bytes, n_head; /* n_head: before the first tensor's bytes */
} gguf_part;

uint64_t gguf_n_parts(const gguf_file *f);
gguf_part gguf_part_at(const gguf_file *f, uint64_t i);

#endif
