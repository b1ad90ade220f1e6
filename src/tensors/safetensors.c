/* safetensors.c - the .safetensors format: 8 bytes with the length of a header, the header in JSON,
 * {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, and the elements of all tensors, without
 * gaps. "__metadata__" holds texts by their keys. Nothing in a file is trusted. */
#include "tensors/tensor_file.h"

#include "base/bytes.h"
#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };

static const char *const names[ATLAS_TYPE_COUNT] = {
    [ATLAS_i8] = "I8",   [ATLAS_i16] = "I16", [ATLAS_i32] = "I32", [ATLAS_i64] = "I64", [ATLAS_u8] = "U8",
    [ATLAS_u16] = "U16", [ATLAS_u32] = "U32", [ATLAS_u64] = "U64", [ATLAS_f16] = "F16", [ATLAS_bf16] = "BF16",
    [ATLAS_f32] = "F32", [ATLAS_f64] = "F64", [ATLAS_bool] = "BOOL", [ATLAS_f8e4m3] = "F8_E4M3",
    [ATLAS_f8e5m2] = "F8_E5M2"};

struct hg_tensors {
  hg_executor *executor; /* holds a reference */
  uint8_t *bytes;        /* of the file's header: names and texts stand in it */
  tensor_list list;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

HG_RARE static hg_status fail_header(const tensor_scanner *s, const char *what) {
  return hg_fail(HG_FORMAT, "%s: its header %s, %zu bytes before its end", s->path, what, (size_t)(s->end - s->at));
}

/* 1 if all bytes are code points in their shortest form. */
HG_RARE static int is_utf8(const char *name) {
  static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  const uint8_t *at = (const uint8_t *)name;
  while (*at != 0) {
    int more = *at < 0x80 ? 0 : *at >> 5 == 6 ? 1 : *at >> 4 == 14 ? 2 : *at >> 3 == 30 ? 3 : -1;
    if (more < 0) return 0;
    uint32_t code = more == 0 ? *at : *at & (0x3fu >> more);
    at++;
    for (int i = 0; i < more; i++, at++) {
      if (*at >> 6 != 2) return 0;
      code = code << 6 | (*at & 0x3fu);
    }
    if (code < least[more] || code >> 11 == 0x1b || code > 0x10ffff) return 0;
  }
  return 1;
}

HG_RARE static hg_status read_type(tensor_scanner *s, const char *name, hg_tensor *tensor) {
  char *text;
  if (!hg_scan_text(s, '"', &text)) return fail_header(s, "gives no dtype");
  for (uint32_t t = ATLAS_NONE + 1; t < ATLAS_TYPE_COUNT; t++)
    if (strcmp(names[t], text) == 0) {
      tensor->type = t;
      return HG_OK;
    }
  return hg_fail(HG_UNSUPPORTED, "%s: tensor '%.80s' has elements of type '%.20s', which no tensor can have here",
                 s->path, name, text);
}

/* The object that describes a tensor: each of three keys once. */
HG_RARE static hg_status read_entry(tensor_scanner *s, tensor_entry *entry, uint64_t offsets[2]) {
  static const char *const keys[] = {"dtype", "shape", "data_offsets"};
  uint32_t seen = 0, type = ATLAS_NONE;
  char *key;
  int more = hg_scan_char(s, '{');
  while (more) {
    uint32_t k = 0;
    if (!hg_scan_text(s, '"', &key) || !hg_scan_char(s, ':')) return fail_header(s, "is no JSON");
    while (k < 3 && strcmp(keys[k], key) != 0) k++;
    if (k == 3 || seen >> k & 1)
      return hg_fail(HG_FORMAT, "%s: tensor '%.80s' has the key '%.40s'%s", s->path, entry->name, key,
                     k == 3 ? ", which means nothing" : " twice");
    seen |= 1u << k;
    if (k == 0) HG_TRY(read_type(s, entry->name, &entry->tensor));
    if (k == 0) type = entry->tensor.type;
    if (k == 1) HG_TRY(hg_scan_shape(s, '[', ']', &entry->tensor));
    if (k == 2 && (!hg_scan_char(s, '[') || !hg_scan_number(s, &offsets[0]) || !hg_scan_char(s, ',') ||
                   !hg_scan_number(s, &offsets[1]) || !hg_scan_char(s, ']')))
      return fail_header(s, "has data_offsets that are not two numbers");
    more = hg_scan_char(s, ',');
  }
  if (seen != 7 || !hg_scan_char(s, '}')) return fail_header(s, "has a tensor without dtype, shape and data_offsets");
  entry->tensor.type = type;
  return HG_OK;
}

HG_RARE static hg_status read_metadata(const hg_allocator *allocator, tensor_scanner *s, hg_array *texts) {
  char *pair[2];
  int more = hg_scan_char(s, '{');
  if (more && hg_scan_char(s, '}')) return HG_OK;
  while (more) {
    if (!hg_scan_text(s, '"', &pair[0]) || !hg_scan_char(s, ':') || !hg_scan_text(s, '"', &pair[1]))
      return fail_header(s, "has a __metadata__ that is not texts");
    if (!is_utf8(pair[0]) || !is_utf8(pair[1])) return fail_header(s, "has a __metadata__ that is no UTF-8");
    if (hg_array_append(allocator, texts, pair, 1) == NULL) return hg_fail_memory("a file's metadata", sizeof pair);
    more = hg_scan_char(s, ',');
  }
  return hg_scan_char(s, '}') ? HG_OK : fail_header(s, "has a __metadata__ that does not end");
}

HG_RARE static hg_status check_place(const char *path, tensor_entry *entry, const uint64_t offsets[2],
                                     uint64_t first, uint64_t data_bytes) {
  uint64_t needed;
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes)
    return hg_fail(HG_FORMAT, "%s: tensor '%.80s' lies at bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64, path,
                   entry->name, offsets[0], offsets[1], data_bytes);
  HG_TRY(hg_tensor_bytes(path, &entry->tensor, &needed));
  entry->first = first + offsets[0];
  entry->byte_count = offsets[1] - offsets[0];
  if (entry->byte_count == needed) return HG_OK;
  return hg_fail(HG_FORMAT, "%s: tensor '%.80s' has %" PRIu64 " bytes where its shape and type need %" PRIu64, path,
                 entry->name, entry->byte_count, needed);
}

