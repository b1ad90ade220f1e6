/* emit_x86.h - the state and functions that the files of the x86-64 emitter share.
 *
 * Registers of a region: rsp frame, rbx global lane of the group, r12 its lane in the tile (if the region uses it), r13
 * context->rows, r14 context, r15 pool of constants; rbp, rsi, rdi, r8 to r11 base addresses of buffers; rax, rcx, rdx
 * scratch within an instruction. Vector registers from native_target.vector_count on are scratch within an instruction
 * (0 to 3), and so are k0 to k2. In the tail, k7 holds the lanes that exist. */
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
  X86_LINE_BYTES = 64,    /* of the caches */
  X86_ENTRY_ALIGNMENT = 16, X86_LOOP_ALIGNMENT = 32, /* bytes */
  X86_INT3 = 0xcc, X86_NOP = 0x90 /* instructions of one byte, to fill gaps */
};

#define X86_TWO_52 UINT64_C(0x4330000000000000) /* 2^52 as f64: there the mantissa counts integers */

enum { /* offsets in native_frame.spare */
  X86_SAVED_RSP = offsetof(native_frame, spare), /* the caller's rsp */
  X86_LAST_GROUP = X86_SAVED_RSP + 8,            /* the last lane that a full group can begin with */
  X86_RUNS_BLOCK = X86_LAST_GROUP + 8,           /* not 0: all steps of a block run, and the members below are set */
  X86_FIRST_LANE = X86_RUNS_BLOCK + 8,           /* the tile's first lane */
  X86_TILE_END = X86_FIRST_LANE + 8,             /* the end of its lanes */
  X86_TILE_LAST_GROUP = X86_TILE_END + 8         /* the last lane of the tile that a full group can begin with */
};

typedef struct x86_slow { /* the slow path of an instruction: out of line, after its region */
  uint32_t insn, copy;
  uint32_t from, back;      /* labels: of the slow path; where it returns */
  uint32_t made;            /* the instruction that computes its index, which only this path needs: see lazy_index.c */
  uint32_t copies;          /* from here on: the state of x86_emit that it was noted in */
  uint8_t is_tail;
  uint8_t looks_for_lanes; /* 1: some lane of a group is out of bounds, perhaps none that takes part: group_access.c */
  uint8_t divides, to, from_reg; /* 1: instead of a call, to = from_reg / by, of f32, with a canonical NaN */
  x86_rm by;
} x86_slow;

typedef struct x86_cold { /* cold code: instructions that few groups run, out of line behind the loop over groups */
  uint32_t label, first, end;
  uint32_t back; /* where the code goes on; 0: the label at `end` */
} x86_cold;

typedef struct x86_span { /* the range guard of a NATIVE_GUARD_LOOP */
  uint32_t symbol, added;  /* register of the program that is added to the indices */
  uint8_t log_bytes;
  uint8_t base;            /* register with the address of that element; X86_RDX: there was no register for it */
} x86_span;

typedef struct x86_copy { /* a load that a span proves in bounds, and the store of it to shared memory */
  uint32_t load, store;    /* instructions */
  uint32_t symbol, first;  /* the shared array, and the first element there */
} x86_copy;

enum { X86_MOST_SPANS = 4 };

typedef struct x86_spans { /* the spans of a region: see span.c */
  x86_span held[X86_MOST_SPANS]; /* the guards that cover the loads before instruction `end` */
  uint32_t count, end, back;     /* `back`: a label */
} x86_spans;

typedef struct x86_to_come { /* the copies of a region that are delayed until the instructions that read them: see
                                copies.c */
  hg_array copies;           /* x86_copy: those from first_copy on are not written yet */
  uint32_t first_copy;
  hg_array prefetches;       /* uint32_t: loads whose counterparts in the next round have to be prefetched */
  uint32_t first_prefetch;
  uint64_t copied_to;        /* a set: the vectors, modulo 64, that copies up to the last one before the current
                                instruction write */
} x86_to_come;

typedef struct x86_own_constant { /* a constant that the emitter uses itself */
  uint64_t bits;
  uint32_t place;
  int is_64;
} x86_own_constant;

typedef struct x86_table { /* a table of the function library, in the pool */
  uint32_t symbol, place;
} x86_table;

typedef struct x86_resident { /* a constant in a register that no value of the program uses */
  uint32_t place;
  uint8_t reg, is_64;
} x86_resident;

