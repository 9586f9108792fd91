/*
 * One answer (contract: turn.h): decoded token by token, with what the harness writes into it, or appended whole where a
 * candidate is taken.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/act/act.h"
#include "agent/act/guard.h"
#include "agent/call/prompt.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "model/text/stop.h"

void agent__reply_free(agent_reply *r)
{
    agent__reader_free(&r->read);
    for (uint32_t i = 0; i < r->n_calls; i++) agent_call_free(&r->calls[i]);
}

static char *piece_text(const agent *a, int32_t id)
{
    size_t n = 0;
    const char *piece = a->engine->ops->piece(a->engine, id, &n);
    return base_xstrndup(piece ? piece : "", piece ? n : 0);
}

static void emit_mask(agent *a, uint32_t index, int32_t wanted, int32_t took)
{
    char *want = piece_text(a, wanted), *got = piece_text(a, took);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_mask,
                       .mask = {.turn = a->turn, .index = index, .wanted = want, .took = got}});
    free(want);
    free(got);
}

/* A thought's token: its event carries what is whole UTF-8 by now. */
static void tell_thought(agent *a, agent_reply *r, int32_t id, uint32_t index)
{
    const char *from = r->read.thought.data + r->told_thought;
    const size_t n = base_utf8_whole(from, r->read.thought.len - r->told_thought);
    char *text = base_xstrndup(from, n);
    r->told_thought += n;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_token,
                       .token = {.id = id, .index = index, .text = text, .channel = "thought"}});
    free(text);
}

/*
 * One token into the text; its event carries what is whole UTF-8 by now and cannot begin a stop string. True:
 * one is complete; the text ends in front of it.
 */
static bool take_token(agent *a, agent_reply *r, int32_t id, bool end, uint32_t index, size_t *told)
{
    const size_t before = r->read.text.len, thought_before = r->read.thought.len;
    agent__reader_take(a, &r->read, id, index);
    if (r->read.thought.len > thought_before) {
        tell_thought(a, r, id, index);
        return false;
    }
    size_t stop = model_stop_find(
        a->settings.stop, r->read.text.data ? r->read.text.data : "", r->read.text.len, before);
    bool stopped = stop < r->read.text.len;
    if (stopped) r->read.text.data[r->read.text.len = stop] = '\0';
    size_t whole =
        *told +
        (r->read.text.data ? base_utf8_whole(r->read.text.data + *told, r->read.text.len - *told) : 0);
    if (!end && !stopped && r->read.text.len) { /* behind an end token nothing comes */
        size_t safe = model_stop_safe(a->settings.stop, r->read.text.data, r->read.text.len);
        if (safe < whole) whole = safe > *told ? safe : *told;
    }
    char *text = base_xstrndup(r->read.text.data ? r->read.text.data + *told : "", whole - *told);
    *told = whole;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_token,
                       .token = {.id = id,
                           .index = index,
                           .text = text,
                           .origin = r->origin == KV_ORIGIN_CALL ? kv_origin_word(r->origin) : NULL}});
    free(text);
    return stopped;
}

int agent__reply_write(agent *a, agent_reply *r, const base_buf *text, size_t *told, base_err *err)
{
    if (!text->len) return 0;
    const bool has_marks = model_tools_are_marked(a->info.tools);
    agent_text t = {
        .origin = r->origin, .text = text->data, .n = text->len, .label = "opening", .has_marks = has_marks};
    const uint32_t from = agent__n_tokens(a);
    int rc = agent__append(a, &t, NULL, err);
    if (!has_marks) base_buf_add(&r->read.text, text->data, text->len);
    uint32_t n = 0;
    const int32_t *ids = has_marks ? a->engine->ops->ids(a->engine, &n) : NULL;
    for (uint32_t i = from; i < n; i++) agent__reader_take(a, &r->read, ids[i], i);
    r->told_thought = r->read.thought.len;
    *told = r->read.text.len;
    return rc;
}

/* An answer while it is decoded. */
typedef struct decoding {
    agent *a;
    agent_reply *r;
    const agent_opening *opening;
    engine_hold *hold; /* what the answer is held to; NULL: nothing */
    size_t told;       /* bytes of the text that events told */
    size_t call_to;    /* byte of the text behind the call that the harness began */
    bool call_due;     /* the opening's call is not written yet */
    bool is_over;      /* nothing of the opening is left to be written behind a line */
    bool is_closed;    /* a held answer went round in circles and was closed */
    base_err *err;
} decoding;

