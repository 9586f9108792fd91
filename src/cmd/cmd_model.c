/*
 * kvist model: the default models and their state, what a model file says and needs, and whether all of it is
 * sound.
 *
 * `info` reads the header only; `check` reads every byte: shapes against the architecture, every scale
 * finite, the vocabulary loaded, and, for a file that the table knows, its sha256.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "kv/prune/pivot.h"
#include "model/forward/arch.h"
#include "model/file/gguf.h"
#include "model/file/quant.h"
#include "model/text/template.h"
#include "model/text/tokenizer.h"
#include "cmd/model_files.h"
#include "cmd/model_known.h"
#include "cmd/options.h"

static const char usage[] =
    "usage: kvist model list [--json]     the default models and those in the data folder\n"
    "       kvist model list --all        and families, formats, and what well-known models need here\n"
    "       kvist model get NAME|URL [--sha256 HEX]\n"
    "                                     fetches a model into the data folder, where an interrupted one goes\n"
    "                                     on, and all parts of one in parts (-00001-of-00003.gguf);\n"
    "                                     an http address needs the hash\n"
    "       kvist model info FILE|NAME    metadata, tensor types, memory plan, pivot\n"
    "       kvist model check FILE|NAME   reads the whole file: shapes, numbers, vocabulary, sha256\n";

/* ---- list ---- */

static const char *state_of(const default_model *m, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return "absent";
    return (uint64_t)st.st_size == m->bytes ? "present" : "other size";
}

static void put_default(const default_model *m, bool json, base_buf *out)
{
    char *path = model_files_path(m->file);
    if (json) {
        base_buf_printf(out,
            "{\"name\":\"%s\",\"role\":\"%s\",\"state\":\"%s\",\"bytes\":%" PRIu64
            ",\"sha256\":\"%s\",\"path\":",
            m->name, m->role, state_of(m, path), m->bytes, m->sha256);
        base_json_put_str(out, path, strlen(path));
        base_buf_puts(out, "}\n");
    } else {
        base_buf_printf(out, "%-20s %-8s %-10s %10" PRIu64 "  %s\n%20s %s\n", m->name, m->role,
            state_of(m, path), m->bytes, m->sha256, "", path);
    }
    free(path);
}

/* A file that somebody put into the folder, or fetched. */
static void put_other(const model_files_entry *e, bool json, base_buf *out)
{
    char *path = model_files_path(e->file), state[48] = "present";
    if (e->n_here < e->n_parts)
        snprintf(state, sizeof state, "%" PRIu32 " of %" PRIu32 " parts", e->n_here, e->n_parts);
    if (json) {
        base_buf_puts(out, "{\"name\":");
        base_json_put_str(out, e->file, strlen(e->file));
        base_buf_printf(out,
            ",\"role\":\"other\",\"state\":\"%s\",\"bytes\":%" PRIu64 ",\"parts\":%" PRIu32 ",\"path\":",
            e->n_here < e->n_parts ? "incomplete" : "present", e->bytes, e->n_parts);
        base_json_put_str(out, path, strlen(path));
        base_buf_puts(out, "}\n");
    } else {
        base_utf8_sanitise(out, e->file, strlen(e->file), false);
        base_buf_printf(out, "\n%20s other    %-10s %10" PRIu64, "", state, e->bytes);
        if (e->n_parts > 1 && e->n_here == e->n_parts)
            base_buf_printf(out, "  %" PRIu32 " parts", e->n_parts);
        base_buf_putc(out, '\n');
    }
    free(path);
}

static void list(bool json)
{
    base_buf out = {0};
    size_t n = 0;
    for (size_t i = 0; i < OPTIONS_N_MODELS; i++) put_default(&options_models[i], json, &out);
    model_files_entry *others = model_files_list(&n);
    for (size_t i = 0; i < n; i++)
        if (!options_find_model(others[i].file)) put_other(&others[i], json, &out);
    fputs(out.data, stdout);
    model_files_free(others, n);
    base_buf_free(&out);
}

/* ---- info ---- */

