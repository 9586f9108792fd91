#include "fake_compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/file/quant.h"
#include "model/ops/sketch.h"
#include "kv/rows/bits.h"

/* +1 or -1, the code of a class in a lane. */
static int code(const fake_model *m, uint32_t class, uint32_t lane, uint32_t i)
{
    const uint32_t key[] = {class, m->lanes_differ ? lane : 0, i};
    return base_hash64(key, sizeof key, 7) & 1 ? 1 : -1;
}

static uint16_t half_of_sign(int sign)
{
    return sign > 0 ? 0x3c00 : 0xbc00; /* 1 and -1 */
}

static float sign_of_half(uint16_t half)
{
    return half & 0x8000 ? -1.0f : 1.0f;
}

/* Tokens that a layer reads; 0: all. */
static uint32_t window_of(void *user, uint32_t layer)
{
    return layer ? 0 : ((const fake_model *)user)->window;
}

static bool has_window(const fake_model *m, uint32_t lane)
{
    return m->window && lane < FAKE_HEADS_KV;
}

/* A key as it is read so much nearer: its sign says what it asks for and stays, its fraction says from where it is read. */
static void turn_key(uint16_t *key, uint32_t gap)
{
    const uint16_t by = gap ? (uint16_t)(1 + base_hash64(&gap, sizeof gap, 5) % 1023) : 0;
    for (uint32_t i = 0; i < FAKE_DIM; i++) key[i] = (uint16_t)((key[i] & 0xfc00) | ((key[i] + by) & 0x3ff));
}

/* The key of a token's row as it is read, [FAKE_DIM]. */
static void read_key(const model_rows_view *v, uint32_t lane, uint32_t slot, uint32_t index, uint16_t *ret)
{
    memcpy(ret, model_rows_key(v, lane, slot), FAKE_DIM * sizeof *ret);
    if (!v->turned_from || slot < v->turned_from) turn_key(ret, model_rows_gap(v, index));
}

/* Mixes the row in a slot into a lane's hash, as it is read; slots are indices here. */
static uint64_t mix_row(const model_rows_view *v, uint32_t lane, uint32_t slot, uint64_t hash)
{
    uint16_t key[FAKE_DIM];
    read_key(v, lane, slot, slot, key);
    hash = base_hash64(key, sizeof key, hash);
    return base_hash64(model_rows_value(v, lane, slot), 2 * FAKE_DIM, hash);
}

/* Mixes the first n_rows rows of a lane's list. */
static uint64_t mix_rows(const model_rows_view *v, uint32_t lane, uint32_t n_rows)
{
    uint64_t hash = lane;
    const model_lane_list *list = &v->lanes[lane];
    for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
        for (uint32_t i = 0; i < list->runs[r].n && o < n_rows; i++, o++)
            hash = mix_row(v, lane, list->runs[r].slot + i, hash);
    return hash;
}

/* The row of ordinal o, as a run. From the back: what is asked for are a batch's own rows, and those end the list. */
static model_run run_at(const model_lane_list *list, uint32_t o)
{
    uint32_t first = list->n_rows; /* the run's first ordinal */
    for (uint32_t r = list->n_runs; r-- > 0;) {
        const model_run *run = &list->runs[r];
        first -= run->n;
        if (o >= first) return (model_run){run->slot + (o - first), run->index + (o - first), 1};
    }
    abort();
}

static uint32_t slot_at(const model_lane_list *list, uint32_t o)
{
    return run_at(list, o).slot;
}

/* Mixes what the token of ordinal `own` reads through the window, its own row not; no row there is read from nearer. */
static uint64_t mix_window(const fake_model *m, const model_rows_view *v, uint32_t lane, uint32_t own)
{
    model_rows_view plain = *v;
    uint64_t hash = lane;
    const model_lane_list *list = &v->lanes[lane];
    const uint32_t index = run_at(list, own).index;
    plain.n_gaps = 0;
    for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
        for (uint32_t i = 0; i < list->runs[r].n && o < own; i++, o++)
            if (list->runs[r].index + i + m->window > index)
                hash = mix_row(&plain, lane, list->runs[r].slot + i, hash);
    return hash;
}

