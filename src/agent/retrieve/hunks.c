/*
 * What a hunk of a diff is headed with. git writes the last function that begins above the hunk, which the hunk often does not
 * touch, and a small model then tells of that one. Here it is what the changed lines stand in.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/retrieve.h"
#include "base/mem.h"
#include "code/code.h"
#include "tools/file/text.h"

enum { MAX_FILE = 4 << 20, MAX_NAMES = 6 };

/* The file that a diff's "+++ b/PATH" names, as it is in the tree now. */
typedef struct side {
    code_file *parsed; /* NULL: none, or it cannot be read */
    base_buf text;
} side;

static void side_free(side *s)
{
    if (s->parsed) code_file_free(s->parsed);
    base_buf_free(&s->text);
    *s = (side){0};
}

static void side_read(const agent *a, const char *line, size_t n, side *ret)
{
    static const char mark[] = "+++ b/";
    side_free(ret);
    if (n <= strlen(mark) || memcmp(line, mark, strlen(mark)) != 0) return;
    char *path = base_xstrndup(line + strlen(mark), n - strlen(mark));
    path[strcspn(path, "\t\r")] = '\0';
    if (!tool_workspace_read(a->workspace, path, MAX_FILE, &ret->text, NULL) && ret->text.len)
        ret->parsed = code_parse(tool_workspace_grammars(a->workspace), path, ret->text.data, ret->text.len);
    free(path);
}

/* The innermost definition with a body that holds the line. */
static const code_definition *definition_at(const side *s, unsigned long line)
{
    const code_definition *best = NULL;
    size_t at = tool__line_start(s->text.data, s->text.len, line);
    while (at < s->text.len && (s->text.data[at] == ' ' || s->text.data[at] == '\t')) at++;
    for (uint32_t i = 0; s->parsed && i < s->parsed->n_definitions; i++) {
        const code_definition *d = &s->parsed->definitions[i];
        if (d->from <= at && at < d->to && (!best || d->from >= best->from)) best = d;
    }
    return best;
}

/* Names what the hunk's changed lines stand in; `from` is where its first line in the new file stands, `at` its text. */
static void put_heading(const side *s, unsigned long from, const char *at, const char *end, base_buf *out)
{
    const code_definition *named[MAX_NAMES];
    size_t n = 0;
    for (unsigned long line = from; at < end;) {
        const char c = *at, *next = memchr(at, '\n', (size_t)(end - at));
        if (!strchr(" +-\\\n", c)) break;
        const code_definition *d = c == '+' || c == '-' ? definition_at(s, line) : NULL;
        size_t k = 0;
        while (k < n && named[k] != d) k++;
        if (d && k == n && n < MAX_NAMES) {
            base_buf_printf(out, "%s%s", n ? ", " : " ", d->name);
            named[n++] = d;
        }
        line += c == ' ' || c == '+' || c == '\n';
        at = next ? next + 1 : end;
    }
}

void agent__put_headed(const agent *a, const char *diff, size_t n, base_buf *out)
{
    const char *end = diff + n;
    side s = {0};
    for (const char *at = diff; at < end;) {
        const char *eol = memchr(at, '\n', (size_t)(end - at)), *next = eol ? eol + 1 : end;
        const size_t len = (size_t)((eol ? eol : end) - at);
        const char *plus = len > 3 && !memcmp(at, "@@ ", 3) ? memchr(at, '+', len) : NULL;
        const char *close = plus ? memmem(plus, (size_t)(at + len - plus), " @@", 3) : NULL;
        if (len > 4 && !memcmp(at, "+++ ", 4)) side_read(a, at, len, &s);
        if (close && s.parsed) {
            base_buf_add(out, at, (size_t)(close + 3 - at));
            put_heading(&s, strtoul(plus + 1, NULL, 10), next, end, out);
            if (eol) base_buf_putc(out, '\n');
        } else {
            base_buf_add(out, at, (size_t)(next - at));
        }
        at = next;
    }
    side_free(&s);
}
