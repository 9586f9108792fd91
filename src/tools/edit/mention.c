/* Where a document speaks of something new (contract: mention.h). */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "tools/edit/mention.h"
#include "tools/file/text.h"

/* Lines around the new one that the model is shown. */
enum { SHOWN_BEFORE = 8, SHOWN_BEHIND = 4 };

/* --- lines ---------------------------------------------------------------------------------------------- */

static size_t end_of(const base_buf *t, size_t at)
{
    return tool__line_end(t->data, t->len, at);
}

static size_t next_line(const base_buf *t, size_t at)
{
    const size_t end = end_of(t, at);
    return end < t->len ? end + 1 : t->len;
}

static size_t line_before(const base_buf *t, size_t at)
{
    return tool__line_begin(t->data, at ? at - 1 : 0);
}

static bool is_blank(const base_buf *t, size_t at)
{
    return tool__is_blank(t->data, at, end_of(t, at));
}

/* Bytes of "  * ", "- ", "o " at the beginning of a line; 0: it is no item of a list. */
static size_t marker_of(const base_buf *t, size_t at)
{
    const size_t end = end_of(t, at);
    size_t i = at;
    while (i < end && strchr(" \t", t->data[i])) i++;
    if (i + 2 >= end || !strchr("-*+o", t->data[i]) || !strchr(" \t", t->data[i + 1])) return 0;
    while (i + 1 < end && strchr(" \t", t->data[i + 1])) i++;
    return i + 1 - at;
}

/* "===", "---": the line above is a heading. */
static bool is_rule(const base_buf *t, size_t at)
{
    const size_t end = end_of(t, at);
    if (end < at + 3 || !strchr("=-~^", t->data[at])) return false;
    for (size_t i = at; i < end; i++)
        if (t->data[i] != t->data[at]) return false;
    return true;
}

static bool is_fence(const base_buf *t, size_t at)
{
    return t->len - at >= 3 && (!memcmp(t->data + at, "```", 3) || !memcmp(t->data + at, "~~~", 3));
}

/* How deep a heading is that begins on this line: #'s, or by what underlines it, as most order that; 0: none does. */
static size_t heading_of(const base_buf *t, size_t at)
{
    size_t n = 0;
    while (at + n < t->len && t->data[at + n] == '#') n++;
    if (n) return at + n < t->len && t->data[at + n] == ' ' ? n : 0;
    static const char marks[] = "=-~^";
    const size_t next = next_line(t, at);
    const bool is_heading = !is_blank(t, at) && !is_rule(t, at) && next < t->len && is_rule(t, next);
    return is_heading ? (size_t)(strchr(marks, t->data[next]) - marks) + 1 : 0;
}

/* --- words ---------------------------------------------------------------------------------------------- */

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Where `word` stands by itself in [from, to), in any case of its letters if so asked; SIZE_MAX: nowhere. */
static size_t find_word(const base_buf *t, size_t from, size_t to, const char *word, bool any_case)
{
    const size_t n = strlen(word);
    for (size_t i = from; n && i + n <= to; i++) {
        const bool is_same = any_case ? !strncasecmp(t->data + i, word, n) : !memcmp(t->data + i, word, n);
        if (is_same && (i == from || !is_word_byte(t->data[i - 1])) &&
            (i + n == t->len || !is_word_byte(t->data[i + n])))
            return i;
    }
    return SIZE_MAX;
}

static bool says(const char *text, const char *word)
{
    const base_buf t = {.data = (char *)text, .len = strlen(text)};
    return find_word(&t, 0, t.len, word, true) != SIZE_MAX;
}

/* Names stand between back quotes where the document's others do. */
static const char *mark_of(const char *path, const base_buf *t)
{
    if (!memchr(t->data, '`', t->len)) return "";
    return base_ends_with(path, ".rst") ? "``" : "`";
}

/* --- lists of changes ------------------------------------------------------------------------------------ */

