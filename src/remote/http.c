#include "remote/http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

enum {
    POLL_MS = 50,
    MAX_ANSWER = 16 << 20,
    MAX_HEADERS = 256 << 10, /* with trailers and early hints; libcurl keeps them all */
    MAX_WAITING = 4 << 20,   /* of a stream that nobody reads: then the sender has to wait */
    MAX_REDIRECTS = 5,
    FIRST_PAUSE_MS = 250,
    LONGEST_PAUSE_MS = 8000,
    TOLD_PAUSE_MS = 1000,
    LATE_MS = 3000,        /* of a whole answer: from here on a person is told what is waited for */
    LATE_AGAIN_MS = 60000, /* ... and no sooner again: a slow endpoint is slow in several requests */
    MAX_SENTENCE = 240     /* of what a server says */
};

/* One request on its way. */
typedef struct exchange {
    remote_http *http;
    CURL *easy;
    base_buf in;
    size_t most; /* bytes that `in` may hold; at that many a stream pauses, and a whole answer is refused */
    size_t n_headers; /* their bytes */
    bool is_stream, is_paused, is_done, has_body, is_too_large, is_packed, is_far, is_added, is_told_wait;
    CURLcode result;
    long status;
    int64_t retry_after_s; /* -1: not said */
    uint64_t begun_ns, heard_ns;
    uint64_t over_ns;   /* when it is not worth waiting for any more; 0: never */
    uint64_t waited_ns; /* by the reader, since anything came that was more than a sign of life */
    char why[CURL_ERROR_SIZE];
} exchange;

struct remote_http {
    CURLM *multi;
    struct curl_slist *headers;
    remote_address address;
    remote_http_options options;
    char *key;
    exchange *stream;
    uint64_t told_late_ns; /* 0: never */
};

static uint64_t ms_since(uint64_t ns)
{
    return (base_clock_ns() - ns) / 1000000;
}

static bool is_cancelled(const remote_http *h)
{
    return h->options.cancel && atomic_load_explicit(h->options.cancel, memory_order_relaxed);
}

static bool is_good(const exchange *x)
{
    return x->status >= 200 && x->status < 300;
}

/* --- what libcurl calls --------------------------------------------------------------------------------- */

static size_t on_header(char *line, size_t size, size_t n, void *user)
{
    exchange *x = user;
    static const char retry[] = "retry-after:", packed[] = "content-encoding:";
    x->n_headers += n;
    if (x->n_headers > MAX_HEADERS) return 0; /* ends the exchange */
    if (n > 5 && !strncasecmp(line, "HTTP/", 5)) {
        x->retry_after_s = -1;
        x->is_packed = false;
    }
    base_buf value = {0};
    if (n > sizeof retry - 1 && !strncasecmp(line, retry, sizeof retry - 1)) {
        base_buf_add(&value, line + sizeof retry - 1, n - (sizeof retry - 1));
        char *end;
        long seconds = strtol(value.data, &end, 10);
        time_t at = end == value.data ? curl_getdate(value.data, NULL) : -1;
        if (end != value.data && seconds >= 0) x->retry_after_s = seconds;
        if (at >= 0) x->retry_after_s = at > time(NULL) ? at - time(NULL) : 0;
    } else if (n > sizeof packed - 1 && !strncasecmp(line, packed, sizeof packed - 1)) {
        base_buf_add(&value, line + sizeof packed - 1, n - (sizeof packed - 1));
        const char *word = value.data + strspn(value.data, " \t");
        x->is_packed = *word && *word != '\r' && strncasecmp(word, "identity", 8);
    }
    base_buf_free(&value);
    return size * n;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *user)
{
    exchange *x = user;
    n *= size;
    if (x->is_packed) return 0;
    if (x->in.len + n > x->most) {
        curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->status);
        if (x->is_stream && is_good(x)) {
            x->is_paused = true;
            return CURL_WRITEFUNC_PAUSE;
        }
        x->is_too_large = true;
        return 0;
    }
    base_buf_add(&x->in, bytes, n);
    x->has_body = x->has_body || n > 0;
    x->heard_ns = base_clock_ns();
    return n;
}

