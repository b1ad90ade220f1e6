/* atlas.h - the Atlas ISA: programs as data, their text and binary forms, and the verifier.
 *
 * A program is a list of instructions over virtual registers, run once per lane. Build one with a builder, parse one
 * from text, or decode one from bytes; all three end in an immutable atlas_program that has been verified. The manual
 * of the instructions is docs/isa.md, generated from ops.def.
 *
 *   atlas_program *program = NULL;
 *   if (atlas_parse(NULL, text, strlen(text), "saxpy.atlas", &program) != HG_OK)
 *     fprintf(stderr, "%s\n", hg_last_error());     // saxpy.atlas:7:19: 'fma' needs 4 operands, got 3
 *   atlas_program_release(program);
 *
 * Threads: a builder belongs to one thread at a time; a program may be used by any number of threads at once. */
#ifndef HOLOGRAM_ATLAS_H
#define HOLOGRAM_ATLAS_H

#include "hologram/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ATLAS_ISA_VERSION 1
#define ATLAS_BINARY_VERSION 1
#define ATLAS_NUMERICS_VERSION 1

/* Limits of the architecture. */
#define ATLAS_MAX_BUFFERS 24
#define ATLAS_MAX_SCALARS 64
#define ATLAS_MAX_TABLE_ENTRIES 65536
#define ATLAS_MAX_POOLS 4
#define ATLAS_MAX_SYMBOLS 256
#define ATLAS_MAX_SHARED_BYTES 232448  /* of a block; a device with less refuses kernels that need more */
#define ATLAS_MAX_LOCAL_BYTES 4096     /* of one lane */
#define ATLAS_MAX_CONST_BYTES 65536    /* one constant table */
#define ATLAS_MAX_BLOCK_LANES 1024
#define ATLAS_MAX_CALL_DEPTH 256
#define ATLAS_MAX_INSTRUCTIONS 1048576 /* as written, and after inlining calls */
#define ATLAS_MAX_NAME 63              /* bytes: [A-Za-z_][A-Za-z0-9_]* */

#define ATLAS_GENERAL_REGISTERS 252 /* r0..r251 */
#define ATLAS_PREDICATES 16         /* p0..p15 */
enum {
  ATLAS_REG_BLOCK_LANE = 252, /* u32: linear lane in the block, x fastest   text: blane */
  ATLAS_REG_BLOCK_INDEX = 253, /* u32: block index, x dimension              text: r253 */
  ATLAS_REG_BLOCK_SIZE = 254, /* u32: block size, x dimension               text: r254 */
  ATLAS_REG_LANE = 255        /* u64: linear lane in the grid, x fastest    text: lane */
};

typedef enum atlas_type {
  ATLAS_NONE = 0,
#define ATLAS_TYPE(code, id, bits, kind, note) ATLAS_##id = code,
#include "hologram/types.def"
#undef ATLAS_TYPE
  ATLAS_TYPE_COUNT
} atlas_type;

typedef enum atlas_op {
  ATLAS_OP_none = 0,
#define ATLAS_OP(code, id, mnemonic, form, types, flags, meaning, example) ATLAS_OP_##id = code,
#include "hologram/ops.def"
#undef ATLAS_OP
} atlas_op;

typedef enum atlas_access { ATLAS_IN = 1, ATLAS_OUT = 2, ATLAS_INOUT = 3 } atlas_access;

/* What a name in a program stands for. */
typedef enum atlas_symbol_kind {
  ATLAS_SYMBOL_BUFFER = 1, /* .buffer name type in|out|inout       a parameter: elements in memory */
  ATLAS_SYMBOL_SCALAR = 2, /* .scalar name type                    a parameter: one value */
  ATLAS_SYMBOL_SHARED = 3, /* .shared name type count              memory of the block */
  ATLAS_SYMBOL_CONST = 4,  /* .const  name type { #v, #v, ... }    a table in the program */
  ATLAS_SYMBOL_TABLE = 5,  /* .table  name count in|out|inout      a parameter: count u8 buffers chosen at run time */
  ATLAS_SYMBOL_POOL = 6,   /* .pool   name                         a parameter: a pool region, in bytes */
  ATLAS_SYMBOL_LOCAL = 7   /* .local  name type count              memory of the lane */
} atlas_symbol_kind;

