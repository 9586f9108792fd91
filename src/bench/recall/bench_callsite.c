/*
 * kvist-bench callsite: the real-repository task of RepairKV (seed 002, section 5.5). A document is files of one repository with line
 * numbers; turn 1 asks about one of them; then an event describes a line of another with one identifier hidden, and is the only signal:
 * which identifier is it (--task identifier)? Only calls whose callee stands once in the document are asked for, and the answer
 * begins as the lines do. Beside it call lists
 * (--task list): which functions call X? Conditions and their running: bench/recall/recall.c.
 *
 * Trees and names are those of src/code; files without a grammar are left out.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/common/corpus.h"
#include "bench/recall/recall.h"
#include "code/code.h"

static const char usage[] =
    "usage: kvist-bench callsite --model M --repo FOLDER [--task identifier|list] [--tokens N] [--texts N]\n"
    "                            [--each N] [--restore K,...] [--conditions \"WORD;...\"]\n"
    "                            [--out FILE [--resume]] [--calibrate]\n"
    "       kvist-bench callsite --summary FILE\n"
    "\n"
    "  --repo FOLDER       a repository's tree\n"
    "  --task NAME         identifier: the one hidden in a line; list: the functions that call one "
    "(identifier)\n"
    "  --tokens N          length of each document (8192)\n"
    "  --texts N           how many documents (4); --first N: the first one's number (0)\n"
    "  --each N            questions about each document (7); what an earlier one was asked is left out\n"
    "  --least N           documents with fewer are passed over (1)\n"
    "  --base PERCENT      of the document's rows that stay after turn 1 (25)\n";

enum {
    FILE_MOST = 1 << 20,
    LINE_MOST = 300,
    NAME_LEAST = 5,
    CONTEXT_LEAST = 2, /* other identifiers in a line with a hidden one */
    CALLERS_LEAST = 2,
    CALLERS_MOST = 5,
    MOST_EACH = 64,
    NEW_IDENTIFIER = 16,
    NEW_LIST = 48,
    NEW_FIRST = 48
};

/* A file of the repository, and what its text says. */
typedef struct source {
    char *path; /* below the repository */
    base_buf text;
    code_file *code;
} source;

/* A line of the document. */
typedef struct doc_line {
    uint32_t file, number; /* number: from 1 */
    uint32_t from, to;     /* bytes of the file */
    uint32_t token, token_end;
} doc_line;

typedef struct document {
    model_ids ids;
    uint32_t *starts; /* tokens where lines begin, headings too */
    size_t n_starts, cap_starts;
    doc_line *lines;
    size_t n_lines, cap_lines;
    uint32_t about; /* the file that turn 1 asks about */
} document;

/* What may be asked: a call in a line, or a callee with its callers. */
typedef struct question {
    uint32_t order; /* a draw: the smallest are asked */
    uint32_t line;
    uint32_t name_from, name_to; /* bytes of the line's file */
    char name[RECALL_NAME];
    struct {
        char name[RECALL_NAME];
        uint32_t call, head; /* lines */
    } callers[CALLERS_MOST];
    uint32_t n_callers;
} question;

typedef struct bench {
    recall run;
    const char *repo, *task;
    int64_t tokens, texts, first, each, least, base;
    bool list;
    source *sources;
    size_t n_sources, cap_sources;
    code_grammars *grammars;
    document doc;
    question *questions;
    size_t n_questions, cap_questions;
    uint64_t *asked; /* of earlier documents, whose files this one may have too */
    size_t n_asked, cap_asked;
    char name[32]; /* of the task and the repository, in the results */
} bench;

/* ---- documents ---------------------------------------------------------------------------------------------------------- */

static int add_source(void *user, const char *path, base_err *err)
{
    bench *b = user;
    source one = {.path = base_xstrdup(path + strlen(b->repo) + (path[strlen(b->repo)] == '/'))};
    int r = base_fs_read(path, FILE_MOST, &one.text, err);
    if (r || !one.text.len || memchr(one.text.data, 0, one.text.len)) {
        base_buf_free(&one.text);
        free(one.path);
        return r;
    }
    one.code = code_parse(b->grammars, one.path, one.text.data, one.text.len);
    if (!one.code->language) {
        code_file_free(one.code);
        base_buf_free(&one.text);
        free(one.path);
        return 0;
    }
    base_grow(&b->sources, &b->cap_sources, b->n_sources + 1, sizeof *b->sources);
    b->sources[b->n_sources++] = one;
    return 0;
}

