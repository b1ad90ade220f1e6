/* straight_indices.c - strength reduction of the indices in a loop of straight-line code (straight.c), after all other
 * passes.
 *
 * In a product of matrices by tiles, each slice loads from a row of its own: dozens of indices grow by the same number
 * in each round. Such an index of consecutive elements becomes a sum: its value when the loop begins, plus a number
 * that all of them share, which one addition a round updates. No code computes the sum (STRAIGHT_INDEX_SUM), since an
 * access adds the two numbers of its first lane itself. One comparison a round then serves all loads of a buffer by
 * such sums (NATIVE_GUARD_LOOP): if the greatest initial value plus the shared number is in bounds, which it is not if
 * it exceeds 32 bits, all loads are. */
#include "backend/cpu/native/loop.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "backend/cpu/native/straight.h"

#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include <string.h>

enum { MOST_SPANS = 4 };

typedef struct index_use { /* how a register is used in the loop */
  uint32_t writers;        /* instructions of the program */
  uint32_t update;         /* the instruction of the loop that adds the step to it; 0: none */
  uint32_t step;           /* a register */
  uint32_t load;           /* the last load with it as its index; 0: none */
  uint32_t is_other;       /* 1: something else reads or writes it as well */
} index_use;

typedef struct index_span { /* loads of one buffer whose indices grow by the same number */
  uint32_t symbol, step;
  uint32_t added;           /* register: how much the indices have grown */
  uint32_t greatest;        /* register: its first lane has the greatest initial index; VECTOR_NONE: not yet */
  uint32_t update;          /* the last instruction that updates one of the indices */
  uint64_t displacement;    /* the greatest displacement */
} index_span;

typedef struct indexer {
  const atlas_program *program;
  const hg_vector *from;
  hg_rewrite to;
  index_use *use;           /* per register of the old program */
  uint32_t old_regs;
  uint32_t label, back;     /* the loop */
  uint32_t first, last;     /* its first and its last load by a growing index */
  index_span spans[MOST_SPANS];
  uint32_t count;           /* how many spans there are; 0: the loop stays as it is */
  uint32_t written;         /* spans that were written, of all loops */
} indexer;

int hg_native_is_index_sum(const hg_vector *v, uint32_t reg) {
  if (reg >= v->regs.count) return 0;
  const vector_reg *r = vector_reg_at(v, reg);
  return r->kind == VECTOR_VARIES && r->bits == STRAIGHT_INDEX_SUM;
}

/* ---- what is there ----------------------------------------------------------------------------------------------- */

/* 1 if the label begins a loop that contains no other label. */
static int find_loop(indexer *x, uint32_t label) {
  x->label = label;
  for (uint32_t i = label + 1; i < x->from->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(x->from, i);
    if (insn->op == VECTOR_LABEL) return 0;
    x->back = i;
    if (insn->op == VECTOR_JUMP) return insn->target == label;
  }
  return 0;
}

