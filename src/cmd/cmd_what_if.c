/*
 * kvist what-if: a logged session computed again under other settings, beside itself (src/whatif). Here the words of
 * the command line become two sides, and what they told a table.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/door.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "base/show.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/cmd_what_if.h"
#include "cmd/model_files.h"
#include "cmd/options.h"
#include "kv/core/model_file.h"
#include "kv/prune/pivot.h"
#include "kv/repair/heads.h"
#include "model/forward/arch.h"
#include "model/text/tokenizer.h"
#include "whatif/reader.h"
#include "whatif/translate.h"
#include "whatif/whatif.h"

static const char usage[] =
    "usage: kvist what-if [ID] [--kv-budget ROWS] [--kv-policy "
    "NAME] [--repair ROWS|off] [--kv-set NAME=VALUE]\n"
    "                          [--model FILE|NAME] [--from N --free] [--json]\n\n"
    "Computes a logged session again, once with its own "
    "settings and once with those given here, over the text\n"
    "that was recorded, and prints what differs: rows evicted and brought back, and at which tokens of the\n"
    "answers the model would have preferred another one. "
    "ID may be a prefix; without one: the latest session.\n"
    "With --from N --free the changed side answers by itself "
    "from turn N on, and its answers and calls are set\n"
    "beside what was recorded. No tool runs for that: a call "
    "that the record has is answered from it, a file is\n"
    "read where it still holds what it held, and behind any other call that side ends, with a sentence.\n"
    "The session stays as it is. What is found is kept as its child (kvist log lists it, kvist log delete\n"
    "removes it); after Ctrl+C the same command goes on behind the last finished turn.\n";

static const char more[] =
    "KL is how far the two expectations of the next token "
    "are apart, in nats a token of the answers; \"beside\"\n"
    "is how many evicted rows a token read for itself. Time is that of reading the recorded text, which\n"
    "computes answers in batches: it compares the two sides, "
    "not a session's speed. A --model of another vocabulary\n"
    "reads the text as tokens of its own, and nats a byte are "
    "compared; so it is with a session that was computed\n"
    "elsewhere, of which the log has texts and calls only.\n";

/* --- the two sides -------------------------------------------------------------------------------------- */

/* What was found out once per model, where the shell keeps it (kv_options). */
typedef struct cache_files {
    char *prefix, *pivot, *heads;
} cache_files;

typedef struct sides {
    const common_options *given;
    uint32_t free_from; /* 0: it is not free */
    model_grammar *grammar;
    whatif_reader reader;
    bool is_apart;        /* the changed side reads the texts as tokens of its own */
    whatif_schedule *own; /* then: as these */
    int argc;
    char **argv;
    whatif_schedule *schedule;
    model *models[2]; /* original, changed; the same one twice where the model is not changed */
    cache_files files[2];
    const char **set; /* of the changed side */
    kv_limit limit;
    base_buf names[2], phrase, settings, missing;
} sides;

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

static int open_models(sides *d, base_err *err)
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

static void close_sides(sides *d)
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
static void put_cache_files(sides *d, int side, kv_options *kv)
{
    const char *hash = model_get_info(d->models[side])->hash;
    cache_files *f = &d->files[side];
    *f = (cache_files){kv_model_file(hash, "prefix"), kv_pivot_path(hash), kv_heads_path(hash)};
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

static kv_options original_options(sides *d)
{
    kv_options kv = recorded_options(d->schedule);
    put_cache_files(d, 0, &kv);
    return kv;
}

/* Recorded parameters hold as long as their policy does; those given come behind them. */
static void join_set(sides *d, bool keeps_recorded)
{
    const whatif_schedule *s = d->schedule;
    size_t n = 0;
    while (s->set[n]) n++;
    d->set = base_xcalloc(n + d->given->n_set + 1, sizeof *d->set);
    n = 0;
    for (size_t i = 0; keeps_recorded && s->set[i]; i++) d->set[n++] = s->set[i];
    for (uint32_t i = 0; i < d->given->n_set; i++) d->set[n++] = d->given->set[i];
}

static int changed_options(sides *d, kv_options *ret, base_err *err)
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

static bool is_same_side(const sides *d, const kv_options *a, const kv_options *b)
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

static void put_name(base_buf *out, const sides *d, int side, const kv_options *kv)
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
static void put_phrase(base_buf *out, const sides *d, const kv_options *a, const kv_options *b)
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
    if (is_same_side(d, a, b)) base_buf_puts(out, "with the same settings");
    if (d->models[0] != d->models[1]) {
        put_part(out, "with ");
        base_buf_printf(
            out, "%s %s", model_get_info(d->models[1])->name, model_get_info(d->models[1])->quantisation);
    }
}

