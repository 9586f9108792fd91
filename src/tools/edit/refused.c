/* What a definition that was written may not be (contract: refused.h). */
#include "tools/edit/refused.h"

#include <stdlib.h>
#include <string.h>

#include "tools/edit/definition.h"
#include "tools/edit/twin.h"
#include "tools/file/safe_path.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

bool tool__is_only_one(tool_workspace *w, const char *path, const base_buf *old_text,
    const base_buf *new_text, tool_result *result)
{
    tool_twin twin = {0};
    if (!tool__find_new_twin(w, path, old_text, new_text, &twin)) return true;
    base_buf_printf(&result->text, "The block defines %.100s, which stands in ", twin.name);
    tool__path_show(&result->text, twin.path);
    base_buf_printf(&result->text,
        ":%u already: two of one name do not build. Nothing was changed. Next: rewrite {\"path\": ",
        twin.line);
    tool__quote(&result->text, twin.path);
    base_buf_puts(&result->text, ", \"name\": ");
    tool__quote(&result->text, twin.name);
    tool__say(result, TOOL_FAILED, "} with that one's whole new text, or this call without it.\n");
    tool__twin_free(&twin);
    return false;
}

/*
 * "// Your implementation here" and nothing else: has the function no code in its body, and a comment? A class that is a docstring
 * alone is one (an exception).
 */
static bool is_stub(tool_workspace *w, const char *path, const base_buf *text, const char *name)
{
    base_buf why = {0};
    uint32_t at;
    bool is = false;
    if (!text->data) return false;
    code_file *c = tool__parse_for(w->grammars, path, text->data, text->len, name);
    if (tool__find_definition(c, path, text, name, &at, &why) && c->language) {
        const code_definition *d = &c->definitions[at];
        char *plain = code_blank_comments(c->language, text->data, text->len);
        uint32_t from = d->body_from, to = d->body_to;
        while (from < to && strchr("{ \t\r\n", plain[from])) from++;
        while (to > from && strchr("} \t\r\n", plain[to - 1])) to--;
        is = (!strcmp(d->what, "function") || !strcmp(d->what, "method")) && d->body_to > d->body_from &&
             from == to && !tool__is_blank(text->data, d->body_from + 1, d->body_to - 1);
        free(plain);
    }
    code_file_free(c);
    base_buf_free(&why);
    return is;
}

/* Has what is called so a body there? */
static bool has_body(tool_workspace *w, const char *path, const base_buf *text, const char *name)
{
    base_buf why = {0};
    uint32_t at;
    bool has = false;
    if (!text->data) return false;
    code_file *c = tool__parse_for(w->grammars, path, text->data, text->len, name);
    if (tool__find_definition(c, path, text, name, &at, &why)) {
        const code_definition *d = &c->definitions[at];
        has = (!strcmp(d->what, "function") || !strcmp(d->what, "method")) && d->body_to > d->body_from;
    }
    code_file_free(c);
    base_buf_free(&why);
    return has;
}

/* A prototype in a function's place: who asks for a declaration does not mean that the body goes. */
static bool loses_body(
    tool_workspace *w, const char *path, const base_buf *old_text, const base_buf *new_text, const char *name)
{
    const char *language = code_language(path, "", 0);
    const bool has_prototypes = language && (!strcmp(language, "c") || !strcmp(language, "cpp"));
    return has_prototypes && has_body(w, path, old_text, name) && !has_body(w, path, new_text, name);
}

bool tool__is_written_out(tool_workspace *w, const char *request, const char *path, const base_buf *old_text,
    const base_buf *new_text, const char *name, tool_result *result)
{
    static const char *const words[] = {"stub", "empty", "nothing", "no-op", "noop", "placeholder"};
    bool is_asked = !request;
    if (loses_body(w, path, old_text, new_text, name)) {
        tool__say(result, TOOL_FAILED,
            "That declares %s only, and its body would be gone. Nothing was changed. Next: the same call with the "
            "whole definition; a declaration goes into a header.\n",
            name);
        return false;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words && !is_asked; i++)
        is_asked = strcasestr(request, words[i]) != NULL;
    if (is_asked || !is_stub(w, path, new_text, name) || is_stub(w, path, old_text, name)) return true;
    tool__say(result, TOOL_FAILED,
        "The body of %s is a comment alone. Nothing was changed. Next: the same call with the code that does what "
        "is asked for.\n",
        name);
    return false;
}
