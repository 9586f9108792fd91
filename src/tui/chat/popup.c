/*
 * What lies over the chat for a moment: help, the rewind picker, history search, a diff or a text in full, a
 * page of the tour. One at a time; Esc or q closes. The completion list above the input is painted here too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tui/actions.h"
#include "tui/chat/chat.h"
#include "tui/keymap.h"
#include "tui/terminal/markdown.h"
#include "tui/views/view.h"

enum { MAX_TARGETS = 200 };

/* --- painting ------------------------------------------------------------------------------------------- */

/* A framed box; the area inside. */
static tui_area frame(tui_ui *u, tui_area b, const char *title)
{
    const int width = b.width, height = b.height;
    tui_blank(b);
    tui_rule(b, 0, 0, width, TUI_FAINT, u->glyphs->horizontal);
    tui_rule(b, 0, height - 1, width, TUI_FAINT, u->glyphs->horizontal);
    for (int y = 1; y < height - 1; y++) {
        tui_put(b, 0, y, TUI_FAINT, u->glyphs->vertical);
        tui_put(b, width - 1, y, TUI_FAINT, u->glyphs->vertical);
    }
    tui_put(b, 2, 0, TUI_STRONG, " ");
    int x = 2 + tui_put(b, 3, 0, TUI_STRONG, title);
    tui_put(b, x + 1, 0, TUI_STRONG, " ");
    return tui_area_within(b, 2, 1, width - 4, height - 2);
}

/* One in the middle. */
static tui_area box(tui_ui *u, tui_area a, int width, int height, const char *title)
{
    if (width > a.width) width = a.width;
    if (height > a.height) height = a.height;
    return frame(u, tui_area_within(a, (a.width - width) / 2, (a.height - height) / 2, width, height), title);
}

/* True: the text's last line is among what is shown. */
static bool draw_text(tui_ui *u, tui_area a, const char *title, tui_text *t)
{
    int height = (int)t->n_lines + 2;
    tui_area inside = box(u, a, a.width, height > a.height ? a.height : height, title);
    int most = (int)t->n_lines - inside.height;
    if (u->popup_scroll > most) u->popup_scroll = most;
    if (u->popup_scroll < 0) u->popup_scroll = 0;
    for (int y = 0; y < inside.height; y++) tui_text_draw(t, (size_t)(y + u->popup_scroll), inside, 0, y);
    u->popup_page = inside.height;
    const int below = most - u->popup_scroll;
    /* On the frame's last line, which is no part of the area inside. */
    tui_area edge = tui_area_within(a, inside.x - a.x, inside.y - a.y, inside.width, inside.height + 1);
    static const char closes[] = " Esc closes ";
    int x = 0;
    if (below > 0 && u->popup == TUI_POPUP_DIFF)
        x = tui_printf(edge, 0, inside.height, TUI_STYLE(TUI_WARN, TUI_BOLD),
            " %d more below, j/k or Space scroll ", below);
    else if (below > 0)
        x = tui_put(edge, 0, inside.height, TUI_FAINT, " more below, j/k or Space scroll ");
    /* Letters scroll here and reach no request: whoever types one has to see why. */
    if (inside.width - x >= (int)sizeof closes)
        tui_put(edge, inside.width - (int)sizeof closes + 1, inside.height, TUI_FAINT, closes);
    return below <= 0 && inside.height > 0 && inside.width > 0;
}

static void list_views(tui_flow *f)
{
    for (int i = 0; i < TUI_N_VIEWS; i++) {
        char line[32];
        snprintf(line, sizeof line, "    %d %-10s", i + 1, tui_views[i]->name);
        f->started = false;
        tui_flow_puts(f, TUI_STYLE(TUI_TOOL, 0), line);
        tui_flow_puts(f, TUI_PLAIN, tui_views[i]->about);
        tui_flow_line(f);
    }
}

static void list_keys(tui_flow *f, tui_scope scope)
{
    tui_flow_puts(f, TUI_STRONG, tui_scope_names[scope]);
    tui_flow_line(f);
    for (const tui_binding *b = tui_keymap; b->run; b++) {
        if (b->scope != scope || !b->about) continue;
        char line[32];
        snprintf(line, sizeof line, "  %-14s", b->label);
        f->started = false;
        tui_flow_puts(f, TUI_STYLE(TUI_TOOL, 0), line);
        tui_flow_puts(f, TUI_PLAIN, b->about);
        tui_flow_line(f);
        if (b->run == tui_do_view) list_views(f);
    }
    tui_flow_line(f);
}

