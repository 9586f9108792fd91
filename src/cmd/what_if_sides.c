#include "cmd/what_if_sides.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "cmd/cmd.h"
#include "cmd/model_files.h"
#include "kv/core/model_file.h"
#include "kv/prune/pivot.h"
#include "kv/repair/heads.h"
#include "model/forward/arch.h"
#include "model/text/tokenizer.h"

static bool has_hash(const char *path, const char *hash)
{
    gguf_file *f = NULL;
    char is[65];
    if (!path || gguf_open(&f, path, NULL)) return false;
    model_hash_of(f, path, is);
    gguf_close(f);
    return !strcmp(is, hash);
}

/* The file of the session's own model: the one that is configured, else any of the data folder. */
static int find_recorded_model(const whatif_schedule *s, char **ret, base_err *err)
{
    const common_options nothing_given = COMMON_OPTIONS_DEFAULTS;
    char *path = NULL;
    (void)options_model_path(&nothing_given, &path, NULL);
    if (!has_hash(path, s->model_hash)) {
        size_t n;
        model_files_entry *files = model_files_list(&n);
        free(path);
        path = NULL;
        for (size_t i = 0; i < n && !path; i++) {
            path = model_files_path(files[i].file);
            if (has_hash(path, s->model_hash)) break;
            free(path);
            path = NULL;
        }
        model_files_free(files, n);
    }
    *ret = path;
    if (path) return 0;
    return base_fail(err, BASE_E_ENGINE,
        "session %s was made with %.100s (%.12s...), which is not here any more: KVIST_MODEL=FILE names it",
        s->id, s->model, s->model_hash);
}

/* One vocabulary, so that ids and expectations can be set beside each other? */
static bool has_same_tokens(const model *a, const model *b)
{
    const uint32_t n = model_get_info(a)->n_vocab;
    bool same = n == model_get_info(b)->n_vocab;
    for (uint32_t id = 0; same && id < n; id++) {
        size_t n_a = 0, n_b = 0;
        const char *x = model_tokenizer_piece(model_get_tokenizer(a), (int32_t)id, &n_a),
                   *y = model_tokenizer_piece(model_get_tokenizer(b), (int32_t)id, &n_b);
        same = !x == !y && n_a == n_b && (!x || !memcmp(x, y, n_a));
    }
    return same;
}

int what_if_sides_open(what_if_sides *d, base_err *err)
{
    const common_options *o = d->given;
    model_options options = options_to_model(o);
    char *path = NULL;
    options.notice = cmd_notice;
    const bool names_model = d->schedule->is_elsewhere || (o->model && !o->is_model_configured);
    int rc = names_model ? options_model_path(o, &path, err) : 0;
    if (!rc && names_model) rc = cmd_open_model_file(path, &options, &d->models[1], err);
    free(path);
    path = NULL;
    if (rc) return rc;
    const bool is_same_model =
        names_model && !strcmp(model_get_info(d->models[1])->hash, d->schedule->model_hash);
    if (is_same_model || d->schedule->is_elsewhere) {
        d->models[0] = d->models[1];
        d->is_apart = d->schedule->is_elsewhere;
        return 0;
    }
    rc = find_recorded_model(d->schedule, &path, err);
    if (!rc) rc = cmd_open_model_file(path, &options, &d->models[0], err);
    free(path);
    if (!rc && !d->models[1]) d->models[1] = d->models[0];
    d->is_apart = !rc && !has_same_tokens(d->models[0], d->models[1]);
    return rc;
}

void what_if_sides_close(what_if_sides *d)
{
    whatif_reader_close(&d->reader);
    model_grammar_free(d->grammar);
    if (d->models[1] != d->models[0]) model_close(d->models[1]);
    model_close(d->models[0]);
    for (int side = 0; side < 2; side++) {
        free(d->files[side].prefix);
        free(d->files[side].pivot);
        free(d->files[side].heads);
        base_buf_free(&d->names[side]);
    }
    free(d->set);
    base_buf_free(&d->phrase);
    base_buf_free(&d->settings);
    base_buf_free(&d->missing);
    whatif_schedule_free(d->schedule);
    whatif_schedule_free(d->own);
}

/* --- their settings ------------------------------------------------------------------------------------- */

/* Finds the files of a side's model; they are the side's until it is closed. */
static void put_cache_files(what_if_sides *d, int side, kv_options *kv)
{
    const char *hash = model_get_info(d->models[side])->hash;
    what_if_cache_files *f = &d->files[side];
    *f = (what_if_cache_files){kv_model_file(hash, "prefix"), kv_pivot_path(hash), kv_heads_path(hash)};
    kv->prefix_file = f->prefix;
    kv->pivot_file = f->pivot;
    kv->heads_file = f->heads;
}

