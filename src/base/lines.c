/* Lines of a stream (contract: lines.h). */
#include "base/lines.h"

#include <string.h>

void base_lines_add(base_lines *l, const char *bytes, size_t n)
{
    base_buf_add(&l->held, bytes, n);
}

bool base_lines_take(base_lines *l, base_buf *ret, bool *ret_too_long)
{
    const size_t left = l->held.len - l->from;
    const char *line = left ? l->held.data + l->from : NULL, *end = left ? memchr(line, '\n', left) : NULL;
    base_buf_clear(ret);
    if (!end) {
        if (left > l->most) {
            l->is_too_long = true;
            l->from = l->held.len;
        }
        if (l->from) memmove(l->held.data, l->held.data + l->from, l->held.len - l->from);
        l->held.len -= l->from;
        l->from = 0;
        return false;
    }
    *ret_too_long = l->is_too_long || (size_t)(end - line) > l->most;
    if (!*ret_too_long) base_buf_add(ret, line, (size_t)(end - line));
    l->from += (size_t)(end - line) + 1;
    l->is_too_long = false;
    return true;
}

void base_lines_free(base_lines *l)
{
    base_buf_free(&l->held);
    *l = (base_lines){.most = l->most};
}
