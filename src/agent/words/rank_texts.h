/*
 * Which of some texts a message asks for: BM25 over the words' stems (Robertson and Zaragoza, The Probabilistic
 * Relevance Framework, 2009), the texts themselves being the collection. Pure; any thread.
 */
#ifndef KVIST_AGENT_WORDS_RANK_TEXTS_H
#define KVIST_AGENT_WORDS_RANK_TEXTS_H

#include <stdint.h>

typedef struct agent_rank {
    double score; /* BM25 as a share of the most that this message can give; 0: no word of it is there */
    double cover; /* how much of the message is there, by how rare its words are; from 0 to 1 */
} agent_rank;

/* texts, ret: [n]. Words that say nothing of a subject count nothing (request_words.h says what a word is). */
void agent_rank_texts(const char *message, const char *const *texts, uint32_t n, agent_rank *ret);

#endif
