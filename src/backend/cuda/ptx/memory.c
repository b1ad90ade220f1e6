/* memory.c - loads, stores and atomics. Every access is checked unless it is proven to be in bounds; addresses are
 * exact 64-bit sums. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/functions.h"
#include "atlas/value.h"
#include "base/bytes.h"

#include <stdio.h>

typedef struct place {
  const gpu_place *plan;
  const char *space;     /* ".global", ".shared", ".local" */
  ptx_name address;      /* without brackets, offset included */
  ptx_name back;         /* where the code continues after a fault */
  int may_fault;
  int notes;             /* how many pending faults must be noted before its own */
  ptx_name absent;       /* a predicate: true: the access is skipped; "": it never is */
} place;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static void note_earlier(ptx *p, place *at) {
  if (at->notes) hg_ptx_faults_now(p);
  at->notes = 0;
}

/* A faulting load or atomic sets its destination to 0. */
static void branch_if_failed(ptx *p, uint32_t value, ptx_name failed, const ptx_fault_site *site, place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_store = (gpu_flags(p->plan, value) & ATLAS_STORE) != 0;
  ptx_name d = is_store ? failed : hg_ptx_register(p, value);
  note_earlier(p, at);
  if (!at->may_fault) at->back = hg_ptx_label(p);
  at->may_fault = 1;
  hg_ptx_fault_if(p, failed, site, is_store ? NULL : &d, insn->type, at->back);
}

/* Predicated instead of branched around, so that the accesses of a block have no reconvergence point between them. */
static void leave_out(ptx *p, ptx_name failed, const ptx_fault_site *site, place *at) {
  at->absent = failed;
  note_earlier(p, at);
  hg_ptx_fault_later(p, failed, site);
}

#define LARGE (INT64_C(1) << 62)

/* A sum that wraps can look like a number below the extent only for a u64 index near 2^64 with a positive displacement,
 * and for displacements of 2^62 and more. */
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

/* The last tests of an access by bytes: [sum, sum + size) is within byte_count, and sum is a multiple of size. */
static void check_bytes(ptx *p, uint32_t value, ptx_name index, ptx_name byte_count, place *at, ptx_name *sum) {
  uint32_t size = gpu_bytes(p->plan, value);
  const gpu_test *outside = &at->plan->test[at->plan->test_count - (size > 1 ? 2 : 1)], *crooked = outside + 1;
  ptx_fault_site site = {.site = outside->site, .index = index, .extent = byte_count};
  ptx_name failed = hg_ptx_sum_is_outside(p, index, site.site.index_type, site.site.displacement, byte_count, sum);
  if (size > 1) {
    ptx_name last = hg_ptx_new(p, PTX_64);
    PTX(p, "sub.s64", last, byte_count, hg_ptx_number(size));
    PTX(p, "setp.gt.or.s64", failed, *sum, last, failed);
  }
  branch_if_failed(p, value, failed, &site, at);
  if (size == 1) return;
  ptx_name low = hg_ptx_new(p, PTX_64), is_crooked = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "and.b64", low, *sum, hg_ptx_number(crooked->extent - 1));
  PTX(p, "setp.ne.s64", is_crooked, low, hg_ptx_number(0));
  site.site = crooked->site;
  site.extent = hg_ptx_number(crooked->extent);
  branch_if_failed(p, value, is_crooked, &site, at);
}

