/*
 * What a new definition uses of its language's standard library and its file does not import yet. A small model
 * writes the definition that it was asked for and forgets the line at the file's top. Pure.
 */
#ifndef KVIST_TOOLS_EDIT_IMPORTS_H
#define KVIST_TOOLS_EDIT_IMPORTS_H

#include "base/buf.h"

/*
 * Adds to `text` the imports of names that `block` uses and `old_text` (the file before it) never wrote, each with
 * a sentence in `say`. Go, Python, C, Rust, JavaScript and TypeScript; other languages: nothing.
 */
void tool__import_standard(
    const char *language, base_str block, const base_buf *old_text, base_buf *text, base_buf *say);

#endif
