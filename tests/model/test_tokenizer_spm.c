/*
 * SentencePiece vocabularies on hand-made pieces, and against a plain reference: the whole text at once, the
 * best pair found by looking at all of them. What llama.cpp gives for Gemma's own vocabulary is compared in
 * test_tokenizer.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/utf8.h"
#include "gguf_build.h"
#include "model/text/tokenizer.h"
#include "tiny_gguf.h"

#define MARK "\xe2\x96\x81" /* how such a file writes a space */

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, BYTE = 6 };

typedef struct piece {
    const char *text;
    float score;
    int type;
} piece;

/* Ids 0..: the pieces, then all 256 bytes. space_first: -1 the file does not say. */
static base_buf build(const piece *pieces, uint64_t n, int space_first, bool with_scores)
{
    base_buf b = {0};
    gguf_build_header(&b, 3, 0, 3 + (uint64_t)with_scores + (space_first >= 0));
    gguf_build_key_str(&b, "tokenizer.ggml.model", "llama");
    gguf_build_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, n + 256);
    for (uint64_t i = 0; i < n; i++) gguf_build_str(&b, pieces[i].text);
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        gguf_build_str(&b, text);
    }
    gguf_build_key_array(&b, "tokenizer.ggml.token_type", GGUF_I32, n + 256);
    for (uint64_t i = 0; i < n + 256; i++) gguf_build_u32(&b, i < n ? (uint32_t)pieces[i].type : BYTE);
    if (with_scores) {
        gguf_build_key_array(&b, "tokenizer.ggml.scores", GGUF_F32, n + 256);
        for (uint64_t i = 0; i < n + 256; i++) gguf_build_f32(&b, i < n ? pieces[i].score : 0);
    }
    if (space_first >= 0) {
        gguf_build_key(&b, "tokenizer.ggml.add_space_prefix", GGUF_BOOL);
        base_buf_putc(&b, (char)space_first);
    }
    return b;
}

typedef struct opened {
    base_buf bytes;
    gguf_file *gguf;
    model_tokenizer *t;
    uint32_t n; /* pieces before the bytes */
} opened;

static opened open_pieces(const piece *pieces, uint64_t n, int space_first)
{
    base_err err = {0};
    opened o = {.bytes = build(pieces, n, space_first, true), .n = (uint32_t)n};
    if (gguf_parse(&o.gguf, o.bytes.data, o.bytes.len, &err) != 0 ||
        model_tokenizer_load(&o.t, o.gguf, &err) != 0)
        fail_msg("%s", err.msg);
    return o;
}

static void close_pieces(opened *o)
{
    model_tokenizer_free(o->t);
    gguf_close(o->gguf);
    base_buf_free(&o->bytes);
}

/* The ids as text: pieces in brackets, a byte as its number. */
static void check(const opened *o, const char *text, bool parse_special, const char *want)
{
    model_ids ids = {0};
    base_buf got = {0};
    model_tokenizer_encode(o->t, text, strlen(text), parse_special, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        size_t n;
        const char *p = model_tokenizer_piece(o->t, ids.ids[i], &n);
        if ((uint32_t)ids.ids[i] >= o->n)
            base_buf_printf(&got, "(%u)", (unsigned char)p[0]);
        else
            base_buf_printf(&got, "[%.*s]", (int)n, p);
    }
    assert_string_equal(got.data ? got.data : "", want);
    base_buf_free(&got);
    model_ids_free(&ids);
}

static const piece pieces[] = {
    {"<unk>", 0, UNKNOWN},
    {"<bos>", 0, CONTROL},
    {"<turn>", 0, CONTROL},
    {"a", -1, NORMAL},
    {"b", -2, NORMAL},
    {"c", -3, NORMAL},
    {MARK, -4, NORMAL},
    {"ab", -10, NORMAL},
    {"bc", -9, NORMAL},
    {"abc", -30, NORMAL},
    {MARK "a", -11, NORMAL},
    {"aa", -12, NORMAL},
    {"aaaa", -13, NORMAL},
    {"\n", 0, USER},
    {"\n\n", 0, USER},
    {"  ", 0, USER},
    {"\xc3\xa9", -5, NORMAL},
};
enum { N_PIECES = sizeof pieces / sizeof *pieces };

