/* class.c - coordinates of lanes, instructions of the 96 classes, pools, the phase. */
#include "backend/metal/msl/msl.h"

#include "atlas/tables.h"
#include "compiler/machine_ops.h"

/* ---- coordinates ------------------------------------------------------------------------------------------------- */

void hg_msl_coordinate(msl *m, uint32_t value) {
  static const char *const group[] = {"thread", "block", "a.block_size", "a.grid", "global"};
  const ssa_insn *insn = msl_insn(m, value);
  const char *cast = hg_msl_variable_type(insn->type);
  switch ((machine_place)hg_machine_op(insn->op)) {
  case PLACE_phase_get: hg_msl_set(m, value, "a.phase"); break;
  case PLACE_len: hg_msl_set(m, value, "%s(a.n%u)", cast, (unsigned)insn->symbol); break;
  case PLACE_cls_get: hg_msl_set(m, value, "%s(block %% %uul)", cast, (unsigned)ATLAS_CLASS_COUNT); break;
  case PLACE_sreg:
    hg_msl_set(m, value, "%s(%s_%c)", cast, group[insn->bits / 3], "xyz"[insn->bits % 3]);
    break;
  }
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* If the operand is not below the extent: a fault, and the result 0. */
static void check_below(msl *m, uint32_t value, unsigned i, const char *extent) {
  gpu_site site = hg_gpu_class_site(m->plan, value);
  msl_name number = hg_msl_argument(m, value, i);
  hg_msl_open(m, "if (%s >= %s)", number.text, extent);
  hg_msl_note(m, &site, number.text, extent);
  hg_msl_close(m, " else {");
  m->depth++;
}

static void map_boundary(msl *m, uint32_t value) {
  static const uint32_t extent[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  for (unsigned i = 0; i < 3; i++) check_below(m, value, i, hg_msl_name("%uu", (unsigned)extent[i]).text);
  hg_msl_set(m, value, "ulong((%s * %u + %s) * %u + %s)", hg_msl_argument(m, value, 0).text,
             (unsigned)ATLAS_CLASS_PAGES, hg_msl_argument(m, value, 1).text, (unsigned)ATLAS_CLASS_PAGE_BYTES,
             hg_msl_argument(m, value, 2).text);
  for (unsigned i = 0; i < 3; i++) hg_msl_close(m, "");
}

static void of_class(msl *m, uint32_t value) {
  const char *class = hg_msl_argument(m, value, 0).text;
  msl_name c = hg_msl_name("%s", class);
  switch ((machine_class)hg_machine_op(msl_insn(m, value)->op)) {
  case CLASS_res_accum:
    hg_msl_line(m, "add_words(a.resonance + %s * 8, %s);", c.text, hg_msl_argument(m, value, 1).text);
    break;
  case CLASS_mirror: hg_msl_set(m, value, "%s < 48 ? %s + 48 : %s - 48", c.text, c.text, c.text); break;
  case CLASS_unity_test: hg_msl_set(m, value, "%s == 0 || %s == 48", c.text, c.text); break;
  case CLASS_nbr_count: hg_msl_set(m, value, "neighbour_count(%s)", c.text); break;
  case CLASS_nbr_get:
    check_below(m, value, 1, hg_msl_name("neighbour_count(%s)", c.text).text);
    hg_msl_set(m, value, "neighbour(%s, %s)", c.text, hg_msl_argument(m, value, 1).text);
    hg_msl_close(m, "");
    break;
  case CLASS_bound_map: break; /* above */
  }
}

void hg_msl_class(msl *m, uint32_t value) {
  uint16_t op = msl_insn(m, value)->op;
  if (op != ATLAS_OP_res_accum) hg_msl_line(m, "v%u = 0;", (unsigned)value);
  if (op == ATLAS_OP_bound_map) {
    map_boundary(m, value);
    return;
  }
  check_below(m, value, 0, hg_msl_name("%uu", (unsigned)ATLAS_CLASS_COUNT).text);
  of_class(m, value);
  hg_msl_close(m, "");
}

/* ---- pools: each block's share; its top is uniform in the block, so every lane has it ---------------------------- */

void hg_msl_start_pools(msl *m) {
  for (uint32_t s = 0; s < m->plan->program->symbols.count; s++)
    if (atlas_symbol_at(m->plan->program, s)->kind == ATLAS_SYMBOL_POOL)
      hg_msl_line(m, "ulong start%u = block * a.share%u, top%u = start%u;", (unsigned)s, (unsigned)s, (unsigned)s,
                  (unsigned)s);
}

void hg_msl_pool_allocate(msl *m, uint32_t value) {
  unsigned s = msl_insn(m, value)->symbol;
  msl_name size = hg_msl_argument(m, value, 0);
  hg_msl_line(m, "v%u = 0xfffffffffffffffful;", (unsigned)value);
  hg_msl_open(m, "if (%s <= start%u + a.share%u - top%u)", size.text, s, s, s);
  hg_msl_line(m, "v%u = top%u;", (unsigned)value, s);
  hg_msl_line(m, "top%u += (%s + 15) & ~15ul;", s, size.text);
  hg_msl_close(m, "");
}

void hg_msl_pool_free(msl *m, uint32_t value) {
  unsigned s = msl_insn(m, value)->symbol;
  gpu_site site = hg_gpu_free_site(m->plan, value);
  msl_name offset = hg_msl_argument(m, value, 0);
  hg_msl_open(m, "if (%s < start%u || %s >= top%u || (%s & 15) != 0)", offset.text, s, offset.text, s, offset.text);
  hg_msl_note(m, &site, offset.text, hg_msl_name("top%u", s).text);
  hg_msl_close(m, " else {");
  m->depth++;
  hg_msl_line(m, "top%u = %s;", s, offset.text);
  hg_msl_close(m, "");
}

/* ---- the phase: lane 0 advances it for the grid ------------------------------------------------------------------ */

void hg_msl_advance_phase(msl *m, uint32_t value) {
  msl_name by = hg_msl_argument(m, value, 0);
  hg_msl_open(m, "if (lane == 0)");
  hg_msl_line(m, "device uint *advance = (device uint *)a.phase_advance;");
  hg_msl_line(m, "*advance = (*advance + %s %% %uu) %% %uu;", by.text, (unsigned)ATLAS_PHASE_COUNT,
              (unsigned)ATLAS_PHASE_COUNT);
  hg_msl_close(m, "");
}
