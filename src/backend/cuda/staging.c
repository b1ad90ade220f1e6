/* staging.c - transfers between pageable host memory and the device, through a ring of pinned slots. The device reads
 * and writes pinned memory at its link's full speed; while it transfers one batch of slots, the host copies the next.
 */
#include "backend/cuda/device.h"
#include "backend/cuda/cuda_tuning.h"

#include "base/threads.h"

#include <string.h>

enum { BATCH = CUDA_SLOT_COUNT / 2 }; /* one half of the ring is copied while the other is transferred */

static hg_status slot_open(cuda_device *d, cuda_slot *slot) {
  void *memory = NULL;
  CUDA_TRY(d, cuMemHostAlloc(&memory, CUDA_SLOT_BYTES, CUDA_HOST_PORTABLE), "could not pin memory for transfers");
  hg_status status =
      hg_cuda_check(d, d->driver.cuEventCreate(&slot->done, CUDA_EVENT_DISABLE_TIMING), "could not make an event");
  if (status == HG_OK) slot->memory = memory;
  else (void)d->driver.cuMemFreeHost(memory);
  return status;
}

static hg_status slot_wait(cuda_device *d, cuda_slot *slot) {
  if (!slot->busy) return HG_OK;
  slot->busy = 0;
  return hg_cuda_check(d, d->driver.cuEventSynchronize(slot->done), "a transfer, or a kernel before it, failed");
}

/* The next slot that the device no longer uses. HG_OUT_OF_MEMORY if there is no pinned memory left. */
static hg_status slot_take(cuda_device *d, cuda_slot **slot) {
  cuda_slot *next = &d->slots[d->next_slot];
  if (next->memory == NULL) HG_TRY(slot_open(d, next));
  HG_TRY(slot_wait(d, next));
  d->next_slot = (d->next_slot + 1) % CUDA_SLOT_COUNT;
  *slot = next;
  return HG_OK;
}

/* Marks the slot as in use until the present work of the own stream is done. */
static hg_status slot_lend(cuda_device *d, cuda_slot *slot) {
  CUDA_TRY(d, cuEventRecord(slot->done, d->stream), "could not record an event");
  slot->busy = 1;
  return HG_OK;
}

void hg_cuda_slots_close_within(cuda_device *d) {
  for (int i = 0; i < CUDA_SLOT_COUNT; i++) {
    if (d->slots[i].memory == NULL) continue;
    (void)d->driver.cuEventDestroy_v2(d->slots[i].done);
    (void)d->driver.cuMemFreeHost(d->slots[i].memory);
  }
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

/* Up to BATCH slots, and the range of the transfer that goes through them. */
typedef struct batch {
  cuda_slot *slot[BATCH];
  uint8_t *host; /* of the first slot's part */
  uint64_t byte_count;
  uint32_t count;
} batch;

static uint64_t part_bytes(const batch *b, uint64_t part) {
  uint64_t rest = b->byte_count - part * CUDA_SLOT_BYTES;
  return rest < CUDA_SLOT_BYTES ? rest : CUDA_SLOT_BYTES;
}

static hg_status batch_take(cuda_device *d, batch *b, const uint8_t *host, uint64_t byte_count) {
  uint64_t most = (uint64_t)BATCH * CUDA_SLOT_BYTES;
  *b = (batch){.host = (uint8_t *)(uintptr_t)host, .byte_count = byte_count < most ? byte_count : most};
  for (uint64_t done = 0; done < b->byte_count; done += CUDA_SLOT_BYTES)
    HG_TRY(slot_take(d, &b->slot[b->count++]));
  return HG_OK;
}

static void copy_to_slot(void *user, uint64_t part, uint32_t worker) {
  const batch *b = user;
  (void)worker;
  memcpy(b->slot[part]->memory, b->host + part * CUDA_SLOT_BYTES, (size_t)part_bytes(b, part));
}

static void copy_from_slot(void *user, uint64_t part, uint32_t worker) {
  const batch *b = user;
  (void)worker;
  memcpy(b->host + part * CUDA_SLOT_BYTES, b->slot[part]->memory, (size_t)part_bytes(b, part));
}

/* Several threads copy faster than one, up to the speed of the link. */
static void for_each_part(batch *b, hg_part *copy) {
  hg_parallel(hg_parallel_threads((uint64_t)b->count * CUDA_SLOT_NS, CUDA_SLOT_THREADS), b->count, copy, b);
}

hg_status hg_cuda_stage_in(cuda_device *d, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  batch b;
  for (uint64_t done = 0; done < byte_count; done += b.byte_count) {
    HG_TRY(batch_take(d, &b, source + done, byte_count - done));
    for_each_part(&b, copy_to_slot);
    for (uint32_t i = 0; i < b.count; i++) {
      cuda_address to = cuda_address_of(destination) + done + (uint64_t)i * CUDA_SLOT_BYTES;
      CUDA_TRY(d, cuMemcpyHtoDAsync_v2(to, b.slot[i]->memory, (size_t)part_bytes(&b, i), d->stream),
               "could not copy to the GPU");
      HG_TRY(slot_lend(d, b.slot[i]));
    }
  }
  return HG_OK;
}

/* Makes the device fill a batch of slots. */
static hg_status batch_request(cuda_device *d, batch *b, uint8_t *host, const uint8_t *source, uint64_t byte_count) {
  HG_TRY(batch_take(d, b, host, byte_count));
  for (uint32_t i = 0; i < b->count; i++) {
    cuda_address from = cuda_address_of(source) + (uint64_t)i * CUDA_SLOT_BYTES;
    CUDA_TRY(d, cuMemcpyDtoHAsync_v2(b->slot[i]->memory, from, (size_t)part_bytes(b, i), d->stream),
             "could not copy from the GPU");
    HG_TRY(slot_lend(d, b->slot[i]));
  }
  return HG_OK;
}

hg_status hg_cuda_stage_out(cuda_device *d, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  batch current, next = {.count = 0};
  HG_TRY(batch_request(d, &current, destination, source, byte_count));
  for (uint64_t done = 0; done < byte_count; done += current.byte_count, current = next) {
    uint64_t ahead = done + current.byte_count;
    if (ahead < byte_count)
      HG_TRY(batch_request(d, &next, destination + ahead, source + ahead, byte_count - ahead));
    for (uint32_t i = 0; i < current.count; i++) HG_TRY(slot_wait(d, current.slot[i]));
    for_each_part(&current, copy_from_slot);
  }
  return HG_OK;
}
