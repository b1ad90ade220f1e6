/* ahead.c - what a block that is still to come will load is asked for, to come to the cache of all multiprocessors.
 *
 * A block that holds a row in its registers loads, exchanges and stores, one after the other, and few such blocks have
 * room in a multiprocessor: at times memory has nothing to do. So the first lane of each block, behind its loads, asks
 * for what a later block's loads at the same place get; the order in which a device begins its blocks is theirs.
 * On an H200 (2^28 elements; a copy moves 4.2 TB/s) norms of 16384 bf16 take 255 us instead of 278 and 264, softmax of
 * 32768 f32 552 instead of 615, of 4096 506 instead of 525, of 131072 722 instead of 766. So far ahead that 2 to 6 MB
 * are on their way makes little difference; with 9 MB less is gained, and from 13 MB on more is lost than was gained.
 *
 * It is for loads outside of loops whose index grows by the same from block to block, and whose elements lie close
 * together in each, in blocks that store about as much: those that only read never wait for so long, and sums of rows
 * took 263 us instead of 238. */
#include "backend/gpu/plan.h"

#include "compiler/schedule.h"

enum {
  AHEAD_BYTES = 4 << 20,
  LEAST_BYTES = 8 << 10, /* of a block: many with less fill a multiprocessor */
  MOST_FACTOR = 1 << 24,
  MOST_DEPTH = 8         /* of operations that an index is made of */
};

typedef enum axis { OF_BLOCK, OF_X, OF_Y } axis;

/* How a value grows along an axis: by factor * scalar. */
typedef struct growth {
  int64_t factor;
  uint32_t scalar; /* SSA_NONE: 1 */
  int is_known;
} growth;

static growth by(int64_t factor) { return (growth){factor, SSA_NONE, 1}; }
static growth unknown(void) { return (growth){.scalar = SSA_NONE}; }

static growth of_special(const gpu_plan *g, uint64_t bits, axis along) {
  int is_line = g->program->block[1] == 1 && g->program->block[2] == 1;
  if (bits == ATLAS_REG_LANE || (bits == ATLAS_REG_BLOCK_LANE && along != OF_BLOCK && !is_line)) return unknown();
  return by(bits == ATLAS_REG_BLOCK_LANE ? along == OF_X : bits == ATLAS_REG_BLOCK_INDEX && along == OF_BLOCK);
}

static growth of_coordinate(uint64_t bits, axis along) {
  static const uint8_t grows[] = {ATLAS_COORD_BLOCK_X, ATLAS_COORD_LANE_X, ATLAS_COORD_LANE_Y};
  return bits >= ATLAS_COORD_GLOBAL_X ? unknown() : by(bits == grows[along]);
}

static growth sum(growth a, growth b) {
  if (!a.is_known || !b.is_known) return unknown();
  if (a.factor == 0 || b.factor == 0) return a.factor == 0 ? b : a;
  if (a.scalar != b.scalar) return unknown();
  a.factor += b.factor;
  return a.factor > MOST_FACTOR ? unknown() : a;
}

/* What grows, times a value that does not. */
static growth product(const gpu_plan *g, growth a, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (!a.is_known || a.factor == 0) return a;
  if (insn->op == SSA_SCALAR && a.scalar == SSA_NONE) a.scalar = value;
  else if (insn->op == SSA_CONST && insn->bits <= MOST_FACTOR) a.factor *= (int64_t)insn->bits;
  else return unknown();
  return a.factor > MOST_FACTOR ? unknown() : a;
}

