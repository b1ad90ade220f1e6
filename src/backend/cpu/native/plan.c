/* plan.c - the plan of a kernel: where and how long each value lives, and how many vectors are interleaved. steps.c
 * cuts the program into steps, registers.c allocates registers. */
#include "backend/cpu/native/loop.h"
#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "backend/cpu/native/native_plan.h"

#include "base/error.h"

#include <string.h>

/* ---- live ranges ------------------------------------------------------------------------------------------------- */

/* C code may load an element again, by its index blane + u, as long as the element is live: so u stays live as long. */
static void keep_row_starts(native_plan *p) {
  for (uint32_t r = 0; r < p->v->regs.count && p->b->row_start_count > 0; r++) {
    if (!hg_native_is_element(p->b, r)) continue;
    uint32_t index = vector_insn_at(p->v, vector_reg_at(p->v, r)->first)->s[0];
    if (vector_reg_at(p->v, index)->kind != VECTOR_VARIES) continue;
    uint32_t added = hg_native_added_to_lane(p->v, vector_insn_at(p->v, vector_reg_at(p->v, index)->first));
    vector_reg *u = vector_reg_at(p->v, added);
    if (u->kind == VECTOR_VARIES && u->last < vector_reg_at(p->v, r)->last) u->last = vector_reg_at(p->v, r)->last;
  }
}

/* If blane + u is live in one step only, the uniform u stays live as long as it: accesses add the two themselves. */
static void keep_added(native_plan *p) {
  if (p->b->slices == 0 && p->b->steps.count == 1) return;
  keep_row_starts(p);
  for (uint32_t i = 0; i < p->insn_count; i++) {
    uint32_t added = hg_native_added_to_lane(p->v, vector_insn_at(p->v, i));
    if (added == VECTOR_NONE || vector_reg_at(p->v, added)->kind != VECTOR_VARIES) continue;
    const vector_reg *sum = vector_reg_at(p->v, vector_insn_at(p->v, i)->d);
    vector_reg *u = vector_reg_at(p->v, added);
    int is_within = p->step_of[sum->first] == p->step_of[i] && p->step_of[sum->last] == p->step_of[i];
    if (u->uniform && is_within && u->last < sum->last) u->last = sum->last;
  }
}

/* ---- what each value needs --------------------------------------------------------------------------------------- */

static uint32_t row_bytes(uint8_t type) {
  uint32_t element = type == SSA_PREDICATE ? 1 : atlas_bytes((atlas_type)type);
  return (CPU_TILE_LANES + CPU_CHUNK) * element;
}

static int is_uniform(const vector_reg *reg, const native_location *location) {
  return location->kind == NATIVE_ROW ? reg->uniform == NATIVE_BLOCK_UNIFORM : reg->uniform != 0;
}

static void add_interval(native_plan *p, uint32_t r, uint32_t first, uint32_t last) {
  p->next_start[r] = p->starts[first];
  p->starts[first] = r;
  p->next_end[r] = p->ends[last];
  p->ends[last] = r;
}

/* 1 if the instruction that defines a value is the last use of a source of the same kind. The value then takes over the
 * source's registers. */
static int reuses_source(const native_plan *p, uint32_t r, const vector_reg *reg) {
  const vector_insn *insn = vector_insn_at(p->v, reg->first);
  for (int s = 0; s < 4 && insn->d == r; s++) {
    if (insn->s[s] >= p->v->regs.count || insn->s[s] == r) continue;
    const vector_reg *source = vector_reg_at(p->v, insn->s[s]);
    if (source->kind != VECTOR_VARIES || source->last != reg->first || !source->uniform != !reg->uniform) continue;
    if (source->type == SSA_PREDICATE || source->across) continue;
    if (atlas_bytes((atlas_type)source->type) / 8 == atlas_bytes((atlas_type)reg->type) / 8) return 1;
  }
  return 0;
}

