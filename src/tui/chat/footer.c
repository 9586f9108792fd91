/*
 * The last line: model, mode, rows, sequence, progress, speed, branch. Fields that do not fit are shed from
 * the right, the first of them shortened where that leaves a word; what is going on at the moment (loading,
 * prefill, a question) goes before that and is never the first to go.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tui/chat/chat.h"
#include "base/numbers.h"
#include "base/path.h"

enum { MAX_FIELDS = 10, LEAST_FIELD = 12 };

typedef struct field {
    char text[96];
    tui_style style;
} field;

typedef struct footer {
    field fields[MAX_FIELDS];
    int n;
} footer;

static field *add(footer *f, tui_style style)
{
    field *new = f->fields + f->n++;
    new->text[0] = 0;
    new->style = style;
    return new;
}

__attribute__((format(printf, 3, 4))) static void put(footer *f, tui_style style, const char *format, ...)
{
    field *new = add(f, style);
    va_list args;
    va_start(args, format);
    vsnprintf(new->text, sizeof new->text, format, args);
    va_end(args);
}

/* A server that said nothing yet may be computing, or busy with somebody else's request. */
static void waiting_field(const tui_ui *u, field *f)
{
    const tui_state *s = &u->state;
    const char *scheme = strstr(s->prefill_server, "://");
    const int64_t ms = u->now_ms - s->prefill_ms;
    int at = snprintf(f->text, sizeof f->text, "waiting for %.60s", scheme ? scheme + 3 : s->prefill_server);
    if (u->now_ms && ms >= 1000)
        snprintf(f->text + at, sizeof f->text - (size_t)at, ", %lld s", (long long)(ms / 1000));
}

static void prefill_field(const tui_ui *u, field *f)
{
    const tui_state *s = &u->state;
    double share = (double)s->prefill_done / (double)s->prefill_total;
    char bar[64] = "";
    int full = (int)(share * 6 + 0.5);
    for (int i = 0; i < 6; i++) strcat(bar, i < full ? u->glyphs->bar_full : u->glyphs->bar_empty);
    int at = snprintf(f->text, sizeof f->text, "prefill %s %.0f%%", bar, share * 100);
    /* An engine may tell once in a long while: between two times it counts down. */
    int64_t ms = s->prefill_told_ms - s->prefill_ms, done = s->prefill_done - s->prefill_from;
    if (u->now_ms && ms > 200 && done > 0) {
        double left = (double)(s->prefill_total - s->prefill_done) * (double)ms / (double)done;
        left = (left - (double)(u->now_ms - s->prefill_told_ms)) / 1000;
        if (left >= 0.5) snprintf(f->text + at, sizeof f->text - (size_t)at, " %.0f s", left);
    }
}

/* A quarter of the line is enough for a name. */
static void put_model(const tui_ui *u, field *f, const char *name, int width)
{
    int most = width / 4 > 12 ? width / 4 : 12;
    if (most > 60) most = 60;
    if ((int)strlen(name) <= most)
        snprintf(f->text, sizeof f->text, "%s", name);
    else
        snprintf(f->text, sizeof f->text, "%.*s%s", most - 1, name, u->glyphs->ellipsis);
}

static void put_session(const tui_ui *u, footer *f, int width)
{
    if (u->replay)
        put(f, TUI_STYLE(TUI_WARN, TUI_BOLD), "replay,%s turn %u of %u", u->playing ? " plays," : "",
            tui_ui_turn(u), u->replay_turns);
    if (u->state.model) put_model(u, add(f, TUI_PLAIN), base_path_name(u->state.model), width);
    const char *loading = u->load_text ? u->load_text : "loading";
    if (u->failed)
        put(f, TUI_STYLE(TUI_ERR, TUI_BOLD), "not open");
    else if (u->loading && u->load_share > 0)
        put(f, TUI_STYLE(TUI_WARN, 0), "%.60s %.0f%%", loading, u->load_share * 100);
    else if (u->loading)
        put(f, TUI_STYLE(TUI_WARN, 0), "%.60s", loading);
    const char *mode = tui_ui_mode(u);
    if (*mode) put(f, strcmp(mode, "all") ? TUI_PLAIN : TUI_STYLE(TUI_WARN, 0), "%.16s", mode);
}

/* How full the budget is, and the context. */
static void put_rows(tui_ui *u, footer *f)
{
    const tui_state *s = &u->state;
    const tui_rows *r = tui_ui_rows(u);
    if (r->n == 0) return;
    const uint32_t active = (uint32_t)((r->lanes_sum + r->n_lanes / 2) / r->n_lanes),
                   limit = s->budget ? s->budget : s->n_ctx;
    const double share = limit ? (double)active / limit : 0;
    const tui_style near_limit = share >= 0.8 ? TUI_STYLE(TUI_WARN, 0) : TUI_PLAIN;
    put(f, share > 1.0 ? TUI_STYLE(TUI_ERR, 0) : near_limit, "%s %.0f%%", tui_state_unit(s), share * 100);
    char tokens[32], most[32];
    base_thousands((int64_t)r->n, tokens);
    if (!s->n_ctx)
        put(f, TUI_PLAIN, "%s tokens", tokens);
    else
        put(f, r->n * 10 > (size_t)s->n_ctx * 9 ? TUI_STYLE(TUI_WARN, 0) : TUI_PLAIN, "%s/%s", tokens,
            base_thousands(s->n_ctx, most));
}

static void put_doing(const tui_ui *u, footer *f)
{
    const tui_state *s = &u->state;
    if (s->approval.waiting)
        put(f, TUI_STYLE(TUI_WARN, TUI_BOLD), "waits for you");
    else if (s->prefill_total > 0 && s->prefill_server)
        waiting_field(u, add(f, TUI_STYLE(TUI_PROMOTED, 0)));
    else if (s->prefill_total > 0)
        prefill_field(u, add(f, TUI_STYLE(TUI_PROMOTED, 0)));
    else if (u->idle_work && !u->busy)
        put(f, TUI_FAINT, "%.60s, %lld s", u->idle_work,
            (long long)(u->now_ms > u->idle_work_ms ? (u->now_ms - u->idle_work_ms) / 1000 : 0));
    else if (u->busy && s->tokens_since == 0 && !u->loading)
        put(f, TUI_FAINT, "working");
    double rate = s->decode_tps;
    if (s->tokens_since > 4 && u->now_ms && s->last_token_ms > s->tokens_ms)
        rate = (double)(s->tokens_since - 1) * 1000 / (double)(s->last_token_ms - s->tokens_ms);
    if (rate > 0) put(f, TUI_PLAIN, "%.*f t/s", rate < 10 ? 1 : 0, rate);
}

void tui_footer_draw(tui_ui *u, tui_area a)
{
    footer f = {.n = 0};
    put_session(u, &f, a.width);
    put_rows(u, &f);
    put_doing(u, &f);
    if (u->state.branch && *u->state.branch) put(&f, TUI_FAINT, "%.40s", u->state.branch);
    int x = 1, gap = tui_columns(u->glyphs->separator, strlen(u->glyphs->separator));
    for (int i = 0; i < f.n; i++) {
        int width = tui_columns(f.fields[i].text, strlen(f.fields[i].text));
        const int room = a.width - 1 - x - (i ? gap : 0);
        if (i && width > room && room < LEAST_FIELD) break;
        if (i) x += tui_put(a, x, 0, TUI_FAINT, u->glyphs->separator);
        x += tui_put_short(a, x, 0, room, f.fields[i].style, u->glyphs->ellipsis, f.fields[i].text);
        if (width > room) break;
    }
}
