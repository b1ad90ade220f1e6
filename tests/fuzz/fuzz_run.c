/* fuzz_run.c - any program that verifies runs on any launch without touching anything but its buffers.
 *
 * The input is a program, in text or (when it starts as one) in binary form. It is launched twice, with small
 * buffers of odd sizes, few lanes and a small step limit; both launches must leave the same bytes. The memory around
 * and inside the buffers is watched by the sanitizer and by canaries. */
#include "fuzz.h"

enum { BUFFER_BYTES = 200, CANARY = 16, MAX_BINDINGS = 64, STEP_LIMIT = 20 };

typedef struct setup {
  hg_executor *executor;
  hg_buffer *buffers[MAX_BINDINGS];
  hg_binding bindings[MAX_BINDINGS];
  size_t binding_count;
  hg_scalar scalars[ATLAS_MAX_SCALARS];
  size_t scalar_count;
} setup;

static atlas_program *read_program(const uint8_t *data, size_t size) {
  atlas_program *program = NULL;
  if (size > 0 && data[0] == 0x89) {
    uint8_t *mended = fuzz_mended(data, size);
    if (atlas_decode(NULL, mended, size, &program) != HG_OK) program = NULL;
    free(mended);
  } else if (atlas_parse(NULL, (const char *)data, size, "fuzz.atlas", &program) != HG_OK) {
    program = NULL;
  }
  return program;
}

static uint8_t canary_byte(size_t i) { return (uint8_t)(0xa5 ^ i); }

static void add_buffer(setup *s, uint32_t slot, uint32_t entry) {
  if (s->binding_count == MAX_BINDINGS) return;
  uint8_t bytes[BUFFER_BYTES + 2 * CANARY];
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = i < CANARY || i >= CANARY + BUFFER_BYTES ? canary_byte(i) : (uint8_t)(i * 37 + slot);
  hg_buffer *buffer = NULL;
  PROMISE(hg_buffer_create(s->executor, NULL, sizeof bytes, &buffer) == HG_OK);
  PROMISE(hg_buffer_write(buffer, 0, bytes, sizeof bytes) == HG_OK);
  s->buffers[s->binding_count] = buffer;
  s->bindings[s->binding_count++] = (hg_binding){
      .slot = slot, .entry = entry, .buffer = buffer, .offset = CANARY, .byte_count = BUFFER_BYTES - slot % 3 * 8};
}

static void set_up(setup *s, const atlas_program *program) {
  size_t count = 0;
  const atlas_symbol *symbols = atlas_program_symbols(program, &count);
  for (uint32_t i = 0; i < count; i++) {
    if (symbols[i].kind == ATLAS_SYMBOL_BUFFER || symbols[i].kind == ATLAS_SYMBOL_POOL) add_buffer(s, i, 0);
    if (symbols[i].kind == ATLAS_SYMBOL_TABLE)
      for (uint32_t entry = 0; entry < symbols[i].count && entry < 5; entry += 2) add_buffer(s, i, entry);
    if (symbols[i].kind == ATLAS_SYMBOL_SCALAR) {
      uint32_t bits = atlas_type_bits((atlas_type)symbols[i].type);
      uint64_t value = UINT64_C(0x9e3779b97f4a7c15) * (i + 1) >> (i % 2 ? 0 : 58);
      s->scalars[s->scalar_count++] = (hg_scalar){
          .slot = i, .type = symbols[i].type, .bits = bits < 64 ? value & ((UINT64_C(1) << bits) - 1) : value};
    }
  }
}

/* Adds what the launch left in the buffers to a hash, after looking at the canaries. */
static uint64_t finish(setup *s, uint64_t hash) {
  for (size_t b = 0; b < s->binding_count; b++) {
    uint8_t bytes[BUFFER_BYTES + 2 * CANARY];
    PROMISE(hg_buffer_read(s->buffers[b], 0, bytes, sizeof bytes) == HG_OK);
    for (size_t i = 0; i < sizeof bytes; i++) {
      if (i < CANARY || i >= CANARY + BUFFER_BYTES) PROMISE(bytes[i] == canary_byte(i));
      hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    hg_buffer_release(s->buffers[b]);
  }
  return hash;
}

static hg_launch_desc shape_of(const atlas_program *program, size_t input_size) {
  hg_launch_desc desc = {.step_limit = STEP_LIMIT};
  uint32_t block[3];
  atlas_program_block(program, block);
  if (block[0] != 0) {
    for (int i = 0; i < 3; i++) desc.block[i] = block[i];
    desc.grid[0] = 1;
  } else if (input_size % 2) {
    desc.lanes = input_size % 7 + 1;
  } else {
    desc.grid[0] = 2;
    desc.block[0] = 3;
    desc.block[1] = 1 + (uint32_t)(input_size / 2 % 2);
  }
  return desc;
}

static uint64_t run(atlas_program *program, size_t input_size) {
  setup s = {0};
  hg_kernel *kernel = NULL;
  const hg_executor_desc here = {.size = sizeof here, .backend = HG_BACKEND_CPU}; /* GPUs may have doubles here */
  PROMISE(hg_executor_create(&here, &s.executor) == HG_OK);
  set_up(&s, program);
  PROMISE(hg_kernel_create(s.executor, program, &kernel) == HG_OK);
  hg_launch_desc desc = shape_of(program, input_size);
  desc.bindings = s.bindings;
  desc.binding_count = s.binding_count;
  desc.scalars = s.scalars;
  desc.scalar_count = s.scalar_count;
  hg_launch_report report = {.size = sizeof report};
  hg_status status = hg_launch(kernel, &desc, &report);
  PROMISE((status == HG_FAULT) == (report.fault.kind != HG_FAULT_NONE));
  if (status != HG_OK) PROMISE(hg_last_error()[0] != '\0');
  uint64_t hash =
      ((uint64_t)status << 32 ^ (uint64_t)report.fault.kind << 16 ^ report.fault.instruction) + report.fault.lane * 31;
  hash = finish(&s, hash);
  hg_kernel_release(kernel);
  hg_executor_release(s.executor);
  return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  atlas_program *program = read_program(data, size);
  if (program == NULL) return 0;
  if (!atlas_program_is_library(program)) PROMISE(run(program, size) == run(program, size));
  atlas_program_release(program);
  return 0;
}
