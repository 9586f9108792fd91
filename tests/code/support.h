/* What the tests of src/code share: grammars if this machine has them, text from a literal. */
#ifndef KVIST_TESTS_CODE_SUPPORT_H
#define KVIST_TESTS_CODE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "code/code.h"

/* Opens grammars and skips the test when the language's is not there. */
static inline code_grammars *grammars_or_skip(const char *language)
{
    code_grammars *g = code_grammars_open();
    const code_grammar_info *info;
    const uint32_t n = code_grammars_list(g, &info);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(info[i].language, language) == 0 && info[i].usable) return g;
    code_grammars_close(g);
    print_message("no grammar for %s here: skipped (scripts/run fetches them)\n", language);
    skip();
    return NULL;
}

/* The definition of that name; fails the test when there is none. */
static inline const code_definition *definition(const code_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (strcmp(f->definitions[i].name, name) == 0) return &f->definitions[i];
    fail_msg("no definition of %s", name);
    return NULL;
}

/* "call:redisFree( control:if (x) ..." of the anchors of one kind, cores or full extents. */
static inline void join_anchors(
    const code_file *f, const char *text, code_kind kind, bool core, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        if (a->kind != kind) continue;
        const uint32_t from = core ? a->core_from : a->full_from, to = core ? a->core_to : a->full_to;
        n += (size_t)snprintf(
            out + n, n < size ? size - n : 0, "%s%.*s", n != 0 ? "|" : "", (int)(to - from), text + from);
        assert_true(n < size);
    }
}

#endif
