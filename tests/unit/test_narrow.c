/* test_narrow.c - functions that the library has a text of their own for f16 or bf16 (src/functions/narrow.atlas): on
 * all 65536 arguments they give the bits of their definition, the f32 function rounded, in every engine. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "launching.h"

#include "atlas/functions.h"
#include "atlas/interp.h"
#include "atlas/tables.h"

#include <stdlib.h>

#ifdef _WIN32
#  define setenv(name, value, overwrite) _putenv_s(name, value)
#endif

enum { VALUES = 1 << 16, SHOWN = 5 };

static uint16_t argument[VALUES], expected[VALUES], got[VALUES];

static void run(const char *op, const char *type) {
  char text[256];
  snprintf(text, sizeof text,
           ".program p\n.buffer a %s in\n.buffer y %s out\n    ldg.%s r0, [a + lane]\n    %s.%s r0, r0\n"
           "    stg.%s [y + lane], r0\n    exit\n",
           type, type, type, op, type, type);
  run_on_array(text, VALUES, sizeof argument, argument, got);
}

static void check_entry(const atlas_entry *entry, const char *engine) {
  const char *op = atlas_op_name((atlas_op)entry->op), *type = atlas_type_name((atlas_type)entry->type);
  unsigned differ = 0;
  run(op, type);
  for (unsigned i = 0; i < VALUES; i++) {
    if (got[i] == expected[i] || ++differ > SHOWN) continue;
    printf("%s %s.%s(%04x) is %04x, expected %04x\n", engine, op, type, i, got[i], expected[i]);
  }
  CHECK_EQ_U64(differ, 0);
}

int main(void) {
  static const char *const engines[] = {"tile", "native"};
  size_t count = test_backend() == HG_BACKEND_CPU ? COUNT(engines) : 1;
  unsigned entries = 0;
  for (unsigned i = 0; i < VALUES; i++) argument[i] = (uint16_t)i;
  for (size_t i = 0; i < atlas_functions.entries.count; i++) {
    const atlas_entry *entry = atlas_entry_at(&atlas_functions, i);
    if (entry->type != ATLAS_f16 && entry->type != ATLAS_bf16) continue;
    entries++;
    for (unsigned v = 0; v < VALUES; v++)
      expected[v] = (uint16_t)atlas_function((atlas_op)entry->op, (atlas_type)entry->type, v, 0);
    for (size_t e = 0; e < count; e++) {
      setenv("HOLOGRAM_CPU_ENGINE", engines[e], 1);
      CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
      check_entry(entry, engines[e]);
      hg_executor_release(executor);
    }
  }
  CHECK(entries > 0);
  return check_report();
}
