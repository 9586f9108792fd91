/*
 * What a word of a request is, how words are compared, and what quotes and code marks hold: the one place that all
 * readers of a request share. Pure; any thread.
 *
 * A word is a run of what names are written with (code_is_name_byte: ASCII letters, digits, _, $ and bytes from 0x80),
 * without typographic punctuation (quotes, dashes, ellipses). A mention is a word that may be a path: it also
 * holds . / - and +, but does not end in one, so "in src/main.c." mentions src/main.c. Words are compared in any case of
 * ASCII letters. Marks are ` " and '.
 */
#ifndef KVIST_AGENT_WORDS_REQUEST_WORDS_H
#define KVIST_AGENT_WORDS_REQUEST_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes [from, to) of a text. */
typedef struct agent_word {
    size_t from, to;
} agent_word;

/* Is byte `at` of the text part of a word? */
bool agent__is_in_word(const char *text, size_t at);
/* The first word at or behind byte `at`, never empty; inside of a word, its rest. false: none. */
bool agent__next_word(const char *text, size_t at, agent_word *ret);
/* The first mention. "...", a dash and a sentence's full stop are empty ones (from == to): they part what stands beside. */
bool agent__next_mention(const char *text, size_t at, agent_word *ret);
/* The last word in front of byte `at`. false: none in this part of the sentence (up to one of . : ; ! ?). */
bool agent__word_before(const char *text, size_t at, agent_word *ret);

/* words: NULL-terminated. */
bool agent__is_any_word(const char *text, agent_word w, const char *const *words);
/* Three letters at least, and a _ or a capital behind a small letter: nobody writes that but as a name. */
bool agent__looks_like_name(const char *text, agent_word w);
/* Does it say what the request is about: no "the", "and", "please"? */
bool agent__is_content_word(const char *word, size_t n);
/* `__init__` (or `__main__`) that stands for a file: "__init__.py", "the package's __init__", "the __init__ module"; no method. */
bool agent__is_module_word(const char *text, agent_word w);
/* The caller frees. */
char *agent__copy_word(const char *text, agent_word w);

/* The byte behind the first place at or behind `at` where the phrase stands as whole words; 0: nowhere. */
size_t agent__find_phrase(const char *text, size_t at, const char *phrase);
/* The word stands there by itself. */
bool agent__has_word(const char *text, const char *word);
bool agent__has_any_word(const char *text, const char *const *words); /* words: NULL-terminated */
/* The name stands there by itself, in exactly these letters; names of one or two letters never do. */
bool agent__names_word(const char *text, const char *name);

/* Does word[0, n) say part[0, m) of a name: "comparison" and "compared" say "compare", "less" says "less" alone? */
bool agent__says_part(const char *word, size_t n, const char *part, size_t m);

bool agent__is_mark(char c);
/* What the mark at byte `at` and the next one like it hold; the byte behind that one; 0: no mark, or none closes it. */
size_t agent__read_marked(const char *text, size_t at, agent_word *ret);
/* The request is about an error: raised, thrown, refused. */
bool agent__asks_for_error(const char *request);

/* --- change_words.c, test_words.c --- */
/* Does a request in plain words ask for a change of the tree, or for words? */
bool agent_asks_for_change(const char *request);
/* "dedupe: skip empty names": one name, and what it shall do. No renaming, deletion or other signature is meant so. */
bool agent__orders_behaviour(const char *request);
/* "encode hangs as soon as ...": a fault of what is there is told, and nothing else is ordered. */
bool agent__complains(const char *request);
/* --- clauses.c --- */
/* It speaks of a text that is no code: a README, a comment, an example. */
bool agent__speaks_of_document(const char *text);
/*
 * "f should skip blanks. Say so in the README and add an example.": what is asked of the code, without the clauses about documents
 * (heap); all of it where little else is said.
 */
char *agent__about_code(const char *request);
/* Is the first thing that it orders code, and no document or test? */
bool agent__orders_code_first(const char *request);

/* --- change_words.c --- */
/* Is it a question, whatever it names: "is f used anywhere?", "why does f ..."? Not "could you delete f?", not "why not f?" */
bool agent__asks_question(const char *request);
/* "Cover f with a test", "there is no test for f", "unit test for f please": a new test is wanted, in words that order none. */
bool agent_says_test_is_wanted(const char *request);
/* Is it a test that is wrong, and the code that is right? */
bool agent__says_test_is_wrong(const char *request);
/*
 * "We compose `:return:` instead of `:returns:`", "from 'old' to 'new'": how a text was written and how it is, as bytes without
 * their marks. false: the request does not write both as code or text is.
 */
bool agent__read_spellings(const char *request, agent_word *ret_old, agent_word *ret_new);
/* The request behind "please", "can you", ... */
const char *agent__first_word(const char *request);

/* --- test_claim.c --- */
/*
 * What a new test is to show: of "add a test that f gives None for an empty list" the bytes behind "that", up to the end of the
 * sentence. false: the request does not say it in words.
 */
bool agent__find_test_claim(const char *request, agent_word *ret);

#endif