typedef struct x86_residents { /* the resident constants of a version of a region, which are loaded once before the
                                  first group */
  uint32_t load, top;          /* labels: the code that loads them; where it goes on */
  uint32_t count;
  x86_resident held[NATIVE_MOST_REGISTERS];
} x86_residents;

enum { X86_MOST_GENERAL = X86_MOST_BASES + 2, X86_MOST_KEPT = 8, X86_MOST_OWN = 24, X86_MOST_TABLES = 16 };

typedef struct x86_pool {    /* the pool of constants. Places in it count 32-bit words */
  uint32_t label;
  hg_array words;            /* uint32_t */
  uint32_t *place_of;        /* per register: place + 1; 0: none yet */
  x86_own_constant own[X86_MOST_OWN];
  x86_table tables[X86_MOST_TABLES];
  uint32_t own_count, table_count;
  uint32_t iota_place, iota64_place, ones_place, window_place; /* see begin_pool */
} x86_pool;

typedef struct x86_pattern { /* a pattern that an index follows: see load_permute.c */
  uint32_t state, highest;
} x86_pattern;

typedef struct x86_later { /* a prefetch for the next block that another region than the access's own issues: see
                              prefetch.c */
  uint32_t insn;             /* the access */
  uint32_t added;            /* u of its index blane + u */
} x86_later;

enum { X86_MOST_LATER = 32 };

typedef struct x86_coming {    /* a row that straight-line code prefetches bit by bit: see prefetch.c */
  uint32_t symbol;
  uint32_t from, until;      /* it is prefetched between these instructions */
  uint32_t lines, done;
  int32_t first;             /* bytes from the row's start in the block to the first cache line */
  uint8_t lane;              /* register with the row's start */
  uint8_t log_bytes, is_store;
} x86_coming;

enum { X86_MOST_ROWS = 8 };

typedef struct x86_prefetch {   /* prefetches of what the next block accesses: see prefetch.c */
  uint32_t bytes[ATLAS_MAX_SYMBOLS]; /* per symbol: see bytes_ahead; 0: not computed yet */
  const native_step *busy;   /* the region that issues `later`; NULL: none */
  x86_later later[X86_MOST_LATER];
  uint32_t later_count, busy_insns; /* instructions of `busy` that most groups run */
  uint32_t later_done, busy_done;   /* how many of the two the current group has seen */
  x86_coming rows[X86_MOST_ROWS];
  uint32_t row_count;
} x86_prefetch;

typedef struct x86_kept {    /* two registers for accesses [x + blane + u]: see find_first_lane in memory.c */
  uint32_t since;            /* the access that filled them; VECTOR_NONE: they are empty */
  uint32_t added;            /* u */
  uint8_t first, left;       /* registers: the index of a group's first lane; the elements of x from there on */
} x86_kept;

typedef enum x86_version { X86_NO_LOOP, X86_QUICK, X86_SLOW } x86_version;

typedef struct x86_side_exit { /* from the quick version of a loop to the slow one, taken when an address is out of
                                  bounds */
  uint32_t insn, label;
} x86_side_exit;

typedef struct x86_loop {    /* see loop.c */
  native_loop found;
  uint8_t version;           /* the x86_version that is being written */
  uint32_t folded, folded_into; /* a register that is loaded, and the instruction that reads the load as its operand */
  x86_rm folded_at;             /* the operand's address in copy 0 */
  uint8_t general[NATIVE_MOST_SCALARS]; /* per scalar: its register; X86_NO_GENERAL: it is read from its vector */
  uint32_t slow_head;        /* label */
  uint32_t *quick_label;     /* per instruction: its label in the quick version */
  uint32_t *resume;          /* per instruction: the label in the slow version that a side exit leads to */
  uint8_t *roles;            /* per instruction: see native_loop.has_all */
  uint8_t *strides;
  void *memory;              /* the allocation that holds the four arrays above */
  vector_insn unmasked;      /* the current instruction with all lanes as its mask */
  hg_array side_exits;       /* x86_side_exit */
  uint32_t kept_count;
  struct {
    uint32_t reg;
    native_location location;
  } kept[X86_MOST_KEPT];     /* values of which the quick version keeps one vector for all lanes, with their other
                                locations */
} x86_loop;

