/*
 * What a grammar of a schema (schema_grammar.h) needs to know of each node of it before the first byte: which nodes stand for it where
 * it has alternatives, how its names and values are written, how deep and how long its flattest value is.
 */
#ifndef KVIST_MODEL_SCHEMA_LEAVES_H
#define KVIST_MODEL_SCHEMA_LEAVES_H

#include "base/schema.h"
#include "model/text/grammar_list.h"
#include "model/text/schema_numbers.h"

enum {
    SCHEMA_NEVER = 1 << 29, /* a cost or a height that no finite value has */
    SCHEMA_MOST_KEY = 64,   /* characters of a name that is free */
    SCHEMA_MOST_THREADS = 64,
    SCHEMA_MOST_NESTING = 32
};

typedef struct schema_leaf {
    uint32_t *leaves, n_leaves; /* the node itself, or those that stand for it: no alternatives among them */
    uint32_t height, cost;      /* of the flattest value: nesting, and bytes */
    uint32_t object_height, array_height;
    char **names;           /* [n_properties] "\"name\": " */
    grammar_list listed;    /* names, sorted: what a free one may not be */
    uint32_t *needed;       /* [n_properties + 1] bytes of what is required from there on, each with ", " */
    uint32_t *needed_items; /* [n_prefix + 1] the same of the first items */
    uint64_t n_more_items;  /* required behind them */
    grammar_list values;    /* as JSON */
    bool has_range;         /* numbers are bounded */
    number_range range;
} schema_leaf;

typedef struct schema_leaves {
    const base_schema *schema;
    schema_leaf *all; /* [n], by the schema's node */
    uint32_t n;
} schema_leaves;

/*
 * The schema must live as long. BASE_E_FORMAT: no finite value fits it; BASE_E_UNSUPPORTED: more alternatives in one
 * place than are followed; BASE_E_LIMIT: a name that is too long. schema_leaves_free in any case.
 */
int schema_leaves_fill(schema_leaves *g, const base_schema *schema, base_err *err);
void schema_leaves_free(schema_leaves *g);

/* Two costs together, SCHEMA_NEVER at most. */
static inline uint32_t schema_cost_add(uint64_t a, uint64_t b)
{
    return a + b >= SCHEMA_NEVER ? SCHEMA_NEVER : (uint32_t)(a + b);
}

#endif
