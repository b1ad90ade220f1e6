/* schedule.c - steps that have a given form, always the same ones: operations first, in the order of the terms, then
 * every content to where it belongs by swaps and copies, then the constants of the exclusive or.
 *
 * An operation's result goes to the class that wants it, if what that class holds is no longer needed, else to some
 * place that holds nothing that is, and to a temporary where there is none. A content can be exclusive-or'ed with the
 * byte of any class, not only of the one that holds it: swap it there, mark it, and swap it back. */
#include "circuit/parts.h"

#include <string.h>

/* What a place holds: nothing that is needed (CIRCUIT_NONE), or a value. */
typedef struct slot {
  uint32_t value;
  uint8_t mask;
} slot;

typedef struct scheduler {
  const hg_allocator *allocator;
  const circuit_form *form;
  hg_array *steps;
  slot *slots;      /* by place; a term needs one temporary at most */
  uint32_t slot_count;
  uint32_t *place;  /* where each value is */
  uint32_t *uses;   /* of each: operands and final contents that still need it */
  uint32_t *wanted; /* of each: the first class that wants it in the end; CIRCUIT_NONE */
  uint32_t *free;   /* temporaries that hold nothing */
  uint32_t free_count;
  int has_memory;
} scheduler;

static int changes(const scheduler *s, uint32_t c) { return c < CIRCUIT_CLASSES && !circuit_keeps(s->form, c); }

static void add_step(scheduler *s, circuit_step step) {
  if (s->has_memory) s->has_memory = hg_array_append(s->allocator, s->steps, &step, 1) != NULL;
}

static void add_swap(scheduler *s, uint32_t a, uint32_t b) {
  add_step(s, (circuit_step){CIRCUIT_SWAP, 0, {a < b ? a : b, a < b ? b : a, 0}, 0});
}

static void hold(scheduler *s, uint32_t place, uint32_t value, uint8_t mask) {
  s->slots[place] = (slot){value, mask};
  if (value != CIRCUIT_NONE) s->place[value] = place;
}

/* What is there is not needed any more. */
static void leave(scheduler *s, uint32_t place) {
  hold(s, place, CIRCUIT_NONE, 0);
  if (place >= CIRCUIT_CLASSES) s->free[s->free_count++] = place;
}

static void use(scheduler *s, uint32_t value) {
  if (--s->uses[value] == 0) leave(s, s->place[value]);
}

/* A place for a value that holds nothing: a class that wants it, one of the hints, any class, a temporary. */
static uint32_t free_place(scheduler *s, uint32_t value, const uint32_t hints[2]) {
  for (uint32_t c = s->wanted[value]; c < CIRCUIT_CLASSES; c++)
    if (s->form->final[c].value == value && s->slots[c].value == CIRCUIT_NONE) return c;
  for (int i = 0; i < 2; i++)
    if (changes(s, hints[i]) && s->slots[hints[i]].value == CIRCUIT_NONE) return hints[i];
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++)
    if (s->slots[c].value == CIRCUIT_NONE) return c;
  return s->free_count > 0 ? s->free[--s->free_count] : s->slot_count++; /* a temporary */
}

static void mark_by(scheduler *s, uint32_t place, uint8_t byte) {
  uint32_t c = atlas_class_of_byte(byte);
  if (c != place) add_swap(s, place, c);
  add_step(s, (circuit_step){CIRCUIT_MARK, 0, {c, 0, 0}, 0});
  if (c != place) add_swap(s, place, c);
}

/* Marks a place until what it holds has this constant. A class has every even byte but those with both b4 and b5. */
static void bring_mask(scheduler *s, uint32_t place, uint8_t mask) {
  enum { B4 = 0x10, B5 = 0x20 };
  uint8_t byte = s->slots[place].mask ^ mask;
  if ((byte & B4) && (byte & B5)) {
    mark_by(s, place, B5);
    byte ^= B5;
  }
  if (byte != 0) mark_by(s, place, byte);
  s->slots[place].mask = mask;
}

static void add_copy(scheduler *s, uint32_t from, uint32_t to) {
  add_step(s, (circuit_step){CIRCUIT_COPY, 0, {from, to, 0}, 0});
}

