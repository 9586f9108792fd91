/*
 * transfer.h by libcurl. Bytes go to the part file as they come; the hash runs along, over what an earlier
 * process left first. A server that answers a request for the rest with the whole (200) starts the file
 * again.
 */
#include "tools/transfer.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"

#define DEFAULT_MAX_BYTES ((uint64_t)64 << 30)
#define PROGRESS_NS       100000000u
#define MAX_HEADERS       (256 << 10)

typedef struct transfer {
    const tool_transfer_options *options;
    CURL *curl;
    int fd;
    uint64_t had, done, total, max_bytes; /* had: bytes of an earlier run */
    base_sha256 sha;
    char validator[256]; /* "etag ..." or "date ..." of this answer */
    size_t n_headers;    /* their bytes */
    bool is_started, was_stopped, is_too_large, is_elsewhere;
    uint64_t free_bytes; /* of the disk, when the file does not fit on it; else 0 */
    int write_error;
    uint64_t told_ns;
} transfer;

static bool stops(const transfer *t)
{
    return t->options->cancel && atomic_load_explicit(t->options->cancel, memory_order_relaxed);
}

/* "Content-Range: bytes 1000-...": where the answer begins. */
static void take_range(transfer *t, const char *line, size_t n)
{
    static const char name[] = "content-range: bytes ";
    uint64_t from = 0;
    size_t i = sizeof name - 1;
    if (n <= i || strncasecmp(line, name, i)) return;
    for (; i < n && line[i] >= '0' && line[i] <= '9' && from < UINT64_MAX / 16; i++)
        from = from * 10 + (uint64_t)(line[i] - '0');
    t->is_elsewhere = from != t->had;
}

static size_t on_header(char *line, size_t size, size_t n, void *user)
{
    transfer *t = user;
    static const struct {
        const char *name, *kind;
    } wanted[] = {{"etag:", "etag"}, {"last-modified:", "date"}};
    t->n_headers += n;
    if (t->n_headers > MAX_HEADERS) return 0;      /* ends the transfer: libcurl keeps them all */
    if (n > 5 && !strncasecmp(line, "HTTP/", 5)) { /* a new answer (redirect) */
        t->validator[0] = '\0';
        t->is_elsewhere = false;
    }
    take_range(t, line, n);
    for (size_t i = 0; i < 2; i++) {
        size_t name = strlen(wanted[i].name);
        if (n <= name || strncasecmp(line, wanted[i].name, name)) continue;
        size_t from = name, to = n;
        while (from < to && line[from] == ' ') from++;
        while (to > from && (line[to - 1] == '\r' || line[to - 1] == '\n')) to--;
        if (i == 1 && t->validator[0]) continue; /* the ETag says more */
        snprintf(t->validator, sizeof t->validator, "%s %.*s", wanted[i].kind, (int)(to - from), line + from);
    }
    return size * n;
}

/* Is there room for what is still to come? Asked before a byte of it is written. */
static bool has_room(transfer *t)
{
    struct statvfs disk;
    if (!t->total || fstatvfs(t->fd, &disk)) return true;
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left >= t->total - t->had) return true;
    t->free_bytes = left ? left : 1;
    return false;
}

/* The first bytes: did the server go on, or begin again? */
static bool start(transfer *t)
{
    long status = 0;
    curl_off_t length = -1;
    t->is_started = true;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (status == 200 && t->had) {
        if (ftruncate(t->fd, 0) || lseek(t->fd, 0, SEEK_SET) < 0) {
            t->write_error = errno;
            return false;
        }
        t->had = t->done = 0;
        base_sha256_init(&t->sha);
    }
    t->total = length > 0 ? t->had + (uint64_t)length : 0;
    if (t->total > t->max_bytes) {
        t->is_too_large = true;
        return false;
    }
    if ((status == 206 && t->is_elsewhere) || !has_room(t)) return false;
    base_buf from = {0};
    base_buf_printf(&from, "%s.part.from", t->options->path);
    if (t->validator[0])
        base_fs_write(from.data, t->validator, strlen(t->validator), 0644, NULL);
    else
        unlink(from.data);
    base_buf_free(&from);
    return true;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *user)
{
    transfer *t = user;
    if (!t->is_started && !start(t)) return 0;
    if (t->done + n > t->max_bytes) {
        t->is_too_large = true;
        return 0;
    }
    for (size_t at = 0; at < n;) {
        ssize_t w = write(t->fd, bytes + at, n - at);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) {
            t->write_error = errno;
            return 0;
        }
        at += (size_t)w;
    }
    base_sha256_add(&t->sha, bytes, n);
    t->done += n;
    return size * n;
}

