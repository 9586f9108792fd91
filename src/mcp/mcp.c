/* All servers of a person, and what the model may ask of them (contract: mcp.h). */
#include "mcp/mcp.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "mcp/server.h"

#define SECOND UINT64_C(1000000000)

struct mcp {
    mcp_config config;
    mcp_server *servers; /* [config.n] */
};

static bool is_wanted(const mcp_server *s)
{
    return !s->config->is_off && !s->config->wrong;
}

static int open_text(mcp **ret, const char *text, size_t n, base_buf *notes, base_err *err)
{
    mcp *m = base_xcalloc(1, sizeof *m);
    const int rc = mcp_config_parse(text, n, &m->config, err);
    if (rc) {
        mcp_config_free(&m->config);
        free(m);
        return rc;
    }
    m->servers = base_xcalloc(m->config.n + 1, sizeof *m->servers);
    for (size_t i = 0; i < m->config.n; i++) {
        m->servers[i].config = &m->config.servers[i];
        if (m->config.servers[i].wrong)
            base_buf_printf(notes, "the MCP server %s is not used: %s\n", m->config.servers[i].name,
                m->config.servers[i].wrong);
    }
    *ret = m;
    return 0;
}

int mcp_open(mcp **ret, const char *path, base_buf *notes, base_err *err)
{
    base_buf text = {0};
    *ret = NULL;
    int rc = base_fs_check_owner(path, err);
    if (!rc) rc = base_fs_read(path, MCP_MOST_CONFIG, &text, err);
    if (rc == BASE_E_NOT_FOUND) {
        rc = open_text(ret, "{\"mcpServers\":{}}", 17, notes, err);
    } else if (!rc) {
        rc = open_text(ret, text.data ? text.data : "", text.len, notes, err);
        if (rc) base_err_prefix(err, "%s", path);
    }
    base_buf_free(&text);
    return rc;
}

void mcp_close(mcp *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->config.n; i++) mcp_server_free(&m->servers[i]);
    free(m->servers);
    mcp_config_free(&m->config);
    free(m);
}

bool mcp_has_servers(const mcp *m)
{
    bool has = false;
    for (size_t i = 0; m && i < m->config.n; i++) has = has || is_wanted(&m->servers[i]);
    return has;
}

void mcp_forget_told(mcp *m)
{
    for (size_t i = 0; m && i < m->config.n; i++)
        for (size_t k = 0; k < m->servers[i].tools.n; k++)
            m->servers[i].tools.all[k].is_told = m->servers[i].tools.all[k].is_shown = false;
}

void mcp_refresh(mcp *m, tool_workspace *w, const atomic_bool *cancel, base_buf *notes)
{
    base_err err = {0};
    bool *is_begun = base_xcalloc(m->config.n + 1, sizeof *is_begun);
    for (size_t i = 0; i < m->config.n; i++) {
        mcp_server *s = &m->servers[i];
        is_begun[i] = is_wanted(s) && s->state == MCP_NEW && !mcp_server_begin(s, w, &err);
    }
    const uint64_t begun_ns = base_clock_ns(); /* they start beside one another */
    for (size_t i = 0; i < m->config.n; i++) {
        mcp_server *s = &m->servers[i];
        const uint64_t end_ns = begun_ns + s->config->start_seconds * SECOND;
        if (is_begun[i] && !mcp_server_greeted(s, end_ns, cancel, &err))
            mcp_server_list(s, cancel, notes, &err);
        if (!is_begun[i] && s->state == MCP_READY) mcp_server_listen(s, cancel, &err);
        if (!is_begun[i] && s->state == MCP_READY && s->is_changed) mcp_server_list(s, cancel, notes, &err);
        if (s->state == MCP_FAILED && !s->is_told)
            base_buf_printf(notes,
                "the MCP server %s gave up its place: %s. Its "
                "tools are not offered; /mcp %s starts it again\n",
                s->config->name, s->why, s->config->name);
        s->is_told = s->state == MCP_FAILED;
    }
    free(is_begun);
}

void mcp_tell(mcp *m, base_buf *out)
{
    for (size_t i = 0; i < m->config.n; i++) {
        mcp_server *s = &m->servers[i];
        for (size_t k = 0; s->state == MCP_READY && k < s->tools.n; k++) {
            mcp_tool *t = &s->tools.all[k];
            if (t->is_told) continue;
            base_buf_printf(out, "%s.%s: %s\n", s->config->name, t->name, t->about);
            t->is_told = true;
        }
    }
}

