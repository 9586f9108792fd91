#include "cmd/options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/edits.h"
#include "base/json.h"
#include "base/mem.h"
#include "kv/core/budget.h"

/* Budgets are compared as rows of a model like the default one: which is smaller hardly depends on it. */
enum { TYPICAL_CTX = 32768, TYPICAL_ROW = 28672 };

/* --kv-prefill and --kv-decode are parameters of every policy under names of their own. */
static const struct short_form {
    const char *option, *word, *set;
} short_forms[] = {
    {"--kv-prefill", "full", "prune=off"},
    {"--kv-prefill", "excerpts", "prune=excerpts"},
    {"--kv-prefill", "heads", "prune=heads"},
    {"--kv-prefill", "centrality", "prune=centrality"},
    {"--kv-prefill", "layer", "prune=layer"},
    {"--kv-prefill", "last", "prune=last"},
    {"--kv-decode", "full", "decode=all"},
    {"--kv-decode", "sentence", "decode=sentence"},
    {"--kv-decode", "page", "decode=page"},
};

typedef struct common_row {
    const char *name;
    option_kind kind;
    size_t offset; /* in common_options; numbers of the sampling are float or int, see put */
    enum { PUT_PLAIN, PUT_FLOAT, PUT_INT, PUT_SEED, PUT_SET, PUT_SHORT, PUT_STOP, PUT_FLAG } put;
    const char *argument, *help, *unset; /* as option_row's */
    option_bounds bounds;
    bool is_of_cache;                                          /* the group of --help: cache, else model */
    bool (*is_tighter)(const void *value, const char *wanted); /* as option_row's */
} common_row;

static bool is_smaller_budget(const void *value, const char *wanted)
{
    const char *now = *(const char *const *)value;
    kv_budget before, after;
    if (kv_budget_parse(now ? now : "auto", &before, NULL) || kv_budget_parse(wanted, &after, NULL))
        return false;
    const uint64_t memory = model_memory_available();
    const kv_limit wish = kv_budget_rows(&after, TYPICAL_CTX, TYPICAL_ROW, memory, (kv_limit){0}),
                   most = kv_budget_rows(&before, TYPICAL_CTX, TYPICAL_ROW, memory, (kv_limit){0});
    const uint32_t most_whole = most.until ? most.until : most.rows;
    return wish.rows && (!most.rows || (wish.rows <= most.rows && wish.until <= most_whole));
}

void options_put_words(base_buf *out, const char *words)
{
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, "|");
        const bool is_last = !at[n];
        base_buf_printf(out, "%s%.*s", at == words ? "" : is_last ? " or " : ", ", (int)n, at);
        at += n + !is_last;
    }
}

int options_check_word(const char *begin, const char *words, const char *text, base_err *err)
{
    base_buf all = {0}, known = {0};
    base_guess guess = base_guess_begin(text);
    bool is_known = false;
    base_buf_puts(&known, words);
    for (char *at = known.data, *rest = NULL; (at = strtok_r(at, "|", &rest)) && !is_known; at = NULL) {
        is_known = !strcmp(at, text);
        base_guess_offer(&guess, at);
    }
    options_put_words(&all, words);
    const int code = is_known ? BASE_OK
                              : base_fail(err, BASE_E_USAGE, "%s %s, not \"%.40s\"%s", begin, all.data, text,
                                    base_guess_tell(&guess, ""));
    base_buf_free(&all);
    base_buf_free(&known);
    return code;
}

static int check_budget(const char *value, base_err *err)
{
    kv_budget budget;
    base_err why = {0};
    if (!kv_budget_parse(value, &budget, &why)) return BASE_OK;
    return base_fail(err, BASE_E_USAGE, "--kv-budget: %s", why.msg);
}

static int check_repair(const char *value, base_err *err)
{
    char *end;
    const long rows = strtol(value, &end, 10);
    if (!strcmp(value, "off") || (end != value && !*end && rows >= 0 && rows <= 1 << 20)) return BASE_OK;
    return base_fail(
        err, BASE_E_USAGE, "--repair takes a number of rows (to %d) or off, not \"%.40s\"", 1 << 20, value);
}

/* What can be asked for; whether this machine has it is seen when the model is opened. */
static int check_backend(const char *value, base_err *err)
{
    static const char words[] = "auto|cpu|cpu:avx512-vnni|cpu:avx2|cpu:plain|cuda|cuda:bf16";
    return options_check_word("--backend is", words, value, err);
}

