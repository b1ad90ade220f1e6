/* bind.c - the arguments of a launch, made from bindings, default handles and scalars, all checked before a lane runs.
 * Every refusal is HG_BINDING (or HG_BUSY) and names the parameter. */
#include "runtime/runtime.h"
#include "base/base_tuning.h"

#include "atlas/program.h"

#include <stdio.h>
#include <string.h>

enum { INLINE_RANGES = 64 };

/* Memory that a launch may touch. */
typedef struct range {
  const uint8_t *first, *end;
  uint16_t symbol;
  uint8_t writable;
  uint8_t element_bytes; /* if it is accessed as [x + lane] only; else 0 */
  uint32_t entry;
} range;

typedef struct binder {
  hg_kernel *kernel;
  const hg_parameter *parameters; /* of the kernel */
  const hg_launch_desc *desc;
  size_t symbol_count;
  hg_bound *bound_memory;
  hg_stream_set mark;
  atlas_argument *arguments;
  atlas_span *tables;
  uint64_t bound[ATLAS_MAX_SYMBOLS / 64]; /* a bit for each symbol */
  range *ranges;
  size_t range_count;
  range inline_ranges[INLINE_RANGES];
} binder;

static const atlas_symbol *symbol_of(const binder *b, size_t index) {
  return atlas_symbol_at(b->kernel->program, index);
}

static int is_bound(const binder *b, size_t index) { return b->bound[index / 64] >> index % 64 & 1; }
static void note_bound(binder *b, size_t index) { b->bound[index / 64] |= UINT64_C(1) << index % 64; }

/* ---- finding parameters ------------------------------------------------------------------------------------------ */

static const char *kind_name(uint8_t kind) {
  switch (kind) {
  case ATLAS_SYMBOL_BUFFER: return "a buffer";
  case ATLAS_SYMBOL_SCALAR: return "a scalar";
  case ATLAS_SYMBOL_SHARED: return "shared memory";
  case ATLAS_SYMBOL_LOCAL: return "a local array";
  case ATLAS_SYMBOL_CONST: return "a constant table";
  case ATLAS_SYMBOL_TABLE: return "a buffer table";
  default: return "a pool";
  }
}

/* "x, y, z": the program's scalars, or its other parameters; cut to "x, y, ..." if the text is too short. */
static void list_parameters(const binder *b, int scalars, char *text, size_t text_bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < b->kernel->program->symbols.count; i++) {
    const atlas_symbol *symbol = symbol_of(b, i);
    if (scalars ? symbol->kind != ATLAS_SYMBOL_SCALAR : !b->parameters[i].is_memory) continue;
    if (used + strlen(symbol->name) + sizeof ", , ..." > text_bytes) {
      snprintf(text + used, text_bytes - used, ", ...");
      return;
    }
    int written = snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "", symbol->name);
    used += written > 0 ? (size_t)written : 0;
  }
  if (used == 0) snprintf(text, text_bytes, "none");
}

/* The symbol of that name; symbol_count if there is none. Bindings mostly come in the order of the parameters, so the
 * search begins after the parameter of the last binding. */
static size_t find_name(const binder *b, const char *name) {
  size_t count = b->symbol_count, index = b->range_count;
  for (size_t i = 0; i < count; i++, index++) {
    if (index >= count) index = 0;
    if (strcmp(symbol_of(b, index)->name, name) == 0) return index;
  }
  return count;
}

