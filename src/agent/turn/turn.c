/*
 * A turn: the request with what the program found for it, then answers and calls in turn until an answer
 * without a call. The template's tail (the end of a message and the opening of the answer) is appended after
 * the repair, so that the first token of every answer is computed over what the newest message asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/act/act.h"
#include "agent/act/guard.h"
#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/judge/judge.h"
#include "agent/lifetime/lifetime.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "agent/words/request_words.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "code/places.h"
#include "model/text/stop.h"

enum { LEAST_ROOM = 192 };

/* --- decoding ------------------------------------------------------------------------------------------- */

typedef enum answer_end {
    ANSWER_DONE,
    ANSWER_CALL,
    ANSWER_REPEATS,
    ANSWER_TOO_LONG,
    ANSWER_CANCELLED
} answer_end;

typedef struct answer {
    agent_reader read;
    uint32_t from, to; /* its tokens */
    kv_origin origin;  /* of what is being written */
    answer_end end;
    agent_call call; /* with ANSWER_CALL */
    size_t told_thought;
} answer;

static void answer_free(answer *r)
{
    agent__reader_free(&r->read);
    agent_call_free(&r->call);
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
static void tell_thought(agent *a, answer *r, int32_t id, uint32_t index)
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
static bool take_token(agent *a, answer *r, int32_t id, bool end, uint32_t index, size_t *told)
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

/* Text of the harness at the answer's end, which is read as the model's is. */
static int write_for_model(agent *a, answer *r, const base_buf *text, size_t *told, base_err *err)
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

/* Ends a thought that is too long, with tokens as the model would have written them. */
static int end_long_thought(agent *a, answer *r, size_t *told, base_err *err)
{
    model_ids ids = {0};
    const uint32_t from = agent__n_tokens(a);
    int rc = 0;
    if (agent__ends_thought(a, &r->read, &ids)) {
        a->telling.holding = true;
        rc = a->engine->ops->append(
            a->engine, &(kv_segment){.origin = r->origin, .turn = a->turn}, ids.ids, (uint32_t)ids.n, err);
        const uint32_t done = agent__n_tokens(a) - from;
        for (uint32_t i = 0; i < done && i < ids.n; i++) take_token(a, r, ids.ids[i], false, from + i, told);
        agent__release_held(a);
        if (!rc) agent__tell_grammar(a, from);
    }
    model_ids_free(&ids);
    return rc;
}

/* The call follows the thought; where the model ended its message there, in a message of its own. */
static int write_call(agent *a, answer *r, const base_buf *call, bool ended, size_t *told, base_err *err)
{
    int rc = ended ? agent__open_message(a, MODEL_ROLE_ASSISTANT, err) : 0;
    base_buf text = {0};
    if (ended) agent_channels_next_message(&r->read.channels, agent__n_tokens(a));
    agent__put_call_behind(a, &r->read, ended, call, &text);
    r->origin = KV_ORIGIN_CALL;
    const uint32_t from = agent__n_tokens(a);
    if (!rc) rc = write_for_model(a, r, &text, told, err);
    if (!rc && model_tools_are_marked(a->info.tools)) agent__tell_grammar(a, from);
    base_buf_free(&text);
    return rc;
}

/* What the opening has for behind the line that the model has just ended. */
static int write_behind(agent *a, answer *r, const agent_opening *opening, size_t from, bool *is_over,
    size_t *told, base_err *err)
{
    base_buf more = {0};
    const base_buf *text = &r->read.text;
    const bool has_more = text->len > from && agent__put_behind_line(opening, text->data + from,
                                                  text->len - from, is_over, &more);
    const int rc = has_more ? write_for_model(a, r, &more, told, err) : 0;
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

static agent_call_found find_call(agent *a, answer *r, bool held, bool whole)
{
    const char *text = r->read.text.data ? r->read.text.data : "";
    if (held && agent__is_json(text, r->read.text.len)) return AGENT_CALL_NONE;
    return agent_call_parse(text, r->read.text.len, whole, agent__known, a, &r->call);
}

/* It goes round in circles. One that is held can be closed, once; then it goes on. */
static bool goes_on_closed(agent *a, engine_hold *hold, bool *closed)
{
    if (!hold || !a->engine->ops->answer_close || *closed) return *closed;
    a->engine->ops->answer_close(a->engine);
    agent__notice(
        a, "the answer went round in circles and was closed: the JSON is whole, what it says may not be");
    a->at_limit = true;
    return *closed = true;
}

static void keep_thoughts(agent *a, answer *r)
{
    agent_channels_end(&r->read.channels, r->to);
    for (uint32_t i = 0; i < r->read.channels.n_thoughts; i++) {
        base_grow(&a->thoughts.all, &a->thoughts.cap, a->thoughts.n + 1, sizeof *a->thoughts.all);
        a->thoughts.all[a->thoughts.n++] = r->read.channels.thoughts[i];
    }
}

/* The turn has its answer: its thoughts leave, as the model's template leaves them out of what comes later. */
static void drop_thoughts(agent *a)
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

/*
 * Decodes until the model ends, a call is complete, or one of the brakes holds. Errors of the engine are
 * errors. hold: what the answer is held to; NULL: nothing.
 */
static int decode(agent *a, answer *r, const agent_opening *opening, engine_hold *hold, base_err *err)
{
    size_t told = 0;
    r->origin = KV_ORIGIN_ANSWER;
    bool call_due = opening->call.len > 0, closed = false, is_over = !opening->behind.len;
    size_t call_to = 0;
    /* A schema is for one channel, which the grammar of values knows nothing of: what came is checked. */
    if (call_due || a->info.tools == MODEL_TOOLS_HARMONY || !a->engine->ops->answer_held) hold = NULL;
    r->from = agent__n_tokens(a);
    agent__reader_begin(a, &r->read);
    int rc = write_for_model(a, r, &opening->thought, &told, err);
    if (!rc && call_due && !opening->thought.len) {
        r->origin = KV_ORIGIN_CALL;
        rc = write_for_model(a, r, &opening->call, &told, err);
        call_due = false;
        call_to = r->read.text.len;
    }
    agent__reader_line_begins(&r->read);
    uint64_t start = base_clock_ns();
    count_lookup(a, -1);
    if (!rc) a->engine->ops->answer_begins(a->engine);
    if (!rc && hold) rc = a->engine->ops->answer_held(a->engine, hold, err);
    if (!rc && r->read.text.len && r->origin == KV_ORIGIN_CALL && a->engine->ops->answer_opened) {
        uint32_t n_ids;
        const int32_t *ids = a->engine->ops->ids(a->engine, &n_ids);
        a->engine->ops->answer_opened(a->engine, ids + r->from, n_ids - r->from);
    }
    bool end = false;
    r->end = ANSWER_TOO_LONG;
    for (uint32_t n = 0; !rc && n < a->settings.max_tokens; n++) {
        int32_t id, wanted = -1;
        uint32_t index = agent__n_tokens(a);
        a->telling.holding = true;
        rc = a->engine->ops->next(a->engine, r->origin, a->turn, &id, &end, &wanted, err);
        if (!rc) {
            a->ledger.sums.generated++;
            if (wanted >= 0) emit_mask(a, index, wanted, id);
            if (take_token(a, r, id, end, index, &told)) end = true;
        }
        agent__release_held(a);
        if (rc) break;
        call_due = call_due && !r->read.channels.n_calls; /* it calls by itself */
        if (call_due && (end || n >= AGENT_OPENING_TOKENS || agent__reader_has_line(&r->read))) {
            rc = write_call(a, r, &opening->call, end, &told, err);
            call_due = end = false;
            call_to = r->read.text.len;
        }
        if (end) {
            r->end = ANSWER_DONE;
            break;
        }
        if (!rc && !call_due && !is_over) rc = write_behind(a, r, opening, call_to, &is_over, &told, err);
        if (!rc && !call_due) rc = end_long_thought(a, r, &told, err);
        if (rc || call_due) continue;
        const agent_call_found found = find_call(a, r, hold != NULL, false);
        if (found == AGENT_CALL_FOUND) {
            r->end = ANSWER_CALL;
            break;
        }
        if ((agent__repeats(r->read.text.data ? r->read.text.data : "", r->read.text.len) ||
                agent__repeats(r->read.thought.data ? r->read.thought.data : "", r->read.thought.len)) &&
            !goes_on_closed(a, hold, &closed)) {
            r->end = ANSWER_REPEATS;
            break;
        }
        if (found == AGENT_CALL_PARTIAL) r->origin = KV_ORIGIN_CALL;
    }
    if (a->engine->ops->answer_over) a->engine->ops->answer_over(a->engine);
    a->ledger.sums.decode_ns += base_clock_ns() - start;
    agent__tell_requests(a);
    count_lookup(a, 1);
    if (r->origin == KV_ORIGIN_CALL) agent__tell_visits(a);
    r->to = agent__n_tokens(a);
    keep_thoughts(a, r);
    if (rc == BASE_E_CANCELLED) {
        r->end = ANSWER_CANCELLED;
        rc = 0;
    }
    if (!rc && (r->end == ANSWER_DONE || r->end == ANSWER_TOO_LONG) &&
        find_call(a, r, hold != NULL, true) == AGENT_CALL_FOUND)
        r->end = ANSWER_CALL;
    return rc;
}

/* Does a line of it open a call? With no call in it, that is one that cannot be read. */
static bool begins_call(const answer *r)
{
    if (r->read.channels.n_calls) return true;
    for (const char *line = r->read.text.data; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        for (const char *const *mark = agent_call_marks; *mark; mark++)
            if (!strncmp(line, *mark, strlen(*mark))) return true;
    }
    return false;
}

/* json: the answer as JSON of the schema; NULL: it is words. */
static void tell_answer(agent *a, const answer *r, const char *json)
{
    if (!r->read.text.len) return;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_answer,
                       .answer = {.turn = a->turn, .text = r->read.text.data, .value = json}});
    if (json) return; /* it is data: nothing in it is put right */
    free(a->asked.said);
    a->asked.said = base_xstrdup(r->read.text.data);
    if (r->end == ANSWER_DONE && begins_call(r))
        agent__notice(a, "the model began a tool call that cannot be read: nothing was done");
    agent__tell_places(a, r->read.text.data, r->read.text.len);
}

