/* differences.c - what two runs of a launch left, and how a case is shown to who has to look into it. */
#include "sweep.h"

#include <stdio.h>
#include <string.h>

static int same_fault(const hg_fault *a, const hg_fault *b) {
  return a->kind == b->kind && a->instruction == b->instruction && a->line == b->line && a->code == b->code &&
         a->lane == b->lane && strcmp(a->buffer, b->buffer) == 0 && a->index == b->index && a->extent == b->extent;
}

static size_t write_fault(const hg_fault *f, const char *who, char *out, size_t size) {
  if (f->kind == HG_FAULT_NONE) return (size_t)snprintf(out, size, "  %s: no fault\n", who);
  return (size_t)snprintf(out, size,
                          "  %s: %s, instruction %u, line %u, code %u, lane %llu, '%s', index %lld, extent %lld\n", who,
                          hg_fault_kind_name(f->kind), f->instruction, f->line, f->code, (unsigned long long)f->lane,
                          f->buffer, (long long)f->index, (long long)f->extent);
}

/* The first byte of a room that differs, and where that is as seen from what is bound. */
static int same_room(const sweep_range *range, const uint8_t *expected, const uint8_t *got, char *what, size_t size) {
  uint64_t bytes = sweep_room_bytes(range->room), first = 0, count = 0;
  if (expected == got || memcmp(expected, got, bytes) == 0) return 1;
  while (expected[first] == got[first]) first++;
  for (uint64_t i = first; i < bytes; i++) count += expected[i] != got[i];
  snprintf(what, size,
           "  %s: %llu bytes differ, the first is byte %lld of what is bound (%llu bytes): 0x%02x, should be 0x%02x\n",
           range->name, (unsigned long long)count, (long long)(first - range->offset),
           (unsigned long long)range->byte_count, got[first], expected[first]);
  return 0;
}

int sweep_same(const sweep_launch *l, const sweep_result *expected, const sweep_result *got, char *what, size_t size) {
  what[0] = '\0';
  if (expected->status != got->status) {
    snprintf(what, size, "  status %d, should be %d: %s\n", got->status, expected->status, hg_last_error());
    return 0;
  }
  if (expected->status != HG_OK && expected->status != HG_FAULT) return 1;
  if (!same_fault(&expected->fault, &got->fault)) {
    size_t written = write_fault(&got->fault, "it has", what, size);
    (void)write_fault(&expected->fault, "should be", what + written, size - written);
    return 0;
  }
  for (uint32_t i = 0; i < l->range_count; i++) {
    uint32_t slot = l->ranges[i].slot;
    if (!same_room(&l->ranges[i], expected->memory[slot], got->memory[slot], what, size)) return 0;
  }
  return 1;
}

void sweep_print(const sweep_program *p, const sweep_launch *l) {
  static const char *const places[] = {"ends", "begins", "lies"};
  printf("%s", p->text);
  if (l->grid[0] == 0) printf("  %llu lanes\n", (unsigned long long)l->lanes);
  else printf("  grid %u x %u of blocks %u x %u\n", l->grid[0], l->grid[1], l->block[0], l->block[1]);
  for (uint32_t i = 0; i < l->range_count; i++) {
    const sweep_range *r = &l->ranges[i];
    printf("  %s", r->name);
    if (strcmp(r->name, "t") == 0) printf(" %u", r->entry);
    if (r->slot != i) printf(", the same as %s", l->ranges[r->slot].name);
    printf(": %llu bytes; memory %s there%s\n", (unsigned long long)r->byte_count, places[r->place],
           r->place == PLACE_INSIDE ? " and goes on on both sides" : "");
  }
  for (uint32_t i = 0; i < l->scalar_count; i++)
    printf("  scalar %u = 0x%llx (%lld)\n", l->scalars[i].slot, (unsigned long long)l->scalars[i].bits,
           (long long)l->scalars[i].bits);
}
