/* emit.c - the x86-64 code of a kernel: its regions and the pool of constants. */
#include "backend/cpu/x86/emit_x86.h"

#include "base/error.h"

#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#  include <cpuid.h>
#endif

/* The first buffers that instructions name get a register for their address. */
static void choose_bases(x86_emit *e) {
  uint32_t used = 0;
  memset(e->base_of, 0xff, sizeof e->base_of);
  for (uint32_t i = 0; i < e->b->vector->insns.count && used < X86_MOST_BASES; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (!hg_x86_has_base(insn) || e->base_of[insn->symbol] >= 0) continue;
    e->base_of[insn->symbol] = hg_x86_base_registers[used++];
  }
  e->used_bases = used + e->b->row_start_registers;
}

/* The pool begins with 0, 1, 2, ... in 32 and in 64 bits, bytes of 1 and, for AVX2, a window of ones and zeros. */
static void begin_pool(x86_emit *e) {
  uint32_t lanes = (e->b->slices > 0 ? e->b->slices : e->b->copies) * e->lanes, words = 3 * lanes + 4;
  if (e->width == 1) words += 16;
  e->pool.iota_place = 0;
  e->pool.iota64_place = lanes;
  e->pool.ones_place = 3 * lanes;
  e->pool.window_place = e->pool.ones_place + 4;
  uint32_t *to = hg_array_append(&e->a.allocator, &e->pool.words, NULL, words);
  if (to == NULL) {
    e->a.no_memory = 1;
    return;
  }
  for (uint32_t i = 0; i < lanes; i++) to[i] = to[lanes + 2 * i] = i;
  for (uint32_t i = 0; i < 4; i++) to[e->pool.ones_place + i] = 0x01010101;
  for (uint32_t i = 0; i < 8 && e->width == 1; i++) to[e->pool.window_place + i] = UINT32_MAX;
}

static void write_code(x86_emit *e) {
  native_step *steps = e->b->steps.data;
  e->help = hg_x86_new_label(&e->a);
  e->pool.label = hg_x86_new_label(&e->a);
  begin_pool(e);
  if (e->lanes == 1) {
    hg_x86_write_lanes(e);
    return;
  }
  choose_bases(e);
  e->uses_tile_lane = hg_native_uses_tile_lane(e->b);
  if (e->b->slices > 0) hg_x86_write_straight(e, steps);
  else if (e->b->steps.count > 1) hg_x86_write_block(e);
  else hg_x86_write_region(e, steps);
  hg_x86_write_help(e);
}

static void write_kernel(x86_emit *e) {
  write_code(e);
  e->b->insn_bytes = e->a.count;
  hg_x86_align(&e->a, X86_LINE_BYTES, X86_INT3);
  hg_x86_place(&e->a, e->pool.label);
  if (!e->a.no_memory) hg_x86_bytes(&e->a, e->pool.words.data, e->pool.words.count * 4);
}

