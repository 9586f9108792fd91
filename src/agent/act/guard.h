/* Is this the same again? For the loop guard, and for whoever executes a log again. Pure; any thread. */
#ifndef KVIST_AGENT_GUARD_H
#define KVIST_AGENT_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

/* Equal for calls that would do the same. */
uint64_t agent__call_key(const char *name, const base_json *arguments, base_str payload);
/* The text's end goes round in circles. */
bool agent__repeats(const char *text, size_t n);

#endif
