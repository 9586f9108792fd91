/* Which file a module's name means, and whether what it gives under a name is the target. */
#include "tools/refactor/resolve_work.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/path.h"

enum { MAX_DEPTH = 6 };

static const char *listed(const refactor *x, const char *path)
{
    bool found;
    const size_t at = tool__listing_find(&x->w->listing, path, &found);
    return found ? x->w->listing.files[at].path : NULL;
}

static const char *with_endings(const refactor *x, const char *stem, const char *const *endings)
{
    base_buf path = {0};
    const char *found = NULL;
    for (; *endings && !found; endings++) {
        base_buf_clear(&path);
        base_buf_printf(&path, "%s%s", stem, **endings == '/' && !*stem ? *endings + 1 : *endings);
        found = listed(x, path.data);
    }
    base_buf_free(&path);
    return found;
}

const char *refactor__module_path(const refactor *x, const refactor_file *f, const char *module)
{
    static const char *const js[] = {"", ".js", ".ts", ".tsx", ".jsx", ".mjs", ".cjs", ".d.ts", "/index.js",
        "/index.ts", "/index.tsx", NULL};
    static const char *const py[] = {".py", "/__init__.py", ".pyi", NULL};
    const char *found = NULL;
    if (f->language->family == REFACTOR_JS) {
        if (*module != '.') return NULL;
        char *stem = refactor__join_path(f->path, module);
        if (!stem) return NULL;
        found = with_endings(x, stem, js);
        char *dot = strrchr(stem, '.');
        if (!found && dot &&
            (!strcmp(dot, ".js") || !strcmp(dot, ".mjs"))) { /* TypeScript imports what it becomes */
            *dot = '\0';
            found = with_endings(x, stem, js);
        }
        free(stem);
        return found;
    }
    if (f->language->family != REFACTOR_PYTHON) return NULL;
    base_buf stem = {0};
    size_t dots = strspn(module, ".");
    for (size_t i = 1; i < dots; i++) base_buf_puts(&stem, "../");
    for (const char *p = module + dots; *p; p++) base_buf_putc(&stem, *p == '.' ? '/' : *p);
    if (!stem.data) base_buf_puts(&stem, "");
    if (dots) {
        char *path = refactor__join_path(f->path, stem.data);
        if (path) found = with_endings(x, path, py);
        free(path);
    } else if (stem.len) {
        found = with_endings(x, stem.data, py);
        /* Below src/, lib/ or beside the file that says it. */
        for (size_t i = 0; i < x->w->listing.n && !found; i++)
            for (const char *const *end = py; *end && !found; end++) {
                base_buf path = {0};
                base_buf_printf(&path, "%s%s", stem.data, *end);
                if (refactor__ends_with_path(x->w->listing.files[i].path, path.data))
                    found = x->w->listing.files[i].path;
                base_buf_free(&path);
            }
    }
    base_buf_free(&stem);
    return found;
}

bool refactor__defines_top(const refactor_file *f, const char *name)
{
    const code_file *file = f->uses->file;
    for (uint32_t i = 0; i < f->uses->n_uses; i++) {
        const code_use *u = &f->uses->uses[i];
        if (u->definition == UINT32_MAX || u->binding != UINT32_MAX || u->import != UINT32_MAX) continue;
        const code_definition *d = &file->definitions[u->definition];
        if (refactor__is_nested(file, d)) continue;
        if (!strcmp(d->name, name) && strcmp(d->what, "method") != 0 && strcmp(d->what, "field") != 0)
            return true;
    }
    return false;
}

bool refactor__comes_from(refactor *x, const char *path, const char *name, int depth)
{
    if (!path || depth > MAX_DEPTH) return false;
    if (!strcmp(path, x->target.in->path)) return !strcmp(name, x->target.name);
    const refactor_file *f = refactor__module(x, path);
    if (!f) return false;
    if (!strcmp(name, x->target.name) && refactor__defines_top(f, name)) return false;
    for (uint32_t i = 0; i < f->uses->n_imports; i++) {
        const code_import *m = &f->uses->imports[i];
        const bool is_all = !strcmp(m->name, "*");
        if (!is_all && (strcmp(m->local, name) != 0 || !*m->name)) continue;
        if (refactor__comes_from(
                x, refactor__module_path(x, f, m->module), is_all ? name : m->name, depth + 1))
            return true;
    }
    return false;
}

/* Go: is this import path the target's folder? */
static bool is_target_package(refactor *x, const char *module)
{
    const char *path = x->target.in->path;
    char *folder = base_xstrndup(path, base_path_folder_length(path));
    if (!x->go_module) {
        tool_file file = {0};
        x->go_module = base_xstrdup("");
        if (!tool__file_read(&x->w->root, "go.mod", TOOL_MAX_INDEXED, &file, NULL) && file.text.len) {
            const char *line = strstr(file.text.data, "module ");
            if (line) {
                free(x->go_module);
                x->go_module = base_xstrndup(line + 7, strcspn(line + 7, " \t\r\n"));
            }
        }
        tool__file_free(&file);
    }
    bool is_it;
    if (*x->go_module) {
        const size_t n = strlen(x->go_module);
        is_it = !strncmp(module, x->go_module, n) &&
                (*folder ? module[n] == '/' && !strcmp(module + n + 1, folder) : !module[n]);
    } else {
        is_it = *folder && refactor__ends_with_path(module, folder);
    }
    free(folder);
    return is_it;
}

bool refactor__is_package(refactor *x, const refactor_file *f, const char *local)
{
    size_t n;
    const char *package = refactor__package(x->target.in, &n);
    for (uint32_t i = 0; i < f->uses->n_imports; i++) {
        const code_import *m = &f->uses->imports[i];
        const bool has_no_name = !strcmp(m->local, base_path_name(m->module));
        const bool is_it = has_no_name && package ? strlen(local) == n && !strncmp(local, package, n)
                                                  : !strcmp(m->local, local);
        if (is_it && is_target_package(x, m->module)) return true;
    }
    return false;
}

bool refactor__is_dotted(refactor *x, const refactor_file *f)
{
    for (uint32_t i = 0; i < f->uses->n_imports; i++)
        if (!strcmp(f->uses->imports[i].local, ".") && is_target_package(x, f->uses->imports[i].module))
            return true;
    return false;
}

const code_import *refactor__import_of(const refactor_file *f, const char *local)
{
    const code_import *found = NULL;
    for (uint32_t i = 0; i < f->uses->n_imports; i++)
        if (!strcmp(f->uses->imports[i].local, local) && !f->uses->imports[i].is_export)
            found = &f->uses->imports[i];
    return found;
}

bool refactor__java_import_is(const refactor_target *t, const char *module)
{
    base_buf path = {0};
    for (const char *p = module; *p; p++) base_buf_putc(&path, *p == '.' ? '/' : *p);
    base_buf_puts(&path, ".java");
    bool is_it = path.data && refactor__ends_with_path(t->in->path, path.data);
    if (!is_it && *t->parent) { /* a.Outer.Inner */
        const size_t n = strlen(module), m = strlen(t->parent) + strlen(t->name) + 1;
        is_it = n > m && !strncmp(module + n - m, t->parent, strlen(t->parent)) &&
                module[n - strlen(t->name) - 1] == '.';
    }
    base_buf_free(&path);
    return is_it;
}
