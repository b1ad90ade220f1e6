/* merge_phis.c - values that always agree, loops included, found optimistically: assume all that look alike equal, and
 * split classes until nothing contradicts (Alpern, Wegman, Zadeck, "Detecting Equality of Variables in Programs", 1988;
 * Hopcroft's smaller half).
 *
 * Two values look alike if they have the same operation, and two phis if they are of the same block as well. An effect
 * without side effects (a load, a class query, a collective) looks like another of its block with no write between. The
 * classes that are left are exactly the values whose keys canon_order.c could not tell apart: only merging them makes
 * that order complete. */
#include "compiler/canon/passes.h"

#include "atlas/tables.h"
#include "base/bytes.h"
#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"
#include "compiler/canon/alike.h"
#include "compiler/canon/simplify.h"
#include "ir/ssa_walk.h"

#include <string.h>

typedef struct use {
  uint32_t user, place; /* the using element; the operand, 0 for both factors of a commutative operation */
} use;

typedef struct partition {
  const atlas_program *program;
  ssa_unit *unit;
  const uint32_t *values; /* by element, in walk order */
  uint32_t count;         /* of elements */
  uint32_t class_count;
  uint32_t *element_of;   /* per value */
  uint32_t *state;        /* per value: the state of memory that an effect sees */
  uint32_t *member;       /* elements, class by class */
  uint32_t *where;        /* per element: its index in `member` */
  uint32_t *class_of;     /* per element */
  uint32_t *first, *size, *marked; /* per class; the marked members come first */
  uint32_t *use_start;    /* per element; one more at the end */
  use *uses, *batch;      /* batch: the uses of one splitter */
  uint32_t *pending;      /* classes to split by */
  uint8_t *is_pending;
  uint32_t pending_count;
  uint32_t *touched;      /* classes with marks */
  uint32_t *group;        /* per location, then room for its state */
} partition;

static const ssa_insn *insn_of(const partition *p, uint32_t element) {
  return ssa_insn_at(p->unit, p->values[element]);
}

static hg_status out_of_memory(void) { return hg_fail_memory("merging phis", 0); }

/* ---- what looks alike -------------------------------------------------------------------------------------------- */

/* Numbers the states of memory that the effects of each block see. Any other effect is a state of its own. */
static void find_states(const partition *p, uint32_t *now) {
  const uint32_t *group = p->group;
  uint32_t locations = hg_location_count(p->program), next = 1;
  for (uint32_t b = 0; b < p->unit->blocks.count; b++) {
    for (uint32_t l = 0; l < locations; l++) now[l] = 0;
    for (uint32_t e = ssa_block_at(p->unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(p->unit, e)->next) {
      const ssa_insn *insn = ssa_insn_at(p->unit, e);
      uint32_t flags = atlas_op_flags(insn->op), memory = flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC);
      p->state[e] = hg_only_reads(insn) ? memory ? now[group[hg_location_of(p->program, insn)]] : 0 : next++;
      if (memory && !(flags & ATLAS_LOAD)) now[group[hg_location_of(p->program, insn)]] = next++;
      for (uint32_t l = 0; l < locations && hg_orders_all(insn); l++)
        if (!hg_is_private(p->program, l)) now[l] = next++;
    }
  }
}