typedef struct atlas_symbol {
  char name[ATLAS_MAX_NAME + 1];
  uint8_t kind;   /* atlas_symbol_kind */
  uint8_t type;   /* atlas_type of its elements; u8 for tables and pools */
  uint8_t access; /* atlas_access of buffers, tables and pools */
  uint8_t reserved;
  uint32_t count;        /* elements of shared or local memory or of a constant table; entries of a buffer table */
  uint32_t
      const_offset; /* first byte of a constant table in the program's constants (see atlas_program_constants) */
  uint64_t handle;       /* buffer bound by default (hg_buffer_handle); 0: none */
} atlas_symbol;

typedef enum atlas_operand_kind {
  ATLAS_OPERAND_NONE = 0,  /* `_`: a discarded result */
  ATLAS_OPERAND_REG = 1,   /* reg */
  ATLAS_OPERAND_PRED = 2,  /* reg */
  ATLAS_OPERAND_IMM = 3,   /* bits: low bits of the instruction's type, zero above (integers of any sign too) */
  ATLAS_OPERAND_SCALAR = 4,/* symbol: a scalar parameter */
  ATLAS_OPERAND_LABEL = 5, /* bits: label index */
  ATLAS_OPERAND_COORD = 6, /* bits: atlas_coord */
  ATLAS_OPERAND_POOL = 7,  /* symbol: a pool */
  ATLAS_OPERAND_MEM = 8,   /* an address: mode, symbol, reg, reg2, bits */
  ATLAS_OPERAND_BUFFER = 9 /* symbol: the buffer of `len` */
} atlas_operand_kind;

typedef enum atlas_address_mode {
  ATLAS_ADDRESS_UNIFORM = 0, /* [symbol + #bits]                                             */
  ATLAS_ADDRESS_INDEXED = 1, /* [symbol + reg + #bits]; reg = ATLAS_REG_LANE is [symbol + lane] */
  ATLAS_ADDRESS_PHI = 2,     /* [phi class, page, byte]                                      */
  ATLAS_ADDRESS_TABLE = 3    /* [reg : reg2]: entry and byte offset in the program's table   */
} atlas_address_mode;

typedef enum atlas_coord {
  ATLAS_COORD_LANE_X, ATLAS_COORD_LANE_Y, ATLAS_COORD_LANE_Z,
  ATLAS_COORD_BLOCK_X, ATLAS_COORD_BLOCK_Y, ATLAS_COORD_BLOCK_Z,
  ATLAS_COORD_BLOCK_SIZE_X, ATLAS_COORD_BLOCK_SIZE_Y, ATLAS_COORD_BLOCK_SIZE_Z,
  ATLAS_COORD_GRID_SIZE_X, ATLAS_COORD_GRID_SIZE_Y, ATLAS_COORD_GRID_SIZE_Z,
  ATLAS_COORD_GLOBAL_X, ATLAS_COORD_GLOBAL_Y, ATLAS_COORD_GLOBAL_Z,
  ATLAS_COORD_COUNT
} atlas_coord;

/* One operand. Build it with the atlas_* helpers below; unused fields are zero.
 * The displacement of an address (`bits`) is a signed count of elements (bytes for pools and tables).
 * A [phi class, page, byte] address holds its three parts in reg, reg2, reg3 where phi_registers has bit 0, 1, 2 set,
 * else as constants in `bits`: class in bits 0..15, page in 16..31, byte in 32..63. */
typedef struct atlas_operand {
  uint8_t kind;          /* atlas_operand_kind */
  uint8_t mode;          /* atlas_address_mode */
  uint8_t reg;
  uint8_t reg2;
  uint8_t reg3;
  uint8_t phi_registers;
  uint16_t symbol;
  uint64_t bits;
} atlas_operand;

#define ATLAS_MAX_OPERANDS 4