static hg_status emit_kernel(native_build *b, uint8_t width, int has_popcount, int has_dot) {
  uint64_t insns = b->vector->insns.count, regs = b->vector->regs.count;
  x86_emit e = {.b = b,
                .width = width,
                .lanes = b->target->lanes,
                .vector_bytes = b->target->vector_bytes,
                .has_popcount = (uint8_t)has_popcount,
                .has_dot = (uint8_t)has_dot,
                .pool.words.element_size = 4,
                .slow.element_size = sizeof(x86_slow),
                .cold.element_size = sizeof(x86_cold),
                .to_come.copies.element_size = sizeof(x86_copy),
                .to_come.prefetches.element_size = sizeof(uint32_t)};
  hg_x86_begin(&e.a, &b->allocator, width == 2);
  e.label_of = hg_allocate(&b->allocator, 12 * insns + 18 * regs + 4 * b->steps.count, 1);
  if (e.label_of != NULL) {
    e.loop_end = e.label_of + insns;
    e.pool.place_of = e.loop_end + insns;
    e.label_of_step = e.pool.place_of + regs;
    e.writer = e.label_of_step + b->steps.count;
    e.pattern_of = (x86_pattern *)(void *)(e.writer + regs);
    e.polls = (uint8_t *)(e.pattern_of + regs);
    e.repeated = e.polls + insns;
    e.guess = e.repeated + insns;
    e.strides = e.guess + insns;
    e.vector_strides = e.strides + regs;
    e.is_late = e.vector_strides + regs;
    hg_native_find_polls(b->vector, e.polls);
    hg_native_find_repeated(b->vector, e.repeated);
    write_kernel(&e);
  }
  hg_status status = HG_OK;
  if (e.label_of == NULL || e.a.no_memory) status = hg_fail_memory("machine code", e.a.count);
  else {
    b->code = e.a.code;
    b->code_bytes = e.a.count;
    e.a.code = NULL;
  }
  hg_release(&b->allocator, e.label_of);
  hg_array_release(&b->allocator, &e.pool.words);
  hg_array_release(&b->allocator, &e.slow);
  hg_array_release(&b->allocator, &e.cold);
  hg_array_release(&b->allocator, &e.to_come.copies);
  hg_array_release(&b->allocator, &e.to_come.prefetches);
  hg_x86_release_loop(&e);
  hg_x86_release(&e.a);
  return status;
}

/* Not every machine with AVX-512, or AVX2, has these: VPOPCNTDQ, and VNNI for each of the two. */
#if defined(__x86_64__)
#  define HAS(feature) (__builtin_cpu_supports(feature) != 0)
static int has_avx_vnni(void) { /* some compilers are older than this feature's name */
  uint32_t a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#else
#  define HAS(feature) 0
static int has_avx_vnni(void) { return 0; }
#endif
static hg_status emit_avx512(native_build *b) { return emit_kernel(b, 2, HAS("avx512vpopcntdq"), HAS("avx512vnni")); }
static hg_status emit_avx2(native_build *b) { return emit_kernel(b, 1, 0, has_avx_vnni()); }
static hg_status emit_lanes(native_build *b) { return emit_kernel(b, 1, 0, 0); }
static hg_status emit_least_avx512(native_build *b) { return emit_kernel(b, 2, 0, 0); }
static hg_status emit_least_avx2(native_build *b) { return emit_kernel(b, 1, 0, 0); }

/* Declared here again, since targets.h belongs to the folder above. */
extern const native_target hg_native_avx512, hg_native_avx2, hg_native_least_avx512, hg_native_least_avx2;
extern const native_target hg_native_x86_lanes;
#define AVX512(writer)                                                                                                \
  {                                                                                                                   \
    .engine = "native avx512", .lanes = 16, .vector_bytes = 64, .vector_count = 28, .mask_first = 3, .mask_count = 4, \
    .runs_blocks = 1, .has_quotients = 1, .address_count = X86_MOST_BASES, .has_quick_loops = 1, .has_invariants = 1, \
    .emit = writer                                                                                                    \
  }
#define AVX2(writer)                                                                                                   \
  {                                                                                                                    \
    .engine = "native avx2", .lanes = 8, .vector_bytes = 32, .vector_count = 12, .runs_blocks = 1, .has_quotients = 1, \
    .address_count = X86_MOST_BASES, .has_quick_loops = 1, .has_invariants = 1, .emit = writer                         \
  }
const native_target hg_native_avx512 = AVX512(emit_avx512), hg_native_avx2 = AVX2(emit_avx2);
const native_target hg_native_least_avx512 = AVX512(emit_least_avx512), hg_native_least_avx2 = AVX2(emit_least_avx2);
const native_target hg_native_x86_lanes = {.engine = "native x86-64", .lanes = 1, .vector_bytes = 8,
                                           .vector_count = 12, .general_count = X86_LANE_REGISTERS,
                                           .emit = emit_lanes};
