/*
 * Reads an answer once, from left to right: fenced blocks are stepped over, every other word is looked at for
 * its shape (path, call, qualified or compound name, backticks), and what has one is looked up. A product's
 * name (GitHub, Node.js) has the shape of a name too, so a capitalised word outside backticks that the tree
 * does not know is let pass.
 */
#include "code/places.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "code/index_state.h"
#include "code/words.h"
#include "base/path.h"
#include "code/code.h"

enum { DEFAULT_CAP = 12, MAX_WORD = 200, CITED_WITHIN = 90, MAX_FIELDS = 256, LEAST_MISSPELT = 8 };

typedef struct reader {
    const code_index *x;
    const char *text;
    size_t n_text;
    code_checked *found;
    uint32_t n, cap;
    uint32_t last_name; /* the last DEFINED name, for a place cited behind it; UINT32_MAX: none */
    size_t last_name_to;
    bool is_joined; /* that name stands in a list of names */
} reader;

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static code_checked *add(reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (strcmp(r->found[i].name, name) == 0) return NULL;
    if (r->n == r->cap) return NULL;
    code_checked *c = &r->found[r->n++];
    *c = (code_checked){.name = base_xstrdup(name)};
    return c;
}

/* ---- paths ---- */

/* Lines of an indexed file; 0: not held. */
static uint32_t lines_of(const code_index *x, const char *path)
{
    uint32_t lines = 0;
    pthread_mutex_lock(&((code_index *)x)->lock);
    const uint32_t id = code_strings_find(&x->paths, path, strlen(path));
    if (id != UINT32_MAX && x->files[id].text != NULL) {
        const indexed_file *f = &x->files[id];
        for (size_t i = 0; i < f->n; i++) lines += f->text[i] == '\n';
        if (f->n != 0 && f->text[f->n - 1] != '\n') lines++;
    }
    pthread_mutex_unlock(&((code_index *)x)->lock);
    return lines;
}

/* "src/a.c", "a.c:12", "a.c:12-20" cut into path and line. */
static bool split_path(const char *word, char *path, uint32_t *line)
{
    const char *colon = strchr(word, ':');
    const size_t n = colon != NULL ? (size_t)(colon - word) : strlen(word);
    *line = 0;
    if (n == 0 || n >= MAX_WORD) return false;
    memcpy(path, word, n);
    path[n] = '\0';
    if (colon == NULL) return true;
    for (const char *p = colon + 1; *p >= '0' && *p <= '9' && *line < 100000000; p++)
        *line = *line * 10 + (uint32_t)(*p - '0');
    return *line != 0;
}

static bool has_shape_of_path(const char *path)
{
    const char *name = base_path_name(path), *dot = strrchr(name, '.');
    if (dot == NULL || dot == name || dot[1] == '\0' || strlen(dot) > 6) return false;
    for (const char *p = path; *p != '\0'; p++)
        if (!code_is_name_byte(*p) && strchr("./-+@", *p) == NULL) return false;
    return code_language(path, NULL, 0) != NULL;
}

/* "X is called in a.c:12" says where X is called, not where it is. */
static bool speaks_of_use(const char *text, size_t from, size_t to)
{
    static const char *const words[] = {
        "call", "called", "caller", "callers", "calls", "invoked", "used", "uses"};
    for (size_t end; from < to; from = end + 1) {
        for (end = from; end < to && code_is_name_byte(text[end]); end++) {
        }
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i]) == end - from && memcmp(text + from, words[i], end - from) == 0) return true;
    }
    return false;
}

/* "`f` and `g` in a.c and b.c": which of the names stands where, the order alone does not say. */
static bool is_joined(const char *text, size_t from, size_t to)
{
    while (from < to && strchr("`()", text[from])) from++;
    while (to > from && strchr("`", text[to - 1])) to--;
    static const char *const joints[] = {",", ", ", " and ", ", and ", " or ", ", or ", NULL};
    for (const char *const *j = joints; *j != NULL; j++)
        if (strlen(*j) == to - from && memcmp(*j, text + from, to - from) == 0) return true;
    return false;
}

