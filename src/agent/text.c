/*
 * Text into the session. A text becomes tokens; where its lines start, which of its bytes are signatures or calls, and which
 * words say what it asks for are mapped from bytes to tokens and handed to the engine with it. Everything that entered is
 * remembered as a piece and told as `append` and `span` events. Content never becomes a control token.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/internal.h"
#include "agent/marks.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { MAX_QUERIES = 8, MAX_SPANS = 1024 };

uint32_t agent__n_tokens(const agent *a)
{
    uint32_t n;
    a->engine->ops->ids(a->engine, &n);
    return n;
}

uint32_t agent__count(const agent *a, const char *text, size_t n)
{
    model_ids ids = {0};
    a->engine->ops->encode(a->engine, text, n, &ids);
    uint32_t count = (uint32_t)ids.n;
    model_ids_free(&ids);
    return count;
}

/* --- words -------------------------------------------------------------------------------------------------------------- */

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Words that say nothing about which rows matter. */
static const char *const stop_words[] = {"about", "after", "again", "all", "also", "and", "any", "are",
    "assert", "because", "been", "before", "but", "can", "could", "defined", "does", "each", "else", "error",
    "fails", "file", "files", "find", "fix", "for", "from", "function", "get", "give", "has", "have", "here",
    "how", "into", "its", "just", "line", "lines", "make", "many", "more", "must", "name", "not", "now",
    "off", "one", "only", "other", "our", "out", "please", "request", "return", "run", "same", "should",
    "show", "some", "tell", "test", "tests", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "use", "used", "uses", "using", "was", "were", "what", "when", "where", "which", "while",
    "who", "why", "will", "with", "work", "works", "would", "you", "your"};

static int compare_word(const void *key, const void *row)
{
    return strcmp(key, *(const char *const *)row);
}

/* Of an identifier, no part is a word of its own: `add_one` speaks of no adding. */
static bool is_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool agent__has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)); at += n)
        if ((at == text || !is_in_word(at[-1])) && !is_in_word(at[n])) return true;
    return false;
}

bool agent__is_content_word(const char *word, size_t n)
{
    char lower[24];
    if (n < 3) return false;
    if (n >= sizeof lower) return true;
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
    lower[n] = 0;
    return !bsearch(
        lower, stop_words, sizeof stop_words / sizeof *stop_words, sizeof *stop_words, compare_word);
}

/* Identifiers outrank words, longer outranks shorter. */
static uint32_t word_rank(const char *word, size_t n)
{
    bool under = memchr(word, '_', n) != NULL, mixed = false, digit = false;
    for (size_t i = 1; i < n; i++) {
        mixed = mixed || (word[i] >= 'A' && word[i] <= 'Z' && word[i - 1] >= 'a' && word[i - 1] <= 'z');
        digit = digit || (word[i] >= '0' && word[i] <= '9');
    }
    if (!under && !mixed && digit && word[0] >= '0' && word[0] <= '9') return 0; /* a number */
    return (under || mixed ? 100u : 0u) + (uint32_t)(n < 40 ? n : 40);
}

typedef struct query_word {
    uint32_t end, rank, order;
    uint64_t hash;
} query_word;