/* 1 if an instruction uses r as its index only, and no jump leads between r's definition and the instruction. */
static int is_index_of(const vector_insn *insn, uint32_t r) {
  if (!vector_is_primitive(insn->op) || insn->s[0] != r || insn->s[1] == r || insn->symbol & SSA_LIBRARY) return 0;
  unsigned flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || flags & ATLAS_SPACE_POOL) return 0;
  if (insn->mode != ATLAS_ADDRESS_INDEXED || !(insn->flags & VECTOR_CONTIGUOUS) || insn->flags & VECTOR_SAME) return 0;
  int64_t displacement = (int64_t)insn->bits;
  if (displacement > NATIVE_GREATEST_DISPLACEMENT || displacement < -NATIVE_GREATEST_DISPLACEMENT) return 0;
  return insn->mask != r && atlas_bytes((atlas_type)insn->type) >= 4;
}

/* 1 if a register is blane + a constant or parameter and only the index of elements of 32 or 64 bits: the access folds
 * it into its address, so it has no location. */
static int is_offset(const native_build *b, uint32_t r) {
  const hg_vector *v = b->vector;
  const vector_reg *reg = vector_reg_at(v, r);
  const vector_insn *made = vector_insn_at(v, reg->first);
  uint32_t added = hg_native_added_to_lane(v, made);
  if (!b->target->runs_blocks || b->steps.count == 1 || made->d != r || added == VECTOR_NONE) return 0;
  if (reg->last - reg->first > CPU_OFFSET_LIFE || vector_reg_at(v, added)->kind == VECTOR_VARIES) return 0;
  if (hg_native_is_lane_number(vector_reg_at(v, added))) return 0;
  for (uint32_t i = reg->first + 1; i <= reg->last; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    int is_read = insn->mask == r;
    for (int k = 0; k < 4; k++) is_read |= insn->s[k] == r;
    if (insn->d == r || insn->op == VECTOR_LABEL || (is_read && !is_index_of(insn, r))) return 0;
  }
  return 1;
}

/* 1 for an access to a shared array. In straight-line code its address needs no check. */
static int is_shared_element(const native_build *b, const vector_insn *insn) {
  enum { MOST_SYMBOLS = 7 }; /* only then does each symbol have its address in a register */
  if (!vector_is_primitive(insn->op) || (atlas_op_flags(insn->op) & ATLAS_LOAD) == 0) return 0;
  if (insn->mode != ATLAS_ADDRESS_UNIFORM || insn->type != ATLAS_f32 || insn->mask != VECTOR_ALL) return 0;
  if (!(insn->flags & VECTOR_IN_BOUNDS) || insn->symbol & SSA_LIBRARY || insn->bits > NATIVE_GREATEST_DISPLACEMENT)
    return 0;
  return b->program->symbols.count <= MOST_SYMBOLS &&
         atlas_symbol_at(b->program, insn->symbol)->kind == ATLAS_SYMBOL_SHARED;
}

/* 1 if an access to consecutive elements is written as a single one: it has no mask, or its type has masked
 * accesses. */
static int has_runs(const native_plan *p, const vector_insn *insn) {
  if (insn->mask == VECTOR_ALL) return 1;
  return insn->flags & NATIVE_TAIL && (p->b->target->mask_count > 0 || atlas_bytes((atlas_type)insn->type) >= 4);
}

/* In straight-line code, blane + u needs no location if it is only the index of accesses without checks. */
static void find_indices(native_plan *p) {
  memset(p->is_read, p->b->slices == 0, p->reg_count);
  for (uint32_t i = 0; i < p->insn_count && p->b->slices > 0; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    int is_unchecked = insn->flags & VECTOR_IN_BOUNDS && !(insn->flags & VECTOR_LANE) && has_runs(p, insn);
    if (insn->mask < VECTOR_ALL) p->is_read[insn->mask] = 1;
    for (int k = 0; k < 4; k++)
      if (insn->s[k] < VECTOR_ALL && !(k == 0 && is_unchecked && is_index_of(insn, insn->s[0])))
        p->is_read[insn->s[k]] = 1;
  }
}

