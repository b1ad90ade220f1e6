/* parts.h - circuits over the 96 classes, on their way: text, nodes (parse.c), steps (expand.c), terms (terms.c),
 * steps again (schedule.c) and texts (print.c), an Atlas program (compile.c). The public side is circuit.c.
 *
 * A place is a class (below CIRCUIT_CLASSES) or a temporary (from there on). A value is the initial content of a class
 * (its number) or the result of an operation (CIRCUIT_CLASSES + its index). A content is a value, each byte of which is
 * exclusive-or'ed with a constant. */
#ifndef HG_CIRCUIT_PARTS_H
#define HG_CIRCUIT_PARTS_H

#include "base/error.h"
#include "base/memory.h"
#include "hologram/circuit.h"

#include <stdatomic.h>

enum { CIRCUIT_CLASSES = ATLAS_CLASS_COUNT, CIRCUIT_MOST_STEPS = HG_CIRCUIT_MOST_STEPS };
#define CIRCUIT_NONE UINT32_MAX

typedef enum circuit_generator {
#define GENERATOR(id, name, ranges, form) CIRCUIT_##id,
#include "circuit/generators.def"
#undef GENERATOR
  CIRCUIT_GENERATORS
} circuit_generator;

typedef enum circuit_operation {
#define OPERATION(id, name, generator, op, commutes) CIRCUIT_##id,
#include "circuit/generators.def"
#undef OPERATION
  CIRCUIT_OPERATIONS
} circuit_operation;

typedef struct circuit_operation_row {
  const char *name;
  uint8_t generator, commutes;
  uint16_t code; /* of the ISA */
} circuit_operation_row;
extern const circuit_operation_row hg_circuit_operations[CIRCUIT_OPERATIONS];

typedef enum circuit_law {
#define LAW(id, name, statement) LAW_##id,
#include "circuit/laws.def"
#undef LAW
  LAW_COUNT
} circuit_law;

/* A product of transforms: they commute, so the exponents are enough. */
typedef struct circuit_turn {
  uint8_t r, t, mirror; /* below 4, 8, 2 */
} circuit_turn;

static inline circuit_turn circuit_product(circuit_turn a, circuit_turn b) {
  return (circuit_turn){(uint8_t)((a.r + b.r) % 4), (uint8_t)((a.t + b.t) % 8), (uint8_t)(a.mirror ^ b.mirror)};
}

typedef enum circuit_node_kind { NODE_STEP, NODE_OPEN, NODE_CLOSE, NODE_SEQUENCE, NODE_PARALLEL } circuit_node_kind;

/* What stands in the text, from left to right. */
typedef struct circuit_node {
  uint8_t kind;
  uint8_t generator; /* of steps */
  uint8_t operation; /* of merge and split */
  uint8_t is_range;  /* 1: a..b are classes, or names */
  circuit_turn turn; /* of a step its transforms, of NODE_OPEN those before the group, of NODE_CLOSE those behind it */
  uint8_t has_arguments;
  uint32_t at;       /* its first byte, prefixes included */
  uint32_t a, b, c;  /* of steps: places; of NODE_OPEN: b: how many quotes stand in the group, but in none inside it; of
                        NODE_CLOSE: a: its NODE_OPEN */
} circuit_node;

typedef struct circuit_text {
  const hg_allocator *allocator;
  const char *source, *text;
  size_t length;
  hg_array nodes; /* circuit_node: the text as a whole is a group */
} circuit_text;

/* HG_PARSE with the place and a sentence. */
hg_status hg_circuit_fail(const circuit_text *text, size_t at, const char *format, ...) HG_PRINTF(3, 4);
hg_status hg_circuit_read(circuit_text *text); /* fills in the nodes */

typedef struct circuit_step {
  uint8_t generator; /* mark, copy, swap, merge, split; while circuits are expanded also quote: name a stands for b */
  uint8_t operation;
  uint32_t place[3]; /* mark 0; copy 0 to 1; swap 0 and 1; 2 = 0 op 1; quote: the name, and what it stands for */
  uint32_t node;     /* where it comes from */
} circuit_step;

/* What a circuit becomes without transforms, ranges, quotes and groups, in the order in which it runs. */
hg_status hg_circuit_expand(const circuit_text *text, hg_array *steps, uint64_t laws[LAW_COUNT]);

typedef struct circuit_content {
  uint32_t value;
  uint8_t mask;
} circuit_content;

typedef struct circuit_term {
  uint8_t operation;
  circuit_content x, y;
} circuit_term;

/* The canonical form: what each class holds in the end. Terms stand behind those that they use, in the order in which
 * the classes, from 0 on, first need them. */
typedef struct circuit_form {
  hg_array terms; /* circuit_term */
  circuit_content final[CIRCUIT_CLASSES];
} circuit_form;

static inline const circuit_term *circuit_term_at(const circuit_form *form, uint32_t index) {
  return (const circuit_term *)form->terms.data + index;
}
static inline int circuit_keeps(const circuit_form *form, uint32_t c) { /* 1: the class keeps its content */
  return form->final[c].value == c && form->final[c].mask == 0;
}

/* How many places a step has. */
static inline int circuit_place_count(const circuit_step *s) {
  return s->generator == CIRCUIT_MARK ? 1 : s->generator == CIRCUIT_COPY || s->generator == CIRCUIT_SWAP ? 2 : 3;
}

hg_status hg_circuit_terms_of(const circuit_text *text, const hg_array *steps, circuit_form *form,
                              uint64_t laws[LAW_COUNT]);
/* Steps that have this form; *temporaries is how many temporaries they take. */
hg_status hg_circuit_schedule(const hg_allocator *allocator, const circuit_form *form, hg_array *steps,
                              uint32_t *temporaries);

typedef struct circuit_name {
  char text[24];
} circuit_name;
circuit_name hg_circuit_place_name(uint32_t place); /* c05, t0 */
hg_status hg_circuit_print_steps(const hg_allocator *allocator, const hg_array *steps, hg_array *text);
hg_status hg_circuit_print_terms(const hg_allocator *allocator, const circuit_form *form, hg_array *text);

typedef struct circuit_layout {
  uint32_t components, lanes;
} circuit_layout;
hg_status hg_circuit_write_program(const hg_allocator *allocator, const circuit_form *form, circuit_layout *layout,
                                   atlas_program **out); /* out NULL: the layout alone */

struct hg_circuit {
  hg_allocator allocator;
  atomic_uint references;
  hg_array steps;     /* circuit_step: as written, expanded */
  hg_array canonical; /* circuit_step */
  circuit_form form;
  circuit_layout layout;
  uint32_t temporaries;
  uint64_t laws[LAW_COUNT];
  uint8_t hash[HG_CIRCUIT_HASH_BYTES];
};

#endif
