/*
 * Talking to one server (contract: server.h). It may say anything at any time: what is no answer to the request that
 * waits is passed by, requests of its own are refused, and all of it counts against a bound, so that a server that
 * never comes to the point is given up.
 */
#include "mcp/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { NO_METHOD = -32601, MOST_PAGES = 16, MOST_MESSAGES = 4096 };
#define MOST_BYTES  ((size_t)64 << 20) /* of all that it says while a request waits */
#define SECOND      UINT64_C(1000000000)
#define GREETING    "initialize"
#define GREETING_ID 1

void mcp_server_end(mcp_server *s)
{
    tool_served_stop(s->process);
    s->process = NULL;
    base_lines_free(&s->lines);
    mcp_tools_free(&s->tools);
    free(s->why);
    s->why = NULL;
    s->n_calls = 0;
    s->is_changed = s->is_told = false;
    s->state = MCP_NEW;
}

void mcp_server_free(mcp_server *s)
{
    mcp_server_end(s);
    for (size_t i = 0; i < s->n_known; i++) free(s->known[i].name);
    free(s->known);
    s->known = NULL;
    s->n_known = s->cap_known = 0;
}

static uint64_t end_of(const mcp_server *s)
{
    return base_clock_ns() + s->config->seconds * SECOND;
}

/* ,"id":N where id is above 0: a request. */
static int send(mcp_server *s, const char *method, const char *params, int64_t id, uint64_t end_ns,
    const atomic_bool *cancel, base_err *err)
{
    base_buf line = {0};
    base_buf_puts(&line, "{\"jsonrpc\":\"2.0\"");
    if (id > 0) base_buf_printf(&line, ",\"id\":%lld", (long long)id);
    base_json_put_member_str(&line, "method", method);
    if (params) base_json_put_member(&line, "params", params);
    base_buf_puts(&line, "}\n");
    const int rc = tool_served_send(s->process, line.data, line.len, end_ns, cancel, err);
    base_buf_free(&line);
    return rc;
}

/* A request of the server's: it may ask whether we are there, and nothing else. */
static int refuse(
    mcp_server *s, const mcp_message *m, uint64_t end_ns, const atomic_bool *cancel, base_err *err)
{
    base_buf line = {0};
    base_buf_puts(&line, "{\"jsonrpc\":\"2.0\",\"id\":");
    base_json_put(&line, m->value);
    if (!strcmp(m->method, "ping"))
        base_buf_puts(&line, ",\"result\":{}}\n");
    else
        base_buf_printf(&line,
            ",\"error\":{\"code\":%d,\"message\":\"kvist offers servers nothing but ping\"}}\n", NO_METHOD);
    const int rc = tool_served_send(s->process, line.data, line.len, end_ns, cancel, err);
    base_buf_free(&line);
    return rc;
}

/* What is no answer that anybody waits for. */
static int hear(
    mcp_server *s, const mcp_message *m, uint64_t end_ns, const atomic_bool *cancel, base_err *err)
{
    if (m->kind == MCP_NOTE && !strcmp(m->method, "notifications/tools/list_changed")) s->is_changed = true;
    return m->kind == MCP_REQUEST ? refuse(s, m, end_ns, cancel, err) : 0;
}

static int read_refusal(const base_json *error, base_err *err)
{
    base_buf clean = {0};
    const char *message = base_json_str(error, "message", "no reason");
    base_utf8_sanitise(
        &clean, message, strlen(message) < 300 ? strlen(message) : base_utf8_whole(message, 300), false);
    const int rc = base_fail(err, BASE_E_UNSUPPORTED, "the server refused: %s", clean.data ? clean.data : "");
    base_buf_free(&clean);
    return rc;
}

/*
 * Waits for the answer to request `id`; ret owns it. BASE_E_UNSUPPORTED: a refusal, and the server is as it was. All
 * else means that nothing more can be expected of it.
 */
static int await(
    mcp_server *s, int64_t id, uint64_t end_ns, const atomic_bool *cancel, mcp_message *ret, base_err *err)
{
    base_buf line = {0}, bytes = {0};
    size_t n_bytes = 0, n_messages = 0;
    int rc = 0;
    bool found = false, too_long;
    while (!rc && !found) {
        if (!base_lines_take(&s->lines, &line, &too_long)) {
            base_buf_clear(&bytes);
            rc = tool_served_receive(s->process, &bytes, end_ns, cancel, err);
            if (!rc) base_lines_add(&s->lines, bytes.data, bytes.len);
            n_bytes += bytes.len;
            if (!rc && n_bytes > MOST_BYTES)
                rc = base_fail(err, BASE_E_LIMIT, "it said more than %zu MiB and not what it was asked for",
                    MOST_BYTES >> 20);
            if (!rc && base_clock_ns() >= end_ns)
                rc = base_fail(err, BASE_E_LIMIT, "it did not answer in time");
            continue;
        }
        if (too_long) {
            rc = base_fail(err, BASE_E_LIMIT, "it sent a message above %d MiB", MCP_MOST_LINE >> 20);
            break;
        }
        if (++n_messages > MOST_MESSAGES) {
            rc = base_fail(err, BASE_E_LIMIT, "it sent %d messages that nobody asked for", MOST_MESSAGES);
            break;
        }
        mcp_message_parse(line.data ? line.data : "", line.len, ret);
        found = (ret->kind == MCP_ANSWER || ret->kind == MCP_REFUSAL) && ret->id == id;
        if (found) break;
        rc = hear(s, ret, end_ns, cancel, err);
        mcp_message_free(ret);
    }
    base_buf_free(&line);
    base_buf_free(&bytes);
    if (!rc && ret->kind == MCP_REFUSAL) {
        rc = read_refusal(ret->value, err);
        mcp_message_free(ret);
    }
    return rc;
}