static int compare_words(const uint64_t *a, const uint64_t *b, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

enum { SIGNATURE_WORDS = 5 };

static void signature_of(const partition *p, uint32_t element, uint64_t signature[SIGNATURE_WORDS]) {
  const ssa_insn *insn = insn_of(p, element);
  signature[0] = (uint64_t)insn->op << 48 | (uint64_t)insn->type << 40 | (uint64_t)insn->type2 << 32 |
            (uint64_t)insn->mode << 24 | (uint64_t)insn->phi_registers << 16 | insn->symbol;
  signature[1] = insn->bits;
  signature[2] = insn->block;
  signature[3] = p->state[p->values[element]];
  signature[4] = insn->arg_count;
}

/* The initial classes: elements of one signature, found through a hash table of elements + 1. */
static hg_status first_classes(partition *p) {
  uint32_t slot_count = 64;
  while (slot_count < 2 * p->count) slot_count *= 2;
  uint32_t *slots = hg_allocate(&p->unit->allocator, slot_count, sizeof *slots);
  if (slots == NULL) return out_of_memory();
  for (uint32_t e = 0; e < p->count; e++) {
    uint64_t signature[SIGNATURE_WORDS], other[SIGNATURE_WORDS];
    signature_of(p, e, signature);
    uint32_t slot = (uint32_t)hg_hash_words(signature, SIGNATURE_WORDS) & (slot_count - 1);
    for (; slots[slot] != 0; slot = (slot + 1) & (slot_count - 1)) {
      signature_of(p, slots[slot] - 1, other);
      if (compare_words(signature, other, SIGNATURE_WORDS) == 0) break;
    }
    if (slots[slot] == 0) {
      slots[slot] = e + 1;
      p->class_of[e] = p->class_count++;
    } else {
      p->class_of[e] = p->class_of[slots[slot] - 1];
    }
    p->size[p->class_of[e]]++;
  }
  hg_release(&p->unit->allocator, slots);
  uint32_t sum = 0;
  for (uint32_t k = 0; k < p->class_count; k++) {
    p->first[k] = sum;
    sum += p->size[k];
  }
  for (uint32_t e = 0; e < p->count; e++) { /* `marked` counts how far each class is filled */
    uint32_t k = p->class_of[e];
    p->where[e] = p->first[k] + p->marked[k]++;
    p->member[p->where[e]] = e;
  }
  for (uint32_t k = 0; k < p->class_count; k++) p->marked[k] = 0;
  return HG_OK;
}

static void list_uses(partition *p) {
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t e = p->count; e-- > 0;) {
      const uint32_t *args = ssa_args_of(p->unit, p->values[e]);
      int commutes = hg_commutes(insn_of(p, e));
      for (uint32_t i = 0; i < insn_of(p, e)->arg_count; i++) {
        uint32_t of = p->element_of[args[i]];
        if (pass == 0) p->use_start[of]++;
        else p->uses[--p->use_start[of]] = (use){e, commutes && i == 1 ? 0 : i};
      }
    }
    uint32_t sum = 0;
    for (uint32_t e = 0; e <= p->count && pass == 0; e++) sum = p->use_start[e] += sum;
  }
}

/* ---- splitting --------------------------------------------------------------------------------------------------- */

static void push_class(partition *p, uint32_t k) {
  if (p->is_pending[k]) return;
  p->is_pending[k] = 1;
  p->pending[p->pending_count++] = k;
}

static uint32_t mark(partition *p, uint32_t element, uint32_t touched) {
  uint32_t k = p->class_of[element], to = p->first[k] + p->marked[k], at = p->where[element];
  if (at < to) return touched; /* marked already */
  uint32_t other = p->member[to];
  p->member[to] = element;
  p->where[element] = to;
  p->member[at] = other;
  p->where[other] = at;
  if (p->marked[k]++ == 0) p->touched[touched++] = k;
  return touched;
}

/* The marked members of each touched class leave it, if not all are marked. */
static void split_touched(partition *p, uint32_t touched) {
  while (touched > 0) {
    uint32_t k = p->touched[--touched], marks = p->marked[k];
    p->marked[k] = 0;
    if (marks == p->size[k]) continue;
    uint32_t fresh = p->class_count++, smaller;
    p->first[fresh] = p->first[k];
    p->size[fresh] = marks;
    p->first[k] += marks;
    p->size[k] -= marks;
    for (uint32_t i = 0; i < marks; i++) p->class_of[p->member[p->first[fresh] + i]] = fresh;
    smaller = p->size[fresh] <= p->size[k] ? fresh : k;
    push_class(p, p->is_pending[k] ? fresh : smaller);
  }
}

static int is_before(use a, use b) { return a.place != b.place ? a.place < b.place : a.user < b.user; }

static void sift_down(use *heap, size_t root, size_t count) {
  for (size_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && is_before(heap[child], heap[child + 1])) child++;
    if (!is_before(heap[root], heap[child])) return;
    use swapped = heap[root];
    heap[root] = heap[child];
    heap[child] = swapped;
  }
}

static void sort_uses(use *uses, size_t count) {
  for (size_t i = count / 2; i-- > 0;) sift_down(uses, i, count);
  for (size_t i = count; i-- > 1;) {
    use last = uses[0];
    uses[0] = uses[i];
    uses[i] = last;
    sift_down(uses, 0, i);
  }
}

/* Splits classes by who uses the splitter as this operand: users from other elements, then users that have it as both
 * factors from those that have it as one. */
