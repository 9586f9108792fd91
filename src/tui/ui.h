/*
 * The shell without a terminal: state, views, input line and popups. Keys (dispatch.h) and events go in, a cell
 * grid (frame.h) and calls of the host come out; no curses, no thread, no clock of its own. The loop (terminal),
 * replay and the tests drive the same functions.
 */
#ifndef KVIST_TUI_UI_H
#define KVIST_TUI_UI_H

#include "agent/agent.h"
#include "tui/input/complete.h"
#include "tui/input/editor.h"
#include "tui/terminal/keys.h"
#include "tui/input/former_lines.h"
#include "tui/state/state.h"

/* What the shell asks of the world. Any may be NULL. */
typedef struct tui_host {
    void *user;
    void (*submit)(void *user, const char *text);
    void (*decide)(void *user, agent_answer answer, const char *text);
    void (*set_mode)(void *user, agent_mode mode);
    void (*interrupt)(void *user);
    void (*quit)(void *user);
    char *(*edit)(void *user, const char *text); /* the external editor; NULL: nothing changed */
    void (*copy)(void *user, const char *text, size_t n);
    void (*repaint)(void *user);
    void (*suspend)(void *user);
    void (*step)(void *user, int turns); /* replay: another turn; INT_MIN and INT_MAX: first and last */
    void (*play)(void *user);            /* replay: start or stop */
    void (*next_difference)(void *user); /* replay of a what-if: the next turn that differs, or the first */
    char **(*paths)(void *user);         /* for @ completion; NULL-terminated, caller frees */
    char **(*skills)(void *user); /* name, what it is, name, ... of what /NAME uses beside the commands */
} tui_host;

typedef enum tui_focus { TUI_FOCUS_CHAT, TUI_FOCUS_INSPECTOR } tui_focus;
typedef enum tui_popup {
    TUI_POPUP_NONE,
    TUI_POPUP_HELP,
    TUI_POPUP_REWIND,
    TUI_POPUP_HISTORY,
    TUI_POPUP_DIFF,
    TUI_POPUP_PANEL, /* the panel explained on one screen */
    TUI_POPUP_TEXT,
    TUI_POPUP_TOUR
} tui_popup;
/* What the input line is for at the moment. */
typedef enum tui_asking { TUI_ASK_NOTHING, TUI_ASK_REASON, TUI_ASK_EDIT, TUI_ASK_FIND } tui_asking;

/* The inspector's views in the order of their digits (the list in meson.build); views/view.h has their rows. */
typedef enum tui_view_id {
#define VIEW(name) TUI_VIEW_##name,
#include "tui/views.def"
#undef VIEW
    TUI_N_VIEWS
} tui_view_id;

/* How much of the question that waits was on the screen; y, a and e answer only what was read to its end. */
typedef struct tui_question {
    bool saw_headline, saw_detail;
    bool painted;       /* a frame with it reached the terminal, at painted_ms */
    int64_t painted_ms; /* keys typed up to then, and a moment longer, were meant for something else */
} tui_question;

/* Where the person was when the tour began. */
typedef struct tui_tour {
    tui_focus focus;
    tui_view_id view;
} tui_tour;

/* The other side of a what-if's replay: the session as it was recorded. */
typedef struct tui_beside {
    tui_state state;
    tui_rows rows;
} tui_beside;

typedef struct tui_ui {
    tui_state state;
    tui_beside *beside; /* NULL: nothing is compared */
    tui_host host;
    const tui_glyphs *glyphs;
    int64_t now_ms; /* set before each call; 0: no clock */
    bool replay;
    bool playing;
    uint32_t replay_turns; /* of the whole session */

    /* The engine, as the worker tells. */
    bool loading, failed, busy;
    double load_share;
    char *load_text;
    char *idle_work;      /* what is done while nobody waits; NULL: nothing */
    int64_t idle_work_ms; /* since when */

    /* Panes. */
    tui_focus focus;
    tui_view_id view, view_before; /* view_before: where q goes back to */
    bool wide;                     /* both panes are on the screen, as of the last draw */
    int chat_scroll;               /* lines above the end; 0 follows */
    int chat_page, chat_lines;     /* as of the last draw */
    bool unfolded;                 /* Ctrl+O */

    /* The inspector: one cursor, a token, for all views. */
    uint32_t at;
    bool at_end;         /* follows the newest token */
    uint32_t shown_turn; /* 0: follows the session */
    tui_rows live, past;
    int strip_columns;
    uint32_t strip_bin;
    uint32_t unit_from, unit_to; /* the tokens [from, to) at the cursor, as of the last draw; equal: none */
    int page;                    /* units of a page, as of the last draw */
    int sort, columns;
    char *find;

    /* The input line. */
    tui_editor editor;
    tui_lines lines;
    tui_complete complete;
    char **skills; /* as the host gave them; NULL: not asked yet */
    tui_asking asking;
    char *rewound_request; /* of the turn that a rewind was chosen for: the input line's once it is done */
    char *kept_input;      /* what was being typed when a question came */
    char **queue;          /* typed ahead while the model works */
    size_t n_queue, cap_queue;

    tui_popup popup;
    int popup_at, popup_scroll;
    int popup_page; /* lines of its text on the screen, as of the last draw */
    base_buf popup_text;
    const char *popup_title; /* of TUI_POPUP_TEXT; a literal */
    tui_tour tour;
    char *message; /* one line above the input, until the next key */
    int64_t esc_ms;
    tui_question question;
    bool esc_armed, quit_armed;
    int mode; /* agent_mode that was asked for and not confirmed yet; -1: as the session says */
} tui_ui;

void tui_ui_init(tui_ui *u, const tui_host *host, bool utf8, bool letters);
void tui_ui_free(tui_ui *u);

void tui_ui_event(tui_ui *u, const agent_event *e);
void tui_ui_loading(tui_ui *u, double share, const char *what);
void tui_ui_ready(tui_ui *u);
void tui_ui_doing(tui_ui *u, const char *what); /* NULL: nothing any more */
void tui_ui_idle(tui_ui *u);                    /* the submitted line is done: the next queued one goes */
void tui_ui_failed(tui_ui *u, const char *text);

void tui_ui_painted(tui_ui *u); /* what was drawn last is on the terminal, as of now_ms */

/* For the parts of the shell. */
void tui_ui_say(tui_ui *u, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tui_ui_submit(tui_ui *u, const char *text); /* sends, or queues while busy */
const char *tui_ui_mode(const tui_ui *u);
const tui_rows *tui_ui_rows(tui_ui *u); /* of the turn that is shown */
uint32_t tui_ui_turn(const tui_ui *u);
char *const *tui_ui_skills(tui_ui *u); /* never NULL; valid until the next event */
bool tui_ui_moving(const tui_ui *u);   /* something on the screen changes with time: a rate, a time left */

void tui_popup_open(tui_ui *u, tui_popup p);                              /* TUI_POPUP_NONE: closes it */
void tui_popup_show_text(tui_ui *u, const char *title, const char *text); /* title: a literal */
void tui_tour_end(tui_ui *u); /* closes it and goes back to where the person was */
/* The turns a rewind can go back to, newest first: item index of each. */
size_t tui_rewind_targets(const tui_ui *u, size_t *items, size_t max);

#endif
