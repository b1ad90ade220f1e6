/* version-1.h - include/hologram/flat/all.h of version 1. `run.py --keep` wrote it. */

enum {
  ATLAS_ISA_VERSION = 1,
  ATLAS_BINARY_VERSION = 1,
  ATLAS_NUMERICS_VERSION = 1,
  ATLAS_MAX_BUFFERS = 24,
  ATLAS_MAX_SCALARS = 64,
  ATLAS_MAX_TABLE_ENTRIES = 65536,
  ATLAS_MAX_POOLS = 4,
  ATLAS_MAX_SYMBOLS = 256,
  ATLAS_MAX_SHARED_BYTES = 232448,
  ATLAS_MAX_LOCAL_BYTES = 4096,
  ATLAS_MAX_CONST_BYTES = 65536,
  ATLAS_MAX_BLOCK_LANES = 1024,
  ATLAS_MAX_CALL_DEPTH = 256,
  ATLAS_MAX_INSTRUCTIONS = 1048576,
  ATLAS_MAX_NAME = 63,
  ATLAS_GENERAL_REGISTERS = 252,
  ATLAS_PREDICATES = 16,
  ATLAS_MAX_OPERANDS = 4,
  ATLAS_CANON_VERSION = 1,
  ATLAS_HASH_BYTES = 32,
  HG_VERSION_MAJOR = 0,
  HG_VERSION_MINOR = 1,
  HG_VERSION_PATCH = 0,
  HG_VERSION_NUMBER = 1000,
  HG_CIRCUIT_VERSION = 1,
  HG_CIRCUIT_MOST_STEPS = 1048576,
  HG_CIRCUIT_HASH_BYTES = 32,
  ATLAS_CLASS_COUNT = 96,
  ATLAS_CLASS_PAGES = 48,
  ATLAS_CLASS_PAGE_BYTES = 256,
  ATLAS_BOUNDARY_POOL_BYTES = 1179648,
  ATLAS_PHASE_COUNT = 768,
  HG_MAX_RANK = 8
};

/* Too large for an enum:
  HG_DEFAULT_STEP_LIMIT = 4294967296 */

const char *hg_version(void);
uint32_t hg_version_number(void);

typedef enum hg_status {
  HG_OK = 0,
  HG_INVALID_ARGUMENT = 1,
  HG_OUT_OF_MEMORY = 2,
  HG_PARSE = 3,
  HG_FORMAT = 4,
  HG_VERIFY = 5,
  HG_NOT_FOUND = 6,
  HG_UNSUPPORTED = 7,
  HG_OUT_OF_RANGE = 8,
  HG_BINDING = 9,
  HG_FAULT = 10,
  HG_IO = 11,
  HG_BUSY = 12,
  HG_DEVICE = 13,
  HG_CANCELLED = 14
} hg_status;

const char *hg_status_name(hg_status status);
const char *hg_status_sentence(hg_status status);
const char *hg_last_error(void);

typedef struct hg_error_info {
  size_t size;
  hg_status status;
  uint32_t line;
  uint32_t column;
  const char *source;
  const char *message;
  int64_t instruction;
  int64_t offset;
} hg_error_info;

hg_status hg_last_error_info(hg_error_info *info);

typedef struct hg_allocator {
  size_t size;
  void *user;
  void *(*allocate)(void *user, size_t size);
  void (*release)(void *user, void *memory);
} hg_allocator;

typedef enum hg_log_level {
  HG_LOG_ERROR = 1,
  HG_LOG_WARNING = 2,
  HG_LOG_INFO = 3,
  HG_LOG_DEBUG = 4
} hg_log_level;

typedef void (*hg_log_callback)(void *user, hg_log_level level, const char *message);
typedef int (*hg_ask_callback)(void *user);

enum {
  ATLAS_REG_BLOCK_LANE = 252,
  ATLAS_REG_BLOCK_INDEX = 253,
  ATLAS_REG_BLOCK_SIZE = 254,
  ATLAS_REG_LANE = 255
};

typedef enum atlas_type {
  ATLAS_NONE = 0,
  ATLAS_i8 = 1,
  ATLAS_i16 = 2,
  ATLAS_i32 = 3,
  ATLAS_i64 = 4,
  ATLAS_u8 = 5,
  ATLAS_u16 = 6,
  ATLAS_u32 = 7,
  ATLAS_u64 = 8,
  ATLAS_f16 = 9,
  ATLAS_bf16 = 10,
  ATLAS_f32 = 11,
  ATLAS_f64 = 12,
  ATLAS_f8e4m3 = 13,
  ATLAS_f8e5m2 = 14,
  ATLAS_bool = 15,
  ATLAS_TYPE_COUNT
} atlas_type;

