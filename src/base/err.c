#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int base_fail(base_err *err, base_code code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->msg, sizeof err->msg, format, args);
        va_end(args);
        err->code = code;
        err->sys = 0;
    }
    return code;
}

int base_fail_sys(base_err *err, const char *format, ...)
{
    int saved = errno; /* vsnprintf may change it */
    if (err) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(err->msg, sizeof err->msg, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < sizeof err->msg)
            snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s", strerror(saved));
        err->code = BASE_E_IO;
        err->sys = saved;
    }
    return BASE_E_IO;
}

int base_err_prefix(base_err *err, const char *format, ...)
{
    if (!err) return BASE_E_STATE;
    char old[sizeof err->msg];
    memcpy(old, err->msg, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->msg, sizeof err->msg, format, args);
    va_end(args);
    if (n < 0 || (size_t)n > sizeof err->msg - 3) return err->code;
    size_t room = sizeof err->msg - (size_t)n - 3, len = strlen(old);
    memcpy(err->msg + n, ": ", 2);
    memcpy(err->msg + n + 2, old, len < room ? len : room);
    err->msg[(size_t)n + 2 + (len < room ? len : room)] = '\0';
    return err->code;
}
