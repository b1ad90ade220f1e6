/* code.c - loops of a list of instructions, by dominators: cold code that jumps back into a loop's body makes no loop
 * of its own. The hot loop is, of those that contain no other, the deepest of those that access buffers, where there is
 * one, else the deepest; of several the first. */
#include "code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const code_kind_names[CODE_KIND_COUNT] = {
#define KIND(id) #id,
#include "kinds.def"
#undef KIND
};

void *code_make(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (memory == NULL) {
    fprintf(stderr, "shapes: out of memory\n");
    exit(2);
  }
  return memory;
}

void *code_grow(void *items, size_t size, uint32_t count, uint32_t *capacity) {
  if (count < *capacity) return items;
  void *more = code_make(*capacity = 2 * count + 256, size);
  if (count > 0) memcpy(more, items, count * size);
  free(items);
  return more;
}

void code_begin(code *c) { *c = (code){.in_line = UINT32_MAX}; }
void code_release(code *c) { free(c->insns); }

code_insn *code_add(code *c, uint32_t does) {
  c->insns = code_grow(c->insns, sizeof *c->insns, c->count, &c->capacity);
  c->insns[c->count] = (code_insn){.does = does | DOES(insns), .target = CODE_NOWHERE};
  return &c->insns[c->count++];
}

/* ---- flow -------------------------------------------------------------------------------------------------------- */

typedef struct flow {
  const code *c;
  uint32_t count, root;    /* of instructions; a node above all that nothing leads to */
  uint32_t *order, *place; /* instructions in reverse postorder; 1 + where in it an instruction is, or the root's 0 */
  uint32_t reached;        /* instructions that something leads to */
  uint32_t *above;         /* per node: its immediate dominator */
  uint32_t *first, *next,
      *from; /* lists of predecessors: edges of an instruction by first and next, whence they come */
  uint32_t edges;
  uint32_t *depth; /* per instruction: loops it is in */
} flow;

static uint32_t successor(const flow *f, uint32_t i, int which) {
  const code_insn *insn = &f->c->insns[i];
  if (which == 1) return insn->target;
  return insn->ends || i + 1 == f->count ? CODE_NOWHERE : i + 1;
}

static void add_edge(flow *f, uint32_t from, uint32_t to) {
  f->from[f->edges] = from;
  f->next[f->edges] = f->first[to];
  f->first[to] = f->edges++;
}

/* What nothing leads to has the root's place, and is in no loop. */
static void number(flow *f) {
  uint32_t *stack = code_make(f->count, sizeof *stack), filled = f->count, height = 0;
  uint8_t *tried = code_make(f->count, 1); /* 1 + successors that were followed */
  for (uint32_t root = 0; root < f->count; root++) {
    if (root > 0 && !f->c->insns[root].is_entry) continue;
    add_edge(f, f->root, root);
    if (tried[root] == 0) tried[stack[height++] = root] = 1;
    while (height > 0) {
      uint32_t i = stack[height - 1];
      if (tried[i] == 3) {
        height--;
        f->order[--filled] = i;
        continue;
      }
      uint32_t to = successor(f, i, tried[i]++ - 1);
      if (to == CODE_NOWHERE) continue;
      add_edge(f, i, to);
      if (tried[to] == 0) tried[stack[height++] = to] = 1;
    }
  }
  f->reached = f->count - filled;
  memmove(f->order, f->order + filled, f->reached * sizeof *f->order);
  for (uint32_t k = 0; k < f->reached; k++) f->place[f->order[k]] = k + 1;
  free(stack);
  free(tried);
}

static uint32_t common(const flow *f, uint32_t a, uint32_t b) {
  while (a != b) {
    while (f->place[a] > f->place[b]) a = f->above[a];
    while (f->place[b] > f->place[a]) b = f->above[b];
  }
  return a;
}

static void find_dominators(flow *f) {
  for (uint32_t i = 0; i < f->count; i++) f->above[i] = CODE_NOWHERE;
  f->above[f->root] = f->root;
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t k = 0; k < f->reached; k++) {
      uint32_t i = f->order[k], best = CODE_NOWHERE;
      for (uint32_t e = f->first[i]; e != CODE_NOWHERE; e = f->next[e])
        if (f->above[f->from[e]] != CODE_NOWHERE)
          best = best == CODE_NOWHERE ? f->from[e] : common(f, best, f->from[e]);
      changed |= best != f->above[i];
      f->above[i] = best;
    }
  }
}

