/* A line, an object, two members (contract: input.h). */
#include "agent/input.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"

enum { LOOK_MS = 50 };

void agent_input_free(agent_input *i)
{
    free(i->text);
    free(i->id);
    *i = (agent_input){0};
}

static int take_member(const base_json *m, agent_input *ret, base_err *err)
{
    const bool is_text = !strcmp(m->key, "text");
    char **to = is_text ? &ret->text : !strcmp(m->key, "id") ? &ret->id : NULL;
    if (!to)
        return base_fail(err, BASE_E_FORMAT, "no member is called \"%.40s\": text and id are known", m->key);
    if (*to) return base_fail(err, BASE_E_FORMAT, "%s stands there twice", m->key);
    if (m->type != BASE_JSON_STRING) return base_fail(err, BASE_E_FORMAT, "%s has to be a string", m->key);
    if (memchr(m->string, 0, m->string_len))
        return base_fail(err, BASE_E_FORMAT, "%s holds a zero byte: it is not text", m->key);
    *to = base_xstrdup(m->string);
    if (is_text && !(*to)[strspn(*to, " \t\r\n")])
        return base_fail(err, BASE_E_FORMAT, "text is empty: say what should be done");
    return BASE_OK;
}

int agent_input_parse(const char *line, size_t n, agent_input *ret, base_err *err)
{
    base_json_doc *doc = NULL;
    *ret = (agent_input){0};
    int rc = base_json_parse(line, n, &doc, err);
    if (rc) return err ? err->code = BASE_E_FORMAT : rc;
    const base_json *root = base_json_root(doc);
    if (root->type != BASE_JSON_OBJECT)
        rc = base_fail(err, BASE_E_FORMAT, "a request is an object: {\"text\":\"...\"}");
    for (const base_json *m = rc ? NULL : root->first; m && !rc; m = m->next) rc = take_member(m, ret, err);
    if (!rc && !ret->text) rc = base_fail(err, BASE_E_FORMAT, "there is no text in it: {\"text\":\"...\"}");
    if (rc) agent_input_free(ret);
    base_json_free(doc);
    return rc;
}

/*
 * poll ends with a signal whatever its handler restarts: nobody waits for a line after Ctrl+C. A signal just in
 * front of it ends nothing, so what a handler sets is looked at now and then.
 */
static bool read_more(agent_lines *l)
{
    char bytes[65536];
    struct pollfd readable = {.fd = l->fd, .events = POLLIN};
    const int n_ready = poll(&readable, 1, l->stop ? LOOK_MS : -1);
    if (n_ready < 0 || (l->stop && atomic_load(l->stop))) return false;
    if (n_ready == 0) return true;
    const ssize_t n = read(l->fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (n > 0) base_buf_add(&l->bytes, bytes, (size_t)n);
    l->has_ended = n <= 0;
    return true;
}

bool agent_lines_take(agent_lines *l, base_buf *ret, base_err *err)
{
    for (;;) {
        const char *begin = l->bytes.data, *end = begin ? memchr(begin, '\n', l->bytes.len) : NULL;
        const size_t n = end ? (size_t)(end - begin) : l->bytes.len;
        if (n > AGENT_INPUT_MOST) {
            l->number++;
            l->has_ended = true;
            base_buf_clear(&l->bytes);
            base_fail(err, BASE_E_LIMIT, "it has more than 1 MiB; what follows was not read");
            return true;
        }
        if (!end && !l->has_ended) {
            if (!read_more(l)) return false;
            continue;
        }
        if (!end && !n) return false;
        base_buf_clear(ret);
        base_buf_add(ret, begin, n);
        const size_t used = n + (end != NULL);
        memmove(l->bytes.data, l->bytes.data + used, l->bytes.len - used);
        l->bytes.len -= used;
        l->number++;
        if (strspn(ret->data, " \t\r") < n)
            return true; /* ends at a zero byte too: then it is no blank line */
    }
}

void agent_lines_free(agent_lines *l)
{
    base_buf_free(&l->bytes);
}
