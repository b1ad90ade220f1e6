/* prefetch.c - prefetches what the next block accesses while this block computes, since no hardware prefetcher predicts
 * where a row ends.
 *
 * Prefetches that stand next to the accesses come in bursts, and the block waits for them: a region that only loads a
 * row takes as long as memory needs for the next one. So if another region of the block computes much and accesses
 * nothing, it issues the prefetches, a line or two at a time between its instructions. native_place.latest tells it the
 * place: of this block if the accesses come before it, else of the block before.
 *
 * Straight-line code prefetches a row line by line throughout. */
#include "backend/cpu/x86/x86_memory.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include <stddef.h>

enum { LEVEL_1 = 1, LEVEL_2 = 2 };

/* How far ahead of a block's accesses to a buffer those of the next block usually are: the bytes that this block
 * accesses side by side. */
static uint32_t bytes_ahead(x86_emit *e, const vector_insn *access, uint32_t element_bytes) {
  uint32_t *ahead = &e->ahead.bytes[access->symbol];
  int64_t low = INT64_MAX, high = 0;
  for (uint32_t i = 0; i < e->b->vector->insns.count && *ahead == 0; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (!hg_x86_has_base(insn) || insn->symbol != access->symbol || !(insn->flags & VECTOR_CONTIGUOUS)) continue;
    int64_t first = (int64_t)insn->bits + (int64_t)insn->slice * e->lanes;
    if (first < low) low = first;
    if (first > high) high = first;
  }
  if (*ahead == 0) {
    uint64_t lanes = e->b->slices > 0 ? e->lanes : e->b->full_lanes;
    uint64_t bytes = ((uint64_t)(high - low) + lanes) * element_bytes;
    *ahead = bytes < CPU_LEAST_AHEAD || bytes > CPU_MOST_AHEAD ? CPU_LEAST_AHEAD : (uint32_t)bytes;
  }
  return *ahead;
}

/* A row longer than a third of the first-level cache is prefetched into the second. */
static void write_prefetch(x86_emit *e, int is_store, uint32_t ahead, x86_rm at) {
  if (is_store) hg_x86_prefetch_to_write(&e->a, at);
  else hg_x86_prefetch(&e->a, ahead > CPU_NEAR_BYTES ? LEVEL_2 : LEVEL_1, at);
}

/* Code that prefetches a line at a time brings it into the second-level cache first: only few lines can be on their way
 * to the first at once, too few if they come from memory. 4M elements, Zen 4: norms take a third less time. What a
 * round of a loop reads is brought into the second-level cache only, if it is half of the first, which then has no room
 * for the next round's. */
static void write_two_prefetches(x86_emit *e, int is_store, int is_round, uint32_t ahead, x86_rm at) {
  if (is_store || !is_round || ahead != CPU_NEAR_BYTES) write_prefetch(e, is_store, ahead, at);
  if (ahead > CPU_NEAR_BYTES) return;
  at.displacement += CPU_NEAR_BYTES;
  hg_x86_prefetch(&e->a, LEVEL_2, at);
}

/* 1 if the code being written is for groups with all lanes, in a block with all lanes. */
static int is_whole(const x86_emit *e) {
  return (e->is_full || e->b->slices > 0) && !e->is_tail;
}

static int is_of_buffer(const x86_emit *e, const vector_insn *access) {
  return atlas_symbol_at(e->b->program, access->symbol)->kind == ATLAS_SYMBOL_BUFFER;
}

static const x86_later *later_of(const x86_emit *e, uint32_t access) {
  for (uint32_t k = 0; e->ahead.busy != NULL && k < e->ahead.later_count; k++)
    if (e->ahead.later[k].insn == access) return &e->ahead.later[k];
  return NULL;
}

/* A row that a loop reads arrives while it is read for the first time. */
static int is_planned(const x86_emit *e, uint32_t symbol) {
  for (uint32_t k = 0; k < e->ahead.row_count; k++)
    if (e->ahead.rows[k].symbol == symbol && e->ahead.rows[k].from >= e->b->first_part) return 1;
  return 0;
}