/* What can be said of why, before the process is gone. */
static int gives_up(mcp_server *s, int rc, base_err *err)
{
    base_buf why = {0};
    const char *complaint = tool_served_complaint(s->process);
    base_buf_printf(&why, "%s", err->msg);
    if (*complaint) base_buf_printf(&why, "; it said: %s", complaint);
    mcp_server_end(s);
    s->state = MCP_FAILED;
    s->why = base_buf_take(&why);
    return base_fail(err, (base_code)rc, "%s", s->why);
}

/* A request and its answer. A server that did not answer is ended; a cancelled or refused one stays. */
static int request(mcp_server *s, const char *method, const char *params, uint64_t end_ns,
    const atomic_bool *cancel, mcp_message *ret, base_err *err)
{
    const int64_t id = ++s->n_calls;
    int rc = send(s, method, params, id, end_ns, cancel, err);
    if (!rc) rc = await(s, id, end_ns, cancel, ret, err);
    if (rc == BASE_E_CANCELLED) {
        char told[80];
        snprintf(told, sizeof told, "{\"requestId\":%lld,\"reason\":\"cancelled\"}", (long long)id);
        if (send(s, "notifications/cancelled", told, 0, base_clock_ns() + SECOND, NULL, NULL))
            mcp_server_end(s);
        return rc;
    }
    return rc && rc != BASE_E_UNSUPPORTED ? gives_up(s, rc, err) : rc;
}

/* --- what is asked of it -------------------------------------------------------------------------------- */

int mcp_server_begin(mcp_server *s, tool_workspace *w, base_err *err)
{
    const mcp_server_config *c = s->config;
    mcp_server_end(s);
    s->lines.most = MCP_MOST_LINE;
    const tool_served_options options = {.argv = (const char *const *)c->argv,
        .env = (const char *const *)c->env,
        .readable = (const char *const *)c->readable,
        .writes = c->writes,
        .has_network = c->has_network};
    int rc = tool_served_start(w, &options, &s->process, err);
    if (rc) {
        s->state = MCP_FAILED;
        s->why = base_xstrdup(err->msg);
        return rc;
    }
    base_buf params = {0};
    base_buf_printf(&params,
        "{\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":\"kvist\",\"version\":"
        "\"" KVIST_VERSION "\"}}",
        mcp_newest_revision);
    s->n_calls = GREETING_ID;
    rc = send(s, GREETING, params.data, GREETING_ID, end_of(s), NULL, err);
    base_buf_free(&params);
    return rc ? gives_up(s, rc, err) : 0;
}

int mcp_server_listen(mcp_server *s, const atomic_bool *cancel, base_err *err)
{
    enum { MOST_UNASKED = 4 << 20 };
    /* For all of it: one that never pauses is heard at the next request. */
    const uint64_t end_ns = base_clock_ns() + SECOND;
    base_buf line = {0}, bytes = {0};
    size_t n_bytes = 0;
    int rc;
    bool too_long;
    do {
        base_buf_clear(&bytes);
        rc = tool_served_receive(s->process, &bytes, 0, cancel, err);
        if (!rc) base_lines_add(&s->lines, bytes.data, bytes.len);
        n_bytes += bytes.len;
    } while (!rc && n_bytes < MOST_UNASKED && base_clock_ns() < end_ns);
    if (rc == BASE_E_LIMIT) rc = 0; /* there is nothing more */
    while (!rc && base_lines_take(&s->lines, &line, &too_long)) {
        mcp_message m;
        mcp_message_parse(line.data ? line.data : "", line.len, &m);
        rc = hear(s, &m, end_ns, cancel, err);
        mcp_message_free(&m);
    }
    base_buf_free(&line);
    base_buf_free(&bytes);
    return rc && rc != BASE_E_CANCELLED ? gives_up(s, rc, err) : rc;
}