typedef enum atlas_op {
  ATLAS_OP_none = 0,
  ATLAS_OP_ldg = 0x0101,
  ATLAS_OP_stg = 0x0102,
  ATLAS_OP_lds = 0x0103,
  ATLAS_OP_sts = 0x0104,
  ATLAS_OP_ldc = 0x0105,
  ATLAS_OP_mov = 0x0106,
  ATLAS_OP_movi = 0x0107,
  ATLAS_OP_cvt = 0x0108,
  ATLAS_OP_bitcast = 0x0109,
  ATLAS_OP_sreg = 0x010a,
  ATLAS_OP_ldl = 0x010b,
  ATLAS_OP_stl = 0x010c,
  ATLAS_OP_len = 0x010f,
  ATLAS_OP_add = 0x0201,
  ATLAS_OP_sub = 0x0202,
  ATLAS_OP_mul = 0x0203,
  ATLAS_OP_mulhi = 0x0204,
  ATLAS_OP_div = 0x0205,
  ATLAS_OP_rem = 0x0206,
  ATLAS_OP_mad = 0x0207,
  ATLAS_OP_fma = 0x0208,
  ATLAS_OP_min = 0x0209,
  ATLAS_OP_max = 0x020a,
  ATLAS_OP_abs = 0x020b,
  ATLAS_OP_neg = 0x020c,
  ATLAS_OP_sign = 0x020d,
  ATLAS_OP_copysign = 0x020e,
  ATLAS_OP_dot4_ss = 0x020f,
  ATLAS_OP_dot4_uu = 0x0210,
  ATLAS_OP_dot4_us = 0x0211,
  ATLAS_OP_and = 0x0301,
  ATLAS_OP_or = 0x0302,
  ATLAS_OP_xor = 0x0303,
  ATLAS_OP_not = 0x0304,
  ATLAS_OP_shl = 0x0305,
  ATLAS_OP_shr = 0x0306,
  ATLAS_OP_popc = 0x0307,
  ATLAS_OP_clz = 0x0308,
  ATLAS_OP_ctz = 0x0309,
  ATLAS_OP_brev = 0x030a,
  ATLAS_OP_pand = 0x030b,
  ATLAS_OP_por = 0x030c,
  ATLAS_OP_pxor = 0x030d,
  ATLAS_OP_pnot = 0x030e,
  ATLAS_OP_set_eq = 0x0310,
  ATLAS_OP_set_ne = 0x0311,
  ATLAS_OP_set_lt = 0x0312,
  ATLAS_OP_set_le = 0x0313,
  ATLAS_OP_set_gt = 0x0314,
  ATLAS_OP_set_ge = 0x0315,
  ATLAS_OP_set_num = 0x0316,
  ATLAS_OP_set_nan = 0x0317,
  ATLAS_OP_sel = 0x0318,
  ATLAS_OP_bra = 0x0401,
  ATLAS_OP_loop = 0x0402,
  ATLAS_OP_call = 0x0403,
  ATLAS_OP_ret = 0x0404,
  ATLAS_OP_exit = 0x0405,
  ATLAS_OP_trap = 0x0406,
  ATLAS_OP_bar_sync = 0x0501,
  ATLAS_OP_mem_fence = 0x0502,
  ATLAS_OP_mem_fence_grid = 0x0503,
  ATLAS_OP_atom_add = 0x0510,
  ATLAS_OP_atom_min = 0x0511,
  ATLAS_OP_atom_max = 0x0512,
  ATLAS_OP_atom_and = 0x0513,
  ATLAS_OP_atom_or = 0x0514,
  ATLAS_OP_atom_xor = 0x0515,
  ATLAS_OP_atom_exch = 0x0516,
  ATLAS_OP_atom_cas = 0x0517,
  ATLAS_OP_reduce_add = 0x0601,
  ATLAS_OP_reduce_mul = 0x0602,
  ATLAS_OP_reduce_min = 0x0603,
  ATLAS_OP_reduce_max = 0x0604,
  ATLAS_OP_scan_incl = 0x0605,
  ATLAS_OP_scan_excl = 0x0606,
  ATLAS_OP_vote_any = 0x0607,
  ATLAS_OP_vote_all = 0x0608,
  ATLAS_OP_sqrt = 0x0701,
  ATLAS_OP_rsqrt = 0x0702,
  ATLAS_OP_recip = 0x0703,
  ATLAS_OP_floor = 0x0704,
  ATLAS_OP_ceil = 0x0705,
  ATLAS_OP_trunc = 0x0706,
  ATLAS_OP_round = 0x0707,
  ATLAS_OP_relu = 0x0708,
  ATLAS_OP_fmod = 0x0709,
  ATLAS_OP_cbrt = 0x070a,
  ATLAS_OP_exp = 0x0710,
  ATLAS_OP_exp2 = 0x0711,
  ATLAS_OP_expm1 = 0x0712,
  ATLAS_OP_log = 0x0713,
  ATLAS_OP_log2 = 0x0714,
  ATLAS_OP_log10 = 0x0715,
  ATLAS_OP_log1p = 0x0716,
  ATLAS_OP_pow = 0x0717,
  ATLAS_OP_sin = 0x0720,
  ATLAS_OP_cos = 0x0721,
  ATLAS_OP_tan = 0x0722,
  ATLAS_OP_asin = 0x0723,
  ATLAS_OP_acos = 0x0724,
  ATLAS_OP_atan = 0x0725,
  ATLAS_OP_atan2 = 0x0726,
  ATLAS_OP_sinh = 0x0727,
  ATLAS_OP_cosh = 0x0728,
  ATLAS_OP_tanh = 0x0729,
  ATLAS_OP_sigmoid = 0x0730,
  ATLAS_OP_erf = 0x0731,
  ATLAS_OP_erfc = 0x0732,
  ATLAS_OP_gelu = 0x0733,
  ATLAS_OP_gelu_tanh = 0x0734,
  ATLAS_OP_silu = 0x0735,
  ATLAS_OP_pool_alloc = 0x0801,
  ATLAS_OP_pool_free = 0x0802,
  ATLAS_OP_pool_load = 0x0803,
  ATLAS_OP_pool_store = 0x0804,
  ATLAS_OP_cls_get = 0x0901,
  ATLAS_OP_mirror = 0x0902,
  ATLAS_OP_unity_test = 0x0903,
  ATLAS_OP_nbr_count = 0x0904,
  ATLAS_OP_nbr_get = 0x0905,
  ATLAS_OP_res_accum = 0x0906,
  ATLAS_OP_phase_get = 0x0907,
  ATLAS_OP_phase_adv = 0x0908,
  ATLAS_OP_bound_map = 0x0909
} atlas_op;

typedef enum atlas_access {
  ATLAS_IN = 1,
  ATLAS_OUT = 2,
  ATLAS_INOUT = 3
} atlas_access;

typedef enum atlas_symbol_kind {
  ATLAS_SYMBOL_BUFFER = 1,
  ATLAS_SYMBOL_SCALAR = 2,
  ATLAS_SYMBOL_SHARED = 3,
  ATLAS_SYMBOL_CONST = 4,
  ATLAS_SYMBOL_TABLE = 5,
  ATLAS_SYMBOL_POOL = 6,
  ATLAS_SYMBOL_LOCAL = 7
} atlas_symbol_kind;

typedef struct atlas_symbol {
  char name[64];
  uint8_t kind;
  uint8_t type;
  uint8_t access;
  uint8_t reserved;
  uint32_t count;
  uint32_t const_offset;
  uint64_t handle;
} atlas_symbol;

typedef enum atlas_operand_kind {
  ATLAS_OPERAND_NONE = 0,
  ATLAS_OPERAND_REG = 1,
  ATLAS_OPERAND_PRED = 2,
  ATLAS_OPERAND_IMM = 3,
  ATLAS_OPERAND_SCALAR = 4,
  ATLAS_OPERAND_LABEL = 5,
  ATLAS_OPERAND_COORD = 6,
  ATLAS_OPERAND_POOL = 7,
  ATLAS_OPERAND_MEM = 8,
  ATLAS_OPERAND_BUFFER = 9
} atlas_operand_kind;

typedef enum atlas_address_mode {
  ATLAS_ADDRESS_UNIFORM = 0,
  ATLAS_ADDRESS_INDEXED = 1,
  ATLAS_ADDRESS_PHI = 2,
  ATLAS_ADDRESS_TABLE = 3
} atlas_address_mode;

typedef enum atlas_coord {
  ATLAS_COORD_LANE_X,
  ATLAS_COORD_LANE_Y,
  ATLAS_COORD_LANE_Z,
  ATLAS_COORD_BLOCK_X,
  ATLAS_COORD_BLOCK_Y,
  ATLAS_COORD_BLOCK_Z,
  ATLAS_COORD_BLOCK_SIZE_X,
  ATLAS_COORD_BLOCK_SIZE_Y,
  ATLAS_COORD_BLOCK_SIZE_Z,
  ATLAS_COORD_GRID_SIZE_X,
  ATLAS_COORD_GRID_SIZE_Y,
  ATLAS_COORD_GRID_SIZE_Z,
  ATLAS_COORD_GLOBAL_X,
  ATLAS_COORD_GLOBAL_Y,
  ATLAS_COORD_GLOBAL_Z,
  ATLAS_COORD_COUNT
} atlas_coord;

