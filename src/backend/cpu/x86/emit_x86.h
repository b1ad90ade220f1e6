/* emit_x86.h - what the files of the x86-64 emitter share.
 *
 * Registers of a region: rsp frame, rbx global lane of the group, r12 the same in the tile (where it is asked for), r13
 * context->rows, r14 context, r15 pool of constants; rbp, rsi, rdi, r8 to r11 base addresses of buffers; rax, rcx, rdx
 * free within an instruction. Vector registers from native_target.vector_count on are free within an instruction
 * (scratch 0 to 3); so are k0 to k2. k7 holds the lanes that exist where the code runs one vector at the end. */
#ifndef HG_EMIT_X86_H
#define HG_EMIT_X86_H

#include "backend/cpu/native/loop.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/x86/x86_asm.h"

#include <stddef.h>

enum {
  X86_FRAME = X86_RSP, X86_LANE = X86_RBX, X86_TILE_LANE = X86_R12, X86_ROWS = X86_R13, X86_CONTEXT = X86_R14,
  X86_POOL = X86_R15,
  X86_TAIL_MASK = 7,      /* k register */
  X86_MOST_BASES = 7,
  X86_LINE_BYTES = 64     /* of the caches */
};

enum { /* in native_frame.spare: where the stack was; the last lane that a whole group can begin with; while all steps
          of a block run: anything but 0, the tile's first lane, its end, and the last group of that */
       X86_SAVED_RSP = offsetof(native_frame, spare),
       X86_LAST_GROUP = X86_SAVED_RSP + 8,
       X86_RUNS_BLOCK = X86_LAST_GROUP + 8,
       X86_FIRST_LANE = X86_RUNS_BLOCK + 8,
       X86_TILE_END = X86_FIRST_LANE + 8,
       X86_TILE_LAST_GROUP = X86_TILE_END + 8
};

typedef struct x86_slow { /* an instruction that could not go on: out of line, after its region */
  uint32_t insn, copy, from, back; /* labels */
  uint32_t copies;                 /* as in x86_emit */
  uint8_t is_tail, exact;
} x86_slow;

typedef struct x86_rare { /* instructions that few groups of lanes need: behind the loop over groups */
  uint32_t label, first, end;
} x86_rare;

typedef struct x86_own_constant { /* one that no register of the program has */
  uint64_t bits;
  uint32_t place;
  int is_64;
} x86_own_constant;

typedef struct x86_table { /* of the function library, in the pool */
  uint32_t symbol, place;
} x86_table;

typedef struct x86_held { /* a constant in a register that no value of the program needs */
  uint32_t place;
  uint8_t reg, is_64;
} x86_held;

typedef struct x86_hold {    /* what the groups of a version of a region hold: loaded once, before the first of them */
  uint32_t load, top;        /* labels: of the code that does so, and of where it goes on */
  uint32_t count;
  x86_held held[NATIVE_MOST_REGISTERS];
} x86_hold;

enum { X86_MOST_GENERAL = X86_MOST_BASES + 2, X86_MOST_KEPT = 8 };

typedef enum x86_version { X86_NO_LOOP, X86_QUICK, X86_SLOW } x86_version;

typedef struct x86_way_out { /* from the quick version of a loop, where an address is out of bounds */
  uint32_t insn, label;
} x86_way_out;

typedef struct x86_loop {    /* see loop.c */
  native_loop found;
  uint8_t version;           /* x86_version that is written */
  uint8_t general[NATIVE_MOST_SCALARS]; /* of each scalar; X86_NO_GENERAL: its vector's first element is to be read */
  uint32_t slow_head;        /* label */
  uint32_t *quick_label, *resume; /* per instruction: its label in the quick version; where the slow one goes on */
  uint8_t *strides;
  void *memory;
  hg_array ways_out;         /* x86_way_out */
  uint32_t kept_count;
  struct {
    uint32_t reg;
    native_home home;
  } kept[X86_MOST_KEPT];     /* values of which the quick version keeps one for all lanes: their homes elsewhere */
} x86_loop;

