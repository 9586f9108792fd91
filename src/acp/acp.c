/* Requests to the worker, its messages to the client (contract: acp.h). */
#include "acp/acp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "acp/rpc.h"
#include "acp/update.h"
#include "agent/log/log.h"
#include "agent/worker.h"
#include "base/mem.h"
#include "base/utf8.h"

/* A message of the client that waits: for the session's id, or for the turn to end. */
typedef struct waiting {
    base_json_doc *doc;
    const base_json *id;
} waiting;

/* Requests for a new session that may wait for the same one. */
#define ACP_MOST_OPENING 8

typedef struct acp {
    const acp_options *options;
    base_lines lines;
    agent_worker *worker; /* NULL: no session is open */
    agent_session *opened;
    agent_session_options session; /* what it was opened with */
    char *cwd, *resume;            /* strings of it */
    acp_teller teller;
    /* they get the session that is being opened; the first is set, or none */
    waiting opening[ACP_MOST_OPENING];
    waiting prompt;
    base_buf text;   /* of the prompt, which goes to the worker once the model is there */
    long permission; /* id of the question that waits; 0: none */
    long n_calls;    /* requests of ours so far */
    agent_mode mode; /* of the open session, as far as the client knows */
    bool has_failed; /* opening did, before the session had its id */
    bool is_loading; /* the session has its id and the client knows it; the model is not there yet */
    char *failure;   /* why it never will be: the answer to every prompt; NULL: it may */
    bool knows_compaction;
} acp;

static void waiting_free(waiting *w)
{
    base_json_free(w->doc);
    *w = (waiting){0};
}

/* ---- modes and commands ---- */

static const char *const mode_about[] = {
    [AGENT_MODE_PLAN] = "Only reads",
    [AGENT_MODE_ASK] = "Asks before it writes files and runs commands",
    [AGENT_MODE_EDITS] = "Writes files, asks before it runs commands",
    [AGENT_MODE_ALL] = "Asks nothing; commands run confined",
};

static void put_modes(const acp *c, base_buf *out)
{
    base_json_put_member(out, "modes", "{");
    base_json_put_member_str(out, "currentModeId", agent_mode_word(c->mode));
    base_json_put_member(out, "availableModes", "[");
    for (int m = AGENT_MODE_PLAN; m <= AGENT_MODE_ALL; m++) {
        base_buf_puts(out, m ? ",{" : "{");
        base_json_put_member_str(out, "id", agent_mode_word((agent_mode)m));
        base_json_put_member_str(out, "name", agent_mode_word((agent_mode)m));
        base_json_put_member_str(out, "description", mode_about[m]);
        base_buf_putc(out, '}');
    }
    base_buf_puts(out, "]}");
}

/* Those that change which session is open are the client's to give. */
static bool is_of_client(const char *command)
{
    static const char *const names[] = {"new", "compact", "sessions", "quit", "help"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(command, names[i])) return true;
    return false;
}

static void tell_commands(const acp *c)
{
    uint32_t n;
    const agent_command *table = agent_commands(&n);
    base_buf fields = {0};
    base_json_put_member(&fields, "availableCommands", "[");
    for (uint32_t i = 0; i < n; i++) {
        if (is_of_client(table[i].name)) continue;
        base_buf_puts(&fields, fields.data[fields.len - 1] == '[' ? "{" : ",{");
        base_json_put_member_str(&fields, "name", table[i].name);
        base_json_put_member_str(&fields, "description", table[i].about);
        if (*table[i].arguments) {
            base_json_put_member(&fields, "input", "{");
            base_json_put_member_str(&fields, "hint", table[i].arguments);
            base_buf_putc(&fields, '}');
        }
        base_buf_putc(&fields, '}');
    }
    char **skills = agent_worker_skills(c->worker);
    for (char **s = skills; *s; s += 2) {
        base_buf_puts(&fields, fields.data[fields.len - 1] == '[' ? "{" : ",{");
        base_json_put_member_str(&fields, "name", s[0]);
        base_json_put_member_str(&fields, "description", s[1]);
        base_json_put_member(&fields, "input", "{\"hint\":\"[WORDS]\"}}");
        free(s[0]);
        free(s[1]);
    }
    free(skills);
    base_buf_putc(&fields, ']');
    acp_send_update(&c->teller, "available_commands_update", fields.data);
    base_buf_free(&fields);
}

/* ---- opening and closing ---- */

