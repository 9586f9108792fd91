/*
 * What an MCP server says (Model Context Protocol, revision 2025-06-18, https://modelcontextprotocol.io):
 * JSON-RPC 2.0, a message a line. Everything here is foreign: names that are no names are left out, texts
 * become harmless lines, and each has a bound.
 *
 * Pure; any thread.
 */
#ifndef KVIST_MCP_MESSAGE_H
#define KVIST_MCP_MESSAGE_H

#include <stdbool.h>

#include "base/json.h"

enum {
    MCP_MOST_LINE = 8 << 20, /* bytes of a message */
    MCP_MOST_TOOLS = 64,     /* of a server */
    MCP_MOST_ABOUT = 240,    /* bytes of the line that tells of a tool */
    MCP_MOST_SCHEMA = 6000
};

typedef enum mcp_kind { MCP_NONSENSE, MCP_ANSWER, MCP_REFUSAL, MCP_REQUEST, MCP_NOTE } mcp_kind;

typedef struct mcp_message {
    mcp_kind kind;
    base_json_doc *doc;
    int64_t id;             /* ANSWER, REFUSAL: of our request; -1: none of ours */
    const base_json *value; /* ANSWER: the result; REFUSAL: the error; REQUEST: its id */
    const char *method;     /* REQUEST, NOTE */
} mcp_message;

/* What cannot be read is MCP_NONSENSE. mcp_message_free in any case. */
void mcp_message_parse(const char *line, size_t n, mcp_message *ret);
void mcp_message_free(mcp_message *m);

typedef struct mcp_tool {
    char *name;
    char *about;   /* one harmless line */
    char *schema;  /* of its arguments: JSON, without control characters */
    char **needs;  /* arguments that must be given, NULL-terminated */
    bool is_told;  /* the model knows of it */
    bool is_shown; /* and of its schema */
    /* SHA-256 of all that the server says of it: two texts of a weaker hash can be found. */
    uint8_t print[32];
} mcp_tool;

typedef struct mcp_tools {
    mcp_tool *all;
    size_t n, cap;
    size_t n_left_out; /* more than can be offered, or with names that are none */
} mcp_tools;
void mcp_tools_free(mcp_tools *t);                             /* frees the contents */
mcp_tool *mcp_tools_get(const mcp_tools *t, const char *name); /* NULL: none */

/* A page of tools/list into `t`; *ret_cursor: heap, of the next page, or NULL. */
void mcp_tools_add(mcp_tools *t, const base_json *result, char **ret_cursor);

/* The text of a tools/call result; what is no text is named. True: the tool says that it failed. */
bool mcp_result_text(const base_json *result, base_buf *out);

/* The revision of the protocol that the server answered `initialize` with (static text); NULL: none that we speak. */
const char *mcp_revision(const base_json *result);
extern const char mcp_newest_revision[]; /* that we ask for: "2025-06-18" */

#endif
