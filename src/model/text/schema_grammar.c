/* Threads over shared frames (contract: schema_grammar.h). */
#include "model/text/schema_grammar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/text/json_character.h"
#include "model/text/schema_numbers.h"

enum {
    NEVER = 1 << 29, /* a cost or a height that no finite value has */
    MOST_NAME = 512, /* bytes of a member's name */
    MOST_KEY = 64,   /* characters of a name that is free */
    MANY_FRAMES = 1 << 16,
    MOST_FREE_DIGITS = 15,
    ROOT = 0, /* the frame around the value */
};

/* ---- what the schema's nodes become ---- */

typedef struct leaf {
    uint32_t *leaves, n_leaves; /* the node itself, or those that stand for it: no alternatives among them */
    uint32_t height, cost;      /* of the flattest value: nesting, and bytes */
    uint32_t object_height, array_height;
    char **names;           /* [n_properties] "\"name\": " */
    grammar_list listed;    /* names, sorted: what a free one may not be */
    uint32_t *needed;       /* [n_properties + 1] bytes of what is required from there on, each with ", " */
    uint32_t *needed_items; /* [n_prefix + 1] the same of the first items */
    uint64_t n_more_items;  /* required behind them */
    grammar_list values;    /* as JSON */
    bool has_range;         /* numbers are bounded */
    number_range range;
} leaf;

typedef struct frame {
    uint32_t parent, node;
    uint32_t index;  /* members: the next that may come; items: how many there are, as far as it matters */
    uint32_t before; /* with a hash: the frame that had all names but this one */
    uint64_t hash;   /* of a free name; 0: none yet */
    uint32_t depth, rest; /* rest: bytes from behind the newest part to the end of all */
    bool is_array, begun;
} frame;

struct schema_grammar {
    const base_schema *schema;
    leaf *nodes; /* [n] */
    uint32_t n;
    frame *frames;
    uint32_t n_frames;
    size_t cap_frames;
    uint32_t *slots; /* hash table of frames: number + 1 */
    uint32_t n_slots;
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

static uint32_t add(uint64_t a, uint64_t b)
{
    return a + b >= NEVER ? NEVER : (uint32_t)(a + b);
}

static const base_schema_node *node_of(const schema_grammar *g, uint32_t at)
{
    return base_schema_at(g->schema, at);
}

/* ---- frames ---- */

/* Bytes behind the newest part of an object up to its end and that of all around it. */
static uint32_t rest_of_object(
    const schema_grammar *g, uint32_t node, uint32_t index, bool begun, uint32_t parent)
{
    const uint32_t needed = g->nodes[node].needed[index];
    return add(needed - (!begun && needed ? 2 : 0), 1ull + g->frames[parent].rest);
}

static uint32_t rest_of_array(
    const schema_grammar *g, uint32_t node, uint32_t index, bool begun, uint32_t parent)
{
    const leaf *l = &g->nodes[node];
    const base_schema_node *n = node_of(g, node);
    uint64_t needed = index < n->n_prefix ? l->needed_items[index] : 0;
    uint64_t more = l->n_more_items;
    if (index > n->n_prefix) more = more > index - n->n_prefix ? more - (index - n->n_prefix) : 0;
    if (more) needed += more * (2ull + g->nodes[n->items].cost);
    return add(needed - (!begun && needed ? 2 : 0), 1ull + g->frames[parent].rest);
}

static uint64_t hash_of(const frame *f)
{
    const uint64_t parts[] = {f->parent, f->node, f->index, f->before, f->hash, f->is_array, f->begun};
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) h = (h ^ parts[i]) * 1099511628211ull;
    return h ^ h >> 29;
}

static bool is_same(const frame *a, const frame *b)
{
    return a->parent == b->parent && a->node == b->node && a->index == b->index && a->before == b->before &&
           a->hash == b->hash && a->is_array == b->is_array && a->begun == b->begun;
}

static void place_frame(schema_grammar *g, uint32_t number)
{
    uint32_t at = (uint32_t)hash_of(&g->frames[number]) & (g->n_slots - 1);
    while (g->slots[at]) at = (at + 1) & (g->n_slots - 1);
    g->slots[at] = number + 1;
}

