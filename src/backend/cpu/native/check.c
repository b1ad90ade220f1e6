/* check.c - the checks after each pass of what the operations of machine code promise: an access that claims to be in
 * bounds lies in the range of its guard, tables and slices exist, and regions are formed as the emitters expect. */
#include "backend/cpu/native/straight.h"

#include "base/error.h"
#include "vector/check.h"

static const hg_vector_shape shapes[] = {{NATIVE_ACTIVE_LANES, "-u"},
                                         {NATIVE_COUNT, "-"},
                                         {NATIVE_CONST_LANES, "s"},
                                         {NATIVE_PERMUTE, "ss"},
                                         {NATIVE_SHIFT, "sss"},
                                         {NATIVE_ROUND, "ss"},
                                         {NATIVE_RECIPROCAL, "ss"},
                                         {NATIVE_QUOTIENT, "ssss"},
                                         {NATIVE_GUARD_LOOP, "-uu"},
                                         {NATIVE_BAIL_IF, "-q"},
                                         {NATIVE_TOUCH, "-?"},
                                         {NATIVE_GUARD_RANGE, "-???"},
                                         {0, NULL}};

enum { MOST_GUARDS = 128 };

typedef struct checker {
  const native_build *b;
  const hg_vector *v;
  uint32_t *writer;  /* per register: see hg_native_find_writers */
  uint32_t *latest;  /* per register: the last instruction so far that writes it; VECTOR_NONE */
  uint32_t guard[MOST_GUARDS]; /* the NATIVE_GUARD_RANGEs and NATIVE_GUARD_LOOPs since the last label or jump */
  uint32_t guards;
} checker;

static int is_register(const checker *c, uint32_t r) { return r < c->v->regs.count; }

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static hg_status check_tables(const checker *c, uint32_t i) {
  const vector_insn *insn = vector_insn_at(c->v, i);
  uint32_t lanes = c->b->target->lanes, slices = c->b->slices * c->b->shape.x * c->b->shape.y;
  if (insn->op == NATIVE_CONST_LANES && insn->bits + lanes > c->b->known.count)
    return hg_vector_is_broken("a constant of the lanes lies beyond the table", i);
  for (uint32_t k = 0; k < lanes && insn->op == NATIVE_PERMUTE; k++)
    if ((insn->bits >> 4 * k & 15) >= lanes)
      return hg_vector_is_broken("a permutation names a lane that is not there", i);
  int is_power = insn->bits == 1 || insn->bits == 2 || insn->bits == 4 || insn->bits == 8;
  if (insn->op == NATIVE_SHIFT && (!is_power || insn->bits >= lanes))
    return hg_vector_is_broken("lanes shift by what is no distance between them", i);
  if (insn->op != NATIVE_TOUCH && insn->slice >= (slices > 0 ? slices : 1))
    return hg_vector_is_broken("an instruction is of a slice that is not there", i);
  int is_guard = insn->op == NATIVE_GUARD_RANGE || insn->op == NATIVE_GUARD_LOOP || insn->op == NATIVE_TOUCH;
  if (is_guard && (insn->symbol >= c->b->program->symbols.count ||
                   atlas_symbol_at(c->b->program, insn->symbol)->kind != ATLAS_SYMBOL_BUFFER))
    return hg_vector_is_broken("a comparison is of what is no buffer", i);
  return HG_OK;
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

/* The highest index of an access, less *added. It is derived from the definition of the index, independently of what
 * the pass claims. */
static int find_highest(const checker *c, const vector_insn *insn, uint32_t *added, uint64_t *highest) {
  uint32_t lanes = c->b->target->lanes, index = insn->s[0];
  const uint64_t *known = c->b->known.data;
  *added = VECTOR_NONE;
  *highest = insn->bits;
  if (insn->flags & VECTOR_SAME) {
    if (insn->mode == ATLAS_ADDRESS_INDEXED) *added = index;
    return 1;
  }
  for (uint32_t k = lanes; insn->mask != VECTOR_ALL && !(insn->flags & NATIVE_TAIL) && k-- > 0;) {
    if (c->writer[insn->mask] >= VECTOR_ALL) return 0;
    if (known[vector_insn_at(c->v, c->writer[insn->mask])->bits + k] != 0) break;
    lanes = k;
  }
  if (!(insn->flags & NATIVE_TAIL))
    *highest += (uint64_t)(insn->slice % c->b->slices) * c->b->target->lanes + lanes - 1;
  uint64_t more;
  if (!hg_native_find_row(c->v, index, c->latest[index], added, &more)) return 0;
  *highest += more;
  return *added == VECTOR_NONE || c->latest[*added] == VECTOR_NONE || c->latest[*added] <= c->latest[index];
}

static int is_guarded(const checker *c, const vector_insn *insn) {
  uint32_t added, tail = insn->flags & NATIVE_TAIL ? insn->s[2] : VECTOR_NONE;
  uint32_t end = insn->flags & NATIVE_TAIL ? insn->s[3] : VECTOR_NONE;
  uint64_t highest;
  if (!find_highest(c, insn, &added, &highest)) return 0;
  for (uint32_t k = 0; k < c->guards; k++) {
    const vector_insn *guard = vector_insn_at(c->v, c->guard[k]);
    if (guard->op != NATIVE_GUARD_RANGE || guard->symbol != insn->symbol || guard->s[0] != added) continue;
    if (added != VECTOR_NONE && c->latest[added] != VECTOR_NONE && c->latest[added] > c->guard[k]) continue;
    if (guard->s[1] == tail && guard->s[2] == end && highest <= guard->bits) return 1;
    /* a row's elements in front of its tail */
    if (tail == VECTOR_NONE && guard->s[1] != VECTOR_NONE && highest <= guard->bits) return 1;
  }
  return 0;
}

/* A load by an index sum, which no code computes, relies on its guard. */
static int has_span(const checker *c, const vector_insn *insn) {
  const vector_insn *sum = vector_insn_at(c->v, c->latest[insn->s[0]]);
  for (uint32_t k = 0; k < c->guards; k++) {
    const vector_insn *guard = vector_insn_at(c->v, c->guard[k]);
    if (guard->op == NATIVE_GUARD_LOOP && guard->symbol == insn->symbol && guard->s[1] == sum->s[1] &&
        insn->bits <= guard->bits)
      return 1;
  }
  return 0;
}

static hg_status check_bounds(checker *c, uint32_t i) {
  const vector_insn *insn = vector_insn_at(c->v, i);
  if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op)) c->guards = 0;
  if (insn->op == NATIVE_GUARD_RANGE || insn->op == NATIVE_GUARD_LOOP) {
    if (c->guards == MOST_GUARDS) return hg_vector_is_broken("there are more comparisons than expected", i);
    c->guard[c->guards++] = i;
  }
  int is_access = (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE)) != 0;
  if (is_access && insn->flags & NATIVE_GUARDED && !is_guarded(c, insn))
    return hg_vector_is_broken("an access is not in the range of a comparison before it", i);
  if (is_access && insn->flags & NATIVE_TAIL && insn->flags & VECTOR_IN_BOUNDS && !(insn->flags & NATIVE_GUARDED))
    return hg_vector_is_broken("a row's last columns are read without a comparison", i);
  if (is_access && insn->mode == ATLAS_ADDRESS_INDEXED && hg_native_is_index_sum(c->v, insn->s[0]) &&
      !has_span(c, insn))
    return hg_vector_is_broken("a load by a sum is not in the range of a comparison before it", i);
  if (is_register(c, insn->d)) c->latest[insn->d] = i;
  return HG_OK;
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static int is_of_block(const checker *c, uint32_t r) {
  if (r >= VECTOR_ALL) return r == VECTOR_NONE;
  const vector_reg *reg = vector_reg_at(c->v, r);
  if (reg->kind != VECTOR_VARIES) return !hg_native_is_lane_number(reg);
  return reg->uniform == NATIVE_BLOCK_UNIFORM || (c->b->slices > 0 && reg->uniform);
}

