#include "remote/msgpack.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"

typedef struct reader {
    const uint8_t *at, *end;
    base_buf *out;
    bool is_name; /* a member's name: in quotation marks whatever it is */
} reader;

/* What a first byte says: a kind, and the bytes of the length or number behind it (0: it is in the byte itself). */
typedef enum kind { NIL, NO, YES, UNSIGNED, SIGNED, REAL, TEXT, BYTES, LIST, MAP, EXTENSION, NONE } kind;

static const struct {
    kind kind;
    uint8_t n_bytes;
} rows[] = {/* 0xc0 .. 0xdf */
    {NIL, 0}, {NONE, 0}, {NO, 0}, {YES, 0}, {BYTES, 1}, {BYTES, 2}, {BYTES, 4}, {EXTENSION, 1},
    {EXTENSION, 2}, {EXTENSION, 4}, {REAL, 4}, {REAL, 8}, {UNSIGNED, 1}, {UNSIGNED, 2}, {UNSIGNED, 4},
    {UNSIGNED, 8}, {SIGNED, 1}, {SIGNED, 2}, {SIGNED, 4}, {SIGNED, 8}, {EXTENSION, 0}, {EXTENSION, 0},
    {EXTENSION, 0}, {EXTENSION, 0}, {EXTENSION, 0}, {TEXT, 1}, {TEXT, 2}, {TEXT, 4}, {LIST, 2}, {LIST, 4},
    {MAP, 2}, {MAP, 4}};

static int cut_short(base_err *err)
{
    return base_fail(err, BASE_E_FORMAT, "a message ends in the middle of a value");
}

static int take_number(reader *r, uint8_t n, uint64_t *ret, base_err *err)
{
    if ((size_t)(r->end - r->at) < n) return cut_short(err);
    for (*ret = 0; n--;) *ret = *ret << 8 | *r->at++;
    return 0;
}

static void put_real(base_buf *out, uint64_t bits, uint8_t n)
{
    double x;
    float single;
    const uint32_t low = (uint32_t)bits;
    memcpy(&x, &bits, sizeof x);
    memcpy(&single, &low, sizeof single);
    if (n == 4) x = (double)single;
    if (isfinite(x))
        base_json_put_num(out, x);
    else
        base_buf_puts(out, "null");
}

static int64_t widened(uint64_t bits, uint8_t n)
{
    const unsigned shift = 64 - 8u * n;
    return (int64_t)(bits << shift) >> shift;
}

static void put_hex(base_buf *out, const uint8_t *bytes, size_t n)
{
    base_buf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        char hex[3];
        base_hex(bytes + i, 1, hex);
        base_buf_puts(out, hex);
    }
    base_buf_putc(out, '"');
}

static int put_value(reader *r, unsigned depth, base_err *err);

static int put_children(reader *r, kind k, uint64_t n, unsigned depth, base_err *err)
{
    int rc = 0;
    if (r->is_name) return base_fail(err, BASE_E_FORMAT, "a message's member has a list as its name");
    if (depth == REMOTE_MSGPACK_DEPTH)
        return base_fail(err, BASE_E_LIMIT, "a message has more than %d levels", REMOTE_MSGPACK_DEPTH);
    base_buf_putc(r->out, k == LIST ? '[' : '{');
    for (uint64_t i = 0; i < n && !rc; i++) { /* each takes a byte at least, so the message bounds them */
        if (i) base_buf_putc(r->out, ',');
        if (k == MAP) {
            r->is_name = true;
            rc = put_value(r, depth + 1, err);
            r->is_name = false;
            base_buf_putc(r->out, ':');
        }
        if (!rc) rc = put_value(r, depth + 1, err);
    }
    base_buf_putc(r->out, k == LIST ? ']' : '}');
    return rc;
}

/* A text, bytes or an extension of n bytes. */
static int put_run(reader *r, kind k, uint64_t n, base_err *err)
{
    if (k == EXTENSION) n++; /* its type */
    if ((uint64_t)(r->end - r->at) < n) return cut_short(err);
    if (k == TEXT)
        base_json_put_str(r->out, (const char *)r->at, (size_t)n);
    else if (k == BYTES)
        put_hex(r->out, r->at, (size_t)n);
    else
        base_buf_puts(r->out, r->is_name ? "\"\"" : "null");
    r->at += n;
    return 0;
}

static int put_scalar(reader *r, kind k, uint64_t bits, uint8_t n_bytes, base_err *err)
{
    static const char *const words[] = {[NIL] = "null", [NO] = "false", [YES] = "true"};
    const bool is_quoted = r->is_name || (k == UNSIGNED && bits > INT64_MAX);
    if (k == NONE) return base_fail(err, BASE_E_FORMAT, "a message has a byte that begins no value");
    if (is_quoted) base_buf_putc(r->out, '"');
    if (k == UNSIGNED)
        base_buf_printf(r->out, "%" PRIu64, bits);
    else if (k == SIGNED)
        base_buf_printf(r->out, "%" PRId64, widened(bits, n_bytes));
    else if (k == REAL)
        put_real(r->out, bits, n_bytes);
    else
        base_buf_puts(r->out, words[k]);
    if (is_quoted) base_buf_putc(r->out, '"');
    return 0;
}

static int put_value(reader *r, unsigned depth, base_err *err)
{
    if (r->at == r->end) return cut_short(err);
    const uint8_t first = *r->at++;
    kind k = UNSIGNED;
    uint8_t n_bytes = 0;
    uint64_t n = first;
    int rc = 0;
    if (first >= 0xe0) {
        k = SIGNED, n_bytes = 1;
    } else if (first >= 0xc0) {
        k = rows[first - 0xc0].kind, n_bytes = rows[first - 0xc0].n_bytes;
        n = k == EXTENSION && !n_bytes ? 1u << (first - 0xd4) : 0;
        if (n_bytes) rc = take_number(r, n_bytes, &n, err);
    } else if (first >= 0xa0) {
        k = TEXT, n = first & 0x1f;
    } else if (first >= 0x90) {
        k = LIST, n = first & 0x0f;
    } else if (first >= 0x80) {
        k = MAP, n = first & 0x0f;
    }
    if (rc) return rc;
    if (k == LIST || k == MAP) return put_children(r, k, n, depth, err);
    if (k == TEXT || k == BYTES || k == EXTENSION) return put_run(r, k, n, err);
    return put_scalar(r, k, n, n_bytes, err);
}

int remote_msgpack_put_json(const uint8_t *bytes, size_t n, base_buf *out, base_err *err)
{
    const size_t before = out->len;
    reader r = {.at = bytes, .end = bytes + n, .out = out};
    int rc = put_value(&r, 0, err);
    if (!rc && r.at != r.end) rc = base_fail(err, BASE_E_FORMAT, "a message goes on behind its value");
    if (rc && out->data) {
        out->len = before;
        out->data[before] = '\0';
    }
    return rc;
}
