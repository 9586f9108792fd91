/*
 * A document under policy "full", computed once and kept on disk: the experiments of the cache ask many
 * things about the same documents, and computing one takes minutes where opening its saved session takes a
 * second.
 */
#ifndef KVIST_BENCH_DOCUMENT_H
#define KVIST_BENCH_DOCUMENT_H

#include "kv/session.h"
#include "model/text/tokenizer.h"

/* A piece of it, in order; what the segment points to need only live through the call. */
typedef struct bench_piece {
    kv_segment segment;
    const model_ids *ids;
} bench_piece;

/*
 * The session that has these pieces and nothing else. folder: where documents are kept, made if it is not
 * there (28 KB a token of the default model); NULL: computed and not kept. A file of another model, build of
 * the kernels or text is not this document's, and a damaged one is computed again. A line on stderr says
 * which it was, and how long that took.
 */
int bench_document_open(kv_session **ret, model *m, const bench_piece *pieces, size_t n, const char *policy,
    const char *folder, base_err *err);
/*
 * Under which policy rows are computed with everything active (it gets no budget): *policy, "full" to begin with,
 * becomes `wanted` where that one adds up attention while rows are computed (h2o, scissorhands, tova), or its sums
 * would not be there. There is one kind of sum a session: BASE_E_USAGE for a second.
 */
int bench_whole_policy(const char **policy, const char *wanted, base_err *err);
/* The row file of such a document, for who computes and saves it another way; the caller frees. */
char *bench_document_path(const char *folder, model *m, const bench_piece *pieces, size_t n);

#endif
