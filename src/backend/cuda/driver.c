/* driver.c - finds libcuda and its functions, and turns its errors into words. */
#include "backend/cuda/driver.h"

#include "base/os.h"

static const cuda_error errors[] = {
#define CUDA_ERROR(number, name, status, poisons, sentence) \
  {number, "CUDA_ERROR_" #name, sentence, HG_##status, poisons},
#include "backend/cuda/errors.def"
#undef CUDA_ERROR
};

cuda_error hg_cuda_error_of(int number) {
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (errors[i].number == number) return errors[i];
  return (cuda_error){number, "unknown error", "the CUDA driver failed", HG_DEVICE, 0};
}

hg_status hg_cuda_driver_check(int result, const char *what) {
  if (result == CUDA_OK) return HG_OK;
  cuda_error error = hg_cuda_error_of(result);
  return hg_fail(error.status, "%s: %s (%s, %d)", what, error.sentence, error.name, result);
}

static hg_status find_symbols(cuda_driver *driver) {
  const char *missing = NULL;
#define SYMBOL(name, parameters)                             \
  hg_library_find(driver->library, #name, &driver->name);    \
  if (driver->name == NULL && missing == NULL) missing = #name;
#define SYMBOL_OPTIONAL(name, parameters) hg_library_find(driver->library, #name, &driver->name);
#include "backend/cuda/symbols.def"
#undef SYMBOL_OPTIONAL
#undef SYMBOL
  if (missing == NULL) return HG_OK;
  return hg_fail(HG_UNSUPPORTED,
                 "the NVIDIA driver is too old: its libcuda has no %s; install a driver for CUDA %d.%d or later",
                 missing, CUDA_MIN_DRIVER / 1000, CUDA_MIN_DRIVER % 1000 / 10);
}

hg_status hg_cuda_driver_load(cuda_driver *driver) {
  *driver = (cuda_driver){.library = hg_library_open("libcuda.so.1", "nvcuda.dll")};
  if (driver->library == NULL)
    return hg_fail(HG_UNSUPPORTED, "no NVIDIA driver is installed here (its library, libcuda, cannot be loaded)");
  HG_TRY(find_symbols(driver));
  int version = 0;
  if (driver->cuDriverGetVersion(&version) != CUDA_OK) version = 0;
  if (version < CUDA_MIN_DRIVER)
    return hg_fail(HG_UNSUPPORTED,
                   "the NVIDIA driver is too old: it is for CUDA %d.%d; install one for CUDA %d.%d or later",
                   version / 1000, version % 1000 / 10, CUDA_MIN_DRIVER / 1000, CUDA_MIN_DRIVER % 1000 / 10);
  HG_TRY(hg_cuda_driver_check(driver->cuInit(0), "the CUDA driver did not start"));
  driver->version = version;
  return HG_OK;
}
