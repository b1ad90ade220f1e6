/* objc.c - finds the Objective-C runtime and Metal; turns errors into words. */
#include "backend/metal/objc.h"

#include "base/error.h"
#include "base/os.h"

/* A double of Metal is all in the runtime's library. */
static void *framework(const metal_runtime *r, const char *path) {
  void *library = hg_library_open(path, "");
  return library != NULL ? library : r->objc;
}

/* Metal finds its default device only if CoreGraphics is loaded. */
static int find_libraries(metal_runtime *r) {
  r->objc = hg_library_open("libobjc.A.dylib", "");
  if (r->objc == NULL) return 0;
  r->graphics = framework(r, "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics");
  r->metal = framework(r, "/System/Library/Frameworks/Metal.framework/Metal");
  hg_library_find(r->objc, "objc_msgSend", &r->send);
  hg_library_find(r->objc, "objc_getClass", &r->class_of);
  hg_library_find(r->objc, "sel_registerName", &r->selector_of);
  hg_library_find(r->objc, "objc_autoreleasePoolPush", &r->pool_push);
  hg_library_find(r->objc, "objc_autoreleasePoolPop", &r->pool_pop);
  hg_library_find(r->metal, "MTLCreateSystemDefaultDevice", &r->default_device);
  return r->send != NULL && r->class_of != NULL && r->selector_of != NULL && r->pool_push != NULL &&
         r->pool_pop != NULL && r->default_device != NULL;
}

hg_status hg_metal_runtime_open(metal_runtime *r) {
  *r = (metal_runtime){.objc = NULL};
  if (!find_libraries(r))
    return hg_fail(HG_UNSUPPORTED, "Metal is Apple's: this system has no Objective-C runtime with Metal");
#define MESSAGE(name, text, result, parameters, encoding) r->selector.name = r->selector_of(text);
#include "backend/metal/messages.def"
#undef MESSAGE
  return HG_OK;
}

const char *hg_metal_words(const metal_runtime *r, metal_id error) {
  const char *words = METAL(r, utf8, METAL(r, description, error)); /* a message to nil returns nil */
  return words != NULL ? words : "";
}
