/* vector.c - accesses that a thread makes for all of its lanes at once, and the conversion between words and the lanes'
 * elements. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/value.h"

#include <stdio.h>
#include <string.h>

static uint8_t type_of(const ptx *p, const gpu_vector *v) { return ptx_insn(p, v->value)->type; }

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void name_words(ptx *p, const gpu_vector *v, ptx_name *word) {
  for (uint32_t i = 0; i < v->word_count; i++) word[i] = hg_ptx_new(p, v->word_bytes == 8 ? PTX_64 : PTX_32);
}

void hg_ptx_vectors_name(ptx *p) {
  for (uint32_t i = 0; i < p->plan->vector_count; i++) {
    const gpu_vector *v = &p->plan->vector[i];
    name_words(p, v, p->vector[i].word);
    if (v->is_load && p->plan->info.packs > 1) name_words(p, v, p->vector[i].next);
  }
}

/* Part k of a word in a register of the type. */
static ptx_name part_of(ptx *p, uint8_t type, ptx_name word, uint32_t k) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  uint32_t bits = atlas_type_bits((atlas_type)type);
  PTX(p, gpu_is_signed(type) ? "bfe.s32" : "bfe.u32", d, word, hg_ptx_number((uint64_t)k * bits),
      hg_ptx_number(bits));
  if (type == ATLAS_bool) hg_ptx_make_bool(p, d);
  return d;
}

void hg_ptx_take_apart(ptx *p, uint8_t type, ptx_name word, ptx_name *part, uint32_t count) {
  if (count == 1 && atlas_type_bits((atlas_type)type) >= 32) {
    part[0] = word;
  } else if (hg_ptx_class_of(type) == PTX_16) {
    part[0] = hg_ptx_new(p, PTX_16);
    part[1] = hg_ptx_new(p, PTX_16);
    hg_ptx_put(p, "\tmov.b32 {%s, %s}, %s;\n", part[0].text, part[1].text, word.text);
  } else {
    for (uint32_t k = 0; k < count; k++) part[k] = part_of(p, type, word, k);
  }
}

/* Both halves of a word as f32; a bf16 is the upper half of an f32. */
static void widen_pair(ptx *p, uint8_t type, ptx_name word, ptx_name part[2]) {
  if (type == ATLAS_f16) {
    ptx_name half[2];
    hg_ptx_take_apart(p, type, word, half, 2);
    for (int i = 0; i < 2; i++) part[i] = hg_ptx_to_f32(p, type, half[i]);
    return;
  }
  for (int i = 0; i < 2; i++) part[i] = hg_ptx_new(p, PTX_32);
  PTX(p, "shl.b32", part[0], word, hg_ptx_number(16));
  PTX(p, "and.b32", part[1], word, hg_ptx_number(0xffff0000));
}

/* word = op(word, pair); the instruction takes the pair only from a register. */
static void with_pair(ptx *p, const char *op, uint8_t type, ptx_name word, uint32_t pair) {
  ptx_name other = hg_ptx_new(p, PTX_32);
  PTX(p, "mov.b32", other, hg_ptx_number(pair));
  PTX(p, hg_ptx_join(op, type == ATLAS_f16 ? ".f16x2" : ".bf16x2").text, word, word, other);
}

static void clamp_pair(ptx *p, uint8_t type, ptx_name word, uint32_t low, uint32_t high) {
  if ((low ^ high) == 0x80008000) { /* the lesser magnitude, with the element's sign */
    with_pair(p, "min.NaN.xorsign.abs", type, word, high);
    return;
  }
  with_pair(p, "max.NaN", type, word, low);
  with_pair(p, "min.NaN", type, word, high);
}

static void take_word_apart(ptx *p, const gpu_vector *v, ptx_name word, ptx_name *part) {
  uint8_t type = type_of(p, v);
  if (v->clamped != SSA_NONE) clamp_pair(p, type, word, v->low, v->high);
  if (v->widened != SSA_NONE) widen_pair(p, type, word, part);
  else hg_ptx_take_apart(p, type, word, part, v->word_lanes);
}

void hg_ptx_vectors_take_apart(ptx *p) {
  for (uint32_t i = 0; i < p->plan->vector_count; i++) {
    const gpu_vector *v = &p->plan->vector[i];
    ptx_vector *names = &p->vector[i];
    for (uint32_t w = 0; v->is_load && w < v->word_count; w++)
      take_word_apart(p, v, names->word[w], names->element + (size_t)w * v->word_lanes);
  }
}

void hg_ptx_make_pair_exact(ptx *p, uint8_t type, ptx_name word) {
  int is_f16 = type == ATLAS_f16;
  ptx_name nan = hg_ptx_new(p, PTX_32);
  PTX(p, is_f16 ? "set.nan.u32.f16x2" : "set.nan.u32.bf16x2", nan, word, word);
  PTX(p, "lop3.b32", word, nan, hg_ptx_number(is_f16 ? 0x7e007e00 : 0x7fc07fc0), word, hg_ptx_name("0xCA"));
}

