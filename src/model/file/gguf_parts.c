/*
 * See gguf_parts.h. What can be wrong with a set of files is found before a tensor is read: a file that was
 * renamed, a part that is missing, two downloads mixed. A part of another model with the same number of parts
 * and tensors says nothing of it; its tensors' names then occur twice, or are missing.
 */
#include "model/file/gguf_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/file/gguf_values.h"

enum { TAIL = sizeof "-00001-of-00003.gguf" - 1, DIGITS = 5 };

/* Five digits; 0 when they are not. */
static uint32_t five_digits(const char *s)
{
    uint32_t n = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (s[i] < '0' || s[i] > '9') return 0;
        n = n * 10 + (uint32_t)(s[i] - '0');
    }
    return n;
}

bool gguf_part_name_read(const char *path, gguf_part_name *ret)
{
    const size_t n = strlen(path);
    if (n < TAIL) return false;
    const char *tail = path + n - TAIL, *of = tail + 1 + DIGITS;
    if (*tail != '-' || memcmp(of, "-of-", 4) != 0 || strcmp(of + 4 + DIGITS, ".gguf") != 0) return false;
    *ret = (gguf_part_name){n - TAIL, five_digits(tail + 1), five_digits(of + 4)};
    return ret->parts > 1 && ret->parts <= GGUF_MOST_PARTS && ret->part >= 1 && ret->part <= ret->parts;
}

void gguf_part_name_put(const char *path, gguf_part_name name, uint32_t part, base_buf *out)
{
    base_buf_add(out, path, name.stem);
    base_buf_printf(out, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", part, name.parts);
}

static uint64_t number_of(const gguf_file *f, const char *key, uint64_t otherwise)
{
    uint64_t n;
    return gguf_get_u64(f, key, &n) ? n : otherwise;
}

/* How many parts the file says there are; 1: it is no part. */
static uint64_t count_parts(const gguf_file *f)
{
    const uint64_t n = number_of(f, "split.count", 1);
    return n > 1 ? n : 1;
}

/* A part's path, or its number where it has none. */
static void name_part(const gguf_file *f, uint64_t part, base_buf *out)
{
    const char *path = gguf_part_at(f, 0).path;
    if (path)
        base_buf_puts(out, path);
    else
        base_buf_printf(out, "part %" PRIu64, part + 1);
}

static int other_model(const gguf_file *f, uint64_t part, const char *why, base_err *err)
{
    base_buf name = {0};
    name_part(f, part, &name);
    const int r =
        base_fail(err, BASE_E_FORMAT, "%.300s is not of the same model: %s; fetch it again", name.data, why);
    base_buf_free(&name);
    return r;
}

/* What a part says of itself against what the first says. */
static int check_part(const gguf_file *first, const gguf_file *f, uint64_t part, uint64_t n, base_err *err)
{
    base_str ours, theirs;
    char why[160];
    if (count_parts(f) != n) {
        snprintf(why, sizeof why, "it is one of %" PRIu64 " parts and not of %" PRIu64, count_parts(f), n);
        return other_model(f, part, why, err);
    }
    if (number_of(f, "split.no", 0) != part) {
        snprintf(why, sizeof why, "its name says part %" PRIu64 ", it says that it is part %" PRIu64,
            part + 1, number_of(f, "split.no", 0) + 1);
        return other_model(f, part, why, err);
    }
    if (number_of(f, "split.tensors.count", 0) != number_of(first, "split.tensors.count", 0))
        return other_model(f, part, "it counts other tensors", err);
    if (gguf_get_str(f, "general.architecture", &theirs) &&
        (!gguf_get_str(first, "general.architecture", &ours) || ours.len != theirs.len ||
            memcmp(ours.ptr, theirs.ptr, ours.len) != 0))
        return other_model(f, part, "it names another architecture", err);
    return 0;
}

/* Do these parts belong together, in this order? BASE_E_FORMAT says which does not. */
static int check_parts(const gguf_file *first, gguf_file *const *others, uint64_t n_others, base_err *err)
{
    const uint64_t promised = number_of(first, "split.tensors.count", UINT64_MAX);
    uint64_t found = gguf_n_tensors(first);
    int r = check_part(first, first, 0, 1 + n_others, err);
    for (uint64_t i = 0; i < n_others && r >= 0; i++) {
        r = check_part(first, others[i], i + 1, 1 + n_others, err);
        found += gguf_n_tensors(others[i]);
    }
    if (r >= 0 && promised != UINT64_MAX && promised != found)
        r = base_fail(err, BASE_E_FORMAT,
            "the %" PRIu64 " parts hold %" PRIu64 " tensors and should hold %" PRIu64
            ": a part of another model is among them; fetch them again",
            1 + n_others, found, promised);
    return r;
}

int gguf_parts_join(gguf_file *first, gguf_file **others, uint64_t n_others, base_err *err)
{
    const int r = check_parts(first, others, n_others, err);
    return r < 0 ? r : gguf_join(first, others, n_others, err);
}

/* What the file says it is and what it is called have to agree: by its name the others are found. */
static int check_name(const gguf_file *f, const char *path, gguf_part_name *ret, base_err *err)
{
    const uint64_t part = number_of(f, "split.no", 0) + 1, parts = count_parts(f);
    if (gguf_part_name_read(path, ret) && ret->part == part && ret->parts == parts) return 0;
    return base_fail(err, BASE_E_FORMAT,
        "%s is part %" PRIu64 " of %" PRIu64
        " of a model, and the others are found by its name, which has to "
        "end in -%05" PRIu64 "-of-%05" PRIu64 ".gguf: rename it so",
        path, part, parts, part, parts);
}

static int open_part(gguf_file **ret, const char *path, gguf_part_name name, uint32_t part, base_err *err)
{
    base_buf other = {0};
    gguf_part_name_put(path, name, part, &other);
    int r = gguf_open_one(ret, other.data, err);
    if (r == BASE_E_NOT_FOUND)
        r = base_fail(err, BASE_E_NOT_FOUND,
            "%s is missing: the model has %" PRIu32 " parts, and all have to lie in one folder", other.data,
            name.parts);
    base_buf_free(&other);
    return r;
}

/*
 * *f, opened from `path`, is one part: opens the others, and makes *f the first with all tensors. On failure
 * *f is some part, to be closed.
 */
static int open_others(gguf_file **f, const char *path, base_err *err)
{
    gguf_part_name name;
    int r = check_name(*f, path, &name, err);
    if (r < 0) return r;
    gguf_file **parts = base_xcalloc(name.parts, sizeof *parts), *first;
    parts[name.part - 1] = *f;
    for (uint32_t i = 0; i < name.parts && r >= 0; i++)
        if (!parts[i]) r = open_part(&parts[i], path, name, i + 1, err);
    first = parts[0];
    if (r >= 0) {
        memmove(parts, parts + 1, (name.parts - 1) * sizeof *parts);
        parts[name.parts - 1] = NULL;
        r = gguf_parts_join(first, parts, name.parts - 1, err);
        if (r >= 0) {
            *f = first;
            return 0;
        }
        if (first != *f) gguf_close(first);
    }
    for (uint32_t i = 0; i < name.parts; i++)
        if (parts[i] != *f) gguf_close(parts[i]);
    free(parts);
    return r;
}

int gguf_open(gguf_file **ret, const char *path, base_err *err)
{
    gguf_file *f = NULL;
    int r = gguf_open_one(&f, path, err);
    if (r >= 0 && count_parts(f) > 1) r = open_others(&f, path, err);
    if (r < 0) {
        gguf_close(f);
        return r;
    }
    *ret = f;
    return 0;
}
