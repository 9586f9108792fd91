/*
 * What a GGUF file holds, by name: its parts, keys and their values, tensors.
 */
#include "model/file/gguf_values.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

/* clang-format off */
const struct gguf_value_kind gguf_value_types[GGUF_N_VALUE_TYPES] = {
    [GGUF_U8] = {"u8", 1},   [GGUF_I8] = {"i8", 1},   [GGUF_U16] = {"u16", 2},  [GGUF_I16] = {"i16", 2},
    [GGUF_U32] = {"u32", 4}, [GGUF_I32] = {"i32", 4}, [GGUF_F32] = {"f32", 4},  [GGUF_BOOL] = {"bool", 1},
    [GGUF_STRING] = {"string", 0}, [GGUF_ARRAY] = {"array", 0},
    [GGUF_U64] = {"u64", 8}, [GGUF_I64] = {"i64", 8}, [GGUF_F64] = {"f64", 8},
};
/* clang-format on */

size_t gguf_slot(const uint32_t *table, size_t slots, const void *items, size_t item_size, base_str name)
{
    size_t at = base_hash_keyed(name.ptr, name.len) & (slots - 1);
    for (; table[at]; at = (at + 1) & (slots - 1)) {
        const base_str *other =
            (const base_str *)(const void *)((const char *)items + (table[at] - 1) * item_size);
        if (other->len == name.len && memcmp(other->ptr, name.ptr, name.len) == 0) break;
    }
    return at;
}

uint64_t gguf_n_parts(const gguf_file *f)
{
    return 1 + f->n_others;
}

gguf_part gguf_part_at(const gguf_file *f, uint64_t i)
{
    const gguf_file *part = i ? f->others[i - 1] : f;
    return (gguf_part){part->path, part->bytes, part->n, part->n_head};
}

/* ---- what is in it ---- */

uint64_t gguf_file_bytes(const gguf_file *f)
{
    uint64_t n = f->n;
    for (uint64_t i = 0; i < f->n_others; i++) n += f->others[i]->n;
    return n;
}

uint64_t gguf_n_tensors(const gguf_file *f)
{
    return f->n_tensors;
}

const gguf_tensor *gguf_tensor_at(const gguf_file *f, uint64_t i)
{
    return i < f->n_tensors ? &f->tensors[i] : NULL;
}

const gguf_tensor *gguf_find_tensor(const gguf_file *f, const char *name)
{
    size_t slot =
        gguf_slot(f->tensor_table, f->tensor_slots, f->tensors, sizeof *f->tensors, base_str_of(name));
    return f->tensor_table[slot] ? &f->tensors[f->tensor_table[slot] - 1] : NULL;
}

uint64_t gguf_n_keys(const gguf_file *f)
{
    return f->n_keys;
}

base_str gguf_key_at(const gguf_file *f, uint64_t i, gguf_value_type *ret_type)
{
    if (i >= f->n_keys) return (base_str){NULL, 0};
    if (ret_type) *ret_type = f->keys[i].type;
    return f->keys[i].key;
}

static const gguf_entry *find_key(const gguf_file *f, const char *key)
{
    size_t slot = gguf_slot(f->key_table, f->key_slots, f->keys, sizeof *f->keys, base_str_of(key));
    return f->key_table[slot] ? &f->keys[f->key_table[slot] - 1] : NULL;
}

/* One scalar as a signed or unsigned 64-bit integer or a double; exactly one of the kinds is set. */
typedef struct number {
    enum { NOT_A_NUMBER, SIGNED, UNSIGNED, REAL } kind;
    int64_t i;
    uint64_t u;
    double d;
} number;

static number load_number(gguf_value_type type, const uint8_t *p)
{
    uint64_t raw = 0;
    float f;
    number x = {.kind = UNSIGNED};
    if ((size_t)type >= GGUF_N_VALUE_TYPES || !gguf_value_types[type].bytes || type == GGUF_BOOL)
        return (number){0};
    memcpy(&raw, p, gguf_value_types[type].bytes);
    switch (type) {
    case GGUF_I8: x.kind = SIGNED, x.i = (int8_t)raw; break;
    case GGUF_I16: x.kind = SIGNED, x.i = (int16_t)raw; break;
    case GGUF_I32: x.kind = SIGNED, x.i = (int32_t)raw; break;
    case GGUF_I64: x.kind = SIGNED, x.i = (int64_t)raw; break;
    case GGUF_F32: memcpy(&f, p, sizeof f), x.kind = REAL, x.d = f; break;
    case GGUF_F64: memcpy(&x.d, p, sizeof x.d), x.kind = REAL; break;
    default: x.u = raw;
    }
    return x;
}

bool gguf_get_u64(const gguf_file *f, const char *key, uint64_t *ret)
{
    const gguf_entry *e = find_key(f, key);
    number x = e ? load_number(e->type, e->value) : (number){0};
    if (x.kind != UNSIGNED && !(x.kind == SIGNED && x.i >= 0)) return false;
    *ret = x.kind == SIGNED ? (uint64_t)x.i : x.u;
    return true;
}

