/* npy.c - NumPy's .npy format: "\x93NUMPY", two bytes of version, the length of a header of 2 bytes (version 1) or 4 (2
 * and 3), a dictionary of Python as text, the elements. Nothing in a file is trusted. */
#include "tensors/tensor_file.h"

#include "base/bytes.h"
#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX = 10, HEADER_BYTES = 512 };
static const char magic[] = "\x93NUMPY";

/* 8-bit floats have none: NumPy cannot tell them apart. */
static const char *const names[ATLAS_TYPE_COUNT] = {
    [ATLAS_i8] = "|i1", [ATLAS_i16] = "<i2",  [ATLAS_i32] = "<i4", [ATLAS_i64] = "<i8", [ATLAS_u8] = "|u1",
    [ATLAS_u16] = "<u2", [ATLAS_u32] = "<u4", [ATLAS_u64] = "<u8", [ATLAS_f16] = "<f2", [ATLAS_bf16] = "<V2",
    [ATLAS_f32] = "<f4", [ATLAS_f64] = "<f8", [ATLAS_bool] = "|b1"};

/* A text in either kind of quotes: names of keys and types have nothing but ASCII. */
HG_RARE static int scan_name(tensor_scanner *s, char **text) {
  if (!hg_scan_text(s, '\'', text) && !hg_scan_text(s, '"', text)) return 0;
  for (const char *c = *text; *c != '\0'; c++)
    if (*c < ' ' || *c > '~') return 0;
  return 1;
}

HG_RARE static hg_status read_type(tensor_scanner *s, hg_tensor *tensor) {
  char *text;
  if (!scan_name(s, &text))
    return hg_fail(HG_UNSUPPORTED, "%s: its elements are no plain numbers of one type", s->path);
  for (uint32_t t = ATLAS_NONE + 1; t < ATLAS_TYPE_COUNT; t++) {
    int is_byte = names[t] != NULL && names[t][0] == '|' && text[0] == '<';
    if (names[t] == NULL || strcmp(names[t] + is_byte, text + is_byte) != 0) continue;
    tensor->type = t;
    return HG_OK;
  }
  size_t order = strspn(text, "<|");
  int is_small = strcmp(text + order, "V1") == 0 || strcmp(text + order, "f1") == 0; /* of ml_dtypes */
  return hg_fail(HG_UNSUPPORTED, "%s: its elements are '%.20s'; expected little-endian numbers such as '<f4'%s",
                 s->path, text, is_small ? "; 8-bit floats are in .safetensors files" : "");
}

HG_RARE static hg_status read_word(tensor_scanner *s, uint32_t *is_fortran) {
  static const char *const words[] = {"False", "True"};
  for (uint32_t i = 0; i < 2; i++) {
    (void)hg_scan_char(s, '\0'); /* skips spaces */
    size_t length = strlen(words[i]);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, words[i], length) != 0) continue;
    s->at += length;
    *is_fortran = i;
    return HG_OK;
  }
  return hg_fail(HG_FORMAT, "%s: its fortran_order is neither True nor False", s->path);
}

/* The dictionary: each of three keys once. */
HG_RARE static hg_status read_header(tensor_scanner *s, hg_tensor *tensor, uint32_t *is_fortran) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  uint32_t seen = 0, type = ATLAS_NONE;
  char *key;
  int is_open = hg_scan_char(s, '{');
  while (is_open && !hg_scan_char(s, '}')) {
    uint32_t k = 0;
    if (!scan_name(s, &key) || !hg_scan_char(s, ':'))
      return hg_fail(HG_FORMAT, "%s: its header is no dictionary", s->path);
    while (k < 3 && strcmp(keys[k], key) != 0) k++;
    if (k == 3 || seen >> k & 1)
      return hg_fail(HG_FORMAT, "%s: its header has the %skey '%.40s'%s", s->path, k == 3 ? "unknown " : "", key,
                     k == 3 ? "" : " twice");
    seen |= 1u << k;
    HG_TRY(k == 0 ? read_type(s, tensor) : k == 1 ? read_word(s, is_fortran) : hg_scan_shape(s, '(', ')', tensor));
    if (k == 0) type = tensor->type;
    if (!hg_scan_char(s, ',') && !hg_scan_char(s, '}'))
      return hg_fail(HG_FORMAT, "%s: its header does not end", s->path);
    if (s->at[-1] == '}') is_open = 0;
  }
  (void)hg_scan_char(s, '\0');
  if (seen != 7 || s->at != s->end)
    return hg_fail(HG_FORMAT, "%s: its header is not the dictionary of descr, fortran_order and shape", s->path);
  tensor->type = type;
  return HG_OK;
}

HG_RARE static void reverse_strides(hg_tensor *tensor) {
  uint64_t stride = 1; /* of tensors without elements it may wrap */
  for (uint32_t d = 0; d < tensor->rank; d++) {
    tensor->stride[d] = (int64_t)stride;
    stride *= tensor->shape[d];
  }
}