static void put_metadata(const gguf_file *f, base_buf *out)
{
    base_buf_printf(out, "metadata: %" PRIu64 " keys\n", gguf_n_keys(f));
    for (uint64_t i = 0; i < gguf_n_keys(f); i++) {
        base_str key = gguf_key_at(f, i, NULL);
        base_buf_puts(out, "  ");
        base_utf8_sanitise(out, key.ptr, key.len, false);
        base_buf_puts(out, " = ");
        gguf_print_value(f, i, out);
        base_buf_putc(out, '\n');
    }
}

static void put_tensor_types(const gguf_file *f, base_buf *out)
{
    enum { MAX_TYPES = 64 };
    uint64_t n[MAX_TYPES] = {0}, bytes[MAX_TYPES] = {0}, all = 0;
    for (uint64_t i = 0; i < gguf_n_tensors(f); i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        all += t->n_bytes;
        if ((unsigned)t->type >= MAX_TYPES) continue;
        n[t->type]++;
        bytes[t->type] += t->n_bytes;
    }
    base_buf_printf(out, "tensors: %" PRIu64 ", ", gguf_n_tensors(f));
    model_files_put_bytes(out, all);
    base_buf_putc(out, '\n');
    for (unsigned type = 0; type < MAX_TYPES; type++) {
        if (!n[type]) continue;
        base_buf_printf(out, "  %-5s %5" PRIu64 "  ", gguf_tensor_type_name((gguf_tensor_type)type), n[type]);
        model_files_put_bytes(out, bytes[type]);
        base_buf_putc(out, '\n');
    }
}

/* What `--kv-budget auto` comes to with the memory that is free now, before `kvist kv pace` has measured anything. */
static void put_default_budget(const model_hyper *h, uint32_t row_bytes, base_buf *out)
{
    const common_options options = COMMON_OPTIONS_DEFAULTS;
    kv_limit limit = {0};
    base_err err = {0};
    if (options_budget(&options, h->n_ctx, row_bytes, (kv_limit){0}, &limit, &err) || !limit.rows) return;
    base_buf_printf(out,
        "  by default at most %" PRIu32 " rows are active, with the memory that is free now\n", limit.rows);
}

/* What a session needs at several lengths when nothing is evicted, and how many rows the default budget has. */
static void put_memory_plan(const gguf_file *f, const model_hyper *h, base_buf *out)
{
    static const uint32_t lengths[] = {4096, 8192, 16384, 32768, 131072};
    const gguf_tensor *embedding = gguf_find_tensor(f, "token_embd.weight");
    bool own_head = gguf_find_tensor(f, "output.weight") != NULL;
    uint64_t weights = 0,
             row = (uint64_t)h->n_rows_layers * h->n_head_kv * h->head_dim * 2 * sizeof(uint16_t),
             windows = model_window_bytes(h);
    for (uint64_t i = 0; i < gguf_n_tensors(f); i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        if ((own_head && t == embedding) || model_arch_is_left_out(h, t)) continue;
        weights += t->ne[2] > 1 && h->n_experts ? t->n_bytes / h->n_experts * h->n_experts_used : t->n_bytes;
    }
    if (h->n_experts)
        base_buf_printf(out, "mixture: each token goes to %" PRIu32 " of %" PRIu32 " experts\n",
            h->n_experts_used, h->n_experts);
    base_buf_printf(out, "memory: %" PRIu32 " layers x %" PRIu32 " KV heads = %" PRIu32 " lanes\n",
        h->n_rows_layers, h->n_head_kv, h->n_rows_layers * h->n_head_kv);
    if (h->n_taps) {
        base_buf_printf(out, "  %" PRIu32 " of %" PRIu32 " layers keep a state instead of rows: ",
            h->n_layer - h->n_rows_layers, h->n_layer);
        model_files_put_bytes(out, (h->n_layer - h->n_rows_layers) * model_state_floats(h) * sizeof(float));
        base_buf_puts(out, " each time it is kept\n");
    }
    if (h->n_blocks > h->n_layer)
        base_buf_printf(out, "  %" PRIu32 " block%s that predict%s tokens ahead %s left out\n",
            h->n_blocks - h->n_layer, h->n_blocks - h->n_layer == 1 ? "" : "s",
            h->n_blocks - h->n_layer == 1 ? "s" : "", h->n_blocks - h->n_layer == 1 ? "is" : "are");
    base_buf_puts(out, "  read per token    ");
    model_files_put_bytes(out, weights);
    base_buf_puts(out, " of weights\n  one row           ");
    model_files_put_bytes(out, row);
    base_buf_puts(out, " (K and V of a token in all lanes, F16)\n");
    if (windows) {
        base_buf_puts(out, "    of layers with a window ");
        model_files_put_bytes(out, windows);
        base_buf_printf(
            out, ": behind %" PRIu32 " tokens these lie on disk, and are left out below\n", h->window);
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (lengths[i] > h->n_ctx) break;
        base_buf_printf(out, "  %6" PRIu32 " rows active  ", lengths[i]);
        model_files_put_bytes(out, model_rows_memory(row, windows, h->window, lengths[i]));
        base_buf_putc(out, '\n');
    }
    put_default_budget(h, (uint32_t)row, out);
}

