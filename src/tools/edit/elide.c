/*
 * A rewritten definition that says "the rest as before" in place of the rest (contract: elide.h).
 */
#include "tools/edit/elide.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "tools/file/text.h"

typedef struct lines {
    base_str *all;
    size_t n, cap;
} lines;

static lines split(const char *text, size_t n)
{
    lines ret = {0};
    for (size_t at = 0; at < n;) {
        const size_t end = tool__line_end(text, n, at);
        base_grow(&ret.all, &ret.cap, ret.n + 1, sizeof *ret.all);
        ret.all[ret.n++] = (base_str){text + at, end - at};
        at = end + 1;
    }
    return ret;
}

/* A comment that stands for text: "// rest of the code", "# ... existing code ...". */
static bool is_elision(base_str line)
{
    static const char *const marks[] = {"//", "#", "/*", "--", "..."};
    static const char *const words[] = {"rest of", "existing code", "remaining code", "remains the same",
        "unchanged", "same as before", "original code", "previous code", "as before", "other code"};
    const base_str s = base_str_trim(line);
    bool is_comment = false, found = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        is_comment |= s.len > strlen(marks[i]) && !memcmp(s.ptr, marks[i], strlen(marks[i]));
    char *text = base_xstrndup(s.ptr ? s.ptr : "", s.len);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) found |= strcasestr(text, words[i]) != NULL;
    free(text);
    return is_comment && found;
}

static size_t next_full(const lines *l, size_t at)
{
    while (at < l->n && !base_str_trim(l->all[at]).len) at++;
    return at;
}

/* The old line with another word in it, rather than one beside it. */
static bool is_version_of(base_str a, base_str b)
{
    a = base_str_trim(a);
    b = base_str_trim(b);
    const size_t least = a.len < b.len ? a.len : b.len;
    size_t shared = 0;
    while (shared < least && a.ptr[shared] == b.ptr[shared]) shared++;
    return least >= 4 && shared * 2 > least;
}

static size_t column(base_str line)
{
    size_t n = 0;
    while (n < line.len && (line.ptr[n] == ' ' || line.ptr[n] == '\t')) n++;
    return n;
}

/* An old line at the block's column: `drop` bytes of white space less, or `put` in front. */
static void put_old(base_buf *out, base_str line, size_t drop, base_str put)
{
    const size_t own = column(line), less = own < drop ? own : drop;
    if (base_str_trim(line).len) {
        base_buf_add(out, put.ptr, put.len);
        base_buf_add(out, line.ptr + less, line.len - less);
    }
    base_buf_putc(out, '\n');
}

/* Where the old text goes on behind an elision at block line `at`: what follows there, found in the old text. */
static bool find_end(const lines *old, size_t from, const lines *block, size_t at, size_t *ret)
{
    const size_t follows = next_full(block, at + 1), n_behind = block->n - follows;
    bool is_tail = n_behind <= old->n - from;
    for (size_t i = 0; is_tail && i < n_behind; i++)
        is_tail = tool__is_same_line(block->all[follows + i], old->all[old->n - n_behind + i]);
    *ret = old->n - n_behind;
    if (is_tail) return true;
    for (*ret = from; *ret < old->n; ++*ret)
        if (base_str_trim(block->all[follows]).len > 2 &&
            tool__is_same_line(block->all[follows], old->all[*ret]))
            return true;
    return false;
}

bool tool__fill_elision(
    const char *old_text, size_t n_old, const char *block_text, size_t n_block, base_buf *ret)
{
    lines old = split(old_text, n_old), block = split(block_text, n_block);
    while (old.n && !base_str_trim(old.all[old.n - 1]).len) old.n--;
    while (block.n && !base_str_trim(block.all[block.n - 1]).len) block.n--;
    size_t at = next_full(&old, 0), n_filled = 0;
    bool is_good = old.n && block.n;
    const base_str first = is_good ? block.all[0] : (base_str){0};
    const size_t drop = is_good ? column(old.all[at]) : 0;
    const base_str put = {first.ptr, is_good ? column(first) : 0};
    bool had_new = false; /* the block's last line is none of the old text's next ones */
    for (size_t i = 0; i < block.n && is_good; i++) {
        const base_str line = block.all[i];
        if (is_elision(line)) {
            size_t to = 0;
            if (had_new && next_full(&old, at) < old.n &&
                is_version_of(block.all[i - 1], old.all[next_full(&old, at)]))
                at = next_full(&old, at) + 1;
            is_good = find_end(&old, at, &block, i, &to) && to >= at;
            for (; is_good && at < to; at++) put_old(ret, old.all[at], drop, put);
            n_filled++;
            had_new = false;
            continue;
        }
        base_buf_add(ret, line.ptr, line.len);
        base_buf_putc(ret, '\n');
        if (!base_str_trim(line).len) continue;
        const size_t next = next_full(&old, at);
        had_new = next == old.n || !tool__is_same_line(line, old.all[next]);
        if (!had_new) at = next + 1;
    }
    free(old.all);
    free(block.all);
    return is_good && n_filled;
}
