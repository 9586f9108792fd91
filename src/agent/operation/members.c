/*
 * "Add Keys to Tree": what Tree has decides what the new method can be made of, and a model that does not see it makes members
 * up. So the signatures of its methods, the attributes that they set, and one or two short methods stand in front of the request.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/operation/operation.h"
#include "agent/sequence/sequence.h"
#include "base/mem.h"
#include "code/code.h"
#include "code/rank.h"

enum { MAX_FILE = 1 << 20, MOST_MEMBERS = 24, MOST_SIGNATURE = 160, MOST_LINES = 20, DEPTH = 32 };

static bool is_shown(const agent *a, const char *path, uint32_t line, uint32_t line_end)
{
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->turn == a->turn && p->path && !strcmp(p->path, path) && p->line <= line &&
            line_end <= p->line_end)
            return true;
    }
    return false;
}

static bool is_method_of(const code_definition *d, const char *type)
{
    return !strcmp(d->parent, type) && d->body_to > d->body_from &&
           (!strcmp(d->what, "function") || !strcmp(d->what, "method"));
}

/* On one line, without what opens its body. */
static bool put_signature(const base_buf *text, const code_definition *d, base_buf *out)
{
    base_buf line = {0};
    for (size_t i = d->from; i < d->body_from && i < text->len; i++) {
        const bool is_blank = isspace((unsigned char)text->data[i]);
        if (!is_blank)
            base_buf_putc(&line, text->data[i]);
        else if (line.len && line.data[line.len - 1] != ' ')
            base_buf_putc(&line, ' ');
    }
    while (line.len && strchr(" {:", line.data[line.len - 1])) line.len--;
    const bool is_short = line.len && line.len <= MOST_SIGNATURE;
    if (is_short) base_buf_printf(out, "%.*s\n", (int)line.len, line.data);
    base_buf_free(&line);
    return is_short;
}

/* Attributes that its methods set: "self.a =", "this.a =", each once. */
static void put_attributes(const base_buf *text, const code_file *f, const char *type, base_buf *out)
{
    base_buf seen = {0};
    base_buf_putc(&seen, ' ');
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_method_of(d, type)) continue;
        for (size_t pos = d->body_from, from, to;
             code_next_identifier(text->data, d->body_to, &pos, &from, &to);) {
            const char *name = text->data + from;
            const bool is_own = from > 5 && (!memcmp(name - 5, "self.", 5) || !memcmp(name - 5, "this.", 5));
            size_t at = to;
            while (at < d->body_to && text->data[at] == ' ') at++;
            if (!is_own || text->data[at] != '=' || text->data[at + 1] == '=') continue;
            base_buf word = {0};
            base_buf_printf(&word, " %.*s ", (int)(to - from), name);
            if (!strstr(seen.data, word.data)) base_buf_puts(&seen, word.data + 1);
            base_buf_free(&word);
        }
    }
    if (seen.len > 1) base_buf_printf(out, "attributes:%.*s\n", (int)seen.len - 1, seen.data);
    base_buf_free(&seen);
}

static int append_list(
    agent *a, const char *path, const char *holder, const code_file *f, const base_buf *text, base_err *err)
{
    const char *type = code_last_name(holder);
    base_buf list = {0}, shown = {0};
    uint32_t n = 0;
    bool is_in_view = true;
    for (uint32_t i = 0; i < f->n_definitions && n < MOST_MEMBERS; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_method_of(d, type)) continue;
        n += put_signature(text, d, &list);
        is_in_view &= is_shown(a, path, d->line, d->line_end);
    }
    put_attributes(text, f, type, &list);
    if (list.len && !is_in_view) base_buf_printf(&shown, "What %s has:\n%s\n", holder, list.data);
    const agent_text t = {
        .origin = KV_ORIGIN_CONTEXT, .text = shown.data, .n = shown.len, .label = "members"};
    const int rc = shown.len ? agent__append(a, &t, NULL, err) : 0;
    base_buf_free(&list);
    base_buf_free(&shown);
    return rc;
}

/* A method of the type that is short and not in view. */
static int append_method(agent *a, const char *request, const char *path, const base_buf *text,
    const code_definition *d, base_err *err)
{
    base_buf name = {0};
    size_t from = d->from;
    while (from && text->data[from - 1] != '\n') from--;
    base_buf_printf(&name, "%s.%s", d->parent, d->name);
    const bool may =
        d->to <= text->len && d->line_end - d->line < MOST_LINES && !is_shown(a, path, d->line, d->line_end);
    const int rc =
        may ? agent__append_lines(a, &(agent_lines){path, name.data, text, from, d->to, d->line, d->line_end},
                  "\n\n", request, err)
            : 0;
    base_buf_free(&name);
    return rc;
}

/* The one that is most about what the request says, and the last one, which the new one will stand behind. */
static int append_relatives(agent *a, const char *request, const char *path, const char *holder,
    const code_file *f, const base_buf *text, base_err *err)
{
    code_ranked *ranked = NULL;
    const char *type = code_last_name(holder);
    const code_definition *best = NULL, *last = NULL;
    const uint32_t n = code_index_rank(tool_workspace_index(a->workspace), NULL, request, DEPTH, &ranked);
    uint32_t best_at = n;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_method_of(d, type)) continue;
        last = d;
        for (uint32_t k = 0; k < best_at; k++)
            if (!strcmp(ranked[k].path, path) && ranked[k].from == d->from &&
                d->line_end - d->line < MOST_LINES) {
                best = d;
                best_at = k;
            }
    }
    int rc = best ? append_method(a, request, path, text, best, err) : 0;
    if (!rc && last && last != best) rc = append_method(a, request, path, text, last, err);
    code_ranked_free(ranked, n);
    return rc;
}

int agent__append_members(agent *a, const char *request, base_err *err)
{
    agent_addition_words w = {0};
    base_buf text = {0};
    char *path = agent__read_addition(a, request, &w);
    int rc = 0;
    if (path && w.holder && !tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) && text.len) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len);
        rc = append_list(a, path, w.holder, f, &text, err);
        if (!rc) rc = append_relatives(a, request, path, w.holder, f, &text, err);
        code_file_free(f);
    }
    base_buf_free(&text);
    free(path);
    agent_addition_words_free(&w);
    return rc;
}
