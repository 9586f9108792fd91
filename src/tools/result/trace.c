/*
 * Which lines of a command's output are lines of the tree's files: by the headers of a unified diff, by
 * "path:12:text" and "path-12-text" (grep, rg), by numbered lines (cat -n, nl), and else by the lines
 * themselves, sought in the files that the command names. Every line is compared with the file's bytes before
 * it counts, so a wrong guess costs time and nothing else. What is found becomes sources, as if the read
 * tool had shown it: the cache knows path, version and lines of those tokens, and they turn stale when the
 * file changes.
 */
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum {
    MAX_CANDIDATES = 16,
    MAX_CANDIDATE_BYTES = 2 << 20,
    MAX_SOURCES = 512,
    LEAST_LINES = 3,    /* found by their text alone */
    LEAST_NUMBERED = 3, /* ascending numbers before a column of numbers is believed */
};

/* A file that output may come from, with its lines hashed. */
typedef struct candidate {
    char *path;
    tool_file file;
    uint32_t *starts; /* [n + 1] byte offsets of lines */
    uint64_t *hashes; /* of a line without its end */
    uint32_t *table;  /* 1 + the first line with the hash; chained by next */
    uint32_t *next;
    uint32_t n, n_table;
} candidate;

typedef struct line {
    const char *text;
    size_t n; /* without its line end */
} line;

typedef struct tracer {
    tool_workspace *w;
    tool_result *r;
    candidate candidates[MAX_CANDIDATES];
    uint32_t n_candidates;
    line *lines; /* of the output */
    size_t n_lines, cap;
    /* The run of whole lines that is being collected. */
    const candidate *run;
    uint32_t run_line;
    size_t run_from, run_to;
} tracer;

static size_t without_end(const char *text, size_t n)
{
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r')) n--;
    return n;
}

/* ---- files ---- */

static void index_lines(candidate *s)
{
    const char *text = s->file.text.data ? s->file.text.data : "";
    size_t n = s->file.text.len, cap = 0, at = 0;
    while (at < n) {
        const char *end = memchr(text + at, '\n', n - at);
        base_grow(&s->starts, &cap, (size_t)s->n + 2, sizeof *s->starts);
        s->starts[s->n++] = (uint32_t)at;
        at = end ? (size_t)(end - text) + 1 : n;
        s->starts[s->n] = (uint32_t)at;
    }
    s->n_table = 64;
    while (s->n_table < s->n * 2) s->n_table *= 2;
    s->table = base_xcalloc(s->n_table, sizeof *s->table);
    s->next = base_xcalloc((size_t)s->n + 1, sizeof *s->next);
    s->hashes = base_xcalloc((size_t)s->n + 1, sizeof *s->hashes);
    for (uint32_t i = s->n; i-- > 0;) { /* the first line of a hash stands first in its chain */
        const char *from = text + s->starts[i];
        s->hashes[i] = base_hash64(from, without_end(from, s->starts[i + 1] - s->starts[i]), 0);
        uint32_t *slot = &s->table[s->hashes[i] & (s->n_table - 1)];
        s->next[i] = *slot;
        *slot = i + 1;
    }
}

/* The file of that path, read once; NULL: no such file of the tree. */
static const candidate *want(tracer *t, const char *path, size_t n)
{
    for (uint32_t i = 0; i < t->n_candidates; i++)
        if (strlen(t->candidates[i].path) == n && !memcmp(t->candidates[i].path, path, n))
            return &t->candidates[i];
    if (t->n_candidates == MAX_CANDIDATES || !n || n > TOOL_MAX_PATH) return NULL;
    char *given = base_xstrndup(path, n), *clean = NULL;
    candidate *s = &t->candidates[t->n_candidates];
    bool found = !tool__path_clean(&t->w->root, given, &clean, NULL) && *clean;
    free(given);
    for (uint32_t i = 0; found && i < t->n_candidates; i++)
        if (!strcmp(t->candidates[i].path, clean)) {
            free(clean);
            return &t->candidates[i];
        }
    found = found && !tool__file_read(&t->w->root, clean, MAX_CANDIDATE_BYTES, &s->file, NULL);
    if (!found || tool__is_binary(s->file.text.data, s->file.text.len)) {
        tool__file_free(&s->file);
        memset(s, 0, sizeof *s);
        free(clean);
        return NULL;
    }
    s->path = clean;
    index_lines(s);
    t->n_candidates++;
    return s;
}

/* Is line `at` (0-based) of the file this text? */
static bool is_line(const candidate *s, uint32_t at, const char *text, size_t n)
{
    if (at >= s->n) return false;
    const char *from = s->file.text.data + s->starts[at];
    return without_end(from, s->starts[at + 1] - s->starts[at]) == n && !memcmp(from, text, n);
}

/* ---- sources ---- */

