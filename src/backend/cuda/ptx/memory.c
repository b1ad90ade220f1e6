/* memory.c - loads, stores and atomics. Every access is checked unless it is proven to lie in bounds; addresses are
 * exact sums in 64 bits. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/functions.h"
#include "atlas/value.h"
#include "base/bytes.h"
#include "compiler/aliasing.h"

#include <stdio.h>

enum { NEAR = 1 << 20 };

typedef struct place {
  const char *space;     /* ".global", ".shared" */
  ptx_name address;      /* without the brackets, an offset included */
  ptx_name back;         /* where a faulting access goes on */
  int may_fault;
  ptx_name absent;       /* a predicate: the access is left out; "" where it is not */
} place;

static const atlas_symbol *symbol_of(const ptx *p, const ssa_insn *insn) {
  return insn->symbol & SSA_LIBRARY ? atlas_symbol_at(&atlas_functions, insn->symbol & ~(uint32_t)SSA_LIBRARY)
                                    : atlas_symbol_at(p->program, insn->symbol);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static ptx_fault_site out_of_bounds(const ssa_insn *insn, uint32_t symbol, ptx_name index, uint8_t index_type,
                                    int64_t displacement, ptx_name extent) {
  return (ptx_fault_site){.insn = insn->insn,
                          .symbol = symbol,
                          .kind = HG_FAULT_OUT_OF_BOUNDS,
                          .index_type = index_type,
                          .displacement = displacement,
                          .index = index,
                          .extent = extent};
}

/* The destination that a faulting access sets to 0; stores have none. */
static void check(ptx *p, uint32_t value, ptx_name failed, const ptx_fault_site *site, place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_store = (atlas_op_flags(insn->op) & ATLAS_STORE) != 0;
  ptx_name d = is_store ? failed : hg_ptx_register(p, value);
  hg_ptx_faults_now(p);
  if (!at->may_fault) at->back = hg_ptx_label(p);
  at->may_fault = 1;
  hg_ptx_fault_if(p, failed, site, is_store ? NULL : &d, insn->type, at->back);
}

/* Without a branch, so that the accesses of a block follow each other closely. */
static void leave_out(ptx *p, ptx_name failed, const ptx_fault_site *site, place *at) {
  at->absent = failed;
  hg_ptx_fault_later(p, failed, site);
}

#define LARGE (INT64_C(1) << 62)

/* A sum that wraps looks
 * like a number below the extent only for a u64 index near 2^64 with a displacement upwards, and for displacements
 * of 2^62 and more. */
ptx_name hg_ptx_sum_is_outside(ptx *p, ptx_name index, uint8_t type, int64_t displacement, ptx_name extent,
                               ptx_name *sum) {
  ptx_name failed = hg_ptx_new(p, PTX_PREDICATE);
  *sum = index;
  if (displacement != 0) {
    *sum = hg_ptx_new(p, PTX_64);
    PTX(p, "add.s64", *sum, index, hg_ptx_number((uint64_t)displacement));
  }
  PTX(p, "setp.ge.u64", failed, *sum, extent);
  if (type == ATLAS_u64 && displacement > 0) PTX(p, "setp.ge.or.u64", failed, index, extent, failed);
  else if (displacement <= -LARGE && type != ATLAS_u64) PTX(p, "setp.gt.or.s64", failed, *sum, index, failed);
  else if (displacement >= LARGE) PTX(p, "setp.lt.or.s64", failed, *sum, index, failed);
  return failed;
}

/* Bytes [sum, sum + size) of byte_count, size aligned. */
static void check_bytes(ptx *p, uint32_t value, uint32_t symbol, ptx_name index, uint8_t index_type,
                        int64_t displacement, ptx_name byte_count, place *at, ptx_name *sum) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t size = atlas_bytes((atlas_type)insn->type);
  ptx_fault_site site = out_of_bounds(insn, symbol, index, index_type, displacement, byte_count);
  ptx_name failed = hg_ptx_sum_is_outside(p, index, index_type, displacement, byte_count, sum);
  if (size > 1) {
    ptx_name last = hg_ptx_new(p, PTX_64);
    PTX(p, "sub.s64", last, byte_count, hg_ptx_number(size));
    PTX(p, "setp.gt.or.s64", failed, *sum, last, failed);
  }
  check(p, value, failed, &site, at);
  if (size == 1) return;
  ptx_name low = hg_ptx_new(p, PTX_64), crooked = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "and.b64", low, *sum, hg_ptx_number(size - 1));
  PTX(p, "setp.ne.s64", crooked, low, hg_ptx_number(0));
  site.kind = HG_FAULT_MISALIGNED;
  site.extent = hg_ptx_number(size);
  check(p, value, crooked, &site, at);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

