/*
 * Back to before a turn: the conversation, and, where those turns wrote files and the person says yes to what that
 * changes, their files too. The files go first, all or none; what cannot be written leaves the conversation alone.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/approve/approve.h"
#include "agent/lifetime/lifetime.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "base/mem.h"
#include "base/numbers.h"

typedef enum answer { FILES_TOO, CONVERSATION_ALONE, NEITHER } answer;

/* One question with one diff over all files. Esc is neither. */
static answer ask(agent *a, const tool_preview *p)
{
    if (!a->host.approve) {
        agent__notice(a, "the files of those turns stay as they are: nobody can be asked in this run");
        return CONVERSATION_ALONE;
    }
    const agent_event request = {.type = AGENT_EVENT_approval_request,
        .approval_request = {.turn = a->turn,
            .name = "rewind",
            .headline = p->headline,
            .detail = p->detail,
            .power = "writes"}};
    const agent_decision d = agent__ask_person(a, &request);
    free(d.text);
    if (d.answer == AGENT_YES || d.answer == AGENT_ALWAYS || d.answer == AGENT_ALWAYS_HERE) return FILES_TOO;
    return a->cancel && atomic_load(a->cancel) ? NEITHER : CONVERSATION_ALONE;
}

static int rewind_conversation(agent *a, uint32_t turn, uint32_t *ret_n, base_err *err)
{
    *ret_n = a->transcript.turn_starts[turn];
    const int rc = a->engine->ops->truncate(a->engine, *ret_n, err);
    if (rc) return rc;
    agent__truncate_segments(a, *ret_n);
    agent__truncate_aside(a, *ret_n);
    a->made.n_calls = 0;
    return 0;
}

static void tell(agent *a, uint32_t turn, uint32_t n, const tool_result *files)
{
    size_t n_changed = 0;
    while (files->changed && files->changed[n_changed]) n_changed++;
    agent_changed_row *changed = n_changed ? base_xcalloc(n_changed, sizeof *changed) : NULL;
    for (size_t i = 0; i < n_changed; i++) changed[i].path = files->changed[i];
    agent__emit(
        a, &(agent_event){.type = AGENT_EVENT_rewind,
               .rewind = {.turn = turn, .n = n, .summary = files->summary, .changed = {changed, n_changed}}});
    free(changed);
}

int agent__rewind(agent *a, uint32_t turn, base_err *err)
{
    tool_preview p = {0};
    tool_result files = {0};
    base_buf left = {0}, told = {0};
    base_err why = {0};
    uint32_t n = 0;
    int rc = 0;
    if (tool_rewind_prepare(a->workspace, turn, &p, &left, &why))
        agent__notice(a, "the files of those turns stay as they are: %s", why.msg);
    if (left.len) agent__notice(a, "%s", left.data);
    const answer wanted = p.plan ? ask(a, &p) : CONVERSATION_ALONE;
    if (wanted == NEITHER) {
        agent__notice(a, "not rewound: the conversation and the files are as they were");
        goto out;
    }
    if (wanted == FILES_TOO) rc = tool_rewind_apply(a->workspace, turn, &p, &files, err);
    if (rc) goto out;
    rc = rewind_conversation(a, turn, &n, err);
    if (rc) {
        if (wanted == FILES_TOO)
            agent__notice(a, "the files went back all the same; /undo brings them again");
        goto out;
    }
    if (tool_rewind_done(a->workspace, turn, wanted == FILES_TOO, &why))
        agent__notice(a, "the undo journal could not be written: %s", why.msg);
    tell(a, turn, n, &files);
    a->turn = turn - 1;
    agent__rewind_sums(a);
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    if (s.to_walk)
        agent__notice(a, "%s tokens are computed again: the newest state that was kept lies so far back",
            BASE_THOUSANDS(s.to_walk));
    if (wanted == FILES_TOO) {
        a->made.world++;
        agent__notice_changes(a, &told);
    }
    agent__save(a);
out:
    base_buf_free(&told);
    base_buf_free(&left);
    tool_result_free(&files);
    tool_preview_free(&p);
    return rc;
}