static bool is_list_of_changes(const char *path)
{
    static const char *const names[] = {"change", "news", "history", "release", NULL};
    for (const char *const *n = names; *n; n++)
        if (!strncasecmp(base_path_name(path), *n, strlen(*n))) return true;
    return false;
}

/* "- no changes yet", "* Nothing so far." */
static bool says_nothing(const base_buf *t, size_t at)
{
    static const char *const words[] = {"no changes", "nothing", "none", "no change", NULL};
    const size_t end = end_of(t, at), from = at + marker_of(t, at);
    for (const char *const *w = words; *w; w++) {
        const size_t n = strlen(*w);
        if (end - from >= n && end - from <= n + 12 && !strncasecmp(t->data + from, *w, n)) return true;
    }
    return false;
}

/* The line of the newest section's heading, over a title of the whole document. */
static size_t first_section(const base_buf *t)
{
    size_t at = 0;
    while (at < t->len && !heading_of(t, at)) at = next_line(t, at);
    const size_t depth = at < t->len ? heading_of(t, at) : 0;
    const bool is_title = depth && !memchr(t->data + at, '.', end_of(t, at) - at) &&
                          find_word(t, at, end_of(t, at), "unreleased", true) == SIZE_MAX;
    for (size_t next = is_title ? next_line(t, at) : t->len; next < t->len; next = next_line(t, next))
        if (heading_of(t, next)) return next;
    return at;
}

/* How most of its items begin that tell of something new; "Add" where none does. */
static const char *verb_of(const base_buf *t)
{
    static const char *const verbs[] = {"Add", "Added", "add", "added", "Adds", "New", NULL};
    const char *best = "Add";
    uint32_t most = 0;
    for (const char *const *v = verbs; *v; v++) {
        uint32_t n = 0;
        for (size_t at = 0; at < t->len; at = next_line(t, at)) {
            const size_t from = at + marker_of(t, at), len = strlen(*v);
            n += from > at && from + len < t->len && !memcmp(t->data + from, *v, len) &&
                 t->data[from + len] == ' ';
        }
        if (n > most) best = *v, most = n;
    }
    return best;
}

/* The heading of the first part from `from` to `to` that is called "Added"; `to`: none. */
static size_t find_added(const base_buf *t, size_t from, size_t to)
{
    for (size_t at = from; at < to; at = next_line(t, at))
        if (heading_of(t, at) && find_word(t, at, end_of(t, at), "added", true) != SIZE_MAX) return at;
    return to;
}

/* The first item from `from` to `to`, of a part called "Added" where there is one; `to`: none. */
static size_t first_item(const base_buf *t, size_t from, size_t to)
{
    size_t first = to;
    bool is_added = false;
    for (size_t at = from; at < to; at = next_line(t, at)) {
        const bool is_heading = heading_of(t, at) > 0;
        if (is_heading) is_added = find_word(t, at, end_of(t, at), "added", true) != SIZE_MAX;
        if (is_heading || !marker_of(t, at) || is_rule(t, at)) continue;
        if (is_added) return at;
        if (first == to) first = at;
    }
    return first;
}

/* A list's newest part: bytes [body, end) behind its heading; depth 0: the list has no headings, and is one part. */
typedef struct section {
    size_t depth, body, end;
} section;

static section newest_section(const base_buf *t)
{
    const size_t heading = first_section(t);
    section s = {.depth = heading < t->len ? heading_of(t, heading) : 0};
    if (s.depth) s.body = next_line(t, heading);
    if (s.depth && s.body < t->len && is_rule(t, s.body)) s.body = next_line(t, s.body);
    s.end = s.body;
    while (s.end < t->len && !(s.depth && heading_of(t, s.end) && heading_of(t, s.end) <= s.depth))
        s.end = next_line(t, s.end);
    while (s.depth && s.body < s.end && is_blank(t, s.body)) s.body = next_line(t, s.body);
    return s;
}

