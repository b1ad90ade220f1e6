/* test_metal_messages.c - the table of messages against the runtime's own type encodings, each on an object that it is
 * sent to: a self-test for Macs. Apple's runtime and the simulated one are asked alike. */
#include "backend/metal/objc.h"
#include "check.h"

#include "base/error.h"
#include "base/os.h"

#include <string.h>

typedef struct runtime_functions {
  metal_id (*class_of)(metal_id object); /* of a class: what has its own methods */
  const void *(*method_of)(metal_id class, metal_selector selector);
  const char *(*encoding_of)(const void *method);
} runtime_functions;

enum { MOST_OBJECTS = 32 };

typedef struct objects {
  const char *names[MOST_OBJECTS];
  metal_id objects[MOST_OBJECTS];
  size_t count;
} objects;

/* ---- what messages are sent to ----------------------------------------------------------------------------------- */

static const char kernel_text[] = "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n"
                                  "kernel void nothing(uint i [[thread_position_in_grid]]) {}\n";

static metal_id keep(objects *o, const char *name, metal_id object) {
  if (!check_note(object != NULL)) printf("there is no %s\n", name);
  if (object == NULL) return NULL;
  o->names[o->count] = name;
  return o->objects[o->count++] = object;
}

static metal_id words(const metal_runtime *r, const char *text) {
  return METAL_WITH(r, string, r->class_of("NSString"), text);
}

static metal_id new_of(const metal_runtime *r, const char *name) { return METAL(r, make, r->class_of(name)); }

static void make_classes(const metal_runtime *r, objects *o) {
  static const char *const names[] = {"NSString", "NSURL", "NSArray", "NSProcessInfo", "MTLCompileOptions",
                                      "MTLComputePipelineDescriptor", "MTLBinaryArchiveDescriptor"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) keep(o, names[i], r->class_of(names[i]));
  keep(o, "a string", words(r, "text"));
  keep(o, "the process", METAL(r, process, r->class_of("NSProcessInfo")));
}

static void make_pipeline(const metal_runtime *r, objects *o, metal_id device) {
  metal_id error = NULL, options = keep(o, "compile options", new_of(r, "MTLCompileOptions"));
  METAL_WITH(r, fast_math, options, 0);
  metal_id library = keep(o, "a library",
                          METAL_WITH(r, library, device, words(r, kernel_text), options, &error));
  metal_id function = keep(o, "a function", METAL_WITH(r, function, library, words(r, "nothing")));
  metal_id descriptor = keep(o, "a pipeline's descriptor", new_of(r, "MTLComputePipelineDescriptor"));
  METAL_WITH(r, set_function, descriptor, function);
  METAL_WITH(r, set_threads, descriptor, 32);
  keep(o, "a pipeline", METAL_WITH(r, pipeline, device, descriptor, 0, NULL, &error));
  metal_id empty = keep(o, "an archive's descriptor", new_of(r, "MTLBinaryArchiveDescriptor"));
  keep(o, "an archive", METAL_WITH(r, archive, device, empty, &error));
  (void)METAL_WITH(r, library, device, words(r, "no program"), options, &error);
  keep(o, "an error", error);
}

static void make_commands(const metal_runtime *r, objects *o, metal_id device) {
  metal_id queue = keep(o, "a queue", METAL(r, queue, device));
  metal_id commands = keep(o, "a command buffer", METAL(r, command_buffer, queue));
  METAL(r, end, keep(o, "an encoder", METAL(r, encoder, commands)));
  METAL(r, commit, commands);
  METAL(r, wait, commands);
  keep(o, "a buffer", METAL_WITH(r, buffer, device, 64, METAL_SHARED_MEMORY));
}

/* ---- encodings --------------------------------------------------------------------------------------------------- */

/* Without the offsets, and with every struct as one without a name. A B is a c where BOOL is a char. */
static void simplify(const char *from, const char *expected, char to[100]) {
  size_t length = 0;
  for (; *from != '\0' && length < 99; from++) {
    if (*from >= '0' && *from <= '9') continue;
    to[length] = *from == 'c' && expected[length] == 'B' ? 'B' : *from;
    if (to[length++] != '{') continue;
    to[length++] = '?';
    from += strcspn(from, "=") - 1;
  }
  to[length] = '\0';
}

static void check_encoding(const runtime_functions *f, const objects *o, metal_selector selector, const char *text,
                           const char *expected) {
  char encoding[100];
  size_t count = 0;
  for (size_t i = 0; i < o->count; i++) {
    const void *method = f->method_of(f->class_of(o->objects[i]), selector);
    if (method == NULL) continue;
    count++;
    simplify(f->encoding_of(method), expected, encoding);
    if (!check_note(strcmp(encoding, expected) == 0))
      printf("%s of %s is \"%s\", expected \"%s\"\n", text, o->names[i], f->encoding_of(method), expected);
  }
  if (!check_note(count > 0)) printf("nothing understands %s\n", text);
}

static void check_all(const metal_runtime *r, const objects *o) {
  runtime_functions f = {.class_of = NULL};
  hg_library_find(r->objc, "object_getClass", &f.class_of);
  hg_library_find(r->objc, "class_getInstanceMethod", &f.method_of);
  hg_library_find(r->objc, "method_getTypeEncoding", &f.encoding_of);
#define MESSAGE(name, text, result, parameters, encoding) check_encoding(&f, o, r->selector.name, text, encoding);
#include "backend/metal/messages.def"
#undef MESSAGE
}

static void test_simplify(void) {
  char encoding[100];
  simplify("@40@0:8{MTLSize=QQQ}16c40", "@@:{?=QQQ}B", encoding);
  CHECK_STR(encoding, "@@:{?=QQQ}B");
}

int main(void) {
  metal_runtime r;
  objects o = {.count = 0};
  test_simplify();
  if (!check_note(hg_metal_runtime_open(&r) == HG_OK)) {
    printf("%s\n", hg_last_error());
    return check_report();
  }
  void *pool = r.pool_push();
  metal_id device = keep(&o, "the device", r.default_device());
  make_classes(&r, &o);
  make_pipeline(&r, &o, device);
  make_commands(&r, &o, device);
  check_all(&r, &o);
  r.pool_pop(pool);
  return check_report();
}
