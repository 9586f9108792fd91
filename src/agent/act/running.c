/*
 * One call from its arguments to its result (contract: running.h).
 */
#include "agent/act/running.h"
#include "agent/approve/approve.h"
#include "agent/call/prompt.h"
#include "agent/judge/judge.h"
#include "agent/repair/attempt.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { SHELL_MS = 120000 };

/*
 * What is shown ends at a NUL byte and what the model reads does not: in both stands the letter that is made for what cannot be written,
 * as long as it, so that places in the text stay.
 */
static void show_nuls(char *text, size_t n)
{
    for (char *at = n ? memchr(text, 0, n) : NULL; at; at = memchr(at, 0, (size_t)(text + n - at)))
        *at = AGENT_FOR_NUL;
}

static void on_output(void *user, const char *bytes, size_t n)
{
    agent_running *r = user;
    base_buf_add(&r->output, bytes, n);
    show_nuls(r->output.data, r->output.len);
    size_t whole = base_utf8_whole(r->output.data, r->output.len);
    if (!whole) return;
    char *text = base_xstrndup(r->output.data, whole);
    agent__emit(r->a,
        &(agent_event){.type = AGENT_EVENT_tool_output, .tool_output = {.turn = r->a->turn, .text = text}});
    free(text);
    memmove(r->output.data, r->output.data + whole, r->output.len - whole);
    r->output.len -= whole;
}

agent_running agent__running_begin(agent *a, const char *name, const base_json *arguments, base_str payload)
{
    const bool is_whole = !a->info.strong && !strcmp(name, "rewrite") && base_json_get(arguments, "from") &&
                          !agent__are_narrowed(a, arguments);
    return (agent_running){.a = a,
        .tool = tool_find(name),
        .name = name,
        .call = {.name = name,
            .arguments = arguments,
            .payload = payload,
            .request = a->request,
            .is_whole = is_whole},
        .result = {.exit_code = -1},
        .limits = {.result_bytes = agent__room_bytes(a), .shell_ms = SHELL_MS, .cancel = a->cancel}};
}

int agent__running_set_arguments(agent_running *r, const char *json, base_err *err)
{
    base_json_free(r->own_arguments);
    r->own_arguments = NULL;
    const int rc = base_json_parse(json, strlen(json), &r->own_arguments, err);
    if (!rc) r->call.arguments = base_json_root(r->own_arguments);
    return rc;
}

/* The arguments of the shell tool: {"command": ...}. */
static int set_command(agent_running *r, const char *command, base_err *err)
{
    base_buf json = {0};
    base_buf_puts(&json, "{\"command\":");
    base_json_put_str(&json, command, strlen(command));
    base_buf_putc(&json, '}');
    const int rc = agent__running_set_arguments(r, json.data, err);
    base_buf_free(&json);
    return rc;
}

int agent__running_begin_command(agent *a, const char *command, agent_running *ret, base_err *err)
{
    *ret = agent__running_begin(a, "shell", NULL, (base_str){0});
    return set_command(ret, command, err);
}

void agent__running_end(agent_running *r)
{
    tool_preview_free(&r->preview);
    tool_result_free(&r->result);
    base_json_free(r->own_arguments);
    free(r->own_payload);
    base_buf_free(&r->output);
}

void agent__running_say(agent_running *r, tool_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    base_buf_vprintf(&r->result.text, format, args);
    va_end(args);
    r->result.status = status;
}

/* There is a result: nothing is asked and run any more. */
static bool is_settled(const agent_running *r)
{
    return r->result.status != TOOL_OK || r->result.text.len > 0;
}

static void say_unknown(agent_running *r)
{
    base_buf names = {0};
    uint32_t n;
    const tool_entry *const *table = tool_table(&n);
    for (uint32_t i = 0; i < n; i++)
        if (agent_prompt_offers(table[i], r->a->info.strong))
            base_buf_printf(&names, "%s%s", names.len ? ", " : "", table[i]->name);
    agent__running_say(
        r, TOOL_FAILED, "There is no tool called \"%.60s\". The tools are: %s.\n", r->name, names.data);
    base_buf_free(&names);
}

