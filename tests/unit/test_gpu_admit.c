/* test_gpu_admit.c - what a launch must know of a kernel, read back from where it was kept: what the plan wrote comes
 * back as it was; of anything else either nothing is accepted, or what a launch is packed with in safety: inside of the
 * argument block, from arguments that there are, for a grid that there can be. */
#include "check.h"

#include "atlas/program.h"
#include "backend/cuda/ptx/emit_ptx.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const hg_gpu_target target = {
    .sub_blocks = HG_PTX_MOST_SUB_BLOCKS, .shared_bytes = 232448, .declared_shared = HG_PTX_DECLARED_SHARED};

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static const char *const texts[] = {
    ".program saxpy\n.scalar a f32\n.buffer x f32 in\n.buffer y f32 inout\nldg.f32 r0, [x + lane]\n"
    "ldg.f32 r1, [y + lane]\nfma.f32 r0, r0, a, r1\nstg.f32 [y + lane], r0\nexit\n",
    ".program packs\n.buffer x f16 in\n.buffer y f16 out\nldg.f16 r0, [x + lane]\ngelu.f16 r0, r0\n"
    "stg.f16 [y + lane], r0\nexit\n",
    ".program divided\n.scalar n u32\n.scalar m u64\n.scalar k u32\n.buffer x u32 inout\ncvt.u32.u64 r0, lane\n"
    "div.u32 r1, r0, n\nrem.u32 r0, r0, k\nadd.u32 r0, r0, r1\ncvt.u64.u32 r2, r0\ndiv.u64 r2, r2, m\n"
    "cvt.u32.u64 r0, r2\nldg.u32 r3, [x + r0]\nadd.u32 r3, r3, r1\nstg.u32 [x + lane], r3\nexit\n",
    ".program counted\n.scalar n u32\n.buffer x u32 inout\nmov.u32 r0, n\nmovi.u32 r1, #0\nround:\n"
    "add.u32 r1, r1, r0\nloop r0, round\nstg.u32 [x + lane], r1\nexit\n",
    ".program blocks\n.block 64\n.buffer x f32 in\n.buffer y f32 out\n.scalar a f32\n.shared tile f32 64\n"
    ".table t 70 in\n.pool heap\nldg.f32 r0, [x + lane]\nsts.f32 [tile + blane], r0\nbar.sync\nmul.f32 r0, r0, a\n"
    "reduce.add.f32 r3, r0\npool.alloc.u64 r4, heap, #16\nmovi.u32 r5, #1\nres.accum.i64 r5, #1\nphase.adv.u32 #3\n"
    "stg.f32 [y + lane], r3\nexit\n",
    ".program large\n.block 1024\n.buffer y f32 out\n.shared tile f32 20000\nmovi.f32 r0, #1\n"
    "sts.f32 [tile + blane], r0\nbar.sync\nlds.f32 r1, [tile + blane]\nreduce.add.f32 r0, r1\n"
    "stg.f32 [y + lane], r0\nexit\n",
    ".program open\n.buffer y u32 out\ncvt.u32.u64 r0, lane\nreduce.add.u32 r0, r0\nstg.u32 [y + lane], r0\nexit\n",
};

static const hg_gpu_variant variants[] = {{.threads = 256},
                                       {.threads = 1024},
                                       {.flags = HG_GPU_CHECKED, .threads = 256},
                                       {.flags = HG_GPU_COUNT_STEPS, .threads = 256},
                                       {.flags = HG_GPU_LUT, .threads = 256}};

typedef struct scene {
  atlas_program *program;
  const hg_gpu_variant *variant;
  hg_gpu_info info;
} scene;

static int open_scene(scene *s, const char *text, const hg_gpu_variant *variant) {
  hg_allocator allocator;
  hg_array code = {.element_size = 1};
  const hg_ptx_options options = {.capability = 90, .variant = *variant, .name = "test"};
  hg_allocator_resolve(NULL, &allocator);
  *s = (scene){.variant = variant};
  int is_made = atlas_parse(NULL, text, strlen(text), "test", &s->program) == HG_OK &&
                hg_ptx_compile(&allocator, s->program, &options, &code, &s->info) == HG_OK;
  if (!is_made) printf("%s\n", hg_last_error());
  CHECK(is_made);
  hg_array_release(&allocator, &code);
  return is_made;
}

