/* See bench/sessions/called_functions.h. */
#include "bench/sessions/called_functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct function {
    char *name;
    char **arguments;
    size_t n_arguments, cap_arguments;
} function;

typedef struct function_list {
    function *all;
    size_t n, cap;
} function_list;

static function *find_function(function_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->all[i].name, name)) return &list->all[i];
    base_grow(&list->all, &list->cap, list->n + 1, sizeof *list->all);
    list->all[list->n] = (function){.name = base_xstrdup(name)};
    return &list->all[list->n++];
}

static void add_argument(function *f, const char *name)
{
    for (size_t i = 0; i < f->n_arguments; i++)
        if (!strcmp(f->arguments[i], name)) return;
    base_grow(&f->arguments, &f->cap_arguments, f->n_arguments + 1, sizeof *f->arguments);
    f->arguments[f->n_arguments++] = base_xstrdup(name);
}

static void add_call(function_list *list, const base_json *call)
{
    const char *name = base_json_str(call, "name", ""), *arguments = base_json_str(call, "arguments", "{}");
    base_json_doc *doc = NULL;
    if (!*name || base_json_parse(arguments, strlen(arguments), &doc, NULL)) return;
    function *f = find_function(list, name);
    for (const base_json *a = base_json_root(doc)->first; a; a = a->next)
        if (a->key) add_argument(f, a->key);
    base_json_free(doc);
}

void functions_add(const base_json *sessions, base_buf *out)
{
    function_list list = {0};
    for (const base_json *s = sessions ? sessions->first : NULL; s; s = s->next) {
        const base_json *messages = base_json_get(s, "traj");
        for (const base_json *m = messages ? messages->first : NULL; m; m = m->next) {
            const base_json *calls = base_json_get(m, "tool_calls");
            for (const base_json *c = calls ? calls->first : NULL; c; c = c->next)
                add_call(&list, base_json_get(c, "function"));
        }
    }
    base_buf_puts(out,
        "# Functions\n\nA call is a JSON object with a function's name and its arguments, between tags:\n"
        "<tool_call>\n{\"name\": <name>, \"arguments\": <arguments>}\n</tool_call>\n\n");
    for (size_t i = 0; i < list.n; i++) {
        function *f = &list.all[i];
        base_buf_printf(out, "- %s(", f->name);
        for (size_t k = 0; k < f->n_arguments; k++) {
            base_buf_printf(out, "%s%s", k ? ", " : "", f->arguments[k]);
            free(f->arguments[k]);
        }
        base_buf_puts(out, ")\n");
        free(f->arguments);
        free(f->name);
    }
    free(list.all);
}
