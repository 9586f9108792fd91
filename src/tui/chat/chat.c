/*
 * The transcript: what was asked, answered, called and read, newest at the bottom. Lines of an item are
 * broken once per width and content, so a frame costs only what it shows and the item that grows.
 */
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "base/utf8.h"
#include "tui/chat/chat.h"
#include "tui/terminal/markdown.h"

enum { DIFF_LINES = 24, OUTPUT_LINES = 5, UNFOLDED_LINES = 4000, USER_LINES = 24, USER_BYTES = 4000 };

static const tui_style user_style = {TUI_USER, TUI_BOLD}, tool_style = {TUI_TOOL, 0},
                       error_style = {TUI_ERR, 0}, evicted_style = {TUI_EVICTED, 0};

static const char *text_of(const base_buf *b)
{
    return b->data ? b->data : "";
}

/* The last `max` lines of a text that is still coming. */
static void add_tail(tui_flow *f, const base_buf *b, size_t max)
{
    const char *s = text_of(b);
    size_t n = b->len, from = n, lines = 0;
    while (n > 0 && s[n - 1] == '\n') n--;
    for (from = n; from > 0; from--)
        if (s[from - 1] == '\n' && ++lines == max) break;
    if (n > from) tui_flow_add(f, TUI_FAINT, s + from, n - from);
}

static void tool_lines(const tui_ui *u, tui_item *i, int width)
{
    bool unfolded = u->unfolded || i->open, running = !i->status;
    bool failed = i->status && strcmp(i->status, "ok");
    tui_flow head = {.text = &i->lines, .width = width, .rest = "    "};
    tui_flow_puts(&head, failed ? error_style : tool_style,
        unfolded || i->diff.len ? u->glyphs->open : u->glyphs->closed);
    tui_flow_puts(&head, TUI_PLAIN, " ");
    tui_flow_add(&head, failed ? error_style : TUI_STRONG, text_of(&i->head), i->head.len);
    char extra[64] = "";
    bool told = i->summary && *i->summary; /* exit code and time too, where there are some */
    if (failed)
        snprintf(extra, sizeof extra, i->exit_code > 0 && !told ? "  %s, exit %lld" : "  %s", i->status,
            (long long)i->exit_code);
    else if (running && !u->state.approval.waiting)
        snprintf(extra, sizeof extra, "  %s", u->glyphs->ellipsis);
    tui_flow_puts(&head, failed ? error_style : TUI_FAINT, extra);
    if (told && !strstr(text_of(&i->head), i->summary)) {
        tui_flow_puts(&head, TUI_FAINT, "  ");
        tui_flow_puts(&head, TUI_FAINT, i->summary);
    }
    if (i->ms >= 1000 && !told) {
        snprintf(extra, sizeof extra, "  %.1f s", (double)i->ms / 1000);
        tui_flow_puts(&head, TUI_FAINT, extra);
    }
    tui_flow_end(&head);
    if (i->diff.len)
        i->diff_is_whole = tui_diff_lines(&i->lines, width, "    ", i->head.data, i->diff.data, i->diff.len,
            unfolded ? UNFOLDED_LINES : DIFF_LINES, tui_code_form(u));
    tui_flow body = {.text = &i->lines, .width = width, .first = "    ", .rest = "    ", .code = true};
    if (unfolded)
        add_tail(&body, &i->body, UNFOLDED_LINES);
    else if ((running || failed) && i->body.len)
        add_tail(&body, &i->body, OUTPUT_LINES);
    tui_flow_end(&body);
}

static void listing_lines(const tui_ui *u, tui_item *i, int width)
{
    size_t n = 1;
    for (size_t k = 0; k < i->body.len; k++) n += i->body.data[k] == '\n';
    bool places = i->kind == TUI_ITEM_PLACES, unfolded = u->unfolded || i->open || places;
    tui_flow f = {.text = &i->lines, .width = width, .rest = "    "};
    char head[80];
    snprintf(head, sizeof head, " %zu %s", n,
        places   ? n == 1 ? "place, checked" : "places, checked"
        : n == 1 ? "excerpt put in front"
                 : "excerpts put in front");
    tui_flow_puts(&f, tool_style, unfolded ? u->glyphs->open : u->glyphs->closed);
    tui_flow_puts(&f, TUI_FAINT, head);
    tui_flow_end(&f);
    if (!unfolded) return;
    tui_flow body = {.text = &i->lines, .width = width, .first = "    ", .rest = "    ", .wrap = "      "};
    tui_flow_add(&body, places ? tool_style : TUI_FAINT, text_of(&i->body), i->body.len);
    tui_flow_end(&body);
}