typedef struct x86_emit {
  native_build *b;
  x86_asm a;

  /* The target. */
  uint8_t width;            /* 2: AVX-512, 1: AVX2 */
  uint8_t lanes, vector_bytes;
  uint8_t has_popcount;     /* VPOPCNTDQ */
  uint8_t has_dot;          /* VNNI */

  /* The current instruction. */
  const vector_insn *insn;
  uint32_t index;           /* its number */
  uint32_t joined;          /* number of an instruction that an earlier one has performed; UINT32_MAX: none */
  uint32_t loops_until;     /* the last instruction of the outermost loop around it; 0: it is in no loop */
  x86_loop loop;            /* the innermost loop, if it has a quick version */
  x86_kept kept;

  /* The version of the code that is being written. */
  uint8_t is_tail;          /* for one vector with a mask */
  uint8_t is_once;          /* of a region that runs once */
  uint8_t is_stream;        /* its stores bypass the caches */
  uint8_t is_cold;          /* few groups run it */
  uint8_t is_slow;          /* a slow path, which the streaming version shares although its registers hold other
                               constants */
  uint8_t leaves_out;       /* 1: only the lanes in bounds, which faults.c has found, take part in the current access */
  int uses_tile_lane;
  uint32_t copies;          /* the kernel's copies, or 1 */
  uint32_t *label_of;       /* per instruction: its label; UINT32_MAX: none yet */

  /* The region. */
  uint32_t region_first;    /* its first instruction */
  uint32_t region_lanes;    /* how many lanes it runs on; 0: unknown */
  uint32_t region_end;      /* label: where it ends */
  uint32_t group_end;       /* label after a group's code */
  uint8_t has_loops;
  hg_array slow;            /* x86_slow */
  hg_array cold;            /* x86_cold */
  x86_spans spans;
  x86_to_come to_come;
  uint32_t used_bases;      /* hg_x86_base_registers that are in use: for buffers first, then for row starts */
  uint32_t leave[NATIVE_IS_RARE + 1];           /* label: bails out to other code; UINT32_MAX: none yet */
  uint32_t free_registers;  /* a set of registers that are free for constants */
  x86_residents residents[2]; /* the second version's stores bypass the caches */

  /* The program. */
  uint8_t *is_late;         /* per instruction: 1: slow paths compute its result */
  uint8_t *polls, *repeated; /* per instruction: see hg_native_find_polls, hg_native_find_repeated */
  uint8_t *guess;           /* per instruction: see hg_native_guess */
  uint8_t *strides;         /* per register: scratch of hg_native_guess */
  uint8_t has_guessed;      /* 1: `guess` has been filled, which happens on its first use */
  uint32_t *writer;         /* per register: see hg_native_find_writers */
  uint8_t has_writers;      /* 1: `writer` has been filled, which happens on its first use */
  uint8_t *vector_strides;  /* per register: see hg_native_find_vector_strides */
  uint8_t has_vector_strides; /* 1: they have been found, which happens on their first use */
  x86_pattern *pattern_of;    /* per register: what is known of it as an index */
  uint32_t *loop_end;       /* per instruction: the last jump back to it; 0: none */
  int16_t base_of[ATLAS_MAX_SYMBOLS]; /* per symbol: general register with the address of its memory; -1: none */
  struct x86_lane_loop *uncounted; /* the loop that is being written without its steps: one_lane.c */
  uint8_t scalar_of[ATLAS_MAX_SYMBOLS]; /* of code for one lane: per scalar, a general register with it; 0: none */
  uint8_t steps_register;   /* of code for one lane: the general register that counts steps; 0: the frame does */
  uint32_t help;            /* label: calls hg_native_help */

  /* Code that runs all steps of a block. */
  int is_full;              /* for blocks that have all their lanes: see write_full */
  int has_full;             /* 1: nearly all blocks run such code, so loops elsewhere get no quick version */
  int has_limits;           /* 1: some regions do not run on all lanes: see NATIVE_ACTIVE_LANES */
  x86_prefetch ahead;
  uint32_t block_end;       /* label: where the block ends */
  uint32_t stop;            /* label: the next epilogue to be written, which cancelled launches jump to; 0: none */
  uint32_t *label_of_step;  /* per step: its label; UINT32_MAX: none yet */

  x86_pool pool;
} x86_emit;

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static inline x86_rm hg_x86_frame(size_t offset) { return x86_at(X86_FRAME, (int32_t)offset); }

