/* commands.c - command buffers, each with one encoder, all in the device's queue; what happens when the device is
 * lost. */
#include "backend/metal/metal_device.h"

#include <stdio.h>

hg_status hg_metal_begin_within(metal_device *d, metal_encoding *e) {
  metal_id commands = METAL(&d->objc, command_buffer, d->queue);
  metal_id encoder = METAL(&d->objc, encoder, commands);
  if (encoder == NULL) return hg_fail(HG_DEVICE, "Metal made no command buffer");
  *e = (metal_encoding){commands, encoder};
  return HG_OK;
}

void hg_metal_set_last(metal_device *d, metal_id *last, metal_id commands) {
  if (commands != NULL) commands = METAL(&d->objc, retain, commands);
  hg_mutex_lock(&d->mutex);
  metal_id before = *last;
  *last = commands;
  hg_mutex_unlock(&d->mutex);
  if (before != NULL) METAL(&d->objc, release, before);
}

metal_id hg_metal_take_last(metal_device *d, metal_id *last) {
  hg_mutex_lock(&d->mutex);
  metal_id commands = *last != NULL ? METAL(&d->objc, retain, *last) : NULL;
  hg_mutex_unlock(&d->mutex);
  return commands;
}

/* Keeps the first failure of any thread. */
static void poison(metal_device *d, metal_id commands) {
  metal_id error = METAL(&d->objc, error, commands);
  hg_mutex_lock(&d->mutex);
  if (!atomic_load(&d->poisoned)) {
    snprintf(d->poison, sizeof d->poison, "the GPU failed and the executor is lost: %s (Metal's error %ld)",
             hg_metal_words(&d->objc, error), (long)METAL(&d->objc, code, error));
    atomic_store(&d->poisoned, 1);
  }
  hg_mutex_unlock(&d->mutex);
}

/* The oldest command buffer in flight, retained, if it is done; else NULL. */
static metal_id take_done(metal_device *d) {
  metal_id first = NULL;
  hg_mutex_lock(&d->mutex);
  metal_id *in_flight = d->in_flight.data;
  if (d->in_flight.count > 0 && METAL(&d->objc, state, in_flight[0]) >= METAL_COMPLETED) {
    first = in_flight[0];
    memmove(in_flight, in_flight + 1, --d->in_flight.count * sizeof first);
  }
  hg_mutex_unlock(&d->mutex);
  return first;
}

/* Looks at every command buffer that is done: work may succeed after one that failed. */
static void collect(metal_device *d) {
  for (metal_id done; (done = take_done(d)) != NULL;) {
    if (METAL(&d->objc, state, done) == METAL_FAILED) poison(d, done);
    METAL(&d->objc, release, done);
  }
}

static int keep_in_flight(metal_device *d, metal_id commands) {
  hg_mutex_lock(&d->mutex);
  int is_kept = hg_array_append(&d->allocator, &d->in_flight, &commands, 1) != NULL;
  if (is_kept) METAL(&d->objc, retain, commands);
  hg_mutex_unlock(&d->mutex);
  return is_kept;
}

void hg_metal_commit_within(metal_device *d, metal_encoding *e, metal_id *last) {
  if (e->commands == NULL) return;
  METAL(&d->objc, end, e->encoder);
  METAL(&d->objc, commit, e->commands);
  collect(d);
  if (!keep_in_flight(d, e->commands)) {
    METAL(&d->objc, wait, e->commands);
    if (METAL(&d->objc, state, e->commands) == METAL_FAILED) poison(d, e->commands);
  }
  hg_metal_set_last(d, &d->last, e->commands);
  if (last != NULL) hg_metal_set_last(d, last, e->commands);
  *e = (metal_encoding){NULL, NULL};
}

hg_status hg_metal_wait_for(metal_device *d, metal_id commands) {
  if (commands == NULL) return HG_OK;
  METAL(&d->objc, wait, commands);
  collect(d);
  return hg_metal_check(d);
}

int hg_metal_is_idle(metal_device *d) {
  collect(d);
  hg_mutex_lock(&d->mutex);
  int is_idle = d->in_flight.count == 0;
  hg_mutex_unlock(&d->mutex);
  return is_idle;
}

hg_status hg_metal_settle(metal_device *d) {
  if (hg_metal_is_idle(d)) return hg_metal_check(d);
  metal_id last = hg_metal_take_last(d, &d->last);
  hg_status status = hg_metal_wait_for(d, last);
  if (last != NULL) METAL(&d->objc, release, last);
  return status;
}

hg_status hg_metal_check(const metal_device *d) {
  if (d->process != hg_process_id())
    return hg_fail(HG_DEVICE, "the process has forked: a child has no GPU; make its executors in the child");
  return atomic_load(&d->poisoned) ? hg_fail(HG_DEVICE, "%s", d->poison) : HG_OK;
}