static hg_status find_parameter(const binder *b, const char *name, uint32_t slot, int scalar, uint16_t *out) {
  size_t count = b->kernel->program->symbols.count, index = slot;
  if (name != NULL) index = find_name(b, name);
  if (index >= count) {
    char names[400];
    list_parameters(b, scalar, names, sizeof names);
    const char *what = scalar ? "scalars" : "buffers";
    if (name == NULL)
      return hg_fail(HG_BINDING, "there is no slot %u: program '%s' has %zu symbols", (unsigned)slot,
                     b->kernel->program->name, count);
    return hg_fail(HG_BINDING, "program '%s' has no parameter '%s'; its %s are: %s", b->kernel->program->name,
                   HG_WORD(name, strlen(name)), what, names);
  }
  const atlas_symbol *symbol = symbol_of(b, index);
  if (scalar ? symbol->kind != ATLAS_SYMBOL_SCALAR : !b->parameters[index].is_memory)
    return hg_fail(HG_BINDING, "'%s' is %s and cannot be given a %s", symbol->name, kind_name(symbol->kind),
                   scalar ? "value" : "buffer");
  *out = (uint16_t)index;
  return HG_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int is_valid_range(const binder *b, const hg_parameter *parameter, const hg_buffer *buffer, uint64_t offset,
                   uint64_t byte_count) {
  const hg_storage *storage = buffer->storage;
  return storage->executor == b->kernel->executor && storage->map_count == 0 && offset <= buffer->byte_count &&
         byte_count <= buffer->byte_count - offset && ((buffer->offset + offset) & (parameter->alignment - 1u)) == 0;
}

/* Why a range of a buffer is not valid for its parameter. */
static hg_status fail_range(const binder *b, uint16_t index, const hg_buffer *buffer, uint64_t offset,
                        uint64_t byte_count) {
  const atlas_symbol *symbol = symbol_of(b, index);
  const char *name = symbol->name;
  if (buffer->storage->executor != b->kernel->executor)
    return hg_fail(HG_BINDING, "the buffer for '%s' belongs to another executor than the kernel", name);
  if (buffer->storage->map_count > 0)
    return hg_fail(HG_BUSY, "the buffer for '%s' is mapped; unmap it before the launch", name);
  if (offset > buffer->byte_count || byte_count > buffer->byte_count - offset)
    return hg_fail(HG_BINDING,
                   "the range for '%s' (%llu bytes at offset %llu) does not lie in its buffer of %llu bytes", name,
                   (unsigned long long)byte_count, (unsigned long long)offset, (unsigned long long)buffer->byte_count);
  const char *what = symbol->kind == ATLAS_SYMBOL_BUFFER ? atlas_type_name((atlas_type)symbol->type)
                                                         : kind_name(symbol->kind);
  uint64_t start = buffer->offset + offset;
  if (buffer->storage->foreign) /* the start of its owner's memory is unknown */
    return hg_fail(HG_BINDING, "the range for '%s' starts at address 0x%llx; it must be a multiple of %u (%s)", name,
                   (unsigned long long)((uintptr_t)buffer->storage->address + start),
                   (unsigned)b->parameters[index].alignment, what);
  return hg_fail(HG_BINDING, "the range for '%s' starts at byte %llu of its memory; it must be a multiple of %u (%s)",
                 name, (unsigned long long)start, (unsigned)b->parameters[index].alignment, what);
}

/* If the launch fails later, the mark stays, and a later call queries an idle stream in vain. */
static hg_status note_use(binder *b, hg_storage *storage, int is_written) {
  b->bound_memory->used |= storage->used;
  storage->used |= b->mark;
  if (is_written && b->mark != 0) hg_note_write_locked(storage);
  if (b->bound_memory->keeper != NULL) return hg_graph_keep_locked(b->bound_memory->keeper, storage);
  return b->bound_memory->stream != NULL ? hg_stream_reach_locked(b->bound_memory->stream, storage) : HG_OK;
}

static hg_status find_span(binder *b, uint16_t index, uint32_t entry, atlas_span **span) {
  *span = &b->arguments[index].span;
  if (!b->parameters[index].is_table)
    return is_bound(b, index) ? hg_fail(HG_BINDING, "'%s' is bound twice", symbol_of(b, index)->name) : HG_OK;
  /* The argument's table points into b->tables, which this file allocated and may write. */
  *span = b->tables + (b->arguments[index].table - b->tables) + entry;
  if ((*span)->memory == NULL) return HG_OK;
  return hg_fail(HG_BINDING, "entry %u of '%s' is bound twice", (unsigned)entry, symbol_of(b, index)->name);
}

/* Binds a range to the parameter `index`. */
static hg_status bind_range(binder *b, uint16_t index, const hg_binding *binding) {
  const hg_parameter *parameter = &b->parameters[index];
  const hg_buffer *buffer = binding->buffer;
  uint64_t offset = binding->offset, byte_count = binding->byte_count;
  if (byte_count == 0 && offset <= buffer->byte_count) byte_count = buffer->byte_count - offset;
  if (!is_valid_range(b, parameter, buffer, offset, byte_count))
    return fail_range(b, index, buffer, offset, byte_count);
  uint8_t *first = buffer->storage->address + buffer->offset + offset;
  HG_TRY(note_use(b, buffer->storage, parameter->is_written));
  atlas_span *span = NULL;
  HG_TRY(find_span(b, index, binding->entry, &span));
  *span = (atlas_span){first, byte_count};
  note_bound(b, index);
  range *r = &b->ranges[b->range_count++];
  r->first = first;
  r->end = first + byte_count;
  r->symbol = index;
  r->writable = parameter->is_written;
  r->element_bytes = parameter->element_bytes;
  r->entry = binding->entry;
  return HG_OK;
}

static hg_status check_entry(const binder *b, uint16_t index, uint32_t entry) {
  const atlas_symbol *symbol = symbol_of(b, index);
  if (!b->parameters[index].is_table)
    return hg_fail(HG_BINDING, "'%s' is %s, not a table, and has no entry %u", symbol->name, kind_name(symbol->kind),
                   (unsigned)entry);
  if (entry < symbol->count) return HG_OK;
  return hg_fail(HG_BINDING, "table '%s' has no entry %u: it has %u", symbol->name, (unsigned)entry,
                 (unsigned)symbol->count);
}

static hg_status bind_given(binder *b, const hg_binding *binding) {
  uint16_t index = (uint16_t)binding->slot;
  if (binding->name != NULL || binding->slot >= b->symbol_count || !b->parameters[index].is_memory)
    HG_TRY(find_parameter(b, binding->name, binding->slot, 0, &index));
  if (binding->buffer == NULL)
    return hg_fail(HG_BINDING, "the binding of '%s' has no buffer", symbol_of(b, index)->name);
  if (binding->entry != 0) HG_TRY(check_entry(b, index, binding->entry));
  return bind_range(b, index, binding);
}

static hg_status fail_reserved(const char *what, size_t index) {
  return hg_fail(HG_INVALID_ARGUMENT, "%s %zu of a launch has reserved room that is not zero", what, index);
}

/* Callers built against another version have bindings of another size. */
static hg_status bind_memory(binder *b) {
  const hg_binding *bindings = b->desc->bindings;
  size_t count = b->desc->binding_count, stride = HG_STRIDE(hg_binding, b->desc->binding_size);
  for (size_t i = 0; i < count; i++) {
    const hg_binding *binding;
    hg_binding own;
    if (stride == sizeof own) {
      binding = &bindings[i];
    } else {
      HG_TRY(HG_READ_ELEMENT(hg_binding, &own, bindings, stride, i));
      binding = &own;
    }
    if ((binding->reserved[0] | binding->reserved[1] | binding->reserved[2]) != 0) return fail_reserved("binding", i);
    HG_TRY(bind_given(b, binding));
  }
  return HG_OK;
}

/* A parameter that the launch does not mention gets its default handle, if it has one. */
static hg_status bind_missing(binder *b, uint16_t index) {
  const atlas_symbol *symbol = symbol_of(b, index);
  if (symbol->kind == ATLAS_SYMBOL_SCALAR)
    return hg_fail(HG_BINDING, "scalar '%s' is not given: the program needs a value of %s for it", symbol->name,
                   atlas_type_name((atlas_type)symbol->type));
  if (symbol->handle == 0) {
    if (symbol->kind == ATLAS_SYMBOL_POOL)
      return hg_fail(HG_BINDING, "'%s' is not bound: the program needs a pool for it", symbol->name);
    return hg_fail(HG_BINDING, "'%s' is not bound: the program needs a buffer of %s (%s) for it", symbol->name,
                   atlas_type_name((atlas_type)symbol->type), atlas_access_name(symbol->access));
  }
  hg_binding whole = {.buffer = hg_handle_find_locked(b->kernel->executor, symbol->handle)};
  if (whole.buffer == NULL)
    return hg_fail(HG_BINDING, "'%s' is not bound, and its default, buffer handle %llu, is no buffer of this executor",
                   symbol->name, (unsigned long long)symbol->handle);
  return bind_range(b, index, &whole);
}

/* ---- overlap ----------------------------------------------------------------------------------------------------- */

/* Ascending by first byte, then by end; equal ranges in the order of the parameters, so that messages do not vary. */
static int comes_before(const range *a, const range *b) {
  uintptr_t first_a = (uintptr_t)a->first, first_b = (uintptr_t)b->first;
  if (first_a != first_b) return first_a < first_b;
  if (a->end != b->end) return (uintptr_t)a->end < (uintptr_t)b->end;
  return a->symbol != b->symbol ? a->symbol < b->symbol : a->entry < b->entry;
}

static void sift_down(range *heap, size_t root, size_t count) {
  for (size_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && comes_before(&heap[child], &heap[child + 1])) child++;
    if (!comes_before(&heap[root], &heap[child])) return;
    range swapped = heap[root];
    heap[root] = heap[child];
    heap[child] = swapped;
  }
}

