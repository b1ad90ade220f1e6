/* ptx.h - the inside of the PTX emitter, shared by its files: text, registers, operands.
 *
 * Where values lie: predicates in .pred registers (%p), f16 and bf16 in .b16 (%h), other types of at most 32 bits in
 * .b32 (%r), the rest in .b64 (%d). i8 and i16 are kept sign-extended, u8, u16 and the storage types zero-extended, so
 * that 32-bit instructions work on them; what can leave the range is brought back at once.
 *
 * NaN: an arithmetic result that is NaN need not be the canonical one ("loose") until its bits are used; NVIDIA's is
 * 0x7fffffff, or 0x7fff in 16 bits. hg_ptx_exact gives the bits that the ISA asks for.
 *
 * Circle: convert text: a value that is kept narrow is converted where it is named.
 * Circle: group memory vector: an access is done alone, with its neighbours, or for all lanes of a thread; each way
 * falls back on another. */
#ifndef HG_PTX_H
#define HG_PTX_H

#include "backend/cuda/ptx/emit_ptx.h"
#include "ir/ssa_order.h"

/* A register, a constant or a label as text. */
typedef struct ptx_name {
  char text[28];
} ptx_name;

typedef enum ptx_class { PTX_PREDICATE, PTX_16, PTX_32, PTX_64, PTX_CLASS_COUNT } ptx_class;

#define PTX_PHI (HG_PTX_NO_SYMBOL - 1) /* as the symbol of a fault: the boundary pool */

/* What bits a NaN of a value may have: the canonical ones; those of arithmetic in f32, which are 0x7fffffff; any that
 * mean nothing; the ISA's own, payload and all. In this order, a choice among values has the most of theirs. */
typedef enum ptx_nan { PTX_NAN_CANONICAL, PTX_NAN_POSITIVE, PTX_NAN_LOOSE, PTX_NAN_KEPT } ptx_nan;

/* What an access that lies in the vector part of a tile is turned into. */
typedef enum ptx_access { PTX_CHECKED, PTX_PLAIN, PTX_VECTOR } ptx_access;

typedef struct ptx_fault_site {
  uint32_t insn, symbol, code;
  uint8_t kind, index_type;
  int64_t displacement;
  ptx_name index, extent; /* 64-bit operands */
} ptx_fault_site;

/* Faults of accesses that were left out, noted together a little later. */
enum { PTX_PENDING = 8, PTX_MAX_GROUP = 32 };
typedef struct ptx_pending {
  ptx_name failed;
  ptx_fault_site site;
} ptx_pending;

/* An access for all lanes of a thread, of at most 16 bytes: its words, as they are in memory, and their parts. */
enum { PTX_VECTOR_BYTES = 16, PTX_VECTOR_LANES = 8, PTX_VECTOR_WORDS = 4 };
typedef struct ptx_vector {
  uint32_t value;
  int is_load;
  ptx_name address;                   /* of the pack's first element */
  ptx_name word[PTX_VECTOR_WORDS];
  ptx_name next[PTX_VECTOR_WORDS];    /* of a load: where the words of the next pack arrive */
  ptx_name element[PTX_VECTOR_LANES]; /* a register for each lane */
  uint32_t widened;                   /* of a load of f16 or bf16: the f32 that alone is made of it; SSA_NONE */
  uint32_t kept;                      /* what alone is made of that, by keeping it between bounds; SSA_NONE */
  uint32_t low, high;                 /* those: pairs of them */
} ptx_vector;

