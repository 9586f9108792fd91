/* A block of a launch, for the runtime (emu.cc). */
#ifndef KVIST_TESTS_CUDA_EMU_FIBERS_H
#define KVIST_TESTS_CUDA_EMU_FIBERS_H

#include "cuda_runtime.h"

enum { EMU_THREADS_MAX = 1024 }; /* of a block */

/* All threads of one block, until each has ended; emu_grid_dim and emu_block_dim say of what. */
void emu_run_block(const std::function<void()> *kernel, dim3 block_place, size_t shared_bytes);

/* What a device does not forbid and a program must not do: says where, and aborts. */
void emu_die(const char *what, int line, unsigned other);

uint32_t emu_random(void);

#endif