/* Plain http leaves this machine and its networks only where that was allowed. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
    exchange *x = user;
    const remote_http *h = x->http;
    if (!h->address.is_https && !h->options.is_insecure_allowed &&
        !remote_address_is_near(&to->addr, false)) {
        x->is_far = true;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* --- an exchange ---------------------------------------------------------------------------------------- */

static void put_options(exchange *x, const char *url, const char *body)
{
    const remote_http *h = x->http;
    CURL *c = x->easy;
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)h->options.limits.connect_ms);
    const char *authorities = getenv("SSL_CERT_FILE"); /* as the program curl takes it */
    if (authorities && *authorities) curl_easy_setopt(c, CURLOPT_CAINFO, authorities);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "kvist/" KVIST_VERSION);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->why);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, x);
    curl_easy_setopt(c, CURLOPT_PRIVATE, x);
    curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
    /* What this machine serves is asked of this machine, whatever proxy the environment names. */
    if (h->address.is_loopback) curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    if (body) {
        curl_easy_setopt(c, CURLOPT_POST, 1L);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
        curl_easy_setopt(c, CURLOPT_COPYPOSTFIELDS, body);
    }
}

static void stop_exchange(exchange *x)
{
    if (x->is_added) curl_multi_remove_handle(x->http->multi, x->easy);
    if (x->easy) curl_easy_cleanup(x->easy);
    x->easy = NULL;
    x->is_added = false;
}

static int start_exchange(exchange *x, const char *url, const char *body, base_err *err)
{
    stop_exchange(x);
    base_buf_clear(&x->in);
    x->is_done = x->has_body = x->is_paused = x->is_packed = x->is_far = x->is_too_large = false;
    x->status = 0;
    x->n_headers = 0;
    x->retry_after_s = -1;
    x->result = CURLE_OK;
    x->why[0] = '\0';
    x->begun_ns = x->heard_ns = base_clock_ns();
    x->easy = curl_easy_init();
    if (!x->easy) return base_fail(err, BASE_E_NOMEM, "libcurl cannot be used");
    put_options(x, url, body);
    x->is_added = !curl_multi_add_handle(x->http->multi, x->easy);
    return x->is_added ? 0 : base_fail(err, BASE_E_IO, "libcurl cannot begin a request");
}

/* Lets libcurl work, waiting at most POLL_MS for something to do. */
static int step(remote_http *h, base_err *err)
{
    int running, left;
    CURLMcode code = curl_multi_perform(h->multi, &running);
    for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left));) {
        exchange *x = NULL;
        if (m->msg != CURLMSG_DONE) continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&x);
        x->is_done = true;
        x->result = m->data.result;
        curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->status);
    }
    return code ? base_fail(err, BASE_E_IO, "libcurl: %s", curl_multi_strerror(code)) : 0;
}

static bool is_over(const exchange *x)
{
    return x->over_ns && base_clock_ns() > x->over_ns;
}

static int fail_over(const exchange *x, base_err *err)
{
    return base_fail(err, BASE_E_IO, "%s has not closed its answer", x->http->address.origin);
}

static int too_late(const exchange *x, base_err *err)
{
    const remote_limits *l = &x->http->options.limits;
    const char *origin = x->http->address.origin;
    curl_off_t sent_us = 0; /* from the beginning until the request was on its way; 0: it is not yet */
    curl_easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
    if (!x->has_body && sent_us > 0 && ms_since(x->begun_ns) > (uint64_t)sent_us / 1000 + l->first_ms)
        return base_fail(err, BASE_E_IO,
            "%s took the request and sent nothing for %u s; it may "
            "be loading its model, or computing for somebody else",
            origin, l->first_ms / 1000);
    if (x->has_body && !x->is_paused && ms_since(x->heard_ns) > l->silence_ms)
        return base_fail(err, BASE_E_IO, "%s was silent for %u s in the middle of an answer", origin,
            l->silence_ms / 1000);
    if (is_over(x)) return fail_over(x, err);
    /* A whole answer is short; one that never ends, a byte at a time, is none. */
    const uint64_t whole_ms = (uint64_t)l->connect_ms + l->first_ms + l->silence_ms;
    if (!x->is_stream && ms_since(x->begun_ns) > whole_ms)
        return base_fail(err, BASE_E_IO, "%s has been answering for %llu s without an end", origin,
            (unsigned long long)(whole_ms / 1000));
    return 0;
}

