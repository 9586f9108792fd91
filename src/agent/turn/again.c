/*
 * What the model is asked once more for (contract: turn.h): a test that fails, a change that is missing, a call that
 * cannot be read, a name.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/newtest/newtest.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "agent/words/name_question.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/places.h"

/* Behind what the open message says already. */
static int end_asking(agent *a, const base_buf *text, base_err *err)
{
    agent_text t = {.origin = KV_ORIGIN_TOOL, .text = text->data, .n = text->len, .label = "harness"};
    int rc = agent__append(a, &t, NULL, err);
    return rc ? rc : agent__open_message(a, MODEL_ROLE_ASSISTANT, err);
}

int agent__append_asking(agent *a, const base_buf *text, base_err *err)
{
    int rc = agent__open_message(a, MODEL_ROLE_USER, err);
    return rc ? rc : end_asking(a, text, err);
}

/* A call that cannot be read is asked for once more; what came instead of it then is the answer. */
static int ask_for_call(agent *a, base_err *err)
{
    base_buf text = {0};
    base_buf_puts(&text, "That call could not be read, so nothing was done. "
                         "Write the whole call once more on one line, like\n");
    agent_prompt_call(a->info.tools, "{\"name\": \"read\", \"arguments\": {\"path\": \"FILE\"}}", &text);
    base_buf_puts(&text, "\nor answer in words.");
    agent__notice(a, "the model began a tool call that cannot be read: it is asked once more");
    int rc = agent__append_asking(a, &text, err);
    base_buf_free(&text);
    return rc;
}

static bool names_symbol(const agent *a, const agent_reply *r)
{
    code_checked *checked = NULL;
    uint32_t n = code_places_check(
        tool_workspace_index(a->workspace), r->read.text.data, r->read.text.len, AGENT_MAX_PLACES, &checked);
    const bool is_whole = !tool_workspace_is_partial(a->workspace); /* else a slip is not put right */
    bool found = false;
    for (uint32_t i = 0; i < n; i++)
        found = found || checked[i].state == CODE_PLACE_DEFINED || checked[i].state == CODE_PLACE_MENTIONED ||
                (checked[i].meant && is_whole);
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
    int rc = agent__append_asking(a, &text, err);
    base_buf_free(&text);
    return rc;
}

/* The next answer begins with the function that the request names beside what was written. */
static void aim_at_reader(agent *a, const char *unread)
{
    code_index *index = tool_workspace_index(a->workspace);
    const char *written = a->fix.name ? code_last_name(a->fix.name) : "";
    agent_word w;
    for (size_t at = 0; !a->fix.open_call && agent__next_mention(a->request, at, &w);
         at = w.to > at ? w.to : at + 1) {
        char *said = agent__copy_word(a->request, w);
        code_place *places = NULL;
        const uint32_t n = code_index_define(index, said, &places);
        for (uint32_t i = 0; i < n && !a->fix.open_call; i++) {
            const code_place *p = &places[i];
            const bool is_function = !strcmp(p->what, "function") || !strcmp(p->what, "method");
            if (!is_function || p->is_declaration || !agent__is_changed(a, p->path) ||
                code_path_is_test(p->path) || !strcmp(said, written) || strstr(unread, said))
                continue;
            base_buf name = {0};
            base_buf_printf(&name, "%s%s%s", p->parent, *p->parent ? "." : "", code_last_name(said));
            agent__aim_at(a, p->path, name.data);
            base_buf_free(&name);
        }
        code_places_free(places, n);
        free(said);
    }
}

/* What the turn wrote sets a field that nothing reads: true once, with a sentence that says so. */
static bool lacks_reader(agent *a, base_buf *missing)
{
    base_buf unread = {0};
    if (a->asked.has_asked_reader || !agent__should_be_read(a)) return false;
    const uint32_t n = agent__list_unread(a, &unread);
    if (n) {
        a->asked.has_asked_reader = true;
        base_buf_printf(missing, "Nothing in the tree reads %s yet, so %s no effect. ", unread.data,
            n > 1 ? "they have" : "it has");
        if (!a->info.strong) aim_at_reader(a, unread.data);
    }
    base_buf_free(&unread);
    return n > 0;
}

/* A change was asked for and is not in the tree, or not all of it: true at most twice, with what is missing. */
static bool should_ask_for_change(agent *a, base_buf *missing)
{
    enum { MOST = 2 };
    if (!a->asked.change || a->asked.again >= MOST || a->fix.wanted || a->denied || a->asked.refused)
        return false;
    if (!agent__is_missing(a, missing) && a->asked.n_changed && !lacks_reader(a, missing)) return false;
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

/* What was last tried in vain is begun once more: a model that failed with a call says in words that it did. */
static bool aim_at_tried(agent *a)
{
    const bool may = a->fix.path && a->fix.name && !a->asked.n_changed && !a->asked.new_test.path &&
                     agent__can_begin_calls(a);
    if (may) a->fix.open_call = true;
    return may;
}

static int ask_for_change(agent *a, const agent_reply *r, const base_buf *missing, base_err *err)
{
    base_buf text = {0};
    base_err put = {0};
    bool is_test = false, is_document = false;
    /* Words that say which definition has to change stay in view, and its call is begun for the model. */
    const bool is_aimed = r->end == AGENT_REPLY_DONE && r->read.text.len && !a->asked.test_waits &&
                          agent__aim_at_said(a, r->read.text.data);
    /* Else: what a weak model sees it says again. */
    if (!is_aimed && r->from < r->to && agent__put_failed(a, r->from, r->to, &put))
        agent__notice(a, "the answer could not be put aside: %s", put.msg);
    int rc = agent__open_message(a, MODEL_ROLE_USER, err);
    if (!rc) rc = agent__append_due_test(a, &is_test, err);
    if (!rc && !is_test && agent__can_begin_calls(a)) rc = agent__append_due_document(a, &is_document, err);
    base_buf_printf(&text, "%s%s", a->asked.n_changed ? "" : "No file was changed yet. ",
        missing->len ? missing->data : "");
    const bool is_begun =
        a->info.strong || is_aimed || is_test || is_document || agent__aim_at_missing(a) || aim_at_tried(a);
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

agent_askings agent__askings(const agent *a, const char *request)
{
    const bool may_name = a->has_excerpts && !a->fix.wanted && !a->settings.schema;
    return (agent_askings){.call = true, .name = may_name && agent_asks_for_name(request)};
}

int agent__ask_more(
    agent *a, const agent_reply *r, bool may_call, agent_askings *left, bool *asked, base_err *err)
{
    const bool is_done = r->end == AGENT_REPLY_DONE;
    const bool is_useless = r->end == AGENT_REPLY_REPEATS || r->end == AGENT_REPLY_TOO_LONG;
    base_buf text = {0};
    int rc = 0;
    *asked = true;
    if (may_call && (is_done || is_useless) && agent__ask_again(a, r->from, r->to, is_useless, &text)) {
        rc = agent__append_asking(a, &text, err);
    } else if (may_call && (is_done || is_useless) && should_ask_for_change(a, &text)) {
        rc = ask_for_change(a, r, &text, err);
    } else if (may_call && is_done && left->call && agent__reply_begins_call(r)) {
        left->call = false;
        rc = ask_for_call(a, err);
    } else if (is_done && left->name && r->read.text.len && !names_symbol(a, r)) {
        left->name = false;
        rc = ask_for_name(a, err);
    } else {
        *asked = false;
    }
    base_buf_free(&text);
    return rc;
}
