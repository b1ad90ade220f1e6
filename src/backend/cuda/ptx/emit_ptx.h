/* emit_ptx.h - PTX text from a compiled program, and how to launch it. Pure: no driver, no I/O.
 *
 *   ssa_unit unit;                        // hg_canonicalise -> hg_ptx_expand -> hg_optimise
 *   hg_array text = {.element_size = 1};
 *   hg_ptx_options options = {.capability = 90, .name = "hg_add"};
 *   hg_ptx_info info;
 *   HG_TRY(hg_ptx_module(&allocator, options.capability, &text));     // once a module
 *   HG_TRY(hg_ptx_emit(program, &unit, &options, &text, &info));      // one entry; may be repeated with other names
 *   // terminate with a NUL byte for the driver: hg_array_append(&allocator, &text, NULL, 1)
 *
 * KERNELS. An entry has ONE parameter: a block of bytes (info.argument_bytes, align 8, at most 2048). So a launch is
 *
 *   uint64_t block[HG_PTX_ARGUMENT_BYTES / 8];
 *   hg_ptx_launch shape;
 *   uint32_t missing = hg_ptx_pack(program, &info, &launch, &places, block, &shape);   // 0, or see VARIANTS
 *   void *parameters[] = {block};
 *   cuLaunchKernel(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, stream, parameters, NULL);
 *
 * The grid is always one-dimensional; three-dimensional launches are taken apart in the kernel. Shared memory is static
 * (info.shared_bytes is for information) but for TABLES OF RESULTS: dynamic shared bytes are 0.
 *
 * Two kinds of kernels:
 *  - lanes (!info.observes_block): the program does not see blocks. Tiles of threads x lanes_per_thread lanes, one a
 *    CUDA block. Of vector_only entries a block may have several tiles, up to info.packs, one after the other.
 *  - blocks (info.observes_block): one CUDA block a logical block.
 * shape.blocks is at most 2^31 - 1; while shape.left is not 0, call hg_ptx_next and launch again.
 *
 * VARIANTS. An entry is compiled for the common case. hg_ptx_pack returns 0 when this entry can run this launch, else
 * the flags with which another one must be emitted (keep each once it is made; `or` them with the flags of this one):
 *   HG_PTX_CHECKED        a buffer is shorter than the launch or does not lie at a multiple of 16 (vector_only entries)
 *   HG_PTX_COUNT_STEPS    the step limit is below info.steps
 *   HG_PTX_LARGER_BLOCKS  not an option: emit with options.threads >= out->threads
 *
 * TABLES OF RESULTS. Where info.table_lanes is not 0, the program turns one element of 16 bits into one of 16 bits, by
 * more work than a look-up costs: an entry emitted with HG_PTX_TABULATED first computes what becomes of all 65,536, in
 * HG_PTX_TABLE_BYTES of dynamic shared memory (cuFuncSetAttribute; not every card has them), then looks up. For
 * launches of table_lanes and more. It needs places.fault_record for a counter, which it leaves as it was. Ask the
 * usual entry for table_lanes, and take it again where hg_ptx_pack finds something missing.
 *
 * FAULTS. One record a launch (HG_PTX_FAULT_BYTES of device memory, 8-aligned), not one a block: the kernel keeps in
 * it, under a lock, the lowest lane with a fault and that lane's first fault. Before the FIRST launch and after each
 * launch that faulted it must hold hg_ptx_fault_none() (lane = UINT64_MAX, rest 0); a launch without a fault does not
 * touch it. When a lane faults the kernel also stores 1 to the u32 at places.fault_flag: let that be pinned host memory
 * mapped into the device (cuMemHostAlloc, DEVICEMAP), so that a wait costs no copy when nothing faulted: flag 0 -> no
 * fault; flag 1 -> copy the record back, hg_ptx_fault_read() makes the hg_fault of it, reset flag and record.
 *
 * RESONANCE, PHASE. If info.uses_resonance: places.resonance is 96 int64 of device memory, zeroed by the host before
 * the launch; the kernel adds to it atomically. If info.uses_phase_advance: places.phase_advance is a u32 of device
 * memory, zeroed before the launch; holds the advance modulo 768 afterwards. Both may be NULL where not used.
 *
 * TABLES. info.table_symbol (or HG_PTX_NO_SYMBOL): places.table is device memory that holds `count` hg_ptx_span entries
 * {address, byte_count}; {0, 0} where nothing is bound. Copy them in before the launch.
 *
 * POOLS need no memory of their own: each block's top lives in registers; shares are computed from the pool's bytes.
 *
 * BLOCK SIZE. The entry is compiled for blocks of at most info.max_threads lanes (registers are shared out
 * accordingly): the program's required block, else options.threads, else 1024. Say 256 for linear launches.
 *
 * STEP LIMIT. info.steps is the number of back-edges a lane takes at most when every loop's trip count is proven (then
 * the kernel does not count them), else UINT64_MAX (then it counts).
 *
 * info is plain data without pointers: store it in front of the cubin in the kernel cache (check info.size == sizeof).
 */
