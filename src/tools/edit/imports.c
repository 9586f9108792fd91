/* Imports of the standard library (contract: imports.h). */
#include "tools/edit/imports.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/code.h"
#include "tools/file/text.h"

/* A name, and what brings it; NULL: the name's own module. is_module: it counts where "." or "::" follows. */
typedef struct standard {
    const char *name, *from;
    bool is_module;
} standard;

static const standard go[] = {{"strings", NULL, true}, {"fmt", NULL, true}, {"math", NULL, true},
    {"strconv", NULL, true}, {"errors", NULL, true}, {"sort", NULL, true}, {"os", NULL, true},
    {"time", NULL, true}, {"bytes", NULL, true}, {"unicode", NULL, true}, {"io", NULL, true},
    {"regexp", NULL, true}, {"bufio", NULL, true}, {"log", NULL, true}, {"sync", NULL, true},
    {"context", NULL, true}, {"reflect", NULL, true}, {"big", "math/big", true},
    {"utf8", "unicode/utf8", true}, {"rand", "math/rand", true}, {"filepath", "path/filepath", true},
    {"json", "encoding/json", true}, {0}};
static const standard python[] = {{"os", NULL, true}, {"re", NULL, true}, {"sys", NULL, true},
    {"json", NULL, true}, {"math", NULL, true}, {"time", NULL, true}, {"io", NULL, true},
    {"shutil", NULL, true}, {"string", NULL, true}, {"random", NULL, true}, {"logging", NULL, true},
    {"warnings", NULL, true}, {"datetime", NULL, true}, {"itertools", NULL, true}, {"functools", NULL, true},
    {"collections", NULL, true}, {"tempfile", NULL, true}, {"subprocess", NULL, true},
    {"textwrap", NULL, true}, {"unicodedata", NULL, true}, {"contextlib", NULL, true},
    {"operator", NULL, true}, {"copy", NULL, true}, {"pytest", NULL, true}, {"Path", "pathlib", false},
    {"defaultdict", "collections", false}, {"Counter", "collections", false},
    {"OrderedDict", "collections", false}, {"namedtuple", "collections", false},
    {"dataclass", "dataclasses", false}, {"contextmanager", "contextlib", false},
    {"Optional", "typing", false}, {"Union", "typing", false}, {"Dict", "typing", false},
    {"List", "typing", false}, {"Iterator", "typing", false}, {"Iterable", "typing", false},
    {"Callable", "typing", false}, {"Any", "typing", false}, {"Mapping", "typing", false}, {0}};
static const standard c[] = {{"strlen", "string.h", false}, {"strcmp", "string.h", false},
    {"strncmp", "string.h", false}, {"strchr", "string.h", false}, {"strrchr", "string.h", false},
    {"strstr", "string.h", false}, {"strcpy", "string.h", false}, {"strncpy", "string.h", false},
    {"memcpy", "string.h", false}, {"memmove", "string.h", false}, {"memset", "string.h", false},
    {"memcmp", "string.h", false}, {"memchr", "string.h", false}, {"strerror", "string.h", false},
    {"malloc", "stdlib.h", false}, {"calloc", "stdlib.h", false}, {"realloc", "stdlib.h", false},
    {"free", "stdlib.h", false}, {"strtol", "stdlib.h", false}, {"strtoul", "stdlib.h", false},
    {"qsort", "stdlib.h", false}, {"abs", "stdlib.h", false}, {"atoi", "stdlib.h", false},
    {"getenv", "stdlib.h", false}, {"printf", "stdio.h", false}, {"fprintf", "stdio.h", false},
    {"snprintf", "stdio.h", false}, {"isdigit", "ctype.h", false}, {"isspace", "ctype.h", false},
    {"isalpha", "ctype.h", false}, {"isalnum", "ctype.h", false}, {"isupper", "ctype.h", false},
    {"islower", "ctype.h", false}, {"toupper", "ctype.h", false}, {"tolower", "ctype.h", false},
    {"strcasecmp", "strings.h", false}, {"strncasecmp", "strings.h", false}, {"INT_MAX", "limits.h", false},
    {"INT_MIN", "limits.h", false}, {"LONG_MAX", "limits.h", false}, {"LLONG_MAX", "limits.h", false},
    {"LLONG_MIN", "limits.h", false}, {"bool", "stdbool.h", false}, {"uint8_t", "stdint.h", false},
    {"uint32_t", "stdint.h", false}, {"uint64_t", "stdint.h", false}, {"int64_t", "stdint.h", false},
    {"SIZE_MAX", "stdint.h", false}, {"assert", "assert.h", false}, {"errno", "errno.h", false},
    {"sqrt", "math.h", false}, {"pow", "math.h", false}, {"floor", "math.h", false},
    {"ceil", "math.h", false}, {0}};