/* Tests one of the access's arguments, in 64 bits, against a constant. */
static ptx_name check_argument(ptx *p, uint32_t value, const gpu_test *test, ptx_name argument, place *at) {
  ptx_name failed = hg_ptx_new(p, PTX_PREDICATE), extent = hg_ptx_number(test->extent);
  ptx_fault_site site = {.site = test->site, .index = argument, .extent = extent};
  PTX(p, "setp.ge.u64", failed, argument, extent);
  branch_if_failed(p, value, failed, &site, at);
  return argument;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

ptx_name hg_ptx_plus(ptx_name base, int64_t bytes) {
  return bytes == 0 ? base : hg_ptx_name("%s+%lld", base.text, (long long)bytes);
}

ptx_name hg_ptx_bytes_of(ptx *p, uint32_t index, uint32_t size) {
  uint8_t type = ptx_insn(p, index)->type;
  ptx_name bytes = hg_ptx_new(p, PTX_64);
  PTX(p, hg_ptx_class_of(type) == PTX_64 ? "mul.lo.s64" : gpu_is_signed(type) ? "mul.wide.s32" : "mul.wide.u32", bytes,
      hg_ptx_register(p, index), hg_ptx_number(size));
  return bytes;
}

/* base + sum * size. The displacement becomes the instruction's own offset if it fits, so that accesses share
 * addresses. */
static ptx_name global_address(ptx *p, uint32_t value, const gpu_place *plan, ptx_name base, ptx_name index,
                               ptx_name sum) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t size = gpu_bytes(p->plan, value);
  int64_t bytes = plan->is_near ? plan->displacement * (int64_t)size : 0;
  if (plan->space == GPU_LIBRARY) bytes += hg_gpu_library_offset(p->plan, insn->symbol & ~(uint32_t)SSA_LIBRARY);
  if (insn->mode == ATLAS_ADDRESS_UNIFORM && plan->is_near) return hg_ptx_plus(base, bytes);
  ptx_name address = hg_ptx_new(p, PTX_64);
  const ssa_insn *arg = plan->index != SSA_NONE ? ptx_insn(p, plan->index) : NULL;
  if (plan->is_near && arg->op != SSA_CONST && hg_ptx_class_of(arg->type) == PTX_32) {
    PTX(p, "add.s64", address, base, hg_ptx_bytes_of(p, plan->index, size));
    return hg_ptx_plus(address, bytes);
  }
  ptx_name offset = hg_ptx_new(p, PTX_64);
  PTX(p, "shl.b64", offset, plan->is_near ? index : sum, hg_ptx_number(gpu_log2(size)));
  PTX(p, "add.s64", address, base, offset);
  return hg_ptx_plus(address, bytes);
}

/* In shared memory or a local array: the sum is in bounds, so its low half is the whole. */
static ptx_name narrow_address(ptx *p, uint32_t value, const gpu_place *plan, ptx_name base, ptx_name sum) {
  int64_t size = gpu_bytes(p->plan, value), bytes = plan->is_near ? plan->displacement * size : 0;
  ptx_name low, address = hg_ptx_new(p, PTX_32);
  if (plan->is_near && plan->index == SSA_NONE) return hg_ptx_plus(base, bytes);
  if (plan->is_near) low = hg_ptx_low(p, plan->index);
  else {
    low = hg_ptx_new(p, PTX_32);
    PTX(p, "cvt.u32.u64", low, sum);
  }
  PTX(p, "mad.lo.u32", address, low, hg_ptx_number((uint64_t)size), base);
  return hg_ptx_plus(address, bytes);
}

/* The address where the elements of a symbol begin (hg_gpu_library_offset further on for a table of the library), and
 * their number. */
ptx_name hg_ptx_base_of(ptx *p, const ssa_insn *insn, ptx_name *extent) {
  const atlas_symbol *symbol = gpu_symbol_of(p->plan, insn);
  if (symbol->kind == ATLAS_SYMBOL_BUFFER) {
    ptx_name base = hg_ptx_field(p, PTX_64, gpu_parameter_offset(p->plan, insn->symbol));
    *extent = hg_ptx_field(p, PTX_64, gpu_parameter_offset(p->plan, insn->symbol) + 8);
    return base;
  }
  int is_library = (insn->symbol & SSA_LIBRARY) != 0;
  int is_shared = symbol->kind == ATLAS_SYMBOL_SHARED, is_local = symbol->kind == ATLAS_SYMBOL_LOCAL;
  unsigned offset = is_shared  ? p->plan->memory.shared_offset[insn->symbol]
                    : is_local ? p->plan->memory.local_offset[insn->symbol]
                               : 0;
  ptx_name base = hg_ptx_new(p, is_shared || is_local ? PTX_32 : PTX_64);
  *extent = hg_ptx_number(symbol->count);
  if (is_shared) hg_ptx_put(p, "\tmov.u32 %s, hg_shared+%u;\n", base.text, offset);
  else if (is_local) hg_ptx_put(p, "\tmov.u32 %s, hg_local+%u;\n", base.text, offset);
  else if (is_library) hg_ptx_put(p, "\tmov.u64 %s, %s_f;\n", base.text, p->options->name);
  else hg_ptx_put(p, "\tmov.u64 %s, %s_c%u;\n", base.text, p->options->name, (unsigned)insn->symbol);
  return base;
}

