/*
 * kvist log export --labels ID: what a learned eviction policy is trained on (IntentKV, section 3.5;
 * docs/papers.md): at every message and tool result, which tokens of the history the arguments of the next
 * five tool calls quote. One JSON line a place; places without a match are left out. The asking message
 * itself and the template's tokens are never positives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cmd/cmd_log.h"
#include "cmd/log_history.h"

static void print_place(const char *session, const learn_history *h, const learn_place *p)
{
    bool *positive = base_xcalloc((size_t)p->from + 1, sizeof *positive), any = false;
    if (learn_history_quoted(h, p, LEARN_AHEAD, positive)) {
        base_buf out = {0};
        base_buf_puts(&out, "{\"session\":");
        base_json_put_str(&out, session, strlen(session));
        base_buf_printf(
            &out, ",\"turn\":%u,\"n\":%u,\"query\":[%u,%u],\"positives\":[", p->turn, p->to, p->from, p->to);
        for (uint32_t t = 0; t < p->from; t++) {
            if (!positive[t]) continue;
            uint32_t end = t;
            while (end < p->from && positive[end]) end++;
            base_buf_printf(&out, "%s[%u,%u]", any ? "," : "", t, end);
            any = true;
            t = end;
        }
        base_buf_puts(&out, "]}");
        puts(out.data);
        base_buf_free(&out);
    }
    free(positive);
}

int cmd_log_labels(agent_log *log, const char *id, base_err *err)
{
    log_history l;
    const int r = log_history_read(log, id, &l, err);
    for (size_t i = 0; i < l.history.n_places && !r; i++) print_place(id, &l.history, &l.history.places[i]);
    log_history_free(&l);
    return r;
}
