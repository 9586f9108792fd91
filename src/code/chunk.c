/*
 * Cutting rules. A function, a method, a small type: one chunk each, with the comment right above. A type
 * that holds methods: its header and fields, then each method by itself. What is longer than PIECE_LINES is
 * cut at blank lines. Everything between is passages of up to PASSAGE_LINES; a licence at the top is left
 * out.
 */
#include "code/chunk.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/path.h"

enum {
    LONG_LINES = 120,
    PIECE_LINES = 80,
    PASSAGE_LINES = 48,
    PASSAGE_BYTES = 2400,
    COMMENT_LINES = 60,
    SPLIT_TYPE_LINES = 30,
    MODULE_LINES = 400,
};

typedef struct cutter {
    const code_file *f;
    const char *text;
    uint32_t n;
    uint32_t flags; /* of the whole file */
    code_chunk *chunks;
    size_t n_chunks, cap;
    uint32_t line, line_at;
} cutter;

#define N_OF(a) (sizeof(a) / sizeof *(a))

static bool word_in(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0) return true;
    return false;
}

static bool has_component(const char *path, const char *part)
{
    const size_t n = strlen(part);
    for (const char *p = path; (p = strcasestr(p, part)) != NULL; p += n) {
        const bool starts = p == path || strchr("/_.-", p[-1]) != NULL;
        const bool stops = p[n] == '\0' || strchr("/_.-s", p[n]) != NULL;
        if (starts && stops) return true;
    }
    return false;
}

static bool is_marked(const char *name)
{
    static const char *const begins[] = {"test_", "test-", "test.", "tests.", "example"};
    static const char *const has[] = {
        "_test.", "-test.", ".test", "_tests.", "-tests.", "_spec.", "-spec.", ".spec"};
    bool is_so = false;
    for (size_t i = 0; i < N_OF(begins); i++) is_so |= !strncasecmp(name, begins[i], strlen(begins[i]));
    for (size_t i = 0; i < N_OF(has); i++) is_so |= strcasestr(name, has[i]) != NULL;
    return is_so;
}

bool code_path_is_test(const char *path)
{
    static const char *const tests[] = {
        "test", "spec", "example", "bench", "benchmark", "sample", "testing", "fixture", "demo", "mock"};
    /* "sample" and "test" may be what a program is about: "src/cmd/sample.rs" is no sample. */
    const char *name = base_path_name(path);
    bool found = false;
    for (size_t i = 0; i < N_OF(tests); i++) {
        const char *p = strcasestr(path, tests[i]);
        if (p == NULL || !has_component(path, tests[i])) continue;
        const size_t len = strlen(tests[i]);
        const bool folder = p < name && (p[len] == '/' || (p[len] == 's' && p[len + 1] == '/'));
        found = found || folder || is_marked(name);
    }
    return found;
}

static uint32_t flags_of_path(const char *path, const char *text, size_t n)
{
    static const char *const data[] = {
        "json", "yaml", "toml", "html", "css", "make", "cmake", "dockerfile", "meson"};
    uint32_t flags = code_path_is_test(path) ? CHUNK_TEST : 0;
    const char *name = base_path_name(path);
    const char *language = code_language(path, text, n);
    if (code_language_is_document(language)) flags |= CHUNK_DOCUMENT;
    if (language == NULL || word_in(language, data, N_OF(data))) flags |= CHUNK_DATA;
    if (strncasecmp(name, "changelog", 9) == 0 || strncasecmp(name, "changes", 7) == 0 ||
        strncasecmp(name, "history", 7) == 0 || strncasecmp(name, "news", 4) == 0)
        flags |= CHUNK_HISTORY;
    const size_t n_name = strlen(name);
    if ((n_name > 5 && strcmp(name + n_name - 5, ".d.ts") == 0) ||
        (n_name > 4 && strcmp(name + n_name - 4, ".pyi") == 0))
        flags |= CHUNK_DECLARATIONS;
    if (name[0] == '.' || path[0] == '.') flags |= CHUNK_DATA; /* settings of tools */
    return flags;
}