typedef struct atlas_operand {
  uint8_t kind;
  uint8_t mode;
  uint8_t reg;
  uint8_t reg2;
  uint8_t reg3;
  uint8_t phi_registers;
  uint16_t symbol;
  uint64_t bits;
} atlas_operand;

typedef struct atlas_insn {
  uint16_t op;
  uint8_t type;
  uint8_t type2;
  uint8_t guard;
  uint8_t operand_count;
  uint16_t reserved;
  uint32_t line;
  uint32_t reserved2;
  atlas_operand operand[4];
} atlas_insn;

typedef struct atlas_label {
  char name[64];
  uint32_t target;
} atlas_label;

const char *atlas_type_name(atlas_type type);
uint32_t atlas_type_bits(atlas_type type);
atlas_type atlas_type_from_name(const char *name);
const char *atlas_op_name(atlas_op op);
atlas_op atlas_op_from_name(const char *mnemonic);
int atlas_op_has_type(atlas_op op, atlas_type type);
size_t atlas_op_count(void);
atlas_op atlas_op_at(size_t index);
typedef struct atlas_program atlas_program;
hg_status atlas_parse(const hg_allocator *allocator, const char *text, size_t length, const char *source_name,
    atlas_program **out);
hg_status atlas_decode(const hg_allocator *allocator, const void *bytes, size_t length, atlas_program **out);
hg_status atlas_print(const hg_allocator *allocator, const atlas_program *program, char **text, size_t *length);
hg_status atlas_encode(const hg_allocator *allocator, const atlas_program *program, void **bytes, size_t *length);
void atlas_memory_release(const hg_allocator *allocator, void *memory);
atlas_program *atlas_program_retain(atlas_program *program);
void atlas_program_release(atlas_program *program);
const char *atlas_program_name(const atlas_program *program);
const atlas_insn *atlas_program_insns(const atlas_program *program, size_t *count);
const atlas_symbol *atlas_program_symbols(const atlas_program *program, size_t *count);
const atlas_label *atlas_program_labels(const atlas_program *program, size_t *count);
const uint8_t *atlas_program_constants(const atlas_program *program, size_t *byte_count);
void atlas_program_block(const atlas_program *program, uint32_t block[3]);
void atlas_program_default_block(const atlas_program *program, uint32_t block[3]);
int atlas_program_observes_block(const atlas_program *program);
int atlas_program_is_library(const atlas_program *program);
hg_status atlas_program_hash(const atlas_program *program, uint8_t digest[32]);
hg_status atlas_canonicalise(const hg_allocator *allocator, const atlas_program *program, atlas_program **out);
hg_status atlas_print_canonical(const hg_allocator *allocator, const atlas_program *program, char **text,
    size_t *length);
hg_status atlas_print_ssa(const hg_allocator *allocator, const atlas_program *program, char **text, size_t *length);
typedef struct atlas_builder atlas_builder;
hg_status atlas_builder_create(const hg_allocator *allocator, const char *program_name, atlas_builder **out);
void atlas_builder_release(atlas_builder *builder);
hg_status atlas_builder_finish(atlas_builder *builder, atlas_program **out);
uint16_t atlas_builder_buffer(atlas_builder *builder, const char *name, atlas_type type, atlas_access access);
uint16_t atlas_builder_scalar(atlas_builder *builder, const char *name, atlas_type type);
uint16_t atlas_builder_shared(atlas_builder *builder, const char *name, atlas_type type, uint32_t count);
uint16_t atlas_builder_local(atlas_builder *builder, const char *name, atlas_type type, uint32_t count);
uint16_t atlas_builder_const(atlas_builder *builder, const char *name, atlas_type type, uint32_t count,
    const void *values);
uint16_t atlas_builder_table(atlas_builder *builder, const char *name, uint32_t count, atlas_access access);
uint16_t atlas_builder_pool(atlas_builder *builder, const char *name);
void atlas_builder_block(atlas_builder *builder, uint32_t x, uint32_t y, uint32_t z);
void atlas_builder_default_block(atlas_builder *builder, uint32_t x, uint32_t y, uint32_t z);
uint16_t atlas_builder_handle(atlas_builder *builder, uint64_t handle, atlas_type type, atlas_access access);
atlas_operand atlas_builder_buffer_offset(atlas_builder *builder, uint64_t handle, atlas_type type, atlas_access access,
    uint64_t byte_offset);
uint32_t atlas_builder_label(atlas_builder *builder, const char *name);
void atlas_builder_place(atlas_builder *builder, uint32_t label);
void atlas_builder_line(atlas_builder *builder, uint32_t line);
void atlas_builder_insn(atlas_builder *builder, const atlas_insn *insn);
void atlas_emit_operands(atlas_builder *builder, atlas_op op, atlas_type type, atlas_type type2,
    const atlas_operand *operands, size_t operand_count);
void atlas_emit(atlas_builder *builder, atlas_op op, atlas_type type, int operand_count, ...);
void atlas_emit2(atlas_builder *builder, atlas_op op, atlas_type to, atlas_type from, atlas_operand destination,
    atlas_operand source);
void atlas_emit_branch(atlas_builder *builder, int predicate, int negated, uint32_t label);
atlas_operand atlas_reg(uint32_t number);
atlas_operand atlas_pred(uint32_t number);
atlas_operand atlas_discard(void);
atlas_operand atlas_bits(uint64_t bits);
atlas_operand atlas_f32_const(float value);
atlas_operand atlas_f64_const(double value);
atlas_operand atlas_int_const(atlas_type type, int64_t value);
atlas_operand atlas_scalar(uint16_t symbol);
atlas_operand atlas_pool(uint16_t symbol);
atlas_operand atlas_buffer(uint16_t symbol);
atlas_operand atlas_label_ref(uint32_t label);
atlas_operand atlas_coordinate(atlas_coord coord);
atlas_operand atlas_mem(uint16_t symbol, int64_t displacement);
atlas_operand atlas_mem_lane(uint16_t symbol, int64_t displacement);
atlas_operand atlas_mem_reg(uint16_t symbol, uint32_t reg, int64_t displacement);
atlas_operand atlas_mem_phi(uint32_t class_index, uint32_t page, uint32_t byte);
atlas_operand atlas_mem_phi_reg(uint32_t class_reg, uint32_t page_reg, uint32_t byte_reg);
atlas_operand atlas_mem_table(uint16_t symbol, uint32_t entry_reg, uint32_t offset_reg);
typedef struct hg_executor hg_executor;

typedef enum hg_backend_id {
  HG_BACKEND_AUTO = 0,
  HG_BACKEND_CPU = 1,
  HG_BACKEND_METAL = 2,
  HG_BACKEND_CUDA = 3
} hg_backend_id;

typedef struct hg_executor_desc {
  size_t size;
  hg_backend_id backend;
  const hg_allocator *allocator;
  hg_log_callback log;
  void *log_user;
  uint32_t device;
  uint32_t reserved;
} hg_executor_desc;

