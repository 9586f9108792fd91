/* The lines of a file that import (contract: import_lines.h). */
#include "tools/edit/import_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"
#include "tools/edit/newcomer.h"
#include "tools/file/text.h"

static bool begins(const char *line, size_t n, const char *with)
{
    size_t m = strlen(with);
    return n >= m && !memcmp(line, with, m);
}

bool tool__is_import(const char *language, const char *line, size_t n)
{
    static const struct {
        const char *language, *with;
    } marks[] = {{"python", "import "}, {"python", "from "}, {"javascript", "import "},
        {"typescript", "import "}, {"tsx", "import "}, {"c", "#include"}, {"cpp", "#include"},
        {"rust", "use "}, {"java", "import "}, {"kotlin", "import "}, {"c_sharp", "using "}, {"php", "use "},
        {"go", "import "}, {"go", "\t\""}, {"ruby", "require"}};
    for (size_t i = 0; language && i < sizeof marks / sizeof *marks; i++)
        if (!strcmp(marks[i].language, language) && begins(line, n, marks[i].with)) return true;
    return language && !strcmp(language, "javascript") && begins(line, n, "const ") &&
           memmem(line, n, "require(", 8) != NULL;
}

size_t tool__behind_imports(const char *language, const base_buf *text)
{
    size_t ret = 0;
    int depth = 0;
    for (size_t at = 0; at < text->len;) {
        size_t end = tool__line_end(text->data, text->len, at);
        bool is_part = depth > 0 || tool__is_import(language, text->data + at, end - at);
        for (size_t i = at; is_part && i < end; i++) {
            if (strchr("({", text->data[i])) depth++;
            if (strchr(")}", text->data[i])) depth--;
        }
        if (depth < 0) depth = 0;
        if (is_part && tool__is_language(language, "go") && text->data[at] == ')') {
            at = end + 1;
            continue; /* a new one stands in front of the group's end */
        }
        if (is_part) ret = end < text->len ? end + 1 : end;
        at = end + 1;
    }
    return ret;
}

void tool__split_imports(const char *language, base_buf *block, base_buf *imports)
{
    base_buf rest = {0};
    bool in_front = true;
    for (size_t at = 0; at < block->len;) {
        size_t end = tool__line_end(block->data, block->len, at), next = end < block->len ? end + 1 : end;
        size_t word = at;
        while (word < end && (block->data[word] == ' ' || block->data[word] == '\t')) word++;
        /* A line of Go's group of imports, whose brackets the file has already. */
        bool is_quoted = tool__is_language(language, "go") && word < end && block->data[word] == '"';
        bool is_one = in_front && (is_quoted || tool__is_import(language, block->data + at, end - at));
        if (in_front && !is_one && !tool__is_blank(block->data, at, end)) in_front = false;
        if (is_quoted && is_one) {
            base_buf_putc(imports, '\t');
            base_buf_add(imports, block->data + word, next - word);
        } else if (is_one)
            base_buf_add(imports, block->data + at, next - at);
        else if (!in_front || rest.len)
            base_buf_add(&rest, block->data + at, next - at);
        at = next;
    }
    base_buf_free(block);
    *block = rest;
    if (!block->data) base_buf_puts(block, "");
    if (imports->len && imports->data[imports->len - 1] != '\n') base_buf_putc(imports, '\n');
}

/* Another name of the statement text[at, to), "from x import a, b" or the same in brackets, on lines as its names stand. */
static void append_name(base_buf *text, size_t at, size_t to, const char *name)
{
    size_t last = to;
    while (last > at && tool__is_space(text->data[last - 1])) last--;
    const bool ends_in_comma = text->data[last - 1] == ',';
    const size_t line = tool__line_begin(text->data, last);
    base_buf out = {0};
    base_buf_add(&out, text->data, last);
    if (!ends_in_comma) base_buf_putc(&out, ',');
    if (line > at) { /* each on a line of its own */
        size_t word = line;
        while (word < last && tool__is_space(text->data[word])) word++;
        base_buf_puts(&out, tool__text_style(text->data, text->len).crlf ? "\r\n" : "\n");
        base_buf_add(&out, text->data + line, word - line);
    } else {
        base_buf_putc(&out, ' ');
    }
    base_buf_puts(&out, name);
    if (ends_in_comma && line > at) base_buf_putc(&out, ',');
    base_buf_add(&out, text->data + last, text->len - last);
    base_buf_free(text);
    *text = out;
}