typedef struct ptx {
  const hg_allocator *allocator;
  const atlas_program *program;
  ssa_unit *unit;
  const hg_ptx_options *options;
  hg_ptx_info *info;
  hg_analysis analysis;
  ssa_order order;
  hg_array body, slow, cold, module; /* char: the entry's instructions, its second choices, its rare paths, what stands
                                        before it */
  hg_array *out;               /* where lines go now: not module */
  int failed;                  /* out of memory */
  uint32_t next[PTX_CLASS_COUNT]; /* registers in use */
  uint32_t labels;

  uint32_t *reg;               /* per value: its register in this copy of the body */
  uint32_t *reg_copy;          /* per value: the copy it belongs to */
  uint8_t *bits_used;          /* per float: the bits of a NaN in it can be seen (compiler/nan_bits.h) */
  uint8_t *never_nan;          /* per value: see compiler/never_nan.h */
  uint8_t *nan_blind;          /* per value: see compiler/nan_bits.h */
  uint8_t *nan;                /* per value: ptx_nan */
  uint8_t *access;             /* per value: ptx_access, of accesses in the vector part */
  uint8_t *is_late;            /* per value: a rounding that only the stores do for which it waits (hg_ptx_rounds) */
  uint8_t *in_loop;            /* per block */
  uint32_t *vector_of;         /* per value: its number in `vector` */
  ptx_vector *vector;          /* in the order of the program */
  uint32_t vector_count;
  uint8_t read_only[ATLAS_MAX_SYMBOLS + 2];
  uint64_t tables_used[4], library_used[4]; /* sets of constant tables: the program's, the function library's */
  uint16_t parameter_of[ATLAS_MAX_SYMBOLS]; /* 1 + index into info->parameter */

  uint32_t copy;               /* of the body: counts up from 1 */
  uint32_t copy_lane;          /* which lane of a thread this copy is for, in the vector part */
  int in_vector_part;
  uint32_t grouped[PTX_MAX_GROUP], grouped_count, grouped_copy; /* loads that the last group has done, in this copy */
  ptx_pending pending[PTX_PENDING];
  uint32_t pending_count;
  int counts_steps;
  hg_array sites;              /* uint64_t: what is known of where faults are found, see fault.c */
  ptx_name fault_site, fault_lane, fault_index, fault_extent; /* the thread's first fault */
  int in_loop_of_packs;        /* a thread's packs one after the other in a loop */
  int needs_lane;              /* something asks for the number of a lane beside vector accesses */
  int can_end;                 /* lanes may end before others by trap or step limit */
  int uses_scratch;            /* reductions or scans */
  uint32_t max_threads;
  uint32_t most_registers;     /* of a thread; 0: as many as it likes */
  uint32_t shared_offset[ATLAS_MAX_SYMBOLS];
  uint32_t scratch, result, ended, ended_any, zeroed_bytes; /* in shared memory; scratch: 8 bytes a lane */
  ptx_name lane, steps, block, block_index, block_size, block_lane, lane_count;
  ptx_name at[9];              /* lane x y z, block x y z, global x y z */
  ptx_name pool_top[ATLAS_MAX_POOLS], pool_start[ATLAS_MAX_POOLS], pool_end[ATLAS_MAX_POOLS];
} ptx;

/* ---- text (ptx_text.c) ------------------------------------------------------------------------------------------- */

void hg_ptx_put(ptx *p, const char *format, ...) HG_PRINTF(2, 3);
void hg_ptx_append(ptx *p, hg_array *to, const char *format, ...) HG_PRINTF(3, 4);

/* "mnemonic operands;" */
void hg_ptx_ins(ptx *p, const char *mnemonic, const ptx_name *operand, size_t count);
#define PTX(p, mnemonic, ...)                                    \
  hg_ptx_ins(p, mnemonic, (const ptx_name[]){__VA_ARGS__},       \
             sizeof((const ptx_name[]){__VA_ARGS__}) / sizeof(ptx_name))

ptx_name hg_ptx_new(ptx *p, ptx_class class);
ptx_name hg_ptx_label(ptx *p);
void hg_ptx_place(ptx *p, ptx_name label);
ptx_name hg_ptx_name(const char *format, ...) HG_PRINTF(1, 2);
ptx_name hg_ptx_number(uint64_t number); /* as an operand of any integer instruction */

/* "add.rn" and a suffix. */
ptx_name hg_ptx_join(const char *mnemonic, const char *suffix);

/* ---- values ------------------------------------------------------------------------------------------------------ */

ptx_class hg_ptx_class_of(uint8_t type);
const char *hg_ptx_bits_suffix(ptx_class class);   /* ".b32" */
const char *hg_ptx_number_suffix(uint8_t type);    /* ".s32", ".u64", ".f32": of the register it lies in */
int hg_ptx_is_signed(uint8_t type);