static void free_sources(bench *b)
{
    for (size_t i = 0; i < b->n_sources; i++) {
        free(b->sources[i].path);
        base_buf_free(&b->sources[i].text);
        code_file_free(b->sources[i].code);
    }
    free(b->sources);
}

static void free_document(document *d)
{
    model_ids_free(&d->ids);
    free(d->starts);
    free(d->lines);
    *d = (document){.n_lines = 0};
}

static uint32_t draw(uint64_t seed, uint64_t i)
{
    return (uint32_t)(base_hash64(&i, sizeof i, seed) >> 32);
}

static void begin_line(document *d)
{
    base_grow(&d->starts, &d->cap_starts, d->n_starts + 1, sizeof *d->starts);
    d->starts[d->n_starts++] = (uint32_t)d->ids.n;
}

static void add_line(bench *b, uint32_t file, uint32_t number, uint32_t from, uint32_t to)
{
    document *d = &b->doc;
    base_buf text = {0};
    const uint32_t shown = to - from < LINE_MOST ? to - from : LINE_MOST;
    base_buf_printf(&text, "%u\t%.*s\n", number, (int)shown, b->sources[file].text.data + from);
    begin_line(d);
    base_grow(&d->lines, &d->cap_lines, d->n_lines + 1, sizeof *d->lines);
    doc_line *l = &d->lines[d->n_lines++];
    *l = (doc_line){
        .file = file, .number = number, .from = from, .to = from + shown, .token = (uint32_t)d->ids.n};
    recall_add_text(&b->run, text.data, &d->ids);
    l->token_end = (uint32_t)d->ids.n;
    base_buf_free(&text);
}

/* The file with the fewest lines in the document: what turn 1 is about is not asked for later. */
static uint32_t shortest_file(const bench *b)
{
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t file = 0; file < b->n_sources; file++) {
        uint32_t n = 0;
        for (size_t i = 0; i < b->doc.n_lines; i++) n += b->doc.lines[i].file == file;
        if (!n || n >= least) continue;
        least = n;
        best = file;
    }
    return best;
}

/* Files in the order of their paths from a drawn one on, until there are enough tokens; the last one is cut. */
static void make_document(bench *b, uint32_t number)
{
    static const char intro[] = "Here are files of a project, with line numbers.\n";
    const model_template *template = model_get_template(b->run.model);
    document *d = &b->doc;
    const size_t begin = draw(11, number) % b->n_sources;
    model_template_start(template, &d->ids);
    model_template_begin(template, MODEL_ROLE_USER, &d->ids);
    recall_add_text(&b->run, intro, &d->ids);
    for (size_t i = 0; i < b->n_sources && d->ids.n < (size_t)b->tokens; i++) {
        const uint32_t file = (uint32_t)((begin + i) % b->n_sources);
        const source *s = &b->sources[file];
        base_buf heading = {0};
        base_buf_printf(&heading, "\n=== %s ===\n", s->path);
        begin_line(d);
        recall_add_text(&b->run, heading.data, &d->ids);
        base_buf_free(&heading);
        uint32_t from = 0;
        for (uint32_t n = 1; from < s->text.len && d->ids.n < (size_t)b->tokens; n++) {
            const char *end = memchr(s->text.data + from, '\n', s->text.len - from);
            const uint32_t to = end ? (uint32_t)(end - s->text.data) : (uint32_t)s->text.len;
            add_line(b, file, n, from, to);
            from = to + 1;
        }
    }
    d->about = shortest_file(b);
}

/* ---- what may be asked -------------------------------------------------------------------------------------------------- */

static uint32_t line_of(const document *d, uint32_t file, uint32_t byte)
{
    for (uint32_t i = 0; i < d->n_lines; i++)
        if (d->lines[i].file == file && d->lines[i].from <= byte && byte < d->lines[i].to) return i;
    return UINT32_MAX;
}

/* How often a name stands in the document. */
static uint32_t count_name(const bench *b, const char *name, size_t len)
{
    uint32_t n = 0;
    for (size_t i = 0; i < b->doc.n_lines; i++) {
        const doc_line *l = &b->doc.lines[i];
        const char *text = b->sources[l->file].text.data + l->from;
        size_t pos = 0, from = 0, to = 0;
        while (code_next_identifier(text, l->to - l->from, &pos, &from, &to))
            n += to - from == len && !memcmp(text + from, name, len);
    }
    return n;
}

