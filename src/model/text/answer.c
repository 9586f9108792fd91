/* Two grammars side by side and a limit (contract: answer.h). */
#include "model/text/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/text/schema_grammar.h"
#include "model/text/token_plain.h"
#include "model/text/token_trie.h"

/* Masks of states that come again. A key of more threads is not kept. */
enum { N_KEPT = 32, MOST_KEY_THREADS = 4 };
typedef struct kept_mask {
    uint32_t n; /* threads of its key; 0: empty */
    schema_thread key[MOST_KEY_THREADS];
    bool with_calls;
    uint32_t dearest; /* the cost behind the token that leads farthest */
    uint64_t used;
    uint64_t *bits;
} kept_mask;

struct model_answer {
    const model_tokenizer *tokenizer;
    schema_grammar *grammar;
    model_grammar *calls; /* while it may still be one; NULL: it is none */
    bool is_json;         /* while it may still be that */
    bool is_call;         /* it is a call: its trigger stands there whole */
    bool was_cut;
    uint32_t left; /* tokens, the end counted */
    schema_state now, next;
    int32_t *ends;
    size_t n_ends, cap_ends;
    const token_trie *trie;
    token_plain *plain;
    schema_state *stack; /* [trie->max_depth + 1] */
    kept_mask kept[N_KEPT];
    uint64_t n_asked;
    uint64_t *mask; /* where the key is too long to be kept, or the limit is near */
};

int model_answer_can(const base_schema *schema, base_err *err)
{
    schema_grammar *g = NULL;
    const int rc = schema_grammar_new(&g, schema, err);
    schema_grammar_free(g);
    return rc;
}

int model_answer_new(model_answer **ret, const model_tokenizer *t, const base_schema *schema, base_err *err)
{
    model_answer *a = base_xcalloc(1, sizeof *a);
    a->tokenizer = t;
    const int rc = schema_grammar_new(&a->grammar, schema, err);
    if (rc) {
        free(a);
        return rc;
    }
    for (uint32_t id = 0; id < model_tokenizer_size(t); id++) {
        if (!model_tokenizer_is_end(t, (int32_t)id)) continue;
        base_grow(&a->ends, &a->cap_ends, a->n_ends + 1, sizeof *a->ends);
        a->ends[a->n_ends++] = (int32_t)id;
    }
    *ret = a;
    return BASE_OK;
}

void model_answer_free(model_answer *a)
{
    if (!a) return;
    schema_grammar_free(a->grammar);
    for (int i = 0; i < N_KEPT; i++) free(a->kept[i].bits);
    token_plain_free(a->plain);
    free(a->ends);
    free(a->stack);
    free(a->mask);
    free(a);
}

static void forget_masks(model_answer *a)
{
    for (int i = 0; i < N_KEPT; i++) a->kept[i].n = 0;
}

int model_answer_begin(model_answer *a, model_grammar *calls, uint32_t n_tokens, base_err *err)
{
    schema_grammar_begin(a->grammar, &a->now);
    forget_masks(a);
    a->calls = calls;
    a->is_json = true;
    a->is_call = false;
    a->was_cut = false;
    a->left = n_tokens;
    const uint32_t cost = schema_grammar_cost(a->grammar, &a->now);
    if (cost < n_tokens) return BASE_OK;
    return base_fail(err, BASE_E_LIMIT,
        "the shortest JSON that fits the schema has %u bytes, which may take as many tokens, and the answer "
        "may have %u: --max-tokens raises that, as far as the context goes",
        cost, n_tokens);
}

void model_answer_close(model_answer *a)
{
    const uint32_t least = schema_grammar_cost(a->grammar, &a->now) + 1;
    if (a->is_json && least < a->left) {
        a->left = least;
        a->was_cut = true;
    }
}

bool model_answer_is_call(const model_answer *a)
{
    return a->is_call;
}

bool model_answer_was_cut(const model_answer *a)
{
    return a->was_cut;
}

/* ---- tokens ---- */

static bool is_end(const model_answer *a, int32_t id)
{
    return model_tokenizer_is_end(a->tokenizer, id);
}

/* The token's bytes behind *s; false: they do not go on with it. Control tokens are no text. */
static bool take_token(model_answer *a, schema_state *s, int32_t id)
{
    size_t n = 0;
    const char *piece = model_tokenizer_piece(a->tokenizer, id, &n);
    if (!piece || n == 0 || model_tokenizer_is_control(a->tokenizer, id)) return false;
    for (size_t i = 0; i < n; i++) {
        if (!schema_grammar_take(a->grammar, s, &a->next, (uint8_t)piece[i])) return false;
        schema_state_copy(s, &a->next);
    }
    return true;
}

