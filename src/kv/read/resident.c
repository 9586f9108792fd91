/* Copies of sections that lie on disk; see resident.h. */
#include "kv/read/resident.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { READERS = 8, NONE = UINT32_MAX };

/* A place for one section of a lane; places of a lane are a list, the longest unused last. */
typedef struct place {
    uint32_t section, next, before; /* section: NONE: nothing is there */
    uint32_t step;                  /* the last one that asked */
    bool is_ahead;                  /* nobody asked for it yet */
} place;

typedef struct lane_places {
    place *places;
    uint32_t first, last, n;
    uint32_t *where; /* [most] by section; NONE */
} lane_places;

typedef struct job {
    uint32_t lane, place, n_parts;
    struct part {
        const uint16_t *from;
        uint16_t *to;
        size_t n_bytes;
    } parts[6]; /* keys and values, in at most three blocks */
} job;

typedef struct jobs {
    job *items;
    size_t n, cap, at; /* at: the next that nobody has begun */
} jobs;

struct kv_resident {
    model_rows_shape shape;
    uint32_t first, n, longest, most; /* first, n: blocks */
    uint32_t per_block;               /* places */
    uint16_t **blocks;
    uint8_t **packed;
    size_t cap_view; /* of both */
    uint16_t **own;  /* [n] */
    size_t cap_own;
    lane_places *lanes;
    uint32_t lane, room, step; /* who asks */
    kv_resident_sums sums;

    pthread_t threads[READERS];
    uint32_t n_threads;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake, done;
    jobs urgent, ahead;
    uint32_t n_urgent;      /* not yet done */
    uint32_t busy[READERS]; /* the lane that a reader reads ahead for; NONE */
    bool stopping;
};

/* --- the readers ---------------------------------------------------------------------------------------- */

/* Asks the kernel for exactly these pages at once; without it a fault reads pages around it, one after another. */
static void announce(const struct part *p)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p->from / page * page;
    madvise((void *)from, (uintptr_t)p->from + p->n_bytes - from, MADV_WILLNEED);
}

static void do_job(const job *j)
{
    for (uint32_t i = 0; i < j->n_parts; i++) announce(&j->parts[i]);
    for (uint32_t i = 0; i < j->n_parts; i++) memcpy(j->parts[i].to, j->parts[i].from, j->parts[i].n_bytes);
}

typedef struct reader {
    kv_resident *resident;
    uint32_t number;
} reader;

static void *read_jobs(void *arg)
{
    const reader me = *(reader *)arg;
    kv_resident *r = me.resident;
    free(arg);
    pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        jobs *from = r->urgent.at < r->urgent.n ? &r->urgent : r->ahead.at < r->ahead.n ? &r->ahead : NULL;
        if (!from) {
            pthread_cond_wait(&r->wake, &r->lock);
            continue;
        }
        const bool is_urgent = from == &r->urgent;
        const job j = from->items[from->at++];
        if (!is_urgent) r->busy[me.number] = j.lane;
        pthread_mutex_unlock(&r->lock);
        do_job(&j);
        pthread_mutex_lock(&r->lock);
        r->busy[me.number] = NONE;
        if (is_urgent) r->n_urgent--;
        pthread_cond_broadcast(&r->done);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static bool start_readers(kv_resident *r)
{
    for (; r->n_threads < READERS; r->n_threads++) {
        reader *one = malloc(sizeof *one);
        if (!one) break;
        *one = (reader){r, r->n_threads};
        if (pthread_create(&r->threads[r->n_threads], NULL, read_jobs, one)) {
            free(one);
            break;
        }
    }
    return r->n_threads > 0;
}

/* --- making --------------------------------------------------------------------------------------------- */

kv_resident *kv_resident_new(
    const model_rows_shape *shape, uint32_t first_block, uint32_t longest, uint32_t most)
{
    kv_resident *r = calloc(1, sizeof *r);
    const uint32_t n_lanes = model_rows_lanes(shape);
    if (!r) return NULL;
    *r = (kv_resident){.shape = *shape,
        .first = first_block,
        .longest = longest,
        .most = most,
        .per_block = MODEL_ROWS_BLOCK / longest,
        .lanes = calloc(n_lanes, sizeof *r->lanes)};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, NULL);
    pthread_cond_init(&r->done, NULL);
    bool ok = r->lanes != NULL;
    for (uint32_t i = 0; i < READERS; i++) r->busy[i] = NONE;
    for (uint32_t lane = 0; lane < n_lanes && ok; lane++) {
        lane_places *l = &r->lanes[lane];
        *l = (lane_places){
            .first = NONE, .last = NONE, .where = malloc(((size_t)most + 1) * sizeof *l->where)};
        ok = l->where != NULL;
        for (uint32_t i = 0; i < most && ok; i++) l->where[i] = NONE;
    }
    if (ok && start_readers(r)) return r;
    kv_resident_free(r);
    return NULL;
}