void hg_x86_write_prologue(x86_emit *e);
void hg_x86_write_invariants(x86_emit *e); /* what runs once: see native_build.invariants */
void hg_x86_write_epilogue(x86_emit *e);
/* Jumps to the next epilogue if the launch is cancelled; that leaves the code of the block, or of the lanes, that it
 * was called for. */
void hg_x86_write_poll(x86_emit *e);
void hg_x86_load_bases(x86_emit *e);
/* Writes the loop over full groups and a jump to `tail`; the code of the tail; and a region that runs once. */
void hg_x86_write_groups(x86_emit *e, const native_step *step, uint32_t tail);
void hg_x86_write_tail(x86_emit *e, const native_step *step);
void hg_x86_write_once(x86_emit *e, const native_step *step);
void hg_x86_write_body(x86_emit *e, const native_step *step); /* of one group */
uint32_t hg_x86_label_of(x86_emit *e, uint32_t insn); /* the label that jumps to an instruction use */
void hg_x86_clear_local(x86_emit *e); /* clears the local arrays of a group, if its code has to */
void hg_x86_write_cold(x86_emit *e);
/* span.c: writes the NATIVE_GUARD_LOOPs from instruction i on and returns the first instruction behind them. The code
 * up to spans.end is written a second time as cold code, with all comparisons. */
uint32_t hg_x86_begin_spans(x86_emit *e, uint32_t i);
/* Writes the current NATIVE_GUARD_RANGE; then, behind the code, where the guards bail out. */
int hg_x86_within(x86_emit *e);
int hg_x86_fetch(x86_emit *e); /* writes the current NATIVE_TOUCH */
uint32_t hg_x86_leave_label(x86_emit *e, uint32_t why); /* see native_context.has_left */
void hg_x86_write_leave(x86_emit *e);
/* Ends the spans at instruction i, which is spans.end or a later one. */
void hg_x86_end_spans(x86_emit *e, uint32_t i);
/* copies.c: called before instruction i if spans cover it, or while copies are delayed. 1: the instruction is not to be
 * written now. */
int hg_x86_postpone(x86_emit *e, uint32_t i);
int hg_x86_has_copies(const x86_emit *e); /* 1: copies are delayed */
/* narrow.c: groups with one lane for each 8- or 16-bit element of a vector. Returns the bytes of an element; 0: the
 * program allows no such groups. Writes the loop over such groups, then a jump to `tail` if no other group is left. */
unsigned hg_x86_narrow_bytes(const x86_emit *e);
void hg_x86_write_narrow(x86_emit *e, unsigned bytes, uint32_t tail);
void hg_x86_write_region(x86_emit *e, native_step *step);
void hg_x86_write_slow_paths(x86_emit *e);
void hg_x86_write_help(x86_emit *e);
void hg_x86_write_block(x86_emit *e);
/* collect.c: a reduction, a vote, or a jump if any lane or none is set in a row of predicates, for a block that has all
 * its lanes, none of which has ended. 1 if machine code can do it. */
int hg_x86_can_collect(x86_emit *e, const native_step *step);
void hg_x86_collect(x86_emit *e, const native_step *step);
int hg_x86_can_ask(const x86_emit *e, const vector_insn *jump);
void hg_x86_ask(x86_emit *e, const vector_insn *jump, uint32_t target);
/* lazy_index.c: 1 if only slow paths compute the current instruction, which is an index. */
int hg_x86_is_lazy_index(x86_emit *e);
/* If that holds for an access's index, its slow path, the latest one noted, computes it. */
void hg_x86_note_late(x86_emit *e, uint32_t index);
/* prefetch.c: finds the region of a full block that has time for prefetches; writes the prefetches that are due before
 * the next instruction of a group. */
void hg_x86_plan_prefetches(x86_emit *e);
void hg_x86_begin_prefetches(x86_emit *e);
void hg_x86_prefetch_between(x86_emit *e);
/* The same for straight-line code: rows that begin at a NATIVE_GUARD_RANGE. */
void hg_x86_plan_rows(x86_emit *e);
void hg_x86_prefetch_rows(x86_emit *e, uint32_t i);
/* 1: the jump skips instructions that few groups run. */
static inline int x86_is_cold(const x86_emit *e, uint32_t i, uint32_t end) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i);
  return e->b->has_cold && insn->op == VECTOR_JUMP_NONE && insn->flags & VECTOR_ENTERS && insn->target < end;
}
enum { X86_LANE_REGISTERS = 10 };
void hg_x86_write_lanes(x86_emit *e); /* one_lane.c: a kernel that runs one lane after the other */
/* lane_value.c, of such a kernel: a value in a vector register, its own or `scratch`; and the current instruction's
 * result, which has no vector register, from one. */
