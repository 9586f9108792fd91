/*
 * GGUF bytes written by hand, field by field, so that a test can say exactly the wrong thing.
 *
 *     base_buf b = {0};
 *     gguf_build_header(&b, 3, n_tensors, n_keys);
 *     gguf_build_str(&b, "general.architecture"); gguf_build_u32(&b, GGUF_STRING); gguf_build_str(&b,
 *         "llama");
 */
#ifndef KVIST_TESTS_GGUF_BUILD_H
#define KVIST_TESTS_GGUF_BUILD_H

#include <string.h>

#include "base/buf.h"
#include "model/file/gguf.h"

static inline void gguf_build_u32(base_buf *b, uint32_t x)
{
    base_buf_add(b, &x, sizeof x);
}

static inline void gguf_build_u64(base_buf *b, uint64_t x)
{
    base_buf_add(b, &x, sizeof x);
}

static inline void gguf_build_f32(base_buf *b, float x)
{
    base_buf_add(b, &x, sizeof x);
}

static inline void gguf_build_str(base_buf *b, const char *s)
{
    gguf_build_u64(b, strlen(s));
    base_buf_puts(b, s);
}

static inline void gguf_build_header(base_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys)
{
    base_buf_puts(b, "GGUF");
    gguf_build_u32(b, version);
    gguf_build_u64(b, n_tensors);
    gguf_build_u64(b, n_keys);
}

static inline void gguf_build_key(base_buf *b, const char *key, gguf_value_type type)
{
    gguf_build_str(b, key);
    gguf_build_u32(b, type);
}

static inline void gguf_build_key_str(base_buf *b, const char *key, const char *value)
{
    gguf_build_key(b, key, GGUF_STRING);
    gguf_build_str(b, value);
}

static inline void gguf_build_key_u32(base_buf *b, const char *key, uint32_t value)
{
    gguf_build_key(b, key, GGUF_U32);
    gguf_build_u32(b, value);
}

/* The elements follow. */
static inline void gguf_build_key_array(base_buf *b, const char *key, gguf_value_type element, uint64_t n)
{
    gguf_build_key(b, key, GGUF_ARRAY);
    gguf_build_u32(b, element);
    gguf_build_u64(b, n);
}

static inline void gguf_build_tensor(
    base_buf *b, const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type, uint64_t offset)
{
    gguf_build_str(b, name);
    gguf_build_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims && i < 16; i++) gguf_build_u64(b, ne[i]);
    gguf_build_u32(b, type);
    gguf_build_u64(b, offset);
}

/* Zeros up to a multiple of `alignment`, then n more. */
static inline void gguf_build_data(base_buf *b, size_t alignment, size_t n)
{
    while (b->len % alignment) base_buf_putc(b, 0);
    while (n--) base_buf_putc(b, 0);
}

#endif
