/* rows_map.c - what is behind the last reduction, in a launch of its own: an element, or a row, a lane. See
 * row_group.h. */
#include "ops/write/row_group.h"

/* Coordinates of all, the last of the row's last where its neighbours lie side by side. *lane is the lane's number as a
 * form of them: what lies at it is read and written in element form. */
static void coordinates(const row_group *g, ops_code *code, int full, ops_form *lane) {
  uint32_t order[HG_MAX_RANK], count = 0, rank = g->terms.space.rank, kept = g->row_rank;
  int across = ops_columns_lie_apart(g);
  for (uint32_t i = 0; i < kept; i++)
    if (!full || !across || i + 1 < kept) order[count++] = i;
  for (uint32_t i = kept; full && i < rank; i++) order[count++] = i;
  if (full && across) order[count++] = kept - 1;
  int64_t stride = 1;
  for (uint32_t i = count; i-- > 0; stride *= (int64_t)g->terms.space.size[order[i]]) lane->factor[order[i]] = stride;
  code->lane_form = lane;
  uint16_t rest = ops_register(code);
  atlas_emit2(code->builder, ATLAS_OP_cvt, code->index_type, ATLAS_u64, atlas_reg(rest), atlas_reg(ATLAS_REG_LANE));
  while (count-- > 1) {
    atlas_operand size = ops_scalar_of(code, code->index_type, g->terms.space.size[order[count]]);
    uint16_t own = ops_register(code), quotient = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_rem, code->index_type, 3, atlas_reg(own), atlas_reg(rest), size);
    atlas_emit(code->builder, ATLAS_OP_div, code->index_type, 3, atlas_reg(quotient), atlas_reg(rest), size);
    code->variable[order[count]] = own;
    rest = quotient;
  }
  if (rank > 0) code->variable[order[0]] = rest;
}

hg_status ops_rows_map(row_group *g, ops_step *step, int full) {
  ops_code code;
  ops_form lane = {.constant = 0};
  HG_TRY(ops_row_code_begin(g, &code, step, "behind_rows"));
  if (full ? g->terms.space.rank > 0 : g->row_rank > 0) coordinates(g, &code, full, &lane);
  if (!full) ops_row_put(g, &code);
  for (uint32_t i = 0; i < g->result_count && full; i++) {
    if (!g->results[i].is_full) continue;
    row_store store = ops_row_store_begin(&code, &g->results[i], ops_value(&code, g->results[i].term));
    ops_row_store_end(&code, &store);
  }
  step->lanes = full ? g->rows * g->columns : g->rows;
  step->kind = "map";
  return ops_code_end(&code);
}