/* What tells this question from another about the same session. */
static void put_settings(base_buf *out, const sides *d, const kv_options *kv)
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

static void put_missing(base_buf *out, const sides *d)
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

/* --- printing ------------------------------------------------------------------------------------------- */

typedef struct printing {
    bool json, silent; /* silent: a screen shows it afterwards */
    uint32_t n_turns;  /* of the session */
    char *id;          /* of the what-if, once it is known */
} printing;

static void print_clean(const char *text)
{
    base_buf clean = {0};
    base_utf8_sanitise(&clean, text, strlen(text), false);
    if (clean.len) fwrite(clean.data, 1, clean.len, stdout);
    base_buf_free(&clean);
}

static void print_shown(const char *text)
{
    base_buf shown = {0};
    base_show(&shown, text, strlen(text), BASE_SHOW_UTF8);
    printf("\"%s\"", shown.data ? shown.data : "");
    base_buf_free(&shown);
}

static void print_side(const agent_side_row *s, bool is_apart)
{
    printf("      %-8s  evicted %lld, promoted %lld, active %lld, beside %.0f", s->side,
        (long long)s->evicted, (long long)s->promoted, (long long)s->active, s->visited);
    if (s->structure > 0) printf(", structure %.3f", s->structure);
    if (is_apart) printf(", %.4f nats a byte", s->nll);
    printf(", %.1f s", s->ms / 1e3);
    if (s->why) printf("; %s", s->why);
    putchar('\n');
}

static void print_turn(const agent_event *e)
{
    const bool is_apart = e->what_if_turn.bytes > 0;
    if (is_apart)
        printf("turn %lld  %lld bytes of answers, %lld of %lld of "
               "the reader's tokens are what it would have said\n",
            (long long)e->what_if_turn.turn, (long long)e->what_if_turn.bytes,
            (long long)e->what_if_turn.said, (long long)e->what_if_turn.tokens);
    else
        printf("turn %lld  %lld tokens, KL %.4f, at most %.3f; %lld would have been another one\n",
            (long long)e->what_if_turn.turn, (long long)e->what_if_turn.tokens, e->what_if_turn.kl,
            e->what_if_turn.most, (long long)e->what_if_turn.differ);
    for (size_t i = 0; i < e->what_if_turn.sides.n; i++) print_side(&e->what_if_turn.sides.rows[i], is_apart);
    if (e->what_if_turn.differ > 0) {
        printf("      first at token %lld: ", (long long)e->what_if_turn.index);
        print_shown(e->what_if_turn.was ? e->what_if_turn.was : "");
        printf(" would have been ");
        print_shown(e->what_if_turn.instead ? e->what_if_turn.instead : "");
        printf(", by %.3f nats\n", e->what_if_turn.nats);
    }
    if (e->what_if_turn.check) {
        printf("      note: ");
        print_clean(e->what_if_turn.check);
        putchar('\n');
    }
}

static void print_lines(const char *text)
{
    base_buf clean = {0};
    base_utf8_sanitise(&clean, text, strlen(text), true);
    for (const char *line = clean.data; line && *line;) {
        const char *end = strchr(line, '\n');
        const int n = (int)(end ? end - line : (ptrdiff_t)strlen(line));
        printf("        %.*s\n", n, line);
        line = end ? end + 1 : NULL;
    }
    base_buf_free(&clean);
}

static void print_answer(const agent_event *e)
{
    const bool has_text = *e->what_if_answer.was || *e->what_if_answer.instead;
    if (e->what_if_answer.diff) {
        printf("      would have answered otherwise:\n");
        print_lines(e->what_if_answer.diff);
    } else if (has_text) {
        printf("      would have answered as recorded\n");
    }
    for (size_t i = 0; i < e->what_if_answer.calls.n; i++) {
        printf("      call ");
        print_clean(e->what_if_answer.calls.rows[i].call);
        printf(": %s\n", e->what_if_answer.calls.rows[i].source);
    }
    if (!e->what_if_answer.stopped) return;
    printf("      stopped: ");
    print_clean(e->what_if_answer.stopped);
    putchar('\n');
}

