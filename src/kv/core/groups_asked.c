/* Groups of a session's state (groups.h) that came of what was asked: signals, memory, masses, plans. */
#include "kv/core/group.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* --- signals -------------------------------------------------------------------------------------------- */

static const size_t signals[] = {offsetof(kv_session, request), offsetof(kv_session, asked),
    offsetof(kv_session, waiting.kept), offsetof(kv_session, recent)};
enum { N_SIGNALS = sizeof signals / sizeof *signals, N_SAVED = 3 /* the newest text's is computed again */ };

static kv_signal *signal_of(const kv_session *s, size_t i)
{
    return (kv_signal *)(void *)((char *)(uintptr_t)s + signals[i]);
}

static int init_signals(kv_session *s, base_err *err)
{
    const model_rows_shape *shape = &s->compute.shape;
    for (size_t i = 0; i < N_SIGNALS; i++)
        kv_signal_init(signal_of(s, i), shape->n_layer, s->compute.n_head, shape->head_dim);
    return 0;
}

static void free_signals(kv_session *s)
{
    for (size_t i = 0; i < N_SIGNALS; i++) kv_signal_fini(signal_of(s, i));
}

static int copy_signals(kv_session *to, const kv_session *s, base_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < N_SIGNALS && !rc; i++) rc = kv_signal_copy(signal_of(to, i), signal_of(s, i), err);
    return rc;
}

/* After the request was truncated an older one is it. Its queries are gone; nobody else's stand in. */
static void find_older_request(kv_session *s)
{
    s->has_request = false;
    for (size_t i = s->n_segments; i-- > 0 && !s->has_request;)
        if (s->segments[i].origin == KV_ORIGIN_USER) {
            s->has_request = true;
            s->request_turn = s->segments[i].turn;
        }
}

static void truncate_signals(kv_session *s, uint32_t n)
{
    kv_signal *waiting = &s->waiting.kept, *request = &s->request;
    kv_signal_crop(&s->recent, 0, n);
    kv_signal_crop(&s->asked, 0, n);
    if (waiting->n && waiting->tokens[waiting->n - 1] >= n) kv_signal_fini(waiting);
    if (!request->n || request->tokens[request->n - 1] < n) return;
    kv_signal_crop(request, 0, n);
    if (!request->n) find_older_request(s);
}

static void put_signals(const kv_session *s, base_buf *out)
{
    for (size_t i = 0; i < N_SAVED; i++) {
        const kv_signal *signal = signal_of(s, i);
        kv__put(out, signal->tokens, signal->n, sizeof *signal->tokens);
        kv__put(out, signal->queries, signal->n * kv__memory_floats(s), sizeof *signal->queries);
    }
}

static void get_signal(kv__reader *r, const kv_session *s, kv_signal *signal, uint32_t n)
{
    const size_t n_memory = kv__memory_floats(s);
    if (!n || n > KV_RECENT_QUERIES) {
        r->bad = r->bad || n;
        return;
    }
    signal->tokens = kv__get_new(r, n, sizeof *signal->tokens);
    signal->queries = kv__get_new(r, n_memory * n, sizeof *signal->queries);
    if (r->bad) return;
    signal->n = n;
    for (uint32_t i = 0; i < n; i++)
        if (signal->tokens[i] >= s->n || (i && signal->tokens[i] <= signal->tokens[i - 1])) r->bad = true;
}

static int get_signals(kv_session *s, kv__reader *r, base_err *err)
{
    const uint32_t n[N_SAVED] = {r->has[KV_HAS_REQUEST], r->has[KV_HAS_ASKED], r->has[KV_HAS_WAITING]};
    for (size_t i = 0; i < N_SAVED; i++) get_signal(r, s, signal_of(s, i), n[i]);
    return 0;
}

const kv__group kv__group_signals = {.init = init_signals,
    .free = free_signals,
    .copy = copy_signals,
    .truncate = truncate_signals,
    .put = put_signals,
    .get = get_signals};

/* --- the memory of requests ----------------------------------------------------------------------------- */

uint32_t kv__count_memory(const kv_session *s)
{
    uint32_t n = 0;
    for (const kv_memory *m = s->memory; m && n < KV_MEMORY_KEPT; m = m->past) n++;
    return n;
}

static void free_memory(kv_session *s)
{
    kv_memory_unref(s->memory);
}

static int copy_memory(kv_session *to, const kv_session *s, base_err *err)
{
    to->memory = kv_memory_ref(s->memory);
    return 0;
}

static void truncate_memory(kv_session *s, uint32_t n)
{
    s->memory = kv_memory_rewind(s->memory, n);
}

/* The newest states, oldest first. */
static void put_memory(const kv_session *s, base_buf *out)
{
    const kv_memory *kept[KV_MEMORY_KEPT], *m = s->memory;
    const uint32_t n = kv__count_memory(s);
    for (uint32_t i = n; i-- > 0; m = m->past) kept[i] = m;
    for (uint32_t i = 0; i < n; i++) {
        kv__put32(out, kept[i]->at);
        kv__put(out, kept[i]->sum, kv__memory_floats(s), sizeof(float));
        kv__put(out, kept[i]->message, kv__memory_floats(s), sizeof(float));
    }
}