static int by_rank(const void *a, const void *b)
{
    const query_word *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? 1 : -1;
    return x->order < y->order ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Ends (bytes) of at most MAX_QUERIES words that say most, ascending. */
static uint32_t pick_queries(const char *text, size_t n, uint32_t ends[MAX_QUERIES])
{
    query_word *words = NULL;
    size_t n_words = 0, cap = 0;
    for (size_t i = 0; i < n;) {
        size_t from = i;
        while (i < n && is_word_byte(text[i])) i++;
        if (i == from) {
            i++;
            continue;
        }
        uint32_t rank = agent__is_content_word(text + from, i - from) ? word_rank(text + from, i - from) : 0;
        if (!rank || i > UINT32_MAX) continue;
        uint64_t hash = 1469598103934665603u;
        for (size_t k = from; k < i; k++) hash = (hash ^ (unsigned char)text[k]) * 1099511628211u;
        bool seen = false;
        for (size_t k = 0; k < n_words && !seen; k++) seen = words[k].hash == hash;
        if (seen || n_words >= 4096) continue;
        base_grow(&words, &cap, n_words + 1, sizeof *words);
        words[n_words] = (query_word){(uint32_t)i, rank, (uint32_t)n_words, hash};
        n_words++;
    }
    if (n_words) qsort(words, n_words, sizeof *words, by_rank);
    uint32_t count = n_words < MAX_QUERIES ? (uint32_t)n_words : MAX_QUERIES;
    for (uint32_t i = 0; i < count; i++) ends[i] = words[i].end;
    if (count) qsort(ends, count, sizeof *ends, by_place);
    free(words);
    return count;
}

/* --- bytes to tokens ---------------------------------------------------------------------------------------------------- */

typedef struct token_map {
    uint32_t *end; /* [n] byte behind each token */
    uint32_t n;
} token_map;

static token_map map_tokens(const agent *a, const int32_t *ids, uint32_t n)
{
    token_map m = {base_xcalloc(n ? n : 1, sizeof *m.end), n};
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        if (!a->engine->ops->piece(a->engine, ids[i], &len)) len = 0;
        m.end[i] = at += (uint32_t)len;
    }
    return m;
}

/* The token that holds this byte (the last one for bytes behind the end). */
static uint32_t token_at(const token_map *m, uint32_t byte)
{
    uint32_t low = 0, high = m->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->end[middle] > byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low < m->n ? low : m->n ? m->n - 1 : 0;
}

static uint32_t *line_starts(const token_map *m, const char *text, size_t n, uint32_t *ret_n)
{
    uint32_t *lines = NULL;
    size_t cap = 0, count = 0;
    for (size_t at = 0; at < n && m->n;) {
        uint32_t token = token_at(m, (uint32_t)at);
        if (!count || lines[count - 1] < token) {
            base_grow(&lines, &cap, count + 1, sizeof *lines);
            lines[count++] = token;
        }
        const char *newline = memchr(text + at, '\n', n - at);
        at = newline ? (size_t)(newline - text) + 1 : n;
    }
    *ret_n = (uint32_t)count;
    return lines;
}

/* --- structure ---------------------------------------------------------------------------------------------------------- */

static bool names_word(const char *words, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = words; n >= 3 && (p = strstr(p, name)); p++)
        if ((p == words || !is_word_byte(p[-1])) && !is_word_byte(p[n])) return true;
    return false;
}

/* The part of a file's bytes [from, to) that the segment shows, as a span like `one`. */
static void add_span(kv_span *spans, uint32_t *n, const token_map *m, const tool_segment *s, uint32_t from,
    uint32_t to, kv_span one)
{
    const uint32_t shown_to = s->file_from + (s->to - s->from);
    if (from < s->file_from) from = s->file_from;
    if (to > shown_to) to = shown_to;
    if (*n == MAX_SPANS || from >= to || !m->n) return;
    one.from = token_at(m, s->from + (from - s->file_from));
    one.to = token_at(m, s->from + (to - s->file_from) - 1) + 1;
    spans[(*n)++] = one;
}

/* What the segment shows of a parsed file: definitions that the request names, and anchors with their marks. */
static void add_structure(const agent_text *t, const tool_segment *s, const code_file *f, const code_graph *g,
    const char *file, size_t file_n, const token_map *m, kv_span *spans, uint32_t *count)
{
    code_piece *pieces = NULL;
    for (uint32_t i = 0; t->words && i < f->n_definitions; i++)
        if (names_word(t->words, f->definitions[i].name))
            add_span(spans, count, m, s, f->definitions[i].from, f->definitions[i].to,
                (kv_span){.reason = KV_REASON_SYMBOL, .marks = KV_MARK_SYMBOL});
    const uint32_t n =
        code_structure(f, g, file, file_n, s->file_from, s->file_from + (s->to - s->from), t->words, &pieces);
    for (uint32_t i = 0; i < n; i++)
        add_span(spans, count, m, s, pieces[i].from, pieces[i].to,
            (kv_span){.reason = agent_reason_of[pieces[i].kind],
                .marks = pieces[i].marks,
                .n_flow = pieces[i].n_flow,
                .n_dependence = pieces[i].n_dependence});
    free(pieces);
}

