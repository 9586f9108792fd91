/* Lines of JSON-RPC (contract: rpc.h). */
#include "acp/rpc.h"

#include <stdio.h>
#include <string.h>

static void send(base_buf *message)
{
    base_buf_puts(message, "}\n");
    fwrite(message->data, 1, message->len, stdout);
    fflush(stdout);
    base_buf_free(message);
}

static void put_id(base_buf *out, const base_json *id)
{
    if (id)
        base_json_put(out, id);
    else
        base_buf_puts(out, "null");
}

void acp_send_result(const base_json *id, const char *result)
{
    base_buf out = {0};
    base_buf_puts(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    put_id(&out, id);
    base_json_put_member(&out, "result", result);
    send(&out);
}

void acp_send_error(const base_json *id, int code, const char *sentence)
{
    base_buf out = {0};
    base_buf_puts(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    put_id(&out, id);
    base_buf_printf(&out, ",\"error\":{\"code\":%d", code);
    base_json_put_member_str(&out, "message", sentence);
    base_buf_putc(&out, '}');
    send(&out);
}

void acp_send_call(const char *method, const char *params, long id)
{
    base_buf out = {0};
    base_buf_puts(&out, "{\"jsonrpc\":\"2.0\"");
    if (id > 0) base_buf_printf(&out, ",\"id\":%ld", id);
    base_json_put_member_str(&out, "method", method);
    base_json_put_member(&out, "params", params);
    send(&out);
}
