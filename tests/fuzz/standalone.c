/*
 * Replays a corpus through a fuzz target with any compiler: every file named on the command line, or every file of a named
 * folder, and each file's prefixes up to 64 bytes, since truncation is what foreign bytes suffer most.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "%s: cannot be opened\n", path);
        return 0;
    }
    static uint8_t bytes[1 << 22];
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (size_t part = 0; part <= n; part = part < 64 ? part + 1 : part == n ? n + 1 : n) {
        uint8_t *copy = malloc(part ? part : 1); /* exact size, so that the sanitiser sees an overrun */
        memcpy(copy, bytes, part);
        LLVMFuzzerTestOneInput(copy, part);
        free(copy);
    }
    return 1;
}

int main(int argc, char **argv)
{
    int n_run = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0) continue;
        if (!S_ISDIR(st.st_mode)) {
            n_run += run_file(argv[i]);
            continue;
        }
        DIR *dir = opendir(argv[i]);
        for (struct dirent *e; dir && (e = readdir(dir));) {
            char path[4096];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            n_run += run_file(path);
        }
        if (dir) closedir(dir);
    }
    printf("%d inputs replayed\n", n_run);
    return n_run ? 0 : 1;
}