static int is_unread_index(const native_plan *p, uint32_t r) {
  if (r >= p->v->regs.count || p->is_read[r] || hg_straight_is_loop_carried(p->v, r)) return 0;
  return hg_native_added_to_lane(p->v, vector_insn_at(p->v, vector_reg_at(p->v, r)->first)) != VECTOR_NONE;
}

static int is_plain_arithmetic(const vector_insn *insn) {
  int is_operation = insn->op == ATLAS_OP_fma || insn->op == ATLAS_OP_add || insn->op == ATLAS_OP_sub ||
                     insn->op == ATLAS_OP_mul;
  return is_operation && insn->type == ATLAS_f32 && insn->mask == VECTOR_ALL;
}

int hg_native_is_operand(const native_build *b, uint32_t r) {
  const vector_reg *reg = vector_reg_at(b->vector, r);
  const vector_insn *made = vector_insn_at(b->vector, reg->first);
  if (b->slices == 0 || b->target->mask_count == 0 || made->d != r || !is_shared_element(b, made)) return 0;
  if (reg->last - reg->first > CPU_OFFSET_LIFE) return 0;
  for (uint32_t i = reg->first + 1; i <= reg->last; i++) {
    const vector_insn *insn = vector_insn_at(b->vector, i);
    uint32_t reads = insn->mask == r;
    for (int k = 0; k < 4; k++) reads += insn->s[k] == r;
    int is_store = vector_is_primitive(insn->op) && (atlas_op_flags(insn->op) & (ATLAS_STORE | ATLAS_ATOMIC)) != 0;
    if (insn->d == r || insn->op == VECTOR_LABEL || vector_is_jump(insn->op) || is_store) return 0;
    if (reads != (i == reg->last) || (reads > 0 && !is_plain_arithmetic(insn))) return 0;
  }
  return reg->last > reg->first;
}

static int is_compared_as_32_bits(uint8_t type) {
  if (type == SSA_PREDICATE) return 0;
  return type == ATLAS_f32 || (atlas_is_integer((atlas_type)type) && atlas_bytes((atlas_type)type) <= 4);
}

const vector_insn *hg_native_masked_use(const native_build *b, uint32_t comparison) {
  const vector_insn *insn = vector_insn_at(b->vector, comparison), *use = insn + 1;
  if (b->target->mask_count == 0 || !atlas_is_comparison(insn->op)) return NULL;
  const vector_reg *d = vector_reg_at(b->vector, insn->d);
  if (!is_compared_as_32_bits(insn->type2) || insn->flags & VECTOR_KEEP) return NULL;
  if (d->last != comparison + 1 || d->first != comparison || d->uniform) return NULL;
  int commutes = use->op == ATLAS_OP_pand || use->op == ATLAS_OP_por;
  if ((use->op != VECTOR_AND && use->op != VECTOR_ANDNOT && !commutes) || use->mask != VECTOR_ALL) return NULL;
  if (commutes && use->s[0] == insn->d) return use->s[1] != insn->d ? use : NULL;
  return use->s[1] == insn->d && use->s[0] != insn->d ? use : NULL;
}

/* Adds a value to the register pressure, and to the lists of where live ranges start and end. */
static void add_demand(native_plan *p, uint32_t r, const native_location *location, uint32_t first, uint32_t last,
                       int takes_over) {
  add_interval(p, r, first, last);
  if (location->is_mask) return;
  int32_t *pieces = location->is_uniform ? p->shared : p->pressure;
  pieces[first + (uint32_t)takes_over] += location->parts;
  pieces[last + 1] -= location->parts;
}

