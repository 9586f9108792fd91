/*
 * A turn by a text that stands in a file: a skill of the tree is put in front of the request, as what it is
 * (whoever wrote the tree wrote it, and the person is told); a person's own command is the request.
 */
#include <string.h>

#include "agent/command/command.h"
#include "agent/command/skills.h"
#include "agent/session/segments.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "base/numbers.h"
#include "kv/session.h"

void agent__list_skills(agent *a, base_buf *out)
{
    agent_skills all;
    agent_skills_find(a->workspace, &all);
    for (size_t i = 0; i < all.n; i++) {
        const agent_skill *s = &all.all[i];
        base_buf_printf(out, "\n/%s [WORDS]\t", s->name);
        if (s->wrong)
            base_buf_printf(out, "cannot be used (%s): %s", s->path, s->wrong);
        else
            base_buf_printf(out, "%s%s", s->about, s->is_of_tree ? " (this tree's skill)" : "");
    }
    agent_skills_free(&all);
}

/* A text that leaves no room for the work is refused before anything is asked. */
static int check_room(agent *a, const agent_skill *s, const base_buf *text, base_err *err)
{
    kv_stats now;
    a->engine->ops->stats(a->engine, &now);
    const uint32_t n = agent__count(a, text->data, text->len);
    const uint32_t room = now.n_ctx > now.n_tokens ? (now.n_ctx - now.n_tokens) / 2 : 0;
    if (now.endless || n <= room) return 0;
    return base_fail(err, BASE_E_LIMIT, "%s has %s tokens, and %s is half of what the session has left: /new",
        s->path, BASE_THOUSANDS(n), BASE_THOUSANDS(room));
}

static int begin(agent *a, const agent_skill *s, const char *arguments, base_buf *request, base_err *err)
{
    base_buf body = {0};
    if (s->wrong)
        return base_fail(err, BASE_E_USAGE, "/%s cannot be used (%s): %s", s->name, s->path, s->wrong);
    int rc = agent_skill_read(a->workspace, s, &body, err);
    if (!rc && !s->is_of_tree) agent_skill_fill(body.data, arguments, request);
    if (!rc && s->is_of_tree) {
        base_buf_printf(request, "Follow the skill %s%s%s", s->name, *arguments ? ": " : ".", arguments);
        base_buf_clear(&a->notes.skill);
        base_buf_printf(
            &a->notes.skill, "The skill %s of this tree (%s):\n%s\n\n", s->name, s->path, body.data);
    }
    if (!rc) rc = check_room(a, s, s->is_of_tree ? &a->notes.skill : request, err);
    if (rc) base_buf_clear(&a->notes.skill);
    if (!rc && s->is_of_tree)
        agent__notice(a, "/%s is this tree's own text, by whoever wrote the tree: %s, %zu bytes", s->name,
            s->path, body.len);
    base_buf_free(&body);
    return rc;
}

int agent__use_skill(agent *a, const char *name, size_t n, const char *arguments, base_err *err)
{
    agent_skills all;
    base_buf request = {0};
    agent_skills_find(a->workspace, &all);
    const agent_skill *s = agent_skills_get(&all, name, n);
    int rc = s ? begin(a, s, arguments, &request, err) : BASE_E_NOT_FOUND;
    if (s && rc) { /* found, and gone or refused since */
        if (rc == BASE_E_NOT_FOUND) rc = BASE_E_IO;
        agent__error(a, err);
    } else if (s) {
        rc = agent__turn(a, request.data, err);
    }
    base_buf_free(&request);
    agent_skills_free(&all);
    return rc;
}
