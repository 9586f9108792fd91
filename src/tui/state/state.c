/*
 * The reducer: one function an event, in a table. Everything foreign is made harmless here, once, so that
 * views only paint.
 */
#include "tui/state/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/utf8.h"

enum { MAX_BODY = 4 << 20 }; /* bytes kept of one item: a model or a tool may never stop */

void tui_state_init(tui_state *s)
{
    *s = (tui_state){.journal = tui_journal_new(), .n_lanes = 1};
}

static void free_item(tui_item *i)
{
    base_buf_free(&i->head);
    base_buf_free(&i->body);
    base_buf_free(&i->diff);
    free(i->status);
    free(i->name);
    free(i->summary);
    tui_text_free(&i->lines);
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

void tui_state_free(tui_state *s)
{
    for (size_t i = 0; i < s->n_items; i++) free_item(s->items + i);
    for (size_t i = 0; i < s->n_ledgers; i++) free(s->ledgers[i].why);
    for (size_t i = 0; i < s->n_masks; i++) {
        free(s->masks[i].wanted);
        free(s->masks[i].took);
    }
    free(s->items);
    free(s->ledgers);
    free(s->masks);
    free(s->scores);
    free(s->sections);
    tui_told_free(&s->told);
    tui_journal_free(s->journal);
    clear_approval(&s->approval);
    free(s->payload);
    free(s->session);
    free(s->parent);
    free(s->model);
    free(s->policy);
    free(s->mode);
    free(s->root);
    free(s->branch);
    *s = (tui_state){0};
}

static void add_clean(base_buf *b, const char *s, bool keep_newlines)
{
    if (!s || b->len > MAX_BODY) return;
    size_t n = strlen(s);
    if (n > MAX_BODY) n = MAX_BODY;
    base_utf8_sanitise(b, s, n, keep_newlines);
}

static char *clean(const char *s)
{
    if (!s) return NULL;
    base_buf b = {0};
    add_clean(&b, s, false);
    return base_buf_take(&b);
}

/* What a tool would do, in a line: a command's line ends and all that is not seen are visible in it. */
static void add_shown(base_buf *b, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    base_show(b, s, n < MAX_BODY ? n : MAX_BODY, BASE_SHOW_UTF8);
}

static void set(char **field, const char *s)
{
    if (!s) return;
    free(*field);
    *field = clean(s);
}

static tui_item *last_item(tui_state *s)
{
    return s->n_items ? s->items + s->n_items - 1 : NULL;
}

static tui_item *add_item(tui_state *s, tui_item_kind kind)
{
    tui_item *before = last_item(s);
    if (before && before->streaming) {
        before->streaming = false;
        before->version++;
    }
    base_grow(&s->items, &s->cap_items, s->n_items + 1, sizeof *s->items);
    tui_item *i = s->items + s->n_items++;
    *i = (tui_item){.kind = kind, .turn = s->turn, .exit_code = -1, .version = 1};
    return i;
}

static void drop_last_item(tui_state *s)
{
    free_item(s->items + --s->n_items);
}

void tui_state_note(tui_state *s, tui_item_kind kind, const char *text)
{
    add_clean(&add_item(s, kind)->body, text, true);
}

const tui_item *tui_state_last_answer(const tui_state *s)
{
    for (size_t i = s->n_items; i > 0; i--)
        if (s->items[i - 1].kind == TUI_ITEM_ANSWER && s->items[i - 1].body.len) return s->items + i - 1;
    return NULL;
}

void tui_state_settle(tui_state *s)
{
    clear_approval(&s->approval);
    s->in_turn = false;
}

const tui_ledger *tui_state_ledger(const tui_state *s, uint32_t turn)
{
    for (size_t i = s->n_ledgers; i > 0; i--)
        if (s->ledgers[i - 1].turn == turn) return s->ledgers + i - 1;
    return NULL;
}

/* The tool item that waits for its result. */
static tui_item *running_tool(tui_state *s)
{
    for (size_t i = s->n_items; i > 0 && s->n_items - i < 16; i--) {
        tui_item *t = s->items + i - 1;
        if (t->kind == TUI_ITEM_TOOL && !t->status) return t;
    }
    return NULL;
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
    tui_journal_free(s->journal);
    s->journal = tui_journal_new();
    for (size_t i = 0; i < s->n_ledgers; i++) free(s->ledgers[i].why);
    for (size_t i = 0; i < s->n_masks; i++) {
        free(s->masks[i].wanted);
        free(s->masks[i].took);
    }
    s->n_ledgers = s->n_masks = s->n_scores = s->n_sections = 0;
    tui_told_free(&s->told);
    s->turn = s->n_tokens = 0;
    s->ended = false;
    for (size_t i = 0; i < s->n_items; i++) s->items[i].turn = 0; /* no rewind reaches them */
}

static void on_session(tui_state *s, const agent_event *e, int64_t now)
{
    if (s->session && e->session.id && strcmp(s->session, e->session.id) != 0) start_again(s);
    set(&s->session, e->session.id);
    set(&s->parent, e->session.parent);
    set(&s->model, e->session.model);
    set(&s->policy, e->session.policy);
    set(&s->mode, e->session.mode);
    set(&s->root, e->session.root);
    set(&s->branch, e->session.branch);
    if (e->session.budget >= 0) s->budget = (uint32_t)agent_limit_now(e->session.budget, e->session.until, 0);
    s->n_ctx = e->session.n_ctx > 0 ? (uint32_t)e->session.n_ctx : 0;
    s->folded_to = 0;
    if (e->session.n_lanes > 0 && e->session.n_lanes < UINT16_MAX) s->n_lanes = (uint32_t)e->session.n_lanes;
    s->row_bytes = e->session.row_bytes;
    s->is_elsewhere = e->session.row_bytes <= 0; /* across HTTP there are no rows */
}

/* What was replayed up to here is its parent's. */
static void on_fork(tui_state *s, const agent_event *e, int64_t now)
{
    set(&s->session, e->fork.session);
    set(&s->parent, e->fork.parent);
}

static void on_user(tui_state *s, const agent_event *e, int64_t now)
{
    see_turn(s, e->user.turn);
    s->in_turn = true;
    s->tokens_since = 0;
    add_clean(&add_item(s, TUI_ITEM_USER)->body, e->user.text, true);
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
        i = add_item(s, TUI_ITEM_ANSWER);
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
    add_clean(&i->body, thought, true);
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
    tui_journal_append(s->journal, s->turn, from, n, e->append.origin, label,
        e->append.line > 0 ? (uint32_t)e->append.line : 0, text, strlen(text), lens);
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
    add_clean(body, path, false);
    if (line > 0) base_buf_printf(body, ":%lld", (long long)line);
    if (line > 0 && end > line) base_buf_printf(body, "-%lld", (long long)end);
    if (name) {
        if (path) base_buf_puts(body, "  ");
        add_clean(body, name, false);
    }
    if (why) {
        base_buf_puts(body, "  ");
        add_clean(body, why, false);
    }
}

static void on_context(tui_state *s, const agent_event *e, int64_t now)
{
    tui_item *item = e->context.items.n ? add_item(s, TUI_ITEM_CONTEXT) : NULL;
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
        add_clean(&item->body, e->correction.text, true);
        item->version++;
        return;
    }
}

