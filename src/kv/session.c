/*
 * The sequence: making a session, appending in chunks, cutting back, forking. See session.h; what is kept and what comes back
 * is decided in select.c and repair.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kv/reading.h"
#include "kv/split.h"
#include "kv/state.h"
#include "kv/visit.h"
#include "model/tokenizer.h"

static const char *const origin_words[KV_N_ORIGINS] = {
    "system", "scaffold", "instructions", "user", "context", "tool", "answer", "call"};

const char *kv_origin_word(kv_origin o)
{
    return (unsigned)o < KV_N_ORIGINS ? origin_words[o] : "";
}

static int forward_model(void *user, const model_batch *batch, base_err *err)
{
    return model_forward(user, batch, err);
}

static int score_model(void *user, const model_score *score, base_err *err)
{
    return model_score_rows(user, score, err);
}

static int bound_model(void *user, const model_bound *bound, base_err *err)
{
    return model_bound_sections(user, bound, err);
}

static void pin_model(void *user, void *memory, size_t n_bytes)
{
    model_rows_pin(user, memory, n_bytes);
}

static void unpin_model(void *user, void *memory)
{
    model_rows_unpin(user, memory);
}

static void bring_model(void *user, const model_rows_view *rows)
{
    model_rows_bring(user, rows);
}

static uint8_t ending_of_model(void *user, int32_t id)
{
    const model_tokenizer *t = model_get_tokenizer(user);
    size_t n = 0;
    const char *piece = model_tokenizer_piece(t, id, &n);
    if (model_tokenizer_is_control(t, id)) return KV_ENDING_SENTENCE;
    return piece ? (uint8_t)kv_ending_of_text(piece, n) : KV_ENDING_NONE;
}

kv_compute kv_compute_model(model *m)
{
    const model_info *info = model_get_info(m);
    kv_compute c = {
        .user = m,
        .forward = forward_model,
        .score = score_model,
        .shape = model_get_rows_shape(m),
        .n_head = info->n_head,
        .n_embd = info->n_embd,
        .n_vocab = info->n_vocab,
        .n_ctx = info->n_ctx,
        .kernel_version = info->kernel_version,
        .bound = bound_model,
        .ending = ending_of_model,
        .device = {.user = m, .pin = pin_model, .unpin = unpin_model, .bring = bring_model},
    };
    memcpy(c.hash, info->hash, sizeof c.hash);
    return c;
}

model_rows_view kv__view_of(const kv_session *s, const model_lane_list *lanes)
{
    return (model_rows_view){.shape = s->table.shape,
        .blocks = s->table.rows,
        .packed = s->table.packed,
        .n_blocks = s->table.n,
        .lanes = lanes,
        .stamps = s->table.stamps};
}

void kv__bring(const kv_session *s)
{
    const model_rows_view rows = kv__view(s);
    if (s->compute.device.bring) s->compute.device.bring(s->compute.device.user, &rows);
}

model_rows_view kv__view(const kv_session *s)
{
    return kv__view_of(s, s->lists.view);
}

size_t kv__memory_floats(const kv_session *s)
{
    return (size_t)s->compute.shape.n_layer * s->compute.n_head * s->compute.shape.head_dim;
}

void kv__part_fini(kv_part *p)
{
    free(p->spans);
    free(p->lines);
    free(p->mass);
}

kv_part *kv__part_at(const kv_session *s, uint32_t token)
{
    size_t from = 0, to = s->n_parts;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (s->parts[middle].to <= token)
            from = middle + 1;
        else
            to = middle;
    }
    return from < s->n_parts && s->parts[from].from <= token ? &s->parts[from] : NULL;
}

int kv__session_allocate(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err)
{
    const kv_policy *policy = kv_policy_find(options->policy, err);
    if (!policy) return BASE_E_USAGE;
    kv_session *s = base_xcalloc(1, sizeof *s);
    s->policy = policy;
    s->compute = *compute;
    s->n_lanes = model_rows_lanes(&compute->shape);
    s->n_ctx = options->n_ctx && options->n_ctx < compute->n_ctx ? options->n_ctx : compute->n_ctx;
    s->budget = policy->score ? options->budget : 0;
    s->automatic = true;
    s->turn = 0;
    if (observer) s->observer = *observer;
    kv_table_init(&s->table, &compute->shape);
    kv_table_init(&s->prefix.table, &compute->shape);
    s->table.device = s->prefix.table.device = compute->device;
    kv_signal_init(&s->request, compute->shape.n_layer, compute->n_head, compute->shape.head_dim);
    kv_signal_init(&s->recent, compute->shape.n_layer, compute->n_head, compute->shape.head_dim);
    kv_signal_init(&s->asked, compute->shape.n_layer, compute->n_head, compute->shape.head_dim);
    kv_signal_init(&s->waiting.kept, compute->shape.n_layer, compute->n_head, compute->shape.head_dim);
    int r = kv_parameters_parse(policy, options->set, &s->parameters, err);
    if (r) goto fail;
    s->repair = options->repair >= 0 ? options->repair : policy->repair;
    const size_t n = (size_t)s->n_ctx + 1;
    s->ids = calloc(n, sizeof *s->ids);
    s->phases = calloc(n, sizeof *s->phases);
    s->tokens = calloc(n, sizeof *s->tokens);
    s->file_row = calloc(n, sizeof *s->file_row);
    s->row_hash = calloc(n, sizeof *s->row_hash);
    s->cut = calloc(n, sizeof *s->cut);
    s->pending = KV_NO_ROW;
    s->pinned = calloc(kv_bits_words(n), sizeof *s->pinned);
    s->barred = calloc(kv_bits_words(n), sizeof *s->barred);
    s->stale = calloc(kv_bits_words(n), sizeof *s->stale);
    s->dead = calloc(kv_bits_words(n), sizeof *s->dead);
    if (!s->ids || !s->phases || !s->tokens || !s->file_row || !s->row_hash || !s->cut || !s->pinned ||
        !s->barred || !s->stale || !s->dead) {
        r = base_fail(
            err, BASE_E_NOMEM, "no memory for a session of %u tokens; choose a smaller --ctx", s->n_ctx);
        goto fail;
    }
    r = kv_lists_init(&s->lists, s->n_lanes, s->n_ctx, err);
    if (r) goto fail;
    s->row_path = base_xstrdup(options->row_file);
    if (options->prefix_file) kv__prefix_load(s, options->prefix_file);
    kv__heads_load(s, options->heads_file);
    s->pivot_path = base_xstrdup(options->pivot_file);
    if (options->pivot_file)
        s->pivot = kv_pivot_load(options->pivot_file, compute->hash, compute->shape.n_layer);
    *ret = s;
    return 0;
fail:
    kv_session_free(s);
    return r;
}

int kv_session_new_over(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err)
{
    kv_session *s = NULL;
    int r = kv__session_allocate(&s, compute, options, observer, err);
    if (r) return r;
    const uint32_t least = (uint32_t)s->parameters.sinks + (uint32_t)s->parameters.window + KV_CHUNK;
    if (s->budget && s->budget < least) {
        r = base_fail(err, BASE_E_LIMIT,
            "a cache budget of %u rows is too small; give at least %u, and what the fixed prompt takes",
            s->budget, least);
        kv_session_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

int kv_session_new(
    kv_session **ret, model *m, const kv_options *options, const kv_observer *observer, base_err *err)
{
    const kv_compute compute = kv_compute_model(m);
    return kv_session_new_over(ret, &compute, options, observer, err);
}

void kv_session_free(kv_session *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_parts; i++) kv__part_fini(&s->parts[i]);
    for (uint32_t i = 0; i < s->n_journal; i++) base_buf_free(&s->journal[i].blob);
    kv_table_fini(&s->table);
    kv_table_fini(&s->prefix.table);
    kv_lists_fini(&s->lists);
    kv_signal_fini(&s->request);
    kv_signal_fini(&s->recent);
    kv_signal_fini(&s->asked);
    kv_signal_fini(&s->waiting.kept);
    kv_rowfile_close(s->file);
    kv__reading_free(s->reading);
    kv__visit_free(s->visit);
    kv_ranker_free(&s->ranker);
    free(s->prefix.ids);
    free(s->parts);
    free(s->ids);
    free(s->phases);
    free(s->tokens);
    free(s->file_row);
    free(s->row_hash);
    free(s->cut);
    free(s->pinned);
    free(s->barred);
    free(s->stale);
    free(s->dead);
    if (s->tier) close(s->tier);
    kv_memory_unref(s->memory);
    free(s->heavy);
    free(s->heads);
    free(s->best_heads);
    free(s->pivot);
    free(s->pivot_path);
    free(s->logits);
    free(s->row_path);
    free(s);
}

void kv__part_add(kv_session *s, const kv_part *p)
{
    base_grow(&s->parts, &s->cap_parts, s->n_parts + 1, sizeof *s->parts);
    kv_part *part = &s->parts[s->n_parts++];
    *part = *p;
    part->spans = NULL;
    part->lines = NULL;
    part->mass = NULL;
    if (p->mass) {
        const size_t n_mass = (size_t)s->compute.shape.n_layer * p->n_mass;
        part->mass = base_xmalloc(n_mass * sizeof *part->mass);
        memcpy(part->mass, p->mass, n_mass * sizeof *part->mass);
    }
    if (p->n_spans) {
        part->spans = base_xmalloc(p->n_spans * sizeof *part->spans);
        memcpy(part->spans, p->spans, p->n_spans * sizeof *part->spans);
    }
    if (p->n_lines) {
        part->lines = base_xmalloc(p->n_lines * sizeof *part->lines);
        memcpy(part->lines, p->lines, p->n_lines * sizeof *part->lines);
    }
}

/* An answer's tokens come one by one and share one. */
void kv__open_part(kv_session *s, const kv_segment *g)
{
    const kv_part *last = s->n_parts ? &s->parts[s->n_parts - 1] : NULL;
    if (last && last->origin == g->origin && last->turn == g->turn && !g->n_spans && !g->n_lines &&
        (kv_origin_is_written(g->origin) || g->origin == KV_ORIGIN_SCAFFOLD))
        return;
    const kv_part part = {
        .from = s->n,
        .to = s->n,
        .turn = g->turn,
        .origin = g->origin,
        .spans = (kv_span *)(uintptr_t)g->spans, /* copied */
        .lines = (uint32_t *)(uintptr_t)g->lines,
        .n_spans = g->n_spans,
        .n_lines = g->n_lines,
    };
    kv__part_add(s, &part);
}

