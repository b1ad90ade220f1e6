/* plan.c - what is decided before the first line is written. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/functions.h"
#include "atlas/value.h"
#include "base/error.h"
#include "compiler/aliasing.h"
#include "compiler/nan_bits.h"
#include "compiler/never_nan.h"
#include "compiler/optimise.h"
#include "compiler/schedule.h"
#include "compiler/simplify.h"

#include <math.h>
#include <string.h>

enum {
  LANES_KERNEL_THREADS = 256,
  VECTOR_KERNEL_THREADS = 128, /* no slower than more of them, where each has 16 bytes, and faster at the balance */
  TABLE_LANES = 2,           /* a thread computes two entries of a table at a time */
  MAX_UNROLLED = 1024,       /* instructions in all copies of a body: time to compile against wider accesses */
  MAX_COPIED = 288           /* the same where each copy is made once more for a second pack */
};

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static uint32_t parameter_bytes(uint8_t kind) {
  switch (kind) {
  case ATLAS_SYMBOL_BUFFER: return 16;
  case ATLAS_SYMBOL_SCALAR:
  case ATLAS_SYMBOL_TABLE: return 8;
  case ATLAS_SYMBOL_POOL: return 24;
  default: return 0;
  }
}

static uint8_t element_shift(const atlas_symbol *symbol) {
  return (uint8_t)ptx_log2(atlas_bytes((atlas_type)symbol->type));
}

