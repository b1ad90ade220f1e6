/* executable.c - makes an executable from a computation: places, plan, kernels. */
#include "ops/run/executable.h"

#include "ops/graph/infer.h"
#include "ops/graph/ops_tuning.h"
#include "ops/plan/plan_computation.h"

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Takes dimensions in ascending order of their strides: each stride must exceed everything that the smaller ones
 * reach. */
static int overlaps_itself(const ops_place *place) {
  uint64_t strides[HG_MAX_RANK], sizes[HG_MAX_RANK], reach = 0;
  uint32_t count = 0;
  for (uint32_t d = 0; d < place->rank && place->extent > 0; d++) {
    if (place->shape[d] <= 1) continue;
    uint64_t stride = place->stride[d] < 0 ? 0 - (uint64_t)place->stride[d] : (uint64_t)place->stride[d];
    uint32_t at = count++;
    for (; at > 0 && strides[at - 1] > stride; at--) strides[at] = strides[at - 1], sizes[at] = sizes[at - 1];
    strides[at] = stride, sizes[at] = place->shape[d];
  }
  for (uint32_t i = 0; i < count; i++) {
    if (strides[i] <= reach) return 1;
    reach += strides[i] * (sizes[i] - 1);
  }
  return 0;
}

static hg_status declare(ops_place *place, const char *name, const hg_tensor *like, uint32_t number, int is_output,
                         int is_written) {
  const char *what = is_output ? "output" : "input";
  if (name[0] != '\0') memcpy(place->name, name, strlen(name) + 1);
  else snprintf(place->name, sizeof place->name, "%u", (unsigned)number);
  place->type = (uint8_t)like->type;
  place->element_bytes = (uint8_t)atlas_bytes((atlas_type)like->type);
  place->is_output = (uint8_t)is_output;
  place->is_written = (uint8_t)is_written;
  place->rank = like->rank;
  memcpy(place->shape, like->shape, like->rank * sizeof place->shape[0]);
  memcpy(place->stride, like->stride, like->rank * sizeof place->stride[0]);
  if (ops_measure(place->rank, place->shape, place->stride, &place->lowest, &place->extent) != NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "%s '%s' has strides with which its elements lie further apart than any memory",
                   what, place->name);
  if (is_written && overlaps_itself(place))
    return hg_fail(HG_INVALID_ARGUMENT, "%s '%s' is written, and its strides put several of its elements in one place",
                   what, place->name);
  return HG_OK;
}

