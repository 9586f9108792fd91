/*
 * The engine thread (contract: worker.h). Lines and decisions go in through a small locked list, messages
 * come out through a bounded queue with a descriptor. While the queue is full the engine waits for the
 * screen, never the other way round.
 */
#include "agent/command/skills.h"
#include "agent/session/session_state.h"
#include "agent/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/queue.h"

enum { QUEUE_CAPACITY = 4096 };

struct agent_worker {
    pthread_t thread;
    agent_worker_open_fn *open;
    void *open_user;
    base_queue *out;
    atomic_bool cancel;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    char **lines;
    size_t n_lines, cap_lines;
    bool stopping, waits_for_decision, has_decision;
    /* the engine thread does what nobody waits for: whoever wants something ends it by `cancel` */
    bool idling;
    bool is_working;          /* on a line */
    bool is_next_interrupted; /* the first that waits was interrupted before it was taken */
    agent_decision decision;
    bool has_mode;
    agent_mode mode;
    code_index *index; /* of the open session; it has a lock of its own */
    char **skills;     /* as agent_worker_skills gives them; NULL: not looked for yet */
    agent *agent;      /* the engine thread's; others only read the mode through has_mode */
};

void agent_worker_message_free(agent_worker_message *m)
{
    if (!m) return;
    free(m->text);
    agent_event_free(m->event);
    free(m);
}

static void free_message(void *m)
{
    agent_worker_message_free(m);
}

static void post(agent_worker *w, agent_worker_message m)
{
    agent_worker_message *copy = base_xmalloc(sizeof *copy);
    *copy = m;
    if (!base_queue_put(w->out, copy)) agent_worker_message_free(copy);
}

/* --- on the engine thread ------------------------------------------------------------------------------- */

static void on_event(void *user, const agent_event *e)
{
    agent_worker *w = user;
    if (e->type == AGENT_EVENT_approval_request) { /* before the screen can see it and decide */
        pthread_mutex_lock(&w->lock);
        w->waits_for_decision = true;
        pthread_mutex_unlock(&w->lock);
    }
    post(user, (agent_worker_message){.type = AGENT_WORKER_EVENT, .event = agent_event_copy(e)});
}

static void on_named(void *user, const char *id)
{
    post(user, (agent_worker_message){.type = AGENT_WORKER_NAMED, .text = base_xstrdup(id)});
}

static void on_progress(void *user, double share, const char *what)
{
    post(user,
        (agent_worker_message){.type = AGENT_WORKER_LOADING, .share = share, .text = base_xstrdup(what)});
}

static agent_decision on_approve(void *user, const agent_event *request)
{
    agent_worker *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->has_decision && !w->stopping && !atomic_load(&w->cancel))
        pthread_cond_wait(&w->wake, &w->lock);
    agent_decision d = w->has_decision
                           ? w->decision
                           : (agent_decision){.answer = AGENT_NO, .text = base_xstrdup("interrupted")};
    w->waits_for_decision = w->has_decision = false;
    pthread_mutex_unlock(&w->lock);
    return d;
}

static void on_idle_work(void *user, const char *what)
{
    post(user, (agent_worker_message){.type = AGENT_WORKER_DOING, .text = base_xstrdup(what)});
}

static void apply_mode(agent_worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool change = w->has_mode;
    agent_mode mode = w->mode;
    w->has_mode = false;
    pthread_mutex_unlock(&w->lock);
    if (!change) return;
    base_buf line = {0};
    base_buf_printf(&line, "/mode %s", agent_mode_word(mode));
    agent_submit(w->agent, line.data, NULL); /* says what became of it */
    base_buf_free(&line);
}

/* What nobody waits for, until somebody wants something: right behind opening (a line is being typed) only what serves that line. */
static void idle(agent_worker *w, bool is_opened)
{
    pthread_mutex_lock(&w->lock);
    w->idling = !w->stopping && !w->n_lines && !w->has_mode;
    bool going = w->idling;
    if (going) atomic_store(&w->cancel, false);
    pthread_mutex_unlock(&w->lock);
    if (!going) return;
    if (is_opened)
        agent_make_ready(w->agent);
    else
        agent_idle(w->agent, on_idle_work, w);
    pthread_mutex_lock(&w->lock);
    w->idling = false;
    pthread_mutex_unlock(&w->lock);
}

/* The next line, or NULL with *mode when only the mode changed; false: stop. */
static bool wait_for_work(agent_worker *w, char **line)
{
    pthread_mutex_lock(&w->lock);
    while (!w->stopping && !w->n_lines && !w->has_mode) pthread_cond_wait(&w->wake, &w->lock);
    *line = NULL;
    bool going = !w->stopping;
    const bool takes = going && w->n_lines && !w->has_mode;
    /* An interrupt that came while nothing waited was for nothing. */
    if (going) atomic_store(&w->cancel, takes && w->is_next_interrupted);
    if (takes) {
        *line = w->lines[0];
        memmove(w->lines, w->lines + 1, --w->n_lines * sizeof *w->lines);
        w->is_working = true;
        w->is_next_interrupted = false;
    }
    pthread_mutex_unlock(&w->lock);
    return going;
}

