/*
 * What a call from a model means for the session: is it a repetition, its result into the session. After a change
 * of the tree the older text is stale, and the test that the request names runs by itself; an attempt whose test
 * still fails is barred before the new output is computed, since what a weak model sees it repeats (docs/kv.md,
 * What a person and the agent do). The call itself is running.c's.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/act/act.h"
#include "agent/act/guard.h"
#include "agent/act/running.h"
#include "agent/approve/approve.h"
#include "agent/asked/asked.h"
#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/words/values.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "code/code.h"

enum { REFUSE_AT = 2, STOP_AT = 3 };

int agent__known(const void *user, const char *name)
{
    const tool_entry *t = tool_find(name);
    return !t ? -1 : t->takes_payload ? 1 : 0;
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
static bool answer_repeated(agent_running *r, uint64_t key, bool *ret_stop)
{
    agent_made_call *made = agent__find_made(r->a, key);
    if (!made || agent__is_aside(r->a, made->from, made->to)) return false;
    made->times++;
    if (made->times > STOP_AT) {
        agent__notice(r->a, "stopped: the same call was made %u times in a row", made->times);
        agent__running_say(r, TOOL_REFUSED, "Stopped: this exact call was made %u times.\n", made->times);
        *ret_stop = true;
    } else if (made->times > REFUSE_AT) {
        agent__running_say(r, TOOL_REFUSED,
            "Refused: this exact call was made twice and nothing "
            "changed. Answer with what you have, or make another call.\n");
    } else if (r->tool->power == TOOL_WRITES && made->turn == r->a->turn) {
        r->a->fix.repeated++;
        agent__running_say(r, TOOL_FAILED,
            "This exact call was made before, and the tree is as it was behind it. Next: the same call with another text.\n");
    } else {
        base_err err = {0};
        if (!is_all_active(r->a, made->from, made->to) && agent__bring_back(r->a, made->from, made->to, &err))
            agent__notice(r->a, "the earlier result could not be brought back: %s", err.msg);
        /* What a program answers may have changed, only the tree has not. */
        agent__running_say(r, TOOL_OK,
            r->tool->power == TOOL_RUNS
                ? "Not run again: this exact call was made in turn %u, and the tree has not changed since. Its "
                  "result stands above.\n"
                : "Unchanged since turn %u: the result of this exact call stands above and still holds.\n",
            made->turn);
    }
    return true;
}

static void remember_call(agent *a, const agent_running *r, uint64_t key, uint32_t from, uint32_t to)
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

/* An operation that was refused is told in the turn's last line, until one is carried out after all. */
static void remember_refusal(agent *a, const agent_running *r, bool wrote)
{
    agent_refusal *x = &a->asked.refusal;
    const char *operation = base_json_str(r->call.arguments, "operation", "");
    const char *name = base_json_str(r->call.arguments, "name", NULL);
    const char *to = base_json_str(r->call.arguments, "to", NULL);
    const bool is_rename = !strcmp(operation, "rename"), is_refactor = !strcmp(r->name, "refactor");
    /* A call of the others that only lacks something is no refusal: the model says it again, or otherwise. */
    const bool is_refused =
        r->result.status == TOOL_REFUSED || (is_rename && r->result.status == TOOL_FAILED);
    if (!is_refactor || (!wrote && !is_refused)) return;
    agent__refusal_free(x);
    const char *said = r->result.text.data ? r->result.text.data : "";
    const char *parameter = base_json_str(r->call.arguments, "parameter", NULL);
    const bool asks_instead = strstr(said, "Next: the same call with \"to\"") != NULL;
    const bool is_step = asks_instead || strstr(said, "Next: rewrite "); /* by hand is what it asks for */
    if (asks_instead && name && parameter && !a->asked.still_used) {
        a->asked.still_used_in = base_xstrdup(name);
        a->asked.still_used = base_xstrdup(parameter);
        a->asked.asks_instead = true;
    }
    if (wrote || !name || (is_rename && !to) || is_step) return;
    *x = (agent_refusal){.operation = base_xstrdup(operation),
        .name = base_xstrdup(name),
        .to = to ? base_xstrdup(to) : NULL,
        .why = base_xstrndup(said, strcspn(said, "\n")),
        .is_final = r->result.status == TOOL_REFUSED};
}

