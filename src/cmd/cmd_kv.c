/*
 * kvist kv policies: what --kv-policy and --kv-set may say, each policy with its defaults and where those
 * come from. kvist kv calibrate and kvist kv pace do at once what the shell does in idle time: find a model's
 * retrieval heads, and measure from how many rows on it is faster here to read few of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "kv/calibrate/calibrate.h"
#include "kv/calibrate/pace.h"
#include "kv/repair/heads.h"
#include "kv/session.h"
#include "cmd/options.h"

typedef struct kv_command {
    common_options common;
    bool json;
} kv_command;

static const char usage[] = "usage: kvist kv policies [--json]\n"
                            "       kvist kv calibrate [--model M]\n"
                            "       kvist kv pace [--model M]\n\n"
                            "  policies   the cache's policies (--kv-policy), their "
                            "parameters (--kv-set NAME=VALUE) and the source of each\n"
                            "             default\n"
                            "  calibrate  finds the model's retrieval heads, by which "
                            "repairs of later sessions ask; the shell does so in idle\n"
                            "             time after its first turn with a model\n"
                            "  pace       measures from how many rows on reading few "
                            "of them is faster on this machine, which the budget auto\n"
                            "             of later sessions takes; the shell does so likewise, once\n";

static void put_member(base_buf *out, const char *key, const char *value)
{
    base_buf_printf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
    base_json_put_str(out, value ? value : "", value ? strlen(value) : 0);
}

static void print_policy(const kv_policy_info *p, bool json)
{
    base_buf out = {0}, defaults = {0};
    kv_policy_defaults(p->name, &defaults);
    if (!json) {
        printf("%s\n  %s\n  defaults: %s\n  source: %s\n", p->name, p->summary,
            defaults.len ? defaults.data : "-", p->source ? p->source : "-");
        base_buf_free(&defaults);
        return;
    }
    base_buf_putc(&out, '{');
    put_member(&out, "policy", p->name);
    put_member(&out, "summary", p->summary);
    put_member(&out, "defaults", defaults.data);
    put_member(&out, "source", p->source);
    base_buf_putc(&out, '}');
    puts(out.data);
    base_buf_free(&out);
    base_buf_free(&defaults);
}

static void print_parameter(const kv_parameter_info *p, bool json)
{
    char range[64];
    snprintf(range, sizeof range, "%.10g to %.10g", p->least, p->most);
    if (json && p->words)
        printf("{\"parameter\":\"%s\",\"words\":\"%s\"}\n", p->name, p->words);
    else if (json)
        printf("{\"parameter\":\"%s\",\"least\":%g,\"most\":%g}\n", p->name, p->least, p->most);
    else
        printf("  %-12s %-18s %s\n", p->name, p->words ? p->words : range, p->about);
}

static void say_progress(void *user, double share)
{
    fprintf(stderr, "%.0f%%\n", share * 100);
}

static int calibrate(void *user, const char *word, base_err *err)
{
    const kv_command *c = user;
    char *heads = NULL;
    model *m = NULL;
    int r = cmd_open_model(&c->common, &m, err);
    if (!r) {
        heads = kv_heads_path(model_get_info(m)->hash);
        r = kv_heads_calibrate(m, KV_HEADS_KEPT, heads, say_progress, NULL, NULL, err);
    }
    if (!r) printf("%s\n", heads);
    model_close(m);
    free(heads);
    return r;
}

static void print_pace(const kv_pace *p, const char *path)
{
    static const char *const kinds[KV_PACE_KINDS] = {"message", "answer"};
    for (int d = 0; d < KV_PACE_DEPTHS; d++)
        for (int kind = 0; kind < KV_PACE_KINDS; kind++)
            printf("%s after %u rows: %.1f ms a token with all of them, %.1f with %u (%.2fx)\n", kinds[kind],
                p->depths[d], p->full[d][kind], p->few[d][kind], p->rows, p->full[d][kind] / p->few[d][kind]);
    const kv_limit limit = kv_pace_limit(p);
    if (limit.rows)
        printf("auto: nothing is evicted before there are %u rows, then %u stay\n", limit.until, limit.rows);
    else
        printf("auto: reading fewer rows is not faster here, so the budget goes by memory alone\n");
    printf("%s\n", path);
}

static int measure_pace(void *user, const char *word, base_err *err)
{
    const kv_command *c = user;
    char *path = NULL;
    model *m = NULL;
    kv_pace pace;
    int r = cmd_open_model(&c->common, &m, err);
    if (!r) r = kv_pace_measure(m, &pace, say_progress, NULL, NULL, err);
    if (!r) path = kv_pace_path(pace.hash);
    if (!r) r = kv_pace_save(&pace, path, err);
    if (!r) print_pace(&pace, path);
    model_close(m);
    free(path);
    return r;
}

static int print_policies(void *user, const char *word, base_err *err)
{
    const bool json = ((const kv_command *)user)->json;
    uint32_t n = 0;
    const kv_policy_info *policies = kv_policy_list(&n);
    for (uint32_t i = 0; i < n; i++) print_policy(&policies[i], json);
    const kv_parameter_info *parameters = kv_parameter_list(&n);
    if (!json) puts("\nparameters, the same for every policy that uses them:");
    for (uint32_t i = 0; i < n; i++) print_parameter(&parameters[i], json);
    return 0;
}

static const cmd_verb verbs[] = {
    {"policies", NULL, print_policies}, {"calibrate", NULL, calibrate}, {"pace", NULL, measure_pace}, {NULL}};

int cmd_kv(int argc, char **argv)
{
    kv_command c = {.common = COMMON_OPTIONS_DEFAULTS};
    const option_row own[] = {{"--json", OPTION_FLAG, &c.json, NULL, "policies: one object a line"}, {0}};
    const char **rest = base_xcalloc((size_t)argc, sizeof *rest);
    uint32_t n_rest = 0;
    base_err err = {0};
    int status, r = 0;
    const cmd_words words = {.usage = usage, .rest = rest, .n_rest = &n_rest, .is_configured = true};
    if (cmd_begin(argc, argv, &c.common, own, &words, &status))
        r = cmd_run_verb("kvist kv", verbs, rest, n_rest, &c, &err);
    free(rest);
    return r ? cmd_complain(&err) : status;
}
