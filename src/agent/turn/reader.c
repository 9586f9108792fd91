/* Reading an answer (contract: turn.h): the same of what is decoded, of a candidate, and of one that was taken. */
#include <string.h>

#include "agent/call/prompt.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "base/numbers.h"

/* <think> and its end, which some converters made control tokens; NULL: another. */
static const char *think_mark(const agent *a, int32_t id, size_t *n)
{
    const char *piece = a->engine->ops->piece(a->engine, id, n);
    return piece && (agent_channels_is_think(piece, *n) || agent_channels_is_think_end(piece, *n)) ? piece
                                                                                                   : NULL;
}

/* Does what opened the answer end in <think>, but for white space (Qwen3.5)? */
static void find_open_thought(const agent *a, agent_channels *c)
{
    uint32_t n = 0;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    for (uint32_t i = n; i-- > 0;) {
        size_t len = 0;
        const char *piece = a->engine->ops->piece(a->engine, ids[i], &len);
        if (piece && agent_channels_is_think(piece, len)) agent_channels_open_thought(c, i);
        if (!piece || strspn(piece, "\n") < len) return;
    }
}

void agent__reader_begin(agent *a, agent_reader *r)
{
    agent_channels_begin(&r->channels, a->info.tools);
    r->channels.head_from = agent__n_tokens(a);
    if (r->channels.form == AGENT_OF_WORDS) find_open_thought(a, &r->channels);
}

void agent__reader_take(const agent *a, agent_reader *r, int32_t id, uint32_t index)
{
    size_t n = 0;
    const char *piece = agent__piece(a, id, &n);
    const bool is_control = piece == NULL;
    if (is_control)
        piece = r->channels.form == AGENT_OF_WORDS ? think_mark(a, id, &n)
                                                   : a->engine->ops->piece(a->engine, id, &n);
    if (piece) agent_channels_take(&r->channels, index, piece, n, is_control, &r->text, &r->thought);
    r->n_thought += r->channels.at == AGENT_IN_THOUGHT;
}

void agent__reader_free(agent_reader *r)
{
    base_buf_free(&r->text);
    base_buf_free(&r->thought);
    agent_channels_free(&r->channels);
}

void agent__reader_line_begins(agent_reader *r)
{
    r->line_text = r->text.len;
    r->line_thought = r->thought.len;
    r->line_in_head = r->channels.form == AGENT_OF_HARMONY && r->channels.at == AGENT_IN_HEAD;
}

static bool has_line_end(const base_buf *text, size_t from)
{
    return from < text->len && memchr(text->data + from, '\n', text->len - from);
}

bool agent__reader_has_line(const agent_reader *r)
{
    const bool is_marked = r->channels.form != AGENT_OF_WORDS;
    const bool any = r->text.len > r->line_text || r->thought.len > r->line_thought;
    return (is_marked && r->channels.at == AGENT_IN_HEAD && (any || !r->line_in_head)) ||
           has_line_end(&r->text, r->line_text) || has_line_end(&r->thought, r->line_thought);
}

void agent__put_call_behind(
    const agent *a, const agent_reader *r, bool is_ended, const base_buf *call, base_buf *out)
{
    size_t from = 0;
    if (!model_tools_are_marked(a->info.tools)) {
        if (r->text.len && r->text.data[r->text.len - 1] != '\n') base_buf_putc(out, '\n');
    } else if (!is_ended) {
        const bool in_head = r->channels.at == AGENT_IN_HEAD;
        agent_prompt_end_thought(a->info.tools, in_head, out);
        /* Mistral and Gemma: the model has just written the mark that a call begins with. */
        if (in_head && r->channels.form != AGENT_OF_HARMONY)
            from = (size_t)(strchr(call->data + 1, AGENT_PROMPT_MARK) - call->data) + 1;
    }
    base_buf_add(out, call->data + from, call->len - from);
}

bool agent__ends_thought(agent *a, agent_reader *r, model_ids *ret)
{
    if (r->channels.at != AGENT_IN_THOUGHT || r->n_thought < a->settings.max_thought || !a->engine->ops->mark)
        return false;
    base_buf text = {0};
    agent_prompt_close_thought(a->info.tools, r->n_closed > 0, &text);
    const bool is_known = !agent__encode_marked(a, text.data, text.len, ret, NULL, NULL);
    base_buf_free(&text);
    if (!is_known) return false;
    r->n_closed++;
    if (!a->thoughts.told_long)
        agent__notice(a, "a thought of %s tokens was ended (--max-thought): the answer begins",
            BASE_THOUSANDS(r->n_thought));
    a->thoughts.told_long = true;
    return true;
}

void agent__tell_grammar(agent *a, uint32_t from)
{
    uint32_t n = 0;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    if (a->engine->ops->answer_opened && from < n)
        a->engine->ops->answer_opened(a->engine, ids + from, n - from);
}

bool agent__can_begin_calls(const agent *a)
{
    return !model_tools_are_marked(a->info.tools) || a->engine->ops->mark;
}
