/* contract.c - contractions: how the work is cut into panels, blocks and chunks.
 *
 * A and B are copied into panels (contract_kernels.h), so that the inner loops read memory consecutively whatever the
 * strides. The result is cut into blocks of panels, which threads take in any order. A block goes along K chunk by
 * chunk: it computes the sums of all its tiles over the chunk, and adds each to the tile's binary counter, whose levels
 * lie in the thread's part of the scratch. If one block has all rows, each panel of B is used once, and packed just
 * before, or read in place; else all of B is packed first. Matrices whose panels take more than CPU_PACKED_BYTES are
 * packed and multiplied part by part.
 *
 * If the result has few columns, a panel of A would be used only a few times. Then rows of A that lie along K are read
 * in place, and a block goes row by row, unless it has so few rows that B is read in place, too: small matrices are not
 * packed. If it has few rows and many columns, nothing is packed, and B is read once, in strips of columns
 * (contract_strip.h). If it has one column, nothing is packed except a vector that is not dense (contract_matvec.h). */
#include "backend/cpu/contract/contract.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "atlas/tables.h"
#include "backend/cpu/contract/contract_pack.h"
#include "base/threads.h"

#include <stdalign.h>

enum { CHUNK = 256, ALIGNMENT = 64, MATVEC_BYTES = 128 };

typedef struct job {
  const contract_kernels *kernels;
  const contract_loops *loops;
  contract_sum sum;
  uint32_t size;     /* bytes of a sum */
  const atlas_launch *launch; /* may be cancelled; NULL: no launch */
  hg_contraction of; /* with the roles of rows and columns exchanged, if `turn` has done so */
  uint32_t most_rows;
  uint8_t has_lists; /* a factor has windows of an image, or another list of axes: it is packed */
  uint8_t is_direct; /* A is read in place */
  uint8_t is_matvec;   /* and B is a vector */
  uint8_t is_strips;   /* few rows, which are read in place, as B is */
  uint64_t strips;     /* of an item */
  uint64_t chunks, levels;
  uint64_t row_panels, column_panels;                      /* panels of the whole result */
  uint64_t rows_at_once, columns_at_once;                  /* panels that are packed at once */
  uint64_t row_blocks, column_blocks;                      /* blocks of those */
  uint64_t most_block_rows, most_block_columns;            /* panels of a block, at most */
  uint64_t a_panel_bytes, b_panel_bytes, a_bytes, b_bytes; /* b_bytes 0: B is packed where it is used */
  uint64_t chunk_bytes;                                    /* bytes of a panel of B over one chunk */
  uint64_t level_bytes, own_bytes;                         /* bytes of a block's counter; of a thread's scratch */
  uint32_t threads;
  /* the part that is computed now */
  uint64_t first_row, first_column, rows_now, columns_now; /* panels */
  uint64_t item;                                           /* item of the batch */
  uint64_t group, b_groups;                                /* panels of one packing task; tasks for B */
  uint8_t *packed_a, *packed_b, *own;
} job;

