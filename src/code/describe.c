/* Definitions ranked for a description (contract: describe.h). */
#include "code/describe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "code/request.h"
#include "code/traits.h"

enum { MOST_BODY = 2000, MOST_TYPE = 200, MOST_HEAD = 800 };

/* How much a word counts where it stands, as BM25's tf; what is rare counts more. */
static const double saturation = 1.2, in_name = 4, in_head = 1.5, in_body = .3, in_owner = 1;
/* Of another kind than the one that is spoken of; in a test, where none is spoken of; for a name whose parts are all spoken of. */
static const double other_kind = .4, in_test = .5, explained = .5;
/* For each trait that is stated and that it lacks. */
static const double lacking = .4;

/* A kind as people say it, and how definitions of it are called. */
static const struct spoken {
    const char *word, *what;
} spoken[] = {{"function", "function method"}, {"method", "method function"}, {"helper", "function method"},
    {"routine", "function method"}, {"destructor", "function method"}, {"constructor", "function method"},
    {"getter", "function method"}, {"setter", "function method"}, {"wrapper", "function method class struct"},
    {"printer", "function method"}, {"parser", ""}, {"check", "function method"},
    {"property", "function method field"}, {"predicate", "function method"},
    {"decorator", "function method class"}, {"formatter", "class function method struct"},
    {"mutex", "variable field"}, {"lock", "variable field"}, {"benchmark", "function method"},
    {"static int", "variable"}, {"static bool", "variable"}, {"static", "variable constant function method"},
    {"accessor", "function method"}, {"shortcut", "function method"}, {"comparison", "function method"},
    {"factory", "function method"}, {"callback", "function method"}, {"subclass", "class"},
    {"macro", "macro"}, {"constant", "constant variable macro field"}, {"variable", "variable constant"},
    {"marker", "variable constant macro"}, {"regexp", "variable constant"}, {"regex", "variable constant"},
    {"pattern", "variable constant"}, {"table", "variable constant"},
    {"error", "variable constant class struct"}, {"field", "field variable"},
    {"member", "field variable method"}, {"attribute", "field variable"}, {"class", "class struct"},
    {"struct", "struct class typedef type"}, {"type", "type typedef struct class enum interface"},
    {"enum", "enum"}, {"interface", "interface type"}, {"trait", "interface trait"},
    {"exception", "class struct"}, {"alias", "type typedef"}};

/* A term of a definition, and how much it counts there. */
typedef struct said_word {
    uint32_t id;
    float weight;
} said_word;

typedef struct candidate {
    uint32_t file, definition, first_word, n_words;
    double score, tf;
} candidate;

typedef struct describing {
    const code_index *x;
    candidate *all;
    uint32_t n;
    size_t cap;
    said_word *words;
    uint32_t n_words;
    size_t cap_words;
    double *of_form; /* [words of the index] the weight that a word has as a form of the concept at hand */
} describing;

static const code_definition *definition_of(const describing *g, const candidate *c)
{
    return &g->x->files[c->file].file->definitions[c->definition];
}

static void add_words(describing *g, const char *text, size_t from, size_t to, double weight)
{
    const code_index *x = g->x;
    for (size_t pos = from, a, b; code_next_identifier(text, to, &pos, &a, &b);) {
        const uint32_t id = code_strings_find(&x->identifiers, text + a, b - a);
        for (uint32_t i = 0; id != UINT32_MAX && i < x->names[id].n_terms; i++) {
            base_grow(&g->words, &g->cap_words, (size_t)g->n_words + 1, sizeof *g->words);
            g->words[g->n_words++] = (said_word){x->name_terms[x->names[id].first_term + i], (float)weight};
        }
    }
}

/* The lines in front of a definition that belong to it: back to a line without text, or to what is defined above. */
static size_t find_head(const char *text, size_t least, size_t from)
{
    size_t at = from;
    if (from - least > MOST_HEAD) least = from - MOST_HEAD;
    while (at > least && !(text[at - 1] == '\n' && at < from && text[at] == '\n')) at--;
    return at;
}

static bool holds(const code_definition *outer, const code_definition *inner)
{
    return outer->from <= inner->from && inner->to <= outer->to;
}

