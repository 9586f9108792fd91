/*
 * Files go in, places come out. A file's text is parsed outside the lock, cut into chunks, and each
 * identifier of a chunk adds to the postings of its terms, in the field (name, head, body) where it stands.
 * Removing a file marks its chunks dead; the postings are swept when the dead outnumber the living. Questions
 * are in search.c.
 *
 * Bounds: a file over 1 MB, a binary or generated one is known by its path only, and so is every further file
 * once 96 MB of text are held (about three times that in all, measured). Any thread; one mutex.
 */
#include "code/index_state.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fs.h"
#include "base/hash.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_TEXT_BYTES = 96 << 20, MAX_CHUNKS = 1 << 24 };

code_index *code_index_new(code_grammars *g)
{
    code_index *x = base_xcalloc(1, sizeof *x);
    x->grammars = g;
    pthread_mutex_init(&x->lock, NULL);
    return x;
}

static void lock(const code_index *x)
{
    pthread_mutex_lock(&((code_index *)x)->lock);
}

static void unlock(const code_index *x)
{
    pthread_mutex_unlock(&((code_index *)x)->lock);
}

void code_index_set_alike(code_index *x, const base_alike *alike)
{
    lock(x);
    x->alike = alike;
    unlock(x);
}

void code_index_free(code_index *x)
{
    if (x == NULL) return;
    for (uint32_t i = 0; i < x->paths.n; i++) {
        free(x->files[i].text);
        free(x->files[i].names);
        free(x->files[i].calls);
        code_file_free(x->files[i].file);
    }
    for (uint32_t i = 0; i < x->identifiers.n; i++) free(x->names[i].refs);
    for (uint32_t i = 0; i < x->words.n; i++) free(x->terms[i].postings);
    code_strings_free(&x->paths);
    code_strings_free(&x->identifiers);
    code_strings_free(&x->words);
    free(x->files);
    free(x->names);
    free(x->terms);
    free(x->name_terms);
    free(x->chunks);
    free(x->tally);
    code_store_close(x->store);
    for (uint32_t i = 0; i < MAX_KEPT; i++) code_kept_free(x->kept[i].kept);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

/* Grows an array that is indexed by the ids of a string table, new items zeroed. */
static void cover(void *items, size_t *cap, uint32_t id, size_t item_size)
{
    const size_t before = *cap;
    base_grow(items, cap, (size_t)id + 1, item_size);
    if (*cap > before) memset(*(char **)items + before * item_size, 0, (*cap - before) * item_size);
}

/* Most of these arrays stay at one or two items, and there are a million of them. */
static void grow_tight(void *items, size_t *cap, size_t wanted, size_t item_size)
{
    if (wanted <= *cap) return;
    const size_t more = wanted < 4 ? wanted : wanted + wanted / 2;
    void *p;
    memcpy(&p, items, sizeof p);
    p = base_xrealloc(p, more * item_size);
    memcpy(items, &p, sizeof p);
    *cap = more;
}

/* ---- names and terms ---- */

static void add_term(void *user, const char *word, size_t n)
{
    code_index *x = user;
    const uint32_t id = code_strings_add(&x->words, word, n);
    cover(&x->terms, &x->cap_terms, id, sizeof *x->terms);
    cover(&x->tally, &x->cap_tally, id, sizeof *x->tally);
    base_grow(&x->name_terms, &x->cap_name_terms, x->n_name_terms + 1, sizeof *x->name_terms);
    x->name_terms[x->n_name_terms++] = id;
}

static uint32_t name_of(code_index *x, const char *s, size_t n)
{
    const uint32_t known = x->identifiers.n;
    const uint32_t id = code_strings_add(&x->identifiers, s, n);
    if (id < known) return id;
    cover(&x->names, &x->cap_names, id, sizeof *x->names);
    x->names[id].first_term = (uint32_t)x->n_name_terms;
    code_index_terms(s, n, add_term, x);
    x->names[id].n_terms = (uint32_t)x->n_name_terms - x->names[id].first_term;
    return id;
}

/* ---- one file ---- */

typedef enum field { IN_BODY, IN_HEAD, IN_NAME } field;

typedef struct gather {
    code_index *x;
    uint32_t *touched; /* word ids with a tally */
    uint32_t n_touched;
    size_t cap_touched;
} gather;

static void count(gather *g, uint32_t name_id, field where)
{
    const indexed_name *w = &g->x->names[name_id];
    for (uint32_t i = 0; i < w->n_terms; i++) {
        const uint32_t id = g->x->name_terms[w->first_term + i];
        struct tally *t = &g->x->tally[id];
        if (t->name == 0 && t->head == 0 && t->body == 0) {
            base_grow(&g->touched, &g->cap_touched, (size_t)g->n_touched + 1, sizeof *g->touched);
            g->touched[g->n_touched++] = id;
        }
        if (where == IN_NAME) {
            t->name++;
            g->x->terms[id].in_names = true;
        } else if (where == IN_HEAD) {
            t->head++;
        } else {
            t->body++;
        }
    }
}

static void count_words(gather *g, const char *s, field where)
{
    size_t pos = 0, from, to;
    const size_t n = strlen(s);
    while (code_next_identifier(s, n, &pos, &from, &to)) count(g, name_of(g->x, s + from, to - from), where);
}

/* Turns the tally into postings of this chunk. */
static void post(gather *g, uint32_t chunk)
{
    for (uint32_t i = 0; i < g->n_touched; i++) {
        struct tally *t = &g->x->tally[g->touched[i]];
        term *w = &g->x->terms[g->touched[i]];
        grow_tight(&w->postings, &w->cap, (size_t)w->n + 1, sizeof *w->postings);
        w->postings[w->n++] = (posting){chunk, t->name > 255 ? 255 : (uint8_t)t->name,
            t->head > 255 ? 255 : (uint8_t)t->head, t->body > 65535 ? 65535 : (uint16_t)t->body};
        *t = (struct tally){0};
    }
    g->n_touched = 0;
}

/* Remembers that this file holds the name, once. */
static void hold(code_index *x, uint32_t id, uint32_t *ids, uint32_t *n_ids)
{
    if (x->names[id].stamp == x->stamp) return;
    x->names[id].stamp = x->stamp;
    x->names[id].n_files++;
    ids[(*n_ids)++] = id;
}

static void index_chunk(gather *g, uint32_t file_id, const code_chunk *c, const char *text, uint32_t *ids,
    uint32_t *n_ids, size_t *pos)
{
    code_index *x = g->x;
    const indexed_file *f = &x->files[file_id];
    uint32_t length = 0;
    size_t from, to;
    if (*pos < c->from) *pos = c->from;
    while (*pos < c->to) {
        if (!code_next_identifier(text, c->to, pos, &from, &to)) break;
        if (to - from > 128) continue;
        const uint32_t id = name_of(x, text + from, to - from);
        hold(x, id, ids, n_ids);
        length++;
        count(g, id, from < c->head_to ? IN_HEAD : IN_BODY);
    }
    const char *path = x->paths.strings[file_id];
    count_words(g, path, IN_BODY);
    if (c->definition != UINT32_MAX) {
        const code_definition *d = &f->file->definitions[c->definition];
        const bool again = c->flags & CHUNK_CONTINUED;
        count_words(g, d->name, again ? IN_HEAD : IN_NAME);
        count_words(g, d->parent, IN_HEAD);
    }
    base_grow(&x->chunks, &x->cap_chunks, (size_t)x->n_chunks + 1, sizeof *x->chunks);
    x->chunks[x->n_chunks] = (indexed_chunk){*c, file_id, length, false};
    x->total_length += length;
    post(g, x->n_chunks++);
}

static void insert(code_index *x, uint32_t file_id, const code_chunk *chunks, uint32_t n_chunks)
{
    indexed_file *f = &x->files[file_id];
    gather g = {.x = x};
    /* Every identifier takes a byte and what separates it another. */
    uint32_t *ids = base_xmalloc((f->n / 2 + 2 + f->file->n_definitions) * sizeof *ids), n_ids = 0;
    size_t pos = 0;
    x->stamp++; /* names start at 0, so that none is held */
    f->first_chunk = x->n_chunks;
    for (uint32_t i = 0; i < n_chunks && x->n_chunks < MAX_CHUNKS; i++) {
        index_chunk(&g, file_id, &chunks[i], f->text, ids, &n_ids, &pos);
    }
    f->n_chunks = x->n_chunks - f->first_chunk;
    for (uint32_t d = 0; d < f->file->n_definitions; d++) {
        const char *s = f->file->definitions[d].name;
        const uint32_t id = name_of(x, s, strlen(s));
        indexed_name *w = &x->names[id];
        grow_tight(&w->refs, &w->cap_refs, (size_t)w->n_refs + 1, sizeof *w->refs);
        w->refs[w->n_refs++] = (uint64_t)file_id << 32 | d;
        hold(x, id, ids, &n_ids);
    }
    f->names = base_xrealloc(ids, (n_ids + 1) * sizeof *ids);
    f->n_names = n_ids;
    free(g.touched);
}

/* Sweeps postings of dead chunks and closes the gaps in the numbering. */
static void sweep(code_index *x)
{
    uint32_t *number = base_xmalloc(((size_t)x->n_chunks + 1) * sizeof *number), n = 0;
    for (uint32_t i = 0; i < x->n_chunks; i++) {
        number[i] = x->chunks[i].dead ? UINT32_MAX : n;
        if (x->chunks[i].dead) continue;
        x->chunks[n++] = x->chunks[i];
    }
    for (uint32_t w = 0; w < x->words.n; w++) {
        term *t = &x->terms[w];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < t->n; i++) {
            const uint32_t to = number[t->postings[i].chunk];
            if (to == UINT32_MAX) continue;
            t->postings[kept] = t->postings[i];
            t->postings[kept++].chunk = to;
        }
        t->n = kept;
    }
    for (uint32_t i = 0; i < x->paths.n; i++)
        if (x->files[i].n_chunks != 0) x->files[i].first_chunk = number[x->files[i].first_chunk];
    x->n_chunks = n;
    x->n_dead = 0;
    free(number);
}

