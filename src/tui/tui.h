/*
 * The screen. It knows events and the worker that sends them, never the engine. All state is reduced from
 * events (tui/state/state.h), views paint a cell grid (tui/terminal/grid.h), curses paints the grid: so live
 * and replayed screens are the same code fed with the same rows.
 */
#ifndef KVIST_TUI_TUI_H
#define KVIST_TUI_TUI_H

#include "agent/log/log.h"
#include "agent/worker.h"

typedef enum tui_notify { TUI_NOTIFY_OFF, TUI_NOTIFY_BELL, TUI_NOTIFY_OSC777 } tui_notify;

typedef struct tui_options {
    bool linear; /* append-only: screen readers, pipes, TERM=dumb */
    bool no_color;
    const char *root; /* the tree: paths for @ completion are looked for here when `paths` is NULL */
    char **(*paths)(void *user); /* NULL-terminated, sorted; caller frees each and the array; may be NULL */
    void *paths_user;
    tui_notify notify;      /* when a long turn ends or waits for a yes */
    int64_t long_turn_ms;   /* how long a turn has to take for that, from the request on */
    const char *history;    /* file of former input lines; NULL: none */
    const char *first_line; /* footer text while loading, e.g. the model's name */
    uint32_t turn;          /* replay: where to start; 0: the last */
    const char *note;       /* replay: said at the start; NULL: nothing */
} tui_options;

/*
 * Runs the shell until the person quits. Returns 0, or fails when the terminal cannot be used (too small, no
 * curses).
 */
int tui_run(agent_worker *w, const tui_options *options, base_err *err);

/* Replay from the log, no model loaded. */
int tui_replay(agent_log *l, const char *session, const tui_options *options, base_err *err);
/* One turn's screen as plain text, width x height; turn 0: the last. */
int tui_replay_text(agent_log *l, const char *session, uint32_t turn, uint32_t width, uint32_t height,
    base_buf *out, base_err *err);

/* Slash commands and keys for what is made from them: "slash":[{name, arguments, about}],"keys":[{where, keys, about}] */
void tui_describe(base_buf *out);

#endif
