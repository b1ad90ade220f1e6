/* ptx_machine.c - runs parsed PTX: clusters of blocks one after the other, the threads of a cluster in turns. */
#include "ptx_machine.h"

#include "ptx_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, CALL_DEPTH = 8 };

typedef struct frame {
  const ptx_function *function;
  const ptx_insn *call; /* that made it; NULL: the entry */
  uint64_t *registers;
  uint32_t pc;
} frame;

typedef enum state { RUNS, WAITS_BARRIER, WAITS_WARP, WAITS_CLUSTER, ENDED } state;

typedef struct thread {
  frame frame[CALL_DEPTH];
  uint32_t depth;
  state state;
  uint32_t id[3];
  uint32_t linear;
  struct block *block;
  uint32_t arrivals, waits; /* at barriers of the cluster, both from 1: an arrival, then a wait for all others' */
  uint8_t unreleased;       /* it touched what threads exchange, and has not arrived since */
  uint8_t carry;
  uint8_t *local;
  uint64_t offered; /* what a shuffle or vote gives to the others */
  uint64_t steps;
} thread;

/* Of a byte that threads exchange: who wrote and read it last, and what they had come to. */
#define SEVERAL UINT16_MAX
typedef struct access {
  uint16_t block, thread;      /* the block's place in the cluster; threads of several blocks are several threads */
  uint32_t barriers, arrivals; /* of the block; of the thread */
} access;

typedef struct place {
  access write, read;
} place;

/* A block of the cluster that runs. */
typedef struct block {
  uint32_t id[3], rank;
  uint8_t *shared;
  place *places;      /* per watched byte of it */
  uint32_t barriers;  /* from 1 */
  uint32_t waits;     /* the most of a thread's */
  uint32_t visitors;  /* the most arrivals of a thread of another block that touched its shared memory; 0: none did */
  thread *threads;
  uint32_t unended;   /* of the threads */
} block;

enum { RANK_SHIFT = 24 }; /* an address in the cluster: 1 + the block's rank from this bit on; 0: the own block */

typedef struct machine {
  const ptx_module *module;
  const ptx_function *entry;
  const ptx_launch *launch;
  size_t shared_bytes;
  size_t watched, watched_end; /* bytes in which nobody may race: where a kernel's own exchanges happen */
  block blocks[PTX_CLUSTER_BLOCKS];
  uint32_t block_count;        /* of a cluster */
  uint32_t thread_count;       /* of a block */
  uint32_t meetings;           /* barriers of the cluster that have opened, and 1 */
  jmp_buf failed;
  char *why;
  size_t why_bytes;
} machine;

