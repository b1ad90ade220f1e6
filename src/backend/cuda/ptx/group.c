/* group.c - access groups: one test and wide accesses, or each access by itself. */
#include "backend/cuda/ptx/group.h"

#include <stdio.h>
#include <string.h>

typedef ptx_group group;

static int64_t displacement_of(const ptx *p, uint32_t value) { return (int64_t)ptx_insn(p, value)->bits; }

static int64_t least_bytes(const ptx *p, const group *g, const gpu_access_run *run) {
  return gpu_least_of(p->plan, g->plan, run) * (int64_t)run->element_bytes;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void find_address(ptx *p, group *g, uint32_t r) {
  const gpu_access_run *run = &g->plan->run[r];
  uint32_t index = ptx_index_of(p, g, r);
  if (run->is_shared && !g->plan->is_tested) {
    g->address[r] =
        hg_ptx_shared_element(p, ptx_insn(p, g->plan->value[run->first])->symbol, index, run->element_bytes);
    return;
  }
  g->address[r] = hg_ptx_new(p, run->is_shared ? PTX_32 : PTX_64);
  if (run->is_shared)
    PTX(p, "mad.lo.u32", g->address[r], hg_ptx_low(p, index), hg_ptx_number(run->element_bytes), g->base[r]);
  else PTX(p, "add.s64", g->address[r], g->base[r], hg_ptx_bytes_of(p, index, run->element_bytes));
}

static ptx_name address_of(const ptx *p, const group *g, const gpu_access_run *run, uint32_t at) {
  return hg_ptx_plus(g->address[run - g->plan->run], displacement_of(p, g->plan->value[at]) * run->element_bytes);
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static ptx_name either(ptx *p, ptx_name a, ptx_name b) {
  if (a.text[0] == '\0') return b;
  ptx_name both = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "or.pred", both, a, b);
  return both;
}

/* A predicate: an access of the run, with the given index in place of its own, is out of bounds. */
static ptx_name is_outside(ptx *p, const group *g, uint32_t r, ptx_name index) {
  const gpu_access_run *run = &g->plan->run[r];
  uint8_t type = ptx_insn(p, ptx_index_of(p, g, r))->type;
  int64_t least = gpu_least_of(p->plan, g->plan, run), most = gpu_most_of(p->plan, g->plan, run);
  ptx_name sum, failed = hg_ptx_sum_is_outside(p, index, type, most, g->extent[r], &sum);
  if (!run->checks_least || least == most) return failed;
  return either(p, failed, hg_ptx_sum_is_outside(p, index, type, least, g->extent[r], &sum));
}

/* The greatest of the indices, by a tree that overwrites them. */
static ptx_name greatest(ptx *p, ptx_name *index, uint32_t count) {
  for (; count > 1; count = (count + 1) / 2)
    for (uint32_t i = 0; i < count / 2; i++) {
      ptx_name most = hg_ptx_new(p, PTX_32);
      PTX(p, "max.u32", most, index[i], index[count - 1 - i]);
      index[i] = most;
    }
  return index[0];
}

/* A predicate: an access of run r, or of the later runs like it, is out of bounds. `done`: the runs that need no
 * further test. */
static ptx_name are_outside(ptx *p, const group *g, uint32_t r, uint8_t *done) {
  uint32_t runs[GPU_MAX_RUNS], count = hg_gpu_runs_like(p->plan, g->plan, r, done, runs);
  ptx_name index[GPU_MAX_RUNS], wide;
  if (count < 2) return is_outside(p, g, r, hg_ptx_wide(p, ptx_index_of(p, g, r)));
  for (uint32_t i = 0; i < count; i++) index[i] = hg_ptx_register(p, ptx_index_of(p, g, runs[i]));
  wide = hg_ptx_new(p, PTX_64);
  int is_signed = gpu_is_signed(ptx_insn(p, ptx_index_of(p, g, r))->type);
  PTX(p, is_signed ? "cvt.s64.s32" : "cvt.u64.u32", wide, greatest(p, index, count));
  return is_outside(p, g, r, wide);
}

/* The low bits that are not 0 if the wide accesses of the run are misaligned; none if they always are aligned. */
static ptx_name crooked_bits(ptx *p, const group *g, uint32_t r, uint32_t index) {
  const gpu_access_run *run = &g->plan->run[r];
  uint64_t bytes = (uint64_t)run->width * run->element_bytes;
  ptx_name low = {""}, base = g->base[r];
  if (!gpu_may_be_crooked(run)) return low;
  low = hg_ptx_new(p, PTX_32);
  if (!run->is_shared) {
    base = hg_ptx_new(p, PTX_32);
    PTX(p, "cvt.u32.u64", base, g->base[r]);
  }
  if (run->is_aligned) PTX(p, "mov.b32", low, base);
  else PTX(p, "mad.lo.u32", low, hg_ptx_low(p, index), hg_ptx_number(run->element_bytes), base);
  int64_t least = run->is_aligned ? 0 : least_bytes(p, g, run);
  if (least % (int64_t)bytes != 0) PTX(p, "add.s32", low, low, hg_ptx_number((uint32_t)least));
  PTX(p, "and.b32", low, low, hg_ptx_number(bytes - 1));
  return low;
}

static ptx_name also_crooked(ptx *p, ptx_name crooked, ptx_name bits) {
  if (bits.text[0] == '\0' || crooked.text[0] == '\0') return bits.text[0] == '\0' ? crooked : bits;
  PTX(p, "or.b32", bits, bits, crooked);
  return bits;
}

static ptx_name failed_or_crooked(ptx *p, ptx_name failed, ptx_name crooked) {
  if (crooked.text[0] == '\0') return failed;
  ptx_name is_crooked = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.ne.u32", is_crooked, crooked, hg_ptx_number(0));
  return either(p, failed, is_crooked);
}

/* A predicate: the accesses must be done one by one. */
static ptx_name fails(ptx *p, const group *g) {
  ptx_name failed = {""}, crooked = {""};
  uint8_t done[GPU_MAX_RUNS] = {0};
  for (uint32_t r = 0; r < g->plan->run_count; r++) {
    if (g->plan->run[r].is_checked && !done[r]) failed = either(p, failed, are_outside(p, g, r, done));
    crooked = also_crooked(p, crooked, crooked_bits(p, g, r, ptx_index_of(p, g, r)));
  }
  return failed_or_crooked(p, failed, crooked);
}

/* ---- the test before a loop -------------------------------------------------------------------------------------- */

static ptx_name sum_of(ptx *p, ptx_name sum, const hg_terms *terms) {
  for (uint32_t i = 0; i < terms->count; i++) {
    ptx_name more = hg_ptx_new(p, PTX_64);
    PTX(p, "add.s64", more, sum, hg_ptx_wide(p, terms->value[i]));
    sum = more;
  }
  return sum;
}

/* A predicate: the greatest index of any iteration may be out of bounds. The sums add a few 32-bit numbers, and the
 * product is below 2^63, so nothing else wraps. */
static ptx_name may_leave(ptx *p, const group *g, uint32_t r, const gpu_sweep *sweep, ptx_name rounds) {
  const gpu_access_run *run = &g->plan->run[r];
  ptx_name low = hg_ptx_new(p, PTX_64), high = hg_ptx_new(p, PTX_64), last = hg_ptx_new(p, PTX_64),
           failed = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name step = sum_of(p, hg_ptx_kept(p, PTX_64, hg_ptx_number(0)), &sweep->step);
  PTX(p, "mul.lo.s64", low, step, rounds);
  PTX(p, "mul.hi.u64", high, step, rounds);
  PTX(p, "setp.ne.u64", failed, high, hg_ptx_number(0));
  PTX(p, "setp.lt.or.s64", failed, low, hg_ptx_number(0), failed);
  PTX(p, "add.s64", last, low, hg_ptx_number((uint64_t)gpu_most_of(p->plan, g->plan, run)));
  PTX(p, "add.s64", last, last, sum_of(p, hg_ptx_wide(p, sweep->start), &sweep->offset));
  PTX(p, "setp.ge.or.u64", failed, last, g->extent[r], failed);
  return failed;
}

/* The number of the last iteration in which the group runs. If there is none, any number will do. */
static ptx_name last_round(ptx *p, const gpu_hoisted *seen) {
  ptx_name last = hg_ptx_new(p, PTX_32), wide = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s32", last, hg_ptx_in_register(p, seen->rounds), hg_ptx_name("-1"));
  if (seen->before != SSA_NONE) {
    ptx_name other = hg_ptx_new(p, PTX_32);
    PTX(p, "add.s32", other, hg_ptx_in_register(p, seen->before), hg_ptx_name("-2"));
    PTX(p, "min.u32", last, last, other);
  }
  PTX(p, "cvt.u64.u32", wide, last);
  return wide;
}

/* A test that holds for all iterations is known before the first. */
void hg_ptx_hoist_check(ptx *p, const gpu_step *step) {
  const gpu_hoisted *seen = gpu_hoisted_at(p->plan, step->number);
  group g = {.plan = gpu_group_at(p->plan, seen->group)};
  ptx_name failed = {""}, crooked = {""}, rounds = last_round(p, seen);
  for (uint32_t r = 0; r < g.plan->run_count; r++) {
    const gpu_access_run *run = &g.plan->run[r];
    g.base[r] = hg_ptx_base_of(p, ptx_insn(p, g.plan->value[run->first]), &g.extent[r]);
    if (run->is_checked) failed = either(p, failed, may_leave(p, &g, r, &seen->sweep[r], rounds));
    crooked = also_crooked(p, crooked, crooked_bits(p, &g, r, seen->sweep[r].start));
  }
  p->untold[step->number] = failed_or_crooked(p, failed, crooked);
}

/* ---- wide accesses ----------------------------------------------------------------------------------------------- */

static int begins_word(const group *g, uint32_t at) { return g->word[at].text[0] != '\0'; }

static void load_word(ptx *p, group *g, uint32_t at, uint32_t elements) {
  g->word[at] = elements > 1 ? hg_ptx_new(p, PTX_32) : hg_ptx_register(p, g->plan->value[at]);
}

static uint32_t stored_value(const ptx *p, uint32_t store) {
  return ptx_arg(p, store, ptx_insn(p, store)->arg_count - 1u);
}

static ptx_name stored(ptx *p, uint32_t value) { return hg_ptx_argument(p, value, ptx_insn(p, value)->arg_count - 1u); }

static int is_late(const ptx *p, uint32_t store) {
  return p->version == GPU_OUTSIDE && p->plan->is_late[stored_value(p, store)];
}

static void round_if_late(ptx *p, uint32_t store) {
  if (is_late(p, store)) hg_ptx_convert(p, stored_value(p, store));
}

/* Rounds both elements of a word. */
static void round_word(ptx *p, uint8_t type, ptx_name word, const uint32_t *store) {
  ptx_name part[2];
  for (uint32_t k = 0; k < 2; k++) part[k] = hg_ptx_in_register(p, ptx_arg(p, stored_value(p, store[k]), 0));
  PTX(p, type == ATLAS_f16 ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32", word, part[1], part[0]);
}

/* 1 if the NaNs of both elements are made canonical in their word. */
static int mends_word(const ptx *p, const group *g, uint32_t at, uint32_t elements) {
  for (uint32_t k = 0; k < elements; k++) {
    uint32_t store = g->plan->value[at + k], last = ptx_insn(p, store)->arg_count - 1u;
    if (p->plan->nan[ptx_arg(p, store, last)] != GPU_NAN_LOOSE || !hg_gpu_asks_exact(p->plan, store, last)) return 0;
  }
  return elements == 2 && gpu_has_pairs(p->plan, ptx_insn(p, g->plan->value[at])->type);
}

static void store_word(ptx *p, group *g, uint32_t at, uint32_t elements) {
  uint8_t type = ptx_insn(p, g->plan->value[at])->type;
  int mends = mends_word(p, g, at, elements);
  ptx_name part[GPU_WORD_ELEMENTS];
  if (elements == 2 && is_late(p, g->plan->value[at]) && is_late(p, g->plan->value[at + 1])) {
    g->word[at] = hg_ptx_new(p, PTX_32);
    round_word(p, type, g->word[at], g->plan->value + at);
    if (mends) hg_ptx_make_rounded_exact(p, type, g->word[at]);
    return;
  }
  for (uint32_t k = 0; k < elements; k++) {
    uint32_t store = g->plan->value[at + k];
    round_if_late(p, store);
    part[k] = mends ? hg_ptx_value(p, ptx_arg(p, store, ptx_insn(p, store)->arg_count - 1u)) : stored(p, store);
  }
  g->word[at] = part[0];
  if (elements == 1) return;
  for (uint32_t k = 0; k < elements; k++) part[k] = hg_ptx_kept(p, hg_ptx_class_of(type), part[k]);
  g->word[at] = hg_ptx_new(p, PTX_32);
  hg_ptx_join_parts(p, type, g->word[at], part, elements);
  if (mends) hg_ptx_make_pair_exact(p, type, g->word[at]);
}

static void name_words(ptx *p, group *g, const gpu_access_run *run, uint32_t first, uint32_t width) {
  uint32_t elements = gpu_word_elements(run);
  for (uint32_t i = first; i < first + width; i += elements) {
    if (begins_word(g, i)) continue;
    if (g->plan->is_store) store_word(p, g, i, elements);
    else load_word(p, g, i, elements);
  }
}

void hg_ptx_access_together(ptx *p, group *g, const gpu_access_run *run, uint32_t first, const char *space,
                            ptx_name at) {
  uint32_t elements = gpu_word_elements(run), width = g->plan->joined[first], words = width / elements;
  char list[120];
  size_t used = 0;
  name_words(p, g, run, first, width);
  for (uint32_t i = 0; i < width; i += elements)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", g->word[first + i].text);
  const char *nc = run->is_read_only && strcmp(space, ".global") == 0 ? ".nc" : "";
  const char *type = run->element_bytes == 8 ? ".b64" : ".b32", *open = words > 1 ? "{" : "";
  const char *close = words > 1 ? "}" : "";
  ptx_name many = words > 1 ? hg_ptx_name(".v%u", (unsigned)words) : (ptx_name){""};
  if (g->plan->is_store)
    hg_ptx_put(p, "\tst%s%s%s [%s], %s%s%s;\n", space, many.text, type, at.text, open, list, close);
  else hg_ptx_put(p, "\tld%s%s%s%s %s%s%s, [%s];\n", space, nc, many.text, type, open, list, close, at.text);
}

/* Addresses are computed here instead of before the test: several of them would occupy registers across its branch. */
static void access_run(ptx *p, group *g, const gpu_access_run *run) {
  find_address(p, g, (uint32_t)(run - g->plan->run));
  for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += g->plan->joined[i]) {
    if (g->plan->joined[i] > 1)
      hg_ptx_access_together(p, g, run, i, run->is_shared ? ".shared" : ".global", address_of(p, g, run, i));
    else hg_ptx_access_at(p, g->plan->value[i], address_of(p, g, run, i), (ptx_name){""});
  }
}

/* The block's first lane prefetches what a later block will load with the run, if that is in bounds. */
static void ask_ahead(ptx *p, const group *g, uint32_t r) {
  const gpu_access_run *run = &g->plan->run[r];
  int64_t least = gpu_least_of(p->plan, g->plan, run), bytes = run->element_bytes;
  ptx_name thread = hg_ptx_new(p, PTX_32), asks = hg_ptx_new(p, PTX_PREDICATE), at = hg_ptx_new(p, PTX_64),
           end = hg_ptx_new(p, PTX_64), by = hg_ptx_number(run->prefetch_by);
  if (run->prefetch_bytes < 16) return;
  PTX(p, "mov.u32", thread, hg_ptx_name("%%tid.x"));
  PTX(p, "setp.eq.u32", asks, thread, hg_ptx_number(0));
  if (run->prefetch_scalar == SSA_NONE) PTX(p, "add.s64", at, hg_ptx_wide(p, ptx_index_of(p, g, r)), by);
  else PTX(p, "mad.lo.s64", at, hg_ptx_wide(p, run->prefetch_scalar), by, hg_ptx_wide(p, ptx_index_of(p, g, r)));
  if (least != 0) PTX(p, "add.s64", at, at, hg_ptx_number((uint64_t)least));
  PTX(p, "add.s64", end, at, hg_ptx_number(run->prefetch_bytes / (uint64_t)bytes));
  PTX(p, "setp.le.and.u64", asks, end, g->extent[r], asks);
  PTX(p, "mad.lo.s64", at, at, hg_ptx_number((uint64_t)bytes), g->base[r]);
  PTX(p, "and.b64", at, at, hg_ptx_name("-16")); /* both are multiples of 16 */
  hg_ptx_put(p, "\t@%s cp.async.bulk.prefetch.L2.global [%s], %u;\n", asks.text, at.text,
             (unsigned)(run->prefetch_bytes & ~15u));
}

static void take_words_apart(ptx *p, const group *g, const gpu_access_run *run) {
  uint32_t elements = gpu_word_elements(run);
  for (uint32_t i = run->first; elements > 1 && i < run->first + (uint32_t)run->count; i++) {
    ptx_name part[GPU_WORD_ELEMENTS];
    if (!begins_word(g, i)) continue;
    hg_ptx_take_apart(p, ptx_insn(p, g->plan->value[i])->type, g->word[i], part, elements);
    for (uint32_t k = 0; k < elements; k++) hg_ptx_lies_in(p, g->plan->value[i + k], part[k]);
  }
}

/* ---- one by one -------------------------------------------------------------------------------------------------- */

static void join_word(ptx *p, const group *g, uint32_t first, uint32_t elements) {
  ptx_name part[GPU_WORD_ELEMENTS];
  for (uint32_t k = 0; k < elements; k++) part[k] = hg_ptx_register(p, g->plan->value[first + k]);
  hg_ptx_join_parts(p, ptx_insn(p, g->plan->value[first])->type, g->word[first], part, elements);
}

/* The first element of the word that contains this one; the element itself if it is accessed alone. */
static uint32_t word_of(const group *g, uint32_t value, uint32_t *elements) {
  const gpu_access_run *run = &g->plan->run[hg_gpu_access_run_of(g->plan, value)];
  uint32_t at = run->first;
  *elements = gpu_word_elements(run);
  while (g->plan->value[at] != value) at++;
  for (uint32_t first = at + 1; first-- > run->first && first + *elements > at;)
    if (begins_word(g, first)) return first;
  return at;
}

/* The runs of a group whose accesses are done one by one. */
typedef struct careful {
  ptx_name room[PTX_MOST_ROOMS];  /* how many elements follow the index, at most 2^31 - 1 */
  ptx_name fault[PTX_MOST_ROOMS]; /* the number of the site of the first fault so far; UINT32_MAX: none */
} careful;

/* 1 if there are few runs and none accesses elements below its index: then one comparison with the room checks an
 * access. */
static int has_rooms(const group *g) {
  int has = g->plan->run_count <= PTX_MOST_ROOMS;
  for (uint32_t r = 0; r < g->plan->run_count; r++) has &= !g->plan->run[r].checks_least;
  return has;
}

static void find_room(ptx *p, const group *g, uint32_t r, careful *c) {
  ptx_name room = hg_ptx_new(p, PTX_64), is_inside = hg_ptx_new(p, PTX_PREDICATE);
  if (!g->plan->run[r].is_checked) return;
  c->room[r] = hg_ptx_new(p, PTX_32);
  c->fault[r] = hg_ptx_new(p, PTX_32);
  ptx_name index = hg_ptx_wide(p, ptx_index_of(p, g, r));
  PTX(p, "setp.lt.u64", is_inside, index, g->extent[r]);
  PTX(p, "sub.s64", room, g->extent[r], index);
  PTX(p, "selp.b64", room, room, hg_ptx_number(0), is_inside);
  PTX(p, "min.u64", room, room, hg_ptx_number(INT32_MAX));
  PTX(p, "cvt.u32.u64", c->room[r], room);
  PTX(p, "mov.b32", c->fault[r], hg_ptx_number(UINT32_MAX));
}

/* The numbers of sites increase in program order. */
static void access_carefully(ptx *p, const group *g, const careful *c, uint32_t value) {
  uint32_t at = 0, r = hg_gpu_access_run_of(g->plan, value);
  ptx_name failed = {""};
  while (g->plan->value[at] != value) at++;
  ptx_name address = address_of(p, g, &g->plan->run[r], at);
  if (!g->plan->run[r].is_checked) {
    hg_ptx_access_at(p, value, address, failed);
    return;
  }
  gpu_place place = hg_gpu_place(p->plan, p->version, value);
  failed = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "setp.le.u32", failed, c->room[r], hg_ptx_number((uint64_t)displacement_of(p, value)));
  hg_ptx_access_at(p, value, address, failed);
  hg_ptx_put(p, "\t@%s min.u32 %s, %s, %u;\n", failed.text, c->fault[r].text, c->fault[r].text,
             (unsigned)hg_ptx_site_number(p, &place.site));
}

