/*
 * The scripted engine: answers come from a text file (format: engine_script.h), and a session of kv/ keeps
 * the rows over a compute that knows ids only. A row's key is its token's id, so a query asks for the rows of
 * its own word: evictions, repairs, plans, snapshots and reasons are those of a real session. Agent, tools,
 * log and screen are tested on it; two runs of one script give the same events.
 *
 * Its tokens are stand-ins (standin.h), but they are this engine's own. Engine thread only.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/engine/engine_script.h"
#include "agent/engine/standin.h"
#include "base/mem.h"
#include "kv/core/compute.h"

enum { HEAD_DIM = 16 };

typedef struct fake {
    engine base;
    engine_ops opening_ops; /* of a script that says so */
    engine_script script;   /* n_ctx, budget, ... are read from here too */
    kv_compute compute;
    kv_options kv;
    kv_session *trunk; /* the session while the engine's is a branch of it; else NULL */
    char *row_file;
    const atomic_bool *cancel;
    model_ids answer; /* the current answer's tokens, the end token last */
    size_t answer_at;
    int32_t wanted;
} fake;

static fake *as_fake(const engine *e)
{
    return (fake *)(uintptr_t)e;
}

/* --- what computes -------------------------------------------------------------------------------------- */

static int32_t id_of_row(const model_rows_view *v, uint32_t lane, uint32_t slot)
{
    int32_t id;
    memcpy(&id, model_rows_key(v, lane, slot), sizeof id);
    return id;
}

/* The id in a query, in two halves that a float holds exactly. */
static void put_query(float *query, int32_t id)
{
    query[0] = (float)((uint32_t)id & 0xffff);
    query[1] = (float)((uint32_t)id >> 16);
}

static int32_t id_of_query(const float *query)
{
    return (int32_t)((uint32_t)query[1] << 16 | (uint32_t)query[0]);
}

static void put_rows(const model_batch *b, uint32_t lane)
{
    const model_lane_list *list = &b->rows->lanes[lane];
    const uint32_t first = list->n_rows - b->n;
    for (uint32_t r = 0, at = 0; r < list->n_runs; r++)
        for (uint32_t i = 0; i < list->runs[r].n; i++, at++) {
            if (at < first) continue;
            const uint32_t slot = list->runs[r].slot + i;
            uint16_t *key = model_rows_key(b->rows, lane, slot);
            memset(key, 0, HEAD_DIM * sizeof *key);
            memset(model_rows_value(b->rows, lane, slot), 0, HEAD_DIM * sizeof *key);
            memcpy(key, &b->ids[at - first], sizeof *b->ids);
        }
}