static int get_memory(kv_session *s, kv__reader *r, base_err *err)
{
    const size_t n_floats = kv__memory_floats(s);
    const uint32_t n = r->has[KV_HAS_MEMORY];
    if (n > KV_MEMORY_KEPT) r->bad = true;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t at = kv__get32(r);
        if (r->left / sizeof(float) / 2 < n_floats || at > s->n || (s->memory && at < s->memory->at))
            r->bad = true;
        kv_memory *m = r->bad ? NULL : kv_memory_new(s->memory, n_floats, at);
        if (!m) {
            r->bad = true;
            return 0;
        }
        kv__get(r, m->sum, n_floats, sizeof(float));
        kv__get(r, m->message, n_floats, sizeof(float));
        kv_memory_unref(s->memory);
        s->memory = m;
    }
    return 0;
}

const kv__group kv__group_memory = {.free = free_memory,
    .copy = copy_memory,
    .truncate = truncate_memory,
    .put = put_memory,
    .get = get_memory};

/* --- what there may be: what policies add up, the last logits ------------------------------------------- */

bool kv__has_logits(const kv_session *s)
{
    return s->logits && s->logits_at == s->n && s->n;
}

static void free_optional(kv_session *s)
{
    free(s->heavy);
    free(s->logits);
}

static int copy_optional(kv_session *to, const kv_session *s, base_err *err)
{
    if (s->heavy) to->heavy = base_xcalloc((size_t)s->n_lanes * to->cap + 1, sizeof *to->heavy);
    for (uint32_t lane = 0; s->heavy && lane < s->n_lanes; lane++)
        memcpy(to->heavy + (size_t)lane * to->cap, s->heavy + (size_t)lane * s->cap, s->n * sizeof *s->heavy);
    to->logits = kv__has_logits(s) ? kv__copy_of(s->logits, s->compute.n_vocab, sizeof *s->logits) : NULL;
    to->logits_at = to->logits ? s->n : 0;
    return 0;
}

static int grow_heavy(kv_session *s, uint32_t cap, base_err *err)
{
    if (!s->heavy) return 0;
    float *heavy = calloc((size_t)s->n_lanes * cap + 1, sizeof *heavy);
    if (!heavy) return base_fail(err, BASE_E_NOMEM, "no memory to add up attention");
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        memcpy(heavy + (size_t)lane * cap, s->heavy + (size_t)lane * s->cap, s->cap * sizeof *heavy);
    free(s->heavy);
    s->heavy = heavy;
    return 0;
}

static void truncate_optional(kv_session *s, uint32_t n)
{
    s->logits_at = 0;
}

static void put_optional(const kv_session *s, base_buf *out)
{
    for (uint32_t lane = 0; s->heavy && lane < s->n_lanes; lane++)
        kv__put(out, s->heavy + (size_t)lane * s->cap, s->n, sizeof *s->heavy);
    if (kv__has_logits(s)) kv__put(out, s->logits, s->compute.n_vocab, sizeof *s->logits);
}

static int get_optional(kv_session *s, kv__reader *r, base_err *err)
{
    if (r->has[KV_HAS_HEAVY]) s->heavy = calloc((size_t)s->n_lanes * s->cap + 1, sizeof *s->heavy);
    r->bad = r->bad || (r->has[KV_HAS_HEAVY] && !s->heavy);
    for (uint32_t lane = 0; s->heavy && lane < s->n_lanes && !r->bad; lane++)
        kv__get(r, s->heavy + (size_t)lane * s->cap, s->n, sizeof *s->heavy);
    if (!r->has[KV_HAS_LOGITS]) return 0;
    s->logits = kv__get_new(r, s->compute.n_vocab, sizeof *s->logits);
    s->logits_at = s->n;
    return 0;
}

const kv__group kv__group_optional = {.grow = grow_heavy,
    .free = free_optional,
    .copy = copy_optional,
    .truncate = truncate_optional,
    .put = put_optional,
    .get = get_optional};

/* --- plans that can be undone --------------------------------------------------------------------------- */

static void free_journal(kv_session *s)
{
    for (uint32_t i = 0; i < s->n_journal; i++) base_buf_free(&s->journal[i].blob);
}

static int copy_journal(kv_session *to, const kv_session *s, base_err *err)
{
    for (uint32_t i = 0; i < s->n_journal; i++) {
        to->journal[i] = (kv_entry){.n_valid = s->journal[i].n_valid};
        base_buf_add(&to->journal[i].blob, s->journal[i].blob.data, s->journal[i].blob.len);
    }
    to->n_journal = s->n_journal;
    return 0;
}

static void truncate_journal(kv_session *s, uint32_t n)
{
    for (uint32_t i = 0; i < s->n_journal; i++)
        if (s->journal[i].n_valid > n) s->journal[i].n_valid = n;
}

static void put_journal(const kv_session *s, base_buf *out)
{
    for (uint32_t i = 0; i < s->n_journal; i++) {
        kv__put32(out, s->journal[i].n_valid);
        kv__put32(out, (uint32_t)s->journal[i].blob.len);
        kv__put(out, s->journal[i].blob.data, s->journal[i].blob.len, 1);
    }
}

static int get_journal(kv_session *s, kv__reader *r, base_err *err)
{
    const uint32_t n = r->has[KV_HAS_JOURNAL];
    if (n > KV_JOURNAL) r->bad = true;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t n_valid = kv__get32(r), len = kv__get32(r);
        if (r->bad || len > r->left) {
            r->bad = true;
            return 0;
        }
        kv_entry *entry = &s->journal[s->n_journal++];
        *entry = (kv_entry){.n_valid = n_valid};
        base_buf_add(&entry->blob, r->at, len);
        r->at += len;
        r->left -= len;
    }
    return 0;
}

const kv__group kv__group_journal = {.free = free_journal,
    .copy = copy_journal,
    .truncate = truncate_journal,
    .put = put_journal,
    .get = get_journal};
