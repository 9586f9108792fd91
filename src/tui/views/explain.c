/*
 * What a row of the panel means, in words for somebody who has never seen a KV cache: one screen about the
 * whole panel (F1), and a few sentences about the row at the cursor of any view (?).
 */
#include <stdio.h>
#include <string.h>

#include "tui/views/view.h"

static const struct {
    const char *word, *sentence;
} reasons[] = {
    {"pin", "a person pinned it: it stays whatever it scores"},
    {"system", "the fixed prompt always stays"},
    {"sink", "the first rows always stay: attention rests on them"},
    {"window", "the newest rows always stay"},
    {"request", "the current request always stays"},
    {"signature", "a function's signature: of code, kept before other lines"},
    {"call", "a call site: of code, kept before other lines"},
    {"control", "control flow: of code, kept before other lines"},
    {"return", "a return: of code, kept before other lines"},
    {"assign", "an assignment: of code, kept before other lines"},
    {"defuse", "a definition that is used: of code, kept before other lines"},
    {"symbol", "names a symbol of the request"},
    {"neighbour", "next to something that was kept"},
    {"attention", "the request attends to it"},
    {"memory", "earlier signals attended to it"},
    {"centrality", "chosen among fresh text, by the layers below the pivot"},
    {"residual", "fills what was left of the budget"},
    {"sentence", "belongs to a sentence that was kept"},
    {"repair-anchor", "the newest message asked for it: promoted at the pause"},
    {"repair-burst", "beside a row that the newest message asked for"},
    {"budget", "over the budget, and it scored below the threshold"},
    {"pressure", "memory was short"},
    {"stale", "an edit replaced this version of the file"},
    {"failed", "an attempt that did not work"},
    {"manual", "a person decided it"},
    {"thought", "a thought of an answer that is there: the model's template leaves it out from then on"},
};

const char *tui_reason_sentence(const char *word)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!strcmp(reasons[i].word, word)) return reasons[i].sentence;
    return "";
}

/* --- the panel on one screen ---------------------------------------------------------------------------- */

static void put_line(tui_flow *f, const char *head, tui_style style, const char *words)
{
    f->started = false;
    tui_flow_puts(f, TUI_STRONG, head);
    tui_flow_puts(f, style, words);
    tui_flow_line(f);
}

void tui_explain_panel(tui_ui *u, tui_text *t, int width)
{
    const struct {
        tui_look look;
        const char *name, *about;
    } marks[] = {
        {TUI_LOOK_PROTECTED, "protected", "stays by a rule: prompt, request, code's outline"},
        {TUI_LOOK_KEPT, "kept", "the model sees it"},
        {TUI_LOOK_PARTLY, "partly", "some of it, by some of the model's heads"},
        {TUI_LOOK_HOST, tui_state_evicted(&u->state), "set aside (evicted); comes back when asked for"},
        {TUI_LOOK_PROMOTED, "promoted", "was set aside, and came back this turn"},
        {TUI_LOOK_BARRED, "barred", "set aside by you; only you bring it back (r)"},
        {TUI_LOOK_DEFERRED, "deferred", "read by the lower layers only, until a request asks"},
    };
    const tui_rows *r = tui_ui_rows(u);
    const bool is_deferred = r->n && tui_rows_count(r, 0, (uint32_t)r->n).deferred;
    static const char *const ledger[] = {
        "  new: read for the first time; reused: known, costs nothing",
        "  written: the answer; evicted: set aside; promoted: came back",
        "  must stay: never set aside; prefill: time to read what is new",
        "  why: what made some leave or come back (budget: no more room)",
    };
    tui_flow f = {.text = t, .width = width, .rest = "    "};
    if (u->state.is_elsewhere) {
        put_line(&f, "", TUI_PLAIN, "The model runs elsewhere: each request sends it the session's tokens.");
        put_line(&f, "", TUI_PLAIN, "The budget is how many tokens a request may have.");
    } else {
        put_line(&f, "", TUI_PLAIN, "The model reads each token of the session into a row of its memory.");
        put_line(&f, "", TUI_PLAIN, "The budget is how many rows it may see at a time.");
    }
    put_line(&f, "strip", TUI_PLAIN, "   all tokens of the session, the oldest first, several a cell");
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char name[32];
        if (marks[i].look == TUI_LOOK_DEFERRED && !is_deferred) continue; /* few sessions have any */
        if (marks[i].look == TUI_LOOK_PARTLY && u->state.is_elsewhere) continue;
        snprintf(name, sizeof name, " %-11s", marks[i].name);
        f.started = false;
        f.rest = "                ";
        tui_flow_puts(&f, TUI_PLAIN, "  ");
        tui_flow_puts(&f, tui_look_style(marks[i].look), u->glyphs->look[marks[i].look]);
        tui_flow_puts(&f, TUI_STYLE(TUI_TOOL, 0), name);
        tui_flow_puts(&f, TUI_PLAIN, marks[i].about);
        tui_flow_line(&f);
    }
    f.rest = "    ";
    if (u->state.is_elsewhere)
        put_line(&f, "cache", TUI_PLAIN,
            "   below it: what of that the newest request found in the engine's cache and what was computed, "
            "or where the engine keeps it");
    put_line(&f, "ledger", TUI_PLAIN, "  what a turn cost, in tokens");
    for (size_t i = 0; i < sizeof ledger / sizeof *ledger; i++) put_line(&f, "", TUI_PLAIN, ledger[i]);
    put_line(&f, "reason", TUI_PLAIN, "  the word behind \"% kept\": the rule that decided");
    f.started = false;
    tui_flow_puts(&f, TUI_STRONG, "?");
    tui_flow_puts(&f, TUI_PLAIN, " the row at the cursor   ");
    tui_flow_puts(&f, TUI_STRONG, "F1");
    tui_flow_puts(&f, TUI_PLAIN, " all keys   ");
    tui_flow_puts(&f, TUI_STRONG, "/tour");
    tui_flow_puts(&f, TUI_PLAIN, " step by step");
    tui_flow_end(&f);
}

