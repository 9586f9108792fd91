/*
 * The real screen over a recorded session, without model or agent: each submitted line plays the events of
 * the next turn, with delays; a recorded question waits for an answer. For looking at, and for the tmux test.
 *
 *   demo EVENTS [MS_PER_TOKEN]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "tui/loop.h"
#include "tui/terminal/painter.h"
#include "tui/record.h"

typedef struct demo {
    tui_record record;
    size_t shown;
    int token_ms;
    bool playing, asked;
    tui_ui ui;
    tui_loop loop;
} demo;

static void on_submit(void *user, const char *text)
{
    demo *d = user;
    d->playing = true;
}

static void on_decide(void *user, agent_answer answer, const char *text)
{
    ((demo *)user)->asked = false;
}

static void on_interrupt(void *user)
{
    demo *d = user;
    d->asked = false;
    agent_event e = {
        .type = AGENT_EVENT_turn_end, .turn_end = {.turn = d->ui.state.turn, .status = "cancelled"}};
    tui_ui_event(&d->ui, &e);
    while (d->shown < d->record.n && d->record.events[d->shown].type != AGENT_EVENT_user) d->shown++;
    d->playing = false;
    tui_ui_idle(&d->ui);
}

static void on_quit(void *user)
{
    ((demo *)user)->loop.quit = true;
}

static int tick(void *user)
{
    demo *d = user;
    if (!d->playing) return -1;
    if (d->asked) return 50;
    if (d->shown >= d->record.n) {
        d->playing = false;
        tui_ui_idle(&d->ui);
        return -1;
    }
    const agent_event *e = d->record.events + d->shown++;
    tui_ui_event(&d->ui, e);
    if (e->type == AGENT_EVENT_approval_request) d->asked = true;
    if (e->type == AGENT_EVENT_turn_end) {
        d->playing = false;
        tui_ui_idle(&d->ui);
    }
    return e->type == AGENT_EVENT_token ? d->token_ms : e->type == AGENT_EVENT_prefill ? 30 * d->token_ms : 1;
}

int main(int argc, char **argv)
{
    demo d = {.token_ms = argc > 2 ? atoi(argv[2]) : 40};
    base_buf b = {0};
    base_err err = {0};
    if (argc < 2 || base_fs_read(argv[1], 64 << 20, &b, &err)) {
        fprintf(stderr, "demo EVENTS [MS_PER_TOKEN]: %s\n", err.msg);
        return 2;
    }
    for (size_t at = 0; at < b.len;) {
        const char *s = b.data + at, *end = memchr(s, '\n', b.len - at);
        size_t n = end ? (size_t)(end - s) : b.len - at;
        if (n && tui_record_add(&d.record, s, n, NULL, 0, &err)) {
            fprintf(stderr, "%s\n", err.msg);
            return 2;
        }
        at += n + 1;
    }
    base_buf_free(&b);
    if (tui_loop_open(getenv("NO_COLOR") != NULL, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    tui_host host = {.user = &d,
        .submit = on_submit,
        .decide = on_decide,
        .interrupt = on_interrupt,
        .quit = on_quit,
        .edit = tui_loop_edit,
        .copy = tui_loop_copy,
        .repaint = tui_loop_repaint,
        .suspend = tui_loop_suspend};
    tui_ui_init(&d.ui, &host, tui_painter_utf8(), !tui_painter_colours());
    /* What stands before the first request is there from the start. */
    tui_record_show(&d.record, &d.ui, &d.shown, tui_record_end(&d.record, 0) ? 1 : 0);
    d.loop = (tui_loop){.ui = &d.ui, .fd = -1, .tick = tick, .user = &d};
    tui_loop_run(&d.loop);
    tui_loop_close();
    tui_loop_farewell(&d.ui.state);
    tui_ui_free(&d.ui);
    tui_record_free(&d.record);
    return 0;
}
