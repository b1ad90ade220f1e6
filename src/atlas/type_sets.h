/* type_sets.h - sets of types, as ops.def and machine_ops.def name them: bit t is there for atlas_type t. */
#ifndef HG_ATLAS_TYPE_SETS_H
#define HG_ATLAS_TYPE_SETS_H

enum {
#define ATLAS_TYPE(code, id, bits, kind, note) SET_##id = 1u << code,
#include "hologram/types.def"
#undef ATLAS_TYPE
  SET_SINT = SET_i8 | SET_i16 | SET_i32 | SET_i64,
  SET_UINT = SET_u8 | SET_u16 | SET_u32 | SET_u64,
  SET_INT = SET_SINT | SET_UINT,
  SET_HALF = SET_f16 | SET_bf16,
  SET_REAL = SET_f32 | SET_f64,
  SET_FLOAT = SET_HALF | SET_REAL,
  SET_SIGNED = SET_SINT | SET_FLOAT,
  SET_SINT_REAL = SET_SINT | SET_REAL,
  SET_INT_REAL = SET_INT | SET_REAL,
  SET_NUM = SET_INT | SET_FLOAT,
  SET_ANY = SET_NUM | SET_f8e4m3 | SET_f8e5m2 | SET_bool,
  SET_ATOM = SET_i32 | SET_u32 | SET_i64 | SET_u64,
  SET_U32 = SET_u32,
  SET_U64 = SET_u64,
  SET_I64 = SET_i64,
  SET_I32_U32 = SET_i32 | SET_u32,
  SET_U32_U64 = SET_u32 | SET_u64,
  SET_NONE = 0
};

#endif
