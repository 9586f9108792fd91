/*
 * Reads a GGUF file: header, metadata and tensor table, in one pass over bytes that may say anything.
 *
 * The idea is one cursor that knows how many bytes are left. Whatever a count promises must fit into those
 * before memory is taken for it, and every value that is kept is a view into the mapping. Meaning (which key
 * must have which type, which numbers belong together) is checked in gguf_check.c; shapes against an
 * architecture are the model's business.
 *
 * A model in parts is so many files like that, each parsed by itself; gguf_parts.c finds them and looks
 * whether they belong together, and the first takes the tensors of the others.
 *
 * A file is mapped when it lies on a local disk, with a guard against its being cut (base/map.h), else read.
 * Immutable after open; any thread may read.
 */
#include "model/file/gguf_values.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "model/file/gguf_check.h"

enum {
    MAX_KEY_BYTES = 65535,
    MAX_NAME_BYTES = 63,
    MIN_KEY_ENTRY = 8 + 1 + 4 + 1,            /* length, one letter, type, one byte of value */
    MIN_TENSOR_ENTRY = 8 + 1 + 4 + 8 + 4 + 8, /* length, one letter, n_dims, one dimension, type, offset */
};

/* ---- formats ---- */

/* clang-format off */
static const struct {
    gguf_tensor_type type;
    const char *name;
    uint32_t elements, bytes;
} tensor_types[] = {
    {GGUF_TENSOR_F32,  "F32",    1,   4}, {GGUF_TENSOR_F16,  "F16",    1,   2}, {GGUF_TENSOR_BF16, "BF16",   1,   2},
    {GGUF_TENSOR_Q4_0, "Q4_0",  32,  18}, {GGUF_TENSOR_Q4_1, "Q4_1",  32,  20}, {GGUF_TENSOR_Q5_0, "Q5_0",  32,  22},
    {GGUF_TENSOR_Q5_1, "Q5_1",  32,  24}, {GGUF_TENSOR_Q8_0, "Q8_0",  32,  34}, {GGUF_TENSOR_Q4_K, "Q4_K", 256, 144},
    {GGUF_TENSOR_Q5_K, "Q5_K", 256, 176}, {GGUF_TENSOR_Q6_K, "Q6_K", 256, 210}, {GGUF_TENSOR_Q3_K, "Q3_K", 256, 110},
    {GGUF_TENSOR_IQ4_NL, "IQ4_NL", 32, 18}, {GGUF_TENSOR_IQ4_XS, "IQ4_XS", 256, 136},
    {GGUF_TENSOR_MXFP4, "MXFP4", 32, 17}, {GGUF_TENSOR_Q2_K, "Q2_K", 256, 84},
    {GGUF_TENSOR_IQ3_S, "IQ3_S", 256, 110}, {GGUF_TENSOR_IQ3_XXS, "IQ3_XXS", 256, 98},
    {GGUF_TENSOR_IQ2_S, "IQ2_S", 256, 82}, {GGUF_TENSOR_IQ2_XS, "IQ2_XS", 256, 74}, {GGUF_TENSOR_IQ2_XXS, "IQ2_XXS", 256, 66},
    {GGUF_TENSOR_IQ1_M, "IQ1_M", 256, 56}, {GGUF_TENSOR_IQ1_S, "IQ1_S", 256, 50},
};

/* Formats that occur and are refused, by the file's numbers. */
static const struct {
    uint32_t type;
    const char *name;
} refused_types[] = {
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {40, "NVFP4"},
};

/* clang-format on */

#define N_OF(a) (sizeof(a) / sizeof(a)[0])

bool gguf_tensor_block(gguf_tensor_type type, uint32_t *ret_elements, uint32_t *ret_bytes)
{
    for (size_t i = 0; i < N_OF(tensor_types); i++) {
        if (tensor_types[i].type != type) continue;
        *ret_elements = tensor_types[i].elements;
        *ret_bytes = tensor_types[i].bytes;
        return true;
    }
    return false;
}