/* Takes a file's contents out; its path stays known when `present`. */
static void clear(code_index *x, indexed_file *f)
{
    const uint32_t file_id = (uint32_t)(f - x->files);
    for (uint32_t i = 0; i < f->n_chunks; i++) {
        x->chunks[f->first_chunk + i].dead = true;
        x->total_length -= x->chunks[f->first_chunk + i].length;
    }
    x->n_dead += f->n_chunks;
    f->n_chunks = 0;
    for (uint32_t i = 0; i < f->n_names; i++) {
        indexed_name *w = &x->names[f->names[i]];
        w->n_files--;
        uint32_t kept = 0;
        for (uint32_t r = 0; r < w->n_refs; r++)
            if (w->refs[r] >> 32 != file_id) w->refs[kept++] = w->refs[r];
        w->n_refs = kept;
    }
    free(f->names);
    f->names = NULL;
    f->n_names = 0;
    free(f->calls);
    f->calls = NULL;
    f->n_calls = 0;
    code_file_free(f->file);
    f->file = NULL;
    if (f->text != NULL) x->text_bytes -= f->n;
    free(f->text);
    f->text = NULL;
    f->n = 0;
}

/* ---- parsing ---- */

/* The kept tree of a file, taken out so that nobody else touches it; NULL: none. */
static code_kept *take_kept(code_index *x, uint32_t file)
{
    for (uint32_t i = 0; i < MAX_KEPT; i++)
        if (x->kept[i].kept != NULL && x->kept[i].file == file) {
            code_kept *kept = x->kept[i].kept;
            x->kept[i].kept = NULL;
            return kept;
        }
    return NULL;
}

