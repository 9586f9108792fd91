/*
 * JavaScript and TypeScript: a constant that a block gives another value ("const q = f(); if (q < 0) q = 0;"). It parses, and throws
 * when it runs: a small model meant a variable. Pure.
 */
#ifndef KVIST_TOOLS_EDIT_ASSIGNED_CONST_H
#define KVIST_TOOLS_EDIT_ASSIGNED_CONST_H

#include "base/buf.h"

/* Each such "const" of `text` that `old_text` does not have is a "let"; with a sentence in `note`. */
void tool__let_assigned(const char *path, const base_buf *old_text, base_buf *text, base_buf *note);

#endif
