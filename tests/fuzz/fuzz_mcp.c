/*
 * What an MCP server says, and the file that names servers: a first byte chooses which. Names are names, lines are
 * harmless and bounded, and everything is freed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "mcp/config.h"
#include "mcp/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void want(bool good)
{
    if (!good) abort();
}

static void check_line(const char *s, size_t most)
{
    want(strlen(s) <= most + 8 && base_utf8_valid(s, strlen(s)));
    for (const char *c = s; *c; c++) want((unsigned char)*c >= ' ' && *c != 0x7f);
}

static void check_config(const char *text, size_t n)
{
    mcp_config c;
    base_err err = {0};
    if (mcp_config_parse(text, n, &c, &err)) {
        want(*err.msg);
        mcp_config_free(&c);
        return;
    }
    want(c.n <= MCP_MOST_SERVERS);
    for (size_t i = 0; i < c.n; i++) {
        const mcp_server_config *s = &c.servers[i];
        check_line(s->name, 1 << 20);
        if (s->wrong) {
            check_line(s->wrong, 1 << 20);
            continue;
        }
        want(mcp_is_name(s->name, MCP_MOST_NAME, false) && s->argv && *s->argv[0]);
        for (char **e = s->env; e && *e; e++) want(strchr(*e, '=') != NULL);
        for (char **p = s->readable; p && *p; p++) want(**p == '/');
        want(s->seconds >= 1 && s->seconds <= 3600);
    }
    mcp_config_free(&c);
}

static void check_message(const char *text, size_t n)
{
    mcp_message m;
    mcp_message_parse(text, n, &m);
    want(m.kind == MCP_NONSENSE || m.kind == MCP_NOTE || m.value);
    want((m.kind != MCP_REQUEST && m.kind != MCP_NOTE) || m.method);
    if (m.kind == MCP_ANSWER) {
        mcp_tools t = {0};
        char *cursor = NULL;
        base_buf out = {0};
        mcp_tools_add(&t, m.value, &cursor);
        want(t.n <= MCP_MOST_TOOLS);
        for (size_t i = 0; i < t.n; i++) {
            want(mcp_is_name(t.all[i].name, 128, true) && mcp_tools_get(&t, t.all[i].name) == &t.all[i]);
            check_line(t.all[i].about, MCP_MOST_ABOUT);
            check_line(t.all[i].schema, MCP_MOST_SCHEMA);
        }
        mcp_result_text(m.value, &out);
        mcp_revision(m.value);
        base_buf_free(&out);
        free(cursor);
        mcp_tools_free(&t);
    }
    mcp_message_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (!n) return 0;
    if (bytes[0] == 'c')
        check_config((const char *)bytes + 1, n - 1);
    else
        check_message((const char *)bytes + 1, n - 1);
    return 0;
}
