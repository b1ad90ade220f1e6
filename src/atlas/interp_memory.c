/* interp_memory.c - addresses, loads, stores and atomics of the reference machine. Every access is checked; one that is
 * out of bounds or misaligned reads 0 or is dropped, and is noted as a fault. */
#include "atlas/arith.h"
#include "atlas/insn.h"
#include "atlas/machine.h"
#include "base/bytes.h"
#include "hologram/classes.h"

#include <stdio.h>

static void memory_fault(machine *m, lane *l, hg_fault_kind kind, const char *name, int64_t index, uint64_t extent) {
  hg_fault fault = {.kind = kind, .index = index, .extent = extent > INT64_MAX ? INT64_MAX : (int64_t)extent};
  snprintf(fault.buffer, sizeof fault.buffer, "%s", name);
  atlas_machine_fault(m, l, fault);
}

static int64_t index_of(const machine *m, const lane *l, uint32_t reg, int64_t displacement) {
  atlas_type type;
  uint64_t index = atlas_machine_register(m, l, reg, &type);
  return atlas_index_sum(type, index, displacement);
}

/* Bytes [index, index + size) of a span, `size` aligned. */
static uint8_t *byte_address(machine *m, lane *l, atlas_span span, const char *name, int64_t index, uint32_t size) {
  if (index < 0 || span.byte_count < size || (uint64_t)index > span.byte_count - size) {
    memory_fault(m, l, HG_FAULT_OUT_OF_BOUNDS, name, index, span.byte_count);
    return NULL;
  }
  if ((uint64_t)index % size != 0) {
    memory_fault(m, l, HG_FAULT_MISALIGNED, name, index, size);
    return NULL;
  }
  return span.memory + index;
}

