#include "remote/vocab_compare.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { SAMPLE = 512 /* pieces of the local vocabulary */, SHOWN_IDS = 6 };

static const char probe[] =
    "The quick brown fox, it's 1234567 or 3.14159e-10;\n\n\n\tint  main(void)\n{\n    return a[i]->b != "
    "0x7fff;  "
    "\n}\r\n# \xc3\xbc"
    "ber gr\xc3\xb6\xc3\x9f"
    "er na\xc3\xafve \xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 "
    "\xe4\xba\x8c\xe5\x80\x8d \xe3\x81\x93\xe3\x82\x93 \xd7\xa9\xd7\x9c \xe0\xa4\xa8\xe0\xa4\xae "
    "\xf0\x9f\x98\x80 "
    "e\xcc\x81 don't WON'T camelCase snake_case __init__ <div class=\"x\"> ==> ... ----------------";

static void put_list(const int32_t *ids, size_t n, base_buf *out)
{
    base_buf_putc(out, '[');
    for (size_t i = 0; i < n && i < SHOWN_IDS; i++) base_buf_printf(out, i ? ", %d" : "%d", ids[i]);
    base_buf_puts(out, n > SHOWN_IDS ? ", ...]" : "]");
}

static void put_quoted(const char *bytes, size_t n, base_buf *out)
{
    enum { MOST = 40 };
    base_buf_putc(out, '"');
    base_utf8_sanitise(out, bytes, n < MOST ? n : MOST, false);
    base_buf_puts(out, n > MOST ? "...\"" : "\"");
}

/* Whole letters, so that the endpoint can be sent it. */
static bool is_text(const char *bytes, size_t n)
{
    for (size_t at = 0, used; at < n; at += used) {
        uint32_t cp;
        used = base_utf8_decode(bytes + at, n - at, &cp);
        if (!used || cp == 0xfffd) return false;
    }
    return n > 0;
}

/* Pieces from all over the vocabulary, a line each. */
static void put_sample(const model_tokenizer *local, base_buf *out)
{
    const uint32_t size = model_tokenizer_size(local), step = size / SAMPLE + 1;
    for (uint32_t id = 0; id < size; id += step) {
        size_t n;
        const char *piece = model_tokenizer_piece(local, (int32_t)id, &n);
        if (!piece || model_tokenizer_is_control(local, (int32_t)id) || !is_text(piece, n)) continue;
        base_buf_add(out, piece, n);
        base_buf_putc(out, '\n');
    }
}

/* The bytes in front of id number `at`, as the local vocabulary has them. */
static size_t bytes_before(const model_tokenizer *local, const model_ids *ids, size_t at)
{
    size_t bytes = 0;
    for (size_t i = 0; i < at; i++) {
        size_t n;
        if (model_tokenizer_piece(local, ids->ids[i], &n)) bytes += n;
    }
    return bytes;
}

static int compare_text(remote_vocab *v, const model_tokenizer *local, const char *text, size_t n,
    remote_vocab_likeness *ret, base_err *err)
{
    model_ids here = {0}, there = {0};
    model_tokenizer_encode(local, text, n, false, &here);
    int rc = remote_vocab_encode(v, text, n, false, &there, err);
    size_t at = 0;
    while (!rc && at < here.n && at < there.n && here.ids[at] == there.ids[at]) at++;
    if (!rc && (at < here.n || at < there.n)) {
        base_buf why = {0};
        const size_t from = bytes_before(local, &here, at), behind = from < n ? n - from : 0;
        put_quoted(text + n - behind, behind, &why);
        base_buf_puts(&why, " is ");
        put_list(there.ids + at, there.n - at, &why);
        base_buf_puts(&why, " there and ");
        put_list(here.ids + at, here.n - at, &why);
        base_buf_puts(&why, " in the file");
        ret->differs = base_buf_take(&why);
    }
    ret->n_compared += (uint32_t)at;
    model_ids_free(&here);
    model_ids_free(&there);
    return rc;
}

/* What its template writes has to be the same piece in the file. */
static void compare_marks(
    const remote_vocab *v, const model_tokenizer *local, const model_ids *marks, remote_vocab_likeness *ret)
{
    for (size_t i = 0; i < marks->n && !ret->differs; i++, ret->n_compared++) {
        size_t n_here = 0, n_there = 0;
        const char *here = model_tokenizer_piece(local, marks->ids[i], &n_here),
                   *there = remote_vocab_piece(v, marks->ids[i], &n_there);
        if (!there || (here && n_here == n_there && !memcmp(here, there, n_here))) continue;
        base_buf why = {0};
        base_buf_printf(&why, "token %d is ", marks->ids[i]);
        put_quoted(there, n_there, &why);
        base_buf_puts(&why, " there and ");
        if (here)
            put_quoted(here, n_here, &why);
        else
            base_buf_puts(&why, "none");
        base_buf_puts(&why, " in the file");
        ret->differs = base_buf_take(&why);
    }
}

int remote_vocab_compare(remote_vocab *v, const model_tokenizer *local, const model_ids *marks,
    remote_vocab_likeness *ret, base_err *err)
{
    base_buf sample = {0};
    *ret = (remote_vocab_likeness){0};
    compare_marks(v, local, marks, ret);
    int rc = ret->differs ? 0 : compare_text(v, local, probe, sizeof probe - 1, ret, err);
    put_sample(local, &sample);
    if (!rc && !ret->differs && sample.len) rc = compare_text(v, local, sample.data, sample.len, ret, err);
    base_buf_free(&sample);
    return rc;
}
