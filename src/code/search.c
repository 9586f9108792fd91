/*
 * A request in plain words -> the chunks that fit: BM25 (Robertson and Zaragoza, The Probabilistic Relevance
 * Framework, 2009) with fields, where each word of the request is a concept: the word's stem, its
 * abbreviations and near synonyms, names that it is glued into (sdsfree for "free"), and where a model is at hand the words
 * that it takes for alike (index.h), each with a weight.
 * What a definition is called counts more than what is said above it, and that more than what stands in it.
 *
 * Constants were chosen by trying some forty settings on both sets of tests/questions, so what those sets
 * measure is how well they fit them, not what new questions get. The differences between neighbouring
 * settings are one or two questions.
 */
#include "code/index_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "code/request.h"
#include "code/words.h"

enum { SHORT_LIST = 64, SOURCES = 20, MAX_NAMED = 64 };

static const double k1 = 1.2, b = .6; /* BM25: saturation, and how much length counts */
static const double name_weight = 4,
                    head_weight = 1.5; /* of a word in the name, in signature or comment; 1: in the body */
static const double rare = 8;          /* smooths idf: plain words are rare in code, and say little by that */
static const double cover_part = .4;   /* how much depends on the share of the request that is there */
static const double explain = .3;      /* for a name that the request explains */
static const double by_doc = .15, by_test = .2,
                    by_code = .3; /* parts of a score handed on to what a chunk names */

/* ---- scoring ---- */

typedef struct scored {
    uint32_t chunk;
    double score;
} scored;

static double flag_factor(const code_request *r, const indexed_chunk *c)
{
    double f = 1;
    if (c->chunk.flags & CHUNK_TEST) f *= .5;
    if (c->chunk.flags & CHUNK_DECLARATIONS) f *= .5;
    if (c->chunk.flags & CHUNK_DOCUMENT) f *= r->n_kinds != 0 ? .5 : .7;
    if (c->chunk.flags & CHUNK_DATA) f *= .4;
    if (c->chunk.flags & CHUNK_HISTORY) f *= .4;
    if (c->chunk.flags & CHUNK_PASSAGE) f *= .8;
    if (c->chunk.flags & CHUNK_CONTINUED) f *= .8;
    return f;
}

/* A question for a function prefers functions, one for a field the types that have fields. */
static double kind_factor(const code_request *r, const char *what)
{
    static const char *const types[] = {
        "class", "struct", "union", "enum", "interface", "type", "typedef", "module"};
    bool is_type = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        is_type = is_type || strcmp(what, types[i]) == 0;
    const bool is_function = strcmp(what, "function") == 0 || strcmp(what, "method") == 0;
    for (uint32_t i = 0; i < r->n_kinds; i++) {
        if (strcmp(r->kinds[i], "function") == 0 && is_function) return 1.2;
        if (strcmp(r->kinds[i], "function") != 0 && is_type) return 1.3;
        if (strcmp(r->kinds[i], what) == 0) return 1.3;
    }
    return is_function || is_type ? 1 : .8;
}

typedef struct name_parts {
    const code_request *r;
    double matched;
    uint32_t n;
} name_parts;

static void match_part(void *user, const char *word, size_t n)
{
    name_parts *p = user;
    const uint32_t id = code_strings_find(&p->r->x->words, word, n);
    double best = 0;
    for (uint32_t i = 0; i < p->r->n; i++)
        for (uint32_t f = 0; f < p->r->concepts[i].n_forms; f++)
            if (p->r->concepts[i].forms[f].word == id && p->r->concepts[i].forms[f].weight > best)
                best = p->r->concepts[i].forms[f].weight;
    p->matched += best;
    p->n++;
}

/* How much of a definition's name the request explains: 0..1. */
static double name_explained(const code_request *r, const char *of)
{
    name_parts p = {.r = r};
    code_index_terms(of, strlen(of), match_part, &p);
    if (p.n > 1) p.n--; /* the whole name is among the terms */
    return p.n != 0 ? fmin(1, p.matched / p.n) : 0;
}

static int by_score(const void *p, const void *q)
{
    const scored *a = p, *c = q;
    if (a->score != c->score) return a->score > c->score ? -1 : 1;
    return a->chunk < c->chunk ? -1 : a->chunk > c->chunk;
}

