/* scan.c - running sums along an axis, or prefix results of another operator with an identity, from either end.
 *
 * A line is what one result runs along. Its chunks of 256 elements are scanned by strides 1, 2, 4, ... (Hillis and
 * Steele, "Data parallel algorithms", 1986), left op right; the chunks' totals are scanned in the same way, in chunks
 * of their own; then each element of a chunk becomes the total of all chunks before op the element. What is absent is
 * the identity.
 *
 * A unit is a chunk of one line. Its element w * lanes + g is element w of its lane g. Strides below the number of
 * lanes go through a tile in shared memory, with identities in front of it; for the other strides a lane has both
 * operands. Along the innermost axis neighbouring lanes have neighbouring elements of a unit, along other axes the same
 * element of neighbouring lines, so that in either case their elements are neighbours in memory.
 *
 * The CPU's engines keep a block in registers while they scan its lanes (scan.incl), so on a CPU sums along the
 * innermost axis have a lane for each element of a chunk, and of lines with a few chunks an element of each. Along
 * other axes a lane on a CPU has a chunk by itself: it goes through it in steps of elements that it has in registers,
 * with what strides below a step take from the step before, and leaves them in shared memory, where it performs the
 * strides of a step and more.
 *
 * Other operators on a CPU have a block for each unit, so that the engines see lanes side by side. From a line's end on
 * the lanes of a unit read and write memory in its own order there, and exchange what they have.
 *
 * With segments an element is combined with what is before it only as far as its segment begins before it: a stride
 * that is longer than what its segment has before it leaves it as it is, and so it is of chunks' totals. That is the
 * operator of pairs of a flag and a value (Blelloch, "Prefix sums and their applications", 1990) with known flags.
 *
 * A line that a block has as a whole takes one launch. Otherwise a launch writes the totals, others scan these, and a
 * last one scans the elements again, starting from what came before their chunks: an element is read twice and written
 * once. */
#include "ops/write/scan.h"

#include <string.h>

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static hg_status begin(scan_launch *l, const scan_level *v, const uint32_t *totals, int what) {
  static const char *const names[] = {"scan", "scan_on", "scan_totals"};
  const scan *s = v->s;
  memset(l, 0, sizeof *l);
  l->s = s, l->level = v, l->totals = totals[0], l->total_places = totals[1];
  ops_terms_begin(&l->terms, s->group, &s->shape);
  ops_identity(&s->shape, l->own);
  if (scan_is_input(v)) HG_TRY(ops_term_of(&l->terms, s->node->input[0], l->own, &l->value));
  else HG_TRY(ops_reads(&l->terms, v->elements));
  if (s->has_segments && scan_is_input(v)) HG_TRY(ops_term_of(&l->terms, s->node->input[1], l->own, &l->place));
  else if (s->has_segments) HG_TRY(ops_reads(&l->terms, v->places));
  if (what == SCANS_ON) HG_TRY(ops_reads(&l->terms, l->totals));
  HG_TRY(ops_code_begin_step(&l->code, &l->terms, names[what], "scan"));
  l->b = l->code.builder;
  l->code.index_type = ATLAS_i64;
  if (what == TOTALS) {
    l->code.partials[l->code.partial_count++] = l->totals;
    if (s->has_segments) l->code.partials[l->code.partial_count++] = l->total_places;
  } else if (!scan_is_input(v)) l->code.partials[l->code.partial_count++] = v->elements;
  l->fold = ops_fold_of(&l->code, (ops_reduce)s->node->reduce, s->type);
  return HG_OK;
}

