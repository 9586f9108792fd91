/*
 * The scripted engine: answers come from a text file, rows are counted like a real session's, and nothing is computed. Agent,
 * tools, log and screen are tested on it; two runs of one script give the same events.
 *
 * The script, a line a directive, '#' a comment:
 *
 *     model NAME | ctx N | lanes N (1..32) | budget ROWS | repair ROWS | chunk N      settings, before the first answer
 *     learns 1                    in idle time there is no end of learning, until it is cancelled
 *     answer TEXT                 the next answer; \n \t \\ are unescaped
 *     answer <<WORD               ... or the lines up to one that is WORD alone
 *     evict FROM TO REASON LANES  (promote, protect, bar alike) a plan before the answer that follows: promote is made at the
 *                                 first repair, the others at the first append; lanes: how many
 *     wanted TEXT                 the following answer's first token overruled this one (a mask event)
 *     doubt TOKEN INSTEAD         where a text says this token, the model doubts it: it would rather have said the other one; from
 *                                 the first such line (the strongest doubt) to the last
 *     fail TEXT                   the first append before the following answer fails with this sentence
 *
 * A token is up to four ASCII letters, digits or underscores (a blank in front may belong to it), or one byte of anything
 * else; its id is its bytes, so that ids mean the same in every run. What becomes of the rows: engine_fake_rows.c. Engine thread only.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/engine_fake.h"
#include "base/fs.h"
#include "base/mem.h"

/* --- tokens ------------------------------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Two bits of length, seven bits a character. */
static int32_t pack_token(const char *s, size_t n)
{
    int32_t id = (int32_t)(n - 1) << 28;
    for (size_t i = 0; i < n; i++) id |= (s[i] & 0x7f) << (7 * i);
    return id;
}

static void fake_encode(const engine *e, const char *text, size_t n, model_ids *out)
{
    for (size_t i = 0; i < n;) {
        size_t len = 1, word = i + (text[i] == ' ');
        if ((unsigned char)text[i] >= 0x80) {
            model_ids_add(out, FAKE_BYTE + (unsigned char)text[i]);
            i++;
            continue;
        }
        if (word < n && is_word(text[word])) {
            for (len = word - i; len < FAKE_WORD && i + len < n && is_word(text[i + len]);) len++;
        } else if (text[i] == ' ') {
            while (len < FAKE_WORD && i + len < n && text[i + len] == ' ') len++;
        }
        model_ids_add(out, pack_token(text + i, len));
        i += len;
    }
}

static const char *const role_names[] = {"<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"};

static const char *fake_piece(const engine *e, int32_t id, size_t *ret_n)
{
    fake *f = (fake *)(uintptr_t)e;
    char *out = f->piece[f->piece_at++ % 8];
    size_t n = 0;
    if (id >= FAKE_BYTE && id < FAKE_BYTE + 256) {
        out[n++] = (char)(id - FAKE_BYTE);
    } else if (id == FAKE_END) {
        *ret_n = 7;
        return "<|end|>";
    } else if (id >= FAKE_CONTROL && id < FAKE_CONTROL + 4) {
        *ret_n = strlen(role_names[id - FAKE_CONTROL]);
        return role_names[id - FAKE_CONTROL];
    } else if (id >= 0 && id < FAKE_CONTROL) {
        for (n = 0; n <= (size_t)(id >> 28); n++) out[n] = (char)((id >> (7 * n)) & 0x7f);
    } else {
        return NULL;
    }
    out[n] = 0;
    *ret_n = n;
    return out;
}

static bool fake_is_control(const engine *e, int32_t id)
{
    return id >= FAKE_CONTROL && id < FAKE_BYTE;
}

static void fake_start(const engine *e, model_ids *out)
{
}

static void fake_begin(const engine *e, model_role role, model_ids *out)
{
    model_ids_add(out, FAKE_CONTROL + (int32_t)role);
}

static void fake_end(const engine *e, model_role role, model_ids *out)
{
    model_ids_add(out, FAKE_END);
}

/* --- snapshot: the tokens as they stand, for tests of resume ------------------------------------------------------------ */

