/*
 * "Add in simplelru/lru.go should call onEvict", "In arc, Resize should ...": the function that is to behave otherwise is said by a
 * name that is a verb to a small model, or that several functions have. The place beside the name says which one it is.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"

/* Where the name stands, and what is said of its place; from == to: nothing. */
typedef struct acting {
    agent_word name, place;
} acting;

static const char *const fillers[] = {
    "the", "function", "method", "its", "file", "class", "module", "type", "package", "struct", NULL};
static const char *const inside[] = {"in", "of", "from", "inside", NULL};
static const char *const orders[] = {"should", "must", "shall", "ought", NULL};

/* The last mention in front of byte `at` that is no filler. */
static bool mention_before(const char *s, size_t at, agent_word *ret)
{
    agent_word m, last = {0};
    for (size_t i = 0; agent__next_mention(s, i, &m) && m.to <= at; i = m.to > i ? m.to : i + 1)
        if (m.to > m.from && !agent__is_any_word(s, m, fillers)) last = m;
    *ret = last;
    return last.to > last.from;
}

/* Only marks, parentheses and blanks lie between two. */
static bool is_beside(const char *s, size_t from, size_t to)
{
    static const char marks[] = "`'\"() ";
    agent_word w;
    for (size_t i = from; i < to; i++)
        if (!strchr(marks, s[i])) {
            if (!agent__next_word(s, i, &w) || w.from != i || !agent__is_any_word(s, w, fillers))
                return false;
            i = w.to - 1;
        }
    return true;
}

/* "NAME in PLACE should", "NAME should", and "In PLACE, NAME should". */
static bool read_should(const char *s, acting *ret)
{
    agent_word w = {0}, m, before;
    while (agent__next_word(s, w.to, &w) && !agent__is_any_word(s, w, orders))
        ;
    *ret = (acting){{0}, {0}};
    if (w.to == w.from || !mention_before(s, w.from, &m) || !is_beside(s, m.to, w.from)) return false;
    if (mention_before(s, m.from, &before) && agent__is_any_word(s, before, inside)) {
        ret->place = m;
        return mention_before(s, before.from, &ret->name) && is_beside(s, ret->name.to, before.from);
    }
    ret->name = m;
    agent_word first;
    if (agent__next_word(s, 0, &first) && agent__is_any_word(s, first, inside) &&
        agent__next_mention(s, first.to, &before) && before.to < m.from && s[before.to] == ',')
        ret->place = before;
    return true;
}

/* Is the place a file, a folder, or the type of the definition? No place fits all. */
static bool is_at(const code_place *p, const char *place)
{
    if (!place) return true;
    const size_t n = strlen(place), n_path = strlen(p->path);
    const char *file = base_path_name(p->path);
    const bool is_file = n <= n_path && !strcmp(p->path + n_path - n, place) &&
                         (n == n_path || p->path[n_path - n - 1] == '/');
    const bool is_stem = strlen(file) > n && !strncmp(file, place, n) && file[n] == '.';
    const char *folder = strstr(p->path, place);
    const bool is_folder = folder && (folder == p->path || folder[-1] == '/') && folder[n] == '/';
    return is_file || is_stem || is_folder || !strcmp(code_last_name(p->parent), place);
}

/* How many functions of that name stand at that place, or anywhere: the last of them. */
static uint32_t find_at(const code_place *places, uint32_t n, const char *place, const code_place **ret)
{
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        const code_place *p = &places[i];
        if (p->is_declaration || code_path_is_test(p->path) || !is_at(p, place) ||
            (strcmp(p->what, "function") != 0 && strcmp(p->what, "method") != 0))
            continue;
        *ret = p;
        n_found++;
    }
    return n_found;
}

void agent__set_meant(agent *a, const code_place *p, const char *name)
{
    agent_asked *x = &a->asked;
    base_buf whole = {0};
    base_buf_printf(&whole, "%s%s%s", p->parent, *p->parent ? "." : "", code_last_name(name));
    agent__forget_meant(a);
    x->meant[x->n_meant++] = (agent_meant){
        .path = base_xstrdup(p->path), .name = base_buf_take(&whole), .from = p->from, .to = p->to};
    x->is_meant_sure = true;
    agent__wish_changed(a, p->path, x->meant[0].name);
}

void agent__find_acting(agent *a, const char *request)
{
    acting said;
    code_place *places = NULL;
    const code_place *meant = NULL, *any = NULL;
    if (!a->asked.change || a->asked.is_operation || a->asked.test || a->asked.n_wishes || a->fix.wanted ||
        a->info.strong || !read_should(request, &said))
        return;
    char *name = agent__copy_word(request, said.name),
         *place = said.place.to > said.place.from ? agent__copy_word(request, said.place) : NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    /* A name that only one has the model finds by itself; but for one that reads as an order. */
    const bool is_verb = place && said.name.from == 0 && !agent__looks_like_name(request, said.name);
    if (find_at(places, n, place, &meant) == 1 && (is_verb || find_at(places, n, NULL, &any) > 1))
        agent__set_meant(a, meant, name);
    code_places_free(places, n);
    free(name);
    free(place);
}
