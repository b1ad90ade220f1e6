/* evaluate.c - computes nodes.
 *
 * The key of a graph (walk.c) finds the executable of an earlier run. Then nothing is built (build.c); only the tensors
 * are gathered.
 *
 * An executor keeps 64 MiB of executables, the last ones used (hg_executables_limit). For each one that it evicts, the
 * least recently used graph is forgotten here.
 *
 * The first time, Python numbers are constants of the program. When the same graph comes with other numbers, it is
 * compiled once more with the numbers as inputs, which then serves all numbers. */
#include "graph.h"

/* ---- what is known ----------------------------------------------------------------------------------------------- */

enum { BUCKETS = 4096, MOST_KNOWN = 4096 };

typedef struct known {
  struct known *next;           /* in its bucket */
  struct known *newer, *older;  /* by last use */
  uint64_t hash;
  uint32_t word_count, scalar_count;
  uint32_t users;      /* number of its runs under way */
  bool is_forgotten;   /* removed from the table: its last run releases it */
  hgpy_device *device; /* not referenced: a device removes its entries */
  hg_executable *executable, *general; /* for these numbers; for any */
  uint64_t *scalars;
  uint64_t words[];
} known;

static known *buckets[BUCKETS], *newest, *oldest;
static uint32_t known_count;

static void forget(known *k) {
  k->is_forgotten = true;
  if (k->users > 0) return;
  hg_executable_release(k->executable);
  hg_executable_release(k->general);
  PyMem_Free(k);
}

static void unlink_use(known *k) {
  *(k->newer != NULL ? &k->newer->older : &newest) = k->older;
  *(k->older != NULL ? &k->older->newer : &oldest) = k->newer;
}

static void link_use(known *k) {
  k->newer = NULL;
  k->older = newest;
  *(newest != NULL ? &newest->newer : &oldest) = k;
  newest = k;
}

static void take_out(known *k) {
  known **at = &buckets[k->hash % BUCKETS];
  while (*at != k) at = &(*at)->next;
  *at = k->next;
  unlink_use(k);
  known_count--;
  forget(k);
}

/* Forgets the `most` least recently used graphs of a device; NULL: of all devices. */
static void forget_oldest(const hgpy_device *device, uint64_t most) {
  for (known *k = oldest, *next; k != NULL && most > 0; k = next) {
    next = k->newer;
    if (device != NULL && k->device != device) continue;
    take_out(k);
    most--;
  }
}

void hgpy_forget(const hgpy_device *device) { forget_oldest(device, UINT64_MAX); }

/* Executables that the executor has evicted since the last call would live on here. */
static void forget_evicted(hgpy_device *device) {
  hg_executables_info info = {.size = sizeof info};
  if (hg_executables_query(device->executor, &info) != HG_OK || info.evictions == device->evictions) return;
  forget_oldest(device, info.evictions - device->evictions);
  device->evictions = info.evictions;
}

static known *find_known(const graph *g, uint64_t hash) {
  for (known *k = buckets[hash % BUCKETS]; k != NULL; k = k->next)
    if (k->hash == hash && k->device == g->device && k->word_count == g->word_count &&
        memcmp(k->words, g->words, g->word_count * sizeof *g->words) == 0) {
      if (k != newest) unlink_use(k), link_use(k);
      return k;
    }
  return NULL;
}

static uint64_t bits_of(const hgpy_node *scalar) {
  uint64_t bits;
  memcpy(&bits, &scalar->value, sizeof bits);
  return bits;
}

/* The bytes of a number in memory, as a cast from 64 bits makes them. False, and its 64 bits: it takes a cast. */
static bool is_plain(const hgpy_node *scalar, uint64_t *bits) {
  uint32_t type = scalar->tensor.type;
  float single = (float)scalar->value.real;
  *bits = bits_of(scalar);
  if (scalar->is_integer) return hgpy_type_is_integer(type) || (type == ATLAS_bool && *bits <= 1);
  if (scalar->value.real != scalar->value.real || (type != ATLAS_f32 && type != ATLAS_f64)) return false;
  if (type == ATLAS_f32) memcpy(bits, &single, sizeof single);
  return true;
}

