/* scatter_counts.c - adds integers at indices. Their sum is the same in any order, so no lists are made: sources add
 * themselves, atomically.
 *
 * If the result is small, as a histogram is, sources would often meet there. Then each block has sums of its own, in
 * shared memory, for its part of the sources, and adds them to the result at the end. Where sources are constants, as
 * ones are that count, these sums have 32 bits: GPUs have no shared additions of 64. */
#include "ops/write/scatter.h"
#include "ops/graph/ops_tuning.h"

enum { LANES = 256, MOST_AT_ONCE = 4 };

/* How blocks share the sources. */
typedef struct counting {
  atlas_type type;                        /* of a block's sums */
  uint64_t sources, places, blocks, rounds; /* in all; of a block: rounds of LANES times `at_once` sources */
  uint32_t at_once;
} counting;

static uint64_t parts_of(uint64_t count, uint64_t size) { return (count + size - 1) / size; }

static const ops_node *constant_source(const scatter *s) {
  const ops_node *node = ops_at(s->group->computation, s->node->input[2]);
  while (node->kind == OPS_VIEW || node->kind == OPS_RESHAPE) node = ops_at(s->group->computation, node->input[0]);
  return node->kind == OPS_CONSTANT ? node : NULL;
}

/* Each block has so many sources that its additions to the result do not matter beside them. */
static counting counting_of(const scatter *s) {
  int for_gpu = s->group->plan->for_gpu;
  const ops_node *constant = constant_source(s);
  counting c = {.type = (atlas_type)s->node->type, .sources = ops_count(&s->from), .places = ops_count(&s->to),
                .at_once = for_gpu ? MOST_AT_ONCE : 1};
  uint64_t of_round = (uint64_t)LANES * c.at_once, least = c.places * OPS_COUNTED_OF_PLACE;
  if (least < OPS_COUNTED_LEAST) least = OPS_COUNTED_LEAST;
  uint64_t own = parts_of(c.sources, for_gpu ? OPS_COUNTED_BLOCKS_GPU : OPS_COUNTED_BLOCKS);
  c.rounds = parts_of(own > least ? own : least, of_round);
  c.blocks = parts_of(c.sources, c.rounds * of_round);
  if (constant != NULL && constant->bits <= UINT32_MAX / (c.rounds * of_round)) c.type = ATLAS_u32;
  return c;
}

static int fits_shared(const scatter *s) {
  counting c = counting_of(s);
  uint64_t most = s->group->plan->for_gpu ? OPS_COUNTED_BYTES_GPU : ATLAS_MAX_SHARED_BYTES;
  return c.places <= most / atlas_bytes(c.type) && c.places * OPS_COUNTED_OF_PLACE <= c.sources;
}

static uint16_t as_type(scatter_launch *l, atlas_type to, atlas_type from, uint16_t value) {
  if (to == from) return value;
  uint16_t own = ops_register(&l->code);
  atlas_emit2(l->code.builder, atlas_bytes(to) == atlas_bytes(from) ? ATLAS_OP_bitcast : ATLAS_OP_cvt, to, from,
              atlas_reg(own), atlas_reg(value));
  return own;
}

/* Adds to the result's element at the form. */
static void add_to_result(scatter_launch *l, uint16_t at, uint16_t value) {
  atlas_emit(l->code.builder, ATLAS_OP_atom_add, (atlas_type)l->s->node->type, 3, atlas_discard(),
             atlas_mem_reg(ops_buffer_of(&l->code, l->s->out), at, 0), atlas_reg(value));
}

/* ---- in shared memory -------------------------------------------------------------------------------------------- */

/* Sets the coordinates of an element of the shape by its number, i64. If there is one axis, it is the number. */
static void set_coordinates(scatter_launch *l, const ops_shape *shape, uint64_t count, uint16_t number) {
  uint32_t only = 0, axes = (1u << shape->rank) - 1;
  for (uint32_t i = 0; i <= l->s->rank; i++) l->code.variable[i] = OPS_NO_REGISTER;
  while (only < shape->rank && shape->size[only] != count) only++;
  if (only < shape->rank) l->code.variable[only] = number, axes = 0;
  ops_forget_all(&l->code);
  ops_split(&l->code, shape, axes, shape->rank + 1, count, atlas_reg(number), ATLAS_i64);
}

/* A source's place, u32, and value. */
static void find_source(scatter_launch *l, const counting *c, uint16_t number, uint16_t *place, uint16_t *value) {
  atlas_builder *b = l->code.builder;
  *place = ops_register(&l->code);
  set_coordinates(l, &l->s->from, c->sources, number);
  ops_scatter_find(l);
  ops_form dense = ops_scatter_dense(l->s, l->s->rank);
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_i64, atlas_reg(*place), atlas_reg(ops_scatter_number(l, &dense)));
  atlas_emit(b, ATLAS_OP_sel, ATLAS_u32, 4, atlas_reg(*place), atlas_pred(IS_THERE), atlas_reg(*place),
             atlas_bits(UINT32_MAX));
  *value = as_type(l, c->type, (atlas_type)l->s->node->type, ops_value(&l->code, l->source));
}

/* The number of the block's first source that the lane has, i64. */
static uint16_t first_source(scatter_launch *l, const counting *c) {
  uint16_t number = ops_register(&l->code), lane = ops_index_of(&l->code, ATLAS_REG_BLOCK_LANE);
  atlas_emit(l->code.builder, ATLAS_OP_mad, ATLAS_i64, 4, atlas_reg(number),
             atlas_reg(ops_launch_index(&l->code, ATLAS_COORD_BLOCK_X)),
             ops_scatter_scalar(l, c->rounds * LANES * c->at_once), atlas_reg(lane));
  return number;
}

