/*
 * The grammar of tool calls in JSON and between tags: what it lets through, what it stops and where, and that it never leaves the
 * model stuck. Texts are fed in every split; masks are compared with what accepts says, and random walks
 * through masks must end in a valid call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/json.h"
#include "grammar_kit.h"

/* Feeds text as tokens; returns how many bytes were accepted before the first token that was not. */
static size_t feed(model_grammar *g, const vocabulary *v, const char *text, size_t n)
{
    model_ids ids = {0};
    size_t at = 0;
    model_tokenizer_encode(v->tokenizer, text, n, false, &ids);
    for (size_t i = 0; i < ids.n && model_grammar_accepts(g, ids.ids[i]); i++) {
        size_t n_piece;
        model_tokenizer_piece(v->tokenizer, ids.ids[i], &n_piece);
        model_grammar_advance(g, ids.ids[i]);
        at += n_piece;
    }
    model_ids_free(&ids);
    return at;
}

static size_t feed_bytes(model_grammar *g, const vocabulary *v, const char *text)
{
    size_t n = strlen(text), at = 0;
    while (at < n && feed(g, v, text + at, 1) == 1) at++;
    return at;
}

/* ---- what is let through ---- */

typedef struct fixture {
    model_tool_style style;
    const char *text;
} fixture;