hg_status hg_executor_create(const hg_executor_desc *desc, hg_executor **out);
hg_executor *hg_executor_retain(hg_executor *executor);
void hg_executor_release(hg_executor *executor);
hg_status hg_cancel(hg_executor *executor);

typedef struct hg_executor_info {
  size_t size;
  hg_backend_id backend;
  const char *backend_name;
  const char *device_name;
  const char *selection;
  const char *engine;
  uint32_t compute_units;
  uint32_t max_block_lanes;
  uint32_t max_shared_bytes;
  uint64_t memory_bytes;
  uint32_t isa_version, numerics_version;
} hg_executor_info;

hg_status hg_executor_query(hg_executor *executor, hg_executor_info *info);

typedef struct hg_counts {
  size_t size;
  uint64_t launches;
  uint64_t moved_bytes;
  uint64_t plans;
  uint64_t compilations;
  uint64_t allocations;
  uint64_t allocated_bytes;
} hg_counts;

hg_status hg_executor_count(hg_executor *executor, hg_counts *counts);

typedef struct hg_backend_info {
  size_t size;
  hg_backend_id id;
  const char *name;
  int available;
  char reason[192];
  uint32_t reserved;
} hg_backend_info;

hg_status hg_backend_query(size_t index, hg_backend_info *info);
hg_status hg_backend_by_name(const char *name, hg_backend_id *id);
typedef struct hg_buffer hg_buffer;
typedef struct hg_stream hg_stream;

enum {
  HG_BUFFER_UNINIT = 1
};

typedef struct hg_buffer_desc {
  size_t size;
  uint32_t flags;
  uint32_t alignment;
} hg_buffer_desc;

hg_status hg_buffer_create(hg_executor *executor, const hg_buffer_desc *desc, uint64_t byte_count, hg_buffer **out);
hg_status hg_buffer_import(hg_executor *executor, void *memory, uint64_t byte_count, hg_buffer **out);
hg_status hg_buffer_view(hg_buffer *parent, uint64_t offset, uint64_t byte_count, hg_buffer **out);
hg_buffer *hg_buffer_retain(hg_buffer *buffer);
void hg_buffer_release(hg_buffer *buffer);
uint64_t hg_buffer_size(const hg_buffer *buffer);
uint64_t hg_buffer_handle(const hg_buffer *buffer);
void *hg_buffer_address(const hg_buffer *buffer);
hg_status hg_buffer_write(hg_buffer *buffer, uint64_t offset, const void *source, uint64_t byte_count);
hg_status hg_buffer_read(hg_buffer *buffer, uint64_t offset, void *destination, uint64_t byte_count);
hg_status hg_buffer_copy(hg_buffer *destination, uint64_t destination_offset, hg_buffer *source, uint64_t source_offset,
    uint64_t byte_count);
hg_status hg_buffer_fill(hg_buffer *buffer, uint64_t offset, uint64_t byte_count, const void *pattern,
    size_t pattern_size);
hg_status hg_buffer_map(hg_buffer *buffer, void **memory);
hg_status hg_buffer_unmap(hg_buffer *buffer);

typedef struct hg_memory_info {
  size_t size;
  uint64_t in_use;
  uint64_t most_in_use;
  uint64_t kept;
  uint64_t kept_most;
  uint64_t device_free, device_bytes;
} hg_memory_info;

hg_status hg_memory_query(hg_executor *executor, hg_memory_info *info);
hg_status hg_memory_trim(hg_executor *executor);
hg_status hg_memory_keep(hg_executor *executor, uint64_t byte_count);

typedef struct hg_stream_desc {
  size_t size;
  uint32_t flags;
  void *foreign;
} hg_stream_desc;

hg_status hg_stream_create(hg_executor *executor, const hg_stream_desc *desc, hg_stream **out);
hg_stream *hg_stream_retain(hg_stream *stream);
void hg_stream_release(hg_stream *stream);
hg_status hg_stream_query(hg_stream *stream);
hg_status hg_host_allocate(hg_executor *executor, uint64_t byte_count, void **memory);
void hg_host_release(hg_executor *executor, void *memory);
hg_status hg_buffer_write_async(hg_buffer *buffer, uint64_t offset, const void *source, uint64_t byte_count,
    hg_stream *stream);
hg_status hg_buffer_read_async(hg_buffer *buffer, uint64_t offset, void *destination, uint64_t byte_count,
    hg_stream *stream);
hg_status hg_buffer_copy_async(hg_buffer *destination, uint64_t destination_offset, hg_buffer *source,
    uint64_t source_offset, uint64_t byte_count, hg_stream *stream);
hg_status hg_buffer_fill_async(hg_buffer *buffer, uint64_t offset, uint64_t byte_count, const void *pattern,
    size_t pattern_size, hg_stream *stream);
typedef struct hg_event hg_event;

enum {
  HG_EVENT_TIMED = 1
};

typedef struct hg_event_desc {
  size_t size;
  uint32_t flags;
  uint32_t reserved;
} hg_event_desc;

hg_status hg_event_create(hg_executor *executor, const hg_event_desc *desc, hg_event **out);
void hg_event_release(hg_event *event);
hg_status hg_event_record(hg_event *event, hg_stream *stream);
hg_status hg_stream_wait_event(hg_stream *stream, hg_event *event);
hg_status hg_event_wait(hg_event *event);
hg_status hg_event_query(hg_event *event);
hg_status hg_event_elapsed(hg_event *from, hg_event *to, double *nanoseconds);
typedef struct hg_pool hg_pool;
hg_status hg_pool_create(hg_executor *executor, uint64_t byte_count, hg_pool **out);
void hg_pool_release(hg_pool *pool);
hg_status hg_pool_allocate(hg_pool *pool, uint64_t byte_count, uint64_t alignment, uint64_t *offset);
hg_status hg_pool_free(hg_pool *pool, uint64_t offset);
uint64_t hg_pool_size(const hg_pool *pool);
uint64_t hg_pool_used(const hg_pool *pool);
hg_status hg_pool_write(hg_pool *pool, uint64_t offset, const void *source, uint64_t byte_count);
hg_status hg_pool_read(hg_pool *pool, uint64_t offset, void *destination, uint64_t byte_count);
hg_status hg_pool_buffer(hg_pool *pool, uint64_t offset, uint64_t byte_count, hg_buffer **out);
typedef struct hg_kernel hg_kernel;
hg_status hg_kernel_create(hg_executor *executor, atlas_program *program, hg_kernel **out);
hg_status hg_kernel_create_async(hg_executor *executor, atlas_program *program, hg_kernel **out, hg_event *event);
hg_kernel *hg_kernel_retain(hg_kernel *kernel);
void hg_kernel_release(hg_kernel *kernel);

typedef struct hg_kernel_info {
  size_t size;
  const char *name;
  uint8_t hash[32];
  const char *backend;
  const char *engine;
  const char *why;
  uint32_t parameter_count;
  uint32_t block[3];
  uint32_t default_block[3];
  uint32_t registers;
  uint32_t local_bytes;
  uint32_t shared_bytes;
} hg_kernel_info;

