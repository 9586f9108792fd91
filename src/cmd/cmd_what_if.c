/* kvist what-if: a logged session computed again under other settings, beside itself (src/whatif). */
#include "cmd/cmd_what_if.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/door.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/what_if_sides.h"
#include "cmd/what_if_table.h"

static const char usage[] =
    "usage: kvist what-if [ID] [--kv-budget ROWS] [--kv-policy "
    "NAME] [--repair ROWS|off] [--kv-set NAME=VALUE]\n"
    "                          [--model FILE|NAME] [--from N --free] [--json]\n\n"
    "Computes a logged session again, once with its own "
    "settings and once with those given here, over the text\n"
    "that was recorded, and prints what differs: rows evicted and brought back, and at which tokens of the\n"
    "answers the model would have preferred another one. "
    "ID may be a prefix; without one: the latest session.\n"
    "With --from N --free the changed side answers by itself "
    "from turn N on, and its answers and calls are set\n"
    "beside what was recorded. No tool runs for that: a call "
    "that the record has is answered from it, a file is\n"
    "read where it still holds what it held, and behind any other call that side ends, with a sentence.\n"
    "The session stays as it is. What is found is kept as its child (kvist log lists it, kvist log delete\n"
    "removes it); after Ctrl+C the same command goes on behind the last finished turn.\n";

static const char more[] =
    "KL is how far the two expectations of the next token "
    "are apart, in nats a token of the answers; \"beside\"\n"
    "is how many evicted rows a token read for itself. Time is that of reading the recorded text, which\n"
    "computes answers in batches: it compares the two sides, "
    "not a session's speed. A --model of another vocabulary\n"
    "reads the text as tokens of its own, and nats a byte are "
    "compared; so it is with a session that was computed\n"
    "elsewhere, of which the log has texts and calls only.\n";

typedef struct printing {
    bool json, silent; /* silent: a screen shows it afterwards */
    uint32_t n_turns;  /* of the session */
    char *id;          /* of the what-if, once it is known */
} printing;

static void print_event(void *user, const agent_event *e)
{
    printing *p = user;
    if (e->type == AGENT_EVENT_what_if && !p->id) p->id = base_xstrdup(e->what_if.session);
    if (p->silent) return;
    if (p->json) {
        base_buf line = {0};
        agent_event_write(e, &line);
        puts(line.data);
        base_buf_free(&line);
        return;
    }
    base_door_progress(NULL);
    what_if_print(e);
}

static void print_progress(void *user, uint32_t turn, uint32_t done, uint32_t total)
{
    const printing *p = user;
    const uint32_t percent = total ? (uint32_t)((uint64_t)done * 100 / total) : 100;
    char at[48], line[128];
    snprintf(at, sizeof at, turn ? "turn %u of %u" : "the prompt in front of turn 1", turn, p->n_turns);
    snprintf(line, sizeof line, "computing again: %u%%, %s (Ctrl+C ends it and keeps finished turns)",
        percent, at);
    if (!p->json) base_door_progress(line);
}

static atomic_bool cancelled;

static void on_signal(int number)
{
    atomic_store(&cancelled, true);
}

static int check_from(const whatif_schedule *s, uint32_t from, base_err *err)
{
    uint32_t last = 0;
    for (size_t i = 0; i < s->n_steps; i++)
        if (s->steps[i].kind == WHATIF_TURN && s->steps[i].turn > last) last = s->steps[i].turn;
    if (from <= last) return 0;
    return base_fail(err, BASE_E_USAGE,
        "there is no turn %u to answer from: session %s has %u that came to an end", from, s->id, last);
}

static int compare(agent_log *l, what_if_sides *d, printing *p, base_err *err)
{
    kv_options changed = {.policy = NULL};
    int rc = check_from(d->schedule, d->free_from, err);
    if (!rc) rc = what_if_sides_open(d, err);
    if (!rc) rc = what_if_sides_changed(d, &changed, err);
    if (rc) return rc;
    const kv_options original = what_if_sides_original(d);
    if (d->is_apart && d->free_from)
        return base_fail(err, BASE_E_USAGE,
            "--free compares answers token by token, and %.100s has other tokens than session %s was made "
            "with: without --free the texts are compared by bytes",
            model_get_info(d->models[1])->name, d->schedule->id);
    if (!d->is_apart && !d->free_from && what_if_sides_are_same(d, &original, &changed))
        return base_fail(err, BASE_E_USAGE,
            "these are the settings that session %s had: nothing would differ; give another --kv-budget, "
            "--kv-policy, --repair, --kv-set or --model",
            d->schedule->id);
    what_if_sides_describe(d, &original, &changed);
    p->n_turns = d->schedule->n_turns;
    d->reader.root = d->schedule->root;
    if (d->free_from) d->grammar = whatif_model_grammar(d->models[1]);
    whatif_options o = {.original = {whatif_model_engine(d->models[0]), original, false, d->names[0].data},
        .changed = {whatif_model_engine(d->models[1]), changed, d->given->budget != NULL, d->names[1].data},
        .settings = d->settings.data,
        .phrase = d->phrase.data,
        .missing = d->missing.data,
        .free_from = d->free_from,
        .read = whatif_reader_read,
        .read_user = &d->reader,
        .cancel = &cancelled,
        .user = p,
        .event = print_event,
        .progress = print_progress};
    o.changed.engine.grammar = d->grammar;
    o.original.is_absent = d->schedule->is_elsewhere;
    if (d->is_apart) rc = whatif_schedule_translate(&d->own, d->schedule, &o.changed.engine, err);
    if (rc) return rc;
    o.changed.own = d->own;
    bool was_known = false;
    rc = whatif_run(l, d->schedule, &o, &was_known, err);
    if (!p->json) base_door_progress(NULL);
    if (!rc && was_known && !p->silent) fprintf(stderr, "kvist: kept from before; nothing was computed\n");
    if (rc == BASE_E_CANCELLED)
        rc = base_fail(err, BASE_E_CANCELLED,
            "interrupted; the turns that are through are kept, and the same command goes on behind them");
    return rc;
}