static int open_on_thread(void *user, const agent_host *host, atomic_bool *cancel,
    void (*progress)(void *host_user, double share, const char *what), agent **ret, base_err *err)
{
    acp *c = user;
    int rc = agent_session_open(&c->opened, &c->session, host, cancel, err);
    if (!rc) *ret = agent_session_agent(c->opened);
    return rc;
}

static void close_session(acp *c)
{
    agent_worker_stop(c->worker);
    agent_session_close(c->opened);
    free(c->cwd);
    free(c->resume);
    free(c->failure);
    acp_teller_free(&c->teller);
    c->cwd = c->resume = c->failure = NULL;
    c->worker = NULL;
    c->opened = NULL;
    c->has_failed = c->is_loading = false;
    c->permission = 0;
}

/* resume NULL: a new session. is_shown: the client gets what was said before. */
static int open_session(acp *c, const char *cwd, const char *resume, bool is_shown, base_err *err)
{
    struct stat st;
    if (!cwd || cwd[0] != '/' || stat(cwd, &st) || !S_ISDIR(st.st_mode))
        return base_fail(err, BASE_E_USAGE, "cwd has to be an absolute path of a folder%s%s",
            cwd ? ", not " : "", cwd ? cwd : "");
    close_session(c);
    int rc = c->options->prepare(c->options->user, cwd, &c->session, err);
    if (rc) return rc;
    c->cwd = base_xstrdup(cwd);
    c->resume = resume ? base_xstrdup(resume) : NULL;
    c->session.dir = c->cwd;
    c->session.resume = c->resume;
    c->session.show_log = is_shown;
    c->mode = c->session.mode;
    c->teller.root = base_xstrdup(cwd);
    c->teller.session = base_xstrdup(resume ? resume : "");
    c->teller.knows_compaction = c->knows_compaction;
    c->teller.is_replay = is_shown;
    rc = agent_worker_start(&c->worker, open_on_thread, c, err);
    if (rc) close_session(c);
    return rc;
}

static bool is_open(const acp *c, const char *session)
{
    return c->worker && session && !strcmp(c->teller.session, session);
}

/* ---- methods: each answers, or keeps the request as waiting ---- */

typedef struct request {
    const char *method;
    const base_json *id, *params; /* id NULL: a notification */
    base_json_doc **doc;          /* who keeps it sets this to NULL */
} request;

static void answer_code(const request *r, int code, const char *sentence)
{
    if (r->id) acp_send_error(r->id, code, sentence);
}

static void fail(const request *r, const base_err *err)
{
    answer_code(r,
        err->code == BASE_E_USAGE       ? ACP_INVALID_PARAMS
        : err->code == BASE_E_NOT_FOUND ? ACP_NOT_FOUND
                                        : ACP_INTERNAL_ERROR,
        err->msg);
}

static void keep(waiting *w, const request *r)
{
    *w = (waiting){*r->doc, r->id};
    *r->doc = NULL;
}

static void do_initialize(acp *c, const request *r)
{
    const base_json *session = base_json_get(base_json_get(r->params, "clientCapabilities"), "session");
    const base_json *compaction = base_json_get(session, "compaction");
    c->knows_compaction = compaction && compaction->type == BASE_JSON_OBJECT;
    base_buf out = {0};
    base_buf_puts(&out, "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,"
                        "\"promptCapabilities\":{\"image\":false,\"audio\":false,\"embeddedContext\":true},"
                        "\"mcpCapabilities\":{\"http\":false,\"sse\":false},"
                        "\"sessionCapabilities\":{\"list\":{},\"resume\":{},\"close\":{},\"delete\":{}}},"
                        "\"agentInfo\":{\"name\":\"kvist\",\"title\":\"kvist\"");
    base_json_put_member_str(&out, "version", c->options->version);
    base_buf_puts(&out, "},\"authMethods\":[]}");
    acp_send_result(r->id, out.data);
    base_buf_free(&out);
}

static bool is_busy(const acp *c, const request *r)
{
    base_err err = {0};
    if (!c->prompt.doc && !c->opening->doc) return false;
    if (c->prompt.doc)
        base_fail(
            &err, BASE_E_STATE, "a request is running in session %s; cancel it first", c->teller.session);
    else
        base_fail(&err, BASE_E_STATE, "a session is being opened; ask again once that is answered");
    fail(r, &err);
    return true;
}