hg_status hg_kernel_query(hg_kernel *kernel, hg_kernel_info *info);

typedef struct hg_parameter_info {
  size_t size;
  const char *name;
  uint32_t slot;
  uint8_t kind;
  uint8_t type;
  uint8_t access;
  uint8_t is_required;
  uint32_t entry_count;
  uint32_t alignment;
} hg_parameter_info;

hg_status hg_kernel_parameter(hg_kernel *kernel, size_t index, hg_parameter_info *info);

typedef struct hg_binding {
  const char *name;
  uint32_t slot;
  uint32_t entry;
  hg_buffer *buffer;
  uint64_t offset;
  uint64_t byte_count;
  uint64_t reserved[3];
} hg_binding;

typedef struct hg_scalar {
  const char *name;
  uint32_t slot;
  uint8_t type;
  uint8_t reserved[3];
  uint64_t bits;
  uint64_t reserved2;
} hg_scalar;

enum {
  HG_LAUNCH_UNITY_NEUTRAL = 1
};

typedef struct hg_launch_desc {
  size_t size;
  uint64_t lanes;
  uint32_t grid[3];
  uint32_t block[3];
  const hg_binding *bindings;
  size_t binding_count;
  size_t binding_size;
  const hg_scalar *scalars;
  size_t scalar_count;
  size_t scalar_size;
  uint64_t step_limit;
  uint32_t flags;
  hg_stream *stream;
} hg_launch_desc;

typedef enum hg_fault_kind {
  HG_FAULT_NONE = 0,
  HG_FAULT_OUT_OF_BOUNDS = 1,
  HG_FAULT_MISALIGNED = 2,
  HG_FAULT_TRAP = 3,
  HG_FAULT_STEP_LIMIT = 4,
  HG_FAULT_CLASS = 5,
  HG_FAULT_POOL = 6,
  HG_FAULT_UNITY = 7
} hg_fault_kind;

typedef struct hg_fault {
  hg_fault_kind kind;
  uint32_t instruction;
  uint32_t line;
  uint32_t code;
  uint64_t lane;
  char buffer[64];
  int64_t index;
  int64_t extent;
  int64_t number;
  uint64_t length;
  uint32_t axis;
  uint32_t has_number;
} hg_fault;

typedef struct hg_launch_report {
  size_t size;
  hg_fault fault;
  uint64_t lanes;
  uint64_t nanoseconds;
  const char *backend;
  const char *engine;
  const char *notes;
} hg_launch_report;

hg_status hg_launch(hg_kernel *kernel, const hg_launch_desc *desc, hg_launch_report *report);
hg_status hg_stream_wait(hg_stream *stream, hg_launch_report *report);
typedef struct hg_graph hg_graph;
hg_status hg_capture_begin(hg_stream *stream);
hg_status hg_capture_end(hg_stream *stream, hg_graph **out);
hg_status hg_graph_launch(hg_graph *graph, hg_stream *stream);
void hg_graph_release(hg_graph *graph);
const char *hg_fault_kind_name(hg_fault_kind kind);

typedef struct hg_emit_target_info {
  size_t size;
  const char *name;
  const char *machine;
  uint32_t least_capability, most_capability;
} hg_emit_target_info;

hg_status hg_emit_target_query(size_t index, hg_emit_target_info *info);
hg_status hg_emit(const hg_allocator *allocator, const atlas_program *program, const char *target, uint32_t capability,
    void **bytes, size_t *byte_count);

typedef enum hg_cache_state {
  HG_CACHE_OK,
  HG_CACHE_DAMAGED,
  HG_CACHE_UNREADABLE,
  HG_CACHE_NO_ENTRY,
  HG_CACHE_REFUSED
} hg_cache_state;

typedef struct hg_cache_file {
  size_t size;
  const char *name;
  hg_cache_state state;
  uint64_t byte_count;
  int64_t used_ns;
  uint8_t program[32];
  const char *target, *driver;
  uint32_t compiler_version;
  uint64_t specialisation_bytes, payload_bytes;
} hg_cache_file;

typedef struct hg_cache_info {
  size_t size;
  const char *problem;
  uint64_t byte_cap;
  char folder[4096];
  const char *remark;
} hg_cache_info;

hg_status hg_cache_query(hg_cache_info *info);
hg_status hg_cache_visit(int read, void (*visit)(void *user, const hg_cache_file *file), void *user);
hg_status hg_cache_remove(const char *name);
uint32_t atlas_class_of_byte(uint8_t byte);
uint8_t atlas_class_byte(uint32_t class_index);
uint32_t atlas_class_mirror(uint32_t class_index);
int atlas_class_is_unity(uint32_t class_index);
uint32_t atlas_class_neighbour_count(uint32_t class_index);
int32_t atlas_class_neighbour(uint32_t class_index, uint32_t number);
int64_t atlas_boundary_offset(uint32_t class_index, uint32_t page, uint32_t byte);
hg_status hg_executor_resonance(hg_executor *executor, int64_t counters[96]);
hg_status hg_executor_resonance_reset(hg_executor *executor);
hg_status hg_executor_phase(hg_executor *executor, uint32_t *phase);
hg_status hg_executor_set_phase(hg_executor *executor, uint32_t phase);
hg_status hg_boundary_write(hg_executor *executor, uint64_t offset, const void *source, uint64_t byte_count);
hg_status hg_boundary_read(hg_executor *executor, uint64_t offset, void *destination, uint64_t byte_count);
hg_status hg_boundary_buffer(hg_executor *executor, uint64_t offset, uint64_t byte_count, hg_buffer **out);
typedef struct hg_circuit hg_circuit;
hg_status hg_circuit_parse(const hg_allocator *allocator, const char *text, size_t length, const char *source_name,
    hg_circuit **out);
hg_status hg_circuit_inverse(const hg_circuit *circuit, hg_circuit **out);
hg_circuit *hg_circuit_retain(hg_circuit *circuit);
void hg_circuit_release(hg_circuit *circuit);
hg_status hg_circuit_canonical(const hg_allocator *allocator, const hg_circuit *circuit, char **text, size_t *length);
hg_status hg_circuit_terms(const hg_allocator *allocator, const hg_circuit *circuit, char **text, size_t *length);
hg_status hg_circuit_steps(const hg_allocator *allocator, const hg_circuit *circuit, char **text, size_t *length);
void hg_circuit_hash(const hg_circuit *circuit, uint8_t digest[32]);

typedef struct hg_circuit_report {
  size_t size;
  uint64_t steps;
  uint64_t canonical_steps;
  uint64_t operations;
  uint32_t changed;
  uint32_t temporaries;
  uint32_t components;
  uint32_t lanes;
} hg_circuit_report;

hg_status hg_circuit_query(const hg_circuit *circuit, hg_circuit_report *report);

typedef struct hg_circuit_law {
  size_t size;
  const char *name;
  const char *statement;
  uint64_t count;
} hg_circuit_law;