static void split_by_place(partition *p, const use *batch, uint32_t count) {
  uint32_t touched = 0;
  for (uint32_t i = 0; i < count; i++) touched = mark(p, batch[i].user, touched);
  split_touched(p, touched);
  touched = 0;
  for (uint32_t i = 1; i < count; i++)
    if (batch[i].user == batch[i - 1].user) touched = mark(p, batch[i].user, touched);
  split_touched(p, touched);
}

static void split_by(partition *p, uint32_t k) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->size[k]; i++) {
    uint32_t element = p->member[p->first[k] + i];
    for (uint32_t u = p->use_start[element]; u < p->use_start[element + 1]; u++) p->batch[count++] = p->uses[u];
  }
  sort_uses(p->batch, count);
  for (uint32_t i = 0, end; i < count; i = end) {
    for (end = i; end < count && p->batch[end].place == p->batch[i].place;) end++;
    split_by_place(p, p->batch + i, end - i);
  }
}

static void split_all(partition *p) {
  for (uint32_t k = p->class_count; k-- > 0;) push_class(p, k);
  while (p->pending_count > 0) {
    uint32_t k = p->pending[--p->pending_count];
    p->is_pending[k] = 0;
    split_by(p, k);
  }
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

/* Replaces phis and effects by the first of their class, which is in the same block. Value numbering then merges the
 * pure values. */
static void merge(partition *p, int *changed) {
  for (uint32_t k = 0; k < p->class_count; k++) p->marked[k] = SSA_NONE;
  for (uint32_t e = 0; e < p->count; e++) {
    uint32_t *leader = &p->marked[p->class_of[e]];
    if (*leader == SSA_NONE) *leader = e;
    else if (insn_of(p, e)->block != SSA_NONE) {
      ir_ssa_replace(p->unit, p->values[e], p->values[*leader]);
      *changed = 1;
    }
  }
}

static size_t count_args(const ssa_unit *unit, const hg_array *values) {
  size_t args = 0;
  for (size_t k = 0; k < values->count; k++) args += ssa_insn_at(unit, ((const uint32_t *)values->data)[k])->arg_count;
  return args;
}

static void lay_out(partition *p, uint32_t *words, size_t values, size_t args) {
  size_t n = p->count;
  uint32_t **arrays[] = {&p->member, &p->where,  &p->class_of, &p->first,
                         &p->size,   &p->marked, &p->pending,  &p->touched};
  p->element_of = words;
  p->state = words + values;
  words += 2 * values;
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++, words += n) *arrays[i] = words;
  p->use_start = words;
  p->uses = (use *)(words + n + 1);
  p->batch = p->uses + args;
  p->group = (uint32_t *)(p->batch + args);
  p->is_pending = (uint8_t *)(p->group + 2 * hg_location_count(p->program));
}

static hg_status partition_values(partition *p, const hg_array *values, int *changed) {
  const hg_allocator *allocator = &p->unit->allocator;
  size_t args = count_args(p->unit, values), n = values->count, all = p->unit->insns.count;
  uint32_t locations = hg_location_count(p->program);
  p->values = values->data;
  p->count = (uint32_t)n;
  uint32_t *words = hg_allocate(allocator, 2 * all + 10 * n + 1 + 4 * args + 2 * (uint64_t)locations, sizeof *words);
  if (words == NULL) return out_of_memory();
  lay_out(p, words, all, args);
  for (uint32_t e = 0; e < n; e++) p->element_of[p->values[e]] = e;
  hg_alias_groups(p->program, p->unit, p->group);
  find_states(p, p->group + locations);
  hg_status status = first_classes(p);
  if (status == HG_OK) {
    list_uses(p);
    split_all(p);
    merge(p, changed);
  }
  hg_release(allocator, words);
  return status;
}

hg_status hg_pass_merge_phis(const atlas_program *program, ssa_unit *unit, int *changed) {
  ssa_order order;
  hg_array values = {.element_size = sizeof(uint32_t)};
  partition p = {.program = program, .unit = unit};
  int found;
  HG_TRY(hg_find_alike(unit, HG_ALIKE_IN_BLOCKS, &found));
  if (!found) return HG_OK;
  ir_ssa_resolve_all(unit);
  hg_status status = ir_ssa_order_number(unit, &order);
  if (status == HG_OK) status = ir_ssa_walk(unit, &order, &values);
  if (status == HG_OK) status = partition_values(&p, &values, changed);
  hg_array_release(&unit->allocator, &values);
  ir_ssa_order_release(unit, &order);
  return status;
}