static void test_tokenizer_spm__merges_the_best_score_first(void **state)
{
    opened o = open_pieces(pieces, N_PIECES, 0);
    check(&o, "abc", false, "[abc]"); /* bc first, then a + bc */
    check(&o, "ab", false, "[ab]");
    check(&o, "cab", false, "[c][ab]");
    check(&o, "aaa", false, "[aa][a]"); /* of equal scores the leftmost */
    check(&o, "aaaaa", false, "[aaaa][a]");
    check(&o, "b a a", false, "[b][ a][ a]");
    check(&o, "b" MARK "a", false, "[b][ a]"); /* the mark itself is a space, as in llama.cpp */
    check(&o, "", false, "");
    close_pieces(&o);
}

static void test_tokenizer_spm__falls_back_to_bytes(void **state)
{
    opened o = open_pieces(pieces, N_PIECES, 0);
    check(&o, "a\xc3\xa9z", false, "[a][\xc3\xa9](122)");
    check(&o, "\xe4\xbd\xa0", false, "(228)(189)(160)");
    check(&o, "a\xff", false, "[a](239)(191)(189)"); /* no UTF-8: U+FFFD */
    check(&o, "<0x41>", false, "(60)(48)(120)(52)(49)(62)");
    close_pieces(&o);
}

static void test_tokenizer_spm__cuts_out_special_texts(void **state)
{
    opened o = open_pieces(pieces, N_PIECES, 0);
    check(&o, "a<turn>b", true, "[a][<turn>][b]");
    check(&o, "a<turn>b", false, "[a](60)(116)(117)(114)(110)(62)[b]");
    check(&o, "a\n\n\nb", false, "[a][\n\n][\n][b]"); /* user-defined ones always, the longest first */
    check(&o, "a   a", false, "[a][  ][ a]");
    close_pieces(&o);
}

static void test_tokenizer_spm__puts_a_space_in_front_when_the_file_says_so(void **state)
{
    for (int way = -1; way < 2; way++) { /* the default is yes */
        opened o = open_pieces(pieces, N_PIECES, way);
        check(&o, "abc", false, way ? "[ a][bc]" : "[abc]");
        check(&o, "a<turn>a", true, way ? "[ a][<turn>][ a]" : "[a][<turn>][a]");
        check(&o, "<turn>", true, "[<turn>]");
        close_pieces(&o);
    }
}

/* ---- against the plain reference ---- */

typedef struct symbol {
    size_t from, n;
    int32_t id; /* -1: no piece */
} symbol;

static int32_t find(const piece *list, uint64_t n, const char *s, size_t len)
{
    for (uint64_t i = 0; i < n; i++)
        if (list[i].type == NORMAL && strlen(list[i].text) == len && memcmp(list[i].text, s, len) == 0)
            return (int32_t)i;
    return -1;
}

/* Letters of one byte only; spaces are written as the pieces write them. */
static void reference(const piece *list, uint64_t n, const char *text, model_ids *out)
{
    symbol s[256];
    size_t n_s = 0;
    for (size_t i = 0; text[i]; i++) s[n_s++] = (symbol){i, 1, find(list, n, text + i, 1)};
    for (;;) {
        size_t best = SIZE_MAX;
        int32_t best_id = -1;
        for (size_t i = 0; i + 1 < n_s; i++) {
            int32_t id = find(list, n, text + s[i].from, s[i].n + s[i + 1].n);
            if (id >= 0 && (best_id < 0 || list[id].score > list[best_id].score)) best = i, best_id = id;
        }
        if (best_id < 0) break;
        s[best].n += s[best + 1].n;
        s[best].id = best_id;
        memmove(s + best + 1, s + best + 2, (n_s - best - 2) * sizeof *s);
        n_s--;
    }
    for (size_t i = 0; i < n_s; i++)
        for (size_t k = 0; k < (s[i].id >= 0 ? 1 : s[i].n); k++)
            model_ids_add(out, s[i].id >= 0 ? s[i].id : (int32_t)n + (unsigned char)text[s[i].from + k]);
}

