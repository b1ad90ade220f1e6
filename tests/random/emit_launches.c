/* emit_launches.c - random programs, each with its launch, as bytes on the standard output: tests/record/programs.py
 * runs them on a library of another commit, which may have another generator, and other insides.
 *
 *   emit_launches SEED COUNT
 *
 * Numbers are little-endian, and a block is a u64 and so many bytes. Of a seed whose program does not verify there is
 * the seed and an empty block; of the others what write_launch writes. */
#include "generate.h"
#include "on_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_bytes(const void *bytes, uint64_t count) { fwrite(bytes, 1, (size_t)count, stdout); }

static void write_number(uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) putchar((int)(value >> 8 * i & 0xff));
}

static void write_block(const void *bytes, uint64_t count) {
  write_number(count, 8);
  write_bytes(bytes, count);
}

typedef struct seeded {
  const draft *d;
  const test_launch *l;
} seeded;

/* A run_function, for what test_launch_run makes of the launch. */
static hg_status write_launch(const void *context, atlas_launch *launch) {
  const seeded *s = context;
  static bound_arguments bound;
  memset(&bound, 0, sizeof bound);
  bind_arguments(s->d, s->l, launch, &bound);
  write_number(launch->lanes, 8);
  for (int k = 0; k < 3; k++) write_number(launch->lanes != 0 ? 0 : launch->grid[k], 4);
  for (int k = 0; k < 3; k++) write_number(launch->lanes != 0 ? 0 : launch->block[k], 4);
  write_number(launch->step_limit, 8);
  write_number(launch->phase, 4);
  write_block(s->l->initial, s->l->arena_bytes);
  write_block(launch->boundary, launch->boundary != NULL ? ATLAS_BOUNDARY_POOL_BYTES : 0);
  write_number(bound.binding_count, 4);
  for (size_t i = 0; i < bound.binding_count; i++) {
    write_number(bound.bindings[i].slot, 4);
    write_number(bound.bindings[i].entry, 4);
    write_number(bound.bindings[i].offset, 8);
    write_number(bound.bindings[i].byte_count, 8);
  }
  write_number(bound.scalar_count, 4);
  for (size_t i = 0; i < bound.scalar_count; i++) {
    write_number(bound.scalars[i].slot, 4);
    write_number(bound.scalars[i].type, 4);
    write_number(bound.scalars[i].bits, 8);
  }
  return HG_OK;
}

static int write_seed(uint64_t seed) {
  draft d = {0};
  test_launch l = {0};
  outcome out = {0};
  void *bytes = NULL;
  size_t count = 0;
  hg_status status = HG_OK;
  generate_of_seed(seed, 0, &d, &l);
  atlas_program *program = draft_build(&d);
  if (program != NULL) status = atlas_encode(NULL, program, &bytes, &count);
  write_number(seed, 8);
  write_block(bytes, count);
  if (program != NULL && status == HG_OK) {
    const seeded s = {&d, &l};
    test_launch_prepare(&l, &d);
    status = test_launch_run(&l, &d, write_launch, &s, &out);
  }
  outcome_release(&out);
  atlas_memory_release(NULL, bytes);
  atlas_program_release(program);
  test_launch_release(&l);
  draft_release(&d);
  return status == HG_OK;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: emit_launches SEED COUNT\n");
    return 2;
  }
  uint64_t seed = strtoull(argv[1], NULL, 10), end = seed + strtoull(argv[2], NULL, 10);
  for (; seed < end; seed++)
    if (!write_seed(seed)) {
      fprintf(stderr, "emit_launches: program %llu: %s\n", (unsigned long long)seed, hg_last_error());
      return 1;
    }
  return ferror(stdout) || fflush(stdout) != 0;
}