/* Guard, preparation, permission, run. Afterwards the result is settled and told. */
static int perform(agent_running *r, uint64_t key, bool *ret_stop, base_err *err)
{
    const bool is_over = (r->tool && answer_repeated(r, key, ret_stop)) || agent__is_refused(r);
    const int rc = is_over ? 0 : agent__running_prepare(r, err);
    return rc ? rc : agent__running_carry_out(r, agent__running_permit, err);
}

/* --- what a change of the tree means -------------------------------------------------------------------- */

/* A test ran: it settles the open attempt, before its output is computed. */
static void judge(agent *a, const agent_running *r)
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

static void after_change(agent *a, const agent_running *r, uint64_t key)
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
static int append_result(
    agent *a, const agent_running *r, uint32_t *ret_from, uint32_t *ret_to, base_err *err)
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
            agent__add_shown(a, index, s, line_end);
        }
    }
    base_buf_free(&label);
    return rc;
}

/* Nothing was tested: a shell or make without the command, or Python without pytest. */
static bool lacks_runner(const tool_result *t)
{
    static const char *const words[] = {"No module named pytest", "] Error 127"};
    bool is_so = t->exit_code == 127;
    for (size_t i = 0; i < sizeof words / sizeof *words && t->status == TOOL_FAILED && t->text.len; i++)
        is_so = is_so || memmem(t->text.data, t->text.len, words[i], strlen(words[i]));
    return is_so;
}

/* A file of tests that the model only thought of: pytest, node and python say so in these words. */
static bool lacks_test_file(const tool_result *t)
{
    static const char *const words[] = {
        "file or directory not found: ", "Could not find '", "can't open file '"};
    bool is_so = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && t->status == TOOL_FAILED && t->text.len; i++)
        is_so = is_so || memmem(t->text.data, t->text.len, words[i], strlen(words[i]));
    return is_so;
}

/* The request's values hold, and what would run the tree's tests is missing: the values have judged, the others have not. */
static bool is_judged_by_values(agent *a, const tool_result *t)
{
    uint32_t hold, of;
    return a->test.has_values && a->test.plain && agent_values_count(t->text.data, &hold, &of) && hold == of;
}

/* The turn's last line says it of the first one: those behind it are tried since it was none. */
static void keep_why_none(agent *a, const char *before, const char *command, const char *behind)
{
    base_buf say = {0};
    if (a->test.why_none) return;
    base_buf_printf(&say, "%s%s %s", before, command, behind);
    a->test.why_none = base_buf_take(&say);
}

/* A test that the program chose has to be able to tell right from wrong: else it says nothing of the change. true: it is none. */
static bool give_up_judging(agent *a, agent_running *test)
{
    const char *why = NULL;
    const bool had_values = a->test.has_values;
    if (had_values && agent__values_judge(a, &test->result)) return false;
    if (had_values && !a->test.has_values) { /* they could not be checked, and nothing else ran */
        a->fix.no_test = !a->test.command;
        a->fix.failing = false;
        return false;
    }
    const char *plain = a->test.has_values ? a->test.plain : a->test.command;
    if (test->result.status == TOOL_TIMEOUT)
        why = "it takes too long";
    else if (agent__fails_without(a, plain, NULL))
        why = "it fails without the change too";
    a->fix.was_whole = !why;
    if (!why) return false;
    agent__notice(a, "%s cannot judge the change: %s", plain, why);
    keep_why_none(a, "", plain,
        test->result.status == TOOL_TIMEOUT ? "takes too long" : "fails without the change too");
    a->fix.no_test = !a->test.has_values;
    a->fix.failing = false;
    if (!a->test.has_values) return true;
    agent__drop_plain(a);
    test->result.status = TOOL_OK; /* the values hold */
    return false;
}