/* A block-uniform value is computed in the same way by every group of lanes. */
static hg_status check_block_uniform(const checker *c, uint32_t i) {
  const vector_insn *insn = vector_insn_at(c->v, i);
  if (!is_register(c, insn->d) || vector_reg_at(c->v, insn->d)->uniform != NATIVE_BLOCK_UNIFORM) return HG_OK;
  int is_alike = insn->mask == VECTOR_ALL;
  for (int k = 0; k < 4; k++) is_alike &= is_of_block(c, insn->s[k]);
  return is_alike ? HG_OK : hg_vector_is_broken("a value of the block is computed of values of lanes", i);
}

static hg_status check_region(const checker *c, const native_step *step) {
  for (uint32_t i = step->first; i < step->end; i++) {
    const vector_insn *insn = vector_insn_at(c->v, i);
    if (insn->op != NATIVE_ACTIVE_LANES) continue;
    if (i != step->first + 1) return hg_vector_is_broken("a region's limit does not stand where it begins", i);
    if (!is_of_block(c, insn->s[0])) return hg_vector_is_broken("a region's limit is no value of the block", i);
  }
  return HG_OK;
}

static hg_status check_regions(const checker *c) {
  native_build cut = *c->b;
  cut.vector = c->v;
  cut.steps = (hg_array){.element_size = sizeof(native_step)};
  hg_status status = hg_native_find_steps(&cut);
  const native_step *steps = cut.steps.data;
  for (size_t k = 0; k < cut.steps.count && status == HG_OK; k++) status = check_region(c, &steps[k]);
  hg_array_release(&cut.allocator, &cut.steps);
  return status;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static hg_status check_all(checker *c) {
  for (uint32_t r = 0; r < c->v->regs.count; r++) c->latest[r] = VECTOR_NONE;
  hg_native_find_writers(c->v, c->writer);
  for (uint32_t i = 0; i < c->v->insns.count; i++) {
    HG_TRY(check_tables(c, i));
    HG_TRY(check_bounds(c, i));
    HG_TRY(check_block_uniform(c, i));
  }
  return c->v->has_block_ops ? check_regions(c) : HG_OK;
}

hg_status hg_native_check(const native_build *b, const hg_vector *v, int has_ranges) {
  uint64_t regs = v->regs.count;
  HG_TRY(hg_vector_check(b->program, v, shapes, has_ranges));
  checker *c = hg_allocate(&v->allocator, 1, sizeof *c + 2 * regs * sizeof *c->writer);
  if (c == NULL) return hg_fail_memory("the check of vector code", sizeof *c);
  *c = (checker){.b = b, .v = v, .writer = (uint32_t *)(c + 1)};
  c->latest = c->writer + regs;
  hg_status status = check_all(c);
  hg_release(&v->allocator, c);
  return status;
}
