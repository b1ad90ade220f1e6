/* compile.c - the canonical form as one Atlas program over the boundary pool.
 *
 * A component is a set of classes that have nothing to do with the others. A block of lanes does some of them, one
 * after another, each in rounds of one element a lane and class. All classes begin at a multiple of 4096 bytes, so what
 * a round reads and writes lies in few sets of the first cache. A round therefore loads a content where it is first
 * needed, and stores one as soon as the old content of its class has been loaded.
 *
 * Components of one shape (equal actions, but for the classes and constants) share their code. What differs is in a
 * table with a row for each of them. Classes whose numbers always differ by the same amount share a column and a
 * register. */
#include "atlas/tables.h"
#include "base/base_tuning.h"
#include "circuit/parts.h"

enum { CLASS_BYTES = ATLAS_CLASS_PAGES * ATLAS_CLASS_PAGE_BYTES, LANES = HG_CIRCUIT_BLOCK_LANES };
enum { ROUNDS_LEFT, ROWS_LEFT, ROW, MASKED, COLUMN = MASKED + 2, FIRST_FREE = COLUMN + HG_CIRCUIT_COLUMNS };
enum { LOAD = CIRCUIT_OPERATIONS, STORE };

/* What a round does: loads a class, stores to a class, or does an operation. */
typedef struct action {
  uint32_t kind;         /* LOAD, STORE, a circuit_operation */
  uint32_t to, x, y;     /* registers: of the result, of what is stored or the first operand, of the second operand */
  uint32_t parameter[2]; /* the class, and the constant of what is stored; the constants of the operands */
} action;

typedef struct component {
  hg_array actions; /* action */
  uint8_t free[ATLAS_GENERAL_REGISTERS], free_count, is_grouped;
} component;

/* Components of one shape. A parameter of theirs has the number 2 * action + 0 or 1. */
typedef struct group {
  const component *member[CIRCUIT_CLASSES];
  uint32_t count;
  uint32_t column[HG_CIRCUIT_COLUMNS], columns; /* parameters */
  uint32_t block_rows;                          /* how many components a block does */
  uint32_t block, row;                          /* its first block; where its rows begin in the table */
} group;

typedef struct writer {
  const hg_allocator *allocator;
  const circuit_form *form;
  uint32_t values;
  uint32_t *of;     /* of each value its component; CIRCUIT_NONE: no class that changes has to do with it */
  uint32_t *uses;   /* of each: the operands and stores that have yet to read it */
  uint32_t *home;   /* of each its register; CIRCUIT_NONE: it is in none */
  uint32_t *wanted; /* of each the first class that is changed to it; CIRCUIT_NONE */
  component components[CIRCUIT_CLASSES];
  group groups[CIRCUIT_CLASSES];
  uint32_t component_count, group_count, blocks;
  int has_memory, has_registers;
  hg_array table; /* uint32_t */
  atlas_builder *builder;
  uint16_t pool, rows;
} writer;

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
  uint32_t root[CIRCUIT_CLASSES], number[CIRCUIT_CLASSES];
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) root[c] = w->of[c] = c; /* of each value some class */
  for (uint32_t v = CIRCUIT_CLASSES; v < w->values; v++) {
    const circuit_term *t = circuit_term_at(w->form, v - CIRCUIT_CLASSES);
    w->of[v] = w->of[t->x.value];
    join(root, w->of[v], w->of[t->y.value]);
  }
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) join(root, c, w->of[w->form->final[c].value]);
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) number[c] = CIRCUIT_NONE;
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++)
    if (!circuit_keeps(w->form, c) && number[root[c]] == CIRCUIT_NONE) number[root[c]] = w->component_count++;
  for (uint32_t v = 0; v < w->values; v++) w->of[v] = number[root[w->of[v]]];
}