static void on_places(tui_state *s, const agent_event *e, int64_t now)
{
    tui_item *item = e->places.items.n ? add_item(s, TUI_ITEM_PLACES) : NULL;
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
    s->prefill_done = e->prefill.done;
    s->prefill_total = e->prefill.total;
    if (s->prefill_done >= s->prefill_total) s->prefill_done = s->prefill_total = 0;
}

static tui_item *thought_item(tui_state *s)
{
    tui_item *i = last_item(s);
    return i && i->kind == TUI_ITEM_THOUGHT && i->streaming ? i : add_item(s, TUI_ITEM_THOUGHT);
}

static void remove_item(tui_state *s, tui_item *item)
{
    size_t at = (size_t)(item - s->items);
    free_item(item);
    memmove(item, item + 1, (--s->n_items - at) * sizeof *item);
    if (at < s->n_items) item->version++; /* what stands above it changed */
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
        add_clean(&i->body, e->token.text, true);
        i->streaming = true;
        i->version++;
    }
    if (e->token.index >= 0 && e->token.index <= UINT32_MAX - 1) {
        uint32_t at = (uint32_t)e->token.index;
        if (at < s->n_tokens) tui_journal_truncate(s->journal, s->turn, at);
        const char *text = e->token.text ? e->token.text : "";
        tui_journal_append(s->journal, s->turn, at, 1, "answer", "", 0, text, strlen(text), NULL);
        s->n_tokens = at + 1;
    }
}

