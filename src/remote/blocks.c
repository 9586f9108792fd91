#include "remote/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "remote/msgpack.h"

enum {
    MOST_BLOCKS = 1 << 20, /* of everybody who asks that engine; then all is forgotten */
    MOST_TOKENS = 1 << 16  /* in a block */
};

/* A block by what it holds: its tokens and those in front of it; and by the name that the engine gives it. */
typedef struct block {
    uint64_t content, name;
    uint8_t places; /* bits of remote_block_place; 0: gone */
} block;

/* Places of blocks by a number of theirs: open addressing, 0: empty, else the block's index and one. */
typedef struct table {
    uint32_t *slots;
    size_t n; /* a power of two */
} table;

struct remote_blocks {
    block *all;
    size_t n, cap;
    table by_content, by_name;
    uint32_t size; /* tokens of a block */
    uint64_t next;
    bool has_any;
};

const char *const remote_block_words[REMOTE_N_BLOCK_PLACES] = {"gpu", "host", "disk", "gone", "unknown"};

/* What a first block stands behind, and one of whose forerunner nothing was told. */
static const uint64_t root = 0x6b76697374, somewhere = 0x736f6d65;

remote_blocks *remote_blocks_new(void)
{
    return base_xcalloc(1, sizeof(remote_blocks));
}

static void forget(remote_blocks *b)
{
    free(b->all);
    free(b->by_content.slots);
    free(b->by_name.slots);
    *b = (remote_blocks){.next = b->next, .has_any = b->has_any};
}

void remote_blocks_free(remote_blocks *b)
{
    if (b) forget(b);
    free(b);
}

bool remote_blocks_has_any(const remote_blocks *b)
{
    return b->has_any;
}

/* --- tables --------------------------------------------------------------------------------------------- */

static uint64_t number_of(const block *b, bool is_name)
{
    return is_name ? b->name : b->content;
}

static const table *table_of(const remote_blocks *b, bool is_name)
{
    return is_name ? &b->by_name : &b->by_content;
}

/* The slot of this number, or the empty one where it would stand. */
static size_t slot_of(const remote_blocks *b, bool is_name, uint64_t number)
{
    const table *t = table_of(b, is_name);
    size_t at = base_hash_keyed(&number, sizeof number) & (t->n - 1);
    while (t->slots[at] && number_of(&b->all[t->slots[at] - 1], is_name) != number)
        at = (at + 1) & (t->n - 1);
    return at;
}

static block *find(const remote_blocks *b, bool is_name, uint64_t number)
{
    const table *t = table_of(b, is_name);
    const uint32_t slot = t->n ? t->slots[slot_of(b, is_name, number)] : 0;
    return slot ? &b->all[slot - 1] : NULL;
}

static void fill(remote_blocks *b, bool is_name)
{
    table *t = is_name ? &b->by_name : &b->by_content;
    free(t->slots);
    t->n = t->n ? 2 * t->n : 1024;
    t->slots = base_xcalloc(t->n, sizeof *t->slots);
    for (size_t i = 0; i < b->n; i++)
        t->slots[slot_of(b, is_name, number_of(&b->all[i], is_name))] = (uint32_t)i + 1;
}

static void add(remote_blocks *b, uint64_t content, uint64_t name, uint8_t place)
{
    block *same = find(b, false, content);
    if (same) {
        same->places |= place;
        if (same->name == name) return;
        same->name = name; /* the engine was started again without a word, or names blocks anew */
        b->by_name.slots[slot_of(b, true, name)] = (uint32_t)(same - b->all) + 1;
        return;
    }
    base_grow(&b->all, &b->cap, b->n + 1, sizeof *b->all);
    b->all[b->n++] = (block){content, name, place};
    for (int is_name = 0; is_name < 2; is_name++) {
        const table *t = table_of(b, is_name);
        if (2 * b->n > t->n)
            fill(b, is_name);
        else
            t->slots[slot_of(b, is_name, is_name ? name : content)] = (uint32_t)b->n;
    }
}

/* --- messages ------------------------------------------------------------------------------------------- */

/* A member by its name, or where the engine writes events without names by its place. */
static const base_json *member(const base_json *event, const char *name, size_t place)
{
    return event->type == BASE_JSON_ARRAY ? base_json_at(event, place) : base_json_get(event, name);
}

/* Names are numbers or bytes. */
static uint64_t name_of(const base_json *v)
{
    return v->type == BASE_JSON_STRING ? base_hash64(v->string, v->string_len, 1)
           : v->is_integer             ? (uint64_t)v->integer
                                       : base_hash64(&v->number, sizeof v->number, 2);
}

static uint8_t place_of(const base_json *medium)
{
    const char *word = medium && medium->type == BASE_JSON_STRING ? medium->string : "GPU";
    const remote_block_place at = !strncmp(word, "GPU", 3)   ? REMOTE_BLOCK_GPU
                                  : !strncmp(word, "CPU", 3) ? REMOTE_BLOCK_HOST
                                                             : REMOTE_BLOCK_DISK;
    return (uint8_t)(1 << at);
}

static bool is_told(const base_json *v)
{
    return v && v->type != BASE_JSON_NULL;
}

/* The next block's tokens; false: they are none. */
static bool take_tokens(const base_json **at, int32_t *ret, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, *at = (*at)->next) {
        if (!*at || !(*at)->is_integer || (*at)->integer < 0 || (*at)->integer > INT32_MAX) return false;
        ret[i] = (int32_t)(*at)->integer;
    }
    return true;
}

