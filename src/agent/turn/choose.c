/*
 * Asked for other behaviour, a small model writes the right change more often than it says it first, and mostly no test can
 * tell: the old ones pass. So a few answers are sampled, and each is asked the way back: "Which request does this change
 * answer?" The one behind whose diff the request is likeliest becomes the answer and goes the way of any other (diff, approval,
 * tests); the others stay in the log. What that is worth: docs/diary.md, "Which of several bodies".
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/candidate.h"
#include "base/clock.h"
#include "base/mem.h"
#include "code/code.h"

/* A further one is begun as long as the ones before it took no longer than ENOUGH_S. */
enum {
    MOST = 5,
    PLAIN = 2,
    ENOUGH_S = 60,
    MOST_DIFF = 6000,
    MOST_SUBJECT = 4000
}; /* PLAIN: the last that is not warm */
static const float warm = 0.7f;

typedef struct choice {
    agent_candidate all[MOST];
    double weights[MOST];
    uint32_t n;
    uint64_t began;
} choice;

static bool has_time(const choice *c)
{
    return (base_clock_ns() - c->began) / 1000000000 < ENOUGH_S;
}

bool agent__choosing_is_due(const agent *a)
{
    const agent_asked *x = &a->asked;
    const agent_fix *f = &a->fix;
    return x->change && !x->n_changed && !x->is_operation && !x->refused && !x->test && !x->has_chosen &&
           !f->wanted && !f->attempts && !f->asked_again && !a->denied && !a->info.strong &&
           agent__tries(a) > 1 && a->settings.mode != AGENT_MODE_PLAN && (a->engine->can & ENGINE_BRANCH) &&
           (a->engine->can & ENGINE_WEIGHS) && !model_tools_are_marked(a->info.tools) &&
           agent__asks_for_behaviour(a);
}

/* A message of a person in an empty session, up to the opening of the answer. */
static int encode_message(agent *a, const base_buf *text, model_ids *ids, base_err *err)
{
    const engine_ops *o = a->engine->ops;
    int rc = o->scaffold(a->engine, ENGINE_START, MODEL_ROLE_USER, ids, err);
    if (!rc) rc = o->scaffold(a->engine, ENGINE_BEGIN, MODEL_ROLE_USER, ids, err);
    if (!rc) rc = o->encode(a->engine, text->data, text->len, ids, err);
    if (!rc) rc = o->scaffold(a->engine, ENGINE_END, MODEL_ROLE_USER, ids, err);
    return rc ? rc : o->scaffold(a->engine, ENGINE_BEGIN, MODEL_ROLE_ASSISTANT, ids, err);
}

/* log p(request | diff), in nats; nothing of the session is in view. */
static int weigh(agent *a, const agent_candidate *c, double *ret, base_err *err)
{
    const engine_ops *o = a->engine->ops;
    const kv_segment segment = {.origin = KV_ORIGIN_USER, .turn = a->turn};
    model_ids question = {0}, request = {0};
    base_buf text = {0};
    base_buf_printf(&text,
        "A change of `%s` in %s:\n```diff\n%.*s\n```\nWhich request does this change answer? Answer with the request "
        "alone.",
        c->name, c->path, MOST_DIFF, c->detail);
    int rc = encode_message(a, &text, &question, err);
    if (!rc) rc = o->encode(a->engine, a->request, strlen(a->request), &request, err);
    if (!rc) rc = o->fork(a->engine, err);
    if (!rc) {
        rc = o->truncate(a->engine, 0, err);
        if (!rc) rc = o->append(a->engine, &segment, question.ids, (uint32_t)question.n, err);
        if (!rc) rc = o->weigh(a->engine, request.ids, (uint32_t)request.n, ret, err);
        o->unfork(a->engine);
    }
    base_buf_free(&text);
    model_ids_free(&question);
    model_ids_free(&request);
    return rc;
}

/* The definition that the first answer rewrites, as it is now, or the lines of it that it may be about; and how its call begins. */
typedef struct subject {
    agent_definition of;
    base_buf call;
} subject;

static bool find_subject(const agent *a, const agent_candidate *first, subject *ret)
{
    agent_standing standing = {0};
    base_buf name = {0};
    if (!first->path || !first->name || !*first->name) return false;
    agent__find_standing(a, first->path, first->name, &standing); /* it has to be one alone */
    if (standing.path)
        base_buf_printf(&name, "%s%s%s", standing.parent, *standing.parent ? "." : "", standing.name);
    bool is_one = standing.path && agent__read_definition(a, standing.path, name.data, &ret->of) &&
                  standing.text.len && *ret->of.language;
    if (is_one) {
        agent_definition *t = &ret->of;
        const size_t n = standing.text.len;
        const bool is_it = t->text.len >= n && !memcmp(t->text.data + t->text.len - n, standing.text.data, n);
        free(t->name);
        t->name = base_xstrdup(first->name);
        if (!is_it || !agent__narrow(a, t)) { /* another one of its name, or all of it */
            base_buf_clear(&t->text);
            base_buf_add(&t->text, standing.text.data, n);
        }
        agent__put_call(a, t, &ret->call);
        is_one = t->text.len <= MOST_SUBJECT;
    }
    base_buf_free(&name);
    agent__standing_free(&standing);
    return is_one;
}