/* Is the last name still what the sentence is about at `from`? */
static bool is_cited_here(const reader *r, size_t from)
{
    if (r->last_name == UINT32_MAX || from < r->last_name_to || from - r->last_name_to > CITED_WITHIN ||
        r->is_joined)
        return false;
    for (size_t i = r->last_name_to; i + 1 < from; i++)
        if ((strchr(".!?", r->text[i]) != NULL && strchr(" \n", r->text[i + 1]) != NULL) ||
            (r->text[i] == '\n' && r->text[i + 1] == '\n'))
            return false;
    return !speaks_of_use(r->text, r->last_name_to, from);
}

static void cite(code_checked *c, size_t from, size_t n)
{
    if (!c->cited_to) {
        c->cited_from = (uint32_t)from;
        c->cited_to = (uint32_t)(from + n);
    }
    c->was_cited_elsewhere = true;
}

static void take_place(code_checked *c, const code_place *p)
{
    free(c->path);
    free(c->what);
    free(c->parent);
    c->path = base_xstrdup(p->path);
    c->what = base_xstrdup(p->what);
    c->parent = base_xstrdup(p->parent);
    c->line = p->line;
    c->line_end = p->line_end;
}

/* The name in front of this place was said to be there: was it? Of several definitions that one is meant. */
static void compare_cited(reader *r, const char *path, uint32_t line, size_t from, size_t length)
{
    if (!is_cited_here(r, from)) return;
    code_checked *c = &r->found[r->last_name];
    r->last_name = UINT32_MAX;
    code_place *places;
    const uint32_t n = code_index_define(r->x, c->name, &places);
    uint32_t at = 0;
    while (at < n && (strcmp(places[at].path, path) != 0 ||
                         (line != 0 && (line + 1 < places[at].line || line > places[at].line_end))))
        at++;
    if (at < n && !places[at].is_declaration && strcmp(places[at].path, c->path) != 0)
        take_place(c, &places[at]);
    else if (at == n && n != 0)
        cite(c, from, length);
    code_places_free(places, n);
}

static bool check_path(reader *r, const char *word, size_t from, bool quoted)
{
    char path[MAX_WORD];
    uint32_t line;
    if (!split_path(word, path, &line)) return false;
    char *full = code_index_path(r->x, path);
    if (!has_shape_of_path(path) && (full == NULL || (!quoted && line == 0))) {
        free(full);
        return false;
    }
    if (full == NULL) {
        const size_t n = strlen(path);
        const bool product = !quoted && line == 0 && strchr(path, '/') == NULL &&
                             (is_upper(path[0]) || strcmp(path + n - 3, ".js") == 0);
        code_checked *c = product ? NULL : add(r, word);
        if (c != NULL) {
            c->state = CODE_PLACE_MISSING;
            c->what = base_xstrdup("file");
            c->parent = base_xstrdup("");
        }
        if (is_cited_here(r, from)) cite(&r->found[r->last_name], from, strlen(word));
        return true;
    }
    compare_cited(r, full, line, from, strlen(word));
    code_checked *c = add(r, word);
    if (c == NULL) {
        free(full);
        return true;
    }
    const uint32_t lines = line != 0 ? lines_of(r->x, full) : 0;
    c->state = lines != 0 && line > lines ? CODE_PLACE_BAD_LINE : CODE_PLACE_FILE;
    c->path = full;
    c->line = c->line_end = c->state == CODE_PLACE_FILE ? line : lines;
    c->what = base_xstrdup("file");
    c->parent = base_xstrdup("");
    return true;
}

/* ---- names ---- */

typedef struct shape {
    bool snake, camel, qualified, scoped, capital; /* scoped: the last joint is a "::" */
} shape;

