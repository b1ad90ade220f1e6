/* wide_stack.c - the straight-line code of a block (wide.c) for several blocks at once, which are neighbours along y.
 *
 * Such blocks load much from the same places: in a product of matrices the columns of the second one. So a value that
 * cannot differ between the blocks is computed, or loaded, once for all of them, and an instruction whose result may
 * differ stands there once for each: side by side, which also gives the processor as many chains of dependent
 * operations to work on. What may differ is what follows from the block's coordinate, or was read from memory that is
 * written during the launch. Blocks have no order, so theirs is free; each has shared memory of its own. */
#include "backend/cpu/native/wide.h"

#include "base/error.h"
#include "vector/lower.h"

#include <string.h>

enum { MOST_STACKED_INSNS = 4096 };

typedef struct stack {
  const atlas_program *program;
  const hg_vector *from;
  hg_vector *to;
  uint32_t blocks, slices; /* slices: of one block */
  uint32_t shared_bytes;   /* of one block */
  uint32_t *name; /* per register: the first of blocks - 1 registers that it is in the other blocks; VECTOR_NONE:
                     none yet */
  uint32_t *place;         /* per instruction: where it stands in `to` */
  uint8_t *differs;        /* per register: 1: it may differ between the blocks */
  uint8_t no_memory;
} stack;

/* ---- what may differ --------------------------------------------------------------------------------------------- */

static int is_access(const vector_insn *insn) {
  return vector_is_primitive(insn->op) && (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE)) != 0;
}

static int is_of_kind(const stack *s, const vector_insn *insn, int kind) {
  if (!is_access(insn) || insn->symbol & SSA_LIBRARY) return 0;
  return atlas_symbol_at(s->program, insn->symbol)->kind == kind;
}

/* The lanes that a block has along y, where an instruction reads a coordinate that grows with the block's; 1: the
 * block's itself; 0: another instruction. */
static uint32_t grows_by(const stack *s, const vector_insn *insn) {
  if (insn->op != ATLAS_OP_sreg) return 0;
  return insn->bits == ATLAS_COORD_BLOCK_Y    ? 1
         : insn->bits == ATLAS_COORD_GLOBAL_Y ? native_block(s->program)[1]
                                              : 0;
}

static int is_source_of_difference(const stack *s, const vector_insn *insn) {
  if (grows_by(s, insn) > 0) return 1;
  if (!is_access(insn) || insn->symbol & SSA_LIBRARY || is_of_kind(s, insn, ATLAS_SYMBOL_CONST)) return 0;
  return is_of_kind(s, insn, ATLAS_SYMBOL_SHARED) || !(insn->flags & VECTOR_READ_ONLY);
}

static int reads_difference(const stack *s, const vector_insn *insn) {
  int differs = insn->mask < VECTOR_ALL && s->differs[insn->mask];
  for (int k = 0; k < 4; k++) differs |= insn->s[k] < VECTOR_ALL && s->differs[insn->s[k]];
  return differs;
}

/* To a fixed point because of back edges. */
static void find_differences(stack *s) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t i = 0; i < s->from->insns.count; i++) {
      const vector_insn *insn = vector_insn_at(s->from, i);
      if (insn->d == VECTOR_NONE || s->differs[insn->d]) continue;
      if (!is_source_of_difference(s, insn) && !reads_difference(s, insn)) continue;
      s->differs[insn->d] = 1;
      changed = 1;
    }
  }
}

/* ---- what can be done -------------------------------------------------------------------------------------------- */

static int is_allowed_access(const stack *s, const vector_insn *insn) {
  unsigned flags = atlas_op_flags(insn->op);
  if (flags & (ATLAS_SPACE_POOL | ATLAS_SPACE_LOCAL) || insn->mode > ATLAS_ADDRESS_INDEXED) return 0;
  if (insn->flags & VECTOR_LANE) return 0;
  if (is_of_kind(s, insn, ATLAS_SYMBOL_SHARED)) return (insn->flags & VECTOR_IN_BOUNDS) != 0; /* see at_block */
  return insn->symbol & SSA_LIBRARY || is_of_kind(s, insn, ATLAS_SYMBOL_BUFFER) ||
         is_of_kind(s, insn, ATLAS_SYMBOL_CONST);
}

/* Of the blocks only the coordinate along y differs; jumps are the same for all, and so are the steps that they take:
 * who runs out of them first is the first block. */
static int is_allowed(const stack *s, const vector_insn *insn) {
  for (int k = 0; k < 4; k++) {
    if (insn->s[k] >= VECTOR_ALL) continue;
    const vector_reg *reg = vector_reg_at(s->from, insn->s[k]);
    if (reg->kind == VECTOR_SPECIAL && reg->bits == ATLAS_REG_LANE) return 0;
  }
  if (vector_is_jump(insn->op)) return !reads_difference(s, insn);
  if (is_access(insn)) return is_allowed_access(s, insn);
  if (vector_is_primitive(insn->op))
    return insn->op != ATLAS_OP_cls_get && (atlas_op_flags(insn->op) & ATLAS_PURE) != 0;
  return insn->op != VECTOR_STEP && insn->op != VECTOR_TRAP;
}

static int is_done_once(const stack *s, const vector_insn *insn) {
  return insn->d == VECTOR_NONE ? !is_access(insn) : !s->differs[insn->d];
}

/* 1 if the blocks share a load in a loop. */
static int shares_loads(const stack *s) {
  uint32_t loop = 0;
  for (uint32_t i = (uint32_t)s->from->insns.count; i-- > 0;) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (vector_is_jump(insn->op) && insn->target <= i) loop = loop > 0 && loop < insn->target ? loop : insn->target;
    if (i >= loop && loop > 0 && is_of_kind(s, insn, ATLAS_SYMBOL_BUFFER) && is_done_once(s, insn)) return 1;
    if (i == loop) loop = 0;
  }
  return 0;
}