/* That nothing came yet: of an answer that is short as soon as it comes. A stream's prompt may take long. */
static void tell_late(exchange *x)
{
    const remote_http_options *o = &x->http->options;
    uint64_t *told = &x->http->told_late_ns;
    base_buf text = {0};
    if (x->is_stream || x->has_body || !o->waits || ms_since(x->begun_ns) < LATE_MS ||
        (*told && ms_since(*told) < LATE_AGAIN_MS))
        return;
    *told = base_clock_ns();
    base_buf_printf(&text,
        "%s has sent nothing for %u s: it may be loading its model, "
        "or computing for somebody else; waiting for at most %u s",
        x->http->address.origin, LATE_MS / 1000, o->limits.first_ms / 1000);
    o->waits(o->user, text.data);
    base_buf_free(&text);
}

/* Until the exchange is done or, with first_bytes, has some unread bytes of an answer that is no failure. */
static int await(exchange *x, bool first_bytes, base_err *err)
{
    for (;;) {
        if (is_cancelled(x->http)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
        int rc = step(x->http, err);
        if (rc || x->is_done) return rc;
        if (first_bytes && x->in.len) {
            curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->status);
            if (is_good(x)) return 0;
        }
        rc = too_late(x, err);
        if (rc) return rc;
        tell_late(x);
        curl_multi_poll(x->http->multi, NULL, 0, POLL_MS, NULL);
    }
}

/* --- failures ------------------------------------------------------------------------------------------- */

/* What a server says of a failure, on one line, without the key and without what a terminal would obey. */
static void put_said(const exchange *x, base_buf *out)
{
    base_json_doc *doc = NULL;
    base_buf text = {0};
    const char *said = x->in.data ? x->in.data : "";
    if (!base_json_parse(said, x->in.len, &doc, NULL)) {
        const base_json *root = base_json_root(doc), *inner = base_json_get(root, "error");
        said = base_json_str(inner, "message",
            base_json_str(root, "message", base_json_str(root, "error", base_json_str(root, "detail", ""))));
    } else if (*said == '<') {
        said = ""; /* a proxy's page */
    }
    char *open =
        base_xstrdup(said); /* the key goes first: cut in the middle of one, its beginning would stay */
    const size_t n_key = x->http->key ? strlen(x->http->key) : 0;
    for (char *at = open; n_key && (at = strstr(at, x->http->key)); at += n_key) memset(at, '*', n_key);
    const size_t n = strlen(open);
    base_utf8_sanitise(&text, open, n < MAX_SENTENCE ? n : base_utf8_whole(open, MAX_SENTENCE), false);
    free(open);
    if (text.len) base_buf_printf(out, ": %s", text.data);
    base_buf_free(&text);
    base_json_free(doc);
}

static int fail_status(const exchange *x, const char *path, base_err *err)
{
    const char *origin = x->http->address.origin;
    base_buf said = {0};
    put_said(x, &said);
    const char *words = said.data ? said.data : "";
    int rc;
    switch (x->status) {
    case 401:
        rc = x->http->key ? base_fail(err, BASE_E_STATE, "%s does not accept the key%s", origin, words)
                          : base_fail(err, BASE_E_STATE,
                                "%s wants a key: give it in KVIST_API_KEY or in a file with --api-key-file%s",
                                origin, words);
        break;
    case 403: rc = base_fail(err, BASE_E_STATE, "%s refuses this (403)%s", origin, words); break;
    case 404:
        rc = base_fail(
            err, BASE_E_NOT_FOUND, "%s has no %s (404)%s; is the address right?", origin, path, words);
        break;
    case 413:
        rc = base_fail(err, BASE_E_LIMIT, "%s takes no request of this size (413)%s", origin, words);
        break;
    case 429:
        rc = base_fail(err, BASE_E_STATE, "%s has too much to do (429)%s; %s", origin, words,
            x->retry_after_s > 0 ? "it asks to wait" : "try again in a while");
        if (x->retry_after_s > 0)
            rc = base_fail(err, BASE_E_STATE, "%s has too much to do (429)%s; it asks to wait for %lld s",
                origin, words, (long long)x->retry_after_s);
        break;
    case 503: rc = base_fail(err, BASE_E_STATE, "%s is not ready (503)%s", origin, words); break;
    default: rc = base_fail(err, BASE_E_IO, "%s answered with status %ld%s", origin, x->status, words); break;
    }
    base_buf_free(&said);
    return rc;
}

