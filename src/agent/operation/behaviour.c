/*
 * "Warn when the file is empty": asked for other behaviour of what it sees, a small model answers with advice, or goes in
 * circles over which definition to take. The call for the best one is begun, behind a thought of which line has to change:
 * without one the model copies the old text. Where it tells what it doubts it may: a copy is seen, and a doubt comes next,
 * but a wrong line that it has named is written.
 */
#include "agent/asked/asked.h"
#include "agent/operation/operation.h"

int agent__open_behaviour(agent *a, agent_opening *opening, base_err *err)
{
    const agent_asked *x = &a->asked;
    if (x->n_aimed || x->refused || !agent__aim_at_next_meant(a)) return BASE_OK;
    a->fix.open_call = false;
    const int rc = agent__open_call(a, false, opening, err);
    if (a->engine->can & ENGINE_DOUBTS) base_buf_clear(&opening->thought);
    return rc;
}