/* As the log says, without the model's files. */
static kv_options recorded_options(const whatif_schedule *s)
{
    static const char *const nothing[] = {NULL};
    if (s->is_elsewhere) /* nothing of the record says anything of rows here */
        return (kv_options){.policy = "kvist", .repair = -1, .set = nothing};
    return (kv_options){.policy = s->policy,
        .budget = s->limit.rows,
        .until = s->limit.until,
        .repair = s->repair,
        .set = s->set,
        .n_ctx = s->n_ctx};
}

kv_options what_if_sides_original(what_if_sides *d)
{
    kv_options kv = recorded_options(d->schedule);
    put_cache_files(d, 0, &kv);
    return kv;
}

/* Recorded parameters hold as long as their policy does; those given come behind them. */
static void join_set(what_if_sides *d, bool keeps_recorded)
{
    const whatif_schedule *s = d->schedule;
    size_t n = 0;
    while (s->set[n]) n++;
    d->set = base_xcalloc(n + d->given->n_set + 1, sizeof *d->set);
    n = 0;
    for (size_t i = 0; keeps_recorded && s->set[i]; i++) d->set[n++] = s->set[i];
    for (uint32_t i = 0; i < d->given->n_set; i++) d->set[n++] = d->given->set[i];
}

int what_if_sides_changed(what_if_sides *d, kv_options *ret, base_err *err)
{
    const common_options *o = d->given;
    const model_info *info = model_get_info(d->models[1]);
    kv_options kv = recorded_options(d->schedule);
    put_cache_files(d, 1, &kv);
    join_set(d, d->schedule->is_elsewhere || !o->policy || !strcmp(o->policy, d->schedule->policy));
    kv.set = d->set;
    if (o->policy) kv.policy = o->policy;
    if (o->ctx) kv.n_ctx = (uint32_t)o->ctx;
    int rc = 0;
    if (o->repair) kv.repair = options_repair(o);
    if (o->budget) {
        kv_limit limit;
        rc = options_budget(o, info->n_ctx, info->row_bytes, (kv_limit){0}, &limit, err);
        kv.budget = limit.rows;
        kv.until = limit.until;
    }
    *ret = kv;
    return rc;
}

static bool is_same_set(const char *const *a, const char *const *b)
{
    size_t i = 0;
    while (a[i] && b[i] && !strcmp(a[i], b[i])) i++;
    return !a[i] && !b[i];
}

bool what_if_sides_are_same(const what_if_sides *d, const kv_options *a, const kv_options *b)
{
    return d->models[0] == d->models[1] && !strcmp(a->policy, b->policy) && a->budget == b->budget &&
           a->until == b->until && a->repair == b->repair && a->n_ctx == b->n_ctx &&
           is_same_set(a->set, b->set);
}

/* --- in words ------------------------------------------------------------------------------------------- */

static void put_rows(base_buf *out, const kv_options *kv)
{
    char n[32];
    if (kv->until > kv->budget) base_buf_printf(out, "%s/", base_thousands(kv->until, n));
    if (kv->budget) base_buf_puts(out, base_thousands(kv->budget, n));
    base_buf_puts(out, kv->budget ? " rows" : "all rows");
}

static void put_name(base_buf *out, const what_if_sides *d, int side, const kv_options *kv)
{
    if (side == 0 && d->schedule->is_elsewhere) {
        base_buf_printf(out, "%s, computed by %s", d->schedule->model, d->schedule->backend);
        return;
    }
    if (d->models[0] != d->models[1] || d->schedule->is_elsewhere)
        base_buf_printf(out, "%s %s, ", model_get_info(d->models[side])->name,
            model_get_info(d->models[side])->quantisation);
    base_buf_printf(out, "%s, ", kv->policy);
    put_rows(out, kv);
    if (!kv->repair) base_buf_puts(out, ", no repair");
    if (kv->repair > 0) base_buf_printf(out, ", repair %d", kv->repair);
    for (size_t i = 0; kv->set[i]; i++) base_buf_printf(out, ", %s", kv->set[i]);
}

static void put_part(base_buf *out, const char *before)
{
    base_buf_puts(out, out->len ? " and " : before);
}