/* --- the turn ------------------------------------------------------------------------------------------- */

static void turn_begins(agent *a, const char *request)
{
    a->turn++;
    a->denied = a->at_limit = false;
    agent__asked_free(a);
    agent__fix_free(a);
    char *copy = base_xstrdup(request);
    free(a->request);
    a->request = copy;
    a->ledger.sums = (agent_sums){.n_before = agent__n_tokens(a)};
    base_grow(&a->transcript.turn_starts, &a->transcript.cap_turn_starts, a->turn + 1,
        sizeof *a->transcript.turn_starts);
    a->transcript.turn_starts[a->turn] = a->ledger.sums.n_before;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_user,
                       .user = {.turn = a->turn, .text = request, .time_ms = base_clock_wall_ms()}});
    agent__commit(a);
    agent__set_turn(a, a->turn);
    tool_workspace_turn(a->workspace, a->turn);
    agent__find_test(a, request);
}

/* The request with its context, up to the opening of the answer. */
static int append_request(agent *a, const char *request, base_err *err)
{
    base_buf told = {0}, text = {0};
    agent__notice_changes(a, &told);
    int rc = agent__open_message(a, MODEL_ROLE_USER, err);
    if (!rc) rc = agent__append_outside(a, err);
    if (!rc) rc = agent__append_aside(a, request, err);
    bool about_changes = agent__asks_about_changes(request);
    if (!rc && about_changes) rc = agent__append_changes(a, request, err);
    agent__ask(a, request);
    agent__wish_each(a, request);
    a->asked.is_operation = agent__is_operation_alone(a, request);
    if (agent__can_begin_calls(a)) agent__find_meant(a, request);
    if (!rc && !about_changes) rc = agent__append_context(a, request, err);
    if (!rc) rc = agent__append_new_test(a, request, err);
    if (!rc && a->fix.wanted) rc = agent__run_test_first(a, err);
    if (told.len) base_buf_add(&text, told.data, told.len);
    agent__tell_operation(a, request, &text);
    base_buf_puts(&text, agent_prompt_request);
    base_buf_puts(&text, request);
    agent__put_schema(a, &text);
    size_t index = SIZE_MAX;
    agent_text t = {.origin = KV_ORIGIN_USER, .text = text.data, .n = text.len, .label = "request"};
    if (!rc) rc = agent__append(a, &t, &index, err);
    if (!rc && index != SIZE_MAX)
        rc = agent__repair(a, a->transcript.segments[index].from, a->transcript.segments[index].to, err);
    agent__expect(a, 0);
    if (!rc) rc = agent__open_message(a, MODEL_ROLE_ASSISTANT, err);
    base_buf_free(&told);
    base_buf_free(&text);
    return rc;
}

