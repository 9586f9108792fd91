/*
 * Grid to curses. Rows that did not change since the last paint are not touched; curses finds the least to
 * send and sends it in one doupdate. Roles become colours of the middle range, readable on light and dark
 * grounds alike; the ground itself is the terminal's own.
 */
#include "tui/terminal/painter.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tui/terminal/keys.h"
#include "tui/terminal/palette.h"

static struct {
    SCREEN *screen;
    FILE *out; /* of our own: the program's stdout lets no escape sequence through (base/door.h) */
    bool open, utf8, colours, all;
    bool is_asked;     /* for the background, and not answered yet */
    uint64_t asked_ns; /* when */
    tui_grid shown;    /* as it was painted last */
} painter;

/* Without colours attributes tell the loud ones apart; the letters tell the rest. */
static const attr_t attributes_mono[TUI_N_ROLES] = {
    [TUI_USER] = A_BOLD, [TUI_WARN] = A_BOLD, [TUI_ERR] = A_BOLD, [TUI_PROMOTED] = A_BOLD};

static void send_raw(const char *s, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, s, n);
        if (done <= 0) return;
        s += done;
        n -= (size_t)done;
    }
}

static void set_modes(bool on)
{
    static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";
    send_raw(on ? paste_on : paste_off, sizeof paste_on - 1);
}

static void set_colours(tui_background background)
{
    for (short i = 0; i < TUI_N_ROLES; i++)
        init_pair(
            (short)(i + 1), (COLORS >= 256 ? tui_palette_256 : tui_palette_8)(background, (tui_role)i), -1);
}

static void background_told(const char *text, size_t n)
{
    const tui_background background = tui_background_of_answer(text, n);
    painter.is_asked = false;
    if (background != TUI_BACKGROUND_UNKNOWN) set_colours(background);
    tui_painter_repaint();
}

/*
 * The colours fit it once the answer comes, which may be never: nobody waits. A console of Linux would show the
 * question, and so would who is no terminal.
 */
static void ask_background(void)
{
    static const char question[] = "\033]11;?\033\\";
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || !strncmp(term, "linux", 5)) return;
    tui_keys_on_background(background_told);
    send_raw(question, sizeof question - 1);
    painter.is_asked = true;
    painter.asked_ns = base_clock_ns();
}

#define ASKED_LATELY_NS                                                                                      \
    (10 * UINT64_C(1000000000)) /* later no answer comes, and what does is somebody's typing */

/* An answer that is on its way belongs to nobody behind us: the next program would take it for keys. */
static void drop_answer(void)
{
    enum { ANSWER_MS = 100 };
    char bytes[128];
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&fd, 1, ANSWER_MS) > 0 && read(STDIN_FILENO, bytes, sizeof bytes) < 0) return;
}

int tui_painter_open(bool no_color, base_err *err)
{
    setlocale(LC_CTYPE, "");
    painter.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    int fd = dup(STDOUT_FILENO);
    painter.out = fd < 0 ? NULL : fdopen(fd, "w");
    painter.screen = painter.out ? newterm(NULL, painter.out, stdin) : NULL;
    if (!painter.screen) {
        if (painter.out)
            fclose(painter.out);
        else if (fd >= 0)
            close(fd);
        painter.out = NULL;
        return base_fail(err, BASE_E_UNSUPPORTED,
            "the terminal type \"%s\" is not known here; use --linear, or set TERM",
            getenv("TERM") ? getenv("TERM") : "");
    }
    set_term(painter.screen);
    painter.open = true;
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    intrflush(stdscr, FALSE);
    set_escdelay(25);
    leaveok(stdscr, FALSE);
    painter.colours = !no_color && has_colors() && start_color() == OK;
    if (painter.colours) {
        const tui_background background = tui_background_of(getenv("COLORFGBG"));
        use_default_colors();
        set_colours(background);
        if (background == TUI_BACKGROUND_UNKNOWN) ask_background();
    }
    tui_keys_open();
    set_modes(true);
    painter.all = true;
    return 0;
}

void tui_painter_close(void)
{
    if (!painter.open) return;
    set_modes(false);
    if (painter.is_asked && base_clock_ns() - painter.asked_ns < ASKED_LATELY_NS) drop_answer();
    endwin();
    delscreen(painter.screen);
    fclose(painter.out);
    tui_grid_free(&painter.shown);
    painter.open = false;
}

