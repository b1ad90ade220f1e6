/* coarsen.c - thread coarsening: the straight-line code (straight.c) of several blocks at once, which are neighbours
 * along x and y.
 *
 * Neighbouring blocks load much from the same addresses: in a product of matrices, blocks above each other share
 * columns of the second matrix, and blocks beside each other share rows of the first. A value that cannot differ
 * between the blocks is computed or loaded once, and stored once if it is stored to shared memory. An instruction whose
 * result may differ is repeated for each block; the copies stand side by side, which also gives the processor several
 * independent chains of operations. A value may differ if it depends on the block's coordinates or was read from memory
 * that the launch writes. Blocks have no order among them, so any order is right. Each block has shared memory of its
 * own.
 *
 * The values that differ between blocks beside each other together need more registers than there are. So a long run of
 * computations is written first for the blocks of one column, then for those of the next. */
#include "backend/cpu/native/straight.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"
#include "vector/lower.h"
#include "vector/rewrite.h"

#include <string.h>

/* along which axes values may differ between blocks */
enum { ALONG_X = 1, ALONG_Y = 2 };

typedef struct stack {
  const atlas_program *program;
  const hg_vector *from;
  hg_rewrite to;
  uint32_t old_regs;
  uint32_t slices;         /* of one block */
  native_stack_shape shape;
  uint32_t shared_bytes;   /* of one block */
  uint8_t has_operands;    /* 1: loads for which hg_native_is_operand holds need no code */
  uint32_t *name;  /* per register: the first of its copies in the blocks whose value may differ from the first block's;
                      VECTOR_NONE: none yet */
  uint32_t *reads;         /* per register: how many instructions of a run read it; see write_columns */
  uint32_t *again;         /* per register: its copy in the column that is being written; VECTOR_NONE: it has none */
  uint8_t *differs;        /* per register: along which axes it may differ */
  uint8_t holds[ATLAS_MAX_SYMBOLS]; /* per shared array: along which axes its elements may differ */
} stack;

/* ---- what may differ --------------------------------------------------------------------------------------------- */

static int is_access(const vector_insn *insn) {
  return vector_is_primitive(insn->op) && (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE)) != 0;
}

static int is_plain_load(const vector_insn *insn) {
  return is_access(insn) && (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) == ATLAS_LOAD;
}

static int is_of_kind(const stack *s, const vector_insn *insn, int kind) {
  if (!is_access(insn) || insn->symbol & SSA_LIBRARY) return 0;
  return atlas_symbol_at(s->program, insn->symbol)->kind == kind;
}

/* The lanes of a block along x or y if an instruction reads a coordinate that grows by that much from block to block; 1
 * if it reads the block's own coordinate; 0: another instruction. */
static uint32_t grows_by(const stack *s, const vector_insn *insn, uint32_t d) {
  if (insn->op != ATLAS_OP_sreg) return 0;
  return insn->bits == ATLAS_COORD_BLOCK_X + d    ? 1
         : insn->bits == ATLAS_COORD_GLOBAL_X + d ? native_block(s->program)[d]
                                                  : 0;
}

static uint32_t stacked_along(const stack *s) {
  return (s->shape.x > 1 ? ALONG_X : 0u) | (s->shape.y > 1 ? ALONG_Y : 0u);
}

/* One element of shared memory for all lanes is an operand of the instruction that reads it. Loading it again for each
 * column costs less than a register that keeps it. */
static int is_loaded_by_column(const stack *s, const vector_insn *insn) {
  return is_plain_load(insn) && insn->mode == ATLAS_ADDRESS_UNIFORM && is_of_kind(s, insn, ATLAS_SYMBOL_SHARED);
}

static uint32_t differs_by_itself(const stack *s, const vector_insn *insn) {
  uint32_t by = (grows_by(s, insn, 0) > 0 ? ALONG_X : 0u) | (grows_by(s, insn, 1) > 0 ? ALONG_Y : 0u);
  if (is_of_kind(s, insn, ATLAS_SYMBOL_SHARED)) by = s->holds[insn->symbol];
  else if (is_access(insn) && !(insn->symbol & SSA_LIBRARY) && !is_of_kind(s, insn, ATLAS_SYMBOL_CONST))
    by = insn->flags & VECTOR_READ_ONLY ? 0 : ALONG_X | ALONG_Y;
  return (by | (is_loaded_by_column(s, insn) ? ALONG_X : 0u)) & stacked_along(s);
}

static uint32_t read_differences(const stack *s, const vector_insn *insn) {
  uint32_t by = insn->mask < VECTOR_ALL ? s->differs[insn->mask] : 0;
  for (int k = 0; k < 4; k++) by |= insn->s[k] < VECTOR_ALL ? s->differs[insn->s[k]] : 0u;
  return by;
}

