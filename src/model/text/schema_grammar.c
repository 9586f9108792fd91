/* Threads over shared frames (contract: schema_grammar.h). */
#include "model/text/schema_grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/text/json_character.h"
#include "model/text/schema_frames.h"

enum { MOST_FREE_DIGITS = 15 };

struct schema_grammar {
    schema_leaves leaves;
    schema_frames frames; /* over `leaves` */
};

typedef enum phase {
    VALUE, /* a value of `node` */
    AFTER, /* a value is complete */
    STRING,
    WORD,   /* null, true, false */
    LISTED, /* one of a list of values */
    NUMBER, /* bounded */
    FREE_NUMBER,
    NAME,     /* of member n of `node`, up to its value */
    OPEN_KEY, /* what stands in front of a free name */
    KEY,
    COLON,
    ITEM, /* the blank in front of an item */
} phase;

static const char *const words[] = {"null", "true", "false"};

static const base_schema_node *node_of(const schema_grammar *g, uint32_t at)
{
    return base_schema_at(g->leaves.schema, at);
}

/* ---- one byte ---- */

static void emit(const schema_grammar *g, schema_state *out, schema_thread t);

static schema_thread after_thread(uint32_t at)
{
    return (schema_thread){.frame = at, .phase = AFTER};
}

static bool fits(const schema_grammar *g, uint32_t at, uint32_t node)
{
    return node != BASE_SCHEMA_NONE &&
           g->frames.all[at].depth + g->leaves.all[node].height <= SCHEMA_MOST_NESTING;
}

/* Is nothing required from this member on? */
static bool may_end(const schema_grammar *g, uint32_t node, uint32_t index)
{
    return !g->leaves.all[node].needed[index];
}

static void open_frame(schema_grammar *g, uint32_t at, uint32_t node, bool is_array, schema_state *out)
{
    const uint32_t height = is_array ? g->leaves.all[node].array_height : g->leaves.all[node].object_height;
    if (g->frames.all[at].depth + height > SCHEMA_MOST_NESTING) return;
    const schema_frame f = {.parent = at, .node = node, .is_array = is_array};
    emit(g, out, after_thread(schema_frames_number(&g->frames, f)));
}

static number_state number_of(const schema_thread *t)
{
    return (number_state){t->character, t->n, t->n_decimals, t->value};
}

static void step_number(const schema_grammar *g, schema_thread t, uint8_t byte, schema_state *out)
{
    number_state s = number_of(&t);
    if (!number_take(&g->leaves.all[t.node].range, &s, byte)) return;
    t.character = s.is_negative;
    t.n = s.n_digits;
    t.n_decimals = s.n_decimals;
    t.value = s.value;
    emit(g, out, t);
}

/* A JSON number of any size, its parts bounded. `character` says what came last. */
enum { NOTHING, MINUS, ZERO, DIGITS, POINT, DECIMALS, EXPONENT, SIGN, POWER };

static void step_free_number(const schema_grammar *g, schema_thread t, uint8_t byte, schema_state *out)
{
    const bool digit = byte >= '0' && byte <= '9';
    const uint8_t c = t.character;
    uint8_t next = NOTHING;
    if (digit && c <= MINUS) next = byte == '0' ? ZERO : DIGITS;
    if (digit && (c == DIGITS || c == DECIMALS || c == POWER)) next = c;
    if (digit && (c == POINT || c == EXPONENT || c == SIGN)) next = c == POINT ? DECIMALS : POWER;
    if (byte == '-' && c == NOTHING) next = MINUS;
    if (byte == '.' && (c == ZERO || c == DIGITS)) next = POINT;
    if ((byte | 0x20) == 'e' && (c == ZERO || c == DIGITS || c == DECIMALS)) next = EXPONENT;
    if ((byte == '+' || byte == '-') && c == EXPONENT) next = SIGN;
    if (next == NOTHING) return;
    t.n = next == c ? t.n + 1 : 1;
    if (t.n > (next == POWER ? 2 : MOST_FREE_DIGITS)) return;
    t.character = next;
    emit(g, out, t);
}

/* Where a number may end. */
static bool is_number(const schema_grammar *g, const schema_thread *t)
{
    const uint8_t c = t->character;
    if (t->phase == FREE_NUMBER) return c == ZERO || c == DIGITS || c == DECIMALS || c == POWER;
    const number_state s = number_of(t);
    return !number_missing(&g->leaves.all[t->node].range, &s);
}

