#include "tui/state/told.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The event's words and the screen's, in the order of tui_told. */
static const struct {
    const char *event, *screen;
} words[TUI_N_TOLD] = {{NULL, "not sent"}, {"found", "found"}, {"computed", "computed"}, {"sent", "not told"},
    {"gpu", "GPU"}, {"host", "host"}, {"disk", "disk"}, {"gone", "gone"}, {"unknown", "not told"}};

const char *tui_told_word(tui_told what)
{
    return words[what].screen;
}

void tui_told_free(tui_told_list *t)
{
    free(t->all);
    *t = (tui_told_list){0};
}

static bool is_of_blocks(tui_told what)
{
    return what >= TUI_TOLD_GPU;
}

static void add(tui_told_list *t, uint32_t turn, const agent_stretch_list *list, bool of_blocks)
{
    for (size_t i = 0; i < list->n; i++) {
        const agent_stretch_row *r = &list->rows[i];
        tui_told what = TUI_TOLD_NONE;
        for (int k = TUI_TOLD_NONE + 1; k < TUI_N_TOLD && r->what; k++)
            if (is_of_blocks(k) == of_blocks && !strcmp(words[k].event, r->what)) what = k;
        if (what == TUI_TOLD_NONE || r->from < 0 || r->to <= r->from || r->to > UINT32_MAX) continue;
        base_grow(&t->all, &t->cap, t->n + 1, sizeof *t->all);
        t->all[t->n++] = (tui_stretch){turn, t->n_requests, (uint32_t)r->from, (uint32_t)r->to, what};
    }
}

void tui_told_add(tui_told_list *t, const agent_event *e)
{
    const uint32_t turn = e->request.turn > 0 ? (uint32_t)e->request.turn : 0;
    t->n_requests++;
    add(t, turn, &e->request.parts, false);
    add(t, turn, &e->request.blocks, true);
}

void tui_told_truncate(tui_told_list *t, uint32_t turn)
{
    while (t->n && t->all[t->n - 1].turn > turn) t->n--;
}

tui_told_sum tui_told_count(const tui_told_list *t, uint32_t turn, uint32_t from, uint32_t to)
{
    tui_told_sum sum = {0};
    for (size_t i = t->n; i-- > 0 && t->all[i].turn >= turn;) {
        const tui_stretch *s = &t->all[i];
        const uint32_t first = s->from > from ? s->from : from, last = s->to < to ? s->to : to;
        if (s->turn != turn || is_of_blocks(s->what) || first >= last) continue;
        sum.sent += last - first;
        if (s->what == TUI_TOLD_FOUND) sum.found += last - first;
        if (s->what == TUI_TOLD_COMPUTED) sum.computed += last - first;
    }
    return sum;
}

/* The number of the newest request that told of blocks, or of what it sent; 0: none did. */
static uint32_t newest_of(const tui_told_list *t, uint32_t turn, bool of_blocks)
{
    for (size_t i = t->n; i-- > 0;)
        if (t->all[i].turn <= turn && is_of_blocks(t->all[i].what) == of_blocks) return t->all[i].request;
    return 0;
}

tui_told tui_told_newest(const tui_told_list *t, uint32_t turn, uint8_t *ret, uint32_t n)
{
    uint32_t request = newest_of(t, turn, true);
    const bool of_blocks = request > 0;
    if (!request) request = newest_of(t, turn, false);
    memset(ret, TUI_TOLD_NONE, n);
    if (!request) return TUI_TOLD_NONE;
    for (size_t i = 0; i < t->n && t->all[i].request <= request; i++) {
        const tui_stretch *s = &t->all[i];
        if (s->request != request || is_of_blocks(s->what) != of_blocks || s->from >= n) continue;
        memset(ret + s->from, (int)s->what, (s->to < n ? s->to : n) - s->from);
    }
    return of_blocks ? TUI_TOLD_GPU : TUI_TOLD_FOUND;
}