static const fixture fixtures[] = {
    {MODEL_TOOLS_TAG_TOOLS, "<tools>{\"name\": \"now\", \"arguments\": {}}</tools>"},
    {MODEL_TOOLS_TAG_TOOLS, "<tools>\n{\"name\": \"send\", \"arguments\": {\"to\": \"x\"}}\n</tools>"},
    {MODEL_TOOLS_TAG_TOOLS, "<tools>{\"name\":\"send_message\",\"arguments\":{\"message\":\"\"}}</tools>"},
    {MODEL_TOOLS_TAG_TOOLS, "I look.\n"
                            "<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"src/a.c\"}}</tools>\n"
                            "```c\n"
                            "int x = {\"name\"};\n"
                            "```\n"},
    {MODEL_TOOLS_TAG_TOOLS,
        "<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"src/a.cpp\", \"lines\": 3}}</tools>"},
    {MODEL_TOOLS_TAG_TOOLS, "<tools>{\"name\": \"read\", \"arguments\": {\"path\": "
                            "\"d\xc3\xa9j\xc3\xa0.md\", \"line\": -12, \"lines\": 0}}</tools>"},
    {MODEL_TOOLS_TAG_TOOLS, "<tools>\n"
                            "{\n"
                            "  \"name\": \"set\",\n"
                            "  \"arguments\": {\n"
                            "    \"mode\": \"read-write\",\n"
                            "    \"count\": 1\n"
                            "  }\n"
                            "}\n"
                            "</tools>"},
    {MODEL_TOOLS_TAG_TOOLS, "<tools>{\"name\": \"set\", \"arguments\": {\"quiet\": false, \"mode\": \"a "
                            "\\\"b\\\"\", \"count\": 10}}</tools>"},
    {MODEL_TOOLS_TAG_TOOLS, "<tools>{\"name\": \"send\", \"arguments\": {\"to\": "
                            "\"\\u00e9\\n\\\\\\\"\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf\", "
                            "\"body\": \"{}<tools>\"}}</tools>"},
    {MODEL_TOOLS_TAG_TOOLS, "<tools>{\"name\": \"now\", \"arguments\": {}}</tools>\n"
                            "<tools>{\"name\": \"now\", \"arguments\": {}}</tools>"},
    {MODEL_TOOLS_HERMES, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
    {MODEL_TOOLS_XML, "<tool_call>\n<function=now>\n</function>\n</tool_call>"},
    {MODEL_TOOLS_XML, "<tool_call><function=now></function></tool_call>"},
    {MODEL_TOOLS_XML, "I look.\n\n<tool_call>\n<function=read>\n<parameter=path>\nsrc/a.cpp\n</parameter>\n"
                      "<parameter=lines>\n-12\n</parameter>\n</function>\n</tool_call>\nDone."},
    {MODEL_TOOLS_XML, "<tool_call>\n"
                      "<function=set>\n"
                      "<parameter=quiet>\n"
                      "false\n"
                      "</parameter>\n"
                      "<parameter=mode>\n"
                      "a \"b\"\n"
                      "</parameter>\n"
                      "<parameter=count>\n"
                      "0\n"
                      "</parameter>\n"
                      "</function>\n"
                      "</tool_call>"},
    {MODEL_TOOLS_XML,
        "<tool_call>\n<function=send>\n<parameter=to>\n\n</parameter>\n<parameter=body>\n"
        "if (a < b) {\n\t<\n</\n</param>\n</parameter \n \n</parameter>\n</function>\n</tool_call>"},
    {MODEL_TOOLS_XML,
        "<tool_call>\n<function=send>\n<parameter=to>\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=now>\n</function>\n</tool_call>"},
    {MODEL_TOOLS_SEED,
        "I look.\n\n<seed:tool_call>\n<function=read>\n<parameter=path>src/a.cpp</parameter>\n<parameter=lines>-12</parameter>\n"
        "</function>\n</seed:tool_call>\n"},
    {MODEL_TOOLS_SEED,
        "<seed:tool_call>\n<function=set>\n<parameter=quiet>false</parameter>\n<parameter=mode>a \"b\"</parameter>\n"
        "<parameter=count>0</parameter>\n</function>\n</seed:tool_call>"},
    {MODEL_TOOLS_SEED,
        "<seed:tool_call>\n<function=send>\n<parameter=to></parameter>\n<parameter=body>if (a < b) {\n\t<</\n"
        "</param>\n</parameter \n</parameter>\n</function>\n</seed:tool_call>"},
    {MODEL_TOOLS_SEED, "<tool_call>\n<function=anything>\n"},
    {MODEL_TOOLS_XML, "<function=anything>\n<tool_calls>\n"},
    {MODEL_TOOLS_JSON, "{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\"}}"},
    {MODEL_TOOLS_JSON, "{\"name\" : \"now\" , \"arguments\" : { } }\n\nDone."},
    /* a payload is free, whatever it holds */
    {MODEL_TOOLS_JSON, "{\"name\": \"send\", \"arguments\": {\"to\": \"package.json\"}}\n"
                       "```json\n"
                       "{\"name\": \"x\"}\n"
                       "``\n"
                       "``` x\n"
                       "{\"name\": 1}\n```  \nDone.\n"},
    {MODEL_TOOLS_TAG_TOOLS, "<tools>{\"name\": \"now\", \"arguments\": {}}</tools>\n"
                            "  ~~~~\n"
                            "<tools>x\n"
                            "~~~\n"
                            "<tools>y\n"
                            "~~~~~\n"
                            "Done.\n"},
    {MODEL_TOOLS_JSON, "It is:\n```\n{\"name\": \"kvist\"}\n```\n"},
    {MODEL_TOOLS_TAG_TOOLS, "```\n<tools>{\"name\": \"now\", \"arguments\": {}}</tools>\n```\n"},
    /* free text that only looks like it */
    {MODEL_TOOLS_TAG_TOOLS,
        "Use <tools>whatever</tools> here, {\"name\": 1}.\n <tools>\n<toolbox>\n<tool\n<tools\n"},
    {MODEL_TOOLS_TAG_TOOLS, "<tool_call>{\"name\": \"nothing\"}</tool_call>"},
    {MODEL_TOOLS_JSON, "{\"nam\": 1}\n{\"name: \n {\"name\": \"nothing\"}"},
};
enum { N_FIXTURES = sizeof fixtures / sizeof *fixtures };

/*
 * Every fixture, cut in two at every byte, each part in the vocabulary's own tokens: never refused, and
 * dormant at the end.
 */
static void check_every_split(const vocabulary *v)
{
    for (size_t i = 0; i < N_FIXTURES; i++) {
        const char *text = fixtures[i].text;
        size_t n = strlen(text);
        model_grammar *g = make(v, fixtures[i].style);
        for (size_t cut = 0; cut <= n; cut++) {
            while (cut < n && ((unsigned char)text[cut] & 0xC0) == 0x80)
                cut++; /* encode would repair half a character */
            model_grammar_reset(g);
            size_t fed = feed(g, v, text, cut);
            if (fed != cut) fail_msg("stopped at byte %zu (cut at %zu) of: %s", fed, cut, text);
            fed = feed(g, v, text + cut, n - cut);
            if (fed != n - cut) fail_msg("stopped at byte %zu (cut at %zu) of: %s", cut + fed, cut, text);
            assert_false(model_grammar_is_active(g));
        }
        model_grammar_free(g);
    }
}

static void test_grammar__lets_every_split_of_a_call_through(void **state)
{
    vocabulary v = load_tiny();
    check_every_split(&v);
    unload(&v);
}

static void test_grammar__is_active_from_the_trigger_to_the_end(void **state)
{
    vocabulary v = load_tiny();
    model_grammar *g = make(&v, MODEL_TOOLS_TAG_TOOLS);
    assert_false(model_grammar_is_active(g));
    assert_int_equal(feed_bytes(g, &v, "a\n<tools"), 8);
    assert_false(model_grammar_is_active(g));
    assert_int_equal(feed_bytes(g, &v, ">"), 1);
    assert_true(model_grammar_is_active(g));
    assert_false(model_grammar_accepts(g, TINY_GGUF_IM_END)); /* an answer does not end inside a call */
    assert_int_equal(feed_bytes(g, &v, "{\"name\": \"now\", \"arguments\": {}}</tools"), 39);
    assert_true(model_grammar_is_active(g));
    assert_int_equal(feed_bytes(g, &v, ">"), 1);
    assert_false(model_grammar_is_active(g));
    assert_true(model_grammar_accepts(g, TINY_GGUF_IM_END));
    assert_null(model_grammar_mask(g));
    model_grammar_free(g);
    unload(&v);
}

/* ---- what is stopped ---- */

/* The last byte of each text is the first one that may not come. */
static void test_grammar__stops_at_the_first_wrong_byte(void **state)
{
    /* clang-format off */
    static const char *const bodies[] = {
        "x", "[", "{n", "{'", "{\"names", "{\"name\":n",
        "{\"name\": \"x", "{\"name\": \"sendx", "{\"name\": \"sen\"", "{\"name\": \"send_\"", "{\"name\": \"send_message_",
        "{\"name\": \"now\"}", "{\"name\": \"now\", \"p", "{\"name\": \"now\", \"arguments\": [",
        "{\"name\": \"now\", \"arguments\": {\"", "{\"name\": \"send\", \"arguments\": {}",
        "{\"name\": \"send\", \"arguments\": {\"b",                         /* the required one first */
        "{\"name\": \"send\", \"arguments\": {\"m",                   /* of the other tool */
        "{\"name\": \"send\", \"arguments\": {\"to\": 1",
        "{\"name\": \"send\", \"arguments\": {\"to\": \"a\", \"t",          /* not twice */
        "{\"name\": \"send\", \"arguments\": {\"to\": \"a\", }",
        "{\"name\": \"send\", \"arguments\": {\"to\": \"a\n",
        "{\"name\": \"send\", \"arguments\": {\"to\": \"\\x",
        "{\"name\": \"send\", \"arguments\": {\"to\": \"\\ud8",
        "{\"name\": \"send\", \"arguments\": {\"to\": \"\\u12g",
        "{\"name\": \"send\", \"arguments\": {\"to\": \"a\", \"body\": \"\"}}}",
        "{\"name\": \"send\", \"arguments\": {\"to\": \"a\", \"body\": \"\",",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"x",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"src/\"",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"src/a.cc",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\", \"lines\": 1,",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\", \"line\": 01",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\", \"line\": 1.",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\", \"line\": }",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\", \"line\": --",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\", \"line\": 1234567890123456789",
        "{\"name\": \"set\", \"arguments\": {\"quiet\": tf",
        "{\"name\": \"set\", \"arguments\": {\"quiet\": true, \"c",
        "{\"name\": \"set\", \"arguments\": {\"mode\": \"readx",
        "{\"name\": \"set\", \"arguments\": {\"mode\": \"read\"}",
        "{\"name\": \"now\", \"arguments\": {}}</toolx",
        "             ",
        "{             ",
        "{\"name\":             ",
    };
    /* clang-format on */
    vocabulary v = load_tiny();
    model_grammar *g = make(&v, MODEL_TOOLS_TAG_TOOLS);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        model_grammar_reset(g);
        assert_int_equal(feed_bytes(g, &v, "<tools>"), 7);
        size_t at = feed_bytes(g, &v, bodies[i]);
        if (at + 1 != strlen(bodies[i]))
            fail_msg("stopped at byte %zu of %zu: %s", at, strlen(bodies[i]), bodies[i]);
    }
    model_grammar_free(g);
    unload(&v);
}

