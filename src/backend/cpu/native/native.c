/* native.c - kernels of machine code: made of what the pipeline makes, and released; and the code as bytes. */
#include "backend/cpu/native/native_kernel.h"
#include "backend/cpu/engine/cpu_tuning.h"
#include "backend/cpu/native/pipeline.h"

#include "base/error.h"

#include <string.h>

/* ---- [x + lane] -------------------------------------------------------------------------------------------------- */

static hg_status note_lane_access(hg_native *native, const vector_insn *insn, int may_stream) {
  native_lane_access *known = native->lane_accesses.data;
  native_lane_access now = {insn->symbol, (uint8_t)may_stream, (int64_t)insn->bits};
  for (size_t i = 0; i < native->lane_accesses.count; i++) {
    if (known[i].symbol != now.symbol || known[i].displacement != now.displacement) continue;
    known[i].may_stream |= now.may_stream;
    return HG_OK;
  }
  if (hg_array_append(&native->allocator, &native->lane_accesses, &now, 1) == NULL)
    return hg_fail_memory("machine code", sizeof now);
  return HG_OK;
}

/* Notes the accesses [x + lane + d]. */
static hg_status note_accesses(hg_native *native) {
  for (uint32_t i = 0; i < native->vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(native->vector, i);
    if (insn->flags & VECTOR_LANE) HG_TRY(note_lane_access(native, insn, hg_native_may_pass_caches(insn)));
  }
  return HG_OK;
}

static uint32_t estimate_lane_ps(const hg_vector *v, const native_target *target) {
  uint64_t insns = v->insns.count;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (vector_is_jump(insn->op) && insn->target < i) insns += (uint64_t)CPU_TRIPS_OF_LOOP * (i - insn->target);
  }
  uint64_t ps = insns * CPU_INSN_PS / target->lanes;
  return ps < INT32_MAX ? (uint32_t)ps : INT32_MAX;
}

/* ---- making kernels ---------------------------------------------------------------------------------------------- */

static int has_loops(const native_build *b) {
  for (size_t k = 0; k < b->steps.count; k++) {
    const native_step *step = (const native_step *)b->steps.data + k;
    for (uint32_t i = step->first; i < step->end && step->kind == NATIVE_REGION; i++) {
      uint16_t op = vector_insn_at(b->vector, i)->op;
      if (vector_is_jump(op) && vector_insn_at(b->vector, i)->target <= i) return 1;
    }
  }
  return 0;
}

static int sees_lanes(const hg_vector *v) {
  for (uint32_t r = 0; r < v->regs.count; r++) {
    const vector_reg *reg = vector_reg_at(v, r);
    if (reg->kind == VECTOR_SPECIAL && reg->bits == ATLAS_REG_LANE && reg->first != VECTOR_NONE) return 1;
  }
  return 0;
}

static hg_status place_code(hg_native *native, native_build *b) {
  HG_TRY(hg_code_place(native->pages, b->code, b->code_bytes, &native->mapping, &native->code));
  native->code_bytes = b->code_bytes;
  native->locations = b->locations;
  native->steps = b->steps;
  native->copies = b->copies;
  native->lane_ps = estimate_lane_ps(native->vector, native->target);
  native->block_entry = b->block_entry;
  native->full_entry = b->full_entry;
  native->full_lanes = b->full_lanes;
  native->coordinate_offset = b->coordinate_offset;
  native->keeps_coordinates = b->keeps_coordinates;
  native->runs_blocks = b->target->runs_blocks && b->steps.count > 1;
  native->has_loops = (uint8_t)has_loops(b);
  native->sees_lanes = (uint8_t)sees_lanes(b->vector);
  native->calls_in_loops = b->calls_in_loops;
  native->row_bytes = b->row_bytes;
  native->local_bytes = b->local_bytes;
  native->local_lanes = b->local_lanes;
  native->alive_offset = b->alive_offset;
  b->locations = NULL;
  b->steps = (hg_array){.element_size = sizeof(native_step)};
  hg_code_announce(native->code, native->code_bytes, native->program->name);
  return HG_OK;
}

static hg_native *new_kernel(hg_code_pages *pages, const native_target *target, const cpu_kernels *kernels,
                             const atlas_program *program) {
  hg_native *native = hg_allocate(&pages->allocator, 1, sizeof *native);
  if (native == NULL) return NULL;
  *native = (hg_native){.allocator = pages->allocator, .target = target, .kernels = kernels, .program = program,
                        .pages = pages, .row_length = VECTOR_NONE,
                        .lane_accesses.element_size = sizeof(native_lane_access)};
  native->own.allocator = native->divided.allocator = pages->allocator;
  return native;
}

/* *vector moves to *to; 1 if it is the one that a version is of. */
static int take_vector(native_build *b, hg_vector *vector, hg_vector *to) {
  int is_its = b->vector == vector;
  if (!is_its) return 0;
  *to = *vector;
  vector->insns.data = vector->regs.data = NULL;
  b->vector = to;
  return 1;
}

/* The kernel takes a version's program and code. */
static hg_status take_version(hg_native *native, native_made *made, native_version version) {
  native_build *b = &made->b[version];
  if (!take_vector(b, &made->own[version], &native->own)) take_vector(b, &made->divided, &native->divided);
  native->vector = b->vector;
  native->slices = b->slices;
  native->shape = b->shape;
  native->runs_on = b->runs_on;
  native->streams = b->streams;
  native->stored_bytes = b->stored_bytes;
  native->moved_bytes = b->moved_bytes;
  HG_TRY(place_code(native, b));
  if (version == NATIVE_FOR_ROWS) native->row_length = b->row_length;
  if (version == NATIVE_FOR_ALL || version == NATIVE_FOR_ROWS) return note_accesses(native);
  native->full_lanes = b->slices * native->target->lanes;
  return HG_OK;
}

