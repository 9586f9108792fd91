/* Names, values, heights and costs of a schema's nodes (contract: schema_leaves.h). */
#include "model/text/schema_leaves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST_NAME = 512 }; /* bytes of a member's name */

/* The nodes that a node stands for, through alternatives; each once. */
static int collect_leaves(schema_leaves *g, schema_leaf *to, uint32_t at, base_err *err)
{
    if (at == BASE_SCHEMA_NONE) return BASE_OK;
    const base_schema_node *n = base_schema_at(g->schema, at);
    for (uint32_t i = 0; i < n->n_alternatives; i++) {
        const int rc = collect_leaves(g, to, n->alternatives[i], err);
        if (rc) return rc;
    }
    if (n->n_alternatives) return BASE_OK;
    for (uint32_t i = 0; i < to->n_leaves; i++)
        if (to->leaves[i] == at) return BASE_OK;
    if (to->n_leaves >= SCHEMA_MOST_THREADS)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "the schema has more than %d alternatives in one place, at %.200s", SCHEMA_MOST_THREADS,
            n->place);
    to->leaves = base_xrealloc(to->leaves, (to->n_leaves + 1) * sizeof *to->leaves);
    to->leaves[to->n_leaves++] = at;
    return BASE_OK;
}

static void add_json(grammar_list *l, char *json)
{
    l->items = base_xrealloc(l->items, (l->n + 1) * sizeof *l->items);
    l->items[l->n++] = json;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A list's items as they stand in JSON, sorted and each once. */
static void sort_list(grammar_list *l)
{
    uint32_t kept = 0;
    if (l->n) qsort(l->items, l->n, sizeof *l->items, by_bytes);
    for (uint32_t i = 0; i < l->n; i++) {
        if (kept && !strcmp(l->items[kept - 1], l->items[i]))
            free(l->items[i]);
        else
            l->items[kept++] = l->items[i];
    }
    l->n = kept;
}

/* A value with ", " and ": " between its parts, as everything here is written. */
static void put_value(base_buf *out, const base_json *v)
{
    const bool is_object = v->type == BASE_JSON_OBJECT;
    if (!is_object && v->type != BASE_JSON_ARRAY) {
        base_json_put(out, v);
        return;
    }
    base_buf_putc(out, is_object ? '{' : '[');
    for (const base_json *m = v->first; m; m = m->next) {
        if (m != v->first) base_buf_puts(out, ", ");
        if (is_object) {
            base_json_put_str(out, m->key, strlen(m->key));
            base_buf_puts(out, ": ");
        }
        put_value(out, m);
    }
    base_buf_putc(out, is_object ? '}' : ']');
}

static int fill_names(schema_leaf *l, const base_schema_node *n, base_err *err)
{
    if (n->n_properties >= SCHEMA_MOST_THREADS) /* all of them may be what comes next */
        return base_fail(err, BASE_E_UNSUPPORTED, "the schema has more than %d properties at %.200s",
            SCHEMA_MOST_THREADS - 1, n->place);
    l->names = base_xcalloc(n->n_properties + 1, sizeof *l->names);
    for (uint32_t i = 0; i < n->n_properties; i++) {
        base_buf name = {0};
        base_json_put_str(&name, n->properties[i].name, strlen(n->properties[i].name));
        const uint32_t most = n->additional == BASE_SCHEMA_NONE ? MOST_NAME : SCHEMA_MOST_KEY;
        if (name.len >= most) {
            base_buf_free(&name);
            return base_fail(err, BASE_E_LIMIT, "the schema has a name of more than %u bytes at %.200s",
                most - 1, n->place);
        }
        add_json(&l->listed, base_xstrndup(name.data + 1, name.len - 2));
        base_buf_puts(&name, ": ");
        l->names[i] = base_buf_take(&name);
    }
    sort_list(&l->listed);
    l->needed = base_xcalloc(n->n_properties + 1, sizeof *l->needed);
    return BASE_OK;
}

/* The first unit that holds, seen from inside the range. */
static void fill_range(schema_leaf *l, const base_schema_node *n)
{
    const bool is_whole = !(n->types & BASE_SCHEMA_NUMBER), has_low = isfinite(n->low),
               has_high = isfinite(n->high);
    if (!(n->types & (BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER)) || (!is_whole && !has_low && !has_high))
        return;
    const double small = 1e9; /* up to here millionths are exact */
    const bool fine =
        !is_whole && !(has_low && fabs(n->low) >= small) && !(has_high && fabs(n->high) >= small);
    const double unit = fine ? 1e6 : 1, most = fine ? 999999999e6 : 9007199254740991.;
    double low = has_low ? ceil(n->low * unit) : -most, high = has_high ? floor(n->high * unit) : most;
    low = low < -most ? -most : low > most ? most + 1 : low;
    high = high > most ? most : high < -most ? -most - 1 : high;
    l->has_range = true;
    l->range = (number_range){(int64_t)low, (int64_t)high, fine ? 6 : 0};
    while (l->range.low <= l->range.high &&
           ((double)l->range.low / unit < n->low || (n->above_low && (double)l->range.low / unit <= n->low)))
        l->range.low++;
    while (l->range.low <= l->range.high && ((double)l->range.high / unit > n->high ||
                                                (n->below_high && (double)l->range.high / unit >= n->high)))
        l->range.high--;
}

static int fill_leaf(schema_leaf *l, const base_schema_node *n, base_err *err)
{
    l->height = l->cost = l->object_height = l->array_height = SCHEMA_NEVER;
    l->needed_items = base_xcalloc(n->n_prefix + 1, sizeof *l->needed_items);
    for (uint32_t i = 0; i < n->n_values; i++) {
        base_buf json = {0};
        put_value(&json, n->values[i]);
        add_json(&l->values, base_buf_take(&json));
    }
    sort_list(&l->values);
    fill_range(l, n);
    if (n->min_items > (int64_t)n->n_prefix) l->n_more_items = (uint64_t)n->min_items - n->n_prefix;
    return fill_names(l, n, err);
}

static void lower(uint32_t *to, uint32_t value, bool *changed)
{
    if (value >= *to) return;
    *to = value;
    *changed = true;
}

/* How deep the flattest object or array of a node is, by what is known of its parts so far. */
static uint32_t object_height(const schema_leaves *g, const base_schema_node *n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n->n_properties; i++) {
        const uint32_t of = n->properties[i].node;
        if (!n->properties[i].required) continue;
        if (of == BASE_SCHEMA_NONE) return SCHEMA_NEVER;
        if (g->all[of].height > most) most = g->all[of].height;
    }
    return schema_cost_add(most, 1);
}