static void help_text(tui_ui *u, tui_text *t, int width)
{
    tui_flow f = {.text = t, .width = width, .rest = "                "};
    if (u->replay) { /* nothing is typed there, and nothing asks */
        list_keys(&f, TUI_SCOPE_REPLAY);
        list_keys(&f, TUI_SCOPE_INSPECTOR);
        tui_flow_end(&f);
        return;
    }
    for (tui_scope scope = 0; scope < TUI_N_SCOPES; scope++)
        if (scope != TUI_SCOPE_REPLAY) list_keys(&f, scope);
    tui_flow_puts(&f, TUI_STRONG, "commands");
    tui_flow_line(&f);
    uint32_t n;
    const agent_command *commands = agent_commands(&n);
    for (uint32_t i = 0; i < n; i++) {
        char line[64];
        snprintf(line, sizeof line, "  /%s %s", commands[i].name,
            commands[i].arguments ? commands[i].arguments : "");
        f.started = false;
        tui_flow_puts(&f, TUI_STYLE(TUI_TOOL, 0), line);
        for (size_t k = strlen(line); k < 26; k++) tui_flow_puts(&f, TUI_PLAIN, " ");
        tui_flow_puts(&f, TUI_PLAIN, "  ");
        tui_flow_puts(&f, TUI_PLAIN, commands[i].about);
        tui_flow_line(&f);
    }
    for (const tui_own_command *o = tui_own_commands; o->name; o++) {
        if (tui_is_agent_command(o->name)) continue;
        char line[64];
        snprintf(line, sizeof line, "  /%-25s", o->name);
        f.started = false;
        tui_flow_puts(&f, TUI_STYLE(TUI_TOOL, 0), line);
        tui_flow_puts(&f, TUI_PLAIN, o->about);
        tui_flow_line(&f);
    }
    char *const *skills = tui_ui_skills(u);
    if (*skills) {
        tui_flow_line(&f);
        tui_flow_puts(&f, TUI_STRONG, "skills of this tree, and commands of yours");
        tui_flow_line(&f);
    }
    for (; *skills; skills += 2) {
        char line[96];
        snprintf(line, sizeof line, "  /%-25s", skills[0]);
        f.started = false;
        tui_flow_puts(&f, TUI_STYLE(TUI_TOOL, 0), line);
        tui_flow_puts(&f, TUI_PLAIN, " ");
        tui_flow_puts(&f, TUI_PLAIN, skills[1]);
        tui_flow_line(&f);
    }
    tui_flow_end(&f);
}

static void draw_rewind(tui_ui *u, tui_area a)
{
    size_t items[MAX_TARGETS], n = tui_rewind_targets(u, items, MAX_TARGETS);
    int height = (int)n + 3;
    tui_area inside = box(u, a, a.width, height < a.height ? height : a.height, "rewind to before");
    int shown = inside.height - 1, first = u->popup_at >= shown ? u->popup_at - shown + 1 : 0;
    for (int y = 0; y < shown && (size_t)(first + y) < n; y++) {
        const tui_item *i = u->state.items + items[first + y];
        char line[400];
        size_t length = strcspn(i->body.data ? i->body.data : "", "\n");
        snprintf(line, sizeof line, "t%-4u %.*s", i->turn, length < 300 ? (int)length : 300,
            i->body.data ? i->body.data : "");
        tui_put_short(inside, 0, y, inside.width, TUI_PLAIN, u->glyphs->ellipsis, line);
        if (first + y == u->popup_at) tui_restyle(inside, y, inside.width, TUI_REVERSE);
    }
    tui_put(inside, 0, inside.height - 1, TUI_FAINT,
        "j/k choose, Enter rewinds, Esc closes; asks if files go back too");
}

static void draw_history_search(tui_ui *u, tui_area a)
{
    tui_area inside = box(u, a, a.width, a.height < 12 ? a.height : 12, "history");
    const char *words = u->popup_text.data ? u->popup_text.data : "";
    int y = inside.height - 2;
    size_t at = u->lines.n;
    for (int i = 0; y >= 0; i++, y--) {
        at = tui_lines_find(&u->lines, words, at);
        if (at >= u->lines.n) break;
        base_buf clean = {0};
        base_utf8_sanitise(&clean, u->lines.line[at], strlen(u->lines.line[at]), false);
        tui_put_short(inside, 0, y, inside.width, TUI_PLAIN, u->glyphs->ellipsis, clean.data);
        base_buf_free(&clean);
        if (i == u->popup_at) tui_restyle(inside, y, inside.width, TUI_REVERSE);
        if (at == 0) break;
    }
    int x = tui_put(inside, 0, inside.height - 1, TUI_STYLE(TUI_USER, TUI_BOLD), "search: ");
    x += tui_put(inside, x, inside.height - 1, TUI_PLAIN, words);
    a.grid->cursor_x = inside.x + (x < inside.width ? x : inside.width - 1);
    a.grid->cursor_y = inside.y + inside.height - 1;
}

