/*
 * The two sides that kvist what-if compares: a session as it was recorded and as it is changed, each with its model and
 * settings, and what these are called in words.
 */
#ifndef KVIST_CMD_WHAT_IF_SIDES_H
#define KVIST_CMD_WHAT_IF_SIDES_H

#include "cmd/options.h"
#include "whatif/reader.h"
#include "whatif/translate.h"
#include "whatif/whatif.h"

/* What was found out once per model, where the shell keeps it (kv_options). */
typedef struct what_if_cache_files {
    char *prefix, *pivot, *heads;
} what_if_cache_files;

typedef struct what_if_sides {
    const common_options *given;
    uint32_t free_from; /* 0: it is not free */
    model_grammar *grammar;
    whatif_reader reader;
    bool is_apart;        /* the changed side reads the texts as tokens of its own */
    whatif_schedule *own; /* then: as these */
    whatif_schedule *schedule;
    model *models[2]; /* original, changed; the same one twice where the model is not changed */
    what_if_cache_files files[2];
    const char **set; /* of the changed side */
    base_buf names[2], phrase, settings, missing;
} what_if_sides;

/* Opens the models. Before: `given` and `schedule` are set. what_if_sides_close, also after an error. */
int what_if_sides_open(what_if_sides *d, base_err *err);
void what_if_sides_close(what_if_sides *d);

/* Settings, whose strings are the sides': as recorded, and with what was given. */
kv_options what_if_sides_original(what_if_sides *d);
int what_if_sides_changed(what_if_sides *d, kv_options *ret, base_err *err);
bool what_if_sides_are_same(const what_if_sides *d, const kv_options *a, const kv_options *b);

/* Fills names, phrase, settings and missing. */
void what_if_sides_describe(what_if_sides *d, const kv_options *original, const kv_options *changed);

#endif
