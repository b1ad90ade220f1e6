/* fuzz_binary.c - any bytes are refused with a sentence, or are a program whose bytes and text say the same again. Each
 * input is tried as it is and with length and checksum put right. */
#include "fuzz.h"

/* What may differ between the input and its encoding is what a reader may skip; the second encoding is the first one.
 */
static void check(atlas_program *program) {
  void *bytes = NULL, *bytes_again = NULL;
  size_t size = 0, size_again = 0;
  atlas_program *decoded = NULL, *parsed = NULL;
  PROMISE(atlas_encode(NULL, program, &bytes, &size) == HG_OK);
  PROMISE(atlas_decode(NULL, bytes, size, &decoded) == HG_OK);
  PROMISE(atlas_encode(NULL, decoded, &bytes_again, &size_again) == HG_OK);
  PROMISE(size == size_again && memcmp(bytes, bytes_again, size) == 0);
  fuzz_same_program(program, decoded);

  char *text = NULL;
  size_t length = 0;
  PROMISE(atlas_print(NULL, program, &text, &length) == HG_OK);
  PROMISE(atlas_parse(NULL, text, length, "printed.atlas", &parsed) == HG_OK);
  fuzz_same_program(program, parsed);

  atlas_memory_release(NULL, bytes);
  atlas_memory_release(NULL, bytes_again);
  atlas_memory_release(NULL, text);
  atlas_program_release(decoded);
  atlas_program_release(parsed);
}

static void try(const uint8_t *data, size_t size) {
  atlas_program *program = NULL;
  if (atlas_decode(NULL, data, size, &program) != HG_OK) {
    PROMISE(program == NULL && hg_last_error()[0] != '\0');
    return;
  }
  check(program);
  atlas_program_release(program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try(data, size);
  uint8_t *mended = fuzz_mended(data, size);
  try(mended, size);
  free(mended);
  return 0;
}
