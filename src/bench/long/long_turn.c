/* A turn's time by parts, and the judge of its answer; see long_turn.h. */
#include "bench/long/long_turn.h"

#include <ctype.h>
#include <string.h>

#define PART_WORD(id, word) [LONG_##id] = word,
const char *const long_part_words[LONG_N_PARTS] = {LONG_PARTS(PART_WORD)};
#undef PART_WORD

void long_turn_begin(long_turn *t, uint64_t now)
{
    *t = (long_turn){.at = now};
}

static void give(long_turn *t, long_part part, uint64_t now)
{
    t->ns[part] += now - t->at;
    t->at = now;
}

/* Told when its tokens are computed. Scaffold behind a request or result is the opening of an answer. */
static void on_append(long_turn *t, const agent_event *e, uint64_t now)
{
    const char *origin = e->append.origin ? e->append.origin : "";
    const bool is_scaffold = !strcmp(origin, "scaffold"), is_call = !strcmp(origin, "call");
    give(t, is_call ? LONG_CALL : is_scaffold && t->is_asked ? LONG_REPAIR : LONG_MESSAGE, now);
    t->is_asked = !strcmp(origin, "user") || !strcmp(origin, "tool");
}

void long_turn_event(long_turn *t, const agent_event *e, uint64_t now)
{
    switch (e->type) {
    case AGENT_EVENT_append: on_append(t, e, now); break;
    case AGENT_EVENT_token:
        give(t, e->token.origin && !strcmp(e->token.origin, "call") ? LONG_CALL : LONG_PROSE, now);
        break;
    case AGENT_EVENT_tool_call:
        t->n_calls++;
        give(t, LONG_REST, now);
        break;
    case AGENT_EVENT_tool_result: give(t, LONG_TOOL, now); break;
    case AGENT_EVENT_answer:
        base_buf_clear(&t->answer);
        base_buf_puts(&t->answer, e->answer.text);
        break;
    case AGENT_EVENT_ledger:
        t->added = e->ledger.new;
        t->generated = e->ledger.generated;
        t->evicted = e->ledger.evicted;
        t->promoted = e->ledger.promoted;
        break;
    case AGENT_EVENT_turn_end: t->failed = strcmp(e->turn_end.status, "closed") != 0; break;
    default: break;
    }
}

void long_turn_end(long_turn *t, uint64_t now)
{
    give(t, LONG_REST, now);
}

void long_turn_free(long_turn *t)
{
    base_buf_free(&t->answer);
}

/* --- the judge ------------------------------------------------------------------------------------------ */

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool holds(const char *answer, const char *what)
{
    const size_t n = strlen(what);
    for (const char *at = answer; n && (at = strstr(at, what)); at++)
        if ((at == answer || !is_word_byte(at[-1]) || !is_word_byte(what[0])) &&
            (!is_word_byte(at[n]) || !is_word_byte(what[n - 1])))
            return true;
    return false;
}

bool long_is_right(const base_json *step, const char *answer)
{
    const base_json *all = base_json_get(step, "all"), *any = base_json_get(step, "any");
    for (const base_json *one = any ? any->first : NULL; one; one = one->next)
        if (one->type == BASE_JSON_STRING && holds(answer, one->string)) return true;
    if (any || !all || !all->first) return false;
    for (const base_json *one = all->first; one; one = one->next)
        if (one->type != BASE_JSON_STRING || !holds(answer, one->string)) return false;
    return true;
}