static void grow_slots(schema_grammar *g)
{
    if (2 * (g->n_frames + 1) <= g->n_slots) return;
    free(g->slots);
    g->n_slots = g->n_slots ? 2 * g->n_slots : 256;
    g->slots = base_xcalloc(g->n_slots, sizeof *g->slots);
    for (uint32_t i = ROOT + 1; i < g->n_frames; i++) place_frame(g, i);
}

/* The number of this frame; depth and rest are worked out here. */
static uint32_t frame_number(schema_grammar *g, frame f)
{
    grow_slots(g);
    uint32_t at = (uint32_t)hash_of(&f) & (g->n_slots - 1);
    for (; g->slots[at]; at = (at + 1) & (g->n_slots - 1))
        if (is_same(&g->frames[g->slots[at] - 1], &f)) return g->slots[at] - 1;
    f.depth = g->frames[f.parent].depth + 1;
    f.rest = (f.is_array ? rest_of_array : rest_of_object)(g, f.node, f.index, f.begun, f.parent);
    base_grow(&g->frames, &g->cap_frames, g->n_frames + 1, sizeof *g->frames);
    g->frames[g->n_frames] = f;
    place_frame(g, g->n_frames);
    return g->n_frames++;
}

/* ---- one byte ---- */

static void emit(const schema_grammar *g, schema_state *out, schema_thread t);

static schema_thread after_thread(uint32_t at)
{
    return (schema_thread){.frame = at, .phase = AFTER};
}

static bool fits(const schema_grammar *g, uint32_t at, uint32_t node)
{
    return node != BASE_SCHEMA_NONE && g->frames[at].depth + g->nodes[node].height <= SCHEMA_MOST_NESTING;
}

/* Is nothing required from this member on? */
static bool may_end(const schema_grammar *g, uint32_t node, uint32_t index)
{
    return !g->nodes[node].needed[index];
}

static void open_frame(schema_grammar *g, uint32_t at, uint32_t node, bool is_array, schema_state *out)
{
    const uint32_t height = is_array ? g->nodes[node].array_height : g->nodes[node].object_height;
    if (g->frames[at].depth + height > SCHEMA_MOST_NESTING) return;
    const frame f = {.parent = at, .node = node, .is_array = is_array};
    emit(g, out, after_thread(frame_number(g, f)));
}

static number_state number_of(const schema_thread *t)
{
    return (number_state){t->character, t->n, t->n_decimals, t->value};
}

static void step_number(const schema_grammar *g, schema_thread t, uint8_t byte, schema_state *out)
{
    number_state s = number_of(&t);
    if (!number_take(&g->nodes[t.node].range, &s, byte)) return;
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
    return !number_missing(&g->nodes[t->node].range, &s);
}

static void begin_leaf(schema_grammar *g, uint32_t at, uint32_t leaf_node, uint8_t byte, schema_state *out)
{
    const leaf *l = &g->nodes[leaf_node];
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
    const leaf *l = &g->nodes[node];
    for (uint32_t i = 0; i < l->n_leaves; i++) begin_leaf(g, frame_at, l->leaves[i], byte, out);
}

/* The frame behind one member or item more. */
static uint32_t with_member(schema_grammar *g, uint32_t at, uint32_t index)
{
    frame f = g->frames[at];
    f.index = index;
    f.begun = true;
    return frame_number(g, f);
}

static uint32_t with_item(schema_grammar *g, uint32_t at)
{
    const frame *f = &g->frames[at];
    const base_schema_node *n = node_of(g, f->node);
    int64_t matters = n->min_items > (int64_t)n->n_prefix ? n->min_items : (int64_t)n->n_prefix + 1;
    if (n->max_items > matters) matters = n->max_items;
    return with_member(g, at, (int64_t)f->index < matters ? f->index + 1 : f->index);
}

/* The node of the next item; NONE: there is none. */
static uint32_t next_item(const schema_grammar *g, uint32_t at)
{
    const frame *f = &g->frames[at];
    const base_schema_node *n = node_of(g, f->node);
    if (n->max_items >= 0 && (int64_t)f->index >= n->max_items) return BASE_SCHEMA_NONE;
    const uint32_t node = f->index < n->n_prefix ? n->prefix[f->index] : n->items;
    return fits(g, at, node) ? node : BASE_SCHEMA_NONE;
}

