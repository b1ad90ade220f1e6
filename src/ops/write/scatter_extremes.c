/* scatter_extremes.c - the smallest or the largest of what is at indices and of the sources that have them.
 *
 * A word is a number's bits, changed so that words are in the order of numbers, a NaN the greatest: of floats negative
 * ones are reversed and others have the top bit; the smallest number is the largest one's with the other sign. So a
 * place has the greatest word of all that comes there, atomically: any order gives the same result. */
#include "ops/write/fold.h"
#include "ops/write/scatter.h"

enum { WORDS = COUNTED, IS_TOP = 3 };

typedef struct kind {
  atlas_type type, word;
  uint64_t top; /* of floats and signed integers: a word's highest bit; else 0 */
  int is_float, is_min;
} kind;

static kind kind_of(const scatter *s) {
  kind k = {.type = (atlas_type)s->node->type, .is_min = s->node->reduce == 1 + OPS_MIN};
  k.word = atlas_bytes(k.type) == 8 ? ATLAS_u64 : ATLAS_u32;
  k.is_float = atlas_is_float(k.type);
  k.top = atlas_kind(k.type) == ATLAS_KIND_UINT ? 0 : UINT64_C(1) << (atlas_type_bits(k.word) - 1);
  return k;
}

static void bits_as(scatter_launch *l, atlas_type to, uint16_t into, atlas_type from, uint16_t value) {
  if (to == from) atlas_emit(l->code.builder, ATLAS_OP_mov, to, 2, atlas_reg(into), atlas_reg(value));
  else atlas_emit2(l->code.builder, ATLAS_OP_bitcast, to, from, atlas_reg(into), atlas_reg(value));
}

/* value *= -1 for the smallest, else 1; NaNs become canonical. */
static void turn(scatter_launch *l, const kind *k, uint16_t value) {
  uint64_t one = ops_fold_of(&l->code, OPS_PRODUCT, k->type).identity, sign = k->is_min ? k->top : 0;
  if (!k->is_float) return;
  atlas_operand unit = ops_scalar_of(&l->code, k->type, one | sign);
  ops_scatter_emit(l, ATLAS_OP_mul, k->type, value, atlas_reg(value), unit);
}

/* Bits become a word, or a word bits: the top bit changes, or all bits of a negative number. */
static void arrange(scatter_launch *l, const kind *k, uint16_t word, int encodes) {
  atlas_builder *b = l->code.builder;
  uint16_t other = ops_register(&l->code);
  atlas_operand top = ops_scalar_of(&l->code, k->word, k->top);
  atlas_emit(b, ATLAS_OP_set_lt, k->word, 3, atlas_pred(IS_TOP), atlas_reg(word), top);
  atlas_emit(b, ATLAS_OP_not, k->word, 2, atlas_reg(other), atlas_reg(word));
  ops_scatter_emit(l, ATLAS_OP_xor, k->word, word, atlas_reg(word), top);
  atlas_emit(b, ATLAS_OP_sel, k->word, 4, atlas_reg(word), atlas_pred(IS_TOP), atlas_reg(encodes ? word : other),
             atlas_reg(encodes ? other : word));
}

static uint16_t word_of(scatter_launch *l, uint16_t value) {
  const kind k = kind_of(l->s);
  uint16_t number = ops_register(&l->code), word = ops_register(&l->code);
  atlas_emit(l->code.builder, ATLAS_OP_mov, k.type, 2, atlas_reg(number), atlas_reg(value));
  turn(l, &k, number);
  bits_as(l, k.word, word, k.type, number);
  if (k.is_float) {
    arrange(l, &k, word, 1);
    return word;
  }
  if (k.top != 0)
    ops_scatter_emit(l, ATLAS_OP_xor, k.word, word, atlas_reg(word), ops_scalar_of(&l->code, k.word, k.top));
  if (k.is_min) atlas_emit(l->code.builder, ATLAS_OP_not, k.word, 2, atlas_reg(word), atlas_reg(word));
  return word;
}

static uint16_t value_of(scatter_launch *l, uint16_t word) {
  const kind k = kind_of(l->s);
  uint16_t value = ops_register(&l->code);
  if (k.is_float) arrange(l, &k, word, 0);
  else if (k.is_min) atlas_emit(l->code.builder, ATLAS_OP_not, k.word, 2, atlas_reg(word), atlas_reg(word));
  if (!k.is_float && k.top != 0)
    ops_scatter_emit(l, ATLAS_OP_xor, k.word, word, atlas_reg(word), ops_scalar_of(&l->code, k.word, k.top));
  bits_as(l, k.type, value, k.word, word);
  turn(l, &k, value);
  return value;
}

static void write_words(scatter_launch *l) {
  ops_form number = ops_scatter_dense(l->s, l->s->axis);
  l->code.lane_form = &number;
  ops_store(&l->code, l->s->kept[WORDS], &number, kind_of(l->s).word, word_of(l, ops_value(&l->code, l->base)));
  l->code.lane_form = NULL;
}

static void lift(scatter_launch *l) {
  const scatter *s = l->s;
  ops_scatter_find(l);
  ops_form number = ops_scatter_dense(s, s->rank);
  uint16_t at = ops_scatter_checked(l, &number), word = word_of(l, ops_value(&l->code, l->source));
  atlas_emit(l->code.builder, ATLAS_OP_atom_max, kind_of(s).word, 3, (atlas_operand){0},
             atlas_mem_reg(ops_buffer_of(&l->code, s->kept[WORDS]), at, 0), atlas_reg(word));
}

static void write_values(scatter_launch *l) {
  const scatter *s = l->s;
  ops_form place = ops_scatter_target(l, l->own), number = ops_scatter_dense(s, s->axis);
  uint16_t at = ops_scatter_number(l, &number), word = ops_register(&l->code);
  atlas_emit(l->code.builder, ATLAS_OP_ldg, kind_of(s).word, 2, atlas_reg(word),
             atlas_mem_reg(ops_buffer_of(&l->code, s->kept[WORDS]), at, 0));
  ops_store(&l->code, s->out, &place, (atlas_type)s->node->type, value_of(l, word));
}

hg_status ops_scatter_extremes(scatter *s) {
  enum { ALL = 1u << WORDS };
  HG_TRY(ops_scatter_keep(s, WORDS, kind_of(s).word, ops_count(&s->to)));
  scatter_work base = {.name = "scatter_words", .shape = &s->to, .other = 1, .inputs = OF_BASE, .writes = ALL,
                       .axes = ALL_AXES, .write = write_words};
  HG_TRY(ops_scatter_launch(s, &base));
  HG_TRY(ops_scatter_launch(s, &(scatter_work){.name = "scatter_extremes", .shape = &s->from, .other = s->places,
                                               .inputs = OF_INDEX | OF_SOURCE, .reads = ALL, .writes = ALL,
                                               .axes = ALL_AXES, .write = lift}));
  return ops_scatter_launch(s, &(scatter_work){.name = "scatter_values", .shape = &s->to, .other = 1, .reads = ALL,
                                               .axes = ALL_AXES, .write = write_values});
}
