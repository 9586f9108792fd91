/* Resolves, asks, remembers (contract: endpoint.h). */
#include "cmd/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cmd/grants.h"

/* The first line of a text, without blanks around it. */
static char *first_line(const char *text)
{
    text += strspn(text, " \t\r\n");
    size_t n = strcspn(text, "\r\n");
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t')) n--;
    return base_xstrndup(text, n);
}

/* A key that others may read is theirs too. */
static int read_key(const char *path, char **ret, base_err *err)
{
    struct stat st;
    base_buf text = {0};
    if (stat(path, &st)) return base_fail_sys(err, "--api-key-file %s", path);
    if (st.st_uid != getuid() && st.st_uid != 0)
        return base_fail(err, BASE_E_USAGE, "--api-key-file %s belongs to somebody else", path);
    if (S_ISREG(st.st_mode) && st.st_mode & 077)
        return base_fail(err, BASE_E_USAGE, "--api-key-file %s can be read by others: chmod 600 it", path);
    int rc = base_fs_read_given(path, 16384, &text, err);
    if (!rc) *ret = first_line(text.data ? text.data : "");
    if (text.data) memset(text.data, 0, text.len);
    base_buf_free(&text);
    if (!rc && !**ret) rc = base_fail(err, BASE_E_USAGE, "--api-key-file %s is empty", path);
    return rc;
}

int endpoint_resolve(const endpoint_words *words, const char *served, endpoint_choice *ret, base_err *err)
{
    const char *from_env = getenv("KVIST_ENDPOINT"), *key = getenv("KVIST_API_KEY");
    *ret = (endpoint_choice){.is_chosen = false};
    ret->url = base_xstrdup(!words->is_typed && from_env && *from_env ? from_env : words->url);
    if (!ret->url || !*ret->url || !strcmp(ret->url, "off")) return BASE_OK;
    remote_address address;
    int rc = remote_address_parse(ret->url, &address, err);
    if (rc) return rc;
    remote_address_free(&address);
    ret->is_chosen = true;
    if (words->key_file)
        rc = read_key(words->key_file, &ret->key, err);
    else if (key && *key)
        ret->key = base_xstrdup(key);
    ret->options = (remote_endpoint_options){.http = {.url = ret->url,
                                                 .key = ret->key,
                                                 .is_insecure_allowed = words->is_insecure_allowed,
                                                 .limits = REMOTE_LIMITS_DEFAULTS},
        .model = served,
        .events = words->events,
        .vocabulary = words->vocabulary};
    ret->options.http.limits.give_up_ms = (uint32_t)words->wait_s * 1000;
    return rc;
}

void endpoint_choice_free(endpoint_choice *c)
{
    if (c->key) memset(c->key, 0, strlen(c->key));
    free(c->key);
    free(c->url);
    *c = (endpoint_choice){.is_chosen = false};
}

int endpoint_ask(const endpoint_choice *c, const endpoint_words *words, const char *dir, base_err *err)
{
    remote_address to = {0};
    if (!c->is_chosen) return BASE_OK;
    int rc = remote_address_parse(c->url, &to, err);
    if (rc || to.is_loopback) {
        if (!rc) remote_address_free(&to);
        return rc;
    }
    char *tree = grants_tree(dir);
    base_buf question = {0};
    base_buf_puts(&question, "kvist will send to\n  ");
    grants_show(&question, to.origin);
    base_buf_puts(&question, "\nwhat the model is to read of\n  ");
    grants_show(&question, tree);
    base_buf_printf(&question,
        "\nYour requests, excerpts and files that they need, changes, and "
        "what commands print%s. What git ignores, .env files and keys\n"
        "are not put in front of a request. Allow that, now and later? [y/N] ",
        to.is_https ? "" : ", WITHOUT ENCRYPTION");
    if (grants_can_ask())
        rc = grants_ask(AGENT_APPROVAL_ENDPOINT, tree, to.origin, question.data, err);
    else if (!words->is_typed)
        rc = base_fail(err, BASE_E_USAGE,
            "%s is not this machine and nobody can be asked "
            "here: name it with --endpoint on the command line",
            to.origin);
    if (rc == BASE_E_DENIED)
        rc = base_fail(
            err, BASE_E_DENIED, "--endpoint %s: not allowed for this tree; nothing was sent", to.origin);
    base_buf_free(&question);
    free(tree);
    remote_address_free(&to);
    return rc;
}
