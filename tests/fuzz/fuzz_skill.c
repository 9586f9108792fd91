/* Front matter: what is read is a name of small letters and a description of one printable line; the body lies in the text. */
#include "agent/command/skill_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    agent_skill_text t;
    base_err err = {0};
    if (agent_skill_text_parse((const char *)bytes, n, &t, &err)) {
        if (!*err.msg || t.name || t.description) abort();
        return 0;
    }
    if (t.body > n) abort();
    if (t.name && !agent_skill_is_name(t.name, strlen(t.name))) abort();
    if (t.description && (!*t.description || strlen(t.description) > AGENT_SKILL_MOST_ABOUT)) abort();
    if (t.description && !base_utf8_valid(t.description, strlen(t.description))) abort();
    for (const char *c = t.description; c && *c; c++)
        if ((unsigned char)*c < ' ') abort();
    agent_skill_text_free(&t);
    return 0;
}
