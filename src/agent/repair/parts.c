/*
 * "An empty string is no decimal": a small model puts the condition that was asked for in front, and drops half of the next one on
 * the way. Where a test fails behind a change that it passed without, the change in parts is tried before anything else is
 * written: what is new in it alone, and each line that it altered as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/turn_files.h"
#include "agent/call/prompt.h"
#include "agent/repair/attempt.h"
#include "base/json.h"
#include "base/mem.h"
#include "code/code.h"

enum {
    MOST_LINES = 200,
    LIKE = 50,
    SAME = 100
}; /* of a line that is the old one with something changed, in hundredths */

typedef struct side {
    base_str lines[MOST_LINES]; /* without their line ends */
    uint32_t n;
} side;

/* A line of the new text: the old line that it is, or was; UINT32_MAX: it is new. */
typedef struct pairing {
    const side *before, *now;
    uint32_t of[MOST_LINES];
    bool is_altered[MOST_LINES];
    uint32_t n_altered;
} pairing;

static bool read_lines(const base_buf *text, side *ret)
{
    ret->n = 0;
    for (size_t at = 0; at < text->len && ret->n < MOST_LINES;) {
        const char *end = memchr(text->data + at, '\n', text->len - at);
        const size_t to = end ? (size_t)(end - text->data) : text->len;
        ret->lines[ret->n++] = (base_str){text->data + at, to - at};
        at = to + 1;
    }
    return ret->n < MOST_LINES;
}

static base_str trimmed(base_str s)
{
    while (s.len && strchr(" \t\r", s.ptr[s.len - 1])) s.len--;
    while (s.len && strchr(" \t", *s.ptr)) {
        s.ptr++;
        s.len--;
    }
    return s;
}

/* In hundredths: by what both begin and end with. */
static uint32_t likeness(base_str x, base_str y)
{
    const base_str a = trimmed(x), b = trimmed(y);
    const size_t least = a.len < b.len ? a.len : b.len, most = a.len < b.len ? b.len : a.len;
    size_t head = 0, tail = 0;
    while (head < least && a.ptr[head] == b.ptr[head]) head++;
    while (tail < least - head && a.ptr[a.len - 1 - tail] == b.ptr[b.len - 1 - tail]) tail++;
    if (a.len == b.len && head == a.len) return SAME;
    const uint32_t percent = most ? (uint32_t)(SAME * (head + tail) / most) : 0;
    return percent >= LIKE ? percent - 1 : 0;
}

/* The pairs of lines that are most alike in all, in order. */
static void pair(pairing *p)
{
    const uint32_t n = p->before->n, m = p->now->n;
    uint32_t *best = base_xcalloc((size_t)(n + 1) * (m + 1), sizeof *best);
#define BEST(i, k) best[(size_t)(i) * (m + 1) + (k)]
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t k = m; k-- > 0;) {
            const uint32_t like = likeness(p->before->lines[i], p->now->lines[k]);
            uint32_t most = BEST(i + 1, k) > BEST(i, k + 1) ? BEST(i + 1, k) : BEST(i, k + 1);
            if (like && BEST(i + 1, k + 1) + like > most) most = BEST(i + 1, k + 1) + like;
            BEST(i, k) = most;
        }
    for (uint32_t k = 0; k < m; k++) p->of[k] = UINT32_MAX;
    for (uint32_t i = 0, k = 0; i < n && k < m;) {
        const uint32_t like = likeness(p->before->lines[i], p->now->lines[k]);
        if (like && BEST(i, k) == BEST(i + 1, k + 1) + like) {
            p->is_altered[k] = like < SAME;
            p->n_altered += p->is_altered[k];
            p->of[k++] = i++;
        } else if (BEST(i, k) == BEST(i + 1, k)) {
            i++;
        } else {
            k++;
        }
    }
#undef BEST
    free(best);
}

