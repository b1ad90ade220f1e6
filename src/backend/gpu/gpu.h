/* gpu.h - what the backends for GPUs share: the variant of a kernel, what is known of it once it is compiled, and how
 * it is launched. No text, no driver: a backend prints its text from plan.h.
 *
 * KERNELS. An entry has ONE parameter: a block of bytes (info.argument_bytes, align 8, at most 2048) that begins with
 * hg_gpu_header. So a launch is
 *
 *   uint64_t block[HG_GPU_ARGUMENT_BYTES / 8];
 *   hg_gpu_launch shape;
 *   uint32_t missing = hg_gpu_pack(program, &info, &launch, &places, block, &shape);   // 0, or see VARIANTS
 *   // shape.blocks blocks of shape.threads threads, with the argument block
 *
 * The grid is always one-dimensional: the kernel computes the coordinates of three-dimensional launches. A block needs
 * info.shared_bytes of shared memory. They are declared in the text, or given at the launch: info.dynamic_bytes.
 *
 * Two kinds of kernels:
 *  - lanes (!info.observes_block): the program does not see blocks. Each block of the device has one tile of threads x
 *    lanes_per_thread lanes; of vector_only entries up to info.packs tiles in turn.
 *  - blocks (info.observes_block): each block of the device is one block of the program, or one of its info.sub_blocks
 *    sub-blocks, which stand next to each other and run at the same time (a cluster).
 * shape.blocks is at most 2^31 - 1; while shape.left is not 0, call hg_gpu_next and launch again.
 *
 * VARIANTS. An entry is compiled for the common case. hg_gpu_pack returns 0 when this entry can run this launch, else
 * the flags that the entry lacks: make one with these and the flags of this one (and keep it for later launches):
 *   HG_GPU_CHECKED        a buffer is shorter than the launch or does not lie at a multiple of 16 (vector_only entries)
 *   HG_GPU_COUNT_STEPS    the step limit is below info.steps
 *   HG_GPU_LARGER_BLOCKS  not a flag of hg_gpu_variant: make it with variant.threads >= out->threads
 *
 * TABLES OF RESULTS. Where info.lut_lanes is not 0, the program turns one element of 16 bits into one of 16 bits, by
 * more work than a look-up costs: an entry made with HG_GPU_LUT first computes what becomes of all 65,536, in
 * HG_GPU_LUT_BYTES of shared memory (not every device has them), then looks up. For launches of lut_lanes
 * and more. It needs places.fault_record for a counter, which it leaves as it was. Ask the usual entry for lut_lanes,
 * and take it again where hg_gpu_pack finds something missing.
 *
 * FAULTS. One record a launch (a hg_gpu_fault in device memory, 8-aligned), not one a block: the kernel keeps in
 * it, under a lock, the lowest lane with a fault and that lane's first fault. Before the FIRST launch and after each
 * launch that faulted it must hold hg_gpu_fault_none() (lane = UINT64_MAX, rest 0); a launch without a fault does not
 * touch it. When a lane faults the kernel also stores 1 to the u32 at places.fault_flag: let that be host memory that
 * the device can write, so that a wait costs no copy when nothing faulted: flag 0 -> no fault; flag 1 -> read the
 * record, hg_gpu_fault_read() makes the hg_fault of it, reset flag and record.
 *
 * RESONANCE, PHASE. If info.uses_resonance: places.resonance is 96 int64 of device memory, zeroed by the host before
 * the launch; the kernel adds to it atomically. If info.uses_phase_advance: places.phase_advance is a u32 of device
 * memory, zeroed before the launch; holds the advance modulo 768 afterwards. Both may be 0 where not used.
 *
 * TABLES. info.table_symbol (or HG_GPU_NO_SYMBOL): places.table is device memory that holds `count` hg_gpu_span entries
 * {address, byte_count}; {0, 0} where nothing is bound. Copy them in before the launch.
 *
 * POOLS need no memory of their own: each block keeps its top; shares are computed from the pool's bytes.
 *
 * BLOCK SIZE. The entry is compiled for blocks of at most info.max_threads lanes: the program's required block, else
 * variant.threads, else 1024. Linear launches need 256.
 *
 * STEP LIMIT. info.steps is the number of back-edges a lane takes at most when every loop's trip count is proven (then
 * the kernel does not count them), else UINT64_MAX (then it counts).
 *
 * info is plain data without pointers: store it in front of the machine code in the kernel cache, and believe of it
 * what hg_gpu_admit gives back. */
#ifndef HG_GPU_H
#define HG_GPU_H

#include "atlas/interp.h"
#include "compiler/analysis/analyse.h"
#include "ir/ssa.h"

#define HG_GPU_NO_SYMBOL UINT32_MAX
#define HG_GPU_PHI_SYMBOL (UINT32_MAX - 1) /* names the boundary pool */

