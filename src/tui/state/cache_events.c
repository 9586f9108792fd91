/*
 * Events that tell what the model may read: plans, visits, scores, sections, what an engine elsewhere found, and the turn's
 * ledger, with what views ask of them (contract: cache_events.h, state.h).
 */
#include "tui/state/cache_events.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/mem.h"
#include "tui/state/items.h"

void tui_on_mask(tui_state *s, const agent_event *e, int64_t now)
{
    base_grow(&s->masks, &s->cap_masks, s->n_masks + 1, sizeof *s->masks);
    s->masks[s->n_masks++] = (tui_mask){.turn = (uint32_t)e->mask.turn,
        .index = (uint32_t)e->mask.index,
        .wanted = tui_clean(e->mask.wanted),
        .took = tui_clean(e->mask.took)};
}

/* "budget, stale": each word once, while there is room for a line. */
static void add_word(base_buf *list, const char *word)
{
    base_str rest = {list->data ? list->data : "", list->len};
    size_t n = strlen(word);
    if (n == 0 || list->len > 60 || memmem(rest.ptr, rest.len, word, n)) return;
    if (list->len) base_buf_puts(list, ", ");
    tui_add_clean(list, word, false);
}

/* Those of another such list. */
static void add_words(base_buf *list, base_buf *words)
{
    char *left = words->data;
    for (const char *word; (word = strsep(&left, ","));) add_word(list, word + strspn(word, " "));
}

/*
 * The line that says what plans did since the last request, answer or call: one for all of them, above an
 * answer that streams.
 */
static tui_item *cache_item(tui_state *s)
{
    tui_item *last = tui_items_last(s);
    size_t streaming = last && last->streaming ? 1 : 0;
    for (size_t k = s->n_items - streaming; k > 0; k--) {
        tui_item *i = s->items + k - 1;
        if (i->kind == TUI_ITEM_CACHE && i->turn == s->turn) return i;
        if (i->kind == TUI_ITEM_USER || i->kind == TUI_ITEM_TOOL || i->kind == TUI_ITEM_ANSWER) break;
    }
    tui_item *i = tui_items_add(s, TUI_ITEM_CACHE);
    if (streaming) {
        tui_item answer = i[-1];
        answer.streaming = true;
        answer.version++;
        i[-1] = *i;
        *i = answer;
        i--;
    }
    return i;
}

void tui_on_plan(tui_state *s, const agent_event *e, int64_t now)
{
    base_buf evicted = {0}, promoted = {0};
    if (e->plan.cause && (!strcmp(e->plan.cause, "evict") || !strcmp(e->plan.cause, "pressure")))
        tui_journal_pass(s->journal, s->turn);
    if (e->plan.folded > 0 && e->plan.folded < UINT32_MAX) s->folded_to = (uint32_t)e->plan.folded;
    bool exact = tui_journal_plan(s->journal, s->turn, e->blob, e->blob_n);
    for (size_t i = 0; i < e->plan.runs.n; i++) {
        const agent_run_row *r = &e->plan.runs.rows[i];
        const int64_t lanes = r->lanes < 0 ? s->n_lanes : r->lanes;
        if (!r->action || !r->reason || r->from < 0 || r->to <= r->from || r->to > UINT32_MAX ||
            lanes > UINT32_MAX)
            continue;
        tui_journal_run(s->journal, s->turn, (uint32_t)r->from, (uint32_t)r->to, r->action, r->reason,
            (uint32_t)lanes, exact);
        if (!strcmp(r->action, "evict") || !strcmp(r->action, "bar")) add_word(&evicted, r->reason);
        bool pins = !strcmp(r->action, "protect") && !strcmp(r->reason, "pin") && e->plan.promoted > 0;
        if (pins || !strcmp(r->action, "promote")) add_word(&promoted, r->reason);
    }
    if (e->plan.evicted <= 0 && e->plan.promoted <= 0 && e->plan.deferred <= 0 && e->plan.again <= 0) {
        base_buf_free(&evicted);
        base_buf_free(&promoted);
        return;
    }
    tui_item *i = cache_item(s);
    i->evicted += (uint32_t)e->plan.evicted;
    if (i->evicted && !s->explained) i->explains = s->explained = true;
    i->promoted += (uint32_t)e->plan.promoted;
    const bool is_answer = e->plan.cause && !strcmp(e->plan.cause, "answer");
    *(is_answer ? &i->answer_again : &i->again) += (uint32_t)e->plan.again;
    i->deferred += (uint32_t)e->plan.deferred;
    add_words(&i->head, &evicted);
    add_words(&i->body, &promoted);
    i->version++;
    base_buf_free(&evicted);
    base_buf_free(&promoted);
}

