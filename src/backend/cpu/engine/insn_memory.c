/* insn_memory.c - loads, stores and atomics of rows. Facts that the compiler has proven of addresses are used where
 * that pays; every other access is checked lane by lane.
 *
 * Of the faulting lanes of a row only the lowest is noted: no other can be reported. */
#include "backend/cpu/engine/rows.h"

#include "atlas/arith.h"
#include "atlas/functions.h"
#include "base/error.h"

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* The array whose elements positions count. */
typedef struct array {
  uint8_t *memory;
  uint64_t extent;  /* elements; bytes for a pool, as its indices count bytes */
  uint32_t bytes;   /* of an element */
  uint8_t is_pool, is_local;
  unsigned size_class;
} array;

static int is_local(const vector_insn *insn) { return (atlas_op_flags(insn->op) & ATLAS_SPACE_LOCAL) != 0; }

static uint8_t index_type(const cpu_worker *w, const vector_insn *insn, int k) {
  return vector_reg_at(w->vector, insn->s[k])->type;
}

/* 1 if the address is an element of one array, [x + index + bits] or [x + bits]. */
static int array_of(const cpu_worker *w, const vector_insn *insn, array *a) {
  a->bytes = hg_cpu_element_bytes(insn->type);
  a->size_class = hg_cpu_size_class(a->bytes);
  a->memory = NULL;
  a->extent = 0;
  a->is_pool = 0;
  a->is_local = (uint8_t)is_local(insn);
  if (insn->mode == ATLAS_ADDRESS_PHI || insn->mode == ATLAS_ADDRESS_TABLE) return 0;
  if (insn->symbol & SSA_LIBRARY) {
    const atlas_symbol *table = atlas_symbol_at(&atlas_functions, insn->symbol & ~(unsigned)SSA_LIBRARY);
    a->memory = (uint8_t *)atlas_functions.constants.data + table->const_offset;
    a->extent = table->count;
    return 1;
  }
  const cpu_binding *binding = &w->binding[insn->symbol];
  a->memory = binding->memory;
  a->extent = binding->extent;
  a->is_pool = atlas_symbol_at(w->run->program, insn->symbol)->kind == ATLAS_SYMBOL_POOL;
  return 1;
}

static uint8_t *checked_bytes(cpu_worker *w, uint64_t lane, const vector_insn *insn, atlas_span span, int64_t index) {
  uint32_t size = hg_cpu_element_bytes(insn->type);
  if (index < 0 || span.byte_count < size || (uint64_t)index > span.byte_count - size) {
    hg_cpu_memory_fault(w, lane, insn, HG_FAULT_OUT_OF_BOUNDS, index, span.byte_count);
    return NULL;
  }
  if ((uint64_t)index % size != 0) {
    hg_cpu_memory_fault(w, lane, insn, HG_FAULT_MISALIGNED, index, size);
    return NULL;
  }
  return span.memory + index;
}

/* Source k of lane i as an index of its type, plus the displacement. */
static int64_t index_of(const cpu_worker *w, const vector_insn *insn, const cpu_operands *o, int k, uint32_t i,
                        int64_t displacement) {
  if (insn->flags & VECTOR_LANE)
    return atlas_index_sum(ATLAS_u64, hg_cpu_lane(w, o->first + i), displacement);
  uint8_t type = index_type(w, insn, k);
  return atlas_index_sum((atlas_type)type, hg_cpu_source(o, k, hg_cpu_element_bytes(type), i), displacement);
}