/* The callee of a call anchor: the last identifier of its core. */
static bool find_callee(const source *s, const code_anchor *a, uint32_t *ret_from, uint32_t *ret_to)
{
    size_t pos = a->core_from, from = 0, to = 0;
    bool any = false;
    while (code_next_identifier(s->text.data, a->core_to, &pos, &from, &to)) {
        *ret_from = (uint32_t)from;
        *ret_to = (uint32_t)to;
        any = true;
    }
    return any && *ret_to - *ret_from >= NAME_LEAST && *ret_to - *ret_from < RECALL_NAME &&
           !code_is_keyword(s->text.data + *ret_from, *ret_to - *ret_from);
}

static uint32_t count_others(const source *s, const doc_line *l, uint32_t name_from)
{
    size_t pos = l->from, from = 0, to = 0;
    uint32_t n = 0;
    while (code_next_identifier(s->text.data, l->to, &pos, &from, &to))
        n += from != name_from && to - from > 1 && !code_is_keyword(s->text.data + from, to - from);
    return n;
}

static question *add_question(bench *b, uint32_t file, uint32_t line, uint32_t from, uint32_t to)
{
    base_grow(&b->questions, &b->cap_questions, b->n_questions + 1, sizeof *b->questions);
    question *q = &b->questions[b->n_questions++];
    *q = (question){.line = line, .name_from = from, .name_to = to};
    snprintf(q->name, sizeof q->name, "%.*s", (int)(to - from), b->sources[file].text.data + from);
    q->order = draw(base_hash64(q->name, strlen(q->name), 3), line);
    return q;
}

/* A caller's name and where it begins; false: none, or not in the document. */
static bool find_caller(
    const bench *b, uint32_t file, const code_anchor *a, const char **ret_name, uint32_t *ret_head)
{
    const source *s = &b->sources[file];
    const uint32_t at = code_definition_at(s->code, a->core_from);
    if (at == UINT32_MAX) return false;
    const code_definition *d = &s->code->definitions[at];
    *ret_name = d->name;
    *ret_head = line_of(&b->doc, file, d->name_from);
    return *ret_head != UINT32_MAX && strlen(d->name) < RECALL_NAME && d->body_to > d->body_from;
}

/* The callers of every name that some call. More than may be listed: n_callers goes beyond, and the question is dropped. */
static void add_to_list(
    bench *b, uint32_t file, uint32_t line, const code_anchor *a, uint32_t from, uint32_t to)
{
    const source *s = &b->sources[file];
    const char *caller = NULL;
    uint32_t head = 0;
    question *q = NULL;
    if (!find_caller(b, file, a, &caller, &head)) return;
    for (size_t i = 0; i < b->n_questions && !q; i++)
        if (strlen(b->questions[i].name) == to - from &&
            !memcmp(b->questions[i].name, s->text.data + from, to - from))
            q = &b->questions[i];
    if (!q) q = add_question(b, file, line, from, to);
    for (uint32_t i = 0; i < q->n_callers && i < CALLERS_MOST; i++)
        if (!strcmp(q->callers[i].name, caller)) return;
    if (q->n_callers < CALLERS_MOST) {
        snprintf(q->callers[q->n_callers].name, RECALL_NAME, "%s", caller);
        q->callers[q->n_callers].call = line;
        q->callers[q->n_callers].head = head;
    }
    q->n_callers++;
}

