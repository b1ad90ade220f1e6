/* fake_memory.c - the double of libcuda: memory of devices and pinned memory, pools, copies and fills. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* By a stream; NULL: by anybody. */
static int is_usable(const spare *s, const void *stream) {
  return s->stream == NULL || s->stream == stream || fake_is_done(s->stream, s->number);
}

/* What no stream uses any more is one piece. */
static void join(object *pool) {
  spare *whole = NULL;
  for (spare **at = &pool->spares; *at != NULL;) {
    spare *s = *at;
    if (!is_usable(s, NULL)) {
      at = &s->next;
    } else if (whole == NULL) {
      whole = s;
      s->stream = NULL;
      at = &s->next;
    } else {
      whole->byte_count += s->byte_count;
      *at = s->next;
      free(s);
    }
  }
}

static uint64_t usable_bytes(const object *pool, const void *stream) {
  uint64_t sum = 0;
  for (const spare *s = pool->spares; s != NULL; s = s->next)
    if (is_usable(s, stream)) sum += s->byte_count;
  return sum;
}

/* What pools keep, whoever may use it. */
static uint64_t spare_bytes(void) {
  uint64_t sum = 0;
  for (const object *o = fake.objects; o != NULL; o = o->next)
    for (const spare *s = o->kind == POOL && o->device == fake_current->device ? o->spares : NULL; s != NULL;
         s = s->next)
      sum += s->byte_count;
  return sum;
}

/* So many bytes of what the stream can use: split where one has more, joined where none has enough. */
static void use_up(object *pool, const void *stream, uint64_t byte_count) {
  for (spare **at = &pool->spares; *at != NULL && byte_count > 0;) {
    spare *s = *at;
    uint64_t part = is_usable(s, stream) ? s->byte_count < byte_count ? s->byte_count : byte_count : 0;
    byte_count -= part;
    s->byte_count -= part;
    if (s->byte_count > 0) {
      at = &s->next;
      continue;
    }
    *at = s->next;
    free(s);
  }
}

static void keep(object *pool, uint64_t byte_count, const work *freed) {
  spare *s = malloc(sizeof *s);
  if (s == NULL) abort();
  *s = (spare){pool->spares, freed->stream, freed->number, byte_count};
  pool->spares = s;
}

void fake_forget_spares(object *pool) {
  while (pool->spares != NULL) {
    spare *s = pool->spares;
    pool->spares = s->next;
    free(s);
  }
}

static uint64_t reserved_bytes(const object *pool) {
  uint64_t sum = pool->live_bytes;
  for (const spare *s = pool->spares; s != NULL; s = s->next) sum += s->byte_count;
  return sum;
}

/* Only memory that no stream uses any more can be given back. */
static void trim(object *pool, uint64_t bytes_left) {
  uint64_t reserved = reserved_bytes(pool), free_bytes = usable_bytes(pool, NULL);
  uint64_t over = reserved > bytes_left ? reserved - bytes_left : 0;
  use_up(pool, NULL, over < free_bytes ? over : free_bytes);
}

void fake_trim_pools(void) {
  for (object *o = fake.objects; o != NULL; o = o->next)
    if (o->kind == POOL && !o->dead && o->device == fake_current->device) trim(o, o->threshold);
}

static int take(cuda_address *address, size_t byte_count, object *pool, void *stream) {
  if (pool != NULL) join(pool);
  if (pool != NULL && usable_bytes(pool, stream) >= byte_count) use_up(pool, stream, byte_count);
  else if (fake.live_bytes[fake_current->device] + spare_bytes() + byte_count >
           fake_setting("FAKECUDA_MEMORY", 1 << 30))
    return CUDA_OUT_OF_MEMORY;
  else fake.mapped_bytes += byte_count;
  if (pool != NULL) pool->live_bytes += byte_count;
  object *o = fake_add(MEMORY, byte_count);
  o->pool = pool;
  if (stream != NULL) {
    work *w = fake_give(stream);
    w->kind = ALLOCATE;
    w->function = o;
    o->unborn = 1;
  }
  fake.live_bytes[fake_current->device] += byte_count;
  *address = (cuda_address)(uintptr_t)o->bytes | DEVICE_BIT;
  return CUDA_OK;
}

