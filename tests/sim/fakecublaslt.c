/* fakecublaslt.c - a double of cuBLASLt for tests of fast contractions: plain sums in f64, so other bits than the exact
 * kernel's. It runs on the double of libcuda, in the order of its streams. What the library was told wrongly is a
 * status, and so a refusal.
 *
 *   FAKECUBLASLT  "none": there is no library (it does not start); "refuse": it has no algorithm for anything;
 *                 "plain": none with an epilogue */
#include "fakecuda.h"

#include "backend/cuda/vendor_library.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOL(name, parameters) __attribute__((visibility("default"))) int name parameters;
#include "backend/cuda/vendor.def"
#undef SYMBOL

enum { OK, NOT_INITIALIZED = 1, INVALID = 7, NOT_SUPPORTED = 15, ALGORITHM = 42 };

typedef struct description {
  int compute, transpose[2];
  uint32_t epilogue;
  uint64_t bias; /* address */
} description;

typedef struct layout {
  int type, batch;
  uint64_t rows, columns;
  int64_t leading, batch_stride;
} layout;

typedef struct preference {
  uint64_t workspace;
  uint32_t alignment[4];
} preference;

typedef struct product {
  description description;
  layout layout[3];
  uint64_t at[3];
} product;

static int live;

__attribute__((visibility("default"))) int fakecublaslt_live(void);
int fakecublaslt_live(void) { return live; }

static int is_set(const char *value) {
  const char *own = getenv("FAKECUBLASLT");
  return own != NULL && strcmp(own, value) == 0;
}

static int make(void **out, const void *bytes, size_t byte_count) {
  *out = malloc(byte_count);
  if (*out == NULL) abort();
  memcpy(*out, bytes, byte_count);
  live++;
  return OK;
}

static int drop(void *made) {
  free(made);
  live--;
  return OK;
}

int cublasLtCreate(void **handle) { return is_set("none") ? NOT_INITIALIZED : make(handle, "", 1); }
int cublasLtDestroy(void *handle) { return drop(handle); }
int cublasLtMatmulDescDestroy(void *made) { return drop(made); }
int cublasLtMatrixLayoutDestroy(void *made) { return drop(made); }
int cublasLtMatmulPreferenceDestroy(void *made) { return drop(made); }

int cublasLtMatmulDescCreate(void **out, int compute_type, int scale_type) {
  if (scale_type != CUBLAS_R_32F) return INVALID;
  return make(out, &(description){.compute = compute_type}, sizeof(description));
}

int cublasLtMatmulDescSetAttribute(void *made, int attribute, const void *value, size_t bytes) {
  description *own = made;
  int i = attribute - CUBLASLT_DESC_TRANSPOSE_A;
  if (attribute == CUBLASLT_DESC_EPILOGUE && bytes == sizeof own->epilogue) memcpy(&own->epilogue, value, bytes);
  else if (attribute == CUBLASLT_DESC_BIAS_POINTER && bytes == sizeof own->bias) memcpy(&own->bias, value, bytes);
  else if (i >= 0 && i <= 1 && bytes == sizeof(int32_t)) memcpy(&own->transpose[i], value, bytes);
  else return INVALID;
  return OK;
}

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  layout own = {.type = type, .batch = 1, .rows = rows, .columns = columns, .leading = leading};
  return leading < (int64_t)rows ? INVALID : make(out, &own, sizeof own);
}

int cublasLtMatrixLayoutSetAttribute(void *made, int attribute, const void *value, size_t bytes) {
  layout *own = made;
  if (attribute == CUBLASLT_LAYOUT_BATCH_COUNT && bytes == sizeof own->batch) memcpy(&own->batch, value, bytes);
  else if (attribute == CUBLASLT_LAYOUT_BATCH_STRIDE && bytes == sizeof own->batch_stride)
    memcpy(&own->batch_stride, value, bytes);
  else return INVALID;
  return OK;
}

int cublasLtMatmulPreferenceCreate(void **out) { return make(out, &(preference){.workspace = 0}, sizeof(preference)); }

int cublasLtMatmulPreferenceSetAttribute(void *made, int attribute, const void *value, size_t bytes) {
  preference *own = made;
  int i = attribute - CUBLASLT_PREFERENCE_ALIGNMENT_A;
  if (attribute == CUBLASLT_PREFERENCE_WORKSPACE_BYTES && bytes == sizeof own->workspace)
    memcpy(&own->workspace, value, bytes);
  else if (attribute == CUBLASLT_PREFERENCE_REDUCTIONS && bytes == sizeof(uint32_t))
    return *(const uint32_t *)value == CUBLASLT_REDUCTION_IN_F32 ? OK : INVALID;
  else if (i >= 0 && i < 4 && bytes == sizeof own->alignment[i]) memcpy(&own->alignment[i], value, bytes);
  else return INVALID;
  return OK;
}

/* The matrices fit each other. */
static int fits(const description *own, const layout *a, const layout *b, const layout *c) {
  uint64_t m = own->transpose[0] ? a->columns : a->rows, k = own->transpose[0] ? a->rows : a->columns;
  uint64_t n = own->transpose[1] ? b->rows : b->columns;
  int is_f32 = a->type == CUBLAS_R_32F;
  return c->rows == m && c->columns == n && (own->transpose[1] ? b->columns : b->rows) == k && a->type == b->type &&
         (c->type == a->type || c->type == CUBLAS_R_32F) && a->batch == b->batch && a->batch == c->batch &&
         (own->compute == CUBLAS_COMPUTE_32F || (is_f32 && own->compute == CUBLAS_COMPUTE_32F_FAST_TF32));
}

