/* generator.h - what the parts of the generator share: generate.c (declarations, control flow), generate_insn.c
 * (instructions). */
#ifndef HG_TESTS_GENERATOR_H
#define HG_TESTS_GENERATOR_H

#include "atlas/insn.h"
#include "generate.h"

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
  uint8_t role[DRAFT_SYMBOLS];
  uint32_t planes[DRAFT_SYMBOLS];  /* elements a lane has in the symbol; of slots: those before the first lane's */
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
  ROLE_LOCAL
};

static inline uint32_t below(generator *g, uint32_t count) { return rng_below(&g->r, count); }
static inline int chance(generator *g, uint32_t percent) { return rng_chance(&g->r, percent); }
static inline int can_collect(const generator *g) { return g->collectives && g->level <= BLOCK; }

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

void random_insn(generator *g); /* one of any kind, or a few that belong together; no control flow */

#endif
