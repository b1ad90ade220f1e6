/* memory.c - loads, stores, atomics and their faults. An access that is not proven to be in bounds stands in the `else`
 * of its checks; addresses are exact 64-bit sums. A fault is noted where it is found: a lane keeps its first one, and
 * writes it to the launch's record when it ends. */
#include "backend/metal/msl/msl.h"

#include "atlas/functions.h"
#include "base/bytes.h"
#include "base/error.h"

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static uint64_t both(uint32_t low, uint32_t high) { return low | (uint64_t)high << 32; }

enum { SITE_WORDS = 4 }; /* kind; instruction | symbol << 32; code | index type << 32; displacement */

void hg_msl_note(msl *m, const gpu_site *site, const char *index, const char *extent) {
  const uint64_t words[SITE_WORDS] = {site->kind, both(site->insn == SSA_NONE ? 0 : site->insn, site->symbol),
                                      both(site->code, site->index_type), (uint64_t)site->displacement};
  if (hg_array_append(m->allocator, &m->sites, words, SITE_WORDS) == NULL) m->failed = 1;
  hg_msl_open(m, "if (fault == 0)");
  hg_msl_line(m, "fault = %u;", (unsigned)(m->sites.count / SITE_WORDS));
  if (m->plan->info.lanes_per_thread > 1) hg_msl_line(m, "fault_lane = lane;");
  hg_msl_line(m, "fault_index = %s;", index);
  hg_msl_line(m, "fault_extent = %s;", extent);
  hg_msl_close(m, "");
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

typedef struct place {
  const gpu_place *plan;
  uint32_t value;
  const char *space;     /* "device", "threadgroup", "constant", "thread" */
  msl_name base, index;  /* the base in bytes; the index in elements, 64 bits, without the displacement */
  msl_name sum;          /* the element's number, or the byte's */
  int open;              /* checks whose `else` is open */
} place;

/* Guards the following code by the check. */
static void check(msl *m, place *at, const gpu_site *site, const char *failed, const char *index, const char *extent) {
  hg_msl_open(m, "if (%s)", failed);
  hg_msl_note(m, site, index, extent);
  hg_msl_close(m, " else {");
  m->depth++;
  at->open++;
}

/* A wrapped sum is below the extent only for a u64 index near 2^64 with a positive displacement, and for displacements
 * of 2^62 and more: as in the PTX emitter. */
static const char *wrapped(uint8_t type, int64_t displacement) {
  const int64_t large = INT64_C(1) << 62;
  if (type == ATLAS_u64 && displacement > 0) return " || i >= n";
  if (displacement <= -large && type != ATLAS_u64) return " || long(e) > long(i)";
  return displacement >= large ? " || long(e) < long(i)" : "";
}

static void open_sum(msl *m, place *at, const char *extent) {
  int64_t displacement = at->plan->displacement;
  hg_msl_scope(m);
  if (extent != NULL)
    hg_msl_line(m, "ulong i = %s, n = %s, e = i + 0x%llxul;", at->index.text, extent, (unsigned long long)displacement);
  else hg_msl_line(m, "ulong e = %s + 0x%llxul;", at->index.text, (unsigned long long)displacement);
  at->sum = hg_msl_name("e");
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

msl_name hg_msl_extent(const msl *m, const ssa_insn *insn) {
  const atlas_symbol *symbol = gpu_symbol_of(m->plan, insn);
  return symbol->kind == ATLAS_SYMBOL_BUFFER ? hg_msl_name("a.n%u", (unsigned)insn->symbol)
                                             : hg_msl_name("%lluul", (unsigned long long)symbol->count);
}

static const char *space_of(uint8_t space) {
  switch (space) {
  case GPU_SHARED: return "threadgroup";
  case GPU_LOCAL: return "thread";
  case GPU_GLOBAL: return "device";
  default: return "constant";
  }
}

static msl_name base_in(const msl *m, uint32_t value, uint8_t space) {
  uint32_t symbol = msl_insn(m, value)->symbol & ~(uint32_t)SSA_LIBRARY;
  switch (space) {
  case GPU_SHARED: return hg_msl_name("shared + %u", (unsigned)m->plan->memory.shared_offset[symbol]);
  case GPU_LOCAL: return hg_msl_name("local + %u", (unsigned)m->plan->memory.local_offset[symbol]);
  case GPU_CONSTANT: return hg_msl_name("c%u", (unsigned)symbol);
  case GPU_LIBRARY: return hg_msl_name("library + %u", (unsigned)hg_gpu_library_offset(m->plan, symbol));
  default: return hg_msl_name("a.p%u", (unsigned)symbol);
  }
}

msl_name hg_msl_byte(const char *index, uint32_t size, int64_t displacement) {
  long long bytes = (long long)displacement * size;
  if (bytes == 0) return hg_msl_name("%s * %u", index, (unsigned)size);
  return hg_msl_name("(%s * %u %c %llu)", index, (unsigned)size, bytes < 0 ? '-' : '+',
                     (unsigned long long)(bytes < 0 ? -bytes : bytes));
}

msl_name hg_msl_base(const msl *m, uint32_t value) {
  return base_in(m, value, hg_gpu_place(m->plan, m->version, value).space);
}

static void find_element(msl *m, place *at) {
  const ssa_insn *insn = msl_insn(m, at->value);
  const gpu_place *plan = at->plan;
  msl_name extent = hg_msl_extent(m, insn);
  at->space = space_of(plan->space);
  at->base = base_in(m, at->value, plan->space);
  at->index = plan->index != SSA_NONE ? hg_msl_long(m, plan->index) : hg_msl_name("0ul");
  at->sum = at->index;
  if (plan->check == GPU_PROVEN) {
    if (plan->displacement == 0) return;
    open_sum(m, at, NULL);
    at->open++;
    return;
  }
  open_sum(m, at, extent.text);
  at->open++;
  if (plan->check == GPU_CLAMP) {
    hg_msl_line(m, "e = min(e, n - 1);");
    return;
  }
  msl_name failed = hg_msl_name("e >= n%s", wrapped(plan->index_type, plan->displacement));
  check(m, at, &plan->site, failed.text, "i", "n");
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Bytes [e, e + size) of n, e a multiple of the size: the last checks of an address. */
static void check_bytes(msl *m, place *at, const char *extent) {
  uint32_t size = gpu_bytes(m->plan, at->value);
  const gpu_test *outside = &at->plan->test[at->plan->test_count - (size > 1 ? 2 : 1)], *crooked = outside + 1;
  int64_t displacement = outside->site.displacement;
  hg_msl_scope(m);
  at->open++;
  hg_msl_line(m, "ulong i = %s, n = %s, e = i + 0x%llxul;", at->index.text, extent, (unsigned long long)displacement);
  msl_name failed =
      hg_msl_name("e >= n || n - e < %u%s", (unsigned)size, wrapped(outside->site.index_type, displacement));
  check(m, at, &outside->site, failed.text, "i", "n");
  if (size > 1) check(m, at, &crooked->site, hg_msl_name("(e & %u) != 0", (unsigned)size - 1).text, "i",
                      hg_msl_name("%u", (unsigned)crooked->extent).text);
  at->sum = hg_msl_name("e");
}

static void check_argument(msl *m, place *at, const gpu_test *test, const char *argument) {
  msl_name extent = hg_msl_name("%lluul", (unsigned long long)test->extent);
  check(m, at, &test->site, hg_msl_name("%s >= %s", argument, extent.text).text, argument, extent.text);
}

static void find_in_pool(msl *m, place *at) {
  uint32_t symbol = msl_insn(m, at->value)->symbol;
  at->base = hg_msl_name("a.p%u", (unsigned)symbol);
  at->index = at->plan->index != SSA_NONE ? hg_msl_long(m, at->plan->index) : hg_msl_name("0ul");
  check_bytes(m, at, hg_msl_name("a.n%u", (unsigned)symbol).text);
}

static void find_in_table(msl *m, place *at) {
  uint32_t symbol = msl_insn(m, at->value)->symbol;
  msl_name entry = hg_msl_long(m, msl_arg(m, at->value, 0));
  check_argument(m, at, &at->plan->test[0], entry.text);
  hg_msl_line(m, "device uchar *entry = a.t%u[%s].memory;", (unsigned)symbol, entry.text);
  at->base = hg_msl_name("entry");
  at->index = hg_msl_long(m, msl_arg(m, at->value, 1));
  check_bytes(m, at, hg_msl_name("a.t%u[%s].byte_count", (unsigned)symbol, entry.text).text);
}

static void find_in_phi(msl *m, place *at) {
  hg_msl_scope(m);
  at->open++;
  hg_msl_line(m, "ulong offset = %uul;", (unsigned)hg_gpu_phi_offset(m->plan, at->value));
  for (uint32_t t = 0; at->plan->test[t].argument != SSA_NONE; t++) {
    const gpu_test *test = &at->plan->test[t];
    msl_name part = hg_msl_long(m, msl_arg(m, at->value, test->argument));
    check_argument(m, at, test, part.text);
    hg_msl_line(m, "offset += %s * %uul;", part.text, (unsigned)test->step);
  }
  at->base = hg_msl_name("a.boundary");
  at->index = hg_msl_name("offset");
  check_bytes(m, at, hg_msl_name("%luul", (unsigned long)ATLAS_BOUNDARY_POOL_BYTES).text);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

/* The type of an element in memory. */
static const char *memory_type(uint8_t type) {
  switch (type) {
  case ATLAS_i8: return "char";
  case ATLAS_i16: return "short";
  default: {
    uint32_t bytes = atlas_bytes((atlas_type)type);
    return bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : "ulong";
  }
  }
}

static void load_from(msl *m, const place *at, const char *address) {
  uint8_t type = msl_insn(m, at->value)->type;
  const char *memory = memory_type(type);
  hg_msl_line(m, "v%u = %s*(%s const %s *)(%s)%s;", (unsigned)at->value,
              type == ATLAS_bool      ? "uint("
              : gpu_is_signed(type) && atlas_bytes((atlas_type)type) < 4 ? "uint(int("
                                      : "",
              at->space, memory, address,
              type == ATLAS_bool      ? " != 0)"
              : gpu_is_signed(type) && atlas_bytes((atlas_type)type) < 4 ? "))"
                                      : "");
}

static void store_to(msl *m, const place *at, const char *address) {
  const ssa_insn *insn = msl_insn(m, at->value);
  const char *memory = memory_type(insn->type);
  hg_msl_line(m, "*(%s %s *)(%s) = %s(%s);", at->space, memory, address, memory,
              hg_msl_argument(m, at->value, insn->arg_count - 1u).text);
}

static const char *atomic_name(uint16_t op) {
  switch (op) {
  case ATLAS_OP_atom_add: return "fetch_add";
  case ATLAS_OP_atom_min: return "fetch_min";
  case ATLAS_OP_atom_max: return "fetch_max";
  case ATLAS_OP_atom_and: return "fetch_and";
  case ATLAS_OP_atom_or: return "fetch_or";
  case ATLAS_OP_atom_xor: return "fetch_xor";
  default: return "exchange";
  }
}

static void atomic_word(msl *m, const place *at, const char *address) {
  const ssa_insn *insn = msl_insn(m, at->value);
  msl_name last = hg_msl_argument(m, at->value, insn->arg_count - 1u);
  const char *type = gpu_is_signed(insn->type) ? "int" : "uint";
  if (insn->op == ATLAS_OP_atom_cas)
    hg_msl_line(m, "v%u = exchange_if((%s atomic_uint *)(%s), %s, %s);", (unsigned)at->value, at->space, address,
                hg_msl_argument(m, at->value, insn->arg_count - 2u).text, last.text);
  else
    hg_msl_line(m, "v%u = uint(atomic_%s_explicit((%s atomic_%s *)(%s), %s(%s), memory_order_relaxed));",
                (unsigned)at->value, atomic_name(insn->op), at->space, type, address, type, last.text);
}

/* And, or, xor without use of the old value: each half by itself. */
static void atomic_halves(msl *m, const place *at, const char *address) {
  const ssa_insn *insn = msl_insn(m, at->value);
  msl_name x = hg_msl_argument(m, at->value, insn->arg_count - 1u);
  for (int i = 0; i < 2; i++)
    hg_msl_line(m, "atomic_%s_explicit((%s atomic_uint *)(%s) + %d, uint(%s >> %d), memory_order_relaxed);",
                atomic_name(insn->op), at->space, address, i, x.text, 32 * i);
}

static void refuse_wide(msl *m, uint32_t value) {
  if (m->refused != HG_OK) return;
  const ssa_insn *insn = msl_insn(m, value);
  m->refused = hg_fail(HG_UNSUPPORTED, "program '%s': Metal has no '%s' of 64 bits%s", m->plan->program->name,
                       atlas_op_name((atlas_op)insn->op),
                       insn->op == ATLAS_OP_atom_add || insn->op == ATLAS_OP_atom_and || insn->op == ATLAS_OP_atom_or ||
                               insn->op == ATLAS_OP_atom_xor
                           ? " that gives what was there; write its result to _"
                           : "");
}

static void count_uses(msl *m) {
  const ssa_unit *unit = m->plan->unit;
  m->uses = hg_allocate(m->allocator, unit->insns.count, sizeof *m->uses);
  if (m->uses == NULL) {
    m->failed = 1;
    return;
  }
  for (uint32_t v = 0; v < unit->insns.count; v++) {
    const ssa_insn *insn = msl_insn(m, v);
    int is_there = insn->op != SSA_DELETED && !gpu_is_gone(m->plan, v);
    for (uint32_t i = 0; i < insn->arg_count && is_there; i++) m->uses[msl_arg(m, v, i)]++;
  }
}

static void atomic_wide(msl *m, const place *at, const char *address) {
  const ssa_insn *insn = msl_insn(m, at->value);
  if (m->uses == NULL) count_uses(m);
  if (m->failed) return;
  int is_seen = m->uses[at->value] > 0;
  if (!is_seen && insn->op == ATLAS_OP_atom_add)
    hg_msl_line(m, "add_words(%s, %s);", address, hg_msl_argument(m, at->value, insn->arg_count - 1u).text);
  else if (!is_seen && (insn->op == ATLAS_OP_atom_and || insn->op == ATLAS_OP_atom_or || insn->op == ATLAS_OP_atom_xor))
    atomic_halves(m, at, address);
  else refuse_wide(m, at->value);
}

static void access_at(msl *m, const place *at) {
  uint32_t flags = gpu_flags(m->plan, at->value), size = gpu_bytes(m->plan, at->value);
  msl_name address = at->base;
  if (at->plan->addressing != GPU_ELEMENTS || size == 1)
    address = hg_msl_name("%s + %s", at->base.text, at->sum.text);
  else if (at->plan->index != SSA_NONE || at->plan->displacement != 0)
    address = hg_msl_name("%s + %s * %u", at->base.text, at->sum.text, (unsigned)size);
  if (flags & ATLAS_ATOMIC)
    msl_is_wide(msl_insn(m, at->value)->type) ? atomic_wide(m, at, address.text) : atomic_word(m, at, address.text);
  else if (flags & ATLAS_LOAD) load_from(m, at, address.text);
  else store_to(m, at, address.text);
}

void hg_msl_access_at(msl *m, uint32_t value, const char *address) {
  const place at = {.value = value, .space = space_of(hg_gpu_place(m->plan, m->version, value).space)};
  if (gpu_flags(m->plan, value) & ATLAS_LOAD) load_from(m, &at, address);
  else store_to(m, &at, address);
}

void hg_msl_access(msl *m, uint32_t value) {
  gpu_place plan = hg_gpu_place(m->plan, m->version, value);
  place at = {.plan = &plan, .value = value, .space = "device"};
  int gives = !(gpu_flags(m->plan, value) & ATLAS_STORE);
  if (gives && plan.check != GPU_PROVEN && plan.check != GPU_CLAMP) hg_msl_line(m, "v%u = 0;", (unsigned)value);
  switch (plan.addressing) {
  case GPU_PHI_BYTES: find_in_phi(m, &at); break;
  case GPU_TABLE_BYTES: find_in_table(m, &at); break;
  case GPU_POOL_BYTES: find_in_pool(m, &at); break;
  default: find_element(m, &at); break;
  }
  access_at(m, &at);
  while (at.open-- > 0) hg_msl_close(m, "");
}

/* ---- constant tables --------------------------------------------------------------------------------------------- */

static void put_words(msl *m, const atlas_program *owner, const atlas_symbol *s) {
  const uint8_t *data = (const uint8_t *)owner->constants.data + s->const_offset;
  for (uint32_t i = 0; i < hg_gpu_table_words(s); i++)
    hg_msl_head(m, "%s0x%llxul,", i % 4 == 0 ? "\n  " : " ", (unsigned long long)hg_load_le(data + (size_t)8 * i, 8));
}

void hg_msl_tables(msl *m) {
  uint32_t bytes = hg_gpu_library_offset(m->plan, (uint32_t)atlas_functions.symbols.count);
  for (uint32_t s = 0; s < m->plan->program->symbols.count; s++) {
    if (!gpu_is_in_set(m->plan->tables_used, s)) continue;
    hg_msl_head(m, "constant ulong %s_c%u[] = {", m->options->name, (unsigned)s);
    put_words(m, m->plan->program, atlas_symbol_at(m->plan->program, s));
    hg_msl_head(m, "\n};\n\n");
  }
  if (bytes > 0) {
    hg_msl_head(m, "constant ulong %s_f[] = {", m->options->name);
    for (uint32_t s = 0; s < atlas_functions.symbols.count; s++)
      if (gpu_is_in_set(m->plan->library_used, s)) put_words(m, &atlas_functions, atlas_symbol_at(&atlas_functions, s));
    hg_msl_head(m, "\n};\n\n");
  }
  if (m->sites.count == 0) return;
  hg_msl_head(m, "constant ulong %s_sites[] = {", m->options->name);
  for (size_t i = 0; i < m->sites.count; i++)
    hg_msl_head(m, "%s0x%llxul,", i % SITE_WORDS == 0 ? "\n  " : " ",
                (unsigned long long)((const uint64_t *)m->sites.data)[i]);
  hg_msl_head(m, "\n};\n\n");
}