/* Iterates to a fixed point, because of back edges and of stores that follow loads. */
static void find_differences(stack *s) {
  memset(s->differs, 0, s->from->regs.count);
  memset(s->holds, 0, sizeof s->holds);
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t i = 0; i < s->from->insns.count; i++) {
      const vector_insn *insn = vector_insn_at(s->from, i);
      uint32_t by = differs_by_itself(s, insn) | read_differences(s, insn);
      uint8_t *held = is_of_kind(s, insn, ATLAS_SYMBOL_SHARED) && !is_plain_load(insn) ? &s->holds[insn->symbol] : NULL;
      if (held != NULL && (*held | by) != *held) *held |= (uint8_t)by, changed = 1;
      if (insn->d == VECTOR_NONE || (s->differs[insn->d] | by) == s->differs[insn->d]) continue;
      s->differs[insn->d] |= (uint8_t)by;
      changed = 1;
    }
  }
}

/* ---- what can be done -------------------------------------------------------------------------------------------- */

static int is_allowed_access(const stack *s, const vector_insn *insn) {
  unsigned flags = atlas_op_flags(insn->op);
  if (flags & (ATLAS_SPACE_POOL | ATLAS_SPACE_LOCAL) || insn->mode > ATLAS_ADDRESS_INDEXED) return 0;
  if (insn->flags & VECTOR_LANE) return 0;
  if (is_of_kind(s, insn, ATLAS_SYMBOL_SHARED)) return (insn->flags & VECTOR_IN_BOUNDS) != 0; /* see append_for_block */
  return insn->symbol & SSA_LIBRARY || is_of_kind(s, insn, ATLAS_SYMBOL_BUFFER) ||
         is_of_kind(s, insn, ATLAS_SYMBOL_CONST);
}

/* Blocks of a stack differ only in their coordinates along x and y. They take the same jumps and so the same steps: the
 * first block is the first to run out of steps. */
static int is_allowed(const stack *s, const vector_insn *insn) {
  for (int k = 0; k < 4; k++) {
    if (insn->s[k] >= VECTOR_ALL) continue;
    const vector_reg *reg = vector_reg_at(s->from, insn->s[k]);
    if (reg->kind != VECTOR_SPECIAL) continue;
    if (reg->bits == ATLAS_REG_LANE || (reg->bits == ATLAS_REG_BLOCK_INDEX && s->shape.x > 1)) return 0;
  }
  if (vector_is_jump(insn->op)) return read_differences(s, insn) == 0;
  if (is_access(insn)) return is_allowed_access(s, insn);
  if (vector_is_primitive(insn->op))
    return insn->op != ATLAS_OP_cls_get && (atlas_op_flags(insn->op) & ATLAS_PURE) != 0;
  return insn->op != VECTOR_STEP && insn->op != VECTOR_TRAP;
}

/* The axes along which an instruction is repeated. */
static uint32_t is_done_along(const stack *s, const vector_insn *insn) {
  if (is_of_kind(s, insn, ATLAS_SYMBOL_SHARED) && !is_plain_load(insn)) return s->holds[insn->symbol];
  if (insn->d != VECTOR_NONE) return s->differs[insn->d];
  return is_access(insn) ? stacked_along(s) : 0;
}

static uint32_t times(const stack *s, uint32_t along) {
  return (along & ALONG_X ? s->shape.x : 1) * (along & ALONG_Y ? s->shape.y : 1);
}

/* 1 if a loop has a load that neighbours along x, or along y, share. */
static int shares_loads(const stack *s, uint32_t along) {
  uint32_t loop = 0;
  for (uint32_t i = (uint32_t)s->from->insns.count; i-- > 0;) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (vector_is_jump(insn->op) && insn->target <= i) loop = loop > 0 && loop < insn->target ? loop : insn->target;
    if (i >= loop && loop > 0 && is_of_kind(s, insn, ATLAS_SYMBOL_BUFFER) && !(is_done_along(s, insn) & along))
      return 1;
    if (i == loop) loop = 0;
  }
  return 0;
}

/* 1 if blocks of this shape can run together and save loads. */
static int is_possible(stack *s, native_stack_shape shape) {
  uint32_t insns = 0, sees = 0, loop = VECTOR_NONE;
  s->shape = shape;
  find_differences(s);
  for (uint32_t i = (uint32_t)s->from->insns.count; i-- > 0;) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (!is_allowed(s, insn)) return 0;
    for (uint32_t d = 0; d < 2; d++) sees |= grows_by(s, insn, d) > 0 ? 1u << d : 0;
    if (vector_is_jump(insn->op) && insn->target <= i && (loop == VECTOR_NONE || insn->target < loop))
      loop = insn->target;
    int needs_code = loop != VECTOR_NONE && (!s->has_operands || !is_loaded_by_column(s, insn));
    if (needs_code) insns += times(s, is_done_along(s, insn));
    if (i == loop) loop = VECTOR_NONE;
  }
  uint32_t along = stacked_along(s);
  if ((sees & along) != along || insns > CPU_STACKED_INSNS) return 0;
  return (!(along & ALONG_X) || shares_loads(s, ALONG_X)) && (!(along & ALONG_Y) || shares_loads(s, ALONG_Y));
}

