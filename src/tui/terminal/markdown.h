/*
 * The light markdown of answers: headings, lists, bold, code spans, fenced code with keywords; and unified
 * diffs.
 */
#ifndef KVIST_TUI_MARKDOWN_H
#define KVIST_TUI_MARKDOWN_H

#include "tui/terminal/styled_text.h"

/* Appends lines for `s`, `width` columns wide. */
void tui_markdown(tui_text *out, int width, const char *s, size_t n);
/*
 * A unified diff, every byte visible; headline: what stands above it, which makes the header of the one file
 * that it names needless. False: there are more than max_lines, and the last line says so.
 */
bool tui_diff_lines(tui_text *out, int width, const char *prefix, const char *headline, const char *s,
    size_t n, size_t max_lines, base_show_form form);
/*
 * A command as it would run, every byte visible; each of its lines begins a line, behind the mark <LF> of the
 * one above.
 */
void tui_command_lines(tui_flow *f, tui_style style, const char *s, size_t n, base_show_form form);

#endif
