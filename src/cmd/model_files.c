/* See model_files.h. Downloads need the shell's libraries; without them only what is here can be looked at. */
#include "cmd/model_files.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/door.h"
#include "base/fs.h"
#include "base/mem.h"
#include "model/file/gguf_parts.h"
#ifdef KVIST_SHELL
#include "tools/transfer.h"
#endif

void model_files_put_bytes(base_buf *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) x /= 1024;
    base_buf_printf(out, unit ? "%.1f %s" : "%.0f %s", x, units[unit]);
}

char *model_files_path(const char *file)
{
    base_buf name = {0};
    base_buf_printf(&name, "models/%s", file);
    char *path = base_fs_home(BASE_HOME_DATA, name.data);
    base_buf_free(&name);
    return path;
}

/* ---- what is here ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const model_files_entry *)a)->file, ((const model_files_entry *)b)->file);
}

/* The entry of this file, or of the first part of its model. */
static model_files_entry *entry_of(
    model_files_entry *entries, size_t *n, const char *file, const gguf_part_name *part)
{
    base_buf first = {0};
    if (part)
        gguf_part_name_put(file, *part, 1, &first);
    else
        base_buf_puts(&first, file);
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(entries[i].file, first.data)) {
            base_buf_free(&first);
            return &entries[i];
        }
    model_files_entry *e = &entries[(*n)++];
    *e = (model_files_entry){.file = base_buf_take(&first), .n_parts = part ? part->parts : 1};
    return e;
}

model_files_entry *model_files_list(size_t *ret_n)
{
    char *folder = model_files_path("");
    model_files_entry *entries = NULL;
    size_t n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        gguf_part_name part;
        const size_t length = strlen(e->d_name);
        if (e->d_name[0] == '.' || length < 6 || strcmp(e->d_name + length - 5, ".gguf")) continue;
        if (fstatat(dirfd(d), e->d_name, &st, 0) || !S_ISREG(st.st_mode)) continue;
        entries = base_xrealloc(entries, (n + 1) * sizeof *entries);
        const bool is_part = gguf_part_name_read(e->d_name, &part);
        model_files_entry *of = entry_of(entries, &n, e->d_name, is_part ? &part : NULL);
        of->n_here++;
        of->bytes += (uint64_t)st.st_size;
    }
    if (d) closedir(d);
    free(folder);
    if (n) qsort(entries, n, sizeof *entries, by_name);
    *ret_n = n;
    return entries;
}

void model_files_free(model_files_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) free(entries[i].file);
    free(entries);
}

static char *hash_path(const char *path)
{
    base_buf out = {0};
    base_buf_printf(&out, "%s.sha256", path);
    return base_buf_take(&out);
}

bool model_files_hash(const char *path, char ret[65])
{
    char *file = hash_path(path);
    base_buf text = {0};
    bool is_there = base_fs_exists(file) && !base_fs_read(file, 4096, &text, NULL) && text.len >= 64 &&
                    strspn(text.data, "0123456789abcdef") == 64;
    if (is_there) snprintf(ret, 65, "%.64s", text.data);
    base_buf_free(&text);
    free(file);
    return is_there;
}

/* ---- fetching ---- */

#ifdef KVIST_SHELL
/* One file that is fetched: from where, to where, and what is known of it. */
typedef struct fetch {
    char *url, *path, *name;
    char promised[65]; /* what it has to be; empty: nobody said */
    char found[65];    /* what came; empty: it was here */
    bool is_remembered;
} fetch;

static bool show_progress(void *user, uint64_t done, uint64_t total)
{
    base_buf line = {0};
    base_buf_printf(&line, "%s: ", (const char *)user);
    model_files_put_bytes(&line, done);
    if (total) {
        base_buf_puts(&line, " of ");
        model_files_put_bytes(&line, total);
    }
    base_door_progress(line.data);
    base_buf_free(&line);
    return true;
}

/* The last part of a URL's path, if that is a file name that needs no quoting anywhere: n bytes from *at. */
static int name_of_url(const char *url, size_t *ret_at, size_t *ret_n, base_err *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+";
    const char *rest = strstr(url, "://") + 3, *end = rest + strcspn(rest, "?#"), *at = end;
    while (at > rest && at[-1] != '/') at--;
    size_t n = (size_t)(end - at);
    if (at == rest || n < 6 || n > 200 || *at == '.' || *at == '-' || strspn(at, letters) < n ||
        strncmp(end - 5, ".gguf", 5) != 0) {
        return base_fail(err, BASE_E_USAGE, "%s does not end in the name of a .gguf file", url);
    }
    *ret_at = (size_t)(at - url);
    *ret_n = n;
    return 0;
}

/* As soon as a file is here: a model in parts may be fetched in several runs. */
static int remember_hash(const fetch *f, base_err *err)
{
    char *file = hash_path(f->path);
    base_buf text = {0};
    base_buf_printf(&text, "%s  %s\n", f->found, f->name);
    int r = base_fs_write(file, text.data, text.len, 0644, err);
    base_buf_free(&text);
    free(file);
    return r;
}

/* What came and is no model must not stand where the next attempt wants to write, nor be what it expects. */
static void move_aside(const fetch *f, base_err *err)
{
    base_buf aside = {0};
    base_buf_printf(&aside, "%s.damaged", f->path);
    base_err why = *err;
    if (rename(f->path, aside.data) == 0)
        base_fail(err, why.code, "%.300s; it was moved to %.140s", why.msg, aside.data);
    if (!f->is_remembered) {
        char *hash = hash_path(f->path);
        unlink(hash);
        free(hash);
    }
    base_buf_free(&aside);
}

