/* shard.h - a part of a long test's work, which is made of pieces: one of those that run side by side, and of it a
 * share where all would take too long.
 *
 * `test_x --shard 2/4` does the second piece, the sixth, and so on. How many parts: tests/unit/meson.build.
 *
 * HOLOGRAM_TEST_SHARE=3/4 does the third fourth of these. The release build does them all; where the same program runs
 * many times as slowly (sanitizers, emulators, wine), `./dev test` asks for a share of the tests of the suite `long`,
 * another one in each stage. Shares are drawn by the pieces' numbers: every fourth piece might always be of one kind.
 */
#ifndef HG_TESTS_SHARD_H
#define HG_TESTS_SHARD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned shard_number = 1, shard_count = 1, share_number, share_count, shard_pieces;

/* Reads "2/4"; 0 where it is no such part. */
static inline int read_part(const char *word, unsigned *number, unsigned *count) {
  char behind;
  return sscanf(word, "%u/%u%c", number, count, &behind) == 2 && *number >= 1 && *number <= *count;
}

/* Reads the option; 0 where it is no such part. */
static inline int choose_shard(int word_count, char **words) {
  if (word_count == 1) return 1;
  if (word_count == 3 && strcmp(words[1], "--shard") == 0 && read_part(words[2], &shard_number, &shard_count)) return 1;
  printf("usage: %s [--shard NUMBER/COUNT]\n", words[0]);
  return 0;
}

static inline void choose_share(void) {
  const char *share = getenv("HOLOGRAM_TEST_SHARE");
  if (share != NULL && read_part(share, &share_number, &share_count)) return;
  share_number = share_count = 1;
}

/* Whether a piece of the work is this part's; of pieces without numbers, the next one. */
static inline int is_in_shard(unsigned piece) {
  if (share_count == 0) choose_share();
  uint32_t drawn = (piece / shard_count * UINT32_C(2654435761) >> 16) % share_count;
  return piece % shard_count + 1 == shard_number && drawn + 1 == share_number;
}
static inline int in_shard(void) { return is_in_shard(shard_pieces++); }

#endif