static const char *const end_notices[] = {
    [ANSWER_REPEATS] = "the answer went round in circles and was stopped",
    [ANSWER_TOO_LONG] = "the answer reached its limit of tokens and was cut",
    [ANSWER_CANCELLED] = "interrupted; what was answered so far is kept",
};

/* Behind what the open message says already. */
static int end_asking(agent *a, const base_buf *text, base_err *err)
{
    agent_text t = {.origin = KV_ORIGIN_TOOL, .text = text->data, .n = text->len, .label = "harness"};
    int rc = agent__append(a, &t, NULL, err);
    return rc ? rc : agent__open_message(a, MODEL_ROLE_ASSISTANT, err);
}

static int append_asking(agent *a, const base_buf *text, base_err *err)
{
    int rc = agent__open_message(a, MODEL_ROLE_USER, err);
    return rc ? rc : end_asking(a, text, err);
}

/* A call that cannot be read is asked for once more; what came instead of it then is the answer. */
static int ask_for_call(agent *a, base_err *err)
{
    base_buf text = {0};
    base_buf_puts(&text, "That call could not be read, so nothing was done. Write the whole call once more "
                         "on one line, like\n");
    agent_prompt_call(a->info.tools, "{\"name\": \"read\", \"arguments\": {\"path\": \"FILE\"}}", &text);
    base_buf_puts(&text, "\nor answer in words.");
    agent__notice(a, "the model began a tool call that cannot be read: it is asked once more");
    int rc = append_asking(a, &text, err);
    base_buf_free(&text);
    return rc;
}