/* The layer before which a pruned prefill is cut (docs/kv.md, "Pruned prefill"), and what that comes from: T of each layer, as a bar. */
static void put_pivot(const gguf_file *f, const char *path, const model_hyper *h, base_buf *out)
{
    enum { BAR = 40 };
    static const double floor_share = .25; /* structkv's own */
    char hash[65];
    double t[KV_PIVOT_LAYERS];
    uint32_t alone;
    model_hash_of(f, path, hash);
    char *file = kv_pivot_path(hash);
    kv_pivot *p = kv_pivot_load(file, hash, h->n_layer);
    free(file);
    if (!p) {
        base_buf_puts(out, "pivot: not detected yet (the first bulk under "
                           "--kv-policy structkv, or kvist-bench structkv --pivot)\n");
        return;
    }
    const uint32_t cut = kv_pivot_cut(p, floor_share, &alone);
    kv_pivot_curve(p, t);
    base_buf_printf(out, "pivot: prefill is cut before layer %" PRIu32 " of %" PRIu32, cut, p->n_layer);
    if (cut != alone) base_buf_printf(out, " (T alone: before %" PRIu32 ")", alone);
    base_buf_printf(
        out, ", detected over %" PRIu32 " rows with %" PRIu32 " queries\n", p->n_rows, p->n_queries);
    base_buf_puts(out, "  layer  entropy  top 10%  variance  T\n");
    for (uint32_t l = 0; l < p->n_layer; l++) {
        base_buf_printf(out, "  %5" PRIu32 "  %7.3f  %7.3f  %8.2g  %.3f ", l, p->entropy[l], p->sparsity[l],
            p->variance[l], t[l]);
        for (int i = 0; i < (int)(t[l] * BAR + .5); i++) base_buf_putc(out, '#');
        base_buf_puts(out, l + 1 == cut ? "  < cut\n" : "\n");
    }
    free(p);
}

static int info(const char *path, base_err *err)
{
    gguf_file *f;
    model_hyper h;
    base_err unsupported = {0};
    base_buf out = {0};
    int r = gguf_open(&f, path, err);
    if (r < 0) return r;
    base_buf_printf(&out, "%s: ", path);
    model_files_put_bytes(&out, gguf_file_bytes(f));
    if (gguf_n_parts(f) > 1) base_buf_printf(&out, " in %" PRIu64 " parts", gguf_n_parts(f));
    base_buf_putc(&out, '\n');
    put_metadata(f, &out);
    put_tensor_types(f, &out);
    if (model_arch_read(f, &h, &unsupported) == 0) {
        put_memory_plan(f, &h, &out);
        put_pivot(f, path, &h, &out);
    } else
        base_buf_printf(&out, "kvist cannot run this model: %s\n", unsupported.msg);
    fputs(out.data, stdout);
    base_buf_free(&out);
    gguf_close(f);
    return 0;
}

