/*
 * "encode should escape names, by a helper": a small model writes the helper, calls it nowhere and says "Fixed". So functions
 * that are new in this turn's text and that nothing uses are told, but for one that the request asks for by its name.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/asked/turn_files.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

enum { MOST_NAMES = 4, MOST_FILES = 4000, MAX_FILE = 1 << 20 };

/* Called by the language or by what runs the program, by nobody's text. */
static bool is_called_unseen(const char *name)
{
    static const char *const all[] = {
        "main", "init", "setup", "teardown", "setUp", "tearDown", "constructor", "new", NULL};
    const size_t n = strlen(name);
    bool is = n > 4 && !strncmp(name, "__", 2) && !strcmp(name + n - 2, "__");
    for (size_t i = 0; all[i]; i++) is |= !strcmp(all[i], name);
    return is;
}

/* The request asks for this function by its name, and not for a use of it: it may stand for others. */
static bool is_asked_for(const agent *a, const char *name)
{
    static const char *const uses[] = {"use", "call", "apply", "invoke", "used", "called", NULL};
    return agent__names_word(a->request, name) && !agent__has_any_word(a->request, uses);
}

/* Names in text[0, n) but for those of its definitions of that name, and what stands inside of these. */
static bool is_used_in(const code_file *parsed, const char *text, size_t n, const char *name)
{
    for (size_t pos = 0, from, to; code_next_identifier(text, n, &pos, &from, &to);) {
        if (to - from != strlen(name) || memcmp(text + from, name, to - from) != 0) continue;
        bool is_own = false;
        for (uint32_t i = 0; i < parsed->n_definitions; i++) {
            const code_definition *d = &parsed->definitions[i];
            is_own |= !strcmp(d->name, name) && d->from <= from && from < d->to;
        }
        if (!is_own) return true;
    }
    return false;
}

static bool is_in_tree(const agent *a, const char *name)
{
    char **paths = code_index_paths(tool_workspace_index(a->workspace));
    bool is = false;
    for (size_t i = 0; paths && paths[i] && i < MOST_FILES && !is; i++) {
        base_buf text = {0};
        if (agent__is_changed(a, paths[i])) continue;
        if (!tool_workspace_read(a->workspace, paths[i], MAX_FILE, &text, NULL) && text.data)
            is = code_has_identifier(text.data, text.len, name);
        base_buf_free(&text);
    }
    code_index_paths_free(paths);
    return is;
}

static bool is_unused(const agent *a, const agent_turn_files *all, const char *name)
{
    bool is = true;
    for (size_t i = 0; i < all->n && is; i++) {
        const agent_turn_file *f = &all->files[i];
        is = !code_has_identifier(f->before, f->n_before, name);
        if (!is || !code_has_identifier(f->code_now, f->n_now, name)) continue;
        code_file *parsed = code_parse(tool_workspace_grammars(a->workspace), f->path, f->code_now, f->n_now);
        is = !is_used_in(parsed, f->code_now, f->n_now, name);
        code_file_free(parsed);
    }
    return is && !is_in_tree(a, name);
}

static void list_file(
    const agent *a, const agent_turn_files *all, const agent_turn_file *f, uint32_t *n, base_buf *out)
{
    code_file *parsed = code_parse(tool_workspace_grammars(a->workspace), f->path, f->now, f->n_now);
    for (uint32_t i = 0; i < parsed->n_definitions && *n < MOST_NAMES; i++) {
        const code_definition *d = &parsed->definitions[i];
        /* A method may be what a type of another library calls. */
        if (strcmp(d->what, "function") != 0 || d->is_declaration || is_called_unseen(d->name) ||
            is_asked_for(a, d->name) || !is_unused(a, all, d->name))
            continue;
        base_buf_printf(out, "%s%s", (*n)++ ? ", " : "", d->name);
    }
    code_file_free(parsed);
}

uint32_t agent__list_unused(const agent *a, base_buf *out)
{
    agent_turn_files all;
    uint32_t n = 0;
    if (!a->asked.change || !a->asked.n_changed || a->asked.is_operation || a->asked.test_alone) return 0;
    agent__turn_files(a, &all);
    for (size_t i = 0; i < all.n; i++)
        if (agent__is_turn_code(&all.files[i]) && all.files[i].n_before)
            list_file(a, &all, &all.files[i], &n, out);
    agent__turn_files_free(&all);
    return n;
}