static void on_mask(tui_state *s, const agent_event *e, int64_t now)
{
    base_grow(&s->masks, &s->cap_masks, s->n_masks + 1, sizeof *s->masks);
    s->masks[s->n_masks++] = (tui_mask){.turn = (uint32_t)e->mask.turn,
        .index = (uint32_t)e->mask.index,
        .wanted = clean(e->mask.wanted),
        .took = clean(e->mask.took)};
}

size_t tui_call_start(const tui_item *answer)
{
    static const char *const marks[] = {"<tools>", "<tool_call>", "{\"name\"", "```json"};
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
            remove_item(s, before);
        } else {
            before->body.len = n;
            before->body.data[n] = 0;
        }
    }
    see_turn(s, e->tool_call.turn);
    free(s->payload);
    s->payload = e->tool_call.payload ? base_xstrdup(e->tool_call.payload) : NULL;
    tui_item *i = add_item(s, TUI_ITEM_TOOL);
    i->open = !s->in_turn; /* a ! line's output is what the person wants to see */
    i->name = clean(e->tool_call.name);
    if (e->tool_call.headline) {
        add_shown(&i->head, e->tool_call.headline);
    } else {
        add_shown(&i->head, e->tool_call.name);
        if (e->tool_call.arguments) {
            base_buf_putc(&i->head, ' ');
            add_shown(&i->head, e->tool_call.arguments);
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
        .name = clean(e->approval_request.name),
        .headline = base_xstrdup(e->approval_request.headline),
        .detail = base_xstrdup(e->approval_request.detail),
        .power = clean(e->approval_request.power)};
    tui_item *i = running_tool(s);
    bool is_call = i && i->name && s->approval.name && !strcmp(i->name, s->approval.name);
    const char *text = tui_approval_runs(&s->approval) ? s->approval.detail
                       : is_call                       ? s->payload
                                                       : NULL; /* an undo has nothing to write */
    s->approval.text = base_xstrdup(text);
    if (!i) { /* else the call's own line stays: what the question adds is of the question only */
        i = add_item(s, TUI_ITEM_TOOL);
        add_shown(&i->head, s->approval.headline);
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
    tui_item *i = running_tool(s);
    if (!i) return;
    if (!i->name) /* no call's, and so without a result: an undo, a rewind */
        i->status =
            base_xstrdup(e->approval.decision && !strcmp(e->approval.decision, "no") ? "denied" : "ok");
    if (e->approval.reason && *e->approval.reason) {
        if (i->body.len) base_buf_putc(&i->body, '\n');
        base_buf_puts(&i->body, "you: ");
        add_clean(&i->body, e->approval.reason, true);
    }
    i->version++;
}

static void on_tool_output(tui_state *s, const agent_event *e, int64_t now)
{
    tui_item *i = running_tool(s);
    if (!i) return;
    add_clean(&i->body, e->tool_output.text, true);
    i->version++;
}

static void on_tool_result(tui_state *s, const agent_event *e, int64_t now)
{
    clear_approval(&s->approval);
    tui_item *i = running_tool(s);
    if (!i) {
        i = add_item(s, TUI_ITEM_TOOL);
        i->name = clean(e->tool_result.name);
        add_clean(&i->head, e->tool_result.name, false);
    }
    i->status = clean(e->tool_result.status ? e->tool_result.status : "ok");
    i->summary = clean(e->tool_result.summary);
    if (e->tool_result.text) {
        base_buf_clear(&i->body);
        add_clean(&i->body, e->tool_result.text, true);
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
    add_clean(&i->body, e->answer.text, true);
    i->streaming = i->unsettled = false;
    i->version++;
    if (!i->body.len) remove_item(s, i);
}

/* "budget, stale": each word once, while there is room for a line. */
static void add_word(base_buf *list, const char *word)
{
    base_str rest = {list->data ? list->data : "", list->len};
    size_t n = strlen(word);
    if (n == 0 || list->len > 60 || memmem(rest.ptr, rest.len, word, n)) return;
    if (list->len) base_buf_puts(list, ", ");
    add_clean(list, word, false);
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
    tui_item *last = last_item(s);
    size_t streaming = last && last->streaming ? 1 : 0;
    for (size_t k = s->n_items - streaming; k > 0; k--) {
        tui_item *i = s->items + k - 1;
        if (i->kind == TUI_ITEM_CACHE && i->turn == s->turn) return i;
        if (i->kind == TUI_ITEM_USER || i->kind == TUI_ITEM_TOOL || i->kind == TUI_ITEM_ANSWER) break;
    }
    tui_item *i = add_item(s, TUI_ITEM_CACHE);
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

static void on_plan(tui_state *s, const agent_event *e, int64_t now)
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

static void on_visits(tui_state *s, const agent_event *e, int64_t now)
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
        add_clean(&i->diff, r->name, false);
        base_buf_printf(&i->diff, " %.0f%%", 100 * r->share);
        before = ", ";
    }
    if (*before == ',') base_buf_putc(&i->diff, ')');
    i->version++;
}

static void on_scores(tui_state *s, const agent_event *e, int64_t now)
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

static void on_sections(tui_state *s, const agent_event *e, int64_t now)
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

static void on_request(tui_state *s, const agent_event *e, int64_t now)
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
    char *why = clean(e->request.why);
    snprintf(a->why, sizeof a->why, "%s", why);
    free(why);
}