static void answer_lines(const tui_ui *u, tui_item *i, int width)
{
    const char *s = text_of(&i->body);
    const bool is_cut = i->unsettled && !i->streaming; /* the turn ended in front of the rest of it */
    size_t n = i->streaming || (is_cut && !u->unfolded) ? tui_call_start(i) : i->body.len;
    tui_markdown(&i->lines, width, s, n);
    if (n < i->body.len) {
        char line[80];
        if (is_cut)
            snprintf(line, sizeof line, "%s a call that was not finished, %zu bytes", u->glyphs->bullet,
                i->body.len - n);
        else
            snprintf(line, sizeof line, "%s writing a call %s %zu bytes", u->glyphs->bullet,
                u->glyphs->ellipsis, i->body.len - n);
        tui_flow f = {.text = &i->lines, .width = width};
        tui_flow_puts(&f, TUI_FAINT, line);
        tui_flow_end(&f);
    }
}

/* "512 rows evicted (budget)" */
static void put_rows(const tui_ui *u, base_buf *b, uint32_t rows, const char *what, const base_buf *reasons)
{
    char n[32];
    if (!rows) return;
    base_buf_printf(b, "%s %s %s", base_thousands(rows, n), tui_state_unit(&u->state), what);
    if (reasons->len) base_buf_printf(b, " (%s)", reasons->data);
}

static void sentence_lines(const tui_ui *u, tui_item *i, int width)
{
    char mark[16];
    snprintf(mark, sizeof mark, "%s ", u->glyphs->bullet);
    tui_flow f = {.text = &i->lines, .width = width, .first = mark, .rest = "  ", .prefix_style = TUI_FAINT};
    if (i->kind == TUI_ITEM_ERROR) {
        f.prefix_style = error_style;
        tui_flow_puts(&f, error_style, "error: ");
        tui_flow_add(&f, error_style, text_of(&i->body), i->body.len);
    } else if (i->kind == TUI_ITEM_CACHE) {
        base_buf b = {0};
        char n[32];
        base_buf_puts(&b, "cache: ");
        const size_t start = b.len;
        if (i->deferred)
            base_buf_printf(&b, "%s tokens left below the pivot", base_thousands(i->deferred, n));
        if (i->deferred && (i->evicted || i->promoted)) base_buf_puts(&b, ", ");
        put_rows(u, &b, i->evicted, "evicted", &i->head);
        if (i->evicted && i->promoted) base_buf_puts(&b, ", ");
        put_rows(u, &b, i->promoted, "promoted", &i->body);
        if (i->again)
            base_buf_printf(&b, "%smessage computed again (%s tokens)", b.len > start ? "; " : "",
                BASE_THOUSANDS(i->again));
        if (i->answer_again)
            base_buf_printf(&b, "%sanswer computed again (%s tokens)", b.len > start ? "; " : "",
                BASE_THOUSANDS(i->answer_again));
        if (i->diff.len) base_buf_printf(&b, "%s%s", b.len > start ? "; " : "", i->diff.data);
        f.prefix_style = evicted_style;
        tui_flow_add(&f, evicted_style, b.data, b.len);
        base_buf_free(&b);
        if (i->explains) {
            tui_flow_line(&f);
            tui_flow_puts(&f, TUI_FAINT,
                "evicted: set aside, not lost. The model's memory is limited, and this is what the request "
                "needs least; what a later request asks for comes back (promoted).");
        }
    } else {
        tui_flow_table(&f, TUI_FAINT, text_of(&i->body), i->body.len);
    }
    tui_flow_end(&f);
}

/* A long paste is shown by its beginning. */
static void user_lines(const tui_ui *u, tui_item *i, int width)
{
    tui_flow f = {
        .text = &i->lines, .width = width, .first = "you> ", .rest = "     ", .prefix_style = user_style};
    const char *s = text_of(&i->body);
    size_t most = u->unfolded ? UNFOLDED_LINES : USER_LINES, n = 0, lines = 0;
    while (n < i->body.len && lines < most && (u->unfolded || n < USER_BYTES)) lines += s[n++] == '\n';
    n = n < i->body.len ? base_utf8_whole(s, n) : n;
    tui_flow_add(&f, TUI_STRONG, s, n);
    tui_flow_end(&f);
    if (n == i->body.len) return;
    char line[80], number[32];
    size_t more = 1;
    for (size_t k = n; k + 1 < i->body.len; k++) more += s[k] == '\n';
    snprintf(line, sizeof line, "%s %s more %s%s", u->glyphs->ellipsis,
        base_thousands(more > 1 ? (int64_t)more : (int64_t)(i->body.len - n), number),
        more > 1 ? "lines" : "bytes", u->unfolded ? "" : ": Ctrl+O unfolds");
    tui_flow rest = {.text = &i->lines, .width = width, .first = "     "};
    tui_flow_puts(&rest, TUI_FAINT, line);
    tui_flow_end(&rest);
}

