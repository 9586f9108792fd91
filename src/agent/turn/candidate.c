/*
 * An answer that is sampled as a branch of the session: it shares every row of what was read and costs its own tokens
 * only, and of the branch its ids stay. What its call would write is known without writing it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/act/act.h"
#include "agent/act/guard.h"
#include "agent/newtest/newtest.h"
#include "agent/operation/operation.h"
#include "agent/sequence/sequence.h"
#include "agent/turn/candidate.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tools/edit/change.h"

enum { PREVIEW_BYTES = 2400 };

void agent__candidate_free(agent_candidate *c)
{
    model_ids_free(&c->ids);
    agent__reader_free(&c->read);
    free(c->headline);
    free(c->detail);
    free(c->path);
    free(c->name);
    free(c->why);
    base_buf_free(&c->text);
    *c = (agent_candidate){0};
}

static int append_text(agent *a, agent_candidate *c, const base_buf *text, base_err *err)
{
    model_ids ids = {0};
    const bool has_marks = model_tools_are_marked(a->info.tools);
    const uint32_t from = agent__n_tokens(a);
    int rc = has_marks ? agent__encode_marked(a, text->data, text->len, &ids, NULL, err)
                       : a->engine->ops->encode(a->engine, text->data, text->len, &ids, err);
    if (!has_marks) base_buf_add(&c->read.text, text->data, text->len);
    for (size_t i = 0; has_marks && i < ids.n; i++)
        agent__reader_take(a, &c->read, ids.ids[i], from + (uint32_t)i);
    kv_segment segment = {.origin = KV_ORIGIN_CALL, .turn = a->turn};
    if (!rc && ids.n) rc = a->engine->ops->append(a->engine, &segment, ids.ids, (uint32_t)ids.n, err);
    model_ids_free(&ids);
    return rc;
}

static int append_call(agent *a, agent_candidate *c, const base_buf *call, base_err *err)
{
    base_buf text = {0};
    agent__put_call_behind(a, &c->read, false, call, &text);
    const uint32_t from = agent__n_tokens(a);
    int rc = append_text(a, c, &text, err);
    if (!rc && model_tools_are_marked(a->info.tools)) agent__tell_grammar(a, from);
    base_buf_free(&text);
    return rc;
}

/* One token; *end: the answer is over. An end in the thought is taken back: the call is still to come. */
static int sample_token(agent *a, agent_candidate *c, bool in_thought, bool *end, base_err *err)
{
    int32_t id;
    uint32_t at = agent__n_tokens(a);
    int rc = a->engine->ops->next(a->engine, KV_ORIGIN_CALL, a->turn, &id, end, NULL, err);
    if (rc) return rc;
    if (*end && in_thought) return a->engine->ops->truncate(a->engine, at, err);
    agent__reader_take(a, &c->read, id, at);
    return 0;
}

static int end_long_thought(agent *a, agent_candidate *c, base_err *err)
{
    model_ids ids = {0};
    const uint32_t from = agent__n_tokens(a);
    const kv_segment segment = {.origin = KV_ORIGIN_CALL, .turn = a->turn};
    int rc = 0;
    if (agent__ends_thought(a, &c->read, &ids)) {
        rc = a->engine->ops->append(a->engine, &segment, ids.ids, (uint32_t)ids.n, err);
        for (size_t i = 0; !rc && i < ids.n; i++)
            agent__reader_take(a, &c->read, ids.ids[i], from + (uint32_t)i);
        if (!rc) agent__tell_grammar(a, from);
    }
    model_ids_free(&ids);
    return rc;
}

static bool is_over(agent *a, const agent_candidate *c, agent_call *call)
{
    const char *text = c->read.text.data ? c->read.text.data : "";
    return agent_call_parse(text, c->read.text.len, false, agent__known, a, call) == AGENT_CALL_FOUND ||
           agent__repeats(text, c->read.text.len);
}

/* What the opening has for behind the line that the model has just ended. */
static int append_behind(
    agent *a, agent_candidate *c, const agent_opening *opening, size_t from, bool *is_led, base_err *err)
{
    base_buf more = {0};
    const base_buf *text = &c->read.text;
    const bool has_more = text->len > from &&
                          agent__put_behind_line(opening, text->data + from, text->len - from, is_led, &more);
    const int rc = has_more ? append_text(a, c, &more, err) : 0;
    base_buf_free(&more);
    return rc;
}

