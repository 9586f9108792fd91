/* Which lines of a long definition a request speaks of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/words/block.h"
#include "base/buf.h"

enum { MOST = 16 };

/* Sixty lines of other work. */
static void put_work(base_buf *out, const char *indent, const char *end)
{
    for (int i = 0; i < 60; i++) base_buf_printf(out, "%ssum += step_%d(sum)%s\n", indent, i, end);
}

/* The best block's lines as one text; "" where there is none. The caller frees. */
static char *best_of(const base_buf *text, const char *head, const char *request)
{
    agent_block blocks[MOST];
    const size_t body = (size_t)(strstr(text->data, head) - text->data) + strlen(head);
    const uint32_t n = agent__find_blocks(text->data, text->len, body, request, blocks, MOST);
    base_buf out = {0};
    uint32_t line = 1;
    base_buf_puts(&out, "");
    for (const char *p = text->data; n && *p; line++) {
        const size_t len = strcspn(p, "\n") + 1;
        if (line >= blocks[0].from && line <= blocks[0].to) base_buf_add(&out, p, len);
        p += len;
    }
    for (uint32_t i = 0; i < n; i++) assert_true(blocks[i].to - blocks[i].from <= 26);
    return base_buf_take(&out);
}

static void check(const base_buf *text, const char *head, const char *request, const char *wanted)
{
    char *found = best_of(text, head, request);
    if (strcmp(found ? found : "", wanted) != 0) fail_msg("%s\n%s", request, found);
    free(found);
}

static void test_block__is_what_the_words_fit(void **state)
{
    static const char *const branch =
        "        if row.is_header:\n            # a title has no colour\n"
        "            paint(row, None)\n        else:\n            paint(row, colour)\n";
    base_buf text = {0};
    base_buf_puts(&text, "def draw(rows, sum, colour):\n    \"\"\"Draws rows.\"\"\"\n");
    put_work(&text, "    ", "");
    base_buf_puts(&text, "    for row in rows:\n");
    put_work(&text, "        ", "");
    base_buf_puts(&text, branch);
    put_work(&text, "        ", "");
    base_buf_puts(&text, "    return sum\n");
    agent_block blocks[MOST];
    char *found = best_of(&text, "colour):\n    ", "The title should have a colour too.");
    assert_non_null(strstr(found, branch));
    free(found);
    assert_int_equal(agent__find_blocks(text.data, text.len, 0, "Warn about quux.", blocks, MOST), 0);
    base_buf_free(&text);
}

/* The head of a long statement goes with what stands first inside of it, and the text's own end is no part of a block. */
static void test_block__has_its_head(void **state)
{
    base_buf text = {0};
    base_buf_puts(&text, "int draw(int sum)\n{\n");
    put_work(&text, "\t", ";");
    base_buf_puts(&text, "\twhile (has_title(sum)) {\n\t\tpaint();\n");
    for (int i = 0; i < 4; i++) {
        base_buf_printf(&text, "\t\tif (sum == %d) {\n", i);
        for (int k = 0; k < 16; k++) base_buf_printf(&text, "\t\t\tskip_%d();\n", k);
        base_buf_puts(&text, "\t\t}\n");
    }
    base_buf_puts(&text, "\t}\n#ifdef WIDE\n\twiden(sum);\n#endif\n\treturn sum;\n}\n");
    check(
        &text, "sum)\n", "Nothing is painted without a title.", "\twhile (has_title(sum)) {\n\t\tpaint();\n");
    check(&text, "sum)\n", "It should never widen.", "\twiden(sum);\n#endif\n\treturn sum;\n");
    base_buf_free(&text);
}

static void test_block__long_is_what_is_cut(void **state)
{
    base_buf text = {0};
    base_buf_puts(&text, "def f(sum):\n    return sum\n");
    assert_false(agent__is_long(text.data, text.len));
    put_work(&text, "    ", "");
    put_work(&text, "    ", "");
    assert_true(agent__is_long(text.data, text.len));
    base_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_block__is_what_the_words_fit),
        cmocka_unit_test(test_block__has_its_head), cmocka_unit_test(test_block__long_is_what_is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
