#include "remote/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"

enum {
    MOST_ID = 1 << 22,
    N_KEPT = 1024,          /* texts whose ids are kept; a power of two */
    MOST_KEPT_BYTES = 4096, /* longer ones are asked for again */
    BYTES_PER_ID = 3,       /* before anything was seen; code has few more */
    AT_ONCE = 2048          /* ids whose bytes one request asks for */
};

typedef struct entry {
    char *bytes; /* NULL: not known */
    uint32_t n;
    bool is_control;
} entry;

typedef struct kept {
    char *text;
    size_t n;
    bool special;
    model_ids ids;
} kept;

struct remote_vocab {
    remote_http *http;
    const remote_wire *wire;
    char *model;
    entry *entries;
    size_t n, cap;
    kept texts[N_KEPT];
    uint64_t seen_bytes, seen_ids;
};

remote_vocab *remote_vocab_new(remote_http *http, const remote_wire *wire, const char *model)
{
    remote_vocab *v = base_xcalloc(1, sizeof *v);
    v->http = http;
    v->wire = wire;
    v->model = base_xstrdup(model);
    return v;
}

void remote_vocab_free(remote_vocab *v)
{
    if (!v) return;
    for (size_t i = 0; i < v->n; i++) free(v->entries[i].bytes);
    for (size_t i = 0; i < N_KEPT; i++) {
        free(v->texts[i].text);
        model_ids_free(&v->texts[i].ids);
    }
    free(v->entries);
    free(v->model);
    free(v);
}

/* --- what is known -------------------------------------------------------------------------------------- */

static entry *entry_of(const remote_vocab *v, int32_t id)
{
    return id >= 0 && (size_t)id < v->n ? &v->entries[id] : NULL;
}

static entry *make_entry(remote_vocab *v, int32_t id)
{
    if (id < 0 || id >= MOST_ID) return NULL;
    if ((size_t)id >= v->n) {
        base_grow(&v->entries, &v->cap, (size_t)id + 1, sizeof *v->entries);
        memset(v->entries + v->n, 0, ((size_t)id + 1 - v->n) * sizeof *v->entries);
        v->n = (size_t)id + 1;
    }
    return &v->entries[id];
}

void remote_vocab_set(remote_vocab *v, int32_t id, const char *bytes, size_t n)
{
    entry *e = make_entry(v, id);
    if (!e || e->bytes) return; /* the first word counts: somebody may hold it */
    e->bytes = base_xstrndup(bytes, n);
    e->n = (uint32_t)n;
}

bool remote_vocab_knows(const remote_vocab *v, int32_t id)
{
    const entry *e = entry_of(v, id);
    return e && e->bytes;
}

const char *remote_vocab_piece(const remote_vocab *v, int32_t id, size_t *ret_n)
{
    const entry *e = entry_of(v, id);
    *ret_n = e && e->bytes ? e->n : 0;
    return e ? e->bytes : NULL;
}

void remote_vocab_set_control(remote_vocab *v, int32_t id)
{
    entry *e = make_entry(v, id);
    if (e) e->is_control = true;
}

bool remote_vocab_is_control(const remote_vocab *v, int32_t id)
{
    const entry *e = entry_of(v, id);
    return e && e->is_control;
}

/* --- text to ids ---------------------------------------------------------------------------------------- */

/*
 * A vocabulary's own spelling of a token's bytes: byte-level BPE writes each byte as a letter (GPT-2's table),
 * SentencePiece a blank as U+2581 and a byte as <0xE2>.
 */
static void spelled(const char *text, size_t n, bool is_bytes, base_buf *out)
{
    unsigned byte;
    char end;
    if (n == 6 && sscanf(text, "<0x%2x%c", &byte, &end) == 2 && end == '>') {
        base_buf_putc(out, (char)byte);
        return;
    }
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = base_utf8_decode(text + i, n - i, &cp);
        if (is_bytes && cp >= 0x100 && cp < 0x144) {
            /* 0..32, 127..160 and 173, in this order, are written as U+0100 and on. */
            uint32_t k = cp - 0x100;
            base_buf_putc(out, (char)(k < 33 ? k : k < 67 ? k - 33 + 127 : 173));
        } else if (is_bytes && cp < 0x100) {
            base_buf_putc(out, (char)cp);
        } else if (cp == 0x2581) {
            base_buf_putc(out, ' ');
        } else {
            base_buf_add(out, text + i, used);
        }
        i += used;
    }
}