static int sample_text(
    agent *a, agent_candidate *c, const agent_opening *opening, const agent_enough *enough, base_err *err)
{
    const uint32_t from = agent__n_tokens(a);
    const bool has_begun = c->begins_with_call && opening->call.len && !opening->thought.len;
    bool in_thought = opening->call.len && !has_begun, end = false, is_led = !opening->behind.len;
    const base_buf *first = has_begun ? &opening->call : &opening->thought;
    int rc = first->len ? append_text(a, c, first, err) : 0;
    size_t call_to = has_begun ? c->read.text.len : 0;
    agent__reader_line_begins(&c->read);
    a->engine->ops->answer_begins(a->engine);
    if (!rc && has_begun) agent__tell_grammar(a, from);
    for (uint32_t n = 0;
         !rc && !end && !(enough && enough->is_so(enough->user)) && n < a->settings.max_tokens; n++) {
        rc = sample_token(a, c, in_thought, &end, err);
        in_thought = in_thought && !c->read.channels.n_calls; /* it calls by itself */
        if (!rc && in_thought && (end || n >= AGENT_OPENING_TOKENS || agent__reader_has_line(&c->read))) {
            rc = append_call(a, c, &opening->call, err);
            in_thought = end = false;
            call_to = c->read.text.len;
        }
        if (!rc && !end && !in_thought && !is_led) rc = append_behind(a, c, opening, call_to, &is_led, err);
        if (!rc && !end && !in_thought) rc = end_long_thought(a, c, err);
        agent_call call = {0};
        if (!rc && !end && !in_thought) end = is_over(a, c, &call);
        agent_call_free(&call);
    }
    c->is_cut = !end;
    return rc;
}

int agent__candidate_sample(agent *a, agent_candidate *c, const agent_opening *opening,
    const model_sampling *s, const agent_enough *enough, base_err *err)
{
    const engine_ops *o = a->engine->ops;
    kv_stats before, after;
    uint32_t n;
    int rc = o->fork(a->engine, err);
    if (rc) return rc;
    o->set_sampling(a->engine, s);
    o->stats(a->engine, &before);
    agent__reader_begin(a, &c->read);
    rc = sample_text(a, c, opening, enough, err);
    const int32_t *ids = o->ids(a->engine, &n);
    o->stats(a->engine, &after);
    c->shared = before.n_tokens;
    c->own = after.computed - before.computed;
    for (uint32_t i = before.n_tokens; i < n; i++) model_ids_add(&c->ids, ids[i]);
    o->unfork(a->engine);
    o->set_sampling(a->engine, &a->info.sampling);
    return rc;
}

int agent__candidate_preview(agent *a, agent_candidate *c, base_err *err)
{
    agent_call call = {0};
    tool_preview preview = {0};
    tool_result result = {.exit_code = -1};
    const char *path;
    base_str text;
    int rc = 0;
    c->word = "no call";
    bool found = agent_call_parse(c->read.text.data ? c->read.text.data : "", c->read.text.len, !c->is_cut,
                     agent__known, a, &call) == AGENT_CALL_FOUND ||
                 (!c->is_cut && agent__offer_rewrite(a, &c->read.text, &call));
    const tool_entry *tool = found ? tool_find(call.name) : NULL;
    if (tool && tool->power == TOOL_WRITES && tool->prepare) {
        tool_call request = {.name = call.name,
            .arguments = base_json_root(call.arguments),
            .payload = {call.payload, call.payload_n},
            .request = a->request};
        tool_limits limits = {.result_bytes = PREVIEW_BYTES, .cancel = a->cancel};
        const char *file = base_json_str(request.arguments, "path", NULL);
        c->path = file ? base_xstrdup(file) : NULL; /* where it is no change: what it is about */
        const char *name = base_json_str(request.arguments, "name", "");
        c->name = tool_workspace_overload(a->workspace, file, name, request.payload);
        if (!c->name) c->name = base_xstrdup(name);
        char *no_test = agent__why_other_language(a, file);
        if (!no_test) no_test = agent__why_no_test(a, request.arguments, request.payload);
        c->word = no_test ? "no test of it" : "no change";
        if (!no_test) rc = tool->prepare(a->workspace, &request, &limits, &preview, &result, err);
        c->why = no_test;
        if (!rc && !c->why && result.text.len)
            c->why = base_xstrndup(result.text.data, strcspn(result.text.data, "\n"));
        if (!rc && tool_preview_text(&preview, &path, &text)) {
            c->word = NULL;
            c->headline = base_xstrdup(preview.headline);
            c->detail = base_xstrdup(preview.detail ? preview.detail : "");
            free(c->path);
            c->path = base_xstrdup(path);
            c->change = base_hash64(text.ptr, text.len, base_hash64(path, strlen(path), 3));
            base_buf_add(&c->text, text.ptr, text.len);
        } else if (!rc && result.text.len && call.payload && a->asked.new_test.path) {
            base_buf_add(&result.text, call.payload, call.payload_n); /* why it was refused, and of what */
            agent__sharpen_new_test(a, result.text.data);
        }
    }
    agent_call_free(&call);
    tool_preview_free(&preview);
    tool_result_free(&result);
    return rc;
}