static void lay_out_parameters(ptx *p) {
  hg_ptx_info *info = p->info;
  info->argument_bytes = sizeof(hg_ptx_header);
  info->table_symbol = HG_PTX_NO_SYMBOL;
  for (uint32_t s = 0; s < p->program->symbols.count; s++) {
    const atlas_symbol *symbol = atlas_symbol_at(p->program, s);
    uint8_t kind = symbol->kind;
    if (parameter_bytes(kind) == 0) continue;
    if (kind == ATLAS_SYMBOL_TABLE) info->table_symbol = s;
    info->parameter[info->parameter_count++] =
        (hg_ptx_parameter){.symbol = (uint16_t)s,
                           .offset = (uint16_t)info->argument_bytes,
                           .kind = kind,
                           .element_shift = kind == ATLAS_SYMBOL_BUFFER ? element_shift(symbol) : 0};
    p->parameter_of[s] = (uint16_t)info->parameter_count;
    info->argument_bytes += parameter_bytes(kind);
  }
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

static uint32_t most_threads(const ptx *p) {
  if (p->options->flags & HG_PTX_TABULATED) return HG_PTX_TABLE_THREADS;
  if (!p->program->observes_block) return LANES_KERNEL_THREADS;
  uint64_t product = (uint64_t)p->program->block[0] * p->program->block[1] * p->program->block[2];
  if (product == 0) product = p->options->threads;
  return product == 0 || product > ATLAS_MAX_BLOCK_LANES ? ATLAS_MAX_BLOCK_LANES : (uint32_t)product;
}

static uint32_t padded(uint64_t bytes) { return (uint32_t)((bytes + 15) / 16 * 16); }

/* The program's arrays, the marks of ended lanes (both begin as zero), the scratch memory of collectives. */
static void lay_out_shared(ptx *p) {
  uint32_t at = 0;
  for (uint32_t s = 0; s < p->program->symbols.count; s++) {
    const atlas_symbol *symbol = atlas_symbol_at(p->program, s);
    if (symbol->kind != ATLAS_SYMBOL_SHARED) continue;
    p->shared_offset[s] = at;
    at += padded((uint64_t)symbol->count * atlas_bytes((atlas_type)symbol->type));
  }
  if (p->uses_scratch && p->can_end) {
    p->ended_any = at;
    p->ended = at + 16;
    at += 16 + padded(p->max_threads);
  }
  p->zeroed_bytes = at;
  if (p->uses_scratch) {
    p->result = at;
    p->scratch = at + 16;
    at += 16 + padded((uint64_t)8 * p->max_threads);
  }
  p->info->shared_bytes = at;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* Marks the blocks that reach the back edge from `latch` without passing the header. */
static hg_status mark_loop(ptx *p, uint32_t header, uint32_t latch, hg_array *stack, uint32_t *seen) {
  stack->count = 0;
  if (hg_array_append(p->allocator, stack, &latch, 1) == NULL) return hg_fail_memory("the PTX of a program", 0);
  while (stack->count > 0) {
    uint32_t b = ((uint32_t *)stack->data)[--stack->count];
    if (seen[b] == header + 1) continue;
    seen[b] = header + 1;
    p->in_loop[b] = 1;
    const hg_array *from = &ssa_block_at(p->unit, b)->predecessors;
    if (b != header && from->count > 0 && hg_array_append(p->allocator, stack, from->data, from->count) == NULL)
      return hg_fail_memory("the PTX of a program", 0);
  }
  return HG_OK;
}

/* Also counts the steps of loops whose trip counts are known. */
static hg_status find_loops(ptx *p, uint32_t *seen) {
  hg_array stack = {.element_size = sizeof(uint32_t)};
  uint64_t steps = 0;
  hg_status status = HG_OK;
  for (uint32_t k = 0; k < p->order.count && status == HG_OK; k++) {
    uint32_t header = p->order.block[k];
    const hg_array *from = &ssa_block_at(p->unit, header)->predecessors;
    int is_header = 0;
    for (size_t i = 0; i < from->count && status == HG_OK; i++) {
      uint32_t latch = ((const uint32_t *)from->data)[i];
      if (!ssa_dominates(&p->order, header, latch)) continue;
      is_header = 1;
      status = mark_loop(p, header, latch, &stack, seen);
    }
    if (!is_header || ssa_block_at(p->unit, header)->library) continue;
    uint64_t trips = hg_trip_count(p->unit, header); /* known only of loops that hold no other loop */
    steps = trips == 0 || steps == UINT64_MAX ? UINT64_MAX : steps + trips - 1;
  }
  hg_array_release(p->allocator, &stack);
  p->counts_steps = steps == UINT64_MAX || (steps > 0 && p->options->flags & HG_PTX_COUNT_STEPS);
  p->info->steps = p->counts_steps ? UINT64_MAX : steps;
  return status;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int is_narrow(uint8_t type) { return type == ATLAS_f16 || type == ATLAS_bf16; }

static int is_float(uint8_t type) { return is_narrow(type) || type == ATLAS_f32 || type == ATLAS_f64; }

static uint8_t nan_of_constant(const ssa_insn *insn) {
  int is_nan = isnan(atlas_to_f64((atlas_type)insn->type, insn->bits));
  return is_nan && insn->bits != atlas_canonical_nan((atlas_type)insn->type) ? PTX_NAN_KEPT : PTX_NAN_CANONICAL;
}

/* What keeps a value between bounds makes a number of any NaN, by the instructions that are here. Phis are moves that
 * come before their uses: they show. */
static hg_nan_use nan_use(const void *emitter, uint32_t value, unsigned arg) {
  const ptx *p = emitter;
  int is_max;
  if (ptx_insn(p, value)->op == SSA_PHI) return HG_NAN_SHOWN;
  return hg_ptx_is_bound(p, value, &is_max) ? HG_NAN_ALIKE : hg_nan_use_of(ptx_insn(p, value)->op, arg);
}

/* As far as its arguments' are known. A choice among values of which one keeps its payload keeps payloads. */
static uint8_t nan_of(const ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (!is_float(insn->type)) return PTX_NAN_KEPT;
  if (insn->op == SSA_CONST) return nan_of_constant(insn);
  if (p->never_nan[value]) return PTX_NAN_CANONICAL;
  if (insn->op == SSA_PHI || insn->op == ATLAS_OP_sel || insn->op == ATLAS_OP_mov) {
    uint8_t most = PTX_NAN_CANONICAL;
    for (uint32_t i = insn->op == ATLAS_OP_sel; i < insn->arg_count; i++) {
      if (insn->op == SSA_PHI && hg_comes_as_number(p->unit, value, i)) continue;
      if (p->nan[ptx_arg(p, value, i)] > most) most = p->nan[ptx_arg(p, value, i)];
    }
    return most;
  }
  if (insn->op == ATLAS_OP_cvt) {
    int is_number = atlas_is_integer((atlas_type)insn->type2) || insn->type2 == ATLAS_bool;
    return is_number || is_narrow(insn->type) ? PTX_NAN_CANONICAL : PTX_NAN_LOOSE;
  }
  if (hg_is_leaf(insn) || atlas_op_flags(ptx_insn(p, value)->op) & (ATLAS_BITS | ATLAS_LOAD | ATLAS_BLOCK))
    return PTX_NAN_KEPT;
  uint32_t x;
  double size;
  return insn->type == ATLAS_f32 && !hg_ptx_is_clamp(p, value, &x, &size) ? PTX_NAN_POSITIVE : PTX_NAN_LOOSE;
}

/* From the best case upwards until nothing changes. */
static void find_nans(ptx *p) {
  for (uint32_t v = 0; v < p->unit->insns.count; v++)
    if (hg_is_leaf(ptx_insn(p, v))) p->nan[v] = nan_of(p, v);
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t k = 0; k < p->order.count; k++) {
      const ssa_block *block = ssa_block_at(p->unit, p->order.block[k]);
      for (int list = 0; list < 2; list++)
        for (uint32_t v = list == 0 ? block->first_phi : block->first_effect; v != SSA_NONE; v = ptx_insn(p, v)->next) {
          uint8_t now = nan_of(p, v);
          if (now == p->nan[v]) continue;
          p->nan[v] = now;
          changed = 1;
        }
    }
  }
}

static void note_effect(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t flags = atlas_op_flags(ptx_insn(p, value)->op);
  if (flags & ATLAS_SPACE_CONST) {
    uint32_t symbol = insn->symbol & ~(uint32_t)SSA_LIBRARY;
    (insn->symbol & SSA_LIBRARY ? p->library_used : p->tables_used)[symbol / 64] |= UINT64_C(1) << symbol % 64;
  }
  if (flags & ATLAS_BLOCK) {
    int is_alone = insn->op == ATLAS_OP_bar_sync || insn->op == ATLAS_OP_vote_any || insn->op == ATLAS_OP_vote_all ||
                   insn->op == ATLAS_OP_pool_alloc || insn->op == ATLAS_OP_pool_free;
    p->uses_scratch |= !is_alone;
  }
}

static void note_effects(ptx *p) {
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  hg_alias_groups(p->program, p->unit, group);
  for (uint32_t l = 0; l < hg_location_count(p->program); l++)
    p->read_only[l] = (uint8_t)hg_is_read_only(p->program, group, l);
  p->can_end = p->counts_steps;
  for (uint32_t k = 0; k < p->order.count; k++) {
    const ssa_block *block = ssa_block_at(p->unit, p->order.block[k]);
    p->can_end |= block->end == SSA_TRAP;
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = ptx_insn(p, e)->next) note_effect(p, e);
  }
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

typedef struct planner {
  ptx *p;
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  uint8_t has_store[ATLAS_MAX_SYMBOLS + 2]; /* per group: a store has been met on the walk, so loads stay in place */
  uint8_t plain_load[ATLAS_MAX_SYMBOLS + 2];/* per group: a load that is not among the vectors */
  uint8_t plain_store[ATLAS_MAX_SYMBOLS + 2];
  uint32_t largest, smallest;               /* bytes of vector elements */
  uint32_t instructions;
} planner;

int hg_ptx_is_element(const ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (insn->mode != ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY || (int64_t)insn->bits < 0 ||
      insn->bits > INT32_MAX)
    return 0;
  const ssa_insn *index = ptx_insn(p, ptx_arg(p, value, 0));
  return index->op == SSA_SPECIAL && index->bits == ATLAS_REG_LANE &&
         atlas_symbol_at(p->program, insn->symbol)->kind == ATLAS_SYMBOL_BUFFER;
}

/* Every lane comes here exactly once. */
static int is_passed_once(const ptx *p, uint32_t block) {
  if (p->in_loop[block] || p->can_end) return 0;
  for (uint32_t k = 0; k < p->order.count; k++)
    if (ssa_block_at(p->unit, p->order.block[k])->end == SSA_EXIT &&
        !ssa_dominates(&p->order, block, p->order.block[k]))
      return 0;
  return 1;
}

static int is_access(uint32_t flags) { return (flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0; }

/* First walk: loads before the first store of their group are done ahead; stores wait to the end. */
static void plan_access(planner *w, uint32_t value, uint32_t block) {
  ptx *p = w->p;
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t flags = atlas_op_flags(ptx_insn(p, value)->op);
  w->instructions++;
  if (!is_access(flags)) return;
  uint32_t group = w->group[hg_location_of(p->program, insn)], size = atlas_bytes((atlas_type)insn->type);
  int is_candidate = !(flags & ATLAS_ATOMIC) && hg_ptx_is_element(p, value) && is_passed_once(p, block) &&
                     insn->bits * size % PTX_VECTOR_BYTES == 0;
  if (hg_ptx_is_element(p, value) && !(flags & ATLAS_ATOMIC)) p->access[value] = PTX_PLAIN;
  if (flags & ATLAS_LOAD) {
    if (is_candidate && !w->has_store[group]) p->access[value] = PTX_VECTOR;
    else w->plain_load[group] = 1;
    return;
  }
  w->has_store[group] = 1;
  if (is_candidate) p->access[value] = PTX_VECTOR;
  else w->plain_store[group] = 1;
}

/* Second walk: a group whose stores are not all at the end has none there; one of whose loads stands between has none
 * either. Sizes of what is left. */
static void settle_access(planner *w, uint32_t value) {
  ptx *p = w->p;
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t flags = atlas_op_flags(ptx_insn(p, value)->op);
  if (!is_access(flags) || p->access[value] != PTX_VECTOR) return;
  uint32_t group = w->group[hg_location_of(p->program, insn)], size = atlas_bytes((atlas_type)insn->type);
  if (flags & ATLAS_STORE && (w->plain_store[group] || w->plain_load[group])) {
    p->access[value] = PTX_PLAIN;
    return;
  }
  if (size > w->largest) w->largest = size;
  if (w->smallest == 0 || size < w->smallest) w->smallest = size;
}

static void walk_effects(planner *w, int settle) {
  ptx *p = w->p;
  for (uint32_t k = 0; k < p->order.count; k++) {
    uint32_t b = p->order.block[k];
    for (uint32_t e = ssa_block_at(p->unit, b)->first_effect; e != SSA_NONE; e = ptx_insn(p, e)->next) {
      if (settle) settle_access(w, e);
      else plan_access(w, e, b);
    }
  }
}

/* Fences and atomics order memory against other lanes; then nothing is moved. */
static int orders_memory(const ptx *p) {
  for (uint32_t k = 0; k < p->order.count; k++)
    for (uint32_t e = ssa_block_at(p->unit, p->order.block[k])->first_effect; e != SSA_NONE; e = ptx_insn(p, e)->next)
      if (hg_orders_all(ptx_insn(p, e)) || atlas_op_flags(ptx_insn(p, e)->op) & ATLAS_ATOMIC) return 1;
  return 0;
}

static void note_parameter(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (!is_access(atlas_op_flags(ptx_insn(p, value)->op)) || p->access[value] == PTX_CHECKED) return;
  hg_ptx_parameter *parameter = &p->info->parameter[p->parameter_of[insn->symbol] - 1];
  if ((int64_t)insn->bits + 1 > parameter->reach) parameter->reach = (int64_t)insn->bits + 1;
  if (p->access[value] != PTX_VECTOR) return;
  parameter->vector = 1;
  p->vector_of[value] = p->vector_count++;
}

/* Nothing can fault when every access is a vector's. */
static int is_vector_only(const ptx *p) {
  if (p->can_end) return 0;
  for (uint32_t k = 0; k < p->order.count; k++)
    for (uint32_t e = ssa_block_at(p->unit, p->order.block[k])->first_effect; e != SSA_NONE; e = ptx_insn(p, e)->next) {
      const ssa_insn *insn = ptx_insn(p, e);
      if (!hg_is_pure(insn) && !(insn->symbol & SSA_LIBRARY) && p->access[e] != PTX_VECTOR) return 0;
    }
  return 1;
}

/* Something but the accesses of vectors asks for the number of a lane. */
static int asks_for_lane(const ptx *p) {
  for (uint32_t v = 0; v < p->unit->insns.count; v++) {
    if (((const uint32_t *)p->unit->forward.data)[v] != v) continue;
    if (ptx_insn(p, v)->op == ATLAS_OP_sreg) return 1;
    for (uint32_t i = p->access[v] == PTX_VECTOR; i < ptx_insn(p, v)->arg_count; i++) {
      const ssa_insn *arg = ptx_insn(p, ptx_arg(p, v, i));
      if (arg->op == SSA_SPECIAL && arg->bits == ATLAS_REG_LANE) return 1;
    }
  }
  return 0;
}

/* In instructions: an entry of a table has an address, too; the bits of a number are there already. */
static uint32_t cost_of(const ptx *p, uint32_t value) {
  return atlas_op_flags(ptx_insn(p, value)->op) & ATLAS_SPACE_CONST ? 2 : ptx_insn(p, value)->op != ATLAS_OP_bitcast;
}

/* The fewest instructions that a lane can come through with: rare cases of the function library are longer ways. `way`:
 * room for a number each block. */
static uint32_t shortest_way(const ptx *p, uint32_t *way) {
  uint32_t least = UINT32_MAX;
  for (uint32_t k = 0; k < p->order.count; k++) {
    uint32_t b = p->order.block[k], before = k == 0 ? 0 : UINT32_MAX;
    const ssa_block *block = ssa_block_at(p->unit, b);
    for (size_t i = 0; i < block->predecessors.count; i++) {
      uint32_t from = ((const uint32_t *)block->predecessors.data)[i];
      if (p->order.position[from] < k && way[from] < before) before = way[from];
    }
    way[b] = before;
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = ptx_insn(p, e)->next)
      way[b] += cost_of(p, e);
    if (block->end == SSA_EXIT && way[b] < least) least = way[b];
  }
  return least;
}

/* `way`: the shortest one. */
static void plan_vectors(ptx *p, uint32_t way) {
  planner w = {.p = p};
  p->info->lanes_per_thread = 1;
  p->needs_lane = 1;
  if (p->program->observes_block || p->options->flags & HG_PTX_CHECKED || orders_memory(p)) return;
  hg_alias_groups(p->program, p->unit, w.group);
  walk_effects(&w, 0);
  walk_effects(&w, 1);
  uint32_t lanes = w.largest > 0 ? PTX_VECTOR_BYTES / w.largest : 1;
  uint32_t most = p->options->flags & HG_PTX_TABULATED ? TABLE_LANES
                  : p->options->most_lanes != 0        ? p->options->most_lanes
                                                       : PTX_VECTOR_LANES;
  while (lanes > most) lanes /= 2;
  while (lanes > 1 && (uint64_t)lanes * w.instructions > MAX_UNROLLED) lanes /= 2;
  p->info->lanes_per_thread = lanes;
  if (lanes == 1) {
    memset(p->access, PTX_CHECKED, p->unit->insns.count);
    return;
  }
  for (uint32_t k = 0; k < p->order.count; k++)
    for (uint32_t e = ssa_block_at(p->unit, p->order.block[k])->first_effect; e != SSA_NONE; e = ptx_insn(p, e)->next)
      note_parameter(p, e);
  p->info->vector_only = (uint8_t)is_vector_only(p);
  p->needs_lane = !p->info->vector_only || asks_for_lane(p);
  p->info->table_lanes = hg_ptx_table_lanes(p, way);
  p->info->is_table = p->info->table_lanes != 0 && p->options->flags & HG_PTX_TABULATED;
  if (p->info->vector_only && !p->info->is_table) p->max_threads = p->info->max_threads = VECTOR_KERNEL_THREADS;
}

/* Roundings that stores do, and that nothing else asks for. */
static void find_late(ptx *p) {
  for (int look = 1; look >= 0; look--) /* first what such stores take, then what others take as well */
    for (uint32_t v = 0; v < p->unit->insns.count; v++) {
      uint32_t count = ptx_insn(p, v)->arg_count;
      int rounds = hg_ptx_rounds(p, v);
      for (uint32_t i = 0; i < count; i++)
        if ((rounds && i == count - 1) == look) p->is_late[ptx_arg(p, v, i)] = (uint8_t)look;
    }
}

/* How often a value is asked for, and by which one last. `user`: a number each value. */
static void find_users(const ptx *p, uint32_t *uses, uint32_t *user) {
  for (uint32_t v = 0; v < p->unit->insns.count; v++) {
    if (((const uint32_t *)p->unit->forward.data)[v] != v) continue;
    for (uint32_t i = 0; i < ptx_insn(p, v)->arg_count; i++) {
      uses[ptx_arg(p, v, i)]++;
      user[ptx_arg(p, v, i)] = v;
    }
  }
}

/* 1 if the bound is a number of the type, too. */
static int is_pair(uint8_t type, double bound, uint32_t *pair) {
  uint64_t bits = atlas_round_f64((atlas_type)type, bound);
  *pair = (uint32_t)(bits << 16 | bits);
  return atlas_to_f64((atlas_type)type, bits) == bound;
}

/* What keeps v's widened elements between such bounds, if that is all that they are asked for; SSA_NONE. */
static uint32_t keeper_of(const ptx *p, ptx_vector *v, const uint32_t *uses, const uint32_t *user) {
  uint8_t type = ptx_insn(p, v->value)->type;
  uint32_t x = v->widened, inner = user[x];
  ptx_bounds bounds;
  if (p->options->capability < 90 || uses[x] != 1 || uses[inner] != 1) return SSA_NONE;
  if (!hg_ptx_is_bounded(p, user[inner], &bounds) || bounds.x != x) return SSA_NONE;
  return is_pair(type, bounds.low, &v->low) && is_pair(type, bounds.high, &v->high) ? user[inner] : SSA_NONE;
}

/* Elements of 16 bits that are only widened are taken apart to f32. */
static void find_widened(ptx *p) {
  uint64_t values = p->unit->insns.count;
  uint32_t *uses = p->reg, *user = p->reg_copy; /* not in use yet */
  find_users(p, uses, user);
  for (uint32_t i = 0; i < p->vector_count; i++) {
    ptx_vector *v = &p->vector[i];
    uint8_t type = ptx_insn(p, v->value)->type;
    v->widened = v->kept = SSA_NONE;
    if (!v->is_load || !is_narrow(type) || p->info->lanes_per_thread < 2 || uses[v->value] != 1) continue;
    const ssa_insn *by = ptx_insn(p, user[v->value]);
    if (by->op != ATLAS_OP_cvt || by->type != ATLAS_f32) continue;
    v->widened = user[v->value];
    v->kept = keeper_of(p, v, uses, user);
  }
  memset(uses, 0, values * sizeof *uses);
  memset(user, 0, values * sizeof *user);
}

static hg_status list_vectors(ptx *p) {
  p->vector = hg_allocate(p->allocator, p->vector_count, sizeof *p->vector);
  if (p->vector == NULL) return hg_fail_memory("the PTX of a program", p->vector_count * sizeof *p->vector);
  for (uint32_t v = 0; v < p->unit->insns.count && p->vector_count > 0; v++) {
    if (p->access[v] != PTX_VECTOR) continue;
    p->vector[p->vector_of[v]] =
        (ptx_vector){.value = v, .is_load = (atlas_op_flags(ptx_insn(p, v)->op) & ATLAS_LOAD) != 0};
  }
  if (p->vector_count > 0) find_widened(p);
  return HG_OK;
}

/* ---- packs ------------------------------------------------------------------------------------------------------- */

/* Memory at its limit gives a thread its 16 bytes in the time of about 100 instructions (H200). Short programs wait for
 * nothing else, and do best with a pack a thread: with several the blocks at work are further apart in memory, which
 * likes that less. Near the balance two are loaded at once, if short without a loop; above it more of them, in a loop
 * that loads ahead, share the cost of a start. TB/s with 1, 2, 8 of f32: add (1 instruction) 4.37, 4.36, 4.27; exp (29)
 * 4.23, 4.23, 4.13; gelu_tanh (37) 4.07, 4.22, 4.13; of f16: exp (17) 4.21, 4.20, 4.07; log (21) 3.93, 4.21, 4.09;
 * others of 24 3.82, 4.19, 4.08, of 27 3.43, 3.76, 4.04. A call, as a division makes, costs a loop of packs more
 * than it brings: gelu with one on its rare way had 4.14, 3.59, 3.71. */
static uint8_t packs_for(const ptx *p, uint32_t way) {
  uint64_t work = (uint64_t)way * p->info->lanes_per_thread;
  return work < UINT64_C(64) * p->vector_count ? 1 : work <= UINT64_C(104) * p->vector_count ? 2 : 8;
}

/* A second copy of the body costs the driver's compiler its time: 6 ms more for gelu of f32, whose rare ways are long,
 * and which a loop serves as well. */
static int is_short(const ptx *p) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < p->order.count; k++)
    for (uint32_t e = ssa_block_at(p->unit, p->order.block[k])->first_effect; e != SSA_NONE; e = ptx_insn(p, e)->next)
      count++;
  return count * p->info->lanes_per_thread <= MAX_COPIED;
}

