/* Part of gguf.c's own work: what a parsed file's metadata must mean. Nobody else calls it. */
#ifndef KVIST_MODEL_GGUF_CHECK_H
#define KVIST_MODEL_GGUF_CHECK_H

#include "model/file/gguf.h"

/* BASE_E_FORMAT names the key. */
int gguf_check_metadata(const gguf_file *f, base_err *err);

#endif