/* Skips a source that is not there. */
static void skip_absent(scatter_launch *l, const counting *c, uint16_t number, uint32_t absent) {
  ops_branch_unless(l->code.builder, ATLAS_OP_set_lt, ATLAS_i64, atlas_reg(number), ops_scatter_scalar(l, c->sources),
                    absent);
}

/* Several sources of a lane are found before the first is added, so that their loads go out together; one that is not
 * there is found as the last one. */
static void sum_sources(scatter_launch *l, const counting *c, uint16_t sums) {
  atlas_builder *b = l->code.builder;
  uint16_t number = first_source(l, c), turn = ops_register(&l->code), own[MOST_AT_ONCE] = {number};
  uint16_t place[MOST_AT_ONCE], value[MOST_AT_ONCE];
  uint32_t again = atlas_builder_label(b, NULL), absent[MOST_AT_ONCE];
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(turn), ops_scalar_of(&l->code, ATLAS_u32, c->rounds));
  atlas_builder_place(b, again);
  for (uint32_t k = 0; k < c->at_once; k++) {
    absent[k] = atlas_builder_label(b, NULL);
    uint16_t found = own[k];
    if (c->at_once == 1) skip_absent(l, c, found, absent[k]);
    else {
      own[k] = ops_register(&l->code), found = ops_register(&l->code);
      ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, own[k], atlas_reg(number), ops_scatter_scalar(l, k * LANES));
      ops_scatter_emit(l, ATLAS_OP_min, ATLAS_i64, found, atlas_reg(own[k]), ops_scatter_scalar(l, c->sources - 1));
    }
    find_source(l, c, found, &place[k], &value[k]);
  }
  for (uint32_t k = 0; k < c->at_once; k++) {
    if (c->at_once > 1) skip_absent(l, c, own[k], absent[k]);
    atlas_emit(b, ATLAS_OP_atom_add, c->type, 3, atlas_discard(), atlas_mem_reg(sums, place[k], 0),
               atlas_reg(value[k]));
    atlas_builder_place(b, absent[k]);
  }
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, number, atlas_reg(number), ops_scatter_scalar(l, c->at_once * LANES));
  atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(turn), atlas_label_ref(again));
  ops_forget_all(&l->code);
}

/* Each lane adds every LANES-th sum to the result. */
static void put_sums(scatter_launch *l, const counting *c, uint16_t sums) {
  atlas_builder *b = l->code.builder;
  const scatter *s = l->s;
  uint16_t number = ops_register(&l->code), sum = ops_register(&l->code);
  uint32_t again = atlas_builder_label(b, NULL), next = atlas_builder_label(b, NULL);
  uint32_t done = atlas_builder_label(b, NULL);
  atlas_emit(b, ATLAS_OP_mov, ATLAS_i64, 2, atlas_reg(number),
             atlas_reg(ops_index_of(&l->code, ATLAS_REG_BLOCK_LANE)));
  ops_branch_unless(b, ATLAS_OP_set_lt, ATLAS_i64, atlas_reg(number), ops_scatter_scalar(l, c->places), done);
  atlas_builder_place(b, again);
  atlas_emit(b, ATLAS_OP_lds, c->type, 2, atlas_reg(sum), atlas_mem_reg(sums, number, 0));
  ops_branch_if(b, ATLAS_OP_set_eq, c->type, atlas_reg(sum), atlas_bits(0), next);
  set_coordinates(l, &s->to, c->places, number);
  ops_form target = ops_scatter_target(l, l->own);
  add_to_result(l, ops_scatter_number(l, &target), as_type(l, (atlas_type)s->node->type, c->type, sum));
  atlas_builder_place(b, next);
  ops_scatter_emit(l, ATLAS_OP_add, ATLAS_i64, number, atlas_reg(number), ops_scatter_scalar(l, LANES));
  ops_branch_if(b, ATLAS_OP_set_lt, ATLAS_i64, atlas_reg(number), ops_scatter_scalar(l, c->places), again);
  atlas_builder_place(b, done);
  ops_forget_all(&l->code);
}

static void count_in_blocks(scatter_launch *l) {
  counting c = counting_of(l->s);
  ops_launch_blocks(&l->code, c.blocks, 1, 1, LANES);
  uint16_t sums = atlas_builder_shared(l->code.builder, "sums", c.type, (uint32_t)c.places);
  sum_sources(l, &c, sums);
  atlas_emit(l->code.builder, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  put_sums(l, &c, sums);
}

/* ---- in the result ----------------------------------------------------------------------------------------------- */

static void count_at_once(scatter_launch *l) {
  ops_scatter_find(l);
  ops_form target = ops_scatter_target(l, l->other);
  add_to_result(l, ops_scatter_checked(l, &target), ops_value(&l->code, l->source));
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

int ops_scatter_is_counted(const scatter *s) {
  atlas_type type = (atlas_type)s->node->type;
  if (s->node->reduce != 1 + OPS_SUM || s->sources == 0 || !atlas_is_integer(type) || atlas_bytes(type) < 4) return 0;
  return 1;
}

hg_status ops_scatter_counts(scatter *s) {
  int is_shared = fits_shared(s);
  s->kept[RESULT] = s->out;
  HG_TRY(ops_scatter_base(s));
  return ops_scatter_launch(s, &(scatter_work){.name = "scatter_counts", .shape = &s->from, .other = s->places,
                                               .inputs = OF_INDEX | OF_SOURCE, .reads = 1u << RESULT,
                                               .lanes = is_shared ? LANES : 0, .axes = ALL_AXES,
                                               .write = is_shared ? count_in_blocks : count_at_once});
}
