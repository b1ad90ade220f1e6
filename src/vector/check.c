/* check.c - checks vector programs of every origin: jumps lead to labels, operands exist and have the types that their
 * operation takes, accesses name symbols of their kind, registers are written before they are read, and live ranges
 * hold every use. */
#include "vector/check.h"

#include "atlas/functions.h"
#include "base/error.h"

#include <string.h>

typedef struct checker {
  const atlas_program *program;
  const hg_vector *v;
  const hg_vector_shape *more;
  uint32_t n, regs, words; /* words of a set of registers */
  uint32_t *block_of;      /* per instruction: its straight piece of code; pieces are numbered in order */
  uint32_t blocks;
  uint32_t *first;         /* per piece: its first instruction; last, the program's end */
  uint64_t *reached;       /* sets per piece: registers that may have been written when it begins */
  uint64_t *written;       /* the set at the current instruction */
} checker;

hg_status hg_vector_is_broken(const char *what, uint32_t at) {
  return hg_fail(HG_INVALID_ARGUMENT, "internal: the vector code is broken: %s (%u)", what, (unsigned)at);
}

/* ---- jumps ------------------------------------------------------------------------------------------------------- */

static hg_status check_flow(const checker *c) {
  int has_ended = 0; /* instructions may follow the END only for the live-outs of a last region */
  for (uint32_t i = 0; i < c->n; i++) {
    const vector_insn *insn = vector_insn_at(c->v, i);
    if (has_ended && (insn->op != VECTOR_MOVE || c->more == NULL))
      return hg_vector_is_broken("instructions follow the end", i);
    has_ended |= insn->op == VECTOR_END;
    if (vector_is_jump(insn->op) != (insn->target != VECTOR_NONE))
      return hg_vector_is_broken("what is no jump has a target, or a jump has none", i);
    if (insn->target == VECTOR_NONE) continue;
    if (insn->target >= c->n || vector_insn_at(c->v, insn->target)->op != VECTOR_LABEL)
      return hg_vector_is_broken("a jump does not lead to a label", i);
  }
  return has_ended ? HG_OK : hg_vector_is_broken("the last instruction is not the end", c->n);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static const hg_vector_shape shapes[] = {
    {VECTOR_LABEL, "-"},     {VECTOR_MOVE, "ss"}, {VECTOR_CLEAR, "q"},      {VECTOR_AND, "qpp"},
    {VECTOR_ANDNOT, "qpp"},  {VECTOR_OR, "qpp"},  {VECTOR_CANON, "ss"},     {VECTOR_LESSER, "sss"},
    {VECTOR_GREATER, "sss"}, {VECTOR_JUMP, "-"},  {VECTOR_JUMP_NONE, "-p"}, {VECTOR_JUMP_ANY, "-p"},
    {VECTOR_STEP, "q??"},    {VECTOR_TRAP, "-"},  {VECTOR_END, "-"},        {0, NULL}};

static const char *shape_of(const hg_vector_shape *rows, uint16_t op) {
  for (; rows != NULL && rows->op != 0; rows++)
    if (rows->op == op) return rows->operands;
  return NULL;
}

/* Narrow integers are held in 32 bits, and may be computed with as u32 or i32. */
static int is_small_integer(uint8_t type) {
  return type != SSA_PREDICATE && atlas_is_integer((atlas_type)type) && atlas_bytes((atlas_type)type) <= 4;
}

static int fits(const checker *c, uint32_t r, uint8_t type) {
  uint8_t has = vector_reg_at(c->v, r)->type;
  return has == type || (is_small_integer(has) && is_small_integer(type));
}

/* The type of an operand by its letter; ATLAS_NONE: any. */
static uint8_t type_of_letter(const vector_insn *insn, char letter) {
  switch (letter) {
  case 'q':
  case 'p': return SSA_PREDICATE;
  case 'c':
  case 'u':
  case '?': return ATLAS_u32;
  case 't': return insn->type2;
  case 's': return insn->type == SSA_PREDICATE && insn->type2 != ATLAS_NONE ? insn->type2 : insn->type;
  default: return insn->type;
  }
}

static hg_status check_source(const checker *c, uint32_t i, uint32_t r, char letter) {
  const vector_insn *insn = vector_insn_at(c->v, i);
  if (r == VECTOR_NONE) return letter == '?' ? HG_OK : hg_vector_is_broken("an operand is missing", i);
  if (r == VECTOR_ALL) return letter == 'p' ? HG_OK : hg_vector_is_broken("all lanes are no operand here", i);
  if (r >= c->regs) return hg_vector_is_broken("an operand is no register", i);
  if (!fits(c, r, type_of_letter(insn, letter))) return hg_vector_is_broken("an operand is of another type", i);
  return HG_OK;
}

static hg_status check_result(const checker *c, uint32_t i, char letter) {
  const vector_insn *insn = vector_insn_at(c->v, i);
  if (letter == '-' || (letter == 'o' && insn->d == VECTOR_NONE))
    return insn->d == VECTOR_NONE ? HG_OK : hg_vector_is_broken("there is a result where none can be", i);
  if (insn->d >= c->regs) return hg_vector_is_broken("the result is no register", i);
  if (vector_reg_at(c->v, insn->d)->kind != VECTOR_VARIES) return hg_vector_is_broken("a constant is written", i);
  return fits(c, insn->d, type_of_letter(insn, letter)) ? HG_OK
                                                        : hg_vector_is_broken("the result is of another type", i);
}

/* How many of the first sources belong to the address. */
static uint32_t index_count(const vector_insn *insn) {
  uint32_t count = 0;
  switch (insn->mode) {
  case ATLAS_ADDRESS_UNIFORM: return 0;
  case ATLAS_ADDRESS_INDEXED: return 1;
  case ATLAS_ADDRESS_TABLE: return 2;
  default:
    for (int k = 0; k < 3; k++) count += insn->phi_registers >> k & 1u;
    return count;
  }
}

static hg_status check_index(const checker *c, uint32_t i, uint32_t r) {
  if (r >= c->regs) return hg_vector_is_broken("an index is no register", i);
  uint8_t type = vector_reg_at(c->v, r)->type;
  int is_integer = type != SSA_PREDICATE && atlas_is_integer((atlas_type)type);
  return is_integer ? HG_OK : hg_vector_is_broken("an index is no integer", i);
}

static int is_of_space(unsigned flags, uint8_t kind) {
  if (flags & ATLAS_SPACE_SHARED) return kind == ATLAS_SYMBOL_SHARED;
  if (flags & ATLAS_SPACE_LOCAL) return kind == ATLAS_SYMBOL_LOCAL;
  if (flags & ATLAS_SPACE_CONST) return kind == ATLAS_SYMBOL_CONST;
  return kind == ATLAS_SYMBOL_BUFFER || (flags & ATLAS_ATOMIC && kind == ATLAS_SYMBOL_SHARED);
}

static hg_status check_symbol(const checker *c, uint32_t i) {
  const vector_insn *insn = vector_insn_at(c->v, i);
  unsigned flags = atlas_op_flags(insn->op);
  if (insn->mode > ATLAS_ADDRESS_INDEXED || flags & ATLAS_SPACE_POOL) return HG_OK;
  uint32_t number = insn->symbol & ~(uint32_t)SSA_LIBRARY;
  const atlas_program *of = insn->symbol & SSA_LIBRARY ? &atlas_functions : c->program;
  if (number >= of->symbols.count) return hg_vector_is_broken("an access names no symbol", i);
  if (!is_of_space(flags, atlas_symbol_at(of, number)->kind))
    return hg_vector_is_broken("an access names a symbol of another kind", i);
  return HG_OK;
}

/* The operands of forms.def except constants, symbols and coordinates, which are not registers. */
static hg_status check_primitive(const checker *c, uint32_t i, uint32_t *source) {
  const vector_insn *insn = vector_insn_at(c->v, i);
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info == NULL) return hg_vector_is_broken("there is no such operation", i);
  const char *letter = info->operands;
  int has_result = *letter == 'd' || *letter == 'o' || *letter == 'p';
  HG_TRY(check_result(c, i, has_result ? (char)(*letter == 'p' ? 'q' : *letter) : '-'));
  for (letter += has_result; *letter != '\0'; letter++) {
    if (*letter == 'm') {
      HG_TRY(check_symbol(c, i));
      for (uint32_t k = index_count(insn); k > 0; k--) HG_TRY(check_index(c, i, insn->s[(*source)++]));
    } else if (strchr("stcq", *letter) != NULL) HG_TRY(check_source(c, i, insn->s[(*source)++], *letter));
  }
  return HG_OK;
}