/* Values of the request make a long program: the question and the log have it whole, a line says what it is. */
static void shorten_headline(const agent *a, agent_running *r)
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

/* A program of tests that ended with 0 and printed that the new one failed: that is a failure. */
static void read_printed(agent *a, tool_result *result)
{
    char *printed =
        result->status == TOOL_OK ? agent__find_printed_failure(a, NULL, result->text.data) : NULL;
    if (printed) {
        agent__notice(a, "%s ends with 0, and says that the new test fails: %s", a->test.command, printed);
        result->status = TOOL_FAILED;
        result->exit_code = 1;
    }
    free(printed);
}

/*
 * The named test, run by the harness before (change NULL) and after a change; there its output follows the
 * change's result in the same message.
 */
static int run_test(agent *a, const agent_running *change, agent_running *ret, base_err *err)
{
    enum { TEST_MS = 60000, TEST_BYTES = 2400 };
    bool is_given_up = false;
    int rc = agent__running_begin_command(a, a->test.command, ret, err);
    if (rc) return rc;
    if (a->settings.mode == AGENT_MODE_EDITS)
        ret->again = "each change of this turn";
    else if (a->settings.mode == AGENT_MODE_ASK)
        ret->again = change ? "a further change" : "the change";
    ret->change_approved = change && change->said_yes;
    ret->call.in_copy = a->test.in_copy;
    ret->limits.shell_ms = TEST_MS;
    if (ret->limits.result_bytes > TEST_BYTES) ret->limits.result_bytes = TEST_BYTES;
    rc = agent__running_prepare(ret, err);
    if (!rc && a->test.has_values) shorten_headline(a, ret);
    if (!rc) rc = agent__running_carry_out(ret, agent__running_permit, err);
    if (!rc) read_printed(a, &ret->result);
    if (!rc && (ret->result.status == TOOL_DENIED || ret->result.status == TOOL_REFUSED))
        a->fix.no_test = true;
    const bool lacks = !rc && lacks_runner(&ret->result);
    if (lacks && agent__do_without_pytest(a)) {
        agent__running_end(ret);
        *ret = (agent_running){0};
        return run_test(a, change, ret, err);
    }
    if (lacks) {
        const char *plain = a->test.plain ? a->test.plain : a->test.command;
        agent__notice(a,
            "the test cannot judge, since what runs it is not installed: %s; install it, or name another test",
            plain);
        keep_why_none(a, "what runs ", plain, "is not installed");
        a->fix.no_test = !is_judged_by_values(a, &ret->result);
    }
    if (lacks && !a->fix.no_test) {
        agent__drop_plain(a);
        ret->result.status = TOOL_OK; /* the values hold */
    }
    a->fix.was_whole = false;
    a->fix.failing =
        !a->fix.no_test && (ret->result.status == TOOL_FAILED || ret->result.status == TOOL_TIMEOUT);
    const bool had_values = a->test.has_values, is_unfit = lacks && a->test.is_found;
    /* The file of a new test may fail for another test of it. */
    if (!rc && a->fix.failing && change && (a->test.is_found || a->asked.new_test.path))
        is_given_up = give_up_judging(a, ret);
    if (!rc && change && !had_values && (is_unfit || (is_given_up && a->test.is_found)) &&
        agent__find_next_judge(a, change->result.changed[0])) {
        a->fix.no_test = false;
        agent__running_end(ret);
        *ret = (agent_running){0};
        return run_test(a, change, ret, err);
    }
    if (!rc && a->test.has_values && ret->result.status == TOOL_OK) agent__values_hold(a, &ret->result);
    if (rc || !had_values || a->test.has_values || !a->test.command) return rc;
    agent__running_end(ret); /* without the values, which cannot be checked here */
    *ret = (agent_running){0};
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

static int append_test(
    agent *a, const agent_running *test, uint32_t *ret_from, uint32_t *ret_to, base_err *err)
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
    agent_running test = {0};
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
    agent__running_end(&test);
    return rc;
}