/* The bytes live on until the stream's work before has been done, or, without one, all work has. */
static int give_back(cuda_address address, void *stream, const char *caller) {
  int pooled = stream != NULL;
  for (object *o = fake.objects; o != NULL; o = o->next) {
    if (o->kind != MEMORY || o->dead || ((cuda_address)(uintptr_t)o->bytes | DEVICE_BIT) != address) continue;
    if ((o->pool != NULL) != pooled) break;
    fake.live_bytes[o->device] -= o->byte_count;
    o->dead = 1;
    if (stream == NULL) {
      fake_wait_for(NULL, fake.work_given);
      fake_bury(o);
      return CUDA_OK;
    }
    work *w = fake_give(stream);
    w->kind = FREE;
    w->function = o;
    o->pool->live_bytes -= o->byte_count;
    keep(o->pool, o->byte_count, w);
    return CUDA_OK;
  }
  fake_blame("%s: 0x%llx is no such allocation", caller, address);
  return 1;
}

int cuMemAlloc_v2(cuda_address *address, size_t bytes) {
  ENTER(1);
  EXPECT(bytes > 0);
  LEAVE(take(address, bytes, NULL, NULL));
}

int cuMemFree_v2(cuda_address address) {
  ENTER(1);
  LEAVE(give_back(address, NULL, __func__));
}

int cuMemGetInfo_v2(size_t *bytes_free, size_t *bytes_total) {
  ENTER(1);
  *bytes_total = fake_setting("FAKECUDA_MEMORY", 1 << 30);
  *bytes_free = *bytes_total - fake.live_bytes[fake_current->device] - spare_bytes();
  LEAVE(CUDA_OK);
}

int cuMemPoolCreate(void **pool, const cuda_pool_properties *properties) {
  ENTER(1);
  EXPECT(properties->allocation_type == 1 && properties->location_type == 1 &&
         properties->location_id == fake_current->device);
  EXPECT(sizeof *properties == 88 && fake_setting("FAKECUDA_POOLS", 1) != 0);
  *pool = fake_add(POOL, 0);
  LEAVE(CUDA_OK);
}

int cuMemPoolDestroy(void *pool) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  fake_forget_spares(pool);
  fake_bury(pool);
  LEAVE(CUDA_OK);
}

int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  EXPECT(attribute == CUDA_POOL_RELEASE_THRESHOLD && value != NULL);
  ((object *)pool)->threshold = *(const uint64_t *)value;
  LEAVE(CUDA_OK);
}

int cuMemPoolGetAttribute(void *pool, int attribute, void *value) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  EXPECT(attribute == CUDA_POOL_RESERVED_BYTES && value != NULL);
  *(uint64_t *)value = reserved_bytes(pool);
  LEAVE(CUDA_OK);
}

int cuMemPoolSetAccess(void *pool, const cuda_access *access, size_t count) {
  ENTER(1);
  EXPECT(sizeof *access == 12 && count == 1 && access->location_type == 1 && access->flags == 3);
  EXPECT(access->location_id == fake_current->device && pool != NULL && ((object *)pool)->kind == POOL);
  LEAVE(CUDA_OK);
}

int cuMemPoolTrimTo(void *pool, size_t bytes_kept) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  trim(pool, bytes_kept);
  LEAVE(CUDA_OK);
}

int cuMemAllocFromPoolAsync(cuda_address *address, size_t bytes, void *pool, void *stream) {
  ENTER(1);
  EXPECT_LIVE(pool, POOL);
  EXPECT_STREAM(stream);
  EXPECT(bytes > 0);
  EXPECT_NO_CAPTURE(stream);
  LEAVE(take(address, bytes, pool, stream));
}

int cuMemFreeAsync(cuda_address address, void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  EXPECT_NO_CAPTURE(stream);
  LEAVE(give_back(address, stream, __func__));
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTER(1);
  EXPECT(bytes > 0 && (flags & ~7u) == 0);
  *memory = fake_add(PINNED, bytes)->bytes;
  LEAVE(CUDA_OK);
}

