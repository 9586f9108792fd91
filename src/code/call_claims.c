/*
 * Sentences of the form NAME is called by NAMES are read word by word; what is read is then held against each file of
 * the index that has the callee's name (uses.h).
 */
#include "code/call_claims.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "code/index_state.h"
#include "code/uses.h"

enum {
    MOST_CALLERS = 16,
    MOST_FILES = 64, /* that hold the callee's name: beyond that nothing is said */
    NAME_BYTES = 160,
    LEAST_PREFIX = 3 /* letters of "visit_", by which a program may put a name together */
};

/* ---- reading ---- */

/* Bytes [from, to) of the answer. */
typedef struct span {
    size_t from, to;
} span;

typedef struct claim {
    char callee[NAME_BYTES];
    char callers[MOST_CALLERS][NAME_BYTES];
    uint32_t n_callers;
    span said;
} claim;

static bool is_in(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* The sentence that holds byte `at`: up to a full stop in front of a blank, or an empty line. */
static span sentence_at(const char *s, size_t n, size_t at)
{
    span ret = {at, at};
    while (
        ret.from > 0 && !(is_in(s[ret.from - 1], " \n") && ret.from > 1 && is_in(s[ret.from - 2], ".!?:\n")))
        ret.from--;
    while (ret.to < n && !(is_in(s[ret.to], ".!?") && (ret.to + 1 == n || is_in(s[ret.to + 1], " \n"))) &&
           !(s[ret.to] == '\n' && (ret.to + 1 == n || s[ret.to + 1] == '\n')))
        ret.to++;
    return ret;
}

/* A word with what a name may hold; *quoted: a backtick stands around it, or it is called. */
static bool next_word(const char *s, size_t to, size_t *at, span *word, bool *quoted)
{
    size_t i = *at;
    while (i < to && !code_is_name_byte(s[i])) i++;
    if (i == to) return false;
    word->from = i;
    while (i < to && (code_is_name_byte(s[i]) || (is_in(s[i], ".:-/>") && i + 1 < to &&
                                                     (code_is_name_byte(s[i + 1]) || is_in(s[i + 1], ":>")))))
        i++;
    word->to = i;
    *quoted = (word->from > 0 && s[word->from - 1] == '`') || (i < to && s[i] == '(');
    *at = i;
    return true;
}

static bool is_word(const char *s, span w, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strlen(*words) == w.to - w.from && strncasecmp(s + w.from, *words, w.to - w.from) == 0)
            return true;
    return false;
}

/* Does a word of an answer name code: in backticks, called, or of a shape that English has not? */
static bool is_name(const char *s, span w, bool quoted)
{
    if (w.to - w.from < 2 || w.to - w.from >= NAME_BYTES) return false;
    for (size_t i = w.from; !quoted && i < w.to; i++)
        quoted =
            s[i] == '_' || (i > w.from && s[i] >= 'A' && s[i] <= 'Z' && s[i - 1] >= 'a' && s[i - 1] <= 'z');
    return quoted;
}

static bool is_path(const code_index *x, const char *s, span w)
{
    char path[NAME_BYTES];
    if (w.to - w.from >= sizeof path) return true;
    memcpy(path, s + w.from, w.to - w.from);
    path[w.to - w.from] = '\0';
    path[strcspn(path, ":")] = '\0';
    char *full = code_index_path(x, path);
    const bool found = full != NULL || code_language(path, NULL, 0) != NULL;
    free(full);
    return found;
}

static void copy_name(const char *s, span w, char ret[NAME_BYTES])
{
    memcpy(ret, s + w.from, w.to - w.from);
    ret[w.to - w.from] = '\0';
}

/* The name that a sentence begins with: "`f` frees it", "The function `f` ...". */
static bool read_subject(const char *s, span sentence, char ret[NAME_BYTES])
{
    static const char *const articles[] = {"the", "function", "method", NULL};
    span w;
    bool quoted;
    for (size_t at = sentence.from; next_word(s, sentence.to, &at, &w, &quoted);) {
        if (is_name(s, w, quoted)) {
            copy_name(s, w, ret);
            return true;
        }
        if (!is_word(s, w, articles)) return false;
    }
    return false;
}

/*
 * The callee of the "called" at byte `at`: "NAME is called", "NAME, which is also called", and "It is called" behind a
 * sentence that begins with a name.
 */
