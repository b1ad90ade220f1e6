/* compile.c - the canonical form as one Atlas program over the boundary pool.
 *
 * All classes begin at multiples of 4096 bytes, so code that goes through all of them at once has its accesses in the
 * same sets of the first cache. Classes that have nothing to do with each other are therefore done one set (a
 * component) after the other: each block of lanes has one component, and does it in rounds of 512 bytes a class. */
#include "base/base_tuning.h"
#include "circuit/parts.h"

#include <string.h>

enum { CLASS_BYTES = ATLAS_CLASS_PAGES * ATLAS_CLASS_PAGE_BYTES };
enum { COUNTER, INDEX, MASKED, FLOAT_X, FLOAT_Y, FIRST_FREE }; /* registers */

typedef struct writer {
  const hg_allocator *allocator;
  const circuit_form *form;
  uint32_t component_count;
  uint32_t *component;  /* of each value; CIRCUIT_NONE: of classes that no changed class has to do with */
  uint32_t *last;       /* of each value the last term that reads it; CIRCUIT_NONE: none */
  uint32_t *home;       /* of each value its register; CIRCUIT_NONE: it is in none */
  uint8_t *wanted;      /* of each value: 1: a class that changes ends up with it */
  uint32_t free[ATLAS_GENERAL_REGISTERS], free_count;
  atlas_builder *builder;
  uint16_t pool;
} writer;

/* Without arithmetic elements have 8 bytes, which takes half as many lanes. */
static uint32_t element_bytes(const writer *w) { return w->form->terms.count == 0 ? 8 : 4; }
static atlas_type element_type(const writer *w) { return w->form->terms.count == 0 ? ATLAS_u64 : ATLAS_u32; }
static uint32_t round_elements(const writer *w) { return HG_CIRCUIT_ROUND_BYTES / element_bytes(w); }

static uint32_t find(uint32_t *parent, uint32_t value) {
  while (parent[value] != value) value = parent[value] = parent[parent[value]];
  return value;
}

/* The lower of two roots becomes that of both. A component's root is thus its lowest class. */
static void unite(uint32_t *parent, uint32_t a, uint32_t b) {
  a = find(parent, a);
  b = find(parent, b);
  parent[a < b ? b : a] = a < b ? a : b;
}

static void find_components(writer *w) {
  uint32_t values = CIRCUIT_CLASSES + (uint32_t)w->form->terms.count, number[CIRCUIT_CLASSES], *parent = w->component;
  for (uint32_t v = 0; v < values; v++) parent[v] = v;
  for (uint32_t i = 0; i < w->form->terms.count; i++) {
    unite(parent, CIRCUIT_CLASSES + i, circuit_term_at(w->form, i)->x.value);
    unite(parent, CIRCUIT_CLASSES + i, circuit_term_at(w->form, i)->y.value);
  }
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) unite(parent, c, w->form->final[c].value);
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) number[c] = CIRCUIT_NONE;
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    uint32_t root = find(parent, c);
    if (!circuit_keeps(w->form, c) && number[root] == CIRCUIT_NONE) number[root] = w->component_count++;
  }
  for (uint32_t v = values; v-- > 0;) w->component[v] = number[find(parent, v)]; /* roots stand before the rest */
}

/* Which term reads each value last, and which values classes end up with. */
static void find_uses(writer *w) {
  for (uint32_t v = 0; v < CIRCUIT_CLASSES + w->form->terms.count; v++) w->last[v] = w->home[v] = CIRCUIT_NONE;
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++)
    if (!circuit_keeps(w->form, c)) w->wanted[w->form->final[c].value] = 1;
  for (uint32_t i = 0; i < w->form->terms.count; i++)
    w->last[circuit_term_at(w->form, i)->x.value] = w->last[circuit_term_at(w->form, i)->y.value] = i;
}

static atlas_operand address_of(const writer *w, uint32_t c) {
  return atlas_mem_reg(w->pool, INDEX, (int64_t)c * (CLASS_BYTES / element_bytes(w)));
}

static hg_status take_home(writer *w, uint32_t value) {
  if (w->free_count == 0)
    return hg_fail(HG_UNSUPPORTED, "the circuit needs more than %d contents at once, more than a program has registers",
                   ATLAS_GENERAL_REGISTERS - FIRST_FREE);
  w->home[value] = w->free[--w->free_count];
  return HG_OK;
}

static void release(writer *w, uint32_t value, uint32_t term) {
  if (w->last[value] != term || w->home[value] == CIRCUIT_NONE) return;
  w->free[w->free_count++] = w->home[value];
  w->home[value] = CIRCUIT_NONE;
}

/* The register of a content. */
static atlas_operand fetch(const writer *w, circuit_content content) {
  atlas_operand own = atlas_reg(w->home[content.value]);
  if (content.mask == 0) return own;
  uint64_t mask = content.mask * (element_bytes(w) == 8 ? UINT64_C(0x0101010101010101) : UINT64_C(0x01010101));
  atlas_emit(w->builder, ATLAS_OP_xor, element_type(w), 3, atlas_reg(MASKED), own, atlas_bits(mask));
  return atlas_reg(MASKED);
}

/* To every class that ends up with the value, of which nobody needs the old content from memory any more. */
static void write_stores(writer *w, uint32_t value) {
  for (uint32_t c = 0; c < CIRCUIT_CLASSES && w->wanted[value]; c++) {
    circuit_content f = w->form->final[c];
    if (f.value == value && !circuit_keeps(w->form, c))
      atlas_emit(w->builder, ATLAS_OP_stg, element_type(w), 2, address_of(w, c), fetch(w, f));
  }
  release(w, value, CIRCUIT_NONE);
}

