/*
 * Memory for packed weights: they live as long as their backend, so they lie behind one another in large
 * blocks of 2 MiB pages. A matrix of some hundred kilobytes with pages of its own would waste most of them:
 * four times its size, for a model of 135 million parameters.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "model/cpu/cpu.h"

enum { BLOCK = 64 << 20, LINE = 64 };

struct cpu_arena_block {
    struct cpu_arena_block *next;
    uint8_t *data;
    size_t used, size;
};

void *cpu_arena_take(cpu_ops *cpu, size_t n_bytes)
{
    cpu_arena_block *b = cpu->arena;
    if (n_bytes == 0 || n_bytes > SIZE_MAX / 2) return NULL;
    n_bytes = (n_bytes + LINE - 1) / LINE * LINE;
    if (!b || b->size - b->used < n_bytes) {
        size_t size = n_bytes > BLOCK ? n_bytes : BLOCK;
        b = malloc(sizeof *b);
        uint8_t *data = b ? base_huge_alloc(size) : NULL;
        if (!data) {
            free(b);
            return NULL;
        }
        *b = (cpu_arena_block){.data = data, .size = size};
        /* A block that one matrix fills goes behind the one that still has room. */
        cpu_arena_block **at = cpu->arena && size > BLOCK ? &cpu->arena->next : &cpu->arena;
        b->next = *at;
        *at = b;
    }
    void *p = b->data + b->used;
    b->used += n_bytes;
    return p;
}

void cpu_arena_free(cpu_ops *cpu)
{
    while (cpu->arena) {
        cpu_arena_block *b = cpu->arena;
        cpu->arena = b->next;
        base_huge_free(b->data, b->size);
        free(b);
    }
}