bool gguf_get_i64(const gguf_file *f, const char *key, int64_t *ret)
{
    const gguf_entry *e = find_key(f, key);
    number x = e ? load_number(e->type, e->value) : (number){0};
    if (x.kind != SIGNED && !(x.kind == UNSIGNED && x.u <= INT64_MAX)) return false;
    *ret = x.kind == SIGNED ? x.i : (int64_t)x.u;
    return true;
}

static bool number_as_double(number x, double *ret)
{
    if (x.kind == NOT_A_NUMBER) return false;
    *ret = x.kind == REAL ? x.d : x.kind == SIGNED ? (double)x.i : (double)x.u;
    return true;
}

bool gguf_get_f64(const gguf_file *f, const char *key, double *ret)
{
    const gguf_entry *e = find_key(f, key);
    return e && number_as_double(load_number(e->type, e->value), ret);
}

bool gguf_get_bool(const gguf_file *f, const char *key, bool *ret)
{
    const gguf_entry *e = find_key(f, key);
    if (!e || e->type != GGUF_BOOL) return false;
    *ret = e->value[0] != 0;
    return true;
}

bool gguf_get_str(const gguf_file *f, const char *key, base_str *ret)
{
    const gguf_entry *e = find_key(f, key);
    if (!e || e->type != GGUF_STRING) return false;
    *ret = (base_str){(const char *)e->value, e->n};
    return true;
}

bool gguf_get_array(const gguf_file *f, const char *key, gguf_value_type *ret_type, uint64_t *ret_n)
{
    const gguf_entry *e = find_key(f, key);
    if (!e || e->type != GGUF_ARRAY) return false;
    if (ret_type) *ret_type = e->element;
    if (ret_n) *ret_n = e->n;
    return true;
}

static base_str string_at(const gguf_entry *e, uint64_t i)
{
    uint64_t n;
    memcpy(&n, e->value + e->offsets[i], sizeof n);
    return (base_str){(const char *)e->value + e->offsets[i] + sizeof n, n};
}

bool gguf_array_str(const gguf_file *f, const char *key, uint64_t i, base_str *ret)
{
    const gguf_entry *e = find_key(f, key);
    if (!e || e->type != GGUF_ARRAY || e->element != GGUF_STRING || i >= e->n) return false;
    *ret = string_at(e, i);
    return true;
}

bool gguf_array_num(const gguf_file *f, const char *key, uint64_t i, double *ret)
{
    const gguf_entry *e = find_key(f, key);
    if (!e || e->type != GGUF_ARRAY || i >= e->n) return false;
    if (e->element == GGUF_BOOL) *ret = e->value[i] != 0;
    return e->element == GGUF_BOOL ||
           number_as_double(load_number(e->element, e->value + i * gguf_value_types[e->element].bytes), ret);
}

static void print_scalar(gguf_value_type type, const uint8_t *value, base_buf *out)
{
    number x = load_number(type, value);
    if (type == GGUF_BOOL) base_buf_puts(out, value[0] ? "true" : "false");
    if (x.kind == SIGNED) base_buf_printf(out, "%" PRId64, x.i);
    if (x.kind == UNSIGNED) base_buf_printf(out, "%" PRIu64, x.u);
    if (x.kind == REAL) base_buf_printf(out, "%g", x.d);
}

static void print_string(base_str s, size_t max, base_buf *out)
{
    base_buf_putc(out, '"');
    base_utf8_sanitise(out, s.ptr, s.len < max ? s.len : base_utf8_whole(s.ptr, max), false);
    base_buf_puts(out, s.len > max ? "\"..." : "\"");
}

void gguf_print_value(const gguf_file *f, uint64_t i, base_buf *out)
{
    enum { SHOWN = 4, SHOWN_BYTES = 100, SHOWN_ELEMENT_BYTES = 16 };
    if (i >= f->n_keys) return;
    const gguf_entry *e = &f->keys[i];
    if (e->type == GGUF_STRING) {
        print_string((base_str){(const char *)e->value, e->n}, SHOWN_BYTES, out);
        return;
    }
    if (e->type != GGUF_ARRAY) {
        print_scalar(e->type, e->value, out);
        return;
    }
    base_buf_printf(out, "%" PRIu64 " x %s [", e->n, gguf_value_types[e->element].name);
    for (uint64_t k = 0; k < e->n && k < SHOWN; k++) {
        if (k) base_buf_puts(out, ", ");
        if (e->element == GGUF_STRING)
            print_string(string_at(e, k), SHOWN_ELEMENT_BYTES, out);
        else
            print_scalar(e->element, e->value + k * gguf_value_types[e->element].bytes, out);
    }
    base_buf_puts(out, e->n > SHOWN ? ", ...]" : "]");
}
