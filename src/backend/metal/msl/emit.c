/* emit.c - the text around a lane's program: the argument block, the kernel's head, the lane's coordinates. */
#include "backend/metal/msl/msl.h"

#include "atlas/functions.h"
#include "backend/gpu/build.h"
#include "base/error.h"
#include "compiler/canon/canon.h"
#include "compiler/optimise.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

extern const char *const hg_msl_prelude_text[]; /* made by the build from prelude.metal; ends with NULL */

hg_status hg_msl_prelude(const hg_allocator *allocator, hg_array *text) {
  for (size_t i = 0; hg_msl_prelude_text[i] != NULL; i++)
    if (hg_array_append(allocator, text, hg_msl_prelude_text[i], strlen(hg_msl_prelude_text[i])) == NULL)
      return hg_fail_memory("MSL", text->count);
  return HG_OK;
}

/* ---- arguments: hg_gpu_header, then the program's ---------------------------------------------------------------- */

static const char header_fields[] =
    "  ulong lanes, fast_lanes;\n"
    "  device uchar *fault_record, *fault_flag;\n"
    "  ulong step_limit;\n"
    "  device uchar *boundary, *resonance, *phase_advance;\n"
    "  ulong first, block_count, first_lane, whole_lanes, total_x, total_y, grid_x, grid_y, grid_z;\n"
    "  ulong reciprocal_x, reciprocal_y;\n"
    "  uint block_size_x, block_size_y, block_size_z, phase, is_flat, block_lanes;\n";

static_assert(offsetof(hg_gpu_header, step_limit) == 32 && offsetof(hg_gpu_header, first) == 64 &&
                   offsetof(hg_gpu_header, total) == 96 && offsetof(hg_gpu_header, grid) == 112 &&
                   offsetof(hg_gpu_header, block) == 152 && offsetof(hg_gpu_header, is_flat) == 168 &&
                   sizeof(hg_gpu_header) == 176,
               "the fields above are those of hg_gpu_header");

static void put_parameter(msl *m, const hg_gpu_parameter *parameter) {
  unsigned s = parameter->symbol;
  switch (parameter->kind) {
  case ATLAS_SYMBOL_BUFFER: hg_msl_head(m, "  device uchar *p%u;\n  ulong n%u;\n", s, s); break;
  case ATLAS_SYMBOL_POOL: hg_msl_head(m, "  device uchar *p%u;\n  ulong n%u, share%u;\n", s, s, s); break;
  case ATLAS_SYMBOL_TABLE: hg_msl_head(m, "  device span *t%u;\n", s); break;
  default: hg_msl_head(m, parameter->divides ? "  ulong s%u, over%u;\n" : "  ulong s%u;\n", s, s); break;
  }
}

static void put_arguments(msl *m) {
  const hg_gpu_info *info = &m->plan->info;
  hg_msl_head(m, "struct %s_arguments {\n%s", m->options->name, header_fields);
  for (uint32_t i = 0; i < info->parameter_count; i++) put_parameter(m, &info->parameter[i]);
  hg_msl_head(m, "};\n\n");
}