/* Adds an executable, with a reference, to the table. NULL: raised. */
static known *keep(const graph *g, uint64_t hash, hg_executable *executable) {
  if (known_count >= MOST_KNOWN) forget_oldest(NULL, 1);
  forget_evicted(g->device);
  size_t bytes = (g->word_count + g->scalars.count) * sizeof(uint64_t);
  known *k = PyMem_Malloc(sizeof *k + bytes);
  if (k == NULL) return (known *)PyErr_NoMemory();
  *k = (known){.hash = hash, .word_count = g->word_count, .scalar_count = g->scalars.count, .device = g->device};
  memcpy(k->words, g->words, g->word_count * sizeof *g->words);
  k->scalars = k->words + g->word_count;
  for (uint32_t i = 0; i < g->scalars.count; i++) k->scalars[i] = bits_of(g->scalars.nodes[i]);
  k->executable = executable;
  k->next = buckets[hash % BUCKETS];
  buckets[hash % BUCKETS] = k;
  link_use(k);
  known_count++;
  return k;
}

static bool has_its_numbers(const graph *g, const known *k) {
  for (uint32_t i = 0; i < k->scalar_count; i++)
    if (k->scalars[i] != bits_of(g->scalars.nodes[i])) return false;
  return true;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

enum { FEW_TENSORS = 24, SMALL_COUNT = 8192, LARGE_WORK = 1 << 22 };

/* What a run needs without the GIL: nothing of it can disappear. The executable belongs to the caller. */
typedef struct run {
  hg_executable *executable;
  hg_tensor *tensors, few[FEW_TENSORS];
  hgpy_storage **storages, *few_storages[FEW_TENSORS];
  uint32_t input_count, output_count, count, storage_count;
  uint64_t element_count; /* of the largest tensor */
  hgpy_device *device;
} run;

static bool run_begin(run *r, const graph *g, bool is_general) {
  r->storage_count = 0;
  r->element_count = 0;
  r->device = hgpy_device_retain(g->device);
  r->input_count = g->leaves.count - g->alias_count + (is_general ? g->scalars.count : 0);
  r->output_count = g->results.count - g->update_count;
  r->count = r->input_count + r->output_count;
  r->tensors = r->few;
  r->storages = r->few_storages;
  if (r->count <= FEW_TENSORS) return true;
  r->tensors = PyMem_Malloc(r->count * sizeof *r->tensors);
  r->storages = PyMem_Malloc(r->count * sizeof(hgpy_storage *));
  if (r->tensors != NULL && r->storages != NULL) return true;
  PyErr_NoMemory();
  return false;
}

static void run_end(run *r) {
  for (uint32_t i = 0; i < r->storage_count; i++) hgpy_storage_release(r->storages[i]);
  if (r->tensors != r->few) PyMem_Free(r->tensors);
  if (r->storages != r->few_storages) PyMem_Free(r->storages);
  hgpy_device_release(r->device);
}

/* Takes over the storage. */
static void add_tensor(run *r, const hg_tensor *tensor, hgpy_storage *storage) {
  hg_tensor *to = &r->tensors[r->storage_count];
  *to = *tensor;
  to->buffer = storage->buffer;
  r->storages[r->storage_count++] = storage;
  uint64_t count = hg_tensor_count(tensor);
  if (count > r->element_count) r->element_count = count;
}

/* The numbers of a general executable, in one allocation, eight bytes each. */
static bool add_numbers(run *r, const graph *g) {
  if (g->scalars.count == 0) return true;
  hgpy_storage *storage = hgpy_storage_create(g->device, 8 * (uint64_t)g->scalars.count, false);
  bool is_good = storage != NULL;
  for (uint32_t i = 0; is_good && i < g->scalars.count; i++) {
    const hgpy_node *node = g->scalars.nodes[i];
    hg_tensor tensor = {.type = node->tensor.type};
    uint32_t bytes = hgpy_type_bytes(tensor.type);
    tensor.offset = (int64_t)(8 / bytes * i);
    hg_tensor wide = {.type = node->is_integer ? ATLAS_i64 : ATLAS_f64};
    uint64_t bits;
    bool is_cast = !is_plain(node, &bits) && wide.type != tensor.type;
    is_good = hgpy_ok(hg_buffer_write(storage->buffer, 8 * (uint64_t)i, &bits, 8));
    hgpy_storage *narrow = NULL;
    if (is_good && is_cast) { /* converted as the computation would: by a cast */
      hg_argument argument = {.count = 1, .integers = {(int64_t)tensor.type}};
      narrow = hgpy_storage_for_work(g->device, 8);
      wide.buffer = storage->buffer;
      wide.offset = (int64_t)i;
      is_good = narrow != NULL;
      hg_tensor to = {.type = tensor.type, .buffer = is_good ? narrow->buffer : NULL};
      if (is_good) is_good = hgpy_ok(hg_apply(HG_OP_cast, &wide, 1, &argument, 1, &to, 1, g->device->stream));
      tensor.offset = 0;
    }
    if (is_good) add_tensor(r, &tensor, narrow != NULL ? narrow : hgpy_storage_retain(storage));
    else hgpy_storage_release(narrow);
  }
  hgpy_storage_release(storage);
  return is_good;
}

static bool add_outputs(run *r, const graph *g, hgpy_storage *into_storage, const hg_tensor *into) {
  if (into != NULL) {
    add_tensor(r, into, hgpy_storage_retain(into_storage));
    return true;
  }
  for (uint32_t i = 0; i < g->results.count; i++) {
    if (hgpy_home_of(g, i) != HGPY_NONE) continue;
    const hg_tensor *like = &g->results.nodes[i]->tensor;
    hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)like->type, like->rank, like->shape);
    hgpy_storage *storage =
        hgpy_storage_for_work(g->device, hg_tensor_count(&tensor) * hgpy_type_bytes(like->type));
    if (storage == NULL) return false;
    add_tensor(r, &tensor, storage);
  }
  return true;
}