/* 1 for a load in all lanes of consecutive elements of a buffer, by a u32 index. */
static int is_plain_load(const indexer *x, const vector_insn *insn) {
  if (!vector_is_primitive(insn->op) || insn->mask != VECTOR_ALL || insn->symbol & SSA_LIBRARY) return 0;
  unsigned flags = atlas_op_flags(insn->op);
  if ((flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != ATLAS_LOAD || flags & ATLAS_SPACE_POOL) return 0;
  if (insn->mode != ATLAS_ADDRESS_INDEXED || insn->s[0] >= VECTOR_ALL) return 0;
  if ((insn->flags & (VECTOR_CONTIGUOUS | VECTOR_SAME | VECTOR_LANE | VECTOR_IN_BOUNDS)) != VECTOR_CONTIGUOUS) return 0;
  if (insn->bits > NATIVE_GREATEST_DISPLACEMENT || atlas_bytes((atlas_type)insn->type) < 4) return 0;
  return atlas_symbol_at(x->program, insn->symbol)->kind == ATLAS_SYMBOL_BUFFER;
}

static int may_be_index(const indexer *x, uint32_t r) {
  const vector_reg *reg = vector_reg_at(x->from, r);
  return reg->type == ATLAS_u32 && !reg->uniform && hg_straight_is_loop_carried(x->from, r);
}

/* The register that an instruction adds to its result's old value; VECTOR_NONE: it does not. */
static uint32_t step_of(const vector_insn *insn) {
  if (insn->op != ATLAS_OP_add || insn->type != ATLAS_u32 || insn->mask != VECTOR_ALL) return VECTOR_NONE;
  if (insn->s[0] == insn->s[1]) return VECTOR_NONE;
  return insn->s[0] == insn->d ? insn->s[1] : insn->s[1] == insn->d ? insn->s[0] : VECTOR_NONE;
}

static void note_insn(indexer *x, uint32_t i) {
  const vector_insn *insn = vector_insn_at(x->from, i);
  int is_inside = i > x->label && i < x->back;
  uint32_t step = is_inside && insn->d < VECTOR_ALL ? step_of(insn) : VECTOR_NONE;
  for (int k = 0; k < 4; k++) {
    if (insn->s[k] >= VECTOR_ALL) continue;
    if (is_inside && k == 0 && is_plain_load(x, insn)) x->use[insn->s[k]].load = i;
    else if (step == VECTOR_NONE || insn->s[k] != insn->d) x->use[insn->s[k]].is_other = 1;
  }
  if (insn->mask < VECTOR_ALL) x->use[insn->mask].is_other = 1;
  if (insn->d >= VECTOR_ALL) return;
  index_use *d = &x->use[insn->d];
  d->writers++;
  if (step != VECTOR_NONE) {
    d->update = i;
    d->step = step;
  } else if (is_inside) d->is_other = 1;
}

/* 1 if a register has the same value in all lanes and all rounds. */
static int is_fixed(const indexer *x, uint32_t r) {
  const vector_reg *reg = vector_reg_at(x->from, r);
  if (reg->kind != VECTOR_VARIES) return reg->kind == VECTOR_CONSTANT || reg->kind == VECTOR_SCALAR;
  if (!reg->uniform) return 0;
  for (uint32_t i = x->label; i <= x->back; i++)
    if (vector_insn_at(x->from, i)->d == r) return 0;
  return 1;
}

/* 1 if a register is set before the loop, is the index of loads, and is then increased. */
static int is_index(const indexer *x, uint32_t r) {
  const index_use *use = &x->use[r];
  return use->load > 0 && use->update > use->load && use->writers == 2 && !use->is_other && may_be_index(x, r);
}

static index_span *span_of(indexer *x, uint32_t symbol, uint32_t step) {
  for (uint32_t k = 0; k < x->count; k++)
    if (x->spans[k].symbol == symbol && x->spans[k].step == step) return &x->spans[k];
  return NULL;
}

/* Adds a load to its span. 1: its index is to be rewritten. */
static int add_load(indexer *x, uint32_t i) {
  const vector_insn *insn = vector_insn_at(x->from, i);
  if (!is_plain_load(x, insn) || !is_index(x, insn->s[0])) return 0;
  const index_use *use = &x->use[insn->s[0]];
  index_span *span = span_of(x, insn->symbol, use->step);
  if (span == NULL) {
    if (x->count == MOST_SPANS || !is_fixed(x, use->step)) return -1;
    span = &x->spans[x->count++];
    *span = (index_span){.symbol = insn->symbol, .step = use->step, .greatest = VECTOR_NONE};
  }
  if (insn->bits > span->displacement) span->displacement = insn->bits;
  if (use->update > span->update) span->update = use->update;
  return 1;
}

/* 1 if the code from the first to the last load can be repeated in a second version with all comparisons. */
static int is_straight(const indexer *x) {
  for (uint32_t i = x->first; i < x->last; i++) {
    const vector_insn *insn = vector_insn_at(x->from, i);
    if (vector_is_jump(insn->op) || insn->op == VECTOR_STEP || insn->op == NATIVE_COUNT) return 0;
  }
  return 1;
}

/* Finds the loads and their indices. A register that is the index of loads of two buffers is left as it is. */
static void find_spans(indexer *x) {
  uint32_t loads = 0;
  x->count = x->first = x->last = 0;
  memset(x->use, 0, x->old_regs * sizeof *x->use);
  for (uint32_t i = 0; i < x->from->insns.count; i++) note_insn(x, i);
  for (uint32_t i = x->label + 1; i < x->back; i++) {
    const vector_insn *insn = vector_insn_at(x->from, i);
    if (!is_plain_load(x, insn)) continue;
    index_use *use = &x->use[insn->s[0]];
    if (vector_insn_at(x->from, use->load)->symbol != insn->symbol) use->is_other = 1;
  }
  for (uint32_t i = x->label + 1; i < x->back; i++) {
    int found = add_load(x, i);
    if (found == 0) continue;
    if (found < 0) loads = 0;
    if (found < 0) break;
    if (loads++ == 0) x->first = i;
    x->last = i;
  }
  if (loads < CPU_LEAST_SPAN_LOADS || !is_straight(x)) x->count = 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static uint32_t add_register(indexer *x, vector_reg reg) { return hg_rewrite_register(&x->to, &reg); }

/* Appends an operation on u32 in all lanes. */
static void append_operation(indexer *x, uint16_t op, uint32_t d, uint32_t a, uint32_t b, uint32_t slice) {
  vector_insn insn = vector_insn_of(op, VECTOR_ALL);
  insn.type = ATLAS_u32;
  insn.slice = slice;
  insn.d = d;
  insn.s[0] = a;
  insn.s[1] = b;
  hg_rewrite_append(&x->to, &insn);
}

static index_span *span_of_index(indexer *x, const vector_insn *load) {
  if (!is_plain_load(x, load) || !is_index(x, load->s[0])) return NULL;
  return span_of(x, load->symbol, x->use[load->s[0]].step);
}

/* Before the loop: sets the shared numbers to 0, and computes the greatest initial indices. */
static void begin_spans(indexer *x) {
  for (uint32_t k = 0; k < x->count; k++) {
    uint32_t zero = add_register(x, (vector_reg){.kind = VECTOR_CONSTANT, .type = ATLAS_u32});
    x->spans[k].added = add_register(x, (vector_reg){.kind = VECTOR_VARIES, .type = ATLAS_u32,
                                                     .uniform = NATIVE_BLOCK_UNIFORM, .bits = STRAIGHT_LOOP_CARRIED});
    append_operation(x, VECTOR_MOVE, x->spans[k].added, zero, VECTOR_NONE, 0);
  }
  for (uint32_t i = x->first; i <= x->last; i++) {
    const vector_insn *load = vector_insn_at(x->from, i);
    index_span *span = span_of_index(x, load);
    if (span == NULL || span->greatest == load->s[0]) continue;
    uint32_t greatest = load->s[0];
    if (span->greatest != VECTOR_NONE) {
      greatest = add_register(x, (vector_reg){.kind = VECTOR_VARIES, .type = ATLAS_u32});
      append_operation(x, ATLAS_OP_max, greatest, span->greatest, load->s[0], load->slice);
    }
    span->greatest = greatest;
  }
}

static void append_checks(indexer *x) {
  for (uint32_t k = 0; k < x->count; k++) {
    vector_insn check = vector_insn_of(NATIVE_GUARD_LOOP, VECTOR_ALL);
    check.type = ATLAS_u32;
    check.symbol = (uint16_t)x->spans[k].symbol;
    check.s[0] = x->spans[k].greatest;
    check.s[1] = x->spans[k].added;
    check.bits = x->spans[k].displacement;
    hg_rewrite_append(&x->to, &check);
    x->written++;
  }
}

/* 1 if something else replaces the instruction in the new loop. */
static int append_instead(indexer *x, uint32_t i) {
  vector_insn insn = *vector_insn_at(x->from, i);
  const index_span *span = span_of_index(x, &insn);
  if (span != NULL) {
    uint32_t sum = add_register(x, (vector_reg){.kind = VECTOR_VARIES, .type = ATLAS_u32, .bits = STRAIGHT_INDEX_SUM});
    append_operation(x, ATLAS_OP_add, sum, insn.s[0], span->added, insn.slice);
    insn.s[0] = sum;
    hg_rewrite_append(&x->to, &insn);
    return 1;
  }
  if (insn.d >= VECTOR_ALL || x->use[insn.d].update != i || !is_index(x, insn.d)) return 0;
  span = span_of(x, vector_insn_at(x->from, x->use[insn.d].load)->symbol, x->use[insn.d].step);
  if (span != NULL && span->update == i) append_operation(x, ATLAS_OP_add, span->added, span->added, span->step, 0);
  return span != NULL;
}

static hg_status write_program(indexer *x, hg_vector *v) {
  HG_TRY(hg_rewrite_begin(&x->to, v, v->insns.count / 8));
  for (uint32_t i = 0; i < v->insns.count && !x->to.no_memory; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    int has_loop = insn->op == VECTOR_LABEL && find_loop(x, i);
    if (insn->op == VECTOR_LABEL) x->count = 0;
    if (has_loop) find_spans(x);
    if (has_loop && x->count > 0) begin_spans(x);
    if (x->count > 0 && i == x->first) append_checks(x);
    hg_rewrite_place(&x->to, i);
    if (x->count == 0 || i <= x->label || i >= x->back || !append_instead(x, i)) hg_rewrite_append(&x->to, insn);
    if (x->count > 0 && i == x->back) x->count = 0;
  }
  return hg_rewrite_end(&x->to, 1);
}

hg_status hg_native_pass_indices(native_build *b, hg_vector *v, uint32_t *fired) {
  indexer x = {.program = b->program, .from = v, .old_regs = (uint32_t)v->regs.count};
  x.use = hg_allocate(&v->allocator, x.old_regs, sizeof *x.use);
  if (x.use == NULL) return hg_fail_memory("machine code", x.old_regs * sizeof *x.use);
  hg_status status = write_program(&x, v);
  hg_release(&v->allocator, x.use);
  *fired = x.written;
  return status;
}
