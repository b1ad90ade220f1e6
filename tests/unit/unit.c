/* unit.c - the program that holds the unit tests: `unit test_x [WORD]...` runs that one, whose `main` has another name
 * here (meson.build). Called by a link with a test's name it is that test. */
#include "unit_table.h"

#include <stdio.h>
#include <string.h>

#define TEST(name) int main_of_##name(void);
#define TEST_OF_WORDS(name) int main_of_##name(int count, char **words);
UNIT_TESTS
#undef TEST
#undef TEST_OF_WORDS

typedef struct unit_test {
  const char *name;
  int (*run)(void);
  int (*run_words)(int count, char **words);
} unit_test;

#define TEST(name) {#name, main_of_##name, NULL},
#define TEST_OF_WORDS(name) {#name, NULL, main_of_##name},
static const unit_test tests[] = {UNIT_TESTS};

static const unit_test *find(const char *name) {
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    if (strcmp(tests[i].name, name) == 0) return &tests[i];
  return NULL;
}

/* ThreadSanitizer would end a child that starts threads. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "die_after_fork=0"; }

int main(int count, char **words) {
  static char path[4096]; /* the test's, under which it can be started again */
  const char *slash = strrchr(words[0], '/');
  const unit_test *test = find(slash != NULL ? slash + 1 : words[0]);
  if (test == NULL && count > 1 && (test = find(words[1])) != NULL) {
    int folder = slash != NULL ? (int)(slash + 1 - words[0]) : 0;
    snprintf(path, sizeof path, "%.*s%s", folder, words[0], test->name);
    words[1] = path;
    words++;
    count--;
  }
  if (test != NULL) return test->run != NULL ? test->run() : test->run_words(count, words);
  printf("usage: unit TEST [WORD]...; the tests are:\n");
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) printf("  %s\n", tests[i].name);
  return 2;
}
