/* Levenshtein's distance, a row at a time (contract: edits.h). */
#include "base/edits.h"

#include <string.h>
#include <strings.h>

unsigned base_edits(const char *a, const char *b, unsigned most)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > 64 || nb > 64 || na > nb + most || nb > na + most) return most + 1;
    unsigned row[65];
    for (size_t j = 0; j <= nb; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned diagonal = row[0], least = row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned same = strncasecmp(a + i - 1, b + j - 1, 1) != 0, best = diagonal + same;
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
            if (best < least) least = best;
        }
        if (least > most) return most + 1;
    }
    return row[nb];
}
