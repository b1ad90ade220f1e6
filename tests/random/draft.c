/* draft.c - programs and launches as data. */
#include "draft.h"

#include "atlas/value.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A NaN of any payload, signalling or quiet. */
static uint64_t any_nan(rng *r, atlas_type type) {
  uint64_t infinity = atlas_round_f64(type, 1e308 * 10), quiet = atlas_canonical_nan(type) ^ infinity;
  uint64_t payload = rng_next(r) & (2 * quiet - 1);
  return infinity | (payload != 0 ? payload : 1);
}

static uint64_t special_float(rng *r, atlas_type type) {
  static const double numbers[] = {
      0,    -0.0, 1,     -1,   2,    0.5,  -0.5,  1.5, 3,     0.1,          -0.3,         10,     100,
      1e-3, 1e10, -1e10, 1e30, 1e38, 1e39, 1e300, 255, 65504, 2147483648.0, 4294967296.0, 9.3e18, 1e-40};
  double infinity = 1e308 * 10;
  uint64_t sign = UINT64_C(1) << (atlas_type_bits(type) - 1);
  switch (rng_below(r, 12)) {
  case 10: return sign; /* -0 */
  case 11: return 0;
  case 0: return atlas_round_f64(type, infinity) ^ (rng_chance(r, 50) ? sign : 0);
  case 1: return atlas_canonical_nan(type) ^ (rng_chance(r, 50) ? sign : 0);
  case 2: {
    uint64_t nan = r->generation >= WITH_SHAPES ? any_nan(r, type) : atlas_canonical_nan(type) | rng_below(r, 64);
    return nan ^ (rng_chance(r, 50) ? sign : 0);
  }
  case 3: return 1 + rng_below(r, 5); /* the smallest of all */
  default: return atlas_round_f64(type, numbers[rng_below(r, sizeof numbers / sizeof *numbers)]);
  }
}

static uint64_t special_integer(rng *r, atlas_type type) {
  uint64_t sign = UINT64_C(1) << (atlas_type_bits(type) - 1), mask = atlas_mask(type);
  switch (rng_below(r, 7)) {
  case 0: return 0;
  case 1: return mask;
  case 2: return sign;
  case 3: return sign - 1;
  case 4: return UINT64_C(1) << rng_below(r, atlas_type_bits(type));
  case 5: return (0 - (uint64_t)rng_below(r, 20)) & mask;
  default: return rng_below(r, 20) & mask;
  }
}

static const struct {
  uint16_t op;
  uint8_t generation;
} younger[] = {{ATLAS_OP_ldl, WITH_LOCAL_ARRAYS},
               {ATLAS_OP_stl, WITH_LOCAL_ARRAYS},
               {ATLAS_OP_len, WITH_LEN},
               {ATLAS_OP_dot4_ss, WITH_DOT4},
               {ATLAS_OP_dot4_uu, WITH_DOT4},
               {ATLAS_OP_dot4_us, WITH_DOT4},
               {ATLAS_OP_rank, WITH_RANK},
               {ATLAS_OP_cbrt, WITH_CBRT},
               {ATLAS_OP_sinpi, WITH_HALF_TURNS},
               {ATLAS_OP_cospi, WITH_HALF_TURNS}};
enum { YOUNGER = sizeof younger / sizeof *younger }; /* in the order of ops.def */

atlas_op rng_op(rng *r) {
  uint32_t count = (uint32_t)atlas_op_count();
  for (unsigned k = 0; k < YOUNGER; k++) count -= younger[k].generation > r->generation;
  uint32_t row = rng_below(r, count);
  for (unsigned k = 0; k < YOUNGER; k++)
    row += younger[k].generation > r->generation && row >= (size_t)(atlas_op_lookup(younger[k].op) - atlas_ops);
  return atlas_op_at(row);
}