static void print_event(void *user, const agent_event *e)
{
    printing *p = user;
    if (e->type == AGENT_EVENT_what_if && !p->id) p->id = base_xstrdup(e->what_if.session);
    if (p->silent) return;
    if (p->json) {
        base_buf line = {0};
        agent_event_write(e, &line);
        puts(line.data);
        base_buf_free(&line);
        return;
    }
    base_door_progress(NULL);
    switch (e->type) {
    case AGENT_EVENT_what_if:
        printf("session %s  what if %s\noriginal: %s\nchanged:  %s\n", e->what_if.parent, e->what_if.session,
            e->what_if.original, e->what_if.changed);
        if (e->what_if.missing) printf("note: %s\n", e->what_if.missing);
        break;
    case AGENT_EVENT_what_if_turn: print_turn(e); break;
    case AGENT_EVENT_what_if_answer: print_answer(e); break;
    case AGENT_EVENT_what_if_end: printf("%s\n", e->what_if_end.text); break;
    default: break;
    }
    fflush(stdout);
}

static void print_progress(void *user, uint32_t turn, uint32_t done, uint32_t total)
{
    const printing *p = user;
    const uint32_t percent = total ? (uint32_t)((uint64_t)done * 100 / total) : 100;
    char at[48], line[128];
    snprintf(at, sizeof at, turn ? "turn %u of %u" : "the prompt in front of turn 1", turn, p->n_turns);
    snprintf(line, sizeof line, "computing again: %u%%, %s (Ctrl+C ends it and keeps finished turns)",
        percent, at);
    if (!p->json) base_door_progress(line);
}

/* --- the command ---------------------------------------------------------------------------------------- */

static atomic_bool cancelled;

static void on_signal(int number)
{
    atomic_store(&cancelled, true);
}

static int check_from(const whatif_schedule *s, uint32_t from, base_err *err)
{
    uint32_t last = 0;
    for (size_t i = 0; i < s->n_steps; i++)
        if (s->steps[i].kind == WHATIF_TURN && s->steps[i].turn > last) last = s->steps[i].turn;
    if (from <= last) return 0;
    return base_fail(err, BASE_E_USAGE,
        "there is no turn %u to answer from: session %s has %u that came to an end", from, s->id, last);
}

static int compare(agent_log *l, sides *d, printing *p, base_err *err)
{
    kv_options changed = {.policy = NULL};
    int rc = check_from(d->schedule, d->free_from, err);
    if (!rc) rc = open_models(d, err);
    if (!rc) rc = changed_options(d, &changed, err);
    if (rc) return rc;
    const kv_options original = original_options(d);
    if (d->is_apart && d->free_from)
        return base_fail(err, BASE_E_USAGE,
            "--free compares answers token by token, and %.100s has other tokens than session %s was made "
            "with: without --free the texts are compared by bytes",
            model_get_info(d->models[1])->name, d->schedule->id);
    if (!d->is_apart && !d->free_from && is_same_side(d, &original, &changed))
        return base_fail(err, BASE_E_USAGE,
            "these are the settings that session %s had: nothing would differ; give another --kv-budget, "
            "--kv-policy, --repair, --kv-set or --model",
            d->schedule->id);
    put_name(&d->names[0], d, 0, &original);
    put_name(&d->names[1], d, 1, &changed);
    put_phrase(&d->phrase, d, &original, &changed);
    put_settings(&d->settings, d, &changed);
    put_missing(&d->missing, d);
    p->n_turns = d->schedule->n_turns;
    d->reader.root = d->schedule->root;
    if (d->free_from) d->grammar = whatif_model_grammar(d->models[1]);
    whatif_options o = {.original = {whatif_model_engine(d->models[0]), original, false, d->names[0].data},
        .changed = {whatif_model_engine(d->models[1]), changed, d->given->budget != NULL, d->names[1].data},
        .settings = d->settings.data,
        .phrase = d->phrase.data,
        .missing = d->missing.data,
        .free_from = d->free_from,
        .read = whatif_reader_read,
        .read_user = &d->reader,
        .cancel = &cancelled,
        .user = p,
        .event = print_event,
        .progress = print_progress};
    o.changed.engine.grammar = d->grammar;
    o.original.is_absent = d->schedule->is_elsewhere;
    if (d->is_apart) rc = whatif_schedule_translate(&d->own, d->schedule, &o.changed.engine, err);
    if (rc) return rc;
    o.changed.own = d->own;
    bool was_known = false;
    rc = whatif_run(l, d->schedule, &o, &was_known, err);
    if (!p->json) base_door_progress(NULL);
    if (!rc && was_known && !p->silent) fprintf(stderr, "kvist: kept from before; nothing was computed\n");
    if (rc == BASE_E_CANCELLED)
        rc = base_fail(err, BASE_E_CANCELLED,
            "interrupted; the turns that are through are kept, and the same command goes on behind them");
    return rc;
}

