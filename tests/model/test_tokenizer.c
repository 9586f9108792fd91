/*
 * Text to ids. The truth is llama.cpp's: golden/tokens.jsonl.gz for both default models (skipped where they
 * or the data are absent); the rest runs on hand-made vocabularies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/utf8.h"
#include "gguf_build.h"
#include "model/text/tokenizer.h"
#include "model/text/tokenizer_split.h"
#include "tiny_gguf.h"

/* ---- the default models against llama.cpp ---- */

static char *shared_file(const char *name)
{
    const char *shared = getenv("KVIST_SHARED");
    base_buf path = {0};
    base_buf_printf(&path, "%s/data/%s", shared && *shared ? shared : KVIST_SHARED_DEFAULT, name);
    return base_buf_take(&path);
}

static void check_line(const model_tokenizer *t, const char *line, size_t n, const char *model)
{
    base_json_doc *doc;
    base_err err = {0};
    model_ids ids = {0};
    if (base_json_parse(line, n, &doc, &err) != 0) fail_msg("golden data: %s", err.msg);
    const base_json *root = base_json_root(doc), *text = base_json_get(root, "text"),
                    *want = base_json_get(root, model);
    assert_non_null(text);
    assert_non_null(want);
    model_tokenizer_encode(
        t, text->string, text->string_len, base_json_bool(root, "parse_special", false), &ids);
    size_t i = 0;
    for (const base_json *x = want->first; x; x = x->next, i++) {
        if (i >= ids.n || ids.ids[i] != x->integer)
            fail_msg("%s: id %zu is %d and should be %lld in: %.200s", model, i, i < ids.n ? ids.ids[i] : -1,
                (long long)x->integer, text->string);
    }
    assert_int_equal(ids.n, i);
    /* And back: the pieces together are the text (control tokens give their names). */
    base_buf back = {0};
    for (i = 0; i < ids.n; i++) {
        size_t n_piece;
        const char *piece = model_tokenizer_piece(t, ids.ids[i], &n_piece);
        base_buf_add(&back, piece, n_piece);
    }
    bool has_mark = strstr(text->string, "\xe2\x96\x81") != NULL; /* to Gemma that is a space */
    if (strcmp(model, "smollm2-135m") != 0 && !has_mark) {        /* SmolLM2's vocabulary lacks some bytes */
        assert_int_equal(back.len, text->string_len);
        assert_memory_equal(back.data, text->string, back.len);
    }
    base_buf_free(&back);
    model_ids_free(&ids);
    base_json_free(doc);
}

static void check_golden(const char *file, const char *model, const char *data)
{
    char *path = base_fs_home(BASE_HOME_DATA, file), *golden = shared_file(data);
    if (!base_fs_exists(path) || !base_fs_exists(golden)) {
        print_message("skipped: %s or %s is absent\n", path, golden);
        free(path);
        free(golden);
        skip();
    }
    base_err err = {0};
    gguf_file *g;
    model_tokenizer *t;
    base_buf command = {0};
    if (gguf_open(&g, path, &err) != 0 || model_tokenizer_load(&t, g, &err) != 0) fail_msg("%s", err.msg);
    base_buf_printf(&command, "gzip -dc '%s'", golden);
    FILE *lines = popen(command.data, "r");
    assert_non_null(lines);
    char *line = NULL;
    size_t cap = 0;
    int n_lines = 0;
    for (ssize_t n; (n = getline(&line, &cap, lines)) > 0; n_lines++) check_line(t, line, (size_t)n, model);
    assert_int_equal(pclose(lines), 0);
    assert_true(n_lines >= 500);
    free(line);
    free(path);
    free(golden);
    base_buf_free(&command);
    model_tokenizer_free(t);
    gguf_close(g);
}