enum {
  HG_GPU_ARGUMENT_BYTES = 2048,  /* enough for every program */
  HG_GPU_MAX_PARAMETERS = 96,    /* buffers, scalars, pools and the table of a program */
  HG_GPU_COUNT_STEPS = 1,        /* variant.flags: count every back-edge */
  HG_GPU_CHECKED = 2,            /* a lane a thread, each access checked */
  HG_GPU_LUT = 8,          /* see TABLES OF RESULTS */
  HG_GPU_LUT_THREADS = 1024,
  HG_GPU_LUT_BYTES = 2 * 65536 + 16, /* the table, two words for the next piece, padding */
  HG_GPU_WARP_LANES = 32,
  HG_GPU_LARGER_BLOCKS = 4       /* only from hg_gpu_pack: make an entry with variant.threads = out->threads */
};

/* The variant of an entry. All zero: the usual one. */
typedef struct hg_gpu_variant {
  uint32_t flags;
  uint32_t threads;        /* lanes of the largest block in its launches (256 in linear launches); 0: 1024 */
  const hg_shape *shape;   /* NULL: for any launch */
} hg_gpu_variant;

/* Where a parameter of the program lies in the argument block. */
typedef struct hg_gpu_parameter {
  uint16_t symbol;
  uint16_t offset;         /* buffers: address, extent in elements; scalars: 8 bytes, and for divisors 8 more: the
                              largest number of the type divided by the scalar (by 1 if that is 0); pools: address, byte
                              count, share; tables: address of the entries */
  uint8_t vector; /* of a buffer: 1: 16-byte accesses are used, so its address should be a multiple of 16 */
  uint8_t kind;            /* atlas_symbol_kind */
  uint8_t element_shift;   /* of a buffer, and of a scalar: log2 of an element's bytes */
  uint8_t divides;         /* of a scalar: it is a divisor */
  uint8_t again;           /* of a buffer: 1: two loops of the program go over the same part of it */
  uint8_t reserved[7];
  int64_t reach;           /* of a buffer accessed as [x + lane + #k]: 1 + the largest k; 0: it is accessed in another
                              way */
} hg_gpu_parameter;

typedef struct hg_gpu_info {
  uint32_t size;           /* sizeof(hg_gpu_info) */
  uint32_t argument_bytes;
  uint32_t threads;        /* lanes kernels: threads of a block; blocks kernels 0: the launch decides */
  uint32_t lanes_per_thread;
  uint32_t max_threads;    /* of a block: a launch with larger blocks needs an entry emitted for them */
  uint32_t sub_blocks; /* device blocks (a cluster) that a block of the program is spread over; 1: it is not */
  uint32_t shared_bytes;
  uint32_t multiprocessors; /* of the card, set when the entry is loaded: a table variant has that many blocks, and
                               blocks of small launches have fewer tiles. 0: unknown, so always info.packs tiles */
  uint32_t multiprocessor_shared_bytes, block_shared_bytes; /* the most of each, also set then */
  uint64_t cache_bytes;    /* of the card's last-level cache, also set then; 0: unknown */
  uint8_t observes_block, uses_boundary, uses_resonance, uses_phase_advance;
  uint8_t vector_only;     /* 1: there are no checks, and hg_gpu_pack refuses launches that are not in bounds and
                              aligned */
  uint8_t is_lut;        /* the variant with HG_GPU_LUT */
  uint8_t packs;           /* of vector_only entries: the most tiles of a block, which is the most packs of a thread */
  uint8_t tile_shift;      /* log2 of the lanes of a tile: threads x lanes_per_thread */
  uint32_t dynamic_bytes;  /* shared memory to request at the launch: shared_bytes if a text may not declare that much,
                              HG_GPU_LUT_BYTES for the table variant, else 0 */
  uint64_t lut_lanes;    /* launches of at least so many lanes are faster with HG_GPU_LUT; 0: there is no such
                            variant */
  uint64_t steps;
  uint32_t table_symbol;
  uint32_t parameter_count;
  hg_gpu_parameter parameter[HG_GPU_MAX_PARAMETERS];
} hg_gpu_info;

/* Device addresses that are not arguments of the program. (Its arguments: launch->arguments[s].span.memory are device
 * addresses too, as for every backend; launch->boundary is the device address of the boundary pool.) */
typedef struct hg_gpu_places {
  uint64_t fault_record, fault_flag, resonance, phase_advance, table;
} hg_gpu_places;

typedef struct hg_gpu_launch {
  uint32_t blocks, threads; /* of the device */
  uint32_t sub_blocks;     /* info.sub_blocks */
  uint32_t idle_bytes;     /* shared memory beyond info.dynamic_bytes that is requested only to keep other blocks off a
                              multiprocessor */
  uint64_t left;           /* blocks beyond what one grid can have, left for further launches (hg_gpu_next) */
} hg_gpu_launch;

/* The argument block begins with this. */
typedef struct hg_gpu_header {
  uint64_t lanes, fast_lanes, fault_record, fault_flag, step_limit, boundary, resonance, phase_advance;
  uint64_t first, block_count;   /* the number of blocks in earlier grids of this launch; all blocks of the program */
  uint64_t first_lane, whole_lanes; /* the grid's first lane (not used for tiles); the lanes in whole packs
                                       (vector_only) */
  uint64_t total[2];             /* lanes along x and y (lanes kernels) */
  uint64_t grid[3];              /* in blocks */
  uint64_t reciprocal[2];        /* for grid (for total in lanes kernels): the largest number divided by it; 0 if
                                    flat */
  uint32_t block[3], phase;
  uint32_t is_flat;              /* 1: one dimension, where a lane's number is block * block size + lane in the block */
  uint32_t block_lanes;          /* of a block (not of tiles) */
} hg_gpu_header;

