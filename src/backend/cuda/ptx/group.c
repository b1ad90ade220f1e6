/* group.c - loads of one lane that lie near one another: one check and wide accesses, or each load by itself. */
#include "backend/cuda/ptx/ptx.h"

#include <stdio.h>

typedef struct group {
  const gpu_group *plan;
  ptx_name word[GPU_MAX_GROUP];  /* of a wide access: what it loads; by the first of a word's elements */
} group;

static int64_t displacement_of(const ptx *p, uint32_t value) { return (int64_t)ptx_insn(p, value)->bits; }

static ptx_name address_of(const ptx *p, const group *g, uint32_t at, ptx_name address) {
  return hg_ptx_plus(address, displacement_of(p, g->plan->value[at]) * (int64_t)g->plan->element_bytes);
}

/* A predicate: a load of the group is out of bounds, or the wide accesses are not aligned. */
static ptx_name group_fails(ptx *p, const gpu_group *g, ptx_name address) {
  const ssa_insn *insn = ptx_insn(p, g->value[0]);
  uint32_t index_arg = ptx_arg(p, g->value[0], 0), size = g->element_bytes;
  uint8_t type = ptx_insn(p, index_arg)->type;
  int64_t least = displacement_of(p, g->value[0]), most = displacement_of(p, g->value[g->count - 1]);
  ptx_name index = hg_ptx_wide(p, index_arg), extent, sum;
  (void)hg_ptx_base_of(p, insn, &extent);
  ptx_name failed = hg_ptx_sum_is_outside(p, index, type, most, extent, &sum);
  if (g->checks_least) {
    ptx_name low = hg_ptx_sum_is_outside(p, index, type, least, extent, &sum), both = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "or.pred", both, failed, low);
    failed = both;
  }
  if (g->width == 1) return failed;
  ptx_name low = hg_ptx_new(p, PTX_64), test = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "add.s64", low, address, hg_ptx_number((uint64_t)least * size));
  PTX(p, "and.b64", low, low, hg_ptx_number((uint64_t)g->width * size - 1));
  PTX(p, "setp.ne.or.s64", test, low, hg_ptx_number(0), failed);
  return test;
}

static int begins_word(const group *g, uint32_t at) { return g->word[at].text[0] != '\0'; }

/* `width` neighbours by one access. */
static void load_together(ptx *p, group *g, uint32_t first, uint32_t width, ptx_name address) {
  uint32_t elements = gpu_word_elements(g->plan);
  const char *nc = g->plan->is_read_only ? ".nc" : "";
  ptx_name at = address_of(p, g, first, address);
  char list[100];
  size_t used = 0;
  for (uint32_t i = 0; i < width; i += elements) {
    ptx_name *word = &g->word[first + i];
    *word = elements > 1 ? hg_ptx_new(p, PTX_32) : hg_ptx_register(p, g->plan->value[first + i]);
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", word->text);
  }
  const char *type = g->plan->element_bytes == 8 ? ".b64" : ".b32";
  if (width == elements) hg_ptx_put(p, "\tld.global%s%s %s, [%s];\n", nc, type, list, at.text);
  else hg_ptx_put(p, "\tld.global%s.v%u%s {%s}, [%s];\n", nc, (unsigned)(width / elements), type, list, at.text);
}

static void take_words_apart(ptx *p, const group *g) {
  uint32_t elements = gpu_word_elements(g->plan);
  for (uint32_t i = 0; elements > 1 && i < g->plan->count; i++) {
    ptx_name part[2];
    if (!begins_word(g, i)) continue;
    hg_ptx_take_apart(p, ptx_insn(p, g->plan->value[i])->type, g->word[i], part, elements);
    for (uint32_t k = 0; k < elements; k++) hg_ptx_lies_in(p, g->plan->value[i + k], part[k]);
  }
}

static void join_word(ptx *p, const group *g, uint32_t first, uint32_t elements) {
  ptx_name part[2];
  for (uint32_t k = 0; k < elements; k++) part[k] = hg_ptx_register(p, g->plan->value[first + k]);
  hg_ptx_join_parts(p, ptx_insn(p, g->plan->value[first])->type, g->word[first], part, elements);
}

/* The first element of the word that contains this one; itself if it is loaded alone. */
static uint32_t word_of(const group *g, uint32_t value) {
  uint32_t at = 0;
  while (g->plan->value[at] != value) at++;
  return at > 0 && !begins_word(g, at) && begins_word(g, at - 1) ? at - 1 : at;
}

/* In program order; a word is joined as soon as its elements are loaded, which takes fewer registers. */
static void load_each(ptx *p, const group *g) {
  uint32_t elements = gpu_word_elements(g->plan), loads = 0;
  uint8_t there[GPU_MAX_GROUP] = {0}; /* by the first of a word's elements */
  for (uint32_t i = 0; i < g->plan->step_count; i++) {
    hg_ptx_steps(p, g->plan->first_step + i, 1);
    if (elements == 1 || loads == g->plan->count)
      continue; /* the word's register is the element's; the last steps note faults */
    uint32_t first = word_of(g, g->plan->in_order[loads++]);
    if (begins_word(g, first) && ++there[first] == elements) join_word(p, g, first, elements);
  }
}

/* Where the fast and the slow path meet the values are in words, so that the fast path needs no moves. */
void hg_ptx_load_group(ptx *p, const gpu_step *step) {
  group g = {.plan = gpu_group_at(p->plan, step->number)};
  ptx_name slow = hg_ptx_label(p), back = hg_ptx_label(p), address = hg_ptx_new(p, PTX_64), extent;
  if (step->notes > 0) hg_ptx_faults_now(p);
  ptx_name base = hg_ptx_base_of(p, ptx_insn(p, step->value), &extent), bytes = hg_ptx_new(p, PTX_64);
  PTX(p, "mul.lo.s64", bytes, hg_ptx_wide(p, ptx_arg(p, step->value, 0)), hg_ptx_number(g.plan->element_bytes));
  PTX(p, "add.s64", address, base, bytes);
  hg_ptx_put(p, "\t@%s bra %s;\n", group_fails(p, g.plan, address).text, slow.text);
  for (uint32_t i = 0; i < g.plan->count; i += g.plan->joined[i]) {
    if (g.plan->joined[i] > 1) load_together(p, &g, i, g.plan->joined[i], address);
    else hg_ptx_load_at(p, g.plan->value[i], address_of(p, &g, i, address));
  }
  hg_ptx_place(p, back);
  take_words_apart(p, &g);
  hg_array *out = p->out;
  p->out = &p->slow;
  hg_ptx_place(p, slow);
  load_each(p, &g);
  hg_ptx_put(p, "\tbra %s;\n", back.text);
  p->out = out;
}
