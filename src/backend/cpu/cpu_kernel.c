/* cpu_kernel.c - chooses the engine that runs a program.
 *
 * To add an engine: its row in hg_cpu_engine and in `settings`, its case in name, create, launch and release. */
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "backend/cpu/contract/contract.h"
#include "backend/cpu/engine/engine.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/rows/move_rows.h"
#include "backend/cpu/targets.h"
#include "backend/cpu/tile/tile.h"
#include "base/error.h"
#include "base/os.h"
#include "compiler/optimise.h"
#include "compiler/ssa_interp.h"

#include <stdio.h>
#include <string.h>

static const char *const settings[HG_CPU_ENGINE_COUNT] = {
    [HG_CPU_REFERENCE] = "interp", [HG_CPU_TILE] = "tile", [HG_CPU_NATIVE] = "native"};

struct hg_cpu_kernel {
  hg_allocator allocator;
  const atlas_program *program;
  hg_cpu_engine engine;
  ssa_unit unit;    /* HG_CPU_REFERENCE: the canonical program */
  hg_vector vector; /* HG_CPU_TILE, HG_CPU_NATIVE: vector code */
  hg_vector lanes;  /* the same for one lane, if `native` runs one after the other */
  hg_tile *tile;    /* for launches that `native` cannot run; NULL: it runs all of them */
  hg_native *native;/* NULL: `tile` runs every launch */
  uint8_t contracts; /* 1: a contraction; the fields above are unused */
  cpu_isa isa;      /* of contractions and row moves */
  uint32_t most_threads;
  const atomic_uint *cancels;
  uint64_t stream_bytes;
  char why[200];    /* why no faster engine runs the program; "": there is none */
};

/* ---- choice ------------------------------------------------------------------------------------------------------ */

static int find_engine(const char *name, hg_cpu_engine *engine) {
  for (int e = 0; e < HG_CPU_ENGINE_COUNT; e++)
    if (strcmp(settings[e], name) == 0) {
      *engine = (hg_cpu_engine)e;
      return 1;
    }
  return 0;
}

static hg_status choose_engine(const char *asked, hg_cpu_engine *engine) {
  char wanted[32];
  *engine = (hg_cpu_engine)(HG_CPU_ENGINE_COUNT - 1);
  if (asked[0] != '\0') {
    if (find_engine(asked, engine)) return HG_OK;
    return hg_fail(HG_UNSUPPORTED, "the CPU has no engine '%s', only 'interp', 'tile' and 'native'", asked);
  }
  if (!hg_environment_is_set("HOLOGRAM_CPU_ENGINE")) return HG_OK;
  if (!hg_environment("HOLOGRAM_CPU_ENGINE", wanted, sizeof wanted)) memcpy(wanted, "(too long)", sizeof "(too long)");
  if (find_engine(wanted, engine)) return HG_OK;
  return hg_fail(HG_INVALID_ARGUMENT, "HOLOGRAM_CPU_ENGINE is '%s'; expected 'interp', 'tile' or 'native'", wanted);
}

hg_status hg_cpu_compiler_choose(const char *engine, hg_cpu_compiler *compiler) {
  memset(compiler, 0, sizeof *compiler);
  HG_TRY(choose_engine(engine, &compiler->engine));
  compiler->is_asked = engine[0] != '\0';
  return hg_cpu_isa_choose(&compiler->isa);
}

hg_status hg_cpu_compiler_open(const char *engine, hg_cpu_compiler *compiler, const hg_allocator *allocator) {
  HG_TRY(hg_cpu_compiler_choose(engine, compiler));
  compiler->allocator = *allocator;
  hg_functions_open(&compiler->functions, allocator);
  return hg_code_open(&compiler->pages, allocator);
}

void hg_cpu_compiler_close(hg_cpu_compiler *compiler) {
  hg_functions_close(&compiler->functions);
  hg_code_close(&compiler->pages);
}

const char *hg_cpu_compiler_engine(const hg_cpu_compiler *compiler) {
  const native_target *target = hg_native_target(compiler->isa);
  if (compiler->engine == HG_CPU_REFERENCE) return "reference";
  return compiler->engine == HG_CPU_NATIVE && target != NULL ? target->engine : hg_tile_engine_name(compiler->isa);
}

