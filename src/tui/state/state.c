/*
 * The reducer: one function an event, in a table. Everything foreign is made harmless here, once, so that
 * views only paint.
 */
#include "tui/state/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/mem.h"
#include "tui/state/cache_events.h"
#include "tui/state/items.h"
#include "tui/state/what_if_events.h"

void tui_state_init(tui_state *s)
{
    *s = (tui_state){.journal = tui_journal_new(), .n_lanes = 1};
}

static void clear_approval(tui_approval *a)
{
    free(a->name);
    free(a->headline);
    free(a->detail);
    free(a->power);
    free(a->text);
    *a = (tui_approval){0};
}

/* What is kept of the cache, turn by turn; the arrays stay. */
static void forget_cache(tui_state *s)
{
    for (size_t i = 0; i < s->n_ledgers; i++) free(s->ledgers[i].why);
    for (size_t i = 0; i < s->n_masks; i++) {
        free(s->masks[i].wanted);
        free(s->masks[i].took);
    }
    s->n_ledgers = s->n_masks = s->n_scores = s->n_sections = 0;
    tui_told_free(&s->told);
    tui_journal_free(s->journal);
    s->journal = NULL;
}

void tui_state_free(tui_state *s)
{
    for (size_t i = 0; i < s->n_items; i++) tui_item_free(s->items + i);
    forget_cache(s);
    free(s->items);
    free(s->ledgers);
    free(s->masks);
    free(s->scores);
    free(s->sections);
    clear_approval(&s->approval);
    free(s->payload);
    free(s->session);
    free(s->parent);
    free(s->model);
    free(s->prefill_server);
    free(s->policy);
    free(s->mode);
    free(s->what_if_original);
    free(s->what_if_changed);
    free(s->root);
    free(s->branch);
    *s = (tui_state){0};
}

void tui_state_settle(tui_state *s)
{
    clear_approval(&s->approval);
    s->in_turn = false;
}

static void see_turn(tui_state *s, int64_t turn)
{
    if (turn > 0 && turn <= UINT32_MAX) s->turn = (uint32_t)turn;
}

/*
 * Another session goes on here (/new, /compact): its sequence starts empty; the transcript stays to be read.
 */
static void start_again(tui_state *s)
{
    forget_cache(s);
    s->journal = tui_journal_new();
    s->turn = s->n_tokens = 0;
    s->ended = false;
    for (size_t i = 0; i < s->n_items; i++) s->items[i].turn = 0; /* no rewind reaches them */
}

static void on_session(tui_state *s, const agent_event *e, int64_t now)
{
    if (s->session && e->session.id && strcmp(s->session, e->session.id) != 0) start_again(s);
    tui_set_clean(&s->session, e->session.id);
    tui_set_clean(&s->parent, e->session.parent);
    tui_set_clean(&s->model, e->session.model);
    tui_set_clean(&s->policy, e->session.policy);
    tui_set_clean(&s->mode, e->session.mode);
    tui_set_clean(&s->root, e->session.root);
    tui_set_clean(&s->branch, e->session.branch);
    if (e->session.budget >= 0) s->budget = (uint32_t)agent_limit_now(e->session.budget, e->session.until, 0);
    s->n_ctx = e->session.n_ctx > 0 ? (uint32_t)e->session.n_ctx : 0;
    s->folded_to = 0;
    if (e->session.n_lanes > 0 && e->session.n_lanes < UINT16_MAX) {
        s->n_lanes = tui_journal_windows(s->journal, (uint32_t)e->session.n_lanes, e->session.windows);
        s->n_windowed = (uint32_t)e->session.n_lanes - s->n_lanes;
        s->window = e->session.window > 0 ? (uint32_t)e->session.window : 0;
    }
    s->row_bytes = e->session.row_bytes;
    s->is_elsewhere = e->session.row_bytes <= 0; /* across HTTP there are no rows */
}

/* What was replayed up to here is its parent's. */
static void on_fork(tui_state *s, const agent_event *e, int64_t now)
{
    tui_set_clean(&s->session, e->fork.session);
    tui_set_clean(&s->parent, e->fork.parent);
}

static void on_user(tui_state *s, const agent_event *e, int64_t now)
{
    see_turn(s, e->user.turn);
    s->in_turn = true;
    s->tokens_since = 0;
    tui_add_clean(&tui_items_add(s, TUI_ITEM_USER)->body, e->user.text, true);
}

