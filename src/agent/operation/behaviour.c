/*
 * "Warn when the file is empty": asked for other behaviour of what it sees, a small model answers with advice, or goes in
 * circles over which definition to take. The call for the best one is begun, behind a thought of which line has to change:
 * without one the model copies the old text.
 */
#include "agent/asked/asked.h"
#include "agent/operation/operation.h"

int agent__open_behaviour(agent *a, agent_opening *opening, base_err *err)
{
    const agent_asked *x = &a->asked;
    if (x->n_aimed || x->refused || !agent__aim_at_next_meant(a)) return BASE_OK;
    a->fix.open_call = false;
    return agent__open_call(a, false, opening, err);
}
