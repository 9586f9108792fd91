/* Reading mcp.json (contract: config.h): a table of keys, each with its type. */
#include "mcp/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

static void free_strings(char **strings)
{
    for (char **s = strings; s && *s; s++) free(*s);
    free(strings);
}

void mcp_config_free(mcp_config *c)
{
    for (size_t i = 0; i < c->n; i++) {
        mcp_server_config *s = &c->servers[i];
        free(s->name);
        free_strings(s->argv);
        free_strings(s->env);
        free_strings(s->readable);
        free(s->wrong);
    }
    free(c->servers);
    *c = (mcp_config){0};
}

bool mcp_is_name(const char *name, size_t most, bool is_tool)
{
    const size_t n = strlen(name);
    if (!n || n > most || !isalnum((unsigned char)name[0])) return false;
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c >= 0x80 ||
            (!isalnum((unsigned char)*c) && !strchr(is_tool ? "_-./" : "_-", *c)))
            return false;
    return true;
}

/* A string that can be handed to a program. */
static bool is_plain(const base_json *value)
{
    return value->type == BASE_JSON_STRING && strlen(value->string) == value->string_len;
}

typedef int read_fn(mcp_server_config *s, const base_json *value, base_err *err);

/* Appends to a NULL-terminated array. */
static void push(char ***strings, char *s)
{
    size_t n = 0;
    while (*strings && (*strings)[n]) n++;
    *strings = base_xrealloc(*strings, (n + 2) * sizeof **strings);
    (*strings)[n] = s;
    (*strings)[n + 1] = NULL;
}

static int read_command(mcp_server_config *s, const base_json *value, base_err *err)
{
    if (!is_plain(value) || !value->string_len)
        return base_fail(err, BASE_E_FORMAT, "\"command\" is a program's name, as a string");
    /* The arguments may stand in front of it in the file. */
    char **arguments = s->argv;
    s->argv = NULL;
    push(&s->argv, base_xstrdup(value->string));
    for (char **a = arguments; a && *a; a++)
        if (a != arguments) push(&s->argv, base_xstrdup(*a));
    free_strings(arguments);
    return 0;
}

static int read_args(mcp_server_config *s, const base_json *value, base_err *err)
{
    if (value->type != BASE_JSON_ARRAY)
        return base_fail(err, BASE_E_FORMAT, "\"args\" is a list of strings: [\"-m\", \"server\"]");
    if (!s->argv) push(&s->argv, base_xstrdup("")); /* the command comes later */
    for (const base_json *a = value->first; a; a = a->next) {
        if (!is_plain(a)) return base_fail(err, BASE_E_FORMAT, "\"args\" holds something that is no string");
        push(&s->argv, base_xstrdup(a->string));
    }
    return 0;
}

static bool is_variable(const char *name)
{
    if (!isalpha((unsigned char)name[0]) && name[0] != '_') return false;
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c >= 0x80 || (!isalnum((unsigned char)*c) && *c != '_')) return false;
    return true;
}

static int read_env(mcp_server_config *s, const base_json *value, base_err *err)
{
    if (value->type != BASE_JSON_OBJECT)
        return base_fail(err, BASE_E_FORMAT, "\"env\" holds names and values: {\"TOKEN\": \"...\"}");
    for (const base_json *m = value->first; m; m = m->next) {
        if (!is_plain(m) || !is_variable(m->key))
            return base_fail(
                err, BASE_E_FORMAT, "\"env\" has a name or a value that no environment can hold");
        base_buf line = {0};
        base_buf_printf(&line, "%s=%s", m->key, m->string);
        push(&s->env, base_buf_take(&line));
    }
    return 0;
}

static int read_paths(mcp_server_config *s, const base_json *value, base_err *err)
{
    for (const base_json *p = value->type == BASE_JSON_ARRAY ? value->first : NULL; p; p = p->next) {
        if (!is_plain(p) || p->string[0] != '/')
            return base_fail(err, BASE_E_FORMAT, "\"read\" takes absolute paths");
        push(&s->readable, base_xstrdup(p->string));
    }
    return value->type == BASE_JSON_ARRAY
               ? 0
               : base_fail(err, BASE_E_FORMAT, "\"read\" is a list of paths: [\"/srv/data\"]");
}

static int read_flag(const char *key, const base_json *value, bool *ret, base_err *err)
{
    if (value->type != BASE_JSON_BOOL) return base_fail(err, BASE_E_FORMAT, "\"%s\" is true or false", key);
    *ret = value->boolean;
    return 0;
}