void mcp_describe(mcp *m, base_buf *out)
{
    for (size_t i = 0; i < m->config.n; i++) {
        const mcp_server *s = &m->servers[i];
        const mcp_server_config *c = s->config;
        base_buf_printf(out, "%s%s\t", out->len ? "\n" : "", c->name);
        if (c->wrong)
            base_buf_printf(out, "not used: %s", c->wrong);
        else if (c->is_off)
            base_buf_puts(out, "disabled");
        else if (s->state == MCP_FAILED)
            base_buf_printf(out, "failed: %s", s->why);
        else if (s->state == MCP_NEW)
            base_buf_puts(out, "starts with the next request");
        else
            base_buf_printf(out, "%zu tools", s->tools.n);
        if (s->tools.n_left_out)
            base_buf_printf(out, ", %zu left out (at most %d, and names of letters, digits, _ - . /)",
                s->tools.n_left_out, MCP_MOST_TOOLS);
        base_buf_printf(out, "\t%s%s", c->has_network ? "network" : "no network",
            c->writes ? ", writes to the tree" : ", reads the tree");
        for (size_t k = 0; s->state == MCP_READY && k < s->tools.n; k++)
            base_buf_printf(out, "\n  %s.%s\t%s", c->name, s->tools.all[k].name, s->tools.all[k].about);
    }
    if (!m->config.n)
        base_buf_puts(
            out, "no MCP server is configured: mcp.json in kvist's configuration folder names them");
}

int mcp_restart(mcp *m, const char *name, base_err *err)
{
    for (size_t i = 0; i < m->config.n; i++) {
        if (strcmp(m->servers[i].config->name, name) || !is_wanted(&m->servers[i])) continue;
        mcp_server_end(&m->servers[i]);
        return 0;
    }
    return base_fail(err, BASE_E_NOT_FOUND,
        "no MCP server that can be started is called \"%.60s\": /mcp lists them", name);
}

char **mcp_names(const mcp *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->config.n; i++) n += m->servers[i].tools.n;
    char **names = base_xcalloc(n + 1, sizeof *names);
    n = 0;
    for (size_t i = 0; i < m->config.n; i++)
        for (size_t k = 0; m->servers[i].state == MCP_READY && k < m->servers[i].tools.n; k++) {
            base_buf name = {0};
            base_buf_printf(&name, "%s.%s", m->servers[i].config->name, m->servers[i].tools.all[k].name);
            names[n++] = base_buf_take(&name);
        }
    return names;
}

/* --- the model's call ----------------------------------------------------------------------------------- */

/* By its whole name. *ret_server: who the name speaks of, whether or not he has such a tool. */
static mcp_tool *find(const mcp *m, const char *name, mcp_server **ret_server)
{
    const char *dot = strchr(name, '.');
    for (size_t i = 0; dot && i < m->config.n; i++) {
        mcp_server *s = &m->servers[i];
        const size_t n = strlen(s->config->name);
        if (n != (size_t)(dot - name) || strncmp(s->config->name, name, n)) continue;
        *ret_server = s;
        return s->state == MCP_READY ? mcp_tools_get(&s->tools, dot + 1) : NULL;
    }
    return NULL;
}

/* Servers that run and have a tool of this name; the last of them, and his tool. */
static size_t find_bare(const mcp *m, const char *name, mcp_server **ret_server, mcp_tool **ret_tool)
{
    size_t n = 0;
    for (size_t i = 0; i < m->config.n; i++) {
        mcp_server *s = &m->servers[i];
        mcp_tool *t = s->state == MCP_READY ? mcp_tools_get(&s->tools, name) : NULL;
        if (!t) continue;
        *ret_server = s;
        *ret_tool = t;
        n++;
    }
    return n;
}