/* 1 if hg_x86_prefetch_rows prefetches it, or nothing needs to. */
static int is_of_row(const x86_emit *e) {
  unsigned lane;
  int64_t more;
  if (e->ahead.row_count == 0 || !hg_x86_find_row(e, e->insn->s[0], &lane, &more)) return 0;
  for (uint32_t k = 0; k < e->ahead.row_count; k++)
    if (e->ahead.rows[k].symbol == e->insn->symbol && e->ahead.rows[k].lane == lane) return 1;
  return e->index >= e->b->first_part;
}

void hg_x86_prefetch_next_block(x86_emit *e, const x86_access *m, x86_rm at) {
  if (!is_whole(e) || e->insn->mask != VECTOR_ALL || e->loops_until > e->index || !is_of_buffer(e, e->insn)) return;
  if (later_of(e, e->index) != NULL || is_of_row(e)) return;
  uint32_t ahead = bytes_ahead(e, e->insn, m->bytes);
  at.displacement += (int32_t)ahead;
  write_prefetch(e, m->is_store, ahead, at);
}

/* ---- in another region ------------------------------------------------------------------------------------------- */

static int has_all_groups(const native_step *step) {
  return step->kind == NATIVE_REGION && !step->is_empty && !step->is_once && step->limit == VECTOR_NONE;
}

/* The number of instructions that most groups run; 0: there is a loop. */
static uint32_t length_of(const x86_emit *e, const native_step *step) {
  uint32_t length = 0;
  for (uint32_t i = step->first; i < step->end; i++, length++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (vector_is_jump(insn->op) && insn->target <= i) return 0;
    if (x86_is_cold(e, i, step->end)) i = insn->target - 1;
  }
  return length;
}

/* Leaves a prefetch to another region. All accesses of a symbol have the same u. */
static void defer(x86_emit *e, uint32_t i) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i);
  unsigned flags = vector_is_primitive(insn->op) ? atlas_op_flags(insn->op) : 0;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || flags & ATLAS_ATOMIC || insn->mode != ATLAS_ADDRESS_INDEXED) return;
  if (!hg_x86_has_base(insn) || !is_of_buffer(e, insn) || insn->mask != VECTOR_ALL) return;
  if (!(insn->flags & VECTOR_CONTIGUOUS) || insn->flags & VECTOR_LANE || e->ahead.later_count == X86_MOST_LATER) return;
  if ((int64_t)insn->bits > NATIVE_GREATEST_DISPLACEMENT || (int64_t)insn->bits < -NATIVE_GREATEST_DISPLACEMENT) return;
  e->index = i;
  e->insn = insn;
  uint32_t added = hg_x86_added_to_tile_lane(e, insn->s[0]);
  if (added == VECTOR_NONE || vector_reg_at(e->b->vector, added)->kind == VECTOR_CONSTANT) return;
  for (uint32_t k = 0; k < e->ahead.later_count; k++)
    if (vector_insn_at(e->b->vector, e->ahead.later[k].insn)->symbol == insn->symbol &&
        e->ahead.later[k].added != added)
      return;
  e->ahead.later[e->ahead.later_count++] = (x86_later){.insn = i, .added = added};
}