/* Elements of all results: large runs may take longer than a user waits before pressing Ctrl-C. */
static bool is_large(const graph *g) {
  uint64_t work = 0;
  for (uint32_t i = 0; i < g->order.count && work < LARGE_WORK; i++)
    work += hg_tensor_count(&g->order.nodes[i]->tensor);
  return work >= LARGE_WORK;
}

/* A fault on a stream may be explained by index arrays: memory of others that holds them counts as used until then. */
static void note_numbers(const run *r) {
  for (uint32_t i = 0; r->device->stream != NULL && i < r->input_count; i++)
    if (hgpy_type_is_integer(r->tensors[i].type)) r->storages[i]->was_queued = true;
}

static bool launch(const graph *g, run *r) {
  const hg_tensor *outputs = r->tensors + r->input_count;
  bool is_quick =
      r->element_count < SMALL_COUNT && g->order.count < SMALL_COUNT / 8; /* shorter than starting a thread */
  hg_stream *queue = r->device->stream == NULL && is_large(g) ? hgpy_queue_take(r->device) : NULL;
  hg_stream *stream = queue != NULL ? queue : r->device->stream;
  hg_status status;
  note_numbers(r);
  if (is_quick && queue == NULL)
    return hgpy_ok(hg_run(r->executable, r->tensors, r->input_count, outputs, r->output_count, stream, NULL));
  for (uint32_t i = 0; queue != NULL && i < r->count; i++) r->storages[i]->was_queued = true;
  HGPY_BEGIN_CALL
  status = hg_run(r->executable, r->tensors, r->input_count, outputs, r->output_count, stream, NULL);
  HGPY_END_CALL
  return queue != NULL ? hgpy_queue_wait(r->device, queue, status, r->storages, r->count) : hgpy_ok(status);
}

