/*
 * The same reducer and views over events of the log. A step is the state after a turn's last event; playing
 * applies event after event on the loop's ticks.
 */
#include <limits.h>
#include "tui/frame.h"
#include "tui/loop.h"
#include "tui/terminal/painter.h"
#include "tui/record.h"
#include "tui/tui.h"

typedef struct replay {
    tui_record record;
    size_t shown;
    tui_ui ui;
    tui_loop loop;
    base_err err;
    int rc;
} replay;

static bool read_event(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    replay *p = user;
    p->rc = tui_record_add(&p->record, json, n, blob, blob_n, &p->err);
    if (p->rc) base_err_prefix(&p->err, "event %llu of the log", (unsigned long long)seq);
    return p->rc == 0;
}

static int load(replay *p, agent_log *l, const char *session, base_err *err)
{
    int rc = agent_log_events(l, session, read_event, p, err);
    if (!rc && p->rc) {
        if (err) *err = p->err;
        rc = p->rc;
    }
    if (!rc && p->record.n == 0) rc = base_fail(err, BASE_E_NOT_FOUND, "session %s has no events", session);
    return rc;
}

static int check_turn(const replay *p, uint32_t turn, const char *session, base_err *err)
{
    if (turn <= p->record.turns) return 0;
    return base_fail(
        err, BASE_E_USAGE, "there is no turn %u: session %s has %u", turn, session, p->record.turns);
}

static void do_step(void *user, int turns)
{
    replay *p = user;
    int64_t turn = turns == INT_MIN   ? 1
                   : turns == INT_MAX ? (int64_t)p->record.turns
                                      : (int64_t)p->ui.state.turn + turns;
    /* Going back from the middle of a turn leads to the turn before it. */
    if (turn < 1) turn = 1;
    if (turn > p->record.turns) turn = p->record.turns;
    p->ui.playing = false;
    tui_record_show(&p->record, &p->ui, &p->shown, tui_record_end(&p->record, (uint32_t)turn));
}

static void do_play(void *user)
{
    replay *p = user;
    p->ui.playing = !p->ui.playing;
    if (p->ui.playing && p->shown >= p->record.n) tui_record_show(&p->record, &p->ui, &p->shown, 0);
}

static int tick(void *user)
{
    replay *p = user;
    if (!p->ui.playing) return -1;
    if (p->shown >= p->record.n) {
        p->ui.playing = false;
        return -1;
    }
    agent_event_type type = p->record.events[p->shown].type;
    tui_record_show(&p->record, &p->ui, &p->shown, p->shown + 1);
    return type == AGENT_EVENT_token                                                                     ? 33
           : type == AGENT_EVENT_user || type == AGENT_EVENT_tool_result || type == AGENT_EVENT_turn_end ? 600
                                                                                                         : 20;
}

static void do_quit(void *user)
{
    ((replay *)user)->loop.quit = true;
}

int tui_replay(agent_log *l, const char *session, const tui_options *options, base_err *err)
{
    replay p = {0};
    int rc = load(&p, l, session, err);
    if (!rc) rc = check_turn(&p, options->turn, session, err);
    if (!rc) rc = tui_loop_open(options->no_color, err);
    if (!rc) {
        tui_host host = {.user = &p,
            .quit = do_quit,
            .step = do_step,
            .play = do_play,
            .copy = tui_loop_copy,
            .repaint = tui_loop_repaint,
            .suspend = tui_loop_suspend};
        tui_ui_init(&p.ui, &host, tui_painter_utf8(), !tui_painter_colours());
        p.ui.replay = true;
        p.ui.replay_turns = p.record.turns;
        tui_record_show(&p.record, &p.ui, &p.shown, tui_record_end(&p.record, options->turn));
        if (options->note) tui_ui_say(&p.ui, "%s", options->note);
        p.loop = (tui_loop){.ui = &p.ui, .fd = -1, .tick = tick, .user = &p};
        tui_loop_run(&p.loop);
        tui_loop_close();
        tui_ui_free(&p.ui);
    }
    tui_record_free(&p.record);
    return rc;
}

int tui_replay_text(agent_log *l, const char *session, uint32_t turn, uint32_t width, uint32_t height,
    base_buf *out, base_err *err)
{
    replay p = {0};
    int rc = load(&p, l, session, err);
    if (!rc) rc = check_turn(&p, turn, session, err);
    if (!rc) {
        tui_grid grid = {0};
        tui_host host = {0};
        tui_ui_init(&p.ui, &host, true, false);
        p.ui.replay = true;
        p.ui.replay_turns = p.record.turns;
        tui_record_show(&p.record, &p.ui, &p.shown, tui_record_end(&p.record, turn));
        tui_grid_resize(&grid, (int)width, (int)height);
        tui_ui_draw(&p.ui, &grid);
        tui_grid_text(&grid, out);
        tui_grid_free(&grid);
        tui_ui_free(&p.ui);
    }
    tui_record_free(&p.record);
    return rc;
}