static const standard rust[] = {{"HashMap", "std::collections", false},
    {"HashSet", "std::collections", false}, {"BTreeMap", "std::collections", false},
    {"BTreeSet", "std::collections", false}, {"VecDeque", "std::collections", false},
    {"Cow", "std::borrow", false}, {"Rc", "std::rc", false}, {"Arc", "std::sync", false},
    {"Mutex", "std::sync", false}, {"Ordering", "std::cmp", false}, {"FromStr", "std::str", false},
    {"Path", "std::path", false}, {"PathBuf", "std::path", false}, {"Duration", "std::time", false},
    {"fmt", "std", true}, {"mem", "std", true}, {"iter", "std", true}, {0}};
static const standard script[] = {
    {"fs", NULL, true}, {"os", NULL, true}, {"util", NULL, true}, {"assert", NULL, true}, {0}};

static const struct {
    const char *language;
    const standard *all;
} libraries[] = {
    {"go", go}, {"python", python}, {"c", c}, {"rust", rust}, {"javascript", script}, {"typescript", script}};

/* Does the block use the name as a library's, not as a member, and without making one of its own? */
static bool is_used(const char *text, size_t n, const standard *s, bool *ret_is_own)
{
    size_t pos = 0, from, to, m = strlen(s->name);
    bool used = false;
    while (code_next_identifier(text, n, &pos, &from, &to)) {
        if (to - from != m || memcmp(text + from, s->name, m) != 0) continue;
        if (from && strchr(".:>\"'", text[from - 1])) continue;
        size_t next = to;
        while (next < n && text[next] == ' ') next++;
        const bool is_reached =
            to < n && (text[to] == '.' || (to + 1 < n && text[to] == ':' && text[to + 1] == ':'));
        const bool is_made = next + 1 < n &&
                             ((text[next] == '=' && text[next + 1] != '=') || text[next] == ':') &&
                             !(text[next] == ':' && text[next + 1] == ':');
        *ret_is_own |= is_made && s->is_module;
        used |= !s->is_module || is_reached;
    }
    return used;
}

static bool begins(const base_buf *text, size_t at, const char *with)
{
    const size_t n = strlen(with);
    return text->len - at >= n && !memcmp(text->data + at, with, n);
}

static void insert(base_buf *text, size_t at, const char *line)
{
    base_buf out = {0};
    const bool crlf = tool__text_style(text->data, text->len).crlf;
    base_buf_add(&out, text->data, at);
    tool__line_ends(&out, line, strlen(line), crlf);
    base_buf_add(&out, text->data + at, text->len - at);
    base_buf_free(text);
    *text = out;
}

/* The first line (or with is_last the byte behind the last one) at column 0 that begins so; SIZE_MAX: none. */
static size_t find_line(const base_buf *text, const char *with, bool is_last)
{
    size_t found = SIZE_MAX;
    for (size_t at = 0; at < text->len; at = tool__line_end(text->data, text->len, at) + 1) {
        if (!begins(text, at, with) || begins(text, at, "from __future__")) continue;
        const size_t end = tool__line_end(text->data, text->len, at);
        if (!is_last) return at;
        found = end < text->len ? end + 1 : end;
    }
    return found;
}

/* Behind comments, attributes and a docstring that a file begins with. */
static size_t behind_head(const char *language, const base_buf *text)
{
    static const char *const heads[] = {
        "#!", "//", "#", "/*", " *", "from __future__", "'use strict'", "\"use strict\""};
    size_t at = 0;
    while (at < text->len) {
        const size_t end = tool__line_end(text->data, text->len, at);
        bool is_head = tool__is_blank(text->data, at, end);
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) is_head |= begins(text, at, heads[i]);
        if (!strcmp(language, "c") && begins(text, at, "#if")) is_head = false;
        const char *quotes = begins(text, at, "\"\"\"") ? "\"\"\"" : begins(text, at, "'''") ? "'''" : NULL;
        if (quotes) {
            const char *close = memmem(text->data + at + 3, text->len - at - 3, quotes, 3);
            if (!close) return at;
            at = tool__line_end(text->data, text->len, (size_t)(close - text->data)) + 1;
            continue;
        }
        if (!is_head) break;
        at = end + 1;
    }
    return at < text->len ? at : text->len;
}