/* Ends a thought that is too long, with tokens as the model would have written them. */
static int end_long_thought(decoding *d)
{
    agent *a = d->a;
    agent_reply *r = d->r;
    model_ids ids = {0};
    const uint32_t from = agent__n_tokens(a);
    int rc = 0;
    if (agent__ends_thought(a, &r->read, &ids)) {
        a->telling.holding = true;
        rc = a->engine->ops->append(
            a->engine, &(kv_segment){.origin = r->origin, .turn = a->turn}, ids.ids, (uint32_t)ids.n, d->err);
        const uint32_t done = agent__n_tokens(a) - from;
        for (uint32_t i = 0; i < done && i < ids.n; i++)
            take_token(a, r, ids.ids[i], false, from + i, &d->told);
        agent__release_held(a);
        if (!rc) agent__tell_grammar(a, from);
    }
    model_ids_free(&ids);
    return rc;
}

/* The call follows the thought; where the model ended its message there, in a message of its own. */
static int write_call(decoding *d, bool ended)
{
    agent *a = d->a;
    agent_reply *r = d->r;
    int rc = ended ? agent__open_message(a, MODEL_ROLE_ASSISTANT, d->err) : 0;
    base_buf text = {0};
    if (ended) agent_channels_next_message(&r->read.channels, agent__n_tokens(a));
    agent__put_call_behind(a, &r->read, ended, &d->opening->call, &text);
    r->origin = KV_ORIGIN_CALL;
    const uint32_t from = agent__n_tokens(a);
    if (!rc) rc = agent__reply_write(a, r, &text, &d->told, d->err);
    if (!rc && model_tools_are_marked(a->info.tools)) agent__tell_grammar(a, from);
    base_buf_free(&text);
    d->call_due = false;
    d->call_to = r->read.text.len;
    return rc;
}

/* What the opening has for behind the line that the model has just ended. */
static int write_behind(decoding *d)
{
    base_buf more = {0};
    const base_buf *text = &d->r->read.text;
    const size_t from = d->call_to;
    const bool has_more = text->len > from && agent__put_behind_line(d->opening, text->data + from,
                                                  text->len - from, &d->is_over, &more);
    const int rc = has_more ? agent__reply_write(d->a, d->r, &more, &d->told, d->err) : 0;
    base_buf_free(&more);
    return rc;
}

/* Before (-1) and behind (1) an answer: what lookup did for it, into the turn's sums. */
static void count_lookup(agent *a, int sign)
{
    uint64_t drafted, accepted;
    if (!(a->engine->can & ENGINE_LOOKUP)) return;
    a->engine->ops->lookup(a->engine, &drafted, &accepted);
    a->ledger.sums.drafted += (uint64_t)sign * drafted;
    a->ledger.sums.accepted += (uint64_t)sign * accepted;
}

static bool is_blank(const char *text, size_t n)
{
    while (n && memchr(" \t\r\n", text[n - 1], 4)) n--;
    return n == 0;
}

/* A call, or behind those that are there a further one, with nothing but white space between them. */
static agent_call_found find_call(agent *a, agent_reply *r, bool held, bool whole)
{
    const size_t at = r->n_calls ? r->calls[r->n_calls - 1].to : 0, n = r->read.text.len - at;
    const char *text = r->read.text.data ? r->read.text.data + at : "";
    agent_call call = {0};
    if (r->n_calls == AGENT_MOST_CALLS || (held && agent__is_json(text, n))) return AGENT_CALL_NONE;
    agent_call_found found = agent_call_parse(text, n, whole, agent__known, a, &call);
    if (found != AGENT_CALL_FOUND) return found;
    if (r->n_calls && !is_blank(text, call.from)) {
        agent_call_free(&call);
        return AGENT_CALL_NONE;
    }
    call.from += at;
    call.to += at;
    r->calls[r->n_calls++] = call;
    return found;
}

/*
 * May a further call follow the one that is complete? A small model would go on with what it thinks the result is. Behind
 * a last token that is told late nothing may be lost: what came so far is blank, or the begin of a call.
 */
static bool may_call_more(const agent *a, const agent_reply *r, agent_call_found found)
{
    const size_t at = r->calls[r->n_calls - 1].to;
    if (!a->info.strong || r->n_calls == AGENT_MOST_CALLS) return false;
    return found == AGENT_CALL_PARTIAL || is_blank(r->read.text.data + at, r->read.text.len - at);
}

