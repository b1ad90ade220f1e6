/* sort_words.c - what all launches of sorting do: they make a word of an element's key and its index in the row, and
 * store the element at an index. */
#include "ops/write/sort.h"

#include <string.h>

hg_status ops_sort_begin(sort_launch *l, const sort *s, uint32_t uses, const uint32_t *read, const uint32_t *written,
                         const char *name) {
  memset(l, 0, sizeof *l);
  l->s = s;
  ops_terms_begin(&l->terms, s->group, &s->shape);
  ops_identity(&s->shape, l->own);
  if ((uses & READS_KEYS) != 0) HG_TRY(ops_term_of(&l->terms, s->node->input[0], l->own, &l->key));
  if ((uses & WRITES_RESULTS) != 0 && s->values != 0)
    HG_TRY(ops_term_of(&l->terms, s->node->input[s->node->input_count - 1u], l->own, &l->value));
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

static void forget_element(sort_launch *l) { ops_forget(&l->code, (1u << l->s->shape.rank) - 1); }

uint16_t ops_sort_key(sort_launch *l) {
  set_coordinates(l, l->column);
  uint16_t key = ops_value(&l->code, l->key);
  forget_element(l);
  return key;
}

uint16_t ops_sort_word(sort_launch *l) {
  uint16_t word = sort_fresh(l), place = sort_fresh(l);
  sort_convert(l, ATLAS_u64, word, ATLAS_u32, ops_sort_key(l));
  sort_emit(l, ATLAS_OP_shl, ATLAS_u64, word, word, atlas_bits(KEY_BITS));
  sort_convert(l, ATLAS_u64, place, ATLAS_i64, l->column);
  sort_emit(l, ATLAS_OP_or, ATLAS_u64, word, word, atlas_reg(place));
  return word;
}

static void put_result(sort_launch *l, uint32_t storage, atlas_type type, uint16_t value) {
  ops_form address = ops_address((const ops_storage *)l->s->group->plan->storages.data + storage, l->own);
  ops_store(&l->code, storage, &address, type, value);
}

void ops_sort_put(sort_launch *l, uint16_t place) {
  const sort *s = l->s;
  atlas_type type = (atlas_type)s->node->type;
  uint16_t value = sort_fresh(l);
  uint32_t absent = atlas_builder_label(l->b, NULL);
  set_coordinates(l, place);
  if (l->value != 0)
    atlas_emit(l->b, ATLAS_OP_mov, type == ATLAS_bool ? ATLAS_u32 : type, 2, atlas_reg(value),
               atlas_reg(ops_value(&l->code, l->value)));
  ops_forget(&l->code, 1u << s->axis);
  l->code.variable[s->axis] = l->column;
  atlas_emit_branch(l->b, IS_THERE, 1, absent);
  if (l->value != 0) put_result(l, s->values - 1, type, value);
  if (s->places != 0) put_result(l, s->places - 1, ATLAS_i64, place);
  atlas_builder_place(l->b, absent);
  forget_element(l);
}
