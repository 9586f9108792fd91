/*
 * JSON of a schema (base/schema.h) as a grammar over bytes. What comes out is one value on one line, with ", " and
 * ": " between its parts and members in the schema's order.
 *
 * Values nest, so the state has a stack; alternatives that begin alike are followed side by side, so it is a set
 * of stacks. Stacks share what they have in common: a frame is made once and known by its number, and a thread is a
 * frame with a few numbers. So trying a byte copies some 40 bytes a thread (as the graph-structured stacks of
 * generalised LR parsing do: Tomita, 1987).
 *
 * Every state can be completed: nesting is bounded, and a part is begun only where what it requires still fits.
 * schema_grammar_cost says with how many bytes; for every state with a cost above 0 there is a byte that makes it
 * smaller by 1 at least, so that who keeps the cost below what is left always comes to an end.
 */
#ifndef KVIST_MODEL_SCHEMA_GRAMMAR_H
#define KVIST_MODEL_SCHEMA_GRAMMAR_H

#include "model/text/schema_leaves.h"

typedef struct schema_thread {
    uint32_t frame; /* of the array or object that is open */
    uint32_t node;  /* what is being read */
    uint8_t phase, character;
    uint16_t at;         /* in a text that is fixed */
    uint32_t n;          /* the member; characters of a string; digits of a number */
    int64_t value;       /* digits so far; of a name that is free, its hash */
    grammar_range range; /* in a list of values, or of names */
    uint32_t n_decimals; /* of a number: 1 + those that came, 0: no point yet */
} schema_thread;

typedef struct schema_state {
    uint32_t n;
    schema_thread threads[SCHEMA_MOST_THREADS];
} schema_state;

typedef struct schema_grammar schema_grammar;

/*
 * The schema must live as long. BASE_E_FORMAT: no finite value fits it; BASE_E_UNSUPPORTED: more alternatives in one
 * place than are followed.
 */
int schema_grammar_new(schema_grammar **ret, const base_schema *schema, base_err *err);
void schema_grammar_free(schema_grammar *g);

/* In front of a value. States of before are void. */
void schema_grammar_begin(schema_grammar *g, schema_state *ret);
static inline void schema_state_copy(schema_state *to, const schema_state *from)
{
    to->n = from->n;
    for (uint32_t i = 0; i < from->n; i++) to->threads[i] = from->threads[i];
}
/* One byte; false: it cannot come (*to is void). `to` is not `from`. It may make frames. */
bool schema_grammar_take(schema_grammar *g, const schema_state *from, schema_state *to, uint8_t byte);
/* May the value end here? */
bool schema_grammar_is_whole(const schema_grammar *g, const schema_state *s);
/* Bytes to the nearest end. */
uint32_t schema_grammar_cost(const schema_grammar *g, const schema_state *s);
/* Is it inside a string whose characters are free? */
bool schema_grammar_is_free(const schema_state *s);
/*
 * Where text is free: characters that may come whatever they are, but for quotes, backslashes and controls (0: text is
 * free nowhere); a bound of the cost behind them; and the threads that are elsewhere.
 */
typedef struct schema_free_text {
    uint32_t n_characters, cost;
    schema_state others;
} schema_free_text;
void schema_grammar_free_text(const schema_grammar *g, const schema_state *s, schema_free_text *ret);
/* Frames that nobody needs are dropped where there are many; *s is numbered anew. True: it was. */
bool schema_grammar_tidy(schema_grammar *g, schema_state *s);

#endif