/* A hidden state is a hash, 16 bits a float, and floats that follow from it. */
static void put_state(float *state, uint64_t hash)
{
    for (uint32_t i = 0; i < FAKE_EMBD; i++)
        state[i] = (float)(uint16_t)(hash >> 16 * (i % 4)) + (float)(i / 4);
}

static uint64_t get_state(const float *state)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < FAKE_EMBD; i++) {
        const uint64_t part = (uint64_t)(state[i] - (float)(i / 4));
        if (i < 4)
            hash |= part << 16 * i;
        else if (part != (hash >> 16 * (i % 4) & 0xffff))
            abort(); /* not a state that put_state made */
    }
    return hash;
}

static uint16_t signs_of(const uint16_t *key)
{
    uint16_t signs = 0;
    for (uint32_t d = 0; d < FAKE_DIM; d++) signs |= (uint16_t)(key[d] >> 15 << d);
    return signs;
}

/*
 * Which of a lane's rows have keys of the same signs: row o is of kind kinds[o], key[kind] the first row's key. There are few
 * (FAKE_CLASSES), so what a query makes of a key is computed once a kind and not once a row. `seen` is a kind + 1 by signs; left as zeros.
 */
static uint32_t kinds_of_rows(
    const model_rows_view *v, uint32_t lane, uint16_t *seen, uint16_t *kinds, const uint16_t **key)
{
    const model_lane_list *list = &v->lanes[lane];
    uint32_t n = 0;
    for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
        for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
            const uint16_t *k = model_rows_key(v, lane, list->runs[r].slot + i);
            uint16_t *its = &seen[signs_of(k)];
            if (!*its) {
                key[n] = k;
                *its = (uint16_t)++n;
            }
            kinds[o] = (uint16_t)(*its - 1);
        }
    for (uint32_t kind = 0; kind < n; kind++) seen[signs_of(key[kind])] = 0;
    return n;
}

static int score(void *user, const model_score *s, base_err *err)
{
    fake_model *m = user;
    enum { G = FAKE_HEADS / FAKE_HEADS_KV };
    if (s->cancel && atomic_load(s->cancel)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    uint16_t *seen = calloc(1 << FAKE_DIM, sizeof *seen);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
        const model_lane_list *list = &s->rows->lanes[lane];
        if (!s->mass[lane]) continue;
        double *p = calloc(list->n_rows + 1, sizeof *p), *pool = calloc(list->n_rows + 1, sizeof *pool),
               *weight = calloc(list->n_rows + 1, sizeof *weight);
        uint16_t *kind = calloc(list->n_rows + 1, sizeof *kind);
        const uint16_t **key = calloc(list->n_rows + 1, sizeof *key);
        const uint32_t n_kinds = kinds_of_rows(s->rows, lane, seen, kind, key);
        uint32_t n_heads = 0;
        memset(s->mass[lane], 0, list->n_rows * sizeof(float));
        for (uint32_t g = 0; g < G; g++) {
            const uint32_t lh = lane * G + g;
            if (s->heads && !s->heads[lh]) continue;
            n_heads++;
            memset(pool, 0, list->n_rows * sizeof *pool);
            for (uint32_t t = 0; t < s->n_queries; t++) {
                const float *q = s->queries + ((size_t)lh * s->n_queries + t) * FAKE_DIM;
                double total = 0;
                for (uint32_t i = 0; i < n_kinds; i++) {
                    double dot = 0;
                    for (uint32_t d = 0; d < FAKE_DIM; d++) dot += q[d] * sign_of_half(key[i][d]);
                    weight[i] = exp(dot / 4);
                }
                for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
                    for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
                        const bool is_behind =
                            has_window(m, lane) && list->runs[r].index + i + m->window < s->end;
                        total += p[o] = is_behind ? 0 : weight[kind[o]];
                    }
                for (uint32_t o = 0; o < list->n_rows; o++) {
                    const double mass = total > 0 ? p[o] / total : 0;
                    if (s->pool == MODEL_POOL_MEAN)
                        pool[o] += mass / s->n_queries;
                    else
                        pool[o] = mass > pool[o] ? mass : pool[o];
                }
            }
            for (uint32_t o = 0; o < list->n_rows; o++) s->mass[lane][o] += (float)pool[o];
        }
        for (uint32_t o = 0; o < list->n_rows && n_heads; o++) s->mass[lane][o] /= (float)n_heads;
        m->n_scored += list->n_rows;
        free(p);
        free(pool);
        free(weight);
        free(kind);
        free(key);
    }
    free(seen);
    return 0;
}

