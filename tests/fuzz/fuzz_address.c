/* Any text as an endpoint's address: what is taken is http or https to a host, and its base is an address of the same origin. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "remote/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char *text = base_xstrndup((const char *)bytes, n);
    remote_address a, again;
    base_err err = {0};
    if (remote_address_parse(text, &a, &err)) {
        if (!*err.msg) abort();
        free(text);
        return 0;
    }
    if (strncmp(a.origin, a.is_https ? "https://" : "http://", a.is_https ? 8 : 7) != 0 || !*a.host) abort();
    if (strncmp(a.base, a.origin, strlen(a.origin)) != 0 || (a.is_loopback && !a.is_private)) abort();
    if (remote_address_parse(a.base, &again, &err) || strcmp(again.origin, a.origin) != 0 ||
        strcasecmp(again.host, a.host) != 0 || again.is_loopback != a.is_loopback ||
        again.is_private != a.is_private)
        abort();
    remote_address_free(&again);
    remote_address_free(&a);
    free(text);
    return 0;
}
