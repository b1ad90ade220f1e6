/* emit.c - modules and entries: the text around a kernel. */
#include "backend/cuda/ptx/emit_ptx.h"

#include "backend/cuda/ptx/ptx.h"
#include "backend/gpu/build.h"
#include "base/error.h"
#include "compiler/canon/canon.h"
#include "compiler/optimise.h"

/* ---- modules ----------------------------------------------------------------------------------------------------- */

/* The oldest text version that has what is used. Every driver that knows the card takes it, except for 9.0: see
 * hg_ptx_options. */
static const char *target_of(uint32_t capability) {
  if (capability >= 90) return ".version 8.0\n.target sm_90\n";
  if (capability >= 80) return ".version 7.0\n.target sm_80\n";
  return ".version 6.4\n.target sm_75\n";
}

static hg_status append(const hg_allocator *allocator, hg_array *text, const hg_array *part) {
  return hg_array_append(allocator, text, part->data, part->count) != NULL ? HG_OK
                                                                           : hg_fail_memory("PTX", part->count);
}

hg_status hg_ptx_module(const hg_allocator *allocator, uint32_t capability, hg_array *text) {
  ptx p = {.allocator = allocator, .module = {.element_size = 1}};
  hg_ptx_append(&p, &p.module, "%s.address_size 64\n\n", target_of(capability));
  hg_status status = p.failed ? hg_fail_memory("PTX", 0) : append(allocator, text, &p.module);
  hg_array_release(allocator, &p.module);
  return status;
}

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

static const char *scalar_suffix(uint8_t type) {
  if (type == ATLAS_i8) return ".s8";
  if (type == ATLAS_i16) return ".s16";
  if (hg_ptx_class_of(type) == PTX_32) return atlas_type_bits((atlas_type)type) == 8    ? ".u8"
                                              : atlas_type_bits((atlas_type)type) == 16 ? ".u16"
                                                                                        : ".b32";
  return hg_ptx_bits_suffix(hg_ptx_class_of(type));
}

