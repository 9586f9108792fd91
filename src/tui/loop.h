/*
 * The terminal's side of a shell that was set up (ui.h): keys, window changes and frames, shared by the live
 * shell and by replay.
 */
#ifndef KVIST_TUI_LOOP_H
#define KVIST_TUI_LOOP_H

#include "tui/ui.h"

typedef struct tui_loop {
    tui_ui *ui;
    int fd;                    /* polled beside the terminal; -1: none */
    bool (*ready)(void *user); /* fd is readable: takes what there is; true when something changed */
    int (*tick)(void *user);   /* replay: called when its time is up; ms until the next call, -1: none */
    void *user;
    bool quit; /* set to end */
} tui_loop;

int tui_loop_open(bool no_color, base_err *err); /* terminal and signals */
void tui_loop_close(void);
void tui_loop_run(tui_loop *l);

/* Host functions that need the terminal. */
char *tui_loop_edit(void *user, const char *text);
void tui_loop_copy(void *user, const char *text, size_t n);
void tui_loop_repaint(void *user);
void tui_loop_suspend(void *user);

/* What stays on the normal screen afterwards: the last answer and how to come back. */
void tui_loop_farewell(const tui_state *s);

#endif