static unsigned pick(uint64_t *state, unsigned n)
{
    return (unsigned)((tiny_random(state) + 1) / 2 * (float)n);
}

static void test_tokenizer_spm__agrees_with_a_plain_reference(void **state)
{
    uint64_t seed = 5;
    for (int round = 0; round < 60; round++) {
        enum { N = 40 };
        static char texts[N][8];
        piece list[N];
        uint64_t n = 0;
        while (
            n <
            N) { /* random strings over four of five letters, each once, few scores so that there are ties */
            unsigned len = n < 4 ? 1 : 2 + pick(&seed, 4);
            for (unsigned i = 0; i < len; i++) texts[n][i] = "abcd"[n < 4 ? n : pick(&seed, 4)];
            texts[n][len] = 0;
            if (find(list, n, texts[n], len) >= 0) continue;
            list[n] = (piece){texts[n], -(float)pick(&seed, 12), NORMAL};
            n++;
        }
        opened o = open_pieces(list, n, 0);
        for (int k = 0; k < 40; k++) {
            char text[128];
            unsigned len = 1 + pick(&seed, 100);
            model_ids ours = {0}, want = {0};
            for (unsigned i = 0; i < len; i++) text[i] = "abcde"[pick(&seed, 5)];
            text[len] = 0;
            model_tokenizer_encode(o.t, text, len, false, &ours);
            reference(list, n, text, &want);
            assert_int_equal(ours.n, want.n);
            assert_memory_equal(ours.ids, want.ids, want.n * sizeof *want.ids);
            model_ids_free(&ours);
            model_ids_free(&want);
        }
        close_pieces(&o);
    }
}

/* ---- bad files and large texts ---- */

static void refuse(base_buf b, const char *words)
{
    gguf_file *g;
    model_tokenizer *t;
    base_err err = {0};
    int rc = gguf_parse(&g, b.data, b.len, &err);
    if (rc == 0) {
        rc = model_tokenizer_load(&t, g, &err);
        gguf_close(g);
    }
    assert_int_equal(rc, BASE_E_FORMAT);
    if (!strstr(err.msg, words)) fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
    base_buf_free(&b);
}

static void test_tokenizer_spm__refuses_a_vocabulary_without_scores(void **state)
{
    piece spoilt[N_PIECES];
    memcpy(spoilt, pieces, sizeof pieces);
    spoilt[4].score = NAN;
    refuse(build(spoilt, N_PIECES, 0, true), "not finite"); /* the file itself is refused */
    refuse(build(pieces, N_PIECES, 0, false), "tokenizer.ggml.scores");
}

static void test_tokenizer_spm__takes_a_megabyte_of_one_class(void **state)
{
    enum { SIZE = 1 << 20 };
    static const char fills[] = {'a', ' ', '\n', '<', 'z'};
    opened o = open_pieces(pieces, N_PIECES, 1);
    char *text = malloc(SIZE);
    for (size_t i = 0; i < sizeof fills; i++) {
        model_ids ids = {0};
        size_t total = 0;
        memset(text, fills[i], SIZE);
        model_tokenizer_encode(o.t, text, SIZE, true, &ids);
        for (size_t k = 0; k < ids.n; k++) {
            size_t n;
            model_tokenizer_piece(o.t, ids.ids[k], &n);
            total += n;
        }
        bool special = fills[i] == '\n' || fills[i] == ' '; /* nothing is left for a space to stand before */
        assert_int_equal(total, special ? SIZE : SIZE + 1);
        model_ids_free(&ids);
    }
    free(text);
    close_pieces(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizer_spm__merges_the_best_score_first),
        cmocka_unit_test(test_tokenizer_spm__falls_back_to_bytes),
        cmocka_unit_test(test_tokenizer_spm__cuts_out_special_texts),
        cmocka_unit_test(test_tokenizer_spm__puts_a_space_in_front_when_the_file_says_so),
        cmocka_unit_test(test_tokenizer_spm__agrees_with_a_plain_reference),
        cmocka_unit_test(test_tokenizer_spm__refuses_a_vocabulary_without_scores),
        cmocka_unit_test(test_tokenizer_spm__takes_a_megabyte_of_one_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