static void begin_opening(acp *c, const request *r, const char *resume, bool is_shown)
{
    base_err err = {0};
    if (is_busy(c, r)) return;
    const char *cwd = base_json_str(r->params, "cwd", NULL);
    if (open_session(c, cwd, resume, is_shown, &err))
        fail(r, &err);
    else
        keep(c->opening, r);
}

/*
 * An editor that connects when a chat opens, and again because somebody asks before that was answered (CodeCompanion), means one
 * session: only one is open at a time, so a second would close the first under the words that are on their way to it.
 */
static bool joins_opening(acp *c, const request *r)
{
    const char *cwd = base_json_str(r->params, "cwd", "");
    size_t n = 0;
    if (!c->opening->doc || c->resume || strcmp(cwd, c->cwd)) return false;
    while (n < ACP_MOST_OPENING && c->opening[n].doc) n++;
    if (n == ACP_MOST_OPENING) return false;
    keep(&c->opening[n], r);
    return true;
}

static void do_new(acp *c, const request *r)
{
    if (!joins_opening(c, r)) begin_opening(c, r, NULL, false);
}

/* The session must be there before the one that is open is closed for it. */
static bool is_known(const request *r, const char *session)
{
    agent_log *log = NULL;
    char *id = NULL;
    base_err err = {0};
    int rc = session && *session ? agent_log_open(&log, NULL, true, &err)
                                 : base_fail(&err, BASE_E_USAGE, "sessionId is missing");
    if (!rc) rc = agent_log_find(log, session, NULL, &id, &err);
    if (!rc && strcmp(id, session)) rc = base_fail(&err, BASE_E_NOT_FOUND, "there is no session %s", session);
    free(id);
    agent_log_close(log);
    if (rc) fail(r, &err);
    return !rc;
}

static void do_load(acp *c, const request *r)
{
    const char *session = base_json_str(r->params, "sessionId", NULL);
    if (!is_busy(c, r) && is_known(r, session)) begin_opening(c, r, session, true);
}

static void do_resume(acp *c, const request *r)
{
    const char *session = base_json_str(r->params, "sessionId", NULL);
    if (!is_busy(c, r) && is_known(r, session)) begin_opening(c, r, session, false);
}

static void do_close(acp *c, const request *r)
{
    if (is_open(c, base_json_str(r->params, "sessionId", NULL))) {
        if (is_busy(c, r)) return;
        close_session(c);
    }
    acp_send_result(r->id, "{}");
}

static void do_delete(acp *c, const request *r)
{
    const char *session = base_json_str(r->params, "sessionId", NULL);
    agent_log *log = NULL;
    base_err err = {0};
    if (is_busy(c, r) || !is_known(r, session)) return;
    if (is_open(c, session)) close_session(c);
    int rc = agent_log_open(&log, NULL, false, &err);
    if (!rc) rc = agent_log_delete(log, session, &err);
    agent_log_close(log);
    if (rc)
        fail(r, &err);
    else
        acp_send_result(r->id, "{}");
}

typedef struct listing {
    base_buf *out;
    const char *cwd; /* NULL: all trees */
} listing;

static void put_session(void *user, const agent_log_row *row)
{
    const listing *l = user;
    if (row->is_what_if || !row->root || row->root[0] != '/' || (l->cwd && strcmp(l->cwd, row->root))) return;
    char when[32] = "";
    const time_t seconds = (time_t)(row->updated_ms / 1000);
    struct tm utc;
    base_buf_puts(l->out, l->out->data[l->out->len - 1] == '[' ? "{" : ",{");
    base_json_put_member_str(l->out, "sessionId", row->id);
    base_json_put_member_str(l->out, "cwd", row->root);
    if (row->title && *row->title) base_json_put_member_str(l->out, "title", row->title);
    if (gmtime_r(&seconds, &utc) && strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc))
        base_json_put_member_str(l->out, "updatedAt", when);
    base_buf_putc(l->out, '}');
}

static void do_list(acp *c, const request *r)
{
    agent_log *log = NULL;
    base_err err = {0};
    base_buf out = {0};
    base_buf_puts(&out, "{\"sessions\":[");
    listing l = {&out, base_json_str(r->params, "cwd", NULL)};
    int rc = agent_log_open(&log, NULL, true, &err);
    if (!rc) rc = agent_log_list(log, NULL, put_session, &l, &err);
    agent_log_close(log);
    base_buf_puts(&out, "]}");
    if (rc && rc != BASE_E_NOT_FOUND) /* no log yet is an empty one */
        fail(r, &err);
    else
        acp_send_result(r->id, out.data);
    base_buf_free(&out);
}