/* false: the file has no place for it. */
static bool import_go(base_buf *text, const char *module)
{
    base_buf line = {0};
    size_t group = find_line(text, "import (", false), one = find_line(text, "import \"", true),
           package = find_line(text, "package ", true);
    size_t at = group != SIZE_MAX ? tool__line_end(text->data, text->len, group) + 1 : 0;
    if (group != SIZE_MAX) {
        base_buf_printf(&line, "\t\"%s\"\n", module);
        /* In its place by the alphabet: gofmt wants them so. */
        while (at < text->len && begins(text, at, "\t\"") &&
               strncmp(text->data + at + 2, module, strlen(module)) < 0)
            at = tool__line_end(text->data, text->len, at) + 1;
        if (at > text->len) base_buf_clear(&line); /* the file ends in the middle of it */
        if (line.len) insert(text, at, line.data);
    } else if (one != SIZE_MAX || package != SIZE_MAX) {
        base_buf_printf(&line, "%simport \"%s\"\n", one != SIZE_MAX ? "" : "\n", module);
        insert(text, one != SIZE_MAX ? one : package, line.data);
    }
    const bool is_done = line.len > 0;
    base_buf_free(&line);
    return is_done;
}

static void import_line(const char *language, base_buf *text, const standard *s, base_buf *line)
{
    const bool is_python = !strcmp(language, "python"), is_c = !strcmp(language, "c");
    if (is_python && s->from)
        base_buf_printf(line, "from %s import %s\n", s->from, s->name);
    else if (is_python)
        base_buf_printf(line, "import %s\n", s->name);
    else if (is_c)
        base_buf_printf(line, "#include <%s>\n", s->from);
    else if (!strcmp(language, "rust"))
        base_buf_printf(line, "use %s::%s;\n", s->from, s->name);
    else if (find_line(text, "import ", false) != SIZE_MAX)
        base_buf_printf(line, "import %s from 'node:%s';\n", s->name, s->name);
    else
        base_buf_printf(line, "const %s = require('%s');\n", s->name, s->name);
}

/* A line of its own, in front of the first import (behind the last #include). */
static void import_other(const char *language, base_buf *text, const standard *s)
{
    base_buf line = {0};
    size_t at = SIZE_MAX;
    import_line(language, text, s, &line);
    if (!strcmp(language, "c")) {
        at = find_line(text, "#include <", true);
        if (at == SIZE_MAX) at = find_line(text, "#include", true);
    } else {
        static const char *const firsts[] = {"import ", "from ", "use ", "const "};
        for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
            const size_t found = find_line(text, firsts[i], false);
            if (found < at) at = found;
        }
    }
    const bool is_first = at == SIZE_MAX;
    if (is_first) {
        at = behind_head(language, text);
        base_buf_putc(&line, '\n');
    }
    insert(text, at, line.data);
    base_buf_free(&line);
}

void tool__import_standard(
    const char *language, base_str block, const base_buf *old_text, base_buf *text, base_buf *say)
{
    const standard *all = NULL;
    for (size_t i = 0; language && i < sizeof libraries / sizeof *libraries; i++)
        if (!strcmp(language, libraries[i].language)) all = libraries[i].all;
    if (!all || !block.ptr || !old_text->len || !text->len) return;
    char *code = code_blank_comments(language, block.ptr, block.len);
    for (const standard *s = all; s->name; s++) {
        bool is_own = false;
        const char *from = s->from ? s->from : s->name;
        if (!is_used(code, block.len, s, &is_own) || is_own) continue;
        if (code_has_identifier(old_text->data, old_text->len, s->name)) continue;
        /* The block brought it, or another name of the same header did. */
        if (!strcmp(language, "c") ? memmem(text->data, text->len, from, strlen(from)) != NULL
                                   : memmem(code, block.len, "import ", 7) ||
                                         (!strcmp(language, "rust") && memmem(code, block.len, "use ", 4)))
            continue;
        if (strcmp(language, "go"))
            import_other(language, text, s);
        else if (!import_go(text, from))
            continue;
        base_buf_printf(say, "Imported %s. ", !strcmp(language, "c") ? from : s->name);
    }
    free(code);
}
