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
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/door.h"
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
#include "cmd/options.h"
#ifdef KVIST_SHELL
#include "tools/transfer.h"
#endif

static const char usage[] =
    "usage: kvist model list [--json]     the default models: present or not, bytes, sha256\n"
    "       kvist model get NAME|URL [--sha256 HEX]   http needs the hash\n"
    "                                     fetches a model into the data folder; an interrupted one goes on\n"
    "       kvist model info FILE|NAME    metadata, tensor types, memory plan, pivot\n"
    "       kvist model check FILE|NAME   reads the whole file: shapes, numbers, vocabulary, sha256\n";

static char *model_path(const char *file)
{
    base_buf name = {0};
    base_buf_printf(&name, "models/%s", file);
    char *path = base_fs_home(BASE_HOME_DATA, name.data);
    base_buf_free(&name);
    return path;
}

static void put_bytes(base_buf *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) x /= 1024;
    base_buf_printf(out, unit ? "%.1f %s" : "%.0f %s", x, units[unit]);
}

/* ---- list ---- */

static const char *state_of(const default_model *m, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return "absent";
    return (uint64_t)st.st_size == m->bytes ? "present" : "other size";
}

static void list(bool json)
{
    base_buf out = {0};
    for (size_t i = 0; i < OPTIONS_N_MODELS; i++) {
        const default_model *m = &options_models[i];
        char *path = model_path(m->file);
        if (json) {
            base_buf_printf(&out,
                "{\"name\":\"%s\",\"role\":\"%s\",\"state\":\"%s\",\"bytes\":%" PRIu64
                ",\"sha256\":\"%s\",\"path\":",
                m->name, m->role, state_of(m, path), m->bytes, m->sha256);
            base_json_put_str(&out, path, strlen(path));
            base_buf_puts(&out, "}\n");
        } else {
            base_buf_printf(&out, "%-20s %-8s %-10s %10" PRIu64 "  %s\n%20s %s\n", m->name, m->role,
                state_of(m, path), m->bytes, m->sha256, "", path);
        }
        free(path);
    }
    fputs(out.data, stdout);
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
    put_bytes(out, all);
    base_buf_putc(out, '\n');
    for (unsigned type = 0; type < MAX_TYPES; type++) {
        if (!n[type]) continue;
        base_buf_printf(out, "  %-5s %5" PRIu64 "  ", gguf_tensor_type_name((gguf_tensor_type)type), n[type]);
        put_bytes(out, bytes[type]);
        base_buf_putc(out, '\n');
    }
}

/* What a session needs at several lengths when nothing is evicted, and with the default budget. */
static void put_memory_plan(const gguf_file *f, const model_hyper *h, base_buf *out)
{
    static const uint32_t lengths[] = {4096, 8192, 16384, 32768, 131072};
    const gguf_tensor *embedding = gguf_find_tensor(f, "token_embd.weight");
    bool own_head = gguf_find_tensor(f, "output.weight") != NULL;
    uint64_t weights = 0,
             row = (uint64_t)h->n_rows_layers * h->n_head_kv * h->head_dim * 2 * sizeof(uint16_t);
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
        put_bytes(out, (h->n_layer - h->n_rows_layers) * model_state_floats(h) * sizeof(float));
        base_buf_puts(out, " each time it is kept\n");
    }
    if (h->n_blocks > h->n_layer)
        base_buf_printf(out, "  %" PRIu32 " block%s that predict%s tokens ahead %s left out\n",
            h->n_blocks - h->n_layer, h->n_blocks - h->n_layer == 1 ? "" : "s",
            h->n_blocks - h->n_layer == 1 ? "s" : "", h->n_blocks - h->n_layer == 1 ? "is" : "are");
    base_buf_puts(out, "  read per token    ");
    put_bytes(out, weights);
    base_buf_puts(out, " of weights\n  one row           ");
    put_bytes(out, row);
    base_buf_puts(out, " (K and V of a token in all lanes, F16)\n");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (lengths[i] > h->n_ctx) break;
        base_buf_printf(out, "  %6" PRIu32 " rows active  ", lengths[i]);
        put_bytes(out, row * lengths[i]);
        base_buf_puts(out, lengths[i] == 4096 ? " (the default budget)\n" : "\n");
    }
}