const char *gguf_tensor_type_at(size_t i)
{
    return i < N_OF(tensor_types) ? tensor_types[i].name : NULL;
}

const char *gguf_tensor_type_name(gguf_tensor_type type)
{
    for (size_t i = 0; i < N_OF(tensor_types); i++)
        if (tensor_types[i].type == type) return tensor_types[i].name;
    return "unknown";
}

/* ---- the cursor ---- */

typedef struct cursor {
    const uint8_t *bytes;
    size_t n, at;
    base_err *err;
    const char *what; /* what is being read, for the message */
    uint64_t which;
} cursor;

static int fail_at(const cursor *c, const char *reason)
{
    return base_fail(
        c->err, BASE_E_FORMAT, "GGUF: %s %" PRIu64 " at byte %zu: %s", c->what, c->which, c->at, reason);
}

static size_t left(const cursor *c)
{
    return c->n - c->at;
}

/* Little-endian numbers of the file; the machines we run on are little-endian too. */
static int take(cursor *c, void *out, size_t n)
{
    if (n > left(c)) return fail_at(c, "the file ends early");
    memcpy(out, c->bytes + c->at, n);
    c->at += n;
    return 0;
}

static int take_str(cursor *c, size_t max, base_str *out)
{
    uint64_t n = 0;
    int r = take(c, &n, sizeof n);
    if (r < 0) return r;
    if (n > left(c)) return fail_at(c, "a string is longer than the rest of the file");
    if (n > max) return fail_at(c, "a name is too long");
    *out = (base_str){(const char *)c->bytes + c->at, n};
    c->at += n;
    return 0;
}

/* ---- name tables ---- */

static int table_new(uint32_t **table, size_t *slots, uint64_t n, base_err *err)
{
    *slots = 16;
    while (*slots < n * 2) *slots *= 2;
    *table = calloc(*slots, sizeof **table);
    return *table ? 0 : base_fail(err, BASE_E_NOMEM, "GGUF: no memory for a table of %" PRIu64 " names", n);
}

/* ---- metadata ---- */

static bool finite_number(gguf_value_type type, const uint8_t *p)
{
    float f;
    double d;
    if (type == GGUF_F32) return memcpy(&f, p, sizeof f), isfinite(f);
    if (type == GGUF_F64) return memcpy(&d, p, sizeof d), isfinite(d);
    return true;
}

static int parse_array(cursor *c, gguf_entry *e)
{
    uint32_t element = 0;
    int r = take(c, &element, sizeof element);
    if (r >= 0) r = take(c, &e->n, sizeof e->n);
    if (r < 0) return r;
    if (element >= GGUF_N_VALUE_TYPES) return fail_at(c, "unknown type of array elements");
    if (element == GGUF_ARRAY) return fail_at(c, "an array inside an array");
    e->element = (gguf_value_type)element;
    size_t size = gguf_value_types[element].bytes;
    if (e->n > left(c) / (size ? size : 8)) return fail_at(c, "an array is longer than the rest of the file");
    e->value = c->bytes + c->at;
    if (size) {
        if (element == GGUF_F32 || element == GGUF_F64)
            for (uint64_t i = 0; i < e->n; i++)
                if (!finite_number(e->element, e->value + i * size))
                    return fail_at(c, "a number that is not finite");
        c->at += e->n * size;
        return 0;
    }
    e->offsets = malloc(
        (e->n ? e->n : 1) * sizeof *e->offsets); /* at most the file's size: 8 bytes for each length field */
    if (!e->offsets) return base_fail(c->err, BASE_E_NOMEM, "GGUF: no memory for %" PRIu64 " strings", e->n);
    for (uint64_t i = 0; i < e->n; i++) {
        base_str s;
        e->offsets[i] = (uint64_t)(c->bytes + c->at - e->value);
        if ((r = take_str(c, SIZE_MAX, &s)) < 0) return r;
    }
    return 0;
}

