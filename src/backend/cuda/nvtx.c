/* nvtx.c - the application's side of NVTX 3, without its headers.
 *
 * NVTX has no library. A profiler puts the path of its own into the environment; the application loads it and calls one
 * function in it, passing a function by which the tool finds tables of slots, a table for each module of NVTX. The tool
 * writes its functions into the slots of the events that it wants, and the application calls them. The numbers below
 * are those of NVTX version 3. */
#include "backend/cuda/nvtx.h"

#include "base/os.h"
#include "hologram/atlas.h"

#include <stdatomic.h>
#include <stdio.h>

/* The calling convention of NVTX and of the driver. */
#if defined(_WIN32) && !defined(_WIN64)
#  define NVTX_CALL __stdcall
#else
#  define NVTX_CALL
#endif

enum { VERSION = 3 };
enum { EXPORT_MODULES = 1, EXPORT_VERSION = 3 };
enum {
  MODULE_CORE = 1,
  MODULE_CUDA = 2,
  MODULE_OPENCL = 3,
  MODULE_CUDART = 4,
  MODULE_DOMAINS = 5, /* CORE2 */
  MODULE_SYNC = 6,
  MODULE_END
};
enum { DOMAIN_PUSH = 4, DOMAIN_POP = 5, DOMAIN_CREATE = 12, MOST_SLOTS = 16 };
enum { COLOUR_NONE = 0, PAYLOAD_NONE = 0, PAYLOAD_UINT64 = 1, MESSAGE_ASCII = 1 };

/* What the slots hold, and what it is in those that are called. */
typedef void (*any_function)(void);
typedef void *(NVTX_CALL *create_function)(const char *name);
typedef int(NVTX_CALL *push_function)(void *domain, const void *range); /* range_attributes */
typedef int(NVTX_CALL *pop_function)(void *domain);

typedef struct range_attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t colour_type;
  uint32_t colour;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char *message;
} range_attributes;

typedef struct module_exports {
  size_t size;
  int(NVTX_CALL *get_table)(int module, any_function ***table, unsigned *count);
} module_exports;

typedef struct version_exports {
  size_t size;
  uint32_t version, reserved;
  void(NVTX_CALL *set_tool_version)(uint32_t version);
} version_exports;

typedef const void *(NVTX_CALL *export_function)(uint32_t number);
typedef int(NVTX_CALL *start_function)(export_function exports);

/* One of the few mutable globals that the design allows: a tool belongs to the process. */
enum { FRESH, STARTING, ABSENT, PRESENT };
struct hg_nvtx {
  atomic_uint state;
  void *domain;
  any_function slot[MODULE_END][MOST_SLOTS];
  any_function *table[MODULE_END][MOST_SLOTS + 1]; /* by module: number 0 is unused, NULL ends the table */
};
static hg_nvtx the_tool;

/* ---- what the tool calls ----------------------------------------------------------------------------------------- */

/* Tools may assume that all modules exist. */
static int NVTX_CALL get_table(int module, any_function ***table, unsigned *count) {
  static const unsigned counts[MODULE_END] = {
      [MODULE_CORE] = 16, [MODULE_CUDA] = 9, [MODULE_OPENCL] = 15, [MODULE_CUDART] = 7, [MODULE_DOMAINS] = 16,
      [MODULE_SYNC] = 7};
  if (module < MODULE_CORE || module >= MODULE_END) return 0;
  any_function **entries = the_tool.table[module];
  for (unsigned i = 1; i < counts[module]; i++) entries[i] = &the_tool.slot[module][i];
  if (table != NULL) *table = entries;
  if (count != NULL) *count = counts[module];
  return 1;
}

static void NVTX_CALL set_tool_version(uint32_t version) { (void)version; }

static const void *NVTX_CALL get_export(uint32_t number) {
  static const module_exports modules = {sizeof modules, get_table};
  static const version_exports version = {sizeof version, VERSION, 0, set_tool_version};
  switch (number) {
  case EXPORT_MODULES: return &modules;
  case EXPORT_VERSION: return &version;
  default: return NULL;
  }
}

/* ---- what calls the tool ----------------------------------------------------------------------------------------- */

static any_function domain_function(const hg_nvtx *tool, int number) { return tool->slot[MODULE_DOMAINS][number]; }

static int start(void) {
  char path[HG_PATH_BYTES];
  start_function initialise = NULL;
  const char *variable = sizeof(void *) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH";
  if (!hg_environment_trusted(variable, path, sizeof path)) return 0;
  void *library = hg_library_open_file(path);
  if (library == NULL) return 0;
  hg_library_find(library, "InitializeInjectionNvtx2", &initialise);
  return initialise != NULL && initialise(get_export) != 0;
}

static unsigned open_tool(hg_nvtx *tool) {
  if (!start()) return ABSENT;
  create_function create = (create_function)domain_function(tool, DOMAIN_CREATE);
  if (create != NULL) tool->domain = create("hologram"); /* NULL is the default domain */
  return PRESENT;
}

const hg_nvtx *hg_nvtx_open(void) {
  hg_nvtx *tool = &the_tool;
  unsigned state = FRESH;
  if (atomic_compare_exchange_strong(&tool->state, &state, STARTING)) {
    atomic_store(&tool->state, open_tool(tool));
    hg_wake(&tool->state);
  }
  while ((state = atomic_load(&tool->state)) == STARTING) hg_wait(&tool->state, STARTING);
  return state == PRESENT ? tool : NULL;
}

void hg_nvtx_push(const hg_nvtx *tool, const char *verb, const char *name, uint64_t amount) {
  char text[ATLAS_MAX_NAME + 32];
  push_function push = (push_function)domain_function(tool, DOMAIN_PUSH);
  if (push == NULL) return;
  snprintf(text, sizeof text, "%s%s%s", verb, name != NULL ? " " : "", name != NULL ? name : "");
  const range_attributes range = {.version = VERSION,
                                  .size = sizeof range,
                                  .colour_type = COLOUR_NONE,
                                  .payload_type = amount != 0 ? PAYLOAD_UINT64 : PAYLOAD_NONE,
                                  .payload = amount,
                                  .message_type = MESSAGE_ASCII,
                                  .message = text};
  (void)push(tool->domain, &range);
}

void hg_nvtx_pop(const hg_nvtx *tool) {
  pop_function pop = (pop_function)domain_function(tool, DOMAIN_POP);
  if (pop != NULL) (void)pop(tool->domain);
}
