/* dlpack.h - the layout of DLPack 1.3, as its specification fixes it: the protocol by which libraries exchange
 * tensors. */
#ifndef HGPY_DLPACK_H
#define HGPY_DLPACK_H

#include <stdint.h>

enum { DL_MAJOR = 1, DL_MINOR = 3 };
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
  int64_t *strides; /* in elements; NULL: C order, of versions before 1.2 */
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

/* The content of a type's __dlpack_c_exchange_api__: exchange without Python calls. Each function returns 0, or -1 with
 * an error. */
typedef struct dl_exchange {
  struct {
    uint32_t major, minor;
    void *older;
  } header;
  int (*allocate)(dl_tensor *like, dl_managed_versioned **out, void *context,
                  void (*fail)(void *context, const char *kind, const char *message));
  int (*export_owned)(void *object, dl_managed_versioned **out);
  int (*import_owned)(dl_managed_versioned *tensor, void **object);
  int (*export_borrowed)(void *object, dl_tensor *out);
  int (*work_stream)(int32_t device_type, int32_t number, void **stream);
} dl_exchange;

#endif
