/* tile_plan.c - storage for registers and a step for each instruction.
 *
 * A uniform register is kept in a short row if every instruction that writes it can do so. The others get rows, which
 * registers with disjoint live ranges share (linear scan: Poletto and Sarkar 1999). A load of [x + lane] makes the
 * buffer itself the row, if nothing may write to the buffer while the row is live. A value that is stored to [x + lane]
 * is computed in the buffer in the first place, if nothing touches the buffer in between. */
#include "backend/cpu/tile/tile_plan.h"

#include "backend/cpu/engine/rows.h"
#include "base/error.h"

typedef struct planner {
  const atlas_program *program;
  const hg_vector *vector;
  tile_plan *plan;
  uint32_t insn_count, reg_count;
  uint8_t in_masked_block; /* while steps are made */
  uint8_t *writers;      /* per register: how many instructions write it, up to 2 */
  uint8_t *is_mask;      /* per register: some instruction has it as its mask */
  uint8_t *is_read;      /* per register: read otherwise than as the lane of [x + lane] */
  uint32_t *definition;  /* per register: the first instruction that writes it */
  uint32_t *last;        /* per register: the last instruction that needs its row */
  uint32_t *same_as;     /* per register: the register whose row it shares because it copies its bits; VECTOR_NONE */
  uint32_t *output_of;   /* per instruction: the store of its result; VECTOR_NONE */
  uint32_t *step_of;     /* per instruction: its step */
  uint32_t *by_start;    /* registers that need rows, by their first instruction */
} planner;

static tile_location *place_at(const planner *p, uint32_t reg) { return (tile_location *)p->plan->places.data + reg; }

static int is_short(const planner *p, uint32_t reg) {
  return reg < p->reg_count && place_at(p, reg)->kind == TILE_SHORT_ROW;
}

/* ---- short rows -------------------------------------------------------------------------------------------------- */

static int sources_are_short(const planner *p, const vector_insn *insn) {
  for (int k = 0; k < 4; k++)
    if (insn->s[k] != VECTOR_NONE && !is_short(p, insn->s[k])) return 0;
  return 1;
}

/* 1 if all lanes access one location: [x + #n], or an index in a short row. */
static int is_one_location(const planner *p, const vector_insn *insn) {
  if (!(atlas_op_flags(insn->op) & ATLAS_LOAD) || insn->flags & VECTOR_LANE) return 0;
  return insn->mode <= ATLAS_ADDRESS_INDEXED && sources_are_short(p, insn);
}

/* 1 if the instruction can write a short row. */
static int writes_short(const planner *p, const vector_insn *insn) {
  if (is_one_location(p, insn)) return 1;
  return (hg_kernel_of(insn) != KERNEL_NONE || insn->op == VECTOR_MOVE) && sources_are_short(p, insn);
}

static int is_candidate(const planner *p, uint32_t reg) {
  const vector_reg *r = vector_reg_at(p->vector, reg);
  if (r->kind == VECTOR_SPECIAL) return r->bits == ATLAS_REG_BLOCK_INDEX || r->bits == ATLAS_REG_BLOCK_SIZE;
  return r->kind != VECTOR_VARIES || (r->uniform && !p->is_mask[reg]);
}

/* Optimistic: all candidates start as short rows. Those written by an instruction that reads a long row become long,
 * until nothing changes. */
static void choose_short(planner *p) {
  for (uint32_t reg = 0; reg < p->reg_count; reg++)
    place_at(p, reg)->kind = is_candidate(p, reg) ? TILE_SHORT_ROW : TILE_ROW;
  for (int has_changed = 1; has_changed;) {
    has_changed = 0;
    for (uint32_t i = 0; i < p->insn_count; i++) {
      const vector_insn *insn = vector_insn_at(p->vector, i);
      if (insn->d == VECTOR_NONE || !is_short(p, insn->d) || writes_short(p, insn)) continue;
      place_at(p, insn->d)->kind = TILE_ROW;
      has_changed = 1;
    }
  }
}

