/* tensor_file.c - files of tensors as a whole, their elements, and the scanner of their headers: NumPy's dictionary and
 * JSON, of which both have texts, numbers and lists of them. */
#include "tensors/tensor_file.h"

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

/* ---- reading ----------------------------------------------------------------------------------------------------- */

enum { PART_BYTES = 1 << 20 };

HG_RARE static hg_status next(tensor_file *f, uint8_t *bytes, size_t byte_count) {
  if (!hg_file_next(&f->file, bytes, byte_count))
    return hg_fail(HG_IO, "%s: cannot be read to its end, or became shorter meanwhile", f->path);
  f->at += byte_count;
  return HG_OK;
}

HG_RARE static size_t lesser(uint64_t a, uint64_t b) { return (size_t)(a < b ? a : b); }

HG_RARE hg_status hg_tensor_file_open(tensor_file *f, const hg_allocator *allocator, const char *path,
                                      tensor_header header, uint8_t **bytes, size_t *byte_count) {
  uint8_t prefix[TENSOR_PREFIX_BYTES];
  *f = (tensor_file){.allocator = allocator, .path = path, .file.handle = -1};
  *bytes = NULL;
  if (hg_file_open(path, &f->file) != HG_READ_OK) {
    f->file.handle = -1;
    return hg_fail(HG_IO, "%s: cannot be read: there is no such file, it is no regular one, or it may not be read",
                   path);
  }
  size_t known = lesser(sizeof prefix, f->file.byte_count);
  HG_TRY(next(f, prefix, known));
  uint64_t wanted = header(prefix, known);
  size_t count = lesser(wanted > known ? wanted : known, f->file.byte_count);
  *bytes = hg_allocate_unset(allocator, count > 0 ? count : 1, 1);
  if (*bytes == NULL) return hg_fail_memory("the header of a file", count);
  *byte_count = count;
  memcpy(*bytes, prefix, known);
  return next(f, *bytes + known, count - known);
}

HG_RARE void hg_tensor_file_close(const tensor_file *f) {
  if (f->file.handle != -1) hg_file_close(&f->file);
}

HG_RARE static hg_status fill(tensor_file *f, const tensor_entry *entry, hg_buffer *buffer) {
  size_t most = lesser(entry->byte_count, PART_BYTES);
  if (f->at != entry->first) return hg_fail(HG_FORMAT, "%s: its header ends where elements are", f->path);
  uint8_t *part = hg_allocate_unset(f->allocator, most > 0 ? most : 1, 1);
  hg_status status = part != NULL ? HG_OK : hg_fail_memory("a part of a file", most);
  for (uint64_t at = 0; at < entry->byte_count && status == HG_OK; at += most) {
    size_t count = lesser(entry->byte_count - at, most);
    status = next(f, part, count);
    if (status == HG_OK) status = hg_buffer_write(buffer, at, part, count);
  }
  hg_release(f->allocator, part);
  return status;
}

