/*
 * Which definition of a model's fenced block is meant (contract: choose.h). The block is parsed like the file
 * it is for, alone and, where a member alone is no text of its language, inside a wrapper; lines that the
 * file has already are dropped, new helper definitions stay.
 */
#include "tools/edit/choose.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "tools/edit/replace.h"

/*
 * The block twice: as it was written, and at column 0 (perhaps inside a wrapper) where it can be parsed.
 * Lines correspond, and corresponding lines end alike; what is taken is taken as it was written.
 */
typedef struct source {
    const base_buf *written, *parsed;
    size_t head_lines; /* of the wrapper */
} source;

/* The byte of the written block that corresponds to a byte of the parsed text. */
static size_t as_written(const source *s, size_t at)
{
    size_t line = tool__line_of(s->parsed->data, at),
           back = tool__line_end(s->parsed->data, s->parsed->len, at) - at;
    size_t start = tool__line_start(s->written->data, s->written->len, line - s->head_lines);
    size_t end = tool__line_end(s->written->data, s->written->len, start);
    return end - start > back ? end - back : start;
}

static bool has_line(const base_buf *text, const char *line, size_t n)
{
    while (n && tool__is_space(line[n - 1])) n--;
    while (n && tool__is_space(*line)) line++, n--;
    for (size_t at = 0; at < text->len;) {
        size_t end = tool__line_end(text->data, text->len, at), from = at, to = end;
        while (from < to && tool__is_space(text->data[from])) from++;
        while (to > from && tool__is_space(text->data[to - 1])) to--;
        if (to - from == n && !memcmp(text->data + from, line, n)) return true;
        at = end + 1;
    }
    return false;
}

static bool is_comment_line(const char *line, size_t n)
{
    while (n && tool__is_space(*line)) line++, n--;
    return n && ((*line == '#' && strncmp(line, "#include", n < 8 ? n : 8) != 0) ||
                    (n > 1 && !strncmp(line, "//", 2)) || (n > 1 && !strncmp(line, "/*", 2)) || *line == '*');
}

/* "package main" of a block that is written like a file of its own: Go's grammar takes it anywhere, its compiler once. */
static bool is_package_line(const char *line, size_t n)
{
    static const char word[] = "package ";
    return n > sizeof word - 1 && !memcmp(line, word, sizeof word - 1);
}

/*
 * Lines in front of the definition: those the file does not have yet; inside a class or function only
 * comments.
 */
static void take_leading(
    tool_chosen *c, const base_buf *file, const source *s, size_t from, size_t to, bool is_nested)
{
    const char *block = s->parsed->data;
    size_t left_out = 0;
    bool after_kept = false;
    for (size_t at = from; at < to;) {
        size_t end = tool__line_end(block, to, at);
        if (tool__is_blank(block, at, end)) {
            if (after_kept) base_buf_putc(&c->text, '\n');
        } else if (has_line(file, block + at, end - at) || is_package_line(block + at, end - at)) {
            /* already there */
        } else if (is_nested && !is_comment_line(block + at, end - at)) {
            left_out++;
        } else {
            size_t begin = as_written(s, at), stop = as_written(s, end);
            begin = tool__line_begin(s->written->data, begin);
            base_buf_add(&c->text, s->written->data + begin, stop - begin);
            base_buf_putc(&c->text, '\n');
            after_kept = true;
        }
        at = end + 1;
    }
    if (left_out) base_buf_printf(&c->note, "Left out: %zu lines in front of the definition. ", left_out);
}

static bool is_top(const code_definition *d)
{
    return !d->parent || !*d->parent;
}

static bool file_has(const code_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (is_top(&f->definitions[i]) && !strcmp(f->definitions[i].name, name)) return true;
    return false;
}

/* Is text[line..from) blank, or words that belong to what follows ("export", a macro of attributes)? */
bool tool__is_start(const char *text, size_t line, size_t from)
{
    for (size_t i = line; i < from; i++)
        if (strchr(";{}=,", text[i])) return false;
    return true;
}

/* The lines of a definition, as they were written. */
static void take_definition(base_buf *out, const source *s, const code_definition *d)
{
    const char *block = s->parsed->data;
    size_t n = s->parsed->len, to = d->to < n ? d->to : n;
    /* "};" belongs to it when nothing else follows on the line. */
    size_t end = tool__line_end(block, n, to);
    if (end > to && block[to] == ';' && tool__is_blank(block, to + 1, end)) to++;
    while (to > d->from && tool__is_space(block[to - 1])) to--;
    size_t from = as_written(s, d->from), line = tool__line_begin(s->written->data, from);
    if (tool__is_start(s->written->data, line, from)) from = line;
    to = as_written(s, to);
    if (to > from) base_buf_add(out, s->written->data + from, to - from);
    base_buf_putc(out, '\n');
}

