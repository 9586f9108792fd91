#include "base/door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

typedef struct door {
    int fd;
    char rest[4]; /* of a character whose other bytes come with the next write */
    size_t n_rest;
} door;

static int write_whole(int fd, const char *s, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, s, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        s += done;
        n -= (size_t)done;
    }
    return 0;
}

/* A cookie_write_function_t (fopencookie(3)): 0 is an error. */
static ssize_t pass(void *user, const char *s, size_t n)
{
    door *d = user;
    base_buf raw = {0}, clean = {0};
    base_buf_add(&raw, d->rest, d->n_rest);
    base_buf_add(&raw, s, n);
    const size_t whole = raw.len ? base_utf8_whole(raw.data, raw.len) : 0;
    d->n_rest = raw.len - whole;
    if (d->n_rest) memcpy(d->rest, raw.data + whole, d->n_rest);
    base_utf8_sanitise(&clean, raw.data, whole, true);
    const int rc = write_whole(d->fd, clean.data, clean.len);
    base_buf_free(&raw);
    base_buf_free(&clean);
    return rc ? 0 : (ssize_t)n;
}

/* The stream that takes the place of `standard`; that one, where the bytes go to no terminal. */
static FILE *put_before(FILE *standard, door *d, int buffering)
{
    if (!isatty(d->fd)) return standard;
    FILE *f = fopencookie(d, "w", (cookie_io_functions_t){.write = pass});
    if (!f) return standard;
    setvbuf(f, NULL, buffering, BUFSIZ);
    return f;
}

void base_door_open(void)
{
    static door out = {.fd = STDOUT_FILENO}, err = {.fd = STDERR_FILENO};
    static int is_open;
    if (is_open++) return;
    fflush(NULL);
    stdout = put_before(stdout, &out,
        _IOLBF); /* the GNU C library's are variables for this (its manual, "Standard Streams") */
    stderr = put_before(stderr, &err, _IONBF);
}

void base_door_progress(const char *line)
{
    static const char again[] = "\r\033[K";
    if (!isatty(STDERR_FILENO)) return;
    base_buf b = {0};
    base_buf_puts(&b, line && !*line ? "\n" : again);
    if (line) base_utf8_sanitise(&b, line, strlen(line), false);
    write_whole(STDERR_FILENO, b.data, b.len);
    base_buf_free(&b);
}