HG_RARE hg_status hg_tensor_file_fill(tensor_file *f, hg_executor *executor, const tensor_entry *entry,
                                      hg_tensor *out) {
  hg_tensor tensor = entry->tensor;
  HG_TRY(hg_buffer_create(executor, NULL, entry->byte_count, &tensor.buffer));
  hg_status status = fill(f, entry, tensor.buffer);
  if (status != HG_OK) hg_buffer_release(tensor.buffer);
  else *out = tensor;
  return status;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

HG_RARE static hg_status fail_to_write(const char *path) {
  return hg_fail(HG_IO, "%s: cannot be written: its folder is not there, may not be written to, or is full", path);
}

/* Beside the file, so that renaming copies nothing; without its name, which may be as long as names may be, and one for
 * each file that is written at a time. */
HG_RARE static int name_temporary(tensor_file *f) {
  int folder = 0;
  for (int i = 0; f->path[i] != '\0'; i++)
    if (hg_is_separator(f->path[i])) folder = i + 1;
  unsigned long long number = hg_time_ns() ^ (unsigned long long)(uintptr_t)f;
  int length = snprintf(f->temporary, HG_PATH_BYTES, "%.*s.%llx.%llx", folder, f->path,
                        (unsigned long long)hg_process_id(), number);
  return length < HG_PATH_BYTES;
}

HG_RARE hg_status hg_tensor_file_create(tensor_file *f, const hg_allocator *allocator, const char *path) {
  *f = (tensor_file){.allocator = allocator, .path = path};
  if (!name_temporary(f)) return fail_to_write(path);
  return hg_file_create(f->temporary, path, &f->file) ? HG_OK : fail_to_write(path);
}

HG_RARE hg_status hg_tensor_file_put(const tensor_file *f, const void *bytes, size_t byte_count) {
  return hg_file_put(&f->file, bytes, byte_count) ? HG_OK : fail_to_write(f->path);
}

HG_RARE hg_status hg_tensor_file_finish(const tensor_file *f, hg_status status) {
  if (hg_file_finish(&f->file, status == HG_OK, f->temporary, f->path)) return HG_OK;
  return status != HG_OK ? status : fail_to_write(f->path);
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
    if (!hg_scan_number(s, &shape[rank]) || shape[rank] > INT64_MAX)
      return hg_fail(HG_FORMAT, "%s: a size of its shape is no number below 2^63", s->path);
    rank++;
    if (open == '(' && s->at < s->end && *s->at == 'L') s->at++; /* NumPy under Python 2 wrote 3L */
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

/* Elements that lie side by side in C order. */
HG_RARE static hg_status put_dense(const tensor_file *f, hg_buffer *buffer, uint64_t first, uint64_t byte_count,
                                   uint8_t *part) {
  for (uint64_t at = 0; at < byte_count; at += PART_BYTES) {
    size_t count = lesser(byte_count - at, PART_BYTES);
    HG_TRY(hg_buffer_read(buffer, first + at, part, count));
    HG_TRY(hg_tensor_file_put(f, part, count));
  }
  return HG_OK;
}

/* Others, from a copy of all elements that they lie among: the lowest of them is at `lowest` from the first one. */
HG_RARE static hg_status put_strided(const tensor_file *f, const hg_tensor *tensor, int64_t lowest,
                                     const uint8_t *from, uint8_t *part) {
  uint64_t size = atlas_type_bits((atlas_type)tensor->type) / 8, count = hg_tensor_count(tensor);
  uint64_t index[HG_MAX_RANK] = {0};
  int64_t at = -lowest;
  size_t used = 0;
  for (uint64_t i = 0; i < count; i++) {
    memcpy(part + used, from + (uint64_t)at * size, size);
    used += size;
    next_element(tensor, index, &at);
    if (used < PART_BYTES && i + 1 < count) continue; /* a part is a multiple of every element */
    HG_TRY(hg_tensor_file_put(f, part, used));
    used = 0;
  }
  return HG_OK;
}

HG_RARE hg_status hg_tensor_file_put_elements(const tensor_file *f, const hg_tensor *tensor) {
  uint64_t size = atlas_type_bits((atlas_type)tensor->type) / 8, count = hg_tensor_count(tensor), extent;
  int64_t lowest;
  HG_TRY(hg_tensor_extent(tensor, &lowest, &extent));
  if (count == 0) return HG_OK;
  if (tensor->buffer == NULL || tensor->offset + lowest < 0)
    return hg_fail(HG_BINDING, tensor->buffer == NULL ? "a tensor to be saved has no buffer"
                                                      : "a tensor to be saved begins before its buffer");
  uint64_t first = (uint64_t)(tensor->offset + lowest) * size;
  hg_tensor dense = hg_tensor_of(tensor->buffer, (atlas_type)tensor->type, tensor->rank, tensor->shape);
  int is_dense = memcmp(dense.stride, tensor->stride, tensor->rank * sizeof *dense.stride) == 0;
  uint8_t *part = hg_allocate_unset(f->allocator, lesser(count * size, PART_BYTES), 1), *from = NULL;
  hg_status status = part != NULL ? HG_OK : hg_fail_memory("a part of a file", lesser(count * size, PART_BYTES));
  if (status == HG_OK && is_dense) status = put_dense(f, tensor->buffer, first, count * size, part);
  if (status == HG_OK && !is_dense) {
    from = hg_allocate_unset(f->allocator, extent, size);
    status = from != NULL ? hg_buffer_read(tensor->buffer, first, from, extent * size)
                          : hg_fail_memory("the elements of a tensor", extent * size);
    if (status == HG_OK) status = put_strided(f, tensor, lowest, from, part);
  }
  hg_release(f->allocator, from);
  hg_release(f->allocator, part);
  return status;
}
