/* Any bytes as a GGUF file: parse, then read everything that it says it has. */
#include <math.h>
#include <stdlib.h>

#include "model/file/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static uint64_t read_key(const gguf_file *f, uint64_t i)
{
    char key[256];
    gguf_value_type type = GGUF_U8;
    base_str name = gguf_key_at(f, i, &type), s;
    uint64_t sum = 0, n = 0, u;
    int64_t signed_value;
    double d;
    bool flag;
    for (size_t k = 0; k < name.len; k++) sum += (unsigned char)name.ptr[k];
    if (name.len >= sizeof key) return sum;
    for (size_t k = 0; k < name.len; k++) key[k] = name.ptr[k];
    key[name.len] = 0;
    if (gguf_get_u64(f, key, &u)) sum += u;
    if (gguf_get_i64(f, key, &signed_value)) sum += (uint64_t)signed_value;
    if (gguf_get_f64(f, key, &d) && !isfinite(d)) abort(); /* numbers are finite */
    if (gguf_get_bool(f, key, &flag)) sum += flag;
    if (gguf_get_str(f, key, &s))
        for (size_t k = 0; k < s.len; k++) sum += (unsigned char)s.ptr[k];
    if (!gguf_get_array(f, key, &type, &n)) return sum;
    for (uint64_t k = 0; k < n; k++) {
        if (gguf_array_str(f, key, k, &s))
            for (size_t c = 0; c < s.len; c++) sum += (unsigned char)s.ptr[c];
        if (gguf_array_num(f, key, k, &d)) sum += d > 0;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    gguf_file *f;
    base_err err = {0};
    base_buf out = {0};
    static volatile uint64_t sink; /* so that no read is left out */
    uint64_t sum = 0;
    if (gguf_parse(&f, bytes, n, &err) != 0) {
        if (!err.msg[0]) abort(); /* a refusal says why */
        return 0;
    }
    for (uint64_t i = 0; i < gguf_n_keys(f); i++) {
        sum += read_key(f, i);
        gguf_print_value(f, i, &out);
    }
    for (uint64_t i = 0; i < gguf_n_tensors(f); i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        for (uint64_t k = 0; k < t->n_bytes; k++) sum += t->data[k];
    }
    sink = sum;
    (void)sink;
    base_buf_free(&out);
    gguf_close(f);
    return 0;
}