/* Location kinds are final after this, except that values may be spilled. */
static void find_location(native_plan *p, uint32_t r, const vector_reg *reg) {
  native_location *location = &p->b->locations[r];
  const native_step *steps = p->b->steps.data;
  uint32_t step = p->step_of[reg->first];
  int is_made = r < p->v->regs.count && vector_insn_at(p->v, reg->first)->d == r;
  if (hg_native_is_index_sum(p->v, r)) return;
  if (is_made && (hg_native_needs_no_code(p->v, reg->first) || hg_native_masked_use(p->b, reg->first) != NULL)) return;
  if (is_made && (is_offset(p->b, r) || hg_native_is_operand(p->b, r) || is_unread_index(p, r))) return;
  int is_across = step != p->step_of[reg->last] || steps[step].kind != NATIVE_REGION;
  location->kind = is_across ? NATIVE_ROW : NATIVE_REGISTERS;
  location->parts = reg->type != SSA_PREDICATE && atlas_bytes((atlas_type)reg->type) == 8 ? 2 : 1;
  location->is_mask = reg->type == SSA_PREDICATE && p->b->target->mask_count > 0;
  int uniform = is_uniform(reg, location);
  location->is_uniform = (uint8_t)uniform;
  if (uniform) location->parts = 1;
  location->copies = (uint8_t)!uniform; /* times the kernel's copies once these are known */
  if (is_across) {
    location->offset = p->b->row_bytes;
    p->b->row_bytes += uniform ? 2 * NATIVE_BLOCK_UNIFORM_BYTES : row_bytes(reg->type);
    return;
  }
  if (location->is_mask && !uniform) {
    p->masks[reg->first]++;
    p->masks[reg->last + 1]--;
  }
  add_demand(p, r, location, reg->first, reg->last, reuses_source(p, r, reg));
}

/* Cold code is masked code in a program without loops, which few groups usually reach. Its values do not count when the
 * number of copies is chosen, and where no register is free they do not evict others. */
static void find_cold(native_plan *p) {
  for (uint32_t i = 0; i < p->insn_count; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    if (vector_is_jump(insn->op) && insn->target <= i) return;
  }
  p->b->has_cold = 1;
  for (uint32_t i = 0, end = 0; i < p->insn_count; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    p->cold[i] = i < end;
    if (insn->op == VECTOR_JUMP_NONE && insn->flags & VECTOR_ENTERS && insn->target > end) end = insn->target;
  }
}

enum { SATURATED = 255 };

static void note_use(native_plan *p, uint32_t r, uint32_t i, int is_write) {
  if (r >= p->v->regs.count) return;
  uint32_t depth = p->depth[i];
  p->spill_cost[r] += UINT32_C(1) << (CPU_SPILL_LOG_TRIPS * depth);
  if (depth == 0 || p->loop_uses[r] == SATURATED) return;
  p->loop_uses[r] = is_write ? SATURATED : (uint8_t)(p->loop_uses[r] + 1);
}

/* In straight-line code, which is long, the distance to the next use counts, with or without loops. A value that can be
 * loaded again costs less than a store and a load; one that all slices read, such as a row's mean, costs more. */
static void find_costs_of_whole(native_plan *p) {
  for (uint32_t i = 0; i < p->insn_count; i++)
    for (int s = 0; s < 4; s++)
      if (vector_insn_at(p->v, i)->s[s] < p->v->regs.count) p->spill_cost[vector_insn_at(p->v, i)->s[s]]++;
  for (uint32_t r = 0; r < p->v->regs.count; r++)
    p->spill_cost[r] = hg_native_is_element(p->b, r) ? 0 : p->spill_cost[r] < CPU_SPILL_OFTEN ? 1 : 2;
}

