/*
 * Any lines: those that are events go into the shell, others are keys and pasted text. A frame follows the
 * last of them and a few before, at a size that a line's length chooses (a frame after each took 200 ms of a
 * session of 230 lines: 3 inputs a second). Nothing foreign may break the reducer, the views or the grid.
 */
#include <string.h>

#include "tui/dispatch.h"
#include "tui/frame.h"
#include "tui/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST_LINES = 400, MOST_FRAMES = 2 };
    static const int sizes[][2] = {{80, 24}, {130, 40}, {24, 6}, {60, 16}, {10, 3}, {200, 50}};
    tui_ui u;
    tui_host host = {0};
    /* One of each size, kept: its pages would be made anew for every input, a third of a run. */
    static tui_grid grids[sizeof sizes / sizeof *sizes];
    tui_ui_init(&u, &host, true, false);
    for (size_t at = 0, lines = 0, frames = 0; at < size && lines < MOST_LINES; lines++) {
        const char *s = (const char *)data + at, *end = memchr(s, '\n', size - at);
        size_t n = end ? (size_t)(end - s) : size - at;
        at += n + 1;
        agent_event e;
        agent_event_doc *doc;
        if (n && *s == '{' && agent_event_read(s, n, &e, &doc, NULL) == 0) {
            tui_ui_event(&u, &e);
            agent_event_doc_free(doc);
        } else if (n && *s == '"') {
            tui_ui_paste(&u, s, n);
        } else {
            for (size_t i = 0; i < n && i < 16; i++)
                tui_ui_key(
                    &u, (unsigned char)s[i] < 0x80
                            ? (unsigned char)s[i]
                            : TUI_KEY_FIRST + 1 + (unsigned char)s[i] % (TUI_KEY_LAST - TUI_KEY_FIRST - 1));
        }
        const bool is_last = at >= size || lines + 1 == MOST_LINES;
        if (!is_last && (n % 8 != 1 || frames == MOST_FRAMES)) continue;
        frames++;
        const size_t chosen = n % (sizeof sizes / sizeof *sizes);
        tui_grid *grid = &grids[chosen];
        if (!grid->cells) tui_grid_resize(grid, sizes[chosen][0], sizes[chosen][1]);
        tui_ui_draw(&u, grid);
        tui_ui_painted(&u);
    }
    tui_ui_free(&u);
    return 0;
}
