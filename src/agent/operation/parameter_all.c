/*
 * "Rename save_order to keep_order": what is to be renamed is no definition of the tree, but functions have a parameter of
 * that name. It is renamed in each of them, since the request names none; in none where they are too many.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "base/mem.h"
#include "code/code.h"

enum { MAX_FILE = 4 << 20 };

typedef struct functions {
    const agent *a;
    const char *parameter, *to;
    agent_listed *found; /* [most] */
    uint32_t n, most;
} functions;

static bool has_parameter(const functions *x, const char *path, const code_definition *d)
{
    char names[REFACTOR_MAX_ITEMS][REFACTOR_NAME_BYTES];
    const size_t n = refactor_parameters(x->a->workspace, path, d->name, d->from, d->to, names);
    for (size_t i = 0; n != SIZE_MAX && i < n; i++)
        if (!strcmp(names[i], x->parameter)) return true;
    return false;
}

static void add_functions_of(functions *x, const char *path)
{
    base_buf text = {0};
    const char *language = code_path_is_test(path) ? NULL : code_language(path, "", 0);
    if (language && !code_language_is_document(language) &&
        !tool_workspace_read(x->a->workspace, path, MAX_FILE, &text, NULL) &&
        code_has_identifier(text.data, text.len, x->parameter)) {
        code_file *f = code_parse(tool_workspace_grammars(x->a->workspace), path, text.data, text.len);
        for (uint32_t i = 0; i < f->n_definitions && x->n < x->most; i++) {
            const code_definition *d = &f->definitions[i];
            if (d->is_declaration || !d->body_to || !has_parameter(x, path, d)) continue;
            base_buf name = {0};
            base_buf_printf(&name, "%s.%s", d->name, x->parameter);
            x->found[x->n++] = (agent_listed){.operation = "rename",
                .name = base_buf_take(&name),
                .to = base_xstrdup(x->to),
                .path = base_xstrdup(path)};
        }
        code_file_free(f);
    }
    base_buf_free(&text);
}

uint32_t agent__list_parameter_everywhere(
    const agent *a, const char *behind, agent_listed *ret, uint32_t most)
{
    static const char *const fillers[] = {
        "the", "parameter", "parameters", "argument", "arguments", "option", "all", "every", NULL};
    static const char *const links[] = {"to", "into", "as", NULL};
    agent_word name = {0}, link;
    do
        if (!agent__next_word(behind, name.to, &name)) return 0;
    while (agent__is_any_word(behind, name, fillers));
    if (agent__is_defined_word(a, behind, name) ||
        !agent__next_word(behind, name.to + strspn(behind + name.to, "`\"'"), &link) ||
        !agent__is_any_word(behind, link, links))
        return 0;
    char *said = agent__copy_word(behind, name), *to = agent__read_destination(behind, link.to, false);
    /* One more shows that there are too many: some of them would be renamed, and others not. */
    agent_listed *found = base_xcalloc(most + 1, sizeof *found);
    functions x = {.a = a, .parameter = said, .to = to, .found = found, .most = most + 1};
    char **paths = to ? code_index_paths(tool_workspace_index(a->workspace)) : NULL;
    for (size_t i = 0; paths && paths[i] && x.n < x.most; i++) add_functions_of(&x, paths[i]);
    code_index_paths_free(paths);
    const bool fits = x.n <= most;
    for (uint32_t i = 0; i < x.n; i++) {
        if (fits)
            ret[i] = found[i];
        else
            agent__listed_free(&found[i]);
    }
    free(found);
    free(said);
    free(to);
    return fits ? x.n : 0;
}