void tui_on_visits(tui_state *s, const agent_event *e, int64_t now)
{
    if (e->visits.tokens <= 0 || e->visits.rows < .5) return;
    tui_item *i = cache_item(s);
    const char *before = " (";
    base_buf_printf(&i->diff, "%s%lld token%s read %.0f evicted rows each", i->diff.len ? "; " : "",
        (long long)e->visits.tokens, e->visits.tokens == 1 ? "" : "s", e->visits.rows);
    for (size_t k = 0; k < e->visits.items.n; k++) {
        const agent_visitor_row *r = &e->visits.items.rows[k];
        if (!r->name || isnan(r->share)) continue;
        base_buf_puts(&i->diff, before);
        tui_add_clean(&i->diff, r->name, false);
        base_buf_printf(&i->diff, " %.0f%%", 100 * r->share);
        before = ", ";
    }
    if (*before == ',') base_buf_putc(&i->diff, ')');
    i->version++;
}

void tui_on_scores(tui_state *s, const agent_event *e, int64_t now)
{
    for (size_t i = 0; i < e->scores.spans.n; i++) {
        const agent_score_row *r = &e->scores.spans.rows[i];
        if (r->from < 0 || r->to <= r->from || r->to > UINT32_MAX) continue;
        base_grow(&s->scores, &s->cap_scores, s->n_scores + 1, sizeof *s->scores);
        s->scores[s->n_scores++] = (tui_score){.turn = (uint32_t)e->scores.turn,
            .from = (uint32_t)r->from,
            .to = (uint32_t)r->to,
            .attention = r->attention,
            .memory = r->memory,
            .rank = r->rank,
            .threshold = r->cut};
    }
}

const tui_score *tui_state_score(const tui_state *s, uint32_t index, uint32_t turn)
{
    for (size_t i = s->n_scores; i > 0; i--) {
        const tui_score *score = s->scores + i - 1;
        if (score->turn <= turn && index >= score->from && index < score->to) return score;
    }
    return NULL;
}

static void add_section(tui_state *s, tui_section section)
{
    base_grow(&s->sections, &s->cap_sections, s->n_sections + 1, sizeof *s->sections);
    s->sections[s->n_sections++] = section;
}

void tui_on_sections(tui_state *s, const agent_event *e, int64_t now)
{
    if (!e->sections.items.rows) return;
    const uint32_t turn = (uint32_t)e->sections.turn;
    while (s->n_sections && s->sections[s->n_sections - 1].turn >= turn) s->n_sections--;
    add_section(s, (tui_section){.turn = turn, .lanes = (uint32_t)e->sections.lanes});
    for (size_t i = 0; i < e->sections.items.n; i++) {
        const agent_section_row *r = &e->sections.items.rows[i];
        if (r->from >= 0 && r->to > r->from && r->to <= UINT32_MAX && r->lanes >= 0 && r->lanes <= UINT32_MAX)
            add_section(s, (tui_section){turn, (uint32_t)r->from, (uint32_t)r->to, (uint32_t)r->lanes});
    }
}

