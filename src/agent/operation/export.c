/*
 * "Export X from the crate": what is there already goes into what its package hands out. A small model writes the line that it
 * sees once more, so the program writes the call whole, and the model ends it.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/call/prompt.h"
#include "agent/operation/operation.h"
#include "agent/words/operation_words.h"
#include "agent/words/request_words.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/exports.h"

enum { MAX_FILE = 1 << 20 };

static const char *const verbs[] = {"export", "exports", "exported", "expose", "exposed", "importable", NULL};

/* The only definition at the top of its file that this word of the request names; *ret_path (heap): its file. */
static bool is_definition(const agent *a, const char *request, agent_word w, char **ret_path)
{
    char *name = agent__copy_word(request, w);
    code_place *places = NULL;
    const bool is_written = agent__looks_like_name(request, w) || isupper((unsigned char)*name) ||
                            (w.from && agent__is_mark(request[w.from - 1]));
    const uint32_t n = is_written ? code_index_define(tool_workspace_index(a->workspace), name, &places) : 0;
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!agent__is_code_place(&places[i]) || *places[i].parent || !agent__is_source(places[i].path))
            continue;
        free(*ret_path);
        *ret_path = base_xstrdup(places[i].path);
        n_found++;
    }
    code_places_free(places, n);
    free(name);
    return n_found == 1;
}

/* What is to be exported stands behind the verb, or last in front of it. The caller frees both; NULL: nothing of the tree does. */
static char *find_exported(const agent *a, const char *request, char **ret_path)
{
    enum { NEAR = 4 };
    agent_word verb = {0}, w, last = {0};
    char *path = NULL, *name = NULL, *last_path = NULL;
    while (!name && agent__next_word(request, verb.to, &verb)) {
        if (!agent__is_any_word(request, verb, verbs)) {
            free(path);
            path = NULL;
            if (!is_definition(a, request, verb, &path)) continue;
            last = verb;
            free(last_path);
            last_path = path;
            path = NULL;
            continue;
        }
        size_t at = verb.to;
        for (int n = 0; n < NEAR && !name && agent__next_word(request, at, &w); n++, at = w.to) {
            free(path);
            path = NULL;
            if (is_definition(a, request, w, &path)) name = agent__copy_word(request, w);
        }
        if (name || !last.to) continue;
        name = agent__copy_word(request, last);
        free(path);
        path = last_path;
        last_path = NULL;
    }
    free(last_path);
    if (name)
        *ret_path = path;
    else
        free(path);
    return name;
}

/* The file's text with the definition handed out; false: it is already, or nothing shows how. */
static bool hand_out(const agent *a, const char *path, const char *name, const char *package, base_buf *text)
{
    const char *language = code_language(path, "", 0), *file = base_path_name(path);
    if (!strcmp(package, path)) return tool__export_last(language, text, name);
    base_buf own = {0};
    char *module = base_xstrndup(file, strcspn(file, ".")),
         *code = code_blank_comments(language, text->data, text->len);
    const bool is_there = agent__names_word(code, name);
    bool is_done = false;
    if (!is_there && !tool_workspace_read(a->workspace, path, MAX_FILE, &own, NULL) && own.len) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, own.data, own.len);
        for (uint32_t i = 0; i < f->n_definitions && !is_done; i++)
            if (!*f->definitions[i].parent && strcmp(f->definitions[i].name, name) != 0)
                is_done = tool__export_name(language, text, module, f->definitions[i].name, name);
        code_file_free(f);
    }
    if (!is_there && !is_done) is_done = tool__export_fresh(language, text, module, name);
    free(module);
    free(code);
    base_buf_free(&own);
    return is_done;
}

static void put_edit(
    const char *path, const base_buf *old, const base_buf *new, base_buf *json, base_buf *payload)
{
    size_t from = 0, tail = 0;
    uint32_t line = 1, to;
    while (from < old->len && from < new->len && old->data[from] == new->data[from]) from++;
    while (from && old->data[from - 1] != '\n') from--;
    if (from) from--;
    while (from && old->data[from - 1] != '\n') from--;
    while (tail < old->len - from && tail < new->len - from &&
           old->data[old->len - 1 - tail] == new->data[new->len - 1 - tail])
        tail++;
    while (tail && old->data[old->len - tail - 1] != '\n') tail--;
    for (size_t i = 0; i < from; i++) line += old->data[i] == '\n';
    to = line;
    for (size_t i = from; i + 1 < old->len - tail; i++) to += old->data[i] == '\n';
    base_buf_puts(json, "{\"name\": \"edit\", \"arguments\": {\"path\": ");
    base_json_put_str(json, path, strlen(path));
    base_buf_printf(json, ", \"from\": %u, \"to\": %u}}", line, to);
    base_buf_add(payload, new->data + from, new->len - tail - from);
}

void agent__open_edit(
    agent *a, const char *path, const base_buf *old, const base_buf *made, agent_opening *opening)
{
    base_buf json = {0}, payload = {0};
    char version[65];
    const char *language = code_language(path, "", 0);
    put_edit(path, old, made, &json, &payload);
    base_sha256_hex(old->data, old->len, version);
    tool_workspace_mark_shown(a->workspace, path, version);
    agent_opening_free(opening);
    agent_prompt_open_payload(a->info.tools, json.data, language ? language : "", &opening->call);
    agent_prompt_put_payload(a->info.tools, payload.data, payload.len, &opening->call);
    base_buf_free(&json);
    base_buf_free(&payload);
}

bool agent__open_export(agent *a, const char *request, agent_opening *opening)
{
    agent_asked *x = &a->asked;
    agent_addition_words addition;
    char *path = NULL;
    if (!x->change || x->test_alone || x->is_operation || x->has_begun_export || x->refused ||
        a->fix.wanted || a->info.strong || a->settings.mode == AGENT_MODE_PLAN ||
        !agent__has_any_word(request, verbs))
        return false;
    const bool adds =
        agent_read_addition_words(request, &addition); /* the new one is exported with its neighbour */
    agent_addition_words_free(&addition);
    char *name = adds ? NULL : find_exported(a, request, &path);
    const char *language = name ? code_language(path, "", 0) : NULL;
    bool is_open = false;
    for (const char *const *f = tool__export_files(language); name && *f && !is_open; f++) {
        base_buf package = {0}, old = {0}, new = {0};
        base_buf_printf(&package, "%.*s%s", (int)(base_path_name(path) - path), path, *f);
        if (!tool_workspace_read(a->workspace, package.data, MAX_FILE, &old, NULL) && old.len) {
            base_buf_add(&new, old.data, old.len);
            is_open = hand_out(a, path, name, package.data, &new);
        }
        if (is_open) {
            x->has_begun_export = true;
            agent__open_edit(a, package.data, &old, &new, opening);
        }
        base_buf_free(&package);
        base_buf_free(&old);
        base_buf_free(&new);
    }
    free(name);
    free(path);
    return is_open;
}
