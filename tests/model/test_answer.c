/*
 * An answer held to a schema: JSON or a call, within its tokens. Tokens are bytes and words in any split; a walk that
 * always takes the longest way has to end in time. test_schema.py draws answers of random schemas.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/file/gguf.h"
#include "model/text/answer.h"
#include "tiny_gguf.h"

static const model_grammar_argument read_arguments[] = {{"path", MODEL_ARGUMENT_STRING, true, NULL}};
static const model_grammar_tool tools[] = {{"read", read_arguments, 1}};

typedef struct fixture {
    base_buf bytes;
    gguf_file *gguf;
    model_tokenizer *tokenizer;
    model_grammar *calls;
    base_schema *schema;
    model_answer *answer;
} fixture;

static void open_fixture(fixture *f, const char *schema)
{
    base_err err = {0};
    *f = (fixture){0};
    tiny_gguf_write(&TINY_GGUF_QWEN2, &f->bytes);
    if (gguf_parse(&f->gguf, f->bytes.data, f->bytes.len, &err) ||
        model_tokenizer_load(&f->tokenizer, f->gguf, &err) ||
        model_grammar_new(&f->calls, f->tokenizer, MODEL_TOOLS_TAG_TOOLS, tools, 1, NULL, &err) ||
        base_schema_parse(schema, strlen(schema), &f->schema, &err) ||
        model_answer_new(&f->answer, f->tokenizer, f->schema, &err))
        fail_msg("%s", err.msg);
}

static void close_fixture(fixture *f)
{
    model_answer_free(f->answer);
    base_schema_free(f->schema);
    model_grammar_free(f->calls);
    model_tokenizer_free(f->tokenizer);
    gguf_close(f->gguf);
    base_buf_free(&f->bytes);
}

static void begin(fixture *f, bool calls, uint32_t n_tokens)
{
    base_err err = {0};
    model_grammar_reset(f->calls);
    if (model_answer_begin(f->answer, calls ? f->calls : NULL, n_tokens, &err)) fail_msg("%s", err.msg);
}

static int32_t id_of_byte(const fixture *f, char byte)
{
    for (uint32_t id = 0; id < model_tokenizer_size(f->tokenizer); id++) {
        size_t n;
        const char *piece = model_tokenizer_piece(f->tokenizer, (int32_t)id, &n);
        if (n == 1 && *piece == byte) return (int32_t)id;
    }
    fail_msg("no token is the byte %d", byte);
    return -1;
}

/* How much of the text is taken, byte by byte. Of a call the other grammar would say it. */
static size_t feed(fixture *f, const char *text)
{
    size_t at = 0;
    for (; text[at]; at++) {
        const int32_t id = id_of_byte(f, text[at]);
        if (!model_answer_is_call(f->answer) && !model_answer_accepts(f->answer, id)) break;
        model_answer_advance(f->answer, id);
    }
    return at;
}

static bool may_end(fixture *f)
{
    for (uint32_t id = 0; id < model_tokenizer_size(f->tokenizer); id++)
        if (model_tokenizer_is_end(f->tokenizer, (int32_t)id))
            return model_answer_accepts(f->answer, (int32_t)id);
    return false;
}

static void takes(const char *schema, const char *text, bool whole)
{
    fixture f;
    open_fixture(&f, schema);
    begin(&f, false, 10000);
    if (feed(&f, text) != strlen(text)) fail_msg("%s does not take all of %s", schema, text);
    if (may_end(&f) != whole) fail_msg("%s behind %s: %d", schema, text, !whole);
    close_fixture(&f);
}

static void stops(const char *schema, const char *text, size_t at)
{
    fixture f;
    open_fixture(&f, schema);
    begin(&f, false, 10000);
    const size_t n = feed(&f, text);
    if (n != at) fail_msg("%s takes %zu bytes of %s, not %zu", schema, n, text, at);
    close_fixture(&f);
}

#define PAIR                                                                                                 \
    "{\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":-5,\"maximum\":120},\"b\":{\"type\":"          \
    "\"string\"}},\"required\":[\"b\"]}"
#define TREE                                                                                                 \
    "{\"type\":[\"object\",\"null\"],\"properties\":{\"l\":{\"$ref\":\"#\"},\"r\":{\"$ref\":\"#\"}},"        \
    "\"required\":[\"l\"],\"additionalProperties\":false}"

