/* fake_kernel.c - the double of libcuda: linking PTX, modules and launches. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

enum { DECLARED_SHARED = 48 << 10 }; /* of shared memory that a module may declare, or a launch have unasked */

/* The fake image of a kernel is its PTX behind a magic word. */
static const char magic[] = "FAKECUBIN";

static void say(const object *link, const char *message) {
  char *log = NULL;
  size_t log_bytes = 0;
  for (unsigned i = 0; i < link->log_count; i++) {
    if (link->log_options[i] == CUDA_JIT_ERROR_LOG) log = link->log_values[i];
    if (link->log_options[i] == CUDA_JIT_ERROR_LOG_BYTES) log_bytes = (size_t)(uintptr_t)link->log_values[i];
  }
  if (log != NULL && log_bytes > 0) snprintf(log, log_bytes, "%s", message);
}

int cuLinkCreate_v2(unsigned option_count, int *options, void **values, void **state) {
  ENTER(1);
  object *o = fake_add(LINK, 0);
  o->log_options = options;
  o->log_values = values;
  o->log_count = option_count;
  *state = o;
  LEAVE(CUDA_OK);
}

int cuLinkAddData_v2(void *state, int type, void *data, size_t bytes, const char *name, unsigned option_count,
                     int *options, void **values) {
  (void)name;
  (void)options;
  (void)values;
  pthread_mutex_lock(&fake_lock);
  int error = fake_begin(__func__, 1);
  if (error != CUDA_OK) {
    say(state, "line 7: a fault on demand");
    LEAVE(error);
  }
  EXPECT_LIVE(state, LINK);
  EXPECT(type == CUDA_JIT_INPUT_PTX && option_count == 0);
  EXPECT(bytes > 0 && ((const char *)data)[bytes - 1] == '\0' && memchr(data, 0, bytes) == (char *)data + bytes - 1);
  object *o = state;
  o->byte_count = sizeof magic + bytes;
  o->bytes = malloc(o->byte_count);
  if (o->bytes == NULL) abort();
  memcpy(o->bytes, magic, sizeof magic);
  memcpy(o->bytes + sizeof magic, data, bytes);
  char why[200];
  FILE *dump = getenv("FAKECUDA_DUMP") != NULL ? fopen(getenv("FAKECUDA_DUMP"), "a") : NULL;
  if (dump != NULL) {
    fprintf(dump, "%s\n", (const char *)data);
    fclose(dump);
  }
  ptx_module *module = ptx_parse(data, why, sizeof why);
  if (module == NULL) {
    say(o, why);
    LEAVE(218);
  }
  size_t shared_bytes = ptx_shared_bytes(module);
  ptx_release(module);
  if (shared_bytes > DECLARED_SHARED) {
    say(o, "ptxas error   : Entry function uses too much shared data");
    LEAVE(218);
  }
  LEAVE(CUDA_OK);
}

/* How many links were completed with few of the driver's optimisations, and how many with all. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int holds;
  unsigned held, quick, full;
} links = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass_link(const object *link) {
  int is_quick = 0;
  for (unsigned i = 0; i < link->log_count; i++)
    is_quick |= link->log_options[i] == CUDA_JIT_OPTIMIZATION_LEVEL;
  pthread_mutex_lock(&links.mutex);
  links.held++;
  while (links.holds && !is_quick) pthread_cond_wait(&links.changed, &links.mutex);
  links.held--;
  *(is_quick ? &links.quick : &links.full) += 1;
  pthread_mutex_unlock(&links.mutex);
}

void fakecuda_hold_links(int hold) {
  pthread_mutex_lock(&links.mutex);
  links.holds = hold;
  pthread_cond_broadcast(&links.changed);
  pthread_mutex_unlock(&links.mutex);
}

unsigned fakecuda_links(fakecuda_link which) {
  pthread_mutex_lock(&links.mutex);
  unsigned count = which == FAKECUDA_QUICK ? links.quick : which == FAKECUDA_FULL ? links.full : links.held;
  pthread_mutex_unlock(&links.mutex);
  return count;
}

int cuLinkComplete(void *state, void **image, size_t *bytes) {
  if (state != NULL) pass_link(state);
  ENTER(1);
  EXPECT_LIVE(state, LINK);
  object *o = state;
  EXPECT(o->bytes != NULL);
  *image = o->bytes;
  *bytes = o->byte_count;
  LEAVE(CUDA_OK);
}

int cuLinkDestroy(void *state) {
  ENTER(1);
  EXPECT_LIVE(state, LINK);
  fake_bury(state);
  LEAVE(CUDA_OK);
}

/* A driver that takes its time, while others go on. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int holds;
  unsigned held, passed;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass_gate(void) {
  pthread_mutex_lock(&gate.mutex);
  gate.held++;
  while (gate.holds) pthread_cond_wait(&gate.changed, &gate.mutex);
  gate.held--;
  gate.passed++;
  pthread_mutex_unlock(&gate.mutex);
}

void fakecuda_hold_loads(int hold) {
  pthread_mutex_lock(&gate.mutex);
  gate.holds = hold;
  pthread_cond_broadcast(&gate.changed);
  pthread_mutex_unlock(&gate.mutex);
}

unsigned fakecuda_held_loads(void) {
  pthread_mutex_lock(&gate.mutex);
  unsigned count = gate.holds ? gate.held : 0;
  pthread_mutex_unlock(&gate.mutex);
  return count;
}

unsigned fakecuda_loads(void) {
  pthread_mutex_lock(&gate.mutex);
  unsigned count = gate.passed;
  pthread_mutex_unlock(&gate.mutex);
  return count;
}

/* An image, or the text itself. */
int cuModuleLoadData(void **module, const void *image) {
  pass_gate();
  ENTER(1);
  const char *text = image;
  if (strncmp(text, magic, sizeof magic) == 0) text += sizeof magic;
  else if (strncmp(text, ".version", strlen(".version")) != 0) LEAVE(200);
  char why[200];
  ptx_module *program = ptx_parse(text, why, sizeof why);
  if (program == NULL) LEAVE(200);
  object *o = fake_add(MODULE, 0);
  o->program = program;
  *module = o;
  LEAVE(CUDA_OK);
}