void kv__publish(kv_session *s, const int32_t *ids, uint32_t n)
{
    const uint32_t phase = kv__next_phase(s);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = s->n + i;
        s->ids[t] = ids[i];
        s->phases[t] = phase + i;
        s->file_row[t] = KV_NO_ROW;
        s->cut[t] = 0;
        s->tokens[t] = (kv_token){.last_action = KV_ACTION_NONE,
            .attention = NAN,
            .memory = NAN,
            .rank = NAN,
            .cut = NAN,
            .previous = 0};
    }
    s->n += n;
    s->parts[s->n_parts - 1].to = s->n;
    if (kv_origin_is_written(s->parts[s->n_parts - 1].origin)) kv__reading_publish(s, n);
    kv__visit_publish(s, n);
    s->logits_at = 0;
    s->epoch++;
}

void kv__withdraw(kv_session *s)
{
    kv_lists_truncate(&s->lists, s->n);
    kv_table_truncate(&s->table, s->n);
}

/* Tokens from the loaded prefix, as many as agree. Their rows were computed over no hole, so ours must have none either. */
static uint32_t adopt_prefix(kv_session *s, const int32_t *ids, uint32_t n, base_err *err)
{
    if (s->holed || s->n >= s->prefix.n || memcmp(s->ids, s->prefix.ids, s->n * sizeof *ids)) return 0;
    uint32_t same = 0;
    while (same < n && s->n + same < s->prefix.n && s->prefix.ids[s->n + same] == ids[same]) same++;
    if (!same) return 0;
    if (kv_table_adopt(&s->table, &s->prefix.table, s->n, s->n + same, err) ||
        kv_lists_append(&s->lists, same, err)) {
        kv__withdraw(s);
        return 0;
    }
    kv__publish(s, ids, same);
    s->reused += same;
    return same;
}