/* Notes the first fault of all runs, which is the lane's if it has had none before. */
static void note_first(ptx *p, const group *g, const careful *c) {
  ptx_name first = {""};
  for (uint32_t r = 0; r < g->plan->run_count; r++) {
    if (!g->plan->run[r].is_checked) continue;
    ptx_name least = hg_ptx_new(p, PTX_32);
    if (first.text[0] != '\0') PTX(p, "min.u32", least, first, c->fault[r]);
    first = first.text[0] != '\0' ? least : c->fault[r];
  }
  for (uint32_t r = 0; r < g->plan->run_count; r++) {
    if (!g->plan->run[r].is_checked) continue;
    ptx_name is_there = hg_ptx_new(p, PTX_PREDICATE), is_first = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "setp.ne.u32", is_there, c->fault[r], hg_ptx_number(UINT32_MAX));
    PTX(p, "setp.eq.and.u32", is_first, c->fault[r], first, is_there);
    hg_ptx_note_number(p, is_first, first, hg_ptx_wide(p, ptx_index_of(p, g, r)), g->extent[r]);
  }
}

/* In program order. A word is joined as soon as its elements are loaded, which takes fewer registers. */
static void access_each(ptx *p, group *g) {
  careful c = {{{{0}}}, {{{0}}}};
  uint32_t elements = 1;
  int rooms = has_rooms(g);
  uint8_t there[GPU_MAX_GROUP] = {0}; /* by the first of a word's elements */
  for (uint32_t r = 0; r < g->plan->run_count && rooms; r++) {
    find_room(p, g, r, &c);
    find_address(p, g, r);
  }
  for (uint32_t i = 0; i < g->plan->count; i++) {
    if (rooms) access_carefully(p, g, &c, g->plan->in_order[i]);
    else hg_ptx_steps(p, g->plan->first_step + i, 1);
    if (g->plan->is_store) continue;
    uint32_t first = word_of(g, g->plan->in_order[i], &elements);
    if (elements > 1 && begins_word(g, first) && ++there[first] == elements) join_word(p, g, first, elements);
  }
  if (rooms) note_first(p, g, &c);
  else hg_ptx_steps(p, g->plan->first_step + g->plan->count, g->plan->step_count - g->plan->count);
}

