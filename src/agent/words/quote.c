/* Which lines are said again, and how (contract: quote.h). Chosen by measuring: docs/diary.md, "Lines said again". */
#include "agent/words/quote.h"

#include <ctype.h>
#include <string.h>

#include "agent/words/request_words.h"
#include "agent/words/token_map.h"

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool has_word(const base_buf *line, const char *word, size_t n)
{
    for (size_t i = 0; i + n <= line->len; i++)
        if (!memcmp(line->data + i, word, n) && (!i || !is_word_byte(line->data[i - 1])) &&
            (i + n == line->len || !is_word_byte(line->data[i + n])))
            return true;
    return false;
}

/* The words of a request that ask and say something. */
typedef struct asking {
    base_str words[AGENT_MAX_QUERIES];
    uint32_t n, names; /* names: bits of those that are names of code */
} asking;

/* An underscore, or a capital behind a small letter. */
static bool is_name(base_str word)
{
    for (size_t i = 1; i < word.len; i++)
        if (word.ptr[i] == '_' ||
            (isupper((unsigned char)word.ptr[i]) && islower((unsigned char)word.ptr[i - 1])))
            return true;
    return false;
}

static asking find_asking(const char *request)
{
    asking a = {.n = 0};
    uint32_t ends[AGENT_MAX_QUERIES];
    const uint32_t n = agent__pick_queries(request, strlen(request), ends);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = ends[i];
        while (from && is_word_byte(request[from - 1])) from--;
        const base_str word = {request + from, ends[i] - from};
        if (!agent__is_content_word(word.ptr, word.len)) continue;
        if (is_name(word)) a.names |= 1u << a.n;
        a.words[a.n++] = word;
    }
    return a;
}

/* Bits of the asking words that the line has. */
static uint32_t words_of(const base_buf *line, const asking *a)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < a->n; i++)
        if (has_word(line, a->words[i].ptr, a->words[i].len)) found |= 1u << i;
    return found;
}

/* The line without the blanks around it. */
static base_str trim(const base_buf *line)
{
    size_t from = 0, to = line->len;
    while (from < to && isspace((unsigned char)line->data[from])) from++;
    while (to > from && isspace((unsigned char)line->data[to - 1])) to--;
    return (base_str){line->data + from, to - from};
}

static bool says_something(base_str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (is_word_byte(line.ptr[i])) return true;
    return false;
}

void agent__choose_quotes(
    const char *request, const base_buf *recent, const base_buf *lines, uint32_t n, bool *ret_said)
{
    const asking a = find_asking(request);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t has = words_of(&lines[i], &a);
        const base_str line = trim(&lines[i]);
        const bool fits = a.names ? has & a.names : has || !a.n;
        ret_said[i] = fits && says_something(line) &&
                      !(recent->len && memmem(recent->data, recent->len, line.ptr, line.len));
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t other = words_of(&lines[k], &a);
            if (other != has && (other & has) == has) ret_said[i] = false;
        }
    }
}

void agent__put_quote(const base_buf *line, bool is_first, base_buf *out)
{
    const base_str words = trim(line);
    base_buf_puts(out, is_first ? "\n\nEarlier in this session it says:\n" : "\n");
    base_buf_add(out, words.ptr, words.len);
}
