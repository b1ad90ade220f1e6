/* expand.c - nodes to steps: transforms, ranges, quotes and groups are gone afterwards.
 *
 * The rightmost node runs first, so nodes are gone through from the last to the first. A group's NODE_CLOSE then comes
 * before what it holds and carries how many quotes stand in the group: what they quote begins there. */
#include "circuit/parts.h"

#include <string.h>

/* Places that are touched: a bit a class, and one for all temporaries. */
typedef struct place_set {
  uint64_t word[2];
} place_set;

/* A group, or what is around the text as a whole. */
typedef struct frame {
  circuit_turn turn; /* of all that is around its items */
  uint8_t beside;    /* 1: it, or what it stands in, is an operand of `||` */
  place_set item, operands; /* touched by the item so far, by the operands of its `||` before */
} frame;

/* A circuit that is kept under a name: some of the kept steps. */
typedef struct kept {
  uint32_t first, count;
} kept;

/* A quote whose circuit is being collected: where its steps begin, and what names stood for before it. */
typedef struct capture {
  size_t step;
  uint32_t names[CIRCUIT_CLASSES];
} capture;

typedef struct expander {
  const circuit_text *text;
  uint64_t *laws;
  hg_array *steps;
  hg_array frames, captures;
  hg_array kept;       /* kept; what a name stands for is 1 + an index, 0: nothing */
  hg_array kept_steps; /* circuit_step */
  uint32_t names[CIRCUIT_CLASSES];
} expander;

static const circuit_node *node_at(const expander *e, size_t i) {
  return (const circuit_node *)e->text->nodes.data + i;
}
static frame *top(const expander *e) { return (frame *)e->frames.data + e->frames.count - 1; }

static hg_status no_memory(const expander *e) {
  return hg_fail_memory("a circuit's steps", (e->steps->count + 1) * sizeof(circuit_step));
}

static void touch(place_set *set, uint32_t place) {
  uint32_t bit = place < CIRCUIT_CLASSES ? place : CIRCUIT_CLASSES;
  set->word[bit / 64] |= UINT64_C(1) << bit % 64;
}

static void unite(place_set *set, const place_set *other) {
  for (int w = 0; w < 2; w++) set->word[w] |= other->word[w];
}

/* The lowest place of both; CIRCUIT_NONE: none. */
static uint32_t common(const place_set *a, const place_set *b) {
  for (uint32_t bit = 0; bit <= CIRCUIT_CLASSES; bit++)
    if (a->word[bit / 64] & b->word[bit / 64] & UINT64_C(1) << bit % 64) return bit;
  return CIRCUIT_NONE;
}

/* An item is done, whose first node this is: no operand of the same `||` may have touched what it touches. The group is
 * an item of what it stands in, which touches the same. */
static hg_status end_item(expander *e, size_t first) {
  frame *f = top(e);
  uint32_t both = common(&f->item, &f->operands);
  if (both != CIRCUIT_NONE)
    return hg_circuit_fail(e->text, node_at(e, first)->at,
                           "this operand of '||' and one to its right touch %s; write '.' between them",
                           both == CIRCUIT_CLASSES ? "temporaries" : hg_circuit_place_name(both).text);
  unite(&f->operands, &f->item);
  unite(&f[-1].item, &f->item);
  f->item = (place_set){{0}};
  return HG_OK;
}

/* class = 24 * h2 + 8 * d + l: R adds to h2, T to l, ~ exchanges d = 1 and 2. A temporary is no class. */
static uint32_t turned(circuit_turn turn, uint32_t place) {
  if (place >= CIRCUIT_CLASSES) return place;
  uint32_t h2 = place / 24, d = place % 24 / 8, l = place % 8;
  if (turn.mirror && d != 0) d = 3 - d;
  return 24 * ((h2 + turn.r) % 4) + 8 * d + (l + turn.t) % 8;
}

static hg_status add_step(expander *e, circuit_turn turn, circuit_step step) {
  if (step.generator != CIRCUIT_QUOTE)
    for (int i = 0; i < circuit_place_count(&step); i++) {
      step.place[i] = turned(turn, step.place[i]);
      touch(&top(e)->item, step.place[i]);
    }
  if (e->steps->count == CIRCUIT_MOST_STEPS)
    return hg_circuit_fail(e->text, node_at(e, step.node)->at, "written out, the circuit has more than %d steps",
                           CIRCUIT_MOST_STEPS);
  if (!hg_array_has_room(e->text->allocator, e->steps)) return no_memory(e);
  ((circuit_step *)e->steps->data)[e->steps->count++] = step;
  return HG_OK;
}

/* A quote: its name stands for what it says from now on, up to where the circuit that is being quoted, if any, begins,
 * and again whenever that circuit runs. */
static hg_status name_it(expander *e, circuit_step step) {
  e->names[step.place[0]] = step.place[1];
  return e->captures.count > 0 ? add_step(e, (circuit_turn){0}, step) : HG_OK;
}

/* Takes the steps since the capture began away, and keeps them. */
static hg_status keep(expander *e, size_t i, uint32_t *what) {
  const capture *began = (const capture *)e->captures.data + --e->captures.count;
  kept k = {(uint32_t)e->kept_steps.count, (uint32_t)(e->steps->count - began->step)};
  const circuit_step *steps = k.count > 0 ? (const circuit_step *)e->steps->data + began->step : NULL;
  if (e->kept_steps.count + k.count > CIRCUIT_MOST_STEPS)
    return hg_circuit_fail(e->text, node_at(e, i)->at,
                           "written out, the circuits that are quoted have more than %d steps", CIRCUIT_MOST_STEPS);
  if ((k.count > 0 && hg_array_append(e->text->allocator, &e->kept_steps, steps, k.count) == NULL) ||
      hg_array_append(e->text->allocator, &e->kept, &k, 1) == NULL)
    return no_memory(e);
  e->steps->count = began->step;
  memcpy(e->names, began->names, sizeof e->names);
  *what = (uint32_t)e->kept.count;
  return HG_OK;
}