typedef struct x86_emit {
  native_build *b;
  x86_asm a;
  const vector_insn *insn;  /* in hand */
  uint32_t index;           /* its number */
  uint32_t joined;          /* the number of one that an instruction before it has done; UINT32_MAX: none */
  uint8_t width;            /* 2: AVX-512, 1: AVX2 */
  uint8_t lanes, vector_bytes;
  uint8_t is_tail;          /* the code for one vector with a mask */
  uint8_t exact; /* lanes of a vector that the code is for: fewer than there are only where it is straight and
                    nothing but values and memory of 32 bits: see write_exact */
  uint8_t is_once;          /* the code of a region that runs once */
  uint8_t is_stream;        /* the code whose stores pass the caches */
  uint8_t has_popcount;     /* VPOPCNTDQ */
  uint32_t copies;          /* of the code that is written: the kernel's or 1 */
  uint32_t help, pool;      /* labels */
  uint32_t region_first, region_lanes; /* lanes: that are known to be all that the region runs in; 0: not known */
  uint32_t region_end, group_end; /* where the region ends; label behind a group's code */
  int is_full;              /* the code for blocks that have all lanes: see write_full */
  int has_limits;           /* 1: some regions do not run in all lanes: see NATIVE_LIMIT */
  uint32_t block_end;       /* label: where a block that machine code runs as a whole ends */
  uint32_t *label_of_step;  /* per step: the same as label_of */
  uint8_t *guess;           /* per instruction: see hg_native_guess; */
  uint8_t has_guessed;      /* filled when first asked for */
  uint32_t *loop_end;       /* per instruction: the last jump back to it; 0: none */
  uint32_t loops_until;     /* the last instruction of the loops around the one in hand; 0: it is in none */
  uint8_t has_loops;        /* the region */
  uint8_t is_rare;          /* code that few groups come to */
  uint32_t free_registers;  /* for constants: a set */
  x86_hold hold[2];         /* of the region; the second where stores pass the caches */
  uint32_t *label_of;       /* per instruction: label in the code that is written; UINT32_MAX: none yet */
  hg_array constants;       /* uint32_t, as the pool lays them out */
  uint32_t *constant_of;    /* per register: place in the pool + 1 */
  x86_own_constant own[24];
  x86_table tables[16];
  uint32_t own_count, table_count;
  uint32_t iota_place, iota64_place, ones_place, window_place; /* see begin_pool */
  hg_array slow;            /* x86_slow */
  hg_array rare;            /* x86_rare */
  int16_t base_of[ATLAS_MAX_SYMBOLS]; /* general register that holds its memory; -1: none */
  int uses_tile_lane;
  x86_loop loop;
} x86_emit;

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static inline x86_rm hg_x86_frame(size_t offset) { return x86_at(X86_FRAME, (int32_t)offset); }

void hg_x86_begin_region(x86_emit *e); /* on entry */
void hg_x86_drop_frame(x86_emit *e);   /* returns */
void hg_x86_load_bases(x86_emit *e);
/* Whole groups, while there are any, then to `tail`; the lanes that are left; what is the same for all. */
void hg_x86_write_groups(x86_emit *e, const native_step *step, uint32_t tail);
void hg_x86_write_tail(x86_emit *e, const native_step *step);
void hg_x86_write_once(x86_emit *e, const native_step *step);
void hg_x86_write_body(x86_emit *e, const native_step *step); /* of one group */
void hg_x86_write_rare(x86_emit *e);
void hg_x86_write_region(x86_emit *e, native_step *step);
void hg_x86_write_slow_paths(x86_emit *e);
void hg_x86_write_help(x86_emit *e);
/* 1 if the region, of the first so many lanes, gets code for 16, 8, 4, 2 and 1 of them, without masks. */
int hg_x86_gets_exact(x86_emit *e, const native_step *step);
enum { X86_MOST_EXACT_INSNS = 32 }; /* instructions: longer regions do not, and are not written out either */
void hg_x86_write_block(x86_emit *e);
void hg_x86_write_wide(x86_emit *e, native_step *step); /* wide.c: a block as straight code */

/* ---- instructions ------------------------------------------------------------------------------------------------ */

void hg_x86_v(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm);
void hg_x86_vi(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm, unsigned immediate);
void hg_x86_vk(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm, unsigned immediate, unsigned mask,
               int zero);
void hg_x86_x(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm);   /* 128 bits */
void hg_x86_k(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, unsigned rm); /* mask registers: three or two */
void hg_x86_kmem(x86_emit *e, unsigned op, unsigned reg, x86_rm rm);