/* ---- check ---- */

static int check_numbers(const gguf_file *f, base_err *err)
{
    for (uint64_t i = 0; i < gguf_n_tensors(f); i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        if (quant_is_finite(t->type, t->data, (size_t)(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]))) continue;
        return base_fail(err, BASE_E_FORMAT, "tensor %.*s holds numbers that are not finite",
            (int)t->name.len, t->name.ptr);
    }
    return 0;
}

static int check_shapes(const gguf_file *f, base_err *err)
{
    model_hyper h;
    model_tensors tensors = {0};
    int r = model_arch_read(f, &h, err);
    if (r < 0 || (r = model_arch_bind(f, &h, &tensors, err)) < 0) return r;
    model_arch_unbind(&tensors);
    return 0;
}

/* The vocabulary loads, a text comes back from its ids, and the turns can be framed. */
static int check_text(const gguf_file *f, base_err *err)
{
    static const char sample[] = "int main(void) { return 0; }\n\n  1234 \xc3\xa9\xe4\xbd\xa0";
    model_tokenizer *t;
    model_template *m;
    int r = model_tokenizer_load(&t, f, err);
    if (r < 0) return r;
    model_ids ids = {0};
    base_buf back = {0};
    model_tokenizer_encode(t, sample, sizeof sample - 1, false, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        size_t n;
        const char *piece = model_tokenizer_piece(t, ids.ids[i], &n);
        base_buf_add(&back, piece, n);
    }
    if (back.len != sizeof sample - 1 || memcmp(back.data, sample, back.len) != 0)
        r = base_fail(err, BASE_E_FORMAT, "the vocabulary does not give a text back from its ids");
    if (r == 0 && (r = model_template_load(&m, f, t, false, err)) == 0) model_template_free(m);
    model_ids_free(&ids);
    base_buf_free(&back);
    model_tokenizer_free(t);
    return r;
}

/* Of each file that the model is made of: the hash that the table or the fetching knows. */
static int check_hash(gguf_part part, const char *path, base_err *err)
{
    char hex[65], before[65];
    const char *file = part.path ? part.path : path;
    const default_model *m = options_find_model(file);
    const bool is_fetched = !m && model_files_hash(file, before);
    if (!m && !is_fetched) return 0;
    base_sha256_hex(part.bytes, part.n_bytes, hex);
    if (strcmp(hex, m ? m->sha256 : before) == 0) return 0;
    if (!m)
        return base_fail(err, BASE_E_FORMAT,
            "sha256 of %s is %s and was %s when it was fetched: fetch it again", file, hex, before);
    return base_fail(
        err, BASE_E_FORMAT, "sha256 is %s and should be %s: fetch %s again", hex, m->sha256, m->name);
}

static int check_whole(const gguf_file *f, const char *path, base_err *err)
{
    int r = check_shapes(f, err);
    if (r == 0) r = check_text(f, err);
    if (r == 0) r = check_numbers(f, err);
    for (uint64_t i = 0; i < gguf_n_parts(f) && r == 0; i++) r = check_hash(gguf_part_at(f, i), path, err);
    return r;
}

static int check(const char *path, base_err *err)
{
    gguf_file *f;
    char hex[65];
    int r = gguf_open(&f, path, err);
    if (r < 0) return r;
    r = check_whole(f, path, err);
    if (r < 0)
        base_err_prefix(err, "%s", path);
    else
        printf("%s: sound (%" PRIu64 " tensors, shapes, numbers, vocabulary%s)\n", path, gguf_n_tensors(f),
            options_find_model(path) || model_files_hash(path, hex) ? ", sha256" : "");
    gguf_close(f);
    return r;
}

/* ---- get ---- */

static int get_default(const default_model *m, base_err *err)
{
    char *path = model_files_path(m->file);
    bool here = strcmp(state_of(m, path), "present") == 0;
    if (here) printf("%s is here: %s\n", m->name, path);
    free(path);
    if (here) return 0;
    return base_fail(err, BASE_E_UNSUPPORTED,
        "%s comes in parts of Python wheels: `kvist-fetch %s` "
        "(in kvist's source folder `scripts/fetch %s`) fetches it",
        m->name, m->role, m->role);
}

