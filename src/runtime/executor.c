/* executor.c - executors: choosing a backend, and the state that belongs to a device rather than to a launch. */
#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* Appends "name: words" to the selection, after "; ". A selection that is too long is cut: no error. */
static void note_selection(hg_executor *executor, const char *name, const char *words) {
  size_t used = strlen(executor->selection), room = sizeof executor->selection - used;
  int length = snprintf(executor->selection + used, room, "%s%s: %s", used > 0 ? "; " : "", name, words);
  if (length >= (int)room) memcpy(executor->selection + sizeof executor->selection - 4, "...", 4);
}

/* Opens the backend of a row. *host_is_full: as in hg_backend.open. */
static hg_status open_row(hg_executor *executor, const hg_backend_row *row, const hg_device_choice *choice,
                          int *host_is_full) {
  if (row->backend == NULL) return hg_fail(HG_UNSUPPORTED, "%s", row->absent);
  HG_TRY(row->backend->query(choice, &executor->info));
  HG_TRY(row->backend->open(&executor->allocator, choice, &executor->device, host_is_full));
  executor->row = row;
  executor->backend = row->backend;
  return HG_OK;
}

static hg_status choose_backend(hg_executor *executor, hg_backend_id wanted, const hg_device_choice *choice) {
  for (size_t i = 0;; i++) {
    const hg_backend_row *row = hg_backend_at(i);
    if (row == NULL) break;
    if (wanted != HG_BACKEND_AUTO && row->id != wanted) continue;
    int host_is_full = 0;
    hg_status status = open_row(executor, row, choice, &host_is_full);
    if (status == HG_OK) {
      note_selection(executor, row->name, wanted == HG_BACKEND_AUTO ? "chosen" : "asked for");
      return HG_OK;
    }
    if (wanted != HG_BACKEND_AUTO && status == HG_UNSUPPORTED)
      return hg_fail(HG_UNSUPPORTED, "the %s backend is not available: %s", row->name, hg_last_error());
    if (wanted != HG_BACKEND_AUTO || status == HG_INVALID_ARGUMENT || host_is_full) return status;
    note_selection(executor, row->name, hg_last_error());
  }
  if (wanted == HG_BACKEND_AUTO) return hg_fail(HG_UNSUPPORTED, "no backend is available: %s", executor->selection);
  return hg_fail(HG_INVALID_ARGUMENT, "there is no backend with the number %d", (int)wanted);
}

