/*
 * One MCP server under way: its process, its tools, and requests to it that end in time whatever it does.
 */
#ifndef KVIST_MCP_SERVER_H
#define KVIST_MCP_SERVER_H

#include <stdatomic.h>

#include "base/lines.h"
#include "mcp/config.h"
#include "mcp/message.h"
#include "tools/run/served.h"

typedef enum mcp_state { MCP_NEW, MCP_READY, MCP_FAILED } mcp_state;

/* A tool as it was described last. A server that leaves one out for a while, or starts anew, changes nothing of that. */
typedef struct mcp_known {
    char *name;
    uint8_t print[32];
} mcp_known;

typedef struct mcp_server {
    const mcp_server_config *config;
    mcp_state state;
    tool_served *process;
    base_lines lines;
    mcp_tools tools;
    mcp_known *known; /* every tool of the session, up to MCP_MOST_KNOWN */
    size_t n_known, cap_known;
    char *why;       /* FAILED: a sentence */
    int64_t n_calls; /* requests so far; the newest one's id */
    bool is_changed; /* it said that its tools are others now */
    bool is_told;    /* FAILED: the person knows */
} mcp_server;

enum { MCP_MOST_KNOWN = 4096 };

void mcp_server_end(mcp_server *s);  /* ends the process; its tools are forgotten, but for what they were */
void mcp_server_free(mcp_server *s); /* ends it and frees the contents */

/* Starts it and says who we are; mcp_server_greeted waits for the answer, so that several start at one time. */
int mcp_server_begin(mcp_server *s, tool_workspace *w, base_err *err);
/*
 * Waits for that answer until base_clock_ns() is end_ns, a second at least. On an error the server is MCP_FAILED, and s->why says it too;
 * BASE_E_CANCELLED: it may be begun again.
 */
int mcp_server_greeted(mcp_server *s, uint64_t end_ns, const atomic_bool *cancel, base_err *err);

/* Takes in what it said while nobody listened, for a second at most: tools that are others now, its end. */
int mcp_server_listen(mcp_server *s, const atomic_bool *cancel, base_err *err);

/* All pages of tools/list, in place of what was known; *notes: tools that are described otherwise than before. */
int mcp_server_list(mcp_server *s, const atomic_bool *cancel, base_buf *notes, base_err *err);

/* arguments: a JSON object. Appends the text; *ret_failed: the tool says that it failed. */
int mcp_server_call(mcp_server *s, const char *tool, const char *arguments, const atomic_bool *cancel,
    base_buf *out, bool *ret_failed, base_err *err);

#endif