bool tui_painter_utf8(void)
{
    return painter.utf8;
}

bool tui_painter_colours(void)
{
    return painter.colours;
}

void tui_painter_size(int *width, int *height)
{
    *width = COLS;
    *height = LINES;
}

void tui_painter_resized(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    painter.all = true;
}

void tui_painter_repaint(void)
{
    painter.all = true;
    clearok(stdscr, TRUE);
}

static attr_t attributes_of(tui_style s)
{
    attr_t a = A_NORMAL;
    if (s.attr & TUI_BOLD) a |= A_BOLD;
    if (s.attr & TUI_DIM) a |= A_DIM;
    if (s.attr & TUI_REVERSE) a |= A_REVERSE;
    if (s.attr & TUI_UNDERLINE) a |= A_UNDERLINE;
    if (!painter.colours) a |= attributes_mono[s.role];
    return a;
}

static void paint_row(const tui_cell *row, int y, int width)
{
    for (int x = 0; x < width; x++) {
        const tui_cell *c = row + x;
        if (c->width == 0) {
            if (!painter.utf8)
                mvaddch(y, x, ' '); /* behind the one column that stands for a wide character */
            continue;
        }
        wchar_t text[CCHARW_MAX + 1] = L" ";
        size_t n = 0;
        for (size_t at = 0; at < c->n_bytes && n < CCHARW_MAX;) {
            uint32_t cp;
            at += base_utf8_decode(c->bytes + at, c->n_bytes - at, &cp);
            text[n++] = painter.utf8 || cp < 0x80 ? (wchar_t)cp : L'?';
            if (!painter.utf8) break;
        }
        text[n ? n : 1] = 0;
        short pair = painter.colours ? (short)(c->style.role + 1) : 0;
        cchar_t cell;
        if (setcchar(&cell, text, attributes_of(c->style), pair, NULL) == ERR)
            setcchar(&cell, L"?", A_NORMAL, 0, NULL);
        mvadd_wch(y, x, &cell);
    }
}

void tui_painter_paint(const tui_grid *g)
{
    bool same_size =
        painter.shown.cells && painter.shown.width == g->width && painter.shown.height == g->height;
    if (!same_size) tui_grid_resize(&painter.shown, g->width, g->height);
    size_t row_bytes = (size_t)g->width * sizeof *g->cells;
    for (int y = 0; y < g->height && y < LINES; y++) {
        const tui_cell *row = g->cells + (size_t)y * (size_t)g->width;
        tui_cell *before = painter.shown.cells + (size_t)y * (size_t)g->width;
        if (!painter.all && same_size && !memcmp(row, before, row_bytes)) continue;
        paint_row(row, y, g->width < COLS ? g->width : COLS);
        memcpy(before, row, row_bytes);
    }
    painter.all = false;
    if (g->cursor_x >= 0 && g->cursor_y >= 0) {
        curs_set(1);
        move(g->cursor_y, g->cursor_x);
    } else {
        curs_set(0);
    }
    wnoutrefresh(stdscr);
    doupdate();
}

void tui_painter_leave(void)
{
    set_modes(false);
    def_prog_mode();
    endwin();
}

void tui_painter_return(void)
{
    reset_prog_mode();
    tui_painter_resized();
    set_modes(true);
    tui_painter_repaint();
}

void tui_painter_send(const char *text, size_t n)
{
    send_raw(text, n);
}

void tui_painter_copy(const char *text, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    base_buf b = {0};
    base_buf_puts(&b, "\033]52;c;");
    for (size_t i = 0; i < n; i += 3) {
        unsigned char in[3] = {0};
        size_t k = n - i < 3 ? n - i : 3;
        memcpy(in, text + i, k);
        base_buf_putc(&b, digits[in[0] >> 2]);
        base_buf_putc(&b, digits[(in[0] & 3) << 4 | in[1] >> 4]);
        base_buf_putc(&b, k > 1 ? digits[(in[1] & 15) << 2 | in[2] >> 6] : '=');
        base_buf_putc(&b, k > 2 ? digits[in[2] & 63] : '=');
    }
    base_buf_putc(&b, '\a');
    send_raw(b.data, b.len);
    base_buf_free(&b);
}
