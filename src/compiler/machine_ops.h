/* machine_ops.h - the operations of machine_ops.def as numbers, and the cells that an engine has for them.
 *
 * A cell is what does an operation, then the types it does it for, then whatever else the engine keeps there: a list of
 * initialisers by the name CELL_<id>, or one for all of a kind. An engine's table is
 *
 *   #define CELL_add write_row, SET_INT_REAL
 *   ...
 *   #define KIND_ARITH(id, types) CELL_##id
 *   #define KIND_LOAD(id, types) write_load, SET_##types
 *   ...
 *   #define MACHINE(id, kind, types, narrow) [MACHINE_##id] = {.write = KIND_##kind(id, types)},
 *   static const cell cells[MACHINE_OP_COUNT] = {
 *   #include "compiler/machine_ops.def"
 *   };
 *   #define MACHINE(id, kind, types, narrow) MACHINE_HAS_CELL(id, SET_##types, KIND_##kind(id, types))
 *   #include "compiler/machine_ops.def"
 *
 * A row without a cell is a name that the compiler does not know; a type without one fails the second inclusion. */
#ifndef HG_COMPILER_MACHINE_OPS_H
#define HG_COMPILER_MACHINE_OPS_H

#include "atlas/tables.h"
#include "atlas/type_sets.h"
#include "ir/ssa.h"

#include <assert.h>

typedef enum machine_op {
  MACHINE_NO_OP,
#define MACHINE(id, kind, types, narrow) MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_op;

enum {
#define MACHINE(id, kind, types, narrow) +1
  MACHINE_OP_COUNT = 1
#include "compiler/machine_ops.def"
};

typedef enum machine_kind { /* a switch without a default over these has to name them all */
  MACHINE_NO_KIND,          /* not an operation of machines */
  MACHINE_ARITH,
  MACHINE_COMPARE,
  MACHINE_LOGIC,
  MACHINE_SELECT,
  MACHINE_CONVERT,
  MACHINE_CAST,
  MACHINE_PLACE,
  MACHINE_LOAD,
  MACHINE_STORE,
  MACHINE_ATOMIC,
  MACHINE_BLOCK,
  MACHINE_CLASS,
  MACHINE_ORDER,
  MACHINE_PHASE
} machine_kind;

typedef struct machine_row {
  uint8_t kind;   /* machine_kind */
  uint32_t types; /* 0: the operation is written without a type */
  uint32_t narrow;
} machine_row;

/* The operations of a kind: a switch without a default over them names them all, or does not compile. */
typedef enum machine_arith {
#define ARITH(id, types, narrow) ARITH_##id = MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_arith;

typedef enum machine_compare {
#define COMPARE(id, types) COMPARE_##id = MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_compare;

typedef enum machine_logic {
#define LOGIC(id, types) LOGIC_##id = MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_logic;

typedef enum machine_place {
#define PLACE(id, types) PLACE_##id = MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_place;

typedef enum machine_atomic {
#define ATOMIC(id, types) ATOMIC_##id = MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_atomic;

typedef enum machine_block {
#define BLOCK(id, types) BLOCK_##id = MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_block;

typedef enum machine_class {
#define CLASS(id, types) CLASS_##id = MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_class;

typedef enum machine_order {
#define ORDER(id, types) ORDER_##id = MACHINE_##id,
#include "compiler/machine_ops.def"
} machine_order;

extern const machine_row hg_machine_rows[MACHINE_OP_COUNT];
extern const uint8_t hg_machine_op_of[ATLAS_OP_PAGES][ATLAS_OP_PAGE_CODES];

/* Inline, because emitters call it for every instruction. */
static inline machine_op hg_machine_op(uint32_t op) {
  if (op >> 8 >= ATLAS_OP_PAGES || (op & 0xff) >= ATLAS_OP_PAGE_CODES) return MACHINE_NO_OP;
  return (machine_op)hg_machine_op_of[op >> 8][op & 0xff];
}

static inline machine_kind hg_machine_kind(uint32_t op) {
  return (machine_kind)hg_machine_rows[hg_machine_op(op)].kind;
}

/* HG_UNSUPPORTED, with its name, if an operation of the scheduled unit is not in the table for its type. Engines call
 * it before they begin: it costs next to nothing, and no engine has to guess. */
hg_status hg_check_machine_ops(const ssa_unit *unit);

/* At file scope: the cell (see above) has those types, no more and no less. */
#define MACHINE_HAS_CELL(id, expected, ...) MACHINE_CELL_TYPES(id, expected, __VA_ARGS__, 0)
#define MACHINE_CELL_TYPES(id, expected, does, has, ...) \
  static_assert((has) == (expected), #id ": not every type has a cell, or one has a cell that has no row");

/* The same if a third initialiser has the types that the engine leaves to others. */
#define MACHINE_HAS_CELL_OR_HELP(id, expected, ...) MACHINE_CELL_AND_HELP(id, expected, __VA_ARGS__, 0)
#define MACHINE_CELL_AND_HELP(id, expected, does, has, help, ...) \
  MACHINE_CELL_TYPES(id, expected, does, (has) | (help), 0)

#endif