/* Heapsort: a table may bring 65536 ranges, and qsort may allocate. */
static void sort(range *ranges, size_t count) {
  for (size_t i = count / 2; i-- > 0;) sift_down(ranges, i, count);
  for (size_t i = count; i-- > 1;) {
    range largest = ranges[0];
    ranges[0] = ranges[i];
    ranges[i] = largest;
    sift_down(ranges, 0, i);
  }
}

static void describe_range(const binder *b, const range *r, char *text, size_t text_bytes) {
  const atlas_symbol *symbol = symbol_of(b, r->symbol);
  if (symbol->kind == ATLAS_SYMBOL_TABLE)
    snprintf(text, text_bytes, "'%s' (entry %u)", symbol->name, (unsigned)r->entry);
  else snprintf(text, text_bytes, "'%s'", symbol->name);
}

static hg_status fail_overlap(const binder *b, const range *a, const range *other) {
  const range *written = a->writable ? a : other;
  char first[96], second[96], third[96];
  describe_range(b, a, first, sizeof first);
  describe_range(b, other, second, sizeof second);
  describe_range(b, written, third, sizeof third);
  return hg_fail(HG_BINDING,
                 "the ranges for %s and %s overlap and %s is written; only identical ranges accessed as [x + lane] may",
                 first, second, third);
}

