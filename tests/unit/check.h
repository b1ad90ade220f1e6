/* check.h - the checks of a unit test. A failure prints the place and both values and the test goes on; the last line
 * is "N passed, N failed". Use: CHECK...(...) anywhere, `return check_report();` at the end of main. */
#ifndef HG_TESTS_CHECK_H
#define HG_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* 1 where AddressSanitizer or ThreadSanitizer is built in. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#  define SANITIZED 1
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#    define SANITIZED 1
#  endif
#endif
#if !defined(SANITIZED)
#  define SANITIZED 0
#endif

static unsigned long check_passed, check_failed;

static inline int check_note(int ok) {
  if (ok) check_passed++;
  else check_failed++;
  return ok;
}

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!check_note(!!(condition))) printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
  } while (0)

#define CHECK_EQ_U64(actual, expected)                                                              \
  do {                                                                                              \
    uint64_t check_a = (uint64_t)(actual), check_e = (uint64_t)(expected);                          \
    if (!check_note(check_a == check_e))                                                            \
      printf("%s:%d: %s is %llu (0x%llx), expected %llu (0x%llx)\n", __FILE__, __LINE__, #actual,   \
             (unsigned long long)check_a, (unsigned long long)check_a, (unsigned long long)check_e, \
             (unsigned long long)check_e);                                                          \
  } while (0)

#define CHECK_STR(actual, expected)                                                                       \
  do {                                                                                                    \
    const char *check_a = (actual), *check_e = (expected);                                                \
    if (!check_note(strcmp(check_a, check_e) == 0))                                                       \
      printf("%s:%d: %s is\n  \"%s\", expected\n  \"%s\"\n", __FILE__, __LINE__, #actual, check_a, check_e); \
  } while (0)

/* Nothing checked is a failure, too. */
static inline int check_report(void) {
  if (check_passed + check_failed == 0) printf("nothing was checked\n");
  printf("%lu passed, %lu failed\n", check_passed, check_failed);
  return check_failed == 0 && check_passed > 0 ? 0 : 1;
}

#endif
