/* groups.c - finds the access groups of a kernel: accesses of one basic block, wherever they stand in it. They are put
 * together when the block is ordered (order.c).
 *
 * A group's loads are done where the first of them may be done, its stores where the last of them is. That requires:
 *
 * - No store, atomic, barrier or fence that may change what a load reads stands between the first load and that load,
 * and the load's index does not depend on a load of the group.
 *
 * - Nothing between two stores accesses what they write, except stores of the group.
 *
 * - No access that may fault stands between two others of a group. So faults are found in the program's order, also if
 * a group's accesses are done one by one, in that order.
 *
 * Accesses to shared memory that are known to be in bounds and aligned need no test: each wide one is a group. All
 * others form groups that are as large as possible, because one test then serves all of them. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"

#include <stdlib.h>
#include <string.h>

enum { LOADS, STORES, KINDS };

/* An access to shared memory that needs no test. */
typedef struct shared_access {
  uint32_t value, index, symbol, is_store;
  uint32_t epoch;   /* two accesses with the same epoch, symbol and index may be joined */
  int64_t displacement;
} shared_access;

typedef struct collector {
  gpu_plan *g;
  uint32_t at;            /* the number of instructions so far */
  gpu_access_group open[KINDS];
  uint8_t run_of[KINDS][GPU_MAX_GROUP], runs[KINDS];
  uint32_t start[KINDS];  /* where the group begins */
  uint32_t *depends;      /* per value: the `start` of the open group of loads that it depends on */
  uint32_t order_depends; /* the same for collectives and barriers */
  uint32_t alias[ATLAS_MAX_SYMBOLS + 2]; /* per location: its alias class: locations that may overlap share one
                                            number */
  uint32_t written[ATLAS_MAX_SYMBOLS + 2], touched[ATLAS_MAX_SYMBOLS + 2]; /* per alias class: the last instruction that
                                                                              writes it, or accesses it, not counting
                                                                              the open group's stores */
  uint32_t epoch[ATLAS_MAX_SYMBOLS + 2], index[ATLAS_MAX_SYMBOLS + 2];     /* per alias class: of the last stores */
  hg_array shared;        /* shared_access */
} collector;

/* ---- groups that are complete ------------------------------------------------------------------------------------ */

static hg_status keep(const collector *c, const gpu_access_group *group) {
  if (hg_array_append(c->g->allocator, &c->g->group, group, 1) == NULL)
    return hg_fail_memory("the plan of a kernel", c->g->group.count);
  for (uint32_t i = 0; i < group->count; i++) c->g->group_of[group->in_order[i]] = (uint32_t)c->g->group.count;
  return HG_OK;
}

static hg_status finish(collector *c, int kind) {
  gpu_access_group *group = &c->open[kind];
  int is_kept = group->count > 1 && hg_gpu_complete_group(c->g, group, c->run_of[kind]);
  hg_status status = is_kept ? keep(c, group) : HG_OK;
  *group = (gpu_access_group){.is_store = kind == STORES};
  c->runs[kind] = 0;
  return status;
}

static hg_status finish_all(collector *c) {
  HG_TRY(finish(c, LOADS));
  return finish(c, STORES);
}

/* ---- accesses that share a test ---------------------------------------------------------------------------------- */

static uint32_t alias_of(const collector *c, uint32_t value) {
  return c->alias[hg_location_of(c->g->program, gpu_insn(c->g, value))];
}

static int is_read_only(const collector *c, uint32_t value) {
  return c->g->read_only[hg_location_of(c->g->program, gpu_insn(c->g, value))];
}

/* 1 if it depends on a load of the open group. */
static int is_dependent(const collector *c, uint32_t value) {
  return c->open[LOADS].count > 0 && c->depends[value] == c->start[LOADS];
}

static int has(const collector *c, int kind, uint32_t run, uint32_t value) {
  for (uint32_t i = 0; i < c->open[kind].count; i++)
    if (c->run_of[kind][i] == run &&
        gpu_insn(c->g, c->open[kind].in_order[i])->bits == gpu_insn(c->g, value)->bits)
      return 1;
  return 0;
}

/* The run of the open group that the access fits into, or a new run. Stores to memory that a later run may overlap
 * begin a new one. */
static uint32_t run_for(const collector *c, int kind, uint32_t value) {
  const gpu_access_group *group = &c->open[kind];
  for (uint32_t i = group->count; i-- > 0;) {
    uint32_t other = group->in_order[i], run = c->run_of[kind][i];
    if (gpu_insn(c->g, other)->symbol == gpu_insn(c->g, value)->symbol &&
        gpu_arg(c->g, other, 0) == gpu_arg(c->g, value, 0))
      return has(c, kind, run, value) ? c->runs[kind] : run;
    if (kind == STORES && alias_of(c, other) == alias_of(c, value)) break;
  }
  return c->runs[kind];
}