ptx_name hg_ptx_register(ptx *p, uint32_t value);  /* of a value that is not a constant */
void hg_ptx_lies_in(ptx *p, uint32_t value, ptx_name reg); /* in this copy of the body */
ptx_name hg_ptx_constant(uint8_t type, uint64_t bits);
ptx_name hg_ptx_value(ptx *p, uint32_t value);     /* register or constant; a NaN may be loose */
ptx_name hg_ptx_in_register(ptx *p, uint32_t value);
ptx_name hg_ptx_exact(ptx *p, uint32_t value);     /* the same with the bits of the ISA */
/* As an argument of a choice (phi, sel): exact where the choice keeps payloads. */
ptx_name hg_ptx_chosen(ptx *p, uint32_t value, uint32_t choice);
ptx_name hg_ptx_make_exact(ptx *p, uint8_t type, ptx_name value);
ptx_name hg_ptx_wide(ptx *p, uint32_t value);      /* an integer in 64 bits, extended by its own sign */

/* Brings an 8- or 16-bit integer back into its range. */
void hg_ptx_normalise(ptx *p, uint8_t type, ptx_name reg);

static inline const ssa_insn *ptx_insn(const ptx *p, uint32_t value) { return ssa_insn_at(p->unit, value); }
static inline uint32_t ptx_arg(const ptx *p, uint32_t value, unsigned i) { return ssa_args_of(p->unit, value)[i]; }

ptx_name hg_ptx_special(ptx *p, const char *name); /* "tid.x", in 32 bits */
ptx_name hg_ptx_widened(ptx *p, ptx_name narrow);  /* from 32 bits to 64 */

/* Loads a field of the argument block. */
ptx_name hg_ptx_field(ptx *p, ptx_class class, size_t offset);
#define PTX_FIELD(p, class, member) hg_ptx_field(p, class, offsetof(hg_ptx_header, member))

/* ---- arithmetic (arith.c, convert.c) --------------------------------------------------------------------- */

void hg_ptx_pure(ptx *p, uint32_t value);
/* x < c ? x : c, or x > c ? x : c, where c is a constant, and neither zero nor NaN: one instruction, which for NaN
 * gives the number as well. */
int hg_ptx_is_bound(const ptx *p, uint32_t value, int *is_max);
/* An f32 x between two bounds, by min and max. */
typedef struct ptx_bounds {
  uint32_t x;
  double low, high;
} ptx_bounds;
int hg_ptx_is_bounded(const ptx *p, uint32_t value, ptx_bounds *bounds);
/* The same between -size and size, for which there is one instruction here. */
int hg_ptx_is_clamp(const ptx *p, uint32_t value, uint32_t *x, double *size);
/* d = a op b of a type, as collectives combine: f16 and bf16 through f32. */
void hg_ptx_combine(ptx *p, uint16_t op, uint8_t type, ptx_name d, ptx_name a, ptx_name b);
void hg_ptx_convert(ptx *p, uint32_t value);
ptx_name hg_ptx_to_f32(ptx *p, uint8_t type, ptx_name narrow);
void hg_ptx_from_f32(ptx *p, uint8_t type, ptx_name d, ptx_name wide);

/* ---- tables (table.c) ---------------------------------------------------------------------------------------- */

/* From how many lanes on the table form (HG_PTX_TABULATED) of this program, whose lanes come through with so many
 * instructions, is the faster one; 0: it has none. */
uint64_t hg_ptx_table_lanes(const ptx *p, uint32_t instructions);
void hg_ptx_table_kernel(ptx *p);

/* ---- memory and faults (memory.c, fault.c) --------------------------------------------------------------- */

/* Notes the fault; goes on behind it. */
void hg_ptx_note_fault(ptx *p, const ptx_fault_site *site);
/* If the predicate holds: the fault, soon. Until then the lane goes on, and whatever else may fault asks for
 * hg_ptx_faults_now first. */
void hg_ptx_fault_later(ptx *p, ptx_name predicate, const ptx_fault_site *site);
void hg_ptx_faults_now(ptx *p);
/* If the predicate holds: the fault, then the lines of `recover` (with the destination set to 0 where it has one), then
 * on to `back`. */
void hg_ptx_fault_if(ptx *p, ptx_name predicate, const ptx_fault_site *site, const ptx_name *zeroed, uint8_t type,
                     ptx_name back);
void hg_ptx_open_faults(ptx *p); /* before the first line */
void hg_ptx_end_thread(ptx *p);  /* instead of ret */
void hg_ptx_sites(ptx *p);

void hg_ptx_memory(ptx *p, uint32_t value);
/* Does a load with those near it (group.c), or finds that it has been done so; 0 if it is alone. */
int hg_ptx_load_grouped(ptx *p, uint32_t value);
void hg_ptx_load_checked(ptx *p, uint32_t value);
void hg_ptx_load_at(ptx *p, uint32_t value, ptx_name address); /* in bounds */
/* index + displacement, exactly, is not below `extent`; *sum gets its low 64 bits. */
ptx_name hg_ptx_sum_is_outside(ptx *p, ptx_name index, uint8_t type, int64_t displacement, ptx_name extent,
                               ptx_name *sum);
