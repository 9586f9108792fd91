/*
 * Where a source file of any bytes writes a name: every place lies inside, at the name. Input: a byte that chooses the
 * language, the name, a NUL byte, the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/uses.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define require(holds) ((holds) ? (void)0 : abort())

static void check(const code_uses *u, const char *text, size_t n, const char *name)
{
    const size_t len = strlen(name);
    for (uint32_t i = 0; i < u->n_uses; i++) {
        const code_use *x = &u->uses[i];
        require(x->from < n && len <= n - x->from && !memcmp(text + x->from, name, len));
        require(i == 0 || u->uses[i - 1].from <= x->from);
        require(x->line >= 1 && x->object && x->holder && x->callee);
        require(x->definition == UINT32_MAX || x->definition < u->file->n_definitions);
        require(x->inside == UINT32_MAX || x->inside < u->file->n_definitions);
        require(x->import == UINT32_MAX || x->import < u->n_imports);
        require(x->binding == UINT32_MAX || x->binding < n);
    }
    for (uint32_t i = 0; i < u->n_imports; i++) {
        const code_import *x = &u->imports[i];
        require(x->from <= x->to && x->to <= n && x->module && x->name && x->local);
    }
    for (uint32_t i = 0; i < u->n_bases; i++) require(u->bases[i].name && u->bases[i].base);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const paths[] = {"a.c", "a.cc", "a.py", "a.js", "a.ts", "a.tsx", "a.go", "a.rs",
        "a.java", "a.rb", "a.php", "a.cs", "a.sh", "a.lua", "a.h", "a"};
    static code_grammars *g;
    if (!g) g = code_grammars_open();
    if (!n || n > 1 << 16) return 0;
    const char *path = paths[*bytes++ & 15];
    n--;
    char *name = scratch_part(&bytes, &n);
    char *text = malloc(n ? n : 1); /* exactly as long as the text */
    if (!text) abort();
    memcpy(text, bytes, n);
    code_uses *u = *name ? code_uses_find(g, path, text, n, name) : NULL;
    if (u) check(u, text, n, name);
    for (uint32_t i = 0; u && i < u->n_uses && i < 8; i++) {
        code_item_list l;
        if (!code_items(g, path, text, n, u->uses[i].from + (uint32_t)strlen(name), &l)) continue;
        require(l.from <= l.to && l.to < n);
        for (uint32_t k = 0; k < l.n; k++) {
            require(l.items[k].from >= l.from && l.items[k].from <= l.items[k].to && l.items[k].to <= l.to);
            require(k == 0 || l.items[k - 1].to <= l.items[k].from);
        }
        free(l.items);
    }
    code_uses_free(u);
    free(text);
    free(name);
    return 0;
}