/* Takes as many blocks as the limit on instructions allows. */
static int choose_shape(stack *s) {
  static const native_stack_shape shapes[] = {{2, 4}, {2, 2}, {1, 4}, {1, 2}};
  for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
    if (is_possible(s, shapes[k])) return 1;
  return 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct block_place { uint32_t x, y; } block_place; /* in the stack */

static uint32_t add_register(stack *s, const vector_reg *reg) { return hg_rewrite_register(&s->to, reg); }

/* The first block that has the same values, given how they may differ. */
static block_place first_alike(block_place at, uint32_t along) {
  return (block_place){along & ALONG_X ? at.x : 0, along & ALONG_Y ? at.y : 0};
}

/* The register that stands for r in one of the blocks. */
static uint32_t name_of(stack *s, uint32_t r, block_place at) {
  if (r >= VECTOR_ALL) return r;
  if (s->again[r] != VECTOR_NONE) return s->again[r];
  uint32_t along = s->differs[r];
  at = first_alike(at, along);
  uint32_t number = at.y * (along & ALONG_X ? s->shape.x : 1) + at.x;
  if (number == 0) return r;
  if (s->name[r] == VECTOR_NONE) {
    s->name[r] = (uint32_t)s->from->regs.count;
    for (uint32_t k = 1; k < times(s, along); k++) add_register(s, vector_reg_at(s->from, r));
  }
  return s->name[r] + number - 1;
}

/* Reads a coordinate of a block further on. */
static void append_coordinate(stack *s, const vector_insn *insn, uint32_t by) {
  vector_insn first = *insn, add = vector_insn_of(ATLAS_OP_add, VECTOR_ALL);
  const vector_reg reg = *vector_reg_at(s->from, insn->d);
  add.type = reg.type;
  add.slice = insn->slice;
  add.d = insn->d;
  add.s[0] = first.d = add_register(s, &reg);
  add.s[1] = add_register(s, &(vector_reg){.kind = VECTOR_CONSTANT, .type = reg.type, .bits = by});
  first.mask = VECTOR_ALL;
  hg_rewrite_append(&s->to, &first);
  hg_rewrite_append(&s->to, &add);
}

/* Appends an instruction for one block. What blocks share in shared memory is the first block's. */
static void append_for_block(stack *s, const vector_insn *from, block_place at) {
  vector_insn insn = *from;
  int is_shared = is_of_kind(s, from, ATLAS_SYMBOL_SHARED);
  block_place owner = is_shared ? first_alike(at, s->holds[from->symbol]) : at;
  uint32_t block = owner.y * s->shape.x + owner.x;
  for (int k = 0; k < 4; k++) insn.s[k] = name_of(s, insn.s[k], at);
  insn.mask = name_of(s, insn.mask, at);
  insn.d = name_of(s, insn.d, at);
  insn.slice += block * s->slices;
  if (is_shared) insn.bits += block * (s->shared_bytes / atlas_bytes((atlas_type)insn.type));
  uint32_t by = at.x * grows_by(s, from, 0) + at.y * grows_by(s, from, 1);
  if (by > 0) append_coordinate(s, &insn, by);
  else hg_rewrite_append(&s->to, &insn);
}

/* Appends an instruction for the blocks of some columns: for each if it is repeated, else only with the first
 * column. */
static void append_for_columns(stack *s, const vector_insn *insn, uint32_t first, uint32_t end) {
  uint32_t along = is_done_along(s, insn);
  if (!(along & ALONG_X) && end > 1) end = 1;
  for (uint32_t y = 0; y < (along & ALONG_Y ? s->shape.y : 1); y++)
    for (uint32_t x = first; x < end && !s->to.no_memory; x++) append_for_block(s, insn, (block_place){x, y});
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* 1 if an instruction has no effect and depends on none, so that other such instructions may stand before or behind
 * it. */
static int is_movable(const stack *s, const vector_insn *insn) {
  if (insn->d != VECTOR_NONE && !(s->differs[insn->d] & ALONG_X) && hg_straight_is_loop_carried(s->from, insn->d))
    return 0;
  if (is_plain_load(insn)) return is_of_kind(s, insn, ATLAS_SYMBOL_SHARED);
  if (!vector_is_primitive(insn->op)) return insn->op == VECTOR_MOVE || insn->op == VECTOR_CANON;
  return !is_access(insn) && (atlas_op_flags(insn->op) & ATLAS_PURE) != 0;
}

/* The end of the run that begins at an instruction. */
static uint32_t end_of_run(const stack *s, uint32_t i) {
  while (i < s->from->insns.count && is_movable(s, vector_insn_at(s->from, i))) i++;
  return i;
}

/* Copies the values that a run reads often and does not write, at the beginning of a column. The copy has a register
 * while the column's instructions run, whether or not the value had one all the time. */
static void begin_column(stack *s, uint32_t first, uint32_t end, uint32_t x) {
  for (uint32_t i = first; i < end; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    for (int k = 0; k < 4; k++) {
      uint32_t r = insn->s[k];
      if (r >= VECTOR_ALL || s->reads[r] < CPU_COLUMN_READS || s->differs[r] != ALONG_X || s->again[r] != VECTOR_NONE)
        continue;
      const vector_reg reg = *vector_reg_at(s->from, r);
      if (reg.kind != VECTOR_VARIES || reg.uniform || reg.type != ATLAS_f32) continue;
      vector_insn copy = vector_insn_of(VECTOR_MOVE, VECTOR_ALL);
      copy.type = reg.type;
      copy.slice = insn->slice;
      copy.s[0] = name_of(s, r, (block_place){x, 0});
      copy.d = add_register(s, &(vector_reg){.kind = VECTOR_VARIES, .type = reg.type});
      hg_rewrite_append(&s->to, &copy);
      s->again[r] = copy.d;
    }
  }
}

/* A value that is a copy already needs none. */
static void count_reads(stack *s, uint32_t first, uint32_t end) {
  memset(s->reads, 0, s->old_regs * sizeof *s->reads);
  for (uint32_t i = first; i < end; i++)
    for (int k = 0; k < 4 && vector_insn_at(s->from, i)->op != VECTOR_MOVE; k++)
      if (vector_insn_at(s->from, i)->s[k] < VECTOR_ALL) s->reads[vector_insn_at(s->from, i)->s[k]]++;
  for (uint32_t i = first; i < end; i++)
    if (vector_insn_at(s->from, i)->d < VECTOR_ALL) s->reads[vector_insn_at(s->from, i)->d] = 0;
}

static void write_columns(stack *s, uint32_t first, uint32_t end) {
  count_reads(s, first, end);
  for (uint32_t x = 0; x < s->shape.x && !s->to.no_memory; x++) {
    if (x > 0) begin_column(s, first, end, x);
    for (uint32_t i = first; i < end; i++) {
      if (x == 0) hg_rewrite_place(&s->to, i);
      append_for_columns(s, vector_insn_at(s->from, i), x, x + 1);
    }
    memset(s->again, 0xff, s->old_regs * sizeof *s->again);
  }
}

static hg_status write_program(stack *s, hg_vector *v) {
  HG_TRY(hg_rewrite_begin(&s->to, v, v->insns.count));
  for (uint32_t i = 0; i < v->insns.count && !s->to.no_memory;) {
    uint32_t end = s->shape.x > 1 ? end_of_run(s, i) : i;
    if (end >= i + CPU_LEAST_COLUMN_RUN) {
      write_columns(s, i, end);
      i = end;
      continue;
    }
    for (end = end > i ? end : i + 1; i < end && !s->to.no_memory; i++) {
      hg_rewrite_place(&s->to, i);
      append_for_columns(s, vector_insn_at(v, i), 0, s->shape.x);
    }
  }
  return hg_rewrite_end(&s->to, 0);
}

hg_status hg_native_pass_coarsen(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count, words = 4 * regs;
  stack s = {.program = b->program, .from = v, .slices = b->slices, .old_regs = (uint32_t)regs};
  s.has_operands = b->target->mask_count > 0;
  s.shared_bytes = hg_cpu_shared_bytes(b->program);
  s.name = hg_allocate(&v->allocator, words, sizeof *s.name);
  if (s.name == NULL) return hg_fail_memory("machine code", words * sizeof *s.name);
  s.reads = s.name + regs;
  s.again = s.reads + regs;
  s.differs = (uint8_t *)(s.again + regs);
  memset(s.name, 0xff, regs * sizeof *s.name);
  memset(s.again, 0xff, regs * sizeof *s.again);
  hg_status status = choose_shape(&s) ? write_program(&s, v) : HG_UNSUPPORTED;
  hg_release(&v->allocator, s.name);
  b->shape = s.shape;
  *fired = s.shape.x * s.shape.y;
  return status;
}