/*
 * "file:///tree/src/a.c" of a file of the tree is "@src/a.c", which puts it in front; any other is its address, in brackets: a
 * request that begins with one must not become a command of the person's ("!", "/").
 */
static void put_link(const acp *c, base_buf *out, const char *uri)
{
    const size_t n = strlen(c->teller.root);
    const char *path = !strncmp(uri, "file://", 7) ? uri + 7 : uri;
    const bool is_in_tree = !strncmp(path, c->teller.root, n) && path[n] == '/';
    const char *shown = is_in_tree ? path + n + 1 : uri;
    base_buf_putc(out, is_in_tree ? '@' : '<');
    base_utf8_sanitise(out, shown, strlen(shown), false);
    if (!is_in_tree) base_buf_putc(out, '>');
}

/* A file that the editor sends along: whoever wrote it must not write the request behind it. */
static void put_embedded(base_buf *out, const base_json *resource)
{
    const char *uri = base_json_str(resource, "uri", "");
    base_buf_puts(out, "\nText of ");
    base_utf8_sanitise(out, uri, strlen(uri), false);
    base_buf_puts(out, ":\n");
    acp_put_code(out, "", base_json_str(resource, "text", ""));
    base_buf_putc(out, '\n');
}

/* The blocks of a prompt as one text. False: one is of a kind that was not offered. */
static bool read_prompt(const acp *c, const base_json *blocks, base_buf *out)
{
    for (const base_json *b = blocks ? blocks->first : NULL; b; b = b->next) {
        const char *type = base_json_str(b, "type", "");
        const base_json *resource = base_json_get(b, "resource");
        if (!strcmp(type, "text"))
            base_buf_puts(out, base_json_str(b, "text", ""));
        else if (!strcmp(type, "resource_link"))
            put_link(c, out, base_json_str(b, "uri", ""));
        else if (!strcmp(type, "resource") && base_json_str(resource, "text", NULL))
            put_embedded(out, resource);
        else
            return false;
    }
    return true;
}

/* While the model loads the request waits for it, and the person reads why. */
static void submit(acp *c)
{
    static char waits[] = "The model is being loaded; your request waits for it.";
    if (c->is_loading) {
        acp_tell(&c->teller, &(agent_event){.type = AGENT_EVENT_notice, .notice = {.text = waits}});
        return;
    }
    agent_worker_submit(c->worker, c->text.data);
    base_buf_clear(&c->text);
}

static void do_prompt(acp *c, const request *r)
{
    const char *session = base_json_str(r->params, "sessionId", NULL);
    base_err err = {0};
    if (is_busy(c, r)) return;
    if (!is_open(c, session)) {
        base_fail(&err, BASE_E_NOT_FOUND, "session %s is not open: session/load or session/resume opens it",
            session ? session : "(none)");
        fail(r, &err);
        return;
    }
    base_buf_clear(&c->text);
    if (!read_prompt(c, base_json_get(r->params, "prompt"), &c->text)) {
        base_fail(&err, BASE_E_USAGE, "a prompt is text, links and embedded text: no images, no sound");
        fail(r, &err);
    } else if (!c->text.len || !c->text.data[strspn(c->text.data, " \t\r\n")]) {
        base_fail(&err, BASE_E_USAGE, "the prompt is empty");
        fail(r, &err);
    } else if (c->failure) {
        answer_code(r, ACP_INTERNAL_ERROR, c->failure);
    } else {
        keep(&c->prompt, r);
        submit(c);
    }
}

/* The request that runs, or waits for the model, ends; its answer says that it was cancelled. */
static void cancel_prompt(acp *c)
{
    if (!c->prompt.doc) return;
    if (c->is_loading) { /* the model is wanted for the next one */
        acp_send_result(c->prompt.id, "{\"stopReason\":\"cancelled\"}");
        waiting_free(&c->prompt);
    } else {
        c->permission = 0; /* a late yes to this question must not answer the next one */
        agent_worker_interrupt(c->worker);
    }
}

/* A notification in the protocol; whoever gives it an id waits for an answer, as JSON-RPC promises one. */
static void do_cancel(acp *c, const request *r)
{
    base_err err = {0};
    const bool is_known = is_open(c, base_json_str(r->params, "sessionId", NULL));
    if (is_known) cancel_prompt(c);
    if (!r->id) return;
    if (is_known) {
        acp_send_result(r->id, "null");
    } else {
        base_fail(&err, BASE_E_NOT_FOUND, "this session is not open");
        fail(r, &err);
    }
}