/* libcurl gives up a single line of 100 KiB by itself, in these words. */
static bool has_endless_head(const exchange *x)
{
    return x->n_headers > MAX_HEADERS || (x->result == CURLE_OUT_OF_MEMORY && !x->has_body);
}

static int fail_transfer(const exchange *x, base_err *err)
{
    const char *origin = x->http->address.origin;
    if (x->is_far)
        return base_fail(err, BASE_E_USAGE,
            "%s is reached without encryption and lies outside of this machine and its private networks; "
            "--insecure-http allows that",
            origin);
    if (x->is_packed)
        return base_fail(err, BASE_E_FORMAT, "%s sent a compressed answer, which nobody asked for", origin);
    if (has_endless_head(x))
        return base_fail(err, BASE_E_LIMIT, "%s sent headers of more than %d KiB", origin, MAX_HEADERS >> 10);
    if (x->is_too_large)
        return base_fail(
            err, BASE_E_LIMIT, "%s sent an answer of more than %d MiB", origin, MAX_ANSWER >> 20);
    if (x->result == CURLE_PEER_FAILED_VERIFICATION)
        return base_fail(err, BASE_E_IO,
            "the certificate of %s is refused, and nothing was sent: %.200s. If an authority of "
            "your own signed it, name that one's file in SSL_CERT_FILE",
            origin, *x->why ? x->why : curl_easy_strerror(x->result));
    if (x->result == CURLE_SSL_CACERT_BADFILE)
        return base_fail(err, BASE_E_IO,
            "the certificate of %s cannot be checked, and nothing was sent: %.200s. Install the system's "
            "certificates (ca-certificates), or name a file of yours in SSL_CERT_FILE",
            origin, *x->why ? x->why : curl_easy_strerror(x->result));
    if (x->result == CURLE_COULDNT_CONNECT)
        return base_fail(err, BASE_E_IO, "nothing answers at %s; is the server running?", origin);
    return base_fail(err, BASE_E_IO, "%s: %.200s", origin, *x->why ? x->why : curl_easy_strerror(x->result));
}

/* Nothing of an answer was received, and the next attempt may fare better. */
static bool is_worth_repeating(const exchange *x)
{
    if (x->is_far || x->is_packed || x->is_too_large || has_endless_head(x)) return false;
    if (x->result == CURLE_OK)
        return x->status == 429 || x->status == 502 || x->status == 503 || x->status == 504;
    if (x->has_body) return false;
    switch (x->result) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
    }
}

