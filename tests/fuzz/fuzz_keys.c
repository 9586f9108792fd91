/*
 * Any bytes from a terminal: each becomes a character, a named key, a part of a paste or of what a terminal says for itself, and
 * reading comes to an end. The letters of a string (OSC, DCS, SOS, PM, APC) that is whole are never keys.
 */
#include <curses.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tui/terminal/keys.h"
#include "tui/terminal/palette.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void take_background(const char *text, size_t n)
{
    if (tui_background_of_answer(text, n) >= TUI_N_BACKGROUNDS) abort();
}

static void open_terminal(void)
{
    FILE *out = fopen("/dev/null", "w");
    if (!setlocale(LC_CTYPE, "C.UTF-8") || !out || !newterm("xterm", out, stdin)) abort();
    raw();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(0);
    tui_keys_open();
    tui_keys_on_background(take_background);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    enum { HELD = 256 }; /* curses keeps an unfinished character or sequence of the input before */
    static bool is_open;
    int ends[2];
    if (n > 1 << 15 || pipe(ends)) return 0; /* a pipe holds twice that */
    if (n && write(ends[1], bytes, n) != (ssize_t)n) abort();
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    if (!is_open) open_terminal();
    is_open = true;
    base_buf paste = {0};
    uint32_t key;
    size_t n_keys = 0, n_pasted = 0;
    while (tui_keys_read(&key, &paste)) {
        const bool is_named = key > TUI_KEY_FIRST && key < TUI_KEY_LAST;
        if ((key > 0x10ffff && !is_named) || (key >= 0x80 && key < 0xa0)) abort();
        if (key == TUI_KEY_PASTE) n_pasted += paste.len;
        if (++n_keys + n_pasted > n + HELD) abort(); /* a byte is read once */
    }
    base_buf_free(&paste);
    return 0;
}
