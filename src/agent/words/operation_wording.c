/* The wordings that ask for an operation without its verb (contract: operation_words.h). */
#include "agent/words/operation_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/words/request_words.h"
#include "base/mem.h"

/*
 * A row a wording. X is a definition of the tree, the only one of its name. Y is the new name; N the same where it
 * has to look like code ("call f twice" asks for no name); U where the tree must not write it yet ("use strlcpy
 * instead of copy" names another function). F is any file, T the one that X goes to. "..." stands for up to four
 * words, ";" for a mark between two parts of a sentence. A word of `variants` stands for all its spellings. NULL: no
 * operation after all; the first row that fits counts.
 */
static const struct wording {
    const char *operation, *words;
} wordings[] = {
    {NULL, "use U instead of X"},
    {NULL, "use U instead of X everywhere"},
    {"rename", "X is ... name ; make it Y"},
    {"rename", "X is ... name ; call it Y"},
    {"rename", "X is ... name ; rename it to Y"},
    {"rename", "X is ... name ; Y is better"},
    {"rename", "X has ... name ; make it Y"},
    {"rename", "X has ... name ; call it Y"},
    {"rename", "X has ... name ; rename it to Y"},
    {"rename", "X is ... called ; make it Y"},
    {"rename", "the name of X is ... ; make it Y"},
    {"rename", "dislike the name X ; Y is better"},
    {"rename", "dislike the name X ; make it Y"},
    {"rename", "dislike the name X ; call it Y"},
    {"rename", "dislike the name X ; rename it to Y"},
    {"rename", "Y is ... better name for X"},
    {"rename", "a better name for X is Y"},
    {"rename", "call X Y from now on"},
    {"rename", "call X N"},
    {"rename", "name X N"},
    {"rename", "U instead of X everywhere"},
    {"rename", "X to be called U"}, /* "I want ..." */
    {"rename", "X should be called N"},
    {"rename", "X should be called Y from now on"},
    {"rename", "X should be named Y"},
    {"rename", "X should be renamed to Y"},
    {"rename", "X should have the name Y"},
    {"rename", "export X as N"},
    {"rename", "change the name of X to Y"},
    {"rename", "change the name of X into Y"},
    {"move", "pull X out of F into T"},
    {"move", "pull X out into T"},
    {"move", "take X out of F and put it into T"},
    {"move", "put X into T"},
    {"move", "put X in T"},
    {"move", "X belongs into T"},
    {"move", "X belongs in T"},
    {"move", "X belongs to T"},
    {"move", "X should live in T"},
    {"move", "X should be in T"},
    {"move", "X should be moved to T"},
    {"delete", "get rid of X"},
    {"delete", "X isnt needed anymore"},
    {"delete", "X isnt used anymore"},
    {"delete", "X is no longer needed"},
    {"delete", "X is no longer used"},
    {"delete", "X can go"},
    {"delete", "X should be removed"},
    {"delete", "nobody uses X anymore"},
    {"delete", "nothing uses X anymore"},
};

/* A word of a wording, and what people write for it: "is not" without its apostrophe, "should" in other words. */
static const struct variant {
    const char *word, *const spellings[8];
} variants[] = {
    {"isnt", {"isn't", "isnt", "is not", NULL}},
    {"anymore", {"any more", "anymore", "any longer", NULL}},
    {"dislike", {"don't like", "dont like", "do not like", "dislike", "hate", NULL}},
    {"should", {"should", "must", "needs to", "ought to", "shall", NULL}},
    {"is", {"is", "would be", "was", "reads", "sounds", "seems", NULL}},
    {"better", {"better", "clearer", "nicer", "much better", "more readable", NULL}},
    {"nobody", {"nobody", "no one", "noone", NULL}},
    {"to", {"to", "into", NULL}},
};

/* All that may stand in front of a wording in its sentence: "could you please get rid of X", but not "do not get rid of X". */
static const char *const in_front[] = {"please", "you", "we", "i", "d", "i'd", "like", "want", "to", "should",
    "now", "then", "and", "so", "let", "let's", "lets", "us", "think", "say", "write", "pls", "plz", "just",
    "kindly", "hi", "hey", "ok", "also", "really", NULL};
static const char *const polite[] = {"can", "could", "would", NULL};
static const char *const fillers[] = {"the", "function", "method", "class", "helper", "macro", "type",
    "struct", "file", "module", "alias", "constant", "variable", "interface", "trait", "enum", "property",
    "wrapper", "unused", "old", "deprecated", "obsolete", "legacy", "dead", "useless", "static", "private",
    "public", "internal", "global", "our", "that", NULL};
/* What may go on behind it. */
static const char *const behind[] = {"everywhere", "please", "because", "since", "and", "it", "now",
    "entirely", "completely", "altogether", "instead", "too", "pls", "plz", "thanks", "thx", "also", "as",
    "imo", NULL};
