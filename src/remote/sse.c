#include "remote/sse.h"

#include <string.h>

static int tell(remote_sse *s, remote_sse_fn *event, void *user, base_err *err)
{
    if (!s->has_data) return 0;
    s->has_data = false;
    int rc = event(user, s->data.data ? s->data.data : "", s->data.len, err);
    base_buf_clear(&s->data);
    return rc;
}

/* The value of the field when the line is one of it: behind the colon and one blank. */
static bool is_field(const base_buf *line, const char *name, size_t *ret_from)
{
    size_t n = strlen(name);
    if (line->len < n || memcmp(line->data, name, n)) return false;
    if (line->len == n) { /* a field without a value */
        *ret_from = n;
        return true;
    }
    if (line->data[n] != ':') return false;
    *ret_from = n + 1 + (line->len > n + 1 && line->data[n + 1] == ' ');
    return true;
}

static int add_data(remote_sse *s, size_t from, base_err *err)
{
    size_t n = s->line.len - from;
    if (n > REMOTE_SSE_MOST || s->data.len > REMOTE_SSE_MOST - n)
        return base_fail(
            err, BASE_E_LIMIT, "the endpoint sent an event of more than %d MiB", REMOTE_SSE_MOST >> 20);
    if (s->has_data) base_buf_putc(&s->data, '\n');
    base_buf_add(&s->data, s->line.data + from, n);
    s->has_data = true;
    return 0;
}

static int take_line(remote_sse *s, remote_sse_fn *event, void *user, base_err *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t from = 0;
    if (!s->has_begun && s->line.len >= 3 && !memcmp(s->line.data, mark, 3)) {
        s->line.len -= 3;
        memmove(s->line.data, s->line.data + 3, s->line.len);
    }
    s->has_begun = true;
    if (!s->line.len) return tell(s, event, user, err);
    int rc = 0;
    if (is_field(&s->line, "data", &from)) {
        rc = add_data(s, from, err);
    } else if (is_field(&s->line, "error", &from) || s->line.data[0] == '{') {
        rc = tell(s, event, user, err);
        if (!rc) rc = add_data(s, from, err);
        if (!rc) rc = tell(s, event, user, err);
    } /* else a comment, which keeps the connection alive, or a field that nobody needs */
    base_buf_clear(&s->line);
    return rc;
}

int remote_sse_feed(
    remote_sse *s, const char *bytes, size_t n, remote_sse_fn *event, void *user, base_err *err)
{
    for (size_t at = 0; at < n;) {
        if (s->was_return && bytes[at] == '\n') at++;
        s->was_return = false;
        size_t end = at;
        while (end < n && bytes[end] != '\n' && bytes[end] != '\r') end++;
        if (end - at > REMOTE_SSE_MOST || s->line.len > REMOTE_SSE_MOST - (end - at))
            return base_fail(
                err, BASE_E_LIMIT, "the endpoint sent a line of more than %d MiB", REMOTE_SSE_MOST >> 20);
        if (end > at) base_buf_add(&s->line, bytes + at, end - at);
        if (end == n) return 0;
        s->was_return = bytes[end] == '\r';
        int rc = take_line(s, event, user, err);
        if (rc) return rc;
        at = end + 1;
    }
    return 0;
}

int remote_sse_end(remote_sse *s, remote_sse_fn *event, void *user, base_err *err)
{
    int rc = s->line.len ? take_line(s, event, user, err) : 0;
    return rc ? rc : tell(s, event, user, err);
}

void remote_sse_free(remote_sse *s)
{
    base_buf_free(&s->line);
    base_buf_free(&s->data);
    *s = (remote_sse){0};
}