/* The same of parameters between tags. */
static void test_grammar__stops_at_the_first_wrong_byte_of_xml(void **state)
{
    static const char *const bodies[] = {
        "{",
        "<function=n>",
        "<function=nowx",
        "<function=now><p",
        "<function=send></",
        "<function=send>\n<parameter=b",                                  /* the required one first */
        "<function=send>\n<parameter=to>x",                               /* a value begins on its own line */
        "<function=send>\n<parameter=to>\nx\n</parameter>\n<parameter=t", /* not twice */
        "<function=read>\n<parameter=path>\nx",
        "<function=read>\n<parameter=path>\nsrc/a.c\n<p",
        "<function=read>\n<parameter=path>\nREADME.md\n</parameter>\n<parameter=line>\n\n",
        "<function=read>\n<parameter=path>\nREADME.md\n</parameter>\n<parameter=line>\n01",
        "<function=read>\n<parameter=path>\nREADME.md\n</parameter>\n<parameter=line>\n-\n",
        "<function=read>\n<parameter=path>\nREADME.md\n</parameter>\n<parameter=line>\n1234567890123456789",
        "<function=set>\n<parameter=quiet>\nfo",
        "<function=now>\n</function>\n</tool_calls",
        "<function=now>\n</function>x",
        "             ",
    };
    vocabulary v = load_tiny();
    model_grammar *g = make(&v, MODEL_TOOLS_XML);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const size_t n = strlen(bodies[i]);
        model_grammar_reset(g);
        assert_int_equal(feed_bytes(g, &v, "<tool_call>"), 11);
        size_t at = feed_bytes(g, &v, bodies[i]);
        if (at + 1 != n) fail_msg("stopped at byte %zu of %zu: %s", at, n, bodies[i]);
    }
    /* a text of any length ends, and the rest of a name comes by itself */
    model_grammar_reset(g);
    static const char start[] = "<tool_call>\n<function=send_message>\n<parameter=message>\n";
    assert_int_equal(feed_bytes(g, &v, start), sizeof start - 1);
    for (int i = 0; i + 1 < 1 << 16; i++) assert_int_equal(feed_bytes(g, &v, "x"), 1);
    assert_int_equal(feed_bytes(g, &v, "x"), 0);
    model_grammar_reset(g);
    assert_int_equal(feed_bytes(g, &v, start), sizeof start - 1);
    for (int i = 0; i + 1 < 1 << 16; i++) assert_int_equal(feed_bytes(g, &v, "x"), 1);
    assert_int_equal(feed_bytes(g, &v, "\n</parameter>"), 13);
    assert_int_equal(feed_bytes(g, &v, "\n</function>\n</tool_call>"), 25);
    assert_false(model_grammar_is_active(g));
    model_grammar_free(g);
    unload(&v);
}

