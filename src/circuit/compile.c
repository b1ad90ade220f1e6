/* compile.c - the canonical form as one Atlas program over the boundary pool.
 *
 * A component is a set of classes that have nothing to do with the others. A block of lanes does some of them, one
 * after another, each in rounds of one element a lane and class. All classes begin at a multiple of 4096 bytes, so what
 * a round reads and writes lies in few sets of the first cache. A round therefore loads a content where it is first
 * needed, and stores one as soon as the old content of its class has been loaded.
 *
 * Components of one shape (equal steps, but for the classes and constants) share their code. What differs is in a table
 * with a row for each of them. Classes whose numbers always differ by the same amount share a column and a register. */
#include "atlas/tables.h"
#include "base/base_tuning.h"
#include "circuit/parts.h"

enum { CLASS_BYTES = ATLAS_CLASS_PAGES * ATLAS_CLASS_PAGE_BYTES, LANES = HG_CIRCUIT_BLOCK_LANES };
enum { ROUNDS_LEFT, ROWS_LEFT, ROW, MASKED, COLUMN = MASKED + 2, FIRST_FREE = COLUMN + HG_CIRCUIT_COLUMNS };

/* Components of one shape, and the code that they share. */
typedef struct group {
  uint32_t first, count;                        /* components: `first`, writer.next[first], ... */
  uint32_t column[HG_CIRCUIT_COLUMNS], columns; /* parameters: see parameter_of */
} group;

typedef struct writer {
  const hg_allocator *allocator;
  const circuit_form *form;
  uint32_t values;
  uint32_t *component; /* of each value; CIRCUIT_NONE: no class that changes has to do with it */
  uint32_t *number;    /* of each value: its number in the component; CIRCUIT_NONE: none yet */
  uint32_t *order;     /* the values of all components, one component behind the other, by number */
  uint32_t *uses;      /* of each value, in the round being written: operands and stores that have yet to read it */
  uint32_t *home;      /* its register; CIRCUIT_NONE: it is in none */
  uint32_t components, start[CIRCUIT_CLASSES + 1], next[CIRCUIT_CLASSES];
  group groups[CIRCUIT_CLASSES];
  uint32_t group_count, blocks;
  uint32_t free[ATLAS_GENERAL_REGISTERS], free_count, lacks_registers;
  hg_array table; /* uint32_t */
  atlas_builder *builder;
  uint16_t pool, rows;
} writer;

static int is_class(uint32_t value) { return value < CIRCUIT_CLASSES; }
static const circuit_term *term_of(const writer *w, uint32_t value) {
  return circuit_term_at(w->form, value - CIRCUIT_CLASSES);
}

/* What a value is made of: the operands of a term; what a class ends up with. */
static circuit_content operand(const writer *w, uint32_t value, uint32_t i) {
  return is_class(value) ? w->form->final[value] : i == 0 ? term_of(w, value)->x : term_of(w, value)->y;
}

/* Without arithmetic elements have 8 bytes, which takes half as many rounds. */
static atlas_type type_of(const writer *w) { return w->form->terms.count == 0 ? ATLAS_u64 : ATLAS_f32; }
static uint32_t class_elements(const writer *w) { return CLASS_BYTES / atlas_bytes(type_of(w)); }

/* ---- components -------------------------------------------------------------------------------------------------- */

/* Makes the components of two classes one. A component's root is its lowest class. */
static void join(uint32_t *root, uint32_t a, uint32_t b) {
  uint32_t x = root[a], y = root[b];
  for (uint32_t c = 0; c < CIRCUIT_CLASSES && x != y; c++)
    if (root[c] == x || root[c] == y) root[c] = x < y ? x : y;
}

static void find_components(writer *w) {
  uint32_t root[CIRCUIT_CLASSES], number[CIRCUIT_CLASSES], *member = w->component; /* of each value some class */
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) root[c] = member[c] = c;
  for (uint32_t v = CIRCUIT_CLASSES; v < w->values; v++) {
    member[v] = member[operand(w, v, 0).value];
    join(root, member[v], member[operand(w, v, 1).value]);
  }
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) join(root, c, member[operand(w, c, 0).value]);
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) number[c] = CIRCUIT_NONE;
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++)
    if (!circuit_keeps(w->form, c) && number[root[c]] == CIRCUIT_NONE) number[root[c]] = w->components++;
  for (uint32_t v = 0; v < w->values; v++) w->component[v] = number[root[member[v]]];
}

