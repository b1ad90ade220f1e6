/* tables.c - the X-macro tables of the ISA as data, and the public functions that look them up. */
#include "atlas/tables.h"

#include "atlas/type_sets.h"

#include <string.h>

/* Operand letters and syntax of a form. */
#define ATLAS_FORM(id, operands, syntax) static const char form_operands_##id[] = operands, form_syntax_##id[] = syntax;
#include "hologram/forms.def"
#undef ATLAS_FORM

/* ops.def writes flags without their prefix. */
enum {
  PURE = ATLAS_PURE, COMMUTES = ATLAS_COMMUTES, PRIM = ATLAS_PRIM, FUNC = ATLAS_FUNC, RULE = ATLAS_RULE,
  LOAD = ATLAS_LOAD, STORE = ATLAS_STORE, ATOMIC = ATLAS_ATOMIC, SPACE_GLOBAL = ATLAS_SPACE_GLOBAL,
  SPACE_SHARED = ATLAS_SPACE_SHARED, SPACE_LOCAL = ATLAS_SPACE_LOCAL, SPACE_CONST = ATLAS_SPACE_CONST,
  SPACE_POOL = ATLAS_SPACE_POOL, BLOCK = ATLAS_BLOCK, GRID = ATLAS_GRID, JUMP = ATLAS_JUMP, END = ATLAS_END,
  SECOND = ATLAS_SECOND, BITS = ATLAS_BITS
};

const atlas_op_info atlas_ops[] = {
#define ATLAS_OP(code, id, mnemonic, form, types, flags, meaning, example) \
  {code, flags, SET_##types, mnemonic, form_operands_##form, form_syntax_##form},
#include "hologram/ops.def"
#undef ATLAS_OP
};
enum { OP_COUNT = sizeof atlas_ops / sizeof atlas_ops[0] };

enum {
#define ATLAS_OP(code, id, mnemonic, form, types, flags, meaning, example) ROW_##id,
#include "hologram/ops.def"
#undef ATLAS_OP
};

/* A code used twice does not compile: its place would be initialised twice. */
const uint8_t atlas_op_rows[ATLAS_OP_PAGES][ATLAS_OP_PAGE_CODES] = {
#define ATLAS_OP(code, id, mnemonic, form, types, flags, meaning, example) [(code) >> 8][(code) & 0xff] = ROW_##id + 1,
#include "hologram/ops.def"
#undef ATLAS_OP
};

const atlas_op_info *atlas_op_lookup_name(const char *name, size_t length) {
  for (size_t i = 0; i < OP_COUNT; i++)
    if (length > 0 && atlas_ops[i].mnemonic[0] == name[0] && strncmp(atlas_ops[i].mnemonic, name, length) == 0 &&
        atlas_ops[i].mnemonic[length] == '\0')
      return &atlas_ops[i];
  return NULL;
}

static const char *const type_names[ATLAS_TYPE_COUNT] = {
    "none",
#define ATLAS_TYPE(code, id, bits, kind, note) [code] = #id,
#include "hologram/types.def"
#undef ATLAS_TYPE
};

const uint8_t atlas_bytes_of[ATLAS_TYPE_COUNT] = {
#define ATLAS_TYPE(code, id, bits, kind, note) [code] = (bits) / 8,
#include "hologram/types.def"
#undef ATLAS_TYPE
};

const uint8_t atlas_kind_of[ATLAS_TYPE_COUNT] = {
#define ATLAS_TYPE(code, id, bits, kind, note) [code] = ATLAS_KIND_##kind,
#include "hologram/types.def"
#undef ATLAS_TYPE
};

atlas_type atlas_type_lookup_name(const char *name, size_t length) {
  for (unsigned t = 1; t < ATLAS_TYPE_COUNT && length > 0; t++)
    if (type_names[t][0] == name[0] && strncmp(type_names[t], name, length) == 0 && type_names[t][length] == '\0')
      return (atlas_type)t;
  return ATLAS_NONE;
}

uint64_t atlas_mask(atlas_type type) {
  uint32_t bits = atlas_type_bits(type);
  return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

atlas_type atlas_special_type(uint32_t reg) {
  switch (reg) {
  case ATLAS_REG_BLOCK_LANE:
  case ATLAS_REG_BLOCK_INDEX:
  case ATLAS_REG_BLOCK_SIZE: return ATLAS_u32;
  case ATLAS_REG_LANE: return ATLAS_u64;
  default: return ATLAS_NONE;
  }
}

const char *atlas_coord_name(uint32_t coord) {
  static const char *const names[ATLAS_COORD_COUNT] = {"lane.x",       "lane.y",      "lane.z",       "block.x",
                                                       "block.y",      "block.z",     "block_size.x", "block_size.y",
                                                       "block_size.z", "grid_size.x", "grid_size.y",  "grid_size.z",
                                                       "global.x",     "global.y",    "global.z"};
  return coord < ATLAS_COORD_COUNT ? names[coord] : NULL;
}

const char *atlas_access_name(uint32_t access) {
  switch (access) {
  case ATLAS_IN: return "in";
  case ATLAS_OUT: return "out";
  case ATLAS_INOUT: return "inout";
  default: return NULL;
  }
}

const char *atlas_type_name(atlas_type type) {
  return type_names[(unsigned)type < ATLAS_TYPE_COUNT ? type : ATLAS_NONE];
}
uint32_t atlas_type_bits(atlas_type type) { return 8 * atlas_bytes(type); }
atlas_type atlas_type_from_name(const char *name) {
  return name != NULL ? atlas_type_lookup_name(name, strlen(name)) : ATLAS_NONE;
}

const char *atlas_op_name(atlas_op op) {
  const atlas_op_info *info = atlas_op_lookup((uint32_t)op);
  return info != NULL ? info->mnemonic : "none";
}

atlas_op atlas_op_from_name(const char *mnemonic) {
  const atlas_op_info *info = mnemonic != NULL ? atlas_op_lookup_name(mnemonic, strlen(mnemonic)) : NULL;
  return info != NULL ? (atlas_op)info->op : ATLAS_OP_none;
}

int atlas_op_has_type(atlas_op op, atlas_type type) {
  const atlas_op_info *info = atlas_op_lookup((uint32_t)op);
  if (info == NULL || (unsigned)type >= ATLAS_TYPE_COUNT) return 0;
  return type == ATLAS_NONE ? info->types == 0 : (int)(info->types >> type & 1);
}

size_t atlas_op_count(void) { return OP_COUNT; }

atlas_op atlas_op_at(size_t index) { return index < OP_COUNT ? (atlas_op)atlas_ops[index].op : ATLAS_OP_none; }
