/* Requests (issues that somebody pastes) read for an operation's arguments: each text is a piece of the request. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/operation_words.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void is_piece(const char *request, const char *piece)
{
    assert(!piece || strstr(request, piece) || !strcmp(piece, "int")); /* "integer" is read as C's word */
}

/* Of a tree that defines every name with an f once, and writes none with a u. */
static uint32_t count(const void *ctx, const char *name)
{
    return strchr(name, 'f') != NULL;
}

static bool mentions(const void *ctx, const char *name)
{
    return !strchr(name, 'u');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const agent_names names = {NULL, count, mentions};
    agent_operation_words o;
    char *request = base_xstrndup((const char *)data, n);
    agent_parameter_words p;
    agent_instead_words w;
    if (agent_read_parameter_words(request, &p)) {
        assert(p.change != AGENT_PARAMETER_STAYS && p.to <= strlen(request) && p.at >= 0 && p.at <= 6);
        const char *const pieces[] = {p.declared, p.name, p.type, p.value, p.callers};
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) is_piece(request, pieces[i]);
    }
    agent_parameter_words_free(&p);
    if (agent_read_instead_words(request, &w)) {
        assert(w.name && *w.name);
        is_piece(request, w.name);
        is_piece(request, w.call);
        is_piece(request, w.with);
    }
    agent_instead_words_free(&w);
    if (agent_read_operation_words(request, &names, &o)) {
        assert(o.operation && o.name && count(NULL, o.name) == 1);
        assert(!o.to == !strcmp(o.operation, "delete"));
        is_piece(request, o.name);
        is_piece(request, o.to);
    }
    agent_operation_words_free(&o);
    if (agent_read_operation_gist(request, &names, &o)) {
        assert(o.operation && o.name && count(NULL, o.name) > 0);
        assert(!o.to == !strcmp(o.operation, "delete"));
        is_piece(request, o.to);
    }
    agent_operation_words_free(&o);
    agent_addition_words a = {0};
    if (agent_read_addition_words(request, &a)) {
        assert(a.name && *a.name);
        is_piece(request, a.name);
        is_piece(request, a.parameters);
    }
    agent_addition_words_free(&a);
    free(request);
    return 0;
}
