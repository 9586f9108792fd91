/* Rows on disk; see rowfile.h. */
#include "kv/rows/rowfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kv/rows/store.h"

enum { HEADER_BYTES = 128, BUFFER_BYTES = 1 << 20 };

/* As it lies in the file, little-endian; the hash covers everything before it. */
typedef struct header {
    char magic[8];
    uint32_t version, kernel_version;
    uint32_t n_layer, n_head_kv, head_dim, row_bytes;
    uint64_t id;
    char model[64];
    uint64_t hash;
} header;
_Static_assert(sizeof(header) <= HEADER_BYTES, "the header has its own place in the file");

struct kv_rowfile {
    int fd;
    uint64_t id, n_rows; /* n_rows: written, or in the buffer */
    size_t row_bytes, buffered;
    uint8_t *buffer;
};

static header header_of(const kv_rows_identity *identity, uint64_t id)
{
    header h = {
        .magic = "KVROWS\n",
        .version = 1,
        .kernel_version = identity->kernel_version,
        .n_layer = identity->shape.n_layer,
        .n_head_kv = identity->shape.n_head_kv,
        .head_dim = identity->shape.head_dim,
        .row_bytes = (uint32_t)kv_row_bytes(&identity->shape),
        .id = id,
    };
    memcpy(h.model, identity->hash, sizeof h.model);
    h.hash = base_hash64(&h, offsetof(header, hash), 0);
    return h;
}

static int check_header(
    const uint8_t *bytes, const kv_rows_identity *identity, const char *path, uint64_t *ret_id, base_err *err)
{
    header h;
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, "KVROWS\n", 8) || h.version != 1)
        return base_fail(err, BASE_E_FORMAT, "%s is not a row file of this version", path);
    if (h.hash != base_hash64(&h, offsetof(header, hash), 0))
        return base_fail(err, BASE_E_FORMAT, "the header of %s is damaged", path);
    if (memcmp(h.model, identity->hash, sizeof h.model))
        return base_fail(err, BASE_E_FORMAT, "the rows of %s are of another model", path);
    const header want = header_of(identity, h.id);
    if (h.hash != want.hash)
        return base_fail(
            err, BASE_E_FORMAT, "the rows of %s were computed by another version of the kernels", path);
    *ret_id = h.id;
    return 0;
}