/* Adds one concept to every chunk that has a form of it. tf and seen are zero between concepts. */
static void score_concept(
    const code_request *r, code_concept *c, double *scores, double *coverage, double *tf, uint32_t *touched)
{
    const code_index *x = r->x;
    const uint32_t n_live = x->n_chunks - x->n_dead;
    const double mean = n_live != 0 && x->total_length != 0 ? (double)x->total_length / n_live : 1;
    uint32_t n_touched = 0, n_exact = 0;
    for (uint32_t f = 0; f < c->n_forms; f++) {
        const term *t = &x->terms[c->forms[f].word];
        for (uint32_t i = 0; i < t->n; i++) {
            const posting *p = &t->postings[i];
            if (x->chunks[p->chunk].dead) continue;
            n_exact += f == 0;
            const double norm = 1 - b + b * x->chunks[p->chunk].length / mean;
            const double add =
                c->forms[f].weight * (name_weight * p->name + head_weight * p->head + p->body / norm);
            if (tf[p->chunk] == 0) touched[n_touched++] = p->chunk;
            tf[p->chunk] += add;
        }
    }
    const double df = n_exact != 0 && c->forms[0].weight == 1 ? n_exact : n_touched;
    c->idf = c->weight * log(1 + fmax(0, n_live - df + .5) / (df + rare));
    for (uint32_t i = 0; i < n_touched; i++) {
        const uint32_t chunk = touched[i];
        const double part = tf[chunk] / (tf[chunk] + k1);
        scores[chunk] += c->idf * part * (k1 + 1);
        coverage[chunk] += c->idf * fmin(1, 2 * part);
        tf[chunk] = 0;
    }
}

/* Keeps the best SHORT_LIST, best first. */
static void enlist(scored *list, uint32_t *n, uint32_t chunk, double score)
{
    if (*n == SHORT_LIST && score <= list[*n - 1].score) return;
    uint32_t at = *n < SHORT_LIST ? (*n)++ : SHORT_LIST - 1;
    for (; at > 0 && list[at - 1].score < score; at--) list[at] = list[at - 1];
    list[at] = (scored){chunk, score};
}

/* The chunk that holds a definition; UINT32_MAX: none. */
static uint32_t chunk_of(const code_index *x, uint32_t file, uint32_t from)
{
    const indexed_file *f = &x->files[file];
    uint32_t low = f->first_chunk, high = f->first_chunk + f->n_chunks;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (x->chunks[mid].chunk.to <= from)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->first_chunk + f->n_chunks && x->chunks[low].chunk.from <= from ? low : UINT32_MAX;
}

/*
 * The one function of real code that an identifier means: UINT32_MAX when there is none or there are several.
 */
static uint32_t meant_by(const code_index *x, const indexed_name *w)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < w->n_refs && w->n_refs <= 8; i++) {
        const uint32_t file = (uint32_t)(w->refs[i] >> 32);
        const code_definition *d = &x->files[file].file->definitions[(uint32_t)w->refs[i]];
        if (d->is_declaration || (strcmp(d->what, "function") != 0 && strcmp(d->what, "method") != 0))
            continue;
        const uint32_t chunk = chunk_of(x, file, d->from);
        if (chunk == UINT32_MAX || (x->chunks[chunk].chunk.flags & (CHUNK_TEST | CHUNK_DECLARATIONS)))
            continue;
        if (found != UINT32_MAX && found != chunk) return UINT32_MAX;
        found = chunk;
    }
    return found;
}

/*
 * What fits the request in words often names what is asked for: a manual names the function, a test calls it,
 * a caller is about the same thing. So each of the best chunks hands part of its score on to the definitions
 * that it names.
 */
