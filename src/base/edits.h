/* How different two words are, for "did you mean". */
#ifndef KVIST_BASE_EDITS_H
#define KVIST_BASE_EDITS_H

/*
 * Letters that have to be put in, taken out or exchanged to make one word the other, letter case free; more
 * than `most`, or a word above 64 bytes, is most + 1.
 */
unsigned base_edits(const char *a, const char *b, unsigned most);

#endif
