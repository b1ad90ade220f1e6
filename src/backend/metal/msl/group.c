/* group.c - access groups: accesses of one lane with one test, done by wide accesses, or each by itself. */
#include "backend/metal/msl/msl.h"

static msl_name index_of(uint32_t r) { return hg_msl_name("i%u", (unsigned)r); }

static uint32_t first_of(const gpu_access_group *g, const gpu_access_run *run) { return g->value[run->first]; }

/* ---- the test ---------------------------------------------------------------------------------------------------- */

/* index + displacement is below the extent, as exact numbers. */
static void ask_inside(msl *m, uint8_t type, const char *index, int64_t displacement, const char *extent) {
  msl_name sum = displacement != 0 ? hg_msl_name("%s + 0x%llxul", index, (unsigned long long)displacement)
                                   : hg_msl_name("%s", index);
  hg_msl_line(m, "fits = fits && %s < %s;", sum.text, extent);
  if (type == ATLAS_u64 && displacement > 0) hg_msl_line(m, "fits = fits && %s < %s;", index, extent);
}

/* Tests all runs that are like run r. */
static void ask_bounds(msl *m, const gpu_access_group *g, uint32_t r, uint8_t *done) {
  const gpu_access_run *run = &g->run[r];
  uint32_t runs[GPU_MAX_RUNS], count = hg_gpu_runs_like(m->plan, g, r, done, runs);
  uint8_t type = msl_insn(m, gpu_index_of(m->plan, g, run))->type;
  int64_t least = gpu_least_of(m->plan, g, run), most = gpu_most_of(m->plan, g, run);
  msl_name index = index_of(r), extent = hg_msl_extent(m, msl_insn(m, first_of(g, run)));
  for (uint32_t i = 1; i < count; i++) {
    msl_name other = hg_msl_value(m, gpu_index_of(m->plan, g, &g->run[runs[i]]));
    if (i == 1)
      hg_msl_line(m, "uint most%u = max(%s, %s);", (unsigned)r,
                  hg_msl_value(m, gpu_index_of(m->plan, g, run)).text, other.text);
    else hg_msl_line(m, "most%u = max(most%u, %s);", (unsigned)r, (unsigned)r, other.text);
  }
  if (count > 1) index = hg_msl_name(gpu_is_signed(type) ? "ulong(long(int(most%u)))" : "ulong(most%u)", (unsigned)r);
  ask_inside(m, type, index.text, most, extent.text);
  if (run->checks_least && least != most) ask_inside(m, type, index.text, least, extent.text);
}

/* Shared memory and its arrays are aligned to 16 bytes. */
static void ask_aligned(msl *m, const gpu_access_group *g, const gpu_access_run *run, const char *index) {
  unsigned last = run->width * (unsigned)run->element_bytes - 1;
  if (!gpu_may_be_crooked(run)) return;
  msl_name at = hg_msl_byte(index, run->element_bytes, gpu_least_of(m->plan, g, run));
  msl_name base = hg_msl_name("ulong(%s)", hg_msl_base(m, first_of(g, run)).text);
  if (run->is_shared) hg_msl_line(m, "fits = fits && (%s & %u) == 0;", at.text, last);
  else if (run->is_aligned) hg_msl_line(m, "fits = fits && (%s & %u) == 0;", base.text, last);
  else hg_msl_line(m, "fits = fits && ((%s + %s) & %u) == 0;", base.text, at.text, last);
}

static void ask_all(msl *m, const gpu_access_group *g) {
  uint8_t done[GPU_MAX_RUNS] = {0};
  for (uint32_t r = 0; r < g->run_count; r++) {
    if (g->run[r].is_checked && !done[r]) ask_bounds(m, g, r, done);
    ask_aligned(m, g, &g->run[r], index_of(r).text);
  }
}

/* A loop's test may hold for all of its rounds. */
static void ask(msl *m, const gpu_access_group *g) {
  if (g->hoisted == 0) {
    hg_msl_line(m, "bool fits = true;");
    ask_all(m, g);
    return;
  }
  hg_msl_line(m, "bool fits = known%u;", (unsigned)g->hoisted - 1);
  hg_msl_open(m, "if (!fits)");
  hg_msl_line(m, "fits = true;");
  ask_all(m, g);
  hg_msl_close(m, "");
}

/* ---- the test before a loop -------------------------------------------------------------------------------------- */

static void add_terms(msl *m, const char *sum, const hg_terms *terms) {
  for (uint32_t i = 0; i < terms->count; i++) hg_msl_line(m, "%s += %s;", sum, hg_msl_long(m, terms->value[i]).text);
}

/* Tests the greatest index of any round. No sum wraps: it adds a few 32-bit numbers and a product below 2^63. */
static void ask_sweep(msl *m, const gpu_access_group *g, const gpu_access_run *run, const gpu_sweep *sweep) {
  hg_msl_scope(m);
  hg_msl_line(m, "ulong by = 0, most = %s + 0x%llxul;", hg_msl_long(m, sweep->start).text,
              (unsigned long long)gpu_most_of(m->plan, g, run));
  add_terms(m, "by", &sweep->step);
  add_terms(m, "most", &sweep->offset);
  hg_msl_line(m, "fits = fits && mulhi(by, last) == 0 && long(by * last) >= 0 && by * last + most < %s;",
              hg_msl_extent(m, msl_insn(m, first_of(g, run))).text);
  hg_msl_close(m, "");
}

