/* An answer's claims (contract: claim_words.h): each sentence is cut into tokens, and what stands beside a verb is read. */
#include "agent/words/claim_words.h"

#include <stdlib.h>
#include <string.h>

#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

enum { MOST_TOKENS = 96, MOST_SKIPPED = 3, MOST_CLAIMS = 32 };

static const char *const adding[] = {"added", "adds", "adding", "introduced", "introduces", "created",
    "creates", "implemented", "defined", NULL};
static const char *const removing[] = {"removed", "removes", "deleted", "deletes", "dropped", "drops", NULL};
static const char *const renaming[] = {"renamed", "renames", NULL};
static const char *const changing[] = {"changed", "changes", "updated", "updates", "modified", "modifies",
    "fixed", "fixes", "rewrote", "rewritten", "refactored", "adjusted", "extended", NULL};
static const char *const using[] = {
    "use", "uses", "using", "used", "call", "calls", "calling", "invokes", "invoked", "applies", NULL};
/* "a helper called `f`" names it; "`f` is called" is a use. */
static const char *const using_passive[] = {"used", "called", "invoked", "applied", NULL};

/* The verb's forms in front of its object, and behind it ("was added"). */
static const struct {
    agent_claim_kind kind;
    const char *const *active, *const *passive;
    bool
        needs_done; /* said of the present, too: only with "now", or where another verb says that it is done */
} verbs[] = {
    {AGENT_CLAIM_ADDED, adding, adding, false},
    {AGENT_CLAIM_REMOVED, removing, removing, false},
    {AGENT_CLAIM_RENAMED, renaming, renaming, false},
    {AGENT_CLAIM_CHANGED, changing, changing, false},
    {AGENT_CLAIM_USED, using, using_passive, true},
};

/* Words between a verb and a name, or behind the name, that leave it what it is. */
static const char *const fillers[] = {"the", "a", "an", "new", "both", "all", "and", "its", "existing",
    "private", "static", "helper", "helpers", "function", "functions", "method", "methods", "class",
    "classes", "constant", "parameter", "parameters", "argument", "option", "variable", "field", "property",
    "import", "module", "macro", "type", "struct", NULL};
/* What follows is no object any more. */
static const char *const ends[] = {"to", "in", "into", "for", "of", "from", "with", "by", "so", "which",
    "that", "as", "on", "at", "instead", "when", "if", "rather", "where", "after", "while", "because",
    "since", "is", "are", "was", "were", "has", "have", "than", "it", "over", "inside", "within", "until",
    NULL};
static const char *const beings[] = {"is", "are", "was", "were", "been", "be", "being", "gets", NULL};
static const char *const adverbs[] = {"now", "also", "correctly", "successfully", "then", "has", "have",
    "been", "only", "directly", "internally", "properly", NULL};
static const char *const links[] = {"so", "that", "it", "which", "to", NULL};
static const char *const tests[] = {"test", "tests", "testcase", NULL};
static const char *const places[] = {"in", "by", "from", "inside", "within", NULL};

typedef enum token_kind { WORD, NAME, PATH, COMMA, OTHER } token_kind;
typedef struct token {
    token_kind kind;
    agent_word w;
} token;

typedef struct sentence {
    const char *s;
    token tokens[MOST_TOKENS];
    uint32_t n;
    bool is_done; /* something in it is said to be done */
} sentence;

size_t agent__sentence_end(const char *s, size_t at)
{
    while (s[at] && s[at] != '\n' && !(strchr(".;!?", s[at]) && (!s[at + 1] || strchr(" \n", s[at + 1]))))
        at++;
    return at;
}

bool agent__is_denied(const char *text)
{
    static const char *const words[] = {"not", "no", "without", "nothing", "unchanged", "never", "cannot",
        "t", "would", "could", "should", "might", "may", "can", "must", "need", "needs", "before",
        "previously", "originally", "you", "let", NULL};
    return agent__has_any_word(text, words);
}

/* Bytes of "Cls.method", "ns::f", "p->f" at s[at, to). */
static size_t chain_end(const char *s, size_t at, size_t to)
{
    while (at < to) {
        const size_t mark = s[at] == '.'                                                               ? 1
                            : (s[at] == ':' && s[at + 1] == ':') || (s[at] == '-' && s[at + 1] == '>') ? 2
                                                                                                       : 0;
        if (!(mark ? at + mark < to && code_is_name_byte(s[at + mark]) : agent__is_in_word(s, at))) break;
        at += mark ? mark : 1;
    }
    return at;
}

