/*
 * kvist log: the sessions in the database. list, show, search and kv print words for a person (or, with
 * --json, one object a line); export prints the stored bytes and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/log/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/cmd_log.h"
#include "cmd/options.h"

static const char usage[] =
    "usage: kvist log [list]                the sessions, newest first; what was forked, compacted or "
    "computed again from one stands below it\n"
    "       kvist log show ID               a session as text\n"
    "       kvist log search WORDS [--session ID]   full text over requests, answers and tool results\n"
    "       kvist log export ID             every event as a JSON line, the bytes that --json printed\n"
    "       kvist log export --markdown ID  the same as a page to read and share\n"
    "       kvist log export --labels ID    per message and "
    "result, the tokens that the next five tool calls quote\n"
    "       kvist log kv ID [--turn N]      the rows that each lane held at a turn's end\n"
    "       kvist log delete ID             the session, its text index, rows and undo objects\n\n"
    "An ID may be shortened.\n";

typedef struct log_options {
    bool json, labels, markdown;
    int64_t turn;
    const char *session;
    uint32_t n_matches; /* of a search, so far */
} log_options;

static void print_clean(const char *text, size_t n, bool lines)
{
    base_buf clean = {0};
    base_utf8_sanitise(&clean, text, n, lines);
    if (clean.len) fwrite(clean.data, 1, clean.len, stdout);
    base_buf_free(&clean);
}

/* An event's text; NULL: a changed log lacks it. */
static void print_text(const char *text)
{
    print_clean(text ? text : "", text ? strlen(text) : 0, true);
}

static void put_member(base_buf *out, const char *key, const char *value)
{
    base_buf_printf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
    base_json_put_str(out, value ? value : "", value ? strlen(value) : 0);
}

/* --- list, search --------------------------------------------------------------------------------------- */

/* Rows of the list, kept until it is known which session came from which. */
typedef struct row_list {
    agent_log_row *rows;
    size_t n, cap;
    bool *printed; /* [n] */
    bool json;
} row_list;

static void keep_row(void *user, const agent_log_row *r)
{
    row_list *l = user;
    base_grow(&l->rows, &l->cap, l->n + 1, sizeof *l->rows);
    agent_log_row *kept = &l->rows[l->n++];
    *kept = *r;
    kept->id = base_xstrdup(r->id);
    kept->parent = base_xstrdup(r->parent);
    kept->root = base_xstrdup(r->root);
    kept->model = base_xstrdup(r->model);
    kept->title = base_xstrdup(r->title);
    kept->status = base_xstrdup(r->status);
}

static void free_rows(row_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *const texts[] = {l->rows[i].id, l->rows[i].parent, l->rows[i].root, l->rows[i].model,
            l->rows[i].title, l->rows[i].status};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) free((char *)(uintptr_t)texts[k]);
    }
    free(l->rows);
    free(l->printed);
}

static void print_json_row(const agent_log_row *r)
{
    base_buf out = {0};
    base_buf_putc(&out, '{');
    put_member(&out, "id", r->id);
    put_member(&out, "parent", r->parent);
    put_member(&out, "root", r->root);
    put_member(&out, "model", r->model);
    put_member(&out, "title", r->title);
    put_member(&out, "status", r->status);
    base_buf_printf(&out, ",\"turns\":%u,\"events\":%u,\"started_ms\":%lld,\"updated_ms\":%lld", r->turns,
        r->events, (long long)r->started_ms, (long long)r->updated_ms);
    if (r->is_what_if) base_buf_puts(&out, ",\"kind\":\"what-if\"");
    base_buf_putc(&out, '}');
    puts(out.data);
    base_buf_free(&out);
}

