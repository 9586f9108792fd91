/*
 * What operation a request asks for, by what it names and the words that cue it, in whatever order they stand
 * (contract: operation_words.h). A renaming names one thing of the tree and one that the tree does not write, a move one
 * thing and a file, a deletion one thing that its verb is about. Whatever else a request says makes it none.
 */
#include "agent/words/operation_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/words/request_words.h"
#include "base/buf.h"
#include "base/mem.h"
#include "code/code.h"

enum { MAX_ITEMS = 16 };

/* Of the tree; a name that the tree writes nowhere; a file of code, there or not. */
typedef enum item_kind { KNOWN, FRESH, FILE_PATH } item_kind;

/* Something that the request names: bytes [from, to) of it, its marks and brackets among them. */
typedef struct item {
    size_t from, to;
    char *name; /* "Range.contains" of Range::contains */
    item_kind kind;
    bool is_place; /* "in Lexer": where another one stands */
} item;

typedef struct items {
    item all[MAX_ITEMS];
    size_t n;
} items;

static void items_free(items *it)
{
    for (size_t i = 0; i < it->n; i++) free(it->all[i].name);
}

static const char *const kinds[] = {"function", "functions", "method", "class", "helper", "macro", "type",
    "struct", "constant", "variable", "alias", "enum", "trait", "interface", NULL};
static const char *const members[] = {
    "property", "properties", "field", "member", "attribute", "method", "getter", "setter", NULL};
static const char *const places[] = {"in", "of", "from", "on", "inside", "within", NULL};
static const char *const no_places[] = {"instead", "rid", "everything", NULL}; /* "instead of f" */
static const char *const articles[] = {"the", "a", "an", "that", "this", "our", NULL};

/* --- what is named ---------------------------------------------------------------------------------------- */

/* The word behind byte `at` with nothing but blanks between; false: none. */
static bool word_right_behind(const char *s, size_t at, agent_word *ret)
{
    return agent__next_word(s, at, ret) && strspn(s + at, " ") == ret->from - at;
}

static bool is_file(const char *s, agent_word w)
{
    char *path = agent__copy_word(s, w);
    const char *language = strchr(path, '.') ? code_language(path, "", 0) : NULL;
    const bool is = language && !code_language_is_document(language);
    free(path);
    return is;
}

/* Does the sentence begin at byte `from`, with or without a mark or an article? */
static bool begins_sentence(const char *s, size_t from)
{
    agent_word before;
    while (from && agent__is_mark(s[from - 1])) from--;
    if (!agent__word_before(s, from, &before)) return true;
    return agent__is_any_word(s, before, articles) && !agent__word_before(s, before.from, &before);
}

/* "utf8len", "ll2str": a digit among letters. */
static bool has_inner_digit(const char *s, agent_word w)
{
    bool has = false;
    for (size_t i = w.from + 1; i + 1 < w.to; i++)
        has |= isdigit((unsigned char)s[i]) && isalpha((unsigned char)s[i - 1]) &&
               isalpha((unsigned char)s[i + 1]);
    return has;
}

/* "Put indirect next to", "drop walk from api.py", "move clamp to util.c": behind a verb, with a place behind it. */
static bool is_plain_object(const char *s, agent_word w, size_t end)
{
    static const char *const verbs[] = {"delete", "remove", "drop", "move", "put", "rename", "kill", "shift",
        "relocate", "inline", "extract", "pull", "need", NULL};
    static const char *const prepositions[] = {"in", "from", "to", "into", "out", "of", NULL};
    agent_word before, next, m;
    if (!agent__is_content_word(s + w.from, w.to - w.from) || !agent__word_before(s, w.from, &before) ||
        !agent__is_any_word(s, before, verbs) || !word_right_behind(s, end, &next))
        return false;
    if (agent__find_phrase(s, next.from, "next to") == next.from + strlen("next to")) return true;
    while (agent__is_any_word(s, next, prepositions) && word_right_behind(s, next.to, &m)) {
        if (agent__next_mention(s, next.to, &m) && is_file(s, m)) return true;
        if (!agent__next_word(s, next.to, &next)) break;
    }
    return false;
}