typedef struct atlas_insn {
  uint16_t op;    /* atlas_op */
  uint8_t type;   /* atlas_type; the destination's of cvt and bitcast; ATLAS_NONE where the form has none */
  uint8_t type2;  /* source type of cvt and bitcast */
  uint8_t guard;  /* of bra: 0 none, 1 + p for @p, 0x80 | (1 + p) for @!p */
  uint8_t operand_count;
  uint16_t reserved;
  uint32_t line;  /* 1-based line of its text; 0: it has none */
  uint32_t reserved2;
  atlas_operand operand[ATLAS_MAX_OPERANDS];
} atlas_insn;

typedef struct atlas_label {
  char name[ATLAS_MAX_NAME + 1];
  uint32_t target; /* instruction index */
} atlas_label;

/* ---- facts about types and instructions (from types.def, ops.def, forms.def) ------------------------------------- */

HG_API const char *atlas_type_name(atlas_type type);           /* "f32"; "none" for anything that is not a type */
HG_API uint32_t atlas_type_bits(atlas_type type);              /* 8, 16, 32 or 64; 0 for ATLAS_NONE */
HG_API atlas_type atlas_type_from_name(const char *name);      /* ATLAS_NONE if there is no such type */
HG_API const char *atlas_op_name(atlas_op op); /* mnemonic: "reduce.add"; "none" if there is no such op */
HG_API atlas_op atlas_op_from_name(const char *mnemonic);      /* ATLAS_OP_none if there is no such mnemonic */
HG_API int atlas_op_has_type(atlas_op op, atlas_type type);    /* 1 if the instruction exists for the type */
HG_API size_t atlas_op_count(void);
HG_API atlas_op atlas_op_at(size_t index);                     /* in table order */

/* ---- programs ---------------------------------------------------------------------------------------------------- */

typedef struct atlas_program atlas_program;

/* Parses text (`length` bytes, not necessarily NUL-terminated) and verifies it. Errors call it `source_name`; NULL:
 * "program". HG_PARSE with line and column and what was expected; HG_VERIFY with line, instruction and reason;
 * HG_OUT_OF_MEMORY. */
HG_API hg_status atlas_parse(const hg_allocator *allocator, const char *text, size_t length, const char *source_name,
                             atlas_program **out);

/* Decodes a binary program and verifies it: nothing in the bytes is trusted. HG_FORMAT, HG_VERIFY, HG_OUT_OF_MEMORY. */
HG_API hg_status atlas_decode(const hg_allocator *allocator, const void *bytes, size_t length, atlas_program **out);

/* The text form: parsing it gives an equal program. On success *text is NUL-terminated, *length bytes without the NUL
 * (length may be NULL); release it with atlas_memory_release and the same allocator. */
HG_API hg_status atlas_print(const hg_allocator *allocator, const atlas_program *program, char **text, size_t *length);

/* The binary form: little-endian, versioned, checksummed; decoding it gives an equal program. Release as above. */
HG_API hg_status atlas_encode(const hg_allocator *allocator, const atlas_program *program, void **bytes,
                              size_t *length);

HG_API void atlas_memory_release(const hg_allocator *allocator, void *memory);

/* Programs are reference-counted; parse, decode and build return one reference. */
HG_API atlas_program *atlas_program_retain(atlas_program *program);
HG_API void atlas_program_release(atlas_program *program);

/* Queries of a program. NULL gives "", NULL with a count of 0, or 0. Pass NULL for a count that you do not need. */
HG_API const char *atlas_program_name(const atlas_program *program);
HG_API const atlas_insn *atlas_program_insns(const atlas_program *program, size_t *count);
HG_API const atlas_symbol *atlas_program_symbols(const atlas_program *program, size_t *count);
HG_API const atlas_label *atlas_program_labels(const atlas_program *program, size_t *count);
HG_API const uint8_t *atlas_program_constants(const atlas_program *program, size_t *byte_count); /* little-endian */
HG_API void atlas_program_block(const atlas_program *program, uint32_t block[3]); /* required size; 0,0,0: any */
/* The block size of launches that give none (.block x, y, z default); 0,0,0: there is none. */
HG_API void atlas_program_default_block(const atlas_program *program, uint32_t block[3]);
/* 1: uses shared memory, barriers, collectives or block coordinates */
HG_API int atlas_program_observes_block(const atlas_program *program);
/* 1: holds .entry functions and cannot be launched */
HG_API int atlas_program_is_library(const atlas_program *program);

