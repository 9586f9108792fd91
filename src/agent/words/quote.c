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

/* Bits of the words that ask in the request and say something: those that the line has. */
static uint32_t words_of(const base_buf *line, const char *request, const uint32_t *ends, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = ends[i];
        while (from && is_word_byte(request[from - 1])) from--;
        if (agent__is_content_word(request + from, ends[i] - from) &&
            has_word(line, request + from, ends[i] - from))
            found |= 1u << i;
    }
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
    uint32_t ends[AGENT_MAX_QUERIES];
    const uint32_t n_ends = agent__pick_queries(request, strlen(request), ends);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t has = words_of(&lines[i], request, ends, n_ends);
        const base_str line = trim(&lines[i]);
        ret_said[i] =
            says_something(line) && !(recent->len && memmem(recent->data, recent->len, line.ptr, line.len));
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t other = words_of(&lines[k], request, ends, n_ends);
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