/* Is the word at [from, to) written or placed as a name of code, so that it is no English word by chance? */
static bool is_meant_as_name(const char *s, agent_word w, size_t end)
{
    static const char *const saying[] = {"in", "is", "isn", "isnt", "should", "ought", "must", "needs",
        "could", "belongs", "has", "doesn", "does", "was", NULL};
    agent_word next, before;
    const bool is_marked = w.from && agent__is_mark(s[w.from - 1]) && s[w.from - 1] == s[w.to];
    if (agent__is_any_word(s, w, kinds) && !is_marked && s[w.to] != '(')
        return false; /* "the function that" */
    if (agent__looks_like_name(s, w) || memchr(s + w.from, '.', w.to - w.from) ||
        memchr(s + w.from, ':', w.to - w.from) || s[w.to] == '(' || is_marked || has_inner_digit(s, w) ||
        is_plain_object(s, w, end))
        return true;
    if (agent__word_before(s, w.from, &before) && agent__is_any_word(s, before, kinds)) return true;
    if (!word_right_behind(s, end, &next)) return false;
    return agent__is_any_word(s, next, kinds) || agent__is_any_word(s, next, members) ||
           (begins_sentence(s, w.from) && agent__is_any_word(s, next, saying));
}

/* "in Lexer, x should": the word in front, over an article and a kind, says a place. */
static bool is_place(const char *s, size_t from)
{
    agent_word before;
    while (from && agent__is_mark(s[from - 1])) from--;
    while (agent__word_before(s, from, &before) &&
           (agent__is_any_word(s, before, articles) || agent__is_any_word(s, before, kinds)))
        from = before.from;
    agent_word earlier;
    return agent__word_before(s, from, &before) && agent__is_any_word(s, before, places) &&
           !(agent__word_before(s, before.from, &earlier) && agent__is_any_word(s, earlier, no_places));
}

static void add_item(items *it, const char *s, agent_word w, size_t to, char *name, item_kind kind)
{
    if (it->n == MAX_ITEMS) {
        free(name);
        return;
    }
    const bool has_mark = w.from && agent__is_mark(s[w.from - 1]) && s[w.from - 1] == s[to];
    it->all[it->n++] =
        (item){w.from - has_mark, to + has_mark, name, kind, kind == KNOWN && is_place(s, w.from)};
}

/* The name at word w with the members behind it; *ret_to: behind "()" too. */
static char *read_chain(const char *s, agent_word *w, size_t *ret_to)
{
    base_buf name = {0};
    base_buf_add(&name, s + w->from, w->to - w->from);
    for (;;) {
        const size_t dots = s[w->to] == '.' || s[w->to] == '#' ? 1 : !strncmp(s + w->to, "::", 2) ? 2 : 0;
        if (!dots || !agent__is_in_word(s, w->to + dots)) break;
        size_t to = w->to + dots;
        while (agent__is_in_word(s, to)) to++;
        base_buf_printf(&name, ".%.*s", (int)(to - w->to - dots), s + w->to + dots);
        w->to = to;
    }
    *ret_to = w->to;
    if (s[w->to] == '(') {
        const size_t n = strcspn(s + w->to, ")\n");
        if (s[w->to + n] == ')') *ret_to = w->to + n + 1;
    }
    return base_buf_take(&name);
}

static void read_items(const char *s, const agent_names *names, items *it)
{
    agent_word m;
    for (size_t at = 0; agent__next_mention(s, at, &m); at = m.to > at ? m.to : at + 1) {
        if (m.from == m.to) continue;
        if (is_file(s, m)) {
            add_item(it, s, m, m.to, agent__copy_word(s, m), FILE_PATH);
            continue;
        }
        agent_word w;
        for (size_t k = m.from; k < m.to && agent__next_word(s, k, &w) && w.from < m.to;) {
            size_t to;
            char *name = read_chain(s, &w, &to);
            k = to;
            if (m.to < to) m.to = to;
            const bool is_known =
                w.to - w.from >= 3 && !agent__is_module_word(s, w) && names->count(names->ctx, name) > 0;
            const bool is_fresh = !is_known && !isdigit((unsigned char)*name) && !strchr(name, '.') &&
                                  (agent__looks_like_name(s, w) || *name == '_') &&
                                  !names->mentions(names->ctx, name);
            if ((is_known && is_meant_as_name(s, w, to)) || is_fresh)
                add_item(it, s, w, to, name, is_known ? KNOWN : FRESH);
            else
                free(name);
        }
    }
}

