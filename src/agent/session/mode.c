/*
 * What runs without asking: the words of the modes, and which one holds.
 */
#include <string.h>

#include "agent/session/session_state.h"

static const char *const mode_words[] = {"plan", "ask", "edits", "all"};

const char *agent_mode_word(agent_mode m)
{
    return mode_words[m];
}

bool agent_mode_parse(const char *word, agent_mode *ret)
{
    for (int m = 0; m < 4; m++)
        if (!strcmp(word, mode_words[m])) {
            *ret = (agent_mode)m;
            return true;
        }
    return false;
}

int agent_set_mode(agent *a, agent_mode mode, base_err *err)
{
    if (mode == AGENT_MODE_ALL) {
        base_buf lines = {0};
        bool confined = tool_sandbox_describe(&lines);
        base_buf_free(&lines);
        if (!confined)
            return base_fail(err, BASE_E_UNSUPPORTED,
                "mode all needs a sandbox that confines commands, and this machine gives none (kvist doctor "
                "says why): use edits or ask");
    }
    a->settings.mode = mode;
    return 0;
}