static hg_status check_insn(const checker *c, uint32_t i) {
  const vector_insn *insn = vector_insn_at(c->v, i);
  uint32_t source = 0;
  if (insn->mask != VECTOR_ALL) HG_TRY(check_source(c, i, insn->mask, 'q'));
  if (vector_is_primitive(insn->op)) HG_TRY(check_primitive(c, i, &source));
  else {
    const char *letter = shape_of(shapes, insn->op);
    if (letter == NULL) letter = shape_of(c->more, insn->op);
    if (letter == NULL) return hg_vector_is_broken("there is no such operation", i);
    HG_TRY(check_result(c, i, *letter));
    while (*++letter != '\0') HG_TRY(check_source(c, i, insn->s[source++], *letter));
  }
  for (; source < 4; source++)
    if (insn->s[source] != VECTOR_NONE && !(insn->flags & VECTOR_EXTRA))
      return hg_vector_is_broken("there is an operand too many", i);
  return HG_OK;
}

/* ---- what is read has been written ------------------------------------------------------------------------------- */

static uint64_t *set_of(const checker *c, uint64_t *sets, uint32_t block) { return sets + (size_t)block * c->words; }
static void add(uint64_t *set, uint32_t r) { set[r / 64] |= UINT64_C(1) << r % 64; }
static int has(const uint64_t *set, uint32_t r) { return set[r / 64] >> r % 64 & 1; }

