/* coordinate.c - coordinates of a lane, lengths of buffers, the class of the lane's block, the phase. */
#include "backend/cpu/x86/emit_x86.h"

#include "compiler/machine_ops.h"

#include <stddef.h>

/* Loads a word of the context: a coordinate, a buffer's length, the block's class, the phase. Coordinates along x
 * increase with the lane. */
static void write_coordinate(x86_emit *e, size_t offset, int is_counted) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  if (is_counted) {
    hg_x86_load(&e->a, 1, X86_RAX, x86_at(X86_CONTEXT, (int32_t)offset));
    hg_x86_alu_rm(&e->a, X86_ADD, 1, X86_RAX, x86_reg(X86_LANE));
  }
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) {
      unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
      if (is_counted) hg_x86_count_up(e, to, X86_RAX, hg_x86_first_lane(e, c) + p * (e->lanes / 2u), is_64);
      else to = hg_x86_rm_reg(e, hg_x86_context(e, offset, is_64, to), is_64, to);
      hg_x86_set_result(e, c, p, to);
    }
}

/* A lane's coordinate in code for a whole block: from the rows, plus the block's first for a coordinate in the grid. */
static void write_lane_coordinate(x86_emit *e, uint64_t coordinate) {
  int is_64 = hg_x86_is_64(e, e->insn->d), is_global = coordinate - ATLAS_COORD_GLOBAL_X < 3;
  uint64_t d = coordinate - (is_global ? ATLAS_COORD_GLOBAL_X : ATLAS_COORD_LANE_X);
  size_t row = e->b->coordinate_offset + d * (CPU_TILE_LANES + CPU_CHUNK) * sizeof(uint32_t);
  unsigned scratch = hg_x86_scratch(e, 1);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) {
      unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
      uint32_t first = c * e->lanes + p * (e->lanes / 2u);
      hg_x86_v(e, is_64 ? X86_vpmovzxdq : X86_vload, to, 0,
               x86_indexed(X86_ROWS, X86_TILE_LANE, 2, (int32_t)(row + first * sizeof(uint32_t))));
      if (is_global) {
        x86_rm base = hg_x86_context(e, offsetof(native_context, block_first) + 8 * d, is_64, scratch);
        hg_x86_v(e, is_64 ? X86_vpaddq : X86_vpaddd, to, to, base);
      }
      hg_x86_set_result(e, c, p, to);
    }
}

int hg_x86_coordinate(x86_emit *e) {
  uint64_t coordinate = e->insn->bits;
  switch ((machine_place)hg_machine_op(e->insn->op)) {
  case PLACE_sreg:
    if (e->b->keeps_coordinates && hg_native_is_lane_coordinate(coordinate)) write_lane_coordinate(e, coordinate);
    else
      write_coordinate(e, offsetof(native_context, coordinate) + 8 * coordinate,
                       coordinate == ATLAS_COORD_LANE_X || coordinate == ATLAS_COORD_GLOBAL_X);
    break;
  case PLACE_len:
    write_coordinate(e, (size_t)hg_x86_place_offset(e->insn->symbol, offsetof(native_place, extent)), 0);
    break;
  case PLACE_cls_get: write_coordinate(e, offsetof(native_context, block_class), 0); break;
  case PLACE_phase_get: write_coordinate(e, offsetof(native_context, phase), 0); break;
  }
  return 1;
}
