/* How well a reading fits the request's words, beside what the model says (contract: readings.h). */
#include "agent/turn/readings.h"

/*
 * Nats. Conditional logit over the readings of tests/requests/wordings.jsonl, both halves, and of opened requests for something else,
 * held to a guess where no sentence says otherwise. How far they hold for repositories that they were not fitted on: docs/diary.md,
 * "What a request means, said by the model".
 */
static const double model_share = .73;

static const double kinds[AGENT_N_READINGS] = {
    [AGENT_READ_RENAME] = 1.3,
    [AGENT_READ_RENAME_BOTH] = 6.4,
    [AGENT_READ_RENAME_PARAMETER] = 4.6,
    [AGENT_READ_RENAME_PARAMETERS] = 6.0,
    [AGENT_READ_MOVE] = .6,
    [AGENT_READ_MOVE_BOTH] = 4.9,
    [AGENT_READ_DELETE] = 1.1,
    [AGENT_READ_DELETE_BOTH] = 4.5,
    [AGENT_READ_DROP] = 5.3,
    [AGENT_READ_INSERT] = 5.3,
    [AGENT_READ_REORDER] = 5.1,
    [AGENT_READ_ADD] = -.7,
    [AGENT_READ_CHANGE] = -1.2,
    [AGENT_READ_TEST] = -.1,
    [AGENT_READ_ANSWER] = -1.2,
};

static const double signs[AGENT_N_SIGNS] = {
    [AGENT_SIGN_WORDS] = 2.0,
    [AGENT_SIGN_FRESH_LEFT] = -1.4,
    [AGENT_SIGN_KNOWN_LEFT] = -.2,
    [AGENT_SIGN_FILE_LEFT] = -.4,
    [AGENT_SIGN_DESCRIBED] = 3.1,
    [AGENT_SIGN_PLACE] = -1.5,
    [AGENT_SIGN_UNNAMED] = -3.2,
    [AGENT_SIGN_NO_GOING] = -2.9,
    [AGENT_SIGN_NO_NAMING] = -.4,
    [AGENT_SIGN_NO_CARRYING] = -2.0,
    [AGENT_SIGN_NO_TAKING] = -3.3,
    [AGENT_SIGN_PARAMETER] = -1.8,
    [AGENT_SIGN_MAKING] = -1.1,
    [AGENT_SIGN_PART] = -2.0,
    [AGENT_SIGN_BEHAVIOUR] = -1.8,
};

double agent__weight_of_model(void)
{
    return model_share;
}

double agent__weigh_signs(const agent_reading *r)
{
    double sum = kinds[r->kind];
    for (int i = 0; i < AGENT_N_SIGNS; i++) sum += signs[i] * r->signs[i];
    return sum;
}
