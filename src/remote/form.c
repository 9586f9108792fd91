#include "remote/form.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Words that no template writes and none changes. */
static const char *const marks[] = {"KVISTsystem", "KVISTuser", "KVISTanswer", "KVISTagain"};
static const model_role roles[] = {MODEL_ROLE_SYSTEM, MODEL_ROLE_USER, MODEL_ROLE_ASSISTANT, MODEL_ROLE_USER};

typedef struct asking {
    remote_render_fn *render;
    void *user;
} asking;

/* Marked messages [from, to) of the history above. */
static int ask(const asking *a, uint32_t from, uint32_t to, bool open, base_buf *out, base_err *err)
{
    remote_message m[4];
    for (uint32_t i = from; i < to; i++) m[i - from] = (remote_message){roles[i], marks[i], strlen(marks[i])};
    base_buf_clear(out);
    base_buf_puts(out, "");
    return a->render(a->user, m, to - from, open, out, err);
}

/* The text between two marks (NULL: the text's beginning, or its end); NULL when one is not there. */
static char *between(const base_buf *text, const char *before, const char *behind)
{
    const char *from = before ? strstr(text->data, before) : text->data;
    if (!from) return NULL;
    if (before) from += strlen(before);
    const char *to = behind ? strstr(from, behind) : from + strlen(from);
    return to ? base_xstrndup(from, (size_t)(to - from)) : NULL;
}

static bool begins(const char *text, const char *with)
{
    return text && with && !strncmp(text, with, strlen(with));
}

/* text without what it ends with; NULL: it does not. */
static char *without_end(const char *text, const char *end)
{
    const size_t n = text ? strlen(text) : 0, m = strlen(end);
    return text && n >= m && !strcmp(text + n - m, end) ? base_xstrndup(text, n - m) : NULL;
}

