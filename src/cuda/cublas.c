/*
 * Products of many columns by cuBLAS, for `--backend cuda:bf16`: weights and activations in BF16, sums in F32
 * on the tensor cores.
 *
 * Faster than the products of matmul_tiles.cu, which take the CPU's float steps, and not their bits: how
 * cuBLAS adds depends on the batch's size. The same batches on the same kind of device give the same bits, so
 * a logged session executed again does; rows are not shared with the other backends (kernel_version).
 *
 * The library is opened when it is asked for: the program runs on machines without it. Its loader's name is
 * in `libraries`, or the file is named by KVIST_CUBLAS.
 */
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/backend.h"

enum {
    WORKSPACE_BYTES = 32 << 20 /* what cuBLAS advises for Hopper; its own would be allocated in mid-batch */
};

struct cuda_cublas {
    void *library, *workspace;
    cublasHandle_t handle;
    __typeof__(cublasDestroy) *destroy;
    __typeof__(cublasGemmEx) *gemm;
};

static void *open_library(base_err *err)
{
    static const char *const libraries[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    const char *given = getenv("KVIST_CUBLAS");
    void *library = given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !given && !library; i++)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        base_fail(err, BASE_E_DEVICE,
            "cuda:bf16 computes with cuBLAS, and %s is not found; install "
            "it, name its file in KVIST_CUBLAS, or take --backend cuda",
            given ? given : libraries[0]);
    return library;
}

/* A function of the library; to: its pointer's address. */
static bool find(void *library, const char *name, void *to)
{
    void *symbol = dlsym(library, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

int cuda_cublas_open(cuda_backend *c, base_err *err)
{
    __typeof__(cublasCreate) *create;
    __typeof__(cublasSetStream) *set_stream;
    __typeof__(cublasSetWorkspace) *set_workspace;
    cuda_cublas *b = calloc(1, sizeof *b);
    if (!b) return base_fail(err, BASE_E_NOMEM, "no memory for cuBLAS");
    c->cublas = b;
    b->library = open_library(err);
    if (!b->library) return BASE_E_DEVICE;
    if (!find(b->library, "cublasCreate_v2", &create) || !find(b->library, "cublasDestroy_v2", &b->destroy) ||
        !find(b->library, "cublasSetStream_v2", &set_stream) ||
        !find(b->library, "cublasSetWorkspace_v2", &set_workspace) ||
        !find(b->library, "cublasGemmEx", &b->gemm))
        return base_fail(err, BASE_E_DEVICE, "this cuBLAS lacks what kvist needs; take --backend cuda");
    int rc = cuda_alloc(c, &b->workspace, WORKSPACE_BYTES, "workspace of cuBLAS", err);
    if (rc) return rc;
    cublasStatus_t status = create(&b->handle);
    if (status == CUBLAS_STATUS_SUCCESS) status = set_stream(b->handle, c->stream);
    if (status == CUBLAS_STATUS_SUCCESS) status = set_workspace(b->handle, b->workspace, WORKSPACE_BYTES);
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    return base_fail(
        err, BASE_E_DEVICE, "cuBLAS does not begin (status %d); take --backend cuda", (int)status);
}

void cuda_cublas_close(cuda_backend *c)
{
    cuda_cublas *b = c->cublas;
    if (!b) return;
    if (b->handle) b->destroy(b->handle);
    cuda_free(c, b->workspace, WORKSPACE_BYTES);
    if (b->library) dlclose(b->library);
    free(b);
    c->cublas = NULL;
}

/*
 * To cuBLAS, which counts down columns, the weights [n_out][n_in] are n_in x n_out, and y [n][n_out] is n_out
 * x n.
 */
cudaError_t cuda_launch_gemm(cudaStream_t stream, const void *params)
{
    (void)stream; /* the handle has it */
    const k_gemm *a = params;
    const float one = 1, beta = a->adds ? 1 : 0;
    const cublasStatus_t status = a->cublas->gemm(a->cublas->handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)a->n_out,
        (int)a->n, (int)a->n_in, &one, a->weights, CUDA_R_16BF, (int)a->n_in, a->x, CUDA_R_16BF, (int)a->n_in,
        &beta, a->y.data, CUDA_R_32F, (int)a->y.stride, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return cudaSuccess;
    const cudaError_t e = cudaGetLastError();
    return e != cudaSuccess ? e : cudaErrorLaunchFailure;
}