/* In place of the one that was used least lately. */
static void keep(code_index *x, uint32_t file, code_kept *kept)
{
    if (kept == NULL) return;
    kept_file *to = &x->kept[0];
    for (uint32_t i = 0; i < MAX_KEPT; i++)
        if (x->kept[i].kept == NULL || (to->kept != NULL && x->kept[i].used < to->used)) to = &x->kept[i];
    code_kept_free(to->kept);
    *to = (kept_file){file, kept, ++x->clock};
}

/* Names of the calls; the anchors themselves are not kept: the index has no further use for them. */
static void take_calls(code_parsed *p, const char *text)
{
    code_file *f = p->file;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_anchors; i++) n += f->anchors[i].kind == CODE_CALL;
    p->calls = base_xmalloc(((size_t)n + 1) * sizeof *p->calls);
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        uint32_t from, to;
        if (code_call_name(&f->anchors[i], text, &from, &to))
            p->calls[p->n_calls++] = (code_call){f->anchors[i].definition, from, to - from};
    }
    free(f->anchors);
    f->anchors = NULL;
    f->n_anchors = 0;
    if (f->n_definitions != 0)
        f->definitions = base_xrealloc(f->definitions, f->n_definitions * sizeof *f->definitions);
}

typedef struct reading {
    code_parsed parsed;
    uint8_t key[32];
    uint64_t tag;
    code_kept *kept;
    bool is_edit, has_key, from_store;
} reading;