/* Fences hide triggers only while they are open, and tags only behind a call. */
static void test_grammar__triggers_again_behind_a_fence(void **state)
{
    static const struct {
        model_tool_style style;
        const char *text; /* the last byte is wrong */
    } cases[] = {
        {MODEL_TOOLS_JSON, "```\n{\"name\": 1}\n```\n{\"name\": 1"},
        {MODEL_TOOLS_JSON, "``\n{\"name\": 1"},
        {MODEL_TOOLS_TAG_TOOLS,
            "<tools>{\"name\":\"now\",\"arguments\":{}}</tools>\n```\n<tools>x\n```\n<tools>x"},
        {MODEL_TOOLS_TAG_TOOLS, "```\n<tools>x"},
    };
    vocabulary v = load_tiny();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_grammar *g = make(&v, cases[i].style);
        size_t at = feed_bytes(g, &v, cases[i].text);
        if (at + 1 != strlen(cases[i].text)) fail_msg("stopped at byte %zu of: %s", at, cases[i].text);
        model_grammar_free(g);
    }
    unload(&v);
}

static void test_grammar__refuses_broken_utf8_in_strings(void **state)
{
    static const char *const bad[] = {"\x80", "\xc0", "\xc1", "\xf5", "\xff", "\xc3\"", "\xe0\x9f",
        "\xed\xa0", "\xf0\x8f", "\xf4\x90", "\xe2\x82\"", "\xf0\x9f\x98\""};
    vocabulary v = load_tiny();
    model_grammar *g = make(&v, MODEL_TOOLS_TAG_TOOLS);
    int32_t of_byte[256];
    for (int i = 0; i < 256; i++) of_byte[i] = -1;
    for (int32_t id = 0; id < TINY_GGUF_VOCAB; id++) {
        size_t n;
        const char *piece = model_tokenizer_piece(v.tokenizer, id, &n);
        if (n == 1) of_byte[(unsigned char)piece[0]] = id;
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        static const char start[] = "<tools>{\"name\":\"send\",\"arguments\":{\"to\":\"";
        size_t n = strlen(bad[i]);
        model_grammar_reset(g);
        assert_int_equal(feed_bytes(g, &v, start), sizeof start - 1);
        for (size_t k = 0; k < n; k++) {
            int32_t id = of_byte[(unsigned char)bad[i][k]];
            assert_true(id >= 0);
            assert_int_equal(model_grammar_accepts(g, id), k + 1 < n);
            model_grammar_advance(g, id);
        }
        assert_false(model_grammar_is_active(g)); /* an unacceptable token makes it dormant */
    }
    model_grammar_free(g);
    unload(&v);
}