/* Is it "what creates", "what makes": the word behind "what" a verb of something that the tree does? */
static bool asks_what_does(const char *request)
{
    static const char *const plain[] = {"is", "was", "does", "has", "this", "its", NULL};
    const char *what = strcasestr(request, "what ");
    if (!what || (what > request && what[-1] != ' ')) return false;
    const char *verb = what + strlen("what ");
    const size_t n = strcspn(verb, " ,.?!\n");
    for (const char *const *p = plain; *p; p++)
        if (strlen(*p) == n && !strncasecmp(*p, verb, n)) return false;
    return n > 2 && verb[n - 1] == 's';
}

/* "How does the parser ...", "how is a path ...": not how a person does something. */
static bool asks_how_it_does(const char *request)
{
    return strcasestr(request, "how does ") || strcasestr(request, "how is ") ||
           strcasestr(request, "how are ");
}

/* "Which function ...", "Where is ...", "What creates ...", "How is ...": a question whose answer is a name. */
static bool asks_for_name(const char *request)
{
    return agent__has_word(request, "which") || agent__has_word(request, "where") ||
           asks_what_does(request) || asks_how_it_does(request);
}

static bool names_symbol(const agent *a, const answer *r)
{
    code_checked *checked = NULL;
    uint32_t n = code_places_check(
        tool_workspace_index(a->workspace), r->read.text.data, r->read.text.len, AGENT_MAX_PLACES, &checked);
    bool found = false;
    for (uint32_t i = 0; i < n; i++)
        found = found || checked[i].state == CODE_PLACE_DEFINED || checked[i].state == CODE_PLACE_MENTIONED;
    code_places_checked_free(checked, n);
    return found;
}

