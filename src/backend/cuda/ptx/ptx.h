/* ptx.h - the inside of the PTX emitter, shared by its files: text, registers, operands.
 *
 * Where values lie: predicates in .pred registers (%p), f16 and bf16 in .b16 (%h), other types of at most 32 bits in
 * .b32 (%r), the rest in .b64 (%d). i8 and i16 are kept sign-extended, u8, u16 and the storage types zero-extended, so
 * that 32-bit instructions work on them; a result that may leave the range is normalised at once.
 *
 * NaN: an arithmetic result that is NaN need not be the canonical one ("loose") until its bits are used; NVIDIA's is
 * 0x7fffffff, or 0x7fff in 16 bits. hg_ptx_exact gives the bits that the ISA asks for.
 *
 * Circle: convert text: a value in a narrow register is converted where it is named.
 * Circle: flow group group_loop: the accesses of a group whose test fails are emitted one by one, as steps of the
 * program, or in a loop that uses the group's. */
#ifndef HG_PTX_H
#define HG_PTX_H

#include "backend/cuda/ptx/emit_ptx.h"
#include "backend/gpu/plan.h"

/* A register, a constant or a label as text. */
typedef struct ptx_name {
  char text[28];
} ptx_name;

typedef enum ptx_class { PTX_PREDICATE, PTX_16, PTX_32, PTX_64, PTX_CLASS_COUNT } ptx_class;

/* A fault to be noted: what the plan knows of it, and the registers with what is known at run time. */
typedef struct ptx_fault_site {
  gpu_site site;
  ptx_name index, extent; /* 64-bit operands */
} ptx_fault_site;

/* The fault of a skipped access, noted later together with others. */
typedef struct ptx_pending {
  ptx_name failed;
  ptx_fault_site site;
} ptx_pending;

/* The registers of a gpu_vector. */
typedef struct ptx_vector {
  ptx_name address;                   /* the address of the pack's first element */
  ptx_name word[GPU_VECTOR_WORDS];
  ptx_name next[GPU_VECTOR_WORDS];    /* of a load: receives the words of the next pack */
  ptx_name element[GPU_VECTOR_LANES]; /* a register for each lane */
} ptx_vector;

/* An address in shared memory: of the element with this index and size. */
typedef struct ptx_near {
  uint32_t symbol, index, bytes;
  ptx_name address;
} ptx_near;

enum { PTX_MOST_NEAR = 8 };

