/* Headers of ELF files; see shared_object.h. */
#include "code/shared_object.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
    ssize_t got;
    do {
        got = pread(fd, to, n, (off_t)at);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)n;
}

/* All segments and the table of sections lie inside of the file. */
static bool is_whole(int fd, uint64_t size)
{
    ElfW(Ehdr) head;
    const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (!read_at(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != class || head.e_type != ET_DYN || head.e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    for (uint32_t i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) segment;
        uint64_t at, end;
        if (__builtin_add_overflow((uint64_t)head.e_phoff, (uint64_t)i * sizeof segment, &at) || at > size ||
            !read_at(fd, &segment, sizeof segment, at) ||
            __builtin_add_overflow((uint64_t)segment.p_offset, (uint64_t)segment.p_filesz, &end) ||
            end > size)
            return false;
    }
    return head.e_phnum != 0;
}

int code_shared_object_check(const char *path, base_err *err)
{
    char *folder = base_xstrdup(path), *slash = strrchr(folder, '/');
    if (slash != NULL) slash[slash == folder] = '\0';
    int rc = base_fs_check_owner(slash != NULL ? folder : ".", err);
    if (rc == 0) rc = base_fs_check_owner(path, err);
    free(folder);
    if (rc != 0) return rc;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0) return base_fail_sys(err, "cannot read %s", path);
    const bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_whole(fd, (uint64_t)st.st_size);
    close(fd);
    if (good) return 0;
    return base_fail(
        err, BASE_E_FORMAT, "%s does not load: it is no shared object of this machine, or cut short", path);
}