void hg_msl_foresee(msl *m, uint32_t number) {
  const gpu_hoisted *seen = gpu_hoisted_at(m->plan, number);
  const gpu_access_group *g = gpu_group_at(m->plan, seen->group);
  hg_msl_scope(m);
  hg_msl_line(m, "bool fits = true;");
  if (seen->before == SSA_NONE) hg_msl_line(m, "ulong last = ulong(%s - 1);", hg_msl_value(m, seen->rounds).text);
  else
    hg_msl_line(m, "ulong last = ulong(min(%s - 1, %s - 2));", hg_msl_value(m, seen->rounds).text,
                hg_msl_value(m, seen->before).text);
  for (uint32_t r = 0; r < g->run_count; r++) {
    if (g->run[r].is_checked) ask_sweep(m, g, &g->run[r], &seen->sweep[r]);
    ask_aligned(m, g, &g->run[r], hg_msl_long(m, seen->sweep[r].start).text);
  }
  hg_msl_line(m, "known%u = fits;", (unsigned)number);
  hg_msl_close(m, "");
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

static void load_words(msl *m, const gpu_access_group *g, const gpu_access_run *run, uint32_t first,
                       const char *words) {
  uint32_t elements = gpu_word_elements(run), count = g->joined[first] / elements;
  for (uint32_t k = 0; k < g->joined[first]; k++) {
    uint32_t value = g->value[first + k];
    msl_name word = hg_msl_word(words, count, k / elements);
    hg_msl_line(m, "v%u = %s;", (unsigned)value, hg_msl_part(msl_insn(m, value)->type, word.text, k % elements).text);
  }
}

static void join_words(msl *m, const gpu_access_group *g, const gpu_access_run *run, uint32_t first,
                       const char *words) {
  uint32_t elements = gpu_word_elements(run), count = g->joined[first] / elements;
  for (uint32_t w = 0; w < count; w++) {
    const uint32_t *store = &g->value[first + w * elements];
    msl_name part[GPU_WORD_ELEMENTS];
    for (uint32_t k = 0; k < elements; k++)
      part[k] = hg_msl_argument(m, store[k], msl_insn(m, store[k])->arg_count - 1u);
    hg_msl_join(m, msl_insn(m, store[0])->type, hg_msl_word(words, count, w).text, part, elements);
  }
}

/* The neighbours from a value on, by one access. */
static void access_together(msl *m, const gpu_access_group *g, const gpu_access_run *run, uint32_t first,
                            const char *at) {
  const char *space = run->is_shared ? "threadgroup" : "device";
  uint32_t elements = gpu_word_elements(run);
  msl_name type = hg_msl_words(run->element_bytes < 4 ? 4 : run->element_bytes, g->joined[first] / elements);
  msl_name words = hg_msl_name("q%u", (unsigned)g->value[first]);
  if (g->is_store) {
    hg_msl_line(m, "%s %s;", type.text, words.text);
    join_words(m, g, run, first, words.text);
    hg_msl_line(m, "*(%s %s *)(%s) = %s;", space, type.text, at, words.text);
    return;
  }
  hg_msl_line(m, "%s %s = *(%s const %s *)(%s);", type.text, words.text, space, type.text, at);
  load_words(m, g, run, first, words.text);
}

static void access_run(msl *m, const gpu_access_group *g, const gpu_access_run *run) {
  msl_name base = hg_msl_base(m, first_of(g, run)), index = index_of((uint32_t)(run - g->run));
  for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += g->joined[i]) {
    msl_name byte = hg_msl_byte(index.text, run->element_bytes, (int64_t)msl_insn(m, g->value[i])->bits);
    msl_name at = hg_msl_name("%s + %s", base.text, byte.text);
    if (g->joined[i] > 1) access_together(m, g, run, i, at.text);
    else hg_msl_access_at(m, g->value[i], at.text);
  }
}

void hg_msl_group(msl *m, const gpu_access_group *g) {
  hg_msl_scope(m);
  for (uint32_t r = 0; r < g->run_count; r++)
    hg_msl_line(m, "ulong i%u = %s;", (unsigned)r, hg_msl_long(m, gpu_index_of(m->plan, g, &g->run[r])).text);
  if (g->is_tested) {
    ask(m, g);
    hg_msl_open(m, "if (fits)");
  }
  for (uint32_t r = 0; r < g->run_count; r++) access_run(m, g, &g->run[r]);
  if (g->is_tested) {
    hg_msl_close(m, " else {");
    m->depth++;
    hg_msl_steps(m, g->first_step, g->first_step + g->step_count);
    hg_msl_close(m, "");
  }
  hg_msl_close(m, "");
}
