/*
 * Insides of what a decoded token reads, for sections.c (sections and their profiles), reading.c (the choice of a step) and
 * bring.c (what of it lies on disk) only.
 */
#ifndef KVIST_KV_SECTIONS_H
#define KVIST_KV_SECTIONS_H

#include "kv/core/state.h"
#include "kv/read/reading.h"
#include "kv/read/resident.h"

struct kv_reading {
    kv_session *session;
    model_reader reader;

    /* Section i is tokens [to[i - 1], to[i]); it exists as soon as `known` tokens are there. */
    uint32_t n, cap;
    uint32_t *to, *known; /* [cap] */
    uint8_t *endings;     /* [n_endings] */
    uint64_t *statements; /* [bits of n_endings] tokens that end a statement */
    uint32_t n_endings;
    kv_table profiles;
    uint32_t *done;   /* [n_layer] sections whose profiles are there */
    uint32_t partial; /* the first whose profile some row is missing in; UINT32_MAX: none */
    uint16_t *last;   /* [n_lanes][cap] rows that the last step read of each section */

    /* The batch at hand. */
    const model_rows_view *rows;
    uint32_t first, n_batch;
    bool has_forced;
    model_rows_view profile_view, chosen_view;
    model_lane_list *lists; /* [n_lanes] */
    model_run *runs;        /* [n_head_kv][cap_runs] */
    size_t cap_runs;
    float *bound;
    size_t cap_bound;
    uint32_t *key, *n_rows, *take; /* [cap] of one lane: the bound's order, active rows, those to read */
    uint64_t began_ns;
    kv_reads reads;

    /* Where blocks with active rows lie on disk (bring.c); NULL: none ever did. */
    kv_resident *resident;
    bool brings;        /* some do now */
    model_run *moved;   /* [n_head_kv][cap_runs] */
    uint32_t *next;     /* [n_head_kv][cap] sections that the step nearly chose */
    uint32_t *n_next;   /* [n_head_kv] */
    uint32_t *wider;    /* [cap] take of a larger share */
    uint32_t *n_chosen; /* [n_head_kv] sections that it chose */
};

/* Makes the session's, with all its memory: a step allocates nothing but profiles. */
int kv__reading_make(kv_session *s, base_err *err);
/* Sections of tokens below first + n, the last n a batch's own (ids), and room for their profiles. */
int kv__reading_update(kv_reading *r, const int32_t *ids, uint32_t first, uint32_t n, base_err *err);
void kv__reading_profiles(kv_reading *r, uint32_t layer); /* of all sections there are */
/* The batch at hand reads copies of what lies on disk, if anything does. */
int kv__bring_begin(kv_reading *r, base_err *err);
/* What a token chose in a layer is in memory, and the lists say where; what it nearly chose comes meanwhile. */
int kv__bring_chosen(kv_reading *r, uint32_t layer, base_err *err);
/* Sections that token t of the batch may choose among. */
uint32_t kv__reading_visible(const kv_reading *r, uint32_t t);
static inline uint32_t kv__section_from(const kv_reading *r, uint32_t i)
{
    return i ? r->to[i - 1] : 0;
}

#endif
