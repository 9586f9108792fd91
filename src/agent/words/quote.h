/* Lines of the session as they are said again behind a request that they answer. Pure; any thread. */
#ifndef KVIST_AGENT_WORDS_QUOTE_H
#define KVIST_AGENT_WORDS_QUOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Which of lines ([n]) are said: those that have a name of code that the request asks for, where it asks for any, else one of
 * its words; not one of whose words of the request another line has all and more, nor one that the newest text, `recent`, has.
 */
void agent__choose_quotes(
    const char *request, const base_buf *recent, const base_buf *lines, uint32_t n, bool *ret_said);
/* Appends a line without the blanks around it, and in front of the first one words that say what it is. */
void agent__put_quote(const base_buf *line, bool is_first, base_buf *out);

#endif