static void after_in_array(schema_grammar *g, uint32_t at, uint8_t byte, schema_state *out)
{
    const frame f = g->frames[at];
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
    const frame f = g->frames[at];
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
    if (!f.begun) key.range = grammar_list_all(&g->nodes[f.node].listed);
    emit(g, out, key);
}

static void after(schema_grammar *g, uint32_t at, uint8_t byte, schema_state *out)
{
    if (at == ROOT) return;
    (g->frames[at].is_array ? after_in_array : after_in_object)(g, at, byte, out);
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
    const char *name = g->nodes[t.node].names[t.n];
    const frame *f = &g->frames[t.frame];
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
    for (; g->frames[at].hash; at = g->frames[at].before)
        if (g->frames[at].hash == hash) return true;
    return false;
}

/* A name that is as long as names may be cannot get out of the way of one that stands already. */
static bool may_end_key(const schema_grammar *g, const schema_thread *t)
{
    const bool is_listed =
        t->range.depth != UINT32_MAX && grammar_list_is_whole(&g->nodes[t->node].listed, &t->range);
    return t->n && !is_listed && (t->n >= MOST_KEY || !is_doubled(g, t->frame, (uint64_t)t->value | 1));
}

/* A name that is free: plain characters, none of the names listed, none twice. */
static void step_key(schema_grammar *g, schema_thread t, uint8_t byte, schema_state *out)
{
    const grammar_list *listed = &g->nodes[t.node].listed;
    if (byte == '"' && t.character == PLAIN) {
        if (!may_end_key(g, &t)) return;
        frame f = g->frames[t.frame];
        f.before = t.frame;
        f.hash = (uint64_t)t.value | 1;
        f.index = node_of(g, t.node)->n_properties;
        f.begun = true;
        emit(g, out, (schema_thread){.frame = frame_number(g, f), .node = t.node, .phase = COLON});
        return;
    }
    if (t.character == PLAIN) {
        if (byte == '\\' || t.n >= MOST_KEY || !json_character_begin(byte, &t.character)) return;
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
        if (grammar_list_narrow(&g->nodes[t->node].values, &next.range, byte))
            emit(g, out, next);
        else if (grammar_list_is_whole(&g->nodes[t->node].values, &t->range))
            after(g, t->frame, byte, out);
        break;
    case NUMBER: step_number(g, next, byte, out); break;
    case FREE_NUMBER: step_free_number(g, next, byte, out); break;
    case NAME: step_name(g, next, byte, out); break;
    case OPEN_KEY:
        if (byte != (uint8_t) ", \""[t->at]) break;
        if (++next.at == 3) {
            next = (schema_thread){.frame = t->frame, .node = t->node, .phase = KEY};
            next.range = grammar_list_all(&g->nodes[t->node].listed);
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
    return g->nodes[node_of(g, node)->properties[member].node].cost;
}

static uint32_t name_cost(const schema_grammar *g, const schema_thread *t)
{
    const frame *f = &g->frames[t->frame];
    const size_t n = strlen(g->nodes[t->node].names[t->n]) + (f->begun ? 2 : 0);
    return add(
        add(n - t->at, member_cost(g, t->node, t->n)), rest_of_object(g, t->node, t->n + 1, true, f->parent));
}

/* From the closing quote of a free name on. */
static uint32_t named_cost(const schema_grammar *g, const schema_thread *t)
{
    const uint32_t n = node_of(g, t->node)->n_properties;
    return add(3 + g->nodes[node_of(g, t->node)->additional].cost,
        rest_of_object(g, t->node, n, true, g->frames[t->frame].parent));
}

/* One that cannot end here needs a character more: there are more of these than names in any object. */
static uint32_t key_cost(const schema_grammar *g, const schema_thread *t)
{
    return add(json_character_missing(t->character) + (t->character != PLAIN || may_end_key(g, t) ? 0 : 1),
        named_cost(g, t));
}

static uint32_t listed_cost(const schema_grammar *g, const schema_thread *t)
{
    const grammar_list *l = &g->nodes[t->node].values;
    size_t least = NEVER;
    for (uint32_t i = t->range.from; i < t->range.to; i++) {
        const size_t n = strlen(l->items[i] + t->range.depth);
        if (n < least) least = n;
    }
    return (uint32_t)least;
}

static uint32_t number_cost(const schema_grammar *g, const schema_thread *t)
{
    const number_state s = number_of(t);
    return t->phase == NUMBER ? number_missing(&g->nodes[t->node].range, &s) : !is_number(g, t);
}

static uint32_t thread_cost(const schema_grammar *g, const schema_thread *t)
{
    const uint32_t rest = g->frames[t->frame].rest;
    switch ((phase)t->phase) {
    case AFTER: return rest;
    case VALUE: return add(g->nodes[t->node].cost, rest);
    case ITEM: return add(1ull + g->nodes[t->node].cost, rest);
    case WORD: return add(strlen(words[t->n] + t->at), rest);
    case LISTED: return add(listed_cost(g, t), rest);
    case NUMBER:
    case FREE_NUMBER: return add(number_cost(g, t), rest);
    case STRING: {
        const int64_t missing = node_of(g, t->node)->min_length - (int64_t)t->n;
        return add(1ull + json_character_missing(t->character) + (uint64_t)(missing > 0 ? missing : 0), rest);
    }
    case NAME: return name_cost(g, t);
    case OPEN_KEY: return add(3ull - t->at + 1, named_cost(g, t));
    case KEY: return key_cost(g, t);
    case COLON: return add(2ull - t->at + g->nodes[node_of(g, t->node)->additional].cost, rest);
    }
    return NEVER;
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
    uint32_t least = NEVER;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t cost = thread_cost(g, &s->threads[i]);
        if (cost < least) least = cost;
    }
    return least;
}

static bool ends_here(const schema_grammar *g, const schema_thread *t)
{
    if (t->frame != ROOT) return false;
    if (t->phase == LISTED) return grammar_list_is_whole(&g->nodes[t->node].values, &t->range);
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
    if (t->phase == KEY) return MOST_KEY - t->n;
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

/* The nodes that a node stands for, through alternatives; each once. */
static int collect_leaves(schema_grammar *g, leaf *to, uint32_t at, base_err *err)
{
    if (at == BASE_SCHEMA_NONE) return BASE_OK;
    const base_schema_node *n = node_of(g, at);
    for (uint32_t i = 0; i < n->n_alternatives; i++) {
        const int rc = collect_leaves(g, to, n->alternatives[i], err);
        if (rc) return rc;
    }
    if (n->n_alternatives) return BASE_OK;
    for (uint32_t i = 0; i < to->n_leaves; i++)
        if (to->leaves[i] == at) return BASE_OK;
    if (to->n_leaves >= SCHEMA_MOST_THREADS)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "the schema has more than %d alternatives in one place, at %.200s", SCHEMA_MOST_THREADS,
            n->place);
    to->leaves = base_xrealloc(to->leaves, (to->n_leaves + 1) * sizeof *to->leaves);
    to->leaves[to->n_leaves++] = at;
    return BASE_OK;
}

static void add_json(grammar_list *l, char *json)
{
    l->items = base_xrealloc(l->items, (l->n + 1) * sizeof *l->items);
    l->items[l->n++] = json;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A list's items as they stand in JSON, sorted and each once. */
static void sort_list(grammar_list *l)
{
    uint32_t kept = 0;
    if (l->n) qsort(l->items, l->n, sizeof *l->items, by_bytes);
    for (uint32_t i = 0; i < l->n; i++) {
        if (kept && !strcmp(l->items[kept - 1], l->items[i]))
            free(l->items[i]);
        else
            l->items[kept++] = l->items[i];
    }
    l->n = kept;
}

/* A value with ", " and ": " between its parts, as everything here is written. */
static void put_value(base_buf *out, const base_json *v)
{
    const bool is_object = v->type == BASE_JSON_OBJECT;
    if (!is_object && v->type != BASE_JSON_ARRAY) {
        base_json_put(out, v);
        return;
    }
    base_buf_putc(out, is_object ? '{' : '[');
    for (const base_json *m = v->first; m; m = m->next) {
        if (m != v->first) base_buf_puts(out, ", ");
        if (is_object) {
            base_json_put_str(out, m->key, strlen(m->key));
            base_buf_puts(out, ": ");
        }
        put_value(out, m);
    }
    base_buf_putc(out, is_object ? '}' : ']');
}

static int fill_names(leaf *l, const base_schema_node *n, base_err *err)
{
    if (n->n_properties >= SCHEMA_MOST_THREADS) /* all of them may be what comes next */
        return base_fail(err, BASE_E_UNSUPPORTED, "the schema has more than %d properties at %.200s",
            SCHEMA_MOST_THREADS - 1, n->place);
    l->names = base_xcalloc(n->n_properties + 1, sizeof *l->names);
    for (uint32_t i = 0; i < n->n_properties; i++) {
        base_buf name = {0};
        base_json_put_str(&name, n->properties[i].name, strlen(n->properties[i].name));
        const uint32_t most = n->additional == BASE_SCHEMA_NONE ? MOST_NAME : MOST_KEY;
        if (name.len >= most) {
            base_buf_free(&name);
            return base_fail(err, BASE_E_LIMIT, "the schema has a name of more than %u bytes at %.200s",
                most - 1, n->place);
        }
        add_json(&l->listed, base_xstrndup(name.data + 1, name.len - 2));
        base_buf_puts(&name, ": ");
        l->names[i] = base_buf_take(&name);
    }
    sort_list(&l->listed);
    l->needed = base_xcalloc(n->n_properties + 1, sizeof *l->needed);
    return BASE_OK;
}

/* The first unit that holds, seen from inside the range. */
static void fill_range(leaf *l, const base_schema_node *n)
{
    const bool is_whole = !(n->types & BASE_SCHEMA_NUMBER), has_low = isfinite(n->low),
               has_high = isfinite(n->high);
    if (!(n->types & (BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER)) || (!is_whole && !has_low && !has_high))
        return;
    const double small = 1e9; /* up to here millionths are exact */
    const bool fine =
        !is_whole && !(has_low && fabs(n->low) >= small) && !(has_high && fabs(n->high) >= small);
    const double unit = fine ? 1e6 : 1, most = fine ? 999999999e6 : 9007199254740991.;
    double low = has_low ? ceil(n->low * unit) : -most, high = has_high ? floor(n->high * unit) : most;
    low = low < -most ? -most : low > most ? most + 1 : low;
    high = high > most ? most : high < -most ? -most - 1 : high;
    l->has_range = true;
    l->range = (number_range){(int64_t)low, (int64_t)high, fine ? 6 : 0};
    while (l->range.low <= l->range.high &&
           ((double)l->range.low / unit < n->low || (n->above_low && (double)l->range.low / unit <= n->low)))
        l->range.low++;
    while (l->range.low <= l->range.high && ((double)l->range.high / unit > n->high ||
                                                (n->below_high && (double)l->range.high / unit >= n->high)))
        l->range.high--;
}

static int fill_leaf(leaf *l, const base_schema_node *n, base_err *err)
{
    l->height = l->cost = l->object_height = l->array_height = NEVER;
    l->needed_items = base_xcalloc(n->n_prefix + 1, sizeof *l->needed_items);
    for (uint32_t i = 0; i < n->n_values; i++) {
        base_buf json = {0};
        put_value(&json, n->values[i]);
        add_json(&l->values, base_buf_take(&json));
    }
    sort_list(&l->values);
    fill_range(l, n);
    if (n->min_items > (int64_t)n->n_prefix) l->n_more_items = (uint64_t)n->min_items - n->n_prefix;
    return fill_names(l, n, err);
}

static void lower(uint32_t *to, uint32_t value, bool *changed)
{
    if (value >= *to) return;
    *to = value;
    *changed = true;
}

/* How deep the flattest object or array of a node is, by what is known of its parts so far. */
static uint32_t object_height(const schema_grammar *g, const base_schema_node *n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n->n_properties; i++) {
        const uint32_t of = n->properties[i].node;
        if (!n->properties[i].required) continue;
        if (of == BASE_SCHEMA_NONE) return NEVER;
        if (g->nodes[of].height > most) most = g->nodes[of].height;
    }
    return add(most, 1);
}

static uint32_t array_height(const schema_grammar *g, const base_schema_node *n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n->min_items && i <= (int64_t)n->n_prefix; i++) {
        const uint32_t of = i < (int64_t)n->n_prefix ? n->prefix[i] : n->items;
        if (of == BASE_SCHEMA_NONE) return NEVER;
        if (g->nodes[of].height > most) most = g->nodes[of].height;
    }
    return add(most, 1);
}