bool tool__import_name(base_buf *text, const char *module, const char *name)
{
    size_t m = strlen(module);
    for (size_t at = 0; at < text->len;) {
        size_t end = tool__line_end(text->data, text->len, at);
        const char *import = memmem(text->data + at, end - at, " import ", 8);
        size_t word = import ? (size_t)(import - text->data) : 0;
        const char *open = import ? memchr(import, '(', end - word) : NULL;
        const char *close = open ? memchr(open, ')', text->len - (size_t)(open - text->data)) : NULL;
        const size_t to = close ? (size_t)(close - text->data) : end;
        bool is_it = import && !open == !close && begins(text->data + at, end - at, "from ") &&
                     word - at > m && !memcmp(text->data + word - m, module, m) &&
                     strchr(". ", text->data[word - m - 1]) && !memchr(text->data + at, '#', to - at) &&
                     !memchr(text->data + at, '\\', to - at) && !memchr(text->data + at, '*', to - at);
        if (is_it) {
            size_t pos = 0, from, to_name; /* used twice, it is imported once */
            while (code_next_identifier(text->data + at, to - at, &pos, &from, &to_name))
                if (to_name - from == strlen(name) && !memcmp(text->data + at + from, name, to_name - from))
                    return false;
            append_name(text, at, to, name);
            return true;
        }
        at = end + 1;
    }
    return false;
}

char *tool__module_name(const char *path)
{
    const bool is_package = !strcmp(base_path_name(path), "__init__.py");
    char *folder = base_path_folder(path);
    const char *name = base_path_name(is_package ? folder : path);
    char *module = base_xstrndup(name, strcspn(name, "."));
    free(folder);
    return module;
}

char *tool__dotted_module(const char *path)
{
    static const char *const roots[] = {"src/", "lib/"};
    base_buf out = {0};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (!strncmp(path, roots[i], strlen(roots[i]))) path += strlen(roots[i]);
    const char *end = path + strlen(path);
    if (base_ends_with(path, "/__init__.py"))
        end -= strlen("/__init__.py");
    else if (base_ends_with(path, ".py"))
        end -= strlen(".py");
    for (; path < end; path++) base_buf_putc(&out, *path == '/' ? '.' : *path);
    return out.len ? base_buf_take(&out) : base_xstrdup("");
}

bool tool__import_from(base_buf *text, const char *module, const char *name)
{
    for (const char *p = module; *p; p++)
        if (!code_is_name_byte(*p) && *p != '.') return false;
    const size_t at = *module ? tool__behind_imports("python", text) : 0;
    base_buf out = {0};
    if (!at) return false; /* a file that imports nothing has another way to its names */
    base_buf_add(&out, text->data, at);
    base_buf_printf(&out, "from %s import %s%s", module, name,
        tool__text_style(text->data, text->len).crlf ? "\r\n" : "\n");
    base_buf_add(&out, text->data + at, text->len - at);
    base_buf_free(text);
    *text = out;
    return true;
}

/* The crate that the line text[at, end) takes names of: "use strsim::{a, b};", "extern crate strsim;"; its length, 0: none. */
static size_t crate_of_line(const char *line, size_t n, const char **ret)
{
    static const char *const others[] = {"std", "core", "alloc", "super", "self", "crate"};
    const size_t skip = begins(line, n, "use ") ? 4 : begins(line, n, "extern crate ") ? 13 : 0;
    size_t m = 0;
    while (skip && skip + m < n && code_is_name_byte(line[skip + m])) m++;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i]) == m && !memcmp(line + skip, others[i], m)) return 0;
    *ret = line + skip;
    return m;
}

bool tool__import_of_crate(base_buf *text, const char *name)
{
    const char *crate = NULL;
    size_t n = 0;
    base_buf line = {0}, all = {0};
    for (size_t at = 0; at < text->len; at = tool__line_end(text->data, text->len, at) + 1) {
        const size_t end = tool__line_end(text->data, text->len, at);
        if (!n) n = crate_of_line(text->data + at, end - at, &crate);
    }
    if (n) base_buf_printf(&line, "use %.*s::%s;", (int)n, crate, name);
    if (n) base_buf_printf(&all, "use %.*s::*;", (int)n, crate);
    const size_t at = n ? tool__behind_imports("rust", text) : 0;
    const bool is_due = at && !memmem(text->data, text->len, all.data, all.len);
    if (is_due) {
        base_buf out = {0};
        base_buf_add(&out, text->data, at);
        base_buf_printf(
            &out, "%s%s", line.data, tool__text_style(text->data, text->len).crlf ? "\r\n" : "\n");
        base_buf_add(&out, text->data + at, text->len - at);
        base_buf_free(text);
        *text = out;
    }
    base_buf_free(&line);
    base_buf_free(&all);
    return is_due;
}
