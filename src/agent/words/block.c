/*
 * Blocks by indentation (contract: block.h): what a formatter has set says where statements begin as well as a tree does, and what
 * is replaced are lines. Statements of one depth are taken together while they are few lines; one that is longer is cut at the
 * statements inside of it, and its head goes with the first of these.
 */
#include "agent/words/block.h"

#include <stdlib.h>
#include <string.h>

#include "agent/words/rank_texts.h"
#include "base/mem.h"

enum { MOST_LINES = 25, TOGETHER = 15, MOST_BLOCKS = 128, LONG_LINES = 70, LONG_BYTES = 3000, TAB = 8 };

typedef struct line {
    const char *text;
    uint32_t n, indent;
    bool is_blank, goes_on; /* goes_on: no statement begins here: "}", "else:", "#ifdef" */
} line;

typedef struct cutter {
    line *lines;
    uint32_t n;
    agent_block all[MOST_BLOCKS]; /* lines from 0, `to` behind the last */
    uint32_t n_blocks;
} cutter;

static bool begins_with(const line *l, const char *word)
{
    const size_t n = strlen(word);
    return l->n >= n && !memcmp(l->text, word, n) && (l->n == n || strchr(" :({", l->text[n]));
}

/* Without its indentation. */
static line read_line(const char *text, size_t n)
{
    static const char *const inner[] = {"else", "elif", "except", "finally", "catch"};
    line l = {.text = text, .n = (uint32_t)n};
    for (; l.n && strchr(" \t", *l.text); l.text++, l.n--) l.indent += *l.text == '\t' ? TAB : 1;
    while (l.n && strchr(" \t\r", l.text[l.n - 1])) l.n--;
    l.is_blank = !l.n;
    l.goes_on = l.n && (strchr("})]", *l.text) || (*l.text == '#' && !l.indent));
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) l.goes_on |= begins_with(&l, inner[i]);
    return l;
}

static void read_lines(cutter *c, const char *text, size_t n)
{
    size_t cap = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t to = end ? (size_t)(end - text) : n;
        base_grow(&c->lines, &cap, c->n + 1, sizeof *c->lines);
        c->lines[c->n++] = read_line(text + at, to - at);
        at = to + 1;
    }
}

static void add_block(cutter *c, uint32_t from, uint32_t to)
{
    while (from < to && c->lines[from].is_blank) from++;
    while (to > from && c->lines[to - 1].is_blank) to--;
    if (from < to && to - from <= MOST_LINES + 1 && c->n_blocks < MOST_BLOCKS)
        c->all[c->n_blocks++] = (agent_block){from, to};
}

/* Of the lines that say something at which depth statements begin; what stands further left goes on (labels, texts of many lines). */
static uint32_t depth_of(const cutter *c, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (!c->lines[i].is_blank && !c->lines[i].goes_on) return c->lines[i].indent;
    return UINT32_MAX;
}

/* Does a statement, with the comment above it, begin on line i? */
static bool begins_statement(const cutter *c, uint32_t from, uint32_t i, uint32_t depth)
{
    const line *l = &c->lines[i], *above = i > from ? &c->lines[i - 1] : NULL;
    const bool is_below_comment =
        above && above->n > 1 && (!memcmp(above->text, "# ", 2) || !memcmp(above->text, "//", 2));
    return !l->is_blank && !l->goes_on && l->indent <= depth && !is_below_comment;
}

static void cut(cutter *c, uint32_t from, uint32_t to, uint32_t levels);

/* One statement of many lines: what stands inside of it, run by run; its head with the first of these. */
static void cut_inside(cutter *c, uint32_t from, uint32_t to, uint32_t depth, uint32_t levels)
{
    for (uint32_t i = from + 1; i < to;) {
        uint32_t end = i;
        while (end < to && (c->lines[end].is_blank || c->lines[end].indent > depth)) end++;
        const uint32_t first = c->n_blocks;
        if (end > i) cut(c, i, end, levels - 1);
        /* The line above them is the head, or an "else" */
        if (c->n_blocks > first && c->all[first].from <= i + 1 && c->all[first].to - i <= MOST_LINES)
            c->all[first].from = i - 1;
        i = end + 1;
    }
}

static void cut(cutter *c, uint32_t from, uint32_t to, uint32_t levels)
{
    const uint32_t depth = depth_of(c, from, to);
    if (to - from <= TOGETHER || depth == UINT32_MAX || !levels) {
        add_block(c, from, to);
        return;
    }
    uint32_t begin = from;
    for (uint32_t i = from; i < to;) {
        uint32_t end = i + 1;
        while (end < to && !begins_statement(c, from, end, depth)) end++;
        if (end - begin > TOGETHER && i > begin) {
            add_block(c, begin, i);
            begin = i;
        }
        if (end - i > MOST_LINES) {
            cut_inside(c, i, end, depth, levels);
            begin = end;
        }
        i = end;
    }
    add_block(c, begin, to);
}

/* As texts, the best of them first; 0: none has a word of the request. */
static uint32_t rank(const cutter *c, const char *request, agent_block *ret, uint32_t most)
{
    char *texts[MOST_BLOCKS];
    agent_rank ranks[MOST_BLOCKS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        const line *first = &c->lines[c->all[i].from], *last = &c->lines[c->all[i].to - 1];
        texts[i] = base_xstrndup(first->text, (size_t)(last->text + last->n - first->text));
    }
    agent_rank_texts(request, (const char *const *)texts, c->n_blocks, ranks);
    for (; n < most && n < c->n_blocks; n++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < c->n_blocks; i++)
            if (ranks[i].score > ranks[best].score) best = i;
        if (ranks[best].score <= 0) break;
        ret[n] = (agent_block){c->all[best].from + 1, c->all[best].to};
        ranks[best].score = 0;
    }
    for (uint32_t i = 0; i < c->n_blocks; i++) free(texts[i]);
    return n;
}

uint32_t agent__find_blocks(
    const char *text, size_t n, size_t body, const char *request, agent_block *ret, uint32_t most)
{
    enum { LEVELS = 8 };
    cutter *c = base_xcalloc(1, sizeof *c);
    uint32_t from = 0, found = 0;
    read_lines(c, text, n);
    for (size_t i = 0; i < body && i < n; i++) from += text[i] == '\n';
    uint32_t to = c->n;
    if (body < n && text[body] == '{') from++;
    while (to > from && (c->lines[to - 1].is_blank || c->lines[to - 1].goes_on)) to--;
    if (to > from) cut(c, from, to, LEVELS);
    if (c->n_blocks) found = rank(c, request, ret, most);
    free(c->lines);
    free(c);
    return found;
}

bool agent__is_long(const char *text, size_t n)
{
    uint32_t lines = 1;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    return n > LONG_BYTES || lines > LONG_LINES;
}
