/*
 * The built-in engine: model/ computes, kv/ remembers, and this file makes tokens out of logits. Logits are
 * asked for where an answer may follow (scaffold and answer tokens), so that a long text costs no output
 * projection.
 *
 * The grammar looks on: a token is picked freely first, and only when the grammar does not accept it the mask
 * is computed and the pick repeated. Between the strings of a call, where few ids are allowed, it is the
 * other way round: the mask comes first, and the output projection computes nothing else. What must follow a
 * token (grammar) and what probably will (lookup) is computed in its batch; each of these becomes a token
 * only when its turn comes and it is what the pick says, so that a text does not depend on what was looked
 * up. Engine thread only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine/ability.h"
#include "agent/engine/engine_local_parts.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "kv/calibrate/calibrate.h"
#include "kv/calibrate/pace.h"
#include "kv/repair/heads.h"
#include "model/text/answer.h"
#include "model/text/lookup.h"

enum { ANSWER_ROOM = 1024 }; /* tokens that an answer may have */

/* --- text ----------------------------------------------------------------------------------------------- */

static int local_encode(engine *e, const char *text, size_t n, model_ids *out, base_err *err)
{
    model_tokenizer_encode(as_local(e)->tokenizer, text, n, false, out);
    return 0;
}

static const char *local_piece(const engine *e, int32_t id, size_t *ret_n)
{
    return model_tokenizer_piece(as_local(e)->tokenizer, id, ret_n);
}

static bool local_is_control(const engine *e, int32_t id)
{
    return model_tokenizer_is_control(as_local(e)->tokenizer, id);
}

static int32_t local_mark(const engine *e, const char *name)
{
    return model_tokenizer_find(as_local(e)->tokenizer, name);
}

static int local_scaffold(engine *e, engine_scaffold what, model_role role, model_ids *out, base_err *err)
{
    const model_template *template = as_local(e)->template;
    uint32_t n = 0;
    const int32_t *ids = as_local(e)->base.session ? engine_session_ids(e, &n) : NULL;
    if (what == ENGINE_START) model_template_start(template, out);
    if (what == ENGINE_BEGIN) model_template_begin_behind(template, role, ids, n, out);
    if (what == ENGINE_END) model_template_end_behind(template, role, ids, n, out);
    return 0;
}

/* --- memory --------------------------------------------------------------------------------------------- */

/* Only behind what opens an answer, and inside of one, somebody asks what comes next. */
static bool is_answer_next(const local *l, const kv_segment *segment, const int32_t *ids, uint32_t n)
{
    if (kv_origin_is_written(segment->origin)) return true;
    return segment->origin == KV_ORIGIN_SCAFFOLD && model_template_opens_answer(l->template, ids, n);
}

static int local_append(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err)
{
    local *l = as_local(e);
    bool wants = is_answer_next(l, segment, ids, n);
    l->have_logits = false;
    int rc = kv_session_append(l->base.session, segment, ids, n, wants ? l->logits : NULL, l->cancel, err);
    l->have_logits = !rc && wants;
    l->few = false;
    l->row = 0;
    return rc;
}

static int local_truncate(engine *e, uint32_t n, base_err *err)
{
    as_local(e)->have_logits = false;
    return kv_session_truncate(e->session, n, err);
}

static int local_save(engine *e, base_err *err)
{
    local *l = as_local(e);
    if (!l->row_file) return 0;
    kv_stats s;
    kv_session_get_stats(l->base.session, &s);
    /* The person reads or types now: the time to give back what rewinds left in the row file. */
    return s.file_waste > 64 + s.n_tokens / 4 ? kv_session_compact(l->base.session, err)
                                              : kv_session_save(l->base.session, err);
}

static int local_save_prefix(engine *e, uint32_t n, base_err *err)
{
    local *l = as_local(e);
    return l->prefix_file ? kv_session_save_prefix(l->base.session, l->prefix_file, n, err) : 0;
}

static int local_restart(engine *e, const char *row_file, base_err *err)
{
    local *l = as_local(e);
    kv_session *fresh = NULL;
    kv_options options = l->kv;
    kv_stats s;
    kv_session_get_stats(e->session, &s);
    options.budget = s.budget; /* as it was set since */
    options.until = s.until;
    char *path = base_xstrdup(row_file);
    kv_observer observer = engine_observer(&l->base);
    options.row_file = path;
    int rc = kv_session_new(&fresh, l->model, &options, &observer, err);
    if (rc) {
        free(path);
        return rc;
    }
    kv_session_free(l->base.session);
    l->base.session = fresh;
    free(l->row_file);
    l->row_file = path;
    l->kv.row_file = path;
    l->have_logits = false;
    return 0;
}