/* A message is a line, so line breaks between values become blanks; in a string there are none. Else byte for byte, as it was asked about. */
static void put_line(base_buf *out, base_str text)
{
    base_buf_add(out, text.ptr, text.len);
    for (size_t i = 0; i < out->len; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r') out->data[i] = ' ';
    while (out->len && out->data[out->len - 1] == ' ') out->data[--out->len] = 0;
}

/* The arguments as strict JSON; NULL: they are no object. The caller frees. *ret_mended: what was given is none. */
static char *arguments_of(base_str payload, base_json_doc **ret, bool *ret_mended)
{
    base_buf strict = {0};
    bool complete = true;
    *ret = NULL;
    *ret_mended = false;
    if (!payload.len) {
        base_buf_puts(&strict, "{}");
    } else if (!base_json_parse(payload.ptr, payload.len, ret, NULL)) {
        put_line(&strict, payload);
    } else {
        *ret_mended = true;
        base_json_repair(payload.ptr, payload.len, &strict, &complete);
    }
    base_json_free(*ret);
    *ret = NULL;
    if (!strict.len || base_json_parse(strict.data, strict.len, ret, NULL) ||
        base_json_root(*ret)->type != BASE_JSON_OBJECT) {
        base_json_free(*ret);
        *ret = NULL;
        base_buf_free(&strict);
    }
    return strict.data;
}

static void say_unknown(const mcp *m, const char *name, const mcp_server *s, base_buf *say)
{
    if (s && s->state == MCP_FAILED) {
        base_buf_printf(say, "The MCP server %s does not run: %s. Do without it.\n", s->config->name, s->why);
        return;
    }
    char **names = mcp_names(m);
    mcp_tool *t;
    const bool is_shared = !s && find_bare(m, name, &(mcp_server *){NULL}, &t) > 1;
    base_buf_printf(say,
        is_shared ? "More than one server has \"%.100s\": call it by its whole name. The tools are:"
                  : "There is no tool \"%.100s\". The tools are:",
        name);
    for (char **n = names; *n; n++) {
        base_buf_printf(say, " %s", *n);
        free(*n);
    }
    base_buf_puts(say, *names ? ".\n" : " none.\n");
    free(names);
}

static bool check(void *user, const char *asked, base_str payload, char **ret_name, base_buf *say)
{
    const mcp *m = user;
    mcp_server *s = NULL;
    mcp_tool *t = find(m, asked, &s);
    base_json_doc *doc = NULL;
    *ret_name = NULL;
    if (!s && find_bare(m, asked, &s, &t) != 1) t = NULL, s = NULL;
    if (!t) {
        say_unknown(m, asked, s, say);
        return false;
    }
    base_buf whole = {0};
    base_buf_printf(&whole, "%s.%s", s->config->name, t->name);
    char *name = base_buf_take(&whole);
    bool is_mended;
    char *arguments = arguments_of(payload, &doc, &is_mended);
    const char *missing = NULL;
    for (char **need = t->needs; arguments && *need && !missing; need++)
        if (!base_json_get(base_json_root(doc), *need)) missing = *need;
    if (!arguments)
        base_buf_printf(say, "The arguments of %s are no JSON object.", name);
    else if (missing)
        base_buf_printf(say, "%s needs \"%s\".", name, missing);
    const bool good = arguments && !missing;
    if (!good)
        base_buf_printf(say,
            " Its arguments, as a JSON Schema: %s\n"
            "Call it again, with the arguments as one JSON object in a fenced block behind the call.\n",
            t->schema);
    if (good && is_mended) base_buf_puts(say, arguments); /* the person decides about what is sent */
    t->is_shown = t->is_shown || !good;
    if (good)
        *ret_name = name;
    else
        free(name);
    free(arguments);
    base_json_free(doc);
    return good;
}

static int call(void *user, tool_workspace *w, const char *name, base_str payload, const tool_limits *limits,
    base_buf *out, bool *ret_failed, base_err *err)
{
    mcp_server *s = NULL;
    mcp_tool *t = find(user, name, &s);
    base_json_doc *doc = NULL;
    char *arguments = t ? arguments_of(payload, &doc, &(bool){false}) : NULL;
    base_json_free(doc);
    if (!arguments) return base_fail(err, BASE_E_NOT_FOUND, "there is no such tool any more");
    const int rc =
        mcp_server_call(s, t->name, arguments, limits ? limits->cancel : NULL, out, ret_failed, err);
    free(arguments);
    return rc;
}

const tool_outside mcp_outside = {.check = check, .call = call};
