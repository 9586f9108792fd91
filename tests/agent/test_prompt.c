/* The fixed prompt: the same bytes every time, within its limit of tokens, and its calls are calls. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/call/call.h"
#include "agent/call/call_gemma.h"
#include "agent/call/prompt.h"
#include "base/fs.h"
#include "model/file/gguf.h"
#include "model/text/tokenizer.h"

static int known(const void *user, const char *name)
{
    const tool_entry *t = tool_find(name);
    return !t ? -1 : t->takes_payload;
}

static void test_prompt__is_the_same_bytes_every_time(void **state)
{
    agent_prompt a, b;
    agent_prompt_build(MODEL_TOOLS_TAG_TOOLS, false, &a);
    agent_prompt_build(MODEL_TOOLS_TAG_TOOLS, false, &b);
    assert_int_equal(a.n, b.n);
    for (uint32_t i = 0; i < a.n; i++) assert_string_equal(a.parts[i].text, b.parts[i].text);
    agent_prompt_free(&a);
    agent_prompt_free(&b);
}

static void test_prompt__every_call_in_it_parses_as_a_known_tool(void **state)
{
    for (int style = MODEL_TOOLS_TAG_TOOLS; style <= MODEL_TOOLS_JSON; style++)
        for (int strong = 0; strong < 2; strong++) {
            if (model_tools_are_marked((model_tool_style)style)) continue; /* it has no examples */
            agent_prompt p;
            uint32_t n_calls = 0;
            agent_prompt_build((model_tool_style)style, strong, &p);
            for (uint32_t i = 0; i < p.n; i++) {
                agent_call c = {0};
                if (p.parts[i].role != MODEL_ROLE_ASSISTANT) continue;
                if (agent_call_parse(p.parts[i].text, strlen(p.parts[i].text), true, known, NULL, &c) !=
                    AGENT_CALL_FOUND)
                    continue;
                const tool_entry *t = tool_find(c.name);
                assert_non_null(t);
                assert_true(agent_prompt_offers(t, strong));
                assert_int_equal(t->takes_payload, c.payload != NULL);
                agent_call_free(&c);
                n_calls++;
            }
            assert_true(n_calls >= 2);
            agent_prompt_free(&p);
        }
}

/*
 * What jinja2 makes of a call in llama.cpp's models/templates/Qwen3-Coder.jinja and Qwen3.5-4B.jinja; and the
 * beginnings that the harness writes are beginnings of such a call.
 */
static void test_prompt__writes_the_functions_of_qwens_templates(void **state)
{
    static const char json[] = "{\"name\": \"edit\", \"arguments\": {\"path\": "
                               "\"shop/total.py\", \"from\": 3, \"content\": \"a\\n  b\"}}";
    static const char rendered[] =
        "<tool_call>\n<function=edit>\n<parameter=path>\nshop/total.py\n</parameter>\n<parameter=from>\n3\n"
        "</parameter>\n<parameter=content>\na\n  b\n</parameter>\n</function>\n</tool_call>";
    base_buf out = {0};
    agent_prompt_call(MODEL_TOOLS_XML, json, &out);
    assert_string_equal(out.data, rendered);
    base_buf_clear(&out);
    agent_prompt_open_call(MODEL_TOOLS_XML,
        "{\"name\": \"edit\", \"arguments\": {\"path\": \"shop/total.py\", \"from\": 3, \"content\": \"",
        &out);
    assert_memory_equal(out.data, rendered, out.len);
    assert_string_equal(out.data + out.len - 20, "<parameter=content>\n");
    base_buf_clear(&out);
    agent_prompt_open_payload(MODEL_TOOLS_XML,
        "{\"name\": \"edit\", \"arguments\": {\"path\": \"shop/total.py\", \"from\": 3}}", "python", &out);
    assert_memory_equal(out.data, rendered, out.len);
    assert_string_equal(out.data + out.len - 20, "<parameter=content>\n");
    base_buf_free(&out);
}

