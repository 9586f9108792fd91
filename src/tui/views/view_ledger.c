/*
 * What each turn cost and did to the cache: new, reused, evicted, promoted, protected, times, and
 * why.
 */
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "tui/views/view.h"

/* A sentence, in as many lines as it needs; returns them. */
static int put_sentence(tui_area a, int y, const char *name, tui_style style, const char *why)
{
    tui_text t = {0};
    tui_flow f = {.text = &t, .width = a.width - 2, .rest = *name ? "     " : ""};
    tui_flow_puts(&f, TUI_STYLE(TUI_WARN, 0), name);
    tui_flow_puts(&f, style, why);
    tui_flow_end(&f);
    const int n = (int)t.n_lines;
    for (int i = 0; i < n && y + i < a.height; i++) tui_text_draw(&t, (size_t)i, a, 2, y + i);
    tui_text_free(&t);
    return n;
}

/* What an engine across HTTP was sent, and what of that it had. */
static int put_asked(const tui_asked *asked, tui_area a, int y)
{
    char x1[32], x2[32], x3[32];
    const int from = y;
    const bool is_more = asked->found > asked->expected; /* it had them before kvist sent any */
    if (!asked->n) return 0;
    tui_printf(a, 2, y++, TUI_PLAIN, "sent %s in %u request%s", base_thousands(asked->sent, x1), asked->n,
        asked->n == 1 ? "" : "s");
    if (asked->n_told) {
        char found[80], computed[48];
        int at = snprintf(found, sizeof found,
            is_more ? "found %s, %s more than expected" : "found %s of %s expected",
            base_thousands(asked->found, x1),
            base_thousands(is_more ? asked->found - asked->expected : asked->expected, x2));
        at += snprintf(computed, sizeof computed, "  computed %s", base_thousands(asked->computed, x3));
        const bool fits = at + 3 <= a.width;
        tui_printf(a, 2, y++, TUI_PLAIN, "%s%s", found, fits ? computed : "");
        if (!fits) tui_printf(a, 2, y++, TUI_PLAIN, "%s", computed + 2);
    } else
        tui_put(a, 2, y++, TUI_FAINT, "what its cache held is not told");
    if (asked->tells_blocks) {
        tui_printf(a, 2, y++, TUI_PLAIN, "there now: GPU %s  host %s  disk %s",
            base_thousands(asked->gpu, x1), base_thousands(asked->host, x2), base_thousands(asked->disk, x3));
        tui_printf(a, 2, y++, TUI_PLAIN, "gone %s  not told %s", base_thousands(asked->gone, x1),
            base_thousands(asked->unknown, x2));
    }
    if (*asked->why) y += put_sentence(a, y, "", TUI_STYLE(TUI_WARN, 0), asked->why);
    return y - from;
}

/* Where nothing was set aside it is 100% of everything. */
static bool says_structure(const tui_ledger *l)
{
    return l->ceiling > 0 && l->chance < .995;
}

int tui_ledger_lines(tui_ui *u, tui_area a, int y, uint32_t turn)
{
    const tui_ledger *l = tui_state_ledger(&u->state, turn);
    char x1[32], x2[32], x3[32];
    int from = y;
    tui_printf(a, 0, y++, TUI_STRONG, "ledger of turn %u", turn);
    if (!l) {
        tui_put(a, 2, y++, TUI_FAINT,
            turn == 0                                   ? "no turn yet"
            : u->state.in_turn && turn == u->state.turn ? "written when the turn ends"
                                                        : "none");
        return y - from;
    }
    tui_printf(a, 2, y++, TUI_PLAIN, "new %s  reused %s  written %s", base_thousands(l->new, x1),
        base_thousands(l->reused, x2), base_thousands(l->generated, x3));
    y += put_asked(&l->asked, a, y);
    int x = 2;
    x += tui_printf(a, x, y, tui_look_style(TUI_LOOK_HOST), "evicted %s  ", base_thousands(l->evicted, x1));
    x += tui_printf(
        a, x, y, tui_look_style(TUI_LOOK_PROMOTED), "promoted %s  ", base_thousands(l->promoted, x1));
    tui_printf(
        a, x, y++, tui_look_style(TUI_LOOK_PROTECTED), "must stay %s", base_thousands(l->protected_, x1));
    if (l->prefill_s > 0 || l->decode_tps > 0)
        tui_printf(a, 2, y++, TUI_PLAIN, "prefill %.1f s  %.1f t/s", l->prefill_s, l->decode_tps);
    if (l->active_bytes > 0)
        tui_printf(a, 2, y++, TUI_PLAIN, "active %s  host %s", tui_size(l->active_bytes, x1),
            tui_size(l->host_bytes, x2));
    if (says_structure(l)) {
        x = 2 + tui_printf(a, 2, y, TUI_PLAIN, "structure %.0f%%  ", l->structure * 100);
        tui_printf(a, x, y++, TUI_FAINT, "chance %.0f%%  at most %.0f%%", l->chance * 100, l->ceiling * 100);
    }
    if (l->read > 0)
        tui_printf(a, 2, y++, TUI_PLAIN, "a step read %.0f%% of the rows, %s not; %.0f%% as before",
            l->read * 100, base_thousands(l->skipped, x1), l->kept * 100);
    if (l->deferred > 0 || l->computed > 0) {
        x = 2 + tui_printf(a, 2, y, tui_look_style(TUI_LOOK_DEFERRED), "deferred %s  ",
                    base_thousands(l->deferred, x1));
        x += tui_printf(a, x, y, TUI_PLAIN, "%.0f%% of the prefill spared", l->spared * 100);
        if (l->computed > 0)
            tui_printf(a, x, y, TUI_PLAIN, ", %s computed since", base_thousands(l->computed, x1));
        y++;
    }
    if (l->why && *l->why) y += put_sentence(a, y, "why: ", TUI_PLAIN, l->why);
    return y - from;
}

