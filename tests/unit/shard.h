/* shard.h - a slow test in parts that run side by side: `test_x --shard 2/4` does the second piece of its work, the
 * sixth, and so on; without the option a test does all of them. How many parts: tests/unit/meson.build. */
#ifndef HG_TESTS_SHARD_H
#define HG_TESTS_SHARD_H

#include <stdio.h>
#include <string.h>

static unsigned shard_number = 1, shard_count = 1, shard_pieces;

/* Reads the option; 0 where it is no such part. */
static inline int choose_shard(int word_count, char **words) {
  if (word_count == 1) return 1;
  char behind;
  if (word_count == 3 && strcmp(words[1], "--shard") == 0 &&
      sscanf(words[2], "%u/%u%c", &shard_number, &shard_count, &behind) == 2 && shard_number >= 1 &&
      shard_number <= shard_count)
    return 1;
  printf("usage: %s [--shard NUMBER/COUNT]\n", words[0]);
  return 0;
}

/* Whether a piece of the work is this part's; of pieces without numbers, the next one. */
static inline int is_in_shard(unsigned piece) { return piece % shard_count + 1 == shard_number; }
static inline int in_shard(void) { return is_in_shard(shard_pieces++); }

#endif