static const char snapshot_magic[8] = "kvfake1";

static int fake_save(engine *e, base_err *err)
{
    fake *f = as_fake(e);
    if (!f->row_file) return 0;
    base_buf out = {0};
    base_buf_add(&out, snapshot_magic, sizeof snapshot_magic);
    base_buf_add(&out, &f->n, sizeof f->n);
    if (f->n) base_buf_add(&out, f->tokens, f->n * sizeof *f->tokens);
    int rc = base_fs_write(f->row_file, out.data, out.len, 0600, err);
    base_buf_free(&out);
    return rc;
}

static int fake_resume(fake *f, base_err *err)
{
    base_buf in = {0};
    int rc = base_fs_read(f->row_file, 64u << 20, &in, err);
    uint32_t n = 0;
    size_t head = sizeof snapshot_magic + sizeof n;
    if (!rc && (in.len < head || memcmp(in.data, snapshot_magic, sizeof snapshot_magic)))
        rc = base_fail(err, BASE_E_FORMAT, "%s is no snapshot", f->row_file);
    if (!rc) {
        memcpy(&n, in.data + sizeof snapshot_magic, sizeof n);
        if (n > SCRIPT_MAX_TOKENS || in.len != head + n * sizeof *f->tokens)
            rc = base_fail(err, BASE_E_FORMAT, "%s is cut off", f->row_file);
    }
    for (uint32_t i = 0; !rc && i < n; i++) {
        token_state t;
        memcpy(&t, in.data + head + i * sizeof t, sizeof t);
        fake_add_token(f, t.id, KV_ORIGIN_SYSTEM, 0);
        f->tokens[i] = t;
    }
    if (!rc) f->reused = n;
    base_buf_free(&in);
    return rc;
}

static int fake_save_prefix(engine *e, uint32_t n, base_err *err)
{
    return 0;
}

static int fake_restart(engine *e, const char *row_file, base_err *err)
{
    fake *f = as_fake(e);
    f->n = 0;
    f->reused = 0;
    f->epoch++;
    free(f->row_file);
    f->row_file = base_xstrdup(row_file);
    return 0;
}

static void fake_learn(engine *e)
{
    const struct timespec a_moment = {.tv_nsec = 1000000};
    fake *f = as_fake(e);
    while (f->script.learns && f->cancel && !atomic_load(f->cancel)) nanosleep(&a_moment, NULL);
}

/* --- answers ------------------------------------------------------------------------------------------------------------ */

static int fake_set_tools(
    engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err)
{
    return 0;
}

static void fake_set_sampling(engine *e, const model_sampling *s)
{
}

static void fake_answer_begins(engine *e)
{
    fake *f = as_fake(e);
    f->answer.n = f->answer_at = 0;
    f->wanted = -1;
    while (f->cursor < f->script.n_steps && f->script.steps[f->cursor].kind != STEP_ANSWER) {
        const script_step *s = &f->script.steps[f->cursor++];
        model_ids first = {0};
        if (s->kind == STEP_WANTED) fake_encode(e, s->text, strlen(s->text), &first);
        if (first.n) f->wanted = first.ids[0];
        model_ids_free(&first);
    }
    if (f->cursor == f->script.n_steps) return; /* next will say so */
    const script_step *s = &f->script.steps[f->cursor++];
    fake_encode(e, s->text, strlen(s->text), &f->answer);
    model_ids_add(&f->answer, FAKE_END);
}