/* Small models paraphrase the question, or invent: what they mean is asked for by its name. */
static int ask_for_name(agent *a, base_err *err)
{
    base_buf text = {0};
    base_buf_printf(
        &text, "%sWhich definition in the excerpts is that? Name it and its file.", agent_prompt_request);
    agent__notice(a, "the answer names nothing that this tree has: it is asked for the name");
    int rc = append_asking(a, &text, err);
    base_buf_free(&text);
    return rc;
}

/* A change was asked for and is not in the tree, or not all of it: true at most twice, with what is missing. */
static bool should_ask_for_change(agent *a, base_buf *missing)
{
    enum { MOST = 2 };
    if (!a->asked.change || a->asked.again >= MOST || a->fix.wanted || a->denied || a->asked.refused)
        return false;
    if (!agent__is_missing(a, missing) && a->asked.n_changed) return false;
    if (a->asked.again && !a->asked.n_changed) return false; /* nothing at all, twice: it will not */
    a->asked.again++;
    return true;
}

/* What this turn wrote is not in view as it is now, and a model that does not see it writes what it saw elsewhere. */
static void put_aimed(const agent *a, base_buf *out)
{
    enum { MOST = 6000, MAX_FILE = 4 << 20 };
    code_place *places = NULL;
    base_buf text = {0};
    if (!a->fix.open_call || !a->fix.path || !a->fix.name || !agent__is_changed(a, a->fix.path)) return;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), a->fix.name, &places);
    for (uint32_t i = 0; i < n && !text.len; i++) {
        const code_place *p = &places[i];
        if (p->is_declaration || strcmp(p->path, a->fix.path) != 0 || p->to - p->from > MOST) continue;
        if (tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) || p->to > text.len) continue;
        const char *language = code_language(p->path, "", 0);
        base_buf_printf(out, "%s is now:\n```%s\n%.*s\n```\n", a->fix.name, language ? language : "",
            (int)(p->to - p->from), text.data + p->from);
    }
    base_buf_free(&text);
    code_places_free(places, n);
}

static int ask_for_change(agent *a, const answer *r, const base_buf *missing, base_err *err)
{
    base_buf text = {0};
    base_err put = {0};
    bool is_test = false;
    /* Words that say which definition has to change stay in view, and its call is begun for the model. */
    const bool is_aimed = r->end == ANSWER_DONE && r->read.text.len && !a->asked.test_of &&
                          agent__aim_at_said(a, r->read.text.data);
    /* Else: what a weak model sees it says again. */
    if (!is_aimed && r->from < r->to && agent__put_failed(a, r->from, r->to, &put))
        agent__notice(a, "the answer could not be put aside: %s", put.msg);
    int rc = agent__open_message(a, MODEL_ROLE_USER, err);
    if (!rc) rc = agent__append_test_of_addition(a, &is_test, err);
    base_buf_printf(&text, "%s%s", a->asked.n_changed ? "" : "No file was changed yet. ",
        missing->len ? missing->data : "");
    const bool is_begun = a->info.strong || is_aimed || is_test || agent__aim_at_missing(a);
    if (is_begun) put_aimed(a, &text);
    base_buf_puts(&text, is_begun ? "Make that change now."
                                  : "Make that change now: the rewrite call on one line, then the whole "
                                    "definition in a fenced block.");
    agent__notice(a, "%s",
        a->asked.n_changed ? "not all of the change is in the tree: asking for the rest"
                           : "nothing was changed: asking for the change");
    if (!rc) rc = end_asking(a, &text, err);
    base_buf_free(&text);
    return rc;
}

/*
 * The first attempt as the person set it; a further one warmer, or a deterministic model would say the same
 * again.
 */
static void set_sampling(agent *a, bool further)
{
    model_sampling s = a->info.sampling;
    if (further && s.temperature < 0.7f) {
        s.temperature = 0.7f;
        s.top_p = 0.95f;
        s.seed += a->fix.attempts + a->fix.asked_again;
    }
    a->engine->ops->set_sampling(a->engine, &s);
}

