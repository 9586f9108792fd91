/* See states.h. */
#include "kv/core/states.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/state.h"

kv_state *kv_state_ref(kv_state *x)
{
    if (x) x->refs++;
    return x;
}

static void free_state(kv_state *x)
{
    if (!x) return;
    base_huge_free(x->numbers, x->n_bytes);
    free(x);
}

void kv_state_drop(kv_states *s, kv_state **x)
{
    kv_state *gone = *x;
    *x = NULL;
    if (!gone || --gone->refs) return;
    if (s->spare)
        free_state(gone);
    else
        s->spare = gone; /* pages that are there already: the next token needs as many */
}

kv_state *kv_state_new(kv_states *s, size_t n_bytes, base_err *err)
{
    kv_state *x = s->spare;
    s->spare = NULL;
    if (!x) {
        x = calloc(1, sizeof *x);
        if (x) x->numbers = base_huge_alloc(n_bytes);
        if (!x || !x->numbers) {
            free(x);
            base_fail(err, BASE_E_NOMEM, "no memory for a state of %zu bytes", n_bytes);
            return NULL;
        }
        x->n_bytes = n_bytes;
    }
    x->refs = 1;
    x->place = KV_STATE_NOWHERE;
    return x;
}

void kv_states_free(kv_states *s)
{
    kv_state **all[] = {&s->live, &s->before, &s->ahead, &s->again, &s->look};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kv_state_drop(s, all[i]);
    for (uint32_t i = 0; i < s->n_kept; i++) kv_state_drop(s, &s->kept[i]);
    s->n_kept = 0;
    free_state(s->spare);
    s->spare = NULL;
}

void kv_states_copy(kv_states *to, const kv_states *from)
{
    to->live = kv_state_ref(from->live);
    to->before = kv_state_ref(from->before);
    for (uint32_t i = 0; i < from->n_kept; i++) to->kept[i] = kv_state_ref(from->kept[i]);
    to->n_kept = from->n_kept;
    to->is_cut = from->is_cut;
}

kv_state *kv_states_newest(const kv_states *s, uint32_t t)
{
    kv_state *const others[] = {s->live, s->before};
    kv_state *best = NULL;
    if (s->look && s->look->at == t) return s->look;
    for (uint32_t i = 0; i < s->n_kept && s->kept[i]->at <= t; i++) best = s->kept[i];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i] && others[i]->at <= t && (!best || others[i]->at > best->at)) best = others[i];
    return best;
}

void kv_states_truncate(kv_states *s, uint32_t n)
{
    kv_state **others[] = {&s->before, &s->look};
    kv_state_drop(s, &s->ahead);
    kv_state_drop(s, &s->again);
    while (s->n_kept && s->kept[s->n_kept - 1]->at > n) kv_state_drop(s, &s->kept[--s->n_kept]);
    if (s->live && s->live->at > n) {
        kv_state_drop(s, &s->live);
        s->live = kv_state_ref(kv_states_newest(s, n));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (*others[i] && (*others[i])->at > n) kv_state_drop(s, others[i]);
    s->is_cut = (s->live ? s->live->at : 0) != n;
}

/*
 * The kept state whose loss adds least to what going back may cost, by how far back it is: the gap between
 * its neighbours over its own distance. The first (the fixed prompt's end) and the newest stay.
 */
static uint32_t find_least(const kv_states *s, uint32_t n)
{
    uint32_t least = 1;
    double best = 0;
    for (uint32_t i = 1; i + 1 < s->n_kept; i++) {
        const double gap = (s->kept[i + 1]->at - s->kept[i - 1]->at) / (1.0 + n - s->kept[i]->at);
        if (i > 1 && gap >= best) continue;
        best = gap;
        least = i;
    }
    return least;
}

void kv_states_keep(kv_states *s, uint32_t n, uint32_t most)
{
    if (most > KV_STATES_MOST) most = KV_STATES_MOST;
    if (!s->live || s->live->at != n || (s->n_kept && s->kept[s->n_kept - 1]->at >= n)) return;
    while (s->n_kept >= most && s->n_kept > 0) {
        const uint32_t i = s->n_kept > 2 ? find_least(s, n) : 0;
        kv_state_drop(s, &s->kept[i]);
        memmove(&s->kept[i], &s->kept[i + 1], (--s->n_kept - i) * sizeof(kv_state *));
    }
    if (s->n_kept < most) s->kept[s->n_kept++] = kv_state_ref(s->live);
}

uint32_t kv_states_most(const kv_session *s)
{
    const uint64_t n = ((uint64_t)s->parameters.states << 20) / s->compute.state_bytes;
    return n > KV_STATES_MOST ? KV_STATES_MOST : n < 2 ? 2 : (uint32_t)n;
}

uint64_t kv_states_bytes(const kv_states *s)
{
    const kv_state *const others[] = {s->live, s->before, s->ahead, s->again, s->look};
    uint64_t bytes = s->spare ? s->spare->n_bytes : 0;
    for (uint32_t i = 0; i < s->n_kept; i++) bytes += s->kept[i]->n_bytes;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool known = !others[i];
        for (uint32_t k = 0; k < s->n_kept && !known; k++) known = s->kept[k] == others[i];
        for (size_t k = 0; k < i && !known; k++) known = others[k] == others[i];
        if (!known) bytes += others[i]->n_bytes;
    }
    return bytes;
}