static void place_short_rows(planner *p) {
  for (uint32_t reg = 0; reg < p->reg_count; reg++) {
    if (!is_short(p, reg)) continue;
    place_at(p, reg)->offset = p->plan->short_bytes;
    p->plan->short_bytes += CPU_CHUNK * hg_cpu_element_bytes(vector_reg_at(p->vector, reg)->type);
  }
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* 1 for a row with a single definition that is not live before it. */
static int is_plain_row(const planner *p, uint32_t reg) {
  return reg < p->reg_count && place_at(p, reg)->kind == TILE_ROW && p->writers[reg] == 1 &&
         vector_reg_at(p->vector, reg)->kind == VECTOR_VARIES &&
         vector_reg_at(p->vector, reg)->first == p->definition[reg];
}

/* 1 if the copy at `i` is made canonical in place, which would change its source. */
static int is_changed_in_place(const planner *p, uint32_t i) {
  const vector_insn *next = vector_insn_at(p->vector, i + 1);
  return next->op == VECTOR_CANON && next->d == vector_insn_at(p->vector, i)->d;
}

/* A bitcast between such rows copies nothing: both registers share one row for both live ranges. Goes backwards, so
 * that copies of copies are known. */
static void share_copies(planner *p) {
  for (uint32_t reg = 0; reg < p->reg_count; reg++) {
    p->last[reg] = vector_reg_at(p->vector, reg)->last;
    p->same_as[reg] = VECTOR_NONE;
  }
  for (uint32_t i = p->insn_count; i-- > 0;) {
    const vector_insn *insn = vector_insn_at(p->vector, i);
    if (insn->op != ATLAS_OP_bitcast || insn->flags & VECTOR_KEEP) continue;
    if (!is_plain_row(p, insn->d) || !is_plain_row(p, insn->s[0]) || is_changed_in_place(p, i)) continue;
    p->same_as[insn->d] = insn->s[0];
    if (p->last[insn->s[0]] < p->last[insn->d]) p->last[insn->s[0]] = p->last[insn->d];
  }
}

static void place_copies(const planner *p) {
  for (uint32_t i = 0; i < p->insn_count; i++) { /* the source precedes its copy */
    uint32_t reg = vector_insn_at(p->vector, i)->d;
    if (reg < p->reg_count && p->same_as[reg] != VECTOR_NONE)
      place_at(p, reg)->offset = place_at(p, p->same_as[reg])->offset;
  }
}

/* ---- buffers as rows --------------------------------------------------------------------------------------------- */

/* 1 if the instruction may touch the buffer `symbol` (write it, if `writes_only`). Different symbols count as different
 * memory: a launch in which they overlap makes no buffer a row. */
static int may_touch(const vector_insn *insn, uint16_t symbol, int writes_only) {
  uint32_t flags = atlas_op_flags(insn->op);
  if (!(flags & (ATLAS_STORE | ATLAS_ATOMIC)) && (writes_only || !(flags & ATLAS_LOAD))) return 0;
  return insn->mode == ATLAS_ADDRESS_TABLE || insn->symbol == symbol;
}

static int is_own_element(const planner *p, const vector_insn *insn) {
  return insn->mode == ATLAS_ADDRESS_INDEXED && insn->flags & VECTOR_LANE && insn->type != ATLAS_bool &&
         !(insn->symbol & SSA_LIBRARY) && insn->mask == VECTOR_ALL &&
         atlas_symbol_at(p->program, insn->symbol)->kind == ATLAS_SYMBOL_BUFFER;
}

static int ends_straight_code(const vector_insn *insn) {
  return insn->op == VECTOR_LABEL || insn->op == VECTOR_JUMP || insn->op == VECTOR_JUMP_NONE ||
         insn->op == VECTOR_JUMP_ANY || insn->op == VECTOR_STEP || insn->op == VECTOR_TRAP ||
         atlas_op_flags(insn->op) & ATLAS_BLOCK;
}

/* 1 if some row is this buffer and is read after instruction `at`. */
static int is_read_as_row(const planner *p, uint16_t symbol, uint32_t at) {
  for (uint32_t i = 0; i < at; i++) {
    const vector_insn *insn = vector_insn_at(p->vector, i);
    if (atlas_op_flags(insn->op) & ATLAS_LOAD && may_touch(insn, symbol, 0) && insn->d != VECTOR_NONE &&
        p->last[insn->d] > at)
      return 1;
  }
  return 0;
}

/* 1 if the value of the store at `store` can be computed in the buffer. */
static int goes_to_output(const planner *p, uint32_t store) {
  const vector_insn *insn = vector_insn_at(p->vector, store);
  if (!(atlas_op_flags(insn->op) & ATLAS_STORE) || !is_own_element(p, insn)) return 0;
  uint32_t reg = insn->s[1];
  if (reg >= p->reg_count || p->writers[reg] != 1 || place_at(p, reg)->kind != TILE_ROW) return 0;
  const vector_insn *value = vector_insn_at(p->vector, p->definition[reg]);
  if (p->definition[reg] > store || hg_kernel_of(value) == KERNEL_NONE || value->flags & VECTOR_KEEP) return 0;
  if (p->same_as[reg] != VECTOR_NONE || p->output_of[p->definition[reg]] != VECTOR_NONE || p->last[reg] > store)
    return 0;
  for (uint32_t i = p->definition[reg]; i < store; i++) {
    const vector_insn *between = vector_insn_at(p->vector, i);
    if (ends_straight_code(between) || may_touch(between, insn->symbol, 0)) return 0;
  }
  return !is_read_as_row(p, insn->symbol, p->definition[reg]);
}

static void choose_outputs(planner *p) {
  for (uint32_t i = 0; i < p->insn_count; i++) p->output_of[i] = VECTOR_NONE;
  for (uint32_t i = 0; i < p->insn_count; i++)
    if (goes_to_output(p, i)) {
      uint32_t reg = vector_insn_at(p->vector, i)->s[1];
      p->output_of[p->definition[reg]] = i;
      place_at(p, reg)->is_aliased = 1;
    }
}

/* 1 if nothing writes the buffer from the load at `load` to the last use of its result. */
static int stays_as_loaded(const planner *p, uint32_t load) {
  const vector_insn *insn = vector_insn_at(p->vector, load);
  if (!(atlas_op_flags(insn->op) & ATLAS_LOAD) || !is_own_element(p, insn) || insn->d == VECTOR_NONE) return 0;
  if (insn->flags & VECTOR_KEEP || p->writers[insn->d] != 1) return 0;
  uint32_t last = p->last[insn->d];
  for (uint32_t i = vector_reg_at(p->vector, insn->d)->first; i < last && i < p->insn_count; i++)
    if (may_touch(vector_insn_at(p->vector, i), insn->symbol, 1)) return 0;
  return 1;
}

static void choose_loads(planner *p) {
  for (uint32_t i = 0; i < p->insn_count; i++)
    if (stays_as_loaded(p, i)) place_at(p, vector_insn_at(p->vector, i)->d)->is_aliased = 1;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* 1 if the register has a definition and a use. */
static int needs_row(const planner *p, uint32_t reg) {
  const vector_reg *r = vector_reg_at(p->vector, reg);
  return place_at(p, reg)->kind == TILE_ROW && r->kind == VECTOR_VARIES && r->first != VECTOR_NONE &&
         p->same_as[reg] == VECTOR_NONE;
}

/* Sorts registers by the start of their live range (counting sort). */
static hg_status sort_by_start(planner *p, uint32_t *count) {
  uint32_t *place = hg_allocate(&p->plan->allocator, (uint64_t)p->insn_count + 2, sizeof *place);
  if (place == NULL) return hg_fail_memory("the rows of a kernel", 0);
  for (uint32_t reg = 0; reg < p->reg_count; reg++)
    if (needs_row(p, reg))
      place[vector_reg_at(p->vector, reg)->first + 1]++;
  for (uint32_t i = 0; i <= p->insn_count; i++) place[i + 1] += place[i];
  *count = place[p->insn_count + 1];
  for (uint32_t reg = 0; reg < p->reg_count; reg++)
    if (needs_row(p, reg))
      p->by_start[place[vector_reg_at(p->vector, reg)->first]++] = reg;
  hg_release(&p->plan->allocator, place);
  return HG_OK;
}

/* A row that is free. */
typedef struct row {
  uint32_t offset, free_from; /* free_from: an instruction, which may write the row while it reads the old value */
} row;

static uint32_t new_row(tile_plan *plan, uint32_t bytes) {
  uint32_t offset = plan->row_bytes;
  plan->row_bytes += bytes;
  return offset;
}

/* In order of first definition, each register takes the free row of its element size that was freed last. */
static hg_status place_rows(planner *p) {
  uint32_t count = 0;
  hg_array rows[4];
  for (int c = 0; c < 4; c++) rows[c] = (hg_array){.element_size = sizeof(row)};
  hg_status status = sort_by_start(p, &count);
  for (uint32_t n = 0; n < count && status == HG_OK; n++) {
    const vector_reg *reg = vector_reg_at(p->vector, p->by_start[n]);
    uint32_t bytes = hg_cpu_element_bytes(reg->type);
    hg_array *of_size = &rows[hg_cpu_size_class(bytes)];
    row *best = NULL;
    for (size_t r = 0; r < of_size->count; r++) {
      row *candidate = (row *)of_size->data + r;
      if (candidate->free_from <= reg->first && (best == NULL || candidate->free_from > best->free_from))
        best = candidate;
    }
    if (best == NULL) {
      row fresh = {.offset = new_row(p->plan, bytes)};
      best = hg_array_append(&p->plan->allocator, of_size, &fresh, 1);
    }
    if (best == NULL) status = hg_fail_memory("the rows of a kernel", 0);
    else {
      best->free_from = p->last[p->by_start[n]];
      place_at(p, p->by_start[n])->offset = best->offset;
    }
  }
  for (int c = 0; c < 4; c++) hg_array_release(&p->plan->allocator, &rows[c]);
  return status;
}

/* Rows for r252, r255 and the lanes that the tile has, which live as long as the launch. */
static void place_lane_rows(planner *p) {
  for (uint32_t reg = 0; reg < p->reg_count; reg++) {
    const vector_reg *r = vector_reg_at(p->vector, reg);
    if (r->kind != VECTOR_SPECIAL || !p->is_read[reg] || p->plan->special_count == 4) continue;
    p->plan->special[p->plan->special_count++] = reg;
    if (place_at(p, reg)->kind == TILE_ROW)
      place_at(p, reg)->offset = new_row(p->plan, hg_cpu_element_bytes(r->type));
  }
  *place_at(p, p->plan->all) = (tile_location){.kind = TILE_ROW, .offset = new_row(p->plan, 1)};
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static tile_step_kind kind_of(const planner *p, uint32_t i) {
  const vector_insn *insn = vector_insn_at(p->vector, i);
  switch (insn->op) {
  case VECTOR_JUMP: return TILE_JUMP;
  case VECTOR_JUMP_NONE: return TILE_JUMP_NONE;
  case VECTOR_JUMP_ANY: return TILE_JUMP_ANY;
  case VECTOR_END: return TILE_END;
  default: break;
  }
  if (insn->d != VECTOR_NONE && is_short(p, insn->d))
    return atlas_op_flags(insn->op) & ATLAS_LOAD ? TILE_LOAD_SHORT : TILE_SHORT;
  if (atlas_op_flags(insn->op) & ATLAS_LOAD && insn->d != VECTOR_NONE && place_at(p, insn->d)->is_aliased)
    return TILE_LOAD;
  if (atlas_op_flags(insn->op) & ATLAS_STORE && is_own_element(p, insn) && !is_short(p, insn->s[1])) return TILE_STORE;
  if (insn->d != VECTOR_NONE && insn->d < p->reg_count && p->same_as[insn->d] != VECTOR_NONE) return TILE_SAME;
  if (insn->op == VECTOR_MOVE) return TILE_KERNEL;
  if (insn->op == VECTOR_STEP) return TILE_STEP;
  int keeps = insn->flags & VECTOR_KEEP && insn->mask != VECTOR_ALL;
  return hg_kernel_of(insn) != KERNEL_NONE && !keeps ? TILE_KERNEL : TILE_INSN;
}

static uint16_t kernel_of(const vector_insn *insn) {
  static const uint16_t copy[4] = {KERNEL_mov_8, KERNEL_mov_16, KERNEL_mov_32, KERNEL_mov_64};
  if (insn->op == VECTOR_MOVE) return copy[hg_cpu_size_class(hg_cpu_element_bytes(insn->type))];
  return (uint16_t)hg_kernel_of(insn);
}

/* A move under a mask is a selection: d = mask ? s : d. */
static void make_selection(tile_step *step, const vector_insn *insn, uint32_t mask) {
  static const uint16_t select[4] = {KERNEL_sel_8, KERNEL_sel_16, KERNEL_sel_32, KERNEL_sel_64};
  step->kernel = select[hg_cpu_size_class(hg_cpu_element_bytes(insn->type))];
  step->steps = (uint8_t)(5 | (step->steps & 1) << 1);
  step->s[1] = step->s[0];
  step->s[0] = mask;
  step->s[2] = step->d;
}

static uint32_t row_index(const planner *p, uint32_t reg) {
  if (reg == VECTOR_NONE) return p->plan->all; /* the row is never read */
  return reg == VECTOR_ALL ? p->plan->all : reg;
}

/* Element sizes, which say where a chunk other than the first begins in each row. A short row has one chunk. */
static void note_sizes(const planner *p, tile_step *step) {
  uint32_t rows[4] = {step->d, step->s[0], step->s[1], step->s[2]};
  for (int k = 0; k < 4; k++) {
    uint32_t bytes = rows[k] == p->plan->all ? 1 : hg_cpu_element_bytes(vector_reg_at(p->vector, rows[k])->type);
    step->size[k] = is_short(p, rows[k]) ? TILE_SHORT_SIZE : (uint8_t)hg_cpu_size_class(bytes);
  }
}

/* A masked basic block needs values only in the lanes of its mask; masks themselves are kept for all lanes. */
static int is_partial(const planner *p, const vector_insn *insn) {
  return p->in_masked_block &&
         (insn->op > 0xff || insn->op == VECTOR_MOVE || (insn->op >= VECTOR_CANON && insn->op <= VECTOR_GREATER));
}

static int enters_masked_block(const planner *p, uint32_t i) {
  const vector_insn *insn = vector_insn_at(p->vector, i);
  return insn->flags & VECTOR_ENTERS && insn->s[0] < p->reg_count && !is_short(p, insn->s[0]);
}

static hg_status append_step(planner *p, uint32_t i, tile_step_kind kind) {
  const vector_insn *insn = vector_insn_at(p->vector, i);
  tile_step step = {.kind = (uint8_t)kind, .kernel = kernel_of(insn), .mask = insn->mask, .target = insn->target,
                    .insn = i, .d = row_index(p, insn->d)};
  for (int k = 0; k < 4; k++) {
    step.s[k] = row_index(p, insn->s[k]);
    if (!is_short(p, insn->s[k])) step.steps |= (uint8_t)(1u << k);
  }
  int is_whole = insn->mask == VECTOR_ALL && !p->vector->loses_lanes;
  if (kind == TILE_KERNEL && insn->op == VECTOR_MOVE && !is_whole)
    make_selection(&step, insn, row_index(p, insn->mask));
  if (kind == TILE_KERNEL) {
    note_sizes(p, &step);
    step.is_partial = (uint8_t)is_partial(p, insn);
  }
  if (kind == TILE_JUMP_NONE) p->in_masked_block = step.is_partial = (uint8_t)enters_masked_block(p, i);
  if (kind == TILE_OUTPUT) { /* the store's address, the value's register */
    step.s[0] = insn->s[1];
    step.insn = i;
  }
  if (hg_array_append(&p->plan->allocator, &p->plan->steps, &step, 1) == NULL)
    return hg_fail_memory("the steps of a kernel", 0);
  return HG_OK;
}

static hg_status make_steps(planner *p) {
  for (uint32_t i = 0; i < p->insn_count; i++) {
    p->step_of[i] = (uint32_t)p->plan->steps.count;
    if (vector_insn_at(p->vector, i)->op == VECTOR_LABEL) {
      p->in_masked_block = 0;
      continue;
    }
    if (p->output_of[i] != VECTOR_NONE) HG_TRY(append_step(p, p->output_of[i], TILE_OUTPUT));
    HG_TRY(append_step(p, i, kind_of(p, i)));
  }
  for (size_t n = 0; n < p->plan->steps.count; n++) {
    tile_step *step = (tile_step *)p->plan->steps.data + n;
    if (step->kind >= TILE_JUMP && step->kind <= TILE_JUMP_ANY) step->target = p->step_of[step->target];
  }
  return HG_OK;
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static void count_uses(planner *p) {
  for (uint32_t i = 0; i < p->insn_count; i++) {
    const vector_insn *insn = vector_insn_at(p->vector, i);
    if (insn->mask < p->reg_count) p->is_mask[insn->mask] = 1;
    for (int k = insn->flags & VECTOR_LANE ? 1 : 0; k < 4; k++)
      if (insn->s[k] < p->reg_count) p->is_read[insn->s[k]] = 1;
    if (insn->d >= p->reg_count) continue;
    if (p->writers[insn->d] == 0) p->definition[insn->d] = i;
    else if (insn->op == VECTOR_CANON && p->definition[insn->d] == i - 1) continue; /* both act as one definition */
    if (p->writers[insn->d] < 2) p->writers[insn->d]++;
  }
}

static hg_status make_plan(planner *p) {
  const hg_allocator *a = &p->plan->allocator;
  p->writers = hg_allocate(a, p->reg_count, 1);
  p->is_mask = hg_allocate(a, p->reg_count, 1);
  p->is_read = hg_allocate(a, p->reg_count, 1);
  p->definition = hg_allocate(a, p->reg_count, sizeof *p->definition);
  p->by_start = hg_allocate(a, p->reg_count, sizeof *p->by_start);
  p->last = hg_allocate(a, p->reg_count, sizeof *p->last);
  p->same_as = hg_allocate(a, p->reg_count, sizeof *p->same_as);
  p->output_of = hg_allocate(a, p->insn_count, sizeof *p->output_of);
  p->step_of = hg_allocate(a, p->insn_count, sizeof *p->step_of);
  if (p->writers == NULL || p->is_mask == NULL || p->is_read == NULL || p->definition == NULL || p->by_start == NULL ||
      p->last == NULL || p->same_as == NULL || p->output_of == NULL || p->step_of == NULL ||
      hg_array_append(a, &p->plan->places, NULL, (size_t)p->reg_count + 1) == NULL)
    return hg_fail_memory("planning a kernel", p->insn_count);
  count_uses(p);
  choose_short(p);
  place_short_rows(p);
  share_copies(p);
  choose_outputs(p);
  choose_loads(p);
  HG_TRY(place_rows(p));
  place_copies(p);
  place_lane_rows(p);
  return make_steps(p);
}

hg_status hg_tile_plan(const hg_allocator *allocator, const atlas_program *program, const hg_vector *vector,
                       tile_plan *plan) {
  *plan = (tile_plan){.allocator = *allocator,
                      .steps = {.element_size = sizeof(tile_step)},
                      .places = {.element_size = sizeof(tile_location)},
                      .all = (uint32_t)vector->regs.count};
  planner p = {.program = program,
               .vector = vector,
               .plan = plan,
               .insn_count = (uint32_t)vector->insns.count,
               .reg_count = (uint32_t)vector->regs.count};
  hg_status status = make_plan(&p);
  void *owned[] = {p.writers, p.is_mask, p.is_read,   p.definition, p.by_start,
                   p.last,    p.same_as, p.output_of, p.step_of};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) hg_release(allocator, owned[i]);
  if (status != HG_OK) hg_tile_plan_release(plan);
  return status;
}

void hg_tile_plan_release(tile_plan *plan) {
  hg_array_release(&plan->allocator, &plan->steps);
  hg_array_release(&plan->allocator, &plan->places);
}
