/*
 * "Refuse it, for options and for arguments alike": such a request means two definitions that have one name and nearly
 * one text, and a small model changes one of them. So what was rewritten is looked for in the other places that the
 * request names, in the only other one where it says "both", or in all others where it says "all", and is then to be changed there too.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { MAX_FILE = 4 << 20 };

void agent__standing_free(agent_standing *s)
{
    free(s->path);
    free(s->name);
    free(s->parent);
    base_buf_free(&s->text);
    *s = (agent_standing){0};
}

static bool read_place(const agent *a, const code_place *p, base_buf *out)
{
    base_buf text = {0};
    const bool is_good = !tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) &&
                         p->to <= text.len && p->from < p->to;
    if (is_good) base_buf_add(out, text.data + p->from, p->to - p->from);
    base_buf_free(&text);
    return is_good;
}

static bool is_code(const code_place *p)
{
    return !p->is_declaration && (!strcmp(p->what, "function") || !strcmp(p->what, "method"));
}

void agent__find_standing(const agent *a, const char *path, const char *name, agent_standing *ret)
{
    code_index *index = tool_workspace_index(a->workspace);
    code_place *places = NULL;
    const code_place *only = NULL;
    *ret = (agent_standing){0};
    char *full = path && name ? code_index_path(index, path) : NULL;
    unsigned long line = 0;
    char *plain = name ? tool_plain_name(name, &line) : NULL;
    const uint32_t n = full ? code_index_define(index, plain, &places) : 0;
    uint32_t n_here = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(places[i].path, full) != 0 || !is_code(&places[i])) continue;
        if (line && (line < places[i].line || line > places[i].line_end)) continue;
        only = &places[i];
        n_here++;
    }
    if (n_here == 1 && read_place(a, only, &ret->text)) {
        ret->path = base_xstrdup(full);
        ret->name = base_xstrdup(code_last_name(plain));
        ret->parent = base_xstrdup(only->parent);
    }
    code_places_free(places, n);
    free(plain);
    free(full);
}

/* --- which are meant ------------------------------------------------------------------------------------ */

/* The word, or its plural. */
static bool says(const char *request, const char *word)
{
    base_buf more = {0};
    base_buf_printf(&more, "%ss", word);
    const bool is_so = *word && (agent__has_word(request, word) || agent__has_word(request, more.data));
    base_buf_free(&more);
    return is_so;
}

/* The type that a definition belongs to, or its file. */
static bool says_place(const char *request, const char *parent, const char *path)
{
    const char *file = base_path_name(path);
    char *stem = base_xstrndup(file, strcspn(file, "."));
    const bool is_so = says(request, parent) || strstr(request, file) || says(request, stem);
    free(stem);
    return is_so;
}

static bool says_both(const char *request)
{
    static const char *const words[] = {"both", "alike", "as well", "either", NULL};
    return agent__has_any_word(request, words);
}

/* "in all styles", "for every writer" */
static bool says_all(const char *request)
{
    static const char *const words[] = {"all", "every", "each", "everywhere", NULL};
    return agent__has_any_word(request, words);
}

/* The next line without the blanks around it; lines of one character ("}") say nothing. false: there is none. */
static bool next_line(const char **at, const char *end, base_str *ret)
{
    while (*at < end) {
        const char *from = *at, *to = memchr(from, '\n', (size_t)(end - from));
        if (!to) to = end;
        *at = to < end ? to + 1 : end;
        while (from < to && isspace((unsigned char)*from)) from++;
        while (to > from && isspace((unsigned char)to[-1])) to--;
        *ret = (base_str){from, (size_t)(to - from)};
        if (ret->len > 1) return true;
    }
    return false;
}

static bool has_line(const base_buf *text, base_str line)
{
    const char *at = text->data, *end = at + text->len;
    base_str other;
    while (next_line(&at, end, &other))
        if (other.len == line.len && !memcmp(other.ptr, line.ptr, line.len)) return true;
    return false;
}

/* Two of three lines of each stand in the other. */
static bool is_like(const base_buf *a, const base_buf *b)
{
    const base_buf *both[2][2] = {{a, b}, {b, a}};
    bool is_so = a->len && b->len;
    for (int i = 0; i < 2 && is_so; i++) {
        const char *at = both[i][0]->data, *end = at + both[i][0]->len;
        uint32_t n = 0, n_same = 0;
        base_str line;
        while (next_line(&at, end, &line)) {
            n++;
            n_same += has_line(both[i][1], line);
        }
        is_so = n && 3 * n_same >= 2 * n;
    }
    return is_so;
}

static bool is_twin(const agent *a, const code_place *p, const agent_standing *old)
{
    base_buf text = {0};
    if (!is_code(p) || code_path_is_test(p->path) ||
        (!strcmp(p->path, old->path) && !strcmp(p->parent, old->parent)))
        return false;
    const bool is_so = read_place(a, p, &text) && is_like(&text, &old->text);
    base_buf_free(&text);
    return is_so;
}

static void put_whole_name(base_buf *out, const char *parent, const char *name)
{
    base_buf_printf(out, "%s%s%s", parent, *parent ? "." : "", name);
}

/* What was begun as another's twin has found its own. */
static bool is_wished(const agent *a, const agent_standing *old)
{
    base_buf whole = {0};
    bool is_so = false;
    put_whole_name(&whole, old->parent, old->name);
    for (uint32_t i = 0; i < a->asked.n_wishes; i++) {
        const agent_wish *w = &a->asked.wishes[i];
        is_so |= w->path && !strcmp(w->path, old->path) && !strcmp(w->name, whole.data);
    }
    base_buf_free(&whole);
    return is_so;
}

void agent__wish_twins(agent *a, const agent_standing *old)
{
    code_place *places = NULL, *all = NULL;
    uint32_t n_twins = 0;
    if (!old->path || code_path_is_test(old->path) || is_wished(a, old)) return;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), old->name, &places);
    if (n) all = base_xcalloc(n, sizeof *all);
    for (uint32_t i = 0; i < n; i++)
        if (is_twin(a, &places[i], old)) all[n_twins++] = places[i];
    const bool is_named = says_place(a->request, old->parent, old->path);
    for (uint32_t i = 0; i < n_twins; i++) {
        const bool is_meant = is_named ? says_place(a->request, all[i].parent, all[i].path)
                                       : (n_twins == 1 && says_both(a->request)) || says_all(a->request);
        base_buf whole = {0};
        put_whole_name(&whole, all[i].parent, old->name);
        if (is_meant) agent__wish_changed(a, all[i].path, whole.data);
        base_buf_free(&whole);
    }
    free(all);
    code_places_free(places, n);
}