static int read_network(mcp_server_config *s, const base_json *value, base_err *err)
{
    return read_flag("network", value, &s->has_network, err);
}

static int read_writes(mcp_server_config *s, const base_json *value, base_err *err)
{
    return read_flag("write", value, &s->writes, err);
}

static int read_disabled(mcp_server_config *s, const base_json *value, base_err *err)
{
    return read_flag("disabled", value, &s->is_off, err);
}

static int read_timeout(mcp_server_config *s, const base_json *value, base_err *err)
{
    if (value->type != BASE_JSON_NUMBER || !value->is_integer || value->integer < 1 || value->integer > 3600)
        return base_fail(err, BASE_E_FORMAT, "\"timeout\" is a number of seconds, 1 to 3600");
    s->seconds = s->start_seconds = (uint32_t)value->integer;
    return 0;
}

static int read_type(mcp_server_config *s, const base_json *value, base_err *err)
{
    if (is_plain(value) && !strcmp(value->string, "stdio")) return 0;
    return base_fail(
        err, BASE_E_FORMAT, "it is reached by a network, and kvist starts servers on stdio only");
}

static int read_url(mcp_server_config *s, const base_json *value, base_err *err)
{
    return read_type(s, value, err);
}

static const struct {
    const char *key;
    read_fn *read;
} keys[] = {
    {"command", read_command},
    {"args", read_args},
    {"env", read_env},
    {"type", read_type},
    {"url", read_url},
    {"read", read_paths},
    {"write", read_writes},
    {"network", read_network},
    {"disabled", read_disabled},
    {"timeout", read_timeout},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static int read_server(mcp_server_config *s, const base_json *value, base_err *err)
{
    int rc = 0;
    if (value->type != BASE_JSON_OBJECT)
        return base_fail(err, BASE_E_FORMAT, "it is described by {\"command\": \"...\", \"args\": [...]}");
    for (const base_json *m = value->first; m && !rc; m = m->next) {
        size_t i = 0;
        while (i < N_KEYS && strcmp(keys[i].key, m->key)) i++;
        if (i < N_KEYS)
            rc = keys[i].read(s, m, err);
        else
            rc = base_fail(err, BASE_E_FORMAT,
                "kvist knows no \"%.40s\": command, args, env, read, write, network, timeout, disabled",
                m->key);
    }
    if (!rc && (!s->argv || !*s->argv[0])) rc = base_fail(err, BASE_E_FORMAT, "it names no \"command\"");
    return rc;
}

static char *harmless(const char *s)
{
    base_buf clean = {0};
    base_utf8_sanitise(&clean, s, strlen(s), false);
    return base_buf_take(&clean);
}

int mcp_config_parse(const char *text, size_t n, mcp_config *ret, base_err *err)
{
    base_json_doc *doc = NULL;
    *ret = (mcp_config){0};
    int rc = base_json_parse(text, n, &doc, err);
    const base_json *servers = rc ? NULL : base_json_get(base_json_root(doc), "mcpServers");
    if (!rc && (!servers || servers->type != BASE_JSON_OBJECT))
        rc = base_fail(err, BASE_E_FORMAT, "there is no {\"mcpServers\": {\"NAME\": {...}}} in it");
    if (!rc && servers->n > MCP_MOST_SERVERS)
        rc = base_fail(
            err, BASE_E_LIMIT, "it names %zu servers; at most %d can be used", servers->n, MCP_MOST_SERVERS);
    for (const base_json *m = rc ? NULL : servers->first; m; m = m->next) {
        base_err why = {0};
        mcp_server_config s = {
            .name = harmless(m->key), .seconds = MCP_SECONDS, .start_seconds = MCP_START_SECONDS};
        int wrong = 0;
        if (!mcp_is_name(m->key, MCP_MOST_NAME, false))
            wrong = base_fail(&why, BASE_E_FORMAT, "a server's name has letters, digits, - and _");
        for (size_t i = 0; i < ret->n && !wrong; i++)
            if (!strcmp(ret->servers[i].name, m->key))
                wrong = base_fail(&why, BASE_E_FORMAT, "it is named twice");
        if (!wrong) wrong = read_server(&s, m, &why);
        if (wrong) s.wrong = harmless(why.msg);
        base_grow(&ret->servers, &ret->cap, ret->n + 1, sizeof *ret->servers);
        ret->servers[ret->n++] = s;
    }
    base_json_free(doc);
    return rc;
}
