/* unwritten.c - writers of programs that are not there yet. */
#include "ops/plan.h"

hg_status ops_write_contract(const ops_group *group, ops_step *step) {
  (void)group, (void)step;
  return hg_fail(HG_UNSUPPORTED, "contractions are not there yet");
}