static uint32_t target_in(const code_file *b, const code_definition *old)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < b->n_definitions; i++) {
        const code_definition *d = &b->definitions[i];
        if (strcmp(d->name, old->name) || tool__is_rewritable(d) != tool__is_rewritable(old)) continue;
        bool same_parent = old->parent && d->parent && !strcmp(old->parent, d->parent);
        if (same_parent) return i;
        if (best == UINT32_MAX || (b->definitions[best].is_declaration && !d->is_declaration)) best = i;
    }
    return best;
}

/* Text in which a member alone becomes text of its language; tried in this order. */
static const struct {
    const char *language, *head, *tail;
} wrappers[] = {
    {"javascript", "class KvistBlock {\n", "}\n"},
    {"javascript", "const KvistBlock = {\n", "};\n"},
    {"typescript", "class KvistBlock {\n", "}\n"},
    {"typescript", "const KvistBlock = {\n", "};\n"},
    {"tsx", "class KvistBlock {\n", "}\n"},
    {"tsx", "const KvistBlock = {\n", "};\n"},
    {"java", "class KvistBlock {\n", "}\n"},
    {"c_sharp", "class KvistBlock {\n", "}\n"},
    {"kotlin", "class KvistBlock {\n", "}\n"},
    {"php", "<?php class KvistBlock {\n", "}\n"},
    {"rust", "impl KvistBlock {\n", "}\n"},
};

/* Which definition of a block is looked for. */
typedef struct looked_for {
    const char *name; /* NULL: any */
    uint32_t (*find)(const code_file *, const void *wanted);
    const void *wanted;
} looked_for;

/* Read by a grammar and without an error; what no grammar can read is read by its words, which has none to count. */
static bool is_clean(const tool_reading *r)
{
    return r->at != UINT32_MAX && r->file->language && !r->file->n_errors;
}

/*
 * Parses the block alone and in each wrapper of its language, and keeps the reading with the definition and
 * the fewest errors: "f(x) { return x }" is a call to one grammar rule and a method to another.
 */
static tool_reading read_block(
    code_grammars *g, const char *path, const base_buf *flat, const char *language, const looked_for *w)
{
    tool_reading best = {.parsed = flat};
    best.file = w->name ? tool__parse_for(g, path, flat->data, flat->len, w->name)
                        : code_parse(g, path, flat->data, flat->len);
    best.at = w->find(best.file, w->wanted);
    for (size_t i = 0; language && i < sizeof wrappers / sizeof *wrappers; i++) {
        if (strcmp(wrappers[i].language, language) || is_clean(&best)) continue;
        base_buf *text = base_xcalloc(1, sizeof *text);
        base_buf_puts(text, wrappers[i].head);
        base_buf_add(text, flat->data, flat->len);
        base_buf_puts(text, wrappers[i].tail);
        tool_reading r = {
            .file = code_parse(g, path, text->data, text->len), .parsed = text, .wrapped = text};
        r.at = w->find(r.file, w->wanted);
        const bool is_more = best.at == UINT32_MAX || (!best.file->language && !r.file->n_errors);
        const bool is_better = r.at != UINT32_MAX && (is_more || r.file->n_errors < best.file->n_errors);
        tool__reading_free(is_better ? &best : &r);
        if (is_better) best = r;
    }
    return best;
}

void tool__reading_free(tool_reading *r)
{
    code_file_free(r->file);
    if (r->wrapped) base_buf_free(r->wrapped);
    free(r->wrapped);
}

static uint32_t find_old(const code_file *b, const void *old)
{
    return target_in(b, old);
}

/* By name, whole definitions first; without a name the first one that has a body, else the first value. */
static uint32_t find_named(const code_file *b, const void *name)
{
    uint32_t value = UINT32_MAX;
    for (uint32_t i = 0; i < b->n_definitions; i++) {
        const code_definition *d = &b->definitions[i];
        if (!strcmp(d->name, "KvistBlock") || (name && strcmp(d->name, name) != 0)) continue;
        bool is_whole = tool__is_rewritable(d) && (name || d->body_to > d->body_from);
        if (is_whole) return i;
        if (value == UINT32_MAX && (name || is_top(d))) value = i;
    }
    return value;
}

tool_reading tool__read_block(
    code_grammars *g, const char *path, const base_buf *flat, const char *language, const char *name)
{
    return read_block(g, path, flat, language, &(looked_for){name, find_named, name});
}