/* The answer whose tokens are still arriving; a notice may stand behind it. NULL: none. */
static tui_item *open_answer(tui_state *s)
{
    for (size_t i = s->n_items; i > 0; i--) {
        tui_item *item = s->items + i - 1;
        if (item->kind == TUI_ITEM_USER || item->kind == TUI_ITEM_TOOL) break;
        if (item->kind == TUI_ITEM_ANSWER && item->unsettled) return item;
    }
    return NULL;
}

static tui_item *answer_item(tui_state *s)
{
    tui_item *i = open_answer(s);
    if (!i) {
        i = tui_items_add(s, TUI_ITEM_ANSWER);
        i->unsettled = true;
        i->call_at = SIZE_MAX;
    }
    return i;
}

/* What kvist begins an answer with is read as the model's text; of a call only that it begins. */
static void show_opening(tui_state *s, const agent_event *e)
{
    const char *thought = agent_event_opening(e);
    if (!thought) return;
    tui_item *i = answer_item(s);
    tui_add_clean(&i->body, thought, true);
    i->streaming = true;
    i->version++;
}

static void on_append(tui_state *s, const agent_event *e, int64_t now)
{
    if (e->append.n <= 0 || e->append.from < 0 || e->append.from > UINT32_MAX - e->append.n) return;
    see_turn(s, e->append.turn);
    uint32_t from = (uint32_t)e->append.from, n = (uint32_t)e->append.n;
    if (from < s->n_tokens) tui_journal_truncate(s->journal, s->turn, from);
    uint16_t *lens = e->append.lens.n == n ? base_xcalloc(n, sizeof *lens) : NULL;
    for (uint32_t i = 0; lens && i < n; i++) {
        const int64_t length = e->append.lens.rows[i].n;
        lens[i] = length > 0 && length <= UINT16_MAX ? (uint16_t)length : 0;
    }
    const char *text = e->append.text ? e->append.text : "";
    const char *label = e->append.path ? e->append.path : e->append.label;
    tui_journal_append(s->journal, &(tui_appended){.turn = s->turn,
                                       .from = from,
                                       .n = n,
                                       .origin = e->append.origin,
                                       .label = label,
                                       .line = e->append.line > 0 ? (uint32_t)e->append.line : 0,
                                       .text = {text, strlen(text)},
                                       .lens = lens});
    if (e->append.lanes) tui_journal_lanes(s->journal, (uint32_t)e->append.lanes);
    show_opening(s, e);
    s->n_tokens = from + n;
    free(lens);
}

static void on_span(tui_state *s, const agent_event *e, int64_t now)
{
    if (e->span.from < 0 || e->span.to <= e->span.from || e->span.to > UINT32_MAX) return;
    tui_journal_span(s->journal, s->turn, (uint32_t)e->span.from, (uint32_t)e->span.to, e->span.reason);
}

/* A line: where, what, why. */
static void add_place(
    base_buf *body, const char *path, int64_t line, int64_t end, const char *name, const char *why)
{
    if (body->len) base_buf_putc(body, '\n');
    tui_add_clean(body, path, false);
    if (line > 0) base_buf_printf(body, ":%lld", (long long)line);
    if (line > 0 && end > line) base_buf_printf(body, "-%lld", (long long)end);
    if (name) {
        if (path) base_buf_puts(body, "  ");
        tui_add_clean(body, name, false);
    }
    if (why) {
        base_buf_puts(body, "  ");
        tui_add_clean(body, why, false);
    }
}

static void on_context(tui_state *s, const agent_event *e, int64_t now)
{
    tui_item *item = e->context.items.n ? tui_items_add(s, TUI_ITEM_CONTEXT) : NULL;
    for (size_t i = 0; i < e->context.items.n; i++) {
        const agent_excerpt_row *r = &e->context.items.rows[i];
        add_place(&item->body, r->path, r->line, r->end, r->name, r->why);
        if (r->tokens > 0) base_buf_printf(&item->body, "  %lld tokens", (long long)r->tokens);
    }
}

/* The answer as the index knows it; what was put right in it is marked there. */
static void on_correction(tui_state *s, const agent_event *e, int64_t now)
{
    for (size_t i = s->n_items; i > 0 && e->correction.text; i--) {
        tui_item *item = s->items + i - 1;
        if (item->kind == TUI_ITEM_USER || item->kind == TUI_ITEM_TOOL) return;
        if (item->kind != TUI_ITEM_ANSWER) continue;
        base_buf_clear(&item->body);
        tui_add_clean(&item->body, e->correction.text, true);
        item->version++;
        return;
    }
}

