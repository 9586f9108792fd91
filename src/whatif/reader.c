/* A call of `read`, by the tool itself, kept only if all that it shows is of the version asked for (contract: reader.h). */
#include "whatif/reader.h"

#include <string.h>

enum { RESULT_BYTES = 16000 }; /* as a session with room gives */

int whatif_reader_read(
    void *user, const base_json *arguments, const char *version, base_buf *out, base_err *err)
{
    whatif_reader *r = user;
    const tool_workspace_options options = {.dir = r->root};
    const char *path = base_json_str(arguments, "path", "");
    const tool_entry *read = tool_find("read");
    const tool_call call = {.name = "read", .arguments = arguments};
    const tool_limits limits = {.result_bytes = RESULT_BYTES};
    tool_result result = {0};
    int rc = r->w ? 0 : tool_workspace_open(&r->w, &options, err);
    if (!rc) rc = read->run(r->w, &call, &limits, NULL, &result, err);
    bool is_same = !rc && result.status == TOOL_OK && result.n_sources > 0;
    for (uint32_t i = 0; i < result.n_sources; i++)
        is_same = is_same && !strcmp(result.sources[i].version, version);
    if (!rc && is_same)
        base_buf_add(out, result.text.data, result.text.len);
    else if (!rc)
        rc = base_fail(err, BASE_E_NOT_FOUND,
            "the record has no equal call, and %.200s does not hold any more what it held then", path);
    tool_result_free(&result);
    return rc;
}

void whatif_reader_close(whatif_reader *r)
{
    tool_workspace_close(r->w);
    r->w = NULL;
}