static void local_make_ready(engine *e)
{
    kv_session_make_ready(e->session, as_local(e)->cancel);
}

static void find_heads(local *l, void (*tell)(void *user, const char *what), void *user)
{
    base_err err = {0};
    if (l->gave_up_heads || base_fs_exists(l->heads_file)) return;
    if (tell) tell(user, "finding this model's retrieval heads, once");
    const int rc = kv_heads_calibrate(l->model, KV_HEADS_KEPT, l->heads_file, NULL, NULL, l->cancel, &err);
    l->gave_up_heads = rc && rc != BASE_E_CANCELLED;
}

/*
 * The heads that repairs of later sessions listen to, and their budget's numbers. This one goes on with what it
 * began with: its plans stay reproducible.
 */
/* A vocabulary without words knows none alike: nobody misses anything by that. */
static void find_alike(void *user, const base_alike_query *q)
{
    local *l = user;
    if (!l->words && !l->has_no_words) l->has_no_words = model_alike_open(&l->words, l->model, NULL) != 0;
    if (l->words) model_alike_find(l->words, q);
}

static const base_alike *local_alike(engine *e)
{
    local *l = as_local(e);
    l->alike = (base_alike){.user = l, .find = find_alike};
    return &l->alike;
}

static void local_learn(engine *e, void (*tell)(void *user, const char *what), void *user)
{
    local *l = as_local(e);
    base_err err = {0};
    kv_stats s;
    kv_session_get_stats(e->session, &s);
    if (!l->heads_file || !s.budget) return;
    find_heads(l, tell, user);
    if (!l->gave_up_heads && !base_fs_exists(l->heads_file)) return; /* cancelled */
    if (l->gave_up_pace || base_fs_exists(l->pace_file)) return;
    if (tell) tell(user, "measuring this model's pace, once");
    kv_pace pace;
    int rc = kv_pace_measure(l->model, &pace, NULL, NULL, l->cancel, &err);
    if (!rc) rc = kv_pace_save(&pace, l->pace_file, &err);
    l->gave_up_pace = rc && rc != BASE_E_CANCELLED;
}

/* Where these tokens, or the answer behind them, may bring the first eviction on. */
static void local_prepare(engine *e, uint32_t n, void (*tell)(void *user, const char *what), void *user)
{
    local *l = as_local(e);
    kv_stats s;
    if (!l->heads_file || l->trunk || !kv_session_wants_heads(e->session)) return;
    kv_session_get_stats(e->session, &s);
    if (s.n_tokens + n + ANSWER_ROOM <= (s.until ? s.until : s.budget)) return;
    find_heads(l, tell, user);
    kv_session_set_heads(e->session, l->heads_file);
}

/* --- looking -------------------------------------------------------------------------------------------- */

static const char no_room_above[] = "fresh text is computed in full: too few layers lie above that pivot to "
                                    "hold what would wait there; a smaller pivot has room";

static void local_info(const engine *e, engine_info *ret)
{
    const local *l = as_local(e);
    kv_stats s;
    kv_session_get_stats(l->base.session, &s);
    *ret = (engine_info){.model = l->info->name && *l->info->name ? l->info->name : l->info->path,
        .model_hash = l->info->hash,
        .quantisation = l->info->quantisation,
        .policy = kv_session_policy(l->base.session),
        .backend = l->info->backend,
        .isa = l->info->isa,
        .repair = l->kv.repair,
        .set = l->kv.set,
        .notice = l->info->notice                          ? l->info->notice
                  : kv_session_cannot_cut(l->base.session) ? no_room_above
                                                           : NULL,
        .tools = model_template_tools(l->template),
        .strong = agent_ability_is_strong(
            &(agent_ability){model_template_tools(l->template), l->info->n_params, l->info->n_params_active}),
        .n_ctx = s.endless ? l->info->n_ctx : s.n_ctx,
        .model_n_ctx = l->info->n_ctx,
        .n_layer = l->info->n_rows_layers,
        .n_lanes = s.n_lanes,
        .n_all_lanes = s.n_all_lanes,
        .window = l->window,
        .windows = l->windows,
        .row_bytes = l->row_bytes,
        .measured = l->measured,
        .n_vocab = l->info->n_vocab,
        .sampling = l->sampling};
}

