#include "key_names.h"

#include <string.h>

#include "base/utf8.h"
#include "tui/terminal/keys.h"

#define KEY_ROW(id, name) {name, TUI_KEY_##id},
static const struct {
    const char *name;
    uint32_t key;
} named[] = {
    TUI_KEYS(KEY_ROW){"Enter", TUI_KEY_ENTER}, {"Tab", TUI_KEY_TAB}, {"Esc", TUI_KEY_ESC}, {"Space", ' '}};

uint32_t key_named(const char *name)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!strcmp(named[i].name, name)) return named[i].key;
    size_t n = strlen(name);
    if (n == 3 && !strncmp(name, "C-", 2)) return TUI_CTRL(name[2]);
    uint32_t cp = 0;
    return n > 0 && base_utf8_decode(name, n, &cp) == n ? cp : 0;
}
