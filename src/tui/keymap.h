/*
 * What keys do, as a table: the dispatcher, the help and the "unknown key" line read the same rows.
 */
#ifndef KVIST_TUI_KEYMAP_H
#define KVIST_TUI_KEYMAP_H

#include "tui/ui.h"

typedef enum tui_scope {
    TUI_SCOPE_CHAT,
    TUI_SCOPE_APPROVAL,
    TUI_SCOPE_INSPECTOR,
    TUI_SCOPE_REPLAY,
    TUI_N_SCOPES
} tui_scope;
extern const char *const tui_scope_names[TUI_N_SCOPES];

typedef struct tui_binding {
    tui_scope scope;
    uint32_t key;
    const char *label, *about; /* about NULL: a second key for the row before */
    void (*run)(tui_ui *u, uint32_t key);
    uint32_t last; /* the row is for `key` to this one; 0: for `key` alone */
} tui_binding;
extern const tui_binding tui_keymap[]; /* ends with a NULL run */

/* Runs the key's row of a scope; false: it has none. */
bool tui_keymap_run(tui_ui *u, tui_scope scope, uint32_t key);

#endif