#define IN(field) offsetof(common_options, field)
static const common_row common_rows[] = {
    {"--model", OPTION_TEXT, IN(model), PUT_PLAIN, "FILE|NAME",
        "a GGUF file, or a name of `kvist model list`; a word "
        "without a slash that does not end in .gguf is a name",
        "KVIST_MODEL, else qwen2.5-coder-1.5b"},
    {"--backend", OPTION_TEXT, IN(backend), PUT_PLAIN, "auto|cpu[:avx512-vnni|avx2|plain]|cuda[:bf16]",
        "what the model runs on; auto takes the GPU where there is one", "auto", {.check = check_backend}},
    {"--gpu-mem", OPTION_NUMBER, IN(gpu_mem), PUT_PLAIN, "GIB",
        "the most of the GPU's memory to use, for weights and rows", "what is free",
        {.25, 4096, "left out, what is free is used"}},
    {"--gpu-layers", OPTION_INTEGER, IN(gpu_layers), PUT_PLAIN, "N",
        "layers that the GPU computes; the processor computes the others", "all",
        {1, 1 << 12, "left out, all do"}},
    {"--cpu-moe", OPTION_FLAG, IN(cpu_moe), PUT_FLAG, NULL,
        "the processor computes a mixture's experts, the GPU the rest", "off"},
    {"--threads", OPTION_INTEGER, IN(threads), PUT_PLAIN, "N", "threads that compute", "every core, up to 16",
        {1, 64, "left out, every core is used, up to 16"}},
    {"--ctx", OPTION_INTEGER, IN(ctx), PUT_PLAIN, "N", "length of the context in tokens", "the model's own",
        {1, 1 << 24, "left out, it is the model's own"}},
    {"--thinking", OPTION_FLAG, IN(thinking), PUT_FLAG, NULL,
        "answers may begin with a thought, where the model has such a form (Qwen3)", "off"},
    {"--seed", OPTION_INTEGER, IN(sampling.seed), PUT_SEED, "N", "seed of random choices (--temperature)",
        "0"},
    {"--temperature", OPTION_NUMBER, IN(sampling.temperature), PUT_FLOAT, "X",
        "0: always the likeliest token; higher: more varied", "0", {0, 100, "0 is greedy"}},
    {"--top-p", OPTION_NUMBER, IN(sampling.top_p), PUT_FLOAT, "X",
        "draw among the likeliest tokens that have this much probability together; 1 is off", "1",
        {.001, 1, "1 is off"}},
    {"--min-p", OPTION_NUMBER, IN(sampling.min_p), PUT_FLOAT, "X",
        "draw among tokens at least X times as likely as the likeliest; 0 is off", "0", {0, 1, "0 is off"}},
    {"--repeat-penalty", OPTION_NUMBER, IN(sampling.repeat_penalty), PUT_FLOAT, "X",
        "makes tokens that were written lately less likely; 1 is off", "1", {.1, 10, "1 is off"}},
    {"--top-k", OPTION_INTEGER, IN(sampling.top_k), PUT_INT, "N",
        "draw among the N likeliest tokens; 0 is off", "0", {0, 1 << 24, "0 is off"}},
    {"--stop", OPTION_TEXT, 0, PUT_STOP, "TEXT", "an answer ends where this text would begin (repeatable)"},
    {"--lookup", OPTION_WORD, IN(lookup), PUT_PLAIN, "on|off",
        "guess text that repeats earlier text and check it in one pass: the same answer, sooner", "on"},
    {"--kv-budget", OPTION_TEXT, IN(budget), PUT_PLAIN, "ROWS|UNTIL/ROWS|PERCENT|BYTES|auto|full",
        "how much of its memory the model reads, in rows per lane (docs/kv.md); auto goes by free memory and "
        "speed, 4,096 to 16,384 rows; full is no limit",
        "auto", {.check = check_budget}, .is_of_cache = true, .is_tighter = is_smaller_budget},
    {"--kv-policy", OPTION_TEXT, IN(policy), PUT_PLAIN, "NAME",
        "the rule that decides which rows stay: kvist, full, snapkv, ... (`kvist kv policies` lists them)",
        "kvist", {.check = kv_policy_check}, .is_of_cache = true},
    {"--repair", OPTION_TEXT, IN(repair), PUT_PLAIN, "ROWS|off", "evicted rows that a message may bring back",
        "the policy's own", {.check = check_repair}, .is_of_cache = true},
    {"--kv-prefill", OPTION_WORD, 0, PUT_SHORT, "full|excerpts|heads|centrality|layer|last",
        "which fresh text skips upper layers; full: none; excerpts: excerpts that a question gets; the "
        "others: all bulk, chosen in that way (docs/kv.md, Pruned prefill)",
        "full", .is_of_cache = true},
    {"--kv-decode", OPTION_WORD, 0, PUT_SHORT, "full|sentence|page",
        "what a step of an answer reads; full: all active rows; else the sentences or pages that it asks for",
        "full", .is_of_cache = true},
    {"--kv-set", OPTION_TEXT, 0, PUT_SET, "NAME=VALUE",
        "a policy's parameter (repeatable; `kvist kv policies` lists them)",
        .bounds = {.check = kv_parameter_check}, .is_of_cache = true},
};
enum { N_COMMON = sizeof common_rows / sizeof *common_rows };

