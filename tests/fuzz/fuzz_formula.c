/* fuzz_formula.c - any formula is refused with a sentence, or is a value with a type and shape, and with gradients
 * where it is a float. */
#include "fuzz.h"

#include "hologram/ops.h"

static hg_value input(hg_computation *c, const char *name, atlas_type type, uint32_t rank, uint64_t rows,
                      uint64_t columns) {
  hg_tensor like = hg_tensor_of(NULL, type, rank, (uint64_t[]){rows, columns});
  return hg_computation_input(c, name, &like);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const names[] = {"x", "v", "i", "h", "n", "k"};
  hg_computation *c = NULL;
  char *text = malloc(size + 1);
  PROMISE(text != NULL && hg_computation_create(NULL, &c) == HG_OK);
  if (size > 0) memcpy(text, data, size);
  text[size] = '\0';

  hg_value values[6] = {input(c, "x", ATLAS_f32, 2, 3, 4), input(c, "v", ATLAS_f32, 1, 4, 0),
                        input(c, "i", ATLAS_i32, 1, 3, 0), input(c, "h", ATLAS_bf16, 2, 3, 4),
                        input(c, "n", ATLAS_f32, 2, 0, 4), input(c, "k", ATLAS_u64, 0, 0, 0)};
  hg_value result = hg_compute_formula(c, text, names, values, 6), gradients[6];
  hg_tensor like;
  if (result == 0) {
    PROMISE(hg_computation_status(c) != HG_OK && hg_last_error()[0] != '\0');
  } else {
    PROMISE(hg_computation_describe(c, result, &like) == HG_OK && like.rank <= HG_MAX_RANK);
    PROMISE(hg_computation_output(c, "y", result, NULL) == HG_OK);
    hg_status status = hg_gradient(c, result, result, values, 6, gradients);
    PROMISE(status == hg_computation_status(c));
    for (int k = 0; k < 6; k++) PROMISE((gradients[k] != 0) == (status == HG_OK));
  }
  hg_computation_release(c);
  free(text);
  return 0;
}