static void on_ledger(tui_state *s, const agent_event *e, int64_t now)
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
        .why = clean(e->ledger.why)};
    if (e->ledger.budget >= 0) s->budget = (uint32_t)l->budget;
    if (e->ledger.ctx > 0) s->n_ctx = (uint32_t)e->ledger.ctx;
    if (e->ledger.decode_tps > 0) s->decode_tps = e->ledger.decode_tps;
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
    while (s->n_items > 0 && s->items[s->n_items - 1].turn >= e->rewind.turn) drop_last_item(s);
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

static void put_shown(base_buf *out, const char *text)
{
    base_buf_putc(out, '"');
    if (text) base_show(out, text, strlen(text), BASE_SHOW_UTF8);
    base_buf_putc(out, '"');
}

/* Sides of two vocabularies, or one side: how well the answers' text was expected. */
static void put_what_if_bytes(base_buf *out, const agent_event *e)
{
    const agent_side_list *sides = &e->what_if_turn.sides;
    base_buf_printf(
        out, "what if: the answers' %lld bytes are expected with", (long long)e->what_if_turn.bytes);
    for (size_t i = sides->n; i-- > 0;)
        base_buf_printf(
            out, i + 1 == sides->n ? " %.4f nats a byte" : " instead of %.4f", sides->rows[i].nll);
    if (e->what_if_turn.check) base_buf_printf(out, "; %s", e->what_if_turn.check);
}

static void on_what_if_turn(tui_state *s, const agent_event *e, int64_t now)
{
    base_buf text = {0};
    if (e->what_if_turn.bytes) {
        put_what_if_bytes(&text, e);
        tui_state_note(s, TUI_ITEM_NOTICE, text.data);
        base_buf_free(&text);
        return;
    }
    base_buf_printf(
        &text, "what if: KL %.4f nats a token, at most %.3f", e->what_if_turn.kl, e->what_if_turn.most);
    if (e->what_if_turn.differ > 0) {
        base_buf_printf(&text, "; %lld of %lld tokens would have been another one, first ",
            (long long)e->what_if_turn.differ, (long long)e->what_if_turn.tokens);
        put_shown(&text, e->what_if_turn.instead);
        base_buf_puts(&text, " for ");
        put_shown(&text, e->what_if_turn.was);
        base_buf_printf(&text, " by %.3f nats", e->what_if_turn.nats);
    } else {
        base_buf_printf(
            &text, "; none of %lld tokens would have been another one", (long long)e->what_if_turn.tokens);
    }
    if (e->what_if_turn.check) base_buf_printf(&text, "; %s", e->what_if_turn.check);
    tui_state_note(s, TUI_ITEM_NOTICE, text.data);
    base_buf_free(&text);
}

