/*
 * Tests of C run where a line of another function names them: "test(list_remove);", "cmocka_unit_test(test_find),". A new
 * one gets such a line behind its neighbour's. Pure.
 */
#ifndef KVIST_TOOLS_EDIT_REGISTER_H
#define KVIST_TOOLS_EDIT_REGISTER_H

#include "base/buf.h"

/*
 * Behind the last line of `text` that names the test `neighbour` for running, one that names `name`. Both begin with
 * "test_"; a macro may leave that out. false: the text has no such line, or names the new one already.
 */
bool tool__register_test(base_buf *text, const char *neighbour, const char *name);

#endif