static void on_places(tui_state *s, const agent_event *e, int64_t now)
{
    tui_item *item = e->places.items.n ? tui_items_add(s, TUI_ITEM_PLACES) : NULL;
    for (size_t i = 0; i < e->places.items.n; i++) {
        const agent_place_row *r = &e->places.items.rows[i];
        if (r->text)
            add_place(&item->body, NULL, 0, 0, r->text, NULL);
        else
            add_place(&item->body, r->path, r->line, r->end, r->name, r->status);
    }
}

static void on_prefill(tui_state *s, const agent_event *e, int64_t now)
{
    bool starts = e->prefill.total != s->prefill_total || e->prefill.done < s->prefill_done;
    if (starts) {
        s->prefill_ms = now;
        s->prefill_from = e->prefill.done;
    }
    s->prefill_told_ms = now;
    s->prefill_done = e->prefill.done;
    s->prefill_total = e->prefill.total;
    free(s->prefill_server);
    s->prefill_server = tui_clean(e->prefill.server);
    if (s->prefill_done >= s->prefill_total) s->prefill_done = s->prefill_total = 0;
}

static tui_item *thought_item(tui_state *s)
{
    tui_item *i = tui_items_last(s);
    return i && i->kind == TUI_ITEM_THOUGHT && i->streaming ? i : tui_items_add(s, TUI_ITEM_THOUGHT);
}

static void on_token(tui_state *s, const agent_event *e, int64_t now)
{
    s->prefill_done = s->prefill_total = 0;
    if (s->tokens_since == 0) s->tokens_ms = now;
    s->tokens_since++;
    s->last_token_ms = now;
    if (e->token.text && *e->token.text) {
        tui_item *i = e->token.channel ? thought_item(s) : answer_item(s);
        if (!e->token.channel && e->token.origin && i->call_at == SIZE_MAX) i->call_at = i->body.len;
        tui_add_clean(&i->body, e->token.text, true);
        i->streaming = true;
        i->version++;
    }
    if (e->token.index >= 0 && e->token.index <= UINT32_MAX - 1) {
        uint32_t at = (uint32_t)e->token.index;
        if (at < s->n_tokens) tui_journal_truncate(s->journal, s->turn, at);
        const char *text = e->token.text ? e->token.text : "";
        tui_journal_append(
            s->journal, &(tui_appended){s->turn, at, 1, .origin = "answer", .text = {text, strlen(text)}});
        s->n_tokens = at + 1;
    }
}

size_t tui_call_start(const tui_item *answer)
{
    static const char *const marks[] = {"<tools>", "<tool_call>", "<seed:tool_call>", "{\"name\"", "```json"};
    const char *text = answer->body.data;
    const size_t n = answer->body.len;
    for (size_t i = 0; i < n && i < answer->call_at; i++) {
        if (i > 0 && text[i - 1] != '\n') continue;
        for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
            size_t length = strlen(marks[k]);
            if (n - i >= length && !memcmp(text + i, marks[k], length)) return i;
        }
    }
    return answer->call_at < n ? answer->call_at : n;
}

static void on_tool_call(tui_state *s, const agent_event *e, int64_t now)
{
    tui_item *before = open_answer(s);
    if (before) {
        /* The raw call was streamed as text; the tool's line says the same. */
        size_t n = tui_call_start(before);
        while (n > 0 && (before->body.data[n - 1] == '\n' || before->body.data[n - 1] == ' ')) n--;
        before->streaming = before->unsettled = false;
        before->version++;
        if (n == 0) {
            tui_items_remove(s, before);
        } else {
            before->body.len = n;
            before->body.data[n] = 0;
        }
    }
    see_turn(s, e->tool_call.turn);
    free(s->payload);
    s->payload = e->tool_call.payload ? base_xstrdup(e->tool_call.payload) : NULL;
    tui_item *i = tui_items_add(s, TUI_ITEM_TOOL);
    i->open = !s->in_turn; /* a ! line's output is what the person wants to see */
    i->name = tui_clean(e->tool_call.name);
    if (e->tool_call.headline) {
        tui_add_shown(&i->head, e->tool_call.headline);
    } else {
        tui_add_shown(&i->head, e->tool_call.name);
        if (e->tool_call.arguments) {
            base_buf_putc(&i->head, ' ');
            tui_add_shown(&i->head, e->tool_call.arguments);
        }
    }
}

bool tui_approval_rewinds(const tui_approval *a)
{
    return a->name && !strcmp(a->name, "rewind");
}

bool tui_approval_runs(const tui_approval *a)
{
    return a->power && !strcmp(a->power, "runs");
}