static void load_scalars(ptx *p) {
  for (uint32_t v = 0; v < p->plan->unit->insns.count; v++) {
    const ssa_insn *insn = ptx_insn(p, v);
    if (insn->op != SSA_SCALAR || ((const uint32_t *)p->plan->unit->forward.data)[v] != v) continue;
    hg_ptx_put(p, "\tld.param%s %s, [arguments+%u];\n", scalar_suffix(insn->type), hg_ptx_register(p, v).text,
               (unsigned)p->plan->info.parameter[p->plan->parameter_of[insn->symbol] - 1].offset);
  }
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static void head_of_entry(ptx *p, hg_array *to) {
  uint32_t shared_bytes = p->plan->info.shared_bytes;
  int is_declared = p->plan->info.dynamic_bytes == 0;
  if (shared_bytes > 0 && !is_declared) hg_ptx_append(p, to, ".extern .shared .align 16 .b8 hg_shared[];\n\n");
  if (p->options->lines != NULL) hg_ptx_append(p, to, ".file 1 \"%s.atlas\"\n", p->plan->program->name);
  hg_ptx_append(p, to, ".visible .entry %s(.param .align 8 .b8 arguments[%u])\n.maxntid %u, 1, 1\n",
                p->options->name, (unsigned)p->plan->info.argument_bytes,
                (unsigned)(p->plan->info.max_threads / p->plan->info.sub_blocks));
  if (p->plan->info.sub_blocks > 1)
    hg_ptx_append(p, to, ".reqnctapercluster %u, 1, 1\n", (unsigned)p->plan->info.sub_blocks);
  if (p->plan->most_registers > 0)
    hg_ptx_append(p, to, ".maxnreg %u\n", (unsigned)p->plan->most_registers);
  hg_ptx_append(p, to, "{\n");
  for (int c = 0; c < PTX_CLASS_COUNT; c++)
    hg_ptx_append(p, to, "\t.reg %s %%%c<%u>;\n", hg_ptx_bits_suffix((ptx_class)c), "phrd"[c], (unsigned)p->next[c]);
  uint32_t zeroed = p->plan->memory.zeroed_bytes;
  if (zeroed > 0 && is_declared) hg_ptx_append(p, to, "\t.shared .align 16 .b8 hg_shared[%u];\n", (unsigned)zeroed);
  if (shared_bytes > zeroed && is_declared)
    hg_ptx_append(p, to, "\t.shared .align 16 .b8 hg_places[%u];\n", (unsigned)(shared_bytes - zeroed));
  if (hg_ptx_keeps_in_memory(p)) hg_ptx_append(p, to, "\t.local .align 8 .b8 hg_fault[16];\n");
  if (p->slow_bytes > 0)
    hg_ptx_append(p, to, "\t.local .align 16 .b8 hg_slow[%u];\n", (unsigned)p->slow_bytes);
  if (p->plan->memory.local_bytes > 0)
    hg_ptx_append(p, to, "\t.local .align 16 .b8 hg_local[%u];\n", (unsigned)p->plan->memory.local_bytes);
  if (p->sites.count > 0) hg_ptx_append(p, to, "\tmov.b32 %s, 0;\n", p->fault_site.text);
}

static hg_status write_entry(ptx *p, const hg_allocator *allocator, hg_array *text) {
  for (int c = 0; c < PTX_CLASS_COUNT; c++) p->next[c] = 1;
  p->next[PTX_16] = 2;
  p->out = &p->body;
  p->divides_rarely = (uint8_t)hg_ptx_divides_rarely(p);
  hg_ptx_open_faults(p);
  hg_ptx_put(p, "\tmov.b16 %%h0, 0;\n"); /* the lower half of a bf16 as f32 */
  load_scalars(p);
  hg_ptx_kernel(p);
  hg_ptx_tables(p);
  hg_ptx_sites(p);
  head_of_entry(p, &p->module);
  hg_ptx_append(p, &p->cold, "}\n\n");
  if (p->failed) return hg_fail_memory("the PTX of a program", p->body.count);
  HG_TRY(append(allocator, text, &p->module));
  HG_TRY(append(allocator, text, &p->body));
  HG_TRY(append(allocator, text, &p->slow));
  return append(allocator, text, &p->cold);
}

/* A multiprocessor has 65536 registers: 32 for each of 2048 threads, or 40 for each of three quarters of them, which is
 * the most threads that other capabilities have. */
hg_gpu_target hg_ptx_target(uint32_t capability, uint32_t shared_bytes) {
  int is_large = capability == 80 || (capability >= 90 && capability < 120);
  return (hg_gpu_target){.vector_bytes = 16,
                         .warp_lanes = HG_GPU_WARP_LANES,
                         .shared_bytes = shared_bytes,
                         .declared_shared = HG_PTX_DECLARED_SHARED,
                         .sub_blocks = capability >= 90 ? HG_PTX_MOST_SUB_BLOCKS : 0,
                         .registers = 65536,
                         .ranks = HG_PTX_MOST_RANKS,
                         .registers_all = is_large ? 32 : 0,
                         .registers_most = capability >= 80 ? 40 : 0,
                         .positive_nan = 1,
                         .pairs_f16 = capability >= 80,
                         .pairs_bf16 = capability >= 90,
                         .bounds = capability >= 90,
                         .narrow_extremes = capability >= 80,
                         .can_prefetch_l2 = capability >= 90};
}

hg_status hg_ptx_expand(const atlas_program *program, ssa_unit *unit, hg_functions *functions, uint32_t capability) {
  const hg_gpu_target target = hg_ptx_target(capability, 0);
  return hg_gpu_expand(program, unit, functions, &target);
}

static hg_status emit_plan(const hg_allocator *allocator, const gpu_plan *plan, const hg_ptx_options *options,
                           hg_array *text) {
  ptx p = {.allocator = plan->allocator, .plan = plan, .options = options};
  uint64_t values = plan->unit->insns.count;
  p.body = p.slow = p.cold = p.module = (hg_array){.element_size = 1};
  p.sites.element_size = sizeof(uint64_t);
  p.reg = hg_allocate(p.allocator, 2 * values, sizeof *p.reg);
  p.vector = hg_allocate(p.allocator, plan->vector_count, sizeof *p.vector);
  p.reg_copy = p.reg != NULL ? p.reg + values : NULL;
  hg_status status = p.reg != NULL && p.vector != NULL ? write_entry(&p, allocator, text)
                                                       : hg_fail_memory("the PTX of a program", 8 * values);
  hg_release(p.allocator, p.reg);
  hg_release(p.allocator, p.vector);
  hg_array *owned[] = {&p.body, &p.slow, &p.cold, &p.module, &p.sites};
  for (size_t i = 0; i < 5; i++) hg_array_release(p.allocator, owned[i]);
  return status;
}

hg_status hg_ptx_emit(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                      const hg_ptx_options *options, hg_array *text, hg_gpu_info *info) {
  const hg_gpu_target target = hg_ptx_target(options->capability, 0);
  gpu_plan plan;
  hg_status status = hg_gpu_plan(program, unit, &target, &options->variant, &plan);
  *info = plan.info;
  if (status == HG_OK) status = emit_plan(allocator, &plan, options, text);
  hg_gpu_plan_release(&plan);
  return status;
}

hg_status hg_ptx_write(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                       hg_functions *functions, const hg_ptx_options *options, hg_array *text, hg_gpu_info *info) {
  HG_TRY(hg_ptx_expand(program, unit, functions, options->capability));
  HG_TRY(hg_optimise(program, unit, NULL));
  HG_TRY(hg_ptx_module(allocator, options->capability, text));
  HG_TRY(hg_ptx_emit(allocator, program, unit, options, text, info));
  return hg_array_append(allocator, text, NULL, 1) != NULL ? HG_OK : hg_fail_memory("PTX", text->count + 1);
}

hg_status hg_ptx_compile(const hg_allocator *allocator, const atlas_program *program, const hg_ptx_options *options,
                         hg_array *text, hg_gpu_info *info) {
  ssa_unit unit;
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_ptx_write(allocator, program, &unit, NULL, options, text, info);
  ir_ssa_release(&unit);
  return status;
}