static void library_place(ptx *p, uint32_t value, ptx_name base, ptx_name index, ptx_name extent, place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name clamped = hg_ptx_new(p, PTX_64), sum;
  hg_ptx_sum_is_outside(p, index, at->plan->index_type, at->plan->displacement, extent, &sum);
  PTX(p, "min.u64", clamped, sum, hg_ptx_number(gpu_symbol_of(p->plan, insn)->count - 1));
  ptx_name offset = hg_ptx_new(p, PTX_64);
  at->address = hg_ptx_new(p, PTX_64);
  PTX(p, "shl.b64", offset, clamped, hg_ptx_number(gpu_log2(gpu_bytes(p->plan, value))));
  PTX(p, "add.s64", at->address, base, offset);
  at->address = hg_ptx_plus(at->address, hg_gpu_library_offset(p->plan, insn->symbol & ~(uint32_t)SSA_LIBRARY));
}

/* Reuses the address if this block has computed it already (in-line code only). */
ptx_name hg_ptx_shared_element(ptx *p, uint32_t symbol, uint32_t index, uint32_t bytes) {
  int is_in_line = p->out == &p->body;
  for (uint32_t i = 0; i < p->near_count && i < PTX_MOST_NEAR && is_in_line; i++)
    if (p->near[i].symbol == symbol && p->near[i].index == index && p->near[i].bytes == bytes)
      return p->near[i].address;
  ptx_name base = hg_ptx_new(p, PTX_32), address = hg_ptx_new(p, PTX_32);
  hg_ptx_put(p, "\tmov.u32 %s, hg_shared+%u;\n", base.text, (unsigned)p->plan->memory.shared_offset[symbol]);
  PTX(p, "mad.lo.u32", address, hg_ptx_low(p, index), hg_ptx_number(bytes), base);
  if (is_in_line) p->near[p->near_count++ % PTX_MOST_NEAR] = (ptx_near){symbol, index, bytes, address};
  return address;
}

static ptx_name index_of(ptx *p, const gpu_place *plan) {
  return plan->index != SSA_NONE ? hg_ptx_wide(p, plan->index) : hg_ptx_number(0);
}

/* Elements of buffers, shared memory, local arrays and constant tables. */
static void element_place(ptx *p, uint32_t value, place *at) {
  const gpu_place *plan = at->plan;
  int is_narrow = plan->space == GPU_SHARED || plan->space == GPU_LOCAL; /* addresses of 32 bits */
  if (plan->space == GPU_SHARED && plan->check == GPU_PROVEN && plan->is_near && plan->index != SSA_NONE) {
    uint32_t bytes = gpu_bytes(p->plan, value);
    at->space = ".shared";
    at->address = hg_ptx_plus(hg_ptx_shared_element(p, ptx_insn(p, value)->symbol, plan->index, bytes),
                              plan->displacement * (int64_t)bytes);
    return;
  }
  ptx_name index = index_of(p, plan), sum = index, extent, base = hg_ptx_base_of(p, ptx_insn(p, value), &extent);
  if (plan->check == GPU_CLAMP) {
    library_place(p, value, base, index, extent, at);
    return;
  }
  if (plan->check != GPU_PROVEN) {
    ptx_name failed = hg_ptx_sum_is_outside(p, index, plan->index_type, plan->displacement, extent, &sum);
    ptx_fault_site site = {.site = plan->site, .index = index, .extent = extent};
    if (plan->check == GPU_BRANCH) branch_if_failed(p, value, failed, &site, at);
    else leave_out(p, failed, &site, at);
  } else if (plan->displacement != 0 && !(is_narrow && plan->is_near)) {
    sum = hg_ptx_new(p, PTX_64);
    PTX(p, "add.s64", sum, index, hg_ptx_number((uint64_t)plan->displacement));
  }
  if (is_narrow) at->space = plan->space == GPU_SHARED ? ".shared" : ".local";
  at->address = is_narrow ? narrow_address(p, value, plan, base, sum)
                          : global_address(p, value, plan, base, index, sum);
}

static void pool_place(ptx *p, uint32_t value, place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name index = index_of(p, at->plan), sum;
  ptx_name base = hg_ptx_field(p, PTX_64, gpu_parameter_offset(p->plan, insn->symbol));
  ptx_name byte_count = hg_ptx_field(p, PTX_64, gpu_parameter_offset(p->plan, insn->symbol) + 8);
  check_bytes(p, value, index, byte_count, at, &sum);
  at->address = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", at->address, base, sum);
}

