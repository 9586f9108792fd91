/*
 * Why the rows under the cursor are where they are: their state, the rule behind it in words, and everything
 * that happened to the first of them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/views/view.h"

typedef struct listing {
    tui_area area;
    int y;
    uint32_t n_lanes;
} listing;

static void list_touch(void *user, uint32_t turn, tui_change change, const char *reason, uint32_t lanes)
{
    static const char *const names[] = {"kept", "evicted", "promoted", "protected", "barred", "deferred"};
    listing *l = user;
    const char *what = change == TUI_KEPT && !*reason ? "arrived" : names[change];
    char line[120];
    int at = snprintf(line, sizeof line, "t%-4u %-10s %.40s", turn, what, reason);
    if (lanes && lanes < l->n_lanes)
        snprintf(line + at, sizeof line - (size_t)at, " in %u of %u lanes", lanes, l->n_lanes);
    tui_put(l->area, 0, l->y++, TUI_PLAIN, line);
}

static int put_wrapped(tui_area a, int y, tui_style style, const char *s)
{
    tui_text t = {0};
    tui_flow f = {.text = &t, .width = a.width, .rest = "  "};
    tui_flow_puts(&f, style, s);
    tui_flow_end(&f);
    for (size_t i = 0; i < t.n_lines; i++) tui_text_draw(&t, i, a, 0, y++);
    tui_text_free(&t);
    return y;
}

/* Which tokens, what they are of, and how much of them the model sees. */
static int put_place(tui_ui *u, tui_area a, int y, const tui_rows *r, uint32_t from, uint32_t to)
{
    const tui_source *s = r->sources + r->row[from].source;
    const tui_count c = tui_rows_count(r, from, to);
    char line[240], lanes[64];
    uint32_t fewest, most;
    snprintf(line, sizeof line, to - from > 1 ? "tokens %u to %u" : "token %u", from, to - 1);
    tui_put(a, 0, y++, TUI_STRONG, line);
    snprintf(line, sizeof line, "from %s, turn %u %.150s", s->origin, s->turn, s->label);
    tui_put_short(a, 0, y++, a.width, TUI_PLAIN, u->glyphs->ellipsis, line);
    tui_rows_lanes(r, from, to, &fewest, &most);
    tui_lanes_in_words(fewest, most, r->n_lanes, lanes);
    tui_printf(a, 0, y++, TUI_PLAIN, "the model sees %.0f%% of it, %s", c.share * 100, lanes);
    return y;
}

/* Where answers read by sentence (decode=): the one that it lies in. */
static int put_section(tui_ui *u, tui_area a, int y, const tui_rows *r, uint32_t at)
{
    char line[160];
    tui_section read;
    if (!tui_state_section(&u->state, at, tui_ui_turn(u), &read)) return y;
    if (read.to > read.from)
        snprintf(line, sizeof line,
            "sentence: tokens %u to %u, read by the last step of turn %u in %u of %u lanes", read.from,
            read.to - 1, read.turn, read.lanes, r->n_lanes);
    else
        snprintf(line, sizeof line, "sentence: none with it was read by the last step of turn %u", read.turn);
    return put_wrapped(a, y, TUI_PLAIN, line);
}

/* The rule behind it: the request and the fixed prompt stay whatever was decided of them. */
static const char *rule_of(const tui_rows *r, const tui_row *row)
{
    const char *word = tui_rows_word(r, row);
    if (row->flags & TUI_ROW_REQUEST && row->born == r->turn) word = "request";
    return row->flags & TUI_ROW_FIXED && !*word ? "system" : word;
}

static int put_rule(tui_area a, int y, const tui_rows *r, const tui_row *row)
{
    const char *word = rule_of(r, row), *sentence = tui_reason_sentence(word);
    base_buf rule = {0};
    if (row->deferred && !strcmp(word, "centrality"))
        sentence = "not chosen among fresh text, by the layers below the pivot";
    base_buf_printf(
        &rule, "%s: %s", *word ? word : "kept", *sentence ? sentence : "no decision has touched it");
    y = put_wrapped(a, y, TUI_STRONG, rule.data);
    base_buf_free(&rule);
    if (row->flags & TUI_ROW_BARRED)
        tui_put(a, 0, y++, TUI_STYLE(TUI_ERR, 0), "barred: only a person brings it back (r)");
    return y;
}

static int put_scores(tui_area a, int y, const tui_score *score)
{
    const struct {
        const char *name;
        double value;
    } parts[] = {{"attention", score->attention}, {"memory", score->memory}, {"rank", score->rank},
        {"threshold", score->threshold}};
    base_buf b = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!isnan(parts[i].value))
            base_buf_printf(&b, "%s%s %.3g", b.len ? ", " : "", parts[i].name, parts[i].value);
    y = put_wrapped(a, y, TUI_PLAIN, b.data);
    base_buf_free(&b);
    return y;
}

static void draw_why(tui_ui *u, tui_area a)
{
    const tui_rows *r = tui_ui_rows(u);
    const uint32_t from = u->unit_from, to = u->unit_to, turn = tui_ui_turn(u);
    if (from == to) {
        tui_put(a, 0, 0, TUI_FAINT, "nothing was read yet");
        return;
    }
    const tui_row *row = r->row + from;
    int y = put_place(u, a, 0, r, from, to);
    y = put_section(u, a, y, r, from);
    if (row->deferred)
        tui_printf(a, 0, y++, TUI_PLAIN,
            "deferred: not computed above the pivot, lanes %u to %u; a repair computes it",
            r->n_lanes - row->deferred, r->n_lanes - 1);
    y = put_rule(a, y + 1, r, row);
    if (u->state.is_elsewhere)
        tui_put(a, 0, y++, TUI_FAINT, "lanes and scores are not visible on this engine");
    const tui_score *score = tui_state_score(&u->state, from, turn);
    if (score) y = put_scores(a, y, score);
    const tui_told_sum asked = tui_told_count(&u->state.told, turn, from, to);
    if (asked.sent)
        tui_printf(a, 0, y++, TUI_PLAIN,
            asked.found || asked.computed ? "turn %u: %u sent, %u found, %u computed" : "turn %u: %u sent",
            turn, asked.sent, asked.found, asked.computed);
    const tui_ledger *ledger = tui_state_ledger(&u->state, row->changed);
    if (ledger && ledger->why && row->change == TUI_EVICTED_ROW)
        tui_printf(a, 0, y++, TUI_FAINT, "turn %u: %s", row->changed, ledger->why);
    tui_put(a, 0, y + 1, TUI_STRONG, "what happened to it");
    listing l = {.area = a, .y = y + 2, .n_lanes = r->n_lanes};
    tui_journal_touches(r->journal, from, turn, list_touch, &l);
}

const tui_view tui_view_why = {.name = "why",
    .about = "the rule behind what is at the cursor",
    .draw = draw_why,
    .unit = tui_strip_unit,
    .move = tui_strip_move,
    .enter = TUI_VIEW_blame,
    .reads = "Attention and memory say how much the request, and earlier ones, looked at these tokens. The "
             "rank is the share of tokens that mattered more; what lies above the threshold was set aside. "
             "Below stands all that happened to the first of them."};
