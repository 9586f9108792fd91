/*
 * "Add to the cases that should be less that ...": the request names no symbol, but a test by words of its name and of its
 * file's. Retrieval goes by all of a test's text, where the words of a table's rows outweigh those.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/newtest/newtest.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { LEAST_PARTS = 2 /* of a name, that the request has to say */ };

static bool is_said(const char *request, const char *part, size_t m)
{
    agent_word w;
    for (size_t at = 0; agent__next_word(request, at, &w); at = w.to)
        if (agent__says_part(request + w.from, w.to - w.from, part, m)) return true;
    return false;
}

/* How many parts of the name ("test_should_get_less", "TestLessThan") the request says, small words left out. */
static unsigned count_said(const char *request, const char *name, size_t n)
{
    unsigned sum = 0;
    for (size_t at = 0, to; at < n; at = to) {
        while (at < n && !isalpha((unsigned char)name[at])) at++;
        for (to = at + 1; to < n && isalpha((unsigned char)name[to]) && !isupper((unsigned char)name[to]);)
            to++;
        if (at < n && agent__is_content_word(name + at, to - at)) sum += is_said(request, name + at, to - at);
    }
    return sum;
}

static bool has_rows(const base_buf *text, const code_definition *d)
{
    base_buf next = {0};
    const size_t to = d->to < text->len ? d->to : text->len;
    const size_t n = to > d->from ? agent__rows_end(text->data + d->from, to - d->from, &next) : 0;
    base_buf_free(&next);
    return n > 0;
}

/* The first function of the tree's code that the test calls. */
static char *called_by(const agent *a, const base_buf *text, const code_definition *d, char **ret_path)
{
    const size_t end = d->body_to < text->len ? d->body_to : text->len;
    char *name = NULL;
    size_t at = d->body_from, from, to;
    while (!name && code_next_identifier(text->data, end, &at, &from, &to)) {
        code_place *places = NULL;
        char *word = base_xstrndup(text->data + from, to - from);
        const uint32_t n = to < end && text->data[to] == '('
                               ? code_index_define(tool_workspace_index(a->workspace), word, &places)
                               : 0;
        for (uint32_t i = 0; i < n && !name; i++) {
            if (!agent__is_code_place(&places[i])) continue;
            *ret_path = base_xstrdup(places[i].path);
            name = word;
            word = NULL;
        }
        code_places_free(places, n);
        free(word);
    }
    return name;
}

/* The best test so far, and whether another fits as well. */
typedef struct best {
    char *subject, *path, *test, *subject_path;
    unsigned score;
    bool is_shared;
} best;

static void best_free(best *b)
{
    free(b->subject);
    free(b->path);
    free(b->test);
    free(b->subject_path);
    *b = (best){0};
}

static void look_through(const agent *a, const char *request, const char *path, best *b)
{
    const char *file = base_path_name(path);
    const unsigned by_file = count_said(request, file, strcspn(file, "."));
    base_buf text = {0};
    if (tool_workspace_read(a->workspace, path, NEWTEST_MAX_FILE, &text, NULL) || !text.data) return;
    code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len);
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        const unsigned by_name = count_said(request, d->name, strlen(d->name));
        const unsigned score = by_name + by_file;
        if (!by_name || score < LEAST_PARTS || score < b->score ||
            !agent__is_test_definition(d, path, &text) || !has_rows(&text, d))
            continue;
        if (score == b->score) {
            b->is_shared = true;
            continue;
        }
        best found = {.score = score, .path = base_xstrdup(path), .test = base_xstrdup(d->name)};
        found.subject = called_by(a, &text, d, &found.subject_path);
        best_free(b);
        *b = found;
    }
    code_file_free(f);
    base_buf_free(&text);
}

char *agent__find_told_rows(
    const agent *a, const char *request, char **ret_path, char **ret_test, char **ret_subject_path)
{
    static const char *const words[] = {"case", "cases", "row", "rows", "table", "entry", "entries", NULL};
    best b = {0};
    if (!agent__has_any_word(request, words)) return NULL;
    char **paths = code_index_paths(tool_workspace_index(a->workspace));
    for (size_t i = 0; paths && paths[i]; i++)
        if (code_path_is_test(paths[i])) look_through(a, request, paths[i], &b);
    code_index_paths_free(paths);
    if (b.subject && !b.is_shared) {
        *ret_path = b.path;
        *ret_test = b.test;
        *ret_subject_path = b.subject_path;
        return b.subject;
    }
    best_free(&b);
    return NULL;
}