int cuModuleUnload(void *module) {
  ENTER(1);
  EXPECT_LIVE(module, MODULE);
  if (fake.fail_setting[0] != '\0')
    fake_wait_for(NULL, fake.work_given); /* nobody can wait where waiting fails on demand */
  object *o = module;
  for (object *i = fake.objects, *next; i != NULL; i = next) {
    next = i->next;
    if (i->kind == FUNCTION && i->module == o) fake_bury(i);
  }
  ptx_release(o->program);
  fake_bury(o);
  LEAVE(CUDA_OK);
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER(1);
  EXPECT_LIVE(module, MODULE);
  if (ptx_parameter_bytes(((object *)module)->program, name) == 0) LEAVE(500);
  object *o = fake_add(FUNCTION, 0);
  o->module = module;
  snprintf(o->name, sizeof o->name, "%s", name);
  *function = o;
  LEAVE(CUDA_OK);
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  ENTER(1);
  EXPECT_LIVE(function, FUNCTION);
  EXPECT(attribute == CUDA_FUNCTION_DYNAMIC_BYTES && value >= 0);
  object *o = function;
  size_t declared = ptx_shared_bytes(o->module->program);
  if (declared + (size_t)value > fake_setting("FAKECUDA_SHARED", 227 << 10)) LEAVE(1);
  o->dynamic_bytes = (unsigned)value;
  LEAVE(CUDA_OK);
}

int cuFuncGetAttribute(int *value, int attribute, void *function) {
  ENTER(1);
  EXPECT_LIVE(function, FUNCTION);
  EXPECT(attribute == CUDA_FUNCTION_SHARED_BYTES || attribute == CUDA_FUNCTION_LOCAL_BYTES ||
         attribute == CUDA_FUNCTION_REGISTERS);
  *value = attribute == CUDA_FUNCTION_SHARED_BYTES  ? 512
           : attribute == CUDA_FUNCTION_LOCAL_BYTES ? 16
                                                    : 32; /* whatever the kernel */
  LEAVE(CUDA_OK);
}

static unsigned blocks;

unsigned fakecuda_blocks(void) { return blocks; }

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                   void **extra) {
  ENTER(1);
  EXPECT_LIVE(function, FUNCTION);
  EXPECT_STREAM(stream);
  EXPECT(grid_x > 0 && grid_y > 0 && grid_z > 0 && grid_x <= INT32_MAX && grid_y <= 65535 && grid_z <= 65535);
  EXPECT(block_x > 0 && block_y > 0 && block_z > 0 && block_z <= 64 && block_x * block_y * block_z <= 1024);
  object *o = function;
  EXPECT(grid_x % ptx_cluster_blocks(o->module->program, o->name) == 0);
  EXPECT(shared_bytes <= (o->dynamic_bytes > DECLARED_SHARED ? o->dynamic_bytes : DECLARED_SHARED) && extra == NULL);
  blocks = grid_x * grid_y * grid_z;
  work *w = fake_give(stream);
  w->kind = RUN;
  w->function = o;
  memcpy(w->grid, (unsigned[]){grid_x, grid_y, grid_z}, sizeof w->grid);
  memcpy(w->block, (unsigned[]){block_x, block_y, block_z}, sizeof w->block);
  w->shared_bytes = shared_bytes;
  ptx_gather_parameters(o->module->program, o->name, parameters, w->parameters, sizeof w->parameters);
  LEAVE(CUDA_OK);
}