static void free_strings(char **strings)
{
    for (char **s = strings; s && *s; s++) free(*s);
    free(strings);
}

/* What /NAME means in this tree, for completion and help: looked for on this thread, which may read the tree. */
static void look_for_skills(agent_worker *w)
{
    agent_skills all;
    agent_skills_find(w->agent->workspace, &all);
    char **list = base_xcalloc(2 * all.n + 1, sizeof *list), **end = list;
    for (size_t i = 0; i < all.n; i++) {
        if (all.all[i].wrong) continue; /* /help says why */
        *end++ = base_xstrdup(all.all[i].name);
        *end++ = base_xstrdup(all.all[i].about);
    }
    agent_skills_free(&all);
    pthread_mutex_lock(&w->lock);
    char **before = w->skills;
    w->skills = list;
    pthread_mutex_unlock(&w->lock);
    free_strings(before);
}

static void *run(void *user)
{
    agent_worker *w = user;
    agent_host host = {.user = w, .event = on_event, .named = on_named, .approve = on_approve};
    base_err err = {0};
    if (w->open(w->open_user, &host, &w->cancel, on_progress, &w->agent, &err)) {
        post(w, (agent_worker_message){.type = AGENT_WORKER_FAILED, .text = base_xstrdup(err.msg)});
        return NULL;
    }
    pthread_mutex_lock(&w->lock);
    w->index = tool_workspace_index(w->agent->workspace);
    pthread_mutex_unlock(&w->lock);
    look_for_skills(w);
    post(w, (agent_worker_message){.type = AGENT_WORKER_READY});
    idle(w, true);
    for (char *line; wait_for_work(w, &line); free(line)) {
        apply_mode(w);
        if (!line) continue;
        agent_submit(w->agent, line, NULL); /* errors came as events */
        look_for_skills(w);
        pthread_mutex_lock(&w->lock);
        w->is_working = false;
        pthread_mutex_unlock(&w->lock);
        post(w, (agent_worker_message){.type = AGENT_WORKER_IDLE});
        agent_settle(w->agent); /* the person sees the end of the turn before its rows are written */
        idle(w, false);
    }
    agent_end(w->agent);
    return NULL;
}

/* --- from the UI thread --------------------------------------------------------------------------------- */

int agent_worker_start(agent_worker **ret, agent_worker_open_fn *open, void *user, base_err *err)
{
    agent_worker *w = base_xcalloc(1, sizeof *w);
    w->open = open;
    w->open_user = user;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    int rc = base_queue_new(&w->out, QUEUE_CAPACITY, err);
    if (!rc && pthread_create(&w->thread, NULL, run, w)) {
        base_queue_free(w->out, free_message);
        rc = base_fail(err, BASE_E_IO, "the engine thread could not be started");
    }
    if (rc) {
        free(w);
        return rc;
    }
    *ret = w;
    return 0;
}

void agent_worker_stop(agent_worker *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    atomic_store(&w->cancel, true);
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    base_queue_close(w->out); /* nobody reads any more: what is posted is freed */
    pthread_join(w->thread, NULL);
    base_queue_free(w->out, free_message);
    for (size_t i = 0; i < w->n_lines; i++) free(w->lines[i]);
    if (w->has_decision) free(w->decision.text);
    free(w->lines);
    free_strings(w->skills);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

char **agent_worker_symbols(agent_worker *w)
{
    enum { MOST = 20000 };
    pthread_mutex_lock(&w->lock);
    char **symbols = w->index ? code_index_symbols(w->index, MOST) : NULL;
    pthread_mutex_unlock(&w->lock);
    return symbols;
}

char **agent_worker_skills(agent_worker *w)
{
    pthread_mutex_lock(&w->lock);
    size_t n = 0;
    while (w->skills && w->skills[n]) n++;
    char **copy = base_xcalloc(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++) copy[i] = base_xstrdup(w->skills[i]);
    pthread_mutex_unlock(&w->lock);
    return copy;
}

int agent_worker_fd(const agent_worker *w)
{
    return base_queue_fd(w->out);
}

agent_worker_message *agent_worker_take(agent_worker *w)
{
    return base_queue_try_take(w->out);
}

void agent_worker_submit(agent_worker *w, const char *text)
{
    pthread_mutex_lock(&w->lock);
    base_grow(&w->lines, &w->cap_lines, w->n_lines + 1, sizeof *w->lines);
    w->lines[w->n_lines++] = base_xstrdup(text);
    if (w->idling) atomic_store(&w->cancel, true);
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void agent_worker_decide(agent_worker *w, agent_answer answer, const char *text)
{
    pthread_mutex_lock(&w->lock);
    if (w->waits_for_decision && !w->has_decision) {
        w->decision = (agent_decision){answer, base_xstrdup(text)};
        w->has_decision = true;
        pthread_cond_broadcast(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
}

void agent_worker_set_mode(agent_worker *w, agent_mode mode)
{
    pthread_mutex_lock(&w->lock);
    w->mode = mode;
    w->has_mode = true;
    if (w->idling) atomic_store(&w->cancel, true);
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void agent_worker_interrupt(agent_worker *w)
{
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->cancel, true);
    w->is_next_interrupted = !w->is_working && w->n_lines;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
}
