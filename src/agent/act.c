/*
 * A call from a model: is it a repetition, may it run (mode and person), run it, put the result into the
 * session. After a change of the tree the older text is stale, and the test that the request names runs by
 * itself; an attempt whose test still fails is barred before the new output is computed, since what a weak
 * model sees it repeats (docs/kv.md, What a person and the agent do).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/parts.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { SHELL_MS = 120000, REFUSE_AT = 2, STOP_AT = 3 };

int agent__known(const void *user, const char *name)
{
    const tool_entry *t = tool_find(name);
    return !t ? -1 : t->takes_payload ? 1 : 0;
}

/* --- a call under way ----------------------------------------------------------------------------------- */

typedef struct running {
    agent *a;
    const tool_entry *tool;
    const char *name;
    base_json_doc *own_arguments; /* the person's edit of the command */
    char *own_payload;
    tool_call call;
    tool_preview preview;
    tool_result result;
    tool_limits limits;
    base_buf output; /* of a child, held back to whole UTF-8 */
    const char *
        again; /* the harness's test, where it is asked for: after what it runs again; NULL: any other call */
    bool change_approved; /* with again: the change before it was approved by the person */
    bool said_yes;        /* the person approved exactly this call, or their edit of it */
} running;

static void on_output(void *user, const char *bytes, size_t n)
{
    running *r = user;
    base_buf_add(&r->output, bytes, n);
    size_t whole = base_utf8_whole(r->output.data, r->output.len);
    if (!whole) return;
    char *text = base_xstrndup(r->output.data, whole);
    agent__emit(r->a,
        &(agent_event){.type = AGENT_EVENT_tool_output, .tool_output = {.turn = r->a->turn, .text = text}});
    free(text);
    memmove(r->output.data, r->output.data + whole, r->output.len - whole);
    r->output.len -= whole;
}

static running begin(agent *a, const char *name, const base_json *arguments, base_str payload)
{
    return (running){.a = a,
        .tool = tool_find(name),
        .name = name,
        .call = {.name = name, .arguments = arguments, .payload = payload, .request = a->request},
        .result = {.exit_code = -1},
        .limits = {.result_bytes = agent__room_bytes(a), .shell_ms = SHELL_MS, .cancel = a->cancel}};
}

/* The arguments of the shell tool: {"command": ...}. */
static int set_command(running *r, const char *command, base_err *err)
{
    base_buf json = {0};
    base_buf_puts(&json, "{\"command\":");
    base_json_put_str(&json, command, strlen(command));
    base_buf_putc(&json, '}');
    base_json_free(r->own_arguments);
    r->own_arguments = NULL;
    int rc = base_json_parse(json.data, json.len, &r->own_arguments, err);
    base_buf_free(&json);
    if (!rc) r->call.arguments = base_json_root(r->own_arguments);
    return rc;
}

static int begin_command(agent *a, const char *command, running *ret, base_err *err)
{
    *ret = begin(a, "shell", NULL, (base_str){0});
    return set_command(ret, command, err);
}

static void end(running *r)
{
    tool_preview_free(&r->preview);
    tool_result_free(&r->result);
    base_json_free(r->own_arguments);
    free(r->own_payload);
    base_buf_free(&r->output);
}

