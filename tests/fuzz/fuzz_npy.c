/* fuzz_npy.c - any bytes as a .npy file: it is refused with a sentence, or what it describes lies in it. */
#include "fuzz.h"

#include "tensors/tensor_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *bytes = malloc(size > 0 ? size : 1); /* whose end the sanitizer watches */
  PROMISE(bytes != NULL);
  if (size > 0) memcpy(bytes, data, size);
  tensor_entry entry;
  if (hg_npy_read("fuzz", bytes, size, size, &entry) == HG_OK)
    PROMISE(entry.first <= size && size - entry.first == entry.byte_count);
  else PROMISE(strncmp(hg_last_error(), "fuzz: ", 6) == 0);
  free(bytes);
  return 0;
}
