/* A configuration file: what is read is a key of small letters, and a value without control characters. */
#include "cmd/config_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int check(void *user, const char *key, const char *value, uint32_t line, base_err *err)
{
    uint32_t *last = user;
    if (!*key || key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-")] || line <= *last) abort();
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c < ' ' && *c != '\t') abort();
    *last = line;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    uint32_t last = 0, line;
    base_err err = {0};
    if (config_text_read((const char *)bytes, n, check, &last, &line, &err) && (!*err.msg || !line)) abort();
    return 0;
}
