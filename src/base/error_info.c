/* error_info.c - the last error as data, for callers of any version. */
#include "base/abi.h"
#include "base/error.h"

hg_status hg_last_error_info(hg_error_info *info) {
  hg_error_info result;
  if (info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_last_error_info: info is NULL");
  hg_error_read(&result);
  return HG_WRITE(hg_error_info, info, &result);
}