static void test_tokenizer__agrees_with_llama_cpp_on_qwen(void **state)
{
    check_golden(
        "models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "qwen2.5-coder-1.5b", "golden/tokens.jsonl.gz");
}

static void test_tokenizer__agrees_with_llama_cpp_on_smollm(void **state)
{
    check_golden("models/SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2-135m", "golden/tokens.jsonl.gz");
}

static void test_tokenizer__agrees_with_llama_cpp_on_gemma(void **state)
{
    check_golden("models/gemma-3-270m-q4_k_m.gguf", "gemma3-270m", "golden/tokens-gemma3.jsonl.gz");
}

/* ---- hand-made vocabularies ---- */

/*
 * Pieces with ids from 0 on: the printable ASCII letters that `texts` names, types, merges "a b". The space
 * is the alphabet's U+0120, the newline U+010A.
 */
static base_buf build_vocabulary(
    const char *pre, const char *const *pieces, const int *types, const char *const *merges)
{
    base_buf b = {0};
    uint64_t n = 0, n_merges = 0;
    while (pieces[n]) n++;
    while (merges[n_merges]) n_merges++;
    gguf_build_header(&b, 3, 0, 5);
    gguf_build_key_str(&b, "tokenizer.ggml.model", strcmp(pre, "gemma4") == 0 ? "gemma4" : "gpt2");
    gguf_build_key_str(&b, "tokenizer.ggml.pre", pre);
    gguf_build_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, n);
    for (uint64_t i = 0; i < n; i++) gguf_build_str(&b, pieces[i]);
    gguf_build_key_array(&b, "tokenizer.ggml.token_type", GGUF_I32, n);
    for (uint64_t i = 0; i < n; i++) gguf_build_u32(&b, (uint32_t)types[i]);
    gguf_build_key_array(&b, "tokenizer.ggml.merges", GGUF_STRING, n_merges);
    for (uint64_t i = 0; i < n_merges; i++) gguf_build_str(&b, merges[i]);
    return b;
}

static int load(const base_buf *b, gguf_file **g, model_tokenizer **t, base_err *err)
{
    *err = (base_err){0};
    int r = gguf_parse(g, b->data, b->len, err);
    if (r == 0 && (r = model_tokenizer_load(t, *g, err)) != 0) gguf_close(*g);
    return r;
}

/* The pieces of `text`, each in brackets. */
static void show(const model_tokenizer *t, const char *text, size_t n, bool parse_special, base_buf *out)
{
    model_ids ids = {0};
    base_buf_clear(out);
    base_buf_puts(out, "");
    model_tokenizer_encode(t, text, n, parse_special, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        size_t n_piece;
        const char *piece = model_tokenizer_piece(t, ids.ids[i], &n_piece);
        base_buf_printf(out, "[%.*s]", (int)n_piece, piece);
    }
    model_ids_free(&ids);
}

/* ---- words ---- */

static void check_words(const char *pre, const char *text, const char *want)
{
    base_buf out = {0};
    split_walk walk = {.at = text, .end = text + strlen(text)};
    const char *word = text;
    for (size_t n; (n = split_find(pre, strlen(pre))->next(&walk)) > 0; word += n)
        base_buf_printf(&out, "[%.*s]", (int)n, word);
    if (strcmp(out.data, want) != 0)
        fail_msg("%s: %s gives %s and should give %s", pre, text, out.data, want);
    base_buf_free(&out);
}