void kv_resident_free(kv_resident *r)
{
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < r->n_threads; i++) pthread_join(r->threads[i], NULL);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    pthread_cond_destroy(&r->done);
    for (uint32_t b = 0; b < r->n; b++) base_huge_free(r->own[b], model_rows_block_bytes(&r->shape));
    for (uint32_t lane = 0; r->lanes && lane < model_rows_lanes(&r->shape); lane++) {
        free(r->lanes[lane].places);
        free(r->lanes[lane].where);
    }
    free(r->lanes);
    free(r->own);
    free(r->blocks);
    free(r->packed);
    free(r->urgent.items);
    free(r->ahead.items);
    free(r);
}

/* --- places --------------------------------------------------------------------------------------------- */

static void take_out(lane_places *l, uint32_t i)
{
    const place *p = &l->places[i];
    *(p->before == NONE ? &l->first : &l->places[p->before].next) = p->next;
    *(p->next == NONE ? &l->last : &l->places[p->next].before) = p->before;
}

static void put_first(lane_places *l, uint32_t i)
{
    l->places[i].before = NONE;
    l->places[i].next = l->first;
    *(l->first == NONE ? &l->last : &l->places[l->first].before) = i;
    l->first = i;
}

static void put_last(lane_places *l, uint32_t i)
{
    l->places[i].next = NONE;
    l->places[i].before = l->last;
    *(l->last == NONE ? &l->first : &l->places[l->last].next) = i;
    l->last = i;
}

/* Nothing is there any more: the first to be taken. */
static void empty(lane_places *l, uint32_t i)
{
    if (l->places[i].section != NONE) l->where[l->places[i].section] = NONE;
    l->places[i].section = NONE;
    l->places[i].step = 0;
    take_out(l, i);
    put_last(l, i);
}

/* One more block, if the lane's places have filled those there are; its places in the lane. */
static bool grow(kv_resident *r, lane_places *l)
{
    if (l->n == r->n * r->per_block) {
        if (r->n == r->cap_own) {
            const size_t cap = 2 * r->cap_own + 8;
            uint16_t **own = realloc(r->own, cap * sizeof *own);
            if (!own) return false;
            r->own = own;
            r->cap_own = cap;
        }
        r->own[r->n] = base_huge_alloc(model_rows_block_bytes(&r->shape));
        if (!r->own[r->n]) return false;
        r->n++;
    }
    place *places = realloc(l->places, ((size_t)l->n + r->per_block) * sizeof *places);
    if (!places) return false;
    l->places = places;
    for (uint32_t i = 0; i < r->per_block; i++, l->n++) {
        places[l->n] = (place){.section = NONE};
        put_last(l, l->n);
    }
    return true;
}

/* A place that this step does not read, emptied; NONE: there is none and no room for more. */
static uint32_t find_place(kv_resident *r, lane_places *l, bool must)
{
    bool is_free = l->last != NONE && l->places[l->last].step != r->step;
    if (!is_free || (l->places[l->last].section != NONE && l->n < r->room))
        if ((must || l->n < r->room) && grow(r, l)) is_free = true;
    if (!is_free) return NONE;
    empty(l, l->last);
    return l->last;
}

/* --- asking --------------------------------------------------------------------------------------------- */

static uint32_t slot_of(const kv_resident *r, uint32_t i)
{
    return (r->first + i / r->per_block) * MODEL_ROWS_BLOCK + i % r->per_block * r->longest;
}

/* What is to be copied: from each block that the section lies in. */
static job job_of(const kv_resident *r, const kv_table *t, const kv_resident_section *s, uint32_t i)
{
    const size_t d = r->shape.head_dim, lane = (size_t)r->lane * 2 * MODEL_ROWS_BLOCK;
    const uint32_t slot = slot_of(r, i);
    job j = {.lane = r->lane, .place = i};
    for (uint32_t at = s->from, end; at < s->to; at = end) {
        const uint32_t b = at / MODEL_ROWS_BLOCK, behind = (b + 1) * MODEL_ROWS_BLOCK;
        end = s->to < behind ? s->to : behind;
        for (uint32_t half = 0; half < 2; half++)
            j.parts[j.n_parts++] =
                (struct part){t->rows[b] + (lane + half * MODEL_ROWS_BLOCK + at % MODEL_ROWS_BLOCK) * d,
                    r->own[slot / MODEL_ROWS_BLOCK - r->first] +
                        (lane + half * MODEL_ROWS_BLOCK + slot % MODEL_ROWS_BLOCK + (at - s->from)) * d,
                    (end - at) * d * sizeof(uint16_t)};
    }
    return j;
}

static void add_job(kv_resident *r, jobs *to, const job *j)
{
    pthread_mutex_lock(&r->lock);
    base_grow(&to->items, &to->cap, to->n + 1, sizeof *to->items);
    to->items[to->n++] = *j;
    r->n_urgent += to == &r->urgent;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < j->n_parts; i++) r->sums.bytes += j->parts[i].n_bytes;
}

static bool is_busy(const kv_resident *r, uint32_t lane)
{
    for (uint32_t i = 0; i < r->n_threads; i++)
        if (r->busy[i] == lane) return true;
    return false;
}