static int compare_questions(const void *a, const void *b)
{
    const question *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* All that may be asked of the document, in a drawn order. Not of turn 1's file, nor near the end, which stays active. */
static void find_questions(bench *b)
{
    const document *d = &b->doc;
    b->n_questions = 0;
    for (uint32_t file = 0; file < b->n_sources; file++) {
        const source *s = &b->sources[file];
        if (!b->list && file == d->about) continue;
        for (uint32_t i = 0; i < s->code->n_anchors; i++) {
            const code_anchor *a = &s->code->anchors[i];
            uint32_t from = 0, to = 0;
            if (a->kind != CODE_CALL || !find_callee(s, a, &from, &to)) continue;
            const uint32_t at = line_of(d, file, from);
            if (at == UINT32_MAX || d->lines[at].to < to) continue;
            if (b->list) {
                add_to_list(b, file, at, a, from, to);
            } else if (d->lines[at].token_end < d->ids.n * 9 / 10 &&
                       count_others(s, &d->lines[at], from) >= CONTEXT_LEAST &&
                       count_name(b, s->text.data + from, to - from) == 1) {
                add_question(b, file, at, from, to);
            }
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < b->n_questions; i++) {
        const question *q = &b->questions[i];
        if (!b->list || (q->n_callers >= CALLERS_LEAST && q->n_callers <= CALLERS_MOST))
            b->questions[n++] = *q;
    }
    b->n_questions = n;
    if (n) qsort(b->questions, n, sizeof *b->questions, compare_questions);
}

static uint64_t identity_of(const bench *b, const question *q)
{
    const doc_line *l = &b->doc.lines[q->line];
    const uint32_t parts[] = {l->file, l->number, q->name_from};
    return base_hash64(parts, sizeof parts, 0);
}

/*
 * Leaves out what an earlier document was asked, and remembers the first --each of the rest. Returns how many those are; when they are
 * fewer than --least the document is not asked, and nothing is remembered.
 */
static uint32_t keep_new(bench *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_questions; i++) {
        const uint64_t identity = identity_of(b, &b->questions[i]);
        bool is_new = true;
        for (size_t k = 0; k < b->n_asked && is_new; k++) is_new = b->asked[k] != identity;
        if (is_new) b->questions[n++] = b->questions[i];
    }
    b->n_questions = n;
    if (n > (size_t)b->each) n = (size_t)b->each;
    if (n < (size_t)b->least) return (uint32_t)n;
    base_grow(&b->asked, &b->cap_asked, b->n_asked + n, sizeof *b->asked);
    for (size_t i = 0; i < n; i++) b->asked[b->n_asked++] = identity_of(b, &b->questions[i]);
    return (uint32_t)n;
}

/* ---- messages ----------------------------------------------------------------------------------------------------------- */

static void begin_message(const bench *b, recall_turn *t, bool later)
{
    const model_template *template = model_get_template(b->run.model);
    if (!later) return;
    model_template_end(template, MODEL_ROLE_ASSISTANT, &t->ids);
    model_template_begin(template, MODEL_ROLE_USER, &t->ids);
}

static void end_message(const bench *b, recall_turn *t, const char *answer_begins)
{
    const model_template *template = model_get_template(b->run.model);
    model_template_end(template, MODEL_ROLE_USER, &t->tail);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &t->tail);
    recall_add_text(&b->run, answer_begins, &t->tail);
}

/* A piece of text whose tokens ask, as far as there is room for them. */
static void add_asking(const bench *b, recall_turn *t, const char *text)
{
    const uint32_t from = (uint32_t)t->ids.n;
    recall_add_text(&b->run, text, &t->ids);
    for (uint32_t i = from; i < t->ids.n && t->n_queries < RECALL_QUERIES; i++)
        t->queries[t->n_queries++] = i;
}

static void make_first(const bench *b, recall_turn *t)
{
    base_buf text = {0};
    *t = (recall_turn){.n_new = NEW_FIRST};
    base_buf_printf(
        &text, "\nWhat is the file %s for? Answer in one sentence.", b->sources[b->doc.about].path);
    recall_add_text(&b->run, text.data, &t->ids);
    end_message(b, t, "");
    base_buf_free(&text);
}

/* Words of a piece of code, joined as they stand there; those of two letters and more ask. */
static void add_code(const bench *b, recall_turn *t, const char *text, size_t n)
{
    size_t pos = 0, from = 0, to = 0, done = 0;
    base_buf piece = {0};
    while (code_next_identifier(text, n, &pos, &from, &to)) {
        if (to - from < 2 || code_is_keyword(text + from, to - from)) continue;
        base_buf_clear(&piece);
        base_buf_add(&piece, text + done, from - done);
        if (piece.len) recall_add_text(&b->run, piece.data, &t->ids);
        base_buf_clear(&piece);
        base_buf_add(&piece, text + from, to - from);
        add_asking(b, t, piece.data);
        done = to;
    }
    base_buf_clear(&piece);
    base_buf_add(&piece, text + done, n - done);
    if (piece.len) recall_add_text(&b->run, piece.data, &t->ids);
    base_buf_free(&piece);
}

/*
 * The answer begins as the document does, from the line before up to the hidden name: a small model asked for the name alone names
 * another word of the line, even from the full cache. The end is cut where the tokenizer joins a character with the name behind it.
 */
