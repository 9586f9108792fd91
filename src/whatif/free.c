/*
 * (contract: free.h) Steps of the record name tokens by where these stood in it; here they stand elsewhere once a
 * text was another one. Pieces say where each recorded stretch is now.
 */
#include "whatif/free.h"

#include <stdlib.h>
#include <string.h>

#include "agent/act/guard.h"
#include "base/mem.h"

enum {
    LEAST_ROOM = 192,    /* as a turn of the agent leaves */
    MAX_TOKENS = 1024,   /* of an answer, where the log does not say */
    MAX_CALLS = 24,      /* of a turn */
    THOUGHT_TOKENS = 64, /* as the agent waits for the end of a line that it began */
};

typedef struct piece {
    uint32_t from, n; /* in the record */
    uint32_t at;      /* here */
} piece;

struct whatif_free {
    whatif_free_options o;
    const whatif_engine *engine;
    whatif_calls calls;
    piece *pieces;
    size_t n_pieces, cap_pieces;
    uint32_t world, turn;
    bool is_behind; /* the tree is not as the record's turn left it */
    base_buf text;  /* of the answer that is being written */
    kv_origin origin;
    uint32_t n_tokens;
    bool grammar_off;
    base_buf written;
    agent_followed_row rows[MAX_CALLS];
    uint64_t made[MAX_CALLS];
    uint32_t n_made;
    char *stopped;
};

whatif_free *whatif_free_new(const whatif_free_options *o)
{
    whatif_free *f = base_xcalloc(1, sizeof *f);
    f->o = *o;
    f->engine = o->arm->engine;
    f->origin = KV_ORIGIN_ANSWER;
    whatif_calls_find(&f->calls, o->schedule, f->engine);
    return f;
}

static void forget_calls(whatif_free *f)
{
    for (uint32_t i = 0; i < f->n_made; i++) {
        free((char *)(uintptr_t)f->rows[i].call);
        free((char *)(uintptr_t)f->rows[i].source);
    }
    f->n_made = 0;
}

void whatif_free_close(whatif_free *f)
{
    if (!f) return;
    forget_calls(f);
    whatif_calls_free(&f->calls);
    base_buf_free(&f->text);
    base_buf_free(&f->written);
    free(f->pieces);
    free(f->stopped);
    free(f);
}

const char *whatif_free_stopped(const whatif_free *f)
{
    return f->stopped;
}

const base_buf *whatif_free_written(const whatif_free *f)
{
    return &f->written;
}

agent_followed_list whatif_free_calls(const whatif_free *f)
{
    return (agent_followed_list){f->rows, f->n_made};
}