ptx_name hg_ptx_plus(ptx_name base, int64_t bytes) {
  return bytes == 0 ? base : hg_ptx_name("%s+%lld", base.text, (long long)bytes);
}

static int is_in_set(const uint64_t set[4], uint32_t number) { return set[number / 64] >> number % 64 & 1; }

/* Tables are padded to multiples of 8 bytes. */
static uint32_t table_words(const atlas_symbol *s) {
  return (s->count * atlas_bytes((atlas_type)s->type) + 7) / 8;
}

/* The function library's tables lie in one array, so that one address serves all that have one index. */
static uint32_t library_offset(const ptx *p, uint32_t symbol) {
  uint32_t words = 0;
  for (uint32_t s = 0; s < symbol; s++)
    if (is_in_set(p->library_used, s)) words += table_words(atlas_symbol_at(&atlas_functions, s));
  return 8 * words;
}

/* base + sum * size; the displacement is the access's own offset where it fits, so that addresses are shared. */
static ptx_name global_address(ptx *p, uint32_t value, ptx_name base, ptx_name index, ptx_name sum) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t size = atlas_bytes((atlas_type)insn->type);
  int is_near = (int64_t)insn->bits > -NEAR && (int64_t)insn->bits < NEAR;
  int64_t bytes = is_near ? (int64_t)insn->bits * (int64_t)size : 0;
  if (insn->symbol & SSA_LIBRARY) bytes += library_offset(p, insn->symbol & ~(uint32_t)SSA_LIBRARY);
  if (insn->mode == ATLAS_ADDRESS_UNIFORM && is_near) return hg_ptx_plus(base, bytes);
  ptx_name address = hg_ptx_new(p, PTX_64), offset = hg_ptx_new(p, PTX_64);
  const ssa_insn *arg = insn->mode == ATLAS_ADDRESS_INDEXED ? ptx_insn(p, ptx_arg(p, value, 0)) : NULL;
  if (is_near && arg->op != SSA_CONST && hg_ptx_class_of(arg->type) == PTX_32) {
    PTX(p, hg_ptx_is_signed(arg->type) ? "mad.wide.s32" : "mad.wide.u32", address,
        hg_ptx_register(p, ptx_arg(p, value, 0)), hg_ptx_number(size), base);
    return hg_ptx_plus(address, bytes);
  }
  PTX(p, "shl.b64", offset, is_near ? index : sum, hg_ptx_number(ptx_log2(size)));
  PTX(p, "add.s64", address, base, offset);
  return hg_ptx_plus(address, bytes);
}

/* The sum is in bounds, so its low half is all of it. */
static ptx_name shared_address(ptx *p, uint32_t value, ptx_name base, ptx_name sum) {
  ptx_name low = hg_ptx_new(p, PTX_32), address = hg_ptx_new(p, PTX_32);
  PTX(p, "cvt.u32.u64", low, sum);
  PTX(p, "mad.lo.u32", address, low, hg_ptx_number(atlas_bytes((atlas_type)ptx_insn(p, value)->type)), base);
  return address;
}

/* Where the elements of a symbol begin, those of a library's table library_offset further on, and how many there are.
 */
ptx_name hg_ptx_base_of(ptx *p, const ssa_insn *insn, ptx_name *extent) {
  const atlas_symbol *symbol = symbol_of(p, insn);
  if (symbol->kind == ATLAS_SYMBOL_BUFFER) {
    ptx_name base = hg_ptx_field(p, PTX_64, ptx_parameter_offset(p, insn->symbol));
    *extent = hg_ptx_field(p, PTX_64, ptx_parameter_offset(p, insn->symbol) + 8);
    return base;
  }
  int is_shared = symbol->kind == ATLAS_SYMBOL_SHARED, is_library = (insn->symbol & SSA_LIBRARY) != 0;
  ptx_name base = hg_ptx_new(p, is_shared ? PTX_32 : PTX_64);
  *extent = hg_ptx_number(symbol->count);
  if (is_shared) hg_ptx_put(p, "\tmov.u32 %s, hg_shared+%u;\n", base.text, (unsigned)p->shared_offset[insn->symbol]);
  else if (is_library) hg_ptx_put(p, "\tmov.u64 %s, %s_f;\n", base.text, p->options->name);
  else hg_ptx_put(p, "\tmov.u64 %s, %s_c%u;\n", base.text, p->options->name, (unsigned)insn->symbol);
  return base;
}

