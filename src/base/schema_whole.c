/*
 * What a schema has to hold as a whole, once it is read: every node leads to a value, something fits it, and the members
 * of a oneOf exclude each other.
 */
#include "base/schema_nodes.h"

/* Values that the keywords beside them do not allow can never stand there. */
static int keep_possible_values(base_schema *s, uint32_t at, base_err *err)
{
    base_schema_node *n = &s->nodes[at];
    const uint32_t all = n->n_values;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all; i++) {
        const base_json *value = n->values[i];
        n->n_values = 0;
        if (!schema_check_at(s, at, value, NULL)) n->values[kept++] = value;
    }
    n->n_values = kept;
    if (all && !kept)
        return base_fail(err, BASE_E_FORMAT,
            "nothing fits the schema at %.200s: its values and what stands beside them exclude each other",
            n->place);
    return BASE_OK;
}

typedef struct excluding {
    const base_schema *s;
    uint32_t depth, left; /* left: pairs that are still looked at */
} excluding;
static bool excludes(excluding *x, uint32_t a, uint32_t b);

/* Do all values of `a` fail `b`? */
static bool values_exclude(const base_schema *s, uint32_t a, uint32_t b)
{
    const base_schema_node *n = &s->nodes[a];
    for (uint32_t i = 0; i < n->n_values; i++)
        if (!schema_check_at(s, b, n->values[i], NULL)) return false;
    return n->n_values > 0;
}

/* A member that a requires and b does not allow, or allows in another way only. */
static bool members_exclude(excluding *x, const base_schema_node *a, const base_schema_node *b)
{
    for (uint32_t i = 0; i < a->n_properties; i++) {
        if (!a->properties[i].required) continue;
        const base_schema_property *p = schema_property(b, a->properties[i].name);
        if (!p && !b->is_open && b->additional == BASE_SCHEMA_NONE) return true;
        if (!p && b->is_open) continue;
        if (excludes(x, a->properties[i].node, p ? p->node : b->additional)) return true;
    }
    return false;
}

static bool nodes_exclude(excluding *x, uint32_t at, uint32_t bt)
{
    const base_schema_node *a = &x->s->nodes[at], *b = &x->s->nodes[bt];
    if (a->n_alternatives || b->n_alternatives) {
        const base_schema_node *many = a->n_alternatives ? a : b;
        for (uint32_t i = 0; i < many->n_alternatives; i++)
            if (!excludes(x, many->alternatives[i], a->n_alternatives ? bt : at)) return false;
        return true;
    }
    if (a->n_values) return values_exclude(x->s, at, bt);
    if (b->n_values) return values_exclude(x->s, bt, at);
    const unsigned both = a->types & b->types;
    if (!both) return true;
    if (both & (BASE_SCHEMA_NULL | BASE_SCHEMA_BOOLEAN)) return false;
    if ((both & (BASE_SCHEMA_INTEGER | BASE_SCHEMA_NUMBER)) && !(a->high < b->low) && !(b->high < a->low))
        return false;
    if ((both & BASE_SCHEMA_STRING) && !(a->max_length >= 0 && a->max_length < b->min_length) &&
        !(b->max_length >= 0 && b->max_length < a->min_length))
        return false;
    if ((both & BASE_SCHEMA_ARRAY) && !(a->max_items >= 0 && a->max_items < b->min_items) &&
        !(b->max_items >= 0 && b->max_items < a->min_items))
        return false;
    return !(both & BASE_SCHEMA_OBJECT) || members_exclude(x, a, b) || members_exclude(x, b, a);
}

/* Is it certain that no value fits both? Where types meet, the whole of what can tell has to. */
static bool excludes(excluding *x, uint32_t at, uint32_t bt)
{
    enum { MOST_DEEP = 12 };
    if (at == BASE_SCHEMA_NONE || bt == BASE_SCHEMA_NONE) return true;
    if (x->depth >= MOST_DEEP || !x->left) return false;
    x->depth++;
    x->left--;
    const bool certain = nodes_exclude(x, at, bt);
    x->depth--;
    return certain;
}

/* How many nodes stand for one another in a row from here; more than SCHEMA_MOST_DEPTH: no end was found. */
static uint32_t aliases(const base_schema *s, uint32_t at, uint32_t depth, uint32_t *left)
{
    uint32_t most = depth;
    if (at == BASE_SCHEMA_NONE || depth > SCHEMA_MOST_DEPTH) return depth;
    for (uint32_t i = 0; i < s->nodes[at].n_alternatives && most <= SCHEMA_MOST_DEPTH; i++) {
        if (!*left) return SCHEMA_MOST_DEPTH + 1;
        --*left;
        const uint32_t n = aliases(s, s->nodes[at].alternatives[i], depth + 1, left);
        if (n > most) most = n;
    }
    return most;
}

static int check_aliases(const base_schema *s, base_err *err)
{
    uint32_t left = 1 << 20;
    for (uint32_t i = 0; i < s->n; i++)
        if (aliases(s, i, 0, &left) > SCHEMA_MOST_DEPTH)
            return base_fail(err, BASE_E_FORMAT,
                "the schema at %.200s leads to itself (or through "
                "too many $ref, anyOf and oneOf) and to no value",
                s->nodes[i].place);
    return BASE_OK;
}

static int check_one_of(const base_schema *s, const base_schema_node *n, base_err *err)
{
    excluding x = {s, 0, 1 << 16};
    for (uint32_t i = 0; i < n->n_alternatives; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!excludes(&x, n->alternatives[i], n->alternatives[k]))
                return base_fail(err, BASE_E_UNSUPPORTED,
                    "the schema's \"oneOf\" at %.200s: its members %u and %u may both fit one value; write "
                    "anyOf, or tell them apart by their types or by a required member with a const",
                    n->place, k + 1, i + 1);
    return BASE_OK;
}

int schema_check_whole(base_schema *s, base_err *err)
{
    int rc = check_aliases(s, err);
    for (uint32_t i = 0; !rc && i < s->n; i++) rc = keep_possible_values(s, i, err);
    for (uint32_t i = 0; !rc && i < s->n; i++)
        rc = s->nodes[i].exactly_one ? check_one_of(s, &s->nodes[i], err) : 0;
    return rc;
}
