/*
 * OLD/NEW blocks and line ranges: what the edit tool does, as pure functions of texts.
 *
 * Lines are matched exactly first, then without trailing white space, then without any indentation (the new
 * lines move along, and the result says so). Two matches are a question, none shows the nearest places: never
 * a generic "not found".
 */
#include "tools/edit/replace.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static base_str trim(base_str s, bool left)
{
    while (s.len && isspace((unsigned char)s.ptr[s.len - 1])) s.len--;
    while (left && s.len && isspace((unsigned char)*s.ptr)) s.ptr++, s.len--;
    return s;
}

typedef enum looseness { EXACT, NO_TRAILING, NO_INDENT, N_LOOSENESS } looseness;

static bool same_line(base_str a, base_str b, looseness how)
{
    if (how >= NO_TRAILING) {
        a = trim(a, how == NO_INDENT);
        b = trim(b, how == NO_INDENT);
    }
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

/* ---- reading the payload ---- */

typedef struct part {
    size_t old_from, old_to, new_from, new_to; /* lines of the payload */
} part;

typedef enum marker { NO_MARKER, MARK_OLD, MARK_MIDDLE, MARK_NEW } marker;

static marker marker_of(base_str line)
{
    base_str s = trim(line, true);
    size_t run = 0;
    while (run < s.len && s.ptr[run] == *s.ptr) run++;
    if (s.len && run >= 5 && *s.ptr == '<') return MARK_OLD;
    if (s.len && run >= 5 && *s.ptr == '>') return MARK_NEW;
    if (s.len && run >= 5 && run == s.len && *s.ptr == '=') return MARK_MIDDLE;
    if (base_str_equal(s, "OLD:")) return MARK_OLD;
    if (base_str_equal(s, "NEW:")) return MARK_MIDDLE;
    return NO_MARKER;
}

static size_t read_parts(const tool_line_list *l, part **ret)
{
    part *parts = NULL;
    size_t n = 0, cap = 0;
    part p = {0};
    enum { OUTSIDE, IN_OLD, IN_NEW } where = OUTSIDE;
    for (size_t i = 0; i <= l->n; i++) {
        marker m = i < l->n ? marker_of(l->items[i]) : MARK_NEW;
        bool closes = where == IN_NEW && (m == MARK_NEW || m == MARK_OLD);
        if (closes) {
            p.new_to = i;
            base_grow(&parts, &cap, n + 1, sizeof *parts);
            parts[n++] = p;
            where = OUTSIDE;
        }
        if (m == MARK_OLD && where == OUTSIDE) {
            p = (part){.old_from = i + 1};
            where = IN_OLD;
        } else if (m == MARK_MIDDLE && where == IN_OLD) {
            p.old_to = i;
            p.new_from = i + 1;
            where = IN_NEW;
        }
    }
    *ret = parts;
    return n;
}

/* ---- finding and replacing ---- */

static size_t count_matches(const tool_line_list *text, const tool_line_list *payload, const part *p,
    looseness how, size_t *ret_first, size_t places[4])
{
    size_t n = p->old_to - p->old_from, found = 0;
    for (size_t i = 0; n && i + n <= text->n; i++) {
        size_t k = 0;
        while (k < n && same_line(text->items[i + k], payload->items[p->old_from + k], how)) k++;
        if (k < n) continue;
        if (!found) *ret_first = i;
        if (found < 4) places[found] = i + 1;
        found++;
    }
    return found;
}

static void show_nearest(
    const tool_line_list *text, const tool_line_list *payload, const part *p, base_buf *why)
{
    /* A place's worth: 4 for each line that is equal but for indentation, 1 when a line begins alike. */
    size_t best[3] = {0}, at[3] = {0};
    for (size_t i = 0; i < text->n; i++) {
        size_t worth = 0;
        for (size_t k = 0; k < p->old_to - p->old_from && k < 40 && i + k < text->n; k++) {
            base_str a = trim(text->items[i + k], true), b = trim(payload->items[p->old_from + k], true);
            if (!b.len) continue;
            size_t same = 0;
            while (same < a.len && same < b.len && a.ptr[same] == b.ptr[same]) same++;
            worth += same == a.len && same == b.len ? 4 : same * 2 > b.len ? 1 : 0;
        }
        for (int r = 0; r < 3; r++) {
            if (worth <= best[r]) continue;
            for (int k = 2; k > r; k--) {
                best[k] = best[k - 1];
                at[k] = at[k - 1];
            }
            best[r] = worth;
            at[r] = i;
            break;
        }
    }
    if (best[0]) base_buf_puts(why, "Nearest lines:\n");
    for (int r = 0; r < 3 && best[r]; r++) {
        base_str s = text->items[at[r]];
        base_buf_printf(why, "%zu: %.*s\n", at[r] + 1, (int)(s.len < 160 ? s.len : 160), s.ptr);
    }
}

static void indent_of(base_str line, size_t *ret_n)
{
    size_t n = 0;
    while (n < line.len && (line.ptr[n] == ' ' || line.ptr[n] == '\t')) n++;
    *ret_n = n;
}

static void put_replacement(base_buf *out, const base_buf *whole, const tool_line_list *text, size_t first,
    const tool_line_list *payload, const part *p, looseness how, tool_text_style style)
{
    base_buf block = {0}, moved = {0};
    for (size_t i = p->new_from; i < p->new_to; i++) {
        base_buf_add(&block, payload->items[i].ptr, payload->items[i].len);
        base_buf_putc(&block, '\n');
    }
    const base_buf *use = &block;
    if (how == NO_INDENT && block.len) {
        size_t here, old_n, new_n;
        indent_of(text->items[first], &here);
        indent_of(payload->items[p->old_from], &old_n);
        indent_of(payload->items[p->new_from], &new_n);
        base_buf indent = {0};
        base_buf_add(&indent, text->items[first].ptr, here);
        for (size_t i = old_n; i < new_n; i++) base_buf_putc(&indent, ' ');
        size_t unit;
        tool_indentation keep = tool__indentation_for(whole->data, whole->len, block.data, block.len, &unit);
        tool__indent_block(&moved, block.data, block.len, indent.data, indent.len, keep, unit);
        base_buf_free(&indent);
        use = &moved;
    }
    tool__line_ends(out, use->data ? use->data : "", use->len, style.crlf);
    base_buf_free(&block);
    base_buf_free(&moved);
}

static const char *const loose_words[] = {
    NULL, "spaces at line ends were ignored", "indentation was ignored and adapted"};

static bool replace_part(const char *path, base_buf *text, const tool_line_list *payload, const part *p,
    size_t number, base_buf *note, base_buf *why)
{
    tool_line_list l = {0};
    tool__split_lines(&l, text->data ? text->data : "", text->len);
    size_t first = 0, places[4], found = 0, n = p->old_to - p->old_from;
    looseness how = EXACT;
    for (; how < N_LOOSENESS; how++)
        if ((found = count_matches(&l, payload, p, how, &first, places))) break;
    if (found == 1) {
        tool_text_style style = tool__text_style(text->data, text->len);
        size_t from = (size_t)(l.items[first].ptr - text->data);
        size_t to = first + n < l.n ? (size_t)(l.items[first + n].ptr - text->data) : text->len;
        bool at_open_end = to == text->len && style.ends_open;
        base_buf out = {0};
        base_buf_add(&out, text->data, from);
        put_replacement(&out, text, &l, first, payload, p, how, style);
        if (at_open_end &&
            p->new_to > p->new_from) { /* the file had no final newline and keeps having none */
            if (out.len && out.data[out.len - 1] == '\n') out.data[--out.len] = '\0';
            if (out.len && out.data[out.len - 1] == '\r') out.data[--out.len] = '\0';
        }
        base_buf_add(&out, text->data + to, text->len - to);
        base_buf_free(text);
        *text = out;
        if (loose_words[how]) base_buf_printf(note, "Block %zu: %s. ", number, loose_words[how]);
    } else if (!n) {
        base_buf_printf(why,
            "Block %zu has no old lines: nothing says where it goes. Nothing "
            "was changed. Give the line before it as OLD and both as NEW.\n",
            number);
    } else if (found) {
        base_buf_printf(why, "The old lines of block %zu stand at several places: lines", number);
        for (size_t i = 0; i < found && i < 4; i++) base_buf_printf(why, "%s %zu", i ? "," : "", places[i]);
        base_buf_printf(why, "%s. Nothing was changed. Add a line before or behind them to OLD and NEW.\n",
            found > 4 ? ", ..." : "");
    } else {
        base_buf shown = {0};
        tool__path_show(&shown, path);
        base_buf_printf(
            why, "The old lines of block %zu are not in %s. Nothing was changed.\n", number, shown.data);
        show_nearest(&l, payload, p, why);
        base_buf_puts(why, "Next: read {\"path\": ");
        tool__quote(why, path);
        base_buf_puts(why, "}, then the same call with OLD copied from it.\n");
        base_buf_free(&shown);
    }
    free(l.items);
    return found == 1;
}

bool tool__replace_blocks(const char *path, const base_buf *text, base_str payload, base_buf *ret_text,
    base_buf *note, base_buf *why)
{
    tool_line_list l = {0};
    part *parts;
    tool__split_lines(&l, payload.ptr ? payload.ptr : "", payload.len);
    size_t n = read_parts(&l, &parts), done = 0;
    base_buf work = {0};
    base_buf_add(&work, text->data ? text->data : "", text->len);
    if (!n)
        base_buf_puts(why,
            "The block has no old and new part. Nothing was changed. Next: the same call with\n"
            "<<<<<<< OLD\nlines as they are\n=======\nlines as they should be\n>>>>>>> NEW\n");
    while (done < n && replace_part(path, &work, &l, &parts[done], done + 1, note, why)) done++;
    bool is_good = n && done == n;
    if (is_good && work.len == text->len && (!work.len || !memcmp(work.data, text->data, work.len))) {
        base_buf_puts(why, "Old and new lines are the same: nothing was changed.\n");
        is_good = false;
    }
    if (is_good)
        *ret_text = work;
    else
        base_buf_free(&work);
    free(parts);
    free(l.items);
    return is_good;
}

bool tool__replace_lines(const char *path, const base_buf *text, size_t from, size_t to, base_str payload,
    base_buf *ret_text, base_buf *why)
{
    size_t n_lines = tool__count_lines(text->data, text->len);
    base_buf shown = {0}, block = {0};
    tool__path_show(&shown, path);
    bool is_good = false;
    if (from < 1 || to < from || to > n_lines) {
        base_buf_printf(why,
            "Lines %zu-%zu are not in %s, which has %zu. Nothing was changed. Next: read {\"path\": ", from,
            to, shown.data, n_lines);
        tool__quote(why, path);
        base_buf_puts(why, "}\n");
        goto out;
    }
    tool_text_style style = tool__text_style(text->data, text->len);
    size_t begin = tool__line_start(text->data, text->len, from),
           end = tool__line_start(text->data, text->len, to + 1);
    tool_line_list l = {0};
    tool__split_lines(&l, payload.ptr ? payload.ptr : "", payload.len);
    for (size_t i = 0; i < l.n; i++) {
        base_buf_add(&block, l.items[i].ptr, l.items[i].len);
        base_buf_putc(&block, '\n');
    }
    free(l.items);
    if (end == text->len && style.ends_open && block.len) block.len--;
    base_buf_add(ret_text, text->data, begin);
    tool__line_ends(ret_text, block.data ? block.data : "", block.len, style.crlf);
    base_buf_add(ret_text, text->data + end, text->len - end);
    is_good = ret_text->len != text->len || memcmp(ret_text->data, text->data, text->len) != 0;
    if (!is_good) base_buf_puts(why, "The new lines are the same as the old: nothing was changed.\n");
out:
    base_buf_free(&shown);
    base_buf_free(&block);
    return is_good;
}