static void number_value(writer *w, uint32_t value) {
  if (w->number[value] == CIRCUIT_NONE) w->number[value] = w->start[w->component[value] + 1]++;
}

/* Numbers the values by what reads them, so that components of one shape have equal numbers: terms behind their
 * operands, then each class before the one whose content it ends up with. */
static void number_values(writer *w) {
  for (uint32_t v = 0; v < w->values; v++) w->number[v] = CIRCUIT_NONE;
  for (uint32_t v = CIRCUIT_CLASSES; v < w->values; v++) {
    number_value(w, operand(w, v, 0).value);
    number_value(w, operand(w, v, 1).value);
    number_value(w, v);
  }
  for (uint32_t first = 0; first < CIRCUIT_CLASSES; first++)
    for (uint32_t c = first; w->number[c] == CIRCUIT_NONE && w->component[c] != CIRCUIT_NONE;) {
      number_value(w, c);
      c = operand(w, c, 0).value;
    }
  for (uint32_t k = 0; k < w->components; k++) w->start[k + 1] += w->start[k];
  for (uint32_t v = 0; v < w->values; v++) {
    if (w->component[v] != CIRCUIT_NONE) w->order[w->start[w->component[v]] + w->number[v]] = v;
    w->home[v] = CIRCUIT_NONE;
    for (uint32_t i = 0; i < 2; i++)
      w->uses[operand(w, v, i).value] += !is_class(v) || (i == 0 && !circuit_keeps(w->form, v));
  }
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static uint32_t size_of(const writer *w, uint32_t component) { return w->start[component + 1] - w->start[component]; }

static uint32_t kind_of(const writer *w, uint32_t value) {
  return is_class(value) ? CIRCUIT_OPERATIONS + (uint32_t)circuit_keeps(w->form, value) : term_of(w, value)->operation;
}

static int are_alike(const writer *w, uint32_t a, uint32_t b) {
  int alike = size_of(w, a) == size_of(w, b);
  for (uint32_t i = 0; alike && i < size_of(w, a); i++) {
    uint32_t v = w->order[w->start[a] + i], u = w->order[w->start[b] + i];
    alike = kind_of(w, v) == kind_of(w, u);
    for (uint32_t k = 0; k < 2; k++) alike &= w->number[operand(w, v, k).value] == w->number[operand(w, u, k).value];
  }
  return alike;
}

/* What components of one shape may differ in. A value has two parameters: a term the constants of its operands, a class
 * its number and the constant of what it ends up with. CIRCUIT_NONE: 0. */
static uint32_t parameter_of(const writer *w, uint32_t component, uint32_t p) {
  if (p == CIRCUIT_NONE) return 0;
  uint32_t value = w->order[w->start[component] + p / 2];
  return is_class(value) && p % 2 == 0 ? value : operand(w, value, p % 2).mask;
}

static int is_number(const writer *w, const group *g, uint32_t p) {
  return p % 2 == 0 && is_class(w->order[w->start[g->first] + p / 2]);
}

/* 1: the difference of two parameters is the same in all components of the group. */
static int differ_alike(const writer *w, const group *g, uint32_t p, uint32_t q) {
  uint32_t k = g->first, difference = parameter_of(w, k, p) - parameter_of(w, k, q);
  while (k != CIRCUIT_NONE && parameter_of(w, k, p) - parameter_of(w, k, q) == difference) k = w->next[k];
  return k == CIRCUIT_NONE;
}

/* The column that gives a parameter; CIRCUIT_NONE: none. */
static uint32_t column_of(const writer *w, const group *g, uint32_t p) {
  for (uint32_t i = 0; i < g->columns; i++) {
    uint32_t q = g->column[i];
    if (p == q || (is_number(w, g, p) && is_number(w, g, q) && differ_alike(w, g, p, q))) return i;
  }
  return CIRCUIT_NONE;
}

/* Makes a group of a component and those below `end` that are like it. 0: it would have too many columns. */
static int make_group(writer *w, group *g, uint32_t first, uint32_t end) {
  uint32_t last = first;
  *g = (group){.first = first, .count = 1};
  for (uint32_t k = first + 1; k < end; k++) {
    if (w->next[k] != k || !are_alike(w, first, k)) continue;
    last = w->next[last] = k;
    g->count++;
  }
  w->next[last] = CIRCUIT_NONE;
  for (uint32_t p = 0; p < 2 * size_of(w, first); p++) {
    int is_constant = !is_number(w, g, p) && differ_alike(w, g, p, CIRCUIT_NONE);
    if (is_constant || column_of(w, g, p) != CIRCUIT_NONE) continue;
    if (g->columns == HG_CIRCUIT_COLUMNS) return 0;
    g->column[g->columns++] = p;
  }
  return 1;
}

/* How many components each block of a group does, so that several threads have blocks. */
static uint32_t components_a_block(const group *g) {
  uint32_t count = g->count / HG_CIRCUIT_LEAST_BLOCKS;
  while (count > 1 && g->count % count != 0) count--;
  return count > 1 ? count : 1;
}

static int add_rows(writer *w, const group *g) {
  for (uint32_t k = g->first; k != CIRCUIT_NONE; k = w->next[k])
    for (uint32_t i = 0; i < g->columns; i++) {
      uint32_t p = g->column[i], scale = is_number(w, g, p) ? class_elements(w) : UINT32_C(0x01010101);
      if (!hg_array_push(w->allocator, &w->table, parameter_of(w, k, p) * scale)) return 0;
    }
  return 1;
}

/* 0: out of memory. */
static int find_groups(writer *w) {
  for (uint32_t k = 0; k < w->components; k++) w->next[k] = k; /* in no group */
  for (uint32_t k = 0; k < w->components; k++) {
    group *g = w->groups + w->group_count;
    if (w->next[k] != k) continue;
    if (!make_group(w, g, k, w->components)) {
      for (uint32_t i = k, after = k; after != CIRCUIT_NONE; i = after) {
        after = w->next[i];
        w->next[i] = i;
      }
      (void)make_group(w, g, k, k + 1);
    }
    if (!add_rows(w, g)) return 0;
    w->group_count++;
    w->blocks += g->count / components_a_block(g);
  }
  return 1;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

static void emit(const writer *w, atlas_op op, atlas_type type, atlas_operand a, atlas_operand b, atlas_operand c) {
  atlas_emit(w->builder, op, type, 3, a, b, c);
}

static atlas_operand address_of(const writer *w, const group *g, uint32_t c) {
  uint32_t i = column_of(w, g, 2 * w->number[c]);
  int64_t classes = (int64_t)c - (int64_t)parameter_of(w, g->first, g->column[i]);
  return atlas_mem_reg(w->pool, COLUMN + i, classes * class_elements(w));
}

/* The register of a content whose constant is this parameter: MASKED + i, or its value's own. */
static atlas_operand fetch(const writer *w, const group *g, circuit_content content, uint32_t p, uint32_t i) {
  atlas_operand own = atlas_reg(w->home[content.value]), masked = atlas_reg(MASKED + i);
  uint32_t column = column_of(w, g, p), is_float = type_of(w) == ATLAS_f32;
  if (column == CIRCUIT_NONE && content.mask == 0) return own;
  uint64_t bytes = content.mask * (is_float ? UINT64_C(0x01010101) : UINT64_C(0x0101010101010101));
  if (is_float) atlas_emit2(w->builder, ATLAS_OP_bitcast, ATLAS_u32, ATLAS_f32, masked, own);
  emit(w, ATLAS_OP_xor, is_float ? ATLAS_u32 : ATLAS_u64, masked, is_float ? masked : own,
       column == CIRCUIT_NONE ? atlas_bits(bytes) : atlas_reg(COLUMN + column));
  if (is_float) atlas_emit2(w->builder, ATLAS_OP_bitcast, ATLAS_f32, ATLAS_u32, masked, masked);
  return masked;
}

static void take_home(writer *w, uint32_t value) {
  w->lacks_registers |= w->free_count == 0;
  w->home[value] = w->free_count > 0 ? w->free[--w->free_count] : FIRST_FREE;
}

/* Loads a class whose content is in no register. */
static void need(writer *w, const group *g, uint32_t value) {
  if (w->home[value] != CIRCUIT_NONE) return;
  take_home(w, value);
  atlas_emit(w->builder, ATLAS_OP_ldg, type_of(w), 2, atlas_reg(w->home[value]), address_of(w, g, value));
}

static void use(writer *w, uint32_t value) {
  if (--w->uses[value] == 0 && !w->lacks_registers) w->free[w->free_count++] = w->home[value];
}

static void write_term(writer *w, const group *g, uint32_t v) {
  const circuit_term *t = term_of(w, v);
  need(w, g, t->x.value);
  need(w, g, t->y.value);
  atlas_operand x = fetch(w, g, t->x, 2 * w->number[v], 0), y = fetch(w, g, t->y, 2 * w->number[v] + 1, 1);
  use(w, t->x.value);
  use(w, t->y.value);
  take_home(w, v);
  emit(w, (atlas_op)hg_circuit_operations[t->operation].code, ATLAS_f32, atlas_reg(w->home[v]), x, y);
}

/* Stores a value to the classes that end up with it. What they held is loaded first, if it is still needed. */
static void write_stores(writer *w, const group *g, uint32_t value) {
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    circuit_content f = w->form->final[c];
    if (f.value != value || circuit_keeps(w->form, c)) continue;
    need(w, g, value);
    if (w->uses[c] > 0) need(w, g, c);
    atlas_emit(w->builder, ATLAS_OP_stg, type_of(w), 2, address_of(w, g, c), fetch(w, g, f, 2 * w->number[c] + 1, 0));
    use(w, value);
  }
}

/* Contents that only move, then terms. */
static void write_round(writer *w, const group *g) {
  for (int terms = 0; terms < 2; terms++)
    for (uint32_t i = w->start[g->first]; i < w->start[g->first + 1]; i++) {
      uint32_t v = w->order[i];
      if (is_class(v) == terms) continue;
      if (terms) write_term(w, g, v);
      write_stores(w, g, v);
    }
}

/* Puts the columns of a row into registers: the number of a lane's first element in a class, or a constant. */
static void write_columns(const writer *w, const group *g) {
  for (uint32_t i = 0; i < g->columns; i++) {
    atlas_operand r = atlas_reg(COLUMN + i);
    atlas_emit(w->builder, ATLAS_OP_ldc, ATLAS_u32, 2, r, atlas_mem_reg(w->rows, ROW, i));
    if (is_number(w, g, g->column[i])) {
      emit(w, ATLAS_OP_add, ATLAS_u32, r, r, atlas_reg(ATLAS_REG_BLOCK_LANE));
    } else if (type_of(w) == ATLAS_u64) {
      atlas_emit2(w->builder, ATLAS_OP_cvt, ATLAS_u64, ATLAS_u32, r, r);
      emit(w, ATLAS_OP_mul, ATLAS_u64, r, r, atlas_bits(UINT64_C(0x100000001)));
    }
  }
}

/* What a block does, if the blocks of the group begin with number `block` and its rows with element `row`. */
static void write_group(writer *w, const group *g, uint32_t block, uint32_t row) {
  const atlas_operand at = atlas_reg(ROW), rounds = atlas_reg(ROUNDS_LEFT), rows = atlas_reg(ROWS_LEFT);
  uint32_t next_row = atlas_builder_label(w->builder, NULL), next_round = atlas_builder_label(w->builder, NULL);
  uint32_t count = components_a_block(g), elements = count * g->columns;
  for (w->free_count = 0; w->free_count < ATLAS_GENERAL_REGISTERS - FIRST_FREE; w->free_count++)
    w->free[w->free_count] = ATLAS_GENERAL_REGISTERS - 1 - w->free_count;
  emit(w, ATLAS_OP_mul, ATLAS_u32, at, atlas_reg(ATLAS_REG_BLOCK_INDEX), atlas_bits(elements));
  emit(w, ATLAS_OP_add, ATLAS_u32, at, at, atlas_bits((uint32_t)(row - block * elements)));
  atlas_emit(w->builder, ATLAS_OP_movi, ATLAS_u32, 2, rows, atlas_bits(count));
  atlas_builder_place(w->builder, next_row);
  write_columns(w, g);
  atlas_emit(w->builder, ATLAS_OP_movi, ATLAS_u32, 2, rounds, atlas_bits(class_elements(w) / LANES));
  atlas_builder_place(w->builder, next_round);
  write_round(w, g);
  for (uint32_t i = 0; i < g->columns; i++)
    if (is_number(w, g, g->column[i]))
      emit(w, ATLAS_OP_add, ATLAS_u32, atlas_reg(COLUMN + i), atlas_reg(COLUMN + i), atlas_bits(LANES));
  atlas_emit(w->builder, ATLAS_OP_loop, ATLAS_NONE, 2, rounds, atlas_label_ref(next_round));
  emit(w, ATLAS_OP_add, ATLAS_u32, at, at, atlas_bits(g->columns));
  atlas_emit(w->builder, ATLAS_OP_loop, ATLAS_NONE, 2, rows, atlas_label_ref(next_row));
  atlas_emit(w->builder, ATLAS_OP_exit, ATLAS_NONE, 0);
}

/* The groups' blocks follow each other: a block finds its group by its number. */
static void write_groups(writer *w) {
  uint32_t block = 0, row = 0;
  for (const group *g = w->groups; g < w->groups + w->group_count; g++) {
    uint32_t other = atlas_builder_label(w->builder, NULL), end = block + g->count / components_a_block(g);
    emit(w, ATLAS_OP_set_ge, ATLAS_u32, atlas_pred(0), atlas_reg(ATLAS_REG_BLOCK_INDEX), atlas_bits(end));
    atlas_emit_branch(w->builder, 0, 0, other);
    write_group(w, g, block, row);
    atlas_builder_place(w->builder, other);
    block = end;
    row += g->count * g->columns;
  }
  atlas_emit(w->builder, ATLAS_OP_exit, ATLAS_NONE, 0);
}

static hg_status write_program(writer *w, atlas_program **out) {
  HG_TRY(atlas_builder_create(w->allocator, "circuit", &w->builder));
  atlas_builder_block(w->builder, LANES, 1, 1);
  w->pool = atlas_builder_buffer(w->builder, "pool", type_of(w), ATLAS_INOUT);
  if (w->group_count > 0)
    w->rows = atlas_builder_const(w->builder, "rows", ATLAS_u32, (uint32_t)w->table.count, w->table.data);
  write_groups(w);
  if (w->lacks_registers)
    return hg_fail(HG_UNSUPPORTED, "the circuit needs more than %d contents at once, more than a program has registers",
                   ATLAS_GENERAL_REGISTERS - FIRST_FREE);
  atlas_builder *builder = w->builder;
  w->builder = NULL;
  return atlas_builder_finish(builder, out);
}

hg_status hg_circuit_write_program(const hg_allocator *allocator, const circuit_form *form, circuit_layout *layout,
                                   atlas_program **out) {
  writer w = {.allocator = allocator, .form = form, .values = CIRCUIT_CLASSES + (uint32_t)form->terms.count,
              .table = {.element_size = sizeof(uint32_t)}};
  w.component = hg_allocate(allocator, (size_t)w.values * 5, sizeof *w.component);
  int has_memory = w.component != NULL;
  if (has_memory) {
    w.number = w.component + w.values;
    w.order = w.number + w.values;
    w.uses = w.order + w.values;
    w.home = w.uses + w.values;
    find_components(&w);
    number_values(&w);
    has_memory = find_groups(&w);
  }
  hg_status status = has_memory ? HG_OK : hg_fail_memory("the program of a circuit", w.values);
  *layout = (circuit_layout){w.components, w.blocks * LANES};
  if (status == HG_OK && out != NULL) status = write_program(&w, out);
  atlas_builder_release(w.builder);
  hg_array_release(allocator, &w.table);
  hg_release(allocator, w.component);
  return status;
}