static void refuse_block(const code_file *b, const base_buf *file, const code_definition *old, base_buf *why)
{
    const char *other = NULL;
    for (uint32_t i = 0; i < b->n_definitions && !other; i++)
        if (is_top(&b->definitions[i]) && tool__is_rewritable(&b->definitions[i]))
            other = b->definitions[i].name;
    size_t end = tool__line_end(file->data, file->len, old->name_from),
           from = tool__line_begin(file->data, old->name_from);
    while (from < end && tool__is_space(file->data[from])) from++;
    while (end > from && tool__is_space(file->data[end - 1])) end--;
    if (other)
        base_buf_printf(why, "The block defines %.100s, not %s. ", other, old->name);
    else
        base_buf_printf(why, "The block does not define %s. ", old->name);
    base_buf_printf(why,
        "Nothing was changed. Next: the same call with the "
        "whole definition in the fenced block, beginning with\n"
        "%.*s\n",
        (int)(end - from < 200 ? end - from : 200), file->data + from);
}

/* Lines behind the definitions that the file does not have. */
static bool has_lines_behind(const base_buf *file, const base_buf *block, size_t at)
{
    for (size_t end; at < block->len; at = end + 1) {
        end = tool__line_end(block->data, block->len, at);
        if (!tool__is_blank(block->data, at, end) && !has_line(file, block->data + at, end - at)) return true;
    }
    return false;
}

/* What a block is for. */
typedef struct choice {
    const tool_parsed *of;
    bool is_nested; /* the old definition stands in another one */
} choice;

/* The definition from the top of the block, with what is new to the file in front of it and behind. */
static void take_from_top(const choice *c, const tool_reading *block, const source *src, tool_chosen *ret)
{
    const code_file *b = block->file;
    const base_buf *text = src->parsed;
    const char *language = code_language(c->of->path, c->of->text->data, c->of->text->len);
    const bool is_python = language && !strcmp(language, "python");
    size_t at = 0;
    bool is_behind = false, is_left_out = false;
    for (uint32_t i = 0; i < b->n_definitions; i++) {
        const code_definition *x = &b->definitions[i];
        if (!is_top(x) || x->from < at || (!tool__is_rewritable(x) && i != block->at)) continue;
        size_t begin = tool__line_begin(text->data, x->from);
        if (!is_behind) take_leading(ret, c->of->text, src, at, begin > at ? begin : at, c->is_nested);
        if (is_behind && !tool__is_blank(text->data, at, begin > at ? begin : at)) is_left_out = true;
        bool is_new = i != block->at && !c->is_nested && !file_has(c->of->file, x->name);
        if (i == block->at || is_new) {
            if (is_new && is_behind) base_buf_puts(&ret->text, is_python ? "\n\n" : "\n");
            take_definition(&ret->text, src, x);
            if (is_new && !is_behind) base_buf_puts(&ret->text, "\n");
        } else {
            base_buf_printf(&ret->note, "Left out: %.100s, which this call does not name. ", x->name);
        }
        is_behind |= i == block->at;
        at = x->to;
        if (at < text->len && text->data[at] == ';') at++;
    }
    if (has_lines_behind(c->of->text, text, at) || is_left_out)
        base_buf_puts(&ret->note, "Left out: code behind the definition. ");
}

/* A definition that stands in another one, or in a wrapper of ours, is taken alone. */
static void take(const choice *c, const tool_reading *block, const source *src, tool_chosen *ret)
{
    const code_definition *d = &block->file->definitions[block->at];
    const size_t line = tool__line_begin(src->parsed->data, d->from);
    ret->has_prefix =
        !tool__is_blank(src->parsed->data, line, d->from) && tool__is_start(src->parsed->data, line, d->from);
    if (is_top(d) && !block->wrapped) {
        take_from_top(c, block, src, ret);
        return;
    }
    /* The model repeated the class around a method: only the method is meant. */
    if (!block->wrapped) base_buf_printf(&ret->note, "Only %s was taken from the block. ", d->name);
    take_definition(&ret->text, src, d);
}

bool tool__choose(code_grammars *g, const tool_parsed *of, const code_definition *old, base_str block,
    tool_chosen *ret, base_buf *why)
{
    base_buf clean = {0}, flat = {0};
    tool__normalise_block(&clean, block.ptr, block.len);
    if (!clean.data) base_buf_puts(&clean, "");
    tool__indent_block(&flat, clean.data, clean.len, "", 0, TOOL_INDENT_KEEP, 4);
    if (!flat.data) base_buf_puts(&flat, "");
    tool_reading b =
        read_block(g, of->path, &flat, of->file->language, &(looked_for){old->name, find_old, old});
    const source src = {.written = &clean, .parsed = b.parsed, .head_lines = b.wrapped ? 1 : 0};
    const bool is_good = flat.len && b.at != UINT32_MAX;
    if (is_good) {
        take(&(choice){of, !is_top(old)}, &b, &src, ret);
    } else {
        if (!flat.len) base_buf_puts(why, "The fenced block is empty: nothing was changed. ");
        refuse_block(b.file, of->text, old, why);
    }
    tool__reading_free(&b);
    base_buf_free(&clean);
    base_buf_free(&flat);
    return is_good;
}
