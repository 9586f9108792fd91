/*
 * Sorted texts of which one is being written: the names of tools, the choices of an argument, the paths of a
 * tree. While bytes come in, the texts that still fit are one range of the list, so the state is two numbers
 * however long the list is.
 */
#ifndef KVIST_MODEL_GRAMMAR_LIST_H
#define KVIST_MODEL_GRAMMAR_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct grammar_list {
    char **items; /* as they are written, sorted by bytes, each once */
    uint32_t n;
} grammar_list;

/*
 * Copies a NULL-terminated list, as it stands inside a JSON string: escaped. Texts that are not UTF-8 cannot be
 * written in JSON and are left out.
 */
void grammar_list_fill(grammar_list *l, const char *const *texts);
/* The same as it stands on a line of its own; texts with an end of line are left out. */
void grammar_list_fill_lines(grammar_list *l, const char *const *texts);
void grammar_list_free(grammar_list *l);

typedef struct grammar_range {
    uint32_t from, to, depth; /* items [from, to) agree with the depth bytes that came */
} grammar_range;

static inline grammar_range grammar_list_all(const grammar_list *l)
{
    return (grammar_range){0, l->n, 0};
}

/* One more byte; false (and the range unchanged) when no item goes on with it. */
bool grammar_list_narrow(const grammar_list *l, grammar_range *r, uint8_t byte);

/* Whether what came is a whole item; then it is item r->from. */
bool grammar_list_is_whole(const grammar_list *l, const grammar_range *r);

#endif