model_options options_to_model(const common_options *o)
{
    return (model_options){.n_threads = (int)o->threads,
        .backend = o->backend,
        .gpu_bytes = (uint64_t)(o->gpu_mem * 0x1p30),
        .gpu_layers = (uint32_t)o->gpu_layers,
        .cpu_moe = o->cpu_moe,
        .thinking = o->thinking};
}

typedef union option_value {
    bool flag;
    const char *text;
    int64_t integer;
    double number;
} option_value;

/* What a row says of its values, whatever table it stands in. */
typedef struct taken {
    const char *told; /* what the option is called where it was given: "--mode", or "mode" in a file */
    option_kind kind;
    const char *argument;
    const option_bounds *bounds;
} taken;

static int check_word(const char *told, const char *words, const char *text, base_err *err)
{
    char begin[40];
    snprintf(begin, sizeof begin, "%s is", told);
    return options_check_word(begin, words, text, err);
}

static int check_number(const taken *t, double x, base_err *err)
{
    const option_bounds *b = t->bounds;
    if (!(b->least < b->most) || (x >= b->least && x <= b->most)) return BASE_OK;
    return base_fail(err, BASE_E_USAGE, "%s takes %.15g to %.15g, not %.15g%s%s", t->told, b->least, b->most,
        x, b->otherwise ? "; " : "", b->otherwise ? b->otherwise : "");
}

static int read_value(const taken *t, const char *text, option_value *ret, base_err *err)
{
    char *end = NULL;
    errno = 0;
    switch (t->kind) {
    case OPTION_FLAG: ret->flag = true; return BASE_OK;
    case OPTION_WORD: ret->text = text; return check_word(t->told, t->argument, text, err);
    case OPTION_LIST:
    case OPTION_TEXT: ret->text = text; return t->bounds->check ? t->bounds->check(text, err) : BASE_OK;
    case OPTION_INTEGER:
        ret->integer = strtoll(text, &end, 10);
        if (errno || end == text || *end)
            return base_fail(err, BASE_E_USAGE, "%s needs a whole number, not \"%.40s\"", t->told, text);
        return check_number(t, (double)ret->integer, err);
    case OPTION_NUMBER:
        ret->number = strtod(text, &end);
        if (errno || end == text || *end || !isfinite(ret->number))
            return base_fail(err, BASE_E_USAGE, "%s needs a number, not \"%.40s\"", t->told, text);
        return check_number(t, ret->number, err);
    }
    return BASE_OK;
}

static int put_set(common_options *common, const char *pair, base_err *err)
{
    if (common->n_set == sizeof common->set / sizeof *common->set - 1)
        return base_fail(err, BASE_E_USAGE, "--kv-set is given more than %u times", common->n_set);
    common->set[common->n_set++] = pair;
    return BASE_OK;
}

/* The word is one of the option's argument (OPTION_WORD). */
static int put_short(common_options *common, const char *option, const char *word, base_err *err)
{
    for (size_t i = 0; i < sizeof short_forms / sizeof *short_forms; i++)
        if (!strcmp(short_forms[i].option, option) && !strcmp(short_forms[i].word, word))
            return put_set(common, short_forms[i].set, err);
    return base_fail(err, BASE_E_USAGE, "%s knows no \"%.40s\"", option, word);
}