/* The only one of its kind that the request names, once or more often, places left out; NULL: none, or several. */
static const item *only(const items *it, item_kind kind)
{
    const item *one = NULL;
    for (size_t i = 0; i < it->n; i++) {
        const item *o = &it->all[i];
        if (o->kind != kind || o->is_place) continue;
        if (one && strcmp(one->name, o->name) != 0) return NULL;
        if (!one) one = o;
    }
    return one;
}

/* "Cache needs no length property": of all that is named the member of another one; NULL: none is said to be one. */
static const item *find_member(const char *s, const agent_names *names, const items *it)
{
    agent_word next;
    for (size_t i = 1; i < it->n; i++) {
        const item *o = &it->all[i], *owner = &it->all[i - 1];
        if (o->kind != KNOWN || owner->kind != KNOWN || !word_right_behind(s, o->to, &next) ||
            !agent__is_any_word(s, next, members))
            continue;
        base_buf whole = {0};
        base_buf_printf(&whole, "%s.%s", owner->name, o->name);
        const bool is_so = names->count(names->ctx, whole.data) > 0;
        base_buf_free(&whole);
        if (is_so) return o;
    }
    return NULL;
}

/* --- how it is said --------------------------------------------------------------------------------------- */

/* Does one of the `near` words in front of byte `at` deny it: "don't remove", "without renaming"? */
static bool is_denied_by(const char *s, size_t at, int near)
{
    static const char *const denials[] = {
        "don", "dont", "not", "never", "without", "nobody", "t", "won", "cannot", NULL};
    agent_word w;
    for (int i = 0; i < near && agent__word_before(s, at, &w); i++, at = w.from)
        if (agent__is_any_word(s, w, denials)) return true;
    return false;
}

static bool is_denied(const char *s, size_t at)
{
    enum { NEAR = 3 };
    return is_denied_by(s, at, NEAR);
}

/* "does not have to be public" */
static bool is_denied_far(const char *s, size_t at)
{
    enum { FAR = 6 };
    return is_denied_by(s, at, FAR);
}

/* The first of the phrases that is not denied: bytes behind it, 0: none. */
static size_t find_cue(const char *s, const char *const *cues, size_t *ret_from)
{
    for (const char *const *cue = cues; *cue; cue++)
        for (size_t to = 0; (to = agent__find_phrase(s, to, *cue)) != 0;) {
            *ret_from = to - strlen(*cue);
            const char before = *ret_from ? s[*ret_from - 1] : ' ';
            if (s[to] != '(' && s[to] != '_' && !strchr("._:`", before) && !is_denied(s, *ret_from))
                return to;
        }
    return 0;
}

static bool is_question(const char *s)
{
    static const char *const asking[] = {"why", "what", "how", "where", "who", "which", "when", "does", "do",
        "is", "are", "explain", "show", "describe", "list", "tell", NULL};
    agent_word w;
    const char *from = agent__first_word(s);
    const bool is_polite = from > s + strspn(s, " \t\n");
    return (strchr(s, '?') && !is_polite && !agent__has_word(s, "could you") &&
               !agent__has_word(s, "can you")) ||
           (agent__next_word(from, 0, &w) && agent__is_any_word(from, w, asking));
}

/*
 * What stands behind byte `at`, over words that only lead to it: "everything about the old helper f". "It": `meant`. NULL: another
 * thing of the sentence.
 */
static const item *object_behind(const char *s, size_t at, const items *it, const item *meant)
{
    static const char *const fillers[] = {"the", "our", "that", "this", "also", "all", "of", "everything",
        "about", "private", "public", "unused", "old", "dead", "deprecated", "obsolete", "legacy", "useless",
        "out", "away", "off", "rid", "whole", "entire", "definition", NULL};
    static const char *const pronouns[] = {"it", "that", "them", NULL};
    agent_word w;
    for (;;) {
        const size_t begin = at + strspn(s + at, " ");
        for (size_t i = 0; i < it->n; i++)
            if (it->all[i].from == begin) return &it->all[i];
        if (!word_right_behind(s, at, &w)) return NULL;
        const bool is_filler = agent__is_any_word(s, w, fillers) || agent__is_any_word(s, w, kinds);
        agent_word next;
        const bool is_pronoun = agent__is_any_word(s, w, pronouns) &&
                                (!word_right_behind(s, w.to, &next) || !agent__is_any_word(s, next, kinds));
        if (is_pronoun && meant && meant->from < w.from) {
            const size_t behind = w.to + strspn(s + w.to, " ");
            for (size_t i = 0; i < it->n; i++) /* "that f" */
                if (it->all[i].from == behind) return &it->all[i];
            return meant;
        }
        if (!is_filler) return NULL;
        at = w.to;
    }
}

