/* Functions ranked for a request (contract: rank.h). */
#include "code/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "code/request.h"

enum { N_HITS = 64 };

/* Chosen on the commits of thirty repositories (scripts/bench-places). */
static const double saturation = 1.2, by_length = .15; /* as BM25's k1 and b */
static const double in_name = 4, in_head = .7, in_type = 1,
                    in_file = 1;  /* how much a word counts there; 1: in the body */
static const double rare = 4;     /* smooths idf */
static const double explain = .3; /* for a name that the request explains */
static const double by_search =
    .3; /* part of the score that is the search's, which knows what tests and documents name */
static const double long_ones = .2; /* what is long is changed more often */
/*
 * A conditional logit over a function's score, as a share of the first's, and what earlier changes of its file were told to be about;
 * fitted on the commits of 17 repositories (docs/diary.md, "Which function a request in plain words means").
 */
static const double by_share = 4.9, by_log_share = .4, by_best = 2.7, by_sum = .7;
static const double quotes = 2; /* for the only function that has a string which the request quotes */

typedef struct candidate {
    uint32_t file, definition;
    uint32_t length; /* identifiers */
    double score, hit, tf;
    double told; /* with what earlier changes say */
    uint32_t first_word,
        n_words; /* of ranking.words: a method of a type that is one chunk has no postings of its own */
    bool has_quoted;
} candidate;

/* A term of such a method, and how much it counts there. */
typedef struct read_word {
    uint32_t id;
    double weight;
} read_word;

typedef struct ranking {
    const code_index *x;
    const code_request *r;
    candidate *all;
    uint32_t n;
    size_t cap;
    read_word *words;
    uint32_t n_words;
    size_t cap_words;
    double *of_form; /* [words of the index] the weight that a word has as a form of the concept at hand */
    uint32_t *owner; /* [chunks] the candidate that a chunk is of; UINT32_MAX */
    double mean;
} ranking;

static const code_definition *definition_of(const ranking *g, const candidate *c)
{
    return &g->x->files[c->file].file->definitions[c->definition];
}

/* A test by its name is none of what is to behave otherwise, wherever it stands. */
static bool is_function(const code_definition *d)
{
    return !d->is_declaration && strncmp(d->name, "test_", 5) != 0 &&
           (!strcmp(d->what, "function") || !strcmp(d->what, "method"));
}

static candidate *add_candidate(ranking *g, uint32_t file, uint32_t definition)
{
    base_grow(&g->all, &g->cap, (size_t)g->n + 1, sizeof *g->all);
    g->all[g->n] = (candidate){.file = file, .definition = definition};
    return &g->all[g->n++];
}

/* The terms of the identifiers in [from, to) of the text; returns how many identifiers these are. */
static uint32_t read_words(ranking *g, const char *text, size_t from, size_t to, double weight)
{
    const code_index *x = g->x;
    uint32_t n = 0;
    for (size_t pos = from, a, b; code_next_identifier(text, to, &pos, &a, &b); n++) {
        const uint32_t id = code_strings_find(&x->identifiers, text + a, b - a);
        for (uint32_t i = 0; id != UINT32_MAX && i < x->names[id].n_terms; i++) {
            base_grow(&g->words, &g->cap_words, (size_t)g->n_words + 1, sizeof *g->words);
            g->words[g->n_words++] = (read_word){x->name_terms[x->names[id].first_term + i], weight};
        }
    }
    return n;
}

/* The methods of a small type, which is one chunk as a whole: their words are read from its text. */
static void find_members(ranking *g, const indexed_chunk *c)
{
    const indexed_file *f = &g->x->files[c->file];
    size_t behind = c->chunk.from;
    for (uint32_t i = 0; f->text && i < f->file->n_definitions; i++) {
        const code_definition *d = &f->file->definitions[i];
        if (d->from < c->chunk.from || d->to > c->chunk.to || !is_function(d) || !*d->parent) continue;
        candidate *k = add_candidate(g, c->file, i);
        const size_t head_to = d->body_to ? d->body_from : d->to, from = behind < d->from ? behind : d->from;
        const char *name = f->text + d->name_from;
        k->first_word = g->n_words;
        read_words(g, name, 0, strlen(d->name), in_name);
        k->length =
            read_words(g, f->text, from, head_to, in_head) + read_words(g, f->text, head_to, d->to, 1);
        k->n_words = g->n_words - k->first_word;
        behind = d->to;
    }
}

