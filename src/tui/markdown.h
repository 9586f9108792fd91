/*
 * The light markdown of answers: headings, lists, bold, code spans, fenced code with keywords; and unified diffs.
 */
#ifndef KVIST_TUI_MARKDOWN_H
#define KVIST_TUI_MARKDOWN_H

#include "tui/text.h"

/* Appends lines for `s`, `width` columns wide, each behind a prefix (first, then rest). */
void tui_markdown(tui_text *out, int width, const char *first, const char *rest, tui_style prefix_style,
    const char *s, size_t n);
void tui_diff_lines(tui_text *out, int width, const char *prefix, const char *s, size_t n, size_t max_lines);

#endif
