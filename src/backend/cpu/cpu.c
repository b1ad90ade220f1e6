/* cpu.c - the CPU as a backend: memory is cpu_memory.c's, kernels are cpu_kernel.c's, streams are queue.c's. */
#include "backend/backend.h"

#include "backend/cpu/contract/contract.h"
#include "backend/cpu/cpu_emit.h"
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/cpu_memory.h"
#include "backend/cpu/queue.h"
#include "base/error.h"
#include "base/os.h"
#include "base/threads.h"

#include <string.h>

typedef struct cpu_device {
  hg_cpu_memory memory;
  hg_cpu_compiler compiler;
  cpu_queues queues;
} cpu_device;

static hg_status check_number(uint32_t number) {
  if (number == 0) return HG_OK;
  return hg_fail(HG_UNSUPPORTED, "the CPU is one device, number 0; there is no number %u", (unsigned)number);
}

static hg_status cpu_query(const hg_device_choice *choice, hg_device_info *info) {
  hg_cpu_compiler compiler;
  HG_TRY(check_number(choice->number));
  HG_TRY(hg_cpu_compiler_choose(choice->engine, &compiler));
  *info = (hg_device_info){.engine = hg_cpu_compiler_engine(&compiler),
                           .compute_units = hg_thread_limit_of(choice->threads),
                           .max_shared_bytes = ATLAS_MAX_SHARED_BYTES,
                           .memory_bytes = hg_physical_memory()};
  hg_add_remark(info, "", hg_thread_remark());
  hg_add_remark(info, "", hg_stream_remark());
  hg_cpu_name(info->name, sizeof info->name);
  return HG_OK;
}

static hg_status open_device(const hg_allocator *allocator, const hg_device_choice *choice, void **device) {
  cpu_device *cpu = hg_allocate(allocator, 1, sizeof *cpu);
  if (cpu == NULL) return hg_fail_memory("the CPU device", sizeof *cpu);
  hg_status status = hg_cpu_compiler_open(choice->engine, &cpu->compiler, allocator);
  if (status == HG_OK) {
    status = hg_cpu_queues_open(&cpu->queues, allocator, &cpu->memory);
    if (status != HG_OK) hg_cpu_compiler_close(&cpu->compiler);
  }
  if (status != HG_OK) {
    hg_release(allocator, cpu);
    return status;
  }
  hg_cpu_memory_open(&cpu->memory, allocator);
  cpu->compiler.stream_bytes = cpu->memory.stream_bytes;
  cpu->compiler.cancels = cpu->queues.cancels = choice->cancels;
  cpu->compiler.most_threads = cpu->memory.most_threads = choice->threads;
  *device = cpu;
  return HG_OK;
}

static hg_status cpu_open(const hg_allocator *allocator, const hg_device_choice *choice, void **device,
                          int *host_is_full) {
  HG_TRY(check_number(choice->number));
  hg_status status = open_device(allocator, choice, device);
  *host_is_full = status == HG_OUT_OF_MEMORY;
  return status;
}

static void cpu_close(void *device) {
  cpu_device *cpu = device;
  hg_allocator allocator = cpu->memory.allocator;
  hg_cpu_queues_close(&cpu->queues);
  hg_cpu_compiler_close(&cpu->compiler);
  hg_cpu_memory_close(&cpu->memory);
  hg_release(&allocator, cpu);
}

static hg_status cpu_allocate(void *device, uint64_t byte_count, uint32_t alignment, int zeroed, uint8_t **address) {
  cpu_device *cpu = device;
  hg_mutex_lock(&cpu->queues.mutex);
  hg_status status = hg_cpu_allocate(&cpu->memory, byte_count, alignment, zeroed, address);
  hg_mutex_unlock(&cpu->queues.mutex);
  return status;
}

static void cpu_free(void *device, uint8_t *address) {
  cpu_device *cpu = device;
  hg_mutex_lock(&cpu->queues.mutex);
  hg_cpu_free(&cpu->memory, address);
  hg_mutex_unlock(&cpu->queues.mutex);
}

static void cpu_memory(void *device, hg_device_memory *memory) {
  cpu_device *cpu = device;
  hg_mutex_lock(&cpu->queues.mutex);
  *memory = (hg_device_memory){.kept = cpu->memory.kept_bytes,
                               .kept_most = hg_cpu_kept_most(&cpu->memory),
                               .all_bytes = hg_physical_memory()};
  hg_mutex_unlock(&cpu->queues.mutex);
}

