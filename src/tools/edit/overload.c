/* Compares the parameters of a new text with those of the definitions that have its name (contract: overload.h). */
#include "tools/edit/overload.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/edit/definition.h"
#include "tools/file/text.h"
#include "tools/tree/workspace.h"

enum { MOST_DEFINITIONS = 16, MOST_PARAMETERS = 32 };

/* A list "(String a, int b)" of a text, and where its parameters begin. */
typedef struct parameter_list {
    base_str text; /* with its brackets */
    base_str items[MOST_PARAMETERS];
    uint32_t n;
} parameter_list;

/* The list behind the first place of the name that has one; false: there is none, or it is too long to compare. */
static bool find_list(const char *text, size_t n, const char *name, parameter_list *ret)
{
    const size_t name_n = strlen(name);
    size_t pos = 0, from, to;
    while (code_next_identifier(text, n, &pos, &from, &to)) {
        while (to < n && tool__is_space(text[to])) to++;
        if (strncmp(text + from, name, name_n) != 0 || code_is_name_byte(text[from + name_n]) || to >= n ||
            text[to] != '(')
            continue;
        size_t at = to, item = to + 1;
        int depth = 0;
        *ret = (parameter_list){0};
        do {
            depth += (strchr("([{", text[at]) != NULL) - (strchr(")]}", text[at]) != NULL);
            const bool ends = depth == 0 || (depth == 1 && text[at] == ',');
            while (ends && item < at && tool__is_space(text[item])) item++;
            if (ends && item < at) {
                if (ret->n == MOST_PARAMETERS) return false;
                ret->items[ret->n++] = (base_str){text + item, at - item};
            }
            if (ends) item = at + 1;
            at++;
        } while (at < n && depth > 0);
        ret->text = (base_str){text + to, at - to};
        return depth == 0;
    }
    return false;
}

/* The same bytes but for white space. */
static bool is_same_list(base_str a, base_str b)
{
    for (;;) {
        while (a.len && tool__is_space(*a.ptr)) a.ptr++, a.len--;
        while (b.len && tool__is_space(*b.ptr)) b.ptr++, b.len--;
        if (!a.len || !b.len) return a.len == b.len;
        if (*a.ptr != *b.ptr) return false;
        a.ptr++, a.len--, b.ptr++, b.len--;
    }
}

/* The first word of a parameter: its name where a type follows it, and `self` of "&mut self". */
static base_str first_word(base_str item)
{
    static const char mut[] = "mut";
    size_t pos = 0, from, to;
    base_str word = {item.ptr, 0};
    while (code_next_identifier(item.ptr, item.len, &pos, &from, &to)) {
        word = (base_str){item.ptr + from, to - from};
        if (word.len != sizeof mut - 1 || memcmp(word.ptr, mut, word.len) != 0) break;
    }
    return word;
}

/* Of how many parameters from the first on both have the same first words. */
static uint32_t count_alike(const parameter_list *a, const parameter_list *b)
{
    uint32_t n = 0;
    for (; n < a->n && n < b->n; n++) {
        const base_str x = first_word(a->items[n]), y = first_word(b->items[n]);
        if (x.len != y.len || memcmp(x.ptr, y.ptr, x.len) != 0) break;
    }
    return n;
}

/* Languages in which two functions of one name may stand beside each other. */
static bool may_overload(const char *language)
{
    static const char *const languages[] = {"cpp", "java", "c_sharp", "kotlin", "scala", NULL};
    bool may = !language;
    for (size_t i = 0; languages[i] && !may; i++) may = !strcmp(language, languages[i]);
    return may;
}

char *tool__name_overload(
    const code_file *f, const char *path, const base_buf *text, const char *name, base_str block)
{
    uint32_t found[MOST_DEFINITIONS];
    unsigned long line;
    char *plain = tool_plain_name(name, &line);
    const uint32_t n = code_find_definition(f, plain, found, MOST_DEFINITIONS);
    parameter_list given, has;
    const bool is_read = n > 1 && n <= MOST_DEFINITIONS && !line &&
                         find_list(block.ptr, block.len, code_last_name(plain), &given);
    uint32_t n_same = 0, same_at = 0, most = 0, n_most = 0, most_at = 0;
    for (uint32_t i = 0; i < n && is_read; i++) {
        const code_definition *d = &f->definitions[found[i]];
        if (d->is_declaration || d->to > text->len ||
            !find_list(text->data + d->name_from, d->to - d->name_from, d->name, &has))
            continue;
        const uint32_t alike = count_alike(&given, &has);
        if (is_same_list(given.text, has.text)) {
            n_same++;
            same_at = d->line;
        }
        if (alike >= most) {
            n_most = alike > most ? 1 : n_most + 1;
            most = alike;
            most_at = d->line;
        }
    }
    base_buf out = {0};
    if (n_same == 1)
        base_buf_printf(&out, "%s:%u", plain, same_at);
    else if (!n_same && most && n_most == 1 && !may_overload(code_language(path, text->data, text->len)))
        base_buf_printf(&out, "%s:%u", plain, most_at);
    free(plain);
    return out.len ? base_buf_take(&out) : NULL;
}

char *tool_workspace_overload(tool_workspace *w, const char *path, const char *name, base_str block)
{
    tool_file f = {0};
    if (!path || !name || !block.ptr || tool__file_read(&w->root, path, TOOL_MAX_FILE, &f, NULL)) return NULL;
    code_file *c = tool__parse_for(w->grammars, path, f.text.data ? f.text.data : "", f.text.len, name);
    char *overload = tool__name_overload(c, path, &f.text, name, block);
    code_file_free(c);
    tool__file_free(&f);
    return overload;
}