/* "with 2,560 rows instead of 4,096" */
static void put_phrase(base_buf *out, const what_if_sides *d, const kv_options *a, const kv_options *b)
{
    if (d->schedule->is_elsewhere) {
        base_buf_printf(out, "read by %s %s", model_get_info(d->models[1])->name,
            model_get_info(d->models[1])->quantisation);
        return;
    }
    if (a->budget != b->budget || a->until != b->until) {
        put_part(out, "with ");
        put_rows(out, b);
        base_buf_puts(out, " instead of ");
        const size_t at = out->len;
        put_rows(out, a);
        if (b->budget && a->budget && out->len > at + 5) out->data[out->len -= strlen(" rows")] = '\0';
    }
    if (strcmp(a->policy, b->policy) != 0) {
        put_part(out, "with ");
        base_buf_printf(out, "the policy %s instead of %s", b->policy, a->policy);
    }
    if (a->repair != b->repair) {
        put_part(out, "with ");
        if (b->repair)
            base_buf_printf(out, "repairs of %d rows", b->repair);
        else
            base_buf_puts(out, "no repairs");
    }
    for (uint32_t i = 0; i < d->given->n_set; i++) {
        put_part(out, "with ");
        base_buf_puts(out, d->given->set[i]);
    }
    if (a->n_ctx != b->n_ctx) {
        put_part(out, "with ");
        base_buf_printf(out, "a context of %u tokens", b->n_ctx);
    }
    if (what_if_sides_are_same(d, a, b)) base_buf_puts(out, "with the same settings");
    if (d->models[0] != d->models[1]) {
        put_part(out, "with ");
        base_buf_printf(
            out, "%s %s", model_get_info(d->models[1])->name, model_get_info(d->models[1])->quantisation);
    }
}

/* What tells this question from another about the same session. */
static void put_settings(base_buf *out, const what_if_sides *d, const kv_options *kv)
{
    base_buf_puts(out, "{\"policy\":");
    base_json_put_str(out, kv->policy, strlen(kv->policy));
    base_buf_printf(out, ",\"budget\":%u,\"until\":%u,\"repair\":%d,\"ctx\":%u,\"kv_set\":[", kv->budget,
        kv->until, kv->repair, kv->n_ctx);
    for (size_t i = 0; kv->set[i]; i++) {
        if (i) base_buf_putc(out, ',');
        base_json_put_str(out, kv->set[i], strlen(kv->set[i]));
    }
    base_buf_puts(out, "],\"model\":");
    base_json_put_str(out, model_get_info(d->models[1])->hash, strlen(model_get_info(d->models[1])->hash));
    base_buf_puts(out, ",\"isa\":");
    base_json_put_str(out, model_get_info(d->models[1])->isa, strlen(model_get_info(d->models[1])->isa));
    if (d->free_from) base_buf_printf(out, ",\"from\":%u", d->free_from);
    base_buf_putc(out, '}');
}

static void put_missing(base_buf *out, const what_if_sides *d)
{
    const whatif_schedule *s = d->schedule;
    const model_info *info = model_get_info(d->models[0]);
    const char *between = "";
    if (s->is_elsewhere) {
        base_buf_puts(out,
            "computed elsewhere: the log has texts and calls; which rows were read, and what was expected "
            "of the answers, is not in it, so there is one side");
        return;
    }
    if (d->is_apart) {
        base_buf_puts(out, "another vocabulary: the text is aligned by bytes, there is no KL and no token "
                           "beside another one, and the "
                           "prompt is in the form of the recorded model's calls");
        between = "; ";
    }
    if (!s->says_settings) {
        base_buf_puts(out, "the log is older than its note of --kv-set and --repair: the defaults are taken");
        between = "; ";
    }
    if (*s->isa && strcmp(s->isa, info->isa) != 0) {
        base_buf_printf(out, "%srecorded by the kernels %s, computed by %s", between, s->isa, info->isa);
        between = "; ";
    }
    if (*s->backend && strcmp(s->backend, info->backend) != 0) {
        base_buf_printf(out, "%srecorded on %s, computed on %s", between, s->backend, info->backend);
        between = "; ";
    }
    if (s->was_visited_late) {
        base_buf_printf(out, "%srecorded by a version that computed answers a second time", between);
        between = "; ";
    }
    if (s->n_rewinds) {
        base_buf_printf(out, "%s%u rewinds are done as they were", between, s->n_rewinds);
        between = "; ";
    }
    if (d->free_from && s->temperature > 0) {
        base_buf_printf(out,
            "%sthe session's tokens were drawn (temperature %g); the free side takes the likeliest ones",
            between, s->temperature);
        between = "; ";
    }
    if (d->free_from && s->temperature < 0) {
        base_buf_printf(out,
            "%sthe log does not say how tokens were chosen: the free side takes the likeliest ones", between);
        between = "; ";
    }
    if (s->is_cut) base_buf_printf(out, "%sthe last turn has no end in the log and is left out", between);
}

void what_if_sides_describe(what_if_sides *d, const kv_options *original, const kv_options *changed)
{
    put_name(&d->names[0], d, 0, original);
    put_name(&d->names[1], d, 1, changed);
    put_phrase(&d->phrase, d, original, changed);
    put_settings(&d->settings, d, changed);
    put_missing(&d->missing, d);
}