static void compute(scheduler *s, uint32_t index) {
  const circuit_term *t = circuit_term_at(s->form, index);
  uint32_t value = CIRCUIT_CLASSES + index, a = s->place[t->x.value], b = s->place[t->y.value], to = CIRCUIT_NONE;
  const uint32_t hints[] = {a, b};
  if (t->x.value == t->y.value && t->x.mask != t->y.mask) { /* the same content with two constants: in two places */
    b = to = free_place(s, value, hints);
    add_copy(s, a, b);
    s->slots[b].mask = s->slots[a].mask;
  }
  bring_mask(s, a, t->x.mask);
  bring_mask(s, b, t->y.mask);
  use(s, t->x.value);
  use(s, t->y.value);
  if (to == CIRCUIT_NONE) to = free_place(s, value, hints);
  add_step(s, (circuit_step){hg_circuit_operations[t->operation].generator, t->operation, {a, b, to}, 0});
  hold(s, to, value, 0);
}

/* A content that needs the byte of the class that it is in before it is moved, and of no other, gets it there. */
static void mark_early(scheduler *s) {
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    circuit_content f = s->form->final[c];
    uint32_t from = s->place[f.value];
    if (s->wanted[f.value] != c || !changes(s, from)) continue;
    uint8_t byte = s->slots[from].mask ^ f.mask;
    if (byte != 0 && byte == atlas_class_byte(from)) bring_mask(s, from, f.mask);
  }
}

/* One class that wants each value gets it; where that holds another one that is needed they change places. */
static void move_contents(scheduler *s) {
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    uint32_t value = s->form->final[c].value, from = s->place[value];
    if (!changes(s, c) || from == c) continue;
    if (from < CIRCUIT_CLASSES && s->form->final[from].value == value) continue; /* it is wanted there, too */
    slot held = s->slots[c], moved = s->slots[from];
    if (held.value == CIRCUIT_NONE) {
      add_copy(s, from, c);
      leave(s, from);
    } else {
      add_swap(s, from, c);
      hold(s, from, held.value, held.mask);
    }
    hold(s, c, value, moved.mask);
  }
}

static void copy_contents(scheduler *s) {
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) {
    uint32_t from = s->place[s->form->final[c].value];
    if (!changes(s, c) || from == c) continue;
    add_copy(s, from, c);
    s->slots[c].mask = s->slots[from].mask;
  }
}

static int prepare(scheduler *s) {
  size_t values = CIRCUIT_CLASSES + s->form->terms.count;
  s->slots = hg_allocate(s->allocator, values, sizeof *s->slots);
  s->place = hg_allocate(s->allocator, values * 4, sizeof *s->place);
  if (s->slots == NULL || s->place == NULL) return 0;
  s->uses = s->place + values;
  s->wanted = s->uses + values;
  s->free = s->wanted + values;
  for (size_t v = 0; v < values; v++) s->wanted[v] = CIRCUIT_NONE;
  for (uint32_t i = 0; i < s->form->terms.count; i++) {
    s->uses[circuit_term_at(s->form, i)->x.value]++;
    s->uses[circuit_term_at(s->form, i)->y.value]++;
  }
  for (uint32_t c = CIRCUIT_CLASSES; c-- > 0;) {
    uint32_t value = s->form->final[c].value;
    s->uses[value]++;
    if (changes(s, c)) s->wanted[value] = c;
  }
  for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) hold(s, c, s->uses[c] > 0 ? c : CIRCUIT_NONE, 0);
  return 1;
}

hg_status hg_circuit_schedule(const hg_allocator *allocator, const circuit_form *form, hg_array *steps,
                              uint32_t *temporaries) {
  scheduler s = {.allocator = allocator, .form = form, .steps = steps, .slot_count = CIRCUIT_CLASSES};
  s.has_memory = prepare(&s);
  if (s.has_memory) {
    for (uint32_t i = 0; i < form->terms.count; i++) compute(&s, i);
    mark_early(&s);
    move_contents(&s);
    copy_contents(&s);
    for (uint32_t c = 0; c < CIRCUIT_CLASSES; c++) bring_mask(&s, c, form->final[c].mask);
  }
  *temporaries = s.slot_count - CIRCUIT_CLASSES;
  hg_release(allocator, s.place);
  hg_release(allocator, s.slots);
  return s.has_memory ? HG_OK : hg_fail_memory("a circuit's canonical steps", steps->count * sizeof(circuit_step));
}
