/* What the files of the grammar share: its states, and steps that more than one of them takes. Nobody else's. */
#ifndef KVIST_MODEL_GRAMMAR_STATE_H
#define KVIST_MODEL_GRAMMAR_STATE_H

#include "model/text/grammar.h"
#include "model/text/grammar_list.h"
#include "model/text/token_trie.h"

enum {
    MAX_TOOLS = 64,
    MAX_ARGUMENTS = 32, /* bits of state.keys */
    MAX_SPACE = 12,     /* white space in one place: an indented call */
    MAX_STRING = 4096,
    MAX_DIGITS = 18,    /* fits an int64 */
    MAX_TEXT = 1 << 16, /* a whole file as a parameter */
};

typedef struct argument {
    char *name;
    size_t n_name;
    model_argument_type type;
    bool required;
    grammar_list choices;
} argument;

typedef struct tool {
    argument *arguments;
    uint32_t n_arguments;
} tool;

typedef enum phase {
    IDLE, /* free text, inside a line */
    LINE, /* free text, and since the start of the line nothing but the trigger's first bytes */
    INDENT,
    MARKS,        /* backticks or tildes that may be a fence */
    CLOSING,      /* behind marks that close the fence if nothing else stands on the line */
    HARMONY_HEAD, /* free, in the head of a message: grammar_harmony.c */
    HARMONY_BODY, /* free, in its text */
    MARKED_TEXT,  /* free, of Mistral and Gemma: grammar_marks.c */
    SCRIPT,
    TOOL_NAME,
    FIRST_ARGUMENT,
    NEXT_ARGUMENT,
    OPEN_KEY,
    KEY,
    COLON,
    VALUE,
    STRING,
    INTEGER,
    WORD,
    LISTED,
    XML_BETWEEN, /* grammar_xml.c */
    XML_TAG,
    XML_OPEN,
    XML_KEY,
    XML_VALUE,
    XML_INTEGER,
    XML_LISTED,
    XML_TEXT,
    XML_CLOSE,
    HARMONY_REST,
    N_PHASES
} phase;

/*
 * Marks of harmony, of Mistral, of Gemma and of Granite 3 are control tokens. To the steps each is a byte that no text of a call holds; scripts
 * name them so.
 */
#define HARMONY_CHANNEL   "\x0e"
#define HARMONY_CONSTRAIN "\x0f"
#define HARMONY_MESSAGE   "\x10"
#define HARMONY_CALL      "\x11"
#define HARMONY_START     "\x12"
#define HARMONY_END       "\x13"
#define MISTRAL_CALLS     "\x0e"
#define MISTRAL_ARGS      "\x0f"
#define MISTRAL_END       "\x10"
#define MISTRAL_ID        "\x11"
#define GEMMA_CALL        MISTRAL_CALLS
#define GEMMA_QUOTE       "\x0f"
#define GEMMA_END         "\x10"
#define LIST_CALLS        MISTRAL_CALLS /* Granite 3, Nemo */
#define LIST_END          "\x0f"
enum { GRAMMAR_FIRST_MARK = 0x0e, GRAMMAR_MOST_MARKS = 6 };

typedef struct state {
    uint8_t phase, character;
    uint8_t fence, marks; /* marks of the fence that is open, 0: none; and of those being read */
    bool called;          /* a whole call was written */
    uint8_t n_space;      /* white space taken in this place */
    uint8_t at_key;       /* bytes of the key so far, saturating is impossible: names are short */
    uint16_t at;          /* in the trigger (LINE) or in the script */
    uint16_t tool, argument;
    uint32_t keys; /* KEY: which arguments it may still become */
    uint32_t used; /* Gemma: which arguments were written */
    uint32_t n;    /* bytes of a string, digits of a number */
    grammar_range range;
} state;

/*
 * A mask and the state that it belongs to, in numbers; keeping a few serves a whole session, since calls are
 * alike.
 */
enum { N_KEPT = 32, N_KEY = 16 };
typedef struct kept_mask {
    uint32_t key[N_KEY];
    uint64_t used; /* 0: empty */
    bool any;
    uint64_t *bits;
} kept_mask;