static void table_place(ptx *p, uint32_t value, place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name entry = hg_ptx_wide(p, ptx_arg(p, value, 0)), offset = hg_ptx_wide(p, ptx_arg(p, value, 1)), sum;
  check_argument(p, value, &at->plan->test[0], entry, at);
  ptx_name row = hg_ptx_new(p, PTX_64), base = hg_ptx_new(p, PTX_64), byte_count = hg_ptx_new(p, PTX_64);
  PTX(p, "shl.b64", row, entry, hg_ptx_number(4));
  PTX(p, "add.s64", row, row, hg_ptx_field(p, PTX_64, gpu_parameter_offset(p->plan, insn->symbol)));
  hg_ptx_put(p, "\tld.global.nc.v2.b64 {%s, %s}, [%s];\n", base.text, byte_count.text, row.text);
  check_bytes(p, value, offset, byte_count, at, &sum);
  at->address = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", at->address, base, sum);
}

static void phi_place(ptx *p, uint32_t value, place *at) {
  ptx_name offset = hg_ptx_new(p, PTX_64), sum;
  PTX(p, "mov.b64", offset, hg_ptx_number(hg_gpu_phi_offset(p->plan, value)));
  for (uint32_t i = 0; at->plan->test[i].argument != SSA_NONE; i++) {
    const gpu_test *test = &at->plan->test[i];
    ptx_name part = check_argument(p, value, test, hg_ptx_wide(p, ptx_arg(p, value, test->argument)), at);
    PTX(p, "mad.lo.s64", offset, part, hg_ptx_number(test->step), offset);
  }
  check_bytes(p, value, offset, hg_ptx_number(ATLAS_BOUNDARY_POOL_BYTES), at, &sum);
  at->address = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", at->address, PTX_FIELD(p, PTX_64, boundary), sum);
}

/* The result refers to `plan`. */
static place find_place(ptx *p, const gpu_place *plan, const gpu_step *step) {
  place at = {.plan = plan, .space = ".global", .notes = step->notes > 0};
  switch (plan->addressing) {
  case GPU_PHI_BYTES: phi_place(p, step->value, &at); break;
  case GPU_TABLE_BYTES: table_place(p, step->value, &at); break;
  case GPU_POOL_BYTES: pool_place(p, step->value, &at); break;
  default: element_place(p, step->value, &at); break;
  }
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
  return suffix[gpu_log2(atlas_bytes((atlas_type)type))];
}

/* A byte other than 0 and 1 reads as 1. */
void hg_ptx_make_bool(ptx *p, ptx_name d) { PTX(p, "min.u32", d, d, hg_ptx_number(1)); }

static ptx_name unless(ptx_name predicate) {
  return predicate.text[0] != '\0' ? hg_ptx_name("@!%s ", predicate.text) : predicate;
}

static void load_from(ptx *p, uint32_t value, const place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name d = hg_ptx_register(p, value);
  int is_read_only = at->plan->space != GPU_SHARED && at->plan->space != GPU_LOCAL && at->plan->is_read_only;
  if (at->absent.text[0] != '\0')
    PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(insn->type))).text, d, hg_ptx_number(0));
  hg_ptx_put(p, "\t%sld%s%s%s %s, [%s];\n", unless(at->absent).text, at->space, is_read_only ? ".nc" : "",
             load_suffix(insn->type), d.text, at->address.text);
  if (insn->type == ATLAS_bool) hg_ptx_make_bool(p, d);
}

static void store_to(ptx *p, uint32_t value, ptx_name a, const place *at) {
  hg_ptx_put(p, "\t%sst%s%s [%s], %s;\n", unless(at->absent).text, at->space, store_suffix(ptx_insn(p, value)->type),
             at->address.text, a.text);
}

void hg_ptx_access_at(ptx *p, uint32_t value, ptx_name address, ptx_name absent) {
  gpu_place plan = hg_gpu_place(p->plan, p->version, value);
  const char *space = plan.space == GPU_SHARED ? ".shared" : ".global";
  place at = {.plan = &plan, .space = space, .address = address, .absent = absent};
  if (gpu_flags(p->plan, value) & ATLAS_LOAD) load_from(p, value, &at);
  else store_to(p, value, hg_ptx_argument(p, value, ptx_insn(p, value)->arg_count - 1u), &at);
}

typedef struct atomic {
  ptx_name d, a, b; /* b: for cas, the new value */
} atomic;

/* Loads the operands before the address is computed. */
static atomic atomic_operands(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_cas = insn->op == ATLAS_OP_atom_cas;
  atomic x = {.d = hg_ptx_register(p, value)};
  x.a = hg_ptx_value(p, ptx_arg(p, value, insn->arg_count - (is_cas ? 2u : 1u)));
  x.b = is_cas ? hg_ptx_value(p, ptx_arg(p, value, insn->arg_count - 1)) : x.a;
  return x;
}