uint64_t rng_value(rng *r, atlas_type type) {
  uint64_t mask = atlas_mask(type);
  uint32_t kind = rng_below(r, 10);
  if (kind < 2 || atlas_kind(type) == ATLAS_KIND_STORAGE) return rng_next(r) & mask;
  if (atlas_kind(type) != ATLAS_KIND_FLOAT) return kind < 6 ? special_integer(r, type) : rng_below(r, 100) & mask;
  if (kind < 6) return special_float(r, type);
  return atlas_round_f64(type, ((double)rng_below(r, 4001) - 2000) / (rng_chance(r, 50) ? 100 : 1));
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void *grown(void *memory, size_t bytes) {
  void *out = realloc(memory, bytes);
  if (out == NULL) abort(); /* a test machine without memory */
  return out;
}

void draft_release(draft *d) {
  free(d->insns);
  free(d->labels);
  memset(d, 0, sizeof *d);
}

void draft_copy(draft *to, const draft *from) {
  *to = *from;
  to->insn_capacity = from->insn_count + 16;
  to->label_capacity = from->label_count + 16;
  to->insns = grown(NULL, to->insn_capacity * sizeof *to->insns);
  to->labels = grown(NULL, to->label_capacity * sizeof *to->labels);
  if (from->insn_count > 0) memcpy(to->insns, from->insns, from->insn_count * sizeof *to->insns);
  if (from->label_count > 0) memcpy(to->labels, from->labels, from->label_count * sizeof *to->labels);
}

void draft_append(draft *d, const atlas_insn *insn) {
  if (d->insn_count == d->insn_capacity) {
    d->insn_capacity = 2 * d->insn_capacity + 64;
    d->insns = grown(d->insns, d->insn_capacity * sizeof *d->insns);
  }
  d->insns[d->insn_count++] = *insn;
}

void draft_insert(draft *d, uint32_t at, const atlas_insn *insn) {
  atlas_insn copy = *insn;
  draft_append(d, &copy);
  memmove(d->insns + at + 1, d->insns + at, (d->insn_count - 1 - at) * sizeof *d->insns);
  d->insns[at] = copy;
  for (uint32_t i = 0; i < d->label_count; i++)
    if (d->labels[i] > at) d->labels[i]++;
}

void draft_delete(draft *d, uint32_t at, uint32_t count) {
  memmove(d->insns + at, d->insns + at + count, (d->insn_count - at - count) * sizeof *d->insns);
  d->insn_count -= count;
  for (uint32_t i = 0; i < d->label_count; i++)
    if (d->labels[i] > at) d->labels[i] = d->labels[i] < at + count ? at : d->labels[i] - count;
}

uint32_t draft_label(draft *d) {
  if (d->label_count == d->label_capacity) {
    d->label_capacity = 2 * d->label_capacity + 32;
    d->labels = grown(d->labels, d->label_capacity * sizeof *d->labels);
  }
  d->labels[d->label_count] = UINT32_MAX;
  return d->label_count++;
}

int draft_is_target(const draft *d, uint32_t insn) {
  for (uint32_t i = 0; i < d->label_count; i++)
    if (d->labels[i] == insn) return 1;
  return 0;
}

static void declare(atlas_builder *b, const draft *d, const atlas_symbol *s, uint32_t i) {
  char other[ATLAS_MAX_NAME + 1];
  snprintf(other, sizeof other, "other_%u", i);
  const char *name = d->other_names ? other : s->name;
  switch (s->kind) {
  case ATLAS_SYMBOL_BUFFER: atlas_builder_buffer(b, name, (atlas_type)s->type, (atlas_access)s->access); break;
  case ATLAS_SYMBOL_SCALAR: atlas_builder_scalar(b, name, (atlas_type)s->type); break;
  case ATLAS_SYMBOL_SHARED: atlas_builder_shared(b, name, (atlas_type)s->type, s->count); break;
  case ATLAS_SYMBOL_LOCAL: atlas_builder_local(b, name, (atlas_type)s->type, s->count); break;
  case ATLAS_SYMBOL_CONST:
    atlas_builder_const(b, name, (atlas_type)s->type, s->count, d->constants + s->const_offset);
    break;
  case ATLAS_SYMBOL_TABLE: atlas_builder_table(b, name, s->count, (atlas_access)s->access); break;
  default: atlas_builder_pool(b, name); break;
  }
}

/* Labels that nothing names are left out: the text of a shrunk program stays readable. */
static void emit_all(atlas_builder *b, const draft *d) {
  uint32_t *number = grown(NULL, (d->label_count + 1) * sizeof *number);
  memset(number, 0xff, (d->label_count + 1) * sizeof *number);
  for (uint32_t i = 0; i < d->insn_count; i++)
    for (unsigned k = 0; k < d->insns[i].operand_count; k++) {
      const atlas_operand *o = &d->insns[i].operand[k];
      if (o->kind != ATLAS_OPERAND_LABEL || number[o->bits] != UINT32_MAX) continue;
      char name[32];
      snprintf(name, sizeof name, "elsewhere_%u", (unsigned)o->bits);
      number[o->bits] = atlas_builder_label(b, d->other_names ? name : NULL);
    }
  for (uint32_t i = 0; i <= d->insn_count; i++) {
    for (uint32_t l = 0; l < d->label_count; l++)
      if (d->labels[l] == i && number[l] != UINT32_MAX) atlas_builder_place(b, number[l]);
    if (i == d->insn_count) break;
    atlas_insn insn = d->insns[i];
    for (unsigned k = 0; k < insn.operand_count; k++)
      if (insn.operand[k].kind == ATLAS_OPERAND_LABEL) insn.operand[k].bits = number[insn.operand[k].bits];
    atlas_builder_insn(b, &insn);
  }
  free(number);
}

atlas_program *draft_build(const draft *d) {
  atlas_builder *b = NULL;
  atlas_program *program = NULL;
  if (atlas_builder_create(NULL, d->other_names ? "other" : "random", &b) != HG_OK) return NULL;
  for (uint32_t i = 0; i < d->symbol_count; i++) declare(b, d, &d->symbols[i], i);
  if (d->block[0] != 0) atlas_builder_block(b, d->block[0], d->block[1], d->block[2]);
  emit_all(b, d);
  return atlas_builder_finish(b, &program) == HG_OK ? program : NULL;
}

void draft_from_program(draft *d, const atlas_program *program) {
  *d = (draft){.constant_bytes = (uint32_t)program->constants.count, .symbol_count = (uint32_t)program->symbols.count};
  if (d->symbol_count > 0) memcpy(d->symbols, program->symbols.data, d->symbol_count * sizeof *d->symbols);
  if (d->constant_bytes > 0) memcpy(d->constants, program->constants.data, d->constant_bytes);
  memcpy(d->block, program->block, sizeof d->block);
  for (size_t i = 0; i < program->insns.count; i++) draft_append(d, atlas_insn_at(program, i));
  for (size_t i = 0; i < program->labels.count; i++) {
    uint32_t label = draft_label(d); /* may move d->labels */
    d->labels[label] = atlas_label_at(program, i)->target;
  }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

enum { GAP = 64 }; /* between two spans: nothing may touch it */

static void fill(test_launch *l, uint64_t offset, uint64_t bytes, atlas_type type, rng *r) {
  uint32_t size = atlas_bytes(type);
  for (uint64_t at = 0; at + size <= bytes; at += size) {
    uint64_t value = rng_value(r, type);
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    const void *source = size == 1   ? (const void *)&u8
                         : size == 2 ? (const void *)&u16
                         : size == 4 ? (const void *)&u32
                                     : &value;
    memcpy(l->initial + offset + at, source, size);
  }
}

/* Half of the launches have spans at multiples of 64 only: stores that pass the caches need that. */
static uint64_t take(test_launch *l, uint64_t bytes) {
  uint64_t at = l->arena_bytes, unit = l->seed % 2 ? 64 : 16;
  l->arena_bytes += (bytes + unit - 1) / unit * unit + GAP;
  return at;
}

static int is_memory(const atlas_symbol *s) { return s->kind == ATLAS_SYMBOL_BUFFER || s->kind == ATLAS_SYMBOL_POOL; }

void test_launch_prepare(test_launch *l, const draft *d) {
  rng r = {.state = l->seed, .generation = l->generation};
  l->arena_bytes = GAP;
  for (uint32_t i = 0; i < d->symbol_count; i++) {
    if (is_memory(&d->symbols[i])) l->offset[i] = l->same_as[i] ? l->offset[l->same_as[i] - 1] : take(l, l->bytes[i]);
    for (uint32_t k = 0; d->symbols[i].kind == ATLAS_SYMBOL_TABLE && k < d->symbols[i].count; k++)
      if (l->entry_bytes[i][k] != UINT64_MAX) l->entry_offset[i][k] = take(l, l->entry_bytes[i][k]);
  }
  free(l->initial);
  l->initial = grown(NULL, l->arena_bytes);
  memset(l->initial, 0xa5, l->arena_bytes);
  for (uint32_t i = 0; i < d->symbol_count; i++) {
    atlas_type type = (atlas_type)d->symbols[i].type;
    if (is_memory(&d->symbols[i]) && !l->same_as[i]) fill(l, l->offset[i], l->bytes[i], type, &r);
    if (d->symbols[i].kind == ATLAS_SYMBOL_SCALAR) l->scalar[i] = rng_value(&r, type);
    for (uint32_t k = 0; d->symbols[i].kind == ATLAS_SYMBOL_TABLE && k < d->symbols[i].count; k++)
      if (l->entry_bytes[i][k] != UINT64_MAX) fill(l, l->entry_offset[i][k], l->entry_bytes[i][k], ATLAS_u8, &r);
  }
}

void test_launch_release(test_launch *l) {
  free(l->initial);
  l->initial = NULL;
}

hg_status test_launch_run(const test_launch *l, const draft *d, run_function run, const void *context, outcome *out) {
  atlas_argument arguments[DRAFT_SYMBOLS];
  atlas_span entries[DRAFT_SYMBOLS][DRAFT_TABLE_ENTRIES];
  memset(arguments, 0, sizeof arguments);
  *out = (outcome){.memory = grown(NULL, l->arena_bytes + 63)};
  out->arena = out->memory + (-(uintptr_t)out->memory & 63);
  memcpy(out->arena, l->initial, l->arena_bytes);
  if (l->uses_boundary) {
    out->boundary = grown(NULL, ATLAS_BOUNDARY_POOL_BYTES);
    for (uint32_t i = 0; i < ATLAS_BOUNDARY_POOL_BYTES; i++) out->boundary[i] = (uint8_t)(i * 37 >> 3);
  }
  for (uint32_t i = 0; i < d->symbol_count; i++) {
    if (is_memory(&d->symbols[i])) arguments[i].span = (atlas_span){out->arena + l->offset[i], l->bytes[i]};
    arguments[i].bits = l->scalar[i];
    for (uint32_t k = 0; d->symbols[i].kind == ATLAS_SYMBOL_TABLE && k < d->symbols[i].count; k++) {
      int bound = l->entry_bytes[i][k] != UINT64_MAX;
      entries[i][k] =
          bound ? (atlas_span){out->arena + l->entry_offset[i][k], l->entry_bytes[i][k]} : (atlas_span){NULL, 0};
    }
    arguments[i].table = entries[i];
  }
  out->launch = (atlas_launch){.lanes = l->lanes, .arguments = arguments, .boundary = out->boundary, .phase = l->phase};
  memcpy(out->launch.grid, l->grid, sizeof l->grid);
  memcpy(out->launch.block, l->block, sizeof l->block);
  out->launch.step_limit = l->step_limit;
  hg_status status = run(context, &out->launch);
  out->launch.arguments = NULL;
  return status;
}

void outcome_release(outcome *out) {
  free(out->memory);
  free(out->boundary);
  *out = (outcome){0};
}

/* Names the span that holds a byte of the arena. */
static void name_byte(const test_launch *l, const draft *d, uint64_t at, char *text, size_t text_bytes) {
  snprintf(text, text_bytes, "arena byte %llu, outside every span", (unsigned long long)at);
  for (uint32_t i = 0; i < d->symbol_count; i++) {
    if (is_memory(&d->symbols[i]) && at >= l->offset[i] && at < l->offset[i] + l->bytes[i])
      snprintf(text, text_bytes, "%s, byte %llu (element %llu)", d->symbols[i].name,
               (unsigned long long)(at - l->offset[i]),
               (unsigned long long)((at - l->offset[i]) / atlas_bytes((atlas_type)d->symbols[i].type)));
    for (uint32_t k = 0; d->symbols[i].kind == ATLAS_SYMBOL_TABLE && k < d->symbols[i].count; k++)
      if (l->entry_bytes[i][k] != UINT64_MAX && at >= l->entry_offset[i][k] &&
          at < l->entry_offset[i][k] + l->entry_bytes[i][k])
        snprintf(text, text_bytes, "%s, entry %u, byte %llu", d->symbols[i].name, k,
                 (unsigned long long)(at - l->entry_offset[i][k]));
  }
}

int outcome_differs(const test_launch *l, const draft *d, const outcome *a, const outcome *b, char *text,
                    size_t text_bytes) {
  for (uint64_t i = 0; memcmp(a->arena, b->arena, l->arena_bytes) != 0 && i < l->arena_bytes; i++)
    if (a->arena[i] != b->arena[i]) {
      char where[128];
      name_byte(l, d, i, where, sizeof where);
      snprintf(text, text_bytes, "%s: 0x%02x, not 0x%02x", where, b->arena[i], a->arena[i]);
      return 1;
    }
  if (a->boundary != NULL && memcmp(a->boundary, b->boundary, ATLAS_BOUNDARY_POOL_BYTES) != 0) {
    uint32_t i = 0;
    while (a->boundary[i] == b->boundary[i]) i++;
    snprintf(text, text_bytes, "boundary pool, byte %u: 0x%02x, not 0x%02x", i, b->boundary[i], a->boundary[i]);
    return 1;
  }
  if (memcmp(a->launch.resonance, b->launch.resonance, sizeof a->launch.resonance) != 0) {
    snprintf(text, text_bytes, "resonance counters");
    return 1;
  }
  if (a->launch.phase_advance == b->launch.phase_advance) return 0;
  snprintf(text, text_bytes, "phase advanced by %u, not %u", b->launch.phase_advance, a->launch.phase_advance);
  return 1;
}