/* The same of ByteDance-Seed-OSS.jinja; and it reads as it was written. */
static void test_prompt__writes_the_functions_of_seed_oss(void **state)
{
    static const char json[] =
        "{\"name\": \"edit\", \"arguments\": {\"path\": \"a.c\", \"from\": 3, \"content\": \"a\\n  \\\"b\\\"\\n\"}}";
    static const char rendered[] =
        "<seed:tool_call>\n<function=edit>\n<parameter=path>a.c</parameter>\n<parameter=from>3</parameter>\n"
        "<parameter=content>a\n  \"b\"\n</parameter>\n</function>\n</seed:tool_call>";
    base_buf out = {0};
    agent_prompt_call(MODEL_TOOLS_SEED, json, &out);
    assert_string_equal(out.data, rendered);
    base_buf_clear(&out);
    agent_prompt_open_payload(MODEL_TOOLS_SEED,
        "{\"name\": \"edit\", \"arguments\": {\"path\": \"a.c\", \"from\": 3}}", "python", &out);
    assert_memory_equal(out.data, rendered, out.len);
    assert_string_equal(out.data + out.len - 19, "<parameter=content>");
    base_buf_free(&out);
}

/*
 * What jinja2 makes of these tools in the template of gpt-oss (llama.cpp's models/templates/openai-gpt-oss-120b.jinja),
 * new text as an argument of its own.
 */
static void test_prompt__writes_the_functions_of_gpt_oss(void **state)
{
    static const char *const rendered[] = {
        "# Tools\n\n## functions\n\nnamespace functions {\n\n// ",
        "\ntype read = (_: {\n// ",
        ",\n}) => any;\n\n// ",
        "path: string,\n",
        "from?: number,\n",
        "// the new text\ncontent: string,\n}) => any;\n\n",
        "}) => any;\n\n} // namespace functions",
    };
    for (int strong = 0; strong < 2; strong++) {
        agent_prompt p;
        agent_prompt_build(MODEL_TOOLS_HARMONY, strong, &p);
        assert_int_equal(p.n, 1);
        assert_int_equal(p.parts[0].role, MODEL_ROLE_SYSTEM);
        for (size_t i = 0; i < sizeof rendered / sizeof *rendered; i++)
            if (!strstr(p.parts[0].text, rendered[i]))
                fail_msg("%s is not in: %s", rendered[i], p.parts[0].text);
        assert_null(strstr(p.parts[0].text, "<|"));
        const size_t n = strlen(p.parts[0].text);
        assert_string_equal(p.parts[0].text + n - 22, "} // namespace functions" + 2);
        agent_prompt_free(&p);
    }
}

/* A call that the harness begins has an id like a model's: nine letters or digits, the same of the same call. */
static void test_prompt__gives_calls_of_mistral_an_id(void **state)
{
    static const char json[] = "{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\"}}",
                      mark = AGENT_PROMPT_MARK;
    static const char before[] = "[TOOL_CALLS]read[CALL_ID]", behind[] = "[ARGS]{\"path\": \"a.c\"}";
    base_buf out = {0}, again = {0};
    agent_prompt_call(MODEL_TOOLS_MISTRAL_IDS, json, &out);
    agent_prompt_call(MODEL_TOOLS_MISTRAL_IDS, json, &again);
    assert_string_equal(out.data, again.data);
    assert_int_equal(out.len, sizeof before - 1 + 9 + sizeof behind - 1);
    assert_memory_equal(out.data, before, sizeof before - 1);
    for (size_t i = 0; i < 9; i++) assert_true(isalnum((unsigned char)out.data[sizeof before - 1 + i]));
    assert_string_equal(out.data + sizeof before - 1 + 9, behind);
    base_buf_clear(&again);
    agent_prompt_call(
        MODEL_TOOLS_MISTRAL_IDS, "{\"name\": \"read\", \"arguments\": {\"path\": \"b.c\"}}", &again);
    assert_memory_not_equal(out.data + sizeof before - 1, again.data + sizeof before - 1, 9);
    base_buf_clear(&again);
    agent_prompt_open_call(
        MODEL_TOOLS_MISTRAL_IDS, "{\"name\": \"read\", \"arguments\": {\"path\": \"", &again);
    base_buf_clear(&out);
    base_buf_printf(&out, "%c[TOOL_CALLS]%cread%c[CALL_ID]%c", mark, mark, mark, mark);
    assert_memory_equal(again.data, out.data, out.len);
    const size_t n_id = out.len + 9;
    base_buf_clear(&out);
    base_buf_printf(&out, "%c[ARGS]%c{\"path\": \"", mark, mark);
    assert_string_equal(again.data + n_id, out.data);
    base_buf_free(&out);
    base_buf_free(&again);
}

