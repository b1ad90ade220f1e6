/* tables.h - the rows of types.def, forms.def and ops.def as data, for everything inside the library. */
#ifndef HG_ATLAS_TABLES_H
#define HG_ATLAS_TABLES_H

#include "hologram/atlas.h"

typedef enum atlas_type_kind {
  ATLAS_KIND_NONE,
  ATLAS_KIND_SINT,
  ATLAS_KIND_UINT,
  ATLAS_KIND_FLOAT,
  ATLAS_KIND_STORAGE
} atlas_type_kind;

/* Flags of an instruction; meanings are in ops.def. */
enum {
  ATLAS_PURE = 1u << 0,
  ATLAS_COMMUTES = 1u << 1,
  ATLAS_PRIM = 1u << 2,
  ATLAS_FUNC = 1u << 3,
  ATLAS_LOAD = 1u << 4,
  ATLAS_STORE = 1u << 5,
  ATLAS_ATOMIC = 1u << 6,
  ATLAS_SPACE_GLOBAL = 1u << 7,
  ATLAS_SPACE_SHARED = 1u << 8,
  ATLAS_SPACE_CONST = 1u << 9,
  ATLAS_SPACE_POOL = 1u << 10,
  ATLAS_BLOCK = 1u << 11,
  ATLAS_GRID = 1u << 12,
  ATLAS_JUMP = 1u << 13,
  ATLAS_END = 1u << 14,
  ATLAS_SECOND = 1u << 15,
  ATLAS_BITS = 1u << 16,
  ATLAS_RULE = 1u << 17,
  ATLAS_SPACE_LOCAL = 1u << 18
};

typedef struct atlas_op_info {
  uint16_t op;
  uint32_t flags;
  uint32_t types;           /* bit t: the instruction exists for atlas_type t; 0: it is written without a type */
  const char *mnemonic;     /* "set.lt" */
  const char *operands;     /* a letter a slot, see forms.def */
  const char *syntax;       /* "pD, a, b" */
} atlas_op_info;

/* For atlas_insn.guard: @!p; the bits below are 1 + the number of p. */
enum { ATLAS_GUARD_NEGATED = 0x80, ATLAS_GUARD_PREDICATE = 0x7f };

/* 1 + the index of each instruction's row in atlas_ops, by the two bytes of its code; 0: no instruction. */
enum { ATLAS_OP_PAGES = 10, ATLAS_OP_PAGE_CODES = 64 };
extern const uint8_t atlas_op_rows[ATLAS_OP_PAGES][ATLAS_OP_PAGE_CODES];
extern const atlas_op_info atlas_ops[];

/* NULL for a number that is no instruction. Inline, because compilation asks it of every value many times. */
static inline const atlas_op_info *atlas_op_lookup(uint32_t op) {
  if (op >> 8 >= ATLAS_OP_PAGES || (op & 0xff) >= ATLAS_OP_PAGE_CODES) return NULL;
  uint32_t row = atlas_op_rows[op >> 8][op & 0xff];
  return row == 0 ? NULL : &atlas_ops[row - 1];
}

/* ATLAS_PURE and so on; 0 for a number that is no instruction. */
static inline uint32_t atlas_op_flags(uint32_t op) {
  const atlas_op_info *info = atlas_op_lookup(op);
  return info == NULL ? 0 : info->flags;
}

/* 1 for set.*: two sources of one type, a predicate out. */
static inline int atlas_is_comparison(uint32_t op) {
  const atlas_op_info *info = atlas_op_lookup(op);
  return info != NULL && info->operands[0] == 'p' && info->operands[1] == 's' && info->operands[2] == 's';
}

/* Mnemonics are looked up in a span, so that the parser need not copy. NULL if there is none. */
const atlas_op_info *atlas_op_lookup_name(const char *name, size_t length);
atlas_type atlas_type_lookup_name(const char *name, size_t length);

/* Inline for the same reason. A number that is no type has 0 bytes and no kind. */
extern const uint8_t atlas_bytes_of[ATLAS_TYPE_COUNT], atlas_kind_of[ATLAS_TYPE_COUNT];
#ifdef __clang_analyzer__ /* the analyzer would report a division by 0 bytes for numbers that are no type */
uint32_t atlas_bytes(atlas_type type);
#else
static inline uint32_t atlas_bytes(atlas_type type) {
  return (unsigned)type < ATLAS_TYPE_COUNT ? atlas_bytes_of[type] : 0;
}
#endif
static inline atlas_type_kind atlas_kind(atlas_type type) {
  return (unsigned)type < ATLAS_TYPE_COUNT ? (atlas_type_kind)atlas_kind_of[type] : ATLAS_KIND_NONE;
}
static inline int atlas_is_integer(atlas_type type) {
  return atlas_kind(type) == ATLAS_KIND_SINT || atlas_kind(type) == ATLAS_KIND_UINT;
}

static inline int atlas_is_float(atlas_type type) { return atlas_kind(type) == ATLAS_KIND_FLOAT; }
static inline int atlas_is_wide_float(atlas_type type) { return type == ATLAS_f32 || type == ATLAS_f64; }

/* The low bits of a type's width. */
uint64_t atlas_mask(atlas_type type);

/* Type of r0..r251: none. Of r252..r255: the fixed one of atlas.h. */
atlas_type atlas_special_type(uint32_t reg);

/* "lane.x", "block_size.y", ...; NULL past the end. */
const char *atlas_coord_name(uint32_t coord);

const char *atlas_access_name(uint32_t access); /* "in", "out", "inout"; NULL for anything else */

#endif