/* The structure of what one file shows in this text, from the whole file: an excerpt alone parses worse. */
static void add_file_spans(agent *a, const agent_text *t, uint32_t first, size_t n, const token_map *m,
    kv_span *spans, uint32_t *count)
{
    enum { MAX_SHOWN = 1 << 20 };
    const tool_segment *s = &t->segments[first];
    base_buf file = {0};
    char version[65] = "";
    if (!tool_workspace_read(a->workspace, s->path, MAX_SHOWN, &file, NULL) && file.len)
        base_sha256_hex(file.data, file.len, version);
    if (!strcmp(version, s->version)) { /* else it changed meanwhile: its offsets would lie */
        code_graph *g = NULL;
        code_file *f =
            code_parse_graph(tool_workspace_grammars(a->workspace), s->path, file.data, file.len, &g);
        for (uint32_t k = first; k < t->n_segments; k++) {
            s = &t->segments[k];
            if (strcmp(s->path, t->segments[first].path) || s->to > n || s->from >= s->to) continue;
            add_structure(t, s, f, g, file.data, file.len, m, spans, count);
        }
        code_graph_free(g);
        code_file_free(f);
    }
    base_buf_free(&file);
}

static uint32_t find_segment_spans(
    agent *a, const agent_text *t, size_t n, const token_map *m, kv_span *spans)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->n_segments; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++) again = !strcmp(t->segments[k].path, t->segments[i].path);
        if (!again) add_file_spans(a, t, i, n, m, spans, &count);
    }
    return count;
}

static uint32_t find_spans(
    agent *a, const agent_text *t, const char *text, size_t n, const token_map *m, kv_span *spans)
{
    uint32_t count = t->n_segments && n == t->n ? find_segment_spans(a, t, n, m, spans) : 0;
    uint32_t base = (uint32_t)t->source_from;
    if (count) return count;
    if (!t->structure || !t->path || t->source_from > n) return 0;
    code_graph *g = NULL;
    code_file *f =
        code_parse_graph(tool_workspace_grammars(a->workspace), t->path, text + base, n - base, &g);
    const tool_segment whole = {.from = base, .to = (uint32_t)n};
    add_structure(t, &whole, f, g, text + base, n - base, m, spans, &count);
    code_graph_free(g);
    code_file_free(f);
    return count;
}

/* --- into the session --------------------------------------------------------------------------------------------------- */

void agent__release_held(agent *a)
{
    a->holding = false;
    for (size_t i = 0; i < a->n_held; i++) {
        agent__emit(a, a->held[i]);
        agent_event_free(a->held[i]);
    }
    a->n_held = 0;
}

/* What the engine was told with the tokens: whoever executes the log again has to tell it the same. */
static char *describe_segment(const kv_segment *g, uint32_t of)
{
    base_buf out = {0};
    if (!g->n_queries && !g->bulk && !g->whole && !of) return NULL;
    base_buf_puts(&out, "{\"queries\":[");
    for (uint32_t i = 0; i < g->n_queries; i++) base_buf_printf(&out, "%s%u", i ? "," : "", g->queries[i]);
    base_buf_puts(&out, "]");
    if (g->bulk) base_buf_printf(&out, ",\"bulk\":%u", g->bulk);
    if (g->whole) base_buf_puts(&out, ",\"whole\":true");
    if (of) base_buf_printf(&out, ",\"of\":%u", of);
    base_buf_puts(&out, "}");
    return base_buf_take(&out);
}