/* The same as the last member of an object in Nemo's list; Granite's has none. */
static void test_prompt__writes_calls_in_lists(void **state)
{
    static const char json[] = "{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\"}}";
    static const char granite[] = "<|tool_call|>[{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\"}}]",
                      nemo[] =
                          "[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\"}, \"id\": \"";
    base_buf out = {0}, want = {0};
    agent_prompt_call(MODEL_TOOLS_GRANITE, json, &out);
    assert_string_equal(out.data, granite);
    base_buf_clear(&out);
    agent_prompt_call(MODEL_TOOLS_NEMO, json, &out);
    assert_memory_equal(out.data, nemo, sizeof nemo - 1);
    for (size_t i = 0; i < 9; i++) assert_true(isalnum((unsigned char)out.data[sizeof nemo - 1 + i]));
    assert_string_equal(out.data + sizeof nemo - 1 + 9, "\"}]");
    base_buf_clear(&out);
    agent_prompt_open_payload(MODEL_TOOLS_NEMO, json, "c", &out);
    base_buf_printf(&want,
        "%c[TOOL_CALLS]%c[{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\", \"content\": \"",
        AGENT_PROMPT_MARK, AGENT_PROMPT_MARK);
    assert_string_equal(out.data, want.data);
    base_buf_free(&out);
    base_buf_free(&want);
}

/* What json.dumps(.., indent=4) makes of them, which Granite 3's template has; and where Nemo's stand. */
static void test_prompt__lists_the_functions_of_granite_and_nemo(void **state)
{
    static const char begins[] =
        "[\n    {\n        \"type\": \"function\",\n        \"function\": {\n            \"name\": \"",
                      path[] =
                          "                    \"path\": {\n                        \"type\": \"string\",\n",
                      ends[] = "                \"required\": [\n                    \"";
    agent_prompt g, n, m;
    agent_prompt_build(MODEL_TOOLS_GRANITE, true, &g);
    agent_prompt_build(MODEL_TOOLS_NEMO, true, &n);
    agent_prompt_build(MODEL_TOOLS_MISTRAL, true, &m);
    assert_int_equal(g.n, 2);
    assert_int_equal(g.parts[1].role, MODEL_ROLE_TOOLS);
    assert_memory_equal(g.parts[1].text, begins, sizeof begins - 1);
    assert_non_null(strstr(g.parts[1].text, path));
    assert_non_null(strstr(g.parts[1].text, ends));
    assert_non_null(strstr(g.parts[0].text, "respond only with"));
    assert_int_equal(n.n, 2);
    assert_int_equal(n.parts[0].role, MODEL_ROLE_TOOLS);
    assert_int_equal(n.parts[1].role, MODEL_ROLE_SYSTEM);
    assert_string_equal(n.parts[0].text, m.parts[1].text);
    /* Without its blanks outside of strings, what Granite is told is what the others are. */
    base_json_doc *one = NULL, *other = NULL;
    base_buf a = {0}, b = {0};
    assert_int_equal(base_json_parse(g.parts[1].text, strlen(g.parts[1].text), &one, NULL), 0);
    assert_int_equal(base_json_parse(m.parts[1].text, strlen(m.parts[1].text), &other, NULL), 0);
    base_json_put(&a, base_json_root(one));
    base_json_put(&b, base_json_root(other));
    assert_string_equal(a.data, b.data);
    base_json_free(one);
    base_json_free(other);
    base_buf_free(&a);
    base_buf_free(&b);
    agent_prompt_free(&g);
    agent_prompt_free(&n);
    agent_prompt_free(&m);
}