static void do_set_mode(acp *c, const request *r)
{
    base_err err = {0};
    agent_mode mode;
    const char *word = base_json_str(r->params, "modeId", "");
    if (!is_open(c, base_json_str(r->params, "sessionId", NULL))) {
        base_fail(&err, BASE_E_NOT_FOUND, "this session is not open");
        fail(r, &err);
    } else if (!agent_mode_parse(word, &mode)) {
        base_fail(&err, BASE_E_USAGE, "no mode is called \"%.40s\": plan, ask, edits or all", word);
        fail(r, &err);
    } else {
        agent_worker_set_mode(c->worker, mode);
        c->mode = mode;
        acp_send_result(r->id, "{}");
    }
}

static void do_authenticate(acp *c, const request *r)
{
    acp_send_result(r->id, "{}"); /* there is nothing to prove on one's own machine */
}

static const struct {
    const char *name;
    void (*run)(acp *c, const request *r);
} methods[] = {
    {"initialize", do_initialize},
    {"authenticate", do_authenticate},
    {"session/new", do_new},
    {"session/load", do_load},
    {"session/resume", do_resume},
    {"session/list", do_list},
    {"session/close", do_close},
    {"session/delete", do_delete},
    {"session/prompt", do_prompt},
    {"session/cancel", do_cancel},
    {"session/set_mode", do_set_mode},
};

/* ---- what the client sends ---- */

/* The answer to our question. Whatever is not a yes is a no. */
static void take_decision(acp *c, const base_json *root)
{
    const base_json *outcome = base_json_get(base_json_get(root, "result"), "outcome");
    const char *word = base_json_str(outcome, "outcome", "");
    const char *option = !strcmp(word, "selected") ? base_json_str(outcome, "optionId", "") : "";
    if (!c->permission || base_json_int(root, "id", 0) != c->permission) return;
    c->permission = 0;
    if (!c->worker) return;
    if (!strcmp(word, "cancelled")) agent_worker_interrupt(c->worker);
    agent_worker_decide(c->worker,
        !strcmp(option, "yes")           ? AGENT_YES
        : !strcmp(option, "always")      ? AGENT_ALWAYS
        : !strcmp(option, "always-here") ? AGENT_ALWAYS_HERE
                                         : AGENT_NO,
        "");
}

static void take_line(acp *c, const base_buf *line)
{
    base_json_doc *doc = NULL;
    base_err err = {0};
    if (!line->len || !line->data[strspn(line->data, " \t\r")]) return;
    if (base_json_parse(line->data, line->len, &doc, &err)) {
        acp_send_error(NULL, ACP_PARSE_ERROR, err.msg);
        return;
    }
    const base_json *root = base_json_root(doc);
    request r = {
        base_json_str(root, "method", NULL), base_json_get(root, "id"), base_json_get(root, "params"), &doc};
    if (root->type != BASE_JSON_OBJECT) {
        acp_send_error(NULL, ACP_INVALID_REQUEST, "a message is an object");
    } else if (!r.method) {
        take_decision(c, root);
    } else {
        size_t i = 0;
        while (i < sizeof methods / sizeof *methods && strcmp(methods[i].name, r.method)) i++;
        const bool is_notification = !strcmp(r.method, "session/cancel") || !r.id;
        if (i == sizeof methods / sizeof *methods && r.id)
            acp_send_error(r.id, ACP_NO_METHOD, "kvist has no such method");
        else if (i < sizeof methods / sizeof *methods && (r.id || is_notification))
            methods[i].run(c, &r);
    }
    base_json_free(doc);
}

/* ---- what the worker sends ---- */

/* An editor gives up on an answer that takes long (CodeCompanion: 20 s), so it does not wait for the model. */
static void finish_opening(acp *c, const char *id)
{
    base_buf out = {0};
    free(c->teller.session);
    c->teller.session = base_xstrdup(id);
    c->teller.is_replay = false;
    c->is_loading = true;
    base_buf_putc(&out, '{');
    if (!c->resume) base_json_put_member_str(&out, "sessionId", c->teller.session);
    put_modes(c, &out);
    base_buf_putc(&out, '}');
    for (waiting *w = c->opening; w < c->opening + ACP_MOST_OPENING && w->doc; w++) {
        acp_send_result(w->id, out.data);
        waiting_free(w);
    }
    base_buf_free(&out);
}

