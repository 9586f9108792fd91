/*
 * A line scanner, not a markdown parser: what small models write is often not quite markdown, and nothing may be lost on the
 * way to the screen. Only the marks that were understood are taken away (** around bold, ` around code, # of a heading).
 */
#include "tui/markdown.h"

#include <ctype.h>
#include <string.h>

/* Words that most languages in a working tree share; sorted for bsearch would buy nothing at this size. */
static const char *const keywords[] = {"auto", "bool", "break", "case", "catch", "char", "class", "const",
    "continue", "def", "default", "del", "do", "double", "elif", "else", "enum", "except", "export",
    "extends", "extern", "false", "False", "finally", "float", "fn", "for", "from", "func", "function", "if",
    "impl", "import", "in", "int", "interface", "lambda", "let", "long", "match", "mut", "new", "None", "not",
    "null", "NULL", "package", "pass", "private", "protected", "pub", "public", "raise", "return", "self",
    "short", "signed", "sizeof", "static", "struct", "super", "switch", "this", "throw", "true", "True",
    "try", "type", "typedef", "union", "unsigned", "use", "var", "void", "while", "with", "yield"};

static bool is_keyword(const char *s, size_t n)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strlen(keywords[i]) == n && !memcmp(keywords[i], s, n)) return true;
    return false;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static void code_line(tui_flow *f, const char *s, size_t n)
{
    static const tui_style word = {TUI_TEXT, TUI_BOLD}, comment = {TUI_TEXT, TUI_DIM}, string = {TUI_OK, 0};
    size_t i = 0;
    while (i < n) {
        size_t from = i;
        if ((s[i] == '/' && i + 1 < n && (s[i + 1] == '/' || s[i + 1] == '*')) ||
            (s[i] == '#' && (i == 0 || s[i - 1] == ' '))) {
            bool directive = s[i] == '#' && i + 1 < n &&
                             (!strncmp(s + i, "#include", 8) || !strncmp(s + i, "#define", 7) ||
                                 !strncmp(s + i, "#if", 3));
            tui_flow_add(f, directive ? word : comment, s + i, n - i);
            return;
        }
        if (s[i] == '"' || s[i] == '\'') {
            char quote = s[i++];
            while (i < n && s[i] != quote) i += s[i] == '\\' && i + 1 < n ? 2 : 1;
            if (i < n) i++;
            tui_flow_add(f, string, s + from, i - from);
        } else if (is_word(s[i])) {
            while (i < n && is_word(s[i])) i++;
            tui_flow_add(f, is_keyword(s + from, i - from) ? word : TUI_PLAIN, s + from, i - from);
        } else {
            while (i < n && !is_word(s[i]) && s[i] != '"' && s[i] != '\'' && s[i] != '/' && s[i] != '#') i++;
            if (i == from) i++;
            tui_flow_add(f, TUI_PLAIN, s + from, i - from);
        }
    }
}

/* Bold and code spans; a mark without its partner stays. */
static void prose_line(tui_flow *f, tui_style base, const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        const char *mark = s[i] == '`' ? "`" : i + 1 < n && s[i] == '*' && s[i + 1] == '*' ? "**" : NULL;
        if (mark) {
            size_t m = strlen(mark);
            const char *end = i + m < n ? memmem(s + i + m, n - i - m, mark, m) : NULL;
            if (end && end > s + i + m) {
                tui_style style = base;
                if (m == 1)
                    style.role = TUI_TOOL;
                else
                    style.attr |= TUI_BOLD;
                tui_flow_add(f, style, s + i + m, (size_t)(end - (s + i + m)));
                i = (size_t)(end - s) + m;
                continue;
            }
            tui_flow_add(f, base, s + i, m);
            i += m;
            continue;
        }
        size_t from = i;
        while (i < n && s[i] != '`' && !(s[i] == '*' && i + 1 < n && s[i + 1] == '*')) i++;
        tui_flow_add(f, base, s + from, i - from);
    }
}

static size_t fence_length(const char *s, size_t n)
{
    size_t blanks = 0, ticks = 0;
    while (blanks < n && blanks < 4 && s[blanks] == ' ') blanks++;
    while (blanks + ticks < n && s[blanks + ticks] == '`') ticks++;
    return ticks >= 3 ? blanks + ticks : 0;
}

void tui_markdown(tui_text *out, int width, const char *first, const char *rest, tui_style prefix_style,
    const char *s, size_t n)
{
    tui_flow f = {.text = out, .width = width, .first = first, .rest = rest, .prefix_style = prefix_style};
    bool fenced = false;
    for (size_t at = 0; at < n;) {
        const char *line = s + at, *end = memchr(line, '\n', n - at);
        size_t length = end ? (size_t)(end - line) : n - at;
        at += length + 1;
        size_t fence = fence_length(line, length);
        if (fence) {
            fenced = !fenced;
            continue;
        }
        if (fenced) {
            f.code = true;
            tui_flow_puts(&f, TUI_PLAIN, "  ");
            code_line(&f, line, length);
            tui_flow_line(&f);
            f.code = false;
            continue;
        }
        size_t hashes = 0;
        while (hashes < length && line[hashes] == '#') hashes++;
        bool heading = hashes > 0 && hashes <= 6 && hashes < length && line[hashes] == ' ';
        if (heading)
            prose_line(&f, TUI_STRONG, line + hashes + 1, length - hashes - 1);
        else
            prose_line(&f, TUI_PLAIN, line, length);
        tui_flow_line(&f);
    }
    tui_flow_end(&f);
}

void tui_diff_lines(tui_text *out, int width, const char *prefix, const char *s, size_t n, size_t max_lines)
{
    static const tui_style added = {TUI_OK, 0}, removed = {TUI_ERR, 0}, place = {TUI_TOOL, 0};
    tui_flow f = {.text = out, .width = width, .first = prefix, .rest = prefix, .code = true};
    size_t lines = 0;
    const char *file = memmem(s, n, "\n+++ ", 5);
    bool one_file =
        !file || !memmem(file + 5, n - (size_t)(file + 5 - s), "\n+++ ", 5); /* it is named above the diff */
    for (size_t at = 0; at < n;) {
        const char *line = s + at, *end = memchr(line, '\n', n - at);
        size_t length = end ? (size_t)(end - line) : n - at;
        at += length + 1;
        bool header = length >= 4 && (!memcmp(line, "--- ", 4) || !memcmp(line, "+++ ", 4));
        if (header && one_file) continue;
        if (lines++ >= max_lines) {
            size_t left = 1;
            for (size_t i = at; i < n; i++) left += s[i] == '\n';
            base_buf b = {0};
            base_buf_printf(&b, "... %zu more lines, Ctrl+O shows them", left);
            tui_flow_add(&f, TUI_FAINT, b.data, b.len);
            tui_flow_line(&f);
            base_buf_free(&b);
            break;
        }
        tui_style style = header                   ? TUI_FAINT
                          : length && *line == '+' ? added
                          : length && *line == '-' ? removed
                          : length && *line == '@' ? place
                                                   : TUI_PLAIN;
        tui_flow_add(&f, style, line, length);
        tui_flow_line(&f);
    }
    tui_flow_end(&f);
}