static bool is_path(const char *s, agent_word w)
{
    char *word = agent__copy_word(s, w);
    const bool is = strchr(word, '/') || (strchr(word, '.') && code_language(word, "", 0));
    free(word);
    return is;
}

/* What a backtick at s[*at] holds: a name, with or without what it is called with, a path, or anything else. */
static token read_marked(const char *s, size_t *at, size_t to)
{
    agent_word in;
    const size_t behind = agent__read_marked(s, *at, &in);
    token t = {.kind = OTHER, .w = {*at, *at + 1}};
    if (!behind || behind > to) {
        ++*at;
        return t;
    }
    *at = behind;
    t.w = in;
    const size_t end =
        in.to > in.from && !(s[in.from] >= '0' && s[in.from] <= '9') ? chain_end(s, in.from, in.to) : in.from;
    if (is_path(s, in))
        t.kind = PATH;
    else if (end > in.from && (end == in.to || (s[end] == '(' && s[in.to - 1] == ')'))) {
        t.kind = NAME;
        t.w.to = end;
    }
    return t;
}

static token read_word(const char *s, size_t *at, size_t to)
{
    token t = {.kind = WORD, .w = {*at, chain_end(s, *at, to)}};
    size_t plain = t.w.to;
    if (is_path(s, t.w)) {
        t.kind = PATH;
    } else if (s[plain] == '(' || agent__looks_like_name(s, t.w)) {
        t.kind = NAME;
        if (s[plain] == '(' && plain + 1 < to && s[plain + 1] == ')') plain += 2;
    }
    *at = plain;
    return t;
}

static void read_tokens(const char *s, size_t from, size_t to, sentence *ret)
{
    *ret = (sentence){.s = s};
    for (size_t at = from; at < to && ret->n < MOST_TOKENS;) {
        if (s[at] == '`')
            ret->tokens[ret->n++] = read_marked(s, &at, to);
        else if (agent__is_in_word(s, at))
            ret->tokens[ret->n++] = read_word(s, &at, to);
        else if (s[at] == ',')
            ret->tokens[ret->n++] = (token){COMMA, {at, at + 1}}, at++;
        else if (strchr(":()=", s[at]))
            ret->tokens[ret->n++] = (token){OTHER, {at, at + 1}}, at++;
        else
            at++;
    }
}

static bool is_word(const sentence *x, uint32_t i, const char *const *words)
{
    return i < x->n && x->tokens[i].kind == WORD && agent__is_any_word(x->s, x->tokens[i].w, words);
}

static void add_name(const sentence *x, uint32_t i, agent_claim *c)
{
    if (c->n < AGENT_CLAIM_NAMES) c->names[c->n++] = agent__copy_word(x->s, x->tokens[i].w);
}

static void drop_names(agent_claim *c, uint32_t n)
{
    while (c->n > n) free(c->names[--c->n]);
}

static void claim_free(agent_claim *c)
{
    drop_names(c, 0);
    free(c->of);
    *c = (agent_claim){0};
}

/* The names behind token i, up to what ends them; returns where that stands. "the `Result` annotation" is no claim of Result. */
static uint32_t read_behind(const sentence *x, uint32_t i, agent_claim *c)
{
    uint32_t skipped = 0;
    for (i++; i < x->n; i++) {
        const token_kind kind = x->tokens[i].kind;
        if (kind == OTHER || is_word(x, i, ends)) break;
        c->of_tests |= is_word(x, i, tests);
        if (kind == NAME) add_name(x, i, c);
        if (kind != WORD || is_word(x, i, fillers)) continue;
        if (c->n && x->tokens[i - 1].kind == NAME) drop_names(c, c->n - 1);
        if (c->n || ++skipped > MOST_SKIPPED) break;
    }
    return i;
}

static void turn_round(agent_claim *c)
{
    for (uint32_t i = 0; 2 * i + 1 < c->n; i++) {
        char *name = c->names[i];
        c->names[i] = c->names[c->n - 1 - i];
        c->names[c->n - 1 - i] = name;
    }
}

