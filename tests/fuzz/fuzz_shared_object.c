/* Any bytes as a grammar's shared object: looked at before the system's loader maps what the headers promise. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "code/shared_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const int fd = memfd_create("object", MFD_CLOEXEC);
    char path[64];
    base_err err = {0};
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (code_shared_object_check(path, &err) && !*err.msg) abort();
    close(fd);
    return 0;
}
