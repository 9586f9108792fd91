/* Any bytes as a saved index: what is read stays inside the text it is for, and the rest is parsed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "code/index.h"
#include "code/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] = "int one(int a)\n{\n    return two(a);\n}\n";

/* The bytes as an entry that is found: its key, tag and checksum are made right, so that the payload is read. */
static void mend(char *bytes, size_t n, uint64_t tag)
{
    enum { HEAD = 52, MAGIC = 8 };
    static const char magic[MAGIC] = {'k', 'v', 'i', 's', 't', 'i', 'x', 1};
    if (n < MAGIC + HEAD) return;
    memcpy(bytes, magic, MAGIC);
    char *entry = bytes + MAGIC;
    const uint32_t payload = (uint32_t)(n - MAGIC - HEAD);
    base_sha256 sha;
    base_sha256_init(&sha);
    base_sha256_add(&sha, text, sizeof text - 1);
    base_sha256_end(&sha, (uint8_t *)entry + 12);
    memcpy(entry, &payload, 4);
    memcpy(entry + 44, &tag, 8);
    const uint64_t hash = base_hash64(entry + 12, HEAD - 12 + payload, 0);
    memcpy(entry + 4, &hash, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 16) return 0;
    char *bytes = malloc(size + 1), path[64];
    const int fd = memfd_create("store", MFD_CLOEXEC);
    if (bytes == NULL || fd < 0) abort();
    memcpy(bytes, data, size);
    const char *language;
    if (size != 0 && (data[0] & 1))
        mend(bytes, size, code_reader_tag(NULL, "a.c", text, sizeof text - 1, &language));
    if (write(fd, bytes, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    code_index *x = code_index_new(NULL);
    base_buf word = {0};
    code_index_load(x, path, &word);
    code_index_update(x, "a.c", text, sizeof text - 1);
    code_place *places;
    const uint32_t n = code_index_define(x, "one", &places);
    for (uint32_t i = 0; i < n; i++)
        if (places[i].to > sizeof text - 1 || places[i].from > places[i].to) abort();
    code_places_free(places, n);
    code_index_free(x);
    base_buf_free(&word);
    free(bytes);
    close(fd);
    return 0;
}