/* A rounding makes a NaN positive: read as a signed integer, its bits exceed those of every number. */
void hg_ptx_make_rounded_exact(ptx *p, uint8_t type, ptx_name word) {
  if (p->options->capability < 90) {
    hg_ptx_make_pair_exact(p, type, word);
    return;
  }
  ptx_name nan = hg_ptx_new(p, PTX_32);
  PTX(p, "mov.b32", nan, hg_ptx_number(type == ATLAS_f16 ? 0x7e007e00 : 0x7fc07fc0));
  PTX(p, "min.s16x2", word, word, nan);
}

/* Rounds the two halves of a word. */
static void round_pair(ptx *p, const gpu_vector *v, ptx_name word, const ptx_name part[2]) {
  uint8_t type = type_of(p, v);
  PTX(p, type == ATLAS_f16 ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32", word, part[1], part[0]);
  if (v->bound != 0) clamp_pair(p, type, word, v->bound ^ 0x80008000, v->bound);
}

void hg_ptx_join_parts(ptx *p, uint8_t type, ptx_name word, const ptx_name *part, uint32_t count) {
  uint32_t bits = atlas_type_bits((atlas_type)type);
  if (hg_ptx_class_of(type) == PTX_16) {
    hg_ptx_put(p, "\tmov.b32 %s, {%s, %s};\n", word.text, part[0].text, part[1].text);
    return;
  }
  PTX(p, "and.b32", word, part[0], hg_ptx_number(atlas_mask((atlas_type)type)));
  for (uint32_t k = 1; k < count; k++)
    PTX(p, "bfi.b32", word, part[k], word, hg_ptx_number((uint64_t)k * bits), hg_ptx_number(bits));
}

static void join_word(ptx *p, const gpu_vector *v, ptx_name *word, const ptx_name *part) {
  if (v->rounds) round_pair(p, v, *word, part);
  else if (v->element_bytes >= 4) *word = part[0];
  else hg_ptx_join_parts(p, type_of(p, v), *word, part, v->word_lanes);
  if (v->mends && v->rounds && v->bound == 0) hg_ptx_make_rounded_exact(p, type_of(p, v), *word);
  else if (v->mends) hg_ptx_make_pair_exact(p, type_of(p, v), *word);
}

void hg_ptx_vectors_join(ptx *p) {
  for (uint32_t i = 0; i < p->plan->vector_count; i++) {
    const gpu_vector *v = &p->plan->vector[i];
    ptx_vector *names = &p->vector[i];
    for (uint32_t w = 0; !v->is_load && w < v->word_count; w++)
      join_word(p, v, &names->word[w], names->element + (size_t)w * v->word_lanes);
  }
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

void hg_ptx_vectors_point(ptx *p, ptx_name lane) {
  ptx_name offset[4] = {{""}}; /* in bytes, by the size of elements */
  for (uint32_t i = 0; i < p->plan->vector_count; i++) {
    const ssa_insn *insn = ptx_insn(p, p->plan->vector[i].value);
    uint32_t size = p->plan->vector[i].element_bytes, shift = gpu_log2(size);
    ptx_name *address = &p->vector[i].address;
    if (offset[shift].text[0] == '\0') {
      offset[shift] = hg_ptx_new(p, PTX_64);
      PTX(p, "shl.b64", offset[shift], lane, hg_ptx_number(shift));
    }
    *address = hg_ptx_new(p, PTX_64);
    PTX(p, "add.s64", *address, hg_ptx_field(p, PTX_64, gpu_parameter_offset(p->plan, insn->symbol)), offset[shift]);
    if (insn->bits != 0) PTX(p, "add.s64", *address, *address, hg_ptx_number(insn->bits * size));
  }
}

/* "@%p1 " or "@!%p1 "; empty without a predicate. */
static ptx_name guard(const ptx_name *predicate, int is_not) {
  return predicate == NULL ? (ptx_name){""} : hg_ptx_name("@%s%s ", is_not ? "!" : "", predicate->text);
}

static const char *load_of(const gpu_vector *v) { return v->is_read_only ? "ld.global.nc" : "ld.global"; }

/* Accesses the elements of all lanes, `offset` bytes behind the address. */
static void emit_access(ptx *p, uint32_t number, const ptx_name *word, uint32_t offset, const ptx_name *when) {
  const gpu_vector *v = &p->plan->vector[number];
  ptx_name address = p->vector[number].address;
  uint32_t count = v->word_count, bytes = v->word_bytes;
  const char *width = count == 1 ? "" : count == 2 ? ".v2" : ".v4";
  const char *type = bytes == 8 ? ".b64" : bytes == 4 ? ".b32" : ".u16";
  char list[GPU_VECTOR_WORDS * (sizeof word->text + 2) + 2] = "";
  for (size_t i = 0, used = 0; i < count; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", word[i].text);
  const char *open = count > 1 ? "{" : "", *close = count > 1 ? "}" : "";
  ptx_name at = offset == 0 ? address : hg_ptx_name("%s+%u", address.text, (unsigned)offset);
  hg_ptx_put(p, "\t%s%s%s%s ", guard(when, 0).text, v->is_load ? load_of(v) : "st.global", width, type);
  if (v->is_load) hg_ptx_put(p, "%s%s%s, [%s];\n", open, list, close, at.text);
  else hg_ptx_put(p, "[%s], %s%s%s;\n", at.text, open, list, close);
}

/* Accesses only the first lane's element: the low part of the first word. */
static void emit_element(ptx *p, uint32_t number, const ptx_name *unless) {
  const gpu_vector *v = &p->plan->vector[number];
  const ptx_vector *names = &p->vector[number];
  static const char *const types[] = {".u8", ".u16", ".b32", ".b64"};
  const char *type = types[gpu_log2(v->element_bytes)];
  hg_ptx_put(p, "\t%s%s%s ", guard(unless, 1).text, v->is_load ? load_of(v) : "st.global", type);
  if (v->is_load) hg_ptx_put(p, "%s, [%s];\n", names->word[0].text, names->address.text);
  else hg_ptx_put(p, "[%s], %s;\n", names->address.text, names->word[0].text);
}

static void move_word(ptx *p, const gpu_vector *v, ptx_name d, ptx_name a) {
  PTX(p, v->word_bytes == 8 ? "mov.b64" : "mov.b32", d, a);
}

void hg_ptx_vectors_load(ptx *p, const ptx_name *whole) {
  for (uint32_t i = 0; i < p->plan->vector_count; i++) {
    const gpu_vector *v = &p->plan->vector[i];
    if (!v->is_load) continue;
    for (uint32_t w = 1; whole != NULL && w < v->word_count; w++)
      move_word(p, v, p->vector[i].word[w], hg_ptx_number(0));
    emit_access(p, i, p->vector[i].word, 0, whole);
    if (whole != NULL) emit_element(p, i, whole);
  }
}

void hg_ptx_vectors_load_next(ptx *p, uint32_t lanes, ptx_name when) {
  for (uint32_t i = 0; i < p->plan->vector_count; i++) {
    const gpu_vector *v = &p->plan->vector[i];
    if (v->is_load) emit_access(p, i, p->vector[i].next, lanes * v->element_bytes, &when);
  }
}

void hg_ptx_vectors_go_on(ptx *p, uint32_t lanes) {
  for (uint32_t i = 0; i < p->plan->vector_count; i++) {
    const gpu_vector *v = &p->plan->vector[i];
    ptx_vector *names = &p->vector[i];
    for (uint32_t w = 0; v->is_load && w < v->word_count; w++) move_word(p, v, names->word[w], names->next[w]);
    PTX(p, "add.s64", names->address, names->address, hg_ptx_number(lanes * v->element_bytes));
  }
}

void hg_ptx_vectors_take_next(ptx *p) {
  for (uint32_t i = 0; i < p->plan->vector_count; i++)
    if (p->plan->vector[i].is_load) memcpy(p->vector[i].word, p->vector[i].next, sizeof p->vector[i].word);
}

void hg_ptx_vectors_store(ptx *p, uint32_t lanes, const ptx_name *whole) {
  for (uint32_t i = 0; i < p->plan->vector_count; i++) {
    const gpu_vector *v = &p->plan->vector[i];
    if (v->is_load) continue;
    emit_access(p, i, p->vector[i].word, lanes * v->element_bytes, whole);
    if (whole != NULL) emit_element(p, i, whole);
  }
}

/* ---- the body's side --------------------------------------------------------------------------------------------- */

/* The element that a vector store takes, in a register. */
static ptx_name given(ptx *p, const gpu_vector *v) {
  ptx_name name = v->gives_exact ? hg_ptx_exact(p, v->given) : hg_ptx_value(p, v->given);
  return hg_ptx_kept(p, v->rounds ? PTX_32 : hg_ptx_class_of(type_of(p, v)), name);
}

void hg_ptx_take_element(ptx *p, const gpu_step *step) {
  hg_ptx_lies_in(p, step->value, p->vector[step->number].element[p->copy_lane]);
}

void hg_ptx_give_element(ptx *p, const gpu_step *step) {
  p->vector[step->number].element[p->copy_lane] = given(p, &p->plan->vector[step->number]);
}
