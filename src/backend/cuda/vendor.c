/* vendor.c - contractions by cuBLASLt. See vendor.h. */
#include "backend/cuda/vendor.h"
#include "backend/cuda/cuda_tuning.h"

#include "backend/cuda/vendor_library.h"
#include "base/os.h"

#include <string.h>

enum { WHOLE_ALIGNMENT = 16 };

struct cuda_product {
  const cuda_vendor *vendor;
  void *description, *layout[3]; /* of the first and second factor in the library's order, and of the result */
  int is_swapped; /* the first factor is B: the library's matrices are column-major */
  int has_bias;
  uint64_t first[4], workspace_bytes;
  uint64_t algorithm[2][8];      /* for any addresses; for aligned ones */
};

/* ---- the library ------------------------------------------------------------------------------------------------- */

static int find_functions(cuda_vendor *v) {
  int is_whole = 1;
#define SYMBOL(name, parameters)                  \
  hg_library_find(v->library, #name, &v->name);   \
  is_whole &= v->name != NULL;
#include "backend/cuda/vendor.def"
#undef SYMBOL
  return is_whole;
}

/* Skips a library that this driver or process cannot use: it may become usable later. */
static int find_library(cuda_vendor *v) {
  static const char *const names[][2] = {{"libcublasLt.so.13", "cublasLt64_13.dll"},
                                         {"libcublasLt.so.12", "cublasLt64_12.dll"},
                                         {"libcublasLt.so.11", "cublasLt64_11.dll"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    v->library = hg_library_open(names[i][0], names[i][1]);
    if (v->library != NULL && find_functions(v) && v->cublasLtCreate(&v->handle) == 0) return 1;
  }
  v->library = NULL;
  return 0;
}

/* Guarded by the device's mutex. NULL: there is none. */
static const cuda_vendor *vendor_of(cuda_device *d) {
  if (d->vendor.library == NULL) d->has_vendor = find_library(&d->vendor) != 0; /* it may have been loaded meanwhile */
  return d->has_vendor ? &d->vendor : NULL;
}

static const cuda_vendor *locked_vendor_of(cuda_device *d) {
  hg_mutex_lock(&d->mutex);
  const cuda_vendor *v = vendor_of(d);
  hg_mutex_unlock(&d->mutex);
  return v;
}

void hg_cuda_vendor_close_within(cuda_device *d) {
  if (d->has_vendor) (void)d->vendor.cublasLtDestroy(d->vendor.handle);
  d->has_vendor = 0;
}

/* ---- the layout of matrices -------------------------------------------------------------------------------------- */

/* A column-major matrix, or one whose transpose is. */
typedef struct matrix {
  uint64_t rows, columns;
  int64_t leading;
  int32_t is_transposed;
} matrix;

static int is_leading(int64_t stride, uint64_t rows, uint64_t columns, int64_t *leading) {
  *leading = columns == 1 ? (int64_t)rows : stride;
  return *leading >= (int64_t)rows;
}

static int lay_out(uint64_t rows, uint64_t columns, int64_t row_stride, int64_t column_stride, matrix *out) {
  *out = (matrix){.rows = rows, .columns = columns};
  if ((row_stride == 1 || rows == 1) && is_leading(column_stride, rows, columns, &out->leading)) return 1;
  *out = (matrix){.rows = columns, .columns = rows, .is_transposed = 1};
  return (column_stride == 1 || columns == 1) && is_leading(row_stride, columns, rows, &out->leading);
}

/* The product or, if swapped, the transposed product, whose first factor is B. */
static int lay_out_all(const hg_contraction *c, int is_swapped, matrix m[3]) {
  const int64_t *a = c->a_stride, *b = c->b_stride, *r = c->c_stride;
  int fits = is_swapped ? lay_out(c->n, c->k, b[2], b[1], &m[0]) && lay_out(c->k, c->m, a[2], a[1], &m[1]) &&
                              lay_out(c->n, c->m, r[2], r[1], &m[2])
                        : lay_out(c->m, c->k, a[1], a[2], &m[0]) && lay_out(c->k, c->n, b[1], b[2], &m[1]) &&
                              lay_out(c->m, c->n, r[1], r[2], &m[2]);
  return fits && !m[2].is_transposed;
}

static int type_of(uint8_t type) {
  return type == ATLAS_f32 ? CUBLAS_R_32F : type == ATLAS_f16 ? CUBLAS_R_16F : type == ATLAS_bf16 ? CUBLAS_R_16BF : -1;
}

static uint32_t bytes_of(uint8_t type) { return type == ATLAS_f32 ? 4 : 2; }

static int is_possible(const hg_contraction *c) {
  if (type_of(c->a_type) < 0 || c->a_type != c->b_type || (c->type != ATLAS_f32 && c->type != c->a_type)) return 0;
  for (int i = 0; i < 3; i++)
    if (c->a_axis[i].count + c->b_axis[i].count != 0) return 0;
  return c->batch > 0 && c->m > 0 && c->n > 0 && c->k > 0 && c->batch <= INT32_MAX && c->m <= INT32_MAX &&
         c->n <= INT32_MAX && c->k <= INT32_MAX;
}

/* The reason; NULL: the library supports the types and sizes. */
static const char *refusal_of(const hg_contraction *c) {
  if (type_of(c->a_type) < 0) return "cuBLASLt is asked for f16, bf16 and f32 alone";
  return is_possible(c) ? NULL : "these types, sizes and strides together are not cuBLASLt's";
}

static uint64_t workspace_of(const hg_contraction *c) {
  double bytes =
      (double)CUDA_WORKSPACE_OF_RESULT * (double)c->batch * (double)c->m * (double)c->n; /* a few parts of K */
  if (bytes > CUDA_MOST_WORKSPACE) return CUDA_MOST_WORKSPACE;
  return bytes < CUDA_LEAST_WORKSPACE ? CUDA_LEAST_WORKSPACE : (uint64_t)bytes;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static int make_layout(const cuda_vendor *v, const matrix *m, uint8_t type, uint64_t batch, int64_t batch_stride,
                       void **layout) {
  int32_t count = (int32_t)batch;
  if (v->cublasLtMatrixLayoutCreate(layout, type_of(type), m->rows, m->columns, m->leading) != 0) return 0;
  if (batch == 1) return 1;
  return v->cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_LAYOUT_BATCH_COUNT, &count, sizeof count) == 0 &&
         v->cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_LAYOUT_BATCH_STRIDE, &batch_stride,
                                             sizeof batch_stride) == 0;
}

static uint32_t epilogue_of(const hg_contraction *c) {
  uint32_t sum = (c->epilogue & HG_WITH_BIAS) != 0 ? CUBLASLT_EPILOGUE_BIAS : 0;
  if ((c->epilogue & HG_WITH_RELU) != 0) sum += CUBLASLT_EPILOGUE_RELU;
  if ((c->epilogue & HG_WITH_GELU_TANH) != 0) sum += CUBLASLT_EPILOGUE_GELU;
  return sum;
}

static int set_bias(const cuda_product *p, const void *bias) {
  return p->vendor->cublasLtMatmulDescSetAttribute(p->description, CUBLASLT_DESC_BIAS_POINTER, &bias,
                                                   sizeof bias) == 0;
}

/* The library adds a bias along the rows of its matrix: for the transposed product these are our columns. The address
 * is known at the launch, but the library wants one before. */
static int describe_epilogue(const cuda_vendor *v, const hg_contraction *c, cuda_product *p) {
  uint32_t epilogue = epilogue_of(c);
  if (epilogue == 0) return 1;
  p->has_bias = (c->epilogue & HG_WITH_BIAS) != 0;
  if (p->has_bias && (!p->is_swapped || !set_bias(p, (const void *)(uintptr_t)WHOLE_ALIGNMENT))) return 0;
  return v->cublasLtMatmulDescSetAttribute(p->description, CUBLASLT_DESC_EPILOGUE, &epilogue, sizeof epilogue) == 0;
}

static int describe(const cuda_vendor *v, const hg_contraction *c, cuda_product *p) {
  matrix m[3];
  p->is_swapped = 1;
  if (!lay_out_all(c, 1, m)) {
    p->is_swapped = 0;
    if (!lay_out_all(c, 0, m)) return 0;
  }
  int compute = c->is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const int64_t *stride[3] = {p->is_swapped ? c->b_stride : c->a_stride, p->is_swapped ? c->a_stride : c->b_stride,
                              c->c_stride};
  if (v->cublasLtMatmulDescCreate(&p->description, compute, CUBLAS_R_32F) != 0) return 0;
  for (int i = 0; i < 2; i++)
    if (v->cublasLtMatmulDescSetAttribute(p->description, CUBLASLT_DESC_TRANSPOSE_A + i, &m[i].is_transposed,
                                          sizeof m[i].is_transposed) != 0)
      return 0;
  for (int i = 0; i < 3; i++)
    if (!make_layout(v, &m[i], i == 2 ? c->type : c->a_type, c->batch, stride[i][0], &p->layout[i])) return 0;
  return describe_epilogue(v, c, p);
}

static int choose(const cuda_vendor *v, const hg_contraction *c, cuda_product *p, int is_aligned) {
  const uint32_t reductions = CUBLASLT_REDUCTION_IN_F32;
  const uint32_t alignment[3] = {is_aligned ? WHOLE_ALIGNMENT : bytes_of(c->a_type), 0,
                                 is_aligned ? WHOLE_ALIGNMENT : bytes_of(c->type)};
  void *preference = NULL;
  cuda_vendor_choice choice;
  memset(&choice, 0, sizeof choice);
  int count = 0;
  int fits = v->cublasLtMatmulPreferenceCreate(&preference) == 0 &&
             v->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_PREFERENCE_WORKSPACE_BYTES,
                                                     &p->workspace_bytes, sizeof p->workspace_bytes) == 0 &&
             v->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_PREFERENCE_REDUCTIONS, &reductions,
                                                     sizeof reductions) == 0;
  for (int i = 0; i < 4 && fits; i++)
    fits = v->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_PREFERENCE_ALIGNMENT_A + i,
                                                   &alignment[i < 2 ? 0 : 2], sizeof alignment[0]) == 0;
  fits = fits && v->cublasLtMatmulAlgoGetHeuristic(v->handle, p->description, p->layout[0], p->layout[1], p->layout[2],
                                                   p->layout[2], preference, 1, &choice, &count) == 0;
  if (preference != NULL) (void)v->cublasLtMatmulPreferenceDestroy(preference);
  memcpy(p->algorithm[is_aligned], choice.algorithm, sizeof choice.algorithm);
  return fits && count > 0 && choice.status == 0;
}