static void cpu_keep(void *device, uint64_t byte_count) {
  cpu_device *cpu = device;
  hg_mutex_lock(&cpu->queues.mutex);
  hg_cpu_keep(&cpu->memory, byte_count);
  hg_mutex_unlock(&cpu->queues.mutex);
}

static void cpu_trim(void *device) {
  cpu_device *cpu = device;
  hg_mutex_lock(&cpu->queues.mutex);
  hg_cpu_trim(&cpu->memory);
  hg_mutex_unlock(&cpu->queues.mutex);
}

/* Nothing can tell whose memory it is. */
static hg_status cpu_adopt(void *device, const uint8_t *memory, uint64_t byte_count) {
  (void)device;
  (void)memory;
  (void)byte_count;
  return HG_OK;
}

static hg_status cpu_copy_in(void *device, uint8_t *destination, const void *source, uint64_t byte_count) {
  cpu_device *cpu = device;
  hg_cpu_copy(&cpu->memory, destination, source, byte_count);
  return HG_OK;
}

static hg_status cpu_copy_out(void *device, void *destination, const uint8_t *source, uint64_t byte_count) {
  cpu_device *cpu = device;
  hg_cpu_copy(&cpu->memory, destination, source, byte_count);
  return HG_OK;
}

static hg_status cpu_copy_within(void *device, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  cpu_device *cpu = device;
  hg_cpu_copy(&cpu->memory, destination, source, byte_count);
  return HG_OK;
}

static hg_status cpu_fill(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern,
                          size_t pattern_size) {
  cpu_device *cpu = device;
  uint8_t repeated[sizeof(uint64_t)];
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof repeated; i++) repeated[i] = ((const uint8_t *)pattern)[i % pattern_size];
  memcpy(&bits, repeated, sizeof bits);
  hg_cpu_fill(&cpu->memory, destination, byte_count, bits);
  return HG_OK;
}

static hg_status cpu_map(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count, void **memory) {
  (void)device;
  (void)byte_count;
  *memory = allocation + offset;
  return HG_OK;
}

static hg_status cpu_unmap(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count) {
  (void)device;
  (void)allocation;
  (void)offset;
  (void)byte_count;
  return HG_OK;
}

static hg_status cpu_compile(void *device, hg_compile_input *input, hg_compiled *out) {
  cpu_device *cpu = device;
  hg_cpu_kernel *kernel = NULL;
  HG_TRY(hg_cpu_kernel_create(&cpu->compiler, input, &kernel));
  *out = (hg_compiled){.kernel = kernel,
                       .engine = hg_cpu_kernel_engine(kernel),
                       .why = hg_cpu_kernel_why(kernel),
                       .notes = hg_cpu_kernel_notes(kernel)};
  return HG_OK;
}

static hg_status cpu_describe(void *device, void *kernel, hg_kernel_facts *facts) {
  (void)device;
  hg_cpu_kernel_describe(kernel, facts);
  return HG_OK;
}

static void cpu_release(void *device, void *kernel) {
  (void)device;
  hg_cpu_kernel_release(kernel);
}

static hg_status cpu_launch(void *device, void *kernel, atlas_launch *launch) {
  (void)device;
  return hg_cpu_kernel_launch(kernel, launch);
}

