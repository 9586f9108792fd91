/* How a file of JavaScript or TypeScript takes names from others (contract: script.h). */
#include "tools/refactor/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/file/text.h"
#include "tools/refactor/resolve_work.h"

static bool begins(const char *s, size_t n, const char *word)
{
    const size_t m = strlen(word);
    return n >= m && !memcmp(s, word, m);
}

script_kind script__kind(const char *path, const base_buf *text)
{
    static const struct {
        const char *ending;
        script_kind kind;
    } endings[] = {{".mjs", SCRIPT_ES}, {".cjs", SCRIPT_COMMON}, {".mts", SCRIPT_ES}, {".cts", SCRIPT_ES}};
    static const char *const es[] = {"import ", "import{", "export ", "export{", "import'", "import\""};
    static const char *const common[] = {"require(", "module.exports", "exports."};
    bool is_common = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (base_ends_with(path, endings[i].ending)) return endings[i].kind;
    for (size_t at = 0; at < text->len; at = tool__line_end(text->data, text->len, at) + 1) {
        const size_t n = tool__line_end(text->data, text->len, at) - at;
        for (size_t i = 0; i < sizeof es / sizeof *es; i++)
            if (begins(text->data + at, n, es[i])) return SCRIPT_ES;
        for (size_t i = 0; i < sizeof common / sizeof *common; i++)
            is_common |= memmem(text->data + at, n, common[i], strlen(common[i])) != NULL;
    }
    return is_common ? SCRIPT_COMMON : SCRIPT_PLAIN;
}

/* ---- one import's statement ---- */

/* The last of the words that open an import on the line, in front of byte `before`; SIZE_MAX: none. */
static size_t opening(const char *s, size_t line, size_t before)
{
    static const char *const words[] = {"import", "export", "const", "let", "var"};
    for (size_t at = before + 1; at-- > line;)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            const size_t n = strlen(words[i]);
            if (strncmp(s + at, words[i], n) != 0 || code_is_name_byte(s[at + n])) continue;
            if (at == line || !(code_is_name_byte(s[at - 1]) || s[at - 1] == '.')) return at;
        }
    return SIZE_MAX;
}

bool script__read_import(const base_buf *text, const code_import *im, script_import *ret)
{
    const char *s = text->data;
    size_t line = tool__line_begin(s, im->from), begin = opening(s, line, im->from);
    while (begin == SIZE_MAX && line > 0) {
        const size_t before = line - 1;
        line = tool__line_begin(s, before);
        begin = opening(s, line, before);
    }
    if (begin == SIZE_MAX) return false;
    const bool is_all = im->is_export && !strcmp(im->name, "*"), is_word = s[begin] == 'i' || s[begin] == 'e';
    size_t open = is_all ? begin : im->to;
    while (open < text->len && !strchr("'\"`", s[open])) open++;
    const char *close = open < text->len ? memchr(s + open + 1, s[open], text->len - open - 1) : NULL;
    if (!close) return false;
    size_t to = (size_t)(close - s) + 1;
    while (to < text->len && (s[to] == ')' || s[to] == ' ')) to++;
    while (to > 0 && s[to - 1] == ' ') to--;
    const size_t behind = to + strspn(s + to, " \t\r\n");
    size_t first = begin + strcspn(s + begin, " \t\r\n{");
    first += strspn(s + first, " \t\r\n");
    size_t own = im->from; /* where its declarator begins: a pattern's brace */
    while (!is_word && own > first && s[own] != '{') own--;
    if (!is_word && s[own] != '{') own = im->from;
    *ret = (script_import){
        .line = (uint32_t)begin, .spec = (uint32_t)open + 1, .spec_to = (uint32_t)(close - s)};
    ret->is_alone = is_word || (own <= first && s[behind] != ',');
    ret->from = (uint32_t)(ret->is_alone ? begin : own);
    ret->to = (uint32_t)(ret->is_alone && s[to] == ';' ? to + 1 : to);
    ret->is_type = is_word && begins(s + first, text->len - first, "type ") &&
                   !begins(s + first, text->len - first, "type ,");
    return true;
}

/* ---- how it is written ---- */

script_style script__style(const base_buf *text)
{
    script_style style = {.quote = '\'', .end = ";", .word = "const"};
    size_t n_marked = 0, n_lines = 0, n_single = 0, n_double = 0, n_var = 0, n_const = 0;
    for (size_t at = 0; at < text->len; at = tool__line_end(text->data, text->len, at) + 1) {
        size_t end = tool__line_end(text->data, text->len, at);
        const size_t n = end - at;
        const char *s = text->data + at;
        while (end > at && tool__is_space(text->data[end - 1])) end--;
        const bool is_import =
            begins(s, n, "import ") || begins(s, n, "export ") || memmem(s, n, "require(", 8);
        n_var += begins(s, n, "var ");
        n_const += begins(s, n, "const ") || begins(s, n, "let ");
        if (end > at && (text->data[end - 1] == ';' || text->data[end - 1] == ')' || is_import)) {
            n_lines++;
            n_marked += text->data[end - 1] == ';';
        }
        for (size_t i = 0; i < n && is_import; i++) {
            n_single += s[i] == '\'';
            n_double += s[i] == '"';
        }
    }
    if (n_double > n_single) style.quote = '"';
    if (n_lines && !n_marked) style.end = "";
    if (n_var && !n_const) style.word = "var";
    return style;
}

