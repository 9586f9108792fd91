/*
 * Which MCP servers a person has, from mcp.json in the configuration's folder, in the form that servers'
 * manuals print: {"mcpServers": {"NAME": {"command": "...", "args": [...], "env": {...}}}}. A tree never names
 * one.
 *
 * Pure; any thread.
 */
#ifndef KVIST_MCP_CONFIG_H
#define KVIST_MCP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { MCP_MOST_SERVERS = 16, MCP_MOST_NAME = 64, MCP_MOST_CONFIG = 1 << 20 };
enum { MCP_SECONDS = 30, MCP_START_SECONDS = 10 };

typedef struct mcp_server_config {
    char *name;       /* letters, digits, - and _ */
    char **argv;      /* NULL-terminated, argv[0] is the command */
    char **env;       /* "NAME=VALUE", NULL-terminated */
    char **readable;  /* absolute paths that it may read outside of the tree, NULL-terminated */
    bool has_network; /* it may reach the network */
    bool writes;      /* it may write to the tree */
    bool is_off;
    uint32_t seconds;       /* an answer takes at most so long */
    uint32_t start_seconds; /* the greeting; the same where a person says how long */
    char *wrong;            /* a sentence: why it cannot be started; NULL: it can */
} mcp_server_config;

typedef struct mcp_config {
    mcp_server_config *servers;
    size_t n, cap;
} mcp_config;
void mcp_config_free(mcp_config *c); /* frees the contents */

/* What is wrong with one server is told by its `wrong` and leaves the others alone; bytes that are no such file are an error. */
int mcp_config_parse(const char *text, size_t n, mcp_config *ret, base_err *err);

/* What a server or a tool may be called: letters, digits, "_", "-" and, of a tool, "." and "/". */
bool mcp_is_name(const char *name, size_t most, bool is_tool);

#endif