static void begin_leaf(schema_grammar *g, uint32_t at, uint32_t leaf_node, uint8_t byte, schema_state *out)
{
    const schema_leaf *l = &g->leaves.all[leaf_node];
    const unsigned types = node_of(g, leaf_node)->types;
    schema_thread t = {.frame = at, .node = leaf_node};
    if (l->values.n) {
        t.phase = LISTED;
        t.range = grammar_list_all(&l->values);
        if (grammar_list_narrow(&l->values, &t.range, byte)) emit(g, out, t);
        return;
    }
    if (byte == '"' && types & BASE_SCHEMA_STRING) {
        t.phase = STRING;
        emit(g, out, t);
    }
    if (byte == '{' && types & BASE_SCHEMA_OBJECT) open_frame(g, at, leaf_node, false, out);
    if (byte == '[' && types & BASE_SCHEMA_ARRAY) open_frame(g, at, leaf_node, true, out);
    for (uint32_t w = 0; w < 3; w++) {
        if (byte != (uint8_t)words[w][0] || !(types & (w ? BASE_SCHEMA_BOOLEAN : BASE_SCHEMA_NULL))) continue;
        t.phase = WORD;
        t.n = w;
        t.at = 1;
        emit(g, out, t);
    }
    if (!(types & (BASE_SCHEMA_INTEGER | BASE_SCHEMA_NUMBER)) ||
        (byte != '-' && !(byte >= '0' && byte <= '9')))
        return;
    t.phase = l->has_range ? NUMBER : FREE_NUMBER;
    (l->has_range ? step_number : step_free_number)(g, t, byte, out);
}

static void begin_value(schema_grammar *g, uint32_t frame_at, uint32_t node, uint8_t byte, schema_state *out)
{
    const schema_leaf *l = &g->leaves.all[node];
    for (uint32_t i = 0; i < l->n_leaves; i++) begin_leaf(g, frame_at, l->leaves[i], byte, out);
}

/* The frame behind one member or item more. */
static uint32_t with_member(schema_grammar *g, uint32_t at, uint32_t index)
{
    schema_frame f = g->frames.all[at];
    f.index = index;
    f.begun = true;
    return schema_frames_number(&g->frames, f);
}

static uint32_t with_item(schema_grammar *g, uint32_t at)
{
    const schema_frame *f = &g->frames.all[at];
    const base_schema_node *n = node_of(g, f->node);
    int64_t matters = n->min_items > (int64_t)n->n_prefix ? n->min_items : (int64_t)n->n_prefix + 1;
    if (n->max_items > matters) matters = n->max_items;
    return with_member(g, at, (int64_t)f->index < matters ? f->index + 1 : f->index);
}

/* The node of the next item; NONE: there is none. */
static uint32_t next_item(const schema_grammar *g, uint32_t at)
{
    const schema_frame *f = &g->frames.all[at];
    const base_schema_node *n = node_of(g, f->node);
    if (n->max_items >= 0 && (int64_t)f->index >= n->max_items) return BASE_SCHEMA_NONE;
    const uint32_t node = f->index < n->n_prefix ? n->prefix[f->index] : n->items;
    return fits(g, at, node) ? node : BASE_SCHEMA_NONE;
}

static void after_in_array(schema_grammar *g, uint32_t at, uint8_t byte, schema_state *out)
{
    const schema_frame f = g->frames.all[at];
    const uint32_t item = next_item(g, at);
    if (byte == ']') {
        if ((int64_t)f.index >= node_of(g, f.node)->min_items) emit(g, out, after_thread(f.parent));
    } else if (item == BASE_SCHEMA_NONE) {
        return;
    } else if (!f.begun) {
        begin_value(g, with_item(g, at), item, byte, out);
    } else if (byte == ',') {
        emit(g, out, (schema_thread){.frame = with_item(g, at), .node = item, .phase = ITEM});
    }
}

static void after_in_object(schema_grammar *g, uint32_t at, uint8_t byte, schema_state *out)
{
    const schema_frame f = g->frames.all[at];
    const base_schema_node *n = node_of(g, f.node);
    uint32_t i = f.index;
    if (byte == '}') {
        if (may_end(g, f.node, f.index)) emit(g, out, after_thread(f.parent));
        return;
    }
    if (byte != (f.begun ? ',' : '"')) return;
    for (; i < n->n_properties; i++) {
        if (fits(g, at, n->properties[i].node))
            emit(g, out, (schema_thread){.frame = at, .node = f.node, .phase = NAME, .n = i, .at = 1});
        if (n->properties[i].required) return;
    }
    if (!fits(g, at, n->additional)) return;
    schema_thread key = {.frame = at, .node = f.node, .phase = f.begun ? OPEN_KEY : KEY, .at = 1};
    if (!f.begun) key.range = grammar_list_all(&g->leaves.all[f.node].listed);
    emit(g, out, key);
}

