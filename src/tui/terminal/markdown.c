/*
 * A line scanner, not a markdown parser: what small models write is often not quite markdown, and nothing may
 * be lost on the way to the screen. Only the marks that were understood are taken away (** around bold, `
 * around code, # of a heading).
 */
#include "tui/terminal/markdown.h"

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

void tui_markdown(tui_text *out, int width, const char *s, size_t n)
{
    tui_flow f = {.text = out, .width = width, .first = "", .rest = ""};
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

/* --- diffs ---------------------------------------------------------------------------------------------- */

typedef enum diff_kind { DIFF_FILE, DIFF_PLACE, DIFF_SAME, DIFF_ADDED, DIFF_REMOVED, DIFF_OTHER } diff_kind;

/*
 * What a line is follows from where it stands, never from how it begins: the header of a hunk says how many
 * lines of the old and of the new text follow, and until those are there "--- x" is a removed line "-- x".
 * (POSIX diff -u; git-diff, "unified format".)
 */
typedef struct diff_reader {
    const char *s;
    size_t n, at;
    uint64_t old_left, new_left; /* lines of the hunk that are still to come */
    bool header_goes_on;         /* the line is the second of a file's header */
} diff_reader;

/* "12,7" or "12"; the count, and where it ends. */
static bool read_range(const char **at, const char *end, uint64_t *count)
{
    uint64_t numbers[2] = {0, 1};
    const char *p = *at;
    for (int i = 0; i < 2; i++) {
        const char *from = p;
        for (numbers[i] = 0; p < end && *p >= '0' && *p <= '9' && p - from < 15; p++)
            numbers[i] = numbers[i] * 10 + (uint64_t)(*p - '0');
        if (p == from) return false;
        if (i == 0 && (p == end || *p != ',')) {
            numbers[1] = 1;
            break;
        }
        if (i == 0) p++;
    }
    *at = p;
    *count = numbers[1];
    return true;
}

/* "@@ -12,7 +12,9 @@ ..." */
static bool read_place(diff_reader *r, const char *line, size_t length)
{
    const char *p = line + 4, *end = line + length;
    uint64_t old_count, new_count;
    if (length < 4 || memcmp(line, "@@ -", 4) != 0 || !read_range(&p, end, &old_count)) return false;
    if (end - p < 2 || memcmp(p, " +", 2) != 0) return false;
    p += 2;
    if (!read_range(&p, end, &new_count) || end - p < 3 || memcmp(p, " @@", 3) != 0) return false;
    r->old_left = old_count;
    r->new_left = new_count;
    return true;
}

static diff_kind kind_of(diff_reader *r, const char *line, size_t length)
{
    if (r->header_goes_on) {
        r->header_goes_on = false;
        return DIFF_FILE;
    }
    const char mark = length ? *line : ' ';
    if (mark == '+' && r->new_left) {
        r->new_left--;
        return DIFF_ADDED;
    }
    if (mark == '-' && r->old_left) {
        r->old_left--;
        return DIFF_REMOVED;
    }
    if (mark == ' ' && r->old_left && r->new_left) {
        r->old_left--;
        r->new_left--;
        return DIFF_SAME;
    }
    if (r->old_left || r->new_left) return DIFF_OTHER; /* "\ No newline at end of file" */
    const char *next = line + length + 1;
    const size_t left = r->at < r->n ? r->n - r->at : 0;
    if (length >= 4 && !memcmp(line, "--- ", 4) && left >= 4 && !memcmp(next, "+++ ", 4)) {
        r->header_goes_on = true;
        return DIFF_FILE;
    }
    return read_place(r, line, length) ? DIFF_PLACE : DIFF_OTHER;
}

static bool next_line(diff_reader *r, const char **line, size_t *length, diff_kind *kind)
{
    if (r->at >= r->n) return false;
    *line = r->s + r->at;
    const char *end = memchr(*line, '\n', r->n - r->at);
    *length = end ? (size_t)(end - *line) : r->n - r->at;
    r->at += *length + 1;
    *kind = kind_of(r, *line, *length);
    return true;
}

/* Is this the header's only file, and has the line above the diff named it? */
static bool is_named(const char *s, size_t n, const char *headline)
{
    diff_reader r = {.s = s, .n = n};
    const char *line;
    size_t length, files = 0;
    diff_kind kind;
    bool named = true;
    while (next_line(&r, &line, &length, &kind)) {
        if (kind != DIFF_FILE) continue;
        files++;
        if (length == 13 && !memcmp(line, "--- /dev/null", 13)) continue; /* of a new file */
        named = named && headline && length > 6 && memmem(headline, strlen(headline), line + 6, length - 6);
    }
    return files == 2 && named;
}

bool tui_diff_lines(tui_text *out, int width, const char *prefix, const char *headline, const char *s,
    size_t n, size_t max_lines, base_show_form form)
{
    static const tui_style styles[] = {[DIFF_FILE] = {TUI_TEXT, TUI_DIM},
        [DIFF_PLACE] = {TUI_TOOL, 0},
        [DIFF_SAME] = {TUI_TEXT, 0},
        [DIFF_ADDED] = {TUI_OK, 0},
        [DIFF_REMOVED] = {TUI_ERR, 0},
        [DIFF_OTHER] = {TUI_TEXT, 0}};
    base_buf wrap = {0};
    base_buf_printf(&wrap, "%s>", prefix); /* no line of a diff begins so */
    tui_flow f = {.text = out,
        .width = width,
        .first = prefix,
        .rest = prefix,
        .wrap = wrap.data,
        .prefix_style = TUI_FAINT,
        .code = true};
    const bool without_header = is_named(s, n, headline);
    diff_reader r = {.s = s, .n = n};
    const char *line;
    size_t length, lines = 0;
    diff_kind kind;
    bool whole = true;
    while (next_line(&r, &line, &length, &kind)) {
        if (kind == DIFF_FILE && without_header) continue;
        if (lines++ >= max_lines) {
            size_t left = 1 + (r.at < n && s[n - 1] != '\n');
            for (size_t i = r.at; i < n; i++) left += s[i] == '\n';
            base_buf b = {0};
            base_buf_printf(&b, "... %zu more lines, Ctrl+O shows them", left);
            tui_flow_add(&f, TUI_FAINT, b.data, b.len);
            tui_flow_line(&f);
            base_buf_free(&b);
            whole = false;
            break;
        }
        /* The diff's own mark is no text of the file: a blank that stands alone is not the last of a line. */
        const size_t own = kind == DIFF_SAME || kind == DIFF_ADDED || kind == DIFF_REMOVED ? length > 0 : 0;
        tui_flow_add(&f, styles[kind], line, own);
        tui_flow_show(&f, styles[kind], line + own, length - own, form);
        tui_flow_line(&f);
    }
    tui_flow_end(&f);
    base_buf_free(&wrap);
    return whole;
}

void tui_command_lines(tui_flow *f, tui_style style, const char *s, size_t n, base_show_form form)
{
    for (size_t at = 0; at < n;) {
        const char *end = memchr(s + at, '\n', n - at);
        const size_t length = end ? (size_t)(end - s) + 1 - at : n - at;
        tui_flow_show(f, style, s + at, length, form);
        at += length;
        if (at < n) tui_flow_line(f);
    }
}
