/*
 * cuBLAS for the emulator, a library of its own that is opened as the real one is: matrices lie column by column, what it was not
 * given a meaning for here is refused.
 */
#include <cublas_v2.h>
#include <stdlib.h>
#include <string.h>

struct cublasContext {
    void *workspace;
};

cublasStatus_t cublasCreate(cublasHandle_t *ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasDestroy(cublasHandle_t h)
{
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t stream)
{
    return h && stream ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *workspace, size_t n_bytes)
{
    if (!workspace || !n_bytes) return CUBLAS_STATUS_INVALID_VALUE;
    h->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
}

static float from_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* sums[m] = the sum of x[i][row] * y[i]: all rows at a time, so that it is wide; memory of this file's own alone. */
__attribute__((no_sanitize("address", "undefined"))) static void multiply(
    float *restrict sums, const float *restrict x, const float *restrict y, size_t m, size_t k)
{
    memset(sums, 0, m * sizeof *sums);
    for (size_t i = 0; i < k; i++)
        for (size_t row = 0; row < m; row++) sums[row] += x[i * m + row] * y[i];
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t turn_a, cublasOperation_t turn_b, int m,
    int n, int k, const void *alpha, const void *a, cudaDataType type_a, int lda, const void *b,
    cudaDataType type_b, int ldb, const void *beta, void *c, cudaDataType type_c, int ldc,
    cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    const uint16_t *x = a, *y = b;
    const float factor = *(const float *)alpha, keep = *(const float *)beta;
    float *out = c;
    if (!h->workspace || turn_a != CUBLAS_OP_T || turn_b != CUBLAS_OP_N || type_a != CUDA_R_16BF ||
        type_b != CUDA_R_16BF || type_c != CUDA_R_32F || compute != CUBLAS_COMPUTE_32F ||
        algorithm != CUBLAS_GEMM_DEFAULT || lda < k || ldb < k || ldc < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    const size_t n_rows = (size_t)m, n_in = (size_t)k;
    float *rows = malloc((n_rows * n_in + n_in + n_rows) * sizeof *rows);
    if (!rows) return CUBLAS_STATUS_INVALID_VALUE;
    float *in = rows + n_rows * n_in, *sums = in + n_in;
    /* What the caller gave is read here and written below, under a sanitizer's eyes. */
    for (size_t row = 0; row < n_rows; row++)
        for (size_t i = 0; i < n_in; i++) rows[i * n_rows + row] = from_bf16(x[row * (size_t)lda + i]);
    for (size_t column = 0; column < (size_t)n; column++) {
        for (size_t i = 0; i < n_in; i++) in[i] = from_bf16(y[column * (size_t)ldb + i]);
        multiply(sums, rows, in, n_rows, n_in);
        for (size_t row = 0; row < n_rows; row++) {
            float *to = &out[column * (size_t)ldc + row];
            *to = factor * sums[row] + (keep != 0 ? keep * *to : 0);
        }
    }
    free(rows);
    return CUBLAS_STATUS_SUCCESS;
}