static void print_row(const agent_log_row *r, unsigned depth)
{
    char when[32] = "";
    time_t seconds = (time_t)(r->updated_ms / 1000);
    struct tm local;
    if (localtime_r(&seconds, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
    size_t n = strcspn(r->title, "\n");
    printf("%*s%s%s  %s  ", depth ? (int)(depth - 1) * 2 : 0, "", depth ? "+ " : "", r->id, when);
    if (r->is_what_if)
        printf("%-9s  %-11s  ", "what-if", r->status);
    else
        printf("%3u %-5s  %-11s  ", r->turns, r->turns == 1 ? "turn" : "turns", r->status);
    print_clean(r->root, strlen(r->root), false);
    printf("  ");
    print_clean(r->title, n < 70 ? n : 70, false);
    putchar('\n');
}

/* A session whose parent is not in the list begins a tree of its own. */
static bool is_listed(const row_list *l, const char *id)
{
    bool found = false;
    for (size_t i = 0; i < l->n && !found; i++) found = *id && !strcmp(l->rows[i].id, id);
    return found;
}

/* A session and what came from it below, newest first; once, whatever somebody wrote into the database. */
static void print_tree(row_list *l, size_t i, unsigned depth)
{
    enum { MOST_DEPTH = 64 };
    if (l->printed[i] || depth == MOST_DEPTH) return;
    l->printed[i] = true;
    print_row(&l->rows[i], depth);
    for (size_t k = 0; k < l->n; k++)
        if (!strcmp(l->rows[k].parent, l->rows[i].id)) print_tree(l, k, depth + 1);
}

static void print_list(row_list *l)
{
    for (size_t i = 0; i < l->n && l->json; i++) print_json_row(&l->rows[i]);
    if (l->json) return;
    l->printed = base_xcalloc(l->n + 1, sizeof *l->printed);
    for (size_t i = 0; i < l->n; i++)
        if (!is_listed(l, l->rows[i].parent)) print_tree(l, i, 0);
    for (size_t i = 0; i < l->n; i++) print_tree(l, i, 0); /* whose parents lead to themselves */
}

static void print_match(void *user, const agent_log_match *m)
{
    log_options *o = user;
    o->n_matches++;
    if (o->json) {
        base_buf out = {0};
        base_buf_putc(&out, '{');
        put_member(&out, "session", m->session);
        put_member(&out, "kind", m->kind);
        put_member(&out, "snippet", m->snippet);
        base_buf_printf(&out, ",\"turn\":%u,\"seq\":%llu}", m->turn, (unsigned long long)m->seq);
        puts(out.data);
        base_buf_free(&out);
        return;
    }
    printf("%s  turn %u  %s: ", m->session, m->turn, m->kind);
    print_clean(m->snippet, strlen(m->snippet), false);
    putchar('\n');
}

/* --- show ----------------------------------------------------------------------------------------------- */

static void print_indented(const char *text)
{
    for (const char *p = text; p && *p;) {
        size_t n = strcspn(p, "\n");
        printf("    ");
        print_clean(p, n, false);
        putchar('\n');
        p += n + (p[n] == '\n');
    }
}

static void show_line(const char *before, const char *text)
{
    fputs(before, stdout);
    print_text(text);
    putchar('\n');
}

static void show_session(const agent_event *e, uint32_t turn)
{
    printf("session %s  %s  %s\n", e->session.id, e->session.model, e->session.root);
}

static void show_user(const agent_event *e, uint32_t turn)
{
    printf("\nturn %u\n", turn);
    show_line("you> ", e->user.text);
}

static void show_tool_call(const agent_event *e, uint32_t turn)
{
    printf("> ");
    if (e->tool_call.headline) print_clean(e->tool_call.headline, strlen(e->tool_call.headline), false);
    putchar('\n');
}

static void show_approval(const agent_event *e, uint32_t turn)
{
    printf("  approval: %s\n", e->approval.decision ? e->approval.decision : "");
}

static void show_tool_result(const agent_event *e, uint32_t turn)
{
    printf("  %s, %lld bytes\n", e->tool_result.status ? e->tool_result.status : "",
        (long long)e->tool_result.bytes);
    print_indented(e->tool_result.diff ? e->tool_result.diff : e->tool_result.text);
}

static void show_answer(const agent_event *e, uint32_t turn)
{
    show_line("", e->answer.text);
}

static void show_plan(const agent_event *e, uint32_t turn)
{
    if (e->plan.evicted || e->plan.promoted)
        printf("  cache: %s, evicted %lld, promoted %lld\n", e->plan.cause, (long long)e->plan.evicted,
            (long long)e->plan.promoted);
}

static void show_ledger(const agent_event *e, uint32_t turn)
{
    printf("  ledger: new %lld reused %lld generated %lld evicted %lld promoted %lld active %lld host "
           "%lld of %lld tokens%s%s\n",
        (long long)e->ledger.new, (long long)e->ledger.reused, (long long)e->ledger.generated,
        (long long)e->ledger.evicted, (long long)e->ledger.promoted, (long long)e->ledger.active,
        (long long)e->ledger.host, (long long)e->ledger.n, e->ledger.why ? "; " : "",
        e->ledger.why ? e->ledger.why : "");
}

static void show_notice(const agent_event *e, uint32_t turn)
{
    show_line("  note: ", e->notice.text);
}

static void show_error(const agent_event *e, uint32_t turn)
{
    show_line("  error: ", e->error.text);
}

static void show_what_if(const agent_event *e, uint32_t turn)
{
    printf("what if %s  of session %s\noriginal: %s\nchanged:  %s\n", e->what_if.session, e->what_if.parent,
        e->what_if.original, e->what_if.changed);
}

static void show_what_if_turn(const agent_event *e, uint32_t turn)
{
    printf("turn %lld: KL %.4f, %lld of %lld tokens would have been another one\n",
        (long long)e->what_if_turn.turn, e->what_if_turn.kl, (long long)e->what_if_turn.differ,
        (long long)e->what_if_turn.tokens);
}

static void show_what_if_end(const agent_event *e, uint32_t turn)
{
    show_line("", e->what_if_end.text);
}

static void show_turn_end(const agent_event *e, uint32_t turn)
{
    if (e->turn_end.status && strcmp(e->turn_end.status, "closed")) printf("  (%s)\n", e->turn_end.status);
}

/* What a reader wants to see of a session; other events are left out. */
static void (*const shown[])(const agent_event *e, uint32_t turn) = {
    [AGENT_EVENT_session] = show_session,
    [AGENT_EVENT_user] = show_user,
    [AGENT_EVENT_tool_call] = show_tool_call,
    [AGENT_EVENT_approval] = show_approval,
    [AGENT_EVENT_tool_result] = show_tool_result,
    [AGENT_EVENT_answer] = show_answer,
    [AGENT_EVENT_plan] = show_plan,
    [AGENT_EVENT_ledger] = show_ledger,
    [AGENT_EVENT_notice] = show_notice,
    [AGENT_EVENT_error] = show_error,
    [AGENT_EVENT_what_if] = show_what_if,
    [AGENT_EVENT_what_if_turn] = show_what_if_turn,
    [AGENT_EVENT_what_if_end] = show_what_if_end,
    [AGENT_EVENT_turn_end] = show_turn_end,
};

static bool show_event(void *user, uint32_t turn, const agent_event *e)
{
    if ((size_t)e->type < sizeof shown / sizeof *shown && shown[e->type]) shown[e->type](e, turn);
    return true;
}

static bool export_event(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    fwrite(json, 1, n, stdout);
    putchar('\n');
    return true;
}

/* --- the command ---------------------------------------------------------------------------------------- */

typedef int verb_fn(agent_log *l, const char *id, const log_options *o, base_err *err);

static int run_kv(agent_log *l, const char *id, const log_options *o, base_err *err)
{
    return cmd_log_kv(l, id, (uint32_t)o->turn, o->json, err);
}

static int run_show(agent_log *l, const char *id, const log_options *o, base_err *err)
{
    return o->json ? agent_log_events(l, id, export_event, NULL, err)
                   : agent_log_read(l, id, AGENT_LOG_PASS_BY, show_event, NULL, err);
}

static int print_markdown(agent_log *l, const char *id, base_err *err)
{
    base_buf page = {0};
    const int rc = agent_log_markdown(l, id, &page, err);
    if (page.len) fwrite(page.data, 1, page.len, stdout);
    base_buf_free(&page);
    return rc;
}

static int run_export(agent_log *l, const char *id, const log_options *o, base_err *err)
{
    return o->labels     ? cmd_log_labels(l, id, err)
           : o->markdown ? print_markdown(l, id, err)
                         : agent_log_events(l, id, export_event, NULL, err);
}

static int run_delete(agent_log *l, const char *id, const log_options *o, base_err *err)
{
    int rc = agent_log_delete(l, id, err);
    if (!rc) fprintf(stderr, "deleted session %s\n", id);
    return rc;
}

static const struct {
    const char *name;
    verb_fn *run;
    bool writes;
} verbs[] = {{"show", run_show, false}, {"export", run_export, false}, {"kv", run_kv, false},
    {"delete", run_delete, true}};

static int run_verb(const char *const *words, uint32_t n, const log_options *o, base_err *err)
{
    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++) {
        if (strcmp(verbs[v].name, words[0])) continue;
        if (n != 2) return base_fail(err, BASE_E_USAGE, "kvist log %s takes one session ID", words[0]);
        agent_log *l = NULL;
        char *id = NULL;
        int rc = agent_log_open(&l, NULL, !verbs[v].writes, err);
        if (!rc) rc = agent_log_find(l, words[1], NULL, &id, err);
        if (!rc) rc = verbs[v].run(l, id, o, err);
        free(id);
        agent_log_close(l);
        return rc;
    }
    return options_check_word("kvist log knows", "list|show|search|export|kv|delete", words[0], err);
}

static int run_list(const log_options *o, base_err *err)
{
    agent_log *l = NULL;
    base_err why = {0};
    int rc = agent_log_open(&l, NULL, true, &why);
    if (rc == BASE_E_NOT_FOUND) { /* none yet is an answer */
        fprintf(stderr, "kvist: %s\n", why.msg);
        return 0;
    }
    if (rc == BASE_E_STATE)
        rc = agent_log_open(&l, NULL, false, &why); /* an older schema: opening brings it up to date */
    if (rc) {
        *err = why;
        return rc;
    }
    row_list rows = {.json = o->json};
    rc = agent_log_list(l, NULL, keep_row, &rows, err);
    if (!rc) print_list(&rows);
    free_rows(&rows);
    agent_log_close(l);
    return rc;
}

static int run_search(const char *const *words, uint32_t n, log_options *o, base_err *err)
{
    base_buf all = {0};
    agent_log *l = NULL;
    char *id = NULL;
    for (uint32_t i = 1; i < n; i++) base_buf_printf(&all, "%s%s", i > 1 ? " " : "", words[i]);
    int rc = agent_log_open(&l, NULL, true, err);
    if (!rc && o->session) rc = agent_log_find(l, o->session, NULL, &id, err);
    if (!rc) rc = agent_log_search(l, id, all.data ? all.data : "", 0, print_match, o, err);
    if (!rc && !o->n_matches) fprintf(stderr, "kvist: no session has these words\n");
    free(id);
    base_buf_free(&all);
    agent_log_close(l);
    return rc;
}

int cmd_log(int argc, char **argv)
{
    log_options o = {0};
    base_err err = {0};
    const char **words = base_xcalloc((size_t)argc + 1, sizeof *words);
    uint32_t n = 0;
    const option_row own[] = {
        {"--json", OPTION_FLAG, &o.json, NULL, "one object a line"},
        {"--turn", OPTION_INTEGER, &o.turn, "N", "kv: the turn, from 1 (the last)"},
        {"--session", OPTION_TEXT, &o.session, "ID", "search: in this session only"},
        {"--markdown", OPTION_FLAG, &o.markdown, NULL, "export: requests, answers and changes as a page"},
        {"--labels", OPTION_FLAG, &o.labels, NULL, "export: what the next five tool calls quote"},
        {0},
    };
    int rc = 0, status;
    const bool goes_on =
        cmd_begin(argc, argv, NULL, own, &(cmd_words){.usage = usage, .rest = words, .n_rest = &n}, &status);
    if (!goes_on)
        ; /* said */
    else if (o.turn < 0 || o.turn > INT32_MAX)
        rc = base_fail(&err, BASE_E_USAGE, "--turn counts from 1");
    else if (!n || !strcmp(words[0], "list"))
        rc = n > 1 ? base_fail(&err, BASE_E_USAGE, "kvist log list takes no words") : run_list(&o, &err);
    else if (!strcmp(words[0], "search"))
        rc = run_search(words, n, &o, &err);
    else
        rc = run_verb(words, n, &o, &err);
    free(words);
    return rc ? cmd_complain(&err) : status;
}
