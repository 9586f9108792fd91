/* Words of a request as concepts (contract: request.h). */
#include "code/request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "code/words.h"

enum { MAX_GLUED = 40 }; /* forms, when glued ones were added: the rest is for words that are alike */

void code_index_terms(
    const char *s, size_t n, void (*add)(void *user, const char *word, size_t n_word), void *user)
{
    while (n > 0 && (*s == '_' || *s == '$')) {
        s++;
        n--;
    }
    base_buf parts = {0};
    code_split_identifier(s, n, &parts);
    uint32_t n_parts = 0;
    char word[CODE_WORD_BYTES];
    for (const char *p = parts.data; p != NULL && *p != '\0';) {
        const size_t len = strcspn(p, " ");
        n_parts++;
        if ((len >= 2 || len == parts.len) && !(p[0] >= '0' && p[0] <= '9')) {
            const size_t stem = code_stem(p, len, word);
            if (stem != 0) add(user, word, stem);
        }
        p += len;
        while (*p == ' ') p++;
    }
    base_buf_free(&parts);
    if (n_parts < 2 || n >= CODE_WORD_BYTES) return;
    for (size_t i = 0; i < n; i++) word[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
    add(user, word, n);
}

static void add_form(code_request *r, code_concept *c, const char *stem, size_t n, double weight)
{
    const uint32_t id = code_strings_find(&r->x->words, stem, n);
    if (id == UINT32_MAX || c->n_forms == CODE_MAX_FORMS) return;
    for (uint32_t i = 0; i < c->n_forms; i++)
        if (c->forms[i].word == id) return;
    c->forms[c->n_forms++] = (code_form){id, weight};
}

/* What a longer word is cut to in names: "delimiter" to delim, "separate" to sep. */
static void add_truncated(code_request *r, code_concept *c)
{
    const size_t n = strlen(c->stem);
    if (n < 6) return;
    for (size_t len = n - 1; len >= 4 && len * 2 >= n; len--) {
        const uint32_t id = code_strings_find(&r->x->words, c->stem, len);
        if (id != UINT32_MAX && (len >= 5 || r->x->terms[id].in_names)) add_form(r, c, c->stem, len, .5);
    }
}

/* Names that end or begin with the word, the rest of which is a word too: sds + free. */
static void add_glued(code_request *r, code_concept *c)
{
    const size_t n = strlen(c->stem);
    if (n < 3) return;
    for (uint32_t id = 0; id < r->x->words.n && c->n_forms < MAX_GLUED; id++) {
        if (!r->x->terms[id].in_names) continue;
        const char *word = r->x->words.strings[id];
        const size_t len = strlen(word);
        if (len < n + 3) continue;
        const bool tail = memcmp(word + len - n, c->stem, n) == 0;
        if (!tail && memcmp(word, c->stem, n) != 0) continue;
        char rest[CODE_WORD_BYTES];
        const size_t stem = code_stem(tail ? word : word + n, len - n, rest);
        if (stem < 2 || code_strings_find(&r->x->words, rest, stem) == UINT32_MAX) continue;
        add_form(r, c, word, len, .6);
    }
}

static void add_concept(void *user, const char *stem, size_t n)
{
    code_request *r = user;
    for (uint32_t i = 0; i < r->n; i++)
        if (strlen(r->concepts[i].stem) == n && memcmp(r->concepts[i].stem, stem, n) == 0) return;
    if (r->n == CODE_MAX_CONCEPTS) return;
    code_concept *c = &r->concepts[r->n++];
    *c = (code_concept){.weight = r->weight};
    memcpy(c->stem, stem, n);
    c->stem[n] = '\0';
    memcpy(c->word, c->stem, n + 1);
    add_form(r, c, c->stem, n, 1);
    double weight;
    const char *related;
    for (size_t i = 0; (related = code_related_word(c->stem, i, &weight)) != NULL; i++)
        add_form(r, c, related, strlen(related), weight);
    add_truncated(r, c);
    add_glued(r, c);
}

/* Two words that names write as one: "date times" is datetime, where the tree has that word in a name. */
static void add_joined(code_request *r, const char *before, const char *word)
{
    char joined[2 * CODE_WORD_BYTES], stem[CODE_WORD_BYTES];
    const int n = snprintf(joined, sizeof joined, "%s%s", before, word);
    const size_t m = n < CODE_WORD_BYTES ? code_stem(joined, (size_t)n, stem) : 0;
    const uint32_t id = m ? code_strings_find(&r->x->words, stem, m) : UINT32_MAX;
    if (id != UINT32_MAX && r->x->terms[id].in_names) add_concept(r, stem, m);
}

/* Is it written as a name: an inner capital, an underscore, a digit behind letters? */
static bool is_written_as_name(const char *s, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (s[i] == '_' || (s[i] >= 'A' && s[i] <= 'Z' && s[i - 1] >= 'a' && s[i - 1] <= 'z')) return true;
    return false;
}

/* A term of a file's name: what a test is called after the thing it tests is about that thing. */
static void add_file_word(void *user, const char *word, size_t n)
{
    static const char *const none[] = {"test", "spec", "tests", "index", "main", "init"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strlen(none[i]) == n && memcmp(none[i], word, n) == 0) return;
    if (memchr(word, '_', n) == NULL) add_concept(user, word, n);
}

/*
 * Is the word around query[at] a path? Then its file's name counts, its folders and ending do not. Returns
 * its end, 0: no path.
 */
static size_t read_path(code_request *r, const char *query, size_t n, size_t at)
{
    size_t end = at, name = at;
    while (end < n && strchr(" \t\n\r,;:()\"'`<>", query[end]) == NULL) end++;
    size_t stop = end;
    while (stop > at && strchr(".!?", query[stop - 1]) != NULL) stop--;
    char path[256];
    if (stop - at >= sizeof path || memchr(query + at, '.', stop - at) == NULL) return 0;
    memcpy(path, query + at, stop - at);
    path[stop - at] = '\0';
    if (code_language(path, NULL, 0) == NULL) return 0;
    for (size_t i = at; i < stop; i++)
        if (query[i] == '/') name = i + 1;
    size_t dot = stop;
    while (dot > name && query[dot - 1] != '.') dot--;
    if (dot <= name + 1) return stop;
    size_t n_name = dot - 1 - name;
    r->weight = 1;
    code_index_terms(query + name, n_name, add_file_word, r);
    if (n_name > 5 && memcmp(query + name, "test_", 5) == 0) { /* test_a_b.py is about a_b */
        name += 5;
        n_name -= 5;
    }
    char lower[CODE_WORD_BYTES];
    if (n_name >= sizeof lower || !is_written_as_name(query + name, n_name)) return stop;
    for (size_t i = 0; i < n_name; i++) {
        const char c = query[name + i];
        lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    r->weight = 2;
    add_concept(r, lower, n_name);
    return stop;
}

void code_request_read(code_request *r, const char *query, bool keep_all)
{
    const size_t n = strlen(query);
    size_t pos = 0, from, to, last_to = 0;
    char last[CODE_WORD_BYTES] = "";
    while (r->n < CODE_MAX_CONCEPTS && code_next_identifier(query, n, &pos, &from, &to)) {
        const size_t path_end = read_path(r, query, n, from);
        if (path_end != 0) {
            pos = path_end;
            continue;
        }
        char lower[CODE_WORD_BYTES], stem[CODE_WORD_BYTES];
        const size_t len = to - from;
        if (len >= sizeof lower) continue;
        for (size_t i = 0; i < len; i++) {
            const char c = query[from + i];
            lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
        lower[len] = '\0';
        const char *kind = code_kind_asked(lower, len);
        if (kind != NULL && r->n_kinds < CODE_KINDS_ASKED) r->kinds[r->n_kinds++] = kind;
        if (!keep_all && (kind != NULL || code_is_stop_word(lower, len) || len == 1)) continue;
        r->weight = 1;
        const bool is_next = last_to && from == last_to + 1 && strchr(" -", query[last_to]);
        if (is_next) add_joined(r, last, lower);
        memcpy(last, lower, len + 1);
        last_to = to;
        if (is_written_as_name(query + from, len)) {
            r->weight = .7;
            code_index_terms(query + from, len, add_concept, r);
            for (uint32_t i = 0; i < r->n; i++) /* the whole name, as written */
                if (strcmp(r->concepts[i].stem, lower) == 0) r->concepts[i].weight = 3;
            continue;
        }
        r->weight = 1;
        const size_t m = code_stem(lower, len, stem);
        if (m == 0) continue;
        const uint32_t before = r->n;
        add_concept(r, stem, m);
        if (r->n > before) memcpy(r->concepts[before].word, lower, len + 1);
    }
}

/*
 * Two words whose vectors have this cosine stand for one another sometimes, from the second on nearly always. The numbers and
 * the weight were chosen on three of the sets of tests/questions (docs/diary.md, "Words that the model takes for alike").
 */
static const float least_alike = .3F, most_alike = .55F;
static const double alike_weight = .35, least_share = .3;

static bool is_in_tree(void *asker, const char *word)
{
    const code_request *r = asker;
    char stem[CODE_WORD_BYTES];
    const size_t n = code_stem(word, strlen(word), stem);
    return n && code_strings_find(&r->x->words, stem, n) != UINT32_MAX;
}

static void add_alike(void *asker, uint32_t asked, const char *word, float alike)
{
    code_request *r = asker;
    char stem[CODE_WORD_BYTES];
    const size_t n = code_stem(word, strlen(word), stem);
    const double share = fmin(1, (alike - least_alike) / (most_alike - least_alike));
    add_form(r, &r->concepts[asked], stem, n, alike_weight * (least_share + (1 - least_share) * share));
}

void code_request_add_alike(code_request *r)
{
    const char *words[CODE_MAX_CONCEPTS];
    if (!r->x->alike) return;
    for (uint32_t i = 0; i < r->n; i++) words[i] = r->concepts[i].word;
    r->x->alike->find(r->x->alike->user, &(base_alike_query){.words = words,
                                             .n = r->n,
                                             .least = least_alike,
                                             .is_wanted = is_in_tree,
                                             .add = add_alike,
                                             .asker = r});
}