int cuMemFreeHost(void *memory) {
  ENTER(1);
  object *o = fake_pinned_at(memory);
  EXPECT(o != NULL && o->bytes == memory);
  fake_wait_for(NULL, fake.work_given);
  fake_bury(o);
  LEAVE(CUDA_OK);
}

int cuMemHostGetDevicePointer_v2(cuda_address *address, void *memory, unsigned flags) {
  ENTER(1);
  EXPECT(flags == 0 && fake_pinned_at(memory) != NULL);
  *address = (cuda_address)(uintptr_t)memory;
  LEAVE(CUDA_OK);
}

static const object *memory_at(cuda_address pointer) {
  const uint8_t *at = (const uint8_t *)(uintptr_t)(pointer & ~DEVICE_BIT);
  for (const object *o = fake.objects; o != NULL && (pointer & DEVICE_BIT) != 0; o = o->next)
    if (o->kind == MEMORY && !o->dead && at >= o->bytes && at < o->bytes + o->byte_count) return o;
  return NULL;
}

int cuPointerGetAttributes(unsigned count, int *attributes, void **values, cuda_address pointer) {
  ENTER(1);
  EXPECT(count == 1);
  int attribute = attributes[0];
  void *value = values[0];
  const object *pinned = fake_pinned_at((void *)(uintptr_t)pointer), *memory = memory_at(pointer);
  const object *found = memory != NULL ? memory : pinned;
  if (found == NULL) { /* as the driver says of memory that it does not know */
    memset(value, 0, sizeof(unsigned));
    LEAVE(CUDA_OK);
  }
  switch (attribute) {
  case CUDA_POINTER_CONTEXT: *(void **)value = fake.primary[found->device]; break;
  case CUDA_POINTER_MEMORY_TYPE: *(unsigned *)value = memory != NULL ? CUDA_MEMORY_DEVICE : CUDA_MEMORY_HOST; break;
  case CUDA_POINTER_DEVICE: *(int *)value = found->device; break;
  case CUDA_POINTER_RANGE_START:
    *(cuda_address *)value = (cuda_address)(uintptr_t)found->bytes | (memory != NULL ? DEVICE_BIT : 0);
    break;
  case CUDA_POINTER_RANGE_BYTES: *(size_t *)value = found->byte_count; break;
  default: EXPECT(attribute == CUDA_POINTER_MEMORY_TYPE);
  }
  LEAVE(CUDA_OK);
}

int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  ENTER(0);
  EXPECT(device != peer && device < MAX_DEVICES && peer < MAX_DEVICES);
  *can = 1;
  LEAVE(CUDA_OK);
}

int cuCtxEnablePeerAccess(void *peer_context, unsigned flags) {
  ENTER(1);
  EXPECT_LIVE(peer_context, CONTEXT);
  EXPECT(flags == 0 && peer_context != fake_current);
  LEAVE(CUDA_OK);
}

/* ---- copies and fills -------------------------------------------------------------------------------------------- */

int cuMemcpyHtoDAsync_v2(cuda_address destination, const void *source, size_t bytes, void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  uint8_t *to = fake_reach(destination, bytes, __func__);
  if (to == NULL) LEAVE(1);
  if (fake_pinned_at(source) == NULL) EXPECT_NO_CAPTURE(stream);
  work *w = fake_give(stream);
  w->kind = COPY;
  w->to = to;
  w->from = source;
  w->byte_count = bytes;
  if (fake_pinned_at(source) == NULL && bytes > 0) {
    w->held = malloc(bytes);
    if (w->held == NULL) abort();
    memcpy(w->held, source, bytes);
  }
  LEAVE(CUDA_OK);
}

int cuMemcpyDtoHAsync_v2(void *destination, cuda_address source, size_t bytes, void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  const uint8_t *from = fake_reach(source, bytes, __func__);
  if (from == NULL) LEAVE(1);
  if (fake_pinned_at(destination) == NULL) EXPECT_NO_CAPTURE(stream);
  work *w = fake_give(stream);
  w->kind = COPY;
  w->to = destination;
  w->from = from;
  w->byte_count = bytes;
  LEAVE(CUDA_OK);
}

