/* npy.h - arrays in NumPy's .npy format (versions 1.0, 2.0, 3.0): little-endian, C order, the types of the Atlas ISA.
 */
#ifndef HG_CLI_NPY_H
#define HG_CLI_NPY_H

#include "hologram/atlas.h"

#include <stddef.h>
#include <stdint.h>

enum { NPY_MAX_DIMENSIONS = 32 }; /* NumPy 1's own limit */

typedef struct npy_array {
  char dtype[4];          /* "<f4", "|u1" */
  uint32_t item_bytes;
  uint32_t dimension_count;
  uint64_t shape[NPY_MAX_DIMENSIONS];
  uint64_t count;         /* of elements */
  const uint8_t *data;    /* count * item_bytes bytes, inside `file` */
  uint8_t *file;          /* free() it, see npy_release */
} npy_array;

/* 0, or -1 with the reason (which does not name the file). Nothing in the file is trusted. */
int npy_read(const char *path, npy_array *out, char *why, size_t why_bytes);
void npy_release(npy_array *array);

/* Writes a C-order array, version 1.0. */
int npy_write(const char *path, const char *dtype, uint32_t dimension_count, const uint64_t *shape, const void *data,
              uint64_t byte_count, char *why, size_t why_bytes);

/* The dtype that holds a type's elements: its own, or unsigned integers of its width where NumPy has none (bf16,
 * f8e4m3, f8e5m2). */
const char *npy_dtype_of(atlas_type type);

#endif
