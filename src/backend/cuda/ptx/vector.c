/* vector.c - accesses that a thread makes for all of its lanes at once, and the lanes' elements in their words. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/value.h"
#include "compiler/aliasing.h"

#include <stdio.h>
#include <string.h>

static uint32_t size_of(const ptx *p, uint32_t value) { return atlas_bytes((atlas_type)ptx_insn(p, value)->type); }

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* All lanes' elements have at most 16 bytes: words of 64 bits each for 64-bit elements, else of at most 32. */
static uint32_t word_bytes(const ptx *p, uint32_t value) {
  uint32_t size = size_of(p, value), bytes = size * p->info->lanes_per_thread;
  return size == 8 ? 8 : bytes < 4 ? bytes : 4;
}

static uint32_t word_count(const ptx *p, uint32_t value) {
  return size_of(p, value) * p->info->lanes_per_thread / word_bytes(p, value);
}

static void name_words(ptx *p, uint32_t value, ptx_name *word) {
  for (uint32_t i = 0; i < word_count(p, value); i++)
    word[i] = hg_ptx_new(p, word_bytes(p, value) == 8 ? PTX_64 : PTX_32);
}

void hg_ptx_vectors_name(ptx *p) {
  for (uint32_t i = 0; i < p->vector_count; i++) {
    name_words(p, p->vector[i].value, p->vector[i].word);
    if (p->vector[i].is_load && p->info->packs > 1) name_words(p, p->vector[i].value, p->vector[i].next);
  }
}