static int parse_key(cursor *c, gguf_entry *e)
{
    uint32_t type = 0;
    base_str s = {0};
    int r = take_str(c, MAX_KEY_BYTES, &e->key);
    if (r >= 0) r = take(c, &type, sizeof type);
    if (r < 0) return r;
    if (e->key.len == 0) return fail_at(c, "a key without a name");
    if (type >= GGUF_N_VALUE_TYPES) return fail_at(c, "unknown value type");
    e->type = (gguf_value_type)type;
    if (type == GGUF_ARRAY) return parse_array(c, e);
    if (type == GGUF_STRING) {
        if ((r = take_str(c, SIZE_MAX, &s)) < 0) return r;
        e->value = (const uint8_t *)s.ptr;
        e->n = s.len;
        return 0;
    }
    if (gguf_value_types[type].bytes > left(c)) return fail_at(c, "the file ends early");
    e->value = c->bytes + c->at;
    c->at += gguf_value_types[type].bytes;
    return finite_number(e->type, e->value) ? 0 : fail_at(c, "a number that is not finite");
}

static int parse_keys(gguf_file *f, cursor *c)
{
    c->what = "metadata key";
    if (f->n_keys > left(c) / MIN_KEY_ENTRY || f->n_keys > UINT32_MAX - 1)
        return base_fail(c->err, BASE_E_FORMAT, "GGUF: %" PRIu64 " metadata keys do not fit into %zu bytes",
            f->n_keys, left(c));
    int r = table_new(&f->key_table, &f->key_slots, f->n_keys, c->err);
    if (r < 0) return r;
    f->keys = calloc(f->n_keys ? f->n_keys : 1, sizeof *f->keys);
    if (!f->keys)
        return base_fail(c->err, BASE_E_NOMEM, "GGUF: no memory for %" PRIu64 " metadata keys", f->n_keys);
    for (uint64_t i = 0; i < f->n_keys; i++) {
        gguf_entry *e = &f->keys[i];
        c->which = i;
        if ((r = parse_key(c, e)) < 0) return r;
        size_t slot = gguf_slot(f->key_table, f->key_slots, f->keys, sizeof *e, e->key);
        if (f->key_table[slot]) return fail_at(c, "the same key twice");
        f->key_table[slot] = (uint32_t)i + 1;
    }
    return 0;
}

static int refuse_type(const cursor *c, const gguf_tensor *t, uint32_t type)
{
    char name[24], known[160] = "";
    snprintf(name, sizeof name, "number %" PRIu32, type);
    for (size_t i = 0; i < N_OF(refused_types); i++)
        if (refused_types[i].type == type) snprintf(name, sizeof name, "%s", refused_types[i].name);
    for (size_t i = 0; i < N_OF(tensor_types); i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", tensor_types[i].name);
    }
    return base_fail(c->err, BASE_E_UNSUPPORTED,
        "GGUF: tensor %.*s has the format %s, which kvist does not know; it reads %s", (int)t->name.len,
        t->name.ptr, name, known);
}

/* ---- tensors ---- */