/* What json.dumps makes of the functions, which Devstral's template sets between its marks. */
static void test_prompt__lists_the_functions_of_mistral(void **state)
{
    static const char *const rendered[] = {
        "[{\"type\": \"function\", \"function\": {\"name\": \"",
        "{\"name\": \"read\", \"description\": \"",
        "\"parameters\": {\"type\": \"object\", \"properties\": "
        "{\"path\": {\"type\": \"string\", \"description\": \"",
        "\"from\": {\"type\": \"integer\", \"description\": \"",
        "\"content\": {\"type\": \"string\", \"description\": \"the new text\"}}, \"required\": [\"path\", ",
        "\"content\"]}}}",
    };
    for (int strong = 0; strong < 2; strong++) {
        agent_prompt p;
        agent_prompt_build(MODEL_TOOLS_MISTRAL, strong, &p);
        assert_int_equal(p.n, 2);
        assert_int_equal(p.parts[0].role, MODEL_ROLE_SYSTEM);
        assert_int_equal(p.parts[1].role, MODEL_ROLE_TOOLS);
        for (size_t i = 0; i < sizeof rendered / sizeof *rendered; i++)
            if (!strstr(p.parts[1].text, rendered[i]))
                fail_msg("%s is not in: %s", rendered[i], p.parts[1].text);
        base_json_doc *doc = NULL;
        assert_int_equal(base_json_parse(p.parts[1].text, strlen(p.parts[1].text), &doc, NULL), 0);
        uint32_t n = 0;
        for (const base_json *one = base_json_root(doc)->first; one; one = one->next, n++)
            assert_non_null(
                base_json_get(base_json_get(base_json_get(one, "function"), "parameters"), "required"));
        assert_true(n >= 6 && n <= 8);
        base_json_free(doc);
        agent_prompt_free(&p);
    }
}

/*
 * What jinja2 makes of these functions and of a call in google-gemma-4-31B-it.jinja, with keys as they are given; marks are
 * told from text.
 */
static void test_prompt__writes_the_functions_of_gemma(void **state)
{
    static const char *const modes[] = {"read", "write", NULL};
    static const tool_argument arguments[] = {
        {.name = "path", .about = "file", .required = true, .type = TOOL_ARGUMENT_PATH},
        {.name = "from", .about = "first line", .type = TOOL_ARGUMENT_INTEGER},
        {.name = "Mode", .about = "how", .choices = modes, .type = TOOL_ARGUMENT_CHOICE},
        {.name = "force", .type = TOOL_ARGUMENT_BOOLEAN},
        {.name = "content", .about = "the new text", .required = true, .type = TOOL_ARGUMENT_STRING}};
    static const tool_entry edit = {.name = "edit", .about = "change lines"},
                            now = {.name = "now", .about = "the time"};
    static const char declared[] =
        "|<|tool>|declaration:edit{description:|<|\"|>|change lines|<|\"|>|,parameters:{properties:{content:{"
        "description:|<|\"|>|the new text|<|\"|>|,type:|<|\"|>|STRING|<|\"|>|},force:{type:|<|\"|>|BOOLEAN"
        "|<|\"|>|},from:{description:|<|\"|>|first line|<|\"|>|,type:|<|\"|>|INTEGER|<|\"|>|},Mode:{"
        "description:|<|\"|>|how|<|\"|>|,enum:[|<|\"|>|read|<|\"|>|,|<|\"|>|write|<|\"|>|],type:|<|\"|>|"
        "STRING|<|\"|>|},path:{description:|<|\"|>|file|<|\"|>|,type:|<|\"|>|STRING|<|\"|>|}},required:["
        "|<|\"|>|path|<|\"|>|,|<|\"|>|content|<|\"|>|],type:|<|\"|>|OBJECT|<|\"|>|}}|<tool|>|"
        "|<|tool>|declaration:now{description:|<|\"|>|the time|<|\"|>|,parameters:{type:|<|\"|>|OBJECT"
        "|<|\"|>|}}|<tool|>|";
    static const char json[] = "{\"name\": \"edit\", \"arguments\": {\"content\": \"a\\n  "
                               "\\\"b\\\"\", \"force\": true, \"from\": 3, \"path\": \"a.c\"}}";
    const tool_argument *told[5];
    base_buf out = {0}, want = {0};
    for (size_t i = 0; i < 5; i++) told[i] = &arguments[i];
    agent_call_gemma_declare(&edit, told, 5, &out);
    agent_call_gemma_declare(&now, told, 0, &out);
    for (size_t i = 0; i + 1 < sizeof declared; i++) {
        /* A bar beside a bracket or a quote is a mark's own. */
        const bool is_own = declared[i] == '|' && ((i && strchr("<\"", declared[i - 1])) ||
                                                      (declared[i + 1] == '>' || declared[i + 1] == '"'));
        base_buf_putc(&want, declared[i] == '|' && !is_own ? AGENT_PROMPT_MARK : declared[i]);
    }
    assert_string_equal(out.data, want.data);
    base_buf_clear(&out);
    agent_prompt_call(MODEL_TOOLS_GEMMA, json, &out);
    assert_string_equal(out.data, "<|tool_call>call:edit{content:<|\"|>a\n"
                                  "  \"b\"<|\"|>,force:true,from:3,path:<|\"|>a.c<|\"|>}<tool_call|>");
    base_buf_clear(&out);
    agent_prompt_open_call(
        MODEL_TOOLS_GEMMA, "{\"name\": \"edit\", \"arguments\": {\"path\": \"a.c\", \"name\": \"b", &out);
    assert_string_equal(out.data, "\x1e<|tool_call>\x1e"
                                  "call:edit{path:\x1e<|\"|>\x1e"
                                  "a.c\x1e<|\"|>\x1e,name:\x1e<|\"|>\x1e"
                                  "b");
    base_buf_clear(&out);
    agent_prompt_open_payload(
        MODEL_TOOLS_GEMMA, "{\"name\": \"edit\", \"arguments\": {\"from\": 3}}", "c", &out);
    agent_prompt_put_payload(MODEL_TOOLS_GEMMA, "a\x1e\"\n", 4, &out);
    assert_string_equal(out.data, "\x1e<|tool_call>\x1e"
                                  "call:edit{from:3,content:\x1e<|\"|>\x1e"
                                  "a\"\n");
    for (int strong = 0; strong < 2; strong++) {
        agent_prompt p;
        agent_prompt_build(MODEL_TOOLS_GEMMA, strong, &p);
        assert_int_equal(p.n, 1);
        assert_non_null(strstr(p.parts[0].text, "declaration:read{description:"));
        const size_t n = strlen(p.parts[0].text);
        assert_string_equal(p.parts[0].text + n - 10, "}}\x1e<tool|>\x1e" + 1);
        agent_prompt_free(&p);
    }
    base_buf_free(&out);
    base_buf_free(&want);
}

