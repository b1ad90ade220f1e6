/* print_plan.c - the plan of a GPU kernel as pseudo-code: print_plan TARGET FLAGS PROGRAM. A second printer beside the
 * one of PTX: what it needs to know of a kernel, any backend finds in the plan. TARGET is plain or rich (targets.h);
 * FLAGS are those of hg_gpu_variant. */
#include "atlas/program.h"
#include "backend/gpu/build.h"
#include "base/files.h"
#include "compiler/canon/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"
#include "targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 1 << 20 };
enum { STAYS, OPENS, TURNS, CLOSES };
enum { VALUE, VECTOR, GROUP, EXCHANGE, NUMBER, NOTHING };
static const struct {
  const char *name;
  int of, nest;
} ops[] = {
#define STEP(id, of, nest) {#id, of, nest},
#include "backend/gpu/steps.def"
};

static void print_value(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (insn->op == SSA_CONST) printf("#%" PRIx64, insn->bits);
  else if (insn->op == SSA_SCALAR) printf("%s", atlas_symbol_at(g->program, insn->symbol)->name);
  else if (insn->op == SSA_SPECIAL) printf("r%u", (unsigned)insn->bits);
  else printf("v%u", (unsigned)value);
}

static void print_insn(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  printf(" v%u = %s.%s", (unsigned)value, atlas_op_name((atlas_op)insn->op),
         insn->type == SSA_PREDICATE ? "pred" : atlas_type_name((atlas_type)insn->type));
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    printf(hg_gpu_asks_exact(g, value, i) ? ", exact " : ", ");
    print_value(g, gpu_arg(g, value, i));
  }
}

static void print_place(const gpu_plan *g, gpu_version_kind version, uint32_t value) {
  static const char *const spaces[] = {"global", "shared", "constant", "library", "local"};
  static const char *const checks[] = {"in bounds", "left out where outside", "a fault at once", "kept inside"};
  static const char *const kinds[] = {"elements", "pool", "table", "phi"};
  gpu_place place = hg_gpu_place(g, version, value);
  printf(" of %s %s%+" PRId64 ": %s", spaces[place.space], kinds[place.addressing], place.displacement,
         checks[place.check]);
  for (uint32_t i = 0; i < place.test_count; i++)
    printf("; fault %d unless %" PRIu64, place.test[i].site.kind, place.test[i].extent);
}

static void print_group(const gpu_access_group *group) {
  printf(" of %u %s, %s:", (unsigned)group->count, group->is_store ? "stores" : "loads",
         group->is_tested ? "one test" : "in bounds and aligned");
  for (uint32_t r = 0; r < group->run_count; r++) {
    const gpu_access_run *run = &group->run[r];
    if (r > 0) putchar(';');
    for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += group->joined[i])
      printf(" %ux v%u", (unsigned)group->joined[i], (unsigned)group->value[i]);
    if (run->is_checked && run->checks_least) printf(" at both ends");
    if (group->is_tested && run->width > 1 && run->is_aligned) printf(" where the memory is aligned");
  }
}

static void print_exchange(const gpu_exchange *exchange) {
  for (uint32_t i = 0; i < exchange->count; i++) printf(" v%u", (unsigned)exchange->value[i]);
  if (!exchange->is_scan) printf(", %u to %u lanes", (unsigned)exchange->least_lanes, (unsigned)exchange->most_lanes);
}

static void print_step(const gpu_plan *g, gpu_version_kind version, const gpu_step *step, int *depth) {
  *depth -= ops[step->op].nest == CLOSES;
  printf("%*s%s", 2 * (*depth - (ops[step->op].nest == TURNS)), "", ops[step->op].name);
  *depth += ops[step->op].nest == OPENS;
  int of_exchange = step->op > GPU_OWN && step->op < GPU_END_EXCHANGE && step->value != SSA_NONE;
  if (of_exchange) printf(" v%u%s", (unsigned)step->value, ops[step->op].of == NUMBER ? "," : "");
  if (step->op == GPU_EXCHANGE) print_exchange(gpu_exchange_at(g, step->number));
  if (ops[step->op].of == NUMBER) printf(" %u", (unsigned)step->number);
  if (ops[step->op].of == VECTOR) printf(" v%u, vector %u", (unsigned)step->value, (unsigned)step->number);
  if (step->op == GPU_COMPUTE || step->op == GPU_OWN) print_insn(g, step->value);
  if (step->op == GPU_LOAD || step->op == GPU_STORE || step->op == GPU_ATOMIC) print_insn(g, step->value);
  if (step->op == GPU_LOAD || step->op == GPU_STORE || step->op == GPU_ATOMIC) print_place(g, version, step->value);
  if (step->op == GPU_GROUP) print_group(gpu_group_at(g, step->number));
  if (step->notes > 0) printf("; notes %u faults first", (unsigned)step->notes);
  putchar('\n');
}