x86_rm hg_x86_lane_source(x86_emit *e, uint32_t r, unsigned scratch);
void hg_x86_lane_set_vector(x86_emit *e, unsigned from);
void hg_x86_write_straight(x86_emit *e, native_step *step); /* straight.c: a block as straight-line code */

/* ---- instructions ------------------------------------------------------------------------------------------------ */

void hg_x86_v(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm);
void hg_x86_vi(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm, unsigned immediate);
void hg_x86_vk(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm, unsigned immediate, unsigned mask,
               int zero);
void hg_x86_x(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, x86_rm rm);   /* 128 bits */
void hg_x86_k(x86_emit *e, unsigned op, unsigned reg, unsigned vvvv, unsigned rm); /* mask registers: three or two */
void hg_x86_kmem(x86_emit *e, unsigned op, unsigned reg, x86_rm rm);

/* The number of a copy's first lane in the group or, in code for a block, in the block. */
static inline uint32_t hg_x86_first_lane(const x86_emit *e, uint32_t copy) {
  uint32_t slice = e->b->slices > 0 ? e->insn->slice % e->b->slices : 0; /* several blocks: see coarsen.c */
  return (copy + slice) * e->lanes;
}

/* 1: the quick version of a loop that all lanes of the group are in is being written. */
static inline int hg_x86_has_all(const x86_emit *e) {
  return e->loop.version == X86_QUICK && e->loop.found.has_all;
}

/* The role of the current instruction while all lanes are in the loop: NATIVE_TAKES_ALL, ... */
static inline uint8_t hg_x86_role(const x86_emit *e) { return hg_x86_has_all(e) ? e->loop.roles[e->index] : 0; }

/* 1: lanes of the group may have ended. */
static inline int hg_x86_loses_lanes(const x86_emit *e) { return e->b->vector->loses_lanes && !hg_x86_has_all(e); }

static inline unsigned hg_x86_scratch(const x86_emit *e, unsigned n) { return e->b->target->vector_count + n; }

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The type of a vector register. Inline, because each instruction asks several times. */
static inline uint8_t hg_x86_type(const x86_emit *e, uint32_t reg) { return vector_reg_at(e->b->vector, reg)->type; }

static inline int hg_x86_is_64(const x86_emit *e, uint32_t reg) {
  uint8_t type = hg_x86_type(e, reg);
  return type != SSA_PREDICATE && atlas_bytes((atlas_type)type) == 8;
}

/* The number of different vectors: 1 or e->copies. */
static inline uint32_t hg_x86_copies(const x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (r->kind == VECTOR_VARIES) return e->b->locations[reg].copies == 1 ? 1 : e->copies;
  return hg_native_is_lane_number(r) ? e->copies : 1;
}

static inline int hg_x86_is_uniform(const x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  return r->kind == VECTOR_VARIES ? e->b->locations[reg].is_uniform : !hg_native_is_lane_number(r);
}

static inline uint32_t hg_x86_parts(const x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (r->kind == VECTOR_VARIES) return e->b->locations[reg].parts;
  return hg_native_is_lane_number(r) && hg_x86_is_64(e, reg) ? 2 : 1;
}

/* Finds the vector registers that no value of a region uses; and loads the constants that were put into them. */
void hg_x86_find_free_registers(x86_emit *e, const native_step *step);
void hg_x86_load_residents(x86_emit *e, const x86_residents *residents);

/* A constant in all lanes: 32 or 64 bits. */
x86_rm hg_x86_constant(x86_emit *e, uint64_t bits, int is_64);
/* A vector of these 16 bytes repeated, in memory. */
x86_rm hg_x86_bytes_constant(x86_emit *e, uint64_t low, uint64_t high);
x86_rm hg_x86_register_constant(x86_emit *e, uint32_t reg); /* for a register that is a constant */
int hg_x86_constant_bits(const x86_emit *e, uint32_t reg, uint64_t *bits); /* 1 if a register is a constant */
x86_rm hg_x86_context(x86_emit *e, size_t offset, int is_64, unsigned scratch); /* a member of the context, in all
                                                                                   lanes */
