/* Fixtures of pytest that a new test uses (contract: fixtures.h). */
#include "tools/edit/fixtures.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/uses.h"
#include "tools/edit/definition.h"
#include "tools/file/safe_path.h"
#include "tools/file/text.h"

enum { MOST_FIXTURES = 64 };

typedef struct fixtures {
    char *names[MOST_FIXTURES];
    uint32_t n;
} fixtures;

static void add(fixtures *f, const char *name, size_t n)
{
    if (n && f->n < MOST_FIXTURES) f->names[f->n++] = base_xstrndup(name, n);
}

/* "@pytest.fixture", "@fixture(scope='module')" above a function, with other decorators between them. */
static void read_fixtures(const base_buf *text, fixtures *ret)
{
    bool is_fixture = false;
    int depth = 0; /* of a decorator's brackets */
    for (size_t at = 0; at < text->len;) {
        const size_t end = tool__line_end(text->data, text->len, at);
        size_t from = at;
        while (from < end && isspace((unsigned char)text->data[from])) from++;
        const char *line = text->data + from;
        const size_t n = end - from;
        const bool is_async = n > 6 && !memcmp(line, "async ", 6);
        const size_t skip = is_async ? 10 : 4;
        for (size_t i = 0; i < n && (depth || *line == '@'); i++)
            depth += (line[i] == '(') - (line[i] == ')');
        if (n && *line == '@') {
            is_fixture |= memmem(line, n, "fixture", 7) && !memmem(line, n, "usefixtures", 11) &&
                          !memmem(line, n, "name=", 5); /* called otherwise than its function */
        } else if (n > skip && !memcmp(line + skip - 4, "def ", 4)) {
            size_t k = skip;
            while (k < n && code_is_name_byte(line[k])) k++;
            if (is_fixture) add(ret, line + skip, k - skip);
            is_fixture = false;
        } else if (n && !depth && *line != ')' && *line != '#') {
            is_fixture = false;
        }
        at = end + 1;
    }
}

static void find_fixtures(tool_workspace *w, const char *path, const base_buf *text, fixtures *ret)
{
    static const char *const own[] = {"tmp_path", "tmpdir", "monkeypatch", "capsys", "capfd", "caplog",
        "recwarn", "tmp_path_factory", NULL};
    for (const char *const *name = own; *name; name++) add(ret, *name, strlen(*name));
    read_fixtures(text, ret);
    for (size_t n = strlen(path) + 1; n-- > 0;) {
        if (n && path[n - 1] != '/') continue;
        base_buf at = {0};
        tool_file f = {0};
        base_buf_printf(&at, "%.*sconftest.py", (int)n, path);
        if (strcmp(at.data, path) != 0 && !tool__file_read(&w->root, at.data, TOOL_MAX_FILE, &f, NULL))
            read_fixtures(&f.text, ret);
        tool__file_free(&f);
        base_buf_free(&at);
    }
}

/* Is the name used between the two bytes, as a variable that is none of the function's own? */
static bool is_used(
    tool_workspace *w, const char *path, const base_buf *text, const char *name, uint32_t from, uint32_t to)
{
    code_uses *u = code_uses_find(w->grammars, path, text->data, text->len, name);
    bool is = false, is_other = false;
    for (uint32_t i = 0; u && i < u->n_uses; i++) {
        const code_use *use = &u->uses[i];
        const bool is_inside = use->from >= from && use->from < to;
        is |= is_inside && use->role == CODE_USE_NAME && use->binding == UINT32_MAX && !use->is_call &&
              use->definition == UINT32_MAX;
        is_other |= use->import != UINT32_MAX || (is_inside && use->binding != UINT32_MAX);
    }
    code_uses_free(u);
    return is && !is_other;
}

/* A method of unittest's classes is given nothing. */
static bool is_of_unittest(const code_file *c, const base_buf *text, const code_definition *d)
{
    bool is = false;
    for (uint32_t i = 0; i < c->n_definitions && *d->parent; i++) {
        const code_definition *holder = &c->definitions[i];
        if (strcmp(holder->name, d->parent) != 0) continue;
        const size_t end = tool__line_end(text->data, text->len, holder->name_from);
        is |= memmem(text->data + holder->name_from, end - holder->name_from, "TestCase", 8) != NULL;
    }
    return is;
}