static bool has_scalar(const leaf *l, const base_schema_node *n)
{
    const number_state nothing = {0};
    if (l->values.n || n->types & (BASE_SCHEMA_NULL | BASE_SCHEMA_BOOLEAN | BASE_SCHEMA_STRING)) return true;
    if (!(n->types & (BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER))) return false;
    return !l->has_range || number_missing(&l->range, &nothing) < NUMBER_NEVER;
}

static void find_heights(schema_grammar *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < g->n; i++) {
            leaf *l = &g->nodes[i];
            const base_schema_node *n = node_of(g, i);
            for (uint32_t k = 0; k < n->n_alternatives; k++)
                if (n->alternatives[k] != BASE_SCHEMA_NONE)
                    lower(&l->height, g->nodes[n->alternatives[k]].height, &changed);
            if (n->n_alternatives) continue;
            if (has_scalar(l, n)) lower(&l->height, 0, &changed);
            if (l->values.n) continue;
            if (n->types & BASE_SCHEMA_OBJECT) lower(&l->object_height, object_height(g, n), &changed);
            if (n->types & BASE_SCHEMA_ARRAY) lower(&l->array_height, array_height(g, n), &changed);
            lower(&l->height, l->object_height, &changed);
            lower(&l->height, l->array_height, &changed);
        }
    }
}