_Noreturn static void fail(machine *m, const thread *t, const char *format, ...) {
  va_list arguments;
  const frame *f = &t->frame[t->depth];
  const ptx_insn *insns = f->function->insns.data;
  int used = snprintf(m->why, m->why_bytes, "line %u, block %u %u %u, thread %u: ",
                      (unsigned)insns[f->pc < f->function->insns.count ? f->pc : 0].line, (unsigned)t->block->id[0],
                      (unsigned)t->block->id[1], (unsigned)t->block->id[2], (unsigned)t->linear);
  va_start(arguments, format);
  vsnprintf(m->why + used, m->why_bytes - (size_t)used, format, arguments);
  va_end(arguments);
  longjmp(m->failed, 1);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static const ptx_symbol *symbol_at(const machine *m, const ptx_function *f, uint32_t number) {
  return number >= 65536 ? (const ptx_symbol *)m->module->symbols.data + (number - 65536)
                         : (const ptx_symbol *)f->symbols.data + number;
}

static uint64_t symbol_address(const machine *m, const ptx_function *f, uint32_t number) {
  const ptx_symbol *symbol = symbol_at(m, f, number);
  return symbol->bytes != NULL ? (uint64_t)(uintptr_t)symbol->bytes : symbol->offset;
}

static uint32_t lane_of(const thread *t) { return t->linear % WARP; }

static uint64_t special(const machine *m, const thread *t, uint64_t number) {
  uint32_t lane = lane_of(t);
  if (number < SPECIAL_NTID) return t->id[number];
  if (number < SPECIAL_CTAID) return m->launch->block[number - SPECIAL_NTID];
  if (number < SPECIAL_NCTAID) return t->block->id[number - SPECIAL_CTAID];
  if (number < SPECIAL_CLUSTERID) return m->launch->grid[number - SPECIAL_NCTAID];
  if (number < SPECIAL_LANEID)
    return t->block->id[number - SPECIAL_CLUSTERID] / (number == SPECIAL_CLUSTERID ? m->block_count : 1);
  switch (number) {
  case SPECIAL_LANEID: return lane;
  case SPECIAL_WARPID: return t->linear / WARP;
  case SPECIAL_LANEMASK_LT: return (UINT64_C(1) << lane) - 1;
  case SPECIAL_LANEMASK_LE: return (UINT64_C(2) << lane) - 1;
  case SPECIAL_LANEMASK_GT: return UINT32_MAX & ~((UINT64_C(2) << lane) - 1);
  case SPECIAL_LANEMASK_GE: return UINT32_MAX & ~((UINT64_C(1) << lane) - 1);
  case SPECIAL_LANEMASK_EQ: return UINT64_C(1) << lane;
  case SPECIAL_NWARPID: return (m->thread_count + WARP - 1) / WARP;
  case SPECIAL_SMID: return 0;
  case SPECIAL_CLUSTER_RANK: return t->block->rank;
  default: return t->steps;
  }
}

/* One part of a vector. */
static uint64_t part(const frame *f, const ptx_operand *o, unsigned k) {
  return o->reg[k] == PTX_NO_REGISTER ? o->constant[k] : f->registers[o->reg[k]];
}

/* An operand as a value of `type`, zero above its bits. */
static uint64_t read(machine *m, const thread *t, const ptx_operand *o, ptx_type type) {
  const frame *f = &t->frame[t->depth];
  uint64_t bits = 0;
  switch (o->kind) {
  case O_REG: bits = f->registers[o->reg[0]]; break;
  case O_IMM:
    if (o->is_float != 0 && o->is_float != ptx_types[type].bits) fail(m, t, "a constant of %d bits", o->is_float);
    bits = o->bits;
    break;
  case O_SPECIAL: bits = special(m, t, o->bits); break;
  case O_SYMBOL: bits = symbol_address(m, f->function, o->symbol) + o->bits; break;
  case O_VECTOR: /* packed: the first in the low bits */
    for (unsigned i = 0; i < o->count; i++) {
      unsigned width = ptx_types[type].bits / o->count;
      bits |= ptx_low(part(f, o, i), width) << (i * width);
    }
    break;
  default: fail(m, t, "an operand that is no value");
  }
  return ptx_low(o->negated ? !(bits & 1) : bits, ptx_types[type].bits);
}

static uint64_t operand(machine *m, const thread *t, const ptx_insn *i, unsigned number) {
  return read(m, t, &i->operand[number], i->type);
}

static uint64_t operand_as(machine *m, const thread *t, const ptx_insn *i, unsigned number, ptx_type type) {
  return read(m, t, &i->operand[number], type);
}

static void write(machine *m, thread *t, const ptx_operand *o, uint64_t bits, unsigned width) {
  frame *f = &t->frame[t->depth];
  if (o->kind == O_SINK) return;
  if (o->kind == O_REG) {
    f->registers[o->reg[0]] = ptx_low(bits, width);
  } else if (o->kind == O_VECTOR) {
    for (unsigned i = 0; i < o->count; i++)
      f->registers[o->reg[i]] = ptx_low(bits >> (i * (width / o->count)), width / o->count);
  } else {
    fail(m, t, "a result that is no register");
  }
}

static void answer(machine *m, thread *t, const ptx_insn *i, uint64_t bits) {
  write(m, t, &i->operand[0], bits, ptx_types[i->type].bits);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint8_t *in_module(const machine *m, uint64_t address, size_t byte_count) {
  const ptx_symbol *symbols = m->module->symbols.data;
  for (size_t i = 0; i < m->module->symbols.count; i++) {
    uint64_t first = (uint64_t)(uintptr_t)symbols[i].bytes;
    if (symbols[i].bytes != NULL && address >= first && address - first + byte_count <= symbols[i].byte_count)
      return symbols[i].bytes + (address - first);
  }
  return NULL;
}

/* Of a block that has begun for sure, and will not have ended by then: leave_block looks at the latter. */
static void visit(machine *m, const thread *t, block *to) {
  if (to == t->block) return;
  if (t->waits == 1) fail(m, t, "block %u of the cluster might not have begun", (unsigned)to->rank);
  if (to->unended == 0) fail(m, t, "block %u of the cluster: the block has ended", (unsigned)to->rank);
  if (to->visitors < t->arrivals) to->visitors = t->arrivals;
}

/* The block of an address in the cluster; NULL: there is none. */
static block *block_at(machine *m, const thread *t, uint64_t address) {
  uint64_t rank = address >> RANK_SHIFT;
  return rank == 0 ? t->block : rank <= m->block_count ? &m->blocks[rank - 1] : NULL;
}

static uint8_t *locate_in_cluster(machine *m, const thread *t, uint64_t address, size_t byte_count) {
  block *to = block_at(m, t, address);
  address %= 1u << RANK_SHIFT;
  if (to == NULL || address + byte_count > m->shared_bytes) return NULL;
  visit(m, t, to);
  return to->shared + address;
}

static void map_address(machine *m, thread *t, const ptx_insn *i) {
  uint64_t address = operand(m, t, i, 1), rank = operand(m, t, i, 2);
  if (address >> RANK_SHIFT != 0) fail(m, t, "mapa of 0x%llx: not of the block", (unsigned long long)address);
  answer(m, t, i, ((rank < m->block_count ? rank : PTX_CLUSTER_BLOCKS) + 1) << RANK_SHIFT | address);
}

static uint8_t *locate(machine *m, thread *t, const ptx_insn *i, const ptx_operand *o, size_t byte_count) {
  const frame *f = &t->frame[t->depth];
  ptx_space space = i->words.space;
  uint64_t base = o->base == O_REG      ? f->registers[o->reg[0]]
                  : o->base == O_SYMBOL ? symbol_address(m, f->function, o->symbol)
                                        : 0;
  uint64_t address = base + o->bits;
  uint8_t *bytes = NULL;
  if (space == SPACE_SHARED || space == SPACE_CLUSTER) address = (uint32_t)address;
  if (address % byte_count != 0)
    fail(m, t, "%zu bytes at 0x%llx: not aligned", byte_count, (unsigned long long)address);
  if (space == SPACE_SHARED) bytes = address + byte_count <= m->shared_bytes ? t->block->shared + address : NULL;
  else if (space == SPACE_CLUSTER) bytes = locate_in_cluster(m, t, address, byte_count);
  else if (space == SPACE_PARAM)
    bytes = address + byte_count <= m->entry->parameter_bytes ? (uint8_t *)(uintptr_t)m->launch->parameters + address
                                                              : NULL;
  else if (space == SPACE_LOCAL) bytes = address + byte_count <= f->function->local_bytes ? t->local + address : NULL;
  else bytes = in_module(m, address, byte_count);
  if (bytes == NULL && (space == SPACE_GLOBAL || space == SPACE_GENERIC))
    bytes = m->launch->reach(m->launch->user, address, byte_count);
  if (bytes == NULL)
    fail(m, t, "%zu bytes at 0x%llx of space %d are out of reach", byte_count, (unsigned long long)address, (int)space);
  return bytes;
}

/* Whether a barrier lies between an access and what a thread does now: one of the block of both, or one of the cluster
 * at which the former thread had yet to arrive and for which the latter has waited. */
static int is_before(const access *a, const thread *t) {
  return (a->block == t->block->rank && a->barriers < t->block->barriers) || a->arrivals < t->waits;
}

static int may_race(const access *a, const thread *t) {
  return !is_before(a, t) && (a->block != t->block->rank || a->thread != t->linear);
}

/* One reader more: from here on all of them count as the one that the fewest barriers put before others. */
static access joined(const access *old, const access *now) {
  int is_near = old->block == now->block;
  return (access){.block = is_near ? now->block : SEVERAL,
                  .thread = SEVERAL,
                  .barriers = now->barriers,
                  .arrivals = old->arrivals > now->arrivals ? old->arrivals : now->arrivals};
}

/* Two threads, one of them writing, with no barrier between. */
static void watch(machine *m, thread *t, const ptx_insn *i, const uint8_t *at, size_t byte_count, int writes) {
  if (i->words.space != SPACE_SHARED && i->words.space != SPACE_CLUSTER) return;
  const block *b = t->block;
  if (i->words.space == SPACE_CLUSTER)
    for (b = m->blocks; at < b->shared || at >= b->shared + m->shared_bytes;) b++;
  size_t first = (size_t)(at - b->shared), end = first + byte_count;
  if (end > m->watched_end) end = m->watched_end;
  const access now = {(uint16_t)t->block->rank, (uint16_t)t->linear, t->block->barriers, t->arrivals};
  for (size_t k = first > m->watched ? first : m->watched; k < end; k++) {
    place *p = &b->places[k - m->watched];
    const access *other = may_race(&p->write, t) ? &p->write : &p->read;
    int races = may_race(other, t);
    if (races && (writes || other == &p->write))
      fail(m, t, "a race with thread %d of block %d of the cluster on byte %zu of shared memory",
           other->thread == SEVERAL ? -1 : other->thread, other->block == SEVERAL ? -1 : other->block, k);
    t->unreleased = 1;
    if (writes) p->write = now;
    else p->read = races ? joined(&p->read, &now) : now;
  }
}

static void load(machine *m, thread *t, const ptx_insn *i) {
  size_t size = ptx_types[i->type].bits / 8;
  const uint8_t *from = locate(m, t, i, &i->operand[1], size * i->words.vector);
  watch(m, t, i, from, size * i->words.vector, 0);
  for (unsigned k = 0; k < i->words.vector; k++) {
    uint64_t bits = 0;
    memcpy(&bits, from + k * size, size);
    if (ptx_types[i->type].kind == 's') bits = (uint64_t)ptx_signed(bits, (unsigned)size * 8); /* fills the register */
    const ptx_operand *to = &i->operand[0];
    uint32_t reg = to->kind == O_VECTOR ? to->reg[k] : to->reg[0];
    if ((to->kind != O_VECTOR && to->kind != O_REG) || reg == PTX_NO_REGISTER) fail(m, t, "a load into no register");
    if (to->kind == O_VECTOR && to->count != i->words.vector) fail(m, t, "a vector of another length");
    t->frame[t->depth].registers[reg] = bits;
  }
}

static void store(machine *m, thread *t, const ptx_insn *i) {
  size_t size = ptx_types[i->type].bits / 8;
  uint8_t *to = locate(m, t, i, &i->operand[0], size * i->words.vector);
  const ptx_operand *from = &i->operand[1];
  watch(m, t, i, to, size * i->words.vector, 1);
  for (unsigned k = 0; k < i->words.vector; k++) {
    uint64_t bits =
        from->kind == O_VECTOR ? part(&t->frame[t->depth], from, k) : read(m, t, from, i->type);
    memcpy(to + k * size, &bits, size);
  }
}

static uint64_t atomic_value(machine *m, thread *t, const ptx_insn *i, uint64_t old, unsigned first) {
  const char *what = i->words.atomic;
  uint64_t a = operand(m, t, i, first);
  int is_signed = ptx_types[i->type].kind == 's';
  unsigned width = ptx_types[i->type].bits;
  int less = is_signed ? ptx_signed(a, width) < ptx_signed(old, width) : a < old;
  if (strcmp(what, "add") == 0) return old + a;
  if (strcmp(what, "min") == 0) return less ? a : old;
  if (strcmp(what, "max") == 0) return less ? old : a;
  if (strcmp(what, "and") == 0) return old & a;
  if (strcmp(what, "or") == 0) return old | a;
  if (strcmp(what, "xor") == 0) return old ^ a;
  if (strcmp(what, "exch") == 0) return a;
  if (strcmp(what, "cas") == 0) return old == a ? operand(m, t, i, first + 1) : old;
  fail(m, t, "atomic %s", what);
}

static void atomic(machine *m, thread *t, const ptx_insn *i) {
  unsigned first = i->op == OP_red ? 0 : 1;
  size_t size = ptx_types[i->type].bits / 8;
  uint8_t *at = locate(m, t, i, &i->operand[first], size);
  uint64_t old = 0;
  memcpy(&old, at, size);
  uint64_t fresh = atomic_value(m, t, i, old, first + 1);
  memcpy(at, &fresh, size);
  if (first == 1) answer(m, t, i, old);
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static void enter(machine *m, thread *t, const ptx_insn *call) {
  const ptx_function *callee =
      (const ptx_function *)m->module->functions.data + call->operand[PTX_OPERANDS - 1].symbol;
  if (t->depth + 1 == CALL_DEPTH) fail(m, t, "calls nest too deep");
  frame *to = &t->frame[t->depth + 1];
  const uint32_t *formals = callee->formals.data;
  *to = (frame){.function = callee, .call = call, .registers = calloc(callee->registers.count + 1, 8)};
  if (to->registers == NULL) abort();
  for (unsigned k = call->result_count; k < call->operand_count; k++)
    to->registers[formals[k]] = read(m, t, &call->operand[k], T_b64);
  t->depth++;
}

/* A block's last thread ends: by then the block has waited for all that others did in its shared memory. */
static void end_thread(machine *m, thread *t) {
  block *b = t->block;
  t->state = ENDED;
  if (--b->unended == 0 && b->visitors >= b->waits)
    fail(m, t, "block %u of the cluster ends, and others might still go to its shared memory", (unsigned)b->rank);
}

/* Out of a function; out of the entry, the thread's end. */
static void leave(machine *m, thread *t) {
  frame *f = &t->frame[t->depth];
  if (f->call == NULL) {
    end_thread(m, t);
    return;
  }
  const uint32_t *formals = f->function->formals.data;
  uint64_t *registers = f->registers;
  const ptx_insn *call = f->call;
  t->depth--;
  for (unsigned k = 0; k < call->result_count; k++)
    write(m, t, &call->operand[k], registers[formals[k]], 64);
  free(registers);
  t->frame[t->depth].pc++;
}

/* ---- what the threads of a warp and a block do together ---------------------------------------------------------- */

/* What a thread offers at a shuffle or vote, and whom it waits for. */
static void offer(machine *m, thread *t, const ptx_insn *i) {
  t->offered = i->op == OP_shfl ? operand_as(m, t, i, i->result_count == 2 ? 2 : 1, T_b32)
                                : operand_as(m, t, i, 1, T_pred);
  t->state = WAITS_WARP;
}

static uint32_t members(machine *m, const thread *t, const ptx_insn *i) {
  if (i->op == OP_bar) return (uint32_t)operand_as(m, t, i, 0, T_b32);
  return (uint32_t)operand_as(m, t, i, i->operand_count - 1u, T_b32);
}

static const ptx_insn *current(const thread *t) {
  const frame *f = &t->frame[t->depth];
  return (const ptx_insn *)f->function->insns.data + f->pc;
}

static uint32_t shuffle_source(const ptx_insn *i, uint32_t lane, uint32_t b, uint32_t c, int *inside) {
  uint32_t bound = c & 31, segment = (c >> 8) & 31;
  uint32_t most = (lane & segment) | (bound & ~segment), least = lane & segment;
  int64_t j = 0;
  b &= 31;
  if (strcmp(i->words.mode, "up") == 0) j = (int64_t)lane - b, *inside = j >= (int64_t)most;
  else if (strcmp(i->words.mode, "down") == 0) j = (int64_t)lane + b, *inside = j <= (int64_t)most;
  else if (strcmp(i->words.mode, "bfly") == 0) j = lane ^ b, *inside = j <= (int64_t)most;
  else j = least | (b & ~segment), *inside = j <= (int64_t)most;
  return *inside ? (uint32_t)j : lane;
}

static void finish_shuffle(machine *m, thread *warp, thread *t, const ptx_insn *i, uint32_t mask) {
  unsigned first = i->result_count == 2 ? 2 : 1;
  int inside = 0;
  uint32_t source = shuffle_source(i, lane_of(t), (uint32_t)operand_as(m, t, i, first + 1, T_b32),
                                   (uint32_t)operand_as(m, t, i, first + 2, T_b32), &inside);
  answer(m, t, i, mask >> source & 1 ? warp[source].offered : 0x5a5a5a5a); /* not to be relied on */
  if (i->result_count == 2) write(m, t, &i->operand[1], (uint64_t)inside, 1);
}

static void finish_vote(machine *m, const thread *warp, thread *t, const ptx_insn *i, uint32_t mask) {
  uint32_t ballot = 0;
  for (uint32_t lane = 0; lane < WARP; lane++)
    if (mask >> lane & 1 && warp[lane].offered & 1) ballot |= 1u << lane;
  if (strcmp(i->words.mode, "ballot") == 0) answer(m, t, i, ballot);
  else if (strcmp(i->words.mode, "any") == 0) answer(m, t, i, ballot != 0);
  else if (strcmp(i->words.mode, "all") == 0) answer(m, t, i, ballot == mask);
  else fail(m, t, "vote.%s", i->words.mode);
}

/* Lets a thread's warp go on where all that it waits for are there. 1 if it did. */
static int meet_warp(machine *m, thread *t) {
  const ptx_insn *i = current(t);
  uint32_t mask = members(m, t, i), first = t->linear - lane_of(t);
  thread *warp = t->block->threads + first;
  if ((mask >> lane_of(t) & 1) == 0) fail(m, t, "the thread is not in its own mask");
  for (uint32_t lane = 0; lane < WARP; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    if (first + lane >= m->thread_count || warp[lane].state == ENDED) mask &= ~(1u << lane);
    else if (warp[lane].state != WAITS_WARP || current(&warp[lane]) != i) return 0;
  }
  for (uint32_t lane = 0; lane < WARP; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    if (i->op == OP_shfl) finish_shuffle(m, warp, &warp[lane], i, mask);
    else if (i->op == OP_vote) finish_vote(m, warp, &warp[lane], i, mask);
  }
  for (uint32_t lane = 0; lane < WARP; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    warp[lane].state = RUNS;
    warp[lane].frame[warp[lane].depth].pc++;
  }
  return 1;
}

/* ---- one instruction --------------------------------------------------------------------------------------------- */

static void step(machine *m, thread *t);

static void arithmetic(machine *m, thread *t, const ptx_insn *i) {
  uint64_t a[4] = {0};
  unsigned inputs = i->operand_count - 1u;
  for (unsigned k = 0; k < inputs && k < 4; k++) {
    ptx_type type = i->type;
    if (i->op == OP_shl || i->op == OP_shr) type = k == 1 ? T_b32 : i->type;
    if (i->op == OP_shf && k == 2) type = T_b32;
    if ((i->op == OP_bfe && k > 0) || (i->op == OP_bfi && k > 1) || (i->op == OP_lop3 && k == 3)) type = T_b32;
    if (i->op == OP_mad && i->words.wide && k == 2) type = ptx_wider(i->type);
    if (i->op == OP_selp && k == 2) type = T_pred;
    if (i->op == OP_cvt) type = i->type2;
    a[k] = operand_as(m, t, i, k + 1, type);
  }
  uint64_t result = 0;
  unsigned width = 0;
  const char *wrong = ptx_compute(i, a, &t->carry, &result, &width);
  if (wrong != NULL) fail(m, t, "%s", wrong);
  write(m, t, &i->operand[0], result, width);
}

static void compare(machine *m, thread *t, const ptx_insn *i) {
  unsigned first = i->result_count == 2 ? 2 : 1;
  uint64_t a = operand(m, t, i, first), b = operand(m, t, i, first + 1);
  int holds = ptx_compare(i->words.compare, i->type, a, b);
  if (holds < 0) fail(m, t, "setp.%s of that type", i->words.compare);
  int other = !holds;
  if (i->words.logic[0] != '\0') {
    int c = (int)operand_as(m, t, i, first + 2, T_pred);
    int is_and = strcmp(i->words.logic, "and") == 0, is_or = strcmp(i->words.logic, "or") == 0;
    holds = is_and ? holds && c : is_or ? holds || c : holds != c;
    other = is_and ? other && c : is_or ? other || c : other != c;
  }
  write(m, t, &i->operand[0], (uint64_t)holds, 1);
  if (first == 2) write(m, t, &i->operand[1], (uint64_t)other, 1);
}

static void barrier(machine *m, thread *t, const ptx_insn *i) {
  int of_warp = i->words.mode[0] == 'w', reduces = i->words.mode[0] == 'r';
  if (reduces) t->offered = operand_as(m, t, i, 2, T_pred);
  if (!of_warp && i->operand_count != (reduces ? 3 : 1)) fail(m, t, "a barrier of part of the block");
  t->state = of_warp ? WAITS_WARP : WAITS_BARRIER;
}

static void pass_cluster(thread *t) {
  t->waits++;
  if (t->block->waits < t->waits) t->block->waits = t->waits;
}

/* 0 where a thread waits. */
static int cluster_barrier(machine *m, thread *t, const ptx_insn *i) {
  int has_arrived = t->arrivals > t->waits;
  if (i->words.mode[0] != 'w') {
    if (has_arrived) fail(m, t, "the thread arrives twice at a barrier of its cluster");
    if (i->words.mode[0] == 'r' && t->unreleased) fail(m, t, "an arrival that releases nothing of what the thread did");
    t->unreleased = 0;
    t->arrivals++;
    return 1;
  }
  if (!has_arrived) fail(m, t, "the thread waits at a barrier of its cluster where it has not arrived");
  if (m->meetings <= t->waits) {
    t->state = WAITS_CLUSTER;
    return 0;
  }
  pass_cluster(t);
  return 1;
}

/* 1 if the instruction is done and the next may follow. */
static int execute(machine *m, thread *t, const ptx_insn *i) {
  switch (i->op) {
  case OP_ld: load(m, t, i); return 1;
  case OP_st: store(m, t, i); return 1;
  case OP_atom:
  case OP_red: atomic(m, t, i); return 1;
  case OP_mov:
  case OP_cvta: answer(m, t, i, operand(m, t, i, 1)); return 1;
  case OP_mapa: map_address(m, t, i); return 1;
  case OP_setp: compare(m, t, i); return 1;
  case OP_fence:
  case OP_membar: return 1;
  case OP_activemask: answer(m, t, i, UINT64_C(1) << lane_of(t)); return 1;
  case OP_bra:
    t->frame[t->depth].pc =
        ((const ptx_label *)t->frame[t->depth].function->labels.data)[i->operand[0].bits].target;
    return 0;
  case OP_call: enter(m, t, i); return 0;
  case OP_ret: leave(m, t); return 0;
  case OP_exit: end_thread(m, t); return 0;
  case OP_trap: fail(m, t, "trap");
  case OP_barrier:
    if (i->words.mode[0] != '\0') return cluster_barrier(m, t, i);
    barrier(m, t, i);
    return 0;
  case OP_bar: barrier(m, t, i); return 0;
  case OP_shfl:
  case OP_vote: offer(m, t, i); return 0;
  default: arithmetic(m, t, i); return 1;
  }
}

static void step(machine *m, thread *t) {
  frame *f = &t->frame[t->depth];
  t->steps++;
  if (f->pc >= f->function->insns.count) {
    leave(m, t);
    return;
  }
  const ptx_insn *i = current(t);
  if (i->guard != 0 && (f->registers[i->guard - 1] & 1) == i->guard_negated) {
    f->pc++;
    return;
  }
  if (execute(m, t, i)) t->frame[t->depth].pc++;
}

/* ---- blocks and clusters ---------------------------------------------------------------------------------------- */

static void begin_thread(machine *m, block *b, uint32_t number) {
  thread *t = &b->threads[number];
  const uint32_t *size = m->launch->block;
  uint64_t *registers = t->frame[0].registers;
  memset(registers, 0x5a, m->entry->registers.count * sizeof *registers); /* not to be relied on */
  uint8_t *local = t->local;
  *t = (thread){.id = {number % size[0], number / size[0] % size[1], number / size[0] / size[1]},
                .linear = number,
                .block = b,
                .arrivals = 1,
                .waits = 1,
                .local = local};
  t->frame[0] = (frame){.function = m->entry, .registers = registers};
}

/* Opens a barrier at which all threads that have not ended wait. */
static int open_barrier(machine *m, block *b) {
  uint32_t waiting = 0;
  const ptx_insn *at = NULL;
  for (uint32_t n = 0; n < m->thread_count; n++) {
    thread *t = &b->threads[n];
    if (t->state == ENDED) continue;
    if (t->state != WAITS_BARRIER) return 0;
    if (at != NULL && current(t) != at) fail(m, t, "threads of a block wait at different barriers");
    at = current(t);
    waiting++;
  }
  b->barriers++;
  int any = 0, all = 1;
  for (uint32_t n = 0; n < m->thread_count; n++) {
    if (b->threads[n].state == ENDED) continue;
    any |= (int)b->threads[n].offered & 1;
    all &= (int)b->threads[n].offered & 1;
  }
  for (uint32_t n = 0; n < m->thread_count; n++) {
    thread *t = &b->threads[n];
    if (t->state == ENDED) continue;
    if (at->words.mode[0] == 'r') answer(m, t, at, (uint64_t)(at->words.logic[0] == 'o' ? any : all));
    t->state = RUNS;
    t->frame[t->depth].pc++;
  }
  return waiting > 0;
}

/* The next thread of the cluster that has not ended, from number *n on; NULL: there is none. */
static thread *next_thread(machine *m, uint32_t *n) {
  for (; *n < m->block_count * m->thread_count; ++*n) {
    thread *t = &m->blocks[*n / m->thread_count].threads[*n % m->thread_count];
    if (t->state != ENDED) return t;
  }
  return NULL;
}

/* Opens the cluster's barrier where all threads that have not ended have arrived; 0 if one has not, or none is left. */
static int open_cluster(machine *m) {
  uint32_t arrived = 0;
  thread *t;
  for (uint32_t n = 0; (t = next_thread(m, &n)) != NULL; n++, arrived++)
    if (t->arrivals <= m->meetings) return 0;
  m->meetings++;
  for (uint32_t n = 0; (t = next_thread(m, &n)) != NULL; n++) {
    if (t->state != WAITS_CLUSTER) continue;
    pass_cluster(t);
    t->state = RUNS;
    t->frame[t->depth].pc++;
  }
  return arrived > 0;
}

/* As far as the block comes without others: 1 if that is any further. */
static int run_block(machine *m, block *b) {
  int progress = 0;
  for (uint32_t n = 0; n < m->thread_count; n++) {
    thread *t = &b->threads[n];
    for (; t->state == RUNS; progress = 1) step(m, t);
    if (t->state == WAITS_WARP) progress |= meet_warp(m, t);
  }
  return progress | open_barrier(m, b);
}

static void begin_block(machine *m, block *b, uint32_t x, uint32_t y, uint32_t z) {
  memcpy(b->id, (uint32_t[]){x, y, z}, sizeof b->id);
  memset(b->shared, 0xa5, m->shared_bytes);
  memset(b->places, 0, (m->watched_end - m->watched) * sizeof *b->places);
  b->barriers = b->waits = 1;
  b->visitors = 0;
  b->unended = m->thread_count;
  for (uint32_t n = 0; n < m->thread_count; n++) begin_thread(m, b, n);
}

static void run_cluster(machine *m, uint32_t x, uint32_t y, uint32_t z) {
  m->meetings = 1;
  for (uint32_t k = 0; k < m->block_count; k++) begin_block(m, &m->blocks[k], x + k, y, z);
  int progress = 1;
  while (progress) {
    progress = 0;
    for (uint32_t k = 0; k < m->block_count; k++) progress |= run_block(m, &m->blocks[k]);
    if (!progress) progress = open_cluster(m);
  }
  uint32_t n = 0;
  const thread *left = next_thread(m, &n);
  if (left != NULL) fail(m, left, "waits for threads that never come");
}

static void run_grid(machine *m) {
  const uint32_t *grid = m->launch->grid;
  for (uint32_t z = 0; z < grid[2]; z++)
    for (uint32_t y = 0; y < grid[1]; y++)
      for (uint32_t x = 0; x < grid[0]; x += m->block_count) run_cluster(m, x, y, z);
}

static void open_block(const machine *m, block *b) {
  b->rank = (uint32_t)(b - m->blocks);
  b->threads = calloc(m->thread_count, sizeof *b->threads);
  b->shared = malloc(m->shared_bytes + 1);
  b->places = calloc(m->watched_end - m->watched + 1, sizeof *b->places);
  if (b->threads == NULL || b->shared == NULL || b->places == NULL) abort();
  for (uint32_t n = 0; n < m->thread_count; n++) {
    b->threads[n].frame[0].registers = calloc(m->entry->registers.count + 1, 8);
    b->threads[n].local = malloc(m->entry->local_bytes + 1);
    if (b->threads[n].frame[0].registers == NULL || b->threads[n].local == NULL) abort();
    memset(b->threads[n].local, 0xa5, m->entry->local_bytes + 1); /* nothing is promised of it */
  }
}

static void close_block(const machine *m, block *b) {
  for (uint32_t n = 0; n < m->thread_count; n++) {
    for (uint32_t d = 1; d <= b->threads[n].depth; d++) free(b->threads[n].frame[d].registers);
    free(b->threads[n].frame[0].registers);
    free(b->threads[n].local);
  }
  free(b->threads);
  free(b->shared);
  free(b->places);
}

static void find_watched(machine *m) {
  const ptx_symbol *symbols = m->entry->symbols.data;
  for (size_t i = 0; i < m->entry->symbols.count; i++) {
    if (symbols[i].space != SPACE_SHARED || strcmp(symbols[i].name, "hg_places") != 0) continue;
    m->watched = symbols[i].offset;
    m->watched_end = symbols[i].offset + symbols[i].byte_count;
  }
}

int ptx_run(const ptx_module *module, const char *entry, const ptx_launch *launch, char *why, size_t why_bytes) {
  uint32_t block_count = ptx_cluster_blocks(module, entry);
  if (launch->grid[0] % block_count != 0) {
    snprintf(why, why_bytes, "a grid of %u blocks is not of clusters of %u", (unsigned)launch->grid[0],
             (unsigned)block_count);
    return 0;
  }
  machine *m = calloc(1, sizeof *m);
  if (m == NULL) abort();
  m->module = module;
  m->entry = ptx_find(module, entry);
  m->launch = launch;
  m->shared_bytes = (module->shared_bytes + 15) / 16 * 16 + launch->shared_bytes;
  m->block_count = block_count;
  m->thread_count = launch->block[0] * launch->block[1] * launch->block[2];
  m->why = why;
  m->why_bytes = why_bytes;
  find_watched(m);
  for (uint32_t k = 0; k < block_count; k++) open_block(m, &m->blocks[k]);
  int done = 0;
  if (setjmp(m->failed) == 0) {
    run_grid(m);
    done = 1;
  }
  for (uint32_t k = 0; k < block_count; k++) close_block(m, &m->blocks[k]);
  free(m);
  return done;
}
