/*
 * A new test that failed, or cannot be read: which calls its model wants to make it says all the same. They are made in a copy of the
 * tree, by a test that prints what comes of them (newtest/probe.h), and the test that expects just that is the next candidate: it
 * costs no token. What the request says that is to come is not known by that, so where it gives values nothing is recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "agent/newtest/probe.h"
#include "agent/session/tell.h"
#include "agent/turn/candidate.h"
#include "agent/words/request_words.h"
#include "agent/words/values.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

enum { TEST_MS = 60000, TEST_BYTES = 16384, MOST_PROBES = 3, MOST_HEAD = 300, USUAL_CALLS = 4 };

/* The subject's head, for what it gives: in front of its name in C, all of it in Rust. "" (heap): not known. */
static char *copy_head(const agent *a, const char *subject)
{
    code_place *places = NULL;
    base_buf text = {0};
    char *head = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), subject, &places);
    for (uint32_t i = 0; i < n && !head; i++) {
        const code_place *p = &places[i];
        if (code_path_is_test(p->path) ||
            tool_workspace_read(a->workspace, p->path, NEWTEST_MAX_FILE, &text, NULL) || p->to > text.len)
            continue;
        const char *from = text.data + p->from, *end = text.data + p->to,
                   *brace = memchr(from, '{', p->to - p->from),
                   *name = memmem(
                       from, p->to - p->from, code_last_name(subject), strlen(code_last_name(subject)));
        end = base_ends_with(p->path, ".rs") ? (brace ? brace : end) : (name ? name : from);
        head = base_xstrndup(from, end - from < MOST_HEAD ? (size_t)(end - from) : MOST_HEAD);
    }
    code_places_free(places, n);
    base_buf_free(&text);
    return head ? head : base_xstrdup("");
}

bool agent__may_record(const agent *a)
{
    const agent_new_test *t = &a->asked.new_test;
    agent_value values[AGENT_MAX_VALUES];
    const uint32_t n_values = agent_values_find(a->request, values);
    agent_values_free(values, n_values);
    return t->path && t->subject && !t->is_row && !n_values && t->n_probed < MOST_PROBES && a->test.command &&
           !a->test.words && agent__can_probe(t->path) && a->fix.n_kept < AGENT_MAX_KEPT;
}

/* "... with an empty string": which calls that means is the model's to say. A name alone says none. */
static bool has_claim(const agent *a)
{
    agent_word claim;
    return agent__find_test_claim(a->request, &claim) &&
           memchr(a->request + claim.from, ' ', claim.to - claim.from) != NULL;
}

/* Runs the probe of these steps in a copy; how many of its calls gave something. */
static int probe(agent *a, const agent_probe_style *style, agent_steps *s, uint32_t *ret_n, base_err *err)
{
    const tool_limits limits = {.result_bytes = TEST_BYTES, .shell_ms = TEST_MS, .cancel = a->cancel};
    agent_candidate c = {0};
    tool_result result = {.exit_code = -1};
    tool_scratch *copy = NULL;
    base_buf body = {0}, command = {0};
    int rc = 0;
    *ret_n = 0;
    agent__reader_begin(a, &c.read);
    agent__put_probe(style, s, &body);
    if (agent__put_whole_new_test(a, body.data, &c.read.text)) rc = agent__candidate_preview(a, &c, err);
    if (!rc && c.text.len) {
        agent__put_test_alone(a->test.command, a->asked.new_test.name, &command);
        rc = tool_scratch_make(a->workspace, a->test.in_copy, &copy, a->cancel, err);
        if (!rc) rc = tool_scratch_put(copy, c.path, c.text.data, c.text.len, err);
        if (!rc) rc = tool_scratch_run(copy, command.data, &limits, &result, err);
        if (!rc) *ret_n = agent__read_probe(style, result.text.data, s);
    }
    tool_scratch_free(copy);
    tool_result_free(&result);
    agent__candidate_free(&c);
    base_buf_free(&body);
    base_buf_free(&command);
    return rc;
}

/* One that does not compile, or ends the program, takes the others along: each by itself. */
static int probe_each(
    agent *a, const agent_probe_style *style, agent_steps *s, uint32_t *ret_n, base_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < s->n; i++) {
        agent_steps one = {0};
        uint32_t n = 0;
        if (s->steps[i].kind != AGENT_STEP_CALL) continue;
        for (uint32_t k = 0; k < i; k++)
            if (s->steps[i].needs >> k & 1)
                one.steps[one.n++] = (agent_step){.text = base_xstrdup(s->steps[k].text)};
        agent_step *call = &one.steps[one.n++];
        *call = (agent_step){.kind = AGENT_STEP_CALL,
            .text = base_xstrdup(s->steps[i].text),
            .is_varied = s->steps[i].is_varied};
        rc = probe(a, style, &one, &n, err);
        *ret_n += n;
        for (uint32_t k = 0; k < s->steps[i].n_values; k++)
            free(s->steps[i].values[k]); /* of no use to the first probe */
        s->steps[i].given = call->given;
        s->steps[i].n_values = call->n_values;
        memcpy(s->steps[i].values, call->values, sizeof call->values);
        call->n_values = 0; /* they are the other's now */
        agent_steps_free(&one);
    }
    return rc;
}

/* It is tried before anything else is sampled. */
static void keep_first(agent *a, char *answer)
{
    agent_fix *x = &a->fix;
    memmove(&x->kept[x->next_kept + 1], &x->kept[x->next_kept], (x->n_kept - x->next_kept) * sizeof *x->kept);
    x->kept[x->next_kept] = answer;
    x->n_kept++;
}

int agent__record_test(agent *a, const char *answer, size_t n, bool *ret_kept, base_err *err)
{
    agent_new_test *t = &a->asked.new_test;
    agent_steps s;
    base_buf file = {0}, body = {0}, text = {0};
    uint32_t n_given = 0;
    int rc = 0;
    *ret_kept = false;
    if (!agent__may_record(a)) return 0;
    agent_fence fence;
    char *given = base_xstrndup(t->begins ? t->begins : "", t->begins ? strcspn(t->begins, "\n") : 0);
    const bool has_calls = agent_fence_find(answer, n, 0, &fence) &&
                           agent__find_calls(t->path, answer + fence.from, fence.to - fence.from,
                               code_last_name(t->subject), given, &s);
    free(given);
    agent__leave_rows(a); /* a row of them has failed */
    if (!has_calls) return 0;
    if (tool_workspace_read(a->workspace, t->path, NEWTEST_MAX_FILE, &file, NULL)) base_buf_clear(&file);
    char *head = copy_head(a, t->subject);
    const agent_probe_style style = {.path = t->path,
        .file = &file,
        .gives = head,
        .is_method = t->holder != NULL,
        .wants_error = agent__asks_for_error(a->request)};
    if (!has_claim(a)) agent__vary_calls(t->path, code_last_name(t->subject), USUAL_CALLS, &s);
    t->n_probed++;
    rc = probe(a, &style, &s, &n_given, err);
    if (!rc && !n_given) rc = probe_each(a, &style, &s, &n_given, err);
    agent__drop_useless(&s);
    if (!rc && s.n) {
        agent__put_recorded(&style, &s, &body);
        *ret_kept = agent__put_whole_new_test(a, body.data, &text);
        if (*ret_kept) keep_first(a, base_buf_take(&text));
    }
    agent_steps_free(&s);
    base_buf_free(&file);
    base_buf_free(&body);
    base_buf_free(&text);
    free(head);
    return rc;
}