int32_t hg_x86_place_offset(size_t symbol, size_t member); /* of context->place[symbol] */
/* reg = general register `from` + first, + first + 1, ... */
void hg_x86_count_up(x86_emit *e, unsigned reg, unsigned from, uint32_t first, int is_64);

/* A source as the last operand of an instruction (with AVX-512 it may be a broadcast; `scratch` is used if it has to be
 * computed); or in a register (`scratch` if it has none). */
x86_rm hg_x86_source(x86_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch);
unsigned hg_x86_source_reg(x86_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch);
unsigned hg_x86_rm_reg(x86_emit *e, x86_rm rm, int is_64, unsigned scratch);

/* The register of a row start. 1 if an index by a row has one, or needs none: *lane has the first lane's index, and the
 * rest is to be added to it. */
unsigned hg_x86_row_start(const x86_emit *e, uint32_t number);
int hg_x86_find_row(const x86_emit *e, uint32_t index, unsigned *lane, int64_t *more);

/* 1: a block-uniform u32 that is in memory or constant while a region runs; the other function loads it into `reg`. */
int hg_x86_is_in_memory(const x86_emit *e, uint32_t reg);
void hg_x86_load_block_uniform(x86_emit *e, unsigned reg, uint32_t from);
/* The offset in the rows of the new value that replaces a block-uniform one when the region ends. */
int32_t hg_x86_pending_block_uniform(const x86_emit *e, const native_location *location);

/* Loads elements of memory into a register, widened, and stores them. `mask`: k register, 0: all lanes (AVX2: always
 * 0). */
void hg_x86_load_elements(x86_emit *e, uint8_t type, unsigned reg, x86_rm from, unsigned mask);
void hg_x86_store_elements(x86_emit *e, uint8_t type, x86_rm to, unsigned reg, unsigned mask, unsigned scratch);

/* 1: lanes outside the mask of the current instruction have a value that must be kept. */
static inline int hg_x86_merges(const x86_emit *e) {
  const vector_insn *insn = e->insn;
  if (insn->mask == VECTOR_ALL || native_location_of(e->b, insn->d)->is_uniform) return 0;
  return (insn->flags & VECTOR_KEEP) != 0 || insn->op == VECTOR_MOVE;
}

/* The register to compute a result of the current instruction in; then stores the result from `reg` to its location.
 * With AVX2, `reg` is not scratch 1 to 3, which storing a row's tail and blending with the old value use. */
unsigned hg_x86_result_register(x86_emit *e, uint32_t copy, uint32_t part, unsigned scratch);
void hg_x86_set_result(x86_emit *e, uint32_t copy, uint32_t part, unsigned reg);

/* ---- predicates: k registers with AVX-512, vectors of 32-bit elements else --------------------------------------- */

unsigned hg_x86_predicate(x86_emit *e, uint32_t reg, uint32_t copy, unsigned scratch); /* VECTOR_ALL: existing lanes */
unsigned hg_x86_predicate_result(x86_emit *e, uint32_t copy, unsigned scratch);
void hg_x86_set_predicate_result(x86_emit *e, uint32_t copy, unsigned reg);
/* The lanes in which the current instruction has effects; -1: all of the vector. */
int hg_x86_mask(x86_emit *e, uint32_t copy, unsigned scratch);
/* The same without leaves_out: the lanes that get a result. */
int hg_x86_whole_mask(x86_emit *e, uint32_t copy, unsigned scratch);
/* The frame's mask of the lanes of a copy that take part while others are left out. */
x86_rm hg_x86_inside(const x86_emit *e, uint32_t copy);
/* faults.c: writes the current access without its faulting lanes, for a copy or X86_ALL_COPIES. The code jumps to
 * `note`, before it has done anything, if C code has to note a fault, and to `back` (if there is one) after the access.
 * 0: nothing was written. */
int hg_x86_leave_out_faults(x86_emit *e, uint32_t copy, uint32_t note, uint32_t back);
/* The half of a predicate that belongs to a 64-bit vector. */
unsigned hg_x86_mask_part(x86_emit *e, unsigned mask, uint32_t part, unsigned scratch);

