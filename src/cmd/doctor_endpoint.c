/* What `kvist doctor` says of the engine that --endpoint names: what works there, asked of it where it can be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/doctor.h"
#include "remote/reuse.h"
#include "remote/score.h"

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
static void tell_features(doctor_report *r, const remote_endpoint *e)
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

static void tell_reuse(doctor_report *r, remote_endpoint *e)
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
        base_buf_printf(&line, "not known whether text behind a cut has to be computed again: %s", err.msg);
    else
        base_buf_printf(&line,
            "text behind a cut is %s (n_cache_reuse): %u tokens found, %u in front of the cut, %u behind it",
            reuse.works ? "moved, not computed again" : "computed again", reuse.found, reuse.n_kept,
            reuse.n_behind);
    doctor_tell_buf(r, "cuts", &line);
}

/* Where an engine takes ids, whether it tells what its model doubts is asked of some words that no tree has. */
static void tell_doubts(doctor_report *r, remote_endpoint *e)
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
    doctor_tell_buf(r, "doubts", &line);
    model_ids_free(&ids);
}

/* Nothing is told until the cache changes, so silence says nothing. */
static void tell_events(doctor_report *r, const remote_endpoint *e)
{
    if (e->wire == &remote_wire_llama || !e->wire->has_ids) return;
    base_buf line = {0};
    base_buf_printf(&line, "its cache is kept in blocks of %u token%s; %s", e->block,
        e->block == 1 ? "" : "s",
        e->events ? "where they are is listened to" : "--engine-events says where each is");
    doctor_tell_buf(r, "blocks", &line);
}

/* On stderr: what is printed is the report. */
static void tell_wait(void *user, const char *sentence)
{
    fprintf(stderr, "kvist: %s\n", sentence);
}

/* What is known of an engine that answers. */
static void tell_engine(doctor_report *r, remote_endpoint *e)
{
    base_buf line = {0};
    remote_endpoint_describe(e, &line);
    doctor_tell_buf(r, "endpoint", &line);
    tell_features(r, e);
    tell_doubts(r, e);
    tell_reuse(r, e);
    tell_events(r, e);
    if (e->why_chat) doctor_tell(r, "by chat", e->why_chat);
    if (e->differs) doctor_tell(r, "template", e->differs);
    base_buf_printf(&line, "%s; its text %s",
        e->wire->has_ids ? "tokens are the model's" : "tokens are estimates",
        remote_http_address(e->http)->is_loopback ? "stays on this machine" : "leaves this machine");
    doctor_tell_buf(r, "sent", &line);
}

int doctor_tell_endpoint(
    doctor_report *r, const endpoint_words *words, bool is_wait_given, const char *served)
{
    enum { GIVE_UP_MS = 3000 };
    endpoint_choice choice;
    remote_endpoint *e = NULL;
    base_err err = {0};
    int rc = endpoint_resolve(words, served, &choice, &err);
    if (!rc && choice.is_chosen) {
        remote_limits *limits = &choice.options.http.limits;
        limits->first_ms = limits->give_up_ms;
        if (!is_wait_given) limits->give_up_ms = GIVE_UP_MS;
        choice.options.http.waits = tell_wait;
        rc = remote_endpoint_open(&e, &choice.options, &err);
    }
    if (rc)
        doctor_tell(r, "endpoint", err.msg);
    else if (!e)
        doctor_tell(r, "endpoint", "none: the model is local");
    if (e) tell_engine(r, e);
    remote_endpoint_close(e);
    endpoint_choice_free(&choice);
    return rc ? CMD_FAILED : CMD_OK;
}