static void add_definition(describing *g, uint32_t file, uint32_t i)
{
    const indexed_file *f = &g->x->files[file];
    const code_definition *all = f->file->definitions, *d = &all[i];
    const bool is_function = !strcmp(d->what, "function") || !strcmp(d->what, "method");
    const size_t most = is_function ? MOST_BODY : MOST_TYPE;
    const size_t head_to = d->body_to && d->body_from > d->from ? d->body_from : d->to;
    const size_t body_to = d->to - d->from > most ? d->from + most : d->to;
    const size_t least = i ? (holds(&all[i - 1], d) ? all[i - 1].name_from : all[i - 1].to) : 0;
    const char *line_end = memchr(f->text + d->to, '\n', f->n - d->to), *path = g->x->paths.strings[file];
    base_grow(&g->all, &g->cap, (size_t)g->n + 1, sizeof *g->all);
    candidate *c = &g->all[g->n++];
    *c = (candidate){.file = file, .definition = i, .first_word = g->n_words};
    add_words(g, d->name, 0, strlen(d->name), in_name);
    add_words(g, d->parent, 0, strlen(d->parent), in_owner);
    add_words(g, base_path_name(path), 0, strcspn(base_path_name(path), "."), in_owner);
    if (least < d->from) add_words(g, f->text, find_head(f->text, least, d->from), d->from, in_head);
    add_words(g, f->text, d->from, head_to < body_to ? head_to : body_to, in_head);
    if (head_to < body_to) add_words(g, f->text, head_to, body_to, in_body);
    if (line_end) add_words(g, f->text, d->to, (size_t)(line_end - f->text), in_head);
    c->n_words = g->n_words - c->first_word;
}

static void find_candidates(describing *g)
{
    const code_index *x = g->x;
    for (uint32_t k = 0; k < x->paths.n; k++) {
        const indexed_file *f = &x->files[k];
        if (!f->present || !f->text || (f->file->language && code_language_is_document(f->file->language)))
            continue;
        for (uint32_t i = 0; i < f->file->n_definitions; i++)
            if (!f->file->definitions[i].is_declaration &&
                strcmp(f->file->definitions[i].what, "section") != 0)
                add_definition(g, k, i);
    }
}

static void score_concept(describing *g, const code_concept *c)
{
    uint32_t df = 0;
    for (uint32_t f = 0; f < c->n_forms; f++) g->of_form[c->forms[f].word] = c->forms[f].weight;
    for (uint32_t i = 0; i < g->n; i++) {
        candidate *k = &g->all[i];
        k->tf = 0;
        for (uint32_t w = k->first_word; w < k->first_word + k->n_words; w++)
            k->tf += g->of_form[g->words[w].id] * g->words[w].weight;
        df += k->tf > 0;
    }
    for (uint32_t f = 0; f < c->n_forms; f++) g->of_form[c->forms[f].word] = 0;
    const double idf = c->weight * log(1 + (g->n - df + .5) / (df + 1.));
    for (uint32_t i = 0; i < g->n; i++) g->all[i].score += idf * g->all[i].tf / (g->all[i].tf + saturation);
}

/* Of the words of its name, the share that the description has. */
static double share_of_name(describing *g, const code_request *r, const candidate *c)
{
    const code_definition *d = definition_of(g, c);
    const uint32_t id = code_strings_find(&g->x->identifiers, d->name, strlen(d->name));
    if (id == UINT32_MAX) return 0;
    const indexed_name *name = &g->x->names[id];
    const uint32_t n_parts =
        name->n_terms > 1 ? name->n_terms - 1 : name->n_terms; /* the last one is the whole */
    double has = 0;
    for (uint32_t i = 0; i < name->n_terms; i++) {
        double best = 0;
        for (uint32_t k = 0; k < r->n; k++)
            for (uint32_t f = 0; f < r->concepts[k].n_forms; f++)
                if (r->concepts[k].forms[f].word == g->x->name_terms[name->first_term + i])
                    best = fmax(best, r->concepts[k].forms[f].weight);
        has += best;
    }
    return n_parts ? fmin(1, has / n_parts) : 0;
}

static bool has_part(const char *list, const char *part)
{
    const size_t n = strlen(part);
    for (const char *p = list; (p = strstr(p, part)); p++)
        if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' ')) return true;
    return false;
}

static bool is_word(const char *s, size_t from, size_t to, const char *word)
{
    return strlen(word) == to - from && !strncasecmp(s + from, word, to - from);
}

/* "What guesses the type": what does something is a function. */
static bool is_doer(const char *s, size_t from, size_t to)
{
    size_t pos = to, a, b;
    const size_t n = strlen(s);
    if (!is_word(s, from, to, "what") && !is_word(s, from, to, "whatever")) return false;
    return code_next_identifier(s, n, &pos, &a, &b) && b - a > 3 && s[b - 1] == 's' && s[b - 2] != 's';
}

/* The first word of the description that names a kind; NULL: none does. */
static const char *spoken_kind(const char *description, bool *ret_is_test)
{
    const char *what = NULL;
    *ret_is_test = false;
    for (size_t pos = 0, a, b, n = strlen(description); code_next_identifier(description, n, &pos, &a, &b);) {
        *ret_is_test |= !strncmp(description + a, "test", 4);
        if (!what && is_doer(description, a, b)) what = "function method";
        for (size_t i = 0; i < sizeof spoken / sizeof *spoken && !what; i++) {
            const size_t len = strlen(spoken[i].word), end = a + len;
            if (!strncmp(description + a, spoken[i].word, len) &&
                len >= b - a - (description[b - 1] == 's') &&
                !code_is_name_byte(description[end + (description[end] == 's')]))
                what = spoken[i].what;
        }
    }
    return what;
}