static void begin_quote(const bench *b, const question *q, recall_turn *t)
{
    const doc_line *l = &b->doc.lines[q->line], *before = l - 1;
    const char *text = b->sources[l->file].text.data;
    base_buf quote = {0};
    base_buf_printf(&quote, "```\n");
    if (q->line > 0 && before->file == l->file)
        base_buf_printf(
            &quote, "%u\t%.*s\n", before->number, (int)(before->to - before->from), text + before->from);
    base_buf_printf(&quote, "%u\t%.*s", l->number, (int)(q->name_from - l->from), text + l->from);
    const size_t n = quote.len;
    if (isspace((unsigned char)quote.data[n - 1]) ||
        (ispunct((unsigned char)quote.data[n - 1]) && isalnum((unsigned char)quote.data[n - 2])))
        quote.data[n - 1] = 0;
    end_message(b, t, quote.data);
    base_buf_free(&quote);
}

static void make_identifier(const bench *b, const question *q, recall_turn *t)
{
    const doc_line *l = &b->doc.lines[q->line];
    const source *s = &b->sources[l->file];
    const char *file = strrchr(s->path, '/');
    char number[16];
    *t = (recall_turn){.n_new = NEW_IDENTIFIER, .match = RECALL_FIRST_NAME, .n_targets = 1, .n_rows = 1};
    begin_message(b, t, true);
    recall_add_text(&b->run, "\nA tool reports a problem in ", &t->ids);
    add_asking(b, t, file ? file + 1 : s->path);
    recall_add_text(&b->run, ", line ", &t->ids);
    snprintf(number, sizeof number, "%u", l->number);
    add_asking(b, t, number);
    recall_add_text(&b->run, ": a call with `", &t->ids);
    add_code(b, t, s->text.data + q->name_to, l->to - q->name_to);
    uint32_t from = l->from;
    while (from < q->name_from && isspace((unsigned char)s->text.data[from])) from++;
    if (from < q->name_from) {
        recall_add_text(&b->run, "` behind the name and `", &t->ids);
        add_code(b, t, s->text.data + from, q->name_from - from);
        recall_add_text(&b->run, "` in front of it", &t->ids);
    } else {
        recall_add_text(&b->run, "` behind the name", &t->ids);
    }
    recall_add_text(&b->run,
        ".\nWhat is the whole line? Answer with the lines from the one before it on, as they stand in the "
        "file.",
        &t->ids);
    begin_quote(b, q, t);
    snprintf(t->targets[0], sizeof t->targets[0], "%s", q->name);
    t->rows[0].from = l->token;
    t->rows[0].to = l->token_end;
    t->file.from = l->token;
    for (uint32_t i = 0; i < b->doc.n_lines; i++) {
        const doc_line *other = &b->doc.lines[i];
        if (other->file != l->file) continue;
        if (other->token < t->file.from) t->file.from = other->token;
        if (other->token_end > t->file.to) t->file.to = other->token_end;
    }
}

static void make_list(const bench *b, const question *q, recall_turn *t)
{
    *t = (recall_turn){.n_new = NEW_LIST, .match = RECALL_NAMES};
    begin_message(b, t, true);
    recall_add_text(&b->run, "\nWhich functions in the files above call `", &t->ids);
    add_asking(b, t, q->name);
    recall_add_text(&b->run, "`? Answer with their names only, separated by commas.", &t->ids);
    end_message(b, t, "The functions are `");
    for (uint32_t i = 0; i < q->n_callers; i++) {
        const doc_line *lines[] = {&b->doc.lines[q->callers[i].call], &b->doc.lines[q->callers[i].head]};
        snprintf(t->targets[t->n_targets++], RECALL_NAME, "%s", q->callers[i].name);
        for (int k = 0; k < 2; k++) {
            t->rows[t->n_rows].from = lines[k]->token;
            t->rows[t->n_rows++].to = lines[k]->token_end;
        }
    }
}

static void make_message(const bench *b, const question *q, recall_turn *t)
{
    if (b->list)
        make_list(b, q, t);
    else
        make_identifier(b, q, t);
}

/* ---- running ------------------------------------------------------------------------------------------------------------ */

static int run_questions(bench *b, const kv_session *s, uint32_t number, uint32_t n, base_err *err)
{
    int r = 0;
    for (uint32_t i = 0; i < n && !r; i++) {
        recall_item item = {.name = b->name, .number = number * MOST_EACH + i, .n_turns = 2};
        make_first(b, &item.turns[0]);
        make_message(b, &b->questions[i], &item.turns[1]);
        make_message(b, &b->questions[(i + 1) % b->n_questions], &item.foreign);
        r = recall_run(&b->run, s, &item, err);
        recall_turn_free(&item.turns[0]);
        recall_turn_free(&item.turns[1]);
        recall_turn_free(&item.foreign);
    }
    return r;
}