static bool shape_of(const char *s, shape *ret)
{
    *ret = (shape){.capital = is_upper(s[0])};
    if (!code_is_name_byte(s[0]) || (s[0] >= '0' && s[0] <= '9')) return false;
    for (size_t i = 0; s[i] != '\0'; i++) {
        if (code_is_name_byte(s[i])) {
            if ((unsigned char)s[i] >= 0x80) return false;
            if (s[i] == '_' && i != 0 && code_is_name_byte(s[i + 1])) ret->snake = true;
            if (i != 0 && is_upper(s[i]) && (is_lower(s[i - 1]) || (s[i - 1] >= '0' && s[i - 1] <= '9')))
                ret->camel = true;
            continue;
        }
        const bool joins = s[i] == '.' || (s[i] == ':' && s[i + 1] == ':') ||
                           (s[i] == '-' && s[i + 1] == '>') || s[i] == '#';
        if (!joins) return false;
        ret->scoped = s[i] == ':';
        i += s[i] == ':' || s[i] == '-';
        if (!code_is_name_byte(s[i + 1]) || (s[i + 1] >= '0' && s[i + 1] <= '9')) return false;
        ret->qualified = true;
    }
    return true;
}

static const char *last_part(const char *name)
{
    const char *p = name + strlen(name);
    while (p > name && strchr(".:>#", p[-1]) == NULL) p--;
    return p;
}

static bool is_small(const char *what)
{
    return strcmp(what, "field") == 0 || strcmp(what, "variable") == 0 || strcmp(what, "constant") == 0 ||
           strcmp(what, "section") == 0;
}

/* Any part of it in the tree: `reply->str` of which only str is known. */
static bool is_mentioned(const code_index *x, const char *name)
{
    return code_index_mentions(x, last_part(name)) || code_index_mentions(x, name);
}

/* Is what stands in front of the last "::" defined in the tree? `std` and its like are not. */
static bool knows_scope(const code_index *x, const char *name)
{
    char *scope = base_xstrdup(name);
    code_place *places;
    scope[last_part(name) - name - 2] = '\0';
    const uint32_t n = code_index_define(x, scope, &places);
    code_places_free(places, n);
    free(scope);
    return n != 0;
}

/* Does the answer write this identifier anywhere? */
static bool is_written(const reader *r, const char *name, size_t len, bool any_case)
{
    size_t pos = 0, from, to;
    while (len != 0 && code_next_identifier(r->text, r->n_text, &pos, &from, &to))
        if (to - from == len &&
            (any_case ? strncasecmp(r->text + from, name, len) : strncmp(r->text + from, name, len)) == 0)
            return true;
    return false;
}

/*
 * Which part of a type's words the answer writes, in percent: of redisContext, "the connection context"
 * writes a half.
 */
static uint32_t percent_written(const reader *r, const char *type)
{
    base_buf words = {0};
    code_split_identifier(type, strlen(type), &words);
    uint32_t n = 0, n_written = 0;
    for (size_t i = 0; i < words.len; n++) {
        const char *end = memchr(words.data + i, ' ', words.len - i);
        const size_t len = end != NULL ? (size_t)(end - words.data) - i : words.len - i;
        n_written += is_written(r, words.data + i, len, true);
        i += len + 1;
    }
    base_buf_free(&words);
    return n != 0 ? n_written * 100 / n : 0;
}

/* How many files hold an identifier. */
static uint32_t files_with(const code_index *x, const char *name)
{
    pthread_mutex_lock(&((code_index *)x)->lock);
    const uint32_t id = code_strings_find(&x->identifiers, name, strlen(name));
    const uint32_t n = id != UINT32_MAX ? x->names[id].n_files : 0;
    pthread_mutex_unlock(&((code_index *)x)->lock);
    return n;
}