static int by_score(const void *p, const void *q)
{
    const candidate *a = p, *b = q;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->file != b->file ? (a->file > b->file ? 1 : -1)
                              : (a->definition > b->definition) - (a->definition < b->definition);
}

static uint32_t take_best(describing *g, uint32_t k, code_described *ret)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n && n < k && g->all[i].score > 0; i++) {
        const code_definition *d = definition_of(g, &g->all[i]);
        base_buf name = {0};
        bool is_new = true;
        base_buf_printf(&name, "%s%s%s", d->parent, *d->parent ? "." : "", d->name);
        for (uint32_t m = 0; m < n && is_new; m++) is_new = strcmp(ret[m].name, name.data) != 0;
        if (is_new)
            ret[n++] = (code_described){base_xstrdup(g->x->paths.strings[g->all[i].file]),
                base_buf_take(&name), g->all[i].score / g->all[0].score};
        base_buf_free(&name);
    }
    return n;
}

/* A sign as code calls it, where it stands alone or in quotes: "handles the ? quantifier". */
static void put_signs(const char *description, base_buf *out)
{
    static const char *const names[128] = {['?'] = "question mark",
        ['*'] = "star asterisk",
        ['+'] = "plus",
        ['.'] = "dot period",
        ['|'] = "pipe branch",
        ['\\'] = "backslash",
        ['/'] = "slash",
        ['#'] = "hash",
        ['@'] = "at",
        ['&'] = "ampersand",
        ['%'] = "percent",
        ['-'] = "dash minus hyphen",
        ['_'] = "underscore",
        ['~'] = "tilde",
        ['$'] = "dollar",
        ['^'] = "caret",
        ['='] = "equal",
        ['!'] = "bang",
        ['<'] = "less",
        ['>'] = "greater",
        [','] = "comma",
        [';'] = "semicolon",
        [':'] = "colon",
        ['['] = "bracket",
        [']'] = "bracket",
        ['{'] = "brace",
        ['}'] = "brace"};
    const char *s = description;
    for (size_t i = 0; s[i]; i++) {
        const char before = i ? s[i - 1] : ' ', behind = s[i + 1] ? s[i + 1] : ' ';
        const bool is_quoted = before == behind && strchr("\"'`", before);
        const bool is_alone = strchr(" \n", before) && strchr(" \n", behind) && i && s[i + 1];
        const unsigned char c = (unsigned char)s[i];
        if (c < 128 && names[c] && (is_quoted || (is_alone && !strchr("-&", c))))
            base_buf_printf(out, " %s", names[c]);
    }
}

uint32_t code_index_describe(
    const code_index *x, const char *description, const char *request, uint32_t k, code_described **ret)
{
    code_traits traits;
    describing g = {.x = x};
    code_request *r = base_xcalloc(1, sizeof *r);
    bool is_of_test;
    const char *what = spoken_kind(description, &is_of_test);
    base_buf whole = {0};
    base_buf_puts(&whole, description);
    put_signs(description, &whole);
    r->x = x;
    pthread_mutex_lock(&((code_index *)x)->lock);
    code_request_read(r, whole.data, false);
    g.of_form = base_xcalloc(x->words.n + 1, sizeof *g.of_form);
    code_traits_read(x, request, &traits);
    find_candidates(&g);
    for (uint32_t i = 0; i < r->n; i++) score_concept(&g, &r->concepts[i]);
    for (uint32_t i = 0; i < g.n; i++) {
        candidate *c = &g.all[i];
        c->score *= 1 + explained * share_of_name(&g, r, c);
        if (what && !has_part(what, definition_of(&g, c)->what)) c->score *= other_kind;
        c->score *= pow(lacking, code_traits_lacks(&traits, c->file, definition_of(&g, c)));
        if (!is_of_test && code_path_is_test(x->paths.strings[c->file])) c->score *= in_test;
    }
    if (g.n) qsort(g.all, g.n, sizeof *g.all, by_score);
    *ret = base_xcalloc((size_t)k + 1, sizeof **ret);
    const uint32_t n = take_best(&g, k, *ret);
    code_traits_free(&traits);
    pthread_mutex_unlock(&((code_index *)x)->lock);
    free(g.all);
    free(g.words);
    free(g.of_form);
    free(r);
    base_buf_free(&whole);
    return n;
}

void code_described_free(code_described *all, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(all[i].path);
        free(all[i].name);
    }
    free(all);
}