/* An id's bytes as the tokenizer told them: a text, or a list of bytes where they are none. */
static void learn_piece(remote_vocab *v, int32_t id, const base_json *piece)
{
    base_buf bytes = {0};
    if (!piece || remote_vocab_knows(v, id)) return;
    base_buf_puts(&bytes, "");
    if (piece->type == BASE_JSON_STRING) base_buf_add(&bytes, piece->string, piece->string_len);
    for (const base_json *b = piece->type == BASE_JSON_ARRAY ? piece->first : NULL; b; b = b->next)
        base_buf_putc(&bytes, (char)b->integer);
    remote_vocab_set(v, id, bytes.data, bytes.len);
    base_buf_free(&bytes);
}

/* token_strs: believed where together they spell the text. */
static void learn_spelled(
    remote_vocab *v, const base_json *strs, const int32_t *ids, size_t n, const char *text, size_t n_text)
{
    for (int is_bytes = 1; is_bytes >= 0; is_bytes--) {
        base_buf all = {0};
        size_t *ends = base_xcalloc(n + 1, sizeof *ends), i = 0;
        for (const base_json *s = strs ? strs->first : NULL; s && i < n; s = s->next)
            if (s->type == BASE_JSON_STRING) {
                spelled(s->string, s->string_len, is_bytes, &all);
                ends[i++] = all.len;
            }
        const bool fits = i == n && all.len == n_text && !memcmp(all.data, text, n_text);
        for (i = 0; fits && i < n; i++) {
            size_t from = i ? ends[i - 1] : 0;
            if (!remote_vocab_knows(v, ids[i])) remote_vocab_set(v, ids[i], all.data + from, ends[i] - from);
        }
        free(ends);
        base_buf_free(&all);
        if (fits) return;
    }
}

static int ask_tokens(
    remote_vocab *v, const char *text, size_t n, bool special, model_ids *out, base_err *err)
{
    base_buf body = {0}, answer = {0};
    base_json_doc *doc = NULL;
    v->wire->put_tokenize(v->model, text, n, special, &body);
    int rc = remote_http_ask(v->http, v->wire->tokenize, body.data, NULL, &answer, err);
    if (!rc) rc = base_json_parse(answer.data ? answer.data : "", answer.len, &doc, err);
    const base_json *root = rc ? NULL : base_json_root(doc), *list = base_json_get(root, "tokens");
    if (!rc && (!list || list->type != BASE_JSON_ARRAY))
        rc = base_fail(err, BASE_E_FORMAT, "the endpoint's %s answers without tokens", v->wire->tokenize);
    const size_t first = out->n;
    for (const base_json *t = rc ? NULL : list->first; t && !rc; t = t->next) {
        const base_json *id = t->type == BASE_JSON_OBJECT ? base_json_get(t, "id") : t;
        if (!id || !id->is_integer || id->integer < 0 || id->integer >= MOST_ID) {
            rc = base_fail(
                err, BASE_E_FORMAT, "the endpoint's %s answers with a token that is none", v->wire->tokenize);
            break;
        }
        learn_piece(v, (int32_t)id->integer, base_json_get(t, "piece"));
        model_ids_add(out, (int32_t)id->integer);
    }
    const base_json *strs = rc ? NULL : base_json_get(root, "token_strs");
    if (strs && strs->type == BASE_JSON_ARRAY)
        learn_spelled(v, strs, out->ids + first, out->n - first, text, n);
    if (!rc && v->wire->tells_no_pieces && !special)
        rc = remote_vocab_learn_text(
            v, out->ids + first, out->n - first, (base_str){text, n}, true, NULL, err);
    if (rc) out->n = first;
    base_json_free(doc);
    base_buf_free(&body);
    base_buf_free(&answer);
    return rc;
}

/* Where the first control token's name stands in text, and how long it is; n: nowhere. */
static size_t find_control(const remote_vocab *v, const char *text, size_t n, size_t *ret_len)
{
    size_t best = n;
    for (size_t i = 0; i < v->n; i++) {
        const entry *e = &v->entries[i];
        if (!e->is_control || !e->bytes || e->n < 2) continue;
        const char *at = memmem(text, best + e->n - 1 < n ? best + e->n - 1 : n, e->bytes, e->n);
        if (!at) continue;
        best = (size_t)(at - text);
        *ret_len = e->n;
    }
    return best;
}

/*
 * Where content must be cut so that no control token comes of it, for tokenizers that read them everywhere:
 * inside of each name that is known, and behind "<" of each "<|".
 */
static size_t next_cut(const remote_vocab *v, const char *text, size_t n)
{
    size_t len = 0, at = find_control(v, text, n, &len);
    const char *bar = memmem(text, n, "<|", 2);
    if (bar && (size_t)(bar - text) <= at) return (size_t)(bar - text) + 1;
    return at < n ? at + 1 : n;
}

