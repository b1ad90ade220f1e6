/* compile.c - hg_compile: an executable from the cache, or a new one. */
#include "ops/graph/compute.h"
#include "ops/run/executable.h"

enum { KNOWN_FLAGS = HG_NUMERICS_FAST | HG_NUMERICS_TF32 | HG_NO_FUSION | HG_STRICT_TYPES };

static hg_status check_computation(hg_computation *c) {
  HG_TRY(hg_computation_status(c));
  if (c->outputs.count > 0) return HG_OK;
  const ops_input *inputs = c->inputs.data;
  for (size_t i = 0; i < c->inputs.count; i++)
    if (inputs[i].update != 0) return HG_OK;
  return hg_fail(HG_INVALID_ARGUMENT, "hg_compile: the computation has no output and updates nothing");
}

hg_status ops_compile(hg_executor *executor, const hg_computation *computation, uint32_t flags, hg_executable **out) {
  ops_key key;
  HG_TRY(ops_key_of(&executor->allocator, computation, flags, &key));
  hg_status status = ops_cache_find(executor, &key, out);
  if (status == HG_OK && *out == NULL) {
    if (key.constants_vary) flags |= OPS_CONSTANTS_VARY;
    status = ops_executable_create(executor, computation, flags, key.like, out);
    hg_array_trim(&executor->allocator, &key.bytes);
    if (status == HG_OK) ops_cache_add(executor, &key, out);
  }
  hg_executable_release(key.like);
  hg_array_release(&executor->allocator, &key.bytes);
  return status;
}

hg_status hg_compile(hg_executor *executor, hg_computation *computation, const hg_compile_desc *desc,
                     hg_executable **out) {
  hg_compile_desc own;
  if (out != NULL) *out = NULL;
  if (executor == NULL || computation == NULL || out == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_compile: an argument is NULL");
  HG_TRY(HG_READ(hg_compile_desc, &own, desc));
  if ((own.flags & ~(uint32_t)KNOWN_FLAGS) != 0 || own.reserved != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_compile_desc.flags 0x%x and .reserved %u: a bit that means nothing",
                   (unsigned)own.flags, (unsigned)own.reserved);
  const char *why = ops_check_numerics(own.flags);
  if (why != NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_compile_desc.flags: %s", why);
  HG_TRY(check_computation(computation));
  if ((own.flags & HG_STRICT_TYPES) != 0 && computation->mix[0] != '\0')
    return hg_fail(HG_INVALID_ARGUMENT, "%s", computation->mix);
  return ops_compile(executor, computation, own.flags & ~(uint32_t)HG_STRICT_TYPES, out);
}