static void subject_free(subject *s)
{
    agent_definition_free(&s->of);
    base_buf_free(&s->call);
}

/* The definition, the request, and nothing else: what a small model does best with. Up to the fence of the answer. */
static int encode_plain(agent *a, const subject *s, model_ids *ids, base_err *err)
{
    base_buf text = {0}, fence = {0};
    const char *name = code_last_name(s->of.name);
    if (s->of.from) base_buf_printf(&text, "Lines of `%s` in ", name);
    base_buf_printf(
        &text, "%s:\n```%s\n%s\n```\n\n%s\n\n", s->of.path, s->of.language, s->of.text.data, a->request);
    if (s->of.from)
        base_buf_printf(&text,
            "Rewrite these lines so that `%s` does this; everything else stays as it is. Answer with these lines alone.",
            name);
    else
        base_buf_printf(&text,
            "Rewrite `%s` so that it does this; everything else stays as it is. Answer with the whole new definition.",
            name);
    base_buf_printf(&fence, "```%s\n", s->of.language);
    int rc = encode_message(a, &text, ids, err);
    if (!rc) rc = a->engine->ops->encode(a->engine, fence.data, fence.len, ids, err);
    base_buf_free(&text);
    base_buf_free(&fence);
    return rc;
}

/* What the model writes up to the end of the fence, as an answer that calls rewrite with it. */
static int sample_plain(agent *a, agent_candidate *c, const subject *s, base_err *err)
{
    const engine_ops *o = a->engine->ops;
    base_buf text = {0}, *answer = &c->read.text;
    const size_t most = s->of.text.len / 2 + 150;
    bool end = false;
    int rc = 0;
    o->answer_begins(a->engine);
    for (size_t n = 0; !rc && !end && n < most; n++) {
        int32_t id;
        size_t len = 0;
        rc = o->next(a->engine, KV_ORIGIN_CALL, a->turn, &id, &end, NULL, err);
        const char *piece = rc || end ? NULL : agent__piece(a, id, &len);
        if (piece) base_buf_add(&text, piece, len);
        char *fence = text.len ? strstr(text.data, "\n```") : NULL;
        if (fence) text.len = (size_t)(fence - text.data);
        end |= fence != NULL;
    }
    c->is_cut = !end;
    agent__reader_begin(a, &c->read);
    base_buf_add(answer, s->call.data, s->call.len);
    base_buf_add(answer, text.data ? text.data : "", text.len);
    base_buf_puts(answer, "\n```");
    base_buf_free(&text);
    return rc ? rc : o->encode(a->engine, answer->data, answer->len, &c->ids, err);
}

static model_sampling sampling_of(const agent *a, uint32_t number)
{
    model_sampling s = a->info.sampling;
    if (number > PLAIN) {
        s.temperature = warm;
        s.top_p = 0.95f;
        s.seed += 1000 * a->turn + number;
    }
    return s;
}

/* Further ones, in one branch: each goes on behind the same few tokens. */
static int sample_further(agent *a, choice *c, const subject *s, base_err *err)
{
    const engine_ops *o = a->engine->ops;
    const kv_segment segment = {.origin = KV_ORIGIN_USER, .turn = a->turn};
    model_ids plain = {0};
    int rc = encode_plain(a, s, &plain, err);
    if (!rc) rc = o->fork(a->engine, err);
    const bool is_fork = !rc;
    if (!rc) rc = o->truncate(a->engine, 0, err);
    if (!rc) rc = o->append(a->engine, &segment, plain.ids, (uint32_t)plain.n, err);
    while (!rc && c->n < MOST && has_time(c)) {
        agent_candidate *next = &c->all[c->n];
        next->number = c->n + 1;
        next->started_ns = base_clock_ns();
        const model_sampling sampling = sampling_of(a, next->number);
        o->set_sampling(a->engine, &sampling);
        rc = sample_plain(a, next, s, err);
        next->own = agent__n_tokens(a);
        if (!rc) rc = o->truncate(a->engine, (uint32_t)plain.n, err);
        if (!rc) rc = agent__candidate_preview(a, next, err);
        c->n++;
    }
    if (is_fork) o->unfork(a->engine);
    o->set_sampling(a->engine, &a->info.sampling);
    model_ids_free(&plain);
    return rc;
}

