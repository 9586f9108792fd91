/* A line at a time (contract: config_text.h). */
#include "cmd/config_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t skip_blanks(const char *line, size_t n, size_t at)
{
    while (at < n && is_blank(line[at])) at++;
    return at;
}

/* What is in double quotes from `at`; false: they are not closed, or something stands behind them. */
static bool read_quoted(const char *line, size_t n, size_t at, base_buf *ret)
{
    for (at++; at < n && line[at] != '"'; at++) {
        if (line[at] == '\\' && at + 1 < n && (line[at + 1] == '"' || line[at + 1] == '\\')) at++;
        base_buf_putc(ret, line[at]);
    }
    if (at == n) return false;
    at = skip_blanks(line, n, at + 1);
    return at == n || line[at] == '#';
}

/* Up to a "#" that begins a word, without blanks at its end. */
static void read_plain(const char *line, size_t n, size_t at, base_buf *ret)
{
    size_t end = at;
    while (end < n && !(line[end] == '#' && (end == at || is_blank(line[end - 1])))) end++;
    while (end > at && is_blank(line[end - 1])) end--;
    base_buf_add(ret, line + at, end - at);
}

/* False: it is no setting, and *why says so. */
static bool read_line(const char *line, size_t n, base_buf *key, base_buf *value, const char **why)
{
    size_t at = skip_blanks(line, n, 0), end = at;
    while (end < n && ((line[end] >= 'a' && line[end] <= 'z') || (line[end] >= '0' && line[end] <= '9') ||
                          line[end] == '-'))
        end++;
    base_buf_add(key, line + at, end - at);
    at = skip_blanks(line, n, end);
    if (!key->len || at == n || line[at] != '=') {
        *why = "this is no \"key = value\"";
        return false;
    }
    at = skip_blanks(line, n, at + 1);
    if (at < n && line[at] == '"') {
        if (read_quoted(line, n, at, value)) return true;
        *why = "the quotes are not closed, or something stands behind them";
        return false;
    }
    read_plain(line, n, at, value);
    if (!value->len) *why = "there is no value (\"\" is an empty one)";
    return value->len > 0;
}

/* Control characters would be shown, passed on and compared; none has a place in a setting. */
static bool is_text(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 127) return false;
    return base_utf8_valid(line, n);
}

int config_text_read(
    const char *text, size_t n, config_setting_fn *fn, void *user, uint32_t *ret_line, base_err *err)
{
    int rc = 0;
    *ret_line = 0;
    for (size_t at = 0; at < n && !rc;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end ? (size_t)(end - text) - at : n - at;
        const char *line = text + at, *why = NULL;
        at += length + 1;
        ++*ret_line;
        if (length && line[length - 1] == '\r') length--;
        size_t first = skip_blanks(line, length, 0);
        if (first == length || line[first] == '#') continue;
        base_buf key = {0}, value = {0};
        if (!is_text(line, length))
            rc = base_fail(err, BASE_E_FORMAT, "this line holds bytes that are no text");
        else if (!read_line(line, length, &key, &value, &why))
            rc = base_fail(err, BASE_E_FORMAT, "%s", why);
        else
            rc = fn(user, key.data, value.data ? value.data : "", *ret_line, err);
        base_buf_free(&key);
        base_buf_free(&value);
    }
    return rc;
}