static uint64_t rounded_up(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }
static uint64_t parts_of(uint64_t count, uint64_t part) { return (count + part - 1) / part; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- choosing the method and the cuts ---------------------------------------------------------------------------- */

static const contract_kernels *kernels_of(cpu_isa isa) {
#if defined __x86_64__ || defined __i386__
  if (isa == CPU_ISA_AVX512) return &hg_contract_avx512;
  if (isa == CPU_ISA_AVX2) return &hg_contract_avx2;
#endif
  (void)isa;
  return &hg_contract_baseline;
}

static int is_float32(uint8_t type) { return type == ATLAS_f32 || type == ATLAS_f16 || type == ATLAS_bf16; }

/* The type of the sums; CONTRACT_SUMS if there is none for these types. */
static contract_sum sum_of(const hg_contraction *c) {
  if (is_float32(c->type)) return is_float32(c->a_type) && is_float32(c->b_type) ? CONTRACT_F32 : CONTRACT_SUMS;
  if (c->type == ATLAS_f64) return c->a_type == ATLAS_f64 && c->b_type == ATLAS_f64 ? CONTRACT_F64 : CONTRACT_SUMS;
  if (!atlas_is_integer(c->type) || !atlas_is_integer(c->a_type) || !atlas_is_integer(c->b_type)) return CONTRACT_SUMS;
  return atlas_bytes(c->type) == 8 ? CONTRACT_I64 : CONTRACT_I32;
}

static void exchange(void *a, void *b, size_t size) {
  uint8_t kept[sizeof(hg_axis[3])];
  memcpy(kept, a, size);
  memcpy(a, b, size);
  memcpy(b, kept, size);
}

/* C' = B' A'. Vectors run along columns, so there should be many, with unit stride. */
static void turn(hg_contraction *c) {
  exchange(&c->m, &c->n, sizeof c->m);
  exchange(&c->a, &c->b, sizeof c->a);
  exchange(&c->a_type, &c->b_type, sizeof c->a_type);
  exchange(c->a_stride, c->b_stride, sizeof c->a_stride);
  exchange(&c->a_stride[1], &c->a_stride[2], sizeof(int64_t));
  exchange(&c->b_stride[1], &c->b_stride[2], sizeof(int64_t));
  exchange(&c->c_stride[1], &c->c_stride[2], sizeof(int64_t));
  exchange(c->a_axis, c->b_axis, sizeof c->a_axis);
  exchange(&c->a_axis[1], &c->a_axis[2], sizeof(hg_axis));
  exchange(&c->b_axis[1], &c->b_axis[2], sizeof(hg_axis));
}

/* 1 if A may be read in place: its elements need no conversion, lie along K, and meet few columns, which fill some of a
 * vector. */
static int can_be_direct(const job *j, uint64_t columns, uint8_t a_type, int64_t k_stride) {
  if (j->has_lists) return 0;
  return k_stride == 1 && atlas_bytes(a_type) == j->size && 4 * columns >= j->loops->lanes &&
         columns <= CPU_FEW_PANELS * (uint64_t)j->loops->columns;
}

/* B is one column, and A's rows lie along K. A few rows pay only if they are long. */
static int can_be_matvec(const job *j, uint64_t m, uint64_t n, uint8_t a_type, int64_t k_stride) {
  uint32_t group = j->kernels->matvec[j->sum].group;
  return !j->has_lists && n == 1 && group != 0 && k_stride == 1 && atlas_bytes(a_type) == j->size &&
         (m >= group || j->of.k >= CPU_LEAST_DOT);
}

/* Few rows, whose elements need no conversion, and many columns, as B's do, which lie side by side. */
static int can_be_strips(const job *j, uint64_t m, uint64_t n, int64_t column_stride) {
  if (j->has_lists) return 0;
  return m <= CPU_STRIP_ROWS && n >= CPU_LEAST_STRIP * (uint64_t)j->loops->lanes && column_stride == 1 &&
         atlas_bytes(j->of.a_type) == j->size && atlas_bytes(j->of.b_type) == j->size;
}

static int should_turn(const job *j) {
  const hg_contraction *c = &j->of;
  if (can_be_matvec(j, c->m, c->n, c->a_type, c->a_stride[2])) return 0;
  if (can_be_matvec(j, c->n, c->m, c->b_type, c->b_stride[1])) return 1;
  if (can_be_strips(j, c->m, c->n, c->b_stride[2])) return 0;
  if (can_be_strips(j, c->n, c->m, c->a_stride[1])) return 1;
  uint32_t columns = j->loops->columns;
  if (c->n > c->m && can_be_direct(j, c->m, c->b_type, c->b_stride[1])) return 1;
  if (c->m > c->n && can_be_direct(j, c->n, c->a_type, c->a_stride[2])) return 0;
  if (c->n < columns && c->m > c->n) return 1;
  return c->m >= columns && c->c_stride[1] == 1 && c->c_stride[2] != 1;
}

/* Turns a batch of A that shares one B into one matrix with more rows. */
static void join_batch(hg_contraction *c) {
  if (c->batch < 2 || c->b_stride[0] != 0 || c->a_stride[0] != (int64_t)c->m * c->a_stride[1] ||
      c->c_stride[0] != (int64_t)c->m * c->c_stride[1])
    return;
  c->m *= c->batch;
  c->batch = 1;
}

static void choose_blocks(job *j) {
  uint64_t rows = parts_of(CPU_BLOCK_ROWS, j->most_rows), columns = parts_of(CPU_BLOCK_COLUMNS, j->loops->columns);
  rows = least(rows, j->rows_at_once);
  columns = least(columns, j->columns_at_once);
  if (j->threads > 1) {
    while (parts_of(j->rows_at_once, rows) * parts_of(j->columns_at_once, columns) < 4 * (uint64_t)j->threads) {
      if (columns > 2 && columns >= rows) columns = (columns + 1) / 2;
      else if (rows > 2) rows = (rows + 1) / 2;
      else if (columns > 1) columns = (columns + 1) / 2;
      else break;
    }
  }
  j->row_blocks = parts_of(j->rows_at_once, rows);
  j->column_blocks = parts_of(j->columns_at_once, columns);
  j->most_block_rows = parts_of(j->rows_at_once, j->row_blocks);
  j->most_block_columns = parts_of(j->columns_at_once, j->column_blocks);
}

/* Cuts one item of the batch for so many threads; returns the bytes of scratch. */
static uint64_t lay_out(job *j, uint32_t threads) {
  uint64_t k = j->of.k, chunk = least(k, CHUNK), tile = (uint64_t)j->most_rows * j->loops->columns * j->size;
  j->threads = threads;
  j->a_panel_bytes = k * j->most_rows * j->size;
  j->b_panel_bytes = k * j->loops->columns * j->size;
  j->rows_at_once = j->is_direct ? j->row_panels : least(j->row_panels, 1 + CPU_PACKED_BYTES / (j->a_panel_bytes + 1));
  j->columns_at_once = least(j->column_panels, 1 + CPU_PACKED_BYTES / (j->b_panel_bytes + 1));
  choose_blocks(j);
  j->a_bytes = rounded_up((j->is_direct ? 0 : j->rows_at_once) * j->a_panel_bytes);
  int packs_first = j->row_panels > (j->is_direct ? least(CPU_FEW_PANELS, j->most_block_rows) : j->most_block_rows);
  j->b_bytes = packs_first ? rounded_up(j->columns_at_once * j->b_panel_bytes) : 0;
  if (!packs_first) j->columns_at_once = j->column_panels;
  if (!packs_first) choose_blocks(j);
  j->chunk_bytes = chunk * j->loops->columns * j->size;
  j->level_bytes = j->most_block_rows * j->most_block_columns * tile;
  j->own_bytes = rounded_up(j->levels * j->level_bytes + tile +
                            (packs_first ? 0 : least(CPU_PANEL_GROUP, j->most_block_columns) * j->chunk_bytes));
  return j->a_bytes + j->b_bytes + threads * j->own_bytes;
}

static uint64_t products(const hg_contraction *c) { return c->m * c->n * (c->k + 8); }

/* 1 if each item of a batch is computed by one thread, rather than each by all threads. */
static int is_by_items(const job *j) { return j->of.batch > 1 && products(&j->of) < CPU_PRODUCTS_OF_ITEM; }

static int prepare(job *j, cpu_isa isa, const hg_contraction *contraction) {
  j->sum = sum_of(contraction);
  if (j->sum == CONTRACT_SUMS) return 0;
  j->kernels = kernels_of(isa);
  j->loops = &j->kernels->loops[j->sum];
  if (j->loops->count == 0) return 0;
  j->size = j->sum == CONTRACT_F64 || j->sum == CONTRACT_I64 ? 8 : 4;
  j->of = *contraction;
  j->has_lists = (uint8_t)hg_contract_has_lists(contraction);
  if (!j->has_lists) join_batch(&j->of);
  if (should_turn(j)) turn(&j->of);
  j->is_strips = (uint8_t)can_be_strips(j, j->of.m, j->of.n, j->of.b_stride[2]);
  j->is_matvec = (uint8_t)can_be_matvec(j, j->of.m, j->of.n, j->of.a_type, j->of.a_stride[2]);
  j->is_direct = (uint8_t)can_be_direct(j, j->of.n, j->of.a_type, j->of.a_stride[2]);
  int has_same_sets = j->is_direct && j->of.a_stride[1] * j->size % CPU_SAME_SETS_BYTES == 0;
  uint32_t i = j->loops->count - 1;
  while (i > 0 && (j->loops->rows[i - 1] >= j->of.m || (has_same_sets && j->loops->rows[i] > CPU_SAME_SETS_ROWS))) i--;
  j->most_rows = j->loops->rows[i];
  j->chunks = parts_of(j->of.k, CHUNK);
  j->levels = j->chunks < 2 ? 0 : (uint64_t)64 - (uint64_t)__builtin_clzll(j->chunks - 1);
  j->row_panels = parts_of(j->of.m, j->most_rows);
  j->column_panels = parts_of(j->of.n, j->loops->columns);
  return 1;
}

/* Scratch for B's vectors, unless they are dense and have the sum's type. */
static uint64_t vector_bytes(const job *j) {
  const hg_contraction *c = &j->of;
  return c->b_stride[1] == 1 && atlas_bytes(c->b_type) == j->size ? 0 : c->batch * c->k * j->size;
}

/* Cuts an item into strips whose sums stay in the first cache; returns the bytes of scratch. */
static uint64_t lay_out_strips(job *j, uint32_t threads) {
  uint64_t row_bytes = j->of.m * j->size, vectors = j->of.n / j->loops->lanes;
  j->strips = parts_of(j->of.n * row_bytes, CPU_STRIP_SUMS);
  if (threads > 1 && j->strips * j->of.batch < 2 * (uint64_t)threads) j->strips = 2 * (uint64_t)threads;
  j->strips = least(j->strips, vectors);
  j->own_bytes = rounded_up((j->levels + 1) * (vectors / j->strips + 2) * j->loops->lanes * row_bytes);
  return threads * j->own_bytes;
}

static uint64_t all_bytes(job *j, uint32_t threads) {
  if (j->is_matvec) return vector_bytes(j);
  if (j->is_strips) return lay_out_strips(j, threads);
  if (is_by_items(j)) return threads * lay_out(j, 1);
  return lay_out(j, threads);
}

static int is_cancelled(const job *j) { return j->launch != NULL && atlas_is_cancelled(j->launch); }

/* An estimate, low rather than high: a missing thread costs more than surplus parts. */
static uint32_t useful_threads(const job *j, uint32_t most) {
  return hg_parallel_threads(j->of.batch * products(&j->of) / CPU_PRODUCTS_PER_NS + 1, most);
}

/* 1 if one thread computes it, with its stack as scratch. */
static int is_little(const job *j) { return j->of.batch * products(&j->of) < CPU_LITTLE_PRODUCTS; }

static int is_empty(const hg_contraction *c) { return c->batch == 0 || c->m == 0 || c->n == 0; }

uint64_t hg_cpu_contract_scratch(cpu_isa isa, const hg_contraction *contraction) {
  job j;
  if (!prepare(&j, isa, contraction)) return UINT64_MAX;
  if (is_empty(contraction)) return 0;
  uint64_t alone = all_bytes(&j, 1), together = all_bytes(&j, hg_thread_limit());
  if (alone <= CPU_CONTRACT_ON_STACK && is_little(&j)) return 0;
  return alone > together ? alone : together;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* The index of the smallest kernel for so many rows. */
static uint32_t micro_for(const contract_loops *loops, uint64_t rows) {
  uint32_t i = 0;
  while (i + 1 < loops->count && loops->rows[i] < rows) i++;
  return i;
}

/* Packs part of a panel of A among those packed now: `count` k from from_k on. */
static void pack_rows(const job *j, uint64_t panel, uint64_t from_k, uint64_t count, uint8_t *to) {
  contract_factor a = contract_factor_a(&j->of);
  contract_part part = {.item = j->item, .first = (j->first_row + panel) * j->most_rows, .from_k = from_k,
                        .count = count};
  part.used = (uint32_t)least(j->of.m - part.first, j->most_rows);
  part.width = j->loops->rows[micro_for(j->loops, part.used)];
  hg_contract_pack(j->kernels->pack[j->sum], j->size, &a, &part, to + from_k * part.width * j->size);
}

/* Packs part of a panel of B; `to` is for element from_k. */
static void pack_columns(const job *j, uint64_t panel, uint64_t from_k, uint64_t count, uint8_t *to) {
  contract_factor b = contract_factor_b(&j->of);
  contract_part part = {.item = j->item, .first = (j->first_column + panel) * j->loops->columns, .from_k = from_k,
                        .count = count, .width = j->loops->columns};
  part.used = (uint32_t)least(j->of.n - part.first, j->loops->columns);
  hg_contract_pack(j->kernels->pack[j->sum], j->size, &b, &part, to);
}

/* Memory is fastest read in long runs. If lanes are consecutive, a group of panels is packed a few k at a time. */
static uint64_t depth_of(const job *j, int64_t lane_stride, uint64_t count) {
  if (j->has_lists) return CHUNK;
  return lane_stride == 1 ? CPU_PANEL_GROUP_DEPTH : count > 0 ? count : 1;
}

static void pack_a(const job *j, uint64_t group) {
  uint64_t first = group * j->group, end = least(first + j->group, j->rows_now), k = j->of.k;
  uint64_t depth = depth_of(j, j->of.a_stride[1], k);
  for (uint64_t from_k = 0; from_k < k; from_k += depth)
    for (uint64_t panel = first; panel < end; panel++)
      pack_rows(j, panel, from_k, least(depth, k - from_k), j->packed_a + panel * j->a_panel_bytes);
}

static void pack_group(const job *j, uint64_t panel, uint64_t panels, uint64_t from_k, uint64_t count, uint8_t *to,
                       uint64_t panel_bytes) {
  uint64_t depth = depth_of(j, j->of.b_stride[2], count), row_bytes = (uint64_t)j->loops->columns * j->size;
  for (uint64_t k = 0; k < count; k += depth)
    for (uint64_t i = 0; i < panels; i++)
      pack_columns(j, panel + i, from_k + k, least(depth, count - k), to + i * panel_bytes + k * row_bytes);
}

static void pack_b(const job *j, uint64_t group) {
  uint64_t first = group * j->group, panels = least(j->group, j->columns_now - first);
  pack_group(j, first, panels, 0, j->of.k, j->packed_b + first * j->b_panel_bytes, j->b_panel_bytes);
}

static void pack(void *user, uint64_t part, uint32_t worker) {
  const job *j = user;
  (void)worker;
  if (is_cancelled(j)) return;
  if (part < j->b_groups) pack_b(j, part);
  else pack_a(j, part - j->b_groups);
}

/* ---- a block ----------------------------------------------------------------------------------------------------- */

typedef struct block {
  uint64_t rows, end_rows, columns, end_columns; /* panels, among those packed now */
  uint8_t *levels, *tile, *panel;                /* of this thread */
} block;

/* Rows of A from the k-th element on: in place, or a panel. */
static const uint8_t *rows_of(const job *j, uint64_t row, uint64_t first_row, uint32_t width, uint64_t k,
                              contract_tile *tile) {
  const hg_contraction *c = &j->of;
  if (j->is_direct) {
    int64_t at = (int64_t)j->item * c->a_stride[0] + (int64_t)first_row * c->a_stride[1];
    tile->a_row_bytes = c->a_stride[1] * j->size;
    tile->a_k_bytes = j->size;
    return c->a + (at + (int64_t)k) * j->size;
  }
  tile->a_row_bytes = j->size;
  tile->a_k_bytes = (int64_t)width * j->size;
  return j->packed_a + row * j->a_panel_bytes + k * width * j->size;
}

/* The sums of one call of a kernel. */
typedef struct sums_of {
  uint64_t row, column; /* first ones */
  uint32_t rows, columns;
  uint32_t width;       /* columns of the levels */
  int is_partial;       /* the kernel computes more of them */
  uint8_t *levels, *spare;
  uint64_t level_bytes;
} sums_of;

/* Computes sums over one chunk and adds them to their counter, or stores them to C after the last chunk. */
static void do_sums(const job *j, const sums_of *s, uint64_t chunk, contract_micro *micro, const void *a, const void *b,
                    contract_tile *tile) {
  const hg_contraction *c = &j->of;
  uint64_t count = least(c->k - chunk * CHUNK, CHUNK), carries = chunk & ~(chunk + 1);
  tile->is_last = chunk + 1 == j->chunks;
  tile->merge = tile->is_last ? chunk : carries; /* the remaining levels of the counter, lowest first */
  tile->levels = s->levels, tile->level_pitch = s->level_bytes / j->size;
  tile->out = s->levels + (uint64_t)__builtin_popcountll(carries) * s->level_bytes;
  tile->pitch = s->width, tile->columns = s->columns;
  if (!tile->is_last) {
    micro(count, a, b, tile);
    return;
  }
  uint8_t *to = c->c + ((int64_t)j->item * c->c_stride[0] + (int64_t)s->row * c->c_stride[1] +
                        (int64_t)s->column * c->c_stride[2]) *
                           (int64_t)atlas_bytes(c->type);
  int is_whole = !s->is_partial && c->c_stride[2] == 1 && c->c_stride[1] >= 0 && atlas_bytes(c->type) == j->size;
  tile->out = is_whole ? to : s->spare;
  if (is_whole) tile->pitch = (size_t)c->c_stride[1];
  micro(count, a, b, tile);
  if (!is_whole)
    j->kernels->finish[j->sum](s->spare, s->width, s->rows, s->columns, to, c->c_stride[1], c->c_stride[2], c->type);
}

/* A tile's rows from `from` on, over one chunk. Returns how many: all that are left, but of an A read in place as many
 * as a kernel has. */
static uint32_t do_rows_of_tile(const job *j, const block *b, uint64_t chunk, uint64_t row, uint32_t from,
                                uint64_t column, const void *b_panel, int64_t b_k_bytes) {
  const contract_loops *loops = j->loops;
  sums_of s = {.row = (j->first_row + row) * j->most_rows + from, .column = (j->first_column + column) * loops->columns,
            .width = loops->columns, .spare = b->tile, .level_bytes = j->level_bytes};
  s.rows = (uint32_t)least(j->of.m - s.row, j->most_rows - from);
  s.columns = (uint32_t)least(j->of.n - s.column, loops->columns);
  uint32_t micro = micro_for(loops, s.rows);
  if (j->is_direct && loops->rows[micro] > s.rows) s.rows = loops->rows[--micro];
  s.is_partial = (s.columns < loops->columns && !loops->masks) || s.rows < loops->rows[micro];
  uint64_t number = (column - b->columns) * (b->end_rows - b->rows) + (row - b->rows);
  s.levels = b->levels + (number * j->most_rows + from) * loops->columns * j->size;
  contract_tile tile = {.b_k_bytes = b_k_bytes};
  const uint8_t *a_panel = rows_of(j, row, s.row, loops->rows[micro], chunk * CHUNK, &tile);
  do_sums(j, &s, chunk, loops->micro[s.columns > loops->lanes][micro], a_panel, b_panel, &tile);
  return s.rows;
}

static void do_tile(const job *j, const block *b, uint64_t chunk, uint64_t row, uint64_t column, const void *b_panel,
                    int64_t b_k_bytes) {
  uint32_t rows = (uint32_t)least(j->of.m - (j->first_row + row) * j->most_rows, j->most_rows);
  for (uint32_t from = 0; from < rows;) from += do_rows_of_tile(j, b, chunk, row, from, column, b_panel, b_k_bytes);
}

static const uint8_t *packed_columns(const job *j, uint64_t column, uint64_t chunk) {
  return j->packed_b + column * j->b_panel_bytes + chunk * CHUNK * j->loops->columns * j->size;
}

static int64_t panel_row_bytes(const job *j) { return (int64_t)j->loops->columns * j->size; }

/* 1 if the elements behind B's matrix of this item are those of the next ones, up to so many. */
static int is_followed(const hg_contraction *c, uint64_t item, uint64_t elements) {
  uint64_t matrix = c->k * c->n;
  return c->b_stride[1] == (int64_t)c->n && c->b_stride[0] == (int64_t)matrix &&
         elements <= (c->batch - 1 - item) * matrix;
}

/* A panel of B that is used a few times and needs no conversion is read where it lies. NULL: it has to be packed. A
 * panel with fewer columns reads on into B's next row or matrix, whose products fill lanes that nobody stores. */
static const uint8_t *columns_in_place(const job *j, uint64_t column, uint64_t chunk) {
  const hg_contraction *c = &j->of;
  uint64_t first = (j->first_column + column) * j->loops->columns;
  if (j->has_lists || j->b_bytes != 0 || j->row_panels > CPU_FEW_PANELS || c->b_stride[2] != 1) return NULL;
  if (atlas_bytes(c->b_type) != j->size) return NULL;
  if (first + j->loops->columns > c->n && !j->loops->masks &&
      !is_followed(c, j->item, first + j->loops->columns - c->n))
    return NULL;
  int64_t at = (int64_t)j->item * c->b_stride[0] + (int64_t)(chunk * CHUNK) * c->b_stride[1] + (int64_t)first;
  return c->b + at * j->size;
}

/* Row by row: A is read once. */
static void do_rows(const job *j, const block *b) {
  for (uint64_t row = b->rows; row < b->end_rows; row++)
    for (uint64_t chunk = 0; chunk < j->chunks && !is_cancelled(j); chunk++)
      for (uint64_t column = b->columns; column < b->end_columns; column++)
        do_tile(j, b, chunk, row, column, packed_columns(j, column, chunk), panel_row_bytes(j));
}

static void do_block(void *user, uint64_t part, uint32_t worker) {
  const job *j = user;
  uint64_t by_row = part % j->row_blocks, by_column = part / j->row_blocks;
  block b = {.rows = j->rows_now * by_row / j->row_blocks,
             .end_rows = j->rows_now * (by_row + 1) / j->row_blocks,
             .columns = j->columns_now * by_column / j->column_blocks,
             .end_columns = j->columns_now * (by_column + 1) / j->column_blocks,
             .levels = j->own + worker * j->own_bytes};
  b.tile = b.levels + j->levels * j->level_bytes;
  b.panel = b.tile + (uint64_t)j->most_rows * j->loops->columns * j->size;
  if (j->is_direct && j->b_bytes != 0) {
    do_rows(j, &b);
    return;
  }
  for (uint64_t chunk = 0; chunk < j->chunks; chunk++)
    for (uint64_t column = b.columns; column < b.end_columns && !is_cancelled(j); column++) {
      uint64_t first_k = chunk * CHUNK, place = (column - b.columns) % CPU_PANEL_GROUP;
      const uint8_t *panel = b.panel + place * j->chunk_bytes, *in_place = columns_in_place(j, column, chunk);
      int64_t row_bytes = in_place != NULL ? j->of.b_stride[1] * j->size : panel_row_bytes(j);
      if (in_place != NULL) panel = in_place;
      else if (j->b_bytes != 0) panel = packed_columns(j, column, chunk);
      else if (place == 0 || columns_in_place(j, column - 1, chunk) != NULL)
        pack_group(j, column, least(CPU_PANEL_GROUP, b.end_columns - column), first_k, least(j->of.k - first_k, CHUNK),
                   b.panel + place * j->chunk_bytes, j->chunk_bytes);
      for (uint64_t row = b.rows; row < b.end_rows; row++) do_tile(j, &b, chunk, row, column, panel, row_bytes);
    }
}

/* ---- strips ------------------------------------------------------------------------------------------------------ */

static uint64_t strip_begin(const job *j, uint64_t strip) {
  return strip == j->strips ? j->of.n : j->of.n / j->loops->lanes * strip / j->strips * j->loops->lanes;
}

static void do_strip(void *user, uint64_t part, uint32_t worker) {
  job j = *(const job *)user;
  const hg_contraction *c = &j.of;
  j.item = part / j.strips;
  sums_of s = {.column = strip_begin(&j, part % j.strips), .levels = j.own + worker * j.own_bytes};
  s.width = s.columns = (uint32_t)(strip_begin(&j, part % j.strips + 1) - s.column);
  s.level_bytes = c->m * s.columns * j.size;
  s.spare = s.levels + j.levels * s.level_bytes;
  const uint8_t *a = c->a + (int64_t)j.item * c->a_stride[0] * j.size;
  const uint8_t *b = c->b + ((int64_t)j.item * c->b_stride[0] + (int64_t)s.column) * j.size;
  contract_tile tile = {c->a_stride[1] * j.size, c->a_stride[2] * j.size, .b_k_bytes = c->b_stride[1] * j.size};
  for (uint64_t chunk = 0; chunk < j.chunks && !is_cancelled(&j); chunk++) {
    int64_t k = (int64_t)(chunk * CHUNK);
    for (s.row = 0; s.row < c->m; s.row += s.rows) {
      uint32_t which = CONTRACT_STRIPS - 1;
      while (j.loops->strip_rows[which] > c->m - s.row) which--;
      s.rows = j.loops->strip_rows[which];
      sums_of of = s;
      of.levels += s.row * s.columns * j.size;
      do_sums(&j, &of, chunk, j.loops->strip[which], a + (int64_t)s.row * tile.a_row_bytes + k * tile.a_k_bytes,
              b + k * tile.b_k_bytes, &tile);
    }
  }
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

static void do_parts(const job *j, uint64_t count, hg_part *part) {
  if (j->threads > 1) {
    hg_parallel(j->threads, count, part, (void *)(uintptr_t)j);
    return;
  }
  for (uint64_t i = 0; i < count; i++) part((void *)(uintptr_t)j, i, 0);
}

/* Packs in groups of panels, so that each thread gets some, of A and of B. */
static void do_packing(job *j, uint64_t a_panels, uint64_t b_panels) {
  if (a_panels + b_panels == 0) return;
  j->group = least(CPU_PANEL_GROUP, 1 + (a_panels + b_panels) / (8 * (uint64_t)j->threads));
  j->b_groups = parts_of(b_panels, j->group);
  do_parts(j, j->b_groups + parts_of(a_panels, j->group), pack);
}

/* 1 if an item is one block of one chunk, whose matrices are read where they lie. */
static int is_small(const job *j) {
  return j->is_direct && j->chunks == 1 && j->row_blocks * j->column_blocks == 1 &&
         columns_in_place(j, j->column_panels - 1, 0) != NULL;
}

static void do_small_item(const job *j) {
  const block b = {.end_rows = j->row_panels, .end_columns = j->column_panels, .levels = j->own, .tile = j->own};
  for (uint64_t column = 0; column < j->column_panels; column++)
    for (uint64_t row = 0; row < j->row_panels; row++)
      do_tile(j, &b, 0, row, column, columns_in_place(j, column, 0), j->of.b_stride[1] * j->size);
}

static void do_item(job *j) {
  uint64_t packed_first = UINT64_MAX; /* the row whose panels are packed */
  j->first_row = j->first_column = 0;
  if (is_cancelled(j)) return;
  if (is_small(j)) {
    do_small_item(j);
    return;
  }
  for (j->first_column = 0; j->first_column < j->column_panels; j->first_column += j->columns_at_once) {
    j->columns_now = least(j->columns_at_once, j->column_panels - j->first_column);
    for (j->first_row = 0; j->first_row < j->row_panels; j->first_row += j->rows_at_once) {
      j->rows_now = least(j->rows_at_once, j->row_panels - j->first_row);
      do_packing(j, j->is_direct || packed_first == j->first_row ? 0 : j->rows_now,
                 j->b_bytes == 0 || j->first_row != 0 ? 0 : j->columns_now);
      packed_first = j->first_row;
      do_parts(j, j->row_blocks * j->column_blocks, do_block);
    }
  }
}

static void do_one_of_batch(void *user, uint64_t item, uint32_t worker) {
  job j = *(const job *)user;
  j.item = item;
  j.packed_a += worker * (j.a_bytes + j.b_bytes + j.own_bytes);
  j.packed_b = j.packed_a + j.a_bytes;
  j.own = j.packed_b + j.b_bytes;
  do_item(&j);
}

/* ---- matrix and vector ------------------------------------------------------------------------------------------- */

/* A matrix times a vector, for each item of the batch. */
typedef struct matvec {
  const job *j;
  contract_matvec of;
  const uint8_t *vectors; /* B's vectors */
  int64_t vector_step;    /* bytes */
  int is_by_rows;         /* the matrix has fewer rows than a group */
  uint64_t block, blocks; /* rows of a block; blocks of an item */
  uint64_t part;          /* blocks of a part */
} matvec;

static void do_matvec_block(const matvec *t, uint64_t number) {
  const job *j = t->j;
  const hg_contraction *c = &j->of;
  const contract_matvec_loops *loops = &j->kernels->matvec[j->sum];
  alignas(ALIGNMENT) uint8_t sums[MATVEC_BYTES];
  uint64_t item = number / t->blocks, first = number % t->blocks * t->block;
  uint32_t rows = (uint32_t)least(t->block, c->m - first);
  contract_matvec of = t->of;
  of.a = c->a + (int64_t)item * c->a_stride[0] * j->size;
  of.x = t->vectors + (int64_t)item * t->vector_step;
  if (t->is_by_rows) loops->row(&of, first, sums);
  else loops->rows(&of, first, rows, sums);
  int64_t at = (int64_t)item * c->c_stride[0] + (int64_t)first * c->c_stride[1];
  j->kernels->finish[j->sum](sums, rows, 1, rows, c->c + at * (int64_t)atlas_bytes(c->type), 0, c->c_stride[1],
                             c->type);
}

static void do_matvec_part(void *user, uint64_t part, uint32_t worker) {
  const matvec *t = user;
  uint64_t end = least((part + 1) * t->part, t->blocks * t->j->of.batch);
  (void)worker;
  for (uint64_t i = part * t->part; i < end && !is_cancelled(t->j); i++) do_matvec_block(t, i);
}

static void do_matvec(job *j, uint8_t *scratch) {
  const hg_contraction *c = &j->of;
  const contract_matvec_loops *loops = &j->kernels->matvec[j->sum];
  matvec t = {.j = j, .vectors = c->b, .vector_step = c->b_stride[0] * j->size, .is_by_rows = c->m < loops->group};
  t.of = (contract_matvec){.rows = c->m, .k = c->k, .row_bytes = c->a_stride[1] * j->size};
  t.of.by_chunks = c->k > CHUNK * (loops->groups - 2) && t.of.row_bytes % CPU_SAME_SETS_BYTES == 0;
  t.block = t.is_by_rows ? 1 : t.of.by_chunks ? loops->group : loops->group * loops->groups;
  t.blocks = parts_of(c->m, t.block);
  if (vector_bytes(j) != 0) {
    t.vectors = scratch, t.vector_step = (int64_t)(c->k * j->size);
    for (uint64_t i = 0; i < c->batch; i++) {
      contract_source from = {.from = c->b + (int64_t)i * c->b_stride[0] * (int64_t)atlas_bytes(c->b_type),
                              .lane_stride = 1, .k_stride = c->b_stride[1], .type = c->b_type};
      j->kernels->pack[j->sum](scratch + i * c->k * j->size, 1, 1, c->k, &from);
    }
  }
  uint64_t all = t.blocks * c->batch, bytes = t.block * c->k * j->size;
  t.part = 1 + least(CPU_ROWS_PART_BYTES / bytes, all / (CPU_PARTS_A_THREAD * (uint64_t)j->threads));
  if (j->threads > 1) hg_parallel(j->threads, parts_of(all, t.part), do_matvec_part, &t);
  else
    for (uint64_t i = 0; i * t.part < all; i++) do_matvec_part(&t, i, 0);
}

/* Sums of no products. */
static void do_zeros(const hg_contraction *c) {
  uint64_t size = atlas_bytes(c->type);
  for (uint64_t i = 0; i < c->batch; i++)
    for (uint64_t r = 0; r < c->m; r++) {
      uint8_t *row = c->c + ((int64_t)i * c->c_stride[0] + (int64_t)r * c->c_stride[1]) * (int64_t)size;
      for (uint64_t s = 0; s < c->n; s++) memset(row + (int64_t)s * c->c_stride[2] * (int64_t)size, 0, size);
    }
}

void hg_cpu_contract(cpu_isa isa, const hg_contraction *contraction, uint32_t threads, const atlas_launch *launch) {
  alignas(ALIGNMENT) uint8_t stack[CPU_CONTRACT_ON_STACK];
  job j;
  if (is_empty(contraction)) return;
  if (contraction->k == 0) {
    do_zeros(contraction);
    return;
  }
  if (!prepare(&j, isa, contraction)) return;
  j.launch = launch;
  uint32_t limit = hg_thread_limit();
  if (threads == 0) threads = useful_threads(&j, launch != NULL ? launch->most_threads : 0);
  uint8_t *scratch = contraction->scratch;
  int by_items = is_by_items(&j);
  if (threads > limit) threads = limit;
  if (is_little(&j) && all_bytes(&j, 1) <= CPU_CONTRACT_ON_STACK) scratch = stack, threads = 1;
  if (j.is_matvec) {
    j.threads = threads;
    do_matvec(&j, scratch);
    return;
  }
  if (j.is_strips) {
    lay_out_strips(&j, threads == 1 ? 1 : limit);
    j.threads = threads, j.own = scratch;
    do_parts(&j, j.strips * j.of.batch, do_strip);
    return;
  }
  lay_out(&j, by_items || threads == 1 ? 1 : limit); /* fewer threads need no more scratch */
  j.threads = threads;
  j.packed_a = scratch;
  j.packed_b = scratch + j.a_bytes;
  j.own = j.packed_b + j.b_bytes;
  if (by_items && threads > 1) {
    j.threads = 1;
    hg_parallel(threads, j.of.batch, do_one_of_batch, &j);
    return;
  }
  for (j.item = 0; j.item < j.of.batch; j.item++) do_item(&j);
}