static int forward(void *user, const model_batch *b, base_err *err)
{
    const fake *f = user;
    const model_capture *c = b->capture;
    if (b->cancel && atomic_load(b->cancel)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    if (b->n_want) return base_fail(err, BASE_E_UNSUPPORTED, "a script has no logits");
    for (uint32_t lane = 0; lane < f->script.n_lanes; lane++) put_rows(b, lane);
    for (uint32_t head = 0; c && head < f->script.n_lanes; head++)
        for (uint32_t q = 0; q < c->n; q++)
            put_query(c->queries + ((size_t)head * c->n + q) * HEAD_DIM, b->ids[c->tokens[q]]);
    return 0;
}

/*
 * A row of the query's own word counts much, every other one little; each lane has words that it hardly sees.
 */
static double weight(int32_t query, int32_t row, uint32_t lane)
{
    const double seen = ((uint32_t)row + lane) % 5 ? 1 : 0.5;
    return query == row ? 50 * seen : seen;
}

static int score(void *user, const model_score *s, base_err *err)
{
    const fake *f = user;
    if (s->cancel && atomic_load(s->cancel)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    for (uint32_t lane = 0; lane < f->script.n_lanes; lane++) {
        const model_lane_list *list = &s->rows->lanes[lane];
        float *mass = s->mass[lane];
        if (!mass) continue;
        memset(mass, 0, list->n_rows * sizeof *mass);
        if (s->heads && !s->heads[lane]) continue;
        double *p = base_xcalloc(list->n_rows + 1, sizeof *p);
        for (uint32_t q = 0; q < s->n_queries; q++) {
            const int32_t id = id_of_query(s->queries + ((size_t)lane * s->n_queries + q) * HEAD_DIM);
            double total = 0;
            for (uint32_t r = 0, at = 0; r < list->n_runs; r++)
                for (uint32_t i = 0; i < list->runs[r].n; i++, at++)
                    total += p[at] = weight(id, id_of_row(s->rows, lane, list->runs[r].slot + i), lane);
            for (uint32_t at = 0; at < list->n_rows; at++) {
                const float share = (float)(p[at] / total);
                if (s->pool == MODEL_POOL_MEAN)
                    mass[at] += share / (float)s->n_queries;
                else if (share > mass[at])
                    mass[at] = share;
            }
        }
        free(p);
    }
    return 0;
}

static kv_compute make_compute(fake *f)
{
    kv_compute c = {.user = f,
        .forward = forward,
        .score = score,
        .shape = {.n_layer = 1, .n_head_kv = f->script.n_lanes, .head_dim = HEAD_DIM},
        .n_head = f->script.n_lanes,
        .n_vocab = STANDIN_N,
        .n_ctx = f->script.n_ctx,
        .kernel_version = 1};
    memset(c.hash, 'f', sizeof c.hash - 1);
    return c;
}

/* --- the sequence --------------------------------------------------------------------------------------- */

static int fake_append(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err)
{
    fake *f = as_fake(e);
    const script_step *failure = script_due(&f->script, STEP_FAIL);
    if (failure) return base_fail(err, BASE_E_DEVICE, "%s", failure->text);
    return kv_session_append(e->session, segment, ids, n, NULL, f->cancel, err);
}

static int fake_truncate(engine *e, uint32_t n, base_err *err)
{
    return kv_session_truncate(e->session, n, err);
}

static int fake_restart(engine *e, const char *row_file, base_err *err)
{
    fake *f = as_fake(e);
    const kv_observer observer = engine_observer(e);
    kv_session *fresh = NULL;
    kv_stats s;
    kv_session_get_stats(e->session, &s);
    free(f->row_file);
    f->kv.row_file = f->row_file = base_xstrdup(row_file);
    f->kv.budget = s.budget;
    f->kv.until = s.until;
    int rc = kv_session_new_over(&fresh, &f->compute, &f->kv, &observer, err);
    if (rc) return rc;
    kv_session_free(e->session);
    e->session = fresh;
    return 0;
}

static int fake_save(engine *e, base_err *err)
{
    return as_fake(e)->row_file ? kv_session_save(e->session, err) : 0;
}

static void fake_learn(engine *e, void (*tell)(void *user, const char *what), void *user)
{
    const struct timespec a_moment = {.tv_nsec = 1000000};
    fake *f = as_fake(e);
    if (tell && f->script.learns) tell(user, "learning, as the script says");
    while (f->script.learns && f->cancel && !atomic_load(f->cancel)) nanosleep(&a_moment, NULL);
}

static void fake_info(const engine *e, engine_info *ret)
{
    static const model_tool_style styles[] = {MODEL_TOOLS_TAG_TOOLS, MODEL_TOOLS_HARMONY, MODEL_TOOLS_MISTRAL,
        MODEL_TOOLS_TAG_TOOLS, MODEL_TOOLS_MISTRAL_IDS, MODEL_TOOLS_GEMMA, MODEL_TOOLS_GRANITE,
        MODEL_TOOLS_NEMO}; /* engine_script.h */
    const fake *f = as_fake(e);
    *ret = (engine_info){.model = f->script.model,
        .model_hash = "fake",
        .quantisation = "none",
        .policy = kv_session_policy(e->session),
        .backend = "script",
        .repair = f->kv.repair,
        .set = f->kv.set,
        .tools = styles[f->script.channels],
        .n_ctx = f->script.n_ctx,
        .model_n_ctx = f->script.n_ctx,
        .n_layer = 1,
        .n_lanes = f->script.n_lanes,
        .n_all_lanes = f->script.n_lanes,
        .row_bytes = f->script.n_lanes * 2 * HEAD_DIM * (uint32_t)sizeof(uint16_t),
        .n_vocab = STANDIN_N};
}

static int32_t fake_mark(const engine *e, const char *name)
{
    size_t n;
    const int32_t id = standin_mark(name, strlen(name), &n);
    return id == STANDIN_END || name[n] ? -1 : id;
}

/* --- answers -------------------------------------------------------------------------------------------- */

static int fake_set_tools(
    engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err)
{
    return 0;
}

static void fake_set_sampling(engine *e, const model_sampling *s)
{
}

/* Its text, and, of a script with channels, the marks in it. */
static void encode_answer(fake *f, const char *text)
{
    static const char *const begins[] = {"", "<|", "[", "<", "[", "<", "<", "["};
    const uint32_t form = f->script.channels;
    for (size_t n; *text; text += n) {
        const char *mark = form ? strstr(text, begins[form]) : NULL;
        n = mark ? (size_t)(mark - text) : strlen(text);
        const int32_t id = n ? STANDIN_END : standin_mark(text, strlen(text), &n);
        if (id != STANDIN_END) {
            model_ids_add(&f->answer, id);
            continue;
        }
        const bool is_text = mark != text || form >= 2; /* <| that begins no mark is left out */
        if (mark == text) n = strlen(begins[form]);
        if (is_text) standin_encode(&f->base, text, n, &f->answer, NULL);
    }
}

static void fake_answer_begins(engine *e)
{
    fake *f = as_fake(e);
    const script_step *wanted = script_due(&f->script, STEP_WANTED);
    model_ids first = {0};
    if (wanted) standin_encode(e, wanted->text, strlen(wanted->text), &first, NULL);
    f->wanted = first.n ? first.ids[0] : -1;
    model_ids_free(&first);
    f->answer.n = f->answer_at = 0;
    const char *text = script_answer(&f->script);
    if (!text) return; /* next will say so */
    encode_answer(f, text);
    model_ids_add(&f->answer, STANDIN_END);
}

static int fake_next(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
    int32_t *mask_wanted, base_err *err)
{
    fake *f = as_fake(e);
    if (f->answer_at >= f->answer.n) return base_fail(err, BASE_E_STATE, "the script has no further answer");
    const int32_t id = f->answer.ids[f->answer_at];
    int rc = kv_session_append(
        e->session, &(kv_segment){.origin = origin, .turn = turn}, &id, 1, NULL, f->cancel, err);
    if (rc) return rc;
    if (mask_wanted) *mask_wanted = f->answer_at ? -1 : f->wanted;
    f->answer_at++;
    *ret_id = id;
    *ret_end = id == STANDIN_END;
    return 0;
}

/* The answers of a branch come from the same script, one after the other. */
static int fake_fork(engine *e, base_err *err)
{
    kv_session *branch = NULL;
    int rc = kv_session_fork(e->session, &branch, NULL, err);
    if (rc) return rc;
    kv_session_set_automatic(branch, false);
    as_fake(e)->trunk = e->session;
    e->session = branch;
    return 0;
}

static void fake_unfork(engine *e)
{
    fake *f = as_fake(e);
    if (!f->trunk) return;
    kv_session_free(e->session);
    e->session = f->trunk;
    f->trunk = NULL;
}

static int fake_fork_fixed(engine *e, const char *name, const int32_t *ids, uint32_t n, base_err *err)
{
    const kv_segment fixed = {.origin = KV_ORIGIN_SCAFFOLD};
    int rc = fake_fork(e, err);
    if (rc) return rc;
    rc = fake_truncate(e, 0, err);
    if (!rc) rc = fake_append(e, &fixed, ids, n, err);
    if (rc) fake_unfork(e);
    return rc;
}

/* What no line of the script doubts is certain. */
static int fake_doubts(
    engine *e, const int32_t *ids, uint32_t n_read, uint32_t n, engine_doubt *ret, base_err *err)
{
    const fake *f = as_fake(e);
    ids += n_read;
    n -= n_read;
    for (uint32_t i = 0; i < n; i++) ret[i] = (engine_doubt){standin_only("\n", 1), 1e6f};
    for (size_t s = f->script.n_steps; s-- > 0;) {
        const script_step *step = &f->script.steps[s];
        const char *blank = step->kind == STEP_DOUBT ? strchr(step->text, ' ') : NULL;
        for (uint32_t i = 0; blank && i < n; i++)
            if (ids[i] == standin_only(step->text, (size_t)(blank - step->text)))
                ret[i] = (engine_doubt){standin_only(blank + 1, strlen(blank + 1)), (float)s};
    }
    return 0;
}

static void add_pieces(engine *e, const int32_t *ids, uint32_t n, base_buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = standin_piece(e, ids[i], &len);
        if (piece) base_buf_add(out, piece, len);
    }
}

/* The sequence's text, and what it would go on with, is asked for the script's words. */
static int fake_weigh(engine *e, const int32_t *ids, uint32_t n, double *ret, base_err *err)
{
    const fake *f = as_fake(e);
    base_buf text = {0};
    uint32_t n_all;
    const int32_t *all = engine_session_ids(e, &n_all);
    add_pieces(e, all, n_all, &text);
    const size_t n_before = text.len;
    add_pieces(e, ids, n, &text);
    const char *added = text.len ? text.data + n_before : "";
    added += strspn(added, " ");
    *ret = -(double)(n + 64); /* further than whatever else speaks for it */
    for (size_t s = 0; s < f->script.n_steps; s++)
        if (f->script.steps[s].kind == STEP_LIKELY && text.len &&
            (strstr(text.data, f->script.steps[s].text) ||
                (*added && !strncmp(f->script.steps[s].text, added, strlen(added))))) /* it begins so */
            *ret = -(double)n / (16 * (1 + s)); /* a long one too before a short one that is not */
    base_buf_free(&text);
    return 0;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void fake_close(engine *e)
{
    fake *f = as_fake(e);
    if (!f) return;
    fake_unfork(e);
    kv_session_free(e->session);
    script_fini(&f->script);
    free(f->row_file);
    model_ids_free(&f->answer);
    free(f);
}

static const engine_ops fake_ops = {
    .close = fake_close,
    .info = fake_info,
    .stats = engine_session_stats,
    .encode = standin_encode,
    .scaffold = standin_scaffold,
    .piece = standin_piece,
    .is_control = standin_is_control,
    .mark = fake_mark,
    .ids = engine_session_ids,
    .append = fake_append,
    .truncate = fake_truncate,
    .restart = fake_restart,
    .save = fake_save,
    .set_sampling = fake_set_sampling,
    .answer_begins = fake_answer_begins,
    .next = fake_next,
    .learn = fake_learn,
    .set_tools = fake_set_tools,
    .fork = fake_fork,
    .fork_fixed = fake_fork_fixed,
    .unfork = fake_unfork,
    .doubts = fake_doubts,
    .weigh = fake_weigh,
};

/* A script writes its answer's other half: there is no grammar that would have to know the first one. */
static void fake_answer_opened(engine *e, const int32_t *ids, uint32_t n)
{
}

int engine_fake_open(engine **ret, const char *script, size_t n, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err)
{
    static const engine_options plain = {.kv = {.repair = -1}};
    const engine_options *o = options ? options : &plain;
    fake *f = base_xcalloc(1, sizeof *f);
    *f =
        (fake){.base = {.ops = &fake_ops, .can = ENGINE_IDS | ENGINE_BRANCH | ENGINE_DOUBTS | ENGINE_GRAMMAR},
            .script = {.model = base_xstrdup("scripted"), .n_ctx = 8192, .n_lanes = 4, .repair = 32},
            .cancel = o->cancel};
    if (resumed) *resumed = false;
    if (why_not) *why_not = (base_err){0};
    int rc = script_parse(&f->script, script, n, err);
    f->opening_ops = fake_ops;
    f->opening_ops.answer_opened = fake_answer_opened;
    if (f->script.opens) f->base.ops = &f->opening_ops;
    for (size_t s = 0; s < f->script.n_steps; s++)
        if (f->script.steps[s].kind == STEP_LIKELY) f->base.can |= ENGINE_WEIGHS;
    if (o->kv.budget) f->script.budget = o->kv.budget;
    if (o->kv.n_ctx) f->script.n_ctx = o->kv.n_ctx;
    if (o->kv.repair > 0) f->script.repair = (uint32_t)o->kv.repair;
    f->compute = make_compute(f);
    kv_limit limit = {f->script.budget, o->kv.until};
    if (!rc && o->budget)
        rc = o->budget(o->budget_user, f->script.n_ctx,
            f->script.n_lanes * 2 * HEAD_DIM * (uint32_t)sizeof(uint16_t), (kv_limit){0}, &limit, err);
    f->row_file = base_xstrdup(o->kv.row_file);
    f->kv = (kv_options){.budget = limit.rows,
        .until = limit.until,
        .policy = o->kv.policy,
        .set = o->kv.set,
        .repair = (int)f->script.repair,
        .row_file = f->row_file};
    const kv_observer observer = engine_observer(&f->base);
    if (!rc && o->resume && f->row_file) {
        base_err why = {0};
        bool served = kv_session_resume_over(&f->base.session, &f->compute, &f->kv, &observer, &why) == 0;
        if (resumed) *resumed = served;
        if (why_not && !served) *why_not = why;
    }
    if (!rc && !f->base.session)
        rc = kv_session_new_over(&f->base.session, &f->compute, &f->kv, &observer, err);
    if (rc) {
        fake_close(&f->base);
        return rc;
    }
    *ret = &f->base;
    return 0;
}
