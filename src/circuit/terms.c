/* terms.c - the canonical form: steps are run on terms instead of bytes, so that what each place holds in the end is
 * what the circuit computes, however it was written. */
#include "circuit/parts.h"

#include "base/bytes.h"

#include <string.h>

/* What a place holds, and what the laws ask about it. */
typedef struct cell {
  circuit_content content;
  uint32_t changed_by; /* the last step that wrote it; CIRCUIT_NONE: none */
  uint8_t is_unread;   /* 1: written, and not read since */
} cell;

typedef struct runner {
  const circuit_text *text;
  const circuit_step *steps;
  uint64_t *laws;
  cell *cells;         /* by place */
  circuit_term *terms; /* in the order of the steps */
  uint32_t term_count;
  uint64_t *digests;   /* of each term: of what it is, not of when it was made */
  uint32_t *number;    /* of each its place in the form; CIRCUIT_NONE: it has none yet */
  uint32_t *slots;     /* terms by what they are: 1 + index, 0: free; a power of two of them */
  uint32_t slot_count;
  hg_array stack;      /* uint32_t: values */
  circuit_form *form;
} runner;

static hg_status no_memory(size_t count) { return hg_fail_memory("a circuit's terms", count * sizeof(circuit_term)); }

static int same(circuit_content a, circuit_content b) { return a.value == b.value && a.mask == b.mask; }

/* Orders operands: classes by number before terms by digest. */
static uint64_t digest_of(const runner *r, uint32_t value) {
  return value < CIRCUIT_CLASSES ? value : r->digests[value - CIRCUIT_CLASSES] | UINT64_C(1) << 63;
}

static int stands_before(const runner *r, circuit_content a, circuit_content b) {
  uint64_t x = digest_of(r, a.value), y = digest_of(r, b.value);
  return x != y ? x < y : a.mask < b.mask;
}

static uint64_t digest_of_term(const runner *r, const circuit_term *t) {
  uint64_t digest = hg_hash_mix(t->operation + UINT64_C(1), digest_of(r, t->x.value));
  digest = hg_hash_mix(digest, t->x.mask);
  digest = hg_hash_mix(digest, digest_of(r, t->y.value));
  return hg_hash_mix(digest, t->y.mask);
}

/* The value of an operation: the term that is there, or a new one. There is room for all of them. */
static uint32_t value_of(runner *r, circuit_term t) {
  if (hg_circuit_operations[t.operation].commutes && stands_before(r, t.y, t.x)) {
    t = (circuit_term){t.operation, t.y, t.x};
    r->laws[LAW_OPERANDS]++;
  }
  uint64_t digest = digest_of_term(r, &t);
  uint32_t at = (uint32_t)(digest ^ digest >> 32) & (r->slot_count - 1);
  for (; r->slots[at] != 0; at = (at + 1) & (r->slot_count - 1)) {
    const circuit_term *old = r->terms + r->slots[at] - 1;
    if (old->operation != t.operation || !same(old->x, t.x) || !same(old->y, t.y)) continue;
    r->laws[LAW_SHARED]++;
    return CIRCUIT_CLASSES + r->slots[at] - 1;
  }
  r->terms[r->term_count] = t;
  r->digests[r->term_count] = digest;
  r->number[r->term_count] = CIRCUIT_NONE;
  r->slots[at] = r->term_count + 1;
  return CIRCUIT_CLASSES + r->term_count++;
}

static circuit_content read_place(runner *r, uint32_t place) {
  cell *c = &r->cells[place];
  c->is_unread = 0;
  if (c->content.value < CIRCUIT_CLASSES && c->content.value != place) r->laws[LAW_FORWARD]++;
  return c->content;
}

static void write_place(runner *r, uint32_t place, circuit_content content, uint32_t step) {
  cell *c = &r->cells[place];
  if (c->is_unread) r->laws[LAW_DEAD_WRITE]++;
  *c = (cell){content, step, 1};
}

static void mark(runner *r, uint32_t step, uint32_t place) {
  cell *c = &r->cells[place];
  uint8_t before = c->content.mask, byte = atlas_class_byte(place);
  c->content.mask ^= byte;
  c->changed_by = step;
  if (byte == 0) r->laws[LAW_ZERO_MARK]++;
  else if (before != 0) r->laws[before == byte ? LAW_MARK_MARK : LAW_MARKS_MERGE]++;
}

static void swap(runner *r, uint32_t step, cell *x, cell *y) {
  cell old = *x;
  if (x->changed_by != CIRCUIT_NONE && x->changed_by == y->changed_by) r->laws[LAW_SWAP_SWAP]++; /* by one swap */
  *x = *y;
  *y = old;
  x->changed_by = y->changed_by = step;
}

static void run_step(runner *r, uint32_t step) {
  const circuit_step *s = r->steps + step;
  const uint32_t *at = s->place;
  if (s->generator == CIRCUIT_MARK) {
    mark(r, step, at[0]);
  } else if (s->generator == CIRCUIT_COPY || s->generator == CIRCUIT_SWAP) {
    int is_copy = s->generator == CIRCUIT_COPY, is_same = same(r->cells[at[0]].content, r->cells[at[1]].content);
    if (is_same) r->laws[is_copy ? LAW_COPY_AGAIN : LAW_SWAP_EQUAL]++;
    else if (is_copy) write_place(r, at[1], read_place(r, at[0]), step);
    else swap(r, step, &r->cells[at[0]], &r->cells[at[1]]);
  } else {
    circuit_content x = read_place(r, at[0]), y = read_place(r, at[1]);
    write_place(r, at[2], (circuit_content){value_of(r, (circuit_term){s->operation, x, y}), 0}, step);
  }
}

