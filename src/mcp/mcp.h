/*
 * Servers of the Model Context Protocol, by the person's configuration: started when the first request comes, confined
 * like commands (tools/run/served.h), asked which tools they have, and called. The model is told of a tool in one
 * line, and of its arguments when it first calls it without them.
 *
 * Thread: the engine thread; everything waits with a bound and polls *cancel.
 */
#ifndef KVIST_MCP_MCP_H
#define KVIST_MCP_MCP_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/json.h"
#include "mcp/config.h"
#include "tools/tool.h"

typedef struct mcp mcp;

/* path: mcp.json. A missing file gives no servers; *notes gets a sentence for each server that cannot be used, a line each. */
int mcp_open(mcp **ret, const char *path, base_buf *notes, base_err *err);
void mcp_close(mcp *m); /* ends the servers */

bool mcp_has_servers(const mcp *m); /* one at least that may be started; NULL: none */

/*
 * Before a request: starts what is to run and was never started, and asks again who said that his tools changed. What
 * the person should know goes to *notes, a line each.
 */
void mcp_refresh(mcp *m, tool_workspace *w, const atomic_bool *cancel, base_buf *notes);
/* One line for each tool that the model was not told of; it counts as told. */
void mcp_tell(mcp *m, base_buf *out);
void mcp_forget_told(mcp *m); /* another session begins */
/* Each server, its state and tools, for a person. */
void mcp_describe(mcp *m, base_buf *out);
/* Ends a server, to be started by the next request. BASE_E_NOT_FOUND: none has this name. */
int mcp_restart(mcp *m, const char *name, base_err *err);

/* Names of the tools as the model calls them ("SERVER.TOOL"), NULL-terminated; the caller frees each and the array. */
char **mcp_names(const mcp *m);

/* As the mcp tool of tools/tool_mcp.c wants them. */
extern const tool_outside mcp_outside;

#endif
