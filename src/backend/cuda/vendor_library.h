/* vendor_library.h - cuBLASLt's functions, constants and structs, as its ABI has them. */
#ifndef HG_CUDA_VENDOR_LIBRARY_H
#define HG_CUDA_VENDOR_LIBRARY_H

#include "backend/cuda/driver.h"

#include <stddef.h>
#include <stdint.h>

/* cublasLtMatmulHeuristicResult_t. */
typedef struct cuda_vendor_choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
} cuda_vendor_choice;

enum {
  CUBLAS_R_32F = 0, /* cudaDataType_t */
  CUBLAS_R_16F = 2,
  CUBLAS_R_16BF = 14,
  CUBLAS_COMPUTE_32F = 68, /* cublasComputeType_t */
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLASLT_DESC_TRANSPOSE_A = 3, /* cublasLtMatmulDescAttributes_t: int32_t, 1 if it is */
  CUBLASLT_DESC_TRANSPOSE_B = 4,
  CUBLASLT_DESC_EPILOGUE = 7,     /* uint32_t */
  CUBLASLT_DESC_BIAS_POINTER = 8, /* const void *: of d's type, as many elements as d has rows */
  CUBLASLT_EPILOGUE_RELU = 2,     /* cublasLtEpilogue_t: 1, none, or the sum of */
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_GELU = 32,    /* its tanh form */
  CUBLASLT_LAYOUT_BATCH_COUNT = 5,  /* cublasLtMatrixLayoutAttribute_t: int32_t */
  CUBLASLT_LAYOUT_BATCH_STRIDE = 6, /* int64_t, elements */
  CUBLASLT_PREFERENCE_WORKSPACE_BYTES = 1, /* cublasLtMatmulPreferenceAttributes_t: uint64_t */
  CUBLASLT_PREFERENCE_REDUCTIONS = 3,      /* uint32_t: the allowed ways to combine parts of k */
  CUBLASLT_REDUCTION_IN_F32 = 2,           /* cublasLtReductionScheme_t: or none; others round to d's type in between */
  CUBLASLT_PREFERENCE_ALIGNMENT_A = 5      /* uint32_t, bytes; b's, c's and d's follow */
};

typedef struct cuda_vendor {
  void *library;
#define SYMBOL(name, parameters) int(CUDA_CALL *name) parameters;
#include "backend/cuda/vendor.def"
#undef SYMBOL
  void *handle;
} cuda_vendor;

#endif