void hg_x86_test_any(x86_emit *e); /* sets the zero flag if no lane is in s0 & mask */
/* 1 if the comparison is left to the jump after it (compare and branch are fused). 1 if there is such a comparison
 * before the current jump: the code sets the flags, *taken is the condition on which the jump is taken. */
int hg_x86_leaves_to_jump(x86_emit *e);
int hg_x86_compare_for_jump(x86_emit *e, x86_condition *taken);
void hg_x86_count_step(x86_emit *e); /* counts in the registers of the current STEP */
void hg_x86_begin_alive(x86_emit *e);
void hg_x86_end_alive(x86_emit *e);
x86_rm hg_x86_tail_mask(const x86_emit *e); /* AVX2 */

/* ---- what is not written here ------------------------------------------------------------------------------------ */

#define X86_ALL_COPIES UINT32_MAX
void hg_x86_help(x86_emit *e, uint32_t copy);        /* calls hg_native_help for the current instruction */
uint32_t hg_x86_slow_path(x86_emit *e, uint32_t copy); /* label of a slow path that calls hg_native_help; place
                                                          hg_x86_slow_back behind the code */
void hg_x86_slow_back(x86_emit *e);
void hg_x86_divide_canonically(x86_emit *e, unsigned to, unsigned from, x86_rm by);
/* Label of a slow path that divides: see x86_slow. Scratch 1 and 3 are not preserved there. */
uint32_t hg_x86_rare_division(x86_emit *e, unsigned to, unsigned from, x86_rm by);

/* ---- loops over memory ------------------------------------------------------------------------------------------- */

#define X86_NO_GENERAL 0xff

/* 1 if a loop with a quick version starts with label `head`. The parts are then written in this order: the guards that
 * choose the version, the quick version (hg_x86_quick_insn for each instruction), its side exits, the slow version. */
int hg_x86_find_loop(x86_emit *e, uint32_t head);
void hg_x86_begin_quick(x86_emit *e);
void hg_x86_end_quick(x86_emit *e);
int hg_x86_quick_insn(x86_emit *e); /* 1 if it has written the current instruction */
/* The index of a quick access in a general register (rcx if it has none of its own); *stride: the stride of its
 * lanes. */
int hg_x86_quick_index(x86_emit *e, unsigned *general, uint8_t *stride);
/* How many times per round a loop-invariant register, which is no constant, is added to the index of a quick access; 0:
 * the index grows in another way. */
uint32_t hg_x86_quick_steps(const x86_emit *e, uint32_t *step);
void hg_x86_load_step(x86_emit *e, uint32_t step, unsigned to);
/* 1 if that index is a product which each round computes again: it may be the start of any row. */
int hg_x86_is_row_start(const x86_emit *e);
uint32_t hg_x86_side_exit(x86_emit *e); /* label of a side exit: the slow version resumes at the current instruction */
void hg_x86_release_loop(x86_emit *e);

/* Each returns 1 if it has written the current instruction. */
int hg_x86_operation(x86_emit *e);        /* of machine_ops.def */
int hg_x86_vector_operation(x86_emit *e); /* of vector.h, on values */
int hg_x86_masks(x86_emit *e);            /* of vector.h, on masks */
int hg_x86_logic(x86_emit *e);
int hg_x86_compare(x86_emit *e);
int hg_x86_coordinate(x86_emit *e);
int hg_x86_convert(x86_emit *e);
int hg_x86_memory(x86_emit *e);
int hg_x86_is_table_index(const x86_emit *e); /* 1: an `and #15` whose only users are look-ups, which ignore higher
                                                 bits */
int hg_x86_straight(x86_emit *e);
int hg_x86_lanes(x86_emit *e); /* any access to memory, lane by lane */
int hg_x86_atomic(x86_emit *e);
int hg_x86_lanes_of(x86_emit *e, uint32_t copy); /* the same, of one copy */

int hg_x86_is_by_tile_lane(const x86_emit *e); /* 1: [x + blane], [x + blane + u] or [x + u], u block-uniform */
int hg_x86_has_base(const vector_insn *insn); /* 1: it uses the address of its symbol */
extern const uint8_t hg_x86_base_registers[X86_MOST_BASES];
unsigned hg_x86_base(x86_emit *e); /* the general register with that address; rdx if no register is reserved for it */

#endif