const char *hg_cpu_kernel_engine(const hg_cpu_kernel *kernel) {
  static const char *const own[] = {"contraction", "contraction avx2", "contraction avx512"};
  if (kernel->contracts) return own[kernel->isa];
  if (kernel->engine == HG_CPU_REFERENCE) return "reference";
  return kernel->native != NULL ? hg_native_engine(kernel->native) : hg_tile_name(kernel->tile);
}

const char *hg_cpu_kernel_why(const hg_cpu_kernel *kernel) { return kernel->why; }

const char *hg_cpu_kernel_notes(const hg_cpu_kernel *kernel) {
  return kernel->native != NULL ? hg_native_notes(kernel->native) : kernel->why;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

hg_status hg_cpu_vectorise(const atlas_program *program, ssa_unit *unit, hg_functions *functions, hg_vector *vector) {
  HG_TRY(hg_expand_unplaced(unit, functions));
  HG_TRY(hg_optimise(program, unit, NULL));
  return hg_vectorise(program, unit, vector);
}

static hg_status compile_native(hg_cpu_compiler *compiler, hg_cpu_kernel *kernel) {
  const native_target *target = hg_native_target(compiler->isa);
  if (target == NULL)
    return hg_fail(HG_UNSUPPORTED, "machine code is not written for %s here", hg_cpu_isa_name(compiler->isa));
  return hg_native_compile(&compiler->pages, target, hg_cpu_kernels(compiler->isa), compiler->stream_bytes,
                           kernel->program, &kernel->vector, &kernel->native);
}

/* HG_UNSUPPORTED: the program is run in vectors. */
static hg_status compile_lanes(hg_cpu_compiler *compiler, hg_cpu_kernel *kernel, ssa_unit *unit) {
  const native_target *target = hg_native_lane_target(compiler->isa);
  int prefers;
  if (target == NULL) return HG_UNSUPPORTED;
  HG_TRY(hg_native_prefers_lanes(&kernel->vector, &prefers));
  if (!prefers) return HG_UNSUPPORTED;
  HG_TRY(hg_vectorise_lane(kernel->program, unit, &kernel->lanes));
  HG_TRY(hg_native_compile(&compiler->pages, target, hg_cpu_kernels(compiler->isa), compiler->stream_bytes,
                           kernel->program, &kernel->lanes, &kernel->native));
  if (!hg_native_calls_in_loops(kernel->native)) return HG_OK;
  hg_native_release(kernel->native);
  kernel->native = NULL;
  return HG_UNSUPPORTED;
}

static hg_status compile(hg_cpu_compiler *compiler, hg_cpu_kernel *kernel, hg_compile_input *input) {
  if (kernel->engine == HG_CPU_REFERENCE) {
    kernel->unit = *input->unit; /* taken */
    ir_ssa_init(input->unit, &kernel->unit.allocator);
    return HG_OK;
  }
  HG_TRY(hg_cpu_vectorise(kernel->program, input->unit, &compiler->functions, &kernel->vector));
  if (kernel->engine == HG_CPU_NATIVE) {
    hg_status status = compile_lanes(compiler, kernel, input->unit);
    if (status == HG_UNSUPPORTED) status = compile_native(compiler, kernel);
    if (status == HG_UNSUPPORTED) hg_clip(hg_last_error(), strlen(hg_last_error()), kernel->why, sizeof kernel->why);
    else if (status != HG_OK) return status;
    if (status == HG_OK && !hg_native_needs_tiles(&kernel->vector)) return HG_OK;
  }
  return hg_tile_compile(&kernel->allocator, kernel->program, &kernel->vector, compiler->isa, &kernel->tile);
}

hg_status hg_cpu_kernel_create(hg_cpu_compiler *compiler, hg_compile_input *input, hg_cpu_kernel **out) {
  hg_cpu_kernel *kernel = hg_allocate(&compiler->allocator, 1, sizeof *kernel);
  if (kernel == NULL) return hg_fail_memory("a kernel", sizeof *kernel);
  kernel->allocator = kernel->unit.allocator = kernel->vector.allocator = compiler->allocator;
  kernel->lanes.allocator = compiler->allocator;
  kernel->program = input->program;
  kernel->engine = compiler->engine;
  if (kernel->engine != HG_CPU_NATIVE)
    snprintf(kernel->why, sizeof kernel->why,
             compiler->is_asked ? "the engine '%s' was asked for" : "HOLOGRAM_CPU_ENGINE is '%s'",
             settings[kernel->engine]);
  kernel->isa = compiler->isa;
  kernel->most_threads = compiler->most_threads;
  kernel->cancels = compiler->cancels;
  kernel->stream_bytes = compiler->stream_bytes;
  hg_status status = HG_OK;
  if (input->contraction != NULL) kernel->contracts = 1;
  else status = compile(compiler, kernel, input);
  if (status == HG_OK) *out = kernel;
  else hg_cpu_kernel_release(kernel);
  return status;
}

/* The results of a launch that runs no program. */
static void clear_results(atlas_launch *launch) {
  launch->phase_advance = 0;
  launch->notes = NULL;
  launch->fault = (hg_fault){.kind = HG_FAULT_NONE};
}

static void contract(const hg_cpu_kernel *kernel, atlas_launch *launch) {
  hg_contraction c = *launch->contraction;
  clear_results(launch);
  c.a = launch->arguments[0].span.memory + c.first[0];
  c.b = launch->arguments[1].span.memory + c.first[1];
  c.c = launch->arguments[2].span.memory + c.first[2];
  if (kernel->program->symbols.count > 3) c.scratch = launch->arguments[3].span.memory;
  hg_cpu_contract(kernel->isa, &c, 0, launch);
}

static hg_status run(hg_cpu_kernel *kernel, atlas_launch *launch) {
  if (kernel->contracts) {
    contract(kernel, launch);
    return HG_OK;
  }
  if (launch->rows != NULL && kernel->engine == HG_CPU_NATIVE &&
      hg_cpu_move_rows(kernel->isa, launch, kernel->stream_bytes, 0)) {
    clear_results(launch);
    return HG_OK;
  }
  if (kernel->engine == HG_CPU_REFERENCE)
    return hg_ssa_interpret(&kernel->allocator, kernel->program, &kernel->unit, launch);
  if (kernel->native != NULL) {
    hg_status status = hg_native_launch(kernel->native, launch);
    if (status != HG_UNSUPPORTED) return status;
    launch->notes = "left to the tile engine: machine code does not count steps up to so low a limit";
  }
  return hg_tile_launch(kernel->tile, launch);
}

hg_status hg_cpu_fail_cancelled(void) { return hg_fail(HG_CANCELLED, "hg_cancel has ended this work of the executor"); }

hg_status hg_cpu_kernel_launch(hg_cpu_kernel *kernel, atlas_launch *launch) {
  launch->most_threads = kernel->most_threads;
  launch->cancels = kernel->cancels;
  if (atlas_is_cancelled(launch)) return hg_cpu_fail_cancelled();
  hg_status status = run(kernel, launch);
  return status == HG_OK && atlas_is_cancelled(launch) ? hg_cpu_fail_cancelled() : status;
}

void hg_cpu_kernel_describe(const hg_cpu_kernel *kernel, hg_kernel_facts *facts) {
  *facts = (hg_kernel_facts){.shared_bytes = hg_cpu_shared_bytes(kernel->program)};
}

/* Handing a launch to another thread takes some microseconds, in which an engine runs some thousands of lanes of a
 * short program. */
int hg_cpu_kernel_is_small(const hg_cpu_kernel *kernel, const atlas_launch *launch) {
  const hg_contraction *c = launch->contraction;
  if (kernel->contracts) return c->batch * c->m * c->n * c->k <= CPU_SMALL_PRODUCTS;
  uint64_t most = kernel->engine == HG_CPU_REFERENCE ? CPU_SMALL_LANES_REFERENCE : CPU_SMALL_LANES,
           lanes = launch->lanes;
  uint64_t steps = kernel->engine == HG_CPU_REFERENCE ? 0 : kernel->vector.most_steps;
  if (lanes == 0) {
    lanes = 1;
    for (int d = 0; d < 3; d++) {
      lanes *= (uint64_t)launch->grid[d] * launch->block[d];
      if (lanes > most) return 0;
    }
  }
  return lanes <= most && steps <= most && lanes * (steps + 1) <= most;
}

void hg_cpu_kernel_release(hg_cpu_kernel *kernel) {
  if (kernel == NULL) return;
  hg_allocator allocator = kernel->allocator;
  hg_native_release(kernel->native);
  hg_tile_release(kernel->tile);
  hg_vector_release(&kernel->vector);
  hg_vector_release(&kernel->lanes);
  ir_ssa_release(&kernel->unit);
  hg_release(&allocator, kernel);
}
