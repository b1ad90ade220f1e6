/* tensor_file.h - what the formats of tensors' files share: the file as a whole, a scanner of the little language that
 * their headers are written in, elements to and from a buffer. */
#ifndef HG_TENSORS_TENSOR_FILE_H
#define HG_TENSORS_TENSOR_FILE_H

#include "base/error.h"
#include "base/files.h"
#include "hologram/ops.h"

/* A header's text. */
typedef struct tensor_scanner {
  const char *path;      /* for sentences */
  const uint8_t *at, *end;
} tensor_scanner;

/* A tensor that a file describes: where its elements lie. */
typedef struct tensor_entry {
  hg_tensor tensor; /* without a buffer */
  uint64_t first, byte_count; /* in the file */
  char *name; /* of safetensors; in the header's bytes */
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

/* How long a file's header is, which begins with these bytes; 0: it is none. */
typedef uint64_t (*tensor_header)(const uint8_t *bytes, size_t byte_count);
enum { TENSOR_PREFIX_BYTES = 12 }; /* more than one looks at */

/* Reads the header of a .npy file of `file_bytes`; `bytes` are its first `byte_count` bytes, of which those of the
 * header are modified. */
hg_status hg_npy_read(const char *path, uint8_t *bytes, size_t byte_count, uint64_t file_bytes, tensor_entry *entry);
/* The header of a .safetensors file: tensors in the order of the file; keys and texts of its metadata in turn, stored
 * in the header's bytes. */
typedef struct tensor_list {
  tensor_entry *entries;
  char **texts;
  size_t count, text_count; /* of the latter: pairs */
} tensor_list;
/* *list: to be released; empty after a failure. */
hg_status hg_safetensors_read(const hg_allocator *allocator, const char *path, uint8_t *bytes, size_t byte_count,
                              uint64_t file_bytes, tensor_list *list);
void hg_tensor_list_release(const hg_allocator *allocator, tensor_list *list);

/* The allocator of the buffer's executor; NULL: the default one. */
hg_allocator hg_allocator_of(const hg_buffer *buffer);

/* A file in parts, so that memory holds its elements once. */
typedef struct tensor_file {
  const hg_allocator *allocator;
  const char *path;
  hg_file file;
  uint64_t at;         /* bytes that have been read */
  char temporary[HG_PATH_BYTES]; /* of one that is written */
} tensor_file;

/* Opens a file and reads its header: *bytes, to be released. Close the file in any case. */
hg_status hg_tensor_file_open(tensor_file *f, const hg_allocator *allocator, const char *path, tensor_header header,
                              uint8_t **bytes, size_t *byte_count);
void hg_tensor_file_close(const tensor_file *f);
/* A buffer with the entry's elements, which come next in the file: *out. */
hg_status hg_tensor_file_fill(tensor_file *f, hg_executor *executor, const tensor_entry *entry, hg_tensor *out);

/* A new file, which is there as soon as hg_tensor_file_finish has returned HG_OK; `status`: of what was put. */
hg_status hg_tensor_file_create(tensor_file *f, const hg_allocator *allocator, const char *path);
hg_status hg_tensor_file_put(const tensor_file *f, const void *bytes, size_t byte_count);
hg_status hg_tensor_file_put_elements(const tensor_file *f, const hg_tensor *tensor); /* in C order */
hg_status hg_tensor_file_finish(const tensor_file *f, hg_status status);

#endif
