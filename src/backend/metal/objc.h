/* objc.h - the Objective-C runtime and Metal from C: opened at run time; messages are rows of messages.def.
 *
 *   metal_id queue = METAL(r, queue, device);
 *
 * casts objc_msgSend to the prototype of the message. The caller owns objects from names that begin with `new`; others
 * belong to the innermost autorelease pool. */
#ifndef HG_METAL_OBJC_H
#define HG_METAL_OBJC_H

#include "hologram/base.h"

#include <stdint.h>

typedef void *metal_id;
typedef const struct metal_selector_name *metal_selector;
typedef unsigned long metal_unsigned;
typedef long metal_integer;
typedef signed char metal_bool;
typedef struct metal_size { metal_unsigned width, height, depth; } metal_size;

/* Numbers of Metal's headers. */
enum {
  METAL_FAMILY_APPLE7 = 1007, /* M1 */
  METAL_FAMILY_METAL3 = 5001,
  METAL_SHARED_MEMORY = 0,
  METAL_UNTRACKED = 1 << 8, /* the CPU reads it while the GPU may write to it */
  METAL_TRACKED = 2 << 8,   /* the default: Metal orders the work on it */
  METAL_READ_WRITE = 3,
  METAL_BUFFERS = 1,        /* scope of a barrier */
  METAL_SAFE_MATH = 0,
  METAL_COMPLETED = 4,
  METAL_FAILED = 5
};

#define MESSAGE(name, selector, result, parameters, encoding) typedef result(*metal_send_##name) parameters;
#include "backend/metal/messages.def"
#undef MESSAGE

typedef struct metal_runtime {
  void *objc, *metal, *graphics;
  void (*send)(void);
  metal_id (*class_of)(const char *name);
  metal_selector (*selector_of)(const char *name);
  void *(*pool_push)(void);
  void (*pool_pop)(void *pool);
  metal_id (*default_device)(void);
  struct {
#define MESSAGE(name, selector, result, parameters, encoding) metal_selector name;
#include "backend/metal/messages.def"
#undef MESSAGE
  } selector;
} metal_runtime;

#define METAL_SEND(r, name) ((metal_send_##name)(r)->send)
#define METAL(r, name, to) METAL_SEND(r, name)((to), (r)->selector.name)
#define METAL_WITH(r, name, to, ...) METAL_SEND(r, name)((to), (r)->selector.name, __VA_ARGS__)

/* HG_UNSUPPORTED with a sentence where there is no Metal. */
hg_status hg_metal_runtime_open(metal_runtime *r);
/* The description of an NSError; "" if it has none. Lives as long as the innermost pool. */
const char *hg_metal_words(const metal_runtime *r, metal_id error);

#endif