int mcp_server_greeted(mcp_server *s, uint64_t end_ns, const atomic_bool *cancel, base_err *err)
{
    mcp_message m = {0};
    const uint64_t least = base_clock_ns() + SECOND; /* others may have used the time up */
    if (end_ns < least) end_ns = least;
    int rc = await(s, GREETING_ID, end_ns, cancel, &m, err);
    if (!rc && !mcp_revision(m.value))
        rc = base_fail(
            err, BASE_E_UNSUPPORTED, "it speaks a revision of the protocol that kvist does not know");
    mcp_message_free(&m);
    if (!rc) rc = send(s, "notifications/initialized", NULL, 0, end_ns, cancel, err);
    if (rc == BASE_E_CANCELLED) {
        mcp_server_end(s);
        return rc;
    }
    return rc ? gives_up(s, rc, err) : 0;
}

static bool is_same(const uint8_t a[32], const uint8_t b[32])
{
    return !memcmp(a, b, 32);
}

/* Whether a tool of this name was described otherwise, however long ago in this session; from now on it is as now. *ret_full: nobody knows. */
static bool was_other(mcp_server *s, const mcp_tool *now, bool *ret_full)
{
    for (size_t i = 0; i < s->n_known; i++) {
        mcp_known *k = &s->known[i];
        if (strcmp(k->name, now->name)) continue;
        const bool is_other = !is_same(k->print, now->print);
        memcpy(k->print, now->print, sizeof k->print);
        return is_other;
    }
    *ret_full = *ret_full || s->n_known == MCP_MOST_KNOWN;
    if (s->n_known == MCP_MOST_KNOWN) return false;
    base_grow(&s->known, &s->cap_known, s->n_known + 1, sizeof *s->known);
    mcp_known *k = &s->known[s->n_known++];
    k->name = base_xstrdup(now->name);
    memcpy(k->print, now->print, sizeof k->print);
    return false;
}

static int compare(mcp_server *s, const mcp_tools *before, base_buf *notes, base_err *err)
{
    bool is_full = false;
    for (size_t i = 0; i < s->tools.n; i++) {
        mcp_tool *now = &s->tools.all[i];
        const mcp_tool *then = mcp_tools_get(before, now->name);
        now->is_told = then && then->is_told && is_same(then->print, now->print);
        now->is_shown = now->is_told && then->is_shown;
        if (was_other(s, now, &is_full))
            base_buf_printf(notes, "the MCP server %s describes %s otherwise than before: /mcp shows it\n",
                s->config->name, now->name);
    }
    if (!is_full) return 0;
    base_fail(err, BASE_E_LIMIT, "it named more than %d tools in this session", MCP_MOST_KNOWN);
    return gives_up(s, BASE_E_LIMIT, err);
}

int mcp_server_list(mcp_server *s, const atomic_bool *cancel, base_buf *notes, base_err *err)
{
    mcp_tools before = s->tools;
    const uint64_t end_ns = end_of(s); /* for all pages: each may be as slow as it can */
    char *cursor = NULL;
    int rc = 0;
    s->tools = (mcp_tools){0};
    s->is_changed = false;
    for (int page = 0; page < MOST_PAGES && !rc && (page == 0 || cursor); page++) {
        mcp_message m = {0};
        base_buf params = {0};
        base_buf_putc(&params, '{');
        base_json_put_member_str(&params, "cursor", cursor);
        base_buf_putc(&params, '}');
        free(cursor);
        cursor = NULL;
        rc = request(s, "tools/list", params.data, end_ns, cancel, &m, err);
        if (!rc) mcp_tools_add(&s->tools, m.value, &cursor);
        mcp_message_free(&m);
        base_buf_free(&params);
    }
    free(cursor);
    if (rc == BASE_E_UNSUPPORTED) rc = s->state == MCP_FAILED ? rc : gives_up(s, rc, err);
    if (!rc) {
        s->state = MCP_READY;
        rc = compare(s, &before, notes, err);
    }
    if (rc == BASE_E_CANCELLED) { /* asked again before the next request */
        mcp_tools_free(&s->tools);
        s->tools = before;
        s->is_changed = true;
        return rc;
    }
    mcp_tools_free(&before);
    return rc;
}

int mcp_server_call(mcp_server *s, const char *tool, const char *arguments, const atomic_bool *cancel,
    base_buf *out, bool *ret_failed, base_err *err)
{
    mcp_message m = {0};
    base_buf params = {0};
    base_buf_putc(&params, '{');
    base_json_put_member_str(&params, "name", tool);
    base_json_put_member(&params, "arguments", arguments);
    base_buf_putc(&params, '}');
    int rc = mcp_server_listen(s, cancel, err); /* what it answered before it was asked is none */
    if (!rc) rc = request(s, "tools/call", params.data, end_of(s), cancel, &m, err);
    if (!rc) *ret_failed = mcp_result_text(m.value, out);
    mcp_message_free(&m);
    base_buf_free(&params);
    return rc;
}
