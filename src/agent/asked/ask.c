/*
 * What a request asks to be changed: read once, before anything is. Names that shall stand in the tree, go out of it or have
 * another text are wishes (wishes.c); what it wants of tests is in wanted_test.c.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "agent/words/values.h"
#include "base/mem.h"
#include "code/code.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

static bool is_code_like(const char *text, size_t from, size_t to)
{
    bool has_mark = text[to] == '(' || (from && text[from - 1] == '`');
    for (size_t i = from; i < to; i++) {
        has_mark |= text[i] == '_';
        has_mark |= i > from && text[i] >= 'A' && text[i] <= 'Z' && text[i - 1] >= 'a' && text[i - 1] <= 'z';
    }
    return has_mark && to - from > 2;
}

/* The word stands right behind "rename", "remove the function", ... */
static bool is_object_of(const char *text, size_t from, const char *const *stems, size_t n)
{
    static const char *const between[] = {"the ", "unused ", "function ", "method ", "class ", "helper ",
        "macro ", "type ", "struct ", "constant ", "variable ", "trait ", "alias ", "aliases ",
        "context manager "};
    size_t at = from;
    while (at >= 2 && !strncmp(text + at - 2, "::", 2)) /* the qualifiers in front of it */
        for (at -= 2; at && is_letter(text[at - 1]); at--) {
        }
    if (at && text[at - 1] == '`') at--;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
            size_t m = strlen(between[i]);
            if (at < m || strncasecmp(text + at - m, between[i], m)) continue;
            at -= m;
            moved = true;
        }
    }
    while (at && text[at - 1] == ' ') at--;
    size_t word = at;
    while (word && is_letter(text[word - 1])) word--;
    for (size_t i = 0; i < n && word < at; i++)
        if (!strncasecmp(text + word, stems[i], strlen(stems[i]))) return true;
    return false;
}

/* "Refuse it with a ValueError" names an error that the language has; "add a ParseError" one that is to come. */
static bool is_known_error(const char *request, size_t from, const char *name)
{
    static const char *const coming[] = {
        "add", "create", "define", "introduce", "new", "class", "write", NULL};
    static const char *const fillers[] = {
        "a", "an", "the", "exception", "error", "type", "called", "named", "own", "special", NULL};
    agent_word w;
    if (!base_ends_with(name, "Error") && !base_ends_with(name, "Exception")) return false;
    for (size_t at = from; agent__word_before(request, at, &w); at = w.from) {
        if (agent__is_any_word(request, w, coming)) return false;
        if (!agent__is_any_word(request, w, fillers)) break;
    }
    return true;
}