static void finish_loading(acp *c)
{
    c->is_loading = false;
    tell_commands(c);
    if (c->prompt.doc) submit(c);
}

/* Without an id there is no session; with one it stays, and says at each prompt why it has no model. */
static void take_failure(acp *c, const char *sentence)
{
    c->has_failed = !c->is_loading;
    if (c->is_loading) c->failure = base_xstrdup(sentence);
    c->is_loading = false;
    for (waiting *w = c->opening; w < c->opening + ACP_MOST_OPENING && w->doc; w++) {
        acp_send_error(w->id, ACP_INTERNAL_ERROR, sentence);
        waiting_free(w);
    }
    if (!c->prompt.doc) return;
    acp_send_error(c->prompt.id, ACP_INTERNAL_ERROR, sentence);
    waiting_free(&c->prompt);
}

static void finish_prompt(acp *c)
{
    if (!c->prompt.doc) return;
    acp_send_result(c->prompt.id, c->teller.was_interrupted ? "{\"stopReason\":\"cancelled\"}"
                                  : agent_reached_limit(agent_session_agent(c->opened))
                                      ? "{\"stopReason\":\"max_turn_requests\"}"
                                      : "{\"stopReason\":\"end_turn\"}");
    waiting_free(&c->prompt);
}

static void ask_permission(acp *c, const agent_event *e)
{
    base_buf params = {0};
    acp_put_permission(&c->teller, e, &params);
    c->permission = ++c->n_calls;
    acp_send_call("session/request_permission", params.data, c->permission);
    base_buf_free(&params);
}

static void take_message(acp *c, const agent_worker_message *m)
{
    switch (m->type) {
    case AGENT_WORKER_DOING:
    case AGENT_WORKER_LOADING: break;
    case AGENT_WORKER_NAMED: finish_opening(c, m->text); break;
    case AGENT_WORKER_READY: finish_loading(c); break;
    case AGENT_WORKER_FAILED: take_failure(c, m->text); break;
    case AGENT_WORKER_EVENT:
        acp_tell(&c->teller, m->event);
        if (m->event->type == AGENT_EVENT_approval_request) ask_permission(c, m->event);
        break;
    case AGENT_WORKER_IDLE: finish_prompt(c); break;
    }
}

static void take_messages(acp *c)
{
    for (agent_worker_message *m; c->worker && (m = agent_worker_take(c->worker));) {
        take_message(c, m);
        agent_worker_message_free(m);
    }
    if (c->has_failed) close_session(c);
}

static void take_lines(acp *c)
{
    base_buf line = {0};
    bool too_long;
    while (base_lines_take(&c->lines, &line, &too_long)) {
        if (too_long)
            acp_send_error(NULL, ACP_INVALID_REQUEST, "a message of more than 16 MiB is refused");
        else
            take_line(c, &line);
    }
    base_buf_free(&line);
}

/* False: the client has nothing more to say. */
static bool read_client(acp *c, base_err *err, int *ret)
{
    char bytes[65536];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && errno != EINTR && errno != EAGAIN) *ret = base_fail_sys(err, "the standard input");
    if (n == 0 || *ret) base_lines_add(&c->lines, "\n", 1); /* the last one needs no end */
    if (n > 0) base_lines_add(&c->lines, bytes, (size_t)n);
    take_lines(c);
    return n && !*ret;
}

int acp_run(const acp_options *options, base_err *err)
{
    acp c = {.options = options, .lines = {.most = ACP_MOST_LINE}};
    int rc = 0;
    for (bool is_heard = true; is_heard || c.opening->doc || c.prompt.doc;) {
        struct pollfd fds[] = {{is_heard ? STDIN_FILENO : -1, POLLIN, 0},
            {c.worker ? agent_worker_fd(c.worker) : -1, POLLIN, 0}, {is_heard ? -1 : STDOUT_FILENO, 0, 0}};
        if (poll(fds, 3, -1) < 0 && errno != EINTR) break;
        take_messages(&c);
        if (fds[2].revents) break;
        if (!fds[0].revents) continue;
        is_heard = read_client(&c, err, &rc);
        if (!is_heard) cancel_prompt(&c); /* nobody can say yes or stop it any more */
    }
    close_session(&c);
    for (size_t i = 0; i < ACP_MOST_OPENING; i++) waiting_free(&c.opening[i]);
    waiting_free(&c.prompt);
    base_lines_free(&c.lines);
    base_buf_free(&c.text);
    return rc;
}