/* Words in a new name's place that are none: "call f twice from now on". */
static const char *const no_names[] = {"a", "an", "the", "it", "this", "that", "which", "what", "there",
    "here", "once", "twice", "first", "last", "only", "directly", "always", "never", "again", "lazily",
    "often", "by", "with", "from", "before", "after", "when", "if", "in", "on", "at", "as", "something",
    "somehow", "differently", "better", "consistently", "more", "less", "faster", "shorter", "clear",
    "clearer", "to", "for", NULL};

/* A definition may have two letters; these are words. */
static const char *const short_words[] = {"an", "as", "at", "be", "by", "do", "go", "he", "if", "in", "is",
    "it", "me", "my", "no", "of", "on", "or", "so", "to", "up", "us", "we", NULL};

static size_t word_length(const char *s)
{
    size_t n = 0;
    while (agent__is_in_word(s, n) || (n && s[n] == '\'' && isalpha((unsigned char)s[n + 1]))) n++;
    return n;
}

/* A name or a file, in quotes or bare; behind it, or NULL. */
static const char *read_item(const char *s, bool is_file, const char **ret, size_t *ret_n, bool *is_quoted)
{
    const char quote = agent__is_mark(*s) ? *s : '\0';
    size_t n = 0;
    s += quote != '\0';
    while (agent__is_in_word(s, n) ||
           (n && s[n] == '.' && agent__is_in_word(s, n + 1)) || /* Class.name, name.py */
           (is_file && strchr("./-", s[n]) && s[n] &&
               (agent__is_in_word(s, n + 1) || s[n + 1] == '/' || s[n + 1] == '.')))
        n++;
    *ret = s;
    *ret_n = n;
    *is_quoted = quote != '\0';
    s += n;
    if (!is_file && s[0] == '(' && s[1] == ')') s += 2;
    if (quote && *s != quote) return NULL;
    s += quote != '\0';
    return !n || agent__is_in_word(s, 0) || (s[0] == '\'' && s[1] == 's') ? NULL : s;
}

static bool has_ending(const char *s, size_t n)
{
    const char *dot = memrchr(s, '.', n);
    return dot && dot + 1 < s + n && !memchr(dot, '/', n - (size_t)(dot - s));
}

/* Behind "function" in "the f function is no longer used"; else where it stood. */
static const char *behind_kind(const char *s)
{
    static const char *const kinds[] = {"function", "method", "class", "helper", "macro", "type", "struct",
        "constant", "variable", "alias", NULL};
    const size_t n = *s == ' ' ? word_length(s + 1) : 0;
    return n && agent__is_any_word(s + 1, (agent_word){0, n}, kinds) ? s + 1 + n : s;
}

/* Behind "of Schema", where a definition of the tree is its type; else where it stood. */
static const char *behind_type(const char *s, const agent_names *names)
{
    static const char of[] = " of ";
    const char *item, *end = NULL;
    size_t n;
    bool is_quoted;
    if (strncmp(s, of, strlen(of)) != 0) return s;
    const char *from = s + strlen(of);
    if (!strncmp(from, "the ", 4)) from += 4;
    end = read_item(from, false, &item, &n, &is_quoted);
    char *type = end ? base_xstrndup(item, n) : NULL;
    const bool is_one = type && names->count(names->ctx, type) > 0;
    free(type);
    return is_one ? end : s;
}

/* What stands in a slot; behind it, or NULL: it does not fit. */
static const char *read_slot(char slot, const char *s, const agent_names *names, agent_operation_words *ret)
{
    const bool is_file = slot == 'F' || slot == 'T';
    const char *item;
    size_t n;
    bool is_quoted;
    for (size_t k; (slot == 'X' || is_file) && (k = word_length(s)) && s[k] == ' ' &&
                   agent__is_any_word(s, (agent_word){0, k}, fillers);)
        s += k + strspn(s + k, " ");
    const char *end = read_item(s, is_file, &item, &n, &is_quoted);
    if (!end || (is_file && !has_ending(item, n))) return NULL;
    char *text = base_xstrndup(item, n), **to = slot == 'X' ? &ret->name : &ret->to;
    bool fits = true;
    if (slot == 'X')
        fits = n >= 2 && !agent__is_any_word(text, (agent_word){0, n}, short_words) &&
               names->count(names->ctx, text) == 1;
    else if (!is_file)
        fits = !isdigit((unsigned char)*text) && !strchr(text, '.') &&
               !agent__is_any_word(text, (agent_word){0, n}, no_names);
    if (fits && slot != 'X' && !is_file && !is_quoted)
        fits = n < 3 || strcmp(text + n - 2, "ly") != 0; /* "called synchronously" */
    if (fits && slot == 'N')
        fits = (is_quoted || agent__looks_like_name(text, (agent_word){0, n})) &&
               !names->count(names->ctx, text);
    else if (fits && slot == 'U')
        fits = !names->mentions(names->ctx, text);
    if (fits && slot == 'X') end = behind_type(behind_kind(end), names);
    if (!fits || slot == 'F') {
        free(text);
    } else {
        free(*to);
        *to = text;
    }
    return fits ? end : NULL;
}