/* The ending that an import names for the file at `to`: TypeScript imports what it becomes. */
static const char *named_ending(const char *to, const char *like)
{
    static const struct {
        const char *file, *said;
    } becomes[] = {{".ts", ".js"}, {".tsx", ".js"}, {".mts", ".mjs"}, {".cts", ".cjs"}};
    static const char *const endings[] = {".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".mts", ".cts"};
    const char *own = base_path_ending(to), *said = like ? base_path_ending(like) : "";
    bool has_ending = false, is_script = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        has_ending |= !strcmp(said, endings[i]);
        is_script |= !strcmp(own, endings[i]);
    }
    if (!is_script) return own; /* data */
    if (!has_ending) return "";
    for (size_t i = 0; i < sizeof becomes / sizeof *becomes; i++)
        if (!strcmp(own, becomes[i].file) && strncmp(said, ".js", 3) == 0) return becomes[i].said;
    return own;
}

char *script__spell(const char *from, const char *to, const char *like)
{
    base_buf out = {0};
    size_t same = 0, n_up = 0; /* the folders that both have; those that only `from` has */
    for (size_t i = 0; from[i] && from[i] == to[i]; i++)
        if (from[i] == '/') same = i + 1;
    for (const char *p = from + same; (p = strchr(p, '/')) != NULL; p++) n_up++;
    if (!n_up) base_buf_puts(&out, "./");
    for (size_t i = 0; i < n_up; i++) base_buf_puts(&out, "../");
    const char *rest = to + same, *ending = base_path_ending(rest);
    size_t n = strlen(rest) - strlen(ending);
    const char *said = named_ending(to, like);
    if (!*said && n > 6 && !strncmp(rest + n - 6, "/index", 6)) n -= 6;
    base_buf_add(&out, rest, n);
    base_buf_puts(&out, said);
    return base_buf_take(&out);
}

char *script__any_spec(const code_uses *u)
{
    for (uint32_t i = 0; u && i < u->n_imports; i++)
        if (u->imports[i].module[0] == '.' && base_path_name(u->imports[i].module)[0] != '.')
            return base_xstrdup(u->imports[i].module);
    return NULL;
}

uint32_t script__top(const base_buf *text, const code_uses *u)
{
    uint32_t at = 0;
    const char *s = text->data;
    for (uint32_t i = 0; u && i < u->n_imports; i++) {
        script_import st;
        if (u->imports[i].is_export || !script__read_import(text, &u->imports[i], &st)) continue;
        if (st.line != tool__line_begin(s, st.line)) continue;
        uint32_t end = st.to;
        if (!st.is_alone) /* the end of the statement that declares several */
            while (end < text->len && s[end] != ';' && !(s[end] == '\n' && s[end + 1] == '\n')) end++;
        end = (uint32_t)tool__line_end(s, text->len, end);
        if (end + 1 > at) at = end < text->len ? end + 1 : end;
    }
    if (at) return at;
    bool in_comment = false; /* #!, 'use strict' and a comment that a blank line ends open a file */
    uint32_t last = 0;
    for (size_t line = 0; line < text->len;) {
        const size_t end = tool__line_end(s, text->len, line), n = end - line;
        const bool is_strict = begins(s + line, n, "'use strict'") || begins(s + line, n, "\"use strict\"");
        const bool is_blank = tool__is_blank(s, line, end);
        in_comment = in_comment || begins(s + line, n, "/*");
        if (!in_comment && !is_strict && !is_blank && !begins(s + line, n, "//") &&
            !begins(s + line, n, "#!"))
            break;
        if (in_comment && memmem(s + line, n, "*/", 2)) in_comment = false;
        line = end < text->len ? end + 1 : end;
        if (is_strict || is_blank || begins(s, n, "#!")) last = (uint32_t)line;
    }
    return last;
}

bool script__is_bare(const base_buf *text, uint32_t top)
{
    const bool is_opening = top < 2 || text->data[top - 2] == '\n' ||
                            begins(text->data + tool__line_begin(text->data, top - 1), 12, "'use strict'");
    return is_opening && top < text->len && text->data[top] != '\n';
}

bool script__next_spec(const base_buf *text, uint32_t *at, uint32_t *ret_from, uint32_t *ret_to)
{
    const char *s = text->data;
    for (size_t i = *at; i + 2 < text->len; i++) {
        if (!strchr("'\"`", s[i]) || s[i + 1] != '.' || !s[i]) continue;
        const size_t n = strcspn(s + i + 1, "'\"`\n");
        if (s[i + 1 + n] != s[i] || !strchr("./'\"`", s[i + 2])) continue;
        *ret_from = (uint32_t)i + 1;
        *ret_to = (uint32_t)(i + 1 + n);
        *at = *ret_to + 1;
        return true;
    }
    return false;
}

const char *script__module(const refactor *x, const char *from, const char *spec)
{
    char *path = base_xstrdup(from);
    const refactor_file f = {.path = path, .language = refactor__language("javascript")};
    const char *found = refactor__module_path(x, &f, spec);
    free(path);
    return found;
}
