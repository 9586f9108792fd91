/* New imports (contract: new_imports.h). */
#include "tools/edit/new_imports.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"
#include "tools/edit/import_lines.h"
#include "tools/edit/newcomer.h"
#include "tools/file/text.h"

/* ---- which module ---- */

/* Is there a file of the tree of that path, whatever its ending, or a folder? */
static bool is_path(char *const *paths, const char *path, size_t n)
{
    bool is = false;
    for (size_t i = 0; paths && paths[i] && !is; i++)
        is = !strncmp(paths[i], path, n) && (!paths[i][n] || paths[i][n] == '.' || paths[i][n] == '/');
    return is;
}

/* "../a/b" from the folder of `path`; false: it leads out of the tree. */
static bool resolve(const char *path, const char *said, base_buf *ret)
{
    size_t n = (size_t)(base_path_name(path) - path);
    while (!strncmp(said, "./", 2) || !strncmp(said, "../", 3)) {
        if (said[1] == '.') {
            if (!n) return false;
            for (n--; n && path[n - 1] != '/';) n--;
        }
        said = strchr(said, '/') + 1;
    }
    base_buf_add(ret, path, n);
    base_buf_puts(ret, said);
    return ret->len > 0;
}

/* Python: "pkg.mod" and ".mod" as a path. is_own: the tree has a package, or a module, of its first name. */
static bool is_missing_python(char *const *paths, const char *path, const char *line, size_t n)
{
    const size_t word = strcspn(line, " ") + 1;
    size_t dots = 0, end = word;
    base_buf at = {0};
    while (word + dots < n && line[word + dots] == '.') dots++;
    for (end = word + dots; end < n && (code_is_name_byte(line[end]) || line[end] == '.');) end++;
    char *name = base_xstrndup(line + word + dots, end - word - dots);
    for (char *c = name; *c; c++)
        if (*c == '.') *c = '/';
    const size_t first = strcspn(name, "/");
    bool is = false;
    if (dots) {
        base_buf said = {0};
        base_buf_puts(&said, "./");
        for (size_t i = 1; i < dots; i++) base_buf_puts(&said, "../");
        base_buf_puts(&said, name);
        is = *name && resolve(path, said.data, &at) && !is_path(paths, at.data, at.len);
        base_buf_free(&said);
    } else if (first && name[first]) {
        static const char *const roots[] = {"", "src/", "lib/"};
        bool is_own = false, is_there = false;
        for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
            base_buf_clear(&at);
            base_buf_printf(&at, "%s%s", roots[i], name);
            is_there |= is_path(paths, at.data, at.len);
            is_own |= is_path(paths, at.data, strlen(roots[i]) + first);
        }
        is = is_own && !is_there;
    }
    base_buf_free(&at);
    free(name);
    return is;
}

/* JavaScript: "./mod" in quotes. C: a header in quotes that no file of the tree is called. */
static bool is_missing_quoted(char *const *paths, const char *path, const char *line, size_t n, bool is_c)
{
    const char *open = line, *end = line + n;
    while (open < end && !strchr(is_c ? "\"<" : "\"'", *open)) open++;
    const char *close = open < end ? memchr(open + 1, *open, (size_t)(end - open - 1)) : NULL;
    if (!close || *open == '<') return false;
    char *said = base_xstrndup(open + 1, (size_t)(close - open - 1));
    base_buf at = {0};
    bool is = false;
    if (is_c) {
        is = true;
        const char *name = base_path_name(said);
        for (size_t i = 0; paths && paths[i] && is; i++) is = strcmp(base_path_name(paths[i]), name) != 0;
    } else if (*said == '.' && resolve(path, said, &at)) {
        is = !is_path(paths, at.data, at.len);
        char *dot = at.len > 3 ? strrchr(base_path_name(at.data), '.') : NULL;
        if (is && dot) is = !is_path(paths, at.data, (size_t)(dot - at.data)); /* "./a.js" of a.ts */
    }
    base_buf_free(&at);
    free(said);
    return is;
}

static bool is_missing(tool_workspace *w, const char *path, const char *line, size_t n)
{
    const char *language = code_language(path, "", 0);
    const bool is_python = tool__is_language(language, "python"), is_c = tool__is_language(language, "c");
    const bool is_script = tool__is_language(language, "javascript") ||
                           tool__is_language(language, "typescript") || tool__is_language(language, "tsx");
    if (!is_python && !is_c && !is_script) return false;
    char **paths = code_index_paths(tool_workspace_index(w));
    const bool is =
        is_python ? is_missing_python(paths, path, line, n) : is_missing_quoted(paths, path, line, n, is_c);
    code_index_paths_free(paths);
    return is;
}

/* ---- where it stands ---- */

/* Where the statement that begins at `from` ends: with its brackets closed. */
static size_t statement_end(const base_buf *text, size_t from)
{
    int depth = 0;
    for (size_t at = from; at < text->len; at++) {
        if (strchr("({", text->data[at])) depth++;
        if (strchr(")}", text->data[at])) depth--;
        if (text->data[at] == '\n' && depth <= 0) return at + 1;
    }
    return text->len;
}

static bool has_statement(const base_buf *text, const char *line, size_t n)
{
    bool has = false;
    for (size_t at = 0; at < text->len && !has; at = tool__line_end(text->data, text->len, at) + 1)
        has = text->len - at >= n && !memcmp(text->data + at, line, n);
    return has;
}

/* Takes bytes [from, to) out, and one of two blank lines that then meet. */
static void cut(base_buf *text, size_t from, size_t to)
{
    base_buf out = {0};
    if (from > 1 && to < text->len && text->data[from - 2] == '\n' && text->data[to] == '\n') to++;
    base_buf_add(&out, text->data, from);
    base_buf_add(&out, text->data + to, text->len - to);
    base_buf_free(text);
    *text = out;
}

/* The statement goes to byte `at`, the end of the file's imports, in Go into their brackets; the new end. */
static size_t move_up(const char *language, base_buf *text, size_t at, size_t from, size_t to)
{
    base_buf out = {0};
    char *line = base_xstrndup(text->data + from, to - from);
    cut(text, from, to);
    const bool is_grouped = tool__is_language(language, "go") && at < text->len && text->data[at] == ')';
    base_buf_add(&out, text->data, at);
    base_buf_printf(&out, "%s%s", is_grouped ? "\t" : "", is_grouped ? line + strcspn(line, "\"") : line);
    const size_t end = out.len;
    base_buf_add(&out, text->data + at, text->len - at);
    base_buf_free(text);
    *text = out;
    free(line);
    return end;
}

void tool__settle_imports(
    tool_workspace *w, const char *path, const base_buf *old_text, base_buf *text, base_buf *note)
{
    const char *language = code_language(path, "", 0);
    size_t behind = tool__behind_imports(language, old_text);
    for (size_t at = 0; at < text->len;) {
        const size_t end = tool__line_end(text->data, text->len, at), to = statement_end(text, at);
        const bool is_new = tool__is_import(language, text->data + at, end - at) && to > at &&
                            text->data[to - 1] == '\n' && !has_statement(old_text, text->data + at, to - at);
        if (is_new && is_missing(w, path, text->data + at, end - at)) {
            base_buf_printf(note, "Left out: \"%.*s\", of a module that the tree has not. ",
                (int)(end - at < 80 ? end - at : 80), text->data + at);
            cut(text, at, to);
            continue;
        }
        if (is_new && behind && at > behind) behind = move_up(language, text, behind, at, to);
        at = tool__line_end(text->data, text->len, at) + 1;
    }
}
