/*
 * How a template that somebody else runs writes messages, found out by asking for histories of marked
 * messages and taking the answers apart. A session is then written message by message (model/text/template.h)
 * and never rendered again, so that nothing that was sent changes.
 */
#ifndef KVIST_REMOTE_FORM_H
#define KVIST_REMOTE_FORM_H

#include "remote/wire.h"

enum { REMOTE_N_ROLES = MODEL_ROLE_TOOL + 1 };

typedef struct remote_form {
    char *start;                 /* before the first message, or "" */
    char *begin[REMOTE_N_ROLES]; /* begin of ASSISTANT opens an answer */
    char *end[REMOTE_N_ROLES];
    /* where the template writes a whole history otherwise than piece by piece; NULL: nowhere */
    char *differs;
} remote_form;

/* A history as the template writes it, appended to out; open: up to where an answer begins. */
typedef int remote_render_fn(
    void *user, const remote_message *m, uint32_t n, bool open, base_buf *out, base_err *err);

/* BASE_E_UNSUPPORTED: it cannot be taken apart. Other errors are the renderer's. */
int remote_form_find(remote_form *ret, remote_render_fn *render, void *user, base_err *err);
void remote_form_free(remote_form *f);

#endif
