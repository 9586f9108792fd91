/*
 * A code property graph that Joern made (`joern-export --repr all --format graphson`), laid over what we read
 * of the same file. Joern supplies edges and the targets of calls, our tree the extents: its places are
 * points (line and column, in UTF-16 units, counted from 1 or, by jssrc2cpg, from 0), and each becomes the
 * nearest anchor of its kind in that line. Edges between expressions become edges between statements. A file
 * of which less than 90% of the points are found is refused: the export is of another version of it.
 *
 * Only `kvist code --joern` calls this; sessions go by our own graphs. Pure functions, any thread. Format:
 * joernio/flatgraph, formats/graphson; nodes and edges: codepropertygraph's schema.
 */
#ifndef KVIST_CODE_JOERN_H
#define KVIST_CODE_JOERN_H

#include "base/err.h"
#include "code/graph.h"

typedef struct code_joern code_joern;

/* Reads an export; text is not needed afterwards. BASE_E_FORMAT says what is wrong and where. */
int code_joern_read(code_joern **ret, const char *text, size_t n, base_err *err);
void code_joern_free(code_joern *j);

/* A call whose target the export knows. */
typedef struct code_joern_call {
    uint32_t at;             /* byte of the call */
    const char *name, *path; /* full name and file of what is called; the export's */
} code_joern_call;

typedef struct code_joern_report {
    uint32_t points[CODE_N_KINDS],
        found[CODE_N_KINDS]; /* places of each kind in the export, and those that are anchors of ours */
    uint32_t lost;           /* edges with an end that lies in no statement */
    code_joern_call *calls;  /* ascending by `at`; free() */
    uint32_t n_calls;
} code_joern_report;

/*
 * x (of the same text, from code_parse_graph) gets the export's edges instead of its own. Which file of the
 * export it is: the one whose path ends as `path` does. BASE_E_NOT_FOUND: none; BASE_E_FORMAT: it does not
 * fit; then x is as it was.
 */
int code_joern_apply(const code_joern *j, const char *path, const char *text, size_t n, const code_file *f,
    code_graph *x, code_joern_report *ret, base_err *err);

#endif