HG_RARE static uint64_t header_bytes(const uint8_t *bytes, size_t byte_count) {
  if (byte_count < PREFIX || memcmp(bytes, magic, 6) != 0) return 0;
  unsigned first = bytes[6] == 1 ? PREFIX : PREFIX + 2;
  return byte_count >= first ? first + hg_load_le(bytes + 8, first - 8) : 0;
}

HG_RARE hg_status hg_npy_read(const char *path, uint8_t *bytes, size_t byte_count, uint64_t file_bytes,
                              tensor_entry *entry) {
  if (byte_count < PREFIX || memcmp(bytes, magic, 6) != 0) return hg_fail(HG_FORMAT, "%s: is no .npy file", path);
  if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
    return hg_fail(HG_UNSUPPORTED, "%s: is of version %u.%u of .npy; expected 1.0, 2.0 or 3.0", path, bytes[6],
                   bytes[7]);
  uint64_t length = header_bytes(bytes, byte_count), needed;
  if (length == 0 || length > byte_count) return hg_fail(HG_FORMAT, "%s: ends in its header", path);
  tensor_scanner s = {.path = path, .at = bytes + (bytes[6] == 1 ? PREFIX : PREFIX + 2), .end = bytes + length};
  uint32_t is_fortran = 0;
  *entry = (tensor_entry){.first = length, .byte_count = file_bytes - length};
  HG_TRY(read_header(&s, &entry->tensor, &is_fortran));
  HG_TRY(hg_tensor_bytes(path, &entry->tensor, &needed));
  if (needed != entry->byte_count)
    return hg_fail(HG_FORMAT, "%s: has %" PRIu64 " bytes of elements where its shape and type need %" PRIu64, path,
                   entry->byte_count, needed);
  if (is_fortran) reverse_strides(&entry->tensor);
  return HG_OK;
}

HG_RARE hg_status hg_tensor_load(hg_executor *executor, const char *path, hg_tensor *out) {
  uint8_t *bytes = NULL;
  size_t byte_count = 0;
  tensor_entry entry;
  tensor_file file;
  if (executor == NULL || path == NULL || out == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_load: an argument is NULL");
  memset(out, 0, sizeof *out);
  hg_status status = hg_tensor_file_open(&file, &executor->allocator, path, header_bytes, &bytes, &byte_count);
  if (status == HG_OK) status = hg_npy_read(path, bytes, byte_count, file.file.byte_count, &entry);
  if (status == HG_OK) status = hg_tensor_file_fill(&file, executor, &entry, out);
  hg_tensor_file_close(&file);
  hg_release(&executor->allocator, bytes);
  return status;
}

/* The length of the prefix and the dictionary, of which the end is at a multiple of 64. */
static size_t write_header(const hg_tensor *tensor, uint8_t header[HEADER_BYTES]) {
  char *text = (char *)header;
  size_t used = PREFIX;
  used += (size_t)snprintf(text + used, HEADER_BYTES - used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                           names[tensor->type]);
  for (uint32_t d = 0; d < tensor->rank; d++)
    used += (size_t)snprintf(text + used, HEADER_BYTES - used, "%s%" PRIu64 ",", d > 0 ? " " : "", tensor->shape[d]);
  if (tensor->rank > 1) used--; /* a comma behind the only size, and behind no other */
  used += (size_t)snprintf(text + used, HEADER_BYTES - used, "), }");
  while ((used + 1) % 64 != 0) header[used++] = ' ';
  header[used++] = '\n';
  memcpy(header, magic, 6);
  header[6] = 1, header[7] = 0, header[8] = (uint8_t)(used - PREFIX), header[9] = (uint8_t)((used - PREFIX) >> 8);
  return used;
}

HG_RARE hg_status hg_tensor_save(const hg_tensor *tensor, const char *path) {
  uint8_t header[HEADER_BYTES];
  uint64_t extent;
  int64_t lowest;
  if (path == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_save: 'path' is NULL");
  HG_TRY(hg_tensor_extent(tensor, &lowest, &extent));
  if (tensor->type >= ATLAS_TYPE_COUNT || names[tensor->type] == NULL)
    return hg_fail(HG_UNSUPPORTED, "%s: .npy has no type for %s; .safetensors has one", path,
                   tensor->type < ATLAS_TYPE_COUNT ? atlas_type_name((atlas_type)tensor->type) : "this number");
  hg_allocator allocator = hg_allocator_of(tensor->buffer);
  tensor_file file;
  HG_TRY(hg_tensor_file_create(&file, &allocator, path));
  hg_status status = hg_tensor_file_put(&file, header, write_header(tensor, header));
  if (status == HG_OK) status = hg_tensor_file_put_elements(&file, tensor);
  return hg_tensor_file_finish(&file, status);
}