static int fake_next(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
    int32_t *mask_wanted, base_err *err)
{
    fake *f = as_fake(e);
    if (fake_is_cancelled(f)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    if (f->answer_at >= f->answer.n) return base_fail(err, BASE_E_STATE, "the script has no further answer");
    if (f->n >= f->script.n_ctx)
        return base_fail(err, BASE_E_LIMIT,
            "the context of %u tokens is full; /compact starts a smaller session", f->script.n_ctx);
    int32_t id = f->answer.ids[f->answer_at++];
    if (mask_wanted) *mask_wanted = f->answer_at == 1 ? f->wanted : -1;
    fake_add_token(f, id, origin, turn);
    f->computed++;
    *ret_id = id;
    *ret_end = id == FAKE_END;
    return fake_evict(f, err);
}

/* The answers of a branch come from the same script, one after the other. */
static int fake_fork(engine *e, base_err *err)
{
    fake *f = as_fake(e);
    f->is_branch = true;
    f->branch_n = f->n;
    f->branch_epoch = f->epoch;
    return 0;
}

static void fake_unfork(engine *e)
{
    fake *f = as_fake(e);
    if (!f->is_branch) return;
    f->is_branch = false;
    f->n = f->branch_n;
    f->epoch = f->branch_epoch;
}

static int32_t only_token(const char *text, size_t n)
{
    return n && n <= FAKE_WORD ? pack_token(text, n) : FAKE_END;
}

/* What no line of the script doubts is certain. */
static int fake_doubts(engine *e, const int32_t *ids, uint32_t n, engine_doubt *ret, base_err *err)
{
    const fake *f = as_fake(e);
    (void)err;
    for (uint32_t i = 0; i < n; i++) ret[i] = (engine_doubt){only_token("\n", 1), 1e6f};
    for (size_t s = f->script.n_steps; s-- > 0;) {
        const script_step *step = &f->script.steps[s];
        const char *blank = step->kind == STEP_DOUBT ? strchr(step->text, ' ') : NULL;
        for (uint32_t i = 0; blank && i < n; i++)
            if (ids[i] == only_token(step->text, (size_t)(blank - step->text)))
                ret[i] = (engine_doubt){only_token(blank + 1, strlen(blank + 1)), (float)s};
    }
    return 0;
}

static void fake_close(engine *e)
{
    fake *f = as_fake(e);
    if (!f) return;
    for (size_t i = 0; i < f->n_undo; i++) {
        free(f->undo[i].active);
        free(f->undo[i].flags);
    }
    script_fini(&f->script);
    free(f->undo);
    free(f->tokens);
    free(f->ids);
    free(f->row_file);
    model_ids_free(&f->answer);
    free(f);
}

static engine_ops make_ops(void)
{
    engine_ops ops = fake_row_ops;
    ops.close = fake_close;
    ops.encode = fake_encode;
    ops.piece = fake_piece;
    ops.is_control = fake_is_control;
    ops.start = fake_start;
    ops.begin = fake_begin;
    ops.end = fake_end;
    ops.save = fake_save;
    ops.save_prefix = fake_save_prefix;
    ops.restart = fake_restart;
    ops.learn = fake_learn;
    ops.set_tools = fake_set_tools;
    ops.set_sampling = fake_set_sampling;
    ops.answer_begins = fake_answer_begins;
    ops.next = fake_next;
    ops.fork = fake_fork;
    ops.unfork = fake_unfork;
    ops.doubts = fake_doubts;
    return ops;
}

int engine_fake_open(engine **ret, const char *script, size_t n, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err)
{
    fake *f = base_xcalloc(1, sizeof *f);
    *f = (fake){.ops = make_ops(),
        .script =
            {.model = base_xstrdup("scripted"), .n_ctx = 8192, .n_lanes = 4, .chunk = 512, .repair = 32},
        .automatic = true};
    f->base.ops = &f->ops;
    if (resumed) *resumed = false;
    if (why_not) *why_not = (base_err){0};
    int rc = script_parse(&f->script, script, n, err);
    if (!rc && options) {
        if (options->kv.budget) f->script.budget = options->kv.budget;
        if (options->kv.n_ctx) f->script.n_ctx = options->kv.n_ctx;
        if (options->kv.repair > 0) f->script.repair = (uint32_t)options->kv.repair;
        if (options->budget)
            rc = options->budget(options->budget_user, f->script.n_ctx, 1024, &f->script.budget, err);
        f->cancel = options->cancel;
        f->row_file = base_xstrdup(options->kv.row_file);
        if (!rc && options->resume && f->row_file) {
            bool served = fake_resume(f, why_not) == 0;
            if (resumed) *resumed = served;
        }
    }
    if (rc) {
        fake_close(&f->base);
        return rc;
    }
    *ret = &f->base;
    return 0;
}
