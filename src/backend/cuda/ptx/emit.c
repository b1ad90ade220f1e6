/* emit.c - modules and entries: what surrounds the program's own instructions. */
#include "backend/cuda/ptx/emit_ptx.h"

#include "backend/cuda/ptx/ptx.h"
#include "base/error.h"
#include "compiler/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"

#include <stddef.h>
#include <string.h>

/* ---- modules ----------------------------------------------------------------------------------------------------- */

/* The oldest text that has what is used: every driver that knows the card takes it. */
static const char *target_of(uint32_t capability) {
  if (capability >= 90) return ".version 7.8\n.target sm_90\n";
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
  for (uint32_t v = 0; v < p->unit->insns.count; v++) {
    const ssa_insn *insn = ptx_insn(p, v);
    if (insn->op != SSA_SCALAR || ((const uint32_t *)p->unit->forward.data)[v] != v) continue;
    hg_ptx_put(p, "\tld.param%s %s, [arguments+%u];\n", scalar_suffix(insn->type), hg_ptx_register(p, v).text,
               (unsigned)p->info->parameter[p->parameter_of[insn->symbol] - 1].offset);
  }
}

/* ---- kernels that see blocks ------------------------------------------------------------------------------------- */

/* One dimension: at = (thread, 0, 0), (block, 0, 0), (lane, 0, 0). */
static void place_flat(ptx *p, ptx_name thread, ptx_name size) {
  PTX(p, "mad.lo.u64", p->lane, p->block, size, thread);
  for (int d = 0; d < 9; d++)
    PTX(p, "mov.b64", p->at[d], d == 0 ? thread : d == 3 ? p->block : d == 6 ? p->lane : hg_ptx_number(0));
}

/* number = x + size_x * (y + size_y * z) taken apart. */
static void take_apart(ptx *p, ptx_name number, const ptx_name size[3], const ptx_name at[3]) {
  ptx_name rest = hg_ptx_new(p, PTX_64);
  PTX(p, "rem.u64", at[0], number, size[0]);
  PTX(p, "div.u64", rest, number, size[0]);
  PTX(p, "rem.u64", at[1], rest, size[1]);
  PTX(p, "div.u64", at[2], rest, size[1]);
}

static void place_in_space(ptx *p, ptx_name thread) {
  ptx_name grid[3], block[3];
  for (size_t d = 0; d < 3; d++) {
    grid[d] = hg_ptx_field(p, PTX_64, offsetof(hg_ptx_header, grid) + 8 * d);
    block[d] = hg_ptx_widened(p, hg_ptx_field(p, PTX_32, offsetof(hg_ptx_header, block) + 4 * d));
  }
  take_apart(p, thread, block, &p->at[0]);
  take_apart(p, p->block, grid, &p->at[3]);
  PTX(p, "mov.b64", p->lane, hg_ptx_number(0));
  for (int d = 3; d-- > 0;) { /* lane = (lane * grid + block) * block size + lane in the block */
    ptx_name total = hg_ptx_new(p, PTX_64);
    PTX(p, "mad.lo.u64", p->at[6 + d], p->at[3 + d], block[d], p->at[d]);
    PTX(p, "mul.lo.u64", total, grid[d], block[d]);
    PTX(p, "mad.lo.u64", p->lane, p->lane, total, p->at[6 + d]);
  }
}

