/* settings.c - whole decimal numbers out of environment variables. */
#include "base/settings.h"

#include "base/os.h"

#include <string.h>

/* A whole decimal number; 0 if it is none or too large. */
static int parse_number(const char *text, uint64_t *value) {
  uint64_t result = 0;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9' || result > (UINT64_MAX - 9) / 10) return 0;
    result = result * 10 + (uint64_t)(*text - '0');
  }
  *value = result;
  return 1;
}

hg_setting_state hg_setting_number(const char *name, uint64_t least, uint64_t most, uint64_t *value) {
  char text[32] = "";
  uint64_t number = 0;
  if (!hg_environment_is_set(name)) return HG_SETTING_ABSENT;
  if (!hg_environment(name, text, sizeof text)) return HG_SETTING_BAD; /* too long for any number */
  if (!parse_number(text, &number) || number < least || number > most) return HG_SETTING_BAD;
  *value = number;
  return HG_SETTING_GIVEN;
}
