/*
 * A model in several files, as llama-gguf-split and Hugging Face cut them (llama.cpp, tools/gguf-split):
 * NAME-00001-of-00003.gguf and so on, in one folder. The first has the metadata; every part says which one it
 * is (split.no, from 0), of how many (split.count), and how many tensors all parts have together
 * (split.tensors.count). No tensor is cut.
 */
#ifndef KVIST_MODEL_GGUF_PARTS_H
#define KVIST_MODEL_GGUF_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/file/gguf.h"

enum { GGUF_MOST_PARTS = 9999 };

/* What a name says: part `part` (from 1) of `parts`; `stem` bytes of it come before "-00001-of-00003.gguf". */
typedef struct gguf_part_name {
    size_t stem;
    uint32_t part, parts;
} gguf_part_name;

/* false: `path` is not called like a part of more than one. */
bool gguf_part_name_read(const char *path, gguf_part_name *ret);
/* The name of part `part` (from 1) beside `path`, appended to out. */
void gguf_part_name_put(const char *path, gguf_part_name name, uint32_t part, base_buf *out);

/*
 * Where these parts belong together, in this order, the first takes the others' tensors, and owns them and the list
 * (malloc) from now on. BASE_E_FORMAT says which does not belong; then they stay the caller's.
 */
int gguf_parts_join(gguf_file *first, gguf_file **others, uint64_t n_others, base_err *err);

#endif