/* Which queries of a segment are kept: ascending offsets. */
typedef struct wanted {
    uint32_t offsets[2 * KV_RECENT_QUERIES];
    uint32_t n;
} wanted;

static void want(wanted *w, uint32_t offset)
{
    uint32_t i = w->n;
    while (i && w->offsets[i - 1] >= offset) i--;
    if ((i < w->n && w->offsets[i] == offset) || w->n == 2 * KV_RECENT_QUERIES) return;
    memmove(w->offsets + i + 1, w->offsets + i, (w->n - i) * sizeof *w->offsets);
    w->offsets[i] = offset;
    w->n++;
}

/* Text that is the same in every session: it asks nothing, and a prefix file may stand in for it. */
static bool is_fixed(kv_origin o)
{
    return o == KV_ORIGIN_SYSTEM || o == KV_ORIGIN_SCAFFOLD || o == KV_ORIGIN_INSTRUCTIONS;
}

static void choose_queries(const kv_session *s, const kv_segment *g, uint32_t n, wanted *w)
{
    const uint32_t n_request =
        (uint32_t)s->parameters.w < KV_REQUEST_QUERIES ? (uint32_t)s->parameters.w : KV_REQUEST_QUERIES;
    w->n = 0;
    for (uint32_t i = 0; i < g->n_queries && i < KV_REQUEST_QUERIES; i++)
        if (g->queries[i] < n) want(w, g->queries[i]);
    /* The last ones of a request, and of anything while nothing was asked: then they are all that can judge. */
    if (g->origin == KV_ORIGIN_USER || (!s->has_request && n > 1 && !is_fixed(g->origin)))
        for (uint32_t i = n > n_request ? n - n_request : 0; i < n; i++) want(w, i);
    if (g->origin == KV_ORIGIN_TOOL && !w->n)
        for (uint32_t i = 0; i < KV_REQUEST_QUERIES; i++)
            want(w, (uint32_t)((uint64_t)n * (2 * i + 1) / (2 * KV_REQUEST_QUERIES)));
}