static void flush(tracer *t)
{
    if (t->run && t->r->n_sources < MAX_SOURCES)
        tool__add_source(t->r, t->run_from, t->run_to, t->run->path, t->run->file.version,
            t->run->starts[t->run_line], t->run_line + 1);
    t->run = NULL;
}

/* Output bytes text[0..n) are line `at` of the file. Whole lines that follow one another are one source. */
static void take(tracer *t, const candidate *s, uint32_t at, const char *text, size_t n, bool whole)
{
    size_t from = (size_t)(text - t->r->text.data), to = from + n;
    if (!n && !whole) return;
    bool follows = whole && t->run == s && from == t->run_to &&
                   s->starts[at] == s->starts[t->run_line] + (t->run_to - t->run_from);
    if (!follows) {
        flush(t);
        t->run = s;
        t->run_line = at;
        t->run_from = from;
    }
    t->run_to = to;
    bool has_end = whole && to < t->r->text.len && t->r->text.data[to] == '\n' &&
                   s->file.text.data[s->starts[at] + n] == '\n' && s->starts[at] + n < s->file.text.len;
    if (has_end)
        t->run_to++;
    else
        flush(t);
}

/* ---- the formats ---- */

/* "@@ -1,2 +3,4 @@": *ret is 3; false: no such line. */
static bool hunk_start(line l, uint32_t *ret)
{
    const char *plus = l.n > 6 && !memcmp(l.text, "@@ -", 4) ? memchr(l.text, '+', l.n) : NULL;
    if (!plus || plus + 1 == l.text + l.n || !isdigit((unsigned char)plus[1])) return false;
    *ret = (uint32_t)strtoul(plus + 1, NULL, 10);
    return true;
}

/* One hunk from line i on; returns the first line behind it. */
static size_t trace_hunk(tracer *t, const candidate *s, size_t i, uint32_t at)
{
    for (; i < t->n_lines; i++) {
        line l = t->lines[i];
        char sign = l.n ? l.text[0] : ' ';
        if (sign == '-' || sign == '\\') continue;
        if (sign != ' ' && sign != '+') break;
        size_t skip = l.n ? 1 : 0;
        if (at && is_line(s, at - 1, l.text + skip, l.n - skip))
            take(t, s, at - 1, l.text + skip, l.n - skip, false);
        at++;
    }
    return i;
}

static bool starts_with(line l, const char *word)
{
    size_t n = strlen(word);
    return l.n > n && !memcmp(l.text, word, n);
}

/* A unified diff at line i: returns the first line behind it, i when there is none. */
static size_t trace_diff(tracer *t, size_t i)
{
    if (i + 2 >= t->n_lines || !starts_with(t->lines[i], "--- ") || !starts_with(t->lines[i + 1], "+++ "))
        return i;
    const char *path = t->lines[i + 1].text + 4;
    size_t n = t->lines[i + 1].n - 4;
    const char *tab = memchr(path, '\t', n);
    if (tab) n = (size_t)(tab - path);
    if (n > 2 && !memcmp(path, "b/", 2)) {
        path += 2;
        n -= 2;
    }
    const candidate *s = want(t, path, n);
    uint32_t at;
    for (i += 2; i < t->n_lines && hunk_start(t->lines[i], &at);) {
        size_t next = i + 1;
        if (s) {
            next = trace_hunk(t, s, next, at);
        } else {
            while (next < t->n_lines && t->lines[next].n && strchr(" +-\\", t->lines[next].text[0])) next++;
        }
        i = next;
    }
    return i;
}

/* "path:12:text", "path-12-text", "path:12: text" of our own search. */
static bool trace_cited(tracer *t, line l)
{
    for (size_t i = 1; i + 2 < l.n && i < 1024; i++) {
        char mark = l.text[i];
        if ((mark != ':' && mark != '-') || !isdigit((unsigned char)l.text[i + 1])) continue;
        size_t k = i + 1;
        uint32_t at = 0;
        for (; k < l.n && isdigit((unsigned char)l.text[k]) && at < 100000000; k++)
            at = at * 10 + (uint32_t)(l.text[k] - '0');
        if (k >= l.n || (l.text[k] != mark && l.text[k] != ':') || !at) continue;
        const candidate *s = want(t, l.text, i);
        if (!s) continue;
        const char *text = l.text + k + 1;
        size_t n = l.n - k - 1;
        if (is_line(s, at - 1, text, n)) {
            take(t, s, at - 1, text, n, false);
            return true;
        }
        return false;
    }
    return false;
}

/* "    12\ttext" of cat -n and nl, "12:text" of grep -n on one file; *ret_text: behind the number. */
static bool read_number(line l, uint32_t *ret, size_t *ret_text)
{
    size_t i = 0;
    uint32_t at = 0;
    while (i < l.n && l.text[i] == ' ') i++;
    size_t digits = i;
    for (; i < l.n && isdigit((unsigned char)l.text[i]) && at < 100000000; i++)
        at = at * 10 + (uint32_t)(l.text[i] - '0');
    if (i == digits || i >= l.n || !strchr("\t:-", l.text[i]) || !at) return false;
    *ret = at;
    *ret_text = i + 1;
    return true;
}

