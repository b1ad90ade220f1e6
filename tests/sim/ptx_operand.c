/* ptx_operand.c - the operands of an instruction: what it reads and writes in its thread; and how a run fails. */
#include "ptx_state.h"

#include "ptx_value.h"

#include <stdarg.h>
#include <stdio.h>

_Noreturn void ptx_fail(ptx_machine *m, const ptx_thread *t, const char *format, ...) {
  va_list arguments;
  const ptx_frame *f = &t->frame[t->depth];
  const ptx_insn *insns = f->function->insns.data;
  int used = snprintf(m->why, m->why_bytes, "line %u, block %u %u %u, thread %u: ",
                      (unsigned)insns[f->pc < f->function->insns.count ? f->pc : 0].line, (unsigned)t->block->id[0],
                      (unsigned)t->block->id[1], (unsigned)t->block->id[2], (unsigned)t->linear);
  va_start(arguments, format);
  vsnprintf(m->why + used, m->why_bytes - (size_t)used, format, arguments);
  va_end(arguments);
  longjmp(m->failed, 1);
}

static const ptx_symbol *symbol_at(const ptx_machine *m, const ptx_function *f, uint32_t number) {
  return number >= 65536 ? (const ptx_symbol *)m->module->symbols.data + (number - 65536)
                         : (const ptx_symbol *)f->symbols.data + number;
}

uint64_t ptx_symbol_address(const ptx_machine *m, const ptx_function *f, uint32_t number) {
  const ptx_symbol *symbol = symbol_at(m, f, number);
  return symbol->bytes != NULL ? (uint64_t)(uintptr_t)symbol->bytes : symbol->offset;
}

static uint64_t special(const ptx_machine *m, const ptx_thread *t, uint64_t number) {
  uint32_t lane = ptx_lane_of(t);
  if (number < SPECIAL_NTID) return t->id[number];
  if (number < SPECIAL_CTAID) return m->launch->block[number - SPECIAL_NTID];
  if (number < SPECIAL_NCTAID) return t->block->id[number - SPECIAL_CTAID];
  if (number < SPECIAL_CLUSTERID) return m->launch->grid[number - SPECIAL_NCTAID];
  if (number < SPECIAL_LANEID)
    return t->block->id[number - SPECIAL_CLUSTERID] / (number == SPECIAL_CLUSTERID ? m->block_count : 1);
  switch (number) {
  case SPECIAL_LANEID: return lane;
  case SPECIAL_WARPID: return t->linear / PTX_WARP;
  case SPECIAL_LANEMASK_LT: return (UINT64_C(1) << lane) - 1;
  case SPECIAL_LANEMASK_LE: return (UINT64_C(2) << lane) - 1;
  case SPECIAL_LANEMASK_GT: return UINT32_MAX & ~((UINT64_C(2) << lane) - 1);
  case SPECIAL_LANEMASK_GE: return UINT32_MAX & ~((UINT64_C(1) << lane) - 1);
  case SPECIAL_LANEMASK_EQ: return UINT64_C(1) << lane;
  case SPECIAL_NWARPID: return (m->thread_count + PTX_WARP - 1) / PTX_WARP;
  case SPECIAL_SMID: return 0;
  case SPECIAL_CLUSTER_RANK: return t->block->rank;
  default: return t->steps;
  }
}

uint64_t ptx_part(const ptx_frame *f, const ptx_operand *o, unsigned k) {
  return o->reg[k] == PTX_NO_REGISTER ? o->constant[k] : f->registers[o->reg[k]];
}

uint64_t ptx_read(ptx_machine *m, const ptx_thread *t, const ptx_operand *o, ptx_type type) {
  const ptx_frame *f = &t->frame[t->depth];
  uint64_t bits = 0;
  switch (o->kind) {
  case O_REG: bits = f->registers[o->reg[0]]; break;
  case O_IMM:
    if (o->is_float != 0 && o->is_float != ptx_types[type].bits) ptx_fail(m, t, "a constant of %d bits", o->is_float);
    bits = o->bits;
    break;
  case O_SPECIAL: bits = special(m, t, o->bits); break;
  case O_SYMBOL: bits = ptx_symbol_address(m, f->function, o->symbol) + o->bits; break;
  case O_VECTOR: /* packed: the first in the low bits */
    for (unsigned i = 0; i < o->count; i++) {
      unsigned width = ptx_types[type].bits / o->count;
      bits |= ptx_low(ptx_part(f, o, i), width) << (i * width);
    }
    break;
  default: ptx_fail(m, t, "an operand that is no value");
  }
  return ptx_low(o->negated ? !(bits & 1) : bits, ptx_types[type].bits);
}

uint64_t ptx_input(ptx_machine *m, const ptx_thread *t, const ptx_insn *i, unsigned number) {
  return ptx_read(m, t, &i->operand[number], i->type);
}

uint64_t ptx_input_as(ptx_machine *m, const ptx_thread *t, const ptx_insn *i, unsigned number, ptx_type type) {
  return ptx_read(m, t, &i->operand[number], type);
}

void ptx_write(ptx_machine *m, ptx_thread *t, const ptx_operand *o, uint64_t bits, unsigned width) {
  ptx_frame *f = &t->frame[t->depth];
  if (o->kind == O_SINK) return;
  if (o->kind == O_REG) {
    f->registers[o->reg[0]] = ptx_low(bits, width);
  } else if (o->kind == O_VECTOR) {
    for (unsigned i = 0; i < o->count; i++)
      f->registers[o->reg[i]] = ptx_low(bits >> (i * (width / o->count)), width / o->count);
  } else {
    ptx_fail(m, t, "a result that is no register");
  }
}

void ptx_answer(ptx_machine *m, ptx_thread *t, const ptx_insn *i, uint64_t bits) {
  ptx_write(m, t, &i->operand[0], bits, ptx_types[i->type].bits);
}
