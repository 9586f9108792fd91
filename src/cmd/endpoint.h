/*
 * --endpoint and what belongs to it: where the engine is, the key for it, and whether the person agreed that
 * this tree's text goes there.
 */
#ifndef KVIST_CMD_ENDPOINT_H
#define KVIST_CMD_ENDPOINT_H

#include "cmd/options.h"
#include "remote/endpoint.h"

typedef struct endpoint_words {
    const char *url, *key_file, *events, *vocabulary; /* as given, also by a configuration file; NULL: not */
    int64_t wait_s; /* how long a request is sent again that nothing answers */
    bool is_typed;  /* the url stands on the command line */
    bool is_insecure_allowed;
} endpoint_words;
#define ENDPOINT_WORDS_DEFAULTS                                                                              \
    (endpoint_words)                                                                                         \
    {                                                                                                        \
        .wait_s = 60                                                                                         \
    }

/* The rows of a command's own options that fill one in. */
#define ENDPOINT_OPTION_ROWS(words)                                                                          \
    {"--endpoint", OPTION_TEXT, &(words)->url, "URL|off",                                                    \
        "an engine that runs already: llama-server, vLLM, or any chat endpoint (else KVIST_ENDPOINT); "      \
        "--model is a name that it serves",                                                                  \
        "off", .is_setting = true},                                                                          \
        {"--api-key-file", OPTION_TEXT, &(words)->key_file, "FILE",                                          \
            "its key, in a file that only you may read (else KVIST_API_KEY)", .is_setting = true},           \
        {"--endpoint-wait", OPTION_INTEGER, &(words)->wait_s, "SECONDS",                                     \
            "how long to try again where nothing answers, or where it says to come later", "60",             \
            .is_setting = true, .bounds = {1, 86400, NULL}},                                                 \
        {"--engine-events", OPTION_TEXT, &(words)->events, "ADDRESS",                                        \
            "where it publishes what its cache holds (vLLM, SGLang: tcp://HOST:5557)", .is_setting = true},  \
        {"--vocabulary", OPTION_TEXT, &(words)->vocabulary, "FILE",                                          \
            "the served model's GGUF file on this machine; with it tokens are sent instead of text",         \
            .is_setting = true},                                                                             \
    {                                                                                                        \
        "--insecure-http", OPTION_FLAG, &(words)->is_insecure_allowed, NULL,                                 \
            "allow http (not https) to an address outside of this machine and private networks"              \
    }

typedef struct endpoint_choice {
    bool is_chosen; /* else: a local model */
    remote_endpoint_options options;
    char *url, *key; /* what options point to */
} endpoint_choice;

/*
 * --endpoint, else KVIST_ENDPOINT, else the user's configuration; "off": none. The key is KVIST_API_KEY's or
 * the file's, which only its owner may read. served: --model's word, a name that the endpoint serves.
 */
int endpoint_resolve(const endpoint_words *words, const char *served, endpoint_choice *ret, base_err *err);
void endpoint_choice_free(endpoint_choice *c);

/*
 * Before the first request from the tree at `dir` to an endpoint that is not this machine: says what is sent
 * where and asks, once for each tree and endpoint. Where nobody can be asked, --endpoint on the command line
 * is the answer for this run, and KVIST_ENDPOINT or the configuration are none.
 */
int endpoint_ask(const endpoint_choice *c, const endpoint_words *words, const char *dir, base_err *err);

#endif