void hg_x86_plan_prefetches(x86_emit *e) {
  const native_step *steps = e->b->steps.data;
  e->ahead.busy = NULL;
  e->ahead.busy_insns = e->ahead.later_count = 0;
  if (e->b->vector->loses_lanes) return;
  for (uint32_t k = 0; k < e->b->steps.count; k++) {
    uint32_t length = has_all_groups(&steps[k]) ? length_of(e, &steps[k]) : 0;
    if (length < CPU_BUSY_INSNS || length <= e->ahead.busy_insns) continue;
    e->ahead.busy = &steps[k];
    e->ahead.busy_insns = length;
  }
  for (uint32_t k = 0; k < e->b->steps.count && e->ahead.busy != NULL; k++) {
    uint32_t length = has_all_groups(&steps[k]) ? length_of(e, &steps[k]) : 0;
    if (length == 0 || length * CPU_BUSY_TIMES > e->ahead.busy_insns) continue;
    e->region_first = steps[k].first;
    for (uint32_t i = steps[k].first; i < steps[k].end; i++) {
      defer(e, i);
      if (x86_is_cold(e, i, steps[k].end)) i = vector_insn_at(e->b->vector, i)->target - 1;
    }
  }
  if (e->ahead.later_count == 0) e->ahead.busy = NULL;
}

void hg_x86_note_block_index(x86_emit *e, uint32_t u) {
  int is_needed = 0;
  for (uint32_t k = 0; e->ahead.busy != NULL && k < e->ahead.later_count; k++)
    is_needed |=
        e->ahead.later[k].added == u && vector_insn_at(e->b->vector, e->ahead.later[k].insn)->symbol == e->insn->symbol;
  if (!is_needed || !is_whole(e)) return;
  hg_x86_store(&e->a, 1, x86_at(X86_CONTEXT, hg_x86_place_offset(e->insn->symbol, offsetof(native_place, latest))),
               X86_RAX);
}

void hg_x86_begin_prefetches(x86_emit *e) {
  int is_busy = e->ahead.busy != NULL && e->ahead.busy->first == e->region_first && is_whole(e);
  e->ahead.busy_done = 0;
  e->ahead.later_done = is_busy ? 0 : e->ahead.later_count;
}

static const vector_insn *access_of(const x86_emit *e, uint32_t k) {
  return vector_insn_at(e->b->vector, e->ahead.later[k].insn);
}

/* If the accesses of a symbol make up a row without gaps, a block's lanes apart: how many there are, and the lowest
 * displacement; else 0. */
static uint32_t find_row(const x86_emit *e, uint32_t symbol, int64_t *low) {
  int64_t lanes = e->b->full_lanes;
  uint32_t count = 0, found = 0;
  *low = INT64_MAX;
  for (uint32_t k = 0; k < e->ahead.later_count; k++)
    if (access_of(e, k)->symbol == symbol && (int64_t)access_of(e, k)->bits < *low)
      *low = (int64_t)access_of(e, k)->bits;
  for (uint32_t k = 0; k < e->ahead.later_count; k++) {
    int64_t from_low = (int64_t)access_of(e, k)->bits - *low;
    if (access_of(e, k)->symbol != symbol) continue;
    if (from_low % lanes != 0 || from_low / lanes >= X86_MOST_LATER) return 0;
    found |= 1u << from_low / lanes;
    count++;
  }
  return found == UINT32_MAX >> (32 - count) ? count : 0;
}

/* rax = count * r12. */
static void multiply_tile_lane(x86_emit *e, uint32_t count) {
  hg_x86_move_imm(&e->a, X86_RAX, count);
  hg_x86_multiply(&e->a, 1, X86_RAX, x86_reg(X86_TILE_LANE));
}

/* In a row without gaps, a group prefetches neighbouring lines, whichever lines it accesses itself. So the lines are
 * prefetched in order, and the hardware prefetcher joins in. */