HG_RARE static int by_name(const void *a, const void *b) {
  return strcmp(((const tensor_entry *)a)->name, ((const tensor_entry *)b)->name);
}

HG_RARE static int by_place(const void *a, const void *b) {
  const tensor_entry *x = a, *y = b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  if (x->byte_count != y->byte_count) return x->byte_count < y->byte_count ? -1 : 1;
  return by_name(a, b);
}

HG_RARE static hg_status check_names(hg_status failure, const char *path, tensor_entry *entries, size_t count) {
  if (count > 1) qsort(entries, count, sizeof *entries, by_name);
  for (size_t i = 1; i < count; i++)
    if (strcmp(entries[i - 1].name, entries[i].name) == 0)
      return hg_fail(failure, "%s: has the tensor '%.80s' twice", path, entries[i].name);
  return HG_OK;
}

/* Tensors cover all bytes, each once. */
HG_RARE static hg_status check_places(const char *path, tensor_entry *entries, size_t count, uint64_t first,
                              uint64_t data_bytes) {
  if (count > 1) qsort(entries, count, sizeof *entries, by_place);
  uint64_t end = first;
  for (size_t i = 0; i < count; i++) {
    if (entries[i].first != end)
      return hg_fail(HG_FORMAT, "%s: tensor '%.80s' %s", path, entries[i].name,
                     entries[i].first < end ? "overlaps another" : "lies behind bytes that no tensor has");
    end += entries[i].byte_count;
  }
  if (end == first + data_bytes) return HG_OK;
  return hg_fail(HG_FORMAT, "%s: its last %" PRIu64 " bytes are of no tensor", path, first + data_bytes - end);
}