/* runs: false: the questions of this document are only known as asked. */
static int run_text(bench *b, uint32_t number, bool runs, base_err *err)
{
    kv_session *s = NULL;
    bool left = false;
    int r = 0;
    make_document(b, number);
    find_questions(b);
    const uint32_t n = keep_new(b);
    for (uint32_t i = 0; i < n && n >= (size_t)b->least && runs; i++)
        left = left || recall_is_left(&b->run, b->name, number * MOST_EACH + i);
    if (n < (size_t)b->least) fprintf(stderr, "document %u: %u questions, passed over\n", number, n);
    if (left) {
        r = recall_document(&b->run, &s, &b->doc.ids, b->doc.starts, (uint32_t)b->doc.n_starts, err);
        fprintf(stderr, "document %u: %u of %zu questions\n", number, n, b->n_questions);
        if (!r) r = run_questions(b, s, number, n, err);
        kv_session_free(s);
    }
    free_document(&b->doc);
    return r;
}

static int run(bench *b, base_err *err)
{
    b->list = !strcmp(b->task, "list");
    if (!b->list && strcmp(b->task, "identifier"))
        return base_fail(err, BASE_E_USAGE, "--task is identifier or list, not '%s'", b->task);
    if (!b->repo || b->tokens < 2000 || b->tokens > 100000 || b->texts < 1 || b->texts > 1000 ||
        b->first < 0 || b->first > 1000000 || b->each < 1 || b->each > MOST_EACH || b->least < 1 ||
        b->base < 1 || b->base > 100)
        return base_fail(err, BASE_E_USAGE,
            "--repo names a tree, --tokens is 2000 to 100000, --texts 1 to 1000, --each 1 to %d, --least 1 "
            "or more",
            MOST_EACH);
    char *repo = base_xstrdup(b->repo);
    for (size_t n = strlen(repo); n > 1 && repo[n - 1] == '/';) repo[--n] = 0;
    const char *slash = strrchr(repo, '/');
    snprintf(b->name, sizeof b->name, "%s %.18s", b->list ? "list" : "identifier", slash ? slash + 1 : repo);
    b->repo = repo;
    b->grammars = code_grammars_open();
    int r = bench_walk(b->repo, add_source, b, err);
    if (!r && !b->n_sources)
        r = base_fail(err, BASE_E_NOT_FOUND,
            "there is no file in %s that a grammar reads (kvist grammar list; scripts/fetch grammars)",
            b->repo);
    if (!r) r = recall_open(&b->run, "callsite", err);
    b->run.key.tokens = (uint32_t)b->tokens;
    b->run.key.needles = 1;
    b->run.labels = !b->list; /* an event names its file */
    b->run.key.base = (uint32_t)b->base;
    for (int64_t i = 0; i < b->first + b->texts && !r && !recall_is_late(&b->run); i++)
        r = run_text(b, (uint32_t)i, i >= b->first, err);
    free_sources(b);
    free(b->questions);
    free(b->asked);
    code_grammars_close(b->grammars);
    free(repo);
    return r;
}

int bench_callsite(int argc, char **argv)
{
    bench b = {.run = {.common = COMMON_OPTIONS_DEFAULTS, .restore = "96,192"},
        .tokens = 8192,
        .texts = 4,
        .each = 7,
        .least = 1,
        .base = 25,
        .task = "identifier"};
    const option_row own[] = {
        {"--repo", OPTION_TEXT, &b.repo},
        {"--task", OPTION_TEXT, &b.task},
        {"--tokens", OPTION_INTEGER, &b.tokens},
        {"--texts", OPTION_INTEGER, &b.texts},
        {"--first", OPTION_INTEGER, &b.first},
        {"--each", OPTION_INTEGER, &b.each},
        {"--least", OPTION_INTEGER, &b.least},
        {"--base", OPTION_INTEGER, &b.base},
        RECALL_OPTIONS(b.run),
        {.name = NULL},
    };
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.run.common, own, &b.run.help, usage, recall_help, &r)) return r;
    if (!r && b.run.summary) {
        r = recall_print_summary(&b.run, &err);
    } else if (!r) {
        r = run(&b, &err);
        if (!r && b.run.out) bench_results_print(&b.run.results, stdout);
    }
    recall_close(&b.run);
    return r ? cmd_complain(&err) : CMD_OK;
}