static int may_join(const collector *c, int kind, uint32_t value) {
  const gpu_access_group *group = &c->open[kind];
  uint32_t alias = alias_of(c, value);
  if (group->count == 0 || group->count == (kind == LOADS ? GPU_MAX_GROUP : GPU_MOST_GROUPED_STORES) ||
      run_for(c, kind, value) == GPU_MAX_RUNS)
    return 0;
  if (kind == STORES) return c->touched[alias] < c->start[STORES];
  return !is_dependent(c, gpu_arg(c->g, value, 0)) && (is_read_only(c, value) || c->written[alias] < c->start[LOADS]);
}

static hg_status collect(collector *c, int kind, uint32_t value) {
  gpu_access_group *group = &c->open[kind];
  HG_TRY(finish(c, 1 - kind));
  if (!may_join(c, kind, value)) HG_TRY(finish(c, kind));
  if (group->count == 0) c->start[kind] = c->at;
  uint32_t run = run_for(c, kind, value);
  c->run_of[kind][group->count] = (uint8_t)run;
  if (run == c->runs[kind]) c->runs[kind]++;
  group->in_order[group->count++] = value;
  return HG_OK;
}

/* ---- shared memory that needs no test ---------------------------------------------------------------------------- */

static hg_status collect_shared(collector *c, uint32_t value, int is_store) {
  uint32_t alias = alias_of(c, value), index = gpu_arg(c->g, value, 0);
  if (is_store && c->index[alias] != index) {
    c->epoch[alias] = c->at;
    c->index[alias] = index;
  }
  const shared_access access = {.value = value,
                                .index = index,
                                .symbol = gpu_insn(c->g, value)->symbol,
                                .is_store = (uint32_t)is_store,
                                .epoch = is_store ? c->epoch[alias] : c->written[alias],
                                .displacement = (int64_t)gpu_insn(c->g, value)->bits};
  return hg_array_append(c->g->allocator, &c->shared, &access, 1) != NULL
             ? HG_OK
             : hg_fail_memory("the plan of a kernel", c->shared.count);
}