/* Functions in the order of their chunks; those of one definition stand together. */
static void find_candidates(ranking *g)
{
    const code_index *x = g->x;
    uint64_t total = 0;
    g->owner = base_xmalloc((x->n_chunks + 1) * sizeof *g->owner);
    g->of_form = base_xcalloc(x->words.n + 1, sizeof *g->of_form);
    for (uint32_t i = 0; i < x->n_chunks; i++) {
        const indexed_chunk *c = &x->chunks[i];
        g->owner[i] = UINT32_MAX;
        if (c->dead || c->chunk.definition == UINT32_MAX ||
            (c->chunk.flags & (CHUNK_TEST | CHUNK_DECLARATIONS)))
            continue;
        if (!is_function(&x->files[c->file].file->definitions[c->chunk.definition])) {
            find_members(g, c);
            continue;
        }
        candidate *last = g->n ? &g->all[g->n - 1] : NULL;
        if (!last || last->file != c->file || last->definition != c->chunk.definition)
            last = add_candidate(g, c->file, c->chunk.definition);
        g->owner[i] = (uint32_t)(last - g->all);
        last->length += c->length;
    }
    for (uint32_t i = 0; i < g->n; i++) total += g->all[i].length;
    g->mean = g->n && total ? (double)total / g->n : 1;
}

/* What a name (a type's, a file's) has of a concept: the best form's weight. */
typedef struct name_match {
    const code_index *x;
    const code_concept *c;
    double best;
} name_match;

static void match_word(void *user, const char *word, size_t n)
{
    name_match *m = user;
    const uint32_t id = code_strings_find(&m->x->words, word, n);
    for (uint32_t f = 0; id != UINT32_MAX && f < m->c->n_forms; f++)
        if (m->c->forms[f].word == id && m->c->forms[f].weight > m->best) m->best = m->c->forms[f].weight;
}

static double has_word(const ranking *g, const code_concept *c, const char *name, size_t n)
{
    name_match m = {g->x, c, 0};
    if (n) code_index_terms(name, n, match_word, &m);
    return m.best;
}

/* What a concept counts in methods whose words were read. */
static void add_read(ranking *g, const code_concept *c)
{
    for (uint32_t f = 0; f < c->n_forms; f++) g->of_form[c->forms[f].word] = c->forms[f].weight;
    for (uint32_t i = 0; i < g->n; i++) {
        candidate *k = &g->all[i];
        const double norm = 1 - by_length + by_length * k->length / g->mean;
        for (uint32_t w = k->first_word; w < k->first_word + k->n_words; w++) {
            const read_word *r = &g->words[w];
            k->tf += g->of_form[r->id] * r->weight / (r->weight == 1 ? norm : 1);
        }
    }
    for (uint32_t f = 0; f < c->n_forms; f++) g->of_form[c->forms[f].word] = 0;
}

static void score_concept(ranking *g, const code_concept *c)
{
    const code_index *x = g->x;
    add_read(g, c);
    for (uint32_t f = 0; f < c->n_forms; f++) {
        const term *t = &x->terms[c->forms[f].word];
        for (uint32_t i = 0; i < t->n; i++) {
            const posting *p = &t->postings[i];
            if (g->owner[p->chunk] == UINT32_MAX) continue;
            candidate *k = &g->all[g->owner[p->chunk]];
            const double norm = 1 - by_length + by_length * k->length / g->mean;
            k->tf += c->forms[f].weight * (in_name * p->name + in_head * p->head + p->body / norm);
        }
    }
    uint32_t df = 0, file = UINT32_MAX;
    double of_file = 0, of_type = 0;
    const char *parent = NULL;
    for (uint32_t i = 0; i < g->n; i++) {
        candidate *k = &g->all[i];
        df += k->tf > 0;
        if (k->file != file) {
            const char *name = base_path_name(x->paths.strings[k->file]);
            file = k->file;
            of_file = has_word(g, c, name, strcspn(name, "."));
            parent = NULL;
        }
        const char *own = definition_of(g, k)->parent;
        if (!parent || strcmp(parent, own) != 0) {
            parent = own;
            of_type = has_word(g, c, own, strlen(own));
        }
        k->tf += in_type * of_type + in_file * of_file;
    }
    const double idf = c->weight * log(1 + fmax(0, g->n - (double)df + .5) / (df + rare));
    for (uint32_t i = 0; i < g->n; i++) {
        candidate *k = &g->all[i];
        k->score += idf * k->tf / (k->tf + saturation);
        k->tf = 0;
    }
}