#ifndef HG_EMIT_PTX_H
#define HG_EMIT_PTX_H

#include "atlas/interp.h"
#include "compiler/analyse.h"
#include "compiler/expand.h"
#include "ir/ssa.h"

#define HG_PTX_NO_SYMBOL UINT32_MAX

enum {
  HG_PTX_ARGUMENT_BYTES = 2048,  /* enough for every program */
  HG_PTX_MAX_PARAMETERS = 96,    /* buffers, scalars, pools and the table of a program */
  HG_PTX_COUNT_STEPS = 1,        /* options.flags: count every back-edge */
  HG_PTX_CHECKED = 2,            /* a lane a thread, each access checked */
  HG_PTX_TABULATED = 8,          /* see TABLES OF RESULTS */
  HG_PTX_TABLE_THREADS = 1024,
  HG_PTX_TABLE_BYTES = 2 * 65536 + 16,
  HG_PTX_LARGER_BLOCKS = 4       /* said by hg_ptx_pack only: emit with options.threads = out->threads */
};

typedef struct hg_ptx_options {
  uint32_t capability;     /* of the device, major * 10 + minor; 0 or below 80: text for sm_75 */
  uint32_t flags;
  uint32_t threads;        /* most lanes of a block that it will be launched with (256 for linear launches); 0: 1024 */
  uint32_t most_lanes;     /* of a thread; 0: as many as make 16-byte accesses */
  const char *name;        /* of the entry: a C identifier; "hg_" + the program's name is a good one */
  const uint32_t *lines;   /* by instruction number, its line in NAME.atlas for profilers, or 0; NULL: none. The text
                              then is a module of one entry */
  const hg_shape *shape;   /* NULL: any launch */
} hg_ptx_options;

/* Where a parameter of the program lies in the argument block. */
typedef struct hg_ptx_parameter {
  uint16_t symbol;
  uint16_t offset;         /* buffers: address, extent in elements; scalars: 8 bytes; pools: address, byte count, share;
                              tables: address of the entries */
  uint8_t vector; /* of a buffer: 1 if 16-byte accesses are used: then its address should be a multiple of 16 */
  uint8_t kind;            /* atlas_symbol_kind */
  uint8_t element_shift;   /* of a buffer: log2 of an element's bytes */
  uint8_t reserved;
  int64_t reach;           /* of a buffer accessed as [x + lane + #k]: 1 + the largest k; 0: not so */
} hg_ptx_parameter;

typedef struct hg_ptx_info {
  uint32_t size;           /* sizeof(hg_ptx_info) */
  uint32_t argument_bytes;
  uint32_t threads;        /* of lanes kernels: threads a block; of blocks kernels 0: the launch's block decides */
  uint32_t lanes_per_thread;
  uint32_t max_threads;    /* of a block: a launch with larger blocks needs an entry emitted for them */
  uint32_t shared_bytes;
  uint32_t units;          /* multiprocessors of the card, to be set by who loads the entry: blocks of a table form;
                              with little to do for each, blocks have fewer tiles. 0: never fewer */
  uint8_t observes_block, uses_boundary, uses_resonance, uses_phase_advance;
  uint8_t vector_only;     /* nothing is checked: every access must be in bounds and aligned (hg_ptx_pack sees to it) */
  uint8_t is_table;        /* the form with HG_PTX_TABULATED */
  uint8_t packs;           /* of vector_only entries: tiles that a block has at most */
  uint8_t tile_shift;      /* log2 of the lanes of a tile: threads x lanes_per_thread */
  uint8_t reserved[4];
  uint64_t table_lanes;    /* launches of as many lanes and more are faster with HG_PTX_TABULATED; 0: no such form */
  uint64_t steps;
  uint32_t table_symbol;
  uint32_t parameter_count;
  hg_ptx_parameter parameter[HG_PTX_MAX_PARAMETERS];
} hg_ptx_info;