/* A function does not read past its tables; this makes it safe all the same. */
static void library_place(ptx *p, uint32_t value, ptx_name base, ptx_name index, uint8_t index_type, ptx_name extent,
                          place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name clamped = hg_ptx_new(p, PTX_64), sum;
  hg_ptx_sum_is_outside(p, index, index_type, (int64_t)insn->bits, extent, &sum);
  PTX(p, "min.u64", clamped, sum, hg_ptx_number(symbol_of(p, insn)->count - 1));
  ptx_name offset = hg_ptx_new(p, PTX_64);
  at->address = hg_ptx_new(p, PTX_64);
  PTX(p, "shl.b64", offset, clamped, hg_ptx_number(ptx_log2(atlas_bytes((atlas_type)insn->type))));
  PTX(p, "add.s64", at->address, base, offset);
  at->address = hg_ptx_plus(at->address, library_offset(p, insn->symbol & ~(uint32_t)SSA_LIBRARY));
}

/* Buffers, shared memory and constant tables: elements. */
static void element_place(ptx *p, uint32_t value, place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_indexed = insn->mode == ATLAS_ADDRESS_INDEXED, is_shared = symbol_of(p, insn)->kind == ATLAS_SYMBOL_SHARED;
  int64_t displacement = (int64_t)insn->bits;
  ptx_name index = is_indexed ? hg_ptx_wide(p, ptx_arg(p, value, 0)) : hg_ptx_number(0), sum = index, extent;
  uint8_t index_type = is_indexed ? ptx_insn(p, ptx_arg(p, value, 0))->type : ATLAS_i64;
  ptx_name base = hg_ptx_base_of(p, insn, &extent);
  int is_proven = p->analysis.in_bounds[value] || p->access[value] != PTX_CHECKED;
  if (insn->symbol & SSA_LIBRARY && !is_proven) {
    library_place(p, value, base, index, index_type, extent, at);
    return;
  }
  if (!is_proven) {
    ptx_name failed = hg_ptx_sum_is_outside(p, index, index_type, displacement, extent, &sum);
    ptx_fault_site site = out_of_bounds(insn, insn->symbol, index, index_type, displacement, extent);
    if (atlas_op_flags(insn->op) & ATLAS_ATOMIC) check(p, value, failed, &site, at);
    else leave_out(p, failed, &site, at);
  } else if (displacement != 0) {
    sum = hg_ptx_new(p, PTX_64);
    PTX(p, "add.s64", sum, index, hg_ptx_number((uint64_t)displacement));
  }
  if (is_shared) at->space = ".shared";
  at->address = is_shared ? shared_address(p, value, base, sum) : global_address(p, value, base, index, sum);
}

static void pool_place(ptx *p, uint32_t value, place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_indexed = insn->mode == ATLAS_ADDRESS_INDEXED;
  ptx_name index = is_indexed ? hg_ptx_wide(p, ptx_arg(p, value, 0)) : hg_ptx_number(0), sum;
  uint8_t type = is_indexed ? ptx_insn(p, ptx_arg(p, value, 0))->type : ATLAS_i64;
  ptx_name base = hg_ptx_field(p, PTX_64, ptx_parameter_offset(p, insn->symbol));
  ptx_name byte_count = hg_ptx_field(p, PTX_64, ptx_parameter_offset(p, insn->symbol) + 8);
  check_bytes(p, value, insn->symbol, index, type, (int64_t)insn->bits, byte_count, at, &sum);
  at->address = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", at->address, base, sum);
}

static void table_place(ptx *p, uint32_t value, place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t entry_arg = ptx_arg(p, value, 0), offset_arg = ptx_arg(p, value, 1);
  ptx_name entry = hg_ptx_wide(p, entry_arg), offset = hg_ptx_wide(p, offset_arg), sum;
  ptx_name count = hg_ptx_number(symbol_of(p, insn)->count), failed = hg_ptx_new(p, PTX_PREDICATE);
  ptx_fault_site site = out_of_bounds(insn, insn->symbol, entry, ptx_insn(p, entry_arg)->type, 0, count);
  PTX(p, "setp.ge.u64", failed, entry, count);
  check(p, value, failed, &site, at);
  ptx_name row = hg_ptx_new(p, PTX_64), base = hg_ptx_new(p, PTX_64), byte_count = hg_ptx_new(p, PTX_64);
  PTX(p, "shl.b64", row, entry, hg_ptx_number(4));
  PTX(p, "add.s64", row, row, hg_ptx_field(p, PTX_64, ptx_parameter_offset(p, insn->symbol)));
  hg_ptx_put(p, "\tld.global.nc.v2.b64 {%s, %s}, [%s];\n", base.text, byte_count.text, row.text);
  check_bytes(p, value, insn->symbol, offset, ptx_insn(p, offset_arg)->type, 0, byte_count, at, &sum);
  at->address = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", at->address, base, sum);
}