/* A predicate that is true, but not to ptxas's knowledge. Processors have no such operation on 64 bits in shared
 * memory, so ptxas (of CUDA 13.0) writes a loop. If a loop of the program begins with it, ptxas merges the two, and
 * counts the rounds for each group of lanes that gets through by itself. The predicate keeps the headers of the two
 * loops apart. */
static ptx_name always(ptx *p, const ssa_insn *insn, const place *at) {
  const ptx_name none = {{0}};
  int is_native = insn->op == ATLAS_OP_atom_cas || insn->op == ATLAS_OP_atom_exch;
  if (at->plan->space != GPU_SHARED || hg_ptx_class_of(insn->type) != PTX_64 || is_native) return none;
  ptx_name holds = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.ne.s64", holds, PTX_FIELD(p, PTX_64, fault_record), hg_ptx_number(0));
  return hg_ptx_name("@%s ", holds.text);
}

static void atomic_at(ptx *p, uint32_t value, const atomic *x, const place *at) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_cas = insn->op == ATLAS_OP_atom_cas;
  const char *name = atlas_op_name((atlas_op)insn->op) + sizeof "atom." - 1, *type = hg_ptx_number_suffix(insn->type);
  int orders = insn->op == ATLAS_OP_atom_min || insn->op == ATLAS_OP_atom_max;
  if (insn->op == ATLAS_OP_atom_add) type = hg_ptx_class_of(insn->type) == PTX_64 ? ".u64" : ".u32";
  else if (!orders) type = hg_ptx_bits_suffix(hg_ptx_class_of(insn->type));
  ptx_name guard = always(p, insn, at);
  hg_ptx_put(p, "\t%satom%s.%s%s %s, [%s], %s%s%s;\n", guard.text, at->space, name, type, x->d.text, at->address.text,
             x->a.text, is_cas ? ", " : "", is_cas ? x->b.text : "");
}

void hg_ptx_access(ptx *p, const gpu_step *step) {
  gpu_place plan = hg_gpu_place(p->plan, p->version, step->value);
  atomic x = {{{0}}, {{0}}, {{0}}};
  if (step->op == GPU_ATOMIC) x = atomic_operands(p, step->value);
  if (step->op == GPU_STORE) x.a = hg_ptx_argument(p, step->value, ptx_insn(p, step->value)->arg_count - 1u);
  place at = find_place(p, &plan, step);
  if (step->op == GPU_LOAD) load_from(p, step->value, &at);
  else if (step->op == GPU_STORE) store_to(p, step->value, x.a, &at);
  else atomic_at(p, step->value, &x, &at);
  if (at.may_fault) hg_ptx_place(p, at.back);
}

/* ---- constant tables --------------------------------------------------------------------------------------------- */

static void put_words(ptx *p, const atlas_program *owner, const atlas_symbol *s, int is_first) {
  const uint8_t *data = (const uint8_t *)owner->constants.data + s->const_offset;
  for (uint32_t i = 0; i < hg_gpu_table_words(s); i++)
    hg_ptx_append(p, &p->module, "%s%s0x%llx", is_first && i == 0 ? "" : ",", i % 8 == 0 ? "\n\t" : " ",
                  (unsigned long long)hg_load_le(data + (size_t)8 * i, 8));
}

static void put_table(ptx *p, uint32_t symbol) {
  const atlas_symbol *s = atlas_symbol_at(p->plan->program, symbol);
  hg_ptx_append(p, &p->module, ".global .align 16 .b64 %s_c%u[%u] = {", p->options->name, (unsigned)symbol,
                (unsigned)hg_gpu_table_words(s));
  put_words(p, p->plan->program, s, 1);
  hg_ptx_append(p, &p->module, "};\n\n");
}

static void put_library(ptx *p) {
  uint32_t bytes = hg_gpu_library_offset(p->plan, (uint32_t)atlas_functions.symbols.count);
  int is_first = 1;
  if (bytes == 0) return;
  hg_ptx_append(p, &p->module, ".global .align 16 .b64 %s_f[%u] = {", p->options->name, (unsigned)(bytes / 8));
  for (uint32_t s = 0; s < atlas_functions.symbols.count; s++) {
    if (!gpu_is_in_set(p->plan->library_used, s)) continue;
    put_words(p, &atlas_functions, atlas_symbol_at(&atlas_functions, s), is_first);
    is_first = 0;
  }
  hg_ptx_append(p, &p->module, "};\n\n");
}

void hg_ptx_tables(ptx *p) {
  for (uint32_t s = 0; s < p->plan->program->symbols.count; s++)
    if (gpu_is_in_set(p->plan->tables_used, s)) put_table(p, s);
  put_library(p);
}