static kept *place_of(remote_vocab *v, const char *text, size_t n, bool special)
{
    return &v->texts[base_hash64(text, n, special) & (N_KEPT - 1)];
}

int remote_vocab_encode(
    remote_vocab *v, const char *text, size_t n, bool special, model_ids *out, base_err *err)
{
    if (!n) return 0;
    kept *k = place_of(v, text, n, special);
    if (k->text && k->n == n && k->special == special && !memcmp(k->text, text, n)) {
        for (size_t i = 0; i < k->ids.n; i++) model_ids_add(out, k->ids.ids[i]);
        return 0;
    }
    const size_t first = out->n;
    int rc = 0;
    const bool reads_always = v->wire->reads_special;
    for (size_t at = 0; at < n && !rc;) {
        size_t cut = special || !reads_always ? n - at : next_cut(v, text + at, n - at);
        rc = ask_tokens(v, text + at, cut, special, out, err);
        at += cut;
    }
    if (rc) {
        out->n = first;
        return rc;
    }
    v->seen_bytes += n;
    v->seen_ids += out->n - first;
    if (n > MOST_KEPT_BYTES) return 0;
    free(k->text);
    k->text = base_xstrndup(text, n);
    k->n = n;
    k->special = special;
    k->ids.n = 0;
    for (size_t i = first; i < out->n; i++) model_ids_add(&k->ids, out->ids[i]);
    return 0;
}

uint32_t remote_vocab_guess(const remote_vocab *v, size_t n_bytes)
{
    enum { ENOUGH = 2000 };
    double per_id =
        v->seen_bytes > ENOUGH && v->seen_ids ? (double)v->seen_bytes / (double)v->seen_ids : BYTES_PER_ID;
    return (uint32_t)((double)n_bytes / per_id) + 1;
}

/* --- ids to text ---------------------------------------------------------------------------------------- */

int remote_vocab_decode(remote_vocab *v, const int32_t *ids, uint32_t n, base_buf *out, base_err *err)
{
    base_buf body = {0}, answer = {0};
    base_json_doc *doc = NULL;
    v->wire->put_detokenize(v->model, ids, n, &body);
    int rc = remote_http_ask(v->http, v->wire->detokenize, body.data, NULL, &answer, err);
    if (!rc) rc = base_json_parse(answer.data ? answer.data : "", answer.len, &doc, err);
    const base_json *text = rc ? NULL : base_json_get(base_json_root(doc), v->wire->detokenized);
    if (!rc && (!text || text->type != BASE_JSON_STRING))
        rc = base_fail(err, BASE_E_FORMAT, "the endpoint's %s answers without text", v->wire->detokenize);
    if (!rc) base_buf_add(out, text->string, text->string_len);
    base_json_free(doc);
    base_buf_free(&body);
    base_buf_free(&answer);
    return rc;
}

/* A control token whose name is known stands between them, so that one request tells them all. */
static int32_t separator(const remote_vocab *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->entries[i].is_control && v->entries[i].bytes && v->entries[i].n > 3) return (int32_t)i;
    return -1;
}

static bool is_listed(const model_ids *list, int32_t id)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->ids[i] == id) return true;
    return false;
}

/* Each id alone as text: ret[ids->n], which the caller frees. */
static int decode_each(remote_vocab *v, const model_ids *ids, base_buf *ret, base_err *err)
{
    model_ids asked = {0};
    base_buf text = {0};
    const int32_t between = separator(v);
    int rc = 0;
    if (between < 0) { /* one by one */
        for (size_t i = 0; i < ids->n && !rc; i++) rc = remote_vocab_decode(v, &ids->ids[i], 1, &ret[i], err);
    } else if (ids->n) {
        const entry *mark = entry_of(v, between);
        for (size_t i = 0; i < ids->n; i++) {
            model_ids_add(&asked, ids->ids[i]);
            model_ids_add(&asked, between);
        }
        rc = remote_vocab_decode(v, asked.ids, (uint32_t)asked.n, &text, err);
        const char *at = text.data ? text.data : "", *end = at + text.len;
        for (size_t i = 0; i < ids->n && !rc; i++) {
            const char *stop = memmem(at, (size_t)(end - at), mark->bytes, mark->n);
            if (!stop) break;
            base_buf_puts(&ret[i], "");
            base_buf_add(&ret[i], at, (size_t)(stop - at));
            at = stop + mark->n;
        }
    }
    model_ids_free(&asked);
    base_buf_free(&text);
    return rc;
}

/* Those of ids of which no bytes are known, each once, at most `most`. */
static void put_unknown(const remote_vocab *v, const int32_t *ids, size_t n, size_t most, model_ids *out)
{
    for (size_t i = 0; i < n && out->n < most; i++)
        if (!remote_vocab_knows(v, ids[i]) && !is_listed(out, ids[i])) model_ids_add(out, ids[i]);
}