static void prefetch_later(x86_emit *e, uint32_t k) {
  const vector_insn *insn = access_of(e, k);
  uint32_t bytes = atlas_bytes((atlas_type)insn->type), ahead = bytes_ahead(e, insn, bytes), before = 0;
  uint32_t group = e->copies * e->lanes * bytes;
  unsigned log_bytes = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  int64_t low, offset = (int64_t)insn->bits * bytes;
  uint32_t count = find_row(e, insn->symbol, &low);
  for (uint32_t i = 0; i < k; i++) before += access_of(e, i)->symbol == insn->symbol;
  if (count > 0) {
    offset = low * bytes + (int64_t)before * group;
    multiply_tile_lane(e, count);
  } else hg_x86_load(&e->a, 1, X86_RAX, x86_reg(X86_TILE_LANE));
  hg_x86_alu_rm(&e->a, X86_ADD, 1, X86_RAX,
                x86_at(X86_CONTEXT, hg_x86_place_offset(insn->symbol, offsetof(native_place, latest))));
  x86_rm at = x86_indexed((unsigned)e->base_of[insn->symbol], X86_RAX, log_bytes,
                          (int32_t)(offset + CPU_ROWS_OF_BLOCK_AHEAD * (int64_t)ahead));
  for (uint32_t b = 0; b < group; b += X86_LINE_BYTES, at.displacement += X86_LINE_BYTES)
    write_two_prefetches(e, (atlas_op_flags(insn->op) & ATLAS_STORE) != 0, 0, ahead, at);
}

void hg_x86_prefetch_between(x86_emit *e) {
  if (e->ahead.later_done == e->ahead.later_count) return;
  while (e->ahead.later_done < e->ahead.later_count &&
         e->ahead.later_done * e->ahead.busy_insns <= e->ahead.busy_done * e->ahead.later_count)
    prefetch_later(e, e->ahead.later_done++);
  e->ahead.busy_done++;
}

/* ---- rows of straight-line code ---------------------------------------------------------------------------------- */

/* The end of the part of the program that begins at an instruction: a label, a jump, or the program's end. */
static uint32_t end_of_part(const x86_emit *e, uint32_t i) {
  for (; i < e->b->vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) break;
  }
  return i;
}

static void plan_row(x86_emit *e, uint32_t i) {
  const vector_insn *within = vector_insn_at(e->b->vector, i);
  uint32_t number = within->s[0] == VECTOR_NONE ? NATIVE_MOST_ROW_STARTS : hg_native_row_start(e->b, within->s[0]);
  if (!(within->flags & VECTOR_CONTIGUOUS) || number == NATIVE_MOST_ROW_STARTS || e->ahead.row_count == X86_MOST_ROWS)
    return;
  if (i >= e->b->first_part &&
      (is_planned(e, within->symbol) || hg_straight_is_loop_carried(e->b->vector, within->s[0])))
    return; /* such a row is the same for all blocks, for example a norm's weight */
  uint32_t bytes = atlas_bytes((atlas_type)atlas_symbol_at(e->b->program, within->symbol)->type), log_bytes = 0;
  while (UINT32_C(1) << log_bytes < bytes) log_bytes++;
  uint32_t until = end_of_part(e, i), first = i >= e->b->first_part ? i : 0;
  uint32_t lanes = within->s[1] != VECTOR_NONE ? e->b->slices * e->lanes : 1; /* behind the last element, or the tail */
  uint64_t row_bytes = (within->bits + lanes) * bytes, insns = until - first;
  int is_fetched = 0;
  for (uint32_t k = i + 1; k < until; k++) is_fetched |= vector_insn_at(e->b->vector, k)->op == NATIVE_TOUCH;
  x86_coming row = {.symbol = within->symbol,
                    .from = i,
                    .until = until,
                    .lines = is_fetched ? 0 : (uint32_t)(row_bytes / X86_LINE_BYTES),
                    .lane = (uint8_t)hg_x86_row_start(e, number),
                    .log_bytes = (uint8_t)log_bytes,
                    .is_store = (within->flags & NATIVE_STORED) != 0};
  for (; insns < CPU_MEMORY_INSNS; insns *= 2) row_bytes *= 2;
  row.first = (int32_t)(row_bytes < CPU_LEAST_AHEAD ? CPU_LEAST_AHEAD : row_bytes);
  e->ahead.rows[e->ahead.row_count++] = row;
}

