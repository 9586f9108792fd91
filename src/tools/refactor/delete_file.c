/* delete, of a whole file: it goes, and what names it or imports from it is listed and stays. */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

enum { MAX_LISTED = 12 };

bool refactor__is_file(tool_workspace *w, const char *name)
{
    bool is_listed = false;
    if (code_index_is_defined(tool_workspace_index(w), name) || tool__workspace_list(w, NULL, NULL))
        return false;
    tool__listing_find(&w->listing, name, &is_listed);
    return is_listed;
}

/* Bytes [from, to) of a line are the name of the file: not a part of a longer one. */
static bool is_whole_name(const base_buf *text, size_t from, size_t to)
{
    const char *s = text->data;
    const char before = from ? s[from - 1] : '\n', behind = to < text->len ? s[to] : '\n';
    const bool goes_on = behind == '.' && to + 1 < text->len && code_is_name_byte(s[to + 1]);
    return !code_is_name_byte(before) && !strchr("-.", before) && !code_is_name_byte(behind) &&
           behind != '-' && !goes_on;
}

static size_t find_name(const base_buf *text, const char *name)
{
    const size_t n = strlen(name);
    for (size_t at = 0; at + n <= text->len;) {
        const char *found = memmem(text->data + at, text->len - at, name, n);
        if (!found) return SIZE_MAX;
        at = (size_t)(found - text->data);
        if (is_whole_name(text, at, at + n)) return at;
        at += n;
    }
    return SIZE_MAX;
}

/* How imports call the file: its name without the ending, or its folder's where that is what they name. The caller frees; NULL: nothing. */
static char *module_name(const char *path)
{
    static const char *const folders[] = {"__init__", "index", "mod"};
    const char *name = base_path_name(path), *language = code_language(path, "", 0);
    if (!language || code_language_is_document(language) || !strrchr(name, '.')) return NULL;
    const size_t n = (size_t)(strrchr(name, '.') - name);
    for (size_t i = 0; i < sizeof folders / sizeof *folders && name > path; i++) {
        if (strlen(folders[i]) != n || memcmp(folders[i], name, n) != 0) continue;
        const char *end = name - 1, *from = end;
        while (from > path && from[-1] != '/') from--;
        return base_xstrndup(from, (size_t)(end - from));
    }
    return base_xstrndup(name, n);
}

/* A line that brings something in from the module. */
static size_t find_import(const base_buf *text, const char *module)
{
    static const char *const words[] = {"import", "from", "require", "mod", "use"};
    for (size_t at = 0; at < text->len;) {
        const size_t end = tool__line_end(text->data, text->len, at);
        base_buf line = {0};
        base_buf_add(&line, text->data + at, end - at);
        bool is_import = false;
        for (size_t i = 0; i < sizeof words / sizeof *words && line.len; i++)
            is_import |= code_has_identifier(line.data, line.len, words[i]);
        is_import = is_import && code_has_identifier(line.data, line.len, module);
        base_buf_free(&line);
        if (is_import) return at;
        at = end + 1;
    }
    return SIZE_MAX;
}

/* The first line of every other file that names it. Returns how many files there are. */
static size_t list_mentions(tool_workspace *w, const char *path, base_buf *out)
{
    const char *name = base_path_name(path);
    char *module = module_name(path);
    size_t n = 0;
    for (size_t i = 0; i < w->listing.n; i++) {
        const char *other = w->listing.files[i].path;
        const char *language = code_language(other, "", 0);
        tool_file file;
        if (!strcmp(other, path) || tool__file_read(&w->root, other, TOOL_MAX_INDEXED, &file, NULL)) continue;
        const bool is_code = language && !code_language_is_document(language);
        const bool is_text = file.text.len && !tool__is_binary(file.text.data, file.text.len);
        size_t at = is_text ? find_name(&file.text, name) : SIZE_MAX;
        if (at == SIZE_MAX && is_text && is_code && module) at = find_import(&file.text, module);
        if (at != SIZE_MAX && n++ < MAX_LISTED) {
            base_buf_puts(out, n > 1 ? ", " : "");
            tool__path_show(out, other);
            base_buf_printf(out, ":%zu", tool__line_of(file.text.data, at));
        }
        tool__file_free(&file);
    }
    free(module);
    return n;
}

bool refactor__delete_file(
    tool_workspace *w, const char *path, tool_changes *ret, base_buf *headline, tool_result *result)
{
    tool_file file;
    base_buf say = {0}, mentions = {0}, gone = {0};
    if (tool__file_read(&w->root, path, TOOL_MAX_FILE, &file, NULL)) {
        tool__say(result, TOOL_REFUSED,
            "%s cannot be read, or is too large to be kept for an undo. Nothing was changed.\n", path);
        return false;
    }
    const bool is_binary = file.text.len && tool__is_binary(file.text.data, file.text.len);
    if (is_binary) {
        tool__say(result, TOOL_REFUSED,
            "%s is no text, which nothing here can show: delete it yourself. Nothing was changed.\n", path);
        tool__file_free(&file);
        return false;
    }
    const size_t n = list_mentions(w, path, &mentions);
    tool__changes_add(ret, path, &file, &gone);
    ret->all[ret->n - 1]->removes = true;
    base_buf_printf(headline, "delete the file %s", path);
    base_buf_printf(&say, "deleted the file %s.\n", path);
    const size_t at = say.len;
    if (n)
        base_buf_printf(&say, "%zu file%s still name%s it: %s%s\n", n, n == 1 ? "" : "s", n == 1 ? "s" : "",
            mentions.data, n > MAX_LISTED ? ", ..." : "");
    if (say.len > at) ret->notice = base_xstrdup(say.data + at);
    ret->say = base_buf_take(&say);
    base_buf_free(&mentions);
    tool__file_free(&file);
    return true;
}