static const char *known_as(const agent_candidate *all, const agent_candidate *c)
{
    for (const agent_candidate *other = all; other < c; other++)
        if (!other->word && other->change == c->change) return "the same as an earlier one";
    return c->word;
}

static void tell(agent *a, const agent_candidate *c, uint32_t of, const char *status)
{
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_candidate,
                       .candidate = {.turn = a->turn,
                           .number = c->number,
                           .of = of,
                           .status = status,
                           .headline = c->headline,
                           .text = c->read.text.data ? c->read.text.data : "",
                           .output = c->detail,
                           .tokens = c->own,
                           .shared = c->shared,
                           .ms = (int64_t)((base_clock_ns() - c->started_ns) / 1000000)}});
    agent__notice(a, "candidate %u: %s%s%s", c->number, c->headline ? c->headline : "",
        c->headline ? ": " : "", status);
}

/* The first is what the model answers anyway. */
static int sample_first(agent *a, choice *c, const agent_opening *opening, base_err *err)
{
    agent_candidate *first = &c->all[c->n++];
    first->number = 1;
    first->begins_with_call = true;
    first->started_ns = base_clock_ns();
    const int rc = agent__candidate_sample(a, first, opening, &a->info.sampling, NULL, err);
    return rc ? rc : agent__candidate_preview(a, first, err);
}

/* Without a further one it goes on as without choosing. */
static int go_on_without(agent *a, int rc, base_err *err)
{
    if (!rc || rc == BASE_E_CANCELLED || rc == BASE_E_NOMEM) return rc;
    agent__notice(a, "no further candidates: %s", err ? err->msg : "");
    if (err) *err = (base_err){0};
    return 0;
}

static int weigh_all(agent *a, choice *c, uint32_t *ret_best, base_err *err)
{
    uint32_t n_changes = 0;
    int rc = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        c->all[i].word = known_as(c->all, &c->all[i]);
        n_changes += !c->all[i].word;
    }
    *ret_best = UINT32_MAX;
    for (uint32_t i = 0; !rc && i < c->n; i++) {
        base_buf status = {0};
        if (!c->all[i].word && n_changes > 1) rc = weigh(a, &c->all[i], &c->weights[i], err);
        if (!c->all[i].word && (*ret_best == UINT32_MAX || c->weights[i] > c->weights[*ret_best]))
            *ret_best = i;
        if (n_changes > 1)
            base_buf_printf(&status, "log p of the request behind it %.1f", c->weights[i]);
        else
            base_buf_puts(&status, "the only change");
        if (!rc) tell(a, &c->all[i], c->n, c->all[i].word ? c->all[i].word : status.data);
        base_buf_free(&status);
    }
    if (!rc && n_changes > 1)
        agent__notice(a, "candidate %u is taken: the request is likeliest behind its change", *ret_best + 1);
    return rc;
}

/* Those that were not taken, by weight: where a test fails the taken one, it judges them next (tries.c). */
static void keep_others(agent *a, choice *c, uint32_t best)
{
    agent_fix *f = &a->fix;
    bool done[MOST] = {false};
    done[best] = true;
    for (;;) {
        uint32_t next = MOST;
        for (uint32_t i = 0; i < c->n; i++)
            if (!done[i] && !c->all[i].word && (next == MOST || c->weights[i] > c->weights[next])) next = i;
        if (next == MOST || f->n_kept == AGENT_MAX_KEPT) return;
        f->kept[f->n_kept++] = base_xstrdup(c->all[next].read.text.data);
        done[next] = true;
    }
}

int agent__choose(agent *a, const agent_opening *opening, model_ids *ret_ids, base_err *err)
{
    choice c = {.began = base_clock_ns()};
    subject s = {0};
    uint32_t best = UINT32_MAX;
    int rc = sample_first(a, &c, opening, err);
    if (!rc && has_time(&c) && find_subject(a, &c.all[0], &s)) {
        a->asked.has_chosen = true;
        agent__notice(a, "up to %d answers: the one whose change the request fits best is taken", MOST);
        rc = go_on_without(a, sample_further(a, &c, &s, err), err);
        if (!rc && c.n > 1) rc = go_on_without(a, weigh_all(a, &c, &best, err), err);
        if (!rc && best != UINT32_MAX) keep_others(a, &c, best);
        agent__commit(a);
    }
    const agent_candidate *taken = &c.all[best == UINT32_MAX ? 0 : best];
    for (size_t i = 0; !rc && i < taken->ids.n; i++) model_ids_add(ret_ids, taken->ids.ids[i]);
    for (uint32_t i = 0; i < MOST; i++) agent__candidate_free(&c.all[i]);
    subject_free(&s);
    return rc;
}
