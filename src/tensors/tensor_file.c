/* tensor_file.c - files of tensors as a whole, their elements, and the scanner of their headers: NumPy's dictionary and
 * JSON, of which both have texts, numbers and lists of them. */
#include "tensors/tensor_file.h"

#include "base/files.h"
#include "base/os.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>

/* ---- files ------------------------------------------------------------------------------------------------------- */

HG_RARE hg_allocator hg_allocator_of(const hg_buffer *buffer) {
  hg_allocator allocator;
  if (buffer != NULL) return buffer->storage->executor->allocator;
  (void)hg_allocator_resolve(NULL, &allocator);
  return allocator;
}

HG_RARE hg_status hg_tensor_file_read(const hg_allocator *allocator, const char *path, uint8_t **bytes,
                                      size_t *byte_count) {
  hg_read_result result = hg_file_read(allocator, path, SIZE_MAX / 2, bytes, byte_count);
  if (result == HG_READ_OK) return HG_OK;
  if (result == HG_READ_NO_MEMORY) return hg_fail(HG_OUT_OF_MEMORY, "%s: there is no memory for the file", path);
  return hg_fail(HG_IO, "%s: cannot be read: there is no such file, it is no regular one, or it may not be read", path);
}

HG_RARE hg_status hg_tensor_file_write(const char *path, const uint8_t *bytes, size_t byte_count) {
  char temporary[4096];
  int length = snprintf(temporary, sizeof temporary, "%s.%llx.%llx", path, (unsigned long long)hg_process_id(),
                        (unsigned long long)hg_time_ns());
  if (length < (int)sizeof temporary && hg_file_write(temporary, path, bytes, byte_count)) return HG_OK;
  return hg_fail(HG_IO, "%s: cannot be written: its folder is not there, may not be written to, or is full", path);
}

/* ---- scanning ---------------------------------------------------------------------------------------------------- */

HG_RARE static void skip_spaces(tensor_scanner *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r' || *s->at == '\n')) s->at++;
}

HG_RARE int hg_scan_char(tensor_scanner *s, char wanted) {
  skip_spaces(s);
  if (s->at >= s->end || *s->at != (uint8_t)wanted) return 0;
  s->at++;
  return 1;
}

HG_RARE int hg_scan_number(tensor_scanner *s, uint64_t *number) {
  skip_spaces(s);
  const uint8_t *first = s->at;
  uint64_t sum = 0;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
    uint64_t digit = (uint64_t)(*s->at - '0');
    if (sum > (UINT64_MAX - digit) / 10) return 0;
    sum = sum * 10 + digit;
  }
  *number = sum;
  return s->at > first;
}

