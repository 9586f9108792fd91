#include "tools/file/access_list.h"

#include <errno.h>
#include <sys/xattr.h>

static const char access_name[] = "system.posix_acl_access", default_name[] = "system.posix_acl_default";

/* What errno means when such a call failed; a file has no default list (EACCES). */
static bool has_no_list(const char *name)
{
    return errno == ENODATA || errno == EOPNOTSUPP || (name == default_name && errno == EACCES);
}

void tool__access_list_free(tool_access_list *l)
{
    base_buf_free(&l->list);
    base_buf_free(&l->defaults);
}

static int read_one(int fd, const char *name, base_buf *ret)
{
    char list[4096];
    const ssize_t n = fgetxattr(fd, name, list, sizeof list);
    base_buf_clear(ret);
    if (n < 0) return has_no_list(name) ? 0 : -1;
    base_buf_add(ret, list, (size_t)n);
    return 0;
}

int tool__access_list_read(int fd, tool_access_list *ret)
{
    return read_one(fd, access_name, &ret->list) || read_one(fd, default_name, &ret->defaults) ? -1 : 0;
}

static int give_one(int fd, const char *name, const base_buf *list)
{
    if (list->len) return fsetxattr(fd, name, list->data, list->len, 0);
    return fremovexattr(fd, name) && !has_no_list(name) ? -1 : 0;
}

int tool__access_list_give(int fd, const tool_access_list *l)
{
    return give_one(fd, access_name, &l->list) || give_one(fd, default_name, &l->defaults) ? -1 : 0;
}