/* --- the whole call ------------------------------------------------------------------------------------- */

static int append_all(agent *a, const agent_running *r, const agent_running *test, const base_buf *told,
    uint64_t key, base_err *err)
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
    return rc ? rc : agent__repair(a, from, test_to ? test_to : to, err);
}

/* Which definition this was, for a further attempt at it. */
static void remember_written(agent *a, const agent_running *r)
{
    const char *name = base_json_str(r->call.arguments, "name", NULL);
    const bool is_definition = name && r->call.payload.ptr;
    free(a->fix.path);
    free(a->fix.name);
    free(a->fix.field);
    a->fix.field = NULL;
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
    if (d && strcmp(d->name, code_last_name(name)) != 0) {
        base_buf_printf(&whole, "%s.%s", name, d->name);
        if (!code_index_is_defined(tool_workspace_index(a->workspace), whole.data)) base_buf_clear(&whole);
    }
    if (!whole.len) base_buf_puts(&whole, name);
    code_file_free(f);
    return base_buf_take(&whole);
}

/* A definition of the tree that was to be rewritten and was not: its next attempt is begun for the model. */
static void remember_target(agent *a, const agent_running *r)
{
    const char *name = base_json_str(r->call.arguments, "name", NULL);
    const char *path = base_json_str(r->call.arguments, "path", NULL);
    code_index *x = tool_workspace_index(a->workspace);
    char *full = path ? code_index_path(x, path) : NULL;
    if (full && name && r->call.payload.ptr && code_index_is_defined(x, name)) {
        free(a->fix.path);
        free(a->fix.name);
        free(a->fix.field);
        a->fix.field = NULL;
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
        !agent__is_allowed_command(a, a->test.command, a->test.in_copy))
        return false;
    return !agent__awaits_code(a);
}

/* A call that the program makes, seen, asked about and undone like any other. agent__running_end(ret) in every case. */
static int call_tool(
    agent *a, const char *name, const char *json, base_str payload, agent_running *ret, base_err *err)
{
    *ret = agent__running_begin(a, name, NULL, payload);
    int rc = agent__running_set_arguments(ret, json, err);
    if (!rc) rc = agent__running_prepare(ret, err);
    if (!rc) rc = agent__running_carry_out(ret, agent__running_permit, err);
    if (!rc) after_change(a, ret, agent__call_key(name, ret->call.arguments, payload));
    return rc;
}

/* Lines of a file, by the edit tool. */
static int change_lines(agent *a, const char *path, const agent_expectation *e, bool *ret_done, base_err *err)
{
    base_buf json = {0};
    agent_running r;
    base_buf_puts(&json, "{\"path\":");
    base_json_put_str(&json, path, strlen(path));
    base_buf_printf(&json, ",\"from\":%u,\"to\":%u}", e->line, e->line_end);
    int rc = call_tool(a, "edit", json.data, (base_str){e->text.data, e->text.len}, &r, err);
    *ret_done = !rc && r.result.status == TOOL_OK && r.result.changed;
    base_buf_free(&json);
    agent__running_end(&r);
    return rc;
}

/* While the new test fails for a literal that the code gives otherwise: that is put right, and it runs again. */
static int put_expectations_right(agent *a, const agent_running *change, agent_running *test, base_err *err)
{
    enum { MOST = 6 };
    int rc = 0;
    bool goes_on = true;
    for (uint32_t n = 0; !rc && goes_on && n < MOST && a->fix.failing; n++) {
        agent_expectation e;
        char *full = agent__read_in_full(a, NULL, test->result.text.data);
        goes_on = agent__find_expectation(a, full ? full : test->result.text.data, &e);
        free(full);
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
        agent__running_end(test);
        *test = (agent_running){0};
        rc = run_test(a, change, test, err);
    }
    return rc;
}

