/* sort_words.c - what all launches of sorting do: they read elements, make keys of them and store results.
 *
 * The key of a float is its bits, with negative ones reversed; both zeros have one key, and all NaNs the greatest. */
#include "ops/write/sort.h"

#include <string.h>

sort ops_sort_of(const ops_group *group) {
  const hg_computation *c = group->computation;
  value_id first = ops_first_result(c, group->results[0]);
  sort s = {.group = group, .node = ops_at(c, first)};
  atlas_type type = (atlas_type)s.node->type;
  s.shape = ops_at(c, s.node->input[0])->shape, s.axis = s.node->axis;
  s.size = s.shape.size[s.axis], s.rows = ops_count(&s.shape) / s.size;
  s.moved = type == ATLAS_bool ? ATLAS_u32 : type;
  s.key_bits = atlas_type_bits(type);
  s.values = ops_storage_of_result(group, first, 0);
  s.places = ops_storage_of_result(group, first, 1);
  return s;
}

hg_status ops_sort_begin(sort_launch *l, const sort *s, int reads_input, const uint32_t *read, const uint32_t *written,
                         const char *name) {
  memset(l, 0, sizeof *l);
  l->s = s;
  ops_terms_begin(&l->terms, s->group, &s->shape);
  ops_identity(&s->shape, l->own);
  if (reads_input) HG_TRY(ops_term_of(&l->terms, s->node->input[0], l->own, &l->element));
  for (; *read != SORT_NONE; read++) HG_TRY(ops_reads(&l->terms, *read));
  HG_TRY(ops_code_begin_step(&l->code, &l->terms, name, "sort"));
  l->b = l->code.builder;
  l->code.index_type = ATLAS_i64;
  for (; *written != SORT_NONE; written++) l->code.partials[l->code.partial_count++] = *written;
  return HG_OK;
}

/* Sets the coordinates of the row, and along the axis a register. */
static void set_coordinates(sort_launch *l, uint16_t along_axis) {
  const sort *s = l->s;
  for (uint32_t i = 0; i < s->shape.rank; i++) l->code.variable[i] = OPS_NO_REGISTER;
  l->code.variable[s->axis] = along_axis;
  ops_split(&l->code, &s->shape, ~(1u << s->axis), s->shape.rank, s->rows, atlas_reg(l->row), ATLAS_i64);
}

static void forget_place(sort_launch *l) { ops_forget(&l->code, (1u << l->s->shape.rank) - 1); }

uint16_t ops_sort_element(sort_launch *l, uint16_t column) {
  uint16_t element = sort_fresh(l);
  set_coordinates(l, column);
  atlas_emit(l->b, ATLAS_OP_mov, l->s->moved, 2, atlas_reg(element), atlas_reg(ops_value(&l->code, l->element)));
  forget_place(l);
  return element;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static atlas_type unsigned_of(uint32_t bits) {
  return bits == 8 ? ATLAS_u8 : bits == 16 ? ATLAS_u16 : bits == 32 ? ATLAS_u32 : ATLAS_u64;
}

/* The bits of a number in a new register of the key's type. */
static uint16_t bits_of(sort_launch *l, uint16_t number) {
  const sort *s = l->s;
  atlas_type type = unsigned_of(atlas_type_bits(s->moved));
  uint16_t bits = number;
  if (s->moved != type) sort_convert(l, type, bits = sort_fresh(l), s->moved, number);
  if (type == sort_key_type(s)) return bits;
  uint16_t wide = sort_fresh(l);
  sort_convert(l, ATLAS_u32, wide, type, bits);
  return wide;
}

static uint16_t key_of_float(sort_launch *l, uint16_t element) {
  const sort *s = l->s;
  atlas_type type = sort_key_type(s);
  uint64_t ones = UINT64_MAX >> (64 - s->key_bits);
  uint16_t number = sort_fresh(l), reversed = sort_fresh(l), key = sort_fresh(l);
  atlas_operand top = ops_scalar_of(&l->code, type, UINT64_C(1) << (s->key_bits - 1));
  sort_emit(l, ATLAS_OP_add, s->moved, number, element, atlas_bits(0));
  uint16_t bits = bits_of(l, number);
  atlas_emit(l->b, ATLAS_OP_set_ge, type, 3, atlas_pred(IS_MORE), atlas_reg(bits), top);
  sort_emit(l, ATLAS_OP_xor, type, reversed, bits, ops_scalar_of(&l->code, type, ones));
  sort_emit(l, ATLAS_OP_or, type, key, bits, top);
  atlas_emit(l->b, ATLAS_OP_sel, type, 4, atlas_reg(key), atlas_pred(IS_MORE), atlas_reg(reversed), atlas_reg(key));
  return key;
}

uint16_t ops_sort_key(sort_launch *l, uint16_t element) {
  const sort *s = l->s;
  atlas_type type = sort_key_type(s);
  uint16_t key = sort_fresh(l);
  if (atlas_is_float(s->moved)) {
    key = key_of_float(l, element);
  } else if (atlas_kind(s->moved) == ATLAS_KIND_UINT) {
    key = bits_of(l, element);
  } else {
    sort_emit(l, ATLAS_OP_xor, type, key, bits_of(l, element),
              ops_scalar_of(&l->code, type, UINT64_C(1) << (s->key_bits - 1)));
  }
  if (!s->is_reversed) return key;
  uint16_t reversed = sort_fresh(l);
  sort_emit(l, ATLAS_OP_xor, type, reversed, key,
            ops_scalar_of(&l->code, type, UINT64_MAX >> (64 - s->key_bits)));
  return reversed;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void put_result(sort_launch *l, uint32_t storage, atlas_type type, uint16_t value) {
  ops_form address = ops_address((const ops_storage *)l->s->group->plan->storages.data + storage, l->own);
  ops_store(&l->code, storage, &address, type, value);
}

void ops_sort_put(sort_launch *l, uint16_t element, uint16_t place, uint16_t column) {
  const sort *s = l->s;
  uint32_t absent = atlas_builder_label(l->b, NULL);
  set_coordinates(l, column);
  uint16_t index = s->places != 0 ? sort_widened(l, place) : place;
  atlas_emit_branch(l->b, IS_THERE, 1, absent);
  if (s->values != 0) put_result(l, s->values - 1, (atlas_type)s->node->type, element);
  if (s->places != 0) put_result(l, s->places - 1, ATLAS_i64, index);
  atlas_builder_place(l->b, absent);
  forget_place(l);
}
