/*
 * Patterns by PCRE2; see regex.h. Each item of a pattern is a callout (pcre2callout(3)), and a callout is a step. One item may pass over a
 * whole line ("[a-z]*"), and again from each of its letters, so letters count as well.
 */
#include "tools/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    LINE_BYTES = 4096, /* of a line that are looked at */
    MOST_STEPS =
        100000000,       /* of a search: 1 to 2 s on one core; 200 MB of C take 50 million for "[a-z_]+\(" */
    LETTERS_A_STEP = 16, /* that one item passes in the time of a callout */
    HEAP_KILOBYTES = 65536, /* of one match */
};

struct tool_regex {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    const atomic_bool *cancel;
    uint64_t steps;
    size_t at; /* in the line, at the last callout */
    bool is_stopped;
};

static bool takes_steps(tool_regex *r, uint64_t n)
{
    r->steps += n;
    r->is_stopped =
        r->steps > MOST_STEPS || (r->cancel && atomic_load_explicit(r->cancel, memory_order_relaxed));
    return !r->is_stopped;
}

static int on_step(pcre2_callout_block *block, void *user)
{
    tool_regex *r = user;
    const size_t at = block->current_position;
    const size_t passed = at > r->at ? at - r->at : r->at - at;
    r->at = at;
    return takes_steps(r, 1 + passed / LETTERS_A_STEP) ? 0 : PCRE2_ERROR_CALLOUT;
}

int tool__regex_open(
    tool_regex **ret, const char *pattern, bool folds_case, const atomic_bool *cancel, base_err *err)
{
    const uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_AUTO_CALLOUT |
                             PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C |
                             (folds_case ? PCRE2_CASELESS : 0);
    int code;
    PCRE2_SIZE at;
    tool_regex *r = base_xcalloc(1, sizeof *r);
    r->cancel = cancel;
    r->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &code, &at, NULL);
    if (!r->code) {
        PCRE2_UCHAR why[120] = "";
        pcre2_get_error_message(code, why, sizeof why);
        tool__regex_close(r);
        return base_fail(err, BASE_E_FORMAT, "%s at byte %zu", (char *)why, (size_t)at);
    }
    r->match = pcre2_match_data_create(1, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (!r->match || !r->context) {
        tool__regex_close(r);
        return base_fail(err, BASE_E_NOMEM, "there is no memory for it");
    }
    pcre2_set_match_limit(r->context, UINT32_MAX);
    pcre2_set_heap_limit(r->context, HEAP_KILOBYTES);
    pcre2_set_callout(r->context, on_step, r);
    *ret = r;
    return BASE_OK;
}

void tool__regex_close(tool_regex *r)
{
    if (!r) return;
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->context);
    pcre2_code_free(r->code);
    free(r);
}

size_t tool__regex_find(tool_regex *r, const char *text, size_t at, size_t n)
{
    while (at < n && takes_steps(r, 1)) {
        r->at = 0;
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = (end ? (size_t)(end - text) : n) - at, looked = len < LINE_BYTES ? len : LINE_BYTES;
        /* A line that took more memory than it may is passed over, as one without a match. */
        if (pcre2_match(r->code, (PCRE2_SPTR)text + at, looked, 0, 0, r->match, r->context) >= 0)
            return at + pcre2_get_ovector_pointer(r->match)[0];
        at += len + 1;
    }
    return SIZE_MAX;
}

bool tool__regex_is_spent(const tool_regex *r)
{
    return r->steps > MOST_STEPS;
}
