/*
 * Editing by whole characters (a base with its combining marks). Keys are rows of a table, as in any shell:
 * Ctrl+A/E/K/U/W/Y, word moves, Home and End.
 */
#include "tui/input/editor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tui/terminal/keys.h"

enum { FOLD_BYTES = 600, FOLD_LINES = 6, MAX_TEXT = 16 << 20 };

static const char *bytes_of(const tui_editor *e)
{
    return e->text.data ? e->text.data : "";
}

static void forget_pastes(tui_editor *e)
{
    for (size_t i = 0; i < e->n_pastes; i++) {
        free(e->pastes[i].marker);
        free(e->pastes[i].text);
    }
    e->n_pastes = 0;
}

void tui_editor_free(tui_editor *e)
{
    forget_pastes(e);
    free(e->pastes);
    base_buf_free(&e->text);
    base_buf_free(&e->killed);
    *e = (tui_editor){0};
}

bool tui_editor_empty(const tui_editor *e)
{
    return e->text.len == 0;
}

void tui_editor_set(tui_editor *e, const char *text)
{
    forget_pastes(e);
    base_buf_clear(&e->text);
    base_buf_puts(&e->text, text ? text : "");
    e->cursor = e->text.len;
}

void tui_editor_insert(tui_editor *e, const char *s, size_t n)
{
    if (n == 0 || n > MAX_TEXT || e->text.len > MAX_TEXT - n) return;
    base_buf_reserve(&e->text, n + 1);
    memmove(e->text.data + e->cursor + n, e->text.data + e->cursor, e->text.len - e->cursor);
    memcpy(e->text.data + e->cursor, s, n);
    e->text.len += n;
    e->text.data[e->text.len] = 0;
    e->cursor += n;
}

static void erase(tui_editor *e, size_t from, size_t to, bool keep)
{
    if (to <= from) return;
    if (keep) {
        base_buf_clear(&e->killed);
        base_buf_add(&e->killed, e->text.data + from, to - from);
    }
    memmove(e->text.data + from, e->text.data + to, e->text.len - to);
    e->text.len -= to - from;
    e->text.data[e->text.len] = 0;
    e->cursor = from;
}

void tui_editor_paste(tui_editor *e, const char *s, size_t n)
{
    /* Terminals send line ends of a paste as carriage returns. */
    base_buf b = {0};
    size_t lines = 1;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '\r') {
            if (i + 1 < n && s[i + 1] == '\n') continue;
            c = '\n';
        }
        lines += c == '\n';
        if (c != 0) base_buf_putc(&b, c);
    }
    if (b.len > 0 && b.data[b.len - 1] == '\n') lines--;
    if (b.len < FOLD_BYTES && lines <= FOLD_LINES) {
        base_buf plain = {0};
        base_utf8_sanitise(&plain, b.data ? b.data : "", b.len, true);
        tui_editor_insert(e, plain.data ? plain.data : "", plain.len);
        base_buf_free(&plain);
        base_buf_free(&b);
        return;
    }
    char marker[80];
    if (e->n_pastes == 0)
        snprintf(marker, sizeof marker, "[pasted %zu lines]", lines);
    else
        snprintf(marker, sizeof marker, "[pasted %zu lines, %zu]", lines, e->n_pastes + 1);
    base_grow(&e->pastes, &e->cap_pastes, e->n_pastes + 1, sizeof *e->pastes);
    size_t length = b.len;
    e->pastes[e->n_pastes++] =
        (tui_paste){.marker = base_xstrdup(marker), .text = base_buf_take(&b), .n = length};
    tui_editor_insert(e, marker, strlen(marker));
}

char *tui_editor_peek(const tui_editor *e)
{
    base_buf out = {0};
    const char *s = bytes_of(e);
    while (*s) {
        const tui_paste *found = NULL;
        if (*s == '[')
            for (size_t i = 0; i < e->n_pastes && !found; i++)
                if (!strncmp(s, e->pastes[i].marker, strlen(e->pastes[i].marker))) found = e->pastes + i;
        if (found) {
            base_buf_add(&out, found->text, found->n);
            s += strlen(found->marker);
        } else {
            base_buf_putc(&out, *s++);
        }
    }
    return base_buf_take(&out);
}

char *tui_editor_take(tui_editor *e)
{
    char *text = tui_editor_peek(e);
    tui_editor_set(e, "");
    return text;
}

/* --- moving --------------------------------------------------------------------------------------------- */

static size_t after(const tui_editor *e, size_t at)
{
    int width;
    return at < e->text.len ? at + tui_next_glyph(e->text.data + at, e->text.len - at, &width) : at;
}

