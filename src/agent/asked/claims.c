/*
 * "Renamed it in a.py and docs/index.rst. The tests pass now.": a small model says so whatever was done, and the person
 * reads it above the program's last line. What of it the tree and the runs do not bear out is said there.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

enum { MOST_FILES = 4 };

/* Up to the end of the sentence at `at`; a point in a name ends none. */
static size_t sentence_end(const char *s, size_t at)
{
    while (s[at] && s[at] != '\n' && !(strchr(".;!?", s[at]) && (!s[at + 1] || strchr(" \n", s[at + 1]))))
        at++;
    return at;
}

static bool is_claim(const char *sentence)
{
    static const char *const done[] = {"added", "renamed", "removed", "updated", "changed", "deleted",
        "moved", "fixed", "rewritten", "rewrote", "modified", "implemented", "replaced", NULL};
    static const char *const denied[] = {"not", "no", "without", "nothing", "unchanged", NULL};
    return agent__has_any_word(sentence, done) && !agent__has_any_word(sentence, denied);
}

/* Files of the tree that a sentence says were changed, and that were not. */
static void put_files(const agent *a, const char *sentence, base_buf *paths, uint32_t *n)
{
    agent_word m;
    for (size_t at = 0; agent__next_mention(sentence, at, &m); at = m.to > at ? m.to : at + 1) {
        char *said = agent__copy_word(sentence, m);
        char *path = strchr(said, '.') ? code_index_path(tool_workspace_index(a->workspace), said) : NULL;
        free(said);
        if (path && !agent__is_changed(a, path) && !(paths->data && strstr(paths->data, path)) &&
            (*n)++ < MOST_FILES)
            base_buf_printf(paths, "%s%s", paths->len ? ", " : "", path);
        free(path);
    }
}

void agent__put_unfounded(const agent *a, base_buf *out)
{
    const agent_asked *x = &a->asked;
    const char *s = x->said ? x->said : "";
    static const char *const tests[] = {"test", "tests", NULL};
    static const char *const passing[] = {"pass", "passes", "passed", "passing", NULL};
    const bool has_run = a->test.command && !a->test.words && (a->fix.passed || a->fix.failing);
    base_buf paths = {0};
    uint32_t n = 0;
    bool claims_test = false;
    for (size_t at = 0; s[at];) {
        const size_t end = sentence_end(s, at);
        char *sentence = base_xstrndup(s + at, end - at);
        if (is_claim(sentence)) put_files(a, sentence, &paths, &n);
        claims_test |= agent__has_any_word(sentence, tests) && agent__has_any_word(sentence, passing);
        free(sentence);
        at = end + (s[end] != '\0');
    }
    if (n)
        base_buf_printf(
            out, " Not changed, whatever the answer says: %s%s.", paths.data, n > MOST_FILES ? ", ..." : "");
    if (claims_test && !has_run) base_buf_puts(out, " No test has run, whatever the answer says.");
    base_buf_free(&paths);
}
