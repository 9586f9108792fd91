#include "kv/core/budget.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static double unit_of(const char *suffix)
{
    static const struct {
        const char *suffix;
        double bytes;
    } units[] = {{"k", 1024.0}, {"m", 1048576.0}, {"g", 1073741824.0}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcasecmp(suffix, units[i].suffix)) return units[i].bytes;
    return 0;
}

int kv_budget_parse(const char *text, kv_budget *ret, base_err *err)
{
    static const struct {
        const char *word;
        kv_budget_kind kind;
    } words[] = {
        {"auto", KV_BUDGET_AUTO}, {"full", KV_BUDGET_FULL}, {"off", KV_BUDGET_FULL}, {"0", KV_BUDGET_FULL}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i].word)) continue;
        *ret = (kv_budget){.kind = words[i].kind};
        return BASE_OK;
    }
    char *end;
    errno = 0;
    double x = strtod(text, &end), unit = unit_of(end), rows = *end == '/' ? strtod(end + 1, &end) : 0;
    bool is_number = !errno && end != text && x > 0 && x <= 1e15;
    if (is_number && !*end && rows >= 1 && x >= rows && x <= 1e9)
        *ret = (kv_budget){KV_BUDGET_ROWS, rows, x};
    else if (is_number && !*end && !strchr(text, '/') && x >= 1 && x <= 1e9)
        *ret = (kv_budget){KV_BUDGET_ROWS, x, 0};
    else if (is_number && !strcmp(end, "%") && x <= 100)
        *ret = (kv_budget){KV_BUDGET_SHARE, x / 100, 0};
    else if (is_number && unit > 0)
        *ret = (kv_budget){KV_BUDGET_BYTES, x * unit, 0};
    else
        return base_fail(err, BASE_E_USAGE,
            "a budget is rows (4096), rows behind more of them (8192/4096: nothing leaves before there are "
            "8192), a share of the model's context (25%%), bytes (200M), auto or full, not \"%s\"",
            text);
    return BASE_OK;
}

static double clamp(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

static kv_limit limit_of(double rows)
{
    return (kv_limit){.rows = (uint32_t)rows};
}

kv_limit kv_budget_rows(
    const kv_budget *b, uint32_t n_ctx, uint32_t row_bytes, uint64_t free_bytes, kv_limit measured)
{
    double bytes = row_bytes ? row_bytes : 1;
    switch (b->kind) {
    case KV_BUDGET_FULL: return limit_of(0);
    case KV_BUDGET_ROWS: return (kv_limit){(uint32_t)b->amount, (uint32_t)b->until};
    case KV_BUDGET_SHARE: return limit_of(clamp(b->amount * n_ctx, 1, UINT32_MAX));
    case KV_BUDGET_BYTES: return limit_of(clamp(b->amount / bytes, 1, UINT32_MAX));
    case KV_BUDGET_AUTO: break;
    }
    const double rows = clamp((double)free_bytes / 4 / bytes, KV_BUDGET_AUTO_LEAST, KV_BUDGET_AUTO_MOST);
    const uint32_t half = n_ctx / 2;
    const kv_limit rule = limit_of(half >= KV_BUDGET_AUTO_LEAST && rows > half ? half : rows);
    if (!measured.rows || measured.rows >= rule.rows) return rule;
    return (kv_limit){measured.rows, measured.until < rule.rows ? measured.until : rule.rows};
}

int kv_budget_tokens(const kv_budget *b, uint32_t n_ctx, uint32_t *ret, base_err *err)
{
    enum { LEAST = 1024 }; /* the fixed prompt and a message */
    const double shares[] = {[KV_BUDGET_AUTO] = .75, [KV_BUDGET_SHARE] = b->amount};
    *ret = 0;
    if (b->kind == KV_BUDGET_FULL) return BASE_OK;
    if (b->kind == KV_BUDGET_BYTES || b->until > 0)
        return base_fail(err, BASE_E_USAGE,
            "an engine elsewhere is held to a budget of tokens: a number of them (8192), a share of its "
            "context (50%%), auto or full");
    const double tokens = b->kind == KV_BUDGET_ROWS ? b->amount : shares[b->kind] * n_ctx;
    if (b->kind != KV_BUDGET_AUTO && tokens < LEAST)
        return base_fail(err, BASE_E_USAGE,
            "a budget of %.0f tokens has no room for the fixed prompt and a message: %d is the least", tokens,
            LEAST);
    *ret = (uint32_t)(tokens < n_ctx ? tokens : n_ctx);
    return BASE_OK;
}
