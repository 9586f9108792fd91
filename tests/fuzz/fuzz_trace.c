/*
 * Any bytes as what a command printed: what is taken for lines of a file is such lines, byte for byte. Input: the command,
 * a NUL byte, its output.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "scratch.h"
#include "tools/result/result.h"
#include "tools/tree/workspace.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char one[] =
    "int twice(int x)\n{\n    return 2 * x;\n}\n\nint thrice(int x)\n{\n    return 3 * x;\n}\n";
static const char two[] = "def once(x):\r\n    return x\r\n\r\n\r\ndef half(x):\r\n    return x // 2";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static tool_workspace *w;
    if (!w) {
        scratch_put("tree/a.c", one, sizeof one - 1);
        scratch_put("tree/lib/b.py", two, sizeof two - 1);
        base_buf path = {0};
        base_buf_printf(&path, "%s/tree", scratch_folder());
        tool_workspace_options options = {.dir = path.data};
        if (tool_workspace_open(&w, &options, NULL) || tool_workspace_refresh(w, NULL, NULL, NULL)) abort();
        base_buf_free(&path);
    }
    if (n > 1 << 15) return 0;
    char *command = scratch_part(&bytes, &n);
    tool_result r = {0};
    base_buf_puts(&r.text, "");
    base_buf_add(&r.text, bytes, n);
    const size_t from = n ? bytes[0] % 4 : 0;
    tool__trace_output(w, &r, command, from < n ? from : 0);
    for (uint32_t i = 0; i < r.n_sources; i++) {
        const tool_source *s = &r.sources[i];
        const bool is_one = !strcmp(s->path, "a.c");
        const char *file = is_one ? one : two;
        const size_t n_file = is_one ? sizeof one - 1 : sizeof two - 1;
        if (s->from >= s->to || s->to > r.text.len || (i && r.sources[i - 1].to > s->from)) abort();
        if (!is_one && strcmp(s->path, "lib/b.py") != 0) abort();
        const size_t len = s->to - s->from;
        if (s->file_from > n_file || !s->line) abort();
        /* A last line without its end gets one from whoever printed it. */
        const size_t left = n_file - s->file_from, compared = len < left ? len : left;
        if (len > left + 1 || memcmp(file + s->file_from, r.text.data + s->from, compared) != 0) abort();
    }
    tool_result_free(&r);
    free(command);
    return 0;
}
