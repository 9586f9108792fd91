/* Constants that are given another value (contract: assigned_const.h). */
#include "tools/edit/assigned_const.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/code.h"
#include "tools/edit/newcomer.h"

/* Is the name whose bytes are [from, to) given a value there: "q = 1", "q += 1", "q++", "--q", but not "q == 1" or "x.q = 1"? */
static bool is_assigned(const char *text, size_t n, size_t from, size_t to)
{
    size_t at = to;
    const bool is_counted =
        from > 1 && (!memcmp(text + from - 2, "++", 2) || !memcmp(text + from - 2, "--", 2));
    if (from && text[from - 1] == '.') return false;
    while (at < n && text[at] == ' ') at++;
    if (at + 1 < n && (!memcmp(text + at, "++", 2) || !memcmp(text + at, "--", 2))) return true;
    while (at < n && strchr("+-*/%|&^?", text[at])) at++;
    return is_counted || (at + 1 < n && text[at] == '=' && text[at + 1] != '=' && text[at + 1] != '>');
}

/* Behind the declaration that ends at `at`. */
static bool is_assigned_behind(const char *text, size_t n, size_t at, const char *name)
{
    bool is = false;
    for (size_t from, to; !is && code_next_identifier(text, n, &at, &from, &to);)
        is = to - from == strlen(name) && !memcmp(text + from, name, to - from) &&
             is_assigned(text, n, from, to);
    return is;
}

/* "const NAME =" of the old text? */
static bool has_const(const base_buf *text, const char *name)
{
    base_buf said = {0};
    base_buf_printf(&said, "const %s ", name);
    const bool has = text->len && memmem(text->data, text->len, said.data, said.len) != NULL;
    base_buf_free(&said);
    return has;
}

void tool__let_assigned(const char *path, const base_buf *old_text, base_buf *text, base_buf *note)
{
    static const char word[] = "const";
    const char *language = code_language(path, "", 0);
    if (!tool__is_language(language, "javascript") && !tool__is_language(language, "typescript") &&
        !tool__is_language(language, "tsx"))
        return;
    char *plain = code_blank_comments(language, text->data, text->len);
    base_buf out = {0};
    size_t done = 0;
    for (size_t pos = 0, from, to, name_from, name_to;
         code_next_identifier(plain, text->len, &pos, &from, &to);) {
        size_t next = to;
        if (to - from != sizeof word - 1 || memcmp(plain + from, word, to - from) != 0 || plain[to] != ' ' ||
            !code_next_identifier(plain, text->len, &next, &name_from, &name_to) || name_from != to + 1)
            continue;
        char *name = base_xstrndup(plain + name_from, name_to - name_from);
        if (!has_const(old_text, name) && is_assigned_behind(plain, text->len, next + 2, name)) {
            base_buf_add(&out, text->data + done, from - done);
            base_buf_puts(&out, "let");
            done = to;
            base_buf_printf(note, "%s is given another value: let instead of const. ", name);
        }
        free(name);
    }
    base_buf_add(&out, text->data + done, text->len - done);
    base_buf_free(text);
    *text = out;
    free(plain);
}