/* Any sum of a bias and one of the two functions; a bias has an address. */
static int is_epilogue(const description *own) {
  uint32_t function = own->epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_BIAS;
  if ((own->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 && own->bias == 0) return 0;
  return function == 0 || function == CUBLASLT_EPILOGUE_RELU || function == CUBLASLT_EPILOGUE_GELU;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *made, void *a, void *b, void *c, void *d, void *wanted, int most,
                                   cuda_vendor_choice *choices, int *count) {
  *count = 0;
  if (handle == NULL || c != d || most < 1 || !fits(made, a, b, c)) return INVALID;
  if (!is_epilogue(made)) return INVALID;
  if (is_set("refuse") || (is_set("plain") && ((description *)made)->epilogue != 0)) return NOT_SUPPORTED;
  choices[0] = (cuda_vendor_choice){.algorithm = {ALGORITHM, ((preference *)wanted)->alignment[0]}};
  *count = 1;
  return OK;
}

/* ---- the product ------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(int type) { return type == CUBLAS_R_32F ? 4 : 2; }

static double widened(const uint8_t *at, int type) {
  uint32_t bits = 0;
  float value;
  memcpy(&bits, at, bytes_of(type));
  if (type == CUBLAS_R_16F) {
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 0 ? fraction * 0x1p-24 : (1024 + fraction) * 0x1p-25 * (double)(1u << exponent);
    return bits >> 15 ? -size : size;
  }
  if (type == CUBLAS_R_16BF) bits <<= 16;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Good enough for tests: bf16 by cutting off, f16 of normal numbers. */
static void put(uint8_t *at, int type, double sum) {
  float value = (float)sum;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (type == CUBLAS_R_16F) {
    int exponent = (int)(bits >> 23 & 255) - 112;
    bits = exponent <= 0 ? bits >> 16 & 0x8000 : (bits >> 16 & 0x8000) | (uint32_t)exponent << 10 | (bits >> 13 & 1023);
  }
  if (type == CUBLAS_R_16BF) bits >>= 16;
  memcpy(at, &bits, bytes_of(type));
}

static void *(*reach)(uint64_t address, size_t byte_count);

static uint8_t *at(const product *p, int which, int batch, uint64_t row, uint64_t column) {
  const layout *own = &p->layout[which];
  int64_t index = batch * own->batch_stride + (int64_t)column * own->leading + (int64_t)row;
  return reach(p->at[which] + (uint64_t)index * bytes_of(own->type), bytes_of(own->type));
}

/* As TF32 has it: cut off to 11 bits, where the library rounds. */
static double factor(const product *p, const uint8_t *at, int type) {
  double value = widened(at, type);
  if (p->description.compute != CUBLAS_COMPUTE_32F_FAST_TF32) return value;
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  bits &= ~UINT32_C(0x1fff);
  memcpy(&narrow, &bits, sizeof narrow);
  return narrow;
}

/* The bias of a row, of the result's type, then the function. */
static double finished(const product *p, uint64_t row, double sum) {
  uint32_t epilogue = p->description.epilogue;
  int type = p->layout[2].type;
  if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
    const uint8_t *bias = reach(p->description.bias + row * bytes_of(type), bytes_of(type));
    if (bias == NULL) return 0;
    sum += widened(bias, type);
  }
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return sum > 0 ? sum : 0;
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) == 0) return sum;
  return 0.5 * sum * (1 + tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
}

static void multiply(const void *parameters) {
  product p;
  memcpy(&p, parameters, sizeof p);
  uint64_t length = p.description.transpose[0] ? p.layout[0].rows : p.layout[0].columns;
  for (int batch = 0; batch < p.layout[2].batch; batch++)
    for (uint64_t n = 0; n < p.layout[2].columns; n++)
      for (uint64_t m = 0; m < p.layout[2].rows; m++) {
        double sum = 0;
        for (uint64_t k = 0; k < length; k++) {
          const uint8_t *a = p.description.transpose[0] ? at(&p, 0, batch, k, m) : at(&p, 0, batch, m, k);
          const uint8_t *b = p.description.transpose[1] ? at(&p, 1, batch, n, k) : at(&p, 1, batch, k, n);
          if (a == NULL || b == NULL) return;
          sum += factor(&p, a, p.layout[0].type) * factor(&p, b, p.layout[1].type);
        }
        uint8_t *c = at(&p, 2, batch, m, n);
        if (c != NULL) put(c, p.layout[2].type, finished(&p, m, sum));
      }
}

static void find(void *library, const char *name, void *function) {
  void *address = library != NULL ? dlsym(library, name) : NULL;
  memcpy(function, &address, sizeof address);
}

int cublasLtMatmul(void *handle, void *made, const void *alpha, const void *a, void *a_layout, const void *b,
                   void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                   const uint64_t *algorithm, void *workspace, size_t workspace_bytes, void *stream) {
  int (*give)(void *, void (*)(const void *), const void *, size_t) = NULL;
  uint64_t alignment = algorithm[1];
  if (handle == NULL || *(const float *)alpha != 1 || *(const float *)beta != 0 || c != d || c_layout != d_layout ||
      algorithm[0] != ALGORITHM || workspace == NULL || workspace_bytes == 0)
    return INVALID;
  if ((uintptr_t)a % alignment != 0 || (uintptr_t)b % alignment != 0) return INVALID;
  if (((const description *)made)->epilogue != 0 && !is_epilogue(made)) return INVALID;
  product p = {.description = *(const description *)made,
               .layout = {*(const layout *)a_layout, *(const layout *)b_layout, *(const layout *)c_layout},
               .at = {(uintptr_t)a, (uintptr_t)b, (uintptr_t)c}};
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  find(driver, "fakecuda_give_call", &give);
  find(driver, "fakecuda_reach", &reach);
  return give != NULL && reach != NULL && give(stream, multiply, &p, sizeof p) == 0 ? OK : INVALID;
}
