/*
 * kvist-bench callsite: the real-repository task of RepairKV (docs/papers.md; section 5.5). A document is
 * files of one repository with line numbers; turn 1 asks about one of them; then an event describes a line of
 * another with one identifier hidden, and is the only signal: which identifier is it (--task identifier)?
 * Only calls whose callee stands once in the document are asked for, and the answer begins as the lines do.
 * Beside it call lists (--task list): which functions call X? Documents and what may be asked:
 * bench/recall/callsite.h; conditions and their running: bench/recall/protocol.c; here are the messages and
 * the command.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/common/corpus.h"
#include "bench/recall/callsite.h"
#include "base/path.h"

static const char usage[] =
    "usage: kvist-bench callsite --model M --repo FOLDER [--task identifier|list] [--tokens N] [--texts N]\n"
    "                            [--each N] [--restore K,...] [--conditions \"WORD;...\"]\n"
    "                            [--out FILE [--resume]] [--calibrate]\n"
    "       kvist-bench callsite --summary FILE\n"
    "\n"
    "  --repo FOLDER       a repository's tree\n"
    "  --task NAME         identifier: the one hidden in a "
    "line; list: the functions that call one (identifier)\n"
    "  --tokens N          length of each document (8192)\n"
    "  --texts N           how many documents (4); --first N: the first one's number (0)\n"
    "  --each N            questions about each document (7); what an earlier one was asked is left out\n"
    "  --least N           documents with fewer are passed over (1)\n"
    "  --base PERCENT      of the document's rows that stay after turn 1 (25)\n";

enum { MOST_EACH = 64, NEW_IDENTIFIER = 16, NEW_LIST = 48, NEW_FIRST = 48 };

/* ---- messages ------------------------------------------------------------------------------------------ */

static void begin_message(const callsite *b, recall_turn *t, bool later)
{
    const model_template *template = model_get_template(b->run.model);
    if (!later) return;
    model_template_end(template, MODEL_ROLE_ASSISTANT, &t->ids);
    model_template_begin(template, MODEL_ROLE_USER, &t->ids);
}

static void end_message(const callsite *b, recall_turn *t, const char *answer_begins)
{
    const model_template *template = model_get_template(b->run.model);
    model_template_end(template, MODEL_ROLE_USER, &t->tail);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &t->tail);
    recall_add_text(&b->run, answer_begins, &t->tail);
}

/* A piece of text whose tokens ask, as far as there is room for them. */
static void add_asking(const callsite *b, recall_turn *t, const char *text)
{
    const uint32_t from = (uint32_t)t->ids.n;
    recall_add_text(&b->run, text, &t->ids);
    for (uint32_t i = from; i < t->ids.n && t->n_queries < RECALL_QUERIES; i++)
        t->queries[t->n_queries++] = i;
}

static void make_first(const callsite *b, recall_turn *t)
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
static void add_code(const callsite *b, recall_turn *t, const char *text, size_t n)
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
 * The answer begins as the document does, from the line before up to the hidden name: a small model asked for
 * the name alone names another word of the line, even from the full cache. The end is cut where the tokenizer
 * joins a character with the name behind it.
 */
static void begin_quote(const callsite *b, const callsite_question *q, recall_turn *t)
{
    const callsite_line *l = &b->doc.lines[q->line], *before = l - 1;
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

static void make_identifier(const callsite *b, const callsite_question *q, recall_turn *t)
{
    const callsite_line *l = &b->doc.lines[q->line];
    const callsite_source *s = &b->sources[l->file];
    char number[16];
    *t = (recall_turn){.n_new = NEW_IDENTIFIER, .match = RECALL_FIRST_NAME, .n_targets = 1, .n_rows = 1};
    begin_message(b, t, true);
    recall_add_text(&b->run, "\nA tool reports a problem in ", &t->ids);
    add_asking(b, t, base_path_name(s->path));
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
        ".\n"
        "What is the whole line? Answer with the lines from "
        "the one before it on, as they stand in the file.",
        &t->ids);
    begin_quote(b, q, t);
    snprintf(t->targets[0], sizeof t->targets[0], "%s", q->name);
    t->rows[0].from = l->token;
    t->rows[0].to = l->token_end;
    t->file.from = l->token;
    for (uint32_t i = 0; i < b->doc.n_lines; i++) {
        const callsite_line *other = &b->doc.lines[i];
        if (other->file != l->file) continue;
        if (other->token < t->file.from) t->file.from = other->token;
        if (other->token_end > t->file.to) t->file.to = other->token_end;
    }
}