static hg_status write_launch(const scan_level *v, const uint32_t *totals, int what) {
  scan_launch l;
  hg_status status = begin(&l, v, totals, what);
  if (status == HG_OK && scan_has_columns(v)) ops_scan_columns(&l, what);
  else if (status == HG_OK) {
    ops_scan_begin_lanes(&l);
    if (scan_is_input(v)) ops_scan_split_line(&l);
    for (uint32_t w = 0; w < v->own; w++) ops_scan_read(&l, w);
    ops_scan_turn(&l);
    if (v->s->has_chunks) ops_scan_chunks(&l);
    else ops_scan_unit(&l);
    if (what == SCANS) ops_scan_carry_in_block(&l);
    if (what == SCANS_ON) ops_scan_carry_on(&l);
    if (what == TOTALS) ops_scan_write_total(&l);
    else ops_scan_write(&l);
  }
  return ops_code_end_all(&l.code, &l.terms, status);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint32_t bits_for(uint64_t count) {
  uint32_t bits = 0;
  while (UINT64_C(1) << bits < count) bits++;
  return bits;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Bytes of shared memory for a block. */
static uint64_t room_of(const scan_level *v, uint32_t unit_bits) {
  uint64_t tile = v->lane_bits > 0 ? (UINT64_C(1) << v->bits) + scan_lanes_of(v) : 0;
  return (tile + 2) * atlas_bytes(v->s->type) << unit_bits;
}

static void choose_chunks(scan_level *v) {
  v->is_whole = v->chunks <= OPS_SCAN_CHUNKS;
  v->own = v->is_whole ? (uint32_t)v->chunks : 1;
  v->lane_bits = v->bits = least(bits_for(v->size), CHUNK_BITS);
  v->units = v->s->lines * (v->is_whole ? 1 : v->chunks);
}

static void choose_columns(scan_level *v) {
  const scan *s = v->s;
  v->bits = least(bits_for(v->size), CHUNK_BITS);
  v->own = STEP;
  v->is_whole = v->chunks == 1;
  v->units = s->lines * v->chunks;
  while (v->unit_bits < OPS_SCAN_LANE_BITS && UINT64_C(1) << v->unit_bits < s->inner &&
         (uint64_t)atlas_bytes(s->type) << (v->bits + v->unit_bits + 1) <= OPS_SCAN_BYTES)
    v->unit_bits++;
}

static void choose_lanes(scan_level *v) {
  const scan *s = v->s;
  int is_alone = s->is_inner && !s->group->plan->for_gpu;
  uint32_t units = bits_for(s->is_inner ? v->chunks : 1);
  v->bits = least(bits_for(v->size), CHUNK_BITS);
  v->lane_bits = s->is_inner ? least(v->bits, OPS_SCAN_LANE_BITS)
                             : v->bits - least(v->bits, OPS_SCAN_OWN_BITS);
  v->own = 1u << (v->bits - v->lane_bits);
  v->is_whole = v->chunks == 1 || (s->is_inner && units + v->lane_bits <= OPS_SCAN_MOST_BITS &&
                                   room_of(v, units) <= OPS_SCAN_BYTES);
  v->line_bits = v->is_whole ? units : 0;
  v->units = v->is_whole ? s->lines << v->line_bits : s->lines * v->chunks;
  v->unit_bits = v->line_bits;
  uint32_t bits = is_alone ? v->bits : v->lane_bits;
  while (v->unit_bits + bits < OPS_SCAN_BLOCK_BITS && UINT64_C(1) << v->unit_bits < v->units &&
         room_of(v, v->unit_bits + 1) <= OPS_SCAN_BYTES)
    v->unit_bits++;
}

/* The totals of lines are lines themselves. */
static hg_status write_level(const scan *s, const uint32_t *elements, uint64_t size) {
  scan_level v = {.s = s, .size = size, .chunks = (size + CHUNK - 1) >> CHUNK_BITS, .elements = elements[0],
                  .places = elements[1]};
  uint32_t totals[2] = {(uint32_t)NO_STORAGE, (uint32_t)NO_STORAGE};
  if (s->has_chunks) choose_chunks(&v);
  else if (scan_has_columns(&v)) choose_columns(&v);
  else choose_lanes(&v);
  if (v.is_whole) return write_launch(&v, totals, SCANS);
  HG_TRY(ops_add_temporary(s->group->plan, (uint8_t)s->type, v.units, &totals[0]));
  if (s->has_segments) HG_TRY(ops_add_temporary(s->group->plan, ATLAS_i64, v.units, &totals[1]));
  HG_TRY(write_launch(&v, totals, TOTALS));
  HG_TRY(write_level(s, totals, v.chunks));
  return write_launch(&v, totals, SCANS_ON);
}

hg_status ops_write_scan(const ops_group *group) {
  scan s = {.group = group, .node = ops_at(group->computation, group->results[0])};
  s.shape = s.node->shape, s.axis = s.node->axis, s.inner = 1;
  s.result = group->storage_of[group->results[0] - 1] - 1;
  s.type = (atlas_type)s.node->type;
  if (s.type == ATLAS_f16 || s.type == ATLAS_bf16) s.type = ATLAS_f32;
  for (uint32_t i = s.axis + 1; i < s.shape.rank; i++) s.inner *= s.shape.size[i];
  int is_short = s.shape.size[s.axis] <= STEP;
  s.is_inner = s.inner < OPS_SCAN_INNER && (group->plan->for_gpu || !is_short);
  s.has_segments = s.node->input_count > 1;
  s.has_chunks = !group->plan->for_gpu && s.is_inner && s.node->reduce == OPS_SUM && !s.has_segments;
  s.has_columns = !group->plan->for_gpu && !s.is_inner && !is_short && !s.has_segments;
  s.lines = ops_count(&s.shape) / s.shape.size[s.axis];
  return write_level(&s, (const uint32_t[]){(uint32_t)NO_STORAGE, (uint32_t)NO_STORAGE}, s.shape.size[s.axis]);
}