static bool goes_in_circles(const agent_reply *r)
{
    const base_buf *text = &r->read.text, *thought = &r->read.thought;
    return agent__repeats(text->data ? text->data : "", text->len) ||
           agent__repeats(thought->data ? thought->data : "", thought->len);
}

/* One that is held can be closed, once; then it goes on. */
static bool goes_on_closed(decoding *d)
{
    agent *a = d->a;
    if (!d->hold || !a->engine->ops->answer_close || d->is_closed) return d->is_closed;
    a->engine->ops->answer_close(a->engine);
    agent__notice(
        a, "the answer went round in circles and was closed: the JSON is whole, what it says may not be");
    a->at_limit = true;
    return d->is_closed = true;
}

static void keep_thoughts(agent *a, agent_reply *r)
{
    agent_channels_end(&r->read.channels, r->to);
    for (uint32_t i = 0; i < r->read.channels.n_thoughts; i++) {
        base_grow(&a->thoughts.all, &a->thoughts.cap, a->thoughts.n + 1, sizeof *a->thoughts.all);
        a->thoughts.all[a->thoughts.n++] = r->read.channels.thoughts[i];
    }
}

void agent__drop_thoughts(agent *a)
{
    const uint32_t n_tokens = agent__n_tokens(a);
    base_err err = {0};
    for (uint32_t i = 0; i < a->thoughts.n; i++) {
        const agent_thought t = a->thoughts.all[i];
        if (t.to <= n_tokens && agent__put_thought(a, t.from, t.to, &err))
            agent__notice(a, "a thought could not be put aside: %s", err.msg);
    }
    a->thoughts.n = 0;
}

/* Writes what the answer begins with: a thought, or the call where no thought is to come in front of it. */
static int write_opening(decoding *d)
{
    agent_reply *r = d->r;
    const agent_opening *opening = d->opening;
    int rc = agent__reply_write(d->a, r, &opening->thought, &d->told, d->err);
    if (!rc && d->call_due && !opening->thought.len) {
        r->origin = KV_ORIGIN_CALL;
        rc = agent__reply_write(d->a, r, &opening->call, &d->told, d->err);
        d->call_due = false;
        d->call_to = r->read.text.len;
    }
    agent__reader_line_begins(&r->read);
    return rc;
}

/* Sampler and grammar begin, the grammar behind what stands already. */
static int begin_sampling(decoding *d)
{
    engine *e = d->a->engine;
    const agent_reply *r = d->r;
    e->ops->answer_begins(e);
    const int rc = d->hold ? e->ops->answer_held(e, d->hold, d->err) : 0;
    if (!rc && r->read.text.len && r->origin == KV_ORIGIN_CALL && e->ops->answer_opened) {
        uint32_t n_ids;
        const int32_t *ids = e->ops->ids(e, &n_ids);
        e->ops->answer_opened(e, ids + r->from, n_ids - r->from);
    }
    return rc;
}

/* The model's next token. *ret_end: it was the answer's last. */
static int next_token(decoding *d, bool *ret_end)
{
    agent *a = d->a;
    int32_t id, wanted = -1;
    const uint32_t index = agent__n_tokens(a);
    a->telling.holding = true;
    const int rc = a->engine->ops->next(a->engine, d->r->origin, a->turn, &id, ret_end, &wanted, d->err);
    if (!rc) {
        a->ledger.sums.generated++;
        if (wanted >= 0) emit_mask(a, index, wanted, id);
        if (take_token(a, d->r, id, *ret_end, index, &d->told)) *ret_end = true;
    }
    agent__release_held(a);
    return rc;
}