static void stop(whatif_free *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void stop(whatif_free *f, const char *format, ...)
{
    base_buf why = {0};
    va_list args;
    va_start(args, format);
    base_buf_vprintf(&why, format, args);
    va_end(args);
    free(f->stopped);
    f->stopped = base_buf_take(&why);
}

static uint32_t n_now(const whatif_free *f)
{
    uint32_t n;
    kv_session_ids(f->o.arm->session, &n);
    return n;
}

/* --- where recorded tokens stand now ---------------------------------------------------------------------- */

static void add_piece(whatif_free *f, uint32_t from, uint32_t n)
{
    const uint32_t at = n_now(f);
    piece *last = f->n_pieces ? &f->pieces[f->n_pieces - 1] : NULL;
    if (last && last->from + last->n == from && last->at + last->n == at) {
        last->n += n;
        return;
    }
    base_grow(&f->pieces, &f->cap_pieces, f->n_pieces + 1, sizeof *f->pieces);
    f->pieces[f->n_pieces++] = (piece){from, n, at};
}

/* A place between tokens of the record; the newest text that stood there counts. */
static bool find_place(const whatif_free *f, uint32_t from, uint32_t *ret)
{
    for (size_t i = f->n_pieces; i-- > 0;) {
        const piece *p = &f->pieces[i];
        if (from < p->from || from > p->from + p->n) continue;
        *ret = p->at + (from - p->from);
        return true;
    }
    /* Up to where this side began to be followed both are one text. */
    *ret = from;
    return !f->n_pieces || from < f->pieces[0].from;
}

static bool find_range(const whatif_free *f, uint32_t from, uint32_t to, uint32_t *ret_from, uint32_t *ret_to)
{
    uint32_t last;
    if (!f->n_pieces || to <= f->pieces[0].from) {
        *ret_from = from;
        *ret_to = to;
        return from < to;
    }
    if (from >= to || !find_place(f, to - 1, &last)) return false;
    for (size_t i = f->n_pieces; i-- > 0;) { /* `from` may end one piece and begin another: the last one's */
        const piece *p = &f->pieces[i];
        if (from < p->from || from >= p->from + p->n) continue;
        *ret_from = p->at + (from - p->from);
        *ret_to = last + 1;
        return *ret_to - *ret_from == to - from;
    }
    return false;
}

static void forget_behind(whatif_free *f, uint32_t at)
{
    while (f->n_pieces && f->pieces[f->n_pieces - 1].at >= at) f->n_pieces--;
    piece *last = f->n_pieces ? &f->pieces[f->n_pieces - 1] : NULL;
    if (last && last->at + last->n > at) last->n = at - last->at;
}

/* --- its own events --------------------------------------------------------------------------------------- */

static void emit(whatif_free *f, agent_event *e)
{
    f->o.emit(f->o.user, e);
}

static void tell_again(whatif_free *f, const whatif_step *t)
{
    agent_event e;
    agent_event_doc *doc = NULL;
    if (!t->json || agent_event_read(t->json, strlen(t->json), &e, &doc, NULL)) return;
    if (e.type == AGENT_EVENT_append) {
        e.append.turn = f->turn;
        e.append.from = n_now(f);
    }
    if (e.type == AGENT_EVENT_rewind) e.rewind.n = n_now(f);
    e.seq = 0;
    emit(f, &e);
    agent_event_doc_free(doc);
}

static void tell_text(whatif_free *f, const whatif_step *t, const char *text)
{
    agent_id_row *rows = base_xcalloc(t->text.n + 1, sizeof *rows);
    for (uint32_t i = 0; i < t->text.n; i++) rows[i].id = t->text.ids[i];
    emit(f, &(agent_event){.type = AGENT_EVENT_append,
                .append = {.turn = f->turn,
                    .from = n_now(f),
                    .n = t->text.n,
                    .origin = kv_origin_word(t->text.origin),
                    .label = t->label,
                    .text = text,
                    .ids = {rows, t->text.n}}});
    free(rows);
}

static void tell_token(whatif_free *f, int32_t id)
{
    base_buf text = {0};
    whatif_put_piece(f->engine, id, &text);
    emit(f, &(agent_event){.type = AGENT_EVENT_token,
                .token = {.id = id,
                    .index = n_now(f),
                    .text = text.data ? text.data : "",
                    .origin = f->origin == KV_ORIGIN_CALL ? kv_origin_word(f->origin) : NULL}});
    base_buf_free(&text);
}

/* --- answers ---------------------------------------------------------------------------------------------- */

static void begin_answer(whatif_free *f)
{
    base_buf_clear(&f->text);
    f->origin = KV_ORIGIN_ANSWER;
    f->n_tokens = 0;
    f->grammar_off = false;
    if (f->engine->grammar) model_grammar_reset(f->engine->grammar);
}

static int32_t best_of(const float *x, uint32_t n, const uint64_t *allowed)
{
    int32_t best = -1;
    for (uint32_t i = 0; i < n; i++)
        if ((!allowed || (allowed[i / 64] >> i % 64 & 1)) && (best < 0 || x[i] > x[best])) best = (int32_t)i;
    return best < 0 ? 0 : best;
}

/* The likeliest token, of those that the grammar of calls allows. */
static int32_t choose(whatif_free *f, const float *logits)
{
    model_grammar *g = f->grammar_off ? NULL : f->engine->grammar;
    const uint64_t *few = g ? model_grammar_few(g, NULL, 0) : NULL;
    const int32_t id = best_of(logits, f->engine->n_vocab, few);
    if (few || !g || model_grammar_accepts(g, id)) return id;
    if (f->engine->is_end(f->engine->user, id) && !model_grammar_is_active(g)) return id;
    const uint64_t *allowed = model_grammar_mask(g);
    f->grammar_off = !allowed;
    return allowed ? best_of(logits, f->engine->n_vocab, allowed) : id;
}

/* A token of the answer, recorded or its own. */
static int write_token(whatif_free *f, int32_t id, base_err *err)
{
    const bool is_end = f->engine->is_end(f->engine->user, id);
    model_grammar *g = f->grammar_off ? NULL : f->engine->grammar;
    if (g && !is_end) model_grammar_advance(g, id);
    tell_token(f, id);
    const int rc = whatif_arm_write(f->o.arm, f->origin, id, is_end, err);
    if (rc) return rc;
    whatif_put_piece(f->engine, id, &f->text);
    whatif_put_piece(f->engine, id, &f->written);
    f->n_tokens++;
    return 0;
}

int whatif_free_agrees(whatif_free *f, const whatif_step *step, uint32_t at, const float *original,
    const float **changed, bool *ret, base_err *err)
{
    const uint32_t n = f->engine->n_vocab;
    const int rc = whatif_arm_expect(f->o.arm, changed, err);
    f->origin = step->text.origin;
    if (!rc)
        *ret = choose(f, *changed) == step->text.ids[at] ||
               best_of(*changed, n, NULL) == best_of(original, n, NULL);
    return rc;
}

int whatif_free_follow(whatif_free *f, const whatif_step *step, uint32_t at, base_err *err)
{
    f->world = step->world;
    f->origin = step->text.origin;
    add_piece(f, step->text.from + at, 1);
    return write_token(f, step->text.ids[at], err);
}

/* --- steps of the record ------------------------------------------------------------------------------------ */

int whatif_free_turn(whatif_free *f, const whatif_step *turn, base_err *err)
{
    f->turn = turn->turn;
    forget_calls(f);
    base_buf_clear(&f->written);
    begin_answer(f);
    if (f->is_behind) {
        stop(f,
            "turn %u was asked over files that the record's turn before had changed and this side had not: "
            "what it would have been shown is not known",
            f->turn);
        return 0;
    }
    tell_again(f, turn);
    return whatif_arm_do(f->o.arm, turn, err);
}

void whatif_free_end(whatif_free *f, const whatif_step *end)
{
    f->is_behind = f->world != end->world;
}

/* A text of the record behind what this side has. */
static int append_step(whatif_free *f, const whatif_step *t, base_err *err)
{
    const bool is_opening = whatif_step_is_written(t);
    whatif_step copy = *t;
    copy.turn = copy.text.turn = f->turn;
    if (!is_opening && f->text.len) begin_answer(f);
    if (t->json) {
        add_piece(f, t->text.from, t->text.n);
        tell_again(f, t);
    }
    const int rc = whatif_arm_do(f->o.arm, &copy, err);
    f->o.arm->step = NULL;
    if (rc) return rc;
    whatif_put_step(f->engine, t, &f->written);
    for (uint32_t i = 0; is_opening && i < t->text.n; i++) {
        whatif_put_piece(f->engine, t->text.ids[i], &f->text);
        if (f->engine->grammar) model_grammar_advance(f->engine->grammar, t->text.ids[i]);
    }
    return 0;
}

static int do_elsewhere(whatif_free *f, const whatif_step *t, base_err *err)
{
    whatif_step copy = *t;
    const bool has_range = t->kind == WHATIF_REPAIR || t->kind == WHATIF_ORDER;
    bool is_there = true;
    copy.turn = f->turn;
    if (has_range) is_there = find_range(f, t->from, t->to, &copy.from, &copy.to);
    if (t->kind == WHATIF_REWIND) is_there = find_place(f, t->from, &copy.from);
    if (!is_there) {
        base_buf *notes = &f->o.arm->sums.notes;
        base_buf_printf(notes,
            "%sthe record's tokens %u to %u are others here: what was done to them is left out",
            notes->len ? "; " : "", t->from, has_range ? t->to : t->from);
        return 0;
    }
    const int rc = whatif_arm_do(f->o.arm, &copy, err);
    f->o.arm->step = NULL;
    if (!rc && t->kind == WHATIF_REWIND) {
        forget_behind(f, copy.from);
        tell_again(f, t);
    }
    return rc;
}

int whatif_free_do(whatif_free *f, const whatif_step *t, base_err *err)
{
    base_err why = {0};
    const int rc = t->kind == WHATIF_TEXT ? append_step(f, t, &why) : do_elsewhere(f, t, &why);
    if (!f->is_behind) f->world = t->world;
    if (rc == BASE_E_LIMIT) {
        stop(f, "in turn %u: %s", f->turn, why.msg);
        return 0;
    }
    if (rc && err) *err = why;
    return rc;
}

/* --- on its own ------------------------------------------------------------------------------------------- */

/* What the template writes between two messages, as a step without a place in the record. */
static int write_scaffold(whatif_free *f, model_role end, int begin, const char *label, base_err *err)
{
    model_ids ids = {0};
    uint32_t n, from = 0;
    const int32_t *all = kv_session_ids(f->o.arm->session, &n);
    f->engine->scaffold(f->engine->user, end, begin, &ids);
    /* The model ends its own answer: only what the template writes behind that is missing. */
    if (end == MODEL_ROLE_ASSISTANT && ids.n && n && all[n - 1] == ids.ids[0]) from = 1;
    whatif_step t = {.kind = WHATIF_TEXT,
        .world = f->world,
        .label = (char *)(uintptr_t)label,
        .text = {.origin = KV_ORIGIN_SCAFFOLD, .n = (uint32_t)ids.n - from, .ids = ids.ids + from}};
    if (t.text.n) tell_text(f, &t, "");
    const int rc = t.text.n ? whatif_free_do(f, &t, err) : 0;
    model_ids_free(&ids);
    return rc;
}

static int write_result(whatif_free *f, const char *label, const base_buf *text, base_err *err)
{
    model_ids ids = {0};
    const uint32_t from = n_now(f);
    f->engine->encode(f->engine->user, text->data ? text->data : "", text->len, &ids);
    whatif_step t = {.kind = WHATIF_TEXT,
        .world = f->world,
        .label = (char *)(uintptr_t)label,
        .text = {.origin = KV_ORIGIN_TOOL, .n = (uint32_t)ids.n, .ids = ids.ids}};
    tell_text(f, &t, text->data ? text->data : "");
    int rc = whatif_free_do(f, &t, err);
    const whatif_step asks = {
        .kind = WHATIF_REPAIR, .turn = f->turn, .from = n_now(f) - t.text.n, .to = n_now(f)};
    if (!rc && !f->stopped && n_now(f) > from) rc = whatif_arm_do(f->o.arm, &asks, err);
    f->o.arm->step = NULL;
    model_ids_free(&ids);
    return rc;
}

/*
 * Writes until the answer ends or a call is complete. due: what the harness wrote for the record's model once it had
 * ended a line; NULL: nothing.
 */
static int write_answer(whatif_free *f, const whatif_step *due, base_err *err)
{
    const uint32_t most = f->o.schedule->max_tokens ? f->o.schedule->max_tokens : MAX_TOKENS;
    const size_t thought_from = f->text.len;
    uint32_t n_thought = 0;
    int rc = 0;
    while (!rc && !f->stopped && f->n_tokens < most) {
        const float *logits;
        if (kv_session_room(f->o.arm->session) < LEAST_ROOM) {
            stop(f, "in turn %u its context is full", f->turn);
            break;
        }
        rc = whatif_arm_expect(f->o.arm, &logits, err);
        const int32_t id = rc ? 0 : choose(f, logits);
        if (!rc) rc = write_token(f, id, err);
        if (rc || f->engine->is_end(f->engine->user, id)) break;
        const bool line_ends = f->text.len > thought_from &&
                               memchr(f->text.data + thought_from, '\n', f->text.len - thought_from);
        if (due && (line_ends || ++n_thought >= THOUGHT_TOKENS)) {
            f->origin = due->text.origin;
            rc = whatif_free_do(f, due, err);
            due = NULL;
            continue;
        }
        agent_call call = {0};
        const agent_call_found found = due ? AGENT_CALL_NONE : whatif_call_read(&f->text, false, &call);
        if (found == AGENT_CALL_PARTIAL) f->origin = KV_ORIGIN_CALL;
        if (found == AGENT_CALL_FOUND) agent_call_free(&call);
        if (found == AGENT_CALL_FOUND || agent__repeats(f->text.data ? f->text.data : "", f->text.len)) break;
    }
    return rc;
}

static void note_call(whatif_free *f, const agent_call *call, uint64_t key, char *source)
{
    base_buf text = {0};
    whatif_call_put(call, &text);
    f->made[f->n_made] = key;
    f->rows[f->n_made++] = (agent_followed_row){base_buf_take(&text), source};
}

/* What came of an equal call while the tree was as it is for this side; a call of this turn first. */
static const whatif_call *find_recorded(const whatif_free *f, uint64_t key)
{
    const whatif_call *found = NULL;
    for (size_t i = 0; i < f->calls.n; i++) {
        const whatif_call *c = &f->calls.items[i];
        if (c->key == key && c->world == f->world && c->next > c->behind && (!found || c->turn == f->turn))
            found = c;
    }
    return found;
}

/* Its result, and what the harness wrote behind it, up to the opening of the next answer; *ret_open: there is one. */
static int take_recorded(whatif_free *f, const whatif_call *c, bool *ret_open, base_err *err)
{
    const whatif_schedule *s = f->o.schedule;
    int rc = 0;
    size_t i = c->behind;
    for (; i < c->next && !rc && !f->stopped; i++) rc = whatif_free_do(f, &s->steps[i], err);
    *ret_open = i < s->n_steps && whatif_step_is_written(&s->steps[i]);
    for (; i < s->n_steps && !rc && !f->stopped && s->steps[i].kind == WHATIF_TEXT &&
           whatif_step_is_written(&s->steps[i]);
         i++)
        rc = whatif_free_do(f, &s->steps[i], err);
    return rc;
}

/* A file of the tree, where that still holds what it held. */
static int read_file(whatif_free *f, const agent_call *call, base_buf *text, base_err *why)
{
    const base_json *arguments = base_json_root(call->arguments);
    const char *path = base_json_str(arguments, "path", NULL);
    const whatif_version *version = NULL;
    if (strcmp(call->name, "read") != 0 || !path)
        return base_fail(
            why, BASE_E_NOT_FOUND, "the record has no equal call, and no tool runs for a what-if");
    for (size_t i = 0; i < f->o.schedule->n_versions; i++) {
        const whatif_version *v = &f->o.schedule->versions[i];
        if (v->world == f->world && !strcmp(v->path, path)) version = v;
    }
    if (!version || !f->o.read)
        return base_fail(why, BASE_E_NOT_FOUND,
            "the record has no equal call, and does not say what %.200s held then", path);
    return f->o.read(f->o.read_user, arguments, version->version, text, why);
}

static int take_read(whatif_free *f, const agent_call *call, const base_buf *text, base_err *err)
{
    base_buf label = {0};
    base_buf_printf(&label, "%s %s", call->name, base_json_str(base_json_root(call->arguments), "path", ""));
    int rc = write_scaffold(f, MODEL_ROLE_ASSISTANT, MODEL_ROLE_TOOL, "-assistant+tool", err);
    if (!rc && !f->stopped) rc = write_result(f, label.data, text, err);
    if (!rc && !f->stopped)
        rc = write_scaffold(f, MODEL_ROLE_TOOL, MODEL_ROLE_ASSISTANT, "-tool+assistant", err);
    base_buf_free(&label);
    return rc;
}

/* A call of its own; *ret_open: an answer follows. */
static int act(whatif_free *f, const agent_call *call, bool *ret_open, base_err *err)
{
    const uint64_t key = whatif_call_key(call);
    base_buf shown = {0}, text = {0}, source = {0};
    base_err why = {0};
    int rc = 0;
    bool is_again = false;
    for (uint32_t i = 0; i < f->n_made; i++) is_again = is_again || f->made[i] == key;
    whatif_call_put(call, &shown);
    const whatif_call *recorded = find_recorded(f, key);
    *ret_open = false;
    if (is_again || f->n_made == MAX_CALLS) {
        stop(f, "in turn %u it makes the call %.200s %s", f->turn, shown.data,
            is_again ? "a second time: what the program would have said to that is not in the record"
                     : "behind as many as a turn may have");
    } else if (recorded) {
        base_buf_printf(&source, "the record, turn %u", recorded->turn);
        note_call(f, call, key, base_buf_take(&source));
        rc = take_recorded(f, recorded, ret_open, err);
    } else if (!read_file(f, call, &text, &why)) {
        note_call(f, call, key, base_xstrdup("the file, which is as it was"));
        rc = take_read(f, call, &text, err);
        *ret_open = true;
    } else {
        note_call(f, call, key, base_xstrdup("missing"));
        stop(f, "in turn %u it calls %.200s: %s", f->turn, shown.data, why.msg);
    }
    base_buf_free(&shown);
    base_buf_free(&text);
    base_buf_free(&source);
    return rc;
}

int whatif_free_go_on(whatif_free *f, const whatif_step *step, base_err *err)
{
    const whatif_step *end = f->o.schedule->steps + f->o.schedule->n_steps, *behind = step + 1;
    const bool is_thought = behind < end && behind->kind == WHATIF_TEXT && whatif_step_is_written(behind);
    const whatif_step *due = is_thought ? behind : NULL;
    bool goes_on = true;
    int rc = 0;
    f->origin = step->text.origin;
    while (!rc && goes_on && !f->stopped) {
        agent_call call = {0};
        rc = write_answer(f, due, err);
        due = NULL;
        goes_on = false;
        if (rc || f->stopped) break;
        if (whatif_call_read(&f->text, true, &call) == AGENT_CALL_FOUND) {
            rc = act(f, &call, &goes_on, err);
            agent_call_free(&call);
        } else {
            emit(f, &(agent_event){.type = AGENT_EVENT_answer,
                        .answer = {.turn = f->turn, .text = f->text.data ? f->text.data : ""}});
            rc = write_scaffold(f, MODEL_ROLE_ASSISTANT, WHATIF_NO_MESSAGE, "-assistant", err);
        }
    }
    return rc;
}
