/* blocks.c - kernels that see blocks: finding the lane's position, and what a block begins with. */
#include "backend/cuda/ptx/ptx.h"
#include "backend/cuda/ptx/ptx_tuning.h"

#include <stddef.h>

static void number_line(ptx *p, ptx_name size, ptx_name thread) {
  PTX(p, "mad.lo.u64", p->lane, p->block, size.text[0] == '%' ? hg_ptx_widened(p, size) : size, thread);
}

/* One dimension: at = (thread, 0, 0), (block, 0, 0), (lane, 0, 0). */
static void place_flat(ptx *p, ptx_name thread) {
  number_line(p, hg_ptx_special(p, "ntid.x"), thread);
  for (int d = 0; d < 9; d++)
    PTX(p, "mov.b64", p->at[d], d == 0 ? thread : d == 3 ? p->block : d == 6 ? p->lane : hg_ptx_number(0));
}

void hg_ptx_take_number_apart(ptx *p, ptx_name number, const ptx_name size[2], const ptx_name at[3]) {
  ptx_name rest = hg_ptx_new(p, PTX_64);
  hg_ptx_divide(p, PTX_64, number, size[0], PTX_FIELD(p, PTX_64, reciprocal[0]), rest, at[0]);
  hg_ptx_divide(p, PTX_64, rest, size[1], PTX_FIELD(p, PTX_64, reciprocal[1]), at[2], at[1]);
}

static uint32_t log2_of(uint32_t power) {
  uint32_t d = 0;
  while (power >> d > 1) d++;
  return d;
}

/* The size of a block along an axis, in 32 bits. */
static ptx_name block_size(ptx *p, size_t axis) {
  return gpu_block_lanes(p->plan) != 0 ? hg_ptx_number(p->plan->program->block[axis])
                                       : hg_ptx_field(p, PTX_32, offsetof(hg_gpu_header, block) + 4 * axis);
}

/* Divides by the size of a block along an axis. The driver's compiler makes no shift of a division by a constant
 * here. */
static void divide_by_block(ptx *p, ptx_name number, size_t axis, ptx_name quotient, ptx_name rest) {
  uint32_t size = gpu_block_lanes(p->plan) != 0 ? p->plan->program->block[axis] : 0;
  if (size != 0 && (size & (size - 1)) == 0) {
    PTX(p, "and.b32", rest, number, hg_ptx_number(size - 1));
    PTX(p, "shr.u32", quotient, number, hg_ptx_number(log2_of(size)));
  } else if (size != 0) {
    hg_ptx_divide(p, PTX_32, number, hg_ptx_number(size), hg_ptx_number(UINT32_MAX / size), quotient, rest);
  } else {
    PTX(p, "rem.u32", rest, number, block_size(p, axis));
    PTX(p, "div.u32", quotient, number, block_size(p, axis));
  }
}

/* A block size that the program names is that of every launch. */
static void find_in_block(ptx *p, const ptx_name at[3]) {
  ptx_name narrow[3], rest = hg_ptx_new(p, PTX_32);
  for (int d = 0; d < 3; d++) narrow[d] = hg_ptx_new(p, PTX_32);
  divide_by_block(p, p->block_lane, 0, rest, narrow[0]);
  divide_by_block(p, rest, 1, narrow[2], narrow[1]);
  for (int d = 0; d < 3; d++) PTX(p, "cvt.u64.u32", at[d], narrow[d]);
}

static void place_in_space(ptx *p) {
  ptx_name grid[3], block[3];
  for (size_t d = 0; d < 3; d++) {
    grid[d] = hg_ptx_field(p, PTX_64, offsetof(hg_gpu_header, grid) + 8 * d);
    block[d] = hg_ptx_new(p, PTX_64);
    PTX(p, "cvt.u64.u32", block[d], hg_ptx_kept(p, PTX_32, block_size(p, d)));
  }
  find_in_block(p, &p->at[0]);
  hg_ptx_take_number_apart(p, p->block, grid, &p->at[3]);
  PTX(p, "mov.b64", p->lane, hg_ptx_number(0));
  for (int d = 3; d-- > 0;) { /* lane = (lane * grid + block) * block size + lane in the block */
    ptx_name total = hg_ptx_new(p, PTX_64);
    PTX(p, "mad.lo.u64", p->at[6 + d], p->at[3 + d], block[d], p->at[d]);
    PTX(p, "mul.lo.u64", total, grid[d], block[d]);
    PTX(p, "mad.lo.u64", p->lane, p->lane, total, p->at[6 + d]);
  }
}