/* *out: the kernel of a version for whole blocks, if there is one. */
static hg_status add_version(const hg_native *native, native_made *made, native_version version, hg_native **out) {
  if (made->b[version].code == NULL) return HG_OK;
  *out = new_kernel(native->pages, native->target, native->kernels, native->program);
  if (*out != NULL) (*out)->stream_bytes = native->stream_bytes;
  return *out != NULL ? take_version(*out, made, version) : hg_fail_memory("a kernel", sizeof *native);
}

/* Blocks that have all their lanes are most of a launch, where there is code for them. */
static hg_status describe(hg_native *native, const native_made *made) {
  char text[NATIVE_MOST_NOTES];
  native_version usual = made->b[NATIVE_FOR_BLOCK].code != NULL ? NATIVE_FOR_BLOCK : NATIVE_FOR_ALL;
  HG_TRY(hg_native_describe_slow(&made->b[usual], text, sizeof text));
  if (text[0] == '\0') return HG_OK;
  native->notes = hg_allocate_unset(&native->allocator, strlen(text) + 1, 1);
  if (native->notes == NULL) return hg_fail_memory("a kernel", strlen(text) + 1);
  memcpy(native->notes, text, strlen(text) + 1);
  return HG_OK;
}

hg_status hg_native_compile(hg_code_pages *pages, const native_target *target, const cpu_kernels *kernels,
                            uint64_t stream_bytes, const atlas_program *program, const hg_vector *vector,
                            hg_native **out) {
  native_made made;
  hg_native *native = new_kernel(pages, target, kernels, program);
  if (native == NULL) return hg_fail_memory("a kernel", sizeof *native);
  native->stream_bytes = stream_bytes;
  hg_status status = hg_native_make(&pages->allocator, target, program, vector, 1, stream_bytes, NULL, &made);
  if (status == HG_OK) status = describe(native, &made);
  if (status == HG_OK) status = add_version(native, &made, NATIVE_FOR_STACK, &native->stack);
  if (status == HG_OK) status = add_version(native, &made, NATIVE_FOR_BLOCK, &native->straight);
  if (status == HG_OK) status = add_version(native, &made, NATIVE_FOR_ROWS, &native->rows);
  if (status == HG_OK) status = take_version(native, &made, NATIVE_FOR_ALL);
  hg_native_made_release(&made);
  if (status == HG_OK) *out = native;
  else hg_native_release(native);
  return status;
}

const char *hg_native_engine(const hg_native *native) { return native->target->engine; }

int hg_native_calls_in_loops(const hg_native *native) { return native->calls_in_loops; }

const char *hg_native_notes(const hg_native *native) { return native->notes != NULL ? native->notes : ""; }

void hg_native_release(hg_native *native) {
  if (native == NULL) return;
  hg_allocator allocator = native->allocator;
  hg_native_release(native->straight);
  hg_native_release(native->stack);
  hg_native_release(native->rows);
  hg_code_remove(native->pages, native->mapping);
  hg_release(&allocator, native->notes);
  hg_release(&allocator, native->locations);
  hg_vector_release(&native->own);
  hg_vector_release(&native->divided);
  hg_array_release(&allocator, &native->steps);
  hg_array_release(&allocator, &native->lane_accesses);
  hg_release(&allocator, native);
}

hg_status hg_native_versions(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                             const hg_vector *vector, const native_visitor *visitor) {
  static const char *const names[NATIVE_VERSIONS] = {"steps", "whole", "several", "rows"};
  static const native_version order[NATIVE_VERSIONS] = {NATIVE_FOR_BLOCK, NATIVE_FOR_STACK, NATIVE_FOR_ROWS,
                                                        NATIVE_FOR_ALL};
  native_made made;
  hg_status status = hg_native_make(allocator, target, program, vector, 0, UINT64_MAX, visitor, &made);
  for (int k = 0; k < NATIVE_VERSIONS && status == HG_OK; k++) {
    const native_build *b = &made.b[order[k]];
    if (b->code != NULL) status = visitor->visit(visitor->context, names[order[k]], b);
  }
  hg_native_made_release(&made);
  return status;
}

hg_status hg_native_emit(const hg_allocator *allocator, const native_target *target, const atlas_program *program,
                         const hg_vector *vector, uint8_t **code, size_t *byte_count) {
  native_made made;
  const native_build *all = &made.b[NATIVE_FOR_ALL], *block = &made.b[NATIVE_FOR_BLOCK];
  *code = NULL;
  hg_status status = hg_native_make(allocator, target, program, vector, 0, UINT64_MAX, NULL, &made);
  if (status == HG_OK) {
    *byte_count = all->code_bytes + block->code_bytes;
    *code = hg_allocate(allocator, *byte_count, 1);
    if (*code == NULL) status = hg_fail_memory("machine code", *byte_count);
  }
  if (status == HG_OK) memcpy(*code, all->code, all->code_bytes);
  if (status == HG_OK && block->code != NULL) memcpy(*code + all->code_bytes, block->code, block->code_bytes);
  hg_native_made_release(&made);
  return status;
}