static void find_item(
    const char *path, const base_buf *t, const char *name, const char *request, tool_mention *ret)
{
    const section s = newest_section(t);
    const size_t item = first_item(t, s.body, s.end), any = item < s.end ? item : first_item(t, 0, t->len),
                 added = find_added(t, 0, t->len);
    /* Other sections have a part for what is added, and this one has none yet. */
    const bool is_new_part = s.depth && added < t->len && find_added(t, s.body, s.end) == s.end;
    const bool is_beside = item < s.end && !is_new_part && !(says(request, "top") && !s.depth);
    ret->at = ret->to = is_beside ? item : s.depth ? s.body : 0;
    if (is_beside && says_nothing(t, item)) ret->to = next_line(t, item);
    ret->ends = is_beside ? "\n" : "\n\n";
    if (is_new_part) base_buf_add(&ret->begins, t->data + added, first_item(t, added, t->len) - added);
    if (any < t->len)
        base_buf_add(&ret->begins, t->data + any, marker_of(t, any));
    else
        base_buf_puts(&ret->begins, "- ");
    const char *mark = mark_of(path, t);
    base_buf_printf(&ret->begins, "%s %s%s%s", verb_of(t), mark, name, mark);
}

/* --- beside a neighbour ---------------------------------------------------------------------------------- */

/* Is it the first word of its line, behind marks ("- `a.name`", "### name", "| name")? *ret: where it begins. */
static bool begins_with(const base_buf *t, size_t at, const char *word, size_t *ret)
{
    const size_t end = end_of(t, at);
    *ret = find_word(t, at, end, word, false);
    for (size_t i = at; *ret != SIZE_MAX && i < *ret; i++) {
        const char c = t->data[i];
        const bool is_qualifier =
            is_word_byte(c) && memchr(t->data + i, '.', *ret - i) && !memchr(t->data + i, ' ', *ret - i);
        if (!strchr(" \t-*+#|`[(.", c) && !is_qualifier) return false;
    }
    return *ret != SIZE_MAX;
}

/* "name     # what it is": as far as the line goes on with blanks and a mark, the new one does, in the same column. */
static void put_gap(
    const base_buf *t, size_t behind, size_t end, const char *old, const char *new, base_buf *out)
{
    size_t i = behind;
    if (i < end && t->data[i] == '`') i++;
    const size_t blanks = i;
    while (i < end && t->data[i] == ' ') i++;
    const size_t n = i - blanks, n_old = strlen(old), n_new = strlen(new);
    if (!n || i >= end || !strchr("#-:|=", t->data[i])) return;
    if (blanks > behind) base_buf_putc(out, '`');
    const size_t wanted = n + n_old > n_new ? n + n_old - n_new : 1;
    for (size_t k = 0; k < (n > 1 ? wanted : 1); k++) base_buf_putc(out, ' ');
    while (i < end && strchr("#-:|= ", t->data[i])) base_buf_putc(out, t->data[i++]);
}

/* Behind an item's own lines: those that go on with it are indented. */
static size_t behind_item(const base_buf *t, size_t at)
{
    const bool is_item = marker_of(t, at) > 0;
    size_t next = next_line(t, at);
    while (
        is_item && next < t->len && !is_blank(t, next) && strchr(" \t", t->data[next]) && !marker_of(t, next))
        next = next_line(t, next);
    return next;
}