typedef struct hg_gpu_span { uint64_t address, byte_count; } hg_gpu_span;

/* As the kernel writes it. */
typedef struct hg_gpu_fault {
  uint64_t lane;           /* UINT64_MAX: none */
  uint32_t lock;
  uint32_t kind;           /* hg_fault_kind */
  uint32_t instruction;
  uint32_t symbol;         /* HG_GPU_NO_SYMBOL: none; HG_GPU_PHI_SYMBOL: "phi" */
  uint32_t code;
  uint32_t index_type;     /* atlas_type of `index`; the host adds the displacement without overflow */
  uint64_t index;
  int64_t displacement;
  uint64_t extent;
} hg_gpu_fault;

/* A device and the language of its kernels: all that a plan asks about them. Zero is right for any device unless a
 * member says otherwise, but slow. */
typedef struct hg_gpu_target {
  uint32_t vector_bytes;   /* of the widest access: 8 or 16 */
  uint32_t warp_lanes;     /* lanes that exchange registers: HG_GPU_WARP_LANES on all GPUs that are supported */
  uint32_t shared_bytes;   /* the most that a device block may have */
  uint32_t declared_shared;/* the most of these that a text may declare; a kernel that needs more requests all of it at
                              the launch */
  uint32_t sub_blocks;     /* the most device blocks that a block is spread over; 0: none, and warps are lanes with
                              neighbouring numbers (warp_transpose.c) */
  uint32_t registers;      /* of a multiprocessor; 0: not known */
  uint32_t ranks;          /* the most ranks that share barriers; 0: each is for itself (ranks.c) */
  uint8_t registers_all, registers_most; /* the most registers of a thread at full occupancy of a multiprocessor, and at
                                            three quarters of it; 0: no limit, or unknown */
  uint8_t branches;        /* 1: a check is a branch, and its fault is noted at once; 0: accesses are predicated */
  uint8_t exact_nans;      /* 1: arithmetic produces the ISA's NaNs */
  uint8_t positive_nan;    /* 1: a NaN that f32 arithmetic produces is positive */
  uint8_t pairs_f16, pairs_bf16; /* 1: one instruction rounds two f32 into a word of two such elements, and one makes
                                    the NaNs of such a word canonical */
  uint8_t bounds;          /* 1: one instruction clamps an f32, or a pair of f16 or bf16, to [-c, c], and two clamp a
                              pair to any bounds; a NaN remains a NaN */
  uint8_t narrow_extremes; /* 1: there are minima and maxima of f16 and bf16 */
  uint8_t can_prefetch_l2;   /* 1: memory can be prefetched, and a large cache keeps it (l2_prefetch.c) */
} hg_gpu_target;

/* Validates an info that was kept where others than this process may have written: makes `info` from the program and
 * the variant, and takes from `kept` only what the plan decides, provided that a plan could decide so. Then, whatever
 * `kept` is, hg_gpu_pack writes within its block, reads arguments that exist and never divides by zero. 0: refused. The
 * members about the device (multiprocessors, ...) are 0. */
int hg_gpu_admit(const atlas_program *program, const hg_gpu_variant *variant, const hg_gpu_target *target,
                 const hg_gpu_info *kept, hg_gpu_info *info);

/* Fills in the argument block and the grid of a launch; returns 0, or the flags that the entry lacks (VARIANTS). Takes
 * some tens of nanoseconds. */
uint32_t hg_gpu_pack(const atlas_program *program, const hg_gpu_info *info, const atlas_launch *launch,
                 const hg_gpu_places *places, void *block, hg_gpu_launch *out);
/* The grid of a table variant. */
uint32_t hg_gpu_lut_blocks(uint64_t lanes, uint32_t multiprocessors);
/* The same for the next grid of the launch, while out->left is not 0. */
void hg_gpu_next(void *block, hg_gpu_launch *out);

hg_gpu_fault hg_gpu_fault_none(void);

/* The program's instructions by the numbers that they have in its kernels: those of the canonical form (numbers.c). */
typedef struct hg_gpu_numbers {
  uint32_t *insn_of; /* NULL: not computed yet; release it with hg_release */
  uint32_t count;
} hg_gpu_numbers;

/* Numbers the values of the canonical unit, then the ends of its blocks, and names its loops; fills the table unless it
 * has been filled. */
hg_status hg_gpu_number(const hg_allocator *allocator, ssa_unit *unit, hg_gpu_numbers *numbers);
/* The record has the program's own instruction in place of the kernel's number: variants.h. */
void hg_gpu_fault_read(const atlas_program *program, const atlas_launch *launch, const hg_gpu_fault *record,
                       hg_fault *out);

#endif