static void lay_out(tui_ui *u, tui_item *i, const tui_item *before, int width)
{
    tui_text_clear(&i->lines);
    bool gap = before &&
               (i->kind == TUI_ITEM_USER || (i->kind == TUI_ITEM_ANSWER && before->kind != TUI_ITEM_ANSWER));
    if (gap) {
        tui_flow f = {.text = &i->lines, .width = width};
        tui_flow_line(&f);
        tui_flow_end(&f);
    }
    switch (i->kind) {
    case TUI_ITEM_USER: user_lines(u, i, width); break;
    case TUI_ITEM_ANSWER: answer_lines(u, i, width); break;
    case TUI_ITEM_TOOL: tool_lines(u, i, width); break;
    case TUI_ITEM_CONTEXT:
    case TUI_ITEM_PLACES: listing_lines(u, i, width); break;
    case TUI_ITEM_CACHE:
    case TUI_ITEM_NOTICE:
    case TUI_ITEM_THOUGHT:
    case TUI_ITEM_ERROR: sentence_lines(u, i, width); break;
    }
}

static void welcome(tui_ui *u, tui_area a)
{
    static const char *const lines[] = {
        "Ask about this tree, or say what to change.",
        "",
        "@file      put a file in front of the request",
        "/command   /help lists them, /tour shows around",
        "!command   run a shell line",
        "Shift+Tab  what needs asking: plan, ask, edits, all",
        "Tab or F2  the cache panel: what the model remembers",
        "F1         all keys",
    };
    enum { WIDTH = 52 };
    int n = sizeof lines / sizeof *lines, y = a.height > n + 2 ? (a.height - n) / 2 : 0;
    for (int i = 0; i < n; i++)
        tui_put(
            a, a.width > WIDTH + 2 ? (a.width - WIDTH) / 2 : 0, y + i, i ? TUI_FAINT : TUI_PLAIN, lines[i]);
}

void tui_chat_draw(tui_ui *u, tui_area a)
{
    tui_state *s = &u->state;
    int total = 0, width = a.width;
    /* The unfolding switch, and whether a running tool waits for approval, change what lines there are. */
    uint32_t salt = (u->unfolded ? 1u : 0u) | (s->approval.waiting ? 2u : 0u);
    for (size_t i = 0; i < s->n_items; i++) {
        tui_item *item = s->items + i;
        uint32_t version = item->version * 4 + salt;
        if (item->lines_width != width || item->lines_version != version) {
            lay_out(u, item, i ? item - 1 : NULL, width);
            item->lines_width = width;
            item->lines_version = version;
        }
        total += (int)item->lines.n_lines;
    }
    if (s->n_items == 0 && !u->replay) welcome(u, a);
    /* A person who has scrolled up stays there while text is added at the end. */
    if (u->chat_scroll > 0 && total > u->chat_lines && u->chat_lines > 0)
        u->chat_scroll += total - u->chat_lines;
    u->chat_lines = total;
    u->chat_page = a.height;
    int most = total > a.height ? total - a.height : 0;
    if (u->chat_scroll > most) u->chat_scroll = most;
    int first =
        total - a.height - u->chat_scroll; /* line of the transcript at the top; negative: room left */
    int at = 0;
    for (size_t i = 0; i < s->n_items; i++) {
        const tui_text *t = &s->items[i].lines;
        int n = (int)t->n_lines, offset = first < 0 ? 0 : first;
        if (at + n > offset && at < offset + a.height)
            for (int k = at < offset ? offset - at : 0; k < n && at + k < offset + a.height; k++)
                tui_text_draw(t, (size_t)k, a, 0, at + k - offset);
        if (at >= offset && at + n <= offset + a.height) tui_question_saw_item(u, i);
        at += n;
    }
    if (u->chat_scroll > 0) {
        char more[64];
        int n = snprintf(more, sizeof more, " %d more lines, PgDn ", u->chat_scroll);
        tui_put(a, a.width - n, a.height - 1, TUI_STYLE(TUI_TEXT, TUI_REVERSE), more);
    }
}
