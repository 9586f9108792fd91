/* The table of policies: every file of KV_POLICIES (src/kv/meson.build) holds its row. */
#include "kv/policy/policy.h"

#include <string.h>

#include "base/edits.h"
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

int kv_policy_check(const char *name, base_err *err)
{
    return kv_policy_find(name, err) ? 0 : BASE_E_USAGE;
}

const kv_policy *kv_policy_find(const char *name, base_err *err)
{
    base_buf known = {0};
    base_guess guess = base_guess_begin(name ? name : "");
    base_buf_puts(&known, "; there are ");
    for (size_t i = 0; i < N_POLICIES; i++) {
        base_guess_offer(&guess, policies[i]->info.name);
        if (!name || !strcmp(policies[i]->info.name, name)) {
            base_buf_free(&known);
            return policies[i];
        }
        base_buf_printf(&known, "%s%s", i ? ", " : "", policies[i]->info.name);
    }
    base_fail(err, BASE_E_USAGE, "no cache policy is called \"%.40s\"%s", name,
        base_guess_tell(&guess, known.data));
    base_buf_free(&known);
    return NULL;
}
