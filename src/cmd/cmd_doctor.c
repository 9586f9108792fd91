/*
 * `kvist doctor`: what this machine has and what is in force, as a list of facts; --json gives the same as
 * one object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "code/code.h"
#include "model/ops/ops.h"
#include "cmd/options.h"
#ifdef KVIST_SHELL
#include "cmd/endpoint.h"
#include "remote/reuse.h"
#include "remote/score.h"
#include "tools/tool.h"
#endif

static const char usage[] = "usage: kvist doctor [--model FILE|NAME] [--endpoint URL] [--json]\n\n"
                            "Says what this machine has and what is in force: CPU features, threads, memory, "
                            "GPU, model, grammars, sandbox, endpoint, terminal.\n";

typedef struct report {
    base_buf text, json;
} report;

/* One fact: a line for a person, a member for a script. */
static void tell(report *r, const char *key, const char *value)
{
    base_buf_printf(&r->text, "%-10s %s\n", key, value);
    base_buf_putc(&r->json, r->json.len ? ',' : '{');
    base_json_put_str(&r->json, key, strlen(key));
    base_buf_putc(&r->json, ':');
    base_json_put_str(&r->json, value, strlen(value));
}

static void tell_buf(report *r, const char *key, base_buf *value)
{
    while (value->len && value->data[value->len - 1] == '\n') value->data[--value->len] = '\0';
    tell(r, key, value->len ? value->data : "none");
    base_buf_free(value);
}

static void tell_cpu(report *r, const common_options *common)
{
    base_buf line = {0};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = model_threads((int)common->threads);
    base_buf_printf(
        &line, "%ld core%s, %d thread%s", cores, cores == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
#if defined(__x86_64__)
    /* __builtin_cpu_supports takes literals only, hence no table. */
    if (__builtin_cpu_supports("avx2")) base_buf_puts(&line, ", AVX2");
    if (__builtin_cpu_supports("avx512f")) base_buf_puts(&line, ", AVX-512");
    if (__builtin_cpu_supports("avx512vnni")) base_buf_puts(&line, " VNNI");
    if (__builtin_cpu_supports("avx512bf16")) base_buf_puts(&line, " BF16");
#endif
    tell_buf(r, "cpu", &line);
}

static void tell_memory(report *r)
{
    base_buf info = {0}, line = {0};
    unsigned long total = 0, available = 0;
    if (!base_fs_read("/proc/meminfo", 1 << 16, &info, NULL)) {
        const char *at = strstr(info.data, "MemTotal:");
        if (at) sscanf(at, "MemTotal: %lu", &total);
        at = strstr(info.data, "MemAvailable:");
        if (at) sscanf(at, "MemAvailable: %lu", &available);
    }
    base_buf_printf(&line, "%.1f GiB, %.1f available", (double)total / 1048576, (double)available / 1048576);
    base_buf_clear(&info);
    if (!base_fs_read("/sys/kernel/mm/transparent_hugepage/enabled", 256, &info, NULL) && info.len)
        base_buf_printf(&line, "; huge pages %.*s", (int)strcspn(info.data, "\n"), info.data);
    base_buf_free(&info);
    tell_buf(r, "memory", &line);
}

static void tell_gpu(report *r)
{
#ifdef KVIST_CUDA
    char text[400];
    base_err err;
    if (!cuda_ops_describe(text, sizeof text, &err)) {
        tell(r, "gpu", text);
        return;
    }
    snprintf(text, sizeof text, "none: %.350s; the CPU computes", err.msg);
    tell(r, "gpu", text);
#else
    tell(r, "gpu",
        base_fs_exists("/dev/nvidiactl") ? "an NVIDIA device is present; this build computes on the CPU"
                                         : "none; the CPU computes");
#endif
}

static void tell_model(report *r, const common_options *options)
{
    char *path;
    base_err err;
    if (options_model_path(options, &path, &err)) {
        tell(r, "model", err.msg);
        return;
    }
    tell(r, "model", path);
    free(path);
}

static void tell_grammars(report *r)
{
    const code_grammar_info *infos;
    code_grammars *g = code_grammars_open();
    base_buf line = {0};
    uint32_t n = code_grammars_list(g, &infos), n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!infos[i].path) continue;
        base_buf_printf(&line, "%s%s", n_found++ ? " " : "", infos[i].language);
    }
    if (!n_found)
        base_buf_puts(&line, "none found: definitions are found lexically (`kvist-fetch grammars` or "
                             "scripts/run fetches grammars)");
    tell_buf(r, "grammars", &line);
    code_grammars_close(g);
}