static bool read_callee(const char *s, size_t n, size_t at, char ret[NAME_BYTES])
{
    static const char *const between[] = {
        "is", "was", "are", "also", "only", "directly", "internally", "which", "that", NULL};
    static const char *const it[] = {"it", "this", "function", "method", NULL};
    const span sentence = sentence_at(s, n, at);
    span w, last = {0, 0};
    bool quoted, is_last_name = false, is_adjacent = false, begins_with_it = false;
    uint32_t index = 0;
    for (size_t i = sentence.from; next_word(s, at, &i, &w, &quoted); index++) {
        if (is_name(s, w, quoted)) {
            last = w;
            is_last_name = is_adjacent = true;
            begins_with_it = false;
        } else if (is_word(s, w, it) && index < 2) {
            begins_with_it = index == 0 || begins_with_it;
        } else if (!is_word(s, w, between)) {
            is_adjacent = begins_with_it = false;
        }
    }
    if (is_last_name && is_adjacent) {
        copy_name(s, last, ret);
        return true;
    }
    if (!begins_with_it || sentence.from == 0) return false;
    size_t before = sentence.from - 1;
    while (before > 0 && is_in(s[before], " .!?")) before--;
    return s[before] != '\n' && read_subject(s, sentence_at(s, n, before), ret);
}

/* The names behind "called by", with their places, up to what is neither. */
static void read_callers(const code_index *x, const char *s, size_t n, size_t at, claim *ret)
{
    static const char *const fillers[] = {"a", "an", "and", "both", "by", "class", "from", "function",
        "functions", "in", "method", "methods", "of", "or", "test", "tests", "the", NULL};
    static const char *const verbs[] = {"are", "calls", "call", "does", "has", "is", "uses", "was", NULL};
    const size_t to = sentence_at(s, n, at).to;
    span w;
    bool quoted;
    while (at < to && s[at] == ' ') at++;
    ret->said = (span){at, at};
    while (next_word(s, to, &at, &w, &quoted)) {
        const bool place = is_path(x, s, w), name = !place && is_name(s, w, quoted);
        if (is_word(s, w, verbs) && !quoted)
            ret->n_callers = 0; /* the name in front begins another sentence */
        if (!place && !name && !is_word(s, w, fillers)) break;
        if (name && ret->n_callers < MOST_CALLERS) copy_name(s, w, ret->callers[ret->n_callers++]);
        if (!name && !place) continue;
        ret->said.to = w.to;
        if (ret->said.to + 1 < n && s[w.to] == '(' && s[w.to + 1] == ')') ret->said.to += 2;
        if (ret->said.to < n && s[ret->said.to] == '`') ret->said.to++;
    }
}

static bool is_fenced(const char *s, size_t at)
{
    bool fenced = false;
    for (size_t i = 0; i < at; i++)
        if ((i == 0 || s[i - 1] == '\n') && at - i >= 3 &&
            (memcmp(s + i, "```", 3) == 0 || memcmp(s + i, "~~~", 3) == 0))
            fenced = !fenced;
    return fenced;
}

/* The next claim at or behind *at. */
static bool next_claim(const code_index *x, const char *s, size_t n, size_t *at, claim *ret)
{
    static const char *const called[] = {"called", "invoked", NULL}, *const by[] = {"by", "from", NULL};
    span w;
    bool quoted;
    while (next_word(s, n, at, &w, &quoted)) {
        size_t behind = *at;
        span next;
        if (quoted || !is_word(s, w, called) || !next_word(s, n, &behind, &next, &quoted) ||
            !is_word(s, next, by))
            continue;
        *at = behind;
        *ret = (claim){0};
        if (is_fenced(s, w.from) || !read_callee(s, n, w.from, ret->callee)) continue;
        read_callers(x, s, n, behind, ret);
        if (ret->n_callers) return true;
    }
    return false;
}

/* ---- holding it against the tree ---- */

/* Does this stretch of a text hold the name, or the beginning of it that a program could put a name together from? */
static bool holds(const char *text, size_t n, const char *name)
{
    const size_t length = strlen(name);
    for (size_t pos = 0, from, to; code_next_identifier(text, n, &pos, &from, &to);) {
        const size_t len = to - from;
        const bool is_prefix = len > LEAST_PREFIX && len < length && text[to - 1] == '_';
        if ((len == length || is_prefix) && memcmp(text + from, name, len) == 0) return true;
    }
    return false;
}

