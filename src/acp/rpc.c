/* Lines of JSON-RPC (contract: rpc.h). */
#include "acp/rpc.h"

#include <stdio.h>
#include <string.h>

void acp_lines_add(acp_lines *l, const char *bytes, size_t n)
{
    base_buf_add(&l->held, bytes, n);
}

bool acp_lines_take(acp_lines *l, base_buf *ret, bool *ret_too_long)
{
    const size_t left = l->held.len - l->from;
    const char *line = l->held.data + l->from, *end = left ? memchr(line, '\n', left) : NULL;
    base_buf_clear(ret);
    if (!end) {
        if (left > ACP_MOST_LINE) {
            l->is_too_long = true;
            l->from = l->held.len;
        }
        memmove(l->held.data, l->held.data + l->from, l->held.len - l->from);
        l->held.len -= l->from;
        l->from = 0;
        return false;
    }
    *ret_too_long = l->is_too_long || (size_t)(end - line) > ACP_MOST_LINE;
    if (!*ret_too_long) base_buf_add(ret, line, (size_t)(end - line));
    l->from += (size_t)(end - line) + 1;
    l->is_too_long = false;
    return true;
}

void acp_lines_free(acp_lines *l)
{
    base_buf_free(&l->held);
    *l = (acp_lines){0};
}

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
    acp_put_raw(&out, "result", result);
    send(&out);
}

void acp_send_error(const base_json *id, int code, const char *sentence)
{
    base_buf out = {0};
    base_buf_puts(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    put_id(&out, id);
    base_buf_printf(&out, ",\"error\":{\"code\":%d", code);
    acp_put_str(&out, "message", sentence);
    base_buf_putc(&out, '}');
    send(&out);
}

void acp_send_call(const char *method, const char *params, long id)
{
    base_buf out = {0};
    base_buf_puts(&out, "{\"jsonrpc\":\"2.0\"");
    if (id > 0) base_buf_printf(&out, ",\"id\":%ld", id);
    acp_put_str(&out, "method", method);
    acp_put_raw(&out, "params", params);
    send(&out);
}

static void put_key(base_buf *out, const char *key)
{
    const char last = out->len ? out->data[out->len - 1] : '{';
    base_buf_printf(out, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", key);
}

void acp_put_str(base_buf *out, const char *key, const char *value)
{
    if (!value) return;
    put_key(out, key);
    base_json_put_str(out, value, strlen(value));
}

void acp_put_raw(base_buf *out, const char *key, const char *json)
{
    put_key(out, key);
    base_buf_puts(out, json);
}