/* ---- what the plan wrote ----------------------------------------------------------------------------------------- */

/* All but the bytes between the fields. */
static int is_same(const hg_gpu_info *a, const hg_gpu_info *b) {
  enum { HEAD = offsetof(hg_gpu_info, tile_shift) + 1, TAIL = offsetof(hg_gpu_info, dynamic_bytes) };
  const char *x = (const char *)a, *y = (const char *)b;
  return memcmp(x, y, HEAD) == 0 && memcmp(x + TAIL, y + TAIL, sizeof *a - TAIL) == 0;
}

static void check_honest(const scene *s) {
  hg_gpu_info info;
  CHECK(hg_gpu_admit(s->program, s->variant, &target, &s->info, &info));
  CHECK(is_same(&info, &s->info));
}

/* ---- what others wrote ------------------------------------------------------------------------------------------- */

/* The arguments end where their memory does, and the block is followed by words that nobody may write. */
static void pack_one(const scene *s, const hg_gpu_info *info, atlas_launch *launch) {
  enum { WORDS = HG_GPU_ARGUMENT_BYTES / sizeof(uint64_t), BEHIND = 32 };
  static uint64_t block[WORDS + BEHIND];
  const hg_gpu_places places = {1, 2, 3, 4, 5};
  hg_gpu_launch out;
  memset(block + WORDS, 0x5a, BEHIND * sizeof *block);
  (void)hg_gpu_pack(s->program, info, launch, &places, block, &out);
  for (int grids = 0; grids < 3 && out.left > 0; grids++) hg_gpu_next(block, &out);
  for (int i = 0; i < BEHIND; i++) CHECK_EQ_U64(block[WORDS + i], 0x5a5a5a5a5a5a5a5a);
  CHECK(out.idle_bytes + (uint64_t)info->dynamic_bytes <= target.shared_bytes);
}

static void pack_all(const scene *s, hg_gpu_info *info) {
  size_t count = s->program->symbols.count;
  atlas_argument *arguments = calloc(count, sizeof *arguments);
  CHECK(arguments != NULL);
  for (size_t i = 0; i < count; i++) arguments[i].span.byte_count = (uint64_t)1 << 30;
  uint32_t size = s->program->block[0] != 0 ? s->program->block[0] : 256;
  atlas_launch linear = {.lanes = (uint64_t)1 << 36, .arguments = arguments, .step_limit = 1000};
  atlas_launch grid = {.grid = {70000, 50, 2}, .block = {size, 1, 1}, .arguments = arguments, .step_limit = 1000};
  for (uint32_t multiprocessors = 0; multiprocessors <= 132; multiprocessors += 132) {
    info->multiprocessors = multiprocessors;
    info->multiprocessor_shared_bytes = 233472;
    info->block_shared_bytes = target.shared_bytes;
    info->cache_bytes = 50 << 20;
    pack_one(s, info, &linear);
    pack_one(s, info, &grid);
  }
  free(arguments);
}

/* What no two fields may contradict each other in. */
static void check_sound(const scene *s, const hg_gpu_info *info) {
  uint32_t at = sizeof(hg_gpu_header);
  CHECK(info->parameter_count == s->info.parameter_count && info->table_symbol == s->info.table_symbol);
  for (uint32_t i = 0; i < info->parameter_count; i++) {
    CHECK_EQ_U64(info->parameter[i].symbol, s->info.parameter[i].symbol);
    CHECK_EQ_U64(info->parameter[i].kind, s->info.parameter[i].kind);
    CHECK(info->parameter[i].offset >= at && info->parameter[i].offset % 8 == 0);
    at = info->parameter[i].offset + 8u;
  }
  CHECK(at <= info->argument_bytes && info->argument_bytes <= HG_GPU_ARGUMENT_BYTES);
  CHECK(info->max_threads >= 1 && info->max_threads <= ATLAS_MAX_BLOCK_LANES);
  CHECK(info->sub_blocks >= 1 && info->max_threads / info->sub_blocks >= 1 && info->packs >= 1);
  CHECK(info->lanes_per_thread >= 1 && info->tile_shift < 16);
  CHECK(info->shared_bytes <= target.shared_bytes && info->dynamic_bytes <= target.shared_bytes);
}