static void put_keys(const fake_model *m, const model_batch *b, uint32_t layer, uint32_t t)
{
    for (uint32_t lane = layer * FAKE_HEADS_KV; lane < (layer + 1) * FAKE_HEADS_KV; lane++) {
        const model_lane_list *list = &b->rows->lanes[lane];
        uint16_t *key = model_rows_key(b->rows, lane, slot_at(list, list->n_rows - b->n + t));
        for (uint32_t i = 0; i < FAKE_DIM; i++)
            key[i] = half_of_sign(code(m, (uint32_t)b->ids[t] % FAKE_CLASSES, lane, i));
    }
}

/* In how many places the signs of two rows of halves differ; four halves a word, each word's signs a bit beside those of the one before. */
static int differing_signs(const uint16_t *a, const uint16_t *b)
{
    _Static_assert(FAKE_DIM / 4 <= 16, "signs of more words than a half has bits");
    uint64_t x[FAKE_DIM / 4], y[FAKE_DIM / 4], signs = 0;
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    for (uint32_t i = 0; i < FAKE_DIM / 4; i++) signs |= ((x[i] ^ y[i]) & UINT64_C(0x8000800080008000)) >> i;
    return (int)kv_bits_count_word(signs);
}

/* The pages that a query looks into, of a lane with more of them than v->open: those of the largest products. */
static void open_pages(const model_visit *v, uint32_t kv_head, const uint16_t *q, uint64_t *ret)
{
    const uint32_t n_pages = (v->n_slots + 63) / 64;
    uint32_t n_out = 0;
    for (uint32_t w = 0; w < n_pages; w++) n_out += (ret[w] = v->evicted[kv_head][w]) != 0;
    if (!v->open || n_out <= v->open) return;
    float *weight = calloc(n_pages, sizeof *weight);
    memset(ret, 0, n_pages * sizeof *ret);
    for (uint32_t w = 0; w < n_pages; w++) {
        const model_sketch k = model_sketch_of(v->pages[kv_head].sketches, FAKE_DIM, w / MODEL_ROWS_BLOCK);
        if (!v->evicted[kv_head][w]) weight[w] = -INFINITY;
        for (uint32_t i = 0; i < FAKE_DIM; i++)
            weight[w] += quant_f16_to_f32(q[i]) * model_sketch_number(&k, FAKE_DIM, w % MODEL_ROWS_BLOCK, i);
    }
    for (uint32_t k = 0; k < v->open; k++) {
        uint32_t best = 0;
        for (uint32_t w = 1; w < n_pages; w++)
            if (weight[w] > weight[best]) best = w;
        ret[best] = v->evicted[kv_head][best];
        weight[best] = -INFINITY;
    }
    free(weight);
}

/*
 * The heaviest of a lane's evicted rows, by a weight that ascends with the score of a query of that class; of
 * equal ones those before; ascending. Returns how many.
 */