static int parse_tensor(cursor *c, gguf_tensor *t, uint64_t *offset)
{
    uint32_t type = 0;
    int r = take_str(c, MAX_NAME_BYTES, &t->name);
    if (r >= 0) r = take(c, &t->n_dims, sizeof t->n_dims);
    if (r < 0) return r;
    if (t->name.len == 0) return fail_at(c, "a tensor without a name");
    if (t->n_dims < 1 || t->n_dims > 4) return fail_at(c, "the number of dimensions is not 1 to 4");
    for (uint32_t d = 0; d < 4; d++) t->ne[d] = 1;
    for (uint32_t d = 0; d < t->n_dims; d++)
        if ((r = take(c, &t->ne[d], sizeof t->ne[d])) < 0) return r;
    if ((r = take(c, &type, sizeof type)) < 0 || (r = take(c, offset, sizeof *offset)) < 0) return r;

    uint32_t elements, bytes;
    t->type = (gguf_tensor_type)type;
    if (!gguf_tensor_block(t->type, &elements, &bytes)) return refuse_type(c, t, type);
    uint64_t n_elements = 1, rows = 1;
    for (uint32_t d = 0; d < 4; d++) {
        if (t->ne[d] < 1 || t->ne[d] > INT64_MAX) return fail_at(c, "a dimension is not positive");
        if (__builtin_mul_overflow(n_elements, t->ne[d], &n_elements))
            return fail_at(c, "the element count overflows");
        if (d > 0) rows *= t->ne[d]; /* at most n_elements */
    }
    if (t->ne[0] % elements) return fail_at(c, "a row is not a whole number of blocks");
    if (__builtin_mul_overflow(t->ne[0] / elements, (uint64_t)bytes, &t->n_bytes) ||
        __builtin_mul_overflow(t->n_bytes, rows, &t->n_bytes)) {
        return fail_at(c, "the size in bytes overflows");
    }
    return 0;
}

static bool round_up(uint64_t x, uint64_t alignment, uint64_t *ret)
{
    if (__builtin_add_overflow(x, alignment - 1, ret)) return false;
    *ret &= ~(alignment - 1);
    return true;
}

/* Offsets are the running sum of padded sizes, as in the reference reader: tensors cannot overlap. */
static int parse_tensors(gguf_file *f, cursor *c)
{
    c->what = "tensor";
    if (f->n_tensors > left(c) / MIN_TENSOR_ENTRY || f->n_tensors > UINT32_MAX - 1)
        return base_fail(c->err, BASE_E_FORMAT, "GGUF: %" PRIu64 " tensors do not fit into %zu bytes",
            f->n_tensors, left(c));
    int r = table_new(&f->tensor_table, &f->tensor_slots, f->n_tensors, c->err);
    if (r < 0) return r;
    f->tensors = calloc(f->n_tensors ? f->n_tensors : 1, sizeof *f->tensors);
    if (!f->tensors)
        return base_fail(c->err, BASE_E_NOMEM, "GGUF: no memory for %" PRIu64 " tensors", f->n_tensors);
    uint64_t expected = 0;
    for (uint64_t i = 0; i < f->n_tensors; i++) {
        gguf_tensor *t = &f->tensors[i];
        uint64_t offset = 0;
        c->which = i;
        if ((r = parse_tensor(c, t, &offset)) < 0) return r;
        size_t slot = gguf_slot(f->tensor_table, f->tensor_slots, f->tensors, sizeof *t, t->name);
        if (f->tensor_table[slot]) return fail_at(c, "the same tensor name twice");
        f->tensor_table[slot] = (uint32_t)i + 1;
        if (offset != expected) return fail_at(c, "the offset is not behind the tensor before");
        if (__builtin_add_overflow(expected, t->n_bytes, &expected) ||
            !round_up(expected, f->alignment, &expected))
            return fail_at(c, "the sum of the sizes overflows");
    }
    uint64_t start;
    if (!round_up(c->at, f->alignment, &start))
        return fail_at(c, "the data section lies outside of the file");
    for (uint64_t i = 0, offset = 0; i < f->n_tensors; i++) {
        gguf_tensor *t = &f->tensors[i];
        c->which = i;
        if (start > f->n || offset > f->n - start || t->n_bytes > f->n - start - offset) {
            return base_fail(c->err, BASE_E_FORMAT,
                "GGUF: tensor %.*s ends behind the file's last "
                "byte; the file is cut short or its sizes are wrong",
                (int)t->name.len, t->name.ptr);
        }
        t->data = f->bytes + start + offset;
        round_up(offset + t->n_bytes, f->alignment, &offset);
    }
    f->n_head = start < f->n ? (size_t)start : f->n;
    return 0;
}