static void phi_place(ptx *p, uint32_t value, place *at) {
  static const uint32_t extent[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  static const uint32_t step[3] = {ATLAS_CLASS_PAGES * ATLAS_CLASS_PAGE_BYTES, ATLAS_CLASS_PAGE_BYTES, 1};
  const ssa_insn *insn = ptx_insn(p, value);
  const uint32_t constant[3] = {(uint32_t)(insn->bits & 0xffff), (uint32_t)(insn->bits >> 16 & 0xffff),
                                (uint32_t)(insn->bits >> 32)};
  ptx_name offset = hg_ptx_new(p, PTX_64), sum;
  uint32_t next = 0, fixed = 0;
  for (int i = 0; i < 3; i++)
    if (!(insn->phi_registers >> i & 1)) fixed += constant[i] * step[i];
  PTX(p, "mov.b64", offset, hg_ptx_number(fixed));
  for (int i = 0; i < 3; i++) {
    if (!(insn->phi_registers >> i & 1)) continue;
    uint32_t arg = ptx_arg(p, value, next++);
    ptx_name part = hg_ptx_wide(p, arg), failed = hg_ptx_new(p, PTX_PREDICATE);
    ptx_fault_site site = out_of_bounds(insn, PTX_PHI, part, ptx_insn(p, arg)->type, 0, hg_ptx_number(extent[i]));
    PTX(p, "setp.ge.u64", failed, part, hg_ptx_number(extent[i]));
    check(p, value, failed, &site, at);
    PTX(p, "mad.lo.s64", offset, part, hg_ptx_number(step[i]), offset);
  }
  check_bytes(p, value, PTX_PHI, offset, ATLAS_i64, 0, hg_ptx_number(ATLAS_BOUNDARY_POOL_BYTES), at, &sum);
  at->address = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", at->address, PTX_FIELD(p, PTX_64, boundary), sum);
  p->info->uses_boundary = 1;
}

static place find_place(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  place at = {.space = ".global"};
  if (insn->mode == ATLAS_ADDRESS_PHI) phi_place(p, value, &at);
  else if (insn->mode == ATLAS_ADDRESS_TABLE) table_place(p, value, &at);
  else if (symbol_of(p, insn)->kind == ATLAS_SYMBOL_POOL) pool_place(p, value, &at);
  else element_place(p, value, &at);
  return at;
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

/* How an element is read into its register. */
static const char *load_suffix(uint8_t type) {
  switch (type) {
  case ATLAS_i8: return ".s8";
  case ATLAS_i16: return ".s16";
  case ATLAS_u16: return ".u16";
  case ATLAS_f16:
  case ATLAS_bf16: return ".b16";
  default:
    return atlas_type_bits((atlas_type)type) == 8 ? ".u8" : atlas_type_bits((atlas_type)type) == 64 ? ".b64" : ".b32";
  }
}

static const char *store_suffix(uint8_t type) {
  static const char *const suffix[] = {".b8", ".b16", ".b32", ".b64"};
  return suffix[ptx_log2(atlas_bytes((atlas_type)type))];
}

/* A byte other than 0 and 1 reads as 1. */
void hg_ptx_make_bool(ptx *p, ptx_name d) { PTX(p, "min.u32", d, d, hg_ptx_number(1)); }

static ptx_name unless(ptx_name predicate) {
  return predicate.text[0] != '\0' ? hg_ptx_name("@!%s ", predicate.text) : predicate;
}

static void load_from(ptx *p, uint32_t value, place at) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name d = hg_ptx_register(p, value);
  int is_read_only = at.space[1] == 'g' && p->read_only[hg_location_of(p->program, insn)];
  if (at.absent.text[0] != '\0')
    PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(insn->type))).text, d, hg_ptx_number(0));
  hg_ptx_put(p, "\t%sld%s%s%s %s, [%s];\n", unless(at.absent).text, at.space, is_read_only ? ".nc" : "",
             load_suffix(insn->type), d.text, at.address.text);
  if (insn->type == ATLAS_bool) hg_ptx_make_bool(p, d);
  if (at.may_fault) hg_ptx_place(p, at.back);
}