/* --- answers -------------------------------------------------------------------------------------------- */

static int local_set_tools(
    engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err)
{
    local *l = as_local(e);
    model_grammar *fresh = NULL;
    int rc = model_grammar_new(&fresh, l->tokenizer, model_template_tools(l->template), tools, n, paths, err);
    if (rc) return rc;
    model_grammar_free(l->grammar);
    l->grammar = fresh;
    if (l->few) l->have_logits = false;
    return 0;
}

static void local_set_sampling(engine *e, const model_sampling *s)
{
    local *l = as_local(e);
    model_sampler_free(l->sampler);
    l->sampling = *s;
    l->sampler = model_sampler_new(s, l->info->n_vocab);
}

static void local_answer_opened(engine *e, const int32_t *ids, uint32_t n)
{
    local *l = (local *)e;
    for (uint32_t i = 0; i < n && l->grammar; i++) model_grammar_advance(l->grammar, ids[i]);
}

/* Where the template has begun a thought, the answer begins inside of it. */
static void tell_open_thought(local *l)
{
    uint32_t n = 0;
    const int32_t *ids = kv_session_ids(l->base.session, &n), think = local_mark(&l->base, "<think>");
    for (uint32_t i = n; i-- > 0 && think >= 0;) {
        size_t len = 0;
        const char *piece = model_tokenizer_piece(l->tokenizer, ids[i], &len);
        if (ids[i] == think) model_grammar_advance(l->grammar, think);
        if (!piece || strspn(piece, "\n") < len) return;
    }
}

static void local_answer_begins(engine *e)
{
    local *l = as_local(e);
    if (l->grammar) model_grammar_reset(l->grammar);
    if (l->grammar) tell_open_thought(l);
    l->grammar_off = false;
    l->hold = NULL;
    if (l->few) l->have_logits = false;
}

/* Does the schema say what may follow? Of a call the grammar does. */
static bool is_held(const local *l)
{
    return l->hold && !model_answer_is_call(l->answer);
}

static int local_answer_held(engine *e, engine_hold *hold, base_err *err)
{
    local *l = as_local(e);
    int rc = 0;
    if (!l->answer || l->answer_schema != hold->schema) {
        model_answer_free(l->answer);
        l->answer = NULL;
        rc = model_answer_new(&l->answer, l->tokenizer, hold->schema, err);
        l->answer_schema = hold->schema;
    }
    if (!rc) rc = model_answer_begin(l->answer, hold->calls ? l->grammar : NULL, hold->n_tokens, err);
    if (!rc) l->hold = hold;
    return rc;
}

static void local_answer_close(engine *e)
{
    local *l = as_local(e);
    if (!l->hold) return;
    model_answer_close(l->answer);
    local_end_draft(l, false); /* what was computed ahead may be longer than the way that is left */
    kv_session_forget(l->base.session);
    l->have_logits = false;
}

static void local_answer_over(engine *e)
{
    local *l = as_local(e);
    if (l->hold) l->hold->was_cut = model_answer_was_cut(l->answer);
    l->hold = NULL;
}

/* The mask behind `ids`, n tokens that follow, where it comes before the logits; else NULL. */
static const uint64_t *few_allowed(local *l, const int32_t *ids, uint32_t n)
{
    if (is_held(l)) return model_answer_few(l->answer, ids, n);
    return l->grammar && !l->grammar_off ? model_grammar_few(l->grammar, ids, n) : NULL;
}

static int32_t pick(local *l, const uint64_t *allowed)
{
    uint32_t n;
    const int32_t *ids = kv_session_ids(l->base.session, &n);
    uint32_t recent = l->sampling.repeat_last > 0 ? (uint32_t)l->sampling.repeat_last : 0;
    if (recent > n) recent = n;
    const float *logits = l->logits + (size_t)l->row * l->info->n_vocab;
    return model_sampler_pick(l->sampler, logits, allowed, ids + (n - recent), recent, NULL);
}

