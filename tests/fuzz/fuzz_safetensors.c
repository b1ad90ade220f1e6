/* fuzz_safetensors.c - any bytes as a .safetensors file: it is refused with a sentence, or what it describes lies
 * in it. */
#include "fuzz.h"

#include "tensors/tensor_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *bytes = malloc(size > 0 ? size : 1); /* whose end the sanitizer watches */
  PROMISE(bytes != NULL);
  if (size > 0) memcpy(bytes, data, size);
  tensor_list list;
  hg_allocator allocator = hg_allocator_of(NULL);
  if (hg_safetensors_read(&allocator, "fuzz", bytes, size, size, &list) == HG_OK) {
    uint64_t all = 0;
    for (size_t i = 0; i < list.count; i++) {
      PROMISE(list.entries[i].first <= size && list.entries[i].byte_count <= size - list.entries[i].first);
      PROMISE(strlen(list.entries[i].name) < size);
      all += list.entries[i].byte_count;
    }
    for (size_t i = 0; i < 2 * list.text_count; i++) PROMISE(strlen(list.texts[i]) < size);
    PROMISE(all <= size);
  } else {
    PROMISE(list.count == 0 && list.entries == NULL && list.texts == NULL);
    PROMISE(strncmp(hg_last_error(), "fuzz: ", 6) == 0);
  }
  hg_tensor_list_release(&allocator, &list);
  free(bytes);
  return 0;
}
