/* A schedule in the ids of another vocabulary. */
#ifndef KVIST_WHATIF_TRANSLATE_H
#define KVIST_WHATIF_TRANSLATE_H

#include "whatif/arm.h"

/*
 * The same steps, one for one, with their texts as e's tokens: what was logged is text, too. Between messages stands what
 * e's template writes there. Places inside of a text (what asks, structure, rows that a person meant) are found again by
 * their bytes. Of an answer the end token is part of what the template writes. Plans are not taken over. BASE_E_FORMAT: the
 * log lacks the texts. Free with whatif_schedule_free.
 */
int whatif_schedule_translate(
    whatif_schedule **ret, const whatif_schedule *s, const whatif_engine *e, base_err *err);

#endif
