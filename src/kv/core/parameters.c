/* The table of parameters: read from --kv-set, printed. */
#include "kv/core/parameters.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/edits.h"
#include "base/mem.h"
#include "kv/session.h"

static const struct parameter {
    const char *name;
    size_t offset;
    double least, most;
    const char *words; /* names of the values 0, 1, ...; NULL: a number */
    const char *about;
} parameters[] = {
#define PARAMETER_ROW(field, name, least, most, words, about)                                                \
    {name, offsetof(kv_parameters, field), least, most, words, about},
    /* clang-format off */
    KV_PARAMETERS(PARAMETER_ROW)
    /* clang-format on */
};
enum { N_PARAMETERS = sizeof parameters / sizeof *parameters };

const kv_parameter_info *kv_parameter_list(uint32_t *ret_n)
{
    static kv_parameter_info infos[N_PARAMETERS];
    for (size_t i = 0; i < N_PARAMETERS; i++)
        infos[i] = (kv_parameter_info){.name = parameters[i].name,
            .words = parameters[i].words,
            .about = parameters[i].about,
            .least = parameters[i].least,
            .most = parameters[i].most};
    *ret_n = N_PARAMETERS;
    return infos;
}

/* A word, or a number without the 0 before its point. */
static void print_value(const struct parameter *p, double value, base_buf *out)
{
    char number[32];
    const char *words = p->words;
    for (int i = 0; words && i < (int)value; i++) words += strcspn(words, " ") + 1;
    snprintf(number, sizeof number, "%.10g", value);
    if (words)
        base_buf_add(out, words, strcspn(words, " "));
    else
        base_buf_puts(out, number + (number[0] == '0' && number[1] == '.'));
}

void kv_parameters_print(const kv_parameters *values, const char *names, base_buf *out)
{
    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        for (size_t i = 0; i < N_PARAMETERS; i++) {
            double value;
            if (strlen(parameters[i].name) != n || memcmp(parameters[i].name, at, n)) continue;
            memcpy(&value, (const char *)values + parameters[i].offset, sizeof value);
            base_buf_printf(out, "%s%s=", at == names ? "" : " ", parameters[i].name);
            print_value(&parameters[i], value, out);
        }
        at += n;
    }
}

/* What --kv-set took once: no published table used another value, or none ever won anything (docs/diary.md). */
static const struct {
    const char *name, *instead;
} gone[] = {
    {"first", "every row is scored exactly"},
    {"even", "the largest bound of a lane's heads counts"},
    {"block", "rows are chosen one by one, or by lines"},
    {"floor", "a detected cut is at a quarter of the layers at least"},
    {"decay", "it is .9, as StructKV has it"},
    {"hysteresis", "it is .05"},
    {"seed", "the controls draw the same rows every time"},
    {"least_span", "it is 16 rows, as CodeComp has it"},
    {"flow", "edges of control flow weigh .10"},
    {"dependence", "def-use pairs weigh .10"},
    {"visited", "every token is visited"},
    {"tau_call", "24 calls in 512 tokens count in full"},
    {"tau_control", "14 predicates in 512 tokens count in full"},
    {"tau_return", "8 returns in 512 tokens count in full"},
    {"tau_assign", "20 assignments in 512 tokens count in full"},
    {"tau_flow", "60 edges of control flow in 512 tokens count in full"},
    {"tau_dependence", "60 def-use pairs in 512 tokens count in full"},
};
enum { N_GONE = sizeof gone / sizeof *gone };

/* The place of a word in "a b c"; -1: it is not there. */
static int word_place(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (int place = 0; *words; place++) {
        const size_t len = strcspn(words, " ");
        if (len == n && !memcmp(words, word, n)) return place;
        words += len + (words[len] == ' ');
    }
    return -1;
}

static int parse_one(const char *pair, kv_parameters *ret, base_err *err)
{
    const char *equals = strchr(pair, '=');
    const size_t n = equals ? (size_t)(equals - pair) : strlen(pair);
    char *name = base_xstrndup(pair, n);
    base_buf known = {0};
    base_guess guess = base_guess_begin(name);
    base_buf_puts(&known, "; there are ");
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        const struct parameter *p = &parameters[i];
        base_guess_offer(&guess, p->name);
        if (strlen(p->name) != n || memcmp(p->name, pair, n)) {
            base_buf_printf(&known, "%s%s", i ? ", " : "", p->name);
            continue;
        }
        base_buf_free(&known);
        free(name);
        const int place = p->words && equals ? word_place(p->words, equals + 1) : -1;
        if (p->words && place < 0)
            return base_fail(err, BASE_E_USAGE, "--kv-set %s: %s is one of: %s", pair, p->name, p->words);
        if (p->words) {
            const double word = place;
            memcpy((char *)ret + p->offset, &word, sizeof word);
            return 0;
        }
        char *end = NULL;
        const double value = equals ? strtod(equals + 1, &end) : 0;
        if (!equals || end == equals + 1 || *end || !(value >= p->least && value <= p->most))
            return base_fail(err, BASE_E_USAGE, "--kv-set %s: %s is a number from %.10g to %.10g", pair,
                p->name, p->least, p->most);
        memcpy((char *)ret + p->offset, &value, sizeof value);
        return 0;
    }
    size_t i = 0;
    while (i < N_GONE && (strlen(gone[i].name) != n || memcmp(gone[i].name, pair, n))) i++;
    if (i < N_GONE)
        base_fail(err, BASE_E_USAGE, "--kv-set %s: this can no longer be set; %s", pair, gone[i].instead);
    else
        base_fail(
            err, BASE_E_USAGE, "--kv-set %s: no such parameter%s", pair, base_guess_tell(&guess, known.data));
    base_buf_free(&known);
    free(name);
    return BASE_E_USAGE;
}

int kv_parameter_check(const char *pair, base_err *err)
{
    kv_parameters any;
    return parse_one(pair, &any, err);
}

int kv_parameters_parse(
    const kv_parameters *defaults, const char *const *set, kv_parameters *ret, base_err *err)
{
    *ret = *defaults;
    for (; set && *set; set++) {
        int rc = parse_one(*set, ret, err);
        if (rc) return rc;
    }
    return 0;
}