static int on_progress(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up)
{
    transfer *t = user;
    t->was_stopped = stops(t);
    uint64_t ns = base_clock_ns();
    if (!t->was_stopped && t->options->progress && ns - t->told_ns > PROGRESS_NS) {
        t->told_ns = ns;
        t->was_stopped = !t->options->progress(t->options->user, t->done, t->total);
    }
    return t->was_stopped;
}

/* What an earlier run left, hashed; seeks to its end. */
static int take_part(transfer *t, const char *part, base_err *err)
{
    char *bytes = base_xmalloc(1 << 20);
    int code = BASE_OK;
    for (;;) {
        ssize_t n = stops(t) ? 0 : read(t->fd, bytes, 1 << 20);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) code = base_fail_sys(err, "%s", part);
        if (n <= 0) break;
        base_sha256_add(&t->sha, bytes, (size_t)n);
        t->had += (uint64_t)n;
    }
    free(bytes);
    if (!code && stops(t)) code = base_fail(err, BASE_E_CANCELLED, "cancelled");
    t->done = t->had;
    return code;
}

static void put_options(transfer *t, struct curl_slist **headers, const char *validator, char *why)
{
    CURL *c = t->curl;
    curl_easy_setopt(c, CURLOPT_URL, t->options->url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https,http,file");
    bool is_secure = !strncasecmp(t->options->url, "https:", 6); /* and stays so */
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "https,http");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
    curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 30L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 100L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 60L);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "kvist/" KVIST_VERSION);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    if (t->had) curl_easy_setopt(c, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->had);
    if (t->had && validator) {
        const char *value = strchr(validator, ' ');
        base_buf line = {0};
        base_buf_printf(&line, "If-Range: %s", value ? value + 1 : "");
        *headers = curl_slist_append(NULL, line.data);
        curl_easy_setopt(c, CURLOPT_HTTPHEADER, *headers);
        base_buf_free(&line);
    }
}

static bool is_offline(CURLcode got)
{
    return got == CURLE_COULDNT_RESOLVE_HOST || got == CURLE_COULDNT_RESOLVE_PROXY ||
           got == CURLE_COULDNT_CONNECT;
}

/* Sorts out what curl says; *again: the part is of no use, start over. */
static int judge(transfer *t, CURLcode got, const char *part, const char *why, bool *again, base_err *err)
{
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (t->was_stopped)
        return base_fail(err, BASE_E_CANCELLED, "the download was stopped; the same command goes on with it");
    if (t->is_too_large)
        return base_fail(err, BASE_E_LIMIT, "%s is larger than %llu bytes", t->options->url,
            (unsigned long long)t->max_bytes);
    if (t->n_headers > MAX_HEADERS)
        return base_fail(err, BASE_E_LIMIT, "%.200s: the server sent headers of more than %d KiB",
            t->options->url, MAX_HEADERS >> 10);
    if (t->free_bytes)
        return base_fail(err, BASE_E_NOMEM, "%s needs %.2f GB more on this disk and %.2f GB are free", part,
            (t->total - t->had) / 1e9, t->free_bytes / 1e9);
    if (t->write_error) {
        errno = t->write_error;
        return base_fail_sys(err, "%s", part);
    }
    if (t->had && t->is_elsewhere && t->is_started) { /* another part of the file than was asked for */
        *again = true;
        return BASE_OK;
    }
    /* Nothing behind what we have: it was whole already, or it is longer than the file. */
    if (t->had && !t->is_started &&
        (status == 416 || got == CURLE_OK || got == CURLE_RANGE_ERROR || got == CURLE_BAD_DOWNLOAD_RESUME)) {
        *again = !t->options->sha256 && got != CURLE_OK;
        return BASE_OK;
    }
    if (got != CURLE_OK)
        return base_fail(err, BASE_E_IO, "%.200s: %.200s%s", t->options->url,
            *why ? why : curl_easy_strerror(got),
            is_offline(got) ? "; is there a network? Where there is one, the same command goes on" : "");
    if (t->total && t->done != t->total)
        return base_fail(err, BASE_E_IO, "%.200s: %llu of %llu bytes came; the same command goes on",
            t->options->url, (unsigned long long)t->done, (unsigned long long)t->total);
    return BASE_OK;
}