static void print_edge(const gpu_plan *g, uint32_t from, int side) {
  gpu_edge edge = hg_gpu_edge(g, from, side);
  printf("    to block %u", (unsigned)g->order.position[edge.target]);
  if (edge.takes_steps > 0) printf(edge.takes_steps > 1 ? ", %u steps" : ", a step", (unsigned)edge.takes_steps);
  if (edge.crosses) printf(", all at once");
  for (uint32_t phi = ssa_block_at(g->unit, edge.target)->first_phi; phi != SSA_NONE; phi = gpu_insn(g, phi)->next) {
    printf(", v%u = %s", (unsigned)phi, hg_gpu_asks_exact(g, phi, edge.side) ? "exact " : "");
    print_value(g, gpu_arg(g, phi, edge.side));
  }
  putchar('\n');
}

static void print_version(const gpu_plan *g, gpu_version_kind kind) {
  const gpu_version *version = &g->version[kind];
  int depth = 2;
  for (uint32_t k = 0; version->first != NULL && k < g->order.count; k++) {
    const ssa_block *block = ssa_block_at(g->unit, g->order.block[k]);
    printf("  part %d, block %u:\n", kind, (unsigned)k);
    for (uint32_t i = version->first[k]; i < version->first[k + 1]; i++)
      if (((gpu_step *)version->steps.data)[i].op != GPU_INSN)
        print_step(g, kind, &((gpu_step *)version->steps.data)[i], &depth);
    if (block->end == SSA_BRANCH) printf("    if v%u", (unsigned)block->condition);
    if (block->end == SSA_BRANCH && hg_gpu_asks_steps(g, g->order.block[k]) > 0)
      printf(" and %u steps are left", (unsigned)hg_gpu_asks_steps(g, g->order.block[k]));
    if (block->end == SSA_BRANCH) putchar('\n');
    if (block->end == SSA_BRANCH || block->end == SSA_JUMP) print_edge(g, g->order.block[k], 0);
    if (block->end == SSA_BRANCH) print_edge(g, g->order.block[k], 1);
  }
}

static void print_plan(const gpu_plan *g) {
  int depth = 1;
  printf("kernel %s: %u threads, %u lanes each%s, %u registers, %u bytes of arguments, %u shared\n", g->program->name,
         (unsigned)g->info.max_threads, (unsigned)g->info.lanes_per_thread, g->is_spread ? " that lie apart" : "",
         (unsigned)g->most_registers,
         (unsigned)g->info.argument_bytes, (unsigned)g->info.shared_bytes);
  for (uint32_t i = 0; i < g->vector_count; i++) {
    const gpu_vector *v = &g->vector[i];
    printf("  vector %u: v%u, %u words of %u bytes%s%s%s%s%s\n", (unsigned)i, (unsigned)v->value,
           (unsigned)v->word_count, (unsigned)v->word_bytes, v->is_load ? "" : ", stored",
           v->widened != SSA_NONE ? ", widened" : "", v->clamped != SSA_NONE ? ", kept between bounds" : "",
           v->rounds ? ", rounds" : "", v->mends ? ", makes NaNs canonical" : "");
  }
  for (size_t i = 0; i < g->kernel.count; i++) print_step(g, GPU_OUTSIDE, (gpu_step *)g->kernel.data + i, &depth);
  for (int kind = 0; kind < GPU_VERSION_COUNT; kind++) print_version(g, (gpu_version_kind)kind);
}

static hg_status print_program(const atlas_program *program, const hg_gpu_target *target,
                               const hg_gpu_variant *variant) {
  ssa_unit unit;
  gpu_plan plan;
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_expand_unplaced(&unit, NULL);
  if (status == HG_OK) status = hg_optimise(program, &unit, NULL);
  if (status == HG_OK) {
    status = hg_gpu_plan(program, &unit, target, variant, &plan);
    if (status == HG_OK) print_plan(&plan);
    hg_gpu_plan_release(&plan);
  }
  ir_ssa_release(&unit);
  return status;
}

int main(int count, char **words) {
  hg_allocator allocator;
  atlas_program *program = NULL;
  uint8_t *bytes = NULL;
  size_t size = 0;
  if (count != 4 || hg_allocator_resolve(NULL, &allocator) != HG_OK) {
    fprintf(stderr, "usage: print_plan TARGET FLAGS PROGRAM\n");
    return 2;
  }
  const hg_gpu_variant variant = {.flags = (uint32_t)strtoul(words[2], NULL, 10), .threads = 256};
  int is_read = hg_file_read(&allocator, words[3], MOST_TEXT, &bytes, &size) == HG_READ_OK;
  hg_status status = is_read ? atlas_parse(NULL, (const char *)bytes, size, words[3], &program) : HG_NOT_FOUND;
  hg_release(&allocator, bytes);
  if (status == HG_OK) status = print_program(program, strcmp(words[1], "rich") == 0 ? &rich : &plain, &variant);
  atlas_program_release(program);
  if (status != HG_OK) fprintf(stderr, "print_plan: %s: %s\n", words[3], is_read ? hg_last_error() : "cannot be read");
  return status != HG_OK;
}
