/* See engine_remote_parts.h. */
#include <stdlib.h>

#include "agent/engine/engine_remote_parts.h"
#include "base/mem.h"

uint32_t remote_sequence_n_active(const remote_sequence *s)
{
    return (uint32_t)s->ids.n - s->n_out;
}

void remote_sequence_add(remote_sequence *s, int32_t id)
{
    base_grow(&s->out, &s->cap_out, s->ids.n + 1, sizeof *s->out);
    s->out[s->ids.n] = false;
    model_ids_add(&s->ids, id);
}

void remote_sequence_cut_back(remote_sequence *s, size_t n)
{
    while (s->ids.n > n) s->n_out -= s->out[--s->ids.n];
}

void remote_sequence_set_active(remote_sequence *s, uint32_t from, uint32_t to, bool active)
{
    for (uint32_t i = from; i < to; i++) {
        s->n_out -= s->out[i];
        s->out[i] = !active;
        s->n_out += s->out[i];
    }
}

void remote_sequence_put_active(const remote_sequence *s, const bool *left_out, model_ids *ret)
{
    ret->n = 0;
    for (size_t i = 0; i < s->ids.n; i++)
        if (!s->out[i] && !(left_out && left_out[i])) model_ids_add(ret, s->ids.ids[i]);
}

void remote_sequence_fork(remote_sequence *s)
{
    s->trunk.n = 0;
    model_ids_add_all(&s->trunk, &s->ids);
    s->is_branch = true;
}

/* A branch appends behind the trunk, or gives up a part of it: what is out of it stays out. */
void remote_sequence_unfork(remote_sequence *s)
{
    if (!s->is_branch) return;
    const size_t n_same = s->ids.n < s->trunk.n ? s->ids.n : s->trunk.n;
    remote_sequence_cut_back(s, n_same);
    for (size_t i = n_same; i < s->trunk.n; i++) remote_sequence_add(s, s->trunk.ids[i]);
    s->is_branch = false;
}

void remote_sequence_free(remote_sequence *s)
{
    model_ids_free(&s->ids);
    model_ids_free(&s->trunk);
    free(s->out);
}
