/* The tables of slash commands and keys as JSON (contract: tui.h). */
#include <string.h>

#include "agent/agent.h"
#include "base/json.h"
#include "tui/input/complete.h"
#include "tui/keymap.h"
#include "tui/tui.h"

/* {"A":a,"B":b,"about":about} */
static void put_row(
    base_buf *out, const char *name_a, const char *a, const char *name_b, const char *b, const char *about)
{
    const char *const fields[][2] = {{name_a, a}, {name_b, b}, {"about", about}};
    if (out->data[out->len - 1] == '}') base_buf_putc(out, ',');
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        base_buf_printf(out, "%c\"%s\":", i ? ',' : '{', fields[i][0]);
        base_json_put_str(out, fields[i][1], strlen(fields[i][1]));
    }
    base_buf_putc(out, '}');
}

void tui_describe(base_buf *out)
{
    uint32_t n;
    const agent_command *commands = agent_commands(&n);
    base_buf_puts(out, "\"slash\":[");
    for (uint32_t i = 0; i < n; i++)
        put_row(out, "name", commands[i].name, "arguments", commands[i].arguments, commands[i].about);
    for (const tui_own_command *o = tui_own_commands; o->name; o++)
        if (!tui_is_agent_command(o->name)) put_row(out, "name", o->name, "arguments", "", o->about);
    base_buf_puts(out, "],\"keys\":[");
    for (const tui_binding *b = tui_keymap; b->run; b++)
        if (b->about) put_row(out, "where", tui_scope_names[b->scope], "keys", b->label, b->about);
    base_buf_puts(out, "]");
}