struct model_grammar {
    const model_tokenizer *tokenizer;
    const char *trigger, *script;
    grammar_list names; /* sorted; place = place in tools */
    tool tools[MAX_TOOLS];
    grammar_list paths, words; /* words: false, true */
    bool any_path, is_xml, is_harmony;
    bool is_inline; /* XML of Seed-OSS: values directly between their tags */
    /* Gemma: no blanks, keys without quotes in any order, and text as it is between two marks */
    bool is_bare;
    uint8_t quote;                     /* around text: a character or a mark */
    uint8_t n_marks;                   /* 0: its calls are text */
    grammar_list heads;                /* harmony: what may stand between a tool's name and its arguments */
    int32_t marks[GRAMMAR_MOST_MARKS]; /* their ids, -1: the vocabulary has none */
    int32_t think[2];                  /* <think> and its end, or Seed-OSS's; -1: the vocabulary has none */
    bool in_thought;                   /* everything goes there, and nothing of it is a call */
    bool is_begun;                     /* the answer has words, and begins no thought any more */
    state now;
    const token_trie *trie; /* the tokenizer's; asked for by the first mask */
    state *stack;           /* [trie->max_depth + 1] */
    kept_mask kept[N_KEPT];
    uint64_t n_asked;
    uint64_t *mask; /* the one being filled */
};

/* ---- one byte ---- */

typedef enum verdict { REFUSED, TAKEN, AGAIN } verdict; /* AGAIN: the phase is over before this byte */
typedef verdict step_fn(const model_grammar *g, state *s, uint8_t byte);

static inline verdict go(state *s, phase next, verdict v)
{
    s->phase = (uint8_t)next;
    s->n_space = 0;
    return v;
}

static inline bool take_space(state *s, uint8_t byte)
{
    if (byte != ' ' && byte != '\n' && byte != '\t' && byte != '\r') return false;
    if (s->n_space >= MAX_SPACE) return false;
    s->n_space++;
    return true;
}

/* Arguments from s->argument on that may come next: up to the first that must. In any order: those not written yet. */
static inline uint32_t next_keys(const model_grammar *g, const state *s)
{
    const tool *t = &g->tools[s->tool];
    uint32_t keys = 0;
    for (uint32_t i = g->is_bare ? 0 : s->argument; i < t->n_arguments; i++) {
        keys |= 1u << i;
        if (t->arguments[i].required && !g->is_bare) break;
    }
    return keys & ~s->used;
}

static inline bool may_close(const model_grammar *g, const state *s)
{
    const tool *t = &g->tools[s->tool];
    for (uint32_t i = g->is_bare ? 0 : s->argument; i < t->n_arguments; i++)
        if (t->arguments[i].required && !(s->used >> i & 1)) return false;
    return true;
}

static inline const argument *current(const model_grammar *g, const state *s)
{
    return &g->tools[s->tool].arguments[s->argument];
}

/* What a CHOICE or PATH argument may be; NULL: any string. */
static inline const grammar_list *listed(const model_grammar *g, const argument *a)
{
    if (a->type == MODEL_ARGUMENT_CHOICE) return &a->choices;
    return a->type == MODEL_ARGUMENT_PATH && !g->any_path ? &g->paths : NULL;
}

/* In order of the phases from XML_BETWEEN on: a call as Qwen3-Coder writes it, its parameters. */
#define GRAMMAR_XML_STEPS(X)                                                                                 \
    X(XML_BETWEEN, between)                                                                                  \
    X(XML_TAG, tag)                                                                                          \
    X(XML_OPEN, open)                                                                                        \
    X(XML_KEY, key)                                                                                          \
    X(XML_VALUE, value)                                                                                      \
    X(XML_INTEGER, integer)                                                                                  \
    X(XML_LISTED, listed)                                                                                    \
    X(XML_TEXT, text)                                                                                        \
    X(XML_CLOSE, close)
#define GRAMMAR_XML_DECLARE(phase, step)                                                                     \
    verdict grammar_xml_##step(const model_grammar *g, state *s, uint8_t byte);
GRAMMAR_XML_STEPS(GRAMMAR_XML_DECLARE)
#undef GRAMMAR_XML_DECLARE

/* grammar_harmony.c */
verdict grammar_harmony_head(const model_grammar *g, state *s, uint8_t byte);
verdict grammar_harmony_body(const model_grammar *g, state *s, uint8_t byte);
verdict grammar_harmony_rest(const model_grammar *g, state *s, uint8_t byte);
void grammar_harmony_fill_heads(model_grammar *g);

/* grammar_marks.c */
verdict grammar_marks_text(const model_grammar *g, state *s, uint8_t byte);
void grammar_marks_find(model_grammar *g, model_tool_style style);
uint8_t grammar_marks_byte(const model_grammar *g, int32_t id); /* a mark's; 0: the token is none */
bool grammar_marks_has(const model_grammar *g, uint8_t byte);

#endif