/* n of the segment's n_all ids: fewer where a cancel ended it. */
static void emit_append(agent *a, const agent_text *t, const kv_segment *g, uint32_t from, const int32_t *ids,
    uint32_t n, uint32_t n_all)
{
    base_buf id_list = {0}, lens = {0}, text = {0}, lanes = {0};
    char *segment = describe_segment(g, n < n_all ? n_all : 0);
    const uint32_t computed = a->engine->ops->lanes ? a->engine->ops->lanes(a->engine, from + n - 1) : 0;
    if (computed) base_buf_printf(&lanes, "%u", computed);
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = a->engine->ops->piece(a->engine, ids[i], &len);
        base_buf_printf(&id_list, "%s%d", i ? "," : "[", ids[i]);
        base_buf_printf(&lens, "%s%zu", i ? "," : "[", piece ? len : 0);
        if (piece) base_buf_add(&text, piece, len);
    }
    base_buf_puts(&id_list, n ? "]" : "[]");
    base_buf_puts(&lens, n ? "]" : "[]");
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_append,
                       .append = {.turn = a->turn,
                           .from = from,
                           .n = n,
                           .origin = kv_origin_word(t->origin),
                           .label = t->label,
                           .path = t->path,
                           .line = t->line,
                           .line_end = t->line_end,
                           .version = t->version,
                           .text = text.data ? text.data : "",
                           .ids = id_list.data,
                           .lens = lens.data,
                           .lanes = lanes.data,
                           .segment = segment}});
    free(segment);
    base_buf_free(&lanes);
    base_buf_free(&id_list);
    base_buf_free(&lens);
    base_buf_free(&text);
}

size_t agent__add_piece(agent *a, const agent_text *t, uint32_t from, uint32_t to)
{
    base_grow(&a->pieces, &a->cap_pieces, a->n_pieces + 1, sizeof *a->pieces);
    agent_piece *p = &a->pieces[a->n_pieces];
    *p = (agent_piece){.from = from,
        .to = to,
        .turn = a->turn,
        .origin = t->origin,
        .label = base_xstrdup(t->label),
        .path = base_xstrdup(t->path),
        .line = t->line,
        .line_end = t->line_end,
        .seq = a->seq};
    if (t->version) {
        size_t n = strlen(t->version);
        memcpy(p->version, t->version, n < sizeof p->version ? n : sizeof p->version - 1);
    }
    return a->n_pieces++;
}

void agent__add_shown(agent *a, size_t piece, size_t from, size_t to, const char *path, const char *version,
    uint32_t line, uint32_t line_end)
{
    uint32_t n, first = a->pieces[piece].from, count = a->pieces[piece].to - first;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    if (from >= to || first + count > n || !count) return;
    token_map m = map_tokens(a, ids + first, count);
    agent_text t = {.origin = a->pieces[piece].origin,
        .path = path,
        .version = version,
        .line = line,
        .line_end = line_end};
    agent__add_piece(a, &t, first + token_at(&m, (uint32_t)from), first + token_at(&m, (uint32_t)to - 1) + 1);
    free(m.end);
}

/* Hands ids to the engine; on cancel what was finished stays and is told. */
static int append_ids(agent *a, const agent_text *t, const kv_segment *segment, const int32_t *ids,
    uint32_t n, size_t *ret_piece, base_err *err)
{
    uint32_t from = agent__n_tokens(a);
    a->holding = true;
    uint64_t start = base_clock_ns();
    int rc = a->engine->ops->append(a->engine, segment, ids, n, err);
    a->sums.prefill_ns += base_clock_ns() - start;
    uint32_t done = agent__n_tokens(a) - from;
    if (done > n) done = n;
    a->sums.prefilled += done;
    if (a->sums.expected) a->sums.waited += done;
    if (done) {
        emit_append(a, t, segment, from, ids, done, n);
        size_t piece = agent__add_piece(a, t, from, from + done);
        if (ret_piece) *ret_piece = piece;
    }
    for (uint32_t i = 0; i < segment->n_spans; i++) {
        const kv_span *s = &segment->spans[i];
        if (s->to > done) continue;
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_span,
                           .span = {.from = from + s->from,
                               .to = from + s->to,
                               .reason = kv_reason_word((kv_reason)s->reason),
                               .weight = (double)s->weight,
                               .marks = s->marks,
                               .flow = s->n_flow,
                               .dependence = s->n_dependence}});
    }
    agent__release_held(a);
    return rc;
}

