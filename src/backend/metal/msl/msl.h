/* msl.h - the inside of the MSL emitter, shared by its files: text, names, values.
 *
 * A value is its bits, with those of the ISA's NaN: a uint for types of at most 32 bits (i8 and i16 sign-extended), a
 * ulong for 64 bits, a bool for predicates. It is a variable of the whole kernel: a block that uses it may be nested
 * elsewhere than the block that computes it. The functions that the text calls are those of prelude.metal.
 *
 * Circle: flow group: the accesses of a group whose test fails are steps of the program, one by one. */
#ifndef HG_MSL_H
#define HG_MSL_H

#include "backend/gpu/plan.h"
#include "backend/metal/msl/emit_msl.h"

/* A variable, a constant or a short expression as text. */
typedef struct msl_name {
  char text[96];
} msl_name;

typedef struct msl {
  const hg_allocator *allocator;
  const gpu_plan *plan;
  const hg_msl_options *options;
  hg_array body, head; /* char: the kernel's statements; what stands before the kernel, and its declarations */
  hg_array sites;      /* uint64_t: the table of fault sites */
  hg_array frames;     /* of control flow that is open: flow.c */
  uint32_t *uses;      /* per value: how many; counted where 64-bit atomics ask */
  uint32_t place;      /* where votes meet in threadgroup memory */
  gpu_part_kind part;  /* which version of the program is printed */
  int depth;           /* of the indentation */
  int failed;          /* out of memory */
  hg_status refused;   /* HG_UNSUPPORTED, with its sentence given */
} msl;

/* ---- text (text.c) ----------------------------------------------------------------------------------------------- */

void hg_msl_put(msl *m, const char *format, ...) HG_PRINTF(2, 3);  /* to the body, as it is */
void hg_msl_line(msl *m, const char *format, ...) HG_PRINTF(2, 3); /* a line of the body, indented */
void hg_msl_head(msl *m, const char *format, ...) HG_PRINTF(2, 3);
void hg_msl_open(msl *m, const char *format, ...) HG_PRINTF(2, 3); /* "... {" */
void hg_msl_scope(msl *m);                                    /* "{" */
void hg_msl_close(msl *m, const char *tail);                       /* "}" and the tail */
msl_name hg_msl_name(const char *format, ...) HG_PRINTF(1, 2);

static inline const ssa_insn *msl_insn(const msl *m, uint32_t value) { return gpu_insn(m->plan, value); }
static inline uint32_t msl_arg(const msl *m, uint32_t value, unsigned i) { return gpu_arg(m->plan, value, i); }

static inline int msl_is_wide(uint8_t type) {
  return type != SSA_PREDICATE && atlas_type_bits((atlas_type)type) == 64;
}
const char *hg_msl_variable_type(uint8_t type);              /* "uint", "ulong", "bool" */
const char *hg_msl_suffix(uint8_t type);                     /* "f32", "i64", ... as the prelude's functions are named;
                                                                 narrow integers have that of 32 bits */
msl_name hg_msl_constant(uint8_t type, uint64_t bits);
msl_name hg_msl_value(const msl *m, uint32_t value);
msl_name hg_msl_argument(const msl *m, uint32_t user, unsigned i);
msl_name hg_msl_signed(const msl *m, uint32_t value);        /* as int or long where its type is signed */
msl_name hg_msl_long(const msl *m, uint32_t value);          /* an integer in 64 bits, extended by its own sign */
/* "v1 = " expression, brought into the range of a narrow integer type. */
void hg_msl_set(msl *m, uint32_t value, const char *format, ...) HG_PRINTF(3, 4);

/* ---- arithmetic (arith.c, convert.c) ----------------------------------------------------------------------------- */

void hg_msl_compute(msl *m, uint32_t value);
void hg_msl_convert(msl *m, uint32_t value);
/* d = a op b of a type, as collectives combine. */
void hg_msl_combine(msl *m, uint16_t op, uint8_t type, const char *d, const char *a, const char *b);

/* ---- memory, faults (memory.c), classes and pools (class.c) ------------------------------------------------------ */

void hg_msl_access(msl *m, uint32_t value);
void hg_msl_access_at(msl *m, uint32_t value, const char *address); /* a load or store that needs no check */
msl_name hg_msl_base(const msl *m, uint32_t value); /* where the elements of an access's symbol begin */
/* The byte of an element of that size, whose index is a variable of 64 bits. */
msl_name hg_msl_byte(const char *index, uint32_t size, int64_t displacement);
msl_name hg_msl_extent(const msl *m, const ssa_insn *insn);
void hg_msl_note(msl *m, const gpu_site *site, const char *index, const char *extent);
void hg_msl_tables(msl *m);
void hg_msl_coordinate(msl *m, uint32_t value);
void hg_msl_class(msl *m, uint32_t value);
void hg_msl_start_pools(msl *m);
void hg_msl_pool_allocate(msl *m, uint32_t value);
void hg_msl_pool_free(msl *m, uint32_t value);
void hg_msl_advance_phase(msl *m, uint32_t value);

/* ---- vectors, groups (vector.c, group.c) ------------------------------------------------------------------------- */

msl_name hg_msl_words(uint32_t word_bytes, uint32_t count); /* the type of so many words: "uint4" */
msl_name hg_msl_word(const char *words, uint32_t count, uint32_t w); /* one of them */
msl_name hg_msl_part(uint8_t type, const char *word, uint32_t k);    /* element k of those that lie in a word */
/* word = such elements */
void hg_msl_join(msl *m, uint8_t type, const char *word, const msl_name *part, uint32_t count);
void hg_msl_vectors_declare(msl *m);
/* Loads or stores the thread's pack; or its single lane, if it may have one. */
void hg_msl_vectors_access(msl *m, int is_load, int may_be_single);
void hg_msl_vectors_load_next(msl *m); /* a tile further on, if there is more */
void hg_msl_vectors_take_next(msl *m);
void hg_msl_vectors_take_apart(msl *m); /* words of loads into elements */
void hg_msl_vectors_join(msl *m);       /* elements into words of stores */
void hg_msl_take_element(msl *m, const gpu_step *step);
void hg_msl_give_element(msl *m, const gpu_step *step);
void hg_msl_group(msl *m, const gpu_group *group);
void hg_msl_foresee(msl *m, uint32_t number);

/* ---- kernels, control, collectives (kernel.c, flow.c, collective.c) ---------------------------------------------- */

hg_status hg_msl_kernel(msl *m);
hg_status hg_msl_body(msl *m, gpu_part_kind part);
void hg_msl_steps(msl *m, uint32_t first, uint32_t end); /* of the part */
void hg_msl_barrier(msl *m);
void hg_msl_vote(msl *m, uint32_t value);
uint32_t hg_msl_exchange(msl *m, const gpu_step *steps); /* which begins there; returns how many it has */
/* Threadgroup memory of the kernel, with what collectives need. */
uint32_t hg_msl_lay_out_places(msl *m);

#endif