static uint32_t array_height(const schema_leaves *g, const base_schema_node *n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n->min_items && i <= (int64_t)n->n_prefix; i++) {
        const uint32_t of = i < (int64_t)n->n_prefix ? n->prefix[i] : n->items;
        if (of == BASE_SCHEMA_NONE) return SCHEMA_NEVER;
        if (g->all[of].height > most) most = g->all[of].height;
    }
    return schema_cost_add(most, 1);
}

static bool has_scalar(const schema_leaf *l, const base_schema_node *n)
{
    const number_state nothing = {0};
    if (l->values.n || n->types & (BASE_SCHEMA_NULL | BASE_SCHEMA_BOOLEAN | BASE_SCHEMA_STRING)) return true;
    if (!(n->types & (BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER))) return false;
    return !l->has_range || number_missing(&l->range, &nothing) < NUMBER_NEVER;
}

static void find_heights(schema_leaves *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < g->n; i++) {
            schema_leaf *l = &g->all[i];
            const base_schema_node *n = base_schema_at(g->schema, i);
            for (uint32_t k = 0; k < n->n_alternatives; k++)
                if (n->alternatives[k] != BASE_SCHEMA_NONE)
                    lower(&l->height, g->all[n->alternatives[k]].height, &changed);
            if (n->n_alternatives) continue;
            if (has_scalar(l, n)) lower(&l->height, 0, &changed);
            if (l->values.n) continue;
            if (n->types & BASE_SCHEMA_OBJECT) lower(&l->object_height, object_height(g, n), &changed);
            if (n->types & BASE_SCHEMA_ARRAY) lower(&l->array_height, array_height(g, n), &changed);
            lower(&l->height, l->object_height, &changed);
            lower(&l->height, l->array_height, &changed);
        }
    }
}

static uint32_t object_cost(schema_leaves *g, schema_leaf *l, const base_schema_node *n)
{
    for (uint32_t i = n->n_properties; i-- > 0;) {
        l->needed[i] = l->needed[i + 1];
        if (n->properties[i].required)
            l->needed[i] = schema_cost_add(
                l->needed[i], schema_cost_add(2 + strlen(l->names[i]), g->all[n->properties[i].node].cost));
    }
    return schema_cost_add(2, l->needed[0] - (l->needed[0] ? 2 : 0));
}

