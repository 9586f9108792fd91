/* What is found out once per model (heads, pivot, pace, what was trained) is kept in files beside the rows of sessions. */
#ifndef KVIST_KV_MODEL_FILE_H
#define KVIST_KV_MODEL_FILE_H

/* "DATA/rows/HASH.ending", HASH being the first 24 letters; the caller frees. */
char *kv_model_file(const char *model_hash, const char *ending);

#endif
