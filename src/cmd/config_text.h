/*
 * The text of a configuration file: "key = value" a line, "#" begins a comment where a line or a word begins,
 * a value in double quotes keeps its blanks and "#" (\" and \\ inside). Pure; the file is foreign.
 */
#ifndef KVIST_CMD_CONFIG_TEXT_H
#define KVIST_CMD_CONFIG_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CONFIG_MOST_BYTES = 64 << 10 };

/* One setting. What it returns ends the reading when it is not 0. */
typedef int config_setting_fn(void *user, const char *key, const char *value, uint32_t line, base_err *err);

/*
 * Calls fn for each setting in order. BASE_E_FORMAT for a line that is none, with *ret_line; fn's own code
 * else, with the line that it was about.
 */
int config_text_read(
    const char *text, size_t n, config_setting_fn *fn, void *user, uint32_t *ret_line, base_err *err);

#endif
