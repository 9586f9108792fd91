#include "agent/call/stream.h"

#include <string.h>

#include "agent/call/call.h"

/* Could this line be (or become) the beginning of a call or of its payload? */
static bool may_begin_call(const char *line, size_t n)
{
    if (*line == '{' || !memcmp(line, "```", n < 3 ? n : 3)) return true;
    for (const char *const *mark = agent_call_marks; *mark; mark++)
        if (!memcmp(line, *mark, n < strlen(*mark) ? n : strlen(*mark))) return true;
    return false;
}

static void show(agent_stream *s, const char *text, size_t n, base_buf *out)
{
    if (!n) return;
    base_buf_add(out, text, n);
    s->shown = true;
    s->line_open = text[n - 1] != '\n';
}

void agent_stream_token(agent_stream *s, const char *text, bool is_call, base_buf *out)
{
    enum { LONGEST_MARK = 7 }; /* of those that are whole words of a line: "<tools>" */
    base_buf_puts(&s->held, text ? text : "");
    s->in_call |= is_call;
    while (s->held.len && !s->in_call) {
        char *newline = memchr(s->held.data, '\n', s->held.len);
        size_t n = newline ? (size_t)(newline - s->held.data) + 1 : s->held.len;
        if (!s->line_open && may_begin_call(s->held.data, n)) {
            s->in_call = newline || n > LONGEST_MARK;
            return;
        }
        show(s, s->held.data, n, out);
        memmove(s->held.data, s->held.data + n, s->held.len - n);
        s->held.len -= n;
    }
}

void agent_stream_answer(agent_stream *s, const char *text, base_buf *out)
{
    if (!s->shown)
        show(s, text, strlen(text), out);
    else if (s->held.len)
        show(s, s->held.data, s->held.len, out);
    agent_stream_forget(s);
}

void agent_stream_forget(agent_stream *s)
{
    base_buf_clear(&s->held);
    s->in_call = s->shown = false;
}

void agent_stream_free(agent_stream *s)
{
    base_buf_free(&s->held);
}