/* How much of it begins a text and no message. */
static size_t length_of_start(const char *begin)
{
    static const char *const texts[] = {"<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>",
        "<\xef\xbd\x9c"
        "begin\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
        "[BOS]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (begins(begin, texts[i])) return strlen(texts[i]);
    return 0;
}

/* What begins a text stands in front of the first message only. */
static void split_start(remote_form *f)
{
    char *begin = f->begin[MODEL_ROLE_SYSTEM];
    const size_t n = length_of_start(begin);
    f->start = base_xstrndup(begin, n);
    f->begin[MODEL_ROLE_SYSTEM] = base_xstrdup(begin + n);
    free(begin);
}

/*
 * A tool's result in the form that the family of the template was trained on; the same as for a local model
 * (model/text/template.c).
 */
static void put_tool(remote_form *f)
{
    const char *begin = f->begin[MODEL_ROLE_USER], *end = f->end[MODEL_ROLE_USER], *user;
    base_buf opening = {0}, closing = {0};
    if (strstr(begin, "<|im_start|>")) {
        base_buf_printf(&opening, "%s<tool_response>\n", begin);
        base_buf_printf(&closing, "\n</tool_response>%s", end);
    } else if (strstr(begin, "<|start_header_id|>") && (user = strstr(begin, "user"))) {
        base_buf_printf(&opening, "%.*sipython%s", (int)(user - begin), begin, user + 4);
        base_buf_puts(&closing, end);
    } else {
        base_buf_printf(&opening, "%sResult:\n", begin);
        base_buf_puts(&closing, end);
    }
    f->begin[MODEL_ROLE_TOOL] = base_buf_take(&opening);
    f->end[MODEL_ROLE_TOOL] = base_buf_take(&closing);
}

/* The whole history as pieces give it against the template's own; says where they part. */
static void compare(remote_form *f, const base_buf *whole)
{
    base_buf pieces = {0}, text = {0};
    base_buf_puts(&pieces, f->start);
    for (int i = 0; i < 4; i++)
        base_buf_printf(&pieces, "%s%s%s", f->begin[roles[i]], marks[i], f->end[roles[i]]);
    base_buf_puts(&pieces, f->begin[MODEL_ROLE_ASSISTANT]);
    size_t at = 0;
    while (at < pieces.len && at < whole->len && pieces.data[at] == whole->data[at]) at++;
    if (at < pieces.len || at < whole->len) {
        const size_t from = at > 12 ? at - 12 : 0;
        base_buf_printf(
            &text, "\"%.40s\" where kvist writes \"%.40s\"", whole->data + from, pieces.data + from);
        f->differs = base_buf_take(&text);
    }
    base_buf_free(&pieces);
}

/*
 * Where an engine renders only with what begins an answer: the same without it. Behind the user's message stand its
 * end and the answer's beginning, behind an answer its end and the user's: they share how a message ends and how one
 * begins, and the first message's beginning says what of that is the latter.
 */
static bool close_open(const char *first, const base_buf *open, const base_buf *whole, base_buf *closed)
{
    char *to_answer = between(whole, marks[1], marks[2]), *to_user = between(whole, marks[2], marks[3]);
    char *begin = between(open, NULL, first), *rest = between(open, marks[1], NULL);
    size_t n = 0;
    while (to_answer && to_user && to_answer[n] && to_answer[n] == to_user[n]) n++;
    for (size_t k = 0; begin && k < n; k++) {
        const size_t m = n - k;
        if (strncmp(begin + length_of_start(begin), to_answer + k, m)) continue;
        n = k;
        break;
    }
    const bool found = n && rest && !strncmp(rest, to_answer, n) && rest[n];
    base_buf_clear(closed);
    if (found) base_buf_add(closed, open->data, open->len - strlen(rest) + n);
    free(to_answer);
    free(to_user);
    free(begin);
    free(rest);
    return found;
}

/* The user's and the answer's pieces out of histories that begin with message `first`. */
static bool take_apart(
    remote_form *f, const char *first, const base_buf *closed, const base_buf *open, const base_buf *whole)
{
    char *joint = between(whole, marks[2], marks[3]);
    bool good = false;
    f->end[MODEL_ROLE_USER] = between(closed, marks[1], NULL);
    f->begin[MODEL_ROLE_SYSTEM] = between(closed, NULL, first);
    if (joint && f->end[MODEL_ROLE_USER] && f->begin[MODEL_ROLE_SYSTEM] && begins(open->data, closed->data)) {
        f->begin[MODEL_ROLE_ASSISTANT] = base_xstrdup(open->data + strlen(closed->data));
        split_start(f);
        if (first == marks[0]) {
            char *gap = between(closed, marks[0], marks[1]);
            const size_t n = strlen(f->end[MODEL_ROLE_USER]);
            if (n && begins(gap, f->end[MODEL_ROLE_USER]) && gap[n]) {
                f->begin[MODEL_ROLE_USER] = base_xstrdup(gap + n);
                f->end[MODEL_ROLE_SYSTEM] = base_xstrndup(gap, n);
            }
            free(gap);
        } else { /* no system messages: they are turns of the user */
            f->begin[MODEL_ROLE_USER] = base_xstrdup(f->begin[MODEL_ROLE_SYSTEM]);
            f->end[MODEL_ROLE_SYSTEM] = base_xstrdup(f->end[MODEL_ROLE_USER]);
        }
        if (f->begin[MODEL_ROLE_USER])
            f->end[MODEL_ROLE_ASSISTANT] = without_end(joint, f->begin[MODEL_ROLE_USER]);
        good =
            f->end[MODEL_ROLE_ASSISTANT] && *f->end[MODEL_ROLE_ASSISTANT] && *f->begin[MODEL_ROLE_ASSISTANT];
    }
    free(joint);
    return good;
}

int remote_form_find(remote_form *ret, remote_render_fn *render, void *user, base_err *err)
{
    const asking a = {render, user};
    base_buf closed = {0}, open = {0}, whole = {0};
    bool found = false;
    int rc = 0;
    for (uint32_t first = 0; first < 2 && !found && !rc; first++) {
        remote_form f = {0};
        base_err why = {0};
        rc = ask(&a, first, 2, true, &open, &why);
        if (!rc) rc = ask(&a, first, 4, true, &whole, &why);
        if (!rc) rc = ask(&a, first, 2, false, &closed, &why);
        if (rc == BASE_E_UNSUPPORTED && close_open(marks[first], &open, &whole, &closed)) rc = 0;
        if (!rc) found = take_apart(&f, marks[first], &closed, &open, &whole);
        if (rc == BASE_E_CANCELLED && err) *err = why;
        if (rc && rc != BASE_E_CANCELLED) rc = 0; /* a template may refuse a system message, or all of it */
        if (found) {
            put_tool(&f);
            if (first == 0) compare(&f, &whole);
            *ret = f;
        } else {
            remote_form_free(&f);
        }
    }
    if (!rc && !found)
        rc = base_fail(err, BASE_E_UNSUPPORTED, "its template does not write a history message by message");
    base_buf_free(&closed);
    base_buf_free(&open);
    base_buf_free(&whole);
    return rc;
}

void remote_form_free(remote_form *f)
{
    for (int role = 0; role < REMOTE_N_ROLES; role++) {
        free(f->begin[role]);
        free(f->end[role]);
    }
    free(f->start);
    free(f->differs);
    *f = (remote_form){0};
}