/* Of a copy: its first lane in the group or, where code is for a block, in that. */
static inline uint32_t hg_x86_first_lane(const x86_emit *e, uint32_t copy) {
  return (copy + e->insn->slice) * e->lanes;
}

static inline unsigned hg_x86_scratch(const x86_emit *e, unsigned n) { return e->b->target->vector_count + n; }

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Of a vector register. Inline, because each instruction asks several times. */
static inline uint8_t hg_x86_type(const x86_emit *e, uint32_t reg) { return vector_reg_at(e->b->vector, reg)->type; }

static inline int hg_x86_is_64(const x86_emit *e, uint32_t reg) {
  uint8_t type = hg_x86_type(e, reg);
  return type != SSA_PREDICATE && atlas_bytes((atlas_type)type) == 8;
}

static inline int hg_x86_is_varying_special(const vector_reg *r) {
  return r->kind == VECTOR_SPECIAL && (r->bits == ATLAS_REG_LANE || r->bits == ATLAS_REG_BLOCK_LANE);
}

/* 1 or e->copies: vectors that differ. */
static inline uint32_t hg_x86_copies(const x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (r->kind == VECTOR_VARIES) return e->b->homes[reg].copies == 1 ? 1 : e->copies;
  return hg_x86_is_varying_special(r) ? e->copies : 1;
}

static inline int hg_x86_is_uniform(const x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  return r->kind == VECTOR_VARIES ? e->b->homes[reg].is_uniform : !hg_x86_is_varying_special(r);
}

static inline uint32_t hg_x86_parts(const x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (r->kind == VECTOR_VARIES) return e->b->homes[reg].parts;
  return hg_x86_is_varying_special(r) && hg_x86_is_64(e, reg) ? 2 : 1;
}

/* Registers that no value has, for constants of a region's groups. Then code that loads what they hold. */
void hg_x86_begin_hold(x86_emit *e);
void hg_x86_load_held(x86_emit *e, const x86_hold *hold);

/* A constant in all lanes: 32 or 64 bits. */
x86_rm hg_x86_constant(x86_emit *e, uint64_t bits, int is_64);
x86_rm hg_x86_register_constant(x86_emit *e, uint32_t reg); /* of a register that is one */
int hg_x86_constant_bits(const x86_emit *e, uint32_t reg, uint64_t *bits); /* 1 if a register is a constant */
x86_rm hg_x86_context(x86_emit *e, size_t offset, int is_64, unsigned scratch); /* a member of the context, alike */
int32_t hg_x86_place_offset(size_t symbol, size_t member); /* of context->place[symbol] */
/* reg = the general register + first, + first + 1, ... */
void hg_x86_count_up(x86_emit *e, unsigned reg, unsigned from, uint32_t first, int is_64);

/* A source: as the last operand of an instruction (with AVX-512 maybe a broadcast; `scratch` is used where it has to be
 * made), or in a register (`scratch` where it has none). */
x86_rm hg_x86_source(x86_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch);
unsigned hg_x86_source_reg(x86_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch);
unsigned hg_x86_rm_reg(x86_emit *e, x86_rm rm, int is_64, unsigned scratch);

/* 1: a u32 that is the same in the whole block and, while a region runs, in memory or a constant. Such a one in reg. */
int hg_x86_is_in_memory(const x86_emit *e, uint32_t reg);
void hg_x86_load_single(x86_emit *e, unsigned reg, uint32_t from);
/* Where in the rows the new value of what is single goes. */
int32_t hg_x86_new_single(const x86_emit *e, const native_home *home);

/* Elements of memory into a register, widened, and back. `mask`: k register, 0: all (AVX2: always). */
void hg_x86_load_elements(x86_emit *e, uint8_t type, unsigned reg, x86_rm from, unsigned mask);
void hg_x86_store_elements(x86_emit *e, uint8_t type, x86_rm to, unsigned reg, unsigned mask, unsigned scratch);

/* Where to compute the result of the instruction in hand, and what to do with it then. */
unsigned hg_x86_result(x86_emit *e, uint32_t copy, uint32_t part, unsigned scratch);
void hg_x86_done(x86_emit *e, uint32_t copy, uint32_t part, unsigned reg);