/* Behind a token, is the end near enough? The token itself and the end token are two of those left. */
static bool is_near(const model_answer *a, uint32_t cost)
{
    return (uint64_t)cost + 2 <= a->left;
}

static bool accepts_json(model_answer *a, int32_t id)
{
    if (!a->is_json) return false;
    if (is_end(a, id)) return schema_grammar_is_whole(a->grammar, &a->now);
    schema_state s;
    schema_state_copy(&s, &a->now);
    if (!take_token(a, &s, id)) return false;
    const bool is_in_time = is_near(a, schema_grammar_cost(a->grammar, &s));
    if (!is_in_time) a->was_cut = true;
    return is_in_time;
}

static bool accepts_call(const model_answer *a, int32_t id)
{
    return a->calls && model_grammar_begins_call(a->calls, id);
}

bool model_answer_accepts(model_answer *a, int32_t id)
{
    return accepts_json(a, id) || accepts_call(a, id);
}

void model_answer_advance(model_answer *a, int32_t id)
{
    if (is_end(a, id)) return;
    if (a->is_call) {
        model_grammar_advance(a->calls, id);
        return;
    }
    const bool call = accepts_call(a, id), json = accepts_json(a, id);
    if (a->left) a->left--;
    if (call) model_grammar_advance(a->calls, id);
    if (!call) a->calls = NULL;
    a->is_json = json;
    a->is_call = call && !json && model_grammar_is_active(a->calls);
    if (!json) return;
    take_token(a, &a->now, id);
    if (schema_grammar_tidy(a->grammar, &a->now)) forget_masks(a);
}

/* ---- masks ---- */

static bool prepare(model_answer *a)
{
    if (!a->trie) a->trie = model_tokenizer_trie(a->tokenizer);
    if (a->trie && !a->stack) a->stack = malloc(((size_t)a->trie->max_depth + 1) * sizeof *a->stack);
    if (!a->plain) a->plain = token_plain_new(a->tokenizer);
    return a->trie && a->stack && a->plain;
}

static size_t n_words(const model_answer *a)
{
    return ((size_t)model_tokenizer_size(a->tokenizer) + 63) / 64;
}

static void allow(uint64_t *bits, int32_t id)
{
    bits[id / 64] |= (uint64_t)1 << (id % 64);
}

/* Of a trie's tokens those that go on with *from; the rest as walk. */
static bool walk_trie(model_answer *a, const token_trie *trie, const schema_state *from, uint64_t *bits,
    int64_t most, uint32_t *dearest)
{
    bool any = false;
    schema_state_copy(&a->stack[0], from);
    for (uint32_t i = 0; i < trie->n_nodes;) {
        const token_trie_node *node = &trie->nodes[i];
        schema_state *s = &a->stack[node->depth];
        if (!schema_grammar_take(a->grammar, &a->stack[node->depth - 1], s, node->byte)) {
            i += node->n_nodes;
            continue;
        }
        i++;
        if (node->id < 0) continue;
        const uint32_t cost = schema_grammar_cost(a->grammar, s);
        if (cost > *dearest) *dearest = cost;
        if ((int64_t)cost > most) continue;
        for (int32_t id = node->id; id >= 0; id = trie->same[id]) allow(bits, id), any = true;
    }
    return any;
}

/*
 * Walks the vocabulary; returns whether any is allowed, of those behind which at most `most` bytes are missing (-1:
 * only an end). *dearest: the cost behind the one that leads farthest, or more.
 */
static bool walk(model_answer *a, uint64_t *bits, int64_t most, uint32_t *dearest)
{
    bool any;
    schema_free_text text;
    *dearest = 0;
    if (!a->is_json) return false;
    schema_grammar_free_text(a->grammar, &a->now, &text);
    if (text.n_characters && (int64_t)text.cost <= most) {
        any = token_plain_allow(a->plain, text.n_characters, bits);
        any = walk_trie(a, a->plain->others, &a->now, bits, most, dearest) || any;
        if (text.others.n) any = walk_trie(a, a->trie, &text.others, bits, most, dearest) || any;
        if (text.cost > *dearest) *dearest = text.cost;
    } else {
        any = walk_trie(a, a->trie, &a->now, bits, most, dearest);
    }
    for (size_t e = 0; e < a->n_ends && schema_grammar_is_whole(a->grammar, &a->now); e++)
        allow(bits, a->ends[e]), any = true;
    return any;
}

static bool add_calls(model_answer *a, uint64_t *bits)
{
    bool any = false;
    for (uint32_t id = 0; a->calls && id < model_tokenizer_size(a->tokenizer); id++)
        if (model_grammar_begins_call(a->calls, (int32_t)id)) allow(bits, (int32_t)id), any = true;
    return any;
}

