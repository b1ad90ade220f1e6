/* dlpack.h - the layout of DLPack 1.x, as its specification fixes it: what libraries hand each other tensors by. */
#ifndef HGPY_DLPACK_H
#define HGPY_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_METAL = 8, DL_CUDA_MANAGED = 13 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6, DL_FLOAT8_E4M3FN = 10, DL_FLOAT8_E5M2 = 12 };
enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };

typedef struct dl_device {
  int32_t type, number;
} dl_device;

typedef struct dl_tensor {
  void *data;
  dl_device device;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: C order */
  uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
  dl_tensor tensor;
  void *context;
  void (*release)(struct dl_managed *self);
} dl_managed;

typedef struct dl_managed_versioned {
  uint32_t major, minor;
  void *context;
  void (*release)(struct dl_managed_versioned *self);
  uint64_t flags;
  dl_tensor tensor;
} dl_managed_versioned;

#endif
