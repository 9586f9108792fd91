/*
 * Writes a code_file: names into one arena, definitions and anchors into growing arrays, lines counted along
 * the way. Used by the tree and the lexical reading, so that both give the same shape. The arena hangs behind
 * the public struct.
 */
#include "code/internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEFINITIONS = 1 << 20, MAX_ANCHORS = 1 << 22, FIRST_BLOCK_BYTES = 240, BLOCK_BYTES = 8192 };

typedef struct name_block {
    struct name_block *next;
    size_t used, size;
    char bytes[];
} name_block;

typedef struct owned_file {
    code_file file; /* first: a code_file * is an owned_file * */
    name_block *names;
} owned_file;

void code_builder_begin(code_builder *b, const char *language, const char *text, size_t n)
{
    owned_file *f = base_xcalloc(1, sizeof *f);
    f->file.language = language;
    *b = (code_builder){.file = &f->file, .text = text, .n = n, .line = 1};
}

const char *code_builder_name(code_builder *b, const char *s, size_t n)
{
    owned_file *f = (owned_file *)b->file;
    if (n > 1024) n = 1024; /* no name is longer; a broken parse may claim so */
    if (f->names == NULL || f->names->size - f->names->used < n + 1) {
        /* A tree has many files with few names: the first block is small. */
        const size_t usual = f->names == NULL ? FIRST_BLOCK_BYTES : BLOCK_BYTES,
                     size = n + 1 > usual ? n + 1 : usual;
        name_block *block = base_xmalloc(sizeof *block + size);
        *block = (name_block){.next = f->names, .size = size};
        f->names = block;
    }
    char *name = f->names->bytes + f->names->used;
    memcpy(name, s, n);
    name[n] = '\0';
    f->names->used += n + 1;
    return name;
}

static uint32_t line_of(code_builder *b, uint32_t at)
{
    while (b->line_at > at)
        if (b->text[--b->line_at] == '\n') b->line--;
    const char *p = b->text + b->line_at, *end = b->text + at;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        b->line++;
        p++;
    }
    b->line_at = at;
    return b->line;
}

uint32_t code_builder_define(code_builder *b, const code_definition *d)
{
    code_file *f = b->file;
    if (f->n_definitions == MAX_DEFINITIONS) return UINT32_MAX;
    base_grow(&f->definitions, &b->cap_definitions, (size_t)f->n_definitions + 1, sizeof *f->definitions);
    code_definition *own = &f->definitions[f->n_definitions];
    *own = *d;
    own->line = line_of(b, d->from);
    /* The end is counted by itself: the cursor stays at the start, for the definitions inside. */
    uint32_t end = own->line;
    const char *p = b->text + d->from, *stop = b->text + (d->to > d->from ? d->to - 1 : d->from);
    while (p < stop && (p = memchr(p, '\n', (size_t)(stop - p))) != NULL) {
        end++;
        p++;
    }
    own->line_end = end;
    return f->n_definitions++;
}

bool code_builder_put(code_builder *b, const code_definition *d, uint32_t line, uint32_t line_end)
{
    code_file *f = b->file;
    if (f->n_definitions == MAX_DEFINITIONS) return false;
    base_grow(&f->definitions, &b->cap_definitions, (size_t)f->n_definitions + 1, sizeof *f->definitions);
    code_definition *own = &f->definitions[f->n_definitions++];
    *own = *d;
    own->line = line;
    own->line_end = line_end;
    return true;
}

void code_builder_anchor(code_builder *b, const code_anchor *a)
{
    code_file *f = b->file;
    if (f->n_anchors == MAX_ANCHORS || a->core_from >= a->core_to) return;
    base_grow(&f->anchors, &b->cap_anchors, (size_t)f->n_anchors + 1, sizeof *f->anchors);
    f->anchors[f->n_anchors++] = *a;
}

static int by_core(const void *x, const void *y)
{
    const code_anchor *a = x, *b = y;
    if (a->core_from != b->core_from) return a->core_from < b->core_from ? -1 : 1;
    if (a->core_to != b->core_to) return a->core_to < b->core_to ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}

code_file *code_builder_end(code_builder *b)
{
    code_file *f = b->file;
    if (f->n_anchors > 1) qsort(f->anchors, f->n_anchors, sizeof *f->anchors, by_core);
    b->file = NULL;
    return f;
}

void code_builder_abandon(code_builder *b)
{
    code_file_free(b->file);
    b->file = NULL;
}

void code_file_free(code_file *f)
{
    if (f == NULL) return;
    owned_file *own = (owned_file *)f;
    for (name_block *block = own->names; block != NULL;) {
        name_block *next = block->next;
        free(block);
        block = next;
    }
    free(f->definitions);
    free(f->anchors);
    free(own);
}
