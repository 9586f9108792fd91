/*
 * Comments that a rewrite lost (contract: keep_comments.h). Lines of code that stand in both texts are found by their longest common
 * subsequence, comments left aside; what stood around them in the old text goes back where the new text has nothing.
 */
#include "tools/edit/keep_comments.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "code/code.h"
#include "tools/file/text.h"

enum { MOST_LINES = 800 };

typedef struct line {
    const char *text; /* without its line end */
    size_t n, indent;
    const char *code; /* without comments and the white space around it */
    size_t n_code;
    bool has_comment; /* beside its code, or alone */
} line;

typedef struct side {
    line lines[MOST_LINES];
    uint32_t n;
    char *plain;             /* the whole text without comments */
    uint32_t at[MOST_LINES]; /* lines with code */
    uint32_t n_at;
} side;

static bool is_blank_byte(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static line read_line(const side *s, const char *text, size_t from, size_t to)
{
    line l = {.text = text + from, .n = to - from, .code = s->plain + from, .n_code = to - from};
    while (l.n && is_blank_byte(l.text[l.n - 1])) l.n--;
    while (l.indent < l.n && is_blank_byte(l.text[l.indent])) l.indent++;
    while (l.n_code && is_blank_byte(l.code[l.n_code - 1])) l.n_code--;
    const size_t n_with = l.n_code; /* with its indentation */
    while (l.n_code && is_blank_byte(*l.code)) {
        l.code++;
        l.n_code--;
    }
    l.has_comment = l.n_code ? l.n > n_with : l.n > l.indent;
    return l;
}

/* false: too many lines. */
static bool read_side(const char *path, const tool_lines *of, side *ret)
{
    const char *language = code_language(path, "", 0);
    const size_t from = tool__line_start(of->text, of->n, of->from);
    ret->n = ret->n_at = 0;
    ret->plain = code_blank_comments(language, of->text, of->n);
    if (of->to < of->from || of->to - of->from >= MOST_LINES) return false;
    for (size_t at = from; ret->n <= of->to - of->from && at <= of->n;) {
        const size_t end = tool__line_end(of->text, of->n, at);
        ret->lines[ret->n] = read_line(ret, of->text, at, end);
        if (ret->lines[ret->n].n_code) ret->at[ret->n_at++] = ret->n;
        ret->n++;
        at = end + 1;
    }
    return true;
}

static bool is_same(const line *a, const line *b)
{
    return a->n_code == b->n_code && !memcmp(a->code, b->code, a->n_code);
}

/* For each line of code of `now`, by its number among them, the one of `before` that it is; UINT32_MAX: none. */
static void match(const side *before, const side *now, uint32_t *ret)
{
    const uint32_t n = before->n_at, m = now->n_at;
    uint16_t *best = base_xcalloc((size_t)(n + 1) * (m + 1), sizeof *best);
#define BEST(i, k) best[(size_t)(i) * (m + 1) + (k)]
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t k = m; k-- > 0;) {
            const bool same = is_same(&before->lines[before->at[i]], &now->lines[now->at[k]]);
            const uint16_t down = BEST(i + 1, k), right = BEST(i, k + 1);
            BEST(i, k) = same ? (uint16_t)(BEST(i + 1, k + 1) + 1) : down > right ? down : right;
        }
    for (uint32_t k = 0; k < m; k++) ret[k] = UINT32_MAX;
    for (uint32_t i = 0, k = 0; i < n && k < m;) {
        if (is_same(&before->lines[before->at[i]], &now->lines[now->at[k]]))
            ret[k++] = i++;
        else if (BEST(i + 1, k) >= BEST(i, k + 1))
            i++;
        else
            k++;
    }
#undef BEST
    free(best);
}

/* Where as many lines stand between two that match on both sides, each is the old one with something changed. */
static void match_changed(const side *before, const side *now, uint32_t *matched)
{
    enum { MOST_CHANGED = 3 };
    for (uint32_t k = 0, i = 0, to; k < now->n_at; k = to) {
        for (to = k; to < now->n_at && matched[to] == UINT32_MAX;) to++;
        const uint32_t end = to < now->n_at ? matched[to] : before->n_at;
        if (to > k && to - k <= MOST_CHANGED && end - i == to - k)
            for (uint32_t l = k; l < to; l++) matched[l] = i + (l - k);
        i = end + 1;
        to = to < now->n_at ? to + 1 : to;
    }
}

/* The lines between two lines of code: [from, to) of a side. */
typedef struct gap {
    uint32_t from, to, n_comments;
} gap;

/* In front of the k-th line of code. */
static gap gap_before(const side *s, uint32_t k)
{
    gap g = {k ? s->at[k - 1] + 1 : 0, s->at[k], 0};
    for (uint32_t i = g.from; i < g.to; i++) g.n_comments += s->lines[i].has_comment;
    return g;
}

/* Does the new text say this comment somewhere else? */
static bool is_said(const side *now, const line *l)
{
    bool is = false;
    for (uint32_t i = 0; i < now->n && !is; i++)
        is = l->n - l->indent >= 3 &&
             memmem(now->lines[i].text, now->lines[i].n, l->text + l->indent, l->n - l->indent) != NULL;
    return is;
}

