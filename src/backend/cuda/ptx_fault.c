/* ptx_fault.c - faults: rare paths at the end of the entry that call one function.
 *
 * The launch has one record. The function keeps in it the lowest lane that faulted and that lane's first fault: a lane
 * that finds itself or a lower one in the record has nothing to say, so no lane need remember that it has faulted. The
 * lock is safe among the lanes of a warp because sm_70 and later let each of them make progress. */
#include "backend/cuda/ptx.h"

#include <stddef.h>

#define OFFSET(member) (unsigned)offsetof(hg_ptx_fault, member)

/* Arguments: record, flag, lane, kind, instruction | symbol << 32, code | index type << 32, index, displacement,
 * extent. */
void hg_ptx_fault_function(ptx *p) {
  hg_array *to = &p->module;
  hg_ptx_append(p, to, ".func %s_fault", p->options->name);
  hg_ptx_append(p, to,
                "(.reg .b64 record, .reg .b64 flag, .reg .b64 lane, .reg .b32 kind, .reg .b64 place,\n"
                "               .reg .b64 code, .reg .b64 index, .reg .b64 displacement, .reg .b64 extent)\n"
                "{\n\t.reg .b64 %%lowest;\n\t.reg .b32 %%lock;\n\t.reg .pred %%p;\n"
                "again:\n\tld.volatile.global.u64 %%lowest, [record+%u];\n\tsetp.le.u64 %%p, %%lowest, lane;\n"
                "\t@%%p bra done;\n",
                OFFSET(lane));
  hg_ptx_append(p, to,
                "\tatom.global.cas.b32 %%lock, [record+%u], 0, 1;\n\tsetp.ne.u32 %%p, %%lock, 0;\n\t@%%p bra again;\n"
                "\tmembar.gl;\n\tld.volatile.global.u64 %%lowest, [record+%u];\n\tsetp.le.u64 %%p, %%lowest, lane;\n"
                "\t@%%p bra unlock;\n\tst.volatile.global.u64 [record+%u], lane;\n",
                OFFSET(lock), OFFSET(lane), OFFSET(lane));
  hg_ptx_append(p, to,
                "\tst.global.u32 [record+%u], kind;\n\tst.global.u64 [record+%u], place;\n"
                "\tst.global.u64 [record+%u], code;\n\tst.global.u64 [record+%u], index;\n"
                "\tst.global.u64 [record+%u], displacement;\n\tst.global.u64 [record+%u], extent;\n",
                OFFSET(kind), OFFSET(instruction), OFFSET(code), OFFSET(index), OFFSET(displacement), OFFSET(extent));
  hg_ptx_append(p, to,
                "\tst.volatile.global.u32 [flag], 1;\nunlock:\n\tmembar.gl;\n"
                "\tatom.global.exch.b32 %%lock, [record+%u], 0;\ndone:\n\tret;\n}\n\n",
                OFFSET(lock));
}

static ptx_name both(uint32_t low, uint32_t high) { return hg_ptx_number(low | (uint64_t)high << 32); }

void hg_ptx_note_fault(ptx *p, const ptx_fault_site *site) {
  uint32_t instruction = site->insn == SSA_NONE ? 0 : site->insn;
  ptx_name record = PTX_FIELD(p, PTX_64, fault_record), flag = PTX_FIELD(p, PTX_64, fault_flag);
  p->uses_faults = 1;
  hg_ptx_put(p, "\tcall %s_fault, (%s, %s, %s, %u, %s, %s, %s, %s, %s);\n", p->options->name, record.text, flag.text,
             p->lane.text, (unsigned)site->kind, both(instruction, site->symbol).text,
             both(site->code, site->index_type).text, site->index.text,
             hg_ptx_number((uint64_t)site->displacement).text, site->extent.text);
}

/* The faults that wait, in the order of the program. */
static void note_pending(ptx *p) {
  for (uint32_t i = 0; i < p->pending_count; i++) {
    ptx_name next = hg_ptx_label(p);
    if (p->pending_count > 1) hg_ptx_put(p, "\t@!%s bra %s;\n", p->pending[i].failed.text, next.text);
    hg_ptx_note_fault(p, &p->pending[i].site);
    if (p->pending_count > 1) hg_ptx_place(p, next);
  }
}

void hg_ptx_faults_now(ptx *p) {
  if (p->pending_count == 0) return;
  ptx_name any = p->pending[0].failed, rare = hg_ptx_label(p), back = hg_ptx_label(p);
  for (uint32_t i = 1; i < p->pending_count; i++) {
    ptx_name more = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, "or.pred", more, any, p->pending[i].failed);
    any = more;
  }
  hg_ptx_put(p, "\t@%s bra %s;\n", any.text, rare.text);
  hg_ptx_place(p, back);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  note_pending(p);
  hg_ptx_put(p, "\tbra %s;\n", back.text);
  p->out = out;
  p->pending_count = 0;
}

void hg_ptx_fault_later(ptx *p, ptx_name predicate, const ptx_fault_site *site) {
  if (p->pending_count == PTX_PENDING) hg_ptx_faults_now(p);
  p->pending[p->pending_count++] = (ptx_pending){predicate, *site};
}

void hg_ptx_fault_if(ptx *p, ptx_name predicate, const ptx_fault_site *site, const ptx_name *zeroed, uint8_t type,
                     ptx_name back) {
  ptx_name rare = hg_ptx_label(p);
  hg_ptx_put(p, "\t@%s bra %s;\n", predicate.text, rare.text);
  hg_array *out = p->out;
  p->out = &p->cold;
  hg_ptx_place(p, rare);
  hg_ptx_note_fault(p, site);
  if (zeroed != NULL && type == SSA_PREDICATE) PTX(p, "mov.pred", *zeroed, hg_ptx_number(0));
  else if (zeroed != NULL)
    PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(hg_ptx_class_of(type))).text, *zeroed, hg_ptx_number(0));
  hg_ptx_put(p, "\tbra %s;\n", back.text);
  p->out = out;
}