static void test_grammar__bounds_strings(void **state)
{
    vocabulary v = load_tiny();
    model_grammar *g = make(&v, MODEL_TOOLS_TAG_TOOLS);
    static const char start[] = "<tools>{\"name\":\"send\",\"arguments\":{\"to\":\"";
    assert_int_equal(feed_bytes(g, &v, start), sizeof start - 1);
    for (int i = 0; i < 4096; i++) assert_int_equal(feed_bytes(g, &v, "x"), 1);
    assert_int_equal(feed_bytes(g, &v, "x"), 0);
    assert_int_equal(feed_bytes(g, &v, "\"}}</tools>"), 11);
    assert_false(model_grammar_is_active(g));
    model_grammar_free(g);
    unload(&v);
}

/* ---- tokens that hold more than one thing ---- */

static void test_grammar__checks_bytes_behind_the_trigger_in_one_token(void **state)
{
    static const char *const pieces[] = {
        "<tools>{", "<tools>x", "<tools>", "x", "\"name\"", ":", "<", "end", NULL};
    vocabulary v = load_pieces(pieces);
    model_grammar *g = make(&v, MODEL_TOOLS_TAG_TOOLS);
    assert_true(model_grammar_accepts(g, 0));
    assert_false(model_grammar_accepts(g, 1));
    const uint64_t *mask = model_grammar_mask(g);
    assert_non_null(mask);
    assert_int_equal(mask[0], 0xFF & ~2u); /* all but that one, the control token too */
    model_grammar_advance(g, 3);           /* inside a line the same token is text */
    assert_true(model_grammar_accepts(g, 1));
    model_grammar_reset(g);
    model_grammar_advance(g, 0);
    assert_true(model_grammar_is_active(g));
    mask = model_grammar_mask(g);
    assert_non_null(mask);
    assert_int_equal(mask[0], 1u << 4);
    model_grammar_advance(g, 4);
    model_grammar_advance(g, 5);
    /* No piece has a quote: nothing is allowed, so there is no mask and whatever comes ends the call. */
    assert_null(model_grammar_mask(g));
    assert_true(model_grammar_is_active(g));
    model_grammar_advance(g, 3);
    assert_false(model_grammar_is_active(g));
    model_grammar_free(g);
    unload(&v);
}

static void test_grammar__a_control_token_out_of_place_makes_it_dormant(void **state)
{
    vocabulary v = load_tiny();
    model_grammar *g = make(&v, MODEL_TOOLS_TAG_TOOLS);
    feed_bytes(g, &v, "<tools>{");
    assert_true(model_grammar_is_active(g));
    model_grammar_advance(g, TINY_GGUF_IM_END);
    assert_false(model_grammar_is_active(g));
    assert_false(model_grammar_accepts(g, -1));
    assert_false(model_grammar_accepts(g, TINY_GGUF_VOCAB));
    model_grammar_advance(g, TINY_GGUF_VOCAB);
    model_grammar_free(g);
    unload(&v);
}

static void test_grammar__without_tools_is_always_dormant(void **state)
{
    vocabulary v = load_tiny();
    model_grammar *g = NULL;
    assert_int_equal(model_grammar_new(&g, v.tokenizer, MODEL_TOOLS_TAG_TOOLS, NULL, 0, NULL, NULL), 0);
    assert_int_equal(feed_bytes(g, &v, "<tools>anything\n<tools>{"), 24);
    assert_false(model_grammar_is_active(g));
    model_grammar_free(g);
    unload(&v);
}