static void remember_operation(agent *a, const char *name, const base_buf *said)
{
    base_buf *done = &a->asked.done;
    const size_t at = done->len;
    a->asked.n_operations++;
    for (uint32_t i = 0; i < a->asked.n_listed; i++)
        a->asked.listed[i].is_done |= !strcmp(a->asked.listed[i].name, name);
    if (!said->len) return;
    base_buf_add(done, said->data, said->len);
    done->data[at] = (char)toupper((unsigned char)done->data[at]);
    if (done->data[done->len - 1] != '\n') base_buf_putc(done, '\n');
}

/* more_writes: a later call of the message writes, too, and what judges waits for it. *ret_denied: the person said no. */
static int act(agent *a, const agent_call *call, uint32_t from, uint32_t to, bool more_writes,
    bool *ret_denied, bool *ret_stop, base_err *err)
{
    base_str payload = {call->payload, call->payload_n};
    agent_running r = agent__running_begin(a, call->name, base_json_root(call->arguments), payload),
                  test = {0};
    uint64_t key = agent__call_key(r.name, r.call.arguments, payload);
    agent_standing old = {0};
    if (a->asked.change && payload.ptr) {
        const char *path = base_json_str(r.call.arguments, "path", NULL);
        const char *name = base_json_str(r.call.arguments, "name", NULL);
        char *overload = tool_workspace_overload(a->workspace, path, name, payload);
        agent__find_standing(a, path, overload ? overload : name, &old);
        free(overload);
    }
    int rc = perform(&r, key, ret_stop, err);
    bool wrote = !rc && r.result.changed && r.result.status == TOOL_OK && r.tool->power == TOOL_WRITES;
    if (!rc) after_change(a, &r, key);
    const char *command = !rc && r.tool ? agent__running_command(&r) : NULL;
    base_buf told = {0};
    if (command && agent__runs_tests(command) && !lacks_runner(&r.result) && !lacks_test_file(&r.result)) {
        judge(a, &r);
        if (r.result.exit_code >= 0) agent__set_test(a, command);
        a->fix.failing = r.result.exit_code > 0;
    }
    if (wrote) {
        a->fix.attempt = (agent_attempt){from, to, true};
        a->fix.writes++;
        a->fix.passed = false;
        remember_written(a, &r);
        agent__wish_twins(a, &old);
        if (!strcmp(r.name, "refactor")) {
            const char *operation = base_json_str(r.call.arguments, "operation", "");
            if (!strcmp(operation, "rename") || !strcmp(operation, "delete"))
                agent__name_went(a, base_json_str(r.call.arguments, "name", ""));
            remember_operation(a, base_json_str(r.call.arguments, "name", ""), &r.result.text);
            agent__wish_use_of_parameter(a, r.call.arguments);
        }
    }
    if (!rc && r.tool) remember_refusal(a, &r, wrote);
    bool tried = !rc && r.tool && r.tool->power == TOOL_WRITES;
    if (tried && !wrote && r.result.status != TOOL_DENIED && r.result.status != TOOL_CANCELLED) {
        if (r.result.status == TOOL_FAILED) remember_target(a, &r);
        agent__came_to_nothing(a, from, to, &told);
    }
    if (wrote && a->asked.change && !a->fix.no_test) agent__find_judge(a, r.result.changed[0]);
    if (wrote && !more_writes && a->test.command && !a->fix.no_test && may_judge(a)) {
        rc = run_test(a, &r, &test, err);
        if (!rc && a->fix.failing && a->asked.new_test.path) rc = put_expectations_right(a, &r, &test, err);
        if (!rc && a->fix.failing) agent__sharpen_new_test(a, test.result.text.data);
        if (!rc && !a->fix.no_test) judge(a, &test);
        if (!rc) after_change(a, &test, agent__call_key("shell", test.call.arguments, (base_str){0}));
        if (!rc && a->fix.failing)
            agent__take_back(a, base_json_str(r.call.arguments, "path", ""),
                base_json_str(r.call.arguments, "name", ""), test.result.text.data, &told);
    }
    if (!rc && !*ret_stop) rc = append_all(a, &r, &test, &told, key, err);
    *ret_denied = r.result.status == TOOL_DENIED;
    base_buf_free(&told);
    agent__standing_free(&old);
    agent__running_end(&r);
    agent__running_end(&test);
    return rc;
}