static void say(running *r, tool_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(running *r, tool_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    base_buf_vprintf(&r->result.text, format, args);
    va_end(args);
    r->result.status = status;
}

static bool is_settled(const running *r)
{
    return r->result.status != TOOL_OK || r->result.text.len > 0;
}

static void say_unknown(running *r)
{
    base_buf names = {0};
    uint32_t n;
    const tool_entry *const *table = tool_table(&n);
    for (uint32_t i = 0; i < n; i++)
        if (agent_prompt_offers(table[i], r->a->info.strong))
            base_buf_printf(&names, "%s%s", names.len ? ", " : "", table[i]->name);
    say(r, TOOL_FAILED, "There is no tool called \"%.60s\". The tools are: %s.\n", r->name, names.data);
    base_buf_free(&names);
}

static int prepare(running *r, base_err *err)
{
    if (!r->tool) {
        say_unknown(r);
        return 0;
    }
    tool_preview_free(&r->preview);
    return r->tool->prepare
               ? r->tool->prepare(r->a->workspace, &r->call, &r->limits, &r->preview, &r->result, err)
               : 0;
}

static void emit_call(const running *r)
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

/* --- repetition ----------------------------------------------------------------------------------------- */

static bool is_all_active(const agent *a, uint32_t from, uint32_t to)
{
    uint32_t *lanes = base_xcalloc(agent__n_tokens(a) + 1, sizeof *lanes);
    agent__active_lanes(a, lanes);
    bool all = true;
    for (uint32_t i = from; i < to; i++) all = all && lanes[i] == a->info.n_lanes;
    free(lanes);
    return all;
}

/* Answers a call that was made before and whose world has not changed. false: it is new. */
static bool answer_repeated(running *r, uint64_t key, bool *ret_stop)
{
    agent_made_call *made = agent__find_made(r->a, key);
    if (!made) return false;
    made->times++;
    if (made->times > STOP_AT) {
        agent__notice(r->a, "stopped: the same call was made %u times in a row", made->times);
        say(r, TOOL_REFUSED, "Stopped: this exact call was made %u times.\n", made->times);
        *ret_stop = true;
    } else if (made->times > REFUSE_AT) {
        say(r, TOOL_REFUSED,
            "Refused: this exact call was made twice and nothing changed. Answer with what you have, or make "
            "another call.\n");
    } else {
        base_err err = {0};
        if (!is_all_active(r->a, made->from, made->to) && agent__bring_back(r->a, made->from, made->to, &err))
            agent__notice(r->a, "the earlier result could not be brought back: %s", err.msg);
        say(r, TOOL_OK,
            "Unchanged since turn %u: the result of this exact call stands above and still holds.\n",
            made->turn);
    }
    return true;
}

static void remember_call(agent *a, const running *r, uint64_t key, uint32_t from, uint32_t to)
{
    /*
     * A refusal that shows the text ("was not read yet") asks for this very call: the next one is no
     * repetition.
     */
    if (r->result.status == TOOL_REFUSED && r->result.n_sources) return;
    agent_made_call *made = agent__find_made(a, key);
    if (made) return;
    base_grow(&a->made.calls, &a->made.cap_calls, a->made.n_calls + 1, sizeof *a->made.calls);
    a->made.calls[a->made.n_calls++] = (agent_made_call){key, a->made.world, a->turn, 1, from, to,
        (r->tool && r->tool->power != TOOL_READS) || r->result.status == TOOL_DENIED};
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

static const char *command_of(const running *r)
{
    return !strcmp(r->tool->name, "shell") ? base_json_str(r->call.arguments, "command", "") : NULL;
}

/* What a yes for longer than once is about: the exact command, or the exact call of another program. The caller frees. */
static char *allowed_text(const running *r)
{
    base_buf text = {0};
    if (r->tool->power != TOOL_RUNS) return NULL;
    if (command_of(r)) return base_xstrdup(command_of(r));
    base_buf_printf(&text, "%s: %s", r->tool->name, r->preview.detail ? r->preview.detail : "");
    return base_buf_take(&text);
}

/* Allowed for longer than this once; what asks for another reason than being a command asks all the same. */
static bool is_allowed(const running *r)
{
    const char *command = command_of(r);
    if (r->preview.is_obeyed || (r->preview.asks_once && !r->a->made.asked_once)) return false;
    char *text = allowed_text(r);
    const bool is_yes = text && ((command && agent__is_configured_yes(r->a, command)) ||
                                    agent__is_always_allowed(r->a, text));
    free(text);
    return is_yes;
}

/*
 * The same question before and after a change teaches people to press y unread. A yes to the harness's test
 * covers its own run of exactly this command after a change, if the question said so, within the turn, and if
 * the person approved the change too, or chose the mode in which changes are not asked about. Whatever the
 * model calls asks as ever.
 */
static void approve_again(const running *r)
{
    char *copy = base_xstrdup(command_of(r));
    free(r->a->test.approved);
    r->a->test.approved = copy;
    r->a->test.approved_turn = r->a->turn;
}

static bool is_approved_again(const running *r)
{
    const agent *a = r->a;
    return r->again && (r->change_approved || a->settings.mode == AGENT_MODE_EDITS) && a->test.approved &&
           a->test.approved_turn == a->turn && !strcmp(command_of(r), a->test.approved);
}

/* The person's version of the command or of the new text; prepared again, since it may not work. */
static int take_edit(running *r, const char *text, base_err *err)
{
    if (!text) return 0;
    if (command_of(r)) {
        int rc = set_command(r, text, err);
        if (rc) return rc;
    } else {
        free(r->own_payload);
        r->own_payload = base_xstrdup(text);
        r->call.payload = base_str_of(r->own_payload);
    }
    return prepare(r, err);
}

static int ask(running *r, base_err *err)
{
    agent *a = r->a;
    if (!a->host.approve) {
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_approval,
                           .approval = {.turn = a->turn, .decision = "denied", .reason = "nobody to ask"}});
        a->denied = true;
        say(r, TOOL_DENIED,
            "Denied: %s needs an approval%s and nobody can be asked in this run. Say what should be done "
            "instead.\n",
            r->name,
            r->preview.is_obeyed ? " in every mode, since git or the next session obeys this file," : "");
        return 0;
    }
    base_buf headline = {0};
    base_buf_printf(&headline, "%s", r->preview.headline ? r->preview.headline : r->name);
    if (r->again) base_buf_printf(&headline, " (runs again after %s)", r->again);
    if (r->preview.is_obeyed) base_buf_puts(&headline, " (git or the next session obeys this file)");
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
        say(r, TOOL_DENIED, "The person said no%s%s.\n", d.text && *d.text ? ": " : "", d.text ? d.text : "");
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
static verdict ask_once(running *r, verdict v)
{
    if (v != ALLOWED || !r->preview.asks_once || r->a->made.asked_once) return v;
    if (r->a->host.approve) return ASK;
    r->a->made.asked_once = true;
    agent__notice(r->a,
        "this machine has no mount namespace: what a command plants for git is found only when it "
        "has ended. Run no git in this tree meanwhile");
    return v;
}

static int permit(running *r, base_err *err)
{
    verdict v = ask_once(r, verdicts[r->a->settings.mode][r->tool->power]);
    if (v == ALLOWED && r->preview.is_obeyed) v = ASK;
    if (v == REFUSED)
        say(r, TOOL_REFUSED,
            "Refused: in mode plan nothing is written or run. Describe what should be done.\n");
    else if (v == ASK && is_approved_again(r))
        agent__notice(r->a, "%s runs again: approved in this turn", r->preview.headline);
    else if (v == ASK && !is_allowed(r))
        return ask(r, err);
    return 0;
}

/* --- running -------------------------------------------------------------------------------------------- */

static int execute(running *r, base_err *err)
{
    bool runs = r->tool->power == TOOL_RUNS;
    if (r->tool->power != TOOL_READS) agent__commit(r->a);
    if (runs) {
        r->limits.output = on_output;
        r->limits.output_user = r;
    }
    base_err mine = {0};
    int rc = r->tool->run(r->a->workspace, &r->call, &r->limits, &r->preview, &r->result, &mine);
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
    if (rc) say(r, TOOL_FAILED, "%s could not run: %s\n", r->name, mine.msg); /* data for the model as well */
    return 0;
}

static void emit_result(const running *r)
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

/* Guard, preparation, permission, run. Afterwards the result is settled and told. */
static int perform(running *r, uint64_t key, bool *ret_stop, base_err *err)
{
    bool repeated = r->tool && answer_repeated(r, key, ret_stop);
    const char *forbidden = repeated || !r->tool || r->tool->power != TOOL_WRITES
                                ? NULL
                                : agent__forbids_change(r->a, base_json_str(r->call.arguments, "path", NULL));
    if (forbidden) say(r, TOOL_REFUSED, "Refused: %s.\n", forbidden);
    int rc = repeated || forbidden ? 0 : prepare(r, err);
    if (rc) return rc;
    emit_call(r);
    if (!is_settled(r)) rc = permit(r, err);
    if (!rc && !is_settled(r)) rc = execute(r, err);
    if (!rc) emit_result(r);
    return rc;
}

/* --- what a change of the tree means -------------------------------------------------------------------- */

/* A test ran: it settles the open attempt, before its output is computed. */
static void judge(agent *a, const running *r)
{
    if (!a->fix.attempt.open || r->result.status == TOOL_DENIED || r->result.status == TOOL_REFUSED ||
        r->result.status == TOOL_CANCELLED)
        return;
    a->fix.attempt.open = false;
    a->fix.passed = r->result.status == TOOL_OK;
    if (a->fix.passed) return;
    a->fix.attempts++;
    base_err err = {0};
    if (agent__put_failed(a, a->fix.attempt.from, a->fix.attempt.to, &err))
        agent__notice(a, "the failed attempt could not be put aside: %s", err.msg);
}

static void after_change(agent *a, const running *r, uint64_t key)
{
    for (char **p = r->result.changed; p && *p; p++) {
        base_buf text = {0};
        agent__mark_stale(a, *p);
        const bool is_old = !tool_workspace_read(a->workspace, *p, 4 << 20, &text, NULL) &&
                            tool_undo_is_before(a->workspace, *p, text.data ? text.data : "", text.len);
        if (is_old)
            agent__taken_back(a, *p);
        else
            agent__changed(a, *p);
        base_buf_free(&text);
    }
    if (r->result.changed) a->made.world++;
    if (r->tool && r->tool->power == TOOL_RUNS && r->result.status != TOOL_DENIED &&
        r->result.status != TOOL_REFUSED) {
        a->made.world += key != a->made.last_shell;
        a->made.last_shell = key;
        base_buf told = {0};
        agent__notice_changes(a, &told); /* a command may write too */
        base_buf_free(&told);
    }
}

/* The result's text into the session, and which of its bytes are which lines of which file. */
static int append_result(agent *a, const running *r, uint32_t *ret_from, uint32_t *ret_to, base_err *err)
{
    const tool_result *t = &r->result;
    const tool_source *only = t->n_sources == 1 ? &t->sources[0] : NULL;
    base_buf label = {0};
    base_buf_printf(&label, "%s", r->name);
    const char *path = base_json_str(r->call.arguments, "path", NULL);
    if (path) base_buf_printf(&label, " %s", path);
    agent_text text = {.origin = KV_ORIGIN_TOOL,
        .text = t->text.data ? t->text.data : "",
        .n = t->text.len,
        .label = label.data,
        .structure = only != NULL,
        .path = only ? only->path : NULL,
        .source_from = only ? only->from : 0,
        .version = only ? only->version : NULL,
        .line = only ? only->line : 0,
        .words = a->test.command,
        .sources = t->sources,
        .n_sources = t->n_sources};
    size_t index = SIZE_MAX;
    if (only) {
        text.line_end = only->line;
        for (uint32_t i = only->from; i + 1 < only->to; i++) text.line_end += t->text.data[i] == '\n';
    }
    int rc = agent__append(a, &text, &index, err);
    if (!rc && index != SIZE_MAX) {
        *ret_from = a->transcript.segments[index].from;
        *ret_to = a->transcript.segments[index].to;
        for (uint32_t i = 0; i < t->n_sources && !only; i++) {
            const tool_source *s = &t->sources[i];
            uint32_t line_end = s->line;
            for (uint32_t k = s->from; k + 1 < s->to; k++) line_end += t->text.data[k] == '\n';
            agent__add_shown(a, index, s->from, s->to, s->path, s->version, s->line, line_end);
        }
    }
    base_buf_free(&label);
    return rc;
}

/* Nothing was tested: a shell without the command, or Python without pytest. */
static bool lacks_runner(const tool_result *t)
{
    static const char no_pytest[] = "No module named pytest";
    return t->exit_code == 127 || (t->status == TOOL_FAILED && t->text.len &&
                                      memmem(t->text.data, t->text.len, no_pytest, sizeof no_pytest - 1));
}

/* A test that the program chose has to be able to tell right from wrong: else it says nothing of the change. */
static void give_up_judging(agent *a, running *test)
{
    const char *why = NULL;
    const bool had_values = a->test.has_values;
    if (had_values && agent__values_judge(a, &test->result)) return;
    if (had_values && !a->test.has_values) { /* they could not be checked, and nothing else ran */
        a->fix.no_test = !a->test.command;
        a->fix.failing = false;
        return;
    }
    const char *plain = a->test.has_values ? a->test.plain : a->test.command;
    if (test->result.status == TOOL_TIMEOUT)
        why = "it takes too long";
    else if (agent__fails_without(a, plain, NULL))
        why = "it fails without the change too";
    if (!why) return;
    agent__notice(a, "%s cannot judge the change: %s", plain, why);
    a->fix.no_test = !a->test.has_values;
    a->fix.failing = false;
    if (!a->test.has_values) return;
    agent__drop_plain(a);
    test->result.status = TOOL_OK; /* the values hold */
}

/* Values of the request make a long program: the question and the log have it whole, a line says what it is. */
static void shorten_headline(const agent *a, running *r)
{
    base_buf head = {0};
    const char *whole = r->preview.headline;
    const size_t n = strlen("$ ") + strlen(a->test.command);
    if (!whole || strlen(whole) < n) return;
    base_buf_printf(&head, "$ values of the request%s%s%s", a->test.plain ? ", then " : "",
        a->test.plain ? a->test.plain : "", whole + n);
    free(r->preview.headline);
    r->preview.headline = base_buf_take(&head);
}

/*
 * The named test, run by the harness before (change NULL) and after a change; there its output follows the
 * change's result in the same message.
 */
static int run_test(agent *a, const running *change, running *ret, base_err *err)
{
    enum { TEST_MS = 60000, TEST_BYTES = 2400 };
    int rc = begin_command(a, a->test.command, ret, err);
    if (rc) return rc;
    if (a->settings.mode == AGENT_MODE_EDITS)
        ret->again = "each change of this turn";
    else if (a->settings.mode == AGENT_MODE_ASK)
        ret->again = change ? "a further change" : "the change";
    ret->change_approved = change && change->said_yes;
    ret->limits.shell_ms = TEST_MS;
    if (ret->limits.result_bytes > TEST_BYTES) ret->limits.result_bytes = TEST_BYTES;
    rc = prepare(ret, err);
    if (!rc && a->test.has_values) shorten_headline(a, ret);
    if (!rc) emit_call(ret);
    if (!rc && !is_settled(ret)) rc = permit(ret, err);
    if (!rc && !is_settled(ret)) rc = execute(ret, err);
    if (!rc) emit_result(ret);
    if (!rc && (ret->result.status == TOOL_DENIED || ret->result.status == TOOL_REFUSED))
        a->fix.no_test = true;
    if (!rc && lacks_runner(&ret->result)) {
        a->fix.no_test = true;
        agent__notice(a,
            "the test cannot judge, since what runs it is not installed: %s; install it, or name another "
            "test",
            a->test.command);
    }
    a->fix.failing =
        !a->fix.no_test && (ret->result.status == TOOL_FAILED || ret->result.status == TOOL_TIMEOUT);
    const bool had_values = a->test.has_values;
    if (!rc && a->fix.failing && change && a->test.is_found) give_up_judging(a, ret);
    if (!rc && a->test.has_values && ret->result.status == TOOL_OK) agent__values_hold(a, &ret->result);
    if (rc || !had_values || a->test.has_values || !a->test.command) return rc;
    end(ret); /* without the values, which cannot be checked here */
    *ret = (running){0};
    return run_test(a, change, ret, err);
}

/*
 * Test runners end with how long they took (" in 0.03s"): the same test shall read the same, or answers to it
 * differ by chance.
 */
static void put_without_time(base_buf *out, const char *text, size_t n)
{
    static const char in[] = " in ";
    for (size_t i = 0; i < n;) {
        size_t digits = i + sizeof in - 1, to = digits;
        if (digits < n && !memcmp(text + i, in, sizeof in - 1))
            while (to < n && (isdigit((unsigned char)text[to]) || text[to] == '.')) to++;
        bool is_time = to > digits && to < n && text[to] == 's' &&
                       (to + 1 == n || !isalnum((unsigned char)text[to + 1]));
        if (is_time)
            i = to + 1;
        else
            base_buf_putc(out, text[i++]);
    }
}

static int append_test(agent *a, const running *test, uint32_t *ret_from, uint32_t *ret_to, base_err *err)
{
    base_buf text = {0};
    base_buf_printf(&text, "%s\n", test->preview.headline ? test->preview.headline : "$ test");
    if (test->result.text.data) put_without_time(&text, test->result.text.data, test->result.text.len);
    agent_text t = {.origin = KV_ORIGIN_TOOL, .text = text.data, .n = text.len, .label = "test"};
    size_t index = SIZE_MAX;
    int rc = agent__append(a, &t, &index, err);
    if (!rc && index != SIZE_MAX) {
        *ret_from = a->transcript.segments[index].from;
        *ret_to = a->transcript.segments[index].to;
        remember_call(
            a, test, agent__call_key("shell", test->call.arguments, (base_str){0}), *ret_from, *ret_to);
    }
    base_buf_free(&text);
    return rc;
}

int agent__run_test_first(agent *a, base_err *err)
{
    running test = {0};
    uint32_t from, to;
    int rc = run_test(a, NULL, &test, err);
    if (!rc) after_change(a, &test, agent__call_key("shell", test.call.arguments, (base_str){0}));
    if (!rc && !a->fix.no_test) {
        a->fix.passed = test.result.status == TOOL_OK;
        if (a->fix.passed) agent__notice(a, "the named test passes as the tree is now");
        rc = append_test(a, &test, &from, &to, err);
        agent_text gap = {.origin = KV_ORIGIN_TOOL, .text = "\n", .n = 1};
        if (!rc) rc = agent__append(a, &gap, NULL, err);
    }
    end(&test);
    return rc;
}

/* --- the whole call ------------------------------------------------------------------------------------- */

static int append_all(
    agent *a, const running *r, const running *test, const base_buf *told, uint64_t key, base_err *err)
{
    uint32_t from = 0, to = 0, test_from = 0, test_to = 0;
    int rc = agent__open_message(a, MODEL_ROLE_TOOL, err);
    if (!rc) rc = append_result(a, r, &from, &to, err);
    if (!rc) remember_call(a, r, key, from, to);
    if (!rc && test->name && !a->fix.no_test) rc = append_test(a, test, &test_from, &test_to, err);
    if (!rc && told->len) {
        agent_text t = {.origin = KV_ORIGIN_TOOL, .text = told->data, .n = told->len, .label = "harness"};
        rc = agent__append(a, &t, NULL, err);
    }
    if (!rc) rc = agent__repair(a, from, test_to ? test_to : to, err);
    return rc ? rc : agent__open_message(a, MODEL_ROLE_ASSISTANT, err);
}

/* Which definition this was, for a further attempt at it. */
static void remember_written(agent *a, const running *r)
{
    const char *name = base_json_str(r->call.arguments, "name", NULL);
    const bool is_definition = name && r->call.payload.ptr;
    free(a->fix.path);
    free(a->fix.name);
    a->fix.path = is_definition ? base_xstrdup(r->result.changed[0]) : NULL;
    a->fix.name = is_definition ? base_xstrdup(name) : NULL;
}

/* "Type.member" where a member was written under its type's name. The caller frees. */
static char *name_written(const agent *a, const char *path, const char *name, base_str block)
{
    base_buf whole = {0};
    code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, block.ptr, block.len);
    const code_definition *d = NULL;
    for (uint32_t i = 0; i < f->n_definitions && !d; i++)
        if (f->definitions[i].body_to > f->definitions[i].body_from) d = &f->definitions[i];
    const char *dot = strrchr(name, '.');
    if (d && strcmp(d->name, dot ? dot + 1 : name) != 0) {
        base_buf_printf(&whole, "%s.%s", name, d->name);
        if (!code_index_is_defined(tool_workspace_index(a->workspace), whole.data)) base_buf_clear(&whole);
    }
    if (!whole.len) base_buf_puts(&whole, name);
    code_file_free(f);
    return base_buf_take(&whole);
}