static void test_grammar__takes_any_path_when_there_is_no_list(void **state)
{
    static const char *const none[] = {NULL};
    static const char call[] =
        "<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"any/where\"}}</tools>";
    vocabulary v = load_tiny();
    for (int i = 0; i < 2; i++) {
        model_grammar *g = NULL;
        assert_int_equal(model_grammar_new(&g, v.tokenizer, MODEL_TOOLS_TAG_TOOLS, grammar_tools,
                             GRAMMAR_N_TOOLS, i ? none : NULL, NULL),
            0);
        assert_int_equal(feed_bytes(g, &v, call), sizeof call - 1);
        assert_false(model_grammar_is_active(g));
        model_grammar_free(g);
    }
    unload(&v);
}

static void test_grammar__refuses_tables_it_cannot_follow(void **state)
{
    static const char *const no_choices[] = {NULL};
    static const model_grammar_argument choice = {"c", MODEL_ARGUMENT_CHOICE, true, no_choices};
    static const model_grammar_argument quoted = {"a\"b", MODEL_ARGUMENT_STRING, true, NULL};
    static const model_grammar_tool bad[][2] = {
        {{"", NULL, 0}}, {{"a b", NULL, 0}}, {{"a", NULL, 33}}, {{"a", &choice, 1}}, {{"a", &quoted, 1}}};
    static const model_grammar_tool twice[] = {{"a", NULL, 0}, {"a", NULL, 0}};
    vocabulary v = load_tiny();
    model_grammar *g = NULL;
    base_err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (base_err){0};
        assert_true(model_grammar_new(&g, v.tokenizer, MODEL_TOOLS_JSON, bad[i], 1, NULL, &err) < 0);
        assert_true(err.msg[0] != 0);
    }
    assert_int_equal(
        model_grammar_new(&g, v.tokenizer, MODEL_TOOLS_JSON, twice, 2, NULL, &err), BASE_E_USAGE);
    assert_null(g);
    unload(&v);
}

/* ---- masks ---- */

/* The mask is exactly what accepts says of each id. */
static void check_mask(model_grammar *g, const vocabulary *v)
{
    const uint64_t *mask = model_grammar_mask(g);
    if (!mask) return;
    for (uint32_t id = 0; id < model_tokenizer_size(v->tokenizer); id++) {
        bool in_mask = mask[id / 64] >> (id % 64) & 1;
        if (in_mask != model_grammar_accepts(g, (int32_t)id))
            fail_msg("id %u: mask %d, accepts %d", id, in_mask, !in_mask);
    }
}

static void check_masks_along(const vocabulary *v, size_t step)
{
    for (size_t i = 0; i < N_FIXTURES; i++) {
        model_ids ids = {0};
        model_grammar *g = make(v, fixtures[i].style);
        model_tokenizer_encode(v->tokenizer, fixtures[i].text, strlen(fixtures[i].text), false, &ids);
        for (size_t k = 0; k < ids.n; k++) {
            if (k % step == 0) check_mask(g, v);
            model_grammar_advance(g, ids.ids[k]);
        }
        model_grammar_free(g);
        model_ids_free(&ids);
    }
}

static void test_grammar__masks_are_what_accepts_says(void **state)
{
    vocabulary v = load_tiny();
    check_masks_along(&v, 1);
    unload(&v);
}

/*
 * Whether few ids are allowed behind `text` and then `ids`; where they are, that is the mask there, and
 * nothing has moved.
 */
static bool is_few(const vocabulary *v, const char *text, const int32_t *ids, uint32_t n)
{
    model_grammar *g = make(v, MODEL_TOOLS_TAG_TOOLS), *there = make(v, MODEL_TOOLS_TAG_TOOLS);
    size_t n_bytes = ((size_t)model_tokenizer_size(v->tokenizer) + 63) / 64 * sizeof(uint64_t);
    feed(g, v, text, strlen(text));
    feed(there, v, text, strlen(text));
    for (uint32_t i = 0; i < n; i++) model_grammar_advance(there, ids[i]);
    const uint64_t *few = model_grammar_few(g, ids, n);
    bool is = few != NULL;
    if (is) assert_memory_equal(few, model_grammar_mask(there), n_bytes);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(model_grammar_accepts(g, ids[i]));
        model_grammar_advance(g, ids[i]);
    }
    model_grammar_free(g);
    model_grammar_free(there);
    return is;
}