/* Computes spill costs. 1 if there are loops. */
static int find_uses(native_plan *p) {
  int has_loops = 0;
  for (uint32_t i = 0; i < p->insn_count; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    p->depth[i] = 0;
    if (!vector_is_jump(insn->op) || insn->target > i) continue;
    for (uint32_t k = insn->target; k <= i; k++)
      if (p->depth[k] < CPU_SPILL_DEPTH) p->depth[k]++;
    has_loops = 1;
  }
  memset(p->spill_cost, 0, p->reg_count * sizeof *p->spill_cost);
  memset(p->loop_uses, 0, p->reg_count);
  if (p->b->slices > 0) {
    find_costs_of_whole(p);
    return 0;
  }
  for (uint32_t i = 0; i < p->insn_count && has_loops; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    for (int s = 0; s < 4; s++) note_use(p, insn->s[s], i, 0);
    note_use(p, insn->mask, i, 0);
    note_use(p, insn->d, i, 1);
  }
  /* The predicate of lanes that have not ended is read everywhere. But the loops of blocks run while all lanes are
   * there, so in blocks other masks are read more often; and the code of one lane leaves when the lane ends. */
  int is_seldom_read = p->v->has_block_ops || p->b->target->lanes == 1;
  if (has_loops) p->spill_cost[p->reg_count - 1] = is_seldom_read ? 1 : UINT32_MAX;
  return has_loops;
}

/* While all lanes of a group are in a loop over a row, nothing reads the loop's mask: other values make better use of a
 * register. */
static hg_status find_unread_masks(native_plan *p) {
  uint64_t regs = p->v->regs.count, n = p->insn_count;
  uint8_t *strides = hg_allocate(&p->b->allocator, regs + n, 1);
  if (strides == NULL) return hg_fail_memory("machine code", regs + n);
  for (uint32_t i = 0; i + 1 < n; i++) {
    native_loop loop;
    const vector_insn *enters = vector_insn_at(p->v, i + 1);
    if (vector_insn_at(p->v, i)->op != VECTOR_LABEL || enters->op != VECTOR_JUMP_NONE || p->depth[i] == 0) continue;
    if (!hg_native_find_loop(p->b, i, strides, strides + regs, &loop) || !loop.has_all) continue;
    if (loop.lanes != VECTOR_ALL) p->spill_cost[loop.lanes] = 1;
  }
  hg_release(&p->b->allocator, strides);
  return HG_OK;
}

/* As many copies as there are registers for. Out-of-order execution needs no more than two if iterations are
 * independent, and 16 lanes amortise the cost of a group. That cost is small if there is cold code, which more copies
 * would make spill. */
static uint32_t choose_copies(const native_plan *p) {
  int32_t now = 0, shared = 0, masks = 0, most_masks = 0, has_loop = 0, has_cold = 0;
  uint32_t copies = NATIVE_MOST_COPIES;
  if (p->b->slices > 0 || p->b->target->lanes == 1) return 1;
  for (uint32_t i = 0; i < p->insn_count; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    has_loop |= vector_is_jump(insn->op) && insn->target <= i;
    now += p->pressure[i];
    shared += p->shared[i];
    masks += p->masks[i];
    if (masks > most_masks) most_masks = masks;
    has_cold |= p->cold[i];
    if (p->cold[i]) continue;
    while (copies > 1 && (int32_t)copies * now + shared > p->b->target->vector_count) copies--;
  }
  if (copies == 3 && p->v->has_block_ops) copies = 2; /* blocks usually are a power of two */
  int is_crowded = (int32_t)copies * most_masks > p->b->target->mask_count && p->b->target->mask_count > 0;
  uint32_t enough = p->b->target->lanes >= 8 || has_cold ? 2 : 16u / p->b->target->lanes;
  return (!has_loop || is_crowded) && copies > enough ? enough : copies;
}

/* The same for divergent loops that only compute. A value that they read in one place may be an operand in memory,
 * which costs such code nothing and leaves the value's registers to another copy. */