static int write_all(int fd, const void *bytes, size_t n, off_t at)
{
    while (n) {
        const ssize_t done = pwrite(fd, bytes, n, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        bytes = (const uint8_t *)bytes + done;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Returns the bytes read; less than n at the end of the file. */
static ssize_t read_all(int fd, void *bytes, size_t n, off_t at)
{
    size_t have = 0;
    while (have < n) {
        const ssize_t done = pread(fd, (uint8_t *)bytes + have, n - have, at + (off_t)have);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        if (done == 0) break;
        have += (size_t)done;
    }
    return (ssize_t)have;
}

int kv_rowfile_open(
    kv_rowfile **ret, const char *path, const kv_rows_identity *identity, bool create, base_err *err)
{
    kv_rowfile *f = base_xcalloc(1, sizeof *f);
    f->row_bytes = kv_row_bytes(&identity->shape);
    f->fd = -1;
    int rc = base_fs_check_owner(path, err);
    if (rc) goto fail;
    f->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
    if (f->fd < 0) {
        rc = errno == ENOENT ? base_fail(err, BASE_E_NOT_FOUND, "there is no row file %s", path)
                             : base_fail_sys(err, "cannot open the row file %s", path);
        goto fail;
    }
    if (flock(f->fd, LOCK_EX | LOCK_NB)) {
        rc = base_fail(err, BASE_E_STATE, "another process uses the row file %s", path);
        goto fail;
    }
    uint8_t bytes[HEADER_BYTES] = {0};
    if (create) {
        /* The id ties the manifest to these rows, so that an old manifest never finds new ones. */
        const uint64_t seed[] = {(uint64_t)base_clock_wall_ms(), base_clock_ns(), (uint64_t)getpid()};
        f->id = base_hash64(seed, sizeof seed, 0);
        const header h = header_of(identity, f->id);
        memcpy(bytes, &h, sizeof h);
        if (ftruncate(f->fd, 0) || write_all(f->fd, bytes, sizeof bytes, 0)) {
            rc = base_fail_sys(err, "cannot write the row file %s", path);
            goto fail;
        }
    } else {
        struct stat st;
        const ssize_t n = read_all(f->fd, bytes, sizeof bytes, 0);
        if (n < 0 || fstat(f->fd, &st)) {
            rc = base_fail_sys(err, "cannot read the row file %s", path);
            goto fail;
        }
        if (n < HEADER_BYTES) {
            rc = base_fail(err, BASE_E_FORMAT, "the row file %s is cut off", path);
            goto fail;
        }
        rc = check_header(bytes, identity, path, &f->id, err);
        if (rc) goto fail;
        futimens(f->fd, NULL); /* it was used: kv_rowfile_trim takes the longest unused first */
        f->n_rows = (uint64_t)(st.st_size - HEADER_BYTES) / f->row_bytes;
    }
    *ret = f;
    return 0;
fail:
    kv_rowfile_close(f);
    return rc;
}

void kv_rowfile_close(kv_rowfile *f)
{
    if (!f) return;
    if (f->fd >= 0) close(f->fd);
    free(f->buffer);
    free(f);
}

uint64_t kv_rowfile_id(const kv_rowfile *f)
{
    return f->id;
}

uint64_t kv_rowfile_rows(const kv_rowfile *f)
{
    return f->n_rows;
}

uint64_t kv_rowfile_bytes(const kv_rowfile *f)
{
    return HEADER_BYTES + f->n_rows * f->row_bytes;
}

int kv_rowfile_descriptor(const kv_rowfile *f)
{
    return f->fd;
}

uint64_t kv_rowfile_place(const kv_rowfile *f, uint64_t n)
{
    return HEADER_BYTES + n * f->row_bytes;
}

void kv_rowfile_set_rows(kv_rowfile *f, uint64_t n)
{
    f->n_rows = n;
    f->buffered = 0;
    /* On a full disk the room goes back to the session log; a failure here costs only that room. */
    int failed = ftruncate(f->fd, (off_t)kv_rowfile_bytes(f));
    (void)failed;
}

static int flush(kv_rowfile *f, base_err *err)
{
    if (!f->buffered) return 0;
    const uint64_t at = HEADER_BYTES + f->n_rows * f->row_bytes - f->buffered;
    if (write_all(f->fd, f->buffer, f->buffered, (off_t)at))
        return base_fail_sys(err, "cannot write the session's rows");
    f->buffered = 0;
    return 0;
}

int kv_rowfile_append(kv_rowfile *f, const uint16_t *row, base_err *err)
{
    const size_t capacity = f->row_bytes > BUFFER_BYTES ? f->row_bytes : BUFFER_BYTES;
    if (!f->buffer) f->buffer = malloc(capacity);
    if (!f->buffer) return base_fail(err, BASE_E_NOMEM, "no memory to write the session's rows");
    if (f->buffered + f->row_bytes > capacity) {
        int rc = flush(f, err);
        if (rc) return rc;
    }
    memcpy(f->buffer + f->buffered, row, f->row_bytes);
    f->buffered += f->row_bytes;
    f->n_rows++;
    return 0;
}

int kv_rowfile_put(kv_rowfile *f, uint64_t at, const uint16_t *row, base_err *err)
{
    if (write_all(f->fd, row, f->row_bytes, (off_t)(HEADER_BYTES + at * f->row_bytes)))
        return base_fail_sys(err, "cannot write the session's rows");
    return 0;
}

int kv_rowfile_sync(kv_rowfile *f, base_err *err)
{
    int rc = flush(f, err);
    if (rc) return rc;
    if (fdatasync(f->fd)) return base_fail_sys(err, "cannot write the session's rows to disk");
    return 0;
}

int kv_rowfile_read(kv_rowfile *f, uint64_t from, uint32_t n, uint16_t *rows, base_err *err)
{
    const size_t n_bytes = (size_t)n * f->row_bytes;
    const ssize_t done = read_all(f->fd, rows, n_bytes, (off_t)(HEADER_BYTES + from * f->row_bytes));
    if (done < 0) return base_fail_sys(err, "cannot read the session's rows");
    if ((size_t)done < n_bytes)
        return base_fail(err, BASE_E_FORMAT, "the row file is cut off: row %llu is not in it",
            (unsigned long long)from + n);
    return 0;
}