static void find_place(ptx *p) {
  ptx_name thread = hg_ptx_widened(p, p->block_lane), size = hg_ptx_widened(p, hg_ptx_special(p, "ntid.x"));
  ptx_name in_space = hg_ptx_new(p, PTX_PREDICATE), rare = hg_ptx_label(p), joined = hg_ptx_label(p);
  p->lane = hg_ptx_new(p, PTX_64);
  for (int d = 0; d < 9; d++) p->at[d] = hg_ptx_new(p, PTX_64);
  PTX(p, "setp.eq.u32", in_space, PTX_FIELD(p, PTX_32, is_flat), hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", in_space.text, rare.text);
  place_flat(p, thread, size);
  hg_ptx_place(p, joined);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  place_in_space(p, thread);
  hg_ptx_put(p, "\tbra %s;\n", joined.text);
  p->out = out;
}

/* Lanes that the last block of a linear launch does not have leave at once. */
static void leave_missing(ptx *p, ptx_name end) {
  ptx_name lanes = PTX_FIELD(p, PTX_64, lanes), left = hg_ptx_new(p, PTX_64), size = hg_ptx_special(p, "ntid.x");
  ptx_name wide = hg_ptx_widened(p, size), missing = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "mul.lo.u64", left, p->block, wide);
  PTX(p, "sub.s64", left, lanes, left);
  PTX(p, "min.u64", left, left, wide);
  p->lane_count = hg_ptx_new(p, PTX_32);
  PTX(p, "cvt.u32.u64", p->lane_count, left);
  PTX(p, "setp.ge.u32", missing, p->block_lane, p->lane_count);
  hg_ptx_put(p, "\t@%s bra %s;\n", missing.text, end.text);
}

static void start_pools(ptx *p) {
  uint32_t number = 0;
  for (uint32_t s = 0; s < p->program->symbols.count; s++) {
    if (atlas_symbol_at(p->program, s)->kind != ATLAS_SYMBOL_POOL) continue;
    ptx_name share = hg_ptx_field(p, PTX_64, (size_t)p->info->parameter[p->parameter_of[s] - 1].offset + 16);
    p->pool_start[number] = hg_ptx_new(p, PTX_64);
    p->pool_end[number] = hg_ptx_new(p, PTX_64);
    p->pool_top[number] = hg_ptx_new(p, PTX_64);
    PTX(p, "mul.lo.u64", p->pool_start[number], p->block, share);
    PTX(p, "add.s64", p->pool_end[number], p->pool_start[number], share);
    PTX(p, "mov.b64", p->pool_top[number], p->pool_start[number]);
    number++;
  }
}

/* All lanes of the block together; what they find is zero. */
static void clear_shared(ptx *p) {
  if (p->zeroed_bytes == 0) return;
  ptx_name at = hg_ptx_new(p, PTX_32), end = hg_ptx_new(p, PTX_32), step = hg_ptx_new(p, PTX_32),
           done = hg_ptx_new(p, PTX_PREDICATE), again = hg_ptx_label(p), out = hg_ptx_label(p);
  hg_ptx_put(p, "\tmov.u32 %s, hg_shared;\n", at.text);
  PTX(p, "add.s32", end, at, hg_ptx_number(p->zeroed_bytes));
  PTX(p, "mad.lo.u32", at, p->block_lane, hg_ptx_number(16), at);
  PTX(p, "shl.b32", step, p->lane_count, hg_ptx_number(4));
  hg_ptx_place(p, again);
  PTX(p, "setp.ge.u32", done, at, end);
  hg_ptx_put(p, "\t@%s bra %s;\n\tst.shared.v4.b32 [%s], {0, 0, 0, 0};\n", done.text, out.text, at.text);
  PTX(p, "add.s32", at, at, step);
  hg_ptx_put(p, "\tbra %s;\n", again.text);
  hg_ptx_place(p, out);
  hg_ptx_put(p, "\tbar.sync 0;\n");
}