static void test_tokenizer__splits_as_each_expression_says(void **state)
{
    /* clang-format off */
    static const struct { const char *pre, *text, *want; } cases[] = {
        {"qwen2",     "a  a",       "[a][ ][ a]"},         /* a run of space gives its last to the word */
        {"qwen2",     "a  ",        "[a][  ]"},            /* but not at the end */
        {"qwen2",     "11",         "[1][1]"},
        {"llama-bpe", "1111",       "[111][1]"},
        {"seed-coder", "It's 11 !!\n\n x", "[It]['s][ ][1][1][ !!][\n\n][ x]"}, /* punctuation leaves the line's end */
        {"seed-coder", "a;\r\n\tb", "[a][;][\r\n][\tb]"},
        {"smaug-bpe", "It's 1111.\n", "[It]['s][ ][111][1][.\n]"},
        {"gpt-2",     " 11",        "[ 11]"},
        {"smollm",    " 11",        "[ ][1][1]"},
        {"smollm",    "a  1",       "[a][  ][1]"},         /* the inner expression does not see the number */
        {"qwen2",     "a's",        "[a]['s]"},
        {"qwen2",     "'sa",        "['s][a]"},
        {"qwen2",     ".aa",        "[.aa]"},              /* one other character joins a word */
        {"gpt-2",     ".aa",        "[.][aa]"},
        {"qwen2",     " ..",        "[ ..]"},
        {"qwen2",     "..\n",       "[..\n]"},             /* punctuation takes the line's end */
        {"gpt-2",     "..\n",       "[..][\n]"},
        {"qwen2",     "a \n a",     "[a][ \n][ a]"},
        {"qwen2",     "a\r\na",     "[a][\r\n][a]"},
        {"gpt-2",     "a\n\na",     "[a][\n][\n][a]"},
        {"qwen2",     "\na",        "[\n][a]"},
        {"qwen2",     "a\u0301b",   "[a][\u0301b]"},       /* marks are no letters */
        {"qwen2",     "\u00e9\u4f60a", "[\u00e9\u4f60a]"},
        {"gpt-2",     "\u0664\u0665",  "[\u0664\u0665]"},
        {"smollm",    "\u0664\u0665",  "[\u0664][\u0665]"},
        {"qwen2",     "a\u00a0\u3000b", "[a][\u00a0][\u3000b]"},
        {"qwen35",    "a\u0301b",     "[a\u0301b]"},        /* marks are letters */
        {"qwen35",    "x \u0301\u0302 1", "[x][ \u0301\u0302][ ][1]"},
        {"qwen35",    "!\u0301!",     "[!\u0301][!]"},
        {"qwen35",    "\u0301 .\u0301", "[\u0301][ .][\u0301]"},
        {"qwen35",    "it's 12\n x",  "[it]['s][ ][1][2][\n][ x]"},
        {"tekken",    "getHTTPName",  "[get][HTTPName]"},  /* small letters end a word, large ones begin one */
        {"tekken",    " HTTP name",   "[ HTTP][ name]"},
        {"tekken",    "it's",         "[it]['s]"},
        {"tekken",    "12",           "[1][2]"},
        {"tekken",    "//\n/x",       "[//\n/][x]"},       /* punctuation takes lines' ends and slashes */
        {"tekken",    "A\u4f60BC",    "[A\u4f60][BC]"},     /* a letter without case ends a word, too */
        {"tekken",    "a\u0301b",     "[a\u0301b]"},        /* marks belong to words */
        {"tekken",    "\u0301A",      "[\u0301][A]"},
        {"tekken",    "\u00c9\u00e9\u00c9", "[\u00c9\u00e9][\u00c9]"},
        {"tekken",    "a \n b",       "[a][ \n][ b]"},
        {"gpt-4o",    "getHTTPName's x", "[get][HTTPName's][ x]"}, /* as tekken's, with what is contracted */
        {"gpt-4o",    "DON'T we'Ll'x", "[DON'T][ we'Ll]['x]"},
        {"gpt-4o",    "'s 1's",       "['s][ ][1]['s]"},
        {"gpt-4o",    "it'\u017f",    "[it'\u017f]"},    /* the long s is an s where case does not count */
        {"gpt-4o",    "12345/\n/",    "[123][45][/\n/]"},
        {"gpt-4o",    "\u00c9\u00e9\u00c9's", "[\u00c9\u00e9][\u00c9's]"},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_words(cases[i].pre, cases[i].text, cases[i].want);
}

static const char *const small_pieces[] = {
    "a", "b", "c", "ab", "bc", "abc", "<", ">", "|", "<|x|>", "<u>", "<|x|>ab", NULL};
static const int small_types[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 3};
static const char *const small_merges[] = {"b c", "a b", "ab c", NULL};

static void test_tokenizer__merges_by_rank(void **state)
{
    base_buf b = build_vocabulary("gpt-2", small_pieces, small_types, small_merges), out = {0};
    gguf_file *g;
    model_tokenizer *t;
    base_err err;
    if (load(&b, &g, &t, &err) != 0) fail_msg("%s", err.msg);
    show(t, "abcab", 5, false, &out); /* b c before a b: a bc ab */
    assert_string_equal(out.data, "[a][bc][ab]");
    show(t, "ab?c", 4, false, &out); /* a byte that the vocabulary lacks is left out */
    assert_string_equal(out.data, "[ab][c]");
    model_tokenizer_free(t);
    gguf_close(g);
    base_buf_free(&b);
    base_buf_free(&out);
}

/* Gemma 4: letters are merged across words, U+2581 is a space, a run of line ends may be whole, a letter without a piece is bytes. */
static void test_tokenizer__merges_letters_across_words(void **state)
{
    static const char *const pieces[] = {"a", "b", "\u2581", "b\u2581", "b\u2581a", "\n", "\n\n\n", "\u00e9",
        "<0xE4>", "<0xBD>", "<0xA0>", "<turn|>", NULL};
    static const int types[] = {1, 1, 1, 1, 1, 1, 1, 1, 6, 6, 6, 4};
    static const char *const merges[] = {"b \u2581", "b\u2581 a", NULL};
    static const char text[] = "ab ab\u2581a\n\n\n\u00e9\n\n\u4f60<turn|>";
    base_buf b = build_vocabulary("gemma4", pieces, types, merges), out = {0};
    gguf_file *g;
    model_tokenizer *t;
    base_err err;
    if (load(&b, &g, &t, &err) != 0) fail_msg("%s", err.msg);
    show(t, text, strlen(text) - strlen("<turn|>"), false, &out);
    assert_string_equal(out.data, "[a][b a][b a][\n\n\n][\u00e9][\n][\n][\xe4][\xbd][\xa0]");
    /* A turn's end is no text, whatever the converter made of it. */
    assert_true(model_tokenizer_is_control(t, 11));
    assert_true(model_tokenizer_is_end(t, 11));
    model_ids ids = {0};
    model_tokenizer_encode(t, "a<turn|>", 8, false, &ids);
    for (size_t i = 0; i < ids.n; i++) assert_int_not_equal(ids.ids[i], 11);
    model_ids_free(&ids);
    model_tokenizer_free(t);
    gguf_close(g);
    base_buf_free(&b);
    base_buf_free(&out);
}

static void test_tokenizer__keeps_control_texts_of_content_as_text(void **state)
{
    base_buf b = build_vocabulary("gpt-2", small_pieces, small_types, small_merges), out = {0};
    gguf_file *g;
    model_tokenizer *t;
    base_err err;
    if (load(&b, &g, &t, &err) != 0) fail_msg("%s", err.msg);
    assert_int_equal(model_tokenizer_find(t, "<|x|>"), 9);
    assert_true(model_tokenizer_is_control(t, 9));
    assert_false(model_tokenizer_is_control(t, 10));
    model_ids ids = {0};
    model_tokenizer_encode(t, "a<|x|>b", 7, false, &ids);
    for (size_t i = 0; i < ids.n; i++) assert_false(model_tokenizer_is_control(t, ids.ids[i]));
    assert_true(ids.n > 3);
    ids.n = 0;
    model_tokenizer_encode(
        t, "a<|x|>abc<u><|x|>", 17, true, &ids); /* the longest first, user-defined ones too */
    assert_int_equal(ids.n, 5);
    assert_int_equal(ids.ids[1], 11);
    assert_int_equal(ids.ids[2], 2);
    assert_int_equal(ids.ids[3], 10);
    assert_int_equal(ids.ids[4], 9);
    ids.n = 0;
    model_tokenizer_encode(t, "a<u>b", 5, false, &ids); /* user-defined: in any text */
    assert_int_equal(ids.n, 3);
    assert_int_equal(ids.ids[1], 10);
    model_ids_free(&ids);
    model_tokenizer_free(t);
    gguf_close(g);
    base_buf_free(&b);
    base_buf_free(&out);
}

static void test_tokenizer__refuses_merges_of_unknown_pieces(void **state)
{
    static const char *const merges[][2] = {
        {"a z", NULL}, {"z a", NULL}, {"a a", NULL}, {"ab", NULL}, {"", NULL}, {" ", NULL}, {"a ", NULL}};
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        base_buf b = build_vocabulary("gpt-2", small_pieces, small_types, merges[i]);
        gguf_file *g;
        model_tokenizer *t;
        base_err err;
        assert_int_equal(load(&b, &g, &t, &err), BASE_E_FORMAT);
        assert_non_null(strstr(err.msg, "merge 0"));
        base_buf_free(&b);
    }
}

