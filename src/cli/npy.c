/* npy.c - reading and writing .npy files. Format: numpy.lib.format, https://numpy.org/doc/stable/reference/generated/
 * numpy.lib.format.html: magic "\x93NUMPY", version, header length, a Python dictionary literal, then the elements. */
#include "cli/npy.h"

#include "cli/cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- types ------------------------------------------------------------------------------------------------------- */

const char *npy_dtype_of(atlas_type type) {
  switch (type) {
  case ATLAS_i8: return "|i1";
  case ATLAS_i16: return "<i2";
  case ATLAS_i32: return "<i4";
  case ATLAS_i64: return "<i8";
  case ATLAS_u8: return "|u1";
  case ATLAS_u16: return "<u2";
  case ATLAS_u32: return "<u4";
  case ATLAS_u64: return "<u8";
  case ATLAS_f16: return "<f2";
  case ATLAS_bf16: return "<u2";
  case ATLAS_f32: return "<f4";
  case ATLAS_f64: return "<f8";
  case ATLAS_f8e4m3:
  case ATLAS_f8e5m2: return "|u1";
  case ATLAS_bool: return "|b1";
  case ATLAS_NONE:
  case ATLAS_TYPE_COUNT: break;
  }
  return "|u1";
}

static const char *const known_dtypes[] = {"|i1", "<i2", "<i4", "<i8", "|u1", "<u2",
                                           "<u4", "<u8", "<f2", "<f4", "<f8", "|b1"};

/* ---- header: a Python dictionary literal with exactly the keys descr, fortran_order and shape -------------------- */

typedef struct scanner {
  const char *next, *end;
  char *why;
  size_t why_bytes;
} scanner;

static int fail(scanner *s, const char *format, ...) HG_PRINTF(2, 3);
static int fail(scanner *s, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(s->why, s->why_bytes, format, arguments);
  va_end(arguments);
  return -1;
}

static void skip_space(scanner *s) {
  while (s->next < s->end && strchr(" \t\r\n", *s->next) != NULL && *s->next != '\0') s->next++;
}

static int take(scanner *s, char wanted) {
  skip_space(s);
  if (s->next >= s->end || *s->next != wanted) return 0;
  s->next++;
  return 1;
}

/* A quoted string without escapes; 0 where there is none or it does not fit. */
static int take_string(scanner *s, char *text, size_t text_bytes) {
  char quote = take(s, '\'') ? '\'' : take(s, '"') ? '"' : '\0';
  if (quote == '\0') return 0;
  size_t length = 0;
  while (s->next < s->end && *s->next != quote) {
    char c = *s->next++;
    if (c < 0x20 || c == 0x7f || c == '\\' || length + 1 >= text_bytes) return 0;
    text[length++] = c;
  }
  text[length] = '\0';
  return take(s, quote);
}

static int take_word(scanner *s, const char *word) {
  skip_space(s);
  size_t length = strlen(word);
  if ((size_t)(s->end - s->next) < length || memcmp(s->next, word, length) != 0) return 0;
  s->next += length;
  return 1;
}

static int take_number(scanner *s, uint64_t *value) {
  skip_space(s);
  const char *first = s->next;
  uint64_t result = 0;
  while (s->next < s->end && *s->next >= '0' && *s->next <= '9') {
    uint64_t digit = (uint64_t)(*s->next++ - '0');
    if (result > (UINT64_MAX - digit) / 10) return 0;
    result = result * 10 + digit;
  }
  if (s->next < s->end && *s->next == 'L') s->next++; /* NumPy under Python 2 wrote 3L */
  *value = result;
  return s->next > first;
}

static int read_descr(scanner *s, npy_array *out) {
  char text[32];
  skip_space(s);
  if (s->next < s->end && (*s->next == '[' || *s->next == '('))
    return fail(s, "holds records (a structured dtype); expected an array of plain numbers");
  if (!take_string(s, text, sizeof text)) return fail(s, "is not a valid .npy file: its header gives no dtype");
  if (text[0] == '>') return fail(s, "holds big-endian data (dtype '%s'); convert it to little-endian first", text);
  for (size_t i = 0; i < sizeof known_dtypes / sizeof known_dtypes[0]; i++) {
    const char *known = known_dtypes[i];
    int order_free = known[0] == '|' && (text[0] == '|' || text[0] == '<');
    if (strcmp(text, known) != 0 && !(order_free && strcmp(text + 1, known + 1) == 0)) continue;
    memcpy(out->dtype, known, 4);
    out->item_bytes = (uint32_t)(known[2] - '0');
    return 0;
  }
  return fail(s, "has dtype '%s'; expected numbers of an Atlas type, such as '<f4', '<i4' or '|u1'", text);
}

static int read_shape(scanner *s, npy_array *out) {
  if (!take(s, '(')) return fail(s, "is not a valid .npy file: its header gives no shape");
  out->count = 1;
  while (!take(s, ')')) {
    if (out->dimension_count >= NPY_MAX_DIMENSIONS) return fail(s, "has more than %d dimensions", NPY_MAX_DIMENSIONS);
    uint64_t extent = 0;
    if (!take_number(s, &extent)) return fail(s, "is not a valid .npy file: its shape is not a list of sizes");
    out->shape[out->dimension_count++] = extent;
    if (take(s, ',')) continue;
    if (!take(s, ')')) return fail(s, "is not a valid .npy file: its shape does not end");
    break;
  }
  for (uint32_t d = 0; d < out->dimension_count;
       d++) /* an empty array has no elements, however large the other sizes */
    if (out->shape[d] == 0) out->count = 0;
  for (uint32_t d = 0; d < out->dimension_count && out->count > 0; d++) {
    if (out->count > UINT64_MAX / 16 / out->shape[d]) return fail(s, "claims a shape too large to exist");
    out->count *= out->shape[d];
  }
  return 0;
}