HG_RARE static hg_status read_all(const hg_allocator *allocator, tensor_scanner *s, hg_array *entries,
                                  hg_array *texts, uint64_t first, uint64_t data_bytes) {
  int more = hg_scan_char(s, '{');
  if (!more) return fail_header(s, "is no JSON object");
  if (hg_scan_char(s, '}')) more = 0, s->at--;
  while (more) {
    uint64_t offsets[2] = {0, 0};
    tensor_entry entry = {.name = NULL};
    if (!hg_scan_text(s, '"', &entry.name) || !hg_scan_char(s, ':')) return fail_header(s, "is no JSON");
    if (!is_utf8(entry.name)) return fail_header(s, "has a name that is no UTF-8");
    if (strcmp(entry.name, "__metadata__") == 0) HG_TRY(read_metadata(allocator, s, texts));
    else {
      HG_TRY(read_entry(s, &entry, offsets));
      HG_TRY(check_place(s->path, &entry, offsets, first, data_bytes));
      if (hg_array_append(allocator, entries, &entry, 1) == NULL)
        return hg_fail_memory("the tensors of a file", entries->count * sizeof entry);
    }
    more = hg_scan_char(s, ',');
  }
  if (!hg_scan_char(s, '}')) return fail_header(s, "does not end");
  (void)hg_scan_char(s, '\0'); /* spaces */
  return s->at == s->end ? HG_OK : fail_header(s, "goes on after its object");
}

HG_RARE static uint64_t header_bytes(const uint8_t *bytes, size_t byte_count) {
  uint64_t length = byte_count >= LENGTH_BYTES ? hg_load_le(bytes, LENGTH_BYTES) : UINT64_MAX;
  return length <= UINT64_MAX - LENGTH_BYTES ? LENGTH_BYTES + length : 0;
}

HG_RARE hg_status hg_safetensors_read(const hg_allocator *allocator, const char *path, uint8_t *bytes,
                                      size_t byte_count, uint64_t file_bytes, tensor_list *list) {
  *list = (tensor_list){.count = 0};
  uint64_t first = header_bytes(bytes, byte_count), data_bytes = file_bytes - first;
  if (first == 0 || first > byte_count)
    return hg_fail(HG_FORMAT, "%s: is no .safetensors file, or ends in its header", path);
  tensor_scanner s = {.path = path, .at = bytes + LENGTH_BYTES, .end = bytes + first};
  hg_array found = {.element_size = sizeof(tensor_entry)}, texts = {.element_size = 2 * sizeof(char *)};
  hg_status status = read_all(allocator, &s, &found, &texts, first, data_bytes);
  if (status == HG_OK) status = check_names(HG_FORMAT, path, found.data, found.count);
  if (status == HG_OK) status = check_places(path, found.data, found.count, first, data_bytes);
  if (status != HG_OK) {
    hg_array_release(allocator, &found);
    hg_array_release(allocator, &texts);
    return status;
  }
  *list = (tensor_list){found.data, texts.data, found.count, texts.count};
  return HG_OK;
}

HG_RARE void hg_tensor_list_release(const hg_allocator *allocator, tensor_list *list) {
  hg_release(allocator, list->entries);
  hg_release(allocator, list->texts);
}

HG_RARE static hg_status load(hg_tensors *t, const char *path) {
  const hg_allocator *allocator = &t->executor->allocator;
  size_t byte_count = 0;
  tensor_file f;
  hg_status status = hg_tensor_file_open(&f, allocator, path, header_bytes, &t->bytes, &byte_count);
  if (status == HG_OK)
    status = hg_safetensors_read(allocator, path, t->bytes, byte_count, f.file.byte_count, &t->list);
  for (size_t i = 0; i < t->list.count && status == HG_OK; i++)
    status = hg_tensor_file_fill(&f, t->executor, &t->list.entries[i], &t->list.entries[i].tensor);
  hg_tensor_file_close(&f);
  return status;
}