static void make_key(const char *text, size_t n, uint8_t ret[32])
{
    base_sha256 sha;
    base_sha256_init(&sha);
    base_sha256_add(&sha, text, n);
    base_sha256_end(&sha, ret);
}

static void read_file(code_index *x, const char *path, const char *text, size_t n, reading *r)
{
    const char *language;
    r->tag = code_reader_tag(x->grammars, path, text, n, &language);
    if (!r->is_edit) {
        r->has_key = true;
        make_key(text, n, r->key);
        r->from_store = code_store_find(x->store, r->key, r->tag, language, n, &r->parsed);
    }
    if (r->from_store) return;
    r->parsed.file = r->is_edit ? code_parse_edited(x->grammars, path, text, n, &r->kept)
                                : code_parse(x->grammars, path, text, n);
    take_calls(&r->parsed, text);
}

void code_index_update(code_index *x, const char *path, const char *text, size_t n)
{
    const uint64_t hash = text != NULL ? base_hash64(text, n, 1) : 0;
    reading r = {0};
    lock(x);
    const uint32_t id = code_strings_add(&x->paths, path, strlen(path));
    cover(&x->files, &x->cap_files, id, sizeof *x->files);
    indexed_file *f = &x->files[id];
    const bool same = text != NULL && f->present && f->hash == hash;
    const bool fits = text != NULL && n <= MAX_FILE_BYTES &&
                      x->text_bytes - (f->text != NULL ? f->n : 0) + n <= MAX_TEXT_BYTES;
    r.is_edit = f->text != NULL;
    if (!same) r.kept = take_kept(x, id);
    unlock(x);
    if (same) return;
    code_chunk *chunks = NULL;
    uint32_t n_chunks = 0;
    if (fits && !code_chunk_skips(path, text, n)) {
        read_file(x, path, text, n, &r);
        n_chunks = code_chunk_file(r.parsed.file, path, text, n, &chunks);
    }
    lock(x);
    f = &x->files[id]; /* the array may have moved */
    const code_parsed before = {f->file, f->calls, f->n_calls};
    if (r.is_edit && r.parsed.file != NULL && f->text != NULL &&
        code_keep_through_break(&before, f->text, f->n, text, n, &r.parsed)) {
        r.tag = 0; /* not what this text gives: never stored for it */
        free(chunks);
        n_chunks = code_chunk_file(r.parsed.file, path, text, n, &chunks);
    }
    clear(x, f);
    if (f->present != (text != NULL)) x->n_present += text != NULL ? 1u : -1u;
    f->present = text != NULL;
    f->hash = hash;
    if (r.parsed.file != NULL) {
        f->file = r.parsed.file;
        f->calls = r.parsed.calls;
        f->n_calls = r.parsed.n_calls;
        f->has_key = r.has_key;
        memcpy(f->key, r.key, sizeof f->key);
        f->tag = r.tag;
        f->text = base_xmalloc(n + 1);
        memcpy(f->text, text, n);
        f->text[n] = '\0';
        f->n = n;
        x->text_bytes += n;
        x->n_parsed += !r.from_store;
        insert(x, id, chunks, n_chunks);
        keep(x, id, r.kept);
    } else {
        code_kept_free(r.kept);
    }
    if (x->n_dead > 4096 && x->n_dead > x->n_chunks / 2) sweep(x);
    unlock(x);
    free(chunks);
}