/* ---- identity -----------------------------------------------------------------------------------------------------
 * The canonical form of a program keeps what it computes and drops how it was written: names, labels, comments,
 * register numbers, the order of independent instructions, the operand order of commutative ones, dead code and
 * repeated pure computation. Two programs with equal canonical forms have one hash and give the same bits for every
 * input. */
#define ATLAS_CANON_VERSION 1
#define ATLAS_HASH_BYTES 32

/* SHA-256 of the canonical form and of the ISA, canonical and numerics versions. HG_INVALID_ARGUMENT for a library;
 * HG_OUT_OF_MEMORY. */
HG_API hg_status atlas_program_hash(const atlas_program *program, uint8_t digest[ATLAS_HASH_BYTES]);

/* The canonical form as a program: atlas_print prints it as the program's canonical text. It has the hash of the
 * program it is made from, and is its own canonical form, so programs with one hash and equal names have one canonical
 * text. Names of the program and its parameters, default bindings and block size are kept; lines are 0, calls are
 * inlined. HG_UNSUPPORTED if more values are live at once than there are registers (252) or predicates (16):
 * atlas_print_ssa shows it then. HG_INVALID_ARGUMENT for a library; HG_OUT_OF_MEMORY. */
HG_API hg_status atlas_canonicalise(const hg_allocator *allocator, const atlas_program *program, atlas_program **out);

/* The canonical form in SSA, with numbered parameters: equal for programs with one hash. atlas_print_ssa: with the
 * program's own parameter names. Release the text with atlas_memory_release and the same allocator. */
HG_API hg_status atlas_print_canonical(const hg_allocator *allocator, const atlas_program *program, char **text,
                                       size_t *length);
HG_API hg_status atlas_print_ssa(const hg_allocator *allocator, const atlas_program *program, char **text,
                                 size_t *length);

/* ---- builder --------------------------------------------------------------------------------------------------------
 * Errors are remembered: after the first one every call does nothing, and atlas_builder_finish reports it. So a program
 * can be written without checking each line:
 *
 *   atlas_builder *b = NULL;
 *   atlas_builder_create(NULL, "double", &b);
 *   uint16_t x = atlas_builder_buffer(b, "x", ATLAS_f32, ATLAS_INOUT);
 *   atlas_emit(b, ATLAS_OP_ldg, ATLAS_f32, 2, atlas_reg(0), atlas_mem_lane(x, 0));
 *   atlas_emit(b, ATLAS_OP_add, ATLAS_f32, 3, atlas_reg(0), atlas_reg(0), atlas_reg(0));
 *   atlas_emit(b, ATLAS_OP_stg, ATLAS_f32, 2, atlas_mem_lane(x, 0), atlas_reg(0));
 *   atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
 *   hg_status status = atlas_builder_finish(b, &program);   // releases b, whatever it returns */

typedef struct atlas_builder atlas_builder;

HG_API hg_status atlas_builder_create(const hg_allocator *allocator, const char *program_name, atlas_builder **out);
HG_API void atlas_builder_release(atlas_builder *builder); /* drops an unfinished program */
HG_API hg_status atlas_builder_finish(atlas_builder *builder, atlas_program **out);

/* Declarations return a symbol index for addresses and operands. */
HG_API uint16_t atlas_builder_buffer(atlas_builder *builder, const char *name, atlas_type type, atlas_access access);
HG_API uint16_t atlas_builder_scalar(atlas_builder *builder, const char *name, atlas_type type);
HG_API uint16_t atlas_builder_shared(atlas_builder *builder, const char *name, atlas_type type, uint32_t count);
HG_API uint16_t atlas_builder_local(atlas_builder *builder, const char *name, atlas_type type, uint32_t count);
HG_API uint16_t atlas_builder_const(atlas_builder *builder, const char *name, atlas_type type, uint32_t count,
                                    const void *values);
HG_API uint16_t atlas_builder_table(atlas_builder *builder, const char *name, uint32_t count, atlas_access access);
HG_API uint16_t atlas_builder_pool(atlas_builder *builder, const char *name);
/* The block size that every launch must have; or the default of launches that give none. A program has one of the
 * two. */
