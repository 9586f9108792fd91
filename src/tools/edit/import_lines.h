/*
 * The lines of a file that import: where they end, which ones a block brings, one more name in one of them.
 * Pure functions of texts.
 */
#ifndef KVIST_TOOLS_EDIT_IMPORT_LINES_H
#define KVIST_TOOLS_EDIT_IMPORT_LINES_H

#include "base/buf.h"

/* Does the line begin with its language's word for an import? */
bool tool__is_import(const char *language, const char *line, size_t n);

/* The byte behind the file's last import at column 0; 0: it has none. */
size_t tool__behind_imports(const char *language, const base_buf *text);

/* Takes the import lines that a block begins with out of `block`, into `imports`. */
void tool__split_imports(const char *language, base_buf *block, base_buf *imports);

/*
 * Python: adds the name to the file's line "from ...MODULE import a, b"; false: the file has none, or has the
 * name already.
 */
bool tool__import_name(base_buf *text, const char *module, const char *name);
/* What other files call the module that is this file: "ansi" for ansi.py, "schema" for schema/__init__.py. The caller frees. */
char *tool__module_name(const char *path);

/* "pkg.mod" of "src/pkg/mod.py", "pkg" of "pkg/__init__.py"; the caller frees. */
char *tool__dotted_module(const char *path);
/* Python: "from MODULE import NAME" behind the imports of the text; false: it has none, or the module has no such name. */
bool tool__import_from(base_buf *text, const char *module, const char *name);
/*
 * Rust: "use CRATE::NAME;" behind the imports of a file of tests, CRATE being what it takes other names of; false: it takes none of a
 * crate, or all of it.
 */
bool tool__import_of_crate(base_buf *text, const char *name);

#endif
