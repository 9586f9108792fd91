/* An answer of a model, of whatever bytes, is held against a small tree and put right. */
#include <stdint.h>
#include <stdlib.h>

#include "code/call_claims.h"
#include "code/corrections.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const code_index *tree(void)
{
    static code_index *x;
    static const char a[] = "void text_free(char **parts)\n{\n    free(parts);\n}\n\n"
                            "void text_sort(char **parts)\n{\n    text_grow(parts);\n}\n";
    static const char b[] = "struct reply {\n    int kind;\n};\n\nvoid text_grow(char **parts)\n{\n}\n";
    if (x) return x;
    x = code_index_new(NULL);
    code_index_update(x, "src/a.c", a, sizeof a - 1);
    code_index_update(x, "src/b.c", b, sizeof b - 1);
    return x;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *answer = (const char *)data;
    code_false_claim *claims;
    base_buf out = {0}, what = {0};
    const uint32_t n_claims = code_find_false_claims(tree(), answer, n, &claims);
    for (uint32_t i = 0; i < n_claims; i++)
        if (claims[i].from >= claims[i].to || claims[i].to > n || !*claims[i].callee) abort();
    code_false_claims_free(claims, n_claims);
    const bool any = code_correct_answer(tree(), answer, n, NULL, 0, true, &out, &what) != 0;
    if (any != (out.len != 0) || any != (what.len != 0)) abort();
    base_buf_free(&out);
    base_buf_free(&what);
    return 0;
}