static uint64_t cpu_contract_scratch(void *device, const hg_contraction *contraction, const char **why) {
  (void)why; /* about fast contractions only, which no CPU is asked for */
  const cpu_device *cpu = device;
  if (cpu->compiler.engine != HG_CPU_NATIVE) return UINT64_MAX; /* other engines run the program */
  return hg_cpu_contract_scratch(cpu->compiler.isa, contraction);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static hg_status stream_open(void *device, void *foreign, void **stream) {
  cpu_device *cpu = device;
  cpu_queue *queue = NULL;
  if (foreign != NULL)
    return hg_fail(HG_UNSUPPORTED, "the CPU has no streams of others; leave hg_stream_desc.foreign NULL");
  HG_TRY(hg_cpu_queue_open(&cpu->queues, &queue));
  *stream = queue;
  return HG_OK;
}

static void stream_close(void *device, void *stream) {
  (void)device;
  hg_cpu_queue_close(stream);
}

static hg_status stream_submit(void *device, void *stream, const hg_work *work) {
  (void)device;
  return hg_cpu_queue_submit(stream, work);
}

static int stream_wait(void *device, void *stream) {
  (void)device;
  return hg_cpu_queue_wait(stream);
}

static int stream_query(void *device, void *stream) {
  (void)device;
  return hg_cpu_queue_query(stream);
}

static hg_status stream_outcome(void *device, void *stream, int result) {
  (void)device;
  return hg_cpu_queue_outcome(stream, result);
}

static int stream_faulted(void *stream, void *graph, uint64_t number, uint64_t *index) {
  (void)graph;
  return hg_cpu_queue_faulted(stream, number, index);
}

static hg_status stream_take_fault(void *device, void *stream, void *graph, uint64_t number, const hg_work *work,
                                   hg_fault *fault) {
  (void)device;
  (void)graph;
  (void)number;
  (void)work;
  hg_cpu_queue_take_fault(stream, fault);
  return HG_OK;
}

static hg_status event_open(void *device, int timed, void **event) {
  cpu_device *cpu = device;
  cpu_event *made = NULL;
  HG_TRY(hg_cpu_event_open(&cpu->memory.allocator, timed, &made));
  *event = made;
  return HG_OK;
}

static void event_close(void *device, void *event) {
  (void)device;
  hg_cpu_event_close(event);
}

static hg_status event_record(void *device, void *event, void *stream) {
  (void)device;
  return hg_cpu_event_record(event, stream);
}

static hg_status event_await(void *device, void *stream, void *event) {
  (void)device;
  return hg_cpu_event_await(stream, event);
}

static hg_event_place event_place(void *device, void *event) {
  (void)device;
  return hg_cpu_event_place(event);
}

static int event_wait(void *device, const hg_event_place *place) {
  (void)device;
  return hg_cpu_event_wait(place);
}

static int event_query(void *device, void *event) {
  (void)device;
  return hg_cpu_event_query(event);
}

static hg_status event_elapsed(void *device, void *from, void *to, double *nanoseconds) {
  (void)device;
  return hg_cpu_event_elapsed(from, to, nanoseconds);
}

static hg_status graph_open(void *device, const hg_work *work, size_t count, void **graph) {
  cpu_device *cpu = device;
  cpu_graph *made = NULL;
  HG_TRY(hg_cpu_graph_open(&cpu->memory.allocator, work, count, &made));
  *graph = made;
  return HG_OK;
}

static void graph_close(void *device, void *graph) {
  (void)device;
  hg_cpu_graph_close(graph);
}

static hg_status graph_submit(void *device, void *stream, void *graph, uint64_t number) {
  (void)device;
  return hg_cpu_queue_run_graph(stream, graph, number);
}

static void stream_free(void *device, uint8_t *address, void *const *streams, size_t count) {
  cpu_device *cpu = device;
  hg_cpu_queue_free(&cpu->queues, address, streams, count);
}

static hg_status host_allocate(void *device, uint64_t byte_count, void **memory) {
  uint8_t *address = NULL;
  if (cpu_allocate(device, byte_count, HG_BACKEND_MIN_ALIGNMENT, 0, &address) != HG_OK)
    return hg_fail_memory("host memory", byte_count);
  *memory = address;
  return HG_OK;
}

static void host_free(void *device, void *memory) { cpu_free(device, memory); }

static const hg_stream_functions streams = {
    .open = stream_open,
    .close = stream_close,
    .submit = stream_submit,
    .wait = stream_wait,
    .wait_at_last = stream_wait,
    .query = stream_query,
    .outcome = stream_outcome,
    .faulted = stream_faulted,
    .take_fault = stream_take_fault,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_await = event_await,
    .event_place = event_place,
    .event_wait = event_wait,
    .event_query = event_query,
    .event_elapsed = event_elapsed,
    .graph_open = graph_open,
    .graph_close = graph_close,
    .graph_submit = graph_submit,
    .free = stream_free,
    .host_allocate = host_allocate,
    .host_free = host_free,
};

extern const hg_backend hg_backend_cpu; /* also declared by src/runtime/backends.c, from the table */
const hg_backend hg_backend_cpu = {
    .name = "cpu",
    .emit_targets = hg_cpu_emit_targets,
    .query = cpu_query,
    .open = cpu_open,
    .close = cpu_close,
    .allocate = cpu_allocate,
    .free = cpu_free,
    .memory = cpu_memory,
    .keep = cpu_keep,
    .trim = cpu_trim,
    .adopt = cpu_adopt,
    .copy_in = cpu_copy_in,
    .copy_out = cpu_copy_out,
    .copy_within = cpu_copy_within,
    .memory_is_host = 1,
    .fill = cpu_fill,
    .map = cpu_map,
    .unmap = cpu_unmap,
    .compile = cpu_compile,
    .describe = cpu_describe,
    .release = cpu_release,
    .launch = cpu_launch,
    .contract_scratch = cpu_contract_scratch,
    .streams = &streams,
};