/* A definition of the tree that was to be rewritten and was not: its next attempt is begun for the model. */
static void remember_target(agent *a, const running *r)
{
    const char *name = base_json_str(r->call.arguments, "name", NULL);
    const char *path = base_json_str(r->call.arguments, "path", NULL);
    code_index *x = tool_workspace_index(a->workspace);
    char *full = path ? code_index_path(x, path) : NULL;
    if (full && name && r->call.payload.ptr && code_index_is_defined(x, name)) {
        free(a->fix.path);
        free(a->fix.name);
        a->fix.path = base_xstrdup(full);
        a->fix.name = name_written(a, full, name, r->call.payload);
    }
    free(full);
}

/*
 * What the program chose to judge by waits until all that was asked for is there, and does not run where nobody
 * can be asked.
 */
static bool may_judge(const agent *a)
{
    if (!a->test.is_found) return true;
    if (!a->host.approve && a->settings.mode != AGENT_MODE_ALL &&
        !agent__is_always_allowed(a, a->test.command) && !agent__is_configured_yes(a, a->test.command))
        return false;
    base_buf missing = {0};
    const bool is_whole = !agent__is_missing(a, &missing);
    base_buf_free(&missing);
    return is_whole;
}

/* Lines of a file, by the edit tool: seen, asked about and undone like any change. */
static int change_lines(agent *a, const char *path, const agent_expectation *e, bool *ret_done, base_err *err)
{
    base_buf json = {0};
    running r = begin(a, "edit", NULL, (base_str){e->text.data, e->text.len});
    base_buf_puts(&json, "{\"path\":");
    base_json_put_str(&json, path, strlen(path));
    base_buf_printf(&json, ",\"from\":%u,\"to\":%u}", e->line, e->line_end);
    int rc = base_json_parse(json.data, json.len, &r.own_arguments, err);
    if (!rc) {
        r.call.arguments = base_json_root(r.own_arguments);
        rc = prepare(&r, err);
    }
    if (!rc) emit_call(&r);
    if (!rc && !is_settled(&r)) rc = permit(&r, err);
    if (!rc && !is_settled(&r)) rc = execute(&r, err);
    if (!rc) emit_result(&r);
    if (!rc) after_change(a, &r, agent__call_key("edit", r.call.arguments, r.call.payload));
    *ret_done = !rc && r.result.status == TOOL_OK && r.result.changed;
    base_buf_free(&json);
    end(&r);
    return rc;
}