static int get(const char *what, const char *sha256, base_err *err)
{
    const default_model *m = options_find_model(what);
    if (strstr(what, "://")) return model_files_get(what, sha256, check, err);
    if (m) return get_default(m, err);
    return base_fail(err, BASE_E_NOT_FOUND, "%s is no URL and no default model (kvist model list)", what);
}

/* ---- the command ---- */

/* FILE or NAME of `info` and `check` to a path. */
static int with_path(const char *word, int (*run)(const char *path, base_err *err), base_err *err)
{
    common_options options = COMMON_OPTIONS_DEFAULTS;
    char *path = NULL;
    options.model = word;
    int r = options_model_path(&options, &path, err);
    if (r == 0) r = run(path, err);
    free(path);
    return r;
}

/* One hash, or several with commas between. */
static bool are_hashes(const char *s)
{
    for (;; s++) {
        if (strspn(s, "0123456789abcdefABCDEF") != 64) return false;
        s += 64;
        if (*s != ',') return *s == 0;
    }
}

typedef struct model_command {
    bool json, all;
    const char *sha256;
} model_command;

static int do_list(void *user, const char *word, base_err *err)
{
    const model_command *c = user;
    list(c->json);
    if (c->all) model_known_print();
    return 0;
}

static int do_get(void *user, const char *word, base_err *err)
{
    return get(word, ((const model_command *)user)->sha256, err);
}

static int do_info(void *user, const char *word, base_err *err)
{
    return with_path(word, info, err);
}

static int do_check(void *user, const char *word, base_err *err)
{
    return with_path(word, check, err);
}

static const cmd_verb verbs[] = {
    {"list", NULL, do_list, .is_default = true},
    {"get", "one name or address", do_get},
    {"info", "one file or name", do_info},
    {"check", "one file or name", do_check},
    {NULL},
};

/* Options that mean nothing to the verb are told, not passed by. */
static int check_options(const model_command *c, const cmd_verb *verb, base_err *err)
{
    const bool lists = verb->run == do_list, gets = verb->run == do_get;
    if (c->json && !lists) return base_fail(err, BASE_E_USAGE, "--json goes with kvist model list");
    if (c->all && (c->json || !lists))
        return base_fail(err, BASE_E_USAGE, "--all goes with kvist model list, without --json");
    if (c->sha256 && !gets) return base_fail(err, BASE_E_USAGE, "--sha256 goes with kvist model get");
    if (c->sha256 && !are_hashes(c->sha256))
        return base_fail(
            err, BASE_E_USAGE, "--sha256 takes 64 hexadecimal digits, not \"%.100s\"", c->sha256);
    return 0;
}

int cmd_model(int argc, char **argv)
{
    const char **words = base_xcalloc((size_t)argc + 1, sizeof *words);
    uint32_t n = 0;
    model_command c = {0};
    base_err err = {0};
    const option_row own[] = {
        {"--json", OPTION_FLAG, &c.json, NULL, "list: one object a line"},
        {"--all", OPTION_FLAG, &c.all, NULL,
            "list: what kvist runs and refuses, and what fits into this machine"},
        {"--sha256", OPTION_TEXT, &c.sha256, "HEX",
            "get: what the file's SHA-256 has to be (http needs it); of parts each, commas between"},
        {0},
    };
    int status, r = 0;
    const cmd_words taken = {.usage = usage, .rest = words, .n_rest = &n};
    if (cmd_begin(argc, argv, NULL, own, &taken, &status)) {
        const cmd_verb *verb = cmd_find_verb("kvist model", verbs, words, n, &err);
        r = verb ? check_options(&c, verb, &err) : BASE_E_USAGE;
        if (!r) r = verb->run(&c, n > 1 ? words[1] : NULL, &err);
    }
    free(words);
    return r ? cmd_complain(&err) : status;
}