static void name_place(ptx *p) {
  p->lane = hg_ptx_new(p, PTX_64);
  for (int d = 0; d < 9; d++) p->at[d] = hg_ptx_new(p, PTX_64);
}

/* The lane of a thread whose warp lies along y and is the x-th one of all sub-blocks. */
static ptx_name lane_along_y(ptx *p, ptx_name thread) {
  uint32_t sub_blocks = p->plan->info.sub_blocks, along_x = p->plan->program->block[0];
  ptx_name x = hg_ptx_new(p, PTX_32), y = hg_ptx_new(p, PTX_32), lane = hg_ptx_new(p, PTX_32);
  PTX(p, "shr.u32", x, thread, hg_ptx_number(5));
  if (sub_blocks > 1)
    PTX(p, "mad.lo.u32", x, hg_ptx_special(p, "cluster_ctarank"), hg_ptx_number(along_x / sub_blocks), x);
  PTX(p, "and.b32", y, thread, hg_ptx_number(GPU_FOLD_LANES - 1));
  PTX(p, "mad.lo.u32", lane, y, hg_ptx_number(along_x), x);
  return lane;
}

static void find_block_number(ptx *p) {
  ptx_name thread = hg_ptx_special(p, "tid.x"), block = hg_ptx_special(p, "ctaid.x"), number = block;
  if (p->plan->info.sub_blocks > 1) {
    number = hg_ptx_new(p, PTX_32);
    PTX(p, "shr.u32", number, block, hg_ptx_number(log2_of(p->plan->info.sub_blocks)));
  }
  p->block_lane = p->plan->is_transposed ? lane_along_y(p, thread) : thread;
  p->block = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", p->block, hg_ptx_widened(p, number), PTX_FIELD(p, PTX_64, first));
}

/* 1 if lanes have the numbers of their threads, block after block, in a grid of any shape, because blocks are
 * one-dimensional. */
static int has_lines(const ptx *p) {
  const uint32_t *block = p->plan->program->block;
  return gpu_block_lanes(p->plan) != 0 && block[1] == 1 && block[2] == 1;
}

static ptx_name line_size(const ptx *p) { return hg_ptx_number(p->plan->program->block[0]); }

void hg_ptx_find_lane(ptx *p) {
  find_block_number(p);
  name_place(p);
  if (has_lines(p)) number_line(p, line_size(p), hg_ptx_widened(p, p->block_lane));
  else place_in_space(p);
}

/* 1 if the program reads other coordinates than x in the block and the block's x. */
static int asks_for_space(const ptx *p) {
  for (uint32_t v = 0; v < p->plan->unit->insns.count; v++) {
    const ssa_insn *insn = ptx_insn(p, v);
    if (insn->op == ATLAS_OP_sreg && insn->bits != ATLAS_COORD_LANE_X && insn->bits != ATLAS_COORD_BLOCK_X &&
        (insn->bits < ATLAS_COORD_BLOCK_SIZE_X || insn->bits > ATLAS_COORD_GRID_SIZE_Z))
      return 1;
  }
  return 0;
}

static void find_x_in_grid(ptx *p) {
  ptx_name rest = hg_ptx_new(p, PTX_64), columns = PTX_FIELD(p, PTX_64, grid[0]);
  hg_ptx_divide(p, PTX_64, p->block, columns, PTX_FIELD(p, PTX_64, reciprocal[0]), rest, p->at[3]);
}

/* If blocks of the program have two or three dimensions, few launches are flat, but the branch stays: without it ptxas
 * keeps all of this in registers until hg_ptx_find_lane, or spills it. */
