/*
 * "pytest fails since we write :return: instead of :returns:. The code is right, fix the test": the old spelling stands in what a test
 * expects, and what it gives the code stays.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"
#include "tools/file/text.h"

enum { MAX_FILE = 1 << 20, MOST_LINES = 40, MOST_FILES = 8 };

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Has the name that ends at byte `to` one of these parts: "assertEqual", "toBe"? */
static bool names_expectation(const char *text, size_t from, size_t to)
{
    static const char *const parts[] = {"assert", "expect", "equal", "tobe", "contain", "match", "strcmp"};
    size_t at = to;
    while (at > from && is_letter(text[at - 1])) at--;
    for (; at < to; at++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (to - at >= strlen(parts[i]) && !strncasecmp(text + at, parts[i], strlen(parts[i])))
                return true;
    return false;
}

/*
 * Does byte `at` stand in a statement that says what a test expects, and not between the brackets of what is called there? The
 * statement begins at the last line above that speaks of an expectation, as far as its brackets are still open.
 */
static bool is_expected(const char *text, size_t at)
{
    size_t from = tool__line_begin(text, at), scan = at;
    int closed = 0;
    bool is_open = true;
    for (int i = 0; i < MOST_LINES; i++, from = tool__line_begin(text, from - 1)) {
        bool has_open = i == 0; /* a bracket of this line holds it */
        for (; scan > from; scan--) {
            const char c = text[scan - 1];
            closed += strchr(")]}", c) != NULL;
            if (!strchr("([{", c)) continue;
            if (closed) {
                closed--;
                continue;
            }
            has_open = true;
            is_open &= !(scan > 1 && is_letter(text[scan - 2])) || names_expectation(text, from, scan - 1);
        }
        if (!is_open) return false;
        size_t word = from + strspn(text + from, " \t"), end = word;
        while (is_letter(text[end]) || (text[end] && strchr(".:", text[end]))) end++;
        if (end > word && end <= at && has_open && names_expectation(text, word, end)) return true;
        if (!from) return false;
    }
    return false;
}

/* The text with the new spelling wherever the old one is expected; false: nowhere. */
static bool respell(const base_buf *text, base_str old, base_str new, base_buf *ret)
{
    size_t last = 0;
    bool has = false;
    for (size_t at = 0; at + old.len <= text->len; at++) {
        const bool is_whole = !memcmp(text->data + at, old.ptr, old.len) &&
                              !(at && is_letter(*old.ptr) && is_letter(text->data[at - 1])) &&
                              !(is_letter(old.ptr[old.len - 1]) && is_letter(text->data[at + old.len]));
        if (!is_whole || !is_expected(text->data, at)) continue;
        base_buf_add(ret, text->data + last, at - last);
        base_buf_add(ret, new.ptr, new.len);
        last = at + old.len;
        at = last - 1;
        has = true;
    }
    base_buf_add(ret, text->data + last, text->len - last);
    return has;
}

/* The first file of tests in which it is expected; the caller frees. NULL: none. */
static char *find_file(const agent *a, base_str old, base_str new, base_buf *ret_text, base_buf *ret_new)
{
    char **paths = code_index_paths(tool_workspace_index(a->workspace)), *found = NULL;
    for (size_t i = 0; paths[i] && !found; i++) {
        if (!code_path_is_test(paths[i])) continue;
        const bool is_read =
            !tool_workspace_read(a->workspace, paths[i], MAX_FILE, ret_text, NULL) && ret_text->len;
        if (is_read && respell(ret_text, old, new, ret_new)) {
            found = base_xstrdup(paths[i]);
        } else {
            base_buf_free(ret_text);
            base_buf_free(ret_new);
        }
    }
    code_index_paths_free(paths);
    return found;
}

bool agent__open_spelling(agent *a, const char *request, agent_opening *opening)
{
    agent_asked *x = &a->asked;
    agent_word old, new;
    base_buf text = {0}, mended = {0};
    if (!x->change || x->refused || x->n_respelled >= MOST_FILES || a->fix.wanted || a->info.strong ||
        a->settings.mode == AGENT_MODE_PLAN || !agent__says_test_is_wrong(request) ||
        !agent__read_spellings(request, &old, &new))
        return false;
    char *path = find_file(a, (base_str){request + old.from, old.to - old.from},
        (base_str){request + new.from, new.to - new.from}, &text, &mended);
    if (path) {
        x->n_respelled++;
        agent__forget_meant(a); /* nothing of it is to be written again */
        agent__open_edit(a, path, &text, &mended, opening);
    }
    const bool is_open = path != NULL;
    free(path);
    base_buf_free(&text);
    base_buf_free(&mended);
    return is_open;
}
