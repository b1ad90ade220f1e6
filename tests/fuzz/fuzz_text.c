/* fuzz_text.c - any text is refused with a sentence, or is a program that survives printing, parsing, encoding and
 * decoding. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  atlas_program *program = NULL, *again = NULL, *decoded = NULL;
  if (atlas_parse(NULL, (const char *)data, size, "fuzz.atlas", &program) != HG_OK) {
    PROMISE(program == NULL && hg_last_error()[0] != '\0');
    return 0;
  }

  char *text = NULL;
  size_t length = 0;
  PROMISE(atlas_print(NULL, program, &text, &length) == HG_OK);
  PROMISE(text[length] == '\0');
  PROMISE(atlas_parse(NULL, text, length, "printed.atlas", &again) == HG_OK);
  fuzz_same_program(program, again);

  void *bytes = NULL;
  size_t byte_count = 0;
  PROMISE(atlas_encode(NULL, program, &bytes, &byte_count) == HG_OK);
  PROMISE(atlas_decode(NULL, bytes, byte_count, &decoded) == HG_OK);
  fuzz_same_program(program, decoded);

  atlas_memory_release(NULL, text);
  atlas_memory_release(NULL, bytes);
  atlas_program_release(decoded);
  atlas_program_release(again);
  atlas_program_release(program);
  return 0;
}
