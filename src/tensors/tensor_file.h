/* tensor_file.h - what the formats of tensors' files share: the file as a whole, a scanner of the little language that
 * their headers are written in, elements to and from a buffer. */
#ifndef HG_TENSORS_TENSOR_FILE_H
#define HG_TENSORS_TENSOR_FILE_H

#include "base/error.h"
#include "base/memory.h"
#include "hologram/ops.h"

/* A header's text. */
typedef struct tensor_scanner {
  const char *path;      /* for sentences */
  const uint8_t *at, *end;
} tensor_scanner;

/* A tensor that a file describes: where its elements lie. */
typedef struct tensor_entry {
  hg_tensor tensor; /* without a buffer */
  const uint8_t *data;
  uint64_t byte_count;
  char *name; /* of safetensors; in the file's bytes */
} tensor_entry;

/* 1 if this comes next, after spaces. */
int hg_scan_char(tensor_scanner *s, char wanted);
/* A text in quotes of this kind, decoded in place and ended by a NUL: *text; 0: there is none. */
int hg_scan_text(tensor_scanner *s, char quote, char **text);
int hg_scan_number(tensor_scanner *s, uint64_t *number);
/* (1, 2) or [1, 2] as the tensor's rank and shape, in C order. */
hg_status hg_scan_shape(tensor_scanner *s, char open, char close, hg_tensor *tensor);

/* The bytes that a tensor's elements take; HG_FORMAT where no memory can hold them. */
hg_status hg_tensor_bytes(const char *path, const hg_tensor *tensor, uint64_t *byte_count);

/* What a file's bytes say. They are changed. */
hg_status hg_npy_read(const char *path, uint8_t *bytes, size_t byte_count, tensor_entry *entry);
/* *entries: hg_release it. */
hg_status hg_safetensors_read(const hg_allocator *allocator, const char *path, uint8_t *bytes, size_t byte_count,
                              tensor_entry **entries, size_t *count);

/* Of the buffer's executor; NULL: the plain one. */
hg_allocator hg_allocator_of(const hg_buffer *buffer);
/* Elements in C order, to host memory. */
hg_status hg_tensor_gather(const hg_tensor *tensor, uint8_t *to);
/* A buffer with the entry's elements: *out. */
hg_status hg_tensor_fill(hg_executor *executor, const tensor_entry *entry, hg_tensor *out);
hg_status hg_tensor_file_read(const hg_allocator *allocator, const char *path, uint8_t **bytes, size_t *byte_count);
hg_status hg_tensor_file_write(const char *path, const uint8_t *bytes, size_t byte_count);

#endif