static void tell_terminal(report *r)
{
    struct winsize size;
    base_buf line = {0};
    const char *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO))
        base_buf_puts(&line, "none (use -p)");
    else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        base_buf_printf(
            &line, "%s, %d columns x %d rows", term ? term : "(TERM unset)", size.ws_col, size.ws_row);
    tell_buf(r, "terminal", &line);
}

#ifdef KVIST_SHELL
/* How an engine is asked decides what works on it (docs/remote.md has the same table by engine). */
typedef enum asked_by { BY_IDS_LAZY, BY_IDS, BY_CHAT_GRAMMAR, BY_CHAT, N_ASKED_BY } asked_by;

static asked_by asked_by_of(const remote_endpoint *e)
{
    if (!e->wire->has_ids) return e->wire->grammar ? BY_CHAT_GRAMMAR : BY_CHAT;
    return e->wire->grammar == REMOTE_GRAMMAR_LAZY ? BY_IDS_LAZY : BY_IDS;
}

static const struct {
    const char *feature, *works[N_ASKED_BY];
} features[] = {
    {"requests", {"only grow, by token ids", "only grow, by token ids", "messages, rendered anew",
                     "messages, rendered anew"}},
    {"tokens", {"the model's", "the model's", "estimates", "estimates"}},
    {"what its cache found and computed",
        {"told, and predicted", "told where the server tells it, and predicted", "told where it tells it",
            "told where it tells it"}},
    {"where its blocks are", {"no", "with --engine-events", "no", "no"}},
    {"calls held to a grammar", {"yes", "yes", "yes", "no"}},
    {"candidates of --tries", {"in branches", "in branches", "one after the other", "one after the other"}},
    {"an answer that broke off",
        {"goes on by itself", "goes on by itself", "stands as it came", "stands as it came"}},
    {"text that went stale leaves what is sent",
        {"with the next cut", "with the next cut", "at once", "at once"}},
    {"a budget in spans", {"yes", "yes", "no", "no"}},
    {"several calls in a strong model's message", {"yes", "yes", "yes", "yes, by tool_calls"}},
    {"thoughts", {"in the text", "in the text", "shown, not sent back", "shown, not sent back"}},
    {"rows, lanes and scores", {"not visible", "not visible", "not visible", "not visible"}},
};

/* A line each for a person, one object for a script. */
static void tell_features(report *r, const remote_endpoint *e)
{
    const asked_by by = asked_by_of(e);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        const char *name = features[i].feature, *works = features[i].works[by];
        base_buf_printf(&r->text, "%-10s %s: %s\n", i ? "" : "there", name, works);
        base_buf_puts(&r->json, i ? "," : ",\"there\":{");
        base_json_put_str(&r->json, name, strlen(name));
        base_buf_putc(&r->json, ':');
        base_json_put_str(&r->json, works, strlen(works));
    }
    base_buf_putc(&r->json, '}');
}

static void tell_reuse(report *r, remote_endpoint *e)
{
    remote_reuse reuse;
    base_err err = {0};
    base_buf line = {0};
    if (e->wire != &remote_wire_llama) return;
    char *kept = base_fs_home(BASE_HOME_DATA, "rows"); /* where sessions look for it */
    const int rc = remote_reuse_probe(e, &reuse, NULL, &err);
    if (!rc) remote_reuse_save(e, kept, reuse.works);
    free(kept);
    if (rc)
        base_buf_printf(&line, "not known what stands behind one costs: %s", err.msg);
    else
        base_buf_printf(&line,
            "what stands behind one is %s (n_cache_reuse): %u tokens found, %u in front of it, %u behind it",
            reuse.works ? "moved, not computed again" : "computed again", reuse.found, reuse.n_kept,
            reuse.n_behind);
    tell_buf(r, "cuts", &line);
}

/* Where an engine takes ids, whether it tells what its model doubts is asked of some words that no tree has. */
static void tell_doubts(report *r, remote_endpoint *e)
{
    static const char text[] = "apple bridge candle dragon engine forest";
    enum { MOST = 40 };
    model_ids ids = {0};
    remote_score scores[MOST];
    remote_scored cost;
    base_err err = {0};
    base_buf line = {0};
    int rc = e->wire->scoring ? remote_vocab_encode(e->vocab, text, sizeof text - 1, false, &ids, &err)
                              : base_fail(&err, BASE_E_UNSUPPORTED, "asked by messages");
    const remote_request request = {
        .model = e->model, .ids = ids.ids, .n_ids = (uint32_t)(ids.n < MOST ? ids.n : MOST)};
    if (!rc) rc = remote_score_ask(e, &request, 1, scores, &cost, &err);
    if (rc)
        base_buf_printf(&line, "not told (%.200s): further attempts at a definition are sampled", err.msg);
    else
        base_buf_puts(
            &line, "told: further attempts at a definition begin where its model doubts the old text");
    tell_buf(r, "doubts", &line);
    model_ids_free(&ids);
}