/* Of a lane nothing is on its way any more: what a reader has begun is there, the rest is not read. */
static void settle(kv_resident *r, uint32_t lane)
{
    lane_places *l = &r->lanes[lane];
    pthread_mutex_lock(&r->lock);
    size_t kept = r->ahead.at;
    for (size_t i = r->ahead.at; i < r->ahead.n; i++) {
        const job *j = &r->ahead.items[i];
        if (j->lane == lane) {
            empty(l, j->place);
            r->sums.ahead--;
            for (uint32_t k = 0; k < j->n_parts; k++) r->sums.bytes -= j->parts[k].n_bytes;
        } else
            r->ahead.items[kept++] = *j;
    }
    r->ahead.n = kept;
    if (r->ahead.at == r->ahead.n) r->ahead.at = r->ahead.n = 0;
    while (is_busy(r, lane)) pthread_cond_wait(&r->done, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

void kv_resident_begin(kv_resident *r, uint32_t lane, uint32_t room)
{
    settle(r, lane);
    r->lane = lane;
    r->room = room;
    r->step++;
}

/* The section's place now belongs to it and is the newest. */
static void take(kv_resident *r, lane_places *l, uint32_t i, uint32_t section, bool is_ahead)
{
    place *p = &l->places[i];
    take_out(l, i);
    put_first(l, i);
    p->section = section;
    p->step = is_ahead ? 0 : r->step;
    p->is_ahead = is_ahead;
    l->where[section] = i;
}

bool kv_resident_ask(
    kv_resident *r, const kv_table *t, const kv_resident_section *section, uint32_t *ret_slot)
{
    lane_places *l = &r->lanes[r->lane];
    uint32_t i = l->where[section->number];
    const bool found = i != NONE;
    if (found) {
        r->sums.wanted += l->places[i].is_ahead;
        r->sums.found += l->places[i].step != r->step;
    } else {
        i = find_place(r, l, true);
        if (i == NONE) return false;
        r->sums.fetched++;
    }
    take(r, l, i, section->number, false);
    if (!found) {
        const job j = job_of(r, t, section, i);
        add_job(r, &r->urgent, &j);
    }
    *ret_slot = slot_of(r, i);
    return true;
}

void kv_resident_wait(kv_resident *r)
{
    const uint64_t start = base_clock_ns();
    pthread_mutex_lock(&r->lock);
    while (r->n_urgent) pthread_cond_wait(&r->done, &r->lock);
    r->urgent.n = r->urgent.at = 0;
    pthread_mutex_unlock(&r->lock);
    r->sums.wait_ns += base_clock_ns() - start;
}

void kv_resident_ahead(kv_resident *r, const kv_table *t, const kv_resident_section *section)
{
    lane_places *l = &r->lanes[r->lane];
    if (l->where[section->number] != NONE) return;
    const uint32_t i = find_place(r, l, false);
    if (i == NONE) return;
    take(r, l, i, section->number, true);
    r->sums.ahead++;
    const job j = job_of(r, t, section, i);
    add_job(r, &r->ahead, &j);
}

void kv_resident_rest(kv_resident *r)
{
    for (uint32_t lane = 0; r && r->ahead.n && lane < model_rows_lanes(&r->shape); lane++) settle(r, lane);
}

void kv_resident_forget(kv_resident *r, uint32_t first)
{
    if (!r) return;
    for (uint32_t lane = 0; lane < model_rows_lanes(&r->shape); lane++) {
        lane_places *l = &r->lanes[lane];
        settle(r, lane);
        for (uint32_t i = 0; i < l->n; i++)
            if (l->places[i].section != NONE && l->places[i].section >= first) empty(l, i);
    }
}

/* --- looking -------------------------------------------------------------------------------------------- */

bool kv_resident_show(kv_resident *r, model_rows_view *rows)
{
    const size_t n = (size_t)r->first + r->n;
    if (rows->n_blocks > r->first) return false;
    if (n > r->cap_view) {
        uint16_t **blocks = realloc(r->blocks, n * sizeof *blocks);
        if (blocks) r->blocks = blocks;
        uint8_t **packed = realloc(r->packed, n * sizeof *packed);
        if (packed) r->packed = packed;
        if (!blocks || !packed) return false;
        r->cap_view = n;
    }
    memset(r->blocks, 0, r->first * sizeof *r->blocks);
    memset(r->packed, 0, n * sizeof *r->packed);
    memcpy(r->blocks, rows->blocks, rows->n_blocks * sizeof *r->blocks);
    if (rows->packed) memcpy(r->packed, rows->packed, rows->n_blocks * sizeof *r->packed);
    for (uint32_t b = 0; b < r->n; b++) r->blocks[r->first + b] = r->own[b];
    rows->blocks = r->blocks;
    rows->packed = r->packed;
    rows->filed = NULL; /* a session that reads by sections has none */
    rows->n_blocks = (uint32_t)n;
    rows->stamps = NULL;
    return true;
}

kv_resident_sums kv_resident_get_sums(const kv_resident *r)
{
    return r ? r->sums : (kv_resident_sums){.found = 0};
}

uint64_t kv_resident_bytes(const kv_resident *r)
{
    return r ? (uint64_t)r->n * model_rows_block_bytes(&r->shape) : 0;
}