static void test_grammar__knows_where_few_ids_are_allowed(void **state)
{
    vocabulary v = load_tiny();
    int32_t name[3];
    for (int i = 0; i < 3; i++)
        name[i] = model_tokenizer_find(v.tokenizer, (const char *[]){"n", "a", "m"}[i]);
    assert_false(is_few(&v, "", NULL, 0));
    assert_false(is_few(&v, "text", NULL, 0));
    assert_true(is_few(&v, "<tools>", NULL, 0));
    assert_true(is_few(&v, "<tools>{\"", name, 3));
    assert_true(is_few(&v, "<tools>{\"name\": \"s", NULL, 0));
    assert_true(is_few(&v, "<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"src/a.c", NULL, 0));
    assert_true(is_few(&v, "<tools>{\"name\": \"send\", \"arguments\": {\"to\": ", NULL, 0));
    assert_false(is_few(&v, "<tools>{\"name\": \"send\", \"arguments\": {\"to\": \"an", NULL, 0));
    assert_false(is_few(&v, "<tools>{\"name\": \"send\", \"arguments\": {\"to\": \"", name, 3));
    unload(&v);
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % n);
}

/*
 * Takes any allowed id (a closing quote more often, so that strings end) until the call is over: it has to be
 * over some time, every state must allow something, and what was written is one call of a known tool.
 */
static void walk(const vocabulary *v, uint64_t seed)
{
    model_grammar *g = make(v, MODEL_TOOLS_TAG_TOOLS);
    base_buf text = {0};
    uint32_t n_vocab = model_tokenizer_size(v->tokenizer);
    int32_t quote = model_tokenizer_find(v->tokenizer, "\"");
    assert_int_equal(feed(g, v, "<tools>", 7), 7);
    for (int steps = 0; model_grammar_is_active(g); steps++) {
        assert_true(steps < 6000);
        const uint64_t *mask = model_grammar_mask(g);
        if (!mask) fail_msg("nothing is allowed behind: %s", text.data);
        int32_t id = (int32_t)random_below(&seed, n_vocab);
        while (!(mask[id / 64] >> (id % 64) & 1)) id = (id + 1) % (int32_t)n_vocab;
        if ((mask[quote / 64] >> (quote % 64) & 1) && random_below(&seed, 4) == 0) id = quote;
        assert_true(model_grammar_accepts(g, id));
        model_grammar_advance(g, id);
        size_t n;
        const char *piece = model_tokenizer_piece(v->tokenizer, id, &n);
        base_buf_add(&text, piece, n);
    }
    /* The last token may go on with free text behind the call. */
    char *end = strstr(text.data, "</tools>");
    for (char *later; end && (later = strstr(end + 1, "</tools>"));) end = later;
    assert_non_null(end);
    base_json_doc *doc;
    base_err err = {0};
    if (base_json_parse(text.data, (size_t)(end - text.data), &doc, &err) != 0)
        fail_msg("%s in: %s", err.msg, text.data);
    const char *name = base_json_str(base_json_root(doc), "name", "");
    bool known = false;
    for (size_t i = 0; i < GRAMMAR_N_TOOLS; i++) known = known || strcmp(grammar_tools[i].name, name) == 0;
    assert_true(known);
    assert_int_equal(base_json_get(base_json_root(doc), "arguments")->type, BASE_JSON_OBJECT);
    base_json_free(doc);
    base_buf_free(&text);
    model_grammar_free(g);
}

static void test_grammar__every_walk_through_masks_ends_in_a_call(void **state)
{
    vocabulary v = load_tiny();
    for (uint64_t seed = 1; seed <= 200; seed++) walk(&v, seed);
    unload(&v);
}

/* ---- what must come ---- */

/* Forced tokens are accepted one after the other, and no token with another first byte is. */
static uint32_t check_forced(const model_grammar *g, model_grammar *copy, const vocabulary *v)
{
    int32_t forced[8];
    uint32_t n = model_grammar_forced(g, forced, 8);
    for (uint32_t i = 0; i < n; i++) {
        size_t n_first, n_piece;
        const char *first = model_tokenizer_piece(v->tokenizer, forced[i], &n_first);
        for (uint32_t id = 0; id < model_tokenizer_size(v->tokenizer); id++) {
            const char *piece = model_tokenizer_piece(v->tokenizer, (int32_t)id, &n_piece);
            if (n_piece && piece[0] != first[0]) assert_false(model_grammar_accepts(copy, (int32_t)id));
        }
        assert_true(model_grammar_accepts(copy, forced[i]));
        model_grammar_advance(copy, forced[i]);
    }
    return n;
}

/*
 * Behind every byte of the fixtures; the same bytes are fed to a second grammar that then takes what is
 * forced.
 */
static void check_forced_along(const vocabulary *v, size_t step, bool expected)
{
    uint32_t n_forced = 0;
    for (size_t i = 0; i < N_FIXTURES; i++) {
        size_t n = strlen(fixtures[i].text);
        for (size_t k = 0; k <= n; k += step) {
            model_grammar *g = make(v, fixtures[i].style), *copy = make(v, fixtures[i].style);
            if (feed(g, v, fixtures[i].text, k) == k && feed(copy, v, fixtures[i].text, k) == k)
                n_forced += check_forced(g, copy, v);
            model_grammar_free(g);
            model_grammar_free(copy);
        }
    }
    assert_true(!expected || n_forced > 0);
}

static void test_grammar__forces_what_alone_may_come(void **state)
{
    vocabulary v = load_tiny();
    check_forced_along(&v, 1, true);
    /*
     * The rest of a path that only one file has, but for its last token; nothing where two may come, or any
     * text.
     */
    model_grammar *g = make(&v, MODEL_TOOLS_TAG_TOOLS);
    static const char begun[] = "<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"R";
    int32_t ids[32];
    feed(g, &v, begun, sizeof begun - 1);
    uint32_t n = model_grammar_forced(g, ids, 32);
    base_buf text = {0};
    for (uint32_t i = 0; i < n; i++) {
        size_t len;
        const char *piece = model_tokenizer_piece(v.tokenizer, ids[i], &len);
        base_buf_add(&text, piece, len);
    }
    assert_true(text.len > 0 && strncmp(text.data, "EADME.md", text.len) == 0);
    assert_int_equal(model_grammar_forced(g, ids, 2), 2);
    model_grammar_reset(g);
    assert_int_equal(model_grammar_forced(g, ids, 32), 0); /* free text */
    feed(g, &v, begun, sizeof begun - 2);
    assert_int_equal(model_grammar_forced(g, ids, 32), 0); /* several paths */
    base_buf_free(&text);
    model_grammar_free(g);
    unload(&v);
}

/* ---- the default models' vocabularies ---- */

static void check_default(const char *file, int n_walks)
{
    char *path = base_fs_home(BASE_HOME_DATA, file);
    if (!base_fs_exists(path)) {
        print_message("skipped: %s is absent\n", path);
        free(path);
        skip();
    }
    base_err err = {0};
    vocabulary v = {0};
    if (gguf_open(&v.gguf, path, &err) != 0 || model_tokenizer_load(&v.tokenizer, v.gguf, &err) != 0)
        fail_msg("%s", err.msg);
    free(path);
    check_every_split(&v);
    check_masks_along(&v, 7);
    check_forced_along(&v, 5, true);
    for (int seed = 1; seed <= n_walks; seed++) walk(&v, (uint64_t)seed);
    unload(&v);
}

static void test_grammar__works_with_the_default_vocabulary(void **state)
{
    check_default("models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 4);
}

static void test_grammar__works_with_the_small_vocabulary(void **state)
{
    check_default("models/SmolLM2-135M-Instruct.Q4_1.gguf", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar__lets_every_split_of_a_call_through),
        cmocka_unit_test(test_grammar__is_active_from_the_trigger_to_the_end),
        cmocka_unit_test(test_grammar__stops_at_the_first_wrong_byte),
        cmocka_unit_test(test_grammar__stops_at_the_first_wrong_byte_of_xml),
        cmocka_unit_test(test_grammar__triggers_again_behind_a_fence),
        cmocka_unit_test(test_grammar__refuses_broken_utf8_in_strings),
        cmocka_unit_test(test_grammar__bounds_strings),
        cmocka_unit_test(test_grammar__checks_bytes_behind_the_trigger_in_one_token),
        cmocka_unit_test(test_grammar__a_control_token_out_of_place_makes_it_dormant),
        cmocka_unit_test(test_grammar__without_tools_is_always_dormant),
        cmocka_unit_test(test_grammar__takes_any_path_when_there_is_no_list),
        cmocka_unit_test(test_grammar__refuses_tables_it_cannot_follow),
        cmocka_unit_test(test_grammar__masks_are_what_accepts_says),
        cmocka_unit_test(test_grammar__knows_where_few_ids_are_allowed),
        cmocka_unit_test(test_grammar__every_walk_through_masks_ends_in_a_call),
        cmocka_unit_test(test_grammar__forces_what_alone_may_come),
        cmocka_unit_test(test_grammar__works_with_the_default_vocabulary),
        cmocka_unit_test(test_grammar__works_with_the_small_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
