/* Any bytes as a source file of any language: every offset stays inside, chunks ascend, the index takes it and lets it go. */
#include <stdlib.h>
#include <string.h>

#include "code/chunk.h"
#include "code/graph.h"
#include "code/map.h"
#include "code/places.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A macro: the line of the broken promise stands in the trace. */
#define require(holds) ((holds) ? (void)0 : abort())

static void check_file(const code_file *f, size_t n)
{
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        require(d->from <= d->to && d->to <= n && d->body_from <= d->body_to && d->body_to <= n &&
                d->name_from <= n);
        require(i == 0 || f->definitions[i - 1].from <= d->from);
        require(d->line <= d->line_end && d->name != NULL && d->parent != NULL);
    }
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        require(
            a->core_from < a->core_to && a->full_from <= a->full_to && a->core_to <= n && a->full_to <= n);
        require(i == 0 || f->anchors[i - 1].core_from <= a->core_from);
        require(a->definition == UINT32_MAX || a->definition < f->n_definitions);
    }
}

static void check_graph(const code_file *f, const code_graph *x, const char *text, size_t n)
{
    uint64_t edges[CODE_N_EDGE_KINDS] = {0};
    for (uint32_t i = 0; i < x->n_functions; i++) {
        const code_function *fn = &x->functions[i];
        require(fn->from <= fn->to && fn->to <= n && fn->n >= 2 && fn->first + fn->n <= x->n_statements);
        require(fn->definition == UINT32_MAX || fn->definition < f->n_definitions);
        for (int k = 0; k < CODE_N_EDGE_KINDS; k++) edges[k] += fn->edges[k];
    }
    for (uint32_t i = 0; i < x->n_statements; i++) {
        const code_statement *s = &x->statements[i];
        require(s->from <= s->to && s->to <= n && s->function < x->n_functions);
    }
    for (uint32_t i = 0; i < x->n_edges; i++) {
        const code_edge *e = &x->edges[i];
        require(e->from < x->n_statements && e->to < x->n_statements && e->kind < CODE_N_EDGE_KINDS &&
                e->name <= n);
        require(x->statements[e->from].function == x->statements[e->to].function);
        edges[e->kind]--;
    }
    for (int k = 0; k < CODE_N_EDGE_KINDS; k++) require(edges[k] == 0);
    code_feature *features = code_graph_features(f, x, text);
    for (uint32_t i = 0; i < f->n_anchors; i++)
        require(features[i].statement == UINT32_MAX || features[i].statement < x->n_statements);
    free(features);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"a.c", "a.cc", "a.py", "a.js", "a.ts", "a.tsx", "a.go", "a.rs",
        "a.java", "a.rb", "a.php", "a.cs", "a.sh", "a.md", "a.lua", "a"};
    static code_grammars *g;
    if (g == NULL) g = code_grammars_open();
    if (size == 0 || size > 1 << 16) return 0;
    const char *path = paths[data[0] & 15], *text = (const char *)data + 1;
    const size_t n = size - 1;
    char *own = malloc(n + 1); /* exactly as long as the text: a read behind it is seen */
    if (own == NULL) return 0;
    memcpy(own, text, n);
    for (int lexical = 0; lexical < 2; lexical++) {
        char *exact = malloc(n != 0 ? n : 1);
        if (exact == NULL) break;
        memcpy(exact, text, n);
        code_graph *x;
        code_file *f = code_parse_graph(lexical ? NULL : g, path, exact, n, &x);
        check_file(f, n);
        check_graph(f, x, exact, n);
        code_graph_free(x);
        base_buf outline = {0};
        code_outline(f, exact, n, n / 10, &outline);
        base_buf_free(&outline);
        code_chunk *chunks;
        const uint32_t n_chunks = code_chunk_file(f, path, exact, n, &chunks);
        for (uint32_t i = 0; i < n_chunks; i++) {
            require(
                chunks[i].from < chunks[i].to && chunks[i].to <= n && chunks[i].head_to >= chunks[i].from);
            require(i == 0 || chunks[i - 1].to <= chunks[i].from);
        }
        own[n] = '\0';
        uint32_t found[4];
        code_find_definition(f, own, found, 4);
        free(chunks);
        code_file_free(f);
        free(exact);
    }
    code_index *x = code_index_new(g);
    code_index_update(x, path, own, n / 2);
    code_index_update(x, path, own, n); /* an edit: the tree of the first half is kept */
    base_buf map = {0};
    code_index_map(x, &(code_map_options){.words = own, .budget_bytes = 300}, &map);
    base_buf_free(&map);
    code_hits hits;
    code_index_search(x, own, 4, &hits);
    code_hits_fit(&hits, 300, 3);
    code_hits_free(&hits);
    code_checked *c;
    const uint32_t n_checked = code_places_check(x, own, n, 0, &c);
    code_places_checked_free(c, n_checked);
    code_index_update(x, path, NULL, 0);
    code_index_free(x);
    free(own);
    return 0;
}