/* Room for one chunk's captured queries. */
typedef struct capture {
    model_capture model;
    uint32_t places[KV_CHUNK], tokens[KV_CHUNK];
} capture;

/* Which of a chunk's queries are captured: those wanted of the segment, or all when the policy adds up attention. */
static void choose_captured(const kv_session *s, const wanted *w, uint32_t offset, uint32_t n, capture *c)
{
    for (uint32_t i = 0; i < n && s->policy->heavy; i++) c->places[c->model.n++] = i;
    for (uint32_t i = 0; i < w->n && !s->policy->heavy; i++)
        if (w->offsets[i] >= offset && w->offsets[i] < offset + n)
            c->places[c->model.n++] = w->offsets[i] - offset;
    for (uint32_t i = 0; i < c->model.n; i++) c->tokens[i] = s->n + c->places[i];
}

/* The wanted ones of the captured go to `kept`. */
static int keep_captured(const kv_session *s, const wanted *w, uint32_t offset, uint32_t n, const capture *c,
    kv_signal *kept, base_err *err)
{
    if (!s->policy->heavy)
        return kv_signal_add(kept, c->tokens, c->model.queries, c->model.n, KV_RECENT_QUERIES, err);
    kv_signal all = *kept, picked;
    uint32_t places[2 * KV_RECENT_QUERIES], n_places = 0;
    all.n = n;
    all.tokens = (uint32_t *)(uintptr_t)c->tokens;
    all.queries = c->model.queries;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->offsets[i] >= offset && w->offsets[i] < offset + n)
            places[n_places++] = w->offsets[i] - offset;
    if (!n_places) return 0;
    int r = kv_signal_pick(&all, places, n_places, &picked, err);
    if (!r) r = kv_signal_add(kept, picked.tokens, picked.queries, n_places, KV_RECENT_QUERIES, err);
    if (!r) kv_signal_fini(&picked);
    return r;
}

/*
 * One chunk: rows are staged behind the lists, computed, and published only when the last layer is through, so a cancel
 * leaves nothing of it. Captured queries are appended to `kept`.
 */
