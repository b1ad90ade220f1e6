/* move.c - copies and fills by the GPU, in the order of its work. A kernel does them: Metal's own copies take whole
 * words only and its fills one byte, and an encoder that launches cannot take either. */
#include "backend/metal/metal_kernel.h"

#define BYTES_A_THREAD 16
#define MOST_BYTES (UINT64_C(1) << 34) /* bytes of a dispatch: Metal counts its threads in 32 bits */

static const char text[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "#pragma METAL fp contract(off)\n"
    "struct hg_move_arguments {\n"
    "  device uchar *to;\n"
    "  device const uchar *from;\n"
    "  ulong count, pattern;\n"
    "  uint is_fill, has_words;\n"
    "};\n"
    "kernel void hg_move(constant hg_move_arguments &m [[buffer(0)]], uint number [[thread_position_in_grid]]) {\n"
    "  ulong first = 16 * ulong(number), end = min(first + 16, m.count);\n"
    "  if (m.has_words != 0 && end - first == 16) {\n"
    "    device ulong *to = (device ulong *)(m.to + first);\n"
    "    device const ulong *from = (device const ulong *)(m.from + first);\n"
    "    to[0] = m.is_fill != 0 ? m.pattern : from[0];\n"
    "    to[1] = m.is_fill != 0 ? m.pattern : from[1];\n"
    "    return;\n"
    "  }\n"
    "  for (ulong k = first; k < end; k++)\n"
    "    m.to[k] = m.is_fill != 0 ? uchar(m.pattern >> (8 * (k & 7))) : m.from[k];\n"
    "}\n";

/* The kernel's argument. */
typedef struct move {
  uint64_t to, from; /* addresses of the GPU */
  uint64_t count, pattern;
  uint32_t is_fill, has_words; /* has_words: both addresses are multiples of 8 */
} move;

int hg_metal_can_move(const metal_device *d, const hg_work *work) {
  return (work->kind == HG_WORK_COPY_OUT ? hg_metal_is_own(d, work->to, work->byte_count) : 1) &&
         (work->kind == HG_WORK_COPY_IN ? hg_metal_is_own(d, work->from, work->byte_count) : 1);
}

hg_status hg_metal_open_mover(metal_device *d) {
  const metal_source source = {"hg_move", text, "hg_move", GPU_USUAL_BLOCK};
  return d->mover != NULL ? HG_OK : hg_metal_pipeline(d, &source, NULL, 0, &d->mover);
}

/* Bytes 0 to 7 of the pattern, repeated without end. */
static uint64_t repeated(const hg_work *work) {
  uint64_t pattern = 0;
  for (size_t i = 0; i < sizeof pattern; i++) pattern |= (uint64_t)work->pattern[i % work->pattern_size] << (8 * i);
  return pattern;
}

void hg_metal_encode_move_within(metal_device *d, const metal_encoding *e, const hg_work *work) {
  const int is_fill = work->kind == HG_WORK_FILL;
  const metal_unsigned most = METAL(&d->objc, most_threads, d->mover);
  const metal_size block = {most < GPU_USUAL_BLOCK ? most : GPU_USUAL_BLOCK, 1, 1};
  move m = {.to = hg_metal_gpu_address(d, e->encoder, work->to), .is_fill = (uint32_t)is_fill};
  if (is_fill) m.pattern = repeated(work);
  else m.from = hg_metal_gpu_address(d, e->encoder, work->from);
  m.has_words = ((m.to | m.from) & 7) == 0;
  METAL_WITH(&d->objc, set_pipeline, e->encoder, d->mover);
  for (uint64_t left = work->byte_count; left > 0; left -= m.count) {
    m.count = left < MOST_BYTES ? left : MOST_BYTES;
    const metal_size threads = {(metal_unsigned)((m.count + BYTES_A_THREAD - 1) / BYTES_A_THREAD), 1, 1};
    METAL_WITH(&d->objc, set_bytes, e->encoder, &m, sizeof m, 0);
    METAL_WITH(&d->objc, dispatch, e->encoder, threads, block);
    m.to += m.count;
    if (!is_fill) m.from += m.count;
  }
}

hg_status hg_metal_move_within(metal_device *d, const hg_work *work, metal_id *last) {
  metal_encoding e;
  HG_TRY(hg_metal_open_mover(d));
  HG_TRY(hg_metal_begin_within(d, &e));
  hg_metal_encode_move_within(d, &e, work);
  hg_metal_commit_within(d, &e, last);
  return HG_OK;
}
