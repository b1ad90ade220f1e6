/* ptx_memory.c - memory of the machine: what an address leads to and who may go there, races for shared memory, loads,
 * stores and atomics. */
#include "ptx_state.h"

#include "ptx_value.h"

#include <string.h>

enum { RANK_SHIFT = 24 }; /* an address in the cluster: 1 + the block's rank from this bit on; 0: the own block */

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static uint8_t *in_module(const ptx_machine *m, uint64_t address, size_t byte_count) {
  const ptx_symbol *symbols = m->module->symbols.data;
  for (size_t i = 0; i < m->module->symbols.count; i++) {
    uint64_t first = (uint64_t)(uintptr_t)symbols[i].bytes;
    if (symbols[i].bytes != NULL && address >= first && address - first + byte_count <= symbols[i].byte_count)
      return symbols[i].bytes + (address - first);
  }
  return NULL;
}

/* Of a block that has begun for sure, and will not have ended by then: end_thread looks at the latter. */
static void visit(ptx_machine *m, const ptx_thread *t, ptx_block *to) {
  if (to == t->block) return;
  if (t->waits == 1) ptx_fail(m, t, "block %u of the cluster might not have begun", (unsigned)to->rank);
  if (to->unended == 0) ptx_fail(m, t, "block %u of the cluster: the block has ended", (unsigned)to->rank);
  if (to->visitors < t->arrivals) to->visitors = t->arrivals;
}

/* The block of an address in the cluster; NULL: there is none. */
static ptx_block *block_at(ptx_machine *m, const ptx_thread *t, uint64_t address) {
  uint64_t rank = address >> RANK_SHIFT;
  return rank == 0 ? t->block : rank <= m->block_count ? &m->blocks[rank - 1] : NULL;
}

static uint8_t *locate_in_cluster(ptx_machine *m, const ptx_thread *t, uint64_t address, size_t byte_count) {
  ptx_block *to = block_at(m, t, address);
  address %= 1u << RANK_SHIFT;
  if (to == NULL || address + byte_count > m->shared_bytes) return NULL;
  visit(m, t, to);
  return to->shared + address;
}

static uint8_t *locate(ptx_machine *m, ptx_thread *t, const ptx_insn *i, const ptx_operand *o, size_t byte_count) {
  const ptx_frame *f = &t->frame[t->depth];
  ptx_space space = i->words.space;
  uint64_t base = o->base == O_REG      ? f->registers[o->reg[0]]
                  : o->base == O_SYMBOL ? ptx_symbol_address(m, f->function, o->symbol)
                                        : 0;
  uint64_t address = base + o->bits;
  uint8_t *bytes = NULL;
  if (space == SPACE_SHARED || space == SPACE_CLUSTER) address = (uint32_t)address;
  if (address % byte_count != 0)
    ptx_fail(m, t, "%zu bytes at 0x%llx: not aligned", byte_count, (unsigned long long)address);
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
    ptx_fail(m, t, "%zu bytes at 0x%llx of space %d are out of reach", byte_count, (unsigned long long)address,
             (int)space);
  return bytes;
}

void ptx_prefetch(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  const ptx_operand *at = &i->operand[0];
  uint64_t byte_count = i->operand[1].bits;
  if (i->operand_count != 2 || at->kind != O_ADDRESS || at->base != O_REG || i->operand[1].kind != O_IMM)
    ptx_fail(m, t, "a prefetch of another form");
  uint64_t address = t->frame[t->depth].registers[at->reg[0]] + at->bits;
  if (address % 16 != 0 || byte_count % 16 != 0 || byte_count == 0)
    ptx_fail(m, t, "a prefetch of %llu bytes at 0x%llx: not aligned", (unsigned long long)byte_count,
             (unsigned long long)address);
  if (m->launch->reach(m->launch->user, address, byte_count) == NULL)
    ptx_fail(m, t, "a prefetch of %llu bytes at 0x%llx is out of reach", (unsigned long long)byte_count,
             (unsigned long long)address);
}

/* ---- races ------------------------------------------------------------------------------------------------------- */

/* Whether a barrier lies between an access and what a thread does now: one of the block of both, or one of the cluster
 * at which the former thread had yet to arrive and for which the latter has waited. */
static int is_before(const ptx_access *a, const ptx_thread *t) {
  return (a->block == t->block->rank && a->barriers < t->block->barriers) || a->arrivals < t->waits;
}

static int may_race(const ptx_access *a, const ptx_thread *t) {
  return !is_before(a, t) && (a->block != t->block->rank || a->thread != t->linear);
}

/* One reader more: from here on all of them count as the one that the fewest barriers put before others. */
static ptx_access joined(const ptx_access *old, const ptx_access *now) {
  int is_near = old->block == now->block;
  return (ptx_access){.block = is_near ? now->block : PTX_SEVERAL,
                      .thread = PTX_SEVERAL,
                      .barriers = now->barriers,
                      .arrivals = old->arrivals > now->arrivals ? old->arrivals : now->arrivals};
}

