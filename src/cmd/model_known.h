/* `kvist model list --all`: families and formats, and what the most used models need on this machine. */
#ifndef KVIST_CMD_MODEL_KNOWN_H
#define KVIST_CMD_MODEL_KNOWN_H

void model_known_print(void);

#endif
