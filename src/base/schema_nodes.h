/* The nodes, and the judging that reading them needs too: schema.c stands above schema_whole.c, that above schema_check.c. */
#ifndef KVIST_BASE_SCHEMA_NODES_H
#define KVIST_BASE_SCHEMA_NODES_H

#include "base/schema.h"

struct base_schema {
    base_json_doc *doc; /* names and values of the nodes live in it */
    base_schema_node *nodes;
    uint32_t n;
    size_t cap;
    char **places; /* [n] */
    size_t cap_places;
};

enum { SCHEMA_N_TYPES = 7, SCHEMA_MOST_DEPTH = 100 };
typedef struct schema_type {
    const char *word;
    unsigned bit;
} schema_type;
extern const schema_type schema_types[SCHEMA_N_TYPES];

const base_schema_property *schema_property(
    const base_schema_node *n, const char *name); /* NULL: there is none */
/* BASE_E_FORMAT, BASE_E_UNSUPPORTED. Drops values that what stands beside them does not allow. */
int schema_check_whole(base_schema *s, base_err *err);
int schema_check_at(const base_schema *s, uint32_t at, const base_json *value, base_err *err);

#endif