static int put_common(common_options *common, const common_row *row, option_value v, base_err *err)
{
    void *at = (char *)common + row->offset;
    switch (row->put) {
    case PUT_PLAIN:
        if (row->kind == OPTION_TEXT || row->kind == OPTION_WORD)
            *(const char **)at = v.text;
        else
            *(int64_t *)at = v.integer;
        break;
    case PUT_FLAG: *(bool *)at = v.flag; break;
    case PUT_FLOAT: *(float *)at = (float)v.number; break;
    case PUT_INT: *(int *)at = (int)v.integer; break;
    case PUT_SEED: *(uint64_t *)at = (uint64_t)v.integer; break;
    case PUT_STOP:
        if (!*v.text || common->n_stop == sizeof common->stop / sizeof *common->stop - 1)
            return base_fail(err, BASE_E_USAGE, "--stop takes a text, up to %zu times",
                sizeof common->stop / sizeof *common->stop - 1);
        common->stop[common->n_stop++] = v.text;
        break;
    case PUT_SET: return put_set(common, v.text, err);
    case PUT_SHORT: return put_short(common, row->name, v.text, err);
    }
    return BASE_OK;
}

static int put_own(const option_row *row, option_value v, base_err *err)
{
    switch (row->kind) {
    case OPTION_FLAG: *(bool *)row->value = v.flag; break;
    case OPTION_WORD:
    case OPTION_TEXT: *(const char **)row->value = v.text; break;
    case OPTION_INTEGER: *(int64_t *)row->value = v.integer; break;
    case OPTION_NUMBER: *(double *)row->value = v.number; break;
    case OPTION_LIST: {
        option_list *list = row->value;
        if (list->n == OPTION_LIST_MOST)
            return base_fail(err, BASE_E_USAGE, "%s can be given %d times", row->name, OPTION_LIST_MOST);
        list->all[list->n++] = v.text;
    }
    }
    return BASE_OK;
}

/* Does `word` name this option, alone or as NAME=VALUE? *inline_value is NULL when alone. */
static bool names(const char *word, const char *name, const char **inline_value)
{
    size_t n = strlen(name);
    if (strncmp(word, name, n) || (word[n] && word[n] != '=')) return false;
    if (word[n] && name[1] != '-') return false; /* "-p=x" is no form of ours */
    *inline_value = word[n] ? word + n + 1 : NULL;
    return true;
}

static int unknown_option(
    const common_options *common, const option_row *own, const char *word, base_err *err)
{
    char *name = base_xstrndup(word, strcspn(word, "="));
    base_guess guess = base_guess_begin(name);
    for (; own && own->name; own++)
        if (own->help) base_guess_offer(&guess, own->name);
    for (size_t i = 0; common && i < N_COMMON; i++) base_guess_offer(&guess, common_rows[i].name);
    const int code = base_fail(err, BASE_E_USAGE, "unknown option %.60s%s", name,
        base_guess_tell(&guess, "; --help lists the options"));
    free(name);
    return code;
}

static taken taken_of_own(const option_row *row, const char *told)
{
    return (taken){told, row->kind, row->argument, &row->bounds};
}

static taken taken_of_common(const common_row *row, const char *told)
{
    return (taken){told, row->kind, row->argument, &row->bounds};
}

/* The row that a word of the command line names: of the command's own ones, else of the common ones. */
typedef struct named_row {
    const option_row *own;
    const common_row *common;
    const char *text; /* of "--name=TEXT"; NULL: the value is the next word */
} named_row;

static bool find_row(const option_row *own, bool has_common, const char *word, named_row *ret)
{
    *ret = (named_row){.text = NULL};
    for (const option_row *row = own; row && row->name && !ret->own; row++)
        if (names(word, row->name, &ret->text)) ret->own = row;
    for (size_t k = 0; has_common && !ret->own && !ret->common && k < N_COMMON; k++)
        if (names(word, common_rows[k].name, &ret->text)) ret->common = &common_rows[k];
    return ret->own || ret->common;
}