/* The pick among what the schema allows, where the free one is not. */
static int choose_held(local *l, int32_t id, int32_t *ret_id, int32_t *mask_wanted, base_err *err)
{
    *ret_id = id;
    if (model_answer_accepts(l->answer, id)) return 0;
    const uint64_t *allowed = model_answer_mask(l->answer);
    if (!allowed)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "no token of this model's vocabulary goes on with the JSON that the schema allows here");
    *ret_id = pick(l, allowed);
    if (mask_wanted && *ret_id != id) *mask_wanted = id;
    return 0;
}

/* The next id by the logits behind the last token and the grammar. */
static int choose(local *l, int32_t *ret_id, int32_t *mask_wanted, base_err *err)
{
    if (!l->have_logits) {
        int rc = kv_session_logits(l->base.session, l->logits, l->cancel, err);
        if (rc) return rc;
        l->row = 0;
        l->few = false;
        l->have_logits = true;
    }
    const uint64_t *few = few_allowed(l, NULL, 0);
    int32_t id = pick(l, few);
    *ret_id = id;
    if (few) return 0;
    if (is_held(l)) return choose_held(l, id, ret_id, mask_wanted, err);
    bool end = model_tokenizer_is_end(l->tokenizer, id);
    bool free_text = !l->grammar || l->grammar_off;
    if (!free_text && !(end && !model_grammar_is_active(l->grammar)) &&
        !model_grammar_accepts(l->grammar, id)) {
        const uint64_t *allowed = model_grammar_mask(l->grammar);
        if (allowed) {
            int32_t wanted = id;
            id = pick(l, allowed);
            if (mask_wanted && wanted != id) *mask_wanted = wanted;
        } else {
            l->grammar_off = true; /* the lenient parser reads what comes */
        }
    }
    *ret_id = id;
    return 0;
}

/*
 * What follows `id` (which the grammar has seen) for certain or probably, behind it in `ids`; sets n_known
 * and n_drafted.
 */
static uint32_t look_ahead(local *l, int32_t id, int32_t ids[KV_DRAFT_MAX])
{
    uint32_t n_tokens, room = kv_session_room(l->base.session),
                       most = room < KV_DRAFT_MAX ? room : KV_DRAFT_MAX;
    const int32_t *all = kv_session_ids(l->base.session, &n_tokens);
    uint32_t n = 1;
    ids[0] = id;
    if (most > 1 && is_held(l))
        n += model_answer_forced(l->answer, ids + 1, most - 1);
    else if (most > 1 && l->grammar && !l->grammar_off)
        n += model_grammar_forced(l->grammar, ids + 1, most - 1);
    l->n_known = n;
    if (!l->lookup || n > 1 || most < 2) return n;
    model_lookup_sync(l->lookup, all, n_tokens);
    l->n_drafted = model_lookup_draft(l->lookup, id, most - 1, ids + 1);
    return n + l->n_drafted;
}

/*
 * Adds `id` to the sequence, from what was computed ahead or by a forward pass, with logits behind it unless
 * the answer ends.
 */
static int add(local *l, const kv_segment *segment, int32_t id, bool end, base_err *err)
{
    const int32_t *ahead;
    uint32_t n_ahead = kv_session_drafted(l->base.session, &ahead);
    l->have_logits = false;
    if (!n_ahead || ahead[0] != id) {
        int32_t ids[KV_DRAFT_MAX];
        kv_segment batch = *segment;
        local_end_draft(l, n_ahead > 0);
        uint32_t n = end ? 1 : look_ahead(l, id, ids);
        if (!end && !l->n_drafted) batch.only = few_allowed(l, ids + 1, n - 1);
        l->few = batch.only != NULL;
        uint64_t start = base_clock_ns();
        if (n == 1) {
            l->n_known = 0;
            int rc =
                kv_session_append(l->base.session, &batch, &id, 1, end ? NULL : l->logits, l->cancel, err);
            if (!rc && !end && !l->few && l->lookup) model_lookup_cost(l->lookup, 1, base_clock_ns() - start);
            l->row = 0;
            l->have_logits = !rc && !end;
            return rc;
        }
        int rc = kv_session_draft(l->base.session, &batch, ids, n, l->n_known - 1, l->logits, l->cancel, err);
        if (rc) {
            local_end_draft(l, false);
            return rc;
        }
        if (l->n_drafted) model_lookup_cost(l->lookup, n, base_clock_ns() - start);
    }
    bool has_logits = l->n_taken + 1 >= l->n_known && !end;
    if (has_logits) l->row = l->n_taken + 1 - l->n_known;
    const float *logits = has_logits && !l->few ? l->logits + (size_t)l->row * l->info->n_vocab : NULL;
    int rc = kv_session_accept(l->base.session, segment, logits, l->cancel, err);
    if (rc) return rc;
    l->have_logits = has_logits;
    l->n_taken++;
    if (end || l->n_taken == l->n_known + l->n_drafted) local_end_draft(l, false);
    return 0;
}

