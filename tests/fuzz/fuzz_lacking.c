/*
 * What a compiler or a runner printed (a request, a NUL, the output): the field that it misses is a name, of the request,
 * and its type one of the tree.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "base/mem.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char tree[] =
        "struct node {\n    int x;\n    int y;\n};\ntypedef struct {\n    int a;\n} leaf;\n";
    static agent a;
    agent_lacking found;
    if (!a.workspace) {
        const tool_workspace_options o = {.dir = scratch_folder()};
        scratch_put("tree.c", tree, sizeof tree - 1);
        if (tool_workspace_open(&a.workspace, &o, NULL)) abort();
    }
    const unsigned char *bytes = data;
    if (n > 1 << 14) return 0;
    a.request = scratch_part(&bytes, &n);
    char *output = base_xstrndup((const char *)bytes, n);
    if (agent__find_lacking(&a, output, &found)) {
        assert(strstr(a.request, found.field) && strspn(found.field, "0123456789") == 0);
        assert(!strcmp(found.path, "tree.c") && (!strcmp(found.type, "node") || !strcmp(found.type, "leaf")));
    }
    agent__lacking_free(&found);
    free(output);
    free(a.request);
    return 0;
}