static char *valid_text(const char *text, size_t n, size_t *ret_n)
{
    base_buf out = {0};
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = base_utf8_decode(text + i, n - i, &cp);
        char bytes[4];
        base_buf_add(&out, bytes, base_utf8_encode(cp, bytes));
        i += used;
    }
    *ret_n = out.len;
    return base_buf_take(&out);
}

int agent__append_answer(agent *a, const int32_t *ids, uint32_t n, base_err *err)
{
    uint32_t from = agent__n_tokens(a);
    a->holding = true;
    int rc = a->engine->ops->append(
        a->engine, &(kv_segment){.origin = KV_ORIGIN_CALL, .turn = a->turn}, ids, n, err);
    uint32_t done = agent__n_tokens(a) - from;
    base_buf text = {0};
    size_t told = 0;
    for (uint32_t i = 0; i < done && i < n; i++) {
        size_t len = 0;
        const char *piece = a->engine->ops->is_control(a->engine, ids[i])
                                ? NULL
                                : a->engine->ops->piece(a->engine, ids[i], &len);
        if (piece) base_buf_add(&text, piece, len);
        size_t whole = text.data ? base_utf8_whole(text.data + told, text.len - told) : 0;
        char *now = base_xstrndup(text.data ? text.data + told : "", whole);
        told += whole;
        agent__emit(a,
            &(agent_event){.type = AGENT_EVENT_token,
                .token = {
                    .id = ids[i], .index = from + i, .text = now, .origin = kv_origin_word(KV_ORIGIN_CALL)}});
        free(now);
    }
    base_buf_free(&text);
    agent__release_held(a);
    return rc;
}

int agent__append(agent *a, const agent_text *t, size_t *ret_piece, base_err *err)
{
    size_t n = t->n;
    char *clean = base_utf8_valid(t->text, t->n) ? NULL : valid_text(t->text, t->n, &n);
    const char *text = clean ? clean : t->text;
    model_ids ids = {0};
    a->engine->ops->encode(a->engine, text, n, &ids);
    if (!ids.n) {
        free(clean);
        return 0;
    }
    token_map m = map_tokens(a, ids.ids, (uint32_t)ids.n);
    kv_span *spans = base_xcalloc(MAX_SPANS, sizeof *spans);
    uint32_t ends[MAX_QUERIES], queries[MAX_QUERIES], n_lines;
    /* The fixed prompt asks for nothing, and a segment with queries is never taken from the prefix file. */
    bool asks = t->origin != KV_ORIGIN_SYSTEM && t->origin != KV_ORIGIN_INSTRUCTIONS;
    uint32_t n_ends = asks ? pick_queries(text, n, ends) : 0, n_queries = 0;
    for (uint32_t i = 0; i < n_ends; i++) {
        uint32_t token = token_at(&m, ends[i] - 1);
        if (!n_queries || queries[n_queries - 1] < token) queries[n_queries++] = token;
    }
    uint32_t *lines = line_starts(&m, text, n, &n_lines);
    kv_segment segment = {.origin = t->origin,
        .turn = a->turn,
        .bulk = t->bulk,
        .whole = t->whole,
        .spans = spans,
        .n_spans = find_spans(a, t, text, n, &m, spans),
        .lines = lines,
        .n_lines = n_lines,
        .queries = n_queries ? queries : NULL,
        .n_queries = n_queries};
    int rc = append_ids(a, t, &segment, ids.ids, (uint32_t)ids.n, ret_piece, err);
    free(m.end);
    free(spans);
    free(lines);
    free(clean);
    model_ids_free(&ids);
    return rc;
}

static int append_scaffold(agent *a, const model_ids *ids, const char *label, base_err *err)
{
    if (!ids->n) return 0;
    agent_text t = {.origin = KV_ORIGIN_SCAFFOLD, .label = label};
    kv_segment segment = {.origin = KV_ORIGIN_SCAFFOLD, .turn = a->turn};
    return append_ids(a, &t, &segment, ids->ids, (uint32_t)ids->n, NULL, err);
}

/* A scaffold's label says which message it leaves open: "+role" begins, "-role" ends, "-role+role" both. */
static const char *const role_words[] = {"system", "user", "assistant", "tool"};

