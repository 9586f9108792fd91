/* The table of frames (contract: schema_frames.h). */
#include "model/text/schema_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MANY_FRAMES = 1 << 16 };

uint32_t schema_frames_rest_of_object(
    const schema_frames *g, uint32_t node, uint32_t index, bool begun, uint32_t parent)
{
    const uint32_t needed = g->leaves->all[node].needed[index];
    return schema_cost_add(needed - (!begun && needed ? 2 : 0), 1ull + g->all[parent].rest);
}

static uint32_t rest_of_array(
    const schema_frames *g, uint32_t node, uint32_t index, bool begun, uint32_t parent)
{
    const schema_leaf *l = &g->leaves->all[node];
    const base_schema_node *n = base_schema_at(g->leaves->schema, node);
    uint64_t needed = index < n->n_prefix ? l->needed_items[index] : 0;
    uint64_t more = l->n_more_items;
    if (index > n->n_prefix) more = more > index - n->n_prefix ? more - (index - n->n_prefix) : 0;
    if (more) needed += more * (2ull + g->leaves->all[n->items].cost);
    return schema_cost_add(needed - (!begun && needed ? 2 : 0), 1ull + g->all[parent].rest);
}

static uint64_t hash_of(const schema_frame *f)
{
    const uint64_t parts[] = {f->parent, f->node, f->index, f->before, f->hash, f->is_array, f->begun};
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) h = (h ^ parts[i]) * 1099511628211ull;
    return h ^ h >> 29;
}

static bool is_same(const schema_frame *a, const schema_frame *b)
{
    return a->parent == b->parent && a->node == b->node && a->index == b->index && a->before == b->before &&
           a->hash == b->hash && a->is_array == b->is_array && a->begun == b->begun;
}

static void place_frame(schema_frames *g, uint32_t number)
{
    uint32_t at = (uint32_t)hash_of(&g->all[number]) & (g->n_slots - 1);
    while (g->slots[at]) at = (at + 1) & (g->n_slots - 1);
    g->slots[at] = number + 1;
}

static void grow_slots(schema_frames *g)
{
    if (2 * (g->n + 1) <= g->n_slots) return;
    free(g->slots);
    g->n_slots = g->n_slots ? 2 * g->n_slots : 256;
    g->slots = base_xcalloc(g->n_slots, sizeof *g->slots);
    for (uint32_t i = SCHEMA_ROOT + 1; i < g->n; i++) place_frame(g, i);
}

uint32_t schema_frames_number(schema_frames *g, schema_frame f)
{
    grow_slots(g);
    uint32_t at = (uint32_t)hash_of(&f) & (g->n_slots - 1);
    for (; g->slots[at]; at = (at + 1) & (g->n_slots - 1))
        if (is_same(&g->all[g->slots[at] - 1], &f)) return g->slots[at] - 1;
    f.depth = g->all[f.parent].depth + 1;
    f.rest =
        (f.is_array ? rest_of_array : schema_frames_rest_of_object)(g, f.node, f.index, f.begun, f.parent);
    base_grow(&g->all, &g->cap, g->n + 1, sizeof *g->all);
    g->all[g->n] = f;
    place_frame(g, g->n);
    return g->n++;
}

void schema_frames_forget(schema_frames *g)
{
    if (g->n_slots) memset(g->slots, 0, g->n_slots * sizeof *g->slots);
    base_grow(&g->all, &g->cap, 1, sizeof *g->all);
    g->all[SCHEMA_ROOT] = (schema_frame){0};
    g->n = 1;
}

void schema_frames_free(schema_frames *g)
{
    free(g->all);
    free(g->slots);
}

typedef struct moving {
    const schema_frame *old;
    uint32_t *moved; /* [n] the number of now; SCHEMA_ROOT: not moved yet */
} moving;

/* The frame of before in the table of now, behind those that it stands on. */
static uint32_t keep_frame(schema_frames *g, const moving *m, uint32_t number)
{
    if (number == SCHEMA_ROOT || m->moved[number] != SCHEMA_ROOT) return m->moved[number];
    schema_frame f = m->old[number];
    f.parent = keep_frame(g, m, f.parent);
    f.before = keep_frame(g, m, f.before);
    return m->moved[number] = schema_frames_number(g, f);
}

bool schema_frames_tidy(schema_frames *g, uint32_t **numbers, uint32_t n)
{
    if (g->n < MANY_FRAMES) return false;
    const uint32_t n_old = g->n;
    schema_frame *old = base_xmalloc(n_old * sizeof *old);
    memcpy(old, g->all, n_old * sizeof *old);
    const moving m = {old, base_xcalloc(n_old, sizeof(uint32_t))};
    schema_frames_forget(g);
    for (uint32_t i = 0; i < n; i++) *numbers[i] = keep_frame(g, &m, *numbers[i]);
    free(m.moved);
    free(old);
    return true;
}