static void on_what_if_answer(tui_state *s, const agent_event *e, int64_t now)
{
    base_buf text = {0};
    if (e->what_if_answer.diff)
        base_buf_printf(&text, "what if: would have answered otherwise\n%s", e->what_if_answer.diff);
    else if (*e->what_if_answer.was || *e->what_if_answer.instead)
        base_buf_puts(&text, "what if: would have answered as recorded");
    if (e->what_if_answer.stopped)
        base_buf_printf(
            &text, "%sthe free side ends here: %s", text.len ? "\n" : "", e->what_if_answer.stopped);
    tui_state_note(s, TUI_ITEM_NOTICE, text.data ? text.data : "");
    base_buf_free(&text);
}

static void on_notice(tui_state *s, const agent_event *e, int64_t now)
{
    /*
     * A change of mode shows in the footer only: as notices, cycling through the modes would fill the
     * transcript.
     */
    agent_mode mode;
    if (e->notice.text && !strncmp(e->notice.text, "mode ", 5) && agent_mode_parse(e->notice.text + 5, &mode))
        set(&s->mode, e->notice.text + 5);
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
    tui_item *i = last_item(s);
    if (i && i->streaming) {
        i->streaming = false;
        i->version++;
    }
    tui_item *tool = running_tool(s);
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

typedef void apply_fn(tui_state *s, const agent_event *e, int64_t now);
static apply_fn *const apply[AGENT_N_EVENTS] = {
    [AGENT_EVENT_session] = on_session,
    [AGENT_EVENT_user] = on_user,
    [AGENT_EVENT_append] = on_append,
    [AGENT_EVENT_span] = on_span,
    [AGENT_EVENT_context] = on_context,
    [AGENT_EVENT_prefill] = on_prefill,
    [AGENT_EVENT_token] = on_token,
    [AGENT_EVENT_mask] = on_mask,
    [AGENT_EVENT_tool_call] = on_tool_call,
    [AGENT_EVENT_approval_request] = on_approval_request,
    [AGENT_EVENT_approval] = on_approval,
    [AGENT_EVENT_tool_output] = on_tool_output,
    [AGENT_EVENT_tool_result] = on_tool_result,
    [AGENT_EVENT_answer] = on_answer,
    [AGENT_EVENT_places] = on_places,
    [AGENT_EVENT_plan] = on_plan,
    [AGENT_EVENT_scores] = on_scores,
    [AGENT_EVENT_sections] = on_sections,
    [AGENT_EVENT_visits] = on_visits,
    [AGENT_EVENT_request] = on_request,
    [AGENT_EVENT_ledger] = on_ledger,
    [AGENT_EVENT_rewind] = on_rewind,
    [AGENT_EVENT_undo] = on_undo,
    [AGENT_EVENT_correction] = on_correction,
    [AGENT_EVENT_outcome] = on_outcome,
    [AGENT_EVENT_notice] = on_notice,
    [AGENT_EVENT_error] = on_error,
    [AGENT_EVENT_turn_end] = on_turn_end,
    [AGENT_EVENT_end] = on_end,
    [AGENT_EVENT_fork] = on_fork,
    [AGENT_EVENT_what_if_turn] = on_what_if_turn,
    [AGENT_EVENT_what_if_answer] = on_what_if_answer,
};

void tui_state_apply(tui_state *s, const agent_event *e, int64_t now_ms)
{
    if (e->type < AGENT_N_EVENTS && apply[e->type]) apply[e->type](s, e, now_ms);
}
