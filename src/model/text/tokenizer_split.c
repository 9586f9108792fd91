/*
 * The splitters: qwen2, qwen35 (marks are letters), llama-bpe (also dbrx and smaug-bpe), seed-coder, gpt-2, smollm (gpt-2 between single digits), and
 * tekken and gpt-4o (o200k), which ask for case.
 *
 * A text of n bytes costs O(n): every alternative looks ahead over a run that it then takes as a whole. What
 * is not a letter, number or white space (marks, punctuation, symbols, control, unassigned) is one class,
 * "other".
 */
#include "model/text/tokenizer_split.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "model/text/unicode_table.h"

enum { LETTER = UNICODE_LETTER, NUMBER = UNICODE_NUMBER, SPACE = UNICODE_SPACE, OTHER = 8, END = 0 };

/* The class of the code point at p and its bytes; END and 0 at the end. */
static inline unsigned class_at(const char *p, const char *end, size_t *n)
{
    if (p >= end) return *n = 0, END;
    uint32_t cp = (unsigned char)*p;
    *n = cp < 0x80 ? 1 : base_utf8_decode(p, (size_t)(end - p), &cp);
    unsigned class = unicode_flags(cp) & (LETTER | NUMBER | SPACE);
    return class ? class : OTHER;
}

/* The same where marks are counted as letters. */
static unsigned class_with_marks(const char *p, const char *end, size_t *n)
{
    uint32_t cp = 0;
    unsigned class = class_at(p, end, n);
    if (class != OTHER || (unsigned char)*p < 0x80) return class;
    base_utf8_decode(p, (size_t)(end - p), &cp);
    return unicode_flags(cp) & UNICODE_MARK ? LETTER : OTHER;
}

typedef unsigned class_fn(const char *p, const char *end, size_t *n);

/* Behind the run of code points of `class` that starts at p. */
static inline const char *skip_of(const char *p, const char *end, unsigned class, class_fn *class_of)
{
    size_t n;
    while (class_of(p, end, &n) == class) p += n;
    return p;
}

static const char *skip(const char *p, const char *end, unsigned class)
{
    return skip_of(p, end, class, class_at);
}

static bool is_newline(const char *p, const char *end)
{
    return p < end && (*p == '\r' || *p == '\n');
}

/* 's 't 're 've 'm 'll 'd: the bytes it takes, or 0. */
static size_t contraction(const char *p, const char *end, bool any_case)
{
    static const char *const tails[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (p >= end || *p != '\'') return 0;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        size_t k = 0;
        while (tails[i][k] && p + 1 + k < end && (any_case ? p[1 + k] | 0x20 : p[1 + k]) == tails[i][k]) k++;
        if (!tails[i][k]) return 1 + k;
    }
    return 0;
}

/* White space at p: \s+(?!\S)|\s+, so that a word keeps the last character before it. */
static const char *take_space(const char *p, const char *end)
{
    const char *last = p, *q = p;
    size_t n;
    while (class_at(q, end, &n) == SPACE) last = q, q += n;
    return q < end && last > p ? last : q;
}

/* \s*[\r\n]+: behind the last newline of the run of white space at p, or NULL. */
static const char *take_lines(const char *p, const char *end)
{
    const char *behind = NULL;
    size_t n;
    while (class_at(p, end, &n) == SPACE) {
        if (is_newline(p, end)) behind = p + n;
        p += n;
    }
    return behind;
}

/* [^\s\p{L}\p{N}]+ behind what may be one space, with the characters of `tail` that follow; NULL: none is there. */
static inline const char *take_other(const char *p, const char *end, const char *tail, class_fn *class_of)
{
    size_t n;
    const char *from = *p == ' ' ? p + 1 : p, *q = skip_of(from, end, OTHER, class_of);
    if (class_of(from, end, &n) != OTHER) return NULL;
    while (q < end && *q && strchr(tail, *q)) q++;
    return q;
}

