/*
 * A stage for tests of the agent: a temporary tree and home, the scripted engine in a session, and a host
 * that writes down every event, answers approvals, cancels at a token and dies at an event.
 */
#ifndef KVIST_TESTS_AGENT_STAGE_H
#define KVIST_TESTS_AGENT_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/session/session_state.h"
#include "agent/start.h"
#include "base/fs.h"
#include "base/mem.h"
#include "engine_chat.h"

extern char base_folder[64], tree[96],
    script_path[96]; /* KVIST_HOME, the working tree, the engine's script */

typedef struct host {
    base_buf json;    /* every event as --json prints it */
    base_buf outline; /* "user tool_call tool_result ..." without tokens, appends and spans */
    agent_answer answer;
    const char *text;
    uint32_t asked;
    atomic_bool cancel;
    bool cancel_at_question;      /* the person presses Esc at a question */
    int cancel_at_token, exit_at; /* exit_at: event type at which the process dies, -1: never */
    uint32_t cancel_at_prefill; /* tokens of a wait that are computed when the person presses Esc; 0: never */
    uint32_t n_tokens;
} host;

extern agent_configured_command
    stage_configured[AGENT_N_CONFIGURED]; /* of the next session; make_folders: none */

int make_folders(void **state);
int drop_folders(void **state);
void put_file(const char *name, const char *text);
char *get_file(const char *name); /* "(missing)" */
void assert_file(const char *name, const char *text);

void host_event(void *user, const agent_event *e);
host new_host(void);
void free_host(host *h);
agent_session *open_session(host *h, const char *script, agent_mode mode, const char *resume, bool ask);
/* A second session of what `id` has (agent_session_options.fork). */
agent_session *fork_session(host *h, const char *script, const char *id);
int submit(agent_session *s, host *h, const char *text);
bool told(const host *h, const char *text); /* somewhere in the events */
/*
 * The outline is this one; an engine without rows makes no plans, so "plan:..." is not looked for there.
 */
void assert_outline(const host *h, const char *expected);
void assert_outline_has(const host *h, const char *part);
/*
 * The same of what an engine of text only was asked with last: it has this text, or has it not. Of the other
 * engine nothing is asserted.
 */
void assert_sent(agent_session *s, const char *text, bool has);
/* A number of the last event whose line holds `type`; -1: none. */
long long last_number(const host *h, const char *type, const char *member);
char *logged(const char *id); /* a session's events as its log has them, a line each */

#define PROGRAM "add() {\n    echo $(($1 - $2))\n}\n"
#define FIXED   "add() {\n    echo $(($1 + $2))\n}\n"
#define TEST    ". ./add.sh\n[ \"$(add 2 3)\" = 5 ]\n"
#define NO      "answer Added both, really.\n" /* words, and no call */
#define REWRITE(body)                                                                                        \
    "answer <<X\nThe sign is wrong.\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"add.sh\", "  \
    "\"name\": \"add\"}}</tools>\n```sh\n" body "```\nX\n"
#define READ "answer <tools>{\"name\": \"read\", \"arguments\": {\"path\": \"add.sh\"}}</tools>\n"

/*
 * Every test of the agent runs on the scripted engine over the cache and on one without ids, rows, scores and
 * branches (engine_chat.h). What needs more says so: NEEDS("rows: ...") at its beginning leaves it out on the
 * second, and prints why.
 */
extern bool stage_chat;
#define NEEDS(what)                                                                                          \
    do {                                                                                                     \
        if (stage_chat) {                                                                                    \
            print_message("not without %s\n", what);                                                         \
            skip();                                                                                          \
        }                                                                                                    \
    } while (0)
/*
 * KVIST_HOME is the test's own, and the grammars lie in the person's: find_grammars, first in main. A test that is nothing
 * without one begins with NEEDS_GRAMMAR: nothing is renamed, deleted or given other parameters then.
 */
void find_grammars(void);
bool has_grammars(void);
#define NEEDS_GRAMMAR                                                                                        \
    do {                                                                                                     \
        NEEDS("a grammar");                                                                                  \
        if (!has_grammars()) skip();                                                                         \
    } while (0)
#define RUN_ON_BOTH(tests) run_on_both(tests, sizeof(tests) / sizeof *(tests))
int run_on_both(const struct CMUnitTest *tests, size_t n);

void put_program(void); /* add.sh, wrong, and its test */
void put_notes(void);   /* notes1.txt to notes4.txt: what a budget has no room for beside the fixed prompt */
#define NOTES(n) "answer <tools>{\"name\": \"read\", \"arguments\": {\"path\": \"notes" n ".txt\"}}</tools>\n"

#define TEST_CASE(f) cmocka_unit_test_setup_teardown(f, make_folders, drop_folders)

#endif
