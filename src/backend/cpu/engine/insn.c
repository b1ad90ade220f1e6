/* insn.c - one instruction of the vector code on given rows: by a kernel if there is one, else lane by lane. */
#include "backend/cpu/engine/rows.h"

#include "atlas/arith.h"
#include "compiler/machine_ops.h"

#include <stdio.h>

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void class_fault(cpu_worker *w, const cpu_operands *o, uint32_t i, const vector_insn *insn, uint64_t value,
                        uint64_t extent) {
  hg_fault fault = {
      .kind = HG_FAULT_CLASS, .index = value > INT64_MAX ? INT64_MAX : (int64_t)value, .extent = (int64_t)extent};
  hg_cpu_fault(w, o->first + i, insn, fault);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Runs the kernel on all chunks; only on lanes of the mask if the others must be kept. */
static void run_kernel(const cpu_worker *w, uint32_t kernel, const cpu_operands *o, const uint32_t source_bytes[3],
                       uint32_t bytes, int keeps) {
  const cpu_kernels *k = w->run->kernels;
  unsigned steps = o->step[0] | (unsigned)o->step[1] << 1 | (unsigned)o->step[2] << 2;
  size_t chunks = hg_cpu_chunks(o->count);
  if (!keeps || o->mask == NULL) {
    k->row[kernel](o->d, o->s[0], o->s[1], o->s[2], steps, chunks);
    return;
  }
  static const uint16_t blend[4] = {KERNEL_sel_8, KERNEL_sel_16, KERNEL_sel_32, KERNEL_sel_64};
  uint64_t result[CPU_CHUNK];
  const uint8_t *s[3] = {o->s[0], o->s[1], o->s[2]};
  uint8_t *d = o->d;
  for (size_t c = 0; c < chunks; c++, d += (size_t)CPU_CHUNK * bytes) {
    k->row[kernel](result, s[0], s[1], s[2], steps, 1);
    k->row[blend[hg_cpu_size_class(bytes)]](d, o->mask + c * CPU_CHUNK, result, d, 7, 1);
    for (int i = 0; i < 3; i++)
      if (o->step[i]) s[i] += (size_t)CPU_CHUNK * source_bytes[i];
  }
}

/* Conversions without a kernel, value by value. None is left after hg_vector_value. */
static void convert(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t to_bytes = hg_cpu_element_bytes(insn->type), from_bytes = hg_cpu_element_bytes(insn->type2);
  (void)w;
  for (uint32_t i = 0; i < hg_cpu_chunks(o->count) * CPU_CHUNK; i++)
    atlas_write_value((uint8_t *)o->d + (size_t)i * to_bytes, to_bytes,
                 atlas_convert((atlas_type)insn->type, (atlas_type)insn->type2, hg_cpu_source(o, 0, from_bytes, i)));
}

/* ---- coordinates ------------------------------------------------------------------------------------------------- */

/* A coordinate that is uniform in the tile; 0 if lanes differ. */
static int tile_coordinate(const cpu_worker *w, uint64_t coord, uint64_t *value) {
  const cpu_launch *run = w->run;
  unsigned dimension = (unsigned)coord % 3;
  switch (coord / 3) {
  case ATLAS_COORD_BLOCK_X / 3: *value = w->block_at[dimension]; return run->is_block_tile;
  case ATLAS_COORD_BLOCK_SIZE_X / 3: *value = run->block[dimension]; return 1;
  case ATLAS_COORD_GRID_SIZE_X / 3: *value = run->grid[dimension]; return 1;
  default: return 0;
  }
}

/* The coordinate of a lane by its number in the tile: a block, or lanes of a one-dimensional launch. */
static uint64_t lane_coordinate(const cpu_worker *w, uint64_t coord, uint64_t lane) {
  const cpu_launch *run = w->run;
  unsigned dimension = (unsigned)coord % 3;
  uint64_t block = w->block_at[dimension], at = lane;
  if (!run->is_block_tile) {
    uint64_t global = w->first + lane;
    block = dimension == 0 ? global / run->block[0] : 0;
    at = dimension == 0 ? global % run->block[0] : 0;
  } else {
    for (unsigned d = 0; d < dimension; d++) at /= run->block[d];
    at %= run->block[dimension];
  }
  switch (coord / 3) {
  case ATLAS_COORD_LANE_X / 3: return at;
  case ATLAS_COORD_BLOCK_X / 3: return block;
  default: return block * run->block[dimension] + at;
  }
}

static void write_sreg(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint64_t value;
  uint32_t bytes = hg_cpu_element_bytes(insn->type);
  if (tile_coordinate(w, insn->bits, &value)) {
    hg_cpu_fill_row(o->d, bytes, value, o->count);
    return;
  }
  for (uint32_t i = 0; i < o->count;) { /* coordinates count up along x */
    uint64_t first = lane_coordinate(w, insn->bits, o->first + i);
    uint64_t slope = insn->bits % 3 == 0 && insn->bits / 3 != ATLAS_COORD_BLOCK_X / 3;
    uint64_t run =
        w->run->block[0] - (w->run->is_block_tile ? o->first + i : w->first + o->first + i) % w->run->block[0];
    uint32_t end = run < o->count - i ? i + (uint32_t)run : o->count;
    if (bytes == 4)
      for (uint32_t *d = o->d; i < end; i++, first += slope) d[i] = (uint32_t)first;
    else
      for (uint64_t *d = o->d; i < end; i++, first += slope) d[i] = first;
  }
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

static uint64_t neighbour(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t i, uint32_t number) {
  uint64_t which = hg_cpu_source(o, 1, 4, i);
  int32_t found = atlas_class_neighbour(number, (uint32_t)which);
  if (found < 0) class_fault(w, o, i, insn, which, atlas_class_neighbour_count(number));
  return found < 0 ? 0 : (uint64_t)found;
}

static uint64_t class_of_lane(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t i) {
  uint32_t number = (uint32_t)hg_cpu_source(o, 0, 4, i);
  if (number >= ATLAS_CLASS_COUNT) {
    class_fault(w, o, i, insn, number, ATLAS_CLASS_COUNT);
    return 0;
  }
  switch ((machine_class)hg_machine_op(insn->op)) {
  case CLASS_mirror: return atlas_class_mirror(number);
  case CLASS_unity_test: return (uint64_t)atlas_class_is_unity(number);
  case CLASS_nbr_count: return atlas_class_neighbour_count(number);
  case CLASS_nbr_get: return neighbour(w, insn, o, i, number);
  case CLASS_res_accum:
    w->resonance[number] = (int64_t)((uint64_t)w->resonance[number] + hg_cpu_source(o, 1, 8, i));
    return 0;
  case CLASS_bound_map: break; /* not one number */
  }
  return 0;
}

static uint64_t bound_map_of_lane(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t i) {
  static const uint32_t extents[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  uint32_t part[3];
  for (int p = 0; p < 3; p++) {
    part[p] = (uint32_t)hg_cpu_source(o, p, 4, i);
    if (part[p] >= extents[p]) {
      class_fault(w, o, i, insn, part[p], extents[p]);
      return 0;
    }
  }
  return (uint64_t)atlas_boundary_offset(part[0], part[1], part[2]);
}

/* Writes only lanes of the mask. */
static void class_insn(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t bytes = hg_cpu_element_bytes(insn->type);
  for (uint32_t i = 0; i < o->count; i++) {
    if (!hg_cpu_takes_part(o, i)) continue;
    uint64_t value = insn->op == ATLAS_OP_bound_map ? bound_map_of_lane(w, insn, o, i) : class_of_lane(w, insn, o, i);
    if (o->d != NULL) atlas_write_value((uint8_t *)o->d + (size_t)i * bytes, bytes, value);
  }
}

/* Lane 0 of the grid does it for all. */
static void advance_phase(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  (void)insn;
  if (w->first != 0 || o->first != 0 || o->count == 0 || !hg_cpu_takes_part(o, 0)) return;
  w->phase_advance = (uint32_t)((w->phase_advance + hg_cpu_source(o, 0, 4, 0)) % ATLAS_PHASE_COUNT);
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static void end_lane(cpu_worker *w, uint64_t lane) {
  w->alive[lane] = 0;
  w->lost++;
}

static void trap(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  hg_fault fault = {.kind = HG_FAULT_TRAP, .code = (uint32_t)insn->bits};
  for (uint32_t i = 0; i < o->count; i++) {
    if (!hg_cpu_takes_part(o, i) || !w->alive[o->first + i]) continue;
    hg_cpu_fault(w, o->first + i, insn, fault);
    end_lane(w, o->first + i);
  }
}

static void step_chunk(cpu_worker *w, const vector_insn *insn, uint64_t first, const uint8_t *mask, uint8_t *d) {
  uint8_t asked[CPU_CHUNK];
  memcpy(asked, mask, CPU_CHUNK); /* d may be the mask's row */
  if (!w->run->kernels->step(d, asked, w->steps + first, 1)) return;
  for (uint32_t i = 0; i < CPU_CHUNK; i++) {
    if (!asked[i] || d[i]) continue;
    hg_cpu_step_fault(w, insn, first + i);
    end_lane(w, first + i);
  }
}

static void count_steps(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint8_t *d = o->d;
  for (uint32_t at = 0; at < o->count; at += CPU_CHUNK) {
    uint8_t all[CPU_CHUNK] = {0};
    const uint8_t *mask = o->mask == NULL ? all : o->mask + at;
    if (o->mask == NULL) memset(all, 1, o->count - at < CPU_CHUNK ? o->count - at : CPU_CHUNK);
    if (w->run->counts_steps) step_chunk(w, insn, o->first + at, mask, d + at);
    else memmove(d + at, mask, CPU_CHUNK);
  }
}

/* ---- instructions on rows ---------------------------------------------------------------------------------------- */

static void source_sizes(const cpu_worker *w, const vector_insn *insn, uint32_t bytes[3]) {
  for (int i = 0; i < 3; i++) {
    uint32_t reg = insn->s[i];
    if (reg == VECTOR_NONE) bytes[i] = 0;
    else bytes[i] = reg == VECTOR_ALL ? 1 : hg_cpu_element_bytes(vector_reg_at(w->vector, reg)->type);
  }
}

static void write_cls_get(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint64_t block = w->run->is_block_tile ? w->block_index : 0;
  hg_cpu_fill_row(o->d, hg_cpu_element_bytes(insn->type), block % ATLAS_CLASS_COUNT, o->count);
}

static void write_len(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  hg_cpu_fill_row(o->d, hg_cpu_element_bytes(insn->type), w->binding[insn->symbol].extent, o->count);
}

static void write_phase_get(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  hg_cpu_fill_row(o->d, hg_cpu_element_bytes(insn->type), w->run->launch->phase, o->count);
}

/* ---- cells: the function of each operation ----------------------------------------------------------------------- */

typedef void insn_run(cpu_worker *w, const vector_insn *insn, const cpu_operands *o);

typedef struct cell {
  insn_run *run;
  uint32_t types;
  uint8_t writes_all; /* writes every lane of d, whatever the mask */
} cell;

static void run_by_kernel(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t bytes = atlas_is_comparison(insn->op) ? 1 : hg_cpu_element_bytes(insn->type), source_bytes[3];
  source_sizes(w, insn, source_bytes);
  run_kernel(w, hg_kernel_of(insn), o, source_bytes, bytes == 0 ? 1 : bytes, insn->flags & VECTOR_KEEP);
}

static void no_operation(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  (void)w, (void)insn, (void)o; /* a lane's accesses are in order, and workers do not synchronise within a launch */
}

/* Checks that kernels.def has a kernel for each type: a missing kernel is an undeclared enumerator. */
#define HAS(op, t) | (KERNEL_##op##_##t != KERNEL_NONE ? SET_##t : SET_NONE)
#define KERNELS_SINT(op) HAS(op, i8) HAS(op, i16) HAS(op, i32) HAS(op, i64)
#define KERNELS_INT(op) KERNELS_SINT(op) HAS(op, u8) HAS(op, u16) HAS(op, u32) HAS(op, u64)
#define KERNELS_HALF(op) HAS(op, f16) HAS(op, bf16)
#define KERNELS_REAL(op) HAS(op, f32) HAS(op, f64)
#define KERNELS_FLOAT(op) KERNELS_HALF(op) KERNELS_REAL(op)
#define KERNELS_SIGNED(op) KERNELS_SINT(op) KERNELS_FLOAT(op)
#define KERNELS_SINT_REAL(op) KERNELS_SINT(op) KERNELS_REAL(op)
#define KERNELS_INT_REAL(op) KERNELS_INT(op) KERNELS_REAL(op)
#define KERNELS_NUM(op) KERNELS_INT(op) KERNELS_FLOAT(op)
#define KERNELS_I32_U32(op) HAS(op, i32) HAS(op, u32)
#define KERNELS_NONE(op) | (KERNEL_##op != KERNEL_NONE ? SET_NONE : SET_ANY)
#define BY_WIDTH(op, types) run_by_kernel, \
  KERNEL_##op##_8 * KERNEL_##op##_16 * KERNEL_##op##_32 * KERNEL_##op##_64 != 0 ? SET_##types : SET_NONE

#define KIND_ARITH(op, types) run_by_kernel, SET_NONE KERNELS_##types(op)
#define KIND_COMPARE(op, types) KIND_ARITH(op, types)
#define KIND_LOGIC(op, types) KIND_ARITH(op, types)
#define KIND_SELECT(op, types) BY_WIDTH(op, types)
#define KIND_CAST(op, types) BY_WIDTH(mov, types)
#define KIND_CONVERT(op, types) convert, SET_##types, 1
#define KIND_PLACE(op, types) write_##op, SET_##types, 1
#define KIND_LOAD(op, types) hg_cpu_load, SET_##types, 1
#define KIND_STORE(op, types) hg_cpu_store, SET_##types
#define KIND_ATOMIC(op, types) hg_cpu_atomic, SET_##types
#define KIND_BLOCK(op, types) hg_cpu_block_insn, SET_##types
#define KIND_CLASS(op, types) class_insn, SET_##types
#define KIND_ORDER(op, types) no_operation, SET_##types
#define KIND_PHASE(op, types) advance_phase, SET_##types

#define MACHINE(id, kind, types, narrow) [MACHINE_##id] = {.run = KIND_##kind(id, types)},
static const cell cells[MACHINE_OP_COUNT] = {
#include "compiler/machine_ops.def"
};
#define MACHINE(id, kind, types, narrow) MACHINE_HAS_CELL(id, SET_##types, KIND_##kind(id, types))
#include "compiler/machine_ops.def"

/* ---- every instruction ------------------------------------------------------------------------------------------- */

/* Runs an instruction that writes all lanes, and keeps d outside the mask: chunk by chunk, through a temporary row. */
static void run_keeping(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, insn_run *writes_all) {
  static const uint16_t blend[4] = {KERNEL_sel_8, KERNEL_sel_16, KERNEL_sel_32, KERNEL_sel_64};
  uint64_t result[CPU_CHUNK];
  uint32_t bytes = hg_cpu_element_bytes(insn->type), source_bytes[3];
  source_sizes(w, insn, source_bytes);
  for (uint32_t at = 0; at < o->count; at += CPU_CHUNK) {
    cpu_operands part = *o;
    part.d = result;
    part.count = o->count - at < CPU_CHUNK ? o->count - at : CPU_CHUNK;
    part.first = o->first + at;
    part.mask = o->mask + at;
    for (int k = 0; k < 3; k++)
      if (o->s[k] != NULL && o->step[k]) part.s[k] = (const uint8_t *)o->s[k] + (size_t)at * source_bytes[k];
    writes_all(w, insn, &part);
    uint8_t *d = (uint8_t *)o->d + (size_t)at * bytes;
    w->run->kernels->row[blend[hg_cpu_size_class(bytes)]](d, part.mask, result, d, 7, 1);
  }
}

static void move_row(const cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t bytes = hg_cpu_element_bytes(insn->type), source_bytes[3] = {bytes, 0, 0};
  static const uint16_t copy[4] = {KERNEL_mov_8, KERNEL_mov_16, KERNEL_mov_32, KERNEL_mov_64};
  run_kernel(w, copy[hg_cpu_size_class(bytes)], o, source_bytes, bytes, 1);
}

void hg_cpu_insn(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  switch (insn->op) {
  case VECTOR_MOVE: move_row(w, insn, o); return;
  case VECTOR_CLEAR: memset(o->d, 0, hg_cpu_chunks(o->count) * CPU_CHUNK); return;
  case VECTOR_STEP: count_steps(w, insn, o); return;
  case VECTOR_TRAP: trap(w, insn, o); return;
  default: break;
  }
  const cell *c = &cells[hg_machine_op(insn->op)];
  if (hg_kernel_of(insn) != KERNEL_NONE) run_by_kernel(w, insn, o);
  else if (c->writes_all && insn->flags & VECTOR_KEEP && o->mask != NULL) run_keeping(w, insn, o, c->run);
  else c->run(w, insn, o);
}
