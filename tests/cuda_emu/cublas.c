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
    for (int column = 0; column < n; column++)
        for (int row = 0; row < m; row++) {
            float sum = 0, *to = &out[(size_t)column * (size_t)ldc + (size_t)row];
            for (int i = 0; i < k; i++)
                sum += from_bf16(x[(size_t)row * (size_t)lda + (size_t)i]) *
                       from_bf16(y[(size_t)column * (size_t)ldb + (size_t)i]);
            *to = factor * sum + (keep != 0 ? keep * *to : 0);
        }
    return CUBLAS_STATUS_SUCCESS;
}
