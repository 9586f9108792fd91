/*
 * The part of CUDA's runtime that src/cuda/ calls, over ordinary memory: "device" memory is malloc (so ASan sees every byte out
 * of place), a stream does at once what it is asked, and a captured graph is a list of calls. The real header has the same names;
 * which one a file gets is a matter of include paths. Implemented in emu.cc.
 *
 * Tests change what the machine looks like with the emu_* functions at the end.
 */
#ifndef KVIST_TESTS_CUDA_RUNTIME_API_H
#define KVIST_TESTS_CUDA_RUNTIME_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorLaunchFailure = 719,
} cudaError_t;

typedef struct emu_stream *cudaStream_t;
typedef struct emu_event *cudaEvent_t;
typedef struct emu_graph *cudaGraph_t;
typedef struct emu_graph_exec *cudaGraphExec_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrClockRate = 13 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostRegisterMapped = 2 };

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlockOptin;
    int major, minor, multiProcessorCount, l2CacheSize;
};
#ifndef __cplusplus
typedef struct cudaDeviceProp cudaDeviceProp;
#endif

cudaError_t cudaDriverGetVersion(int *ret);
cudaError_t cudaRuntimeGetVersion(int *ret);
cudaError_t cudaGetDeviceCount(int *ret);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device);
cudaError_t cudaDeviceGetAttribute(int *ret, enum cudaDeviceAttr what, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total);
cudaError_t cudaMalloc(void **ret, size_t n_bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaMallocHost(void **ret, size_t n_bytes);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaHostRegister(void *p, size_t n_bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaHostGetDevicePointer(void **ret, void *p, unsigned flags);
cudaError_t cudaMemcpyAsync(
    void *to, const void *from, size_t n_bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t n_bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *ret);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t e);

/* ---- what the emulated machine is; the defaults are one device with 1 GiB ---- */

void emu_set_devices(cudaError_t answer, int n); /* what cudaGetDeviceCount says */
void emu_set_compute(int major, int minor);
void emu_set_memory(size_t n_bytes);
void emu_fail_in(
    int n_launches); /* the device is lost at the n-th launch from now; negative: never, and it is back */
void emu_set_pins(
    int n); /* pieces of the host's memory that can be pinned; negative: any number, the default */
typedef struct emu_counts {
    uint64_t launches, graph_launches, captures, bytes_to_device;
    size_t allocated; /* bytes of device memory in use */
    size_t pinned;    /* pieces of the host's memory */
} emu_counts;
emu_counts emu_get_counts(void);

#ifdef __cplusplus
}
#endif
#endif