/* The request's sentence may end here, or go on with what changes nothing. */
static bool is_end(const char *s, bool may_ask)
{
    if (*s && !isspace((unsigned char)*s) && !strchr(".,;:!?)", *s)) return false;
    if (*s && strchr(".,;:!?)", *s) && s[1] && !isspace((unsigned char)s[1])) return false;
    if (*s == ' ') {
        s += strspn(s, " ");
        if (*s && *s != '-' && !agent__is_any_word(s, (agent_word){0, word_length(s)}, behind)) return false;
    }
    s += strcspn(s, ".!?\n");
    return *s != '?' || may_ask;
}

/* Behind the mark between two parts of a sentence, and "please", "so let's", "I'd rather" at the next one's head. */
static const char *behind_mark(const char *s)
{
    static const char *const rather[] = {"rather", "could", "can", "would", "will", NULL};
    s += strspn(s, ",;:.! -");
    for (size_t n; (n = word_length(s)) && (agent__is_any_word(s, (agent_word){0, n}, in_front) ||
                                               agent__is_any_word(s, (agent_word){0, n}, rather));)
        s += n + strspn(s + n, " ,");
    return s;
}

static bool fits(
    const char *words, const char *s, const agent_names *names, bool may_ask, agent_operation_words *ret)
{
    enum { GAP = 4 };
    words += strspn(words, " ");
    const size_t n = strcspn(words, " ");
    if (!n) return is_end(s, may_ask);
    if (*words == ';') return fits(words + 1, behind_mark(s), names, may_ask, ret);
    s += strspn(s, " \t\n");
    if (n == 3 && !memcmp(words, "...", 3)) {
        for (int i = 0; i <= GAP; i++) {
            if (fits(words + n, s, names, may_ask, ret)) return true;
            const size_t k = word_length(s);
            if (!k) return false;
            s += k + strspn(s + k, " ");
        }
        return false;
    }
    if (n == 1 && strchr("XYNUFT", *words)) {
        s = read_slot(*words, s, names, ret);
        return s && fits(words + 1, s, names, may_ask, ret);
    }
    for (const struct variant *v = variants; v < variants + sizeof variants / sizeof *variants; v++) {
        if (strlen(v->word) != n || memcmp(v->word, words, n) != 0) continue;
        for (const char *const *spelling = v->spellings; *spelling; spelling++) {
            const size_t k = strlen(*spelling);
            if (!strncasecmp(s, *spelling, k) && !agent__is_in_word(s, k) &&
                fits(words + n, s + k, names, may_ask, ret))
                return true;
        }
        return false;
    }
    return word_length(s) == n && !strncasecmp(s, words, n) && fits(words + n, s + n, names, may_ask, ret);
}

/* Only words of `in_front` between the sentence's begin and byte `at`? */
static bool is_in_front(const char *request, size_t at, bool *may_ask)
{
    *may_ask = false;
    while (at > 0 && !strchr(".;:!?\n", request[at - 1])) {
        size_t to = at;
        while (to > 0 && strchr(" ,", request[to - 1])) to--;
        size_t from = to;
        while (from > 0 && (agent__is_in_word(request, from - 1) || request[from - 1] == '\'')) from--;
        if (from == to) return to == 0 || (to < at && strchr(".;:!?\n", request[to - 1]));
        const bool is_polite = agent__is_any_word(request, (agent_word){from, to}, polite);
        if (!is_polite && !agent__is_any_word(request, (agent_word){from, to}, in_front)) return false;
        *may_ask |= is_polite;
        at = from;
    }
    return true;
}

bool agent_read_operation_words(const char *request, const agent_names *names, agent_operation_words *ret)
{
    *ret = (agent_operation_words){0};
    for (size_t i = 0; i < sizeof wordings / sizeof *wordings; i++)
        for (size_t at = 0; request[at]; at++) {
            bool may_ask;
            const bool begins = (agent__is_in_word(request, at) || agent__is_mark(request[at])) &&
                                (at == 0 || isspace((unsigned char)request[at - 1]));
            if (!begins || !is_in_front(request, at, &may_ask)) continue;
            const bool is_it = fits(wordings[i].words, request + at, names, may_ask, ret);
            ret->operation = is_it ? wordings[i].operation : NULL;
            if (ret->operation) return true;
            agent_operation_words_free(ret);
            if (is_it) return false;
        }
    return false;
}

void agent_operation_words_free(agent_operation_words *w)
{
    free(w->name);
    free(w->to);
    *w = (agent_operation_words){0};
}