static uint32_t copies_of_loops(native_plan *p, uint32_t copies) {
  int32_t now = 0, shared = 0, in_memory = 0, masks = 0, most_masks = 0;
  uint32_t more = NATIVE_MOST_COPIES;
  for (uint32_t r = 0; r < p->v->regs.count; r++) {
    const native_location *location = &p->b->locations[r];
    if (location->kind != NATIVE_REGISTERS || location->is_mask || location->is_uniform || p->loop_uses[r] != 1)
      continue;
    p->in_memory[vector_reg_at(p->v, r)->first] += location->parts;
    p->in_memory[vector_reg_at(p->v, r)->last + 1] -= location->parts;
  }
  for (uint32_t i = 0; i < p->insn_count; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    now += p->pressure[i];
    shared += p->shared[i];
    masks += p->masks[i];
    in_memory += p->in_memory[i];
    if (p->depth[i] == 0) continue;
    unsigned flags = atlas_op_flags(insn->op);
    if (flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) return copies;
    if (masks > most_masks) most_masks = masks;
    while (more > copies && (int32_t)more * (now - in_memory) + shared > p->b->target->vector_count) more--;
  }
  return most_masks > 0 && (int32_t)more * most_masks <= p->b->target->mask_count ? more : copies;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* The location of the predicate of lanes that have not ended. */
static void describe_alive(native_plan *p) {
  uint32_t r = (uint32_t)p->v->regs.count;
  native_location *location = &p->b->locations[r];
  if (!p->v->loses_lanes) return;
  p->b->alive_offset = p->b->row_bytes;
  if (p->b->steps.count > 1) p->b->row_bytes += row_bytes(SSA_PREDICATE);
  *location =
      (native_location){.kind = NATIVE_REGISTERS, .parts = 1, .copies = 1, .is_mask = p->b->target->mask_count > 0};
  add_demand(p, r, location, 0, p->insn_count - 1, 0);
}

static void make_coordinate_rows(native_plan *p) {
  for (uint32_t i = 0; i < p->insn_count && p->b->steps.count > 1 && p->b->target->runs_blocks; i++) {
    const vector_insn *insn = vector_insn_at(p->v, i);
    if (insn->op != ATLAS_OP_sreg || !hg_native_is_lane_coordinate(insn->bits)) continue;
    p->b->keeps_coordinates = 1;
    p->b->coordinate_offset = p->b->row_bytes;
    p->b->row_bytes += 3 * row_bytes(ATLAS_u32);
    return;
  }
}

static hg_status describe_all(native_plan *p) {
  find_cold(p);
  find_indices(p);
  for (uint32_t r = 0; r < p->v->regs.count; r++) {
    const vector_reg *reg = vector_reg_at(p->v, r);
    if (reg->kind == VECTOR_VARIES && reg->first != VECTOR_NONE) find_location(p, r, reg);
  }
  describe_alive(p);
  make_coordinate_rows(p);
  p->b->copies = choose_copies(p);
  int has_loops = find_uses(p);
  int is_one = p->b->target->lanes == 1;
  if (has_loops && !p->v->has_block_ops && !is_one) p->b->copies = copies_of_loops(p, p->b->copies);
  if (has_loops && !is_one) HG_TRY(hg_native_vectors_per_iteration(p->b, p->shared, p->spill_cost));
  for (uint32_t r = 0; r < p->reg_count; r++) {
    native_location *location = &p->b->locations[r];
    if (location->kind != NATIVE_NOWHERE) location->copies = location->copies ? (uint8_t)p->b->copies : 1;
  }
  return has_loops && p->v->has_block_ops ? find_unread_masks(p) : HG_OK;
}

static hg_status make_room(native_plan *p) {
  native_build *b = p->b;
  uint64_t n = (uint64_t)p->insn_count + 2, r = p->reg_count;
  uint32_t *words = hg_allocate(&b->allocator, 8 * n + 6 * r, sizeof *words);
  b->locations = hg_allocate(&b->allocator, r, sizeof *b->locations);
  p->starts = words;
  if (words == NULL || b->locations == NULL) return hg_fail_memory("machine code", n * sizeof *words);
  p->ends = p->starts + n;
  p->step_of = p->ends + n;
  p->pressure = (int32_t *)(p->step_of + n);
  p->shared = p->pressure + n;
  p->masks = p->shared + n;
  p->in_memory = p->masks + n;
  p->cut = (uint8_t *)(p->in_memory + n); /* bytes, in room for as many words */
  p->cold = p->cut + n;
  p->depth = p->cold + n;
  p->next_start = p->step_of + 6 * n;
  p->next_end = p->next_start + r;
  p->active = p->next_end + r;
  p->spill_cost = p->active + r;
  p->place = p->spill_cost + r;
  p->loop_uses = (uint8_t *)(p->place + r); /* bytes as well */
  p->is_read = p->loop_uses + r;
  memset(p->place, 0xff, r * sizeof *p->place);
  memset(p->starts, 0xff, 2 * n * sizeof *words);
  return HG_OK;
}

/* Rows whose distance is not a multiple of a page lie in different sets of the caches. */
static void place_local(native_build *b) {
  const uint32_t *block = b->program->block;
  uint32_t lanes = block[0] * block[1] * block[2];
  b->local_bytes = hg_cpu_local_bytes(b->program, b->vector);
  if (b->local_bytes == 0) return;
  b->local_lanes = b->copies * b->target->lanes;
  if (!hg_native_has_tile_slots(b)) return;
  if (lanes == 0) lanes = CPU_TILE_LANES;
  b->local_lanes = (lanes / NATIVE_LOCAL_PADDING + 2) * NATIVE_LOCAL_PADDING;
}

/* Slots for the numbers of one loop at a time. */
static void make_scalar_slots(native_plan *p) {
  int has_loops = 0;
  for (uint32_t i = 0; i < p->insn_count && p->b->target->has_quick_loops && p->b->slices == 0; i++)
    has_loops |= p->depth[i];
  if (!has_loops) return;
  p->b->scalar_offset = p->last_slot;
  p->last_slot += NATIVE_MOST_SCALARS * 8;
}

hg_status hg_native_plan(native_build *b) {
  native_plan p = native_new_plan(b);
  b->steps.count = 0;
  hg_status status = make_room(&p);
  if (status == HG_OK) status = hg_native_cut(&p);
  if (status == HG_OK) keep_added(&p);
  if (status == HG_OK) status = describe_all(&p);
  if (status == HG_OK) {
    place_local(b);
    p.last_slot = (uint32_t)sizeof(native_frame) + NATIVE_MOST_REGISTERS * b->target->vector_bytes;
    if (b->target->lanes > 1) hg_native_allocate(&p);
    else hg_native_allocate_lanes(&p);
    make_scalar_slots(&p);
    b->frame_bytes = p.last_slot;
    if (b->frame_bytes > NATIVE_MOST_FRAME_BYTES)
      status = hg_fail(HG_UNSUPPORTED, "machine code keeps at most %d bytes in a frame; this program needs %u",
                       (int)NATIVE_MOST_FRAME_BYTES, b->frame_bytes);
  }
  hg_release(&b->allocator, p.starts);
  return status;
}

hg_status hg_native_pass_temporaries(native_build *b, hg_vector *v, uint32_t *fired) {
  static const uint8_t types[] = {ATLAS_f32, ATLAS_u32, ATLAS_i32};
  b->temporaries = (uint32_t)v->regs.count;
  for (size_t k = 0; k < 2 * sizeof types; k++, ++*fired) {
    const vector_reg reg = {.type = types[k / 2], .kind = VECTOR_VARIES, .first = VECTOR_NONE};
    if (hg_array_append(&v->allocator, &v->regs, &reg, 1) == NULL) return hg_fail_memory("machine code", sizeof reg);
  }
  return HG_OK;
}

int hg_native_uses_tile_lane(const native_build *b) {
  if (b->row_bytes > 0 || (b->local_bytes > 0 && hg_native_has_tile_slots(b))) return 1;
  for (uint32_t r = 0; r < b->vector->regs.count; r++)
    if (hg_native_is_blane(b->vector, r)) return 1;
  return 0;
}