static void close_product(cuda_product *p) {
  for (int i = 0; i < 3; i++)
    if (p->layout[i] != NULL) (void)p->vendor->cublasLtMatrixLayoutDestroy(p->layout[i]);
  if (p->description != NULL) (void)p->vendor->cublasLtMatmulDescDestroy(p->description);
}

/* 0: the library refuses it. */
static int open_product(const cuda_vendor *v, const hg_contraction *c, cuda_product *p) {
  *p = (cuda_product){.vendor = v, .workspace_bytes = workspace_of(c)};
  memcpy(p->first, c->first, sizeof p->first);
  if (describe(v, c, p) && choose(v, c, p, 0) && choose(v, c, p, 1)) return 1;
  close_product(p);
  return 0;
}

static hg_status scratch_within(cuda_device *d, const hg_contraction *c, uint64_t *bytes, const char **why) {
  cuda_product product;
  const cuda_vendor *v = locked_vendor_of(d);
  *why = v != NULL ? "cuBLASLt takes no operands that lie so"
                   : "cuBLASLt was not found: a libcublasLt of CUDA 11, 12 or 13 that works with this driver";
  if (v == NULL || !open_product(v, c, &product)) return HG_OK;
  *bytes = product.workspace_bytes;
  close_product(&product);
  return HG_OK;
}