static void after(schema_grammar *g, uint32_t at, uint8_t byte, schema_state *out)
{
    if (at == SCHEMA_ROOT) return;
    (g->frames.all[at].is_array ? after_in_array : after_in_object)(g, at, byte, out);
}

/* Counted only where a bound asks for it, so that states that mean the same are the same. */
static void step_string(schema_grammar *g, schema_thread t, uint8_t byte, schema_state *out)
{
    const base_schema_node *n = node_of(g, t.node);
    if (t.character != PLAIN) {
        if (json_character_step(byte, &t.character)) emit(g, out, t);
        return;
    }
    if (byte == '"') {
        if ((int64_t)t.n >= n->min_length) emit(g, out, after_thread(t.frame));
        return;
    }
    if (n->max_length >= 0 && (int64_t)t.n >= n->max_length) return;
    if (n->max_length >= 0 || (int64_t)t.n < n->min_length) t.n++;
    if (json_character_begin(byte, &t.character)) emit(g, out, t);
}

static void step_name(schema_grammar *g, schema_thread t, uint8_t byte, schema_state *out)
{
    const char *name = g->leaves.all[t.node].names[t.n];
    const schema_frame *f = &g->frames.all[t.frame];
    const size_t separator = f->begun ? 2 : 0; /* ", " */
    const char expected = t.at < separator ? ", "[t.at] : name[t.at - separator];
    if (byte != (uint8_t)expected) return;
    t.at++;
    if (t.at < separator || name[t.at - separator]) {
        emit(g, out, t);
        return;
    }
    const uint32_t value = node_of(g, t.node)->properties[t.n].node;
    emit(g, out, (schema_thread){.frame = with_member(g, t.frame, t.n + 1), .node = value, .phase = VALUE});
}

/* Was a free name with this hash written into the object already? */
static bool is_doubled(const schema_grammar *g, uint32_t at, uint64_t hash)
{
    for (; g->frames.all[at].hash; at = g->frames.all[at].before)
        if (g->frames.all[at].hash == hash) return true;
    return false;
}

/* A name that is as long as names may be cannot get out of the way of one that stands already. */
static bool may_end_key(const schema_grammar *g, const schema_thread *t)
{
    const bool is_listed =
        t->range.depth != UINT32_MAX && grammar_list_is_whole(&g->leaves.all[t->node].listed, &t->range);
    return t->n && !is_listed &&
           (t->n >= SCHEMA_MOST_KEY || !is_doubled(g, t->frame, (uint64_t)t->value | 1));
}

/* A name that is free: plain characters, none of the names listed, none twice. */
static void step_key(schema_grammar *g, schema_thread t, uint8_t byte, schema_state *out)
{
    const grammar_list *listed = &g->leaves.all[t.node].listed;
    if (byte == '"' && t.character == PLAIN) {
        if (!may_end_key(g, &t)) return;
        schema_frame f = g->frames.all[t.frame];
        f.before = t.frame;
        f.hash = (uint64_t)t.value | 1;
        f.index = node_of(g, t.node)->n_properties;
        f.begun = true;
        emit(g, out,
            (schema_thread){.frame = schema_frames_number(&g->frames, f), .node = t.node, .phase = COLON});
        return;
    }
    if (t.character == PLAIN) {
        if (byte == '\\' || t.n >= SCHEMA_MOST_KEY || !json_character_begin(byte, &t.character)) return;
        t.n++;
    } else if (!json_character_step(byte, &t.character)) {
        return;
    }
    t.value = (int64_t)(((uint64_t)t.value ^ byte) * 1099511628211ull);
    if (t.range.depth != UINT32_MAX && !grammar_list_narrow(listed, &t.range, byte))
        t.range = (grammar_range){0, 0, UINT32_MAX}; /* it is none of them */
    emit(g, out, t);
}