int agent__running_prepare(agent_running *r, base_err *err)
{
    if (!r->tool) {
        say_unknown(r);
        return 0;
    }
    tool_preview_free(&r->preview);
    if (r->call.payload.len && memchr(r->call.payload.ptr, 0, r->call.payload.len)) {
        agent__running_say(r, TOOL_REFUSED,
            "Refused: there is a NUL byte in the block, which no text has. Write it again without.\n");
        return 0;
    }
    return r->tool->prepare
               ? r->tool->prepare(r->a->workspace, &r->call, &r->limits, &r->preview, &r->result, err)
               : 0;
}

static void emit_call(const agent_running *r)
{
    base_buf json = {0}, head = {0};
    if (r->call.arguments) base_json_put(&json, r->call.arguments);
    char *payload = r->call.payload.ptr ? base_xstrndup(r->call.payload.ptr, r->call.payload.len) : NULL;
    base_buf_printf(&head, "%s", r->name);
    for (const base_json *m = r->call.arguments ? r->call.arguments->first : NULL; m; m = m->next) {
        if (m->type == BASE_JSON_NULL) continue; /* as good as not given */
        base_buf_putc(&head, ' ');
        if (m->type == BASE_JSON_STRING)
            base_buf_add(&head, m->string, m->string_len);
        else
            base_json_put(&head, m);
    }
    agent__emit(r->a, &(agent_event){.type = AGENT_EVENT_tool_call,
                          .tool_call = {.turn = r->a->turn,
                              .name = r->name,
                              .arguments = json.len ? json.data : "{}",
                              .payload = payload,
                              .headline = r->preview.headline ? r->preview.headline : head.data}});
    base_buf_free(&json);
    base_buf_free(&head);
    free(payload);
}

/* --- permission ----------------------------------------------------------------------------------------- */

typedef enum verdict { ALLOWED, ASK, REFUSED } verdict;

static const verdict verdicts[][3] = {
    /*                    reads    writes   runs */
    [AGENT_MODE_PLAN] = {ALLOWED, REFUSED, REFUSED},
    [AGENT_MODE_ASK] = {ALLOWED, ASK, ASK},
    [AGENT_MODE_EDITS] = {ALLOWED, ALLOWED, ASK},
    [AGENT_MODE_ALL] = {ALLOWED, ALLOWED, ALLOWED},
};
static const char *const power_words[] = {"reads", "writes", "runs"};

const char *agent__running_command(const agent_running *r)
{
    return !strcmp(r->tool->name, "shell") ? base_json_str(r->call.arguments, "command", "") : NULL;
}

/* What a yes for longer than once is about: the exact command, or the exact call of another program. The caller frees. */
static char *allowed_text(const agent_running *r)
{
    base_buf text = {0};
    if (r->tool->power != TOOL_RUNS) return NULL;
    if (agent__running_command(r)) return agent__allowance(r->a, agent__running_command(r), r->call.in_copy);
    base_buf_printf(&text, "%s: %s", r->tool->name, r->preview.detail ? r->preview.detail : "");
    return base_buf_take(&text);
}

/* What no mode and no earlier yes allows. */
static bool asks_in_every_mode(const agent_running *r)
{
    return r->preview.obeyed_by || r->preview.is_foreign;
}

/* Allowed for longer than this once; what asks for another reason than being a command asks all the same. */
static bool is_allowed(const agent_running *r)
{
    const char *command = agent__running_command(r);
    if (asks_in_every_mode(r) || (r->preview.asks_once && !r->a->made.asked_once)) return false;
    if (command) return agent__is_allowed_command(r->a, command, r->call.in_copy);
    char *text = allowed_text(r);
    const bool is_yes = text && agent__is_always_allowed(r->a, text);
    free(text);
    return is_yes;
}

