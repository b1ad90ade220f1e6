/* row_extremes.c - tells a device of a launch that finds the extremes of rows of bytes (hg_rows): any and all of bools,
 * the greatest and the least of u8. Lanes would widen each byte to 32 bits. */
#include "ops/write/row_block.h"
#include "ops/write/row_moves.h"

#include <string.h>

/* Bools are compared as integers, into which their reductions cast them; of floats these would not be the bits. */
static const ops_term *bytes_of(const row_group *g, const row_reduction *r, int *is_bool) {
  const ops_term *load = ops_term_at(&g->terms, r->input);
  *is_bool = load->kind == TERM_POINTWISE && load->op == ATLAS_OP_cvt &&
             ops_term_at(&g->terms, load->input[0])->type == ATLAS_bool && atlas_is_integer((atlas_type)r->type);
  if (*is_bool) load = ops_term_at(&g->terms, load->input[0]);
  int is_row = g->terms.variable_count <= g->row_rank + 1 && g->row_rank <= 1 &&
               g->terms.space.rank == g->row_rank + 1 && load->form.factor[g->row_rank] == 1;
  return load->kind == TERM_LOAD && (*is_bool || load->type == ATLAS_u8) && is_row ? load : NULL;
}

/* The results are parts: chunks of one row, all whole or the one that is left. */
static int find_parts(const row_group *g, const ops_layout *layout, const row_parts *parts, hg_rows *out) {
  uint64_t left = g->columns % OPS_CHUNK, first = layout->first_chunk;
  int is_left = left != 0 && layout->chunk_blocks == 1 && first + 1 == parts->count;
  if (g->rows != 1 || (left != 0 && !is_left && layout->chunk_blocks == parts->count)) return 0;
  out->x.first += first * OPS_CHUNK, out->x.stride = OPS_CHUNK;
  out->y = (hg_rows_of){.slot = parts->values[0], .first = first, .stride = 1};
  out->count = layout->chunk_blocks, out->length = is_left ? left : OPS_CHUNK;
  out->index_type = g->reductions[0].type;
  return 1;
}

static int find_results(const row_group *g, int is_bool, hg_rows *out) {
  const row_result *result = &g->results[0];
  const ops_term *term = ops_term_at(&g->terms, result->term);
  int is_cast = is_bool && term->kind == TERM_POINTWISE && term->op == ATLAS_OP_cvt && result->type == ATLAS_bool;
  term_id bound = g->reductions[0].bound;
  out->y = (hg_rows_of){.slot = result->storage, .first = (uint64_t)result->address.constant};
  if (g->row_rank == 1) out->y.stride = (uint64_t)result->address.factor[0];
  out->index_type = result->type;
  return g->result_count == 1 && bound != 0 && (is_cast ? term->input[0] : result->term) == bound &&
         atlas_bytes((atlas_type)result->type) <= sizeof(uint64_t);
}

int ops_find_extremes(const row_group *g, const ops_layout *layout, const row_parts *parts, hg_rows *out) {
  const row_reduction *r = &g->reductions[0];
  int is_bool;
  if (g->group->plan->for_gpu || g->reduction_count != 1 || (r->reduce != OPS_MIN && r->reduce != OPS_MAX)) return 0;
  const ops_term *load = bytes_of(g, r, &is_bool);
  if (load == NULL) return 0;
  memset(out, 0, sizeof *out);
  out->kind = HG_ROWS_EXTREME, out->type = load->type, out->is_least = r->reduce == OPS_MIN;
  out->groups = 1, out->count = g->rows, out->length = g->columns;
  out->x = (hg_rows_of){.slot = load->storage, .first = (uint64_t)load->form.constant};
  if (g->row_rank == 1) out->x.stride = (uint64_t)load->form.factor[0];
  return parts->count != 0 ? find_parts(g, layout, parts, out) : find_results(g, is_bool, out);
}