/* Where a pruned prefill is cut, and what that comes from: T over the layers as a bar each. */
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
        base_buf_puts(out,
            "pivot: not detected yet (the first bulk under --kv-policy structkv, or kvist-bench structkv "
            "--pivot)\n");
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
    put_bytes(&out, gguf_file_bytes(f));
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

/* Beside a file that was fetched: its hash then, as sha256sum writes and reads it. */
static char *hash_path(const char *path)
{
    base_buf out = {0};
    base_buf_printf(&out, "%s.sha256", path);
    return base_buf_take(&out);
}

/* The hash that is remembered of `path`; false: none is. */
static bool remembered_hash(const char *path, char ret[65])
{
    char *file = hash_path(path);
    base_buf text = {0};
    bool is_there = base_fs_exists(file) && !base_fs_read(file, 4096, &text, NULL) && text.len >= 64 &&
                    strspn(text.data, "0123456789abcdef") == 64;
    if (is_there) snprintf(ret, 65, "%.64s", text.data);
    base_buf_free(&text);
    free(file);
    return is_there;
}

static int remember_hash(const char *path, const char *hex, base_err *err)
{
    char *file = hash_path(path);
    const char *slash = strrchr(path, '/');
    base_buf text = {0};
    base_buf_printf(&text, "%s  %s\n", hex, slash ? slash + 1 : path);
    int r = base_fs_write(file, text.data, text.len, 0644, err);
    base_buf_free(&text);
    free(file);
    return r;
}

static int check_hash(const gguf_file *f, const char *path, base_err *err)
{
    char hex[65], before[65];
    const default_model *m = options_find_model(path);
    const bool is_fetched = !m && remembered_hash(path, before);
    if (!m && !is_fetched) return 0;
    base_sha256_hex(gguf_bytes(f), gguf_file_bytes(f), hex);
    if (strcmp(hex, m ? m->sha256 : before) == 0) return 0;
    if (!m)
        return base_fail(
            err, BASE_E_FORMAT, "sha256 is %s and was %s when it was fetched: fetch it again", hex, before);
    return base_fail(
        err, BASE_E_FORMAT, "sha256 is %s and should be %s: fetch %s again", hex, m->sha256, m->name);
}

static int check_whole(const gguf_file *f, const char *path, base_err *err)
{
    int r = check_shapes(f, err);
    if (r == 0) r = check_text(f, err);
    if (r == 0) r = check_numbers(f, err);
    return r == 0 ? check_hash(f, path, err) : r;
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
            options_find_model(path) || remembered_hash(path, hex) ? ", sha256" : "");
    gguf_close(f);
    return r;
}

/* ---- get ---- */

static int get_default(const default_model *m, base_err *err)
{
    char *path = model_path(m->file);
    bool here = strcmp(state_of(m, path), "present") == 0;
    if (here) printf("%s is here: %s\n", m->name, path);
    free(path);
    if (here) return 0;
    return base_fail(err, BASE_E_UNSUPPORTED,
        "%s comes in parts of Python wheels: `scripts/fetch %s` in kvist's source folder fetches it", m->name,
        m->role);
}

#ifdef KVIST_SHELL
static bool show_progress(void *user, uint64_t done, uint64_t total)
{
    base_buf line = {0};
    base_buf_printf(&line, "%s: ", (const char *)user);
    put_bytes(&line, done);
    if (total) {
        base_buf_puts(&line, " of ");
        put_bytes(&line, total);
    }
    base_door_progress(line.data);
    base_buf_free(&line);
    return true;
}

/* The last part of a URL's path, if that is a file name that needs no quoting anywhere. */
static int name_of_url(const char *url, base_buf *out, base_err *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+";
    const char *rest = strstr(url, "://") + 3, *end = rest + strcspn(rest, "?#"), *at = end;
    while (at > rest && at[-1] != '/') at--;
    size_t n = (size_t)(end - at);
    if (at == rest || n < 6 || n > 200 || *at == '.' || *at == '-' || strspn(at, letters) < n ||
        strncmp(end - 5, ".gguf", 5) != 0) {
        return base_fail(err, BASE_E_USAGE, "%s does not end in the name of a .gguf file", url);
    }
    base_buf_add(out, at, n);
    return 0;
}