static uint32_t object_cost(schema_grammar *g, leaf *l, const base_schema_node *n)
{
    for (uint32_t i = n->n_properties; i-- > 0;) {
        l->needed[i] = l->needed[i + 1];
        if (n->properties[i].required)
            l->needed[i] =
                add(l->needed[i], add(2 + strlen(l->names[i]), g->nodes[n->properties[i].node].cost));
    }
    return add(2, l->needed[0] - (l->needed[0] ? 2 : 0));
}

static uint32_t array_cost(schema_grammar *g, leaf *l, const base_schema_node *n)
{
    uint64_t needed = 0;
    for (uint32_t i = n->n_prefix; i-- > 0;) {
        l->needed_items[i] = l->needed_items[i + 1];
        if ((int64_t)i < n->min_items && n->prefix[i] != BASE_SCHEMA_NONE)
            l->needed_items[i] = add(l->needed_items[i], 2ull + g->nodes[n->prefix[i]].cost);
    }
    needed = l->needed_items[0];
    if (l->n_more_items && n->items != BASE_SCHEMA_NONE)
        needed += (l->n_more_items < NEVER ? l->n_more_items : NEVER) * (2ull + g->nodes[n->items].cost);
    return add(2, needed - (needed ? 2 : 0));
}

static uint32_t scalar_cost(const leaf *l, const base_schema_node *n)
{
    uint32_t least = NEVER;
    const number_state nothing = {0};
    for (uint32_t i = 0; i < l->values.n; i++)
        if (strlen(l->values.items[i]) < least) least = (uint32_t)strlen(l->values.items[i]);
    if (l->values.n) return least;
    if (n->types & (BASE_SCHEMA_NULL | BASE_SCHEMA_BOOLEAN)) least = 4;
    if (n->types & BASE_SCHEMA_STRING && add(2, (uint64_t)n->min_length) < least)
        least = add(2, (uint64_t)n->min_length);
    if (n->types & (BASE_SCHEMA_NUMBER | BASE_SCHEMA_INTEGER)) {
        const uint32_t number = l->has_range ? number_missing(&l->range, &nothing) : 1;
        if (number < least) least = number;
    }
    return least;
}

