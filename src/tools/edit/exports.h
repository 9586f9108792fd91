/*
 * What a package hands out: a new definition whose neighbour stands in a list of exported names goes into that list
 * too. Pure.
 */
#ifndef KVIST_TOOLS_EDIT_EXPORTS_H
#define KVIST_TOOLS_EDIT_EXPORTS_H

#include "base/buf.h"

/*
 * Adds `name` behind `neighbour` to each list of exports in `text`. module: the file that defines both ("ansi" for
 * ansi.py), where text is its package's own file: "from .ansi import a", "export {a} from './ansi'", "pub use
 * ansi::{a}", `__all__`. NULL: text is that file itself: `__all__`, "module.exports = {a}", "export {a}". Python,
 * JavaScript, TypeScript and Rust. false: no list has the neighbour by its own name, or all have the new one already.
 */
bool tool__export_name(
    const char *language, base_buf *text, const char *module, const char *neighbour, const char *name);

/*
 * The same where the request asks for it and no neighbour is handed out: behind the last name that the file itself hands
 * out, in a list or as "module.exports.a = a".
 */
bool tool__export_last(const char *language, base_buf *text, const char *name);

/*
 * Where no list has anything of the module yet: a line of its own in the package's file, behind the last of its kind ("from
 * .ansi import a"; "pub use ansi::a;", else behind "mod ansi;"), and in `__all__`. Python and Rust. false: no line shows where.
 */
bool tool__export_fresh(const char *language, base_buf *text, const char *module, const char *name);

/* Files that may hand out what another of their folder defines, in the order in which they are tried; NULL ends them. */
const char *const *tool__export_files(const char *language);

#endif
