/* cache.c - the executables that an executor keeps for equal computations: found by their keys, bounded by bytes,
 * evicted by least recent use. */
#include "ops/run/executable.h"
#include "ops/graph/ops_tuning.h"

/* ---- the attachment ---------------------------------------------------------------------------------------------- */

static void close_attachment(hg_executor *executor, void *data) {
  ops_attachment *a = data;
  while (a->newest != NULL) {
    hg_executable *e = a->newest;
    a->newest = e->older;
    ops_executable_destroy(e);
  }
  if (a->buckets != a->few_buckets) hg_release(&executor->allocator, a->buckets);
  hg_release(&executor->allocator, a);
}

/* NULL: out of memory. */
static ops_attachment *attachment_locked(hg_executor *executor) {
  if (executor->attachment == NULL) {
    ops_attachment *a = hg_allocate(&executor->allocator, 1, sizeof *a);
    if (a == NULL) return NULL;
    a->byte_cap = OPS_CACHE_BYTES;
    a->buckets = a->few_buckets;
    a->bucket_count = OPS_BUCKETS;
    executor->close_attachment = close_attachment;
    executor->attachment = a;
  }
  return executor->attachment;
}

/* ---- order and buckets ------------------------------------------------------------------------------------------- */

static void link_newest(ops_attachment *a, hg_executable *e) {
  e->newer = NULL;
  e->older = a->newest;
  *(a->newest != NULL ? &a->newest->newer : &a->oldest) = e;
  a->newest = e;
}

static void unlink_order(ops_attachment *a, hg_executable *e) {
  *(e->newer != NULL ? &e->newer->older : &a->newest) = e->older;
  *(e->older != NULL ? &e->older->newer : &a->oldest) = e->newer;
}

void ops_cache_touch_locked(ops_attachment *a, hg_executable *e) {
  if (a->newest == e) return;
  unlink_order(a, e);
  link_newest(a, e);
}

static hg_executable **bucket_of(ops_attachment *a, uint64_t hash) { return &a->buckets[hash % a->bucket_count]; }

static void put_in_bucket(ops_attachment *a, hg_executable *e) {
  hg_executable **bucket = bucket_of(a, e->hash);
  e->next = *bucket;
  *bucket = e;
}

/* More lists if there are more executables than lists. Without memory for them, the old ones stay. */
static void grow_locked(ops_attachment *a, const hg_allocator *allocator) {
  hg_executable **more = hg_allocate(allocator, 8 * a->bucket_count, sizeof(hg_executable *));
  if (more == NULL) return;
  if (a->buckets != a->few_buckets) hg_release(allocator, a->buckets);
  a->buckets = more;
  a->bucket_count *= 8;
  for (hg_executable *e = a->newest; e != NULL; e = e->older) put_in_bucket(a, e);
}

static hg_executable *find(ops_attachment *a, uint64_t hash, const void *key, size_t key_bytes) {
  for (hg_executable *e = *bucket_of(a, hash); e != NULL; e = e->next)
    if (e->hash == hash && e->key_bytes == key_bytes && memcmp(e->key, key, key_bytes) == 0) return e;
  return NULL;
}

/* A holder outside the cache takes a reference. */
static void hold_locked(hg_executable *e) {
  if (e->references++ == 0) hg_executor_retain(e->executor);
}

/* Its eager calls are no longer found; they are released with it. */
static void forget_calls_locked(ops_attachment *a, hg_executable *e) {
  for (ops_eager *call = e->calls; call != NULL; call = call->sibling) {
    ops_eager **at = &a->calls[call->hash % OPS_BUCKETS];
    while (*at != call) at = &(*at)->next;
    *at = call->next;
  }
}

/* Of code that the kept executables share the bytes count once: those that an executable which joins or leaves them
 * shares with others. */
static uint64_t shared_bytes_locked(const hg_executable *e, int joins) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < e->launch_count; i++) {
    if (e->launches[i].first != i) continue;
    hg_code *code = e->launches[i].kernel->code;
    int is_shared = joins ? code->keepers++ > 0 : --code->keepers > 0;
    if (is_shared) bytes += ops_code_bytes(code);
  }
  return bytes;
}

/* Removes an executable from the cache; if nobody holds it, it is added to the list of those to be destroyed without
 * the lock. */
static void take_out_locked(ops_attachment *a, hg_executable *e, hg_executable **garbage) {
  hg_executable **at = bucket_of(a, e->hash), **last = &a->structures[e->structure % OPS_STRUCTURES].last;
  if (*last == e) *last = NULL;
  while (*at != e) at = &(*at)->next;
  *at = e->next;
  unlink_order(a, e);
  forget_calls_locked(a, e);
  e->is_cached = 0;
  a->bytes -= e->byte_count - shared_bytes_locked(e, 0);
  a->count--;
  if (e->references + e->pins > 0) return;
  e->next = *garbage;
  *garbage = e;
}

static void shrink_locked(ops_attachment *a, hg_executable **garbage) {
  while (a->bytes > a->byte_cap && a->oldest != NULL) {
    take_out_locked(a, a->oldest, garbage);
    a->evictions++;
  }
}

static void sweep(hg_executable *garbage) {
  while (garbage != NULL) {
    hg_executable *e = garbage;
    garbage = e->next;
    ops_executable_destroy(e);
  }
}

