/* vector.c - accesses of all lanes of a thread at once, and elements in their words. */
#include "backend/metal/msl/msl.h"

/* ---- words ------------------------------------------------------------------------------------------------------- */

msl_name hg_msl_words(uint32_t word_bytes, uint32_t count) {
  const char *word = word_bytes == 8 ? "ulong" : word_bytes == 4 ? "uint" : word_bytes == 2 ? "ushort" : "uchar";
  return count > 1 ? hg_msl_name("%s%u", word, (unsigned)count) : hg_msl_name("%s", word);
}

msl_name hg_msl_word(const char *words, uint32_t count, uint32_t w) {
  return count > 1 ? hg_msl_name("%s.%c", words, "xyzw"[w]) : hg_msl_name("%s", words);
}

msl_name hg_msl_part(uint8_t type, const char *word, uint32_t k) {
  uint32_t bits = atlas_type_bits((atlas_type)type);
  msl_name part = k > 0 ? hg_msl_name("%s >> %u", word, (unsigned)(k * bits)) : hg_msl_name("%s", word);
  if (bits >= 32) return part;
  if (type == ATLAS_bool) return hg_msl_name("uint(as_u8(%s) != 0)", part.text);
  return hg_msl_name("as_%c%u(%s)", gpu_is_signed(type) ? 'i' : 'u', (unsigned)bits, part.text);
}

void hg_msl_join(msl *m, uint8_t type, const char *word, const msl_name *part, uint32_t count) {
  uint32_t bits = atlas_type_bits((atlas_type)type);
  if (bits >= 32) hg_msl_line(m, "%s = %s;", word, part[0].text);
  else hg_msl_line(m, "%s = as_u%u(%s);", word, (unsigned)bits, part[0].text);
  for (uint32_t k = 1; k < count; k++)
    hg_msl_line(m, "%s |= as_u%u(%s) << %u;", word, (unsigned)bits, part[k].text, (unsigned)(k * bits));
}

/* ---- the words of a thread's vectors ----------------------------------------------------------------------------- */

static uint8_t type_of(const msl *m, const gpu_vector *v) { return msl_insn(m, v->value)->type; }

/* A word of less than 32 bits is stored in 32. */
static msl_name variable_type(const gpu_vector *v) {
  return hg_msl_words(v->word_bytes < 4 ? 4 : v->word_bytes, v->word_count);
}

void hg_msl_vectors_declare(msl *m) {
  for (uint32_t i = 0; i < m->plan->vector_count; i++) {
    const gpu_vector *v = &m->plan->vector[i];
    msl_name type = variable_type(v);
    hg_msl_head(m, "  %s w%u = %s(0);\n", type.text, (unsigned)i, type.text);
    if (v->is_load && m->plan->info.packs > 1)
      hg_msl_head(m, "  %s next%u = %s(0);\n", type.text, (unsigned)i, type.text);
    hg_msl_head(m, "  %s e%u[%u];\n", hg_msl_variable_type(type_of(m, v)), (unsigned)i,
                (unsigned)m->plan->info.lanes_per_thread);
  }
}

static msl_name address_of(const msl *m, const gpu_vector *v, const char *lane) {
  const ssa_insn *insn = msl_insn(m, v->value);
  msl_name at = hg_msl_byte(lane, v->element_bytes, (int64_t)insn->bits);
  return hg_msl_name("a.p%u + %s", (unsigned)insn->symbol, at.text);
}

/* Moves the words of all vectors that are loads, or stores, for the pack that begins at that lane. */
static void access_packs(msl *m, int is_load, const char *words, const char *lane) {
  for (uint32_t i = 0; i < m->plan->vector_count; i++) {
    const gpu_vector *v = &m->plan->vector[i];
    msl_name type = hg_msl_words(v->word_bytes, v->word_count), at = address_of(m, v, lane);
    if (v->is_load != is_load) continue;
    if (is_load) hg_msl_line(m, "%s%u = *(device const %s *)(%s);", words, (unsigned)i, type.text, at.text);
    else if (v->word_bytes < 4)
      hg_msl_line(m, "*(device %s *)(%s) = %s(%s%u);", type.text, at.text, type.text, words, (unsigned)i);
    else hg_msl_line(m, "*(device %s *)(%s) = %s%u;", type.text, at.text, words, (unsigned)i);
  }
}

