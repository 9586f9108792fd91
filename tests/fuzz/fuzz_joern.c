/* Any bytes as a Joern export, laid over a small file: what comes of it stays inside the file and its graph. */
#include <stdint.h>
#include <stdlib.h>

#include "code/joern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "int f(int a)\n{\n    int x = a;\n    if (x > 1)\n        x = g(x);\n    return x;\n}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static code_grammars *grammars;
    code_joern *j;
    if (grammars == NULL) grammars = code_grammars_open();
    if (code_joern_read(&j, (const char *)data, size, NULL) != 0) return 0;
    code_graph *x;
    code_file *f = code_parse_graph(grammars, "made.c", text, sizeof text - 1, &x);
    code_joern_report r;
    code_joern_apply(j, "made.c", text, sizeof text - 1, f, x, &r, NULL);
    for (uint32_t i = 0; i < r.n_calls; i++)
        if (r.calls[i].at > sizeof text - 1) abort();
    for (uint32_t i = 0; i < x->n_edges; i++)
        if (x->edges[i].from >= x->n_statements || x->edges[i].to >= x->n_statements) abort();
    for (int k = 0; k < CODE_N_KINDS; k++)
        if (r.found[k] > r.points[k]) abort();
    free(r.calls);
    code_graph_free(x);
    code_file_free(f);
    code_joern_free(j);
    return 0;
}
