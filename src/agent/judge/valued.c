/*
 * Values that a request gives, as a judge (values.h): a program that checks them runs in front of the tests that
 * were found for the changed file, as one command, so that a person is asked once and sees all of it. Where they do
 * not hold, that is the verdict. Where the program itself cannot run in this tree, it says nothing and is dropped.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/judge/judge.h"
#include "agent/session/tell.h"
#include "agent/words/values.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { MAX_FILE = 1 << 20 };

void agent__forget_values(agent *a)
{
    free(a->test.plain);
    a->test.plain = NULL;
    a->test.has_values = a->test.drops_values = a->test.drops_plain = false;
    a->test.hold = a->test.of = 0;
    free(a->test.miss);
    a->test.miss = NULL;
    for (size_t i = 0; i < a->test.n_unfit; i++) free(a->test.unfit[i]);
    free(a->test.unfit);
    a->test.unfit = NULL;
    a->test.n_unfit = 0;
    free(a->test.why_none);
    a->test.why_none = NULL;
}

/* --- where the values are tried ------------------------------------------------------------------------- */

/* "humanize.ordinal(3)": a package's name that the tree does not define in front of a name that it does. */
static void drop_package(const code_index *x, agent_value *v)
{
    const size_t n = strspn(v->left, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    size_t skip = v->left[n] == '.' ? 1 : !strncmp(v->left + n, "::", 2) ? 2 : 0;
    if (!skip || !strncmp(v->left, "new ", 4)) return;
    char *first = base_xstrndup(v->left, n);
    const char *second = v->left + n + skip;
    size_t m = 0;
    while (code_is_name_byte(second[m])) m++;
    char *name = base_xstrndup(second, m);
    if (!code_index_is_defined(x, first) && code_index_is_defined(x, name)) {
        char *rest = base_xstrdup(second);
        free(v->left);
        v->left = rest;
    }
    free(first);
    free(name);
}

/* The first name of a call: "Option" of "new Option('-a').isBoolean()". */
static char *root_of(const agent_value *v)
{
    const char *p = !strncmp(v->left, "new ", 4) ? v->left + 4 : v->left;
    size_t n = 0;
    while (code_is_name_byte(p[n])) n++;
    return base_xstrndup(p, n);
}

/*
 * The file that defines a root of the values outside of all types, the changed one first; false: it is a member
 * only, which is called on nothing here. Undefined is fine: it is to be added to the changed file.
 */
static bool find_root(const code_index *x, const char *root, const char *changed, char **ret)
{
    code_place *places = NULL;
    const uint32_t n = code_index_define(x, root, &places);
    const code_place *found = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const code_place *p = &places[i];
        const bool fits = !p->is_declaration && !code_path_is_test(p->path) && !*p->parent &&
                          base_path_same_ending(p->path, changed);
        if (fits && (!found || !strcmp(p->path, changed))) found = p;
    }
    if (found) *ret = base_xstrdup(found->path);
    code_places_free(places, n);
    return found || !n;
}

/* The definition that was written last, where it is called by its name alone; the caller frees; NULL. */
static char *written_function(const agent *a, const code_index *x, const char *changed)
{
    char *path = NULL;
    const bool is_one = a->fix.name && a->fix.path && !strcmp(a->fix.path, changed) &&
                        !strpbrk(a->fix.name, ".:") && strncasecmp(a->fix.name, "test", 4) &&
                        find_root(x, a->fix.name, changed, &path) && path;
    free(path);
    return is_one ? base_xstrdup(a->fix.name) : NULL;
}

/* "package humanize" of Go, "package a.b;" of Java: the name, NULL: none. Import lines of Go's behind *imports. */
static char *package_of(const char *path, const char *text, base_buf *imports)
{
    const bool is_go = base_ends_with(path, ".go"), is_java = base_ends_with(path, ".java");
    char *package = NULL;
    bool in_block = false;
    for (const char *line = text; line && *line && (is_go || is_java);) {
        const size_t n = strcspn(line, "\n");
        const char *word = line + strspn(line, " \t");
        if (!package && !strncmp(word, "package ", 8)) {
            word += 8 + strspn(word + 8, " ");
            package = base_xstrndup(
                word, strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789."));
        } else if (is_go && !strncmp(word, "import (", 8)) {
            in_block = true;
        } else if (in_block && *word == ')') {
            in_block = false;
        } else if (is_go && (in_block || !strncmp(word, "import ", 7)) &&
                   memchr(word, '"', n - (size_t)(word - line))) {
            const char *from = in_block ? word : word + 7;
            base_buf_printf(imports, "%.*s\n", (int)(line + n - from), from);
        }
        line += n + (line[n] == '\n');
    }
    return package ? package : is_java ? base_xstrdup("") : NULL;
}

/* --- the program ---------------------------------------------------------------------------------------- */

/* The program over these values, tried at `path` or where their names are defined; nothing: none can be made. */
static void put_program(
    const agent *a, const char *path, agent_value *values, uint32_t n, bool is_control, base_buf *out)
{
    const code_index *x = tool_workspace_index(a->workspace);
    char *where = NULL, *function = written_function(a, x, path), *package = NULL;
    base_buf text = {0}, imports = {0}, init = {0}, beside = {0};
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        agent_value v = values[i];
        char *root = NULL, *at = NULL;
        if (v.is_call) drop_package(x, &v);
        values[i] = v;
        if (v.is_call) root = root_of(&v);
        const bool is_good = v.is_call ? find_root(x, root, path, &at) : function != NULL;
        const char *wanted_at = at ? at : path;
        if (is_good && !n_kept) where = base_xstrdup(wanted_at);
        if (is_good && !strcmp(wanted_at, where)) { /* to the front */
            values[i] = values[n_kept];
            values[n_kept++] = v;
        }
        free(root);
        free(at);
    }
    if (n_kept && !tool_workspace_read(a->workspace, where, MAX_FILE, &text, NULL)) {
        package = package_of(where, text.data ? text.data : "", &imports);
        base_buf_printf(&init, "%.*s__init__.py", (int)(base_path_name(where) - where), where);
        const agent_values_place place = {.path = where,
            .package = package,
            .imports = imports.data,
            .function = function,
            .in_package =
                strchr(where, '/') && !tool_workspace_read(a->workspace, init.data, MAX_FILE, &beside, NULL)};
        if (!agent_values_program(is_control ? NULL : values, is_control ? 0 : n_kept, &place, out))
            base_buf_clear(out);
    }
    free(where);
    free(function);
    free(package);
    base_buf_free(&text);
    base_buf_free(&imports);
    base_buf_free(&init);
    base_buf_free(&beside);
}

