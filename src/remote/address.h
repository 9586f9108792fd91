/*
 * Where an endpoint is: a URL taken apart, and whether what is sent there stays on this machine or in a
 * private network.
 */
#ifndef KVIST_REMOTE_ADDRESS_H
#define KVIST_REMOTE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/err.h"

typedef struct remote_address {
    char *base; /* "https://host:8000/prefix": what a path like "/v1/models" is put behind */
    /* "https://host:8000": scheme, host, port; two addresses share a key when these are equal */
    char *origin;
    char *host; /* without brackets */
    bool is_https;
    bool is_literal;  /* the host is a number, no name */
    bool is_loopback; /* ... of this machine, or "localhost" */
    bool is_private;  /* loopback, or a number of a private network */
} remote_address;

/*
 * http or https, a host, maybe a port and a path; a "/v1" at the end is left out, since paths have their own.
 * A name and password, a query or a fragment are BASE_E_USAGE.
 */
int remote_address_parse(const char *text, remote_address *ret, base_err *err);
void remote_address_free(remote_address *a);

/* Loopback, RFC 1918, link-local, unique local (RFC 4193), shared (RFC 6598, which VPNs use). */
bool remote_address_is_near(const struct sockaddr *to, bool only_loopback);

#endif