static uint32_t choose(
    const fake_model *m, const model_visit *v, uint32_t lane, uint32_t class, uint32_t *ret)
{
    uint32_t of_weight[FAKE_DIM + 1] = {0}, n = 0, n_found = 0, room = v->most;
    int cut = FAKE_DIM;
    uint16_t q[FAKE_DIM];
    struct {
        uint32_t token;
        int weight;
    } *found = calloc(v->n_slots + 1, sizeof *found);
    uint64_t *evicted = calloc(v->n_slots / 64 + 1, sizeof *evicted);
    for (uint32_t i = 0; i < FAKE_DIM; i++) q[i] = half_of_sign(code(m, class, lane, i));
    if (v->evicted[lane % FAKE_HEADS_KV]) open_pages(v, lane % FAKE_HEADS_KV, q, evicted);
    for (uint32_t w = 0; w * 64 < v->n_slots; w++)
        for (uint64_t left = evicted[w]; left; left &= left - 1) {
            const uint32_t t = w * 64 + (uint32_t)__builtin_ctzll(left);
            const int weight = FAKE_DIM - differing_signs(q, model_rows_key(v->rows, lane, t));
            found[n_found].token = t;
            found[n_found++].weight = weight;
            of_weight[weight]++;
        }
    for (; cut && of_weight[cut] <= room; cut--) room -= of_weight[cut];
    for (uint32_t i = 0; i < n_found && n < v->most; i++) {
        if (found[i].weight < cut || (found[i].weight == cut && !room)) continue;
        room -= found[i].weight == cut;
        ret[n++] = found[i].token;
    }
    free(evicted);
    free(found);
    return n;
}

/* What the batch's tokens may read beside their lists, by layer; the choices are kept apart, for `visited`. */
typedef struct layer_visits {
    model_visit of[FAKE_LAYERS];
    uint32_t *chosen[FAKE_LAYERS], *n_chosen[FAKE_LAYERS];
    bool any;
} layer_visits;

static void free_visits(layer_visits *v)
{
    for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++) {
        free(v->chosen[layer]);
        free(v->n_chosen[layer]);
    }
}

static int get_visits(const fake_model *m, const model_batch *b, uint32_t first, uint32_t last,
    layer_visits *ret, base_err *err)
{
    *ret = (layer_visits){.any = b->reader && b->reader->visit};
    for (uint32_t layer = first; layer < last && ret->any; layer++) {
        if (has_window(m, layer * FAKE_HEADS_KV)) continue; /* nothing visits there */
        model_visit *v = &ret->of[layer];
        const int rc = b->reader->visit(b->reader->user, layer, v, err);
        if (rc) return rc;
        const size_t n = (size_t)FAKE_HEADS_KV * b->n;
        v->chosen = ret->chosen[layer] = calloc(n * v->most + 1, sizeof *v->chosen);
        v->n_chosen = ret->n_chosen[layer] = calloc(n, sizeof *v->n_chosen);
    }
    return 0;
}

/* A row that is read elsewhere than where it lies must be the same. */
static void check_copies(const model_rows_view *read, const model_rows_view *own, uint32_t lane)
{
    const model_lane_list *list = &read->lanes[lane];
    for (uint32_t r = 0; r < list->n_runs; r++) {
        const model_run *run = &list->runs[r];
        bool is_same = run->slot / MODEL_ROWS_BLOCK == (run->slot + run->n - 1) / MODEL_ROWS_BLOCK;
        if (run->slot / MODEL_ROWS_BLOCK < own->n_blocks) continue;
        for (uint32_t i = 0; i < run->n; i++) {
            uint16_t key[FAKE_DIM], of[FAKE_DIM];
            read_key(read, lane, run->slot + i, run->index + i, key);
            read_key(own, lane, run->index + i, run->index + i, of);
            is_same = is_same && memcmp(key, of, sizeof key) == 0 &&
                      !memcmp(model_rows_value(read, lane, run->slot + i),
                          model_rows_value(own, lane, run->index + i), sizeof key);
        }
        if (!is_same) {
            fprintf(stderr, "lane %u: a copy of token %u's row is another\n", lane, run->index);
            abort();
        }
    }
}

