/*
 * "add f(int fd, handler h)": a small model whose body does not compile with these parameters gives the function others. What
 * the request writes is what its caller counts on, so such a text is refused: the body has to be put right.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

/* The bytes between the brackets behind the next `name(` at or behind *pos; false: there is none. */
static bool next_list(base_str text, const char *name, size_t *pos, size_t *ret_from, size_t *ret_to)
{
    size_t from, to;
    while (code_next_identifier(text.ptr, text.len, pos, &from, &to)) {
        if (to - from != strlen(name) || memcmp(text.ptr + from, name, to - from) != 0) continue;
        while (to < text.len && text.ptr[to] == ' ') to++;
        if (to == text.len || text.ptr[to] != '(') continue;
        size_t end = to + 1;
        for (int depth = 1; end < text.len && depth; end++)
            depth += text.ptr[end] == '(' ? 1 : text.ptr[end] == ')' ? -1 : 0;
        *ret_from = to + 1;
        *ret_to = end - 1;
        return true;
    }
    return false;
}

/* Every name of the list stands in text[from, to), in the same order: others may stand between them, a type or `self`. */
static bool has_names(base_str text, size_t from, size_t to, const char *list)
{
    size_t pos = 0, at = from, a, b, x, y;
    while (code_next_identifier(list, strlen(list), &pos, &a, &b)) {
        bool is_there = false;
        while (!is_there && code_next_identifier(text.ptr, to, &at, &x, &y))
            is_there = y - x == b - a && !memcmp(text.ptr + x, list + a, b - a);
        if (!is_there) return false;
    }
    return true;
}

/* No list behind the name fits (a comment in front of it, a call in its body have others): *ret the first one. */
static bool has_others(base_str text, const char *name, const char *list, base_str *ret)
{
    size_t pos = 0, from, to;
    bool has_any = false;
    while (next_list(text, name, &pos, &from, &to)) {
        if (has_names(text, from, to, list)) return false;
        if (!has_any) *ret = (base_str){text.ptr + from, to - from};
        has_any = true;
    }
    return has_any;
}

char *agent__why_other_parameters(const agent *a, const base_json *arguments, base_str text)
{
    const char *name = base_json_str(arguments, "name", NULL);
    agent_addition_words w = {0};
    base_buf why = {0};
    base_str other = {0};
    const char *language = code_language(base_json_str(arguments, "path", ""), "", 0);
    if (language && !strcmp(language, "bash")) return NULL; /* its functions declare none */
    if (!name || !text.ptr || !agent_read_addition_words(a->request, &w)) return NULL;
    /* "add f("x")" is an example of a call: the list of a declaration has names alone. */
    const bool says = w.parameters && !strpbrk(w.parameters, "\"'`0123456789.");
    if (says && !strcmp(code_last_name(name), w.name) && has_others(text, w.name, w.parameters, &other))
        base_buf_printf(&why, "the request gives %s the parameters (%s), and this text gives it (%.*s)",
            w.name, w.parameters, (int)other.len, other.ptr);
    agent_addition_words_free(&w);
    return why.len ? base_buf_take(&why) : NULL;
}