/* The candidate whose test passed becomes the answer; *taken false: there is none. */
static int take_candidate(agent *a, answer *r, bool *taken, base_err *err)
{
    model_ids ids = {0};
    int rc = agent__try(a, &ids, err);
    if (!rc && ids.n) {
        r->from = agent__n_tokens(a);
        agent__reader_begin(a, &r->read);
        rc = agent__append_answer(a, ids.ids, (uint32_t)ids.n, err);
        r->to = agent__n_tokens(a);
        for (size_t i = 0; !rc && i < ids.n; i++)
            agent__reader_take(a, &r->read, ids.ids[i], r->from + (uint32_t)i);
        if (!rc) keep_thoughts(a, r);
        *taken = !rc;
        r->end = ANSWER_DONE;
        if (!rc && agent_call_parse(r->read.text.data ? r->read.text.data : "", r->read.text.len, true,
                       agent__known, a, &r->call) == AGENT_CALL_FOUND)
            r->end = ANSWER_CALL;
    }
    model_ids_free(&ids);
    return rc;
}

/*
 * The answer as JSON of the schema. What is not is asked for once more (*again), without calls; then the turn has
 * failed.
 */
static int take_json(agent *a, const answer *r, const engine_hold *hold, bool *asked, bool *again,
    base_buf *ret, base_err *err)
{
    base_err why = {0};
    if (!agent__take_json(a, r->read.text.data ? r->read.text.data : "", r->read.text.len, ret, &why)) {
        if (hold->was_cut && !a->at_limit) {
            agent__notice(a,
                "the answer was closed at its limit of %u tokens: the JSON is whole, what it says may not be "
                "(--max-tokens)",
                hold->n_tokens);
            a->at_limit = true;
        }
        return BASE_OK;
    }
    if (*asked) {
        tell_answer(a, r, NULL);
        return base_fail(
            err, BASE_E_FORMAT, "the answer is not JSON of the schema, asked twice: %.300s", why.msg);
    }
    base_buf asking = {0};
    *asked = *again = true;
    agent__notice(a, "the answer is not JSON of the schema (%.200s): it is asked once more", why.msg);
    agent__put_schema_again(a, &why, &asking);
    const int rc = append_asking(a, &asking, err);
    base_buf_free(&asking);
    return rc;
}

/*
 * An operation was all that the request asks for: what the tool said of it is the answer. The model would say it once more,
 * and not always right.
 */
static int answer_for_operation(agent *a, base_err *err)
{
    answer r = {.from = agent__n_tokens(a), .origin = KV_ORIGIN_ANSWER, .end = ANSWER_DONE};
    size_t told = 0;
    agent__reader_begin(a, &r.read);
    const int rc = write_for_model(a, &r, &a->asked.done, &told, err);
    r.to = agent__n_tokens(a);
    if (!rc) tell_answer(a, &r, NULL);
    answer_free(&r);
    return rc;
}