/* Mixes the rows that a token reads and the batch's own list does not have. Lists ascend. */
static uint64_t mix_visitors(
    const fake_model *m, const model_batch *b, layer_visits *all, uint32_t lane, uint32_t t, uint64_t hash)
{
    model_visit *v = &all->of[lane / FAKE_HEADS_KV];
    const model_lane_list *list = &v->rows->lanes[lane], *own = &b->rows->lanes[lane];
    const size_t place = (size_t)(lane % FAKE_HEADS_KV) * b->n + t;
    uint32_t *chosen = v->chosen + place * v->most;
    uint32_t at = 0; /* the first of the own runs that ends behind the row */
    if (t == 0) check_copies(v->rows, b->rows, lane);
    for (uint32_t r = 0; r < list->n_runs && list->n_rows != own->n_rows; r++) {
        if (r && list->runs[r].index < list->runs[r - 1].index) abort();
        for (uint32_t i = 0; i < list->runs[r].n; i++) {
            const uint32_t index = list->runs[r].index + i;
            while (at < own->n_runs && own->runs[at].index + own->runs[at].n <= index) at++;
            if (at == own->n_runs || index < own->runs[at].index)
                hash = mix_row(b->rows, lane, list->runs[r].slot + i, hash);
        }
    }
    v->n_chosen[place] = choose(m, v, lane, (uint32_t)b->ids[t] % FAKE_CLASSES, chosen);
    for (uint32_t i = 0; i < v->n_chosen[place]; i++) hash = mix_row(b->rows, lane, chosen[i], hash);
    return hash;
}

/* What a token looked into is the sketch of the rows, once it was let pass. One lane of each block: making them takes long. */
static void check_sketches(const model_visit *v, uint32_t layer)
{
    const uint16_t *keys[MODEL_ROWS_BLOCK];
    uint8_t want[sizeof(float) * 2 * FAKE_DIM + MODEL_ROWS_BLOCK * FAKE_DIM / 2];
    for (uint32_t b = 0; b * MODEL_ROWS_BLOCK < v->n_slots; b++) {
        const uint32_t h = b % FAKE_HEADS_KV, lane = layer * FAKE_HEADS_KV + h;
        if (!(v->opened[h * v->n_opened + b / 64] >> b % 64 & 1)) continue;
        for (uint32_t i = 0; i < MODEL_ROWS_BLOCK; i++)
            keys[i] = model_rows_key(v->rows, lane, b * MODEL_ROWS_BLOCK + i);
        model_sketch_make_some(FAKE_DIM, keys, want);
        if (!memcmp(v->sketches[b] + (lane - v->n_unsketched) * sizeof want, want, sizeof want)) continue;
        fprintf(stderr, "lane %u: the sketch of block %u is not that of its rows\n", lane, b);
        abort();
    }
}

/* As if all sketches were looked into, as far as their blocks lie in a row file. Where one was damaged it is another then. */
static int tell_visited(const model_batch *b, const model_visit *v, uint32_t layer, base_err *err)
{
    enum { MESSAGE = 9 }; /* tokens */
    int rc;
    do {
        for (uint32_t s = 0; s * MODEL_ROWS_BLOCK < v->n_slots; s++)
            for (uint32_t h = 0; h < FAKE_HEADS_KV && v->opened; h++)
                if (v->evicted[h] && v->sketches[s] && model_rows_filed(v->rows, s * MODEL_ROWS_BLOCK))
                    v->opened[h * v->n_opened + s / 64] |= UINT64_C(1) << s % 64;
        rc = b->reader->visited(b->reader->user, v, err);
    } while (rc > 0);
    if (!rc && b->n >= MESSAGE && v->opened) check_sketches(v, layer);
    return rc;
}

typedef struct remembered {
    uint64_t hash, n; /* n: tokens */
} remembered;

/* The index of the batch's first token in its sequence. */
static uint64_t first_of(const model_batch *b)
{
    const model_lane_list *list = &b->rows->lanes[0];
    uint32_t left = b->n, r = list->n_runs;
    while (r-- > 0 && list->runs[r].n < left) left -= list->runs[r].n;
    return list->runs[r].index + list->runs[r].n - left;
}