static uint32_t registers_of(const ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (hg_is_leaf(insn)) return 0;
  ptx_class class = hg_ptx_class_of(insn->type);
  return class == PTX_64 ? 2 : class != PTX_PREDICATE;
}

/* The registers in use beside `value`'s before and after it; `last`: where each is asked for last. */
static uint32_t alive_after(const ptx *p, uint32_t value, uint32_t number, uint32_t alive, uint32_t *last) {
  for (uint32_t i = 0; i < ptx_insn(p, value)->arg_count; i++) {
    uint32_t arg = ptx_arg(p, value, i);
    if (last[arg] != number) continue;
    alive -= registers_of(p, arg);
    last[arg] = 0;
  }
  return last[value] > number ? alive + registers_of(p, value) : alive;
}

static void note_last(const ptx *p, uint32_t value, uint32_t number, uint32_t *last) {
  for (uint32_t i = 0; i < ptx_insn(p, value)->arg_count; i++) last[ptx_arg(p, value, i)] = number;
}

/* About how many registers a copy of a body without loops has in use at most. `last`: room for a number each value. */
static uint32_t most_alive(const ptx *p, uint32_t *last) {
  uint32_t alive = 0, most = 0;
  memset(last, 0, p->unit->insns.count * sizeof *last);
  for (int sweep = 0; sweep < 2; sweep++) {
    uint32_t number = 0;
    for (uint32_t k = 0; k < p->order.count; k++) {
      const ssa_block *block = ssa_block_at(p->unit, p->order.block[k]);
      for (int list = 0; list < 2; list++)
        for (uint32_t v = list == 0 ? block->first_phi : block->first_effect; v != SSA_NONE; v = ptx_insn(p, v)->next) {
          number++;
          if (sweep == 0) note_last(p, v, number, last);
          else alive = alive_after(p, v, number, alive, last);
          if (alive > most) most = alive;
        }
    }
  }
  return most;
}