/* A computed node reads nothing any more, unless it is kept for gradients. */
static void become_data(hgpy_node *node, hgpy_storage *storage, const hg_tensor *tensor) {
  if (node->kind == HGPY_DATA) return; /* another thread has computed it first */
  if (node->is_kept) node->is_kept = node->kind == HGPY_RESULT ? 2 : 1;
  hgpy_leave_call(node);
  node->kind = HGPY_DATA;
  node->storage = hgpy_storage_retain(storage);
  node->tensor = *tensor;
  node->tensor.buffer = NULL;
  if (node->device == NULL) node->device = hgpy_device_retain(storage->device);
  if (node->is_kept) return;
  hgpy_node **inputs = node->inputs, *few[HGPY_FEW];
  uint32_t count = node->input_count;
  memcpy(few, node->few, sizeof few);
  node->input_count = 0;
  node->depth = 0;
  node->inputs = node->few;
  for (uint32_t i = 0; i < count; i++) hgpy_node_release(inputs == node->few ? few[i] : inputs[i]);
  if (inputs != node->few) PyMem_Free(inputs);
  PyMem_Free(node->arguments);
  node->arguments = NULL;
  node->argument_count = 0;
}

/* Another thread may have donated what this one has walked over. */
static bool add_inputs(run *r, const graph *g) {
  for (uint32_t i = 0; i < g->leaves.count; i++)
    if (!hgpy_is_there(g->leaves.nodes[i]) || !hgpy_has_elements(g->leaves.nodes[i])) return false;
  if (!hgpy_can_give_up(g)) return false;
  for (uint32_t i = 0; i < g->leaves.count; i++)
    if (hgpy_has_input(g, i))
      add_tensor(r, &g->leaves.nodes[i]->tensor, hgpy_storage_retain(g->leaves.nodes[i]->storage));
  hgpy_give_up(g);
  return true;
}

static bool run_graph(graph *g, hg_executable *executable, bool is_general, hgpy_storage *storage,
                      const hg_tensor *into) {
  run r;
  if (hgpy_is_warming()) return hgpy_warm_graph(g, executable, into != NULL);
  bool is_good = run_begin(&r, g, is_general) && add_inputs(&r, g);
  is_good = is_good && (!is_general || add_numbers(&r, g)) && add_outputs(&r, g, storage, into);
  for (uint32_t i = 0; i < g->results.count; i++) hgpy_node_retain(g->results.nodes[i]);
  r.executable = executable;
  is_good = is_good && launch(g, &r);
  uint32_t output = r.input_count;
  for (uint32_t i = 0; i < g->results.count; i++) {
    uint32_t home = hgpy_home_of(g, i), number = home != HGPY_NONE ? g->slot_of[home] : output++;
    if (is_good && into == NULL) become_data(g->results.nodes[i], r.storages[number], &r.tensors[number]);
    hgpy_node_release(g->results.nodes[i]);
  }
  run_end(&r);
  return is_good;
}

static bool run_known(graph *g, known *k, bool is_general, hgpy_storage *storage, const hg_tensor *into) {
  k->users++;
  bool is_good = run_graph(g, is_general ? k->general : k->executable, is_general, storage, into);
  if (--k->users == 0 && k->is_forgotten) forget(k);
  return is_good;
}

static bool compute(graph *g, hgpy_storage *storage, const hg_tensor *into) {
  uint64_t hash = hgpy_hash_words(g->words, g->word_count);
  known *k = find_known(g, hash);
  bool is_new = k == NULL, is_general = !is_new && !has_its_numbers(g, k);
  if (!is_new && (!is_general || k->general != NULL)) return run_known(g, k, is_general, storage, into);
  hg_executable *executable = hgpy_compile_graph(g, into, is_general);
  if (executable == NULL) return false;
  if (!hgpy_allows_executable(g->device, executable)) return hg_executable_release(executable), false;
  k = find_known(g, hash); /* another thread may have added it meanwhile */
  if (is_new && k == NULL) keep(g, hash, hg_executable_retain(executable));
  else if (is_general && k != NULL && k->general == NULL) k->general = hg_executable_retain(executable);
  bool is_good = !PyErr_Occurred() && run_graph(g, executable, is_general, storage, into);
  hg_executable_release(executable);
  return is_good;
}

/* The nodes of a graph stay while other threads run. */
static bool compute_held(graph *g, hgpy_storage *storage, const hg_tensor *into) {
  for (uint32_t i = 0; i < g->order.count; i++) g->order.nodes[i]->references++;
  bool is_good = compute(g, storage, into);
  for (uint32_t i = 0; i < g->order.count; i++) hgpy_node_release(g->order.nodes[i]);
  return is_good;
}