/* Told once a request, and not of pauses that nobody notices. */
static int pause_before(exchange *x, uint32_t ms, uint64_t patience_ms, const base_err *why, base_err *err)
{
    remote_http *h = x->http;
    if (h->options.waits && ms >= TOLD_PAUSE_MS && !x->is_told_wait) {
        base_buf text = {0};
        x->is_told_wait = true;
        base_buf_printf(&text, "%s (asked again, for at most %llu s)", why->msg,
            (unsigned long long)(patience_ms / 1000));
        h->options.waits(h->options.user, text.data);
        base_buf_free(&text);
    }
    for (uint64_t begun = base_clock_ns(); ms_since(begun) < ms;) {
        if (is_cancelled(h)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
        uint64_t left = ms - ms_since(begun);
        usleep((useconds_t)(left < POLL_MS ? left : POLL_MS) * 1000);
    }
    return 0;
}

/* A redirect's target, when it is of this origin; the caller frees. */
static int redirect(exchange *x, char **ret, base_err *err)
{
    char *url = NULL;
    remote_address to = {0};
    curl_easy_getinfo(x->easy, CURLINFO_REDIRECT_URL, &url);
    if (!url) return base_fail(err, BASE_E_FORMAT, "%s redirects to nowhere", x->http->address.origin);
    char *copy = base_xstrdup(url);
    char *query = strpbrk(url, "?#");
    if (query) *query = '\0';
    int rc = remote_address_parse(url, &to, NULL);
    if (rc) /* its words hold what the server said */
        base_fail(err, rc, "%s redirects to what is no address of a server", x->http->address.origin);
    if (!rc && strcmp(to.origin, x->http->address.origin))
        rc = base_fail(err, BASE_E_STATE,
            "%s redirects to %.100s, which is another server: nothing "
            "was sent there; give that address if you trust it",
            x->http->address.origin, to.origin);
    remote_address_free(&to);
    if (rc)
        free(copy);
    else
        *ret = copy;
    return rc;
}

/*
 * Sends a request, again and again where nothing came back, until its first bytes (stream) or all of its
 * answer are there.
 */
static int run(exchange *x, const char *path, const char *body, base_err *err)
{
    remote_http *h = x->http;
    base_buf target = {0};
    base_buf_printf(&target, "%s%s", h->address.base, path);
    char *url = base_buf_take(&target);
    const uint64_t begun = base_clock_ns();
    uint32_t pause = FIRST_PAUSE_MS, redirects = 0;
    int rc;
    for (;;) {
        base_err why = {0};
        rc = start_exchange(x, url, body, err);
        if (!rc) rc = await(x, x->is_stream, err);
        /* Of a stream that broke behind its first bytes these are told before the failure is. */
        if (rc || (is_good(x) && (x->result == CURLE_OK || (x->is_stream && x->in.len)))) break;
        const bool moved = x->result == CURLE_OK && x->status > 300 && x->status < 309 && x->status != 304;
        if (moved && redirects++ < MAX_REDIRECTS) {
            char *to = NULL;
            rc = redirect(x, &to, err);
            if (rc) break;
            free(url);
            url = to;
            continue;
        }
        rc = x->result == CURLE_OK ? fail_status(x, path, &why) : fail_transfer(x, &why);
        uint32_t wait = pause;
        if (x->retry_after_s >= 0)
            wait = x->retry_after_s < 86400 ? (uint32_t)x->retry_after_s * 1000 : 86400000;
        /* A model that is being loaded takes its time. */
        const uint64_t patience =
            x->status == 503 ? h->options.limits.first_ms : h->options.limits.give_up_ms;
        if (!is_worth_repeating(x) || ms_since(begun) + wait > patience) {
            if (err) *err = why;
            break;
        }
        rc = pause_before(x, wait, patience, &why, err);
        if (rc) break;
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
    free(url);
    return rc;
}

/* --- the interface -------------------------------------------------------------------------------------- */

static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool names_proxy(void)
{
    static const char *const names[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) && *getenv(names[i])) return true;
    return false;
}

int remote_http_open(remote_http **ret, const remote_http_options *options, base_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_curl);
    remote_http *h = base_xcalloc(1, sizeof *h);
    int rc = remote_address_parse(options->url, &h->address, err);
    h->options = *options;
    for (const char *c = options->key; !rc && c && *c; c++)
        if (*c <= ' ' || *c > '~')
            rc = base_fail(err, BASE_E_USAGE, "the key holds a blank or a control character");
    const remote_address *a = &h->address;
    if (!rc && !a->is_https && !options->is_insecure_allowed &&
        ((a->is_literal && !a->is_private) || (!a->is_private && names_proxy())))
        rc = base_fail(err, BASE_E_USAGE,
            "%s would be reached without encryption%s; use https, or allow it with --insecure-http",
            a->origin, a->is_literal ? "" : " by way of a proxy");
    if (!rc) h->multi = curl_multi_init();
    if (!rc && !h->multi) rc = base_fail(err, BASE_E_NOMEM, "libcurl cannot be used");
    if (!rc) {
        h->headers = curl_slist_append(NULL, "Content-Type: application/json");
        h->headers = curl_slist_append(h->headers, "Accept: application/json, text/event-stream");
        h->headers = curl_slist_append(h->headers, "Expect:");
        if (options->key && *options->key) {
            base_buf line = {0};
            base_buf_printf(&line, "Authorization: Bearer %s", options->key);
            h->key = base_xstrdup(options->key);
            h->headers = curl_slist_append(h->headers, line.data);
            base_buf_free(&line);
        }
        *ret = h;
        return 0;
    }
    remote_http_close(h);
    return rc;
}

