/* pool.c - pools: each block's share of them. A pool's top is uniform in the block, so each lane keeps it in a
 * register. */
#include "backend/cuda/ptx/ptx.h"

void hg_ptx_start_pools(ptx *p) {
  uint32_t number = 0;
  for (uint32_t s = 0; s < p->plan->program->symbols.count; s++) {
    if (atlas_symbol_at(p->plan->program, s)->kind != ATLAS_SYMBOL_POOL) continue;
    ptx_name share = hg_ptx_field(p, PTX_64, (size_t)p->plan->info.parameter[p->plan->parameter_of[s] - 1].offset + 16);
    p->pool_start[number] = hg_ptx_new(p, PTX_64);
    p->pool_end[number] = hg_ptx_new(p, PTX_64);
    p->pool_top[number] = hg_ptx_new(p, PTX_64);
    PTX(p, "mul.lo.u64", p->pool_start[number], p->block, share);
    PTX(p, "add.s64", p->pool_end[number], p->pool_start[number], share);
    PTX(p, "mov.b64", p->pool_top[number], p->pool_start[number]);
    number++;
  }
}

void hg_ptx_pool_allocate(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t number = hg_gpu_pool_number(p->plan, insn->symbol);
  ptx_name d = hg_ptx_register(p, value), size = hg_ptx_value(p, ptx_arg(p, value, 0)), top = p->pool_top[number];
  ptx_name room = hg_ptx_new(p, PTX_64), rounded = hg_ptx_new(p, PTX_64), fits = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "sub.s64", room, p->pool_end[number], top);
  PTX(p, "setp.le.u64", fits, size, room);
  PTX(p, "selp.b64", d, top, hg_ptx_number(UINT64_MAX), fits);
  PTX(p, "add.s64", rounded, size, hg_ptx_number(15));
  PTX(p, "and.b64", rounded, rounded, hg_ptx_number(~UINT64_C(15)));
  hg_ptx_put(p, "\t@%s add.s64 %s, %s, %s;\n", fits.text, top.text, top.text, rounded.text);
}

void hg_ptx_pool_free(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t number = hg_gpu_pool_number(p->plan, insn->symbol);
  ptx_name offset = hg_ptx_value(p, ptx_arg(p, value, 0)), top = p->pool_top[number], back = hg_ptx_label(p);
  ptx_name failed = hg_ptx_new(p, PTX_PREDICATE), low = hg_ptx_new(p, PTX_64);
  PTX(p, "setp.lt.u64", failed, offset, p->pool_start[number]);
  PTX(p, "setp.ge.or.u64", failed, offset, top, failed);
  PTX(p, "and.b64", low, offset, hg_ptx_number(15));
  PTX(p, "setp.ne.or.u64", failed, low, hg_ptx_number(0), failed);
  ptx_fault_site site = {.site = hg_gpu_free_site(p->plan, value), .index = offset, .extent = top};
  hg_ptx_fault_if(p, failed, &site, NULL, ATLAS_u64, back);
  PTX(p, "mov.b64", top, offset);
  hg_ptx_place(p, back);
}
