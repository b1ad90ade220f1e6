/* environment.h - settings for the executors that a test makes from then on. setenv needs _GNU_SOURCE before the first
 * header. */
#ifndef HG_TESTS_ENVIRONMENT_H
#define HG_TESTS_ENVIRONMENT_H

#include <stdlib.h>

static inline void set(const char *name, const char *value) {
#if defined(_WIN32)
  _putenv_s(name, value);
#else
  setenv(name, value, 1);
#endif
}

#endif