static hg_status quote(expander *e, size_t i, int beside) {
  const circuit_node *node = node_at(e, i);
  uint32_t what = 0;
  if (beside)
    return hg_circuit_fail(e->text, node->at,
                           "a quote cannot stand beside another item of '||'; write '.' between them");
  HG_TRY(keep(e, i, &what));
  frame *f = top(e);
  f->item = f->operands = f[-1].item = (place_set){{0}}; /* what is quoted does not run */
  for (uint32_t name = node->a; name <= (node->is_range ? node->b : node->a); name++)
    HG_TRY(name_it(e, (circuit_step){CIRCUIT_QUOTE, 0, {name, what, 0}, (uint32_t)i}));
  return HG_OK;
}

static hg_status evaluate(expander *e, size_t i, circuit_turn turn, int beside, uint32_t name) {
  if (e->names[name] == 0) return HG_OK;
  const kept k = ((const kept *)e->kept.data)[e->names[name] - 1];
  for (uint32_t s = 0; s < k.count; s++) {
    circuit_step step = ((const circuit_step *)e->kept_steps.data)[k.first + s];
    step.node = (uint32_t)i;
    if (step.generator == CIRCUIT_QUOTE && beside)
      return hg_circuit_fail(e->text, node_at(e, i)->at,
                             "what is evaluated here quotes another circuit: it cannot stand beside an item of '||'");
    if (step.generator == CIRCUIT_QUOTE) HG_TRY(name_it(e, step));
    else HG_TRY(add_step(e, turn, step));
  }
  return HG_OK;
}

/* 1: the item of these nodes is an operand of `||`. */
static int is_operand(const expander *e, size_t first, size_t last) {
  return (first > 0 && node_at(e, first - 1)->kind == NODE_PARALLEL) ||
         (last + 1 < e->text->nodes.count && node_at(e, last + 1)->kind == NODE_PARALLEL);
}

static hg_status expand_step(expander *e, size_t i) {
  const circuit_node *node = node_at(e, i);
  int beside = top(e)->beside || is_operand(e, i, i);
  circuit_turn turn = circuit_product(top(e)->turn, node->turn);
  uint32_t last = node->is_range ? node->b : node->a;
  e->laws[LAW_TRANSFORM] += turn.r != 0 || turn.t != 0 || turn.mirror != 0;
  if (node->is_range) e->laws[LAW_RANGE]++;
  if (node->generator == CIRCUIT_QUOTE) return quote(e, i, beside);
  if (node->generator == CIRCUIT_EVALUATE) e->laws[LAW_EVALUATE]++;
  if (node->generator == CIRCUIT_MERGE && !node->has_arguments) return e->laws[LAW_EMPTY_MERGE]++, HG_OK;
  for (uint32_t c = last + 1; c-- > node->a;) { /* a range's classes, as if with || between them */
    const circuit_step step = {node->generator, node->operation, {c, node->b, node->c}, (uint32_t)i};
    if (node->generator == CIRCUIT_EVALUATE) HG_TRY(evaluate(e, i, turn, beside || node->is_range, c));
    else HG_TRY(add_step(e, turn, step));
    if (node->is_range && c > node->a) HG_TRY(end_item(e, i));
  }
  return HG_OK;
}

static hg_status open_group(expander *e, size_t close) {
  const circuit_node *node = node_at(e, close), *open = node_at(e, node->a);
  frame inner = {.turn = circuit_product(top(e)->turn, circuit_product(node->turn, open->turn)),
                 .beside = top(e)->beside || is_operand(e, node->a, close)};
  capture here = {.step = e->steps->count};
  if (hg_array_append(e->text->allocator, &e->frames, &inner, 1) == NULL) return no_memory(e);
  memcpy(here.names, e->names, sizeof here.names);
  for (uint32_t quotes = 0; quotes < open->b; quotes++)
    if (hg_array_append(e->text->allocator, &e->captures, &here, 1) == NULL) return no_memory(e);
  return HG_OK;
}

static hg_status expand_node(expander *e, size_t i) {
  uint8_t kind = node_at(e, i)->kind;
  if (kind == NODE_CLOSE) return open_group(e, i);
  if (kind == NODE_STEP) return expand_step(e, i);
  HG_TRY(end_item(e, i + 1));
  if (kind == NODE_SEQUENCE) top(e)->operands = (place_set){{0}};
  if (kind == NODE_OPEN) e->frames.count--;
  return HG_OK;
}

static hg_status expand_all(expander *e) {
  if (hg_array_append(e->text->allocator, &e->frames, NULL, 1) == NULL) return no_memory(e);
  for (size_t i = e->text->nodes.count; i-- > 0;) HG_TRY(expand_node(e, i));
  return HG_OK;
}

hg_status hg_circuit_expand(const circuit_text *text, hg_array *steps, uint64_t laws[LAW_COUNT]) {
  expander e = {.text = text, .laws = laws, .steps = steps,
                .frames = {.element_size = sizeof(frame)}, .captures = {.element_size = sizeof(capture)},
                .kept = {.element_size = sizeof(kept)}, .kept_steps = {.element_size = sizeof(circuit_step)}};
  hg_status status = expand_all(&e);
  hg_array *const arrays[] = {&e.frames, &e.captures, &e.kept, &e.kept_steps};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) hg_array_release(text->allocator, arrays[i]);
  return status;
}
