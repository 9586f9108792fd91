/*
 * What the model is told: statuses and sentences, arguments read, results held to a cap and the rest kept
 * (result.c, spill.c), and which of their lines are lines of files (trace.c).
 */
#ifndef KVIST_TOOLS_RESULT_RESULT_H
#define KVIST_TOOLS_RESULT_RESULT_H

#include "tools/tree/workspace.h"

#define TOOL_DEFAULT_RESULT 12000 /* bytes of a result, where no limit is given */

/* Sets the status and appends the sentence. */
void tool__say(tool_result *r, tool_status s, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same from an error of the file layer: adds near paths and the next call where the file is missing. */
void tool__say_path_error(
    tool_workspace *w, tool_result *r, const char *tool, const char *given, const base_err *err);
/* Bytes [from, to) of the text are bytes of the file `path` of this version, from file_from on, where `line` (1-based) begins. */
void tool__add_source(tool_result *r, size_t from, size_t to, const char *path, const char *version,
    size_t file_from, size_t line);
/*
 * Cuts the text to the cap (head_eighths of it head, the rest tail), spills the whole. For texts without
 * sources.
 */
void tool__cap(tool_workspace *w, tool_result *r, const tool_limits *limits, unsigned head_eighths);
size_t tool__result_cap(const tool_limits *limits); /* bytes; limits may be NULL */

/* A string argument, trimmed; NULL when missing or empty. The text lives as long as the call. */
const char *tool__string(const tool_call *call, const char *name);
/* An integer argument (also a number inside a string), clipped. */
int64_t tool__integer(
    const tool_call *call, const char *name, int64_t otherwise, int64_t least, int64_t most);
bool tool__boolean(const tool_call *call, const char *name); /* also the string "true"; missing: false */
/* Cleans argument "path"; false: *r says what is wrong. */
bool tool__want_path(tool_workspace *w, const tool_call *call, const char *tool, char **ret, tool_result *r);
void tool__quote(base_buf *out, const char *s);       /* a JSON string */
void tool__quote_shell(base_buf *out, const char *s); /* one word of a POSIX shell, whatever it holds */

/* ---- spill.c ---- */

/* Keeps the bytes as "result:N"; 0 when it cannot. */
uint32_t tool__spill(tool_workspace *w, const char *text, size_t n);
/* "result:3" gives its text; BASE_E_NOT_FOUND else. */
int tool__spill_read(tool_workspace *w, const char *handle, base_buf *out, base_err *err);
bool tool__is_handle(const char *path); /* "result:" and a digit */

/* ---- trace.c ---- */

/*
 * Adds a source for what of r's text, from byte `from` on, are lines of the tree's files as they are now.
 * command (may be NULL): where file names are looked for.
 */
void tool__trace_output(tool_workspace *w, tool_result *r, const char *command, size_t from);

#endif
