/* spares.c - freed buffers that the next allocation of about their length takes, which saves a call of Metal and page
 * faults. A free waits for nothing; a spare is taken once the work before the free is done. */
#include "backend/metal/metal_device.h"
#include "backend/metal/metal_tuning.h"

static metal_spare *spare_at(const metal_device *d, size_t i) { return (metal_spare *)d->spares.data + i; }

static void let_go(const metal_device *d, const metal_spare *spare) {
  METAL(&d->objc, release, spare->buffer);
  METAL(&d->objc, release, spare->behind);
}

static metal_spare take_out(metal_device *d, size_t i) {
  metal_spare spare = *spare_at(d, i);
  d->spares.count--;
  memmove(spare_at(d, i), spare_at(d, i) + 1, (d->spares.count - i) * sizeof spare);
  d->spare_bytes -= spare.length;
  return spare;
}

static int is_done(const metal_device *d, const metal_spare *spare) {
  return spare->behind == NULL || METAL(&d->objc, state, spare->behind) >= METAL_COMPLETED;
}

/* 1 if the spare is long enough, and longer by at most one part in METAL_SPARE_WASTE. */
static int would_do(const metal_spare *spare, uint64_t length, uint32_t options) {
  return spare->options == options && spare->length >= length && spare->length - length <= length / METAL_SPARE_WASTE;
}

metal_id hg_metal_take_spare_within(metal_device *d, uint64_t *length, uint32_t options) {
  size_t best = d->spares.count;
  for (size_t i = d->spares.count; i-- > 0;) {
    const metal_spare *spare = spare_at(d, i);
    if (!would_do(spare, *length, options) || !is_done(d, spare)) continue;
    if (best == d->spares.count || spare->length < spare_at(d, best)->length) best = i;
  }
  if (best == d->spares.count) return NULL;
  metal_spare spare = take_out(d, best);
  METAL(&d->objc, release, spare.behind);
  *length = spare.length;
  return spare.buffer;
}

/* If spares take too much memory, the oldest go, after all work is done: a buffer in use gives back no memory. */
static void make_room(metal_device *d, uint64_t length) {
  if (d->spare_bytes + length <= d->most_spare_bytes) return;
  (void)hg_metal_settle(d);
  while (d->spares.count > 0 && d->spare_bytes + length > d->most_spare_bytes) {
    metal_spare oldest = take_out(d, 0);
    let_go(d, &oldest);
  }
}

void hg_metal_keep_spare_within(metal_device *d, const metal_spare *spare) {
  if (spare->behind != NULL) METAL(&d->objc, retain, spare->behind); /* make_room may release it */
  make_room(d, spare->length);
  if (spare->length > d->most_spare_bytes || hg_array_append(&d->allocator, &d->spares, spare, 1) == NULL)
    let_go(d, spare);
  else d->spare_bytes += spare->length;
}

int hg_metal_trim_within(metal_device *d) {
  if (d->spares.count == 0) return 0;
  (void)hg_metal_settle(d);
  while (d->spares.count > 0) {
    metal_spare spare = take_out(d, d->spares.count - 1);
    let_go(d, &spare);
  }
  return 1;
}