static double explained(const ranking *g, const char *name)
{
    base_buf parts = {0};
    uint32_t n = 0;
    double has = 0;
    code_split_identifier(name, strlen(name), &parts);
    for (const char *p = parts.data; p && *p;) {
        const size_t len = strcspn(p, " ");
        double best = 0;
        for (uint32_t i = 0; i < g->r->n; i++) best = fmax(best, has_word(g, &g->r->concepts[i], p, len));
        has += best;
        n++;
        p += len + strspn(p + len, " ");
    }
    base_buf_free(&parts);
    return n ? has / n : 0;
}

static int by_score(const void *p, const void *q)
{
    const candidate *a = p, *b = q;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->file != b->file ? (a->file > b->file ? 1 : -1)
                              : (a->definition > b->definition) - (a->definition < b->definition);
}

static void add_hits(ranking *g, const char *request)
{
    code_hits hits = {0};
    code_index_search(g->x, request, N_HITS, &hits);
    for (uint32_t i = 0; i < hits.n; i++) {
        const code_hit *h = &hits.hits[i];
        for (uint32_t k = 0; k < g->n; k++) {
            const code_definition *d = definition_of(g, &g->all[k]);
            if (strcmp(g->x->paths.strings[g->all[k].file], h->path) || h->from >= d->to || d->from >= h->to)
                continue;
            const double s = h->score / hits.hits[0].score;
            if (g->all[k].hit < s) g->all[k].hit = s;
        }
    }
    code_hits_free(&hits);
}

/* --- what the request quotes ----------------------------------------------------------------------------- */

/* The next text between two marks that are no apostrophes, of one line; false: there is none. */
static bool next_quoted(const char *request, size_t *at, size_t *ret_from, size_t *ret_to)
{
    enum { LEAST = 6 };
    for (const char *p = request + *at; *p; p++) {
        const bool opens = strchr("\"'`", *p) && (p == request || !code_is_name_byte(p[-1]));
        const char *end = opens ? strchr(p + 1, *p) : NULL;
        if (!end || code_is_name_byte(end[1]) || memchr(p, '\n', (size_t)(end - p))) continue;
        *ret_from = (size_t)(p + 1 - request);
        *ret_to = *at = (size_t)(end - request);
        ++*at;
        if (*ret_to - *ret_from >= LEAST) return true;
        p = end;
    }
    return false;
}

/* Does the function's code, without its comments, have a string with that text? */
static bool has_string(const ranking *g, const candidate *c, const char *quoted, size_t n)
{
    const indexed_file *f = &g->x->files[c->file];
    const code_definition *d = definition_of(g, c);
    const size_t length = d->to - d->from;
    if (!f->text || !memmem(f->text + d->from, length, quoted, n)) return false;
    char *code = code_blank_comments(f->file->language, f->text + d->from, length);
    bool found = false;
    for (const char *p = code; !found && (p = memmem(p, length - (size_t)(p - code), quoted, n)); p++) {
        const char *line = p, *end = p + n;
        while (line > code && line[-1] != '\n') line--;
        while (end < code + length && *end != '\n') end++;
        found = (memchr(line, '"', (size_t)(p - line)) && memchr(p + n, '"', (size_t)(end - p) - n)) ||
                (memchr(line, '\'', (size_t)(p - line)) && memchr(p + n, '\'', (size_t)(end - p) - n)) ||
                (memchr(line, '`', (size_t)(p - line)) && memchr(p + n, '`', (size_t)(end - p) - n));
    }
    free(code);
    return found;
}