hg_status hg_circuit_law_query(const hg_circuit *circuit, size_t index, hg_circuit_law *law);
hg_status hg_circuit_compile(const hg_allocator *allocator, const hg_circuit *circuit, atlas_program **out);
hg_status hg_circuit_run(const hg_circuit *circuit, hg_executor *executor, hg_launch_report *report);

typedef struct hg_tensor {
  hg_buffer *buffer;
  uint32_t type;
  uint32_t rank;
  int64_t offset;
  uint64_t shape[8];
  int64_t stride[8];
  uint64_t reserved[2];
} hg_tensor;

hg_tensor hg_tensor_of(hg_buffer *buffer, atlas_type type, uint32_t rank, const uint64_t *shape);
hg_status hg_tensor_create(hg_executor *executor, atlas_type type, uint32_t rank, const uint64_t *shape,
    hg_tensor *out);
hg_status hg_tensor_permute(const hg_tensor *tensor, const int64_t *axes, hg_tensor *out);
hg_status hg_tensor_slice(const hg_tensor *tensor, int64_t axis, int64_t start, int64_t stop, int64_t step,
    hg_tensor *out);
hg_status hg_tensor_broadcast(const hg_tensor *tensor, uint32_t rank, const uint64_t *shape, hg_tensor *out);
hg_status hg_tensor_reshape(const hg_tensor *tensor, uint32_t rank, const uint64_t *shape, hg_tensor *out);
uint64_t hg_tensor_count(const hg_tensor *tensor);
hg_status hg_tensor_extent(const hg_tensor *tensor, int64_t *lowest, uint64_t *count);
hg_status hg_tensor_load(hg_executor *executor, const char *path, hg_tensor *out);
hg_status hg_tensor_save(const hg_tensor *tensor, const char *path);
typedef struct hg_tensors hg_tensors;
hg_status hg_tensors_load(hg_executor *executor, const char *path, hg_tensors **out);
size_t hg_tensors_count(const hg_tensors *tensors);
const char *hg_tensors_name(const hg_tensors *tensors, size_t index);
const hg_tensor *hg_tensors_at(const hg_tensors *tensors, size_t index);
void hg_tensors_release(hg_tensors *tensors);
hg_status hg_tensors_save(const char *const *names, const hg_tensor *tensors, size_t count, const char *path);
hg_status hg_tensors_save_texts(const char *const *names, const hg_tensor *tensors, size_t count,
    const char *const *texts, size_t text_count, const char *path);
const char *hg_tensors_text(const hg_tensors *tensors, size_t index);