static void step(schema_grammar *g, const schema_thread *t, uint8_t byte, schema_state *out)
{
    schema_thread next = *t;
    switch ((phase)t->phase) {
    case VALUE: begin_value(g, t->frame, t->node, byte, out); break;
    case AFTER: after(g, t->frame, byte, out); break;
    case STRING: step_string(g, next, byte, out); break;
    case WORD:
        if (byte != (uint8_t)words[t->n][t->at]) break;
        next.at++;
        emit(g, out, words[t->n][next.at] ? next : after_thread(t->frame));
        break;
    case LISTED:
        if (grammar_list_narrow(&g->leaves.all[t->node].values, &next.range, byte))
            emit(g, out, next);
        else if (grammar_list_is_whole(&g->leaves.all[t->node].values, &t->range))
            after(g, t->frame, byte, out);
        break;
    case NUMBER: step_number(g, next, byte, out); break;
    case FREE_NUMBER: step_free_number(g, next, byte, out); break;
    case NAME: step_name(g, next, byte, out); break;
    case OPEN_KEY:
        if (byte != (uint8_t) ", \""[t->at]) break;
        if (++next.at == 3) {
            next = (schema_thread){.frame = t->frame, .node = t->node, .phase = KEY};
            next.range = grammar_list_all(&g->leaves.all[t->node].listed);
        }
        emit(g, out, next);
        break;
    case KEY: step_key(g, next, byte, out); break;
    case COLON:
        if (byte != (uint8_t) ": "[t->at]) break;
        if (++next.at == 2)
            next =
                (schema_thread){.frame = t->frame, .node = node_of(g, t->node)->additional, .phase = VALUE};
        emit(g, out, next);
        break;
    case ITEM:
        if (byte != ' ') break;
        next.phase = VALUE;
        emit(g, out, next);
        break;
    }
    if ((t->phase == NUMBER || t->phase == FREE_NUMBER) && is_number(g, t)) after(g, t->frame, byte, out);
}

/* ---- how far it is to the end ---- */

static uint32_t member_cost(const schema_grammar *g, uint32_t node, uint32_t member)
{
    return g->leaves.all[node_of(g, node)->properties[member].node].cost;
}

static uint32_t name_cost(const schema_grammar *g, const schema_thread *t)
{
    const schema_frame *f = &g->frames.all[t->frame];
    const size_t n = strlen(g->leaves.all[t->node].names[t->n]) + (f->begun ? 2 : 0);
    return schema_cost_add(schema_cost_add(n - t->at, member_cost(g, t->node, t->n)),
        schema_frames_rest_of_object(&g->frames, t->node, t->n + 1, true, f->parent));
}

/* From the closing quote of a free name on. */
static uint32_t named_cost(const schema_grammar *g, const schema_thread *t)
{
    const uint32_t n = node_of(g, t->node)->n_properties;
    return schema_cost_add(3 + g->leaves.all[node_of(g, t->node)->additional].cost,
        schema_frames_rest_of_object(&g->frames, t->node, n, true, g->frames.all[t->frame].parent));
}

/* One that cannot end here needs a character more: there are more of these than names in any object. */
static uint32_t key_cost(const schema_grammar *g, const schema_thread *t)
{
    return schema_cost_add(
        json_character_missing(t->character) + (t->character != PLAIN || may_end_key(g, t) ? 0 : 1),
        named_cost(g, t));
}

static uint32_t listed_cost(const schema_grammar *g, const schema_thread *t)
{
    const grammar_list *l = &g->leaves.all[t->node].values;
    size_t least = SCHEMA_NEVER;
    for (uint32_t i = t->range.from; i < t->range.to; i++) {
        const size_t n = strlen(l->items[i] + t->range.depth);
        if (n < least) least = n;
    }
    return (uint32_t)least;
}

static uint32_t number_cost(const schema_grammar *g, const schema_thread *t)
{
    const number_state s = number_of(t);
    return t->phase == NUMBER ? number_missing(&g->leaves.all[t->node].range, &s) : !is_number(g, t);
}

static uint32_t thread_cost(const schema_grammar *g, const schema_thread *t)
{
    const uint32_t rest = g->frames.all[t->frame].rest;
    switch ((phase)t->phase) {
    case AFTER: return rest;
    case VALUE: return schema_cost_add(g->leaves.all[t->node].cost, rest);
    case ITEM: return schema_cost_add(1ull + g->leaves.all[t->node].cost, rest);
    case WORD: return schema_cost_add(strlen(words[t->n] + t->at), rest);
    case LISTED: return schema_cost_add(listed_cost(g, t), rest);
    case NUMBER:
    case FREE_NUMBER: return schema_cost_add(number_cost(g, t), rest);
    case STRING: {
        const int64_t missing = node_of(g, t->node)->min_length - (int64_t)t->n;
        return schema_cost_add(
            1ull + json_character_missing(t->character) + (uint64_t)(missing > 0 ? missing : 0), rest);
    }
    case NAME: return name_cost(g, t);
    case OPEN_KEY: return schema_cost_add(3ull - t->at + 1, named_cost(g, t));
    case KEY: return key_cost(g, t);
    case COLON:
        return schema_cost_add(2ull - t->at + g->leaves.all[node_of(g, t->node)->additional].cost, rest);
    }
    return SCHEMA_NEVER;
}

