/*
 * What a tree or a file is about, in few words: the repository map (the definitions that the others lean on,
 * by personalised PageRank over calls) and a file's outline. For `/map`, the first turn and the read tool.
 * Any thread.
 */
#ifndef KVIST_CODE_MAP_H
#define KVIST_CODE_MAP_H

#include "code/index.h"

typedef struct code_map_options {
    const char *words;        /* a request: names in it pull the map towards them; NULL: none */
    const char *const *paths; /* files that are in view, NULL-terminated; NULL: none */
    size_t budget_bytes;      /* of the text */
} code_map_options;

/*
 * Appends "path:" and below it "  LINE: signature" of the best definitions. Returns how many there are in it.
 */
uint32_t code_index_map(const code_index *x, const code_map_options *options, base_buf *out);

/*
 * Appends one line a definition, "LINE-LINE  signature", indented as they nest; when that is more than
 * budget_bytes, fields, variables and declarations are left out first, then signatures become names, then the
 * innermost go; what is left out is said in the last line.
 */
void code_outline(const code_file *f, const char *text, size_t n, size_t budget_bytes, base_buf *out);

/* The signature of a definition in one line: blanks folded, at most `most` bytes, cut at a character. */
void code_signature_line(const code_definition *d, const char *text, size_t n, size_t most, base_buf *out);

#endif
