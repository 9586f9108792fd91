/*
 * Errors are values: a code for the program and a sentence for a person.
 *
 * A function that can fail returns 0 or a negative base_code and takes a base_err last (NULL is allowed). It
 * fills the error once, where the failure is seen; callers pass it on untouched, or prefix it once at a
 * module's edge. Results go through ret pointers that are written on success only. The sentence has no
 * trailing period and names the bad value.
 */
#ifndef KVIST_BASE_ERR_H
#define KVIST_BASE_ERR_H

typedef enum base_code {
    BASE_OK = 0,
    BASE_E_NOMEM = -1,       /* a size that a file, a model or a user chose does not fit */
    BASE_E_IO = -2,          /* the system refused; err->sys holds errno */
    BASE_E_FORMAT = -3,      /* foreign bytes are not what they claim to be */
    BASE_E_LIMIT = -4,       /* a bound of ours */
    BASE_E_DEVICE = -5,      /* the accelerator */
    BASE_E_CANCELLED = -6,   /* the person pressed Esc */
    BASE_E_UNSUPPORTED = -7, /* understood, and not built */
    BASE_E_STATE = -8,       /* not now: another epoch, another process, already closed */
    BASE_E_NOT_FOUND = -9,
    BASE_E_USAGE = -10,  /* what a person typed */
    BASE_E_ENGINE = -11, /* there is no model or engine to compute with */
    BASE_E_DENIED = -12, /* the person said no */
} base_code;

typedef struct base_err {
    base_code code;
    int sys;
    char msg[480];
} base_err;

/* Fills *err (may be NULL) and returns `code`, so that `return base_fail(err, ...)` is one line. */
int base_fail(base_err *err, base_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: BASE_E_IO, with ": " and the text of errno appended. */
int base_fail_sys(base_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " in front of the sentence. Returns err's code, or `BASE_E_STATE` for a NULL err. */
int base_err_prefix(base_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