static hg_status declare_places(hg_executable *e, const hg_computation *c) {
  const ops_input *inputs = c->inputs.data;
  const ops_output *outputs = c->outputs.data;
  e->input_count = (uint32_t)c->inputs.count;
  e->output_count = (uint32_t)c->outputs.count;
  e->place_count = e->input_count + e->output_count;
  e->places = hg_allocate(&e->executor->allocator, e->place_count, sizeof *e->places);
  if (e->places == NULL) return hg_fail_memory("the tensors of an executable", e->place_count * sizeof *e->places);
  for (uint32_t i = 0; i < e->input_count; i++)
    HG_TRY(declare(&e->places[i], inputs[i].name, &inputs[i].like, i, 0, inputs[i].update != 0));
  for (uint32_t i = 0; i < e->output_count; i++)
    HG_TRY(declare(&e->places[e->input_count + i], outputs[i].name, &outputs[i].like, i, 1, 1));
  return HG_OK;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* 1 for a step whose results have no elements. */
static int runs_nothing(const ops_step *step) {
  if (step->program == NULL) return 1;
  return step->lanes == 0 && (step->grid[0] == 0 || step->grid[1] == 0 || step->grid[2] == 0);
}

static ops_bind bind_of(const hg_executable *e, const ops_binding *binding) {
  const ops_storage *storage = (const ops_storage *)e->plan.storages.data + binding->storage;
  ops_bind bind = {.slot = binding->slot};
  bind.byte_count = (uint64_t)storage->extent * atlas_bytes((atlas_type)storage->type);
  if (storage->kind == OPS_TEMPORARY) {
    bind.place = OPS_WORKSPACE;
    bind.first_byte = storage->first_byte;
  } else {
    bind.place = storage->index + (storage->kind == OPS_OF_OUTPUT ? e->input_count : 0);
  }
  return bind;
}

static void describe_launch(const hg_executable *e, uint32_t number, const ops_step *step, ops_launch *launch) {
  launch->lanes = step->lanes;
  launch->step_limit = step->step_limit;
  memcpy(launch->grid, step->grid, sizeof launch->grid);
  memcpy(launch->block, step->block, sizeof launch->block);
  launch->moved_bytes = step->bytes_read + step->bytes_written;
  launch->step = number;
  launch->bind_count = step->binding_count;
  launch->scalar_count = step->scalar_count;
  for (uint32_t b = 0; b < step->binding_count; b++) launch->binds[b] = bind_of(e, &step->bindings[b]);
  for (uint32_t s = 0; s < step->scalar_count; s++)
    launch->scalars[s] = (hg_scalar){.slot = step->scalars[s].slot, .type = step->scalars[s].type,
                                     .bits = step->scalars[s].bits};
}

/* The launches with what they bind: one block, since a run reads all of it. */
static hg_status describe_launches(hg_executable *e) {
  const ops_step *steps = e->plan.steps.data;
  uint64_t count = 0, binds = 0, scalars = 0;
  for (uint32_t s = 0; s < e->plan.steps.count; s++) {
    if (runs_nothing(&steps[s])) continue;
    count++, binds += steps[s].binding_count, scalars += steps[s].scalar_count;
  }
  uint64_t bytes = count * sizeof(ops_launch) + binds * sizeof(ops_bind) + scalars * sizeof(hg_scalar);
  e->launches = hg_allocate(&e->executor->allocator, bytes, 1);
  if (e->launches == NULL) return hg_fail_memory("the launches of an executable", bytes);
  ops_bind *bind = (ops_bind *)(void *)(e->launches + count);
  hg_scalar *scalar = (hg_scalar *)(void *)(bind + binds);
  for (uint32_t s = 0; s < e->plan.steps.count; s++) {
    if (runs_nothing(&steps[s])) continue;
    ops_launch *launch = &e->launches[e->launch_count++];
    launch->binds = bind, launch->scalars = scalar;
    describe_launch(e, s, &steps[s], launch);
    bind += launch->bind_count, scalar += launch->scalar_count;
  }
  e->workspace_bytes = e->plan.workspace_bytes;
  return HG_OK;
}

/* Compares the bytes; padding is 0. */
static int is_same_contraction(const void *a, const void *b) {
  return a == b || (a != NULL && b != NULL && memcmp(a, b, sizeof(hg_contraction)) == 0);
}

/* Launches that share a kernel, in lists of those with one program. */
typedef struct makers {
  uint32_t *last; /* by the first step with the program: 1 + the last launch of its list; 0: the list is empty */
  uint32_t *next; /* by launch, in the same way */
} makers;

static uint32_t *list_of(const makers *m, const ops_step *steps, uint32_t step) {
  return &m->last[steps[step].same != 0 ? steps[step].same - 1 : step];
}

/* The launch whose kernel does the same; this one if there is none. */
static uint32_t maker_of_same(const hg_executable *e, const makers *m, uint32_t number) {
  const ops_step *steps = e->plan.steps.data, *step = &steps[e->launches[number].step];
  if (step->rows != NULL) return number;
  for (uint32_t i = *list_of(m, steps, e->launches[number].step); i != 0; i = m->next[i - 1])
    if (is_same_contraction(steps[e->launches[i - 1].step].contraction, step->contraction)) return i - 1;
  return number;
}

/* Starts compiling a kernel: all but the last are compiled in parallel, the last by this thread. */
static hg_status begin_kernel(hg_executable *e, const makers *m, uint32_t number) {
  ops_step *steps = e->plan.steps.data;
  ops_launch *launch = &e->launches[number];
  ops_step *step = &steps[launch->step];
  launch->first = maker_of_same(e, m, number);
  if (launch->first != number) {
    launch->kernel = hg_kernel_retain(e->launches[launch->first].kernel);
    return HG_OK;
  }
  if (number + 1 == e->launch_count || step->contraction != NULL)
    HG_TRY(hg_kernel_create_contraction(e->executor, step->program, step->contraction, &launch->kernel));
  else HG_TRY(hg_kernel_create_async(e->executor, step->program, &launch->kernel, NULL));
  if (step->rows != NULL) { /* it belongs to this launch only */
    launch->kernel->rows = step->rows, step->rows = NULL;
    return HG_OK;
  }
  uint32_t *list = list_of(m, steps, launch->step);
  m->next[number] = *list;
  *list = number + 1;
  return HG_OK;
}

static hg_status begin_kernels(hg_executable *e, hg_patience *patience) {
  const hg_allocator *allocator = &e->executor->allocator;
  uint64_t steps = e->plan.steps.count;
  uint32_t *room = hg_allocate(allocator, steps + e->launch_count, sizeof *room);
  if (room == NULL) return hg_fail_memory("the kernels of an executable", steps * sizeof *room);
  makers m = {.last = room, .next = room + steps};
  hg_status status = HG_OK;
  for (uint32_t i = 0; i < e->launch_count && status == HG_OK; i++) {
    status = begin_kernel(e, &m, i);
    if (status == HG_OK) status = hg_patience_ask(patience);
  }
  hg_release(allocator, room);
  return status;
}

static hg_status make_kernels(hg_executable *e, hg_patience *patience) {
  hg_status status = begin_kernels(e, patience);
  for (uint32_t i = 0; i < e->launch_count && status == HG_OK; i++)
    status = hg_kernel_ready_asking(e->launches[i].kernel, patience);
  return status;
}

/* A kernel that several steps share is named after those whose operations are the same. */
static void name_kernels(hg_executable *e) {
  char by_index[sizeof((hg_kernel *)0)->by_index];
  ops_guards_names(e, by_index, sizeof by_index);
  for (uint32_t i = 0; i < e->launch_count; i++) {
    hg_kernel *kernel = e->launches[i].kernel;
    char names[sizeof kernel->operations];
    ops_operations_of(e, e->launches[i].step, names, sizeof names);
    if (e->launches[i].first == i) memcpy(kernel->operations, names, sizeof names);
    else if (strcmp(kernel->operations, names) != 0) kernel->operations[0] = '\0';
    memcpy(kernel->by_index, by_index, sizeof by_index);
  }
}

/* ---- what may lie in one place ----------------------------------------------------------------------------------- */

/* Notes what ops_may_share needs. */
static void note_access(hg_executable *e, uint32_t number) {
  const ops_launch *launch = &e->launches[number];
  const hg_parameter *parameters = launch->kernel->needs->parameters;
  int by_lanes = ((const ops_step *)e->plan.steps.data)[launch->step].reads_first != 0;
  for (uint32_t b = 0; b < launch->bind_count; b++) {
    const ops_bind *bind = &launch->binds[b];
    if (bind->place == OPS_WORKSPACE) continue;
    ops_place *place = &e->places[bind->place];
    uint8_t access = atlas_symbol_at(launch->kernel->program, bind->slot)->access;
    int is_elsewhere = parameters[bind->slot].element_bytes == 0;
    if ((access & ATLAS_OUT) != 0 && place->begins == UINT32_MAX) {
      place->begins = number;
      place->by_lanes = (uint8_t)(by_lanes && !is_elsewhere);
    }
    if ((access & ATLAS_IN) == 0 || bind->place >= e->input_count) continue;
    if (place->last_read != number + 1) place->is_read_elsewhere = 0;
    place->last_read = number + 1;
    place->is_read_elsewhere |= (uint8_t)is_elsewhere;
  }
}

static void note_accesses(hg_executable *e) {
  for (uint32_t i = 0; i < e->place_count; i++) e->places[i].begins = UINT32_MAX;
  for (uint32_t i = 0; i < e->launch_count; i++) note_access(e, i);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const hg_array *array) { return (uint64_t)array->capacity * array->element_size; }

/* An estimate: compiled code takes about twice as much as its program; a backend's kernel of a contraction less. */
uint64_t ops_code_bytes(const hg_code *code) {
  const uint64_t programs = code->kind != HG_CODE_PROGRAM ? 1 : 1 + 2;
  const atlas_program *program = code->program;
  uint64_t own = sizeof *program + bytes_of(&program->insns) + bytes_of(&program->symbols) +
                 bytes_of(&program->labels) + bytes_of(&program->entries) + bytes_of(&program->constants) +
                 bytes_of(&program->nodes);
  return sizeof *code + programs * own;
}

/* The bytes that exist as long as the executable; a kernel shared by launches counts once. */
static uint64_t count_bytes(const hg_executable *e) {
  uint64_t bytes = sizeof *e + e->place_count * sizeof *e->places + e->launch_count * sizeof *e->launches;
  bytes += bytes_of(&e->plan.storages) + bytes_of(&e->plan.steps) + bytes_of(&e->plan.values) +
           bytes_of(&e->operations) + ops_guards_bytes(e);
  for (uint32_t i = 0; i < e->launch_count; i++) {
    const ops_launch *launch = &e->launches[i];
    bytes += launch->bind_count * sizeof(ops_bind) + launch->scalar_count * sizeof(hg_scalar);
    if (launch->first != i) continue;
    bytes += sizeof *launch->kernel + ops_code_bytes(launch->kernel->code);
    const hg_rows *rows = launch->kernel->rows;
    if (rows != NULL) bytes += (rows->more + UINT64_C(1)) * sizeof *rows;
    if (launch->kernel->contraction != NULL) bytes += sizeof *launch->kernel->contraction;
  }
  return bytes;
}

/* Memory of another allocator may be gone while the executable is there. */
static atlas_program *compiled_program(void *user, const atlas_program *program) {
  hg_executor *executor = user;
  atlas_program *found = hg_code_program(executor, program);
  const hg_allocator *wanted = &executor->allocator;
  if (found == NULL || (found->allocator.user == wanted->user && found->allocator.release == wanted->release))
    return found;
  atlas_program_release(found);
  return NULL;
}

static atlas_program *expected_program(const void *like, uint32_t step) {
  const hg_executable *e = like;
  for (uint32_t i = step < e->launch_count ? step + 1 : e->launch_count; i-- > 0 && e->launches[i].step >= step;)
    if (e->launches[i].step == step) return e->launches[i].kernel->program;
  return NULL;
}

static hg_status create(hg_executable *e, const hg_computation *computation, const hg_executable *like,
                        const hg_allocator *allocator) {
  HG_TRY(declare_places(e, computation));
  hg_executor *executor = e->executor;
  hg_patience patience = ops_patience(e);
  ops_target target = {.for_gpu = executor->info.subgroup_lanes != 0,
                       .compute_units = executor->info.compute_units,
                       .shared_bytes = executor->info.max_shared_bytes,
                       .spreads_blocks = executor->info.spreads_blocks != 0,
                       .numerics = e->flags & (HG_NUMERICS_FAST | HG_NUMERICS_TF32),
                       .contract_scratch = executor->backend->contract_scratch,
                       .constants_vary = (e->flags & OPS_CONSTANTS_VARY) != 0,
                       .device = executor->device,
                       .compiled = compiled_program,
                       .executor = executor,
                       .lasting = &executor->allocator,
                       .expected = like != NULL ? expected_program : NULL,
                       .like = like,
                       .patience = &patience};
  HG_TRY(ops_plan_computation(allocator, computation, e->flags, &target, &e->plan));
  HG_TRY(describe_launches(e));
  HG_TRY(make_kernels(e, &patience));
  note_accesses(e);
  HG_TRY(ops_note_operations(e, computation));
  HG_TRY(ops_note_guards(e, computation));
  name_kernels(e);
  return HG_OK;
}

/* What stays of a plan leaves the arena in which it was made. */
static hg_status keep_plan(hg_executable *e) {
  const hg_allocator *to = &e->executor->allocator, *from = &e->plan.allocator;
  ops_step *steps = e->plan.steps.data;
  for (uint32_t s = 0; s < e->plan.steps.count; s++) ops_step_release(&e->plan, &steps[s]);
  hg_array_release(from, &e->plan.programs);
  HG_TRY(hg_array_move(from, to, &e->plan.steps));
  HG_TRY(hg_array_move(from, to, &e->plan.storages));
  HG_TRY(hg_array_move(from, to, &e->plan.values));
  hg_array_trim(to, &e->operations);
  e->plan.allocator = *to;
  e->byte_count = count_bytes(e);
  return HG_OK;
}

static hg_status create_in_arena(hg_executable *e, const hg_computation *computation, const hg_executable *like) {
  const hg_allocator *allocator = &e->executor->allocator;
  hg_arena arena;
  size_t room = hg_arena_bytes(allocator, OPS_PLAN_BYTES);
  void *block = hg_allocate_unset(allocator, room, 1);
  if (block == NULL) return hg_fail_memory("a plan", room);
  hg_arena_begin(&arena, allocator, block, room);
  hg_status status = create(e, computation, like, &arena.allocator);
  if (status == HG_OK) status = keep_plan(e);
  if (status != HG_OK) {
    ops_plan_release(&e->plan);
    e->plan.allocator.release = NULL;
  }
  hg_release(allocator, block);
  return status;
}

hg_status ops_executable_create(hg_executor *executor, const hg_computation *computation, uint32_t flags,
                                const hg_executable *like, hg_executable **out) {
  *out = NULL;
  hg_executable *e = hg_allocate(&executor->allocator, 1, sizeof *e);
  if (e == NULL) return hg_fail_memory("an executable", sizeof *e);
  e->executor = executor;
  e->flags = flags;
  hg_status status = create_in_arena(e, computation, like);
  if (status != HG_OK) {
    ops_executable_destroy(e);
    return status;
  }
  for (uint32_t i = 0; i < e->launch_count; i++) hg_kernel_lend(e->launches[i].kernel);
  hg_executor_retain(executor);
  hg_lock(executor);
  executor->counts.plans++;
  hg_unlock(executor);
  e->references = 1;
  *out = e;
  return HG_OK;
}

void ops_executable_destroy(hg_executable *e) {
  const hg_allocator allocator = e->executor->allocator;
  for (uint32_t i = 0; i < e->launch_count; i++) hg_kernel_abandon(e->launches[i].kernel);
  while (e->calls != NULL) {
    ops_eager *call = e->calls;
    e->calls = call->sibling;
    hg_release(&allocator, call);
  }
  hg_release(&allocator, e->launches);
  hg_release(&allocator, e->places);
  hg_release(&allocator, e->key);
  hg_array_release(&allocator, &e->operations);
  ops_guards_release(e);
  ops_origins_release(&allocator, e->spare_origins);
  if (e->plan.allocator.release != NULL) ops_plan_release(&e->plan);
  hg_release(&allocator, e);
}

/* ---- references -------------------------------------------------------------------------------------------------- */

int ops_unpin_locked(hg_executable *e) { return --e->pins == 0 && e->references == 0 && !e->is_cached; }

hg_executable *hg_executable_retain(hg_executable *executable) {
  if (executable == NULL) return NULL;
  hg_lock(executable->executor);
  executable->references++;
  hg_unlock(executable->executor);
  return executable;
}

void hg_executable_release(hg_executable *executable) {
  if (executable == NULL) return;
  hg_executor *executor = executable->executor;
  hg_lock(executor);
  int is_last = --executable->references == 0, is_needed = executable->is_cached || executable->pins > 0;
  hg_unlock(executor);
  if (!is_last) return;
  if (!is_needed) ops_executable_destroy(executable);
  hg_executor_release(executor);
}