static void make_list(const callsite *b, const callsite_question *q, recall_turn *t)
{
    *t = (recall_turn){.n_new = NEW_LIST, .match = RECALL_NAMES};
    begin_message(b, t, true);
    recall_add_text(&b->run, "\nWhich functions in the files above call `", &t->ids);
    add_asking(b, t, q->name);
    recall_add_text(&b->run, "`? Answer with their names only, separated by commas.", &t->ids);
    end_message(b, t, "The functions are `");
    for (uint32_t i = 0; i < q->n_callers; i++) {
        const callsite_line *lines[] = {&b->doc.lines[q->callers[i].call], &b->doc.lines[q->callers[i].head]};
        snprintf(t->targets[t->n_targets++], RECALL_NAME, "%s", q->callers[i].name);
        for (int k = 0; k < 2; k++) {
            t->rows[t->n_rows].from = lines[k]->token;
            t->rows[t->n_rows++].to = lines[k]->token_end;
        }
    }
}

static void make_message(const callsite *b, const callsite_question *q, recall_turn *t)
{
    if (b->list)
        make_list(b, q, t);
    else
        make_identifier(b, q, t);
}

/* ---- running ------------------------------------------------------------------------------------------- */

static int run_questions(callsite *b, const kv_session *s, uint32_t number, uint32_t n, base_err *err)
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
static int run_text(callsite *b, uint32_t number, bool runs, base_err *err)
{
    kv_session *s = NULL;
    bool left = false;
    int r = 0;
    callsite_make_document(b, number);
    callsite_find_questions(b);
    const uint32_t n = callsite_keep_new(b);
    for (uint32_t i = 0; i < n && n >= (size_t)b->least && runs; i++)
        left = left || recall_is_left(&b->run, b->name, number * MOST_EACH + i);
    if (n < (size_t)b->least) fprintf(stderr, "document %u: %u questions, passed over\n", number, n);
    if (left) {
        r = recall_document(&b->run, &s, &b->doc.ids, b->doc.starts, (uint32_t)b->doc.n_starts, err);
        fprintf(stderr, "document %u: %u of %zu questions\n", number, n, b->n_questions);
        if (!r) r = run_questions(b, s, number, n, err);
        kv_session_free(s);
    }
    callsite_free_document(&b->doc);
    return r;
}

static int run(void *user, base_err *err)
{
    callsite *b = user;
    b->list = !strcmp(b->task, "list");
    if (!b->list && strcmp(b->task, "identifier"))
        return base_fail(err, BASE_E_USAGE, "--task is identifier or list, not '%s'", b->task);
    if (!b->repo || b->tokens < 2000 || b->tokens > 100000 || b->texts < 1 || b->texts > 1000 ||
        b->first < 0 || b->first > 1000000 || b->each < 1 || b->each > MOST_EACH || b->least < 1 ||
        b->base < 1 || b->base > 100)
        return base_fail(err, BASE_E_USAGE,
            "--repo names a tree, --tokens is 2000 to 100000, "
            "--texts 1 to 1000, --each 1 to %d, --least 1 or more",
            MOST_EACH);
    char *repo = base_xstrdup(b->repo);
    for (size_t n = strlen(repo); n > 1 && repo[n - 1] == '/';) repo[--n] = 0;
    snprintf(b->name, sizeof b->name, "%s %.18s", b->list ? "list" : "identifier", base_path_name(repo));
    b->repo = repo;
    b->grammars = code_grammars_open();
    int r = bench_walk(b->repo, callsite_add_source, b, err);
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
    callsite_free_sources(b);
    free(b->questions);
    free(b->asked);
    code_grammars_close(b->grammars);
    free(repo);
    return r;
}

int bench_callsite(int argc, char **argv)
{
    callsite b = {.run = {.common = COMMON_OPTIONS_DEFAULTS, .restore = "96,192"},
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
    return recall_main(&b.run, argc, argv, own, usage, run, &b);
}
