/*
 * Results that are larger than their cap: kept whole in the session's folder and readable by handle,
 * "result:3", through the read tool. Numbers go on after a resume.
 */
#include "tools/result/result.h"
#include "tools/tree/workspace.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

#define SPILL_MAX_BYTES ((size_t)16 << 20)

static void count_spilled(tool_workspace *w, const char *folder)
{
    w->spill_is_counted = true;
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));) {
        char *end;
        unsigned long number = strtoul(e->d_name, &end, 10);
        if (!strcmp(end, ".txt") && number < UINT32_MAX && number > w->n_spilled)
            w->n_spilled = (uint32_t)number;
    }
    closedir(dir);
}

uint32_t tool__spill(tool_workspace *w, const char *text, size_t n)
{
    char *folder = NULL;
    uint32_t number = 0;
    if (tool__workspace_store(w, "results", &folder, NULL) || base_fs_mkdirs(folder, NULL)) goto out;
    if (!w->spill_is_counted) count_spilled(w, folder);
    base_buf path = {0};
    base_buf_printf(&path, "%s/%u.txt", folder, w->n_spilled + 1);
    if (n > SPILL_MAX_BYTES) n = SPILL_MAX_BYTES;
    if (!base_fs_write(path.data, text, n, 0600, NULL)) number = ++w->n_spilled;
    base_buf_free(&path);
out:
    free(folder);
    return number;
}

bool tool__is_handle(const char *path)
{
    return !strncmp(path, "result:", 7) && path[7] >= '0' && path[7] <= '9';
}

int tool__spill_read(tool_workspace *w, const char *handle, base_buf *out, base_err *err)
{
    char *end, *folder = NULL;
    unsigned long number = tool__is_handle(handle) ? strtoul(handle + 7, &end, 10) : 0;
    if (!number || *end || number > UINT32_MAX)
        return base_fail(err, BASE_E_NOT_FOUND, "%.100s is no result of this session", handle);
    int code = tool__workspace_store(w, "results", &folder, err);
    if (code) return code;
    base_buf path = {0};
    base_buf_printf(&path, "%s/%lu.txt", folder, number);
    if (base_fs_read(path.data, SPILL_MAX_BYTES, out, NULL))
        code = base_fail(err, BASE_E_NOT_FOUND, "result:%lu is not kept in this session", number);
    base_buf_free(&path);
    free(folder);
    return code;
}
