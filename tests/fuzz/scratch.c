#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"

static char folder[64];

static void remove_folder(void)
{
    base_fs_remove(folder, NULL);
}

const char *scratch_folder(void)
{
    if (*folder) return folder;
    strcpy(folder, "/dev/shm/kvist-fuzz-XXXXXX");
    if (!mkdtemp(folder)) {
        strcpy(folder, "/tmp/kvist-fuzz-XXXXXX");
        if (!mkdtemp(folder)) abort();
    }
    atexit(remove_folder);
    return folder;
}

void scratch_put(const char *path, const void *bytes, size_t n)
{
    char full[4096];
    snprintf(full, sizeof full, "%s/%s", scratch_folder(), path);
    for (char *p = full + strlen(folder) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(full, 0755);
    }
    FILE *f = fopen(full, "wb");
    if (!f || (n && fwrite(bytes, 1, n, f) != n) || fclose(f)) abort();
}

void scratch_clear(const char *path)
{
    char full[4096];
    snprintf(full, sizeof full, "%s/%s", scratch_folder(), path);
    if (base_fs_remove(full, NULL)) abort();
}

char *scratch_part(const unsigned char **bytes, size_t *n)
{
    const unsigned char *end = *n ? memchr(*bytes, 0, *n) : NULL;
    const size_t len = end ? (size_t)(end - *bytes) : *n;
    char *part = base_xstrndup((const char *)*bytes, len);
    const size_t used = len + (end != NULL);
    if (used) *bytes += used; /* of an empty input it is NULL */
    *n -= used;
    return part;
}
