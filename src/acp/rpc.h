/*
 * JSON-RPC 2.0 as lines: a message a line in, a message a line out (the stdio transport of the Agent Client
 * Protocol, https://agentclientprotocol.com/protocol/v1/transports). Stdout carries nothing else.
 */
#ifndef KVIST_ACP_RPC_H
#define KVIST_ACP_RPC_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/lines.h"

enum {
    ACP_PARSE_ERROR = -32700,
    ACP_INVALID_REQUEST = -32600,
    ACP_NO_METHOD = -32601,
    ACP_INVALID_PARAMS = -32602,
    ACP_INTERNAL_ERROR = -32603,
    ACP_NOT_FOUND = -32002,
    ACP_MOST_LINE = 16 << 20, /* bytes; a longer message is refused */
};

/* Each writes one line at once. id: of the request that is answered, NULL for null; result: a JSON value. */
void acp_send_result(const base_json *id, const char *result);
void acp_send_error(const base_json *id, int code, const char *sentence); /* code: one of the above */
/* params: a JSON object. With an id above 0 it is a request, else a notification. */
void acp_send_call(const char *method, const char *params, long id);

#endif