static void on_approval_request(tui_state *s, const agent_event *e, int64_t now)
{
    clear_approval(&s->approval);
    /* Raw, all of it: what a person decides about is made visible where it is painted, byte for byte. */
    s->approval = (tui_approval){.waiting = true,
        .name = tui_clean(e->approval_request.name),
        .headline = base_xstrdup(e->approval_request.headline),
        .detail = base_xstrdup(e->approval_request.detail),
        .power = tui_clean(e->approval_request.power)};
    tui_item *i = tui_items_running_tool(s);
    bool is_call = i && i->name && s->approval.name && !strcmp(i->name, s->approval.name);
    const char *text = tui_approval_runs(&s->approval) ? s->approval.detail
                       : is_call                       ? s->payload
                                                       : NULL; /* an undo has nothing to write */
    s->approval.text = base_xstrdup(text);
    if (!i) { /* else the call's own line stays: what the question adds is of the question only */
        i = tui_items_add(s, TUI_ITEM_TOOL);
        tui_add_shown(&i->head, s->approval.headline);
    }
    if (s->approval.detail && !tui_approval_runs(&s->approval)) { /* only a change of files is a diff */
        base_buf_clear(&i->diff);
        base_buf_puts(&i->diff, s->approval.detail);
    }
    s->approval.item = (size_t)(i - s->items);
    i->version++;
}

static void on_approval(tui_state *s, const agent_event *e, int64_t now)
{
    clear_approval(&s->approval);
    tui_item *i = tui_items_running_tool(s);
    if (!i) return;
    if (!i->name) /* no call's, and so without a result: an undo, a rewind */
        i->status =
            base_xstrdup(e->approval.decision && !strcmp(e->approval.decision, "no") ? "denied" : "ok");
    if (e->approval.reason && *e->approval.reason) {
        if (i->body.len) base_buf_putc(&i->body, '\n');
        base_buf_puts(&i->body, "you: ");
        tui_add_clean(&i->body, e->approval.reason, true);
    }
    i->version++;
}

static void on_tool_output(tui_state *s, const agent_event *e, int64_t now)
{
    tui_item *i = tui_items_running_tool(s);
    if (!i) return;
    tui_add_clean(&i->body, e->tool_output.text, true);
    i->version++;
}

static void on_tool_result(tui_state *s, const agent_event *e, int64_t now)
{
    clear_approval(&s->approval);
    tui_item *i = tui_items_running_tool(s);
    if (!i) {
        i = tui_items_add(s, TUI_ITEM_TOOL);
        i->name = tui_clean(e->tool_result.name);
        tui_add_clean(&i->head, e->tool_result.name, false);
    }
    i->status = tui_clean(e->tool_result.status ? e->tool_result.status : "ok");
    i->summary = tui_clean(e->tool_result.summary);
    if (e->tool_result.text) {
        base_buf_clear(&i->body);
        tui_add_clean(&i->body, e->tool_result.text, true);
    }
    base_buf_clear(&i->diff); /* what was proposed; the result says what was written */
    if (e->tool_result.diff) base_buf_puts(&i->diff, e->tool_result.diff);
    i->exit_code = e->tool_result.exit_code;
    i->ms = e->tool_result.ms;
    i->version++;
}

static void on_answer(tui_state *s, const agent_event *e, int64_t now)
{
    tui_item *i = answer_item(s);
    base_buf_clear(&i->body);
    tui_add_clean(&i->body, e->answer.text, true);
    i->streaming = i->unsettled = false;
    i->version++;
    if (!i->body.len) tui_items_remove(s, i);
}

static void on_rewind(tui_state *s, const agent_event *e, int64_t now)
{
    if (e->rewind.turn < 1 || e->rewind.turn > UINT32_MAX || e->rewind.n < 0) return;
    s->turn = (uint32_t)e->rewind.turn - 1;
    if (e->rewind.n < s->n_tokens) s->n_tokens = (uint32_t)e->rewind.n;
    if (e->rewind.n < s->folded_to) s->folded_to = (uint32_t)e->rewind.n;
    tui_journal_rewind(s->journal, s->turn, s->n_tokens);
    while (s->n_ledgers > 0 && s->ledgers[s->n_ledgers - 1].turn > s->turn)
        free(s->ledgers[--s->n_ledgers].why);
    while (s->n_scores > 0 && s->scores[s->n_scores - 1].turn > s->turn) s->n_scores--;
    while (s->n_sections > 0 && s->sections[s->n_sections - 1].turn > s->turn) s->n_sections--;
    tui_told_truncate(&s->told, s->turn);
    while (s->n_masks > 0 && s->masks[s->n_masks - 1].turn > s->turn) {
        free(s->masks[--s->n_masks].wanted);
        free(s->masks[s->n_masks].took);
    }
    base_buf b = {0};
    base_buf_printf(&b, "rewound to before turn %lld", (long long)e->rewind.turn);
    if (e->rewind.summary) base_buf_printf(&b, "; %s; /undo brings them again", e->rewind.summary);
    while (s->n_items > 0 && s->items[s->n_items - 1].turn >= e->rewind.turn) tui_items_drop_last(s);
    tui_state_note(s, TUI_ITEM_NOTICE, b.data);
    base_buf_free(&b);
}