static uint8_t *phi_address(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t i) {
  static const uint32_t extents[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  const int64_t constants[3] = {(int64_t)(insn->bits & 0xffff), (int64_t)(insn->bits >> 16 & 0xffff),
                                (int64_t)(insn->bits >> 32)};
  int64_t part[3];
  int next = 0;
  for (int p = 0; p < 3; p++) {
    part[p] = insn->phi_registers >> p & 1 ? index_of(w, insn, o, next++, i, 0) : constants[p];
    if (part[p] < 0 || part[p] >= extents[p]) {
      hg_cpu_memory_fault(w, o->first + i, insn, HG_FAULT_OUT_OF_BOUNDS, part[p], extents[p]);
      return NULL;
    }
  }
  atlas_span boundary = {w->run->launch->boundary, ATLAS_BOUNDARY_POOL_BYTES};
  int64_t offset = atlas_boundary_offset((uint32_t)part[0], (uint32_t)part[1], (uint32_t)part[2]);
  return checked_bytes(w, o->first + i, insn, boundary, offset);
}

static uint8_t *table_address(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t i) {
  const cpu_binding *binding = &w->binding[insn->symbol];
  int64_t entry = index_of(w, insn, o, 0, i, 0);
  if (entry < 0 || (uint64_t)entry >= binding->extent) {
    hg_cpu_memory_fault(w, o->first + i, insn, HG_FAULT_OUT_OF_BOUNDS, entry, binding->extent);
    return NULL;
  }
  return checked_bytes(w, o->first + i, insn, binding->table[entry], index_of(w, insn, o, 1, i, 0));
}

/* The position in memory of an element of lane i's local array. */
static uint64_t slot_of(const cpu_worker *w, const cpu_operands *o, int64_t index, uint32_t i) {
  return (uint64_t)index * w->run->local_lanes + (o->first + i + w->slot);
}

/* Where lane i's access goes; NULL after noting its fault. */
static uint8_t *address_of(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t i) {
  if (insn->mode == ATLAS_ADDRESS_PHI) return phi_address(w, insn, o, i);
  if (insn->mode == ATLAS_ADDRESS_TABLE) return table_address(w, insn, o, i);
  array a;
  array_of(w, insn, &a);
  int64_t index = (int64_t)insn->bits;
  if (insn->mode == ATLAS_ADDRESS_INDEXED) index = index_of(w, insn, o, 0, i, index);
  if (a.is_pool) return checked_bytes(w, o->first + i, insn, (atlas_span){a.memory, a.extent}, index);
  if (index < 0 || (uint64_t)index >= a.extent) {
    hg_cpu_memory_fault(w, o->first + i, insn, HG_FAULT_OUT_OF_BOUNDS, index, a.extent);
    return NULL;
  }
  return a.memory + (a.is_local ? slot_of(w, o, index, i) : (uint64_t)index) * a.bytes;
}

/* The number of source registers of an address; the values follow them. */
static int address_registers(const vector_insn *insn) {
  switch (insn->mode) {
  case ATLAS_ADDRESS_UNIFORM: return 0;
  case ATLAS_ADDRESS_INDEXED: return 1;
  case ATLAS_ADDRESS_TABLE: return 2;
  default: return (insn->phi_registers & 1) + (insn->phi_registers >> 1 & 1) + (insn->phi_registers >> 2 & 1);
  }
}

/* ---- rows that are contiguous in memory -------------------------------------------------------------------------- */

/* Lanes [from, to) of the row, with consecutive indices. */
typedef struct stretch {
  uint32_t from, to;
  uint32_t first, end; /* the lanes in bounds */
  uint8_t *memory;     /* of lane `first`, if any lane is in bounds */
  uint8_t is_broken;   /* 1: the indices are not consecutive after all */
} stretch;

static void narrow_to_mask(const cpu_operands *o, stretch *s) {
  if (o->mask == NULL) return;
  while (s->from < s->to && !o->mask[s->from]) s->from++;
  while (s->from < s->to && !o->mask[s->to - 1]) s->to--;
}

/* Finds the lanes in bounds of a stretch with that first index; notes the fault of the lowest other lane. */
HG_RARE static void find_bounds(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a,
                                stretch *s, int64_t index) {
  uint64_t lanes = s->to - s->from, below = index < 0 ? 0 - (uint64_t)index : 0, end = below + a->extent;
  if (index >= 0) end = a->extent > (uint64_t)index ? a->extent - (uint64_t)index : 0;
  s->first = s->from + (uint32_t)(below < lanes ? below : lanes);
  s->end = s->from + (uint32_t)(end < lanes ? end : lanes);
  if (s->first < s->end) s->memory = a->memory + ((uint64_t)index + below) * a->bytes;
  uint32_t lane = s->first > s->from ? s->from : s->end;
  while (lane < s->to && !hg_cpu_takes_part(o, lane)) lane++;
  if (lane < s->to) (void)address_of(w, insn, o, lane);
}

/* The lanes of the mask from `from` on that have consecutive numbers; returns the lane after them. */
static uint32_t next_stretch(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a,
                             uint32_t from, stretch *s) {
  uint64_t length = hg_cpu_run_length(w->run), left = length - (o->first + from) % length;
  uint32_t next = left < o->count - from ? from + (uint32_t)left : o->count;
  s->from = from, s->to = next;
  narrow_to_mask(o, s);
  if (s->from >= s->to) return next;
  int64_t first = index_of(w, insn, o, 0, s->from, (int64_t)insn->bits);
  int64_t last = index_of(w, insn, o, 0, s->to - 1, (int64_t)insn->bits);
  s->is_broken = (uint64_t)last - (uint64_t)first != s->to - 1 - s->from; /* a 32-bit index may wrap to 0 */
  if (s->is_broken) return next;
  if ((uint64_t)first < a->extent && (uint64_t)last < a->extent)
    s->first = s->from, s->end = s->to, s->memory = a->memory + (uint64_t)first * a->bytes;
  else find_bounds(w, insn, o, a, s, first);
  return next;
}

static int is_stretched(const vector_insn *insn, const array *a) {
  return insn->mode == ATLAS_ADDRESS_INDEXED && insn->flags & (VECTOR_LANE | VECTOR_CONTIGUOUS) && !a->is_pool;
}

/* ---- loads ------------------------------------------------------------------------------------------------------- */

static uint64_t read_value(const vector_insn *insn, const uint8_t *address, uint32_t bytes) {
  if (address == NULL) return 0;
  uint64_t value = atlas_read_value(address, bytes);
  return insn->type == ATLAS_bool ? value != 0 : value;
}

static void load_lanes(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t from, uint32_t to) {
  uint32_t bytes = hg_cpu_element_bytes(insn->type);
  for (uint32_t i = from; i < to; i++)
    if (hg_cpu_takes_part(o, i))
      atlas_write_value((uint8_t *)o->d + (size_t)i * bytes, bytes, read_value(insn, address_of(w, insn, o, i), bytes));
}

/* The address of the first lane's access; NULL after noting its fault, or if no lane takes part. */
static uint8_t *address_of_first(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t first = 0;
  while (first < o->count && !hg_cpu_takes_part(o, first)) first++;
  return first < o->count ? address_of(w, insn, o, first) : NULL;
}

/* One location for all lanes: the first lane loads it and reports its fault. */
static void load_same(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  uint32_t bytes = hg_cpu_element_bytes(insn->type);
  hg_cpu_fill_row(o->d, bytes, read_value(insn, address_of_first(w, insn, o), bytes), o->count);
}

static void load_stretches(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a) {
  const cpu_kernels *k = w->run->kernels;
  stretch s;
  for (uint32_t at = 0, next; at < o->count; at = next) {
    next = next_stretch(w, insn, o, a, at, &s);
    uint8_t *d = o->d;
    if (s.from >= s.to) continue;
    if (s.is_broken) {
      load_lanes(w, insn, o, s.from, s.to);
      continue;
    }
    if (s.first > s.from || s.end < s.to) memset(d + (size_t)s.from * a->bytes, 0, (size_t)(s.to - s.from) * a->bytes);
    if (s.first < s.end) memcpy(d + (size_t)s.first * a->bytes, s.memory, (size_t)(s.end - s.first) * a->bytes);
  }
  if (insn->type == ATLAS_bool)
    k->row[hg_kernel_convert(ATLAS_bool, ATLAS_bool)](o->d, o->d, NULL, NULL, 1,
                                                      (o->count + CPU_CHUNK - 1) / CPU_CHUNK);
}

/* The mask of the chunk at `at`, which may be the last one; NULL: all of its lanes. */
static const uint8_t *chunk_mask(const cpu_operands *o, uint32_t at, uint8_t part[CPU_CHUNK]) {
  if (o->count - at >= CPU_CHUNK) return o->mask == NULL ? NULL : o->mask + at;
  uint32_t lanes = o->count - at;
  memset(part, 0, CPU_CHUNK);
  if (o->mask == NULL) memset(part, 1, lanes);
  else memcpy(part, o->mask + at, lanes);
  return part;
}

static const void *chunk_of(const cpu_operands *o, int k, uint32_t at, uint32_t bytes) {
  return (const uint8_t *)o->s[k] + (o->step[k] ? (size_t)at * bytes : 0);
}

/* The bound of positions: elements of the array. For a pool, whose positions are bytes, the positions at which an
 * element may begin. */
static uint64_t extent_of(const array *a) {
  uint64_t whole = a->is_pool ? a->bytes - 1 : 0;
  return a->extent > whole ? a->extent - whole : 0;
}

/* The positions of the chunk at `at` in the array. 0 if a lane of the mask is out of bounds or misaligned; then they
 * are as cpu_positions leaves them. */
static int positions(const cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a, uint32_t at,
                     const uint8_t *mask, uint64_t position[CPU_CHUNK]) {
  uint8_t type = index_type(w, insn, 0);
  uint64_t extent = extent_of(a), rest = 0;
  int are_inside = w->run->kernels->positions[type](position, chunk_of(o, 0, at, hg_cpu_element_bytes(type)),
                                                    (int64_t)insn->bits, extent > 0 ? extent : 1, mask);
  for (int i = 0; i < CPU_CHUNK && are_inside && a->is_pool; i++) rest |= position[i] & (a->bytes - 1);
  return are_inside && extent > 0 && rest == 0;
}

/* inside[i] = 1 for the lanes of the mask in the chunk at `at` whose positions are in bounds and aligned; others get
 * position 0. Notes the fault of the lowest other lane. 0 if no lane is inside. */
static int leave_out_faults(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a, uint32_t at,
                            const uint8_t *mask, uint8_t inside[CPU_CHUNK], uint64_t position[CPU_CHUNK]) {
  uint64_t extent = extent_of(a), low_bits = a->is_pool ? a->bytes - 1 : 0;
  uint32_t fault = CPU_CHUNK, has_any = 0;
  for (uint32_t i = CPU_CHUNK; i-- > 0;) {
    int takes_part = mask == NULL || mask[i], is_inside = position[i] < extent && (position[i] & low_bits) == 0;
    if (takes_part && !is_inside) fault = i;
    inside[i] = (uint8_t)(takes_part & is_inside);
    if (!inside[i]) position[i] = 0;
    has_any |= inside[i];
  }
  if (fault < CPU_CHUNK) (void)address_of(w, insn, o, at + fault);
  return (int)has_any;
}

/* Turns indices into positions of elements: bytes of a pool, slots of local arrays. */
static void move_positions(const cpu_worker *w, const cpu_operands *o, const array *a, uint32_t at,
                           uint64_t position[CPU_CHUNK]) {
  for (uint32_t i = 0; i < CPU_CHUNK; i++)
    position[i] = a->is_pool ? position[i] >> a->size_class
                             : slot_of(w, o, (int64_t)position[i], at + i < o->count ? at + i : at);
}

/* The element of each lane of the chunk at `at` in memory, and the lanes that access theirs: the mask (NULL: all), or
 * `inside` without the faulting lanes. 0 if no lane does. */
static int find_elements(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a, uint32_t at,
                         const uint8_t **mask, uint8_t inside[CPU_CHUNK], uint64_t position[CPU_CHUNK]) {
  *mask = chunk_mask(o, at, inside);
  if (!positions(w, insn, o, a, at, *mask, position)) {
    int has_any = leave_out_faults(w, insn, o, a, at, *mask, inside, position);
    *mask = inside;
    if (!has_any) return 0;
  }
  if (a->is_pool || a->is_local) move_positions(w, o, a, at, position);
  return 1;
}

/* Loads a chunk of elements with an index each; faulting lanes get 0. */
static void load_chunk(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a, uint32_t at) {
  const cpu_kernels *k = w->run->kernels;
  uint64_t position[CPU_CHUNK];
  uint8_t inside[CPU_CHUNK], *d = (uint8_t *)o->d + (size_t)at * a->bytes;
  const uint8_t *mask;
  if (!find_elements(w, insn, o, a, at, &mask, inside, position)) {
    memset(d, 0, (size_t)CPU_CHUNK * a->bytes);
    return;
  }
  k->gather[a->size_class](d, a->memory, position);
  for (uint32_t i = 0; i < CPU_CHUNK && mask == inside; i++)
    if (!inside[i]) atlas_write_value(d + (size_t)i * a->bytes, a->bytes, 0);
}

static void load_gathered(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a) {
  for (uint32_t at = 0; at < o->count; at += CPU_CHUNK) load_chunk(w, insn, o, a, at);
  if (insn->type == ATLAS_bool)
    w->run->kernels->row[hg_kernel_convert(ATLAS_bool, ATLAS_bool)](o->d, o->d, NULL, NULL, 1, hg_cpu_chunks(o->count));
}

/* ---- local arrays ------------------------------------------------------------------------------------------------ */

/* 1 if all lanes have one index. */
static int is_row(const vector_insn *insn, const cpu_operands *o) {
  return insn->mode == ATLAS_ADDRESS_UNIFORM || (!o->step[0] && !(insn->flags & VECTOR_LANE));
}

/* The slot of the rows' first lane in the row of that index; NULL if it is out of bounds. */
static uint8_t *row_of(const cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a) {
  int64_t index = (int64_t)insn->bits;
  if (insn->mode == ATLAS_ADDRESS_INDEXED) index = index_of(w, insn, o, 0, 0, index);
  if (index < 0 || (uint64_t)index >= a->extent) return NULL;
  return a->memory + slot_of(w, o, index, 0) * a->bytes;
}

static void load_local(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a) {
  const uint8_t *row = is_row(insn, o) ? row_of(w, insn, o, a) : NULL;
  if (row == NULL && is_row(insn, o)) load_same(w, insn, o);
  else if (row == NULL) load_gathered(w, insn, o, a);
  else memcpy(o->d, row, (size_t)o->count * a->bytes);
  if (row != NULL && insn->type == ATLAS_bool)
    w->run->kernels->row[hg_kernel_convert(ATLAS_bool, ATLAS_bool)](o->d, o->d, NULL, NULL, 1, hg_cpu_chunks(o->count));
}

void hg_cpu_load(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  array a;
  int is_array = array_of(w, insn, &a);
  if (a.is_local) {
    load_local(w, insn, o, &a);
    return;
  }
  int is_same = insn->flags & VECTOR_SAME || address_registers(insn) == 0 ||
                (insn->mode == ATLAS_ADDRESS_INDEXED && !(insn->flags & VECTOR_LANE) && !o->step[0]);
  if (is_same) load_same(w, insn, o);
  else if (!is_array) load_lanes(w, insn, o, 0, o->count);
  else if (is_stretched(insn, &a)) load_stretches(w, insn, o, &a);
  else load_gathered(w, insn, o, &a);
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

static void store_lanes(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t from, uint32_t to) {
  uint32_t bytes = hg_cpu_element_bytes(insn->type);
  int value = address_registers(insn);
  for (uint32_t i = from; i < to; i++) {
    if (!hg_cpu_takes_part(o, i)) continue;
    uint8_t *address = address_of(w, insn, o, i);
    if (address != NULL) atlas_write_value(address, bytes, hg_cpu_source(o, value, bytes, i));
  }
}

static void store_stretches(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a) {
  int value = address_registers(insn);
  stretch s;
  for (uint32_t at = 0, next; at < o->count; at = next) {
    next = next_stretch(w, insn, o, a, at, &s);
    if (s.from >= s.to) continue;
    if (s.is_broken) {
      store_lanes(w, insn, o, s.from, s.to);
      continue;
    }
    uint32_t piece = o->step[value] ? s.to - s.from : CPU_CHUNK; /* a short row is stored piece by piece */
    for (uint32_t i = s.first; i < s.end; i += piece) {
      uint32_t lanes = s.end - i < piece ? s.end - i : piece;
      uint8_t *memory = s.memory + (size_t)(i - s.first) * a->bytes;
      const void *values = chunk_of(o, value, i, a->bytes);
      if (o->mask == NULL) memcpy(memory, values, (size_t)lanes * a->bytes);
      else w->run->kernels->store[a->size_class](memory, values, o->mask + i, lanes);
    }
  }
}

static void store_scattered(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a) {
  uint64_t position[CPU_CHUNK];
  uint8_t inside[CPU_CHUNK];
  const uint8_t *mask;
  int value = address_registers(insn);
  for (uint32_t at = 0; at < o->count; at += CPU_CHUNK) {
    uint32_t lanes = o->count - at < CPU_CHUNK ? o->count - at : CPU_CHUNK;
    if (find_elements(w, insn, o, a, at, &mask, inside, position))
      w->run->kernels->scatter[a->size_class](a->memory, position, chunk_of(o, value, at, a->bytes), mask, lanes);
  }
}

static void store_local(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a) {
  uint8_t part[CPU_CHUNK];
  int value = address_registers(insn);
  if (!is_row(insn, o)) {
    store_scattered(w, insn, o, a);
    return;
  }
  uint8_t *row = row_of(w, insn, o, a);
  if (row == NULL) (void)address_of_first(w, insn, o);
  for (uint32_t at = 0; at < o->count && row != NULL; at += CPU_CHUNK) {
    uint32_t lanes = o->count - at < CPU_CHUNK ? o->count - at : CPU_CHUNK;
    const void *values = chunk_of(o, value, at, a->bytes);
    uint8_t *to = row + (size_t)at * a->bytes;
    if (o->mask == NULL) memcpy(to, values, (size_t)lanes * a->bytes);
    else w->run->kernels->store[a->size_class](to, values, chunk_mask(o, at, part), lanes);
  }
}

void hg_cpu_store(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  array a;
  int is_array = array_of(w, insn, &a);
  if (a.is_local) store_local(w, insn, o, &a);
  else if (!is_array || insn->mode != ATLAS_ADDRESS_INDEXED) store_lanes(w, insn, o, 0, o->count);
  else if (is_stretched(insn, &a)) store_stretches(w, insn, o, &a);
  else store_scattered(w, insn, o, &a);
}

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

/* Atomic against other workers. Atomics have 32 or 64 bits, and memory of a buffer is aligned to its elements. */
#define EXCHANGE(T)                                                                                        \
  do {                                                                                                     \
    T *memory = (T *)(void *)address, old = __atomic_load_n(memory, __ATOMIC_RELAXED);                     \
    if (insn->op == ATLAS_OP_atom_add) return __atomic_fetch_add(memory, (T)a, __ATOMIC_RELAXED);          \
    while (!__atomic_compare_exchange_n(memory, &old, (T)atlas_update(insn->op, type, old, a, b), 1,       \
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {                             \
    }                                                                                                      \
    return old;                                                                                            \
  } while (0)

static uint64_t exchange(const vector_insn *insn, uint8_t *address, uint64_t a, uint64_t b) {
  atlas_type type = (atlas_type)insn->type;
  if (hg_cpu_element_bytes(insn->type) == 4) EXCHANGE(uint32_t);
  EXCHANGE(uint64_t);
}

/* One lane, with any kind of address. */
static void update_lane(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, uint32_t i, int is_alone) {
  uint32_t bytes = hg_cpu_element_bytes(insn->type);
  int value = address_registers(insn);
  uint8_t *address = address_of(w, insn, o, i);
  uint64_t old = 0;
  if (address != NULL) {
    uint64_t a = hg_cpu_source(o, value, bytes, i);
    uint64_t b = insn->op == ATLAS_OP_atom_cas ? hg_cpu_source(o, value + 1, bytes, i) : 0;
    if (is_alone) {
      old = atlas_read_value(address, bytes);
      atlas_write_value(address, bytes, atlas_update(insn->op, (atlas_type)insn->type, old, a, b));
    } else {
      old = exchange(insn, address, a, b);
    }
  }
  if (o->d != NULL) atlas_write_value((uint8_t *)o->d + (size_t)i * bytes, bytes, old);
}

/* Additions in bounds whose old values are unused: histograms and counters. */
#define ADD_CHUNK(T)                                                                                         \
  static void add_chunk_##T(void *base, const uint64_t *at, const void *s, size_t step, const uint8_t *mask, \
                            size_t lanes, int is_alone) {                                                    \
    T *memory = base;                                                                                        \
    const T *value = s;                                                                                      \
    for (size_t i = 0; i < lanes; i++) {                                                                     \
      if (mask != NULL && !mask[i]) continue;                                                                \
      if (is_alone) memory[at[i]] += value[i * step];                                                        \
      else __atomic_fetch_add(memory + at[i], value[i * step], __ATOMIC_RELAXED);                            \
    }                                                                                                        \
  }
ADD_CHUNK(uint32_t)
ADD_CHUNK(uint64_t)

/* 0 if the chunk at `at` is not of that kind. */
static int add_chunk(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a, uint32_t at,
                     uint32_t lanes, int is_alone) {
  uint64_t position[CPU_CHUNK];
  uint8_t inside[CPU_CHUNK];
  const uint8_t *mask;
  if (insn->op != ATLAS_OP_atom_add || o->d != NULL || insn->mode != ATLAS_ADDRESS_INDEXED || insn->flags & VECTOR_LANE)
    return 0;
  if (!find_elements(w, insn, o, a, at, &mask, inside, position)) return 1;
  const void *s = chunk_of(o, 1, at, a->bytes);
  if (a->bytes == 4) add_chunk_uint32_t(a->memory, position, s, o->step[1], mask, lanes, is_alone);
  else add_chunk_uint64_t(a->memory, position, s, o->step[1], mask, lanes, is_alone);
  return 1;
}

/* Lane by lane. */
static void update_chunk(cpu_worker *w, const vector_insn *insn, const cpu_operands *o, const array *a, uint32_t at,
                         uint32_t lanes, int is_alone) {
  uint64_t position[CPU_CHUNK];
  uint8_t inside[CPU_CHUNK];
  const uint8_t *mask = chunk_mask(o, at, inside);
  if (insn->mode == ATLAS_ADDRESS_INDEXED && !(insn->flags & VECTOR_LANE))
    (void)find_elements(w, insn, o, a, at, &mask, inside, position);
  for (uint32_t i = 0; i < lanes; i++) {
    if (mask == NULL || mask[i]) update_lane(w, insn, o, at + i, is_alone);
    else if (o->d != NULL && hg_cpu_takes_part(o, at + i))
      atlas_write_value((uint8_t *)o->d + (size_t)(at + i) * a->bytes, a->bytes, 0);
  }
}

void hg_cpu_atomic(cpu_worker *w, const vector_insn *insn, const cpu_operands *o) {
  array a;
  int is_array = array_of(w, insn, &a);
  int is_alone = w->is_own[insn->symbol];
  for (uint32_t at = 0; at < o->count; at += CPU_CHUNK) {
    uint32_t lanes = o->count - at < CPU_CHUNK ? o->count - at : CPU_CHUNK;
    if (!is_array || !add_chunk(w, insn, o, &a, at, lanes, is_alone)) update_chunk(w, insn, o, &a, at, lanes, is_alone);
  }
}
