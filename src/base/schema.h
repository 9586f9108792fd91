/*
 * A JSON Schema (draft 2020-12) read into nodes, and values judged by it.
 *
 * What is read: type (also a list), properties, required, additionalProperties, items (also false), prefixItems,
 * minItems, maxItems, enum, const, minLength, maxLength, minimum, maximum, exclusiveMinimum, exclusiveMaximum,
 * anyOf, oneOf, an allOf of one, and $ref within the file, recursion too. What only describes (title, description,
 * default, examples, "x-...") is passed by. Any other keyword is refused by name: nothing is promised that is not
 * held. A oneOf's members have to exclude each other in a way that can be seen here (their types, a required const).
 *
 * The nodes are public, since a grammar is made of them (model/text/schema_grammar.h).
 */
#ifndef KVIST_BASE_SCHEMA_H
#define KVIST_BASE_SCHEMA_H

#include "base/json.h"

enum { BASE_SCHEMA_MOST_BYTES = 256 << 10, BASE_SCHEMA_MOST_NODES = 4096 };

/* What a value may be, as bits. */
enum {
    BASE_SCHEMA_NULL = 1,
    BASE_SCHEMA_BOOLEAN = 2,
    BASE_SCHEMA_INTEGER = 4, /* a number without a fraction: 1.0 is one */
    BASE_SCHEMA_NUMBER = 8,  /* any number */
    BASE_SCHEMA_STRING = 16,
    BASE_SCHEMA_ARRAY = 32,
    BASE_SCHEMA_OBJECT = 64,
    BASE_SCHEMA_ANY = 127
};

#define BASE_SCHEMA_NONE UINT32_MAX /* in place of a node: nothing may stand there */

typedef struct base_schema_property {
    const char *name;
    uint32_t node;
    bool required;
} base_schema_property;

/* Of alternatives, values and types the first that is there counts. */
typedef struct base_schema_node {
    const char *place;      /* in the file: "#/properties/name" */
    uint32_t *alternatives; /* [n_alternatives] nodes: anyOf, oneOf, the target of a $ref */
    uint32_t n_alternatives;
    bool exactly_one;         /* oneOf */
    const base_json **values; /* [n_values] enum, const: those that the other keywords allow */
    uint32_t n_values;
    unsigned types;
    int64_t min_length, max_length; /* of a string, in code points; -1: none */
    double low, high;               /* of a number; -INFINITY, INFINITY: none */
    bool above_low, below_high;     /* the bound itself is out */
    uint32_t *prefix, n_prefix;     /* the first items */
    uint32_t items;                 /* the others; NONE: there are none */
    int64_t min_items, max_items;   /* -1: none */
    /* [n_properties] in the order of the file, then what is only required */
    base_schema_property *properties;
    uint32_t n_properties;
    uint32_t additional; /* other members; NONE: there are none */
    bool is_open;        /* other members are not spoken of, so any may stand there */
} base_schema_node;

typedef struct base_schema base_schema;

/*
 * The text is copied. BASE_E_FORMAT: no JSON, or a keyword whose value is not what it has to be; BASE_E_UNSUPPORTED:
 * a keyword that is not held, named with its place; BASE_E_LIMIT.
 */
int base_schema_parse(const char *text, size_t n, base_schema **ret, base_err *err);
void base_schema_free(base_schema *s);

const base_schema_node *base_schema_at(const base_schema *s, uint32_t node); /* 0 is the root */
uint32_t base_schema_size(const base_schema *s);

/*
 * Does the text, which has to be one JSON value and nothing else, hold? BASE_E_FORMAT with a sentence that says where it does not:
 * "/items/3/name is ...".
 */
int base_schema_check(const base_schema *s, const char *text, size_t n, base_err *err);

#endif
