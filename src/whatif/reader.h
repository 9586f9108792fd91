/* Files of a session's tree, read where they still hold what the session's log says they held. */
#ifndef KVIST_WHATIF_READER_H
#define KVIST_WHATIF_READER_H

#include "tools/tool.h"
#include "whatif/free.h"

typedef struct whatif_reader {
    const char *root;  /* of the tree */
    tool_workspace *w; /* opened with the first read */
} whatif_reader;

/* user: a whatif_reader. Nothing is written and nothing runs. */
whatif_read_fn whatif_reader_read;
void whatif_reader_close(whatif_reader *r);

#endif