int agent__find_open(const agent *a)
{
    for (size_t i = a->n_pieces; i-- > 0;) {
        const agent_piece *p = &a->pieces[i];
        if (p->origin != KV_ORIGIN_SCAFFOLD || !p->label) continue;
        const char *plus = strrchr(p->label, '+');
        for (int role = 0; plus && role < 4; role++)
            if (!strcmp(role_words[role], plus + 1)) return role;
        return -1;
    }
    return -1;
}

void agent__cut_pieces(agent *a, uint32_t n)
{
    while (a->n_pieces && a->pieces[a->n_pieces - 1].from >= n) {
        a->n_pieces--;
        free(a->pieces[a->n_pieces].label);
        free(a->pieces[a->n_pieces].path);
    }
    a->open_role = agent__find_open(a);
}

int agent__open_message(agent *a, int role, base_err *err)
{
    model_ids ids = {0};
    base_buf label = {0};
    uint32_t n = 0;
    const int32_t *all = a->engine->ops->ids(a->engine, &n);
    if (a->open_role >= 0) {
        a->engine->ops->end(a->engine, (model_role)a->open_role, &ids);
        /* The model ends its own answer: only what the template writes behind that is missing. */
        if (a->open_role == MODEL_ROLE_ASSISTANT && ids.n && n && all[n - 1] == ids.ids[0]) {
            memmove(ids.ids, ids.ids + 1, (ids.n - 1) * sizeof *ids.ids);
            ids.n--;
        }
        base_buf_printf(&label, "-%s", role_words[a->open_role]);
    } else if (n == 0) {
        a->engine->ops->start(a->engine, &ids);
    }
    if (role >= 0) {
        a->engine->ops->begin(a->engine, (model_role)role, &ids);
        base_buf_printf(&label, "+%s", role_words[role]);
    }
    int rc = append_scaffold(a, &ids, label.data, err);
    if (!rc) a->open_role = role;
    base_buf_free(&label);
    model_ids_free(&ids);
    return rc;
}

static void put_text(const agent *a, const int32_t *ids, uint32_t n, base_buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = a->engine->ops->piece(a->engine, ids[i], &len);
        if (piece) base_buf_add(out, piece, len);
    }
}

int agent__append_logged(agent *a, const kv_segment *logged, const int32_t *ids, uint32_t n, base_err *err)
{
    kv_segment segment = *logged;
    uint32_t *lines = NULL;
    /* Only what came as text was told where its lines start. */
    if (segment.origin != KV_ORIGIN_SCAFFOLD && !kv_origin_is_written(segment.origin)) {
        base_buf text = {0};
        put_text(a, ids, n, &text);
        token_map m = map_tokens(a, ids, n);
        segment.lines = lines = line_starts(&m, text.data ? text.data : "", text.len, &segment.n_lines);
        free(m.end);
        base_buf_free(&text);
    }
    int rc = a->engine->ops->append(a->engine, &segment, ids, n, err);
    free(lines);
    return rc;
}

int agent__repair(agent *a, uint32_t from, uint32_t to, base_err *err)
{
    if (from >= to) return 0;
    uint32_t n;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    if (to > n) return 0;
    base_buf text = {0};
    put_text(a, ids + from, to - from, &text);
    token_map m = map_tokens(a, ids + from, to - from);
    uint32_t ends[MAX_QUERIES], queries[MAX_QUERIES], n_queries = 0;
    uint32_t n_ends = pick_queries(text.data ? text.data : "", text.len, ends);
    for (uint32_t i = 0; i < n_ends; i++) {
        uint32_t token = from + token_at(&m, ends[i] - 1);
        if (!n_queries || queries[n_queries - 1] < token) queries[n_queries++] = token;
    }
    const uint64_t start = base_clock_ns();
    int rc = a->engine->ops->repair(a->engine, from, to, n_queries ? queries : NULL, n_queries, err);
    a->sums.prefill_ns += base_clock_ns() - start; /* it may compute rows, and who asked waits for that too */
    agent__tell_visits(a);
    free(m.end);
    base_buf_free(&text);
    return rc;
}