int options_parse(int argc, char **argv, common_options *common, const option_row *own, const char **rest,
    uint32_t *n_rest, const char **ret_asked, base_err *err)
{
    uint32_t n = 0;
    bool only_words = false;
    *ret_asked = NULL;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (only_words || word[0] != '-' || !word[1]) {
            if (!rest) return base_fail(err, BASE_E_USAGE, "%s takes options only, not '%s'", argv[0], word);
            rest[n++] = word;
            continue;
        }
        if (!strcmp(word, "--")) {
            only_words = true;
            continue;
        }
        if (!strcmp(word, "--help") || !strcmp(word, "--describe")) {
            *ret_asked = word;
            continue;
        }
        named_row row;
        if (!find_row(own, common != NULL, word, &row)) return unknown_option(common, own, word, err);
        const taken t =
            row.own ? taken_of_own(row.own, row.own->name) : taken_of_common(row.common, row.common->name);
        if (t.kind == OPTION_FLAG && row.text)
            return base_fail(err, BASE_E_USAGE, "%s takes no value", t.told);
        if (t.kind != OPTION_FLAG && !row.text) {
            if (++i >= argc) return base_fail(err, BASE_E_USAGE, "%s needs a value", t.told);
            row.text = argv[i];
        }
        option_value v;
        int code = read_value(&t, row.text, &v, err);
        if (!code && row.own) code = put_own(row.own, v, err);
        if (!code && row.common) code = put_common(common, row.common, v, err);
        if (code) return code;
    }
    if (rest) *n_rest = n;
    return BASE_OK;
}

bool options_are_given(int argc, char **argv, const char *name)
{
    const char *value;
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (names(argv[i], name, &value)) return true;
    return false;
}

/* ---- settings: what configuration files may give ---- */

static void offer_setting(void *user, const char *name, const char *unset)
{
    base_guess_offer(user, name + 2);
}

static int unknown_setting(const option_row *own, const char *key, base_err *err)
{
    base_guess guess = base_guess_begin(key);
    options_each_setting(own, offer_setting, &guess);
    return base_fail(err, BASE_E_USAGE, "there is no setting \"%.40s\"%s", key,
        base_guess_tell(&guess, "; /settings lists them"));
}

void options_each_setting(const option_row *own, options_setting_fn *fn, void *user)
{
    for (; own && own->name; own++)
        if (own->is_setting) fn(user, own->name, own->unset);
    for (size_t i = 0; i < N_COMMON; i++) fn(user, common_rows[i].name, common_rows[i].unset);
}

static bool is_key(const char *name, const char *key)
{
    return !strncmp(name, "--", 2) && !strcmp(name + 2, key);
}

/*
 * What a file says of an option. A project's file is somebody else's: it may make kvist more careful, never less.
 * now: what holds. is_tighter: the row's.
 */
static int read_setting(const taken *t, option_source source,
    bool (*is_tighter)(const void *value, const char *wanted), const void *now, const char *text,
    option_value *ret, base_err *err)
{
    const bool is_foreign = source == OPTION_OF_PROJECT;
    int code = BASE_OK;
    if (is_foreign && !is_tighter)
        return base_fail(err, BASE_E_USAGE,
            "a project's file cannot set %s: it belongs into your own configuration", t->told);
    if (t->kind == OPTION_FLAG) {
        code = check_word(t->told, "on|off", text, err);
        ret->flag = !strcmp(text, "on");
    } else {
        code = read_value(t, text, ret, err);
    }
    if (!code && is_foreign && !is_tighter(now, text))
        code = base_fail(err, BASE_E_USAGE,
            "%s = %.40s would loosen what holds, and a project's file can only tighten", t->told, text);
    return code;
}

int options_put_setting(common_options *common, const option_row *own, bool all, option_source source,
    const char *key, const char *value, base_err *err)
{
    option_value v;
    for (const option_row *row = own; row && row->name; row++) {
        if (!row->is_setting || !is_key(row->name, key)) continue;
        const taken t = taken_of_own(row, key);
        const int code = read_setting(&t, source, row->is_tighter, row->value, value, &v, err);
        return code ? code : put_own(row, v, err);
    }
    for (size_t i = 0; i < N_COMMON; i++) {
        const common_row *row = &common_rows[i];
        if (!is_key(row->name, key)) continue;
        if (row->is_of_cache && !all) return BASE_OK;
        const taken t = taken_of_common(row, key);
        const int code =
            read_setting(&t, source, row->is_tighter, (const char *)common + row->offset, value, &v, err);
        return code ? code : put_common(common, row, v, err);
    }
    return all ? unknown_setting(own, key, err) : BASE_OK;
}

/* ---- what the values mean ---- */