static unsigned admitted, refused;

static void check_changed(const scene *s, const hg_gpu_info *kept) {
  hg_gpu_info info;
  if (!hg_gpu_admit(s->program, s->variant, &target, kept, &info)) {
    refused++;
    return;
  }
  admitted++;
  check_sound(s, &info);
  pack_all(s, &info);
}

/* Each byte with other values, then all at random. */
static void check_hostile(const scene *s) {
  static const uint8_t values[] = {0, 1, 2, 3, 4, 16, 0x7f, 0x80, 0xff};
  hg_gpu_info kept = s->info;
  uint8_t *bytes = (uint8_t *)&kept;
  for (size_t i = 0; i < sizeof kept; i++) {
    uint8_t was = bytes[i];
    for (size_t k = 0; k < COUNT(values); k++) {
      bytes[i] = values[k];
      check_changed(s, &kept);
    }
    bytes[i] = was;
  }
  uint32_t state = 12345;
  for (unsigned round = 0; round < 2000; round++) {
    kept = s->info;
    for (unsigned n = 0; n <= round % 8; n++) {
      state = state * 1664525 + 1013904223;
      bytes[(state >> 8) % (round % 2 ? 96 : sizeof kept)] = (uint8_t)(state >> (round % 3 ? 24 : 29));
    }
    check_changed(s, &kept);
  }
}

/* Each by name: what the host would do with it is worse than a wrong result. */
static void test_refused(void) {
  scene s;
  if (!open_scene(&s, texts[4], &variants[0])) return;
  const struct {
    size_t offset, byte_count;
    uint64_t value;
  } rows[] = {{offsetof(hg_gpu_info, size), 4, sizeof(hg_gpu_info) + 8},
              {offsetof(hg_gpu_info, sub_blocks), 4, 0}, /* a division */
              {offsetof(hg_gpu_info, sub_blocks), 4, 16},
              {offsetof(hg_gpu_info, packs), 1, 0}, /* another one */
              {offsetof(hg_gpu_info, lanes_per_thread), 4, 3},
              {offsetof(hg_gpu_info, vector_only), 1, 1},
              {offsetof(hg_gpu_info, lut_lanes), 8, 1},
              {offsetof(hg_gpu_info, shared_bytes), 4, UINT32_MAX},
              {offsetof(hg_gpu_info, parameter) + offsetof(hg_gpu_parameter, divides), 1, 1}, /* of a buffer */
              {offsetof(hg_gpu_info, parameter) + offsetof(hg_gpu_parameter, reach), 8, UINT64_MAX},
              {offsetof(hg_gpu_info, uses_resonance), 1, 2}};
  for (size_t i = 0; i < COUNT(rows); i++) {
    hg_gpu_info kept = s.info, info;
    memcpy((char *)&kept + rows[i].offset, &rows[i].value, rows[i].byte_count);
    CHECK(!hg_gpu_admit(s.program, s.variant, &target, &kept, &info));
  }
  /* What the program says is not even looked at. */
  hg_gpu_info kept = s.info, info;
  kept.parameter_count = 100000;
  kept.table_symbol = 77;
  kept.argument_bytes = 1 << 20;
  kept.tile_shift = 200;
  kept.dynamic_bytes = 1 << 30;
  kept.observes_block = 0;
  for (int i = 0; i < HG_GPU_MAX_PARAMETERS; i++) {
    kept.parameter[i].offset = 0xfff8;
    kept.parameter[i].symbol = 0xffff;
    kept.parameter[i].kind = ATLAS_SYMBOL_POOL;
    kept.parameter[i].element_shift = 99;
  }
  CHECK(hg_gpu_admit(s.program, s.variant, &target, &kept, &info) && is_same(&info, &s.info));
  atlas_program_release(s.program);
}

int main(void) {
  for (size_t i = 0; i < COUNT(texts); i++)
    for (size_t k = 0; k < COUNT(variants); k++) {
      scene s;
      if (!open_scene(&s, texts[i], &variants[k])) return check_report();
      check_honest(&s);
      check_hostile(&s);
      atlas_program_release(s.program);
    }
  test_refused();
  CHECK(admitted > 1000 && refused > 1000);
  return check_report();
}