/* It was written in the belief that the call before it is carried out. */
static int say_not_made(agent *a, const agent_call *call, base_err *err)
{
    static const char said[] = "Not made: the person said no to the call before it.\n";
    const agent_text text = {
        .origin = KV_ORIGIN_TOOL, .text = said, .n = sizeof said - 1, .label = call->name};
    const int rc = agent__open_message(a, MODEL_ROLE_TOOL, err);
    agent__notice(a, "%s was not made, since the call before it was refused", call->name);
    return rc ? rc : agent__append(a, &text, NULL, err);
}

static bool writes(const agent_call *call)
{
    const tool_entry *t = tool_find(call->name);
    return t && t->power == TOOL_WRITES;
}

int agent__act(
    agent *a, const agent_call *calls, uint32_t n, uint32_t from, uint32_t to, bool *ret_stop, base_err *err)
{
    bool denied = false;
    int rc = 0;
    *ret_stop = false;
    for (uint32_t i = 0; i < n && !rc && !*ret_stop; i++) {
        bool more_writes = false;
        for (uint32_t k = i + 1; k < n; k++) more_writes = more_writes || writes(&calls[k]);
        rc = denied ? say_not_made(a, &calls[i], err)
                    : act(a, &calls[i], from, to, more_writes, &denied, ret_stop, err);
    }
    return rc || *ret_stop ? rc : agent__open_message(a, MODEL_ROLE_ASSISTANT, err);
}

/*
 * Who is at the screen typed it: that is the yes, and the sandbox stays. Where nobody is, the text may be
 * anybody's (a script hands an issue's title on), so the mode decides as for the model's commands. In mode
 * plan nothing runs, whoever asks.
 */
static int permit_line(agent_running *r, base_err *err)
{
    agent *a = r->a;
    if (a->host.approve && a->settings.mode != AGENT_MODE_PLAN) {
        if (r->call.is_persons && !a->made.told_box)
            agent__notice(a,
                "your own commands are confined as well: they see your home but for keys and credentials, "
                "what they write there is not kept, and they reach no network");
        a->made.told_box = a->made.told_box || r->call.is_persons;
        return 0;
    }
    if (a->settings.mode != AGENT_MODE_PLAN) return agent__running_permit(r, err);
    a->denied = !a->host.approve;
    agent__running_say(r, TOOL_DENIED, "In mode plan nothing is run: choose another mode for \"!\".\n");
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
    agent_running r;
    int rc = agent__running_begin_command(a, command, &r, err);
    r.call.is_persons = is_typed && a->host.approve; /* without one at hand the line can be anybody's */
    if (!rc) rc = agent__running_prepare(&r, err);
    if (!rc) rc = agent__running_carry_out(&r, permit_line, err);
    if (!rc && r.has_run) {
        base_buf_printf(&a->notes.shell, "The person ran: $ %s\n", command);
        base_buf_add(&a->notes.shell, r.result.text.data ? r.result.text.data : "", r.result.text.len);
        base_buf_putc(&a->notes.shell, '\n');
        after_change(a, &r, agent__call_key("shell", r.call.arguments, (base_str){0}));
    }
    agent__running_end(&r);
    return rc;
}

/* A person's /rename and its like: the tool's own diff is shown and asked as the mode says. */
int agent__operate(agent *a, const char *json, base_err *err)
{
    agent_running r;
    const int rc = call_tool(a, "refactor", json, (base_str){0}, &r, err);
    if (!rc && r.result.text.len) {
        if (r.result.status == TOOL_OK)
            base_buf_printf(&a->notes.shell, "The person: %s", r.result.text.data);
        if (r.result.status == TOOL_OK) /* else the result's own event says it */
            agent__notice(a, "%.*s", (int)strcspn(r.result.text.data, "\n"), r.result.text.data);
    }
    agent__running_end(&r);
    return rc;
}
