/* What the files that decide what a place means share: resolve.c over members.c over modules.c. */
#ifndef KVIST_TOOLS_REFACTOR_RESOLVE_WORK_H
#define KVIST_TOOLS_REFACTOR_RESOLVE_WORK_H

#include <string.h>

#include "tools/refactor/refactor.h"

/* What a place means, and why that is not sure. */
typedef struct refactor_decision {
    refactor_verdict verdict;
    const char *why;
} refactor_decision;

static const refactor_decision sure = {REFACTOR_SURE, NULL}, other = {REFACTOR_OTHER, NULL};

static inline refactor_decision unsure(const char *why)
{
    return (refactor_decision){REFACTOR_UNSURE, why};
}

/* ---- modules.c: which file and which of its names an import means ---- */

/* The file of the tree that a module's name means, seen from another file; NULL: none, it lies outside. */
const char *refactor__module_path(const refactor *x, const refactor_file *f, const char *module);
/* Does the file define the name at its top? */
bool refactor__defines_top(const refactor_file *f, const char *name);
/* Is what the file at `path` (NULL: none) gives under `name` the target? depth: 0. */
bool refactor__comes_from(refactor *x, const char *path, const char *name, int depth);
/* dotted.c. Python: is the word at this byte the end of a path that means the target: "pkg.net.fetch", "pkg.net:fetch"? */
bool refactor__is_looked_up(refactor *x, const base_buf *text, uint32_t at);
/*
 * dotted.c. Python: the n bytes at `at` are a whole string that gives an attribute of an object its name, as in setattr(object, "name",
 * ...) or patch.object(object, "name"): that object as it is written ("pkg.Type"), the caller frees. NULL: they are not.
 */
char *refactor__attribute_object(const base_buf *text, uint32_t at, size_t n);
/* Go: does `local` stand for the target's package in this file? An import without a name has the package's own. */
bool refactor__is_package(refactor *x, const refactor_file *f, const char *local);
/* Go: are the names of the target's package bare ones in this file (import . "path")? */
bool refactor__is_dotted(refactor *x, const refactor_file *f);
/* The import that gives the file this name; NULL: none. */
const code_import *refactor__import_of(const refactor_file *f, const char *local);
/* Java: does this import name the target? */
bool refactor__java_import_is(const refactor_target *t, const char *module);

/* ---- members.c: a place behind an object, and a definition in a type ---- */

/* Would a member of `type` be the target's? */
bool refactor__is_kin(const refactor *x, const char *type);
/* Does a type of this name enclose the byte? */
bool refactor__stands_in_type(const refactor_file *f, const char *type, uint32_t at);
/* A member of the type that the file calls by the name of the target's, at byte `at`. */
refactor_decision refactor__by_home(const refactor *x, const refactor_file *f, uint32_t at, const char *type);
/* Any place but a definition; the target is a member. */
refactor_decision refactor__decide_member(refactor *x, const refactor_file *f, const code_use *u);

#endif
