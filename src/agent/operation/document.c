/*
 * "Add f to a.c, and describe it in README.md": asked for the rest, a small model invents a definition of the document, or says
 * that it is done. Once the code is there, the program finds the place (tools/edit/mention.h), shows it, and begins the line, with
 * the new name in it; the model writes the words behind that.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "base/hash.h"
#include "base/mem.h"
#include "code/code.h"
#include "tools/edit/mention.h"
#include "tools/file/text.h"

enum { MAX_FILE = 1 << 20, MOST_NEIGHBOURS = 64 };

/* What the document is to speak of: an option, a name that comes, one of the tree that the request writes, or what was written last. */
static char *find_subject(const agent *a)
{
    const agent_asked *x = &a->asked;
    agent_named named;
    char *name = agent__read_option(a->request);
    for (uint32_t i = 0; i < x->n_wishes && !name; i++)
        if (x->wishes[i].kind == AGENT_WISH_STANDS) name = base_xstrdup(code_last_name(x->wishes[i].name));
    agent__find_named(a, a->request, &named);
    if (!name && named.n && named.items[0].score >= AGENT_NAMED_SURE)
        name = base_xstrdup(code_last_name(named.items[0].name));
    agent_named_free(&named);
    if (!name && a->fix.name) name = base_xstrdup(code_last_name(a->fix.name));
    return name;
}

/* The definitions beside `name` in the first file that was changed, the nearest first; NULL-terminated, all heap. */
static char **find_neighbours(const agent *a, const char *name)
{
    char **ret = base_xcalloc(MOST_NEIGHBOURS + 1, sizeof *ret);
    base_buf text = {0};
    uint32_t n = 0, at = 0;
    if (!tool_workspace_read(a->workspace, a->asked.changed[0], MAX_FILE, &text, NULL) && text.len) {
        code_file *f =
            code_parse(tool_workspace_grammars(a->workspace), a->asked.changed[0], text.data, text.len);
        for (uint32_t i = 0; i < f->n_definitions; i++)
            if (!strcmp(f->definitions[i].name, name)) at = i;
        for (uint32_t d = 1; d < f->n_definitions && n + 2 <= MOST_NEIGHBOURS; d++) {
            if (at >= d) ret[n++] = base_xstrdup(f->definitions[at - d].name);
            if (at + d < f->n_definitions) ret[n++] = base_xstrdup(f->definitions[at + d].name);
        }
        code_file_free(f);
    }
    base_buf_free(&text);
    return ret;
}

static bool is_document(const char *path)
{
    const char *language = code_language(path, "", 0);
    return !language || code_language_is_document(language);
}

/* The document that was to change and is as it was, once all code is there; NULL: none. */
static const char *due_document(const agent *a)
{
    const agent_asked *x = &a->asked;
    if (!x->n_changed || x->document || a->info.strong || agent__awaits_code(a)) return NULL;
    for (uint32_t i = 0; i < x->n_wishes; i++)
        if (x->wishes[i].kind == AGENT_WISH_FILE && is_document(x->wishes[i].name) &&
            !agent__is_met(a, &x->wishes[i]))
            return x->wishes[i].name;
    return NULL;
}

/* Its text and the place in it; false: it has none. Free all three. */
static bool read_mention(const agent *a, const char *path, base_buf *text, tool_mention *ret)
{
    char *name = find_subject(a), **neighbours = name ? find_neighbours(a, name) : NULL;
    *ret = (tool_mention){0};
    const bool is_found = name && !tool_workspace_read(a->workspace, path, MAX_FILE, text, NULL) && text->len;
    if (is_found) tool__find_mention(path, text, name, (const char *const *)neighbours, a->request, ret);
    for (char **n = neighbours; n && *n; n++) free(*n);
    free(neighbours);
    free(name);
    return is_found;
}

static uint32_t line_of(const base_buf *text, size_t at)
{
    return (uint32_t)tool__line_of(text->data, at);
}

int agent__append_due_document(agent *a, bool *ret_begun, base_err *err)
{
    const char *path = due_document(a);
    base_buf text = {0};
    tool_mention m = {0};
    int rc = 0;
    *ret_begun = path && read_mention(a, path, &text, &m);
    if (*ret_begun) {
        const agent_lines shown = {path, "", &text, m.from, m.behind, line_of(&text, m.from),
            line_of(&text, m.behind ? m.behind - 1 : 0)};
        a->asked.document = base_xstrdup(path);
        rc = agent__append_lines(a, &shown, "\n", a->request, err);
    }
    tool_mention_free(&m);
    base_buf_free(&text);
    return rc;
}

/* The line that the call replaces and writes again: the one in front of the new line, or what stands where the text begins. */
static base_str kept_line(const base_buf *text, size_t from, size_t to)
{
    while (to > from && text->data[to - 1] == '\n') to--;
    return (base_str){text->data + from, to - from};
}

bool agent__open_document(agent *a, agent_opening *opening)
{
    agent_asked *x = &a->asked;
    base_buf text = {0}, json = {0}, payload = {0};
    tool_mention m = {0};
    char version[65];
    const bool is_due = x->document && !x->has_begun_document;
    const bool is_open = is_due && read_mention(a, x->document, &text, &m);
    if (is_due) x->has_begun_document = true;
    if (is_open) {
        size_t before = m.at ? m.at - 1 : 0, behind = m.to;
        while (before && text.data[before - 1] != '\n') before--;
        const char *newline = m.at ? NULL : memchr(text.data + m.to, '\n', text.len - m.to);
        if (!m.at) behind = newline ? (size_t)(newline + 1 - text.data) : text.len;
        const base_str front = kept_line(&text, before, m.at), rest = kept_line(&text, m.to, behind);
        base_buf_puts(&json, "{\"name\": \"edit\", \"arguments\": {\"path\": ");
        base_json_put_str(&json, x->document, strlen(x->document));
        base_buf_printf(&json, ", \"from\": %u, \"to\": %u}}", line_of(&text, before),
            line_of(&text, behind > before ? behind - 1 : before));
        if (m.at) base_buf_printf(&payload, "%.*s\n", (int)front.len, front.ptr);
        base_buf_add(&payload, m.begins.data, m.begins.len);
        base_sha256_hex(text.data, text.len, version);
        tool_workspace_mark_shown(a->workspace, x->document, version);
        agent_opening_free(opening);
        agent_prompt_open_payload(a->info.tools, json.data, "", &opening->call);
        agent_prompt_put_payload(a->info.tools, payload.data, payload.len, &opening->call);
        opening->is_line = m.ends && !model_tools_are_marked(a->info.tools);
        if (opening->is_line && strlen(m.ends) > 1) base_buf_puts(&opening->behind, m.ends + 1);
        if (opening->is_line && !m.at) base_buf_printf(&opening->behind, "%.*s\n", (int)rest.len, rest.ptr);
        if (opening->is_line) base_buf_puts(&opening->behind, "```\n");
    }
    tool_mention_free(&m);
    base_buf_free(&text);
    base_buf_free(&json);
    base_buf_free(&payload);
    return is_open;
}