/* Part k of a word in a register of the type. */
static ptx_name part_of(ptx *p, uint8_t type, ptx_name word, uint32_t k) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  uint32_t bits = atlas_type_bits((atlas_type)type);
  PTX(p, hg_ptx_is_signed(type) ? "bfe.s32" : "bfe.u32", d, word, hg_ptx_number((uint64_t)k * bits),
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

/* Both halves of a word as f32; that of bf16 is the upper half of an f32. */
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

/* word = op of it and a pair, which is taken from a register only. */
static void with_pair(ptx *p, const char *op, uint8_t type, ptx_name word, uint32_t pair) {
  ptx_name other = hg_ptx_new(p, PTX_32);
  PTX(p, "mov.b32", other, hg_ptx_number(pair));
  PTX(p, hg_ptx_join(op, type == ATLAS_f16 ? ".f16x2" : ".bf16x2").text, word, word, other);
}

static void keep_pair(ptx *p, uint8_t type, ptx_name word, uint32_t low, uint32_t high) {
  if ((low ^ high) == 0x80008000) { /* of the magnitudes the lesser one, with the sign there was */
    with_pair(p, "min.NaN.xorsign.abs", type, word, high);
    return;
  }
  with_pair(p, "max.NaN", type, word, low);
  with_pair(p, "min.NaN", type, word, high);
}

static void take_word_apart(ptx *p, ptx_vector *v, uint32_t w, uint32_t lanes) {
  uint8_t type = ptx_insn(p, v->value)->type;
  ptx_name *part = v->element + (size_t)w * lanes;
  if (v->kept != SSA_NONE) keep_pair(p, type, v->word[w], v->low, v->high);
  if (v->widened != SSA_NONE) widen_pair(p, type, v->word[w], part);
  else hg_ptx_take_apart(p, type, v->word[w], part, lanes);
}

static uint32_t lanes_of_word(const ptx *p, uint32_t value) { return word_bytes(p, value) / size_of(p, value); }

void hg_ptx_vectors_take_apart(ptx *p) {
  for (uint32_t i = 0; i < p->vector_count; i++) {
    ptx_vector *v = &p->vector[i];
    uint32_t lanes = lanes_of_word(p, v->value);
    for (uint32_t w = 0; v->is_load && w < word_count(p, v->value); w++) take_word_apart(p, v, w, lanes);
  }
}

/* A NaN among the two halves of a word is made the canonical one. */
static void make_pair_exact(ptx *p, uint8_t type, ptx_name word) {
  int is_f16 = type == ATLAS_f16;
  ptx_name nan = hg_ptx_new(p, PTX_32);
  PTX(p, is_f16 ? "set.nan.u32.f16x2" : "set.nan.u32.bf16x2", nan, word, word);
  PTX(p, "lop3.b32", word, nan, hg_ptx_number(is_f16 ? 0x7e007e00 : 0x7fc07fc0), word, hg_ptx_name("0xCA"));
}

/* What a store rounds. Of a value kept between bounds it is the value before, since rounding is monotonic: two rounded
 * ones are kept between the rounded bounds by one instruction. *bound: a pair of them; 0: none. */
static uint32_t rounded_by(const ptx *p, uint32_t store, uint32_t *bound) {
  uint32_t value = hg_ptx_unrounded(p, store), x;
  double size;
  *bound = 0;
  if (!hg_ptx_is_clamp(p, value, &x, &size)) return value;
  uint32_t bits = (uint32_t)atlas_round_f64((atlas_type)ptx_insn(p, store)->type, size);
  *bound = bits << 16 | bits;
  return bits != 0 ? x : value;
}

/* The two halves of a word, rounded. */
static void round_pair(ptx *p, uint32_t store, ptx_name word, const ptx_name part[2]) {
  uint8_t type = ptx_insn(p, store)->type;
  uint32_t bound;
  (void)rounded_by(p, store, &bound);
  PTX(p, type == ATLAS_f16 ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32", word, part[1], part[0]);
  if (bound != 0) keep_pair(p, type, word, bound ^ 0x80008000, bound);
  if (!p->never_nan[hg_ptx_unrounded(p, store)]) make_pair_exact(p, type, word);
}

/* From which capability on the two halves of a word are rounded, and asked for NaN, by one instruction. */
static int has_pairs(const ptx *p, uint8_t type) { return p->options->capability >= (type == ATLAS_f16 ? 80u : 90u); }

static uint32_t stored_value(const ptx *p, uint32_t store) {
  return ptx_arg(p, store, ptx_insn(p, store)->arg_count - 1u);
}

/* A store that makes its NaNs exact, two by two. */
static int mends_pairs(const ptx *p, uint32_t store) {
  uint8_t type = ptx_insn(p, store)->type;
  return hg_ptx_class_of(type) == PTX_16 && p->nan[stored_value(p, store)] == PTX_NAN_LOOSE && has_pairs(p, type);
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

void hg_ptx_vectors_join(ptx *p) {
  for (uint32_t i = 0; i < p->vector_count; i++) {
    ptx_vector *v = &p->vector[i];
    uint32_t lanes = lanes_of_word(p, v->value);
    for (uint32_t w = 0; !v->is_load && w < word_count(p, v->value); w++) {
      const ptx_name *part = v->element + (size_t)w * lanes;
      if (hg_ptx_rounds(p, v->value)) round_pair(p, v->value, v->word[w], part);
      else if (size_of(p, v->value) >= 4) v->word[w] = part[0];
      else hg_ptx_join_parts(p, ptx_insn(p, v->value)->type, v->word[w], part, lanes);
      if (mends_pairs(p, v->value)) make_pair_exact(p, ptx_insn(p, v->value)->type, v->word[w]);
    }
  }
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

void hg_ptx_vectors_point(ptx *p, ptx_name lane) {
  ptx_name offset[4] = {{""}}; /* in bytes, by the size of elements */
  for (uint32_t i = 0; i < p->vector_count; i++) {
    ptx_vector *v = &p->vector[i];
    const ssa_insn *insn = ptx_insn(p, v->value);
    uint32_t size = size_of(p, v->value), shift = ptx_log2(size);
    if (offset[shift].text[0] == '\0') {
      offset[shift] = hg_ptx_new(p, PTX_64);
      PTX(p, "shl.b64", offset[shift], lane, hg_ptx_number(shift));
    }
    v->address = hg_ptx_new(p, PTX_64);
    PTX(p, "add.s64", v->address, hg_ptx_field(p, PTX_64, ptx_parameter_offset(p, insn->symbol)), offset[shift]);
    if (insn->bits != 0) PTX(p, "add.s64", v->address, v->address, hg_ptx_number(insn->bits * size));
  }
}

/* "@%p1 " or "@!%p1 "; nothing where there is no predicate. */
static ptx_name guard(const ptx_name *predicate, int is_not) {
  return predicate == NULL ? (ptx_name){""} : hg_ptx_name("@%s%s ", is_not ? "!" : "", predicate->text);
}

static const char *load_of(const ptx *p, const ptx_vector *v) {
  return p->read_only[hg_location_of(p->program, ptx_insn(p, v->value))] ? "ld.global.nc" : "ld.global";
}

/* All lanes' elements, `offset` bytes behind the address. */
static void put_access(ptx *p, const ptx_vector *v, const ptx_name *word, uint32_t offset, const ptx_name *when) {
  uint32_t count = word_count(p, v->value), bytes = word_bytes(p, v->value);
  const char *width = count == 1 ? "" : count == 2 ? ".v2" : ".v4";
  const char *type = bytes == 8 ? ".b64" : bytes == 4 ? ".b32" : ".u16";
  char list[PTX_VECTOR_WORDS * (sizeof word->text + 2) + 2] = "";
  for (size_t i = 0, used = 0; i < count; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", word[i].text);
  const char *open = count > 1 ? "{" : "", *close = count > 1 ? "}" : "";
  ptx_name at = offset == 0 ? v->address : hg_ptx_name("%s+%u", v->address.text, (unsigned)offset);
  hg_ptx_put(p, "\t%s%s%s%s ", guard(when, 0).text, v->is_load ? load_of(p, v) : "st.global", width, type);
  if (v->is_load) hg_ptx_put(p, "%s%s%s, [%s];\n", open, list, close, at.text);
  else hg_ptx_put(p, "[%s], %s%s%s;\n", at.text, open, list, close);
}

/* The first lane's element alone: the low part of the first word. */
static void put_element(ptx *p, const ptx_vector *v, const ptx_name *unless) {
  static const char *const types[] = {".u8", ".u16", ".b32", ".b64"};
  const char *type = types[ptx_log2(size_of(p, v->value))];
  hg_ptx_put(p, "\t%s%s%s ", guard(unless, 1).text, v->is_load ? load_of(p, v) : "st.global", type);
  if (v->is_load) hg_ptx_put(p, "%s, [%s];\n", v->word[0].text, v->address.text);
  else hg_ptx_put(p, "[%s], %s;\n", v->address.text, v->word[0].text);
}

void hg_ptx_vectors_load(ptx *p, const ptx_name *whole) {
  for (uint32_t i = 0; i < p->vector_count; i++) {
    const ptx_vector *v = &p->vector[i];
    if (!v->is_load) continue;
    for (uint32_t w = 1; whole != NULL && w < word_count(p, v->value); w++)
      PTX(p, word_bytes(p, v->value) == 8 ? "mov.b64" : "mov.b32", v->word[w], hg_ptx_number(0));
    put_access(p, v, v->word, 0, whole);
    if (whole != NULL) put_element(p, v, whole);
  }
}

void hg_ptx_vectors_load_next(ptx *p, uint32_t lanes, ptx_name when) {
  for (uint32_t i = 0; i < p->vector_count; i++) {
    const ptx_vector *v = &p->vector[i];
    if (v->is_load) put_access(p, v, v->next, lanes * size_of(p, v->value), &when);
  }
}

void hg_ptx_vectors_go_on(ptx *p, uint32_t lanes) {
  for (uint32_t i = 0; i < p->vector_count; i++) {
    const ptx_vector *v = &p->vector[i];
    for (uint32_t w = 0; v->is_load && w < word_count(p, v->value); w++)
      PTX(p, word_bytes(p, v->value) == 8 ? "mov.b64" : "mov.b32", v->word[w], v->next[w]);
    PTX(p, "add.s64", v->address, v->address, hg_ptx_number(lanes * size_of(p, v->value)));
  }
}

void hg_ptx_vectors_take_next(ptx *p) {
  for (uint32_t i = 0; i < p->vector_count; i++)
    if (p->vector[i].is_load) memcpy(p->vector[i].word, p->vector[i].next, sizeof p->vector[i].word);
}

void hg_ptx_vectors_store(ptx *p, uint32_t lanes, const ptx_name *whole) {
  for (uint32_t i = 0; i < p->vector_count; i++) {
    const ptx_vector *v = &p->vector[i];
    if (v->is_load) continue;
    put_access(p, v, v->word, lanes * size_of(p, v->value), whole);
    if (whole != NULL) put_element(p, v, whole);
  }
}

/* ---- the body's side --------------------------------------------------------------------------------------------- */

int hg_ptx_rounds(const ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (p->access[value] != PTX_VECTOR || !(atlas_op_flags(insn->op) & ATLAS_STORE)) return 0;
  const ssa_insn *stored = ptx_insn(p, stored_value(p, value));
  return hg_ptx_class_of(insn->type) == PTX_16 && stored->op == ATLAS_OP_cvt && stored->type == insn->type &&
         stored->type2 == ATLAS_f32 && has_pairs(p, insn->type);
}

uint32_t hg_ptx_unrounded(const ptx *p, uint32_t store) { return ptx_arg(p, stored_value(p, store), 0); }

/* What a store waits with, in a register. */
static ptx_name stored(ptx *p, uint32_t store) {
  const ssa_insn *insn = ptx_insn(p, store);
  uint32_t bound;
  ptx_name name = hg_ptx_rounds(p, store) ? hg_ptx_value(p, rounded_by(p, store, &bound))
                  : mends_pairs(p, store) ? hg_ptx_value(p, stored_value(p, store))
                                          : hg_ptx_exact(p, stored_value(p, store));
  if (name.text[0] == '%') return name;
  ptx_class class = hg_ptx_rounds(p, store) ? PTX_32 : hg_ptx_class_of(insn->type);
  ptx_name d = hg_ptx_new(p, class);
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(class)).text, d, name);
  return d;
}

int hg_ptx_use_element(ptx *p, uint32_t value) {
  if (p->access[value] != PTX_VECTOR) return 0;
  ptx_vector *v = &p->vector[p->vector_of[value]];
  if (v->is_load) hg_ptx_lies_in(p, value, v->element[p->copy_lane]);
  else v->element[p->copy_lane] = stored(p, value);
  return 1;
}

/* The vector load that all of `value` is made of: it is what widens it, or keeps that between bounds. */
static const ptx_vector *widened_from(const ptx *p, uint32_t value) {
  ptx_bounds bounds = {.x = value};
  if (ptx_insn(p, value)->op != ATLAS_OP_cvt && !hg_ptx_is_bounded(p, value, &bounds)) return NULL;
  if (ptx_insn(p, bounds.x)->op != ATLAS_OP_cvt) return NULL;
  uint32_t load = ptx_arg(p, bounds.x, 0);
  if (p->access[load] != PTX_VECTOR) return NULL;
  const ptx_vector *v = &p->vector[p->vector_of[load]];
  return v->value == load && (v->widened == value || v->kept == value) ? v : NULL;
}

int hg_ptx_use_widened(ptx *p, uint32_t value) {
  const ptx_vector *v = widened_from(p, value);
  if (v == NULL) return 0;
  hg_ptx_lies_in(p, value, v->element[p->copy_lane]);
  return 1;
}