/* The new text with old lines for altered ones: for all of them, or for the nth; what is gone comes back with all. */
static void put_part(const pairing *p, uint32_t nth, base_buf *out)
{
    uint32_t next = 0, altered = 0;
    for (uint32_t k = 0; k < p->now->n; k++) {
        const bool is_all = nth == UINT32_MAX, is_back = p->is_altered[k] && (is_all || altered == nth);
        for (; is_all && p->of[k] != UINT32_MAX && next < p->of[k]; next++) {
            base_buf_add(out, p->before->lines[next].ptr, p->before->lines[next].len);
            base_buf_putc(out, '\n');
        }
        const base_str line = is_back ? p->before->lines[p->of[k]] : p->now->lines[k];
        base_buf_add(out, line.ptr, line.len);
        base_buf_putc(out, '\n');
        altered += p->is_altered[k];
        if (p->of[k] != UINT32_MAX) next = p->of[k] + 1;
    }
    for (; nth == UINT32_MAX && next < p->before->n; next++) {
        base_buf_add(out, p->before->lines[next].ptr, p->before->lines[next].len);
        base_buf_putc(out, '\n');
    }
}

/* The answer that would write this text; false: this model's calls are no plain text. */
static bool put_answer(const agent *a, const agent_turn_file *f, const base_buf *text, base_buf *out)
{
    const agent_definition d = {.path = f->path,
        .name = a->fix.name,
        .language = (char *)(f->language ? f->language : ""),
        .text = *text};
    if (model_tools_are_marked(a->info.tools)) return false;
    agent__put_call(a, &d, out);
    base_buf_add(out, text->data, text->len);
    base_buf_puts(out, "```\n");
    return !memchr(out->data, AGENT_PROMPT_MARK, out->len);
}

static void add_first(agent *a, uint32_t at, char *answer)
{
    agent_fix *x = &a->fix;
    if (x->n_kept == AGENT_MAX_KEPT) free(x->kept[--x->n_kept]);
    memmove(&x->kept[at + 1], &x->kept[at], (x->n_kept - at) * sizeof *x->kept);
    x->kept[at] = answer;
    x->n_kept++;
}

/* The whole lines of the file's one definition of that name. */
static bool read_definition(
    const agent *a, const agent_turn_file *f, const char *text, size_t n, base_buf *ret)
{
    uint32_t at;
    code_file *c = code_parse(tool_workspace_grammars(a->workspace), f->path, text, n);
    const bool is_one = code_find_definition(c, a->fix.name, &at, 1) == 1;
    if (is_one) {
        size_t from = c->definitions[at].from, to = c->definitions[at].to;
        while (from && text[from - 1] != '\n') from--;
        while (to > from && text[to - 1] == '\n') to--;
        base_buf_add(ret, text + from, to - from);
    }
    code_file_free(c);
    return is_one;
}

static void keep_parts_of(agent *a, const agent_turn_file *f)
{
    base_buf old = {0}, new = {0};
    side *sides = base_xcalloc(2, sizeof *sides);
    pairing *p = base_xcalloc(1, sizeof *p);
    p->before = &sides[0];
    p->now = &sides[1];
    const bool is_read = read_definition(a, f, f->before, f->n_before, &old) &&
                         read_definition(a, f, f->now, f->n_now, &new) && read_lines(&old, &sides[0]) &&
                         read_lines(&new, &sides[1]);
    if (is_read) pair(p);
    /* Nothing altered: the change has one part. Nothing but one line: so it has, too. */
    const bool has_parts = is_read && p->n_altered && (p->n_altered > 1 || p->now->n != p->before->n);
    uint32_t n = 0;
    for (uint32_t i = 0; has_parts && n < AGENT_MAX_KEPT && i <= p->n_altered; i++) {
        base_buf text = {0}, answer = {0};
        put_part(p, i ? i - 1 : UINT32_MAX, &text);
        if (put_answer(a, f, &text, &answer) && !(i && p->n_altered == 1))
            add_first(a, n++, base_buf_take(&answer));
        base_buf_free(&text);
        base_buf_free(&answer);
    }
    free(sides);
    free(p);
    base_buf_free(&old);
    base_buf_free(&new);
}

void agent__keep_parts(agent *a)
{
    agent_turn_files files;
    if (a->fix.wanted || !a->fix.path || !a->fix.name || !a->fix.writes || a->asked.new_test.path) return;
    agent__turn_files(a, &files);
    for (size_t i = 0; i < files.n; i++)
        if (!strcmp(files.files[i].path, a->fix.path)) keep_parts_of(a, &files.files[i]);
    agent__turn_files_free(&files);
}
