/* Items of the four tasks; see bench/facts/ruler.h. */
#include "bench/facts/ruler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { LINE_MOST = 400, N_FACTS = 8, N_CHAIN = 4, SPECIFIC = 6, LETTERS = 14 };

const char *const ruler_tasks[] = {"mk2", "mk3", "vt", "mq", NULL};

static const char *const adjectives[] = {"amber", "brisk", "clear", "dusty", "eager", "frozen", "gentle",
    "hollow", "ivory", "jolly", "keen", "lively", "mellow", "narrow", "olive", "plain"};
static const char *const nouns[] = {"anchor", "basket", "candle", "dragon", "engine", "falcon", "garden",
    "hammer", "island", "jacket", "kettle", "ladder", "mirror", "needle", "orchid", "pillow"};

/* One thing that is told and can be asked for. */
typedef struct fact {
    char key[40], value[40];
    uint32_t from, to; /* its line */
} fact;

typedef struct maker {
    ruler_item *item;
    const model_tokenizer *tokenizer;
    const model_template *template;
    const base_buf *corpus;
    uint64_t seed;
    size_t cap, at; /* at: in the corpus */
    fact facts[N_FACTS];
} maker;

static uint32_t draw(const maker *m, uint64_t what, uint64_t i)
{
    const uint64_t key[] = {what, i};
    return (uint32_t)(base_hash64(key, sizeof key, m->seed) >> 32);
}

static void add_text(const maker *m, const char *text, size_t n, model_ids *out)
{
    model_tokenizer_encode(m->tokenizer, text, n, false, out);
}

static void begin_line(maker *m)
{
    ruler_item *i = m->item;
    base_grow(&i->lines, &m->cap, i->n_lines + 1, sizeof *i->lines);
    i->lines[i->n_lines++] = (uint32_t)i->ids.n;
}

static void add_line(maker *m, const char *line)
{
    begin_line(m);
    add_text(m, line, strlen(line), &m->item->ids);
}

/* A line of the corpus. */
static void add_filler(maker *m)
{
    const base_buf *c = m->corpus;
    m->at = m->at + 1 < c->len ? m->at + 1 : 0;
    size_t end = m->at;
    while (end < c->len && c->data[end] != '\n') end++;
    begin_line(m);
    add_text(m, c->data + m->at, end - m->at < LINE_MOST ? end - m->at : LINE_MOST, &m->item->ids);
    add_text(m, "\n", 1, &m->item->ids);
    m->at = end;
}

static void put_letters(const maker *m, uint64_t what, uint64_t i, char *ret)
{
    for (size_t k = 0; k < LETTERS; k++)
        ret[k] = k % 5 == 4 ? '-' : "abcdefghijkmnpqrstuvwxyz23456789"[draw(m, what + 100 + k, i) % 32];
    ret[LETTERS] = 0;
}

/* Key and value number i; numbers below N_FACTS are those that may be asked for. */
static void name_fact(const maker *m, const char *task, uint64_t i, fact *f)
{
    if (!strcmp(task, "mk3")) {
        put_letters(m, 20, i, f->key);
        put_letters(m, 60, i, f->value);
        return;
    }
    snprintf(f->key, sizeof f->key, "%s-%s-%02u", adjectives[draw(m, 1, i) % 16], nouns[draw(m, 2, i) % 16],
        10 + (unsigned)((i * 7 + draw(m, 4, 0)) % 90));
    snprintf(f->value, sizeof f->value, "%07u", 1000000 + draw(m, 3, i) % 9000000);
}

static void tell_fact(maker *m, fact *f)
{
    char line[160];
    f->from = (uint32_t)m->item->ids.n;
    snprintf(line, sizeof line, "One of the special magic numbers for %s is: %s.\n", f->key, f->value);
    add_line(m, line);
    f->to = (uint32_t)m->item->ids.n;
}

static bool is_due(const maker *m, uint32_t n_tokens, uint32_t k, uint32_t n)
{
    return k < n && m->item->ids.n >= (uint64_t)n_tokens * (2 * k + 1) / (2 * n);
}

