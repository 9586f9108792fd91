/*
 * Conditions that are the constant 0 or 1 alone are followed, all others may be true: what stands under
 * `#ifdef A` and again behind its `#else` are two definitions. Directives inside of a comment are none.
 */
#include "code/inactive.h"

#include <string.h>

#include "base/mem.h"

enum { MAX_DEPTH = 64 };

typedef enum condition { MAY_HOLD, NEVER, ALWAYS } condition;

typedef struct level {
    bool dead;    /* what is read now is dropped */
    bool decided; /* an earlier branch was taken for sure: all others are dropped */
} level;

typedef struct scan {
    level levels[MAX_DEPTH];
    size_t depth;
    bool in_comment;
    code_inactive *sections;
    size_t n, cap;
} scan;

bool code_has_preprocessor(const char *language)
{
    static const char *const names[] = {"c", "cpp", "objc"};
    for (size_t i = 0; language != NULL && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], language) == 0) return true;
    return false;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    return p;
}

/* 0 or 1, and nothing but a comment behind it. */
static condition condition_of(const char *p, const char *end)
{
    p = skip_blanks(p, end);
    if (p == end || (*p != '0' && *p != '1')) return MAY_HOLD;
    const condition c = *p == '0' ? NEVER : ALWAYS;
    p = skip_blanks(p + 1, end);
    return p == end || *p == '\r' || *p == '/' ? c : MAY_HOLD;
}

/* Whether a comment is open behind the line [p, end). */
static bool comment_behind(const char *p, const char *end, bool open)
{
    char quote = '\0';
    for (; p < end; p++) {
        const bool pair = p + 1 < end;
        if (open) {
            if (*p != '*' || !pair || p[1] != '/') continue;
            open = false;
            p++;
        } else if (quote != '\0') {
            if (*p == '\\')
                p++;
            else if (*p == quote)
                quote = '\0';
        } else if (*p == '"' || *p == '\'') {
            quote = *p;
        } else if (*p == '/' && pair && p[1] == '/') {
            return false;
        } else if (*p == '/' && pair && p[1] == '*') {
            open = true;
            p++;
        }
    }
    return open;
}

static bool is_dead(const scan *s)
{
    const size_t n = s->depth < MAX_DEPTH ? s->depth : MAX_DEPTH;
    for (size_t i = 0; i < n; i++)
        if (s->levels[i].dead) return true;
    return false;
}

/* The directive whose name begins at p; false: the line is none of a condition. */
static bool follow(scan *s, const char *p, const char *end)
{
    const char *name = p;
    while (p < end && *p >= 'a' && *p <= 'z') p++;
    const size_t n = (size_t)(p - name);
    if (n >= 2 && n <= 6 && memcmp(name, "if", 2) == 0) { /* if, ifdef, ifndef */
        const condition c = n == 2 ? condition_of(p, end) : MAY_HOLD;
        if (s->depth < MAX_DEPTH) s->levels[s->depth] = (level){.dead = c == NEVER, .decided = c == ALWAYS};
        s->depth++;
        return true;
    }
    const bool is_else = n == 4 && memcmp(name, "else", 4) == 0, is_elif = n >= 4 && !memcmp(name, "elif", 4);
    const bool is_end = n == 5 && memcmp(name, "endif", 5) == 0;
    if (s->depth == 0 || !(is_else || is_elif || is_end)) return false;
    if (is_end) {
        s->depth--;
    } else if (s->depth <= MAX_DEPTH) {
        level *l = &s->levels[s->depth - 1];
        const condition c = is_elif && n == 4 ? condition_of(p, end) : MAY_HOLD;
        l->dead = l->decided || c == NEVER;
        l->decided = l->decided || c == ALWAYS;
    }
    return true;
}

static void drop(scan *s, size_t from, size_t to)
{
    if (s->n != 0 && s->sections[s->n - 1].to == from) {
        s->sections[s->n - 1].to = to;
        return;
    }
    base_grow(&s->sections, &s->cap, s->n + 1, sizeof *s->sections);
    s->sections[s->n++] = (code_inactive){from, to};
}

size_t code_inactive_find(const char *text, size_t n, code_inactive **ret)
{
    scan s = {.depth = 0};
    for (size_t line = 0; line < n;) {
        const char *stop = memchr(text + line, '\n', n - line), *end = stop != NULL ? stop : text + n;
        const char *p = skip_blanks(text + line, end);
        const size_t next = (size_t)(end - text) + (stop != NULL);
        const bool directive =
            !s.in_comment && p < end && *p == '#' && follow(&s, skip_blanks(p + 1, end), end);
        if (!directive && is_dead(&s)) drop(&s, line, next);
        s.in_comment = comment_behind(text + line, end, s.in_comment);
        line = next;
    }
    *ret = s.sections;
    return s.n;
}

bool code_inactive_at(const code_inactive *sections, size_t n, size_t at)
{
    size_t low = 0, high = n; /* the first section that ends behind it */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sections[middle].to <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && sections[low].from <= at;
}