static void hand_on(const code_index *x, const scored *source, double *bonus)
{
    const indexed_chunk *c = &x->chunks[source->chunk];
    const char *text = x->files[c->file].text;
    uint32_t named[MAX_NAMED], n = 0;
    size_t pos = c->chunk.from, from, to;
    while (n < MAX_NAMED && code_next_identifier(text, c->chunk.to, &pos, &from, &to)) {
        const uint32_t id = code_strings_find(&x->identifiers, text + from, to - from);
        if (id == UINT32_MAX || x->names[id].n_refs == 0) continue;
        const uint32_t chunk = meant_by(x, &x->names[id]);
        if (chunk == UINT32_MAX || chunk == source->chunk) continue;
        bool again = false;
        for (uint32_t i = 0; i < n && !again; i++) again = named[i] == chunk;
        if (!again) named[n++] = chunk;
    }
    const double share = c->chunk.flags & CHUNK_DOCUMENT ? by_doc
                         : c->chunk.flags & CHUNK_TEST   ? by_test
                                                         : by_code;
    for (uint32_t i = 0; i < n; i++) {
        const double add = share * source->score / sqrt(n);
        if (add > bonus[named[i]]) bonus[named[i]] = add; /* the best source counts, not their number */
    }
}

static uint32_t rank(
    const code_request *r, double *scores, const double *coverage, double *bonus, double total, scored *list)
{
    const code_index *x = r->x;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_chunks; i++) {
        if (scores[i] <= 0) continue;
        scores[i] *= 1 - cover_part + cover_part * coverage[i] / total;
        enlist(list, &n, i, scores[i]);
    }
    for (uint32_t i = 0; i < n && i < SOURCES; i++) hand_on(x, &list[i], bonus);
    n = 0;
    for (uint32_t i = 0; i < x->n_chunks; i++)
        if (scores[i] + bonus[i] > 0)
            enlist(list, &n, i, (scores[i] + bonus[i]) * flag_factor(r, &x->chunks[i]));
    for (uint32_t i = 0; i < n; i++) {
        const indexed_chunk *c = &x->chunks[list[i].chunk];
        if (c->chunk.definition == UINT32_MAX) continue;
        const code_definition *d = &x->files[c->file].file->definitions[c->chunk.definition];
        list[i].score *= kind_factor(r, d->what) * (1 + explain * name_explained(r, d->name));
    }
    qsort(list, n, sizeof *list, by_score);
    return n;
}

static bool holds(const code_index *x, const code_concept *c, uint32_t chunk)
{
    for (uint32_t f = 0; f < c->n_forms; f++) {
        const term *t = &x->terms[c->forms[f].word];
        uint32_t low = 0, high = t->n;
        while (low < high) {
            const uint32_t mid = low + (high - low) / 2;
            if (t->postings[mid].chunk < chunk)
                low = mid + 1;
            else
                high = mid;
        }
        if (low < t->n && t->postings[low].chunk == chunk) return true;
    }
    return false;
}

static code_hit make_hit(const code_request *r, const scored *s)
{
    const code_index *x = r->x;
    const indexed_chunk *c = &x->chunks[s->chunk];
    const indexed_file *f = &x->files[c->file];
    const code_definition *d =
        c->chunk.definition != UINT32_MAX ? &f->file->definitions[c->chunk.definition] : NULL;
    base_buf why = {0};
    for (uint32_t i = 0; i < r->n; i++)
        if (holds(x, &r->concepts[i], s->chunk))
            base_buf_printf(&why, "%s%s", why.len != 0 ? " " : "", r->concepts[i].word);
    base_buf full = {0};
    if (d != NULL) base_buf_printf(&full, "%s%s%s", d->parent, d->parent[0] != '\0' ? "." : "", d->name);
    return (code_hit){.path = base_xstrdup(x->paths.strings[c->file]),
        .from = c->chunk.from,
        .to = c->chunk.to,
        .line = c->chunk.line,
        .line_end = c->chunk.line_end,
        .name = base_buf_take(&full),
        .what = base_xstrdup(d != NULL                             ? d->what
                             : c->chunk.flags & CHUNK_DECLARATIONS ? "declarations"
                                                                   : "passage"),
        .score = s->score,
        .why = base_buf_take(&why),
        .definition_line = d != NULL && !(c->chunk.flags & CHUNK_CONTINUED) ? d->line : c->chunk.line,
        .definition_from = d != NULL && !(c->chunk.flags & CHUNK_CONTINUED) ? d->from : c->chunk.from,
        .text = base_xstrndup(f->text + c->chunk.from, c->chunk.to - c->chunk.from),
        .n = c->chunk.to - c->chunk.from};
}