/* The old line at the new column: `shift` is what the line of code beside it has moved by. */
static void put_line(const line *l, const line *old_code, const line *new_code, base_buf *out)
{
    if (l->n > l->indent && new_code->indent >= old_code->indent) {
        base_buf_add(out, new_code->text, new_code->indent - old_code->indent);
        base_buf_add(out, l->text, l->n);
    } else if (l->n > l->indent) {
        const size_t less = old_code->indent - new_code->indent;
        const size_t cut = less < l->indent ? less : l->indent;
        base_buf_add(out, l->text + cut, l->n - cut);
    }
    base_buf_putc(out, '\n');
}

/* The end of a docstring that the gap begins with, which belongs to the line above; g.from: there is none. */
static uint32_t docstring_end(const side *s, gap g)
{
    static const char *const quotes[] = {"\"\"\"", "'''"};
    uint32_t first = g.from;
    while (first < g.to && !s->lines[first].has_comment) first++;
    for (size_t q = 0; first < g.to && q < sizeof quotes / sizeof *quotes; q++) {
        const line *l = &s->lines[first];
        const char *at = l->text + l->indent, *end = l->text + l->n;
        while (at < end && strchr("rRuU", *at)) at++;
        if (end - at < 3 || memcmp(at, quotes[q], 3) != 0) continue;
        if (memmem(at + 3, (size_t)(end - at - 3), quotes[q], 3)) return first + 1;
        for (uint32_t i = first + 1; i < g.to; i++)
            if (memmem(s->lines[i].text, s->lines[i].n, quotes[q], 3)) return i + 1;
    }
    return g.from;
}

/* Does the new text say one of these lines somewhere else? */
static bool are_said(const side *before, const side *now, uint32_t from, uint32_t to)
{
    bool are = false;
    for (uint32_t l = from; l < to; l++)
        are |= before->lines[l].has_comment && is_said(now, &before->lines[l]);
    return are;
}

/* Lines [from, to) of the old text, which stood in front of its i-th line of code, in front of the new one's k-th. */
static uint32_t put_lines(
    const side *before, const side *now, uint32_t from, uint32_t to, uint32_t i, uint32_t k, base_buf *out)
{
    if (are_said(before, now, from, to)) return 0;
    for (uint32_t l = from; l < to; l++)
        put_line(&before->lines[l], &before->lines[before->at[i]], &now->lines[now->at[k]], out);
    return to - from;
}

/* The docstring of the line above the k-th, where the new text has none. */
static uint32_t put_docstring(
    const side *before, const side *now, const uint32_t *matched, uint32_t k, base_buf *out)
{
    const uint32_t above = k ? matched[k - 1] : UINT32_MAX;
    const gap new_gap = gap_before(now, k);
    if (above == UINT32_MAX || above + 1 >= before->n_at || docstring_end(now, new_gap) > new_gap.from)
        return 0;
    const gap old_gap = gap_before(before, above + 1);
    return put_lines(before, now, old_gap.from, docstring_end(before, old_gap), above + 1, k, out);
}

/*
 * What goes in front of the k-th line of code of `now`, which has no comment there: the old gap where both neighbours stay, else a
 * docstring of the line above and the comments right above the line itself. Returns how many lines came back.
 */
static uint32_t put_gap(
    const side *before, const side *now, const uint32_t *matched, uint32_t k, base_buf *out)
{
    const uint32_t i = matched[k], above = k ? matched[k - 1] : UINT32_MAX;
    const gap new_gap = gap_before(now, k);
    uint32_t n = 0;
    if (i != UINT32_MAX && above == (i ? i - 1 : UINT32_MAX)) {
        const gap old_gap = gap_before(before, i);
        /* Blank lines alone come back where the new text has none there. */
        if (old_gap.n_comments || new_gap.to == new_gap.from)
            n = put_lines(before, now, old_gap.from, old_gap.to, i, k, out);
        if (n) return n;
    } else {
        n = put_docstring(before, now, matched, k, out);
    }
    for (uint32_t l = new_gap.from; l < new_gap.to; l++) base_buf_putc(out, '\n');
    if (i != UINT32_MAX && above != (i ? i - 1 : UINT32_MAX)) {
        const gap old_gap = gap_before(before, i);
        const uint32_t least = docstring_end(before, old_gap);
        uint32_t from = old_gap.to;
        while (from > least && before->lines[from - 1].has_comment) from--;
        n += put_lines(before, now, from, old_gap.to, i, k, out);
    }
    return n;
}

/* The line of code, with the comment that it had behind it. Returns 1 where that came back. */
static uint32_t put_code(
    const side *before, const side *now, const uint32_t *matched, uint32_t k, base_buf *out)
{
    const line *new_code = &now->lines[now->at[k]];
    const line *old_code = matched[k] == UINT32_MAX ? NULL : &before->lines[before->at[matched[k]]];
    const bool is_back =
        old_code && old_code->has_comment && !new_code->has_comment && is_same(old_code, new_code);
    if (is_back) {
        base_buf_add(out, new_code->text, new_code->indent);
        base_buf_add(out, old_code->text + old_code->indent, old_code->n - old_code->indent);
    } else {
        base_buf_add(out, new_code->text, new_code->n);
    }
    base_buf_putc(out, '\n');
    return is_back;
}

