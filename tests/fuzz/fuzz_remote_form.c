/*
 * A template elsewhere that writes a history as it likes. The first byte says how: a text for each question, or pieces around each
 * message. What is found has all its parts, and where no difference is told it writes the history that was asked for.
 */
#include "remote/form.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

typedef struct template
{
    const uint8_t *bytes;
    size_t n;
    char *around
        [8]; /* begin and end of system, user, answer; start; what is put in front of a history without a system message */
    bool is_pieces, refuses_system;
    base_buf last; /* the last history that was written */
}
template;

static int render(void *user, const remote_message *m, uint32_t n, bool open, base_buf *out, base_err *err)
{
    template *t = user;
    if (t->refuses_system && m[0].role == MODEL_ROLE_SYSTEM) return base_fail(err, BASE_E_STATE, "no");
    if (t->is_pieces) {
        base_buf_puts(out, t->around[6]);
        if (m[0].role != MODEL_ROLE_SYSTEM) base_buf_puts(out, t->around[7]);
        for (uint32_t i = 0; i < n; i++) {
            const int of = m[i].role == MODEL_ROLE_SYSTEM ? 0 : m[i].role == MODEL_ROLE_USER ? 2 : 4;
            base_buf_printf(out, "%s%.*s%s", t->around[of], (int)m[i].n, m[i].text, t->around[of + 1]);
        }
        if (open) base_buf_puts(out, t->around[4]);
    } else {
        char *text = scratch_part(&t->bytes, &t->n);
        base_buf_puts(out, text);
        free(text);
    }
    base_buf_clear(&t->last);
    base_buf_puts(&t->last, out->data ? out->data : "");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n < 1 || n > 1 << 14) return 0;
    template t = {.bytes = bytes + 1, .n = n - 1, .is_pieces = bytes[0] & 1, .refuses_system = bytes[0] & 2};
    remote_form f = {0};
    base_err err = {0};
    for (int i = 0; i < 8 && t.is_pieces; i++) t.around[i] = scratch_part(&t.bytes, &t.n);
    if (!remote_form_find(&f, render, &t, &err)) {
        static const model_role roles[] = {
            MODEL_ROLE_SYSTEM, MODEL_ROLE_USER, MODEL_ROLE_ASSISTANT, MODEL_ROLE_TOOL};
        if (!f.start) abort();
        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
            if (!f.begin[roles[i]] || !f.end[roles[i]]) abort();
        if (!*f.begin[MODEL_ROLE_ASSISTANT] || !*f.end[MODEL_ROLE_ASSISTANT]) abort();
        if (!f.differs && strncmp(t.last.data, f.start, strlen(f.start))) abort();
        remote_form_free(&f);
    } else if (!err.msg[0]) {
        abort();
    }
    for (int i = 0; i < 8; i++) free(t.around[i]);
    base_buf_free(&t.last);
    return 0;
}
