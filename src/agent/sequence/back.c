/*
 * What comes back of what was put aside (aside.c): a text that a request asks for is appended in front of it, so that the
 * prefix of what is sent stays whole, and a list says what is gone.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/words/rank_texts.h"
#include "base/mem.h"

enum { MOST_BACK = 3 };               /* texts that one message brings back */
static const double least_cover = .5; /* of a message that a text has to have to come back; chosen by hand */

typedef struct text {
    size_t segment;
    bool is_active, is_taken;
    base_buf words;
    agent_rank rank;
} text;

/* What was appended as one text, answers apart. */
static text *find_texts(const agent *a, size_t *ret_n)
{
    text *all = NULL;
    size_t cap = 0, n = 0;
    uint32_t done = 0;
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->from < done || p->to <= p->from) continue;
        done = p->to;
        if (p->stale || p->origin < KV_ORIGIN_USER) continue;
        base_grow(&all, &cap, n + 1, sizeof *all);
        all[n] = (text){.segment = i, .is_active = !agent__is_aside(a, p->from, p->to)};
        agent__put_words(a, p->from, p->to, &all[n++].words);
    }
    *ret_n = n;
    return all;
}

static int append_back(agent *a, size_t segment, const base_buf *words, base_err *err)
{
    const agent_segment *p = &a->transcript.segments[segment];
    base_buf head = {0}, label = {0};
    char *path = base_xstrdup(p->path);
    char version[sizeof p->version];
    memcpy(version, p->version, sizeof version);
    agent__put_segment_name(p, &label);
    base_buf_printf(&head, "From earlier in this session (%s):\n", label.data);
    const size_t behind = head.len;
    base_buf_add(&head, words->data, words->len);
    if (words->len && words->data[words->len - 1] != '\n') base_buf_putc(&head, '\n');
    agent_text t = {.origin = KV_ORIGIN_CONTEXT,
        .text = head.data,
        .n = head.len,
        .label = "back",
        .path = path,
        .version = path ? version : NULL,
        .line = p->line,
        .line_end = p->line_end,
        .source_from = behind};
    const int rc = agent__append(a, &t, NULL, err);
    if (!rc) agent__notice(a, "brought back: %s", label.data);
    free(path);
    base_buf_free(&head);
    base_buf_free(&label);
    return rc;
}

static bool is_wanted(const agent *a, const agent_segment *p)
{
    for (size_t i = 0; i < a->aside.n_wanted; i++)
        if (a->aside.wanted[i].from < p->to && p->from < a->aside.wanted[i].to) return true;
    return false;
}

/* The best text that is not in view; n: there is none that the message asks for. */
static size_t best_text(const agent *a, const text *all, size_t n, uint32_t room)
{
    size_t best = n;
    double in_view = 0;
    for (size_t i = 0; i < n; i++)
        if (all[i].is_active || all[i].is_taken)
            in_view = all[i].rank.score > in_view ? all[i].rank.score : in_view;
    for (size_t i = n; i-- > 0;) { /* of two that are the same the newer one */
        const agent_segment *p = &a->transcript.segments[all[i].segment];
        if (all[i].is_active || all[i].is_taken || p->to - p->from > room) continue;
        if (is_wanted(a, p)) return i;
        if (all[i].rank.cover < least_cover || all[i].rank.score <= in_view) continue;
        if (best == n || all[i].rank.score > all[best].rank.score) best = i;
    }
    return best;
}

static int bring_back(agent *a, const char *message, base_err *err)
{
    kv_stats s;
    size_t n;
    int rc = 0;
    a->engine->ops->stats(a->engine, &s);
    if (!s.host) return 0;
    text *all = find_texts(a, &n);
    const char **texts = base_xcalloc(n + 1, sizeof *texts);
    agent_rank *ranks = base_xcalloc(n + 1, sizeof *ranks);
    for (size_t i = 0; i < n; i++) texts[i] = all[i].words.data ? all[i].words.data : "";
    agent_rank_texts(message, texts, (uint32_t)n, ranks);
    for (size_t i = 0; i < n; i++) all[i].rank = ranks[i];
    const uint32_t left = s.n_ctx - s.n_tokens;
    uint32_t room = s.budget / 4 < left / 2 ? s.budget / 4 : left / 2;
    for (int k = 0; k < MOST_BACK + (int)a->aside.n_wanted && !rc; k++) {
        const size_t best = best_text(a, all, n, room);
        if (best == n) break;
        const agent_segment *p = &a->transcript.segments[all[best].segment];
        room -= p->to - p->from;
        for (size_t i = 0; i < n; i++) /* and what says the same */
            all[i].is_taken =
                all[i].is_taken || i == best ||
                (all[i].words.len == all[best].words.len && !memcmp(texts[i], texts[best], all[i].words.len));
        rc = append_back(a, all[best].segment, &all[best].words, err);
    }
    a->aside.n_wanted = 0;
    for (size_t i = 0; i < n; i++) base_buf_free(&all[i].words);
    free(all);
    free(texts);
    free(ranks);
    return rc;
}

int agent__append_aside(agent *a, const char *request, base_err *err)
{
    if (!agent__is_priced(a)) return 0;
    int rc = agent__hold_budget(a, request, err);
    if (!rc && a->aside.list.len) {
        base_buf words = {0};
        base_buf_printf(&words,
            "Put aside for lack of room, and no longer in view: %s. Read again what is needed of it.\n",
            a->aside.list.data);
        agent_text t = {.origin = KV_ORIGIN_CONTEXT,
            .text = words.data,
            .n = words.len,
            .label = "list of what is put aside"};
        rc = agent__append(a, &t, NULL, err);
        base_buf_free(&words);
        base_buf_clear(&a->aside.list);
    }
    return rc ? rc : bring_back(a, request, err);
}