static int are_disjoint(const circuit_step *a, const circuit_step *b) {
  for (int i = 0; i < circuit_place_count(a); i++)
    for (int k = 0; k < circuit_place_count(b); k++)
      if (a->place[i] == b->place[k]) return 0;
  return 1;
}

static hg_status run_steps(runner *r, size_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const circuit_step *s = r->steps + i;
    int reads = s->generator == CIRCUIT_COPY ? 1 : 2;
    for (int k = 0; k < reads && k < circuit_place_count(s); k++) /* temporaries begin as nothing */
      if (s->place[k] >= CIRCUIT_CLASSES && r->cells[s->place[k]].changed_by == CIRCUIT_NONE)
        return hg_circuit_fail(r->text, ((const circuit_node *)r->text->nodes.data)[s->node].at,
                               "temporary t%u is read before it is written", s->place[k] - CIRCUIT_CLASSES);
    if (i > 0 && s->place[0] < s[-1].place[0] && are_disjoint(s - 1, s)) r->laws[LAW_DISJOINT]++;
    run_step(r, i);
  }
  return HG_OK;
}

static hg_status prepare(runner *r, const hg_array *steps) {
  const hg_allocator *allocator = r->text->allocator;
  uint32_t places = CIRCUIT_CLASSES, operations = 0;
  for (size_t i = 0; i < steps->count; i++) {
    for (int k = 0; k < circuit_place_count(r->steps + i); k++)
      if (r->steps[i].place[k] >= places) places = r->steps[i].place[k] + 1;
    operations += circuit_place_count(r->steps + i) == 3;
  }
  for (r->slot_count = 2; r->slot_count < 2 * operations;) r->slot_count *= 2;
  r->slots = hg_allocate(allocator, r->slot_count, sizeof *r->slots);
  r->terms = hg_allocate_unset(allocator, operations, sizeof *r->terms);
  r->digests = hg_allocate_unset(allocator, operations, sizeof *r->digests);
  r->number = hg_allocate_unset(allocator, operations, sizeof *r->number);
  r->cells = hg_allocate_unset(allocator, places, sizeof *r->cells);
  if (r->slots == NULL || r->terms == NULL || r->digests == NULL || r->number == NULL || r->cells == NULL)
    return no_memory(operations + places);
  for (uint32_t c = 0; c < places; c++) r->cells[c] = (cell){{c, 0}, CIRCUIT_NONE, 0};
  return HG_OK;
}

static circuit_content renumbered(const runner *r, circuit_content content) {
  if (content.value >= CIRCUIT_CLASSES) content.value = CIRCUIT_CLASSES + r->number[content.value - CIRCUIT_CLASSES];
  return content;
}

static int has_place(const runner *r, uint32_t value) {
  return value < CIRCUIT_CLASSES || r->number[value - CIRCUIT_CLASSES] != CIRCUIT_NONE;
}

/* Gives a value and what it depends on their places, operands first. 0: out of memory. */
static int place_value(runner *r, uint32_t value) {
  const hg_allocator *allocator = r->text->allocator;
  int has_memory = hg_array_push(allocator, &r->stack, value);
  while (has_memory && r->stack.count > 0) {
    uint32_t top = ((const uint32_t *)r->stack.data)[r->stack.count - 1];
    circuit_term t = has_place(r, top) ? (circuit_term){0} : r->terms[top - CIRCUIT_CLASSES];
    if (has_place(r, top)) {
      r->stack.count--;
    } else if (!has_place(r, t.x.value) || !has_place(r, t.y.value)) {
      has_memory = hg_array_push(allocator, &r->stack, has_place(r, t.x.value) ? t.y.value : t.x.value);
    } else {
      r->number[top - CIRCUIT_CLASSES] = (uint32_t)r->form->terms.count;
      t = (circuit_term){t.operation, renumbered(r, t.x), renumbered(r, t.y)};
      has_memory = hg_array_append(allocator, &r->form->terms, &t, 1) != NULL;
    }
  }
  return has_memory;
}

static hg_status order_terms(runner *r) {
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    if (!place_value(r, r->cells[c].content.value)) return no_memory(r->form->terms.count + 1);
    r->form->final[c] = renumbered(r, r->cells[c].content);
  }
  r->laws[LAW_DEAD_TERM] += r->term_count - r->form->terms.count;
  return HG_OK;
}

hg_status hg_circuit_terms_of(const circuit_text *text, const hg_array *steps, circuit_form *form,
                              uint64_t laws[LAW_COUNT]) {
  runner r = {.text = text, .steps = steps->data, .laws = laws, .stack = {.element_size = sizeof(uint32_t)},
              .form = form};
  hg_status status = prepare(&r, steps);
  if (status == HG_OK) status = run_steps(&r, steps->count);
  if (status == HG_OK) status = order_terms(&r);
  void *const arrays[] = {r.cells, r.terms, r.digests, r.number, r.slots, r.stack.data};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) hg_release(text->allocator, arrays[i]);
  return status;
}
