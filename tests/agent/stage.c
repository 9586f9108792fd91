#include "stage.h"

#include <sys/stat.h>
#include <unistd.h>

bool stage_chat;
agent_configured_command stage_configured[AGENT_N_CONFIGURED];
char base_folder[64], tree[96], script_path[96];

int make_folders(void **state)
{
    strcpy(base_folder, "/tmp/kvist-agent-XXXXXX");
    if (!mkdtemp(base_folder)) return -1;
    snprintf(tree, sizeof tree, "%s/tree", base_folder);
    snprintf(script_path, sizeof script_path, "%s/script", base_folder);
    setenv("KVIST_HOME", base_folder, 1);
    memset(stage_configured, 0, sizeof stage_configured);
    return mkdir(tree, 0700);
}

int drop_folders(void **state)
{
    return base_fs_remove(base_folder, NULL);
}

void put_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    assert_int_equal(base_fs_write(path, text, strlen(text), 0600, NULL), 0);
}

char *get_file(const char *name)
{
    char path[200];
    base_buf out = {0};
    snprintf(path, sizeof path, "%s/%s", tree, name);
    if (base_fs_read(path, 1 << 20, &out, NULL)) return base_xstrdup("(missing)");
    return base_buf_take(&out);
}

void assert_file(const char *name, const char *text)
{
    char *got = get_file(name);
    assert_string_equal(got, text);
    free(got);
}

void host_event(void *user, const agent_event *e)
{
    host *h = user;
    agent_event_write(e, &h->json);
    base_buf_putc(&h->json, '\n');
    if (h->exit_at == (int)e->type) _exit(7);
    if (e->type == AGENT_EVENT_token && (int)++h->n_tokens == h->cancel_at_token)
        atomic_store(&h->cancel, true);
    if (e->type == AGENT_EVENT_prefill && h->cancel_at_prefill && e->prefill.done >= h->cancel_at_prefill)
        atomic_store(&h->cancel, true);
    switch (e->type) {
    case AGENT_EVENT_token:
    case AGENT_EVENT_append:
    case AGENT_EVENT_span:
    case AGENT_EVENT_prefill:
    case AGENT_EVENT_scores:
    case AGENT_EVENT_tool_output:
    case AGENT_EVENT_snapshot: return;
    case AGENT_EVENT_plan: base_buf_printf(&h->outline, "plan:%s ", e->plan.cause); return;
    case AGENT_EVENT_tool_result:
        base_buf_printf(&h->outline, "%s:%s ", e->tool_result.name, e->tool_result.status);
        return;
    case AGENT_EVENT_approval: base_buf_printf(&h->outline, "approval:%s ", e->approval.decision); return;
    case AGENT_EVENT_turn_end: base_buf_printf(&h->outline, "turn_end:%s ", e->turn_end.status); return;
    default: base_buf_printf(&h->outline, "%s ", agent_event_name(e->type));
    }
}

static agent_decision on_approve(void *user, const agent_event *request)
{
    host *h = user;
    h->asked++;
    if (h->cancel_at_question) atomic_store(&h->cancel, true);
    return (agent_decision){h->answer, base_xstrdup(h->text)};
}

host new_host(void)
{
    return (host){.answer = AGENT_YES, .exit_at = -1};
}

void free_host(host *h)
{
    base_buf_free(&h->json);
    base_buf_free(&h->outline);
}

static agent_session *open_any(
    host *h, const char *script, agent_mode mode, const char *resume, const char *fork, bool ask)
{
    assert_int_equal(base_fs_write(script_path, script, strlen(script), 0600, NULL), 0);
    agent_session_options options = {.dir = tree,
        .fake_script = script_path,
        .open = stage_chat ? engine_chat_open : NULL,
        .mode = mode,
        .resume = resume,
        .fork = fork,
        .keep_budget = true, /* as the program does where no budget is named */
        .kv = {.repair = -1},
        .context_tokens = 400};
    memcpy(options.configured, stage_configured, sizeof options.configured);
    agent_host sink = {.user = h, .event = host_event, .approve = ask ? on_approve : NULL};
    agent_session *s = NULL;
    base_err err = {0};
    int rc = agent_session_open(&s, &options, &sink, &h->cancel, &err);
    if (rc) fail_msg("%s", err.msg);
    base_buf_clear(&h->outline);
    return s;
}

