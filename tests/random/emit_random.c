/* emit_random.c - random programs as PTX, for ptxas to judge: emit_random SEED COUNT CAPABILITY FOLDER writes modules
 * of many entries each. */
#include "backend/cuda/ptx/emit_ptx.h"
#include "base/error.h"
#include "compiler/canon/canon.h"
#include "compiler/optimise.h"
#include "generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 16 };

static hg_status compile(const atlas_program *program, uint32_t capability, ssa_unit *unit) {
  HG_TRY(hg_canonicalise(program, NULL, unit));
  HG_TRY(hg_ptx_expand(program, unit, NULL, capability));
  return hg_optimise(program, unit, NULL);
}

/* The kernel cache gives back what it was given: all of it that a launch needs. */
static hg_status keep(const atlas_program *program, const hg_gpu_variant *variant, uint32_t capability,
                      const hg_gpu_info *info) {
  const hg_gpu_target target = hg_ptx_target(capability, UINT32_MAX);
  hg_gpu_info again;
  if (!hg_gpu_admit(program, variant, &target, info, &again)) return hg_fail(HG_FORMAT, "its kernel is not kept");
  return again.argument_bytes == info->argument_bytes && again.threads == info->threads && again.steps == info->steps &&
                 again.tile_shift == info->tile_shift && again.dynamic_bytes == info->dynamic_bytes &&
                 again.sub_blocks == info->sub_blocks &&
                 memcmp(again.parameter, info->parameter, sizeof again.parameter) == 0
             ? HG_OK
             : hg_fail(HG_FORMAT, "its kernel is kept as another one");
}

/* One program as an entry; variants take turns. Programs that do not verify are passed over. */
static hg_status emit(uint64_t seed, uint32_t capability, hg_array *text) {
  draft d = {0};
  test_launch l = {0};
  char name[32];
  ssa_unit unit;
  hg_gpu_info info;
  hg_status status = HG_OK;
  generate(seed, 10 + (uint32_t)(seed % 90), seed < SEEDS_OF_ALL_OPERATIONS ? FIRST_GENERATION : ALL_OPERATIONS, &d,
           &l);
  atlas_program *program = draft_build(&d);
  snprintf(name, sizeof name, "random_%llu", (unsigned long long)seed);
  const hg_ptx_options options = {.capability = capability, .name = name, .variant.threads = seed % 3 == 0 ? 256 : 0,
                                  .variant.flags = seed % 5 == 0   ? HG_GPU_CHECKED
                                           : seed % 7 == 0 ? HG_GPU_COUNT_STEPS
                                                           : 0};
  if (program != NULL) {
    status = compile(program, capability, &unit);
    if (status == HG_OK) status = hg_ptx_emit(&program->allocator, program, &unit, &options, text, &info);
    if (status == HG_OK) status = keep(program, &options.variant, capability, &info);
    ir_ssa_release(&unit);
  }
  atlas_program_release(program);
  draft_release(&d);
  test_launch_release(&l);
  return status;
}

static int write_module(const char *folder, uint64_t seed, const hg_array *text) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%llu.ptx", folder, (unsigned long long)seed);
  FILE *file = fopen(path, "wb");
  if (file == NULL) return 0;
  int ok = fwrite(text->data, 1, text->count, file) == text->count;
  return fclose(file) == 0 && ok;
}

int main(int argc, char **argv) {
  hg_allocator allocator;
  if (argc != 5 || hg_allocator_resolve(NULL, &allocator) != HG_OK) {
    fprintf(stderr, "usage: emit_random SEED COUNT CAPABILITY FOLDER\n");
    return 2;
  }
  uint64_t seed = strtoull(argv[1], NULL, 10), end = seed + strtoull(argv[2], NULL, 10);
  uint32_t capability = (uint32_t)strtoul(argv[3], NULL, 10);
  while (seed < end) {
    hg_array text = {.element_size = 1};
    uint64_t first = seed;
    hg_status status = hg_ptx_module(&allocator, capability, &text);
    for (; status == HG_OK && seed < end && seed < first + ENTRIES; seed++)
      status = emit(seed, capability, &text);
    int written = status == HG_OK && write_module(argv[4], first, &text);
    hg_array_release(&allocator, &text);
    if (!written) {
      fprintf(stderr, "program %llu: %s\n", (unsigned long long)seed - 1,
              status != HG_OK ? hg_last_error() : "not written");
      return 1;
    }
  }
  return 0;
}