/* "The error only says "value too large"": a message leads to the function that writes it, and to few others. */
static void add_quoted(ranking *g, const char *request)
{
    size_t at = 0, from, to;
    while (next_quoted(request, &at, &from, &to)) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < g->n; i++) {
            candidate *c = &g->all[i];
            c->has_quoted = has_string(g, c, request + from, to - from);
            n += c->has_quoted;
        }
        for (uint32_t i = 0; i < g->n; i++)
            if (g->all[i].has_quoted) g->all[i].score += quotes / n;
    }
}

/* --- what earlier changes were about --------------------------------------------------------------------- */

/* Scores stay shares of the first's: where nothing was told, the same ones but for a few hundredths. */
static void add_history(ranking *g, const code_history *history, const char *request)
{
    enum { LEAST_PARTS = 1000 };
    code_told *told = history ? code_history_recall(history, request) : NULL;
    double first = 0, most = -INFINITY;
    for (uint32_t i = 0; i < g->n; i++) first = fmax(first, g->all[i].score);
    for (uint32_t i = 0; told && i < g->n; i++) {
        candidate *c = &g->all[i];
        if (c->score <= 0) continue;
        const double share = c->score / first;
        const uint32_t path = code_history_path(history, g->x->paths.strings[c->file]);
        const code_told t = path == UINT32_MAX ? (code_told){0} : told[path];
        c->told = by_share * share + by_log_share * log(share) + by_best * t.best + by_sum * log(1 + t.sum);
        most = fmax(most, c->told);
    }
    for (uint32_t i = 0; told && i < g->n; i++)
        if (g->all[i].score > 0)
            g->all[i].score = first * fmax(1. / LEAST_PARTS, 1 + (g->all[i].told - most) / by_share);
    free(told);
}

uint32_t code_index_rank(
    const code_index *x, const code_history *history, const char *request, uint32_t k, code_ranked **ret)
{
    ranking g = {.x = x};
    code_request *r = base_xcalloc(1, sizeof *r);
    double best = 0;
    g.r = r;
    r->x = x;
    pthread_mutex_lock(&((code_index *)x)->lock);
    code_request_read(r, request, false);
    if (r->n == 0) code_request_read(r, request, true);
    find_candidates(&g);
    pthread_mutex_unlock(&((code_index *)x)->lock);
    add_hits(&g, request);
    pthread_mutex_lock(&((code_index *)x)->lock);
    for (uint32_t i = 0; i < r->n; i++) score_concept(&g, &r->concepts[i]);
    for (uint32_t i = 0; i < g.n; i++) {
        g.all[i].score *= 1 + explain * explained(&g, definition_of(&g, &g.all[i])->name);
        best = fmax(best, g.all[i].score);
    }
    for (uint32_t i = 0; i < g.n && best > 0; i++) {
        candidate *c = &g.all[i];
        c->score = (1 - by_search) * c->score / best + by_search * c->hit;
        c->score *= 1 + long_ones * log(1 + c->length);
    }
    add_quoted(&g, request);
    add_history(&g, history, request);
    if (g.n) qsort(g.all, g.n, sizeof *g.all, by_score);
    uint32_t n = 0;
    while (n < g.n && n < k && g.all[n].score > 0) n++;
    *ret = base_xcalloc(n + 1, sizeof **ret);
    for (uint32_t i = 0; i < n; i++) {
        const code_definition *d = definition_of(&g, &g.all[i]);
        base_buf name = {0};
        base_buf_printf(&name, "%s%s%s", d->parent, *d->parent ? "." : "", d->name);
        (*ret)[i] = (code_ranked){.path = base_xstrdup(x->paths.strings[g.all[i].file]),
            .name = base_buf_take(&name),
            .line = d->line,
            .line_end = d->line_end,
            .from = d->from,
            .to = d->to,
            .score = g.all[i].score};
    }
    pthread_mutex_unlock(&((code_index *)x)->lock);
    free(g.all);
    free(g.words);
    free(g.of_form);
    free(g.owner);
    free(r);
    return n;
}

void code_ranked_free(code_ranked *ranked, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(ranked[i].path);
        free(ranked[i].name);
    }
    free(ranked);
}