static int finish(transfer *t, const char *part, base_err *err)
{
    uint8_t digest[32];
    char hex[65];
    base_sha256_end(&t->sha, digest);
    base_hex(digest, 32, hex);
    if (t->options->ret_sha256) memcpy(t->options->ret_sha256, hex, sizeof hex);
    if (t->options->sha256 && strcasecmp(hex, t->options->sha256)) {
        unlink(part);
        return base_fail(err, BASE_E_FORMAT,
            "%.200s: the sha256 is %.16s..., not %.16s...; what came was removed", t->options->url, hex,
            t->options->sha256);
    }
    if (fchmod(t->fd, 0644) || fsync(t->fd) || rename(part, t->options->path))
        return base_fail_sys(err, "%s", t->options->path);
    base_buf folder = {0};
    const char *slash = strrchr(t->options->path, '/');
    base_buf_add(&folder, slash ? t->options->path : ".",
        slash ? (size_t)(slash - t->options->path) + (slash == t->options->path) : 1);
    int fd = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    base_buf_free(&folder);
    if (t->options->progress) t->options->progress(t->options->user, t->done, t->done);
    return BASE_OK;
}

/* One attempt; *again when the part had to be thrown away. */
static int attempt(
    const tool_transfer_options *options, const char *part, const char *from, bool *again, base_err *err)
{
    transfer t = {.options = options,
        .fd = -1,
        .max_bytes = options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES};
    struct curl_slist *headers = NULL;
    base_buf validator = {0};
    char why[CURL_ERROR_SIZE] = "";
    struct stat st;
    bool is_ours = false;
    base_sha256_init(&t.sha);
    t.fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = t.fd < 0 ? base_fail_sys(err, "%s", part) : BASE_OK;
    if (!code && flock(t.fd, LOCK_EX | LOCK_NB))
        code = base_fail(err, BASE_E_STATE, "%s is being downloaded by another process", options->path);
    if (code) goto out;
    is_ours = true;
    bool has_validator = !base_fs_read(from, 255, &validator, NULL) && validator.len;
    if (!options->sha256 && !has_validator && ftruncate(t.fd, 0)) code = base_fail_sys(err, "%s", part);
    if (!code) code = take_part(&t, part, err);
    if (code) goto out;
    t.curl = curl_easy_init();
    if (!t.curl) {
        code = base_fail(err, BASE_E_IO, "libcurl cannot be used");
        goto out;
    }
    put_options(&t, &headers, options->sha256 ? NULL : has_validator ? validator.data : NULL, why);
    CURLcode got = curl_easy_perform(t.curl);
    code = judge(&t, got, part, why, again, err);
    if (!code && *again && ftruncate(t.fd, 0)) code = base_fail_sys(err, "%s", part);
    if (!code && !*again) code = finish(&t, part, err);
    /* A part of something else: the next attempt begins at nothing. */
    if (code == BASE_E_FORMAT && t.had) *again = true;
    if (!code || code == BASE_E_FORMAT) unlink(from);
out:
    if (t.curl) curl_easy_cleanup(t.curl);
    curl_slist_free_all(headers);
    base_buf_free(&validator);
    if (code && is_ours && !fstat(t.fd, &st) && !st.st_size) { /* nothing came: nothing to go on with */
        unlink(part);
        unlink(from);
    }
    if (t.fd >= 0) close(t.fd);
    return code;
}

static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int tool_transfer_get(const tool_transfer_options *options, base_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_curl);
    base_buf part = {0}, from = {0};
    base_buf_printf(&part, "%s.part", options->path);
    base_buf_printf(&from, "%s.part.from", options->path);
    int code = base_fs_mkdirs_above(options->path, err);
    bool again = false;
    if (!code) code = attempt(options, part.data, from.data, &again, err);
    if (again) {
        again = false;
        unlink(part.data);
        code = attempt(options, part.data, from.data, &again, err);
    }
    base_buf_free(&part);
    base_buf_free(&from);
    return code;
}
