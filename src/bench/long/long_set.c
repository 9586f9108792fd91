/* Sets of sessions (contract: long_set.h). */
#include "bench/long/long_set.h"

#include <string.h>

#include "bench/common/result_file.h"

int long_set_each(
    const char *path, const base_buf *set, const char *wanted, long_session_fn *fn, void *user, base_err *err)
{
    int rc = 0;
    uint32_t number = 0;
    for (size_t at = 0; !rc && at < set->len; number++) {
        const char *line = set->data + at, *end = memchr(line, '\n', set->len - at);
        const size_t n = end ? (size_t)(end - line) : set->len - at;
        base_json_doc *doc = NULL;
        at += n + 1;
        if (!n) continue;
        rc = base_json_parse(line, n, &doc, err);
        if (rc) return base_err_prefix(err, path);
        const base_json *session = base_json_root(doc);
        if (bench_is_wanted(wanted, ',', base_json_str(session, "id", "")))
            rc = fn(user, session, number, err);
        base_json_free(doc);
    }
    return rc;
}