HG_RARE static int hex_digits(tensor_scanner *s, uint32_t *unit) {
  *unit = 0;
  for (int i = 0; i < 4; i++, s->at++) {
    if (s->at >= s->end) return 0;
    uint8_t c = *s->at | 0x20;
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return 0;
    *unit = *unit << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return 1;
}

/* The code point after "\u", as UTF-8, which is no longer than what it stands for. */
HG_RARE static int unescape(tensor_scanner *s, uint8_t **to) {
  uint32_t code, low;
  if (!hex_digits(s, &code) || code == 0 || code >> 10 == 0x37) return 0;
  if (code >> 10 == 0x36) {
    if (s->end - s->at < 2 || *s->at++ != '\\' || *s->at++ != 'u') return 0;
    if (!hex_digits(s, &low) || low >> 10 != 0x37) return 0;
    code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
  }
  int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
  *(*to)++ = (uint8_t)(heads[more] | code >> 6 * more);
  while (more-- > 0) *(*to)++ = (uint8_t)(0x80 | (code >> 6 * more & 0x3f));
  return 1;
}

HG_RARE int hg_scan_text(tensor_scanner *s, char quote, char **text) {
  static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  if (!hg_scan_char(s, quote)) return 0;
  uint8_t *to = (uint8_t *)(uintptr_t)s->at;
  *text = (char *)to;
  while (s->at < s->end && *s->at != (uint8_t)quote) {
    uint8_t c = *s->at++;
    if (c < 0x20) return 0;
    if (c != '\\') {
      *to++ = c;
      continue;
    }
    if (s->at >= s->end) return 0;
    c = *s->at++;
    const char *found = c != 0 ? strchr(escapes, c) : NULL;
    if (found != NULL) *to++ = (uint8_t)meant[found - escapes];
    else if (c != 'u' || !unescape(s, &to)) return 0;
  }
  if (s->at >= s->end) return 0;
  s->at++; /* the quote, in whose place, or before it, the NUL stands */
  *to = 0;
  return 1;
}

HG_RARE hg_status hg_scan_shape(tensor_scanner *s, char open, char close, hg_tensor *tensor) {
  uint64_t shape[HG_MAX_RANK];
  uint32_t rank = 0;
  if (!hg_scan_char(s, open)) return hg_fail(HG_FORMAT, "%s: its header gives no shape", s->path);
  while (!hg_scan_char(s, close)) {
    if (rank == HG_MAX_RANK)
      return hg_fail(HG_UNSUPPORTED, "%s: has more than %d dimensions, the most of a tensor", s->path, HG_MAX_RANK);
    if (!hg_scan_number(s, &shape[rank]))
      return hg_fail(HG_FORMAT, "%s: a size of its shape is no number below 2^64", s->path);
    rank++;
    if (hg_scan_char(s, ',')) continue;
    if (hg_scan_char(s, close)) break;
    return hg_fail(HG_FORMAT, "%s: its shape does not end", s->path);
  }
  *tensor = hg_tensor_of(NULL, (atlas_type)tensor->type, rank, shape);
  return HG_OK;
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

HG_RARE hg_status hg_tensor_bytes(const char *path, const hg_tensor *tensor, uint64_t *byte_count) {
  uint64_t count = hg_tensor_count(tensor), size = atlas_type_bits((atlas_type)tensor->type) / 8;
  if (count > UINT64_C(1) << 40) return hg_fail(HG_FORMAT, "%s: claims a shape too large for any memory", path);
  *byte_count = count * size;
  return HG_OK;
}

/* Advances the index of an element by one in C order, and where it lies. */
HG_RARE static void next_element(const hg_tensor *t, uint64_t *index, int64_t *at) {
  for (uint32_t d = t->rank; d-- > 0;) {
    *at += t->stride[d];
    if (++index[d] < t->shape[d]) return;
    *at -= (int64_t)t->shape[d] * t->stride[d];
    index[d] = 0;
  }
}

HG_RARE hg_status hg_tensor_gather(const hg_tensor *tensor, uint8_t *to) {
  uint64_t size = atlas_type_bits((atlas_type)tensor->type) / 8, count = hg_tensor_count(tensor), extent;
  int64_t lowest;
  HG_TRY(hg_tensor_extent(tensor, &lowest, &extent));
  if (count == 0) return HG_OK;
  if (tensor->buffer == NULL || tensor->offset + lowest < 0)
    return hg_fail(HG_BINDING, tensor->buffer == NULL ? "a tensor to be saved has no buffer"
                                                      : "a tensor to be saved begins before its buffer");
  uint64_t first = (uint64_t)(tensor->offset + lowest) * size;
  hg_tensor dense = hg_tensor_of(tensor->buffer, (atlas_type)tensor->type, tensor->rank, tensor->shape);
  if (memcmp(dense.stride, tensor->stride, tensor->rank * sizeof *dense.stride) == 0)
    return hg_buffer_read(tensor->buffer, first, to, count * size);
  hg_allocator allocator = hg_allocator_of(tensor->buffer);
  uint8_t *from = hg_allocate_unset(&allocator, extent, size);
  if (from == NULL) return hg_fail_memory("the elements of a tensor", extent * size);
  hg_status status = hg_buffer_read(tensor->buffer, first, from, extent * size);
  uint64_t index[HG_MAX_RANK] = {0};
  int64_t at = -lowest;
  for (uint64_t i = 0; i < count && status == HG_OK; i++) {
    memcpy(to + i * size, from + (uint64_t)at * size, size);
    next_element(tensor, index, &at);
  }
  hg_release(&allocator, from);
  return status;
}

HG_RARE hg_status hg_tensor_fill(hg_executor *executor, const tensor_entry *entry, hg_tensor *out) {
  hg_tensor tensor = entry->tensor;
  HG_TRY(hg_buffer_create(executor, NULL, entry->byte_count, &tensor.buffer));
  hg_status status = hg_buffer_write(tensor.buffer, 0, entry->data, entry->byte_count);
  if (status != HG_OK) hg_buffer_release(tensor.buffer);
  else *out = tensor;
  return status;
}