int options_budget(const common_options *o, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured,
    kv_limit *ret, base_err *err)
{
    kv_budget budget;
    base_err why = {0};
    if (kv_budget_parse(o->budget ? o->budget : "auto", &budget, &why))
        return base_fail(err, BASE_E_USAGE, "--kv-budget: %s", why.msg);
    if (!row_bytes) {
        *ret = (kv_limit){0};
        if (kv_budget_tokens(&budget, n_ctx, &ret->rows, &why))
            return base_fail(err, BASE_E_USAGE, "--kv-budget: %s", why.msg);
        return BASE_OK;
    }
    *ret = kv_budget_rows(&budget, n_ctx, row_bytes, model_memory_available(), measured);
    return BASE_OK;
}

int options_repair(const common_options *o)
{
    return !o->repair ? -1 : !strcmp(o->repair, "off") ? 0 : (int)strtol(o->repair, NULL, 10);
}

bool options_lookup(const common_options *o)
{
    return !o->lookup || !strcmp(o->lookup, "on");
}

/* ---- what a person is told ---- */

enum { HELP_COLUMN = 26, HELP_WIDTH = 100 };

/* One told option, whatever table it stands in. */
typedef struct told_option {
    const char *group, *name, *argument, *help, *unset;
} told_option;

/* Calls fn for each that a person is told of, in the order of --help. */
static void each_told(
    const option_row *own, bool common, void (*fn)(base_buf *out, const told_option *o), base_buf *out)
{
    for (; own && own->name; own++)
        if (own->help) fn(out, &(told_option){"Options", own->name, own->argument, own->help, own->unset});
    for (int cache = 0; common && cache < 2; cache++)
        for (size_t i = 0; i < N_COMMON; i++) {
            const common_row *row = &common_rows[i];
            if (row->is_of_cache == (cache == 1))
                fn(out, &(told_option){cache ? "Cache options" : "Model options", row->name, row->argument,
                            row->help, row->unset});
        }
}

/* The sentence from HELP_COLUMN on, broken at blanks. */
static void put_wrapped(base_buf *out, const char *text)
{
    size_t column = HELP_COLUMN;
    for (const char *word = text; *word; word += strspn(word, " ")) {
        const size_t n = strcspn(word, " ");
        if (word > text && column + 1 + n > HELP_WIDTH) {
            base_buf_printf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (word > text) {
            base_buf_putc(out, ' ');
            column++;
        }
        base_buf_add(out, word, n);
        column += n;
        word += n;
    }
    base_buf_putc(out, '\n');
}

static void put_line(base_buf *out, const told_option *o)
{
    base_buf label = {0};
    base_buf_printf(&label, "  %s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    if (label.len + 2 <= HELP_COLUMN)
        base_buf_printf(out, "%-*s", HELP_COLUMN, label.data);
    else
        base_buf_printf(out, "%s\n%*s", label.data, HELP_COLUMN, "");
    base_buf_clear(&label);
    base_buf_puts(&label, o->help);
    if (o->unset) base_buf_printf(&label, " (default: %s)", o->unset);
    put_wrapped(out, label.data);
    base_buf_free(&label);
}

/* The groups' headings stand between the lines: told by the first option of each. */
static void put_grouped_line(base_buf *out, const told_option *o)
{
    base_buf heading = {0};
    base_buf_printf(&heading, "\n%s:\n", o->group);
    if (!out->data || !strstr(out->data, heading.data)) base_buf_puts(out, heading.data);
    base_buf_free(&heading);
    put_line(out, o);
}

void options_put_help(base_buf *out, const option_row *own, bool common)
{
    base_buf lines = {0};
    each_told(own, common, put_grouped_line, &lines);
    if (lines.len) base_buf_add(out, lines.data, lines.len);
    base_buf_free(&lines);
}

static void put_object(base_buf *out, const told_option *o)
{
    const char *const members[][2] = {{"group", o->group}, {"name", o->name}, {"argument", o->argument},
        {"help", o->help}, {"default", o->unset}};
    base_buf_puts(out, out->data[out->len - 1] == '[' ? "{" : ",{");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const char *value = members[i][1] ? members[i][1] : "";
        base_buf_printf(out, "%s\"%s\":", i ? "," : "", members[i][0]);
        base_json_put_str(out, value, strlen(value));
    }
    base_buf_putc(out, '}');
}

void options_put_json(base_buf *out, const option_row *own, bool common)
{
    base_buf_puts(out, "\"options\":[");
    each_told(own, common, put_object, out);
    base_buf_putc(out, ']');
}