static hg_status write_term(writer *w, uint32_t i) {
  const circuit_term *t = circuit_term_at(w->form, i);
  atlas_builder *b = w->builder;
  atlas_emit2(b, ATLAS_OP_bitcast, ATLAS_f32, ATLAS_u32, atlas_reg(FLOAT_X), fetch(w, t->x));
  atlas_emit2(b, ATLAS_OP_bitcast, ATLAS_f32, ATLAS_u32, atlas_reg(FLOAT_Y), fetch(w, t->y));
  const atlas_operand operands[] = {atlas_reg(FLOAT_X), atlas_reg(FLOAT_X), atlas_reg(FLOAT_Y)};
  atlas_emit_operands(b, (atlas_op)hg_circuit_operations[t->operation].code, ATLAS_f32, ATLAS_NONE, operands, 3);
  release(w, t->x.value, i);
  release(w, t->y.value, i);
  HG_TRY(take_home(w, CIRCUIT_CLASSES + i));
  atlas_emit2(b, ATLAS_OP_bitcast, ATLAS_u32, ATLAS_f32, atlas_reg(w->home[CIRCUIT_CLASSES + i]), atlas_reg(FLOAT_X));
  write_stores(w, CIRCUIT_CLASSES + i);
  return HG_OK;
}

/* A round loads all that is read, before anything is stored. */
static hg_status write_round(writer *w, uint32_t number) {
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    if (w->component[c] != number || (w->last[c] == CIRCUIT_NONE && !w->wanted[c])) continue;
    HG_TRY(take_home(w, c));
    atlas_emit(w->builder, ATLAS_OP_ldg, element_type(w), 2, atlas_reg(w->home[c]), address_of(w, c));
  }
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++)
    if (w->home[c] != CIRCUIT_NONE) write_stores(w, c);
  for (uint32_t i = 0; i < w->form->terms.count; i++)
    if (w->component[CIRCUIT_CLASSES + i] == number) HG_TRY(write_term(w, i));
  return HG_OK;
}

static hg_status write_component(writer *w, uint32_t number) {
  atlas_builder *b = w->builder;
  uint32_t again = atlas_builder_label(b, NULL);
  for (w->free_count = 0; w->free_count < ATLAS_GENERAL_REGISTERS - FIRST_FREE; w->free_count++)
    w->free[w->free_count] = ATLAS_GENERAL_REGISTERS - 1 - w->free_count;
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(COUNTER), atlas_bits(CLASS_BYTES / HG_CIRCUIT_ROUND_BYTES));
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(INDEX), atlas_reg(ATLAS_REG_BLOCK_LANE));
  atlas_builder_place(b, again);
  HG_TRY(write_round(w, number));
  atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(INDEX), atlas_reg(INDEX), atlas_bits(round_elements(w)));
  atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(COUNTER), atlas_label_ref(again));
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  return HG_OK;
}

/* The components of these numbers, each for the block of its number: by halves, seven tests deep at most. */
static hg_status write_components(writer *w, uint32_t first, uint32_t count) {
  if (count == 1) return write_component(w, first);
  uint32_t middle = first + count / 2, rest = atlas_builder_label(w->builder, NULL);
  atlas_emit(w->builder, ATLAS_OP_set_ge, ATLAS_u32, 3, atlas_pred(0), atlas_reg(ATLAS_REG_BLOCK_INDEX),
             atlas_bits(middle));
  atlas_emit_branch(w->builder, 0, 0, rest);
  HG_TRY(write_components(w, first, count / 2));
  atlas_builder_place(w->builder, rest);
  return write_components(w, middle, count - count / 2);
}

static hg_status write_program(writer *w, atlas_program **out) {
  find_uses(w);
  HG_TRY(atlas_builder_create(w->allocator, "circuit", &w->builder));
  atlas_builder_block(w->builder, round_elements(w), 1, 1);
  w->pool = atlas_builder_buffer(w->builder, "pool", element_type(w), ATLAS_INOUT);
  if (w->component_count > 0) HG_TRY(write_components(w, 0, w->component_count));
  else atlas_emit(w->builder, ATLAS_OP_exit, ATLAS_NONE, 0);
  atlas_builder *builder = w->builder;
  w->builder = NULL;
  return atlas_builder_finish(builder, out);
}

hg_status hg_circuit_write_program(const hg_allocator *allocator, const circuit_form *form, circuit_layout *layout,
                                   atlas_program **out) {
  size_t values = CIRCUIT_CLASSES + form->terms.count;
  writer w = {.allocator = allocator, .form = form};
  w.component = hg_allocate(allocator, values * 3, sizeof *w.component);
  w.wanted = hg_allocate(allocator, values, 1);
  int has_memory = w.component != NULL && w.wanted != NULL;
  hg_status status = has_memory ? HG_OK : hg_fail_memory("the program of a circuit", values);
  if (status == HG_OK) {
    w.last = w.component + values;
    w.home = w.last + values;
    find_components(&w);
    *layout = (circuit_layout){w.component_count, w.component_count * round_elements(&w)};
    if (out != NULL) status = write_program(&w, out);
  }
  atlas_builder_release(w.builder);
  hg_release(allocator, w.component);
  hg_release(allocator, w.wanted);
  return status;
}