static void draw_candidates(tui_ui *u, tui_area a)
{
    const tui_complete *c = &u->complete;
    if (c->n == 0 || c->closed || a.height < 3) return;
    int n = (int)c->n < a.height - 1 ? (int)c->n : a.height - 1, y = a.height - n;
    for (int i = 0; i < n; i++, y++) {
        tui_area row = tui_area_within(a, 0, y, a.width, 1);
        tui_blank(row);
        base_buf clean = {0};
        base_buf_putc(&clean, c->prefix);
        base_utf8_sanitise(&clean, c->candidate[i].text, strlen(c->candidate[i].text), false);
        int x = 2 + tui_put_short(
                        row, 2, 0, row.width - 2, TUI_STYLE(TUI_TOOL, 0), u->glyphs->ellipsis, clean.data);
        if (c->candidate[i].about)
            tui_put_short(row, x < 16 ? 18 : x + 2, 0, row.width - 20, TUI_FAINT, u->glyphs->ellipsis,
                c->candidate[i].about);
        base_buf_free(&clean);
        if (i == (int)c->at) tui_restyle(row, 0, row.width, TUI_REVERSE);
    }
}

/* The box lies at the bottom, so that what it speaks about is seen above it. */
static void draw_tour(tui_ui *u, tui_area a)
{
    base_buf title = {0}, words = {0};
    const char *keys = tui_tour_page(u, &title, &words);
    tui_text t = {0};
    tui_flow f = {.text = &t, .width = a.width - 4};
    tui_flow_add(&f, TUI_PLAIN, words.data, words.len);
    tui_flow_line(&f);
    tui_flow_line(&f);
    tui_flow_puts(&f, TUI_STYLE(TUI_TOOL, 0), keys);
    tui_flow_end(&f);
    int height = (int)t.n_lines + 2;
    if (height > a.height) height = a.height;
    tui_area inside = frame(u, tui_area_within(a, 0, a.height - height, a.width, height), title.data);
    for (int y = 0; y < inside.height; y++) tui_text_draw(&t, (size_t)y, inside, 0, y);
    tui_text_free(&t);
    base_buf_free(&title);
    base_buf_free(&words);
}

void tui_popup_draw(tui_ui *u, tui_area a)
{
    tui_text t = {0};
    switch (u->popup) {
    case TUI_POPUP_NONE: draw_candidates(u, a); break;
    case TUI_POPUP_REWIND: draw_rewind(u, a); break;
    case TUI_POPUP_HISTORY: draw_history_search(u, a); break;
    case TUI_POPUP_HELP:
        help_text(u, &t, a.width - 4);
        draw_text(u, a, "help", &t);
        break;
    case TUI_POPUP_DIFF: {
        base_buf title = {0};
        const char *headline = u->state.approval.headline ? u->state.approval.headline : "what it would do";
        base_show(&title, headline, strlen(headline), tui_text_form(u));
        tui_question_lines(u, a.width - 4, &t);
        tui_question_saw_popup(u, draw_text(u, a, title.data ? title.data : "", &t));
        base_buf_free(&title);
        break;
    }
    case TUI_POPUP_PANEL:
        tui_explain_panel(u, &t, a.width - 4);
        draw_text(u, a, "what this panel shows", &t);
        break;
    case TUI_POPUP_TOUR: draw_tour(u, a); break;
    case TUI_POPUP_TEXT: {
        tui_flow f = {.text = &t, .width = a.width - 4};
        tui_flow_add(&f, TUI_PLAIN, u->popup_text.data ? u->popup_text.data : "", u->popup_text.len);
        tui_flow_end(&f);
        draw_text(u, a, u->popup_title, &t);
        break;
    }
    }
    tui_text_free(&t);
}

/* --- keys ----------------------------------------------------------------------------------------------- */

static void close_popup(tui_ui *u)
{
    tui_popup_open(u, TUI_POPUP_NONE);
}

