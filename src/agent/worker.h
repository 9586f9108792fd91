/*
 * The engine thread. The UI thread hands it lines and decisions and takes events from a queue whose
 * descriptor it polls beside the terminal. Opening (the model loads for seconds) happens on the engine thread
 * too, so the prompt accepts typing at once.
 */
#ifndef KVIST_AGENT_WORKER_H
#define KVIST_AGENT_WORKER_H

#include "agent/agent.h"

typedef struct agent_worker agent_worker;

/*
 * Called on the engine thread: opens engine, workspace and agent with this host. `progress` posts a notice
 * while it works.
 */
typedef int agent_worker_open_fn(void *user, const agent_host *host, atomic_bool *cancel,
    void (*progress)(void *host_user, double share, const char *what), agent **ret, base_err *err);

/* Starts the engine thread, which calls `open` first; whether that worked it says by a message. BASE_E_IO: no thread. */
int agent_worker_start(agent_worker **ret, agent_worker_open_fn *open, void *user, base_err *err);
void agent_worker_stop(agent_worker *w); /* cancels, ends the session, joins */

int agent_worker_fd(const agent_worker *w); /* readable: agent_worker_take has something */

/* What the worker tells. */
typedef enum agent_worker_message_type {
    AGENT_WORKER_LOADING, /* share, what */
    AGENT_WORKER_NAMED,   /* text: the session's id; what was said in it came before, its model loads now */
    AGENT_WORKER_READY,   /* the session is open */
    AGENT_WORKER_EVENT,   /* event */
    AGENT_WORKER_IDLE,    /* the submitted line is done (also after errors); the next queued one may go */
    AGENT_WORKER_DOING,   /* text: what is done while nobody waits; NULL: nothing any more */
    AGENT_WORKER_FAILED,  /* opening failed: text; nothing more comes */
} agent_worker_message_type;
typedef struct agent_worker_message {
    agent_worker_message_type type;
    double share;
    char *text;
    agent_event *event;
} agent_worker_message;
agent_worker_message *agent_worker_take(agent_worker *w); /* NULL: nothing now */
void agent_worker_message_free(agent_worker_message *m);

/*
 * Names of functions and types of the tree for completion, as code_index_symbols; NULL while the session
 * opens. Any thread.
 */
char **agent_worker_symbols(agent_worker *w);
/* Skills and commands of the person: name, what it is, name, ...; NULL-terminated, the caller frees each. */
char **agent_worker_skills(agent_worker *w);

/* From the UI thread. */
void agent_worker_submit(agent_worker *w, const char *text); /* queued until idle */
/* answers the approval that waits */
void agent_worker_decide(agent_worker *w, agent_answer answer, const char *text);
void agent_worker_set_mode(agent_worker *w, agent_mode mode);
void agent_worker_interrupt(agent_worker *w); /* Esc: cancels what runs; a waiting approval becomes no */

#endif