/* Of the flattest values: parts of an object or array are flatter than it, so level by level they are known. */
static void find_costs(schema_grammar *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < g->n; i++) {
            leaf *l = &g->nodes[i];
            const base_schema_node *n = node_of(g, i);
            if (l->height >= NEVER && !n->n_alternatives) continue;
            for (uint32_t k = 0; k < n->n_alternatives; k++) {
                if (n->alternatives[k] == BASE_SCHEMA_NONE) continue;
                const leaf *other = &g->nodes[n->alternatives[k]];
                if (other->height == l->height) lower(&l->cost, other->cost, &changed);
            }
            if (n->n_alternatives) continue;
            if (l->height == 0) lower(&l->cost, scalar_cost(l, n), &changed);
            if (n->types & BASE_SCHEMA_OBJECT && l->object_height < NEVER) {
                const uint32_t cost = object_cost(g, l, n);
                if (l->height == l->object_height) lower(&l->cost, cost, &changed);
            }
            if (n->types & BASE_SCHEMA_ARRAY && l->array_height < NEVER) {
                const uint32_t cost = array_cost(g, l, n);
                if (l->height == l->array_height) lower(&l->cost, cost, &changed);
            }
        }
    }
}

int schema_grammar_new(schema_grammar **ret, const base_schema *schema, base_err *err)
{
    schema_grammar *g = base_xcalloc(1, sizeof *g);
    g->schema = schema;
    g->n = base_schema_size(schema);
    g->nodes = base_xcalloc(g->n, sizeof *g->nodes);
    int rc = BASE_OK;
    for (uint32_t i = 0; i < g->n && !rc; i++) {
        rc = fill_leaf(&g->nodes[i], node_of(g, i), err);
        if (!rc) rc = collect_leaves(g, &g->nodes[i], i, err);
    }
    if (!rc) {
        find_heights(g);
        find_costs(g);
        if (g->nodes[0].height > SCHEMA_MOST_NESTING)
            rc = base_fail(err, BASE_E_FORMAT,
                "no value fits the schema: what it requires never ends, excludes itself, or is nested more "
                "than %d "
                "levels deep",
                SCHEMA_MOST_NESTING);
    }
    if (rc) {
        schema_grammar_free(g);
        return rc;
    }
    *ret = g;
    return BASE_OK;
}

