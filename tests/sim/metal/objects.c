/* objects.c - the Objective-C runtime: classes, messages, reference counts, autorelease pools, strings and errors.
 * Objects are never given back to the heap, so that a message to one that is gone is seen. */
#define _GNU_SOURCE
#include "../thread_local.h"
#include "sim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIVE = 0x0b1ec7, GONE = 0xdead };

void sim_die(const char *format, ...) {
  va_list list;
  fprintf(stderr, "simulated Metal: ");
  va_start(list, format);
  vfprintf(stderr, format, list);
  va_end(list);
  fputc('\n', stderr);
  abort();
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sim_object all = {.next = &all, .previous = &all};
static sim_object *gone; /* the last one; the one before is its `next` */

void *sim_make(const sim_class *isa, size_t bytes, void (*dealloc)(void *object)) {
  sim_object *o = calloc(1, bytes);
  if (o == NULL) sim_die("no memory for a %s", isa->name);
  *o = (sim_object){.isa = isa, .dealloc = dealloc, .count = 1, .state = ALIVE};
  pthread_mutex_lock(&mutex);
  o->next = &all;
  o->previous = all.previous;
  o->previous->next = o;
  all.previous = o;
  pthread_mutex_unlock(&mutex);
  return o;
}

static void check(const sim_object *o, const char *what) {
  if (o->state != ALIVE) sim_die("%s: to an object that is gone, a %s", what, o->isa->name);
}

void *sim_retain(void *object) {
  sim_object *o = object;
  if (o == NULL) return NULL;
  check(o, "retain");
  __atomic_add_fetch(&o->count, 1, __ATOMIC_SEQ_CST);
  return o;
}

void sim_release(void *object) {
  sim_object *o = object;
  if (o == NULL) return;
  check(o, "release");
  if (__atomic_sub_fetch(&o->count, 1, __ATOMIC_SEQ_CST) > 0) return;
  if (o->dealloc != NULL) o->dealloc(o);
  pthread_mutex_lock(&mutex);
  o->previous->next = o->next;
  o->next->previous = o->previous;
  o->next = gone;
  gone = o;
  o->state = GONE;
  pthread_mutex_unlock(&mutex);
}

long metal_sim_live(char *names, size_t size) {
  long count = 0;
  size_t used = 0;
  pthread_mutex_lock(&mutex);
  for (const sim_object *o = all.next; o != &all; o = o->next, count++)
    if (names != NULL && used + 1 < size)
      used += (size_t)snprintf(names + used, size - used, "%s (%d) ", o->isa->name, o->count);
  pthread_mutex_unlock(&mutex);
  return count;
}

/* ---- autorelease pools ------------------------------------------------------------------------------------------- */

typedef struct pool {
  struct pool *outer;
  size_t count, room;
  void **objects;
} pool;

static ALIGNED_THREAD_LOCAL pool *innermost;

void *objc_autoreleasePoolPush(void) {
  pool *p = calloc(1, sizeof *p);
  if (p == NULL) sim_die("no memory for a pool");
  p->outer = innermost;
  return innermost = p;
}

void objc_autoreleasePoolPop(void *which) {
  if (innermost != which) sim_die("an autorelease pool is popped that is not the innermost one");
  pool *p = which;
  innermost = p->outer;
  for (size_t i = 0; i < p->count; i++) sim_release(p->objects[i]);
  free(p->objects);
  free(p);
}

void *sim_autorelease(void *object) {
  if (object == NULL) return NULL;
  if (innermost == NULL) sim_die("a %s is autoreleased without a pool, and leaks", ((sim_object *)object)->isa->name);
  if (innermost->count == innermost->room) {
    innermost->room = 2 * innermost->room + 8;
    innermost->objects = realloc(innermost->objects, innermost->room * sizeof(void *));
    if (innermost->objects == NULL) sim_die("no memory for a pool");
  }
  return innermost->objects[innermost->count++] = object;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void *message_retain(void *o, sim_selector s) { return (void)s, sim_retain(o); }
static void message_release(void *o, sim_selector s) { (void)s, sim_release(o); }
static signed char message_responds(sim_object *o, sim_selector s, sim_selector asked);

static const sim_method everyones[] = {{"retain", (void *)message_retain, "@@:"},
                                       {"release", (void *)message_release, "Vv@:"},
                                       {"respondsToSelector:", (void *)message_responds, "B@::"},
                                       {NULL, NULL, NULL}};

static const sim_method *find(const sim_class *class, sim_selector s) {
  for (const sim_method *m = class->methods; m != NULL && m->selector != NULL; m++)
    if (strcmp(m->selector, s) == 0) return m;
  for (const sim_method *m = everyones; m->selector != NULL; m++)
    if (strcmp(m->selector, s) == 0) return m;
  return NULL;
}

static signed char message_responds(sim_object *o, sim_selector s, sim_selector asked) {
  (void)s;
  return find(o->isa, asked) != NULL;
}

typedef struct selector_name {
  long sent; /* messages of that name */
  char name[96];
} selector_name;

static selector_name selectors[256];

/* Like the runtime's, selectors of one name are one pointer. */
SIM_API sim_selector sel_registerName(const char *name) {
  sim_selector found = NULL;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < 256 && found == NULL; i++) {
    if (selectors[i].name[0] == '\0') snprintf(selectors[i].name, sizeof selectors[i].name, "%s", name);
    if (strcmp(selectors[i].name, name) == 0) found = selectors[i].name;
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

static long *sent_of(sim_selector s) {
  return &((selector_name *)(uintptr_t)(s - offsetof(selector_name, name)))->sent;
}

long metal_sim_sent(const char *name) { return __atomic_load_n(sent_of(sel_registerName(name)), __ATOMIC_SEQ_CST); }

static const sim_class string_class, file_class, array_class, process_class;
static const sim_class *const classes[] = {&string_class, &file_class, &array_class, &process_class,
                                           &sim_options_class, &sim_descriptor_class, &sim_archive_descriptor_class};
enum { CLASS_COUNT = sizeof classes / sizeof classes[0] };

static int is_class(const void *o) {
  for (size_t i = 0; i < CLASS_COUNT; i++)
    if (classes[i] == o) return 1;
  return 0;
}

SIM_API const void *objc_getClass(const char *name) {
  for (size_t i = 0; i < CLASS_COUNT; i++)
    if (strcmp(classes[i]->name, name) == 0) return classes[i];
  sim_die("objc_getClass: there is no class %s", name);
}

/* For the self-test of the table of messages. */
SIM_API const void *object_getClass(const sim_object *o) { return o->isa; }
SIM_API const void *class_getInstanceMethod(const sim_class *class, sim_selector s) { return find(class, s); }
SIM_API const char *method_getTypeEncoding(const sim_method *m) { return m->types; }

/* Of a class, too, which begins as an object does. */
__attribute__((used)) void *sim_lookup(const sim_object *o, sim_selector s) {
  if (!is_class(o)) check(o, s);
  const sim_method *m = find(o->isa, s);
  if (m == NULL) sim_die("-[%s %s]: a message that is not known", o->isa->name, s);
  __atomic_add_fetch(sent_of(s), 1, __ATOMIC_SEQ_CST);
  return m->function;
}

/* Keeps all registers that arguments may be in. A message to nil gives 0. */
__asm__(".text\n.globl objc_msgSend\n.type objc_msgSend,@function\nobjc_msgSend:\n"
        "  test %rdi, %rdi\n  jz 1f\n  push %rbp\n  mov %rsp, %rbp\n  sub $0xb0, %rsp\n"
        "  mov %rdi, (%rsp)\n  mov %rsi, 8(%rsp)\n  mov %rdx, 16(%rsp)\n  mov %rcx, 24(%rsp)\n  mov %r8, 32(%rsp)\n"
        "  mov %r9, 40(%rsp)\n  movaps %xmm0, 0x30(%rsp)\n  movaps %xmm1, 0x40(%rsp)\n  movaps %xmm2, 0x50(%rsp)\n"
        "  movaps %xmm3, 0x60(%rsp)\n  call sim_lookup@PLT\n  mov %rax, %r11\n"
        "  mov (%rsp), %rdi\n  mov 8(%rsp), %rsi\n  mov 16(%rsp), %rdx\n  mov 24(%rsp), %rcx\n  mov 32(%rsp), %r8\n"
        "  mov 40(%rsp), %r9\n  movaps 0x30(%rsp), %xmm0\n  movaps 0x40(%rsp), %xmm1\n  movaps 0x50(%rsp), %xmm2\n"
        "  movaps 0x60(%rsp), %xmm3\n  leave\n  jmp *%r11\n"
        "1: xor %eax, %eax\n  xor %edx, %edx\n  xorps %xmm0, %xmm0\n  ret\n.size objc_msgSend, .-objc_msgSend\n");

/* ---- strings, errors --------------------------------------------------------------------------------------------- */

typedef struct string {
  sim_object object;
  char *text;
} string;

static void string_dealloc(void *o) { free(((string *)o)->text); }
static const char *string_utf8(string *s, sim_selector selector) { return (void)selector, s->text; }

static const sim_method string_methods[] = {{"UTF8String", (void *)string_utf8, "r*@:"}, {NULL, NULL, NULL}};
static const sim_class string_instances = {NULL, "NSString", string_methods};

static void *string_of(char *text) {
  string *s = sim_make(&string_instances, sizeof *s, string_dealloc);
  s->text = text;
  return s;
}

static void *string_with(const void *class, sim_selector s, const char *text) {
  (void)class;
  (void)s;
  return sim_fails(SIM_NO_OBJECT) ? NULL : sim_autorelease(string_of(strdup(text)));
}

static const sim_method string_class_methods[] = {{"stringWithUTF8String:", (void *)string_with, "@@:r*"},
                                                  {NULL, NULL, NULL}};
static const sim_class string_meta = {NULL, "NSString class", string_class_methods};
static const sim_class string_class = {&string_meta, "NSString", string_methods};

/* Their own only as far as the messages go. */
static void *file_with(const void *class, sim_selector s, void *path) {
  return string_with(class, s, sim_text(path));
}

static const sim_method file_class_methods[] = {{"fileURLWithPath:", (void *)file_with, "@@:@"}, {NULL, NULL, NULL}};
static const sim_class file_meta = {NULL, "NSURL class", file_class_methods};
static const sim_class file_class = {&file_meta, "NSURL", string_methods};

typedef struct array {
  sim_object object;
  void *first;
} array;

static void array_dealloc(void *o) { sim_release(((array *)o)->first); }
static const sim_method array_methods[] = {{NULL, NULL, NULL}};
static const sim_class array_instances = {NULL, "NSArray", array_methods};

static void *array_with(const void *class, sim_selector s, void *first) {
  (void)class;
  (void)s;
  if (first == NULL) sim_die("an array of nil");
  if (sim_fails(SIM_NO_OBJECT)) return NULL;
  array *a = sim_make(&array_instances, sizeof *a, array_dealloc);
  a->first = sim_retain(first);
  return sim_autorelease(a);
}

void *sim_array_first(void *a) { return a != NULL ? ((array *)a)->first : NULL; }

static const sim_method array_class_methods[] = {{"arrayWithObject:", (void *)array_with, "@@:@"}, {NULL, NULL, NULL}};
static const sim_class array_meta = {NULL, "NSArray class", array_class_methods};
static const sim_class array_class = {&array_meta, "NSArray", array_methods};

static void *process_system(void *p, sim_selector s) {
  (void)p;
  const char *asked = getenv("SIMMETAL_SYSTEM");
  return string_with(NULL, s, asked != NULL ? asked : "Version 14.0 (simulated)");
}
static const sim_method process_methods[] = {{"operatingSystemVersionString", (void *)process_system, "@@:"},
                                             {NULL, NULL, NULL}};
static const sim_class process_instances = {NULL, "NSProcessInfo", process_methods};

static void *process_info(const void *class, sim_selector s) {
  (void)class;
  (void)s;
  return sim_autorelease(sim_make(&process_instances, sizeof(sim_object), NULL));
}

static const sim_method process_class_methods[] = {{"processInfo", (void *)process_info, "@@:"}, {NULL, NULL, NULL}};
static const sim_class process_meta = {NULL, "NSProcessInfo class", process_class_methods};
static const sim_class process_class = {&process_meta, "NSProcessInfo", process_methods};

void *sim_string(const char *format, ...) {
  char *text = NULL;
  va_list list;
  va_start(list, format);
  if (vasprintf(&text, format, list) < 0) sim_die("no memory for a string");
  va_end(list);
  return string_of(text);
}

const char *sim_text(void *s) { return ((string *)s)->text; }

typedef struct error {
  sim_object object;
  long code;
  void *description;
} error;

static void error_dealloc(void *o) { sim_release(((error *)o)->description); }
static long error_code(error *e, sim_selector s) { return (void)s, e->code; }
static void *error_description(error *e, sim_selector s) { return (void)s, e->description; }
static const sim_method error_methods[] = {{"code", (void *)error_code, "q@:"},
                                           {"localizedDescription", (void *)error_description, "@@:"},
                                           {NULL, NULL, NULL}};
static const sim_class error_class = {NULL, "NSError", error_methods};

void *sim_error(long code, const char *format, ...) {
  char *text = NULL;
  va_list list;
  va_start(list, format);
  if (vasprintf(&text, format, list) < 0) sim_die("no memory for an error");
  va_end(list);
  error *e = sim_make(&error_class, sizeof *e, error_dealloc);
  e->code = code;
  e->description = string_of(text);
  return sim_autorelease(e);
}