/* --- the row at the cursor ------------------------------------------------------------------------------ */

const char *tui_origin_sentence(const char *word)
{
    static const struct {
        const char *word, *about;
    } origins[] = {{"system", "the fixed prompt: who the model is and which tools it has"},
        {"scaffold", "a mark between messages"}, {"instructions", "the tree's AGENTS.md"},
        {"user", "your request"}, {"context", "an excerpt that kvist put in front of the request"},
        {"tool", "what a tool returned"}, {"answer", "what the model wrote"},
        {"call", "a tool call that the model wrote"}};
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        if (!strcmp(origins[i].word, word)) return origins[i].about;
    return "";
}

/* What counts for a person who asks about these tokens, the rarest first. */
static tui_look kind_of(const tui_row *row, const tui_count *c)
{
    if (row->flags & TUI_ROW_BARRED) return TUI_LOOK_BARRED;
    if (c->share < 0.005 && !row->deferred) return TUI_LOOK_HOST;
    if (row->deferred) return TUI_LOOK_DEFERRED;
    if (c->promoted > 0) return TUI_LOOK_PROMOTED;
    if (c->share < 0.995) return TUI_LOOK_PARTLY;
    return c->protected_ * 2 >= c->n ? TUI_LOOK_PROTECTED : TUI_LOOK_KEPT;
}

/* A kind of row without words does not compile: there is no default. */
static void put_kind(const tui_row *row, const tui_count *c, base_buf *out)
{
    const double percent = c->share * 100;
    switch (kind_of(row, c)) {
    case TUI_LOOK_BARRED:
        base_buf_puts(out, "The model does not see it: a person set it aside. Only r brings it back.");
        break;
    case TUI_LOOK_HOST:
        base_buf_printf(out,
            "The model does not see it now: it was set aside in turn %u. It is kept in memory, and comes "
            "back when a request asks for it; r brings it back at once.",
            row->changed);
        break;
    case TUI_LOOK_DEFERRED:
        base_buf_puts(out,
            "Only the model's lower layers have read it (deferred): the question did not point at it, so the "
            "work of the others was spared. When a request asks for it, it is read by all of them.");
        break;
    case TUI_LOOK_PROMOTED:
        base_buf_printf(out,
            "It had been set aside, and came back in turn %u (promoted): the model sees %.0f%% of it now. x "
            "sets it aside again, p keeps it.",
            row->promoted ? row->promoted : row->changed, percent);
        break;
    case TUI_LOOK_PARTLY:
        base_buf_printf(out,
            "The model sees %.0f%% of it: each of its heads has a memory of its own and keeps what it needs. "
            "The rest is kept aside; r brings all of it back, x sets all of it aside.",
            percent);
        break;
    case TUI_LOOK_PROTECTED:
        base_buf_puts(out, "The model sees all of it, and a rule keeps it in view.");
        break;
    case TUI_LOOK_KEPT:
        base_buf_puts(out, "The model sees all of it. p keeps it whatever comes, x sets it aside.");
        break;
    case TUI_LOOK_NONE:
    case TUI_N_LOOKS: break; /* no row looks like that */
    }
}

static void put_state(const tui_rows *r, const tui_row *row, const tui_count *c, base_buf *out)
{
    const char *word = tui_rows_word(r, row);
    if (row->flags & TUI_ROW_FIXED && !*word) word = "system";
    if (row->flags & TUI_ROW_REQUEST && row->born == r->turn) word = "request";
    const char *sentence = tui_reason_sentence(word);
    put_kind(row, c, out);
    base_buf_puts(out, "\n\n");
    if (*word) {
        base_buf_printf(out, "Reason: %s%s%s%s", word, *sentence ? " (" : "", sentence, *sentence ? ")" : "");
        if (row->changed) base_buf_printf(out, ", decided in turn %u", row->changed);
        base_buf_puts(out, ".");
    } else {
        base_buf_puts(out, "No decision has touched it: there was room for everything so far.");
    }
    base_buf_puts(out, " w shows all that happened to it.");
}

void tui_explain_tokens(tui_ui *u, uint32_t from, uint32_t to, base_buf *out)
{
    const tui_rows *r = tui_ui_rows(u);
    if (from == to) {
        base_buf_puts(out, "The model has read nothing yet. Ask something first.");
        return;
    }
    const tui_row *row = r->row + from;
    const tui_source *s = r->sources + row->source;
    const tui_count c = tui_rows_count(r, from, to);
    const char *origin = tui_origin_sentence(s->origin);
    if (to - from > 1)
        base_buf_printf(out, "At the cursor: tokens %u to %u", from, to - 1);
    else
        base_buf_printf(out, "At the cursor: token %u", from);
    base_buf_printf(out, ", %s%s%s%s, of turn %u.\n\n", *origin ? origin : s->origin, *s->label ? " (" : "",
        s->label, *s->label ? ")" : "", s->turn);
    put_state(r, row, &c, out);
}
