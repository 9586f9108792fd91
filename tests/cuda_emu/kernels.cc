/* The kernels, as they are, for the emulator: one translation unit, since .cu is no suffix that a C++ compiler knows. */
#include "cuda/activations.cu"
#include "cuda/attention.cu"
#include "cuda/matmul.cu"
#include "cuda/matmul_tiles.cu"
#include "cuda/rope.cu"
#include "cuda/score.cu"
#include "cuda/transfer.cu"
#include "cuda/widen.cu"