typedef struct ptx {
  const hg_allocator *allocator;
  const gpu_plan *plan;
  const hg_ptx_options *options;
  hg_array body, slow, cold, module; /* char: the entry's common path, the slow paths of groups, rare paths; the
                                        declarations of the module */
  hg_array *out;               /* where lines are appended: body, slow or cold */
  int failed;                  /* 1: out of memory */
  uint32_t next[PTX_CLASS_COUNT]; /* how many registers of each class are in use */
  uint32_t labels;

  uint32_t *reg;               /* per value: its register in this copy of the body */
  uint32_t *reg_copy;          /* per value: the copy it belongs to */
  ptx_vector *vector;          /* by the plan's numbers */
  uint8_t divides_rarely;      /* hg_ptx_divides_rarely */
  uint32_t copy;               /* the number of this copy of the body, counted from 1 */
  uint32_t copy_lane;          /* the lane of a thread that this copy runs, in the vector version */
  gpu_version_kind version;       /* of the program, that is being printed */
  ptx_pending pending[GPU_PENDING];
  uint32_t pending_count;
  ptx_name untold[GPU_MOST_HOISTED]; /* predicates, by the plan's numbers: true: the test has to be made */
  ptx_near near[PTX_MOST_NEAR]; /* the addresses that this block has computed so far; only the last ones */
  uint32_t near_count;
  uint32_t slow_bytes;         /* of local memory, for groups whose accesses are done in a loop */
  hg_array sites;              /* uint64_t: the table of fault sites, see fault.c */
  ptx_name fault_site, fault_lane, fault_index, fault_extent; /* the thread's first fault */
  ptx_name lane, steps, block, block_index, block_size, block_lane, lane_count;
  ptx_name half;               /* offset of the half of the places that is to be used next (plan->memory.half_bytes) */
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

ptx_name hg_ptx_register(ptx *p, uint32_t value);  /* of a value that is not a constant */
void hg_ptx_lies_in(ptx *p, uint32_t value, ptx_name reg); /* in this copy of the body */
ptx_name hg_ptx_constant(uint8_t type, uint64_t bits);
ptx_name hg_ptx_value(ptx *p, uint32_t value);     /* register or constant; a NaN may be loose */
ptx_name hg_ptx_in_register(ptx *p, uint32_t value);
ptx_name hg_ptx_exact(ptx *p, uint32_t value);     /* the same, with the ISA's NaN bits */
/* An argument; with the ISA's NaN bits if its user needs them. */
ptx_name hg_ptx_argument(ptx *p, uint32_t user, uint32_t i);
ptx_name hg_ptx_make_exact(ptx *p, uint8_t type, ptx_name value);
/* Makes NaNs in the two halves of a word canonical; requires gpu_has_pairs. */
void hg_ptx_make_pair_exact(ptx *p, uint8_t type, ptx_name word);
/* The same right after two f32 were rounded into the word. */
void hg_ptx_make_rounded_exact(ptx *p, uint8_t type, ptx_name word);
ptx_name hg_ptx_wide(ptx *p, uint32_t value);      /* an integer in 64 bits, extended by its own sign */
ptx_name hg_ptx_low(ptx *p, uint32_t value);       /* its low 32 bits */
ptx_name hg_ptx_kept(ptx *p, ptx_class class, ptx_name name); /* in a register of its own; a constant gets a new one */

/* Brings an 8- or 16-bit integer back into its range. */
void hg_ptx_normalise(ptx *p, uint8_t type, ptx_name reg);

static inline const ssa_insn *ptx_insn(const ptx *p, uint32_t value) { return gpu_insn(p->plan, value); }
static inline uint32_t ptx_arg(const ptx *p, uint32_t value, unsigned i) { return gpu_arg(p->plan, value, i); }

ptx_name hg_ptx_special(ptx *p, const char *name); /* "tid.x", in 32 bits */
ptx_name hg_ptx_widened(ptx *p, ptx_name narrow);  /* from 32 bits to 64 */

/* Loads a field of the argument block. */
ptx_name hg_ptx_field(ptx *p, ptx_class class, size_t offset);
#define PTX_FIELD(p, class, member) hg_ptx_field(p, class, offsetof(hg_gpu_header, member))

/* ---- arithmetic (arith.c, convert.c) --------------------------------------------------------------------- */

void hg_ptx_pure(ptx *p, uint32_t value);
/* d = a op b as collectives combine values of a type: f16 and bf16 through f32. */
void hg_ptx_combine(ptx *p, uint16_t op, uint8_t type, ptx_name d, ptx_name a, ptx_name b);
/* quotient and rest, unsigned, in 32 or 64 bits; the registers must be distinct. */
void hg_ptx_divide(ptx *p, ptx_class class, ptx_name number, ptx_name size, ptx_name reciprocal, ptx_name quotient,
                   ptx_name rest);
/* 1 if all divisions of f32 use the function below, which saves compile time of the driver. */
int hg_ptx_divides_rarely(const ptx *p);
void hg_ptx_divide_rarely(ptx *p, ptx_name d, ptx_name a, ptx_name b); /* d differs from both */
void hg_ptx_convert(ptx *p, uint32_t value);
ptx_name hg_ptx_to_f32(ptx *p, uint8_t type, ptx_name narrow);
void hg_ptx_from_f32(ptx *p, uint8_t type, ptx_name d, ptx_name wide);

/* ---- memory and faults (memory.c, fault.c) --------------------------------------------------------------- */

/* Notes the fault; the code falls through. */
void hg_ptx_note_fault(ptx *p, const ptx_fault_site *site);
/* The same if a predicate holds, for the site with that number in the table, counted from 1. */
void hg_ptx_note_number(ptx *p, ptx_name when, ptx_name number, ptx_name index, ptx_name extent);
/* A site's number in the table, counted from 1; its rows have PTX_SITE_BYTES, and the last word is the displacement. */
enum { PTX_SITE_BYTES = 32 };
uint32_t hg_ptx_site_number(ptx *p, const gpu_site *site);
/* Stores a number next to the kind of the last site, for those who look it up. */
void hg_ptx_site_also(ptx *p, uint32_t number);
/* Makes the fault pending if the predicate holds. Before any other instruction that may fault, call hg_ptx_faults_now,
 * which notes pending faults. */
void hg_ptx_fault_later(ptx *p, ptx_name predicate, const ptx_fault_site *site);
void hg_ptx_faults_now(ptx *p);
/* If the predicate holds: notes the fault, sets *zeroed (unless NULL) to 0 and branches to `back`. */
void hg_ptx_fault_if(ptx *p, ptx_name predicate, const ptx_fault_site *site, const ptx_name *zeroed, uint8_t type,
                     ptx_name back);
int hg_ptx_keeps_in_memory(const ptx *p); /* 1 if a fault's index and extent are in local memory; the other also asks
                                             whether there are faults */
void hg_ptx_open_faults(ptx *p); /* prints what precedes the first line */
void hg_ptx_end_thread(ptx *p);  /* in place of ret */
void hg_ptx_sites(ptx *p);

void hg_ptx_access(ptx *p, const gpu_step *step); /* prints a load, store or atomic that belongs to no group */
void hg_ptx_group(ptx *p, const gpu_step *step);
void hg_ptx_hoist_check(ptx *p, const gpu_step *step);
/* A load or store. If a predicate is given and holds, it is skipped, and a load gives 0. */
void hg_ptx_access_at(ptx *p, uint32_t value, ptx_name address, ptx_name absent);
/* A predicate: the exact sum index + displacement is not in [0, extent). *sum: its low 64 bits. */
ptx_name hg_ptx_sum_is_outside(ptx *p, ptx_name index, uint8_t type, int64_t displacement, ptx_name extent,
                               ptx_name *sum);
ptx_name hg_ptx_base_of(ptx *p, const ssa_insn *insn, ptx_name *extent);
/* The address of the element of an array in shared memory whose number is a value's low half, which is known to be in
 * bounds. */
ptx_name hg_ptx_shared_element(ptx *p, uint32_t symbol, uint32_t index, uint32_t bytes);
/* An index, not a constant, times the size, exactly. ptxas makes one instruction of a 32-bit multiplication and the
 * addition of a base if the two are written as two. */
ptx_name hg_ptx_bytes_of(ptx *p, uint32_t index, uint32_t size);
ptx_name hg_ptx_plus(ptx_name base, int64_t bytes); /* as an address */
void hg_ptx_make_bool(ptx *p, ptx_name d); /* a byte other than 0 and 1 reads as 1 */
void hg_ptx_tables(ptx *p);

/* ---- vectors (vector.c) -------------------------------------------------------------------------------------- */

/* A thread's pack: lanes_per_thread lanes from the one that the vectors' addresses belong to. If a predicate `whole` is
 * given and does not hold, only the pack's first lane exists, so only its element is loaded and stored. */
void hg_ptx_vectors_name(ptx *p);
void hg_ptx_vectors_point(ptx *p, ptx_name lane);
void hg_ptx_vectors_load(ptx *p, const ptx_name *whole);
void hg_ptx_vectors_take_apart(ptx *p); /* splits the words of loads into the lanes' elements */
void hg_ptx_vectors_join(ptx *p);       /* makes the words of stores from the elements */
void hg_ptx_vectors_store(ptx *p, uint32_t lanes, const ptx_name *whole); /* `lanes` lanes further on */
/* For a thread with several packs: load_next loads the pack that is `lanes` lanes further on if the predicate holds. In
 * a loop, go_on then makes it the current pack; without a loop, take_next makes its words those of the loads. */
void hg_ptx_vectors_load_next(ptx *p, uint32_t lanes, ptx_name when);
void hg_ptx_vectors_go_on(ptx *p, uint32_t lanes);
void hg_ptx_vectors_take_next(ptx *p);
/* Splits a word into its elements. */
void hg_ptx_take_apart(ptx *p, uint8_t type, ptx_name word, ptx_name *part, uint32_t count);
/* Makes a word of such elements, of types with less than 32 bits. */
void hg_ptx_join_parts(ptx *p, uint8_t type, ptx_name word, const ptx_name *part, uint32_t count);
/* In the body of one lane: the element of a vector load that a value is; the element that a vector store takes. */
void hg_ptx_take_element(ptx *p, const gpu_step *step);
void hg_ptx_give_element(ptx *p, const gpu_step *step);

/* ---- pools (pool.c), classes (class.c) -------------------------------------------------------------------------- */

void hg_ptx_start_pools(ptx *p);
void hg_ptx_pool_allocate(ptx *p, uint32_t value);
void hg_ptx_pool_free(ptx *p, uint32_t value);
void hg_ptx_class_effect(ptx *p, uint32_t value);
void hg_ptx_coordinate(ptx *p, uint32_t value);

/* ---- control (flow.c) -------------------------------------------------------------------------------------------- */

/* One copy of the program for one lane; an exit leads behind it. */
void hg_ptx_body(ptx *p, gpu_version_kind version);
void hg_ptx_steps(ptx *p, uint32_t first, uint32_t count); /* of the version */

/* ---- collectives (collective.c, careful.c, rank.c) --------------------------------------------------------------- */

/* Prints the steps of an exchange, which begins at `steps`; returns how many steps it has. */
uint32_t hg_ptx_exchange(ptx *p, const gpu_step *steps);
void hg_ptx_ranks(ptx *p, uint32_t value, uint32_t count);

/* ---- kernels: kernel.c, of their steps those of blocks.c and lut.c --------------------------------------------- */

/* The registers and labels that the steps of a kernel share. */
typedef struct ptx_kernel {
  ptx_name thread, lanes, base;      /* number in its block; lanes of the launch; the first lane of a block or tile */
  ptx_name first;                    /* the first lane of the pack */
  ptx_name block_lanes, bound;       /* lanes of a block (32 bits); where the last whole pack ends */
  ptx_name whole;                    /* a predicate: a whole pack begins at `first` */
  ptx_name next, left, more, at;     /* the first lane of the next pack; packs left; a predicate: there are more */
  ptx_name table, pair;              /* the table in shared memory; two of its entries */
  ptx_name again, plain, end;        /* labels */
} ptx_kernel;

void hg_ptx_sync_sub_blocks(ptx *p); /* a barrier of all sub-blocks of the block */
void hg_ptx_find_block(ptx *p, ptx_name end); /* threads without a lane branch to the end */
void hg_ptx_find_lane(ptx *p);               /* computes the lane's number again, in other registers; for any launch */
/* at = (x, y, z) of the number x + size_x * (y + size_y * z); the header has the sizes' reciprocals. */
void hg_ptx_take_number_apart(ptx *p, ptx_name number, const ptx_name size[2], const ptx_name at[3]);
void hg_ptx_clear_shared(ptx *p, uint32_t bytes);
void hg_ptx_clear_local(ptx *p, uint32_t bytes);
void hg_ptx_open_entries(ptx *p, ptx_kernel *k);
void hg_ptx_close_entries(ptx *p, ptx_kernel *k);
void hg_ptx_last_elements(ptx *p, const ptx_kernel *k);
void hg_ptx_pieces(ptx *p, const ptx_kernel *k);
void hg_ptx_kernel(ptx *p);

#endif
