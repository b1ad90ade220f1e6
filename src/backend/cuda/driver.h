/* driver.h - libcuda without its header: the functions of symbols.def found at run time, the driver's numbers that the
 * backend uses, and what its errors mean. Nothing of CUDA is needed to build, and only the driver to run. */
#ifndef HG_CUDA_DRIVER_H
#define HG_CUDA_DRIVER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long cuda_address; /* CUdeviceptr */

/* The driver's calling convention; the default everywhere but on 32-bit Windows. */
#if defined(_WIN32) && !defined(_WIN64)
#  define CUDA_CALL __stdcall
#else
#  define CUDA_CALL
#endif

/* CUmemPoolProps. */
typedef struct cuda_pool_properties {
  int allocation_type; /* 1: pinned, the only kind */
  int handle_types;    /* 0: not shared with other processes */
  int location_type;   /* 1: a device */
  int location_id;
  void *security_attributes;
  size_t maximum_bytes; /* 0: no limit */
  unsigned short usage;
  unsigned char reserved[54];
} cuda_pool_properties;

/* CUmemAccessDesc. */
typedef struct cuda_access {
  int location_type; /* 1: a device */
  int location_id;
  int flags;         /* 3: reads and writes */
} cuda_access;

enum {
  CUDA_MIN_DRIVER = 11000, /* in the units of cuDriverGetVersion: 1000 * major + 10 * minor */
  CUDA_MIN_CAPABILITY = 75 /* 10 * major + minor of the GPU */
};

/* CUresult: the codes that the backend tests for. */
enum {
  CUDA_OK = 0,
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_NO_DEVICE = 100,
  CUDA_NOT_READY = 600,
  CUDA_NOT_SUPPORTED = 801,
  CUDA_CAPTURE_IMPLICIT = 906 /* of the default stream, while one that waits for it is captured */
};

/* CUdevice_attribute. */
enum {
  CUDA_DEVICE_MULTIPROCESSORS = 16,
  CUDA_DEVICE_COMPUTE_MODE = 20,
  CUDA_DEVICE_CACHE_BYTES = 38,  /* of the last-level cache */
  CUDA_DEVICE_CAPABILITY_MAJOR = 75,
  CUDA_DEVICE_CAPABILITY_MINOR = 76,
  CUDA_DEVICE_MULTIPROCESSOR_SHARED_BYTES = 81, /* of a multiprocessor */
  CUDA_DEVICE_SHARED_BYTES = 97, /* of a block that requests them */
  CUDA_DEVICE_MEMORY_POOLS = 115
};
/* CUfunction_attribute. */
enum {
  CUDA_FUNCTION_SHARED_BYTES = 1,
  CUDA_FUNCTION_LOCAL_BYTES = 3,
  CUDA_FUNCTION_REGISTERS = 4,
  CUDA_FUNCTION_DYNAMIC_BYTES = 8
};
enum { CUDA_COMPUTE_PROHIBITED = 2 }; /* CU_COMPUTEMODE_PROHIBITED */

enum {
  CUDA_STREAM_NON_BLOCKING = 1,
  CUDA_CAPTURE_RELAXED = 2,          /* CUstreamCaptureMode: calls of other threads are allowed */
  CUDA_EVENT_DISABLE_TIMING = 2,
  CUDA_HOST_PORTABLE = 1,
  CUDA_HOST_MAPPED = 2,
  CUDA_POOL_RELEASE_THRESHOLD = 4,   /* CUmemPool_attribute */
  CUDA_POOL_RESERVED_BYTES = 5,
  CUDA_POINTER_CONTEXT = 1,          /* CUpointer_attribute */
  CUDA_POINTER_MEMORY_TYPE = 2,
  CUDA_POINTER_DEVICE = 9,
  CUDA_POINTER_RANGE_START = 11,
  CUDA_POINTER_RANGE_BYTES = 12,
  CUDA_MEMORY_HOST = 1,              /* CUmemorytype: pinned, or registered */
  CUDA_MEMORY_DEVICE = 2,
  CUDA_JIT_INPUT_PTX = 1,            /* CUjitInputType */
  CUDA_JIT_ERROR_LOG = 5,            /* CUjit_option */
  CUDA_JIT_ERROR_LOG_BYTES = 6,
  CUDA_JIT_OPTIMIZATION_LEVEL = 7,   /* 0 to 4; 4 is the default */
  CUDA_JIT_LINE_INFO = 13
};

typedef struct cuda_driver {
  void *library;
  int version; /* of the driver; 0: not loaded */
#define SYMBOL(name, parameters) int(CUDA_CALL *name) parameters;
#define SYMBOL_OPTIONAL SYMBOL
#include "backend/cuda/symbols.def"
#undef SYMBOL_OPTIONAL
#undef SYMBOL
} cuda_driver;

/* Loads libcuda, initialises it and checks its version; touches no GPU. HG_UNSUPPORTED with a sentence, or the status
 * of the driver's error. */
hg_status hg_cuda_driver_load(cuda_driver *driver);

/* The capability that texts are written for: the first drivers for 9.0 do not accept the PTX that is written for it. */
static inline uint32_t hg_cuda_text_capability(const cuda_driver *driver, int capability) {
  return capability >= 90 && driver->version < 12000 ? 80 : (uint32_t)capability;
}

typedef struct cuda_error {
  int number;
  const char *name;     /* "CUDA_ERROR_OUT_OF_MEMORY"; "unknown error" */
  const char *sentence;
  hg_status status;
  int poisons; /* 1: all later calls on the context will fail */
} cuda_error;

cuda_error hg_cuda_error_of(int number);

/* HG_OK for CUDA_OK; otherwise the error's status, with "`what`: sentence (name, number)". */
hg_status hg_cuda_driver_check(int result, const char *what);

#endif