static size_t before(const tui_editor *e, size_t at)
{
    size_t from = at > 64 ? at - 64 : 0, last = 0; /* a character with its marks is far shorter */
    while (from > 0 && ((unsigned char)e->text.data[from] & 0xc0) == 0x80) from--; /* a letter's first byte */
    for (size_t i = from; i < at; i = after(e, i)) last = i;
    return at > 0 ? last : 0;
}

static size_t line_start(const tui_editor *e, size_t at)
{
    while (at > 0 && e->text.data[at - 1] != '\n') at--;
    return at;
}

static size_t line_end(const tui_editor *e, size_t at)
{
    while (at < e->text.len && e->text.data[at] != '\n') at++;
    return at;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

static size_t word_left(const tui_editor *e, size_t at)
{
    while (at > 0 && is_blank(e->text.data[at - 1])) at--;
    while (at > 0 && !is_blank(e->text.data[at - 1])) at--;
    return at;
}

static size_t word_right(const tui_editor *e, size_t at)
{
    while (at < e->text.len && is_blank(e->text.data[at])) at++;
    while (at < e->text.len && !is_blank(e->text.data[at])) at++;
    return at;
}

static bool do_left(tui_editor *e)
{
    e->cursor = before(e, e->cursor);
    return true;
}

static bool do_right(tui_editor *e)
{
    e->cursor = after(e, e->cursor);
    return true;
}

static bool do_home(tui_editor *e)
{
    e->cursor = line_start(e, e->cursor);
    return true;
}

static bool do_end(tui_editor *e)
{
    e->cursor = line_end(e, e->cursor);
    return true;
}

static bool do_word_left(tui_editor *e)
{
    e->cursor = word_left(e, e->cursor);
    return true;
}

static bool do_word_right(tui_editor *e)
{
    e->cursor = word_right(e, e->cursor);
    return true;
}

/* To the cursor's column in the line that begins at `to`, or to its end where it is shorter. */
static void move_to_line(tui_editor *e, size_t to)
{
    const size_t start = line_start(e, e->cursor), end = line_end(e, to);
    const int column = tui_columns(e->text.data + start, e->cursor - start);
    for (int x = 0, width; to < end && x < column; x += width)
        to += tui_next_glyph(e->text.data + to, end - to, &width);
    e->cursor = to;
}

/* In the first line up is not the editor's key (it means history), in the last one down is not. */
static bool do_up(tui_editor *e)
{
    const size_t start = line_start(e, e->cursor);
    if (start > 0) move_to_line(e, line_start(e, start - 1));
    return start > 0;
}

static bool do_down(tui_editor *e)
{
    const size_t end = line_end(e, e->cursor);
    if (end < e->text.len) move_to_line(e, end + 1);
    return end < e->text.len;
}

/* --- changing ------------------------------------------------------------------------------------------- */

static bool do_backspace(tui_editor *e)
{
    for (size_t i = 0; i < e->n_pastes; i++) {
        size_t n = strlen(e->pastes[i].marker);
        if (e->cursor >= n && !memcmp(e->text.data + e->cursor - n, e->pastes[i].marker, n)) {
            erase(e, e->cursor - n, e->cursor, false);
            return true;
        }
    }
    erase(e, before(e, e->cursor), e->cursor, false);
    return true;
}

static bool do_delete(tui_editor *e)
{
    erase(e, e->cursor, after(e, e->cursor), false);
    return true;
}

static bool do_kill_end(tui_editor *e)
{
    size_t end = line_end(e, e->cursor);
    erase(e, e->cursor, end == e->cursor ? after(e, end) : end, true);
    return true;
}

static bool do_kill_start(tui_editor *e)
{
    erase(e, line_start(e, e->cursor), e->cursor, true);
    return true;
}

static bool do_kill_word(tui_editor *e)
{
    erase(e, word_left(e, e->cursor), e->cursor, true);
    return true;
}

static bool do_yank(tui_editor *e)
{
    if (e->killed.len) tui_editor_insert(e, e->killed.data, e->killed.len);
    return true;
}

static bool do_newline(tui_editor *e)
{
    tui_editor_insert(e, "\n", 1);
    return true;
}

static const struct {
    uint32_t key;
    bool (*run)(tui_editor *e);
} keymap[] = {
    {TUI_KEY_LEFT, do_left},
    {TUI_CTRL('b'), do_left},
    {TUI_KEY_RIGHT, do_right},
    {TUI_CTRL('f'), do_right},
    {TUI_KEY_HOME, do_home},
    {TUI_CTRL('a'), do_home},
    {TUI_KEY_END, do_end},
    {TUI_CTRL('e'), do_end},
    {TUI_KEY_WORD_LEFT, do_word_left},
    {TUI_KEY_WORD_RIGHT, do_word_right},
    {TUI_KEY_UP, do_up},
    {TUI_KEY_DOWN, do_down},
    {TUI_KEY_BACKSPACE, do_backspace},
    {TUI_CTRL('h'), do_backspace},
    {TUI_KEY_DELETE, do_delete},
    {TUI_CTRL('k'), do_kill_end},
    {TUI_CTRL('u'), do_kill_start},
    {TUI_CTRL('w'), do_kill_word},
    {TUI_KEY_ALT_BACKSPACE, do_kill_word},
    {TUI_CTRL('y'), do_yank},
    {TUI_KEY_NEWLINE, do_newline},
    {TUI_KEY_ALT_ENTER, do_newline},
};

bool tui_editor_key(tui_editor *e, uint32_t key)
{
    if (!e->text.data) base_buf_puts(&e->text, "");
    for (size_t i = 0; i < sizeof keymap / sizeof *keymap; i++)
        if (keymap[i].key == key) return keymap[i].run(e);
    if (key < 0x20 || key == 0x7f || (key >= 0x80 && key < 0xa0) || key >= TUI_KEY_FIRST) return false;
    char s[4];
    tui_editor_insert(e, s, base_utf8_encode(key, s));
    return true;
}

base_str tui_editor_word(const tui_editor *e)
{
    size_t from = e->cursor;
    while (from > 0 && !is_blank(e->text.data[from - 1])) from--;
    return (base_str){.ptr = bytes_of(e) + from, .len = e->cursor - from};
}

void tui_editor_replace_word(tui_editor *e, const char *s)
{
    base_str word = tui_editor_word(e);
    if (word.len) erase(e, e->cursor - word.len, e->cursor, false);
    tui_editor_insert(e, s, strlen(s));
}

/* --- painting ------------------------------------------------------------------------------------------- */

enum { MAX_DRAWN = 64 << 10 };

/* Where the text ends as it is broken at a width, and where its cursor is; cells from the top left. */
typedef struct layout {
    int lines, cursor_x, cursor_y;
} layout;

/* fn, unless it is NULL, gets each character: the n bytes at `at`, which stand at cell (x, y). */
typedef void each_fn(void *user, size_t at, size_t n, int x, int y);
static layout lay_out(const tui_editor *e, int width, each_fn *fn, void *user)
{
    layout ret = {0};
    int x = 0, y = 0;
    if (width < 2) width = 2;
    const size_t n = e->text.len < MAX_DRAWN ? e->text.len : MAX_DRAWN;
    for (size_t at = 0, used; at < n; at += used) {
        int columns;
        const char c = e->text.data[at];
        used = tui_next_glyph(e->text.data + at, n - at, &columns);
        if (c == '\n' || c == '\t') used = 1;
        if (c == '\t') columns = 1;
        if (c != '\n' && x + columns > width) x = 0, y++;
        if (at == e->cursor) ret.cursor_x = x, ret.cursor_y = y;
        if (c == '\n') {
            x = 0;
            y++;
            continue;
        }
        if (fn) fn(user, at, used, x, y);
        x += columns;
    }
    if (e->cursor >= n) {
        if (x >= width) x = 0, y++;
        ret.cursor_x = x;
        ret.cursor_y = y;
    }
    ret.lines = y + 1;
    return ret;
}

int tui_editor_height(const tui_editor *e, int width)
{
    return lay_out(e, width, NULL, NULL).lines;
}

typedef struct painting {
    const tui_editor *e;
    tui_area area;
    int skip; /* lines that are scrolled out at the top */
} painting;

static void paint(void *user, size_t at, size_t n, int x, int y)
{
    painting *p = user;
    const char *s = p->e->text.data + at;
    tui_put_n(p->area, x, y - p->skip, TUI_PLAIN, *s == '\t' ? " " : s, n);
}

void tui_editor_draw(
    const tui_editor *e, tui_area a, const char *prompt, tui_style prompt_style, bool focused)
{
    const int indent = tui_columns(prompt, strlen(prompt));
    tui_put(a, 0, 0, prompt_style, prompt);
    painting p = {.e = e, .area = tui_area_within(a, indent, 0, a.width - indent, a.height)};
    const layout l = lay_out(e, p.area.width, NULL, NULL);
    p.skip = l.cursor_y >= a.height ? l.cursor_y - a.height + 1 : 0;
    lay_out(e, p.area.width, paint, &p);
    if (focused && p.area.width > 0 && p.area.height > 0) {
        a.grid->cursor_x = p.area.x + (l.cursor_x < p.area.width ? l.cursor_x : p.area.width - 1);
        a.grid->cursor_y = p.area.y + l.cursor_y - p.skip;
    }
}