bool tui_state_section(const tui_state *s, uint32_t index, uint32_t turn, tui_section *ret)
{
    size_t i = s->n_sections;
    while (i && s->sections[i - 1].turn > turn) i--;
    if (!i) return false;
    const uint32_t newest = s->sections[i - 1].turn;
    *ret = (tui_section){.turn = newest};
    for (; i && s->sections[i - 1].turn == newest; i--)
        if (index >= s->sections[i - 1].from && index < s->sections[i - 1].to) *ret = s->sections[i - 1];
    return true;
}

const char *tui_state_unit(const tui_state *s)
{
    return s->is_elsewhere ? "tokens" : "rows";
}

const char *tui_state_evicted(const tui_state *s)
{
    return s->is_elsewhere ? "aside" : "host";
}

void tui_on_request(tui_state *s, const agent_event *e, int64_t now)
{
    tui_asked *a = &s->asked;
    s->is_elsewhere = true;
    tui_told_add(&s->told, e);
    if (a->turn != (uint32_t)e->request.turn) *a = (tui_asked){.turn = (uint32_t)e->request.turn};
    a->n++;
    a->sent += e->request.sent;
    if (e->request.cached >= 0) {
        a->n_told++;
        a->expected += e->request.predicted;
        a->found += e->request.cached;
        a->computed += e->request.computed > 0 ? e->request.computed : 0;
    }
    if (agent_request_tells_blocks(e)) {
        a->tells_blocks = true;
        a->gpu = e->request.gpu;
        a->host = e->request.host;
        a->disk = e->request.disk;
        a->gone = e->request.gone;
        a->unknown = e->request.unknown;
    }
    if (!e->request.why) return;
    char *why = tui_clean(e->request.why);
    snprintf(a->why, sizeof a->why, "%s", why);
    free(why);
}

const tui_ledger *tui_state_ledger(const tui_state *s, uint32_t turn)
{
    for (size_t i = s->n_ledgers; i > 0; i--)
        if (s->ledgers[i - 1].turn == turn) return s->ledgers + i - 1;
    return NULL;
}

void tui_on_ledger(tui_state *s, const agent_event *e, int64_t now)
{
    tui_ledger *l = (tui_ledger *)tui_state_ledger(s, (uint32_t)e->ledger.turn);
    if (!l) {
        base_grow(&s->ledgers, &s->cap_ledgers, s->n_ledgers + 1, sizeof *s->ledgers);
        l = s->ledgers + s->n_ledgers++;
        *l = (tui_ledger){0};
    }
    free(l->why);
    *l = (tui_ledger){.turn = (uint32_t)e->ledger.turn,
        .new = e->ledger.new,
        .reused = e->ledger.reused,
        .generated = e->ledger.generated,
        .evicted = e->ledger.evicted,
        .promoted = e->ledger.promoted,
        .protected_ = e->ledger.protected,
        .active = e->ledger.active,
        .host = e->ledger.host,
        .budget = agent_limit_now(e->ledger.budget, e->ledger.until, e->ledger.host),
        .n = e->ledger.n,
        .ctx = e->ledger.ctx,
        .active_bytes = e->ledger.active_bytes,
        .host_bytes = e->ledger.host_bytes,
        .prefill_s = e->ledger.prefill_s,
        .decode_tps = e->ledger.decode_tps,
        .structure = e->ledger.structure,
        .chance = e->ledger.chance,
        .ceiling = e->ledger.ceiling,
        .deferred = e->ledger.deferred,
        .spared = e->ledger.spared,
        .computed = e->ledger.computed,
        .skipped = e->ledger.unread,
        .read = e->ledger.read,
        .kept = e->ledger.kept,
        .asked = s->asked.turn == (uint32_t)e->ledger.turn ? s->asked : (tui_asked){0},
        .why = tui_clean(e->ledger.why)};
    if (e->ledger.budget >= 0) s->budget = (uint32_t)l->budget;
    if (e->ledger.ctx > 0) s->n_ctx = (uint32_t)e->ledger.ctx;
    if (e->ledger.decode_tps > 0) s->decode_tps = e->ledger.decode_tps;
}
