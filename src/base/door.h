/*
 * The one door to the terminal. What a program prints may hold anybody's bytes: a file's name, a model's
 * metadata, an answer, a sentence of a library. Behind base_door_open stdout and stderr, where they are
 * terminals, are streams whose bytes pass base_utf8_sanitise before they get there; printf, puts, fwrite and
 * perror need not know. A pipe and a file get the bytes as they are: scripts read them.
 *
 * The screen (src/tui/terminal/painter.c) has the terminal for itself and writes past the door;
 * scripts/check-style finds whoever else does.
 */
#ifndef KVIST_BASE_DOOR_H
#define KVIST_BASE_DOOR_H

/* The first thing that main does. Calls behind the first are nothing. */
void base_door_open(void);

/*
 * One line of progress on stderr that the next one replaces; nothing where that is no terminal. "" ends it, NULL takes
 * it away.
 */
void base_door_progress(const char *line);

#endif