static void test_answer__takes_what_fits_and_stops_where_it_does_not(void **state)
{
    takes(PAIR, "{\"a\": 120, \"b\": \"x\xc3\xa9\\u0041\"}", true);
    takes(PAIR, "{\"b\": \"\"}", true);
    takes(PAIR, "{\"b\": \"\"", false);
    stops(PAIR, "{\"a\": 121", 8);
    stops(PAIR, "{\"a\": -6", 7);
    stops(PAIR, "{\"a\": 01", 7);
    stops(PAIR, "{\"a\": 1}", 7);
    stops(PAIR, "{}", 1);
    stops(PAIR, "{\"b\": \"x\", \"a\"", 9); /* in the schema's order */
    stops(PAIR, "{\"b\": \"x\"} ", 10);
    stops(PAIR, "{\"b\": \"\\ud800", 10);
    takes(TREE, "{\"l\": {\"l\": null, \"r\": null}}", true);
    takes("{\"type\":\"integer\"}", "-12", true);
    stops("{\"type\":\"integer\"}", "9007199254740992", 15);
    takes("{\"type\":\"number\",\"minimum\":0.25,\"exclusiveMaximum\":1}", "0.999999", true);
    stops("{\"type\":\"number\",\"minimum\":0.25,\"exclusiveMaximum\":1}", "0.24", 3);
    stops("{\"type\":\"number\",\"minimum\":0.25,\"exclusiveMaximum\":1}", "1", 0);
    takes("{\"type\":\"number\"}", "-1.5e+10", true);
    takes("{\"enum\":[1,12,\"a\",[1,{\"b\":null}]]}", "[1, {\"b\": null}]", true);
    takes("{\"enum\":[1,12,\"a\"]}", "1", true);
    takes("{\"enum\":[1,12,\"a\"]}", "12", true);
    takes("{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"}],\"items\":{\"type\":\"boolean\"},"
          "\"minItems\":2,\"maxItems\":3}",
        "[null, true, false]", true);
    stops("{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"}],\"items\":{\"type\":\"boolean\"},"
          "\"minItems\":2,\"maxItems\":3}",
        "[null]", 5);
    stops("{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"}],\"items\":{\"type\":\"boolean\"},"
          "\"minItems\":2,\"maxItems\":3}",
        "[null, true, true, ", 17);
    takes("{\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"const\":1}},\"required\":[\"a\","
          "\"b\"]},"
          "{\"properties\":{\"a\":{\"type\":\"null\"},\"c\":{\"const\":2}},\"required\":[\"a\",\"c\"]}]}",
        "{\"a\": null, \"c\": 2}", true);
    takes("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"null\"}}", "{\"a\": null, \"b\": null}",
        true);
    stops("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"null\"}}", "{\"a\": null, \"a\"", 14);
    stops("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"additionalProperties\":{"
          "\"type\":\"null\"}}",
        "{\"ab\": null, \"a\"", 15);
    stops("{\"type\":\"string\",\"maxLength\":2}", "\"\xc3\xa9\xc3\xa9x", 5);
}

static void test_answer__what_no_value_fits_is_refused(void **state)
{
    static const char *const schemas[] = {
        "{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}",
        "{\"type\":\"integer\",\"minimum\":0.2,\"maximum\":0.8}",
        "{\"type\":\"array\",\"items\":false,\"minItems\":1}",
    };
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        base_schema *s = NULL;
        base_err err = {0};
        assert_int_equal(base_schema_parse(schemas[i], strlen(schemas[i]), &s, &err), 0);
        assert_int_equal(model_answer_can(s, &err), BASE_E_FORMAT);
        assert_non_null(strstr(err.msg, "no value fits"));
        base_schema_free(s);
    }
}

static void test_answer__a_call_in_place_of_json(void **state)
{
    static const char call[] = "<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tools>";
    fixture f;
    open_fixture(&f, PAIR);
    begin(&f, true, 1000);
    assert_int_equal(feed(&f, call), strlen(call));
    assert_true(model_answer_is_call(f.answer));
    begin(&f, true, 1000);
    assert_int_equal(feed(&f, "{\"b\": \"<tools>\"}"), 16);
    assert_false(model_answer_is_call(f.answer));
    assert_true(may_end(&f));
    begin(&f, true, 1000);
    assert_int_equal(feed(&f, "<table"), 2); /* no free text in front of either */
    begin(&f, false, 1000);
    assert_int_equal(feed(&f, call), 0);
    close_fixture(&f);
}