/* Answers and calls until an answer without a call. */
static int converse(agent *a, const char *request, bool *interrupted, base_err *err)
{
    agent_opening opening = {0};
    bool asked_for_call = false, asked_for_json = false;
    bool wants_name = a->has_excerpts && !a->fix.wanted && !a->settings.schema && asks_for_name(request);
    for (uint32_t steps = 0;; steps++) {
        kv_stats s;
        a->engine->ops->stats(a->engine, &s);
        if (s.n_ctx - s.n_tokens < LEAST_ROOM) {
            a->at_limit = true;
            agent_opening_free(&opening);
            return base_fail(err, BASE_E_LIMIT,
                "the context of %u tokens is full: /compact goes on in a smaller session with what is still "
                "active; a session with --kv-budget auto and without --ctx has no end",
                s.n_ctx);
        }
        answer r = {0};
        bool further = a->fix.copied || a->fix.attempts;
        /* Candidates come first, and the first of them is not begun for the model. */
        const bool can_begin = agent__can_begin_calls(a);
        const bool opens = a->fix.open_call && can_begin && !agent__tries_are_due(a);
        int rc = opens ? agent__open_further(a, further, &opening, err) : 0;
        a->fix.open_call = false;
        /* The first one, and those of a list behind it ("move a and b to c"). */
        if (!rc && steps == a->asked.n_operations && !opening.call.len && can_begin)
            agent__open_operation(a, request, &opening);
        if (!rc && !opening.call.len && can_begin) agent__open_new_test(a, &opening);
        if (!rc && !opening.call.len && can_begin) agent__open_addition(a, request, &opening);
        if (!rc && !opening.call.len && can_begin) rc = agent__open_behaviour(a, &opening, err);
        if (a->fix.attempts || a->fix.asked_again) set_sampling(a, !a->fix.passed && !opening.is_doubt);
        bool taken = false;
        if (!rc && !opening.call.len) rc = take_candidate(a, &r, &taken, err);
        engine_hold hold = agent__hold(a, steps < a->settings.max_steps && !asked_for_json);
        if (!rc && !taken) rc = decode(a, &r, &opening, a->settings.schema ? &hold : NULL, err);
        agent_opening_free(&opening);
        if (!rc && end_notices[r.end]) agent__notice(a, "%s", end_notices[r.end]);
        if (!rc && r.end == ANSWER_DONE && agent__offer_rewrite(a, &r.read.text, &r.call))
            r.end = ANSWER_CALL;
        if (!rc && r.end == ANSWER_CALL && steps >= a->settings.max_steps) {
            agent__notice(a, "stopped after %u tool calls in one turn; say \"go on\" to let it work further",
                a->settings.max_steps);
            r.end = ANSWER_TOO_LONG;
            a->at_limit = true;
        }
        bool stop = r.end != ANSWER_CALL;
        base_buf again = {0};
        bool is_useless = r.end == ANSWER_REPEATS || r.end == ANSWER_TOO_LONG;
        if (!rc && (r.end == ANSWER_DONE || is_useless) && steps < a->settings.max_steps &&
            agent__ask_again(a, r.from, r.to, is_useless, &again)) {
            rc = append_asking(a, &again, err);
            base_buf_free(&again);
            answer_free(&r);
            if (rc) return rc;
            continue;
        }
        if (!rc && (r.end == ANSWER_DONE || is_useless) && steps < a->settings.max_steps &&
            should_ask_for_change(a, &again)) {
            rc = ask_for_change(a, &r, &again, err);
            base_buf_free(&again);
            answer_free(&r);
            if (rc) return rc;
            continue;
        }
        base_buf_free(&again);
        if (!rc && r.end == ANSWER_DONE && begins_call(&r) && !asked_for_call &&
            steps < a->settings.max_steps) {
            asked_for_call = true;
            answer_free(&r);
            rc = ask_for_call(a, err);
            if (rc) return rc;
            continue;
        }
        if (!rc && r.end == ANSWER_DONE && wants_name && r.read.text.len && !names_symbol(a, &r)) {
            wants_name = false;
            answer_free(&r);
            rc = ask_for_name(a, err);
            if (rc) return rc;
            continue;
        }
        base_buf json = {0};
        bool ask_again = false;
        if (!rc && a->settings.schema && r.end != ANSWER_CALL && r.end != ANSWER_CANCELLED)
            rc = take_json(a, &r, &hold, &asked_for_json, &ask_again, &json, err);
        if (ask_again) {
            answer_free(&r);
            if (rc) return rc;
            continue;
        }
        if (!rc && r.end != ANSWER_CALL) tell_answer(a, &r, json.data);
        base_buf_free(&json);
        *interrupted = r.end == ANSWER_CANCELLED;
        if (!rc && r.end == ANSWER_CALL) rc = agent__act(a, &r.call, r.from, r.to, &stop, err);
        answer_free(&r);
        if (rc || stop) return rc;
        if (agent__is_operation_done(a) && !model_tools_are_marked(a->info.tools))
            return answer_for_operation(a, err);
    }
}

