/*
 * A field that a request asks for stands in a type, and what uses it in a function: a small model writes the function
 * alone. The compiler then names both, field and type, so the next attempt is aimed at the type. Where the request does
 * not name the field the function made it up, and the function is what has to be put right.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

enum { MOST_LINES = 120 }; /* of a type that a small model writes again as a whole */

/* What compilers say in front of the field's name; the type stands on one of the `n_lines` from there on. */
static const struct {
    const char *before;
    uint32_t n_lines;
} sayings[] = {
    {"has no member named ", 1},    /* gcc */
    {"no member named ", 1},        /* clang */
    {"has no field or method ", 1}, /* Go */
    {"no field `", 1},              /* Rust */
    {"Property '", 1},              /* TypeScript: "does not exist on type 'T'" */
    {"symbol:   variable ", 2},     /* Java: "location: variable r of type T" */
};

static bool is_type(const code_place *p)
{
    static const char *const kinds[] = {"class", "struct", "interface", "union", "type", "typedef"};
    bool is_so = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) is_so |= !strcmp(p->what, kinds[i]);
    return is_so && !p->is_declaration && !code_path_is_test(p->path) && p->line_end - p->line < MOST_LINES &&
           p->line_end > p->line;
}

/* The file of the tree's one type of that name; NULL: it has none, or several. The caller frees. */
static char *file_of_type(const agent *a, const char *name)
{
    code_place *places = NULL;
    char *path = NULL;
    uint32_t n_types = 0;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_type(&places[i])) continue;
        n_types++;
        if (!path) path = base_xstrdup(places[i].path);
    }
    if (n_types > 1) {
        free(path);
        path = NULL;
    }
    code_places_free(places, n);
    return path;
}

/* The first name in text[0, n) that is a type of the tree. */
static bool find_type(const agent *a, const char *text, size_t n, const char *but, agent_lacking *ret)
{
    size_t pos = 0, from, to;
    while (!ret->path && code_next_identifier(text, n, &pos, &from, &to)) {
        char *name = base_xstrndup(text + from, to - from);
        ret->path = strcmp(name, but) ? file_of_type(a, name) : NULL;
        if (ret->path)
            ret->type = name;
        else
            free(name);
    }
    return ret->path != NULL;
}

static const char *line_of(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n') at--;
    return at;
}

static const char *end_of_lines(const char *at, uint32_t n_lines)
{
    for (uint32_t i = 0; i < n_lines; i++) {
        at += strcspn(at, "\n");
        if (*at && i + 1 < n_lines) at++;
    }
    return at;
}

/* Go: "has no field or method calls, but does have Calls": nothing is lacking, the function has to use what is there. */
static bool is_there_otherwise(const char *at, const char *end)
{
    static const char says[] = "but does have ";
    return memmem(at, (size_t)(end - at), says, sizeof says - 1) != NULL;
}

/* With plain quotes for the curved ones of gcc, whose bytes could be a name's. */
static char *with_plain_quotes(const char *text)
{
    base_buf out = {0};
    for (const char *p = text; *p; p++) {
        const bool is_quote = !strncmp(p, "\xe2\x80\x98", 3) || !strncmp(p, "\xe2\x80\x99", 3);
        base_buf_putc(&out, is_quote ? '\'' : *p);
        if (is_quote) p += 2;
    }
    return out.len ? base_buf_take(&out) : base_xstrdup("");
}

bool agent__find_lacking(const agent *a, const char *said, agent_lacking *ret)
{
    *ret = (agent_lacking){0};
    char *output = with_plain_quotes(said ? said : "");
    for (size_t i = 0; i < sizeof sayings / sizeof *sayings && !ret->path; i++) {
        for (const char *at = output; (at = strstr(at, sayings[i].before)) && !ret->path;) {
            at += strlen(sayings[i].before);
            size_t pos = 0, from, to;
            const char *end = end_of_lines(at, sayings[i].n_lines), *line = line_of(output, at);
            if (is_there_otherwise(at, end) ||
                !code_next_identifier(at, (size_t)(end - at), &pos, &from, &to))
                continue;
            ret->field = base_xstrndup(at + from, to - from);
            if (agent__names_word(a->request, ret->field) &&
                find_type(a, line, (size_t)(end - line), ret->field, ret))
                break;
            free(ret->field);
            ret->field = NULL;
        }
    }
    free(output);
    return ret->path != NULL;
}

void agent__lacking_free(agent_lacking *l)
{
    free(l->path);
    free(l->type);
    free(l->field);
    *l = (agent_lacking){0};
}
