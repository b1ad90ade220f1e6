/* plan_sets.c - sets of numbers that share most of their elements. A set is a binary tree down to words of 64 bits, and
 * equal trees are one node: a set with one element more than another shares everything with it except the path to that
 * element. So if each of many clusters runs after the last one, their sets of predecessors take only a few nodes for
 * each. Sets never change, and live as long as the plan is being made. */
#include "ops/plan/planner.h"
#include "ops/graph/ops_tuning.h"

enum { LEAF_BITS = 6 };

typedef struct set_node {
  uint32_t low, high; /* the two halves, 0: an empty one; at level 0 the bits */
  uint32_t count;     /* of elements */
  uint32_t level;     /* it covers 64 << level numbers */
  uint32_t next;      /* the next node in its bucket */
} set_node;

/* A union that was computed: the same two sets meet again when larger sets are united. */
typedef struct known_union {
  plan_set a, b, result;
} known_union;

static set_node *at(const plan_sets *s, plan_set set) { return (set_node *)s->nodes.data + set; }

static uint32_t hash_of(uint32_t level, uint32_t low, uint32_t high) {
  uint64_t hash = ((uint64_t)high << 32 | low) * UINT64_C(0x9e3779b97f4a7c15) + level;
  return (uint32_t)((hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
}

hg_status hg_sets_begin(plan_sets *s, const hg_allocator *allocator, uint32_t most) {
  *s = (plan_sets){.allocator = allocator};
  s->nodes.element_size = sizeof(set_node);
  s->buckets.element_size = sizeof(uint32_t);
  s->known.element_size = sizeof(known_union);
  while (s->levels + LEAF_BITS < 32 && most >> LEAF_BITS >> s->levels != 0) s->levels++;
  uint32_t places = 64;
  while (places < most / 4 && places < OPS_SET_BUCKETS) places *= 2;
  if (hg_array_append(allocator, &s->nodes, NULL, 1) == NULL ||
      hg_array_append(allocator, &s->buckets, NULL, 64) == NULL ||
      hg_array_append(allocator, &s->known, NULL, places) == NULL)
    return hg_fail_memory("a plan", places * sizeof(known_union));
  return HG_OK;
}

void hg_sets_release(plan_sets *s) {
  if (s->allocator == NULL) return;
  hg_array_release(s->allocator, &s->nodes);
  hg_array_release(s->allocator, &s->buckets);
  hg_array_release(s->allocator, &s->known);
}

static int grow_buckets(plan_sets *s) {
  hg_array larger = {.element_size = sizeof(uint32_t)};
  uint32_t count = 2 * (uint32_t)s->buckets.count;
  uint32_t *buckets = hg_array_append(s->allocator, &larger, NULL, count);
  if (buckets == NULL) return 0;
  for (uint32_t i = 1; i < s->nodes.count; i++) {
    set_node *node = at(s, i);
    uint32_t *bucket = &buckets[hash_of(node->level, node->low, node->high) & (count - 1)];
    node->next = *bucket;
    *bucket = i;
  }
  hg_array_release(s->allocator, &s->buckets);
  s->buckets = larger;
  return 1;
}

static uint32_t bits_in(uint32_t low, uint32_t high) {
  return (uint32_t)__builtin_popcountll((uint64_t)high << 32 | low);
}

static plan_set node_of(plan_sets *s, uint32_t level, uint32_t low, uint32_t high) {
  if (low == 0 && high == 0) return 0;
  uint32_t hash = hash_of(level, low, high);
  const uint32_t *buckets = s->buckets.data;
  for (uint32_t i = buckets[hash & (s->buckets.count - 1)]; i != 0; i = at(s, i)->next)
    if (at(s, i)->low == low && at(s, i)->high == high && at(s, i)->level == level) return i;
  set_node node = {.low = low, .high = high, .level = level};
  node.count = level == 0 ? bits_in(low, high) : at(s, low)->count + at(s, high)->count;
  if ((s->nodes.count >= s->buckets.count && !grow_buckets(s)) ||
      hg_array_append(s->allocator, &s->nodes, &node, 1) == NULL)
    return s->is_out_of_memory = 1, 0;
  uint32_t *bucket = (uint32_t *)s->buckets.data + (hash & (s->buckets.count - 1));
  plan_set made = (plan_set)s->nodes.count - 1;
  at(s, made)->next = *bucket;
  return *bucket = made;
}

/* ---- what is asked of them --------------------------------------------------------------------------------------- */

/* Which half of a level contains a number; at level 0, which word of 32 bits. */
static int is_high(uint32_t number, uint32_t level) { return number >> (LEAF_BITS - 1 + level) & 1; }

int hg_set_has(const plan_sets *s, plan_set set, uint32_t number) {
  for (uint32_t level = s->levels; level > 0 && set != 0; level--)
    set = is_high(number, level) ? at(s, set)->high : at(s, set)->low;
  if (set == 0) return 0;
  return (is_high(number, 0) ? at(s, set)->high : at(s, set)->low) >> number % 32 & 1;
}

uint32_t hg_set_count(const plan_sets *s, plan_set set) { return at(s, set)->count; }

/* The set, at a level, with or without a number. Recurses once for each level. */
static plan_set put(plan_sets *s, uint32_t level, plan_set set, uint32_t number, int is_in) {
  uint32_t halves[2] = {at(s, set)->low, at(s, set)->high}, *half = &halves[is_high(number, level)];
  if (level > 0) *half = put(s, level - 1, *half, number, is_in);
  else *half = (*half & ~(UINT32_C(1) << number % 32)) | (uint32_t)is_in << number % 32;
  return node_of(s, level, halves[0], halves[1]);
}

plan_set hg_set_with(plan_sets *s, plan_set set, uint32_t number) { return put(s, s->levels, set, number, 1); }
plan_set hg_set_without(plan_sets *s, plan_set set, uint32_t number) { return put(s, s->levels, set, number, 0); }

static plan_set unite(plan_sets *s, uint32_t level, plan_set a, plan_set b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (a > b) return unite(s, level, b, a);
  set_node one = *at(s, a), other = *at(s, b);
  if (level == 0) return node_of(s, 0, one.low | other.low, one.high | other.high);
  known_union *known = (known_union *)s->known.data + (hash_of(level, a, b) & (s->known.count - 1));
  if (known->a == a && known->b == b) return known->result;
  plan_set low = unite(s, level - 1, one.low, other.low), high = unite(s, level - 1, one.high, other.high);
  plan_set result = node_of(s, level, low, high);
  *known = (known_union){.a = a, .b = b, .result = result};
  return result;
}

plan_set hg_set_union(plan_sets *s, plan_set a, plan_set b) { return unite(s, s->levels, a, b); }
