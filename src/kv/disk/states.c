/*
 * A session's states on disk, beside its row file: "ROW_FILE.states", one state after another, each at a
 * place of its own. The manifest says which of them count, behind which tokens they are, and their hashes. A
 * place that the newest manifest names is not written to, so whenever the process dies that one is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "kv/disk/disk.h"

static int open_file(const kv_session *s, int flags, base_err *err)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s.states", s->row_path);
    const int fd = open(path.data, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) base_fail(err, BASE_E_IO, "%s: %s", path.data, strerror(errno));
    base_buf_free(&path);
    return fd;
}

/* All bytes at a place, out of or into the file. */
static int move_bytes(int fd, bool writes, float *numbers, size_t n_bytes, uint32_t place, base_err *err)
{
    for (size_t done = 0; done < n_bytes;) {
        char *at = (char *)numbers + done;
        const off_t where = (off_t)((uint64_t)place * n_bytes + done);
        const ssize_t n =
            writes ? pwrite(fd, at, n_bytes - done, where) : pread(fd, at, n_bytes - done, where);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return base_fail(err, BASE_E_IO, "the session's states: %s", strerror(errno));
        if (n == 0) return base_fail(err, BASE_E_FORMAT, "the session's file of states is cut off");
        done += (size_t)n;
    }
    return 0;
}

/* Neither in the manifest that counts nor in the one to be written. */
static uint32_t find_place(const kv_states *st)
{
    for (uint32_t place = 0;; place++) {
        bool taken = false;
        for (uint32_t i = 0; i < st->n_on_disk; i++) taken |= st->on_disk[i].place == place;
        for (uint32_t i = 0; i < st->n_saved; i++) taken |= st->saved[i].place == place;
        if (!taken) return place;
    }
}

/* A place that this session wrote, and that nothing has been written over since. */
static bool is_there(const kv_states *st, const kv_state *x)
{
    for (uint32_t i = 0; i < st->n_on_disk; i++)
        if (x->place == st->on_disk[i].place && x->hash == st->on_disk[i].hash && x->at == st->on_disk[i].at)
            return true;
    return false;
}

static int save_one(kv_session *s, int fd, kv_state *x, base_err *err)
{
    kv_states *st = &s->states;
    if (!is_there(st, x)) {
        x->place = find_place(st);
        x->hash = base_hash64(x->numbers, x->n_bytes, 0);
        const int rc = move_bytes(fd, true, x->numbers, x->n_bytes, x->place, err);
        if (rc) {
            x->place = KV_STATE_NOWHERE;
            return rc;
        }
    }
    bool kept = false;
    for (uint32_t i = 0; i < st->n_kept; i++) kept |= st->kept[i] == x;
    st->saved[st->n_saved++] = (kv_state_place){x->at, x->place, x->hash, kept, x == st->before};
    return 0;
}

int kv__states_save(kv_session *s, base_err *err)
{
    kv_states *st = &s->states;
    if (!s->compute.state_bytes) return 0;
    const uint64_t room = ((uint64_t)s->parameters.states_disk << 20) / s->compute.state_bytes;
    const int fd = open_file(s, O_RDWR | O_CREAT, err);
    if (fd < 0) return BASE_E_IO;
    int rc = 0;
    st->n_saved = 0;
    if (st->live && st->live->at <= s->n) rc = save_one(s, fd, st->live, err);
    /* What the newest was made of: the logits behind the newest token are made of it again. */
    if (st->before && !rc) rc = save_one(s, fd, st->before, err);
    for (uint32_t i = st->n_kept; i-- > 0 && st->n_saved < room && !rc;)
        if (st->kept[i] != st->live && st->kept[i] != st->before) rc = save_one(s, fd, st->kept[i], err);
    if (!rc && fdatasync(fd)) rc = base_fail(err, BASE_E_IO, "the session's states: %s", strerror(errno));
    close(fd);
    return rc;
}

void kv__states_saved(kv_session *s)
{
    kv_states *st = &s->states;
    memcpy(st->on_disk, st->saved, sizeof st->saved);
    st->n_on_disk = st->n_saved;
}

static int load_one(kv_session *s, int fd, const kv_state_place *p, base_err *err)
{
    kv_states *st = &s->states;
    kv_state *x = kv_state_new(st, s->compute.state_bytes, err);
    int rc = x ? move_bytes(fd, false, x->numbers, x->n_bytes, p->place, err) : BASE_E_NOMEM;
    if (!rc && base_hash64(x->numbers, x->n_bytes, 0) != p->hash)
        rc = base_fail(err, BASE_E_FORMAT, "the state behind token %u is damaged", p->at);
    if (rc) {
        kv_state_drop(st, &x);
        return rc;
    }
    x->at = p->at;
    x->place = p->place;
    x->hash = p->hash;
    if (p->kept && st->n_kept < kv_states_most(s)) st->kept[st->n_kept++] = kv_state_ref(x);
    kv_state **to = p->before ? &st->before : &st->live; /* of the others the last is the newest */
    kv_state_drop(st, to);
    *to = x;
    return 0;
}

int kv__states_load(kv_session *s, base_err *err)
{
    kv_states *st = &s->states;
    if (!s->compute.state_bytes || !st->n_saved) return 0;
    const int fd = open_file(s, O_RDONLY, err);
    if (fd < 0) return BASE_E_FORMAT;
    int rc = 0;
    for (uint32_t at = 0, i; !rc && at <= s->n; at++) { /* oldest first */
        const kv_state_place *next = NULL;
        for (i = 0; i < st->n_saved; i++)
            if (st->saved[i].at >= at && (!next || st->saved[i].at < next->at)) next = &st->saved[i];
        if (!next) break;
        at = next->at;
        rc = load_one(s, fd, next, err);
    }
    close(fd);
    st->is_cut = (st->live ? st->live->at : 0) != s->n;
    kv__states_saved(s);
    return rc;
}