/* Always the token behind which most is missing: the limit is all that ends it. */
static void test_answer__ends_in_time_on_the_longest_way(void **state)
{
    static const char *const schemas[] = {TREE, "{}", PAIR,
        "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}}",
        "{\"type\":\"string\",\"minLength\":20}"};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        for (uint32_t limit = 26; limit < 120; limit += 31) {
            fixture f;
            base_buf text = {0};
            bool ended = false;
            open_fixture(&f, schemas[i]);
            begin(&f, false, limit);
            for (uint32_t n = 0; n < limit && !ended; n++) {
                const uint64_t *mask = model_answer_mask(f.answer);
                int32_t best = -1;
                assert_non_null(mask);
                for (uint32_t id = 0; id < model_tokenizer_size(f.tokenizer); id++) {
                    if (!(mask[id / 64] >> (id % 64) & 1)) continue;
                    size_t len;
                    const char *piece = model_tokenizer_piece(f.tokenizer, (int32_t)id, &len);
                    const bool opens = !model_tokenizer_is_end(f.tokenizer, (int32_t)id) && len == 1 &&
                                       strchr("{[,\"l: ", *piece);
                    if (best < 0 || opens) best = (int32_t)id;
                }
                ended = model_tokenizer_is_end(f.tokenizer, best);
                if (ended) break;
                size_t len;
                const char *piece = model_tokenizer_piece(f.tokenizer, best, &len);
                base_buf_add(&text, piece, len);
                model_answer_advance(f.answer, best);
            }
            base_err err = {0};
            if (!ended || base_schema_check(f.schema, text.data, text.len, &err))
                fail_msg("%s with %u tokens: %s %s", schemas[i], limit, text.data ? text.data : "", err.msg);
            base_buf_free(&text);
            close_fixture(&f);
        }
}

/* Behind every byte of a text, with many tokens left and with few: the mask's ids are those that are accepted. */
static void test_answer__a_mask_has_what_is_accepted(void **state)
{
    static const struct {
        const char *schema, *text;
    } cases[] = {
        {"{\"type\":\"string\"}", "\"a word \\u00e9 \xc3\xa9, and one more\""},
        {"{\"type\":\"string\",\"maxLength\":5}", "\"\xc3\xa9 the\""},
        {"{\"type\":\"string\",\"minLength\":9,\"maxLength\":12}", "\"nine or more\""},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":3}}", "[\"one\", \"\", \"two\"]"},
        {"{\"properties\":{\"the\":{\"type\":\"string\"}},\"additionalProperties\":{\"type\":\"string\"}}",
            "{\"the\": \"a\", \"then\": \"b c\"}"},
        {"{\"anyOf\":[{\"type\":\"string\",\"maxLength\":2},{\"type\":\"string\",\"minLength\":6},"
         "{\"enum\":[\"the end\"]}]}",
            "\"the end\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t more = 2; more < 200; more = more < 20 ? more + 3 : more + 90) {
            const uint32_t limit = (uint32_t)strlen(cases[i].text) + more;
            fixture f;
            open_fixture(&f, cases[i].schema);
            begin(&f, false, limit);
            for (const char *at = cases[i].text;; at++) {
                const uint64_t *mask = model_answer_mask(f.answer);
                if (!mask) fail_msg("no mask in %s at %s", cases[i].text, at);
                for (uint32_t id = 0; id < model_tokenizer_size(f.tokenizer); id++)
                    if (model_answer_accepts(f.answer, (int32_t)id) != (mask[id / 64] >> (id % 64) & 1))
                        fail_msg("%s with %u tokens, at %s: token %u", cases[i].text, limit, at, id);
                if (!*at) break;
                model_answer_advance(f.answer, id_of_byte(&f, *at));
            }
            close_fixture(&f);
        }
}

static void test_answer__too_few_tokens_are_told_before(void **state)
{
    fixture f;
    base_err err = {0};
    open_fixture(&f, PAIR);
    assert_int_equal(model_answer_begin(f.answer, NULL, 9, &err), BASE_E_LIMIT);
    assert_non_null(strstr(err.msg, "has 9 bytes"));
    assert_int_equal(model_answer_begin(f.answer, NULL, 10, &err), 0);
    assert_int_equal(feed(&f, "{\"b\": \"x"), 7);
    assert_true(model_answer_was_cut(f.answer));
    begin(&f, false, 1000);
    assert_int_equal(feed(&f, "{\"b\": \"x"), 8);
    model_answer_close(f.answer);
    assert_int_equal(feed(&f, "x"), 0);
    assert_int_equal(feed(&f, "\"}"), 2);
    assert_true(may_end(&f));
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer__takes_what_fits_and_stops_where_it_does_not),
        cmocka_unit_test(test_answer__what_no_value_fits_is_refused),
        cmocka_unit_test(test_answer__a_call_in_place_of_json),
        cmocka_unit_test(test_answer__ends_in_time_on_the_longest_way),
        cmocka_unit_test(test_answer__a_mask_has_what_is_accepted),
        cmocka_unit_test(test_answer__too_few_tokens_are_told_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
