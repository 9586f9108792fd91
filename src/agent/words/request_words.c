/* Words of a request (contract: request_words.h). */
#include "agent/words/request_words.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "code/code.h"

/* U+2000 to U+206F, and signs of Latin-1 (U+0080 to U+00BF): does the letter that byte `at` is of stand for punctuation? */
static bool is_punctuation(const char *text, size_t at)
{
    const unsigned char *s = (const unsigned char *)text;
    for (int back = 0; back < 2 && at > 0 && (s[at] & 0xc0) == 0x80; back++) at--;
    return s[at] == 0xc2 || (s[at] == 0xe2 && (s[at + 1] == 0x80 || s[at + 1] == 0x81));
}

bool agent__is_in_word(const char *text, size_t at)
{
    return code_is_name_byte(text[at]) && !((unsigned char)text[at] >= 0x80 && is_punctuation(text, at));
}

bool agent__next_word(const char *text, size_t at, agent_word *ret)
{
    while (text[at] && !agent__is_in_word(text, at)) at++;
    ret->from = at;
    while (agent__is_in_word(text, at)) at++;
    ret->to = at;
    return ret->to > ret->from;
}

static bool is_in_mention(const char *text, size_t at)
{
    return agent__is_in_word(text, at) || (text[at] && strchr("./-+", text[at]));
}

bool agent__next_mention(const char *text, size_t at, agent_word *ret)
{
    while (text[at] && !is_in_mention(text, at)) at++;
    size_t to = at, n = at;
    for (; is_in_mention(text, to); to++)
        if (!strchr("./-+", text[to])) n = to + 1;
    *ret = n > at ? (agent_word){at, n} : (agent_word){to, to};
    return to > at;
}

bool agent__word_before(const char *text, size_t at, agent_word *ret)
{
    while (at > 0 && !agent__is_in_word(text, at - 1)) {
        at--;
        if (strchr(".;:!?", text[at])) return false;
    }
    ret->to = at;
    while (at > 0 && agent__is_in_word(text, at - 1)) at--;
    ret->from = at;
    return ret->to > ret->from;
}

bool agent__is_any_word(const char *text, agent_word w, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == w.to - w.from && !strncasecmp(text + w.from, *words, w.to - w.from))
            return true;
    return false;
}

bool agent__looks_like_name(const char *text, agent_word w)
{
    bool is = false;
    for (size_t i = w.from; i < w.to; i++)
        is |= text[i] == '_' ||
              (i > w.from && text[i] >= 'A' && text[i] <= 'Z' && text[i - 1] >= 'a' && text[i - 1] <= 'z');
    return is && w.to - w.from >= 3;
}

char *agent__copy_word(const char *text, agent_word w)
{
    return base_xstrndup(text + w.from, w.to - w.from);
}

size_t agent__find_phrase(const char *text, size_t at, const char *phrase)
{
    const size_t n = strlen(phrase);
    for (; text[at]; at++)
        if ((at == 0 || !agent__is_in_word(text, at - 1)) && !strncasecmp(text + at, phrase, n) &&
            !agent__is_in_word(text, at + n))
            return at + n;
    return 0;
}

bool agent__has_word(const char *text, const char *word)
{
    return agent__find_phrase(text, 0, word) != 0;
}

bool agent__has_any_word(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (agent__has_word(text, *words)) return true;
    return false;
}

bool agent__names_word(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = text; n >= 3 && (p = strstr(p, name)); p++) {
        const size_t at = (size_t)(p - text);
        if ((at == 0 || !agent__is_in_word(text, at - 1)) && !agent__is_in_word(text, at + n)) return true;
    }
    return false;
}

bool agent__is_mark(char c)
{
    return c == '`' || c == '"' || c == '\'';
}

size_t agent__read_marked(const char *text, size_t at, agent_word *ret)
{
    const char *end = agent__is_mark(text[at]) ? strchr(text + at + 1, text[at]) : NULL;
    if (!end) return 0;
    *ret = (agent_word){at + 1, (size_t)(end - text)};
    return ret->to + 1;
}

/* --- words that say what a request is about -------------------------------------------------------------- */

/* Words that say nothing of it. */
static const char *const stop_words[] = {"about", "after", "again", "all", "also", "and", "any", "are",
    "assert", "because", "been", "before", "but", "can", "could", "defined", "does", "each", "else", "error",
    "fails", "file", "files", "find", "fix", "for", "from", "function", "get", "give", "has", "have", "here",
    "how", "into", "its", "just", "line", "lines", "make", "many", "more", "must", "name", "not", "now",
    "off", "one", "only", "other", "our", "out", "please", "request", "return", "run", "same", "should",
    "show", "some", "tell", "test", "tests", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "use", "used", "uses", "using", "was", "were", "what", "when", "where", "which", "while",
    "who", "why", "will", "with", "work", "works", "would", "you", "your"};

static int compare_word(const void *key, const void *row)
{
    return strcmp(key, *(const char *const *)row);
}

bool agent__is_content_word(const char *word, size_t n)
{
    char lower[24];
    if (n < 3) return false;
    if (n >= sizeof lower) return true;
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
    lower[n] = 0;
    return !bsearch(
        lower, stop_words, sizeof stop_words / sizeof *stop_words, sizeof *stop_words, compare_word);
}

bool agent__is_module_word(const char *text, agent_word w)
{
    static const char *const words[] = {"__init__", "__main__", NULL};
    static const char *const kinds[] = {"package", "module", "file", "library", "namespace", "project",
        "subpackage", "toplevel", "level", "py", NULL};
    static const char *const links[] = {"of", "in", "from", "the", "our", "this", "that", "s", "whole", NULL};
    agent_word near = w;
    if (!agent__is_any_word(text, w, words) || (w.from && strchr(".:#", text[w.from - 1]))) return false;
    while (agent__word_before(text, near.from, &near) && agent__is_any_word(text, near, links))
        ;
    if (near.from != w.from && agent__is_any_word(text, near, kinds)) return true;
    near = w;
    if (text[w.to] == '(') return false;
    while (agent__next_word(text, near.to, &near) && agent__is_any_word(text, near, links))
        ;
    return near.from > w.to && strcspn(text + w.to, ",;!?\n") > near.from - w.to &&
           strncmp(text + w.to, ". ", 2) != 0 && agent__is_any_word(text, near, kinds);
}

bool agent__asks_for_error(const char *request)
{
    static const char *const words[] = {"error", "throw", "throws", "reject", "rejects", "fail", "fails",
        "exception", "refuse", "refused", NULL};
    return agent__has_any_word(request, words);
}

bool agent__says_part(const char *word, size_t n, const char *part, size_t m)
{
    enum { STEM = 5, ENDING = 4 };
    size_t common = 0;
    while (common < n && common < m && !strncasecmp(word + common, part + common, 1)) common++;
    if (common == m) return n <= m + (m >= STEM ? ENDING : 1);
    return common == n ? m <= n + 1 : common >= STEM;
}