static bool trace_numbered(tracer *t, line l)
{
    uint32_t at;
    size_t skip;
    if (!read_number(l, &at, &skip)) return false;
    for (uint32_t k = 0; k < t->n_candidates; k++) {
        const candidate *s = &t->candidates[k];
        if (!is_line(s, at - 1, l.text + skip, l.n - skip)) continue;
        take(t, s, at - 1, l.text + skip, l.n - skip, false);
        return true;
    }
    return false;
}

/*
 * How many lines from output line i and file line `at` on are the same; and how many of them say something.
 */
static size_t matching(const tracer *t, const candidate *s, size_t i, uint32_t at, size_t *ret_telling)
{
    size_t n = 0;
    *ret_telling = 0;
    while (i + n < t->n_lines && is_line(s, at + (uint32_t)n, t->lines[i + n].text, t->lines[i + n].n)) {
        size_t letters = 0;
        for (size_t c = 0; c < t->lines[i + n].n; c++)
            letters += isalnum((unsigned char)t->lines[i + n].text[c]) != 0;
        *ret_telling += letters >= 3;
        n++;
    }
    return n;
}

/* Lines that stand in a file as they are: the longest run at output line i. Returns its length, 0: none. */
static size_t trace_text(tracer *t, size_t i)
{
    const candidate *best = NULL;
    size_t best_n = 0;
    uint32_t best_at = 0;
    uint64_t hash = base_hash64(t->lines[i].text, t->lines[i].n, 0);
    for (uint32_t k = 0; k < t->n_candidates; k++) {
        const candidate *s = &t->candidates[k];
        uint32_t tries = 0;
        for (uint32_t at = s->table[hash & (s->n_table - 1)]; at != 0 && tries < 256;
             at = s->next[at - 1], tries++) {
            size_t telling, n = s->hashes[at - 1] == hash ? matching(t, s, i, at - 1, &telling) : 0;
            bool to_end = at - 1 + n == s->n && at == 1; /* a whole short file */
            if (n > best_n && (telling >= LEAST_LINES || (to_end && telling))) {
                best = s;
                best_n = n;
                best_at = at - 1;
            }
        }
    }
    for (size_t k = 0; k < best_n; k++)
        take(t, best, best_at + (uint32_t)k, t->lines[i + k].text, t->lines[i + k].n, true);
    return best_n;
}

/* ---- all of it ---- */

static void split_lines(tracer *t, size_t from)
{
    const char *text = t->r->text.data;
    for (size_t at = from; at < t->r->text.len;) {
        const char *end = memchr(text + at, '\n', t->r->text.len - at);
        size_t n = (end ? (size_t)(end - text) : t->r->text.len) - at;
        base_grow(&t->lines, &t->cap, t->n_lines + 1, sizeof *t->lines);
        t->lines[t->n_lines++] = (line){text + at, n && text[at + n - 1] == '\r' ? n - 1 : n};
        at += n + 1;
    }
}

/* Words of the command that are files of the tree. */
static void want_named(tracer *t, const char *command)
{
    static const char between[] = " \t\n;|&<>()'\"=,";
    for (const char *p = command; *p;) {
        size_t n = strcspn(p, between);
        if (n > 1 && (memchr(p, '.', n) || memchr(p, '/', n))) want(t, p, n);
        p += n;
        p += strspn(p, between);
    }
}

void tool__trace_output(tool_workspace *w, tool_result *r, const char *command, size_t from)
{
    tracer t = {.w = w, .r = r};
    if (from >= r->text.len) return;
    split_lines(&t, from);
    if (command) want_named(&t, command);
    size_t numbered = 0;
    uint32_t last = 0;
    for (size_t i = 0; i < t.n_lines && numbered < LEAST_NUMBERED; i++) { /* is there a column of numbers? */
        uint32_t at;
        size_t skip;
        bool is_next = read_number(t.lines[i], &at, &skip) && (!last || at > last);
        numbered = is_next ? numbered + 1 : 0;
        last = is_next ? at : 0;
    }
    for (size_t i = 0; i < t.n_lines;) {
        size_t next = trace_diff(&t, i);
        if (next == i) next += trace_text(&t, i);
        if (next == i) {
            if (!trace_cited(&t, t.lines[i]) && (numbered >= LEAST_NUMBERED || t.n_lines <= LEAST_NUMBERED))
                trace_numbered(&t, t.lines[i]);
            next = i + 1;
        }
        i = next;
    }
    flush(&t);
    for (uint32_t k = 0; k < t.n_candidates; k++) {
        candidate *s = &t.candidates[k];
        free(s->path);
        tool__file_free(&s->file);
        free(s->starts);
        free(s->hashes);
        free(s->table);
        free(s->next);
    }
    free(t.lines);
}
