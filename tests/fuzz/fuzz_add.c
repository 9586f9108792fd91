/*
 * A definition of any bytes put into a file of any bytes: nothing of the file is lost. Input: a byte that chooses the
 * language, then, with NUL bytes between them, the name, the request, the block, the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "scratch.h"
#include "tools/edit/add.h"
#include "tools/edit/import_lines.h"
#include "tools/edit/newcomer.h"
#include "tools/edit/prototype.h"
#include "tools/file/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define require(holds) ((holds) ? (void)0 : abort())

/* Can `whole` be made from `part` by putting bytes in? White space is the program's own. */
static bool holds_all_of(const base_buf *whole, const base_buf *part)
{
    size_t at = 0;
    for (size_t i = 0; i < part->len; i++) {
        if (tool__is_space(part->data[i])) continue;
        while (at < whole->len && whole->data[at] != part->data[i]) at++;
        if (at++ == whole->len) return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const paths[] = {"a.c", "a.h", "a.py", "a.js", "a.ts", "a.go", "a.rs", "a.java"};
    static code_grammars *g;
    if (!g) g = code_grammars_open();
    if (!n || n > 1 << 15) return 0;
    const char *path = paths[*bytes++ & 7];
    n--;
    char *name = scratch_part(&bytes, &n), *request = scratch_part(&bytes, &n),
         *block = scratch_part(&bytes, &n);
    base_buf text = {0}, why = {0}, header = {0};
    base_buf_puts(&text, "");
    base_buf_add(&text, bytes, n);
    tool_addition a = {0};
    if (tool__add_definition(g, path, &text, name, base_str_of(block), request, &a, &why)) {
        require(!why.len && a.line >= 1 && a.line <= a.line_end &&
                a.line_end <= tool__count_lines(a.text.data, a.text.len));
        require(holds_all_of(&a.text, &text));
    } else {
        require(why.len);
    }
    tool__addition_free(&a);
    bool is_member;
    free(tool__block_name(g, path, base_str_of(block), name, &is_member));
    if (tool__add_prototype(g, path, &text, name, block, request, block, &header))
        require(holds_all_of(&header, &text));
    base_buf imported = {0};
    base_buf_add(&imported, text.data, text.len);
    if (tool__import_name(&imported, request, name)) require(holds_all_of(&imported, &text));
    if (tool__import_from(&imported, "a.b", name)) require(holds_all_of(&imported, &text));
    if (tool__import_of_crate(&imported, name)) require(holds_all_of(&imported, &text));
    free(tool__name_holder(name));
    base_buf_free(&imported);
    base_buf_free(&header);
    base_buf_free(&text);
    base_buf_free(&why);
    free(name);
    free(request);
    free(block);
    return 0;
}