static hg_status ask(cuda_device *d, const hg_contraction *c, uint64_t *bytes, const char **why) {
  CUDA_RUN(d, scratch_within(d, c, bytes, why));
}

uint64_t hg_cuda_contract_scratch(void *device, const hg_contraction *contraction, const char **why) {
  uint64_t bytes = UINT64_MAX;
  if (!contraction->is_fast || (*why = refusal_of(contraction)) != NULL) return bytes;
  if (ask(device, contraction, &bytes, why) == HG_OK) return bytes;
  *why = "the device could not be asked for cuBLASLt";
  return UINT64_MAX;
}

hg_status hg_cuda_product_open_within(cuda_device *d, const hg_contraction *contraction, cuda_product **out) {
  const cuda_vendor *v = locked_vendor_of(d);
  cuda_product *p = hg_allocate(&d->allocator, 1, sizeof *p);
  if (p == NULL) return hg_fail_memory("a contraction of cuBLASLt", sizeof *p);
  if (v != NULL && open_product(v, contraction, p)) {
    *out = p;
    return HG_OK;
  }
  hg_release(&d->allocator, p);
  return hg_fail(HG_DEVICE, "cuBLASLt refuses a contraction that it took before");
}

void hg_cuda_product_close(cuda_device *d, cuda_product *product) {
  if (product == NULL) return;
  close_product(product);
  hg_release(&d->allocator, product);
}

hg_status hg_cuda_product_run_within(cuda_device *d, const cuda_product *p, const atlas_launch *launch, void *stream) {
  enum { SCRATCH = 3, BIAS = 4 };
  const float one = 1, zero = 0;
  uint8_t *at[3];
  uintptr_t bits = 0;
  for (int i = 0; i < 3; i++) {
    at[i] = launch->arguments[i].span.memory + p->first[i];
    bits |= (uintptr_t)at[i];
  }
  if (p->has_bias) {
    const uint8_t *bias = launch->arguments[BIAS].span.memory + p->first[3];
    bits |= (uintptr_t)bias;
    if (!set_bias(p, bias)) return hg_fail(HG_DEVICE, "cuBLASLt does not take the address of a bias");
  }
  const uint8_t *a = at[p->is_swapped ? 1 : 0], *b = at[p->is_swapped ? 0 : 1];
  int result = p->vendor->cublasLtMatmul(p->vendor->handle, p->description, &one, a, p->layout[0], b, p->layout[1],
                                         &zero, at[2], p->layout[2], at[2], p->layout[2],
                                         p->algorithm[bits % WHOLE_ALIGNMENT == 0],
                                         launch->arguments[SCRATCH].span.memory, p->workspace_bytes, stream);
  if (result == 0) return HG_OK;
  HG_TRY(hg_cuda_check_poison(d));
  return hg_fail(HG_DEVICE, "cuBLASLt could not multiply (status %d)", result);
}
