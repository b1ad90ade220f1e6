/* group.c - loads of one lane that lie near one another: [a + r + #0], [a + r + #1], ... One check serves them all,
 * and those that are neighbours become one access of up to 16 bytes. A lane for which the check fails, or whose
 * addresses are not multiples of the access's size, does them one by one, each with its own check. */
#include "backend/cuda/ptx/ptx.h"

#include "base/bytes.h"
#include "compiler/aliasing.h"

#include <stdio.h>
#include <string.h>

enum { VECTOR_BYTES = 16, NEAR = 1 << 16, FEWEST = 3, MAX_GROUP = PTX_MAX_GROUP };

typedef struct group {
  uint32_t value[MAX_GROUP]; /* by displacement */
  uint32_t count;
  uint32_t width;            /* elements of the widest access */
  ptx_name word[MAX_GROUP];  /* of a wide access: what it loads; by the first of a word's elements */
} group;

static int64_t displacement_of(const ptx *p, uint32_t value) { return (int64_t)ptx_insn(p, value)->bits; }

/* ---- which loads ------------------------------------------------------------------------------------------------- */

static int is_candidate(const ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t flags = atlas_op_flags(insn->op);
  if (!(flags & ATLAS_LOAD) || insn->mode != ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY ||
      atlas_symbol_at(p->program, insn->symbol)->kind != ATLAS_SYMBOL_BUFFER)
    return 0;
  int64_t displacement = displacement_of(p, value);
  int is_checked = !p->in_vector_part || p->access[value] == PTX_CHECKED;
  return is_checked && !p->analysis.in_bounds[value] && displacement > -NEAR && displacement < NEAR &&
         atlas_bytes((atlas_type)insn->type) > 1 && ptx_insn(p, ptx_arg(p, value, 0))->op != SSA_CONST;
}

static void insert(const ptx *p, group *g, uint32_t value) {
  uint32_t at = g->count++;
  for (; at > 0 && displacement_of(p, g->value[at - 1]) > displacement_of(p, value); at--)
    g->value[at] = g->value[at - 1];
  g->value[at] = value;
}

/* From the first on, as far as nothing but arithmetic stands between. */
static void collect(const ptx *p, uint32_t first, group *g) {
  const ssa_insn *a = ptx_insn(p, first);
  for (uint32_t e = first; e != SSA_NONE && g->count < MAX_GROUP; e = ptx_insn(p, e)->next) {
    const ssa_insn *b = ptx_insn(p, e);
    uint32_t flags = atlas_op_flags(b->op);
    if (flags & ATLAS_PURE && !(flags & (ATLAS_LOAD | ATLAS_BLOCK))) continue;
    if (!is_candidate(p, e) || b->symbol != a->symbol || b->type != a->type ||
        ptx_arg(p, e, 0) != ptx_arg(p, first, 0))
      return;
    insert(p, g, e);
  }
}

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

static uint32_t neighbours(const ptx *p, const group *g, uint32_t first) {
  uint32_t n = 1;
  while (first + n < g->count &&
         displacement_of(p, g->value[first + n]) == displacement_of(p, g->value[first]) + (int64_t)n)
    n++;
  return n;
}

/* The access that begins with this load: as many elements as there are, if it lies where wide ones lie. */
static uint32_t access_width(const ptx *p, const group *g, uint32_t first) {
  int64_t from_first = displacement_of(p, g->value[first]) - displacement_of(p, g->value[0]);
  return g->width > 1 && from_first % g->width == 0 && neighbours(p, g, first) >= g->width ? g->width : 1;
}