/* Device addresses that are not arguments of the program. (Arguments: launch->arguments[s].span.memory are device
 * addresses too, as for every backend; launch->boundary is the device address of the boundary pool.) */
typedef struct hg_ptx_places {
  uint64_t fault_record, fault_flag, resonance, phase_advance, table;
} hg_ptx_places;

typedef struct hg_ptx_launch {
  uint32_t blocks, threads;
  uint64_t left;           /* blocks for further launches (hg_ptx_next): more than a grid can have */
} hg_ptx_launch;

/* The argument block begins with this. */
typedef struct hg_ptx_header {
  uint64_t lanes, fast_lanes, fault_record, fault_flag, step_limit, boundary, resonance, phase_advance;
  uint64_t first, block_count;   /* CUDA blocks of the launches before; logical blocks in all */
  uint64_t first_lane, whole_lanes; /* vector_only entries: of the launch's first block; in whole packs */
  uint64_t total[2];             /* lanes along x and y (lanes kernels) */
  uint64_t grid[3];              /* in blocks */
  uint32_t block[3], phase;
  uint32_t is_flat;              /* one dimension: the lane's number is block * block size + lane in the block */
  uint32_t block_lanes;          /* of a CUDA block (vector_only entries) */
} hg_ptx_header;

typedef struct hg_ptx_span { uint64_t address, byte_count; } hg_ptx_span;

/* As the kernel writes it. */
typedef struct hg_ptx_fault {
  uint64_t lane;           /* UINT64_MAX: none */
  uint32_t lock;
  uint32_t kind;           /* hg_fault_kind */
  uint32_t instruction;
  uint32_t symbol;         /* HG_PTX_NO_SYMBOL: none; HG_PTX_NO_SYMBOL - 1: "phi" */
  uint32_t code;
  uint32_t index_type;     /* atlas_type of `index`: with displacement it is summed exactly on the host */
  uint64_t index;
  int64_t displacement;
  uint64_t extent;
} hg_ptx_fault;
enum { HG_PTX_FAULT_BYTES = sizeof(hg_ptx_fault) };

/* Once a module, before its entries: version and target. */
hg_status hg_ptx_module(const hg_allocator *allocator, uint32_t capability, hg_array *text);
/* A canonical unit becomes what hg_ptx_emit takes, but for hg_optimise; see compiler/expand.h. */
hg_status hg_ptx_expand(ssa_unit *unit, hg_functions *functions, uint32_t capability);
hg_status hg_ptx_emit(const atlas_program *program, ssa_unit *unit, const hg_ptx_options *options, hg_array *text,
                      hg_ptx_info *info);

/* The argument block and the grid of a launch; 0, or what this entry lacks. Costs some tens of nanoseconds. */
uint32_t hg_ptx_pack(const atlas_program *program, const hg_ptx_info *info, const atlas_launch *launch,
                 const hg_ptx_places *places, void *block, hg_ptx_launch *out);
/* Blocks of a table form. */
uint32_t hg_ptx_table_blocks(uint64_t lanes, uint32_t units);
/* The same for the next launch, while out->left is not 0. */
void hg_ptx_next(void *block, hg_ptx_launch *out);

/* The whole way: canonical form, expansion, optimisation, module and one entry; text ends in a NUL. */
hg_status hg_ptx_compile(const hg_allocator *allocator, const atlas_program *program, const hg_ptx_options *options,
                         hg_array *text, hg_ptx_info *info);

hg_ptx_fault hg_ptx_fault_none(void);
void hg_ptx_fault_read(const atlas_program *program, const atlas_launch *launch, const hg_ptx_fault *record,
                       hg_fault *out);
#endif