static int dominates(const flow *f, uint32_t above, uint32_t i) {
  while (f->place[i] > f->place[above]) i = f->above[i];
  return i == above;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

typedef struct loop {
  uint32_t header, end; /* end: behind the last jump back */
  uint8_t contains;     /* 1: another loop */
  uint8_t is_aside;     /* 1: it lies out of line of another, whose body it is in */
  uint8_t *body;        /* per instruction */
} loop;

static int is_back(const flow *f, uint32_t edge, uint32_t to) {
  return f->from[edge] != f->root && dominates(f, to, f->from[edge]);
}

static int is_header(const flow *f, uint32_t i) {
  for (uint32_t e = f->first[i]; e != CODE_NOWHERE; e = f->next[e])
    if (is_back(f, e, i)) return 1;
  return 0;
}

/* What leads to the jumps back without the header. */
static void find_body(const flow *f, loop *l) {
  uint32_t *stack = code_make(f->count, sizeof *stack), height = 0;
  l->body = code_make(f->count, 1);
  for (uint32_t e = f->first[l->header]; e != CODE_NOWHERE; e = f->next[e]) {
    uint32_t from = f->from[e];
    if (!is_back(f, e, l->header)) continue;
    if (from + 1 > l->end) l->end = from + 1;
    if (!l->body[from]) l->body[stack[height++] = from] = 1;
  }
  l->body[l->header] = 1;
  while (height > 0) {
    uint32_t i = stack[--height];
    if (i == l->header) continue;
    for (uint32_t e = f->first[i]; e != CODE_NOWHERE; e = f->next[e])
      if (!l->body[f->from[e]]) l->body[stack[height++] = f->from[e]] = 1;
  }
  free(stack);
}

static void add(code_counts *counts, const code_insn *insn) {
  for (int k = 0; k < CODE_KIND_COUNT; k++) counts->of[k] += insn->does >> k & 1;
}

/* Of the loop, without what lies out of line. */
static code_counts count_loop(const flow *f, const loop *l) {
  code_counts counts = {{0}};
  for (uint32_t i = l->header; i < l->end; i++)
    if (l->body[i]) add(&counts, &f->c->insns[i]);
  return counts;
}

/* 1: it may be the hot one. A few instructions that read nothing fill memory. */
static int may_be_hot(const flow *f, const loop *l, const code_counts *in) {
  enum { FEW = 8 };
  if (l->contains || l->is_aside || l->header >= f->c->in_line) return 0;
  return in->of[CODE_insns] >= FEW || in->of[CODE_loads] + in->of[CODE_shared_loads] > 0;
}

static int accesses(const code_counts *in) {
  return in->of[CODE_loads] + in->of[CODE_stores] + in->of[CODE_atomics] > 0;
}

static const loop *find_hot(const flow *f, loop *loops, uint32_t count) {
  const loop *hot = NULL;
  uint32_t most = 0;
  for (uint32_t a = 0; a < count; a++)
    for (uint32_t b = 0; b < count; b++) {
      int is_in_line = loops[b].header < loops[a].end, is_in = a != b && loops[a].body[loops[b].header];
      loops[a].contains |= is_in && is_in_line;
      loops[b].is_aside |= is_in && !is_in_line;
    }
  for (uint32_t k = 0; k < count; k++) {
    const code_counts in = count_loop(f, &loops[k]);
    if (!may_be_hot(f, &loops[k], &in)) continue;
    uint32_t heat = (uint32_t)accesses(&in) << 16 | f->depth[loops[k].header];
    if (heat > most) hot = &loops[k], most = heat;
  }
  return hot;
}

static void count_flow(flow *f, code_shape *shape) {
  loop *loops = code_make(f->count, sizeof *loops);
  number(f);
  find_dominators(f);
  for (uint32_t i = 0; i < f->count; i++) {
    if (!is_header(f, i)) continue;
    loop *l = &loops[shape->loops++];
    *l = (loop){.header = i};
    find_body(f, l);
    for (uint32_t k = 0; k < f->count; k++) f->depth[k] += l->body[k];
  }
  const loop *hot = find_hot(f, loops, shape->loops);
  if (hot != NULL) shape->hot = count_loop(f, hot);
  for (uint32_t i = 0; i < f->count; i++) {
    uint32_t depth = f->depth[i] < CODE_MOST_DEPTH ? f->depth[i] : CODE_MOST_DEPTH - 1;
    shape->depth[depth]++;
    if (depth > shape->deepest) shape->deepest = depth;
    add(&shape->all, &f->c->insns[i]);
    if (f->depth[i] == 0 && i < f->c->in_line) add(&shape->straight, &f->c->insns[i]);
  }
  for (uint32_t k = 0; k < shape->loops; k++) free(loops[k].body);
  free(loops);
}

void code_count(const code *c, code_shape *shape) {
  uint32_t n = c->count;
  memset(shape, 0, sizeof *shape);
  uint32_t *memory = code_make(13 * ((size_t)n + 1), sizeof *memory);
  flow f = {.c = c, .count = n, .root = n, .order = memory, .place = memory + n, .above = memory + 2 * n + 1};
  f.first = f.above + n + 1;
  f.next = f.first + n + 1;
  f.from = f.next + 3 * (size_t)n;
  f.depth = f.from + 3 * (size_t)n;
  for (uint32_t i = 0; i <= n; i++) f.first[i] = CODE_NOWHERE;
  count_flow(&f, shape);
  free(memory);
}