/* As many blocks as the code may have instructions for; 1: it does not pay, or cannot be done. */
static uint32_t choose_blocks(const stack *s, uint32_t most) {
  uint32_t once = 0, each = 0, sees_rows = 0;
  for (uint32_t i = 0; i < s->from->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    if (!is_allowed(s, insn)) return 1;
    sees_rows |= grows_by(s, insn);
    if (is_done_once(s, insn)) once++;
    else each++;
  }
  if (!sees_rows || !shares_loads(s)) return 1;
  while (most > 1 && once + most * each > MOST_STACKED_INSNS) most /= 2;
  return most;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void append(stack *s, const vector_insn *insn) {
  if (hg_array_append(&s->to->allocator, &s->to->insns, insn, 1) == NULL) s->no_memory = 1;
}

static uint32_t add_register(stack *s, const vector_reg *reg) {
  if (hg_array_append(&s->to->allocator, &s->to->regs, reg, 1) == NULL) s->no_memory = 1;
  return (uint32_t)s->to->regs.count - 1;
}

/* What a register is in one of the blocks. */
static uint32_t name_of(stack *s, uint32_t r, uint32_t block) {
  if (r >= VECTOR_ALL || block == 0 || !s->differs[r]) return r;
  const vector_reg reg = *vector_reg_at(s->from, r);
  if (s->name[r] == VECTOR_NONE) {
    s->name[r] = (uint32_t)s->to->regs.count;
    for (uint32_t k = 1; k < s->blocks; k++) add_register(s, &reg);
  }
  return s->name[r] + block - 1;
}

/* A coordinate along y, of a block further up. */
static void append_coordinate(stack *s, const vector_insn *insn, uint32_t by) {
  vector_insn first = *insn, add = vector_insn_of(ATLAS_OP_add, VECTOR_ALL);
  const vector_reg reg = *vector_reg_at(s->to, insn->d);
  add.type = reg.type;
  add.slice = insn->slice;
  add.d = insn->d;
  add.s[0] = first.d = add_register(s, &reg);
  add.s[1] = add_register(s, &(vector_reg){.kind = VECTOR_CONSTANT, .type = reg.type, .bits = by});
  first.mask = VECTOR_ALL;
  append(s, &first);
  append(s, &add);
}

/* The instruction for one of the blocks. */
static void append_for_block(stack *s, const vector_insn *from, uint32_t block) {
  vector_insn insn = *from;
  for (int k = 0; k < 4; k++) insn.s[k] = name_of(s, insn.s[k], block);
  insn.mask = name_of(s, insn.mask, block);
  insn.d = name_of(s, insn.d, block);
  insn.slice += block * s->slices;
  if (is_of_kind(s, from, ATLAS_SYMBOL_SHARED))
    insn.bits += block * (s->shared_bytes / atlas_bytes((atlas_type)insn.type));
  if (block > 0 && grows_by(s, from) > 0) {
    vector_insn coordinate = *from;
    coordinate.d = insn.d;
    coordinate.slice = insn.slice;
    append_coordinate(s, &coordinate, block * grows_by(s, from));
  } else append(s, &insn);
}

static void write_program(stack *s) {
  for (uint32_t i = 0; i < s->from->insns.count && !s->no_memory; i++) {
    const vector_insn *insn = vector_insn_at(s->from, i);
    uint32_t blocks = is_done_once(s, insn) ? 1 : s->blocks;
    s->place[i] = (uint32_t)s->to->insns.count;
    for (uint32_t k = 0; k < blocks && !s->no_memory; k++) append_for_block(s, insn, k);
  }
  for (uint32_t i = 0; i < s->to->insns.count && !s->no_memory; i++) {
    vector_insn *insn = vector_insn_at(s->to, i);
    if (insn->target != VECTOR_NONE) insn->target = s->place[insn->target];
  }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void find_and_write(stack *s, uint32_t most) {
  uint64_t regs = s->from->regs.count;
  memset(s->name, 0xff, regs * sizeof *s->name);
  memset(s->differs, 0, regs);
  find_differences(s);
  s->blocks = choose_blocks(s, most);
  if (s->blocks == 1) return;
  if (hg_array_append(&s->to->allocator, &s->to->regs, s->from->regs.data, regs) == NULL) s->no_memory = 1;
  else write_program(s);
}

hg_status hg_native_stack(const atlas_program *program, const hg_vector *single, uint32_t slices, uint32_t most,
                          hg_vector *out, uint32_t *blocks) {
  uint64_t n = single->insns.count, regs = single->regs.count;
  stack s = {.program = program, .from = single, .to = out, .slices = slices};
  *out = *single;
  out->insns = (hg_array){.element_size = sizeof(vector_insn)};
  out->regs = (hg_array){.element_size = sizeof(vector_reg)};
  s.shared_bytes = hg_cpu_shared_bytes(program);
  s.name = hg_allocate(&out->allocator, 2 * regs + n, sizeof *s.name);
  if (s.name == NULL) return hg_fail_memory("machine code", (2 * regs + n) * sizeof *s.name);
  s.place = s.name + regs;
  s.differs = (uint8_t *)(s.place + n);
  find_and_write(&s, most);
  hg_release(&out->allocator, s.name);
  *blocks = s.blocks;
  if (s.no_memory) return hg_fail_memory("machine code", n * sizeof(vector_insn));
  return HG_OK;
}