void hg_x86_plan_rows(x86_emit *e) {
  const hg_vector *v = e->b->vector;
  e->ahead.row_count = 0;
  for (uint32_t i = 0; i < v->insns.count; i++)
    if (vector_insn_at(v, i)->op == NATIVE_GUARD_RANGE) plan_row(e, i);
}

void hg_x86_prefetch_rows(x86_emit *e, uint32_t i) {
  for (uint32_t k = 0; k < e->ahead.row_count; k++) {
    x86_coming *row = &e->ahead.rows[k];
    if (i <= row->from || i >= row->until) continue;
    for (; row->done < row->lines &&
           (uint64_t)row->done * (row->until - row->from) <= (uint64_t)(i - row->from) * row->lines;
         row->done++) {
      int32_t offset = row->first + (int32_t)(row->done * X86_LINE_BYTES);
      write_two_prefetches(e, row->is_store, row->from >= e->b->first_part, row->lines * X86_LINE_BYTES,
                           x86_indexed((unsigned)e->base_of[row->symbol], row->lane, row->log_bytes, offset));
    }
  }
}

/* ---- the next round of a loop ------------------------------------------------------------------------------------ */

/* The register by which an index grows in each round of a loop of straight-line code, if it is uniform but no constant;
 * VECTOR_NONE: there is none. It is found in the last instruction that writes the index, an addition or a move of its
 * result. */
static uint32_t step_of_round(const x86_emit *e, uint32_t index) {
  const hg_vector *v = e->b->vector;
  const vector_reg *reg = vector_reg_at(v, index);
  if (e->b->slices == 0 || reg->kind != VECTOR_VARIES) return VECTOR_NONE;
  uint32_t i = reg->last;
  while (i > e->index && reg->last - i < CPU_STEP_MOVES && vector_insn_at(v, i)->d != index) i--;
  const vector_insn *add = vector_insn_at(v, i);
  if (i <= e->index || add->d != index) return VECTOR_NONE;
  if (add->op == VECTOR_MOVE && add->s[0] < v->regs.count && vector_reg_at(v, add->s[0])->kind == VECTOR_VARIES)
    add = vector_insn_at(v, vector_reg_at(v, add->s[0])->first);
  if (add->op != ATLAS_OP_add) return VECTOR_NONE;
  if (add->s[0] != index && add->s[1] != index) return VECTOR_NONE;
  uint32_t step = add->s[add->s[0] == index];
  const vector_reg *by = vector_reg_at(v, step);
  return by->kind == VECTOR_SCALAR || (by->kind == VECTOR_VARIES && by->uniform) ? step : VECTOR_NONE;
}

/* Prefetches what the next round loads. That is in another row, which no hardware prefetcher predicts. It goes to the
 * second-level cache: rows are often a power of two apart, so their elements evict each other from the first. rax: the
 * index of lane 0, counted from the address in `base`; `index`: the register that holds what a round adds. */
void hg_x86_prefetch_next_round(x86_emit *e, const x86_access *m, unsigned base, uint32_t index) {
  uint8_t type = hg_x86_type(e, index);
  uint32_t step = type == ATLAS_u32 || type == ATLAS_u64 ? step_of_round(e, index) : VECTOR_NONE;
  if (m->is_store || step == VECTOR_NONE) return;
  int is_64 = type == ATLAS_u64;
  x86_rm by = hg_x86_source(e, step, 0, 0, hg_x86_scratch(e, 1));
  by.broadcast = 0;
  if (!by.is_memory) hg_x86_x(e, is_64 ? X86_vmovq_to_g : X86_vmovd_to_g, by.reg, 0, x86_reg(X86_RCX));
  hg_x86_alu_rm(&e->a, X86_ADD, is_64, X86_RAX, by.is_memory ? by : x86_reg(X86_RCX));
  hg_x86_prefetch(&e->a, 2, x86_indexed(base, X86_RAX, m->log_bytes, m->offset));
}

int hg_x86_grows_unevenly(const x86_emit *e, uint32_t index) { return step_of_round(e, index) != VECTOR_NONE; }
