/* collective.c - exchanges: reductions and scans of a block, as the steps of the plan say; votes.
 *
 * Each value has variables of its own with its number in their names: `own`, `row`, and the pointers `place` and
 * `second` (results, windows) into threadgroup memory. The fast path stands in a `do`, which it leaves where the block
 * is not as it requires; the slow path follows.
 *
 * A lane that has ended has left its thread and takes part in no barrier. Shared memory has a byte for each lane, 1 if
 * it has ended, and a word, 1 if any has. If that word is not 0, the lowest lane that is left computes the whole
 * collective. */
#include "backend/metal/msl/msl.h"

#include "atlas/arith.h"

enum { ENDED = 1, ABSENT = 2 }; /* bits of a lane's byte; ABSENT: it also has no value */

typedef struct exchange {
  msl *m;
  const gpu_exchange *x;
  int has_careful; /* it has a slow path, too */
} exchange;

void hg_msl_barrier(msl *m) {
  hg_msl_line(m, "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);");
}

/* Adds a word for votes at the end. */
uint32_t hg_msl_lay_out_places(msl *m) {
  const gpu_plan *g = m->plan;
  const gpu_step *steps = g->version[GPU_OUTSIDE].steps.data;
  int has_votes = 0;
  for (size_t i = 0; i < g->version[GPU_OUTSIDE].steps.count; i++) has_votes |= steps[i].op == GPU_VOTE;
  m->place = (g->info.shared_bytes + 15) / 16 * 16;
  return has_votes ? m->place + 16 : g->info.shared_bytes;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint8_t type_of(const exchange *c, uint32_t value) { return msl_insn(c->m, value)->type; }
static const char *word_of(const exchange *c, uint32_t value) { return hg_msl_variable_type(type_of(c, value)); }
static msl_name own(uint32_t value) { return hg_msl_name("own%u", (unsigned)value); }
static msl_name row(uint32_t value, uint32_t j) { return hg_msl_name("row%u_%u", (unsigned)value, (unsigned)j); }

static void combine(const exchange *c, uint32_t value, const char *d, const char *a, const char *b) {
  hg_msl_combine(c->m, (uint16_t)atlas_combining_op(msl_insn(c->m, value)->op), type_of(c, value), d, a, b);
}

/* The value of another lane of the warp. `way`: how `by` names the lane. Metal exchanges at most 32 bits. */
static msl_name from_lane(const exchange *c, uint32_t value, const char *way, const char *a, const char *by) {
  if (msl_is_wide(type_of(c, value)))
    return hg_msl_name("as_type<ulong>(simd_shuffle%s(as_type<uint2>(%s), ushort(%s)))", way, a, by);
  return hg_msl_name("simd_shuffle%s(%s, ushort(%s))", way, a, by);
}

static msl_name number(uint32_t n) { return hg_msl_name("%u", (unsigned)n); }

/* The index of a value in its exchange. */
static uint32_t index_of(const exchange *c, uint32_t value) {
  uint32_t i = 0;
  while (c->x->value[i] != value) i++;
  return i;
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static void point(const exchange *c, uint32_t i, const char *offset) {
  const char *word = word_of(c, c->x->value[i]);
  unsigned value = (unsigned)c->x->value[i];
  hg_msl_line(c->m, "threadgroup %s *place%u = (threadgroup %s *)(shared + %u%s);", word, value, word,
              (unsigned)c->x->place[i], offset);
  hg_msl_line(c->m, "threadgroup %s *second%u = (threadgroup %s *)(shared + %u);", word, value, word,
              (unsigned)c->x->second[i]);
}

static void begin(const exchange *c) {
  hg_msl_scope(c->m);
  if (c->x->by_each_warp) hg_msl_line(c->m, "half_bytes = %u - half_bytes;", (unsigned)c->m->plan->memory.half_bytes);
  for (uint32_t i = 0; i < c->x->count; i++) {
    hg_msl_line(c->m, "%s own%u = 0;", word_of(c, c->x->value[i]), (unsigned)c->x->value[i]);
    if (c->m->plan->memory.uses_scratch) point(c, i, c->x->by_each_warp ? " + half_bytes" : "");
  }
  if (!c->has_careful) return;
  hg_msl_line(c->m, "bool careful = true;");
  hg_msl_open(c->m, "do");
}

static void turn(const exchange *c) {
  hg_msl_line(c->m, "careful = false;");
  hg_msl_close(c->m, " while (false);");
  hg_msl_open(c->m, "if (careful)");
}

static void end(const exchange *c) {
  if (c->has_careful) hg_msl_close(c->m, "");
  hg_msl_close(c->m, "");
}

static void need_lanes(const exchange *c) {
  hg_msl_line(c->m, "if (block_lanes %s %u) break;", c->x->least_lanes == c->x->most_lanes ? "!=" : "<",
              (unsigned)c->x->least_lanes);
}

/* A single warp has passed no barrier yet. */
static void none_ended(const exchange *c) {
  if (gpu_is_one_warp(c->m->plan)) hg_msl_barrier(c->m);
  hg_msl_line(c->m, "if (*(threadgroup uint *)(shared + %u) != 0) break;", (unsigned)c->m->plan->memory.ended_any);
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* own op= own of lane + h, if that lane exists */
static void fold_warp_by(const exchange *c, uint32_t value, const char *h) {
  hg_msl_scope(c->m);
  hg_msl_line(c->m, "%s other = %s;", word_of(c, value), from_lane(c, value, "_down", own(value).text, h).text);
  hg_msl_open(c->m, "if (block_lane + %s < block_lanes)", h);
  combine(c, value, own(value).text, own(value).text, "other");
  hg_msl_close(c->m, "");
  hg_msl_close(c->m, "");
}

static void fold_warp(const exchange *c) {
  hg_msl_open(c->m, "for (uint h = %d; h > 0; h >>= 1)", GPU_FOLD_LANES / 2);
  for (uint32_t i = 0; i < c->x->count; i++) fold_warp_by(c, c->x->value[i], "h");
  hg_msl_close(c->m, "");
}

/* The operations commute bit for bit, so either lane of a pair may have the result. */
static void fold_with_lane(const exchange *c, uint32_t value, const char *d, const char *kept, const char *given,
                           uint32_t h) {
  combine(c, value, d, kept, from_lane(c, value, "_xor", given, number(h).text).text);
}

static void fold_pair_by(const exchange *c, uint32_t value, uint32_t h, uint32_t further) {
  msl_name lower = own(value), upper = own(c->x->value[index_of(c, value) + further]);
  hg_msl_scope(c->m);
  hg_msl_line(c->m, "bool is_upper = (block_lane & %u) != 0;", (unsigned)h);
  hg_msl_line(c->m, "%s kept = is_upper ? %s : %s, given = is_upper ? %s : %s;", word_of(c, value), upper.text,
              lower.text, lower.text, upper.text);
  fold_with_lane(c, value, lower.text, "kept", "given", h);
  hg_msl_close(c->m, "");
}

static void spread(const exchange *c, uint32_t value, uint32_t of, uint32_t lane) {
  hg_msl_line(c->m, "v%u = %s;", (unsigned)value, from_lane(c, value, "", own(of).text, number(lane).text).text);
}

/* Opens the code of the warps from `first` on, each of which folds a value; in turn if there are more values than
 * warps. */
static void open_folders(const exchange *c, uint32_t value, uint32_t count, uint32_t first) {
  uint32_t slots = gpu_place_bytes(c->m->plan, type_of(c, value)) / gpu_slot_bytes(type_of(c, value));
  msl_name warp = first > 0 ? hg_msl_name("block_lane / 32 - %u", (unsigned)first) : hg_msl_name("block_lane / 32");
  hg_msl_scope(c->m);
  if (count > c->x->least_lanes / GPU_FOLD_LANES) {
    hg_msl_line(c->m, "uint warps = block_lanes / 32;");
    hg_msl_open(c->m, "for (uint f = block_lane / 32 < warps ? %s : %u; f < %u; f += warps)", warp.text,
                (unsigned)count, (unsigned)count);
  } else {
    hg_msl_line(c->m, "uint f = %s;", warp.text);
    hg_msl_open(c->m, "if (f < %u)", (unsigned)count);
  }
  hg_msl_line(c->m, "threadgroup %s *from%u = place%u + f * %u;", word_of(c, value), (unsigned)value, (unsigned)value,
              (unsigned)slots);
}

static void close_folders(const exchange *c) {
  hg_msl_close(c->m, "");
  hg_msl_close(c->m, "");
}

static msl_name neutral(const exchange *c, uint32_t value) {
  uint8_t type = type_of(c, value);
  return hg_msl_constant(type, hg_gpu_neutral((uint16_t)atlas_combining_op(msl_insn(c->m, value)->op), type));
}

static void fold_row(const exchange *c, uint32_t value, uint32_t j) {
  msl_name lane = hg_msl_name("block_lane %% 32 + %u", (unsigned)j * GPU_FOLD_LANES);
  const char *word = word_of(c, value);
  if ((j + 1) * GPU_FOLD_LANES <= c->x->least_lanes)
    hg_msl_line(c->m, "%s %s = from%u[%s];", word, row(value, j).text, (unsigned)value, lane.text);
  else
    hg_msl_line(c->m, "%s %s = %s < block_lanes ? from%u[%s] : %s;", word, row(value, j).text, lane.text,
                (unsigned)value, lane.text, neutral(c, value).text);
}

static void keep_result(const exchange *c, uint32_t value) {
  hg_msl_line(c->m, "if (block_lane %% 32 == 0) second%u[f] = %s;", (unsigned)value, row(value, 0).text);
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

/* A warp's slots hold what the last lane has before stride 1, the last two before stride 2, and so on: of the last s
 * lanes, lane k is at s - 1 + k. */
static void put_last(const exchange *c, uint32_t value, uint32_t s) {
  hg_msl_line(c->m, "if (block_lane %% 32 >= %u) place%u[block_lane - %u] = %s;", (unsigned)(GPU_FOLD_LANES - s),
              (unsigned)value, (unsigned)(GPU_FOLD_LANES + 1 - 2 * s), own(value).text);
}

static void stride(const exchange *c, uint32_t value, uint32_t s, int crosses) {
  hg_msl_scope(c->m);
  msl_name left = from_lane(c, value, "_up", own(value).text, number(s).text);
  hg_msl_line(c->m, "%s left = %s;", word_of(c, value), left.text);
  if (crosses)
    hg_msl_line(c->m, "if (block_lane >= 32 && block_lane %% 32 < %u) left = place%u[block_lane - %u];", (unsigned)s,
                (unsigned)value, (unsigned)(GPU_FOLD_LANES + 1 - s));
  hg_msl_open(c->m, "if (block_lane%s >= %u)", crosses ? "" : " % 32", (unsigned)s);
  combine(c, value, own(value).text, "left", own(value).text);
  hg_msl_close(c->m, "");
  hg_msl_close(c->m, "");
}

static int is_exclusive(const exchange *c, uint32_t value) { return msl_insn(c->m, value)->op == ATLAS_OP_scan_excl; }

static void row_before(const exchange *c, uint32_t value, uint32_t j) {
  unsigned distance = (unsigned)(j * GPU_FOLD_LANES) + (unsigned)is_exclusive(c, value);
  const char *word = word_of(c, value);
  if (distance == 0) hg_msl_line(c->m, "%s %s = %s;", word, row(value, j).text, own(value).text);
  else
    hg_msl_line(c->m, "%s %s = block_lane >= %u ? second%u[block_lane - %u] : %s;", word, row(value, j).text, distance,
                (unsigned)value, distance, neutral(c, value).text);
  if (j == 0) hg_msl_line(c->m, "%s alone%u = %s;", word, (unsigned)value, row(value, 0).text);
}

/* The sum of one number is the number: a single NaN keeps its bits. A single zero of an exclusive scan is +0. */
static void get_sum(const exchange *c, uint32_t value) {
  hg_msl_line(c->m, "v%u = block_lane > %d ? %s : alone%u;", (unsigned)value, is_exclusive(c, value),
              row(value, 0).text, (unsigned)value);
  if (is_exclusive(c, value)) hg_msl_line(c->m, "if (block_lane == 0) v%u = 0;", (unsigned)value);
}

static void get_scanned(const exchange *c, uint32_t value) {
  if (!is_exclusive(c, value)) {
    hg_msl_line(c->m, "v%u = %s;", (unsigned)value, own(value).text);
    return;
  }
  hg_msl_line(c->m, "v%u = %s;", (unsigned)value, from_lane(c, value, "_up", own(value).text, "1").text);
  hg_msl_line(c->m, "if (block_lane == 0) v%u = 0;", (unsigned)value);
}

/* ---- the slow path: in threadgroup memory ------------------------------------------------------------------------ */

static void fold_halves(const exchange *c) {
  hg_msl_open(c->m, "for (uint h = half_of(block_lanes); h > 0; h >>= 1)");
  hg_msl_open(c->m, "if (block_lane < h && block_lane + h < block_lanes)");
  for (uint32_t i = 0; i < c->x->count; i++) {
    unsigned value = (unsigned)c->x->value[i];
    combine(c, value, hg_msl_name("place%u[block_lane]", value).text, hg_msl_name("place%u[block_lane]", value).text,
            hg_msl_name("place%u[block_lane + h]", value).text);
  }
  hg_msl_close(c->m, "");
  hg_msl_barrier(c->m);
  hg_msl_close(c->m, "");
}

/* Opens the code of one lane: the lowest that has not ended. */
static void elect(const exchange *c) {
  msl *m = c->m;
  hg_msl_scope(m);
  hg_msl_line(m, "threadgroup uchar *ended = shared + %u;", (unsigned)m->plan->memory.ended);
  hg_msl_line(m, "uint elected = 0;");
  hg_msl_line(m, "while ((ended[elected] & %d) != 0) elected++;", ENDED);
  hg_msl_barrier(m);
  hg_msl_open(m, "if (block_lane == elected)");
  hg_msl_line(m, "for (uint i = 0; i < block_lanes; i++) ended[i] = uchar(ended[i] != 0 ? %d : 0);", ENDED | ABSENT);
}

static void end_elect(const exchange *c) {
  hg_msl_close(c->m, "");
  hg_msl_close(c->m, "");
}

/* place[i] = place[left] op place[right]; a missing side is ignored. */
static void combine_present(const exchange *c, uint32_t value, const char *left, const char *right) {
  msl *m = c->m;
  unsigned v = (unsigned)value;
  hg_msl_line(m, "bool has_left = (ended[%s] & %d) == 0, has_right = (ended[%s] & %d) == 0;", left, ABSENT, right,
              ABSENT);
  hg_msl_open(m, "if (has_left && has_right)");
  combine(c, value, hg_msl_name("place%u[i]", v).text, hg_msl_name("place%u[%s]", v, left).text,
          hg_msl_name("place%u[%s]", v, right).text);
  hg_msl_close(m, " else if (has_left || has_right) {");
  m->depth++;
  hg_msl_line(m, "place%u[i] = has_left ? place%u[%s] : place%u[%s];", v, v, left, v, right);
  hg_msl_close(m, "");
  hg_msl_line(m, "ended[i] = uchar((ended[i] & %d) | (has_left || has_right ? 0 : %d));", ENDED, ABSENT);
}

static void fold_present(const exchange *c) {
  msl *m = c->m;
  hg_msl_open(m, "if (*(threadgroup uint *)(shared + %u) == 0)", (unsigned)m->plan->memory.ended_any);
  fold_halves(c);
  hg_msl_close(m, " else {");
  m->depth++;
  for (uint32_t v = 0; v < c->x->count; v++) {
    elect(c);
    hg_msl_open(m, "for (uint h = half_of(block_lanes); h > 0; h >>= 1)");
    hg_msl_open(m, "for (uint i = 0; i < h && i + h < block_lanes; i++)");
    combine_present(c, c->x->value[v], "i", "i + h");
    hg_msl_close(m, "");
    hg_msl_close(m, "");
    end_elect(c);
    hg_msl_barrier(m);
  }
  hg_msl_close(m, "");
}

static void scan_places(const exchange *c, uint32_t value) {
  hg_msl_open(c->m, "for (uint s = 1; s < block_lanes; s <<= 1)");
  hg_msl_open(c->m, "for (uint i = block_lanes - 1; i >= s; i--)");
  combine_present(c, value, "i - s", "i");
  hg_msl_close(c->m, "");
  hg_msl_close(c->m, "");
}

static void get_before(const exchange *c, uint32_t value) {
  hg_msl_line(c->m, "v%u = block_lane > 0 && (shared[%u + block_lane - 1] & %d) == 0 ? place%u[block_lane - 1] : 0;",
              (unsigned)value, (unsigned)c->m->plan->memory.ended, ABSENT, (unsigned)value);
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

static void careful_step(const exchange *c, const gpu_step *step) {
  unsigned value = (unsigned)step->value;
  switch (step->op) {
  case GPU_CAREFULLY: turn(c); break;
  case GPU_FOLD_HALVES: fold_halves(c); break;
  case GPU_FOLD_PRESENT: fold_present(c); break;
  case GPU_ELECT: elect(c); break;
  case GPU_SCAN_PLACES: scan_places(c, value); break;
  case GPU_END_ELECT: end_elect(c); break;
  case GPU_GET_FIRST: hg_msl_line(c->m, "v%u = place%u[0];", value, value); break;
  case GPU_GET_PLACE: hg_msl_line(c->m, "v%u = place%u[block_lane];", value, value); break;
  case GPU_GET_BEFORE: get_before(c, value); break;
  case GPU_TURN: break; /* `begin` has done it */
  default: break;       /* steps of blocks over several multiprocessors */
  }
}

static void scan_step(const exchange *c, const gpu_step *step) {
  uint32_t value = step->value, low = step->number & 0xffff, high = step->number >> 16;
  switch (step->op) {
  case GPU_PUT_LAST: put_last(c, value, step->number); break;
  case GPU_STRIDE_LANES: stride(c, value, step->number, 0); break;
  case GPU_STRIDE_ACROSS: stride(c, value, step->number, 1); break;
  case GPU_PUT_WINDOW: hg_msl_line(c->m, "second%u[block_lane] = %s;", (unsigned)value, own(value).text); break;
  case GPU_ROW_BEFORE: row_before(c, value, step->number); break;
  case GPU_ADD_ROWS: combine(c, value, row(value, low).text, row(value, low + high).text, row(value, low).text); break;
  case GPU_GET_SUM: get_sum(c, value); break;
  case GPU_GET_SCANNED: get_scanned(c, value); break;
  default: careful_step(c, step); break;
  }
}

static void emit_step(const exchange *c, const gpu_step *step) {
  uint32_t value = step->value, low = step->number & 0xffff, high = step->number >> 16;
  msl *m = c->m;
  unsigned v = (unsigned)value;
  switch (step->op) {
  case GPU_EXCHANGE: begin(c); break;
  case GPU_OWN: hg_msl_line(m, "own%u = %s;", v, hg_msl_argument(m, value, 0).text); break;
  case GPU_SYNC: hg_msl_barrier(m); break;
  case GPU_NEED_LANES: need_lanes(c); break;
  case GPU_NONE_ENDED: none_ended(c); break;
  case GPU_PUT_OWN: hg_msl_line(m, "place%u[block_lane] = own%u;", v, v); break;
  case GPU_FOLDERS: open_folders(c, value, low, high); break;
  case GPU_FOLDER: hg_msl_line(m, "threadgroup %s *from%u = place%u;", word_of(c, value), v, v); break;
  case GPU_FOLD_ROW: fold_row(c, value, step->number); break;
  case GPU_FOLD_ROWS: combine(c, value, row(value, low).text, row(value, low).text, row(value, low + high).text); break;
  case GPU_FOLD_LANES_BY:
    fold_with_lane(c, value, row(value, 0).text, row(value, 0).text, row(value, 0).text, step->number);
    break;
  case GPU_KEEP_RESULT: keep_result(c, value); break;
  case GPU_END_FOLDERS: close_folders(c); break;
  case GPU_GET_FOLDED: hg_msl_line(m, "v%u = %s;", v, row(value, 0).text); break;
  case GPU_GET_RESULT: hg_msl_line(m, "v%u = second%u[0];", v, v); break;
  case GPU_FOLD_WARP_BY: fold_warp_by(c, value, number(step->number).text); break;
  case GPU_FOLD_WARP: fold_warp(c); break;
  case GPU_FOLD_OWN_BY:
    fold_with_lane(c, value, own(value).text, own(value).text, own(value).text, step->number);
    break;
  case GPU_FOLD_PAIR_BY: fold_pair_by(c, value, low, high); break;
  case GPU_GET_OWN: hg_msl_line(m, "v%u = own%u;", v, v); break;
  case GPU_SPREAD: spread(c, value, value, 0); break;
  case GPU_SPREAD_FROM: spread(c, value, c->x->value[index_of(c, value) - high], low); break;
  case GPU_END_EXCHANGE: end(c); break;
  default: scan_step(c, step); break;
  }
}

uint32_t hg_msl_exchange(msl *m, const gpu_step *steps) {
  exchange c = {.m = m, .x = gpu_exchange_at(m->plan, steps[0].number)};
  uint32_t count = 1;
  for (; steps[count - 1].op != GPU_END_EXCHANGE; count++) c.has_careful |= steps[count].op == GPU_CAREFULLY;
  for (uint32_t i = 0; i < count; i++) emit_step(&c, &steps[i]);
  return count;
}

/* ---- votes ------------------------------------------------------------------------------------------------------- */

/* all(p) = not any(not p). */
void hg_msl_vote(msl *m, uint32_t value) {
  int is_any = msl_insn(m, value)->op == ATLAS_OP_vote_any;
  hg_msl_scope(m);
  hg_msl_line(m, "threadgroup atomic_uint *place = (threadgroup atomic_uint *)(shared + %u);", (unsigned)m->place);
  hg_msl_line(m, "atomic_store_explicit(place, 0u, memory_order_relaxed);");
  hg_msl_barrier(m);
  hg_msl_line(m, "if (%s%s) atomic_store_explicit(place, 1u, memory_order_relaxed);", is_any ? "" : "!",
              hg_msl_argument(m, value, 0).text);
  hg_msl_barrier(m);
  hg_msl_line(m, "v%u = atomic_load_explicit(place, memory_order_relaxed) %s 0;", (unsigned)value,
              is_any ? "!=" : "==");
  hg_msl_barrier(m);
  hg_msl_close(m, "");
}