ptx_name hg_ptx_base_of(ptx *p, const ssa_insn *insn, ptx_name *extent);
ptx_name hg_ptx_plus(ptx_name base, int64_t bytes); /* as an address */
void hg_ptx_make_bool(ptx *p, ptx_name d); /* a byte other than 0 and 1 reads as 1 */
void hg_ptx_tables(ptx *p);

static inline size_t ptx_parameter_offset(const ptx *p, uint32_t symbol) {
  return p->info->parameter[p->parameter_of[symbol] - 1].offset;
}
static inline uint32_t ptx_log2(uint32_t bytes) { return bytes == 8 ? 3 : bytes / 2; } /* of an element */

/* ---- vectors (vector.c) -------------------------------------------------------------------------------------- */

/* A thread's pack: lanes_per_thread lanes from the one that the vectors point to. Where a predicate `whole` is given
 * and does not hold, that lane is alone: only its element is loaded and stored, as the first of the pack. */
void hg_ptx_vectors_name(ptx *p);
void hg_ptx_vectors_point(ptx *p, ptx_name lane);
void hg_ptx_vectors_load(ptx *p, const ptx_name *whole);
void hg_ptx_vectors_take_apart(ptx *p); /* the words of loads, into the lanes' elements */
void hg_ptx_vectors_join(ptx *p);       /* those of stores, from the elements */
void hg_ptx_vectors_store(ptx *p, uint32_t lanes, const ptx_name *whole); /* so many lanes further */
/* Where a thread has several packs: the loads of the one that lies so many lanes further, if the predicate holds. Then
 * in a loop the step to it; else its words are from here on those of the loads. */
void hg_ptx_vectors_load_next(ptx *p, uint32_t lanes, ptx_name when);
void hg_ptx_vectors_go_on(ptx *p, uint32_t lanes);
void hg_ptx_vectors_take_next(ptx *p);
/* The elements that lie in a word. */
void hg_ptx_take_apart(ptx *p, uint8_t type, ptx_name word, ptx_name *part, uint32_t count);
/* A word of such parts, of types of less than 32 bits. */
void hg_ptx_join_parts(ptx *p, uint8_t type, ptx_name word, const ptx_name *part, uint32_t count);
/* In the body of one of a thread's lanes: 1 if the access is a vector's, and so done. */
int hg_ptx_use_element(ptx *p, uint32_t value);
/* The same of an f32 that is all that becomes of a load of f16 or bf16, and so is what it was taken apart to. */
int hg_ptx_use_widened(ptx *p, uint32_t value);
/* 1 for a vector store of f16 or bf16 that is what rounds them from f32, two by one instruction. */
int hg_ptx_rounds(const ptx *p, uint32_t value);
/* What such a store takes: an f32. */
uint32_t hg_ptx_unrounded(const ptx *p, uint32_t store);

/* ---- what a block does together (block.c), classes (class.c) --------------------------------------------- */

void hg_ptx_block_effect(ptx *p, uint32_t value);
void hg_ptx_class_effect(ptx *p, uint32_t value);
void hg_ptx_coordinate(ptx *p, uint32_t value);

/* ---- control (flow.c) ---------------------------------------------------------------------------------------- */

/* One copy of the program for one lane; lanes that end go on behind it. */
void hg_ptx_body(ptx *p);

/* ---- kernels that do not see blocks (lanes.c) ---------------------------------------------------------------- */

void hg_ptx_lanes_kernel(ptx *p);
/* The neighbouring lanes of a thread's pack one after the other, from the words of the loads to those of the stores. */
void hg_ptx_lanes_in_turn(ptx *p, ptx_name first);

/* ---- plan (plan.c) ------------------------------------------------------------------------------------------- */

/* Everything that is decided before the first line: parameters, shared memory, steps, which NaNs are loose, which
 * accesses are vectors and how many lanes a thread has. HG_OUT_OF_MEMORY. */
hg_status hg_ptx_plan(ptx *p);
/* 1 if [x + lane + #k] with a k that the vector part may have. */
int hg_ptx_is_element(const ptx *p, uint32_t value);

#endif