static void draw_ledger(tui_ui *u, tui_area a)
{
    static const struct {
        const char *name;
        int width;
    } columns[] = {{"turn", 5}, {"new", 8}, {"reused", 9}, {"evicted", 9}, {"promoted", 9}, {"active", 8},
        {"prefill", 8}, {"t/s", 6}};
    const tui_state *s = &u->state;
    int x = 0;
    for (size_t i = 0; i < sizeof columns / sizeof *columns && x + columns[i].width <= a.width; i++) {
        tui_printf(a, x, 0, TUI_FAINT, "%*s", columns[i].width, columns[i].name);
        x += columns[i].width;
    }
    const uint32_t turn = tui_ui_turn(u);
    /* What the turn has to say, counted without a line to write on. */
    const int lines = tui_ledger_lines(u, tui_area_within(a, 0, 0, a.width, 0), 0, turn) + 1;
    const int details = a.height <= 14 ? 0 : lines > 8 ? lines : 8, shown = a.height - 1 - details;
    u->page = shown > 1 ? shown - 1 : 1;
    size_t at = 0;
    for (size_t i = 0; i < s->n_ledgers; i++)
        if (s->ledgers[i].turn <= turn) at = i;
    size_t first = shown > 0 && at >= (size_t)shown ? at - (size_t)shown + 1 : 0;
    int y = 1;
    for (size_t i = first; i < s->n_ledgers && y <= shown; i++, y++) {
        const tui_ledger *l = s->ledgers + i;
        char cell[8][32];
        snprintf(cell[0], 32, "t%u", l->turn);
        base_thousands(l->new, cell[1]);
        base_thousands(l->reused, cell[2]);
        base_thousands(l->evicted, cell[3]);
        base_thousands(l->promoted, cell[4]);
        base_thousands(l->active, cell[5]);
        snprintf(cell[6], 32, "%.1f s", l->prefill_s);
        snprintf(cell[7], 32, "%.1f", l->decode_tps);
        x = 0;
        for (size_t k = 0; k < sizeof columns / sizeof *columns && x + columns[k].width <= a.width; k++) {
            tui_printf(a, x, y, TUI_PLAIN, "%*s", columns[k].width, cell[k]);
            x += columns[k].width;
        }
        if (l->turn == turn)
            tui_restyle(a, y, a.width, u->focus == TUI_FOCUS_INSPECTOR ? TUI_REVERSE : TUI_BOLD);
    }
    if (s->n_ledgers == 0) tui_put(a, 0, 1, TUI_FAINT, "no turn has ended yet");
    if (details && s->n_ledgers) tui_ledger_lines(u, a, a.height - details, turn);
}

static void ledger_move(tui_ui *u, int64_t units)
{
    const tui_state *s = &u->state;
    int64_t turn = (int64_t)tui_ui_turn(u) + units;
    if (turn < 1) turn = 1;
    if (turn >= s->turn) turn = 0; /* follows the session */
    u->shown_turn = (uint32_t)turn;
}

static void explain_ledger(tui_ui *u, base_buf *out)
{
    const uint32_t turn = tui_ui_turn(u);
    const tui_ledger *l = tui_state_ledger(&u->state, turn);
    char x1[32], x2[32], x3[32];
    if (!l) {
        base_buf_puts(out,
            turn ? "This turn is not over: its ledger is written when it ends." : "No turn has ended yet.");
        return;
    }
    base_buf_printf(out,
        "In turn %u the model had to read %s token%s (new), which took %.1f s. %s were known from before "
        "and cost nothing (reused). It wrote %s",
        turn, base_thousands(l->new, x1), l->new == 1 ? "" : "s", l->prefill_s, base_thousands(l->reused, x2),
        base_thousands(l->generated, x3));
    if (l->decode_tps > 0) base_buf_printf(out, ", %.1f a second", l->decode_tps);
    base_buf_puts(out, ".\n\n");
    if (!l->evicted && !l->promoted) {
        base_buf_puts(out, "Nothing left the model's memory, and nothing had to come back.");
    } else {
        base_buf_printf(out, "%s set aside (evicted), %s brought back (promoted)",
            base_thousands(l->evicted, x1), base_thousands(l->promoted, x2));
        base_buf_printf(out, l->why && *l->why ? ": %s." : ".", l->why ? l->why : "");
    }
    if (l->budget > 0)
        base_buf_printf(out, " At its end %s of at most %s %s were in use.", base_thousands(l->active, x1),
            base_thousands(l->budget, x2), tui_state_unit(&u->state));
    if (says_structure(l))
        base_buf_printf(out,
            "\n\n"
            "Of the lines that hold the code together (signatures, calls, returns) it sees %.0f%% "
            "(structure); as many rows drawn by chance would have %.0f%%, well chosen ones at most %.0f%%.",
            l->structure * 100, l->chance * 100, l->ceiling * 100);
}

const tui_view tui_view_ledger = {.name = "ledger",
    .about = "what each turn cost",
    .draw = draw_ledger,
    .unit = tui_strip_unit,
    .move = ledger_move,
    .enter = TUI_VIEW_strip,
    .reads =
        "A line is a turn: one request with all that was done for it. h and l step through them, and the "
        "whole panel shows how things stood then.",
    .explain = explain_ledger};
