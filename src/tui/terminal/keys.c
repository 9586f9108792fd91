/*
 * curses input to key codes: a table for the keys that terminfo names, and the sequences that it does not
 * (bracketed paste, word moves, Alt+Enter). What a terminal says for itself is no key: strings (OSC, DCS, SOS, PM, APC) and
 * sequences that nobody knows are taken whole, or their letters would be typed into the line.
 */
#include "tui/terminal/keys.h"

#include <curses.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

enum {
    OWN_FIRST = 0x800,
    PASTE_BEGIN = OWN_FIRST,
    WORD_LEFT,
    WORD_RIGHT,
    KILL_WORD,
    NEW_LINE,
    COMMAND,
    STRING
};
enum {
    MAX_PASTE = 8 << 20,
    PASTE_WAIT_MS = 1000,
    FIRST_WAIT_MS = 100 /* Alt+] begins no string: nothing follows at once */
};
enum {
    ESC = 27,
    DELETE = 0x7f,
    C1_FIRST = 0x80,
    C1_DCS = 0x90,
    C1_SOS = 0x98,
    C1_CSI = 0x9b,
    C1_OSC = 0x9d,
    C1_LAST = 0x9f
};
enum { CTRL_C = 3, CAN = 0x18, SUB = 0x1a };

static const struct {
    const char *sequence;
    int code;
} sequences[] = {
    {"\033[200~", PASTE_BEGIN},
    {"\033]", COMMAND},
    {"\033P", STRING},
    {"\033X", STRING},
    {"\033^", STRING},
    {"\033_", STRING},
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
    define_key(NULL, KEY_MOUSE); /* nobody asked for it, and curses would leave its numbers behind */
}

static bool is_there(int wait_ms)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&fd, 1, wait_ms) > 0;
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
        if (!is_there(PASTE_WAIT_MS)) break;
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

/*
 * To its end: BEL, ESC \\ (or that in one letter), what calls it off, a key. One that does not end is dropped, and Ctrl+C is
 * heard in all of them. Answers are short: the beginning is kept.
 */
static void read_string(bool is_command)
{
    static const char background[] = "11;";
    enum { N = sizeof background - 1, MOST = N + 64 };
    char text[MOST];
    size_t n = 0;
    int before = 0, byte;
    for (int wait = FIRST_WAIT_MS;; wait = PASTE_WAIT_MS, before = byte) {
        byte = getch();
        if (byte == ERR && is_there(wait)) byte = getch();
        if (byte == ERR || byte == CAN || byte == SUB) return;
        if (byte == '\a') break;
        if ((before == ESC && byte == '\\') || (before == 0xc2 && byte == 0x9c)) {
            n -= n <= MOST;
            break;
        }
        if (before == ESC || byte == CTRL_C || byte > 0xff) {
            ungetch(byte);
            if (before == ESC) ungetch(ESC);
            return;
        }
        if (n < MOST) text[n] = (char)byte;
        n += n <= MOST; /* one more: it is too long */
    }
    if (is_command && on_background && n > N && n <= MOST && !memcmp(text, background, N))
        on_background(text + N, n - N);
}

/* The next character of a sequence that has begun; 0: none comes, or a key does. */
static wint_t next_of_sequence(void)
{
    wint_t c;
    int kind = get_wch(&c);
    if (kind == ERR && is_there(FIRST_WAIT_MS)) kind = get_wch(&c);
    return kind == OK ? c : 0;
}

/* Behind ESC [: parameters and the letter that ends it. */
static void skip_control_sequence(void)
{
    enum { MOST = 4096 };
    bool is_bare = true;
    wint_t c = next_of_sequence();
    for (int i = 0; c >= ' ' && c < '@' && i < MOST; i++) {
        is_bare = false;
        c = next_of_sequence();
    }
    if (c && (c < ' ' || c >= DELETE)) unget_wch((wchar_t)c);
    for (int i = 0; c == 'M' && is_bare && i < 3; i++) next_of_sequence(); /* a mouse in its oldest form */
}

/* Behind an ESC that curses knows no key for: was it a sequence, which is gone then? Else it was the key. */
static bool skip_sequence(void)
{
    wint_t c;
    const int kind = get_wch(&c);
    if (kind == OK && c == '[')
        skip_control_sequence();
    else if (kind == OK && c == 'O')
        next_of_sequence();
    else if (kind == OK)
        unget_wch((wchar_t)c);
    else if (kind == KEY_CODE_YES)
        ungetch((int)c);
    return kind == OK && (c == '[' || c == 'O');
}

/* A control character of 8 bits: no key begins with one. */
static void skip_c1(wint_t c)
{
    if (c == C1_CSI)
        skip_control_sequence();
    else if (c == C1_DCS || c == C1_SOS || c >= C1_OSC)
        read_string(c == C1_OSC);
}

bool tui_keys_read(uint32_t *ret, base_buf *paste)
{
    wint_t c;
    for (;;) {
        int kind = get_wch(&c);
        if (kind == ERR) return false;
        if (kind == OK && c > 0x10ffff) continue; /* no character, though the C library takes it for one */
        if (kind == OK && c >= C1_FIRST && c <= C1_LAST) {
            skip_c1(c);
            continue;
        }
        if (kind == OK && c == ESC && skip_sequence()) continue;
        if (kind == OK) {
            *ret = c == DELETE ? TUI_KEY_BACKSPACE : (uint32_t)c;
            return true;
        }
        if (c == PASTE_BEGIN) {
            read_paste(paste);
            *ret = TUI_KEY_PASTE;
            return true;
        }
        if (c == COMMAND || c == STRING) {
            read_string(c == COMMAND);
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