/* The i-th of the hashes with commas between; false: there is none. */
static bool nth_hash(const char *list, uint32_t i, char ret[65])
{
    for (; list && i; i--) {
        list = strchr(list, ',');
        if (list) list++;
    }
    if (!list) return false;
    snprintf(ret, 65, "%.*s", (int)strcspn(list, ","), list);
    return true;
}

static int check_hashes(const char *list, uint32_t n, base_err *err)
{
    uint32_t n_given = 1;
    for (const char *at = list; *at; at++) n_given += *at == ',';
    if (n_given != n)
        return base_fail(err, BASE_E_USAGE,
            "--sha256 has %" PRIu32 " hash%s for %" PRIu32 " file%s: one for each part, commas between",
            n_given, n_given == 1 ? "" : "es", n, n == 1 ? "" : "s");
    return 0;
}

/* What has to come from where: one file, or each part of a model. */
static int plan_fetches(const char *url, const char *sha256, fetch **ret, uint32_t *ret_n, base_err *err)
{
    size_t at = 0, length = 0;
    gguf_part_name part;
    int r = name_of_url(url, &at, &length, err);
    if (r < 0) return r;
    char *name = base_xstrndup(url + at, length);
    const bool is_part = gguf_part_name_read(name, &part);
    const uint32_t n = is_part ? part.parts : 1;
    if (sha256 && (r = check_hashes(sha256, n, err)) < 0) {
        free(name);
        return r;
    }
    fetch *fetches = base_xcalloc(n, sizeof *fetches);
    for (uint32_t i = 0; i < n; i++) {
        fetch *f = &fetches[i];
        base_buf own = {0}, from = {0};
        if (is_part)
            gguf_part_name_put(name, part, i + 1, &own);
        else
            base_buf_puts(&own, name);
        base_buf_printf(&from, "%.*s%s%s", (int)at, url, own.data, url + at + length);
        f->name = base_buf_take(&own);
        f->url = base_buf_take(&from);
        f->path = model_files_path(f->name);
        if (!nth_hash(sha256, i, f->promised)) f->is_remembered = model_files_hash(f->path, f->promised);
    }
    free(name);
    *ret = fetches;
    *ret_n = n;
    return 0;
}

static int fetch_one(fetch *f, base_err *err)
{
    if (!*f->promised && strncasecmp(f->url, "http:", 5) == 0)
        return base_fail(err, BASE_E_USAGE,
            "http does not say who answers, and anybody on the way can change what comes: give --sha256 HEX "
            "as its publisher names it, or an https URL");
    const tool_transfer_options options = {.url = f->url,
        .path = f->path,
        .sha256 = *f->promised ? f->promised : NULL,
        .ret_sha256 = f->found,
        .progress = show_progress,
        .user = f->name};
    int r = tool_transfer_get(&options, err);
    base_door_progress("");
    if (r == BASE_E_FORMAT && f->is_remembered)
        base_err_prefix(err, "not what was fetched before (remove %s.sha256 to take another file)", f->path);
    return r == 0 ? remember_hash(f, err) : r;
}

static int fetch_all(fetch *fetches, uint32_t n, base_err *err)
{
    uint32_t n_here = 0;
    for (uint32_t i = 0; i < n; i++) n_here += base_fs_exists(fetches[i].path);
    if (n_here == n)
        return base_fail(
            err, BASE_E_STATE, "%s is already here; remove it to fetch it again", fetches[0].path);
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++) {
        if (!base_fs_exists(fetches[i].path))
            r = fetch_one(&fetches[i], err);
        else
            printf("%s is already here\n", fetches[i].name);
    }
    return r;
}

static void tell_hashes(const fetch *fetches, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const fetch *f = &fetches[i];
        if (*f->found && (f->is_remembered || !*f->promised))
            printf("%s%ssha256 %s%s\n", n > 1 ? f->name : "", n > 1 ? ": " : "", f->found,
                f->is_remembered ? ", as when it was fetched before"
                                 : ": nobody said what it has to be. Compare it with what the publisher "
                                   "names; it is remembered, and `kvist model check` looks for it");
    }
}

int model_files_get(
    const char *url, const char *sha256, int (*check)(const char *path, base_err *err), base_err *err)
{
    fetch *fetches = NULL;
    uint32_t n = 0;
    int r = plan_fetches(url, sha256, &fetches, &n, err);
    if (r == 0) r = fetch_all(fetches, n, err);
    if (r == 0 && (r = check(fetches[0].path, err)) != 0)
        for (uint32_t i = 0; i < n; i++)
            if (*fetches[i].found) move_aside(&fetches[i], err);
    tell_hashes(fetches, r == 0 ? n : 0);
    if (r == 0) printf("kvist --model %s starts the shell with it\n", fetches[0].name);
    for (uint32_t i = 0; i < n; i++) {
        free(fetches[i].url);
        free(fetches[i].path);
        free(fetches[i].name);
    }
    free(fetches);
    return r;
}
#else
int model_files_get(
    const char *url, const char *sha256, int (*check)(const char *path, base_err *err), base_err *err)
{
    return base_fail(err, BASE_E_UNSUPPORTED,
        "this build has no downloads (-Dshell=disabled); put %s into the data folder's models/ by hand", url);
}
#endif