/*
 * The same question before and after a change teaches people to press y unread. A yes to the harness's test
 * covers its own run of exactly this command after a change, if the question said so, within the turn, and if
 * the person approved the change too, or chose the mode in which changes are not asked about. Whatever the
 * model calls asks as ever.
 */
static void approve_again(const agent_running *r)
{
    char *copy = base_xstrdup(agent__running_command(r));
    free(r->a->test.approved);
    r->a->test.approved = copy;
    r->a->test.approved_turn = r->a->turn;
}

static bool is_approved_again(const agent_running *r)
{
    const agent *a = r->a;
    return r->again && (r->change_approved || a->settings.mode == AGENT_MODE_EDITS) && a->test.approved &&
           a->test.approved_turn == a->turn && !strcmp(agent__running_command(r), a->test.approved);
}

/* The person's version of the command or of the new text; prepared again, since it may not work. */
static int take_edit(agent_running *r, const char *text, base_err *err)
{
    if (!text) return 0;
    if (agent__running_command(r)) {
        int rc = set_command(r, text, err);
        if (rc) return rc;
    } else {
        free(r->own_payload);
        r->own_payload = base_xstrdup(text);
        r->call.payload = base_str_of(r->own_payload);
    }
    return agent__running_prepare(r, err);
}

static int ask(agent_running *r, base_err *err)
{
    agent *a = r->a;
    base_buf headline = {0}, unasked = {0};
    if (r->preview.obeyed_by)
        base_buf_printf(&unasked, " in every mode, since %s would obey it unasked", r->preview.obeyed_by);
    else if (r->preview.is_foreign)
        base_buf_puts(
            &unasked, " in every mode, since it is generated or vendored and lost when it is made again");
    char *why = agent__running_command(r) ? agent__why_again(a, agent__running_command(r)) : NULL;
    if (why) base_buf_printf(&unasked, " again: %s", why);
    free(why);
    if (!a->host.approve) {
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_approval,
                           .approval = {.turn = a->turn, .decision = "denied", .reason = "nobody to ask"}});
        a->denied = true;
        agent__running_say(r, TOOL_DENIED,
            "Denied: %s needs an approval%s, and nobody can be "
            "asked in this run. Say what should be done instead.\n",
            r->name, unasked.data ? unasked.data : "");
        base_buf_free(&unasked);
        return 0;
    }
    base_buf_printf(&headline, "%s", r->preview.headline ? r->preview.headline : r->name);
    if (r->again) base_buf_printf(&headline, " (runs again after %s)", r->again);
    if (unasked.len) base_buf_printf(&headline, " (asked%s)", unasked.data);
    base_buf_free(&unasked);
    agent_event request = {.type = AGENT_EVENT_approval_request,
        .approval_request = {.turn = a->turn,
            .name = r->name,
            .headline = headline.data,
            .detail = r->preview.detail,
            .power = power_words[r->tool->power]}};
    const agent_decision d = agent__ask_person(a, &request);
    base_buf_free(&headline);
    r->said_yes = d.answer != AGENT_NO;
    a->asked.refused = a->asked.refused || !r->said_yes;
    if (r->said_yes && r->preview.asks_once) a->made.asked_once = true;
    if (r->again && d.answer == AGENT_YES) approve_again(r);
    int rc = 0;
    if (d.answer == AGENT_NO)
        agent__running_say(
            r, TOOL_DENIED, "The person said no%s%s.\n", d.text && *d.text ? ": " : "", d.text ? d.text : "");
    else if (d.answer == AGENT_EDIT)
        rc = take_edit(r, d.text, err);
    char *allowed = d.answer == AGENT_ALWAYS || d.answer == AGENT_ALWAYS_HERE ? allowed_text(r) : NULL;
    if (allowed) agent__allow_always(a, allowed, d.answer == AGENT_ALWAYS_HERE);
    free(allowed);
    free(d.text);
    return rc;
}

/*
 * Mode all on a machine that cannot protect .git while a command runs: the person knows before the first one.
 */
