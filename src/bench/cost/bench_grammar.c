/*
 * kvist-bench grammar: what the grammar of tool calls costs a token. A typical call is walked token by token,
 * as decoding does (accepts, advance, forced), and a mask is computed at every place, which decoding does
 * only where the model's own choice does not fit; "few" is a mask that comes before the logits, between the
 * strings of a call. No weights are read; compare with the time of a decode step (bench speed).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "model/file/gguf.h"
#include "model/text/grammar.h"
#include "model/text/tokenizer.h"

enum { ROUNDS = 50, N_PATHS = 2000, TILE = 16 /* rows of the head that are computed together */ };

static const char usage[] =
    "usage: kvist-bench grammar [--model M]\n"
    "\n"
    "Microseconds a token of a tool call: following it, and masking the vocabulary at each of its places.\n"
    "\n";

static const char call_text[] =
    "<tools>{\"name\": \"write\", \"arguments\": {\"path\": \"src/module_17/file_42.c\", \"text\": "
    "\"int add(int a, int b)\\n{\\n    return a + b; /* two numbers \\u00e9 */\\n}\\n\"}}</tools>";

static const model_grammar_argument write_arguments[] = {
    {"path", MODEL_ARGUMENT_PATH, true, NULL}, {"text", MODEL_ARGUMENT_STRING, true, NULL}};
static const model_grammar_argument read_arguments[] = {{"path", MODEL_ARGUMENT_PATH, true, NULL},
    {"line", MODEL_ARGUMENT_INTEGER, false, NULL}, {"lines", MODEL_ARGUMENT_INTEGER, false, NULL}};
static const model_grammar_argument shell_arguments[] = {{"command", MODEL_ARGUMENT_STRING, true, NULL}};
static const model_grammar_tool tools[] = {
    {"write", write_arguments, 2}, {"read", read_arguments, 3}, {"shell", shell_arguments, 1}};

typedef struct cost {
    double total_us, most_us;
    uint32_t n;
} cost;

static void add(cost *c, uint64_t ns)
{
    double us = (double)ns / 1e3;
    c->total_us += us;
    if (us > c->most_us) c->most_us = us;
    c->n++;
}

static void report(const char *what, const cost *c)
{
    printf("%-10s %6u times   mean %8.2f us   most %8.2f us\n", what, c->n, c->n ? c->total_us / c->n : 0,
        c->most_us);
}

static void walk(model_grammar *g, const model_ids *ids, cost *follow, cost *mask, uint32_t *n_forced)
{
    int32_t forced[16];
    model_grammar_reset(g);
    for (size_t i = 0; i < ids->n; i++) {
        if (mask && model_grammar_is_active(g)) {
            uint64_t start = base_clock_ns();
            model_grammar_mask(g);
            add(mask, base_clock_ns() - start);
        }
        uint64_t start = base_clock_ns();
        if (!model_grammar_accepts(g, ids->ids[i])) return;
        model_grammar_advance(g, ids->ids[i]);
        *n_forced += model_grammar_forced(g, forced, 16);
        add(follow, base_clock_ns() - start);
    }
}

/*
 * The places of the call whose logits somebody reads, and those of them where only the few allowed ids' are
 * computed.
 */
typedef struct heads {
    uint32_t n, n_few;
    double share; /* of the head that all of these places compute, as a sum */
} heads;

static double tiles_read(const uint64_t *allowed, uint32_t n_vocab)
{
    uint32_t n_tiles = (n_vocab + TILE - 1) / TILE, n = 0;
    for (uint32_t tile = 0; tile < n_tiles; tile++)
        n += (allowed[tile * TILE / 64] >> (tile * TILE % 64) & ((1u << TILE) - 1)) != 0;
    return (double)n / n_tiles;
}

static heads count_heads(model_grammar *g, const model_ids *ids, uint32_t n_vocab, cost *few)
{
    heads h = {0};
    int32_t forced[16];
    uint32_t n_forced = 0;
    model_grammar_reset(g);
    for (size_t i = 0; i < ids->n; i++) {
        if (n_forced) {
            n_forced--; /* computed with the token before it, without logits */
        } else if (model_grammar_is_active(g)) {
            uint64_t start = base_clock_ns();
            const uint64_t *allowed = model_grammar_few(g, NULL, 0);
            if (allowed) add(few, base_clock_ns() - start);
            h.n++;
            h.n_few += allowed != NULL;
            h.share += allowed ? tiles_read(allowed, n_vocab) : 1;
        }
        model_grammar_advance(g, ids->ids[i]);
        if (!n_forced) n_forced = model_grammar_forced(g, forced, 16);
    }
    return h;
}

static int measure(const common_options *common, base_err *err)
{
    char *path = NULL;
    const char *paths[N_PATHS + 1] = {0};
    gguf_file *file = NULL;
    model_tokenizer *tokenizer = NULL;
    model_grammar *g = NULL;
    model_ids ids = {0};
    cost first = {0}, follow = {0}, mask = {0};
    uint32_t n_forced = 0;
    for (uint32_t i = 0; i < N_PATHS; i++) {
        base_buf name = {0};
        base_buf_printf(&name, "src/module_%u/file_%u.c", i / 100, i % 100);
        paths[i] = base_buf_take(&name);
    }
    int rc = options_model_path(common, &path, err);
    if (!rc) rc = gguf_open(&file, path, err);
    if (!rc) rc = model_tokenizer_load(&tokenizer, file, err);
    if (!rc)
        rc = model_grammar_new(
            &g, tokenizer, MODEL_TOOLS_TAG_TOOLS, tools, sizeof tools / sizeof *tools, paths, err);
    if (!rc) {
        model_tokenizer_encode(tokenizer, call_text, sizeof call_text - 1, false, &ids);
        walk(g, &ids, &first, &first, &n_forced); /* makes the vocabulary's trie */
        n_forced = 0;
        for (int i = 0; i < ROUNDS; i++) walk(g, &ids, &follow, NULL, &n_forced);
        for (int i = 0; i < ROUNDS / 10; i++) walk(g, &ids, &first, &mask, &n_forced);
        printf("a call of %zu tokens, %d paths; %u of its tokens are forced\n", ids.n, (int)N_PATHS,
            n_forced / (ROUNDS + ROUNDS / 10));
        report("follow", &follow);
        report("mask", &mask);
        cost few = {0};
        heads h = count_heads(g, &ids, (uint32_t)model_tokenizer_size(tokenizer), &few);
        report("few", &few);
        printf("logits are read at %u places, at %u of them only the "
               "allowed ids'; %.0f%% of the head's work is left\n",
            h.n, h.n_few, h.n ? 100 * h.share / h.n : 0);
    }
    for (uint32_t i = 0; i < N_PATHS; i++) free((char *)(uintptr_t)paths[i]);
    model_ids_free(&ids);
    model_grammar_free(g);
    model_tokenizer_free(tokenizer);
    gguf_close(file);
    free(path);
    return rc;
}

int bench_grammar(int argc, char **argv)
{
    common_options common = COMMON_OPTIONS_DEFAULTS;
    base_err err = {0};
    int code;
    if (!cmd_begin(argc, argv, &common, NULL, &(cmd_words){.usage = usage}, &code)) return code;
    if (!code) code = measure(&common, &err);
    return code ? cmd_complain(&err) : CMD_OK;
}