/* Moves only the first lane's element: the low bits of the first word. */
static void access_elements(msl *m, int is_load) {
  for (uint32_t i = 0; i < m->plan->vector_count; i++) {
    const gpu_vector *v = &m->plan->vector[i];
    msl_name type = hg_msl_words(v->element_bytes, 1), at = address_of(m, v, "first");
    msl_name word = hg_msl_word(hg_msl_name("w%u", (unsigned)i).text, v->word_count, 0);
    if (v->is_load != is_load) continue;
    if (is_load) hg_msl_line(m, "%s = *(device const %s *)(%s);", word.text, type.text, at.text);
    else hg_msl_line(m, "*(device %s *)(%s) = %s(%s);", type.text, at.text, type.text, word.text);
  }
}

void hg_msl_vectors_access(msl *m, int is_load, int may_be_single) {
  if (!may_be_single) {
    access_packs(m, is_load, "w", "first");
    return;
  }
  hg_msl_open(m, "if (whole)");
  access_packs(m, is_load, "w", "first");
  hg_msl_close(m, " else {");
  m->depth++;
  access_elements(m, is_load);
  hg_msl_close(m, "");
}

void hg_msl_vectors_load_next(msl *m) {
  hg_msl_open(m, "if (more)");
  access_packs(m, 1, "next", hg_msl_name("(first + %u)", (unsigned)gpu_tile(m->plan)).text);
  hg_msl_close(m, "");
}

void hg_msl_vectors_take_next(msl *m) {
  for (uint32_t i = 0; i < m->plan->vector_count; i++)
    if (m->plan->vector[i].is_load) hg_msl_line(m, "w%u = next%u;", (unsigned)i, (unsigned)i);
}

/* ---- the lanes' elements ----------------------------------------------------------------------------------------- */

static msl_name element(uint32_t vector, uint32_t lane) {
  return hg_msl_name("e%u[%u]", (unsigned)vector, (unsigned)lane);
}

void hg_msl_vectors_take_apart(msl *m) {
  for (uint32_t i = 0; i < m->plan->vector_count; i++) {
    const gpu_vector *v = &m->plan->vector[i];
    for (uint32_t lane = 0; v->is_load && lane < m->plan->info.lanes_per_thread; lane++) {
      msl_name word = hg_msl_word(hg_msl_name("w%u", (unsigned)i).text, v->word_count, lane / v->word_lanes);
      hg_msl_line(m, "%s = %s;", element(i, lane).text,
                  hg_msl_part(type_of(m, v), word.text, lane % v->word_lanes).text);
    }
  }
}

void hg_msl_vectors_join(msl *m) {
  for (uint32_t i = 0; i < m->plan->vector_count; i++) {
    const gpu_vector *v = &m->plan->vector[i];
    for (uint32_t w = 0; !v->is_load && w < v->word_count; w++) {
      msl_name part[GPU_VECTOR_LANES];
      for (uint32_t k = 0; k < v->word_lanes; k++) part[k] = element(i, w * v->word_lanes + k);
      hg_msl_join(m, type_of(m, v), hg_msl_word(hg_msl_name("w%u", (unsigned)i).text, v->word_count, w).text, part,
                  v->word_lanes);
    }
  }
}

/* Widens for each lane what is otherwise widened for all lanes at once. */
void hg_msl_take_element(msl *m, const gpu_step *step) {
  if (step->value == m->plan->vector[step->number].value)
    hg_msl_line(m, "v%u = e%u[k];", (unsigned)step->value, (unsigned)step->number);
  else hg_msl_compute(m, step->value);
}

void hg_msl_give_element(msl *m, const gpu_step *step) {
  hg_msl_line(m, "e%u[k] = %s;", (unsigned)step->number,
              hg_msl_value(m, m->plan->vector[step->number].given).text);
}