/* "f's check", "the calls of f", "f from the list": a part of it, or of another thing, goes, and f stays. */
static bool is_a_part(const char *s, const item *o)
{
    static const char *const parts[] = {"call", "calls", "parameter", "parameters", "argument", "arguments",
        "check", "checks", "usage", "usages", "import", "imports", "test", "tests", "comment", "comments",
        "flag", "option", "branch", "case", "line", "docstring", "attribute", "field", "prefix", "suffix",
        "value", "to", "into", "as", "when", "if", "where", NULL};
    static const char *const lists[] = {"from", NULL};
    agent_word w;
    if (s[o->to] == '\'' || s[o->to] == '.' ? agent__is_in_word(s, o->to + 1) : false) return true;
    if (!word_right_behind(s, o->to, &w)) return false;
    if (!agent__is_any_word(s, w, lists)) return agent__is_any_word(s, w, parts);
    agent_word m;
    return !agent__next_mention(s, w.to, &m) || !is_file(s, m);
}

/* --- the three of them ------------------------------------------------------------------------------------ */

/* "a field called max_len", "needs another name": something new gets that name. */
static bool is_for_a_new_thing(const char *s, size_t at)
{
    enum { NEAR = 6 };
    static const char *const indefinite[] = {"a", "an", "another", "new", "second", "extra", "add", "create",
        "write", "introduce", "implement", NULL};
    agent_word w;
    for (int i = 0; i < NEAR && agent__word_before(s, at, &w); i++, at = w.from)
        if (agent__is_any_word(s, w, indefinite)) return true;
    return false;
}

static bool read_rename(const char *s, const items *it, agent_operation_words *ret)
{
    static const char *const cues[] = {"rename", "renamed", "renaming", "call it", "call this", "name it",
        "called", "named", "be called", "name", "names", "naming", "should read", "to be", "typo",
        "misspelled", "misspelt", "misnomer", "spelled", "spelt", NULL};
    static const char *const others[] = {"parameter", "parameters", "argument", "arguments", "field",
        "option", "test", "tests", "flag", "when", "if", "unless", "return", "returns", "raise", "raises",
        "throw", "default", "move", "split", "remove", "delete", "set", "store", "print", "log", NULL};
    const item *old = only(it, KNOWN), *new = only(it, FRESH);
    size_t from;
    if (!old || !new || agent__has_any_word(s, others) || !find_cue(s, cues, &from)) return false;
    if (is_for_a_new_thing(s, new->from)) {
        static const char *const whole[] = {"a better name", "a clearer name", "a new name", NULL};
        if (!agent__has_any_word(s, whole)) return false;
    }
    *ret = (agent_operation_words){"rename", base_xstrdup(old->name), base_xstrdup(new->name)};
    return true;
}

/* The file that something goes into; NULL: none is said to be that. */
static const item *destination(const char *s, const items *it)
{
    static const char *const into[] = {
        "to", "into", "in", "inside", "within", "file", "called", "named", NULL};
    static const char *const to[] = {"to", "into", NULL};
    static const char *const fillers[] = {"the", "a", "an", "new", "file", "module", "existing", NULL};
    const item *best = NULL;
    bool is_sure = false;
    for (size_t i = 0; i < it->n; i++) {
        const item *f = &it->all[i];
        agent_word before;
        size_t at = f->from;
        if (f->kind != FILE_PATH) continue;
        while (agent__word_before(s, at, &before) && agent__is_any_word(s, before, fillers)) at = before.from;
        const bool is_one = agent__word_before(s, at, &before) && agent__is_any_word(s, before, into);
        const bool is_own =
            agent__find_phrase(s, 0, "its own file") || agent__find_phrase(s, 0, "own module");
        const bool goes_to = is_one && agent__is_any_word(s, before, to);
        if ((!is_one && !is_own) || (best && (is_sure || !goes_to))) continue;
        best = f;
        is_sure = goes_to;
    }
    return best;
}