static void on_undo(tui_state *s, const agent_event *e, int64_t now)
{
    tui_state_note(s, TUI_ITEM_NOTICE, e->undo.summary ? e->undo.summary : "undone");
}

static void on_outcome(tui_state *s, const agent_event *e, int64_t now)
{
    if (e->outcome.text) tui_state_note(s, TUI_ITEM_NOTICE, e->outcome.text);
}

static void on_notice(tui_state *s, const agent_event *e, int64_t now)
{
    /*
     * A change of mode shows in the footer only: as notices, cycling through the modes would fill the
     * transcript.
     */
    agent_mode mode;
    if (e->notice.text && !strncmp(e->notice.text, "mode ", 5) && agent_mode_parse(e->notice.text + 5, &mode))
        tui_set_clean(&s->mode, e->notice.text + 5);
    else
        tui_state_note(s, TUI_ITEM_NOTICE, e->notice.text);
}

static void on_error(tui_state *s, const agent_event *e, int64_t now)
{
    tui_state_note(s, TUI_ITEM_ERROR, e->error.text);
}

static void on_turn_end(tui_state *s, const agent_event *e, int64_t now)
{
    clear_approval(&s->approval);
    s->in_turn = false;
    s->prefill_done = s->prefill_total = 0;
    s->tokens_since = 0;
    tui_item *i = open_answer(s);
    if (!i) i = tui_items_last(s);
    if (i && i->streaming) {
        i->streaming = false;
        i->version++;
    }
    tui_item *tool = tui_items_running_tool(s);
    if (tool) {
        tool->status = base_xstrdup("cancelled");
        tool->version++;
    }
}

static void on_end(tui_state *s, const agent_event *e, int64_t now)
{
    s->ended = true;
    s->in_turn = false;
}

static tui_apply_fn *const apply[AGENT_N_EVENTS] = {
    [AGENT_EVENT_session] = on_session,
    [AGENT_EVENT_user] = on_user,
    [AGENT_EVENT_append] = on_append,
    [AGENT_EVENT_span] = on_span,
    [AGENT_EVENT_context] = on_context,
    [AGENT_EVENT_prefill] = on_prefill,
    [AGENT_EVENT_token] = on_token,
    [AGENT_EVENT_mask] = tui_on_mask,
    [AGENT_EVENT_tool_call] = on_tool_call,
    [AGENT_EVENT_approval_request] = on_approval_request,
    [AGENT_EVENT_approval] = on_approval,
    [AGENT_EVENT_tool_output] = on_tool_output,
    [AGENT_EVENT_tool_result] = on_tool_result,
    [AGENT_EVENT_answer] = on_answer,
    [AGENT_EVENT_places] = on_places,
    [AGENT_EVENT_plan] = tui_on_plan,
    [AGENT_EVENT_scores] = tui_on_scores,
    [AGENT_EVENT_sections] = tui_on_sections,
    [AGENT_EVENT_visits] = tui_on_visits,
    [AGENT_EVENT_request] = tui_on_request,
    [AGENT_EVENT_ledger] = tui_on_ledger,
    [AGENT_EVENT_rewind] = on_rewind,
    [AGENT_EVENT_undo] = on_undo,
    [AGENT_EVENT_correction] = on_correction,
    [AGENT_EVENT_outcome] = on_outcome,
    [AGENT_EVENT_notice] = on_notice,
    [AGENT_EVENT_error] = on_error,
    [AGENT_EVENT_turn_end] = on_turn_end,
    [AGENT_EVENT_end] = on_end,
    [AGENT_EVENT_fork] = on_fork,
    [AGENT_EVENT_what_if] = tui_on_what_if,
    [AGENT_EVENT_what_if_turn] = tui_on_what_if_turn,
    [AGENT_EVENT_what_if_answer] = tui_on_what_if_answer,
    [AGENT_EVENT_what_if_end] = tui_on_what_if_end,
};

void tui_state_apply(tui_state *s, const agent_event *e, int64_t now_ms)
{
    if (e->type < AGENT_N_EVENTS && apply[e->type]) apply[e->type](s, e, now_ms);
}