static int append_chunk(kv_session *s, const int32_t *ids, uint32_t n, const wanted *w, uint32_t offset,
    uint32_t cut, float *logits, const uint64_t *only, kv_signal *kept, const atomic_bool *cancel,
    base_err *err)
{
    uint32_t phases[KV_CHUNK];
    capture c = {.model = {.tokens = c.places}};
    s->draft.n = 0; /* its rows are written over */
    const uint32_t phase = kv__next_phase(s);
    for (uint32_t i = 0; i < n; i++) phases[i] = phase + i;
    choose_captured(s, w, offset, n, &c);
    if (c.model.n) {
        c.model.queries = calloc(kv__memory_floats(s) * c.model.n, sizeof(float));
        if (!c.model.queries)
            return base_fail(err, BASE_E_NOMEM, "no memory to keep %u query vectors", c.model.n);
    }
    float *hidden = cut ? malloc((size_t)n * s->compute.n_embd * sizeof *hidden) : NULL;
    int r = cut && !hidden ? base_fail(err, BASE_E_NOMEM, "no memory for %u hidden states", n) : 0;
    if (!r) r = kv_table_make_writable(&s->table, s->n, s->n + n, err);
    if (!r) r = kv_lists_append(&s->lists, n, err);
    if (!r && cut) r = kv__hide_staged(s, s->n, cut, err);
    const kv_part *open = &s->parts[s->n_parts - 1];
    const bool is_local = kv__is_local(s, open->origin);
    model_rows_view rows = kv__view(s);
    kv_local local = {0};
    if (!r && is_local) r = kv__local_view(s, open->from, s->n + n, &rows, &local, err);
    const model_reader *reader = NULL;
    if (!r && !is_local && !cut) r = kv__reader_begin(s, &rows, open->origin, ids, s->n, n, &reader, err);
    if (!r) {
        const uint32_t last = n - 1;
        const model_batch batch = {
            .ids = ids,
            .phases = phases,
            .n = n,
            .rows = &rows,
            .layer_last = cut,
            .hidden = hidden,
            .want = &last,
            .n_want = logits ? 1 : 0,
            .logits = logits,
            .only = only,
            .capture = c.model.n ? &c.model : NULL,
            .reader = reader,
            .cancel = cancel,
        };
        r = s->compute.forward(s->compute.user, &batch, err);
    }
    kv__local_free(&local);
    if (!r && c.model.n) r = keep_captured(s, w, offset, n, &c, kept, err);
    if (!r && s->policy->heavy) r = kv__heavy_add(s, s->n, n, c.model.queries, cancel, err);
    free(c.model.queries);
    if (!r && cut) kv__put_states(s, s->n, n, cut, hidden);
    free(hidden);
    if (r) {
        kv__withdraw(s);
        return r;
    }
    if (cut) { /* whatever reads the upper layers from here on reads over a hole */
        s->holed = true;
        const uint32_t schedule[] = {cut, s->n, n, UINT32_MAX - 2};
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
    if (is_local) { /* over holes: what stands between the group's beginning and this excerpt */
        s->holed = true;
        const uint32_t schedule[] = {phase, s->n, n};
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
    kv__publish(s, ids, n);
    if (cut) {
        for (uint32_t t = s->n - n; t < s->n; t++) s->cut[t] = (uint16_t)cut;
        if (s->pending == KV_NO_ROW) s->pending = s->n - n;
    }
    s->computed += n;
    return 0;
}

/* The newest queries become the request's, as soon as they are there: the eviction behind this chunk goes by them. */
static int update_request(
    kv_session *s, kv_origin origin, uint32_t turn, const kv_signal *kept, base_err *err)
{
    if (!kept->n) return 0;
    const bool asks = origin == KV_ORIGIN_USER;
    if (!asks && s->has_request) return 0;
    int r = kv_signal_copy(&s->request, kept, err);
    if (r) return r;
    const uint32_t max =
        (uint32_t)s->parameters.w < KV_REQUEST_QUERIES ? (uint32_t)s->parameters.w : KV_REQUEST_QUERIES;
    if (s->request.n > max) kv_signal_crop(&s->request, s->request.tokens[s->request.n - max], UINT32_MAX);
    if (asks) {
        s->has_request = true;
        s->request_turn = turn;
    }
    return 0;
}

/* A whole message or result is there: it is the newest signal, and the session remembers what it asked for. */
static int finish_segment(kv_session *s, kv_origin origin, kv_signal *kept, base_err *err)
{
    if (!kept->n || (origin != KV_ORIGIN_USER && origin != KV_ORIGIN_TOOL)) return 0;
    int r = kv_signal_add(&s->recent, kept->tokens, kept->queries, kept->n, KV_RECENT_QUERIES, err);
    if (r) return r;
    kv_memory *memory = kv_memory_add(s->memory, kept, s->n);
    if (!memory) return base_fail(err, BASE_E_NOMEM, "no memory for the session's memory of requests");
    kv_memory_unref(s->memory);
    s->memory = memory;
    return 0;
}

int kv__take_signal(
    kv_session *s, kv_origin origin, uint32_t turn, bool is_whole, kv_signal *kept, base_err *err)
{
    int r = is_whole ? finish_segment(s, origin, kept, err) : 0;
    return r ? r : update_request(s, origin, turn, kept, err);
}

/* What a request names; else nothing is known of it but its end. */
static int keep_asked(
    kv_session *s, const kv_segment *g, uint32_t first, const kv_signal *kept, base_err *err)
{
    uint32_t places[KV_RECENT_QUERIES], n = 0;
    kv_signal named;
    if (g->origin != KV_ORIGIN_USER || !kept->n) return 0;
    for (uint32_t i = 0, q = 0; i < kept->n && n < KV_RECENT_QUERIES; i++) {
        while (q < g->n_queries && first + g->queries[q] < kept->tokens[i]) q++;
        if (q < g->n_queries && first + g->queries[q] == kept->tokens[i]) places[n++] = i;
    }
    for (uint32_t i = kept->n > 8 ? kept->n - 8 : 0; i < kept->n && !g->n_queries; i++) places[n++] = i;
    int r = kv_signal_pick(kept, places, n, &named, err);
    if (r) return r;
    kv_signal_fini(&s->asked);
    s->asked = named;
    return 0;
}

/* A complete segment among what is pending: it is heard of when its upper layers are there, which it may bring about itself. */
static int finish_pending(kv_session *s, const kv_segment *g, uint32_t first, kv_signal *kept,
    const atomic_bool *cancel, base_err *err)
{
    int r = keep_asked(s, g, first, kept, err);
    if (r) return r;
    if (kept->n) {
        kv_signal_fini(&s->waiting.kept);
        s->waiting = (kv_waiting){.kept = *kept, .origin = g->origin, .turn = g->turn, .is_whole = true};
        kv_signal_init(kept, s->waiting.kept.n_layer, s->waiting.kept.n_head, s->waiting.kept.head_dim);
    }
    return s->automatic && kv__may_settle(s, g) ? kv__settle(s, cancel, err) : 0;
}

int kv__check_append(const kv_session *s, const kv_segment *g, const int32_t *ids, uint32_t n, base_err *err)
{
    if ((unsigned)g->origin >= KV_N_ORIGINS)
        return base_fail(err, BASE_E_USAGE, "no such origin: %d", (int)g->origin);
    if (n > s->n_ctx - s->n)
        return base_fail(err, BASE_E_LIMIT,
            "%u more tokens do not fit: the session has %u of the %u that the model's context allows; "
            "/compact or start a new session",
            n, s->n, s->n_ctx);
    for (uint32_t i = 0; i < g->n_spans; i++)
        if (g->spans[i].from >= g->spans[i].to || g->spans[i].to > n || g->spans[i].reason >= KV_N_REASONS)
            return base_fail(err, BASE_E_USAGE,
                "span %u, tokens %u to %u, does not lie in its segment of %u tokens", i, g->spans[i].from,
                g->spans[i].to, n);
    for (uint32_t i = 0; i < g->n_lines; i++)
        if (g->lines[i] >= n || (i && g->lines[i] <= g->lines[i - 1]))
            return base_fail(
                err, BASE_E_USAGE, "line %u of a segment of %u tokens starts at token %u", i, n, g->lines[i]);
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->compute.n_vocab)
            return base_fail(err, BASE_E_USAGE, "token id %d is not in the vocabulary of %u", (int)ids[i],
                s->compute.n_vocab);
    if (s->budget && s->parameters.hard > 0 &&
        (g->origin == KV_ORIGIN_SYSTEM || g->origin == KV_ORIGIN_INSTRUCTIONS)) {
        const uint32_t hard = kv__count_hard(s) + n;
        if (hard + KV_CHUNK > s->budget)
            return base_fail(err, BASE_E_LIMIT,
                "the fixed prompt and instructions take %u rows; a cache budget of %u is too small for them, "
                "give at least %u",
                hard, s->budget, hard + KV_CHUNK);
    }
    return 0;
}

void kv__keep_logits(kv_session *s, const float *logits)
{
    if (!s->logits) s->logits = malloc(s->compute.n_vocab * sizeof *s->logits);
    if (s->logits) memcpy(s->logits, logits, s->compute.n_vocab * sizeof *s->logits);
    s->logits_at = s->logits ? s->n : 0;
}

/* The next place behind `done` where something was decided when the log was written, or the segment's end. */
static uint32_t next_stop(const kv_logged *l, uint32_t done, uint32_t n)
{
    for (uint32_t i = 0; l && i < l->n_stops; i++)
        if (l->stops[i] > done && l->stops[i] < n) return l->stops[i];
    return n;
}

/* What the log says was decided behind the newest token. */
static int decide_as_logged(const kv_session *s, const kv_logged *l, uint32_t done, base_err *err)
{
    for (uint32_t i = 0; l && i < l->n_stops; i++)
        if (l->stops[i] == done) return l->decide(l->user, s->n, err);
    return 0;
}

int kv_session_append(kv_session *s, const kv_segment *g, const int32_t *ids, uint32_t n, float *last_logits,
    uint32_t *ret_done, const atomic_bool *cancel, base_err *err)
{
    if (ret_done) *ret_done = 0;
    int r = kv__check_append(s, g, ids, n, err);
    if (r || !n) return r;
    wanted w = {.n = 0};
    kv_signal kept;
    kv_signal_init(&kept, s->compute.shape.n_layer, s->compute.n_head, s->compute.shape.head_dim);
    if (s->pending != KV_NO_ROW && s->automatic && (last_logits || kv_origin_is_written(g->origin)))
        r = kv__settle(s, cancel, err);
    if (!r) r = kv__end_answer(s, g->origin, cancel, err);
    if (r) return r;
    const uint32_t n_whole = g->logged && g->logged->of > n ? g->logged->of : n;
    choose_queries(s, g, n_whole, &w);
    const uint32_t first = s->n, cut = kv__prune_cut(s, g, n, last_logits != NULL);
    if (g->turn > s->turn) s->turn = g->turn;
    kv__open_part(s, g);
    s->parts[s->n_parts - 1].cut = (uint16_t)cut;
    s->parts[s->n_parts - 1].is_bulk = cut && kv__is_bulk(s, g, n);
    const uint32_t adoptable =
        is_fixed(g->origin) && !cut && !g->n_queries && !s->policy->heavy ? n - (last_logits ? 1 : 0) : 0;
    uint32_t done = adopt_prefix(s, ids, adoptable, NULL);
    while (!r && done < n) {
        const uint32_t stop = next_stop(g->logged, done, n);
        const uint32_t chunk = stop - done < KV_CHUNK ? stop - done : KV_CHUNK;
        float *logits = done + chunk == n ? last_logits : NULL;
        r = append_chunk(s, ids + done, chunk, &w, done, cut, logits, g->only, &kept, cancel, err);
        if (r) break;
        done += chunk;
        if (s->observer.prefill) s->observer.prefill(s->observer.user, done, n);
        const bool is_whole = done == n_whole;
        if (!cut) r = kv__take_signal(s, g->origin, g->turn, is_whole, &kept, err);
        if (!r && !cut && is_whole) r = keep_asked(s, g, first, &kept, err);
        if (!r && !cut && is_whole) r = kv__detect_when_due(s, g, cancel, err);
        if (!r && cut && is_whole) r = finish_pending(s, g, first, &kept, cancel, err);
        if (!r && s->pending != KV_NO_ROW) r = decide_as_logged(s, g->logged, done, err);
        if (s->pending != KV_NO_ROW) continue; /* nobody can judge yet */
        if (!r && logits && !g->only) kv__keep_logits(s, logits);
        const bool may = !s->policy->whole || (done == n && !kv_origin_is_written(g->origin));
        if (!r && s->automatic && may) r = kv__evict(s, NULL, cancel, err);
        if (!r && s->automatic) r = kv__tier(s, err);
        if (!r) r = decide_as_logged(s, g->logged, done, err);
    }
    kv_signal_fini(&kept);
    if (s->n == first && s->n_parts && s->parts[s->n_parts - 1].from == first)
        kv__part_fini(&s->parts[--s->n_parts]);
    if (ret_done) *ret_done = s->n - first;
    return r;
}

int kv_session_evict(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    return kv__evict(s, NULL, cancel, err);
}

int kv_session_set_policy(kv_session *s, const kv_options *options, base_err *err)
{
    kv_parameters parameters;
    const kv_policy *policy = kv_policy_find(options->policy, err);
    if (!policy) return BASE_E_USAGE;
    int r = kv_parameters_parse(policy, options->set, &parameters, err);
    if (!r && s->pending != KV_NO_ROW) r = kv__settle(s, NULL, err); /* by the rules it was cut by */
    if (r) return r;
    s->policy = policy;
    s->parameters = parameters;
    kv__reading_free(s->reading);
    s->reading = NULL;
    s->repair = options->repair >= 0 ? options->repair : policy->repair;
    s->budget = 0;
    if (policy->score && options->budget) {
        const uint32_t hard = kv__count_hard(s);
        if (options->budget < hard + KV_CHUNK && !options->bare)
            return base_fail(err, BASE_E_LIMIT,
                "a budget of %u rows is too small: %u are protected, so at least %u", options->budget, hard,
                hard + KV_CHUNK);
        s->budget = options->budget;
    }
    kv__heads_load(s, options->heads_file);
    return 0;
}

void kv_session_set_turn(kv_session *s, uint32_t turn)
{
    s->turn = turn;
}

void kv_session_set_automatic(kv_session *s, bool on)
{
    s->automatic = on;
}

/* The request that was cut off is no longer it. An older one's queries are gone, but it was asked: nobody else stands in. */
static void find_older_request(kv_session *s)
{
    s->has_request = false;
    for (size_t i = s->n_parts; i-- > 0 && !s->has_request;)
        if (s->parts[i].origin == KV_ORIGIN_USER) {
            s->has_request = true;
            s->request_turn = s->parts[i].turn;
        }
}

int kv_session_truncate(kv_session *s, uint32_t n, base_err *err)
{
    if (n > s->n)
        return base_fail(err, BASE_E_USAGE, "cannot cut a session of %u tokens back to %u", s->n, n);
    if (n == s->n) return 0;
    kv_lists_truncate(&s->lists, n);
    kv_table_truncate(&s->table, n);
    kv__reading_cut(s, n);
    kv__visit_cut(s, n);
    kv_bits_clear_range(s->pinned, n, s->n);
    kv_bits_clear_range(s->barred, n, s->n);
    kv_bits_clear_range(s->stale, n, s->n);
    kv_bits_clear_range(s->dead, n, s->n);
    while (s->n_parts && s->parts[s->n_parts - 1].from >= n) kv__part_fini(&s->parts[--s->n_parts]);
    if (s->n_parts && s->parts[s->n_parts - 1].to > n) s->parts[s->n_parts - 1].to = n;
    for (uint32_t i = 0; i < s->n_journal; i++)
        if (s->journal[i].n_valid > n) s->journal[i].n_valid = n;
    s->memory = kv_memory_rewind(s->memory, n);
    kv_signal_crop(&s->recent, 0, n);
    kv_signal_crop(&s->asked, 0, n);
    if (s->waiting.kept.n && s->waiting.kept.tokens[s->waiting.kept.n - 1] >= n)
        kv_signal_fini(&s->waiting.kept);
    if (s->pending != KV_NO_ROW && s->pending >= n) s->pending = KV_NO_ROW;
    if (s->judged_to > n) s->judged_to = 0;
    if (s->read_to > n) s->read_to = n;
    if (s->request.n && s->request.tokens[s->request.n - 1] >= n) {
        kv_signal_crop(&s->request, 0, n);
        if (!s->request.n) find_older_request(s);
    }
    if (s->holed) {
        const uint32_t cut[] = {n, UINT32_MAX};
        s->schedule = base_hash64(cut, sizeof cut, s->schedule);
    }
    s->n = n;
    s->logits_at = 0;
    s->epoch++;
    return 0;
}

int kv_session_fork(const kv_session *s, kv_session **ret, const kv_observer *observer, base_err *err)
{
    kv_session *f = NULL;
    const kv_options options = {
        .budget = s->budget, .policy = s->policy->info.name, .repair = s->repair, .n_ctx = s->n_ctx};
    int r = kv__session_allocate(&f, &s->compute, &options, observer, err);
    if (r) return r;
    f->parameters = s->parameters;
    f->automatic = s->automatic;
    kv_lists_fini(&f->lists);
    r = kv_lists_copy(&f->lists, &s->lists, err);
    if (!r) r = kv_table_share(&f->table, &s->table, err);
    if (!r) r = kv_signal_copy(&f->request, &s->request, err);
    if (!r) r = kv_signal_copy(&f->recent, &s->recent, err);
    if (!r) r = kv_signal_copy(&f->asked, &s->asked, err);
    if (!r) r = kv_signal_copy(&f->waiting.kept, &s->waiting.kept, err);
    if (r) {
        kv_session_free(f);
        return r;
    }
    f->n = s->n;
    memcpy(f->ids, s->ids, s->n * sizeof *s->ids);
    memcpy(f->phases, s->phases, s->n * sizeof *s->phases);
    memcpy(f->tokens, s->tokens, s->n * sizeof *s->tokens);
    memset(f->file_row, 0xff, s->n * sizeof *f->file_row); /* KV_NO_ROW */
    memcpy(f->cut, s->cut, s->n * sizeof *s->cut);
    f->pending = s->pending;
    f->judged_from = s->judged_from;
    f->judged_to = s->judged_to;
    f->read_to = s->read_to;
    f->waiting.origin = s->waiting.origin;
    f->waiting.turn = s->waiting.turn;
    f->waiting.is_whole = s->waiting.is_whole;
    memcpy(f->pinned, s->pinned, kv_bits_words(s->n) * sizeof *s->pinned);
    memcpy(f->barred, s->barred, kv_bits_words(s->n) * sizeof *s->barred);
    memcpy(f->stale, s->stale, kv_bits_words(s->n) * sizeof *s->stale);
    memcpy(f->dead, s->dead, kv_bits_words(s->n) * sizeof *s->dead);
    for (size_t i = 0; i < s->n_parts; i++) kv__part_add(f, &s->parts[i]);
    f->turn = s->turn;
    f->epoch = s->epoch;
    f->schedule = s->schedule;
    f->holed = s->holed;
    f->has_request = s->has_request;
    f->request_turn = s->request_turn;
    f->reused = s->n;
    f->memory = kv_memory_ref(s->memory);
    if (s->heavy) {
        const size_t n = (size_t)s->n_lanes * s->n_ctx;
        f->heavy = base_xmalloc((n + 1) * sizeof *f->heavy);
        memcpy(f->heavy, s->heavy, n * sizeof *f->heavy);
    }
    f->pivot_path = base_xstrdup(s->pivot_path);
    if (s->pivot) {
        f->pivot = base_xmalloc(sizeof *f->pivot);
        *f->pivot = *s->pivot;
    }
    if (s->best_heads) {
        const size_t n = (size_t)s->compute.shape.n_layer * s->compute.n_head;
        f->best_heads = base_xmalloc(n * sizeof *f->best_heads);
        memcpy(f->best_heads, s->best_heads, n * sizeof *f->best_heads);
    }
    if (s->heads) {
        const size_t n = (size_t)s->compute.shape.n_layer * s->compute.n_head;
        f->heads = base_xmalloc(n);
        memcpy(f->heads, s->heads, n);
    }
    if (s->logits && s->logits_at == s->n) {
        f->logits = base_xmalloc(s->compute.n_vocab * sizeof *f->logits);
        memcpy(f->logits, s->logits, s->compute.n_vocab * sizeof *f->logits);
        f->logits_at = s->n;
    }
    for (uint32_t i = 0; i < s->n_journal; i++) {
        f->journal[i] = (kv_entry){.n_valid = s->journal[i].n_valid};
        base_buf_add(&f->journal[i].blob, s->journal[i].blob.data, s->journal[i].blob.len);
    }
    f->n_journal = s->n_journal;
    *ret = f;
    return 0;
}
