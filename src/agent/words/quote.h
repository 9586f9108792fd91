/* Lines of the session as they are said again behind a request that they answer. Pure; any thread. */
#ifndef KVIST_AGENT_WORDS_QUOTE_H
#define KVIST_AGENT_WORDS_QUOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Which of lines ([n]) are said: not one of whose words of the request another line has all and more (of lines like each other
 * that leaves the one with the name that is asked for, where one has it), nor one that the newest text, `recent`, has.
 */
void agent__choose_quotes(
    const char *request, const base_buf *recent, const base_buf *lines, uint32_t n, bool *ret_said);
/* Appends a line without the blanks around it, and in front of the first one words that say what it is. */
void agent__put_quote(const base_buf *line, bool is_first, base_buf *out);

#endif