static void find_uses(writer *w) {
  for (uint32_t v = 0; v < w->values; v++) w->home[v] = w->wanted[v] = CIRCUIT_NONE;
  for (uint32_t i = 0; i < w->form->terms.count; i++) {
    w->uses[circuit_term_at(w->form, i)->x.value]++;
    w->uses[circuit_term_at(w->form, i)->y.value]++;
  }
  for (uint32_t c = CIRCUIT_CLASSES; c-- > 0;) {
    if (circuit_keeps(w->form, c)) continue;
    w->uses[w->form->final[c].value]++;
    w->wanted[w->form->final[c].value] = c;
  }
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static void act(writer *w, uint32_t value, action a) {
  hg_array *actions = &w->components[w->of[value]].actions;
  if (w->has_memory) w->has_memory = hg_array_append(w->allocator, actions, &a, 1) != NULL;
}

static uint32_t take_home(writer *w, uint32_t value) {
  component *k = &w->components[w->of[value]];
  if (k->free_count == 0) return w->has_registers = 0, w->home[value] = FIRST_FREE;
  return w->home[value] = k->free[--k->free_count];
}

/* Loads a class whose content is in no register. */
static uint32_t need(writer *w, uint32_t value) {
  if (w->home[value] == CIRCUIT_NONE) act(w, value, (action){LOAD, take_home(w, value), 0, 0, {value, 0}});
  return w->home[value];
}

static void use(writer *w, uint32_t value) {
  component *k = &w->components[w->of[value]];
  if (--w->uses[value] == 0 && w->has_registers) k->free[k->free_count++] = (uint8_t)w->home[value];
}

/* Changes a class. What it held is loaded before, if it is still needed. */
static void store(writer *w, uint32_t c) {
  circuit_content f = w->form->final[c];
  uint32_t from = need(w, f.value);
  if (w->uses[c] > 0) (void)need(w, c);
  act(w, c, (action){STORE, 0, from, 0, {c, f.mask}});
  use(w, f.value);
}

static void compute(writer *w, uint32_t value) {
  const circuit_term *t = circuit_term_at(w->form, value - CIRCUIT_CLASSES);
  uint32_t x = need(w, t->x.value), y = need(w, t->y.value);
  use(w, t->x.value);
  use(w, t->y.value);
  act(w, value, (action){t->operation, take_home(w, value), x, y, {t->x.mask, t->y.mask}});
  for (uint32_t c = w->wanted[value]; c < CIRCUIT_CLASSES; c++)
    if (w->form->final[c].value == value) store(w, c);
}

/* Contents that only move, each class before the one whose content it gets; then terms. */
static void find_actions(writer *w) {
  uint8_t is_done[CIRCUIT_CLASSES] = {0};
  for (component *k = w->components; k < w->components + w->component_count; k++) {
    k->actions.element_size = sizeof(action);
    for (int r = ATLAS_GENERAL_REGISTERS; r-- > FIRST_FREE;) k->free[k->free_count++] = (uint8_t)r;
  }
  for (uint32_t first = 0; first < CIRCUIT_CLASSES; first++)
    for (uint32_t c = first; c < CIRCUIT_CLASSES && !is_done[c]; c = w->form->final[c].value) {
      is_done[c] = 1;
      if (w->form->final[c].value < CIRCUIT_CLASSES && !circuit_keeps(w->form, c)) store(w, c);
    }
  for (uint32_t v = CIRCUIT_CLASSES; v < w->values; v++) compute(w, v);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static const action *action_at(const component *k, size_t i) { return (const action *)k->actions.data + i; }

static int are_alike(const component *a, const component *b) {
  int alike = a->actions.count == b->actions.count;
  for (size_t i = 0; alike && i < a->actions.count; i++) {
    const action *p = action_at(a, i), *q = action_at(b, i);
    alike = p->kind == q->kind && p->to == q->to && p->x == q->x && p->y == q->y;
  }
  return alike;
}

static int is_class(const group *g, uint32_t p) { return p % 2 == 0 && action_at(g->member[0], p / 2)->kind >= LOAD; }

static uint32_t parameter_of(const group *g, uint32_t member, uint32_t p) {
  return p == CIRCUIT_NONE ? 0 : action_at(g->member[member], p / 2)->parameter[p % 2];
}

/* 1: the difference of two parameters, or of one and 0 (CIRCUIT_NONE), is the same in all components of the group. */
static int differ_alike(const group *g, uint32_t p, uint32_t q) {
  uint32_t i = 0, difference = parameter_of(g, 0, p) - parameter_of(g, 0, q);
  while (i < g->count && parameter_of(g, i, p) - parameter_of(g, i, q) == difference) i++;
  return i == g->count;
}

/* The column that gives a parameter; CIRCUIT_NONE: none. */
static uint32_t column_of(const group *g, uint32_t p) {
  for (uint32_t i = 0; i < g->columns; i++) {
    uint32_t q = g->column[i];
    if (p == q || (is_class(g, p) && is_class(g, q) && differ_alike(g, p, q))) return i;
  }
  return CIRCUIT_NONE;
}

/* Makes a group of a component and those below `end` that are like it. 0: it would have too many columns. */
static int make_group(writer *w, group *g, const component *first, const component *end) {
  *g = (group){.block = w->blocks, .row = (uint32_t)w->table.count};
  for (const component *k = first; k < end; k++)
    if (!k->is_grouped && are_alike(first, k)) g->member[g->count++] = k;
  for (uint32_t p = 0; p < 2 * first->actions.count; p++) {
    int is_constant = !is_class(g, p) && differ_alike(g, p, CIRCUIT_NONE);
    if (is_constant || column_of(g, p) != CIRCUIT_NONE) continue;
    if (g->columns == HG_CIRCUIT_COLUMNS) return 0;
    g->column[g->columns++] = p;
  }
  g->block_rows = g->count / HG_CIRCUIT_LEAST_BLOCKS; /* or less: as many in each block, and one at least */
  while (g->block_rows > 1 && g->count % g->block_rows != 0) g->block_rows--;
  g->block_rows += g->block_rows == 0;
  return 1;
}

static void find_groups(writer *w) {
  component *end = w->components + w->component_count;
  for (component *k = w->components; k < end; k++) {
    group *g = w->groups + w->group_count;
    if (k->is_grouped) continue;
    if (!make_group(w, g, k, end)) (void)make_group(w, g, k, k + 1); /* a column is enough for one */
    for (uint32_t i = 0; i < g->count * g->columns && w->has_memory; i++) {
      uint32_t p = g->column[i % g->columns], scale = is_class(g, p) ? class_elements(w) : UINT32_C(0x01010101);
      w->has_memory = hg_array_push(w->allocator, &w->table, parameter_of(g, i / g->columns, p) * scale);
    }
    for (uint32_t i = 0; i < g->count; i++) w->components[g->member[i] - w->components].is_grouped = 1;
    w->group_count++;
    w->blocks += g->count / g->block_rows;
  }
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void emit(const writer *w, atlas_op op, atlas_type type, atlas_operand a, atlas_operand b, atlas_operand c) {
  atlas_emit(w->builder, op, type, 3, a, b, c);
}

static atlas_operand address(const writer *w, const group *g, uint32_t p) {
  uint32_t i = column_of(g, p);
  int64_t classes = (int64_t)parameter_of(g, 0, p) - (int64_t)parameter_of(g, 0, g->column[i]);
  return atlas_mem_reg(w->pool, COLUMN + i, classes * class_elements(w));
}

/* The register of a content whose constant is this parameter: `own`, or MASKED + i. */
static atlas_operand fetch(const writer *w, const group *g, uint32_t own, uint32_t p, uint32_t i) {
  atlas_operand masked = atlas_reg(MASKED + i), from = atlas_reg(own);
  uint32_t column = column_of(g, p), is_float = type_of(w) == ATLAS_f32;
  uint64_t mask = parameter_of(g, 0, p) * (is_float ? UINT64_C(0x01010101) : UINT64_C(0x0101010101010101));
  if (column == CIRCUIT_NONE && mask == 0) return from;
  if (is_float) atlas_emit2(w->builder, ATLAS_OP_bitcast, ATLAS_u32, ATLAS_f32, masked, from);
  emit(w, ATLAS_OP_xor, is_float ? ATLAS_u32 : ATLAS_u64, masked, is_float ? masked : from,
       column == CIRCUIT_NONE ? atlas_bits(mask) : atlas_reg(COLUMN + column));
  if (is_float) atlas_emit2(w->builder, ATLAS_OP_bitcast, ATLAS_f32, ATLAS_u32, masked, masked);
  return masked;
}

static void write_action(const writer *w, const group *g, uint32_t number) {
  const action *a = action_at(g->member[0], number);
  uint32_t p = 2 * number, q = p + 1;
  if (a->kind == LOAD) {
    atlas_emit(w->builder, ATLAS_OP_ldg, type_of(w), 2, atlas_reg(a->to), address(w, g, p));
  } else if (a->kind == STORE) {
    atlas_emit(w->builder, ATLAS_OP_stg, type_of(w), 2, address(w, g, p), fetch(w, g, a->x, q, 0));
  } else {
    atlas_operand x = fetch(w, g, a->x, p, 0), y = fetch(w, g, a->y, q, 1);
    emit(w, (atlas_op)hg_circuit_operations[a->kind].code, ATLAS_f32, atlas_reg(a->to), x, y);
  }
}

/* Puts the columns of a row into registers: the number of a lane's first element in a class, or a constant. */
static void write_columns(const writer *w, const group *g) {
  for (uint32_t i = 0; i < g->columns; i++) {
    atlas_operand r = atlas_reg(COLUMN + i);
    atlas_emit(w->builder, ATLAS_OP_ldc, ATLAS_u32, 2, r, atlas_mem_reg(w->rows, ROW, i));
    if (is_class(g, g->column[i])) {
      emit(w, ATLAS_OP_add, ATLAS_u32, r, r, atlas_reg(ATLAS_REG_BLOCK_LANE));
    } else if (type_of(w) == ATLAS_u64) {
      atlas_emit2(w->builder, ATLAS_OP_cvt, ATLAS_u64, ATLAS_u32, r, r);
      emit(w, ATLAS_OP_mul, ATLAS_u64, r, r, atlas_bits(UINT64_C(0x100000001)));
    }
  }
}

/* What a block of the group does. */
static void write_group(const writer *w, const group *g) {
  const atlas_operand at = atlas_reg(ROW), rounds = atlas_reg(ROUNDS_LEFT), rows = atlas_reg(ROWS_LEFT);
  uint32_t next_row = atlas_builder_label(w->builder, NULL), next_round = atlas_builder_label(w->builder, NULL);
  uint32_t elements = g->block_rows * g->columns;
  emit(w, ATLAS_OP_mul, ATLAS_u32, at, atlas_reg(ATLAS_REG_BLOCK_INDEX), atlas_bits(elements));
  emit(w, ATLAS_OP_add, ATLAS_u32, at, at, atlas_bits((uint32_t)(g->row - g->block * elements)));
  atlas_emit(w->builder, ATLAS_OP_movi, ATLAS_u32, 2, rows, atlas_bits(g->block_rows));
  atlas_builder_place(w->builder, next_row);
  write_columns(w, g);
  atlas_emit(w->builder, ATLAS_OP_movi, ATLAS_u32, 2, rounds, atlas_bits(class_elements(w) / LANES));
  atlas_builder_place(w->builder, next_round);
  for (uint32_t i = 0; i < g->member[0]->actions.count; i++) write_action(w, g, i);
  for (uint32_t i = 0; i < g->columns; i++)
    if (is_class(g, g->column[i]))
      emit(w, ATLAS_OP_add, ATLAS_u32, atlas_reg(COLUMN + i), atlas_reg(COLUMN + i), atlas_bits(LANES));
  atlas_emit(w->builder, ATLAS_OP_loop, ATLAS_NONE, 2, rounds, atlas_label_ref(next_round));
  emit(w, ATLAS_OP_add, ATLAS_u32, at, at, atlas_bits(g->columns));
  atlas_emit(w->builder, ATLAS_OP_loop, ATLAS_NONE, 2, rows, atlas_label_ref(next_row));
  atlas_emit(w->builder, ATLAS_OP_exit, ATLAS_NONE, 0);
}

static hg_status write_program(writer *w, atlas_program **out) {
  if (!w->has_registers)
    return hg_fail(HG_UNSUPPORTED, "the circuit needs more than %d contents at once, more than a program has registers",
                   ATLAS_GENERAL_REGISTERS - FIRST_FREE);
  HG_TRY(atlas_builder_create(w->allocator, "circuit", &w->builder));
  atlas_builder_block(w->builder, LANES, 1, 1);
  w->pool = atlas_builder_buffer(w->builder, "pool", type_of(w), ATLAS_INOUT);
  if (w->table.count > 0)
    w->rows = atlas_builder_const(w->builder, "rows", ATLAS_u32, (uint32_t)w->table.count, w->table.data);
  for (const group *g = w->groups; g < w->groups + w->group_count; g++) { /* a block looks for its own by its number */
    uint32_t other = atlas_builder_label(w->builder, NULL), end = g->block + g->count / g->block_rows;
    emit(w, ATLAS_OP_set_ge, ATLAS_u32, atlas_pred(0), atlas_reg(ATLAS_REG_BLOCK_INDEX), atlas_bits(end));
    atlas_emit_branch(w->builder, 0, 0, other);
    write_group(w, g);
    atlas_builder_place(w->builder, other);
  }
  atlas_emit(w->builder, ATLAS_OP_exit, ATLAS_NONE, 0);
  return atlas_builder_finish(w->builder, out);
}

hg_status hg_circuit_write_program(const hg_allocator *allocator, const circuit_form *form, circuit_layout *layout,
                                   atlas_program **out) {
  size_t values = CIRCUIT_CLASSES + form->terms.count;
  writer *w = hg_allocate(allocator, 1, sizeof *w);
  uint32_t *arrays = hg_allocate(allocator, values * 4, sizeof *arrays);
  int has_memory = w != NULL && arrays != NULL;
  if (has_memory) {
    *w = (writer){.allocator = allocator, .form = form, .values = (uint32_t)values, .of = arrays,
                  .uses = arrays + values, .home = arrays + 2 * values, .wanted = arrays + 3 * values,
                  .has_memory = 1, .has_registers = 1, .table = {.element_size = sizeof(uint32_t)}};
    find_components(w);
    find_uses(w);
    find_actions(w);
    if (w->has_memory) find_groups(w);
    has_memory = w->has_memory;
  }
  hg_status status = has_memory ? HG_OK : hg_fail_memory("the program of a circuit", values * sizeof(action));
  if (has_memory) *layout = (circuit_layout){w->component_count, w->blocks * LANES};
  if (has_memory && out != NULL) status = write_program(w, out);
  for (uint32_t k = 0; w != NULL && k < w->component_count; k++)
    hg_array_release(allocator, &w->components[k].actions);
  if (w != NULL) hg_array_release(allocator, &w->table);
  hg_release(allocator, arrays);
  hg_release(allocator, w);
  return status;
}