/* ---- predicates: k registers with AVX-512, vectors of 32-bit elements else --------------------------------------- */

unsigned hg_x86_predicate(x86_emit *e, uint32_t reg, uint32_t copy, unsigned scratch); /* VECTOR_ALL: existing lanes */
unsigned hg_x86_predicate_result(x86_emit *e, uint32_t copy, unsigned scratch);
void hg_x86_predicate_done(x86_emit *e, uint32_t copy, unsigned reg);
/* The lanes in which the instruction in hand has effects; -1: all of the vector. */
int hg_x86_mask(x86_emit *e, uint32_t copy, unsigned scratch);
/* The part of a predicate that goes with a 64-bit vector. */
unsigned hg_x86_mask_part(x86_emit *e, unsigned mask, uint32_t part, unsigned scratch);

void hg_x86_test_any(x86_emit *e); /* sets the zero flag if no lane is in s0 & mask */
/* A comparison that the jump behind it is to do; 1 if the jump in hand has such a one before it, whose flags are set
 * then: on which condition it is taken. */
int hg_x86_leaves_to_jump(x86_emit *e);
int hg_x86_compare_for_jump(x86_emit *e, x86_condition *taken);
void hg_x86_begin_alive(x86_emit *e);
void hg_x86_end_alive(x86_emit *e);
x86_rm hg_x86_tail_mask(const x86_emit *e); /* AVX2 */

/* ---- what is not written here ------------------------------------------------------------------------------------ */

#define X86_ALL_COPIES UINT32_MAX
void hg_x86_help(x86_emit *e, uint32_t copy);        /* calls hg_native_help for the instruction in hand */
uint32_t hg_x86_slow_path(x86_emit *e, uint32_t copy); /* label that does so; place hg_x86_slow_back behind the code */
void hg_x86_slow_back(x86_emit *e);

/* ---- loops over memory ------------------------------------------------------------------------------------------- */

#define X86_NO_GENERAL 0xff

/* 1 if a loop with a quick version starts with label `head`; then, in this order: the question whether it can be gone
 * to, the quick version (hg_x86_quick for each instruction), its ways out, the slow version. */
int hg_x86_finds_loop(x86_emit *e, uint32_t head);
void hg_x86_begin_quick(x86_emit *e);
void hg_x86_end_quick(x86_emit *e);
int hg_x86_quick(x86_emit *e); /* 1 if it has written the instruction in hand */
/* Of an access that is quick: its index in a general register (rcx, if it has none); *stride: of its lanes. */
int hg_x86_quick_index(x86_emit *e, unsigned *general, uint8_t *stride);
uint32_t hg_x86_way_out(x86_emit *e); /* label that does the instruction in hand, and the rest of the loop, slowly */
void hg_x86_release_loop(x86_emit *e);

/* Each 1 if it has written the instruction in hand. */
int hg_x86_operation(x86_emit *e);        /* of machine_ops.def */
int hg_x86_vector_operation(x86_emit *e); /* of vector.h, on values */
int hg_x86_masks(x86_emit *e);            /* of vector.h, on masks */
int hg_x86_logic(x86_emit *e);
int hg_x86_compare(x86_emit *e);
int hg_x86_coordinate(x86_emit *e);
int hg_x86_divide(x86_emit *e);
int hg_x86_divide_avx2(x86_emit *e);
int hg_x86_convert(x86_emit *e);
int hg_x86_memory(x86_emit *e);
int hg_x86_is_table_index(const x86_emit *e); /* an `and #15` for nothing but look-ups that do without */
int hg_x86_wide(x86_emit *e);
int hg_x86_lanes(x86_emit *e); /* any access to memory */
int hg_x86_lanes_of(x86_emit *e, uint32_t copy); /* the same, of one copy */

int hg_x86_is_by_tile_lane(const x86_emit *e); /* 1: [x + blane], [x + blane + u] or [x + u], u the same in
                                                  the whole block */
int hg_x86_has_base(const vector_insn *insn); /* 1: it uses the address of its symbol */
extern const uint8_t hg_x86_base_registers[X86_MOST_BASES];
unsigned hg_x86_base(x86_emit *e); /* the general register with that address; rdx where none keeps it */

#endif