static void emit(const schema_grammar *g, schema_state *out, schema_thread t)
{
    for (uint32_t i = 0; i < out->n; i++)
        if (!memcmp(&out->threads[i], &t, sizeof t)) return;
    if (out->n < SCHEMA_MOST_THREADS) {
        out->threads[out->n++] = t;
        return;
    }
    uint32_t dearest = 0;
    for (uint32_t i = 1; i < out->n; i++)
        if (thread_cost(g, &out->threads[i]) > thread_cost(g, &out->threads[dearest])) dearest = i;
    if (thread_cost(g, &t) < thread_cost(g, &out->threads[dearest])) out->threads[dearest] = t;
}

bool schema_grammar_take(schema_grammar *g, const schema_state *from, schema_state *to, uint8_t byte)
{
    to->n = 0;
    for (uint32_t i = 0; i < from->n; i++) step(g, &from->threads[i], byte, to);
    return to->n > 0;
}

uint32_t schema_grammar_cost(const schema_grammar *g, const schema_state *s)
{
    uint32_t least = SCHEMA_NEVER;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t cost = thread_cost(g, &s->threads[i]);
        if (cost < least) least = cost;
    }
    return least;
}

static bool ends_here(const schema_grammar *g, const schema_thread *t)
{
    if (t->frame != SCHEMA_ROOT) return false;
    if (t->phase == LISTED) return grammar_list_is_whole(&g->leaves.all[t->node].values, &t->range);
    return t->phase == AFTER || ((t->phase == NUMBER || t->phase == FREE_NUMBER) && is_number(g, t));
}

bool schema_grammar_is_whole(const schema_grammar *g, const schema_state *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (ends_here(g, &s->threads[i])) return true;
    return false;
}

bool schema_grammar_is_free(const schema_state *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->threads[i].phase == STRING || s->threads[i].phase == KEY) return true;
    return false;
}

/* Characters that a thread takes whatever they are (plain text; step_string, step_key). */
static uint32_t free_characters(const schema_grammar *g, const schema_thread *t)
{
    if (t->character != PLAIN) return 0;
    if (t->phase == KEY) return SCHEMA_MOST_KEY - t->n;
    if (t->phase != STRING) return 0;
    const int64_t most = node_of(g, t->node)->max_length;
    if (most < 0 || most - (int64_t)t->n > UINT32_MAX) return UINT32_MAX;
    return (uint32_t)(most - (int64_t)t->n);
}

void schema_grammar_free_text(const schema_grammar *g, const schema_state *s, schema_free_text *ret)
{
    ret->n_characters = ret->cost = ret->others.n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const schema_thread *t = &s->threads[i];
        const uint32_t n = free_characters(g, t), cost = n ? thread_cost(g, t) + 1 : 0; /* 1: key_cost */
        if (!n) ret->others.threads[ret->others.n++] = *t;
        if (n > ret->n_characters) ret->n_characters = n;
        if (cost > ret->cost) ret->cost = cost;
    }
}

/* ---- making one ---- */

int schema_grammar_new(schema_grammar **ret, const base_schema *schema, base_err *err)
{
    schema_grammar *g = base_xcalloc(1, sizeof *g);
    g->frames.leaves = &g->leaves;
    const int rc = schema_leaves_fill(&g->leaves, schema, err);
    if (rc)
        schema_grammar_free(g);
    else
        *ret = g;
    return rc;
}

void schema_grammar_free(schema_grammar *g)
{
    if (!g) return;
    schema_leaves_free(&g->leaves);
    schema_frames_free(&g->frames);
    free(g);
}

void schema_grammar_begin(schema_grammar *g, schema_state *ret)
{
    schema_frames_forget(&g->frames);
    ret->n = 1;
    ret->threads[0] = (schema_thread){.frame = SCHEMA_ROOT, .phase = VALUE};
}

bool schema_grammar_tidy(schema_grammar *g, schema_state *s)
{
    uint32_t *numbers[SCHEMA_MOST_THREADS];
    for (uint32_t i = 0; i < s->n; i++) numbers[i] = &s->threads[i].frame;
    return schema_frames_tidy(&g->frames, numbers, s->n);
}