/* The driver's compiler gives a thread all the registers that it can use, and then a multiprocessor has too few threads
 * to be kept busy. 65536 registers are 32 for each of 2048 threads, or 40 for each of three quarters of them (all that
 * other capabilities have). What is needed is the body's and what waits beside it: words of this pack and the next,
 * elements, addresses. Up to 6 of them can be had again when they are asked for. `room`: a number each value. */
static uint32_t most_registers(const ptx *p, uint32_t *room) {
  uint32_t capability = p->options->capability;
  for (uint32_t b = 0; b < p->unit->blocks.count; b++)
    if (p->in_loop[b]) return 0;
  uint32_t needed = most_alive(p, room) + 4;
  for (uint32_t i = 0; i < p->vector_count; i++) {
    uint32_t value = p->vector[i].value, lanes = p->info->lanes_per_thread;
    uint32_t words = lanes * atlas_bytes((atlas_type)ptx_insn(p, value)->type) / 4;
    uint32_t copies = p->vector[i].is_load && p->info->packs > 1 ? 2 : 1;
    needed += 2 + (hg_ptx_rounds(p, value) ? lanes : copies * words);
  }
  if (needed <= 38 && (capability == 80 || (capability >= 90 && capability < 120))) return 32;
  return needed <= 46 && capability >= 80 ? 40 : 0;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static hg_status make_tables(ptx *p, uint32_t **seen) {
  uint64_t values = p->unit->insns.count, blocks = p->unit->blocks.count;
  uint64_t words = 3 * values + blocks, bytes = 6 * values + blocks;
  p->reg = hg_allocate(p->allocator, words * sizeof(uint32_t) + bytes, 1);
  if (p->reg == NULL) return hg_fail_memory("the PTX of a program", words * sizeof(uint32_t) + bytes);
  p->reg_copy = p->reg + values;
  p->vector_of = p->reg_copy + values;
  *seen = p->vector_of + values;
  p->nan = (uint8_t *)(*seen + blocks);
  p->never_nan = p->nan + values;
  p->nan_blind = p->never_nan + values;
  p->bits_used = p->nan_blind + values;
  p->access = p->bits_used + values;
  p->is_late = p->access + values;
  p->in_loop = p->is_late + values;
  return HG_OK;
}

hg_status hg_ptx_plan(ptx *p) {
  static const hg_shape any_launch = {0};
  hg_shape shape = p->options->shape != NULL ? *p->options->shape : any_launch;
  uint32_t *seen = NULL;
  for (int d = 0; d < 3; d++)
    if (p->program->block[d] != 0) shape.block[d] = p->program->block[d];
  HG_TRY(hg_analyse(p->program, p->unit, &shape, &p->analysis));
  HG_TRY(ir_ssa_order_build(p->unit, &p->order));
  HG_TRY(make_tables(p, &seen));
  HG_TRY(find_loops(p, seen));
  HG_TRY(hg_find_never_nan(p->unit, &p->order, p->never_nan));
  HG_TRY(hg_find_nan_blind(p->unit, &p->order, p->nan_blind));
  p->info->observes_block = (uint8_t)p->program->observes_block;
  p->max_threads = most_threads(p);
  p->info->max_threads = p->max_threads;
  lay_out_parameters(p);
  note_effects(p);
  lay_out_shared(p);
  HG_TRY(hg_find_nan_seen(p->unit, &p->order, p->nan_blind, nan_use, p, p->bits_used));
  find_nans(p);
  uint32_t way = shortest_way(p, seen);
  plan_vectors(p, way);
  find_late(p);
  HG_TRY(list_vectors(p));
  int is_usual = p->info->vector_only && !p->info->is_table;
  p->info->packs = is_usual ? packs_for(p, way) : 1;
  p->in_loop_of_packs = p->info->packs > 2 || (p->info->packs == 2 && !is_short(p));
  if (is_usual) p->most_registers = most_registers(p, p->reg_copy); /* not in use yet */
  return HG_OK;
}