static bool is_key(const model_answer *a, const kept_mask *k)
{
    return k->n == a->now.n && k->with_calls == (a->calls != NULL) &&
           !memcmp(k->key, a->now.threads, k->n * sizeof *k->key);
}

/* The mask of this state where it is kept, else the one unused longest. */
static kept_mask *find_kept(model_answer *a, bool *ret_known)
{
    kept_mask *oldest = &a->kept[0];
    a->n_asked++;
    *ret_known = false;
    for (kept_mask *k = a->kept; k < a->kept + N_KEPT; k++) {
        if (k->n && is_key(a, k)) {
            *ret_known = true;
            k->used = a->n_asked;
            return k;
        }
        if (!k->n || (oldest->n && k->used < oldest->used)) oldest = k;
    }
    return oldest;
}

/* A mask that holds for as many tokens as are left now and for no other number. */
static const uint64_t *mask_near_limit(model_answer *a)
{
    uint32_t dearest;
    if (!a->mask) a->mask = malloc(n_words(a) * sizeof *a->mask);
    if (!a->mask) return NULL;
    memset(a->mask, 0, n_words(a) * sizeof *a->mask);
    const bool any = walk(a, a->mask, (int64_t)a->left - 2, &dearest), any_call = add_calls(a, a->mask);
    return any || any_call ? a->mask : NULL;
}

const uint64_t *model_answer_mask(model_answer *a)
{
    bool known;
    if (!prepare(a)) return NULL;
    if (a->now.n > MOST_KEY_THREADS || !a->is_json) return mask_near_limit(a);
    kept_mask *k = find_kept(a, &known);
    if (!known) {
        k->n = 0;
        if (!k->bits) k->bits = malloc(n_words(a) * sizeof *k->bits);
        if (!k->bits) return NULL;
        memset(k->bits, 0, n_words(a) * sizeof *k->bits);
        const bool any = walk(a, k->bits, INT64_MAX, &k->dearest), any_call = add_calls(a, k->bits);
        if (!any && !any_call) return NULL;
        k->n = a->now.n;
        memcpy(k->key, a->now.threads, k->n * sizeof *k->key);
        k->with_calls = a->calls != NULL;
        k->used = a->n_asked;
    }
    return is_near(a, k->dearest) ? k->bits : mask_near_limit(a);
}

const uint64_t *model_answer_few(model_answer *a, const int32_t *ids, uint32_t n)
{
    if (a->calls || n >= a->left) return NULL; /* both may begin here: the pick decides */
    schema_state here;
    const uint64_t *allowed = NULL;
    bool is_json = true;
    schema_state_copy(&here, &a->now);
    for (uint32_t i = 0; i < n && is_json; i++) is_json = take_token(a, &a->now, ids[i]);
    a->left -= n;
    if (is_json && !schema_grammar_is_free(&a->now)) allowed = model_answer_mask(a);
    a->left += n;
    schema_state_copy(&a->now, &here);
    return allowed;
}

/* The only byte that may come; -1: several, none, or the end. */
static int only_byte(model_answer *a, const schema_state *s)
{
    int only = -1;
    if (schema_grammar_is_free(s) || schema_grammar_is_whole(a->grammar, s)) return -1;
    for (int byte = 0; byte < 256; byte++) {
        if (!schema_grammar_take(a->grammar, s, &a->next, (uint8_t)byte)) continue;
        if (only >= 0) return -1;
        only = byte;
    }
    return only;
}

uint32_t model_answer_forced(model_answer *a, int32_t *ret, uint32_t max)
{
    char bytes[256];
    size_t n = 0;
    if (a->calls) return 0;
    schema_state s;
    schema_state_copy(&s, &a->now);
    for (int byte; n < sizeof bytes && (byte = only_byte(a, &s)) >= 0; n++) {
        bytes[n] = (char)byte;
        schema_grammar_take(a->grammar, &s, &a->next, (uint8_t)byte);
        schema_state_copy(&s, &a->next);
    }
    if (!n) return 0;
    model_ids ids = {0};
    model_tokenizer_encode(a->tokenizer, bytes, n, false, &ids);
    uint32_t count = 0;
    schema_state_copy(&s, &a->now);
    /* The spelling of a letter's later half may be another text. */
    while (count < max && count + 1 < ids.n && ids.ids[count] >= 0 && take_token(a, &s, ids.ids[count]))
        ret[count] = ids.ids[count], count++;
    model_ids_free(&ids);
    return count;
}