/* While the new test fails for a literal that the code gives otherwise: that is put right, and it runs again. */
static int put_expectations_right(agent *a, const running *change, running *test, base_err *err)
{
    enum { MOST = 6 };
    int rc = 0;
    bool goes_on = true;
    for (uint32_t n = 0; !rc && goes_on && n < MOST && a->fix.failing; n++) {
        agent_expectation e;
        goes_on = agent__find_expectation(a, test->result.text.data, &e);
        if (goes_on) {
            char version[65];
            base_buf now = {0};
            const char *path = a->asked.new_test.path;
            if (!tool_workspace_read(a->workspace, path, 4 << 20, &now, NULL)) {
                base_sha256_hex(now.data ? now.data : "", now.len, version);
                tool_workspace_mark_shown(a->workspace, path, version);
            }
            base_buf_free(&now);
            agent__notice(a, "%s", e.told.data);
            rc = change_lines(a, path, &e, &goes_on, err);
        }
        agent_expectation_free(&e);
        if (rc || !goes_on) break;
        a->asked.new_test.n_put_right++;
        end(test);
        *test = (running){0};
        rc = run_test(a, change, test, err);
    }
    return rc;
}

int agent__act(agent *a, const agent_call *call, uint32_t from, uint32_t to, bool *ret_stop, base_err *err)
{
    base_str payload = {call->payload, call->payload_n};
    running r = begin(a, call->name, base_json_root(call->arguments), payload), test = {0};
    uint64_t key = agent__call_key(r.name, r.call.arguments, payload);
    *ret_stop = false;
    int rc = perform(&r, key, ret_stop, err);
    bool wrote = !rc && r.result.changed && r.result.status == TOOL_OK && r.tool->power == TOOL_WRITES;
    if (!rc) after_change(a, &r, key);
    const char *command = !rc && r.tool ? command_of(&r) : NULL;
    if (command && agent__runs_tests(command)) {
        judge(a, &r);
        if (r.result.exit_code >= 0) agent__set_test(a, command);
        a->fix.failing = r.result.exit_code > 0;
    }
    if (wrote) {
        a->fix.attempt = (agent_attempt){from, to, true};
        a->fix.writes++;
        a->fix.passed = false;
        remember_written(a, &r);
        a->asked.n_operations += !strcmp(r.name, "refactor");
    }
    bool tried = !rc && r.tool && r.tool->power == TOOL_WRITES;
    if (tried && !wrote && r.result.status != TOOL_DENIED && r.result.status != TOOL_CANCELLED) {
        if (r.result.status == TOOL_FAILED) remember_target(a, &r);
        agent__came_to_nothing(a, from, to);
    }
    base_buf told = {0};
    if (wrote && a->asked.change && !a->fix.no_test) agent__find_judge(a, r.result.changed[0]);
    if (wrote && a->test.command && !a->fix.no_test && may_judge(a)) {
        rc = run_test(a, &r, &test, err);
        if (!rc && a->fix.failing && a->asked.new_test.path) rc = put_expectations_right(a, &r, &test, err);
        if (!rc && !a->fix.no_test) judge(a, &test);
        if (!rc) after_change(a, &test, agent__call_key("shell", test.call.arguments, (base_str){0}));
        if (!rc && a->fix.failing)
            agent__take_back(a, base_json_str(r.call.arguments, "path", ""),
                base_json_str(r.call.arguments, "name", ""), &told);
    }
    if (!rc && !*ret_stop) rc = append_all(a, &r, &test, &told, key, err);
    base_buf_free(&told);
    end(&r);
    end(&test);
    return rc;
}