/* What came and is no model must not stand where the next attempt wants to write. */
static void move_aside(const char *path, base_err *err)
{
    base_buf aside = {0};
    base_buf_printf(&aside, "%s.damaged", path);
    base_err why = *err;
    if (rename(path, aside.data) == 0)
        base_fail(err, why.code, "%.300s; it was moved to %.140s", why.msg, aside.data);
    base_buf_free(&aside);
}

static int get_url(const char *url, const char *sha256, base_err *err)
{
    base_buf name = {0};
    char before[65], found[65] = "";
    int r = name_of_url(url, &name, err);
    if (r < 0) return r;
    char *path = model_path(name.data);
    const bool is_promised = sha256 != NULL, is_remembered = !is_promised && remembered_hash(path, before);
    if (is_remembered) sha256 = before;
    if (!sha256 && strncasecmp(url, "http:", 5) == 0) {
        base_buf_free(&name);
        free(path);
        return base_fail(err, BASE_E_USAGE,
            "http does not say who answers, and anybody on the way can change what comes: give --sha256 HEX "
            "as "
            "its publisher names it, or an https URL");
    }
    if (base_fs_exists(path)) {
        r = base_fail(err, BASE_E_STATE, "%s is already here; remove it to fetch it again", path);
    } else {
        const tool_transfer_options options = {.url = url,
            .path = path,
            .sha256 = sha256,
            .ret_sha256 = found,
            .progress = show_progress,
            .user = name.data};
        r = tool_transfer_get(&options, err);
        base_door_progress("");
        if (r == BASE_E_FORMAT && is_remembered)
            base_err_prefix(err, "not what was fetched before (remove %s.sha256 to take another file)", path);
    }
    if (r == 0 && (r = check(path, err)) != 0) move_aside(path, err);
    if (r == 0) r = remember_hash(path, found, err);
    if (r == 0 && !is_promised)
        printf("sha256 %s%s\n", found,
            is_remembered ? ", as when it was fetched before"
                          : ": nobody said what it has to be. Compare it with what the publisher names; it "
                            "is remembered, and "
                            "`kvist model check` looks for it");
    if (r == 0) printf("kvist --model %s starts the shell with it\n", name.data);
    free(path);
    base_buf_free(&name);
    return r;
}
#else
static int get_url(const char *url, const char *sha256, base_err *err)
{
    return base_fail(err, BASE_E_UNSUPPORTED,
        "this build has no downloads (-Dshell=disabled); put %s into the data folder's models/ by hand", url);
}
#endif

static int get(const char *what, const char *sha256, base_err *err)
{
    const default_model *m = options_find_model(what);
    if (strstr(what, "://")) return get_url(what, sha256, err);
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

int cmd_model(int argc, char **argv)
{
    const char **words = base_xcalloc((size_t)argc + 1, sizeof *words);
    const char *sha256 = NULL;
    uint32_t n = 0;
    bool json = false;
    base_err err = {0};
    const option_row own[] = {
        {"--json", OPTION_FLAG, &json, NULL, "list: one object a line"},
        {"--sha256", OPTION_TEXT, &sha256, "HEX", "get: what the file's SHA-256 has to be (http needs it)"},
        {0},
    };
    int status = CMD_OK, r = 0;
    const cmd_words taken = {.usage = usage, .rest = words, .n_rest = &n};
    if (!cmd_begin(argc, argv, NULL, own, &taken, &status)) goto out;
    const char *action = n ? words[0] : "list";
    if (json && strcmp(action, "list"))
        r = base_fail(&err, BASE_E_USAGE, "--json goes with kvist model list");
    else if (sha256 && (strlen(sha256) != 64 || sha256[strspn(sha256, "0123456789abcdefABCDEF")]))
        r = base_fail(&err, BASE_E_USAGE, "--sha256 takes 64 hexadecimal digits, not \"%s\"", sha256);
    else if (n <= 1 && !strcmp(action, "list"))
        list(json);
    else if (n == 2 && !strcmp(action, "get"))
        r = get(words[1], sha256, &err);
    else if (n == 2 && !strcmp(action, "info"))
        r = with_path(words[1], info, &err);
    else if (n == 2 && !strcmp(action, "check"))
        r = with_path(words[1], check, &err);
    else
        status = CMD_USAGE, fputs(usage, stderr);
    if (r != 0) status = cmd_complain(&err);
out:
    free(words);
    return status;
}