/* One parameter more, behind the others; false: what stands there has no brackets. */
static bool give(tool_workspace *w, const char *path, base_buf *text, uint32_t name_end, const char *name)
{
    code_item_list list;
    base_buf out = {0};
    const bool is = code_items(w->grammars, path, text->data, text->len, name_end, &list);
    if (is) {
        const uint32_t at = list.n ? list.items[list.n - 1].to : list.from;
        base_buf_add(&out, text->data, at);
        base_buf_printf(&out, "%s%s", list.n ? ", " : "", name);
        base_buf_add(&out, text->data + at, text->len - at);
        base_buf_free(text);
        *text = out;
    }
    free(list.items);
    return is;
}

static uint32_t count_name(const base_buf *text, const char *name, size_t n_name)
{
    uint32_t n = 0;
    size_t pos = 0, from, to;
    while (code_next_identifier(text->data, text->len, &pos, &from, &to))
        n += to - from == n_name && !memcmp(text->data + from, name, n_name);
    return n;
}

/* The last parameter that no fixture gives and nothing else in the file names; false: there is none. */
static bool take_stranger(
    tool_workspace *w, const char *path, base_buf *text, uint32_t name_end, const fixtures *known, char **ret)
{
    code_item_list l = {0};
    uint32_t i = 0;
    bool is = false;
    if (code_items(w->grammars, path, text->data, text->len, name_end, &l)) i = l.n;
    while (i-- > 0 && !is) {
        const char *name = text->data + l.items[i].from;
        size_t len = 0;
        while (l.items[i].from + len < l.items[i].to && code_is_name_byte(name[len])) len++;
        is = len && !memchr(name, '=', l.items[i].to - l.items[i].from) && count_name(text, name, len) == 1;
        for (uint32_t k = 0; k < known->n && is; k++)
            is = strncmp(known->names[k], name, len) != 0 || known->names[k][len];
        if (!is) continue;
        *ret = base_xstrndup(name, len);
        const uint32_t cut = i ? l.items[i - 1].to : l.from,
                       end = i || l.n == 1 ? l.items[i].to : l.items[1].from;
        memmove(text->data + cut, text->data + end, text->len - end);
        text->len -= end - cut;
        text->data[text->len] = '\0';
    }
    free(l.items);
    return is;
}

/* A parameter that the model took from somewhere else, an example say. */
static void take_strangers(tool_workspace *w, const char *path, base_buf *text, const char *name,
    const fixtures *known, base_buf *note)
{
    bool is = true;
    while (is) {
        base_buf why = {0};
        char *taken = NULL;
        uint32_t at;
        code_file *c = tool__parse_for(w->grammars, path, text->data, text->len, name);
        is = tool__find_definition(c, path, text, name, &at, &why) && !*c->definitions[at].parent;
        if (is) {
            const code_definition *d = &c->definitions[at];
            is = take_stranger(w, path, text, d->name_from + (uint32_t)strlen(d->name), known, &taken);
            if (is)
                base_buf_printf(note, "No fixture is called %s: it is no parameter of %s. ", taken, d->name);
        }
        free(taken);
        code_file_free(c);
        base_buf_free(&why);
    }
}

void tool__give_fixtures(
    tool_workspace *w, const char *path, base_buf *text, const char *name, base_buf *note)
{
    const char *language = code_language(path, text->data, text->len);
    fixtures all = {0};
    base_buf why = {0};
    uint32_t at;
    if (!language || strcmp(language, "python") != 0 || !code_path_is_test(path) ||
        strncmp(code_last_name(name), "test", 4) != 0)
        return;
    find_fixtures(w, path, text, &all);
    for (uint32_t i = 0; i < all.n; i++) {
        code_file *c = tool__parse_for(w->grammars, path, text->data, text->len, name);
        if (tool__find_definition(c, path, text, name, &at, &why) &&
            !is_of_unittest(c, text, &c->definitions[at])) {
            const code_definition *d = &c->definitions[at];
            if (code_has_identifier(text->data + d->from, d->to - d->from, all.names[i]) &&
                is_used(w, path, text, all.names[i], d->from, d->to) &&
                give(w, path, text, d->name_from + (uint32_t)strlen(d->name), all.names[i]))
                base_buf_printf(note, "%s is a fixture: it is a parameter of %s. ", all.names[i], d->name);
        }
        code_file_free(c);
        base_buf_clear(&why);
    }
    take_strangers(w, path, text, name, &all, note);
    for (uint32_t i = 0; i < all.n; i++) free(all.names[i]);
    base_buf_free(&why);
}