/* Out of line: performs the accesses one by one; or, if the test is made here and holds, goes back to the fast path. */
static void access_slowly(ptx *p, group *g, ptx_name slow, ptx_name fast, ptx_name back) {
  hg_array *out = p->out;
  p->out = &p->slow;
  hg_ptx_place(p, slow);
  if (g->plan->hoisted != 0) hg_ptx_put(p, "\t@!%s bra %s;\n", fails(p, g).text, fast.text);
  if (hg_ptx_may_loop(p, g)) hg_ptx_group_loop(p, g);
  else {
    for (uint32_t i = 0; i < g->plan->count && g->plan->is_store; i++) round_if_late(p, g->plan->value[i]);
    access_each(p, g);
  }
  hg_ptx_put(p, "\tbra %s;\n", back.text);
  p->out = out;
}

/* Names the words that both paths store. */
static void name_all_words(ptx *p, group *g) {
  for (uint32_t r = 0; r < g->plan->run_count && g->plan->is_store; r++) {
    const gpu_access_run *run = &g->plan->run[r];
    for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += g->plan->joined[i])
      if (g->plan->joined[i] > 1) name_words(p, g, run, i, g->plan->joined[i]);
  }
}

/* The fast and the slow path meet with the values in words, so that the fast path needs no moves. */
void hg_ptx_group(ptx *p, const gpu_step *step) {
  group g = {.plan = gpu_group_at(p->plan, step->number)};
  ptx_name slow = {""}, fast = {""}, back = {""};
  if (step->notes > 0) hg_ptx_faults_now(p);
  for (uint32_t r = 0; r < g.plan->run_count; r++)
    if (!g.plan->run[r].is_shared || g.plan->is_tested)
      g.base[r] = hg_ptx_base_of(p, ptx_insn(p, g.plan->value[g.plan->run[r].first]), &g.extent[r]);
  if (g.plan->is_tested) {
    int is_hoisted = g.plan->hoisted != 0;
    slow = hg_ptx_label(p);
    fast = hg_ptx_label(p);
    back = hg_ptx_label(p);
    if (hg_ptx_may_loop(p, &g)) name_all_words(p, &g);
    ptx_name test = is_hoisted ? p->untold[g.plan->hoisted - 1] : fails(p, &g);
    hg_ptx_put(p, "\t@%s bra %s;\n", test.text, slow.text);
    if (is_hoisted) hg_ptx_place(p, fast);
  }
  for (uint32_t r = 0; r < g.plan->run_count; r++) access_run(p, &g, &g.plan->run[r]);
  for (uint32_t r = 0; r < g.plan->run_count; r++)
    if (g.plan->run[r].prefetch_bytes > 0) ask_ahead(p, &g, r);
  if (g.plan->is_tested) hg_ptx_place(p, back);
  for (uint32_t r = 0; r < g.plan->run_count && !g.plan->is_store; r++) take_words_apart(p, &g, &g.plan->run[r]);
  if (g.plan->is_tested) access_slowly(p, &g, slow, fast, back);
}