/*
 * Of the fields that share a name, the one whose type the answer writes too, else the one of whose type it
 * writes most, else the one whose type most files hold. Returns n when no type has such a field.
 */
static uint32_t choose_field(const reader *r, const code_place *places, uint32_t n)
{
    uint32_t best = n, best_percent = 0, best_files = 0;
    for (uint32_t i = 0, looked = 0; i < n && looked < MAX_FIELDS; i++) {
        const char *type = places[i].parent;
        if (strcmp(places[i].what, "field") != 0 || type[0] == '\0') continue;
        looked++;
        if (is_written(r, type, strlen(type), false)) return i;
        const uint32_t percent = percent_written(r, type), files = files_with(r->x, type);
        if (best != n && (percent < best_percent || (percent == best_percent && files <= best_files)))
            continue;
        best = i;
        best_percent = percent;
        best_files = files;
    }
    return best;
}

/* A folder of the tree is called so, as a Python package is. */
static bool is_folder(const code_index *x, const char *name)
{
    const size_t n = strlen(name);
    bool found = false;
    pthread_mutex_lock(&((code_index *)x)->lock);
    for (uint32_t i = 0; i < x->paths.n && !found; i++) {
        if (!x->files[i].present) continue;
        const char *slash;
        for (const char *p = x->paths.strings[i]; !found && (slash = strchr(p, '/')) != NULL; p = slash + 1)
            found = (size_t)(slash - p) == n && memcmp(p, name, n) == 0;
    }
    pthread_mutex_unlock(&((code_index *)x)->lock);
    return found;
}

/* One letter more, less or another, or two changed places. */
static bool is_misspelt(const char *a, size_t n, const char *b, size_t m)
{
    size_t front = 0, back = 0;
    while (front < n && front < m && a[front] == b[front]) front++;
    while (back < n - front && back < m - front && a[n - 1 - back] == b[m - 1 - back]) back++;
    const size_t left = n - front - back, right = m - front - back;
    if (left == 2 && right == 2) return a[front] == b[front + 1] && a[front + 1] == b[front];
    return left + right > 0 && left <= 1 && right <= 1;
}

/*
 * The one name that the tree defines and that differs from this one by a slip. A plain word, which may be English, means
 * a function only, and not by another ending.
 */
static void find_meant(const code_index *x, code_checked *c, bool compound)
{
    const size_t n = strlen(c->name);
    const char *found = NULL;
    uint32_t count = 0;
    if (n < LEAST_MISSPELT) return;
    pthread_mutex_lock(&((code_index *)x)->lock);
    for (uint32_t i = 0; i < x->identifiers.n && count < 2; i++) {
        const char *name = x->identifiers.strings[i];
        if (x->names[i].n_files == 0 || !is_misspelt(c->name, n, name, strlen(name))) continue;
        found = x->names[i].n_refs != 0 ? name : NULL; /* a library's name: no slip */
        count++;
    }
    char *meant = count == 1 && found != NULL ? base_xstrdup(found) : NULL;
    pthread_mutex_unlock(&((code_index *)x)->lock);
    code_place *places = NULL;
    const uint32_t n_places = meant != NULL ? code_index_define(x, meant, &places) : 0;
    const bool is_meant =
        n_places != 0 &&
        (compound || (meant[strlen(meant) - 1] == c->name[n - 1] && strcmp(places[0].what, "function") == 0));
    if (is_meant) {
        take_place(c, &places[0]);
        c->meant = meant;
    } else {
        free(meant);
    }
    code_places_free(places, n_places);
}

static bool is_member(const code_place *p)
{
    return *p->parent != '\0';
}

