/* generator.h - what the parts of the generator share: generate.c (control flow), generate_insn.c (instructions),
 * declare.c (parameters, arrays and the launch), shape_values.c and shape_places.c (what shapes.def lists). */
#ifndef HG_TESTS_GENERATOR_H
#define HG_TESTS_GENERATOR_H

#include "atlas/insn.h"
#include "generate.h"
#include "shapes.h"

/* What each register holds here, on every path: 0 nothing sure; and how uniform it is. Predicates come behind the
 * registers. */
enum { REGISTERS = 252, PLACES = REGISTERS + ATLAS_PREDICATES, IS_PREDICATE = 0x40 };
enum { GRID, BLOCK, LANE }; /* levels of uniformity */

typedef struct env {
  uint8_t type[PLACES];
  uint8_t level[PLACES];
  int reachable;
} env;

enum { MAX_LOOPS = 4, MAX_CALLEES = 3, RECENT = 6 };

typedef struct loop_scope {
  env header;         /* what the body must keep */
  env exit, next;     /* what breaks and continues bring */
  uint32_t exit_label, next_label;
  int can_continue;
  int is_uniform;     /* all lanes of a block leave it together */
} loop_scope;

enum { FIRST_RESERVED = 60, END_RESERVED = 100, FIRST_CALLEE = 100, CALLEE_REGISTERS = 24 };

typedef struct generator {
  rng r;
  draft *d;
  test_launch *l;
  env now;
  uint8_t reserved[PLACES];  /* no destination of random instructions */
  uint32_t next_reserved;
  uint32_t main_end;         /* behind the last register of the program itself */
  uint32_t first, end;       /* registers that random instructions write */
  loop_scope loops[MAX_LOOPS];
  int loop_count;
  uint32_t trips;            /* product of the trip counts around here */
  int level;                 /* of control */
  int collectives;           /* 0: after a divergent exit */
  int in_callee;
  env ret;                   /* what early returns of a callee bring */
  atlas_type favourites[6];
  uint32_t favourite_count;
  uint32_t lane_registers[3], lane_register_count; /* hold the linear lane */
  uint8_t recent[RECENT];    /* registers written last */
  uint32_t recent_count;
  atlas_operand last_used[DRAFT_SYMBOLS]; /* address of an own element */
  uint16_t table;            /* 1 + symbol, or 0 */
  uint16_t hist_op[DRAFT_SYMBOLS]; /* the one atomic operation of shared counters */
  uint8_t hist_value[DRAFT_SYMBOLS], hist_compare[DRAFT_SYMBOLS]; /* what all exchange there */
  uint8_t role[DRAFT_SYMBOLS];
  uint32_t planes[DRAFT_SYMBOLS];  /* elements a lane has in the symbol; of slots and spread ones: those before the
                                    * first lane's */
  uint32_t stride[DRAFT_SYMBOLS];  /* of spread elements: from one lane's to the next one's */
  uint8_t stored[DRAFT_SYMBOLS];   /* local arrays: may hold something */
  uint32_t edge_back;              /* see ROLE_EDGE */
  int may_have_left;               /* lanes have ended, their block has not */
  int has_callee[MAX_CALLEES];
  uint32_t callee_label[MAX_CALLEES];
  env callee_end[MAX_CALLEES];
  int callee_collects[MAX_CALLEES];
} generator;

enum role {
  ROLE_NONE,
  ROLE_IN,
  ROLE_ELEMENT,
  ROLE_PLANES,
  ROLE_OUT,
  ROLE_ATOMIC,
  ROLE_SLOTS,
  ROLE_HIST,
  ROLE_POOL,
  ROLE_TABLE,
  ROLE_CONST,
  ROLE_LOCAL,
  ROLE_SPREAD, /* of a buffer: lane * stride + planes */
  ROLE_FAR,    /* of shared memory: lane in the block * stride + planes */
  ROLE_EDGE    /* of a buffer: element lane - edge_back, if there is one, by indices that pass a type's end */
};

static inline uint32_t below(generator *g, uint32_t count) { return rng_below(&g->r, count); }
static inline int chance(generator *g, uint32_t percent) { return rng_chance(&g->r, percent); }
static inline int can_collect(const generator *g) { return g->collectives && g->level <= BLOCK; }

