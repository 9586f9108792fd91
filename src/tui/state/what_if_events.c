#include "tui/state/what_if_events.h"

#include <string.h>

#include "base/show.h"
#include "tui/state/items.h"

static void put_shown(base_buf *out, const char *text)
{
    base_buf_putc(out, '"');
    if (text) base_show(out, text, strlen(text), BASE_SHOW_UTF8);
    base_buf_putc(out, '"');
}

/* Sides of two vocabularies, or one side: how well the answers' text was expected. */
static void put_what_if_bytes(base_buf *out, const agent_event *e)
{
    const agent_side_list *sides = &e->what_if_turn.sides;
    base_buf_printf(
        out, "what if: the answers' %lld bytes are expected with", (long long)e->what_if_turn.bytes);
    for (size_t i = sides->n; i-- > 0;)
        base_buf_printf(
            out, i + 1 == sides->n ? " %.4f nats a byte" : " instead of %.4f", sides->rows[i].nll);
    if (e->what_if_turn.check) base_buf_printf(out, "; %s", e->what_if_turn.check);
}

void tui_on_what_if(tui_state *s, const agent_event *e, int64_t now)
{
    base_buf text = {0};
    tui_set_clean(&s->what_if_original, e->what_if.original);
    tui_set_clean(&s->what_if_changed, e->what_if.changed);
    base_buf_printf(&text, "what if: session %s computed again with %s; as recorded it had %s",
        e->what_if.parent, e->what_if.changed, e->what_if.original);
    if (e->what_if.missing) base_buf_printf(&text, "; %s", e->what_if.missing);
    tui_state_note(s, TUI_ITEM_NOTICE, text.data);
    base_buf_free(&text);
}

void tui_on_what_if_end(tui_state *s, const agent_event *e, int64_t now)
{
    base_buf text = {0};
    base_buf_printf(&text, "what if, all turns: %s", e->what_if_end.text);
    tui_state_note(s, TUI_ITEM_NOTICE, text.data);
    base_buf_free(&text);
}

void tui_on_what_if_turn(tui_state *s, const agent_event *e, int64_t now)
{
    base_buf text = {0};
    if (e->what_if_turn.bytes) {
        put_what_if_bytes(&text, e);
        tui_state_note(s, TUI_ITEM_NOTICE, text.data);
        base_buf_free(&text);
        return;
    }
    base_buf_printf(
        &text, "what if: KL %.4f nats a token, at most %.3f", e->what_if_turn.kl, e->what_if_turn.most);
    if (e->what_if_turn.differ > 0) {
        base_buf_printf(&text, "; %lld of %lld tokens would have been another one, first ",
            (long long)e->what_if_turn.differ, (long long)e->what_if_turn.tokens);
        put_shown(&text, e->what_if_turn.instead);
        base_buf_puts(&text, " for ");
        put_shown(&text, e->what_if_turn.was);
        base_buf_printf(&text, " by %.3f nats", e->what_if_turn.nats);
    } else {
        base_buf_printf(
            &text, "; none of %lld tokens would have been another one", (long long)e->what_if_turn.tokens);
    }
    if (e->what_if_turn.check) base_buf_printf(&text, "; %s", e->what_if_turn.check);
    tui_state_note(s, TUI_ITEM_NOTICE, text.data);
    base_buf_free(&text);
}

void tui_on_what_if_answer(tui_state *s, const agent_event *e, int64_t now)
{
    base_buf text = {0};
    if (e->what_if_answer.diff)
        base_buf_printf(&text, "what if: would have answered otherwise\n%s", e->what_if_answer.diff);
    else if (*e->what_if_answer.was || *e->what_if_answer.instead)
        base_buf_puts(&text, "what if: would have answered as recorded");
    if (e->what_if_answer.stopped)
        base_buf_printf(
            &text, "%sthe free side ends here: %s", text.len ? "\n" : "", e->what_if_answer.stopped);
    tui_state_note(s, TUI_ITEM_NOTICE, text.data ? text.data : "");
    base_buf_free(&text);
}