static void check_name(reader *r, const char *name, size_t from, size_t to, bool quoted, bool called)
{
    shape s;
    const size_t n = strlen(name);
    if (n < 2 || !shape_of(name, &s) || code_is_keyword(name, n)) return;
    const bool compound = s.snake || s.camel;
    if (!quoted && !called && !compound && !s.scoped) return;
    char lower[CODE_WORD_BYTES] = "";
    for (size_t i = 0; i < n && i + 1 < sizeof lower; i++)
        lower[i] = is_upper(name[i]) ? (char)(name[i] - 'A' + 'a') : name[i];
    const bool plain = !compound && !s.qualified;
    const bool english = plain && n < sizeof lower && code_is_stop_word(lower, n);
    if (english && !quoted) return;
    code_place *places;
    const uint32_t n_places = code_index_define(r->x, name, &places);
    /* A plain word in backticks means a field when some type has it; a variable's name may be any word. */
    uint32_t at = 0;
    if (n_places != 0 && (is_small(places[0].what) ? plain || strcmp(places[0].what, "field") == 0 : english))
        at = quoted || !plain ? choose_field(r, places, n_places) : n_places;
    if (n_places != 0 && at == n_places && !plain) at = 0;
    /* The package, not a method that shares its name. */
    if (at < n_places && plain && !called && is_member(&places[at]) && is_folder(r->x, name)) at = n_places;
    if (at < n_places) {
        code_checked *c = add(r, name);
        for (uint32_t i = 0; c == NULL && i < r->n; i++) /* named again: a place behind it is checked too */
            if (strcmp(r->found[i].name, name) == 0) r->last_name = i;
        if (c != NULL) {
            c->state = CODE_PLACE_DEFINED;
            take_place(c, &places[at]);
            for (uint32_t i = 0; i < n_places; i++)
                c->n_more += i != at && !places[i].is_declaration &&
                             is_small(places[i].what) == is_small(places[at].what);
            r->last_name = r->n - 1;
        }
        r->is_joined =
            r->last_name_to != 0 && r->last_name_to < from && is_joined(r->text, r->last_name_to, from);
        r->last_name_to = to;
    } else if (n_places == 0 && !english && (quoted || called || !s.scoped || knows_scope(r->x, name))) {
        const bool mentioned = is_mentioned(r->x, name);
        const bool product = !quoted && !called && s.capital && !s.snake && !s.scoped;
        code_checked *c = NULL;
        if (!product && (!mentioned || compound || called)) c = add(r, name);
        r->last_name = UINT32_MAX;
        if (c != NULL) {
            c->state = mentioned ? CODE_PLACE_MENTIONED : CODE_PLACE_MISSING;
            c->what = base_xstrdup("");
            c->parent = base_xstrdup("");
            if (!mentioned && !s.qualified) find_meant(r->x, c, compound);
        }
    }
    code_places_free(places, n_places);
}

/* ---- reading ---- */

/* One word with its trailing punctuation off; "(" behind it makes it a call. */
static void check_word(reader *r, const char *s, size_t from, size_t to, bool quoted, bool called)
{
    char word[MAX_WORD];
    while (to > from && strchr(".,;:!?)]}'\"*", s[to - 1]) != NULL) to--;
    while (from < to && strchr("([{'\"*&~<", s[from]) != NULL) from++;
    if (to <= from || to - from >= sizeof word) return;
    memcpy(word, s + from, to - from);
    word[to - from] = '\0';
    if (memchr(word, '\0', to - from) != NULL || strstr(word, "://") != NULL || word[0] == '-') return;
    if (!called && check_path(r, word, from, quoted)) return;
    check_name(r, word, from, to, quoted, called);
}

static bool breaks_word(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '`' || c == '(' || c == ',' || c == ';' ||
           c == '|' || c == '"' || c == '=';
}

/* `void freeReplyObject(void *reply)` names what stands before the bracket; `a b c` is no name. */
static void check_quoted(reader *r, const char *s, size_t from, size_t to)
{
    size_t open = from;
    while (open < to && s[open] != '(' && s[open] != '\n') open++;
    if (open < to && s[open] == '(') {
        size_t start = open;
        while (start > from && !breaks_word(s[start - 1]) && s[start - 1] != '*' && s[start - 1] != '!')
            start--;
        check_word(r, s, start, open, true, true);
        return;
    }
    for (size_t i = from; i < to; i++)
        if (breaks_word(s[i])) return;
    check_word(r, s, from, to, true, false);
}

