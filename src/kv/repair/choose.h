/*
 * One repair while it is planned; for repair.c (signal, scores, the plan) and choose.c (which rows) only.
 *
 * A set is what shares one choice: all lanes (the paper's form), or one lane (lanes=each).
 */
#ifndef KVIST_KV_CHOOSE_H
#define KVIST_KV_CHOOSE_H

#include "kv/repair/repair.h"

typedef struct kv_repair_set {
    uint32_t lane, n_lanes; /* [lane, lane + n_lanes) */
    uint32_t *missing;      /* [n] of its lanes, in how many the token is not active */
    float *a;               /* [n] what orders; NAN: not eligible */
    float *mass;            /* [n] mass, what coverage adds up */
    uint32_t *order;        /* [n_order] tokens, the most asked for first */
    uint32_t n_order;
    uint64_t *chosen; /* [bits of n] */
} kv_repair_set;

typedef struct kv_repair_work {
    uint64_t *eligible;    /* [bits of n] tokens that the signal may ask for */
    uint8_t *hard;         /* [n] kv_hard */
    float *previous;       /* [n] */
    uint8_t *reasons;      /* [n] of the chosen */
    const uint64_t *among; /* evicted rows that may come back; NULL: all eligible ones */
    bool is_request;       /* a person asks, not a result */
    kv_quotes *quotes;     /* out; NULL: nobody wants to know */
    uint64_t *named;       /* [bits of n] the best row of each name that a clear request asks for */
    /*
     * [bits of n] out: what would have come back too, had the best line not so much more mass. It is what that line is
     * mistaken for, so no token but a call's reads it as a visitor either, until the next repair says otherwise.
     */
    uint64_t *outshone;
    kv_repair_set set; /* the one at hand */
} kv_repair_work;

/* How many times the mass of the sinks a row draws by `mass` ([n]); 0 where no row's line outshines others. */
float kv__repair_clarity(const kv_session *s, const kv_repair_work *w, const float *mass, uint32_t row);
/*
 * Does one line answer a request so clearly that lines like it would only mislead? What finds nothing that fits looks at
 * the first rows, the sinks, so the best row has to draw more than these by `mass` ([n]). A result has no one answer, and
 * where nothing is folded lines like the asked one are not taken for it.
 */
bool kv__repair_is_clear(const kv_session *s, const kv_repair_work *w, const float *mass, uint32_t best);

/*
 * Chooses rows of the set while `room` row-lanes last, in the form that the parameters say. With pick=refresh
 * the chosen are all that shall be active of the eligible, not only what comes back.
 */
void kv__repair_choose(const kv_session *s, kv_repair_work *w, uint64_t room);

/* --- quote.c: what is said again behind the request (kv_ask.quotes) --- */
/* Could a line be quoted at all? */
bool kv__may_quote(const kv_session *s, const kv_repair_work *w);
/* The line of a row that answers clearly by `mass` ([n]), unless it is noted already, or in view. */
void kv__note_quote(const kv_session *s, const kv_repair_work *w, const float *mass, uint32_t row);
/* Behind what answers single names: the lines that a whole request brings back, which is clear. */
void kv__note_quotes(const kv_session *s, const kv_repair_work *w);

#endif