static int local_next(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
    int32_t *mask_wanted, base_err *err)
{
    local *l = as_local(e);
    const int32_t *ahead;
    const kv_segment segment = {.origin = origin, .turn = turn};
    if (mask_wanted) *mask_wanted = -1;
    if (l->origin != origin) { /* what was computed ahead read as the other does */
        local_end_draft(l, false);
        kv_session_forget(l->base.session);
    }
    l->origin = origin;
    int32_t id;
    if (kv_session_drafted(l->base.session, &ahead) && l->n_taken < l->n_known) {
        id = ahead[0];
    } else {
        int rc = choose(l, &id, mask_wanted, err);
        if (rc) return rc;
    }
    bool end = model_tokenizer_is_end(l->tokenizer, id);
    if (l->hold)
        model_answer_advance(l->answer, id);
    else if (l->grammar && !l->grammar_off && !end)
        model_grammar_advance(l->grammar, id);
    if (end) id = model_template_kept_end(l->template, id);
    int rc = add(l, &segment, id, end, err);
    if (rc) return rc;
    *ret_id = id;
    *ret_end = end;
    return 0;
}

static void local_set_lookup(engine *e, bool on)
{
    local *l = as_local(e);
    model_lookup_free(l->lookup);
    l->lookup = on ? model_lookup_new() : NULL;
    l->n_known = l->n_drafted = l->n_taken = 0;
    l->have_logits = false;
    kv_session_forget(l->base.session);
}