uint32_t code_index_parsed(const code_index *x)
{
    lock(x);
    const uint32_t n = x->n_parsed;
    unlock(x);
    return n;
}

void code_index_expect_edit(code_index *x, const char *path)
{
    lock(x);
    const uint32_t id = code_strings_find(&x->paths, path, strlen(path));
    bool wanted = id != UINT32_MAX && x->files[id].text != NULL && x->files[id].file->language != NULL;
    for (uint32_t i = 0; wanted && i < MAX_KEPT; i++)
        if (x->kept[i].kept != NULL && x->kept[i].file == id) {
            x->kept[i].used = ++x->clock;
            wanted = false;
        }
    const size_t n = wanted ? x->files[id].n : 0;
    char *text = wanted ? base_xmalloc(n + 1) : NULL;
    if (wanted) memcpy(text, x->files[id].text, n + 1);
    unlock(x);
    if (text == NULL) return;
    code_kept *kept = NULL;
    code_file_free(code_parse_edited(x->grammars, path, text, n, &kept));
    free(text);
    lock(x);
    keep(x, id, kept);
    unlock(x);
}

void code_index_load(code_index *x, const char *path, base_buf *word)
{
    base_buf unread = {0};
    code_store *store = code_store_open(path, word != NULL ? word : &unread);
    base_buf_free(&unread);
    lock(x);
    code_store_close(x->store);
    x->store = store;
    x->n_parsed = 0;
    unlock(x);
}

int code_index_save(code_index *x, const char *path, base_err *err)
{
    base_buf out = {0};
    lock(x);
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->paths.n; i++) n += x->files[i].file != NULL;
    const bool same = x->n_parsed == 0 && x->store != NULL && n == code_store_entries(x->store);
    if (!same) {
        code_store_begin(&out);
        for (uint32_t i = 0; i < x->paths.n; i++) {
            indexed_file *f = &x->files[i];
            const code_parsed p = {f->file, f->calls, f->n_calls};
            if (f->file == NULL) continue;
            if (!f->has_key) make_key(f->text, f->n, f->key);
            f->has_key = true;
            code_store_put(&out, f->key, f->tag, &p);
        }
        x->n_parsed = 0;
    }
    unlock(x);
    const int rc = same ? 0 : base_fs_write(path, out.data, out.len, 0600, err);
    base_buf_free(&out);
    return rc;
}

uint32_t code_index_files(const code_index *x)
{
    lock(x);
    const uint32_t n = x->n_present;
    unlock(x);
    return n;
}

uint32_t code_index_chunks(const code_index *x)
{
    lock(x);
    const uint32_t n = x->n_chunks - x->n_dead;
    unlock(x);
    return n;
}