static void free_texts(base_buf *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) base_buf_free(&texts[i]);
    free(texts);
}

int remote_vocab_learn(remote_vocab *v, const int32_t *ids, uint32_t n, base_err *err)
{
    model_ids unknown = {0};
    put_unknown(v, ids, n, AT_ONCE, &unknown);
    base_buf *texts = base_xcalloc(unknown.n + 1, sizeof *texts);
    int rc = decode_each(v, &unknown, texts, err);
    for (size_t i = 0; i < unknown.n && !rc; i++)
        if (texts[i].data || separator(v) < 0)
            remote_vocab_set(v, unknown.ids[i], texts[i].data ? texts[i].data : "", texts[i].len);
    free_texts(texts, unknown.n);
    model_ids_free(&unknown);
    return rc;
}

/* An id's bytes as known or as decoded alone; NULL: neither. */
static const char *piece_of(
    const remote_vocab *v, int32_t id, const model_ids *unknown, const base_buf *texts, size_t *ret_n)
{
    const char *known = remote_vocab_piece(v, id, ret_n);
    for (size_t i = 0; i < unknown->n && !known; i++)
        if (unknown->ids[i] == id) {
            *ret_n = texts[i].len;
            return texts[i].data;
        }
    return known;
}

/* Of a letter in several ids each has a byte; where it has more bytes than ids, the first has the rest. */
static void set_parts(remote_vocab *v, const int32_t *ids, size_t n, const char *text, size_t n_text)
{
    for (size_t i = 0, at = 0; i < n; i++) {
        const size_t behind = n - i - 1, len = n_text - at > behind ? n_text - at - behind : 0;
        remote_vocab_set(v, ids[i], text + at, len);
        at += len;
    }
}

int remote_vocab_learn_text(remote_vocab *v, const int32_t *ids, size_t n, base_str text, bool is_all,
    remote_vocab_fit *ret, base_err *err)
{
    enum { MOST_LETTER = 16 }; /* bytes of an id that does not fit */
    model_ids unknown = {0};
    put_unknown(v, ids, n, AT_ONCE, &unknown);
    base_buf *texts = base_xcalloc(unknown.n + 1, sizeof *texts);
    int rc = decode_each(v, &unknown, texts, err);
    size_t begun = 0, from = 0; /* ids from `begun` on wait for their bytes, which begin at `from` */
    for (size_t i = 0; i < n && !rc; i++) {
        size_t len = 0;
        const char *piece = piece_of(v, ids[i], &unknown, texts, &len);
        const size_t room = text.len - from, most = MOST_LETTER * (i - begun) + 1 + len;
        const char *found = len ? memmem(text.ptr + from, room < most ? room : most, piece, len) : NULL;
        const size_t at = found ? (size_t)(found - text.ptr) : 0;
        const bool lost_blank = i == begun && at == from + 1 && text.ptr[from] == ' ';
        if (!found || (i == begun && at != from && !lost_blank)) continue;
        set_parts(v, ids + begun, i - begun, text.ptr + from, at - from);
        remote_vocab_set(v, ids[i], text.ptr + at - lost_blank, len + lost_blank);
        from = at + len;
        begun = i + 1;
    }
    if (is_all && !rc) {
        set_parts(v, ids + begun, n - begun, text.ptr + from, text.len - from);
        begun = n;
        from = text.len;
    }
    if (ret) *ret = (remote_vocab_fit){begun, from};
    free_texts(texts, unknown.n);
    model_ids_free(&unknown);
    return rc;
}

int remote_vocab_judge(remote_vocab *v, int32_t id, base_err *err)
{
    int rc = remote_vocab_learn(v, &id, 1, err);
    const entry *e = entry_of(v, id);
    if (rc || !e || !e->bytes || e->is_control || !e->n) return rc;
    model_ids plain = {0};
    /* Where a tokenizer reads special texts everywhere only their look tells. */
    if (v->wire->reads_special) {
        if (e->n > 2 && e->bytes[0] == '<' && e->bytes[e->n - 1] == '>') remote_vocab_set_control(v, id);
        return 0;
    }
    rc = ask_tokens(v, e->bytes, e->n, false, &plain, err);
    if (!rc && (plain.n != 1 || plain.ids[0] != id) &&
        base_utf8_valid(v->entries[id].bytes, v->entries[id].n) &&
        (v->entries[id].bytes[0] == '<' || v->entries[id].bytes[0] == '['))
        remote_vocab_set_control(v, id);
    model_ids_free(&plain);
    return rc;
}