/*
 * (?:'[sS]|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[tail]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * With class_with_marks [\p{L}\p{M}] stands for \p{L}, but for what may lead a word: there a mark may, which
 * comes to the same.
 */
static inline const char *next_modern(
    const char *p, const char *end, int digits, const char *tail, class_fn *class_of)
{
    size_t n, n2;
    size_t short_word = contraction(p, end, true);
    if (short_word) return p + short_word;
    unsigned first = class_of(p, end, &n), second = class_of(p + n, end, &n2);
    if (first == LETTER) return skip_of(p, end, LETTER, class_of);
    if (first != NUMBER && second == LETTER && !is_newline(p, end))
        return skip_of(p + n, end, LETTER, class_of);
    if (first == NUMBER) {
        const char *q = p;
        while (digits-- > 0 && class_of(q, end, &n) == NUMBER) q += n;
        return q;
    }
    const char *other = take_other(p, end, tail, class_of);
    if (other) return other;
    const char *lines = take_lines(p, end);
    return lines ? lines : take_space(p, end);
}

/*
 * The case of the code point at p, in tekken's terms: UPPER may stand before what is lower ([Lu Lt Lm Lo M]),
 * LOWER behind it ([Ll Lm Lo M]); letters without case and marks are both.
 */
enum { UPPER = 1, LOWER = 2 };

static unsigned case_at(const char *p, const char *end, size_t *n)
{
    uint32_t cp = 0;
    if (p >= end) return *n = 0, 0;
    *n = base_utf8_decode(p, (size_t)(end - p), &cp);
    unsigned flags = unicode_flags(cp);
    if (flags & UNICODE_UPPER) return UPPER;
    if (flags & UNICODE_LOWER) return LOWER;
    return flags & (UNICODE_LETTER | UNICODE_MARK) ? UPPER | LOWER : 0;
}

/*
 * [Lu Lt Lm Lo M]*[Ll Lm Lo M]+ at p, or NULL. The first part takes all it can and gives back until the second
 * has one: that is the last of its own that is both.
 */
static const char *take_lower_word(const char *p, const char *end)
{
    const char *behind_both = NULL;
    size_t n;
    unsigned is;
    for (; (is = case_at(p, end, &n)) & UPPER; p += n)
        if (is & LOWER) behind_both = p + n;
    if (!(is & LOWER)) return behind_both;
    while (case_at(p, end, &n) & LOWER) p += n;
    return p;
}

/* [Lu Lt Lm Lo M]+ at p where nothing lower follows (that was tried before), or NULL */
static const char *take_upper_word(const char *p, const char *end)
{
    const char *q = p;
    size_t n;
    while (case_at(q, end, &n) & UPPER) q += n;
    return q > p ? q : NULL;
}

/* A word with the contraction that belongs to it (o200k): 's may end in the long s, which is an s without case. */
static const char *take_tail(const char *word, const char *end)
{
    static const char long_s[] = "'\xc5\xbf";
    const size_t n = sizeof long_s - 1;
    if ((size_t)(end - word) >= n && memcmp(word, long_s, n) == 0) return word + n;
    return word + contraction(word, end, true);
}

/*
 * LEAD?[Lu Lt Lm Lo M]*[Ll Lm Lo M]+TAIL?|LEAD?[Lu Lt Lm Lo M]+[Ll Lm Lo M]*TAIL?|\p{N}{1,digits}|
 *  ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+ with LEAD [^\r\n\p{L}\p{N}]; TAIL, which tekken has not,
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)
 */
