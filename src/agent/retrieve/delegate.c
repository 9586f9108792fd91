/*
 * What a short definition does nothing but call: who asks for a change of `ToBool` means the body, and that stands in
 * `ToBoolE`.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/retrieve.h"
#include "base/mem.h"

enum { MOST_LINES = 5, MOST_BYTES = 256 << 10 };

static bool is_function(const code_place *p)
{
    return !p->is_declaration && (!strcmp(p->what, "function") || !strcmp(p->what, "method"));
}

/* The one name in the bytes that a "(" follows; NULL: none or several. The caller frees. */
static char *only_call(const char *text, size_t n, const char *own_name)
{
    static const char *const words[] = {"return", "func", NULL};
    char *ret = NULL;
    uint32_t n_calls = 0;
    for (size_t pos = 0, from, to; code_next_identifier(text, n, &pos, &from, &to);) {
        size_t next = to;
        while (next < n && text[next] == ' ') next++;
        if (next == n || text[next] != '(') continue;
        char *name = base_xstrndup(text + from, to - from);
        bool is_word = !strcmp(name, own_name); /* its own head */
        for (const char *const *w = words; *w && !is_word; w++) is_word = !strcmp(name, *w);
        if (!is_word && !n_calls++)
            ret = name;
        else
            free(name);
    }
    if (n_calls == 1) return ret;
    free(ret);
    return NULL;
}

char *agent__find_delegate(const agent *a, const code_place *wrapper, const char *name)
{
    if (!is_function(wrapper) || wrapper->line_end - wrapper->line + 1 > MOST_LINES) return NULL;
    const char *language = code_language(wrapper->path, "", 0);
    base_buf text = {0};
    char *called = NULL;
    if (language && !tool_workspace_read(a->workspace, wrapper->path, MOST_BYTES, &text, NULL) &&
        wrapper->to <= text.len) {
        const size_t n = wrapper->to - wrapper->from;
        char *plain = code_blank_comments(language, text.data + wrapper->from, n);
        called = only_call(plain, n, name);
        free(plain);
    }
    base_buf_free(&text);
    if (!called) return NULL;
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), called, &places);
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *of = code_language(places[i].path, "", 0);
        n_found +=
            is_function(&places[i]) && !code_path_is_test(places[i].path) && of && !strcmp(of, language);
    }
    code_places_free(places, n);
    if (n_found == 1) return called;
    free(called);
    return NULL;
}