void remote_http_close(remote_http *h)
{
    if (!h) return;
    remote_http_stop(h);
    if (h->multi) curl_multi_cleanup(h->multi);
    curl_slist_free_all(h->headers);
    remote_address_free(&h->address);
    free(h->key);
    free(h);
}

void remote_http_set_waits(remote_http *h, void (*waits)(void *user, const char *sentence), void *user)
{
    h->options.waits = waits;
    h->options.user = user;
}

const remote_address *remote_http_address(const remote_http *h)
{
    return &h->address;
}

int remote_http_ask(
    remote_http *h, const char *path, const char *body, long *ret_status, base_buf *ret, base_err *err)
{
    exchange x = {.http = h, .most = MAX_ANSWER};
    int rc = run(&x, path, body, err);
    if (ret_status) *ret_status = x.status;
    if (x.in.len) base_buf_add(ret, x.in.data, x.in.len);
    stop_exchange(&x);
    base_buf_free(&x.in);
    return rc;
}

int remote_http_send(remote_http *h, const char *path, const char *body, long *ret_status, base_err *err)
{
    remote_http_stop(h);
    h->stream = base_xcalloc(1, sizeof *h->stream);
    *h->stream = (exchange){.http = h, .most = MAX_WAITING, .is_stream = true};
    int rc = run(h->stream, path, body, err);
    if (ret_status) *ret_status = h->stream->status;
    if (rc) remote_http_stop(h);
    return rc;
}

int remote_http_read(remote_http *h, base_buf *ret, bool *ret_ended, base_err *err)
{
    exchange *x = h->stream;
    *ret_ended = true;
    if (!x) return 0;
    if (is_over(x)) return fail_over(x, err);
    if (!x->in.len && !x->is_done) {
        const remote_limits *l = &h->options.limits;
        if (x->waited_ns / 1000000 > l->alive_ms)
            return base_fail(err, BASE_E_STATE,
                "%s has kept the connection alive for %llu s and sent nothing of an answer",
                h->address.origin, (unsigned long long)(x->waited_ns / 1000000000));
        const uint64_t begun = base_clock_ns();
        int rc = await(x, true, err);
        /* A process that was stopped for an hour has not waited for an hour. */
        const uint64_t waited = base_clock_ns() - begun, most = (uint64_t)l->silence_ms * 1000000;
        x->waited_ns += waited < most ? waited : most;
        if (rc) return rc;
    }
    if (x->in.len) {
        base_buf_add(ret, x->in.data, x->in.len);
        base_buf_clear(&x->in);
    }
    if (x->is_paused) {
        x->is_paused = false;
        x->heard_ns = base_clock_ns();
        curl_easy_pause(x->easy, CURLPAUSE_CONT);
    }
    *ret_ended = x->is_done;
    return x->is_done && x->result != CURLE_OK ? fail_transfer(x, err) : 0;
}

void remote_http_progress(remote_http *h)
{
    if (h->stream) h->stream->waited_ns = 0;
}

void remote_http_finish(remote_http *h, uint32_t ms)
{
    if (h->stream) h->stream->over_ns = base_clock_ns() + (uint64_t)ms * 1000000;
}

void remote_http_stop(remote_http *h)
{
    if (!h->stream) return;
    stop_exchange(h->stream);
    base_buf_free(&h->stream->in);
    free(h->stream);
    h->stream = NULL;
}