static inline const char *next_cased(const char *p, const char *end, int digits, bool tails)
{
    size_t n;
    const char *q = NULL;
    unsigned first = class_at(p, end, &n);
    bool may_lead = first != LETTER && first != NUMBER && !is_newline(p, end);
    if (may_lead) q = take_lower_word(p + n, end);
    if (!q) q = take_lower_word(p, end);
    if (!q && may_lead) q = take_upper_word(p + n, end);
    if (!q) q = take_upper_word(p, end);
    if (q) return tails ? take_tail(q, end) : q;
    if (first == NUMBER) {
        for (q = p; digits-- > 0 && class_at(q, end, &n) == NUMBER;) q += n;
        return q;
    }
    if ((q = take_other(p, end, "\r\n/", class_at))) return q;
    const char *lines = take_lines(p, end);
    return lines ? lines : take_space(p, end);
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S), and what is left over by itself */
static const char *next_gpt2(const char *p, const char *end)
{
    size_t n;
    size_t short_word = contraction(p, end, false);
    if (short_word) return p + short_word;
    const char *q = *p == ' ' ? p + 1 : p;
    unsigned class = class_at(q, end, &n);
    if (class != SPACE && class != END) return skip(q, end, class);
    return take_space(p, end);
}

static size_t move(split_walk *w, const char *to)
{
    size_t n = (size_t)(to - w->at);
    w->at = to;
    return n;
}

static size_t split_qwen2(split_walk *w)
{
    return w->at < w->end ? move(w, next_modern(w->at, w->end, 1, "\r\n", class_at)) : 0;
}

/* Punctuation does not take the line's end. */
static size_t split_seed(split_walk *w)
{
    return w->at < w->end ? move(w, next_modern(w->at, w->end, 1, "", class_at)) : 0;
}

static size_t split_qwen35(split_walk *w)
{
    return w->at < w->end ? move(w, next_modern(w->at, w->end, 1, "\r\n", class_with_marks)) : 0;
}

static size_t split_llama3(split_walk *w)
{
    return w->at < w->end ? move(w, next_modern(w->at, w->end, 3, "\r\n", class_at)) : 0;
}

static size_t split_tekken(split_walk *w)
{
    return w->at < w->end ? move(w, next_cased(w->at, w->end, 1, false)) : 0;
}

static size_t split_o200k(split_walk *w)
{
    return w->at < w->end ? move(w, next_cased(w->at, w->end, 3, true)) : 0;
}

static size_t split_gpt2(split_walk *w)
{
    return w->at < w->end ? move(w, next_gpt2(w->at, w->end)) : 0;
}

/* Two passes in one: every number is a word, and the inner expression does not see beyond the next number. */
static size_t split_smollm(split_walk *w)
{
    size_t n;
    if (w->at >= w->end) return 0;
    if (class_at(w->at, w->end, &n) == NUMBER) return move(w, w->at + n);
    if (!w->segment_end || w->segment_end <= w->at) {
        const char *q = w->at;
        for (unsigned class; (class = class_at(q, w->end, &n)) != NUMBER && class != END;) q += n;
        w->segment_end = q;
    }
    return move(w, next_gpt2(w->at, w->segment_end));
}

/* Gemma 4 merges across words; only runs of line ends stand apart. */
static size_t split_lines(split_walk *w)
{
    const char *q = w->at;
    if (q >= w->end) return 0;
    const bool is_end = *q == '\n';
    while (q < w->end && (*q == '\n') == is_end) q++;
    return move(w, q);
}

const split_kind *split_find(const char *pre, size_t n)
{
    /* clang-format off */
    static const split_kind kinds[] = {
        {"qwen2",     split_qwen2,  0, 0},
        {"qwen35",    split_qwen35, 0, 0},
        {"seed-coder", split_seed,  0, 0},
        {"smollm",    split_smollm, 0, 0},
        {"llama-bpe", split_llama3, 1, 1},
        {"dbrx",      split_llama3, 0, 0},
        {"smaug-bpe", split_llama3, 0, 0},
        {"refact",    split_smollm, 0, 0},
        {"gpt-2",     split_gpt2,   0, 0},
        {"tekken",    split_tekken, 1, 1},
        {"gpt-4o",    split_o200k,  0, 0},
        {"gemma4",    split_lines,  0, 1},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].pre) == n && memcmp(kinds[i].pre, pre, n) == 0) return &kinds[i];
    return NULL;
}