/* The n-th token, and what the harness writes behind it. *ret_over: the answer is over, and r->end says how. */
static int decode_step(decoding *d, uint32_t n, bool *ret_over)
{
    agent *a = d->a;
    agent_reply *r = d->r;
    bool end = false;
    int rc = next_token(d, &end);
    if (rc) return rc;
    d->call_due = d->call_due && !r->read.channels.n_calls; /* it calls by itself */
    if (d->call_due && (end || n >= AGENT_OPENING_TOKENS || agent__reader_has_line(&r->read))) {
        rc = write_call(d, end);
        end = false;
    }
    if (end) {
        const engine_ops *o = a->engine->ops;
        if (!o->answer_cut || !o->answer_cut(a->engine)) r->end = AGENT_REPLY_DONE;
        *ret_over = true;
        return 0;
    }
    if (!rc && !d->call_due && !d->is_over) rc = write_behind(d);
    if (!rc && !d->call_due) rc = end_long_thought(d);
    if (rc || d->call_due) return rc;
    const agent_call_found found = find_call(a, r, d->hold != NULL, false);
    if (r->n_calls && !may_call_more(a, r, found)) {
        r->end = AGENT_REPLY_CALL;
        *ret_over = true;
    } else if (goes_in_circles(r) && !goes_on_closed(d)) {
        r->end = AGENT_REPLY_REPEATS;
        *ret_over = true;
    } else if (found == AGENT_CALL_PARTIAL) {
        r->origin = KV_ORIGIN_CALL;
    }
    return 0;
}

int agent__reply_decode(
    agent *a, agent_reply *r, const agent_opening *opening, engine_hold *hold, base_err *err)
{
    decoding d = {.a = a,
        .r = r,
        .opening = opening,
        .hold = hold,
        .call_due = opening->call.len > 0,
        .is_over = !opening->behind.len,
        .err = err};
    /* A schema is for one channel, which the grammar of values knows nothing of: what came is checked. */
    if (d.call_due || a->info.tools == MODEL_TOOLS_HARMONY || !a->engine->ops->answer_held) d.hold = NULL;
    r->origin = KV_ORIGIN_ANSWER;
    r->end = AGENT_REPLY_TOO_LONG;
    r->from = agent__n_tokens(a);
    agent__reader_begin(a, &r->read);
    int rc = write_opening(&d);
    const uint64_t start = base_clock_ns();
    bool over = false;
    count_lookup(a, -1);
    if (!rc) rc = begin_sampling(&d);
    for (uint32_t n = 0; !rc && !over && n < a->settings.max_tokens; n++) rc = decode_step(&d, n, &over);
    if (a->engine->ops->answer_over) a->engine->ops->answer_over(a->engine);
    a->ledger.sums.decode_ns += base_clock_ns() - start;
    agent__tell_requests(a);
    count_lookup(a, 1);
    if (r->origin == KV_ORIGIN_CALL) agent__tell_visits(a);
    r->to = agent__n_tokens(a);
    keep_thoughts(a, r);
    if (rc == BASE_E_CANCELLED) {
        r->end = AGENT_REPLY_CANCELLED;
        rc = 0;
    }
    /* Of an answer that was cut only a call counts that is whole: "rm -rf build" may be the begin of another command. */
    if (!rc && r->end == AGENT_REPLY_DONE) find_call(a, r, d.hold != NULL, true);
    if (!rc && r->n_calls && r->end != AGENT_REPLY_CANCELLED) r->end = AGENT_REPLY_CALL;
    return rc;
}

bool agent__reply_begins_call(const agent_reply *r)
{
    if (r->read.channels.n_calls) return true;
    for (const char *line = r->read.text.data; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        for (const char *const *mark = agent_call_marks; *mark; mark++)
            if (!strncmp(line, *mark, strlen(*mark))) return true;
    }
    return false;
}

void agent__reply_tell(agent *a, const agent_reply *r, const char *json)
{
    if (!r->read.text.len) return;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_answer,
                       .answer = {.turn = a->turn, .text = r->read.text.data, .value = json}});
    if (json) return; /* it is data: nothing in it is put right */
    free(a->asked.said);
    a->asked.said = base_xstrdup(r->read.text.data);
    if (r->end == AGENT_REPLY_DONE && agent__reply_begins_call(r))
        agent__notice(a, "the model began a tool call that cannot be read: nothing was done");
    agent__tell_places(a, r->read.text.data, r->read.text.len);
}

int agent__reply_take(agent *a, agent_reply *r, const model_ids *ids, base_err *err)
{
    r->from = agent__n_tokens(a);
    agent__reader_begin(a, &r->read);
    const int rc = agent__append_answer(a, ids->ids, (uint32_t)ids->n, err);
    r->to = agent__n_tokens(a);
    if (rc) return rc;
    for (size_t i = 0; i < ids->n; i++) agent__reader_take(a, &r->read, ids->ids[i], r->from + (uint32_t)i);
    keep_thoughts(a, r);
    r->end = find_call(a, r, false, true) == AGENT_CALL_FOUND ? AGENT_REPLY_CALL : AGENT_REPLY_DONE;
    return BASE_OK;
}