static uint8_t *phi_address(machine *m, lane *l, const atlas_operand *o, uint32_t size) {
  static const uint32_t extents[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  const uint8_t regs[3] = {o->reg, o->reg2, o->reg3};
  const int64_t constants[3] = {(int64_t)(o->bits & 0xffff), (int64_t)(o->bits >> 16 & 0xffff),
                                (int64_t)(o->bits >> 32)};
  int64_t part[3];
  for (int i = 0; i < 3; i++) {
    part[i] = o->phi_registers >> i & 1 ? index_of(m, l, regs[i], 0) : constants[i];
    if (part[i] < 0 || part[i] >= extents[i]) {
      memory_fault(m, l, HG_FAULT_OUT_OF_BOUNDS, "phi", part[i], extents[i]);
      return NULL;
    }
  }
  atlas_span boundary = {m->launch->boundary, ATLAS_BOUNDARY_POOL_BYTES};
  int64_t offset = atlas_boundary_offset((uint32_t)part[0], (uint32_t)part[1], (uint32_t)part[2]);
  return byte_address(m, l, boundary, "phi", offset, size);
}

static uint8_t *table_address(machine *m, lane *l, const atlas_operand *o, uint32_t size) {
  const atlas_symbol *table = atlas_symbol_at(m->program, o->symbol);
  int64_t entry = index_of(m, l, o->reg, 0);
  if (entry < 0 || entry >= table->count) {
    memory_fault(m, l, HG_FAULT_OUT_OF_BOUNDS, table->name, entry, table->count);
    return NULL;
  }
  return byte_address(m, l, m->launch->arguments[o->symbol].table[entry], table->name, index_of(m, l, o->reg2, 0),
                      size);
}

uint64_t atlas_machine_extent(const machine *m, uint32_t symbol) {
  uint32_t size = atlas_bytes((atlas_type)atlas_symbol_at(m->program, symbol)->type);
  return m->launch->arguments[symbol].span.byte_count / size;
}

/* Where the access goes, or NULL after noting its fault. */
static uint8_t *resolve(machine *m, lane *l, const atlas_insn *insn) {
  const atlas_operand *o = atlas_address_of(insn);
  uint32_t size = atlas_bytes((atlas_type)insn->type);
  if (o->mode == ATLAS_ADDRESS_PHI) return phi_address(m, l, o, size);
  if (o->mode == ATLAS_ADDRESS_TABLE) return table_address(m, l, o, size);
  const atlas_symbol *symbol = atlas_symbol_at(m->program, o->symbol);
  int64_t index = o->mode == ATLAS_ADDRESS_INDEXED ? index_of(m, l, o->reg, (int64_t)o->bits) : (int64_t)o->bits;
  atlas_span span = m->launch->arguments[o->symbol].span;
  if (symbol->kind == ATLAS_SYMBOL_POOL) return byte_address(m, l, span, symbol->name, index, size);
  if (symbol->kind == ATLAS_SYMBOL_SHARED)
    span = (atlas_span){m->shared + m->shared_offset[o->symbol], (uint64_t)symbol->count * size};
  if (symbol->kind == ATLAS_SYMBOL_LOCAL)
    span = (atlas_span){l->local + m->local_offset[o->symbol], (uint64_t)symbol->count * size};
  uint64_t extent = span.byte_count / size;
  if (index < 0 || (uint64_t)index >= extent) {
    memory_fault(m, l, HG_FAULT_OUT_OF_BOUNDS, symbol->name, index, extent);
    return NULL;
  }
  return span.memory + (uint64_t)index * size;
}

uint64_t atlas_constant_at(const atlas_program *program, const atlas_symbol *table, int64_t index, int *ok) {
  uint32_t size = atlas_bytes((atlas_type)table->type);
  *ok = index >= 0 && index < table->count;
  if (!*ok) return 0;
  return hg_load_le((const uint8_t *)program->constants.data + table->const_offset + (uint64_t)index * size, size);
}

static uint64_t load_constant(machine *m, lane *l, const atlas_insn *insn) {
  const atlas_operand *o = &insn->operand[1];
  const atlas_symbol *table = atlas_symbol_at(m->program, o->symbol);
  int64_t index = o->mode == ATLAS_ADDRESS_INDEXED ? index_of(m, l, o->reg, (int64_t)o->bits) : (int64_t)o->bits;
  int ok;
  uint64_t value = atlas_constant_at(m->program, table, index, &ok);
  if (!ok) memory_fault(m, l, HG_FAULT_OUT_OF_BOUNDS, table->name, index, table->count);
  return value;
}

uint64_t atlas_machine_load(machine *m, lane *l, const atlas_insn *insn) {
  if (insn->op == ATLAS_OP_ldc) return load_constant(m, l, insn);
  const uint8_t *address = resolve(m, l, insn);
  if (address == NULL) return 0;
  uint64_t value = atlas_read_value(address, atlas_bytes((atlas_type)insn->type));
  return insn->type == ATLAS_bool ? value != 0 : value;
}

void atlas_machine_store(machine *m, lane *l, const atlas_insn *insn) {
  uint8_t *address = resolve(m, l, insn);
  if (address == NULL) return;
  atlas_write_value(address, atlas_bytes((atlas_type)insn->type), atlas_machine_source(m, l, &insn->operand[1]));
}

uint64_t atlas_machine_atomic(machine *m, lane *l, const atlas_insn *insn) {
  uint8_t *address = resolve(m, l, insn);
  if (address == NULL) return 0;
  atlas_type type = (atlas_type)insn->type;
  uint32_t size = atlas_bytes(type);
  uint64_t old = atlas_read_value(address, size);
  uint64_t a = atlas_machine_source(m, l, &insn->operand[2]);
  uint64_t b = insn->op == ATLAS_OP_atom_cas ? atlas_machine_source(m, l, &insn->operand[3]) : 0;
  atlas_write_value(address, size,
                    atlas_update(insn->op, type, old, a, b)); /* lanes run one at a time: none comes between */
  return old;
}