static void rewind_key(tui_ui *u, uint32_t key)
{
    size_t items[MAX_TARGETS], n = tui_rewind_targets(u, items, MAX_TARGETS);
    if ((key == 'j' || key == TUI_KEY_DOWN) && (size_t)u->popup_at + 1 < n) u->popup_at++;
    if ((key == 'k' || key == TUI_KEY_UP) && u->popup_at > 0) u->popup_at--;
    if (key != TUI_KEY_ENTER || (size_t)u->popup_at >= n) return;
    const tui_item *i = u->state.items + items[u->popup_at];
    char command[32], *request = base_xstrdup(i->body.data);
    snprintf(command, sizeof command, "/rewind %u", i->turn);
    close_popup(u);
    tui_ui_submit(u, command);
    u->rewound_request = request;
}

static void history_key(tui_ui *u, uint32_t key)
{
    base_buf *words = &u->popup_text;
    if (key == TUI_CTRL('r') || key == TUI_KEY_UP) {
        u->popup_at++;
    } else if ((key == TUI_CTRL('s') || key == TUI_KEY_DOWN) && u->popup_at > 0) {
        u->popup_at--;
    } else if (key == TUI_KEY_BACKSPACE || key == TUI_CTRL('h')) {
        size_t n = words->len;
        while (n > 0 && ((unsigned char)words->data[n - 1] & 0xc0) == 0x80) n--;
        words->len = n > 0 ? n - 1 : 0;
        if (words->data) words->data[words->len] = 0;
        u->popup_at = 0;
    } else if (key == TUI_KEY_ENTER || key == TUI_KEY_TAB || key == TUI_KEY_RIGHT) {
        size_t at = u->lines.n;
        for (int i = 0; i <= u->popup_at; i++) {
            size_t next = tui_lines_find(&u->lines, words->data ? words->data : "", at);
            if (next >= u->lines.n) break;
            at = next;
        }
        if (at < u->lines.n) tui_editor_set(&u->editor, u->lines.line[at]);
        close_popup(u);
    } else if (key >= 0x20 && key < TUI_KEY_FIRST && key != 0x7f) {
        char s[4];
        base_buf_add(words, s, base_utf8_encode(key, s));
        u->popup_at = 0;
    }
    /* Not further back than there are matches. */
    size_t at = u->lines.n;
    int matches = 0;
    while (u->popup == TUI_POPUP_HISTORY && matches <= u->popup_at &&
           (at = tui_lines_find(&u->lines, words->data ? words->data : "", at)) < u->lines.n) {
        matches++;
        if (at == 0) break;
    }
    if (u->popup_at >= matches) u->popup_at = matches > 0 ? matches - 1 : 0;
}

static void text_key(tui_ui *u, uint32_t key)
{
    enum { LEAP = 10 };
    const int leap =
        u->popup_page > 0 && u->popup_page < LEAP ? u->popup_page : LEAP; /* no line is passed by */
    const struct {
        uint32_t key;
        int lines;
    } moves[] = {{'j', 1}, {TUI_KEY_DOWN, 1}, {'k', -1}, {TUI_KEY_UP, -1}, {TUI_KEY_PAGE_DOWN, leap},
        {' ', leap}, {TUI_CTRL('d'), leap}, {TUI_KEY_PAGE_UP, -leap}, {TUI_CTRL('u'), -leap}, {'g', -1000000},
        {'G', 1000000}};
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (moves[i].key == key) u->popup_scroll += moves[i].lines;
    if (u->popup_scroll < 0) u->popup_scroll = 0;
    if (u->popup == TUI_POPUP_PANEL && key == TUI_KEY_F1) {
        tui_popup_open(u, TUI_POPUP_HELP);
        return;
    }
    if (key == 'q' || key == '?' || key == TUI_KEY_F1 || key == TUI_KEY_ENTER ||
        (u->popup == TUI_POPUP_DIFF && key == 'd'))
        close_popup(u);
}

bool tui_popup_key(tui_ui *u, uint32_t key)
{
    if (u->popup == TUI_POPUP_NONE) return false;
    if (key == TUI_KEY_ESC || key == TUI_CTRL('c')) {
        if (u->popup == TUI_POPUP_TOUR)
            tui_tour_end(u);
        else
            close_popup(u);
        return true;
    }
    /*
     * An approval that is being read in full can be answered right there, at its end; what says so stays open
     * until then.
     */
    if (u->popup == TUI_POPUP_DIFF && key < 0x80 && strchr("yaAne", (int)key)) {
        if (key == 'n' || tui_question_was_read(u)) close_popup(u);
        return false;
    }
    switch (u->popup) {
    case TUI_POPUP_REWIND: rewind_key(u, key); break;
    case TUI_POPUP_HISTORY: history_key(u, key); break;
    case TUI_POPUP_TOUR: tui_tour_key(u, key); break;
    default: text_key(u, key);
    }
    return true;
}
