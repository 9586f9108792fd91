/*
 * curses input to key codes: a table for the keys that terminfo names, and the sequences that it does not
 * (bracketed paste, word moves, Alt+Enter).
 */
#include "tui/terminal/keys.h"

#include <curses.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

enum { OWN_FIRST = 0x800, PASTE_BEGIN = OWN_FIRST, WORD_LEFT, WORD_RIGHT, KILL_WORD, NEW_LINE, BACKGROUND };
enum { MAX_PASTE = 8 << 20, PASTE_WAIT_MS = 1000 };

static const struct {
    const char *sequence;
    int code;
} sequences[] = {
    {"\033[200~", PASTE_BEGIN},
    {"\033]11;", BACKGROUND},
    {"\033[1;5D", WORD_LEFT},
    {"\033[1;5C", WORD_RIGHT},
    {"\033[1;3D", WORD_LEFT},
    {"\033[1;3C", WORD_RIGHT},
    {"\033b", WORD_LEFT},
    {"\033f", WORD_RIGHT},
    {"\033\177", KILL_WORD},
    {"\033\r", NEW_LINE},
    {"\033[13;2u", NEW_LINE},
    {"\033[13;3u", NEW_LINE},
};

static const struct {
    int code;
    uint32_t key;
} codes[] = {
    {KEY_UP, TUI_KEY_UP},
    {KEY_DOWN, TUI_KEY_DOWN},
    {KEY_LEFT, TUI_KEY_LEFT},
    {KEY_RIGHT, TUI_KEY_RIGHT},
    {KEY_HOME, TUI_KEY_HOME},
    {KEY_END, TUI_KEY_END},
    {KEY_PPAGE, TUI_KEY_PAGE_UP},
    {KEY_NPAGE, TUI_KEY_PAGE_DOWN},
    {KEY_DC, TUI_KEY_DELETE},
    {KEY_BACKSPACE, TUI_KEY_BACKSPACE},
    {KEY_BTAB, TUI_KEY_BACKTAB},
    {KEY_ENTER, TUI_KEY_ENTER},
    {KEY_F(1), TUI_KEY_F1},
    {KEY_F(2), TUI_KEY_F2},
    {KEY_RESIZE, TUI_KEY_RESIZE},
    {WORD_LEFT, TUI_KEY_WORD_LEFT},
    {WORD_RIGHT, TUI_KEY_WORD_RIGHT},
    {KILL_WORD, TUI_KEY_ALT_BACKSPACE},
    {NEW_LINE, TUI_KEY_ALT_ENTER},
};

void tui_keys_open(void)
{
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
        define_key(sequences[i].sequence, sequences[i].code);
}

/*
 * curses reads byte by byte, two calls each: a megabyte would take seconds. Behind the opening sequence it
 * holds nothing back, so the text is read straight from the terminal; what follows the closing one goes back
 * to curses.
 */
static void read_paste(base_buf *paste)
{
    static const char closing[] = "\033[201~";
    enum { N_CLOSING = sizeof closing - 1, MOST_BEHIND = 100 };
    char bytes[65536], behind[N_CLOSING + sizeof bytes];
    size_t n_held = 0; /* the end of what was read, which may be the beginning of the closing sequence */
    base_buf_clear(paste);
    for (;;) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&fd, 1, PASTE_WAIT_MS) <= 0) break;
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n <= 0) break;
        memcpy(behind + n_held, bytes, (size_t)n);
        size_t have = n_held + (size_t)n;
        char *end = memmem(behind, have, closing, N_CLOSING);
        size_t text = end ? (size_t)(end - behind) : have > N_CLOSING - 1 ? have - (N_CLOSING - 1) : 0;
        if (paste->len < MAX_PASTE) base_buf_add(paste, behind, text);
        if (end) {
            size_t left = have - text - N_CLOSING;
            for (size_t i = left < MOST_BEHIND ? left : MOST_BEHIND; i > 0; i--)
                ungetch((unsigned char)end[N_CLOSING + i - 1]);
            return;
        }
        n_held = have - text;
        memmove(behind, behind + text, n_held);
    }
    base_buf_add(paste, behind, n_held); /* the terminal never closed it */
}

static tui_keys_answer_fn *on_background;

void tui_keys_on_background(tui_keys_answer_fn *tell)
{
    on_background = tell;
}

/* Up to BEL or ESC \\, straight from the terminal as a paste is. One that does not end is dropped. */
static void read_background(void)
{
    char text[64], byte;
    size_t n = 0;
    for (;;) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&fd, 1, PASTE_WAIT_MS) <= 0 || read(STDIN_FILENO, &byte, 1) != 1 || n == sizeof text) return;
        if (byte == '\a') break;
        if (byte == '\\' && n && text[n - 1] == '\033') {
            n--;
            break;
        }
        text[n++] = byte;
    }
    if (on_background) on_background(text, n);
}

bool tui_keys_read(uint32_t *ret, base_buf *paste)
{
    wint_t c;
    for (;;) {
        int kind = get_wch(&c);
        if (kind == ERR) return false;
        if (kind == OK && c > 0x10ffff) continue; /* no character, though the C library takes it for one */
        if (kind == OK) {
            *ret = c == 0x7f ? TUI_KEY_BACKSPACE : (uint32_t)c;
            return true;
        }
        if (c == PASTE_BEGIN) {
            read_paste(paste);
            *ret = TUI_KEY_PASTE;
            return true;
        }
        if (c == BACKGROUND) {
            read_background();
            *ret = TUI_KEY_RESIZE;
            return true;
        }
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
            if (codes[i].code == (int)c) {
                *ret = codes[i].key;
                return true;
            }
    }
}