static bool speaks_of_comments(const char *request)
{
    static const char *const words[] = {"comment", "docstring", "todo", "fixme", "doc ", "docs",
        "documentation", "javadoc", "blank", "empty line", "newline"};
    bool is = false;
    for (size_t i = 0; request && i < sizeof words / sizeof *words; i++)
        is |= strcasestr(request, words[i]) != NULL;
    return is;
}

static bool has_line(const side *s, uint32_t from, uint32_t to, const line *l)
{
    bool has = false;
    for (uint32_t i = from; i < to && !has; i++) {
        const line *other = &s->lines[i];
        has = other->n - other->indent == l->n - l->indent &&
              !memcmp(other->text + other->indent, l->text + l->indent, l->n - l->indent);
    }
    return has;
}

/* Lines of comments with something left out: nothing in [new_from, new_to) is new, and something of the old ones is gone. */
static bool is_less(const side *before, uint32_t old_from, uint32_t old_to, const side *now,
    uint32_t new_from, uint32_t new_to)
{
    uint32_t n_old = 0, n_new = 0;
    for (uint32_t i = old_from; i < old_to; i++) n_old += before->lines[i].has_comment;
    for (uint32_t i = new_from; i < new_to; i++) {
        if (!now->lines[i].has_comment) continue;
        if (!has_line(before, old_from, old_to, &now->lines[i])) return false;
        n_new++;
    }
    return n_new && n_new < n_old;
}

static void put_as_it_was(
    const side *before, const side *now, uint32_t from, uint32_t to, uint32_t i, uint32_t k, base_buf *out)
{
    for (uint32_t l = from; l < to; l++)
        put_line(&before->lines[l], &before->lines[before->at[i]], &now->lines[now->at[k]], out);
}

/* A comment, or a docstring, that was cut short stands in front of the k-th line of code: as it was. Returns how many lines; 0: none was. */
static uint32_t put_longer(
    const side *before, const side *now, const uint32_t *matched, uint32_t k, base_buf *out)
{
    const uint32_t i = matched[k], above = k ? matched[k - 1] : UINT32_MAX;
    const gap g = gap_before(now, k);
    if (i != UINT32_MAX && above == (i ? i - 1 : UINT32_MAX)) {
        const gap old = gap_before(before, i);
        if (is_less(before, old.from, old.to, now, g.from, g.to)) {
            put_as_it_was(before, now, old.from, old.to, i, k, out);
            return old.to - old.from;
        }
    }
    if (above == UINT32_MAX || above + 1 >= before->n_at) return 0;
    const gap old = gap_before(before, above + 1);
    const uint32_t old_end = docstring_end(before, old), new_end = docstring_end(now, g);
    if (new_end == g.from || !is_less(before, old.from, old_end, now, g.from, new_end)) return 0;
    put_as_it_was(before, now, old.from, old_end, above + 1, k, out);
    for (uint32_t l = new_end; l < g.to; l++) {
        base_buf_add(out, now->lines[l].text, now->lines[l].n);
        base_buf_putc(out, '\n');
    }
    return old_end - old.from;
}

static uint32_t put_all(const side *before, const side *now, const uint32_t *matched, base_buf *out)
{
    uint32_t n = 0, next = 0;
    for (uint32_t k = 0; k < now->n_at; k++) {
        const uint32_t n_longer = put_longer(before, now, matched, k, out);
        const bool has_own = !n_longer && gap_before(now, k).n_comments > 0;
        n += n_longer  ? n_longer
             : has_own ? put_docstring(before, now, matched, k, out)
                       : put_gap(before, now, matched, k, out);
        for (; has_own && next < now->at[k]; next++) {
            base_buf_add(out, now->lines[next].text, now->lines[next].n);
            base_buf_putc(out, '\n');
        }
        n += put_code(before, now, matched, k, out);
        next = now->at[k] + 1;
    }
    for (; next < now->n; next++) {
        base_buf_add(out, now->lines[next].text, now->lines[next].n);
        base_buf_putc(out, '\n');
    }
    return n;
}

uint32_t tool__keep_comments(
    const char *path, const tool_lines *before, const tool_lines *now, const char *request, base_buf *ret)
{
    side *old = base_xmalloc(sizeof *old), *new = base_xmalloc(sizeof *new);
    uint32_t *matched = base_xcalloc(MOST_LINES, sizeof *matched), n = 0;
    const bool is_read = read_side(path, before, old), is_good = read_side(path, now, new) && is_read;
    if (is_good && !speaks_of_comments(request)) {
        match(old, new, matched);
        match_changed(old, new, matched);
        n = put_all(old, new, matched, ret);
    }
    if (!n) base_buf_clear(ret);
    free(old->plain);
    free(new->plain);
    free(old);
    free(new);
    free(matched);
    return n;
}