static void test_tokenizer__refuses_kinds_it_does_not_know(void **state)
{
    base_buf b = build_vocabulary("klingon", small_pieces, small_types, small_merges);
    gguf_file *g;
    model_tokenizer *t;
    base_err err;
    assert_int_equal(load(&b, &g, &t, &err), BASE_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "klingon"));
    base_buf_free(&b);
    gguf_build_header(&b, 3, 0, 1);
    gguf_build_key_str(&b, "tokenizer.ggml.model", "bert");
    assert_int_equal(load(&b, &g, &t, &err), BASE_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "bert"));
    base_buf_free(&b);
    gguf_build_header(&b, 3, 0, 1);
    gguf_build_key_str(&b, "tokenizer.ggml.model", "gpt2");
    assert_int_equal(load(&b, &g, &t, &err), BASE_E_FORMAT); /* no vocabulary */
    base_buf_free(&b);
}

/* ---- the little model's byte-level vocabulary ---- */

static void test_tokenizer__gives_back_any_bytes(void **state)
{
    base_buf b = {0}, text = {0}, back = {0};
    tiny_gguf_write(&TINY_GGUF_QWEN2, &b);
    gguf_file *g;
    model_tokenizer *t;
    base_err err;
    if (load(&b, &g, &t, &err) != 0) fail_msg("%s", err.msg);
    assert_int_equal(model_tokenizer_size(t), TINY_GGUF_VOCAB);
    assert_true(model_tokenizer_is_end(t, TINY_GGUF_IM_END));
    assert_true(model_tokenizer_is_control(t, TINY_GGUF_IM_START));
    assert_int_equal(model_tokenizer_find(t, "<|im_end|>"), TINY_GGUF_IM_END);
    assert_int_equal(model_tokenizer_bos(t), -1);
    size_t n;
    assert_null(model_tokenizer_piece(t, -1, &n));
    assert_null(model_tokenizer_piece(t, TINY_GGUF_VOCAB, &n));
    uint64_t random = 3;
    for (int i = 0; i < 20000; i++) base_buf_putc(&text, (char)(int)(tiny_random(&random) * 128));
    model_ids ids = {0};
    model_tokenizer_encode(t, text.data, text.len, false, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        const char *piece = model_tokenizer_piece(t, ids.ids[i], &n);
        base_buf_add(&back, piece, n);
    }
    /* Invalid bytes have become U+FFFD; what is left must be the same. */
    base_buf repaired = {0};
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        char bytes[4];
        i += base_utf8_decode(text.data + i, text.len - i, &cp);
        base_buf_add(&repaired, bytes, base_utf8_encode(cp, bytes));
    }
    assert_int_equal(back.len, repaired.len);
    assert_memory_equal(back.data, repaired.data, back.len);
    model_ids_free(&ids);
    model_tokenizer_free(t);
    gguf_close(g);
    base_buf_free(&b);
    base_buf_free(&text);
    base_buf_free(&back);
    base_buf_free(&repaired);
}