/*
 * A turn that came to its end finishes its message. After an interruption, a failure or in a full context it
 * stays open and the next message's scaffold ends it: nobody waits for a forward pass to see that Esc was
 * heard.
 */
static void close_message(agent *a)
{
    base_err err = {0};
    if (a->transcript.open_role >= 0 && agent__open_message(a, -1, &err) && err.code != BASE_E_LIMIT &&
        err.code != BASE_E_CANCELLED)
        agent__error(a, &err);
}

static void turn_ends(agent *a, const char *status)
{
    agent__ledger(a);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_turn_end,
                       .turn_end = {.turn = a->turn, .status = status, .time_ms = base_clock_wall_ms()}});
    agent__commit(a);
    a->unsaved = true;
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    if (!s.endless && s.n_tokens > s.n_ctx / 10 * 9)
        agent__notice(a, "%u of %u tokens of the context are used: /compact goes on in a smaller session",
            s.n_tokens, s.n_ctx);
}

int agent__turn(agent *a, const char *request, base_err *err)
{
    base_err mine = {0};
    bool interrupted = false;
    turn_begins(a, request);
    int rc = 0;
    if (a->offered != code_index_chunks(tool_workspace_index(a->workspace)))
        rc = agent__offer_tools(a, &mine);
    if (!rc) rc = append_request(a, request, &mine);
    if (!rc) rc = converse(a, request, &interrupted, &mine);
    if (rc == BASE_E_CANCELLED) {
        interrupted = true;
        agent__notice(a, "interrupted");
        rc = 0;
    }
    if (rc) agent__error(a, &mine);
    if (a->fix.attempts) set_sampling(a, false);
    if (!rc && !interrupted) agent__try_new_test(a);
    agent__tell_outcome(a);
    if (!rc && !interrupted) close_message(a);
    if (!rc && !interrupted) drop_thoughts(a);
    turn_ends(a, interrupted ? "interrupted" : rc ? "failed" : "closed");
    if (rc && err) *err = mine;
    return rc;
}

/* What the model reads and is asked, up to the opening of its answer. */
static int append_material(agent *a, const agent_draft *d, base_err *err)
{
    agent_text material = {
        .origin = KV_ORIGIN_TOOL, .text = d->material, .n = strlen(d->material), .label = d->label};
    agent_text asking = {
        .origin = KV_ORIGIN_USER, .text = d->asking, .n = strlen(d->asking), .label = "request"};
    int rc = agent__open_message(a, MODEL_ROLE_USER, err);
    if (!rc) rc = agent__append(a, &material, NULL, err);
    if (!rc) rc = agent__append(a, &asking, NULL, err);
    return rc ? rc : agent__open_message(a, MODEL_ROLE_ASSISTANT, err);
}

int agent__draft(agent *a, const agent_draft *d, base_buf *ret, base_err *err)
{
    const agent_opening opening = {0};
    answer r = {0};
    base_err mine = {0};
    turn_begins(a, d->request);
    int rc = append_material(a, d, &mine);
    if (!rc) rc = decode(a, &r, &opening, NULL, &mine);
    if (!rc && r.read.text.len)
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_answer,
                           .answer = {.turn = a->turn, .text = r.read.text.data}});
    if (!rc && r.end == ANSWER_CANCELLED) rc = base_fail(&mine, BASE_E_CANCELLED, "interrupted");
    const bool interrupted = rc == BASE_E_CANCELLED;
    if (!rc && r.end != ANSWER_DONE)
        rc = base_fail(&mine, BASE_E_STATE, "the model did not come to an end of it%s",
            r.end == ANSWER_CALL ? ": it called a tool instead" : "");
    if (rc != BASE_E_CANCELLED) close_message(a);
    if (!rc) drop_thoughts(a);
    turn_ends(a, interrupted ? "interrupted" : rc ? "failed" : "closed");
    if (!rc) base_buf_add(ret, r.read.text.data ? r.read.text.data : "", r.read.text.len);
    answer_free(&r);
    if (rc && err) *err = mine;
    return rc;
}