uint32_t code_places_check(
    const code_index *x, const char *answer, size_t n, uint32_t cap, code_checked **ret)
{
    reader r = {
        .x = x, .text = answer, .n_text = n, .cap = cap != 0 ? cap : DEFAULT_CAP, .last_name = UINT32_MAX};
    r.found = base_xcalloc(r.cap, sizeof *r.found);
    bool fenced = false;
    for (size_t i = 0; i < n;) {
        const bool line_starts = i == 0 || answer[i - 1] == '\n';
        if (line_starts && n - i >= 3 &&
            (memcmp(answer + i, "```", 3) == 0 || memcmp(answer + i, "~~~", 3) == 0)) {
            fenced = !fenced;
            const char *end = memchr(answer + i, '\n', n - i);
            i = end != NULL ? (size_t)(end - answer) + 1 : n;
            continue;
        }
        if (fenced) {
            const char *end = memchr(answer + i, '\n', n - i);
            i = end != NULL ? (size_t)(end - answer) + 1 : n;
            continue;
        }
        if (answer[i] == '`') {
            size_t ticks = 1;
            while (i + ticks < n && answer[i + ticks] == '`') ticks++;
            const size_t from = i + ticks;
            size_t to = from;
            while (to < n && answer[to] != '`' && answer[to] != '\n') to++;
            check_quoted(&r, answer, from, to);
            i = to;
            while (i < n && answer[i] == '`') i++;
            continue;
        }
        if (breaks_word(answer[i])) {
            i++;
            continue;
        }
        const size_t from = i;
        while (i < n && !breaks_word(answer[i])) i++;
        const bool called =
            i + 1 < n && answer[i] == '(' && code_is_name_byte(answer[i - 1]) &&
            (answer[i + 1] == ')' || code_is_name_byte(answer[i + 1]) || answer[i + 1] == '*');
        /* "word(s)" is English: a call has nothing in its brackets, or a comma, or the word is compound. */
        const bool empty = called && answer[i + 1] == ')';
        check_word(&r, answer, from, i, false, empty);
    }
    *ret = r.found;
    return r.n;
}

void code_places_checked_free(code_checked *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(c[i].name);
        free(c[i].path);
        free(c[i].what);
        free(c[i].parent);
        free(c[i].meant);
    }
    free(c);
}

void code_places_line(const code_checked *c, base_buf *out)
{
    switch (c->state) {
    case CODE_PLACE_DEFINED:
        base_buf_printf(out, "%s: %s:%u (%s%s%s)", c->name, c->path, c->line, c->what,
            c->parent[0] != '\0' ? " of " : "", c->parent);
        if (c->n_more != 0) base_buf_printf(out, ", and %u more", c->n_more);
        if (c->was_cited_elsewhere) base_buf_puts(out, ", not where the answer says");
        break;
    case CODE_PLACE_FILE:
        base_buf_puts(out, c->path);
        if (c->line != 0) base_buf_printf(out, ":%u", c->line);
        break;
    case CODE_PLACE_MENTIONED:
        base_buf_printf(out, "%s: used in this tree, defined elsewhere", c->name);
        break;
    case CODE_PLACE_MISSING:
        base_buf_printf(out, "no %s in this tree", c->name);
        if (c->meant != NULL)
            base_buf_printf(out, "; %s: %s:%u (%s%s%s)", c->meant, c->path, c->line, c->what,
                c->parent[0] != '\0' ? " of " : "", c->parent);
        break;
    case CODE_PLACE_BAD_LINE:
        base_buf_printf(out, "%s: %s has only %u lines", c->name, c->path, c->line);
        break;
    }
}