hg_status hg_executor_create(const hg_executor_desc *desc, hg_executor **out) {
  hg_executor_desc own;
  if (out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_executor_create: out is NULL");
  *out = NULL;
  HG_TRY(HG_READ(hg_executor_desc, &own, desc));
  if (own.reserved != 0 || own.reserved2 != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_executor_desc.reserved%s is %u, not 0", own.reserved != 0 ? "" : "2",
                   own.reserved != 0 ? own.reserved : own.reserved2);
  hg_allocator allocator;
  HG_TRY(hg_allocator_resolve(own.allocator, &allocator));
  hg_executor *executor = hg_allocate(&allocator, 1, sizeof *executor);
  if (executor == NULL) return hg_fail_memory("an executor", sizeof *executor);
  executor->allocator = allocator;
  executor->log = own.log;
  executor->log_user = own.log_user;
  executor->ask = own.ask;
  executor->ask_user = own.ask_user;
  executor->handles.element_size = sizeof(hg_handle_slot);
  executor->streams.element_size = sizeof(hg_stream *);
  executor->busy_streams.element_size = sizeof(void *);
  executor->host_memory.element_size = sizeof(hg_host_block);
  executor->codes = executor->few_codes;
  executor->code_buckets = HG_CODE_BUCKETS;
  atomic_init(&executor->references, 1);
  if (hg_mutex_init(&executor->mutex) != 0) {
    hg_release(&allocator, executor);
    return hg_fail(HG_OUT_OF_MEMORY, "could not make a mutex for an executor");
  }
  hg_device_choice choice = {.number = own.device,
                             .engine = own.engine != NULL ? own.engine : "",
                             .threads = own.threads,
                             .cancels = &executor->cancels};
  hg_status status = choose_backend(executor, own.backend, &choice);
  if (status != HG_OK) {
    hg_mutex_destroy(&executor->mutex);
    hg_release(&allocator, executor);
    return status;
  }
  hg_log(executor, HG_LOG_INFO, "executor on %s (%s): %s", executor->row->name, executor->info.name,
         executor->selection);
  if (executor->info.remarks[0] != '\0')
    hg_log(executor, HG_LOG_INFO, "%s: %s", executor->row->name, executor->info.remarks);
  *out = executor;
  return HG_OK;
}

hg_executor *hg_executor_retain(hg_executor *executor) {
  if (executor != NULL) hg_reference(&executor->references);
  return executor;
}

void hg_executor_release(hg_executor *executor) {
  if (executor == NULL || !hg_unreference(&executor->references)) return;
  /* No buffer, pool, kernel, stream or graph is left: each would hold a reference. */
  hg_allocator allocator = executor->allocator;
  if (executor->attachment != NULL) executor->close_attachment(executor, executor->attachment);
  hg_compilers_close(executor);
  if (executor->boundary != NULL) executor->backend->free(executor->device, executor->boundary);
  executor->backend->close(executor->device);
  hg_array_release(&allocator, &executor->handles);
  hg_array_release(&allocator, &executor->streams);
  hg_array_release(&allocator, &executor->busy_streams);
  hg_array_release(&allocator, &executor->host_memory);
  hg_codes_close(executor);
  hg_mutex_destroy(&executor->mutex);
  hg_release(&allocator, executor);
}

hg_status hg_cancel(hg_executor *executor) {
  if (executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_cancel: the executor is NULL");
  atomic_fetch_add(&executor->cancels, 1);
  return HG_OK;
}

hg_status hg_executor_query(hg_executor *executor, hg_executor_info *info) {
  if (executor == NULL || info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_executor_query: an argument is NULL");
  hg_executor_info result = {.backend = executor->row->id,
                             .backend_name = executor->row->name,
                             .device_name = executor->info.name,
                             .selection = executor->selection,
                             .engine = executor->info.engine,
                             .compute_units = executor->info.compute_units,
                             .max_block_lanes = ATLAS_MAX_BLOCK_LANES,
                             .max_shared_bytes = executor->info.max_shared_bytes,
                             .memory_bytes = executor->info.memory_bytes,
                             .isa_version = ATLAS_ISA_VERSION,
                             .numerics_version = ATLAS_NUMERICS_VERSION};
  return HG_WRITE(hg_executor_info, info, &result);
}

hg_status hg_executor_count(hg_executor *executor, hg_counts *counts) {
  if (executor == NULL || counts == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_executor_count: an argument is NULL");
  hg_lock(executor);
  hg_counts result = executor->counts;
  hg_unlock(executor);
  return HG_WRITE(hg_counts, counts, &result);
}

void hg_log(hg_executor *executor, hg_log_level level, const char *format, ...) {
  if (executor->log == NULL) return;
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (length >= 0) executor->log(executor->log_user, level, message);
}

/* ---- state for class programs ------------------------------------------------------------------------------------ */

hg_status hg_executor_resonance(hg_executor *executor, int64_t counters[ATLAS_CLASS_COUNT]) {
  if (executor == NULL || counters == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_executor_resonance: an argument is NULL");
  hg_lock(executor);
  memcpy(counters, executor->resonance, sizeof executor->resonance);
  hg_unlock(executor);
  return HG_OK;
}

hg_status hg_executor_resonance_reset(hg_executor *executor) {
  if (executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_executor_resonance_reset: the executor is NULL");
  hg_lock(executor);
  memset(executor->resonance, 0, sizeof executor->resonance);
  hg_unlock(executor);
  return HG_OK;
}

hg_status hg_executor_phase(hg_executor *executor, uint32_t *phase) {
  if (executor == NULL || phase == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_executor_phase: an argument is NULL");
  hg_lock(executor);
  *phase = executor->phase;
  hg_unlock(executor);
  return HG_OK;
}

hg_status hg_executor_set_phase(hg_executor *executor, uint32_t phase) {
  if (executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_executor_set_phase: the executor is NULL");
  if (phase >= ATLAS_PHASE_COUNT)
    return hg_fail(HG_INVALID_ARGUMENT, "phase %u is not below %d", (unsigned)phase, ATLAS_PHASE_COUNT);
  hg_lock(executor);
  executor->phase = phase;
  hg_unlock(executor);
  return HG_OK;
}

hg_status hg_boundary_locked(hg_executor *executor, uint8_t **address) {
  if (executor->boundary == NULL) {
    uint8_t *memory = NULL;
    HG_TRY(executor->backend->allocate(executor->device, ATLAS_BOUNDARY_POOL_BYTES, HG_BACKEND_MAX_ALIGNMENT, 1,
                                       &memory));
    executor->boundary = memory;
  }
  *address = executor->boundary;
  return HG_OK;
}

static hg_status boundary_copy(hg_executor *executor, uint64_t offset, const void *source, void *destination,
                               uint64_t byte_count) {
  if (executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "the executor of a boundary copy is NULL");
  if (source == NULL && destination == NULL && byte_count > 0)
    return hg_fail(HG_INVALID_ARGUMENT, "the host memory of a boundary copy is NULL");
  HG_TRY(hg_check_range("the boundary pool", ATLAS_BOUNDARY_POOL_BYTES, offset, byte_count));
  if (byte_count == 0) return HG_OK;
  hg_lock(executor);
  uint8_t *address = NULL;
  hg_status status = hg_settle_locked(executor, &executor->boundary_used);
  if (status == HG_OK) status = hg_boundary_locked(executor, &address);
  if (status == HG_OK && source != NULL)
    status = executor->backend->copy_in(executor->device, address + offset, source, byte_count);
  else if (status == HG_OK)
    status = executor->backend->copy_out(executor->device, destination, address + offset, byte_count);
  hg_unlock(executor);
  return status;
}

hg_status hg_boundary_write(hg_executor *executor, uint64_t offset, const void *source, uint64_t byte_count) {
  return boundary_copy(executor, offset, source, NULL, byte_count);
}

hg_status hg_boundary_read(hg_executor *executor, uint64_t offset, void *destination, uint64_t byte_count) {
  return boundary_copy(executor, offset, NULL, destination, byte_count);
}
