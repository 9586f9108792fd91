/* Requests (whatever somebody pastes) split into words: pieces in order, whole, and never behind the text. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/callers_question.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_words(const char *s, size_t n)
{
    agent_word w = {0}, before;
    for (size_t at = 0; agent__next_word(s, at, &w); at = w.to) {
        assert(w.from >= at && w.to > w.from && w.to <= n);
        assert(w.from == 0 || !agent__is_in_word(s, w.from - 1));
        char *word = agent__copy_word(s, w);
        assert(agent__is_any_word(s, w, (const char *const[]){word, NULL}));
        assert(agent__has_word(s, word) && agent__find_phrase(s, w.from, word) == w.to);
        assert(w.to - w.from < 3 || agent__names_word(s, word));
        if (agent__word_before(s, w.from, &before)) assert(before.to > before.from && before.to <= w.from);
        (void)agent__is_module_word(s, w);
        free(word);
    }
    assert(w.to <= n);
}

static void read_mentions(const char *s, size_t n)
{
    agent_word w;
    for (size_t at = 0; agent__next_mention(s, at, &w); at = w.to) {
        assert(w.from >= at && w.to >= w.from && w.to <= n && w.to > at);
        if (w.to > w.from) assert(!strchr("./-+", s[w.to - 1]));
        (void)agent__looks_like_name(s, w);
        (void)agent__is_content_word(s + w.from, w.to - w.from);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum { MOST = 2000 }; /* each word is looked for in the whole text */
    char *s = base_xstrndup((const char *)data, n < MOST ? n : MOST);
    const size_t all = strlen(s);
    agent_word w;
    agent_callers_question q;
    read_words(s, all);
    read_mentions(s, all);
    for (size_t at = 0; at < all; at++) {
        const size_t to = agent__read_marked(s, at, &w);
        if (to) assert(agent__is_mark(s[at]) && w.from == at + 1 && s[w.to] == s[at] && to == w.to + 1);
    }
    if (agent_read_callers_question(s, &q)) {
        assert((q.n || q.of_it) && q.n <= AGENT_CALLERS_NAMES && q.described <= all);
        for (uint32_t i = 0; i < q.n; i++) assert(strlen(q.names[i]) >= 3 && strstr(s, q.names[i]));
    }
    agent_callers_question_free(&q);
    agent_word old, new;
    if (agent__read_spellings(s, &old, &new))
        assert(old.to > old.from && new.to > new.from &&old.to <= all &&new.to <= all);
    free(s);
    return 0;
}