static bool changes_something(const common_options *o)
{
    return o->budget || o->policy || o->repair || o->n_set || o->ctx || (o->model && !o->is_model_configured);
}

enum { NO_FROM = INT_MIN };

/* --from N --free */
typedef struct free_words {
    int64_t from;
    bool is_free;
} free_words;

static int check_free(int64_t from, bool is_free, base_err *err)
{
    if (from == NO_FROM) return 0;
    if (!is_free)
        return base_fail(err, BASE_E_USAGE, "--from N goes with --free, which answers from turn N on");
    return from >= 1 && from <= UINT32_MAX ? 0 : base_fail(err, BASE_E_USAGE, "--from counts turns from 1");
}

static int what_if(
    const common_options *given, uint32_t free_from, const char *prefix, printing *p, base_err *err)
{
    agent_log *l = NULL;
    char *id = NULL;
    sides d = {.given = given, .free_from = free_from};
    int rc = free_from || changes_something(given)
                 ? 0
                 : base_fail(err, BASE_E_USAGE,
                       "what if what? Give --kv-budget, --kv-policy, --repair, --kv-set, --model or --free");
    if (!rc) rc = agent_log_open(&l, NULL, false, err);
    if (!rc) rc = agent_log_find(l, prefix, NULL, &id, err);
    if (!rc) rc = whatif_schedule_read(&d.schedule, l, id, err);
    if (!rc) rc = compare(l, &d, p, err);
    close_sides(&d);
    free(id);
    agent_log_close(l);
    return rc;
}

/* The words of the command line. p->id is the comparison's session afterwards; the caller frees. */
static int run_words(
    int argc, char **argv, const char *help, const option_row *own, const free_words *freely, printing *p)
{
    common_options given = COMMON_OPTIONS_DEFAULTS;
    base_err err = {0};
    const char **rest = base_xcalloc((size_t)argc + 1, sizeof *rest);
    uint32_t n_rest = 0;
    int status, rc = 0;
    const cmd_words words = {.usage = help, .more = more, .rest = rest, .n_rest = &n_rest};
    if (cmd_begin(argc, argv, &given, own, &words, &status)) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_RESETHAND}, before;
        sigaction(SIGINT, &action, &before); /* a second Ctrl+C ends the program */
        rc = n_rest > 1
                 ? base_fail(&err, BASE_E_USAGE, "one session at most; \"%s\" is a second one", rest[1])
                 : check_free(freely->from, freely->is_free, &err);
        if (!rc && n_rest <= 1) {
            const uint32_t from = !freely->is_free ? 0 : freely->from == NO_FROM ? 1 : (uint32_t)freely->from;
            rc = what_if(&given, from, n_rest ? rest[0] : "", p, &err);
        }
        sigaction(SIGINT, &before, NULL);
    }
    free(rest);
    return rc ? cmd_complain(&err) : status;
}

#define FREE_ROWS(words)                                                                                     \
    {"--from", OPTION_INTEGER, &(words).from, "N", "with --free: the first turn that is answered freely",    \
        "1"},                                                                                                \
    {                                                                                                        \
        "--free", OPTION_FLAG, &(words).is_free, NULL, "the changed side answers by itself"                  \
    }

int cmd_what_if(int argc, char **argv)
{
    printing p = {.json = false};
    free_words freely = {.from = NO_FROM};
    const option_row own[] = {FREE_ROWS(freely),
        {"--json", OPTION_FLAG, &p.json, NULL, "every result as an event, one a line"}, {0}};
    const int status = run_words(argc, argv, usage, own, &freely, &p);
    free(p.id);
    return status;
}

int cmd_what_if_silent(int argc, char **argv, char **ret_id)
{
    printing p = {.silent = true};
    bool what_if_given;
    free_words freely = {.from = NO_FROM};
    const option_row own[] = {FREE_ROWS(freely), {"--what-if", OPTION_FLAG, &what_if_given}, {0}};
    const int status = run_words(argc, argv, usage, own, &freely, &p);
    if (status) {
        free(p.id);
        p.id = NULL;
    }
    *ret_id = p.id;
    return status;
}
