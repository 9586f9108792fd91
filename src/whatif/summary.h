/* What a comparison came to, in a sentence for a person. */
#ifndef KVIST_WHATIF_SUMMARY_H
#define KVIST_WHATIF_SUMMARY_H

#include "agent/log/event.h"

typedef struct whatif_summary {
    uint32_t n_turns, n_tokens;
    double kl, ms[2]; /* kl: sum over tokens */
    double nll[2];    /* sums over bytes */
    uint64_t n_bytes; /* of answers' texts that were read apart; 0: they were read side by side */
    uint32_t n_sides;
    struct whatif_turn_summary {
        uint32_t turn;
        bool differs, is_checked;
        double nats;
        bool answers_same, answers_otherwise; /* freely */
    } * turns;
    size_t cap;
    uint32_t free_from; /* 0: nothing was answered freely */
    char *stopped;
} whatif_summary;

void whatif_summary_take(whatif_summary *s, const agent_event *e); /* a what_if_turn or what_if_answer */
/* phrase: "with 2,560 rows instead of 4,096" */
void whatif_summary_put(const whatif_summary *s, const char *phrase, base_buf *out);
void whatif_summary_free(whatif_summary *s);

#endif