agent_session *open_session(host *h, const char *script, agent_mode mode, const char *resume, bool ask)
{
    return open_any(h, script, mode, resume, NULL, ask);
}

agent_session *fork_session(host *h, const char *script, const char *id)
{
    return open_any(h, script, AGENT_MODE_ASK, NULL, id, true);
}

int submit(agent_session *s, host *h, const char *text)
{
    atomic_store(&h->cancel, false);
    return agent_submit(agent_session_agent(s), text, NULL);
}

bool told(const host *h, const char *text)
{
    return h->json.data && strstr(h->json.data, text);
}

/* Without the plans that an engine of text only does not make. The caller frees. */
static char *outline_here(const char *expected)
{
    base_buf words = {0};
    for (const char *word = expected; *word;) {
        const size_t n = strcspn(word, " ") + (word[strcspn(word, " ")] != 0);
        if (!stage_chat || strncmp(word, "plan:", 5)) base_buf_add(&words, word, n);
        word += n;
    }
    return base_buf_take(&words);
}

void assert_outline(const host *h, const char *expected)
{
    char *words = outline_here(expected);
    assert_string_equal(h->outline.data, words);
    free(words);
}

void assert_outline_has(const host *h, const char *part)
{
    char *words = outline_here(part);
    assert_non_null(strstr(h->outline.data, words));
    free(words);
}

void assert_sent(agent_session *s, const char *text, bool has)
{
    if (!stage_chat) return;
    const char *sent = engine_chat_sent(agent_session_agent(s)->engine);
    if ((strstr(sent, text) != NULL) != has) fail_msg("%s \"%s\" in:\n%s", has ? "no" : "a", text, sent);
}

void find_grammars(void)
{
    static char folder[600];
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    snprintf(folder, sizeof folder, "%s%s/kvist/grammars",
        data   ? data
        : home ? home
               : "",
        data ? "" : "/.local/share");
    if (!getenv("KVIST_GRAMMAR_PATH")) setenv("KVIST_GRAMMAR_PATH", folder, 1);
}

bool has_grammars(void)
{
    code_grammars *g = code_grammars_open();
    code_file *f = code_parse(g, "a.c", "int a;\n", 7);
    const bool has_one = f->language != NULL;
    code_file_free(f);
    code_grammars_close(g);
    return has_one;
}

int run_on_both(const struct CMUnitTest *tests, size_t n)
{
    stage_chat = false;
    const int failed = _cmocka_run_group_tests("on the scripted engine over the cache", tests, n, NULL, NULL);
    stage_chat = true;
    return failed + _cmocka_run_group_tests("on an engine that has text only", tests, n, NULL, NULL);
}

void put_program(void)
{
    put_file("add.sh", PROGRAM);
    put_file("test_add.sh", TEST);
}

void put_notes(void)
{
    for (int n = 1; n <= 4; n++) {
        char name[20];
        base_buf text = {0};
        for (int i = 0; i < 40; i++)
            base_buf_printf(
                &text, "note %d.%d: to add %d the test took %d\n", n, i, 7 * i % 31, 3 * i * n % 53);
        snprintf(name, sizeof name, "notes%d.txt", n);
        put_file(name, text.data);
        base_buf_free(&text);
    }
}

long long last_number(const host *h, const char *type, const char *member)
{
    const char *at = NULL;
    for (const char *p = h->json.data; p && (p = strstr(p, type)); p++) at = p;
    long long value = -1;
    char name[40];
    snprintf(name, sizeof name, "\"%s\":", member);
    at = at ? strstr(at, name) : NULL;
    if (at) sscanf(at + strlen(name), "%lld", &value);
    return value;
}

static bool collect(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    base_buf_add(user, json, n);
    base_buf_putc(user, '\n');
    return true;
}

char *logged(const char *id)
{
    agent_log *l = NULL;
    base_buf out = {0};
    assert_int_equal(agent_log_open(&l, NULL, true, NULL), 0);
    assert_int_equal(agent_log_events(l, id, collect, &out, NULL), 0);
    agent_log_close(l);
    return base_buf_take(&out);
}
