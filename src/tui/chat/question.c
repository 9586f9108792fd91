/*
 * The question of a tool: what it would do, between the chat and the input line, and the keys that answer it.
 * What does not fit is read in a popup (d). Until the end of it was on the screen there is no yes.
 */
#include <string.h>

#include "tui/chat/chat.h"
#include "tui/terminal/markdown.h"

static const char asks[] = "allow? ";

static bool is_ascii(const tui_ui *u)
{
    return u->glyphs == tui_glyphs_for(false, false);
}

base_show_form tui_text_form(const tui_ui *u)
{
    return is_ascii(u) ? BASE_SHOW_ASCII : BASE_SHOW_UTF8;
}

base_show_form tui_code_form(const tui_ui *u)
{
    return is_ascii(u) ? BASE_SHOW_ASCII : BASE_SHOW_TABS;
}

static const char *headline_of(const tui_approval *p)
{
    return p->headline ? p->headline : p->name ? p->name : "";
}

static void flow_headline(const tui_ui *u, tui_flow *f)
{
    const char *headline = headline_of(&u->state.approval);
    tui_command_lines(f, TUI_STRONG, headline, strlen(headline), tui_text_form(u));
}

/* A command's headline is the command; then there is nothing more to read. */
static bool headline_says_all(const tui_approval *p)
{
    return !p->detail || !*p->detail || (tui_approval_runs(p) && strstr(headline_of(p), p->detail));
}

int tui_question_height(tui_ui *u, int width, int most, tui_text *t)
{
    tui_flow f = {.text = t,
        .width = width,
        .first = asks,
        .rest = "       ",
        .wrap = "     > ",
        .prefix_style = TUI_STYLE(TUI_WARN, TUI_BOLD),
        .code = true};
    flow_headline(u, &f);
    tui_flow_end(&f);
    if (t->n_lines == 0) { /* a headline without a letter */
        f = (tui_flow){.text = t, .width = width};
        tui_flow_puts(&f, TUI_STYLE(TUI_WARN, TUI_BOLD), asks);
        tui_flow_end(&f);
    }
    if (most < 1) most = 1;
    return ((int)t->n_lines < most ? (int)t->n_lines : most) + 1;
}

void tui_question_saw_item(tui_ui *u, size_t item)
{
    const tui_approval *p = &u->state.approval;
    if (!p->waiting || p->item != item || u->popup != TUI_POPUP_NONE || tui_approval_runs(p)) return;
    if (u->state.items[item].diff_is_whole) u->question.saw_detail = true;
}

bool tui_question_was_read(const tui_ui *u)
{
    return u->question.saw_headline && u->question.saw_detail;
}

/* A key of the question's last line; brief: in a narrow pane, where what does not fit. NULL: the same. */
typedef struct key_row {
    const char *key, *what, *brief;
    bool here;
} key_row;

static int key_width(const key_row *k, bool is_brief)
{
    return (int)(strlen(k->key) + 1 + strlen(is_brief && k->brief ? k->brief : k->what));
}

static int keys_width(const key_row *keys, size_t n, bool is_brief)
{
    int width = -2;
    for (size_t i = 0; i < n; i++)
        if (keys[i].here) width += key_width(&keys[i], is_brief) + 2;
    return width;
}

void tui_question_draw(tui_ui *u, tui_area a, const tui_text *t)
{
    const tui_approval *p = &u->state.approval;
    const int shown = a.height - 1, n = (int)t->n_lines;
    if (shown < 1) return;
    for (int i = 0; i < shown; i++) tui_text_draw(t, (size_t)i, a, 0, i);
    if (n > shown) {
        tui_area last = tui_area_within(a, 0, shown - 1, a.width, 1);
        tui_blank(last);
        tui_printf(last, 0, 0, TUI_STYLE(TUI_WARN, TUI_BOLD), "%s%s %d more lines of it", asks,
            u->glyphs->ellipsis, n - shown + 1);
    } else {
        u->question.saw_headline = true;
        if (headline_says_all(p)) u->question.saw_detail = true;
    }
    if (!tui_editor_empty(&u->editor) && u->asking == TUI_ASK_NOTHING) {
        tui_put_short(a, 0, shown, a.width, TUI_STYLE(TUI_WARN, 0), u->glyphs->ellipsis,
            "first the line below: Enter queues it, Ctrl+C clears it");
        return;
    }
    const bool runs = tui_approval_runs(p), read = tui_question_was_read(u),
               rewinds = tui_approval_rewinds(p);
    const key_row keys[] = {{"y", rewinds ? "files too" : "once", rewinds ? "files" : NULL, read},
        {"a", "this session", "session", read && runs}, {"A", "always here", "tree", read && runs},
        {"e", "edit", NULL, read && p->text != NULL}, {"d", "show all of it, y at its end", NULL, !read},
        {"n", rewinds ? "conversation alone" : "no", rewinds ? "alone" : NULL, true},
        {"d", "show all", "all", read}, {"Esc", rewinds ? "neither" : "stop", NULL, true}};
    const size_t n_keys = sizeof keys / sizeof *keys;
    const bool is_brief = keys_width(keys, n_keys, false) > a.width;
    int x = 0;
    for (size_t i = 0; i < n_keys; i++) {
        const key_row *k = &keys[i];
        if (!k->here) continue;
        if (x + key_width(k, is_brief) > a.width) break;
        x += tui_put(a, x, shown, TUI_STYLE(TUI_WARN, TUI_BOLD), k->key);
        x += 3 + tui_put(a, x + 1, shown, TUI_PLAIN, is_brief && k->brief ? k->brief : k->what);
    }
}

/* All of it, for the popup. */
void tui_question_lines(tui_ui *u, int width, tui_text *t)
{
    const tui_approval *p = &u->state.approval;
    if (!u->question.saw_headline || headline_says_all(p)) {
        tui_flow f = {.text = t, .width = width, .rest = "  ", .wrap = "> ", .code = true};
        flow_headline(u, &f);
        tui_flow_end(&f);
        if (headline_says_all(p)) return;
    }
    if (tui_approval_runs(p)) {
        tui_flow f = {.text = t, .width = width, .rest = "  ", .wrap = "> ", .code = true};
        tui_command_lines(&f, TUI_PLAIN, p->detail, strlen(p->detail), tui_text_form(u));
        tui_flow_end(&f);
    } else {
        tui_diff_lines(
            t, width, "", headline_of(p), p->detail, strlen(p->detail), SIZE_MAX, tui_code_form(u));
    }
}

void tui_question_saw_popup(tui_ui *u, bool its_end)
{
    if (its_end) u->question.saw_headline = u->question.saw_detail = true;
}