/* The names in front of a verb in the passive, or of one that they do; false: none stand right in front. */
static bool read_before(const sentence *x, uint32_t i, bool is_passive, agent_claim *c)
{
    static const char *const in[] = {"in", "of", NULL};
    bool is_being = false;
    for (; i-- > 0;) {
        const bool is_place = x->tokens[i].kind == PATH && i > 0 && is_word(x, i - 1, in);
        is_being |= is_word(x, i, beings);
        if (is_place) i--;
        if (!is_place && !is_word(x, i, beings) && !is_word(x, i, adverbs) &&
            !(!is_passive && is_word(x, i, links)))
            break;
    }
    if (is_passive && !is_being) return false;
    for (i++; i-- > 0;) {
        const token_kind kind = x->tokens[i].kind;
        c->of_tests |= is_word(x, i, tests);
        if (kind == NAME) add_name(x, i, c);
        if (kind == OTHER || (kind == WORD && !is_word(x, i, fillers) && !is_word(x, i, tests))) break;
        if (i == 0) break;
    }
    turn_round(c);
    /* "the test of `f` was added" says nothing of f */
    if (is_word(x, i, ends)) drop_names(c, 0);
    return c->n || c->of_tests;
}

/* One name behind a word of that list at token i: "in `f`", "to `g`". */
static char *read_one(const sentence *x, uint32_t i, const char *const *words)
{
    if (!is_word(x, i, words)) return NULL;
    while (++i < x->n && is_word(x, i, fillers))
        ;
    return i < x->n && x->tokens[i].kind == NAME ? agent__copy_word(x->s, x->tokens[i].w) : NULL;
}

/* "the use of", "a call": a noun. */
static bool is_noun(const sentence *x, uint32_t i)
{
    static const char *const articles[] = {"the", "a", "an", "each", "every", "this", "its", "of", NULL};
    return i > 0 && is_word(x, i - 1, articles);
}

static void find_user(const sentence *x, uint32_t i, agent_claim *c)
{
    agent_claim user = {0};
    if (read_before(x, i, false, &user) && user.n == 1) c->of = base_xstrdup(user.names[0]);
    drop_names(&user, 0);
}

/* The claim that the verb at token i makes; false: none. */
static bool read_claim(const sentence *x, uint32_t i, size_t k, agent_claim *ret)
{
    static const char *const to[] = {"to", "into", NULL};
    const agent_claim_kind kind = verbs[k].kind;
    *ret = (agent_claim){.kind = kind};
    if (is_word(x, i, verbs[k].passive) && read_before(x, i, true, ret)) {
        if (kind == AGENT_CLAIM_RENAMED) ret->of = read_one(x, i + 1, to);
        if (kind == AGENT_CLAIM_USED) ret->of = read_one(x, i + 1, places);
    } else if (is_word(x, i, verbs[k].active) && !is_noun(x, i)) {
        drop_names(ret, 0);
        ret->of_tests = false;
        const uint32_t end = read_behind(x, i, ret);
        if (kind == AGENT_CLAIM_RENAMED) ret->of = read_one(x, end, to);
        if (kind == AGENT_CLAIM_USED) find_user(x, i, ret);
    }
    const bool is_one = (ret->n || (ret->of_tests && kind == AGENT_CLAIM_ADDED)) &&
                        (!verbs[k].needs_done || x->is_done || ret->of);
    if (!is_one) claim_free(ret);
    return is_one;
}

static void read_sentence(const sentence *x, agent_claim *all, uint32_t *n)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < sizeof verbs / sizeof *verbs && *n < MOST_CLAIMS; k++)
            if ((is_word(x, i, verbs[k].active) || is_word(x, i, verbs[k].passive)) &&
                read_claim(x, i, k, &all[*n]))
                ++*n;
}

static bool says_done(const char *text)
{
    static const char *const now[] = {"now", NULL};
    bool is = agent__has_any_word(text, now);
    for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++)
        is |= !verbs[k].needs_done && agent__has_any_word(text, verbs[k].active);
    return is;
}

uint32_t agent_read_claims(const char *answer, agent_claim **ret)
{
    sentence *x = base_xmalloc(sizeof *x);
    uint32_t n = 0;
    bool is_fenced = false;
    *ret = base_xcalloc(MOST_CLAIMS, sizeof **ret);
    for (size_t at = 0; answer[at];) {
        const size_t end = agent__sentence_end(answer, at);
        const bool is_fence = !strncmp(answer + at + strspn(answer + at, " "), "```", 3);
        char *text = base_xstrndup(answer + at, end - at);
        if (is_fence) is_fenced = !is_fenced;
        if (!is_fence && !is_fenced && !agent__is_denied(text)) {
            read_tokens(answer, at, end, x);
            x->is_done = says_done(text);
            read_sentence(x, *ret, &n);
        }
        free(text);
        at = end + (answer[end] != '\0');
    }
    free(x);
    return n;
}

void agent_claims_free(agent_claim *claims, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) claim_free(&claims[i]);
    free(claims);
}