/* Two threads, one of them writing, with no barrier between. */
static void watch(ptx_machine *m, ptx_thread *t, const ptx_insn *i, const uint8_t *at, size_t byte_count, int writes) {
  if (i->words.space != SPACE_SHARED && i->words.space != SPACE_CLUSTER) return;
  const ptx_block *b = t->block;
  if (i->words.space == SPACE_CLUSTER)
    for (b = m->blocks; at < b->shared || at >= b->shared + m->shared_bytes;) b++;
  size_t first = (size_t)(at - b->shared), end = first + byte_count;
  if (end > m->watched_end) end = m->watched_end;
  const ptx_access now = {(uint16_t)t->block->rank, (uint16_t)t->linear, t->block->barriers, t->arrivals};
  for (size_t k = first > m->watched ? first : m->watched; k < end; k++) {
    ptx_place *p = &b->places[k - m->watched];
    const ptx_access *other = may_race(&p->write, t) ? &p->write : &p->read;
    int races = may_race(other, t);
    if (races && (writes || other == &p->write))
      ptx_fail(m, t, "a race with thread %d of block %d of the cluster on byte %zu of shared memory",
               other->thread == PTX_SEVERAL ? -1 : other->thread,
               other->block == PTX_SEVERAL ? -1 : other->block, k);
    t->unreleased = 1;
    if (writes) p->write = now;
    else p->read = races ? joined(&p->read, &now) : now;
  }
}

void ptx_find_watched(ptx_machine *m) {
  const ptx_symbol *symbols = m->entry->symbols.data;
  for (size_t i = 0; i < m->entry->symbols.count; i++) {
    if (symbols[i].space != SPACE_SHARED || strcmp(symbols[i].name, "hg_places") != 0) continue;
    m->watched = symbols[i].offset;
    m->watched_end = symbols[i].offset + symbols[i].byte_count;
  }
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

void ptx_load(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  size_t size = ptx_types[i->type].bits / 8;
  const uint8_t *from = locate(m, t, i, &i->operand[1], size * i->words.vector);
  watch(m, t, i, from, size * i->words.vector, 0);
  for (unsigned k = 0; k < i->words.vector; k++) {
    uint64_t bits = 0;
    memcpy(&bits, from + k * size, size);
    if (ptx_types[i->type].kind == 's') bits = (uint64_t)ptx_signed(bits, (unsigned)size * 8); /* fills the register */
    const ptx_operand *to = &i->operand[0];
    uint32_t reg = to->kind == O_VECTOR ? to->reg[k] : to->reg[0];
    if ((to->kind != O_VECTOR && to->kind != O_REG) || reg == PTX_NO_REGISTER)
      ptx_fail(m, t, "a load into no register");
    if (to->kind == O_VECTOR && to->count != i->words.vector) ptx_fail(m, t, "a vector of another length");
    t->frame[t->depth].registers[reg] = bits;
  }
}

void ptx_store(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  size_t size = ptx_types[i->type].bits / 8;
  uint8_t *to = locate(m, t, i, &i->operand[0], size * i->words.vector);
  const ptx_operand *from = &i->operand[1];
  watch(m, t, i, to, size * i->words.vector, 1);
  for (unsigned k = 0; k < i->words.vector; k++) {
    uint64_t bits =
        from->kind == O_VECTOR ? ptx_part(&t->frame[t->depth], from, k) : ptx_read(m, t, from, i->type);
    memcpy(to + k * size, &bits, size);
  }
}

static uint64_t atomic_value(ptx_machine *m, ptx_thread *t, const ptx_insn *i, uint64_t old, unsigned first) {
  const char *what = i->words.atomic;
  uint64_t a = ptx_input(m, t, i, first);
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
  if (strcmp(what, "cas") == 0) return old == a ? ptx_input(m, t, i, first + 1) : old;
  ptx_fail(m, t, "atomic %s", what);
}

void ptx_atomic(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  unsigned first = i->op == OP_red ? 0 : 1;
  size_t size = ptx_types[i->type].bits / 8;
  uint8_t *at = locate(m, t, i, &i->operand[first], size);
  uint64_t old = 0;
  memcpy(&old, at, size);
  uint64_t fresh = atomic_value(m, t, i, old, first + 1);
  memcpy(at, &fresh, size);
  if (first == 1) ptx_answer(m, t, i, old);
}

void ptx_map_address(ptx_machine *m, ptx_thread *t, const ptx_insn *i) {
  uint64_t address = ptx_input(m, t, i, 1), rank = ptx_input(m, t, i, 2);
  if (address >> RANK_SHIFT != 0) ptx_fail(m, t, "mapa of 0x%llx: not of the block", (unsigned long long)address);
  ptx_answer(m, t, i, ((rank < m->block_count ? rank : PTX_CLUSTER_BLOCKS) + 1) << RANK_SHIFT | address);
}
