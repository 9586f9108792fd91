/*
 * Long options, the same everywhere: the model and cache options, and a command's own. A table of rows;
 * "--name VALUE" and "--name=VALUE"; an unknown option or a bad value is BASE_E_USAGE with a sentence that
 * names it.
 */
#ifndef KVIST_OPTIONS_H
#define KVIST_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kv/session.h"
#include "model/forward/model.h"
#include "model/text/sampler.h"

/* OPTION_WORD: a text that is one of the words of its argument, "on|off". */
typedef enum option_kind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_WORD,
    OPTION_INTEGER,
    OPTION_NUMBER,
    OPTION_LIST
} option_kind;
/* What an option that may be given several times was given. */
enum { OPTION_LIST_MOST = 32 };
typedef struct option_list {
    const char *all[OPTION_LIST_MOST + 1]; /* NULL-terminated */
    uint32_t n;
} option_list;
/* What an option takes. A value outside is told where it is given: the command line, or file and line. */
typedef struct option_bounds {
    double least, most;    /* of a number; both 0: any */
    const char *otherwise; /* behind the bounds: what 0 or leaving it out means; NULL: nothing */
    /* Of a text, what no list of words says. BASE_E_USAGE: the sentence says what is allowed. NULL: any. */
    int (*check)(const char *value, base_err *err);
} option_bounds;
/*
 * One own option of a command. What a person is told of it stands here once: --help, the man page, completion
 * and the configuration's keys are made from these rows.
 */
typedef struct option_row {
    const char *name; /* "--json" or "-p" */
    option_kind kind;
    void *value;          /* a bool, const char *, int64_t, double or option_list, as kind says */
    const char *argument; /* how the value is written: "N", "on|off"; NULL: it takes none */
    const char *help;     /* a sentence; NULL: nobody is told of it (tests) */
    const char *unset;    /* the value where none is given; NULL: nothing worth telling */
    bool is_setting;      /* a configuration file may give it too */
    /*
     * A project's file may give it where this says that `wanted` is tighter than what holds (*value);
     * NULL: never.
     */
    bool (*is_tighter)(const void *value, const char *wanted);
    option_bounds bounds; /* of what is given */
} option_row;

/* What model and cache options said. */
typedef struct common_options {
    const char *model;        /* as given: a file or a name; NULL: KVIST_MODEL, else the default model */
    bool is_model_configured; /* a configuration names it, not the command line */
    const char *backend;
    double gpu_mem;     /* GiB; 0: what is free */
    int64_t gpu_layers; /* 0: all */
    bool cpu_moe;
    int64_t threads, ctx; /* 0: not given */
    bool thinking;
    const char *budget; /* as kv/core/budget.h reads it; NULL: "auto" */
    const char *policy;
    const char *repair;
    const char *set[17]; /* NULL-terminated */
    uint32_t n_set;
    model_sampling sampling;
    const char *lookup;  /* "on", "off"; NULL: on */
    const char *stop[9]; /* NULL-terminated */
    uint32_t n_stop;
} common_options;

#define COMMON_OPTIONS_DEFAULTS                                                                              \
    (common_options)                                                                                         \
    {                                                                                                        \
        .sampling = MODEL_SAMPLING_DEFAULTS                                                                  \
    }

/*
 * Parses argv[1..]; words that are no option go to rest ([n_rest], in order; "--" ends options), or are an
 * error when rest is NULL. `common` may be NULL: then model and cache options are unknown ones. own ends with
 * a NULL name. *ret_asked: "--help" or "--describe" when that was given, else NULL.
 */
int options_parse(int argc, char **argv, common_options *common, const option_row *own, const char **rest,
    uint32_t *n_rest, const char **ret_asked, base_err *err);

/*
 * BASE_E_USAGE where `text` is none of the words ("list|show|export"): "BEGIN list, show or export, not "lst"; did
 * you mean list?". begin: "kvist log knows".
 */
int options_check_word(const char *begin, const char *words, const char *text, base_err *err);

/* "plan|ask|edits" as "plan, ask or edits". */
void options_put_words(base_buf *out, const char *words);

/* Does the command line give this option ("--mode")? */
bool options_are_given(int argc, char **argv, const char *name);

typedef enum option_source { OPTION_OF_USER, OPTION_OF_PROJECT } option_source;

/*
 * Puts what a configuration file says: key is an option's name without its dashes, a flag's value on or off.
 * The value must outlive the options. all: cache options and own ones too; without it only those of the model
 * are put, and any other setting is passed by. BASE_E_USAGE: there is no such setting (what may be meant is
 * said), its value is wrong, or it is not a project's to give.
 */
int options_put_setting(common_options *common, const option_row *own, bool all, option_source source,
    const char *key, const char *value, base_err *err);

/* Calls fn for each setting. unset: its value where none is given. */
typedef void options_setting_fn(void *user, const char *name, const char *unset);
void options_each_setting(const option_row *own, options_setting_fn *fn, void *user);

/* The models that kvist knows by name; scripts/fetch has the same list with their sources. */
typedef struct default_model {
    const char *name, *role, *file; /* file: below the data folder's models/ */
    uint64_t bytes;
    const char *sha256;
} default_model;
enum { OPTIONS_N_MODELS = 2 };
extern const default_model options_models[OPTIONS_N_MODELS];
const default_model *options_find_model(const char *word); /* by name, role or file name; NULL: none */

/*
 * The model file: --model, KVIST_MODEL, the default in the data folder. The caller frees. A word with a slash
 * is a path; any other is a name, of the table or of a file in the data folder's models/. Only then is
 * NAME.gguf of --model looked for in the current folder.
 */
int options_model_path(const common_options *o, char **ret, base_err *err);

/*
 * --kv-budget as rows per lane, 0: no limit; kv/core/budget.h has the forms. With "auto", of the memory that
 * is free now. row_bytes 0: an engine elsewhere, and tokens of a request.
 */
int options_budget(const common_options *o, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured,
    kv_limit *ret, base_err *err);
/* Rows that --repair lets come back for a request; 0: "off"; -1: it was not given. */
int options_repair(const common_options *o);
/* --lookup: is text guessed ahead? */
bool options_lookup(const common_options *o);
/* What of them a model is opened with; points into *o. */
model_options options_to_model(const common_options *o);

/*
 * What --help says of options, a row each, own ones first: lines of at most 100 columns. common: those of model
 * and cache too.
 */
void options_put_help(base_buf *out, const option_row *own, bool common);
/* The same as members of a JSON object: "options":[{"group","name","argument","help"}, ...]. */
void options_put_json(base_buf *out, const option_row *own, bool common);

#endif