/*
 * A megabyte of one class is one word: it has to end (the suite's time limit is the judge of quadratic work).
 */
static void test_tokenizer__takes_a_megabyte_of_one_class(void **state)
{
    base_buf b = {0};
    tiny_gguf_write(&TINY_GGUF_QWEN2, &b);
    gguf_file *g;
    model_tokenizer *t;
    base_err err;
    if (load(&b, &g, &t, &err) != 0) fail_msg("%s", err.msg);
    enum { N = 1 << 20 };
    char *text = malloc(N);
    static const char fills[] = {'a', ' ', '\n', '.', '1', '\'', (char)0xFF};
    for (size_t i = 0; i < sizeof fills; i++) {
        model_ids ids = {0};
        memset(text, fills[i], N);
        model_tokenizer_encode(t, text, N, true, &ids);
        size_t total = 0;
        for (size_t k = 0; k < ids.n; k++) {
            size_t n;
            model_tokenizer_piece(t, ids.ids[k], &n);
            total += n;
        }
        assert_int_equal(total, fills[i] == (char)0xFF ? 3 * N : N);
        model_ids_free(&ids);
    }
    free(text);
    model_tokenizer_free(t);
    gguf_close(g);
    base_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizer__agrees_with_llama_cpp_on_qwen),
        cmocka_unit_test(test_tokenizer__agrees_with_llama_cpp_on_smollm),
        cmocka_unit_test(test_tokenizer__agrees_with_llama_cpp_on_gemma),
        cmocka_unit_test(test_tokenizer__splits_as_each_expression_says),
        cmocka_unit_test(test_tokenizer__merges_by_rank),
        cmocka_unit_test(test_tokenizer__merges_letters_across_words),
        cmocka_unit_test(test_tokenizer__keeps_control_texts_of_content_as_text),
        cmocka_unit_test(test_tokenizer__refuses_merges_of_unknown_pieces),
        cmocka_unit_test(test_tokenizer__refuses_kinds_it_does_not_know),
        cmocka_unit_test(test_tokenizer__gives_back_any_bytes),
        cmocka_unit_test(test_tokenizer__takes_a_megabyte_of_one_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
