/* newer.c - a program that was compiled against a later header, in which every struct has a field `grown` more, and
 * runs on this library. */
#include "abi.h"

/* What a caller asks for that the library does not know. */
static void check_refused(hg_status status, const char *name) {
  CHECK_EQ_U64(status, HG_INVALID_ARGUMENT);
  CHECK(strstr(hg_last_error(), name) != NULL);
  CHECK(strstr(hg_last_error(), "newer library") != NULL);
}

/* Accepted as it is, refused with its last byte set, and with sizes that no header has. */
#define CHECK_READ(type, desc, create)                        \
  do {                                                        \
    (desc).size = sizeof(type);                               \
    CHECK_EQ_U64(create, HG_OK);                              \
    (desc).grown[2] = UINT64_C(1) << 63;                      \
    check_refused(create, #type);                             \
    (desc).grown[2] = 0;                                      \
    (desc).size = VERSION_1(type) - 1;                        \
    CHECK_EQ_U64(create, HG_INVALID_ARGUMENT);                \
    CHECK(strstr(hg_last_error(), #type ".size") != NULL);    \
    (desc).size = SIZE_MAX;                                   \
    CHECK_EQ_U64(create, HG_INVALID_ARGUMENT);                \
    (desc).size = 0;                                          \
    (desc).grown[2] = 1; /* a size of 0 says that it is not there */ \
    CHECK_EQ_U64(create, HG_OK);                              \
  } while (0)

static hg_status open_executor(const hg_executor_desc *desc) {
  hg_executor *executor = NULL;
  hg_status status = hg_executor_create(desc, &executor);
  hg_executor_release(executor);
  return status;
}

static void *allocate(void *user, size_t size) {
  (void)user;
  return malloc(size);
}

static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

static hg_status open_stream(setting *s, const hg_stream_desc *desc) {
  hg_stream *stream = NULL;
  hg_status status = hg_stream_create(s->executor, desc, &stream);
  hg_stream_release(stream);
  return status;
}

static hg_status open_event(setting *s, const hg_event_desc *desc) {
  hg_event *event = NULL;
  hg_status status = hg_event_create(s->executor, desc, &event);
  hg_event_release(event);
  return status;
}

static hg_status open_buffer(setting *s, const hg_buffer_desc *desc) {
  hg_buffer *buffer = NULL;
  hg_status status = hg_buffer_create(s->executor, desc, 64, &buffer);
  hg_buffer_release(buffer);
  return status;
}

static void check_descriptors(setting *s) {
  hg_executor_desc executor = {.backend = HG_BACKEND_CPU};
  hg_allocator allocator = {.allocate = allocate, .release = release};
  hg_stream_desc stream = {.size = 0};
  hg_event_desc event = {.size = 0};
  hg_buffer_desc buffer = {.size = 0};
  CHECK_READ(hg_executor_desc, executor, open_executor(&executor));
  executor.allocator = &allocator;
  CHECK_READ(hg_allocator, allocator, open_executor(&executor));
  CHECK_READ(hg_stream_desc, stream, open_stream(s, &stream));
  CHECK_READ(hg_event_desc, event, open_event(s, &event));
  CHECK_READ(hg_buffer_desc, buffer, open_buffer(s, &buffer));
}

static void check_launch(setting *s) {
  hg_binding *bindings = bind(s, sizeof *bindings);
  hg_scalar *scalars = give_scalars(sizeof *scalars);
  hg_launch_desc desc = {
      .lanes = LANES, .bindings = bindings, .binding_count = 3, .scalars = scalars, .scalar_count = 2};
  desc.binding_size = sizeof *bindings;
  desc.scalar_size = sizeof *scalars;
  CHECK_READ(hg_launch_desc, desc, hg_launch(s->kernel, &desc, NULL));
  check_output(s);
  bindings[1].grown[0] = 1;
  check_refused(hg_launch(s->kernel, &desc, NULL), "hg_binding");
  bindings[1].grown[0] = 0;
  bindings[2].reserved[2] = 1;
  CHECK_EQ_U64(hg_launch(s->kernel, &desc, NULL), HG_INVALID_ARGUMENT);
  bindings[2].reserved[2] = 0;
  scalars[1].grown[2] = 1;
  check_refused(hg_launch(s->kernel, &desc, NULL), "hg_scalar");
  scalars[1].grown[2] = 0;
  scalars[0].reserved[0] = 1;
  CHECK_EQ_U64(hg_launch(s->kernel, &desc, NULL), HG_INVALID_ARGUMENT);
  scalars[0].reserved[0] = 0;
  desc.binding_size = VERSION_1(hg_binding) - 8;
  CHECK_EQ_U64(hg_launch(s->kernel, &desc, NULL), HG_INVALID_ARGUMENT);
  CHECK(strstr(hg_last_error(), "hg_launch_desc.binding_size") != NULL);
  desc.binding_size = sizeof *bindings;
  CHECK_EQ_U64(hg_launch(s->kernel, &desc, NULL), HG_OK);
  check_output(s);
  free(scalars);
  free(bindings);
}

/* Filled in as far as the library knows, and zero from there on; not at all where the size cannot be. */
#define CHECK_RESULT(type, query)                                            \
  do {                                                                       \
    type *result = exactly(sizeof(type), sizeof(type), 0x55);                \
    CHECK_EQ_U64(query, HG_OK);                                              \
    CHECK_EQ_U64(result->size, sizeof(type));                                \
    for (int g = 0; g < 3; g++) CHECK_EQ_U64(result->grown[g], 0);           \
    result->size = VERSION_1(type) - 1;                                      \
    result->grown[0] = 7;                                                    \
    CHECK_EQ_U64(query, HG_INVALID_ARGUMENT);                                \
    CHECK(strstr(hg_last_error(), #type ".size") != NULL);                   \
    result->size = 0;                                                        \
    CHECK_EQ_U64(query, HG_OK);                                              \
    CHECK_EQ_U64(result->grown[0], 7);                                       \
    free(result);                                                            \
  } while (0)

static void check_results(setting *s) {
  hg_launch_desc none = {.lanes = 0};
  hg_stream *stream = NULL;
  hg_binding *bindings = bind(s, sizeof *bindings);
  hg_scalar *scalars = give_scalars(sizeof *scalars);
  none.bindings = bindings;
  none.binding_count = 3;
  none.binding_size = sizeof *bindings;
  none.scalars = scalars;
  none.scalar_count = 2;
  none.scalar_size = sizeof *scalars;
  CHECK_EQ_U64(hg_stream_create(s->executor, NULL, &stream), HG_OK);
  CHECK_RESULT(hg_executor_info, hg_executor_query(s->executor, result));
  CHECK_RESULT(hg_backend_info, hg_backend_query(2, result));
  CHECK_RESULT(hg_memory_info, hg_memory_query(s->executor, result));
  CHECK_RESULT(hg_emit_target_info, hg_emit_target_query(0, result));
  CHECK_RESULT(hg_cache_info, hg_cache_query(result));
  CHECK_RESULT(hg_error_info, hg_last_error_info(result));
  CHECK_RESULT(hg_launch_report, hg_launch(s->kernel, &none, result));
  CHECK_RESULT(hg_launch_report, hg_stream_wait(stream, result));
  hg_stream_release(stream);
  free(scalars);
  free(bindings);
}

int main(void) {
  setting s = {0};
  set_up(&s, NULL);
  check_descriptors(&s);
  check_launch(&s);
  check_results(&s);
  tear_down(&s);
  return check_report();
}