/* Blocks of another adapter, with images or a salt of their own are not those that the same tokens have here. */
static void stored(remote_blocks *b, const base_json *event)
{
    const base_json *names = member(event, "block_hashes", 1), *front = member(event, "parent_block_hash", 2),
                    *tokens = member(event, "token_ids", 3), *size = member(event, "block_size", 4),
                    *medium = member(event, "medium", 6);
    const base_json *keys = base_json_get(event, "extra_keys"), *group = base_json_get(event, "group_idx");
    if (!names || names->type != BASE_JSON_ARRAY || !tokens || tokens->type != BASE_JSON_ARRAY || !size ||
        !size->is_integer || size->integer < 1 || size->integer > MOST_TOKENS ||
        is_told(member(event, "lora_id", 5)) || (is_told(group) && group->integer))
        return;
    const block *before = is_told(front) ? find(b, true, name_of(front)) : NULL;
    uint64_t content = before ? before->content : is_told(front) ? somewhere : root;
    const base_json *at = tokens->first, *key = is_told(keys) ? keys->first : NULL;
    int32_t *ids = base_xcalloc((size_t)size->integer, sizeof *ids);
    b->size = (uint32_t)size->integer;
    for (const base_json *name = names->first; name && !is_told(key); name = name->next) {
        if (!take_tokens(&at, ids, b->size)) break;
        content = base_hash64(ids, b->size * sizeof *ids, content);
        add(b, content, name_of(name), place_of(medium));
        key = key ? key->next : NULL;
    }
    free(ids);
}

static void removed(remote_blocks *b, const base_json *event)
{
    const base_json *names = member(event, "block_hashes", 1);
    const uint8_t place = place_of(member(event, "medium", 2));
    for (const base_json *name = names && names->type == BASE_JSON_ARRAY ? names->first : NULL; name;
         name = name->next) {
        block *one = find(b, true, name_of(name));
        if (one) one->places &= (uint8_t)~place;
    }
}

static void cleared(remote_blocks *b, const base_json *event)
{
    for (size_t i = 0; i < b->n; i++) b->all[i].places = 0;
}

static const struct {
    const char *type;
    void (*apply)(remote_blocks *b, const base_json *event);
} events[] = {{"BlockStored", stored}, {"BlockRemoved", removed}, {"AllBlocksCleared", cleared}};

static void apply(remote_blocks *b, const base_json *event)
{
    const base_json *type = member(event, "type", 0);
    if (!type || type->type != BASE_JSON_STRING) return;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (!strcmp(type->string, events[i].type)) events[i].apply(b, event);
}

int remote_blocks_read(remote_blocks *b, uint64_t number, const uint8_t *bytes, size_t n, base_err *err)
{
    base_buf text = {0};
    base_json_doc *doc = NULL;
    if ((b->has_any && number != b->next) || b->n > MOST_BLOCKS) forget(b);
    b->next = number + 1;
    b->has_any = true;
    int rc = remote_msgpack_put_json(bytes, n, &text, err);
    if (!rc) rc = base_json_parse(text.data, text.len, &doc, err);
    if (!rc) {
        const base_json *list = member(base_json_root(doc), "events", 1);
        for (const base_json *e = list && list->type == BASE_JSON_ARRAY ? list->first : NULL; e; e = e->next)
            apply(b, e);
    }
    base_json_free(doc);
    base_buf_free(&text);
    return rc;
}

/* --- a sequence ----------------------------------------------------------------------------------------- */

static remote_block_place nearest(const block *one)
{
    if (!one) return REMOTE_BLOCK_UNKNOWN;
    int at = REMOTE_BLOCK_GPU;
    while (at < REMOTE_BLOCK_GONE && !(one->places >> at & 1)) at++;
    return (remote_block_place)at;
}

/* The block behind those of `content`, which becomes its own; is_behind_unknown: it may stand there as one of somewhere. */
static const block *find_next(
    const remote_blocks *b, const int32_t *ids, bool is_behind_unknown, uint64_t *content)
{
    const size_t n = b->size * sizeof *ids;
    const uint64_t loose = base_hash64(ids, n, somewhere);
    const block *one;
    *content = base_hash64(ids, n, *content);
    one = find(b, false, *content);
    if (one || !is_behind_unknown) return one;
    one = find(b, false, loose);
    if (one) *content = loose;
    return one;
}

void remote_blocks_count(const remote_blocks *b, const int32_t *ids, uint32_t n, uint32_t n_found,
    remote_block_counts *ret, uint8_t *ret_places)
{
    uint64_t content = root;
    bool has_gap = false, is_unknown = false;
    uint32_t at = 0;
    *ret = (remote_block_counts){.is_told = b->size > 0};
    if (ret_places) memset(ret_places, REMOTE_BLOCK_UNKNOWN, n);
    for (; b->size && at + b->size <= n; at += b->size) {
        const block *one = find_next(b, ids + at, at && is_unknown, &content);
        const bool is_found = !one && at + b->size <= n_found;
        const remote_block_place place = is_found ? REMOTE_BLOCK_GPU : nearest(one);
        is_unknown = !one;
        ret->n[place] += b->size;
        if (ret_places) memset(ret_places + at, (int)place, b->size);
        if (!has_gap && place >= REMOTE_BLOCK_GONE) ret->ends_in_gone = place == REMOTE_BLOCK_GONE;
        has_gap = has_gap || place >= REMOTE_BLOCK_GONE;
        if (!has_gap) ret->found = at + b->size;
        ret->is_told = ret->is_told && place != REMOTE_BLOCK_UNKNOWN;
    }
    ret->n[REMOTE_BLOCK_UNKNOWN] += n - at;
    if (ret->found && ret->found == n) ret->found -= b->size; /* the last token is always computed */
}