static bool changes_something(const common_options *o)
{
    return o->budget || o->policy || o->repair || o->n_set || o->ctx || (o->model && !o->is_model_configured);
}

enum { NO_FROM = INT_MIN };

/* --from N --free */
typedef struct free_words {
    int64_t from;
    bool is_free;
} free_words;

static int check_free(int64_t from, bool is_free, base_err *err)
{
    if (from == NO_FROM) return 0;
    if (!is_free)
        return base_fail(err, BASE_E_USAGE, "--from N goes with --free, which answers from turn N on");
    return from >= 1 && from <= UINT32_MAX ? 0 : base_fail(err, BASE_E_USAGE, "--from counts turns from 1");
}

static int what_if(
    const common_options *given, uint32_t free_from, const char *prefix, printing *p, base_err *err)
{
    agent_log *l = NULL;
    char *id = NULL;
    what_if_sides d = {.given = given, .free_from = free_from};
    int rc = free_from || changes_something(given)
                 ? 0
                 : base_fail(err, BASE_E_USAGE,
                       "what if what? Give --kv-budget, --kv-policy, --repair, --kv-set, --model or --free");
    if (!rc) rc = agent_log_open(&l, NULL, false, err);
    if (!rc) rc = agent_log_find(l, prefix, NULL, &id, err);
    if (!rc) rc = whatif_schedule_read(&d.schedule, l, id, err);
    if (!rc) rc = compare(l, &d, p, err);
    what_if_sides_close(&d);
    free(id);
    agent_log_close(l);
    return rc;
}

/* The words of the command line. p->id is the comparison's session afterwards; the caller frees. */
static int run_words(
    int argc, char **argv, const char *help, const option_row *own, const free_words *freely, printing *p)
{
    common_options given = COMMON_OPTIONS_DEFAULTS;
    base_err err = {0};
    const char **rest = base_xcalloc((size_t)argc + 1, sizeof *rest);
    uint32_t n_rest = 0;
    int status, rc = 0;
    const cmd_words words = {.usage = help, .more = more, .rest = rest, .n_rest = &n_rest};
    if (cmd_begin(argc, argv, &given, own, &words, &status)) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_RESETHAND}, before;
        sigaction(SIGINT, &action, &before); /* a second Ctrl+C ends the program */
        rc = n_rest > 1
                 ? base_fail(&err, BASE_E_USAGE, "one session at most; \"%s\" is a second one", rest[1])
                 : check_free(freely->from, freely->is_free, &err);
        if (!rc && n_rest <= 1) {
            const uint32_t from = !freely->is_free ? 0 : freely->from == NO_FROM ? 1 : (uint32_t)freely->from;
            rc = what_if(&given, from, n_rest ? rest[0] : "", p, &err);
        }
        sigaction(SIGINT, &before, NULL);
    }
    free(rest);
    return rc ? cmd_complain(&err) : status;
}

#define FREE_ROWS(words)                                                                                     \
    {"--from", OPTION_INTEGER, &(words).from, "N", "with --free: the first turn that is answered freely",    \
        "1"},                                                                                                \
    {                                                                                                        \
        "--free", OPTION_FLAG, &(words).is_free, NULL, "the changed side answers by itself"                  \
    }

int cmd_what_if(int argc, char **argv)
{
    printing p = {.json = false};
    free_words freely = {.from = NO_FROM};
    const option_row own[] = {FREE_ROWS(freely),
        {"--json", OPTION_FLAG, &p.json, NULL, "every result as an event, one a line"}, {0}};
    const int status = run_words(argc, argv, usage, own, &freely, &p);
    free(p.id);
    return status;
}

int cmd_what_if_silent(int argc, char **argv, char **ret_id)
{
    printing p = {.silent = true};
    bool what_if_given;
    free_words freely = {.from = NO_FROM};
    const option_row own[] = {FREE_ROWS(freely), {"--what-if", OPTION_FLAG, &what_if_given}, {0}};
    const int status = run_words(argc, argv, usage, own, &freely, &p);
    if (status) {
        free(p.id);
        p.id = NULL;
    }
    *ret_id = p.id;
    return status;
}