bool code_chunk_skips(const char *path, const char *text, size_t n)
{
    static const char *const names[] = {"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock",
        "go.sum", "poetry.lock", "composer.lock", "Gemfile.lock", "LICENSE", "COPYING", "LICENSE.txt",
        "UNLICENSE", "LICENSE-MIT", "LICENSE.md"};
    static const char *const endings[] = {
        ".min.js", ".min.css", ".map", ".svg", ".lock", ".patch", ".csv", ".tsv", ".ipynb", ".snap"};
    const char *name = base_path_name(path);
    if (word_in(name, names, N_OF(names))) return true;
    const size_t len = strlen(name);
    for (size_t i = 0; i < N_OF(endings); i++)
        if (len > strlen(endings[i]) && strcmp(name + len - strlen(endings[i]), endings[i]) == 0) return true;
    const size_t look = n < 8192 ? n : 8192;
    if (memchr(text, '\0', look) != NULL) return true;
    size_t n_lines = 1;
    for (size_t i = 0; i < look; i++) n_lines += text[i] == '\n';
    return n > 4096 && look / n_lines > 300;
}

/* ---- lines ---- */

static uint32_t line_start(const cutter *c, uint32_t at)
{
    while (at > 0 && c->text[at - 1] != '\n') at--;
    return at;
}

static uint32_t line_after(const cutter *c, uint32_t at)
{
    const char *end = at < c->n ? memchr(c->text + at, '\n', c->n - at) : NULL;
    return end != NULL ? (uint32_t)(end - c->text) + 1 : c->n;
}

static uint32_t count_lines(const cutter *c, uint32_t from, uint32_t to)
{
    uint32_t lines = 0;
    for (uint32_t at = from; at < to; at = line_after(c, at)) lines++;
    return lines;
}

static bool is_blank(const cutter *c, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (strchr(" \t\r\n", c->text[i]) == NULL) return false;
    return true;
}

static uint32_t line_number(cutter *c, uint32_t at)
{
    while (c->line_at < at)
        if (c->text[c->line_at++] == '\n') c->line++;
    while (c->line_at > at)
        if (c->text[--c->line_at] == '\n') c->line--;
    return c->line;
}

/* ---- emitting ---- */

static void emit(cutter *c, uint32_t from, uint32_t to, uint32_t head_to, uint32_t definition, uint32_t flags)
{
    while (to > from && strchr(" \t\r\n", c->text[to - 1]) != NULL) to--;
    while (from < to && (c->text[from] == '\n' || c->text[from] == '\r')) from++;
    if (to <= from) return;
    base_grow(&c->chunks, &c->cap, c->n_chunks + 1, sizeof *c->chunks);
    c->chunks[c->n_chunks++] = (code_chunk){.from = from,
        .to = to,
        .head_to = head_to < from ? from
                   : head_to > to ? to
                                  : head_to,
        .line = line_number(c, from),
        .line_end = line_number(c, to - 1),
        .definition = definition,
        .flags = c->flags | flags};
}

/* In pieces of up to `lines` lines, cut at the last blank line or at a small indent. */
static void emit_pieces(cutter *c, uint32_t from, uint32_t to, uint32_t head_to, uint32_t definition,
    uint32_t flags, uint32_t lines, uint32_t bytes)
{
    bool first = true;
    while (from < to) {
        uint32_t at = from, cut = 0, taken = 0;
        while (at < to && taken < lines && at - from < bytes) {
            const uint32_t next = line_after(c, at);
            if (taken * 2 > lines && is_blank(c, at, next < to ? next : to)) cut = at;
            at = next;
            taken++;
        }
        if (at >= to)
            cut = to;
        else if (cut == 0)
            cut = at;
        emit(c, from, cut, first ? head_to : from, definition,
            first ? flags : flags | (definition != UINT32_MAX ? CHUNK_CONTINUED : 0));
        from = cut;
        first = false;
    }
}

