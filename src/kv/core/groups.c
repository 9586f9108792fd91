/* The list of the groups of a session's state, in the order in which a manifest has them; see groups.h. */
#include "kv/core/group.h"

/* --- numbers -------------------------------------------------------------------------------------------- */

enum { HOLED = 5 }; /* and behind its bit sketched_to: a session saved before there were sketches has none */
/* X(place, field of the session) */
#define NUMBERS(X)                                                                                           \
    X(4, turn)                                                                                               \
    X(6, has_request)                                                                                        \
    X(7, request_turn)                                                                                       \
    X(14, pending)                                                                                           \
    X(17, waiting.origin)                                                                                    \
    X(18, waiting.turn)                                                                                      \
    X(19, waiting.is_whole) X(20, judged_from) X(21, judged_to)

static void put_numbers(const kv_session *s, base_buf *out)
{
#define PUT(place, field) [place] = (uint32_t)s->field,
    const uint32_t has[KV_N_NUMBERS] = {
        NUMBERS(PUT)[KV_HAS_TOKENS] = s->n, [HOLED] = s->sketched_to << 1 | s->holed,
        [KV_HAS_LANES] = s->n_lanes, [KV_HAS_VOCAB] = s->compute.n_vocab, [KV_HAS_HEADS] = s->compute.n_head,
        [KV_HAS_PARTS] = (uint32_t)s->n_segments, [KV_HAS_REQUEST] = s->request.n,
        [KV_HAS_MEMORY] = kv__count_memory(s), [KV_HAS_LOGITS] = kv__has_logits(s),
        [KV_HAS_JOURNAL] = s->n_journal, [KV_HAS_HEAVY] = s->heavy != NULL, [KV_HAS_ASKED] = s->asked.n,
        [KV_HAS_WAITING] = s->waiting.kept.n};
    kv__put(out, &s->epoch, 1, sizeof s->epoch);
    kv__put(out, &s->schedule, 1, sizeof s->schedule);
    kv__put(out, has, KV_N_NUMBERS, sizeof *has);
}

static int get_numbers(kv_session *s, kv__reader *r, base_err *err)
{
    const uint32_t *has = r->has;
    s->epoch = kv__get64(r);
    s->schedule = kv__get64(r);
    kv__get(r, r->has, KV_N_NUMBERS, sizeof *r->has);
    if (r->bad || has[KV_HAS_LANES] != s->n_lanes || has[KV_HAS_VOCAB] != s->compute.n_vocab ||
        has[KV_HAS_HEADS] != s->compute.n_head)
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is of another model");
    if (has[KV_HAS_TOKENS] > s->n_ctx)
        return base_fail(err, BASE_E_FORMAT,
            "the saved session has %u tokens, more than the "
            "context of %u; --kv-budget auto goes on behind it",
            has[KV_HAS_TOKENS], s->n_ctx);
    const int rc = kv__reserve(s, has[KV_HAS_TOKENS], err);
    if (rc) return rc;
    s->n = has[KV_HAS_TOKENS];
#define GET(place, field) s->field = has[place];
    NUMBERS(GET)
    s->holed = has[HOLED] & 1;
    s->sketched_to = has[HOLED] >> 1;
    if ((uint32_t)s->waiting.origin >= KV_N_ORIGINS || s->sketched_to > s->n ||
        (s->pending != KV_NO_ROW && s->pending >= s->n))
        r->bad = true;
    return 0;
}

static int init_numbers(kv_session *s, base_err *err)
{
    s->pending = KV_NO_ROW;
    return 0;
}

static int copy_numbers(kv_session *to, const kv_session *s, base_err *err)
{
    to->n = s->n;
    to->epoch = s->epoch;
    to->schedule = s->schedule;
#define COPY(place, field) to->field = s->field;
    NUMBERS(COPY)
    to->holed = s->holed;
    to->sketched_to = s->sketched_to;
    return 0;
}

static void truncate_numbers(kv_session *s, uint32_t n)
{
    if (s->pending != KV_NO_ROW && s->pending >= n) s->pending = KV_NO_ROW;
    if (s->judged_to > n) s->judged_to = 0;
    if (s->sketched_to > n) s->sketched_to = n;
}

/* --- the list ------------------------------------------------------------------------------------------- */

static const kv__group numbers = {.init = init_numbers,
    .copy = copy_numbers,
    .truncate = truncate_numbers,
    .put = put_numbers,
    .get = get_numbers};

static const kv__group *const groups[] = {&numbers, &kv__group_arrays, &kv__group_rows, &kv__group_segments,
    &kv__group_signals, &kv__group_memory, &kv__group_optional, &kv__group_journal, &kv__group_states,
    &kv__group_fold, &kv__group_outshone};
enum { N_GROUPS = sizeof groups / sizeof *groups };

int kv__groups_init(kv_session *s, base_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < N_GROUPS && !rc; i++) rc = groups[i]->init ? groups[i]->init(s, err) : 0;
    return rc;
}

int kv__reserve(kv_session *s, uint32_t n, base_err *err)
{
    if (n <= s->cap) return 0;
    const uint32_t more = n + n / 2, cap = more < s->n_ctx ? more : n > s->n_ctx ? n : s->n_ctx;
    int rc = 0;
    for (size_t i = 0; i < N_GROUPS && !rc; i++) rc = groups[i]->grow ? groups[i]->grow(s, cap, err) : 0;
    if (!rc) s->cap = cap;
    return rc;
}

void kv__groups_free(kv_session *s)
{
    for (size_t i = 0; i < N_GROUPS; i++)
        if (groups[i]->free) groups[i]->free(s);
}

int kv__groups_copy(kv_session *to, const kv_session *from, base_err *err)
{
    int rc = kv__reserve(to, from->n, err);
    for (size_t i = 0; i < N_GROUPS && !rc; i++) rc = groups[i]->copy ? groups[i]->copy(to, from, err) : 0;
    return rc;
}

void kv__groups_truncate(kv_session *s, uint32_t n)
{
    for (size_t i = 0; i < N_GROUPS; i++)
        if (groups[i]->truncate) groups[i]->truncate(s, n);
    s->n = n;
}

void kv__groups_put(const kv_session *s, base_buf *out)
{
    for (size_t i = 0; i < N_GROUPS; i++) groups[i]->put(s, out);
}

int kv__groups_get(kv_session *s, const void *bytes, size_t n, uint64_t n_rows, base_err *err)
{
    kv__reader r = {.at = bytes, .left = n, .n_rows = n_rows};
    int rc = 0;
    for (size_t i = 0; i < N_GROUPS && !rc; i++) rc = groups[i]->get(s, &r, err);
    if (rc) return rc;
    return r.bad || r.left ? base_fail(err, BASE_E_FORMAT, "the session's manifest is damaged") : 0;
}
