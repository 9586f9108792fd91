/* See options.h: which file is meant by a word for a model. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/edits.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "cmd/options.h"

const default_model options_models[OPTIONS_N_MODELS] = {
    {"qwen2.5-coder-1.5b", "default", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1117320768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},
    {"smollm2-135m", "small", "SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
};

const default_model *options_find_model(const char *word)
{
    const char *file = base_path_name(word);
    for (size_t i = 0; i < OPTIONS_N_MODELS; i++) {
        const default_model *m = &options_models[i];
        if (!strcasecmp(word, m->name) || !strcasecmp(word, m->role) || !strcmp(file, m->file)) return m;
    }
    return NULL;
}

/*
 * The model file below the data folder, if it is there; the caller frees. *missing: where it should be, else.
 */
static char *find_in_data(const char *file, char **missing)
{
    base_buf name = {0};
    base_buf_printf(&name, "models/%s", file);
    char *path = base_fs_home(BASE_HOME_DATA, name.data);
    base_buf_free(&name);
    if (base_fs_exists(path)) return path;
    *missing = path;
    return NULL;
}

/* A file of that name in this folder is a better guess than the name that it is nearest to. */
static int no_such_model(const char *wanted, base_err *err)
{
    base_guess guess = base_guess_begin(wanted);
    const bool is_here = base_fs_exists(wanted);
    for (size_t i = 0; !is_here && i < OPTIONS_N_MODELS; i++)
        base_guess_offer(&guess, options_models[i].name);
    return base_fail(err, BASE_E_ENGINE, "there is no model of the name %.100s%s%s%.100s", wanted,
        base_guess_tell(&guess, "; `kvist model list` shows the names, and a GGUF file is taken by its path"),
        is_here ? ", ./" : "", is_here ? wanted : "");
}

/*
 * The tree that kvist works on lies in the current folder and may be somebody else's: what lies there must
 * not become the model because it is called like one. So a word without a slash is a name first, and the
 * current folder is looked at last, and only for a .gguf file that the command line itself names.
 */
int options_model_path(const common_options *o, char **ret, base_err *err)
{
    const char *wanted = o->model ? o->model : getenv("KVIST_MODEL");
    if (!wanted || !*wanted) wanted = "default";
    if (strchr(wanted, '/')) {
        if (!base_fs_exists(wanted))
            return base_fail(err, BASE_E_ENGINE,
                "there is no model file %s; `kvist model list` shows those of the data folder", wanted);
        *ret = base_xstrdup(wanted);
        return BASE_OK;
    }
    const default_model *known = options_find_model(wanted);
    char *missing = NULL;
    *ret = find_in_data(known ? known->file : wanted, &missing);
    if (*ret) return BASE_OK;
    int code = BASE_OK;
    const size_t n = strlen(wanted);
    if (known)
        code = base_fail(err, BASE_E_ENGINE,
            "the %s model, %s, is not here yet (%s): `kvist-fetch %s` fetches it, "
            "and so does scripts/run in kvist's source folder; --model FILE.gguf "
            "takes one that you have, `kvist model get URL` fetches any other",
            known->role, known->name, missing, known->role);
    else if (o->model && !o->is_model_configured && n > 5 && !strcmp(wanted + n - 5, ".gguf") &&
             base_fs_exists(wanted))
        *ret = base_xstrdup(wanted);
    else
        code = no_such_model(wanted, err);
    free(missing);
    return code;
}