static uint32_t array_cost(schema_leaves *g, schema_leaf *l, const base_schema_node *n)
{
    uint64_t needed = 0;
    for (uint32_t i = n->n_prefix; i-- > 0;) {
        l->needed_items[i] = l->needed_items[i + 1];
        if ((int64_t)i < n->min_items && n->prefix[i] != BASE_SCHEMA_NONE)
            l->needed_items[i] = schema_cost_add(l->needed_items[i], 2ull + g->all[n->prefix[i]].cost);
    }
    needed = l->needed_items[0];
    if (l->n_more_items && n->items != BASE_SCHEMA_NONE)
        needed += (l->n_more_items < SCHEMA_NEVER ? l->n_more_items : SCHEMA_NEVER) *
                  (2ull + g->all[n->items].cost);
    return schema_cost_add(2, needed - (needed ? 2 : 0));
}

static uint32_t scalar_cost(const schema_leaf *l, const base_schema_node *n)
{
    uint32_t least = SCHEMA_NEVER;
    const number_state nothing = {0};
    for (uint32_t i = 0; i < l->values.n; i++)
        if (strlen(l->values.items[i]) < least) least = (uint32_t)strlen(l->values.items[i]);
    if (l->values.n) return least;
    if (n->types & (BASE_SCHEMA_NULL | BASE_SCHEMA_BOOLEAN)) least = 4;
    if (n->types & BASE_SCHEMA_STRING && schema_cost_add(2, (uint64_t)n->min_length) < least)
        least = schema_cost_add(2, (uint64_t)n->min_length);
    if (n->types & (BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER)) {
        const uint32_t number = l->has_range ? number_missing(&l->range, &nothing) : 1;
        if (number < least) least = number;
    }
    return least;
}

/* Of the flattest values: parts of an object or array are flatter than it, so level by level they are known. */
static void find_costs(schema_leaves *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < g->n; i++) {
            schema_leaf *l = &g->all[i];
            const base_schema_node *n = base_schema_at(g->schema, i);
            if (l->height >= SCHEMA_NEVER && !n->n_alternatives) continue;
            for (uint32_t k = 0; k < n->n_alternatives; k++) {
                if (n->alternatives[k] == BASE_SCHEMA_NONE) continue;
                const schema_leaf *other = &g->all[n->alternatives[k]];
                if (other->height == l->height) lower(&l->cost, other->cost, &changed);
            }
            if (n->n_alternatives) continue;
            if (l->height == 0) lower(&l->cost, scalar_cost(l, n), &changed);
            if (n->types & BASE_SCHEMA_OBJECT && l->object_height < SCHEMA_NEVER) {
                const uint32_t cost = object_cost(g, l, n);
                if (l->height == l->object_height) lower(&l->cost, cost, &changed);
            }
            if (n->types & BASE_SCHEMA_ARRAY && l->array_height < SCHEMA_NEVER) {
                const uint32_t cost = array_cost(g, l, n);
                if (l->height == l->array_height) lower(&l->cost, cost, &changed);
            }
        }
    }
}

int schema_leaves_fill(schema_leaves *g, const base_schema *schema, base_err *err)
{
    g->schema = schema;
    g->n = base_schema_size(schema);
    g->all = base_xcalloc(g->n, sizeof *g->all);
    for (uint32_t i = 0; i < g->n; i++) {
        int rc = fill_leaf(&g->all[i], base_schema_at(schema, i), err);
        if (!rc) rc = collect_leaves(g, &g->all[i], i, err);
        if (rc) return rc;
    }
    find_heights(g);
    find_costs(g);
    if (g->all[0].height > SCHEMA_MOST_NESTING)
        return base_fail(err, BASE_E_FORMAT,
            "no value fits the schema: what it requires never ends, "
            "excludes itself, or is nested more than %d levels deep",
            SCHEMA_MOST_NESTING);
    return BASE_OK;
}

void schema_leaves_free(schema_leaves *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        schema_leaf *l = &g->all[i];
        for (uint32_t k = 0; l->names && k < base_schema_at(g->schema, i)->n_properties; k++)
            free(l->names[k]);
        free(l->names);
        free(l->leaves);
        free(l->needed);
        free(l->needed_items);
        grammar_list_free(&l->listed);
        grammar_list_free(&l->values);
    }
    free(g->all);
    *g = (schema_leaves){0};
}
