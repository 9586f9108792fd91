/*
 * Layout (little-endian): "kvistix" and a version byte, then entries: payload bytes (u32), hash64 of what
 * follows (u64), key (32), tag (u64), payload. The payload: counts, then definitions with their strings, then
 * calls. Everything is checked against the text's length before it is used.
 */
#include "code/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"

enum { ENTRY_HEAD = 4 + 8 + 32 + 8, MAX_STORE = 1 << 30 };
static const char magic[8] = {'k', 'v', 'i', 's', 't', 'i', 'x', 1};

typedef struct entry {
    const uint8_t *key;
    const char *payload;
    uint64_t tag;
    uint32_t n;
} entry;

struct code_store {
    base_buf bytes;
    entry *entries;
    size_t cap;
    uint32_t n, *table, n_table;
};

/* ---- reading bytes with bounds ---- */

typedef struct reader {
    const char *at, *end;
    bool failed;
} reader;

static uint32_t get32(reader *r)
{
    uint32_t v = 0;
    if (r->end - r->at < 4)
        r->failed = true;
    else
        memcpy(&v, r->at, 4);
    r->at += r->failed ? 0 : 4;
    return v;
}

/* A string that ends with NUL inside the payload. */
static const char *get_string(reader *r, size_t *n)
{
    const char *end = r->at < r->end ? memchr(r->at, '\0', (size_t)(r->end - r->at)) : NULL;
    if (end == NULL) {
        r->failed = true;
        *n = 0;
        return "";
    }
    const char *s = r->at;
    *n = (size_t)(end - s);
    r->at = end + 1;
    return s;
}

static void put32(base_buf *out, uint32_t v)
{
    base_buf_add(out, (const char *)&v, 4);
}

/* ---- opening ---- */

static uint32_t slot_of(const code_store *s, const uint8_t *key)
{
    uint64_t hash;
    memcpy(&hash, key, sizeof hash);
    return (uint32_t)hash & (s->n_table - 1);
}

static void make_table(code_store *s)
{
    s->n_table = 1024;
    while (s->n_table < s->n * 2) s->n_table *= 2;
    s->table = base_xcalloc(s->n_table, sizeof *s->table);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t at = slot_of(s, s->entries[i].key);
        while (s->table[at] != 0) at = (at + 1) & (s->n_table - 1);
        s->table[at] = i + 1;
    }
}

code_store *code_store_open(const char *path, base_buf *word)
{
    code_store *s = base_xcalloc(1, sizeof *s);
    const int rc = base_fs_read(path, MAX_STORE, &s->bytes, NULL);
    const char *at = s->bytes.data, *end = at != NULL ? at + s->bytes.len : NULL;
    bool damaged = rc != 0 && rc != BASE_E_NOT_FOUND;
    if (rc == 0 && (s->bytes.len < sizeof magic || memcmp(at, magic, sizeof magic) != 0)) damaged = true;
    if (rc == 0 && !damaged) {
        for (at += sizeof magic; at < end && !damaged;) {
            uint32_t n;
            uint64_t hash;
            damaged = end - at < ENTRY_HEAD;
            if (damaged) break;
            memcpy(&n, at, 4);
            memcpy(&hash, at + 4, 8);
            damaged = (uint64_t)n > (uint64_t)(end - at - ENTRY_HEAD) ||
                      base_hash64(at + 12, ENTRY_HEAD - 12 + n, 0) != hash;
            if (damaged) break;
            base_grow(&s->entries, &s->cap, (size_t)s->n + 1, sizeof *s->entries);
            entry *e = &s->entries[s->n++];
            *e = (entry){.key = (const uint8_t *)at + 12, .payload = at + ENTRY_HEAD, .n = n};
            memcpy(&e->tag, at + 44, 8);
            at += ENTRY_HEAD + n;
        }
    }
    if (damaged)
        base_buf_printf(word,
            "The saved index was cut off or damaged: %u of "
            "its files could be used, the rest is read anew.\n",
            s->n);
    make_table(s);
    return s;
}

void code_store_close(code_store *s)
{
    if (s == NULL) return;
    base_buf_free(&s->bytes);
    free(s->entries);
    free(s->table);
    free(s);
}

uint32_t code_store_entries(const code_store *s)
{
    return s->n;
}

/* ---- one file ---- */

