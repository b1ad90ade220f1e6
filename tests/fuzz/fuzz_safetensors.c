/* fuzz_safetensors.c - any bytes as a .safetensors file: it is refused with a sentence, or what it describes lies
 * in it. */
#include "fuzz.h"

#include "tensors/tensor_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *bytes = malloc(size > 0 ? size : 1); /* whose end the sanitizer watches */
  PROMISE(bytes != NULL);
  if (size > 0) memcpy(bytes, data, size);
  tensor_entry *entries = NULL;
  size_t count = 0;
  hg_allocator allocator = hg_allocator_of(NULL);
  if (hg_safetensors_read(&allocator, "fuzz", bytes, size, size, &entries, &count) == HG_OK) {
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++) {
      PROMISE(entries[i].first <= size && entries[i].byte_count <= size - entries[i].first);
      PROMISE(strlen(entries[i].name) < size);
      all += entries[i].byte_count;
    }
    PROMISE(all <= size);
  } else {
    PROMISE(count == 0 && entries == NULL && strncmp(hg_last_error(), "fuzz: ", 6) == 0);
  }
  hg_release(&allocator, entries);
  free(bytes);
  return 0;
}