static bool is_licence(const cutter *c, uint32_t from, uint32_t to)
{
    char head[1024];
    const uint32_t n = to - from < sizeof head - 1 ? to - from : (uint32_t)sizeof head - 1;
    memcpy(head, c->text + from, n);
    head[n] = '\0';
    for (uint32_t i = 0; i < n; i++)
        if (head[i] == '\0') head[i] = ' ';
    return strcasestr(head, "copyright") != NULL || strcasestr(head, "spdx-license") != NULL;
}

/* What lies between definitions. */
static void emit_gap(cutter *c, uint32_t from, uint32_t to)
{
    while (from < to && is_blank(c, from, line_after(c, from) < to ? line_after(c, from) : to))
        from = line_after(c, from);
    if (from >= to) return;
    if (from < 400 &&
        is_licence(
            c, from, to)) { /* its comment ends at the first blank line behind it, or at the star and slash */
        uint32_t at = from;
        const bool block = c->text[from] == '/' && from + 1 < to && c->text[from + 1] == '*';
        while (at < to) {
            const uint32_t next = line_after(c, at);
            const uint32_t stop = next < to ? next : to;
            if (block ? memmem(c->text + at, stop - at, "*/", 2) != NULL : is_blank(c, at, stop)) {
                at = next;
                break;
            }
            at = next;
        }
        from = at;
    }
    if (from >= to) return;
    uint32_t letters = 0;
    for (uint32_t i = from; i < to && letters < 12; i++)
        letters += (c->text[i] >= 'a' && c->text[i] <= 'z') || (c->text[i] >= 'A' && c->text[i] <= 'Z');
    if (letters < 12) return;
    const size_t before = c->n_chunks;
    emit_pieces(c, from, to, from, UINT32_MAX, CHUNK_PASSAGE, PASSAGE_LINES, PASSAGE_BYTES);
    for (uint32_t d = 0; d < c->f->n_definitions; d++) {
        const code_definition *def = &c->f->definitions[d];
        if (!def->is_declaration || def->from < from || def->to > to) continue;
        for (size_t i = before; i < c->n_chunks; i++)
            if (def->from >= c->chunks[i].from && def->from < c->chunks[i].to)
                c->chunks[i].flags |= CHUNK_DECLARATIONS;
    }
}

/* ---- definitions ---- */

static bool is_comment_line(const cutter *c, uint32_t from, uint32_t to)
{
    while (from < to && (c->text[from] == ' ' || c->text[from] == '\t')) from++;
    if (from + 1 >= to) return false;
    const char a = c->text[from], b = c->text[from + 1];
    if (a == '/' && (b == '/' || b == '*')) return true;
    if (a == '*' && (b == '/' || b == ' ' || b == '\n' || b == '\r' || b == '*')) return true;
    if (a == '#' && (b == ' ' || b == '#' || b == '!')) return true; /* not #include, #define */
    return a == '-' && b == '-';
}

/* Where the comment right above starts; `at` itself when there is none. Not before `least`. */
static uint32_t comment_above(const cutter *c, uint32_t at, uint32_t least)
{
    uint32_t start = line_start(c, at);
    if (start < least) return at;
    bool in_block = false;
    /* One blank line below a closed comment does not part them. */
    if (start > least + 3) {
        const uint32_t blank = line_start(c, start - 1),
                       above = blank > least ? line_start(c, blank - 1) : blank;
        if (blank > above && above >= least && is_blank(c, blank, start) &&
            memmem(c->text + above, blank - above, "*/", 2) != NULL)
            start = blank;
    }
    const uint32_t without = line_start(c, at);
    for (uint32_t lines = 0; lines < COMMENT_LINES && start > least; lines++) {
        const uint32_t previous = line_start(c, start - 1);
        if (previous < least) break;
        if (is_blank(c, previous, start) && !in_block) break;
        const bool comment = is_comment_line(c, previous, start);
        const bool ends = memmem(c->text + previous, start - previous, "*/", 2) != NULL;
        if (!comment && !in_block && !(ends && memmem(c->text + previous, start - previous, "/*", 2) == NULL))
            break;
        if (ends) in_block = true;
        if (memmem(c->text + previous, start - previous, "/*", 2) != NULL) in_block = false;
        start = previous;
    }
    return in_block ? without : start;
}