static void make_program(const agent *a, const char *path, bool is_control, base_buf *out)
{
    agent_value values[AGENT_MAX_VALUES];
    const uint32_t n = a->request ? agent_values_find(a->request, values) : 0;
    if (n) put_program(a, path, values, n, is_control, out);
    agent_values_free(values, n);
}

void agent__add_values(agent *a, const char *path)
{
    base_buf program = {0};
    if (a->test.drops_values || a->fix.wanted || a->asked.test || code_path_is_test(path)) return;
    make_program(a, path, false, &program);
    if (program.len) {
        base_buf both = {0};
        if (a->test.command)
            base_buf_printf(&both, "(\n%s) || exit 1\n%s", program.data, a->test.command);
        else
            base_buf_add(&both, program.data, program.len);
        a->test.plain = a->test.command;
        a->test.command = base_buf_take(&both);
        a->test.has_values = a->test.is_found = true;
    }
    base_buf_free(&program);
}

/* --- what they say -------------------------------------------------------------------------------------- */

/* The values' part of the command, which is its beginning. */
static char *values_alone(const agent *a)
{
    if (!a->test.plain) return base_xstrdup(a->test.command);
    const size_t behind = strlen(a->test.plain) + strlen(") || exit 1\n");
    return base_xstrndup(a->test.command + 2, strlen(a->test.command) - 2 - behind);
}

void agent__drop_plain(agent *a)
{
    char *alone = values_alone(a);
    free(a->test.command);
    free(a->test.plain);
    a->test.command = alone;
    a->test.plain = NULL;
    a->test.drops_plain = true;
}

static void drop_values(agent *a, const char *why)
{
    agent__notice(a, "the values of the request cannot be checked here: %s", why);
    free(a->test.command);
    a->test.command = a->test.plain;
    a->test.plain = NULL;
    a->test.has_values = false;
    a->test.drops_values = true;
    a->test.of = 0;
}

/* The first line of the output that tells of a value which does not hold. */
static void note_miss(agent *a, const char *output)
{
    static const char mark[] = ", and should ";
    const char *at = output ? strstr(output, mark) : NULL, *from = at;
    free(a->test.miss);
    a->test.miss = NULL;
    if (!at) return;
    while (from > output && from[-1] != '\n') from--;
    a->test.miss = base_xstrndup(from, strcspn(from, "\n"));
}

bool agent__values_judge(agent *a, const tool_result *run)
{
    base_buf output = {0}, control = {0};
    uint32_t hold, of;
    a->test.of = 0;
    bool is_verdict = true;
    if (agent_values_count(run->text.data, &hold, &of)) {
        a->test.hold = hold;
        a->test.of = of;
        is_verdict = hold < of;
        note_miss(a, is_verdict ? run->text.data : NULL);
        if (is_verdict) agent__notice(a, "checked by values of the request: %u of %u hold", hold, of);
    } else {
        /* Nothing was said: can such a program run in this tree at all? */
        const char *path = a->fix.path ? a->fix.path : a->asked.n_changed ? a->asked.changed[0] : "";
        make_program(a, path, true, &control);
        if (!control.len || agent__fails_without(a, control.data, &output)) {
            while (output.len && isspace((unsigned char)output.data[output.len - 1]))
                output.data[--output.len] = '\0';
            const char *line =
                output.len ? strrchr(output.data, '\n') : NULL; /* what went wrong stands at the end */
            drop_values(a, line         ? line + 1
                           : output.len ? output.data
                                        : "the program made of them does not run");
            is_verdict = false;
        }
    }
    base_buf_free(&output);
    base_buf_free(&control);
    return is_verdict;
}

void agent__values_hold(agent *a, const tool_result *run)
{
    char *alone = values_alone(a);
    base_buf output = {0};
    uint32_t hold, of;
    if (agent_values_count(run->text.data, &hold, &of)) {
        a->test.hold = hold;
        a->test.of = of;
    }
    const bool was_so = !agent__fails_without(a, alone, &output);
    if (was_so && agent_values_count(output.data, &hold, &of)) {
        agent__notice(a, "the values of the request hold without the change too: they say nothing of it");
        a->test.of = 0;
    } else {
        agent__notice(a, "checked by values of your request: %u of %u", a->test.hold, a->test.of);
    }
    free(alone);
    base_buf_free(&output);
}
