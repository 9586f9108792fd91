/* The nodes, and the judging that reading them needs too (schema.c stands above schema_check.c). */
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

enum { SCHEMA_N_TYPES = 7 };
typedef struct schema_type {
    const char *word;
    unsigned bit;
} schema_type;
extern const schema_type schema_types[SCHEMA_N_TYPES];

int schema_check_at(const base_schema *s, uint32_t at, const base_json *value, base_err *err);

#endif
