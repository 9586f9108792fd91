/* A block in the middle of a definition (contract: within.h). */
#include "tools/edit/within.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"

static size_t indent_of(base_str s)
{
    size_t n = 0;
    while (n < s.len && strchr(" \t", s.ptr[n])) n++;
    return n;
}

static base_str trim(base_str s)
{
    const size_t n = indent_of(s);
    s.ptr += n;
    s.len -= n;
    while (s.len && isspace((unsigned char)s.ptr[s.len - 1])) s.len--;
    return s;
}

static bool is_same(base_str a, base_str b)
{
    a = trim(a);
    b = trim(b);
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

/* "}" alone may be of either side. */
static bool says_something(base_str s)
{
    bool is_so = false;
    for (size_t i = 0; i < s.len; i++) is_so |= isalnum((unsigned char)s.ptr[i]) != 0;
    return is_so;
}

/* How many lines, the most, at the end of a are the first of b. */
static size_t overlap(const base_str *a, size_t n_a, const base_str *b, size_t n_b)
{
    for (size_t k = n_a < n_b ? n_a : n_b; k; k--) {
        bool is_it = true, says = false;
        for (size_t i = 0; i < k && is_it; i++) {
            is_it = is_same(a[n_a - k + i], b[i]);
            says |= says_something(b[i]);
        }
        if (is_it && says) return k;
    }
    return 0;
}

/* At the depth of `model`, the first of them that says something. */
static void put_moved(const base_str *block, size_t n, base_str model, base_buf *out)
{
    size_t first = 0;
    while (first < n && !trim(block[first]).len) first++;
    const size_t is = first < n ? indent_of(block[first]) : 0, wanted = indent_of(model);
    for (size_t i = 0; i < n; i++) {
        base_str s = block[i];
        const size_t has = indent_of(s), cut = is < has ? is : has;
        if (trim(s).len && is != wanted) {
            base_buf_add(out, model.ptr, wanted);
            s.ptr += cut;
            s.len -= cut;
        }
        base_buf_add(out, s.ptr, s.len);
        base_buf_putc(out, '\n');
    }
}

/* Where the line stands in the other text; n: nowhere. */
static size_t find_line(base_str line, const base_str *of, size_t n)
{
    size_t i = 0;
    if (!says_something(line)) return n;
    while (i < n && !is_same(line, of[i])) i++;
    return i;
}

/* Of the old lines those that the block leaves out at its beginning and at its end, by its first and last line. */
static void find_left_out(
    const base_str *old, size_t n_old, const base_str *now, size_t n, size_t *ret_front, size_t *ret_end)
{
    size_t front = n ? find_line(now[0], old, n_old) : n_old, end = 0;
    for (size_t i = 0; i < front && front < n_old; i++)
        if (find_line(old[i], now, n) < n) front = n_old; /* it has that elsewhere */
    *ret_front = front < n_old ? front : 0;
    while (n && end < n_old && !(says_something(now[n - 1]) && is_same(now[n - 1], old[n_old - 1 - end])))
        end++;
    for (size_t i = 0; i < end && end < n_old; i++)
        if (find_line(old[n_old - 1 - i], now, n) < n) end = n_old;
    *ret_end = end < n_old && end + *ret_front < n_old ? end : 0;
}

bool tool__replace_within(const base_buf *text, const code_definition *d, size_t from, size_t to,
    base_str block, bool may_lose, base_buf *ret)
{
    base_buf clean = {0};
    tool_line_list old = {0}, now = {0};
    size_t begin = d->from;
    while (begin && text->data[begin - 1] != '\n') begin--;
    const size_t end = d->to < text->len ? d->to : text->len, first = d->line;
    tool__split_lines(&old, text->data + begin, end - begin);
    tool__normalise_block(&clean, block.ptr ? block.ptr : "", block.len);
    tool__split_lines(&now, clean.data ? clean.data : "", clean.len);
    const bool is_inside = from >= first && to >= from && to < first + old.n;
    const bool is_whole = is_inside && from > first && now.n && is_same(now.items[0], old.items[0]);
    if (is_whole) {
        base_buf_add(ret, clean.data, clean.len);
    } else if (is_inside) {
        size_t at = from - first, behind = to - first + 1, front = 0, rest = 0;
        size_t skip = overlap(old.items, at, now.items, now.n);
        if (skip == now.n) skip = 0; /* nothing would be left */
        size_t n = now.n - skip;
        n -= overlap(now.items + skip, n, old.items + behind, old.n - behind);
        if (!may_lose) find_left_out(old.items + at, behind - at, now.items + skip, n, &front, &rest);
        at += front;
        behind -= rest;
        const size_t n_old = behind - at;
        size_t model = 0;
        while (model + 1 < n_old && !trim(old.items[at + model]).len) model++;
        for (size_t i = 0; i < at; i++)
            base_buf_printf(ret, "%.*s\n", (int)old.items[i].len, old.items[i].ptr);
        put_moved(now.items + skip, n, old.items[at + model], ret);
        for (size_t i = behind; i < old.n; i++)
            base_buf_printf(ret, "%.*s\n", (int)old.items[i].len, old.items[i].ptr);
    }
    free(old.items);
    free(now.items);
    base_buf_free(&clean);
    return is_inside;
}