static void blocks_kernel(ptx *p) {
  ptx_name end = hg_ptx_label(p);
  p->block_lane = hg_ptx_special(p, "tid.x");
  p->block = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", p->block, hg_ptx_widened(p, hg_ptx_special(p, "ctaid.x")), PTX_FIELD(p, PTX_64, first));
  find_place(p);
  p->block_index = hg_ptx_new(p, PTX_32);
  PTX(p, "cvt.u32.u64", p->block_index, p->at[3]);
  p->block_size = PTX_FIELD(p, PTX_32, block[0]);
  leave_missing(p, end);
  start_pools(p);
  clear_shared(p);
  hg_ptx_body(p);
  hg_ptx_place(p, end);
  hg_ptx_end_thread(p);
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static void head_of_entry(ptx *p, hg_array *to) {
  if (p->options->lines != NULL) hg_ptx_append(p, to, ".file 1 \"%s.atlas\"\n", p->program->name);
  hg_ptx_append(p, to, ".visible .entry %s(.param .align 8 .b8 arguments[%u])\n.maxntid %u, 1, 1\n",
                p->options->name, (unsigned)p->info->argument_bytes, (unsigned)p->max_threads);
  if (p->most_registers > 0) hg_ptx_append(p, to, ".maxnreg %u\n", (unsigned)p->most_registers);
  hg_ptx_append(p, to, "{\n");
  for (int c = 0; c < PTX_CLASS_COUNT; c++)
    hg_ptx_append(p, to, "\t.reg %s %%%c<%u>;\n", hg_ptx_bits_suffix((ptx_class)c), "phrd"[c], (unsigned)p->next[c]);
  if (p->info->shared_bytes > 0)
    hg_ptx_append(p, to, "\t.shared .align 16 .b8 hg_shared[%u];\n", (unsigned)p->info->shared_bytes);
  if (p->sites.count > 0) hg_ptx_append(p, to, "\tmov.b32 %s, 0;\n", p->fault_site.text);
}

static hg_status write_entry(ptx *p, hg_array *text) {
  for (int c = 0; c < PTX_CLASS_COUNT; c++) p->next[c] = 1;
  p->next[PTX_16] = 2;
  p->out = &p->body;
  hg_ptx_open_faults(p);
  hg_ptx_put(p, "\tmov.b16 %%h0, 0;\n"); /* the lower half of a bf16 as f32 */
  load_scalars(p);
  if (p->info->observes_block) blocks_kernel(p);
  else if (p->info->is_table) hg_ptx_table_kernel(p);
  else hg_ptx_lanes_kernel(p);
  hg_ptx_tables(p);
  hg_ptx_sites(p);
  head_of_entry(p, &p->module);
  hg_ptx_append(p, &p->cold, "}\n\n");
  if (p->failed) return hg_fail_memory("the PTX of a program", p->body.count);
  HG_TRY(append(p->allocator, text, &p->module));
  HG_TRY(append(p->allocator, text, &p->body));
  HG_TRY(append(p->allocator, text, &p->slow));
  return append(p->allocator, text, &p->cold);
}

hg_status hg_ptx_expand(ssa_unit *unit, hg_functions *functions, uint32_t capability) {
  unit->narrow_extremes = capability >= 80;
  return hg_expand_unplaced(unit, functions);
}

hg_status hg_ptx_emit(const atlas_program *program, ssa_unit *unit, const hg_ptx_options *options, hg_array *text,
                      hg_ptx_info *info) {
  ptx p = {.allocator = &unit->allocator, .program = program, .unit = unit, .options = options, .info = info};
  p.body = p.slow = p.cold = p.module = (hg_array){.element_size = 1};
  p.sites.element_size = sizeof(uint64_t);
  memset(info, 0, sizeof *info);
  info->size = sizeof *info;
  hg_status status = hg_ptx_plan(&p);
  if (!info->observes_block) info->threads = info->max_threads;
  while (1u << info->tile_shift < info->threads * info->lanes_per_thread) info->tile_shift++;
  if (status == HG_OK) status = write_entry(&p, text);
  hg_analysis_release(unit, &p.analysis);
  ir_ssa_order_release(unit, &p.order);
  hg_release(p.allocator, p.reg);
  hg_release(p.allocator, p.vector);
  hg_array *owned[] = {&p.body, &p.slow, &p.cold, &p.module, &p.sites};
  for (size_t i = 0; i < 5; i++) hg_array_release(p.allocator, owned[i]);
  return status;
}

hg_status hg_ptx_compile(const hg_allocator *allocator, const atlas_program *program, const hg_ptx_options *options,
                         hg_array *text, hg_ptx_info *info) {
  ssa_unit unit;
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_ptx_expand(&unit, NULL, options->capability);
  if (status == HG_OK) status = hg_optimise(program, &unit, NULL);
  if (status == HG_OK) status = hg_ptx_module(allocator, options->capability, text);
  if (status == HG_OK) status = hg_ptx_emit(program, &unit, options, text, info);
  if (status == HG_OK && hg_array_append(allocator, text, NULL, 1) == NULL) status = hg_fail_memory("PTX", text->count);
  ir_ssa_release(&unit);
  return status;
}
