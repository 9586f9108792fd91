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
/*
 * "void test_find(void);" in front of where it is called: behind its neighbour's declaration, one for the new test. false: there is
 * none that has no parameters, or the new one is declared already.
 */
bool tool__declare_test(base_buf *text, const char *neighbour, const char *name);

#endif