HG_RARE hg_status hg_tensors_load(hg_executor *executor, const char *path, hg_tensors **out) {
  if (executor == NULL || path == NULL || out == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_tensors_load: an argument is NULL");
  *out = NULL;
  hg_tensors *made = hg_allocate(&executor->allocator, 1, sizeof *made);
  if (made == NULL) return hg_fail_memory("tensors by name", sizeof *made);
  made->executor = hg_executor_retain(executor);
  hg_status status = load(made, path);
  if (status == HG_OK) *out = made;
  else hg_tensors_release(made);
  return status;
}

size_t hg_tensors_count(const hg_tensors *tensors) { return tensors != NULL ? tensors->list.count : 0; }

const char *hg_tensors_name(const hg_tensors *tensors, size_t index) {
  return index < hg_tensors_count(tensors) ? tensors->list.entries[index].name : NULL;
}

const hg_tensor *hg_tensors_at(const hg_tensors *tensors, size_t index) {
  return index < hg_tensors_count(tensors) ? &tensors->list.entries[index].tensor : NULL;
}

const char *hg_tensors_text(const hg_tensors *tensors, size_t index) {
  return tensors != NULL && index < 2 * tensors->list.text_count ? tensors->list.texts[index] : NULL;
}

HG_RARE void hg_tensors_release(hg_tensors *tensors) {
  if (tensors == NULL) return;
  hg_executor *executor = tensors->executor;
  for (size_t i = 0; i < tensors->list.count; i++) hg_buffer_release(tensors->list.entries[i].tensor.buffer);
  hg_tensor_list_release(&executor->allocator, &tensors->list);
  hg_release(&executor->allocator, tensors->bytes);
  hg_release(&executor->allocator, tensors);
  hg_executor_release(executor);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A header that grows; `no_memory` is looked at when it is done. */
typedef struct writer {
  const hg_allocator *allocator;
  hg_array bytes;
  int no_memory;
} writer;

HG_RARE static void put(writer *w, const char *text, size_t length) {
  w->no_memory |= hg_array_append(w->allocator, &w->bytes, text, length) == NULL;
}

HG_RARE static void put_number(writer *w, const char *before, uint64_t number) {
  char text[64];
  put(w, text, (size_t)snprintf(text, sizeof text, "%s%" PRIu64, before, number));
}

HG_RARE static void put_name(writer *w, const char *name) {
  char text[8];
  put(w, "\"", 1);
  for (; *name != '\0'; name++) {
    uint8_t c = (uint8_t)*name;
    int length = snprintf(text, sizeof text, c < 0x20 ? "\\u%04x" : c == '"' || c == '\\' ? "\\%c" : "%c", c);
    put(w, text, (size_t)length);
  }
  put(w, "\"", 1);
}

HG_RARE static void put_entry(writer *w, const tensor_entry *entry, uint64_t first) {
  put_name(w, entry->name);
  put(w, ":{\"dtype\":\"", 11);
  put(w, names[entry->tensor.type], strlen(names[entry->tensor.type]));
  put(w, "\",\"shape\":[", 11);
  for (uint32_t d = 0; d < entry->tensor.rank; d++) put_number(w, d > 0 ? "," : "", entry->tensor.shape[d]);
  put_number(w, "],\"data_offsets\":[", first);
  put_number(w, ",", first + entry->byte_count);
  put(w, "]}", 2);
}

HG_RARE static hg_status check_saved(const char *path, tensor_entry *entry, const char *name, const hg_tensor *tensor) {
  int64_t lowest;
  uint64_t extent;
  if (name == NULL || name[0] == '\0' || strcmp(name, "__metadata__") == 0)
    return hg_fail(HG_INVALID_ARGUMENT, "%s: a tensor needs a name, and another one than '__metadata__'", path);
  if (!is_utf8(name)) return hg_fail(HG_INVALID_ARGUMENT, "%s: the name '%.80s' is no UTF-8", path, name);
  HG_TRY(hg_tensor_extent(tensor, &lowest, &extent));
  if (tensor->type == ATLAS_NONE || tensor->type >= ATLAS_TYPE_COUNT)
    return hg_fail(HG_INVALID_ARGUMENT, "%s: tensor '%.80s' has no type of a tensor", path, name);
  *entry = (tensor_entry){.tensor = *tensor, .name = (char *)(uintptr_t)name};
  return hg_tensor_bytes(path, tensor, &entry->byte_count);
}

HG_RARE static void put_texts(writer *w, const char *const *texts, size_t count) {
  for (size_t i = 0; i < 2 * count; i++) {
    put(w, i == 0 ? "\"__metadata__\":{" : i % 2 != 0 ? ":" : ",", i == 0 ? 16 : 1);
    put_name(w, texts[i]);
  }
  if (count > 0) put(w, "}", 1);
}

/* The widest elements come first, so that whoever maps the file finds all of them aligned. */
HG_RARE static hg_status save(writer *w, const char *path, const tensor_entry *entries, size_t count,
                              const char *const *texts, size_t text_count) {
  uint64_t first = 0;
  put(w, "\0\0\0\0\0\0\0\0{", LENGTH_BYTES + 1);
  put_texts(w, texts, text_count);
  for (uint32_t bits = 64; bits >= 8; bits /= 2)
    for (size_t i = 0; i < count; i++) {
      if (atlas_type_bits((atlas_type)entries[i].tensor.type) != bits) continue;
      if (w->bytes.count > LENGTH_BYTES + 1) put(w, ",", 1);
      put_entry(w, &entries[i], first);
      first += entries[i].byte_count;
    }
  put(w, "}", 1);
  while (w->bytes.count % 8 != 0 && !w->no_memory) put(w, " ", 1);
  if (w->no_memory) return hg_fail_memory("the header of a file", w->bytes.count);
  hg_store_le(w->bytes.data, LENGTH_BYTES, w->bytes.count - LENGTH_BYTES);
  tensor_file f;
  HG_TRY(hg_tensor_file_create(&f, w->allocator, path));
  hg_status status = hg_tensor_file_put(&f, w->bytes.data, w->bytes.count);
  for (uint32_t bits = 64; bits >= 8; bits /= 2)
    for (size_t i = 0; i < count && status == HG_OK; i++)
      if (atlas_type_bits((atlas_type)entries[i].tensor.type) == bits)
        status = hg_tensor_file_put_elements(&f, &entries[i].tensor);
  return hg_tensor_file_finish(&f, status);
}

HG_RARE static hg_status check_texts(const char *path, const char *const *texts, size_t count) {
  for (size_t i = 0; i < 2 * count; i++) {
    if (texts[i] == NULL || !is_utf8(texts[i]))
      return hg_fail(HG_INVALID_ARGUMENT, "%s: text %zu of its metadata is NULL or no UTF-8", path, i);
    for (size_t k = 0; k < i; k += 2)
      if (i % 2 == 0 && strcmp(texts[k], texts[i]) == 0)
        return hg_fail(HG_INVALID_ARGUMENT, "%s: its metadata has the key '%.80s' twice", path, texts[i]);
  }
  return HG_OK;
}

HG_RARE hg_status hg_tensors_save_texts(const char *const *of_each, const hg_tensor *tensors, size_t count,
                                        const char *const *texts, size_t text_count, const char *path) {
  if (path == NULL || (count > 0 && (of_each == NULL || tensors == NULL)) || (text_count > 0 && texts == NULL))
    return hg_fail(HG_INVALID_ARGUMENT, "hg_tensors_save: an argument is NULL");
  hg_allocator allocator = hg_allocator_of(count > 0 ? tensors[0].buffer : NULL);
  tensor_entry *entries = hg_allocate(&allocator, 2 * count + 1, sizeof *entries);
  writer w = {.allocator = &allocator, .bytes = {.element_size = 1}};
  if (entries == NULL) return hg_fail_memory("the tensors of a file", count * sizeof *entries);
  hg_status status = check_texts(path, texts, text_count);
  for (size_t i = 0; i < count && status == HG_OK; i++)
    status = check_saved(path, &entries[i], of_each[i], &tensors[i]);
  memcpy(entries + count, entries, count * sizeof *entries);
  if (status == HG_OK) status = check_names(HG_INVALID_ARGUMENT, path, entries + count, count);
  if (status == HG_OK) status = save(&w, path, entries, count, texts, text_count);
  hg_array_release(&allocator, &w.bytes);
  hg_release(&allocator, entries);
  return status;
}

HG_RARE hg_status hg_tensors_save(const char *const *of_each, const hg_tensor *tensors, size_t count,
                                  const char *path) {
  return hg_tensors_save_texts(of_each, tensors, count, NULL, 0, path);
}