static int order_of(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

static int compare_sets(const shared_access *a, const shared_access *b) {
  int order = order_of(a->symbol, b->symbol);
  if (order == 0) order = order_of(a->index, b->index);
  if (order == 0) order = order_of(a->is_store, b->is_store);
  return order != 0 ? order : order_of(a->epoch, b->epoch);
}

static int compare(const void *left, const void *right) {
  const shared_access *a = left, *b = right;
  int order = compare_sets(a, b);
  if (order == 0 && a->displacement != b->displacement) order = a->displacement < b->displacement ? -1 : 1;
  return order != 0 ? order : order_of(a->value, b->value);
}

/* Elements of the widest access that may begin with the first of `count` accesses. */
static uint32_t width_at(const gpu_plan *g, const shared_access *access, size_t count) {
  uint32_t alignment = g->analysis.fact[access->index].alignment;
  uint32_t bytes = gpu_bytes(g, access->value), width = g->target.vector_bytes / bytes;
  for (; width > 1; width = gpu_lesser_width(width, bytes)) {
    uint32_t n = 1;
    if (width > count || alignment % width != 0 || access->displacement % width != 0) continue;
    while (n < width && access[n].displacement == access->displacement + n) n++;
    if (n == width) break;
  }
  return width;
}

static hg_status group_set(const collector *c, const shared_access *access, size_t count) {
  static const uint8_t one_run[GPU_MAX_GROUP] = {0};
  for (size_t i = 1; i < count; i++) /* a place that is stored to twice: the order of the stores matters */
    if (access[i].displacement == access[i - 1].displacement) return HG_OK;
  for (size_t i = 0, width; i < count; i += width) {
    gpu_access_group group = {.is_store = (uint8_t)access[i].is_store};
    width = width_at(c->g, access + i, count - i);
    for (size_t k = 0; k < width; k++) group.in_order[group.count++] = access[i + k].value;
    if (width > 1 && hg_gpu_complete_group(c->g, &group, one_run)) HG_TRY(keep(c, &group));
  }
  return HG_OK;
}

static hg_status group_shared(collector *c) {
  shared_access *access = c->shared.data;
  size_t count = c->shared.count;
  if (count > 1) qsort(access, count, sizeof *access, compare);
  for (size_t first = 0, next; first < count; first = next) {
    for (next = first + 1; next < count && compare_sets(&access[first], &access[next]) == 0;) next++;
    HG_TRY(group_set(c, access + first, next - first));
  }
  c->shared.count = 0;
  return HG_OK;
}

/* ---- one instruction after the other ----------------------------------------------------------------------------- */

typedef enum membership { ALONE, OF_OPEN, OF_SHARED } membership;

static void note_access(collector *c, uint32_t value, membership of) {
  uint32_t alias = alias_of(c, value);
  int is_store = (gpu_flags(c->g, value) & (ATLAS_STORE | ATLAS_ATOMIC)) != 0;
  if (is_store) c->written[alias] = c->at;
  if (!is_store || of != OF_OPEN) c->touched[alias] = c->at;
  if (!is_store || of != OF_SHARED) c->index[alias] = SSA_NONE; /* later stores belong to another epoch */
}

static hg_status visit_access(collector *c, uint32_t value) {
  gpu_plan *g = c->g;
  gpu_place place = hg_gpu_place(g, GPU_OUTSIDE, value);
  int kind = gpu_flags(g, value) & ATLAS_LOAD ? LOADS : STORES, may = hg_gpu_may_group(g, value);
  membership of = !may ? ALONE : place.space == GPU_SHARED && place.check == GPU_PROVEN ? OF_SHARED : OF_OPEN;
  if (of == OF_OPEN) HG_TRY(collect(c, kind, value));
  else if (of == OF_SHARED) HG_TRY(collect_shared(c, value, kind == STORES));
  else if (place.check == GPU_LEAVE_OUT || place.check == GPU_BRANCH) HG_TRY(finish_all(c));
  int follows_store = !is_read_only(c, value) && c->written[alias_of(c, value)] >= c->start[LOADS];
  if (kind == LOADS && c->open[LOADS].count > 0 && (of == OF_OPEN || follows_store))
    c->depends[value] = c->start[LOADS];
  note_access(c, value, of);
  return HG_OK;
}

/* Barriers and fences: what they order depends on what comes before them. */
static void visit_order(collector *c) {
  for (uint32_t l = 0; l < hg_location_count(c->g->program); l++) {
    c->written[l] = c->touched[l] = c->at;
    c->index[l] = SSA_NONE;
  }
  c->order_depends = c->start[LOADS];
}

static hg_status visit(collector *c, uint32_t value) {
  const ssa_insn *insn = gpu_insn(c->g, value);
  uint32_t flags = gpu_flags(c->g, value);
  c->at++;
  for (uint32_t i = 0; i < insn->arg_count; i++)
    if (is_dependent(c, gpu_arg(c->g, value, i))) c->depends[value] = c->start[LOADS];
  if (hg_is_pure(insn)) return HG_OK;
  if (flags & ATLAS_ATOMIC) {
    HG_TRY(finish_all(c));
    note_access(c, value, ALONE);
  } else if (flags & (ATLAS_LOAD | ATLAS_STORE)) {
    return visit_access(c, value);
  } else if (hg_orders_all(insn)) {
    visit_order(c);
    c->depends[value] = c->start[LOADS]; /* of a rank: what uses it comes behind the barrier that it is */
  } else if (flags & ATLAS_BLOCK && insn->op != ATLAS_OP_pool_alloc && insn->op != ATLAS_OP_pool_free) {
    if (c->order_depends == c->start[LOADS]) c->depends[value] = c->start[LOADS]; /* collectives keep their order */
    if (is_dependent(c, value)) c->order_depends = c->start[LOADS];
  } else {
    HG_TRY(finish_all(c)); /* it may fault */
  }
  return HG_OK;
}

static hg_status visit_block(collector *c, uint32_t block) {
  for (uint32_t e = ssa_block_at(c->g->unit, block)->first_effect; e != SSA_NONE; e = gpu_insn(c->g, e)->next)
    HG_TRY(visit(c, e));
  HG_TRY(finish_all(c));
  return group_shared(c);
}

hg_status hg_gpu_find_groups(gpu_plan *g) {
  collector c = {.g = g, .shared.element_size = sizeof(shared_access), .open[STORES].is_store = 1};
  uint64_t values = g->unit->insns.count;
  c.depends = hg_allocate(g->allocator, values, sizeof *c.depends);
  if (c.depends == NULL) return hg_fail_memory("the plan of a kernel", values * sizeof *c.depends);
  memset(c.index, 0xff, sizeof c.index);
  hg_alias_groups(g->program, g->unit, c.alias);
  hg_status status = HG_OK;
  for (uint32_t k = 0; k < g->order.count && status == HG_OK; k++) status = visit_block(&c, g->order.block[k]);
  hg_array_release(g->allocator, &c.shared);
  hg_release(g->allocator, c.depends);
  return status;
}
