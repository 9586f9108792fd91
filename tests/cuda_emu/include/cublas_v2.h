/* The part of cuBLAS that src/cuda/cublas.c calls, under its names; cublas.c beside the emulator does it by plain loops. */
#ifndef KVIST_TESTS_CUBLAS_V2_H
#define KVIST_TESTS_CUBLAS_V2_H

#include <cuda_runtime_api.h>

typedef struct cublasContext *cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_INVALID_VALUE = 7 } cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T } cublasOperation_t;
typedef enum { CUDA_R_32F = 0, CUDA_R_16BF = 14 } cudaDataType;
typedef enum { CUBLAS_COMPUTE_32F = 68 } cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;

#define cublasCreate       cublasCreate_v2
#define cublasDestroy      cublasDestroy_v2
#define cublasSetStream    cublasSetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2

cublasStatus_t cublasCreate(cublasHandle_t *ret);
cublasStatus_t cublasDestroy(cublasHandle_t h);
cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *workspace, size_t n_bytes);
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t turn_a, cublasOperation_t turn_b, int m,
    int n, int k, const void *alpha, const void *a, cudaDataType type_a, int lda, const void *b,
    cudaDataType type_b, int ldb, const void *beta, void *c, cudaDataType type_c, int ldc,
    cublasComputeType_t compute, cublasGemmAlgo_t algorithm);

#endif