/* Two identical ranges may overlap if every lane accesses only its own element of both. */
static int may_share(const range *a, const range *b) {
  return a->element_bytes != 0 && a->element_bytes == b->element_bytes;
}

/* Checks a run of identical ranges; *written is one of them that is written, or NULL. */
static hg_status check_run(const binder *b, const range *run, size_t count, const range **written) {
  *written = NULL;
  for (size_t i = 0; i < count && *written == NULL; i++)
    if (run[i].writable) *written = &run[i];
  for (size_t i = 0; i < count && *written != NULL; i++)
    if (&run[i] != *written && !may_share(&run[i], *written)) return fail_overlap(b, &run[i], *written);
  return HG_OK;
}

/* 1 if no written range overlaps another. Compares all pairs, which is fast for the few ranges of most launches. */
static int has_no_overlap(const binder *b) {
  if (b->range_count > HG_FEW_RANGES) return 0;
  for (size_t i = 1; i < b->range_count; i++) {
    const range *r = &b->ranges[i];
    for (const range *s = b->ranges; s < r; s++)
      if ((uintptr_t)r->first < (uintptr_t)s->end && (uintptr_t)s->first < (uintptr_t)r->end &&
          (r->writable || s->writable))
        return 0;
  }
  return 1;
}

/* Sweeps by address, over runs of identical ranges. Remembers the range with the greatest end, and the written range
 * with the greatest end: a range overlaps an earlier one exactly if it overlaps the one with the greatest end. */
static hg_status check_overlap(binder *b) {
  sort(b->ranges, b->range_count);
  const range *last = NULL, *last_written = NULL;
  size_t next = 0;
  for (size_t i = 0; i < b->range_count; i = next) {
    const range *run = &b->ranges[i], *written = NULL;
    for (next = i; next < b->range_count && b->ranges[next].first == run->first && b->ranges[next].end == run->end;)
      next++;
    if (run->first == run->end) continue; /* an empty range overlaps nothing */
    HG_TRY(check_run(b, run, next - i, &written));
    const range *earlier = written != NULL ? last : last_written;
    if (earlier != NULL && (uintptr_t)earlier->end > (uintptr_t)run->first)
      return fail_overlap(b, earlier, written != NULL ? written : run);
    if (last == NULL || (uintptr_t)run->end > (uintptr_t)last->end) last = run;
    if (written != NULL && (last_written == NULL || (uintptr_t)run->end > (uintptr_t)last_written->end))
      last_written = written;
  }
  return HG_OK;
}

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

static hg_status fail_type(const atlas_symbol *symbol, uint8_t given) {
  const char *declared = atlas_type_name((atlas_type)symbol->type);
  if (given >= ATLAS_TYPE_COUNT)
    return hg_fail(HG_BINDING, "scalar '%s' is %s, but the value given is of type code %u, which is unknown",
                   symbol->name, declared, (unsigned)given);
  return hg_fail(HG_BINDING, "scalar '%s' is %s, but the value given %s %s", symbol->name, declared,
                 given == ATLAS_NONE ? "has" : "is",
                 given == ATLAS_NONE ? "no type" : atlas_type_name((atlas_type)given));
}