static int parse_alignment(gguf_file *f, base_err *err)
{
    gguf_value_type type;
    f->alignment = 32;
    for (uint64_t i = 0; i < f->n_keys; i++) {
        if (!base_str_equal(gguf_key_at(f, i, &type), "general.alignment")) continue;
        if (type != GGUF_U32 || !gguf_get_u64(f, "general.alignment", &f->alignment))
            return base_fail(err, BASE_E_FORMAT, "GGUF: general.alignment is not a u32");
    }
    if (f->alignment < 8 || f->alignment > 65536 || (f->alignment & (f->alignment - 1)))
        return base_fail(err, BASE_E_FORMAT,
            "GGUF: an alignment of %" PRIu64 " bytes is not a power of two from 8 to 65536", f->alignment);
    return 0;
}

static int parse(gguf_file *f, base_err *err)
{
    cursor c = {.bytes = f->bytes, .n = f->n, .err = err, .what = "header"};
    char magic[4];
    int r;
    if (f->n < sizeof magic || memcmp(f->bytes, "GGUF", 4) != 0)
        return base_fail(err, BASE_E_FORMAT, "not a GGUF file (the first four bytes are not \"GGUF\")");
    if ((r = take(&c, magic, 4)) < 0 || (r = take(&c, &f->version, sizeof f->version)) < 0) return r;
    if ((f->version & 0xFFFF) == 0)
        return base_fail(
            err, BASE_E_UNSUPPORTED, "GGUF: the file is big-endian; convert it for this machine");
    if (f->version < 2 || f->version > 3)
        return base_fail(err, BASE_E_UNSUPPORTED, "GGUF: version %" PRIu32 " is not 2 or 3", f->version);
    if ((r = take(&c, &f->n_tensors, sizeof f->n_tensors)) < 0 ||
        (r = take(&c, &f->n_keys, sizeof f->n_keys)) < 0)
        return r;
    if ((r = parse_keys(f, &c)) < 0) return r;
    if ((r = parse_alignment(f, err)) < 0) return r;
    if ((r = parse_tensors(f, &c)) < 0) return r;
    return gguf_check_metadata(f, err);
}

/* ---- open and close ---- */

int gguf_parse(gguf_file **ret, const void *bytes, size_t n, base_err *err)
{
    gguf_file *f = base_xcalloc(1, sizeof *f);
    f->bytes = bytes;
    f->n = n;
    int r = parse(f, err);
    if (r < 0) {
        gguf_close(f);
        return r;
    }
    *ret = f;
    return 0;
}

/* File systems whose files may shrink or vanish under a mapping: NFS, SMB, CIFS, FUSE, 9P. */
static bool is_remote(int fd)
{
    static const uint32_t magics[] = {0x6969, 0x517B, 0xFE534D42, 0xFF534D42, 0x65735546, 0x01021997};
    struct statfs s;
    if (fstatfs(fd, &s) != 0) return false;
    for (size_t i = 0; i < N_OF(magics); i++)
        if ((uint32_t)s.f_type == magics[i]) return true;
    return false;
}

static int read_all(int fd, uint8_t *to, size_t n, const char *path, base_err *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, to + at, n - at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return base_fail_sys(err, "%s cannot be read", path);
        if (got == 0) return base_fail(err, BASE_E_FORMAT, "%s became shorter while it was read", path);
        at += (size_t)got;
    }
    return 0;
}

static int load_bytes(gguf_file *f, int fd, const char *path, base_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return base_fail_sys(err, "%s cannot be examined", path);
    if (!S_ISREG(st.st_mode)) return base_fail(err, BASE_E_FORMAT, "%s is not a regular file", path);
    if (st.st_size < 4)
        return base_fail(
            err, BASE_E_FORMAT, "%s is not a GGUF file (%lld bytes)", path, (long long)st.st_size);
    f->n = (size_t)st.st_size;
    if (is_remote(fd)) {
        uint8_t *bytes = malloc(f->n);
        if (!bytes) return base_fail(err, BASE_E_NOMEM, "no memory for the %zu bytes of %s", f->n, path);
        f->bytes = bytes;
        f->owned = true;
        return read_all(fd, bytes, f->n, path, err);
    }
    int rc = base_map_new(&f->map, fd, f->n, err);
    if (rc) return base_err_prefix(err, "%s", path);
    f->bytes = base_map_bytes(f->map);
    return 0;
}

