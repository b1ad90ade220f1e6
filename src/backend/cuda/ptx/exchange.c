/* exchange.c - places in shared memory. */
#include "backend/cuda/ptx/exchange.h"

#include "atlas/arith.h"

/* Places are a variable of their own if the text declares any shared memory. */
ptx_name hg_ptx_shared_at(ptx *p, uint32_t offset) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  uint32_t zeroed = p->plan->memory.zeroed_bytes;
  if (offset < zeroed || p->plan->info.dynamic_bytes > 0)
    hg_ptx_put(p, "\tmov.u32 %s, hg_shared+%u;\n", d.text, (unsigned)offset);
  else hg_ptx_put(p, "\tmov.u32 %s, hg_places+%u;\n", d.text, (unsigned)(offset - zeroed));
  return d;
}

ptx_name hg_ptx_slot_at(ptx *p, uint8_t type, uint32_t offset, ptx_name lane) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "mad.lo.u32", d, lane, hg_ptx_number(gpu_slot_bytes(type)), hg_ptx_shared_at(p, offset));
  return d;
}

ptx_name hg_ptx_place_at(const ptx_exchange *c, uint32_t i, ptx_name lane) {
  ptx_name d = hg_ptx_slot_at(c->p, exchange_type(c, i), c->x->place[i], lane);
  if (c->x->by_each_warp) PTX(c->p, "add.s32", d, d, c->p->half);
  return d;
}

void hg_ptx_sync_sub_blocks(ptx *p) {
  if (p->plan->info.sub_blocks == 1) hg_ptx_put(p, "\tbar.sync 0;\n");
  else hg_ptx_put(p, "\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n");
}

void hg_ptx_store_slot(ptx *p, const char *guard, uint8_t type, ptx_name address, int offset, ptx_name value) {
  hg_ptx_put(p, "\t%sst.shared%s [%s+%d], %s;\n", guard, hg_ptx_bits_suffix(hg_ptx_class_of(type)), address.text,
             offset, value.text);
}

void hg_ptx_load_slot(ptx *p, const char *guard, uint8_t type, ptx_name d, ptx_name address, int offset) {
  hg_ptx_put(p, "\t%sld.shared%s %s, [%s+%d];\n", guard, hg_ptx_bits_suffix(hg_ptx_class_of(type)), d.text,
             address.text, offset);
}

ptx_name hg_ptx_combined(ptx *p, uint16_t op, uint8_t type, ptx_name a, ptx_name b) {
  ptx_name d = hg_ptx_new(p, hg_ptx_class_of(type));
  hg_ptx_combine(p, op, type, d, a, b);
  return d;
}

uint16_t hg_ptx_combining_op(const ptx_exchange *c, uint32_t i) {
  return (uint16_t)atlas_combining_op(exchange_insn(c, i)->op);
}
