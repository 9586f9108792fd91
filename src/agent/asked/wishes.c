/* Names and files that a request wants in the tree, out of it or changed, and which of these wishes are met (asked.h). */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "base/hash.h"
#include "base/mem.h"
#include "code/code.h"

/* Where the comment right above the line that holds the byte begins; that line, where there is none. */
static uint32_t comment_above(const char *path, const base_buf *text, uint32_t from)
{
    char *plain = code_blank_comments(code_language(path, text->data, text->len), text->data, text->len);
    while (from && text->data[from - 1] != '\n') from--;
    for (uint32_t at = from; at; from = at) {
        bool is_comment = false, is_code = false;
        for (at--; at && text->data[at - 1] != '\n'; at--) {
            is_comment |= !strchr(" \t\r", text->data[at - 1]);
            is_code |= !strchr(" \t\r", plain[at - 1]);
        }
        if (!is_comment || is_code) break;
    }
    free(plain);
    return from;
}

/* The texts that the tree's definitions of that name have now; path: those of this file, NULL: all. */
uint64_t agent__text_of(const agent *a, const char *path, const char *name)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        base_buf text = {0};
        if (path && strcmp(places[i].path, path) != 0) continue;
        if (!tool_workspace_read(a->workspace, places[i].path, 4 << 20, &text, NULL) &&
            places[i].to <= text.len && places[i].from < places[i].to) {
            const uint32_t from = comment_above(places[i].path, &text, places[i].from);
            hash = base_hash64(text.data + from, places[i].to - from, hash);
        }
        base_buf_free(&text);
    }
    code_places_free(places, n);
    return hash;
}

void agent__wish(agent_asked *x, char *name, agent_wish_kind kind, uint64_t before)
{
    for (uint32_t i = 0; i < x->n_wishes; i++)
        if (!strcmp(x->wishes[i].name, name)) {
            free(name);
            return;
        }
    if (x->n_wishes == AGENT_MAX_WISHES) {
        free(name);
        return;
    }
    x->wishes[x->n_wishes++] = (agent_wish){.name = name, .kind = kind, .before = before};
}

void agent__wish_changed(agent *a, const char *path, const char *name)
{
    agent_asked *x = &a->asked;
    bool is_known = x->n_wishes == AGENT_MAX_WISHES;
    for (uint32_t i = 0; i < x->n_wishes && !is_known; i++)
        is_known = !x->wishes[i].path == !path && (!path || !strcmp(x->wishes[i].path, path)) &&
                   !strcmp(x->wishes[i].name, name);
    if (is_known) return;
    x->wishes[x->n_wishes++] = (agent_wish){.name = base_xstrdup(name),
        .path = path ? base_xstrdup(path) : NULL,
        .kind = AGENT_WISH_CHANGES,
        .before = agent__text_of(a, path, name)};
}

bool agent__is_met(const agent *a, const agent_wish *w)
{
    code_index *index = tool_workspace_index(a->workspace);
    if (w->kind == AGENT_WISH_FILE) return agent__is_changed(a, w->name);
    if (w->kind == AGENT_WISH_CHANGES) return agent__text_of(a, w->path, w->name) != w->before;
    if (w->kind != AGENT_WISH_GOES) return code_index_mentions(index, w->name);
    const char *last = code_last_name(w->name);
    const size_t n_type = last > w->name ? (size_t)(last - w->name) - 1 : 0;
    code_place *places = NULL;
    const uint32_t n = code_index_define(index, w->name, &places);
    bool is_there = n && !n_type; /* of "Range.contains" another type's contains may be found */
    for (uint32_t i = 0; i < n; i++)
        is_there |= strlen(places[i].parent) == n_type && !memcmp(places[i].parent, w->name, n_type);
    code_places_free(places, n);
    return !is_there;
}

/* Names of that kind whose wish is not met: "a, b"; the number of them. */
uint32_t agent__list_wishes(const agent *a, agent_wish_kind kind, base_buf *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->asked.n_wishes; i++) {
        const agent_wish *w = &a->asked.wishes[i];
        if (w->kind == kind && !agent__is_met(a, w))
            base_buf_printf(
                out, "%s%s%s%s", n++ ? ", " : "", w->name, w->path ? " in " : "", w->path ? w->path : "");
    }
    return n;
}

void agent__name_went(agent *a, const char *name)
{
    agent_asked *x = &a->asked;
    uint32_t n = 0;
    free(x->went);
    x->went = base_xstrdup(name);
    for (uint32_t i = 0; i < x->n_wishes; i++) {
        agent_wish *w = &x->wishes[i];
        if (w->kind != AGENT_WISH_GOES || strcmp(code_last_name(w->name), code_last_name(name)) != 0) {
            x->wishes[n++] = *w;
            continue;
        }
        free(w->name);
        free(w->path);
    }
    x->n_wishes = n;
}

void agent__listed_free(agent_listed *l)
{
    free(l->name);
    free(l->to);
    free(l->path);
    *l = (agent_listed){0};
}