static growth growth_of(const gpu_plan *g, uint32_t value, axis along, int depth) {
  const ssa_insn *insn = gpu_insn(g, value);
  growth of[3] = {{0}};
  if (insn->op == SSA_SPECIAL) return of_special(g, insn->bits, along);
  if (hg_is_leaf(insn)) return by(0);
  if (insn->op == ATLAS_OP_sreg) return of_coordinate(insn->bits, along);
  if (!(gpu_flags(g, value) & ATLAS_PURE) || insn->arg_count > 3 || depth == 0) return unknown();
  int is_alike = 1;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    of[i] = growth_of(g, gpu_arg(g, value, i), along, depth - 1);
    is_alike &= of[i].is_known && of[i].factor == 0;
  }
  if (is_alike) return by(0);
  switch (insn->op) {
  case ATLAS_OP_cvt: return of[0];
  case ATLAS_OP_add: return sum(of[0], of[1]);
  case ATLAS_OP_shl: {
    const ssa_insn *bits = gpu_insn(g, gpu_arg(g, value, 1));
    if (!of[0].is_known || bits->op != SSA_CONST || bits->bits > 20) return unknown();
    of[0].factor <<= bits->bits;
    return of[0].factor > MOST_FACTOR ? unknown() : of[0];
  }
  case ATLAS_OP_mul:
  case ATLAS_OP_mad: {
    int grows = of[0].is_known && of[0].factor == 0;
    growth times = product(g, of[grows], gpu_arg(g, value, !grows));
    return insn->op == ATLAS_OP_mul ? times : sum(times, of[2]);
  }
  default: return unknown();
  }
}

/* The bytes from the first to the last that a block loads by the run; 0: not known, or they do not lie together. */
static uint32_t range_of(const gpu_plan *g, const gpu_group *group, const gpu_run *run, uint32_t index) {
  uint64_t lanes[] = {g->program->block[0] / g->info.parts, g->program->block[1]};
  uint64_t least = gpu_insn(g, group->value[run->first])->bits,
           most = gpu_insn(g, group->value[run->first + run->count - 1])->bits, range = most - least + 1;
  for (axis along = OF_X; along <= OF_Y; along++) {
    growth grown = growth_of(g, index, along, MOST_DEPTH);
    if (!grown.is_known || grown.factor < 0 || (grown.factor > 0 && grown.scalar != SSA_NONE)) return 0;
    range += (uint64_t)grown.factor * (lanes[along - OF_X] - 1);
  }
  int is_close = range <= 2 * lanes[0] * lanes[1] * run->count && range * run->element_bytes <= AHEAD_BYTES;
  return is_close ? (uint32_t)range * run->element_bytes : 0;
}

/* Fills in the bytes of a run, and what its index is greater by in the next block. */
static void find_range(const gpu_plan *g, const gpu_group *group, gpu_run *run) {
  uint32_t first = group->value[run->first], index = gpu_arg(g, first, 0);
  const ssa_insn *insn = gpu_insn(g, first);
  if (run->is_shared || !run->is_read_only || insn->symbol & SSA_LIBRARY || g->in_loop[insn->block]) return;
  growth grown = growth_of(g, index, OF_BLOCK, MOST_DEPTH);
  if (!grown.is_known || grown.factor <= 0) return;
  run->ahead_bytes = range_of(g, group, run, index);
  run->ahead_by = (uint64_t)grown.factor;
  run->ahead_scalar = grown.scalar;
}

/* Where a run of loads is asked for ahead, its elements are loads; of stores, stores. */
static void count(const gpu_group *group, uint32_t *loads, uint32_t *stores) {
  for (uint32_t r = 0; r < group->run_count; r++) {
    const gpu_run *run = &group->run[r];
    if (group->is_store && !run->is_shared) *stores += run->count;
    else if (run->ahead_bytes > 0) *loads += run->count;
  }
}

void hg_gpu_look_ahead(gpu_plan *g) {
  uint64_t bytes = 0;
  uint32_t loads = 0, stores = 0;
  if (!g->target.can_ask_ahead || g->form.flags != 0 || !g->program->observes_block || g->program->block[2] != 1)
    return;
  for (uint32_t k = 0; k < g->groups_outside; k++) {
    gpu_group *group = (gpu_group *)g->group.data + k;
    for (uint32_t r = 0; r < group->run_count && !group->is_store; r++) {
      find_range(g, group, &group->run[r]);
      bytes += (uint64_t)group->run[r].ahead_bytes * g->info.parts;
    }
    count(group, &loads, &stores);
  }
  uint64_t blocks = bytes >= LEAST_BYTES && 2 * stores >= loads ? AHEAD_BYTES / bytes : 0;
  for (uint32_t k = 0; k < g->groups_outside; k++)
    for (uint32_t r = 0; r < gpu_group_at(g, k)->run_count; r++) {
      gpu_run *run = &((gpu_group *)g->group.data + k)->run[r];
      if (blocks == 0) run->ahead_bytes = 0;
      run->ahead_by *= blocks;
    }
}
