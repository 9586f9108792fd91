#include "tools/file/git_pointers.h"

#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/file/safe_path.h"

char *tool__git_pointed_to(const char *at)
{
    base_buf path = {0}, text = {0};
    struct stat st;
    char *to = NULL;
    base_buf_printf(&path, "%s/.git", at);
    if (!stat(path.data, &st) && S_ISREG(st.st_mode) &&
        !base_fs_read(path.data, TOOL_MAX_PATH + 16, &text, NULL) && text.len > 8 &&
        !strncmp(text.data, "gitdir: ", 8)) {
        text.data[strcspn(text.data, "\r\n")] = '\0';
        base_buf_clear(&path);
        base_buf_printf(
            &path, "%s%s%s", text.data[8] == '/' ? "" : at, text.data[8] == '/' ? "" : "/", text.data + 8);
        to = base_buf_take(&path);
    }
    base_buf_free(&path);
    base_buf_free(&text);
    return to;
}

char *tool__git_shared_by(const char *git_folder)
{
    base_buf path = {0}, text = {0};
    struct stat st;
    char *to = NULL;
    base_buf_printf(&path, "%s/commondir", git_folder);
    if (!stat(path.data, &st) && S_ISREG(st.st_mode) &&
        !base_fs_read(path.data, TOOL_MAX_PATH, &text, NULL) && text.len) {
        text.data[strcspn(text.data, "\r\n")] = '\0';
        base_buf_clear(&path);
        if (*text.data != '/') base_buf_printf(&path, "%s/", git_folder);
        base_buf_puts(&path, text.data);
        to = base_buf_take(&path);
    }
    base_buf_free(&path);
    base_buf_free(&text);
    return to;
}
