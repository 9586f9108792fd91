#include "remote/address.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"

static bool is_near_v4(uint32_t ip, bool only_loopback)
{
    static const struct {
        uint32_t net, bits;
        bool is_loopback;
    } near[] = {{0x7f000000, 8, true}, {0x0a000000, 8, false}, {0xac100000, 12, false},
        {0xc0a80000, 16, false}, {0xa9fe0000, 16, false}, {0x64400000, 10, false}};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        if ((ip ^ near[i].net) >> (32 - near[i].bits) == 0 && (near[i].is_loopback || !only_loopback))
            return true;
    return false;
}

bool remote_address_is_near(const struct sockaddr *to, bool only_loopback)
{
    if (to->sa_family == AF_INET)
        return is_near_v4(
            ntohl(((const struct sockaddr_in *)(const void *)to)->sin_addr.s_addr), only_loopback);
    if (to->sa_family != AF_INET6) return to->sa_family == AF_UNIX;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)to)->sin6_addr;
    const uint8_t *b = six->s6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six))
        return is_near_v4(
            (uint32_t)b[12] << 24 | (uint32_t)b[13] << 16 | (uint32_t)b[14] << 8 | b[15], only_loopback);
    if (IN6_IS_ADDR_LOOPBACK(six)) return true;
    return !only_loopback && ((b[0] & 0xfe) == 0xfc || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80));
}

/* libcurl gives a host with its %XX taken apart: what is in it then may look like the rest of an address. */
static bool is_host(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";
    for (const char *c = host; *c; c++)
        if (!((unsigned char)*c & 0x80) && !strchr(letters, *c)) return false;
    return true;
}

/*
 * http://0%787f.1 becomes the host 0x7f.1, which is no number to whoever judges it and 127.0.0.1 to whoever connects: a
 * host is taken as it stands. What an address in brackets says behind its % names a network card.
 */
static bool is_host_escaped(const char *text)
{
    const char *host = strstr(text, "://") + 3;
    host += strspn(host, "/\\"); /* libcurl takes http:///host too */
    return *host != '[' && memchr(host, '%', strcspn(host, "/\\?#"));
}

static void judge_host(remote_address *a)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    const struct sockaddr *to = NULL;
    if (inet_pton(AF_INET, a->host, &four.sin_addr) == 1) to = (const struct sockaddr *)&four;
    if (inet_pton(AF_INET6, a->host, &six.sin6_addr) == 1) to = (const struct sockaddr *)&six;
    a->is_literal = to != NULL;
    a->is_loopback = to ? remote_address_is_near(to, true) : !strcasecmp(a->host, "localhost");
    a->is_private = to ? remote_address_is_near(to, false) : a->is_loopback;
}

static char *part(CURLU *url, CURLUPart what, unsigned flags)
{
    char *text = NULL;
    if (curl_url_get(url, what, &text, flags)) return base_xstrdup("");
    char *copy = base_xstrdup(text);
    curl_free(text);
    return copy;
}

static int take_apart(CURLU *url, const char *text, remote_address *ret, base_err *err)
{
    static const CURLUPart refused[] = {
        CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char *there = NULL;
        if (curl_url_get(url, refused[i], &there, 0)) continue;
        curl_free(there);
        return base_fail(err, BASE_E_USAGE,
            i < 2 ? "an endpoint's address holds no name and no password: "
                    "a key comes from KVIST_API_KEY or --api-key-file"
                  : "an endpoint's address ends with its path: no \"?\" and no \"#\"");
    }
    char *scheme = part(url, CURLUPART_SCHEME, 0), *host = part(url, CURLUPART_HOST, 0),
         *port = part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT), *path = part(url, CURLUPART_PATH, 0);
    size_t n = strlen(path);
    while (n && path[n - 1] == '/') n--;
    if (n >= 3 && !memcmp(path + n - 3, "/v1", 3)) n -= 3;
    while (n && path[n - 1] == '/') n--;
    base_buf origin = {0}, base = {0};
    base_buf_printf(&origin, "%s://%s:%s", scheme, host, port);
    for (size_t i = 0; i < origin.len; i++)
        if (origin.data[i] >= 'A' && origin.data[i] <= 'Z') origin.data[i] += 'a' - 'A';
    base_buf_printf(&base, "%s%.*s", origin.data, (int)n, path);
    *ret = (remote_address){.is_https = !strcasecmp(scheme, "https")};
    ret->origin = base_buf_take(&origin);
    ret->base = base_buf_take(&base);
    size_t len = strlen(host);
    ret->host = *host == '[' ? base_xstrndup(host + 1, len > 1 ? len - 2 : 0) : base_xstrdup(host);
    int rc = 0;
    if (!ret->is_https && strcasecmp(scheme, "http"))
        rc = base_fail(err, BASE_E_USAGE, "an endpoint is reached by http or https, not by %.20s", scheme);
    else if (!*ret->host)
        rc = base_fail(err, BASE_E_USAGE, "the endpoint %.100s names no host", text);
    else if (!is_host(ret->host) || is_host_escaped(text))
        rc = base_fail(
            err, BASE_E_USAGE, "the endpoint %.100s has a host with a letter that no name has", text);
    judge_host(ret);
    free(scheme);
    free(host);
    free(port);
    free(path);
    if (rc) remote_address_free(ret);
    return rc;
}

int remote_address_parse(const char *text, remote_address *ret, base_err *err)
{
    CURLU *url = curl_url();
    if (!url) return base_fail(err, BASE_E_NOMEM, "libcurl cannot be used");
    int rc = strstr(text, "://") && !curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME)
                 ? take_apart(url, text, ret, err)
                 : base_fail(err, BASE_E_USAGE,
                       "an endpoint is an address like http://127.0.0.1:8080, not \"%.100s\"", text);
    curl_url_cleanup(url);
    return rc;
}

void remote_address_free(remote_address *a)
{
    free(a->base);
    free(a->origin);
    free(a->host);
    *a = (remote_address){0};
}
