/*
 * A file in a tenth of its tokens: its definitions with their lines. Pure functions of a code_file and its
 * text.
 */
#include "code/map.h"

#include <string.h>

enum { SIGNATURE_BYTES = 100, MAX_NESTING = 32 };

void code_signature_line(const code_definition *d, const char *text, size_t n, size_t most, base_buf *out)
{
    size_t from = d->name_from < d->from ? d->from : d->name_from;
    while (from > d->from && text[from - 1] != '\n')
        from--; /* the line of the name: decorators are left out */
    size_t to = d->body_to != 0 && d->body_from > d->name_from ? d->body_from : d->to;
    if (d->body_to == 0) {
        const char *end =
            to > from ? memchr(text + d->name_from, '\n', to > d->name_from ? to - d->name_from : 0) : NULL;
        if (end != NULL) to = (size_t)(end - text);
    }
    if (to > n) to = n;
    while (to > from && strchr(" \t\r\n{", text[to - 1]) != NULL) to--;
    const size_t begin = out->len;
    bool blank = false;
    for (size_t i = from; i < to; i++) {
        const char c = text[i];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0') {
            blank = out->len > begin;
            continue;
        }
        if (out->len - begin + 4 > most) {
            while (out->len > begin && ((unsigned char)out->data[out->len - 1] & 0xc0) == 0x80) out->len--;
            if (out->len > begin && (unsigned char)out->data[out->len - 1] >= 0xc0) out->len--;
            base_buf_puts(out, "...");
            return;
        }
        if (blank) base_buf_putc(out, ' ');
        blank = false;
        base_buf_putc(out, c);
    }
}

static bool is_small(const code_definition *d)
{
    static const char *const small[] = {"field", "variable", "constant"};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (strcmp(d->what, small[i]) == 0) return true;
    return false;
}

/*
 * Everything nested at most `deepest`; small things when `all`; names only when width is 0. Returns how many
 * were left out.
 */
static uint32_t write_outline(
    const code_file *f, const char *text, size_t n, uint32_t deepest, bool all, size_t width, base_buf *out)
{
    uint32_t ends[MAX_NESTING], depth = 0, left_out = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        while (depth != 0 && d->from >= ends[depth - 1]) depth--;
        const bool same = i != 0 && d->from == d[-1].from && d->to == d[-1].to; /* typedef struct x {} x */
        if (depth > deepest || (!all && (is_small(d) || d->is_declaration))) {
            left_out += !same;
        } else if (!same) {
            base_buf_printf(out, "%5u-%-5u ", d->line, d->line_end);
            for (uint32_t k = 0; k < depth; k++) base_buf_puts(out, "  ");
            if (width == 0 || strcmp(d->what, "section") == 0)
                base_buf_puts(out, d->name);
            else
                code_signature_line(d, text, n, width, out);
            base_buf_putc(out, '\n');
        }
        if (depth < MAX_NESTING) ends[depth++] = d->to;
    }
    return left_out;
}

void code_outline(const code_file *f, const char *text, size_t n, size_t budget_bytes, base_buf *out)
{
    static const struct {
        uint32_t deepest;
        bool all;
        size_t width;
    } steps[] = {{MAX_NESTING, true, SIGNATURE_BYTES}, {MAX_NESTING, false, SIGNATURE_BYTES},
        {MAX_NESTING, false, 60}, {MAX_NESTING, false, 0}, {1, false, 0}, {0, false, 0}};
    const size_t begin = out->len;
    uint32_t left_out = 0;
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        out->len = begin;
        left_out = write_outline(f, text, n, steps[s].deepest, steps[s].all, steps[s].width, out);
        if (out->len - begin <= budget_bytes) break;
    }
    if (left_out != 0) base_buf_printf(out, "[%u smaller definitions left out]\n", left_out);
}