static bool read_move(const char *s, const items *it, agent_operation_words *ret)
{
    static const char *const verbs[] = {
        "move", "relocate", "shift", "transfer", "put", "place", "pull", "extract", "take", "bring", NULL};
    static const char *const saying[] = {"belongs", "belong", "should live", "live in", "lives better",
        "better off", "should be in", "should go", "should sit", "should stand", "should move",
        "should be moved", "should reside", "fits better", "better placed", NULL};
    static const char *const others[] = {"add", "create", "write", "implement", "test", "tests", "call",
        "calls", "rename", "copy", "parameter", "argument", NULL};
    const item *file = destination(s, it), *object = NULL, *meant = NULL;
    size_t from;
    if (!file || agent__has_any_word(s, others)) return false;
    for (size_t i = 0; i < it->n && !meant; i++)
        if (it->all[i].kind == KNOWN && !it->all[i].is_place) meant = &it->all[i];
    if (!meant) return false;
    if (find_cue(s, saying, &from) && meant->from < from) object = meant;
    for (const char *const *verb = verbs; *verb && !object; verb++) {
        const char *const cue[] = {*verb, NULL};
        const size_t to = find_cue(s, cue, &from);
        const item *o = to ? object_behind(s, to, it, meant) : NULL;
        if (o && o->kind == KNOWN) object = o;
    }
    if (!object) return false;
    *ret = (agent_operation_words){"move", base_xstrdup(object->name), base_xstrdup(file->name)};
    return true;
}

static bool read_delete(const char *s, const agent_names *names, const items *it, agent_operation_words *ret)
{
    static const char *const verbs[] = {"delete", "remove", "drop", "get rid of", "kill", "throw", "ditch",
        "scrap", "nuke", "purge", "eliminate", "strip out", "take out", "take", "retire", "lose", NULL};
    static const char *const taken[] = {"out", "away", NULL}; /* "take it out", "throw f away" */
    static const char *const others[] = {
        "add", "replace", "rename", "move", "parameter", "argument", "split", "instead", NULL};
    const item *only_one = only(it, KNOWN), *meant = only_one ? only_one : find_member(s, names, it);
    if (agent__has_any_word(s, others)) return false;
    for (const char *const *verb = verbs; *verb; verb++) {
        const char *const cue[] = {*verb, NULL};
        size_t from;
        const size_t to = find_cue(s, cue, &from);
        const bool needs_out = !strcmp(*verb, "take") || !strcmp(*verb, "throw");
        const item *o = to ? object_behind(s, to, it, meant) : NULL;
        if (!o || o->kind != KNOWN || (o->from > from && is_a_part(s, o)) ||
            (needs_out && !agent__has_any_word(s + from, taken)))
            continue;
        *ret = (agent_operation_words){"delete", base_xstrdup(o->name), NULL};
        return true;
    }
    return false;
}

/* "Make f private", "f should not be exported", "f does not have to be public". */
static bool read_private(const char *s, const items *it, agent_operation_words *ret)
{
    static const char *const hidden[] = {
        "private", "static", "internal", "unexported", "module-private", NULL};
    static const char *const seen[] = {"public", "exported", "pub", "visible", NULL};
    static const char *const hiding[] = {"make", "be", "become", "unexport", NULL};
    static const char *const others[] = {"add", "create", "write", "implement", "new", "rename", "move",
        "remove", "delete", "field", "parameter", "test", "tests", NULL};
    static const char *const goes_on[] = {
        "please", "since", "because", "as", "now", "again", "to", "in", NULL};
    const item *one = only(it, KNOWN);
    agent_word w, next;
    if (!one || agent__has_any_word(s, others) || !agent__has_any_word(s, hiding)) return false;
    for (size_t at = 0; agent__next_word(s, at, &w); at = w.to) {
        const bool is_hidden = agent__is_any_word(s, w, hidden) && !is_denied(s, w.from),
                   is_not_seen = agent__is_any_word(s, w, seen) && is_denied_far(s, w.from);
        const bool ends = !word_right_behind(s, w.to, &next) || agent__is_any_word(s, next, goes_on);
        if (!ends || !(is_hidden || is_not_seen)) continue;
        *ret = (agent_operation_words){"private", base_xstrdup(one->name), NULL};
        return true;
    }
    return false;
}

bool agent_read_operation_gist(const char *request, const agent_names *names, agent_operation_words *ret)
{
    items it = {.n = 0};
    *ret = (agent_operation_words){0};
    if (is_question(request)) return false;
    read_items(request, names, &it);
    const bool is_one = read_rename(request, &it, ret) || read_move(request, &it, ret) ||
                        read_delete(request, names, &it, ret) || read_private(request, &it, ret);
    items_free(&it);
    return is_one;
}
