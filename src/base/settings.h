/* settings.h - settings that are numbers, from the environment. A bad one never fails anything: it is ignored, and
 * whoever reads it says so in a log. */
#ifndef HG_BASE_SETTINGS_H
#define HG_BASE_SETTINGS_H

#include <stdint.h>

typedef enum hg_setting_state {
  HG_SETTING_ABSENT, /* not set, or empty */
  HG_SETTING_GIVEN,
  HG_SETTING_BAD /* not a whole decimal number, out of its range, or longer than any */
} hg_setting_state;

/* The variable `name` as a number from `least` to `most`; *value changes only where one is given. */
hg_setting_state hg_setting_number(const char *name, uint64_t least, uint64_t most, uint64_t *value);

#endif