/* Keys all around: every line tells one. mq: among lines of the corpus. */
static void tell_keys(maker *m, const char *task, uint32_t n_tokens, uint32_t n_facts)
{
    const bool among_text = !strcmp(task, "mq");
    uint32_t told = 0;
    for (uint32_t i = 0; i < n_facts; i++) name_fact(m, task, i, &m->facts[i]);
    for (uint64_t line = N_FACTS; m->item->ids.n < n_tokens || told < n_facts; line++) {
        fact other;
        if (is_due(m, n_tokens, told, n_facts))
            tell_fact(m, &m->facts[told++]);
        else if (among_text)
            add_filler(m);
        else {
            name_fact(m, task, line, &other);
            tell_fact(m, &other);
        }
    }
}

/* Two chains of variables, X1 = value, X2 = X1, ..., among lines of the corpus. */
static void tell_chains(maker *m, uint32_t n_tokens)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < 2 * N_CHAIN; i++) {
        fact *f = &m->facts[i];
        const uint32_t r = draw(m, 5, i);
        snprintf(f->key, sizeof f->key, "%c%c%c%u", 'A' + r % 26, 'A' + r / 26 % 26, 'A' + r / 676 % 26, i);
        snprintf(f->value, sizeof f->value, "%05u", 10000 + draw(m, 6, i % 2) % 90000);
    }
    while (m->item->ids.n < n_tokens || told < 2 * N_CHAIN) {
        char line[120];
        if (!is_due(m, n_tokens, told, 2 * N_CHAIN)) {
            add_filler(m);
            continue;
        }
        fact *f = &m->facts[told];
        if (told < 2)
            snprintf(line, sizeof line, "VAR %s = %s\n", f->key, f->value);
        else
            snprintf(line, sizeof line, "VAR %s = VAR %s\n", f->key, m->facts[told - 2].key);
        f->from = (uint32_t)m->item->ids.n;
        add_line(m, line);
        f->to = (uint32_t)m->item->ids.n;
        told++;
    }
}

/* --- questions ------------------------------------------------------------------------------------------ */

static void add_asked(const maker *m, ruler_question *q, const char *text)
{
    const uint32_t from = (uint32_t)q->ids.n;
    add_text(m, text, strlen(text), &q->ids);
    const uint32_t to = (uint32_t)q->ids.n;
    /* The end of a name tells it from the others. */
    for (uint32_t i = to - from > SPECIFIC ? to - SPECIFIC : from; i < to && q->n_queries < RULER_QUERIES;
         i++)
        q->queries[q->n_queries++] = i;
}

static void want(ruler_question *q, const char *text, const fact *f)
{
    snprintf(q->wanted[q->n_wanted], sizeof q->wanted[0], "%s", text);
    q->line[q->n_wanted].from = f->from;
    q->line[q->n_wanted++].to = f->to;
}

static void put(const maker *m, ruler_question *q, const char *text)
{
    add_text(m, text, strlen(text), &q->ids);
}

/* The names that a question of keys asks for; is_marked: their tokens are what asks. */
static void put_names(const maker *m, const char *task, bool later, bool is_marked, ruler_question *q)
{
    const bool many = !strcmp(task, "mq");
    const uint32_t n = many ? 4 : 1;
    char word[64];
    for (uint32_t i = 0; i < n; i++) {
        const fact *f = &m->facts[many ? 2 * i + later : later ? 6 : 1 + m->seed % 4];
        snprintf(word, sizeof word, "%s %s", i == 0 ? "" : i + 1 < n ? "," : " and", f->key);
        if (!is_marked) {
            put(m, q, word);
            continue;
        }
        add_asked(m, q, word);
        want(q, f->value, f);
    }
}

static void put_value(const maker *m, bool later, bool is_marked, ruler_question *q)
{
    char word[64];
    snprintf(word, sizeof word, " %s", m->facts[later].value);
    if (!is_marked) {
        put(m, q, word);
        return;
    }
    add_asked(m, q, word);
    for (uint32_t i = 0; i < N_CHAIN; i++) want(q, m->facts[2 * i + later].key, &m->facts[2 * i + later]);
}

static void turn_to_answer(const maker *m, model_ids *out)
{
    model_template_end(m->template, MODEL_ROLE_USER, out);
    model_template_begin(m->template, MODEL_ROLE_ASSISTANT, out);
}

