/*
 * The manifest: everything of a session but its rows (core/groups.h), behind a head that says which row file
 * it belongs to, and in front of a hash64 of all of it.
 */
#include <string.h>

#include "base/hash.h"
#include "kv/core/groups.h"
#include "kv/disk/disk.h"

static const struct head {
    char magic[8];
    uint32_t version;
} head = {"KVMANI\n", 6};
enum { HEAD_BYTES = sizeof head.magic + sizeof head.version };

void kv__manifest_write(const kv_session *s, const kv_manifest_file *file, base_buf *out)
{
    base_buf_add(out, &head, HEAD_BYTES);
    base_buf_add(out, file, sizeof *file);
    kv__groups_put(s, out);
    const uint64_t hash = base_hash64(out->data, out->len, 0);
    base_buf_add(out, &hash, sizeof hash);
}

int kv__manifest_read(kv_session *s, const void *bytes, size_t n, kv_manifest_file *ret_file, base_err *err)
{
    uint64_t hash = 0;
    const size_t n_head = HEAD_BYTES + sizeof *ret_file;
    if (n < HEAD_BYTES + sizeof hash || memcmp(bytes, &head, sizeof head.magic))
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is not one");
    if (memcmp(bytes, &head, HEAD_BYTES))
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is of another version of kvist");
    memcpy(&hash, (const uint8_t *)bytes + n - sizeof hash, sizeof hash);
    if (hash != base_hash64(bytes, n - sizeof hash, 0) || n < n_head + sizeof hash)
        return base_fail(err, BASE_E_FORMAT, "the session's manifest is damaged");
    memcpy(ret_file, (const uint8_t *)bytes + HEAD_BYTES, sizeof *ret_file);
    return kv__groups_get(
        s, (const uint8_t *)bytes + n_head, n - n_head - sizeof hash, ret_file->n_rows, err);
}
