/* Steps -> calls (contract: calls.h). */
#include "whatif/calls.h"

#include <stdlib.h>
#include <string.h>

#include "agent/act/guard.h"
#include "base/mem.h"
#include "tools/tool.h"

static int known(const void *user, const char *name)
{
    const tool_entry *t = tool_find(name);
    return !t ? -1 : t->takes_payload ? 1 : 0;
}

agent_call_found whatif_call_read(const base_buf *text, bool final, agent_call *ret)
{
    return agent_call_parse(text->data ? text->data : "", text->len, final, known, NULL, ret);
}

uint64_t whatif_call_key(const agent_call *c)
{
    return agent__call_key(c->name, base_json_root(c->arguments), (base_str){c->payload, c->payload_n});
}

void whatif_call_put(const agent_call *c, base_buf *out)
{
    base_buf_printf(out, "%s ", c->name);
    base_json_put(out, base_json_root(c->arguments));
}

void whatif_put_piece(const whatif_engine *e, int32_t id, base_buf *out)
{
    size_t n = 0;
    const char *piece = e->is_end && e->is_end(e->user, id) ? NULL : e->piece(e->user, id, &n);
    if (piece) base_buf_add(out, piece, n);
}

static void end_line(base_buf *out)
{
    if (out->len && out->data[out->len - 1] != '\n') base_buf_putc(out, '\n');
}

void whatif_put_step(const whatif_engine *e, const whatif_step *t, base_buf *out)
{
    if (whatif_step_is_written(t)) {
        for (uint32_t i = 0; i < t->text.n; i++) whatif_put_piece(e, t->text.ids[i], out);
        return;
    }
    if (t->kind != WHATIF_TEXT) return;
    end_line(out);
    if (t->text.origin == KV_ORIGIN_TOOL && t->label && *t->label)
        base_buf_printf(out, "[%s: %u tokens]\n", t->label, t->text.n);
}

/* The call of the answer in steps [from, to), if it is one. */
static void add_call(
    whatif_calls *c, const whatif_schedule *s, const whatif_engine *e, size_t from, size_t to)
{
    base_buf text = {0};
    agent_call call = {0};
    for (size_t i = from; i < to; i++) whatif_put_step(e, &s->steps[i], &text);
    if (whatif_call_read(&text, true, &call) == AGENT_CALL_FOUND) {
        base_grow(&c->items, &c->cap, c->n + 1, sizeof *c->items);
        whatif_call *n = &c->items[c->n++];
        *n = (whatif_call){.key = whatif_call_key(&call),
            .turn = s->steps[from].turn,
            .world = s->steps[to - 1].world,
            .behind = to,
            .next = to};
        while (n->next < s->n_steps && s->steps[n->next].kind != WHATIF_END &&
               s->steps[n->next].kind != WHATIF_TURN && !whatif_step_is_written(&s->steps[n->next]))
            n->next++;
        agent_call_free(&call);
    }
    base_buf_free(&text);
}

void whatif_calls_find(whatif_calls *ret, const whatif_schedule *s, const whatif_engine *e)
{
    for (size_t i = 0; i < s->n_steps;) {
        size_t to = i;
        while (to < s->n_steps && whatif_step_is_written(&s->steps[to])) to++;
        if (to > i) add_call(ret, s, e, i, to);
        i = to > i ? to : i + 1;
    }
}

void whatif_calls_free(whatif_calls *c)
{
    free(c->items);
    *c = (whatif_calls){.n = 0};
}