static void find_place(ptx *p) {
  if (p->plan->is_transposed) {
    name_place(p);
    place_in_space(p);
    return;
  }
  int is_in_line = has_lines(p) && !asks_for_space(p);
  ptx_name thread = hg_ptx_widened(p, p->block_lane);
  ptx_name in_space = hg_ptx_new(p, PTX_PREDICATE), rare = hg_ptx_label(p), joined = hg_ptx_label(p);
  name_place(p);
  if (is_in_line) { /* only x of the block depends on the grid's shape */
    PTX(p, "mov.b64", p->at[0], thread);
    number_line(p, line_size(p), thread);
  }
  PTX(p, "setp.eq.u32", in_space, PTX_FIELD(p, PTX_32, is_flat), hg_ptx_number(0));
  hg_ptx_put(p, "\t@%s bra %s;\n", in_space.text, rare.text);
  if (is_in_line) PTX(p, "mov.b64", p->at[3], p->block);
  else place_flat(p, thread);
  hg_ptx_place(p, joined);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  if (is_in_line) find_x_in_grid(p);
  else place_in_space(p);
  hg_ptx_put(p, "\tbra %s;\n", joined.text);
  p->out = out;
}

/* Lanes that the last block of a linear launch does not have exit at once. */
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

/* All lanes of the block clear shared memory together. */
void hg_ptx_clear_shared(ptx *p, uint32_t bytes) {
  ptx_name at = hg_ptx_new(p, PTX_32), end = hg_ptx_new(p, PTX_32), step = hg_ptx_new(p, PTX_32),
           done = hg_ptx_new(p, PTX_PREDICATE), again = hg_ptx_label(p), out = hg_ptx_label(p);
  hg_ptx_put(p, "\tmov.u32 %s, hg_shared;\n", at.text);
  PTX(p, "add.s32", end, at, hg_ptx_number(bytes));
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

/* Short arrays are cleared without a loop, so that the compiler may keep them in registers. */
void hg_ptx_clear_local(ptx *p, uint32_t bytes) {
  enum { STORE_BYTES = 16 };
  for (uint32_t i = 0; i < bytes && bytes <= PTX_CLEARING_STORES * STORE_BYTES; i += STORE_BYTES)
    hg_ptx_put(p, "\tst.local.v4.b32 [hg_local+%u], {0, 0, 0, 0};\n", (unsigned)i);
  if (bytes <= PTX_CLEARING_STORES * STORE_BYTES) return;
  ptx_name at = hg_ptx_new(p, PTX_32), end = hg_ptx_new(p, PTX_32), more = hg_ptx_new(p, PTX_PREDICATE),
           again = hg_ptx_label(p);
  hg_ptx_put(p, "\tmov.u32 %s, hg_local;\n", at.text);
  PTX(p, "add.s32", end, at, hg_ptx_number(bytes));
  hg_ptx_place(p, again);
  hg_ptx_put(p, "\tst.local.v4.b32 [%s], {0, 0, 0, 0};\n", at.text);
  PTX(p, "add.s32", at, at, hg_ptx_number(STORE_BYTES));
  PTX(p, "setp.lt.u32", more, at, end);
  hg_ptx_put(p, "\t@%s bra %s;\n", more.text, again.text);
}

/* The sub-blocks of a block may write to each other once they have all begun: each signals that it has, and waits for
 * the others before the first exchange. */
static void begin_sub_blocks(ptx *p) {
  p->lane_count = hg_ptx_number(gpu_block_lanes(p->plan));
  if (p->plan->info.sub_blocks == 1) return;
  hg_ptx_put(p, "\tbarrier.cluster.arrive.relaxed.aligned;\n");
  if (!p->plan->meets_late) hg_ptx_put(p, "\tbarrier.cluster.wait.aligned;\n");
}

void hg_ptx_find_block(ptx *p, ptx_name end) {
  find_block_number(p);
  find_place(p);
  p->block_index = hg_ptx_new(p, PTX_32);
  PTX(p, "cvt.u32.u64", p->block_index, p->at[3]);
  p->block_size = PTX_FIELD(p, PTX_32, block[0]);
  if (p->plan->is_transposed) begin_sub_blocks(p);
  else leave_missing(p, end);
  if (p->plan->memory.half_bytes == 0) return;
  p->half = hg_ptx_new(p, PTX_32);
  PTX(p, "mov.b32", p->half, hg_ptx_number(0));
}