/* One `'key': value`; *seen collects which keys were there. */
static int read_entry(scanner *s, npy_array *out, unsigned *seen) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  char key[32];
  if (!take_string(s, key, sizeof key) || !take(s, ':'))
    return fail(s, "is not a valid .npy file: its header is not a dictionary");
  unsigned k = 0;
  while (k < 3 && strcmp(keys[k], key) != 0) k++;
  if (k == 3) return fail(s, "is not a valid .npy file: its header has the unknown key '%s'", key);
  if (*seen & 1u << k) return fail(s, "is not a valid .npy file: its header gives '%s' twice", key);
  *seen |= 1u << k;
  if (k == 0) return read_descr(s, out);
  if (k == 2) return read_shape(s, out);
  if (take_word(s, "False")) return 0;
  if (take_word(s, "True")) return fail(s, "is in Fortran order; save it in C order (numpy.ascontiguousarray)");
  return fail(s, "is not a valid .npy file: its fortran_order is neither True nor False");
}

static int read_header(scanner *s, npy_array *out) {
  unsigned seen = 0;
  if (!take(s, '{')) return fail(s, "is not a valid .npy file: its header is not a dictionary");
  while (!take(s, '}')) {
    if (read_entry(s, out, &seen) != 0) return -1;
    if (take(s, ',')) continue;
    if (!take(s, '}')) return fail(s, "is not a valid .npy file: its header does not end");
    break;
  }
  skip_space(s);
  if (s->next != s->end) return fail(s, "is not a valid .npy file: there is more after its header's dictionary");
  if (seen != 7) return fail(s, "is not a valid .npy file: its header lacks descr, fortran_order or shape");
  return 0;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Nothing is read but what the part before it announces, and one byte more to see whether the file ends there. */
static int read_array(scanner *s, FILE *file, cli_bytes *bytes, npy_array *out) {
  if (cli_read_up_to(file, 10, bytes, s->why, s->why_bytes) != 0) return -1;
  if (bytes->count < 10 || memcmp(bytes->data, "\x93NUMPY", 6) != 0) return fail(s, "is not a .npy file");
  unsigned major = bytes->data[6], minor = bytes->data[7];
  if (major < 1 || major > 3 || minor != 0)
    return fail(s, "is of .npy version %u.%u; expected 1.0, 2.0 or 3.0", major, minor);
  size_t header_at = major == 1 ? 10 : 12;
  if (cli_read_up_to(file, header_at, bytes, s->why, s->why_bytes) != 0) return -1;
  if (bytes->count < header_at) return fail(s, "is not a valid .npy file: it ends in its header");
  uint64_t data_at = header_at;
  for (size_t i = 8; i < header_at; i++) data_at += (uint64_t)bytes->data[i] << (8 * (i - 8));
  if (cli_read_up_to(file, data_at, bytes, s->why, s->why_bytes) != 0) return -1;
  if (bytes->count < data_at) return fail(s, "is not a valid .npy file: it ends in its header");
  s->next = (const char *)bytes->data + header_at;
  s->end = (const char *)bytes->data + data_at;
  if (read_header(s, out) != 0) return -1;
  uint64_t expected = out->count * out->item_bytes;
  if (cli_read_up_to(file, data_at + expected + 1, bytes, s->why, s->why_bytes) != 0) return -1;
  uint64_t given = bytes->count - data_at;
  if (given > expected)
    return fail(s, "goes on after the %" PRIu64 " bytes of data that its shape and dtype need", expected);
  if (given < expected)
    return fail(s, "holds %" PRIu64 " bytes of data where its shape and dtype need %" PRIu64, given, expected);
  out->file = bytes->data;
  out->data = bytes->data + (size_t)data_at;
  return 0;
}

int npy_read(const char *path, npy_array *out, char *why, size_t why_bytes) {
  scanner s = {.why = why, .why_bytes = why_bytes};
  cli_bytes bytes = {0};
  memset(out, 0, sizeof *out);
  FILE *file = cli_open(path, why, why_bytes);
  if (file == NULL) return -1;
  int result = read_array(&s, file, &bytes, out);
  fclose(file);
  if (result != 0) {
    free(bytes.data);
    memset(out, 0, sizeof *out);
  }
  return result;
}

void npy_release(npy_array *array) {
  free(array->file);
  memset(array, 0, sizeof *array);
}

int npy_write(const char *path, const char *dtype, uint32_t dimension_count, const uint64_t *shape, const void *data,
              uint64_t byte_count, char *why, size_t why_bytes) {
  enum { PREFIX = 10, LARGEST = 1024 }; /* 32 sizes of 20 digits and the words around them stay below that */
  char header[LARGEST + 64];
  size_t used = PREFIX;
  used += (size_t)snprintf(header + used, LARGEST - used, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
  for (uint32_t d = 0; d < dimension_count; d++)
    used += (size_t)snprintf(header + used, LARGEST - used, "%s%" PRIu64 "%s", d > 0 ? ", " : "", shape[d],
                             dimension_count == 1 ? "," : "");
  used += (size_t)snprintf(header + used, LARGEST - used, "), }");
  while ((used + 1) % 64 != 0) header[used++] = ' ';
  header[used++] = '\n';
  size_t length = used - PREFIX;
  const unsigned char prefix[PREFIX] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(length & 255), (unsigned char)(length >> 8)};
  memcpy(header, prefix, PREFIX);
  return cli_write_file(path, header, used, data, (size_t)byte_count, why, why_bytes);
}