/* ---- executables without a run ----------------------------------------------------------------------------------- */

/* Finds the executable, or compiles and keeps it. NULL with nothing raised: it is known with other numbers. */
static hg_executable *find_executable(const graph *g) {
  uint64_t hash = hgpy_hash_words(g->words, g->word_count);
  known *k = find_known(g, hash);
  if (k != NULL) return has_its_numbers(g, k) ? hg_executable_retain(k->executable) : NULL;
  hg_executable *executable = hgpy_compile_graph(g, NULL, false);
  if (executable == NULL) return NULL;
  if (!hgpy_allows_executable(g->device, executable)) return hg_executable_release(executable), NULL;
  if (find_known(g, hash) == NULL && keep(g, hash, hg_executable_retain(executable)) == NULL)
    hg_executable_release(executable); /* raised here: the failure is reported below */
  return executable;
}

static uint32_t number_of(const hgpy_node *node, hgpy_node *const *nodes, uint32_t count) {
  uint32_t i = 0;
  while (i < count && nodes[i] != node) i++;
  return i < count ? i : HGPY_NONE;
}

/* 1 if the graph has exactly these leaves and results; finds where they are. */
static bool place_all(const graph *g, hgpy_node *const *results, uint32_t count, uint32_t *places,
                      hgpy_node *const *given, uint32_t given_count, uint32_t *input_of) {
  if (g->results.count != count || g->leaves.count > given_count) return false;
  for (uint32_t i = 0; i < g->leaves.count; i++)
    if ((input_of[i] = number_of(g->leaves.nodes[i], given, given_count)) == HGPY_NONE) return false;
  for (uint32_t i = 0; i < count; i++)
    if ((places[i] = number_of(results[i], g->results.nodes, count)) == HGPY_NONE) return false;
  return true;
}

static bool is_over_soon(const graph *g) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < g->order.count; i++) {
    uint64_t count = hg_tensor_count(&g->order.nodes[i]->tensor);
    if (count > most) most = count;
  }
  return most < SMALL_COUNT && g->order.count < SMALL_COUNT / 8;
}

hg_executable *hgpy_executable_of(const hgpy_device *device, hgpy_node *const *results, uint32_t count,
                                  uint32_t *places, hgpy_node *const *given, uint32_t given_count, uint32_t *input_of,
                                  uint32_t *input_count, bool *is_quick) {
  graph g;
  hg_executable *executable = NULL;
  hgpy_graph_begin(&g);
  if (hgpy_read_graph(&g, results, count, NULL, NULL) && g.device == device &&
      place_all(&g, results, count, places, given, given_count, input_of) &&
      (g.device->stream != NULL || !is_large(&g))) { /* large runs on the CPU can be interrupted */
    executable = find_executable(&g);
    *input_count = g.leaves.count;
    *is_quick = is_over_soon(&g);
  }
  if (executable != NULL && PyErr_Occurred()) hg_executable_release(executable), executable = NULL;
  hgpy_graph_end(&g);
  return executable;
}

/* ---- functions for other files ----------------------------------------------------------------------------------- */

bool hgpy_evaluate(hgpy_node *const *nodes, uint32_t count) { return hgpy_evaluate_onto(nodes, count, NULL, 0); }

bool hgpy_evaluate_onto(hgpy_node *const *nodes, uint32_t count, const hgpy_pair *pairs, uint32_t pair_count) {
  uint32_t waiting = 0;
  for (uint32_t i = 0; i < count; i++) waiting += nodes[i]->kind != HGPY_DATA;
  if (waiting == 0) return true;
  graph g;
  hgpy_graph_begin(&g);
  g.pairs = pairs;
  g.pair_count = pair_count;
  bool is_good = hgpy_read_graph(&g, nodes, count, NULL, NULL) && compute_held(&g, NULL, NULL);
  hgpy_graph_end(&g);
  return is_good;
}