/*
 * Who is at the screen typed it: that is the yes, and the sandbox stays. Where nobody is, the text may be
 * anybody's (a script hands an issue's title on), so the mode decides as for the model's commands. In mode
 * plan nothing runs, whoever asks.
 */
static int permit_line(running *r, base_err *err)
{
    agent *a = r->a;
    if (a->host.approve && a->settings.mode != AGENT_MODE_PLAN) return 0;
    if (a->settings.mode != AGENT_MODE_PLAN) return permit(r, err);
    a->denied = !a->host.approve;
    say(r, TOOL_DENIED, "In mode plan nothing is run: choose another mode for \"!\".\n");
    return 0;
}

int agent__shell_line(agent *a, const char *command, bool is_typed, base_err *err)
{
    if (!command[strspn(command, " \t\n")]) {
        base_err usage = {0};
        int wrong = base_fail(&usage, BASE_E_USAGE, "! runs a command of the shell: !ls, say");
        agent__error(a, &usage);
        if (err) *err = usage;
        return wrong;
    }
    running r;
    int rc = begin_command(a, command, &r, err);
    r.call.is_persons = is_typed && a->host.approve; /* without one at hand the line can be anybody's */
    if (!rc) rc = prepare(&r, err);
    if (!rc) emit_call(&r);
    if (!rc && !is_settled(&r)) rc = permit_line(&r, err);
    bool runs = !rc && !is_settled(&r);
    if (runs && r.call.is_persons && !a->made.told_box) {
        a->made.told_box = true;
        agent__notice(a, "your own commands are confined as well: they see your home but for keys and "
                         "credentials, what they write "
                         "there is not kept, and they reach no network");
    }
    if (runs) rc = execute(&r, err);
    if (!rc) emit_result(&r);
    if (!rc && runs) {
        base_buf_printf(&a->notes.shell, "The person ran: $ %s\n", command);
        base_buf_add(&a->notes.shell, r.result.text.data ? r.result.text.data : "", r.result.text.len);
        base_buf_putc(&a->notes.shell, '\n');
        after_change(a, &r, agent__call_key("shell", r.call.arguments, (base_str){0}));
    }
    end(&r);
    return rc;
}

/* A person's /rename and its like: the tool's own diff is shown and asked as the mode says. */
int agent__operate(agent *a, const char *json, base_err *err)
{
    running r = begin(a, "refactor", NULL, (base_str){0});
    int rc = base_json_parse(json, strlen(json), &r.own_arguments, err);
    if (!rc) {
        r.call.arguments = base_json_root(r.own_arguments);
        rc = prepare(&r, err);
    }
    if (!rc) emit_call(&r);
    if (!rc && !is_settled(&r)) rc = permit(&r, err);
    if (!rc && !is_settled(&r)) rc = execute(&r, err);
    if (!rc) emit_result(&r);
    if (!rc) after_change(a, &r, agent__call_key("refactor", r.call.arguments, (base_str){0}));
    if (!rc && r.result.text.len) {
        if (r.result.status == TOOL_OK)
            base_buf_printf(&a->notes.shell, "The person: %s", r.result.text.data);
        agent__notice(a, "%.*s", (int)strcspn(r.result.text.data, "\n"), r.result.text.data);
    }
    end(&r);
    return rc;
}
