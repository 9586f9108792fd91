#include "tools/file/git_rules.h"

#include <string.h>

#include "base/fs.h"
#include "base/path.h"

bool tool__git_rules_are_endless(const char *text, size_t n)
{
    enum { MOST = 4 }; /* behind 128 folders: ten million ways, a tenth of a second */
    int found = 0;
    for (size_t i = 0; i < n && found <= MOST; i++) {
        if (text[i] == '\n') {
            found = 0;
        } else if (text[i] == '*' && i + 1 < n && text[i + 1] == '*') {
            found++;
            i++;
        }
    }
    return found > MOST;
}

bool tool__git_rules_file_is_endless(const char *path)
{
    static const char *const names[] = {".gitignore", ".gitattributes", "exclude", "attributes"};
    enum { MOST_BYTES = 16 << 20 };
    const char *name = base_path_name(path);
    bool is_one = false, is_endless = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !is_one; i++) is_one = !strcmp(name, names[i]);
    base_buf text = {0};
    if (is_one && !base_fs_read(path, MOST_BYTES, &text, NULL) && text.len)
        is_endless = tool__git_rules_are_endless(text.data, text.len);
    base_buf_free(&text);
    return is_endless;
}