/* One element that is there already needs no launch: its bytes are written. False: it does. */
static bool is_written(const hgpy_node *node, hgpy_storage *storage, const hg_tensor *like) {
  uint64_t bits, bytes = hgpy_type_bytes(like->type);
  if (storage->address == NULL || node->tensor.type != like->type || hg_tensor_count(like) != 1) return false;
  if (node->kind == HGPY_DATA && node->storage->address != NULL)
    memcpy(&bits, (const char *)node->storage->address + (uint64_t)node->tensor.offset * bytes, bytes);
  else if (node->kind != HGPY_SCALAR || !is_plain(node, &bits)) return false;
  if (hgpy_is_warming()) return false;
  memcpy((char *)storage->address + (uint64_t)like->offset * bytes, &bits, bytes);
  return true;
}

bool hgpy_evaluate_into(hgpy_node *node, hgpy_storage *storage, const hg_tensor *like) {
  hgpy_node *copy = NULL;
  if (is_written(node, storage, like)) return true;
  if (node->kind == HGPY_DATA || node->kind == HGPY_SCALAR) { /* a copy is also an operation */
    bool was_eager = hgpy_is_eager;
    hgpy_is_eager = false;
    copy = hgpy_same(node);
    hgpy_is_eager = was_eager;
    if (copy == NULL) return false;
    node = copy;
  }
  graph g;
  hgpy_graph_begin(&g);
  bool is_good = hgpy_read_graph(&g, &node, 1, like, storage->device) && compute_held(&g, storage, like);
  hgpy_graph_end(&g);
  hgpy_node_release(copy);
  return is_good;
}

hgpy_node *hgpy_dense(hgpy_node *node, bool is_asked_for) {
  uint64_t stride = 1;
  bool is_dense = true;
  if (!hgpy_evaluate(&node, 1)) return NULL;
  for (uint32_t d = node->tensor.rank; d-- > 0;) {
    if (node->tensor.shape[d] > 1 && (uint64_t)node->tensor.stride[d] != stride) is_dense = false;
    stride *= node->tensor.shape[d];
  }
  if (is_dense || stride == 0) return hgpy_node_retain(node);
  if (!is_asked_for &&
      !hgpy_allows("elements that do not lie in C order would be copied; hologram.array(x) copies them"))
    return NULL;
  hgpy_node *copy = hgpy_same(node);
  if (copy != NULL && hgpy_evaluate(&copy, 1)) return copy;
  hgpy_node_release(copy);
  return NULL;
}

hgpy_node *hgpy_copy(hgpy_node *node) {
  hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)node->tensor.type, node->tensor.rank, node->tensor.shape);
  hgpy_device *device = node->device != NULL ? node->device : hgpy_default_device();
  hgpy_storage *storage =
      device != NULL ? hgpy_storage_for_result(device, hg_tensor_count(&tensor) * hgpy_type_bytes(tensor.type)) : NULL;
  if (storage == NULL) return NULL;
  if (hg_tensor_count(&tensor) == 0 || hgpy_evaluate_into(node, storage, &tensor))
    return hgpy_node_data(storage, &tensor);
  hgpy_storage_release(storage);
  return NULL;
}

hgpy_node *hgpy_own(hgpy_node *node) {
  if (!hgpy_evaluate(&node, 1)) return NULL;
  return node->storage->is_foreign ? hgpy_copy(node) : hgpy_node_retain(node);
}

PyObject *hgpy_explain(hgpy_node *node, bool as_json) {
  graph g;
  PyObject *report = NULL;
  char *text = NULL;
  size_t length = 0;
  if (node->kind == HGPY_DATA)
    return PyUnicode_FromString(as_json ? "null" : "computed already: its elements are in memory\n");
  hgpy_graph_begin(&g);
  if (hgpy_read_graph(&g, &node, 1, NULL, NULL)) {
    hg_executable *executable = hgpy_compile_graph(&g, NULL, false);
    if (executable != NULL && hgpy_ok(hg_executable_report(executable, NULL, as_json, &text, &length)))
      report = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
    atlas_memory_release(NULL, text);
    hg_executable_release(executable);
  }
  hgpy_graph_end(&g);
  return report;
}