static int varies(const checker *c, uint32_t r) {
  return r < c->regs && vector_reg_at(c->v, r)->kind == VECTOR_VARIES;
}

static int is_unwritten(const checker *c, const uint64_t *set, uint32_t r) {
  return varies(c, r) && !has(set, r) && vector_reg_at(c->v, r)->bits != VECTOR_UNSET;
}

/* A STEP counts in its sources, which start as 0. The result of a MOVE from an unwritten register counts as unwritten:
 * regions begin with such moves, for values that they may write before they read them. */
static void add_written(const checker *c, const vector_insn *insn, uint64_t *set) {
  int is_nothing = insn->op == VECTOR_MOVE && is_unwritten(c, set, insn->s[0]);
  if (varies(c, insn->d) && !is_nothing) add(set, insn->d);
  for (int k = 0; k < 2 && insn->op == VECTOR_STEP; k++)
    if (varies(c, insn->s[k])) add(set, insn->s[k]);
}

static void find_blocks(checker *c) {
  c->blocks = 0;
  for (uint32_t i = 0; i < c->n; i++) {
    uint16_t op = vector_insn_at(c->v, i)->op;
    int begins = i == 0 || op == VECTOR_LABEL || vector_is_jump(vector_insn_at(c->v, i - 1)->op);
    if (begins) c->first[c->blocks++] = i;
    c->block_of[i] = c->blocks - 1;
  }
  c->first[c->blocks] = c->n;
}

static uint32_t followers(const checker *c, uint32_t block, uint32_t follower[2]) {
  const vector_insn *last = vector_insn_at(c->v, c->first[block + 1] - 1);
  uint32_t count = 0;
  if (vector_is_jump(last->op)) follower[count++] = c->block_of[last->target];
  if (last->op != VECTOR_JUMP && last->op != VECTOR_END) follower[count++] = block + 1;
  return count;
}

/* Adds `with` to the set; 1 if it changes. */
static int unite(const checker *c, uint64_t *set, const uint64_t *with) {
  uint64_t more = 0;
  for (uint32_t k = 0; k < c->words; k++) {
    more |= with[k] & ~set[k];
    set[k] |= with[k];
  }
  return more != 0;
}

/* Iterates to a fixed point because of back edges. */
static void find_reached(checker *c) {
  uint32_t follower[2];
  add(c->reached, c->regs); /* a bit after the registers': the piece is reachable */
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t b = 0; b < c->blocks; b++) {
      memcpy(c->written, set_of(c, c->reached, b), c->words * sizeof *c->written);
      for (uint32_t i = c->first[b]; i < c->first[b + 1]; i++) add_written(c, vector_insn_at(c->v, i), c->written);
      for (uint32_t k = followers(c, b, follower); k-- > 0;)
        changed |= unite(c, set_of(c, c->reached, follower[k]), c->written);
    }
  }
}

static hg_status check_read(const checker *c, uint32_t i, uint32_t r) {
  if (!is_unwritten(c, c->written, r)) return HG_OK;
  return hg_vector_is_broken("a register is read that nothing has written before", i);
}

static hg_status check_reads(const checker *c) {
  for (uint32_t b = 0; b < c->blocks; b++) {
    memcpy(c->written, set_of(c, c->reached, b), c->words * sizeof *c->written);
    for (uint32_t i = c->first[b]; i < c->first[b + 1] && has(c->written, c->regs); i++) {
      const vector_insn *insn = vector_insn_at(c->v, i);
      for (int k = 0; k < 4 && insn->op != VECTOR_STEP && insn->op != VECTOR_MOVE; k++)
        HG_TRY(check_read(c, i, insn->s[k]));
      HG_TRY(check_read(c, i, insn->mask));
      add_written(c, insn, c->written);
    }
  }
  return HG_OK;
}

/* ---- live ranges: see live.c ------------------------------------------------------------------------------------- */