static void local_lookup(const engine *e, uint64_t *ret_drafted, uint64_t *ret_accepted)
{
    const local *l = as_local(e);
    model_lookup_stats s = l->lookup ? model_lookup_get_stats(l->lookup) : (model_lookup_stats){0};
    *ret_drafted = s.drafted;
    *ret_accepted = s.accepted;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void local_close(engine *e)
{
    local *l = as_local(e);
    if (!l) return;
    local_unfork(e);
    kv_session_free(l->base.session);
    model_grammar_free(l->grammar);
    model_answer_free(l->answer);
    model_sampler_free(l->sampler);
    model_lookup_free(l->lookup);
    model_alike_free(l->words);
    model_close(l->model);
    for (char **p = l->set; p && *p; p++) free(*p);
    free(l->set);
    free(l->windows);
    free(l->logits);
    free(l->policy);
    free(l->row_file);
    free(l->prefix_file);
    free(l->cache);
    free(l->heads_file);
    free(l->pivot_file);
    free(l->pace_file);
    free(l);
}

static const engine_ops local_ops = {
    .close = local_close,
    .info = local_info,
    .stats = engine_session_stats,
    .scaffold = local_scaffold,
    .encode = local_encode,
    .piece = local_piece,
    .is_control = local_is_control,
    .mark = local_mark,
    .append = local_append,
    .truncate = local_truncate,
    .ids = engine_session_ids,
    .save = local_save,
    .save_prefix = local_save_prefix,
    .restart = local_restart,
    .make_ready = local_make_ready,
    .learn = local_learn,
    .alike = local_alike,
    .prepare = local_prepare,
    .set_tools = local_set_tools,
    .set_sampling = local_set_sampling,
    .answer_begins = local_answer_begins,
    .answer_opened = local_answer_opened,
    .answer_held = local_answer_held,
    .answer_close = local_answer_close,
    .answer_over = local_answer_over,
    .next = local_next,
    .fork = local_fork,
    .fork_fixed = local_fork_fixed,
    .unfork = local_unfork,
    .doubts = local_doubts,
    .weigh = local_weigh,
    .set_lookup = local_set_lookup,
    .lookup = local_lookup,
};

/* Strings of the options are kept: a restart needs them long after the caller's are gone. */
static void keep_options(local *l, const engine_options *o)
{
    l->kv = o->kv;
    l->kv.policy = l->policy = base_xstrdup(o->kv.policy);
    l->kv.row_file = l->row_file = base_xstrdup(o->kv.row_file);
    size_t n = 0;
    while (o->kv.set && o->kv.set[n]) n++;
    if (n) {
        l->set = base_xcalloc(n + 1, sizeof *l->set);
        for (size_t i = 0; i < n; i++) l->set[i] = base_xstrdup(o->kv.set[i]);
        l->kv.set = (const char *const *)l->set;
    }
    if (o->prompt_cache) {
        base_fs_mkdirs(o->prompt_cache, NULL); /* without it the prompt is computed each time */
        l->cache = base_xstrdup(o->prompt_cache);
        l->prefix_file = local_cache_file(o->prompt_cache, l->info->hash, "prefix");
        l->heads_file = local_cache_file(o->prompt_cache, l->info->hash, "heads");
        l->pivot_file = local_cache_file(o->prompt_cache, l->info->hash, "pivot");
        l->pace_file = local_cache_file(o->prompt_cache, l->info->hash, "pace");
        l->kv.prefix_file = l->prefix_file;
        l->kv.heads_file = l->heads_file;
        l->kv.pivot_file = l->pivot_file;
        kv_pace pace;
        if (kv_pace_load(l->pace_file, l->info, &pace)) l->measured = kv_pace_limit(&pace);
    }
}

/* Which layers have a window, and what a row takes in those that have none, or in all where all have. */
static void find_windows(local *l)
{
    const uint32_t n = l->info->n_rows_layers;
    uint32_t n_windows = 0;
    char *letters = base_xcalloc((size_t)n + 1, 1);
    for (uint32_t layer = 0; layer < n; layer++) {
        const uint32_t window = model_window(l->model, layer);
        letters[layer] = window ? 'w' : '.';
        n_windows += window > 0;
        if (window > l->window) l->window = window;
    }
    l->row_bytes = l->info->row_bytes;
    if (n_windows && n_windows < n) {
        l->row_bytes = l->row_bytes / n * (n - n_windows);
        l->windows = letters;
        return;
    }
    l->window = 0;
    free(letters);
}

int engine_local_open(engine **ret, const char *model_path, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err)
{
    local *l = base_xcalloc(1, sizeof *l);
    l->base.ops = &local_ops;
    l->base.can = ENGINE_IDS | ENGINE_BRANCH | ENGINE_DOUBTS | ENGINE_WEIGHS | ENGINE_GRAMMAR | ENGINE_LOOKUP;
    l->cancel = options->cancel;
    if (resumed) *resumed = false;
    if (why_not) *why_not = (base_err){0};
    int rc = model_open(&l->model, model_path, &options->model, err);
    if (!rc) {
        l->info = model_get_info(l->model);
        l->tokenizer = model_get_tokenizer(l->model);
        l->template = model_get_template(l->model);
        keep_options(l, options);
        find_windows(l);
        uint32_t n_ctx = l->kv.n_ctx && l->kv.n_ctx < l->info->n_ctx ? l->kv.n_ctx : l->info->n_ctx;
        kv_limit limit = {l->kv.budget, l->kv.until};
        if (options->budget)
            rc =
                options->budget(options->budget_user, l->info->n_ctx, l->row_bytes, l->measured, &limit, err);
        l->kv.budget = limit.rows;
        l->kv.until = limit.until;
        uint32_t n_rows = l->kv.budget && l->kv.budget < n_ctx ? l->kv.budget : l->kv.n_ctx;
        if (!rc) rc = model_check_room(l->model, l->kv.n_ctx, n_rows, l->row_file != NULL, err);
    }
    kv_observer observer = engine_observer(&l->base);
    if (!rc && options->resume && l->row_file) {
        base_err why = {0};
        bool served = kv_session_resume(&l->base.session, l->model, &l->kv, &observer, &why) == 0;
        if (resumed) *resumed = served;
        if (why_not && !served) *why_not = why;
    }
    if (!rc && !l->base.session) rc = kv_session_new(&l->base.session, l->model, &l->kv, &observer, err);
    if (!rc) {
        l->logits = malloc((size_t)KV_DRAFT_MAX * l->info->n_vocab * sizeof *l->logits);
        if (!l->logits) rc = base_fail(err, BASE_E_NOMEM, "no memory for %u logits", l->info->n_vocab);
    }
    if (rc) {
        local_close(&l->base);
        return rc;
    }
    local_set_sampling(&l->base, &options->sampling);
    local_set_lookup(&l->base, options->lookup);
    *ret = &l->base;
    return 0;
}