static hg_status bind_scalar(binder *b, const hg_scalar *scalar) {
  uint16_t index = (uint16_t)scalar->slot;
  if (scalar->name != NULL || scalar->slot >= b->symbol_count || symbol_of(b, index)->kind != ATLAS_SYMBOL_SCALAR)
    HG_TRY(find_parameter(b, scalar->name, scalar->slot, 1, &index));
  const atlas_symbol *symbol = symbol_of(b, index);
  if (scalar->type != symbol->type) return fail_type(symbol, scalar->type);
  if (is_bound(b, index)) return hg_fail(HG_BINDING, "scalar '%s' is given twice", symbol->name);
  b->arguments[index].bits = scalar->bits & atlas_mask((atlas_type)symbol->type);
  note_bound(b, index);
  return HG_OK;
}

static hg_status bind_scalars(binder *b) {
  const hg_scalar *scalars = b->desc->scalars;
  size_t count = b->desc->scalar_count, stride = HG_STRIDE(hg_scalar, b->desc->scalar_size);
  for (size_t i = 0; i < count; i++) {
    const hg_scalar *scalar;
    hg_scalar own;
    if (stride == sizeof own) {
      scalar = &scalars[i];
    } else {
      HG_TRY(HG_READ_ELEMENT(hg_scalar, &own, scalars, stride, i));
      scalar = &own;
    }
    if ((scalar->reserved[0] | scalar->reserved[1] | scalar->reserved[2] | scalar->reserved2) != 0)
      return fail_reserved("scalar", i);
    HG_TRY(bind_scalar(b, scalar));
  }
  return HG_OK;
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

/* Allocates the entries of all tables, and a range for each binding and default handle. */
static hg_status allocate_ranges(binder *b) {
  const hg_allocator *allocator = &b->kernel->executor->allocator;
  size_t symbols = b->symbol_count;
  uint64_t entries = 0, ranges = (uint64_t)b->desc->binding_count + symbols;
  for (size_t i = 0; i < symbols && b->kernel->needs->has_tables; i++)
    if (b->parameters[i].is_table) entries += symbol_of(b, i)->count;
  if (entries > 0) {
    b->tables = hg_allocate(allocator, entries, sizeof *b->tables);
    if (b->tables == NULL) return hg_fail_memory("the tables of a launch", entries * sizeof *b->tables);
    entries = 0;
    for (size_t i = 0; i < symbols; i++) {
      if (!b->parameters[i].is_table) continue;
      b->arguments[i].table = b->tables + entries;
      entries += symbol_of(b, i)->count;
    }
  }
  if (ranges <= INLINE_RANGES) return HG_OK;
  b->ranges = hg_allocate(allocator, ranges, sizeof *b->ranges);
  return b->ranges != NULL ? HG_OK : hg_fail_memory("the bindings of a launch", ranges * sizeof *b->ranges);
}

static hg_status bind_all(binder *b) {
  HG_TRY(allocate_ranges(b));
  HG_TRY(bind_memory(b));
  HG_TRY(bind_scalars(b));
  for (size_t i = 0; i < b->symbol_count; i++)
    if (!is_bound(b, i) && b->parameters[i].is_required) HG_TRY(bind_missing(b, (uint16_t)i));
  return has_no_overlap(b) ? HG_OK : check_overlap(b);
}

/* Clears only the used part of the binder, which has room for many symbols: most programs have few. */
hg_status hg_bind_locked(hg_kernel *kernel, const hg_launch_desc *desc, hg_bound *bound) {
  size_t symbols = kernel->program->symbols.count;
  binder b;
  b.kernel = kernel;
  b.parameters = kernel->needs->parameters;
  b.symbol_count = symbols;
  b.desc = desc;
  b.bound_memory = bound;
  b.mark = bound->used;
  b.arguments = bound->arguments;
  b.tables = NULL;
  b.ranges = b.inline_ranges;
  b.range_count = 0;
  memset(b.bound, 0, sizeof b.bound);
  memset(b.arguments, 0, symbols * sizeof *b.arguments);
  hg_status status = bind_all(&b);
  if (b.ranges != b.inline_ranges) hg_release(&kernel->executor->allocator, b.ranges);
  bound->tables = b.tables;
  return status;
}