void code_index_search(const code_index *x, const char *query, uint32_t k, code_hits *ret)
{
    *ret = (code_hits){0};
    pthread_mutex_lock(&((code_index *)x)->lock);
    code_request *r = base_xcalloc(1, sizeof *r);
    r->x = x;
    code_request_read(r, query, false);
    if (r->n == 0) code_request_read(r, query, true);
    code_request_add_alike(r);
    const size_t n = x->n_chunks;
    if (n != 0 && r->n != 0 && k != 0) {
        double *scores = base_xcalloc(n, sizeof *scores), *coverage = base_xcalloc(n, sizeof *coverage);
        double *tf = base_xcalloc(n, sizeof *tf), *bonus = base_xcalloc(n, sizeof *bonus), total = 0;
        uint32_t *touched = base_xmalloc(n * sizeof *touched);
        for (uint32_t i = 0; i < r->n; i++) {
            score_concept(r, &r->concepts[i], scores, coverage, tf, touched);
            total += r->concepts[i].idf;
        }
        scored list[SHORT_LIST];
        const uint32_t n_listed = total > 0 ? rank(r, scores, coverage, bonus, total, list) : 0;
        ret->hits = base_xcalloc(n_listed + 1, sizeof *ret->hits);
        for (uint32_t i = 0; i < n_listed && ret->n < k; i++) ret->hits[ret->n++] = make_hit(r, &list[i]);
        free(scores);
        free(coverage);
        free(tf);
        free(bonus);
        free(touched);
    }
    free(r);
    pthread_mutex_unlock(&((code_index *)x)->lock);
}

void code_hits_free(code_hits *h)
{
    for (uint32_t i = 0; i < h->n; i++) {
        free((char *)h->hits[i].path);
        free((char *)h->hits[i].name);
        free((char *)h->hits[i].what);
        free((char *)h->hits[i].why);
        free(h->hits[i].text);
    }
    free(h->hits);
    *h = (code_hits){0};
}

/* ---- fitting a budget ---- */

static uint32_t lines_in(const char *s, size_t n)
{
    uint32_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += s[i] == '\n';
    return lines;
}

/*
 * Drops from the front of the comment, then from the end, at line ends, until the hit has at most `most`
 * bytes.
 */
static void cut_hit(code_hit *h, size_t most)
{
    if (h->n <= most) return;
    size_t front = 0;
    const size_t comment = h->definition_from - h->from;
    if (comment > most / 3) { /* keep its last lines: what it says about this definition */
        front = comment - most / 3;
        while (front < comment && h->text[front - 1] != '\n') front++;
    }
    size_t end = front + most < h->n ? front + most : h->n;
    if (end < h->n) {
        size_t at = end;
        while (at > front && h->text[at - 1] != '\n') at--;
        if (at > front) end = at;
        while (end > front && h->text[end - 1] == '\n') end--;
    }
    h->line += lines_in(h->text, front);
    h->line_end = h->line + lines_in(h->text + front, end - front);
    h->to = h->from + (uint32_t)end;
    h->from += (uint32_t)front;
    memmove(h->text, h->text + front, end - front);
    h->n = end - front;
    h->text[h->n] = '\0';
}

void code_hits_fit(code_hits *h, size_t budget_bytes, uint32_t least)
{
    size_t left = budget_bytes;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        /*
         * What is left is shared evenly among the hits that should still fit; short ones leave more to the
         * next.
         */
        const uint32_t to_come = kept < least ? least - kept : 1;
        size_t share = left / to_come;
        if (kept == 0) share += share / 2; /* the best one may take more */
        if (share > left) share = left;
        if (share < 160) break;
        cut_hit(&h->hits[i], share);
        if (h->hits[i].n > left) break;
        left -= h->hits[i].n;
        kept++;
    }
    for (uint32_t i = kept; i < h->n; i++) {
        free((char *)h->hits[i].path);
        free((char *)h->hits[i].name);
        free((char *)h->hits[i].what);
        free((char *)h->hits[i].why);
        free(h->hits[i].text);
    }
    h->n = kept;
}
