/* abi.h - structs of callers compiled against another version of the headers: read and written by the size they have
 * there. base.h has the rules, version1.def the structs. */
#ifndef HG_BASE_ABI_H
#define HG_BASE_ABI_H

#include "hologram/circuit.h"
#include "hologram/hologram.h"
#include "hologram/ops.h"

/* HG_V1_<type>: the bytes of version 1, which a size of 0 stands for. */
enum {
#define STRUCT(type, last) HG_V1_##type = offsetof(type, last) + sizeof(((type *)NULL)->last),
#define ELEMENT(type, last) STRUCT(type, last)
#include "base/version1.def"
#undef STRUCT
#undef ELEMENT
};

/* Copies a caller's struct into the library's own, which may be larger (the rest becomes zero) or smaller (the caller's
 * rest must be zero), and sets `size` to the library's. A NULL counts as a struct of zeros. HG_INVALID_ARGUMENT with
 * what is wrong.
 *
 *   hg_buffer_desc own;
 *   HG_TRY(HG_READ(hg_buffer_desc, &own, desc)); */
#define HG_READ(type, own, callers) hg_read_struct(#type, own, sizeof(type), HG_V1_##type, callers)
hg_status hg_read_struct(const char *name, void *own, size_t own_size, size_t version_1, const void *callers);

/* 1 if a caller's struct has the library's layout and need not be copied: for functions that must be fast. */
#define HG_IS_OWN(type, callers) \
  ((callers)->size == sizeof(type) || ((callers)->size == 0 && HG_V1_##type == sizeof(type)))

/* Copies a result to the caller's struct, as much as fits, and zeroes fields that the library does not know. `size`
 * stays what the caller wrote. HG_INVALID_ARGUMENT, with nothing written, for an impossible size. */
#define HG_WRITE(type, callers, result) hg_write_struct(#type, callers, HG_V1_##type, result, sizeof(type))
hg_status hg_write_struct(const char *name, void *callers, size_t version_1, const void *result, size_t result_size);

/* HG_INVALID_ARGUMENT where HG_WRITE would fail, for a check before anything is done. NULL: HG_OK. Each launch checks
 * this and HG_CHECK_STRIDE: they call a function only where the caller is of another version. */
#define HG_CHECK_RESULT(type, callers) \
  ((callers) == NULL || HG_IS_OWN(type, callers) ? HG_OK : hg_check_result(#type, HG_V1_##type, callers))
hg_status hg_check_result(const char *name, size_t version_1, const void *callers);

/* The bytes from one struct of an array to the next, as a field of the caller's descriptor gives them. */
#define HG_STRIDE(type, given) ((given) != 0 ? (given) : (size_t)HG_V1_##type)
/* HG_INVALID_ARGUMENT for an impossible stride. */
#define HG_CHECK_STRIDE(type, field, given) \
  ((given) == 0 || (given) == sizeof(type) ? HG_OK : hg_check_stride(field, given, HG_V1_##type))
hg_status hg_check_stride(const char *field, size_t given, size_t version_1);

/* HG_READ for an element of an array. */
#define HG_READ_ELEMENT(type, own, array, stride, index) hg_read_element(#type, own, sizeof(type), array, stride, index)
hg_status hg_read_element(const char *name, void *own, size_t own_size, const void *array, size_t stride,
                          size_t index);

#endif
