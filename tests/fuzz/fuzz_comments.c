/* Comments out of any block into any text, and fixtures for any test: input is the file, a NUL byte, the name, a NUL byte, the block, a
 * NUL byte, a conftest.py. What stood in the file stands there still, in its order, a parameter that is no fixture apart. */
#include "tools/edit/comments.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "scratch.h"
#include "tools/edit/fixtures.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_kept(const base_buf *was, const base_buf *now)
{
    size_t at = 0;
    for (size_t i = 0; i < was->len; i++, at++) {
        while (at < now->len && now->data[at] != was->data[i]) at++;
        if (at >= now->len) abort();
    }
}

static void take_comments(const base_buf *text, const char *name, const char *block)
{
    static const char *const paths[] = {"a.py", "a.c", "a.js", "a.java", "a.go", "a.rb", "noname"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        base_buf got = {0}, why = {0};
        const bool done =
            tool__take_comments(NULL, paths[i], text, name, (base_str){block, strlen(block)}, &got, &why);
        if (done ? why.len || got.len <= text->len : !why.len || got.len) abort();
        if (done) check_kept(text, &got);
        base_buf_free(&got);
        base_buf_free(&why);
    }
}

static void give_fixtures(const base_buf *text, const char *name, const char *conftest)
{
    static tool_workspace *w;
    base_buf now = {0}, note = {0};
    if (!w) {
        const tool_workspace_options o = {.dir = scratch_folder()};
        if (tool_workspace_open(&w, &o, NULL)) abort();
    }
    scratch_put("conftest.py", conftest, strlen(conftest));
    base_buf_add(&now, text->data, text->len);
    tool__give_fixtures(w, "test_a.py", &now, name, &note);
    const bool is_same = now.len == text->len && !memcmp(now.data, text->data, now.len);
    if ((note.len > 0) == is_same) abort();
    /* Parameters are given, or taken out where no fixture gives them. */
    const bool gave = note.len && strstr(note.data, " is a fixture"),
               took = note.len && strstr(note.data, "No fixture is called");
    if (!took) check_kept(text, &now);
    if (!gave) check_kept(&now, text);
    base_buf_free(&now);
    base_buf_free(&note);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n > 1 << 13) return 0;
    char *was = scratch_part(&bytes, &n), *name = scratch_part(&bytes, &n), *block = scratch_part(&bytes, &n),
         *conftest = scratch_part(&bytes, &n);
    base_buf text = {0};
    base_buf_puts(&text, was);
    if (text.len) {
        take_comments(&text, name, block);
        give_fixtures(&text, name, conftest);
    }
    base_buf_free(&text);
    free(was);
    free(name);
    free(block);
    free(conftest);
    return 0;
}