static verdict ask_once(agent_running *r, verdict v)
{
    if (v != ALLOWED || !r->preview.asks_once || r->a->made.asked_once) return v;
    if (r->a->host.approve) return ASK;
    r->a->made.asked_once = true;
    agent__notice(r->a,
        "this machine has no mount namespace: what a command plants for git is found only when it "
        "has ended. Run no git in this tree meanwhile");
    return v;
}

int agent__running_permit(agent_running *r, base_err *err)
{
    verdict v = ask_once(r, verdicts[r->a->settings.mode][r->tool->power]);
    if (v == ALLOWED && asks_in_every_mode(r)) v = ASK;
    if (v == REFUSED)
        agent__running_say(r, TOOL_REFUSED,
            "Refused: in mode plan nothing is written or run. Describe what should be done.\n");
    else if (v == ASK && is_approved_again(r))
        agent__notice(r->a, "%s runs again: approved in this turn", r->preview.headline);
    else if (v == ASK && !is_allowed(r))
        return ask(r, err);
    return 0;
}

/* --- running -------------------------------------------------------------------------------------------- */

static int execute(agent_running *r, base_err *err)
{
    bool runs = r->tool->power == TOOL_RUNS;
    if (r->tool->power != TOOL_READS) agent__commit(r->a);
    if (runs) {
        r->limits.output = on_output;
        r->limits.output_user = r;
    }
    base_err mine = {0};
    r->has_run = true;
    int rc = r->tool->run(r->a->workspace, &r->call, &r->limits, &r->preview, &r->result, &mine);
    show_nuls(r->result.text.data, r->result.text.len);
    /*
     * What the guard of .git found is the person's to know, however the call ended and whatever is shown of
     * its result.
     */
    for (const char *line = r->result.notice; line && *line;) {
        size_t n = strcspn(line, "\n");
        agent__notice(r->a, "%.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
    if (rc == BASE_E_CANCELLED || rc == BASE_E_NOMEM) {
        if (err) *err = mine;
        return rc;
    }
    if (rc)
        agent__running_say(
            r, TOOL_FAILED, "%s could not run: %s\n", r->name, mine.msg); /* data for the model as well */
    return 0;
}

static void emit_result(const agent_running *r)
{
    const tool_result *t = &r->result;
    size_t n_changed = 0;
    while (t->changed && t->changed[n_changed]) n_changed++;
    agent_changed_row *changed = n_changed ? base_xcalloc(n_changed, sizeof *changed) : NULL;
    agent_shown_row *segments = t->n_sources ? base_xcalloc(t->n_sources, sizeof *segments) : NULL;
    for (size_t i = 0; i < n_changed; i++) changed[i].path = t->changed[i];
    for (uint32_t i = 0; i < t->n_sources; i++) {
        const tool_source *s = &t->sources[i];
        segments[i] = (agent_shown_row){s->from, s->to, s->path, s->version, s->line};
    }
    agent__emit(r->a, &(agent_event){.type = AGENT_EVENT_tool_result,
                          .tool_result = {.turn = r->a->turn,
                              .name = r->name,
                              .status = tool_status_word(t->status),
                              .bytes = (int64_t)(t->total_bytes ? t->total_bytes : t->text.len),
                              .text = t->text.data ? t->text.data : "",
                              .summary = t->summary,
                              .diff = t->diff,
                              .exit_code = t->exit_code,
                              .ms = (int64_t)t->ms,
                              .changed = {changed, n_changed},
                              .segments = {segments, t->n_sources}}});
    free(changed);
    free(segments);
    agent__commit(r->a);
}

int agent__running_carry_out(agent_running *r, agent_permit_fn *permit, base_err *err)
{
    int rc = 0;
    emit_call(r);
    if (!is_settled(r)) rc = permit(r, err);
    if (!rc && !is_settled(r)) rc = execute(r, err);
    if (!rc) emit_result(r);
    return rc;
}
