/* The parts of a path's text (contract: path.h). */
#include "base/path.h"

#include <string.h>

#include "base/mem.h"

const char *base_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

size_t base_path_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

char *base_path_folder(const char *path)
{
    const size_t n = base_path_folder_length(path);
    return n ? base_xstrndup(path, n) : base_xstrdup(".");
}

bool base_path_same_folder(const char *a, const char *b)
{
    const size_t n = base_path_folder_length(a);
    return n == base_path_folder_length(b) && !strncmp(a, b, n);
}

const char *base_path_ending(const char *path)
{
    const char *name = base_path_name(path), *dot = strrchr(name, '.');
    return dot ? dot : name + strlen(name);
}

bool base_path_same_ending(const char *a, const char *b)
{
    const char *ending = base_path_ending(a);
    return *ending && !strcmp(ending, base_path_ending(b));
}
