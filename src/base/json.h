/*
 * JSON (RFC 8259): a reader that makes a small tree in one block of memory, and a writer that appends to a
 * buffer.
 *
 * Own code because the engine must build with nothing but a compiler; depth is bounded, numbers are doubles
 * plus an exact int64 where they fit. Strings are NUL-terminated copies with their length (a \u0000 inside
 * keeps its place).
 */
#ifndef KVIST_BASE_JSON_H
#define KVIST_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef enum base_json_type {
    BASE_JSON_NULL,
    BASE_JSON_BOOL,
    BASE_JSON_NUMBER,
    BASE_JSON_STRING,
    BASE_JSON_ARRAY,
    BASE_JSON_OBJECT,
} base_json_type;

typedef struct base_json {
    base_json_type type;
    bool boolean;
    bool is_integer; /* the number is exactly `integer` */
    int64_t integer;
    double number;
    const char *string; /* STRING */
    size_t string_len;
    const char *key;         /* in an object: the member's name */
    struct base_json *first; /* ARRAY, OBJECT: children in order */
    struct base_json *next;  /* the next sibling */
    size_t n;                /* children */
    size_t from, to;         /* bytes of the source text that this value took */
} base_json;

typedef struct base_json_doc base_json_doc;

/* Of a text that is read: a value takes up to 44 times the bytes of its text, and these about 90 MiB. */
enum { BASE_JSON_MAX_VALUES = 1 << 20 };

/*
 * Parses one value (trailing white space allowed, trailing bytes are an error), which holds at most BASE_JSON_MAX_VALUES
 * others. Free the document, not the values.
 */
int base_json_parse(const char *text, size_t n, base_json_doc **ret, base_err *err);
int base_json_parse_most(const char *text, size_t n, size_t most, base_json_doc **ret, base_err *err);

/* The same, but stops behind the first value and says how many bytes it took. */
int base_json_parse_prefix(const char *text, size_t n, size_t *ret_used, base_json_doc **ret, base_err *err);

const base_json *base_json_root(const base_json_doc *doc);
void base_json_free(base_json_doc *doc);
size_t base_json_bytes(const base_json_doc *doc); /* of memory that it takes */

/* NULL-safe look-ups; a missing member or another type gives the default. The first of equal keys counts. */
const base_json *base_json_get(const base_json *object, const char *key);
const base_json *base_json_at(const base_json *array, size_t i);
const char *base_json_str(const base_json *object, const char *key, const char *otherwise);
int64_t base_json_int(const base_json *object, const char *key, int64_t otherwise);
double base_json_num(const base_json *object, const char *key, double otherwise);
bool base_json_bool(const base_json *object, const char *key, bool otherwise);

/*
 * Writing: a quoted, escaped string (invalid UTF-8 becomes U+FFFD; controls, bidirectional ones, line
 * separators and what is not seen are \uXXXX, so that the line may go to a terminal); a number (shortest
 * form that reads back the same).
 */
void base_json_put_str(base_buf *out, const char *s, size_t n);
/*
 * JSON text that somebody else wrote, on one line; what base_json_put_str would escape in its strings is
 * escaped.
 */
void base_json_put_text(base_buf *out, const char *json);
void base_json_put_num(base_buf *out, double x);
void base_json_put(base_buf *out, const base_json *value); /* a whole value, compact */
/* "key":"value" behind what out holds, with a comma where one is needed; NULL value: nothing. */
void base_json_put_member_str(base_buf *out, const char *key, const char *value);
/* The same of a value that is JSON already. */
void base_json_put_member(base_buf *out, const char *key, const char *json);

/* ---- JSON as a model writes it (json_repair.c) ---- */

/*
 * One lenient JSON value at the start of text as strict JSON; returns the bytes it took, 0: no value.
 * *complete: it was closed.
 */
size_t base_json_repair(const char *text, size_t n, base_buf *out, bool *complete);
/* The same, parsed: text ("" at least) that may end early. NULL: no JSON. base_json_free. */
base_json_doc *base_json_parse_begun(const char *text, bool *complete);

#endif