void hg_ptx_load_checked(ptx *p, uint32_t value) { load_from(p, value, find_place(p, value)); }

void hg_ptx_load_at(ptx *p, uint32_t value, ptx_name address) {
  load_from(p, value, (place){.space = ".global", .address = address});
}

static void store(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name a = hg_ptx_exact(p, ptx_arg(p, value, insn->arg_count - 1));
  place at = find_place(p, value);
  hg_ptx_put(p, "\t%sst%s%s [%s], %s;\n", unless(at.absent).text, at.space, store_suffix(insn->type),
             at.address.text, a.text);
  if (at.may_fault) hg_ptx_place(p, at.back);
}

static void atomic(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_cas = insn->op == ATLAS_OP_atom_cas;
  const char *name = atlas_op_name((atlas_op)insn->op) + sizeof "atom." - 1, *type = hg_ptx_number_suffix(insn->type);
  int orders = insn->op == ATLAS_OP_atom_min || insn->op == ATLAS_OP_atom_max;
  if (insn->op == ATLAS_OP_atom_add) type = hg_ptx_class_of(insn->type) == PTX_64 ? ".u64" : ".u32";
  else if (!orders) type = hg_ptx_bits_suffix(hg_ptx_class_of(insn->type));
  ptx_name d = hg_ptx_register(p, value), a = hg_ptx_value(p, ptx_arg(p, value, insn->arg_count - (is_cas ? 2u : 1u)));
  ptx_name b = is_cas ? hg_ptx_value(p, ptx_arg(p, value, insn->arg_count - 1)) : a;
  place at = find_place(p, value);
  hg_ptx_put(p, "\tatom%s.%s%s %s, [%s], %s%s%s;\n", at.space, name, type, d.text, at.address.text, a.text,
             is_cas ? ", " : "", is_cas ? b.text : "");
  if (at.may_fault) hg_ptx_place(p, at.back);
}

void hg_ptx_memory(ptx *p, uint32_t value) {
  uint32_t flags = atlas_op_flags(ptx_insn(p, value)->op);
  uint8_t access = p->access[value];
  if (!p->in_vector_part) p->access[value] = PTX_CHECKED;
  if (!hg_ptx_use_element(p, value)) {
    if (flags & ATLAS_LOAD && !hg_ptx_load_grouped(p, value)) hg_ptx_load_checked(p, value);
    else if (flags & ATLAS_STORE) store(p, value);
    else if (!(flags & ATLAS_LOAD)) atomic(p, value);
  }
  p->access[value] = access;
}

/* ---- constant tables --------------------------------------------------------------------------------------------- */

static void put_words(ptx *p, const atlas_program *owner, const atlas_symbol *s, int is_first) {
  const uint8_t *data = (const uint8_t *)owner->constants.data + s->const_offset;
  for (uint32_t i = 0; i < table_words(s); i++)
    hg_ptx_append(p, &p->module, "%s%s0x%llx", is_first && i == 0 ? "" : ",", i % 8 == 0 ? "\n\t" : " ",
                  (unsigned long long)hg_load_le(data + (size_t)8 * i, 8));
}

static void put_table(ptx *p, uint32_t symbol) {
  const atlas_symbol *s = atlas_symbol_at(p->program, symbol);
  hg_ptx_append(p, &p->module, ".global .align 16 .b64 %s_c%u[%u] = {", p->options->name, (unsigned)symbol,
                (unsigned)table_words(s));
  put_words(p, p->program, s, 1);
  hg_ptx_append(p, &p->module, "};\n\n");
}

static void put_library(ptx *p) {
  uint32_t bytes = library_offset(p, (uint32_t)atlas_functions.symbols.count);
  int is_first = 1;
  if (bytes == 0) return;
  hg_ptx_append(p, &p->module, ".global .align 16 .b64 %s_f[%u] = {", p->options->name, (unsigned)(bytes / 8));
  for (uint32_t s = 0; s < atlas_functions.symbols.count; s++) {
    if (!is_in_set(p->library_used, s)) continue;
    put_words(p, &atlas_functions, atlas_symbol_at(&atlas_functions, s), is_first);
    is_first = 0;
  }
  hg_ptx_append(p, &p->module, "};\n\n");
}

void hg_ptx_tables(ptx *p) {
  for (uint32_t s = 0; s < p->program->symbols.count; s++)
    if (is_in_set(p->tables_used, s)) put_table(p, s);
  put_library(p);
}
