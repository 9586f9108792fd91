/* Which models are offered what: by their real sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/engine/ability.h"

static void test_ability__counts_what_a_model_is(void **state)
{
    static const struct {
        const char *name;
        agent_ability is;
        bool strong;
    } models[] = {
        {"SmolLM2-135M", {MODEL_TOOLS_JSON, 134515008, 134515008}, false},
        {"Qwen2.5-Coder-1.5B", {MODEL_TOOLS_TAG_TOOLS, 1543714304, 1543714304}, false},
        {"Qwen2.5-Coder-3B", {MODEL_TOOLS_TAG_TOOLS, 3085938688, 3085938688}, false},
        {"Qwen3-4B", {MODEL_TOOLS_HERMES, 4022468096, 4022468096}, false},
        {"Qwen2.5-Coder-7B", {MODEL_TOOLS_TAG_TOOLS, 7615616512, 7615616512}, true},
        {"Qwen3.5-2B", {MODEL_TOOLS_XML, 2000000000, 2000000000}, false},
        {"Qwen3.5-4B", {MODEL_TOOLS_XML, 4000000000, 4000000000}, true},
        {"Qwen3-30B-A3B", {MODEL_TOOLS_HERMES, 30532122624, 3353032704}, true},
        {"Qwen3.6-35B-A3B", {MODEL_TOOLS_XML, 35000000000, 3000000000}, true},
        {"a mixture of 8B with 1B at work", {MODEL_TOOLS_JSON, 8300000000, 1500000000}, false},
        {"Devstral Small", {MODEL_TOOLS_MISTRAL, 23572403200, 23572403200}, true},
        {"a server that says nothing", {MODEL_TOOLS_HERMES, 0, 0}, true},
        {"a server that says 4B", {MODEL_TOOLS_HERMES, 4000000000, 0}, false},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (agent_ability_is_strong(&models[i].is) != models[i].strong)
            fail_msg("%s is %s", models[i].name, models[i].strong ? "strong" : "small");
}

static void test_ability__a_person_knows_better(void **state)
{
    bool is_strong = true;
    assert_true(agent_ability_read(NULL, &is_strong) && is_strong);
    assert_true(agent_ability_read("small", &is_strong) && !is_strong);
    assert_true(agent_ability_read("auto", &is_strong) && !is_strong);
    assert_true(agent_ability_read("strong", &is_strong) && is_strong);
    assert_false(agent_ability_read("large", &is_strong));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ability__counts_what_a_model_is),
        cmocka_unit_test(test_ability__a_person_knows_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
