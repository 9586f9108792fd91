/* The clauses of a request: what is asked of the code, and what of documents and tests (contract: request_words.h). */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/words/request_words.h"
#include "base/buf.h"
#include "base/mem.h"
#include "code/code.h"

static const char *const things[] = {"readme", "documentation", "docs", "changelog", "docstring",
    "docstrings", "comment", "comments", "licence", "license", "workflow", "makefile", "example", "examples",
    "benchmark", NULL};

/* It speaks of a text that is no code; "for example" is none. */
bool agent__speaks_of_document(const char *text)
{
    static const char *const lead[] = {"for", NULL};
    agent_word before;
    for (agent_word w = {0}; agent__next_word(text, w.to, &w);)
        if (agent__is_any_word(text, w, things) &&
            !(agent__word_before(text, w.from, &before) && agent__is_any_word(text, before, lead)))
            return true;
    return false;
}

/* Where the clause that begins at byte `at` ends: a sentence's end, or an "and" that begins another one. */
static size_t end_of_clause(const char *s, size_t at)
{
    for (size_t i = at; s[i]; i++) {
        const bool is_end =
            (strchr(".;!?", s[i]) && (!s[i + 1] || isspace((unsigned char)s[i + 1]))) || s[i] == '\n';
        if (is_end) return i + 1;
        if (i > at && (!strncasecmp(s + i, " and ", 5) || !strncasecmp(s + i, ", with ", 7))) return i + 1;
    }
    return strlen(s);
}

/*
 * "f should skip blanks. Say so in the README and add an example.": what is asked of the code, without the clauses about documents.
 * Heap; all of it where little else is said.
 */
char *agent__about_code(const char *request)
{
    enum { LEAST_WORDS = 5 };
    base_buf out = {0};
    agent_word w = {0};
    uint32_t n = 0;
    for (size_t at = 0, end; request[at]; at = end) {
        end = end_of_clause(request, at);
        char *clause = base_xstrndup(request + at, end - at);
        if (!agent__speaks_of_document(clause)) base_buf_puts(&out, clause);
        free(clause);
    }
    while (out.len && n < LEAST_WORDS && agent__next_word(out.data, w.to, &w)) n++;
    if (n < LEAST_WORDS) {
        base_buf_clear(&out);
        base_buf_puts(&out, request);
    }
    return base_buf_take(&out);
}

/* "Write new.txt": a file that is no code. */
static bool names_other_file(const char *text)
{
    bool is_other = false;
    for (agent_word w = {0}; !is_other && agent__next_mention(text, w.to, &w);) {
        char *word = agent__copy_word(text, w);
        const char *language = code_language(word, "", 0);
        is_other = strchr(word, '.') && (!language || code_language_is_document(language));
        free(word);
    }
    return is_other;
}

bool agent__orders_code_first(const char *request)
{
    static const char *const tests[] = {"test", "tests", "tested", "testing", "cover", "coverage", NULL};
    char *first = base_xstrndup(request, end_of_clause(request, 0));
    const bool is_so = agent_asks_for_change(first) && !agent__speaks_of_document(first) &&
                       !names_other_file(first) && !agent__has_any_word(first, tests);
    free(first);
    return is_so;
}