int gguf_check_unchanged(const gguf_file *f, const char *path, base_err *err)
{
    int r = f->map ? base_map_check(f->map, f->path ? f->path : path, err) : 0;
    for (uint64_t i = 0; i < f->n_others && r >= 0; i++) r = gguf_check_unchanged(f->others[i], path, err);
    return r;
}

int gguf_open_one(gguf_file **ret, const char *path, base_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would be waited for */
    if (fd < 0 && errno == ENOENT) return base_fail(err, BASE_E_NOT_FOUND, "%s does not exist", path);
    if (fd < 0) return base_fail_sys(err, "%s cannot be opened", path);
    gguf_file *f = base_xcalloc(1, sizeof *f);
    f->path = base_xstrdup(path);
    int r = load_bytes(f, fd, path, err);
    close(fd);
    if (r >= 0 && (r = parse(f, err)) < 0) base_err_prefix(err, "%s", path);
    if (f->map && base_map_check(f->map, path, NULL) != 0) r = base_map_check(f->map, path, err);
    if (r < 0) {
        gguf_close(f);
        return r;
    }
    *ret = f;
    return 0;
}

void gguf_close(gguf_file *f)
{
    if (!f) return;
    for (uint64_t i = 0; f->keys && i < f->n_keys; i++) free(f->keys[i].offsets);
    free(f->keys);
    free(f->tensors);
    free(f->key_table);
    free(f->tensor_table);
    base_map_free(f->map);
    if (f->owned) free((void *)(uintptr_t)f->bytes);
    free(f->path);
    for (uint64_t i = 0; i < f->n_others; i++) gguf_close(f->others[i]);
    free(f->others);
    free(f);
}

/* ---- a model in parts ---- */

static int tensor_twice(const gguf_tensor *t, base_err *err)
{
    return base_fail(err, BASE_E_FORMAT,
        "two parts hold a tensor %.*s: a part of another model is among them; fetch them again",
        (int)t->name.len, t->name.ptr);
}

/* The tensors of all parts become the first's, in order. */
static int take_tensors(gguf_file *first, gguf_file **others, uint64_t n_others, base_err *err)
{
    uint64_t n = first->n_tensors;
    for (uint64_t i = 0; i < n_others; i++) n += others[i]->n_tensors;
    gguf_tensor *all = calloc(n ? n : 1, sizeof *all), *to = all;
    uint32_t *table = NULL;
    size_t slots;
    if (!all) return base_fail(err, BASE_E_NOMEM, "GGUF: no memory for %" PRIu64 " tensors", n);
    int r = table_new(&table, &slots, n, err);
    for (uint64_t i = 0; i <= n_others && r >= 0; i++) {
        const gguf_file *part = i ? others[i - 1] : first;
        for (uint64_t k = 0; k < part->n_tensors && r >= 0; k++, to++) {
            *to = part->tensors[k];
            size_t slot = gguf_slot(table, slots, all, sizeof *all, to->name);
            if (table[slot]) r = tensor_twice(to, err);
            table[slot] = (uint32_t)(to - all) + 1;
        }
    }
    if (r < 0) {
        free(all);
        free(table);
        return r;
    }
    free(first->tensors);
    free(first->tensor_table);
    first->tensors = all;
    first->n_tensors = n;
    first->tensor_table = table;
    first->tensor_slots = slots;
    return 0;
}

int gguf_join(gguf_file *first, gguf_file **others, uint64_t n_others, base_err *err)
{
    int r = take_tensors(first, others, n_others, err);
    if (r < 0) return r;
    first->others = others;
    first->n_others = n_others;
    return 0;
}
