/* The table of policies: every file of KV_POLICIES (src/kv/meson.build) holds its row. */
#include "kv/policy/policy.h"

#include <string.h>

#include "kv/session.h"

#define DECLARE(name) extern const kv_policy kv_policy_##name;
KV_POLICIES(DECLARE)
#define ROW(name) &kv_policy_##name,
static const kv_policy *const policies[] = {KV_POLICIES(ROW)};
enum { N_POLICIES = sizeof policies / sizeof *policies };

const kv_policy_info *kv_policy_list(uint32_t *ret_n)
{
    static kv_policy_info infos[N_POLICIES];
    for (size_t i = 0; i < N_POLICIES; i++) infos[i] = policies[i]->info;
    *ret_n = N_POLICIES;
    return infos;
}

void kv_policy_defaults(const char *name, base_buf *out)
{
    const kv_policy *policy = kv_policy_find(name, NULL);
    if (policy) kv_parameters_print(&policy->defaults, policy->info.parameters, out);
}

const kv_policy *kv_policy_find(const char *name, base_err *err)
{
    base_buf known = {0};
    for (size_t i = 0; i < N_POLICIES; i++) {
        if (!name || !strcmp(policies[i]->info.name, name)) {
            base_buf_free(&known);
            return policies[i];
        }
        base_buf_printf(&known, "%s%s", i ? ", " : "", policies[i]->info.name);
    }
    base_fail(err, BASE_E_USAGE, "no cache policy is called '%s'; there are %s", name, known.data);
    base_buf_free(&known);
    return NULL;
}
