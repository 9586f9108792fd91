/* Lines, indentation and line ends of a text (text.c). Pure functions; offsets are bytes, a line is 1-based. */
#ifndef KVIST_TOOLS_FILE_TEXT_H
#define KVIST_TOOLS_FILE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct tool_text_style {
    bool crlf;      /* most lines end in CR LF */
    bool ends_open; /* the last line has no newline */
} tool_text_style;
bool tool__is_space(char c);                                   /* of ASCII: blank, tab, CR, LF */
bool tool__is_same_line(base_str a, base_str b);               /* but for its indentation and its end */
size_t tool__line_begin(const char *text, size_t at);          /* of the line that holds the byte */
size_t tool__line_end(const char *text, size_t n, size_t at);  /* its newline, or n */
bool tool__is_blank(const char *text, size_t from, size_t to); /* are bytes [from, to) all white space? */
tool_text_style tool__text_style(const char *text, size_t n);
/* "<<<<<<< ", "=======" and ">>>>>>> " at the begin of lines, in this order: what git leaves of a merge. */
bool tool__has_conflict(const char *text, size_t n);
/* Lines of a text, which they point into: without their newline and a CR before it. The caller frees items. */
typedef struct tool_line_list {
    base_str *items;
    size_t n, cap;
} tool_line_list;
void tool__split_lines(tool_line_list *ret, const char *text, size_t n);
size_t tool__count_lines(const char *text, size_t n); /* an open last line counts */
/* byte of the 1-based line; n when there are fewer */
size_t tool__line_start(const char *text, size_t n, size_t line);
size_t tool__line_of(const char *text, size_t byte); /* 1-based */
/* LF line ends, no leading or trailing blank lines, ends with a newline unless empty. */
void tool__normalise_block(base_buf *out, const char *text, size_t n);
/* '	' or ' ': how most indented lines begin; 0: none is. */
char tool__indent_char(const char *text, size_t n);
/*
 * Shifts a block so that its first line stands at `indent`. What stands right of that keeps its own white
 * space (KEEP) or is made anew from tabs or from spaces (a tab of the block is `unit` of them); what stands
 * left of the first line stays where it is.
 */
typedef enum tool_indentation { TOOL_INDENT_KEEP, TOOL_INDENT_TABS, TOOL_INDENT_SPACES } tool_indentation;
void tool__indent_block(base_buf *out, const char *block, size_t n, const char *indent, size_t indent_n,
    tool_indentation how, size_t unit);
/* What a block needs to look like the text that it goes into. */
tool_indentation tool__indentation_for(
    const char *file, size_t n_file, const char *block, size_t n_block, size_t *ret_unit);
/* LF and CR LF to the file's line ends. */
void tool__line_ends(base_buf *out, const char *text, size_t n, bool crlf);

#endif
