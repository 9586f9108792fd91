/*
 * The segments of the session: which stretch of the sequence came from where.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/session/segments.h"
#include "base/mem.h"

uint32_t agent__n_tokens(const agent *a)
{
    uint32_t n;
    a->engine->ops->ids(a->engine, &n);
    return n;
}

uint32_t agent__count(const agent *a, const char *text, size_t n)
{
    enum { BYTES_PER_TOKEN = 4 }; /* where an engine cannot tell now: of code and English, about */
    if (a->engine->ops->count) return a->engine->ops->count(a->engine, text, n);
    model_ids ids = {0};
    const bool told = !a->engine->ops->encode(a->engine, text, n, &ids, NULL);
    const uint32_t count = (uint32_t)(told ? ids.n : n / BYTES_PER_TOKEN + 1);
    model_ids_free(&ids);
    return count;
}

const char *agent__piece(const agent *a, int32_t id, size_t *ret_n)
{
    *ret_n = 0;
    return a->engine->ops->is_control(a->engine, id) ? NULL : a->engine->ops->piece(a->engine, id, ret_n);
}

void agent__put_words(const agent *a, uint32_t from, uint32_t to, base_buf *out)
{
    uint32_t n;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    for (uint32_t i = from; i < to && i < n; i++) {
        size_t len;
        const char *piece = agent__piece(a, ids[i], &len);
        if (piece) base_buf_add(out, piece, len);
    }
}

size_t agent__add_segment(agent *a, const agent_text *t, uint32_t from, uint32_t to)
{
    base_grow(&a->transcript.segments, &a->transcript.cap_segments, a->transcript.n_segments + 1,
        sizeof *a->transcript.segments);
    agent_segment *p = &a->transcript.segments[a->transcript.n_segments];
    *p = (agent_segment){.from = from,
        .to = to,
        .turn = a->turn,
        .origin = t->origin,
        .label = base_xstrdup(t->label),
        .path = base_xstrdup(t->path),
        .line = t->line,
        .line_end = t->line_end,
        .seq = a->telling.seq};
    if (t->version) {
        size_t n = strlen(t->version);
        memcpy(p->version, t->version, n < sizeof p->version ? n : sizeof p->version - 1);
    }
    return a->transcript.n_segments++;
}

/* A scaffold's label says which message it leaves open: "+role" begins, "-role" ends, "-role+role" both. */
const char *const agent__role_words[] = {"system", "user", "assistant", "tool", "tools"};

int agent__find_open(const agent *a)
{
    for (size_t i = a->transcript.n_segments; i-- > 0;) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->origin != KV_ORIGIN_SCAFFOLD || !p->label) continue;
        const char *plus = strrchr(p->label, '+');
        for (int role = 0; plus && role <= MODEL_ROLE_TOOLS; role++)
            if (!strcmp(agent__role_words[role], plus + 1)) return role;
        return -1;
    }
    return -1;
}

void agent__put_segment_name(const agent_segment *p, base_buf *out)
{
    if (p->path && p->line)
        base_buf_printf(out, "%s:%u-%u", p->path, p->line, p->line_end);
    else
        base_buf_printf(out, "%s of turn %u",
            p->path    ? p->path
            : p->label ? p->label
                       : kv_origin_word(p->origin),
            p->turn);
}

void agent__truncate_segments(agent *a, uint32_t n)
{
    while (a->transcript.n_segments && a->transcript.segments[a->transcript.n_segments - 1].from >= n) {
        a->transcript.n_segments--;
        free(a->transcript.segments[a->transcript.n_segments].label);
        free(a->transcript.segments[a->transcript.n_segments].path);
    }
    /* Only a changed log goes back to inside of a text. */
    if (a->transcript.n_segments && a->transcript.segments[a->transcript.n_segments - 1].to > n)
        a->transcript.segments[a->transcript.n_segments - 1].to = n;
    a->transcript.open_role = agent__find_open(a);
}