static bool is_function(const code_definition *d)
{
    return strcmp(d->what, "function") == 0 || strcmp(d->what, "method") == 0;
}

/* Does this definition get a chunk? Small things stay in passages. */
static bool is_unit(const code_definition *d)
{
    static const char *const types[] = {"class", "struct", "union", "enum", "interface", "module", "section"};
    const uint32_t lines = d->line_end - d->line + 1;
    if (d->is_declaration) return false;
    if (is_function(d) || word_in(d->what, types, N_OF(types))) return true;
    if (strcmp(d->what, "typedef") == 0 || strcmp(d->what, "type") == 0) return d->body_to != 0 || lines >= 3;
    return (strcmp(d->what, "field") != 0 && lines >= 4);
}

/* The first function inside a type that is worth cutting; UINT32_MAX: leave it whole. */
static uint32_t first_inside(const code_file *f, uint32_t i)
{
    const code_definition *d = &f->definitions[i];
    if (strcmp(d->what, "section") == 0 || d->line_end - d->line < SPLIT_TYPE_LINES) return UINT32_MAX;
    if (is_function(d) && d->line_end - d->line < MODULE_LINES)
        return UINT32_MAX; /* longer: a module in a function's clothes */
    for (uint32_t j = i + 1; j < f->n_definitions && f->definitions[j].from < d->to; j++)
        if (f->definitions[j].from > d->from && is_function(&f->definitions[j]) &&
            is_unit(&f->definitions[j]))
            return j;
    return UINT32_MAX;
}

/* The end of the signature: the body's start, or the first line. */
static uint32_t head_of(const cutter *c, const code_definition *d)
{
    uint32_t to = d->body_from > d->from && d->body_to != 0
                      ? d->body_from
                      : line_after(c, d->name_from > d->from ? d->name_from : d->from);
    if (to > d->to) to = d->to;
    /* A docstring is part of what the definition says about itself. */
    if (d->body_to != 0 && d->body_from + 3 < d->to &&
        (c->text[d->body_from] == '"' || c->text[d->body_from] == '\'')) {
        const char quote[3] = {c->text[d->body_from], c->text[d->body_from], c->text[d->body_from]};
        const char *end = memcmp(c->text + d->body_from, quote, 3) == 0
                              ? memmem(c->text + d->body_from + 3, d->to - d->body_from - 3, quote, 3)
                              : NULL;
        if (end != NULL) to = (uint32_t)(end - c->text) + 3;
    }
    return to;
}

uint32_t code_chunk_file(const code_file *f, const char *path, const char *text, size_t n, code_chunk **ret)
{
    cutter c = {.f = f, .text = text, .n = (uint32_t)n, .line = 1, .flags = flags_of_path(path, text, n)};
    uint32_t covered = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (d->from < covered || !is_unit(d)) continue;
        const uint32_t from = comment_above(&c, d->from, covered);
        uint32_t to = d->to;
        const uint32_t inside = first_inside(f, i);
        if (inside != UINT32_MAX)
            to = comment_above(&c, f->definitions[inside].from, d->from);
        else if (line_after(&c, to) > to && is_blank(&c, to, line_after(&c, to)))
            to = line_after(&c, to);
        if (to <= from) continue;
        emit_gap(&c, covered, from);
        const bool is_long = count_lines(&c, from, to) > LONG_LINES;
        const uint32_t lines = strcmp(d->what, "section") == 0 ? PASSAGE_LINES
                               : is_long                       ? PIECE_LINES
                                                               : LONG_LINES;
        emit_pieces(&c, from, to, head_of(&c, d), i, 0, lines, 8192);
        covered = to;
    }
    emit_gap(&c, covered, (uint32_t)n);
    *ret = c.chunks;
    return (uint32_t)c.n_chunks;
}