static bool find_beside(const base_buf *t, const char *name, const char *neighbour, tool_mention *ret)
{
    bool in_code = false;
    for (size_t at = 0, word; at < t->len; at = next_line(t, at)) {
        if (is_fence(t, at)) in_code = !in_code;
        if (!begins_with(t, at, neighbour, &word)) continue;
        const size_t depth = in_code ? 0 : heading_of(t, at), end = end_of(t, at);
        const bool is_entry =
            depth || in_code || marker_of(t, at) || t->data[at] == '|' || t->data[at] == '`';
        /* A program that calls it is no list of what there is. */
        const size_t behind = word + strlen(neighbour);
        if (!is_entry || (in_code && (behind >= end || !memmem(t->data + behind, end - behind, "  ", 2))))
            continue;
        size_t next = depth ? next_line(t, at) : behind_item(t, at);
        while (depth && next < t->len && !(heading_of(t, next) && heading_of(t, next) <= depth))
            next = next_line(t, next);
        ret->at = ret->to = next;
        base_buf_add(&ret->begins, t->data + at, word - at);
        base_buf_puts(&ret->begins, name);
        if (!depth) put_gap(t, behind, end, neighbour, name, &ret->begins);
        ret->ends = depth ? NULL : "\n";
        return true;
    }
    return false;
}

/* "behind a", "next to a": what the request wants it to stand beside, first of all. */
static bool find_said(const base_buf *t, const char *name, const char *const *neighbours, const char *request,
    tool_mention *ret)
{
    for (const char *const *n = neighbours; *n; n++)
        if (strcmp(*n, name) != 0 && says(request, *n) && find_beside(t, name, *n, ret)) return true;
    for (const char *const *n = neighbours; *n; n++)
        if (strcmp(*n, name) != 0 && find_beside(t, name, *n, ret)) return true;
    return false;
}

/* --- a sentence ------------------------------------------------------------------------------------------ */

/* Words of four letters and more that the section shares with the request. */
static uint32_t n_shared(const base_buf *t, size_t from, size_t to, const char *request)
{
    uint32_t n = 0;
    char word[32];
    for (const char *at = request; *at;) {
        size_t len = 0;
        while (is_word_byte(at[len])) len++;
        if (len >= 4 && len < sizeof word) {
            memcpy(word, at, len);
            word[len] = '\0';
            n += find_word(t, from, to, word, true) != SIZE_MAX;
        }
        at += len ? len : 1;
    }
    return n;
}

/* At the end of the section that shares most with the request, or of the text. */
static void find_section(
    const char *path, const base_buf *t, const char *name, const char *request, tool_mention *ret)
{
    size_t best = t->len;
    uint32_t most = 0;
    bool in_code = false;
    for (size_t from = 0, at = 0; at < t->len;) {
        const size_t next = next_line(t, at);
        if (is_fence(t, at)) in_code = !in_code;
        const bool is_end = next == t->len || (!in_code && heading_of(t, next));
        const uint32_t n = is_end ? n_shared(t, from, next, request) : 0;
        if (n > most) best = next, most = n;
        if (is_end) from = next;
        at = next;
    }
    size_t last = best;
    while (last && is_blank(t, line_before(t, last))) last = line_before(t, last);
    ret->at = ret->to = last;
    ret->ends = "\n";
    const char *mark = mark_of(path, t);
    base_buf_printf(&ret->begins, "%s\n%s%s%s",
        t->len && t->data[t->len - 1] != '\n' && last == t->len ? "\n" : "", mark, name, mark);
}

/* --------------------------------------------------------------------------------------------------------- */

void tool__find_mention(const char *path, const base_buf *text, const char *name,
    const char *const *neighbours, const char *request, tool_mention *ret)
{
    *ret = (tool_mention){0};
    if (is_list_of_changes(path))
        find_item(path, text, name, request, ret);
    else if (!find_said(text, name, neighbours, request, ret))
        find_section(path, text, name, request, ret);
    while (ret->begins.data[ret->begins.len - 1] == ' ')
        ret->begins.data[--ret->begins.len] = '\0'; /* words bring one */
    ret->from = ret->at;
    ret->behind = ret->to;
    for (int i = 0; i < SHOWN_BEFORE; i++) ret->from = line_before(text, ret->from);
    for (int i = 0; i < SHOWN_BEHIND; i++) ret->behind = next_line(text, ret->behind);
}

void tool_mention_free(tool_mention *m)
{
    base_buf_free(&m->begins);
    *m = (tool_mention){0};
}