/* The bits of a scalar above its type are zero. */
static void put_scalars(msl *m) {
  for (uint32_t i = 0; i < m->plan->info.parameter_count; i++) {
    const hg_gpu_parameter *parameter = &m->plan->info.parameter[i];
    if (parameter->kind != ATLAS_SYMBOL_SCALAR) continue;
    unsigned s = parameter->symbol;
    uint8_t type = atlas_symbol_at(m->plan->program, s)->type;
    const char *word = hg_msl_variable_type(type);
    hg_msl_line(m, "%s s%u = %s(%s(a.s%u));", word, s,
                type == ATLAS_i8    ? "as_i8"
                : type == ATLAS_i16 ? "as_i16"
                                    : "",
                word, s);
  }
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

static int has_variable(const msl *m, uint32_t value) {
  const ssa_insn *insn = msl_insn(m, value);
  if (gpu_is_gone(m->plan, value) || insn->op == SSA_DELETED || insn->op == SSA_CONST || insn->op == SSA_SCALAR ||
      insn->op == SSA_SPECIAL || insn->type == ATLAS_NONE)
    return 0;
  return !(insn->op < ATLAS_OP_PAGES * 256 && gpu_flags(m->plan, value) & ATLAS_STORE);
}

static void put_variables_of(msl *m, const char *word) {
  uint32_t in_line = 0;
  for (uint32_t v = 0; v < m->plan->unit->insns.count; v++) {
    if (!has_variable(m, v) || strcmp(hg_msl_variable_type(msl_insn(m, v)->type), word) != 0) continue;
    if (in_line == 0) hg_msl_head(m, "  %s v%u", word, (unsigned)v);
    else hg_msl_head(m, ", v%u", (unsigned)v);
    if (++in_line < 12) continue;
    hg_msl_head(m, ";\n");
    in_line = 0;
  }
  if (in_line > 0) hg_msl_head(m, ";\n");
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

static void put_head(msl *m, uint32_t shared_bytes) {
  const char *name = m->options->name;
  put_arguments(m);
  hg_msl_tables(m);
  hg_msl_head(
      m,
      "%skernel void %s(constant %s_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],\n"
      "    uint group [[threadgroup_position_in_grid]]) {\n",
      m->plan->can_end && m->plan->info.observes_block ? "// lanes may end before others of their block\n" : "", name,
      name);
  if (shared_bytes > 0)
    hg_msl_head(
        m, "  threadgroup uint4 shared_words[%u];\n  threadgroup uchar *shared = (threadgroup uchar *)shared_words;\n",
        (unsigned)(shared_bytes + 15) / 16);
  if (m->plan->memory.local_bytes > 0)
    hg_msl_head(m, "  ulong local_words[%u];\n  thread uchar *local = (thread uchar *)local_words;\n",
                (unsigned)(m->plan->memory.local_bytes + 7) / 8);
  for (uint32_t s = 0; s < m->plan->program->symbols.count; s++)
    if (gpu_is_in_set(m->plan->tables_used, s))
      hg_msl_head(m, "  constant uchar *c%u = (constant uchar *)%s_c%u;\n", (unsigned)s, name, (unsigned)s);
  if (hg_gpu_library_offset(m->plan, (uint32_t)atlas_functions.symbols.count) > 0)
    hg_msl_head(m, "  constant uchar *library = (constant uchar *)%s_f;\n", name);
  if (m->sites.count > 0)
    hg_msl_head(m, "  uint fault = 0;\n  ulong fault_index = 0, fault_extent = 0%s;\n",
                m->plan->info.lanes_per_thread > 1 ? ", fault_lane = 0" : "");
  for (size_t i = 0; i < m->plan->hoisted.count; i++) hg_msl_head(m, "  bool known%u = false;\n", (unsigned)i);
  if (m->plan->memory.half_bytes > 0) hg_msl_head(m, "  uint half_bytes = 0;\n");
  hg_msl_vectors_declare(m);
  put_variables_of(m, "uint");
  put_variables_of(m, "ulong");
  put_variables_of(m, "bool");
}

static hg_status write_kernel(msl *m, const hg_allocator *allocator, hg_gpu_info *info, hg_array *text) {
  info->shared_bytes = hg_msl_lay_out_places(m);
  m->depth = 1;
  put_scalars(m);
  HG_TRY(hg_msl_kernel(m));
  if (m->sites.count > 0)
    hg_msl_line(m,
                "if (fault != 0) keep_fault(a.fault_record, a.fault_flag, %s, fault_index, fault_extent, %s_sites + "
                "4 * (fault - 1));",
                m->plan->info.lanes_per_thread > 1 ? "fault_lane" : "lane", m->options->name);
  hg_msl_put(m, "}\n\n");
  put_head(m, info->shared_bytes);
  if (m->refused != HG_OK) return m->refused;
  if (m->failed || hg_array_append(allocator, text, m->head.data, m->head.count) == NULL ||
      hg_array_append(allocator, text, m->body.data, m->body.count) == NULL)
    return hg_fail_memory("the MSL of a program", m->body.count);
  return HG_OK;
}

/* Registers are up to the driver: Metal does not say how many there are. */
hg_gpu_target hg_msl_target(uint32_t shared_bytes) {
  return (hg_gpu_target){.vector_bytes = 16,
                         .warp_lanes = HG_GPU_WARP_LANES,
                         .shared_bytes = shared_bytes,
                         .declared_shared = HG_MSL_DECLARED_SHARED,
                         .branches = 1,
                         .exact_nans = 1};
}

/* From an optimised unit. */
static hg_status emit(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                      const hg_msl_options *options, hg_array *text, hg_gpu_info *info) {
  const hg_gpu_target target = hg_msl_target(0);
  gpu_plan plan;
  hg_status status = hg_gpu_plan(program, unit, &target, &options->variant, &plan);
  *info = plan.info;
  if (status == HG_OK) {
    msl m = {.allocator = plan.allocator, .plan = &plan, .options = options, .body = {.element_size = 1},
             .head = {.element_size = 1}, .sites = {.element_size = sizeof(uint64_t)}};
    status = write_kernel(&m, allocator, info, text);
    hg_array *owned[] = {&m.body, &m.head, &m.sites, &m.frames};
    for (size_t i = 0; i < 4; i++) hg_array_release(m.allocator, owned[i]);
    hg_release(m.allocator, m.uses);
  }
  hg_gpu_plan_release(&plan);
  return status;
}

int hg_msl_computes_f64(const atlas_program *program) {
  for (uint32_t i = 0; i < program->insns.count; i++) {
    const atlas_insn *insn = atlas_insn_at(program, i);
    if (insn->type != ATLAS_f64 && insn->type2 != ATLAS_f64) continue;
    if (!(atlas_op_lookup(insn->op)->flags & ATLAS_BITS)) return 1;
  }
  return 0;
}

hg_status hg_msl_write(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                       hg_functions *functions, const hg_msl_options *options, hg_array *text, hg_gpu_info *info) {
  const hg_gpu_target target = hg_msl_target(0);
  HG_TRY(hg_gpu_expand(program, unit, functions, &target));
  HG_TRY(hg_optimise(program, unit, NULL));
  return emit(allocator, program, unit, options, text, info);
}

hg_status hg_msl_compile(const hg_allocator *allocator, const atlas_program *program, const hg_msl_options *options,
                         hg_array *text, hg_gpu_info *info) {
  ssa_unit unit;
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_msl_prelude(allocator, text);
  if (status == HG_OK) status = hg_msl_write(allocator, program, &unit, NULL, options, text, info);
  ir_ssa_release(&unit);
  return status;
}
