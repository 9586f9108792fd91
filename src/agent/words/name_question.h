/* Questions whose answer is a name of the tree, and those whose answer is one name. Pure; any thread. */
#ifndef KVIST_AGENT_WORDS_NAME_QUESTION_H
#define KVIST_AGENT_WORDS_NAME_QUESTION_H

#include <stdbool.h>

/* "Which function ...", "Where is ...", "What creates ...", "How is ...". */
bool agent_asks_for_name(const char *request);
/* "Which function frees a reply?": of a kind of definition, one; not "which functions ...", nor who calls something. */
bool agent_asks_for_one_name(const char *request);

#endif