typedef enum hg_op {
  HG_OP_none = 0,
  HG_OP_add = 0x0101,
  HG_OP_sub = 0x0102,
  HG_OP_mul = 0x0103,
  HG_OP_div = 0x0104,
  HG_OP_rem = 0x0105,
  HG_OP_fmod = 0x0106,
  HG_OP_mulhi = 0x0107,
  HG_OP_fma = 0x0108,
  HG_OP_mad = 0x0109,
  HG_OP_minimum = 0x010a,
  HG_OP_maximum = 0x010b,
  HG_OP_abs = 0x010c,
  HG_OP_neg = 0x010d,
  HG_OP_sign = 0x010e,
  HG_OP_copysign = 0x010f,
  HG_OP_reciprocal = 0x0110,
  HG_OP_sqrt = 0x0111,
  HG_OP_rsqrt = 0x0112,
  HG_OP_cbrt = 0x0113,
  HG_OP_floor = 0x0114,
  HG_OP_ceil = 0x0115,
  HG_OP_trunc = 0x0116,
  HG_OP_round = 0x0117,
  HG_OP_stop_gradient = 0x0118,
  HG_OP_exp = 0x0120,
  HG_OP_exp2 = 0x0121,
  HG_OP_expm1 = 0x0122,
  HG_OP_log = 0x0123,
  HG_OP_log2 = 0x0124,
  HG_OP_log10 = 0x0125,
  HG_OP_log1p = 0x0126,
  HG_OP_pow = 0x0127,
  HG_OP_sin = 0x0128,
  HG_OP_cos = 0x0129,
  HG_OP_tan = 0x012a,
  HG_OP_asin = 0x012b,
  HG_OP_acos = 0x012c,
  HG_OP_atan = 0x012d,
  HG_OP_atan2 = 0x012e,
  HG_OP_sinh = 0x012f,
  HG_OP_cosh = 0x0130,
  HG_OP_tanh = 0x0131,
  HG_OP_sigmoid = 0x0132,
  HG_OP_erf = 0x0133,
  HG_OP_erfc = 0x0134,
  HG_OP_relu = 0x0135,
  HG_OP_gelu = 0x0136,
  HG_OP_gelu_tanh = 0x0137,
  HG_OP_equal = 0x0140,
  HG_OP_not_equal = 0x0141,
  HG_OP_less = 0x0142,
  HG_OP_less_equal = 0x0143,
  HG_OP_greater = 0x0144,
  HG_OP_greater_equal = 0x0145,
  HG_OP_logical_and = 0x0146,
  HG_OP_logical_or = 0x0147,
  HG_OP_logical_xor = 0x0148,
  HG_OP_logical_not = 0x0149,
  HG_OP_where = 0x014a,
  HG_OP_bitwise_and = 0x0150,
  HG_OP_bitwise_or = 0x0151,
  HG_OP_bitwise_xor = 0x0152,
  HG_OP_bitwise_not = 0x0153,
  HG_OP_shift_left = 0x0154,
  HG_OP_shift_right = 0x0155,
  HG_OP_popcount = 0x0156,
  HG_OP_leading_zeros = 0x0157,
  HG_OP_trailing_zeros = 0x0158,
  HG_OP_reverse_bits = 0x0159,
  HG_OP_dot4_ss = 0x015a,
  HG_OP_dot4_uu = 0x015b,
  HG_OP_dot4_us = 0x015c,
  HG_OP_cast = 0x0160,
  HG_OP_bitcast = 0x0161,
  HG_OP_reshape = 0x0201,
  HG_OP_permute = 0x0202,
  HG_OP_swap = 0x0203,
  HG_OP_slice = 0x0204,
  HG_OP_flip = 0x0205,
  HG_OP_broadcast = 0x0206,
  HG_OP_expand = 0x0207,
  HG_OP_squeeze = 0x0208,
  HG_OP_axis_numbers = 0x0209,
  HG_OP_sum = 0x0301,
  HG_OP_prod = 0x0302,
  HG_OP_min = 0x0303,
  HG_OP_max = 0x0304,
  HG_OP_any = 0x0305,
  HG_OP_all = 0x0306,
  HG_OP_argmin = 0x0307,
  HG_OP_argmax = 0x0308,
  HG_OP_cumulative_sum = 0x0309,
  HG_OP_dot = 0x0401,
  HG_OP_matvec = 0x0402,
  HG_OP_matmul = 0x0403,
  HG_OP_take = 0x0501,
  HG_OP_take_along = 0x0502,
  HG_OP_scatter = 0x0503,
  HG_OP_scatter_add = 0x0504,
  HG_OP_sort_with_places = 0x0505,
  HG_OP_random_bits = 0x0601,
  HG_OP_uniform = 0x0602,
  HG_OP_normal = 0x0603,
  HG_OP_integers = 0x0604,
  HG_OP_concatenate = 0x0701,
  HG_OP_stack = 0x0702,
  HG_OP_pad = 0x0703,
  HG_OP_update = 0x0704,
  HG_OP_full = 0x0801,
  HG_OP_arange = 0x0802,
  HG_OP_eye = 0x0803,
  HG_OP_one_hot = 0x0804,
  HG_OP_mean = 0x1001,
  HG_OP_var = 0x1002,
  HG_OP_std = 0x1003,
  HG_OP_norm = 0x1004,
  HG_OP_logsumexp = 0x1005,
  HG_OP_count_nonzero = 0x1006,
  HG_OP_global_norm = 0x1007,
  HG_OP_softmax = 0x1101,
  HG_OP_log_softmax = 0x1102,
  HG_OP_layer_norm = 0x1103,
  HG_OP_rms_norm = 0x1104,
  HG_OP_batch_norm = 0x1105,
  HG_OP_group_norm = 0x1106,
  HG_OP_instance_norm = 0x1107,
  HG_OP_normalize = 0x1108,
  HG_OP_softmin = 0x1109,
  HG_OP_glu = 0x110a,
  HG_OP_prelu = 0x110b,
  HG_OP_square = 0x1201,
  HG_OP_clip = 0x1202,
  HG_OP_lerp = 0x1203,
  HG_OP_leaky_relu = 0x1204,
  HG_OP_elu = 0x1205,
  HG_OP_silu = 0x1206,
  HG_OP_softplus = 0x1207,
  HG_OP_hardswish = 0x1208,
  HG_OP_mish = 0x1209,
  HG_OP_isnan = 0x120a,
  HG_OP_isinf = 0x120b,
  HG_OP_isfinite = 0x120c,
  HG_OP_floor_divide = 0x120d,
  HG_OP_remainder = 0x120e,
  HG_OP_logaddexp = 0x120f,
  HG_OP_floor_of_quotient = 0x1210,
  HG_OP_clamp = 0x1211,
  HG_OP_asinh = 0x1212,
  HG_OP_acosh = 0x1213,
  HG_OP_atanh = 0x1214,
  HG_OP_hypot = 0x1215,
  HG_OP_nextafter = 0x1216,
  HG_OP_relu6 = 0x1281,
  HG_OP_hardtanh = 0x1282,
  HG_OP_hardsigmoid = 0x1283,
  HG_OP_selu = 0x1284,
  HG_OP_celu = 0x1285,
  HG_OP_softsign = 0x1286,
  HG_OP_logsigmoid = 0x1287,
  HG_OP_tanhshrink = 0x1288,
  HG_OP_softshrink = 0x1289,
  HG_OP_hardshrink = 0x128a,
  HG_OP_threshold = 0x128b,
  HG_OP_at_least = 0x128c,
  HG_OP_total = 0x1301,
  HG_OP_mse = 0x1302,
  HG_OP_l1 = 0x1303,
  HG_OP_huber = 0x1304,
  HG_OP_nll = 0x1305,
  HG_OP_logit_nll = 0x1306,
  HG_OP_cross_entropy = 0x1307,
  HG_OP_cross_entropy_of_classes = 0x1308,
  HG_OP_cross_entropy_of_shares = 0x1309,
  HG_OP_bce_of = 0x130a,
  HG_OP_bce = 0x130b,
  HG_OP_bce_with_logits = 0x130c,
  HG_OP_kl_div = 0x130d,
  HG_OP_bce_logit_of = 0x130e,
  HG_OP_smooth_l1 = 0x130f,
  HG_OP_poisson_nll = 0x1310,
  HG_OP_gaussian_nll = 0x1311,
  HG_OP_margin_ranking = 0x1312,
  HG_OP_hinge_embedding = 0x1313,
  HG_OP_multi_margin = 0x1314,
  HG_OP_cosine_similarity = 0x1315,
  HG_OP_cosine_embedding = 0x1316,
  HG_OP_pairwise_distance = 0x1317,
  HG_OP_triplet_margin = 0x1318,
  HG_OP_cdist = 0x1319,
  HG_OP_cdist_slope = 0x131a,
  HG_OP_gemm = 0x1401,
  HG_OP_linear = 0x1402,
  HG_OP_embedding = 0x1403,
  HG_OP_dropout = 0x1404,
  HG_OP_triu = 0x1405,
  HG_OP_tril = 0x1406,
  HG_OP_sgd = 0x1501,
  HG_OP_adam = 0x1502,
  HG_OP_adamw = 0x1503,
  HG_OP_clip_norm = 0x1504,
  HG_OP_rmsprop = 0x1505,
  HG_OP_adagrad = 0x1506,
  HG_OP_adamax = 0x1507,
  HG_OP_nadam = 0x1508,
  HG_OP_lion = 0x1509,
  HG_OP_amsgrad = 0x150a,
  HG_OP_isclose = 0x1601,
  HG_OP_allclose = 0x1602,
  HG_OP_nan_to_num = 0x1603,
  HG_OP_isposinf = 0x1604,
  HG_OP_isneginf = 0x1605,
  HG_OP_nansum = 0x1606,
  HG_OP_nanmean = 0x1607,
  HG_OP_nanmin = 0x1608,
  HG_OP_nanmax = 0x1609,
  HG_OP_nanargmin = 0x160a,
  HG_OP_nanargmax = 0x160b,
  HG_OP_var_mean = 0x160c,
  HG_OP_std_mean = 0x160d,
  HG_OP_degrees = 0x160e,
  HG_OP_radians = 0x160f,
  HG_OP_divmod = 0x1610,
  HG_OP_fmin = 0x1611,
  HG_OP_fmax = 0x1612,
  HG_OP_euclid = 0x1613,
  HG_OP_gcd = 0x1614,
  HG_OP_lcm = 0x1615,
  HG_OP_round_to = 0x1616,
  HG_OP_outer = 0x1617,
  HG_OP_cross = 0x1618,
  HG_OP_nanvar = 0x1619,
  HG_OP_nanstd = 0x161a,
  HG_OP_window_places = 0x1640,
  HG_OP_hann = 0x1641,
  HG_OP_hamming = 0x1642,
  HG_OP_blackman = 0x1643,
  HG_OP_bartlett = 0x1644,
  HG_OP_kaiser = 0x1645,
  HG_OP_uniform_open = 0x1650,
  HG_OP_exponential = 0x1651,
  HG_OP_gumbel = 0x1652,
  HG_OP_laplace = 0x1653,
  HG_OP_truncated_normal = 0x1654,
  HG_OP_logit = 0x1701,
  HG_OP_xlogy = 0x1702,
  HG_OP_xlog1py = 0x1703,
  HG_OP_entr = 0x1704,
  HG_OP_sinc = 0x1705,
  HG_OP_ndtr = 0x1706,
  HG_OP_log_ndtr = 0x1707,
  HG_OP_ndtr_tail = 0x1708,
  HG_OP_ndtri_of = 0x1709,
  HG_OP_ndtri = 0x170a,
  HG_OP_erfinv = 0x170b,
  HG_OP_lgamma = 0x170c,
  HG_OP_digamma = 0x170d,
  HG_OP_trigamma = 0x170e,
  HG_OP_tetragamma = 0x170f,
  HG_OP_polygamma = 0x1710,
  HG_OP_i0 = 0x1711,
  HG_OP_i1 = 0x1712,
  HG_OP_lower_solve = 0x1801,
  HG_OP_upper_solve = 0x1802,
  HG_OP_triangular_solve = 0x1803,
  HG_OP_cholesky_lower = 0x1804,
  HG_OP_cholesky = 0x1805,
  HG_OP_lu = 0x1806,
  HG_OP_lu_solve = 0x1807,
  HG_OP_solve = 0x1808,
  HG_OP_lu_sign = 0x1809,
  HG_OP_det = 0x180a,
  HG_OP_log_abs_det = 0x180b,
  HG_OP_qr_packed = 0x180c,
  HG_OP_qr_complete = 0x180d,
  HG_OP_qr = 0x180e,
  HG_OP_eigh_packed = 0x180f,
  HG_OP_eigh = 0x1810,
  HG_OP_svd_rotated = 0x1811,
  HG_OP_svd_packed = 0x1812,
  HG_OP_svd = 0x1813,
  HG_OP_pinv = 0x1814,
  HG_OP_forward_solve = 0x1815,
  HG_OP_forward_blocks = 0x1816,
  HG_OP_cholesky_blocks = 0x1817,
  HG_OP_lu_blocks = 0x1818,
  HG_OP_inv = 0x1819,
  HG_OP_qr_reflections = 0x181a,
  HG_OP_qr_factors = 0x181b,
  HG_OP_qr_blocks = 0x181c,
  HG_OP_qr_complete_blocks = 0x181d,
  HG_OP_tridiagonal = 0x181e,
  HG_OP_secular_bit = 0x181f,
  HG_OP_secular_bits = 0x1820,
  HG_OP_eigh_joined = 0x1821,
  HG_OP_tridiagonal_eigh = 0x1822,
  HG_OP_eigh_reduced = 0x1823,
  HG_OP_eigh_blocks = 0x1824,
  HG_OP_matrix_scale = 0x1825,
  HG_OP_reflected = 0x1826,
  HG_OP_orthonormal = 0x1827,
  HG_OP_bidiagonal = 0x1828,
  HG_OP_svd_reduced = 0x1829
} hg_op;

