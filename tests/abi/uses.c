/* uses.c - a program that hands every kind of struct to the library and takes every kind from it: twice, with sizes of
 * 0 in structs as large as version 1's, and with the sizes of its own header. */
#include "abi.h"

/* How large a struct is, and what its size field says. */
#define BYTES(type) (says_nothing ? VERSION_1(type) : sizeof(type))
#define SIZE(type) (says_nothing ? 0 : sizeof(type))
#define EXACTLY(type, fill) exactly(BYTES(type), SIZE(type), fill)

static int says_nothing;

static void *allocate(void *user, size_t size) {
  ++*(int *)user;
  return malloc(size);
}

static void release(void *user, void *memory) {
  --*(int *)user;
  free(memory);
}

static void count_message(void *user, hg_log_level level, const char *message) {
  (void)level;
  *(int *)user += message[0] != '\0';
}

static void check_info(setting *s) {
  hg_executor_info *info = EXACTLY(hg_executor_info, 0x55);
  CHECK_EQ_U64(hg_executor_query(s->executor, info), HG_OK);
  CHECK_EQ_U64(info->size, SIZE(hg_executor_info));
  CHECK_STR(info->backend_name, "cpu");
  CHECK_EQ_U64(info->numerics_version, ATLAS_NUMERICS_VERSION);
  free(info);

  hg_backend_info *backend = EXACTLY(hg_backend_info, 0x55);
  CHECK_EQ_U64(hg_backend_query(2, backend), HG_OK);
  CHECK_STR(backend->name, "cpu");
  CHECK_EQ_U64(backend->available, 1);
  CHECK_EQ_U64(backend->reserved, 0);
  free(backend);

  hg_emit_target_info *target = EXACTLY(hg_emit_target_info, 0x55);
  CHECK_EQ_U64(hg_emit_target_query(0, target), HG_OK);
  CHECK(target->name[0] != '\0');
  free(target);

  hg_cache_info *cache = EXACTLY(hg_cache_info, 0x55);
  CHECK_EQ_U64(hg_cache_query(cache), HG_OK);
  CHECK(memchr(cache->folder, 0, sizeof cache->folder) != NULL);
  free(cache);
  CHECK(hg_version_number() >= HG_VERSION_NUMBER);
}

static void check_errors(void) {
  static const char bad[] = ".program bad\n  add.f33 r0, r1, r2\n";
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, bad, strlen(bad), "bad.atlas", &program), HG_PARSE);
  hg_error_info *error = EXACTLY(hg_error_info, 0x55);
  CHECK_EQ_U64(hg_last_error_info(error), HG_OK);
  CHECK_EQ_U64(error->status, HG_PARSE);
  CHECK_EQ_U64(error->line, 2);
  CHECK(error->column > 2);
  CHECK_STR(error->source, "bad.atlas");
  CHECK(strstr(error->message, "f33") != NULL && strstr(error->message, "bad.atlas") == NULL);
  CHECK(error->offset == -1);
  free(error);
}

static void check_launches(setting *s, hg_stream *stream) {
  /* Of version 1, or of this header: a size of 0 says the former. */
  size_t binding_bytes = BYTES(hg_binding), scalar_bytes = BYTES(hg_scalar);
  hg_launch_desc *desc = EXACTLY(hg_launch_desc, 0);
  hg_launch_report *report = EXACTLY(hg_launch_report, 0x55);
  hg_binding *bindings = bind(s, binding_bytes);
  hg_scalar *scalars = give_scalars(scalar_bytes);
  desc->lanes = LANES;
  desc->bindings = bindings;
  desc->binding_count = 3;
  desc->binding_size = SIZE(hg_binding);
  desc->scalars = scalars;
  desc->scalar_count = 2;
  desc->scalar_size = SIZE(hg_scalar);
  CHECK_EQ_U64(hg_launch(s->kernel, desc, report), HG_OK);
  CHECK_EQ_U64(report->size, SIZE(hg_launch_report));
  CHECK_EQ_U64(report->fault.kind, HG_FAULT_NONE);
  CHECK_EQ_U64(report->lanes, LANES);
  CHECK_STR(report->backend, "cpu");
  CHECK(report->engine[0] != '\0');
  CHECK(report->notes[0] != 0x55);
  check_output(s);

  desc->lanes = LANES + 1;
  memset((uint8_t *)report + sizeof(size_t), 0x55, BYTES(hg_launch_report) - sizeof(size_t));
  CHECK_EQ_U64(hg_launch(s->kernel, desc, report), HG_FAULT);
  CHECK_EQ_U64(report->fault.kind, HG_FAULT_OUT_OF_BOUNDS);
  CHECK_EQ_U64(report->fault.lane, LANES);
  CHECK_EQ_U64(strlen(report->fault.buffer), 1); /* x or y */
  CHECK_EQ_U64(report->fault.extent, LANES);
  CHECK_EQ_U64(report->lanes, LANES + 1);

  desc->stream = stream;
  memset((uint8_t *)report + sizeof(size_t), 0x55, BYTES(hg_launch_report) - sizeof(size_t));
  CHECK_EQ_U64(hg_launch(s->kernel, desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, report), HG_FAULT);
  CHECK_EQ_U64(report->fault.lane, LANES);
  CHECK_STR(report->backend, "cpu");
  CHECK(report->notes[0] != 0x55);
  check_output(s);
  free(scalars);
  free(bindings);
  free(report);
  free(desc);
}