/* ---- structures -------------------------------------------------------------------------------------------------- */

static ops_structure *structure_of(ops_attachment *a, const ops_key *key) {
  ops_structure *known = &a->structures[key->structure % OPS_STRUCTURES];
  if (known->structure != key->structure)
    *known = (ops_structure){.structure = key->structure, .sizes = key->sizes, .constants = key->constants};
  return known;
}

/* 1: computations of the structure were compiled before with other constants: one of the same sizes, or two of others,
 * whose constants may follow from sizes, as the number that a mean divides by does. A second size alone, such as the
 * last batch has, keeps its constants: caches on disk are filled with such code. */
static int have_varied(ops_structure *known, const ops_key *key) {
  if (key->constants == 0 || known->constants == key->constants) return known->varies;
  known->varies |= known->sizes == key->sizes || ++known->changes > 1;
  known->sizes = key->sizes;
  known->constants = key->constants;
  return known->varies;
}

/* ---- finding and adding ------------------------------------------------------------------------------------------ */

static hg_status find_locked(hg_executor *executor, ops_key *key, hg_executable **out) {
  ops_attachment *a = attachment_locked(executor);
  if (a == NULL) return hg_fail_memory("the cache of executables", sizeof *a);
  hg_executable *e = find(a, key->hash, key->bytes.data, key->bytes.count);
  *out = e;
  a->hits += e != NULL;
  a->misses += e == NULL;
  if (e == NULL) {
    ops_structure *known = structure_of(a, key);
    key->constants_vary = have_varied(known, key);
    key->like = known->last;
    if (key->like != NULL) hold_locked(key->like);
    return HG_OK;
  }
  hold_locked(e);
  ops_cache_touch_locked(a, e);
  return HG_OK;
}

hg_status ops_cache_find(hg_executor *executor, ops_key *key, hg_executable **out) {
  hg_lock(executor);
  hg_status status = find_locked(executor, key, out);
  hg_unlock(executor);
  return status;
}

static void add_locked(ops_attachment *a, hg_executable *e, hg_executable **garbage) {
  if (a->count >= a->bucket_count) grow_locked(a, &e->executor->allocator);
  put_in_bucket(a, e);
  e->is_cached = 1;
  link_newest(a, e);
  a->bytes += e->byte_count - shared_bytes_locked(e, 1);
  a->count++;
  shrink_locked(a, garbage);
}

void ops_cache_add(hg_executor *executor, ops_key *key, hg_executable **executable) {
  hg_executable *e = *executable, *garbage = NULL, *other = NULL;
  uint64_t bytes = e->byte_count + key->bytes.count;
  hg_lock(executor);
  ops_attachment *a = executor->attachment; /* it was made when the key was looked up */
  other = find(a, key->hash, key->bytes.data, key->bytes.count);
  if (other != NULL) {
    hold_locked(other);
    *executable = other;
  } else if (bytes <= a->byte_cap) {
    e->key = key->bytes.data;
    e->key_bytes = key->bytes.count;
    e->hash = key->hash;
    e->structure = key->structure;
    structure_of(a, key)->last = e;
    e->byte_count = bytes;
    key->bytes.data = NULL;
    add_locked(a, e, &garbage);
  }
  hg_unlock(executor);
  if (other != NULL) hg_executable_release(e);
  sweep(garbage);
}

int ops_cache_add_call(hg_executor *executor, ops_eager *call, uint64_t byte_count) {
  hg_executable *e = call->executable, *garbage = NULL;
  hg_lock(executor);
  ops_attachment *a = executor->attachment;
  int is_kept = e->is_cached;
  if (is_kept) {
    ops_eager **bucket = &a->calls[call->hash % OPS_BUCKETS];
    call->next = *bucket;
    *bucket = call;
    call->sibling = e->calls;
    e->calls = call;
    e->byte_count += byte_count;
    a->bytes += byte_count;
    shrink_locked(a, &garbage);
  }
  hg_unlock(executor);
  sweep(garbage);
  return is_kept;
}

/* ---- the public functions ---------------------------------------------------------------------------------------- */

hg_status hg_executables_query(hg_executor *executor, hg_executables_info *info) {
  if (executor == NULL || info == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_executables_query: an argument is NULL");
  hg_lock(executor);
  const ops_attachment *a = executor->attachment;
  hg_executables_info result = {.byte_cap = OPS_CACHE_BYTES};
  if (a != NULL)
    result = (hg_executables_info){.byte_cap = a->byte_cap, .bytes = a->bytes, .count = a->count, .hits = a->hits,
                                   .misses = a->misses, .evictions = a->evictions};
  hg_unlock(executor);
  return HG_WRITE(hg_executables_info, info, &result);
}

hg_status hg_executables_limit(hg_executor *executor, uint64_t byte_cap) {
  if (executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_executables_limit: the executor is NULL");
  hg_executable *garbage = NULL;
  hg_lock(executor);
  ops_attachment *a = attachment_locked(executor);
  if (a != NULL) {
    a->byte_cap = byte_cap;
    shrink_locked(a, &garbage);
  }
  hg_unlock(executor);
  sweep(garbage);
  return a != NULL ? HG_OK : hg_fail_memory("the cache of executables", sizeof *a);
}