void agent__ask(agent *a, const char *request)
{
    static const char *const going[] = {"renam", "delet", "remov", "drop"};
    static const char *const changing[] = {"in", "chang", "updat", "adapt", "extend", "let"};
    code_index *index = tool_workspace_index(a->workspace);
    agent_asked *x = &a->asked;
    agent__asked_free(a);
    agent_operation_words words;
    const bool is_wording = agent__read_wording(a, request, &words);
    agent_addition_words addition;
    const bool is_addition = agent_read_addition_words(request, &addition); /* "Queue needs a method reset" */
    agent_parameter_words parameter;
    const bool is_parameter = agent_read_parameter_words(request, &parameter) && parameter.change;
    agent_parameter_words_free(&parameter);
    x->change =
        a->settings.mode != AGENT_MODE_PLAN &&
        (a->fix.wanted || is_wording || a->read_as == AGENT_READ_AS_CHANGE ||
            agent_asks_for_change(request) || ((is_addition || is_parameter) && !strchr(request, '?')) ||
            agent__wants_new_test(a, request) ||
            (!agent__asks_question(request) && agent__deletes_files(a, request)));
    if (x->change && is_wording && (!strcmp(words.operation, "rename") || !strcmp(words.operation, "delete")))
        agent__wish(x, base_xstrdup(words.name), AGENT_WISH_GOES, 0);
    if (x->change && is_wording && !strcmp(words.operation, "rename"))
        agent__wish(x, base_xstrdup(words.to), AGENT_WISH_STANDS, 0);
    agent_operation_words_free(&words);
    size_t pos = 0, from, to, n = strlen(request);
    char *first = NULL; /* what is to change, where a test is asked for behind it */
    while (x->change && code_next_identifier(request, n, &pos, &from, &to)) {
        bool is_path = (from && strchr("/.-", request[from - 1])) || request[to] == '/' ||
                       (request[to] == '.' && is_letter(request[to + 1]));
        const bool is_qualifier = !strncmp(request + to, "::", 2); /* "Guard::into": it is about into */
        /* "format_*", "*_ratio": what each.c reads */
        const bool is_pattern =
            request[to] == '*' || (from && request[from - 1] == '*' && request[from] == '_');
        if ((is_path && request[to] != '(') || is_qualifier || is_pattern) continue;
        const bool is_text = from && strchr("\"'", request[from - 1]) && request[to] == request[from - 1];
        if (is_text && !is_addition) continue; /* "it gives 'foo_bar'" */
        char *name = base_xstrndup(request + from, to - from);
        const char *literal = agent_value_literal(name); /* "NaN": nothing that is to come */
        char *file = code_index_path(index, name);       /* ChangeLog, GNUmakefile: it is there */
        const bool is_file = file && !code_index_is_defined(index, name);
        free(file);
        if ((literal && !*literal) || is_file) {
            free(name);
            continue;
        }
        if (code_index_is_defined(index, name)) {
            if (!first && is_code_like(request, from, to)) first = base_xstrdup(name);
            if (is_object_of(request, from, going, sizeof going / sizeof *going))
                agent__wish(x, agent__with_its_type(a, request, name), AGENT_WISH_GOES, 0);
            else if (is_object_of(request, from, changing, sizeof changing / sizeof *changing) &&
                     is_code_like(request, from, to))
                agent__wish(x, name, AGENT_WISH_CHANGES, agent__text_of(a, NULL, name));
            else
                free(name);
        } else if (is_code_like(request, from, to) && !code_index_mentions(index, name) &&
                   !is_known_error(request, from, name)) {
            agent__wish(x, name, AGENT_WISH_STANDS, 0);
        } else {
            free(name);
        }
    }
    agent__want_test(a, request, is_addition ? &addition : NULL, first);
    free(first);
    agent_addition_words_free(&addition);
}

void agent__forget_meant(agent *a)
{
    agent_asked *x = &a->asked;
    for (uint32_t i = 0; i < x->n_meant; i++) {
        free(x->meant[i].path);
        free(x->meant[i].name);
    }
    x->n_meant = 0;
}

void agent__forget_which(agent *a)
{
    for (uint32_t i = 0; i < a->which.n; i++) {
        free(a->which.names[i]);
        free(a->which.meanings[i]);
    }
    a->which.n = 0;
}

void agent__asked_free(agent *a)
{
    agent_asked *x = &a->asked;
    for (uint32_t i = 0; i < x->n_wishes; i++) {
        free(x->wishes[i].name);
        free(x->wishes[i].path);
        free(x->wishes[i].says);
    }
    for (size_t i = 0; i < x->n_changed; i++) free(x->changed[i]);
    free(x->changed);
    agent__refusal_free(&x->refusal);
    free(x->still_used_in);
    free(x->still_used);
    free(x->said);
    free(x->went);
    base_buf_free(&x->done);
    free(x->document);
    free(x->old_version);
    for (uint32_t i = 0; i < x->n_listed; i++) agent__listed_free(&x->listed[i]);
    agent__forget_meant(a);
    free(x->test_of);
    agent_new_test *t = &x->new_test;
    free(t->path);
    free(t->name);
    free(t->example);
    free(t->holder);
    free(t->subject);
    free(t->assertion);
    free(t->begins);
    free(t->rows);
    free(t->head);
    free(t->setup);
    free(t->own_name);
    free(t->fault);
    *x = (agent_asked){0};
}
