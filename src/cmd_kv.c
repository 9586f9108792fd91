/*
 * kvist kv policies: what --kv-policy and --kv-set may say, each policy with its defaults and where those come from.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cmd.h"
#include "kv/session.h"
#include "options.h"

static const char usage[] = "usage: kvist kv policies [--json]\n\n"
                            "  The cache's policies (--kv-policy), their parameters (--kv-set NAME=VALUE) "
                            "and the source of each default.\n";

static void put_member(base_buf *out, const char *key, const char *value)
{
    base_buf_printf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
    base_json_put_str(out, value ? value : "", value ? strlen(value) : 0);
}

static void print_policy(const kv_policy_info *p, bool json)
{
    base_buf out = {0};
    if (!json) {
        printf("%s\n  %s\n  defaults: %s\n  source: %s\n", p->name, p->summary,
            *p->parameters ? p->parameters : "-", p->source ? p->source : "-");
        return;
    }
    base_buf_putc(&out, '{');
    put_member(&out, "policy", p->name);
    put_member(&out, "summary", p->summary);
    put_member(&out, "defaults", p->parameters);
    put_member(&out, "source", p->source);
    base_buf_putc(&out, '}');
    puts(out.data);
    base_buf_free(&out);
}

static void print_parameter(const kv_parameter_info *p, bool json)
{
    if (json && p->words)
        printf("{\"parameter\":\"%s\",\"words\":\"%s\"}\n", p->name, p->words);
    else if (json)
        printf("{\"parameter\":\"%s\",\"least\":%g,\"most\":%g}\n", p->name, p->least, p->most);
    else if (p->words)
        printf("  %-12s %s\n", p->name, p->words);
    else
        printf("  %-12s %g to %g\n", p->name, p->least, p->most);
}

int cmd_kv(int argc, char **argv)
{
    bool json = false, help = false;
    const option_row own[] = {{"--json", OPTION_FLAG, &json}, {"--help", OPTION_FLAG, &help}, {.name = NULL}};
    const char **rest = calloc((size_t)argc, sizeof *rest);
    uint32_t n_rest = 0, n = 0;
    base_err err = {0};
    int r = rest ? options_parse(argc, argv, NULL, own, rest, &n_rest, &err) : BASE_E_NOMEM;
    if (!r && !help && (n_rest != 1 || strcmp(rest[0], "policies")))
        r = base_fail(&err, BASE_E_USAGE, "kvist kv knows one word: policies");
    free(rest);
    if (r) return cmd_complain(&err);
    if (help) {
        fputs(usage, stdout);
        return CMD_OK;
    }
    const kv_policy_info *policies = kv_policy_list(&n);
    for (uint32_t i = 0; i < n; i++) print_policy(&policies[i], json);
    const kv_parameter_info *parameters = kv_parameter_list(&n);
    if (!json) puts("\nparameters, the same for every policy that uses them:");
    for (uint32_t i = 0; i < n; i++) print_parameter(&parameters[i], json);
    return CMD_OK;
}
