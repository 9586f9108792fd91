/*
 * Against going in circles. Warnings do not stop small models, so calls are counted: the key is the tool, its
 * arguments and payload; the world version says whether the tree changed since. Text is watched while it is
 * decoded.
 */
#include <string.h>

#include "agent/act/act.h"
#include "agent/act/guard.h"
#include "base/hash.h"

/* Members in the order of their names: {"a":1,"b":2} and {"b":2,"a":1} are the same call. */
static uint64_t hash_value(const base_json *v)
{
    base_buf text = {0};
    base_json_put(&text, v);
    uint64_t h = base_hash64(text.data, text.len, 7);
    base_buf_free(&text);
    return h;
}

uint64_t agent__call_key(const char *name, const base_json *arguments, base_str payload)
{
    uint64_t h = base_hash64(name, strlen(name), 1), members = 0;
    for (const base_json *m = arguments ? arguments->first : NULL; m; m = m->next)
        members += base_hash64(m->key ? m->key : "", m->key ? strlen(m->key) : 0, hash_value(m));
    h = base_hash64(&members, sizeof members, h);
    return payload.ptr ? base_hash64(payload.ptr, payload.len, h) : h;
}

agent_made_call *agent__find_made(agent *a, uint64_t key)
{
    for (size_t i = a->made.n_calls; i > 0; i--) {
        agent_made_call *made = &a->made.calls[i - 1];
        if (made->key == key && made->world == a->made.world && (!made->this_turn || made->turn == a->turn))
            return made;
    }
    return NULL;
}

/*
 * The last bytes are one stretch written again and again: short ones need more rounds than long ones to be
 * sure.
 */
bool agent__repeats(const char *text, size_t n)
{
    enum { LONGEST = 400, ENOUGH = 240 };
    for (size_t period = 1; period <= LONGEST; period++) {
        size_t rounds = ENOUGH / period + 1 < 5 ? 5 : ENOUGH / period + 1, want = period * rounds;
        if (n < want) continue;
        const char *end = text + n;
        size_t same = 0;
        while (same < want - period && end[-1 - (ptrdiff_t)same] == end[-1 - (ptrdiff_t)(same + period)])
            same++;
        if (same == want - period) return true;
    }
    return false;
}
