/*
 * kvist kv policies: what --kv-policy and --kv-set may say, each policy with its defaults and where those
 * come from. kvist kv calibrate: a model's retrieval heads, which the shell finds in idle time, now. kvist kv pace:
 * from how many rows on few of them are faster on this machine, likewise.
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

static int calibrate(const common_options *common, base_err *err)
{
    char *heads = NULL;
    model *m = NULL;
    int r = cmd_open_model(common, &m, err);
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
            printf("%s behind %u rows: %.1f ms a token, over %u of them %.1f (%.2fx)\n", kinds[kind],
                p->depths[d], p->full[d][kind], p->rows, p->few[d][kind], p->full[d][kind] / p->few[d][kind]);
    const kv_limit limit = kv_pace_limit(p);
    if (limit.rows)
        printf("auto: nothing leaves before there are %u rows, then %u stay\n", limit.until, limit.rows);
    else
        printf("auto: few rows are not faster here, so it goes by memory alone\n");
    printf("%s\n", path);
}

static int measure_pace(const common_options *common, base_err *err)
{
    char *path = NULL;
    model *m = NULL;
    kv_pace pace;
    int r = cmd_open_model(common, &m, err);
    if (!r) r = kv_pace_measure(m, &pace, say_progress, NULL, NULL, err);
    if (!r) path = kv_pace_path(pace.hash);
    if (!r) r = kv_pace_save(&pace, path, err);
    if (!r) print_pace(&pace, path);
    model_close(m);
    free(path);
    return r;
}

static void print_policies(bool json)
{
    uint32_t n = 0;
    const kv_policy_info *policies = kv_policy_list(&n);
    for (uint32_t i = 0; i < n; i++) print_policy(&policies[i], json);
    const kv_parameter_info *parameters = kv_parameter_list(&n);
    if (!json) puts("\nparameters, the same for every policy that uses them:");
    for (uint32_t i = 0; i < n; i++) print_parameter(&parameters[i], json);
}

int cmd_kv(int argc, char **argv)
{
    common_options common = COMMON_OPTIONS_DEFAULTS;
    bool json = false;
    const option_row own[] = {{"--json", OPTION_FLAG, &json, NULL, "policies: one object a line"}, {0}};
    const char **rest = base_xcalloc((size_t)argc, sizeof *rest);
    uint32_t n_rest = 0;
    base_err err = {0};
    int status, r = 0;
    const cmd_words words = {.usage = usage, .rest = rest, .n_rest = &n_rest, .is_configured = true};
    if (cmd_begin(argc, argv, &common, own, &words, &status)) {
        if (n_rest == 1 && !strcmp(rest[0], "policies"))
            print_policies(json);
        else if (n_rest == 1 && !strcmp(rest[0], "calibrate"))
            r = calibrate(&common, &err);
        else if (n_rest == 1 && !strcmp(rest[0], "pace"))
            r = measure_pace(&common, &err);
        else if (n_rest == 1)
            r = options_check_word("kvist kv knows", "policies|calibrate|pace", rest[0], &err);
        else
            r = base_fail(&err, BASE_E_USAGE, "kvist kv takes one word: policies, calibrate or pace");
    }
    free(rest);
    return r ? cmd_complain(&err) : status;
}