int cuMemcpyDtoDAsync_v2(cuda_address destination, cuda_address source, size_t bytes, void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  uint8_t *to = fake_reach(destination, bytes, __func__);
  const uint8_t *from = fake_reach(source, bytes, __func__);
  if (to == NULL || from == NULL) LEAVE(1);
  EXPECT(to + bytes <= from || from + bytes <= to);
  work *w = fake_give(stream);
  w->kind = COPY;
  w->to = to;
  w->from = from;
  w->byte_count = bytes;
  LEAVE(CUDA_OK);
}

int cuMemcpyPeerAsync(cuda_address destination, void *destination_context, cuda_address source, void *source_context,
                      size_t bytes, void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  EXPECT_LIVE(destination_context, CONTEXT);
  EXPECT_LIVE(source_context, CONTEXT);
  uint8_t *to = fake_reach_in(destination, bytes, __func__, ((object *)destination_context)->device, 0);
  const uint8_t *from = fake_reach_in(source, bytes, __func__, ((object *)source_context)->device, 0);
  if (to == NULL || from == NULL) LEAVE(1);
  work *w = fake_give(stream);
  w->kind = COPY;
  w->to = to;
  w->from = from;
  w->byte_count = bytes;
  LEAVE(CUDA_OK);
}

typedef struct rectangle {
  size_t pitch, count, rows; /* of elements */
} rectangle;

static int fill_rows(cuda_address destination, uint32_t value, size_t value_bytes, rectangle r, void *stream,
                     const char *caller) {
  size_t byte_count = r.rows > 0 ? (r.rows - 1) * r.pitch + r.count * value_bytes : 0;
  uint8_t *to = fake_reach(destination, byte_count, caller);
  if (to == NULL) return 1;
  if (destination % value_bytes != 0 || r.pitch % value_bytes != 0)
    fake_blame("%s: address 0x%llx or pitch %zu is not aligned", caller, destination, r.pitch);
  if (r.rows > 1 && r.pitch < r.count * value_bytes) fake_blame("%s: rows overlap", caller);
  work *w = fake_give(stream);
  w->kind = FILL;
  w->to = to;
  w->value = value;
  w->value_bytes = value_bytes;
  w->byte_count = r.count * value_bytes;
  w->rows = r.rows;
  w->pitch = r.pitch;
  return CUDA_OK;
}

static int fill(cuda_address destination, uint32_t value, size_t value_bytes, size_t count, void *stream,
                const char *caller) {
  return fill_rows(destination, value, value_bytes, (rectangle){0, count, 1}, stream, caller);
}

int cuMemsetD2D8Async(cuda_address destination, size_t pitch, unsigned char value, size_t width, size_t height,
                      void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  LEAVE(fill_rows(destination, value, 1, (rectangle){pitch, width, height}, stream, __func__));
}

int cuMemsetD2D16Async(cuda_address destination, size_t pitch, unsigned short value, size_t width, size_t height,
                       void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  LEAVE(fill_rows(destination, value, 2, (rectangle){pitch, width, height}, stream, __func__));
}

int cuMemsetD2D32Async(cuda_address destination, size_t pitch, unsigned value, size_t width, size_t height,
                       void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  LEAVE(fill_rows(destination, value, 4, (rectangle){pitch, width, height}, stream, __func__));
}

int cuMemsetD8Async(cuda_address destination, unsigned char value, size_t count, void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  LEAVE(fill(destination, value, 1, count, stream, __func__));
}

int cuMemsetD16Async(cuda_address destination, unsigned short value, size_t count, void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  LEAVE(fill(destination, value, 2, count, stream, __func__));
}

int cuMemsetD32Async(cuda_address destination, unsigned value, size_t count, void *stream) {
  ENTER(1);
  EXPECT_STREAM(stream);
  LEAVE(fill(destination, value, 4, count, stream, __func__));
}