/* Nothing is told until the cache changes, so silence says nothing. */
static void tell_events(report *r, const remote_endpoint *e)
{
    if (e->wire == &remote_wire_llama || !e->wire->has_ids) return;
    base_buf line = {0};
    base_buf_printf(&line, "its cache is kept in blocks of %u token%s; %s", e->block,
        e->block == 1 ? "" : "s",
        e->events ? "where they are is listened to" : "--engine-events says where each is");
    tell_buf(r, "blocks", &line);
}

/* On stderr: what is printed is the report. */
static void tell_wait(void *user, const char *sentence)
{
    fprintf(stderr, "kvist: %s\n", sentence);
}

/*
 * Asks it, sends nothing of any tree. Where nothing listens that is said at once, unless a person says how long to ask; one that
 * is there and does not answer yet (it loads its model, or computes on a CPU) is waited for.
 */
static int tell_endpoint(report *r, const endpoint_words *words, bool is_wait_given, const char *served)
{
    enum { GIVE_UP_MS = 3000 };
    endpoint_choice choice;
    remote_endpoint *e = NULL;
    base_err err = {0};
    base_buf line = {0};
    int rc = endpoint_resolve(words, served, &choice, &err);
    if (!rc && choice.is_chosen) {
        remote_limits *limits = &choice.options.http.limits;
        limits->first_ms = limits->give_up_ms;
        if (!is_wait_given) limits->give_up_ms = GIVE_UP_MS;
        choice.options.http.waits = tell_wait;
        rc = remote_endpoint_open(&e, &choice.options, &err);
    }
    if (rc)
        tell(r, "endpoint", err.msg);
    else if (!e)
        tell(r, "endpoint", "none: the model is local");
    if (e) {
        remote_endpoint_describe(e, &line);
        tell_buf(r, "endpoint", &line);
        tell_features(r, e);
        tell_doubts(r, e);
        tell_reuse(r, e);
        tell_events(r, e);
        if (e->why_chat) tell(r, "by chat", e->why_chat);
        if (e->differs) tell(r, "template", e->differs);
        base_buf_printf(&line, "%s; its text %s",
            e->wire->has_ids ? "tokens are the model's" : "tokens are estimates",
            remote_http_address(e->http)->is_loopback ? "stays on this machine" : "leaves this machine");
        tell_buf(r, "sent", &line);
    }
    remote_endpoint_close(e);
    endpoint_choice_free(&choice);
    return rc ? CMD_FAILED : CMD_OK;
}
#endif

int cmd_doctor(int argc, char **argv)
{
    bool json = false;
    common_options common = COMMON_OPTIONS_DEFAULTS;
#ifdef KVIST_SHELL
    endpoint_words endpoint = ENDPOINT_WORDS_DEFAULTS;
    const option_row own[] = {
        {"--json", OPTION_FLAG, &json, NULL, "one object"}, ENDPOINT_OPTION_ROWS(&endpoint), {0}};
#else
    const option_row own[] = {{"--json", OPTION_FLAG, &json, NULL, "one object"}, {0}};
#endif
    int status;
    if (!cmd_begin(argc, argv, &common, own, &(cmd_words){.usage = usage, .is_configured = true}, &status))
        return status;
    report r = {0};
    tell(&r, "kvist", KVIST_VERSION);
    tell_cpu(&r, &common);
    tell_memory(&r);
    tell_gpu(&r);
    tell_model(&r, &common);
    tell_grammars(&r);
#ifdef KVIST_SHELL
    base_buf sandbox = {0};
    if (!tool_sandbox_describe(&sandbox)) base_buf_puts(&sandbox, "NOT confined: --mode all is refused");
    tell_buf(&r, "sandbox", &sandbox);
    /* As the shell reads them: a configured model is a local one, unless the endpoint is configured too. */
    endpoint.is_typed = options_are_given(argc, argv, "--endpoint");
    const bool is_served = !endpoint.is_typed || options_are_given(argc, argv, "--model");
    const bool is_wait_given = options_are_given(argc, argv, "--endpoint-wait");
    status = tell_endpoint(&r, &endpoint, is_wait_given, is_served ? common.model : NULL);
#endif
    tell_terminal(&r);
    if (json)
        printf("%s}\n", r.json.data);
    else
        fputs(r.text.data, stdout);
    base_buf_free(&r.text);
    base_buf_free(&r.json);
    return status;
}