/* The end of each loop, by its label: the last jump back to it, or to a loop inside it. */
static void find_loops(const checker *c, uint32_t *end) {
  memset(end, 0, c->n * sizeof *end);
  for (uint32_t i = 0; i < c->n; i++) {
    const vector_insn *insn = vector_insn_at(c->v, i);
    if (vector_is_jump(insn->op) && insn->target <= i) end[insn->target] = i;
  }
  for (uint32_t h = c->n; h-- > 0;)
    for (uint32_t i = h + 1; i <= end[h]; i++)
      if (end[i] > end[h]) end[h] = end[i];
}

static hg_status check_holds(const checker *c, uint32_t i, uint32_t r) {
  const vector_reg *reg = vector_reg_at(c->v, r);
  if (reg->first == VECTOR_NONE || reg->first > i || reg->last < i)
    return hg_vector_is_broken("a live range does not hold an instruction that names the register", i);
  return HG_OK;
}

/* A value read in a loop and defined before it is kept for the next round. A value written in a loop and read after it
 * is kept by lanes that have left. */
static hg_status check_loop(const checker *c, const uint32_t *seen, uint32_t head, uint32_t end) {
  for (uint32_t i = head; i <= end; i++) {
    const vector_insn *insn = vector_insn_at(c->v, i);
    for (int k = 0; k < 4; k++)
      if (varies(c, insn->s[k]) && seen[insn->s[k]] < head && vector_reg_at(c->v, insn->s[k])->last < end)
        return hg_vector_is_broken("a live range ends in a loop whose next round reads the value", i);
    if (varies(c, insn->d) && vector_reg_at(c->v, insn->d)->last > end && vector_reg_at(c->v, insn->d)->first > head)
      return hg_vector_is_broken("a live range begins in a loop that lanes leave one by one", i);
  }
  return HG_OK;
}

static hg_status check_across(const checker *c, uint32_t i) {
  for (uint32_t r = 0; r < c->regs; r++) {
    const vector_reg *reg = vector_reg_at(c->v, r);
    if (reg->kind != VECTOR_VARIES || reg->first == VECTOR_NONE || reg->first >= i || reg->last < i) continue;
    if (!reg->across) return hg_vector_is_broken("a value lives across the block's instruction and is not marked", r);
  }
  return HG_OK;
}

/* seen: per register, the first instruction that names it. end: scratch, a number for each instruction. */
static hg_status check_ranges(const checker *c, uint32_t *seen, uint32_t *end) {
  memset(seen, 0xff, c->regs * sizeof *seen);
  for (uint32_t i = 0; i < c->n; i++) {
    const vector_insn *insn = vector_insn_at(c->v, i);
    const uint32_t named[] = {insn->s[0], insn->s[1], insn->s[2], insn->s[3], insn->mask, insn->d};
    for (int k = 0; k < 6; k++) {
      if (!varies(c, named[k])) continue;
      if (seen[named[k]] == VECTOR_NONE) seen[named[k]] = i;
      HG_TRY(check_holds(c, i, named[k]));
    }
    if (hg_is_block_op(insn->op)) HG_TRY(check_across(c, i));
  }
  find_loops(c, end);
  for (uint32_t h = 0; h < c->n; h++)
    if (end[h] > 0) HG_TRY(check_loop(c, seen, h, end[h]));
  return HG_OK;
}

/* ---- the checks -------------------------------------------------------------------------------------------------- */

static hg_status check_reached(checker *c) {
  find_blocks(c);
  c->words = c->regs / 64 + 1;
  uint64_t words = ((uint64_t)c->blocks + 1) * c->words;
  c->reached = hg_allocate(&c->v->allocator, words, sizeof *c->reached);
  if (c->reached == NULL) return hg_fail_memory("the check of vector code", words * sizeof *c->reached);
  c->written = set_of(c, c->reached, c->blocks);
  find_reached(c);
  hg_status status = check_reads(c);
  hg_release(&c->v->allocator, c->reached);
  return status;
}

hg_status hg_vector_check(const atlas_program *program, const hg_vector *v, const hg_vector_shape *more,
                          int has_ranges) {
  checker c = {
      .program = program, .v = v, .more = more, .n = (uint32_t)v->insns.count, .regs = (uint32_t)v->regs.count};
  HG_TRY(check_flow(&c));
  for (uint32_t i = 0; i < c.n; i++) HG_TRY(check_insn(&c, i));
  uint64_t words = 2 * (uint64_t)c.n + c.regs + 1;
  c.block_of = hg_allocate(&v->allocator, words, sizeof *c.block_of);
  if (c.block_of == NULL) return hg_fail_memory("the check of vector code", words * sizeof *c.block_of);
  c.first = c.block_of + c.n;
  hg_status status = check_reached(&c);
  if (status == HG_OK && has_ranges) status = check_ranges(&c, c.first + c.n + 1, c.first);
  hg_release(&v->allocator, c.block_of);
  return status;
}
