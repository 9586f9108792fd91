/*
 * The same reducer and views over events of the log. A step is the state after a turn's last event; playing
 * applies event after event on the loop's ticks.
 */
#include <limits.h>
#include <stdlib.h>

#include "tui/frame.h"
#include "tui/loop.h"
#include "tui/terminal/painter.h"
#include "tui/record.h"
#include "tui/tui.h"
#include "tui/what_if_log.h"

typedef struct replay {
    tui_record record;
    size_t shown;
    /* Of a what-if: what was recorded, beside which `record` stands. */
    tui_record recorded;
    size_t *behind; /* [recorded.n], as tui_what_if_load gives it; NULL: no what-if */
    size_t n_beside;
    tui_beside beside;
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

/* Brings the screen to where n events were applied, and what stands beside it as far. */
static void show(replay *p, size_t n)
{
    tui_record_show(&p->record, &p->ui, &p->shown, n);
    if (!p->behind) return;
    if (p->n_beside && p->behind[p->n_beside - 1] > n) {
        tui_rows_free(&p->beside.rows);
        tui_state_free(&p->beside.state);
        tui_state_init(&p->beside.state);
        p->n_beside = 0;
    }
    while (p->n_beside < p->recorded.n && p->behind[p->n_beside] <= n)
        tui_state_apply(&p->beside.state, &p->recorded.events[p->n_beside++], 0);
}

static void begin(replay *p, const tui_host *host, bool utf8, bool letters)
{
    tui_ui_init(&p->ui, host, utf8, letters);
    p->ui.replay = true;
    p->ui.replay_turns = p->record.turns;
    tui_state_init(&p->beside.state);
    if (p->behind) p->ui.beside = &p->beside;
}

static void end(replay *p)
{
    tui_ui_free(&p->ui);
    tui_rows_free(&p->beside.rows);
    tui_state_free(&p->beside.state);
}

static void unload(replay *p)
{
    tui_record_free(&p->record);
    tui_record_free(&p->recorded);
    free(p->behind);
}

static int load(replay *p, agent_log *l, const char *session, base_err *err)
{
    if (agent_log_is_what_if(l, session))
        return tui_what_if_load(l, session, &p->recorded, &p->record, &p->behind, err);
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
    show(p, tui_record_end(&p->record, (uint32_t)turn));
}

static void do_play(void *user)
{
    replay *p = user;
    p->ui.playing = !p->ui.playing;
    if (p->ui.playing && p->shown >= p->record.n) show(p, 0);
}

static void do_next_difference(void *user)
{
    replay *p = user;
    bool is_what_if;
    const uint32_t turn = tui_record_next_difference(&p->record, p->shown, &is_what_if);
    if (turn) {
        p->ui.playing = false;
        show(p, tui_record_end(&p->record, turn));
        return;
    }
    tui_ui_say(&p->ui, is_what_if
                           ? "no token of any turn would have been another one; rows differ where a ^ stands"
                           : "this is no what-if: there is nothing beside it");
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
    show(p, p->shown + 1);
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
            .next_difference = do_next_difference,
            .copy = tui_loop_copy,
            .repaint = tui_loop_repaint,
            .suspend = tui_loop_suspend};
        begin(&p, &host, tui_painter_utf8(), !tui_painter_colours());
        show(&p, tui_record_end(&p.record, options->turn));
        if (options->note) tui_ui_say(&p.ui, "%s", options->note);
        p.loop = (tui_loop){.ui = &p.ui, .fd = -1, .tick = tick, .user = &p};
        tui_loop_run(&p.loop);
        tui_loop_close();
        end(&p);
    }
    unload(&p);
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
        begin(&p, &host, true, false);
        show(&p, tui_record_end(&p.record, turn));
        tui_grid_resize(&grid, (int)width, (int)height);
        tui_ui_draw(&p.ui, &grid);
        tui_grid_text(&grid, out);
        tui_grid_free(&grid);
        end(&p);
    }
    unload(&p);
    return rc;
}