void schema_grammar_free(schema_grammar *g)
{
    if (!g) return;
    for (uint32_t i = 0; i < g->n; i++) {
        leaf *l = &g->nodes[i];
        for (uint32_t k = 0; l->names && k < node_of(g, i)->n_properties; k++) free(l->names[k]);
        free(l->names);
        free(l->leaves);
        free(l->needed);
        free(l->needed_items);
        grammar_list_free(&l->listed);
        grammar_list_free(&l->values);
    }
    free(g->nodes);
    free(g->frames);
    free(g->slots);
    free(g);
}

/* The root is in no table: a frame around it has its numbers. */
static void forget_frames(schema_grammar *g)
{
    if (g->n_slots) memset(g->slots, 0, g->n_slots * sizeof *g->slots);
    base_grow(&g->frames, &g->cap_frames, 1, sizeof *g->frames);
    g->frames[ROOT] = (frame){0};
    g->n_frames = 1;
}

void schema_grammar_begin(schema_grammar *g, schema_state *ret)
{
    forget_frames(g);
    ret->n = 1;
    ret->threads[0] = (schema_thread){.frame = ROOT, .phase = VALUE};
}

typedef struct moving {
    const frame *old;
    uint32_t *moved; /* [n] the number of now; ROOT: not moved yet */
} moving;

/* The frame of before in the table of now, behind those that it stands on. */
static uint32_t keep_frame(schema_grammar *g, const moving *m, uint32_t number)
{
    if (number == ROOT || m->moved[number] != ROOT) return m->moved[number];
    frame f = m->old[number];
    f.parent = keep_frame(g, m, f.parent);
    f.before = keep_frame(g, m, f.before);
    return m->moved[number] = frame_number(g, f);
}

bool schema_grammar_tidy(schema_grammar *g, schema_state *s)
{
    if (g->n_frames < MANY_FRAMES) return false;
    const uint32_t n = g->n_frames;
    frame *old = base_xmalloc(n * sizeof *old);
    memcpy(old, g->frames, n * sizeof *old);
    const moving m = {old, base_xcalloc(n, sizeof(uint32_t))};
    forget_frames(g);
    for (uint32_t i = 0; i < s->n; i++) s->threads[i].frame = keep_frame(g, &m, s->threads[i].frame);
    free(m.moved);
    free(old);
    return true;
}
