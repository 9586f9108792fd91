/*
 * "Prepare release 1.2.0: bump the version": the version stands in files that such a request mostly does not name, and a small model
 * writes a function instead. The program finds the lines that give it and writes the new one, a file a call.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { MAX_FILE = 1 << 20, MOST_FILES = 6 };

/* A number of at least two parts at byte `at`, "v1.2.0-rc1" too: its end, behind the v; 0: none begins there. */
static size_t read_number(const char *s, size_t at, size_t *ret_from)
{
    size_t parts = 0;
    if (at && (isalnum((unsigned char)s[at - 1]) || strchr("._-", s[at - 1]))) return 0;
    at += s[at] == 'v' || s[at] == 'V';
    *ret_from = at;
    while (isdigit((unsigned char)s[at])) {
        while (isdigit((unsigned char)s[at])) at++;
        parts++;
        if (s[at] != '.' || !isdigit((unsigned char)s[at + 1])) break;
        at++;
    }
    if (parts < 2) return 0;
    while (
        isalnum((unsigned char)s[at]) || (s[at] && strchr("-+.", s[at]) && isalnum((unsigned char)s[at + 1])))
        at++;
    return at;
}

/* The version that the request orders; false: it orders none. */
static bool read_order(const char *request, base_str *ret)
{
    static const char *const orders[] = {
        "bump", "release", "set the version", "raise the version", "change the version", "version to", NULL};
    static const char *const leads[] = {"release", "version", "to", "bump", "as", NULL};
    agent_word before;
    size_t from, to = 0;
    if (!agent__has_any_word(request, orders)) return false;
    for (size_t i = 0; request[i]; i++) {
        to = read_number(request, i, &from);
        if (!to) continue;
        *ret = (base_str){request + from, to - from};
        if (agent__word_before(request, i, &before) && agent__is_any_word(request, before, leads))
            return true;
    }
    return false;
}

/* "version", "__version__" and "VERSION", not "meson_version": does it end at byte `to` of the line that begins at `from`? */
static bool is_version_word(const char *text, size_t from, size_t to)
{
    static const char word[] = "version";
    while (to > from && text[to - 1] == '_') to--;
    size_t at = to;
    while (at > from && (isalnum((unsigned char)text[at - 1]))) at--;
    while (at > from && text[at - 1] == '_') at--;
    const size_t n = to - at, lead = strspn(text + at, "_");
    const bool is_joined = at > from && (isalnum((unsigned char)text[at - 1]) || strchr(".-", text[at - 1]));
    return n - lead == sizeof word - 1 && !is_joined && !strncasecmp(text + at + lead, word, sizeof word - 1);
}

/* The number that the file's first line of the form `version = "1.2.3"` gives; false: none does. */
static bool find_given(const base_buf *text, base_str *ret)
{
    for (size_t line = 0; line < text->len;) {
        const char *end = memchr(text->data + line, '\n', text->len - line);
        const size_t to = end ? (size_t)(end - text->data) : text->len;
        size_t at = line;
        while (at < to) { /* behind the word only what gives it: quotes, a colon, "=" */
            size_t word = at, from, number;
            while (word < to && !isalpha((unsigned char)text->data[word]) && text->data[word] != '_') word++;
            size_t behind = word;
            while (behind < to && (isalnum((unsigned char)text->data[behind]) || text->data[behind] == '_'))
                behind++;
            const size_t gap = behind + strspn(text->data + behind, "\"' \t:=,([");
            const size_t blanks =
                strspn(text->data + behind, " \t"); /* "since version 1.0" gives none; CMake's VERSION does */
            const bool is_given = gap > behind + blanks || (behind > word && text->data[word] == 'V');
            if (is_given && behind > word && gap > behind && gap < to &&
                is_version_word(text->data, line, behind) &&
                (number = read_number(text->data, gap, &from)) != 0 && number <= to) {
                *ret = (base_str){text->data + from, number - from};
                return true;
            }
            at = behind > at ? behind : at + 1;
        }
        line = to + 1;
    }
    return false;
}

/* The version with which the file is published, and no dependency's: by its name. */
static bool may_give(const char *path)
{
    static const char *const names[] = {"__version__.py", "_version.py", "version.py", "__about__.py",
        "__init__.py", "setup.py", "setup.cfg", "pyproject.toml", "package.json", "Cargo.toml", "meson.build",
        "CMakeLists.txt", "version.go", "version.js", "version.ts", "version.rs", "VERSION", NULL};
    const char *name = base_path_name(path);
    bool is = false;
    for (const char *const *n = names; *n; n++) is |= !strcmp(name, *n);
    return is && !code_path_is_test(path);
}

/* The first file that gives the old version, `*old` where one is known; with its text and what it becomes. The caller frees; NULL: none. */
static char *find_file(const agent *a, base_str new, char **old, base_buf *ret_text, base_buf *ret_new)
{
    static const char *const manifests[] = {"pyproject.toml", "setup.py", "setup.cfg", "package.json",
        "Cargo.toml", "meson.build", "CMakeLists.txt", NULL};
    char **paths = code_index_paths(tool_workspace_index(a->workspace)), *found = NULL;
    size_t n_paths = 0;
    while (paths && paths[n_paths]) n_paths++;
    for (size_t i = 0; !found && (i < n_paths || manifests[i - n_paths]); i++) {
        const char *path = i < n_paths ? paths[i] : manifests[i - n_paths];
        base_str given = {0};
        base_buf_clear(ret_text);
        if (!may_give(path) || tool_workspace_read(a->workspace, path, MAX_FILE, ret_text, NULL) ||
            !ret_text->len || !find_given(ret_text, &given) ||
            (given.len == new.len && !memcmp(given.ptr, new.ptr, new.len)) ||
            (*old && (strlen(*old) != given.len || memcmp(*old, given.ptr, given.len) != 0)))
            continue;
        if (!*old) *old = base_xstrndup(given.ptr, given.len);
        const size_t at = (size_t)(given.ptr - ret_text->data);
        base_buf_add(ret_new, ret_text->data, at);
        base_buf_add(ret_new, new.ptr, new.len);
        base_buf_add(ret_new, given.ptr + given.len, ret_text->len - at - given.len);
        found = base_xstrdup(path);
    }
    code_index_paths_free(paths);
    return found;
}

bool agent__open_version(agent *a, const char *request, agent_opening *opening)
{
    agent_asked *x = &a->asked;
    base_buf text = {0}, bumped = {0};
    base_str new;
    if (!x->change || x->refused || x->test_alone || x->n_bumped >= MOST_FILES || a->fix.wanted ||
        a->info.strong || a->settings.mode == AGENT_MODE_PLAN || !read_order(request, &new))
        return false;
    char *path = find_file(a, new, &x->old_version, &text, &bumped);
    if (path) {
        x->n_bumped++;
        agent__forget_meant(a); /* no function is to be written for it */
        agent__open_edit(a, path, &text, &bumped, opening);
        if (!model_tools_are_marked(a->info.tools) && !model_tools_are_xml(a->info.tools))
            base_buf_puts(&opening->call, "```\n");
    }
    const bool is_open = path != NULL;
    free(path);
    base_buf_free(&text);
    base_buf_free(&bumped);
    return is_open;
}