/* The widest accesses that the group has, counted from its first element; 1 if half of its loads stay alone. */
static void find_width(const ptx *p, group *g) {
  for (g->width = VECTOR_BYTES / atlas_bytes((atlas_type)ptx_insn(p, g->value[0])->type); g->width > 1; g->width /= 2) {
    uint32_t joined = 0;
    for (uint32_t i = 0, n; i < g->count; i += n) {
      n = access_width(p, g, i);
      if (n > 1) joined += n;
    }
    if (2 * joined > g->count) return;
  }
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Some lane of the group's may not do what is done together. */
static ptx_name cannot(ptx *p, const group *g, ptx_name address) {
  const ssa_insn *insn = ptx_insn(p, g->value[0]);
  uint32_t index_arg = ptx_arg(p, g->value[0], 0), size = atlas_bytes((atlas_type)insn->type);
  uint8_t type = ptx_insn(p, index_arg)->type;
  int64_t least = displacement_of(p, g->value[0]), most = displacement_of(p, g->value[g->count - 1]);
  ptx_name index = hg_ptx_wide(p, index_arg), extent, sum;
  (void)hg_ptx_base_of(p, insn, &extent);
  ptx_name failed = hg_ptx_sum_is_outside(p, index, type, most, extent, &sum);
  if (least < 0 || hg_ptx_is_signed(type)) {
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

static uint32_t size_of(const ptx *p, const group *g) {
  return atlas_bytes((atlas_type)ptx_insn(p, g->value[0])->type);
}

/* Elements of 8 bits are in no group. */
static uint32_t elements_of_word(const ptx *p, const group *g) { return size_of(p, g) == 2 ? 2 : 1; }

static int begins_word(const group *g, uint32_t at) { return g->word[at].text[0] != '\0'; }

/* `width` neighbours by one access. */
static void load_together(ptx *p, group *g, uint32_t first, uint32_t width, ptx_name address) {
  const ssa_insn *insn = ptx_insn(p, g->value[first]);
  uint32_t size = size_of(p, g), elements = elements_of_word(p, g);
  const char *nc = p->read_only[hg_location_of(p->program, insn)] ? ".nc" : "";
  ptx_name at = hg_ptx_plus(address, displacement_of(p, g->value[first]) * (int64_t)size);
  char list[100];
  size_t used = 0;
  for (uint32_t i = 0; i < width; i += elements) {
    ptx_name *word = &g->word[first + i];
    *word = elements > 1 ? hg_ptx_new(p, PTX_32) : hg_ptx_register(p, g->value[first + i]);
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", word->text);
  }
  const char *type = size == 8 ? ".b64" : ".b32";
  if (width == elements) hg_ptx_put(p, "\tld.global%s%s %s, [%s];\n", nc, type, list, at.text);
  else hg_ptx_put(p, "\tld.global%s.v%u%s {%s}, [%s];\n", nc, (unsigned)(width / elements), type, list, at.text);
}

static void take_words_apart(ptx *p, const group *g) {
  uint32_t elements = elements_of_word(p, g);
  for (uint32_t i = 0; elements > 1 && i < g->count; i++) {
    ptx_name part[2];
    if (!begins_word(g, i)) continue;
    hg_ptx_take_apart(p, ptx_insn(p, g->value[i])->type, g->word[i], part, elements);
    for (uint32_t k = 0; k < elements; k++) hg_ptx_lies_in(p, g->value[i + k], part[k]);
  }
}

static void join_word(ptx *p, const group *g, uint32_t first, uint32_t elements) {
  ptx_name part[2];
  for (uint32_t k = 0; k < elements; k++) part[k] = hg_ptx_register(p, g->value[first + k]);
  hg_ptx_join_parts(p, ptx_insn(p, g->value[first])->type, g->word[first], part, elements);
}

/* The first element of the word that one lies in; itself where it is loaded alone. */
static uint32_t word_of(const group *g, uint32_t value) {
  uint32_t at = 0;
  while (g->value[at] != value) at++;
  return at > 0 && !begins_word(g, at) && begins_word(g, at - 1) ? at - 1 : at;
}

/* In the program's order; a word as soon as all of it is there: fewer registers, so room for more blocks. */
static void load_each(ptx *p, const group *g, const uint32_t *in_order) {
  uint32_t elements = elements_of_word(p, g);
  uint8_t there[MAX_GROUP] = {0}; /* by the first of a word's elements */
  for (uint32_t i = 0; i < g->count; i++) {
    hg_ptx_load_checked(p, in_order[i]);
    if (elements == 1) continue; /* a word's register is the element's */
    uint32_t first = word_of(g, in_order[i]);
    if (begins_word(g, first) && ++there[first] == elements) join_word(p, g, first, elements);
  }
  hg_ptx_faults_now(p);
}

/* What both ways have in hand where they meet are words: the way of the one access then moves nothing. */
static void load_group(ptx *p, group *g, const uint32_t *in_order) {
  ptx_name slow = hg_ptx_label(p), back = hg_ptx_label(p), address = hg_ptx_new(p, PTX_64), extent;
  const ssa_insn *insn = ptx_insn(p, g->value[0]);
  uint32_t size = size_of(p, g);
  hg_ptx_faults_now(p);
  ptx_name base = hg_ptx_base_of(p, insn, &extent), bytes = hg_ptx_new(p, PTX_64);
  PTX(p, "mul.lo.s64", bytes, hg_ptx_wide(p, ptx_arg(p, g->value[0], 0)), hg_ptx_number(size));
  PTX(p, "add.s64", address, base, bytes);
  hg_ptx_put(p, "\t@%s bra %s;\n", cannot(p, g, address).text, slow.text);
  for (uint32_t i = 0, n; i < g->count; i += n) {
    n = access_width(p, g, i);
    if (n > 1) load_together(p, g, i, n, address);
    else hg_ptx_load_at(p, g->value[i], hg_ptx_plus(address, displacement_of(p, g->value[i]) * (int64_t)size));
  }
  hg_ptx_place(p, back);
  take_words_apart(p, g);
  hg_array *out = p->out;
  p->out = &p->slow;
  hg_ptx_place(p, slow);
  load_each(p, g, in_order);
  hg_ptx_put(p, "\tbra %s;\n", back.text);
  p->out = out;
}

/* Outside the vector part of a tile no access is known to lie in bounds. */
static void check_each(ptx *p, const group *g, uint8_t was[MAX_GROUP]) {
  for (uint32_t i = 0; i < g->count; i++) {
    was[i] = p->access[g->value[i]];
    p->access[g->value[i]] = PTX_CHECKED;
  }
}

static int is_in(const uint32_t *values, uint32_t count, uint32_t value) {
  for (uint32_t i = 0; i < count; i++)
    if (values[i] == value) return 1;
  return 0;
}

int hg_ptx_load_grouped(ptx *p, uint32_t value) {
  group g = {.count = 0};
  if (p->grouped_copy == p->copy && is_in(p->grouped, p->grouped_count, value)) return 1;
  if (p->out != &p->body || !is_candidate(p, value)) return 0;
  collect(p, value, &g);
  if (g.count < 2) return 0;
  find_width(p, &g);
  if (g.count < FEWEST && g.width == 1) return 0;
  p->grouped_copy = p->copy;
  p->grouped_count = 0;
  for (uint32_t e = value; p->grouped_count < g.count; e = ptx_insn(p, e)->next)
    if (is_in(g.value, g.count, e)) p->grouped[p->grouped_count++] = e;
  uint8_t was[MAX_GROUP];
  check_each(p, &g, was);
  load_group(p, &g, p->grouped);
  for (uint32_t i = 0; i < g.count; i++) p->access[g.value[i]] = was[i];
  return 1;
}