static void ask_ours(const maker *m, const char *task, bool later, ruler_question *q)
{
    const bool chain = !strcmp(task, "vt"), many = !strcmp(task, "mq");
    const char *prefix;
    if (chain) {
        put(m, q, "\nWhich variables above are assigned the value");
        put_value(m, later, true, q);
        put(m, q, ", directly or through other variables? Answer with their names only.");
        prefix = "The variables are:";
    } else {
        put(m, q,
            many ? "\nWhat are the special magic numbers for" : "\nWhat is the special magic number for");
        put_names(m, task, later, true, q);
        put(m, q,
            many ? " above? Answer with the numbers only, separated by commas."
                 : " above? Answer with the number only.");
        prefix = many ? "The special magic numbers are:" : "The special magic number is:";
    }
    turn_to_answer(m, &q->tail);
    add_text(m, prefix, strlen(prefix), &q->tail);
}

/* Templates and answer prefixes as RULER's own scripts have them. */
static void ask_as_ruler(const maker *m, const char *task, bool later, ruler_question *q)
{
    const bool chain = !strcmp(task, "vt"), many = !strcmp(task, "mq");
    if (chain) {
        put(m, q, "\nQuestion: Find all variables that are assigned the value");
        put_value(m, later, true, q);
        put(m, q, " in the text above.");
        turn_to_answer(m, &q->ids);
        put(m, q,
            "Answer: According to the chain(s) of variable assignment "
            "in the text above, 4 variables are assigned the value");
        put_value(m, later, false, q);
        put(m, q, ", they are:");
    } else {
        put(m, q,
            many ? "\nWhat are all the special magic numbers for" : "\nWhat is the special magic number for");
        put_names(m, task, later, true, q);
        put(m, q, " mentioned in the provided text?");
        turn_to_answer(m, &q->ids);
        put(m, q, many ? "The special magic numbers for" : "The special magic number for");
        put_names(m, task, later, false, q);
        put(m, q, many ? " mentioned in the provided text are" : " mentioned in the provided text is");
    }
    model_ids_add(&q->tail, q->ids.ids[--q->ids.n]);
}

/* Ours ask for numbers and nothing else; RULER's own scripts let a model write 128 tokens, and it may write a list. */
static uint32_t answer_tokens(const char *task, ruler_prompting prompting)
{
    if (!strcmp(task, "vt")) return 32;
    if (prompting == RULER_PROMPT_RULER) return 128;
    return !strcmp(task, "mq") ? 48 : 20;
}

static void ask(const maker *m, const char *task, bool later, ruler_prompting prompting, ruler_question *q)
{
    *q = (ruler_question){.n_new = answer_tokens(task, prompting)};
    if (later) {
        model_template_end(m->template, MODEL_ROLE_ASSISTANT, &q->ids);
        model_template_begin(m->template, MODEL_ROLE_USER, &q->ids);
    }
    (prompting == RULER_PROMPT_RULER ? ask_as_ruler : ask_ours)(m, task, later, q);
}

void ruler_item_make(ruler_item *ret, const model_tokenizer *t, const model_template *template,
    const base_buf *corpus, const char *task, ruler_prompting prompting, uint64_t seed, uint32_t n_tokens)
{
    *ret = (ruler_item){.n_lines = 0};
    maker m = {.item = ret, .tokenizer = t, .template = template, .corpus = corpus, .seed = seed};
    m.at = draw(&m, 7, 0) % corpus->len;
    while (m.at < corpus->len && corpus->data[m.at] != '\n') m.at++;
    static const char *const opening[][2] = {
        [RULER_PROMPT_OURS] =
            {"Some special magic numbers are hidden in the following text. Memorize them.\n\n",
                "Assignments of variables are hidden in the following text. Memorize them.\n\n"},
        [RULER_PROMPT_RULER] = {
            "Some special magic numbers are hidden within the following text. Make sure to memorize "
            "it. I will quiz you about the numbers afterwards.\n",
            "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n"}};
    add_line(&m, opening[prompting][!strcmp(task, "vt")]);
    if (!strcmp(task, "vt"))
        tell_chains(&m, n_tokens);
    else
        tell_keys(&m, task, n_tokens, N_FACTS);
    ask(&m, task, false, prompting, &ret->first);
    ask(&m, task, true, prompting, &ret->later);
}

static void question_free(ruler_question *q)
{
    model_ids_free(&q->ids);
    model_ids_free(&q->tail);
}

void ruler_item_free(ruler_item *i)
{
    model_ids_free(&i->ids);
    free(i->lines);
    question_free(&i->first);
    question_free(&i->later);
}

uint32_t ruler_found(const ruler_question *q, const char *answer, bool *found)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->n_wanted; i++) {
        const bool has = strstr(answer, q->wanted[i]) != NULL;
        if (found) found[i] = has;
        n += has;
    }
    return n;
}