static void test_prompt__offers_eight_tools_at_most(void **state)
{
    uint32_t n;
    const tool_entry *const *table = tool_table(&n);
    for (int strong = 0; strong < 2; strong++) {
        uint32_t offered = 0;
        for (uint32_t i = 0; i < n; i++) offered += agent_prompt_offers(table[i], strong);
        assert_true(offered >= 6 && offered <= 8);
    }
}

static void test_prompt__stays_within_1500_tokens(void **state)
{
    char *path = base_fs_home(BASE_HOME_DATA, "models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf");
    gguf_file *file = NULL;
    model_tokenizer *t = NULL;
    if (gguf_open(&file, path, NULL)) {
        print_message("%s is not there: skipped\n", path);
        free(path);
        skip();
    }
    assert_int_equal(model_tokenizer_load(&t, file, NULL), 0);
    for (int strong = 0; strong < 2; strong++) {
        agent_prompt p;
        model_ids ids = {0};
        agent_prompt_build(MODEL_TOOLS_TAG_TOOLS, strong, &p);
        for (uint32_t i = 0; i < p.n; i++)
            model_tokenizer_encode(t, p.parts[i].text, strlen(p.parts[i].text), false, &ids);
        assert_true(ids.n + 6 * p.n <= 1500); /* six ids of scaffold a message */
        model_ids_free(&ids);
        agent_prompt_free(&p);
    }
    model_tokenizer_free(t);
    gguf_close(file);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompt__is_the_same_bytes_every_time),
        cmocka_unit_test(test_prompt__every_call_in_it_parses_as_a_known_tool),
        cmocka_unit_test(test_prompt__writes_the_functions_of_qwens_templates),
        cmocka_unit_test(test_prompt__writes_the_functions_of_seed_oss),
        cmocka_unit_test(test_prompt__writes_the_functions_of_gpt_oss),
        cmocka_unit_test(test_prompt__gives_calls_of_mistral_an_id),
        cmocka_unit_test(test_prompt__lists_the_functions_of_mistral),
        cmocka_unit_test(test_prompt__writes_calls_in_lists),
        cmocka_unit_test(test_prompt__lists_the_functions_of_granite_and_nemo),
        cmocka_unit_test(test_prompt__writes_the_functions_of_gemma),
        cmocka_unit_test(test_prompt__offers_eight_tools_at_most),
        cmocka_unit_test(test_prompt__stays_within_1500_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