static remembered begin_state(const model_batch *b)
{
    remembered s = {0};
    if (b->state_in) memcpy(&s, b->state_in, sizeof s);
    if (b->state_out && s.n != first_of(b)) {
        fprintf(stderr, "a state behind %llu tokens for a batch that begins at token %llu\n",
            (unsigned long long)s.n, (unsigned long long)first_of(b));
        abort();
    }
    return s;
}

static int forward(void *user, const model_batch *b, base_err *err)
{
    fake_model *m = user;
    if (b->cancel && atomic_load(b->cancel)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    if (m->fail_after == 0) {
        m->fail_after = -1;
        return base_fail(err, BASE_E_CANCELLED, "cancelled");
    }
    if (m->fail_after > 0) m->fail_after--;
    uint32_t next_want = 0, next_capture = 0;
    const uint32_t last_layer = b->layer_last ? b->layer_last : FAKE_LAYERS,
                   first = b->layer_first * FAKE_HEADS_KV, last = last_layer * FAKE_HEADS_KV;
    layer_visits visits;
    int rc = get_visits(m, b, b->layer_first, last_layer, &visits, err);
    if (rc) {
        free_visits(&visits);
        return rc;
    }
    remembered kept = begin_state(b);
    uint64_t read[FAKE_LANES]; /* what the next token of the batch can read */
    for (uint32_t lane = first; lane < last; lane++)
        read[lane] = mix_rows(b->rows, lane, b->rows->lanes[lane].n_rows - b->n);
    for (uint32_t t = 0; t < b->n; t++) {
        uint64_t all =
            first ? get_state(b->hidden + (size_t)t * FAKE_EMBD) : (uint64_t)b->ids[t] * 31 + b->phases[t];
        if (b->state_out) all = base_hash64(&kept.hash, sizeof kept.hash, all);
        for (uint32_t lane = first; lane < last; lane++) {
            const model_lane_list *list = &b->rows->lanes[lane];
            const uint32_t own = list->n_rows - b->n + t;
            if (lane % FAKE_HEADS_KV == 0) put_keys(m, b, lane / FAKE_HEADS_KV, t);
            const bool through_window = has_window(m, lane);
            const uint64_t before = through_window ? mix_window(m, b->rows, lane, own)
                                    : visits.any   ? mix_visitors(m, b, &visits, lane, t, read[lane])
                                                   : read[lane];
            uint16_t *value = model_rows_value(b->rows, lane, slot_at(list, own));
            for (uint32_t i = 0; i < FAKE_DIM; i++) {
                const uint64_t seed[] = {before, all, (uint64_t)(uint32_t)b->ids[t], b->phases[t], i};
                value[i] = (uint16_t)base_hash64(seed, sizeof seed, 1);
            }
            if (!through_window) read[lane] = mix_row(b->rows, lane, slot_at(list, own), read[lane]);
            all = base_hash64(&before, sizeof before, all);
        }
        kept.hash = base_hash64(&all, sizeof all, kept.hash);
        kept.n++;
        if (last < FAKE_LANES) put_state(b->hidden + (size_t)t * FAKE_EMBD, all);
        if (next_want < b->n_want && b->want[next_want] == t) {
            for (uint32_t v = 0; v < FAKE_VOCAB; v++)
                b->logits[(size_t)next_want * FAKE_VOCAB + v] =
                    (float)(base_hash64(&v, sizeof v, all) >> 44) / 65536;
            next_want++;
        }
        if (b->capture && next_capture < b->capture->n && b->capture->tokens[next_capture] == t) {
            for (uint32_t lh = b->layer_first * FAKE_HEADS; lh < last_layer * FAKE_HEADS; lh++)
                for (uint32_t i = 0; i < FAKE_DIM; i++)
                    b->capture->queries[((size_t)lh * b->capture->n + next_capture) * FAKE_DIM + i] =
                        (float)code(
                            m, (uint32_t)b->ids[t] % FAKE_CLASSES, lh / (FAKE_HEADS / FAKE_HEADS_KV), i);
            next_capture++;
        }
    }
    for (uint32_t layer = b->layer_first; layer < last_layer && visits.any; layer++)
        if (!has_window(m, layer * FAKE_HEADS_KV) && !rc) rc = tell_visited(b, &visits.of[layer], layer, err);
    free_visits(&visits);
    if (rc) return rc;
    if (b->state_out) memcpy(b->state_out, &kept, sizeof kept);
    m->n_forward += b->n;
    m->n_layers += (uint64_t)b->n * (last_layer - b->layer_first);
    return 0;
}

static int turn_rows(void *user, const model_rows_view *rows, uint32_t lane, uint32_t index, uint32_t step,
    uint32_t n, uint16_t *keys, base_err *err)
{
    (void)user;
    (void)lane;
    (void)err;
    for (uint32_t i = 0; i < n; i++)
        turn_key(keys + (size_t)i * FAKE_DIM, model_rows_gap(rows, index + i * step));
    return 0;
}

static void turn(void *user, float *queries, uint32_t n, const int64_t *by)
{
    fake_model *m = user;
    (void)queries;
    for (uint32_t i = 0; i < n; i++) m->n_turned += by[i] != 0;
}

static size_t find_pin(const fake_model *m, const void *memory)
{
    size_t i = 0;
    while (i < m->n_pinned && m->pinned[i] != memory) i++;
    return i;
}

static void pin(void *user, void *memory, size_t n_bytes)
{
    fake_model *m = user;
    if (find_pin(m, memory) < m->n_pinned || m->n_pinned == FAKE_PINS || !n_bytes) abort();
    m->pinned[m->n_pinned++] = memory;
}

static void unpin(void *user, void *memory)
{
    fake_model *m = user;
    const size_t at = find_pin(m, memory);
    if (at == m->n_pinned) abort();
    m->pinned[at] = m->pinned[--m->n_pinned];
}

static void bring(void *user, const model_rows_view *rows)
{
    fake_model *m = user;
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        for (uint32_t i = 0; i < rows->lanes[lane].n_runs; i++)
            if (!rows->blocks[rows->lanes[lane].runs[i].slot / MODEL_ROWS_BLOCK] &&
                !model_rows_filed(rows, rows->lanes[lane].runs[i].slot))
                abort();
    m->n_brought++;
}

kv_compute fake_compute(fake_model *m, uint32_t n_ctx)
{
    m->fail_after = -1;
    kv_compute c = {
        .user = m,
        .forward = forward,
        .score = score,
        .shape = {.n_layer = FAKE_LAYERS, .n_head_kv = FAKE_HEADS_KV, .head_dim = FAKE_DIM},
        .n_head = FAKE_HEADS,
        .n_embd = FAKE_EMBD,
        .n_vocab = FAKE_VOCAB,
        .n_ctx = n_ctx,
        .kernel_version = 1,
        .turn = turn,
        .turn_rows = turn_rows,
        .gathers = true,
        .device = {.user = m, .pin = pin, .unpin = unpin, .bring = bring},
    };
    if (getenv("KVIST_FAKE_STATES")) {
        c.state_bytes = FAKE_STATE;
        c.n_embd = 0;
    }
    if (!m->window && getenv("KVIST_FAKE_WINDOW")) m->window = (uint32_t)atoi(getenv("KVIST_FAKE_WINDOW"));
    if (m->window) c.window = window_of;
    memset(c.hash, 'f', 64);
    return c;
}

uint64_t test_seed(const char *what, uint64_t otherwise)
{
    const char *given = getenv("KVIST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : otherwise;
    printf("%s: KVIST_SEED=%llu\n", what, (unsigned long long)seed);
    return seed;
}

uint32_t test_length(uint32_t usual, uint32_t full)
{
    if (getenv("KVIST_TEST_LONG")) return full;
    return getenv("KVIST_FAKE_STATES") ? usual / 2 : usual;
}

uint64_t test_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t test_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(test_random(state) % n);
}
