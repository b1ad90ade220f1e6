/* payload.c - the bytes of a compiled kernel, as the cache hands them out. */
#include "base/kernel_cache.h"

#include <string.h>

/* In one allocation; the bytes begin at a multiple of 16, the alignment of anything in C. */
hg_payload *hg_payload_create(const hg_allocator *allocator, const void *bytes, size_t byte_count) {
  enum { HEAD = (sizeof(hg_payload) + 15) / 16 * 16 };
  if (byte_count > SIZE_MAX - HEAD) return NULL;
  uint8_t *memory = hg_allocate(allocator, HEAD + byte_count, 1);
  if (memory == NULL) return NULL;
  hg_payload *payload = (hg_payload *)(void *)memory;
  atomic_init(&payload->references, 1);
  payload->allocator = *allocator;
  payload->byte_count = byte_count;
  payload->bytes = memory + HEAD;
  if (byte_count > 0) memcpy(payload->bytes, bytes, byte_count);
  return payload;
}

hg_payload *hg_payload_retain(hg_payload *payload) {
  if (payload != NULL) atomic_fetch_add_explicit(&payload->references, 1, memory_order_relaxed);
  return payload;
}

void hg_payload_release(hg_payload *payload) {
  if (payload == NULL || atomic_fetch_sub_explicit(&payload->references, 1, memory_order_acq_rel) != 1) return;
  hg_allocator allocator = payload->allocator;
  hg_release(&allocator, payload);
}