HG_API void atlas_builder_block(atlas_builder *builder, uint32_t x, uint32_t y, uint32_t z);
HG_API void atlas_builder_default_block(atlas_builder *builder, uint32_t x, uint32_t y, uint32_t z);

/* A buffer known by its handle (hg_buffer_handle) rather than by name: it becomes a parameter, named "h<handle>", that
 * is bound to that buffer unless the launch says otherwise. Asking again for the same handle and type gives the same
 * symbol with both accesses. */
HG_API uint16_t atlas_builder_handle(atlas_builder *builder, uint64_t handle, atlas_type type, atlas_access access);

/* The BufferOffset address of Hologram SDK 0.1: buffer `handle`, `byte_offset` bytes in, each lane its own element.
 * The offset must be a multiple of the element size. */
HG_API atlas_operand atlas_builder_buffer_offset(atlas_builder *builder, uint64_t handle, atlas_type type,
                                                 atlas_access access, uint64_t byte_offset);

HG_API uint32_t atlas_builder_label(atlas_builder *builder,
                                    const char *name); /* not placed yet; NULL name: generated */
HG_API void atlas_builder_place(atlas_builder *builder, uint32_t label);       /* here */
HG_API void atlas_builder_line(atlas_builder *builder, uint32_t line);         /* of the following instructions */
/* Appends an instruction in full, with guard and line; the functions below are shorter. */
HG_API void atlas_builder_insn(atlas_builder *builder, const atlas_insn *insn);
/* `type2` is the source type of cvt and bitcast, else ATLAS_NONE. */
HG_API void atlas_emit_operands(atlas_builder *builder, atlas_op op, atlas_type type, atlas_type type2,
                                const atlas_operand *operands, size_t operand_count);
/* With `operand_count` operands of type atlas_operand, for C. For cvt and bitcast use atlas_emit2. */
HG_API void atlas_emit(atlas_builder *builder, atlas_op op, atlas_type type, int operand_count, ...);
HG_API void atlas_emit2(atlas_builder *builder, atlas_op op, atlas_type to, atlas_type from, atlas_operand destination,
                        atlas_operand source);
HG_API void atlas_emit_branch(atlas_builder *builder, int predicate, int negated,
                              uint32_t label); /* predicate < 0: always */

HG_API atlas_operand atlas_reg(uint32_t number);
HG_API atlas_operand atlas_pred(uint32_t number);
HG_API atlas_operand atlas_discard(void);
HG_API atlas_operand atlas_bits(uint64_t bits); /* a constant by its bits */
HG_API atlas_operand atlas_f32_const(float value);
HG_API atlas_operand atlas_f64_const(double value);
HG_API atlas_operand atlas_int_const(atlas_type type, int64_t value); /* wrapped to the type */
HG_API atlas_operand atlas_scalar(uint16_t symbol);
HG_API atlas_operand atlas_pool(uint16_t symbol);
HG_API atlas_operand atlas_buffer(uint16_t symbol); /* of `len` */
HG_API atlas_operand atlas_label_ref(uint32_t label);
HG_API atlas_operand atlas_coordinate(atlas_coord coord);
HG_API atlas_operand atlas_mem(uint16_t symbol, int64_t displacement);                      /* [symbol + #d]        */
HG_API atlas_operand atlas_mem_lane(uint16_t symbol, int64_t displacement);                 /* [symbol + lane + #d] */
HG_API atlas_operand atlas_mem_reg(uint16_t symbol, uint32_t reg, int64_t displacement);    /* [symbol + rN + #d]   */
HG_API atlas_operand atlas_mem_phi(uint32_t class_index, uint32_t page, uint32_t byte);     /* [phi c, p, b]        */
HG_API atlas_operand atlas_mem_phi_reg(uint32_t class_reg, uint32_t page_reg, uint32_t byte_reg); /* [phi rC, rP, rB] */
HG_API atlas_operand atlas_mem_table(uint16_t symbol, uint32_t entry_reg, uint32_t offset_reg);   /* [rH : rOff]      */

#ifdef __cplusplus
}
#endif
#endif
