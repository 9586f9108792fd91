/*
 * A schema up to a zero byte, then a document, then bytes that are offered to the grammar one by one: what is refused says
 * why, and from every state that was reached there is a way to an end as short as its cost says, to a document that fits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/text/schema_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Goes on by the byte that brings the end nearest. */
static void finish(schema_grammar *g, const base_schema *s, schema_state *now, base_buf *text)
{
    static schema_state next, best;
    enum { FAR = 3000 };
    if (schema_grammar_cost(g, now) > FAR) return;
    while (!schema_grammar_is_whole(g, now)) {
        const uint32_t cost = schema_grammar_cost(g, now);
        uint32_t least = cost;
        int byte = -1;
        for (int b = 0; b < 256; b++) {
            if (!schema_grammar_take(g, now, &next, (uint8_t)b)) continue;
            const uint32_t c = schema_grammar_cost(g, &next);
            if (c >= least) continue;
            least = c;
            byte = b;
            schema_state_copy(&best, &next);
        }
        if (byte < 0) abort();
        base_buf_putc(text, (char)byte);
        schema_state_copy(now, &best);
    }
    base_err err = {0};
    if (base_schema_check(s, text->data ? text->data : "", text->len, &err) && err.code != BASE_E_LIMIT)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static schema_state now, next;
    base_schema *s = NULL;
    schema_grammar *g = NULL;
    base_err err = {0};
    base_buf text = {0};
    const uint8_t *zero = n ? memchr(bytes, 0, n) : NULL;
    const size_t n_schema = zero ? (size_t)(zero - bytes) : n, at = zero ? n_schema + 1 : n;
    if (base_schema_parse((const char *)bytes, n_schema, &s, &err)) {
        if (!*err.msg) abort();
        return 0;
    }
    base_schema_check(s, (const char *)bytes + at, n - at, NULL);
    if (schema_grammar_new(&g, s, &err)) {
        if (!*err.msg) abort();
    } else {
        schema_grammar_begin(g, &now);
        for (size_t i = at; i < n && schema_grammar_take(g, &now, &next, bytes[i]); i++) {
            base_buf_putc(&text, (char)bytes[i]);
            schema_state_copy(&now, &next);
        }
        finish(g, s, &now, &text);
    }
    schema_grammar_free(g);
    base_schema_free(s);
    base_buf_free(&text);
    return 0;
}