/* Can this use of a function's name lead to a call under another name? */
static bool is_taken(const code_use *u)
{
    if (u->role == CODE_USE_COMMENT || u->is_call || u->is_exported) return false;
    if (u->role != CODE_USE_NAME && u->role != CODE_USE_MEMBER) return true;
    return u->definition == UINT32_MAX && u->import == UINT32_MAX && u->binding == UINT32_MAX;
}

/* Every use of the name in the tree is a call of it, its definition, an import or a comment. */
static bool is_only_called(const code_index *x, const char *name)
{
    uint32_t n_files = 0;
    bool ret = true;
    pthread_mutex_lock(&((code_index *)x)->lock);
    for (uint32_t i = 0; i < x->paths.n && ret; i++) {
        const indexed_file *f = &x->files[i];
        if (!f->present || f->text == NULL || !holds(f->text, f->n, name)) continue;
        const char *language = code_language(x->paths.strings[i], NULL, 0);
        if (language != NULL && code_language_is_document(language)) continue;
        code_uses *u = ++n_files <= MOST_FILES
                           ? code_uses_find(x->grammars, x->paths.strings[i], f->text, f->n, name)
                           : NULL;
        ret = u != NULL;
        for (uint32_t k = 0; ret && k < u->n_uses; k++) ret = !is_taken(&u->uses[k]);
        code_uses_free(u);
    }
    pthread_mutex_unlock(&((code_index *)x)->lock);
    return ret;
}

typedef enum verdict { IT_MAY, IT_CANNOT, NOBODY_KNOWS } verdict;

/* Does this definition's text hold the callee's name? */
static verdict place_can_call(const code_index *x, const code_place *p, const char *callee)
{
    if (strcmp(p->what, "section") == 0) return IT_CANNOT; /* a document's */
    if (strcmp(p->what, "function") != 0 && strcmp(p->what, "method") != 0) return NOBODY_KNOWS;
    pthread_mutex_lock(&((code_index *)x)->lock);
    const uint32_t id = code_strings_find(&x->paths, p->path, strlen(p->path));
    const indexed_file *f = id != UINT32_MAX ? &x->files[id] : NULL;
    const bool is_there = f != NULL && f->text != NULL && p->to <= f->n;
    const verdict ret = !is_there                                           ? NOBODY_KNOWS
                        : holds(f->text + p->from, p->to - p->from, callee) ? IT_MAY
                                                                            : IT_CANNOT;
    pthread_mutex_unlock(&((code_index *)x)->lock);
    return ret;
}

/* Can a function of this name be a caller of `callee`? */
static verdict can_call(const code_index *x, const char *caller, const char *callee)
{
    code_place *places;
    const uint32_t n = code_index_define(x, caller, &places);
    const bool is_elsewhere = n == 0 && code_index_mentions(x, code_last_name(caller));
    verdict ret = is_elsewhere ? NOBODY_KNOWS : IT_CANNOT;
    for (uint32_t i = 0; i < n && ret == IT_CANNOT; i++) ret = place_can_call(x, &places[i], callee);
    code_places_free(places, n);
    return ret;
}

static bool is_false(const code_index *x, const claim *c)
{
    bool any = false;
    /* Methods are called unseen by loops, operators and formats of many languages. */
    if (!code_index_is_sole(x, c->callee, "function")) return false;
    for (uint32_t i = 0; i < c->n_callers; i++) {
        const verdict v = can_call(x, c->callers[i], code_last_name(c->callee));
        if (v == NOBODY_KNOWS) return false;
        any = any || v == IT_CANNOT;
    }
    return any && is_only_called(x, code_last_name(c->callee));
}

uint32_t code_find_false_claims(const code_index *x, const char *answer, size_t n, code_false_claim **ret)
{
    claim *c = base_xmalloc(sizeof *c);
    uint32_t count = 0;
    size_t cap = 0;
    *ret = NULL;
    for (size_t at = 0; next_claim(x, answer, n, &at, c);) {
        if (!is_false(x, c)) continue;
        base_grow(ret, &cap, count + 1, sizeof **ret);
        (*ret)[count++] = (code_false_claim){
            .from = (uint32_t)c->said.from, .to = (uint32_t)c->said.to, .callee = base_xstrdup(c->callee)};
    }
    free(c);
    return count;
}

void code_false_claims_free(code_false_claim *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) free(c[i].callee);
    free(c);
}
