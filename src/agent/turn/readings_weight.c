/* How well a reading fits the request's words, beside what the model says (contract: readings.h). */
#include "agent/turn/readings.h"

/*
 * Nats: scripts/fit-readings, ridge .6, what means no operation counting twice, over the opened sentences of tests/requests: all of
 * wordings-c.jsonl and wordings-d.jsonl, and the first repositories of wordings.jsonl. How far they hold for repositories that they
 * were not fitted on: docs/diary.md, "What a request means, said by the model".
 */

/* How much a nat of the model's counts: of a definition that is named, and of one that is described. */
static const double model_shares[2] = {0.28, 0.11};

static const double kinds[AGENT_N_READINGS] = {
    [AGENT_READ_RENAME] = -0.07,
    [AGENT_READ_RENAME_BOTH] = 2.33,
    [AGENT_READ_RENAME_PARAMETER] = -0.22,
    [AGENT_READ_RENAME_PARAMETERS] = 1.54,
    [AGENT_READ_MOVE] = 0.12,
    [AGENT_READ_MOVE_BOTH] = 2.26,
    [AGENT_READ_DELETE] = -1.09,
    [AGENT_READ_DELETE_BOTH] = 1.02,
    [AGENT_READ_DROP] = 1.24,
    [AGENT_READ_INSERT] = 0.59,
    [AGENT_READ_REORDER] = 1.02,
    [AGENT_READ_ADD] = -0.57,
    [AGENT_READ_CHANGE] = -2.03,
    [AGENT_READ_TEST] = -0.80,
    [AGENT_READ_ANSWER] = -5.34,
};

static const double signs[AGENT_N_SIGNS] = {
    [AGENT_SIGN_WORDS] = 0.37,
    [AGENT_SIGN_FRESH_LEFT] = -1.38,
    [AGENT_SIGN_KNOWN_LEFT] = 0.27,
    [AGENT_SIGN_FILE_LEFT] = -1.24,
    [AGENT_SIGN_DESCRIBED] = -0.41,
    [AGENT_SIGN_FITS_WORSE] = -0.26,
    [AGENT_SIGN_INSIDE] = 0.47,
    [AGENT_SIGN_PLAIN] = -0.38,
    [AGENT_SIGN_ALIKE] = 0.69,
    [AGENT_SIGN_UNLIKE] = -1.54,
    [AGENT_SIGN_PLACE] = -1.06,
    [AGENT_SIGN_OWNER] = -1.23,
    [AGENT_SIGN_UNNAMED] = -0.38,
    [AGENT_SIGN_NO_GOING] = -1.79,
    [AGENT_SIGN_NO_NAMING] = -1.03,
    [AGENT_SIGN_NO_CARRYING] = 0.58,
    [AGENT_SIGN_NO_TAKING] = -2.50,
    [AGENT_SIGN_NO_ORDER] = -1.08,
    [AGENT_SIGN_NO_MAKING] = -0.48,
    [AGENT_SIGN_NO_TEST] = -1.35,
    [AGENT_SIGN_NO_QUESTION] = -2.55,
    [AGENT_SIGN_VERB] = 0.55,
    [AGENT_SIGN_OTHER_VERB] = 0.16,
    [AGENT_SIGN_PARAMETER] = -0.25,
    [AGENT_SIGN_MAKING] = -0.65,
    [AGENT_SIGN_PART] = -2.27,
    [AGENT_SIGN_BEHAVIOUR] = 0.24,
    [AGENT_SIGN_DOCUMENT] = -2.98,
    [AGENT_SIGN_TEST] = -0.31,
    [AGENT_SIGN_CONDITION] = -1.18,
    [AGENT_SIGN_ACTS] = -1.94,
};

double agent__weight_of_model(const agent_reading *r)
{
    return model_shares[r->signs[AGENT_SIGN_DESCRIBED] != 0];
}

double agent__weigh_signs(const agent_reading *r)
{
    double sum = kinds[r->kind];
    for (int i = 0; i < AGENT_N_SIGNS; i++) sum += signs[i] * r->signs[i];
    return sum;
}
