/*
 * How much text one message may bring, which the cache's budget has no say in: results come by pages, and a file
 * that the person names by @ comes whole up to half of the model's context. Beyond that the person is told its
 * size and about how long computing it takes, and decides; where nobody can be asked, its first part comes.
 */
#include <stdlib.h>

#include "agent/retrieve/retrieve.h"
#include "agent/session/tell.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/numbers.h"

enum { KEPT_TOKENS = 1024 }; /* of the context, for the request itself and for its answer */

static uint32_t context_left(const agent *a)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    return s.n_ctx > s.n_tokens ? s.n_ctx - s.n_tokens : 0;
}

uint32_t agent__room_bytes(const agent *a)
{
    enum { BYTES_PER_TOKEN = 3, LEAST = 1500, MOST = 16000 };
    const uint64_t bytes = (uint64_t)context_left(a) * BYTES_PER_TOKEN * 2 / 5;
    return bytes < LEAST ? LEAST : bytes > MOST ? MOST : (uint32_t)bytes;
}

/*
 * What computing a token takes, as the last long text showed, or tokens computed ahead that nobody keeps; 0: this
 * engine cannot tell.
 */
static uint64_t token_ns(const agent *a)
{
    kv_session *s = a->engine->session;
    uint32_t n = 0;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    if (a->ledger.token_ns || !s || !(a->engine->can & ENGINE_LOOKUP) || n < KV_DRAFT_MAX)
        return a->ledger.token_ns;
    const kv_segment segment = {.origin = KV_ORIGIN_CONTEXT, .turn = a->turn};
    float *logits = base_xcalloc(a->info.n_vocab, sizeof *logits);
    int32_t again[KV_DRAFT_MAX];
    for (uint32_t i = 0; i < KV_DRAFT_MAX; i++) again[i] = ids[n - KV_DRAFT_MAX + i];
    const uint64_t start = base_clock_ns();
    const int rc =
        kv_session_draft(s, &segment, again, KV_DRAFT_MAX, KV_DRAFT_MAX - 1, logits, a->cancel, NULL);
    const uint64_t ns = base_clock_ns() - start;
    kv_session_forget(s);
    free(logits);
    return rc ? 0 : ns / KV_DRAFT_MAX;
}

/* ", computing it takes about 3 min"; nothing where no engine can tell. */
static void put_time(const agent *a, uint32_t n_tokens, base_buf *out)
{
    const uint64_t seconds = token_ns(a) * n_tokens / 1000000000u;
    if (!seconds) return;
    base_buf_puts(out, "; computing it takes about ");
    if (seconds < 100)
        base_buf_printf(out, "%u s", (unsigned)seconds);
    else
        base_buf_printf(out, "%u min", (unsigned)((seconds + 30) / 60));
}

static bool is_wanted(agent *a, const char *headline)
{
    agent_event request = {.type = AGENT_EVENT_approval_request,
        .approval_request = {.turn = a->turn,
            .name = "@file",
            .headline = headline,
            .detail = "No: nothing of it is put in front; the model can read it by pages.\n",
            .power = "reads"}};
    agent__emit(a, &request);
    agent__commit(a);
    agent_decision d = a->host.approve(a->host.user, &request);
    const bool yes = d.answer == AGENT_YES || d.answer == AGENT_ALWAYS || d.answer == AGENT_ALWAYS_HERE;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_approval,
                       .approval = {.turn = a->turn, .decision = yes ? "yes" : "no", .reason = d.text}});
    agent__commit(a);
    free(d.text);
    return yes;
}

uint32_t agent__file_room(agent *a, const char *path, uint32_t n_tokens, uint32_t n_lines, uint32_t n_taken)
{
    const uint32_t kept = KEPT_TOKENS + n_taken, all = context_left(a), left = all > kept ? all - kept : 0;
    const uint32_t half = a->info.n_ctx / 2 > n_taken ? a->info.n_ctx / 2 - n_taken : 0;
    if (n_tokens <= left && n_tokens <= half) return n_tokens;
    const char *others = n_taken ? " with what else this message names" : "";
    base_buf size = {0}, text = {0};
    base_buf_printf(
        &size, "@%s: %s tokens in %s lines", path, BASE_THOUSANDS(n_tokens), BASE_THOUSANDS(n_lines));
    uint32_t room = left < half ? left : half;
    if (left <= half) {
        agent__notice(a,
            "%s do not fit into the %s that the session's context has left%s: its first part is put in "
            "front; /compact or a new session makes room",
            size.data, BASE_THOUSANDS(left), others);
    } else if (!a->host.approve) {
        agent__notice(a,
            "%s are more than half of the model's context of %s%s, and nobody can be asked in this run: its "
            "first %s tokens are put in front",
            size.data, BASE_THOUSANDS(a->info.n_ctx), others, BASE_THOUSANDS(half));
    } else {
        const uint32_t most = n_tokens < left ? n_tokens : left;
        base_buf_printf(&text, "%s, more than half of the model's context of %s%s", size.data,
            BASE_THOUSANDS(a->info.n_ctx), others);
        if (most < n_tokens) base_buf_printf(&text, "; the first %s have room", BASE_THOUSANDS(most));
        put_time(a, most, &text);
        room = is_wanted(a, text.data) ? most : 0;
        if (!room) agent__notice(a, "@%s is left out; @NAME brings a definition of it alone", path);
    }
    base_buf_free(&size);
    base_buf_free(&text);
    return room;
}