static bool read_definition(reader *r, code_builder *b, size_t n)
{
    size_t n_name, n_parent, n_what;
    const char *name = get_string(r, &n_name), *parent = get_string(r, &n_parent),
               *what = get_string(r, &n_what);
    uint32_t v[8];
    for (size_t i = 0; i < 8; i++) v[i] = get32(r);
    code_definition d = {.from = v[0],
        .to = v[1],
        .name_from = v[2],
        .body_from = v[3],
        .body_to = v[4],
        .is_declaration = v[5] != 0};
    const bool good = !r->failed && d.from <= d.to && d.to <= n && d.name_from <= n &&
                      d.body_from <= d.body_to && d.body_to <= n && v[6] <= v[7];
    const code_file *f = b->file;
    if (!good || (f->n_definitions != 0 && d.from < f->definitions[f->n_definitions - 1].from)) return false;
    d.name = code_builder_name(b, name, n_name);
    d.parent = code_builder_name(b, parent, n_parent);
    d.what = code_builder_name(b, what, n_what);
    return code_builder_put(b, &d, v[6], v[7]);
}

static bool read_payload(const entry *e, const char *language, size_t n, code_parsed *ret)
{
    reader r = {.at = e->payload, .end = e->payload + e->n};
    uint32_t v[5];
    for (size_t i = 0; i < 5; i++) v[i] = get32(&r);
    const uint32_t n_definitions = v[0], n_calls = v[1];
    if (r.failed || n_calls > e->n / 12 || n_definitions > e->n) return false;
    code_builder b;
    code_builder_begin(&b, v[4] ? language : NULL, "", 0);
    b.file->n_errors = v[2];
    b.file->error_line = v[3];
    bool good = true;
    for (uint32_t i = 0; i < n_definitions && good; i++) good = read_definition(&r, &b, n);
    code_call *calls = base_xmalloc(((size_t)n_calls + 1) * sizeof *calls);
    for (uint32_t i = 0; i < n_calls && good; i++) {
        for (size_t k = 0; k < 3; k++) v[k] = get32(&r);
        calls[i] = (code_call){v[0], v[1], v[2]};
        good = !r.failed && calls[i].from <= n && calls[i].n <= n - calls[i].from &&
               (calls[i].definition == UINT32_MAX || calls[i].definition < n_definitions);
    }
    if (!good || r.at != r.end) {
        code_builder_abandon(&b);
        free(calls);
        return false;
    }
    *ret = (code_parsed){code_builder_end(&b), calls, n_calls};
    return true;
}

bool code_store_find(const code_store *s, const uint8_t key[32], uint64_t tag, const char *language, size_t n,
    code_parsed *ret)
{
    if (s == NULL || s->n == 0) return false;
    for (uint32_t at = slot_of(s, key); s->table[at] != 0; at = (at + 1) & (s->n_table - 1)) {
        const entry *e = &s->entries[s->table[at] - 1];
        if (e->tag == tag && memcmp(e->key, key, 32) == 0) return read_payload(e, language, n, ret);
    }
    return false;
}

void code_store_begin(base_buf *out)
{
    base_buf_add(out, magic, sizeof magic);
}

void code_store_put(base_buf *out, const uint8_t key[32], uint64_t tag, const code_parsed *p)
{
    const size_t begin = out->len;
    static const char head[ENTRY_HEAD];
    base_buf_add(out, head, sizeof head);
    const code_file *f = p->file;
    put32(out, f->n_definitions);
    put32(out, p->n_calls);
    put32(out, f->n_errors);
    put32(out, f->error_line);
    put32(out, f->language != NULL);
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        const char *const strings[] = {d->name, d->parent, d->what};
        for (size_t k = 0; k < 3; k++) base_buf_add(out, strings[k], strlen(strings[k]) + 1);
        const uint32_t numbers[] = {
            d->from, d->to, d->name_from, d->body_from, d->body_to, d->is_declaration, d->line, d->line_end};
        base_buf_add(out, (const char *)numbers, sizeof numbers);
    }
    for (uint32_t i = 0; i < p->n_calls; i++) {
        const uint32_t numbers[] = {p->calls[i].definition, p->calls[i].from, p->calls[i].n};
        base_buf_add(out, (const char *)numbers, sizeof numbers);
    }
    const uint32_t n = (uint32_t)(out->len - begin - ENTRY_HEAD);
    memcpy(out->data + begin, &n, 4);
    memcpy(out->data + begin + 12, key, 32);
    memcpy(out->data + begin + 44, &tag, 8);
    const uint64_t hash = base_hash64(out->data + begin + 12, ENTRY_HEAD - 12 + n, 0);
    memcpy(out->data + begin + 4, &hash, 8);
}