static inline int has_shapes(const generator *g) { return g->r.generation >= WITH_SHAPES; }
static inline int has_edges(const generator *g) { return g->r.generation >= WITH_EDGES; }
static inline void mark(generator *g, enum shape shape) { g->d->shapes |= UINT64_C(1) << shape; }

/* ---- declare.c --------------------------------------------------------------------------------------------------- */

void choose_shape(generator *g);
void declare_all(generator *g);
void declare_planes(generator *g, enum role role, atlas_type type, uint8_t access, uint32_t planes);

/* Now and then something is bound to fewer bytes: none, a part of an element, about a vector. */
void shorten(generator *g);
/* Buffers that are reached only as [x + lane] may be bound to one range. */
void bind_in_place(generator *g);

/* ---- generate.c -------------------------------------------------------------------------------------------------- */

/* What stands between open_side and close_side runs where the predicate holds (or does not); behind other_side, where
 * it does not (or does). */
typedef struct side {
  env before, after;
  uint32_t end, otherwise;
  int level, has_other;
} side;

void open_side(generator *g, uint32_t predicate, int negated, side *s);
void other_side(generator *g, side *s);
void close_side(generator *g, side *s);

int may_loop(const generator *g); /* not too deep, not too often */

/* A body that runs a few times, some lanes more often than others unless it is uniform: 1 if it is open. What it
 * carries lies in registers that are reserved. */
typedef struct rounds {
  loop_scope *loop;
  uint32_t counter, header, outer, trips; /* at most */
  int level;
} rounds;

loop_scope *open_loop(generator *g, int is_uniform);
void close_loop(generator *g, loop_scope *loop, const env *last, int level); /* what holds where it ends by itself */
int open_rounds(generator *g, int wants_uniform, rounds *r);
void close_rounds(generator *g, rounds *r);

/* ---- shape_values.c, shape_places.c ------------------------------------------------------------------------------ */

void keep(generator *g, atlas_type type, uint32_t reg); /* where whoever compares sees it */
void accumulate(generator *g, atlas_type type, uint32_t sum, atlas_operand value); /* any type */
void shape_of_values(generator *g);
void shape_of_places(generator *g); /* one of its shapes, if it can stand here */

/* ---- generate_insn.c --------------------------------------------------------------------------------------------- */

/* Appends it and brings `now` up to date. */
void emit(generator *g, const atlas_insn *insn);
void emit_ops(generator *g, atlas_op op, atlas_type type, unsigned count, const atlas_operand *operands);
#define EMIT(g, op, type, ...)                                                                     \
  emit_ops(g, ATLAS_OP_##op, type, sizeof((atlas_operand[]){__VA_ARGS__}) / sizeof(atlas_operand), \
           (atlas_operand[]){__VA_ARGS__})
void emit_cvt(generator *g, atlas_type to, atlas_type from, atlas_operand destination, atlas_operand source);
void branch(generator *g, int predicate, int negated, uint32_t label); /* predicate < 0: always */

uint32_t reserve(generator *g); /* a register that nothing else writes; UINT32_MAX: none left */
int destination(generator *g, atlas_type type, atlas_operand *out);
int destination_predicate(generator *g, atlas_operand *out);
int any_register(generator *g, atlas_type type); /* -1: none holds the type */
atlas_type random_type(generator *g, uint32_t mask);
atlas_operand source(generator *g, atlas_type type);
atlas_operand register_source(generator *g, atlas_type type);
uint32_t any_predicate(generator *g); /* makes one where there is none */
uint32_t uniform_predicate(generator *g); /* the same in a block */
uint16_t symbol_with_role(generator *g, enum role role, atlas_type type); /* UINT16_MAX: none */
atlas_operand immediate(generator *g, atlas_type type);
int is_atomic_type(uint8_t type);
atlas_operand own_element(generator *g, uint16_t symbol); /* of a buffer: this lane's */
atlas_operand own_slot(const generator *g, uint16_t symbol); /* of shared memory, behind what no lane uses */
void count_up(generator *g, uint16_t symbol, atlas_operand address); /* by the operation of these shared counters */
uint32_t index_register(generator *g, uint32_t count); /* an integer, near the range of `count` elements */
void barrier(generator *g);
void one_collective(generator *g);
void exchange(generator *g);
void histogram(generator *g);
void pure_insn(generator *g);

void random_insn(generator *g); /* one of any kind, or a few that belong together; no control flow */

#endif
