/*
 * Where a session has more rows than its memory holds (`host`), what is written by sections reads copies of those
 * that lie on disk (resident.h). The choice is made before and rests on profiles, which stay in memory: this only
 * says where the chosen rows are.
 */
#include <stdlib.h>

#include "kv/read/reading.h"
#include "kv/read/sections.h"

/* --- what may lie on disk ------------------------------------------------------------------------------- */

enum {
    NEAR_BLOCKS = 2
}; /* the newest stay in memory: what is being written, and what a rewind comes back to */

int kv__reading_catch_up(kv_session *s, base_err *err)
{
    if (!(s->parameters.decode > 0) || !s->compute.gathers) return 0;
    int rc = s->reading ? 0 : kv__reading_make(s, err);
    if (!rc) rc = kv__reading_update(s->reading, NULL, s->n, 0, err);
    for (uint32_t layer = 0; layer < s->compute.shape.n_layer && !rc; layer++)
        kv__reading_profiles(s->reading, layer);
    return rc;
}

bool kv__reading_covers(const kv_session *s, uint32_t block)
{
    const kv_reading *r = s->reading;
    const uint32_t to = (block + 1) * MODEL_ROWS_BLOCK;
    if (!(s->parameters.decode > 0) || !s->compute.gathers || !r || !r->n || to > r->to[r->n - 1])
        return false;
    if (to + NEAR_BLOCKS * MODEL_ROWS_BLOCK > s->n || r->partial < r->n) return false;
    for (uint32_t layer = 0; layer < s->compute.shape.n_layer; layer++)
        if (r->done[layer] < r->n) return false;
    return true;
}

uint64_t kv__reading_bytes(const kv_session *s)
{
    return s->reading ? kv_resident_bytes(s->reading->resident) : 0;
}

/* --- a step --------------------------------------------------------------------------------------------- */

static int make(kv_reading *r, base_err *err)
{
    const kv_session *s = r->session;
    const kv_parameters *p = &s->parameters;
    const size_t n_kv = s->compute.shape.n_head_kv;
    const uint32_t longest =
        p->decode == KV_DECODE_PAGE ? (uint32_t)p->page : (uint32_t)p->length + (uint32_t)p->reach;
    r->moved = malloc(n_kv * r->cap_runs * sizeof *r->moved);
    r->next = malloc(n_kv * r->cap * sizeof *r->next);
    r->n_next = calloc(n_kv, sizeof *r->n_next);
    r->n_chosen = calloc(n_kv, sizeof *r->n_chosen);
    r->wider = malloc(r->cap * sizeof *r->wider);
    if (r->moved && r->next && r->n_next && r->n_chosen && r->wider)
        r->resident =
            kv_resident_new(&s->compute.shape, s->cap / MODEL_ROWS_BLOCK + NEAR_BLOCKS + 2, longest, r->cap);
    return r->resident ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for copies of rows that lie on disk");
}

int kv__bring_begin(kv_reading *r, base_err *err)
{
    const kv_session *s = r->session;
    r->brings = false;
    for (uint32_t b = 0; b < s->table.n && !r->brings && s->compute.gathers; b++)
        r->brings = s->table.blocks[b]->on_disk;
    return r->brings && !r->resident ? make(r, err) : 0;
}

static bool is_on_disk(const kv_reading *r, uint32_t section)
{
    const kv_table *t = &r->session->table;
    for (uint32_t b = kv__section_from(r, section) / MODEL_ROWS_BLOCK; b * MODEL_ROWS_BLOCK < r->to[section];
         b++)
        if (b < t->n && t->blocks[b]->on_disk) return true;
    return false;
}

static kv_resident_section section_of(const kv_reading *r, uint32_t k)
{
    return (kv_resident_section){.number = k, .from = kv__section_from(r, k), .to = r->to[k]};
}

static void put_run(model_run *runs, uint32_t *n, model_run one)
{
    model_run *last = *n ? &runs[*n - 1] : NULL;
    if (last && last->index + last->n == one.index && last->slot + last->n == one.slot &&
        one.slot % MODEL_ROWS_BLOCK)
        last->n += one.n;
    else
        runs[(*n)++] = one;
}

/* The lane's list with the places of copies. */
static int move_lane(kv_reading *r, model_lane_list *list, model_run *moved, base_err *err)
{
    const kv_table *t = &r->session->table;
    uint32_t k = 0, n = 0;
    for (uint32_t i = 0; i < list->n_runs; i++) {
        model_run left = list->runs[i];
        while (left.n) {
            model_run part = left;
            while (k < r->n && r->to[k] <= left.index) k++;
            if (k < r->n && r->to[k] - left.index < left.n) part.n = r->to[k] - left.index;
            left = (model_run){left.slot + part.n, left.index + part.n, left.n - part.n};
            if (k < r->n && is_on_disk(r, k)) {
                const kv_resident_section section = section_of(r, k);
                uint32_t slot;
                if (!kv_resident_ask(r->resident, t, &section, &slot))
                    return base_fail(err, BASE_E_NOMEM, "no memory for a copy of rows that lie on disk");
                part.slot = slot + (part.index - section.from);
            }
            put_run(moved, &n, part);
        }
    }
    list->runs = moved;
    list->n_runs = n;
    return 0;
}

int kv__bring_chosen(kv_reading *r, uint32_t layer, base_err *err)
{
    const kv_session *s = r->session;
    const uint32_t n_kv = s->compute.shape.n_head_kv;
    for (uint32_t head = 0; head < n_kv; head++) {
        const uint32_t lane = layer * n_kv + head;
        kv_resident_begin(r->resident, lane, (uint32_t)(s->parameters.kept * r->n_chosen[head]));
        int rc = move_lane(r, &r->lists[lane], r->moved + head * r->cap_runs, err);
        if (rc) return rc;
        for (uint32_t i = 0; i < r->n_next[head]; i++) {
            const uint32_t k = r->next[(size_t)head * r->cap + i];
            const kv_resident_section section = section_of(r, k);
            if (is_on_disk(r, k)) kv_resident_ahead(r->resident, &s->table, &section);
        }
    }
    kv_resident_wait(r->resident);
    r->chosen_view.blocks = r->rows->blocks;
    r->chosen_view.packed = r->rows->packed;
    r->chosen_view.n_blocks = r->rows->n_blocks;
    if (!kv_resident_show(r->resident, &r->chosen_view))
        return base_fail(err, BASE_E_NOMEM, "no memory to name %u blocks of rows", r->rows->n_blocks);
    return 0;
}

void kv__reading_rest(kv_session *s)
{
    if (s->reading) kv_resident_rest(s->reading->resident);
}
