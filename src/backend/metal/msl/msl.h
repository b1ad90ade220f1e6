/* msl.h - the inside of the MSL emitter, shared by its files: text, names, values.
 *
 * A value is its bits, with the ISA's NaN: a uint for types of at most 32 bits (i8 and i16 sign-extended), a ulong for
 * 64 bits, a bool for predicates. It is a variable of the whole kernel, because a basic block that uses it may be
 * nested elsewhere than the one that computes it. The functions that the text calls are those of prelude.metal.
 *
 * Circle: flow group: if the test of an access group fails, its accesses are steps of the program, one by one. */
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
  hg_array body, head; /* char: the kernel's statements; the text before the kernel, and its declarations */
  hg_array sites;      /* uint64_t: the table of fault sites */
  hg_array frames;     /* open control flow: flow.c */
  uint32_t *uses;      /* per value: number of uses, counted for 64-bit atomics only */
  uint32_t place;      /* threadgroup memory of votes */
  gpu_version_kind version; /* of the program, that is being printed */
  int depth;           /* indentation */
  int failed;          /* out of memory */
  hg_status refused;   /* HG_UNSUPPORTED, after its sentence has been reported */
} msl;

/* ---- text (text.c) ----------------------------------------------------------------------------------------------- */

void hg_msl_put(msl *m, const char *format, ...) HG_PRINTF(2, 3);  /* appends to the body as it is */
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
const char *hg_msl_suffix(uint8_t type);                     /* "f32", "i64", ... in names of the prelude; narrow
                                                                integers count as 32 bits */
msl_name hg_msl_constant(uint8_t type, uint64_t bits);
msl_name hg_msl_value(const msl *m, uint32_t value);
msl_name hg_msl_argument(const msl *m, uint32_t user, unsigned i);
msl_name hg_msl_signed(const msl *m, uint32_t value);        /* as int or long if its type is signed */
msl_name hg_msl_long(const msl *m, uint32_t value);          /* an integer extended to 64 bits by its sign */
/* "v1 = " expression, brought into the range of a narrow integer type. */
void hg_msl_set(msl *m, uint32_t value, const char *format, ...) HG_PRINTF(3, 4);

/* ---- arithmetic (arith.c, convert.c) ----------------------------------------------------------------------------- */

void hg_msl_compute(msl *m, uint32_t value);
void hg_msl_convert(msl *m, uint32_t value);
/* d = a op b, as collectives combine values of the type. */
void hg_msl_combine(msl *m, uint16_t op, uint8_t type, const char *d, const char *a, const char *b);

/* ---- memory, faults (memory.c), classes and pools (class.c) ------------------------------------------------------ */

void hg_msl_access(msl *m, uint32_t value);
void hg_msl_access_at(msl *m, uint32_t value, const char *address); /* a load or store that needs no check */
msl_name hg_msl_base(const msl *m, uint32_t value); /* the address of the elements of the access's symbol */
/* The byte of an element of that size whose index is a 64-bit variable. */
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
msl_name hg_msl_word(const char *words, uint32_t count, uint32_t w); /* word w of them */
msl_name hg_msl_part(uint8_t type, const char *word, uint32_t k);    /* element k of a word */
/* joins elements into a word */
void hg_msl_join(msl *m, uint8_t type, const char *word, const msl_name *part, uint32_t count);
void hg_msl_vectors_declare(msl *m);
/* Loads or stores the thread's pack, or its single lane if `may_be_single`. */
void hg_msl_vectors_access(msl *m, int is_load, int may_be_single);
void hg_msl_vectors_load_next(msl *m); /* the next tile's, if there is one */
void hg_msl_vectors_take_next(msl *m);
void hg_msl_vectors_take_apart(msl *m); /* splits the words of loads into elements */
void hg_msl_vectors_join(msl *m);       /* joins elements into the words of stores */
void hg_msl_take_element(msl *m, const gpu_step *step);
void hg_msl_give_element(msl *m, const gpu_step *step);
void hg_msl_group(msl *m, const gpu_access_group *group);
void hg_msl_foresee(msl *m, uint32_t number);

/* ---- kernels, control, collectives (kernel.c, flow.c, collective.c) ---------------------------------------------- */

hg_status hg_msl_kernel(msl *m);
hg_status hg_msl_body(msl *m, gpu_version_kind version);
void hg_msl_steps(msl *m, uint32_t first, uint32_t end); /* of the version */
void hg_msl_barrier(msl *m);
void hg_msl_vote(msl *m, uint32_t value);
void hg_msl_rank(msl *m, uint32_t value);
uint32_t hg_msl_exchange(msl *m, const gpu_step *steps); /* returns the number of its steps */
/* Bytes of the kernel's threadgroup memory, with that of collectives. */
uint32_t hg_msl_lay_out_places(msl *m);

#endif