typedef struct hg_argument {
  uint32_t count;
  uint32_t has_number;
  int64_t integers[8];
  double number;
} hg_argument;

typedef struct hg_op_info {
  size_t size;
  hg_op op;
  const char *name;
  const char *kind;
  const char *inputs;
  const char *arguments;
  const char *types;
  const char *formula;
  const char *gradient;
  const char *meaning;
  uint32_t output_count;
  uint32_t reserved;
} hg_op_info;

hg_status hg_op_query(size_t index, hg_op_info *info);
hg_op hg_op_by_name(const char *name);
atlas_type hg_promote_types(atlas_type a, atlas_type b);
typedef struct hg_computation hg_computation;
typedef uint32_t hg_value;
hg_status hg_computation_create(const hg_allocator *allocator, hg_computation **out);
void hg_computation_release(hg_computation *computation);
hg_status hg_computation_status(hg_computation *computation);
hg_value hg_computation_input(hg_computation *computation, const char *name, const hg_tensor *like);
hg_value hg_computation_number(hg_computation *computation, atlas_type type, double value);
hg_value hg_computation_integer(hg_computation *computation, atlas_type type, int64_t value);
hg_value hg_compute(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
    const hg_argument *arguments, size_t argument_count);
hg_status hg_compute_all(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
    const hg_argument *arguments, size_t argument_count, hg_value *results, size_t result_count);
hg_value hg_compute_formula(hg_computation *computation, const char *formula, const char *const *names,
    const hg_value *values, size_t count);
hg_status hg_computation_numerics(hg_computation *computation, uint32_t numerics);
hg_status hg_computation_describe(hg_computation *computation, hg_value value, hg_tensor *out);
hg_status hg_gradient(hg_computation *computation, hg_value value, hg_value cotangent, const hg_value *wrt,
    size_t count, hg_value *gradients);
hg_value hg_computation_example(hg_computation *computation, const hg_tensor *like);
hg_status hg_vmap(hg_computation *computation, uint64_t count, const hg_value *examples, const hg_value *batches,
    size_t example_count, hg_value *values, size_t value_count);
hg_status hg_checkpoint(hg_computation *computation, const hg_value *inputs, size_t input_count, hg_value *values,
    size_t value_count);
hg_status hg_custom_gradient(hg_computation *computation, const hg_value *inputs, size_t input_count,
    const hg_value *cotangents, const hg_value *gradients, hg_value *values, size_t value_count);
hg_status hg_computation_output(hg_computation *computation, const char *name, hg_value value, const hg_tensor *like);
hg_status hg_computation_update(hg_computation *computation, hg_value input, hg_value value);
typedef struct hg_executable hg_executable;

enum {
  HG_NUMERICS_FAST = 1,
  HG_NO_FUSION = 2,
  HG_STRICT_TYPES = 4,
  HG_NUMERICS_TF32 = 8
};

typedef struct hg_compile_desc {
  size_t size;
  uint32_t flags;
  uint32_t reserved;
} hg_compile_desc;

hg_status hg_compile(hg_executor *executor, hg_computation *computation, const hg_compile_desc *desc,
    hg_executable **out);
hg_executable *hg_executable_retain(hg_executable *executable);
void hg_executable_release(hg_executable *executable);
hg_status hg_run(hg_executable *executable, const hg_tensor *inputs, size_t input_count, const hg_tensor *outputs,
    size_t output_count, hg_stream *stream, hg_launch_report *report);
hg_status hg_executable_warm(hg_executable *executable, uint64_t *kernel_count);
hg_status hg_executable_report(hg_executable *executable, const hg_allocator *allocator, int json, char **text,
    size_t *length);
hg_status hg_apply(hg_op op, const hg_tensor *inputs, size_t input_count, const hg_argument *arguments,
    size_t argument_count, const hg_tensor *outputs, size_t output_count, hg_stream *stream);
hg_status hg_apply_shape(hg_op op, const hg_tensor *inputs, size_t input_count, const hg_argument *arguments,
    size_t argument_count, hg_tensor *outputs, size_t output_count);

typedef struct hg_executables_info {
  size_t size;
  uint64_t byte_cap, bytes;
  uint64_t count, hits, misses, evictions;
} hg_executables_info;

hg_status hg_executables_query(hg_executor *executor, hg_executables_info *info);
hg_status hg_executables_limit(hg_executor *executor, uint64_t byte_cap);