static void check_streams(setting *s) {
  hg_stream_desc *stream_desc = EXACTLY(hg_stream_desc, 0);
  hg_event_desc *event_desc = EXACTLY(hg_event_desc, 0);
  hg_buffer_desc *buffer_desc = EXACTLY(hg_buffer_desc, 0);
  hg_stream *stream = NULL;
  hg_event *event = NULL;
  hg_buffer *buffer = NULL;
  event_desc->flags = HG_EVENT_TIMED;
  buffer_desc->alignment = 4096;
  CHECK_EQ_U64(hg_stream_create(s->executor, stream_desc, &stream), HG_OK);
  CHECK_EQ_U64(hg_event_create(s->executor, event_desc, &event), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(s->executor, buffer_desc, 64, &buffer), HG_OK);
  check_launches(s, stream);
  hg_buffer_release(buffer);
  hg_event_release(event);
  hg_stream_release(stream);
  free(buffer_desc);
  free(event_desc);
  free(stream_desc);
}

/* The first program again, from instructions as data. */
static void check_builder(void) {
  atlas_builder *b = NULL;
  atlas_program *program = NULL;
  size_t count = 0;
  CHECK_EQ_U64(atlas_builder_create(NULL, "twice", &b), HG_OK);
  uint16_t x = atlas_builder_buffer(b, "x", ATLAS_f32, ATLAS_INOUT);
  const atlas_operand load[] = {atlas_reg(0), atlas_mem_lane(x, 0)};
  const atlas_operand add[] = {atlas_reg(0), atlas_reg(0), atlas_reg(0)};
  const atlas_operand store[] = {atlas_mem_lane(x, 0), atlas_reg(0)};
  atlas_emit_operands(b, ATLAS_OP_ldg, ATLAS_f32, ATLAS_NONE, load, 2);
  atlas_emit_operands(b, ATLAS_OP_add, ATLAS_f32, ATLAS_NONE, add, 3);
  atlas_emit(b, ATLAS_OP_stg, ATLAS_f32, 2, store[0], store[1]);
  atlas_emit_operands(b, ATLAS_OP_exit, ATLAS_NONE, ATLAS_NONE, NULL, 0);
  CHECK_EQ_U64(atlas_builder_finish(b, &program), HG_OK);
  const atlas_insn *insns = atlas_program_insns(program, &count);
  CHECK_EQ_U64(count, 4);
  CHECK_EQ_U64(insns[1].op, ATLAS_OP_add);
  CHECK_EQ_U64(insns[2].operand[0].mode, ATLAS_ADDRESS_INDEXED);
  CHECK_STR(atlas_program_symbols(program, &count)->name, "x");
  atlas_program_release(program);
}

static void run(void) {
  int allocations = 0, messages = 0;
  hg_allocator *allocator = EXACTLY(hg_allocator, 0);
  hg_executor_desc *desc = EXACTLY(hg_executor_desc, 0);
  allocator->user = &allocations;
  allocator->allocate = allocate;
  allocator->release = release;
  desc->backend = HG_BACKEND_CPU;
  desc->allocator = allocator;
  desc->log = count_message;
  desc->log_user = &messages;
  setting s = {0};
  set_up(&s, desc);
  memset(allocator, 0x55, BYTES(hg_allocator)); /* copied */
  CHECK(allocations > 0);
  CHECK(messages > 0);
  check_info(&s);
  check_errors();
  check_streams(&s);
  check_builder();
  tear_down(&s);
  CHECK_EQ_U64(allocations, 0);
  free(desc);
  free(allocator);
}

int main(void) {
  for (says_nothing = 0; says_nothing < 2; says_nothing++) run();
  return check_report();
}
